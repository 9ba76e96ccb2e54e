// SPDX-License-Identifier: BSD-3-Clause
// Recordings of all that passes the C API, and hcasim-replay, which drives the model by them in a process of
// its own: the trace has the same bytes, and what is not as it was is found. Each test is a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>

#include "replayed.h"
#include "rule_check.h"
#include "two_qps.h"

namespace hcasim::bare {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::Ran;
using test::records_of;
using test::replay;
using test::write_bytes;
using test::write_records;
using ::testing::HasSubstr;
using ::testing::Not;

// In memory once, and sent.
const std::string kMark = "this text is the payload of a send";

class Replay : public ::testing::Test {
 protected:
  std::string file(const char* name) const { return folder_ / name; }
  // Options of the HCA that begins the recording.
  std::string recorded(const std::string& more = "") const {
    return test::recorded(file("r"), file("t")) + more;
  }
  void expect_same() const { test::expect_same(file("r"), file("t")); }
  test::Folder folder_;
};

// Whatever happens to the QPs happens to them alone.
struct Traffic : TwoQps {
  explicit Traffic(Device& d, const QpAttr& attr = {}) : TwoQps(d, attr, 1 << 18) {
    for (std::size_t i = 0; i < memory.size(); ++i)
      memory.data()[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    std::copy(kMark.begin(), kMark.end(), memory.data());
  }
  // Posts, and waits for each completion; `after` comes behind each doorbell.
  void run(const std::function<void()>& after = [] {}) {
    const auto one = [&](const SendWr& w) {
      a->post(w);
      after();
      cq.wait_one();
    };
    b->post_recv({{mr.start() + (1 << 16), mr.key(), 4096}});
    one(wr(WqeOp::kSend, static_cast<std::uint32_t>(kMark.size())));
    for (const std::uint32_t len : {1u, 64u, 4096u, 40'000u}) {
      one(wr(WqeOp::kRdmaWrite, len));
      one(wr(WqeOp::kRdmaRead, len));
    }
    breaks({"rkey-unknown"});
    SendWr bad = wr(WqeOp::kRdmaWrite, 8);
    bad.rkey ^= 0x100;
    a->post(bad);
    after();
    EXPECT_TRUE(cq.wait_one().error());
  }
};

// Bring-up, traffic, a command that is refused, all the way down.
void scenario(
    Function& function, const std::function<void()>& after = [] {}) {
  Device device(function);
  device.probe();
  {
    Traffic traffic(device);
    traffic.run(after);
    breaks({"object-unknown"});
    EXPECT_FALSE(device.exec(Mailbox(prm::op::DESTROY_QP, 16)).ok());
  }
  device.teardown();
}

TEST_F(Replay, IsTheRecordedRun) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=ib,name=one,drop=0.02,duplicate=0.02,seed=77"));
    machine.start();
    scenario(function);
    EXPECT_EQ(function.inject("drop=0.2,seed=5"), "");
    scenario(function);
    EXPECT_NE(function.inject("smoke=1"), "");
    EXPECT_GT(function.counter("injected_drop"), 0u);
    function.reset();
    scenario(function);
    EXPECT_EQ(function.dma_maps(), 0u) << "reads that nobody records";
  }
  expect_same();
}

// Tools beside the driver: semaphores, and a command in the mailbox behind the vendor specific capability.
TEST_F(Replay, HasAccessesToTheVendorCapability) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=ib"));
    machine.start();
    Device device(function);
    device.probe();
    hca_t* card = function.handle();
    const auto write = [card](std::uint32_t address, std::uint32_t value) {
      hca_vsc_write(card, 0x14, value);
      hca_vsc_write(card, 0x10, address | 1u << 31);
    };
    const auto read = [card](std::uint32_t address) {
      hca_vsc_write(card, 0x10, address);
      return hca_vsc_read(card, 0x14);
    };
    hca_vsc_write(card, 0x0c, hca_vsc_read(card, 0x08));
    hca_vsc_write(card, 0x04, 0x3);
    // MGIR, as in tests/firmware-stub/icmd_test.cpp.
    const std::uint32_t request[] = {0x08040000, 0x90200101, 0, 0, 0x18210000};
    for (std::uint32_t i = 0; i < 5; ++i) write(0x100000 + 4 * i, request[i]);
    write(0, 0x90010001);
    EXPECT_TRUE(machine.run_until([&] { return (read(0) & 1) == 0; }, 1'000'000));
    EXPECT_EQ(read(0x100000), 0x08040000u);  // status 0
    EXPECT_EQ(read(0x100014) & 0xffff, 4121u);
    device.teardown();
  }
  expect_same();
}

