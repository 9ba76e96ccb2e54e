// SPDX-License-Identifier: BSD-3-Clause
#include "traces/filter.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace hcasim::traces {
namespace {

std::vector<std::string> split(const std::string& text, const char* separators) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    if (end > at) parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

bool to_qpn(const std::string& text, std::uint32_t* qpn) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  char* end = nullptr;
  errno = 0;
  const unsigned long v = std::strtoul(text.c_str(), &end, 0);
  if (errno != 0 || *end != '\0' || v > 0xffffff) return false;
  *qpn = static_cast<std::uint32_t>(v);
  return true;
}

bool to_kind(const std::string& text, Kind* kind) {
  const std::pair<const char*, Kind> kinds[] = {{"normal", Kind::kNormal},   {"error", Kind::kError},
                                                {"command", Kind::kCommand}, {"object", Kind::kObject},
                                                {"detail", Kind::kDetail},   {"path", Kind::kPath}};
  for (const auto& k : kinds) {
    if (text != k.first) continue;
    *kind = k.second;
    return true;
  }
  return false;
}

}  // namespace

RecordFilter::RecordFilter() {
  for (unsigned i = 0; i < kPoints; i++) points_[i] = !on_request(static_cast<Point>(i));
}

bool RecordFilter::of_a_qp(Point p) {
  static const auto table = [] {
    std::array<bool, kPoints> t{};
    for (unsigned i = 0; i < kPoints; i++) t[i] = std::strcmp(kPointInfo[i].obj, "qpn") == 0;
    return t;
  }();
  return table[static_cast<unsigned>(p)];
}

bool RecordFilter::parse(const std::string& text, std::string* err) {
  RecordFilter f;
  const auto wrong = [&](const std::string& what) {
    if (err != nullptr) *err = what;
    return false;
  };
  if (!text.empty() && text != "all") {
    bool detail = false, path = false, chosen = false;  // chosen: points were named, only those are kept
    const auto keep = [&](unsigned point) {
      if (!chosen) f.points_.fill(false);
      chosen = true;
      f.points_[point] = true;
    };
    for (const std::string& pair : split(text, ",;/")) {
      if (pair == "detail") {
        detail = true;
        continue;
      }
      if (pair == "path") {
        path = true;
        continue;
      }
      const std::size_t eq = pair.find('=');
      const std::string key = pair.substr(0, eq);
      const auto values = split(eq == std::string::npos ? "" : pair.substr(eq + 1), "+");
      if (values.empty() || (key != "qp" && key != "point" && key != "kind"))
        return wrong("'" + pair +
                     "': expected qp=, point= or kind= and values parted by '+', detail, path, or all");
      for (const std::string& value : values) {
        if (key == "qp") {
          const std::size_t dash = value.find('-');
          std::uint32_t from = 0, to = 0;
          const std::string last = dash == std::string::npos ? value : value.substr(dash + 1);
          if (!to_qpn(value.substr(0, dash), &from) || !to_qpn(last, &to) || to < from)
            return wrong("qp=" + value + ": a QPN or a range FROM-TO, 0 to 0xffffff");
          f.qpns_.emplace_back(from, to);
        } else if (key == "kind") {
          Kind kind;
          if (!to_kind(value, &kind))
            return wrong("kind=" + value + ": there are normal, error, command, object, detail, path");
          for (unsigned i = 0; i < kPoints; i++)
            if (kPointInfo[i].kind == kind) keep(i);
        } else {
          unsigned i = 0;
          while (i < kPoints && value != kPointInfo[i].name) i++;
          if (i == kPoints)
            return wrong("point=" + value + ": no such point; `hcasim-trace --points` lists them");
          keep(i);
        }
      }
    }
    for (unsigned i = 0; i < kPoints; i++) {
      const Kind kind = kPointInfo[i].kind;
      if ((detail && kind == Kind::kDetail) || (path && kind == Kind::kPath)) f.points_[i] = true;
    }
    f.trivial_ = false;
  }
  for (unsigned i = 0; i < kPoints; i++) {
    f.detail_ = f.detail_ || (f.points_[i] && kPointInfo[i].kind == Kind::kDetail);
    f.paths_ = f.paths_ || (f.points_[i] && kPointInfo[i].kind == Kind::kPath);
  }
  f.text_ = text == "all" ? "" : text;
  *this = std::move(f);
  return true;
}

}  // namespace hcasim::traces
