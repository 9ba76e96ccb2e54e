// SPDX-License-Identifier: BSD-3-Clause
// The ends of a measurement: pairs of QPs, memory, and the WQEs that they post.
#ifndef HCASIM_DRIVER_TIMING_END_H
#define HCASIM_DRIVER_TIMING_END_H

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "driver/bare/qp.h"
#include "driver/timing/cards.h"

namespace hcasim::timing {

// A QP with its memory. Messages go from `out` to the peer's `in` (reads: the other way).
struct Lane {
  std::unique_ptr<bare::Qp> qp;
  std::size_t base = 0;  // start of its part of the end's memory
  const Lane* peer = nullptr;
  bare::Av av;  // UD: the peer
  std::uint64_t posted = 0, completed = 0, received = 0;
};

// One side of a measurement: the QPs of one sender, or those of the receiver that belong to it.
class End {
 public:
  // threads: with CQs of their own.
  End(bare::Device& device, const Setup& setup);

  bare::Device& device() { return device_; }
  std::vector<Lane>& lanes() { return lanes_; }
  bare::Cq& send_cq(unsigned thread) { return *send_cqs_[thread]; }
  bare::Cq& recv_cq(unsigned thread) { return *recv_cqs_[thread]; }
  Lane& lane_of(std::uint32_t qpn) { return lanes_[by_qpn_.at(qpn)]; }

  std::size_t number(const Lane& lane) const { return static_cast<std::size_t>(&lane - lanes_.data()); }

  static void connect(End& a, End& b, const Setup& setup);
  // Posts `count` messages and rings once. toggle: value of the last byte, for which the other end polls.
  void post(Lane& lane, unsigned count, std::uint8_t toggle = 0);
  // Posts receive WQEs with one doorbell record update.
  void post_receives(Lane& lane, unsigned count);
  unsigned receive_queue() const { return 1u << log_rq_; }
  // The last byte of the message that arrives at this lane.
  const std::uint8_t* last_byte(const Lane& lane) const;

 private:
  // Offset of a message in its lane's part: each on the next page, and at the next place of each page in the
  // next round, so that a large span needs many translations.
  std::size_t slot(std::uint64_t message) const {
    const std::uint64_t i = message % slots_;
    if (stride_ * slots_ <= bare::kPage || stride_ >= bare::kPage) return i * stride_;
    const std::size_t in_page = bare::kPage / stride_, pages = slots_ / in_page;
    const std::size_t jump = pages % 11 != 0 ? 11 : 1;
    return i * jump % pages * bare::kPage + i / pages * stride_;
  }
  // The one of n that a message uses: QPs start at different ones.
  std::size_t turn(const Lane& lane, std::uint64_t message, std::size_t n) const {
    return (number(lane) * std::max<std::size_t>(1, n / setup_.qps) + message) % n;
  }

  bare::Device& device_;
  const Setup setup_;
  unsigned log_rq_;
  std::size_t stride_, slots_, lane_bytes_;
  bare::Pd pd_;
  std::vector<std::unique_ptr<bare::Cq>> send_cqs_, recv_cqs_;
  bare::Buffer out_, in_;
  std::vector<std::unique_ptr<bare::Mr>> out_mrs_, in_mrs_;
  std::vector<Lane> lanes_;
  std::unordered_map<std::uint32_t, std::size_t> by_qpn_;
  End* other_ = nullptr;
  bare::SendWr wr_;
  std::vector<bare::Sge> recv_sge_;
};

// The HCAs with the ends connected.
class Stage {
 public:
  explicit Stage(const Setup& setup);  // resolved; throws
  bare::Machine& machine() { return cards_.machine(); }

 private:
  Cards cards_;

 public:
  // senders[i] is connected to receivers[i]. They are destroyed before the machine.
  std::vector<std::unique_ptr<End>> senders, receivers;
};

}  // namespace hcasim::timing
#endif
