// SPDX-License-Identifier: BSD-3-Clause
#include "traces/sink.h"

#include <libdeflate.h>
#include <signal.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <system_error>

namespace hcasim::traces {
namespace {

struct OpenFiles {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<FileSink>> files;
};

/// Never destroyed: Tracers may be closed by destructors of statics.
OpenFiles& open_files() {
  static OpenFiles* files = new OpenFiles;
  return *files;
}

/// A process that leaves by exit() without closing its HCAs keeps its trace.
void finish_all() {
  std::lock_guard<std::mutex> lock(open_files().mutex);
  for (auto& f : open_files().files)
    if (auto sink = f.second.lock()) sink->finish();
}

const char* kind_name(Kind k) {
  switch (k) {
    case Kind::kNormal:
      return "normal";
    case Kind::kError:
      return "error";
    case Kind::kCommand:
      return "command";
    case Kind::kObject:
      return "object";
  }
  return "";
}

/// The texts of points.h need no escapes.
std::string header_json() {
  std::string s = "{\"format\":\"hcasim trace\",\"time_unit\":\"ps\",\"points\":[";
  for (unsigned i = 0; i < kPoints; i++) {
    const PointInfo& p = kPointInfo[i];
    if (i != 0) s += ',';
    s += std::string("{\"name\":\"") + p.name + "\",\"kind\":\"" + kind_name(p.kind) + "\",\"obj\":\"" +
         p.obj + "\",\"index\":\"" + p.index + "\",\"a0\":\"" + p.a0 + "\",\"a1\":\"" + p.a1 +
         "\",\"help\":\"" + p.help + "\"}";
  }
  return s + "]}";
}

}  // namespace

std::shared_ptr<FileSink> FileSink::get(const std::string& path, std::string* err) {
  OpenFiles& open = open_files();
  std::lock_guard<std::mutex> lock(open.mutex);
  struct stat st;
  if (::stat(path.c_str(), &st) == 0) {
    auto it = open.files.find({st.st_dev, st.st_ino});
    if (it != open.files.end())
      if (auto sink = it->second.lock())
        if (!sink->finished_) return sink;
  }
  std::FILE* f = std::fopen(path.c_str(), "wbe");
  if (f == nullptr || ::fstat(fileno(f), &st) != 0) {
    if (err != nullptr) *err = "cannot write trace file " + path + ": " + std::strerror(errno);
    if (f != nullptr) std::fclose(f);
    return nullptr;
  }
  static const int registered = std::atexit(finish_all);
  (void)registered;
  std::shared_ptr<FileSink> sink;
  try {
    sink = std::make_shared<FileSink>(f, path);
  } catch (const std::system_error& e) {  // no thread to be had
    if (err != nullptr) *err = "cannot record into " + path + ": " + e.what();
    return nullptr;
  }
  open.files[{st.st_dev, st.st_ino}] = sink;
  return sink;
}

FileSink::FileSink(std::FILE* file, std::string path)
    : file_(file),
      path_(std::move(path)),
      ring_(new Record[kSlots]),
      compressor_(libdeflate_alloc_compressor(1)) {
  std::string head(format::kMagic, sizeof format::kMagic);
  const std::string json = header_json();
  format::put_u32(head, format::kVersion);
  format::put_u32(head, format::kEndianCheck);
  format::put_u32(head, static_cast<std::uint32_t>(json.size()));
  head += json;
  write(head.data(), head.size());
  // The process around us (a VMM) directs signals at threads of its own.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    thread_ = std::thread([this] { thread_main(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    libdeflate_free_compressor(compressor_);
    std::fclose(file_);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

FileSink::~FileSink() {
  finish();
  libdeflate_free_compressor(compressor_);
}

void FileSink::put(const Record& r, const std::uint8_t* blob) {
  const std::size_t need = 1 + slots_of(r.blob_len);
  std::size_t head = head_.load(std::memory_order_relaxed);
  if (head + need - tail_seen_ > kSlots) {
    tail_seen_ = tail_.load(std::memory_order_acquire);
    if (head + need - tail_seen_ > kSlots) {  // full: the writer is behind
      std::lock_guard<std::mutex> lock(drain_mutex_);
      if (finished_) return;
      drain();
      tail_seen_ = tail_.load(std::memory_order_relaxed);
    }
  }
  ring_[head & kMask] = r;
  for (std::size_t done = 0, slot = head + 1; done < r.blob_len; slot++) {
    std::size_t n = r.blob_len - done < sizeof(Record) ? r.blob_len - done : sizeof(Record);
    std::memcpy(static_cast<void*>(&ring_[slot & kMask]), blob + done, n);
    done += n;
  }
  head_.store(head + need, std::memory_order_release);
  // The writer also wakes by itself, so a lost notification costs nothing.
  if (((head ^ (head + need)) & (kSlots / 4)) != 0) wake_.notify_one();
}

void FileSink::thread_main() {
  while (!stop_.load(std::memory_order_acquire)) {
    {
      std::unique_lock<std::mutex> lock(wake_mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(20));
    }
    std::lock_guard<std::mutex> lock(drain_mutex_);
    if (!finished_) drain();
  }
}

void FileSink::drain() {
  std::size_t tail = tail_.load(std::memory_order_relaxed);
  const std::size_t head = head_.load(std::memory_order_acquire);
  while (tail != head) {
    const Record r = ring_[tail & kMask];
    tail++;
    blob_.resize(r.blob_len);
    for (std::size_t done = 0; done < r.blob_len; tail++) {
      std::size_t n = r.blob_len - done < sizeof(Record) ? r.blob_len - done : sizeof(Record);
      std::memcpy(blob_.data() + done, static_cast<const void*>(&ring_[tail & kMask]), n);
      done += n;
    }
    tail_.store(tail, std::memory_order_release);
    coder_.encode(r, blob_.data(), raw_);
    // Cut by content alone: the file must not depend on when this runs.
    if (++block_records_ == format::kBlockRecords || raw_.size() >= format::kBlockBytes) write_block();
  }
}

void FileSink::write_block() {
  if (block_records_ == 0) return;
  packed_.resize(libdeflate_deflate_compress_bound(compressor_, raw_.size()));
  std::size_t n =
      libdeflate_deflate_compress(compressor_, raw_.data(), raw_.size(), packed_.data(), packed_.size());
  std::string head;
  format::put_u32(head, format::kBlockMagic);
  format::put_u32(head, block_records_);
  format::put_u32(head, static_cast<std::uint32_t>(raw_.size()));
  format::put_u32(head, static_cast<std::uint32_t>(n));
  format::put_u32(head, libdeflate_crc32(0, raw_.data(), raw_.size()));
  write(head.data(), head.size());
  write(packed_.data(), n);
  total_ += block_records_;
  block_records_ = 0;
  raw_.clear();
  coder_.reset();
}

void FileSink::write(const void* bytes, std::size_t len) {
  if (failed_ || std::fwrite(bytes, 1, len, file_) == len) return;
  failed_ = true;
  std::fprintf(stderr, "hcasim: cannot write trace file %s: %s; the trace ends here\n", path_.c_str(),
               std::strerror(errno));
}

void FileSink::flush() {
  std::lock_guard<std::mutex> lock(drain_mutex_);
  if (finished_) return;
  drain();
  write_block();
  std::fflush(file_);
}

void FileSink::finish() {
  {
    std::lock_guard<std::mutex> lock(drain_mutex_);
    if (finished_) return;
    drain();
    write_block();
    std::string end;
    for (std::uint32_t v : {format::kEndMagic, static_cast<std::uint32_t>(total_),
                            static_cast<std::uint32_t>(total_ >> 32), 0u, 0u})
      format::put_u32(end, v);
    write(end.data(), end.size());
    if (std::fclose(file_) != 0 && !failed_)
      std::fprintf(stderr, "hcasim: cannot write trace file %s: %s\n", path_.c_str(), std::strerror(errno));
    file_ = nullptr;
    finished_ = true;
  }
  stop_.store(true, std::memory_order_release);
  wake_.notify_one();
  thread_.join();
}

}  // namespace hcasim::traces
