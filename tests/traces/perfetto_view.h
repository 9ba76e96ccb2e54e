// SPDX-License-Identifier: BSD-3-Clause
// A file of Perfetto's protobuf format, as a viewer would show it.
#ifndef HCASIM_TESTS_TRACES_PERFETTO_VIEW_H
#define HCASIM_TESTS_TRACES_PERFETTO_VIEW_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/perfetto.pb.h"

namespace hcasim::traces {

/// What a viewer makes of the file: slices of each track, by name of group and track.
struct Slice {
  std::string name;
  std::uint64_t from = 0, to = 0;
  std::vector<Slice> inside;
  std::set<std::uint64_t> flows, ending;
};
struct View {
  std::map<std::pair<std::string, std::string>, std::vector<Slice>> slices;
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<std::uint64_t, std::string>>> instants;
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<std::uint64_t, std::int64_t>>> counters;

  explicit View(const std::string& bytes) {
    perfetto::Trace trace;
    EXPECT_TRUE(trace.ParseFromString(bytes));
    EXPECT_GT(trace.packet_size(), 0);
    std::map<std::uint64_t, std::pair<std::string, std::string>> names;
    std::vector<const perfetto::Packet*> events;
    for (const auto& p : trace.packet()) {
      EXPECT_NE(p.sequence(), 0u);
      if (p.has_track()) {
        const auto& t = p.track();
        EXPECT_EQ(names.count(t.uuid()), 0u) << "two tracks of one number";
        if (!t.has_parent_uuid()) {
          names[t.uuid()] = {t.name(), ""};
        } else {
          EXPECT_EQ(names.count(t.parent_uuid()), 1u);
          names[t.uuid()] = {names[t.parent_uuid()].first, t.name()};
        }
      } else {
        EXPECT_EQ(names.count(p.event().track()), 1u) << "an event before its track";
        events.push_back(&p);
      }
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const auto* a, const auto* b) { return a->timestamp() < b->timestamp(); });
    std::map<std::uint64_t, std::vector<Slice>> open;
    for (const auto* p : events) {
      const auto& e = p->event();
      const auto& name = names[e.track()];
      if (e.type() == 1) {
        Slice s;
        s.name = e.name();
        s.from = p->timestamp();
        s.flows = {e.flow().begin(), e.flow().end()};
        s.ending = {e.ending_flow().begin(), e.ending_flow().end()};
        open[e.track()].push_back(s);
      } else if (e.type() == 2) {
        auto& stack = open[e.track()];
        if (stack.empty()) {
          ADD_FAILURE() << "an end without a begin on " << name.second;
          continue;
        }
        Slice s = stack.back();
        stack.pop_back();
        s.to = p->timestamp();
        (stack.empty() ? slices[name] : stack.back().inside).push_back(s);
      } else if (e.type() == 3) {
        instants[name].emplace_back(p->timestamp(), e.name());
      } else {
        counters[name].emplace_back(p->timestamp(), e.counter());
      }
    }
    for (const auto& o : open) EXPECT_TRUE(o.second.empty()) << "not ended on " << names[o.first].second;
  }
};

}  // namespace hcasim::traces
#endif
