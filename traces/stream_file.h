// SPDX-License-Identifier: BSD-3-Clause
/// A stream of bytes in a file, compressed block by block. The last block is uncompressed and mapped into
/// memory, so that a process that crashes loses nothing of what it wrote.
///
///   file    8 bytes of magic, u32 version, u32 0x01020304
///   block   u32 magic "BLK1", u32 raw bytes, u32 stored bytes, u32 CRC-32 of the raw bytes; a zstd frame
///   last    u32 magic "OPN1", u32 raw bytes, u32 0, u32 0; the bytes, then anything
///   end     u32 magic "END1", u32 0, u32 0, u32 0
/// Integers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "traces/packing.h"

namespace hcasim::traces {

/// `magic`: 8 characters.
class StreamWriter {
 public:
  /// nullptr: `*err` says why.
  static std::unique_ptr<StreamWriter> create(const std::string& path, const char* magic,
                                              std::uint32_t version, std::string* err);
  ~StreamWriter();
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;

  void put(const void* bytes, std::size_t len);
  /// Writes the end mark; later data are dropped. false: a write failed (reported on stderr).
  bool finish();

 private:
  StreamWriter(int fd, std::string path);
  bool open_block();
  bool close_block();
  bool write(const void* bytes, std::size_t len);
  void fail(const char* what);

  const int fd_;
  const std::string path_;
  Packer packer_{Packer::Of::kData};
  std::vector<std::uint8_t> packed_;
  std::uint64_t tail_ = 0;          // file offset of the last block
  std::uint8_t* window_ = nullptr;  // mapping that starts at the page of tail_
  std::uint8_t* block_ = nullptr;   // its header
  std::uint32_t size_ = 0;          // raw bytes in it
  bool failed_ = false, finished_ = false;
};

class StreamReader {
 public:
  StreamReader() = default;
  ~StreamReader();
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;

  /// false: `*err` says why.
  bool open(const std::string& path, const char* magic, std::uint32_t version, std::string* err);
  /// The next `len` bytes. false: fewer are left; warning() says why if the file is damaged.
  bool read(void* to, std::size_t len);
  bool read(std::uint8_t& byte) {
    if (at_ == raw_.size() && !load()) return false;
    byte = raw_[at_++];
    return true;
  }
  /// Why the stream ended before its end mark; empty if it did not.
  const std::string& warning() const { return warning_; }

 private:
  bool load();
  bool end(const std::string& why);

  std::FILE* file_ = nullptr;
  Unpacker unpacker_;
  std::vector<std::uint8_t> raw_, packed_;
  std::size_t at_ = 0;
  bool ended_ = false;
  std::string warning_;
};

}  // namespace hcasim::traces
