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

class World {
 public:
  virtual ~World() = default;
  // Posts something, takes completions, queries, revives what is in error. Throws BareError when the device
  // refuses.
  virtual void work(Dice& dice) = 0;
  // Percent of WQEs that are changed before the device sees them.
  void set_spoiling(unsigned percent) { spoiling_ = percent; }

 protected:
  unsigned spoiling_ = 0;
};

struct WorldKind {
  enum Link { kBoth, kIb, kEth } link;
  std::unique_ptr<World> (*make)(Device&);
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

}  // namespace hcasim::bare
#endif
