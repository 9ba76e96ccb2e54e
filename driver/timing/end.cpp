// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/end.h"

#include <algorithm>

namespace hcasim::timing {

using namespace bare;

namespace {

constexpr std::size_t kLine = 64;     // bytes: minimum distance between places of messages and of atomics
constexpr std::uint32_t kGrh = 40;    // bytes before a datagram in memory
constexpr unsigned kLogReceives = 9;  // perftest's rx-depth

std::size_t stride_of(const Setup& s) {
  return (s.size + (s.transport == Transport::kUd ? kGrh : 0) + kLine - 1) / kLine * kLine;
}

// Whole pages, from one page on.
std::size_t slots_of(const Setup& s) {
  const std::size_t stride = stride_of(s), in_page = kPage / stride, slots = s.span / stride;
  if (in_page == 0 || slots < in_page) return std::max<std::size_t>(1, slots);
  return s.span / kPage * in_page;
}

// Bytes of a QP's part of the memory.
std::size_t lane_bytes_of(const Setup& s) {
  const std::size_t stride = stride_of(s), slots = slots_of(s), in_page = kPage / stride;
  return in_page == 0 || slots < in_page ? stride * slots : slots / in_page * kPage;
}

bool is_inline(const Setup& s) {
  return !s.pulls() && s.inline_limit >= 0 && s.size <= static_cast<unsigned>(s.inline_limit);
}

// 64-byte units of a send WQE, as an upper bound: control, address vector or remote address, data.
unsigned wqebbs_of(const Setup& s) {
  const unsigned data = is_inline(s) ? (s.size + 4 + 15) / 16 * 16 : 16;
  return (16 + 48 + 16 + data + 63) / 64;
}

WqeOp op_of(Verb verb) {
  switch (verb) {
    case Verb::kWrite:
      return WqeOp::kRdmaWrite;
    case Verb::kSend:
      return WqeOp::kSend;
    case Verb::kRead:
      return WqeOp::kRdmaRead;
    case Verb::kFetchAdd:
      return WqeOp::kAtomicFa;
    case Verb::kCmpSwap:
      return WqeOp::kAtomicCs;
    case Verb::kUdp:  // of no QP
      break;
  }
  return WqeOp::kNop;
}

QpType type_of(Transport t) {
  return t == Transport::kRc ? QpType::kRc : t == Transport::kUc ? QpType::kUc : QpType::kUd;
}

std::unique_ptr<Cq> cq_of(Device& device, std::uint64_t entries, const Setup& setup) {
  CqOptions o;
  o.max_count = setup.cq_max_count;
  o.period_us = setup.cq_period;
  o.log_size = std::max(6u, log2_up(entries + 1));
  return std::make_unique<Cq>(device, o);
}

}  // namespace

End::End(Device& device, const Setup& setup)
    : device_(device),
      setup_(setup),
      log_rq_(setup.verb == Verb::kSend ? kLogReceives : 0),
      stride_(stride_of(setup)),
      slots_(slots_of(setup)),
      lane_bytes_(lane_bytes_of(setup)),
      pd_(device) {
  const std::uint64_t lanes = (setup.qps + setup.threads - 1) / setup.threads;
  for (unsigned t = 0; t < setup.threads; ++t) {
    send_cqs_.push_back(cq_of(device, lanes * setup.depth, setup));
    recv_cqs_.push_back(cq_of(device, lanes << log_rq_, setup));
  }
  const std::size_t bytes = std::max(lane_bytes_ * setup.qps, kLine * setup.addresses);
  out_ = device.memory().allocate(bytes);
  in_ = device.memory().allocate(bytes);
  for (unsigned i = 0; i < setup.mrs; ++i) {
    out_mrs_.push_back(std::make_unique<Mr>(device, Mr::of(pd_, out_)));
    in_mrs_.push_back(std::make_unique<Mr>(device, Mr::of(pd_, in_)));
  }
  QpOptions q;
  q.type = type_of(setup.transport);
  q.log_sq = std::max(2u, log2_up(std::uint64_t{setup.depth} * wqebbs_of(setup)));
  q.log_rq = log_rq_;
  q.log_rq_stride = 0;
  lanes_.resize(setup.qps);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const unsigned thread = static_cast<unsigned>(i % setup.threads);
    lanes_[i].qp = std::make_unique<Qp>(device, pd_, send_cq(thread), recv_cq(thread), q);
    lanes_[i].base = i * lane_bytes_;
    by_qpn_[lanes_[i].qp->qpn()] = i;
  }
  wr_.op = op_of(setup.verb);
  if (is_inline(setup))
    wr_.inline_data.assign(setup.size, 0x5a);
  else
    wr_.sges.resize(1);
  recv_sge_.resize(1);
}

