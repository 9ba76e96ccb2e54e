// SPDX-License-Identifier: BSD-3-Clause
// Which pages a virtual function has written: noted where it writes them, reported to its manager by messages
// between two QPs of its own, as mlx5_vfio_pci makes them.
#include <set>

#include "migration_rig.h"

namespace hcasim {
namespace {

class PageTrack : public Migrating {
 protected:
  static constexpr std::uint32_t kMessage = 1u << 12, kMessages = 16;
  static constexpr std::uint64_t kPage = 4096;

  // The end that reports has no queues at all.
  struct Ends {
    explicit Ends(bare::Device& pf)
        : pd(pf),
          cq(pf),
          host(pf, pd, cq, cq),
          reporter(pf, pd, cq, cq, nothing()),
          buffer(pf.memory().allocate(std::size_t{kMessages} * kMessage)),
          mr(pf, bare::Mr::of(pd, buffer)) {
      bare::QpAttr attr;
      attr.remote_qpn = reporter.qpn();
      host.connect(attr);
      attr.remote_qpn = host.qpn();
      reporter.connect(attr);
      for (std::uint32_t i = 0; i < kMessages; ++i) post();
    }
    static bare::QpOptions nothing() {
      bare::QpOptions o;
      o.no_sq = o.no_rq = true;
      return o;
    }
    void post() {
      host.post_recv({{mr.start() + std::uint64_t{posted++ % kMessages} * kMessage, mr.key(), kMessage}});
    }
    bare::Pd pd;
    bare::Cq cq;
    bare::Qp host, reporter;
    bare::Buffer buffer;
    bare::Mr mr;
    std::uint32_t posted = 0, taken = 0;
  };

