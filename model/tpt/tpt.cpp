// SPDX-License-Identifier: BSD-3-Clause
#include "model/tpt/tpt.h"

#include <algorithm>

namespace hcasim {

namespace {
constexpr std::uint32_t kIndexEnd = 1u << 24;
constexpr std::uint32_t kAnyQp = 0xffffff;
constexpr std::uint64_t kMaxLength = 1ULL << 32;  // no message is longer; bounds the fragments of a PA key
constexpr unsigned kMttGroup = 8;                 // entries of one cache line: 64 bytes
constexpr std::uint64_t kMttFlags = 7;            // low bits of an MTT entry are flags, not address
}  // namespace

Tpt::Tpt(const Profile& profile)
    : profile_(profile),
      mkey_cache_(profile.cache.mkey, profile.cache.ways),
      mtt_cache_(profile.cache.mtt / kMttGroup, profile.cache.ways) {}

Mkey* Tpt::create(std::uint32_t index) {
  if (index >= kIndexEnd) return nullptr;
  if (index >= table_.size()) table_.resize(index + 1);
  if (table_[index]) return nullptr;
  table_[index] = std::make_unique<Mkey>();
  table_[index]->index = index;
  ++count_;
  return table_[index].get();
}

Mkey* Tpt::find(std::uint32_t index) { return index < table_.size() ? table_[index].get() : nullptr; }

bool Tpt::destroy(std::uint32_t index) {
  if (!find(index)) return false;
  invalidate(index);
  table_[index].reset();
  --count_;
  return true;
}

void Tpt::clear() {
  table_.clear();
  count_ = 0;
  mkey_cache_.clear();
  mtt_cache_.clear();
}

void Tpt::invalidate(std::uint32_t index) {
  mkey_cache_.invalidate(index);
  const Mkey* mkey = find(index);
  if (!mkey) return;
  const std::uint64_t groups = (mkey->xlt.size() + kMttGroup - 1) / kMttGroup;
  // A list larger than the cache cannot be in it entirely: dropping the whole cache is cheaper than a search.
  if (groups > profile_.cache.mtt / kMttGroup) {
    mtt_cache_.clear();
    return;
  }
  for (std::uint64_t g = 0; g < groups; ++g)
    mtt_cache_.invalidate(static_cast<std::uint64_t>(index) << 32 | g);
}

const Mkey* Tpt::lookup(std::uint32_t wire_key) const {
  const std::uint32_t index = wire_key >> 8;
  return index < table_.size() ? table_[index].get() : nullptr;
}

TptStatus Tpt::verify(const Mkey* mkey, std::uint32_t pd, std::uint32_t qpn, Access access, std::uint64_t va,
                      std::uint64_t len) {
  if (mkey->pd != pd) return TptStatus::kBadPd;
  if (mkey->qpn != kAnyQp && mkey->qpn != qpn) return TptStatus::kBadPd;
  const AccessRights& r = mkey->rights;
  bool right = false;
  switch (access) {
    case Access::kLocalRead:
      right = r.local_read;
      break;
    case Access::kLocalWrite:
      right = r.local_write;
      break;
    case Access::kRemoteRead:
      right = r.remote_read;
      break;
    case Access::kRemoteWrite:
      right = r.remote_write;
      break;
    case Access::kRemoteAtomic:
      right = r.atomic;
      break;
  }
  if (!right) return TptStatus::kNoRight;
  if (va + len < va && va + len != 0) return TptStatus::kOutOfRange;
  if (!mkey->length64 &&
      (va < mkey->start || va - mkey->start > mkey->len || len > mkey->len - (va - mkey->start))) {
    return TptStatus::kOutOfRange;
  }
  return TptStatus::kOk;
}

TptStatus Tpt::check(std::uint32_t wire_key, std::uint32_t pd, std::uint32_t qpn, Access access,
                     std::uint64_t va, std::uint64_t len) {
  if (len == 0) return TptStatus::kOk;
  const Mkey* mkey = lookup(wire_key);
  if (!mkey || mkey->free || mkey->key != (wire_key & 0xff)) return TptStatus::kBadKey;
  return verify(mkey, pd, qpn, access, va, len);
}

Translation Tpt::translate(Time t, std::uint32_t wire_key, std::uint32_t pd, std::uint32_t qpn, Access access,
                           std::uint64_t va, std::uint64_t len, std::vector<Fragment>& out) {
  if (len == 0) return {TptStatus::kOk, t, 0};
  if (len > kMaxLength) return {TptStatus::kOutOfRange, t, 0};
  Walk w{pd, qpn, access, &out, out.size(), t + profile_.engine.translate, 0, 0};
  const TptStatus status = walk(w, wire_key, va, len, 0);
  return {status, w.t, w.misses};
}

void Tpt::miss(Walk& w) {
  w.t += profile_.pcie.read_latency;
  ++w.misses;
}

TptStatus Tpt::walk(Walk& w, std::uint32_t wire_key, std::uint64_t va, std::uint64_t len, unsigned depth) {
  const Mkey* mkey = lookup(wire_key);
  if (!mkey || mkey->free || mkey->key != (wire_key & 0xff)) return TptStatus::kBadKey;
  if (!mkey_cache_.touch(mkey->index)) miss(w);
  const TptStatus status = verify(mkey, w.pd, w.qpn, w.access, va, len);
  if (status != TptStatus::kOk) return status;
  if (mkey->log_page >= 64) return TptStatus::kBadList;
  switch (mkey->mode) {
    case AccessMode::kPa:
      return append(w, va, len) ? TptStatus::kOk : TptStatus::kBadList;
    case AccessMode::kMtt:
      return walk_mtt(w, *mkey, va, len);
    case AccessMode::kKlm:
      return depth < kMaxDepth ? walk_klm(w, *mkey, va - mkey->start, len, depth) : TptStatus::kBadList;
    case AccessMode::kKsm:
      return depth < kMaxDepth ? walk_ksm(w, *mkey, va - mkey->start, len, depth) : TptStatus::kBadList;
  }
  return TptStatus::kBadList;
}

TptStatus Tpt::walk_mtt(Walk& w, const Mkey& mkey, std::uint64_t va, std::uint64_t len) {
  const std::uint64_t page_mask = (1ULL << mkey.log_page) - 1;
  // The first entry is the page that holds `start`.
  const std::uint64_t in_list = va - (mkey.start & ~page_mask);
  std::uint64_t index = in_list >> mkey.log_page;
  std::uint64_t in_page = in_list & page_mask;
  std::uint64_t group = ~0ULL;
  bool missed = false;
  while (len) {
    if (index >= mkey.xlt.size()) return TptStatus::kBadList;
    if (index / kMttGroup != group) {
      group = index / kMttGroup;
      missed |= !mtt_cache_.touch(static_cast<std::uint64_t>(mkey.index) << 32 | group);
    }
    const std::uint64_t piece = std::min(len, page_mask - in_page + 1);
    if (!append(w, (mkey.xlt[index] & ~kMttFlags) + in_page, piece)) return TptStatus::kBadList;
    len -= piece;
    in_page = 0;
    ++index;
  }
  if (missed) miss(w);
  return TptStatus::kOk;
}

TptStatus Tpt::walk_klm(Walk& w, const Mkey& mkey, std::uint64_t offset, std::uint64_t len, unsigned depth) {
  const std::size_t entries = mkey.xlt.size() / 2;
  if (!mtt_cache_.touch(static_cast<std::uint64_t>(mkey.index) << 32)) miss(w);
  for (std::size_t i = 0; i < entries && len; ++i) {
    if (++w.steps > kMaxSteps) return TptStatus::kBadList;
    const std::uint64_t bytes = mkey.xlt[2 * i] >> 32;
    if (offset >= bytes) {
      offset -= bytes;
      continue;
    }
    const std::uint64_t piece = std::min(len, bytes - offset);
    const auto key = static_cast<std::uint32_t>(mkey.xlt[2 * i]);
    const TptStatus status = walk(w, key, mkey.xlt[2 * i + 1] + offset, piece, depth + 1);
    if (status != TptStatus::kOk) return status;
    len -= piece;
    offset = 0;
  }
  return len ? TptStatus::kBadList : TptStatus::kOk;
}

TptStatus Tpt::walk_ksm(Walk& w, const Mkey& mkey, std::uint64_t offset, std::uint64_t len, unsigned depth) {
  const std::size_t entries = mkey.xlt.size() / 2;
  const std::uint64_t mask = (1ULL << mkey.log_page) - 1;
  std::uint64_t index = offset >> mkey.log_page;
  std::uint64_t inside = offset & mask;
  if (!mtt_cache_.touch(static_cast<std::uint64_t>(mkey.index) << 32 | index / (kMttGroup / 2))) miss(w);
  while (len) {
    if (index >= entries || ++w.steps > kMaxSteps) return TptStatus::kBadList;
    const std::uint64_t piece = std::min(len, mask - inside + 1);
    const auto key = static_cast<std::uint32_t>(mkey.xlt[2 * index]);
    const TptStatus status = walk(w, key, mkey.xlt[2 * index + 1] + inside, piece, depth + 1);
    if (status != TptStatus::kOk) return status;
    len -= piece;
    inside = 0;
    ++index;
  }
  return TptStatus::kOk;
}

// Adjacent pieces become one fragment; fragments have 32-bit lengths.
bool Tpt::append(Walk& w, std::uint64_t addr, std::uint64_t len) {
  constexpr std::uint64_t kMax = 1ULL << 31;
  std::vector<Fragment>& out = *w.out;
  if (addr + len < addr && addr + len != 0) return false;
  while (len) {
    if (out.size() > w.first && out.back().addr + out.back().len == addr && out.back().len + len <= kMax) {
      out.back().len += static_cast<std::uint32_t>(len);
      return true;
    }
    const std::uint64_t piece = std::min(len, kMax);
    out.push_back({addr, static_cast<std::uint32_t>(piece)});
    addr += piece;
    len -= piece;
  }
  return true;
}

}  // namespace hcasim
