// SPDX-License-Identifier: BSD-3-Clause
// Rates and shares of send queues: limiters that SQs name, and the tree of scheduling elements.
#include "prm/qos.h"
#include "driver/bare/devx.h"
#include "eth_fixture.h"

namespace hcasim::bare {
namespace {

enum : std::uint32_t { kTsar = 0, kQueueGroup = 4 };

// A scheduling element as a general object.
class Element {
 public:
  Element(Device& device, std::uint32_t type, std::uint32_t parent, std::uint32_t share = 0,
          std::uint32_t mbps = 0)
      : device_(device) {
    id_ = static_cast<std::uint32_t>(
        device.exec(mailbox(type, parent, share, mbps)).must().get<prm::general_obj_out_cmd_hdr::obj_id>());
  }
  ~Element() {
    if (id_ != 0) device_.note_destroy(destroy());
  }
  Element(const Element&) = delete;
  Element& operator=(const Element&) = delete;
  static Mailbox mailbox(std::uint32_t type, std::uint32_t parent, std::uint32_t share, std::uint32_t mbps,
                         std::uint16_t opcode = prm::op::CREATE_GENERAL_OBJECT) {
    using C = prm::sched_elem::sched_context;
    Mailbox in(opcode, prm::general_obj_in_cmd_hdr::bytes + prm::sched_elem::bytes,
               prm::kGeneralSchedElement);
    in.set<prm::sched_elem::scheduling_hierarchy>(3).set<C::element_type>(type);
    in.set<C::parent_element_id>(parent).set<C::bw_share>(share).set<C::max_average_bw>(mbps);
    return in;
  }
  CommandResult modify(std::uint64_t select, std::uint32_t share, std::uint32_t mbps) {
    Mailbox in = mailbox(kQueueGroup, 0, share, mbps, prm::op::MODIFY_GENERAL_OBJECT);
    in.set<prm::general_obj_in_cmd_hdr::obj_id>(id_).set<prm::sched_elem::modify_field_select>(select);
    return device_.exec(in);
  }
  CommandResult destroy() {
    Mailbox in(prm::op::DESTROY_GENERAL_OBJECT, 16, prm::kGeneralSchedElement);
    auto r = device_.exec(in.set<prm::general_obj_in_cmd_hdr::obj_id>(id_));
    if (r.ok()) id_ = 0;
    return r;
  }
  std::uint32_t id() const { return id_; }

