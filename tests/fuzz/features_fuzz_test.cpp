// SPDX-License-Identifier: BSD-3-Clause
// All features at once, each in use (worlds.h): commands that were right but for a few bytes, commands of all
// opcodes about objects that exist, memory that the device reads otherwise than it was written, WQEs and
// packets whose fields do not fit.
#include <set>

#include "firmware-stub/objects/general.h"
#include "firmware-stub/opcodes.h"
#include "fuzz_fixture.h"

namespace hcasim::bare {
namespace {

class Features : public LinkFuzz {
 protected:
  void SetUp() override {
    LinkFuzz::SetUp();
    dev().cmd().use_events(false);
    // What commands of the worlds look like, and what their answers name.
    dev().cmd().set_observer([this](const Mailbox& in, const CommandResult& r) {
      if (!keep_) return;
      if (seen_.size() < 3000) seen_.push_back(in);
      if (r.ok() && r.out.size() >= 12) names_.insert(prm::load32(r.out.data() + 8) & 0xffffff);
    });
  }
  // Worlds that have come, worked and gone once, and are there now.
  void populate(Dice& dice) {
    keep_ = true;
    for (unsigned round = 0; round < 2; ++round) {
      tear_down_worlds();
      names_.clear();
      build();
      let_work(dice, 100'000);
    }
    keep_ = false;
    EXPECT_GT(seen_.size(), 100u);
  }
  // The device forgets all that was done to it.
  void renew() {
    dev().function_reset();
    tear_down_worlds();
    seen_.clear();
    dev().clear_failed_destroys();
    dev().probe();
    dev().cmd().use_events(false);
  }
  std::uint32_t name(Dice& dice) {
    if (names_.empty()) return 0;
    auto it = names_.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(dice.below(names_.size())));
    return *it;
  }
  void answered(const Mailbox& in, std::size_t out_len) {
    const CommandResult r = dev().cmd().exec(in, out_len);
    ASSERT_TRUE(r.done) << "opcode " << std::hex << in.opcode() << " has no answer";
  }
  static std::size_t out_room(Dice& dice, std::size_t least) {
    return dice.chance(85) ? std::max<std::size_t>(16, least) : 8 + dice.below(4200);
  }

  bool keep_ = false;
  std::vector<Mailbox> seen_;
  std::set<std::uint32_t> names_;
};

TEST_P(Features, CommandsThatWereRight) {
  Dice dice(100 + GetParam());
  for (unsigned world = 0; world < rounds(8); ++world) {
    populate(dice);
    for (unsigned i = 0; i < 1500; ++i) {
      Mailbox in = dice.pick(seen_);
      if (ends_all(in.opcode())) continue;
      if (dice.chance(8))
        in.resize(dice.chance(50) ? 8 + dice.below(in.size() - 7) : in.size() + dice.below(600));
      // Numbers of objects that exist now, mostly.
      if (in.size() >= 12 && dice.chance(40)) prm::store32(in.data() + 8, name(dice));
      if (dice.chance(90)) dice.spoil(in.data(), in.size(), dice.chance(85) ? 8 : 4);
      answered(in, out_room(dice, 512));
      if (HasFatalFailure()) return;
      if (i % 50 == 0) let_work(dice, 20'000);
    }
    expect_sound("commands that were right");
    renew();
  }
  expect_recovers();
}

TEST_P(Features, AllOpcodesAboutWhatExists) {
  Dice dice(200 + GetParam());
  for (unsigned i = 0; i < rounds(12); ++i) {
    populate(dice);
    for (const fw::Opcode& op : fw::all_opcodes()) {
      if (ends_all(op.opcode)) continue;
      for (unsigned again = 0; again < 3; ++again) {
        std::size_t len = op.min_in + (dice.chance(30) ? dice.below(700) : 0);
        if (dice.chance(5)) len = 8 + dice.below(op.min_in);
        Mailbox in(op.opcode, std::max<std::size_t>(len, 8),
                   static_cast<std::uint16_t>(dice.chance(60) ? dice.below(4) : dice.below(64)));
        for (std::size_t at = 8; at + 4 <= in.size(); at += 4) {
          if (dice.chance(at == 8 ? 80 : 8))
            prm::store32(in.data() + at, name(dice));
          else if (dice.chance(25))
            prm::store32(in.data() + at, dice.chance(50) ? dice.edge() : dice.word());
        }
        answered(in, out_room(dice, op.min_out));
        if (HasFatalFailure()) return;
      }
    }
    for (const fw::GeneralType& type : fw::general_types()) {
      for (const std::uint16_t op : {prm::op::CREATE_GENERAL_OBJECT, prm::op::MODIFY_GENERAL_OBJECT,
                                     prm::op::QUERY_GENERAL_OBJECT, prm::op::DESTROY_GENERAL_OBJECT}) {
        Mailbox in(op, 16 + dice.below(300), type.type);
        prm::store32(in.data() + 8, dice.chance(50) ? name(dice) : static_cast<std::uint32_t>(dice.below(4)));
        for (std::size_t at = 16; at < in.size(); ++at)
          if (dice.chance(20)) in[at] = dice.byte();
        answered(in, out_room(dice, 300));
        if (HasFatalFailure()) return;
      }
    }
    let_work(dice, 20'000);
    expect_sound("commands of all opcodes");
    renew();
  }
  expect_recovers();
}

TEST_P(Features, MemoryReadsOtherwise) {
  Dice dice(300 + GetParam());
  unsigned long changed = 0;
  for (unsigned life = 0; life < rounds(16); ++life) {
    populate(dice);
    fn().set_dma_tamper([&](std::uint64_t, std::uint8_t* bytes, std::size_t len) {
      if (dev().cmd().in_flight() != 0 || !dice.chance(8)) return;
      dice.spoil(bytes, len);
      ++changed;
    });
    for (unsigned i = 0; i < 50; ++i) let_work(dice, 30'000);
    fn().set_dma_tamper({});
    expect_sound("memory that reads otherwise");
    renew();
  }
  EXPECT_GT(changed, 100u);
  expect_recovers();
}

TEST_P(Features, WqesDoNotFit) {
  Dice dice(400 + GetParam());
  for (unsigned life = 0; life < rounds(16); ++life) {
    populate(dice);
    for (auto& w : worlds_) w->set_spoiling(40);
    for (unsigned i = 0; i < 60; ++i) let_work(dice, 30'000);
    expect_sound("WQEs that do not fit");
    renew();
  }
  expect_recovers();
}

TEST_P(Features, PacketsDoNotFit) {
  Dice dice(500 + GetParam());
  std::uint64_t garbled = 0;
  for (unsigned life = 0; life < rounds(16); ++life) {
    populate(dice);
    const std::string faults = "garble=0.1,duplicate=0.02,reorder=0.05,seed=";
    ASSERT_EQ(fn().inject(faults + std::to_string(1 + dice.below(1000000))), "");
    for (unsigned i = 0; i < 60; ++i) let_work(dice, 30'000);
    fn().inject("none");
    garbled += fn().counter("injected_garble");
    expect_sound("packets that do not fit");
    renew();
  }
  EXPECT_GT(garbled, 300u);
  expect_recovers();
}

INSTANTIATE_TEST_SUITE_P(Link, Features, kBothLinks, link_name);

}  // namespace
}  // namespace hcasim::bare