// A sub-function: registers of its own in the recording, memory and interrupts of the physical one.
class Window final : public Pcie {
 public:
  Window(hca_t* card, unsigned function) : card_(card), function_(function) {}
  void read(std::uint64_t offset, void* bytes, unsigned len) override {
    const std::uint64_t value = hca_function_read(card_, function_, offset, len);
    std::memcpy(bytes, &value, len);
  }
  void write(std::uint64_t offset, const void* bytes, unsigned len) override {
    if (len > 8) return hca_function_write_burst(card_, function_, offset, bytes, len);
    std::uint64_t value = 0;
    std::memcpy(&value, bytes, len);
    hca_function_write(card_, function_, offset, value, len);
  }
  void reset() override {}

 private:
  hca_t* card_;
  unsigned function_;
};

TEST_F(Replay, HasSubFunctionsWithIt) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=eth,vfs=1,sfs=2"));
    Window window(function.handle(), hca_functions(function.handle()) + 1);
    Function& sub_function = machine.add_function(window);
    machine.start();
    Device device(function);
    device.probe();
    constexpr std::uint32_t kSecond = 0x8001;
    device
        .exec(Mailbox(prm::op::ALLOC_SF, prm::alloc_sf_in::bytes).set<prm::alloc_sf_in::function_id>(kSecond))
        .must();
    device
        .exec(Mailbox(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes)
                  .set<prm::enable_hca_in::function_id>(kSecond))
        .must();
    DeviceOptions polled;
    polled.event_commands = false;
    {
      Device sf(sub_function, polled);
      sf.probe();
      { Pd pd(sf); }
      sf.teardown();
    }
    EXPECT_GT(function.interrupts(), 0u);
    device
        .exec(Mailbox(prm::op::DISABLE_HCA, prm::disable_hca_in::bytes)
                  .set<prm::disable_hca_in::function_id>(kSecond))
        .must();
    device
        .exec(Mailbox(prm::op::DEALLOC_SF, prm::dealloc_sf_in::bytes)
                  .set<prm::dealloc_sf_in::function_id>(kSecond))
        .must();
    device.teardown();
  }
  expect_same();
}

// With a profile of its own, and parameters changed: the recording needs neither file nor folder.
TEST_F(Replay, HasTheProfileWithIt) {
  write_bytes(
      file("own.toml"),
      "name = \"my \\\"own\\\" größe\"\n[core]\nclock_mhz = 333\n[pcie]\nlanes = 8\nread_latency_ns = 611\n");
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(
        recorded("link=ib,profile=" + file("own.toml") + ",pcie.write_latency_ns=301.5,wire_latency_ns=77"));
    machine.start();
    scenario(function);
  }
  fs::remove(file("own.toml"));
  expect_same();
}

