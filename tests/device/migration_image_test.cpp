// SPDX-License-Identifier: BSD-3-Clause
// Images of functions that are not as they were: refused, and nothing is changed; or what a driver could have
// made itself.
#include <libdeflate.h>

#include "migration_rig.h"
#include "tests/fuzz/dice.h"

namespace hcasim {
namespace {

// The head and the checksum as they are; anything else may have been made by whoever hands it over.
void sign(std::string& image) {
  const std::uint32_t crc = libdeflate_crc32(0, image.data(), image.size() - 4);
  for (unsigned i = 0; i < 4; ++i) image[image.size() - 4 + i] = static_cast<char>(crc >> 8 * i);
}

TEST_F(Migrating, DamagedImagesChangeNothing) {
  auto vf = probed(1);
  Stream a(pf), b(*vf);
  a.connect(b);
  b.connect(a);
  a.pump(8);
  b.pump(8);
  c.machine.advance(3'000);
  stop(1);
  const std::string image = image_of(1);
  auto other = probed(2);
  End d(*other);
  stop(2);
  const std::uint64_t before = digest(2);
  const auto refused = [&](const std::string& bytes, const char* what) {
    EXPECT_EQ(load(2, bytes).status, CmdStatus::kBadParam) << what;
    EXPECT_EQ(digest(2), before) << what;
  };
  refused(image.substr(0, image.size() / 2), "half of it");
  refused(image.substr(0, 20), "its beginning");
  refused(image + "and more", "too long");
  std::string flipped = image;
  flipped[image.size() / 2] = static_cast<char>(flipped[image.size() / 2] ^ 1);
  refused(flipped, "a bit");
  std::string of_another = image;
  const auto at = of_another.find("connectx7");
  ASSERT_NE(at, std::string::npos);
  of_another[at + 8] = '6';
  sign(of_another);
  refused(of_another, "another generation");
  std::string fewer_keys = image;
  const std::string name("\x05pkeys");
  const auto keys = fewer_keys.find(name);
  ASSERT_NE(keys, std::string::npos);
  fewer_keys[keys + name.size()] = 2;  // their bytes
  sign(fewer_keys);
  refused(fewer_keys, "a P_Key table of one");
  ASSERT_FALSE(c.card.dead());
  EXPECT_GE(c.firmware.function(2).migration().refused, 6u);
  // Of a function that goes on: its GID is in use.
  go(1);
  refused(image, "a GID of another function");
  // It goes on as it was.
  go(2);
  EXPECT_TRUE(d.qp.query().ok());
}

// What one command would then read, and what the peer could make the function keep.
TEST_F(Migrating, ForgedSizesAreRefused) {
  auto vf = probed(1);
  End end(*vf);
  stop(1);
  ASSERT_TRUE(enable(2).ok());
  stop(2);
  Function& f = c.card.function(1);
  Cq& cq = *f.cqs().find(end.cq.cqn());
  Qp& qp = *f.qps().find(end.qp.qpn());
  const auto refused = [&](auto& field, unsigned value) {
    const auto before = field;
    field = value;
    EXPECT_EQ(load(2, image_of(1)).status, CmdStatus::kBadParam) << value;
    field = before;
  };
  refused(cq.cqe_size, 4096);
  refused(cq.cqe_size, 0xffffffc0);
  refused(cq.ring.log_page, 63);
  refused(qp.log_rra_max, 31);
  refused(qp.log_sra_max, 31);
  EXPECT_TRUE(load(2, image_of(1)).ok());
  c.card.reset(2);
  go(1);
}

// Bytes changed under a right checksum: refused, or a function that works with what it was given as a driver
// could have made it. The card lives, and others notice nothing.
TEST_F(Migrating, ForgedImagesHurtNobody) {
  auto vf = probed(1);
  Stream a(pf), b(*vf);
  a.connect(b);
  b.connect(a);
  for (int i = 0; i < 5; ++i) {
    a.pump(8);
    b.pump(8);
    c.machine.advance(1'000);
  }
  b.pump(12);  // it has work to go on with
  stop(1);
  const std::string image = image_of(1);
  bare::Dice dice(11);
  unsigned loaded = 0, refused = 0;
  constexpr int kForged = 400;
  for (int i = 0; i < kForged; ++i) {
    std::string forged = image;
    const unsigned changes = 1 + dice.below(3);
    for (unsigned n = 0; n < changes; ++n) {
      const std::size_t at = 28 + dice.below(forged.size() - 32);
      forged[at] = static_cast<char>(dice.chance(50) ? dice.byte() : forged[at] ^ (1 << dice.below(8)));
    }
    sign(forged);
    ASSERT_TRUE(enable(2).ok());
    stop(2);
    const auto r = load(2, forged);
    if (r.ok()) {
      ++loaded;
      go(2);
      c.machine.advance(50'000);
    } else {
      ASSERT_EQ(r.status, CmdStatus::kBadParam) << r.text();
      ++refused;
    }
    ASSERT_FALSE(c.card.dead()) << i;
    c.card.reset(2);
  }
  EXPECT_GT(loaded, 10u);
  EXPECT_GT(refused, 10u);
  EXPECT_TRUE(pf.query_vport().ok());
  vf->function_reset();
}

// Records that are not as they were, or not in their order.
TEST_F(Migrating, DamagedRecordsChangeNothing) {
  auto vf = probed(1);
  End b(*vf);
  Records records = ahead_of(1, 0);
  bare::Mr another(*vf, bare::Mr::of(b.pd, b.buffer));
  stop(1);
  const Records chunks = in_chunks(1, 64, true);
  ASSERT_GT(chunks.size(), 2u);
  ASSERT_TRUE(enable(2).ok());
  stop(2);
  const std::uint64_t before = digest(2);
  const auto refused = [&](const std::string& record, const char* what) {
    EXPECT_EQ(load_record(2, record).status, CmdStatus::kBadParam) << what;
    EXPECT_EQ(digest(2), before) << what;
  };
  refused(chunks[1], "without the one before");
  refused("hcaimage", "no head");
  refused(std::string(4096, '\0'), "nothing");
  std::string more = records[0];
  more[12] = 8;
  refused(more, "a flag that there is not");
  // A frame that says it makes more than any image has.
  std::string large = records[0].substr(0, 16) + "\x28\xb5\x2f\xfd\xe0";
  large += std::string(7, '\xff') + '\x7f' + std::string(16, '\0');
  refused(large, "larger than any");
  // Some bits of a frame's head mean nothing: such a record is as good as the one without.
  bare::Dice dice(5);
  int taken = 0;
  for (int i = 0; i < 300; ++i) {
    std::string forged = records[0];
    const std::size_t at = 16 + dice.below(forged.size() - 16);
    forged[at] = static_cast<char>(forged[at] ^ (1 << dice.below(8)));
    taken += load_record(2, forged).ok();
    ASSERT_EQ(digest(2), before) << at;
  }
  EXPECT_LT(taken, 5);
  refused(records[0].substr(0, records[0].size() - 1), "too short");
  refused(records[0] + "x", "too long");
  // An update of something else.
  ASSERT_TRUE(load_record(2, chunks[0]).ok());
  for (std::size_t i = 1; i + 1 < chunks.size(); ++i) ASSERT_TRUE(load_record(2, chunks[i]).ok());
  refused(chunks.back(), "without what went ahead");
  // In their order they are taken.
  ASSERT_TRUE(load_record(2, records[0]).ok());
  for (const std::string& record : chunks) ASSERT_TRUE(load_record(2, record).ok());
  EXPECT_NE(digest(2), before);
  go(2);
  c.card.reset(2);
  go(1);
}

}  // namespace
}  // namespace hcasim
