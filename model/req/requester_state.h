// SPDX-License-Identifier: BSD-3-Clause
// Run-time state of a QP's send side (IBTA 9.7.2-9.7.5, requester).
#ifndef HCASIM_MODEL_REQ_REQUESTER_STATE_H
#define HCASIM_MODEL_REQ_REQUESTER_STATE_H

#include <cstdint>
#include <deque>
#include <vector>

#include "model/time.h"

namespace hcasim {

struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t lkey = 0;
  std::uint32_t len = 0;  // bytes
};

// A parsed send WQE, kept from fetch until its completion.
struct SendWqe {
  std::uint8_t opcode = 0;      // WQE opcode (model/prm/wqe.h)
  std::uint16_t counter = 0;    // wqe_index of the control segment: goes into the CQE
  std::uint16_t next = 0;       // WQEBB counter behind this WQE
  std::uint32_t serial = 0;     // count of WQEs of this QP since reset, for traces
  bool signaled = false, solicited = false, fence = false, strong_fence = false;
  bool inline_data = false;
  std::uint32_t imm = 0;        // immediate or R_Key to invalidate
  std::uint64_t raddr = 0;
  std::uint32_t rkey = 0;
  std::uint64_t swap_add = 0, compare = 0;
  std::uint32_t xrc_srqn = 0;
  std::vector<Sge> sges;
  std::vector<std::uint8_t> inline_bytes;  // inline data; UMR: the WQE behind the control segment
  // UD
  std::uint32_t av_qpn = 0, av_qkey = 0;
  std::uint8_t av[48] = {};
  // Packets: PSNs [first_psn, first_psn + packets)
  std::uint32_t length = 0;     // bytes
  std::uint32_t first_psn = 0;
  std::uint32_t packets = 1;
  std::uint32_t sent = 0;       // packets sent so far (read, atomic: 1 = request sent)
  std::uint32_t resp_packets = 0;  // read, atomic: response packets taken so far
  std::uint8_t error = 0;       // syndrome found while parsing; raised when its turn comes
  std::uint8_t vendor = 0;
  bool done = false;            // local operations: executed
};

struct RequesterState {
  // WQEBB counters, 16 bits free-running
  std::uint16_t db_counter = 0;   // posted: last read from the DBR
  std::uint16_t fetched = 0;      // next WQEBB to fetch
  bool doorbell = false;          // a doorbell came since the DBR was read
  std::deque<SendWqe> window;     // fetched, not completed; front is the oldest
  std::size_t next_to_send = 0;   // index into window
  std::uint32_t next_serial = 0;

  std::uint32_t next_psn = 0;     // of the next new packet
  std::uint32_t una_psn = 0;      // oldest unacknowledged
  std::uint32_t inflight_reads = 0;
  std::uint32_t ssn = 0, msn = 0;

  std::uint8_t retries_left = 7, rnr_left = 7;
  Time timer_due = kNever;        // ACK timeout, absolute
  bool timer_queued = false;
  Time rnr_until = 0;             // no send before this
  bool scheduled = false;         // in the scheduler's ready list
  bool in_turn = false;
  std::uint64_t epoch = 0;        // grows at each reset: stale timers are told by it
};

}  // namespace hcasim
#endif
