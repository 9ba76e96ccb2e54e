// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/subnet_admin.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "firmware-stub/port_agent.h"
#include "model/device.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kIpoibQkey = 0x0b1b;
constexpr std::uint32_t kHopsWithGrh =
    1;                                  // PathRecord.hop_limit: a GRH is needed, though no router is passed
constexpr std::uint8_t kPathLife = 16;  // 4.096 us * 2^16: a quarter of a second
constexpr std::uint16_t kFirstMlid = 0xc000;
constexpr std::size_t kMostGroups = 4096, kMostTransfers = 16, kMostRecords = 16384;
constexpr std::uint8_t kValue = 0x3f;  // of a byte with a selector
// RFC 4391: the broadcast group of the default partition, scope link-local.
constexpr Gid kIpoibBroadcast{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};

Gid gid_of(const std::uint8_t* p) {
  Gid gid;
  std::copy(p, p + gid.size(), gid.begin());
  return gid;
}

// Rates as records encode them (IBTA table 207), in 100 Mb/s.
struct Rate {
  std::uint8_t code;
  unsigned value;
};
constexpr Rate kRates[] = {{2, 25},    {5, 50},    {3, 100},   {11, 140},  {6, 200},   {15, 250},
                           {19, 280},  {4, 300},   {7, 400},   {20, 500},  {12, 560},  {8, 600},
                           {9, 800},   {16, 1000}, {13, 1120}, {10, 1200}, {14, 1680}, {17, 2000},
                           {18, 3000}, {21, 4000}, {22, 6000}, {23, 8000}};
unsigned rate_value(std::uint8_t code) {
  for (const Rate& r : kRates)
    if (r.code == code) return r.value;
  return 0;
}

unsigned lanes_of(unsigned ptys_width) {
  switch (ptys_width) {
    case 0x1:
      return 1;
    case 0x2:
      return 2;
    case 0x8:
      return 8;
    case 0x10:
      return 12;
    default:
      return 4;
  }
}

// Whether what is there is what a byte with a selector asks for.
bool suits(unsigned have, unsigned selector, unsigned wanted) {
  switch (selector) {
    case kGreater:
      return have > wanted;
    case kLess:
      return have < wanted;
    case kExactly:
      return have == wanted;
    default:
      return true;
  }
}
bool mtu_suits(std::uint8_t have, std::uint8_t asked) { return suits(have, asked >> 6, asked & kValue); }
bool rate_suits(std::uint8_t have, std::uint8_t asked) {
  return suits(rate_value(have), asked >> 6, rate_value(asked & kValue));
}

std::uint8_t exactly(std::uint8_t value) { return static_cast<std::uint8_t>(kExactly << 6 | value); }

}  // namespace

void SubnetAdmin::Answer::refuse(std::uint16_t why) {
  status = why;
  records = {};
}

template <class T>
void SubnetAdmin::Answer::add(const T& record) {
  record_bytes = (sizeof record + 7) / 8 * 8;
  const std::size_t at = records.size();
  records.resize(at + record_bytes);
  std::memcpy(records.data() + at, &record, sizeof record);
}

// ---- Datagrams ----

