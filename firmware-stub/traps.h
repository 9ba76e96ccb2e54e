// SPDX-License-Identifier: BSD-3-Clause
// Traps to the subnet manager (IBTA 13.4.8, 14.2.5.1, 14.3): the port's capability mask or the node's
// description has changed. Sent from QP0, again and again until it is repressed, a few times at most.
#ifndef HCASIM_FIRMWARE_STUB_TRAPS_H
#define HCASIM_FIRMWARE_STUB_TRAPS_H

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
  void repress() { left_ = 0; }
  std::uint64_t sent() const { return sent_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, due_, left_, description_);
    a.lasting("serial", serial_);  // a transaction ID on the wire: none comes twice
    a.lasting("sent", sent_);
  }

 private:
  void raise(bool description);
  void send(Time t);

  Device& device_;
  const PortAgent& agent_;
  TimedQueue<std::uint64_t> due_;  // serial numbers of what is to be sent
  std::uint64_t serial_ = 0, sent_ = 0;
  unsigned left_ = 0;  // times that it is sent yet
  bool description_ = false;
};

}  // namespace hcasim::fw
#endif
