// SPDX-License-Identifier: BSD-3-Clause
/// Turns records into the lives of WQEs and commands.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/reader.h"

namespace hcasim::traces {

/// Stages of a WQE in display order. For READ and atomics kAckTx and kAck stand for the responses.
enum class Stage : unsigned {
  kDoorbell,
  kScheduled,
  kFetch,
  kParsed,
  kTranslated,
  kGathered,
  kTxFirst,
  kTxLast,
  kRx,
  kChecked,
  kRwqe,
  kScattered,
  kAckTx,
  kAck,
  kCqe,
  kConsumed,
  kCount
};
constexpr unsigned kStages = static_cast<unsigned>(Stage::kCount);
extern const char* const kStageNames[kStages];

constexpr std::int64_t kNoTime = INT64_MIN;
constexpr std::uint64_t kNoRecord = UINT64_MAX;
constexpr unsigned kBatchStages = 3;  ///< the first ones: their records are of several WQEs

struct WqeRow {
  std::uint16_t hca = 0;       ///< the requester's
  std::uint16_t function = 0;  ///< of that HCA; known of those that were posted()
  std::uint32_t qpn = 0, serial = 0;
  int opcode = -1;  ///< WQE opcode; -1: no wqe_parsed record
  int bth_opcode = -1;
  std::uint16_t wqe_counter = 0;
  std::uint64_t bytes = 0;
  std::array<std::int64_t, kStages> time;  ///< ps; kNoTime: stage not reached
  /// Numbers in the file of the records that the first stages are known by; kNoRecord: none. A doorbell that
  /// came after the WQE had been fetched (the card had read the doorbell record for an earlier one) has no
  /// time above.
  std::array<std::uint64_t, kBatchStages> batch;
  std::int64_t done = kNoTime;           ///< ps
  std::int64_t failed = kNoTime;         ///< ps; it was found wrong, or flushed
  std::int64_t seen = kNoTime;           ///< ps; the first record of it
  std::int64_t responder_cqe = kNoTime;  ///< ps
  int status = -1;                       ///< CQE syndrome, 0 = success; -1: not completed
  bool has_cqe = false, flushed = false;
  std::uint32_t retransmits = 0, naks = 0, packets = 0;
  int responder_hca = -1;           ///< HCA that received it; -1: none in this trace
  std::uint32_t responder_qpn = 0;  ///< 0: no packet of it passed the checks
  unsigned life = 0;                ///< of its send queue: how many resets came before
  /// ps; its queue was reset or destroyed, or made anew, and it had not ended.
  std::int64_t dropped = kNoTime;
  /// Record numbers between which that life lies in the file: [from, until).
  std::uint64_t from = 0, until = UINT64_MAX;

  WqeRow() {
    time.fill(kNoTime);
    batch.fill(kNoRecord);
  }
  std::int64_t at(Stage s) const { return time[static_cast<unsigned>(s)]; }
  /// First and last time known at the requester, ps; of one without any stage the first of its records.
  std::int64_t start() const;
  std::int64_t end() const;
  /// Whether it was seen to be posted, and when it was no longer under way, ps; kNoTime: it still was.
  bool posted() const { return opcode >= 0; }
  std::int64_t left() const { return end() != kNoTime ? std::max(end(), start()) : dropped; }
  /// The stages reached, sorted by time: payload may overtake the start of its packet, a READ scatters last.
  std::vector<std::pair<Stage, std::int64_t>> steps() const;
  std::string opcode_name() const;
  std::string status_name() const;
};

struct CommandRow {
  std::uint16_t hca = 0, function = 0;
  std::uint32_t slot = 0, seq = 0;
  std::uint16_t opcode = 0, op_mod = 0, uid = 0;
  std::int64_t start = kNoTime, end = kNoTime;  ///< ps
  std::uint8_t status = 0, delivery = 0;
  std::uint32_t syndrome = 0;
  std::vector<std::uint8_t> input, output;

  bool failed() const { return end != kNoTime && (status != 0 || delivery != 0); }
  std::string name() const;
  /// HCA, or HCA.FUNCTION of one that is not its first.
  std::string place() const;
  std::string status_name() const;
};

/// Whether a mailbox is long enough for this field.
template <class F>
bool holds(const std::vector<std::uint8_t>& mailbox) {
  return mailbox.size() * 8 >= F::bit_off + F::bits;
}

struct Filter {
  std::int64_t qpn = -1;  ///< only WQEs of this QPN
  std::int64_t hca = -1;  ///< only records of this HCA, or about its WQEs
};

class Analysis {
 public:
  explicit Analysis(Filter filter = {}) : filter_(filter) {}

