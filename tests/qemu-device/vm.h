// SPDX-License-Identifier: BSD-3-Clause
// A QEMU with the plugin loaded, held by two strings: qtest (memory, ports, the virtual clock) and QMP.
#ifndef HCASIM_TESTS_QEMU_DEVICE_VM_H
#define HCASIM_TESTS_QEMU_DEVICE_VM_H

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hcasim::tests {

// What a QEMU that was expected to stop by itself did.
struct QemuExit {
  int status;          // exit status, or -1 if it had to be killed
  std::string output;  // stdout and stderr
};

// Runs QEMU with the plugin and these arguments until it ends, at most 20 s.
QemuExit run_qemu(const std::vector<std::string>& args, const std::string& plugin = {});

class Vm {
 public:
  // `args` are added to: -plugin, no display, no defaults, qtest, QMP. With `accel` empty, accel qtest is
  // used: no guest code runs and the virtual clock moves by clock_step() alone.
  explicit Vm(const std::vector<std::string>& args, const std::vector<std::string>& accel = {});
  ~Vm();
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;

  // Physical memory and I/O ports; sizes 1, 2, 4, 8.
  uint64_t read(uint64_t addr, unsigned size = 8);
  void write(uint64_t addr, uint64_t value, unsigned size = 8);
  std::vector<uint8_t> read_bytes(uint64_t addr, size_t len);
  void write_bytes(uint64_t addr, const std::vector<uint8_t>& bytes);
  uint32_t in32(uint16_t port);
  void out32(uint16_t port, uint32_t value);
  // Moves the virtual clock on by ns; gives its new value.
  int64_t clock_step(int64_t ns);

  // QMP: the `return` member, or {"error": {...}}.
  nlohmann::json qmp(const std::string& command, const nlohmann::json& arguments = nlohmann::json::object());
  nlohmann::json qom_get(const std::string& id, const std::string& property);
  std::string hmp(const std::string& line);
  // Waits for an event of that name, at most 10 s.
  bool wait_event(const std::string& name);
  std::string output() const;
  // Ends QEMU by QMP; its exit status, -1 if a signal ended it.
  int quit();
  bool alive();
  pid_t pid() const { return pid_; }  // and the thread of its main loop

  // PCI configuration through the memory-mapped window (q35) or ports 0xcf8/0xcfc (size 4 at most).
  uint64_t config(unsigned bus, unsigned slot, unsigned offset, unsigned size = 4);
  void set_config(unsigned bus, unsigned slot, unsigned offset, uint64_t value, unsigned size = 4);
  // Offset of a capability, 0 = not there.
  unsigned find_capability(unsigned bus, unsigned slot, uint8_t id);
  // Opens q35's window at kEcam, from then on used by config().
  void enable_ecam();
  void enable_ecam_again() {
    ecam_ = false;
    enable_ecam();
  }
  static uint64_t ecam_address(unsigned bus, unsigned slot, unsigned offset) {
    return kEcam + (uint64_t{bus} << 20) + (uint64_t{slot} << 15) + offset;
  }
  static constexpr uint64_t kEcam = 0xb0000000;

 private:
  std::string ask(const std::string& line);
  nlohmann::json read_qmp(int timeout_ms);

  pid_t pid_ = -1;
  int qtest_ = -1, qmp_ = -1;
  std::string qtest_in_, qmp_in_, log_;
  std::vector<nlohmann::json> events_;
  bool ecam_ = false;
};

}  // namespace hcasim::tests
#endif
