// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/workload.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace hcasim::fabric {

namespace {

constexpr double kLongest = 1e7;  // us
constexpr std::size_t kLongestLine = 256;

Time from_us(double us) { return static_cast<Time>(std::llround(us * 1000)) * kNs; }

// "time_us, source, destination, bytes"; '#' begins a comment.
WorkloadSpec::Row read_row(const std::string& where, std::string line, unsigned cards) {
  for (char& c : line) c = c == ',' ? ' ' : c;
  std::istringstream in(line);
  double at = 0;
  std::int64_t source = -1, destination = -1, bytes = -1;
  std::string more;
  if (!(in >> at >> source >> destination >> bytes) || in >> more)
    throw ScenarioError(where + "a line is: time in us, source, destination, bytes");
  if (!(at >= 0 && at <= kLongest)) throw ScenarioError(where + "the time must be from 0 to 10000000 us");
  for (const std::int64_t card : {source, destination})
    if (card < 0 || card >= static_cast<std::int64_t>(cards))
      throw ScenarioError(where + "there is no card " + std::to_string(card) + "; cards are 0 to " +
                          std::to_string(cards - 1));
  if (source == destination) throw ScenarioError(where + "source and destination are the same");
  if (bytes < 1 || static_cast<std::uint64_t>(bytes) > kLargestMessage)
    throw ScenarioError(where + "a message has 1 to " + std::to_string(kLargestMessage) + " bytes");
  return {from_us(at), static_cast<unsigned>(source), static_cast<unsigned>(destination),
          static_cast<std::uint64_t>(bytes)};
}

std::vector<WorkloadSpec::Row> read_trace(Section& s, const std::string& scenario, unsigned cards) {
  const std::string name = s.text("file", "");
  if (name.empty()) s.missing("file", "; the trace's path, from this file's folder");
  const std::string path = (std::filesystem::path(scenario).parent_path() / name).string();
  std::error_code error;
  // Asked first: to open a named pipe waits for who writes into it.
  if (!std::filesystem::is_regular_file(path, error)) s.fail("file", "cannot read " + path);
  std::ifstream in(path);
  if (!in) s.fail("file", "cannot read " + path);
  std::vector<WorkloadSpec::Row> rows;
  unsigned number = 0;
  for (std::string line; std::getline(in, line);) {
    const std::string where = path + ":" + std::to_string(++number) + ": ";
    if (line.size() > kLongestLine) throw ScenarioError(where + "the line is too long");
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (rows.size() == kMostMessages) throw ScenarioError(where + "too many messages");
    rows.push_back(read_row(where, line, cards));
  }
  if (rows.empty()) throw ScenarioError(path + ": there is no message in it");
  return rows;
}

WorkloadSpec read_workload(Section& s, const std::string& file, unsigned cards) {
  WorkloadSpec w;
  w.kind = s.word("kind", "", {"all-to-all", "incast", "ring-allreduce", "tree-allreduce", "trace"});
  w.name = s.text("name", w.kind);
  w.start = from_us(s.real("start_us", 0, 0, kLongest));
  const auto number = [&s](const char* key, unsigned fallback, unsigned low, unsigned high) {
    return static_cast<unsigned>(s.whole(key, fallback, low, high));
  };
  if (w.kind == "trace") {
    w.trace = read_trace(s, file, cards);
    s.done();
    return w;
  }
  const bool reduce = w.kind == "ring-allreduce" || w.kind == "tree-allreduce";
  w.bytes = s.whole("bytes", 1, reduce ? kLargestMessage * 16 : kLargestMessage);
  if (reduce) {
    w.cards = number("cards", cards, 2, cards);
    if (w.kind == "tree-allreduce") {
      w.chunks = number("chunks", 1, 1, 1024);
      w.arity = number("arity", 2, 1, 64);
    }
    const std::uint64_t parts = w.kind == "tree-allreduce" ? w.chunks : w.cards;
    if (w.bytes < parts) s.fail("bytes", "must be " + std::to_string(parts) + " at least, one for each part");
    if (w.bytes / parts > kLargestMessage) s.fail("bytes", "a part of it is larger than 1 GiB");
  } else {
    w.rounds = number("rounds", 1, 1, 1u << 20);
    w.window = number("window", 0, 0, 1u << 20);
    if (w.kind == "incast") {
      w.receiver = number("receiver", 0, 0, cards - 1);
      w.senders = number("senders", cards - 1, 1, cards - 1);
    } else {
      w.peers = number("peers", cards - 1, 1, cards - 1);
    }
  }
  s.done();
  return w;
}

class Builder {
 public:
  Builder(const std::vector<WorkloadSpec>& specs, unsigned cards) : specs_(specs), cards_(cards) {}

