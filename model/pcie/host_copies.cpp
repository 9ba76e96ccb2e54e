// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/host_copies.h"

#include <cstring>

namespace hcasim {

void HostCopies::copy() {
  std::memmove(dst_, src_, len_);  // a message may go onto itself
  len_ = 0;
}

}  // namespace hcasim
