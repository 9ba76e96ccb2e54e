// SPDX-License-Identifier: BSD-3-Clause
// Run-time state of a QP's receive side (IBTA 9.7.3-9.7.5, responder).
#ifndef HCASIM_MODEL_RESP_RESPONDER_STATE_H
#define HCASIM_MODEL_RESP_RESPONDER_STATE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "model/ctx/guest_ring.h"
#include "model/req/requester_state.h"
#include "model/resp/atomic_op.h"
#include "model/state/fields.h"
#include "model/state/qp_tags.h"
#include "model/time.h"
#include "prm/cqe.h"

namespace hcasim {

// A read or atomic request kept for its response and for duplicates (IBTA 9.7.5.1.1, 9.7.5.1.2).
struct ResponderResource {
  bool atomic = false;
  bool masked = false;  // atomic: a masked one
  std::uint32_t first_psn = 0;
  std::uint32_t packets = 1;
  std::uint32_t sent = 0;  // response packets sent
  std::uint64_t va = 0;
  std::uint32_t rkey = 0;
  std::uint32_t length = 0;          // bytes
  AtomicOperands::Words original{};  // atomic: value before the operation
  std::uint32_t msn = 0;
  std::uint32_t pd = 0;
  Time ready = 0;    // no response leaves before this
  Time written = 0;  // nor before what came before it, and an atomic's own result, are on their way to memory
  std::uint32_t trace_qpn = 0, wqe_serial = 0;

  bool parked = false;    // waits for the requester to ask again (page fault)
  bool answered = false;  // in full, once at least; kept for a duplicate, which makes it be sent again
  // What the request that came last asks for: a READ that is asked for again from its middle on is a message
  // of its own.
  std::uint32_t asked_from = 0;  // its first response packet
  std::uint32_t unasked = 0;     // response packets at the end that it does without
  bool done() const { return sent + unasked >= packets; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, atomic, masked, first_psn, packets, sent, va, rkey, length, original, msn, pd, ready,
                  trace_qpn, wqe_serial, parked, answered);
    HCASIM_FIELDS_SINCE(10, a, written);
    HCASIM_FIELDS_SINCE(18, a, asked_from, unasked);
    state::qp_tags(a, trace_qpn);
    if constexpr (Archive::kLoads)
      a.check(!masked || length == 4 || length == 8 || length == 16 || length == 32,
              "an atomic operand has no such size");
  }
};

// A receive WQE taken from the RQ or SRQ for the message that is arriving.
struct RecvWqe {
  bool valid = false;
  std::uint16_t counter = 0;  // RQ index or SRQ WQE index
  std::uint32_t pd = 0;
  std::uint32_t srqn = 0;  // of the SRQ it was taken from, 0: the QP's own RQ
  std::vector<Sge> sges;
  std::uint64_t capacity = 0;  // bytes

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, valid, counter, pd, srqn, sges, capacity);
  }
};

struct ResponderState {
  // Firmware sets it at INIT2RTR from qpc.next_rcv_psn.
  std::uint32_t expected_psn = 0;
  std::uint32_t msn = 0;

  // XRC: the SRQ that the request names. Its PD is the one that keys are checked against.
  std::uint32_t xrc_srqn = 0, xrc_pd = 0;

  // Message in progress
  enum class Message : std::uint8_t { kNone, kSend, kWrite } message = Message::kNone;
  std::uint64_t received = 0;  // bytes of it
  std::uint64_t write_va = 0;  // RDMA WRITE: address of its first byte
  std::uint32_t write_rkey = 0;
  std::uint64_t write_len = 0;  // bytes announced
  Time landed = 0;              // when its payload so far is visible
  bool in_cqe = false;          // its payload goes into the CQE
  RecvWqe wqe;
  // The same message at a tag-matching SRQ. With a match `wqe` is the tagged buffer.
  struct Tagged {
    prm::TmOp op{};  // of its last CQE; 0: no such message
    bool matched = false;
    std::uint16_t index = 0;                // in the list
    std::uint32_t skip = 0;                 // bytes of its first packet that are not for the buffer
    std::array<std::uint8_t, 16> header{};  // TMH

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, op, matched, index, skip, header);
      if constexpr (Archive::kLoads) a.check(skip == 0 || skip == 16, "there is no such header");
    }
  } tagged;

  // RQ
  std::uint16_t rq_producer = 0;  // last read from the DBR
  std::uint16_t rq_consumer = 0;
  ReadAhead rq_ahead;
  Time poll_since = kNever;  // flush of late posts: when it began

  // Acknowledgements
  bool nak_sent = false;  // sequence error NAK outstanding: silent until the expected PSN
  bool ack_pending = false;
  bool ack_queued = false;
  std::uint32_t ack_trace_qpn = 0, ack_serial = 0;
  Time last_ack = 0;
  Time last_ready = 0;  // replies of one QP leave in order
  Time unit_until = 0;  // one transmit unit works on its responses
  Time rx_until = 0;    // one receive unit works on its requests
  Parked parked;        // requests

  std::deque<ResponderResource> resources;  // oldest first, at most 2^log_rra_max
  PendingFault fault;                       // on-demand paging
  Time turn_at = kNever;
  bool port_queued = false;
  bool comm_established = false;

  // A refusal, and a NAK of either kind, wait until the responses owed before it have left.
  bool rnr_owed = false, sequence_owed = false;
  std::uint32_t rnr_trace_qpn = 0, rnr_serial = 0;  // of the NAK
  bool failing = false;
  std::uint32_t fail_psn = 0;
  std::uint8_t fail_code = 0, fail_event = 0;
  std::uint32_t fail_trace_qpn = 0, fail_serial = 0;

  PagePace pages;        // of the READ that is being answered
  Time atomic_done = 0;  // the last one

  void prefetch() const { prefetch_range(this, offsetof(ResponderState, pages)); }  // (model/prefetch.h)

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, expected_psn, msn, xrc_srqn, xrc_pd, message, received, write_va, write_rkey, write_len,
                  landed, in_cqe, wqe, tagged, rq_producer, rq_consumer, rq_ahead, poll_since, nak_sent,
                  ack_pending, ack_queued, ack_trace_qpn, ack_serial, last_ack, last_ready, unit_until,
                  rx_until, parked, resources, fault, turn_at, port_queued, comm_established, rnr_owed,
                  rnr_trace_qpn, rnr_serial, failing, fail_psn, fail_code, fail_event, fail_trace_qpn);
    HCASIM_FIELDS(a, fail_serial);
    HCASIM_FIELDS_SINCE(2, a, pages);
    HCASIM_FIELDS_SINCE(10, a, atomic_done);
    HCASIM_FIELDS_SINCE(18, a, sequence_owed);
    state::qp_tags(a, ack_trace_qpn, rnr_trace_qpn, fail_trace_qpn);
  }
};

// That of a QP which has done nothing yet. Not in line: GCC 12 takes members of the temporary for
// uninitialized when all of it is.
ResponderState new_responder_state();

}  // namespace hcasim
#endif
