// SPDX-License-Identifier: BSD-3-Clause
// A door: a place where bytes come in that somebody else has made. Each is a program (entry.cpp) that
// libFuzzer drives in builds for it (HCASIM_FUZZ), and that in all others opens the door to the files it is
// given.
#ifndef HCASIM_TESTS_FUZZ_DOORS_DOOR_H
#define HCASIM_TESTS_FUZZ_DOORS_DOOR_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hcasim::fuzz {

// One input. It returns, whatever the bytes are, and the next one finds all as the first did: the same bytes
// do the same again. A crash, an error of a sanitizer, a hang, or finding(), is a finding.
void open_door(const std::uint8_t* bytes, std::size_t len);
// Inputs to begin with: what those send who mean well.
std::vector<std::string> seeds();

// Says what is wrong, and ends the process.
[[noreturn]] void finding(const std::string& what);

}  // namespace hcasim::fuzz
#endif
