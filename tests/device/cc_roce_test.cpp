// SPDX-License-Identifier: BSD-3-Clause
// Congestion control and pause between two HCAs on Ethernet, through the command interface and PCIe alone.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "driver/bare/qp.h"
#include "prm/access_registers.h"
#include "rule_check.h"

namespace hcasim::bare {
namespace {

using namespace prm::reg;
constexpr std::uint32_t kReactionPoint = 1, kNotificationPoint = 2;
constexpr std::size_t kMemory = std::size_t{1} << 20;

// HCAs by number: 0 and 1 have a cable, 2 and 3 another; 2 is of a later generation, 3 sits in a slot of one
// lane. 4 and 5 have one, too; 5 sends CNPs to each flow by itself.
Machine& machine() {
  static Machine* m = [] {
    std::string slow = std::filesystem::temp_directory_path() / "hcasim-cc.XXXXXX.toml";
    const int fd = mkstemps(slow.data(), 5);
    if (fd < 0) throw BareError("mkstemps");
    close(fd);
    std::ofstream(slow) << "name = \"one-lane\"\n[pcie]\nlanes = 1\n";
    auto* made = new Machine(std::size_t{256} << 20);  // lives as long as the SystemC kernel
    made->echo_log = std::getenv("HCASIM_TEST_LOG") != nullptr;
    made->add_hca("link=eth,name=cc-a,cable=cc-b,mac=02:00:00:00:00:01");
    made->add_hca("link=eth,name=cc-b,mac=02:00:00:00:00:02");
    made->add_hca("link=eth,name=cc-c,cable=cc-d,generation=connectx6dx,mac=02:00:00:00:00:03");
    made->add_hca("link=eth,name=cc-d,mac=02:00:00:00:00:04,profile=" + slow);
    made->add_hca("link=eth,name=cc-e,cable=cc-f,mac=02:00:00:00:00:05");
    made->add_hca("link=eth,name=cc-f,mac=02:00:00:00:00:06,port.cnp_moderation=2");
    std::filesystem::remove(slow);
    made->start();
    return made;
  }();
  return *m;
}

DeviceOptions no_wait() {
  DeviceOptions o;
  o.wait_active = false;
  return o;
}

std::array<std::uint8_t, 16> gid_of(unsigned hca) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, static_cast<std::uint8_t>(hca + 1)};
}

// An HCA with its port up, RoCE on, and one RoCE v2 address.
struct Host {
  explicit Host(unsigned number)
      : hca(number), function(machine().function(number)), device(function, no_wait()) {
    function.reset();
    device.probe();
    std::vector<std::uint8_t> paos(prm::paos_reg::bytes);
    prm::set<prm::paos_reg::local_port>(paos.data(), 1);
    prm::set<prm::paos_reg::admin_status>(paos.data(), 1);
    prm::set<prm::paos_reg::ase>(paos.data(), 1);
    device.access_register(kPaos, true, paos).must();
    using Nic = prm::modify_nic_vport_context_in;
    device
        .exec(Mailbox(prm::op::MODIFY_NIC_VPORT_CONTEXT, Nic::bytes)
                  .set<Nic::field_select::roce_en>(1)
                  .set<Nic::nic_vport_context::roce_en>(1))
        .must();
    using Roce = prm::set_roce_address_in;
    Mailbox in(prm::op::SET_ROCE_ADDRESS, Roce::bytes);
    const auto gid = gid_of(hca);
    std::copy(gid.begin(), gid.end(), in.data() + Roce::roce_address::source_l3_address::bit_off / 8);
    in.set<Roce::roce_address::roce_version>(2)
        .set<Roce::roce_address::source_mac_47_32>(0x0200)
        .set<Roce::roce_address::source_mac_31_0>(hca + 1);
    device.exec(in).must();
    pd = std::make_unique<Pd>(device);
    memory = device.memory().allocate(kMemory);
    mr = std::make_unique<Mr>(device, Mr::of(*pd, memory, kAllAccess, 12, 0, 0, 0));
  }

