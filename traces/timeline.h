// SPDX-License-Identifier: BSD-3-Clause
/// What exports show besides WQEs and commands; and the guest's own trace on the same time line.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "traces/analysis.h"

namespace hcasim::traces {

/// A trace file, read for an export.
struct Timeline {
  explicit Timeline(Filter filter = {}) : wqes(filter), filter_(filter) {}

  void add(const Record& r, const std::vector<std::uint8_t>& blob);
  void finish() { wqes.finish(); }

  Analysis wqes;  ///< and commands, errors
  /// Records of EQEs, interrupts, CQ arming, context misses, port and health states, and of the detail
  /// points.
  std::vector<Record> others;
  /// The trace has detail points, so units, DMA and packets are exact; else they are derived from the WQEs'
  /// stages.
  bool detail = false;

 private:
  Filter filter_;
};

/// A line of the guest's kernel trace.
struct GuestEvent {
  std::int64_t time_ns = 0;  ///< of the guest's trace clock
  unsigned cpu = 0;
  std::int64_t pid = 0;
  std::string task;                   ///< without its number
  std::string name;                   ///< function, or event
  std::string details;                ///< of an event; of a function: its caller
  std::int64_t took_ns = -1;          ///< duration of a function, if known
  bool begins = false, ends = false;  ///< entry and exit of a function (function_graph) that calls others
};

/// The text of `trace-cmd report` or of tracefs' file `trace`: function, function_graph (in trace-cmd's
/// format) and events. Other lines are counted. false: `*err` says why it cannot be read.
struct GuestTrace {
  std::vector<GuestEvent> events;  ///< in file order
  std::uint64_t other_lines = 0;

  bool read(const std::string& path, std::string* err);
  void add_line(const std::string& line);
};

/// The offset to add to the guest's times, ns, and how it was found.
struct ClockOffset {
  bool known = false;
  std::int64_t ns = 0;
  std::int64_t least = 0, most = 0;   ///< bounds of the offset,
  bool below = false, above = false;  ///< if a cause or effect bounds that side; else an estimate of some us
  std::string how;                    ///< if known: how
  std::string why_not;                ///< if not known: why
  /// Events of the guest that match a record of the HCA, and those that could.
  std::size_t matched = 0, of = 0;
};

/// 1. A line that the guest wrote into trace_marker, "hcasim: t=NS" with NS of simulated time, gives it
/// exactly.
/// 2. Else causes come before effects: functions that ring a doorbell or post a command before the HCA's
///    record of it; their return, and interrupt handlers, after the record. The offset is the middle of
///    the interval in which all of these hold. If other intervals fit as well (evenly spaced events, shifted
///    by one), the offset is not known.
ClockOffset find_offset(const Timeline& t, const GuestTrace& guest);

/// Writes Perfetto's protobuf format. `guest` may be null. false: writing failed.
bool write_perfetto_proto(const Timeline& t, const GuestTrace* guest, std::int64_t guest_offset_ns,
                          std::FILE* out);
/// A row, or an object, a WQE with all times of its stages.
bool write_csv(const Analysis& a, std::FILE* out);
bool write_json_wqes(const Analysis& a, std::FILE* out);
/// Value change dump: for each send queue the number of WQEs posted and not completed, for each HCA the
/// activity of its engines, link and DMA.
bool write_vcd(const Timeline& t, std::FILE* out);

/// A busy interval of a unit, a link direction or DMA.
struct Busy {
  unsigned hca = 0;
  std::string what;               ///< "transmit engine", "link out", ...
  std::string name;               ///< of the piece of work
  std::int64_t from = 0, to = 0;  ///< ps
};
/// Sorted by `from`. From detail points if there are any, else from the WQEs' stages.
std::vector<Busy> busy_times(const Timeline& t);

}  // namespace hcasim::traces