bool SubnetAdmin::take(Time t, const Packet& packet) {
  const Port& port = blocks_.port;
  if (!blocks_.agent.built_in_sm() || port.sm_lid == 0 || port.sm_lid != port.lid()) return false;
  Request request;
  request.header = load<SaHeader>(packet.data());
  request.data = packet.data() + sizeof(SaHeader);
  MadHeader& mad = request.header.mad;
  const bool rmpp = (request.header.rmpp_flags & SaHeader::kActive) != 0;
  if (rmpp && request.header.rmpp_type != SaHeader::kData) {
    take_ack(t, packet, request.header);
    return true;
  }
  ++requests_;
  learn_sender(packet);
  Answer answer;
  serve(request, answer);
  if (answer.status != kMadOk) ++refused_;
  const bool table = mad.method == kMethodGetTable;
  SaHeader header = request.header;
  header.mad.method =
      static_cast<std::uint8_t>((mad.method == kMethodSet ? +kMethodGet : mad.method) | kMethodResponse);
  header.mad.status = answer.status;
  header.rmpp_version = header.rmpp_type = header.rmpp_flags = header.rmpp_status = 0;
  header.segment = header.payload_or_window = 0;
  header.attribute_offset = static_cast<std::uint16_t>(answer.record_bytes / 8);
  if (!table || answer.status != kMadOk) {
    // What is refused comes back as it was asked.
    const bool ok = answer.status == kMadOk;
    send(t, packet, header, ok ? answer.records.data() : request.data, ok ? answer.records.size() : kSaData);
    return true;
  }
  const auto same = [&](const Transfer& other) { return other.is_for(packet, mad.tid); };
  answers_.erase(std::remove_if(answers_.begin(), answers_.end(), same), answers_.end());
  if (answers_.size() >= kMostTransfers) answers_.erase(answers_.begin());
  Transfer& transfer = answers_.emplace_back();
  transfer.address = packet;
  transfer.header = header;
  transfer.records = std::move(answer.records);
  transfer.sent = 0;
  send_segments(t, transfer, 1);
  return true;
}

void SubnetAdmin::send(Time t, const Packet& to, const SaHeader& header, const std::uint8_t* data,
                       std::size_t bytes) {
  std::uint8_t mad[kMadBytes]{};
  std::memcpy(mad, &header, sizeof header);
  if (bytes != 0) std::memcpy(mad + sizeof header, data, std::min(bytes, kSaData));
  blocks_.sender.reply(t, to, mad);
}

void SubnetAdmin::send_segments(Time t, Transfer& transfer, std::uint32_t window) {
  const std::size_t size = transfer.records.size();
  const auto segments = static_cast<std::uint32_t>(std::max<std::size_t>(1, (size + kSaData - 1) / kSaData));
  while (transfer.sent < std::min(window, segments)) {
    const std::uint32_t number = ++transfer.sent;
    const std::size_t from = (number - 1) * kSaData, bytes = std::min(kSaData, size - from);
    SaHeader header = transfer.header;
    const bool first = number == 1, last = number == segments;
    header.rmpp_version = 1;
    header.rmpp_type = SaHeader::kData;
    header.rmpp_flags = static_cast<std::uint8_t>(SaHeader::kActive | (first ? SaHeader::kFirst : 0) |
                                                  (last ? SaHeader::kLast : 0));
    header.segment = number;
    // The first one tells the whole length, the last one its own.
    if (last)
      header.payload_or_window = static_cast<std::uint32_t>(kSaHead + bytes);
    else if (first)
      header.payload_or_window = static_cast<std::uint32_t>(segments * kSaHead + size);
    send(t, transfer.address, header, transfer.records.data() + from, bytes);
  }
}

void SubnetAdmin::take_ack(Time t, const Packet& packet, const SaHeader& header) {
  const auto it = std::find_if(answers_.begin(), answers_.end(),
                               [&](const Transfer& t) { return t.is_for(packet, header.mad.tid); });
  if (it == answers_.end()) return;
  Transfer& transfer = *it;
  const std::uint32_t have = header.segment;
  const bool whole = have == transfer.sent && std::size_t{have} * kSaData >= transfer.records.size();
  if (header.rmpp_type != SaHeader::kAck || have > transfer.sent || whole) {
    answers_.erase(it);
    return;
  }
  send_segments(t, transfer, header.payload_or_window);
}

// ---- Requests ----

