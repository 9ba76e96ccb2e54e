// SPDX-License-Identifier: BSD-3-Clause
/// Unaligned big-endian integers, for structures that overlay bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hcasim::prm {

template <class T, unsigned N>
struct Be {
  uint8_t b[N];

  Be() = default;
  constexpr Be(T v) : b{} { store(v); }  // NOLINT: meant to be implicit
  constexpr operator T() const { return load(std::make_integer_sequence<unsigned, N>()); }
  constexpr Be& operator=(T v) {
    store(v);
    return *this;
  }

 private:
  // One load or store and a byte swap, which compilers do not always recognize in the bytes spelled out.
  // Those are for constant expressions, for other sizes and big-endian processors.
  static constexpr bool kSwaps =
      __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && N == sizeof(T) && (N == 4 || N == 8);
  static T swapped(T v) {
    if constexpr (N == 8)
      return static_cast<T>(__builtin_bswap64(v));
    else
      return static_cast<T>(__builtin_bswap32(static_cast<uint32_t>(v)));
  }
  T load_swapped() const {
    T v;
    __builtin_memcpy(&v, b, N);
    return swapped(v);
  }
  void store_swapped(T v) {
    v = swapped(v);
    __builtin_memcpy(b, &v, N);
  }
  template <unsigned... I>
  constexpr T load(std::integer_sequence<unsigned, I...>) const {
    if constexpr (kSwaps) {
      if (!__builtin_is_constant_evaluated()) return load_swapped();
    }
    return static_cast<T>(((static_cast<T>(b[I]) << (8 * (N - 1 - I))) | ...));
  }
  template <unsigned... I>
  constexpr void store(T v, std::integer_sequence<unsigned, I...>) {
    if constexpr (kSwaps) {
      if (!__builtin_is_constant_evaluated()) return store_swapped(v);
    }
    ((b[I] = static_cast<uint8_t>(v >> (8 * (N - 1 - I)))), ...);
  }
  constexpr void store(T v) { store(v, std::make_integer_sequence<unsigned, N>()); }
};

using be16 = Be<uint16_t, 2>;
using be24 = Be<uint32_t, 3>;
using be32 = Be<uint32_t, 4>;
using be48 = Be<uint64_t, 6>;
using be64 = Be<uint64_t, 8>;
static_assert(sizeof(be16) == 2 && sizeof(be24) == 3 && sizeof(be32) == 4 && sizeof(be48) == 6 &&
              sizeof(be64) == 8 && alignof(be64) == 1);

}  // namespace hcasim::prm
