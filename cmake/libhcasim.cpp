// SPDX-License-Identifier: BSD-3-Clause
// libhcasim.so consists of static libraries (Install.cmake); a CMake target wants a source of its own.
#include "card/api/hca_api.h"

static_assert(HCA_API_VERSION != 0);
