// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/cards.h"

#include <algorithm>
#include <string>

#include "driver/timing/eswitch.h"

namespace hcasim::timing {

using namespace bare;

namespace {

constexpr std::size_t kSpare = std::size_t{512} << 20;

std::uint64_t mac_of_virtual(std::size_t card) { return 0x020000000010 + card; }

// As the physical function's driver does it: the first virtual one may start; on Ethernet it has an address.
void start_virtual(Device& physical, std::size_t card) {
  if (physical.ethernet()) {
    const std::uint64_t mac = mac_of_virtual(card);
    using In = prm::modify_nic_vport_context_in;
    using Mac = In::nic_vport_context::permanent_address;
    Mailbox in(prm::op::MODIFY_NIC_VPORT_CONTEXT, In::bytes);
    in.set<In::other_vport>(1).set<In::vport_number>(1).set<In::field_select::permanent_address>(1);
    in.set<Mac::mac_addr_47_32>(mac >> 32).set<Mac::mac_addr_31_0>(mac & 0xffffffff);
    physical.exec(in).must();
  }
  Mailbox in(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes);
  physical.exec(in.set<prm::enable_hca_in::function_id>(1)).must();
}

}  // namespace

Cards::Cards(const Setup& s, std::size_t memory) {
  const std::size_t hcas = s.fabric == Fabric::kLoopback ? 1 : s.fabric == Fabric::kCable ? 2 : s.senders + 1;
  machine_ = std::make_unique<Machine>(kSpare + hcas * (std::size_t{s.virtuals ? 16u : 8u} << 20) + memory);
  for (std::size_t i = 0; i < hcas; ++i) {
    // Each event at its own time, unless set otherwise.
    std::string options = "name=end" + std::to_string(i) + ",bf=on,link=" + (s.ethernet ? "eth" : "ib") +
                          ",profile=" + s.profile + ",engine.batch_window_ns=0";
    if (s.fabric == Fabric::kCable && i == 0) options += ",cable=end1";
    if (s.fabric == Fabric::kSwitch) options += ",switch=fabric";
    if (s.virtuals) options += ",vfs=1";
    for (const std::string& p : s.parameters) options += "," + p;
    try {
      machine_->add_hca(options);
    } catch (const BareError& e) {
      const std::string text = e.what(), before = "\"): ";
      const std::size_t at = text.find(before);
      throw SetupError(at == std::string::npos ? text : text.substr(at + before.size()));
    }
  }
  machine_->start();
  DeviceOptions o;
  o.wait_active = false;  // a cable has carrier only when both ends exist
  for (std::size_t i = 0; i < hcas; ++i) {
    devices_.push_back(std::make_unique<Device>(machine_->function(i), o));
    devices_.back()->probe();
  }
  const auto up = [&] {
    return std::all_of(devices_.begin(), devices_.end(), [](const auto& d) { return d->port_state() == 4; });
  };
  if (!machine_->run_until(up, 20'000'000'000, 2000)) throw BareError("a port does not come up");
  if (s.virtuals) {
    for (std::size_t i = 0; i < hcas; ++i) {
      start_virtual(*devices_[i], i);
      make_eswitch(*devices_[i], s.eswitch, mac_of_virtual(i));
      devices_.push_back(std::make_unique<Device>(machine_->add_virtual(machine_->function(i), 1), o));
      devices_.back()->probe();
      if (devices_.back()->port_state() != 4)
        throw BareError("the port of a virtual function does not come up");
    }
  }
  first_ = s.virtuals ? hcas : 0;
  lone_ = hcas == 1;
}

// Virtual functions first, and each is stopped by its physical one, as drivers are removed.
Cards::~Cards() {
  for (std::size_t i = devices_.size(); i-- > first_ && first_ != 0;) {
    devices_.pop_back();
    Mailbox in(prm::op::DISABLE_HCA, prm::disable_hca_in::bytes);
    try {
      devices_[i - first_]->exec(in.set<prm::disable_hca_in::function_id>(1));
    } catch (const BareError&) {  // a card that answers no more is what the measurement has failed of
    }
  }
}

}  // namespace hcasim::timing
