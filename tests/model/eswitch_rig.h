// SPDX-License-Identifier: BSD-3-Clause
// The E-Switch alone: its manager's tables are made here, and frames put in at its vports.
#ifndef HCASIM_TESTS_MODEL_ESWITCH_RIG_H
#define HCASIM_TESTS_MODEL_ESWITCH_RIG_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/eswitch/eswitch.h"
#include "model/eth/headers.h"
#include "model/state/state.h"
#include "model/steer/flow.h"
#include "prm/field.h"
#include "traces/frame_end.h"
#include "traces/tracer.h"

namespace hcasim::eswitch_rig {

using Lyr = prm::fte_match_set_lyr_2_4;
using Misc = prm::fte_match_set_misc;
using Misc2 = prm::fte_match_set_misc2;
constexpr std::size_t kMiscBlock = Lyr::bytes, kMisc2Block = 3 * Lyr::bytes;
enum : std::uint8_t { kOuter = 1, kMisc = 2, kMisc2 = 8 };
constexpr std::uint32_t kSqn = 0x123;
constexpr FunctionId kOut = kNoFunction;  // of the port

using Bytes = std::vector<std::uint8_t>;

inline Bytes frame(std::uint8_t to, std::uint8_t from, int vlan = -1) {
  Bytes b = {2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from};
  if (to == 0xff) std::fill_n(b.begin(), 6, std::uint8_t{0xff});
  if (vlan >= 0)
    b.insert(b.end(), {0x81, 0x00, static_cast<std::uint8_t>(vlan >> 8), static_cast<std::uint8_t>(vlan)});
  b.insert(b.end(), {0x88, 0xb5});
  b.resize(64, 0x5a);
  return b;
}

// What stands behind the addresses.
inline Bytes ethertype(const Bytes& b, std::size_t len) {
  return Bytes(b.begin() + 12, b.begin() + 12 + static_cast<long>(len));
}

// A port's switch with its manager and two functions, by itself.
struct Switch {
  explicit Switch(std::uint8_t hca) : tracer(hca) { eswitch.set_present(true); }
  Vport v0{0}, v1{1}, v2{2};
  Vports vports{PerFunction<Vport>(std::vector<Vport*>{&v0, &v1, &v2})};
  traces::Tracer tracer;
  traces::FunctionTracer of_manager{tracer, 0};
  FlowSteering flows{&of_manager};
  ESwitch eswitch{{vports, flows}};
};

class ESwitchTest : public ::testing::Test, public Switch {
 protected:
  ESwitchTest() : Switch(3) {}

