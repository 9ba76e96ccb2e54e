// SPDX-License-Identifier: BSD-3-Clause
// A virtual function whose driver sends the card whatever comes to its mind, in front of two functions that
// work: they notice nothing of it, and the card gets over it. Seeded.
#include <vector>

#include "firmware-stub/opcodes.h"
#include "ib_vf_rig.h"
#include "tests/fuzz/dice.h"

namespace hcasim {
namespace {

using bare::Dice;

class HostileVf : public IbVf {
 protected:
  static constexpr FunctionId kHostile = 1, kGood = 2;

  // A command as there is one, of random content: mostly small numbers, which name what others may have.
  // False: it has no answer any more.
  bool command(bare::Device& d) {
    const fw::Opcode& op = fw::all_opcodes()[dice_.below(fw::all_opcodes().size())];
    Mailbox in(op.opcode, op.min_in + dice_.below(256), static_cast<std::uint16_t>(dice_.below(4)));
    for (std::size_t at = 8; at < in.size(); ++at) {
      if (!dice_.chance(30)) continue;
      in[at] = dice_.chance(70) ? static_cast<std::uint8_t>(dice_.below(8)) : dice_.byte();
    }
    if (dice_.chance(20) && in.size() >= 12) in[8] |= 0x80;  // other_function, other_vport
    return d.exec(in, op.min_out + dice_.below(256)).done;
  }

  // Doorbells for queues of any number, its own and those of others.
  void doorbell() {
    bare::Function& bar = c.machine.function(kHostile);
    const std::uint64_t page = (kFirstUarPage + dice_.below(fw::kVfUars)) * kUarPageSize;
    constexpr std::uint64_t kAt[] = {0x800, 0x820, 0x900, 0x20, 0x40, 0x48, 0x0, 0xff8};
    std::uint8_t bytes[8];
    prm::store32(bytes, static_cast<std::uint32_t>(dice_.below(1 << 16)) << 8);
    prm::store32(bytes + 4, dice_.chance(50) ? queues_[dice_.below(queues_.size())] : dice_.word());
    bar.write(page + kAt[dice_.below(std::size(kAt))], bytes, dice_.chance(70) ? 8 : 4);
  }

  bool anything(bare::Device& d) {
    bare::Function& bar = c.machine.function(kHostile);
    switch (dice_.below(8)) {
      case 0:
        bar.read32(dice_.below(kBarSize / 4) * 4);
        break;
      case 1: {  // the initialization segment; not the command queue's address, where its own driver is
        const std::uint64_t at = 0x1c + dice_.below(0x200) * 4;
        bar.write32(at, dice_.word());
        break;
      }
      case 2:
      case 3:
      case 4:
        doorbell();
        break;
      default:
        return command(d);
    }
    return true;
  }

  Dice dice_{17};
  std::vector<std::uint32_t> queues_;
};

TEST_F(HostileVf, ItsSiblingsNoticeNothing) {
  const unsigned rounds = bare::rounds(6);
  auto good = probed(kGood);
  End a(pf), b(*good);
  a.connect(b);
  b.connect(a);
  queues_ = {a.qp.qpn(), b.qp.qpn(), a.cq.cqn(), b.cq.cqn(), 0, 1};
  const auto objects = [&](FunctionId f) {
    std::vector<std::uint64_t> counts;
    for (const auto& counter : c.firmware.function(f).counters())
      if (std::strncmp(counter.name, "fw_", 3) != 0) counts.push_back(counter.value);
    return counts;
  };
  const auto of_pf = objects(0), of_good = objects(kGood);
  std::uint8_t seed = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    EXPECT_TRUE(enable(kHostile).ok());
    bare::Device hostile(c.machine.function(kHostile));
    hostile.probe();
    for (unsigned i = 0; i < 400; ++i) {
      try {
        if (!anything(hostile)) break;
      } catch (const bare::BareError&) {  // its own driver does not know what to make of it any more
        break;
      }
      if (i % 40 == 0) {
        EXPECT_TRUE(a.write(b, ++seed)) << round << ' ' << i;
        EXPECT_TRUE(b.write(a, ++seed)) << round << ' ' << i;
      }
    }
    EXPECT_TRUE(enable(kHostile, false).ok());
    EXPECT_EQ(objects(0), of_pf);
    EXPECT_EQ(objects(kGood), of_good);
    EXPECT_FALSE(c.card.dead());
    EXPECT_EQ(c.card.port().state(), PortState::kActive);
  }
  EXPECT_TRUE(pf.async_events().empty());
  EXPECT_TRUE(good->async_events().empty());
  // Whoever comes to it next finds it as if nothing had been.
  auto next = probed(kHostile);
  End d(*next), e(*good);
  d.connect(e);
  e.connect(d);
  EXPECT_TRUE(d.write(e, 1));
}

}  // namespace
}  // namespace hcasim
