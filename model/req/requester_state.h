// SPDX-License-Identifier: BSD-3-Clause
// Run-time state of a QP's send side (IBTA 9.7.2-9.7.5, requester).
#ifndef HCASIM_MODEL_REQ_REQUESTER_STATE_H
#define HCASIM_MODEL_REQ_REQUESTER_STATE_H

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "model/prefetch.h"
#include "model/simulation_context.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "model/tpt/fault.h"
#include "model/wqe/page_pace.h"
#include "prm/wqe.h"

namespace hcasim {

struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t lkey = 0;
  std::uint32_t len = 0;  // bytes

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, addr, lkey, len);
  }
};

// A parsed send WQE, kept from fetch until its completion: all but its lists.
struct SendWqeHead {
  prm::WqeOp opcode = prm::WqeOp::kNop;
  std::uint8_t opmod = 0;
  std::uint16_t counter = 0;  // wqe_index of the control segment: goes into the CQE
  std::uint32_t serial = 0;   // count of WQEs of this QP since reset, for traces
  bool signaled = false, solicited = false;
  std::uint8_t fence = 0;     // CtrlSeg::fence()
  std::uint16_t stream = 0;   // DCI
  bool inline_data = false;   // all of the message lies in `bytes`
  bool reported = false;      // that it breaks a rule
  bool silent_flush = false;  // has a CQE if it fails itself, and none behind another that failed
  bool in_cqe = false;        // READ, atomic: the result lies in `bytes` and goes into the CQE
  std::uint32_t imm = 0;      // immediate, R_Key to invalidate, the mkey of a UMR, or a TIS or TIR << 8
  std::uint64_t raddr = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_add = 0, compare = 0;
  prm::AvSeg av{};             // UD
  std::uint32_t xrc_srqn = 0;  // XRC: the receive queue at the other end
  // Frames (type kSq). bytes: inline headers and data, in front of what the sges bring (inline_front()); an
  // sge with kInvalidLkey lies in bytes, at addr. many_frames(): each sge is a frame.
  prm::EthSeg eth{};
  std::uint32_t header_len = 0;  // LSO: of bytes, what each segment repeats
  // Other messages: as many bytes of it lie in `bytes`, in front of what the sges bring.
  std::uint32_t inline_head = 0;

  std::uint64_t length = 0;  // bytes of the message
  Time due = 0;              // when it has come from the host
  // Packets: PSNs [first_psn, first_psn + packets) once started. READ, atomic: of the responses.
  bool started = false;
  std::uint32_t first_psn = 0;
  std::uint32_t packets = 1;
  std::uint32_t sent = 0;      // packets sent, or responses asked for
  std::uint32_t answered = 0;  // READ, atomic: response packets taken
  bool one_by_one = false;     // its packets cannot go in runs
  bool done = false;           // acknowledged or executed; completes when it is the oldest
  Time done_at = 0;
  std::uint8_t syndrome = 0;  // CQE syndrome to fail with when it is the oldest; 0 = none
  std::uint8_t vendor = 0;

  // Of the tag-matching unit: a rendezvous' data, and the message that ends it. bytes: its two headers.
  enum class Rendezvous : std::uint8_t { kNone, kRead, kFin } rendezvous = Rendezvous::kNone;
  std::uint16_t tag_index = 0;