void SubnetAdmin::serve(const Request& request, Answer& answer) {
  const MadHeader& mad = request.header.mad;
  const bool get = mad.method == kMethodGet, table = mad.method == kMethodGetTable;
  if (mad.class_version != kSaClassVersion) {
    answer.status = kMadBadClass;
    return;
  }
  if (!get && !table && mad.method != kMethodSet && mad.method != kMethodDelete) {
    answer.status = kMadBadMethod;
    return;
  }
  if (groups_.count(kIpoibBroadcast) == 0) add_broadcast_group();
  const std::uint16_t attribute = mad.attr_id;
  if (attribute == kAttrClassPortInfo && get) {
    ClassPortInfo info{};
    info.base_version = 1;
    info.class_version = kSaClassVersion;
    info.capability_mask = ClassPortInfo::kSaMulticast;
    info.resp_time = ClassPortInfo::kSaSendOnlyFullMember << ClassPortInfo::kMask2Shift | kPathLife;
    answer.add(info);
  } else if (attribute == kAttrPathRecord && (get || table)) {
    paths(request, answer);
  } else if (attribute == kAttrMcMemberRecord) {
    if (get || table)
      list_groups(request, answer);
    else if (mad.method == kMethodSet)
      join(request, answer);
    else
      leave(request, answer);
  } else {
    answer.status = kMadBadAttribute;
  }
  if (get && answer.status == kMadOk) {
    if (answer.records.empty()) answer.status = kSaNoRecords;
    if (answer.records.size() > answer.record_bytes) answer.status = kSaTooManyRecords;
  }
}

// A virtual function of another card: there is a GRH in its requests, as its LID is its port's.
void SubnetAdmin::learn_sender(const Packet& packet) {
  const Gid& own = blocks_.vport.gids.at(0);
  if (packet.has_grh && std::equal(own.begin(), own.begin() + 8, packet.sgid.begin()))
    blocks_.agent.learn({prm::load64(packet.sgid.data() + 8), packet.slid});
}

std::vector<SubnetAdmin::Node> SubnetAdmin::nodes() const {
  const Port& port = blocks_.port;
  const Vport& vport = blocks_.vport;
  std::vector<Node> list{{vport.gids.at(0), port.lid()}};
  blocks_.vports.for_each([&](const Vport& other) {
    if (&other != &vport && other.guid != 0) list.push_back({other.gids.at(0), port.lid(), true});
  });
  std::vector<bool> taken(std::size_t{1} << 16);  // LIDs
  taken[port.lid()] = true;
  for (const PortAgent::Peer& p : blocks_.agent.peers()) {
    if (p.lid == 0) continue;
    Node peer{vport.gids.at(0), p.lid};
    peer.shares_lid = taken[p.lid];
    taken[p.lid] = true;
    prm::store64(peer.gid.data() + 8, p.guid);
    list.push_back(peer);
  }
  return list;
}

void SubnetAdmin::paths(const Request& request, Answer& answer) const {
  using R = PathRecord;
  const auto wish = load<R>(request.data);
  if (request.asks(R::kDgid) && wish.dgid[0] == 0xff) {
    group_paths(request, answer);
    return;
  }
  if (request.asks(R::kPkey) && !blocks_.vport.pkey_valid(wish.pkey)) return;
  if (request.asks(R::kSl) && (wish.qos_sl & 0xf) != 0) return;
  // A path may be used below what it could do.
  std::uint8_t path_mtu = mtu(), path_rate = rate();
  if (request.asks(R::kMtu | R::kMtuSelector)) {
    const std::uint8_t value = wish.mtu & kValue, selector = wish.mtu >> 6;
    if (selector == kExactly && value != 0 && value < path_mtu) path_mtu = value;
    if (selector == kLess && value > 1 && value <= path_mtu) path_mtu = value - 1;
    if (!mtu_suits(path_mtu, wish.mtu)) return;
  }
  if (request.asks(R::kRate | R::kRateSelector)) {
    const std::uint8_t value = wish.rate & kValue, selector = wish.rate >> 6;
    if (selector == kExactly && rate_value(value) != 0 && rate_value(value) < rate_value(path_rate))
      path_rate = value;
    if (!rate_suits(path_rate, wish.rate)) return;
  }
  if (request.asks(R::kLife | R::kLifeSelector) && !suits(kPathLife, wish.life >> 6, wish.life & kValue))
    return;
  const std::vector<Node> list = nodes();
  const auto matches = [&](const Node& n, bool source) {
    if (request.asks(source ? R::kSgid : R::kDgid) && n.gid != gid_of(source ? wish.sgid : wish.dgid))
      return false;
    return !request.asks(source ? R::kSlid : R::kDlid) || n.lid == (source ? wish.slid : wish.dlid);
  };
  std::vector<Node> targets;
  std::copy_if(list.begin(), list.end(), std::back_inserter(targets),
               [&](const Node& n) { return matches(n, false); });
  const bool get = request.header.mad.method == kMethodGet;
  for (const Node& from : list) {
    if (!matches(from, true)) continue;
    for (const Node& to : targets) {
      PathRecord path{};
      std::copy(to.gid.begin(), to.gid.end(), path.dgid);
      std::copy(from.gid.begin(), from.gid.end(), path.sgid);
      path.dlid = to.lid;
      path.slid = from.lid;
      path.tclass = wish.tclass;
      path.reversible_count = 0x80;
      path.pkey = kDefaultPkey;
      path.mtu = exactly(path_mtu);
      path.rate = exactly(path_rate);
      path.life = exactly(kPathLife);
      if (from.shares_lid || to.shares_lid) path.flow_hop = kHopsWithGrh;
      answer.add(path);
      if (get && (answer.count() == 2 || (request.asks(R::kDgid) && request.asks(R::kSgid)))) return;
      if (answer.count() > kMostRecords) return answer.refuse(kSaNoResources);
    }
  }
}

