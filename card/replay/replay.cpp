// SPDX-License-Identifier: BSD-3-Clause
#include "card/replay/replay.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "card/api/far_end.h"
#include "card/api/simulation.h"
#include "model/toml_text.h"

namespace hcasim::api {

namespace {

constexpr unsigned kDeepest = 16;                                      // calls within callbacks
constexpr std::int64_t kLatest = std::int64_t{1} << 61;                // ns, of the host's clock
constexpr std::uint64_t kFarthest = std::uint64_t{1'000'000'000'000};  // ns that the model runs ahead

bool is_call(Event e) {
  return (e > Event::kHello && e < Event::kStatistics) ||
         (e >= Event::kVscRead && e != Event::kSaved && e != Event::kWireTxAt);
}

bool is_from_wire(Event e) { return e >= Event::kLinkUp && e <= Event::kLinkLog; }

// What a host may do while the model waits for its answer.
bool may_be_nested(Event e) {
  return e == Event::kMmioRead || e == Event::kMmioWrite || e == Event::kBurst || e == Event::kCarrier ||
         e == Event::kInject || e == Event::kSetTrace || e == Event::kVscRead || e == Event::kVscWrite ||
         e == Event::kAttach || e == Event::kWireRxAt || e == Event::kCode;
}

// "key=value,key=value"
std::vector<std::pair<std::string, std::string>> pairs_of(const std::string& options) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t at = 0; at < options.size();) {
    const std::size_t end = std::min(options.find(',', at), options.size());
    const std::string pair = options.substr(at, end - at);
    const std::size_t eq = pair.find('=');
    if (eq != std::string::npos) out.emplace_back(pair.substr(0, eq), pair.substr(eq + 1));
    at = end + 1;
  }
  return out;
}

bool has(const std::string& options, const char* key) {
  const auto pairs = pairs_of(options);
  return std::any_of(pairs.begin(), pairs.end(),
                     [&](const auto& p) { return p.first == key && !p.second.empty(); });
}

// A file of its own; empty: `why` says why not.
std::string write_file(const std::string& text, std::string& why) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/hcasim-replay-XXXXXX.toml";
  const int fd = ::mkstemps(path.data(), 5);
  bool good = fd >= 0 && path.find(',') == std::string::npos;
  for (std::size_t at = 0; good && at < text.size();) {
    const ssize_t n = ::write(fd, text.data() + at, text.size() - at);
    good = n > 0;
    if (good) at += static_cast<std::size_t>(n);
  }
  if (!good) why = "cannot write " + path + ": " + std::strerror(errno);
  if (fd >= 0) ::close(fd);
  if (!good && fd >= 0) ::unlink(path.c_str());
  return good ? path : "";
}

// Where two texts part, with a little of what stands before.
std::pair<std::string, std::string> apart(const std::string& a, const std::string& b) {
  const auto at = static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
                    b.begin())
          .first -
      a.begin());
  const std::size_t from = at > 40 ? at - 40 : 0;
  return {"..." + a.substr(from, 80) + "...", "..." + b.substr(from, 80) + "..."};
}

}  // namespace

// The far end of a wire= to another process, as it was recorded.
class Replay::Peer final : public FarEnd {
 public:
  Peer(Function& f, wire::Link::Owner& wire) : f_(f), wire_(wire) { f_.peer = this; }
  ~Peer() override { f_.peer = nullptr; }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::uint8_t* frame(std::size_t) override { return up_ ? frame_.data() : nullptr; }
  Sent commit(std::size_t len, std::uint8_t flags, Time t) override {
    Noted made{Event::kLinkTx, {f_.number, len, flags, from_now(t)}, {}};
    made.texts[0] = Digest(frame_.data(), len).bytes();
    const Noted* answer = f_.replay->answer(made, 4, true);
    return answer ? static_cast<Sent>(answer->numbers[4]) : Sent::kTaken;
  }
  void find(const Meanwhile&) override { ask({Event::kLinkFind, {f_.number}, {}}, 1); }
  void send_mark(const wire::Mark& mark) override {
    ask({Event::kLinkTell, {f_.number, from_now(mark.next), recorded_wish(mark.wish)}, {}}, 3);
  }
  Hearing hear(const Meanwhile&) override {
    marked_ = false;
    const Noted* answer = ask({Event::kLinkHear, {f_.number}, {}}, 1);
    if (!answer) return {Heard::kDown};
    const auto what = static_cast<Heard>(answer->numbers[1]);
    if (answer->numbers[1] > static_cast<std::uint64_t>(Heard::kTooMuch) ||
        (what == Heard::kMark && !marked_)) {
      f_.replay->end_early("it is damaged: " + answer->text());
      return {Heard::kDown};
    }
    return {what, answer->numbers[2]};
  }
  void finish(const std::string&) override { up_ = false; }

