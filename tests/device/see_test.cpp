// SPDX-License-Identifier: BSD-3-Clause
// What can be seen of real runs: captures of the wire, dissected by others; exports; traces that are started,
// stopped, filtered and kept in a ring while the machine runs. One machine a process, so each test is a
// process of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>

#include "../files.h"
#include "../traces/perfetto_view.h"
#include "rule_check.h"
#include "traces/story.h"
#include "traces/timeline.h"
#include "two_qps.h"

namespace hcasim::bare {
namespace {

using ::testing::HasSubstr;
using traces::Point;

struct TempFile {
  TempFile() { close(mkstemp(path)); }
  ~TempFile() { unlink(path); }
  char path[32] = "/tmp/hcasim-see-XXXXXX";
};

// Traffic of all kinds.
struct World : TwoQps {
  using TwoQps::TwoQps;
  void one(WqeOp op, std::uint32_t len) {
    a->post(wr(op, len));
    const Completion c = cq.wait_one();
    EXPECT_FALSE(c.error()) << c.text();
  }
  void all_kinds() {
    one(WqeOp::kRdmaWrite, 10001);
    for (int i = 0; i < 3; ++i) b->post_recv({{mr.start() + 16384, mr.key(), 8192}});
    one(WqeOp::kSend, 5003);
    one(WqeOp::kSendImm, 1);
    one(WqeOp::kRdmaRead, 9000);
    one(WqeOp::kAtomicFa, 8);
  }
};

class See : public ::testing::Test {
 protected:
  // A probed HCA.
  Device& start(const std::string& options) {
    machine_ = std::make_unique<Machine>(std::size_t{64} << 20);
    function_ = &machine_->add_hca(options);
    machine_->start();
    device_ = std::make_unique<Device>(*function_);
    device_->probe();
    return *device_;
  }
  void stop() { hca_destroy(function_->handle()); }
  // "" or what is said against it.
  std::string set(const char* key, const std::string& value) {
    char err[512] = "";
    const int status = hca_set_trace(function_->handle(), key, value.c_str(), err, sizeof err);
    EXPECT_EQ(status == 0, err[0] == '\0');
    return err;
  }

  static std::vector<traces::Record> records(const std::string& path, traces::Timeline* timeline = nullptr) {
    traces::Reader reader;
    std::string err;
    EXPECT_TRUE(reader.open(path, &err)) << err;
    std::vector<traces::Record> v;
    traces::Record r;
    std::vector<std::uint8_t> blob;
    while (reader.next(r, blob)) {
      v.push_back(r);
      if (timeline) timeline->add(r, blob);
    }
    EXPECT_EQ(reader.warning(), "");
    if (timeline) timeline->finish();
    return v;
  }