// To a group: it is sent to with its own parameters.
void SubnetAdmin::group_paths(const Request& request, Answer& answer) const {
  using R = PathRecord;
  const auto wish = load<R>(request.data);
  const auto it = groups_.find(gid_of(wish.dgid));
  if (it == groups_.end()) return;
  const Group& group = it->second;
  for (const Node& from : nodes()) {
    if (request.asks(R::kSgid) && from.gid != gid_of(wish.sgid)) continue;
    if (request.asks(R::kSlid) && from.lid != wish.slid) continue;
    PathRecord path{};
    std::copy(wish.dgid, wish.dgid + sizeof wish.dgid, path.dgid);
    std::copy(from.gid.begin(), from.gid.end(), path.sgid);
    path.dlid = group.mlid;
    path.slid = from.lid;
    path.flow_hop = group.sl_flow_hop & 0x0fffffff;
    path.tclass = group.tclass;
    path.pkey = group.pkey;
    path.qos_sl = static_cast<std::uint16_t>(group.sl_flow_hop >> 28);
    path.mtu = exactly(group.mtu);
    path.rate = exactly(group.rate);
    path.life = exactly(group.life);
    answer.add(path);
  }
}

// ---- Multicast groups (15.2.5.17) ----

McMemberRecord SubnetAdmin::record_of(const Gid& mgid, const Group& group) {
  McMemberRecord r{};
  std::copy(mgid.begin(), mgid.end(), r.mgid);
  r.qkey = group.qkey;
  r.mlid = group.mlid;
  r.mtu = exactly(group.mtu);
  r.tclass = group.tclass;
  r.pkey = group.pkey;
  r.rate = exactly(group.rate);
  r.life = exactly(group.life);
  r.sl_flow_hop = group.sl_flow_hop;
  r.scope_join = static_cast<std::uint8_t>(mgid[1] << 4);
  return r;
}

void SubnetAdmin::add_broadcast_group() {
  Group g;
  g.qkey = kIpoibQkey;
  g.mlid = free_mlid();
  g.pkey = kDefaultPkey;
  g.mtu = mtu();
  g.rate = rate();
  g.life = kPathLife;
  g.permanent = true;
  groups_[kIpoibBroadcast] = std::move(g);
}

std::uint16_t SubnetAdmin::free_mlid() const {
  std::vector<bool> used(kMostGroups);
  for (const auto& [mgid, group] : groups_) used.at(group.mlid - kFirstMlid) = true;
  const auto at = std::find(used.begin(), used.end(), false);
  return static_cast<std::uint16_t>(kFirstMlid + (at - used.begin()));
}