  // Multi-packet WQEs: the enhanced form, and the older one, a large send with a modifier.
  bool many_frames() const {
    return opcode == prm::WqeOp::kEnhancedMpsw ||
           (opcode == prm::WqeOp::kLso && opmod == prm::kLsoManyFrames);
  }
  bool large_send() const { return opcode == prm::WqeOp::kLso && !many_frames(); }
  bool is_masked_atomic() const { return opcode == prm::WqeOp::kMaskedCs || opcode == prm::WqeOp::kMaskedFa; }
  bool is_atomic() const {
    return opcode == prm::WqeOp::kAtomicCs || opcode == prm::WqeOp::kAtomicFa || is_masked_atomic();
  }
  bool is_read_or_atomic() const { return opcode == prm::WqeOp::kRdmaRead || is_atomic(); }
  // Its payload is read from the host as it is sent.
  bool gathers() const { return !inline_data && length != 0 && !is_read_or_atomic(); }
  bool is_local() const {
    return opcode == prm::WqeOp::kNop || opcode == prm::WqeOp::kUmr || opcode == prm::WqeOp::kSetPsv ||
           opcode == prm::WqeOp::kTagMatch || opcode == prm::WqeOp::kFlowTableAccess ||
           opcode == prm::WqeOp::kAso || opcode == prm::WqeOp::kGetPsv || opcode == prm::WqeOp::kDump;
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, opcode, opmod, counter, serial, signaled, solicited, fence, stream, inline_data,
                  reported, in_cqe, imm, raddr, rkey, swap_add, compare, av, xrc_srqn, eth, header_len,
                  inline_head, length, started, first_psn, packets, sent, answered, one_by_one, done, done_at,
                  syndrome, vendor, rendezvous, tag_index);
    HCASIM_FIELDS_SINCE(11, a, due);
    HCASIM_FIELDS_SINCE(15, a, silent_flush);
  }
};

struct SendWqe : SendWqeHead {
  std::vector<Sge> sges;
  // Inline data; UMR: all behind the control segment; masked atomic: operands.
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint8_t> trailer;  // SQ: what goes behind the packet (EthSeg::kInsertTrailer)

  void prefetch() const { prefetch_range(this, sizeof *this); }
  void prefetch_targets() const { prefetch_line(sges.data()); }

  // A frame: as many of its bytes lie in front of the sges, others are pieces among them.
  std::size_t inline_front() const {
    for (const Sge& sge : sges)
      if (sge.lkey == prm::kInvalidLkey) return sge.addr;
    return bytes.size();
  }

  template <class Archive>
  void list_state(Archive& a) {
    SendWqeHead::list_state(a);
    HCASIM_FIELDS(a, sges, bytes, trailer);
    if constexpr (Archive::kLoads)
      a.check((!inline_data || bytes.size() == length) && inline_head <= bytes.size(),
              "the WQE does not agree with its bytes");
  }

  // As new; the lists keep their memory.
  void clear() {
    // From one that lies in memory: a copy of what is only just being made waits for the processor's stores.
    static constexpr SendWqeHead fresh{};
    static_cast<SendWqeHead&>(*this) = fresh;
    sges.clear();
    bytes.clear();
    trailer.clear();
  }
};

// The WQEs between fetch and completion, oldest first: a ring whose entries keep their buffers.
class SendWindow {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  SendWqe& operator[](std::size_t i) { return ring_[(head_ + i) & (ring_.size() - 1)]; }
  const SendWqe& operator[](std::size_t i) const { return ring_[(head_ + i) & (ring_.size() - 1)]; }
  SendWqe& front() { return (*this)[0]; }
  void pop() {
    head_ = (head_ + 1) & (ring_.size() - 1);
    --size_;
  }
  void pop_back() { --size_; }
  // A fresh entry at the end.
  SendWqe& push() {
    if (size_ == ring_.size()) grow();
    SendWqe& w = ring_[(head_ + size_++) & (ring_.size() - 1)];
    w.clear();
    return w;
  }
  void clear() {
    ring_.clear();
    ring_.shrink_to_fit();
    head_ = size_ = 0;
  }
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets) {
      clear();
    } else if constexpr (Archive::kLoads) {
      clear();
      a.list("wqes", [&](auto read) { read(push()); });
    } else if constexpr (Archive::kStores) {
      a.list("wqes", [&](auto write) {
        for (std::size_t i = 0; i < size_; ++i) write((*this)[i]);
      });
    } else {
      for (std::size_t i = 0; i < size_; ++i) a("wqe", (*this)[i]);
    }
  }

 private:
  void grow() {
    std::vector<SendWqe> bigger(ring_.empty() ? 4 : ring_.size() * 2);
    for (std::size_t i = 0; i < size_; ++i) bigger[i] = std::move((*this)[i]);
    ring_ = std::move(bigger);
    head_ = 0;
  }
  std::vector<SendWqe> ring_;  // a power of two
  std::size_t head_ = 0, size_ = 0;
};

