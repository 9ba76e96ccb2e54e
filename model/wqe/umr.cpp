// SPDX-License-Identifier: BSD-3-Clause
#include "model/wqe/umr.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "model/ctx/qp.h"
#include "model/pcie/dma.h"
#include "model/profile.h"
#include "model/tpt/tpt.h"
#include "model/wqe/parse.h"
#include "model/wqe/scatter.h"
#include "prm/prm.h"
#include "prm/signature.h"

namespace hcasim {

namespace {

constexpr std::size_t kMkeySegment = 64;
constexpr std::size_t kHead = sizeof(prm::UmrCtrlSeg) + kMkeySegment;
constexpr std::size_t kOctoword = 16;
constexpr std::size_t kListAlign = 8;  // words: 64 bytes

UmrResult refused(Time t) {
  return UmrResult{t, static_cast<std::uint8_t>(prm::CqeSyndrome::kMwBind),
                   static_cast<std::uint8_t>(WqeFault::kUmr)};
}

UmrResult fetch_failed(Time t, prm::CqeSyndrome syndrome) {
  return UmrResult{t, static_cast<std::uint8_t>(syndrome), static_cast<std::uint8_t>(WqeFault::kFetch)};
}

// The translation list: inline behind the mkey segment, or where the data segments point.
UmrResult read_list(Time t, const UmrBlocks& blocks, const Qp& qp, const SendWqe& wqe, bool inline_list,
                    std::vector<std::uint8_t>& list) {
  UmrResult r;
  r.at = t;
  const std::uint8_t* rest = wqe.bytes.data() + kHead;
  const std::size_t rest_len = wqe.bytes.size() - kHead;
  if (inline_list) {
    if (rest_len < list.size()) return refused(t);
    std::memcpy(list.data(), rest, list.size());
    return r;
  }
  std::vector<Sge> sges;
  for (std::size_t at = 0; at + sizeof(prm::DataSeg) <= rest_len; at += sizeof(prm::DataSeg)) {
    prm::DataSeg seg;
    std::memcpy(&seg, rest + at, sizeof seg);
    if (seg.byte_count == 0) break;
    if (seg.byte_count & prm::InlineSeg::kFlag) return refused(t);
    sges.push_back(Sge{seg.addr, seg.lkey, seg.byte_count});
  }
  Mover mover(blocks.tpt, blocks.dma);
  const MoveResult m = mover.gather(t, qp, sges, 0, static_cast<std::uint32_t>(list.size()), list.data());
  if (m.status == TptStatus::kOutOfRange) return refused(t);
  if (m.status != TptStatus::kOk)  // why, as for the data of a message
    return UmrResult{t, static_cast<std::uint8_t>(prm::CqeSyndrome::kLocalProt),
                     static_cast<std::uint8_t>(m.status)};
  if (!m.dma_ok) return fetch_failed(t, prm::CqeSyndrome::kLocalQpOp);
  r.at = m.at;
  return r;
}

void apply_fields(Mkey& mkey, std::uint64_t mask, const std::uint8_t* seg) {
  namespace mm = prm::mkey_mask;
  using mkc = prm::mkc;
  const auto flag = [&](std::uint64_t bit, bool& to, bool value) {
    if (mask & bit) to = value;
  };
  if (mask & mm::kLen) mkey.len = prm::get<mkc::len>(seg);
  if (mask & mm::kLen) mkey.length64 = prm::get<mkc::length64>(seg) != 0;
  if (mask & mm::kPageSize) mkey.log_page = prm::get<mkc::log_page_size>(seg);
  if (mask & mm::kStartAddr) mkey.start = prm::get<mkc::start_addr>(seg);
  if (mask & mm::kPd) mkey.pd = prm::get<mkc::pd>(seg);
  if (mask & mm::kKey) mkey.key = static_cast<std::uint8_t>(prm::get<mkc::mkey_7_0>(seg));
  if (mask & mm::kQpn) mkey.qpn = prm::get<mkc::qpn>(seg);
  flag(mm::kEnRinval, mkey.remote_invalidate_en, prm::get<mkc::en_rinval>(seg) != 0);
  flag(mm::kLr, mkey.rights.local_read, prm::get<mkc::lr>(seg) != 0);
  flag(mm::kLw, mkey.rights.local_write, prm::get<mkc::lw>(seg) != 0);
  flag(mm::kRr, mkey.rights.remote_read, prm::get<mkc::rr>(seg) != 0);
  flag(mm::kRw, mkey.rights.remote_write, prm::get<mkc::rw>(seg) != 0);
  flag(mm::kA, mkey.rights.atomic, prm::get<mkc::a>(seg) != 0);
  flag(mm::kRelaxedOrderingWrite, mkey.relaxed_write, prm::get<mkc::relaxed_ordering_write>(seg) != 0);
  flag(mm::kRelaxedOrderingRead, mkey.relaxed_read, prm::get<mkc::relaxed_ordering_read>(seg) != 0);
  flag(mm::kFree, mkey.free, prm::get<mkc::free>(seg) != 0);
}

// The words [first, end) of the mkey's list. False: it would take more memory than a list may.
bool write_list(Mkey& mkey, std::uint64_t first, std::uint64_t end, const std::vector<std::uint8_t>& list) {
  if (first >= end) return true;
  std::vector<std::uint64_t> pieces;
  if (mkey.sparse)
    pieces.resize(end - first);
  else if (mkey.xlt.size() < end)
    mkey.xlt.resize(end);
  std::uint64_t* const to = mkey.sparse ? pieces.data() : mkey.xlt.data() + first;
  for (std::size_t i = 0; first + i < end; ++i) {
    prm::be64 word;
    std::memcpy(&word, list.data() + i * sizeof word, sizeof word);
    to[i] = word;
  }
  return !mkey.sparse || mkey.sparse->write(first, pieces.data(), pieces.size());
}

}  // namespace

bool umr_invalidates(const SendWqe& wqe) {
  if (wqe.bytes.size() < kHead) return false;
  prm::UmrCtrlSeg ctrl;
  std::memcpy(&ctrl, wqe.bytes.data(), sizeof ctrl);
  return (ctrl.mkey_mask & prm::mkey_mask::kFree) &&
         prm::get<prm::mkc::free>(wqe.bytes.data() + sizeof ctrl) != 0;
}

UmrResult execute_set_psv(Time t, const UmrBlocks& blocks, const Qp& qp, const SendWqe& wqe) {
  prm::SetPsvSeg seg;
  if (wqe.bytes.size() < sizeof seg) return refused(t);
  std::memcpy(&seg, wqe.bytes.data(), sizeof seg);
  if (!blocks.tpt.psvs(qp.function).set(seg.psv & 0xffffff, qp.pd, seg.transient_sig, seg.ref_tag))
    return refused(t);
  return UmrResult{t + blocks.profile.engine.umr, 0, 0};
}

UmrResult execute_umr(Time t, const UmrBlocks& blocks, const Qp& qp, const SendWqe& wqe) {
  if (wqe.bytes.size() < kHead) return refused(t);
  prm::UmrCtrlSeg ctrl;
  std::memcpy(&ctrl, wqe.bytes.data(), sizeof ctrl);
  const std::uint8_t* segment = wqe.bytes.data() + sizeof ctrl;
  Mkey* mkey = blocks.tpt.find(qp.function, wqe.imm >> 8);
  if (!mkey || !mkey->umr_en) return refused(t);
  if (qp.type != QpType::kRegUmr && mkey->pd != qp.pd) return refused(t);
  if (!qp.fast_registers && mkey->mode != AccessMode::kKlm && mkey->mode != AccessMode::kKsm)
    return refused(t);
  // The flags name the state in which the update fails.
  if ((ctrl.flags & prm::kUmrCheckFree) && mkey->free) return refused(t);
  if ((ctrl.flags & prm::kUmrCheckNotFree) && !mkey->free) return refused(t);
  if ((ctrl.flags & prm::kUmrCheckQpn) && !mkey->usable_by(qp.qpn)) return refused(t);

  if ((ctrl.mkey_mask & prm::mkey_mask::kPageSize) && mkey->mode == AccessMode::kMtt) {
    const std::uint64_t log_page = prm::get<prm::mkc::log_page_size>(segment);
    if (log_page < Mkey::kMinLogPage || log_page > Mkey::kMaxLogPage) return refused(t);
  }

  UmrResult r;
  r.at = t;
  // A BSF comes inline behind the list; its length stands where the offset would.
  SigFormat format;
  const bool offset = (ctrl.flags & prm::kUmrTranslationOffsetEn) != 0;
  const std::size_t bsf_octowords = offset ? 0 : static_cast<std::size_t>(ctrl.xlt_offset);
  if (bsf_octowords) {
    const std::size_t at = kHead + ctrl.xlt_octowords * kOctoword;
    if (!mkey->signature || bsf_octowords > mkey->signature->room || !(ctrl.flags & prm::kUmrInline) ||
        bsf_octowords * kOctoword < sizeof(prm::Bsf) || wqe.bytes.size() < at + sizeof(prm::Bsf) ||
        !read_bsf(wqe.bytes.data() + at, format))
      return refused(t);
  }
  if (ctrl.xlt_octowords) {
    const std::size_t octowords = ctrl.xlt_octowords;
    std::uint64_t first = 0;  // octoword of the list
    if (ctrl.flags & prm::kUmrTranslationOffsetEn)
      first = static_cast<std::uint64_t>(ctrl.xlt_offset) | static_cast<std::uint64_t>(ctrl.xlt_offset_47_16)
                                                                << 16;
    // Drivers pad lists to 64 bytes, past what the mkey reserves; the padding is not stored.
    const std::uint64_t room = (mkey->xlt_words + kListAlign - 1) / kListAlign * kListAlign;
    if (first * 2 + octowords * 2 > room) return refused(t);
    std::vector<std::uint8_t> list(octowords * kOctoword);
    r = read_list(t, blocks, qp, wqe, (ctrl.flags & prm::kUmrInline) != 0, list);
    if (r.syndrome) return r;
    const std::uint64_t end = std::min(first * 2 + octowords * 2, mkey->xlt_words);
    if (!write_list(*mkey, first * 2, end, list)) return refused(t);
    blocks.tpt.invalidate(*mkey, first * 2, octowords * 2);
  }
  apply_fields(*mkey, ctrl.mkey_mask, segment);
  if (MkeySignature* s = mkey->signature.get()) {
    if (bsf_octowords) s->format = format;
    s->set = s->set || bsf_octowords != 0;
    if (ctrl.mkey_mask & prm::mkey_mask::kBsfEn) s->enabled = prm::get<prm::mkc::bsf_en>(segment) != 0;
    if (ctrl.mkey_mask & prm::mkey_mask::kEnSigerr) s->reported = false;
    s->tx.stop();
    s->rx.stop();
    s->left.clear();
  }
  blocks.tpt.invalidate(*mkey, 0, 0);
  r.at += blocks.profile.engine.umr;
  trace_key(blocks.tracer, r.at, *mkey);
  return r;
}

}  // namespace hcasim
