// SPDX-License-Identifier: BSD-3-Clause
#include "traces/diff.h"

#include <fmt/format.h>

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/report.h"

namespace hcasim::traces {
namespace {

struct Entry {
  Record record;
  std::vector<std::uint8_t> blob;
  std::string point;
};

/// One of the two traces.
class Side {
 public:
  explicit Side(Reader& reader) : reader_(reader) {}

  bool next(Entry& e) {
    if (!reader_.next(e.record, e.blob)) return false;
    e.point = reader_.file_point_name();
    return true;
  }

 private:
  Reader& reader_;
};

bool same(const Entry& a, const Entry& b) {
  const Record &x = a.record, &y = b.record;
  return x.time_ps == y.time_ps && x.obj == y.obj && x.index == y.index && x.a0 == y.a0 && x.a1 == y.a1 &&
         x.hca == y.hca && x.function == y.function && x.flags == y.flags && a.point == b.point &&
         a.blob == b.blob;
}

/// The commands in progress: only its start says how a completion's bytes are to be read.
class Commands {
 public:
  void see(const Entry& e) {
    if (e.record.p() == Point::kCmdStart) started_[key(e)] = e;
  }
  /// Name and fields of a command's record; "" for any other record.
  std::string describe(const Entry& e) const {
    const Point p = e.record.p();
    if (p != Point::kCmdStart && p != Point::kCmdDone) return "";
    Analysis one;
    if (p == Point::kCmdDone) {
      const auto start = started_.find(key(e));
      if (start == started_.end()) return "";
      one.add(start->second.record, start->second.blob);
    }
    one.add(e.record, e.blob);
    one.finish();
    if (one.commands().empty()) return "";
    const CommandRow& c = one.commands().front();
    return c.name() + ": " + (p == Point::kCmdStart ? input_fields(c) : output_fields(c));
  }

 private:
  using Key = std::tuple<unsigned, unsigned, std::uint32_t>;  // HCA, function, slot
  static Key key(const Entry& e) { return {e.record.hca, e.record.function, e.record.obj}; }
  std::map<Key, Entry> started_;
};

void print(const char* mark, std::uint64_t number, const Entry& e, const Commands& commands, std::FILE* out) {
  fmt::print(out, "{} {:>8} {}\n", mark, number, describe(e.record, e.point));
  const std::string text = commands.describe(e);
  if (!text.empty()) fmt::print(out, "{}          {}\n", mark, text);
}

/// The fields in which two records differ.
std::string differences(const Entry& a, const Entry& b) {
  std::string list;
  const auto add = [&](bool differs, const char* name) {
    if (differs) list += (list.empty() ? "" : ", ") + std::string(name);
  };
  const Record &x = a.record, &y = b.record;
  add(a.point != b.point, "point");
  add(x.time_ps != y.time_ps, "time");
  add(x.hca != y.hca, "hca");
  add(x.function != y.function, "function");
  add(x.obj != y.obj, "obj");
  add(x.index != y.index, "index");
  add(x.a0 != y.a0, "a0");
  add(x.a1 != y.a1, "a1");
  add(x.flags != y.flags, "flags");
  if (a.blob.size() != b.blob.size()) {
    list +=
        fmt::format("{}{} and {} bytes beside it", list.empty() ? "" : ", ", a.blob.size(), b.blob.size());
  } else if (a.blob != b.blob) {
    std::size_t at = 0;
    while (a.blob[at] == b.blob[at]) ++at;
    list += fmt::format("{}its bytes from {:#x} on ({:02x}, {:02x})", list.empty() ? "" : ", ", at,
                        a.blob[at], b.blob[at]);
  }
  return list;
}

}  // namespace

DiffResult diff(Reader& reader_a, Reader& reader_b, const DiffOptions& options, std::FILE* out) {
  Side a(reader_a), b(reader_b);
  Commands commands;
  std::deque<Entry> before;
  std::uint64_t number = 0;
  Entry x, y;
  for (;; ++number) {
    const bool has_a = a.next(x), has_b = b.next(y);
    if (!has_a && !has_b) {
      fmt::print(out, "the same: {} records\n", number);
      return DiffResult::kSame;
    }
    if (has_a && has_b && same(x, y)) {
      commands.see(x);
      before.push_back(std::move(x));
      if (before.size() > options.context) before.pop_front();
      x = Entry();
      continue;
    }
    if (has_a && has_b) {
      fmt::print(out, "they part at record {}, in {}\n", number, differences(x, y));
    } else {
      fmt::print(out, "{} ends after {} records, the other one goes on\n", has_a ? "B" : "A", number);
    }
    std::uint64_t at = number - before.size();
    for (const Entry& e : before) print(" ", at++, e, commands, out);
    for (const bool first : {true, false}) {
      Side& side = first ? a : b;
      Entry e = first ? x : y;
      bool has = first ? has_a : has_b;
      Commands own = commands;
      for (at = number; has && at <= number + options.context; ++at) {
        own.see(e);
        print(first ? "A" : "B", at, e, own, out);
        has = side.next(e);
      }
    }
    return DiffResult::kPart;
  }
}

}  // namespace hcasim::traces
