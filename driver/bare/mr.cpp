// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/mr.h"

#include <algorithm>

namespace hcasim::bare {

Pd::Pd(Device& device) : device_(device), epoch_(device.epoch()) {
  const auto r = device.exec(Mailbox(prm::op::ALLOC_PD, prm::alloc_pd_in::bytes), prm::alloc_pd_out::bytes);
  pdn_ = static_cast<std::uint32_t>(r.must().get<prm::alloc_pd_out::pd>());
  live_ = true;
}

Pd::~Pd() {
  if (live_ && device_.lives(epoch_)) device_.note_destroy(destroy());
}

CommandResult Pd::destroy() {
  Mailbox in(prm::op::DEALLOC_PD, prm::dealloc_pd_in::bytes);
  auto r = device_.exec(in.set<prm::dealloc_pd_in::pd>(pdn_));
  if (r.ok()) live_ = false;
  return r;
}

void fill_mkc(std::uint8_t* mkc, const MkeySpec& s) {
  using M = prm::mkc;
  const auto bit = [&s](unsigned a) { return (s.access & a) != 0 ? 1u : 0u; };
  prm::set<M::free>(mkc, s.free);
  prm::set<M::access_mode_4_2>(mkc, s.mode >> 2);
  prm::set<M::access_mode_1_0>(mkc, s.mode & 3);
  prm::set<M::umr_en>(mkc, s.umr_en);
  prm::set<M::lr>(mkc, bit(kLocalRead));
  prm::set<M::lw>(mkc, bit(kLocalWrite));
  prm::set<M::rr>(mkc, bit(kRemoteRead));
  prm::set<M::rw>(mkc, bit(kRemoteWrite));
  prm::set<M::a>(mkc, bit(kRemoteAtomic));
  prm::set<M::qpn>(mkc, s.qpn);
  prm::set<M::mkey_7_0>(mkc, s.key);
  prm::set<M::length64>(mkc, s.length64);
  prm::set<M::en_rinval>(mkc, s.remote_invalidate);
  prm::set<M::pd>(mkc, s.pd);
  prm::set<M::start_addr>(mkc, s.start);
  prm::set<M::len>(mkc, s.len);
  prm::set<M::log_page_size>(mkc, s.log_page);
  const std::size_t used = s.mode == 1 ? (s.mtt.size() + 1) / 2 : s.klm.size();
  prm::set<M::translations_octword_size>(mkc,
                                         static_cast<std::uint32_t>(std::max(used, s.reserve_octowords)));
}

Mailbox create_mkey_mailbox(const MkeySpec& s) {
  using In = prm::create_mkey_in;
  const std::size_t octowords = s.mode == 1 ? (s.mtt.size() + 1) / 2 : s.klm.size();
  Mailbox in(prm::op::CREATE_MKEY, In::bytes + octowords * 16);
  fill_mkc(in.data() + In::memory_key_mkey_entry::bit_off / 8, s);
  in.set<In::translations_octword_actual_size>(octowords);
  in.set<In::pg_access>(s.paged);
  std::uint8_t* list = in.data() + In::bytes;
  for (std::size_t i = 0; i < s.mtt.size(); ++i) prm::store64(list + 8 * i, s.mtt[i]);
  for (std::size_t i = 0; i < s.klm.size(); ++i) {
    prm::store32(list + 16 * i, s.klm[i].bytes);
    prm::store32(list + 16 * i + 4, s.klm[i].key);
    prm::store64(list + 16 * i + 8, s.klm[i].va);
  }
  return in;
}

Mr::Mr(Device& device, const MkeySpec& spec)
    : device_(device), key_(spec.key), start_(spec.start), len_(spec.len), epoch_(device.epoch()) {
  const auto r = device.exec(create_mkey_mailbox(spec), prm::create_mkey_out::bytes);
  index_ = static_cast<std::uint32_t>(r.must().get<prm::create_mkey_out::mkey_index>());
  live_ = true;
}

Mr::~Mr() {
  if (live_ && device_.lives(epoch_)) device_.note_destroy(destroy());
}

MkeySpec Mr::of(const Pd& pd, const Buffer& buffer, unsigned access, unsigned log_page, std::size_t off,
                std::size_t len, std::uint64_t iova) {
  MkeySpec s;
  s.pd = pd.pdn();
  s.access = access;
  s.log_page = log_page;
  s.len = len != 0 ? len : buffer.size() - off;
  s.start = iova != 0 ? iova : buffer.bus(off);
  const std::size_t page = std::size_t{1} << log_page;
  const auto all = buffer.page_list(log_page);
  for (std::size_t p = off / page; p <= (off + s.len - 1) / page; ++p) s.mtt.push_back(all.at(p) | 3);
  return s;
}

MkeySpec Mr::physical(const Pd& pd, unsigned access) {
  MkeySpec s;
  s.pd = pd.pdn();
  s.access = access;
  s.mode = 0;
  s.length64 = true;
  return s;
}

CommandResult Mr::query() {
  Mailbox in(prm::op::QUERY_MKEY, prm::query_mkey_in::bytes);
  return device_.exec(in.set<prm::query_mkey_in::mkey_index>(index_), prm::query_mkey_out::bytes);
}

CommandResult Mr::destroy() {
  Mailbox in(prm::op::DESTROY_MKEY, prm::destroy_mkey_in::bytes);
  auto r = device_.exec(in.set<prm::destroy_mkey_in::mkey_index>(index_));
  if (r.ok()) live_ = false;
  return r;
}

}  // namespace hcasim::bare
