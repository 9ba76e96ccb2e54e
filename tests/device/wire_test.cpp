// SPDX-License-Identifier: BSD-3-Clause
// Joined HCAs: by a cable in one machine, by a socket, and with the host's network.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>

#include "../files.h"
#include "prm/access_registers.h"
#include "prm/transport_caps.h"
#include "rule_check.h"
#include "wire_fixture.h"

namespace hcasim::bare {

namespace {

// Sockets of this process, removed at its end.
std::string in_folder(const char* name) {
  static const test::Folder folder;
  return folder / name;
}

DeviceOptions no_wait() {
  DeviceOptions o;
  o.wait_active = false;
  return o;
}

}  // namespace

std::string alone_path() { return in_folder("alone"); }

Machine& wired_machine() {
  static Machine* m = [] {
    auto* made = new Machine(std::size_t{512} << 20);
    made->echo_log = std::getenv("HCASIM_TEST_LOG") != nullptr;
    // recorded-run wants a recording, which the first begins, and a trace of all.
    const char* const given = std::getenv("HCASIM_TEST_OPTIONS");
    std::string more = given ? std::string(",") + given : "";
    const auto add = [&](const std::string& options) {
      made->add_hca(options + more);
      more.erase(0, more.find(",trace="));
    };
    add("link=ib,name=cable-a,cable=cable-b");
    add("link=ib,name=cable-b");
    add("link=ib,name=socket-a,node_guid=0002c90300000020,wire=" + test::wire_scheme() + in_folder("s"));
    add("link=ib,name=socket-b,node_guid=0002c90300000010,lid=7,wire=" + test::wire_scheme() +
        in_folder("s"));
    add("link=ib,name=alone,node_guid=0002c90300000030,wire=unix:" + alone_path());
    add("link=eth,name=host,mac=02:00:00:00:00:01,wire=host");
    add("link=eth,name=eth-a,mac=02:00:00:00:00:02,wire=" + test::wire_scheme() + in_folder("e"));
    add("link=eth,name=eth-b,mac=02:00:00:00:00:03,wire=" + test::wire_scheme() + in_folder("e"));
    add("link=ib,name=managed-a,sm=off,cable=managed-b");
    add("link=ib,name=managed-b,sm=off");
    add("link=eth,name=speed-a,mac=02:00:00:00:00:04,cable=speed-b");
    add("link=eth,name=speed-b,mac=02:00:00:00:00:05");
    add("link=eth,name=extended-a,mac=02:00:00:00:00:06,profile=connectx6-hdr200,cable=extended-b");
    add("link=eth,name=extended-b,mac=02:00:00:00:00:07,profile=connectx6-hdr200");
    for (const char* const generation : {"connectx7", "connectx5"}) {
      const std::string profile = in_folder(generation) + ".toml";
      std::ofstream(profile) << "name = \"ndr\"\ngeneration = \"" << generation
                             << "\"\n[port]\nib_link_speed = 128\n";
      add(std::string("link=ib,name=") + generation + ",profile=" + profile);
    }
    if (std::getenv("HCASIM_BARE") == nullptr) {  // a server of vfio-user shows no virtual functions
      add("link=ib,name=virtual-a,vfs=1,cable=virtual-b");
      add("link=ib,name=virtual-b,vfs=1");
    }
    made->start();
    return made;
  }();
  return *m;
}

End::End(std::size_t hca, const QpOptions& qp_options, std::size_t bytes)
    : function(wired_machine().function(hca)),
      device(function, no_wait()),
      probed_((function.reset(), device.probe(), true)),
      pd(device),
      cq(device,
         [] {
           CqOptions o;
           o.log_size = 10;
           return o;
         }()),
      qp(device, pd, cq, cq, qp_options),
      memory(device.memory().allocate(bytes)),
      mr(device, Mr::of(pd, memory, kAllAccess, 12, 0, 0, 0)) {}

namespace {

// The path to a device, in the attributes of a QP or in an address vector.
template <class T>
void aim(T& t, const Device& to) {
  if (to.ethernet()) {
    t.roce.dgid = to.roce_entry(to.sgid_index()).gid;
    t.roce.dmac = to.mac();
  } else {
    t.dlid = to.lid();
  }
}

}  // namespace

void connect(End& a, End& b, QpAttr attr) {
  QpAttr back = attr;
  attr.remote_qpn = b.qp.qpn();
  aim(attr, b.device);
  back.remote_qpn = a.qp.qpn();
  aim(back, a.device);
  a.qp.connect(attr);
  b.qp.connect(back);
}

bool reaches(Device& device, unsigned state) {
  return wired_machine().wait_real([&] { return device.port_state() == state; });
}

void fill_random(End& end, unsigned seed) {
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < end.memory.size(); ++i) {
    end.memory.data()[i] = static_cast<std::uint8_t>(random());
  }
}

