// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include "perftest.h"

namespace hcasim::bench {

using timing::Metric;
using timing::Setup;
using timing::Verb;

namespace {

constexpr std::size_t kMostRows = 1000;
constexpr double kOwnError = 1;  // %: what no measurement is taken to be better than
constexpr unsigned kEnough = 8u << 20, kLarge = 64u << 10;  // bytes under way, of messages from this size on
constexpr unsigned kFew = 10;                               // messages, whose latency is measured

std::string trimmed(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" \t\r");
  if (from == std::string::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = text.find_first_not_of(" \t\r"); at != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(" \t\r", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(" \t\r", end);
  }
  return words;
}

// A column of the table: what its heading begins with; the unit follows in brackets.
enum Column { kBytes, kIterations, kSl, kPeak, kAverage, kRate, kMin, kMax, kTypical, kMean, kOther };
struct Heading {
  const char* stem;
  Column column;
};
constexpr Heading kHeadings[] = {{"#bytes", kBytes},
                                 {"#iterations", kIterations},
                                 {"#sl", kSl},
                                 {"BW peak", kPeak},
                                 {"BW average", kAverage},
                                 {"MsgRate", kRate},
                                 {"t_min", kMin},
                                 {"t_max", kMax},
                                 {"t_typical", kTypical},
                                 {"t_avg", kMean},
                                 {"t_stdev", kOther},
                                 {"99% percentile", kOther},
                                 {"99.9% percentile", kOther},
                                 {"tps average", kOther},
                                 {"CPU_Util", kOther}};

// A number and how fine it is printed.
struct Figure {
  double value = 0;
  double step = 1;
  double deviation() const { return value > 0 ? step / std::sqrt(12.0) / value * 100 : 1e9; }  // %
};

std::optional<Figure> figure_of(const std::string& word) {
  if (word.empty() || word.size() > 30 || word.find_first_not_of("0123456789.") != std::string::npos)
    return {};
  const std::size_t dot = word.find('.');
  if (dot != std::string::npos && word.find('.', dot + 1) != std::string::npos) return {};
  Figure f;
  f.value = std::strtod(word.c_str(), nullptr);
  if (dot != std::string::npos) f.step = std::pow(10, -static_cast<double>(word.size() - dot - 1));
  return f;
}

class Reader {
 public:
  Reader(const std::string& file, const Setup& base) : file_(file), base_(base), run_(base) {}

  void line(const std::string& text) {
    ++line_;
    const std::string t = trimmed(text);
    if (t.empty()) return;
    const std::vector<std::string> words = words_of(t);
    if (words.back() == "Test" &&
        std::any_of(words.begin(), words.end(), [](const auto& w) { return w == "BW" || w == "Latency"; })) {
      title(words);
    } else if (t.compare(0, 6, "#bytes") == 0) {
      heading(t);
    } else if (t.compare(0, 4, "----") == 0) {
      columns_.clear();
    } else if (!columns_.empty()) {
      // What else is printed between the rows are warnings.
      if (t.front() >= '0' && t.front() <= '9') row(words);
    } else if (t.compare(0, 16, "Test with events") == 0) {
      set("Test with events", "events", "on");
      note("Test with events: simulated with CQs that are armed when they are empty");
    } else {
      facts(t);
    }
  }

  PerftestRows result() {
    if (out_.rows.empty())
      throw std::runtime_error(
          file_ +
          ": no row of perftest's in it; expected is the output of ib_{write,send,read,atomic}_{lat,bw} as "
          "it "
          "is printed (a line such as \"RDMA_Write Latency Test\", the heading \"#bytes #iterations "
          "...\", rows), or TOML with [[row]] in a file named *.toml");
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw std::runtime_error(fmt::format("{}:{}: {}", file_, line_, message));
  }
  void note(const std::string& message) {
    out_.notes.push_back(fmt::format("{}:{}: {}", file_, line_, message));
  }
  void set(const char* what, const char* key, const std::string& value) {
    try {
      run_.set(key, value);
    } catch (const timing::SetupError& e) {
      refuse(std::string(what) + ": " + e.what());
    }
  }