  using Object = prm::create_page_track_obj_in::obj_context;
  static Mailbox header(std::uint16_t opcode, std::size_t bytes, std::uint32_t id = 0) {
    using Header = prm::general_obj_in_cmd_hdr;
    Mailbox in(opcode, bytes);
    in.set<Header::obj_type>(prm::k::OBJ_TYPE_PAGE_TRACK);
    return in.set<Header::obj_id>(id);
  }
  struct Wanted {
    std::uint32_t qpn = 0, log_page = 12, log_message = 12, log_space = 26, type = 1;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  };
  CommandResult create(FunctionId f, const Wanted& w) {
    using Range = prm::page_track_range;
    Mailbox in = header(prm::op::CREATE_GENERAL_OBJECT,
                        prm::create_page_track_obj_in::bytes + w.ranges.size() * Range::bytes);
    in.set<Object::vhca_id>(id(f)).set<Object::track_type>(w.type).set<Object::log_page_size>(w.log_page);
    in.set<Object::log_msg_size>(w.log_message).set<Object::log_addr_space_size>(w.log_space);
    in.set<Object::reporting_qpn>(w.qpn).set<Object::num_ranges>(w.ranges.size());
    for (std::size_t i = 0; i < w.ranges.size(); ++i) {
      std::uint8_t* const r = in.data() + prm::create_page_track_obj_in::bytes + i * Range::bytes;
      prm::set<Range::start_address>(r, w.ranges[i].first);
      prm::set<Range::length>(r, w.ranges[i].second);
    }
    return pf.exec(in, prm::general_obj_out_cmd_hdr::bytes);
  }
  CommandResult ask(std::uint32_t object, std::uint64_t start, std::uint64_t len) {
    Mailbox in = header(prm::op::MODIFY_GENERAL_OBJECT, prm::modify_page_track_obj_in::bytes, object);
    in.set<Object::modify_field_select>(3).set<Object::range_start_address>(start).set<Object::length>(len);
    return pf.exec(in.set<Object::state>(1), prm::general_obj_out_cmd_hdr::bytes);
  }
  std::set<std::uint64_t> dirty(Ends& ends, std::uint32_t object, std::uint64_t start, std::uint64_t len) {
    EXPECT_TRUE(ask(object, start, len).ok());
    std::set<std::uint64_t> pages;
    for (;;) {
      const bare::Completion done = ends.cq.wait_one();
      EXPECT_EQ(done.op, prm::CqeOp::kRespSendImm) << done.text();
      if (done.op != prm::CqeOp::kRespSendImm) return pages;
      const std::uint8_t* at = ends.buffer.data() + std::size_t{ends.taken++ % kMessages} * kMessage;
      for (std::uint32_t i = 0; i < done.byte_cnt; i += 8) pages.insert(prm::load64(at + i));
      ends.post();
      if (done.imm >> 28 == 0) return pages;
      EXPECT_EQ(done.imm >> 28, 1u);
      EXPECT_GT(done.byte_cnt, 0u);
    }
  }
  // Pages that a function had to write for these bytes.
  static void add(std::set<std::uint64_t>& pages, std::uint64_t addr, std::uint64_t len) {
    for (std::uint64_t at = addr / kPage * kPage; at < addr + len; at += kPage) pages.insert(at);
  }
};

TEST_F(PageTrack, WhatIsWrittenIsReportedOnce) {
  auto vf = probed(1);
  End a(pf), b(*vf);
  a.connect(b);
  b.connect(a);
  Ends ends(pf);
  constexpr unsigned kLogAll = 34;
  const std::uint64_t all = std::uint64_t{1} << kLogAll;
  Wanted w;
  w.log_space = kLogAll;
  w.qpn = ends.reporter.qpn();
  w.ranges = {{0, all}};
  const std::uint32_t object = create(1, w).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
  EXPECT_TRUE(dirty(ends, object, 0, all).empty());
  // Data, and their completion.
  EXPECT_TRUE(b.write(a, 1));  // reads its own memory; writes its CQE
  std::set<std::uint64_t> pages;
  add(pages, b.cq.ring().bus(0), 64);
  EXPECT_EQ(dirty(ends, object, 0, all), pages);
  EXPECT_TRUE(a.write(b, 2));
  pages.clear();
  add(pages, b.buffer.bus(0), End::kBytes);
  EXPECT_EQ(dirty(ends, object, 0, all), pages);
  EXPECT_TRUE(dirty(ends, object, 0, all).empty());
  // In parts.
  EXPECT_TRUE(a.write(b, 3));
  const std::uint64_t second = b.buffer.bus(kPage);
  EXPECT_EQ(dirty(ends, object, second, kPage), std::set<std::uint64_t>{second});
  pages.erase(second);
  EXPECT_EQ(dirty(ends, object, 0, all), pages);
  // Commands' outputs and events: the queue's page, and whatever the answer needs.
  vf->query_vport().must();
  pages = dirty(ends, object, 0, all);
  EXPECT_EQ(pages.count(vf->cmd().queue_bus() / kPage * kPage), 1u);
  Mailbox destroy = header(prm::op::DESTROY_GENERAL_OBJECT, prm::general_obj_in_cmd_hdr::bytes, object);
  EXPECT_TRUE(pf.exec(destroy).ok());
  EXPECT_EQ(ask(object, 0, all).status, CmdStatus::kBadRes);
}

TEST_F(PageTrack, OfManyPagesThereAreSeveralMessages) {
  auto vf = probed(1);
  Ends ends(pf);
  bare::Pd pd(*vf), of_pf(pf);
  bare::Cq cq(*vf), pf_cq(pf);
  bare::Qp qp(*vf, pd, cq, cq), peer(pf, of_pf, pf_cq, pf_cq);
  constexpr std::size_t kBytes = 8u << 20;
  bare::Buffer to = vf->memory().allocate(kBytes), from = pf.memory().allocate(kBytes);
  bare::Mr to_mr(*vf, bare::Mr::of(pd, to)), from_mr(pf, bare::Mr::of(of_pf, from));
  bare::QpAttr attr;
  attr.grh = true;
  attr.remote_qpn = peer.qpn();
  auto gid = pf.gid(0);
  std::copy(gid.begin(), gid.end(), attr.dgid.begin());
  qp.connect(attr);
  attr.remote_qpn = qp.qpn();
  gid = vf->gid(0);
  std::copy(gid.begin(), gid.end(), attr.dgid.begin());
  peer.connect(attr);
  Wanted w;
  w.qpn = ends.reporter.qpn();
  w.ranges = {{to.bus(0), kBytes / 2}, {to.bus(kBytes / 2), kBytes / 4}};  // and not its last quarter
  const std::uint32_t object = create(1, w).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
  bare::SendWr wr;
  wr.op = bare::WqeOp::kRdmaWrite;
  wr.sges = {{from_mr.start(), from_mr.key(), kBytes}};
  wr.raddr = to_mr.start();
  wr.rkey = to_mr.key();
  peer.post(wr);
  EXPECT_FALSE(pf_cq.wait_one().error());
  const std::uint32_t before = ends.taken;
  std::set<std::uint64_t> pages;
  add(pages, to.bus(0), kBytes / 4 * 3);
  EXPECT_EQ(dirty(ends, object, 0, ~std::uint64_t{0}), pages);
  EXPECT_EQ(ends.taken - before, pages.size() / (kMessage / 8));
}

TEST_F(PageTrack, ReportsThatNobodyTakesAreNotKeptWithoutEnd) {
  auto vf = probed(1);
  Ends ends(pf);
  Wanted w;
  w.qpn = ends.reporter.qpn();
  w.ranges = {{0, 1u << 20}};
  const std::uint32_t object = create(1, w).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
  CommandResult last;
  unsigned taken = 0;
  while ((last = ask(object, 0, 4096)).ok() && taken < 20000) ++taken;
  EXPECT_EQ(last.status, CmdStatus::kLim) << last.text();
  EXPECT_GT(taken, 1000u);
  // As somebody takes them, there is room for others.
  for (unsigned i = 0; i < 100; ++i) {
    const bare::Completion done = ends.cq.wait_one();
    ASSERT_FALSE(done.error()) << done.text();
    ends.post();
  }
  EXPECT_TRUE(ask(object, 0, 4096).ok());
}

TEST_F(PageTrack, WhatIsNotOfferedIsRefused) {
  auto vf = probed(1);
  Ends ends(pf);
  Wanted good;
  good.qpn = ends.reporter.qpn();
  good.ranges = {{0, 1u << 20}};
  const auto refused = [&](const std::function<void(Wanted&)>& change) {
    Wanted w = good;
    change(w);
    return create(1, w).status;
  };
  EXPECT_EQ(refused([](Wanted& w) { w.type = 0; }), CmdStatus::kBadParam);
  EXPECT_EQ(refused([](Wanted& w) { w.log_page = 11; }), CmdStatus::kBadParam);
  EXPECT_EQ(refused([](Wanted& w) { w.log_page = 31; }), CmdStatus::kBadParam);
  EXPECT_EQ(refused([](Wanted& w) { w.log_message = 31; }), CmdStatus::kBadParam);
  EXPECT_EQ(refused([](Wanted& w) { w.log_space = 255; }), CmdStatus::kBadParam);
  EXPECT_EQ(refused([](Wanted& w) { w.log_space = 18; }), CmdStatus::kBadParam);  // less than the range
  EXPECT_EQ(refused([](Wanted& w) { w.ranges.clear(); }), CmdStatus::kBadParam);
  EXPECT_EQ(refused([](Wanted& w) { w.ranges = {{~std::uint64_t{0} - 10, 100}}; }), CmdStatus::kBadParam);
  EXPECT_EQ(refused([](Wanted& w) { w.ranges.assign(65, {0, 4096}); }), CmdStatus::kBadParam);
  EXPECT_EQ(refused([](Wanted& w) { w.qpn = 0xabcdef; }), CmdStatus::kBadRes);
  EXPECT_EQ(create(0, good).status, CmdStatus::kBadParam);
  const std::uint32_t object = create(1, good).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
  EXPECT_EQ(create(1, good).status, CmdStatus::kBadResState);  // it is tracked
  EXPECT_EQ(ask(object, ~std::uint64_t{0} - 10, 100).status, CmdStatus::kBadParam);
  EXPECT_EQ(ask(object, 0, 0).status, CmdStatus::kBadParam);
  EXPECT_EQ(ask(object + 1, 0, 4096).status, CmdStatus::kBadRes);
  EXPECT_EQ(ends.reporter.destroy().status, CmdStatus::kBadResState);  // in use
  // Reports that cannot be sent: an event says so, and the state.
  ends.reporter.to_error();
  pf.clear_async_events();
  EXPECT_TRUE(ask(object, 0, 4096).ok());
  Mailbox query = header(prm::op::QUERY_GENERAL_OBJECT, prm::general_obj_in_cmd_hdr::bytes, object);
  const auto state = pf.exec(query, prm::query_page_track_obj_out::bytes).must();
  EXPECT_EQ(state.get<prm::query_page_track_obj_out::obj_context::state>(), 2u);
  EXPECT_EQ(state.get<prm::query_page_track_obj_out::obj_context::vhca_id>(), id(1));
  // With its manager it ends.
  pf.function_reset();
  EXPECT_EQ(c.card.dma().written_pages(1), nullptr);
}

}  // namespace
}  // namespace hcasim