// Faults of a scenario, and those asked for while it ran: the recording has them, the file may be gone.
TEST_F(Replay, HasTheFaultsWithIt) {
  write_bytes(
      file("faults.toml"),
      "seed = 11\n"
      "[[fault]]\nkind = \"wire\"\naction = \"drop\"\nprobability = 0.05 # of either way\n"
      "[[fault]]\nkind = \"wire\"\naction = \"corrupt\"\nopcode = \"ACK\"\nnth = 3\n"
      "[[fault]]\nkind = \"dma\"\naction = \"slow\"\ndelay = \"3us\"\nevery = 7\ntimes = 0\n"
      "[[fault]]\nkind = \"command\"\nopcode = \"CREATE_QP\"\ndelay = \"1ms\"\n"
      "[[fault]]\nkind = \"pcie\"\nerror = \"bad-tlp\"\nat = \"200us\"\nevery = \"1ms\"\ntimes = 3\n");
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=ib,faults=" + file("faults.toml")));
    machine.start();
    scenario(function);
    EXPECT_EQ(function.inject("fault=msix,action=delayed,delay=30us,times=0"), "");
    EXPECT_EQ(function.inject("fault=command,opcode=QUERY_HCA_CAP,delay=80us;fault=temperature,at=+10us"),
              "");
    scenario(function);
    EXPECT_EQ(function.inject("none"), "");
    scenario(function);
    EXPECT_GT(function.counter("faults_injected"), 30u);
    EXPECT_EQ(function.pcie_errors().size(), 3u);
  }
  fs::remove(file("faults.toml"));
  expect_same();
}

// The model runs ahead of the host's clock, as it does beside a guest that is not counted.
TEST_F(Replay, OfAnEagerRun) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=eth"));
    machine.start();
    std::mt19937 random(3);
    scenario(function, [&] {
      hca_sim_advance(machine.now(), 10'000);
      machine.advance(random() % 700);
      hca_sim_advance(machine.now() + 50, 10'000);
    });
  }
  expect_same();
}

TEST_F(Replay, OfAllHcasOfTheProcess) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& first = machine.add_hca(recorded("link=ib,name=left"));
    Function& second =
        machine.add_hca("link=ib,cable=left,trace=" + file("t") + ",trace_filter=detail,drop=0.01");
    machine.add_hca("link=eth,switch=s");
    machine.add_hca("link=eth,switch=s");
    machine.start();
    DeviceOptions no_wait;
    no_wait.wait_active = false;  // both ends have to be up for that
    Device a(first, no_wait), b(second, no_wait);
    a.probe();
    b.probe();
    {
      Pd apd(a), bpd(b);
      Cq acq(a), bcq(b);
      Qp aqp(a, apd, acq, acq), bqp(b, bpd, bcq, bcq);
      Buffer memory = a.memory().allocate(1 << 16);
      Mr amr(a, Mr::of(apd, memory, kAllAccess)), bmr(b, Mr::of(bpd, memory, kAllAccess));
      QpAttr to_a, to_b;
      to_b.remote_qpn = bqp.qpn();
      to_b.dlid = b.lid();
      to_a.remote_qpn = aqp.qpn();
      to_a.dlid = a.lid();
      machine.advance(10'000'000);
      to_b.dlid = a.lid() == 1 ? 2 : 1;
      to_a.dlid = to_b.dlid == 1 ? 2 : 1;
      aqp.connect(to_b);
      bqp.connect(to_a);
      for (unsigned i = 0; i < 20; ++i) {
        SendWr w;
        w.op = WqeOp::kRdmaWrite;
        w.sges = {{amr.start(), amr.key(), 8000}};
        w.raddr = bmr.start() + 32768;
        w.rkey = bmr.key();
        aqp.post(w);
        const Completion c = acq.wait_one();
        EXPECT_FALSE(c.error()) << c.text();
      }
    }
    a.teardown();
    b.teardown();
  }
  expect_same();
}

// What is switched while it runs is switched in the replay; files are left alone.
TEST_F(Replay, OfARunWhoseTracesWereSwitched) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca("link=ib,record=" + file("r"));
    machine.start();
    const auto set = [&](const char* key, const std::string& value) {
      char err[200] = "";
      EXPECT_EQ(hca_set_trace(function.handle(), key, value.c_str(), err, sizeof err), 0) << err;
    };
    scenario(function);
    set("file", file("t"));
    set("capture", file("c"));
    scenario(function);
    set("on", "off");
    scenario(function);
    set("on", "on");
    set("filter", "point=cqe_written");
    scenario(function);
    set("file", "");
    set("capture", "");
    scenario(function);
  }
  const std::string trace = bytes_of(file("t")), capture = bytes_of(file("c"));
  const Ran ran = replay(file("r") + " --trace " + file("t2") + " --capture " + file("c2"));
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("as recorded; statistics of 1 HCA equal"));
  EXPECT_TRUE(trace == bytes_of(file("t")) && capture == bytes_of(file("c"))) << "the run's own files";
  EXPECT_GT(bytes_of(file("t2")).size(), trace.size()) << "from the start on";
  EXPECT_GT(bytes_of(file("c2")).size(), capture.size());
}

