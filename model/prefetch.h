// SPDX-License-Identifier: BSD-3-Clause
// The processors of a guest take turns in running the model, each on a processor of the host's. What the
// last one wrote then comes over a cache line at a time, each when it is first touched, and that is most of
// what a lone WQE costs. Asked for together, ahead of their use, the lines come all at once.
// A block's prefetch() asks for those of its own that each WQE changes; prefetch_targets(), a little later,
// for what these point to. Both only cost time where they are of no use.
#ifndef HCASIM_MODEL_PREFETCH_H
#define HCASIM_MODEL_PREFETCH_H

#include <cstddef>
#include <cstdint>

namespace hcasim {

constexpr std::size_t kCacheLine = 64;

// To be written. The address may be any, null too.
inline void prefetch_line(const void* p) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(p)));  // the compiler's own needs -mprfchw
#else
  __builtin_prefetch(p, 1);
#endif
}

// The lines of `bytes` from p on.
inline void prefetch_range(const void* p, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(p) & ~(kCacheLine - 1);
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(p) + bytes;
  for (std::uintptr_t line = first; line < end; line += kCacheLine)
    prefetch_line(reinterpret_cast<const void*>(line));  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace hcasim
#endif
