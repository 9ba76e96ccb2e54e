// SPDX-License-Identifier: BSD-3-Clause
#include "wrong.h"

namespace hcasim::bare {
namespace {

// A WRITE, READ or atomic of 64 bytes (8) that `spoil` makes wrong.
void post_with(Device& d, WqeOp op, const std::function<void(Pair&, SendWr&)>& spoil, PairOptions o = {}) {
  Pair p(d, o);
  SendWr w = p.wr(op, 0, op == WqeOp::kAtomicFa ? 8 : 64);
  spoil(p, w);
  p.a.post(w);
  settle(d);
}

// What happens while the device may not touch the page at `bus`.
void unmapped(Device& d, std::uint64_t bus, const std::function<void()>& meanwhile) {
  d.memory().set_faulting(bus, kPage, true);
  meanwhile();
  settle(d);
  d.memory().set_faulting(bus, kPage, false);
}

}  // namespace

const std::vector<Wrong>& wrong_memory() {
  static const auto* const list = new std::vector<Wrong>{
      {"mr-key",
       [](Device& d) {  // the key of a UMR's translation list
         Pair p(d);
         MkeySpec spec;
         spec.pd = p.pd.pdn();
         spec.free = spec.umr_en = true;
         spec.reserve_octowords = 64;
         Mr mr(d, spec);
         Buffer list = d.memory().allocate(4096);
         UmrWr u;
         u.mkey = mr.key();
         u.inline_list = false;
         u.list = {list.bus(), 0xabc00, 1024};
         u.mask = prm::mkey_mask::kFree;
         p.a.post_umr(u);
         settle(d);
       }},
      {"mr-key",
       [](Device& d) { post_with(d, WqeOp::kRdmaWrite, [](Pair&, SendWr& w) { w.sges[0].lkey ^= 0x11; }); }},
      {"mr-pd",
       [](Device& d) {
         Pd other(d);
         const Buffer memory = d.memory().allocate(kPage);
         const Mr mr(d, Mr::of(other, memory));
         post_with(d, WqeOp::kRdmaWrite, [&](Pair&, SendWr& w) { w.sges = {{mr.start(), mr.key(), 64}}; });
       }},
      {"mr-rights",
       [](Device& d) {
         PairOptions o;
         o.access = kLocalRead | kRemoteRead;
         post_with(
             d, WqeOp::kRdmaRead, [](Pair&, SendWr&) {}, o);  // into memory that is read-only
       }},
      {"mr-bounds",
       [](Device& d) {
         post_with(d, WqeOp::kRdmaWrite,
                   [](Pair& p, SendWr& w) { w.sges[0].addr = p.amr.start() + p.amr.len() - 32; });
       }},
      {"mr-list",
       [](Device& d) {
         Pd pd(d);
         MkeySpec loop;
         loop.pd = 0;
         Pair p(d);
         loop.pd = p.pd.pdn();
         loop.mode = 2;
         loop.len = 4096;
         // Its list says less than its length.
         loop.klm = {{64, p.amr.key(), p.amr.start()}};
         const Mr mr(d, loop);
         SendWr w = p.wr(WqeOp::kRdmaWrite, 0, 64);
         w.sges = {{256, mr.key(), 64}};
         p.a.post(w);
         settle(d);
       }},
      {"rkey-unknown",
       [](Device& d) { post_with(d, WqeOp::kRdmaWrite, [](Pair&, SendWr& w) { w.rkey ^= 0x11; }); }},
      {"rkey-pd",
       [](Device& d) {
         Pd other(d);
         const Buffer memory = d.memory().allocate(kPage);
         const Mr mr(d, Mr::of(other, memory));
         post_with(d, WqeOp::kRdmaRead, [&](Pair&, SendWr& w) {
           w.raddr = mr.start();
           w.rkey = mr.key();
         });
       }},
      {"rkey-rights",
       [](Device& d) {
         PairOptions o;
         o.access = kLocalRead | kLocalWrite;
         post_with(
             d, WqeOp::kRdmaWrite, [](Pair&, SendWr&) {}, o);
       }},
      {"rkey-bounds",
       [](Device& d) {
         post_with(d, WqeOp::kRdmaWrite,
                   [](Pair& p, SendWr& w) { w.raddr = p.bmr.start() + p.bmr.len() - 32; });
       }},
      {"qp-rights",
       [](Device& d) {
         PairOptions o;
         o.attr.access = kRemoteRead;
         post_with(
             d, WqeOp::kRdmaWrite, [](Pair&, SendWr&) {}, o);
       }},
      {"dma-refused-read",
       [](Device& d) {
         // Unmapped while a key leads there.
         Pair p(d);
         unmapped(d, p.amem.bus(), [&] { p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64)); });
       }},
      {"dma-refused-payload",
       [](Device& d) {
         Pair p(d);
         unmapped(d, p.bmem.bus(), [&] { p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64)); });
       }},
      {"dma-refused-cqe",
       [](Device& d) {
         Pair p(d);
         unmapped(d, p.acq.ring().bus(0), [&] { p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64)); });
       }},
      {"dma-refused-eqe",
       [](Device& d) {
         Pair p(d);
         p.acq.arm();
         unmapped(d, d.comp_eq(0).ring().bus(0), [&] { p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64)); });
       }},
      {"dma-refused-answer",
       [](Device& d) {
         std::uint64_t box = 0;
         Mailbox in(prm::op::QUERY_HCA_CAP, prm::query_hca_cap_in::bytes, 1);
         d.cmd().submit(in, prm::query_hca_cap_out::bytes, {}, 3,
                        [&](CommandQueue::Raw& r) { box = r.out_bus[0]; });
         d.machine().advance(1000);  // it has been read by now
         unmapped(d, box / kPage * kPage, [] {});
       }},
  };
  return *list;
}

}  // namespace hcasim::bare
