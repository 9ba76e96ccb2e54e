// SPDX-License-Identifier: BSD-3-Clause
// What earlier builds have left in golden/, packed by gzip.
#ifndef HCASIM_TESTS_DEVICE_GOLDEN_H
#define HCASIM_TESTS_DEVICE_GOLDEN_H

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <cstddef>
#include <string>

namespace hcasim::test {

constexpr std::size_t kLargestGolden = std::size_t{64} << 20;

inline std::string unpacked(const std::string& packed) {
  std::string out(kLargestGolden, 0);
  std::size_t len = 0;
  libdeflate_decompressor* const d = libdeflate_alloc_decompressor();
  EXPECT_EQ(libdeflate_gzip_decompress(d, packed.data(), packed.size(), out.data(), out.size(), &len),
            LIBDEFLATE_SUCCESS);
  libdeflate_free_decompressor(d);
  out.resize(len);
  return out;
}

inline std::string packed(const std::string& bytes) {
  libdeflate_compressor* const c = libdeflate_alloc_compressor(12);
  std::string out(libdeflate_gzip_compress_bound(c, bytes.size()), 0);
  out.resize(libdeflate_gzip_compress(c, bytes.data(), bytes.size(), out.data(), out.size()));
  libdeflate_free_compressor(c);
  return out;
}

}  // namespace hcasim::test
#endif
