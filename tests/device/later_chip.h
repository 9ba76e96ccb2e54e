// SPDX-License-Identifier: BSD-3-Clause
// Tests of what the default chip does not have are run once more on a later one (CMakeLists.txt). There they
// must not be left out, whatever the chip says that it offers.
#ifndef HCASIM_TESTS_DEVICE_LATER_CHIP_H
#define HCASIM_TESTS_DEVICE_LATER_CHIP_H

#include <cstdlib>
#include <cstring>

namespace hcasim::bare {

// Whether HCASIM_TEST_OPTIONS choose the generation of the HCAs under test.
inline bool later_chip() {
  const char* const options = std::getenv("HCASIM_TEST_OPTIONS");
  return options != nullptr && std::strstr(options, "generation=") != nullptr;
}

}  // namespace hcasim::bare
#endif