  FlowTable& table(FlowTableType type, std::uint16_t vport = 0, unsigned log_size = 8) {
    FlowTable* made = flows.create_table(++tables_, type);
    made->vport = vport;
    made->log_size = log_size;
    EXPECT_TRUE(flows.set_root(type, made->id, vport));
    return *made;
  }
  static MatchParam match_mac(std::uint8_t to, bool mask = false) {
    MatchParam m{};
    prm::set<Lyr::dmac_47_16>(m.data(), mask ? 0xffffffffu : to == 0xff ? 0xffffffffu : 0x02000000u);
    prm::set<Lyr::dmac_15_0>(m.data(), mask || to == 0xff ? 0xffffu : to);
    return m;
  }
  // A group of its own for entries that look at these.
  std::uint32_t group(FlowTable& t, std::uint8_t criteria, const MatchParam& mask) {
    FlowGroup g;
    g.id = ++groups_;
    g.first = 16 * groups_;
    g.last = g.first + 15;
    g.criteria = criteria;
    g.mask = mask;
    EXPECT_TRUE(flows.create_group(t, g));
    return g.id;
  }
  void entry(FlowTable& t, std::uint32_t group, const MatchParam& value, std::uint16_t action,
             const std::vector<FlowDestination>& to = {}, std::uint32_t counter = 0) {
    FlowEntry e;
    e.group = group;
    e.value = value;
    e.action = action;
    e.destinations = to;
    e.push[0] = {kTpidCvlan, 5};
    if (counter != 0) e.counters = {counter};
    EXPECT_TRUE(flows.set_entry(t, 16 * group + used_[group]++, e));
  }
  // What switchdev mode begins with: a tag in C_0 that says where a frame came from, and what no rule knows
  // goes to the manager.
  void make_offloads() {
    for (const std::uint16_t vport : {std::uint16_t{0}, std::uint16_t{1}, kUplinkVport}) {
      FlowTable& in = table(FlowTableType::kEswIngressAcl, vport);
      FieldAction set;
      set.type = FieldAction::kSet;
      set.field = prm::k::ACTION_IN_FIELD_METADATA_REG_C_0;
      set.offset = set.width = 16;
      set.data = tag_of(vport);
      const std::uint32_t id = 100u + vport;
      flows.modify_headers[id] = {set};
      FlowEntry e;
      e.group = group(in, 0, {});
      e.action = kFlowAllow | kFlowModify;
      e.modify = id;
      EXPECT_TRUE(flows.set_entry(in, 16 * e.group, e));
    }
    FlowTable& fdb = table(FlowTableType::kFdb);
    MatchParam mask{}, value{};
    prm::set<Misc::source_sqn>(mask.data() + kMiscBlock, 0xffffff);
    prm::set<Misc2::metadata_reg_c_0>(mask.data() + kMisc2Block, 0xffff0000);
    prm::set<Misc::source_sqn>(value.data() + kMiscBlock, kSqn);
    prm::set<Misc2::metadata_reg_c_0>(value.data() + kMisc2Block, tag_of(0) << 16);
    entry(fdb, group(fdb, kMisc | kMisc2, mask), value, kFlowForward, {{FlowDestination::kVport, 2}});
    entry(fdb, group(fdb, 0, {}), {}, kFlowForward, {{FlowDestination::kVport, 0}});
  }
  static std::uint32_t tag_of(std::uint16_t vport) { return vport == kUplinkVport ? 1 : vport + 2u; }
  std::uint32_t register_at(FunctionId at) const {
    for (const EmbeddedSwitch::Copy& c : copies)
      if (c.to == at) return c.packet->reg_c[0];
    return 0;
  }
  // What legacy mode begins with: MAC addresses, each at a vport; broadcasts go everywhere.
  void make_fdb() {
    FlowTable& fdb = table(FlowTableType::kFdb);
    const std::uint32_t macs = group(fdb, kOuter, match_mac(0, true));
    for (std::uint8_t v = 0; v < 3; ++v)
      entry(fdb, macs, match_mac(static_cast<std::uint8_t>(0x10 + v)), kFlowForward,
            {{FlowDestination::kVport, v}});
    entry(fdb, macs, match_mac(0xff), kFlowForward,
          {{FlowDestination::kVport, kUplinkVport},
           {FlowDestination::kVport, 0},
           {FlowDestination::kVport, 1},
           {FlowDestination::kVport, 2}});
  }
  static PacketRef packet(const Bytes& bytes, FunctionId from) {
    PacketRef p = PacketPool::make();
    p->kind = PacketKind::kEthernet;
    p->function = from;
    p->frame_len = static_cast<std::uint16_t>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), p->frame());
    return p;
  }
  // Where it goes, sorted; the copies stay in `copies`.
  std::vector<FunctionId> send(FunctionId from, const Bytes& bytes, std::uint32_t sqn = 0) {
    PacketRef p = packet(bytes, from == kOut ? FunctionId{0} : from);
    p->sqn = sqn;
    copies.clear();
    if (from == kOut)
      eswitch.from_uplink(0, p, copies);
    else
      eswitch.from_function(0, p, copies);
    std::vector<FunctionId> to;
    for (const EmbeddedSwitch::Copy& c : copies) to.push_back(c.to);
    std::sort(to.begin(), to.end());
    return to;
  }
  Bytes arrived(FunctionId at) const {
    for (const EmbeddedSwitch::Copy& c : copies)
      if (c.to == at) return Bytes(c.packet->frame(), c.packet->frame() + c.packet->frame_len);
    return {};
  }
  using To = std::vector<FunctionId>;

  EmbeddedSwitch::Copies copies;

 private:
  std::uint32_t tables_ = 0, groups_ = 0;
  std::map<std::uint32_t, std::uint32_t> used_;
};

}  // namespace hcasim::eswitch_rig
#endif