// What QEMU tells of the guest's code is in the trace.
TEST_F(Replay, OfARunWithTheGuestsCode) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=ib,snapshot_every=20us"));
    machine.start();
    std::uint64_t pc = 0xffffffffc0001000;
    scenario(function, [&] { hca_function_code(function.handle(), 0, 0x800, 7, pc++, 0); });
  }
  expect_same();
}

// A file that cannot be made ends the trace, which the replay, without files of its own, does not notice.
TEST_F(Replay, OfARunWhoseTraceCouldNotBeWritten) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca("link=ib,record=" + file("r"));
    machine.start();
    scenario(function);
    EXPECT_NE(hca_set_trace(function.handle(), "file", file("none/t").c_str(), nullptr, 0), 0);
    scenario(function);
  }
  const Ran ran = replay(file("r"));
  EXPECT_EQ(ran.status, 0) << ran.text;
}

// Frames that come and go: an echo that loses some of them, a host that has enough, a carrier that goes.
TEST_F(Replay, OfTheHostsNetwork) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=eth,mac=02:00:00:00:00:01,wire=host"));
    machine.start();
    Device device(function);
    device.probe();
    {
      QpAttr attr;
      attr.roce.dmac = {2, 0, 0, 0, 0, 9};  // or it would not leave the port
      attr.roce.dgid = device.roce_entry(device.sgid_index()).gid;
      Traffic traffic(device, attr);
      unsigned frames = 0;
      for (unsigned i = 0; i < 10; ++i) {
        traffic.a->post(traffic.wr(i % 2 ? WqeOp::kRdmaRead : WqeOp::kRdmaWrite, 3000));
        function.set_wire_busy(i % 3 == 0);
        EXPECT_TRUE(machine.run_until([&] {
          for (auto& frame : function.take_frames()) {
            frame[5] = 1;
            if (++frames % 17 != 5) function.wire_receive(frame);
          }
          return traffic.cq.poll().has_value();
        }));
      }
      EXPECT_GT(frames, 17u) << "some of them lost";
      EXPECT_FALSE(function.wire_receive(std::vector<std::uint8_t>(20000)));
      EXPECT_TRUE(function.wire_receive({1, 2, 3}));
      function.set_carrier(false);
      machine.advance(1000);
      function.set_carrier(true);
      machine.advance(1000);
    }
    device.teardown();
  }
  expect_same();
}

// Payload that nothing can be said of but itself, read and brought again and again.
TEST_F(Replay, HoldsWhatComesAgainOnce) {
  constexpr std::uint32_t kBytes = 100'000;
  constexpr unsigned kTimes = 40;
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=ib"));
    machine.start();
    Device device(function);
    device.probe();
    {
      Traffic traffic(device);
      std::mt19937 random(19);
      for (std::size_t i = 0; i < kBytes; ++i) traffic.memory.data()[i] = static_cast<std::uint8_t>(random());
      for (unsigned i = 0; i < kTimes; ++i) {
        traffic.memory.data()[i * 2000] ^= 0xff;  // it is not quite the same
        traffic.a->post(traffic.wr(WqeOp::kRdmaWrite, kBytes));
        EXPECT_FALSE(traffic.cq.wait_one().error());
      }
    }
    device.teardown();
  }
  EXPECT_GT(bytes_of(file("r")).size(), kBytes);
  EXPECT_LT(bytes_of(file("r")).size(), 3 * kBytes) << "of " << kTimes * kBytes;
  expect_same();
}