// Packets of a QP that wait for its context, until when.
struct Parked {
  unsigned count = 0;
  Time until = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, count, until);
  }
};

struct RequesterState {
  // WQEBB counters, 16 bits free-running
  std::uint16_t db_counter = 0;      // posted: last read from the DBR
  std::uint16_t fetched = 0;         // next WQEBB to fetch
  bool doorbell = false;             // a doorbell came since the DBR was read ...
  bool doorbell_named = false;       // ... from the driver, with the index of
  std::uint16_t doorbell_index = 0;  // a WQE that the DBR then must be past
  SendWindow window;                 // fetched, not completed
  std::size_t next_to_send = 0;      // index into window
  std::deque<SendWqe> own;           // of the HCA itself: go into the window before those of the SQ
  std::uint32_t next_serial = 0;

  // Firmware sets next_psn (and una_psn alike) at RTR2RTS from qpc.next_send_psn.
  std::uint32_t next_psn = 0;  // of the next new packet
  std::uint32_t una_psn = 0;   // oldest not acknowledged
  std::uint32_t inflight_reads = 0;
  std::uint32_t since_ack_req = 0;  // packets sent since the last with AckReq
  std::uint32_t rewound_at = ~0u;   // PSN of the last retry: later signs of the same loss start no other

  // DCI: the connection in use.
  bool dc_connected = false;
  prm::AvSeg dc_target{};
  std::uint32_t dc_first_psn = 0;

  std::uint8_t retries_left = 7, rnr_left = 7;
  Time last_ready = 0;      // packets of one QP leave in order
  Time unit_until = 0;      // one transmit unit works on it
  Time rx_until = 0;        // responses of one QP are taken in order
  Parked parked;            // responses
  Time context_due = 0;     // its context was not on the chip and comes then; 0: no turn waits for it
  Time timer_due = kNever;  // ACK timeout, absolute
  bool timer_queued = false;
  Time rnr_until = 0;        // nothing is sent before this
  Time turn_at = kNever;     // earliest turn asked of the scheduler
  bool port_queued = false;  // in the scheduler's queue for the port
  std::uint64_t epoch = next_epoch();

  // On-demand paging: what the payload to send, and the answer to a READ or atomic, waits for.
  PendingFault send_fault, response_fault;

  // DCI: streams that have failed and are not reset yet. What belongs to them is flushed.
  std::vector<std::uint16_t> errored_streams;
  bool stream_errored(std::uint16_t stream) const {
    return std::find(errored_streams.begin(), errored_streams.end(), stream) != errored_streams.end();
  }
  void stream_reset(std::uint16_t stream) {
    errored_streams.erase(std::remove(errored_streams.begin(), errored_streams.end(), stream),
                          errored_streams.end());
  }

  // The last BlueFlame burst, if its WQE has not been fetched yet.
  std::array<std::uint8_t, 256> blueflame{};
  unsigned blueflame_len = 0;  // bytes, 0 = none
  PagePace pages;              // of the message that is being sent

  // What each turn and each answer looks at: all in front of page faults (model/prefetch.h).
  void prefetch() const { prefetch_range(this, offsetof(RequesterState, send_fault)); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, db_counter, fetched, doorbell, doorbell_named, doorbell_index, window, next_to_send, own,
                  next_serial, next_psn, una_psn, inflight_reads, since_ack_req, rewound_at, dc_connected,
                  dc_target, dc_first_psn, retries_left, rnr_left, last_ready, unit_until, rx_until, parked,
                  context_due, timer_due, timer_queued, rnr_until, turn_at, port_queued, epoch, send_fault,
                  response_fault, errored_streams, blueflame, blueflame_len);
    HCASIM_FIELDS_SINCE(2, a, pages);
    if constexpr (Archive::kLoads)
      a.check(blueflame_len <= sizeof blueflame && next_to_send <= window.size(),
              "the send queue does not agree with itself");
  }
};

}  // namespace hcasim
#endif
