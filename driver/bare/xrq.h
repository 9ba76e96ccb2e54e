// SPDX-License-Identifier: BSD-3-Clause
// Tag matching for the bare driver: an XRQ with its matching list and its command QP.
#ifndef HCASIM_DRIVER_BARE_XRQ_H
#define HCASIM_DRIVER_BARE_XRQ_H

#include "driver/bare/qp.h"

namespace hcasim::bare {

struct TagQueueOptions {
  SrqOptions srq;
  unsigned log_tags = 4;  // places of the matching list
  bool rendezvous = true;
  std::uint32_t user_index = 0xffffff;
};

// An operation on the matching list.
struct TagOp {
  prm::TmListOp op = prm::TmListOp::kAppend;
  std::uint16_t index = 0;  // append: place that the next append will use; remove: the entry
  std::uint64_t tag = 0, mask = ~std::uint64_t{0};
  Sge buffer;         // len 0: none
  bool sync = false;  // reports how many unexpected messages were `handled`
  std::uint16_t handled = 0;
  bool signaled = true;
};

class TagQueue {
 public:
  // `cq` receives the completions of the list and of the messages.
  TagQueue(Device& device, const Pd& pd, Cq& cq) : TagQueue(device, pd, cq, TagQueueOptions{}) {}
  TagQueue(Device& device, const Pd& pd, Cq& cq, const TagQueueOptions& options);

  Srq& srq() { return srq_; }  // the untagged buffers
  Qp& command() { return command_; }
  void post(const TagOp& op);
  // Appends to the next place (in turn) and returns it. Consumes the operation's completion, which must be
  // successful.
  std::uint16_t append(std::uint64_t tag, const Sge& buffer, std::uint64_t mask = ~std::uint64_t{0});
  // Performs a SYNC; returns hw_phase_cnt of its completion.
  std::uint16_t synchronize(std::uint16_t handled);

 private:
  Cq& cq_;
  TagQueueOptions options_;
  Srq srq_;
  Qp command_;
  std::uint16_t next_ = 0;
};

// The contents of a list operation's CQE.
bool tag_op_success(const Completion& c);
std::uint16_t tag_hw_phase(const Completion& c);
// The header in the CQE of a matched message.
prm::Tmh tag_header(const Completion& c);

}  // namespace hcasim::bare
#endif
