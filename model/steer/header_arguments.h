// SPDX-License-Identifier: BSD-3-Clause
// Arguments of rewriting lists (MODIFY_HEADER_ARG): the values apart from the pattern of what is done with
// them, as entries of the later steering formats have both. Send queues write them.
#ifndef HCASIM_MODEL_STEER_HEADER_ARGUMENTS_H
#define HCASIM_MODEL_STEER_HEADER_ARGUMENTS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "model/state/fields.h"
#include "prm/header_argument.h"

namespace hcasim {

class HeaderArguments {
 public:
  using Line = std::array<std::uint8_t, prm::kHeaderArgument>;

  // Firmware's side: an object is a block of lines with numbers in a row, which queues of that PD may write.
  void create(std::uint32_t first, std::uint32_t count, std::uint32_t pd) {
    blocks_[first] = {count, pd, {}};
  }
  void destroy(std::uint32_t first) { blocks_.erase(first); }
  void clear() { blocks_.clear(); }

  // FLOW_TABLE_ACCESS from a queue of that PD: what stands behind the WQE's control segment. False: refused.
  bool write(std::uint32_t pd, std::uint32_t number, const std::uint8_t* segments, std::size_t len);
  // 64 bytes; fresh ones are zeros. Null: there is no such line.
  const std::uint8_t* line(std::uint32_t number);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, blocks_);
  }

 private:
  struct Block {
    std::uint32_t count = 0, pd = 0;
    std::map<std::uint32_t, Line> lines;  // those that have been written, by their place in the block

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, count, pd, lines);
    }
  };
  // The block of that line, which is left as its place in it; null: none.
  Block* find(std::uint32_t& number);

  std::map<std::uint32_t, Block> blocks_;  // by the first number
};

}  // namespace hcasim
#endif
