// SPDX-License-Identifier: BSD-3-Clause
// A packet inside the process: header fields decoded, payload beside them. Bytes are made of it only where it
// leaves the process or a capture wants it (port/codec.h). IBTA vol. 1 ch. 5 and 9, annexes A16 and A17
// (RoCE). Every block that handles packets includes this; it includes none of them.
#ifndef HCASIM_MODEL_PACKET_PACKET_H
#define HCASIM_MODEL_PACKET_PACKET_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "model/function/id.h"
#include "model/packet/packet_pool.h"
#include "model/prefetch.h"
#include "model/state/fields.h"
#include "model/state/qp_tags.h"
#include "model/time.h"
#include "prm/packet.h"
#include "prm/wqe.h"

namespace hcasim {

constexpr std::uint32_t kMulticastQpn = 0xffffff;  // IBTA 10.5.1: the QP number of packets to a group

constexpr std::uint32_t kMaxPayload = 4096;  // bytes, the largest IB path MTU
constexpr std::uint16_t kPermissiveLid = 0xffff;
constexpr std::uint32_t kMaxFrame = 10240;  // bytes, room for the largest Ethernet frame (MTU 9978 and below)
using prm::kPsnMask;
using prm::psn_diff;

using Mac = std::array<std::uint8_t, 6>;
using Gid = std::array<std::uint8_t, 16>;

constexpr bool is_multicast(std::uint16_t dlid) { return dlid >= 0xc000 && dlid <= 0xfffe; }

// The low two bits of a traffic class (RFC 3168).
enum Ecn : std::uint8_t { kNotEct = 0, kEct1 = 1, kEct0 = 2, kCe = 3, kEcnMask = 3 };

// Packets that may be carried as one (Packet::packets).
constexpr unsigned kMaxRun = 16;
// That a message takes; none has no packet.
constexpr std::uint32_t packets_of(std::uint64_t bytes, unsigned mtu) {
  return bytes == 0 ? 1 : static_cast<std::uint32_t>((bytes + mtu - 1) / mtu);
}
// Whether those with this BTH opcode may be: SENDs and RDMA WRITEs of RC, without immediate.
constexpr bool may_be_run(std::uint8_t opcode) {
  if ((opcode & prm::bth::kTransportMask) != prm::bth::kRc) return false;
  switch (static_cast<prm::BthOp>(opcode & prm::bth::kOpMask)) {
    case prm::BthOp::kSendFirst:
    case prm::BthOp::kSendMiddle:
    case prm::BthOp::kSendLast:
    case prm::BthOp::kSendOnly:
    case prm::BthOp::kWriteFirst:
    case prm::BthOp::kWriteMiddle:
    case prm::BthOp::kWriteLast:
    case prm::BthOp::kWriteOnly:
      return true;
    default:
      return false;
  }
}

// For traces (points frame_*): the way of a frame through flow tables, by the number of its first step, and
// its last step so far. 0: it is not traced.
struct FrameTrail {
  std::uint32_t path = 0, step = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, path, step);
  }
};

// What a packet is on its link. kEthernet: any frame that is not (yet) known to be RoCE; its bytes, from the
// destination MAC on and without FCS, are frame(), frame_len long.
enum class PacketKind : std::uint8_t { kIb, kRoceV1, kRoceV2, kEthernet };

// Of a card's ports that are one link (LAG), the one that a queue's packets are for, from 1 on; 0: that of
// its function. Unless it is strict, the card has another one stand in for it as it is told.
struct PortAffinity {
  std::uint8_t port = 0;
  bool strict = false;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, port, strict);
  }
};

class PacketRef;
struct Packet;

// In whose memory the payload of packets may lie (model/pcie/loans.h).
class Lender {
 public:
  // Packets are about to read that memory: it is brought up to date.
  virtual void before_read() = 0;

 protected:
  ~Lender() = default;
};

// How a packet's payload is borrowed: kept by the Lender, in a list of all its packets.
struct Loan {
  const std::uint8_t* bytes = nullptr;  // null: it is not
  std::uint64_t from = 0;               // bus address
  Lender* lender = nullptr;
  Packet* next = nullptr;
  Packet** link = nullptr;  // what points to this packet in the list
  std::uint32_t qpn = 0;
  FunctionId function = 0;
  bool released = false;  // Loans::release()
};

