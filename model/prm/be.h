// SPDX-License-Identifier: BSD-3-Clause
/// Big-endian integers without alignment, for structures laid over bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hcasim::prm {

template <class T, unsigned N>
struct Be {
  uint8_t b[N];

  Be() = default;
  constexpr Be(T v) : b{} { store(v); }  // NOLINT: meant to be implicit
  constexpr operator T() const {
    T v = 0;
    for (unsigned i = 0; i < N; i++) v = static_cast<T>(v << 8 | b[i]);
    return v;
  }
  constexpr Be& operator=(T v) {
    store(v);
    return *this;
  }

 private:
  constexpr void store(T v) {
    for (unsigned i = 0; i < N; i++) b[i] = static_cast<uint8_t>(v >> (8 * (N - 1 - i)));
  }
};

using be16 = Be<uint16_t, 2>;
using be24 = Be<uint32_t, 3>;
using be32 = Be<uint32_t, 4>;
using be48 = Be<uint64_t, 6>;
using be64 = Be<uint64_t, 8>;
static_assert(sizeof(be16) == 2 && sizeof(be24) == 3 && sizeof(be32) == 4 && sizeof(be48) == 6 &&
              sizeof(be64) == 8 && alignof(be64) == 1);

}  // namespace hcasim::prm
