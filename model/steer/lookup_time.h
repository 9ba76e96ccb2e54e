// SPDX-License-Identifier: BSD-3-Clause
// What the tables of the E-Switch take of a frame's time. A table is a chain of hash tables, one for each
// group that has entries: each is a look-up, and the next one waits for it. Look-ups of different frames
// follow each other closely. An entry that is not on the chip is read from the host's memory, as other
// contexts are. What an entry does to the frame takes time as well. The tables of a function's own (NIC,
// RDMA) are in the times of the pipelines: measured cards had their drivers' tables.
#ifndef HCASIM_MODEL_STEER_LOOKUP_TIME_H
#define HCASIM_MODEL_STEER_LOOKUP_TIME_H

#include <cstdint>

#include "model/ctx/cache.h"
#include "model/occupancy.h"
#include "model/profile.h"
#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

class ContextFetch;

class LookupTime {
 public:
  struct Blocks {
    const Profile& profile;
    ContextFetch& contexts;
  };
  explicit LookupTime(const Blocks& blocks);

  // A frame that comes to an entry at t: when it has been looked at. `line` names it (entry_line(), ...).
  Time look_up(Time t, std::uint64_t line);
  // An entry's actions at t: when they are done.
  Time rewrite(Time t) const { return t + profile_.rewrite; }
  Time reformat(Time t) const { return t + profile_.reformat; }

  // Of tables that firmware writes: an entry, and what a group that has none for the frame leads on by. Of
  // software's tables: an address in its memory.
  static constexpr std::uint64_t entry_line(std::uint32_t table, std::uint32_t index) {
    return std::uint64_t{table & 0xffffff} << 32 | index;
  }
  static constexpr std::uint64_t group_line(std::uint32_t table, std::uint32_t first) {
    return std::uint64_t{1} << 62 | entry_line(table, first);
  }
  static constexpr std::uint64_t software_line(std::uint64_t address) {
    return std::uint64_t{1} << 61 | address >> 6;
  }

  // The entry was written: what the chip holds of it is out of date.
  void changed(std::uint64_t line) { entries_.invalidate(line); }
  void clear();
  std::uint64_t hits() const { return entries_.hits(); }
  std::uint64_t misses() const { return entries_.misses(); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, entries_, busy_);
  }

 private:
  const Profile::Steering& profile_;
  ContextFetch& contexts_;
  ContextCache entries_;
  Occupancy busy_;
};

}  // namespace hcasim
#endif
