// SPDX-License-Identifier: BSD-3-Clause
#include "model/wqe/parse.h"

#include <algorithm>
#include <cstring>

#include "prm/cqe.h"
#include "prm/header_argument.h"

namespace hcasim {

using prm::WqeOp;

namespace {

template <class T>
bool take(const std::uint8_t* bytes, std::size_t len, std::size_t& at, T& out, std::size_t size = sizeof(T)) {
  if (len - at < size) return false;
  std::memcpy(&out, bytes + at, size);
  at += size;
  return true;
}

bool op_allowed(const Qp& qp, WqeOp op) {
  const QpType type = qp.type;
  switch (op) {
    case WqeOp::kNop:
      return true;
    case WqeOp::kSend:
    case WqeOp::kSendImm:
      return is_reliable(type) || type == QpType::kUc || sends_datagrams(type) ||
             (type == QpType::kSq && op == WqeOp::kSend);
    case WqeOp::kLso:
    case WqeOp::kEnhancedMpsw:
    case WqeOp::kAso:
      return type == QpType::kSq;
    case WqeOp::kGetPsv:
    case WqeOp::kDump:
      return qp.tls;
    case WqeOp::kRdmaWrite:
    case WqeOp::kRdmaWriteImm:
      return is_reliable(type) || type == QpType::kUc;
    case WqeOp::kSendInval:
    case WqeOp::kRdmaRead:
    case WqeOp::kAtomicCs:
    case WqeOp::kAtomicFa:
    case WqeOp::kMaskedCs:
    case WqeOp::kMaskedFa:
      return is_reliable(type);
    case WqeOp::kTagMatch:
      return type == QpType::kRc;
    case WqeOp::kFlowTableAccess:
      return type == QpType::kRc || type == QpType::kSq;
    case WqeOp::kSetPsv:
    case WqeOp::kUmr:
      return is_reliable(type) || type == QpType::kUc || type == QpType::kRegUmr || type == QpType::kSq;
    default:
      return false;
  }
}

// Data and inline segments from `at` to the end; inline segments come first (a header of the message, and
// what follows it in memory). The manual gives byte_count 0 of a send the meaning 2 GiB.
bool take_data(const std::uint8_t* bytes, std::size_t len, std::size_t at, SendWqe& w) {
  constexpr std::uint32_t kTwoGiB = 1u << 31;
  while (len - at >= sizeof(prm::DataSeg)) {
    prm::InlineSeg head;
    std::memcpy(&head, bytes + at, sizeof head);
    if (head.is_inline()) {
      const std::size_t count = head.count();
      if (!w.sges.empty() || len - at < sizeof head + count) return false;
      w.inline_data = true;
      const std::uint8_t* data = bytes + at + sizeof head;
      if (w.bytes.empty())
        w.bytes.assign(data, data + count);
      else
        w.bytes.insert(w.bytes.end(), data, data + count);
      w.length += count;
      at += (sizeof head + count + prm::kDs - 1) / prm::kDs * prm::kDs;
      at = std::min(at, len);
      continue;
    }
    if (w.inline_data) {
      w.inline_data = false;
      w.inline_head = static_cast<std::uint32_t>(w.length);
    }
    prm::DataSeg seg;
    std::memcpy(&seg, bytes + at, sizeof seg);
    at += sizeof seg;
    const std::uint32_t count = seg.byte_count ? static_cast<std::uint32_t>(seg.byte_count) : kTwoGiB;
    w.sges.push_back(Sge{seg.addr, seg.lkey, count});
    w.length += count;
  }
  return at == len;
}

}  // namespace

void parse_send_wqe(const std::uint8_t* bytes, std::size_t len, const Qp& qp, SendWqe& w) {
  std::size_t at = 0;
  prm::CtrlSeg ctrl;
  if (!take(bytes, len, at, ctrl)) return refuse(w, prm::CqeSyndrome::kLocalQpOp, WqeFault::kSize);
  w.opcode = ctrl.opcode();
  w.opmod = ctrl.opmod();
  w.signaled = ctrl.ce() >= prm::kCeAlways;
  w.silent_flush = ctrl.ce() == prm::kCeOnFirstError;
  w.solicited = ctrl.solicited();
  w.fence = static_cast<std::uint8_t>(ctrl.fence());
  w.imm = ctrl.imm;
  w.stream = ctrl.stream;
  if (ctrl.qpn() != qp.qpn) return refuse(w, prm::CqeSyndrome::kLocalQpOp, WqeFault::kQpn);
  if (!op_allowed(qp, w.opcode)) return refuse(w, prm::CqeSyndrome::kLocalQpOp, WqeFault::kOpcode);

  const auto malformed = [&w] { refuse(w, prm::CqeSyndrome::kLocalQpOp, WqeFault::kSegment); };
  // A datagram is no longer than the port's MTU, and its QP needs no bound of its own (iPXE's have none).
  const std::uint64_t max_message = 1ULL << (sends_datagrams(qp.type) ? 31u : std::min(qp.log_msg_max, 31u));
  if (w.opcode == WqeOp::kRdmaWrite && qp.type == QpType::kRc) {  // the shortest way for the most common
    prm::RaddrSeg raddr;
    if (!take(bytes, len, at, raddr)) return malformed();
    w.raddr = raddr.raddr;
    w.rkey = raddr.rkey;
    if (!take_data(bytes, len, at, w)) return malformed();
    if (w.length > max_message) refuse(w, prm::CqeSyndrome::kLocalLength, WqeFault::kLength);
    return;
  }
  if (w.opcode == WqeOp::kNop) return;
  if (w.opcode == WqeOp::kAso && ctrl.opmod() != prm::kAsoFlowMeter && ctrl.opmod() != prm::kAsoIpsec &&
      ctrl.opmod() != prm::kAsoMacsec)
    return refuse(w, prm::CqeSyndrome::kLocalQpOp, WqeFault::kOpcode);
  if (w.opcode == WqeOp::kFlowTableAccess && ctrl.opmod() != prm::kUpdateHeaderArgument)
    return refuse(w, prm::CqeSyndrome::kLocalQpOp, WqeFault::kOpcode);
  if (w.opcode == WqeOp::kUmr || w.opcode == WqeOp::kSetPsv || w.opcode == WqeOp::kTagMatch ||
      w.opcode == WqeOp::kAso || w.opcode == WqeOp::kFlowTableAccess || w.opcode == WqeOp::kGetPsv) {
    w.bytes.assign(bytes + at, bytes + len);
    return;
  }
  if (w.opcode == WqeOp::kDump) {
    if (!take_data(bytes, len, at, w) || !w.bytes.empty()) return malformed();
    // In pieces of a frame's length, as what is sent.
    if (w.length > kMaxFrame) refuse(w, prm::CqeSyndrome::kLocalLength, WqeFault::kLength);
    return;
  }
  if (qp.type == QpType::kSq) return parse_frame_wqe(bytes, len, at, qp, w);
  if (sends_datagrams(qp.type) || qp.type == QpType::kDci) {
    if (!take(bytes, len, at, w.av, prm::AvSeg::kShortBytes)) return malformed();
    if (w.av.extended()) {
      at -= prm::AvSeg::kShortBytes;
      if (!take(bytes, len, at, w.av)) return malformed();
    }
  }
  if (qp.type == QpType::kXrc) {
    prm::XrcSeg xrc;
    if (!take(bytes, len, at, xrc)) return malformed();
    w.xrc_srqn = xrc.xrc_srqn & 0xffffff;
  }
  if (w.is_read_or_atomic() || w.opcode == WqeOp::kRdmaWrite || w.opcode == WqeOp::kRdmaWriteImm) {
    prm::RaddrSeg raddr;
    if (!take(bytes, len, at, raddr)) return malformed();
    w.raddr = raddr.raddr;
    w.rkey = raddr.rkey;
  }
  if (w.opcode == WqeOp::kAtomicCs || w.opcode == WqeOp::kAtomicFa) {
    prm::AtomicSeg atomic;
    if (!take(bytes, len, at, atomic)) return malformed();
    w.swap_add = atomic.swap_add;
    w.compare = atomic.compare;
  }
  std::size_t atomic_bytes = 8;
  if (w.is_masked_atomic()) {
    atomic_bytes = prm::masked_atomic_size(ctrl.opmod());
    if (atomic_bytes > prm::kMaxAtomicBytes) return malformed();
    const std::size_t size = atomic_bytes * prm::masked_atomic_operands(w.opcode == WqeOp::kMaskedCs);
    const std::size_t taken = std::max<std::size_t>(size, prm::kDs);
    if (len - at < taken) return malformed();
    w.bytes.assign(bytes + at, bytes + at + size);
    at += taken;
  }
  if (!take_data(bytes, len, at, w)) return malformed();
  if (w.is_read_or_atomic() && (w.inline_data || w.inline_head != 0)) return malformed();
  if (w.is_atomic() && w.length != atomic_bytes)
    return refuse(w, prm::CqeSyndrome::kLocalLength, WqeFault::kLength);
  if (w.length > max_message) refuse(w, prm::CqeSyndrome::kLocalLength, WqeFault::kLength);
}

bool parse_recv_segments(const std::uint8_t* bytes, std::size_t len, RecvWqe& w, InlineFlag flag) {
  for (std::size_t at = 0; at + sizeof(prm::DataSeg) <= len; at += sizeof(prm::DataSeg)) {
    prm::DataSeg seg;
    std::memcpy(&seg, bytes + at, sizeof seg);
    std::uint32_t count = seg.byte_count;
    if (flag == InlineFlag::kIgnored) count &= ~prm::InlineSeg::kFlag;
    if (count == 0) {
      if (seg.lkey == prm::kInvalidLkey) break;
      continue;
    }
    if (count & prm::InlineSeg::kFlag) return false;  // nothing can be received into a WQE
    w.sges.push_back(Sge{seg.addr, seg.lkey, count});
    w.capacity += count;
  }
  return true;
}

}  // namespace hcasim
