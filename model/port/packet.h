// SPDX-License-Identifier: BSD-3-Clause
// A packet inside the process: header fields decoded, payload beside them. Bytes are made of it only where it
// leaves the process or a capture wants it (port/encode). IBTA vol. 1 ch. 5 and 9.
#ifndef HCASIM_MODEL_PORT_PACKET_H
#define HCASIM_MODEL_PORT_PACKET_H

#include <array>
#include <cstdint>
#include <utility>

#include "model/prm/packet.h"
#include "model/time.h"

namespace hcasim {

constexpr std::uint32_t kMaxPayload = 4096;  // bytes, the largest IB path MTU
using prm::kPsnMask;
using prm::psn_diff;

struct Packet {
  // LRH / address of the path. On the IB link rlid addresses; GRH is present when has_grh.
  std::uint16_t slid = 0, dlid = 0;
  std::uint8_t sl = 0;
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
  std::uint32_t qkey = 0, src_qpn = 0;      // DETH
  // Payload
  std::uint32_t payload_len = 0;  // bytes, without pad
  // Side data, never on a wire: lets traces tell one WQE's packets from another's.
  std::uint32_t wqe_serial = 0;
  std::uint32_t trace_qpn = 0;      // the requester's QPN
  std::uint32_t trace_packets = 0;  // of its message, if the sender knows: for traces
  Time first_bit = 0;               // when it began to leave the sender's port
  bool corrupt = false;             // fault injection: fails its CRC at the receiver

  std::uint8_t* data() { return payload_; }
  const std::uint8_t* data() const { return payload_; }

 private:
  friend class PacketPool;
  friend class PacketRef;
  std::uint32_t refs_ = 0;
  Packet* next_ = nullptr;
  alignas(64) std::uint8_t payload_[kMaxPayload];  // not initialized
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

 private:
  friend class PacketPool;
  explicit PacketRef(Packet* p) : p_(p) { ++p_->refs_; }
  Packet* p_ = nullptr;
};

// Process-wide free list: packets wander between HCAs.
class PacketPool {
 public:
  // A packet with all fields at their defaults and payload bytes undefined.
  static PacketRef make();
  static void give_back(Packet* p);
};

inline PacketRef::~PacketRef() {
  if (p_ && --p_->refs_ == 0) PacketPool::give_back(p_);
}

}  // namespace hcasim
#endif
