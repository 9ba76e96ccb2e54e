// SPDX-License-Identifier: BSD-3-Clause
// The card's own agents behind QP1 of the IB port: performance management (cards answer it without the
// driver), and the built-in subnet manager's subnet administration. What none of them takes goes to the
// driver's QP1.
#ifndef HCASIM_FIRMWARE_STUB_GSI_H
#define HCASIM_FIRMWARE_STUB_GSI_H

#include <cstdint>

#include <systemc>

#include "firmware-stub/mad_formats.h"
#include "firmware-stub/subnet_admin.h"
#include "model/packet/packet.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"

namespace hcasim::fw {

class Firmware;

class Gsi : public sc_core::sc_module, private MadSender {
 public:
  Gsi(const sc_core::sc_module_name& name, Firmware& fw);

  // A datagram for QP 0 or 1 of the port. True: taken.
  bool take(Time t, const Packet& packet);

  const SubnetAdmin& subnet_admin() const { return subnet_admin_; }
  SubnetAdmin& subnet_admin() { return subnet_admin_; }
  std::uint64_t performance_mads() const { return performance_mads_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, subnet_admin_, out_);
    a.lasting("performance_mads", performance_mads_);
  }

 private:
  void reply(Time t, const Packet& to, const std::uint8_t* mad) override;

  Firmware& fw_;
  SubnetAdmin subnet_admin_;
  TimedQueue<PacketRef> out_;
  std::uint64_t performance_mads_ = 0;
};

}  // namespace hcasim::fw
#endif