SubnetAdmin::Groups::iterator SubnetAdmin::create_group(const Request& request, const McMemberRecord& wish,
                                                        Answer& answer) {
  using R = McMemberRecord;
  const auto refuse = [&](std::uint16_t status) {
    answer.status = status;
    return groups_.end();
  };
  const std::uint8_t join = wish.scope_join & 0xf;
  if ((join & (R::kFull | R::kSendOnlyFull)) == 0) return refuse(kSaInvalid);
  if (!request.asks(R::kQkey | R::kTclass | R::kPkey | R::kSl | R::kFlow))
    return refuse(kSaInsufficientComponents);
  if (!blocks_.vport.pkey_valid(wish.pkey)) return refuse(kSaInvalid);
  if (groups_.size() >= kMostGroups) return refuse(kSaNoResources);
  Group g;
  g.mtu = mtu();
  g.rate = rate();
  g.life = kPathLife;
  if (request.asks(R::kMtu | R::kMtuSelector)) {
    if (wish.mtu >> 6 == kExactly && (wish.mtu & kValue) != 0 && (wish.mtu & kValue) < g.mtu)
      g.mtu = wish.mtu & kValue;
    if (!mtu_suits(g.mtu, wish.mtu)) return refuse(kSaInvalid);
  }
  if (request.asks(R::kRate | R::kRateSelector)) {
    const std::uint8_t value = wish.rate & kValue;
    if (wish.rate >> 6 == kExactly && rate_value(value) != 0 && rate_value(value) < rate_value(g.rate))
      g.rate = value;
    if (!rate_suits(g.rate, wish.rate)) return refuse(kSaInvalid);
  }
  Gid mgid = gid_of(wish.mgid);
  if (!request.asks(R::kMgid) || mgid == Gid{}) {
    // One of our making: transient, of the scope asked for (link-local if none), with the subnet's prefix in
    // it.
    const std::uint8_t scope = request.asks(R::kScope) ? wish.scope_join >> 4 : 2;
    mgid = {0xff, static_cast<std::uint8_t>(0x10 | scope), 0xa0, 0x1b};
    prm::store64(mgid.data() + 8, ++made_mgids_);
    std::copy_n(blocks_.vport.gids.at(0).begin(), 4, mgid.begin() + 4);
  }
  if (mgid[0] != 0xff) return refuse(kSaInvalid);
  g.qkey = wish.qkey;
  g.pkey = wish.pkey;
  g.tclass = wish.tclass;
  g.sl_flow_hop = wish.sl_flow_hop;
  g.mlid = free_mlid();
  return groups_.emplace(mgid, std::move(g)).first;
}

void SubnetAdmin::join(const Request& request, Answer& answer) {
  using R = McMemberRecord;
  const auto wish = load<R>(request.data);
  const auto refuse = [&](std::uint16_t status) { answer.status = status; };
  const std::uint8_t state = wish.scope_join & 0xf;
  if (!request.asks(R::kPortGid | R::kJoinState)) return refuse(kSaInsufficientComponents);
  if (state == 0) return refuse(kSaInvalid);
  const Gid member = gid_of(wish.port_gid);
  const std::vector<Node> list = nodes();
  if (std::none_of(list.begin(), list.end(), [&](const Node& n) { return n.gid == member; }))
    return refuse(kSaInvalidGid);
  auto it = request.asks(R::kMgid) ? groups_.find(gid_of(wish.mgid)) : groups_.end();
  if (it == groups_.end()) {
    it = create_group(request, wish, answer);
    if (it == groups_.end()) return;
  } else {
    const Group& g = it->second;
    const std::uint32_t sl_flow_hop = wish.sl_flow_hop, differ = sl_flow_hop ^ g.sl_flow_hop;
    const bool same = (!request.asks(R::kQkey) || wish.qkey == g.qkey) &&
                      (!request.asks(R::kPkey) || (wish.pkey & kPkeyBase) == (g.pkey & kPkeyBase)) &&
                      (!request.asks(R::kTclass) || wish.tclass == g.tclass) &&
                      (!request.asks(R::kSl) || differ >> 28 == 0) &&
                      (!request.asks(R::kFlow) || (differ >> 8 & 0xfffff) == 0) &&
                      (!request.asks(R::kMlid) || wish.mlid == g.mlid) &&
                      (!request.asks(R::kMtu | R::kMtuSelector) || mtu_suits(g.mtu, wish.mtu)) &&
                      (!request.asks(R::kRate | R::kRateSelector) || rate_suits(g.rate, wish.rate));
    if (!same) return refuse(kSaInvalid);
  }
  std::uint8_t& joined = it->second.members[member];
  joined = static_cast<std::uint8_t>(joined | state);
  McMemberRecord r = record_of(it->first, it->second);
  std::copy(member.begin(), member.end(), r.port_gid);
  r.scope_join = static_cast<std::uint8_t>(r.scope_join | joined);
  answer.add(r);
}

