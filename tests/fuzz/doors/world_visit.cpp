// SPDX-License-Identifier: BSD-3-Clause
#include "world_visit.h"

#include "card_rig.h"
#include "door.h"
#include "firmware-stub/opcodes.h"
#include "tests/fuzz/world_cards.h"

namespace hcasim::fuzz {
namespace {

using namespace hcasim::bare;

// A process opens one door, and has one machine.
CardRig& rig(WorldKind::Card card) {
  static CardRig* const made = [card] {
    auto* r = new CardRig(card_options(card), card_vfs(card));
    r->keep();
    return r;
  }();
  return *made;
}

// What may be visited: kinds of worlds by the input's number. The card's own come first.
std::vector<const WorldKind*> kinds_at(WorldKind::Card card) {
  std::vector<const WorldKind*> kinds;
  for (const bool own : {true, false})
    for (const WorldKind& k : world_kinds())
      if ((k.card == card) == own &&
          (fits(k, card, card != WorldKind::kIpoib) || (card == WorldKind::kPlain && fits(k, card, false))))
        kinds.push_back(&k);
  return kinds;
}

class Visit {
 public:
  Visit(Dice& dice, WorldKind::Card card, std::size_t function)
      : dice_(dice), card_(card), device_(rig(card).function(function), world_options()) {
    device_.probe();
    observe(device_);
  }
  ~Visit() {
    function().set_dma_tamper({});
    device_.cmd().set_observer({});
  }

  void run() {
    const auto kinds = kinds_at(card_);
    const WorldKind& kind = *kinds[dice_.below(kinds.size())];
    if (!fits(kind, card_, device_.ethernet())) return;
    const unsigned spoiling = static_cast<unsigned>(dice_.below(60));
    if (dice_.chance(30)) {
      tampering_ = true;
      function().set_dma_tamper([this](std::uint64_t, std::uint8_t* bytes, std::size_t len) {
        if (tampering_ && device_.cmd().in_flight() == 0 && dice_.chance(5)) dice_.spoil(bytes, len);
      });
    }
    try {
      const std::unique_ptr<World> world = kind.make(device_, others_of(device_.machine(), card_));
      world->set_spoiling(spoiling);
      parties_ = world->parties();
      for (Device* d : parties_) observe(*d);
      parties_.push_back(&device_);
      for (unsigned step = 0; step < 40 && !dice_.used_up(); ++step) act(*world);
      tampering_ = false;
    } catch (const BareError&) {  // refused, or nothing came
    }
    device_.machine().advance(100'000);
  }

 private:
  void observe(Device& d) {
    d.cmd().set_observer([this](const Mailbox& in, const CommandResult& r) {
      if (seen_.size() < 200) seen_.push_back(in);
      if (r.ok() && r.out.size() >= 12 && names_.size() < 200)
        names_.push_back(prm::load32(r.out.data() + 8) & 0xffffff);
    });
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
    Device& by = party();
    if (!by.cmd().exec(in, 16 + dice_.below(1024)).done && by.up()) finding("a command has no answer");
  }
  // Whose nonsense it is: mostly that of others, if there are any.
  Device& party() { return parties_.size() < 2 ? device_ : *parties_[dice_.below(parties_.size())]; }
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
  const WorldKind::Card card_;
  Device device_;
  std::vector<Device*> parties_;
  std::vector<Mailbox> seen_;
  std::vector<std::uint32_t> names_;
  bool tampering_ = false;
};

}  // namespace

void visit_world(WorldKind::Card card, const std::uint8_t* bytes, std::size_t len) {
  rig(card).rewind();
  Dice dice(bytes, len);
  const std::size_t link = dice.below(2);
  Visit(dice, card, card == WorldKind::kPlain ? link : 0).run();
  rig(card).check();
}

std::vector<std::string> world_seeds(WorldKind::Card card) {
  std::vector<std::string> all;
  const auto kinds = kinds_at(card);
  for (unsigned char link = 0; link < (card == WorldKind::kPlain ? 2 : 1); ++link)
    for (std::size_t kind = 0; kind < kinds.size(); ++kind)
      for (const unsigned n : {0u, 1u, 2u, 3u, 6u, 12u}) {
        std::string seed{static_cast<char>(link), static_cast<char>(kind)};
        std::mt19937_64 random(n + 100 * kind);
        for (unsigned i = 0; i < 300 * n; ++i) seed.push_back(static_cast<char>(random()));
        all.push_back(seed);
      }
  return all;
}

}  // namespace hcasim::fuzz
