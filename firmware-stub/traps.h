// SPDX-License-Identifier: BSD-3-Clause
// Traps to the subnet manager (IBTA 13.4.8, 14.2.5.1, 14.3): the port's capability mask or the node's
// description has changed, or somebody has come with a wrong M_Key. Sent from QP0, again and again until it
// is repressed, a few times at most.
#ifndef HCASIM_FIRMWARE_STUB_TRAPS_H
#define HCASIM_FIRMWARE_STUB_TRAPS_H

#include <array>
#include <cstdint>
#include <systemc>

#include "model/state/fields.h"
#include "model/timed_queue.h"

namespace hcasim {
class Device;
}

namespace hcasim::fw {

class PortAgent;

class Traps : public sc_core::sc_module {
 public:
  Traps(const sc_core::sc_module_name& name, Device& device, const PortAgent& agent);

  void capabilities_changed();
  void description_changed();
  // An SMP (kMadBytes) from this LID has not the port's M_Key.
  void wrong_key(const std::uint8_t* smp, std::uint16_t from);
  void repress() { left_ = 0; }
  std::uint64_t sent() const { return sent_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, due_, left_, what_, wrong_key_);
    a.lasting("serial", serial_);  // a transaction ID on the wire: none comes twice
    a.lasting("sent", sent_);
  }

 private:
  enum class What : std::uint8_t { kCapabilities, kDescription, kWrongKey };
  void raise(What what);
  void send(Time t);
  void put_change(std::uint8_t* data) const;

  Device& device_;
  const PortAgent& agent_;
  TimedQueue<std::uint64_t> due_;  // serial numbers of what is to be sent
  std::uint64_t serial_ = 0, sent_ = 0;
  unsigned left_ = 0;  // times that it is sent yet
  What what_ = What::kCapabilities;
  std::array<std::uint8_t, 64> wrong_key_{};  // WrongKeyNotice, what of it does not depend on the port
};

}  // namespace hcasim::fw
#endif
