// SPDX-License-Identifier: BSD-3-Clause
// Exports, read back: Perfetto's protobuf, CSV, JSON, VCD; the guest's kernel trace beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "perfetto_view.h"

#include "prm/prm.h"
#include "prm/wire_formats.h"
#include "traces/story.h"
#include "traces/timeline.h"

namespace hcasim::traces {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kNs = 1000;
constexpr std::uint32_t kTx = 0x42, kRx = 0x77;

std::string capture(const std::function<bool(std::FILE*)>& write) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* f = open_memstream(&text, &size);
  EXPECT_TRUE(write(f));
  std::fclose(f);
  std::string s(text, size);
  free(text);
  return s;
}

/// SENDs of HCA 0 to HCA 1 that overlap, with odd picoseconds; an interrupt, a command, an error.
struct World {
  World() {
    tx.open_memory();
    rx.open_memory();
  }
  void send(std::int64_t t, std::uint32_t serial) {
    const std::uint32_t tag = tx.tag(kTx);
    auto next = [&, step = 0]() mutable { return t += kNs * 10 + 137 * ++step; };
    tx.record(Point::kDoorbell, t, kTx, serial, serial);
    tx.record(Point::kScheduled, next(), kTx, serial, 1);
    tx.record(Point::kWqeFetch, next(), kTx, serial, 64, serial);
    tx.record(Point::kWqeParsed, next(), kTx, serial, 0x0a | serial << 16, 100);
    tx.record(Point::kTranslated, next(), kTx, serial, 1);
    tx.record(Point::kGathered, next(), kTx, serial, 100);
    tx.record(Point::kPacketTxFirst, next(), kTx, serial, 5 | 4 << 24, 100);
    tx.record(Point::kPacketTxLast, next(), kTx, serial, 5 | 4 << 24, 1);
    rx.record(Point::kPacketRx, next(), tag, serial, 5 | 4 << 24, 100);
    rx.record(Point::kChecked, next(), tag, serial, 5, kRx);
    rx.record(Point::kRwqeFetch, next(), tag, serial, 0, kRx);
    rx.record(Point::kScattered, next(), tag, serial, 100, kRx);
    rx.record(Point::kAckTx, next(), tag, serial, 5, 0);
    tx.record(Point::kAckRx, next(), kTx, serial, 5, 0);
    tx.record(Point::kCqeWritten, next(), kTx, serial, 6 | static_cast<std::uint64_t>(prm::CqeOp::kReq) << 24,
              serial);
    tx.record(Point::kEqeWritten, next(), 3, serial, 0, 6);
    tx.record(Point::kMsix, next(), 2, 0, 3);
    tx.record(Point::kCqConsumed, next(), 6, serial + 1);
  }
  void command(std::int64_t from, std::int64_t to, std::uint32_t seq) {
    tx.record(Point::kCmdStart, from, 1, seq, prm::op::CREATE_CQ);
    tx.record(Point::kCmdDone, to, 1, seq, prm::op::CREATE_CQ);
  }
  Timeline timeline() {
    Timeline t;
    for (Tracer* tracer : {&tx, &rx}) {
      std::vector<std::vector<std::uint8_t>> blobs;
      const auto records = tracer->drain(&blobs);
      for (std::size_t i = 0; i < records.size(); i++) t.add(records[i], blobs[i]);
    }
    t.finish();
    return t;
  }
  Tracer tx{0}, rx{1};
};

View view(const Timeline& t, const GuestTrace* guest = nullptr, std::int64_t offset = 0) {
  return View(capture([&](std::FILE* f) { return write_perfetto_proto(t, guest, offset, f); }));
}