// Its members stand in the order of their use: what each receiver looks at in the first kHot bytes, which
// are prefetched, and what is not initialized at the end (static_asserts in packet.cpp).
struct Packet {
  PacketKind kind = PacketKind::kIb;
  // Ethernet link: L2, and what RoCE v2 adds. Addresses are in sgid and dgid (IPv4 as ::ffff:a.b.c.d), DSCP
  // and ECN in tclass, TTL in hop_limit.
  bool ipv4 = false;      // RoCE v2: over IPv4
  bool has_vlan = false;  // RoCE: a tag with vlan_tci
  std::uint16_t vlan_tci = 0;
  Mac dmac{}, smac{};
  std::uint16_t udp_sport = 0;
  std::uint16_t frame_len = 0;  // kEthernet, and RoCE that came as bytes: length of frame()
  // Of a QP whose path is forced to loop: goes round inside this HCA, without addresses, past port and
  // tables.
  bool internal = false;
  // Sent by this HCA itself and looped back inside it; the sender's transport domain (0: none).
  bool looped = false;
  std::uint32_t transport_domain = 0;
  // LRH / address of the path. On the IB link rlid addresses; GRH is present when has_grh.
  std::uint16_t slid = 0, dlid = 0;
  // Never on a wire: the function of this card that sends it; once it has come in, the one that it is for.
  FunctionId function = 0;
  FunctionId switched_to = kNoFunction;  // by the E-Switch: it has left that, for this function
  std::uint8_t sl = 0, vl = 0;           // vl: IB, the data lane that it leaves by (VirtualLanes)
  bool vl15 = false;                     // IB: on the management lane, as SMPs and nothing else
  bool has_grh = false;
  std::uint8_t tclass = 0, hop_limit = 0;
  std::uint32_t flow_label = 0;
  std::array<std::uint8_t, 16> sgid{}, dgid{};
  // BTH
  std::uint8_t opcode = 0;  // IBTA table 38: transport in [7:5]
  bool solicited = false, ack_req = false, migreq = true;
  std::uint16_t pkey = 0xffff;
  std::uint32_t dest_qpn = 0, psn = 0;
  // Extended headers; which are valid follows from the opcode
  std::uint64_t va = 0;                     // RETH, AtomicETH
  std::uint32_t rkey = 0;                   // RETH, AtomicETH; IETH's R_Key
  std::uint32_t dma_len = 0;                // RETH
  std::uint64_t swap_add = 0, compare = 0;  // AtomicETH; AtomicAckETH's original data in swap_add
  std::uint32_t imm = 0;                    // ImmDt, or IETH's R_Key to invalidate (both host order)
  std::uint8_t aeth = 0;                    // AETH syndrome
  std::uint32_t msn = 0;                    // AETH MSN
  std::uint32_t qkey = 0, src_qpn = 0;      // DETH; src_qpn also XRCETH's SRQ number
  // DCETH (with src_qpn)
  std::uint64_t dc_key = 0;
  bool dc_connect = false;
  std::uint8_t dc_session = 0;
  std::uint32_t dc_first_psn = 0;
  // Payload
  std::uint32_t payload_len = 0;  // bytes, without pad
  // Side data, never on a wire: lets traces tell one WQE's packets from another's.
  std::uint32_t wqe_serial = 0;
  std::uint32_t trace_qpn = 0;      // the requester's QPN
  std::uint32_t trace_packets = 0;  // of its message, if the sender knows: for traces
  Time first_bit = 0;               // when it began to leave the sender's port
  Time streamed = 0;                // RDMA: before its end, its payload had begun to come in
  bool corrupt = false;             // fault injection: fails its CRC at the receiver

  // More than 1: a run. That many packets of one message, one behind the other, which go through the HCAs as
  // one for as long as nobody on their way would tell them apart; the simulator's cost is that of one packet
  // then, the times are each packet's own. They have PSNs from psn on and `unit` bytes of payload, the last
  // one what remains of payload_len; the opcode is that of one packet which is the first of its message if
  // the first of them is, and the last if the last is. Who needs to see them one by one takes part_of()
  // (port/run.h). Only SENDs and RDMA WRITEs of RC, without immediate; of one message, whose payload is
  // borrowed, or of several (of_messages).
  std::uint16_t packets = 1;
  // Such a run of messages: each of its packets is an RDMA WRITE Only of RC, which has an address of its own
  // (`message`) and whose payload of `unit` bytes is in the packet's own buffer. Their WQEs' serials count
  // up, and so do their PSNs, without a wrap.
  bool of_messages = false;
  std::uint32_t unit = 0;

