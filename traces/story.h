// SPDX-License-Identifier: BSD-3-Clause
/// The complete life of one WQE: every record about it, at both ends, and related events.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/analysis.h"

namespace hcasim::traces {

/// The name of a WQE: "HCA:QPN:SERIAL", followed by ".LIFE" if its QP was reset and serials restarted (0 is
/// the first life). Numbers in any base of C.
struct WqeId {
  unsigned hca = 0;
  std::uint32_t qpn = 0, serial = 0;
  unsigned life = 0;
};
/// false: not a name; `*err` says what one looks like.
bool parse_wqe_id(const std::string& text, WqeId* id, std::string* err);
std::string wqe_id(const WqeRow& w);
/// The WQE that a record is about, without its queue's life; "": none.
std::string wqe_of(const Record& r);
/// nullptr: not in the trace.
const WqeRow* find_wqe(const Analysis& a, const WqeId& id);

struct Story {
  const WqeRow* wqe = nullptr;
  /// Records of the WQE itself, of both ends, by time: stages, packets, answers, errors.
  std::vector<Record> own;
  /// Other events of its lifetime, by time: of its QPs, its CQ, its HCAs' memory and port; injected faults.
  std::vector<Record> around;
  /// The other end, as far as this trace has it; responder_hca < 0: no packet of the WQE arrived.
  int responder_hca = -1;
  std::uint32_t responder_qpn = 0;
  /// From the context that the driver gave: -1 if the trace does not hold the commands.
  std::int64_t remote_qpn = -1, send_cqn = -1;
  /// The commands that created and modified the QP, in order.
  std::vector<const CommandRow*> context;

  std::vector<Record> all(Point p) const;  ///< of `own`
  bool has(Point p) const;
  /// The last CREATE_MKEY of this key's index that succeeded before `t` (ps); nullptr: not in the trace.
  /// `of`: a record of the key's HCA and function.
  const CommandRow* mkey_before(const Analysis& a, const Record& of, std::uint32_t key, std::int64_t t) const;
};

/// Reads the trace again from its start (`a` is the analysis of `path`). false: `*err` says why.
bool tell(const std::string& path, const Analysis& a, const WqeRow& w, Story* story, std::string* err);
/// The same of several, read at once: `each` is called for one after the other, in their order.
bool tell(const std::string& path, const Analysis& a, const std::vector<const WqeRow*>& wqes,
          const std::function<void(const Story&)>& each, std::string* err);

/// "HCA", or "HCA.FUNCTION" of a record of a function that is not its first.
std::string place_of(const Record& r);
/// A record in words, without its time.
std::string in_words(const Record& r);
std::string time_text(std::int64_t ps);  ///< "1.234 us"

/// What WQEs are compared by: those of the same HCA, QP, opcode and length are like one another.
using Like = std::tuple<unsigned, std::uint32_t, int, std::uint64_t>;
inline Like like(const WqeRow& w) { return {w.hca, w.qpn, w.opcode, w.bytes}; }

/// What is usual of the successful WQEs that are like one.
class Usual {
 public:
  explicit Usual(const Analysis& a);
  struct Time {
    std::size_t count = 0;    ///< of WQEs that it is the median of
    std::int64_t median = 0;  ///< ps
  };
  Time life(const WqeRow& w);
  /// From one stage to another, of those that passed both in this order.
  Time step(const WqeRow& w, Stage from, Stage to);

 private:
  struct Kind {
    std::vector<const WqeRow*> rows;
    std::map<std::pair<Stage, Stage>, Time> steps;
    std::optional<Time> life;
  };
  Kind& kind_of(const WqeRow& w) { return kinds_[like(w)]; }
  std::map<Like, Kind> kinds_;
};

/// Why a WQE failed or was slow: sentences, each with the records that prove it.
struct Reason {
  std::string text;
  std::vector<Record> proof;
};
std::vector<Reason> why(const Analysis& a, const Story& s);
/// The same of one among several, all of the same analysis: what is usual is found once.
std::vector<Reason> why(const Analysis& a, const Story& s, Usual* usual);
/// The same of a command.
std::vector<Reason> why(const Analysis& a, const CommandRow& c);

}  // namespace hcasim::traces
