// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/ste.h"

#include "model/steer/lookup_time.h"

namespace hcasim {

namespace {

using prm::Ste;
using prm::SteLookup;
using prm::SteModify;
using prm::SteRx;
using prm::SteTx;
using prm::SteType;

bool matches(const std::uint8_t* ste, const SteTag& tag) {
  for (unsigned i = 0; i < tag.size(); ++i)
    if ((tag[i] & ste[prm::kSteMask + i]) != ste[prm::kSteTag + i]) return false;
  return true;
}

std::uint64_t miss_address(const std::uint8_t* ste) {
  return static_cast<std::uint64_t>(prm::get<Ste::miss_39_32>(ste)) << 32 |
         static_cast<std::uint64_t>(prm::get<Ste::miss_31_6>(ste)) << 6;
}

// Base and number of entries of the table that a hit leads to.
struct NextTable {
  std::uint64_t base = 0, entries = 0;
};
NextTable next_table(const std::uint8_t* ste) {
  const std::uint64_t v = static_cast<std::uint64_t>(prm::get<Ste::next_base_39_32>(ste)) << 27 |
                          prm::get<Ste::next_base_31_5>(ste);
  NextTable t;
  t.entries = v & (~v + 1);
  t.base = (v ^ t.entries) << 5;
  return t;
}

}  // namespace

// A chain of entries asks for few lookups, mostly for the same one again and again.
struct SteWalker::Tags {
  static constexpr unsigned kLookups = 64;

  const SteeredFrame& frame;
  const SteSource& source;
  std::uint64_t made = 0;  // a bit for each lookup
  std::array<SteTag, kLookups> tags;