  std::unique_ptr<Machine> machine_;
  Function* function_ = nullptr;
  std::unique_ptr<Device> device_;
  TempFile capture_, trace_;
};

struct Captured {
  std::uint64_t ns = 0;
  unsigned interface = 0, direction = 0;  // 1: in, 2: out
  std::vector<std::uint8_t> bytes;
  std::string comment;
};

std::uint32_t u32(const std::string& s, std::size_t at) {
  std::uint32_t v = 0;
  for (unsigned i = 0; i < 4; ++i)
    v |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(s.at(at + i))) << 8 * i;
  return v;
}
std::uint32_t u16(const std::string& s, std::size_t at) { return u32(s, at) & 0xffff; }

// A pcapng file with so many interfaces of that link type.
std::vector<Captured> read_capture(const std::string& path, unsigned link, unsigned ports = 1) {
  const std::string s = test::bytes_of(path);
  std::vector<Captured> v;
  unsigned interfaces = 0;
  for (std::size_t at = 0; at + 12 <= s.size();) {
    const std::uint32_t type = u32(s, at), size = u32(s, at + 4);
    EXPECT_EQ(u32(s, at + size - 4), size);
    std::size_t options = at + 16;  // of an interface
    Captured c;
    if (type == 1) {
      interfaces++;
      EXPECT_EQ(u16(s, at + 8), link);
    } else if (type == 6) {
      c.interface = u32(s, at + 8);
      c.ns = static_cast<std::uint64_t>(u32(s, at + 12)) << 32 | u32(s, at + 16);
      const std::uint32_t len = u32(s, at + 20);
      c.bytes.assign(s.begin() + static_cast<long>(at) + 28, s.begin() + static_cast<long>(at + 28 + len));
      options = at + 28 + ((len + 3) & ~3u);
    }
    for (; (type == 1 || type == 6) && u16(s, options) != 0;
         options += 4 + ((u16(s, options + 2) + 3) & ~3u)) {
      const std::string value = s.substr(options + 4, u16(s, options + 2));
      if (type == 1 && u16(s, options) == 9) {
        EXPECT_EQ(value, "\x09") << "time stamps in nanoseconds";
      }
      if (type == 6 && u16(s, options) == 2) c.direction = u32(value, 0);
      if (type == 6 && u16(s, options) == 1) c.comment = value;
    }
    if (type == 6) v.push_back(std::move(c));
    at += size;
  }
  EXPECT_EQ(interfaces, ports);
  return v;
}

bool have_tshark() { return std::system("command -v tshark > /dev/null 2>&1") == 0; }

// Python's check of all lengths and CRCs, and, where it is installed, tshark's of what is malformed.
void expect_clean(const std::string& path, const std::string& wanted) {
  const test::Ran ran = test::run(std::string("python3 " CHECK_CAPTURE) +
                                  (have_tshark() ? "" : " --no-tshark") + wanted + " " + path);
  EXPECT_EQ(ran.status, 0) << ran.text;
}

// What tshark makes of the BTHs, beside what the trace has of the same packets.
void expect_dissected(const std::string& path, const std::vector<traces::Record>& records) {
  std::vector<std::string> want;
  std::vector<traces::Record> packets;
  for (const traces::Record& r : records)
    if (r.p() == Point::kPacketOut || r.p() == Point::kPacketIn) packets.push_back(r);
  // The capture tells of a packet when its last bit is out, the trace when its first one is.
  const auto last_bit = [](const traces::Record& r) {
    return r.time_ps + (r.p() == Point::kPacketOut ? static_cast<std::int64_t>(r.a1 & 0xffffffff) : 0);
  };
  std::stable_sort(packets.begin(), packets.end(),
                   [&](const auto& x, const auto& y) { return last_bit(x) < last_bit(y); });
  for (const traces::Record& r : packets) {
    char line[100];
    const long long ns = last_bit(r) / 1000;
    std::snprintf(line, sizeof line, "%u %u %s %lld.%09lld", static_cast<unsigned>(r.a0 >> 24 & 0xff),
                  static_cast<unsigned>(r.a0 & 0xffffff),
                  r.p() == Point::kPacketOut ? "0x00000002" : "0x00000001", ns / 1000000000, ns % 1000000000);
    want.emplace_back(line);
  }
  std::istringstream out(
      test::run("tshark -n -r " + path +
                " -T fields -E separator=' ' -e infiniband.bth.opcode -e infiniband.bth.psn "
                "-e frame.packet_flags_direction -e frame.time_epoch")
          .text);
  std::vector<std::string> got;
  for (std::string line; std::getline(out, line);)
    if (line.rfind("Running as user", 0) != 0) got.push_back(line);
  EXPECT_EQ(got, want);
}

traces::View perfetto_of(const traces::Timeline& t) {
  const TempFile file;
  std::FILE* out = std::fopen(file.path, "wb");
  EXPECT_TRUE(write_perfetto_proto(t, nullptr, 0, out));
  std::fclose(out);
  return traces::View(test::bytes_of(file.path));
}

TEST_F(See, RoceIsCapturedAsItLeavesAndEnters) {
  World w(
      start(std::string("link=eth,trace_filter=detail,trace=") + trace_.path + ",capture=" + capture_.path));
  const std::uint64_t before = function_->counter("tx_packets");
  w.all_kinds();
  machine_->advance(100'000);
  EXPECT_GT(function_->counter("tx_packets"), before + 10);
  const std::uint64_t sent = function_->counter("tx_packets"), came = function_->counter("rx_packets");
  stop();
  const auto all = read_capture(capture_.path, 1);
  std::uint64_t out = 0, in = 0, last = 0;
  std::vector<const Captured*> under_way;
  for (const Captured& c : all) {
    EXPECT_GE(c.ns, last) << "sorted by time";
    last = c.ns;
    EXPECT_EQ(c.comment, "");
    ASSERT_TRUE(c.direction == 1 || c.direction == 2);
    if (c.direction == 2) {
      out++;
      under_way.push_back(&c);
      continue;
    }
    // What left comes in, byte by byte, and later.
    in++;
    ASSERT_FALSE(under_way.empty());
    EXPECT_EQ(c.bytes, under_way.front()->bytes);
    EXPECT_GT(c.ns, under_way.front()->ns);
    under_way.erase(under_way.begin());
  }
  EXPECT_EQ(out, sent);
  EXPECT_EQ(in, came);
  expect_clean(capture_.path, " --min roce-rc=30");
  ASSERT_TRUE(have_tshark()) << "tshark is not installed; ./hcasim test installs what the tests need";
  expect_dissected(capture_.path, records(trace_.path));
}

TEST_F(See, InfiniBandHasALinkTypeOfItsOwn) {
  World w(
      start(std::string("link=ib,trace_filter=detail,trace=") + trace_.path + ",capture=" + capture_.path));
  w.all_kinds();
  machine_->advance(100'000);
  stop();
  EXPECT_GT(read_capture(capture_.path, 197).size(), 29u);
  expect_clean(capture_.path, " --min ib-rc=30");
  ASSERT_TRUE(have_tshark()) << "tshark is not installed; ./hcasim test installs what the tests need";
  expect_dissected(capture_.path, records(trace_.path));
}

TEST_F(See, CapturesSayWhatWasBrokenOnPurpose) {
  World w(start(std::string("link=eth,capture=") + capture_.path));
  w.one(WqeOp::kRdmaWrite, 8);
  ASSERT_EQ(function_->inject("drop=1"), "");
  w.a->post(w.wr(WqeOp::kRdmaWrite, 8));
  machine_->advance(2'000);
  ASSERT_EQ(function_->inject("drop=0"), "");
  EXPECT_FALSE(w.cq.wait_one().error());
  ASSERT_EQ(function_->inject("corrupt=1"), "");
  w.a->post(w.wr(WqeOp::kRdmaWrite, 8));
  machine_->advance(2'000);
  ASSERT_EQ(function_->inject("none"), "");
  EXPECT_FALSE(w.cq.wait_one().error());
  stop();
  std::map<std::string, unsigned> comments;
  for (const Captured& c : read_capture(capture_.path, 1))
    if (c.direction == 2) comments[c.comment]++;
  EXPECT_EQ(comments["lost: fault injection"], 1u);
  EXPECT_EQ(comments["corrupted: fault injection"], 1u);
  EXPECT_GE(comments[""], 6u);
  // The corrupted one has a wrong CRC where it left and where it came in, and all others a right one.
  const std::string said =
      test::run("python3 " CHECK_CAPTURE " --no-tshark " + std::string(capture_.path)).text;
  EXPECT_THAT(said, HasSubstr("; 2 wrong"));
}

// A stream of random bytes from a client's port that tshark takes for another protocol's (48898 is AMS): what
// it would make of the payload is not the wire's fault. A wrong checksum in the same frame is.
TEST_F(See, CapturesAreJudgedByTheirHeadersAlone) {
  const auto capture_with = [this](std::uint8_t checksum) {
    std::vector<std::uint8_t> bytes = {0xd4, 0xc3, 0xb2, 0xa1, 2,    0,    4, 0, 0, 0, 0, 0,
                                       0,    0,    0,    0,    0xff, 0xff, 0, 0, 1, 0, 0, 0};
    const std::vector<std::uint8_t> frame = {2,    0,    0,    0,    0,    2,    2,        0,   0,  0, 0,
                                             1,    8,    0,  // Ethernet
                                             0x45, 0,    0,    48,   0,    0,    0x40,     0,   64, 6, 0x26,
                                             0xb4, 10,   9,    0,    1,    10,   9,        0,   2,  // IPv4
                                             0xbf, 0x02, 0x14, 0x51, 0,    0,    0,        1,   0,  0, 0,
                                             1,    0x50, 0x18, 1,    0,    0x7b, checksum, 0,   0,  // TCP
                                             0xa5, 0x17, 0xe2, 0x9b, 0x44, 0x5d, 0x80,     0x3c};
    bytes.insert(bytes.end(), {0, 0, 0, 0, 0, 0, 0, 0});
    for (int i = 0; i < 2; i++) bytes.insert(bytes.end(), {static_cast<std::uint8_t>(frame.size()), 0, 0, 0});
    bytes.insert(bytes.end(), frame.begin(), frame.end());
    std::FILE* out = std::fopen(capture_.path, "wb");
    EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), out), bytes.size());
    std::fclose(out);
    return test::run(std::string("python3 " CHECK_CAPTURE " --min tcp=1 ") + capture_.path);
  };
  const test::Ran right = capture_with(0x0d);
  EXPECT_EQ(right.status, 0) << right.text;
  const test::Ran wrong = capture_with(0x0c);
  EXPECT_NE(wrong.status, 0);
  EXPECT_THAT(wrong.text, HasSubstr("TCP CHECKSUM INCORRECT"));
}

TEST_F(See, CapturesAndTracesAreSetWhileItRuns) {
  TempFile second;
  World w(start("link=ib"));
  EXPECT_STREQ(hca_get_trace(function_->handle(), "file"), "");
  w.one(WqeOp::kRdmaWrite, 8);
  ASSERT_EQ(set("filter", "point=doorbell+cqe_written"), "");
  ASSERT_EQ(set("file", trace_.path), "");
  EXPECT_STREQ(hca_get_trace(function_->handle(), "file"), trace_.path);
  ASSERT_EQ(set("capture", capture_.path), "");
  w.one(WqeOp::kRdmaWrite, 8);
  ASSERT_EQ(set("flush", ""), "");
  EXPECT_EQ(read_capture(capture_.path, 197).size(), 4u) << "a write and its acknowledge, out and in";
  ASSERT_EQ(set("on", "off"), "");
  EXPECT_STREQ(hca_get_trace(function_->handle(), "on"), "off");
  w.one(WqeOp::kRdmaWrite, 8);
  ASSERT_EQ(set("capture", ""), "");
  ASSERT_EQ(set("on", "on"), "");
  w.one(WqeOp::kRdmaWrite, 8);
  ASSERT_EQ(set("file", second.path), "");  // the first is complete now, though the HCA lives
  ASSERT_EQ(set("filter", "all"), "");
  w.one(WqeOp::kRdmaWrite, 8);
  ASSERT_EQ(set("file", ""), "");
  w.one(WqeOp::kRdmaWrite, 8);

  unsigned doorbells = 0, cqes = 0, others = 0;
  for (const traces::Record& r : records(trace_.path))
    (r.p() == Point::kDoorbell ? doorbells : r.p() == Point::kCqeWritten ? cqes : others)++;
  EXPECT_EQ(doorbells, 2u);
  EXPECT_EQ(cqes, 2u);
  EXPECT_EQ(others, 0u);
  traces::Timeline t;
  records(second.path, &t);
  ASSERT_EQ(t.wqes.wqes().size(), 1u);
  EXPECT_EQ(t.wqes.wqes()[0].serial, 4u);
  // Two writes with their acknowledges, out and in.
  EXPECT_EQ(read_capture(capture_.path, 197).size(), 8u);

  EXPECT_THAT(set("on", "maybe"), HasSubstr("allowed: on, off"));
  EXPECT_THAT(set("filter", "point=none"), HasSubstr("no such point"));
  EXPECT_THAT(set("file", "/no/such/folder/x"), HasSubstr("/no/such/folder/x"));
  EXPECT_THAT(set("capture", "/no/such/folder/x"), HasSubstr("/no/such/folder/x"));
  EXPECT_THAT(set("ring", "-1"), HasSubstr("allowed: 0 to"));
  EXPECT_THAT(set("dump", ""), HasSubstr("no ring"));
  EXPECT_THAT(set("colour", "red"), HasSubstr("there are on, filter"));
  stop();
}

TEST_F(See, RingIsWrittenWhenARuleBreaks) {
  breaks({"uar-read"});
  const std::string dumped = std::string(trace_.path) + ".uar-read";
  World w(start(std::string("link=ib,trace_ring=1,trace=") + trace_.path));
  w.one(WqeOp::kRdmaWrite, 8);
  EXPECT_FALSE(std::filesystem::exists(dumped));
  for (int i = 0; i < 2; ++i) {  // the second one is counted only
    function_->read32(device_->uar_offset());
    w.one(WqeOp::kRdmaWrite, 8);
  }
  const auto all = records(dumped);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back().point, static_cast<std::uint16_t>(traces::Point::kRuleBroken));
  traces::Timeline t;
  records(dumped, &t);
  EXPECT_EQ(t.wqes.wqes().size(), 1u) << "what was before the first breach";
  std::filesystem::remove(dumped);
  stop();
  EXPECT_GT(records(trace_.path).size(), all.size());
}

TEST_F(See, RingHoldsTheLastOfALongRun) {
  TempFile dumped;
  World w(start(std::string("link=ib,trace_ring=1,trace=") + trace_.path));
  EXPECT_STREQ(hca_get_trace(function_->handle(), "ring"), "1");
  constexpr unsigned kMany = 64000, kBatch = 32;
  for (unsigned i = 0; i < kMany; i += kBatch) {
    for (unsigned k = 0; k < kBatch; ++k) w.a->post(w.wr(WqeOp::kRdmaWrite, 8), k + 1 == kBatch);
    ASSERT_EQ(w.cq.wait(kBatch).size(), kBatch);
  }
  ASSERT_EQ(set("dump", dumped.path), "");
  w.one(WqeOp::kRdmaWrite, 8);
  stop();
  for (const auto& [path, last] : {std::pair{dumped.path, kMany - 1}, std::pair{trace_.path, kMany}}) {
    traces::Timeline t;
    const auto all = records(path, &t);
    EXPECT_GT(all.size(), 10000u);
    EXPECT_LT(all.size(), 500000u) << "more than a MiB can hold";
    ASSERT_FALSE(t.wqes.wqes().empty());
    EXPECT_EQ(t.wqes.wqes().back().serial, last);
    EXPECT_GT(t.wqes.wqes().front().serial, 0u) << "what is oldest has gone";
    EXPECT_EQ(t.wqes.wqes().back().status, 0);
  }
}

TEST_F(See, TwoPortsOfACableShareACapture) {
  Machine machine(std::size_t{64} << 20);
  const std::string same = std::string(",capture=") + capture_.path + ",trace=" + trace_.path;
  Function& left = machine.add_hca("link=eth,name=left" + same);
  Function& right = machine.add_hca("link=eth,name=right,cable=left" + same);
  machine.start();
  DeviceOptions o;
  o.wait_active = false;
  Device a(left, o), b(right, o);
  a.probe();
  b.probe();
  ASSERT_TRUE(machine.run_until([&] { return a.port_state() == 4 && b.port_state() == 4; }, 10'000'000'000));
  Pd apd(a), bpd(b);
  Cq acq(a), bcq(b);
  Qp aqp(a, apd, acq, acq), bqp(b, bpd, bcq, bcq);
  const Buffer amem = a.memory().allocate(1 << 16), bmem = b.memory().allocate(1 << 16);
  Mr amr(a, Mr::of(apd, amem, kAllAccess)), bmr(b, Mr::of(bpd, bmem, kAllAccess));
  QpAttr there, back;
  there.remote_qpn = bqp.qpn();
  there.roce.dgid = b.roce_entry(b.sgid_index()).gid;
  there.roce.dmac = b.mac();
  back.remote_qpn = aqp.qpn();
  back.roce.dgid = a.roce_entry(a.sgid_index()).gid;
  back.roce.dmac = a.mac();
  aqp.connect(there);
  bqp.connect(back);
  SendWr w;
  w.op = WqeOp::kRdmaWrite;
  w.sges = {{amr.start(), amr.key(), 20000}};
  w.raddr = bmr.start();
  w.rkey = bmr.key();
  aqp.post(w);
  EXPECT_FALSE(acq.wait_one().error());
  const auto latency = static_cast<std::uint64_t>(left.parameter("port.wire_latency_ns"));
  hca_destroy(left.handle());
  hca_destroy(right.handle());

  // Whatever one port sends comes in at the other, the same bytes, the cable's latency later.
  std::vector<Captured> under_way[2];
  unsigned crossed = 0;
  for (const Captured& c : read_capture(capture_.path, 1, 2)) {
    if (c.direction == 2) {
      under_way[c.interface].push_back(c);
      continue;
    }
    auto& from = under_way[1 - c.interface];
    ASSERT_FALSE(from.empty());
    EXPECT_EQ(c.bytes, from.front().bytes);
    EXPECT_GE(c.ns - from.front().ns, latency);
    EXPECT_LE(c.ns - from.front().ns, latency + 1) << "both are cut to nanoseconds";
    from.erase(from.begin());
    crossed++;
  }
  EXPECT_GE(crossed, 6u);
  EXPECT_TRUE(under_way[0].empty() && under_way[1].empty());
  expect_clean(capture_.path, " --min roce-rc=12");

  // The WQE's life at both ends, with the arrow from one HCA to the other.
  traces::Timeline t;
  records(trace_.path, &t);
  ASSERT_EQ(t.wqes.wqes().size(), 1u);
  EXPECT_EQ(t.wqes.wqes()[0].responder_hca, 1);
  EXPECT_EQ(t.wqes.wqes()[0].responder_qpn, bqp.qpn());
  const traces::View v = perfetto_of(t);
  unsigned arrows = 0;
  for (const auto& track : v.slices)
    if (track.first.first == "HCA 1" && track.first.second.find(" receives") != std::string::npos)
      for (const auto& s : track.second) arrows += static_cast<unsigned>(s.ending.size());
  EXPECT_EQ(arrows, 1u);
}

TEST_F(See, PerfettoOfARealRun) {
  World w(start(std::string("link=eth,trace=") + trace_.path));
  w.all_kinds();
  for (int i = 0; i < 8; ++i) w.a->post(w.wr(WqeOp::kRdmaWrite, 3000), i == 7);
  EXPECT_EQ(w.cq.wait(8).size(), 8u);
  const std::uint32_t qpn = w.a->qpn(), far = w.b->qpn();
  stop();
  traces::Timeline t;
  records(trace_.path, &t);
  const traces::View v = perfetto_of(t);
  const auto qp_track = [](std::uint32_t n, const char* rest) {
    char name[40];
    std::snprintf(name, sizeof name, "QP %#x%s", n, rest);
    return std::make_pair(std::string("HCA 0"), std::string(name));
  };
  for (const char* track : {"engine tx", "engine rx", "DMA read", "DMA write", "link out", "link in"})
    EXPECT_EQ(v.slices.count({"HCA 0", track}), 1u) << track;
  unsigned commands = 0;
  for (const auto& s : v.slices)
    if (s.first.second.rfind("firmware, slot", 0) == 0) commands += static_cast<unsigned>(s.second.size());
  EXPECT_EQ(commands, t.wqes.commands().size());
  EXPECT_GT(commands, 20u);
  const auto& lives = v.slices.at(qp_track(qpn, ""));
  ASSERT_EQ(lives.size(), 13u);
  for (const auto& life : lives) {
    std::uint64_t sum = 0;
    for (const auto& stage : life.inside) sum += stage.to - stage.from;
    EXPECT_EQ(sum, life.to - life.from) << life.name;
    EXPECT_GE(life.inside.size(), 8u) << life.name;
    EXPECT_EQ(life.flows.size(), 1u) << life.name;
  }
  EXPECT_EQ(v.slices.at(qp_track(far, " receives")).size(), 13u);
}

TEST_F(See, DetailShowsEachPacketAndTransfer) {
  World w(start(std::string("link=ib,trace_filter=detail,trace=") + trace_.path));
  const std::uint64_t tx = function_->counter("tx_packets"), rx = function_->counter("rx_packets");
  const std::uint64_t read = function_->counter("dma_read_bytes"),
                      written = function_->counter("dma_write_bytes");
  ASSERT_EQ(set("file", trace_.path), "");
  w.cq.arm();
  w.all_kinds();
  machine_->advance(100'000);
  const std::uint64_t out = function_->counter("tx_packets") - tx, in = function_->counter("rx_packets") - rx;
  const std::uint64_t from = function_->counter("dma_read_bytes") - read,
                      to = function_->counter("dma_write_bytes") - written;
  ASSERT_EQ(set("file", ""), "");
  stop();
  std::uint64_t packets[2] = {0, 0}, bytes[2] = {0, 0}, busy[6] = {};
  traces::Timeline t;
  for (const traces::Record& r : records(trace_.path, &t)) {
    packets[0] += r.p() == Point::kPacketOut;
    packets[1] += r.p() == Point::kPacketIn;
    if (r.p() == Point::kDmaRead) bytes[0] += r.obj;
    if (r.p() == Point::kDmaWrite && r.a0 > 0xffff) bytes[1] += r.obj;  // MSI-X have a vector there
    if (r.p() == Point::kUnitBusy) busy[r.obj]++;
  }
  EXPECT_EQ(packets[0], out);
  EXPECT_EQ(packets[1], in);
  EXPECT_EQ(bytes[0], from);
  EXPECT_EQ(bytes[1], to);
  for (unsigned unit = 0; unit < 6; ++unit) EXPECT_GT(busy[unit], 0u) << "unit " << unit;
  // `show` names each packet of a WQE: three of the request, an acknowledge, each out and in.
  traces::Story story;
  std::string err;
  ASSERT_TRUE(traces::tell(trace_.path, t.wqes, t.wqes.wqes().at(0), &story, &err)) << err;
  EXPECT_EQ(story.all(Point::kPacketOut).size(), story.all(Point::kPacketIn).size());
  EXPECT_GE(story.all(Point::kPacketOut).size(), 4u);
  // And each transfer: the doorbell record, the WQE, what is gathered and scattered, the CQE.
  std::uint64_t moved[2] = {0, 0};
  for (const traces::Record& r : story.around) {
    if (r.p() == Point::kDmaRead) moved[0] += r.obj;
    if (r.p() == Point::kDmaWrite) moved[1] += r.obj;
  }
  EXPECT_EQ(moved[0], 4 + 64 + 10001u);
  EXPECT_EQ(moved[1], 10001 + 64u);
}

}  // namespace
}  // namespace hcasim::bare
