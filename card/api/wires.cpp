// SPDX-License-Identifier: BSD-3-Clause
#include "card/api/wires.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <functional>

#include "card/api/instance.h"
#include "card/replay/recording.h"
#include "model/port/run.h"
#include "model/port/traits.h"
#include "model/simulation_context.h"

namespace hcasim::api {

namespace {

constexpr Time kBusyPause = from_ns(10'000);  // between looks whether a full way out has room again
// Reading stops while more packets than that wait in the port, or runs of more bytes have come since few
// waited.
constexpr std::size_t kMostArriving = 4096, kMostRunBytes = std::size_t{32} << 20, kFewArriving = 256;
constexpr std::int64_t kFullRetry = 1'000'000;                     // ns until reading is tried again
constexpr std::uint16_t kFirstUnicast = 1, kLastUnicast = 0xbfff;  // LIDs of ports (IBTA, local identifiers)
constexpr Time kShortestLatency = from_ns(1);
constexpr std::uint64_t kNowhere = std::uint64_t{1} << 63;  // a bus address that no host's memory has
constexpr std::uint32_t kShortestRun = 256;  // bytes of payload from which on a packet is worth it

wire::Hello hello_of(const hca& h) {
  wire::Hello hello;
  const fw::Options& o = h.settings.firmware;
  hello.link = o.link == fw::Link::kEthernet ? wire::LinkLayer::kEthernet : wire::LinkLayer::kIb;
  hello.subnet_manager = o.sm;
  hello.lid = o.lid;
  hello.node_guid = h.firmware.port().node_guid();
  hello.mtu = h.model.profile().port.max_mtu;
  hello.rate = static_cast<std::uint32_t>(h.model.profile().port.rate_gbps * 1000);
  hello.wish = h.wish();
  hello.coupled = h.settings.coupled;
  hello.runs = !h.settings.coupled && !Recorder::current();
  hello.credits = h.settings.coupled && hello.link == wire::LinkLayer::kIb;
  hello.lane_room = hello.credits ? h.model.profile().port.lane_buffer : 0;
  hello.latency = h.model.profile().port.wire_latency;
  hello.name = h.settings.name;
  return hello;
}

void fill_frame(Packet& p, const void* bytes, std::size_t len) {
  p.kind = PacketKind::kEthernet;
  p.frame_len = static_cast<std::uint16_t>(len);
  std::memcpy(p.frame(), bytes, len);
}

}  // namespace

// ---- to the host ----

void HostWire::transmit(Time t, const PacketRef& packet) {
  // There is no FCS to be wrong: what is damaged is lost, unless it has a CRC of its own.
  if (packet->corrupt && packet->kind == PacketKind::kEthernet) return;
  std::size_t len = encode(*packet, frame_.data(), frame_.size());
  if (len == 0 || !carrier_ || !owner_.in_service || !(owner_.ops.wire_tx || owner_.ops.wire_tx_at)) {
    ++owner_.wire_lost;
    return;
  }
  if (len < kShortestFrame) {
    std::memset(frame_.data() + len, 0, kShortestFrame - len);
    len = kShortestFrame;
  }
  const bool more =
      owner_.ops.wire_tx_at ? owner_.wire_tx_at(frame_.data(), len, t) : owner_.wire_tx(frame_.data(), len);
  if (!more) owner_.model.port().pause(sim_now() + kBusyPause);
}

void HostWire::loaded() { owner_.follow_carrier(); }

bool HostWire::receive(const void* frame, std::size_t len, Time t) {
  Port& port = owner_.model.port();
  PacketRef packet = PacketPool::make();
  if (len == 0 || len > kMaxFrame) {
    port.drop(sim_now(), *packet, DropReason::kMalformed);
    return false;
  }
  fill_frame(*packet, frame, len);
  port.wire_receive(t, std::move(packet));
  return true;
}

// ---- to another HCA of this process ----

void CableEnd::transmit(Time t, const PacketRef& packet) {
  if (!peer_.in_service) return;
  peer_.model.port().wire_receive(t + owner_.model.profile().port.wire_latency, packet);
}

std::uint32_t CableEnd::room_of_lanes() const { return peer_.model.profile().port.lane_buffer; }

void CableEnd::make_room(Time t, unsigned lane, std::uint32_t bytes) {
  if (peer_.in_service)
    peer_.model.port().made_room(t + owner_.model.profile().port.wire_latency, lane, bytes);
}

void CableEnd::emptied() {
  if (peer_.in_service) peer_.model.port().far_end_emptied(sim_now());
}

bool CableEnd::plugged() const { return peer_.in_service; }

wire::Wish CableEnd::far_wish() const { return peer_.wish(); }

void CableEnd::set_wish(const wire::Wish&) { peer_.follow_carrier(); }

// ---- to another process ----

SocketWire::SocketWire(hca& owner, const wire::Address& address, bool coupled)
    : owner_(owner),
      coupled_(coupled),
      meets_at_(coupled ? 0 : kNever),
      own_latency_(owner.model.profile().port.wire_latency),
      far_(make_far_end(owner, *this, address, hello_of(owner))) {}

void SocketWire::transmit(Time t, const PacketRef& packet) {
  if (coupled_ && !up_) return;
  if (packet->packets > 1 || (packet->payload_len >= kShortestRun && !packet->corrupt && far_->takes_runs()))
    return transmit_run(t, *packet);
  const std::size_t most = encoded_bytes(*packet);
  std::uint8_t* room = most <= wire::kMaxFrameBytes ? far_->frame(most) : nullptr;
  if (!room) return;
  const std::size_t len = encode(*packet, room, most, Vcrc::kLeftOut);
  if (len == 0) return;
  // What is damaged in a RoCE packet its ICRC tells, under a right FCS.
  const bool roce = packet->kind == PacketKind::kRoceV1 || packet->kind == PacketKind::kRoceV2;
  sent(far_->commit(len, packet->corrupt && !roce ? wire::kFrameCorrupt : 0, t), t);
}

// Headers, and the payload beside them, which no CRC covers: memory damages nothing.
void SocketWire::transmit_run(Time t, const Packet& packet) {
  std::array<std::uint8_t, wire::kMaxRunFrame> frame;
  Packet head = packet;
  head.payload_len = 0;
  wire::Run run;
  run.packets = packet.packets;
  run.unit = packet.packets > 1 ? packet.unit : packet.payload_len;
  run.payload_len = packet.payload_len;
  run.frame_len = encode(head, frame.data(), frame.size(), Vcrc::kLeftOut);
  for (unsigned i = 0; i + 1 < run.packets; ++i)
    run.gaps[i] = static_cast<std::uint32_t>(std::clamp<Time>(t - packet.at[i], 0, UINT32_MAX));
  std::uint8_t* room = run.frame_len != 0 ? far_->run(wire::kMaxRunBytes) : nullptr;
  if (!room) return sent(FarEnd::Sent::kLost, t);
  std::size_t len = wire::put_run(room, run);
  std::memcpy(room + len, frame.data(), run.frame_len);
  len += run.frame_len;
  std::memcpy(room + len, packet.read_payload(), run.payload_len);
  sent(far_->commit_run(len + run.payload_len, t), t);
}

void SocketWire::sent(FarEnd::Sent what, Time t) {
  if (what == FarEnd::Sent::kLost) {
    ++owner_.wire_lost;
    return;
  }
  first_out_ = std::min(first_out_, t + own_latency_);
  if (what == FarEnd::Sent::kFull) owner_.model.port().pause(sim_now() + kBusyPause);
}

void SocketWire::send_credits(Time t, const wire::Credits& credits) {
  if (!tells_room_ || !up_) return;
  std::uint8_t* room = far_->frame(wire::kCreditsBytes);
  if (!room) return;
  wire::put_credits(room, credits);
  sent(far_->commit(wire::kCreditsBytes, wire::kFrameCredits, t), t);
}

void SocketWire::make_room(Time t, unsigned lane, std::uint32_t bytes) {
  send_credits(t, {static_cast<std::uint8_t>(lane), bytes});
}

void SocketWire::emptied() { send_credits(sim_now(), {}); }

// The sender has them at t.
void SocketWire::take_credits(const wire::Message& frame, Time t) {
  Port& port = owner_.model.port();
  wire::Credits credits;
  const bool all = wire::parse_credits(frame, credits) && credits.lane == wire::kAllLanes;
  if (room_of_lanes_ == 0 || frame.len != wire::kCreditsBytes ||
      (!all && (credits.lane >= LaneCredits::kLanes || credits.bytes > kMaxPayload + kMaxHeaders)))
    return port.drop(sim_now(), *PacketPool::make(), DropReason::kMalformed);
  if (!up_) return;  // of packets from before the link went down
  if (all)
    port.far_end_emptied(t);
  else
    port.made_room(t, credits.lane, credits.bytes);
}

void SocketWire::flush() {
  // Coupled ends send when they meet.
  if (coupled_) return;
  if (in_memory_.empty()) far_->free_runs();
  far_->flush();
}

// Reads no further while the port has too much to do.
void SocketWire::limit() {
  const std::size_t arriving = owner_.model.port().arriving();
  if (arriving <= kFewArriving) run_bytes_ = 0;
  full_ = !coupled_ && (arriving > kMostArriving || run_bytes_ > kMostRunBytes);
  settle();
}

void SocketWire::look(std::int64_t now, bool sleep) {
  limit();
  far_->look(now, sleep);
}

std::int64_t SocketWire::poll(std::int64_t now) {
  limit();
  const std::int64_t due = far_->poll(now);
  return full_ ? std::min(due, now + kFullRetry) : due;
}

void SocketWire::hold(bool on) {
  held_ = on;
  settle();
}

// In coupled time a stopped host holds nothing up: it reads at meetings alone, and a meeting that it has
// begun (a reset, a fault from its monitor) has to end.
void SocketWire::settle() { far_->hold((held_ && !coupled_) || full_); }

std::string SocketWire::wire_up(const wire::Hello& peer) {
  const wire::Hello own = hello_of(owner_);
  char text[160];
  if (peer.link != own.link) {
    const bool eth = own.link == wire::LinkLayer::kEthernet;
    std::snprintf(text, sizeof text, "the ends differ: link=%s and link=%s", eth ? "eth" : "ib",
                  eth ? "ib" : "eth");
    return text;
  }
  if (peer.coupled != own.coupled) {
    return std::string("the ends differ: ") + (own.coupled ? "this" : "the other") + " one's time is coupled";
  }
  // The ends meet as often as that.
  if (own.coupled && peer.latency < kShortestLatency)
    return "the other end's cable has a latency of less than 1 ns, which takes too many meetings of the ends";
  if (peer.node_guid == own.node_guid) {
    std::snprintf(text, sizeof text, "both ends have the node GUID %016" PRIx64 ": give one of them another",
                  own.node_guid);
    return text;
  }
  if (own.link == wire::LinkLayer::kIb) {
    if (peer.lid > kLastUnicast) {
      std::snprintf(text, sizeof text, "the other end wants LID %u, which is none of a port", peer.lid);
      return text;
    }
    const SubnetLids lids = assign_lids({own.node_guid, own.lid}, {peer.node_guid, peer.lid});
    if (lids.own == 0) {
      std::snprintf(text, sizeof text, "both ends want LID %u: give one of them another", own.lid);
      return text;
    }
    lids_ = lids;
    owner_.firmware.port().assign(lids.own, lids.sm, {{peer.node_guid, lids.peer}});
  }
  joined_ = true;
  peer_guid_ = peer.node_guid;
  if (own.credits && peer.credits) {
    room_of_lanes_ = peer.lane_room;
    tells_room_ = own.lane_room != 0;
    owner_.model.port().connect(this);
  }
  peer_wish_ = peer.wish;
  peer_latency_ = peer.latency;
  owner_.follow_carrier();
  return "";
}

void SocketWire::wire_down() {
  joined_ = false;
  owner_.follow_carrier();
}

// Where nobody has joined yet the port stays as it was: a machine that moves here does not see its link go
// down.
void SocketWire::loaded() {
  if (!joined_) return;
  fw::PortAgent& port = owner_.firmware.port();
  const auto& known = port.peers();
  const bool same = !known.empty() && known[0].guid == peer_guid_ && known[0].lid == lids_.peer;
  if (lids_.own != 0 && !same) port.assign(lids_.own, lids_.sm, {{peer_guid_, lids_.peer}});
  owner_.follow_carrier();
}

wire::Wish SocketWire::far_wish() const {
  if (!coupled_) return peer_wish_;
  wire::Wish wish = agreed_;
  wish.up = up_;
  return wish;
}

void SocketWire::wire_wish(const wire::Wish& wish) {
  peer_wish_ = wish;
  owner_.follow_carrier();
}

void SocketWire::wire_frame(const wire::Message& frame) {
  // Of coupled ends each frame counts, whatever becomes of it: the other one has counted it too.
  const Time t = coupled_ ? arrival(frame) : sim_now();
  if (!owner_.in_service) return;
  if ((frame.flags & wire::kFrameCredits) != 0) return take_credits(frame, t);
  Port& port = owner_.model.port();
  PacketRef packet = PacketPool::make();
  if (port.link() == LinkType::kEthernet) {
    if (frame.len > kMaxFrame) return port.drop(sim_now(), *packet, DropReason::kMalformed);
    fill_frame(*packet, frame.body, frame.len);
  } else {
    const Decoded how = decode_ib(frame.body, frame.len, *packet, Vcrc::kLeftOut);
    if (how != Decoded::kOk) {
      // It has not come to a buffer of its lane, but its sender has taken room there.
      if (const unsigned lane = frame.body[0] >> 4; lane < LaneCredits::kLanes)
        make_room(t, lane, static_cast<std::uint32_t>(frame.len + prm::kVcrcBytes));
      return port.drop(sim_now(), *packet,
                       how == Decoded::kBadCrc ? DropReason::kCorrupt : DropReason::kMalformed);
    }
  }
  if ((frame.flags & wire::kFrameCorrupt) != 0) packet->corrupt = true;
  port.wire_receive(t, std::move(packet));
}

// What the packets have in common. False: not such as come in runs.
bool SocketWire::decode_run(const wire::Run& run, Packet& packet) const {
  std::array<std::uint8_t, wire::kMaxRunFrame> frame;  // bytes that nobody can change meanwhile
  std::memcpy(frame.data(), run.frame, run.frame_len);
  if (owner_.model.port().link() == LinkType::kEthernet) {
    fill_frame(packet, frame.data(), run.frame_len);
    if (decode_roce(packet) != Decoded::kOk) return false;
    packet.frame_len = 0;
    packet.set_head(0);
  } else if (decode_ib(frame.data(), run.frame_len, packet, Vcrc::kLeftOut) != Decoded::kOk) {
    return false;
  }
  const prm::BthTraits& traits = traits_of(packet.opcode);
  if (packet.payload_len != 0 || !traits.payload) return false;
  if (run.packets == 1) return run.payload_len <= kMaxPayload;
  return may_be_run(packet.opcode) && run.unit != 0 && run.unit <= kMaxPayload &&
         run.payload_len > (run.packets - 1U) * run.unit && run.payload_len <= run.packets * run.unit &&
         std::is_sorted(run.gaps, run.gaps + run.packets - 1, std::greater<>());
}

void SocketWire::wire_run(const wire::Run& run, std::int64_t) {
  static_assert(wire::kMaxRun == kMaxRun && wire::kMaxRunPayload == kMaxRun * kMaxPayload);
  const Time t = sim_now();
  if (!owner_.in_service) return;
  PacketRef packet = PacketPool::make();
  if (!decode_run(run, *packet)) return owner_.model.port().drop(t, *packet, DropReason::kMalformed);
  // What is only moved is copied once, into the host's memory. Of what is looked at, nobody may change a
  // copy.
  const prm::BthTraits& traits = traits_of(packet->opcode);
  packet->payload_len = run.payload_len;
  run_bytes_ += run.payload_len;
  if (run.packets > 1 || traits.write || traits.read_resp)
    in_memory_.borrow(*packet, run.payload, kNowhere, hca::kPhysical, packet->dest_qpn);
  else
    packet->set_payload(run.payload, run.payload_len);
  if (run.packets > 1) {
    packet->packets = static_cast<std::uint16_t>(run.packets);
    packet->unit = run.unit;
    for (unsigned i = 0; i + 1 < run.packets; ++i) packet->at[i] = t - run.gaps[i];
    packet->at[run.packets - 1] = t;
  }
  owner_.model.port().wire_receive(t, std::move(packet));
}

void SocketWire::wire_settle() {
  in_memory_.settle_all();
  simulation().copies.make();
}

void SocketWire::wire_watch(int fd, bool read, bool write) {
  if (owner_.in_service && owner_.ops.watch_fd) owner_.ops.watch_fd(owner_.opaque, fd, read, write);
}

void SocketWire::wire_log(int level, const std::string& line) { owner_.log(level, line.c_str()); }

// ---- LIDs ----

SubnetLids assign_lids(const SubnetEnd& own, const SubnetEnd& peer) {
  if (own.node_guid == peer.node_guid || (own.lid != 0 && own.lid == peer.lid)) return {};
  const bool acting = own.node_guid < peer.node_guid;
  SubnetLids lids{own.lid, peer.lid, 0};
  std::uint16_t& manager = acting ? lids.own : lids.peer;
  std::uint16_t& other = acting ? lids.peer : lids.own;
  if (manager == 0) manager = other == kFirstUnicast ? kFirstUnicast + 1 : kFirstUnicast;
  if (other == 0) other = static_cast<std::uint16_t>(manager == kLastUnicast ? manager - 1 : manager + 1);
  lids.sm = manager;
  return lids;
}

}  // namespace hcasim::api
