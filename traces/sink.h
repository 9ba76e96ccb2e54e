// SPDX-License-Identifier: BSD-3-Clause
/// Where records go: a file with a writer thread, or memory. Internal to traces/.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "traces/format.h"
#include "traces/packing.h"
#include "traces/tracer.h"

namespace hcasim::traces {

class Sink {
 public:
  virtual ~Sink() = default;
  /// `r.blob_len` bytes follow at `blob`.
  virtual void put(const Record& r, const std::uint8_t* blob) = 0;
  virtual void flush() {}
};

/// Discards all records.
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

/// Writes a trace file: header, blocks, end mark. One thread at a time.
class FileWriter {
 public:
  FileWriter(std::FILE* file, std::string path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write_block(const std::uint8_t* raw, std::size_t size, std::uint32_t records);
  void flush() { std::fflush(file_); }
  /// Writes the end mark and closes the file. false: a write failed (reported on stderr).
  bool finish();

 private:
  void write(const void* bytes, std::size_t len);

  std::FILE* file_;
  const std::string path_;
  bool failed_ = false;
  std::vector<std::uint8_t> packed_;
  std::uint64_t total_ = 0;
  Packer packer_{Packer::Of::kRecords};
};

/// The latest records, in a bounded amount of memory; the oldest blocks are discarded as a whole.
class RingSink final : public Sink {
 public:
  /// The ring of that file, shared by all callers that name it; the first one sets its size.
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
  std::deque<Block> blocks_;  // the last one is still being filled
  std::size_t bytes_ = 0;     // of all but the last
  bool finished_ = false;
};

/// The recording thread stores raw records; a writer thread encodes, compresses and writes them. If the
/// writer falls behind, the recording thread helps, so nothing is lost.
class FileSink final : public Sink {
 public:
  /// The sink of that file, shared by all callers that name it. nullptr: `*err` says why.
  static std::shared_ptr<FileSink> get(const std::string& path, std::string* err);

  explicit FileSink(std::FILE* file, std::string path);
  ~FileSink() override;

  void put(const Record& r, const std::uint8_t* blob) override;
  /// Where the next record goes, one without a blob: the caller fills it in. null: the file is complete.
  [[gnu::always_inline]] Record* add() {
    if (__builtin_expect(next_ == end_, 0) && !make_room()) return nullptr;
    prefetch_line(next_ + kAhead);
    return next_++;
  }
  /// The same for n records, the i-th at times[i], by i more in its index and by i * step in its a0: the
  /// caller fills in the first, with these flags and this length of a blob. null: they are not stored, their
  /// times are too far apart.
  struct Series {
    Record* first;
    unsigned flags, blob_len;
  };
  Series add_series(const std::int64_t* times, unsigned n, std::uint32_t step);
  void flush() override;
  /// Writes everything including the end mark; later records are dropped.
  void finish();

 private:
  /// Raw records on their way to the writer.
  struct Batch {
    static constexpr std::size_t kRecords =
        2048;  // small enough for the processor's cache, neighbours included
    std::array<Record, kRecords> records;
    std::size_t count = 0;
    std::vector<std::uint8_t> blobs;  // in the records' order
    std::size_t blob_bytes = 0;       // of them, in use

    // So many bytes at their end.
    std::uint8_t* room_for_blob(std::size_t bytes) {
      if (blob_bytes + bytes > blobs.size()) blobs.resize(2 * (blob_bytes + bytes));
      return blobs.data() + blob_bytes;
    }
  };
  /// Of a raw record's flags: a series, its blob a RawSeries.
  static constexpr unsigned kSeries = 2;
  struct RawSeries {
    std::uint32_t follow;                                  // records behind the first
    std::uint32_t a0_step;                                 // from one to the next
    std::uint32_t even;                                    // all steps are the first
    std::array<std::uint32_t, format::kMostSeries> steps;  // of times, ps: one, if they are even

    static constexpr std::size_t bytes(unsigned listed) { return 4 * (3 + std::size_t{listed}); }
  };
  static constexpr std::size_t kMostBlobs = std::size_t{1} << 20;  // bytes of a batch's blobs
  static constexpr std::size_t kMostWaiting = 256;                 // batches
  static constexpr std::size_t kWorthWaking = 4;  // batches from which on the thread is woken

  /// Prefetches a cache line of a batch: the writer used it last, possibly on a processor that shares no
  /// cache with this one. May lie beyond the batch's end.
  static void prefetch_line(const void* at) {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
    __builtin_prefetch(at, 1);
#endif
  }
  static constexpr std::size_t kAhead = 32;       // records
  static constexpr std::size_t kBlobAhead = 512;  // bytes

  void thread_main();
  bool make_room();
  /// Hands the records so far to the writer.
  void submit();
  void start_batch();
  /// Writes waiting batches until this many are left. The caller holds drain_mutex_.
  void drain(std::size_t left);
  std::uint8_t* room_for(std::size_t bytes);
  void coded(const std::uint8_t* end, unsigned records);
  void code(const Batch& batch);
  void cut_block();

  // Recording thread's state
  std::unique_ptr<Batch> open_;
  Record *next_ = nullptr, *end_ = nullptr;  // room in it

  std::mutex queue_mutex_;
  std::condition_variable wake_;
  std::deque<std::unique_ptr<Batch>> waiting_;  // oldest first
  std::vector<std::unique_ptr<Batch>> free_;
  bool stop_ = false;

  std::mutex drain_mutex_;  // taken before queue_mutex_; guards the members below
  FileWriter writer_;
  format::Coder coder_;
  struct {
    std::vector<std::uint8_t> raw;
    std::size_t size = 0;  // of raw, in use
    std::uint32_t records = 0;
  } block_;  // being filled
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace hcasim::traces
