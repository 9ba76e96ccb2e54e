// SPDX-License-Identifier: BSD-3-Clause
// The driver's side of a card with its features in use (worlds.h): commands that were right but for what the
// input says, WQEs and memory that are otherwise, packets that do not fit.
#include "card_rig.h"
#include "door.h"
#include "firmware-stub/opcodes.h"
#include "tests/fuzz/worlds.h"

namespace hcasim::fuzz {
namespace {

using namespace hcasim::bare;

CardRig& rig() {
  static CardRig* const made = [] {
    auto* r = new CardRig({"link=ib", "link=eth"});
    r->keep();
    return r;
  }();
  return *made;
}

class Visit {
 public:
  Visit(Dice& dice, std::size_t function) : dice_(dice), device_(rig().function(function), options()) {
    device_.probe();
    device_.cmd().set_observer([this](const Mailbox& in, const CommandResult& r) {
      if (seen_.size() < 200) seen_.push_back(in);
      if (r.ok() && r.out.size() >= 12 && names_.size() < 200)
        names_.push_back(prm::load32(r.out.data() + 8) & 0xffffff);
    });
  }
  ~Visit() {
    function().set_dma_tamper({});
    device_.cmd().set_observer({});
  }

  void run() {
    const auto& kinds = world_kinds();
    const WorldKind& kind = kinds[dice_.below(kinds.size())];
    if (kind.link != WorldKind::kBoth && (kind.link == WorldKind::kEth) != device_.ethernet()) return;
    const unsigned spoiling = static_cast<unsigned>(dice_.below(60));
    if (dice_.chance(30)) {
      tampering_ = true;
      function().set_dma_tamper([this](std::uint64_t, std::uint8_t* bytes, std::size_t len) {
        if (tampering_ && device_.cmd().in_flight() == 0 && dice_.chance(5)) dice_.spoil(bytes, len);
      });
    }
    try {
      const std::unique_ptr<World> world = kind.make(device_);
      world->set_spoiling(spoiling);
      for (unsigned step = 0; step < 40 && !dice_.used_up(); ++step) act(*world);
      tampering_ = false;
    } catch (const BareError&) {  // refused, or nothing came
    }
    device_.machine().advance(100'000);
  }

 private:
  static DeviceOptions options() {
    DeviceOptions o;
    o.event_commands = false;
    return o;
  }
  Function& function() { return device_.function(); }

  void act(World& world) {
    try {
      switch (dice_.below(8)) {
        case 0:
          command(spoiled());
          break;
        case 1:
          command(any());
          break;
        case 2:
          if (function().inject("garble=0.2,duplicate=0.05,reorder=0.05,seed=" +
                                std::to_string(1 + dice_.below(256))) != "")
            finding("inject");
          break;
        case 3:
          registers();
          break;
        default:
          world.work(dice_);
      }
    } catch (const BareError&) {
    }
    device_.machine().advance(static_cast<std::int64_t>(dice_.below(256)) * 100);
  }
  void command(const Mailbox& in) {
    if (ends_all(in.opcode())) return;
    if (!device_.cmd().exec(in, 16 + dice_.below(1024)).done) finding("a command has no answer");
  }
  std::uint32_t name() { return names_.empty() ? 0 : names_[dice_.below(names_.size())]; }
  Mailbox spoiled() {
    Mailbox in = seen_.empty() ? Mailbox(0x100, 16) : seen_[dice_.below(seen_.size())];
    if (dice_.chance(8))
      in.resize(dice_.chance(50) ? 8 + dice_.below(in.size() - 7) : in.size() + dice_.below(600));
    if (in.size() >= 12 && dice_.chance(30)) prm::store32(in.data() + 8, name());
    dice_.spoil(in.data(), in.size(), 4);
    return in;
  }
  Mailbox any() {
    const auto& all = fw::all_opcodes();
    const fw::Opcode& op = all[dice_.below(all.size())];
    Mailbox in(op.opcode, std::max<std::size_t>(8, op.min_in + dice_.below(300)),
               static_cast<std::uint16_t>(dice_.below(64)));
    for (std::size_t at = 8; at + 4 <= in.size() && !dice_.used_up(); at += 4 * (1 + dice_.below(8)))
      prm::store32(in.data() + at, dice_.chance(40)   ? name()
                                   : dice_.chance(50) ? dice_.edge()
                                                      : dice_.word());
    return in;
  }
  void registers() {
    // Beside the command queue's address, which is the driver's own: a new one is legal, and deafening.
    std::uint64_t offset = 0x20 + dice_.below(HCA_BAR0_SIZE);
    if (dice_.chance(70)) offset = device_.uar_offset() + dice_.below(4096);
    const std::size_t len = std::size_t{1} << dice_.below(4);
    const std::uint64_t value = dice_.chance(50) ? dice_.word() : dice_.any();
    if (dice_.chance(80))
      function().write(offset, &value, len);
    else
      static_cast<void>(hca_mmio_read(function().handle(), offset, static_cast<unsigned>(len)));
  }

  Dice& dice_;
  Device device_;
  std::vector<Mailbox> seen_;
  std::vector<std::uint32_t> names_;
  bool tampering_ = false;
};

}  // namespace

void open_door(const std::uint8_t* bytes, std::size_t len) {
  rig().rewind();
  Dice dice(bytes, len);
  Visit(dice, dice.below(2)).run();
  rig().check();
}

std::vector<std::string> seeds() {
  std::vector<std::string> all;
  for (unsigned char link = 0; link < 2; ++link)
    for (std::size_t kind = 0; kind < world_kinds().size(); ++kind)
      for (unsigned n = 0; n < 4; ++n) {
        std::string seed{static_cast<char>(link), static_cast<char>(kind)};
        std::mt19937_64 random(n + 100 * kind);
        for (unsigned i = 0; i < 300 * n; ++i) seed.push_back(static_cast<char>(random()));
        all.push_back(seed);
      }
  return all;
}

}  // namespace hcasim::fuzz
