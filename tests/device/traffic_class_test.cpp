// SPDX-License-Identifier: BSD-3-Clause
// Traffic classes of the port: shares, strict groups and rates of queues by their TIS's priority; trust in
// DSCP.
#include "eth_fixture.h"
#include "prm/access_registers.h"

namespace hcasim::bare {
namespace {

using namespace prm::reg;

class Classes : public EthTest {
 protected:
  struct Class {
    int group = -1, share = -1, unit = -1;
    unsigned value = 0;
  };
  void set(unsigned tc, const Class& of) {
    using R = prm::qetc_reg;
    using C = prm::ets_tcn_config_reg;
    std::vector<std::uint8_t> data(R::bytes);
    std::uint8_t* p = data.data() + R::tc_configuration::bit_off / 8 + std::size_t{tc} * C::bytes;
    if (of.group >= 0) prm::set<C::g>(p, 1), prm::set<C::group>(p, static_cast<unsigned>(of.group));
    if (of.share >= 0) prm::set<C::b>(p, 1), prm::set<C::bw_allocation>(p, static_cast<unsigned>(of.share));
    if (of.unit >= 0) {
      prm::set<C::r>(p, 1);
      prm::set<C::max_bw_units>(p, static_cast<unsigned>(of.unit));
      prm::set<C::max_bw_value>(p, of.value);
    }
    EXPECT_CMD_OK(dev().access_register(kQetcr, true, data));
  }
  void map(unsigned priority, unsigned tc) {
    std::vector<std::uint8_t> data(prm::qtct_reg::bytes);
    prm::set<prm::qtct_reg::prio>(data.data(), priority);
    prm::set<prm::qtct_reg::tclass>(data.data(), tc);
    EXPECT_CMD_OK(dev().access_register(kQtct, true, data));
  }
  std::uint64_t sent_by(unsigned priority) {
    using R = prm::ppcnt_reg;
    using G = R::counter_set::eth_per_prio_grp_data_layout;
    std::vector<std::uint8_t> data(R::bytes);
    prm::set<R::local_port>(data.data(), 1);
    prm::set<R::grp>(data.data(), 0x10);
    prm::set<R::prio_tc>(data.data(), priority);
    const auto r = dev().access_register(kPpcnt, false, data).must();
    const std::uint8_t* p = r.out.data() + prm::access_register_out::bytes;
    return prm::get<G::tx_frames_low>(p);
  }
};

// A send queue of a priority that has much to send: large sends of eight segments each.
struct Sender {
  static constexpr unsigned kMss = 1446, kSegments = 8, kWqes = 480;
  // With its FCS, as rates count it.
  static constexpr unsigned kFrame = 14 + 20 + 20 + kMss + 4;

  Sender(Device& device, unsigned priority)
      : pd(device),
        cq(device, cq_options()),
        bytes(device.memory().allocate(std::size_t{kMss} * kSegments)),
        key(device, Mr::of(pd, bytes)),
        td(make_transport_domain(device)),
        tis(make_tis(device, td.number(), priority)),
        sq(device, pd, cq, tis.number(), 11) {
    const Frame whole = l4_frame({false, false, 0});
    for (unsigned i = 0; i < kWqes; ++i) {
      EthWr wr;
      wr.op = WqeOp::kLso;
      wr.headers = whole;
      wr.mss = kMss;
      wr.cs_flags = prm::EthSeg::kL3Csum | prm::EthSeg::kL4Csum;
      wr.sges = {{key.start(), key.key(), kMss * kSegments}};
      sq.post(wr, false);
    }
  }
  static CqOptions cq_options() {
    CqOptions o;
    o.log_size = 10;
    return o;
  }
  unsigned done() {
    unsigned n = 0;
    while (cq.poll()) ++n;
    return n;
  }

