// SPDX-License-Identifier: BSD-3-Clause
#include "model/tpt/sparse_list.h"

#include <algorithm>

namespace hcasim {

SparseList::Piece SparseList::at(std::uint64_t index) const {
  const auto found = filled_.find(index / kChunk);
  return found != filled_.end() ? found->second[index % kChunk] : uniform_[index / kChunk];
}

bool SparseList::write(std::uint64_t first, const std::uint64_t* words, std::size_t n) {
  const std::uint64_t begin = first / 2, end = begin + n / 2;
  const auto piece = [&](std::uint64_t i) {
    return Piece{words[2 * (i - begin)], words[2 * (i - begin) + 1]};
  };
  // Whether the pieces [from, to) that are to be written are all the same.
  const auto same = [&](std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from + 1; i < to; ++i)
      if (piece(i) != piece(from)) return false;
    return true;
  };
  const auto whole = [](std::uint64_t from, std::uint64_t to) { return to - from == kChunk; };
  // Twice over the chunks: what would be filled is counted before anything is written.
  std::size_t more = 0;
  for (const bool count : {true, false}) {
    for (std::uint64_t from = begin, to = 0; from < end; from = to) {
      const std::uint64_t chunk = from / kChunk;
      to = std::min(end, (chunk + 1) * kChunk);
      const auto found = filled_.find(chunk);
      const bool is_same = same(from, to);
      if (is_same && (whole(from, to) || (found == filled_.end() && piece(from) == uniform_[chunk]))) {
        if (count) continue;
        uniform_[chunk] = piece(from);
        if (found != filled_.end()) filled_.erase(found);
      } else if (count) {
        more += found == filled_.end() ? 1 : 0;
      } else {
        auto& pieces = filled_[chunk];
        if (pieces.empty()) pieces.assign(kChunk, uniform_[chunk]);
        for (std::uint64_t i = from; i < to; ++i) pieces[i % kChunk] = piece(i);
      }
    }
    if (count && filled_.size() + more > kMostFilled) return false;
  }
  return true;
}

}  // namespace hcasim