TEST(Perfetto, StagesAddUpToTheLifeAndFlowsLeadThereAndBack) {
  World w;
  for (std::uint32_t i = 0; i < 5; i++) w.send(i * 60 * kNs + 11, i);  // each begins within the one before
  const Timeline t = w.timeline();
  const View v = view(t);
  const auto& lives = v.slices.at({"HCA 0", "QP 0x42"});
  const auto& received = v.slices.at({"HCA 1", "QP 0x77 receives"});
  ASSERT_EQ(lives.size(), 5u);
  ASSERT_EQ(received.size(), 5u);
  std::set<std::uint64_t> used;
  for (unsigned i = 0; i < 5; i++) {
    const WqeRow& row = t.wqes.wqes()[i];
    const std::string name = "SEND " + wqe_id(row);
    const auto named = [&](const Slice& s) { return s.name == name; };
    const auto life = std::find_if(lives.begin(), lives.end(), named);
    ASSERT_NE(life, lives.end()) << name;
    EXPECT_EQ(life->from, static_cast<std::uint64_t>(row.start() / 1000));
    EXPECT_EQ(life->to, static_cast<std::uint64_t>(row.at(Stage::kConsumed) / 1000));
    ASSERT_EQ(life->inside.size(), kStages - 1) << "a stage for each step";
    EXPECT_EQ(life->inside.front().name, "doorbell -> sched");
    std::uint64_t sum = 0, at = life->from;
    for (const Slice& stage : life->inside) {
      EXPECT_EQ(stage.from, at) << stage.name;
      at = stage.to;
      sum += stage.to - stage.from;
    }
    EXPECT_EQ(sum, life->to - life->from);
    // There, and back to what follows the acknowledge.
    const auto there = std::find_if(received.begin(), received.end(), named);
    ASSERT_NE(there, received.end());
    EXPECT_EQ(there->from, static_cast<std::uint64_t>(row.at(Stage::kRx) / 1000));
    EXPECT_EQ(there->to, static_cast<std::uint64_t>(row.at(Stage::kAckTx) / 1000));
    ASSERT_EQ(life->flows.size(), 1u);
    EXPECT_EQ(there->ending, life->flows);
    ASSERT_EQ(there->flows.size(), 1u);
    unsigned arrows = 0;
    for (const Slice& stage : life->inside) {
      if (stage.ending.empty()) continue;
      arrows++;
      EXPECT_EQ(stage.name, "ack -> cqe");
      EXPECT_EQ(stage.ending, there->flows);
    }
    EXPECT_EQ(arrows, 1u);
    EXPECT_TRUE(used.insert(*life->flows.begin()).second) << "a flow of two WQEs";
    EXPECT_TRUE(used.insert(*there->flows.begin()).second);
  }
}

TEST(Perfetto, HasTracksOfAllThatWorks) {
  World w;
  w.send(1000 * kNs, 0);
  w.command(10 * kNs, 400 * kNs, 7);
  w.tx.record(Point::kTimeout, 1500 * kNs, kTx, 0, 5, 6);
  const View v = view(w.timeline());
  for (const char* track : {"QP 0x42", "engine tx", "DMA read", "DMA write", "link out", "firmware, slot 1"})
    EXPECT_EQ(v.slices.count({"HCA 0", track}), 1u) << track;
  for (const char* track : {"QP 0x77 receives", "engine rx", "DMA write", "link in"})
    EXPECT_EQ(v.slices.count({"HCA 1", track}), 1u) << track;
  for (const char* track : {"EQ 3", "MSI-X 2", "errors and retries"})
    EXPECT_EQ(v.instants.count({"HCA 0", track}), 1u) << track;
  const auto& command = v.slices.at({"HCA 0", "firmware, slot 1"}).at(0);
  EXPECT_EQ(command.name, "CREATE_CQ");
  EXPECT_EQ(command.from, 10u);
  EXPECT_EQ(command.to, 400u);
  const auto& depth = v.counters.at({"HCA 0", "QP 0x42 WQEs under way"});
  ASSERT_EQ(depth.size(), 2u);
  EXPECT_EQ(depth[0].second, 1);
  EXPECT_EQ(depth[1].second, 0);
}