  void title(const std::vector<std::string>& words) {
    run_ = base_;
    columns_.clear();
    std::string verb;
    std::size_t i = 1;
    if (words[0] == "RDMA_Write") verb = "write";
    if (words[0] == "Send") verb = "send";
    if (words[0] == "RDMA_Read") verb = "read";
    if (words[0] == "Atomic" && words.size() > 1) {
      if (words[1] == "FETCH_AND_ADD") verb = "fetch_add";
      if (words[1] == "CMP_AND_SWAP") verb = "cmp_swap";
      i = 2;
    }
    bool good = !verb.empty(), lat = false;
    for (; i + 1 < words.size(); ++i) {
      if (words[i] == "Bidirectional") {
        set("Bidirectional", "both", "on");
      } else if (words[i] == "Latency") {
        lat = true;
      } else if (words[i] != "BW" && words[i] != "Post" && words[i] != "List") {
        good = false;
      }
    }
    if (!good)
      refuse(
          "this test is not simulated; allowed are RDMA_Write, Send, RDMA_Read, Atomic FETCH_AND_ADD and "
          "Atomic "
          "CMP_AND_SWAP, Latency Test or [Bidirectional] [Post List] BW Test");
    // Latency's queues are of one message; bandwidth's defaults are those of perftest.
    set("", "pattern", verb + (lat ? "_lat" : "_bw"));
    if (lat) {
      // What is told beside the file is of its bandwidth tests.
      run_.qps = run_.threads = run_.postlist = 1;
      run_.depth = 0;
    }
    known_ = true;
  }

  // KEY : VALUE, perhaps twice.
  void facts(const std::string& text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t colon = text.find(':', at);
      if (colon == std::string::npos) return;
      const std::string key = trimmed(text.substr(at, colon - at));
      const std::size_t from = std::min(text.find_first_not_of(" \t", colon + 1), text.size());
      const std::size_t end = std::min(text.find_first_of(" \t", from), text.size());
      fact(key, text.substr(from, end - from));
      at = end;
    }
  }

  void fact(const std::string& key, const std::string& value) {
    const char* const k = key.c_str();
    const auto whole = [&] {
      char* end = nullptr;
      const long v = std::strtol(value.c_str(), &end, 10);
      if (end == value.c_str() || v < 0 || (*end != 0 && std::string(end) != "[B]"))
        refuse(key + ": a whole number");
      return v;
    };
    const bool lat = run_.metric == Metric::kLat;
    if (key == "Number of qps") {
      if (!lat) set(k, "qps", std::to_string(whole()));
    } else if (key == "TX depth") {
      if (!lat) set(k, "depth", std::to_string(whole()));
    } else if (key == "Post List") {
      if (!lat) set(k, "postlist", std::to_string(whole()));
    } else if (key == "CQ Moderation") {
      set(k, "cq_mod", std::to_string(whole()));
    } else if (key == "Mtu") {
      set(k, "mtu", std::to_string(whole()));
    } else if (key == "Max inline data") {
      set(k, "inline", std::to_string(std::min(whole(), 900L)));
    } else if (key == "Outstand reads") {
      const long asked = whole();
      long reads = 1;
      while (reads * 2 <= std::min(asked, 16L)) reads *= 2;
      set(k, "reads", std::to_string(reads));
      if (reads != asked) note(fmt::format("Outstand reads: {} are simulated", reads));
    } else if (key == "Connection type") {
      if (value != "RC" && value != "UC" && value != "UD")
        refuse("Connection type: " + value + " is not simulated; allowed are RC, UC, UD");
      set(k, "transport", value == "RC" ? "rc" : value == "UC" ? "uc" : "ud");
    } else if (key == "Link type") {
      if (value != "IB" && value != "Ethernet") refuse("Link type: allowed are IB, Ethernet");
      set(k, "link", value == "IB" ? "ib" : "eth");
    } else if (key == "Dual-port" && value == "ON") {
      refuse("Dual-port: ON is not simulated; allowed are runs over one port");
    } else if (key == "Using SRQ" && value == "ON") {
      note("Using SRQ: simulated with receive queues of the QPs");
    }
  }