  std::uint64_t parameter(std::uint32_t protocol,
                          const std::function<std::uint64_t(const CommandResult&)>& get) {
    using In = prm::query_cong_params_in;
    return get(device
                   .exec(Mailbox(prm::op::QUERY_CONG_PARAMS, In::bytes).set<In::cong_protocol>(protocol),
                         prm::query_cong_params_out::bytes)
                   .must());
  }
  CommandResult set(std::uint32_t protocol, std::uint32_t select, const std::function<void(Mailbox&)>& fill) {
    using In = prm::modify_cong_params_in;
    Mailbox in(prm::op::MODIFY_CONG_PARAMS, In::bytes);
    in.set<In::cong_protocol>(protocol).set<In::field_select::field_select_r_roce_rp::field_select_r_roce_rp>(
        select);
    fill(in);
    return device.exec(in);
  }
  // A rate that the first CNP brings and nothing raises, Mb/s.
  void fix_rate(std::uint32_t mbps) {
    using P = prm::modify_cong_params_in::congestion_parameters::cong_control_r_roce_ecn_rp;
    set(kReactionPoint, 1u << 11 | 1u << 7 | 1u << 8 | 1u << 9, [&](Mailbox& in) {
      in.set<P::rate_to_set_on_first_cnp>(mbps).set<P::rpg_min_dec_fac>(100);
    }).must();
  }
  CommandResult statistics(bool clear = false) {
    using In = prm::query_cong_statistics_in;
    return device
        .exec(Mailbox(prm::op::QUERY_CONG_STATISTICS, In::bytes).set<In::clear>(clear),
              prm::query_cong_statistics_out::bytes)
        .must();
  }
  CommandResult enable(std::uint32_t protocol, bool on) {
    using In = prm::modify_cong_status_in;
    Mailbox in(prm::op::MODIFY_CONG_STATUS, In::bytes);
    return device.exec(in.set<In::cong_protocol>(protocol).set<In::priority>(0).set<In::enable>(on));
  }
  void pause(bool rx, bool tx) {
    std::vector<std::uint8_t> r(prm::pfcc_reg::bytes);
    prm::set<prm::pfcc_reg::local_port>(r.data(), 1);
    prm::set<prm::pfcc_reg::pprx>(r.data(), rx);
    prm::set<prm::pfcc_reg::pptx>(r.data(), tx);
    device.access_register(kPfcc, true, r).must();
  }
  // Of one priority, which is that of one DSCP.
  void pause_dscp(unsigned dscp, unsigned priority, bool rx, bool tx) {
    std::vector<std::uint8_t> r(prm::pfcc_reg::bytes), map(prm::qpdpm_reg::bytes),
        trust(prm::qpts_reg::bytes);
    prm::set<prm::pfcc_reg::local_port>(r.data(), 1);
    prm::set<prm::pfcc_reg::prio_mask_rx>(r.data(), 1u << priority);
    prm::set<prm::pfcc_reg::prio_mask_tx>(r.data(), 1u << priority);
    prm::set<prm::pfcc_reg::pfcrx>(r.data(), rx ? 1u << priority : 0u);
    prm::set<prm::pfcc_reg::pfctx>(r.data(), tx ? 1u << priority : 0u);
    device.access_register(kPfcc, true, r).must();
    map[1] = trust[1] = 1;  // local_port
    using Dscps = prm::qpdpm_reg::dscp;
    prm::store16(map.data() + Dscps::bit_off / 8 + std::size_t{dscp} * Dscps::elem_bytes, 0x8000 | priority);
    device.access_register(kQpdpm, true, map).must();
    prm::set<prm::qpts_reg::trust_state>(trust.data(), 2);
    device.access_register(kQpts, true, trust).must();
  }

  unsigned hca;
  Function& function;
  Device device;
  std::unique_ptr<Pd> pd;
  Buffer memory;
  std::unique_ptr<Mr> mr;
};

struct Flow {
  explicit Flow(Host& h) : host(h), cq(h.device), qp(h.device, *h.pd, cq, cq) {}

