// SPDX-License-Identifier: BSD-3-Clause
/// Recording of trace points: one Tracer an HCA; several may write one file.
///
/// While off, a record costs one predictable branch; errors are always counted. While on, the record is
/// stored as it is, and a thread encodes, compresses and writes it; if that falls behind, the recording
/// thread helps, so nothing is lost. All Tracers of a process are used by one thread at a time (SystemC's,
/// under QEMU's lock).
///
/// The file's bytes depend on the records only: two equal runs give equal files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "traces/filter.h"
#include "traces/points.h"
#include "traces/qp_tag.h"
#include "traces/rules.h"

namespace hcasim::traces {

struct Record {
  std::int64_t time_ps = 0;
  std::uint64_t a0 = 0, a1 = 0;
  std::uint32_t obj = 0, index = 0;
  std::uint16_t point = 0;  ///< Point
  std::uint16_t hca = 0;    ///< the HCA that recorded it
  std::uint32_t flags : 3;
  std::uint32_t blob_len : 17;  ///< bytes beside it, up to kMaxBlob
  std::uint32_t function : 12;  ///< the PCIe function of that HCA which it is about, 0: the first, or none

  Record() : flags(0), blob_len(0), function(0) {}

  static constexpr unsigned kTruncated = 1;  ///< of flags: the blob was cut to kMaxBlob bytes
  Point p() const { return static_cast<Point>(point); }
};
static_assert(sizeof(Record) == 40);

constexpr std::size_t kMaxBlob = 64 * 1024;  // bytes

/// What a record is about: an object by its number, and the PCIe function that it belongs to (0: the first
/// one, or none of them: the port, the card).
struct Subject {
  std::uint32_t number, function;
  Subject(std::uint32_t n) : number(n), function(0) {}  // NOLINT(google-explicit-constructor): of the card
  Subject(unsigned of_function, std::uint32_t n) : number(n), function(of_function) {}
};

/// Consumer of records; made by Tracer::open().
class Sink;
class FileSink;

class Tracer {
 public:
  /// `hca`: number of the HCA in its process, below kMostHcas.
  explicit Tracer(unsigned hca = 0) : hca_(hca % kMostHcas) {}
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// Records into the file from now on; Tracers with the same path share it. false: `*err` says why.
  bool open(const std::string& path, std::string* err);
  /// Records into memory: the latest `bytes` are kept, and written to the file by dump() and when its last
  /// Tracer closes it.
  bool open_ring(const std::string& path, std::size_t bytes, std::string* err);
  /// Writes the ring's contents to `path` (empty: that of open_ring()); they stay. false: `*err` says why.
  bool dump(const std::string& path, std::string* err);
  /// Records into memory (tests).
  void open_memory();
  /// What open_memory() has gathered since the last call; blobs, if wanted, in a parallel vector.
  std::vector<Record> drain(std::vector<std::vector<std::uint8_t>>* blobs = nullptr);
  /// Writes buffered records even if a block is not full. (The file's bytes then depend on when this is
  /// called.)
  void flush();
  /// Ends recording; the last Tracer of a file completes it.
  void close();

  /// Pauses and resumes recording; errors are counted all the same.
  void set_on(bool on);
  bool on() const { return on_; }
  /// Selects what is recorded from now on (RecordFilter::parse()). false: `*err` says what is wrong with it.
  bool set_filter(const std::string& text, std::string* err);
  const std::string& filter() const { return filter_.text(); }

  bool enabled() const { return enabled_; }
  /// Whether detail points are recorded; callers ask before they make such a record.
  bool detail() const { return detail_; }
  /// The same of the points that say how frames go through flow tables.
  bool paths() const { return paths_; }
  /// Called with each unit's work, whether it is recorded or not: unit, from, to. None: nobody.
  using BusyWatch = std::function<void(Unit, std::int64_t, std::int64_t)>;
  void on_busy(BusyWatch watch);
  /// Somebody wants to know when units work.
  bool busy_wanted() const { return busy_wanted_; }
  void busy(Unit unit, unsigned which, std::int64_t from, std::int64_t to, std::uint32_t qpn);
  unsigned hca() const { return hca_; }
  /// A QPN of this HCA as packets carry it as side data, for records that other HCAs make about its WQEs.
  std::uint32_t tag(std::uint32_t qpn) const { return QpTag::of(hca_, qpn); }
  /// A number for the next step of a frame through flow tables (points frame_*): 24 bits that count, and
  /// above them as much of this HCA's number as there is room for.
  std::uint32_t next_step() { return (hca_ % 255 + 1) << 24 | (++steps_ & 0xffffff); }

  void record(Point p, std::int64_t time_ps, Subject obj, std::uint32_t index, std::uint64_t a0 = 0,
              std::uint64_t a1 = 0) {
    if (is_error(p)) count_error(p);
    if (__builtin_expect(enabled_, 0)) {
      if (!is_error(p)) count_error(p);
      put(p, time_ps, obj, index, a0, a1);
    }
  }
  /// `n` records of neighbours, the i-th at times[i], of index + i, with a0 + i * step: less work than one by
  /// one.
  void record_series(Point p, const std::int64_t* times, unsigned n, Subject obj, std::uint32_t index,
                     std::uint64_t a0, std::uint32_t step, std::uint64_t a1) {
    if (is_error(p) || enabled_) counts_[static_cast<unsigned>(p)] += n;
    if (__builtin_expect(enabled_, 0)) put_series(p, times, n, obj, index, a0, step, a1);
  }
  /// A record with a blob, such as a mailbox; cut to kMaxBlob bytes.
  void record_blob(Point p, std::int64_t time_ps, Subject obj, std::uint32_t index, std::uint64_t a0,
                   std::uint64_t a1, const void* bytes, std::size_t len) {
    if (is_error(p)) count_error(p);
    if (__builtin_expect(enabled_, 0)) put_blob(p, time_ps, obj, index, a0, a1, bytes, len);
  }

