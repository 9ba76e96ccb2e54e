// SPDX-License-Identifier: BSD-3-Clause
/// One WQE's life in full: every record about it, at both ends, and what else bore upon it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/analysis.h"

namespace hcasim::traces {

/// Names a WQE: "HCA:QPN:SERIAL", with ".LIFE" behind it when its QP was reset and serials began anew (0 is
/// the first life). Numbers in any base that C writes.
struct WqeId {
  unsigned hca = 0;
  std::uint32_t qpn = 0, serial = 0;
  unsigned life = 0;
};
/// false: `*err` says what a name looks like.
bool parse_wqe_id(const std::string& text, WqeId* id, std::string* err);
std::string wqe_id(const WqeRow& w);
/// nullptr: the trace has none of that name.
const WqeRow* find_wqe(const Analysis& a, const WqeId& id);

struct Story {
  const WqeRow* wqe = nullptr;
  /// Records of the WQE itself, by time: its stages, packets, answers, errors; both ends'.
  std::vector<Record> own;
  /// What else happened while it lived to what it used: its QPs, its CQ, memory of its HCAs, the port, faults
  /// that were injected; by time.
  std::vector<Record> around;
  /// The other end, as far as it is in this trace; responder_hca < 0: nothing of the WQE was seen to arrive.
  int responder_hca = -1;
  std::uint32_t responder_qpn = 0;
  /// From the context that the driver gave: -1 if the trace does not hold the commands.
  std::int64_t remote_qpn = -1, send_cqn = -1;
  /// The commands that made the QP what it was, in order.
  std::vector<const CommandRow*> context;

  std::vector<Record> all(Point p) const;  ///< of `own`
  bool has(Point p) const;
  /// The last of these commands to succeed before `t` (ps) that CREATE_MKEY of this key's index was; nullptr:
  /// the trace has none.
  const CommandRow* mkey_before(const Analysis& a, unsigned hca, std::uint32_t key, std::int64_t t) const;
};

/// Reads the trace once more, from its start (`path` was analysed into `a`). false: `*err` says why not.
bool tell(const std::string& path, const Analysis& a, const WqeRow& w, Story* story, std::string* err);

/// What a record says, in words, without its time.
std::string in_words(const Record& r);
std::string time_text(std::int64_t ps);  ///< "1.234 us"

/// Why a WQE ended as it did, or took as long as it took: sentences, each with the records that prove it.
struct Reason {
  std::string text;
  std::vector<Record> proof;
};
std::vector<Reason> why(const Analysis& a, const Story& s);
/// The same of a command.
std::vector<Reason> why(const Analysis& a, const CommandRow& c);

}  // namespace hcasim::traces
