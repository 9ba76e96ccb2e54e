// SPDX-License-Identifier: BSD-3-Clause
// The translation list of a KSM that covers far more than is ever used: Linux's implicit on-demand paging has
// one over all of a process's addresses (mlx5_imr_ksm_entries in drivers/infiniband/hw/mlx5/odp.c), which
// with five levels of page tables are 2^26 pieces, 1 GiB of list, and fills it with one and the same piece
// first. What is uniform takes no memory here.
#ifndef HCASIM_MODEL_TPT_SPARSE_LIST_H
#define HCASIM_MODEL_TPT_SPARSE_LIST_H

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "model/state/state.h"

namespace hcasim {

class SparseList {
 public:
  // byte_count << 32 | mkey, then the address: as in Mkey::xlt.
  using Piece = std::array<std::uint64_t, 2>;

  static constexpr std::size_t kChunk = 256;  // pieces
  // Chunks that are not uniform, at most: what a guest can have set aside here beyond the table of chunks.
  // 2^18 pieces of 1 GiB are all that four levels of page tables reach.
  static constexpr std::size_t kMostFilled = 1024;

  // words: of 8 bytes, two a piece.
  explicit SparseList(std::uint64_t words = 0) : uniform_((words / 2 + kChunk - 1) / kChunk) {}

  // Words of memory that a list of so many can come to take.
  static std::uint64_t footprint(std::uint64_t words) {
    return words / kChunk + 1 + kMostFilled * kChunk * 2;
  }

  // Writes `n` words from word `first` on, both even, within the list. False: too many chunks are filled;
  // nothing is written.
  bool write(std::uint64_t first, const std::uint64_t* words, std::size_t n);
  // `index` within the list; zeros if it was never written.
  Piece at(std::uint64_t index) const;
  std::size_t filled() const { return filled_.size(); }  // chunks
  // One that was read back: it is a list of so many words.
  bool is_of(std::uint64_t words) const {
    if (uniform_.size() != (words / 2 + kChunk - 1) / kChunk || filled_.size() > kMostFilled) return false;
    for (const auto& [chunk, pieces] : filled_)
      if (chunk >= uniform_.size() || pieces.size() != kChunk) return false;
    return true;
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, uniform_, filled_);
  }

 private:
  std::vector<Piece> uniform_;                          // each chunk's, if it is not filled
  std::map<std::uint64_t, std::vector<Piece>> filled_;  // chunks whose pieces differ
};

}  // namespace hcasim
#endif
