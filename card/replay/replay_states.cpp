// SPDX-License-Identifier: BSD-3-Clause
// States of the HCAs in a replay: it begins with one, writes one, or saves and loads them on its way.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "card/api/simulation.h"
#include "card/replay/replay.h"

namespace hcasim::api {

namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;

std::string in_ms(std::int64_t ns) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(ns) / kNsPerMs);
  return text;
}

// The last state of a recording at or before a time.
struct LastState {
  std::string state;
  std::uint64_t event = 0;         // number of the next one
  std::int64_t first = HCA_NEVER;  // ns of simulated time, of the first state there is
};

// from: ns of simulated time. False: the recording cannot be read.
bool find_state(const std::string& path, std::int64_t from, LastState& found, std::string& err) {
  RecordingReader reader;
  if (!reader.open(path, err)) return false;
  Noted record;
  std::int64_t start = 0;
  for (std::uint64_t event = 1; reader.next(record);) {
    event += record.event != Event::kReturn;
    if (record.event == Event::kStart) start = static_cast<std::int64_t>(record.numbers[0]);
    if (record.event != Event::kSaved) continue;
    const std::int64_t at = static_cast<std::int64_t>(record.numbers[0]) - start;
    if (found.first == HCA_NEVER) found.first = at;
    if (at > from) break;
    found.state.swap(record.texts[0]);
    found.event = event;
  }
  return true;
}

}  // namespace

// Those of wires to other processes: by HCA, its hello, and what it has wanted of the link since.
class Replay::FarEnds {
 public:
  void note(const Noted& record) {
    std::vector<Noted>& end = ends_[record.numbers[0]];
    if (record.event == Event::kLinkUp || record.event == Event::kLinkDown) end.clear();
    if (record.event == Event::kLinkCarrier && !end.empty()) end.resize(1);
    if (record.event != Event::kLinkDown) end.push_back(record);
  }
  const std::map<std::uint64_t, std::vector<Noted>>& all() const { return ends_; }

 private:
  std::map<std::uint64_t, std::vector<Noted>> ends_;
};

// What the HCAs do about it, a state that is loaded then makes undone.
void Replay::join(const FarEnds& ends) {
  joining_ = true;
  for (const auto& [hca, records] : ends.all()) {
    for (const Noted& record : records) {
      std::uint64_t welcome = 0;
      if (!over_) from_wire(record, welcome);
    }
  }
  joining_ = false;
}

bool Replay::begin_at_state(const std::string& path, std::string& err) {
  if (!options_.from_state.empty()) {
    std::ifstream in(options_.from_state, std::ios::binary);
    const std::string state{std::istreambuf_iterator<char>(in), {}};
    if (!in) {
      err = options_.from_state + " cannot be read";
      return false;
    }
    return begin_with(state, options_.from_event, err);
  }
  LastState found;
  if (!find_state(path, options_.from, found, err)) return false;
  if (found.event == 0) {
    err = found.first == HCA_NEVER
              ? "there is no state in the recording: record with snapshot_every=TIME to have some"
              : "the first state in the recording is of " + in_ms(found.first);
    return false;
  }
  return begin_with(found.state, found.event, err);
}

bool Replay::begin_with(const std::string& state, std::uint64_t event, std::string& err) {
  Noted record;
  FarEnds ends;
  while (events_ < event && next(record)) {
    // Which cards there are, what joins them, what the host last said of their links, and whether they are
    // traced (the model looks at memory for that): the state has none of it.
    if (record.event == Event::kCreate || record.event == Event::kStart || record.event == Event::kCable ||
        record.event == Event::kCarrier || record.event == Event::kSetTrace) {
      call(record);
    } else if (record.event == Event::kDestroy) {
      // What it said at its end, of rules that its driver broke, it does not say here.
      std::uint64_t none = 0;
      joining_ = true;
      perform(record, none);
      joining_ = false;
    } else if (record.event == Event::kAttach) {
      if (hca_t* h = hca_of(record.numbers[0])) attach(h, record.numbers[0], record.numbers[1] != 0);
    } else if (record.event == Event::kLinkUp || record.event == Event::kLinkDown ||
               record.event == Event::kLinkCarrier) {
      ends.note(record);
    }
  }
  join(ends);
  char why[512] = "";
  if (!over_ && hca_sim_load(state.data(), state.size(), why, sizeof why) != 0) {
    err = std::string("the state cannot be loaded: ") + why;
    return false;
  }
  began_at_ = simulated();
  return true;
}

void Replay::reload() {
  const auto digests = [this] {
    std::vector<std::uint64_t> all;
    for (const Function* f : functions_) all.push_back(hca_state_digest(f->hca));
    return all;
  };
  const std::vector<std::uint64_t> before = digests();
  const std::string state = saved_state();
  if (over_) return;
  char err[512] = "";
  if (hca_sim_load(state.data(), state.size(), err, sizeof err) != 0)
    return end_early(std::string("the state cannot be loaded: ") + err);
  if (saved_state() != state) diverge("the state that was loaded", "another one");
  if (digests() != before) diverge("the digests of the state that was saved", "others");
}

std::string Replay::saved_state() {
  char err[512] = "";
  std::size_t len = 0;
  const void* const state = hca_sim_save(&len, err, sizeof err);
  if (!state) end_early(std::string("the state cannot be saved: ") + err);
  return {static_cast<const char*>(state), state ? len : 0};
}

void Replay::stop() {
  if (!options_.save.empty()) {
    const std::string state = saved_state();
    if (over_) return;
    std::ofstream out(options_.save, std::ios::binary);
    out << state;
    if (!out.flush()) return end_early(options_.save + " cannot be written");
  }
  end_early("stopped before event " + std::to_string(events_) + ", as asked");
}

}  // namespace hcasim::api
