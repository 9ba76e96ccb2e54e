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
  std::map<std::string, std::weak_ptr<RingSink>> rings;
  std::map<std::pair<dev_t, ino_t>, std::weak_ptr<FileSink>> files;
};

constexpr std::size_t kSpare = 4096;  // bytes by which a block's buffer grows at least

/// Never destroyed, because destructors of statics may close Tracers.
OpenFiles& open_files() {
  static OpenFiles* files = new OpenFiles;
  return *files;
}

/// Completes the traces of a process that calls exit() without closing its HCAs.
void finish_all() {
  std::lock_guard<std::mutex> lock(open_files().mutex);
  for (auto& f : open_files().files)
    if (auto sink = f.second.lock()) sink->finish();
  for (auto& r : open_files().rings)
    if (auto sink = r.second.lock()) sink->finish();
}

void finish_at_exit() {
  static const int registered = std::atexit(finish_all);
  (void)registered;
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
    case Kind::kDetail:
      return "detail";
    case Kind::kPath:
      return "path";
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
  finish_at_exit();
  std::shared_ptr<FileSink> sink;
  try {
    sink = std::make_shared<FileSink>(f, path);
  } catch (const std::system_error& e) {  // no thread available
    if (err != nullptr) *err = "cannot record into " + path + ": " + e.what();
    return nullptr;
  }
  open.files[{st.st_dev, st.st_ino}] = sink;
  return sink;
}

FileWriter::FileWriter(std::FILE* file, std::string path) : file_(file), path_(std::move(path)) {
  std::string head(format::kMagic, sizeof format::kMagic);
  const std::string json = header_json();
  format::put_u32(head, format::kVersion);
  format::put_u32(head, format::kEndianCheck);
  format::put_u32(head, static_cast<std::uint32_t>(json.size()));
  head += json;
  write(head.data(), head.size());
}

FileWriter::~FileWriter() {
  if (file_ != nullptr) std::fclose(file_);
}

void FileWriter::write_block(const std::uint8_t* raw, std::size_t size, std::uint32_t records) {
  const std::size_t n = packer_.pack(raw, size, packed_);
  std::string head;
  format::put_u32(head, format::kBlockMagic);
  format::put_u32(head, records);
  format::put_u32(head, static_cast<std::uint32_t>(size));
  format::put_u32(head, static_cast<std::uint32_t>(n));
  format::put_u32(head, libdeflate_crc32(0, raw, size));
  write(head.data(), head.size());
  write(packed_.data(), n);
  total_ += records;
}

void FileWriter::write(const void* bytes, std::size_t len) {
  if (failed_ || std::fwrite(bytes, 1, len, file_) == len) return;
  failed_ = true;
  std::fprintf(stderr, "hcasim: cannot write trace file %s: %s; the trace ends here\n", path_.c_str(),
               std::strerror(errno));
}

bool FileWriter::finish() {
  std::string end;
  for (std::uint32_t v : {format::kEndMagic, static_cast<std::uint32_t>(total_),
                          static_cast<std::uint32_t>(total_ >> 32), 0u, 0u})
    format::put_u32(end, v);
  write(end.data(), end.size());
  if (std::fclose(file_) != 0 && !failed_) {
    failed_ = true;
    std::fprintf(stderr, "hcasim: cannot write trace file %s: %s\n", path_.c_str(), std::strerror(errno));
  }
  file_ = nullptr;
  return !failed_;
}

std::shared_ptr<RingSink> RingSink::get(const std::string& path, std::size_t bytes, std::string* err) {
  OpenFiles& open = open_files();
  std::lock_guard<std::mutex> lock(open.mutex);
  auto it = open.rings.find(path);
  if (it != open.rings.end())
    if (auto sink = it->second.lock())
      if (!sink->finished_) return sink;
  // Report a failed write now rather than at the end.
  std::FILE* f = std::fopen(path.c_str(), "wbe");
  if (f == nullptr) {
    if (err != nullptr) *err = "cannot write trace file " + path + ": " + std::strerror(errno);
    return nullptr;
  }
  std::fclose(f);
  finish_at_exit();
  auto sink = std::make_shared<RingSink>(path, bytes);
  open.rings[path] = sink;
  return sink;
}