// What never ended leaves when its queue does; what only the responder saw was never under way.
TEST(Export, DepthsComeDownAgain) {
  World w;
  w.tx.record(Point::kWqeParsed, 1000 * kNs, kTx, 0, 0x0a, 100);
  w.tx.record(Point::kWqeParsed, 2000 * kNs, kTx, 1, 0x0a | 1 << 16, 100);
  w.tx.record(Point::kObjDestroy, 5000 * kNs, kTx, 0, 8);
  w.send(7000 * kNs, 0);
  w.rx.record(Point::kPacketRx, 3000 * kNs, w.tx.tag(0x55), 4, 5 | 4 << 24, 100);
  const Timeline t = w.timeline();
  const View v = view(t);
  EXPECT_EQ(v.counters.count({"HCA 0", "QP 0x55 WQEs under way"}), 0u);
  std::vector<std::pair<std::uint64_t, std::int64_t>> depth;
  for (const auto& [at, n] : v.counters.at({"HCA 0", "QP 0x42 WQEs under way"})) depth.emplace_back(at, n);
  ASSERT_EQ(depth.size(), 5u);
  depth.pop_back();
  EXPECT_EQ(depth, (std::vector<std::pair<std::uint64_t, std::int64_t>>{
                       {1000, 1}, {2000, 2}, {5000, 0}, {7000, 1}}));
  const std::string vcd = capture([&](std::FILE* f) { return write_vcd(t, f); });
  EXPECT_EQ(vcd.find("qp_0x55"), std::string::npos);
  EXPECT_NE(vcd.find("#5000000\nb0 "), std::string::npos) << vcd;
}

TEST(Perfetto, DetailPointsTakeThePlaceOfWhatStagesTell) {
  World w;
  std::string err;
  ASSERT_TRUE(w.tx.set_filter("detail", &err));
  w.send(0, 0);
  w.tx.record(Point::kDmaRead, 500 * kNs, 64, 0, 0x1000, 300 * kNs);
  w.tx.record(Point::kPacketOut, 900 * kNs, kTx, 0, 5 | 4 << 24, 128ull << 32 | 10 * kNs);
  w.tx.record(Point::kPacketIn, 990 * kNs, kTx, 0, 5 | 0x11 << 24, 64ull << 32 | 8 * kNs);
  trace_busy(w.tx, Unit::kTransmit, 0, 700 * kNs, 710 * kNs);
  const View v = view(w.timeline());
  EXPECT_EQ(v.slices.count({"HCA 0", "DMA write"}), 0u);
  const auto& read = v.slices.at({"HCA 0", "DMA read"});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].name, "64 B at 0x1000");
  EXPECT_EQ(read[0].to - read[0].from, 300u);
  EXPECT_EQ(v.slices.at({"HCA 0", "link out"}).at(0).name, "SEND_ONLY PSN 5");
  EXPECT_EQ(v.slices.at({"HCA 0", "link out"}).at(0).to, 910u);
  EXPECT_EQ(v.slices.at({"HCA 0", "link in"}).at(0).from, 982u);
  EXPECT_EQ(v.slices.at({"HCA 0", "engine tx, packets"}).size(), 1u);
}

