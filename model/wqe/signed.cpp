// SPDX-License-Identifier: BSD-3-Clause
// Payload that goes through a key with signatures (model/tpt/signature.h).
#include <algorithm>
#include <cstring>
#include <numeric>

#include "model/wqe/scatter.h"

namespace hcasim {

namespace {
constexpr std::uint64_t kPiece = 4096;        // bytes read at a time
constexpr std::uint64_t kReread = 64u << 10;  // bytes read again to go on somewhere else
}  // namespace

// The variables that the key's formats name must be there; set anew, they begin another transfer.
bool Mover::start_signed(Mkey& mkey) {
  MkeySignature& s = *mkey.signature;
  std::uint64_t epoch = 1;
  for (const SigDomain* d : {&s.format.mem, &s.format.wire}) {
    if (d->bytes() == 0) continue;
    const PsvTable::Psv* psv = tpt_.psvs(mkey.function).find(d->psv);
    if (psv == nullptr || psv->pd != mkey.pd) return false;
    epoch = std::max(epoch, psv->epoch + 1);
  }
  if (s.psv_epoch == epoch) return true;
  s.psv_epoch = epoch;
  s.tx.stop();
  s.rx.stop();
  s.left.clear();
  return true;
}

// The next n bytes of the key's memory into its stream to the wire.
bool Mover::fetch_signed(MoveResult& r, Mkey& mkey, const Party& who, std::uint64_t n) {
  MkeySignature& s = *mkey.signature;
  bytes_.resize(n);
  fragments_.clear();
  const Translation tr =
      tpt_.translate(r.at, mkey.wire_key(), who.user, who.access, mkey.start + s.tx.in(), n, fragments_);
  r.status = tr.status;
  if (!r.ok()) return false;
  std::uint8_t* to = bytes_.data();
  Time at = r.at;
  for (const Fragment& f : fragments_) {
    const ReadDone d =
        dma_.read_flush(tr.ready, f.addr, to, f.len, f.space, WriteOwner(mkey.function), Dma::What::kPayload);
    r.dma_ok = r.dma_ok && d.ok;
    at = std::max(at, d.at);
    to += f.len;
  }
  r.at = at;
  if (r.dma_ok) s.tx.push(s.format, bytes_.data(), n, s.left);
  return r.dma_ok;
}

bool Mover::gather_signed(MoveResult& r, Mkey& mkey, std::uint32_t key, const Party& who, std::uint64_t va,
                          std::uint32_t len, std::uint8_t* dst) {
  MkeySignature& s = *mkey.signature;
  r.status = tpt_.check(key, who.user, who.access, va, len);
  if (!r.ok()) return false;
  if (!start_signed(mkey)) {
    r.status = TptStatus::kBadList;
    return false;
  }
  const std::uint64_t off = va - mkey.start, end = off + len;
  if (!s.tx.running() || s.tx.out() - s.left.size() != off) {
    // From the start of a block of both sides, what lies between is read again; if that is far, from the
    // start of the wire's block, and the memory's is not checked; if that is far too, its signature comes out
    // wrong.
    const SigDomain &wire = s.format.wire, &mem = s.format.mem;
    std::uint64_t d = wire.bytes() ? off / wire.unit() * wire.block : off;
    const std::uint64_t both =
        std::max<std::uint64_t>(1, std::lcm(mem.bytes() ? mem.block : 1, wire.bytes() ? wire.block : 1));
    const std::uint64_t whole = d / both * both;
    s.left.clear();
    if (off - wire.encoded(whole) <= kReread) {
      s.tx.start(s.format, true, whole);
    } else {
      if (off - wire.encoded(d) > kReread) d = wire.data(off);
      s.tx.start_blind(s.format, true, mem.encoded(d));
    }
    if (s.tx.out() > off) {
      s.tx.stop();
      r.status = TptStatus::kBadList;
      return false;
    }
  }
  // All of it is asked for at once.
  const Time t = r.at;
  const auto fetch = [&](std::uint64_t n) {
    MoveResult piece;
    piece.at = t;
    fetch_signed(piece, mkey, who, n);
    r.status = piece.status;
    r.dma_ok = piece.dma_ok;
    r.at = std::max(r.at, piece.at);
    return r.ok();
  };
  while (s.tx.out() < end) {
    const std::uint64_t want = s.tx.in_signature() ? s.tx.piece() : end - s.tx.out();
    if (!fetch(std::min({s.tx.piece(), want, kPiece}))) break;
  }
  // A block that is whole is checked with it.
  if (r.ok() && s.tx.at_signature()) fetch(s.tx.piece());
  if (!r.ok()) {
    s.tx.stop();
    s.left.clear();
    return false;
  }
  const std::size_t first = s.left.size() - static_cast<std::size_t>(s.tx.out() - off);
  std::memcpy(dst, s.left.data() + first, len);
  s.left.erase(s.left.begin(), s.left.begin() + static_cast<std::ptrdiff_t>(first + len));
  if (const auto error = s.tx.take_error())
    tpt_.signature_error(r.at, who.user.qpn, mkey, *error, requester_);
  return true;
}

bool Mover::scatter_signed(MoveResult& r, Mkey& mkey, std::uint32_t key, const Party& who, std::uint64_t va,
                           const std::uint8_t* src, std::uint32_t len, WriteOwner owner, bool group) {
  MkeySignature& s = *mkey.signature;
  r.status = tpt_.check(key, who.user, who.access, va, len);
  if (!r.ok()) return false;
  if (!start_signed(mkey)) {
    r.status = TptStatus::kBadList;
    return false;
  }
  const std::uint64_t off = va - mkey.start;
  if (!s.rx.running() || s.rx.in() != off) {
    const SigDomain &wire = s.format.wire, &mem = s.format.mem;
    const std::uint64_t d = wire.data(off);
    const bool whole = (!wire.bytes() || off % wire.unit() == 0) && (!mem.bytes() || d % mem.block == 0);
    if (whole)
      s.rx.start(s.format, false, d);
    else
      s.rx.start_blind(s.format, false, off);
  }
  const std::uint64_t to = s.rx.out();
  const SigStream before = s.rx;
  bytes_.clear();
  s.rx.push(s.format, src, len, bytes_);
  fragments_.clear();
  const Translation tr =
      tpt_.translate(r.at, mkey.wire_key(), who.user, who.access, mkey.start + to, bytes_.size(), fragments_);
  r.status = tr.status;
  if (!r.ok()) {
    // The packet comes again when its page is there, in the midst of a block perhaps, whose guard goes on.
    if (r.status == TptStatus::kFault)
      s.rx = before;
    else
      s.rx.stop();
    return false;
  }
  const std::uint8_t* p = bytes_.data();
  Time at = r.at;
  for (const Fragment& f : fragments_) {
    at = std::max(at, dma_.post_write(tr.ready, f.addr, p, f.len, owner, group, f.space));
    p += f.len;
  }
  r.at = at;
  // A queue of frames has no CQE for it.
  const auto error = s.rx.take_error();
  if (error && owner.kind == WriteOwner::kQp)
    tpt_.signature_error(r.at, who.user.qpn, mkey, *error, requester_);
  return true;
}

}  // namespace hcasim