void RingSink::put(const Record& r, const std::uint8_t* blob) {
  if (finished_) return;
  if (blocks_.empty()) blocks_.emplace_back();
  Block& block = blocks_.back();
  const std::size_t used = block.raw.size();
  block.raw.resize(used + format::Coder::kMost + r.blob_len);
  std::uint8_t* at = block.raw.data() + used;
  block.raw.resize(used + static_cast<std::size_t>(coder_.encode(r, blob, at) - at));
  if (++block.records < format::kBlockRecords && block.raw.size() < format::kBlockBytes) return;
  bytes_ += block.raw.size();
  coder_.reset();
  blocks_.emplace_back();
  while (bytes_ > most_ && blocks_.size() > 2) {
    bytes_ -= blocks_.front().raw.size();
    blocks_.pop_front();
  }
}

bool RingSink::dump(const std::string& path, std::string* err) {
  const std::string& to = path.empty() ? path_ : path;
  std::FILE* f = std::fopen(to.c_str(), "wbe");
  if (f == nullptr) {
    if (err != nullptr) *err = "cannot write trace file " + to + ": " + std::strerror(errno);
    return false;
  }
  FileWriter writer(f, to);
  for (const Block& block : blocks_)
    if (block.records != 0) writer.write_block(block.raw.data(), block.raw.size(), block.records);
  if (writer.finish()) return true;
  if (err != nullptr) *err = "cannot write all of trace file " + to;
  return false;
}

void RingSink::finish() {
  if (finished_) return;
  std::string err;
  if (!dump("", &err)) std::fprintf(stderr, "hcasim: %s\n", err.c_str());
  finished_ = true;
  blocks_.clear();
}

