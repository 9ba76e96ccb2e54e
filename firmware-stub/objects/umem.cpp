// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/objects/umem.h"

#include <algorithm>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "prm/umem.h"

namespace hcasim::fw {

namespace {

constexpr unsigned kMaxLogPage = 40;  // with CmdQueue::kMaxInput / 8 entries no sum overflows

// The UMEM of that number if [offset, offset + bytes) lies in it.
Syndrome find_part(Firmware& fw, const Command& cmd, std::uint32_t number, std::uint64_t offset,
                   std::uint64_t bytes, const UmemObject*& umem) {
  umem = fw.objects().umems.find(number);
  if (umem == nullptr) return Syndrome::kUmemNumber;
  if (!UserContexts::may_use(cmd.uid, fw.objects().users.owner(ObjType::kUmem, number)))
    return Syndrome::kNotOwner;
  const std::uint64_t have = umem->bytes();
  return offset <= have && bytes <= have - offset ? Syndrome::kOk : Syndrome::kUmemRange;
}

}  // namespace

void UmemUsers::hold(Objects& objects, ObjType type, std::uint32_t number, Purpose purpose,
                     std::uint32_t umem) {
  const auto key = std::make_pair(type, number);
  auto it = uses_.find(key);
  if (it == uses_.end()) {
    if (umem == 0) return;
    it = uses_.try_emplace(key).first;
  }
  it->second[purpose] = Ref(objects.umems.find(umem));
}

Syndrome umem_ring(Firmware& fw, const Command& cmd, std::uint32_t number, std::uint64_t offset,
                   std::uint64_t bytes, std::uint64_t align, bool write, GuestRing& ring) {
  const UmemObject* umem = nullptr;
  const Syndrome s = find_part(fw, cmd, number, offset, bytes, umem);
  if (s != Syndrome::kOk) return s;
  if (write && !umem->writable) return Syndrome::kUmemWrite;
  const std::uint64_t at = umem->start + offset, page = std::uint64_t{1} << umem->log_page;
  // An entry must not straddle pages: they are no neighbours on the bus.
  if ((at & (align - 1)) != 0) return Syndrome::kUmemOffset;
  const std::uint64_t first = at >> umem->log_page, behind = (at + bytes + page - 1) >> umem->log_page;
  if (behind - first > fw.objects().list_words_left()) return Syndrome::kRingMemory;
  ring.log_page = umem->log_page;
  ring.start = at & (page - 1);
  ring.pages.assign(umem->pages.begin() + static_cast<std::ptrdiff_t>(first),
                    umem->pages.begin() + static_cast<std::ptrdiff_t>(behind));
  return Syndrome::kOk;
}

Syndrome umem_doorbell(Firmware& fw, const Command& cmd, std::uint32_t number, std::uint64_t offset,
                       std::uint64_t bytes, std::uint64_t& address) {
  const UmemObject* umem = nullptr;
  const Syndrome s = find_part(fw, cmd, number, offset, bytes, umem);
  if (s != Syndrome::kOk) return s;
  const std::uint64_t at = umem->start + offset;
  if ((at & (bytes - 1)) != 0) return Syndrome::kUmemOffset;
  address = umem->pages[at >> umem->log_page] + (at & ((std::uint64_t{1} << umem->log_page) - 1));
  return Syndrome::kOk;
}

void hold_umems(Firmware& fw, ObjType type, std::uint32_t number, const UmemRefs& refs) {
  Objects& o = fw.objects();
  o.umem_users.hold(o, type, number, UmemUsers::kBuffer, refs.buffer);
  o.umem_users.hold(o, type, number, UmemUsers::kDoorbell, refs.doorbell);
}

Syndrome create_umem(Firmware& fw, Command& cmd) {
  using in = prm::create_umem_in;
  using u = in::umem;
  Objects& o = fw.objects();
  if (cmd.get<u::ats>() != 0 && !fw.options().ats) return Syndrome::kUmemFeature;
  const unsigned log_page = cmd.get<u::log_page_size>() + 12;
  if (log_page > kMaxLogPage) return Syndrome::kUmemPages;
  const std::uint64_t page = std::uint64_t{1} << log_page;
  const std::uint64_t start = cmd.get<u::page_offset>(), entries = cmd.get<u::num_of_mtt>();
  constexpr std::size_t list = u::mtt::bit_off / 8;
  if (entries == 0 || entries > (cmd.in_len - list) / 8) return Syndrome::kUmemPages;
  if (start >= page) return Syndrome::kUmemOffset;
  std::vector<std::uint64_t> pages(entries);
  bool writable = true;
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t mtt = prm::load64(cmd.in.data() + list + 8 * i);
    if ((mtt & (prm::umem_ref::kMttRead | prm::umem_ref::kMttWrite)) == 0) return Syndrome::kUmemPages;
    if ((mtt & prm::umem_ref::kMttWrite) == 0) writable = false;
    pages[i] = mtt & ~std::uint64_t{0xfff};
  }
  if (o.umems.full() || entries > o.list_words_left()) return Syndrome::kUmemLimit;
  if (!fw.pages().charge(entries * kIcmMtt)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  UmemObject* umem = o.umems.create(id);
  o.take_list(entries);
  umem->pages = std::move(pages);
  umem->log_page = log_page;
  umem->start = start;
  umem->writable = writable;
  cmd.put<prm::create_umem_out::umem_id>(id);
  fw.trace_create(ObjType::kUmem, id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome destroy_umem(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t id = cmd.get<prm::destroy_umem_in::umem_id>();
  const UmemObject* umem = o.umems.find(id);
  if (umem == nullptr) return Syndrome::kUmemNumber;
  if (umem->referred()) return Syndrome::kUmemBusy;
  fw.pages().release(umem->pages.size() * kIcmMtt);
  o.return_list(umem->pages.size());
  o.umems.destroy(id);
  fw.trace_destroy(ObjType::kUmem, id, cmd.uid);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
