// SPDX-License-Identifier: BSD-3-Clause
/// Typed access to bit fields of big-endian structures in byte arrays.
///
/// A field is a type: its offset counts bits from the start of the outermost structure, bit 0 being the most
/// significant bit of byte 0, as in the kernel's mlx5_ifc.h. The generated "prm/ifc.h" names the fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace hcasim::prm {

inline uint16_t load16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
inline void store16(uint8_t* p, uint32_t v) {
  p[0] = static_cast<uint8_t>(v >> 8);
  p[1] = static_cast<uint8_t>(v);
}

inline uint32_t load32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return __builtin_bswap32(v);
}
inline uint64_t load64(const uint8_t* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return __builtin_bswap64(v);
}
inline void store32(uint8_t* p, uint32_t v) {
  v = __builtin_bswap32(v);
  std::memcpy(p, &v, 4);
}
inline void store64(uint8_t* p, uint64_t v) {
  v = __builtin_bswap64(v);
  std::memcpy(p, &v, 8);
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "hosts are little-endian");

/// Reads `width` (1..64) bits that start at bit `off`; touches only the bytes that contain them.
inline uint64_t get_bits(const uint8_t* p, size_t off, unsigned width) {
  uint64_t v = 0;
  size_t byte = off / 8;
  unsigned left = width, lead = off % 8;
  while (left != 0) {
    unsigned take = 8 - lead < left ? 8 - lead : left;
    v = v << take | (static_cast<unsigned>(p[byte]) >> (8 - lead - take) & ((1u << take) - 1));
    left -= take;
    lead = 0;
    byte++;
  }
  return v;
}
inline void set_bits(uint8_t* p, size_t off, unsigned width, uint64_t v) {
  size_t byte = off / 8;
  unsigned left = width, lead = off % 8;
  while (left != 0) {
    unsigned take = 8 - lead < left ? 8 - lead : left, shift = 8 - lead - take;
    unsigned mask = ((1u << take) - 1) << shift;
    unsigned part = static_cast<unsigned>(v >> (left - take)) << shift & mask;
    p[byte] = static_cast<uint8_t>((p[byte] & ~mask) | part);
    left -= take;
    lead = 0;
    byte++;
  }
}

/// A scalar of `Width` bits at bit `Off`.
template <unsigned Off, unsigned Width>
struct Field {
  static_assert(Width >= 1 && Width <= 64);
  static constexpr unsigned bit_off = Off, bits = Width;
  static constexpr bool kInDword = Off / 32 == (Off + Width - 1) / 32;
  static constexpr bool kIsQword = Off % 32 == 0 && Width == 64;
  static constexpr unsigned kShift = 31 - (Off + Width - 1) % 32;
  static constexpr uint32_t kMask = kInDword && Width < 32 ? (1u << Width % 32) - 1 : ~0u;
  using type = std::conditional_t<(Width <= 32), uint32_t, uint64_t>;
  /// End of the bytes that an access may touch, from the start of the outermost structure.
  static constexpr size_t end = kInDword ? (Off / 32 + 1) * 4 : (Off + Width + 7) / 8;
};

/// `Count` scalars of `Width` bits each; Count 0: as many as the caller's buffer holds.
template <unsigned Off, unsigned Width, unsigned Count>
struct Array {
  static_assert(Width >= 1 && Width <= 64);
  static constexpr unsigned bit_off = Off, elem_bits = Width, count = Count, bits = Width * Count;
  static constexpr size_t end = (Off + bits + 7) / 8;
  using type = std::conditional_t<(Width <= 32), uint32_t, uint64_t>;
  template <unsigned I>
  using elem = Field<Off + I * Width, Width>;
};

/// `Count` structures T; Count 0: as many as the caller's buffer holds.
template <unsigned Off, template <unsigned> class T, unsigned Count>
struct StructArray {
  static constexpr unsigned bit_off = Off, elem_bits = T<0>::bits, count = Count, bits = elem_bits * Count;
  static constexpr size_t elem_bytes = elem_bits / 8, end = (Off + bits + 7) / 8;
  using elem_type = T<0>;
  template <unsigned I>
  using elem = T<Off + I * T<0>::bits>;
};