void SubnetAdmin::leave(const Request& request, Answer& answer) {
  using R = McMemberRecord;
  const auto wish = load<R>(request.data);
  if (!request.asks(R::kMgid | R::kPortGid | R::kJoinState)) {
    answer.status = kSaInsufficientComponents;
    return;
  }
  const auto it = groups_.find(gid_of(wish.mgid));
  const Gid member = gid_of(wish.port_gid);
  const std::uint8_t state = wish.scope_join & 0xf;
  const auto at =
      it == groups_.end() ? std::map<Gid, std::uint8_t>::iterator{} : it->second.members.find(member);
  if (it == groups_.end() || at == it->second.members.end() || (state & ~at->second) != 0 || state == 0) {
    answer.status = kSaInvalid;
    return;
  }
  at->second = static_cast<std::uint8_t>(at->second & ~state);
  McMemberRecord r = record_of(it->first, it->second);
  std::copy(member.begin(), member.end(), r.port_gid);
  r.scope_join = static_cast<std::uint8_t>(r.scope_join | at->second);
  answer.add(r);
  if (at->second == 0) it->second.members.erase(at);
  if (!it->second.held()) groups_.erase(it);
}

// Without a full member a group is no more.
bool SubnetAdmin::Group::held() const {
  using R = McMemberRecord;
  return permanent || std::any_of(members.begin(), members.end(), [](const auto& m) {
           return (m.second & (R::kFull | R::kSendOnlyFull)) != 0;
         });
}

void SubnetAdmin::forget(const Gid& member) {
  for (auto it = groups_.begin(); it != groups_.end();) {
    it->second.members.erase(member);
    it = it->second.held() ? std::next(it) : groups_.erase(it);
  }
}

// One record a group, without its members: only trusted requesters learn who they are.
void SubnetAdmin::list_groups(const Request& request, Answer& answer) const {
  using R = McMemberRecord;
  const auto wish = load<R>(request.data);
  for (const auto& [mgid, g] : groups_) {
    if (request.asks(R::kMgid) && mgid != gid_of(wish.mgid)) continue;
    if (request.asks(R::kMlid) && g.mlid != wish.mlid) continue;
    if (request.asks(R::kQkey) && g.qkey != wish.qkey) continue;
    if (request.asks(R::kPkey) && (g.pkey & kPkeyBase) != (wish.pkey & kPkeyBase)) continue;
    if (request.asks(R::kPortGid) && g.members.count(gid_of(wish.port_gid)) == 0) continue;
    if (request.asks(R::kMtu | R::kMtuSelector) && !mtu_suits(g.mtu, wish.mtu)) continue;
    if (request.asks(R::kRate | R::kRateSelector) && !rate_suits(g.rate, wish.rate)) continue;
    answer.add(record_of(mgid, g));
  }
}

// ---- What the link can do ----

std::uint8_t SubnetAdmin::mtu() const { return mtu_code(blocks_.agent.mtu()); }

std::uint8_t SubnetAdmin::rate() const {
  // The name of a rate is that of the lanes' sum before encoding (PTYS: one bit a speed, lanes as a number).
  const Profile::Port& port = profile_.port;
  constexpr unsigned kLane[] = {25, 50, 100, 100, 140, 250, 500, 1000};
  const unsigned speed = profile_.generation->ib_speed(port.ib_link_speed);
  unsigned lane = 0;
  for (unsigned bit = 0; bit < std::size(kLane); ++bit)
    if ((speed >> bit & 1) != 0) lane = kLane[bit];
  const unsigned have = lane * lanes_of(port.ib_link_width);
  std::uint8_t code = kRates[0].code;
  for (const Rate& r : kRates)
    if (r.value <= have) code = r.code;
  return code;
}

}  // namespace hcasim::fw
