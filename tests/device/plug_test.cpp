// SPDX-License-Identifier: BSD-3-Clause
// HCAs that are plugged in, and out, while simulated time runs. Each test is a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "replayed.h"
#include "rule_check.h"
#include "two_qps.h"

namespace hcasim::bare {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kLinkUp = 10'000'000'000;  // ns that a link gets to come up
constexpr std::uint32_t kBytes = 10'000;

void fill(const Buffer& memory, unsigned from) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory.data()[i] = static_cast<std::uint8_t>(from + i * 7);
}

// Bring-up, a WRITE through the cable to itself, all the way down.
void serve(Function& function) {
  Device device(function);
  device.probe();
  {
    TwoQps qps(device);
    fill(qps.memory, 1);
    qps.a->post(qps.wr(WqeOp::kRdmaWrite, kBytes));
    EXPECT_FALSE(qps.cq.wait_one().error());
    EXPECT_EQ(std::memcmp(qps.memory.data(), qps.memory.data() + qps.memory.size() / 2, kBytes), 0);
  }
  device.teardown();
}

DeviceOptions with_far_end() {
  DeviceOptions o;
  o.wait_active = false;  // the link comes up when both ends are there
  return o;
}

struct End {
  explicit End(Device& d)
      : device(d),
        pd(d),
        cq(d),
        qp(d, pd, cq, cq),
        memory(d.memory().allocate(1 << 16)),
        mr(d, Mr::of(pd, memory, kAllAccess)) {}
  void connect(const End& to) {
    QpAttr attr;
    attr.remote_qpn = to.qp.qpn();
    attr.dlid = to.device.lid();
    qp.connect(attr);
  }
  void write_to(const End& to) {
    fill(memory, qp.qpn());
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {{mr.start(), mr.key(), kBytes}};
    w.raddr = to.mr.start();
    w.rkey = to.mr.key();
    qp.post(w);
    EXPECT_FALSE(cq.wait_one().error());
    EXPECT_EQ(std::memcmp(memory.data(), to.memory.data(), kBytes), 0);
  }
  Device& device;
  Pd pd;
  Cq cq;
  Qp qp;
  Buffer memory;
  Mr mr;
};

// An InfiniBand HCA whose driver stays while others come and go at the other end of its cable.
class Stays {
 public:
  explicit Stays(Machine& machine, const std::string& options = "")
      : machine_(machine),
        function_(machine.add_hca("link=ib,name=stays" + options)),
        device_(function_, with_far_end()) {}
  void probe() { device_.probe(); }
  void teardown() { device_.teardown(); }
  bool link_up() { return device_.port_state() == 4; }
  void talk_with(Function& other) {
    Device device(other, with_far_end());
    device.probe();
    ASSERT_TRUE(machine_.run_until([&] { return link_up() && device.port_state() == 4; }, kLinkUp));
    EXPECT_NE(device.lid(), device_.lid());
    {
      End here(device_), there(device);
      here.connect(there);
      there.connect(here);
      here.write_to(there);
      there.write_to(here);
    }
    device.teardown();
  }

 private:
  Machine& machine_;
  Function& function_;
  Device device_;
};

TEST(Plugged, InServesAsAnyOther) {
  Machine machine(std::size_t{64} << 20);
  Function& first = machine.add_hca("link=ib");
  machine.start();
  machine.advance(5'000'000);
  serve(first);
  for (const char* link : {"link=ib", "link=eth", "link=eth,generation=connectx7"}) {
    Function& late = machine.add_hca(link);
    serve(late);
    serve(first);
    serve(late);
    machine.unplug(late);
  }
  serve(first);
}

TEST(Plugged, InIntoAMachineThatHadNone) {
  Machine machine(std::size_t{64} << 20);
  machine.start();
  machine.advance(5'000'000);
  serve(machine.add_hca("link=ib"));
}

TEST(Plugged, OutAndInAtTheOtherEndOfACable) {
  Machine machine(std::size_t{128} << 20);
  Stays stays(machine);
  Function* other = &machine.add_hca("link=ib,name=first,cable=stays");
  machine.start();
  stays.probe();
  for (const char* next : {"second", "third", "fourth"}) {
    stays.talk_with(*other);
    machine.unplug(*other);
    ASSERT_TRUE(machine.run_until([&] { return !stays.link_up(); }, kLinkUp));
    other = &machine.add_hca(std::string("link=ib,cable=stays,name=") + next);
  }
  stays.talk_with(*other);
  stays.teardown();
}

