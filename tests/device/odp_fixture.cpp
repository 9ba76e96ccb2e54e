// SPDX-License-Identifier: BSD-3-Clause
#include "odp_fixture.h"

namespace hcasim::bare {

namespace {

constexpr unsigned kVector = 7;  // MSI-X of the page fault events
constexpr unsigned kBlock = 8;   // entries that a UMR replaces at a time: 64 bytes

Fault parse(const prm::Eqe& e) {
  Fault f{};
  f.sub_type = e.sub_type;
  if (e.sub_type == prm::kFaultWqe) {
    const prm::EqePageFaultWqe& w = e.data.pf_wqe;
    f.kind = w.pftype_wq >> 24;
    f.queue = w.pftype_wq & 0xffffff;
    f.token = w.token;
    f.done = w.bytes_committed;
    f.packet_len = w.packet_length;
    f.wqe_index = w.wqe_index;
  } else {
    const prm::EqePageFaultRdma& r = e.data.pf_rdma;
    f.kind = r.pftype_token >> 24;
    f.queue = f.token = r.pftype_token & 0xffffff;
    f.done = r.bytes_committed;
    f.packet_len = r.packet_length;
    f.rkey = r.rkey;
    f.len = r.rdma_op_len;
    f.va = r.rdma_va;
  }
  return f;
}

MkeySpec empty_key(const Pd& pd, std::size_t pages, unsigned access, std::uint64_t start) {
  MkeySpec s;
  s.pd = pd.pdn();
  s.access = access;
  s.umr_en = s.paged = true;
  s.start = start;
  s.len = pages * kPage;
  s.mtt.assign((pages + kBlock - 1) / kBlock * kBlock, 0);
  return s;
}

QpOptions umr_queue() {
  QpOptions o;
  o.type = QpType::kRegUmr;
  o.no_rq = true;
  return o;
}

}  // namespace

void OdpTest::SetUp() {
  DeviceTest::SetUp();
  std::array<std::uint64_t, 4> mask{};
  mask[0] = 1ull << static_cast<unsigned>(prm::EqeType::kPageFault);
  eq_ = std::make_unique<EventQueue>(dev(), 8, kVector, mask, [this](const prm::Eqe& e) {
    EXPECT_EQ(e.type, static_cast<std::uint8_t>(prm::EqeType::kPageFault));
    faults_.push_back(parse(e));
  });
  fn().on_interrupt(kVector, [this] { eq_->on_interrupt(); });
  eq_->arm();
}

void OdpTest::TearDown() {
  fn().on_interrupt(kVector, {});
  eq_.reset();
  DeviceTest::TearDown();
}

Fault OdpTest::next_fault(std::int64_t timeout) {
  if (!machine().run_until([this] { return !faults_.empty(); }, timeout))
    throw BareError("no page fault came");
  const Fault f = faults_.front();
  faults_.pop_front();
  return f;
}

void OdpTest::expect_no_fault(std::int64_t ns) {
  machine().advance(ns);
  EXPECT_TRUE(faults_.empty());
}

CommandResult OdpTest::resume(const Fault& f, bool error) { return resume(f.kind, f.queue, f.token, error); }

CommandResult OdpTest::resume(unsigned kind, std::uint32_t queue, std::uint32_t token, bool error) {
  using In = prm::page_fault_resume_in;
  using F = In::page_fault_info::trans_page_fault_info;
  Mailbox in(prm::op::PAGE_FAULT_RESUME, In::bytes);
  in.set<F::page_fault_type>(kind).set<F::wq_number>(queue).set<F::fault_token>(token).set<F::error>(error);
  return dev().exec(in, prm::page_fault_resume_out::bytes);
}

PagedMemory::PagedMemory(Device& device, const Pd& pd, std::size_t pages, unsigned access,
                         std::uint64_t start)
    : mem(device.memory().allocate_scattered(pages * kPage)),
      mr(device, empty_key(pd, pages, access, start)),
      pages_(pages),
      cq_(device),
      umr_(device, pd, cq_, cq_, umr_queue()),
      xlt_((pages + kBlock - 1) / kBlock * kBlock) {
  umr_.connect({});
}

void PagedMemory::map(std::size_t first, std::size_t n, std::uint64_t flags) {
  const auto bus = mem.page_list();
  for (std::size_t i = first; i < first + n; ++i) xlt_.at(i) = flags != 0 ? bus.at(i) | flags : 0;
  for (std::size_t block = first / kBlock; block * kBlock < first + n; ++block) {
    UmrWr u;
    u.mkey = mr.key();
    u.flags = prm::kUmrTranslationOffsetEn | prm::kUmrCheckFree;
    u.offset_octowords = static_cast<std::uint32_t>(block * kBlock / 2);
    u.spec.mode = 1;
    const auto at = xlt_.begin() + static_cast<std::ptrdiff_t>(block * kBlock);
    u.spec.mtt.assign(at, at + kBlock);
    umr_.post_umr(u);
    const Completion c = cq_.wait_one();
    if (c.error()) throw BareError("UMR: " + c.text());
  }
}

void PagedMemory::map_range(std::uint64_t va, std::uint64_t len) {
  if (len == 0) return;
  const std::uint64_t first = (va - mr.start()) / kPage, last = (va - mr.start() + len - 1) / kPage;
  map(first, last - first + 1);
}

}  // namespace hcasim::bare
