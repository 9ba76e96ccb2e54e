// SPDX-License-Identifier: BSD-3-Clause
/// Where records go: a file behind a ring and a writer thread, or memory. Inside of traces/ only.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdio>
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

class MemorySink final : public Sink {
 public:
  void put(const Record& r, const std::uint8_t* blob) override {
    records.push_back(r);
    blobs.emplace_back(blob, blob + r.blob_len);
  }
  std::vector<Record> records;
  std::vector<std::vector<std::uint8_t>> blobs;
};

/// Single producer (the simulation), one consumer at a time (guarded by drain_mutex_).
class FileSink final : public Sink {
 public:
  /// The sink of that file, shared by all who name it. nullptr: `*err` says why.
  static std::shared_ptr<FileSink> get(const std::string& path, std::string* err);

  explicit FileSink(std::FILE* file, std::string path);
  ~FileSink() override;

  void put(const Record& r, const std::uint8_t* blob) override;
  void flush() override;
  /// Writes everything, the end mark too; later records are dropped.
  void finish();

 private:
  static constexpr std::size_t kSlots = 1 << 15;  // of 40 bytes
  static constexpr std::size_t kMask = kSlots - 1;
  static_assert(kMaxBlob / sizeof(Record) + 2 < kSlots / 2);
  static constexpr std::size_t slots_of(std::size_t bytes) {
    return (bytes + sizeof(Record) - 1) / sizeof(Record);
  }

  void thread_main();
  /// Encodes what the ring holds; the caller holds drain_mutex_.
  void drain();
  void write_block();
  void write(const void* bytes, std::size_t len);

  std::FILE* file_;
  const std::string path_;
  std::unique_ptr<Record[]> ring_;
  alignas(64) std::atomic<std::size_t> head_{0};  // slots ever filled
  std::size_t tail_seen_ = 0;                     // producer's copy of tail_
  alignas(64) std::atomic<std::size_t> tail_{0};  // slots ever emptied
  std::mutex drain_mutex_;
  std::mutex wake_mutex_;
  std::condition_variable wake_;
  std::atomic<bool> stop_{false};
  bool finished_ = false, failed_ = false;
  // Consumer's state
  format::Coder coder_;
  std::vector<std::uint8_t> raw_, packed_, blob_;
  std::uint32_t block_records_ = 0;
  std::uint64_t total_ = 0;
  libdeflate_compressor* compressor_;
  std::thread thread_;
};

}  // namespace hcasim::traces