// In the midst of its traffic: the other end's requests time out, and nothing comes back to it.
TEST(Plugged, OutWhileItSends) {
  Machine machine(std::size_t{128} << 20);
  Function& first = machine.add_hca("link=ib,name=stays");
  machine.start();
  Device device(first, with_far_end());
  device.probe();
  for (int round = 0; round < 4; ++round) {
    Function& late = machine.add_hca("link=ib,cable=stays,name=n" + std::to_string(round));
    auto other = std::make_unique<Device>(late, with_far_end());
    other->probe();
    ASSERT_TRUE(
        machine.run_until([&] { return device.port_state() == 4 && other->port_state() == 4; }, kLinkUp));
    End here(device);
    auto there = std::make_unique<End>(*other);
    here.connect(*there);
    there->connect(here);
    SendWr w;
    w.op = WqeOp::kRdmaWrite;
    w.sges = {{here.mr.start(), here.mr.key(), 60'000}};
    w.raddr = there->mr.start();
    w.rkey = there->mr.key();
    here.qp.post(w);
    std::swap(w.raddr, w.sges[0].addr);
    w.sges[0].lkey = there->mr.key();
    w.rkey = here.mr.key();
    there->qp.post(w);
    machine.advance(round * 2'000);
    hca_destroy(late.handle());
    other->function_reset();  // its driver forgets what it had
    there.reset();
    other.reset();
    machine.unplug(late);
    EXPECT_EQ(here.cq.wait_one().syndrome, prm::CqeSyndrome::kTransportRetryExc);
  }
  device.teardown();
}

TEST(Plugged, InIsRefusedWhatCannotBe) {
  Machine machine(std::size_t{64} << 20);
  machine.add_hca("link=ib,name=alone");
  machine.add_hca("link=ib,name=a,cable=b");
  machine.add_hca("link=ib,name=b");
  machine.start();
  const struct {
    const char *options, *why;
  } cases[] = {
      {"card=x", "card=x: once the machine runs, an HCA that is plugged in has one port"},
      {"switch=s", "switch=s: once the machine runs"},
      {"wire=unix:/tmp/none,coupled=on", "coupled=on: once the machine runs"},
      {"link=ib,cable=none", "cable=none: there is no HCA of that name"},
      {"link=ib,cable=a", "cable=a: a has a cable already"},
      {"link=eth,cable=alone", "different link types"},
      {"record=/tmp/none", "record=/tmp/none: give it to the first HCA"},
  };
  for (const auto& c : cases) {
    try {
      machine.add_hca(c.options);
      ADD_FAILURE() << c.options;
    } catch (const BareError& e) {
      EXPECT_THAT(e.what(), HasSubstr(c.why));
    }
  }
  serve(machine.add_hca("link=ib"));
}

TEST(Plugged, InAndOutReplay) {
  const test::Folder folder;
  const std::string recording = folder / "r", trace = folder / "t";
  {
    Machine machine(std::size_t{128} << 20);
    Stays stays(machine, "," + test::recorded(recording, trace) + "seed=3");
    machine.start();
    stays.probe();
    for (const char* next : {"first", "second"}) {
      Function& other = machine.add_hca(std::string("link=ib,cable=stays,drop=0.02,name=") + next);
      stays.talk_with(other);
      machine.unplug(other);
      machine.advance(1'000'000);
    }
    stays.teardown();
  }
  test::expect_same(recording, trace);
}

// States in the recording know the HCAs that there are by then.
TEST(Plugged, InReplaysFromAState) {
  const test::Folder folder;
  const std::string recording = folder / "r";
  {
    Machine machine(std::size_t{128} << 20);
    Stays stays(machine, ",snapshot_every=50us,record=" + recording);
    machine.start();
    stays.probe();
    Function& gone = machine.add_hca("link=ib,cable=stays,name=first");
    stays.talk_with(gone);
    machine.unplug(gone);
    Function& other = machine.add_hca("link=ib,cable=stays,name=second");
    stays.talk_with(other);
    stays.talk_with(other);
    stays.teardown();
  }
  const test::Ran whole = test::replay(recording);
  EXPECT_EQ(whole.status, 0) << whole.text;
  const test::Ran late = test::replay(recording + " --from 1000000000000");
  EXPECT_EQ(late.status, 0) << late.text;
  EXPECT_THAT(late.text, HasSubstr("as recorded"));
}

}  // namespace
}  // namespace hcasim::bare
