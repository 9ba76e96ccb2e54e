// SPDX-License-Identifier: BSD-3-Clause
// Tag matching: operations on matching lists (WQEs of an XRQ's command QP), arriving tagged messages,
// rendezvous (RDMA READ by the HCA, then the message that tells the sender of its end), and their
// completions. The responder asks it about arriving messages and moves the data of eager ones; the requester
// brings it WQEs, and the end of the HCA's own requests.
#ifndef HCASIM_MODEL_TM_TAG_UNIT_H
#define HCASIM_MODEL_TM_TAG_UNIT_H

#include <cstdint>

#include "model/ctx/qp.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

namespace traces {
class Tracer;
}
class CqUnit;
class QpTable;
class Scheduler;
struct Completion;

class TagUnit {
 public:
  struct Blocks {
    // The chip's
    traces::Tracer& tracer;
    Scheduler& scheduler;  // for the HCA's own requests of a rendezvous
    // The function's
    PerFunction<QpTable> qps;
    CqUnit& cqs;
  };
  explicit TagUnit(const Blocks& blocks) : blocks_(blocks) {}

  // The SRQ of the QP if it matches tags, or null.
  Srq* queue_of(const Qp& qp);

  // A TAG_MATCHING WQE (its bytes behind the control segment). False: malformed, out of the list, or the QP's
  // SRQ has none.
  bool execute(Time t, Qp& qp, const SendWqe& wqe);

  // The first packet of a message, before a receive WQE is taken.
  enum class Arrival : std::uint8_t {
    kMatched,     // qp.resp.wqe is the tagged buffer: the data go there, as qp.resp.tagged says
    kDone,        // a rendezvous has been started: nothing is left to do with this message
    kUnmatched,   // for an untagged buffer; tell accepted() when there was one
    kNotForTags,  // the QP's SRQ matches no tags
  };
  Arrival arrive(Time t, Qp& qp, const Packet& packet, bool last);
  // The message has its untagged buffer.
  void accepted(Qp& qp);
  // Adds to the last completion of a message what it says of tags.
  static void complete_message(Qp& qp, Completion& c);
  // The data of a matched message will not come.
  void cancel(Time t, Qp& qp, std::uint16_t index);

  // One of our own requests (SendWqe::rendezvous) has ended.
  void request_done(Time t, Qp& qp, const SendWqe& wqe, bool good);

  std::uint64_t matched() const { return matched_; }
  std::uint64_t unexpected() const { return unexpected_; }
  std::uint64_t refused() const { return refused_; }
  void clear() { matched_ = unexpected_ = refused_ = 0; }

  // Whether tags are matched for what the QP receives.
  bool serves(const Qp& qp) { return queue_of(qp) != nullptr; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, matched_, unexpected_, refused_);
  }

 private:
  void post(Time t, const Qp& qp, const Srq& xrq, Completion& c, prm::TmOp op, std::uint16_t index);
  bool start_rendezvous(Time t, Qp& qp, const Srq& xrq, const TagEntry& entry, const Packet& packet);

  Blocks blocks_;
  std::uint64_t matched_ = 0, unexpected_ = 0, refused_ = 0;
};

}  // namespace hcasim
#endif
