// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/flow.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace hcasim::coverage {
namespace {

std::int64_t relative(const std::uint8_t* at, std::size_t size) {
  if (size == 1) return static_cast<std::int8_t>(*at);
  std::int32_t value;
  std::memcpy(&value, at, 4);
  return value;
}

bool is_prefix(std::uint8_t byte) {
  return byte == 0x66 || byte == 0x67 || byte == 0x2e || byte == 0x36 || byte == 0x3e || byte == 0x26 ||
         byte == 0x64 || byte == 0x65 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 ||
         (byte & 0xf0) == 0x40;
}

/// movs, cmps, stos, lods, scas, ins, outs.
bool is_string(std::uint8_t opcode) {
  return (opcode >= 0x6c && opcode <= 0x6f) || (opcode >= 0xa4 && opcode <= 0xa7) ||
         (opcode >= 0xaa && opcode <= 0xaf);
}

struct Edge {
  std::optional<std::uint64_t> count;
};

/// The equations, and what is known so far.
class Solver {
 public:
  Solver(const Steps& steps, const std::vector<Place>& entries) : steps_(steps), entries_(entries) {
    find_open();
    for (const auto& [place, step] : steps_) {
      if (step.kind == Kind::kConditional) {
        const std::size_t first = edges_.size();
        edges_.resize(first + 2);
        ways_[place] = first;
        arrive(after(place, step), first);
        if (step.target) arrive(*step.target, first + 1);
        // Nobody can have gone where nothing ran.
        if (steps_.count(after(place, step)) == 0) edges_[first].count = 0;
        if (step.target && steps_.count(*step.target) == 0) edges_[first + 1].count = 0;
      } else if (step.kind == Kind::kJump) {
        if (step.target) arrive(*step.target, known(step.count));
      } else if (step.kind != Kind::kIndirectJump && step.kind != Kind::kReturn) {
        arrive(after(place, step), known(step.count));
      }
    }
  }

  std::map<Place, Ways> solve() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [place, first] : ways_) {
        const std::uint64_t count = steps_.at(place).count;
        changed |= complete(edges_[first], edges_[first + 1], count);
        changed |= complete(edges_[first + 1], edges_[first], count);
      }
      for (const auto& [place, into] : into_) changed |= balance(place, into);
    }
    std::map<Place, Ways> result;
    for (const auto& [place, first] : ways_) result[place] = {edges_[first].count, edges_[first + 1].count};
    return result;
  }

 private:
  static Place after(const Place& place, const Step& step) {
    return {place.section, place.offset + step.size};
  }
  std::size_t known(std::uint64_t count) {
    edges_.push_back({count});
    return edges_.size() - 1;
  }
  void arrive(const Place& place, std::size_t edge) {
    if (steps_.count(place) != 0) into_[place].push_back(edge);
  }

  /// Functions with a jump to an address that is computed: any of their instructions may be its target.
  void find_open() {
    for (const auto& [place, step] : steps_)
      if (step.kind == Kind::kIndirectJump) open_.insert(function_of(place));
  }
  std::size_t function_of(const Place& place) const {
    return static_cast<std::size_t>(std::upper_bound(entries_.begin(), entries_.end(), place) -
                                    entries_.begin());
  }

  /// One way of two from the other.
  static bool complete(const Edge& from, Edge& to, std::uint64_t sum) {
    if (!from.count || to.count) return false;
    to.count = sum - std::min(sum, *from.count);
    return true;
  }

  bool balance(const Place& place, const std::vector<std::size_t>& into) {
    if (std::binary_search(entries_.begin(), entries_.end(), place) || open_.count(function_of(place)) != 0)
      return false;
    Edge* unknown = nullptr;
    std::uint64_t sum = 0;
    for (const std::size_t edge : into) {
      if (edges_[edge].count)
        sum += *edges_[edge].count;
      else if (unknown != nullptr)
        return false;
      else
        unknown = &edges_[edge];
    }
    if (unknown == nullptr) return false;
    const std::uint64_t count = steps_.at(place).count;
    unknown->count = count - std::min(count, sum);
    return true;
  }

  const Steps& steps_;
  const std::vector<Place>& entries_;
  std::vector<Edge> edges_;
  std::map<Place, std::size_t> ways_;  ///< straight on; the next edge is the jump
  std::map<Place, std::vector<std::size_t>> into_;
  std::set<std::size_t> open_;
};

}  // namespace

Decoded decode(const std::uint8_t* bytes, std::size_t size) {
  bool repeated = false;
  std::size_t i = 0;
  while (i < size && is_prefix(bytes[i])) {
    repeated |= bytes[i] == 0xf2 || bytes[i] == 0xf3;
    i++;
  }
  if (i == size) return {};
  const std::uint8_t opcode = bytes[i];
  const std::size_t left = size - i - 1;
  if (repeated && is_string(opcode)) return {Kind::kRepeated, 0};
  const bool short_condition = (opcode >= 0x70 && opcode <= 0x7f) || (opcode >= 0xe0 && opcode <= 0xe3);
  if (short_condition && left == 1) return {Kind::kConditional, relative(bytes + size - 1, 1)};
  if (opcode == 0x0f && left == 5 && (bytes[i + 1] & 0xf0) == 0x80)
    return {Kind::kConditional, relative(bytes + size - 4, 4)};
  if (opcode == 0xeb && left == 1) return {Kind::kJump, relative(bytes + size - 1, 1)};
  if (opcode == 0xe9 && left == 4) return {Kind::kJump, relative(bytes + size - 4, 4)};
  if (opcode == 0xc3 || opcode == 0xc2 || opcode == 0xcb || opcode == 0xcf) return {Kind::kReturn, 0};
  if (opcode == 0xff && left >= 1 && ((bytes[i + 1] >> 3) & 7) == 4) return {Kind::kIndirectJump, 0};
  return {};
}

void settle_repeated(Steps& steps) {
  for (auto at = steps.rbegin(); at != steps.rend(); ++at) {
    auto& [place, step] = *at;
    if (step.kind != Kind::kRepeated) continue;
    const auto next = steps.find({place.section, place.offset + step.size});
    step.count = next != steps.end() ? std::min(step.count, next->second.count) : 1;
  }
}

std::map<Place, Ways> solve(const Steps& steps, const std::vector<Place>& entries) {
  return Solver(steps, entries).solve();
}

}  // namespace hcasim::coverage
