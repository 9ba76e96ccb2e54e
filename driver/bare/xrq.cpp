// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/xrq.h"

#include <cstring>

namespace hcasim::bare {

namespace {

SrqOptions srq_options(const TagQueueOptions& o, const Cq& cq) {
  SrqOptions s = o.srq;
  s.xrq = true;
  s.cqn = cq.cqn();
  s.user_index = o.user_index;
  s.log_tags = o.log_tags;
  s.rendezvous = o.rendezvous;
  return s;
}

template <class T>
T head(const Completion& c) {
  T t;
  std::memcpy(&t, &c.raw, sizeof t);
  return t;
}

}  // namespace

TagQueue::TagQueue(Device& device, const Pd& pd, Cq& cq, const TagQueueOptions& o)
    : cq_(cq),
      options_(o),
      srq_(device, pd, srq_options(o, cq)),
      command_(device, pd, cq, cq, QpOptions{}, &srq_) {
  QpAttr a;
  a.remote_qpn = command_.qpn();
  command_.connect(a);
}

void TagQueue::post(const TagOp& o) {
  const bool append = o.op == prm::TmListOp::kAppend;
  const unsigned ds = append ? 4 : 3;
  std::vector<std::uint8_t> wqe(ds * prm::kDs);
  auto* ctrl = reinterpret_cast<prm::CtrlSeg*>(wqe.data());
  ctrl->set(prm::WqeOp::kTagMatch, command_.sq_producer(), command_.qpn(), ds, prm::kCeOnError);
  auto* seg = reinterpret_cast<prm::TmSeg*>(wqe.data() + sizeof *ctrl);
  seg->opcode = static_cast<std::uint8_t>(static_cast<unsigned>(o.op) << 4);
  seg->flags =
      static_cast<std::uint8_t>((o.sync ? prm::TmSeg::kSwCnt : 0) | (o.signaled ? prm::TmSeg::kCqeReq : 0));
  seg->index = o.index;
  seg->sw_cnt = o.handled;
  seg->append_tag = o.tag;
  seg->append_mask = o.mask;
  if (append) {
    auto* data = reinterpret_cast<prm::DataSeg*>(wqe.data() + sizeof *ctrl + sizeof *seg);
    data->byte_count = o.buffer.len;
    data->lkey = o.buffer.len != 0 ? o.buffer.lkey : prm::kInvalidLkey;
    data->addr = o.buffer.addr;
  }
  command_.post_raw(wqe, 1);
}

std::uint16_t TagQueue::append(std::uint64_t tag, const Sge& buffer, std::uint64_t mask) {
  const std::uint16_t place = next_;
  next_ = static_cast<std::uint16_t>((next_ + 1) & ((1u << options_.log_tags) - 1));
  TagOp o;
  o.index = next_;
  o.tag = tag;
  o.mask = mask;
  o.buffer = buffer;
  post(o);
  const Completion c = cq_.wait_one();
  if (c.op != prm::CqeOp::kNoPacket || c.raw.app_op != static_cast<std::uint8_t>(prm::TmOp::kAppend))
    throw BareError("append to the matching list: " + c.text());
  return place;
}

std::uint16_t TagQueue::synchronize(std::uint16_t handled) {
  TagOp o;
  o.op = prm::TmListOp::kNop;
  o.sync = true;
  o.handled = handled;
  post(o);
  const Completion c = cq_.wait_one();
  if (c.op != prm::CqeOp::kNoPacket || c.raw.app_op != static_cast<std::uint8_t>(prm::TmOp::kNoop))
    throw BareError("synchronizing the matching list: " + c.text());
  return tag_hw_phase(c);
}

bool tag_op_success(const Completion& c) { return (head<prm::TmCqe>(c).success & prm::TmCqe::kSuccess) != 0; }
std::uint16_t tag_hw_phase(const Completion& c) { return head<prm::TmCqe>(c).hw_phase_cnt; }
prm::Tmh tag_header(const Completion& c) { return head<prm::Tmh>(c); }

}  // namespace hcasim::bare