/// An opaque run of more than 64 bits.
template <unsigned Off, unsigned Bits>
struct Bytes {
  static constexpr unsigned bit_off = Off, bits = Bits;
  static constexpr size_t bytes = Bits / 8, end = (Off + Bits + 7) / 8;
};

/// Value of field F in the structure at `p`.
template <class F>
inline typename F::type get(const uint8_t* p) {
  if constexpr (F::kInDword) {
    return static_cast<typename F::type>(load32(p + F::bit_off / 32 * 4) >> F::kShift & F::kMask);
  } else if constexpr (F::kIsQword) {
    return load64(p + F::bit_off / 8);
  } else {
    return static_cast<typename F::type>(get_bits(p, F::bit_off, F::bits));
  }
}

/// Stores the low bits of `v` in field F; neighbouring fields keep their values.
template <class F>
inline void set(uint8_t* p, typename F::type v) {
  if constexpr (F::kInDword) {
    uint8_t* q = p + F::bit_off / 32 * 4;
    if constexpr (F::bits == 32) {
      store32(q, v);
    } else {
      store32(q, (load32(q) & ~(F::kMask << F::kShift)) | (v & F::kMask) << F::kShift);
    }
  } else if constexpr (F::kIsQword) {
    store64(p + F::bit_off / 8, v);
  } else {
    set_bits(p, F::bit_off, F::bits, v);
  }
}

/// Element `i` of an array of scalars. The caller checks `i` (see fits).
template <class A>
inline typename A::type get(const uint8_t* p, size_t i) {
  if constexpr (A::bit_off % 32 == 0 && A::elem_bits == 64) {
    return load64(p + A::bit_off / 8 + i * 8);
  } else if constexpr (A::bit_off % 32 == 0 && A::elem_bits == 32) {
    return load32(p + A::bit_off / 8 + i * 4);
  } else {
    return static_cast<typename A::type>(get_bits(p, A::bit_off + i * A::elem_bits, A::elem_bits));
  }
}
template <class A>
inline void set(uint8_t* p, size_t i, typename A::type v) {
  set_bits(p, A::bit_off + i * A::elem_bits, A::elem_bits, v);
}

/// First byte of a nested structure, array or run of bytes; all of them start on a byte.
template <class S>
inline const uint8_t* ptr(const uint8_t* p) {
  static_assert(S::bit_off % 8 == 0);
  return p + S::bit_off / 8;
}
template <class S>
inline uint8_t* ptr(uint8_t* p) {
  static_assert(S::bit_off % 8 == 0);
  return p + S::bit_off / 8;
}

/// First byte of element `i` of an array of structures: read it with the element's own names, e.g.
/// `get<prm::cmd_pas::pa_h>(at<prm::manage_pages_in::pas>(p, i))`. The caller checks `i`.
template <class A>
inline const uint8_t* at(const uint8_t* p, size_t i) {
  static_assert(A::bit_off % 8 == 0 && A::elem_bits % 8 == 0);
  return p + A::bit_off / 8 + i * (A::elem_bits / 8);
}
template <class A>
inline uint8_t* at(uint8_t* p, size_t i) {
  static_assert(A::bit_off % 8 == 0 && A::elem_bits % 8 == 0);
  return p + A::bit_off / 8 + i * (A::elem_bits / 8);
}

namespace detail {
template <class F, class = void>
struct End {
  static constexpr size_t value = (F::bit_off + F::bits + 7) / 8;
};
template <class F>
struct End<F, std::void_t<decltype(F::end)>> {
  static constexpr size_t value = F::end;
};
}  // namespace detail

/// Whether F (field, array, nested structure) lies within the first `len` bytes of the outermost structure.
template <class F>
constexpr bool fits(size_t len) {
  return detail::End<F>::value <= len;
}
/// Whether element `i` of array A lies within the first `len` bytes.
template <class A>
constexpr bool fits(size_t len, size_t i) {
  return A::bit_off <= len * 8 && i < (len * 8 - A::bit_off) / A::elem_bits &&
         (A::count == 0 || i < A::count);
}
/// How many whole elements of array A lie within the first `len` bytes.
template <class A>
constexpr size_t fit_count(size_t len) {
  size_t n = A::bit_off <= len * 8 ? (len * 8 - A::bit_off) / A::elem_bits : 0;
  return A::count != 0 && A::count < n ? A::count : n;
}

}  // namespace hcasim::prm