  // What came in. False: no link would have brought that.
  bool take(const Noted& record, std::uint64_t& result) {
    const auto& n = record.numbers;
    const std::string& bytes = record.texts[0];
    switch (record.event) {
      case Event::kLinkUp: {
        wire::Hello hello;
        if (up_ || !hello_of_bytes(bytes, hello)) return false;
        up_ = wire_.wire_up(hello).empty();
        result = up_;
        return true;
      }
      case Event::kLinkLog:
        if (n[1] > HCA_LOG_INFO) return false;
        wire_.wire_log(static_cast<int>(n[1]), bytes);
        return true;
      case Event::kLinkDown:
        if (!up_) return false;
        up_ = false;
        wire_.wire_down();
        return true;
      case Event::kLinkCarrier:
        if (!up_) return false;
        wire_.wire_wish(wish_of(n[1]));
        return true;
      case Event::kLinkFrame:
        if (!up_ || bytes.empty() || bytes.size() > wire::kMaxFrameBytes) return false;
        wire_.wire_frame({wire::Type::kFrame, static_cast<std::uint8_t>(n[1]), since_now(n[2]),
                          reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
        return true;
      case Event::kLinkMark:
        // Of coupled ends, and only while one of them waits for it.
        if (!up_ || f_.replay->heard_ != this || marked_) return false;
        marked_ = wire_.wire_mark({since_now(n[1]), since_now(n[2]), wish_of(n[3])}).empty();
        result = marked_;
        return true;
      default:
        return false;
    }
  }

 private:
  // The model waits, and what came in meanwhile comes in.
  const Noted* ask(Noted made, std::size_t fields) {
    Replay& replay = *f_.replay;
    replay.heard_ = this;
    const Noted* answer = replay.answer(made, fields, true);
    replay.heard_ = nullptr;
    return answer;
  }

  Function& f_;
  wire::Link::Owner& wire_;
  bool up_ = false, marked_ = false;
  std::array<std::uint8_t, wire::kMaxFrameBytes> frame_;
};

std::int64_t Replay::simulated() const { return started_ ? hca_sim_time() - start_ : 0; }

std::vector<std::string> Replay::statistics() const {
  std::vector<std::string> out;
  for (const Function* f : functions_) out.emplace_back(hca_stats_json(f->hca));
  return out;
}

void Replay::end_early(const std::string& why) {
  if (!over_) early_end_ = why;
  over_ = true;
}

void Replay::diverge(const std::string& expected, const std::string& got) {
  if (over_) return;
  over_ = true;
  divergence_ = "event " + std::to_string(events_ == 0 ? 0 : events_ - 1) + ", at " +
                std::to_string(simulated()) + " ns of simulated time: expected " + expected + ", got " + got;
  // The traces end where the runs part.
  for (const Function* f : functions_) hca_set_trace(f->hca, "on", "off", nullptr, 0);
}

bool Replay::next(Noted& out) {
  if (over_) return false;
  if (!reader_.next(out)) {
    end_early(reader_.warning());
    return false;
  }
  if (out.event == Event::kReturn) return true;
  if (events_ >= options_.stop_at && (options_.save.empty() || depth_ == 0)) {
    stop();
    return false;
  }
  if (events_ == options_.trap_at) std::raise(SIGTRAP);
  ++events_;
  return true;
}

bool Replay::run(const std::string& path, std::string& err) {
  // What the HCAs were to trace has to be known before the first is made.
  {
    RecordingReader ahead;
    if (!ahead.open(path, err)) return false;
    Noted record;
    while (ahead.next(record) && record.event != Event::kStart) {
      if (record.event != Event::kCreate) continue;
      any_traced_ = any_traced_ || has(record.texts[0], "trace");
      any_captured_ = any_captured_ || has(record.texts[0], "capture");
    }
  }
  if (!reader_.open(path, err)) return false;
  events_ = 1;
  bool skipped = !options_.from_state.empty() || options_.from != HCA_NEVER;
  if (skipped && !begin_at_state(path, err)) return false;
  Noted record;
  for (std::uint64_t reloaded = 0; next(record);) {
    if (skipped && record.event == Event::kReturn) continue;  // of the call before
    skipped = false;
    if (options_.reload_every != 0 && started_ && events_ - reloaded >= options_.reload_every) {
      reloaded = events_;
      reload();
    }
    if (is_call(record.event)) {
      call(record);
    } else if (record.event == Event::kStatistics) {
      const hca_t* h = hca_of(record.numbers[0]);
      if (!h) break;
      const std::string now = hca_stats_json(const_cast<hca_t*>(h));
      ++compared_;
      if (now == record.texts[0]) continue;
      const auto [expected, got] = apart(record.texts[0], now);
      diverge("statistics of hca" + std::to_string(record.numbers[0]) + " " + expected, got);
    } else if (record.event == Event::kState) {
      hca_t* h = hca_of(record.numbers[0]);
      if (!h) break;
      const std::uint64_t now = hca_state_digest(h);
      if (now == record.numbers[1]) continue;
      diverge("state of hca" + std::to_string(record.numbers[0]) + " with digest " +
                  std::to_string(record.numbers[1]),
              std::to_string(now));
    } else if (record.event == Event::kSaved) {
      const std::string now = saved_state();
      ++states_;
      if (!over_ && now != record.texts[0]) diverge(record.text(), "another one");
    } else if (record.event == Event::kEnd) {
      if (record.numbers[0] != events_ - 1) end_early("it is damaged: events are missing");
      over_ = true;
    } else if (record.event != Event::kLog) {  // which comes while an HCA is made, too
      diverge(record.text(), "no call any more in which that could be");
    }
  }
  err = refused_;
  return err.empty();
}

hca_t* Replay::hca_of(std::uint64_t device) {
  const std::uint64_t number = api::hca_of(device), function = function_of(device);
  if (number >= functions_.size()) {
    end_early("it is damaged: there is no hca" + std::to_string(number));
    return nullptr;
  }
  hca_t* h = functions_[number]->hca;
  if (function < hca_functions(h) + hca_sub_functions(h)) return h;
  end_early("it is damaged: hca" + std::to_string(number) + " has no function " + std::to_string(function));
  return nullptr;
}

hca_host_ops Replay::function_ops() {
  hca_host_ops ops{};
  ops.dma_read = dma_read;
  ops.dma_write = dma_write;
  ops.msix = msix;
  return ops;
}

void Replay::attach(hca_t* h, std::uint64_t device, bool on) {
  const hca_host_ops ops = function_ops();
  Function* function = nullptr;
  if (on) {
    virtual_.push_back(std::make_unique<Function>(Function{this, device}));
    function = virtual_.back().get();
  }
  hca_attach_function(h, static_cast<unsigned>(function_of(device)), on ? &ops : nullptr, function);
}

void Replay::call(const Noted& record) {
  const bool heard = is_from_wire(record.event) && heard_ != nullptr;
  if (depth_ == kDeepest || (depth_ != 0 && !heard && !may_be_nested(record.event)))
    return end_early("it is damaged: " + record.text() + " in the midst of a callback");
  ++depth_;
  std::uint64_t result = 0;
  const bool counts = perform(record, result);
  --depth_;
  if (over_ || !next(answer_)) return;
  if (answer_.event != Event::kReturn) return diverge(answer_.text(), "the end of " + record.text());
  if (counts && answer_.numbers[0] != result) {
    Noted got = answer_;
    got.numbers[0] = result;
    diverge(record.text() + " to " + answer_.text(), got.text());
  }
}

bool Replay::perform(const Noted& record, std::uint64_t& result) {
  const auto& n = record.numbers;
  const auto& s = record.texts;
  if (record.event == Event::kCreate) return create(record, result);
  if (record.event == Event::kStart || record.event == Event::kAdvance) return pass(record, result);
  if (record.event == Event::kLoad) {
    result = hca_sim_load(s[0].data(), s[0].size(), nullptr, 0) == 0;
    return true;
  }
  if (is_from_wire(record.event)) return from_wire(record, result);
  hca_t* h = hca_of(n[0]);
  if (!h) return false;
  const auto function = static_cast<unsigned>(function_of(n[0]));
  const auto size = [](std::uint64_t bytes) {
    return static_cast<unsigned>(std::min<std::uint64_t>(bytes, 9));
  };
  switch (record.event) {
    case Event::kMmioRead:
      result = hca_function_read(h, function, n[1], size(n[2]));
      return true;
    case Event::kMmioWrite:
      hca_function_write(h, function, n[1], n[2], size(n[3]));
      return true;
    case Event::kCode:
      hca_function_code(h, function, n[1], n[2], n[3], n[4]);
      return true;
    case Event::kBurst:
      hca_function_write_burst(h, function, n[1], s[0].data(), s[0].size());
      return true;
    case Event::kVscRead:
      result = hca_vsc_read(h, static_cast<std::uint32_t>(n[1]));
      return true;
    case Event::kVscWrite:
      hca_vsc_write(h, static_cast<std::uint32_t>(n[1]), static_cast<std::uint32_t>(n[2]));
      return true;
    case Event::kReset:
      hca_reset(h);
      return true;
    case Event::kAttach:
      attach(h, n[0], n[1] != 0);
      return true;
    case Event::kFunctionReset:
      hca_function_reset(h, function);
      return true;
    case Event::kAts:
      hca_function_ats(h, function, n[1] != 0);
      return true;
    case Event::kInvalidate:
      hca_function_invalidate(h, function, n[1], n[2]);
      return true;
    case Event::kDestroy:
      hca_destroy(h);
      return true;
    case Event::kCable: {
      hca_t* other = hca_of(n[1]);
      result = other && hca_cable(h, other, nullptr, 0) == 0;
      return true;
    }
    case Event::kWireRx:
      result = hca_wire_rx(h, s[0].data(), s[0].size()) == 0;
      return true;
    case Event::kWireRxAt:
      result =
          hca_wire_rx_at(h, s[0].data(), s[0].size(), Simulation::instance().caller_ps(since_now(n[1]))) == 0;
      return true;
    case Event::kCarrier:
      hca_wire_carrier(h, n[1] != 0);
      return true;
    case Event::kInject:
      result = hca_inject(h, s[0].c_str(), nullptr, 0) == 0;
      return true;
    case Event::kSetTrace:
      // The files of the recorded run stay as they are.
      if (s[0] == "on" || s[0] == "filter") {
        result = hca_set_trace(h, s[0].c_str(), s[1].c_str(), nullptr, 0) == 0;
        return true;
      }
      // Where a trace is cut into blocks shows in its bytes.
      if (s[0] == "flush") hca_set_trace(h, "flush", "", nullptr, 0);
      return false;
    case Event::kMemory:
      hca_memory_changed(h);
      return true;
    default:
      return false;
  }
}

bool Replay::pass(const Noted& record, std::uint64_t& result) {
  const auto now = static_cast<std::int64_t>(record.numbers[0]);
  if (now > kLatest || now < -kLatest) {
    end_early("it is damaged: the time of " + record.text());
    return false;
  }
  if (record.event == Event::kStart) {
    start_ = now;
    result = hca_sim_start(now) == 0;
    started_ = true;
    return true;
  }
  if (record.numbers[1] > kFarthest) {
    end_early("it is damaged: the time of " + record.text());
    return false;
  }
  if (options_.until != HCA_NEVER && now - start_ > options_.until) {
    hca_sim_advance(start_ + options_.until, 0);
    end_early("stopped at " + std::to_string(options_.until) + " ns of simulated time, as asked");
    return false;
  }
  result = due_number(hca_sim_advance(now, static_cast<std::int64_t>(record.numbers[1])), now);
  return true;
}

bool Replay::from_wire(const Noted& record, std::uint64_t& result) {
  if (!hca_of(record.numbers[0])) return false;
  // A wire is its HCA's, which function 0 stands for.
  const bool right = function_of(record.numbers[0]) == 0;
  Peer* peer = right ? functions_[api::hca_of(record.numbers[0])]->peer : nullptr;
  // As hca_wire_poll() does it: what comes back from a callback runs nothing.
  Simulation::Entry entry(Simulation::instance());
  if (peer && started_ && peer->take(record, result)) return true;
  end_early("it is damaged: " + record.text());
  return false;
}

bool Replay::create(const Noted& record, std::uint64_t& result) {
  std::string why, options;
  for (const std::size_t i : {1, 2}) {
    if (std::string line; plain_toml(record.texts[i], "line", line)) continue;
    end_early(std::string("it is damaged: the ") + (i == 1 ? "profile" : "faults") + " of hca" +
              std::to_string(functions_.size()));
    return false;
  }
  const std::string profile = write_file(record.texts[1], why);
  const std::string faults = record.texts[2].empty() ? "" : write_file(record.texts[2], why);
  for (const auto& [key, value] : pairs_of(record.texts[0])) {
    // The profile that was in force has the parameters in it.
    if (key == "trace" || key == "trace_ring" || key == "capture" || key == "record" ||
        key == "snapshot_every" || key == "profile" || key == "faults" ||
        key.find('.') != std::string::npos || (key == "kernel" && !options_.kernel.empty()) ||
        (key == "cable" && started_))  // which is a call of its own then
      continue;
    options.append(key).append("=").append(value).append(",");
  }
  options += "profile=" + profile;
  if (!options_.kernel.empty()) options += ",kernel=" + options_.kernel;
  if (!faults.empty()) options += ",faults=" + faults;
  // Nowhere, at the least: a trace looks at memory for itself, and a recorded HCA always has one.
  const bool traced = !options_.trace.empty() && (!any_traced_ || has(record.texts[0], "trace"));
  options += ",trace=" + (traced ? options_.trace : "/dev/null");
  if (!options_.capture.empty() && (!any_captured_ || has(record.texts[0], "capture")))
    options += ",capture=" + options_.capture;
  auto* f = new Function{this, functions_.size()};
  hca_host_ops ops = function_ops();
  ops.pcie_error = pcie_error;
  if (record.numbers[0] & kHostLogs) ops.log = log;
  if (record.numbers[0] & kHostTakesFrames) ops.wire_tx = wire_tx;
  if (record.numbers[0] & kHostTakesTimes) ops.wire_tx_at = wire_tx_at;
  if (record.numbers[0] & kHostTellsQuiet) ops.quiet_until = quiet_until;
  if (why.empty()) {
    char text[1024] = "";
    set_far_end_maker([f](wire::Link::Owner& wire) { return std::make_unique<Peer>(*f, wire); });
    f->hca = hca_create(options.c_str(), &ops, f, text, sizeof text);
    if (!f->hca) why = text;
  }
  if (!profile.empty()) ::unlink(profile.c_str());
  if (!faults.empty()) ::unlink(faults.c_str());
  if (!f->hca) {
    delete f;
    refused_ = "hca" + std::to_string(functions_.size()) + " cannot be made: " + why;
    end_early(refused_);
    return false;
  }
  result = f->number;
  functions_.push_back(f);
  return true;
}

// ---- what the model asks ----

const Noted* Replay::answer(Noted& made, std::size_t fields, bool text) {
  if (joining_) return nullptr;
  while (next(answer_)) {
    if (is_call(answer_.event)) {
      const Noted nested = answer_;
      call(nested);
      continue;
    }
    bool same = answer_.event == made.event &&
                std::equal(made.numbers.begin(), made.numbers.begin() + static_cast<std::ptrdiff_t>(fields),
                           answer_.numbers.begin()) &&
                (!text || made.texts[0] == answer_.texts[0]);
    if (same && !text && answer_.numbers[3] != 0 && answer_.texts[0].size() != answer_.numbers[2]) {
      end_early("it is damaged: " + answer_.text());
      return nullptr;
    }
    if (same) return &answer_;
    // What the host has answered is no difference.
    if (answer_.event == made.event) {
      std::copy(answer_.numbers.begin() + static_cast<std::ptrdiff_t>(fields), answer_.numbers.end(),
                made.numbers.begin() + static_cast<std::ptrdiff_t>(fields));
      if (!text) made.texts = answer_.texts;
    }
    diverge(answer_.event == Event::kReturn ? "nothing more in this call" : answer_.text(), made.text());
  }
  return nullptr;
}

int Replay::dma_read(void* self, std::uint64_t addr, void* dst, std::size_t len) {
  auto* f = static_cast<Function*>(self);
  if (f->replay->over_) return -1;
  Noted made{Event::kDmaRead, {f->number, addr, len, 0}, {}};
  const Noted* answer = f->replay->answer(made, 3, false);
  if (!answer || answer->numbers[3] == 0) return -1;
  std::memcpy(dst, answer->texts[0].data(), len);
  return 0;
}

int Replay::dma_write(void* self, std::uint64_t addr, const void* src, std::size_t len) {
  auto* f = static_cast<Function*>(self);
  if (f->replay->over_) return -1;
  Noted made{Event::kDmaWrite, {f->number, addr, len, 0}, {}};
  made.texts[0] = Digest(src, len).bytes();
  const Noted* answer = f->replay->answer(made, 3, true);
  return answer && answer->numbers[3] != 0 ? 0 : -1;
}

void Replay::msix(void* self, unsigned vector) {
  auto* f = static_cast<Function*>(self);
  Noted made{Event::kMsix, {f->number, vector}, {}};
  f->replay->answer(made, 2, true);
}

void Replay::log(void* self, int level, const char* message) {
  auto* f = static_cast<Function*>(self);
  if (f->replay->options_.echo_log)
    std::fprintf(stderr, "hca%u: %s\n", static_cast<unsigned>(f->number), message);
  Noted made{Event::kLog, {f->number, static_cast<unsigned>(level)}, {message}};
  f->replay->answer(made, 2, true);
}

void Replay::pcie_error(void* self, int what, std::uint32_t bit, const char* name) {
  auto* f = static_cast<Function*>(self);
  Noted made{Event::kPcieError, {f->number, static_cast<unsigned>(what), bit}, {name}};
  f->replay->answer(made, 3, true);
}

std::int64_t Replay::quiet_until(void* self) {
  auto* f = static_cast<Function*>(self);
  Noted made{Event::kQuiet, {f->number}, {}};
  const Noted* answer = f->replay->answer(made, 1, true);
  return answer ? due_of_number(answer->numbers[1], hca_sim_time()) : hca_sim_time();
}

int Replay::wire_tx(void* self, const void* frame, std::size_t len) {
  auto* f = static_cast<Function*>(self);
  Noted made{Event::kWireTx, {f->number, len}, {}};
  made.texts[0] = Digest(frame, len).bytes();
  const Noted* answer = f->replay->answer(made, 2, true);
  return answer ? static_cast<int>(answer->numbers[2]) : 0;
}

int Replay::wire_tx_at(void* self, const void* frame, std::size_t len, std::int64_t ps) {
  auto* f = static_cast<Function*>(self);
  Noted made{Event::kWireTxAt, {f->number, len, from_now(Simulation::instance().of_caller_ps(ps))}, {}};
  made.texts[0] = Digest(frame, len).bytes();
  const Noted* answer = f->replay->answer(made, 3, true);
  return answer ? static_cast<int>(answer->numbers[3]) : 0;
}

}  // namespace hcasim::api