  void add(const Record& r, const std::vector<std::uint8_t>& blob);
  /// Call after the last record.
  void finish();

  const std::vector<WqeRow>& wqes() const { return wqes_; }
  const std::vector<CommandRow>& commands() const { return commands_; }
  /// Drops all other commands. Call after finish().
  template <class Keep>
  void keep_commands(Keep keep) {
    commands_.erase(
        std::remove_if(commands_.begin(), commands_.end(), [&](const CommandRow& c) { return !keep(c); }),
        commands_.end());
  }
  /// kMkeyChanged records in file order.
  const std::vector<Record>& keys() const { return keys_; }
  /// kHealth records in file order.
  const std::vector<Record>& health() const { return health_; }
  /// Error and fault records in file order.
  const std::vector<Record>& errors() const { return errors_; }
  std::uint64_t count(Point p) const { return counts_[static_cast<unsigned>(p)]; }
  std::uint64_t records() const { return records_; }
  std::uint64_t unknown() const { return unknown_; }
  /// Packets from outside this process; their WQE is unknown.
  std::uint64_t foreign_packets() const { return foreign_packets_; }

 private:
  /// A record of the send queue, not of one WQE.
  struct Batch {
    std::int64_t time = kNoTime;
    std::uint64_t record = kNoRecord, a0 = 0, a1 = 0;
  };
  struct Doorbell {
    Batch batch;
    std::uint16_t after = 0;  // the WQE counter that those before it rang for last
    bool after_known = false;
  };
  /// A send queue between two resets: serials start at 0 again after each.
  struct Queue {
    std::unordered_map<std::uint32_t, std::size_t> rows;
    std::deque<Doorbell> doorbells;  // of WQEs that are not decoded yet, and the last one of those that are
    std::optional<std::uint16_t> rung;  // up to which WQE counter
    std::deque<std::size_t> early;      // rows that were decoded before their doorbell came
    Batch scheduled, fetch;             // the latest
    std::uint64_t gap = 0;              // the record before which some were left out
    std::uint32_t next = 0;             // the serial behind the last that was decoded
    unsigned function = 0;              // of the HCA
    std::int64_t over = kNoTime;        // it was reset or destroyed; late records are still of it
    unsigned life = 0;
    std::uint64_t from = 0;
  };
  struct PendingCqe {
    std::uint32_t producer;
    std::size_t row;
  };

  void wqe_record(const Record& r);
  void batch_record(Queue& q, const Record& r);
  void doorbell(Queue& q, const Record& r);
  static bool rings_for(const Queue& q, const Doorbell& d, std::uint16_t counter);
  // Gives the WQE that was decoded the records of its batch.
  void decoded(Queue& q, std::size_t row);
  // The row of a WQE by its serial number; a new one if it has none yet.
  std::size_t row_of(Queue& q, unsigned hca, std::uint32_t qpn, std::uint32_t serial);
  // What a record says of the stages that the WQE of this row has passed.
  void stage(const Record& r, std::size_t row);
  void command_record(const Record& r, const std::vector<std::uint8_t>& blob);
  void consumed(const Record& r);
  // The queue's life has ended; `now`: when, if that is not known.
  void close_queue(Queue& q, std::int64_t now);
  // Whether a record of the requester's belongs to a next life.
  bool starts_anew(const Queue& q, const Record& r) const;
  void object_record(const Record& r);
  void queue_over(const Record& r, std::uint32_t number);

  Filter filter_;
  std::vector<WqeRow> wqes_;
  std::vector<CommandRow> commands_;
  std::vector<Record> errors_, keys_, health_;
  std::array<std::uint64_t, kPoints> counts_{};
  std::uint64_t records_ = 0, unknown_ = 0, foreign_packets_ = 0;
  std::map<std::pair<unsigned, std::uint32_t>, Queue> queues_;  // by HCA, QPN
  // By function of an HCA (function_key()), and number.
  std::map<std::pair<unsigned, std::uint32_t>, std::size_t> open_commands_;
  std::map<std::pair<unsigned, std::uint32_t>, std::vector<PendingCqe>> pending_cqes_;
};

}  // namespace hcasim::traces
