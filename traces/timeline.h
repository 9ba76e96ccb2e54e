// SPDX-License-Identifier: BSD-3-Clause
/// What goes on beside WQEs and commands, as far as exports show it; and the guest's own trace, put on the
/// same time line.
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
  /// The trace has detail points: units, DMA, packets as they were; else they are taken from the WQEs'
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
  std::int64_t took_ns = -1;          ///< of a function whose duration is known
  bool begins = false, ends = false;  ///< entry and exit of a function (function_graph) that calls others
};

/// The text of `trace-cmd report`, or of tracefs' file `trace`: function, function_graph (as trace-cmd has
/// it), and events. Lines that are none of these are counted. false: `*err` says why it cannot be read.
struct GuestTrace {
  std::vector<GuestEvent> events;  ///< as they stand in the file
  std::uint64_t other_lines = 0;

  bool read(const std::string& path, std::string* err);
  void add_line(const std::string& line);
};

/// What has to be added to the guest's times, ns, and how that was found.
struct ClockOffset {
  bool known = false;
  std::int64_t ns = 0;
  std::int64_t least = 0, most = 0;   ///< it lies there,
  bool below = false, above = false;  ///< if something bounds it from that side; else within some us
  std::string how;                    ///< known
  std::string why_not;                ///< not known
  /// Events of the guest that stand by a record of the HCA, and those that could.
  std::size_t matched = 0, of = 0;
};

/// 1. A line that the guest wrote into trace_marker, "hcasim: t=NS" with NS of simulated time, says it
/// exactly.
/// 2. Else causes come before effects: functions that ring a doorbell or post a command before the HCA's
///    record of it; their return, and interrupt handlers, behind the record. The offset is the middle of
///    where all of them do. If others fit as well (events at an even pace, shifted by one), it is not known.
ClockOffset find_offset(const Timeline& t, const GuestTrace& guest);

/// Perfetto's protobuf format. `guest`: may be null. false: it cannot be written.
bool write_perfetto_proto(const Timeline& t, const GuestTrace* guest, std::int64_t guest_offset_ns,
                          std::FILE* out);
/// A row, or an object, a WQE with all times of its stages.
bool write_csv(const Analysis& a, std::FILE* out);
bool write_json_wqes(const Analysis& a, std::FILE* out);
/// Value change dump: for each send queue how many WQEs are posted and not completed, for each HCA what its
/// engines, link and DMA are at.
bool write_vcd(const Timeline& t, std::FILE* out);

/// What works, from when to when: of units, link directions, DMA.
struct Busy {
  unsigned hca = 0;
  std::string what;               ///< "transmit engine", "link out", ...
  std::string name;               ///< of the piece of work
  std::int64_t from = 0, to = 0;  ///< ps
};
/// By `from`. Of detail points if there are any, else of the WQEs' stages.
std::vector<Busy> busy_times(const Timeline& t);

}  // namespace hcasim::traces
