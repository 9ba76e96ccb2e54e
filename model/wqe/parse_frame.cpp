// SPDX-License-Identifier: BSD-3-Clause
// WQEs of Ethernet send queues.
#include <algorithm>
#include <cstring>

#include "model/wqe/parse.h"
#include "prm/cqe.h"
#include "prm/ipoib.h"

namespace hcasim {

using prm::WqeOp;

namespace {

constexpr std::size_t kInlineInSeg = sizeof prm::EthSeg::inline_start;  // inline bytes within the EthSeg
// Bytes: twice what cap.max_lso_cap says, as Linux looks at GSO_MAX_SIZE alone.
constexpr std::uint32_t kMaxLso = 1u << 19;
constexpr std::size_t kSegStart = offsetof(prm::EthSeg, inline_start);

std::size_t round_up(std::size_t bytes) { return (bytes + prm::kDs - 1) / prm::kDs * prm::kDs; }

// The EthSeg and the inline headers that begin in it and go on behind it; `at` moves to the data segments.
bool take_eth(const std::uint8_t* bytes, std::size_t len, std::size_t& at, SendWqe& w) {
  if (len - at < sizeof w.eth) return false;
  std::memcpy(&w.eth, bytes + at, sizeof w.eth);
  if (w.eth.inline_hdr_sz & prm::EthSeg::kInsertVlan) {
    at += sizeof w.eth;
    return true;
  }
  const std::size_t headers = w.eth.inline_hdr_sz & prm::EthSeg::kInlineMask;
  const std::size_t size = sizeof w.eth + (headers > kInlineInSeg ? round_up(headers - kInlineInSeg) : 0);
  if (len - at < size) return false;
  const std::uint8_t* start = bytes + at + kSegStart;
  w.bytes.assign(start, start + headers);
  w.header_len = static_cast<std::uint32_t>(headers);
  w.length = headers;
  at += size;
  return true;
}

// The address of a queue whose frames are datagrams; nothing is put into those but checksums.
bool take_address(const std::uint8_t* bytes, std::size_t len, std::size_t& at, SendWqe& w) {
  if (w.many_frames() || len - at < sizeof w.av + prm::kAddressPad) return false;
  std::memcpy(&w.av, bytes + at, sizeof w.av);
  at += sizeof w.av + prm::kAddressPad;
  return true;
}

bool inserts_trailer(const prm::EthSeg& eth) {
  return (eth.inline_hdr_sz & (prm::EthSeg::kInsertVlan | prm::EthSeg::kInsertTrailer)) ==
         prm::EthSeg::kInsertTrailer;
}

// f(data, count) for each inline segment, f(DataSeg) for each other; false: cut off, or f said so.
template <class Inline, class Data>
bool each_segment(const std::uint8_t* bytes, std::size_t len, std::size_t at, Inline on_inline,
                  Data on_data) {
  while (at < len) {
    if (len - at < sizeof(prm::DataSeg)) return false;
    prm::InlineSeg head;
    std::memcpy(&head, bytes + at, sizeof head);
    if (head.is_inline()) {
      const std::size_t count = head.count();
      if (len - at < sizeof head + count) return false;
      if (!on_inline(bytes + at + sizeof head, count)) return false;
      at = std::min(len, at + round_up(sizeof head + count));
      continue;
    }
    prm::DataSeg seg;
    std::memcpy(&seg, bytes + at, sizeof seg);
    at += sizeof seg;
    if (!on_data(seg)) return false;
  }
  return true;
}

}  // namespace

void parse_frame_wqe(const std::uint8_t* bytes, std::size_t len, std::size_t at, const Qp& qp, SendWqe& w) {
  const bool many = w.many_frames();
  const bool old_form = many && w.opcode == WqeOp::kLso;  // frames of one length, which lie in memory
  bool trailer = false;                                   // the next inline segment is one
  const auto on_inline = [&](const std::uint8_t* data, std::size_t count) {
    if (trailer) {
      trailer = false;
      w.trailer.assign(data, data + count);
      return w.sges.empty();
    }
    // A frame by itself, or a piece behind others, as DPDK has short buffers of a packet.
    if (old_form) return false;
    if (many || ((!w.sges.empty() || w.opcode == WqeOp::kLso) && count != 0))
      w.sges.push_back(Sge{w.bytes.size(), prm::kInvalidLkey, static_cast<std::uint32_t>(count)});
    w.bytes.insert(w.bytes.end(), data, data + count);
    w.length += count;
    return true;
  };
  const auto on_data = [&](const prm::DataSeg& seg) {
    if (seg.lkey == prm::kInvalidLkey || (old_form && seg.byte_count != w.eth.mss)) return false;
    w.sges.push_back(Sge{seg.addr, seg.lkey, seg.byte_count});
    w.length += seg.byte_count;
    return true;
  };
  const bool ipoib = qp.underlay != 0;
  if ((ipoib && !take_address(bytes, len, at, w)) || !take_eth(bytes, len, at, w) ||
      (many && w.header_len != 0) || (ipoib && (w.eth.inline_hdr_sz & prm::EthSeg::kInsertVlan) != 0))
    return refuse(w, prm::CqeSyndrome::kLocalQpOp, WqeFault::kSegment);
  trailer = qp.tls && inserts_trailer(w.eth);
  const unsigned of = w.eth.inline_hdr_sz & prm::EthSeg::kTrailerOf;
  const bool of_outer = of == prm::EthSeg::kTrailerOfOuterIp || of == prm::EthSeg::kTrailerOfOuterL4;
  if ((trailer && (many || !of_outer)) || !each_segment(bytes, len, at, on_inline, on_data) || trailer)
    return refuse(w, prm::CqeSyndrome::kLocalQpOp, WqeFault::kSegment);
  if (w.large_send()) {
    if (w.header_len == 0 || w.eth.mss == 0)
      return refuse(w, prm::CqeSyndrome::kLocalQpOp, WqeFault::kHeaders);
    if (w.length - w.header_len > kMaxLso)
      return refuse(w, prm::CqeSyndrome::kLocalLength, WqeFault::kLength);
    const std::uint64_t payload = w.length - w.header_len;
    w.packets = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (payload + w.eth.mss - 1) / w.eth.mss));
  } else {
    w.packets = many ? static_cast<std::uint32_t>(w.sges.size()) : 1;
  }
}

}  // namespace hcasim
