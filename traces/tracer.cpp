// SPDX-License-Identifier: BSD-3-Clause
#include "traces/tracer.h"

#include "traces/sink.h"

namespace hcasim::traces {

Tracer::~Tracer() { close(); }

bool Tracer::open(const std::string& path, std::string* err) {
  close();
  auto sink = FileSink::get(path, err);
  if (sink == nullptr) return false;
  file_ = sink.get();
  sink_ = std::move(sink);
  enabled_ = true;
  return true;
}

void Tracer::open_memory() {
  close();
  sink_ = std::make_shared<MemorySink>();
  enabled_ = true;
}

std::vector<Record> Tracer::drain(std::vector<std::vector<std::uint8_t>>* blobs) {
  auto* memory = dynamic_cast<MemorySink*>(sink_.get());
  if (memory == nullptr) return {};
  if (blobs != nullptr) *blobs = std::move(memory->blobs);
  memory->blobs.clear();
  std::vector<Record> out = std::move(memory->records);
  memory->records.clear();
  return out;
}

void Tracer::flush() {
  if (sink_ != nullptr) sink_->flush();
}

void Tracer::close() {
  enabled_ = false;
  file_ = nullptr;
  sink_.reset();
}

void Tracer::put(Point p, std::int64_t time_ps, std::uint32_t obj, std::uint32_t index, std::uint64_t a0,
                 std::uint64_t a1) {
  if (!is_error(p)) ++counts_[static_cast<unsigned>(p)];
  const Record r{time_ps, a0, a1, obj, index, static_cast<std::uint16_t>(p), hca_, 0, 0};
  if (file_ != nullptr)
    file_->add(r, nullptr);
  else
    sink_->put(r, nullptr);
}

void Tracer::put_blob(Point p, std::int64_t time_ps, std::uint32_t obj, std::uint32_t index, std::uint64_t a0,
                      std::uint64_t a1, const void* bytes, std::size_t len) {
  if (!is_error(p)) ++counts_[static_cast<unsigned>(p)];
  const bool cut = len > kMaxBlob;
  const Record r{time_ps,
                 a0,
                 a1,
                 obj,
                 index,
                 static_cast<std::uint16_t>(p),
                 hca_,
                 cut ? Record::kTruncated : std::uint8_t{0},
                 static_cast<std::uint32_t>(cut ? kMaxBlob : len)};
  sink_->put(r, static_cast<const std::uint8_t*>(bytes));
}

}  // namespace hcasim::traces
