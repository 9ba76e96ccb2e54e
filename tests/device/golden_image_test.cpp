// SPDX-License-Identifier: BSD-3-Clause
// Images of a virtual function that earlier builds have made, in processes of their own: each goes into a
// function of a card that is new; one of this version is saved again as the same bytes. Where the version of
// states is raised, HCASIM_NEW_GOLDEN_IMAGE=FILE has the second test write the next one there.
#include <cstdlib>

#include "../files.h"
#include "card/state/version.h"
#include "golden.h"
#include "migration_rig.h"

namespace hcasim {
namespace {

constexpr std::uint32_t kFirstGolden = 7;

// But for capabilities, which later builds may have more or fewer of.
std::string differences(const std::string& a, const std::string& b) {
  if (a == b) return "";
  const test::Folder folder;
  test::write_bytes(folder / "a", a);
  test::write_bytes(folder / "b", b);
  return test::run(STATE_TOOL " diff " + (folder / "a") + " " + (folder / "b") +
                   " | grep -v -e '^firmware.general:' -e ' values differ, '")
      .text;
}

class GoldenImage : public Migrating, public ::testing::WithParamInterface<std::uint32_t> {
  void TearDown() override {}  // what it works in is not its memory: strays are no fault
};

TEST_P(GoldenImage, GoesIntoAnotherProcess) {
  const std::string image =
      test::unpacked(test::bytes_of(GOLDEN_IMAGES + std::to_string(GetParam()) + ".gz"));
  ASSERT_GT(image.size(), 10'000u);
  ASSERT_TRUE(enable(1).ok());
  stop(1);
  const CommandResult loaded = load(1, image);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  if (GetParam() == saved::kVersion) {
    EXPECT_EQ(differences(image, settled_image_of(1)), "");
  }
  // It works with what it was given, in memory that has none of it: what it had sent is sent again.
  QpTable& qps = c.card.function(1).qps();
  EXPECT_EQ(qps.qp_count(), 2u);
  unsigned sending = 0;
  qps.for_each_qp([&](Qp& qp) { sending += !qp.req.window.empty(); });
  EXPECT_EQ(sending, 1u);
  const std::uint64_t accesses = c.hosts[1].accesses;
  go(1);
  c.machine.advance(10'000'000);
  EXPECT_FALSE(c.card.dead());
  EXPECT_GT(c.hosts[1].accesses, accesses);
  c.card.reset(1);
  EXPECT_TRUE(probed(1)->query_vport().ok());
}

INSTANTIATE_TEST_SUITE_P(Versions, GoldenImage, ::testing::Range(kFirstGolden, saved::kVersion + 1));

TEST_F(Migrating, TheNextGoldenImageCanBeMade) {
  auto vf = probed(1);
  Stream a(pf), b(*vf);
  a.connect(b);
  b.connect(a);
  End other(*vf);
  for (int i = 0; i < 5; ++i) {
    a.pump(8);
    b.pump(8);
    c.machine.advance(1'000);
  }
  b.pump(24);  // more than it finds receives for there, so that it waits to send some again
  stop(1);
  const std::string image = settled_image_of(1);
  EXPECT_TRUE(test::unpacked(test::packed(image)) == image);
  if (const char* const to = std::getenv("HCASIM_NEW_GOLDEN_IMAGE"))
    test::write_bytes(to, test::packed(image));
  // It goes into another function, too; its driver ends it there.
  c.card.reset(1);
  ASSERT_TRUE(enable(2).ok());
  stop(2);
  ASSERT_TRUE(load(2, image).ok());
  c.hosts[1].function = nullptr;
  lead(1, 2);
  go(2);
}

}  // namespace
}  // namespace hcasim
