// SPDX-License-Identifier: BSD-3-Clause
// CREATE_MKEY, QUERY_MKEY, DESTROY_MKEY, QUERY_SPECIAL_CONTEXTS.
#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

namespace {

// Translation list entries of all mkeys together: what is set aside costs memory of ours, and a driver only
// has to name a number to get it.
constexpr std::uint64_t kMaxXltWords = 1u << 26;
constexpr unsigned kMinPageShift = 12, kMaxPageShift = 40;

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

}  // namespace

Syndrome create_mkey(Firmware& fw, Command& cmd) {
  using in = prm::create_mkey_in;
  using c = in::memory_key_mkey_entry;
  Objects& o = fw.objects();
  const std::uint8_t* mkc = prm::ptr<c>(cmd.in.data());
  if (cmd.get<in::mkey_umem_valid>() != 0) return Syndrome::kUmem;
  const unsigned mode = mode_of(mkc);
  if (mode > static_cast<unsigned>(AccessMode::kKsm)) return Syndrome::kMkeyMode;
  if (cmd.get<c::bsf_en>() != 0 || cmd.get<c::bsf_octword_size>() != 0 ||
      cmd.get<c::ma_translation_mode>() != 0)
    return Syndrome::kMkeyFeature;
  PlainObject* pd = o.pds.find(cmd.get<c::pd>());
  if (pd == nullptr) return Syndrome::kMkeyPd;

  const bool is_free = cmd.get<c::free>() != 0;
  const bool length64 = cmd.get<c::length64>() != 0;
  const std::uint64_t start = cmd.get<c::start_addr>(), len = cmd.get<c::len>();
  const unsigned shift = cmd.get<c::log_page_size>();
  const std::uint64_t size_words = std::uint64_t{2} * cmd.get<c::translations_octword_size>();
  const std::uint64_t given_words = std::uint64_t{2} * cmd.get<in::translations_octword_actual_size>();
  constexpr std::size_t list = in::klm_pas_mtt::bit_off / 8;
  if (given_words > (cmd.in_len - list) / 8 || given_words > size_words) return Syndrome::kMkeyList;
  const bool listed = mode != static_cast<unsigned>(AccessMode::kPa);
  const bool mtt = mode == static_cast<unsigned>(AccessMode::kMtt);
  if (!listed && size_words != 0) return Syndrome::kMkeyList;
  if (!is_free) {
    if (!length64 && len != 0 && start + (len - 1) < start) return Syndrome::kMkeyWrap;
    if (mtt && (shift < kMinPageShift || shift > kMaxPageShift)) return Syndrome::kMkeyPageSize;
    if (mtt && !length64 && mtt_entries(start, len, shift) > given_words) return Syndrome::kMkeyRange;
  }
  if (size_words > kMaxXltWords - std::min(kMaxXltWords, o.xlt_words)) return Syndrome::kMkeyListSize;
  if (o.mkeys.full()) return Syndrome::kMkeyLimit;
  // An empty list costs pages only when it is filled; UMR does that without the firmware: not counted.
  const std::uint64_t icm = kIcmMkey + given_words * kIcmMtt;
  std::vector<std::uint64_t> xlt(given_words);  // may throw: before anything is charged
  if (!fw.pages().charge(icm)) return Syndrome::kWaitPages;

  for (std::uint64_t i = 0; i < given_words; ++i) xlt[i] = prm::load64(cmd.in.data() + list + 8 * i);
  std::uint32_t index = 0;
  MkeyObject* object = o.mkeys.create(index);
  Mkey* m = fw.hca().tpt().create(index);
  if (m == nullptr) {
    o.mkeys.destroy(index);
    fw.pages().release(icm);
    return Syndrome::kMkeyLimit;
  }
  std::memcpy(object->mkc.data(), mkc, object->mkc.size());
  object->pd = cmd.get<c::pd>();
  object->icm = icm;
  object->reserved = size_words;
  o.xlt_words += size_words;
  ++pd->refs;
  m->key = static_cast<std::uint8_t>(cmd.get<c::mkey_7_0>());
  m->free = is_free;
  m->mode = static_cast<AccessMode>(mode);
  m->rights.local_read = cmd.get<c::lr>() != 0;
  m->rights.local_write = cmd.get<c::lw>() != 0;
  m->rights.remote_read = cmd.get<c::rr>() != 0;
  m->rights.remote_write = cmd.get<c::rw>() != 0;
  m->rights.atomic = cmd.get<c::a>() != 0;
  m->umr_en = cmd.get<c::umr_en>() != 0;
  m->remote_invalidate_en = cmd.get<c::en_rinval>() != 0;
  m->length64 = length64;
  m->pd = object->pd;
  m->qpn = cmd.get<c::qpn>();
  m->start = start;
  m->len = len;
  m->log_page = shift;
  m->xlt = std::move(xlt);
  m->xlt_words = size_words;
  fw.hca().tpt().invalidate(index);
  cmd.put<prm::create_mkey_out::mkey_index>(index);
  fw.trace_create(ObjType::kMkey, index, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_mkey(Firmware& fw, Command& cmd) {
  using out = prm::query_mkey_out;
  using c = out::memory_key_mkey_entry;
  const std::uint32_t index = cmd.get<prm::query_mkey_in::mkey_index>();
  const MkeyObject* object = fw.objects().mkeys.find(index);
  const Mkey* m = fw.hca().tpt().find(index);
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
  cmd.put<c::mkey_7_0>(m->key);
  cmd.put<c::pd>(m->pd);
  cmd.put<c::qpn>(m->qpn);
  cmd.put<c::start_addr>(m->start);
  cmd.put<c::len>(m->len);
  cmd.put<c::log_page_size>(m->log_page);
  cmd.put<c::length64>(m->length64 ? 1 : 0);
  // op_mod 1: the first entries of the list as well (two BE64 words a piece).
  if (cmd.op_mod == 1) {
    constexpr std::size_t list = out::bsf0_klm0_pas_mtt0_1::bit_off / 8;
    for (std::size_t i = 0; i < 4 && i < m->xlt.size(); ++i)
      prm::store64(cmd.out.data() + list + 8 * i, m->xlt[i]);
  } else if (cmd.op_mod != 0) {
    return Syndrome::kOpMod;
  }
  return Syndrome::kOk;
}

Syndrome destroy_mkey(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t index = cmd.get<prm::destroy_mkey_in::mkey_index>();
  const MkeyObject* object = o.mkeys.find(index);
  if (object == nullptr) return Syndrome::kMkeyNumber;
  // No access through it may follow the answer.
  fw.hca().tpt().destroy(index);
  fw.hca().quiesce();
  if (PlainObject* pd = o.pds.find(object->pd)) --pd->refs;
  fw.pages().release(object->icm);
  o.xlt_words -= object->reserved;
  o.mkeys.destroy(index);
  fw.trace_destroy(ObjType::kMkey, index, cmd.uid);
  return Syndrome::kOk;
}

// dump_fill_mkey, null_mkey and the reserved lkey exist only with their capabilities, which are not offered:
// all zero, which is no key.
Syndrome query_special_contexts(Firmware&, Command& cmd) {
  return cmd.op_mod == 0 ? Syndrome::kOk : Syndrome::kOpMod;
}

}  // namespace hcasim::fw
