// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>

#include "wrong.h"

namespace hcasim::bare {
namespace {

void store(Device& d, std::uint64_t offset, const void* bytes, std::size_t len) {
  d.function().write(offset, bytes, len);
}

// The first 8 bytes of a WQE of QP qpn.
prm::CtrlSeg doorbell_of(std::uint32_t qpn, std::uint16_t index = 0) {
  prm::CtrlSeg c{};
  c.set(WqeOp::kSend, index, qpn, 2, prm::kCeAlways);
  return c;
}

void arm(Device& d, std::uint32_t cqn, std::uint32_t word) {
  prm::CqDoorbell db;
  db.cmd_ci = word;
  db.cqn = cqn;
  store(d, d.uar_offset() + prm::uar::kCqArm, &db, sizeof db);
}

// A WQE of a good WRITE, changed before it is announced.
void write_with(Device& d, const std::function<void(prm::CtrlSeg&, std::uint8_t*)>& spoil) {
  Pair p(d);
  const auto n = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64), false);
  std::uint8_t* wqe = p.a.sq_wqebb(n);
  spoil(*reinterpret_cast<prm::CtrlSeg*>(wqe), wqe);
  p.a.ring_doorbell();
  settle(d);
}

struct Datagram {
  explicit Datagram(Device& d) : pd(d), cq(d), memory(d.memory().allocate(kPage)), mr(d, Mr::of(pd, memory)) {
    QpOptions o;
    o.type = QpType::kUd;
    qp.emplace(d, pd, cq, cq, o);
    qp->connect({});
  }
  std::uint16_t post(bool ring) {
    SendWr w;
    w.sges = {{mr.start(), mr.key(), 64}};
    w.av.qpn = qp->qpn();
    return qp->post(w, ring);
  }
  prm::AvSeg& av(std::uint16_t n) const {
    return *reinterpret_cast<prm::AvSeg*>(qp->sq_wqebb(n) + sizeof(prm::CtrlSeg));
  }
  Pd pd;
  Cq cq;
  Buffer memory;
  Mr mr;
  std::optional<Qp> qp;
};

struct SharedReceive {
  explicit SharedReceive(Device& d)
      : pd(d),
        cq(d),
        rcq(d),
        srq(d, pd),
        a(d, pd, cq, cq),
        b(d, pd, rcq, rcq, QpOptions{}, &srq),
        memory(d.memory().allocate(2 * kPage)),
        mr(d, Mr::of(pd, memory)) {
    connect_pair(a, b);
  }
  void send() {
    SendWr w;
    w.sges = {{mr.start(), mr.key(), 64}};
    a.post(w);
  }
  Pd pd;
  Cq cq, rcq;
  Srq srq;
  Qp a, b;
  Buffer memory;
  Mr mr;
};

}  // namespace