// Texts that a recording holds are not read before they are known to be as they should.
TEST_F(Replay, RefusesAProfileThatNoRecorderWrites) {
  {
    Machine machine(std::size_t{16} << 20);
    machine.add_hca(recorded("link=ib"));
    machine.start();
  }
  const std::string records = records_of(file("r"));
  for (const char* bad : {"\xfflanes", "lan\0es", "lane==", "[anes ", "'anes "}) {
    std::string spoiled = records;
    const std::size_t at = spoiled.find("\nlanes = ");
    ASSERT_NE(at, std::string::npos);
    spoiled.replace(at + 1, 6, std::string(bad, 6));
    write_records(file("s"), spoiled);
    const Ran ran = replay(file("s"));
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.text, HasSubstr("the replay ends early: it is damaged: the profile of hca0"));
  }
}

// A wire is an HCA's, not one of its functions'.
TEST_F(Replay, RefusesALinkOfAVirtualFunction) {
  // As card/replay/recording.h numbers them; an h field has the function from bit 12 on.
  constexpr char kLinkUp = 15, kLinkDown = 16, kEnd = 22;
  const std::string function_1_of_hca0 = "\x80\x20";
  {
    Machine machine(std::size_t{16} << 20);
    machine.add_hca(recorded("link=ib,vfs=4"));
    machine.start();
  }
  const std::string records = records_of(file("r"));
  const std::size_t end = records.rfind(kEnd, records.size() - 2);
  ASSERT_NE(end, std::string::npos);
  for (const char event : {kLinkUp, kLinkDown}) {
    const std::string no_text(event == kLinkUp ? 1 : 0, '\0');
    std::string spoiled = records;
    write_records(file("s"), spoiled.insert(end, event + function_1_of_hca0 + no_text));
    const Ran ran = replay(file("s"));
    EXPECT_EQ(ran.status, 0) << ran.text;
    EXPECT_THAT(ran.text, HasSubstr("the replay ends early: it is damaged: hca0.1 link_")) << ran.text;
  }
}

// What differs is named: the payload of the send reaches memory changed, so the write of it is not the same.
TEST_F(Replay, FindsAChangedByte) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=ib"));
    machine.start();
    scenario(function);
  }
  std::string records = records_of(file("r"));
  const std::size_t at = records.find(kMark);
  ASSERT_NE(at, std::string::npos);
  records[at + 3] ^= 1;
  write_records(file("r"), records);
  const Ran ran = replay(file("r") + " --trace " + file("t2"));
  EXPECT_EQ(ran.status, 1) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("NOT as recorded: event "));
  EXPECT_THAT(ran.text, HasSubstr(" ns of simulated time: expected hca0 dma_write(0x"));
  EXPECT_THAT(ran.text, HasSubstr("\"" + kMark + "\"), got hca0 dma_write(0x"));

  // As far as the event before that, nothing is wrong.
  const std::size_t number = ran.text.find("event ") + 6;
  const std::string event = ran.text.substr(number, ran.text.find(',', number) - number);
  const Ran before = replay(file("r") + " --stop-at " + event);
  EXPECT_EQ(before.status, 0) << before.text;
  EXPECT_THAT(before.text, HasSubstr(event + " events"));
  EXPECT_THAT(before.text, HasSubstr("stopped before event " + event + ", as asked"));
  const Ran until = replay(file("r") + " --until 100000");
  EXPECT_EQ(until.status, 0) << until.text;
  EXPECT_THAT(until.text, HasSubstr("0.000100000 s of simulated time"));
  // A debugger would stop there.
  EXPECT_GE(replay(file("r") + " --trap 100").status, 128);
}

