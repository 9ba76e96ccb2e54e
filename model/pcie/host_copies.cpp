// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/host_copies.h"

#include <cstring>

namespace hcasim {

std::uint8_t* HostCopies::dst_ = nullptr;
const std::uint8_t* HostCopies::src_ = nullptr;
std::size_t HostCopies::len_ = 0;

void HostCopies::copy() {
  std::memmove(dst_, src_, len_);  // a message may go onto itself
  len_ = 0;
}

}  // namespace hcasim
