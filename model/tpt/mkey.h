// SPDX-License-Identifier: BSD-3-Clause
// Memory keys (mkc of mlx5_ifc.h) as the translation and protection table holds them.
#ifndef HCASIM_MODEL_TPT_MKEY_H
#define HCASIM_MODEL_TPT_MKEY_H

#include <cstdint>
#include <memory>
#include <vector>

#include "model/function/number_table.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "model/tpt/signature.h"
#include "model/tpt/sparse_list.h"
#include "traces/tracer.h"

namespace hcasim {

// mkc.access_mode_4_2 << 2 | mkc.access_mode_1_0
// kSwIcm, kMemic: memory of the device's own, one run of it; virtual addresses count from 0.
enum class AccessMode : std::uint8_t { kPa = 0, kMtt = 1, kKlm = 2, kKsm = 3, kSwIcm = 4, kMemic = 5 };

// Keys that no driver gets for itself (query_special_contexts_out): one that discards what is written and
// reads as zeros, local only and of any PD; one that is no memory, for the holes of a list; in a KLM list,
// the head of a strided block; and one of all memory by bus addresses, for the local data of queues that may
// use it (qpc.rlky).
constexpr std::uint32_t kDumpFillKey = 0x200, kNullKey = 0x300, kRepeatKey = 0x400, kReservedKey = 0x500;
constexpr std::uint32_t kAnyQp = 0xffffff;

struct AccessRights {
  bool local_read = true;
  bool local_write = false;
  bool remote_read = false;
  bool remote_write = false;
  bool atomic = false;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, local_read, local_write, remote_read, remote_write, atomic);
  }
};

struct Mkey {
  std::uint32_t index = 0;  // 24 bits; the wire form is index << 8 | key
  FunctionId function = 0;
  std::uint8_t key = 0;
  bool free = false;  // mkc.free: the entry exists, an access is refused
  AccessMode mode = AccessMode::kMtt;
  AccessRights rights;
  bool umr_en = false;
  bool remote_invalidate_en = false;                 // mkc.en_rinval
  bool relaxed_write = false, relaxed_read = false;  // may be reordered on PCIe; kept for queries
  bool length64 = false;                             // covers the whole 64-bit space, start and len unused
  std::uint32_t pd = 0;
  std::uint32_t qpn = kAnyQp;
  std::uint64_t start = 0;  // virtual address of the first byte
  std::uint64_t len = 0;    // bytes
  std::uint64_t base = 0;   // kSwIcm, kMemic: where byte 0 lies in that memory (mkc.start_addr)
  unsigned log_page = 12;   // MTT: page size; KSM: entity size; bytes, log2
  // Translation list in host byte order. MTT: one word an entry, a page's bus address (low 3 bits are flags
  // and ignored). KLM, KSM: two words an entry, byte_count << 32 | mkey, then the address.
  // It grows as entries are written, up to xlt_words: most of what drivers set aside stays empty.
  std::vector<std::uint64_t> xlt;
  std::uint64_t xlt_words = 0;
  // Instead of xlt, for a KSM of more than kSparseWords; null otherwise.
  std::unique_ptr<SparseList> sparse;
  std::unique_ptr<MkeySignature> signature;  // null: the key has no room for a BSF
  // An entry grants what its flags say (prm::Mtt), and faults otherwise. Without: entries are plain
  // addresses.
  bool paged = false;

  static constexpr unsigned kMinLogPage = 12, kMaxLogPage = 40;  // of an MTT
  static constexpr std::uint64_t kSparseWords = 1u << 20;
  std::uint64_t written_words() const { return sparse ? xlt_words : xlt.size(); }
  // Of a KSM or KLM: byte_count << 32 | mkey, and the address.
  SparseList::Piece piece(std::uint64_t index) const {
    return sparse ? sparse->at(index) : SparseList::Piece{xlt[2 * index], xlt[2 * index + 1]};
  }

  bool usable_by(std::uint32_t n) const { return qpn == kAnyQp || qpn == n; }
  std::uint32_t wire_key() const { return index << 8 | key; }
  // By what the cache of translation lists knows a line of this key's list. Lines have 30 bits, so a function
  // has ten: kMaxFunctions.
  std::uint64_t line_id(std::uint64_t line) const {
    return static_cast<std::uint64_t>(index) << 32 | (static_cast<std::uint64_t>(function & 0xff) << 56) |
           (static_cast<std::uint64_t>(function >> 8) << 30) | line;
  }
  static FunctionId function_of_line(std::uint64_t id) {
    return static_cast<FunctionId>((id >> 56) | (id >> 30 & 3) << 8);
  }
  traces::Subject subject() const { return {function, wire_key()}; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, index, key, free, mode, rights, umr_en, remote_invalidate_en, relaxed_write,
                  relaxed_read, length64, pd, qpn, start, len, base, log_page, xlt, xlt_words, sparse,
                  signature, paged);
    if constexpr (Archive::kLoads)
      a.check(sparse ? sparse->is_of(xlt_words) : xlt.size() <= xlt_words,
              "the translation list has another size");
  }
};

// Who uses a key: a queue of a function, with the PD that its WQE or context names. kAnyPd, of QPs for UMR:
// it is the driver, and may use keys of all PDs (drivers of Linux up to 5.10 give such a QP another PD than
// the keys of its lists).
constexpr std::uint32_t kAnyPd = 0xffffffff;
struct KeyUser {
  std::uint32_t pd, qpn;
  FunctionId function;
  bool reserved_key = false;  // may use kReservedKey
};

// The keys of a function.
using MkeyTable = NumberTable<Mkey, &Mkey::index>;

// Records what the key grants from `t` on.
inline void trace_key(traces::Tracer& tracer, Time t, const Mkey& m) {
  const unsigned rights = unsigned{m.rights.local_read} | unsigned{m.rights.local_write} << 1 |
                          unsigned{m.rights.remote_read} << 2 | unsigned{m.rights.remote_write} << 3 |
                          unsigned{m.rights.atomic} << 4 | unsigned{m.free} << 8;
  traces::trace(tracer, traces::Point::kMkeyChanged, t, m.subject(), rights, m.start,
                m.length64 ? ~std::uint64_t{0} : m.len);
}

}  // namespace hcasim
#endif