  // Null: there is no such lookup.
  const SteTag* get(std::uint32_t lookup) {
    if (lookup >= kLookups) return nullptr;
    const std::uint64_t bit = std::uint64_t{1} << lookup;
    if (!(made & bit) && !make_ste_tag(static_cast<SteLookup>(lookup), frame, source, tags[lookup]))
      return nullptr;
    made |= bit;
    return &tags[lookup];
  }
  void forget() { made = 0; }
};

bool SteWalker::leads_out(std::uint64_t address, bool receive, SteEnd& end) {
  const IcmTarget target = icm_target(address);
  switch (target.kind) {
    case IcmTarget::kNone:
      return false;
    case IcmTarget::kRxDrop:
    case IcmTarget::kTxDrop:
      end = {SteEnd::kDropped, target};
      break;
    case IcmTarget::kTxAllow:
      end = {receive ? SteEnd::kLost : SteEnd::kOut, target};
      break;
    case IcmTarget::kTir:
      end = {receive ? SteEnd::kOut : SteEnd::kLost, target};
      break;
    case IcmTarget::kTable:
    case IcmTarget::kSampler:
    case IcmTarget::kMeter:
    case IcmTarget::kVport:
      end = {SteEnd::kOut, target};
      break;
  }
  return true;
}

SteEnd SteWalker::walk(std::uint64_t address, bool receive, SteeredFrame& frame, const SteSource& source,
                       unsigned& work, LookupTime* time) const {
  if (format_ != SteFormat::kConnectX5) return walk_v1(address, receive, frame, source, work, time);
  Tags tags{frame, source, 0, {}};
  while (spend(work, kEntryWork)) {
    SteEnd end;
    if (leads_out(address, receive, end)) return end;
    const std::uint8_t* ste = icm_.line(address);
    if (!ste) return {};
    if (time) frame.at = time->look_up(frame.at, LookupTime::software_line(address));
    const SteTag* tag = tags.get(prm::get<Ste::lookup_type>(ste));
    if (!tag) return {};
    if (!matches(ste, *tag)) {
      address = miss_address(ste);
      continue;
    }
    if (!act(ste, receive, frame, tags, work, time)) return {};
    const NextTable next = next_table(ste);
    if (next.entries == 0) return {};
    const SteTag* key = tags.get(prm::get<Ste::next_lookup_type>(ste));
    if (!key) return {};
    address =
        next.base + std::uint64_t{kIcmLine} * ste_hash(*key, prm::get<Ste::byte_mask>(ste), next.entries);
  }
  return {};
}

bool SteWalker::act(const std::uint8_t* ste, bool receive, SteeredFrame& frame, Tags& tags, unsigned& work,
                    const LookupTime* time) const {
  const auto type = static_cast<SteType>(prm::get<Ste::entry_type>(ste));
  if (type != SteType::kModify && type != (receive ? SteType::kRx : SteType::kTx)) return false;
  const std::uint32_t counter = prm::get<Ste::counter_23_16>(ste) << 16 | prm::get<Ste::counter_15_0>(ste);
  if (counter != 0) objects_.count(counter, frame.len());
  bool ok = true;
  if (type == SteType::kTx) {
    if (prm::get<SteTx::action_type>(ste) == SteTx::kNone) return true;
    ok = spend(work, kChangeWork) && send(ste, frame);
  } else if (type == SteType::kRx) {
    if (prm::get<SteRx::flow_tag_en>(ste) != 0) frame.flow_tag = prm::get<SteRx::flow_tag>(ste);
    if (prm::get<SteRx::tunneling_action>(ste) <= SteRx::kEnable) return true;
    ok = spend(work, kChangeWork) && tunnel(ste, frame);
  } else {
    ok = spend(work, kChangeWork + prm::get<SteModify::action_count>(ste)) &&
         (!receive || tunnel(ste, frame)) && rewrite(ste, frame);
  }
  if (time) frame.at = type == SteType::kModify ? time->rewrite(frame.at) : time->reformat(frame.at);
  tags.forget();
  return ok;
}

// Receive: what takes something off.
bool SteWalker::tunnel(const std::uint8_t* ste, SteeredFrame& frame) const {
  switch (prm::get<SteRx::tunneling_action>(ste)) {
    case SteRx::kNone:
    case SteRx::kEnable:
      return true;
    case SteRx::kDecap:
      return decapsulate_l2(frame);
    case SteRx::kL3Decap: {
      // An Ethernet header for the rewriting actions of the same entry to fill in.
      std::array<std::uint8_t, kEthHeader + kVlanTag> header{};
      const bool tagged = prm::get<SteRx::action_description>(ste) != 0;
      const std::uint16_t type = frame.headers.inner_ethertype;
      const std::size_t type_at = tagged ? kEthHeader + kVlanTag - 2 : kEthHeader - 2;
      if (tagged) {
        header[12] = kTpidCvlan >> 8;
        header[13] = kTpidCvlan & 0xff;
      }
      header[type_at] = static_cast<std::uint8_t>(type >> 8);
      header[type_at + 1] = static_cast<std::uint8_t>(type);
      return decapsulate_l3(frame, header.data(), tagged ? kEthHeader + kVlanTag : kEthHeader);
    }
    case SteRx::kPopVlan:
      pop_vlan(frame);  // a frame without a tag stays as it is
      return true;
    default:
      return false;
  }
}

bool SteWalker::rewrite(const std::uint8_t* ste, SteeredFrame& frame) const {
  const std::uint64_t start =
      SwIcm::base(SwIcm::kHeaderModify) + std::uint64_t{kIcmLine} * prm::get<SteModify::action_pointer>(ste);
  const std::uint32_t count = prm::get<SteModify::action_count>(ste);
  constexpr std::uint32_t kInLine = kIcmLine / prm::SteAction::bytes;
  const std::uint8_t* line = nullptr;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i % kInLine == 0) line = icm_.line(start + std::uint64_t{i} * prm::SteAction::bytes);
    if (!line || !rewrite_header(line + i % kInLine * prm::SteAction::bytes, frame)) return false;
  }
  return true;
}

// Transmit: what puts something on.
bool SteWalker::send(const std::uint8_t* ste, SteeredFrame& frame) const {
  const std::uint32_t data = prm::get<SteTx::encap_vlan>(ste);
  const std::uint32_t action = prm::get<SteTx::action_type>(ste);
  switch (action) {
    case SteTx::kPushVlan:
      return push_vlan(frame, static_cast<std::uint16_t>(data >> 16), static_cast<std::uint16_t>(data));
    case SteTx::kEncap:
    case SteTx::kEncapL3: {
      const std::vector<std::uint8_t>* header = objects_.tunnel_header(data);
      // The size stands in six bits.
      return header != nullptr && (header->size() / 2 & 0x3f) == prm::get<SteTx::action_description>(ste) &&
             encapsulate(frame, header->data(), static_cast<std::uint32_t>(header->size()),
                         action == SteTx::kEncap ? EncapOf::kL2 : EncapOf::kL3);
    }
    default:
      return false;
  }
}

}  // namespace hcasim