TEST(Export, CsvAndJsonHoldAllStageTimes) {
  World w;
  for (std::uint32_t i = 0; i < 3; i++) w.send(i * 1000 * kNs, i);
  const Timeline t = w.timeline();
  std::istringstream csv(capture([&](std::FILE* f) { return write_csv(t.wqes, f); }));
  const auto cells = [](const std::string& line) {
    std::vector<std::string> v(1);
    for (const char c : line)
      if (c == ',')
        v.emplace_back();
      else
        v.back() += c;
    return v;
  };
  std::string line;
  ASSERT_TRUE(std::getline(csv, line));
  const auto head = cells(line);
  const auto json = nlohmann::json::parse(capture([&](std::FILE* f) { return write_json_wqes(t.wqes, f); }));
  ASSERT_EQ(json.size(), 3u);
  for (unsigned i = 0; i < 3; i++) {
    const WqeRow& row = t.wqes.wqes()[i];
    ASSERT_TRUE(std::getline(csv, line));
    const auto values = cells(line);
    ASSERT_EQ(values.size(), head.size());
    std::map<std::string, std::string> cell;
    for (std::size_t k = 0; k < head.size(); k++) cell[head[k]] = values[k];
    EXPECT_EQ(cell["wqe"], wqe_id(row));
    EXPECT_EQ(cell["opcode"], "SEND");
    EXPECT_EQ(cell["responder_qpn"], std::to_string(kRx));
    EXPECT_EQ(cell["done_ps"], "") << "no such record";
    EXPECT_EQ(json[i]["wqe"], wqe_id(row));
    for (unsigned s = 0; s < kStages; s++) {
      EXPECT_EQ(cell[std::string(kStageNames[s]) + "_ps"], std::to_string(row.time[s]));
      EXPECT_EQ(json[i]["stages_ps"][kStageNames[s]], row.time[s]);
    }
  }
  EXPECT_FALSE(std::getline(csv, line));
}

TEST(Export, VcdCountsWhatIsUnderWay) {
  World w;
  w.send(100 * kNs, 0);
  w.send(160 * kNs, 1);
  w.send(900 * kNs, 2);
  const Timeline t = w.timeline();
  std::istringstream vcd(capture([&](std::FILE* f) { return write_vcd(t, f); }));
  std::map<std::string, std::string> codes;  // by name, scope before it
  std::map<std::string, std::vector<std::pair<std::int64_t, std::string>>> changes;
  std::string line, scope;
  std::int64_t now = -1;
  while (std::getline(vcd, line)) {
    std::istringstream in(line);
    std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
    if (words.empty()) continue;
    if (words[0] == "$scope") scope = words[2];
    if (words[0] == "$var") codes[scope + "." + words[4]] = words[3];
    if (words[0][0] == '#') {
      const std::int64_t next = std::stoll(words[0].substr(1));
      EXPECT_GT(next, now) << "times must rise";
      now = next;
    }
    if (words[0][0] == 'b') changes[words[1]].emplace_back(now, words[0].substr(1));
    if (words[0][0] == '1') changes[words[0].substr(1)].emplace_back(now, "1");
  }
  ASSERT_EQ(codes.count("hca0.qp_0x42_wqes"), 1u);
  const auto& rows = t.wqes.wqes();
  const std::vector<std::pair<std::int64_t, std::string>> depth = {{0, "0"},
                                                                   {rows[0].start(), "1"},
                                                                   {rows[1].start(), "10"},
                                                                   {rows[0].end(), "1"},
                                                                   {rows[1].end(), "0"},
                                                                   {rows[2].start(), "1"},
                                                                   {rows[2].end(), "0"}};
  EXPECT_EQ(changes[codes["hca0.qp_0x42_wqes"]], depth);
  EXPECT_EQ(changes[codes["hca0.msix_2"]].size(), 3u);
  ASSERT_EQ(codes.count("hca1.engine_rx"), 1u);
  EXPECT_EQ(changes[codes["hca1.engine_rx"]].size(), 7u);
  EXPECT_EQ(changes[codes["hca1.engine_rx"]][1], std::make_pair(rows[0].at(Stage::kRx), std::string("1")));
}

// --- The guest's kernel trace.

GuestTrace guest(const std::string& text) {
  GuestTrace g;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) g.add_line(line);
  return g;
}