FileSink::FileSink(std::FILE* file, std::string path) : writer_(file, std::move(path)) {
  start_batch();
  // Signals belong to the threads of the surrounding process (a VMM).
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  try {
    thread_ = std::thread([this] { thread_main(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

FileSink::~FileSink() { finish(); }

void FileSink::start_batch() {
  if (open_ == nullptr) open_ = std::make_unique<Batch>();
  next_ = open_->records.data();
  end_ = next_ + open_->records.size();
}

// False: the file is complete.
bool FileSink::make_room() {
  if (finished_) return false;
  submit();
  return true;
}

void FileSink::submit() {
  open_->count = static_cast<std::size_t>(next_ - open_->records.data());
  if (open_->count == 0) return;
  std::size_t waiting;
  {
    std::lock_guard<std::mutex> lock(queue_mutex_);
    waiting_.push_back(std::move(open_));
    waiting = waiting_.size();
    if (!free_.empty()) {
      open_ = std::move(free_.back());
      free_.pop_back();
    }
  }
  start_batch();
  if (waiting == kWorthWaking) wake_.notify_one();
  if (waiting < kMostWaiting) return;
  std::lock_guard<std::mutex> lock(drain_mutex_);
  drain(kMostWaiting / 2);
}

void FileSink::thread_main() {
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(queue_mutex_);
      wake_.wait(lock, [this] { return stop_ || waiting_.size() >= kWorthWaking; });
      if (stop_) return;
    }
    for (;;) {
      // One batch per lock, so that the recording thread never waits for long.
      std::lock_guard<std::mutex> lock(drain_mutex_);
      std::size_t waiting;
      {
        std::lock_guard<std::mutex> queue(queue_mutex_);
        waiting = waiting_.size();
      }
      if (waiting == 0) break;
      drain(waiting - 1);
    }
  }
}

void FileSink::drain(std::size_t left) {
  std::unique_lock<std::mutex> lock(queue_mutex_);
  while (waiting_.size() > left) {
    std::unique_ptr<Batch> batch = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    code(*batch);
    batch->count = 0;
    batch->blob_bytes = 0;
    lock.lock();
    free_.push_back(std::move(batch));
  }
}

void FileSink::put(const Record& r, const std::uint8_t* blob) {
  Record* const to = add();
  if (!to) return;
  *to = r;
  if (r.blob_len == 0 || finished_) return;
  std::memcpy(open_->room_for_blob(r.blob_len), blob, r.blob_len);
  open_->blob_bytes += r.blob_len;
  if (open_->blob_bytes > kMostBlobs) submit();
}

FileSink::Series FileSink::add_series(const std::int64_t* times, unsigned n, std::uint32_t step) {
  if (n < 2 || n > format::kMostSeries || finished_) return {};
  if (open_->blob_bytes > kMostBlobs) submit();
  Record* const first = add();
  if (!first) return {};
  std::uint8_t* const blob = open_->room_for_blob(sizeof(RawSeries));
  prefetch_line(blob + kBlobAhead);
  // Field by field: blobs are not aligned, and stores are read back slowly as wider ones.
  std::uint8_t* const steps = blob + offsetof(RawSeries, steps);
  std::uint64_t all = 0;
  std::uint32_t uneven = 0;
  const auto one = static_cast<std::uint32_t>(times[1] - times[0]);
  for (unsigned i = 1; i < n; ++i) {
    const auto by = static_cast<std::uint64_t>(times[i] - times[i - 1]);
    const auto kept = static_cast<std::uint32_t>(by);
    std::memcpy(steps + (i - 1) * sizeof kept, &kept, sizeof kept);
    all |= by;
    uneven |= kept ^ one;
  }
  if (all > ~0u) {
    --next_;
    return {};
  }
  const auto put = [blob](std::size_t at, std::uint32_t v) { std::memcpy(blob + at, &v, sizeof v); };
  put(offsetof(RawSeries, follow), n - 1);
  put(offsetof(RawSeries, a0_step), step);
  put(offsetof(RawSeries, even), uneven == 0);
  const std::size_t bytes = RawSeries::bytes(uneven == 0 ? 1 : n - 1);
  open_->blob_bytes += bytes;
  return {first, kSeries, static_cast<unsigned>(bytes)};
}

// So many bytes at the block's end.
inline std::uint8_t* FileSink::room_for(std::size_t bytes) {
  if (block_.size + bytes > block_.raw.size()) block_.raw.resize(block_.size + bytes + kSpare);
  return block_.raw.data() + block_.size;
}

// So many records, up to there.
inline void FileSink::coded(const std::uint8_t* end, unsigned records) {
  block_.size = static_cast<std::size_t>(end - block_.raw.data());
  block_.records += records;
  // Blocks are cut by content alone: the file must not depend on when the writer runs.
  if (block_.records >= format::kBlockRecords || block_.size >= format::kBlockBytes) cut_block();
}

void FileSink::code(const Batch& batch) {
  const std::uint8_t* blob = batch.blobs.data();
  for (std::size_t i = 0; i < batch.count; ++i) {
    const Record& r = batch.records[i];
    const std::uint8_t* const end = blob + r.blob_len;
    if ((r.flags & kSeries) == 0) {
      coded(coder_.encode(r, blob, room_for(format::Coder::kMost + r.blob_len)), 1);
      blob = end;
      continue;
    }
    Record first = r;
    first.flags = 0;
    first.blob_len = 0;
    RawSeries raw;
    std::memcpy(&raw, blob, RawSeries::bytes(1));
    std::uint8_t* at = room_for(format::Coder::kMost + (raw.follow + 3) * format::kMaxVarint);
    if (raw.even) {
      at = coder_.encode_even(first, raw.a0_step, raw.steps[0], raw.follow, at);
    } else {
      std::memcpy(raw.steps.data(), blob + offsetof(RawSeries, steps), raw.follow * sizeof raw.steps[0]);
      at = coder_.encode_series(first, raw.a0_step, raw.steps.data(), raw.follow, at);
    }
    coded(at, raw.follow + 1);
    blob = end;
  }
}

void FileSink::cut_block() {
  if (block_.records == 0) return;
  writer_.write_block(block_.raw.data(), block_.size, block_.records);
  block_.size = 0;
  block_.records = 0;
  coder_.reset();
}

void FileSink::flush() {
  if (finished_) return;
  submit();
  std::lock_guard<std::mutex> lock(drain_mutex_);
  drain(0);
  cut_block();
  writer_.flush();
}

void FileSink::finish() {
  if (finished_) return;
  submit();
  {
    std::lock_guard<std::mutex> lock(drain_mutex_);
    drain(0);
    cut_block();
    writer_.finish();
    finished_ = true;
    next_ = end_ = nullptr;
  }
  {
    std::lock_guard<std::mutex> lock(queue_mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

}  // namespace hcasim::traces