  void connect(std::uint32_t remote_qpn, unsigned remote_hca, unsigned dscp = 0) {
    using namespace prm;
    QpAttr a;
    qp.to_init(a).must();
    qp.modify(op::INIT2RTR_QP, 1 << 1 | 1 << 2 | 1 << 3, [&](std::uint8_t* c) {
        using P = qpc::primary_address_path;
        prm::set<qpc::mtu>(c, 3u);  // 1024
        prm::set<qpc::log_msg_max>(c, 30u);
        prm::set<qpc::remote_qpn>(c, remote_qpn);
        prm::set<P::vhca_port_num>(c, 1u);
        prm::set<P::src_addr_index>(c, 0u);
        prm::set<P::hop_limit>(c, 64u);
        prm::set<P::dscp>(c, dscp);
        prm::set<P::rmac_47_32>(c, 0x0200u);
        prm::set<P::rmac_31_0>(c, remote_hca + 1);
        const auto gid = gid_of(remote_hca);
        std::copy(gid.begin(), gid.end(), c + P::rgid_rip::bit_off / 8);
        prm::set<qpc::log_rra_max>(c, 4u);
        prm::set<qpc::min_rnr_nak>(c, 1u);
        prm::set<qpc::rre>(c, 1u);
        prm::set<qpc::rwe>(c, 1u);
      }).must();
    qp.to_rts(a).must();
  }
  void post(WqeOp op, const Host& to, std::uint32_t len) {
    SendWr wr;
    wr.op = op;
    wr.sges = {{host.mr->start(), host.mr->key(), len}};
    wr.raddr = to.mr->start();
    wr.rkey = to.mr->key();
    qp.post(wr);
  }

  Host& host;
  Cq cq;
  Qp qp;
};

class CcRoce : public ::testing::Test {
 protected:
  CcRoce() : a(0), b(1) {}
  void TearDown() override {
    a.function.inject("none");
    b.function.inject("none");
  }
  // Mb/s of payload that flow x gets from `op`s of 64 KiB, after it has run for a while.
  double rate(Flow& x, const Host& to, WqeOp op = WqeOp::kRdmaWrite, unsigned messages = 20) {
    constexpr std::uint32_t kLen = 65536;
    for (unsigned i = 0; i < 4; ++i) x.post(op, to, kLen);
    good(x.cq.wait(2));
    const std::int64_t begin = machine().now();
    for (unsigned i = 0; i < messages; ++i) {
      x.post(op, to, kLen);
      good(x.cq.wait(1));
    }
    const std::int64_t end = machine().now();
    good(x.cq.wait(2));
    return static_cast<double>(messages) * kLen * 8e3 / static_cast<double>(end - begin);
  }
  static void good(const std::vector<Completion>& list) {
    for (const Completion& c : list) ASSERT_FALSE(c.error()) << c.text();
    ASSERT_FALSE(list.empty());
  }
  Host a, b;
};