  void heading(const std::string& text) {
    if (!known_)
      refuse(
          "rows without the name of their test; the output's first lines are needed as well (\"RDMA_Write "
          "Latency "
          "Test\" and what follows)");
    columns_.clear();
    for (std::size_t at = 0; at < text.size();) {
      const auto* const h = std::find_if(std::begin(kHeadings), std::end(kHeadings), [&](const Heading& one) {
        return text.compare(at, std::char_traits<char>::length(one.stem), one.stem) == 0;
      });
      if (h == std::end(kHeadings)) {
        std::string stems;
        for (const Heading& one : kHeadings) stems += (stems.empty() ? "" : ", ") + std::string(one.stem);
        refuse("\"" + text.substr(at, 40) + "\": not a column that is known; allowed are " + stems);
      }
      at += std::char_traits<char>::length(h->stem);
      std::string unit;
      if (at < text.size() && text[at] == '[') {
        const std::size_t end = std::min(text.find(']', at), text.size());
        unit = text.substr(at + 1, end - at - 1);
        at = std::min(end + 1, text.size());
      }
      take_column(*h, unit);
      at = std::min(text.find_first_not_of(" \t", at), text.size());
    }
    const auto has = [&](Column c) {
      return std::find(columns_.begin(), columns_.end(), c) != columns_.end();
    };
    if (run_.metric == Metric::kLat ? !has(kTypical) && !has(kMean) : !has(kAverage) && !has(kRate))
      refuse(run_.metric == Metric::kLat ? "a latency test's rows need t_typical or t_avg"
                                         : "a bandwidth test's rows need BW average or MsgRate");
  }

  void take_column(const Heading& h, const std::string& unit) {
    columns_.push_back(h.column);
    const bool time = h.column >= kMin && h.column <= kMean;
    if (time && unit != "usec")
      refuse(std::string(h.stem) + ": in " + unit + "; allowed is usec (perftest without -C)");
    if (h.column == kRate && unit != "Mpps") refuse("MsgRate: in " + unit + "; allowed is Mpps");
    if (h.column != kAverage) return;
    if (unit != "MB/sec" && unit != "MiB/sec" && unit != "Gb/sec")
      refuse("BW average: in " + unit + "; allowed are MB/sec, MiB/sec (both of 2^20 bytes) and Gb/sec");
    gbps_ = unit == "Gb/sec" ? 1 : 8 * 1048576 / 1e9;
  }

