// SPDX-License-Identifier: BSD-3-Clause
// CREATE_MKEY, QUERY_MKEY, DESTROY_MKEY, QUERY_SPECIAL_CONTEXTS.
#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "model/tpt/mkey.h"
#include "prm/umem.h"

namespace hcasim::fw {

namespace {

// Translation list entries of all mkeys together: what is set aside costs memory of ours, and a driver only
// has to name a number to get it.
constexpr std::uint64_t kMaxSparseWords = 1u << 28;  // of one mkey
constexpr unsigned kMinPageShift = Mkey::kMinLogPage, kMaxPageShift = Mkey::kMaxLogPage;

unsigned mode_of(const std::uint8_t* mkc) {
  return prm::get<prm::mkc::access_mode_4_2>(mkc) << 2 | prm::get<prm::mkc::access_mode_1_0>(mkc);
}

// Entries that an MTT list needs to cover [start, start + len).
std::uint64_t mtt_entries(std::uint64_t start, std::uint64_t len, unsigned shift) {
  const std::uint64_t page = std::uint64_t{1} << shift;
  const std::uint64_t in_page = start & (page - 1);
  const std::uint64_t whole = len >> shift, rest = (len & (page - 1)) + in_page;
  return whole + ((rest + page - 1) >> shift);
}

// The list of an mkey over a UMEM: its first byte is the UMEM's at mkey_umem_offset. Pages as large as both
// addresses allow; `shift`: bytes, log2.
Syndrome read_umem(Firmware& fw, const Command& cmd, std::uint64_t start, std::uint64_t len, bool writes,
                   std::vector<std::uint64_t>& xlt, unsigned& shift) {
  const std::uint64_t offset = cmd.get<prm::umem_ref::mkey_offset>();
  GuestRing part;
  const Syndrome s = umem_ring(fw, cmd, cmd.get<prm::umem_ref::mkey_id>(), offset, len, 1, writes, part);
  if (s != Syndrome::kOk) return s;
  shift = std::min(part.log_page, kMaxPageShift);
  while (shift > kMinPageShift && ((part.start ^ start) & ((std::uint64_t{1} << shift) - 1)) != 0) --shift;
  const std::uint64_t page = std::uint64_t{1} << shift;
  if (((part.start ^ start) & (page - 1)) != 0) return Syndrome::kUmemOffset;
  const std::uint64_t n = mtt_entries(start, len, shift), first = part.start & ~(page - 1);
  if (n > kMaxListWords) return Syndrome::kMkeyListSize;
  xlt.resize(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t at = first + (i << shift);
    xlt[i] = part.pages[at >> part.log_page] + (at & (part.page_size() - 1));
  }
  return Syndrome::kOk;
}

// CREATE_MKEY's input as it is checked, step by step; nothing is changed before all of it is found good.
struct Request {
  using In = prm::create_mkey_in;
  using C = In::memory_key_mkey_entry;
  // The number that is asked for: the 24 bits before pg_access, which the kernel's header does not name
  // (rdma-core's tests do).
  using InputIndex = prm::Field<In::pg_access::bit_off - 24, 24>;
  static constexpr std::size_t kList = In::klm_pas_mtt::bit_off / 8;

  explicit Request(const Command& cmd);
  Syndrome check(Firmware& fw, const Command& cmd);
  Syndrome read_list(Firmware& fw, const Command& cmd);
  void check_pages(Firmware& fw, const Command& cmd) const;
  void fill(const Command& cmd, Mkey& m);

  bool is(AccessMode m) const { return mode == static_cast<unsigned>(m); }
  bool device() const { return is(AccessMode::kMemic) || is(AccessMode::kSwIcm); }
  bool mtt() const { return is(AccessMode::kMtt); }
  bool sparse() const { return is(AccessMode::kKsm) && size_words > Mkey::kSparseWords; }
  std::uint64_t footprint() const { return sparse() ? SparseList::footprint(size_words) : size_words; }
  bool wraps() const { return len != 0 && start + (len - 1) < start; }

