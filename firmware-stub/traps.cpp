// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/traps.h"

#include <algorithm>
#include <cstring>

#include "firmware-stub/mad_formats.h"
#include "firmware-stub/port_agent.h"
#include "model/port/port.h"

namespace hcasim::fw {

namespace {
constexpr std::uint16_t kLocalChange = 144, kWrongKey = 256;
}  // namespace

Traps::Traps(const sc_core::sc_module_name& name, Port& port, const PortAgent& agent, Time delay,
             FaultSink& faults)
    : sc_module(name),
      port_(port),
      agent_(agent),
      delay_(delay),
      due_(
          "due",
          [this](Time due, std::uint64_t& what) {
            if (what < pending_.size()) come(due, static_cast<What>(what));
          },
          faults) {}

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
  if (agent_.built_in_sm() || port_.sm_lid == 0 || port_.link() != LinkType::kIb) return;
  Pending& pending = pending_.at(static_cast<std::size_t>(what));
  pending.left = kTimes;
  pending.tid = ++serial_;
  if (pending.queued < 2) queue(std::max(sim_now() + delay_, not_before_), what);
}

void Traps::repress(std::uint64_t tid) {
  for (Pending& pending : pending_)
    if (pending.tid == tid) pending.left = 0;
}

Time Traps::interval() const { return from_ns(4096) << agent_.subnet_timeout(); }

void Traps::queue(Time due, What what) {
  ++pending_.at(static_cast<std::size_t>(what)).queued;
  due_.push(due, static_cast<std::uint64_t>(what));
}

void Traps::come(Time due, What what) {
  Pending& pending = pending_.at(static_cast<std::size_t>(what));
  if (pending.queued == 0) return;  // of a state of before version 14
  --pending.queued;
  if (port_.sm_lid == 0) pending.left = 0;
  if (pending.left == 0) return;
  if (due < not_before_) return queue(not_before_, what);
  --pending.left;
  not_before_ = due + interval();
  send(due, what);
  // Each other kind has its turn before it comes again.
  const Time round = static_cast<Time>(pending_.size()) * interval();
  if (pending.left != 0 && pending.queued == 0) queue(due + std::max(kSecond, round), what);
}

void Traps::send(Time t, What what) {
  PacketRef packet = PacketPool::make();
  packet->vl15 = true;
  packet->slid = port_.lid();
  packet->dlid = port_.sm_lid;
  packet->sl = port_.sm_sl;
  packet->opcode = static_cast<std::uint8_t>(prm::BthOp::kSendOnly) | prm::bth::kUd;
  packet->payload_len = kMadBytes;
  std::uint8_t* mad = packet->data();
  std::memset(mad, 0, kMadBytes);
  MadHeader header{};
  header.base_version = header.class_version = 1;
  header.mgmt_class = kClassSubnLid;
  header.method = kMethodTrap;
  header.tid = pending_.at(static_cast<std::size_t>(what)).tid;
  header.attr_id = kAttrNotice;
  std::memcpy(mad, &header, sizeof header);
  if (what == What::kWrongKey) {
    auto notice = load<WrongKeyNotice>(wrong_key_.data());
    notice.issuer_lid = port_.lid();
    std::memcpy(mad + kMadData, &notice, sizeof notice);
  } else {
    put_change(mad + kMadData, what);
  }
  port_.transmit(t, std::move(packet));
  ++sent_;
}

void Traps::put_change(std::uint8_t* data, What what) const {
  const bool description = what == What::kDescription;
  LocalChangeNotice notice{};
  notice.type = LocalChangeNotice::kGeneric | LocalChangeNotice::kInformational;
  notice.producer[2] = NodeInfo::kChannelAdapter;
  notice.number = kLocalChange;
  notice.issuer_lid = notice.lid = port_.lid();
  notice.local_changes = description ? 1 : 0;
  notice.capability_mask = agent_.cap_mask();
  notice.capability_mask2 = agent_.cap_mask2();
  notice.changes = description ? LocalChangeNotice::kDescription : 0;
  std::memcpy(data, &notice, sizeof notice);
}

}  // namespace hcasim::fw
