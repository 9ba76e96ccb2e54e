// SPDX-License-Identifier: BSD-3-Clause
// Small complete uses of the device, one for each of its features: objects that fit together, and work for
// them. What fuzz tests begin with.
#ifndef HCASIM_TESTS_FUZZ_WORLDS_H
#define HCASIM_TESTS_FUZZ_WORLDS_H

#include <memory>
#include <vector>

#include "dice.h"
#include "driver/bare/device.h"

namespace hcasim::bare {

class Cq;
struct Completion;

class World {
 public:
  virtual ~World() = default;
  // Posts something, takes completions, queries, revives what is in error. Throws BareError when the device
  // refuses.
  virtual void work(Dice& dice) = 0;
  // Percent of WQEs that are changed before the device sees them.
  void set_spoiling(unsigned percent) { spoiling_ = percent; }
  // Further drivers that are at work in it, of other functions: nonsense may come from them as well.
  virtual std::vector<Device*> parties() { return {}; }
  // How often what it is about has come to pass: completions without an error, of that kind if there are
  // several.
  std::uint64_t good() const { return good_; }

 protected:
  // Takes the completions that are there, and counts the good ones that `counts` (all, if it is null).
  void drain(Cq& cq, bool (*counts)(const Completion&) = nullptr);

  unsigned spoiling_ = 0;
  std::uint64_t good_ = 0;
};

// Functions of the card beside the one that a world is made for, as world_cards.h puts them in order.
using Others = std::vector<Function*>;

struct WorldKind {
  const char* name;
  enum Link { kBoth, kIb, kEth } link;
  // The card that it needs; what needs a plain one works on each.
  enum Card {
    kPlain,
    kLatest,    // Ethernet, of the latest generation, and may encrypt
    kSwitch,    // Ethernet, with virtual functions
    kTwoPorts,  // Ethernet: two ports, one cable between them, with a virtual function each
    kIpoib      // InfiniBand, with IPoIB's offloads
  } card;
  std::unique_ptr<World> (*make)(Device&, const Others&);
  // Counters of the card that its work moves, by names with blanks between them.
  const char* moves;
};
const std::vector<WorldKind>& world_kinds();

// Opcodes that end the driver's own arrangements, and all worlds with them.
bool ends_all(std::uint16_t opcode);

// worlds_*.cpp
std::unique_ptr<World> make_connected(Device& device);  // RC, UC and UD
std::unique_ptr<World> make_xrc(Device& device);
std::unique_ptr<World> make_dc(Device& device);
std::unique_ptr<World> make_tags(Device& device);        // XRQ, eager and rendezvous
std::unique_ptr<World> make_keys(Device& device);        // UMR lists, windows, signatures
std::unique_ptr<World> make_paged(Device& device);       // on-demand paging
std::unique_ptr<World> make_management(Device& device);  // MADs of all classes, QP1 and MAD_IFC
std::unique_ptr<World> make_shares(Device& device);      // UMEMs, device memory, scheduling, pacing
std::unique_ptr<World> make_frames(Device& device);      // SQ, RQ, flow tables and their actions
std::unique_ptr<World> make_software(Device& device);    // tables that software writes
std::unique_ptr<World> make_matching(Device& device);    // fields of all kinds, rewriting, RSS
std::unique_ptr<World> make_receiving(Device& device);   // queues of all types, LRO, compressed CQEs
std::unique_ptr<World> make_congestion(Device& device);  // marks, CNPs and what they are answered with
std::unique_ptr<World> make_registers(Device& device);   // access registers, configuration space
std::unique_ptr<World> make_faults(Device& device);      // those of the plan
std::unique_ptr<World> make_splitting(Device& device);   // headers apart from data
std::unique_ptr<World> make_tls(Device& device);
std::unique_ptr<World> make_ipsec(Device& device);          // ESP that the driver makes
std::unique_ptr<World> make_ipsec_packets(Device& device);  // ... that the card makes
std::unique_ptr<World> make_macsec(Device& device);
std::unique_ptr<World> make_psp(Device& device);
std::unique_ptr<World> make_datagrams(Device& device);                        // IPoIB's, by queues of frames
std::unique_ptr<World> make_switchdev(Device& device, const Others& others);  // an FDB, its actions, ACLs
std::unique_ptr<World> make_legacy(Device& device, const Others& others);     // what is settled of vports
std::unique_ptr<World> make_aggregate(Device& device, const Others& others);  // a LAG, by queue and by table

}  // namespace hcasim::bare
#endif
