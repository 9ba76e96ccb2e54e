// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/traps.h"

#include <cstring>

#include "firmware-stub/mad_formats.h"
#include "firmware-stub/port_agent.h"
#include "model/device.h"

namespace hcasim::fw {

namespace {
constexpr unsigned kTimes = 5;
constexpr Time kInterval = kSecond;
constexpr std::uint16_t kLocalChange = 144;
}  // namespace

Traps::Traps(const sc_core::sc_module_name& name, Device& device, const PortAgent& agent)
    : sc_module(name),
      device_(device),
      agent_(agent),
      due_(
          "due",
          [this](Time due, std::uint64_t& serial) {
            if (serial == serial_) send(due);
          },
          device.faults()) {}

void Traps::capabilities_changed() { raise(false); }
void Traps::description_changed() { raise(true); }

void Traps::raise(bool description) {
  // The built-in subnet manager knows; without one there is nobody to tell.
  if (agent_.built_in_sm() || device_.port().sm_lid == 0 || device_.port().link() != LinkType::kIb) return;
  description_ = description;
  left_ = kTimes;
  due_.push(sim_now() + device_.profile().firmware.command, ++serial_);
}

void Traps::send(Time t) {
  const Port& port = device_.port();
  if (left_ == 0 || port.sm_lid == 0) return;
  --left_;
  PacketRef packet = PacketPool::make();
  packet->vl15 = true;
  packet->slid = port.lid();
  packet->dlid = port.sm_lid;
  packet->sl = port.sm_sl;
  packet->opcode = static_cast<std::uint8_t>(prm::BthOp::kSendOnly) | prm::bth::kUd;
  packet->payload_len = kMadBytes;
  std::uint8_t* mad = packet->data();
  std::memset(mad, 0, kMadBytes);
  MadHeader header{};
  header.base_version = header.class_version = 1;
  header.mgmt_class = kClassSubnLid;
  header.method = kMethodTrap;
  header.tid = serial_;
  header.attr_id = kAttrNotice;
  std::memcpy(mad, &header, sizeof header);
  LocalChangeNotice notice{};
  notice.type = LocalChangeNotice::kGeneric | LocalChangeNotice::kInformational;
  notice.producer[2] = NodeInfo::kChannelAdapter;
  notice.number = kLocalChange;
  notice.issuer_lid = notice.lid = port.lid();
  notice.local_changes = description_ ? 1 : 0;
  notice.capability_mask = agent_.cap_mask();
  notice.changes = description_ ? LocalChangeNotice::kDescription : 0;
  std::memcpy(mad + kMadData, &notice, sizeof notice);
  device_.port().transmit(t, std::move(packet));
  ++sent_;
  if (left_ != 0) due_.push(t + kInterval, serial_);
}

}  // namespace hcasim::fw
