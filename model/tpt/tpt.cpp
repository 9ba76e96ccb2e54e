// SPDX-License-Identifier: BSD-3-Clause
#include "model/tpt/tpt.h"
#include "model/state/state.h"

#include <algorithm>

#include "prm/wqe.h"

namespace hcasim {

namespace {
constexpr std::uint64_t kMaxLength = 1ULL << 32;  // no message is longer; bounds the fragments of a PA key
bool is_local(Access a) { return a == Access::kLocalRead || a == Access::kLocalWrite; }
constexpr std::uint64_t kMaxFragment = 1ULL << 31;  // bytes
constexpr unsigned kMttGroup = 8;                   // entries of one cache line ...
constexpr unsigned kLineBytes = 64;                 // ... of so many bytes
constexpr std::uint64_t kMttFlags = 7;              // low bits of an MTT entry are flags, not address

// What a key must grant, by Access.
constexpr bool AccessRights::*kNeeded[] = {&AccessRights::local_read, &AccessRights::local_write,
                                           &AccessRights::remote_read, &AccessRights::remote_write,
                                           &AccessRights::atomic};

// What an entry must grant for an access.
constexpr std::uint64_t entry_flags(Access access) {
  switch (access) {
    case Access::kLocalRead:
    case Access::kRemoteRead:
      return prm::Mtt::kRead;
    case Access::kLocalWrite:
    case Access::kRemoteWrite:
      return prm::Mtt::kWrite;
    case Access::kRemoteAtomic:
      break;
  }
  return prm::Mtt::kRead | prm::Mtt::kWrite;
}
}  // namespace

Tpt::Tpt(const Profile& profile, ContextFetch& contexts, PerFunction<MkeyTable> keys,
         PerFunction<PsvTable> psvs)
    : profile_(profile),
      contexts_(contexts),
      keys_(std::move(keys)),
      psvs_(std::move(psvs)),
      mkey_cache_(profile.cache.mkey, profile.cache.ways),
      mtt_cache_(profile.cache.mtt / kMttGroup, profile.cache.ways) {}

bool Tpt::destroy(FunctionId f, std::uint32_t index) {
  const Mkey* mkey = find(f, index);
  if (!mkey) return false;
  invalidate(*mkey);
  return keys_[f].destroy(index);
}

void Tpt::clear() { reset_state(*this); }

void Tpt::invalidate_all_of(FunctionId f) {
  if (invalidate_) invalidate_(f);
  mkey_cache_.invalidate_if([f](std::uint64_t id) { return function_of_context(id) == f; });
  mtt_cache_.invalidate_if([f](std::uint64_t id) { return Mkey::function_of_line(id) == f; });
}

void Tpt::invalidate(const Mkey& mkey) { invalidate(mkey, 0, mkey.written_words()); }

void Tpt::invalidate(const Mkey& mkey, std::uint64_t first, std::uint64_t words) {
  if (invalidate_) invalidate_(mkey.function);
  mkey_cache_.invalidate(context_id(mkey.function, mkey.index));
  if (words == 0) return;
  const std::uint64_t from = first / kMttGroup, to = (first + words - 1) / kMttGroup;
  // A list larger than the cache cannot be in it entirely: dropping the whole cache is cheaper than a search.
  if (to - from >= profile_.cache.mtt / kMttGroup) {
    mtt_cache_.clear();
    return;
  }
  for (std::uint64_t g = from; g <= to; ++g) mtt_cache_.invalidate(mkey.line_id(g));
}

// In line: twice for each message, and again for each part of it.
[[gnu::always_inline]] inline TptStatus Tpt::verify(const Mkey* mkey, const KeyUser& user, Access access,
                                                    std::uint64_t va, std::uint64_t len) {
  if (mkey->pd != user.pd && user.pd != kAnyPd) return TptStatus::kBadPd;
  if (!mkey->usable_by(user.qpn)) return TptStatus::kBadPd;
  if (!(mkey->rights.*kNeeded[static_cast<unsigned>(access)])) return TptStatus::kNoRight;
  if (va + len < va && va + len != 0) return TptStatus::kOutOfRange;
  if (!mkey->length64 &&
      (va < mkey->start || va - mkey->start > mkey->len || len > mkey->len - (va - mkey->start))) {
    return TptStatus::kOutOfRange;
  }
  return TptStatus::kOk;
}

// What lies behind an indirect key is used on its own side: the window, or list, grants what the far end may
// do, and the keys in it have to allow it locally (IBTA 10.6.7.2.1).
Access Tpt::behind(Access access) {
  switch (access) {
    case Access::kRemoteRead:
      return Access::kLocalRead;
    case Access::kRemoteWrite:
    case Access::kRemoteAtomic:
      return Access::kLocalWrite;
    default:
      return access;
  }
}

namespace {
bool reserved_key_of(const KeyUser& user, std::uint32_t wire_key) {
  return wire_key == kReservedKey && user.reserved_key;
}
}  // namespace

TptStatus Tpt::check(std::uint32_t wire_key, const KeyUser& user, Access access, std::uint64_t va,
                     std::uint64_t len) const {
  if (len == 0) return TptStatus::kOk;
  if (__builtin_expect(wire_key == kDumpFillKey || wire_key == kReservedKey, 0)) {
    if (wire_key != kDumpFillKey && !reserved_key_of(user, wire_key)) return TptStatus::kBadKey;
    return is_local(access) ? TptStatus::kOk : TptStatus::kNoRight;
  }
  const Mkey* mkey = find(user.function, wire_key >> 8);
  if (!mkey || mkey->free || mkey->key != (wire_key & 0xff)) return TptStatus::kBadKey;
  if (mkey->signature && mkey->signature->active()) {
    // The address counts as on the wire; the bounds are those of the memory.
    if (va < mkey->start || va - mkey->start > kMaxLength || len > kMaxLength) return TptStatus::kOutOfRange;
    std::uint64_t off = va - mkey->start;
    mkey->signature->to_memory(off, len);
    va = mkey->start + off;
  }
  return verify(mkey, user, access, va, len);
}

Mkey* Tpt::signed_key(FunctionId f, std::uint32_t wire_key) const {
  Mkey* mkey = find(f, wire_key >> 8);
  return mkey && mkey->signature && mkey->signature->active() ? mkey : nullptr;
}

void Tpt::signature_error(Time t, std::uint32_t qpn, Mkey& mkey, const SigError& error, bool requester) {
  if (mkey.signature->reported) return;
  mkey.signature->reported = true;
  if (signature_error_) signature_error_(t, qpn, mkey, error, requester);
}

Translation Tpt::translate(Time t, std::uint32_t wire_key, const KeyUser& user, Access access,
                           std::uint64_t va, std::uint64_t len, std::vector<Fragment>& out) {
  if (len == 0) return {TptStatus::kOk, t, 0};
  if (len > kMaxLength) return {TptStatus::kOutOfRange, t, 0};
  Walk w{user, keys_[user.function], access, &out, out.size(), t + profile_.engine.translate, 0, 0};
  const TptStatus status = walk(w, wire_key, va, len, 0);
  return {status, w.t, w.misses};
}

bool Tpt::reach_anew(Time t, Page& page, std::uint32_t wire_key, const KeyUser& user, Access access,
                     std::uint64_t va, std::uint64_t len, Piece& piece) {
  page = {};
  if (check(wire_key, user, access, va, len) != TptStatus::kOk || signed_key(user.function, wire_key))
    return false;
  fragments_.clear();
  const Translation tr = translate(t, wire_key, user, access, va, len, fragments_);
  if (tr.status != TptStatus::kOk || fragments_.size() != 1 || fragments_.front().space != Space::kHost)
    return false;
  piece = {fragments_.front().addr, tr.ready, tr.misses != 0};
  const Mkey* mkey = find(user.function, wire_key >> 8);
  if (!mkey || mkey->mode != AccessMode::kMtt) return true;
  const std::uint64_t in_page = (1ULL << mkey->log_page) - 1, from = mkey->start & ~in_page;
  const std::uint64_t begin = from + ((va - from) & ~in_page), end = begin + in_page;
  const std::uint64_t first = std::max(begin, mkey->start);
  // The key's last byte; without a length it has none.
  const std::uint64_t last = mkey->length64 ? end : std::min(end, mkey->start + mkey->len - 1);
  if (va < first || end < begin || va > last || len - 1 > last - va) return true;
  page = {wire_key, first, last, piece.addr - va, std::max(mkey_cache_.there(), mtt_cache_.there())};
  return true;
}

void Tpt::list_line(Walk& w, std::uint64_t id) {
  const ContextFetch::Got line = contexts_.get(w.t, mtt_cache_, id, kLineBytes);
  w.t = line.at;
  w.misses += line.missed;
}

// Most pieces are in one page. False: this one is not, or may not be accessed; nothing has been done.
[[gnu::always_inline]] inline bool Tpt::walk_one_page(Walk& w, const Mkey& mkey, std::uint64_t va,
                                                      std::uint64_t len) {
  const std::uint64_t page_mask = (1ULL << mkey.log_page) - 1;
  const std::uint64_t in_list = va - (mkey.start & ~page_mask);
  const std::uint64_t index = in_list >> mkey.log_page, in_page = in_list & page_mask;
  if (len - 1 > page_mask - in_page || index >= mkey.xlt.size()) return false;
  const std::uint64_t entry = mkey.xlt[index], addr = (entry & ~kMttFlags) + in_page;
  if (mkey.paged && (entry & entry_flags(w.access)) != entry_flags(w.access)) return false;
  if (addr + len < addr || len > kMaxFragment || w.out->size() != w.first) return false;
  const std::uint64_t line = mkey.line_id(index / kMttGroup);
  if (mtt_cache_.touch(line)) {
    w.t = std::max(w.t, mtt_cache_.there());
  } else {
    const Time at = contexts_.read(w.t, kLineBytes);
    mtt_cache_.arrives(line, at);
    w.t = std::max(w.t, at);
    ++w.misses;
  }
  Fragment& f = w.out->emplace_back();  // in its place: see TimedQueue::Entry
  f.addr = addr;
  f.len = static_cast<std::uint32_t>(len);
  f.space = Space::kHost;
  return true;
}

TptStatus Tpt::walk(Walk& w, std::uint32_t wire_key, std::uint64_t va, std::uint64_t len, unsigned depth) {
  if (__builtin_expect(wire_key == kDumpFillKey || wire_key == kReservedKey, 0)) {
    const bool reserved = depth == 0 && reserved_key_of(w.user, wire_key);
    if (wire_key != kDumpFillKey && !reserved) return TptStatus::kBadKey;
    if (depth == 0 && !is_local(w.access)) return TptStatus::kNoRight;
    const bool fits = reserved ? append(w, va, len) : append(w, 0, len, Space::kSink);
    return fits ? TptStatus::kOk : TptStatus::kBadList;
  }
  const Mkey* mkey = w.keys.find(wire_key >> 8);
  if (!mkey || mkey->free || mkey->key != (wire_key & 0xff)) return TptStatus::kBadKey;
  const ContextFetch::Got entry =
      contexts_.get(w.t, mkey_cache_, context_id(mkey->function, mkey->index), profile_.cache.mkey_bytes);
  w.t = entry.at;
  w.misses += entry.missed;
  const TptStatus status = verify(mkey, w.user, depth == 0 ? w.access : behind(w.access), va, len);
  if (status != TptStatus::kOk) return status;
  if (mkey->log_page >= 64) return TptStatus::kBadList;
  if (depth != 0 && mkey->signature && mkey->signature->active()) return TptStatus::kBadList;
  switch (mkey->mode) {
    case AccessMode::kPa:
      return append(w, va, len) ? TptStatus::kOk : TptStatus::kBadList;
    case AccessMode::kMtt:
      return walk_one_page(w, *mkey, va, len) ? TptStatus::kOk : walk_mtt(w, *mkey, va, len);
    case AccessMode::kKlm:
      return depth < kMaxDepth ? walk_klm(w, *mkey, va - mkey->start, len, depth) : TptStatus::kBadList;
    case AccessMode::kKsm:
      return depth < kMaxDepth ? walk_ksm(w, *mkey, va - mkey->start, len, depth) : TptStatus::kBadList;
    case AccessMode::kSwIcm:
      return append(w, mkey->base + va, len, Space::kSwIcm) ? TptStatus::kOk : TptStatus::kBadList;
    case AccessMode::kMemic:
      return append(w, mkey->base + va, len, Space::kMemic) ? TptStatus::kOk : TptStatus::kBadList;
  }
  return TptStatus::kBadList;
}

// The next part of a long message lies behind: two lines of the translation list from `line` on come from
// memory meanwhile. lines: the identity of the list's first line.
inline void Tpt::prefetch_list(std::uint64_t lines, const std::uint64_t* entries, std::uint64_t line,
                               std::uint64_t count) const {
  for (const std::uint64_t next : {line, line + 1}) {
    if (next * kMttGroup >= count) break;
    mtt_cache_.ask_for(lines | next);
    __builtin_prefetch(entries + next * kMttGroup);
  }
}

TptStatus Tpt::walk_mtt(Walk& w, const Mkey& mkey, std::uint64_t va, std::uint64_t len) {
  const std::uint64_t page_mask = (1ULL << mkey.log_page) - 1;
  // The first entry is the page that holds `start`.
  const std::uint64_t in_list = va - (mkey.start & ~page_mask);
  std::uint64_t index = in_list >> mkey.log_page;
  std::uint64_t in_page = in_list & page_mask;
  std::uint64_t group = ~0ULL;
  std::uint64_t first_missed = 0;
  unsigned missed = 0;
  Time there = w.t;
  const std::uint64_t need = mkey.paged ? entry_flags(w.access) : 0;
  const std::uint64_t* const entries = mkey.xlt.data();
  const std::uint64_t lines = mkey.line_id(0);
  const std::uint64_t count = mkey.xlt.size(), page = page_mask + 1;
  while (len) {
    // What was set aside and never written is not there either.
    if (index >= count) return mkey.paged && index < mkey.xlt_words ? TptStatus::kFault : TptStatus::kBadList;
    if (index / kMttGroup != group) {
      group = index / kMttGroup;
      if (mtt_cache_.touch(lines | group))
        there = std::max(there, mtt_cache_.there());
      else if (missed++ == 0)
        first_missed = group;
    }
    const std::uint64_t from = entries[index];
    if ((from & need) != need) return TptStatus::kFault;
    std::uint64_t piece = page - in_page;
    // The pages behind it that lie behind it, as far as their entries come with the same line.
    const std::uint64_t end = std::min(count, (group + 1) * kMttGroup);
    for (std::uint64_t next = from + page; piece < len && ++index < end && entries[index] == next;
         next += page)
      piece += page;
    if (piece >= len) {
      piece = len;
      ++index;
    }
    if (!append(w, (from & ~kMttFlags) + in_page, piece)) return TptStatus::kBadList;
    len -= piece;
    in_page = 0;
  }
  prefetch_list(lines, entries, group + 1, count);
  if (missed) {
    const Time at = contexts_.read(w.t, missed * kLineBytes);
    for (std::uint64_t g = first_missed; g <= group; ++g) mtt_cache_.arrives(mkey.line_id(g), at);
    there = std::max(there, at);
    ++w.misses;
  }
  w.t = there;
  return TptStatus::kOk;
}

TptStatus Tpt::walk_klm(Walk& w, const Mkey& mkey, std::uint64_t offset, std::uint64_t len, unsigned depth) {
  const std::size_t entries = mkey.xlt.size() / 2;
  list_line(w, mkey.line_id(0));
  for (std::size_t i = 0; i < entries && len; ++i) {
    if (++w.steps > kMaxSteps) return TptStatus::kBadList;
    const std::uint64_t bytes = mkey.xlt[2 * i] >> 32;
    if (static_cast<std::uint32_t>(mkey.xlt[2 * i]) == kRepeatKey) {
      const TptStatus status = walk_repeat(w, mkey, i, offset, len, depth);
      if (status != TptStatus::kOk) return status;
      continue;
    }
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

// A strided block of a KLM list: a head (bytes of one round, kRepeatKey, how many rounds), then its entries
// (stride and byte count of 16 bits each, key, address). Round r takes each entry's bytes at its address + r
// * stride. Moves `i` to the block's last word pair; takes what it covers from `offset`, then from `len`.
TptStatus Tpt::walk_repeat(Walk& w, const Mkey& mkey, std::size_t& i, std::uint64_t& offset,
                           std::uint64_t& len, unsigned depth) {
  const std::size_t left = mkey.xlt.size() / 2 - i - 1;
  const std::uint64_t round_bytes = mkey.xlt[2 * i] >> 32;
  const std::uint64_t rounds = mkey.xlt[2 * i + 1] >> 32;
  const std::size_t entries = mkey.xlt[2 * i + 1] & 0xffff;
  const std::size_t first = i + 1;
  if (entries == 0 || entries > left) return TptStatus::kBadList;
  i += entries;
  std::uint64_t sum = 0;
  for (std::size_t e = first; e < first + entries; ++e) sum += mkey.xlt[2 * e] >> 32 & 0xffff;
  if (sum != round_bytes || sum == 0) return TptStatus::kBadList;
  w.steps += static_cast<unsigned>(entries);
  if (offset / sum >= rounds) {
    offset -= rounds * sum;
    return TptStatus::kOk;
  }
  for (std::uint64_t r = offset / sum; r < rounds && len; ++r) {
    offset = offset >= sum ? offset % sum : offset;
    for (std::size_t e = first; e < first + entries && len; ++e) {
      if (++w.steps > kMaxSteps) return TptStatus::kBadList;
      const std::uint64_t stride = mkey.xlt[2 * e] >> 48, bytes = mkey.xlt[2 * e] >> 32 & 0xffff;
      if (offset >= bytes) {
        offset -= bytes;
        continue;
      }
      const std::uint64_t piece = std::min(len, bytes - offset);
      const auto key = static_cast<std::uint32_t>(mkey.xlt[2 * e]);
      const TptStatus status = walk(w, key, mkey.xlt[2 * e + 1] + r * stride + offset, piece, depth + 1);
      if (status != TptStatus::kOk) return status;
      len -= piece;
      offset = 0;
    }
  }
  return TptStatus::kOk;
}

TptStatus Tpt::walk_ksm(Walk& w, const Mkey& mkey, std::uint64_t offset, std::uint64_t len, unsigned depth) {
  const std::uint64_t entries = mkey.written_words() / 2;
  const std::uint64_t mask = (1ULL << mkey.log_page) - 1;
  std::uint64_t index = offset >> mkey.log_page;
  std::uint64_t inside = offset & mask;
  list_line(w, mkey.line_id(index / (kMttGroup / 2)));
  while (len) {
    if (index >= entries || ++w.steps > kMaxSteps) return TptStatus::kBadList;
    const std::uint64_t piece = std::min(len, mask - inside + 1);
    const auto [count_and_key, address] = mkey.piece(index);
    const auto key = static_cast<std::uint32_t>(count_and_key);
    if (key == kNullKey) return TptStatus::kFault;  // implicit on-demand paging: a part that was never used
    const TptStatus status = walk(w, key, address + inside, piece, depth + 1);
    if (status != TptStatus::kOk) return status;
    len -= piece;
    inside = 0;
    ++index;
  }
  return TptStatus::kOk;
}

// Adjacent pieces become one fragment; fragments have 32-bit lengths.
bool Tpt::append(Walk& w, std::uint64_t addr, std::uint64_t len, Space space) {
  constexpr std::uint64_t kMax = kMaxFragment;
  std::vector<Fragment>& out = *w.out;
  if (addr + len < addr && addr + len != 0) return false;
  while (len) {
    if (out.size() > w.first && out.back().space == space && out.back().addr + out.back().len == addr &&
        out.back().len + len <= kMax) {
      out.back().len += static_cast<std::uint32_t>(len);
      return true;
    }
    const std::uint64_t piece = std::min(len, kMax);
    Fragment& f = out.emplace_back();  // in its place: see TimedQueue::Entry
    f.addr = addr;
    f.len = static_cast<std::uint32_t>(piece);
    f.space = space;
    addr += piece;
    len -= piece;
  }
  return true;
}

}  // namespace hcasim
