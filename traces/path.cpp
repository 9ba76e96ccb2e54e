// SPDX-License-Identifier: BSD-3-Clause
#include "traces/path.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <cstring>
#include <utility>
#include <vector>

#include "prm/prm.h"
#include "traces/frame_end.h"
#include "traces/story.h"

namespace hcasim::traces {
namespace {

// flow_table_type (mlx5_ifc.h), as people call them
enum : unsigned { kEgressAcl = 2, kIngressAcl = 3, kFdb = 4 };
constexpr std::size_t kDeepest = 40;  // branches are indented no further
constexpr const char* kTypes[] = {"NIC receive", "NIC transmit", "egress ACL",   "ingress ACL",  "FDB",
                                  "sniffer",     "sniffer",      "RDMA receive", "RDMA transmit"};

std::string type_name(unsigned type) {
  return type < std::size(kTypes) ? kTypes[type] : fmt::format("type {}", type);
}

// Actions of an entry (flow_context.action, MLX5_FLOW_CONTEXT_ACTION_*).
std::string action_text(unsigned action) {
  static constexpr std::pair<unsigned, const char*> kActions[] = {
      {0x8, "count"},      {0x20, "decapsulate"}, {0x80, "pop VLAN"},      {0x400, "pop VLAN"},
      {0x40, "rewrite"},   {0x100, "push VLAN"},  {0x800, "push VLAN"},    {0x10, "reformat"},
      {0x1000, "encrypt"}, {0x2000, "decrypt"},   {0x4000, "execute ASO"}, {0x1, "allow"},
      {0x2, "drop"},       {0x4, "forward"},
  };
  std::string text;
  for (const auto& [bit, name] : kActions)
    if ((action & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::string vport_text(std::uint32_t vport) {
  return vport == 0xffff ? "the uplink" : fmt::format("vport {}", vport);
}

// A cursor over the head of a frame; what lies beyond reads as nothing.
struct Cursor {
  const std::uint8_t* at;
  std::size_t left;
  bool has(std::size_t n) const { return left >= n; }
  void skip(std::size_t n) {
    n = n < left ? n : left;
    at += n;
    left -= n;
  }
  unsigned be16(std::size_t offset) const { return unsigned{at[offset]} << 8 | at[offset + 1]; }
};

std::string mac_text(const std::uint8_t* m) {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", m[0], m[1], m[2], m[3], m[4], m[5]);
}

std::string address_text(int family, const std::uint8_t* bytes) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, bytes, text, sizeof text);
  return text;
}

std::string transport_text(unsigned protocol, const Cursor& c) {
  enum : unsigned { kIcmp = 1, kTcp = 6, kUdp = 17, kGre = 47, kIcmp6 = 58 };
  if (protocol == kIcmp || protocol == kIcmp6) return ", ICMP";
  if (protocol == kGre) return ", GRE";
  if (protocol != kTcp && protocol != kUdp) return fmt::format(", protocol {}", protocol);
  const char* name = protocol == kTcp ? "TCP" : "UDP";
  return c.has(4) ? fmt::format(", {} {} > {}", name, c.be16(0), c.be16(2)) : fmt::format(", {}", name);
}

}  // namespace

std::string frame_text(const std::uint8_t* bytes, std::size_t len) {
  Cursor c{bytes, len};
  if (!c.has(14)) return fmt::format("{} bytes", len);
  std::string text = mac_text(bytes + 6) + " > " + mac_text(bytes);
  unsigned type = c.be16(12);
  c.skip(14);
  while ((type == 0x8100 || type == 0x88a8) && c.has(4)) {
    text += fmt::format(", VLAN {}", c.be16(0) & 0xfff);
    type = c.be16(2);
    c.skip(4);
  }
  if (type == 0x0800 && c.has(20)) {
    text += ", IPv4 " + address_text(AF_INET, c.at + 12) + " > " + address_text(AF_INET, c.at + 16);
    const unsigned protocol = c.at[9];
    const bool first = (c.be16(6) & 0x1fff) == 0;
    c.skip(std::size_t{c.at[0] & 0xfu} * 4);
    return text + (first ? transport_text(protocol, c) : ", fragment");
  }
  if (type == 0x86dd && c.has(40)) {
    text += ", IPv6 " + address_text(AF_INET6, c.at + 8) + " > " + address_text(AF_INET6, c.at + 24);
    const unsigned protocol = c.at[6];
    c.skip(40);
    return text + transport_text(protocol, c);
  }
  if (type == 0x0806 && c.has(28))
    return text + fmt::format(", ARP {} {}", c.be16(6) == 1 ? "who is" : "reply about",
                              address_text(AF_INET, c.at + (c.be16(6) == 1 ? 24 : 14)));
  if (type == 0x8915) return text + ", RoCE v1";
  return text + fmt::format(", EtherType {:#06x}", type);
}

void Paths::note_entry(const Record& r, const std::vector<std::uint8_t>& blob) {
  using in = prm::set_fte_in;
  constexpr std::size_t kMatch = in::flow_context::match_value::bit_off / 8;
  static const prm::StructInfo* const match = prm::find_struct("fte_match_param");
  if (match == nullptr || blob.size() < kMatch + prm::fte_match_param::bytes) return;
  const std::uint64_t key =
      std::uint64_t{prm::get<in::table_id>(blob.data())} << 32 | prm::get<in::flow_index>(blob.data());
  const std::string what = prm::dump(*match, blob.data() + kMatch, prm::fte_match_param::bytes);
  entries_[{std::uint32_t{r.hca} << 16 | r.function, key}] =
      fmt::format("command {}: {}", r.index, what.empty() ? "matches all" : what);
}

void Paths::add(const Record& r, const std::vector<std::uint8_t>& blob) {
  if (r.p() == Point::kCmdStart && (r.a0 & 0xffff) == prm::op::SET_FLOW_TABLE_ENTRY)
    return note_entry(r, blob);
  if (r.p() != Point::kFrameEnters && r.p() != Point::kFrameTable && r.p() != Point::kFrameLeaves) return;
  const auto [it, fresh] = by_number_.try_emplace(r.obj, paths_.size());
  if (fresh) {
    paths_.emplace_back();
    paths_.back().number = r.obj;
    paths_.back().hca = r.hca;
  }
  PathStep step;
  step.record = r;
  if (r.p() == Point::kFrameEnters) step.head = blob;
  if (r.p() == Point::kFrameTable) {
    const std::uint64_t key = (r.a0 & 0xffffff) << 32 | (r.a1 >> 40 & 0xffffff);
    const auto entry = entries_.find({std::uint32_t{r.hca} << 16 | r.function, key});
    if (entry != entries_.end()) step.entry = entry->second;
  }
  paths_[it->second].steps.push_back(std::move(step));
}

void Paths::finish() {
  for (FramePath& path : paths_) {
    std::unordered_map<std::uint32_t, std::size_t> by_step;
    for (std::size_t i = 0; i < path.steps.size(); ++i) by_step.emplace(path.steps[i].record.index, i);
    for (std::size_t i = 0; i < path.steps.size(); ++i) {
      const auto before = by_step.find(static_cast<std::uint32_t>(path.steps[i].record.a0 >> 32));
      // A step follows one that was made before it: no damaged file makes a circle of them.
      if (before != by_step.end() && before->second < i)
        path.steps[before->second].followed.push_back(i);
      else
        path.roots.push_back(i);
    }
  }
}

std::string path_id(const FramePath& path) { return fmt::format("{}:{}", path.hca, path.number & 0xffffff); }

std::string step_text(const PathStep& step) {
  const Record& r = step.record;
  switch (r.p()) {
    case Point::kFrameEnters: {
      const auto from = static_cast<std::uint32_t>(r.a0 >> 8 & 0xffffff);
      const unsigned where = r.a0 & 0xff;
      return where == kFdb
                 ? "E-Switch, from " + vport_text(from)
                 : fmt::format("HCA {} function {}, {}", r.hca, unsigned{r.function}, type_name(where));
    }
    case Point::kFrameTable: {
      const unsigned type = r.a0 >> 24 & 0xff, level = r.a1 >> 16 & 0xff;
      const auto index = static_cast<std::uint32_t>(r.a1 >> 40);
      std::string text = fmt::format("{} table {:#x} level {}", type_name(type), r.a0 & 0xffffff, level);
      if (type == kEgressAcl || type == kIngressAcl) text += " of " + vport_text(r.a1 >> 24 & 0xffff);
      if (index == kNoFlowIndex) return text + ": no entry";
      text += fmt::format(": entry {}: {}", index, action_text(r.a1 & 0xffff));
      return step.entry.empty() ? text : text + "  [" + step.entry + "]";
    }
    default: {
      const unsigned how = r.a1 & 0xff;
      std::string text = how < std::size(kFrameEndText) ? kFrameEndText[how] : fmt::format("end {}", how);
      if (const std::size_t at = text.find('%'); at != std::string::npos)
        text.replace(at, 1, fmt::format("{}", r.a0 & 0xffffffff));
      return "=> " + text + fmt::format(" ({} bytes)", r.a1 >> 32);
    }
  }
}

namespace {

// A root and what follows it. A file may have any number of branches one in the other: no recursion.
void add_lines(const FramePath& path, std::size_t root, std::string& text) {
  struct Branch {
    std::size_t first;
    std::uint32_t hca;  // whose the step before was
    std::size_t depth;
  };
  std::vector<Branch> open{{root, path.steps[root].record.hca, 0}};
  while (!open.empty()) {
    auto [i, hca, depth] = open.back();
    open.pop_back();
    for (;;) {
      const PathStep& step = path.steps[i];
      const Record& r = step.record;
      const bool named = r.p() == Point::kFrameEnters && (r.a0 & 0xff) != kFdb;
      // What goes on in the switch of another one (the card's other port) says so.
      text += fmt::format("{:>{}}{}{}\n", "", 2 + 2 * depth,
                          r.hca != hca && !named ? fmt::format("HCA {}: ", r.hca) : "", step_text(step));
      hca = r.hca;
      if (step.followed.size() != 1) break;
      i = step.followed.front();
    }
    const std::vector<std::size_t>& next = path.steps[i].followed;
    const std::size_t deeper = depth < kDeepest ? depth + 1 : depth;
    for (auto branch = next.rbegin(); branch != next.rend(); ++branch) open.push_back({*branch, hca, deeper});
  }
}

}  // namespace

std::string path_text(const FramePath& path) {
  if (path.steps.empty()) return "";
  const PathStep& first = path.steps.front();
  std::string text =
      fmt::format("frame {} at {:.3f} us", path_id(path), static_cast<double>(first.record.time_ps) / 1e6);
  if (!first.head.empty()) {
    if (const auto qpn = static_cast<std::uint32_t>(first.record.a1); qpn != 0)
      text += fmt::format(", WQE {}:{:#x}:{}", QpTag::hca(qpn, first.record.hca), QpTag::qpn(qpn),
                          first.record.a1 >> 32);
    text += "\n  " + frame_text(first.head.data(), first.head.size());
  }
  text += "\n";
  for (const std::size_t root : path.roots) add_lines(path, root, text);
  return text;
}

}  // namespace hcasim::traces
