// SPDX-License-Identifier: BSD-3-Clause
// Counted references between objects, and the state machine of QPs as a table.
#include "firmware-stub/objects/ref.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "firmware-stub/objects/objects.h"
#include "firmware-stub/objects/qp_context.h"
#include "firmware-stub/objects/qp_transitions.h"
#include "firmware-stub/opcodes.h"

namespace hcasim::fw {
namespace {

struct Thing : Referred {};

TEST(Ref, CountsAsLongAsItLives) {
  Thing a, b;
  {
    Ref<Thing> r(&a), null(nullptr);
    EXPECT_EQ(a.refs(), 1u);
    EXPECT_FALSE(null);
    Ref<Thing> second(&a);
    EXPECT_EQ(a.refs(), 2u);
    second = Ref<Thing>(&b);
    EXPECT_EQ(a.refs(), 1u);
    EXPECT_EQ(b.refs(), 1u);
    Ref<Thing> moved = std::move(second);
    EXPECT_EQ(b.refs(), 1u) << "moved, not copied";
    EXPECT_EQ(moved.get(), &b);
    EXPECT_EQ(second.get(), nullptr);  // NOLINT(bugprone-use-after-move): what is left is specified
    moved.reset();
    moved.reset();
    EXPECT_EQ(b.refs(), 0u);
  }
  EXPECT_EQ(a.refs(), 0u);
}

TEST(Ref, AReferenceToTheSameThingAgainCountsOnce) {
  Thing a;
  Ref<Thing> r(&a);
  r = Ref<Thing>(&a);
  EXPECT_EQ(a.refs(), 1u);
  std::vector<Ref<Thing>> many;
  for (int i = 0; i < 100; ++i) many.emplace_back(&a);  // grows: moves
  EXPECT_EQ(a.refs(), 101u);
  many.clear();
  EXPECT_EQ(a.refs(), 1u);
}

// A saved state may have a QP refer to what no command would have let it, such as objects that a reset ends
// first.
TEST(Objects, ReferencesEndBeforeAnyObjectDoes) {
  Objects o{Options{}};
  std::uint32_t n = 0;
  o.qps.create(n)->pd = Ref(o.flow_counters.create(n));
  o.mkeys.create(n)->pd = Ref(o.modify_headers.create(n));
  o.eqs.create(n);
  TirObject* tir = o.tirs.create(n);
  tir->td = Ref(o.reformats.create(n));
  tir->rq = Ref(o.rqs.create(n));
  o.clear();
  EXPECT_EQ(o.qps.count() + o.flow_counters.count() + o.reformats.count(), 0u);
}

// Teardown: nothing refers to what is gone already. Built with AddressSanitizer this is what finds a wrong
// order.
TEST(Objects, AllMayGoAtOnceWhoeverRefersToWhom) {
  Objects o{Options{}};
  for (int round = 0; round < 2; ++round) {
    std::uint32_t n = 0;
    PlainObject* pd = o.pds.create(n);
    PlainObject* td = o.tds.create(n);
    EqObject* eq = o.eqs.create(n);
    CqObject* cq = o.cqs.create(n);
    cq->eq = Ref(eq);
    SrqObject* srq = o.srqs.create(n);
    srq->pd = Ref(pd);
    srq->cq = Ref(cq);
    TisObject* tis = o.tises.create(n);
    tis->td = Ref(td);
    QpObject* qp = o.qps.create(n);
    qp->pd = Ref(pd);
    qp->scq = Ref(cq);
    qp->srq = Ref(srq);
    qp->tis = Ref(tis);
    o.multicast.try_emplace({n, Gid{}}, qp);
    RqObject* rq = o.rqs.create(n);
    rq->cq = Ref(cq);
    rq->rmp = Ref(srq);
    RqtObject* rqt = o.rqts.create(n);
    rqt->rqs.emplace_back(rq);
    TirObject* tir = o.tirs.create(n);
    tir->rqt = Ref(rqt);
    // Tables in a ring, as far as their levels allow none: the order of one kind must not matter.
    FlowTableObject* first = o.flow_tables.create(n);
    FlowTableObject* second = o.flow_tables.create(n);
    first->miss = Ref(second);
    second->miss = Ref(first);
    first->entries[3].tirs.emplace_back(tir);
    first->entries[3].tables.emplace_back(second);
    SchedObject* above = nullptr;
    for (int i = 0; i < 20; ++i) {
      SchedObject* e = o.sched_elements.create(n);
      e->parent_ref = Ref(above);
      above = e;
    }
    o.sched_users[{ObjType::kQp, 1}][0] = Ref(above);
    UctxObject* uctx = o.users.table.create(n);
    o.users.own(ObjType::kPd, 1, static_cast<std::uint16_t>(n));
    EXPECT_EQ(uctx->refs(), 1u);
    UmemObject* umem = o.umems.create(n);
    o.umem_users.hold(o, ObjType::kQp, 1, UmemUsers::kBuffer, n);
    o.umem_users.hold(o, ObjType::kQp, 1, UmemUsers::kDoorbell, n);
    EXPECT_EQ(umem->refs(), 2u);
    o.umem_users.hold(o, ObjType::kQp, 1, UmemUsers::kDoorbell, 0);
    EXPECT_EQ(umem->refs(), 1u);
    EXPECT_EQ(pd->refs(), 2u);
    EXPECT_EQ(cq->refs(), 3u);
    EXPECT_EQ(qp->refs(), 1u);
    o.qps.destroy(1);  // no such number
    o.clear();
    EXPECT_EQ(
        o.pds.count() + o.cqs.count() + o.qps.count() + o.flow_tables.count() + o.sched_elements.count(), 0u);
  }
}

TEST(QpTransitions, AreThoseOfTheSpecification) {
  std::set<std::uint16_t> seen;
  for (const QpTransition& t : qp_transitions()) {
    EXPECT_TRUE(seen.insert(t.opcode).second) << t.opcode;
    const Opcode* o = find_opcode(t.opcode);
    ASSERT_NE(o, nullptr) << t.opcode;
    // IBTA 10.3.1: RESET and ERR from everywhere, the rest by one arrow.
    const bool anywhere = t.to == QpState::kRst || t.to == QpState::kErr;
    unsigned starts = 0;
    for (unsigned s = 0; s <= static_cast<unsigned>(QpState::kErr); ++s) {
      if (t.starts_in(static_cast<QpState>(s))) ++starts;
    }
    EXPECT_EQ(starts, anywhere ? 7u : 1u) << o->name;
    // What is taken always needs no bit that asks for it.
    if (t.takes(kAttrRights)) {
      EXPECT_EQ(t.optional_rc & (kOptRre | kOptRwe | kOptRae), 0u) << o->name;
    }
    if (t.takes(kAttrPkeyAndPort)) {
      EXPECT_EQ(t.optional_rc & (kOptPkeyIndex | kOptPort), 0u) << o->name;
    }
    if (t.takes(kAttrRnrTimer)) {
      EXPECT_EQ(t.optional_rc & kOptRnrTimeout, 0u) << o->name;
    }
  }
  EXPECT_EQ(find_qp_transition(prm::op::CREATE_QP), nullptr);
  // Every command whose handler is that of transitions has a row.
  const Handler handlers[] = {find_opcode(prm::op::RST2INIT_QP)->handler,
                              find_opcode(prm::op::_2ERR_QP)->handler};
  for (const Opcode& o : all_opcodes())
    if (o.handler == handlers[0] || o.handler == handlers[1]) {
      EXPECT_EQ(seen.count(o.opcode), 1u) << o.name;
    }
  const QpTransition& rtr = *find_qp_transition(prm::op::INIT2RTR_QP);
  EXPECT_TRUE(rtr.starts_in(QpState::kInit) && rtr.to == QpState::kRtr);
  EXPECT_FALSE(rtr.starts_in(QpState::kRst));
}

// Every attribute that a connection needs is set once on the way from RESET to RTS.
TEST(QpTransitions, TheWayUpSetsEveryAttributeOnce) {
  std::uint32_t have = 0;
  for (const std::uint16_t op : {prm::op::RST2INIT_QP, prm::op::INIT2RTR_QP, prm::op::RTR2RTS_QP}) {
    const QpTransition& t = *find_qp_transition(op);
    EXPECT_EQ(have & t.required, 0u) << op;
    have |= t.required;
  }
  EXPECT_EQ(have, 0xffffu);
}

}  // namespace
}  // namespace hcasim::fw
