// SPDX-License-Identifier: BSD-3-Clause
// Saved states (hca_sim_save(), hca_sim_load()): a card that is loaded goes on as the saved one did, a
// damaged state changes nothing. What other cards and other processes make of one: tests/device/recorded-run.
#include <gtest/gtest.h>
#include <libdeflate.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "card/state/tagged.h"
#include "driver/bare/saved.h"
#include "fixture.h"
#include "prm/icmd.h"
#include "prm/prm.h"
#include "rule_check.h"

namespace hcasim::bare {
namespace {

using prm::WqeOp;

class SavedState : public DeviceTest {
 protected:
  void TearDown() override {
    pairs_.clear();
    DeviceTest::TearDown();
  }
  // Writes and reads of two pairs of QPs on their way, the last one to fail.
  void start_traffic(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    pairs_.clear();
    for (int n = 0; n < 2; ++n) pairs_.push_back(std::make_unique<Pair>(dev()));
    for (const auto& pair : pairs_) {
      pair->fill(seed);
      for (int i = 0; i < 12; ++i) {
        const WqeOp ops[] = {WqeOp::kRdmaWrite, WqeOp::kRdmaRead, WqeOp::kRdmaWrite};
        const auto len = static_cast<std::uint32_t>(1 + random() % (16 << 10));
        pair->a.post(pair->wr(ops[random() % 3], random() % (32 << 10), len));
      }
    }
    breaks({"rkey-unknown"});
    SendWr wrong = pairs_.back()->wr(WqeOp::kRdmaWrite, 0, 64);
    wrong.rkey ^= 0x5500;
    pairs_.back()->a.post(wrong);
  }
  // All that the cards' host can see of them, some time later.
  struct End {
    std::vector<std::uint64_t> digests;
    std::vector<std::uint8_t> memory;
    bool operator==(const End& o) const { return digests == o.digests && memory == o.memory; }
  };
  // Where a machine's memory is given out first; a test takes far less.
  static constexpr std::size_t kUsed = std::size_t{32} << 20;
  static std::uint8_t* bytes() { return machine().memory().at(HostMemory::kBusBase); }
  static std::vector<std::uint8_t> memory() { return {bytes(), bytes() + kUsed}; }
  static End run_on(std::int64_t until) {
    while (machine().now() < until) machine().step(until);
    End end;
    for (std::size_t i = 0; i < machine().functions(); ++i)
      end.digests.push_back(machine().function(i).state_digest());
    end.memory = memory();
    return end;
  }
  static void go_back(const std::string& state, const std::vector<std::uint8_t>& before, std::int64_t now) {
    std::copy(before.begin(), before.end(), bytes());
    ASSERT_EQ(load_state(state), "");
    machine().set_now(now);
  }
  std::vector<std::unique_ptr<Pair>> pairs_;
};

TEST_F(SavedState, SavingAndLoadingChangesNothing) {
  start_traffic(1);
  machine().advance(3000);
  const std::string state = save_state();
  ASSERT_EQ(load_state(state), "");
  EXPECT_EQ(save_state(), state);
}

TEST_F(SavedState, GoesOnAsTheSavedOneDidAtAnyMoment) {
  std::mt19937_64 random(20);
  for (int moment = 0; moment < 20; ++moment) {
    start_traffic(random());
    machine().advance(static_cast<std::int64_t>(random() % 20'000));
    const std::string state = save_state();
    const std::vector<std::uint8_t> before = memory();
    const std::int64_t now = machine().now(), until = now + 200'000;
    const End first = run_on(until);
    go_back(state, before, now);
    const End again = run_on(until);
    EXPECT_EQ(again.digests, first.digests) << "moment " << moment;
    EXPECT_TRUE(again.memory == first.memory) << "moment " << moment;
    pairs_.clear();
  }
}

TEST_F(SavedState, OneStateCanBeLoadedAgainAndAgain) {
  start_traffic(3);
  machine().advance(2500);
  const std::string state = save_state();
  const std::vector<std::uint8_t> before = memory();
  const std::int64_t now = machine().now();
  const End first = run_on(now + 100'000);
  for (int i = 0; i < 10; ++i) {
    go_back(state, before, now);
    EXPECT_TRUE(run_on(now + 100'000) == first) << "time " << i;
  }
}

// The checksum of a file that was changed.
void seal(std::string& state) {
  const std::uint32_t crc = libdeflate_crc32(0, state.data(), state.size() - 4);
  for (unsigned i = 0; i < 4; ++i) state[state.size() - 4 + i] = static_cast<char>(crc >> 8 * i);
}

// HCASIM_DAMAGED_STATES: how many to try, for a run of hours; each from this seed on.
std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

TEST_F(SavedState, ADamagedOneChangesNothing) {
  start_traffic(4);
  machine().advance(2500);
  const std::string state = save_state();
  EXPECT_NE(load_state(""), "");
  EXPECT_NE(load_state(state.substr(0, state.size() - 1)), "");
  std::string bad = state;
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
  EXPECT_NE(load_state(bad).find("checksum"), std::string::npos);
  std::mt19937_64 random(from_environment("HCASIM_DAMAGED_STATES_SEED", 5));
  std::uint64_t refused = 0, taken = 0;
  const std::uint64_t rounds = from_environment("HCASIM_DAMAGED_STATES", 60);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    bad = state;
    for (std::uint64_t n = 1 + random() % 3; n != 0; --n) {
      const char edge[] = {0, 1, 0x7f, static_cast<char>(0x80), static_cast<char>(0xff)};
      const std::uint64_t which = random() % 10;
      bad[24 + random() % (bad.size() - 28)] = which < 5 ? edge[which] : static_cast<char>(random());
    }
    seal(bad);
    if (load_state(bad).empty()) {  // as good a state as any
      ++taken;
      // It goes on with that, wherever that leads, and is taken back.
      const std::int64_t now = machine().now();
      const std::vector<std::uint8_t> before = memory();
      breaks_any_rule();
      machine().advance(50'000);
      std::copy(before.begin(), before.end(), bytes());
      ASSERT_EQ(load_state(state), "");
      machine().set_now(now);
    } else {
      ++refused;
    }
    ASSERT_TRUE(save_state() == state) << "round " << i;
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(taken, 0u);
}

TEST_F(SavedState, IsOfACardThatWasMadeInTheSameWay) {
  std::string state = save_state();
  const std::size_t at = state.find("infiniband");
  ASSERT_NE(at, std::string::npos);
  state.replace(at, 4, "INFI");
  seal(state);
  const std::string why = load_state(state);
  EXPECT_NE(why.find("different link types: INFIniband and infiniband"), std::string::npos) << why;
}

// A state as it is, but for the first number whose path ends so.
class OneNumber {
 public:
  OneNumber(const std::string& state, std::string path, std::uint64_t value)
      : from_(state), to_(from_.version()), path_(std::move(path)), value_(value) {
    copy();
  }
  std::string state() && {
    EXPECT_TRUE(done_) << "there is no " << path_;
    return std::move(to_).finish();
  }

 private:
  bool meant() const {
    const std::string path = from_.path();
    return !done_ && path.size() >= path_.size() &&
           path.compare(path.size() - path_.size(), path_.size(), path_) == 0;
  }
  void copy() {
    while (!from_.at_end()) {
      const saved::Item item = from_.next();
      switch (item.type) {
        case saved::Type::kNumber:
          to_.number(item.name, meant() ? done_ = true, value_ : item.number);
          break;
        case saved::Type::kReal:
          to_.real(item.name, item.real);
          break;
        case saved::Type::kNone:
          to_.none(item.name);
          break;
        case saved::Type::kBytes:
          to_.bytes(item.name, item.content.data(), item.content.size());
          break;
        default:
          to_.open(item.name, item.type);
          from_.enter();
          copy();
          from_.leave();
          to_.close();
      }
    }
  }

  saved::TaggedReader from_;
  saved::TaggedWriter to_;
  const std::string path_;
  const std::uint64_t value_;
  bool done_ = false;
};

TEST_F(SavedState, NumbersThatNoCardComesTo) {
  start_traffic(6);
  machine().advance(2500);
  const std::string state = save_state();
  EXPECT_EQ(load_state(OneNumber(state, "next_tag", 0).state()), "");
  const auto expect = [&](const char* path, std::uint64_t value, const char* message) {
    const std::string why = load_state(OneNumber(state, path, value).state());
    EXPECT_NE(why.find(message), std::string::npos) << path << ": " << why;
  };
  expect("dma.next_tag", 1u << 20, "there is no such tag of a read");
  expect("turn.seq", std::uint64_t{1} << 63, "so many turns are never asked for");
  expect("simulation.seq", std::uint64_t{1} << 63, "so many turns are never asked for");
  expect("clock_at_start", std::uint64_t{1} << 62, "no clock shows such a time");
  expect("mtu", 0, "there is no such path MTU");
  EXPECT_EQ(load_state(state), "");
}

// An access of tools that would be under way, with a mailbox in which there is none.
TEST_F(SavedState, AnAccessOfToolsIsWhatLiesInTheirMailbox) {
  constexpr std::uint32_t kMailboxSpace = 3, kSetSpace = 0x04, kAddress = 0x10, kData = 0x14,
                          kGiven = 1u << 31;
  hca_t* const card = fn().handle();
  hca_vsc_write(card, kSetSpace, kMailboxSpace);
  hca_vsc_write(card, kData, prm::kIcmdAccessRegister << 16 | 1);  // busy
  hca_vsc_write(card, kAddress, kGiven);                           // control: address 0
  const std::string state = save_state();
  const std::string why = load_state(OneNumber(state, "icmd.cmd.opcode", prm::op::ACCESS_REG).state());
  EXPECT_NE(why.find("the access does not agree with its mailbox"), std::string::npos) << why;
  EXPECT_EQ(load_state(state), "");
}

}  // namespace
}  // namespace hcasim::bare
