// SPDX-License-Identifier: BSD-3-Clause
// Machines with HCAs behind root ports, set up as firmware would: bus numbers, windows, BARs, MSI-X.
#ifndef HCASIM_TESTS_QEMU_DEVICE_HCA_VM_H
#define HCASIM_TESTS_QEMU_DEVICE_HCA_VM_H

#include <cstdlib>

#include "fake_api.h"
#include "vm.h"

namespace hcasim::tests {

// While it is there, machines begin in which what is freed is not what it was.
class PerturbedMemory {
 public:
  PerturbedMemory() { setenv("MALLOC_PERTURB_", "165", 1); }
  ~PerturbedMemory() { unsetenv("MALLOC_PERTURB_"); }
  PerturbedMemory(const PerturbedMemory&) = delete;
  PerturbedMemory& operator=(const PerturbedMemory&) = delete;
};

// HCA number i: id "hca<i>", bus i + 1, slot 0, root port at slot 4 + i.
class HcaVm : public Vm {
 public:
  // One HCA per entry of `hcas`, which is appended to -device ("" or ",key=value").
  explicit HcaVm(const std::vector<std::string>& hcas, const std::vector<std::string>& before = {},
                 const std::vector<std::string>& accel = {})
      : Vm(arguments(hcas, before), accel), count_(static_cast<unsigned>(hcas.size())) {
    enable_ecam();
    for (unsigned i = 0; i < count_; i++) bring_up(i);
  }

  static uint64_t bar0(unsigned i) { return 0xd0000000 + i * 0x2000000ull; }
  static uint64_t bar2(unsigned i) { return 0xe0000000 + i * 0x100000ull; }

  // Windows of the port above, BARs, memory enable and bus master: again after each reset.
  void bring_up(unsigned i) {
    unsigned port = 4 + i, bus = i + 1;
    set_config(0, port, 0x18, bus << 8 | bus << 16);
    set_config(0, port, 0x20, (bar2(i) >> 16) | (bar2(i) & 0xfff00000), 4);
    set_config(0, port, 0x24, (bar0(i) >> 16) | ((bar0(i) + 0x1ffffff) & 0xfff00000), 4);
    set_config(0, port, 0x04, 6, 2);
    restore(i);
  }
  void restore(unsigned i) {
    set_config(i + 1, 0, 0x10, bar0(i));
    set_config(i + 1, 0, 0x14, 0);
    set_config(i + 1, 0, 0x18, bar2(i));
    set_config(i + 1, 0, 0x04, 6, 2);
  }

  uint64_t reg(unsigned i, uint64_t offset, unsigned size = 8) { return read(bar0(i) + offset, size); }
  void set_reg(unsigned i, uint64_t offset, uint64_t value, unsigned size = 8) {
    write(bar0(i) + offset, value, size);
  }

  // DMA of the fake; its result.
  uint64_t dma(unsigned i, fake_action direction, uint64_t addr, uint64_t len, uint64_t go = FAKE_DMA_GO) {
    set_reg(i, FAKE_DMA_ADDR, addr);
    set_reg(i, FAKE_DMA_LEN, len);
    act(i, go, direction);
    return reg(i, FAKE_DMA_RESULT);
  }

  // `go`: FAKE_DMA_GO, FAKE_DMA_GO_NESTED, or FAKE_EVENT_DELAY for an event run by the timer.
  void act(unsigned i, uint64_t go, fake_action action) {
    if (go != FAKE_EVENT_DELAY) return set_reg(i, go, action);
    set_reg(i, FAKE_EVENT_ACTIONS, action);
    set_reg(i, FAKE_EVENT_DELAY, 100);
    clock_step(100);
  }

  unsigned capability(unsigned i, uint8_t id) { return find_capability(i + 1, 0, id); }

  // Enables MSI-X; every vector writes its number + 1 to addr + 4 * vector.
  void enable_msix(unsigned i, uint64_t addr) {
    for (unsigned v = 0; v < 64; v++) {
      write(bar2(i) + v * 16, addr + 4 * v);
      write(bar2(i) + v * 16 + 8, v + 1, 4);
      write(bar2(i) + v * 16 + 12, 0, 4);
    }
    set_config(i + 1, 0, capability(i, 0x11) + 2, 0x8000, 2);
  }

  void function_level_reset(unsigned i) {
    unsigned cap = capability(i, 0x10);
    set_config(i + 1, 0, cap + 8, config(i + 1, 0, cap + 8, 2) | 0x8000, 2);
  }

 private:
  static std::vector<std::string> arguments(const std::vector<std::string>& hcas,
                                            const std::vector<std::string>& before) {
    std::vector<std::string> args = {"-M", "q35"};
    args.insert(args.end(), before.begin(), before.end());
    for (size_t i = 0; i < hcas.size(); i++) {
      std::string n = std::to_string(i);
      args.insert(args.end(), {"-device", "pcie-root-port,id=rp" + n + ",bus=pcie.0,chassis=" + n +
                                              ",slot=" + n + ",addr=" + std::to_string(4 + i)});
      args.insert(args.end(), {"-device", "mlx5-hca,id=hca" + n + ",bus=rp" + n + hcas[i]});
    }
    return args;
  }

  unsigned count_;
};

}  // namespace hcasim::tests
#endif