  unsigned mode;
  bool is_free, length64;
  std::uint32_t bsf;  // octowords
  std::uint64_t start, len;
  unsigned shift;  // page size, log2
  std::uint64_t size_words, given_words;
  bool umem = false;  // the list is that of a UMEM
  PlainObject* pd = nullptr;
  PlainObject* memic = nullptr;
  std::vector<std::uint64_t> xlt;
};

Request::Request(const Command& cmd)
    : mode(mode_of(prm::ptr<C>(cmd.in.data()))),
      is_free(cmd.get<C::free>() != 0),
      length64(cmd.get<C::length64>() != 0),
      bsf(cmd.get<C::bsf_octword_size>()),
      start(cmd.get<C::start_addr>()),
      len(cmd.get<C::len>()),
      shift(cmd.get<C::log_page_size>()),
      size_words(std::uint64_t{2} * cmd.get<C::translations_octword_size>()),
      given_words(std::uint64_t{2} * cmd.get<In::translations_octword_actual_size>()) {}

Syndrome Request::check(Firmware& fw, const Command& cmd) {
  if (mode > static_cast<unsigned>(AccessMode::kKsm) && !device()) return Syndrome::kMkeyMode;
  // Signatures: of what a UMR brings later, and of lists of pieces alone.
  if (cmd.get<InputIndex>() != 0 || cmd.get<C::ma_translation_mode>() > (fw.options().ats ? 1 : 0) ||
      (bsf != 0) != (cmd.get<C::bsf_en>() != 0) ||
      (bsf != 0 && (bsf != kBsfOctowords || !is(AccessMode::kKlm))))
    return Syndrome::kMkeyFeature;
  pd = fw.objects().pds.find(cmd.get<C::pd>());
  // A key of the kernel's that a UMR fills later may get its PD with it (Linux before 5.11).
  const bool later = cmd.get<C::pd>() == 0 && is_free && cmd.get<C::umr_en>() != 0 && cmd.uid == 0;
  if (pd == nullptr && !later) return Syndrome::kMkeyPd;
  const bool listed = !is(AccessMode::kPa) && !device();
  // An entry for user contexts has no list of its own, and never all of memory; an empty one has none at all.
  if (!listed && !device() && cmd.uid != 0 && cmd.uid != kSharedUid) return Syndrome::kMkeyMode;
  umem = mtt() && cmd.get<In::mkey_umem_valid>() != 0 &&
         !(cmd.get<prm::umem_ref::mkey_id>() == 0 && (is_free || len == 0));
  if (cmd.get<In::mkey_umem_valid>() != 0 && !mtt()) return Syndrome::kUmem;
  // A kernel says so of what processes ask for, so that no list of bus addresses is theirs.
  if (cmd.get<In::mkey_umem_valid>() != 0 && !umem && given_words != 0) return Syndrome::kMkeyList;
  if (!umem && (given_words > (cmd.in_len - kList) / 8 || given_words > size_words))
    return Syndrome::kMkeyList;
  if (!listed && size_words != 0) return Syndrome::kMkeyList;
  if (is(AccessMode::kMemic)) memic = fw.objects().memic_holding(fw.function().memic(), start, len);
  if (is(AccessMode::kMemic) && (memic == nullptr || length64)) return Syndrome::kMkeyMemic;
  if (is(AccessMode::kSwIcm) && (length64 || !fw.function().sw_steering().icm().allocated(start, len)))
    return Syndrome::kMkeyRange;
  return Syndrome::kOk;
}

// May throw for lack of memory: before anything is charged.
Syndrome Request::read_list(Firmware& fw, const Command& cmd) {
  if (umem) {
    if (length64) return Syndrome::kUmemRange;
    if (wraps()) return Syndrome::kMkeyWrap;
    const bool writes = cmd.get<C::lw>() != 0 || cmd.get<C::rw>() != 0 || cmd.get<C::a>() != 0;
    const Syndrome s = read_umem(fw, cmd, start, len, writes, xlt, shift);
    if (s != Syndrome::kOk) return s;
    given_words = xlt.size();
    size_words = std::max(size_words, given_words);
  } else {
    xlt.resize(given_words);
    for (std::uint64_t i = 0; i < given_words; ++i) xlt[i] = prm::load64(cmd.in.data() + kList + 8 * i);
  }
  if (is_free) return Syndrome::kOk;
  if (!length64 && wraps()) return Syndrome::kMkeyWrap;
  if (mtt() && (shift < kMinPageShift || shift > kMaxPageShift)) return Syndrome::kMkeyPageSize;
  if (mtt() && !length64 && mtt_entries(start, len, shift) > given_words) return Syndrome::kMkeyRange;
  return Syndrome::kOk;
}

// What is below the page size is cut off: the key then leads elsewhere. The lowest byte has flags.
void Request::check_pages(Firmware& fw, const Command& cmd) const {
  const std::uint64_t below =
      mtt() && shift <= kMaxPageShift ? ((std::uint64_t{1} << shift) - 1) & ~std::uint64_t{0xff} : 0;
  const auto cut =
      std::find_if(xlt.begin(), xlt.end(), [&](std::uint64_t entry) { return (entry & below) != 0; });
  if (cut != xlt.end())
    fw.tracer().broke_value(traces::Rule::kMkeyPages, cmd.now, traces::RuleObject::kCommand, cmd.seq, *cut);
}

void Request::fill(const Command& cmd, Mkey& m) {
  m.key = static_cast<std::uint8_t>(cmd.get<C::mkey_7_0>());
  m.free = is_free;
  m.mode = static_cast<AccessMode>(mode);
  m.rights.local_read = cmd.get<C::lr>() != 0;
  m.rights.local_write = cmd.get<C::lw>() != 0;
  m.rights.remote_read = cmd.get<C::rr>() != 0;
  m.rights.remote_write = cmd.get<C::rw>() != 0;
  m.rights.atomic = cmd.get<C::a>() != 0;
  m.umr_en = cmd.get<C::umr_en>() != 0;
  m.remote_invalidate_en = cmd.get<C::en_rinval>() != 0;
  m.relaxed_write = cmd.get<C::relaxed_ordering_write>() != 0;
  m.relaxed_read = cmd.get<C::relaxed_ordering_read>() != 0;
  m.length64 = length64;
  m.pd = cmd.get<C::pd>();
  m.qpn = cmd.get<C::qpn>();
  // Device memory is zero-based, and start_addr is where it lies.
  m.start = device() ? 0 : start;
  m.base = device() ? start : 0;
  m.len = len;
  m.log_page = shift;
  if (bsf != 0) {
    m.signature = std::make_unique<MkeySignature>();
    m.signature->room = bsf;
    m.signature->enabled = true;
  }
  m.xlt_words = size_words;
  if (sparse()) {
    m.sparse = std::make_unique<SparseList>(size_words);
    // A command's list is shorter than what may be filled.
    m.sparse->write(0, xlt.data(), xlt.size());
  } else {
    m.xlt = std::move(xlt);
  }
  // A list that the command brings grants what its flags say only if it is said to have them; one that comes
  // by UMR always has. That of a UMEM has none: its pages were looked at when it was made.
  m.paged = !umem && (given_words == 0 || cmd.get<In::pg_access>() != 0);
}

}  // namespace

Syndrome create_mkey(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  Request r(cmd);
  Syndrome s = r.check(fw, cmd);
  if (s == Syndrome::kOk) s = r.read_list(fw, cmd);
  if (s != Syndrome::kOk) return s;
  r.check_pages(fw, cmd);
  if (r.size_words > (r.sparse() ? kMaxSparseWords : kMaxListWords) || r.footprint() > o.list_words_left())
    return Syndrome::kMkeyListSize;
  if (o.mkeys.full()) return Syndrome::kMkeyLimit;
  // An empty list costs pages only when it is filled; UMR does that without the firmware: not counted.
  const std::uint64_t icm = kIcmMkey + r.given_words * kIcmMtt;
  if (!fw.pages().charge(icm)) return Syndrome::kWaitPages;

  std::uint32_t index = 0;
  MkeyObject* object = o.mkeys.create(index);
  Mkey* m = fw.function().mkeys().create(index);
  if (m == nullptr) {
    o.mkeys.destroy(index);
    fw.pages().release(icm);
    return Syndrome::kMkeyLimit;
  }
  std::memcpy(object->mkc.data(), prm::ptr<Request::C>(cmd.in.data()), object->mkc.size());
  object->pd = Ref(r.pd);
  object->memic = Ref(r.memic);
  object->icm = icm;
  object->reserved = r.footprint();
  o.take_list(object->reserved);
  r.fill(cmd, *m);
  fw.device().tpt().invalidate(*m);
  cmd.put<prm::create_mkey_out::mkey_index>(index);
  fw.trace_create(ObjType::kMkey, index, cmd.uid);
  if (r.umem) hold_umems(fw, ObjType::kMkey, index, {cmd.get<prm::umem_ref::mkey_id>(), 0});
  return Syndrome::kOk;
}

Syndrome query_mkey(Firmware& fw, Command& cmd) {
  using out = prm::query_mkey_out;
  using c = out::memory_key_mkey_entry;
  const std::uint32_t index = cmd.get<prm::query_mkey_in::mkey_index>();
  const MkeyObject* object = fw.objects().mkeys.find(index);
  const Mkey* m = fw.function().mkeys().find(index);
  if (object == nullptr || m == nullptr) return Syndrome::kMkeyNumber;
  std::memcpy(prm::ptr<c>(cmd.out.data()), object->mkc.data(), object->mkc.size());
  // What UMR may have changed since.
  cmd.put<c::free>(m->free ? 1 : 0);
  cmd.put<c::a>(m->rights.atomic ? 1 : 0);
  cmd.put<c::rw>(m->rights.remote_write ? 1 : 0);
  cmd.put<c::rr>(m->rights.remote_read ? 1 : 0);
  cmd.put<c::lw>(m->rights.local_write ? 1 : 0);
  cmd.put<c::lr>(m->rights.local_read ? 1 : 0);
  cmd.put<c::en_rinval>(m->remote_invalidate_en ? 1 : 0);
  cmd.put<c::relaxed_ordering_write>(m->relaxed_write ? 1 : 0);
  cmd.put<c::relaxed_ordering_read>(m->relaxed_read ? 1 : 0);
  cmd.put<c::mkey_7_0>(m->key);
  cmd.put<c::pd>(m->pd);
  cmd.put<c::qpn>(m->qpn);
  cmd.put<c::start_addr>(m->start + m->base);
  cmd.put<c::len>(m->len);
  if (m->signature) cmd.put<c::bsf_en>(m->signature->enabled ? 1 : 0);
  cmd.put<c::log_page_size>(m->log_page);
  cmd.put<c::length64>(m->length64 ? 1 : 0);
  // The list as well, two BE64 words a piece, as far as there is room: how drivers see into an indirect key.
  if (cmd.op_mod > 1) return Syndrome::kOpMod;
  constexpr std::size_t list = out::bsf0_klm0_pas_mtt0_1::bit_off / 8;
  const std::size_t words = std::min<std::size_t>(m->written_words(), (cmd.out.size() - list) / 8);
  for (std::size_t i = 0; i < words; ++i)
    prm::store64(cmd.out.data() + list + 8 * i, m->sparse ? m->sparse->at(i / 2)[i % 2] : m->xlt[i]);
  return Syndrome::kOk;
}

Syndrome destroy_mkey(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t index = cmd.get<prm::destroy_mkey_in::mkey_index>();
  const MkeyObject* object = o.mkeys.find(index);
  if (object == nullptr) return Syndrome::kMkeyNumber;
  // No access through it may follow the answer.
  fw.device().tpt().destroy(fw.function().id(), index);
  fw.quiesce();
  fw.pages().release(object->icm);
  o.return_list(object->reserved);
  o.mkeys.destroy(index);
  fw.trace_destroy(ObjType::kMkey, index, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_special_contexts(Firmware& fw, Command& cmd) {
  if (cmd.op_mod != 0) return Syndrome::kOpMod;
  using out = prm::query_special_contexts_out;
  cmd.put<out::resd_lkey>(kReservedKey);
  if (fw.caps().get<prm::cmd_hca_cap::dump_fill_mkey>() != 0) cmd.put<out::dump_fill_mkey>(kDumpFillKey);
  if (fw.caps().get<prm::cmd_hca_cap::null_mkey>() != 0) cmd.put<out::null_mkey>(kNullKey);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
