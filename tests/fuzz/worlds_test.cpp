// SPDX-License-Identifier: BSD-3-Clause
// Worlds of all kinds at their work, with nothing spoiled: something comes of each, and its card stays whole.
// (A process each: HCAs are made before time starts.)
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "prm/init_seg.h"
#include "rule_check.h"
#include "world_cards.h"

namespace hcasim::bare {
namespace {

struct Case {
  const WorldKind* kind;
  bool ethernet;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const WorldKind& k : world_kinds())
    for (const bool ethernet : {false, true})
      if (fits(k, k.card, ethernet)) all.push_back({&k, ethernet});
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.kind->name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name + (info.param.ethernet ? "_eth" : "_ib");
}

class Worlds : public ::testing::TestWithParam<Case> {};

TEST_P(Worlds, SomethingComesOfTheWork) {
  breaks_any_rule();
  const WorldKind& kind = *GetParam().kind;
  Machine machine(std::size_t{256} << 20);
  const auto options = card_options(kind.card);
  for (const std::string& o : options) machine.add_hca(o);
  for (std::size_t i = 0; i < options.size(); ++i)
    for (unsigned vf = 1; vf <= card_vfs(kind.card); ++vf) machine.add_virtual(machine.function(i), vf);
  machine.start();
  const std::size_t own = kind.card == WorldKind::kPlain && GetParam().ethernet ? 1 : 0;
  const std::size_t memory = machine.memory().pages_in_use();
  auto device = std::make_unique<Device>(machine.function(own), world_options());
  device->probe();
  std::vector<std::string> moves;
  std::istringstream names(kind.moves);
  for (std::string name; names >> name;) moves.push_back(name);
  std::map<std::string, std::uint64_t> before;
  {
    const auto world = kind.make(*device, others_of(machine, kind.card));
    for (const std::string& m : moves) before[m] = device->function().counter(m);
    Dice dice(1);
    const auto moved = [&] {
      return std::all_of(moves.begin(), moves.end(),
                         [&](const std::string& m) { return device->function().counter(m) > before[m]; });
    };
    // What it draws may switch off for long what is to move.
    for (unsigned i = 0; i < 100 || (i < 1000 && !moved()); ++i) {
      try {
        world->work(dice);
      } catch (const BareError& e) {
        ADD_FAILURE() << e.what();
        break;
      }
      machine.advance(10'000);
    }
    EXPECT_GT(world->good(), 10u);
  }
  for (const std::string& m : moves) EXPECT_GT(device->function().counter(m), before[m]) << m;
  for (std::size_t i = 0; i < machine.functions(); ++i)
    EXPECT_EQ(
        machine.function(i).read32(offsetof(prm::InitSeg, health) + offsetof(prm::HealthBuffer, irisc_index)),
        0u)
        << i;
  for (const std::string& line : machine.log(0))
    EXPECT_EQ(line.find("fault in the model"), std::string::npos) << line;
  for (const std::string& f : device->failed_destroys())
    ADD_FAILURE() << "a destructor's command failed: " << f;
  device.reset();
  EXPECT_EQ(machine.memory().pages_in_use(), memory) << "host memory leaked";
}

INSTANTIATE_TEST_SUITE_P(Kind, Worlds, ::testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace hcasim::bare