  void row(std::vector<std::string> words) {
    // Wide figures leave no blank between columns of two decimals.
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::size_t dot = words[i].find('.');
      if (dot == std::string::npos || words[i].find('.', dot + 1) == std::string::npos ||
          dot + 3 >= words[i].size())
        continue;
      const std::string rest = words[i].substr(dot + 3);
      words[i].resize(dot + 3);
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, rest);
    }
    if (words.size() != columns_.size())
      refuse(fmt::format("{} figures, where the heading has {} columns", words.size(), columns_.size()));
    std::optional<Figure> typical, mean, average, rate, bytes;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto f = figure_of(words[i]);
      if (!f) refuse("\"" + words[i].substr(0, 40) + "\": a number is wanted");
      if (columns_[i] == kBytes) bytes = f;
      if (columns_[i] == kTypical) typical = f;
      if (columns_[i] == kMean) mean = f;
      if (columns_[i] == kAverage) average = f;
      if (columns_[i] == kRate) rate = f;
    }
    if (out_.rows.size() == kMostRows) refuse(fmt::format("more than {} rows", kMostRows));
    set("#bytes", "size", bytes ? fmt::format("{:.0f}", bytes->value) : "");
    const Setup s = run_;
    PublishedRow r;
    Figure used;
    if (s.metric == Metric::kLat) {
      used = typical ? *typical : *mean;
      r.unit = "us";
    } else {
      used = throughput(average, rate, s.size, r.unit);
    }
    if (!(used.value > 0)) refuse("the figure must be above 0");
    r.id = std::to_string(line_);
    r.published = r.low = r.high = used.value;
    r.tolerance = std::hypot(kOwnError, used.deviation());
    finish(s, r);
  }

  // In M/s of small messages, Gb/s of others; from the column that is printed finer.
  Figure throughput(const std::optional<Figure>& average, const std::optional<Figure>& rate, unsigned size,
                    std::string& unit) {
    unit = size < 4096 ? "M/s" : "Gb/s";
    const double bits = size * 8.0 / 1000;  // Gb in a million messages
    Figure of_average, of_rate;
    if (average) {
      const double factor = gbps_ / (size < 4096 ? bits : 1);
      of_average = {average->value * factor, average->step * factor};
      if (!rate) return of_average;
    }
    const double factor = size < 4096 ? 1 : bits;
    of_rate = {rate->value * factor, rate->step * factor};
    if (!average) return of_rate;
    const Figure finer = of_rate.deviation() < of_average.deviation() ? of_rate : of_average;
    const double off = std::abs(of_rate.value - of_average.value);
    if (off > 0.02 * finer.value + of_rate.step + of_average.step)
      note(fmt::format("BW average and MsgRate do not agree ({:.4g} and {:.4g} {}): the finer one is taken",
                       of_average.value, of_rate.value, unit));
    return finer;
  }

  void finish(Setup s, PublishedRow& r) {
    // One message is as the next.
    if (s.metric == Metric::kLat && s.size >= kLarge && s.iterations == 0) s.iterations = kFew;
    if (s.metric == Metric::kLat && s.size >= kLarge && s.warmup == 0) s.warmup = kFew;
    if (s.metric == Metric::kBw) {
      const unsigned most = s.depth == 0 ? 128 : s.depth;
      if (const unsigned enough = std::max(8u, kEnough / s.size);
          s.size >= kLarge && s.postlist == 1 && enough < most) {
        s.depth = enough;
        if (s.cq_mod != 0) s.cq_mod = std::min(s.cq_mod, enough / 4);
      }
      const unsigned depth = s.depth == 0 ? 128 : s.depth;
      if (s.postlist <= depth && s.cq_mod > depth + 1 - s.postlist) {
        s.cq_mod = depth + 1 - s.postlist;
        note(fmt::format("CQ Moderation: {} is simulated", s.cq_mod));
      }
    }
    r.setup = fmt::format("{} {} B", s.pattern(), s.size);
    if (s.qps > 1 && s.metric != Metric::kLat) r.setup += fmt::format(", {} QPs", s.qps);
    r.source = file_;
    r.measurements = {s};
    try {
      (void)s.resolved();
    } catch (const timing::SetupError& e) {
      refuse(e.what());
    }
    out_.rows.push_back(r);
  }

  const std::string file_;
  const Setup base_;
  Setup run_;
  bool known_ = false;  // a test's name has been seen
  unsigned line_ = 0;
  double gbps_ = 1;  // of one unit of BW average
  std::vector<Column> columns_;
  PerftestRows out_;
};

}  // namespace

PerftestRows read_perftest(const std::string& text, const std::string& file, const Setup& base) {
  Reader reader(file, base);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    reader.line(text.substr(at, std::min<std::size_t>(end - at, 4096)));
    at = end + 1;
  }
  return reader.result();
}

}  // namespace hcasim::bench
