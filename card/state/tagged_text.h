// SPDX-License-Identifier: BSD-3-Clause
// A saved state as text: a line for each value, with its path. Elements of lists have their number in the
// path: the object's, or the key, where they have one.
#ifndef HCASIM_CARD_STATE_TAGGED_TEXT_H
#define HCASIM_CARD_STATE_TAGGED_TEXT_H

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hcasim::saved {

// value: decimal numbers, bytes in hexadecimal, PRM contexts (of the name of a structure of mlx5_ifc.h) by
// their fields that are not zero. Throws StateError.
using Line = std::function<void(const std::string& path, const std::string& value)>;
void list(std::string_view file, const Line& line);

struct DiffCounts {
  std::size_t changed = 0, only_first = 0, only_second = 0;
  bool same() const { return changed + only_first + only_second == 0; }
};
// line: "PATH: A -> B", "PATH: only in the first one: A".
DiffCounts diff(std::string_view first, std::string_view second,
                const std::function<void(const std::string& line)>& line);

// Of which version of the card it is.
std::uint32_t version_of(std::string_view file);

}  // namespace hcasim::saved
#endif