  /// The driver has broken a rule. `number` is the object's; `bytes` are the wrong ones.
  Rules& rules() { return rules_; }
  const Rules& rules() const { return rules_; }
  void broke(Rule rule, std::int64_t time_ps, RuleObject object, Subject number, const void* bytes,
             std::size_t len);
  void broke(Rule rule, std::int64_t time_ps, RuleObject object, Subject number) {
    broke(rule, time_ps, object, number, nullptr, 0);
  }
  /// The same with a wrong value, recorded big-endian without leading zero bytes (4 bytes at least).
  void broke_value(Rule rule, std::int64_t time_ps, RuleObject object, Subject number, std::uint64_t value);

  /// Only counts an error.
  void count_error(Point p) { ++counts_[static_cast<unsigned>(p)]; }
  /// How many records an error point had (always counted), or any other point (while recording).
  std::uint64_t count(Point p) const { return counts_[static_cast<unsigned>(p)]; }
  /// Of a saved state, which goes on from there.
  void set_count(Point p, std::uint64_t n) { counts_[static_cast<unsigned>(p)] = n; }
  std::uint32_t steps() const { return steps_; }
  void set_steps(std::uint32_t n) { steps_ = n; }

 private:
  void fill(Record& r, Point p, std::int64_t time_ps, Subject obj, std::uint32_t index, std::uint64_t a0,
            std::uint64_t a1, unsigned flags, unsigned blob_len) const;
  void put(Point p, std::int64_t time_ps, Subject obj, std::uint32_t index, std::uint64_t a0,
           std::uint64_t a1);
  void put_series(Point p, const std::int64_t* times, unsigned n, Subject obj, std::uint32_t index,
                  std::uint64_t a0, std::uint32_t step, std::uint64_t a1);
  void put_blob(Point p, std::int64_t time_ps, Subject obj, std::uint32_t index, std::uint64_t a0,
                std::uint64_t a1, const void* bytes, std::size_t len);

  void settle();

  bool enabled_ = false, detail_ = false, paths_ = false, busy_wanted_ = false, on_ = true;
  unsigned hca_;
  std::uint32_t steps_ = 0;
  std::shared_ptr<Sink> sink_;
  FileSink* file_ = nullptr;  // sink_, if it is a FileSink
  std::array<std::uint64_t, kPoints> counts_{};
  Rules rules_;
  RecordFilter filter_;
  BusyWatch busy_watch_;
};

/// `trace(tracer, Point::kDoorbell, now, qpn, serial, ...)`.
template <class... A>
inline void trace(Tracer& t, Point p, std::int64_t time_ps, Subject obj, std::uint32_t index, A... a) {
  t.record(p, time_ps, obj, index, static_cast<std::uint64_t>(a)...);
}

/// The tracer as one PCIe function uses it: what is recorded through it names that function.
class FunctionTracer {
 public:
  FunctionTracer(Tracer& tracer, unsigned function) : tracer_(tracer), function_(function) {}
  Tracer& card() const { return tracer_; }
  bool enabled() const { return tracer_.enabled(); }
  bool detail() const { return tracer_.detail(); }
  bool paths() const { return tracer_.paths(); }
  Rules& rules() const { return tracer_.rules(); }
  std::uint32_t tag(std::uint32_t qpn) const { return tracer_.tag(qpn); }
  void count_error(Point p) const { tracer_.count_error(p); }
  std::uint64_t count(Point p) const { return tracer_.count(p); }

  void record(Point p, std::int64_t time_ps, std::uint32_t obj, std::uint32_t index, std::uint64_t a0 = 0,
              std::uint64_t a1 = 0) const {
    tracer_.record(p, time_ps, {function_, obj}, index, a0, a1);
  }
  void record_series(Point p, const std::int64_t* times, unsigned n, Subject obj, std::uint32_t index,
                     std::uint64_t a0, std::uint32_t step, std::uint64_t a1) const {
    tracer_.record_series(p, times, n, obj, index, a0, step, a1);
  }
  void record_blob(Point p, std::int64_t time_ps, std::uint32_t obj, std::uint32_t index, std::uint64_t a0,
                   std::uint64_t a1, const void* bytes, std::size_t len) const {
    tracer_.record_blob(p, time_ps, {function_, obj}, index, a0, a1, bytes, len);
  }
  void broke(Rule rule, std::int64_t time_ps, RuleObject object, std::uint32_t number,
             const void* bytes = nullptr, std::size_t len = 0) const {
    tracer_.broke(rule, time_ps, object, {function_, number}, bytes, len);
  }
  void broke_value(Rule rule, std::int64_t time_ps, RuleObject object, std::uint32_t number,
                   std::uint64_t value) const {
    tracer_.broke_value(rule, time_ps, object, {function_, number}, value);
  }

 private:
  Tracer& tracer_;
  unsigned function_;
};

template <class... A>
inline void trace(const FunctionTracer& t, Point p, std::int64_t time_ps, std::uint32_t obj,
                  std::uint32_t index, A... a) {
  t.record(p, time_ps, obj, index, static_cast<std::uint64_t>(a)...);
}

/// A unit (number `which` of its kind) is busy from `from` to `to`, ps, for a QP.
inline void trace_busy(Tracer& t, Unit unit, unsigned which, std::int64_t from, std::int64_t to,
                       std::uint32_t qpn = 0) {
  if (__builtin_expect(t.busy_wanted(), 0)) t.busy(unit, which, from, to, qpn);
}

}  // namespace hcasim::traces