TEST(GuestTrace, ReadsBothWritings) {
  const GuestTrace g = guest(
      "# tracer: function\n"
      "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
      "          perf-a-b-1234  [003] d..1.  17.000123: mlx5_ib_post_send <-ib_uverbs_post_send\n"
      "          <idle>-0       [000] ..s2.  17.000200: irq_handler_entry: irq=24 "
      "name=mlx5_comp0@pci:0000:01:00.0\n"
      "cpus=2\n"
      "   ib_write-977   [001]    18.123456789: function:             cmd_exec <-- mlx5_cmd_exec\n"
      "   ib_write-977   [001]    18.200000000: funcgraph_entry:                   |  mlx5_cmd_exec() {\n"
      "   ib_write-977   [001]    18.200000100: funcgraph_entry:        0.250 us   |    _raw_spin_lock();\n"
      "   ib_write-977   [001]    18.200002000: funcgraph_exit:         2.000 us   |  }\n"
      "   ib_write-977   [001]    18.300000000: print:                tracing_mark_write: hcasim: t=55\n"
      " 1)   0.123 us    |  no_time();\n");
  ASSERT_EQ(g.events.size(), 7u);
  EXPECT_EQ(g.other_lines, 2u);
  EXPECT_EQ(g.events[0].task, "perf-a-b");
  EXPECT_EQ(g.events[0].pid, 1234);
  EXPECT_EQ(g.events[0].cpu, 3u);
  EXPECT_EQ(g.events[0].time_ns, 17000123000);
  EXPECT_EQ(g.events[0].name, "mlx5_ib_post_send");
  EXPECT_EQ(g.events[1].name, "irq_handler_entry");
  EXPECT_THAT(g.events[1].details, HasSubstr("mlx5_comp0"));
  EXPECT_EQ(g.events[2].name, "cmd_exec");
  EXPECT_EQ(g.events[2].time_ns, 18123456789);
  EXPECT_TRUE(g.events[3].begins);
  EXPECT_EQ(g.events[3].name, "mlx5_cmd_exec");
  EXPECT_EQ(g.events[4].took_ns, 250);
  EXPECT_TRUE(g.events[5].ends);
  EXPECT_EQ(g.events[6].details, "tracing_mark_write: hcasim: t=55");
}

/// Posts and commands of a guest whose clock is `behind` ns behind simulated time.
std::string guest_text(World& w, std::int64_t behind, bool mark) {
  std::string text;
  const auto line = [&](std::int64_t simulated_ns, const std::string& what) {
    const std::int64_t t = simulated_ns - behind;
    char s[160];
    std::snprintf(s, sizeof s, "  app-7 [000] .... %lld.%09lld: %s\n", static_cast<long long>(t / 1000000000),
                  static_cast<long long>(t % 1000000000), what.c_str());
    text += s;
  };
  std::uint32_t serial = 0;
  std::int64_t at = 5'000'000'000;
  for (unsigned i = 0; i < 60; i++) {
    at += 20000 + i * i * 337 % 9001;  // no pattern that fits itself when shifted
    const std::int64_t software = 700 + i * 97 % 1300;
    line(at - software, "mlx5_ib_post_send <-ib_post_send");
    w.send(at * 1000, serial++);
    const std::int64_t msix = at + 10 * 16 + 137 * 16 * 17 / 2 / 1000;
    line(msix + 2500 + i % 7 * 100, "irq_handler_entry: irq=24 name=mlx5_comp0@pci:0000:01:00.0");
  }
  if (mark) line(at + 1000, "tracing_mark_write: hcasim: t=" + std::to_string(at + 900));
  return text;
}

TEST(GuestTrace, AClockWithoutADotCountsNanoseconds) {
  const GuestTrace g = guest(
      "     driver_work-156     [000] d..1.  85398794752: ring: (mlx5r_ring_db+0x0/0x60 [mlx5_ib])\n"
      "     driver_work-156     [000] d..1.  853987947x2: ring: (mlx5r_ring_db+0x0/0x60 [mlx5_ib])\n");
  ASSERT_EQ(g.events.size(), 1u);
  EXPECT_EQ(g.events[0].time_ns, 85398794752);
  EXPECT_EQ(g.events[0].name, "ring");
  EXPECT_EQ(g.other_lines, 1u);
}

