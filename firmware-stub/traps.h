// SPDX-License-Identifier: BSD-3-Clause
// Traps to the subnet manager (IBTA 13.4.8, 14.2.5.1, 14.3): the port's capability mask or the node's
// description has changed, or somebody has come with a wrong M_Key. Sent from QP0, again and again until it
// is repressed, a few times at most, and no two of them within PortInfo:SubnetTimeOut (13.4.9).
#ifndef HCASIM_FIRMWARE_STUB_TRAPS_H
#define HCASIM_FIRMWARE_STUB_TRAPS_H

#include <array>
#include <cstdint>
#include <systemc>

#include "model/state/fields.h"
#include "model/timed_queue.h"

namespace hcasim {
class FaultSink;
class Port;
}  // namespace hcasim

namespace hcasim::fw {

class PortAgent;

class Traps : public sc_core::sc_module {
 public:
  // delay: from what has happened to the first trap that tells it.
  Traps(const sc_core::sc_module_name& name, Port& port, const PortAgent& agent, Time delay,
        FaultSink& faults);

  void capabilities_changed();
  void description_changed();
  // An SMP (kMadBytes) from this LID has not the port's M_Key.
  void wrong_key(const std::uint8_t* smp, std::uint16_t from);
  // The subnet manager has the trap of this transaction ID.
  void repress(std::uint64_t tid);
  std::uint64_t sent() const { return sent_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, due_);
    if constexpr (Archive::kLoads) {
      if (a.version() < 14) {  // one for all kinds: it is not sent again
        Pending before;
        What what{};
        a("left", before.left);
        a("what", what);
      }
    }
    HCASIM_FIELDS(a, wrong_key_);
    HCASIM_FIELDS_SINCE(14, a, pending_, not_before_);
    a.lasting("serial", serial_);  // a transaction ID on the wire: none comes twice
    a.lasting("sent", sent_);
  }

 private:
  enum class What : std::uint8_t { kCapabilities, kDescription, kWrongKey, kCount };
  // Of each kind the latest.
  struct Pending {
    std::uint64_t tid = 0;
    unsigned left = 0;    // times that it is sent yet
    unsigned queued = 0;  // times that it is in due_: at most twice, as one may come before its repetition

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, tid, left, queued);
      if constexpr (Archive::kLoads) a.check(left <= kTimes && queued <= 2, "no trap is sent so often");
    }
  };
  static constexpr unsigned kTimes = 5;
  void raise(What what);
  void queue(Time due, What what);
  void come(Time due, What what);
  void send(Time t, What what);
  void put_change(std::uint8_t* data, What what) const;
  Time interval() const;

  Port& port_;
  const PortAgent& agent_;
  const Time delay_;
  TimedQueue<std::uint64_t> due_;  // kinds of what is to be sent
  std::uint64_t serial_ = 0, sent_ = 0;
  std::array<Pending, static_cast<std::size_t>(What::kCount)> pending_{};
  Time not_before_ = 0;                       // the next leaves no earlier
  std::array<std::uint8_t, 64> wrong_key_{};  // WrongKeyNotice, what of it does not depend on the port
};

}  // namespace hcasim::fw
#endif
