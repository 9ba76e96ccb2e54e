// SPDX-License-Identifier: BSD-3-Clause
// What is inside of an HcaModule: hardware and firmware, their host port, and the inbox in which everything
// that comes from outside waits for a turn of its own.
#ifndef HCASIM_CARD_SC_INNER_H
#define HCASIM_CARD_SC_INNER_H

#include <array>
#include <deque>
#include <memory>
#include <set>
#include <string>

#include "card/api/parts.h"
#include "card/pci/config_space.h"
#include "card/sc/hca_module.h"
#include "card/sc/vcd.h"
#include "firmware-stub/card_firmware.h"
#include "model/pcie/tlm_host_port.h"
#include "model/port/wire.h"
#include "model/timed_queue.h"
#include "traces/pcapng.h"

namespace hcasim::sc {

using pci::ConfigSpace;

class HcaModule::Inner final : public WireIf, private Wire, private FaultSink {
 public:
  static constexpr unsigned kMostBytes = 256;  // of a write to a BAR

  Inner(HcaModule& outer, api::Parts parts, const HcaConfig& config);

  // ---- from the platform, in its own processes ----
  // A posted write, performed at t. False: there is nothing at this address.
  bool write(Time t, std::uint64_t address, const std::uint8_t* bytes, unsigned len);
  bool read(std::uint64_t address, std::uint8_t* bytes, unsigned len);
  std::uint32_t config_read(unsigned offset, unsigned len);
  // The same without effect: registers of the vendor specific capability read as 0.
  // As read(), for debuggers: nothing comes of it.
  bool peek(std::uint64_t address, std::uint8_t* bytes, unsigned len);
  std::uint32_t config_peek(unsigned offset, unsigned len) const;
  void config_write(unsigned offset, std::uint32_t value, unsigned len);
  // Until the writes so far have been performed, unless the caller cannot wait.
  void wait_for_writes();
  void hold_in_reset(bool on);
  Time read_latency() const { return parts_.profile.pcie.mmio_latency; }

  void frame(const WireFrame& frame, const sc_core::sc_time& delay) override;
  void carrier(bool up) override;
  Station station() const override;

  // Elaboration is done: what is bound, who is at the far end.
  void connect();
  void meet_peer();

  void trace(sc_core::sc_trace_file* file);
  std::uint64_t counter(const std::string& name) const;
  std::string statistics() const;

 private:
  struct Item {
    enum Kind : std::uint8_t { kRegisters, kMsixTable, kGateway, kReset, kInterrupts, kCarrier } kind;
    bool up = false, boots = false;  // boots: a reset, with which the firmware starts anew
    unsigned len = 0;
    unsigned resets = 0;  // of the host's: how many came before it
    std::uint64_t offset = 0;
    std::array<std::uint8_t, kMostBytes> bytes;
  };
  struct Counter {
    const char* name;
    std::uint64_t value;
  };
  void put(Time t, const Item& item);
  void perform(Item& item);
  void reset_now(bool boots);
  void signal(unsigned vector);
  void send(const ConfigSpace::Message& message);
  void send_unmasked();
  void transmit(Time t, const PacketRef& packet) override;
  void model_fault(const char* where, const char* what) noexcept override { model_.model_fault(where, what); }
  void admin_changed();
  void pcie_error(unsigned what, std::uint32_t bit, const char* name);
  void cable(bool in);
  void follow_carrier();
  void hold(bool& why, bool on);
  bool held() const { return in_reset_ || pulled_; }
  void log(int level, const std::string& line);
  void sample();
  std::vector<Counter> counters() const;

  HcaModule& outer_;
  api::Parts parts_;
  TlmHostPort host_;
  mutable Device model_;
  mutable fw::CardFirmware firmware_;
  ConfigSpace config_;
  TimedQueue<Item> inbox_;
  std::multiset<Time> to_come_;             // when what is in the inbox is due
  unsigned readers_ = 0;                    // processes that wait for it
  unsigned resets_ = 0;                     // that have come into the inbox
  bool in_reset_ = false, pulled_ = false;  // by the reset signal; by a fault: the card is out of its slot
  bool cable_in_ = true, peer_up_ = true;   // a fault may take the cable out; what the far end says
  bool wired_ = false, watched_ = false;
  sc_core::sc_event began_;  // an item of the inbox, while a reader waits
  Vcd vcd_;
  std::vector<std::uint8_t> frame_;
  std::shared_ptr<traces::Capture> capture_;  // null: none
};

}  // namespace hcasim::sc
#endif