TEST(GuestTrace, OffsetIsFoundFromCauses) {
  World w;
  const std::int64_t behind = 1'234'567'890;
  const GuestTrace g = guest(guest_text(w, behind, false));
  const Timeline t = w.timeline();
  const ClockOffset found = find_offset(t, g);
  ASSERT_TRUE(found.known);
  EXPECT_EQ(found.how, "causes before their effects");
  EXPECT_EQ(found.of, 120u);
  EXPECT_EQ(found.matched, 120u);
  // Between the shortest ways from an interrupt to its handler and from a function to its doorbell.
  EXPECT_GE(found.least, behind - 2520);
  EXPECT_LE(found.least, behind);
  EXPECT_GE(found.most, behind);
  EXPECT_LE(found.most, behind + 720);
  EXPECT_EQ(found.ns, found.least + (found.most - found.least) / 2);

  const View v = view(t, &g, found.ns);
  const auto& events = v.instants.at({"guest", "app-7"});
  EXPECT_EQ(events.size(), 120u);
  // Each post stands before the doorbell it rings, and by it.
  for (unsigned i = 0; i < 60; i++) {
    EXPECT_EQ(events[i * 2].second, "mlx5_ib_post_send");
    const auto doorbell = static_cast<std::uint64_t>(t.wqes.wqes()[i].start() / 1000);
    EXPECT_LE(events[i * 2].first, doorbell);
    EXPECT_GE(events[i * 2].first + 3000, doorbell);
  }
}

TEST(GuestTrace, MarkSaysItExactlyAndNonsenseIsNoClock) {
  World w;
  const GuestTrace marked = guest(guest_text(w, 777'000'111, true));
  const Timeline t = w.timeline();
  const ClockOffset found = find_offset(t, marked);
  ASSERT_TRUE(found.known);
  EXPECT_EQ(found.ns, 777'000'111 - 100);
  EXPECT_THAT(found.how, HasSubstr("mark"));

  EXPECT_FALSE(find_offset(t, guest("  app-7 [000] .... 1.000000: schedule <-x\n")).known);
  // Far apart, where the HCA's records lie near together: at most one can fit.
  std::string apart;
  for (unsigned i = 0; i < 10; i++)
    apart += "  app-7 [000] .... " + std::to_string(i * 100) + ".000000: mlx5_ib_post_send <-x\n";
  EXPECT_FALSE(find_offset(t, guest(apart)).known);
}

TEST(GuestTrace, FunctionsNestAndGuestTimeBeforeTheMachineIsLeftOut) {
  World w;
  w.send(5'000'000'000'000, 0);
  const GuestTrace g = guest(
      "   app-9 [001]  0.000000100: function: early\n"
      "   app-9 [001]  4.000000000: funcgraph_entry:                   |  outer() {\n"
      "   app-9 [001]  4.000000100: funcgraph_entry:        0.250 us   |    inner();\n"
      "   app-9 [001]  4.000002000: funcgraph_exit:         2.000 us   |  }\n");
  const View v = view(w.timeline(), &g, -1'000'000'000);
  const auto& outer = v.slices.at({"guest", "app-9"});
  ASSERT_EQ(outer.size(), 1u);
  EXPECT_EQ(outer[0].name, "outer");
  EXPECT_EQ(outer[0].from, 3'000'000'000u);
  EXPECT_EQ(outer[0].to, 3'000'002'000u);
  ASSERT_EQ(outer[0].inside.size(), 1u);
  EXPECT_EQ(outer[0].inside[0].to - outer[0].inside[0].from, 250u);
  EXPECT_EQ(v.instants.count({"guest", "app-9"}), 0u);
}

}  // namespace
}  // namespace hcasim::traces
