// SPDX-License-Identifier: BSD-3-Clause
#include "model/ctx/qp.h"

#include <algorithm>

#include "model/state/state.h"
#include "prm/cqe.h"
#include "prm/wqe.h"

namespace hcasim {

namespace {

using prm::WqeOp;

std::uint64_t pieces(std::uint64_t bytes, std::uint64_t of) {
  return std::max<std::uint64_t>(1, bytes / of + (bytes % of != 0 ? 1 : 0));
}

// As parse_frame_wqe() makes it.
bool frames_are_sound(const SendWqe& w) {
  const std::uint64_t inline_bytes = w.bytes.size();
  const bool within = std::all_of(w.sges.begin(), w.sges.end(), [&](const Sge& sge) {
    return sge.lkey != prm::kInvalidLkey || (sge.addr <= inline_bytes && sge.len <= inline_bytes - sge.addr);
  });
  if (!within) return false;
  if (w.many_frames()) return w.packets == w.sges.size();
  if (!w.large_send()) return w.packets == 1 && w.inline_front() <= w.length;
  return w.eth.mss != 0 && w.inline_front() <= w.length &&
         w.packets == pieces(w.length - w.inline_front(), w.eth.mss);
}

bool atomic_is_sound(const SendWqe& w) {
  if (!w.is_masked_atomic()) return w.length == 8;
  const std::size_t bytes = prm::masked_atomic_size(w.opmod);
  return bytes <= prm::kMaxAtomicBytes && w.length == bytes &&
         w.bytes.size() == bytes * prm::masked_atomic_operands(w.opcode == WqeOp::kMaskedCs);
}

// As parse_send_wqe() and Requester::start() make it.
bool message_is_sound(const Qp& qp, const SendWqe& w) {
  constexpr std::uint64_t kLongest = 1u << 31;
  const unsigned mtu = sends_datagrams(qp.type) ? kMaxPayload : qp.mtu;
  if (w.length > kLongest || w.answered >= w.packets || (w.is_atomic() && !atomic_is_sound(w))) return false;
  if (!w.started) return w.sent == 0 && w.answered == 0;
  return w.packets == pieces(w.length, mtu) && (!sends_datagrams(qp.type) || w.packets == 1);
}

// waits: none of it, or not all of it, has been sent.
bool is_sound(const Qp& qp, const SendWqe& w, bool waits) {
  if (w.rendezvous == SendWqe::Rendezvous::kRead && w.bytes.size() < sizeof(prm::Tmh) + sizeof(prm::Rvh))
    return false;
  // What is not sent any more; of a message that has begun, answers may still come.
  const bool frames = qp.type == QpType::kSq;
  if (w.done || (w.syndrome != 0 && (frames || !w.started))) return true;
  if (w.is_local()) return w.opcode != WqeOp::kDump || w.length <= kMaxFrame;
  if (w.sent > w.packets || (waits && w.packets != 0 && w.sent == w.packets)) return false;
  return frames ? frames_are_sound(w) : message_is_sound(qp, w);
}

}  // namespace

bool Qp::sends_are_sound() const {
  for (std::size_t i = 0; i < req.window.size(); ++i)
    if (!is_sound(*this, req.window[i], i >= req.next_to_send)) return false;
  return std::all_of(req.own.begin(), req.own.end(),
                     [&](const SendWqe& w) { return is_sound(*this, w, true); });
}

ResponderState new_responder_state() { return {}; }

void QpTable::clear() { reset_state(*this); }

}  // namespace hcasim
