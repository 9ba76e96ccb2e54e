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
constexpr std::uint16_t kLocalChange = 144, kWrongKey = 256;
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

void Traps::capabilities_changed() { raise(What::kCapabilities); }
void Traps::description_changed() { raise(What::kDescription); }

void Traps::wrong_key(const std::uint8_t* smp, std::uint16_t from) {
  // Of a directed route: IBTA 14.2.1.2.
  constexpr std::size_t kAtHops = 7, kAtSlid = 32, kAtReturnPath = 192;
  const auto header = load<MadHeader>(smp);
  WrongKeyNotice notice{};
  static_assert(sizeof notice == sizeof wrong_key_);
  notice.type = WrongKeyNotice::kGeneric | WrongKeyNotice::kSecurity;
  notice.producer[2] = NodeInfo::kChannelAdapter;
  notice.number = kWrongKey;
  notice.lid = from;
  notice.method = header.method;
  notice.attr_id = header.attr_id;
  notice.attr_mod = header.attr_mod;
  notice.m_key = load<be64>(smp + kMadKey);
  if (header.mgmt_class == kClassSubnDirected) {
    const unsigned hops = smp[kAtHops] & 0x3fu;
    notice.dr_slid = load<be16>(smp + kAtSlid);
    notice.dr_hops = static_cast<std::uint8_t>(
        WrongKeyNotice::kDirected | hops | (hops >= sizeof notice.dr_return_path ? WrongKeyNotice::kCut : 0));
    std::memcpy(notice.dr_return_path, smp + kAtReturnPath, sizeof notice.dr_return_path);
  }
  std::memcpy(wrong_key_.data(), &notice, sizeof notice);
  raise(What::kWrongKey);
}

void Traps::raise(What what) {
  // The built-in subnet manager knows; without one there is nobody to tell.
  if (agent_.built_in_sm() || device_.port().sm_lid == 0 || device_.port().link() != LinkType::kIb) return;
  what_ = what;
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
  if (what_ == What::kWrongKey) {
    auto notice = load<WrongKeyNotice>(wrong_key_.data());
    notice.issuer_lid = port.lid();
    std::memcpy(mad + kMadData, &notice, sizeof notice);
  } else {
    put_change(mad + kMadData);
  }
  device_.port().transmit(t, std::move(packet));
  ++sent_;
  if (left_ != 0) due_.push(t + kInterval, serial_);
}

void Traps::put_change(std::uint8_t* data) const {
  const bool description = what_ == What::kDescription;
  LocalChangeNotice notice{};
  notice.type = LocalChangeNotice::kGeneric | LocalChangeNotice::kInformational;
  notice.producer[2] = NodeInfo::kChannelAdapter;
  notice.number = kLocalChange;
  notice.issuer_lid = notice.lid = device_.port().lid();
  notice.local_changes = description ? 1 : 0;
  notice.capability_mask = agent_.cap_mask();
  notice.changes = description ? LocalChangeNotice::kDescription : 0;
  std::memcpy(data, &notice, sizeof notice);
}

}  // namespace hcasim::fw
