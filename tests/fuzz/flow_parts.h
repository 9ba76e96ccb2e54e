// SPDX-License-Identifier: BSD-3-Clause
// Flow tables of any type whose entries look at any fields and do anything that the type may do.
#ifndef HCASIM_TESTS_FUZZ_FLOW_PARTS_H
#define HCASIM_TESTS_FUZZ_FLOW_PARTS_H

#include <deque>

#include "frame_parts.h"

namespace hcasim::bare {

enum : unsigned { kEgressAclTable = 2, kIngressAclTable = 3, kFdbTable = 4 };

// Up to three fields, all of their bits, and of the switch's own some. criteria: the blocks that they are of.
MatchParam some_mask(Dice& dice, unsigned& criteria, bool in_switch);
// Values of these fields that frames of any_frame() have, mostly.
MatchParam some_value(Dice& dice, const MatchParam& mask);

// A match definer of any format. Throws BareError if it has not got the fields.
EthObject some_definer(Device& device, Dice& dice);

// Contexts of actions, a few of each, and tables.
class Flows {
 public:
  // sq, cq: of that PD's, by which meters are set. None of them: no meters.
  Flows(Device& device, const Pd& pd, Sq* sq, Cq* cq);
  ~Flows() { clear(); }
  Flows(const Flows&) = delete;
  Flows& operator=(const Flows&) = delete;

  struct Table {
    std::uint32_t number, some, rest;  // groups: of indices 0 to 7, and 8 alone, that takes all
    unsigned type, level;
  };
  // With groups, and entries that lead to what is given, or to nothing. Refused entries are left out.
  Table build(Dice& dice, unsigned type, unsigned level, const std::vector<FlowDest>& to);
  // All tables and entries go.
  void clear();
  void query(Dice& dice);
  std::uint64_t packets();
  // Mbit/s and bursts of a meter, at random.
  void set_meter(Dice& dice);
  // Of two tables of one type, both of a higher level.
  std::uint32_t sampler(Dice& dice, const Table& samples, const Table& rest);

 private:
  void entry(Dice& dice, const Table& table, std::uint32_t index, const MatchParam& value,
             const std::vector<FlowDest>& to);
  std::uint32_t modify(Dice& dice, unsigned type);
  std::uint32_t reformat(Dice& dice, unsigned type);
  template <class Make>
  std::uint32_t keep(std::deque<EthObject>& all, const Make& make);

  Device& device_;
  std::uint32_t pd_;
  Sq* sq_;
  std::vector<EthObject> counters_;
  std::uint32_t meter_ = 0;
  std::vector<EthObject> meters_;
  std::deque<EthObject> tables_, samplers_, actions_, entries_;
};

}  // namespace hcasim::bare
#endif