// A process that ends without a word has recorded what it did.
TEST_F(Replay, GoesAsFarAsARecordingThatWasCutOff) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      Machine machine(std::size_t{64} << 20);
      Function& function = machine.add_hca("link=ib,record=" + file("r"));
      machine.start();
      Device device(function);
      device.probe();
      Traffic traffic(device);
      traffic.run([] {
        static unsigned n = 0;
        if (++n == 6) ::kill(::getpid(), SIGKILL);
      });
    } catch (const std::exception&) {
    }
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Ran killed = replay(file("r") + " --trace " + file("t"));
  EXPECT_EQ(killed.status, 0) << killed.text;
  EXPECT_THAT(killed.text, HasSubstr("the process that wrote it ended without a word"));
  EXPECT_THAT(killed.text, HasSubstr("as recorded, so far"));
  EXPECT_THAT(bytes_of(file("t")).size(), ::testing::Gt(1000u));

  // And cut anywhere.
  const std::string whole = bytes_of(file("r"));
  for (std::size_t len = 0; len < 200'000; len = len * 3 / 2 + 7) {
    write_bytes(file("cut"), whole.substr(0, len));
    const Ran ran = replay(file("cut"));
    EXPECT_EQ(ran.status, len < 40 ? 2 : 0) << len << ": " << ran.text;
  }
}

// Nothing that a file may hold crashes the program.
TEST_F(Replay, SurvivesDamagedRecordings) {
  {
    Machine machine(std::size_t{64} << 20);
    Function& function = machine.add_hca(recorded("link=ib"));
    machine.start();
    scenario(function);
  }
  std::mt19937 random(11);
  const std::string packed = bytes_of(file("r"));
  const std::string records = records_of(file("r"));
  // Of some bits of a file nothing depends: of the end mark's lengths, and where its blocks are filled up.
  const auto all_there = [&](const std::string& path) {
    traces::StreamReader in;
    std::string err, read(records.size(), '\0');
    std::uint8_t more = 0;
    return in.open(path, test::kRecordingMagic, test::kRecordingVersion, &err) &&
           in.read(read.data(), read.size()) && !in.read(more) && in.warning().empty() && read == records;
  };
  for (unsigned i = 0; i < 8; ++i) {  // as a disk would
    std::string spoiled = packed;
    spoiled[random() % spoiled.size()] ^= static_cast<char>(1 + random() % 255);
    write_bytes(file("s"), spoiled);
    const Ran ran = replay(file("s"));
    EXPECT_LE(ran.status, 2) << ran.text;
    if (!all_there(file("s"))) {
      EXPECT_THAT(ran.text, Not(HasSubstr("as recorded; statistics")));
    }
  }
  for (unsigned i = 0; i < 60; ++i) {  // as somebody would who knows the format
    std::string spoiled = records;
    for (unsigned k = 0; k <= i % 3; ++k) {
      // Half of them where the HCA is made and brought up.
      const std::size_t at = random() % (i % 2 ? spoiled.size() : spoiled.size() / 50);
      if (i % 5 == 4) {
        spoiled.erase(at, 1 + random() % 9);
      } else {
        spoiled[at] = static_cast<char>(random());
      }
    }
    write_records(file("s"), spoiled);
    const Ran ran = replay(file("s") + " --until 1000000000");
    EXPECT_LE(ran.status, 2) << "spoiled " << i << ": " << ran.text;
  }
}

TEST_F(Replay, WhatCannotBeRecordedIsRefused) {
  Machine machine(std::size_t{16} << 20);
  const auto refused = [&](const std::string& options) -> std::string {
    try {
      machine.add_hca(options);
    } catch (const BareError& e) {
      return e.what();
    }
    return "made";
  };
  EXPECT_THAT(refused("link=ib,record=/no/such/folder/r"), HasSubstr("record=/no/such/folder/r: "));
  EXPECT_EQ(refused("link=ib"), "made");
  EXPECT_THAT(refused("link=ib,record=" + file("r")), HasSubstr("give it to the first HCA"));
  EXPECT_FALSE(fs::exists(file("r")));
  const Ran none = replay(file("r"));
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.text, HasSubstr("No such file"));
  write_bytes(file("r"), std::string(100, 'x'));
  EXPECT_THAT(
      replay(file("r")).text,
      HasSubstr(": does not begin with HCASIMRP; a recording is what hcasim boot --record FILE makes"));
}

}  // namespace
}  // namespace hcasim::bare
