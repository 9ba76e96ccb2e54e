// SPDX-License-Identifier: BSD-3-Clause
// The Ethernet receive path: flow tables decide, TIRs hash (RSS) and have segments put together (LRO), RQs
// take frames: cyclic and striding WQEs, headers apart from data (SHAMPO), checksums, VLAN strip, CQEs (Cqe
// of prm/cqe.h, CQE section of the PRM). Frames come from the receiver, copies for sniffers from it and from
// the port, changes of an RQ's state from firmware.
#ifndef HCASIM_MODEL_ETH_RX_H
#define HCASIM_MODEL_ETH_RX_H

#include <cstdint>
#include <systemc>
#include <vector>

#include "model/cq/cq.h"
#include "model/ctx/eth.h"
#include "model/eth/headers.h"
#include "model/eth/lro.h"
#include "model/eth/rss.h"
#include "model/packet/packet.h"
#include "model/port/port.h"
#include "model/state/fields.h"
#include "model/steer/flow.h"
#include "model/time.h"
#include "model/wqe/scatter.h"
#include "prm/cqe.h"
#include "prm/crypto.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class CryptoEngine;
class EqUnit;
class Lag;
class QCounters;
class QpTable;
struct Profile;
struct Qp;

class EthRx : public sc_core::sc_module {
 public:
  struct Blocks {
    // The chip's
    const Profile& profile;
    traces::Tracer& tracer;
    Dma& dma;
    Port& port;  // counts what is dropped
    PerFunction<FlowSteering> flows;
    Tpt& tpt;
    // The function's
    PerFunction<EthTable> eth;
    PerFunction<QpTable> qps;  // RMPs
    CqUnit& cqs;
    EqUnit& eqs;
    PerFunction<QCounters> q_counters;
    Lag& lag;  // takes back what the card's other port has handed over
    CryptoEngine& crypto;
  };
  EthRx(const sc_core::sc_module_name& name, const Blocks& blocks, FaultSink& faults);

  // A frame (kind kEthernet) for the function that is not RoCE, or whose RoCE is not enabled.
  void receive(Time t, FunctionId f, PacketRef& packet);
  // A packet passes the port: the function's sniffer table of that direction, if there is one, gets a copy.
  void sniff(Time t, FunctionId f, FlowTableType type, const Packet& packet);
  // IPoIB's enhanced offloads: a datagram for that UD QP (Qp::carries_frames).
  void receive_datagram(Time t, const Qp& qp, const PacketRef& packet);
  // What the tables give to TIRs; takes the deliveries out of the verdict.
  void deliver(Time t, FunctionId f, FlowVerdict& verdict) { deliver(t, f, verdict, nullptr); }
  // Firmware changed the RQ's state. To kErr: flushes what is posted; to kRst: forgets the run-time state.
  void rq_changed(Time t, Rq& rq, RqState old);
  // The RQ cannot go on (its ring or doorbell record, a write that the host refused): to kErr, flush, event.
  void rq_failed(Time t, Rq& rq);
  // Firmware changes the TIR's LRO, or destroys it.
  void tir_changed(Time t, FunctionId f, std::uint32_t tirn) { lro_.tir_changed(t, f, tirn); }
  // The function is reset.
  void forget(FunctionId f) { lro_.forget(f); }
  // What is held back for the function's queues goes into them now.
  void settle(Time t, FunctionId f) { lro_.settle(t, f); }
  void clear();
  Time rx_free() const { return rx_free_; }  // when the receive pipeline has taken all that came

