// SPDX-License-Identifier: BSD-3-Clause
/// Compression of the blocks of traces and recordings: zstd at fast levels. Files of earlier versions have
/// raw deflate data, which are read too. Internal to traces/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;
struct libdeflate_decompressor;

namespace hcasim::traces {

/// One thread at a time. Throws std::bad_alloc for want of memory.
class Packer {
 public:
  enum class Of {
    kRecords,  ///< coded records: few different bytes in a row, so codes of their own win little
    kData      ///< anything
  };
  explicit Packer(Of what);
  ~Packer();
  /// Packs `size` bytes into `to` behind its first `head` ones, for which it makes room, and cuts it there.
  /// Returns the packed bytes.
  std::size_t pack(const std::uint8_t* raw, std::size_t size, std::vector<std::uint8_t>& to,
                   std::size_t head = 0);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  const int level_;
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
};

enum class Packing { kZstd, kDeflate };

/// One thread at a time.
class Unpacker {
 public:
  Unpacker();
  ~Unpacker();
  /// false: `stored` bytes at `packed` are not those of exactly `size` bytes, or there is no memory. What is
  /// at `raw` is then undefined.
  bool unpack(Packing how, const std::uint8_t* packed, std::size_t stored, std::uint8_t* raw,
              std::size_t size);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
    void operator()(libdeflate_decompressor* decompressor) const;
  };
  std::unique_ptr<ZSTD_DCtx_s, Free> zstd_;
  std::unique_ptr<libdeflate_decompressor, Free> deflate_;  // made when the first block asks for it
};

}  // namespace hcasim::traces
