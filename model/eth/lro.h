// SPDX-License-Identifier: BSD-3-Clause
// Large receive offload: segments of one TCP connection that follow one another are held on the chip and go
// into the receive queue as one frame with one CQE (prm/cqe.h, LroCqe). A TIR asks for it (LroParams). The
// frames' bytes are written when the session ends, not as they come. Who decides which queue a frame is for,
// and takes the sessions into queues, is EthRx.
#ifndef HCASIM_MODEL_ETH_LRO_H
#define HCASIM_MODEL_ETH_LRO_H

#include <cstdint>
#include <functional>
#include <systemc>
#include <vector>

#include "model/ctx/eth.h"
#include "model/eth/headers.h"
#include "model/eth/rss.h"
#include "model/eth/tcp_segment.h"
#include "model/function/id.h"
#include "model/packet/packet.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "model/timed_queue.h"
#include "traces/lro_end.h"

namespace hcasim {

using traces::LroEnd;

struct LroSegment {
  PacketRef packet;
  TcpSegment tcp;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, packet);  // tcp is what its bytes say
    if constexpr (Archive::kLoads)
      a.check(packet && packet->kind == PacketKind::kEthernet &&
                  read_segment(packet->frame(), parse_frame(packet->frame(), packet->frame_len), tcp),
              "this is no segment of TCP");
  }
};

struct LroSession {
  std::uint64_t serial = 0;
  FunctionId function = 0;
  std::uint32_t tirn = 0, rqn = 0;
  std::uint64_t epoch = 0;  // of the RQ
  Time opened = 0, due = 0;
  std::uint32_t limit = 0;       // bytes of the TCP header and the data of all segments
  std::uint32_t ip_payload = 0;  // of these so far
  FrameHeaders headers;          // of the first frame: what its bytes say
  RssHash hash;
  std::uint32_t flow_tag = 0, metadata = 0;
  std::vector<LroSegment> segments;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, serial, function, tirn, rqn, epoch, opened, due, limit, ip_payload, flow_tag, metadata,
                  segments);
    if constexpr (Archive::kStores) a("hash", hash);  // by the TIR as it was then
    if constexpr (Archive::kLoads) {
      a.check(!segments.empty(), "a session has segments");
      headers = parse_frame(segments.front().packet->frame(), segments.front().packet->frame_len);
    }
  }
};

class Lro : public sc_core::sc_module {
 public:
  // At most, of a card; what comes then goes on alone. The cards' number is not public.
  static constexpr std::size_t kMostSessions = 64;
  // Of a session, since the CQE has eight bits for their number.
  static constexpr std::size_t kMostSegments = 255;
  // Data that a segment must have for a session to begin with it (lro_min_mss_size): as many as there may be
  // of that size make the longest message that a TIR can ask for.
  static constexpr std::uint32_t kMinSegment = 256;
  // tirc.lro_timeout_period_usecs is one of these; the driver takes the first from 32 on (en.h).
  static constexpr std::uint32_t kPeriods[4] = {8, 16, 32, 1024};

  // Takes the session's frames into its queue.
  using Deliver = std::function<void(Time, LroSession&)>;
  // Its segments are lost.
  using Lose = std::function<void(Time, LroSession&)>;
  Lro(const sc_core::sc_module_name& name, traces::Tracer& tracer, FaultSink& faults, Deliver deliver,
      Lose lose);

  struct Arriving {
    const Tir& tir;
    const Rq& rq;
    const PacketRef& packet;
    const FrameHeaders& headers;
    RssHash hash;
    std::uint32_t flow_tag, metadata;
    bool checked;  // its checksums are right
  };
  // A frame for an RQ that is ready, by a TIR that asks for LRO. True: it is kept; else it is for its queue
  // at once, behind what its connection has had here.
  bool take(Time t, const Arriving& frame);
  // The TIR's parameters change, or it goes.
  void tir_changed(Time t, FunctionId f, std::uint32_t tirn);
  // The queue is not ready any more.
  void rq_gone(Time t, FunctionId f, std::uint32_t rqn);
  void forget(FunctionId f);
  // All of the function's are put together now.
  void settle(Time t, FunctionId f);

  std::uint64_t sessions() const { return ended_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, sessions_, timeouts_);
    a.lasting("serial", serial_);
    a.lasting("ended", ended_);
  }

 private:
  struct Timeout {
    std::uint64_t serial;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, serial);
    }
  };
  using Sessions = std::vector<LroSession>;

  Sessions::iterator find(const Arriving& frame);
  static bool joins(const LroSession& s, const Arriving& frame, const TcpSegment& next, LroEnd& why_not);
  void open(Time t, const Arriving& frame, const TcpSegment& first);
  void end(Time t, Sessions::iterator session, LroEnd why);

  traces::Tracer& tracer_;
  Deliver deliver_;
  Lose lose_;
  Sessions sessions_;  // in the order in which they began
  TimedQueue<Timeout> timeouts_;
  std::uint64_t serial_ = 0, ended_ = 0;
};

}  // namespace hcasim
#endif