  // check_sum covers all bytes behind the Ethernet header (cap.cqe_checksum_full).
  static constexpr bool kChecksumFull = true;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, rx_free_, lro_);
  }

 private:
  // What lies in the buffer, in the place of the frame's MACs and ethertype, of a frame that was a datagram,
  // and what its CQE says of it.
  struct Datagram {
    PacketRef head;  // network header and encapsulation
    std::uint32_t qpn = 0;
    const Packet* packet = nullptr;
  };
  // A frame on its way into RQs.
  struct Arrival {
    const PacketRef* packet = nullptr;
    const FrameHeaders* headers = nullptr;
    const Datagram* datagram = nullptr;  // null: it was none
    std::uint32_t flow_tag = 0, metadata = 0;
    RssHash hash;
    std::uint8_t segments = 0;  // of LRO, if it has passed that
    // Found when the first RQ takes it; the same for all.
    bool summed = false;
    std::uint16_t sum = 0;  // behind the Ethernet header, VLAN tags included
    std::uint8_t ok = 0;
    prm::CqeTls tls = prm::CqeTls::kNotDecrypted;
  };
  enum class Take : std::uint8_t { kTaken, kEmpty, kBroken };
  // Room in a receive queue.
  struct Claim {
    std::uint64_t offset = 0;  // in the WQE
    std::uint32_t strides = 0;
    Completion c;
    FrameCompletion f;
  };

  // rx.cpp
  void deliver(Time t, FunctionId f, FlowVerdict& verdict, const Datagram* datagram);
  void deliver(Time t, FunctionId f, Tir& tir, Arrival& a);
  void to_queue(Time t, FunctionId f, const Tir& tir, Arrival& a);
  // The frame of `a` if its TIR has TLS; null: it stays as it came.
  PacketRef decrypt(Time& t, FunctionId f, Tir& tir, Arrival& a);
  bool offer_to_lro(Time t, const Tir& tir, const Rq& rq, Arrival& a);
  void take_frame(Time t, Rq& rq, Arrival& a);
  // `len` bytes of the WQE in use or the next one.
  Take claim(Time t, Rq& rq, std::uint32_t len, Claim& claim);
  void used(Rq& rq, const Claim& claim);
  // Traces that the packet has got a receive WQE, and is in memory.
  void trace_taken(Time t, const Rq& rq, const Packet& packet);
  void trace_landed(Time t, const Rq& rq, const Packet& packet, std::uint32_t len);
  void refused(Time t, Rq& rq, const MoveResult& m, std::uint64_t end);
  void sum_up(Arrival& a) const;
  void drop(Time t, const Packet& packet, std::uint64_t& counter, DropReason reason);
  static bool strips(const Rq& rq, const FrameHeaders& h);
  // Bytes that it takes in a buffer.
  static std::uint32_t length_in(const Rq& rq, const Arrival& a);
  // Who asks for the memory of the queue's WQE.
  static KeyUser key_user(const Rq& rq);
  // Writes the frame's first `len` bytes at `offset` of the list, without its VLAN tag if strip.
  MoveResult scatter(Time t, Rq& rq, const std::vector<Sge>& to, std::uint64_t offset, const Arrival& a,
                     bool strip, std::uint32_t len);
  MoveResult scatter_fcs(Time t, Rq& rq, std::uint64_t offset, const Arrival& a, FrameCompletion& f);
  void complete(Time t, Rq& rq, const Arrival& a, Completion& c, FrameCompletion& f, bool strip);
  void fail_wqe(Time t, Rq& rq, prm::CqeSyndrome syndrome, std::uint8_t vendor);

  // merged.cpp : sessions that have ended
  void take_session(Time t, LroSession& s);
  // How many of the segments from `from` on fit into the next room of the queue: in n.
  Take fit(Time t, Rq& rq, const LroSession& s, std::size_t from, std::size_t& n);
  void place(Time t, Rq& rq, const LroSession& s, std::size_t from, std::size_t n);
  void drop_segments(Time t, const LroSession& s, std::size_t from, std::uint64_t& counter,
                     DropReason reason);

  // split.cpp: headers apart from data
  struct Fit {
    bool match = false, flush = false;
  };
  void take_split(Time t, Rq& rq, Arrival& a);
  static Fit join_split(Time t, Rq& rq, const Arrival& a);
  Take reserve(Time t, Rq& rq, std::uint32_t data, Fit& fit);
  void skip_reservation(Time t, Rq& rq);

  // rq.cpp: receive WQEs
  Take take_wqe(Time t, Rq& rq);
  Take take_cyclic(Time t, Rq& rq);
  Take take_linked(Time t, const GuestRing& ring, unsigned log_size, unsigned log_stride, std::uint16_t& head,
                   RecvWqe& wqe, const traces::Subject& queue);
  template <class Q>
  bool posted(Time t, Q& q, std::uint16_t consumer, bool& any);
  // Striding: makes room for `strides` in the WQE in use or the next one.
  Take make_room(Time t, Rq& rq, std::uint32_t strides);
  void flush(Time t, Rq& rq);
  void post(Time t, Rq& rq, Completion& c);

  Blocks blocks_;
  Mover mover_;
  Lro lro_;
  Time rx_free_ = 0;
  bool sniffing_ = false;                 // what is lost now is a copy
  std::vector<FlowDelivery> deliveries_;  // scratch
};

}  // namespace hcasim
#endif