const std::vector<Wrong>& wrong_queues() {
  static const auto* const list = new std::vector<Wrong>{
      // --- BAR0
      {"bar-range", [](Device& d) { d.function().read32(HCA_BAR0_SIZE + 64); }},
      {"bar-access-size",
       [](Device& d) {
         const std::uint16_t half = 1;
         store(d, offsetof(prm::InitSeg, cmd_dbell), &half, sizeof half);
       }},
      {"iseg-register", [](Device& d) { d.function().write32(0, 1); }},
      {"uar-read", [](Device& d) { d.function().read32(d.uar_offset() + prm::uar::kEqArm); }},
      {"memic-access", [](Device& d) { d.function().write32(HCA_BAR0_SIZE / 2 + 64, 1); }},
      // --- Doorbells
      {"uar-not-allocated",
       [](Device& d) {
         const prm::CtrlSeg c = doorbell_of(1);
         store(d, d.uar_offset() + 50 * prm::uar::kPageBytes + prm::uar::kSqDoorbell, &c, 8);
       }},
      {"uar-register",
       [](Device& d) {
         const std::uint64_t value = 1;
         store(d, d.uar_offset() + 0x100, &value, sizeof value);
       }},
      {"uar-store-size",
       [](Device& d) {
         const std::uint16_t half = 1;
         store(d, d.uar_offset() + prm::uar::kEqArm, &half, sizeof half);
       }},
      {"sq-doorbell-no-queue",
       [](Device& d) {
         const prm::CtrlSeg c = doorbell_of(0x5555);
         store(d, d.uar_offset() + prm::uar::kSqDoorbell, &c, 8);
       }},
      {"sq-doorbell-reset",
       [](Device& d) {
         PairOptions o;
         o.connect = false;
         Pair p(d, o);
         const prm::CtrlSeg c = doorbell_of(p.a.qpn());
         store(d, d.uar_offset() + prm::uar::kSqDoorbell, &c, 8);
       }},
      {"sq-doorbell-uar",
       [](Device& d) {
         Pair p(d);
         const auto r = d.exec(Mailbox(prm::op::ALLOC_UAR, prm::alloc_uar_in::bytes), 16).must();
         const std::uint64_t other = r.get<prm::alloc_uar_out::uar>() * prm::uar::kPageBytes;
         const auto n = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64), false);
         p.a.write_dbr();
         store(d, other + prm::uar::kSqDoorbell, p.a.sq_wqebb(n), 8);
         settle(d);
       }},
      {"cq-arm-no-cq", [](Device& d) { arm(d, 0x5555, 0); }},
      {"eq-doorbell-no-eq",
       [](Device& d) { d.function().write32(d.uar_offset() + prm::uar::kEqArm, 99u << 24); }},
      // --- Completion and event queues
      {"cq-arm-index",
       [](Device& d) {
         Cq cq(d);
         cq.dbr().set(1, 1000);
         arm(d, cq.cqn(), 1000);
       }},
      {"cq-arm-stale-sn",
       [](Device& d) {
         Cq cq(d);
         cq.dbr().set(1, 2u << 28);  // two events that never were
         arm(d, cq.cqn(), 2u << 28);
       }},
      {"cq-arm-record",
       [](Device& d) {
         Cq cq(d);
         arm(d, cq.cqn(), prm::CqDoorbell::kSolicitedOnly);  // and no word in the record
       }},
      {"cq-record-jump",
       [](Device& d) {
         PairOptions o;
         o.log_cq = 3;
         Pair p(d, o);
         p.acq.set_auto_update(false);
         p.acq.dbr().set(0, 500);
         for (int i = 0; i < 9; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
         settle(d);
       },
       {"cq-overrun"}},
      {"cq-record-back",
       [](Device& d) {
         PairOptions o;
         o.log_cq = 3;
         Pair p(d, o);
         p.acq.set_auto_update(false);
         const auto complete = [&](unsigned n) {
           for (unsigned i = 0; i < n; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
           settle(d);
         };
         complete(8);
         p.acq.dbr().set(0, 8);
         complete(8);  // finds 8 in the record
         p.acq.dbr().set(0, 5);
         complete(1);
       },
       {"cq-overrun"}},
      // The same two, told by the record that stands there when the CQ is armed.
      {"cq-record-jump",
       [](Device& d) {
         Cq cq(d);
         cq.dbr().set(0, 3);
         arm(d, cq.cqn(), 0);
       }},
      {"cq-record-back",
       [](Device& d) {
         Pair p(d);
         p.acq.set_auto_update(false);
         for (int i = 0; i < 2; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
         settle(d);
         p.acq.dbr().set(0, 2);
         p.acq.dbr().set(1, 2);
         arm(d, p.acq.cqn(), 2);
         p.acq.dbr().set(0, 1);
         arm(d, p.acq.cqn(), 2);
       }},
      {"cq-overrun",
       [](Device& d) {
         PairOptions o;
         o.log_cq = 3;
         Pair p(d, o);
         p.acq.set_auto_update(false);
         for (int i = 0; i < 9; ++i) p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64));
         settle(d);
       }},
      {"eq-index-jump",
       [](Device& d) {
         d.function().write32(d.uar_offset() + prm::uar::kEqUpdate, d.comp_eq(0).eqn() << 24 | 0x12345);
       }},
      {"eq-overrun",
       [](Device& d) {
         // An EQ of 64 that nobody polls, and more events than that.
         EventQueue eq(d, 6, 40, {}, [](const prm::Eqe&) {});
         using In = prm::create_cq_in;
         using C = In::cq_context;
         const Buffer ring = d.memory().allocate(kPage), dbr = d.memory().allocate(kPage);
         Mailbox in(prm::op::CREATE_CQ, In::bytes + 8);
         in.set<C::log_cq_size>(6).set<C::uar_page>(d.uar()).set<C::dbr_addr>(dbr.bus());
         prm::set<In::pas>(in.data(), 0, ring.bus());
         const auto r = d.exec(in.set<C::c_eqn_or_apu_element>(eq.eqn()), 16).must();
         const auto cqn = static_cast<std::uint32_t>(r.get<prm::create_cq_out::cqn>());
         for (unsigned i = 0; i < 65; ++i) {
           const std::uint32_t word = (i & 3) << 28 | 0xffffff;  // one behind: an event at once
           prm::store32(dbr.data() + 4, word);
           arm(d, cqn, word);
         }
         settle(d);
         Mailbox gone(prm::op::DESTROY_CQ, prm::destroy_cq_in::bytes);
         d.exec(gone.set<prm::destroy_cq_in::cqn>(cqn)).must();
       }},
      // --- Work queues and WQEs
      {"dbr-jump",
       [](Device& d) {
         Pair p(d);
         p.a.post_nop(true, false);
         p.a.set_dbr(1, 1000);
         p.a.write_doorbell_only();
         settle(d);
       }},
      {"dbr-back",
       [](Device& d) {
         Pair p(d);
         for (int i = 0; i < 5; ++i) p.a.post_nop();
         settle(d);
         p.a.set_dbr(1, 3);
         const prm::CtrlSeg c = doorbell_of(p.a.qpn(), 2);
         store(d, d.uar_offset() + prm::uar::kSqDoorbell, &c, 8);
         settle(d);
       }},
      {"sq-overrun",
       [](Device& d) {
         PairOptions o;
         o.log_sq = 3;
         Pair p(d, o);
         // The receiver has no WQE: the first one waits, and the ring goes round over it.
         p.a.post(p.wr(WqeOp::kSend, 0, 64));
         settle(d);
         for (int i = 0; i < 8; ++i) p.a.post_nop();
         settle(d);
         p.a.to_reset();
       }},
      {"wqe-doorbell-before-visible",
       [](Device& d) {
         Pair p(d);
         p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64), false);
         p.a.write_doorbell_only();
         settle(d);
         p.a.write_dbr();
       }},
      {"rq-record-jump",
       [](Device& d) {
         Pair p(d);
         p.b.set_dbr(0, 0xfff0);
         p.a.post(p.wr(WqeOp::kSend, 0, 64));
         settle(d);
       }},
      {"srq-record-jump",
       [](Device& d) {
         SharedReceive s(d);
         for (int i = 0; i < 65; ++i) {  // more than there are places, as if one WQE were posted twice
           s.srq.post({{s.mr.start(), s.mr.key(), 64}}, false);
           if (s.srq.free_count() == 0) break;
         }
         s.srq.release(0);
         s.srq.post({{s.mr.start(), s.mr.key(), 64}}, false);
         s.srq.release(0);
         s.srq.post({{s.mr.start(), s.mr.key(), 64}}, false);
         s.srq.ring_doorbell();
         s.send();
         settle(d);
       }},
      {"wqe-index",
       [](Device& d) {
         // Announced, but a WQE of an earlier round lies there.
         write_with(d, [](prm::CtrlSeg& c, std::uint8_t*) {
           c.opmod_idx_opcode = static_cast<std::uint32_t>(c.opmod_idx_opcode) ^ 0x4000 << 8;
         });
       },
       {"wqe-doorbell-before-visible"}},
      {"wqe-size",
       [](Device& d) {
         write_with(d, [](prm::CtrlSeg& c, std::uint8_t*) {
           c.qpn_ds = static_cast<std::uint32_t>(c.qpn_ds) & ~0x3fu;
         });
       }},
      {"wqe-qpn",
       [](Device& d) {
         Pair p(d);
         const auto n = p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 64), false);
         const prm::CtrlSeg bell = doorbell_of(p.a.qpn(), n);
         auto* c = reinterpret_cast<prm::CtrlSeg*>(p.a.sq_wqebb(n));
         c->qpn_ds = p.b.qpn() << 8 | (static_cast<std::uint32_t>(c->qpn_ds) & 0x3f);
         p.a.write_dbr();
         store(d, d.uar_offset() + prm::uar::kSqDoorbell, &bell, 8);
         settle(d);
       }},
      {"wqe-opcode",
       [](Device& d) {
         write_with(d, [](prm::CtrlSeg& c, std::uint8_t*) {
           c.opmod_idx_opcode = (static_cast<std::uint32_t>(c.opmod_idx_opcode) & ~0xffu) | 0x77;
         });
       }},
      {"wqe-segment",
       [](Device& d) {  // an atomic without its operands
         write_with(d, [](prm::CtrlSeg& c, std::uint8_t*) {
           c.opmod_idx_opcode = (static_cast<std::uint32_t>(c.opmod_idx_opcode) & ~0xffu) |
                                static_cast<std::uint32_t>(WqeOp::kAtomicCs);
           c.qpn_ds = (static_cast<std::uint32_t>(c.qpn_ds) & ~0x3fu) | 2;
         });
       }},
      {"wqe-length",
       [](Device& d) {
         Pair p(d);
         SendWr w = p.wr(WqeOp::kAtomicFa, 0, 16);  // an atomic brings 8 bytes
         p.a.post(w);
         settle(d);
       }},
      {"wqe-umr",
       [](Device& d) {
         Pair p(d);
         UmrWr u;
         u.mkey = p.amr.key();  // whose context does not say umr_en
         u.mask = prm::mkey_mask::kFree;
         u.spec.pd = p.pd.pdn();
         u.spec.free = true;
         p.a.post_umr(u);
         settle(d);
       }},
      {"rwqe-segment",
       [](Device& d) {
         Pair p(d);
         const auto n = p.b.post_recv({p.bsge(0, 64)}, false);
         reinterpret_cast<prm::DataSeg*>(p.b.rq_wqe(n))->byte_count = prm::InlineSeg::kFlag | 64;
         p.b.ring_rq();
         p.a.post(p.wr(WqeOp::kSend, 0, 64));
         settle(d);
       }},
      {"av-source",
       [](Device& d) {
         Datagram u(d);
         u.av(u.post(false)).grh_gid_fl = prm::AvSeg::kGrh | 0xf0u << 20;
         u.qp->ring_doorbell();
         settle(d);
       }},
      {"atomic-unaligned",
       [](Device& d) {
         Pair p(d);
         SendWr w = p.wr(WqeOp::kAtomicFa, 0, 8);
         w.raddr += 4;
         p.a.post(w);
         settle(d);
       }},
      {"receive-length",
       [](Device& d) {
         Pair p(d);
         p.b.post_recv({p.bsge(0, 16)});
         p.a.post(p.wr(WqeOp::kSend, 0, 64));
         settle(d);
       }},
  };
  return *list;
}

}  // namespace hcasim::bare
