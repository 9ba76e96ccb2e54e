// SPDX-License-Identifier: BSD-3-Clause
#include "traces/tracer.h"

#include <algorithm>

#include "traces/sink.h"

namespace hcasim::traces {

namespace {
constexpr char kNowhere[] = "/dev/null";     // skip compression
constexpr std::size_t kMaxRuleBytes = 4096;  // blob of a broken rule's record
}  // namespace

Tracer::~Tracer() { close(); }

bool Tracer::open(const std::string& path, std::string* err) {
  close();
  if (path == kNowhere) {
    sink_ = std::make_shared<NullSink>();
    settle();
    return true;
  }
  auto sink = FileSink::get(path, err);
  if (sink == nullptr) return false;
  file_ = sink.get();
  sink_ = std::move(sink);
  settle();
  return true;
}

bool Tracer::open_ring(const std::string& path, std::size_t bytes, std::string* err) {
  close();
  auto sink = RingSink::get(path, bytes, err);
  if (sink == nullptr) return false;
  sink_ = std::move(sink);
  settle();
  return true;
}

bool Tracer::dump(const std::string& path, std::string* err) {
  auto* ring = dynamic_cast<RingSink*>(sink_.get());
  if (ring != nullptr) return ring->dump(path, err);
  if (err != nullptr) *err = "there is no ring: records go to a file as they are made, or nowhere";
  return false;
}

void Tracer::open_memory() {
  close();
  sink_ = std::make_shared<MemorySink>();
  settle();
}

void Tracer::set_on(bool on) {
  on_ = on;
  settle();
}

bool Tracer::set_filter(const std::string& text, std::string* err) {
  if (!filter_.parse(text, err)) return false;
  settle();
  return true;
}

void Tracer::settle() {
  enabled_ = on_ && sink_ != nullptr;
  detail_ = enabled_ && filter_.detail();
  paths_ = enabled_ && filter_.paths();
  busy_wanted_ = detail_ || busy_watch_;
}

void Tracer::on_busy(BusyWatch watch) {
  busy_watch_ = std::move(watch);
  settle();
}

void Tracer::busy(Unit unit, unsigned which, std::int64_t from, std::int64_t to, std::uint32_t qpn) {
  if (detail_)
    record(Point::kUnitBusy, from, static_cast<std::uint32_t>(unit), which, qpn,
           static_cast<std::uint64_t>(to - from));
  if (busy_watch_) busy_watch_(unit, from, to);
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

void Tracer::broke(Rule rule, std::int64_t time_ps, RuleObject object, Subject number, const void* bytes,
                   std::size_t len) {
  if (!rules_.on()) return;
  const auto* from = static_cast<const std::uint8_t*>(bytes);
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(len, 8); ++i) first = first << 8 | from[i];
  record_blob(Point::kRuleBroken, time_ps, number, info(rule).number, static_cast<std::uint64_t>(object),
              first, bytes, std::min(len, kMaxRuleBytes));
  rules_.count({rule, time_ps, object, number.number, from, len, 0, number.function});
}

void Tracer::broke_value(Rule rule, std::int64_t time_ps, RuleObject object, Subject number,
                         std::uint64_t value) {
  std::uint8_t bytes[8];
  for (unsigned i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(value >> (56 - 8 * i));
  const std::size_t skip = value >> 32 == 0 ? 4 : 0;
  broke(rule, time_ps, object, number, bytes + skip, sizeof bytes - skip);
}

void Tracer::flush() {
  if (sink_ != nullptr) sink_->flush();
}

void Tracer::close() {
  file_ = nullptr;
  sink_.reset();
  settle();
}

inline void Tracer::fill(Record& r, Point p, std::int64_t time_ps, Subject obj, std::uint32_t index,
                         std::uint64_t a0, std::uint64_t a1, unsigned flags, unsigned blob_len) const {
  r.time_ps = time_ps;
  r.a0 = a0;
  r.a1 = a1;
  r.obj = obj.number;
  r.index = index;
  r.point = static_cast<std::uint16_t>(p);
  r.hca = static_cast<std::uint16_t>(hca_);
  r.flags = flags & 7;
  r.blob_len = blob_len & 0x1ffff;
  r.function = obj.function & 0xfff;
}

void Tracer::put(Point p, std::int64_t time_ps, Subject obj, std::uint32_t index, std::uint64_t a0,
                 std::uint64_t a1) {
  if (!filter_.trivial() && !filter_.takes(p, obj.number)) return;
  if (file_ != nullptr) {
    if (Record* r = file_->add()) fill(*r, p, time_ps, obj, index, a0, a1, 0, 0);
    return;
  }
  Record r;
  fill(r, p, time_ps, obj, index, a0, a1, 0, 0);
  sink_->put(r, nullptr);
}

void Tracer::put_series(Point p, const std::int64_t* times, unsigned n, Subject obj, std::uint32_t index,
                        std::uint64_t a0, std::uint32_t step, std::uint64_t a1) {
  if (!filter_.trivial() && !filter_.takes(p, obj.number)) return;
  if (file_ != nullptr) {
    const FileSink::Series s = file_->add_series(times, n, step);
    if (s.first) return fill(*s.first, p, times[0], obj, index, a0, a1, s.flags, s.blob_len);
  }
  for (unsigned i = 0; i < n; ++i) put(p, times[i], obj, index + i, a0 + std::uint64_t{i} * step, a1);
}

void Tracer::put_blob(Point p, std::int64_t time_ps, Subject obj, std::uint32_t index, std::uint64_t a0,
                      std::uint64_t a1, const void* bytes, std::size_t len) {
  if (!is_error(p)) ++counts_[static_cast<unsigned>(p)];
  if (!filter_.trivial() && !filter_.takes(p, obj.number)) return;
  const bool cut = len > kMaxBlob;
  Record r;
  fill(r, p, time_ps, obj, index, a0, a1, cut ? Record::kTruncated : 0,
       static_cast<unsigned>(cut ? kMaxBlob : len));
  sink_->put(r, static_cast<const std::uint8_t*>(bytes));
}

}  // namespace hcasim::traces
