// SPDX-License-Identifier: BSD-3-Clause
// Translation and protection table: MKEY lookup, access check, MTT / KLM walk (IBTA vol. 1, 10.6).
#ifndef HCASIM_MODEL_TPT_TPT_H
#define HCASIM_MODEL_TPT_TPT_H

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/ctx/fetch.h"
#include "model/pcie/local_memory.h"
#include "model/profile.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "model/tpt/mkey.h"

namespace hcasim {

enum class Access : std::uint8_t { kLocalRead, kLocalWrite, kRemoteRead, kRemoteWrite, kRemoteAtomic };

enum class TptStatus : std::uint8_t {
  kOk,
  kBadKey,      // no such mkey, wrong key byte, free entry
  kBadPd,       // PD (or mkc.qpn) differs
  kNoRight,     // access right missing
  kOutOfRange,  // outside of [start, start + len)
  kBadList,     // translation list too short, too deep or malformed
  kFault,       // a page is not there: on-demand paging (model/tpt/fault.h)
};

// One contiguous piece of bus addresses, or of the device's own memory.
struct Fragment {
  std::uint64_t addr = 0;
  std::uint32_t len = 0;
  Space space = Space::kHost;
};

struct Translation {
  TptStatus status = TptStatus::kOk;
  Time ready = 0;            // when the addresses are known (cache misses included)
  std::uint32_t misses = 0;  // of the MKEY and MTT caches, for traces
};

class Tpt {
 public:
  Tpt(const Profile& profile, ContextFetch& contexts, PerFunction<MkeyTable> keys,
      PerFunction<PsvTable> psvs);

  Mkey* find(FunctionId f, std::uint32_t index) const { return keys_[f].find(index); }
  bool destroy(FunctionId f, std::uint32_t index);
  void clear();
  // UMR or firmware changed the entry: cached copies are dropped; the second form: of `words` words of the
  // list from `first` on alone.
  void invalidate(const Mkey& mkey);
  void invalidate(const Mkey& mkey, std::uint64_t first, std::uint64_t words);

  // The function is reset: none of its entries is on the chip any more.
  void invalidate_all_of(FunctionId f);

  // Called before an entry of the function changes: what it led to has been read by then.
  void on_invalidate(std::function<void(FunctionId)> handler) { invalidate_ = std::move(handler); }

  // Checks [va, va + len) against `wire_key` and appends its fragments to `out` (not cleared). Work is
  // bounded by pages touched + kMaxSteps list entries; KLM nesting by kMaxDepth. len = 0 checks nothing and
  // succeeds, as IBTA has it for zero-length operations. MTT entries that miss the cache are fetched
  // together: one read's latency for each level of a list.
  Translation translate(Time t, std::uint32_t wire_key, const KeyUser& user, Access access, std::uint64_t va,
                        std::uint64_t len, std::vector<Fragment>& out);
  // Short pieces of one piece of work, one after the other: what follows in the same page of the same key
  // needs no walk. Nothing may change a key while it lasts.
  struct Page {
    std::uint32_t key = 0;
    std::uint64_t first = 1, last = 0;  // the virtual addresses that it is known of: none
    std::uint64_t to_bus = 0;           // added to them
    Time there = 0;                     // its entries, in the caches
  };
  struct Piece {
    std::uint64_t addr = 0;  // bus
    Time ready = 0;
    bool missed = false;  // an entry was not in its cache
  };
  // check() and translate() of [va, va + len), len > 0. False: it is not allowed, not there, not in one piece
  // of the host's memory, or transformed on its way.
  bool reach(Time t, Page& page, std::uint32_t wire_key, const KeyUser& user, Access access, std::uint64_t va,
             std::uint64_t len, Piece& piece) {
    if (wire_key != page.key || va < page.first || va > page.last || len - 1 > page.last - va)
      return reach_anew(t, page, wire_key, user, access, va, len, piece);
    mkey_cache_.touch_again();
    mtt_cache_.touch_again();
    piece = {va + page.to_bus, std::max(t + profile_.engine.translate, page.there), false};
    return true;
  }
  // The access check of the key itself alone, without its translation list.
  TptStatus check(std::uint32_t wire_key, const KeyUser& user, Access access, std::uint64_t va,
                  std::uint64_t len) const;

  // --- Signatures
  PsvTable& psvs(FunctionId f) const { return psvs_[f]; }
  void prefetch() const {
    mkey_cache_.prefetch();
    mtt_cache_.prefetch();
  }
  // The key if what goes through it is transformed on its way; null for any other.
  Mkey* signed_key(FunctionId f, std::uint32_t wire_key) const;
  // Reported once for each key until a UMR takes note. requester: found while executing a send WQE of the QP.
  using SignatureErrorHandler =
      std::function<void(Time, std::uint32_t qpn, const Mkey&, const SigError&, bool requester)>;
  void on_signature_error(SignatureErrorHandler handler) { signature_error_ = std::move(handler); }
  void signature_error(Time t, std::uint32_t qpn, Mkey& mkey, const SigError& error, bool requester);

  static constexpr unsigned kMaxDepth = 4;  // cap.max_indirection

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, mkey_cache_, mtt_cache_);
  }

 private:
  static constexpr unsigned kMaxSteps = 1u << 16;  // list entries looked at in one translation

  struct Walk {
    const KeyUser& user;
    const MkeyTable& keys;
    Access access;
    std::vector<Fragment>* out;
    std::size_t first;  // fragments before are not ours to merge with
    Time t;
    unsigned steps, misses;
  };
  TptStatus walk(Walk& w, std::uint32_t wire_key, std::uint64_t va, std::uint64_t len, unsigned depth);
  bool reach_anew(Time t, Page& page, std::uint32_t wire_key, const KeyUser& user, Access access,
                  std::uint64_t va, std::uint64_t len, Piece& piece);
  bool walk_one_page(Walk& w, const Mkey& mkey, std::uint64_t va, std::uint64_t len);
  TptStatus walk_mtt(Walk& w, const Mkey& mkey, std::uint64_t va, std::uint64_t len);
  TptStatus walk_klm(Walk& w, const Mkey& mkey, std::uint64_t offset, std::uint64_t len, unsigned depth);
  TptStatus walk_repeat(Walk& w, const Mkey& mkey, std::size_t& i, std::uint64_t& offset, std::uint64_t& len,
                        unsigned depth);
  TptStatus walk_ksm(Walk& w, const Mkey& mkey, std::uint64_t offset, std::uint64_t len, unsigned depth);
  bool append(Walk& w, std::uint64_t addr, std::uint64_t len, Space space = Space::kHost);
  void prefetch_list(std::uint64_t lines, const std::uint64_t* entries, std::uint64_t line,
                     std::uint64_t count) const;
  // Waits for a line of a translation list.
  void list_line(Walk& w, std::uint64_t id);
  static Access behind(Access access);
  static TptStatus verify(const Mkey* mkey, const KeyUser& user, Access access, std::uint64_t va,
                          std::uint64_t len);

  const Profile& profile_;
  ContextFetch& contexts_;
  const PerFunction<MkeyTable> keys_;
  const PerFunction<PsvTable> psvs_;
  SignatureErrorHandler signature_error_;
  std::function<void(FunctionId)> invalidate_;
  std::vector<Fragment> fragments_;  // scratch
  ContextCache mkey_cache_;
  ContextCache mtt_cache_;
};

}  // namespace hcasim
#endif
