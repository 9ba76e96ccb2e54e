// SPDX-License-Identifier: BSD-3-Clause
/// Where records go: a file behind a writer thread, or memory. Inside of traces/ only.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "traces/format.h"
#include "traces/tracer.h"

struct libdeflate_compressor;

namespace hcasim::traces {

class Sink {
 public:
  virtual ~Sink() = default;
  /// `r.blob_len` bytes follow at `blob`.
  virtual void put(const Record& r, const std::uint8_t* blob) = 0;
  virtual void flush() {}
};

/// Records go nowhere.
class NullSink final : public Sink {
 public:
  void put(const Record&, const std::uint8_t*) override {}
};

class MemorySink final : public Sink {
 public:
  void put(const Record& r, const std::uint8_t* blob) override {
    records.push_back(r);
    blobs.emplace_back(blob, blob + r.blob_len);
  }
  std::vector<Record> records;
  std::vector<std::vector<std::uint8_t>> blobs;
};

/// The bytes of a trace file but its blocks' contents. Calls are made by one thread at a time.
class FileWriter {
 public:
  FileWriter(std::FILE* file, std::string path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write_block(const std::uint8_t* raw, std::size_t size, std::uint32_t records);
  void flush() { std::fflush(file_); }
  /// Writes the end mark and closes the file. false: something could not be written (said on stderr).
  bool finish();

 private:
  void write(const void* bytes, std::size_t len);

  std::FILE* file_;
  const std::string path_;
  bool failed_ = false;
  std::vector<std::uint8_t> packed_;
  std::uint64_t total_ = 0;
  libdeflate_compressor* compressor_;
};

/// What was recorded last, in as much memory as is allowed; whole blocks fall out of it.
class RingSink final : public Sink {
 public:
  /// The ring of that file, shared by all who name it; the first says how large it is.
  static std::shared_ptr<RingSink> get(const std::string& path, std::size_t bytes, std::string* err);

  RingSink(std::string path, std::size_t bytes) : path_(std::move(path)), most_(bytes) {}
  ~RingSink() override { finish(); }

  void put(const Record& r, const std::uint8_t* blob) override;
  bool dump(const std::string& path, std::string* err);
  /// Writes the file; later records are dropped.
  void finish();

 private:
  struct Block {
    std::vector<std::uint8_t> raw;
    std::uint32_t records = 0;
  };
  const std::string path_;
  const std::size_t most_;
  format::Coder coder_;
  std::deque<Block> blocks_;  // the last is being made
  std::size_t bytes_ = 0;     // of all but that one
  bool finished_ = false;
};

/// The recording thread makes the file's blocks; a thread packs and writes them. When that is behind, the
/// recording one does so too, so nothing is lost.
class FileSink final : public Sink {
 public:
  /// The sink of that file, shared by all who name it. nullptr: `*err` says why.
  static std::shared_ptr<FileSink> get(const std::string& path, std::string* err);

  explicit FileSink(std::FILE* file, std::string path);
  ~FileSink() override;

  void put(const Record& r, const std::uint8_t* blob) override { add(r, blob); }
  /// The same, for the compiler to see through.
  [[gnu::always_inline]] void add(const Record& r, const std::uint8_t* blob) {
    if (finished_) return;
    Block& block = *open_;
    const std::size_t room = block.size + format::Coder::kMost + r.blob_len;
    if (room > block.raw.size()) block.raw.resize(room);
    std::uint8_t* raw = block.raw.data();
    block.size = static_cast<std::size_t>(coder_.encode(r, blob, raw + block.size) - raw);
    // Cut by content alone: the file must not depend on when the writer runs.
    if (++block.records == format::kBlockRecords || block.size >= format::kBlockBytes) submit();
  }
  void flush() override;
  /// Writes everything, the end mark too; later records are dropped.
  void finish();

 private:
  struct Block {
    std::vector<std::uint8_t> raw = std::vector<std::uint8_t>(kRoom);
    std::size_t size = 0;  // of raw, in use
    std::uint32_t records = 0;
  };
  static constexpr std::size_t kRoom = 64 * 1024;  // bytes; more when blobs want it
  static constexpr std::size_t kMostWaiting = 64;  // blocks

  void thread_main();
  /// Gives the block that is being made to the writer.
  void submit();
  /// Writes what waits, until so many blocks are left. The caller holds drain_mutex_.
  void drain(std::size_t left);

  // Recording thread's state
  format::Coder coder_;
  std::unique_ptr<Block> open_ = std::make_unique<Block>();

  std::mutex queue_mutex_;
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Block>> waiting_;  // oldest first
  std::vector<std::unique_ptr<Block>> free_;
  bool stop_ = false;

  std::mutex drain_mutex_;  // taken before queue_mutex_
  FileWriter writer_;
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace hcasim::traces
