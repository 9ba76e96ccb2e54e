// SPDX-License-Identifier: BSD-3-Clause
// A machine without a guest: memory, a clock and PCI functions that are HCAs of the model. One per process,
// as there is one SystemC kernel per process. Nothing here runs by itself: time passes in run_until() and
// advance(). In a platform of somebody else's (pcie.h) functions and time are the platform's.
#ifndef HCASIM_DRIVER_BARE_MACHINE_H
#define HCASIM_DRIVER_BARE_MACHINE_H

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "card/api/hca_api.h"
#include "driver/bare/memory.h"
#include "driver/bare/pcie.h"

namespace hcasim::bare {

// An error that no test asked for as a status.
class BareError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Machine;

// One PCI function: BAR0, MSI-X, reset.
class Function {
 public:
  // wire=host with a sink: it gets what leaves the port, and when its last bit does (ps), which may lie
  // ahead. Called while the HCA runs. Without one: take_frames().
  using FrameSink = std::function<void(const void* frame, std::size_t len, std::int64_t ps)>;
  Function(Machine& machine, const std::string& options, FrameSink sink = {});
  // How machines of this process make the functions that options describe, if not behind the C API; null.
  using Log = std::function<void(int level, const std::string& line)>;
  using Attach = std::function<std::unique_ptr<Attachment>(Machine&, const std::string& options, Log)>;
  static Attach& attach();
  Function(Machine& machine, Pcie& pcie) : machine_(machine), pcie_(&pcie) {}
  // A virtual function of a card behind the C API, by its number, from 1 on. It is on the bus from now on.
  Function(Function& physical, unsigned number);
  ~Function();
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  Machine& machine() { return machine_; }
  hca_t* handle() { return hca_; }  // null: it is not behind the C API, and has none of what needs it

  // BAR0; big-endian registers as numbers.
  std::uint8_t read8(std::uint64_t offset);
  std::uint32_t read32(std::uint64_t offset);
  void write32(std::uint64_t offset, std::uint32_t value);
  // Bytes in memory order: 1, 2, 4 or 8 in one store; a larger multiple of 8 is a write-combining burst.
  void write(std::uint64_t offset, const void* bytes, std::size_t len);

  // Interrupts: the machine calls the handler after the event that raised it, never inside a call into the
  // HCA.
  void on_interrupt(unsigned vector, std::function<void()> handler);
  // The function has signalled this vector.
  void raise(unsigned vector);
  // Calls the handlers of the vectors that were signalled; false: there were none. For clocks (pcie.h) that
  // do so in place of the machine.
  bool dispatch();
  std::uint64_t interrupts(unsigned vector) const { return interrupts_[vector]; }
  std::uint64_t interrupts() const;

  // Function level reset, and the conventional one of the card. Handlers stay.
  void reset();
  void card_reset();
  // As the driver switches ATS on or off (option ats=on), and as the IOMMU takes translations back; len 0:
  // all.
  void set_ats(bool on);
  void invalidate_translations(std::uint64_t addr, std::uint64_t len);
  // Counter of hca_counter_name(); throws BareError if there is none of that name.
  std::uint64_t counter(const std::string& name) const;
  std::uint64_t state_digest() { return hca_state_digest(hca_); }
  // Parameter of the profile in force, "SECTION.KEY", in the unit of the profile's file; throws as counter().
  double parameter(const std::string& name) const;
  // Validation rules that this function's driver has broken so far, and how often.
  std::map<std::string, std::uint64_t> rules_broken() const;
  std::string stats() { return hca_ ? hca_stats_json(hca_) : "{}"; }
  // wire=host: frames that have left the port, oldest first; to come in now (false: dropped); and whether
  // the host says it has enough.
  std::vector<std::vector<std::uint8_t>> take_frames() { return std::move(frames_); }
  bool wire_receive(const std::vector<std::uint8_t>& frame);
  // Its last bit arrives at `ps`, now or later; also from within a sink.
  bool wire_receive_at(const void* frame, std::size_t len, std::int64_t ps) {
    return hca_wire_rx_at(hca_, frame, len, ps) == 0;
  }
  void set_wire_busy(bool busy) { wire_busy_ = busy; }
  void set_carrier(bool up);

  // PCIe faults that the HCA reported to the host: enum hca_pcie_error, and the error's name.
  struct PcieError {
    int what;
    std::uint32_t bit;
    std::string name;
  };
  const std::vector<PcieError>& pcie_errors() const { return pcie_errors_; }
  // "" or why the fault was refused.
  std::string inject(const std::string& fault);