  Pd pd;
  Cq cq;
  Buffer bytes;
  Mr key;
  EthObject td, tis;
  Sq sq;
};

TEST_F(Classes, ShareAGroup) {
  Sender large(dev(), 2), small(dev(), 3);
  set(2, {0, 75});
  set(3, {0, 25});
  large.sq.ring_doorbell();
  small.sq.ring_doorbell();
  ASSERT_EQ(large.cq.wait(450).size(), 450u);
  const unsigned other = small.done();
  EXPECT_GE(other, 144u);  // a third, within 3 % and a WQE
  EXPECT_LE(other, 156u);
  // Alone, a small share is no limit.
  EXPECT_EQ(large.cq.wait(30).size(), 30u);
  EXPECT_EQ(small.cq.wait(Sender::kWqes - other).size(), Sender::kWqes - other);
}

TEST_F(Classes, AreEqualAsDelivered) {
  Sender a(dev(), 0), b(dev(), 5), c(dev(), 5);
  for (Sender* s : {&a, &b, &c}) s->sq.ring_doorbell();
  ASSERT_EQ(a.cq.wait(300).size(), 300u);
  const unsigned of_b = b.done(), of_c = c.done();
  EXPECT_GE(of_b + of_c, 290u);  // both have what the one has
  EXPECT_LE(of_b + of_c, 312u);
  EXPECT_NEAR(of_b, of_c, 4);
  a.cq.wait(Sender::kWqes - 300);
  b.cq.wait(Sender::kWqes - of_b);
  c.cq.wait(Sender::kWqes - of_c);
}

TEST_F(Classes, HigherGroupsGoFirst) {
  Sender first(dev(), 6), last(dev(), 1);
  set(6, {2, 100});
  set(1, {1, 100});
  last.sq.ring_doorbell();
  first.sq.ring_doorbell();
  ASSERT_EQ(first.cq.wait(450).size(), 450u);
  const unsigned other = last.done();
  EXPECT_LE(other, 8u);  // what was on its way
  first.cq.wait(30);
  EXPECT_EQ(last.cq.wait(Sender::kWqes - other).size(), Sender::kWqes - other);
}

TEST_F(Classes, KeepARate) {
  Sender slow(dev(), 4), free(dev(), 0);
  map(4, 7);
  set(7, {-1, -1, 3, 20});  // of 100 Mb/s
  const std::int64_t from = machine().now();
  slow.sq.ring_doorbell();
  free.sq.ring_doorbell();
  EXPECT_EQ(free.cq.wait(Sender::kWqes).size(), Sender::kWqes);
  const std::int64_t others = machine().now() - from;
  EXPECT_EQ(slow.cq.wait(200 - 0).size(), 200u);
  const std::int64_t took = machine().now() - from;
  const std::int64_t wire = 200ll * Sender::kSegments * Sender::kFrame * 8 / 2;  // ns at 2 Gb/s
  EXPECT_GT(took, wire * 97 / 100);
  EXPECT_LT(took, wire * 103 / 100);
  EXPECT_LT(others, wire / 10);
  // Taken away: what waits goes.
  set(7, {-1, -1, 0});
  EXPECT_EQ(slow.cq.wait(Sender::kWqes - 200, 2'000'000).size(), Sender::kWqes - 200u);
}

TEST_F(Classes, DscpIsThePriorityIfTrusted) {
  EthLink link(dev());
  const auto send = [&link](unsigned tos, bool v6) {
    link.rq.post({link.rx_sge(0, 2048)});
    Frame f = l4_frame({v6, true, 100});
    if (v6) {
      f[14] = static_cast<std::uint8_t>(0x60 | tos >> 4);
      f[15] = static_cast<std::uint8_t>(tos << 4);
    } else {
      f[15] = static_cast<std::uint8_t>(tos);
    }
    expect_good(link.scq, link.send(f));
    EXPECT_EQ(link.rcq.wait(1).size(), 1u);
  };
  const std::uint64_t before = sent_by(5);
  send(46 << 2, false);
  EXPECT_EQ(sent_by(5), before);
  std::vector<std::uint8_t> trust(prm::qpts_reg::bytes), of_dscp(prm::qpdpm_reg::bytes);
  trust[1] = of_dscp[1] = 1;  // local_port
  prm::set<prm::qpts_reg::trust_state>(trust.data(), 2);
  prm::store16(of_dscp.data() + 4 + 46 * 2, 0x8005);
  EXPECT_CMD_OK(dev().access_register(kQpdpm, true, of_dscp));
  EXPECT_CMD_OK(dev().access_register(kQpts, true, trust));
  send(46 << 2, false);
  send(46 << 2 | 3, true);
  send(45 << 2, false);
  EXPECT_EQ(sent_by(5), before + 2);
  prm::set<prm::qpts_reg::trust_state>(trust.data(), 1);
  EXPECT_CMD_OK(dev().access_register(kQpts, true, trust));
}

}  // namespace
}  // namespace hcasim::bare