 private:
  Device& device_;
  std::uint32_t id_ = 0;
};

CommandResult set_groups(Device& device, const Qp& qp, std::uint32_t requests, std::uint32_t responses = 0) {
  using E = prm::qp_ext;
  Mailbox in(prm::op::RTS2RTS_QP, E::bytes);
  in.set<prm::rts2rts_qp_in::qpn>(qp.qpn()).set<E::qpc_ext>(1);
  in.set<E::opt_param_mask_95_32>(prm::kOptQosQueueGroup);
  in.set<E::qos_queue_group_id_requester>(requests).set<E::qos_queue_group_id_responder>(responses);
  return device.exec(in);
}

CommandResult set_pace(Device& device, std::uint32_t index, std::uint32_t kbps, std::uint16_t uid = 0) {
  using In = prm::set_pp_rate_limit_in;
  Mailbox in(prm::op::SET_PP_RATE_LIMIT, In::bytes);
  return device.exec(in.set<In::rate_limit_index>(index).set<In::ctx::rate_limit>(kbps).set<In::uid>(uid));
}

CommandResult name_pace(Device& device, const Sq& sq, std::uint32_t index) {
  using In = prm::modify_sq_in;
  Mailbox in(prm::op::MODIFY_SQ, In::bytes);
  in.set<In::sqn>(sq.sqn()).set<In::sq_state>(1).set<In::ctx::state>(1).set<In::modify_bitmask>(1);
  return device.exec(in.set<In::ctx::packet_pacing_rate_limit_index>(index));
}

class Qos : public DeviceTest {
 protected:
  // ns until `count` writes of `bytes` are complete.
  static std::int64_t time_of_writes(Pair& p, unsigned count, std::uint32_t bytes,
                                     WqeOp op = WqeOp::kRdmaWrite) {
    const std::int64_t from = machine().now();
    for (unsigned i = 0; i < count; ++i) p.a.post(p.wr(op, 0, bytes));
    const auto done = p.acq.wait(count);
    EXPECT_EQ(done.size(), count);
    for (const Completion& c : done) EXPECT_FALSE(c.error()) << c.text();
    return machine().now() - from;
  }
};

TEST_F(Qos, GroupKeepsItsRate) {
  breaks({"destroy-busy"});
  Pair p(dev());
  constexpr std::uint32_t kBytes = 32 << 10;
  const std::int64_t free = time_of_writes(p, 8, kBytes);
  Element root(dev(), kTsar, 0), group(dev(), kQueueGroup, root.id(), 0, 1000);
  EXPECT_CMD_OK(set_groups(dev(), p.a, group.id()));
  // 8 bits a ns at 1 Gb/s: a message of 32 KiB takes 262 us.
  const std::int64_t wire = 8ll * kBytes * 8;
  const std::int64_t limited = time_of_writes(p, 8, kBytes);
  EXPECT_GT(limited, wire * 9 / 10);
  EXPECT_LT(limited, wire * 5 / 4);
  EXPECT_LT(free, wire / 4);
  EXPECT_CMD_OK(group.modify(2, 0, 4000));
  const std::int64_t faster = time_of_writes(p, 8, kBytes);
  EXPECT_GT(faster, wire / 4 * 9 / 10);
  EXPECT_LT(faster, wire / 4 * 5 / 4);
  EXPECT_CMD_STATUS(group.destroy(), CmdStatus::kBadResState);
  EXPECT_CMD_OK(set_groups(dev(), p.a, 0));
  EXPECT_LT(time_of_writes(p, 8, kBytes), wire / 4);
}

TEST_F(Qos, ResponsesHaveAGroupOfTheirOwn) {
  Pair p(dev());
  constexpr std::uint32_t kBytes = 32 << 10;
  Element root(dev(), kTsar, 0), group(dev(), kQueueGroup, root.id(), 0, 1000);
  EXPECT_CMD_OK(set_groups(dev(), p.b, 0, group.id()));
  const std::int64_t wire = 4ll * kBytes * 8;
  EXPECT_GT(time_of_writes(p, 4, kBytes, WqeOp::kRdmaRead), wire * 9 / 10);
  EXPECT_LT(time_of_writes(p, 4, kBytes), wire / 4);
  EXPECT_CMD_OK(set_groups(dev(), p.b, 0, 0));
}

// What is above a group counts too: both of its groups together.
TEST_F(Qos, NodeKeepsItsRate) {
  Pair p(dev()), q(dev());
  constexpr std::uint32_t kBytes = 32 << 10;
  Element root(dev(), kTsar, 0), node(dev(), kTsar, root.id(), 0, 2000);
  Element a(dev(), kQueueGroup, node.id()), b(dev(), kQueueGroup, node.id());
  EXPECT_CMD_OK(set_groups(dev(), p.a, a.id()));
  EXPECT_CMD_OK(set_groups(dev(), q.a, b.id()));
  for (unsigned i = 0; i < 8; ++i) q.a.post(q.wr(WqeOp::kRdmaWrite, 0, kBytes));
  const std::int64_t both = time_of_writes(p, 8, kBytes);
  const std::int64_t wire = 16ll * kBytes * 8 / 2;
  EXPECT_GT(both, wire * 7 / 10);
  EXPECT_LT(both, wire * 5 / 4);
  EXPECT_EQ(q.acq.wait(8).size(), 8u);
  EXPECT_CMD_OK(set_groups(dev(), p.a, 0));
  EXPECT_CMD_OK(set_groups(dev(), q.a, 0));
}

TEST_F(Qos, SharesOfOneParent) {
  Pair p(dev()), q(dev());
  Element root(dev(), kTsar, 0);
  Element large(dev(), kQueueGroup, root.id(), 60), small(dev(), kQueueGroup, root.id(), 20);
  EXPECT_CMD_OK(set_groups(dev(), p.a, large.id()));
  EXPECT_CMD_OK(set_groups(dev(), q.a, small.id()));
  for (unsigned i = 0; i < 96; ++i) {
    p.a.post(p.wr(WqeOp::kRdmaWrite, 0, 16 << 10));
    q.a.post(q.wr(WqeOp::kRdmaWrite, 0, 16 << 10));
  }
  EXPECT_EQ(p.acq.wait(60).size(), 60u);
  unsigned other = 0;
  while (q.acq.poll()) ++other;
  EXPECT_GE(other, 14u);  // 20 of 60, and what is on its way
  EXPECT_LE(other, 28u);
  // Alone, a small share is no limit.
  EXPECT_EQ(p.acq.wait(36).size(), 36u);
  EXPECT_EQ(q.acq.wait(96 - other).size(), 96 - other);
  EXPECT_CMD_OK(set_groups(dev(), p.a, 0));
  const std::int64_t alone = time_of_writes(q, 32, 16 << 10);
  const std::int64_t free = time_of_writes(p, 32, 16 << 10);
  EXPECT_LT(alone, free * 3 / 2);
  EXPECT_CMD_OK(set_groups(dev(), q.a, 0));
}

// Queues outside of the tree make the line at the port long: to wait in it is not to have nothing to send.
TEST_F(Qos, SharesHoldInALongLine) {
  constexpr unsigned kOthers = 30, kBytes = 128 << 10;
  Element root(dev(), kTsar, 0);
  Element large(dev(), kQueueGroup, root.id(), 60), small(dev(), kQueueGroup, root.id(), 20);
  PairOptions o;
  o.bytes = kBytes;
  std::vector<std::unique_ptr<Pair>> pairs;
  for (unsigned i = 0; i < kOthers + 2; ++i) pairs.push_back(std::make_unique<Pair>(dev(), o));
  Pair &fast = *pairs[0], &slow = *pairs[1];
  EXPECT_CMD_OK(set_groups(dev(), fast.a, large.id()));
  EXPECT_CMD_OK(set_groups(dev(), slow.a, small.id()));
  for (unsigned n = 0; n < 24; ++n)
    for (auto& p : pairs) p->a.post(p->wr(WqeOp::kRdmaWrite, 0, kBytes));
  ASSERT_EQ(fast.acq.wait(24).size(), 24u);
  unsigned other = 0;
  while (slow.acq.poll()) ++other;
  EXPECT_GE(other, 6u);  // 20 of 60, and what is on its way
  EXPECT_LE(other, 13u);
  for (std::size_t i = 1; i < pairs.size(); ++i) {
    const unsigned left = i == 1 ? 24 - other : 24;
    EXPECT_EQ(pairs[i]->acq.wait(left).size(), left);
  }
  EXPECT_CMD_OK(set_groups(dev(), fast.a, 0));
  EXPECT_CMD_OK(set_groups(dev(), slow.a, 0));
}

TEST_F(Qos, TreesAreChecked) {
  breaks({"cap-limit", "cap-not-offered", "destroy-busy", "modify-mask", "object-unknown", "sched-element"});
  using S = CmdStatus;
  const auto make = [&](std::uint32_t type, std::uint32_t parent, std::uint32_t share = 0) {
    return dev().exec(Element::mailbox(type, parent, share, 0));
  };
  const auto make_at = [&](std::uint32_t parent, std::vector<std::unique_ptr<Element>>& path) {
    try {
      path.push_back(std::make_unique<Element>(dev(), kTsar, parent));
      return true;
    } catch (const BareError&) {
      return false;
    }
  };
  EXPECT_CMD_STATUS(make(kQueueGroup, 0), S::kBadParam);
  EXPECT_CMD_STATUS(make(1, 0), S::kBadParam);
  EXPECT_CMD_STATUS(make(kTsar, 77), S::kBadParam);
  Element root(dev(), kTsar, 0), group(dev(), kQueueGroup, root.id());
  EXPECT_CMD_STATUS(make(kQueueGroup, group.id()), S::kBadParam);
  EXPECT_CMD_STATUS(make(kQueueGroup, root.id(), 101), S::kBadParam);
  EXPECT_CMD_STATUS(group.modify(4, 0, 0), S::kBadParam);
  EXPECT_CMD_STATUS(root.destroy(), S::kBadResState);
  Mailbox in = Element::mailbox(kTsar, 0, 0, 0);
  in.set<prm::sched_elem::scheduling_hierarchy>(2);
  EXPECT_CMD_STATUS(dev().exec(in), S::kBadParam);
  // Only so deep.
  std::vector<std::unique_ptr<Element>> path;
  std::uint32_t parent = root.id();
  for (unsigned i = 0; i < 64 && make_at(parent, path); ++i) parent = path.back()->id();
  EXPECT_GE(path.size(), 2u);
  EXPECT_LT(path.size(), 64u);
  while (!path.empty()) path.pop_back();
  // Queues name groups only, and hold them.
  Pair p(dev());
  EXPECT_CMD_STATUS(set_groups(dev(), p.a, root.id()), S::kBadRes);
  EXPECT_CMD_STATUS(set_groups(dev(), p.a, 200), S::kBadRes);
  EXPECT_CMD_OK(set_groups(dev(), p.a, group.id(), group.id()));
  EXPECT_CMD_STATUS(group.destroy(), S::kBadResState);
  EXPECT_CMD_OK(set_groups(dev(), p.a, 0));
}

TEST_F(Qos, GroupsOfOthersAreOutOfReach) {
  breaks({"devx-owner"});
  Uctx a(dev()), b(dev());
  std::unique_ptr<Element> root, group;
  {
    const Uctx::As as(dev(), a);
    root = std::make_unique<Element>(dev(), kTsar, 0);
    group = std::make_unique<Element>(dev(), kQueueGroup, root->id());
  }
  {
    const Uctx::As as(dev(), b);
    EXPECT_CMD_STATUS(dev().exec(Element::mailbox(kQueueGroup, root->id(), 0, 0)), CmdStatus::kBadRes);
    EXPECT_CMD_STATUS(group->modify(2, 0, 1), CmdStatus::kBadRes);
    EXPECT_CMD_STATUS(group->destroy(), CmdStatus::kBadRes);
    Pair p(dev());
    EXPECT_CMD_STATUS(set_groups(dev(), p.a, group->id()), CmdStatus::kBadRes);
  }
  EXPECT_CMD_OK(group->destroy());
  EXPECT_CMD_OK(root->destroy());
}

// ---- Packet pacing ----

class Pacing : public EthTest {};

TEST_F(Pacing, SqKeepsItsRate) {
  breaks({"table-index"});
  EthLink link(dev());
  const Frame frame = plain_frame(1500);
  const auto run = [&] {
    const std::int64_t from = machine().now();
    for (unsigned i = 0; i < 40; ++i) {
      link.rq.post({link.rx_sge(0, 2048)});
      link.send(frame);
    }
    EXPECT_EQ(link.rcq.wait(40).size(), 40u);
    EXPECT_EQ(link.scq.wait(40).size(), 40u);
    return machine().now() - from;
  };
  const std::int64_t free = run();
  EXPECT_CMD_STATUS(name_pace(dev(), link.sq, 5), CmdStatus::kIx);
  EXPECT_CMD_OK(set_pace(dev(), 5, 1'000'000));
  EXPECT_CMD_OK(name_pace(dev(), link.sq, 5));
  const std::int64_t wire = 40ll * 1500 * 8;
  const std::int64_t paced = run();
  EXPECT_GT(paced, wire * 9 / 10);
  EXPECT_LT(paced, wire * 5 / 4);
  EXPECT_LT(free, wire / 2);
  // A rate that would take hours, taken away: what waits goes.
  EXPECT_CMD_OK(set_pace(dev(), 5, 1));
  link.rq.post({link.rx_sge(0, 2048)});
  link.rq.post({link.rx_sge(0, 2048)});
  link.send(frame);
  link.send(frame);
  EXPECT_EQ(link.rcq.wait(2, 1'000'000).size(), 1u);
  EXPECT_CMD_OK(name_pace(dev(), link.sq, 0));
  EXPECT_EQ(link.rcq.wait(1).size(), 1u);
  EXPECT_CMD_OK(set_pace(dev(), 5, 0));
  EXPECT_CMD_STATUS(name_pace(dev(), link.sq, 5), CmdStatus::kIx);
}

TEST_F(Pacing, LimitersAreChecked) {
  breaks({"cap-limit", "devx-owner", "table-index"});
  EXPECT_CMD_STATUS(set_pace(dev(), 0, 1000), CmdStatus::kIx);
  EXPECT_CMD_STATUS(set_pace(dev(), 128, 1000), CmdStatus::kIx);
  EXPECT_CMD_STATUS(set_pace(dev(), 1, 100'000'001), CmdStatus::kBadParam);
  Uctx a(dev(), 1), b(dev(), 1);
  EXPECT_CMD_OK(set_pace(dev(), 7, 1000, a.uid()));
  EXPECT_CMD_OK(set_pace(dev(), 8, 1000, 0xffff));
  EXPECT_CMD_STATUS(set_pace(dev(), 7, 2000, b.uid()), CmdStatus::kBadRes);
  {
    const Uctx::As as(dev(), b);
    Pd pd(dev());
    Cq cq(dev());
    auto td = make_transport_domain(dev());
    auto tis = make_tis(dev(), td.number());
    Sq sq(dev(), pd, cq, tis.number());
    EXPECT_CMD_STATUS(name_pace(dev(), sq, 7), CmdStatus::kBadRes);
    EXPECT_CMD_OK(name_pace(dev(), sq, 8));
  }
  EXPECT_CMD_OK(set_pace(dev(), 7, 0, a.uid()));
  EXPECT_CMD_OK(set_pace(dev(), 8, 0, 0xffff));
}

}  // namespace
}  // namespace hcasim::bare
