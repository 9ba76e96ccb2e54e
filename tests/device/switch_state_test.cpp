// SPDX-License-Identifier: BSD-3-Clause
// States of HCAs on a modelled switch, with packets in it; and of HCAs on a cable of which one has functions
// that the other does not have. (A process each.)
#include <gtest/gtest.h>
#include <libdeflate.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "../files.h"
#include "all_to_all.h"
#include "driver/bare/saved.h"
#include "eth_fixture.h"

namespace hcasim::bare {
namespace {

// What becomes of the HCAs: their state and their machine's memory some time later.
struct Later {
  std::string state;
  std::vector<std::uint8_t> memory;
  bool operator==(const Later& o) const { return state == o.state && memory == o.memory; }
};

// A moment to go back to.
class Moment {
 public:
  explicit Moment(Machine& machine)
      : machine_(machine), state_(save_state()), memory_(memory()), now_(machine.now()) {}
  const std::string& state() const { return state_; }
  Later run_on(std::int64_t ns) const {
    while (machine_.now() < now_ + ns) machine_.step(now_ + ns);
    return {save_state(), memory()};
  }
  std::string go_back() const {
    std::copy(memory_.begin(), memory_.end(), bytes());
    machine_.set_now(now_);
    return load_state(state_);
  }

 private:
  std::uint8_t* bytes() const { return machine_.memory().at(HostMemory::kBusBase); }
  std::vector<std::uint8_t> memory() const {
    return {bytes(), bytes() + machine_.memory().pages_in_use() * kPage};
  }
  Machine& machine_;
  std::string state_;
  std::vector<std::uint8_t> memory_;
  std::int64_t now_;
};

std::string shown(const std::string& state) {
  const test::Folder folder;
  test::write_bytes(folder / "state", state);
  return test::run(STATE_TOOL " show " + (folder / "state")).text;
}

class SwitchState : public ::testing::TestWithParam<bool> {  // Ethernet
 protected:
  static AllToAllOptions options() {
    AllToAllOptions o;
    o.hcas = 4;
    o.ethernet = GetParam();
    o.bytes = 32768;
    return o;
  }
};

TEST_P(SwitchState, GoesOnAsTheSavedOneDidAtAnyMoment) {
  AllToAll fabric(options());
  std::mt19937_64 random(7);
  unsigned with_packets = 0;
  for (int moment = 0; moment < 12; ++moment) {
    fabric.post(4, moment % 2 == 0);
    fabric.machine().advance(1000 + static_cast<std::int64_t>(random() % 12'000));
    const Moment here(fabric.machine());
    with_packets += shown(here.state()).find("switches[0].in.items[0].") != std::string::npos;
    const Later first = here.run_on(30'000);
    ASSERT_EQ(here.go_back(), "");
    EXPECT_EQ(save_state(), here.state());
    EXPECT_TRUE(here.run_on(30'000) == first) << "moment " << moment;
    fabric.finish();
  }
  EXPECT_GT(with_packets, 4u);
  fabric.clear();
  fabric.run(1);
  fabric.check();
}

// The checksum of a file that was changed.
void seal(std::string& state) {
  const std::uint32_t crc = libdeflate_crc32(0, state.data(), state.size() - 4);
  for (unsigned i = 0; i < 4; ++i) state[state.size() - 4 + i] = static_cast<char>(crc >> 8 * i);
}

TEST_P(SwitchState, ADamagedOneIsRefusedOrLeadsSomewhere) {
  AllToAll fabric(options());
  fabric.post(4, true);
  fabric.machine().advance(4000);
  const Moment here(fabric.machine());
  ASSERT_NE(shown(here.state()).find("switches[0].in.items[0]."), std::string::npos);
  const std::size_t from = here.state().rfind("switches");
  ASSERT_NE(from, std::string::npos);
  std::mt19937_64 random(8);
  unsigned refused = 0, taken = 0;
  for (int round = 0; round < 60; ++round) {
    std::string bad = here.state();
    // Of the packets' bytes few mean anything: mostly what comes before them, and their heads.
    const std::size_t area = round % 3 == 0 ? bad.size() - from - 4 : 1200;
    for (std::uint64_t n = 1 + random() % 2; n != 0; --n)
      bad[from + random() % area] = static_cast<char>(random() % 2 != 0 ? random() : random() % 8);
    seal(bad);
    if (!load_state(bad).empty()) {
      ++refused;
      EXPECT_EQ(save_state(), here.state());
      continue;
    }
    ++taken;
    fabric.machine().advance(20'000);
    ASSERT_EQ(here.go_back(), "");
  }
  EXPECT_GT(refused, 10u);
  EXPECT_GT(taken, 2u);
  fabric.finish();
  for (const std::string& line : fabric.machine().log(0))
    EXPECT_EQ(line.find("fault in the model"), std::string::npos) << line;
}

INSTANTIATE_TEST_SUITE_P(Link, SwitchState, ::testing::Bool(),
                         [](const auto& p) { return p.param ? "Ethernet" : "InfiniBand"; });

// Frames of a virtual function on their way to a card that has none.
TEST(CableState, FunctionsOfTheSenderNeedNotBeTheReceivers) {
  Machine machine(std::size_t{128} << 20);
  Function& near = machine.add_hca("link=eth,name=near,vfs=3");
  machine.add_hca("link=eth,name=far,cable=near");
  machine.start();
  DeviceOptions o;
  o.wait_active = false;
  Device manager(near, o), far(machine.function(1), o);
  manager.probe();
  far.probe();
  ASSERT_TRUE(machine.run_until([&] { return manager.port_state() == 4 && far.port_state() == 4; }));
  constexpr unsigned kVirtual = 3, kFrames = 40;
  Mailbox in(prm::op::ENABLE_HCA, prm::enable_hca_in::bytes);
  manager.exec(in.set<prm::enable_hca_in::function_id>(kVirtual)).must();
  {
    Device virtual_function(machine.add_virtual(near, kVirtual), o);
    virtual_function.probe();
    {
      EthLink sender(virtual_function);
      for (unsigned i = 0; i < kFrames; ++i) {
        sender.send(plain_frame(1000, i));
        machine.advance(70);
        const std::string state = save_state();
        ASSERT_EQ(load_state(state), "") << "frame " << i;
        EXPECT_EQ(save_state(), state);
      }
      machine.advance(100'000);
    }
    virtual_function.teardown();
  }
  Mailbox out(prm::op::DISABLE_HCA, prm::disable_hca_in::bytes);
  manager.exec(out.set<prm::disable_hca_in::function_id>(kVirtual)).must();
  EXPECT_EQ(machine.function(1).counter("rx_packets"), kFrames);
}

}  // namespace
}  // namespace hcasim::bare