TEST_F(CcRoce, ParametersAsACardHasThem) {
  breaks({"congestion-parameter"});
  using P = prm::query_cong_params_out::congestion_parameters;
  using Rp = P::cong_control_r_roce_ecn_rp;
  using Np = P::cong_control_r_roce_ecn_np;
  const auto rp = [&](auto field) {
    return a.parameter(kReactionPoint, [](const CommandResult& r) { return r.get<decltype(field)>(); });
  };
  const auto np = [&](auto field) {
    return a.parameter(kNotificationPoint, [](const CommandResult& r) { return r.get<decltype(field)>(); });
  };
  EXPECT_EQ(rp(Rp::clamp_tgt_rate_after_time_inc{}), 1u);
  EXPECT_EQ(rp(Rp::rpg_time_reset{}), 300u);
  EXPECT_EQ(rp(Rp::rpg_byte_reset{}), 32767u);
  EXPECT_EQ(rp(Rp::dce_tcp_g{}), 1019u);
  EXPECT_EQ(rp(Rp::initial_alpha_value{}), 1023u);
  EXPECT_EQ(np(Np::min_time_between_cnps{}), 4u);
  EXPECT_EQ(np(Np::cnp_dscp{}), 48u);
  EXPECT_EQ(np(Np::cnp_802p_prio{}), 6u);

  using In = prm::modify_cong_params_in::congestion_parameters;
  using InRp = In::cong_control_r_roce_ecn_rp;
  // Only what is selected changes.
  ASSERT_TRUE(a.set(kReactionPoint, 1 << 3, [](Mailbox& in) {
                 in.set<InRp::rpg_time_reset>(55).set<InRp::rpg_byte_reset>(1);
               }).ok());
  EXPECT_EQ(rp(Rp::rpg_time_reset{}), 55u);
  EXPECT_EQ(rp(Rp::rpg_byte_reset{}), 32767u);
  // A value that is not allowed: nothing of the command is done.
  EXPECT_EQ(a.set(kReactionPoint, 1 << 3 | 1 << 9,
                  [](Mailbox& in) { in.set<InRp::rpg_time_reset>(66).set<InRp::rpg_min_dec_fac>(101); })
                .status,
            CmdStatus::kBadParam);
  EXPECT_EQ(rp(Rp::rpg_time_reset{}), 55u);
  EXPECT_EQ(a.set(kReactionPoint, 1u << 20, [](Mailbox&) {}).status, CmdStatus::kBadParam);
  // The byte counter of the later cards has 32 bits.
  const auto most = [](Mailbox& in) { in.set<InRp::rpg_byte_reset>(UINT32_MAX); };
  EXPECT_EQ(a.set(kReactionPoint, 1 << 4, most).status, CmdStatus::kBadParam);
  Host later(2);
  EXPECT_TRUE(later.set(kReactionPoint, 1 << 4, most).ok());
  EXPECT_EQ(a.set(0, 0, [](Mailbox&) {}).status, CmdStatus::kBadParam);
  EXPECT_EQ(a.set(3, 0, [](Mailbox&) {}).status, CmdStatus::kBadParam);
}

