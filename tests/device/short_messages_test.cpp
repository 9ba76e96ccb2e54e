// SPDX-License-Identifier: BSD-3-Clause
// Short inline WRITEs that go through the HCAs as one: each has the times that it has by itself, and whatever
// befalls one of them befalls that one. A card that captures its wire has each packet come by itself, so one
// such card and one that does not are to have the same trace.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "../files.h"
#include "driver/bare/qp.h"
#include "driver/bare/saved.h"
#include "rule_check.h"
#include "traces/qp_tag.h"
#include "traces/reader.h"

namespace hcasim::bare {
namespace {

// text, with `value` wherever it says `place`.
std::string filled(const std::string& text, char place, const std::string& value) {
  std::string all;
  for (const char c : text) all += c == place ? value : std::string(1, c);
  return all;
}

constexpr std::size_t kBytes = 64 << 10;

struct End {
  explicit End(Function& f) : dev(f, idle()) { dev.probe(); }
  void make() {
    pd.emplace(dev);
    cq.emplace(dev);
    mem.emplace(dev.memory().allocate(2 * kBytes));
    mr.emplace(dev, Mr::of(*pd, *mem, kAllAccess));
    qp.emplace(dev, *pd, *cq, *cq);
  }
  static DeviceOptions idle() {
    DeviceOptions o;
    o.wait_active = false;
    return o;
  }
  Device dev;
  std::optional<Pd> pd;
  std::optional<Cq> cq;
  std::optional<Buffer> mem;
  std::optional<Mr> mr;
  std::optional<Qp> qp;
};

// One or two cards, and a connected QP at either end.
struct Way {
  // options: of each card; %: "", or "-far" of the second of two, which there are with a cable.
  Way(Machine& m, const std::string& name, const std::string& options, bool cable) : machine(m) {
    const auto of = [&](const std::string& end) { return filled("name=" + name + "%," + options, '%', end); };
    functions.push_back(&m.add_hca(of("")));
    if (cable) functions.push_back(&m.add_hca(of("-far") + ",cable=" + name + ",lid=2"));
  }
  void start() {
    for (Function* f : functions) devices.push_back(std::make_unique<End>(*f));
    ASSERT_TRUE(machine.run_until(
        [&] {
          for (auto& e : devices)
            if (e->dev.port_state() != 4) return false;
          return true;
        },
        10'000'000'000));
    if (devices.size() == 1) {
      devices[0]->make();
      other.emplace(devices[0]->dev, *devices[0]->pd, *devices[0]->cq, *devices[0]->cq);
      connect_pair(*devices[0]->qp, *other, {});
      return;
    }
    for (auto& e : devices) e->make();
    connect_pair(*devices[0]->qp, *devices[1]->qp, {});
  }
  void connect_anew() {
    Qp& to = other ? *other : *far().qp;
    near().qp->to_reset();
    to.to_reset();
    connect_pair(*near().qp, to, {});
  }
  End& near() { return *devices.front(); }
  End& far() { return *devices.back(); }
  std::uint64_t runs() const { return functions.front()->counter("tx_runs"); }
  SendWr write(std::size_t to, const std::vector<std::uint8_t>& bytes) {
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.inline_data = bytes;
    w.raddr = far().mr->start() + to;
    w.rkey = far().mr->key();
    return w;
  }
  // The same from memory, in two pieces, whose place is the i-th in the near end's.
  SendWr gathered(std::size_t to, const std::vector<std::uint8_t>& bytes, unsigned i) {
    SendWr w = write(to, {});
    const std::size_t from = kBytes + std::size_t{i} * 300;
    std::copy(bytes.begin(), bytes.end(), near().mem->data() + from);
    const auto first = static_cast<std::uint32_t>(bytes.size() / 3);
    w.sges = {{near().mr->start() + from, near().mr->key(), first},
              {near().mr->start() + from + first, near().mr->key(),
               static_cast<std::uint32_t>(bytes.size()) - first}};
    return w;
  }
  // Whether all of so many complete well.
  void complete(unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      const Completion c = near().cq->wait_one();
      ASSERT_FALSE(c.error()) << i << ": " << c.text();
    }
  }

  Machine& machine;
  std::vector<Function*> functions;
  std::vector<std::unique_ptr<End>> devices;
  std::optional<Qp> other;  // where there is one card
};

// One whose short writes go together, and one whose wire is captured, so that they go one by one.
// options: of each; @: its name.
using Ways = std::map<std::string, std::unique_ptr<Way>>;
Ways both_ways(Machine& machine, const test::Folder& folder, const std::string& options, bool cable) {
  Ways ways;
  for (const std::string name : {"together", "single"}) {
    std::string own = filled(options, '@', name);
    if (name == "single") own += ",capture=" + folder / (name + "%.pcapng");
    ways[name] = std::make_unique<Way>(machine, name, own, cable);
  }
  return ways;
}

std::vector<std::uint8_t> pattern(std::size_t len, unsigned seed) {
  std::vector<std::uint8_t> bytes(len);
  for (std::size_t i = 0; i < len; ++i) bytes[i] = static_cast<std::uint8_t>(seed * 37 + i);
  return bytes;
}

using Times =
    std::map<std::tuple<std::string, std::uint32_t>, std::vector<std::int64_t>>;  // by point and WQE

// When WQEs of the QP were where, since `from` (ps).
Times times_of(const std::string& trace, std::uint32_t qpn, std::int64_t from) {
  Times times;
  const int status = traces::read_records(trace, [&](const traces::Record& r, const auto&) {
    if ((r.obj & traces::QpTag::kQpnMask) == qpn && r.time_ps >= from)
      times[{traces::info(r.p()).name, r.index}].push_back(r.time_ps - from);
  });
  EXPECT_EQ(status, 0);
  return times;
}

class ShortMessages : public ::testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  std::string link() const { return std::string("link=") + std::get<0>(GetParam()); }
  bool cable() const { return std::get<1>(GetParam()); }
};

TEST_P(ShortMessages, HaveTheTimesOfSingleOnes) {
  const test::Folder folder;
  struct Ran {
    std::uint32_t qpn = 0;
    std::int64_t from = 0;
    std::uint64_t runs = 0;
  };
  std::map<std::string, Ran> ran;
  {
    Machine machine(std::size_t{64} << 20);
    Ways ways = both_ways(machine, folder, link() + ",trace=" + folder / "@%", cable());
    machine.start();
    for (auto& [name, way] : ways) ASSERT_NO_FATAL_FAILURE(way->start());
    for (auto& [name, way] : ways) {
      Ran& r = ran[name];
      const auto burst = [&](unsigned n, std::size_t len, bool gathers = false) {
        machine.advance(100'000 -
                        machine.now() % 100'000);  // the driver saw the last one at a time of its own
        for (unsigned i = 0; i < n; ++i)
          way->near().qp->post(gathers ? way->gathered(std::size_t{i} * 1000, pattern(len, i), i)
                                       : way->write(std::size_t{i} * 1000, pattern(len, i)),
                               false);
        way->near().qp->ring_doorbell();
        way->complete(n);
      };
      burst(32, 64);  // what there is to be cached is
      burst(32, 64, true);
      machine.advance(1'000'000 - machine.now() % 1'000'000);
      r.qpn = way->near().qp->qpn();
      r.from = machine.now() * 1000;
      r.runs = way->runs();
      burst(32, 64);
      burst(3, 180);
      burst(20, 1);
      burst(1, 64);
      burst(32, 64, true);
      burst(9, 290, true);
      burst(1, 290, true);
      burst(3, 180);
      r.runs = way->runs() - r.runs;
      for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(std::memcmp(way->far().mem->data() + std::size_t{i} * 1000 + 64,
                              pattern(180, i).data() + 64, 116),
                  0);
      }
    }
    for (auto& [name, way] : ways)
      for (Function* f : way->functions) hca_destroy(f->handle());
  }
  EXPECT_GT(ran["together"].runs, 7u);
  EXPECT_EQ(ran["single"].runs, 0u);
  for (const std::string end : {"", "-far"}) {
    if (!end.empty() && !cable()) continue;
    Times together = times_of(folder / ("together" + end), ran["together"].qpn, ran["together"].from);
    Times single = times_of(folder / ("single" + end), ran["single"].qpn, ran["single"].from);
    EXPECT_GE(together.size(), 101u * 3);
    EXPECT_EQ(together.size(), single.size());
    for (auto& [where, t] : together) {
      EXPECT_EQ(t, single[where]) << std::get<0>(where) << " of " << std::get<1>(where) << end;
    }
  }
}

// Of several queues whose packets come by turns the receive side sees a few together that others would have
// come between: not all times are the same, but what is done in all takes as long.
TEST_P(ShortMessages, OfManyQueuesTakeAsLong) {
  const test::Folder folder;
  constexpr unsigned kQps = 16, kEach = 32, kRounds = 4;
  std::map<std::string, std::int64_t> took;
  std::map<std::string, std::uint64_t> runs;
  Machine machine(std::size_t{64} << 20);
  Ways ways = both_ways(machine, folder, link(), cable());
  machine.start();
  for (auto& [name, way] : ways) ASSERT_NO_FATAL_FAILURE(way->start());
  for (auto& [name, way] : ways) {
    std::vector<std::unique_ptr<Qp>> qps, others;
    for (unsigned i = 0; i < kQps; ++i) {
      qps.push_back(std::make_unique<Qp>(way->near().dev, *way->near().pd, *way->near().cq, *way->near().cq));
      others.push_back(std::make_unique<Qp>(way->far().dev, *way->far().pd, *way->far().cq, *way->far().cq));
      connect_pair(*qps.back(), *others.back(), {});
    }
    const auto round = [&] {
      for (auto& qp : qps)
        for (unsigned i = 0; i < kEach; ++i) {
          SendWr w = way->write(std::size_t{i} * 1000, pattern(64, i));
          w.signaled = i + 1 == kEach;
          qp->post(w, false);
        }
      for (auto& qp : qps) qp->ring_doorbell();
      way->complete(kQps);
    };
    round();
    const std::uint64_t before = way->runs();
    for (unsigned r = 0; r < kRounds; ++r) {
      machine.advance(100'000 - machine.now() % 100'000);
      const std::int64_t from = machine.now();
      round();
      took[name] += machine.now() - from;
    }
    runs[name] = way->runs() - before;
  }
  EXPECT_GE(runs["together"], std::uint64_t{kQps} * kEach / 16 * kRounds);
  EXPECT_EQ(runs["single"], 0u);
  const auto single = static_cast<double>(took["single"]);
  EXPECT_NEAR(static_cast<double>(took["together"]), single, 0.03 * single);
}

// Every kind of boundary: pages and ends of a key, two keys by turns, one place several times.
TEST_P(ShortMessages, LandWhereTheyBelong) {
  Machine machine(std::size_t{64} << 20);
  Way way(machine, "w", link(), cable());
  machine.start();
  ASSERT_NO_FATAL_FAILURE(way.start());
  End& far = way.far();
  std::vector<std::uint8_t> expected(kBytes);
  const auto burst = [&](const std::vector<std::size_t>& places, std::size_t len,
                         const Mr* second = nullptr) {
    const std::uint64_t runs = way.runs();
    for (unsigned i = 0; i < places.size(); ++i) {
      const auto bytes = pattern(len, i + static_cast<unsigned>(runs));
      SendWr w = way.write(places[i], bytes);
      if (second != nullptr && i % 2 == 1) {
        w = way.gathered(places[i], bytes, i);
        w.raddr = second->start() + places[i];
        w.rkey = second->key();
      }
      way.near().qp->post(w, false);
      std::copy(bytes.begin(), bytes.end(), expected.begin() + static_cast<std::ptrdiff_t>(places[i]));
    }
    way.near().qp->ring_doorbell();
    ASSERT_NO_FATAL_FAILURE(way.complete(static_cast<unsigned>(places.size())));
    EXPECT_GT(way.runs(), runs);
    EXPECT_EQ(std::memcmp(far.mem->data(), expected.data(), kBytes), 0);
  };
  burst({0, 4064, 4096, 8190, kBytes - 64, 12288, 12287}, 64);
  burst({100, 100, 100, 90, 110, 100}, 40);
  const Mr again(far.dev, Mr::of(*far.pd, *far.mem, kAllAccess));
  burst({0, 64, 4000, 4064, 8100, 8164, 200, 8000}, 64, &again);
}

// The fifth names a key that is none, here or there: those before it are done, it is refused, those behind it
// are flushed.
TEST_P(ShortMessages, AWrongOneIsAlone) {
  breaks({"rkey-unknown", "mr-key"});
  Machine machine(std::size_t{64} << 20);
  Way way(machine, "w", link(), cable());
  machine.start();
  ASSERT_NO_FATAL_FAILURE(way.start());
  for (const bool here : {false, true}) {
    const std::uint64_t runs = way.runs();
    std::memset(way.far().mem->data(), 0, kBytes);
    for (unsigned i = 0; i < 8; ++i) {
      SendWr w = here ? way.gathered(std::size_t{i} * 64, pattern(64, i), i)
                      : way.write(std::size_t{i} * 64, pattern(64, i));
      if (i == 4) (here ? w.sges[1].lkey : w.rkey) ^= 0xff;
      way.near().qp->post(w, false);
    }
    way.near().qp->ring_doorbell();
    for (unsigned i = 0; i < 8; ++i) {
      const Completion c = way.near().cq->wait_one();
      EXPECT_EQ(c.error(), i >= 4) << i;
      if (i == 4) {
        EXPECT_EQ(c.syndrome, here ? prm::CqeSyndrome::kLocalProt : prm::CqeSyndrome::kRemoteAccess)
            << c.text();
      } else if (i > 4) {
        EXPECT_EQ(c.syndrome, prm::CqeSyndrome::kWrFlush) << c.text();
      }
    }
    EXPECT_GT(way.runs(), runs) << "they went together";
    for (unsigned i = 0; i < 8; ++i)
      EXPECT_EQ(std::memcmp(way.far().mem->data() + std::size_t{i} * 64, pattern(64, i).data(), 64) == 0,
                i < 4)
          << i;
    way.connect_anew();
  }
}

// On a long cable they are a while: saved and loaded there they arrive all the same.
TEST_P(ShortMessages, AreSavedOnTheirWay) {
  Machine machine(std::size_t{64} << 20);
  Way way(machine, "w", link() + ",wire_latency_ns=100000", true);
  machine.start();
  ASSERT_NO_FATAL_FAILURE(way.start());
  const std::uint64_t runs = way.runs();
  for (unsigned i = 0; i < 12; ++i)
    way.near().qp->post(way.write(std::size_t{i} * 64, pattern(64, i)), false);
  way.near().qp->ring_doorbell();
  machine.advance(50'000);
  EXPECT_GT(way.runs(), runs);
  EXPECT_NE(std::memcmp(way.far().mem->data(), pattern(64, 0).data(), 64), 0) << "not there yet";
  const std::string state = save_state();
  ASSERT_EQ(load_state(state), "");
  EXPECT_TRUE(save_state() == state);
  ASSERT_NO_FATAL_FAILURE(way.complete(12));
  for (unsigned i = 0; i < 12; ++i)
    EXPECT_EQ(std::memcmp(way.far().mem->data() + std::size_t{i} * 64, pattern(64, i).data(), 64), 0) << i;
}

// A fault that is armed while they are on their way to the host: it strikes the one that it names.
TEST_P(ShortMessages, AFaultStrikesOneOfThem) {
  const test::Folder folder;
  constexpr unsigned kAll = 12, kStruck = 5;
  Machine machine(std::size_t{64} << 20);
  Ways ways = both_ways(machine, folder, link() + ",pcie.write_latency_ns=100000", cable());
  machine.start();
  for (auto& [name, way] : ways) {
    ASSERT_NO_FATAL_FAILURE(way->start());
    Function& to = *way->functions.back();
    const std::uint64_t runs = way->runs(), injected = to.counter("faults_injected");
    const auto landed = [&, &w = *way](unsigned i) {
      return std::memcmp(w.far().mem->data() + std::size_t{i} * 64, pattern(64, i).data(), 64) == 0;
    };
    for (unsigned i = 0; i < kAll; ++i)
      way->near().qp->post(way->write(std::size_t{i} * 64, pattern(64, i)), false);
    way->near().qp->ring_doorbell();
    machine.advance(50'000);
    EXPECT_EQ(way->runs() > runs, name == "together");
    EXPECT_FALSE(landed(0)) << "they are there already";
    ASSERT_EQ(to.inject("fault=dma,direction=write,owner=qp,address=" +
                        std::to_string(way->far().mem->bus(std::size_t{kStruck} * 64))),
              "");
    machine.advance(1'000'000);
    for (unsigned i = 0; i < kAll; ++i) EXPECT_EQ(landed(i), i != kStruck) << name << ", " << i;
    EXPECT_EQ(to.counter("faults_injected"), injected + 1);
    to.inject("none");
  }
}

// What the payload of writes from memory costs where it does not lie in the processors' cache.
TEST_P(ShortMessages, ArePayloadToTheHostsMemory) {
  const test::Folder folder;
  std::map<std::string, std::uint64_t> read;
  Machine machine(std::size_t{64} << 20);
  Ways ways = both_ways(machine, folder, link() + ",memory.llc_kib=64,memory.llc_io_kib=4,memory.dram_ns=500",
                        cable());
  machine.start();
  for (auto& [name, way] : ways) {
    ASSERT_NO_FATAL_FAILURE(way->start());
    const std::uint64_t before = way->functions.front()->counter("dram_reads"), runs = way->runs();
    for (unsigned i = 0; i < 32; ++i) way->near().qp->post(way->gathered(0, pattern(64, i), i), false);
    way->near().qp->ring_doorbell();
    ASSERT_NO_FATAL_FAILURE(way->complete(32));
    read[name] = way->functions.front()->counter("dram_reads") - before;
    EXPECT_EQ(way->runs() > runs, name == "together");
  }
  EXPECT_GE(read["single"], 32u);
  EXPECT_EQ(read["together"], read["single"]);
}

// Where nobody takes them each is dropped, and its trace says so.
TEST_P(ShortMessages, AreEachTracedWhenTheyAreDropped) {
  const test::Folder folder;
  std::map<std::string, std::pair<std::uint32_t, std::int64_t>> sent;
  {
    Machine machine(std::size_t{64} << 20);
    Ways ways = both_ways(machine, folder, link() + ",trace=" + folder / "@%", cable());
    machine.start();
    for (auto& [name, way] : ways) {
      ASSERT_NO_FATAL_FAILURE(way->start());
      (way->other ? *way->other : *way->far().qp).to_error();
      sent[name] = {way->near().qp->qpn(), machine.now() * 1000};
      const std::uint64_t runs = way->runs();
      for (unsigned i = 0; i < 8; ++i) way->near().qp->post(way->write(0, pattern(64, i)), false);
      way->near().qp->ring_doorbell();
      machine.advance(20'000);
      EXPECT_EQ(way->runs() > runs, name == "together");
    }
    for (auto& [name, way] : ways)
      for (Function* f : way->functions) hca_destroy(f->handle());
  }
  for (const std::string name : {"together", "single"}) {
    unsigned dropped = 0;
    for (const auto& [where, times] :
         times_of(folder / (name + (cable() ? "-far" : "")), sent[name].first, sent[name].second))
      if (std::get<0>(where) == "packet_drop") ++dropped;
    EXPECT_EQ(dropped, 8u) << name;
  }
}

// Each lane gets its share of a slow link, whoever of them rang first.
TEST(ShortMessagesOfLanes, CountForTheirLane) {
  constexpr unsigned kAll = 120;
  Machine machine(std::size_t{64} << 20);
  Way way(machine, "w", "link=ib,port.rate_gbps=10", true);
  machine.start();
  ASSERT_NO_FATAL_FAILURE(way.start());
  QpOptions long_queue;
  long_queue.log_sq = 8;
  struct Lane {
    Lane(Way& w, std::uint8_t level, const QpOptions& o)
        : cq(w.near().dev),
          from(w.near().dev, *w.near().pd, cq, cq, o),
          to(w.far().dev, *w.far().pd, *w.far().cq, *w.far().cq) {
      QpAttr attr;
      attr.sl = level;
      connect_pair(from, to, attr);
    }
    Cq cq;
    Qp from, to;
  };
  Lane first(way, 0, long_queue), second(way, 1, long_queue);
  const std::uint64_t runs = way.runs();
  for (unsigned i = 0; i < kAll; ++i) {
    const SendWr w = way.gathered(0, pattern(1024, i), 0);
    first.from.post(w, false);
    second.from.post(w, false);
  }
  first.from.ring_doorbell();
  second.from.ring_doorbell();
  for (unsigned i = 0; i < 80; ++i) ASSERT_FALSE(first.cq.wait_one().error()) << i;
  unsigned beside = 0;
  while (second.cq.poll()) ++beside;
  EXPECT_GT(way.runs(), runs);
  EXPECT_GE(beside, 60u);
  EXPECT_LE(beside, 100u);
}

INSTANTIATE_TEST_SUITE_P(Links, ShortMessages,
                         ::testing::Combine(::testing::Values("ib", "eth"), ::testing::Bool()));

}  // namespace
}  // namespace hcasim::bare