  // Of one that has come to a port: `function` may be another card's.
  bool may_be_foreign() const { return !internal && !looped && switched_to == kNoFunction; }

  // Ethernet link: where the packet goes, of whatever kind it is.
  const std::uint8_t* dest_mac() const { return kind == PacketKind::kEthernet ? buffer_ : dmac.data(); }

  // Payload of a transport packet, wherever it lies; who may write gets it in the packet's own buffer.
  std::uint8_t* data() {
    if (borrowed()) own();
    return large_ ? large_ : buffer_ + head_;
  }
  const std::uint8_t* data() const { return borrowed() ? loan_.bytes : large_ ? large_ : buffer_ + head_; }
  // The payload lies in the memory of the sender's host still, from this bus address on.
  bool borrowed() const { return loan_.bytes != nullptr; }
  std::uint64_t borrowed_from() const { return loan_.from; }
  // The payload as it is now, for a copy.
  const std::uint8_t* read_payload() const {
    if (borrowed()) loan_.lender->before_read();
    return data();
  }
  // The payload becomes a copy of these bytes: up to kMaxRun * kMaxPayload of them.
  void set_payload(const std::uint8_t* bytes, std::uint32_t len) {
    payload_len = len;
    keep(bytes);
  }
  // Copies a payload that is borrowed.
  void own();
  // The processor fetches what whoever gets the packet looks at (model/prefetch.h).
  void prefetch() const { prefetch_range(this, kHot); }
  // Whose queue of writes to the host holds all of the payload; null: none yet.
  const void* landing = nullptr;
  // Side data too, of the E-Switch: the queue that sends it; and behind the switch, where it came from and
  // what goes with it of the registers C_0 and C_1.
  std::uint32_t sqn = 0;
  std::uint16_t source_vport = 0;
  std::array<std::uint32_t, 2> reg_c{};
  FrameTrail trail;
  // LAG: of its queue; and whether it has crossed over from one port of the card to the other: sent, from a
  // function of the other one's; received, to one.
  PortAffinity affinity;
  bool crossed = false;
  // Its queue wants to know when it leaves the port, by a CQE with this number.
  bool reports_departure = false;
  std::uint16_t departure_id = 0;
  // The whole frame. Decoding in place (decode_roce()) leaves it intact and moves data() behind its headers.
  std::uint8_t* frame() { return buffer_; }
  const std::uint8_t* frame() const { return buffer_; }
  void set_head(std::uint32_t bytes) { head_ = bytes; }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, kind, ipv4, has_vlan, vlan_tci, dmac, smac, udp_sport, frame_len, internal, looped,
                  transport_domain, slid, dlid, sl, vl, vl15, has_grh, tclass, hop_limit, flow_label, sgid,
                  dgid);
    HCASIM_FIELDS(a, opcode, solicited, ack_req, migreq, pkey, dest_qpn, psn, va, rkey, dma_len, swap_add,
                  compare, imm, aeth, msn, qkey, src_qpn, dc_key, dc_connect, dc_session, dc_first_psn);
    if constexpr (Archive::kStores) HCASIM_FIELDS(a, trail);
    HCASIM_FIELDS(a, function, switched_to, sqn, source_vport, reg_c, affinity, crossed, reports_departure,
                  departure_id, payload_len, wqe_serial, trace_qpn, trace_packets, first_bit, corrupt,
                  packets, unit);
    HCASIM_FIELDS_SINCE(2, a, streamed);
    HCASIM_FIELDS_SINCE(12, a, of_messages);
    state::qp_tags(a, trace_qpn);
    if constexpr (Archive::kLoads) {
      a.check(kind <= PacketKind::kEthernet, "there is no such kind of packet");
      a.check(packets >= 1 && packets <= kMaxRun, "a run has 1 to 16 packets");
      a.check(payload_len <= (packets == 1 ? kMaxFrame : kMaxRun * kMaxPayload), "the payload is too large");
      a.check(packets == 1 || (kind != PacketKind::kEthernet && unit <= kMaxPayload), "there is no such run");
      a.check(
          packets <= 1 || (unit != 0 && payload_len > (packets - 1U) * unit && payload_len <= packets * unit),
          "the packets of a run do not have their bytes");
      a.check(packets == 1 || may_be_run(opcode), "such packets do not go as a run");
    }
    for (unsigned i = 0; packets > 1 && i < packets; ++i) a("at", at[i]);
    if constexpr (Archive::kLoads) {
      for (unsigned i = 0; packets > 1 && i < packets; ++i)
        a.check(at[i] > -kNever / 2 && at[i] < kNever / 2, "no packet comes at such a time");
    }
    if constexpr (Archive::kLoads)
      a.check(!of_messages || (packets > 1 && payload_len == packets * unit && payload_len <= kMaxFrame),
              "the messages of a run do not have their bytes");
    for (unsigned i = 0; of_messages && i < packets; ++i) {
      a("message_va", message[i].va);
      a("message_rkey", message[i].rkey);
    }
    if constexpr (Archive::kLoads) {
      const std::string_view bytes = a.bytes("frame");
      a("head", head_);
      a.check(bytes.size() == frame_len && frame_len <= kMaxFrame && head_ <= kMaxFrame,
              "a frame does not have its bytes");
      // An atomic's result is put where the answer's payload lies, whatever that was.
      a.check(packets > 1 || std::max(payload_len, prm::kMaxAtomicBytes) <= kMaxFrame - head_,
              "the payload does not lie in the packet");
      std::memcpy(buffer_, bytes.data(), bytes.size());
      const std::string_view payload = a.bytes("payload");
      a.check(payload.size() == payload_len, "a packet does not have its payload");
      keep(reinterpret_cast<const std::uint8_t*>(payload.data()));
    } else if constexpr (Archive::kStores) {
      a.bytes("frame", frame(), frame_len);
      a("head", head_);
      a.bytes("payload", static_cast<const Packet*>(this)->data(), payload_len);
    } else if constexpr (!Archive::kResets) {
      if (kind == PacketKind::kEthernet)
        a.bytes(frame(), frame_len);
      else
        a.bytes(static_cast<const Packet*>(this)->data(), payload_len);
    }
  }
  // Bytes there are from data() on.
  std::uint32_t room() const { return borrowed() || large_ ? payload_len : kMaxFrame - head_; }

 private:
  friend class Loans;
  friend class PacketPool;
  friend class PacketRef;
  friend PacketRef part_of(Packet& run, unsigned i);
  static constexpr std::size_t kHot = 256;  // bytes
  void end_loan();
  void keep(const std::uint8_t* bytes);

  std::uint32_t refs_ = 0;
  Packet* next_ = nullptr;
  std::uint32_t head_ = 0;
  Loan loan_;
  std::uint8_t* large_ = nullptr;  // payload that the buffer has no room for, from malloc()
  // kMaxFrame bytes, this packet's for good. Apart from it, so that packets lie close together, whose payload
  // mostly lies elsewhere. Null: one outside of the pool, without bytes.
  std::uint8_t* buffer_ = nullptr;

 public:
  // Of a run: when each packet is where the run is. Not initialized.
  alignas(64) std::array<Time, kMaxRun> at;
  // Of a run of messages: each one's RETH. Not initialized.
  struct Message {
    std::uint64_t va;  // on its way to the host: the bus address
    std::uint32_t rkey;
  };
  std::array<Message, kMaxRun> message;
};

// Shared ownership of a pooled packet; single-threaded by design.
class PacketRef {
 public:
  PacketRef() = default;
  PacketRef(const PacketRef& o) : p_(o.p_) {
    if (p_) ++p_->refs_;
  }
  PacketRef(PacketRef&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  PacketRef& operator=(PacketRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~PacketRef();
  Packet* operator->() const { return p_; }
  Packet& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool shared() const { return p_ && p_->refs_ > 1; }  // others hold it too
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets)
      *this = PacketRef();
    else if constexpr (Archive::kLoads)
      a.packet(*this, [] { return PacketPool::make(); });
    else if constexpr (Archive::kStores)
      a.packet(*this);
    else if (p_)
      p_->list_state(a);
  }

 private:
  friend class PacketPool;
  explicit PacketRef(Packet* p) : p_(p) { ++p_->refs_; }
  Packet* p_ = nullptr;
};

inline PacketRef::~PacketRef() {
  if (p_ && --p_->refs_ == 0) PacketPool::give_back(p_);
}

}  // namespace hcasim
#endif
