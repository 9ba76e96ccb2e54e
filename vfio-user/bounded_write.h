// SPDX-License-Identifier: BSD-3-Clause
// Writing to a descriptor that somebody else holds, too: whether a write to it waits is a flag of what both
// have (O_NONBLOCK), which the other one may change at any time, and so may what it has room for.
#ifndef HCASIM_VFIO_USER_BOUNDED_WRITE_H
#define HCASIM_VFIO_USER_BOUNDED_WRITE_H

#include <cstddef>

namespace hcasim::vfio_user {

// As write(2), but that it has ended after a few tenths of a second: then as if a signal had ended it
// (EINTR). The signal that it is ended by is SIGURG, which does nothing else in this process.
bool bounded_write(int fd, const void* bytes, std::size_t len);

}  // namespace hcasim::vfio_user
#endif