void End::connect(End& a, End& b, const Setup& setup) {
  const auto aim = [&](End& from, End& to) {
    from.other_ = &to;
    for (std::size_t i = 0; i < from.lanes_.size(); ++i) {
      Lane& lane = from.lanes_[i];
      lane.peer = &to.lanes_[i];
      QpAttr attr;
      attr.mtu = setup.mtu;
      attr.remote_qpn = lane.av.qpn = lane.peer->qp->qpn();
      attr.log_outstanding_reads = log2_up(setup.reads);
      if (from.device_.ethernet()) {
        attr.roce.dgid = to.device_.roce_entry(to.device_.sgid_index()).gid;
        attr.roce.dmac = to.device_.mac();
        lane.av.roce = attr.roce;
      } else {
        attr.dlid = lane.av.dlid = to.device_.lid();
        if (setup.virtuals) {  // the LID is all functions' of the card
          const auto gid = to.device_.gid(0);
          std::copy(gid.begin(), gid.end(), attr.dgid.begin());
          lane.av.dgid = attr.dgid;
          attr.grh = lane.av.grh = true;
        }
      }
      lane.qp->connect(attr);
    }
  };
  aim(a, b);
  aim(b, a);
}

void End::post(Lane& lane, unsigned count, std::uint8_t toggle) {
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t message = lane.posted++;
    const std::size_t at = lane.base + slot(message), mr = turn(lane, message, setup_.mrs);
    const Mr& remote = *other_->in_mrs_[mr];
    wr_.raddr = remote.start() + (setup_.atomic() ? turn(lane, message, setup_.addresses) * kLine : at);
    wr_.rkey = remote.key();
    wr_.signaled = lane.posted % setup_.cq_mod == 0;
    wr_.av = lane.av;
    wr_.swap_add = 1;
    if (!wr_.inline_data.empty()) {
      wr_.inline_data.back() = toggle;
    } else {
      // Data that is read goes to the receive area.
      const Mr& local = setup_.pulls() ? *in_mrs_[mr] : *out_mrs_[mr];
      wr_.sges[0] = {local.start() + at, local.key(), setup_.size};
      if (!setup_.pulls()) out_.data()[at + setup_.size - 1] = toggle;
    }
    lane.qp->post(wr_, false);
  }
  if (count == 1 && setup_.blueflame)
    lane.qp->ring_blueflame();
  else
    lane.qp->ring_doorbell();
}

void End::post_receives(Lane& lane, unsigned count) {
  const bool ud = setup_.transport == Transport::kUd;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint16_t message = lane.qp->rq_producer();
    const Mr& local = *in_mrs_[message % setup_.mrs];
    recv_sge_[0] = {local.start() + lane.base + slot(message), local.key(), setup_.size + (ud ? kGrh : 0)};
    lane.qp->post_recv(recv_sge_, false);
  }
  lane.qp->ring_rq();
}

const std::uint8_t* End::last_byte(const Lane& lane) const {
  const std::size_t grh = setup_.transport == Transport::kUd ? kGrh : 0;
  return in_.data() + lane.base + slot(lane.received) + grh + setup_.size - 1;
}

namespace {

// Bytes of memory that both ends of all QPs take.
std::size_t memory_of(const Setup& s) {
  const std::size_t of_lane = 2 * lane_bytes_of(s) + (std::size_t{128} << log2_up(s.depth * wqebbs_of(s))) +
                              (std::size_t{128} << kLogReceives) + (std::size_t{16} << 10);
  return 2 * s.senders * s.qps * of_lane + std::size_t{64} * s.addresses;
}

}  // namespace

Stage::Stage(const Setup& s) : cards_(s, memory_of(s)) {
  for (unsigned i = 0; i < s.senders; ++i) {
    senders.push_back(std::make_unique<End>(cards_.sender(i), s));
    receivers.push_back(std::make_unique<End>(cards_.receiver(), s));
    End::connect(*senders[i], *receivers[i], s);
  }
}

}  // namespace hcasim::timing
