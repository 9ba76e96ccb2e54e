// SPDX-License-Identifier: BSD-3-Clause
// Moving payload between packets and scatter/gather lists, through translation and DMA.
#ifndef HCASIM_MODEL_WQE_SCATTER_H
#define HCASIM_MODEL_WQE_SCATTER_H

#include <cstdint>
#include <vector>

#include "model/ctx/qp.h"
#include "model/pcie/dma.h"
#include "model/tpt/tpt.h"

namespace hcasim {

struct MoveResult {
  TptStatus status = TptStatus::kOk;
  bool dma_ok = true;
  bool local = false;  // gather: some of it lies in memory of the device's own
  Time at = 0;         // gather: when the bytes are there; scatter: when they are visible in host memory
  Time addressed = 0;  // gather: when the last address was known

  bool ok() const { return status == TptStatus::kOk && dma_ok; }
};

class Mover {
 public:
  // requester: it moves for send WQEs; signature errors are distinguished by that.
  Mover(Tpt& tpt, Dma& dma, bool requester = true) : tpt_(tpt), dma_(dma), requester_(requester) {}

  // Bytes [offset, offset + len) of the list into dst. Requests leave at t. behind_writes: sees what posted
  // writes before it bring (a fenced WQE sends what a READ has just fetched).
  MoveResult gather(Time t, const Qp& qp, const std::vector<Sge>& sges, std::uint64_t offset,
                    std::uint32_t len, std::uint8_t* dst, bool behind_writes = false) {
    return gather(t, qp, sges, offset, len, dst, behind_writes, nullptr);
  }
  // The packet's payload, from `offset` of the list on; it may be borrowed (Dma::read_payload()).
  MoveResult gather_payload(Time t, const Qp& qp, const std::vector<Sge>& sges, std::uint64_t offset,
                            Packet& packet) {
    return gather(t, qp, sges, offset, packet.payload_len, packet.data(), false, &packet);
  }
  // The payload of a run of packets, whose turns are `apart` and the first one's is at t: if all of it lies
  // in one piece and is borrowed, packet.at is when each packet's share is there. False: it is not, and the
  // packets are to be gathered one by one.
  bool gather_run(Time t, Time apart, const Qp& qp, const std::vector<Sge>& sges, std::uint64_t offset,
                  Packet& packet, MoveResult& r);
  // len bytes of the packet's payload from `from` to bytes [offset, ...) of the list, with `pd` for the check
  // (an SRQ has its own). kOutOfRange: the list is too short. last_group: see Dma::post_write().
  MoveResult scatter(Time t, const Qp& qp, std::uint32_t pd, const std::vector<Sge>& sges,
                     std::uint64_t offset, const PacketRef& packet, std::uint32_t from, std::uint32_t len,
                     bool group);
  // The same for a queue that is no QP.
  MoveResult scatter(Time t, WriteOwner owner, const KeyUser& user, const std::vector<Sge>& sges,
                     std::uint64_t offset, const PacketRef& packet, std::uint32_t from, std::uint32_t len,
                     bool group);
  // The same against one remote key (RDMA WRITE and READ at the responder); `pd`: XRC takes the SRQ's.
  MoveResult write_remote(Time t, const Qp& qp, std::uint32_t pd, std::uint32_t rkey, std::uint64_t va,
                          const PacketRef& packet, bool group);
  MoveResult read_remote(Time t, const Qp& qp, std::uint32_t pd, std::uint32_t rkey, std::uint64_t va,
                         std::uint32_t len, std::uint8_t* dst);
  // Rights and bounds of the whole list.
  TptStatus check(const Qp& qp, const std::vector<Sge>& sges, Access access);

 private:
  MoveResult gather(Time t, const Qp& qp, const std::vector<Sge>& sges, std::uint64_t offset,
                    std::uint32_t len, std::uint8_t* dst, bool behind_writes, Packet* whole);
  Time write(Time here, const Translation& tr, const PacketRef& packet, std::uint32_t src, WriteOwner owner,
             bool group);
  // Through a key with signatures: bytes [va, va + len) as they are on the wire (signed.cpp).
  struct Party {
    KeyUser user;
    Access access;
  };
  bool start_signed(Mkey& mkey);
  bool fetch_signed(MoveResult& r, Mkey& mkey, const Party& who, std::uint64_t n);
  bool gather_signed(MoveResult& r, Mkey& mkey, std::uint32_t key, const Party& who, std::uint64_t va,
                     std::uint32_t len, std::uint8_t* dst);
  bool scatter_signed(MoveResult& r, Mkey& mkey, std::uint32_t key, const Party& who, std::uint64_t va,
                      const std::uint8_t* src, std::uint32_t len, WriteOwner owner, bool group);

  Tpt& tpt_;
  Dma& dma_;
  const bool requester_;
  std::vector<Fragment> fragments_;  // scratch
  std::vector<std::uint8_t> bytes_;  // scratch
};

}  // namespace hcasim
#endif