TEST_F(CcRoce, MarksCostRateAndRecoveryBringsItBack) {
  Flow x(a), y(b);
  x.connect(y.qp.qpn(), 1);
  y.connect(x.qp.qpn(), 0);
  const double full = rate(x, b);
  EXPECT_GT(full, 50000);
  EXPECT_EQ(b.statistics().get<prm::query_cong_statistics_out::np_cnp_sent_low>(), 0u);
  a.function.inject("ecn=1");
  const double marked = rate(x, b, WqeOp::kRdmaWrite, 3);
  EXPECT_LT(marked, full / 20);
  using Out = prm::query_cong_statistics_out;
  auto s = b.statistics();
  EXPECT_GT(s.get<Out::np_cnp_sent_low>(), 10u);
  EXPECT_GE(s.get<Out::np_ecn_marked_roce_packets_low>(), s.get<Out::np_cnp_sent_low>());
  EXPECT_EQ(a.statistics().get<Out::rp_cnp_handled_low>(), s.get<Out::np_cnp_sent_low>());
  EXPECT_EQ(a.statistics().get<Out::rp_cur_flows>(), 1u);
  EXPECT_EQ(a.statistics().get<Out::sum_flows>(), 1u);
  a.function.inject("ecn=0");
  machine().advance(6'500'000'000);  // at least 5 Mb/s each 300 us
  EXPECT_GT(rate(x, b), 0.9 * full);
  EXPECT_EQ(a.statistics(true).get<Out::rp_cur_flows>(), 0u);
  EXPECT_EQ(a.statistics().get<Out::rp_cnp_handled_low>(), 0u) << "cleared";
}

TEST_F(CcRoce, AFlowKeepsItsRate) {
  Flow x(a), y(b);
  x.connect(y.qp.qpn(), 1);
  y.connect(x.qp.qpn(), 0);
  a.fix_rate(10000);
  a.function.inject("ecn=0.1");
  // 1082 bytes on the wire carry 1024.
  EXPECT_NEAR(rate(x, b), 10000 * 1024.0 / 1082, 200);
  a.fix_rate(2000);
  ASSERT_TRUE(x.qp.to_reset().ok());
  x.connect(y.qp.qpn(), 1);
  ASSERT_TRUE(y.qp.to_reset().ok());
  y.connect(x.qp.qpn(), 0);
  EXPECT_NEAR(rate(x, b), 2000 * 1024.0 / 1082, 40);
}

TEST_F(CcRoce, ReadsArePacedWhereTheirDataComesFrom) {
  Flow x(a), y(b);
  x.connect(y.qp.qpn(), 1);
  y.connect(x.qp.qpn(), 0);
  b.fix_rate(5000);
  b.function.inject("ecn=0.1");
  EXPECT_NEAR(rate(x, b, WqeOp::kRdmaRead), 5000 * 1024.0 / 1082, 150);
  EXPECT_EQ(b.statistics().get<prm::query_cong_statistics_out::rp_cur_flows>(), 1u);
  EXPECT_EQ(a.statistics().get<prm::query_cong_statistics_out::rp_cur_flows>(), 0u);
}

TEST_F(CcRoce, CnpsKeepTheirInterval) {
  using Np = prm::modify_cong_params_in::congestion_parameters::cong_control_r_roce_ecn_np;
  using Out = prm::query_cong_statistics_out;
  Flow x(a), y(b);
  x.connect(y.qp.qpn(), 1);
  y.connect(x.qp.qpn(), 0);
  a.fix_rate(40000);
  a.function.inject("ecn=1");
  for (const std::uint32_t us : {4u, 50u}) {
    b.set(kNotificationPoint, 1 << 2, [&](Mailbox& in) { in.set<Np::min_time_between_cnps>(us); }).must();
    b.statistics(true);
    const std::int64_t begin = machine().now();
    rate(x, b, WqeOp::kRdmaWrite, 100);
    const double periods = static_cast<double>(machine().now() - begin) / (us * 1000.0);
    const auto sent = static_cast<double>(b.statistics().get<Out::np_cnp_sent_low>());
    EXPECT_LE(sent, periods + 1);
    EXPECT_GE(sent, 0.7 * periods);
  }
}

// Of two flows whose packets are all marked: how many CNPs come in one interval.
double cnps_of_two_flows(Host& from, Host& to) {
  using Out = prm::query_cong_statistics_out;
  constexpr std::uint32_t kLen = 65536, kMessages = 40;
  constexpr double kInterval = 4000;  // ns
  Flow x1(from), x2(from), y1(to), y2(to);
  x1.connect(y1.qp.qpn(), to.hca);
  x2.connect(y2.qp.qpn(), to.hca);
  y1.connect(x1.qp.qpn(), from.hca);
  y2.connect(x2.qp.qpn(), from.hca);
  from.fix_rate(20000);
  from.function.inject("ecn=1");
  to.statistics(true);
  const std::int64_t begin = machine().now();
  for (std::uint32_t i = 0; i < kMessages; ++i)
    for (Flow* x : {&x1, &x2}) x->post(WqeOp::kRdmaWrite, to, kLen);
  for (Flow* x : {&x1, &x2}) EXPECT_EQ(x->cq.wait(kMessages).size(), kMessages);
  const double intervals = static_cast<double>(machine().now() - begin) / kInterval;
  from.function.inject("none");
  return static_cast<double>(to.statistics().get<Out::np_cnp_sent_low>()) / intervals;
}

TEST_F(CcRoce, TheIntervalOfCnpsIsThePortsUnlessEachFlowHasItsOwn) {
  const double of_port = cnps_of_two_flows(a, b);
  EXPECT_LE(of_port, 1.05);
  EXPECT_GE(of_port, 0.7);
  Host e(4), f(5);
  const double of_flows = cnps_of_two_flows(e, f);
  EXPECT_LE(of_flows, 2.1);
  EXPECT_GE(of_flows, 1.4);
}

TEST_F(CcRoce, OffIsOff) {
  using Out = prm::query_cong_statistics_out;
  Flow x(a), y(b);
  x.connect(y.qp.qpn(), 1);
  y.connect(x.qp.qpn(), 0);
  a.function.inject("ecn=1");
  ASSERT_TRUE(b.enable(kNotificationPoint, false).ok());
  EXPECT_GT(rate(x, b), 50000);
  EXPECT_GT(b.statistics().get<Out::np_ecn_marked_roce_packets_low>(), 100u);
  EXPECT_EQ(b.statistics().get<Out::np_cnp_sent_low>(), 0u);
  ASSERT_TRUE(b.enable(kNotificationPoint, true).ok());
  ASSERT_TRUE(a.enable(kReactionPoint, false).ok());
  b.statistics(true);
  EXPECT_GT(rate(x, b), 50000);
  EXPECT_EQ(b.statistics().get<Out::np_ecn_marked_roce_packets_low>(), 0u) << "not sent as capable of it";
}

TEST_F(CcRoce, TwoFlowsShareALinkThatMarks) {
  Flow x1(a), y1(b), x2(a), y2(b);
  x1.connect(y1.qp.qpn(), 1);
  y1.connect(x1.qp.qpn(), 0);
  x2.connect(y2.qp.qpn(), 1);
  y2.connect(x2.qp.qpn(), 0);
  a.function.inject("ecn_kmin=20000,ecn_kmax=200000,ecn_pmax=0.05");
  constexpr std::uint32_t kLen = 65536;
  std::uint64_t done[2] = {};
  Flow* flows[] = {&x1, &x2};
  for (Flow* f : flows)
    for (int i = 0; i < 4; ++i) f->post(WqeOp::kRdmaWrite, b, kLen);
  const std::int64_t end = machine().now() + 20'000'000, half = machine().now() + 5'000'000;
  while (machine().now() < end) {
    machine().advance(1000);
    for (int i = 0; i < 2; ++i) {
      while (const auto c = flows[i]->cq.poll()) {
        ASSERT_FALSE(c->error()) << c->text();
        if (machine().now() > half) ++done[i];
        flows[i]->post(WqeOp::kRdmaWrite, b, kLen);
      }
    }
  }
  for (Flow* f : flows) f->cq.wait(4);
  const double sum = static_cast<double>(done[0] + done[1]);
  EXPECT_NEAR(static_cast<double>(done[0]) / sum, 0.5, 0.15);
  EXPECT_GT(sum * kLen * 8 / 15e6, 40.0) << "Gb/s";
  EXPECT_GT(b.function.counter("cnp_sent"), 10u);
}

TEST(PauseRoce, ASlowReceiverPausesItsSenderAndNothingIsLost) {
  Host a(2), b(3);
  Flow x(a), y(b);
  x.connect(y.qp.qpn(), 3);
  y.connect(x.qp.qpn(), 2);
  for (std::size_t i = 0; i < kMemory; ++i) a.memory.data()[i] = static_cast<std::uint8_t>(i * 7 + (i >> 8));
  constexpr std::uint32_t kLen = 1 << 18;
  const auto run = [&] {
    const std::int64_t begin = machine().now();
    for (int i = 0; i < 8; ++i) x.post(WqeOp::kRdmaWrite, b, kLen);
    for (const Completion& c : x.cq.wait(8)) EXPECT_FALSE(c.error()) << c.text();
    return machine().now() - begin;
  };
  a.pause(false, false);
  b.pause(false, false);
  const std::int64_t unpaused = run();
  EXPECT_EQ(b.function.counter("pause_sent"), 0u);
  a.pause(true, false);
  b.pause(false, true);
  const std::int64_t paused = run();
  const std::uint64_t sent = b.function.counter("pause_sent");
  EXPECT_GT(sent, 2u);
  EXPECT_EQ(a.function.counter("pause_received"), sent);
  // One lane takes 8 GT/s, 128/130, a tenth for the link, 24 bytes for each TLP of 256. Without pauses what
  // is not acknowledged waits in the receiver's port, whose buffer has no end here; with, at the sender.
  const double lane_ns = 8.0 * kLen * 8 / (7.877 * 0.9) * (1 + 24 / 256.0);
  EXPECT_NEAR(static_cast<double>(unpaused), lane_ns, 0.1 * lane_ns);
  EXPECT_NEAR(static_cast<double>(paused), lane_ns, 0.1 * lane_ns) << "never idle for long";
  EXPECT_EQ(std::memcmp(a.memory.data(), b.memory.data(), kLen), 0);
  EXPECT_EQ(a.function.counter("retransmits"), 0u);
  // The register counts them.
  std::vector<std::uint8_t> r(prm::ppcnt_reg::bytes);
  prm::set<prm::ppcnt_reg::local_port>(r.data(), 1);
  const auto out = a.device.access_register(kPpcnt, false, r).must();
  using G = prm::ppcnt_reg::counter_set::eth_802_3_cntrs_grp_data_layout;
  const std::uint8_t* data = out.out.data() + prm::access_register_out::bytes;
  EXPECT_EQ(prm::get<G::a_pause_mac_ctrl_frames_received_low>(data), sent);
  // Of all traffic: the driver has them from priority 0.
  using Priority = prm::ppcnt_reg::counter_set::eth_per_prio_grp_data_layout;
  constexpr std::uint32_t kPerPriority = 0x10;
  prm::set<prm::ppcnt_reg::grp>(r.data(), kPerPriority);
  const auto of = [&](Host& host, auto low) {
    const auto answer = host.device.access_register(kPpcnt, false, r).must();
    return std::uint64_t{prm::get<decltype(low)>(answer.out.data() + prm::access_register_out::bytes)};
  };
  EXPECT_EQ(of(a, Priority::rx_pause_low{}), sent);
  EXPECT_EQ(of(b, Priority::tx_pause_low{}), sent);
  const std::uint64_t stopped_us = of(a, Priority::rx_pause_duration_low{});
  EXPECT_GT(stopped_us, static_cast<std::uint64_t>(paused) / 2000);
  EXPECT_LE(stopped_us, static_cast<std::uint64_t>(paused) / 1000);
  EXPECT_NEAR(static_cast<double>(of(b, Priority::tx_pause_duration_low{})), static_cast<double>(stopped_us),
              0.1 * static_cast<double>(stopped_us));
  EXPECT_GE(of(a, Priority::rx_pause_transition_low{}), 1u);
  EXPECT_LE(of(a, Priority::rx_pause_transition_low{}), sent / 2);
}

TEST(PauseRoce, APriorityOfADscpStopsItsQpsAlone) {
  Host a(2), b(3);
  a.pause_dscp(26, 3, true, false);
  b.pause_dscp(26, 3, false, true);
  Flow x(a), y(b), own(a);
  x.connect(y.qp.qpn(), 3, 26);
  y.connect(x.qp.qpn(), 2, 26);
  own.connect(own.qp.qpn(), 2);
  constexpr std::uint32_t kLen = 1 << 18;
  const auto bytes_in = [](const Host& h) { return h.function.counter("rx_bytes"); };
  for (int i = 0; i < 8; ++i) x.post(WqeOp::kRdmaWrite, b, kLen);
  for (int i = 0; i < 1000 && a.function.counter("pause_received") == 0; ++i) machine().advance(1000);
  const std::uint64_t at_first = bytes_in(b);
  for (int i = 0; i < 8; ++i) own.post(WqeOp::kRdmaWrite, a, kLen);
  for (const Completion& c : own.cq.wait(8)) EXPECT_FALSE(c.error()) << c.text();
  EXPECT_LT(bytes_in(b) - at_first, kLen) << "what is of another priority went at its own pace";
  for (const Completion& c : x.cq.wait(8)) EXPECT_FALSE(c.error()) << c.text();
  EXPECT_GT(b.function.counter("pause_sent"), 2u);
}

}  // namespace
}  // namespace hcasim::bare