  // Observes, and may change, data that the HCA reads from memory; memory itself is unchanged.
  using DmaTamper = std::function<void(std::uint64_t bus, std::uint8_t* bytes, std::size_t len)>;
  void set_dma_tamper(DmaTamper tamper) { dma_tamper_ = std::move(tamper); }
  // Whether the HCA may read payload in place (the default) or has to copy it; how often it did.
  void set_dma_map(bool on) {
    dma_map_ = on;
    memory_changed();
  }
  std::uint64_t dma_maps() const { return dma_maps_; }
  // Memory that the HCA reads in place is about to change.
  void memory_changed() { hca_memory_changed(hca_); }

 private:
  friend class Machine;
  static hca_host_ops host_ops();
  bool poll_wire();
  void log(int level, const std::string& line);

  Machine& machine_;
  hca_t* hca_ = nullptr;
  unsigned number_ = 0;  // of this function of the card
  std::unique_ptr<Attachment> attachment_;
  Pcie* pcie_ = nullptr;  // null: the C API
  std::array<std::function<void()>, HCA_MSIX_VECTORS> handlers_;
  std::array<std::uint64_t, HCA_MSIX_VECTORS> interrupts_{};
  std::uint64_t pending_ = 0;  // vectors
  bool sockets_ = false, wire_busy_ = false;
  std::vector<std::vector<std::uint8_t>> frames_;
  FrameSink sink_;
  std::vector<PcieError> pcie_errors_;
  DmaTamper dma_tamper_;
  bool dma_map_ = true;
  std::uint64_t dma_maps_ = 0;
};

class Machine {
 public:
  explicit Machine(std::size_t memory_bytes = std::size_t{512} << 20) : memory_(memory_bytes) {}
  // In a platform that has a clock; it need not be started.
  Machine(std::size_t memory_bytes, Clock& clock) : memory_(memory_bytes), clock_(&clock) {}

  // Behind start(), too: an HCA that is plugged in (hca_create()).
  Function& add_hca(const std::string& options = "", Function::FrameSink sink = {});
  Function& add_function(Pcie& pcie);
  Function& add_virtual(Function& physical, unsigned number);
  // The function is destroyed; the numbers of those behind it change.
  void unplug(Function& function);
  void start();

  HostMemory& memory() { return memory_; }
  Function& function(std::size_t i = 0) { return *functions_.at(i); }
  std::size_t functions() const { return functions_.size(); }

  std::int64_t now() const { return clock_ ? clock_->now() : now_; }  // ns

  // The clock goes on from there: behind hca_sim_load().
  void set_now(std::int64_t now) { now_ = now; }

  // Lets time pass from event to event until pred() holds; false after timeout ns, or if no event is due any
  // more. quantum: minimum ns per step (larger is faster, and pred() is evaluated less often).
  template <class Pred>
  bool run_until(Pred pred, std::int64_t timeout = kDefaultTimeout, std::int64_t quantum = 1);
  // Lets `ns` pass.
  void advance(std::int64_t ns);
  // One step: everything due now, or the next event, up to `limit` at most. False if nothing was due until
  // then.
  bool step(std::int64_t limit, std::int64_t quantum = 1);

  // Each step serves the sockets of wires to other processes. Lets real time pass, and simulated time with
  // it, until pred() holds or `ms` are over.
  template <class Pred>
  bool wait_real(Pred pred, int ms = 10000);

  static constexpr std::int64_t kDefaultTimeout = 60'000'000'000;

  // At every so many steps all HCAs are saved and loaded again, which nobody may notice; 0: never. Throws
  // BareError if a state cannot be loaded, or is another one then. HCASIM_TEST_RELOAD: for each machine.
  void set_reload_every(unsigned steps) { reload_every_ = steps; }

  // Lines that the HCAs logged, by level.
  const std::vector<std::string>& log(int level) const { return log_.at(static_cast<std::size_t>(level)); }
  void clear_log() {
    for (auto& l : log_) l.clear();
  }
  bool echo_log = false;  // to stderr as well

 private:
  friend class Function;
  bool dispatch();
  bool platform_step(std::int64_t limit);
  void reload();
  static unsigned reloads_asked();

  HostMemory memory_;
  std::array<std::vector<std::string>, 3> log_;  // functions write to it until they are destroyed
  std::vector<std::unique_ptr<Function>> functions_;
  Clock* clock_ = nullptr;  // null: the C API's
  std::int64_t now_ = 0;
  bool dirty_ = false;  // registers were written since the HCAs ran last
  unsigned reload_every_ = reloads_asked();
  std::uint64_t steps_ = 0;
};

template <class Pred>
bool Machine::wait_real(Pred pred, int ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (!pred()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    advance(100'000);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

template <class Pred>
bool Machine::run_until(Pred pred, std::int64_t timeout, std::int64_t quantum) {
  const std::int64_t limit = now() + timeout;
  while (!pred()) {
    if (!step(limit, quantum)) return pred();
  }
  return true;
}

}  // namespace hcasim::bare
#endif