  Workload build() {
    for (const WorkloadSpec& w : specs_) {
      if (w.kind == "all-to-all") all_to_all(w);
      if (w.kind == "incast") incast(w);
      if (w.kind == "ring-allreduce") ring(w);
      if (w.kind == "tree-allreduce") tree(w);
      if (w.kind == "trace")
        for (const auto& row : w.trace) add(w, row.source, row.destination, row.bytes, row.at);
      ++job_;
    }
    for (const Dependency& d : out_.dependencies) ++out_.messages[d.after].waits;
    std::stable_sort(out_.dependencies.begin(), out_.dependencies.end(),
                     [](const Dependency& a, const Dependency& b) { return a.before < b.before; });
    return std::move(out_);
  }

 private:
  std::uint32_t add(const WorkloadSpec& w, unsigned from, unsigned to, std::uint64_t bytes, Time at = 0) {
    if (out_.messages.size() == kMostMessages)
      throw ScenarioError("workload " + w.name + ": more than " + std::to_string(kMostMessages) +
                          " messages");
    out_.messages.push_back({from, to, bytes, w.start + at, 0, job_});
    return static_cast<std::uint32_t>(out_.messages.size() - 1);
  }
  void then(std::uint32_t before, std::uint32_t after) { out_.dependencies.push_back({before, after}); }
  // A sender's messages in their order, so many under way.
  void windowed(const WorkloadSpec& w, std::vector<std::uint32_t>& sent, std::uint32_t next) {
    if (w.window != 0 && sent.size() >= w.window) then(sent[sent.size() - w.window], next);
    sent.push_back(next);
  }

  void all_to_all(const WorkloadSpec& w) {
    for (unsigned from = 0; from < cards_; ++from) {
      std::vector<std::uint32_t> sent;
      for (unsigned round = 0; round < w.rounds; ++round)
        for (unsigned step = 1; step <= w.peers; ++step)
          windowed(w, sent, add(w, from, (from + step) % cards_, w.bytes));
    }
  }

  void incast(const WorkloadSpec& w) {
    for (unsigned i = 1; i <= w.senders; ++i) {
      std::vector<std::uint32_t> sent;
      for (unsigned round = 0; round < w.rounds; ++round)
        windowed(w, sent, add(w, (w.receiver + i) % cards_, w.receiver, w.bytes));
    }
  }

  // Reduce-scatter, then all-gather: 2 (n - 1) steps of a part each, to the next card.
  void ring(const WorkloadSpec& w) {
    const std::uint64_t part = (w.bytes + w.cards - 1) / w.cards;
    std::vector<std::uint32_t> before(w.cards), step(w.cards);
    for (unsigned s = 0; s < 2 * (w.cards - 1); ++s) {
      for (unsigned i = 0; i < w.cards; ++i) {
        step[i] = add(w, i, (i + 1) % w.cards, part);
        if (s != 0) then(before[(i + w.cards - 1) % w.cards], step[i]);
      }
      before.swap(step);
    }
  }

  // Up to card 0, and down again, part by part; card i's children are arity * i + 1 and those that follow.
  void tree(const WorkloadSpec& w) {
    const std::uint64_t part = (w.bytes + w.chunks - 1) / w.chunks;
    for (unsigned chunk = 0; chunk < w.chunks; ++chunk) {
      std::vector<std::uint32_t> up(w.cards), down(w.cards);
      for (unsigned i = w.cards; i-- > 1;) {
        up[i] = add(w, i, (i - 1) / w.arity, part);
        for_children(w, i, [&](unsigned child) { then(up[child], up[i]); });
      }
      for (unsigned i = 1; i < w.cards; ++i) {
        const unsigned parent = (i - 1) / w.arity;
        down[i] = add(w, parent, i, part);
        if (parent != 0)
          then(down[parent], down[i]);
        else
          for_children(w, 0, [&](unsigned child) { then(up[child], down[i]); });
      }
    }
  }
  template <class F>
  static void for_children(const WorkloadSpec& w, unsigned i, F f) {
    for (unsigned c = 1; c <= w.arity; ++c) {
      const std::uint64_t child = std::uint64_t{i} * w.arity + c;
      if (child < w.cards) f(static_cast<unsigned>(child));
    }
  }

  const std::vector<WorkloadSpec>& specs_;
  const unsigned cards_;
  std::uint32_t job_ = 0;
  Workload out_;
};

}  // namespace

std::vector<WorkloadSpec> read_workloads(Section& root, const std::string& file, unsigned cards) {
  std::vector<WorkloadSpec> list;
  for (Section& s : root.tables("workload")) list.push_back(read_workload(s, file, cards));
  if (list.empty()) root.missing("workload", "; a [workload] says what the cards send");
  return list;
}

Workload build_workload(const std::vector<WorkloadSpec>& specs, unsigned cards) {
  return Builder(specs, cards).build();
}

std::vector<std::pair<unsigned, unsigned>> pairs_of(const Workload& workload) {
  std::vector<std::pair<unsigned, unsigned>> pairs;
  pairs.reserve(workload.messages.size());
  for (const Message& m : workload.messages)
    pairs.emplace_back(std::min(m.source, m.destination), std::max(m.source, m.destination));
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

}  // namespace hcasim::fabric