namespace {

struct Joined {
  std::size_t a, b;
  std::uint16_t lid_a, lid_b;
  const char* name;
};

// The same name for the test at each run.
std::ostream& operator<<(std::ostream& out, const Joined& j) { return out << j.name; }

class WireTest : public ::testing::TestWithParam<Joined> {
 protected:
  static void up(End& a, End& b) {
    ASSERT_TRUE(reaches(a.device, kActive));
    ASSERT_TRUE(reaches(b.device, kActive));
  }
  // Waits in real time too: what is under way may lie in a socket.
  static std::vector<Completion> take(Cq& cq, std::size_t n) {
    std::vector<Completion> got;
    wired_machine().wait_real([&] {
      while (auto c = cq.poll()) got.push_back(*c);
      return got.size() >= n;
    });
    return got;
  }
  static SendWr write(End& a, End& b, std::uint32_t len) {
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {a.sge(0, len)};
    w.raddr = b.mr.start();
    w.rkey = b.mr.key();
    return w;
  }
  static QpOptions ud() {
    QpOptions o;
    o.type = QpType::kUd;
    return o;
  }
};

class IbWireTest : public WireTest {};

TEST_P(IbWireTest, ThePortsAgreeOnLids) {
  End a(GetParam().a), b(GetParam().b);
  up(a, b);
  EXPECT_EQ(a.device.lid(), GetParam().lid_a);
  EXPECT_EQ(b.device.lid(), GetParam().lid_b);
}

TEST_P(WireTest, AllRcOperationsBothWays) {
  End x(GetParam().a), y(GetParam().b);
  up(x, y);
  connect(x, y);
  unsigned seed = 1;
  for (const auto& [from, to] : {std::pair<End*, End*>{&x, &y}, {&y, &x}}) {
    End &a = *from, &b = *to;
    fill_random(a, seed++);
    fill_random(b, seed++);
    const std::uint32_t len = 300'001;
    SendWr w = write(a, b, len);
    a.qp.post(w);
    w.op = WqeOp::kRdmaRead;
    w.sges = {a.sge(400'000, len)};
    w.raddr = b.mr.start() + 400'000;
    a.qp.post(w);
    b.qp.post_recv({b.sge(800'000, 5000)});
    w.op = WqeOp::kSend;
    w.sges = {a.sge(800'000, 5000)};
    a.qp.post(w);
    w.op = WqeOp::kAtomicFa;
    w.sges = {a.sge(900'000, 8)};
    w.raddr = b.mr.start() + 900'000;
    w.swap_add = 5;
    a.qp.post(w);
    const std::vector<std::uint8_t> counter(b.memory.data() + 900'000, b.memory.data() + 900'008);
    const auto got = take(a.cq, 4);
    ASSERT_EQ(got.size(), 4u);
    for (const Completion& c : got) EXPECT_FALSE(c.error()) << c.text();
    ASSERT_EQ(take(b.cq, 1).size(), 1u);
    EXPECT_EQ(std::memcmp(a.memory.data(), b.memory.data(), len), 0);
    EXPECT_EQ(std::memcmp(a.memory.data() + 400'000, b.memory.data() + 400'000, len), 0);
    EXPECT_EQ(std::memcmp(a.memory.data() + 800'000, b.memory.data() + 800'000, 5000), 0);
    EXPECT_NE(std::memcmp(counter.data(), b.memory.data() + 900'000, 8), 0);
  }
  EXPECT_EQ(x.function.counter("retransmits") + y.function.counter("retransmits"), 0u);
  EXPECT_EQ(x.function.counter("rx_errors") + y.function.counter("rx_errors"), 0u);
}

TEST_P(WireTest, Datagrams) {
  End a(GetParam().a, ud()), b(GetParam().b, ud());
  up(a, b);
  for (End* e : {&a, &b}) e->qp.connect(QpAttr{});
  fill_random(a, 3);
  b.qp.post_recv({b.sge(0, 4096)});
  SendWr w;
  w.sges = {a.sge(40, 2000)};
  w.av.qpn = b.qp.qpn();
  aim(w.av, b.device);
  a.qp.post(w);
  const auto got = take(b.cq, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].byte_cnt, 2040u);
  if (!a.device.ethernet()) {
    EXPECT_EQ(got[0].slid, a.device.lid());
  }
  EXPECT_EQ(std::memcmp(a.memory.data() + 40, b.memory.data() + 40, 2000), 0);
  // To an address that neither has: it leaves, and nobody takes it.
  const auto before = b.function.counter("rx_packets");
  w.av.dlid = 0x77;
  w.av.roce.dmac[5] ^= 0x40;
  a.qp.post(w);
  EXPECT_TRUE(wired_machine().wait_real([&] { return b.function.counter("rx_packets") == before + 1; }));
  EXPECT_FALSE(b.cq.ready());
}

// RoCE packets with a wrong ICRC (PPCNT, as mlx5_ib reads rx_icrc_encapsulated).
std::uint64_t icrc_errors(Device& device) {
  constexpr std::uint32_t kExtended = 5;  // group of counters
  using G = prm::ppcnt_reg::counter_set::eth_extended_cntrs_grp_data_layout;
  std::vector<std::uint8_t> r(prm::ppcnt_reg::bytes);
  prm::set<prm::ppcnt_reg::local_port>(r.data(), 1);
  prm::set<prm::ppcnt_reg::grp>(r.data(), kExtended);
  const auto out = device.access_register(prm::reg::kPpcnt, false, r).must();
  return prm::get<G::rx_icrc_encapsulated_low>(out.out.data() + prm::access_register_out::bytes);
}

TEST_P(WireTest, ALossyWireLosesNoData) {
  End a(GetParam().a), b(GetParam().b);
  up(a, b);
  QpAttr attr;
  attr.mtu = 1024;
  attr.ack_timeout = 8;
  connect(a, b, attr);
  const auto errors = b.function.counter("rx_errors") + b.function.counter("rx_dropped");
  for (const char* fault : {"drop=0.02", "duplicate=0.02", "reorder=0.02", "corrupt=0.02"}) {
    fill_random(a, 5);
    fill_random(b, 6);
    ASSERT_EQ(a.function.inject(fault), "");
    ASSERT_EQ(b.function.inject(fault), "");
    a.qp.post(write(a, b, 600'000));
    const auto got = take(a.cq, 1);
    ASSERT_EQ(got.size(), 1u) << fault;
    EXPECT_FALSE(got[0].error()) << fault << got[0].text();
    EXPECT_EQ(std::memcmp(a.memory.data(), b.memory.data(), 600'000), 0) << fault;
    a.function.inject("none");
    b.function.inject("none");
  }
  EXPECT_GT(b.function.counter("rx_errors") + b.function.counter("rx_dropped"), errors);
  if (b.device.ethernet()) {
    EXPECT_GT(icrc_errors(b.device), 0u);
  }
}

TEST_P(WireTest, ACableThatIsPulledTakesBothPortsDown) {
  End a(GetParam().a), b(GetParam().b);
  up(a, b);
  connect(a, b);
  b.function.inject("link=down");
  EXPECT_TRUE(reaches(a.device, kDown));
  EXPECT_TRUE(reaches(b.device, kDown));
  b.function.inject("link=up");
  up(a, b);
  a.qp.post(write(a, b, 4096));
  const auto got = take(a.cq, 1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_FALSE(got[0].error()) << got[0].text();
}

// PAOS: what a driver does on its way down.
TEST_P(IbWireTest, APortTakenDownByItsDriverTakesTheOtherDown) {
  End a(GetParam().a), b(GetParam().b);
  up(a, b);
  std::vector<std::uint8_t> paos(16);
  paos[1] = 1;  // local port
  paos[2] = 2;  // down
  prm::set<prm::paos_reg::ase>(paos.data(), 1);
  EXPECT_TRUE(a.device.access_register(0x5006, true, paos).ok());
  EXPECT_TRUE(reaches(b.device, kDown));
  paos[2] = 1;
  EXPECT_TRUE(a.device.access_register(0x5006, true, paos).ok());
  up(a, b);
}

INSTANTIATE_TEST_SUITE_P(Wires, WireTest,
                         ::testing::Values(Joined{kCableA, kCableB, 1, 2, "cable"},
                                           Joined{kSocketA, kSocketB, 8, 7, "socket"},
                                           Joined{kEthA, kEthB, 0, 0, "roce"}),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Wires, IbWireTest,
                         ::testing::Values(Joined{kCableA, kCableB, 1, 2, "cable"},
                                           Joined{kSocketA, kSocketB, 8, 7, "socket"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(HostWireTest, TheUdpSourcePortOfAConnectedQp) {
  breaks({"qp-optional-mask"});
  for (const QpType type : {QpType::kRc, QpType::kUc}) {
    QpOptions o;
    o.type = type;
    End e(kHost, o, 4096);
    wired_machine().advance(1000);
    QpAttr attr;
    attr.remote_qpn = 0x77;
    attr.roce.dmac = {2, 0, 0, 0, 0, 9};
    attr.roce.dgid = e.device.roce_entry(e.device.sgid_index()).gid;
    attr.roce.udp_sport = 0xc123;
    e.qp.connect(attr);
    const auto port_of_a_frame = [&] {
      e.function.take_frames();
      SendWr w;
      w.op = WqeOp::kRdmaWrite;
      w.sges = {e.sge(0, 8)};
      w.signaled = false;
      e.qp.post(w);
      wired_machine().advance(100'000);
      const auto frames = e.function.take_frames();
      if (frames.empty() || frames[0].size() < 60) return 0;
      return frames[0][34] << 8 | frames[0][35];  // MACs and type, IPv4
    };
    EXPECT_EQ(port_of_a_frame(), 0xc123);
    Mailbox in(prm::op::RTS2RTS_QP, prm::qp_ext::bytes);
    in.set<prm::rts2rts_qp_in::qpn>(e.qp.qpn());
    in.set<prm::qp_ext::opt_param_mask_95_32>(prm::kOptUdpSport);
    in.set<prm::rts2rts_qp_in::qpc::primary_address_path::udp_sport>(55555);
    EXPECT_TRUE(e.device.exec(in).ok());
    EXPECT_EQ(port_of_a_frame(), 55555);
    using Path = prm::query_qp_out::qpc::primary_address_path;
    EXPECT_EQ(e.qp.query().must().get<Path::udp_sport>(), 55555u);
    EXPECT_EQ(e.qp.query().must().get<Path::hop_limit>(), attr.roce.hop_limit)
        << "the rest of the path stays";
    in.set<prm::qp_ext::opt_param_mask_95_32>(prm::kOptUdpSport << 1);
    EXPECT_EQ(e.device.exec(in).status, prm::CmdStatus::kBadParam);
  }
  QpOptions ud;  // whose packets have the port of their address vector
  ud.type = QpType::kUd;
  End e(kHost, ud, 4096);
  e.qp.connect({});
  Mailbox in(prm::op::RTS2RTS_QP, prm::qp_ext::bytes);
  in.set<prm::rts2rts_qp_in::qpn>(e.qp.qpn());
  in.set<prm::qp_ext::opt_param_mask_95_32>(prm::kOptUdpSport);
  EXPECT_EQ(e.device.exec(in).status, prm::CmdStatus::kBadParam);
}

TEST(HostWireTest, FramesAreCountedAndTheCarrierFollowed) {
  DeviceOptions options;
  options.wait_active = false;
  Function& f = wired_machine().function(kHost);
  f.reset();
  Device device(f, options);
  device.probe();
  const auto before = f.counter("rx_packets");
  std::vector<std::uint8_t> frame(60);
  frame[0] = frame[5] = 2;
  EXPECT_TRUE(f.wire_receive(frame));
  wired_machine().advance(1000);
  EXPECT_EQ(f.counter("rx_packets"), before + 1);
  EXPECT_FALSE(f.wire_receive(std::vector<std::uint8_t>(20000))) << "longer than any frame";
  EXPECT_FALSE(f.wire_receive({}));
  EXPECT_TRUE(f.wire_receive({1, 2, 3})) << "a runt, dropped by the port";
  std::uint8_t mac[6];
  hca_get_mac(f.handle(), mac);
  EXPECT_EQ(mac[0], 2);
  EXPECT_EQ(mac[5], 1);
  EXPECT_NE(hca_wire_room(f.handle()), 0);
  f.set_carrier(false);
  wired_machine().advance(1000);
  f.set_carrier(true);
  wired_machine().advance(1000);
}

// The host says it has enough: what is sent then goes out at the pace of its looks, and nothing is lost.
TEST(HostWireTest, ABusyHostSlowsThePort) {
  QpOptions ud;
  ud.type = QpType::kUd;
  ud.log_sq = 9;
  End e(kHost, ud);
  ASSERT_TRUE(reaches(e.device, kActive));
  e.qp.connect(QpAttr{});
  SendWr w;
  w.sges = {e.sge(0, 8)};
  w.av.qpn = 77;
  aim(w.av, e.device);
  w.av.roce.dmac = {2, 0, 0, 0, 0, 9};
  auto time_of = [&](unsigned n) {
    const std::int64_t start = wired_machine().now();
    e.function.take_frames();
    for (unsigned i = 0; i < n; ++i) e.qp.post(w);
    std::size_t left = 0;
    EXPECT_TRUE(wired_machine().run_until([&] {
      for (const auto& f : e.function.take_frames()) {
        EXPECT_GE(f.size(), 60u);
        EXPECT_EQ(f[5], 9);
        ++left;
      }
      return left == n;
    }));
    wired_machine().advance(1'000'000);
    while (e.cq.poll()) {
    }
    return wired_machine().now() - start;
  };
  time_of(1);  // caches warm
  const auto fast = time_of(60);
  e.function.set_wire_busy(true);
  const auto slow = time_of(60);
  e.function.set_wire_busy(false);
  EXPECT_GT(slow, fast + 50'000);
}

TEST(CableTest, RefusesWhatCannotBeJoined) {
  char err[300] = "";
  Machine& m = wired_machine();
  auto join = [&](std::size_t a, std::size_t b) {
    return hca_cable(m.function(a).handle(), m.function(b).handle(), err, sizeof err);
  };
  EXPECT_EQ(join(kCableA, kCableA), -1);
  EXPECT_THAT(err, ::testing::HasSubstr("are the same HCA"));
  EXPECT_EQ(join(kCableA, kAlone), -1);
  EXPECT_THAT(err, ::testing::HasSubstr("has a cable already"));
  EXPECT_EQ(hca_cable(m.function(0).handle(), nullptr, err, sizeof err), -1);
}

}  // namespace
}  // namespace hcasim::bare
