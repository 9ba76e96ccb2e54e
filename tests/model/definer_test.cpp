// SPDX-License-Identifier: BSD-3-Clause
// Match definers: what of a frame they hash; and tables that select a port by it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "model/steer/flow.h"

namespace hcasim {
namespace {

struct Spec {
  unsigned version = 4;
  std::uint8_t protocol = 6;
  std::uint8_t smac = 1, source = 1, dest = 2;  // last bytes
  std::uint16_t sport = 1000, dport = 2000, vid = 0;
  const Spec* inside = nullptr;  // of a VXLAN tunnel (protocol 17, port 4789)
};

void put16(std::vector<std::uint8_t>& b, unsigned v) {
  b.push_back(static_cast<std::uint8_t>(v >> 8));
  b.push_back(static_cast<std::uint8_t>(v));
}

std::vector<std::uint8_t> bytes_of(const Spec& s) {
  std::vector<std::uint8_t> b{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, s.smac};
  if (s.vid != 0) put16(b, 0x8100), put16(b, s.vid);
  std::vector<std::uint8_t> l4;
  put16(l4, s.sport), put16(l4, s.dport);
  if (s.protocol == 6) {
    l4.resize(12);
    put16(l4, 0x5010);
    l4.resize(20);
  } else {
    const std::vector<std::uint8_t> inner = s.inside ? bytes_of(*s.inside) : std::vector<std::uint8_t>(8);
    put16(l4, static_cast<unsigned>(16 + inner.size())), put16(l4, 0);
    l4.insert(l4.end(), {8, 0, 0, 0, 0, 0, 7, 0});
    l4.insert(l4.end(), inner.begin(), inner.end());
  }
  const auto len = static_cast<unsigned>(l4.size());
  if (s.version == 4) {
    put16(b, 0x0800);
    b.insert(b.end(), {0x45, 0});
    put16(b, 20 + len), put16(b, 1), put16(b, 0x4000);
    b.insert(b.end(), {64, s.protocol, 0, 0, 10, 0, 0, s.source, 10, 0, 0, s.dest});
  } else if (s.version == 6) {
    put16(b, 0x86dd);
    b.insert(b.end(), {0x60, 0, 0, 0});
    put16(b, len);
    b.insert(b.end(), {s.protocol, 64, 0x20, 1});
    b.resize(b.size() + 13);
    b.insert(b.end(), {s.source, 0x20, 1});
    b.resize(b.size() + 13);
    b.push_back(s.dest);
  } else {
    put16(b, 0x88cc);
    b.resize(60);
    return b;
  }
  b.insert(b.end(), l4.begin(), l4.end());
  return b;
}

SteeredFrame frame_of(const Spec& s) {
  const std::vector<std::uint8_t> b = bytes_of(s);
  PacketRef p = PacketPool::make();
  p->kind = PacketKind::kEthernet;
  std::copy(b.begin(), b.end(), p->frame());
  p->frame_len = static_cast<std::uint16_t>(b.size());
  return SteeredFrame(p);
}

template <class... F>
MatchDefiner definer(std::uint16_t format) {
  MatchDefiner d;
  d.format = format;
  (prm::set<F>(d.mask.data(), static_cast<typename F::type>(~0ull)), ...);
  return d;
}

template <class Source, class Dest>
MatchDefiner with_ipv6(MatchDefiner d) {
  std::fill_n(prm::ptr<Source>(d.mask.data()), 16, std::uint8_t{0xff});
  std::fill_n(prm::ptr<Dest>(d.mask.data()), 16, std::uint8_t{0xff});
  return d;
}

using F0 = prm::match_definer_format_0;
using F22 = prm::match_definer_format_22;
using F23 = prm::match_definer_format_23;
using F29 = prm::match_definer_format_29;
using F30 = prm::match_definer_format_30;
using F31 = prm::match_definer_format_31;
using F32 = prm::match_definer_format_32;

MatchDefiner ports4() {
  return definer<F22::outer_l4_sport, F22::outer_l4_dport, F22::outer_ip_src_addr, F22::outer_ip_dest_addr>(
      22);
}

// Whether the definer tells the two apart.
bool differ(const MatchDefiner& d, const Spec& a, const Spec& b) {
  EXPECT_TRUE(d.known());
  EXPECT_EQ(d.hash(frame_of(a)), d.hash(frame_of(a)));
  return d.hash(frame_of(a)) != d.hash(frame_of(b));
}

template <class Change>
Spec changed(Spec s, Change change) {
  change(s);
  return s;
}

TEST(Definer, KnowsFormatsAndFields) {
  EXPECT_TRUE(ports4().known());
  EXPECT_FALSE(definer<>(1).known());
  EXPECT_FALSE(definer<>(61).known());
  EXPECT_TRUE(definer<F22::metadata_reg_c_0>(22).known());
  EXPECT_FALSE(definer<F22::outer_qp_type>(22).known());
  EXPECT_FALSE(definer<F0::outer_l4_ok>(0).known());
  MatchDefiner reserved;
  reserved.mask[0] = 1;
  EXPECT_FALSE(reserved.known());
  for (unsigned format = 0; format < 64; ++format)
    EXPECT_EQ(definer<>(static_cast<std::uint16_t>(format)).known(), (definer_formats() >> format & 1) != 0);
}

TEST(Definer, HashesWhatItMasks) {
  const Spec tcp;
  const MatchDefiner ports = ports4();
  EXPECT_TRUE(differ(ports, tcp, changed(tcp, [](Spec& s) { s.sport = 1001; })));
  EXPECT_TRUE(differ(ports, tcp, changed(tcp, [](Spec& s) { s.dport = 1; })));
  EXPECT_TRUE(differ(ports, tcp, changed(tcp, [](Spec& s) { s.source = 7; })));
  EXPECT_TRUE(differ(ports, tcp, changed(tcp, [](Spec& s) { s.dest = 7; })));
  EXPECT_FALSE(differ(ports, tcp, changed(tcp, [](Spec& s) { s.smac = 7; })));
  EXPECT_FALSE(differ(ports, tcp, changed(tcp, [](Spec& s) { s.vid = 7; })));
  EXPECT_FALSE(differ(ports, tcp, changed(tcp, [](Spec& s) { s.protocol = 17; })));

  const MatchDefiner vlan = definer<F0::outer_smac_47_16, F0::outer_smac_15_0, F0::outer_first_vlan_vid>(0);
  EXPECT_TRUE(differ(vlan, tcp, changed(tcp, [](Spec& s) { s.vid = 7; })));
  EXPECT_TRUE(differ(vlan, tcp, changed(tcp, [](Spec& s) { s.smac = 7; })));
  EXPECT_FALSE(differ(vlan, tcp, changed(tcp, [](Spec& s) { s.sport = 7; })));
  EXPECT_TRUE(differ(definer<F0::outer_ethertype>(0), tcp, changed(tcp, [](Spec& s) { s.version = 0; })));
  EXPECT_TRUE(differ(definer<F22::outer_l4_type>(22), tcp, changed(tcp, [](Spec& s) { s.protocol = 17; })));
  EXPECT_TRUE(differ(definer<F22::outer_l3_type>(22), tcp, changed(tcp, [](Spec& s) { s.version = 6; })));
  // What a frame does not have is 0.
  EXPECT_FALSE(differ(ports, changed(tcp, [](Spec& s) { s.version = 0; }),
                      changed(tcp, [](Spec& s) { s.version = 0, s.smac = 9; })));
}

TEST(Definer, HashesIpv6) {
  Spec v6;
  v6.version = 6;
  const MatchDefiner ports = with_ipv6<F29::outer_ip_src_addr, F29::outer_ip_dest_addr>(
      definer<F29::outer_l4_sport, F29::outer_l4_dport>(29));
  const MatchDefiner macs = with_ipv6<F30::outer_ip_src_addr, F30::outer_ip_dest_addr>(
      definer<F30::outer_smac_47_16, F30::outer_smac_15_0>(30));
  EXPECT_TRUE(differ(ports, v6, changed(v6, [](Spec& s) { s.sport = 7; })));
  EXPECT_TRUE(differ(ports, v6, changed(v6, [](Spec& s) { s.source = 7; })));
  EXPECT_TRUE(differ(macs, v6, changed(v6, [](Spec& s) { s.dest = 7; })));
  EXPECT_TRUE(differ(macs, v6, changed(v6, [](Spec& s) { s.smac = 7; })));
  EXPECT_FALSE(differ(macs, v6, changed(v6, [](Spec& s) { s.sport = 7; })));
}

TEST(Definer, HashesInnerHeaders) {
  for (const unsigned version : {4u, 6u}) {
    Spec in, in_other;
    in.version = in_other.version = version;
    in_other.sport = 7;
    Spec out, out_other;
    out.protocol = 17;
    out.dport = 4789;
    out.inside = &in;
    out_other = out;
    out_other.inside = &in_other;
    const MatchDefiner inner =
        version == 4
            ? definer<F23::inner_l4_sport, F23::inner_ip_src_addr, F23::inner_smac_15_0>(23)
            : with_ipv6<F31::inner_ip_src_addr, F31::inner_ip_dest_addr>(definer<F31::inner_l4_sport>(31));
    EXPECT_TRUE(differ(inner, out, out_other));
    EXPECT_FALSE(differ(inner, out, changed(out, [](Spec& s) { s.sport = 7, s.source = 9; })));
    EXPECT_FALSE(differ(ports4(), out, out_other));
    in_other = in;
    in_other.smac = 9;
    EXPECT_TRUE(differ(definer<F32::inner_smac_15_0>(32), out, out_other));
  }
}

// A table that splits by ports; what is no IPv4 misses it.
TEST(Definer, ATableSpreadsFrames) {
  FlowSteering flows;
  EXPECT_EQ(flows.select_port(frame_of({})), FlowSteering::PortChoice::kNone);
  FlowTable& split = *flows.create_table(5, FlowTableType::kPortSelection);
  split.level = 1;
  split.log_size = 1;
  FlowGroup group;
  group.id = 1;
  group.last = 1;
  group.splits = true;
  group.definer = ports4();
  ASSERT_TRUE(flows.create_group(split, group));
  FlowTable& types = *flows.create_table(6, FlowTableType::kPortSelection);
  types.log_size = 1;
  FlowGroup by_version;
  by_version.id = 2;
  by_version.last = 1;
  by_version.criteria = 1;
  prm::set<prm::fte_match_set_lyr_2_4::ip_version>(by_version.mask.data(), 0xf);
  ASSERT_TRUE(flows.create_group(types, by_version));
  FlowEntry v4;
  v4.group = 2;
  v4.action = kFlowForward;
  v4.destinations = {{FlowDestination::kTable, 5}};
  prm::set<prm::fte_match_set_lyr_2_4::ip_version>(v4.value.data(), 4);
  ASSERT_TRUE(flows.set_entry(types, 0, v4));
  ASSERT_TRUE(flows.set_root(FlowTableType::kPortSelection, 6));
  EXPECT_EQ(flows.select_port(frame_of({})), FlowSteering::PortChoice::kNone);  // no entries yet
  FlowEntry port;
  port.group = 1;
  port.action = kFlowForward;
  for (std::uint32_t i = 0; i < 2; ++i) {
    port.destinations = {{FlowDestination::kUplink, 0, 0, i == 1}};
    ASSERT_TRUE(flows.set_entry(split, i, port));
  }
  unsigned other = 0;
  constexpr unsigned kFrames = 1000;
  for (unsigned i = 0; i < kFrames; ++i) {
    const Spec s = changed(Spec{}, [i](Spec& c) { c.sport = static_cast<std::uint16_t>(1000 + i); });
    const auto choice = flows.select_port(frame_of(s));
    ASSERT_NE(choice, FlowSteering::PortChoice::kNone);
    EXPECT_EQ(choice, flows.select_port(frame_of(s)));
    other += choice == FlowSteering::PortChoice::kOther;
  }
  EXPECT_GT(other, kFrames * 2 / 5);
  EXPECT_LT(other, kFrames * 3 / 5);
  EXPECT_EQ(flows.select_port(frame_of(changed(Spec{}, [](Spec& s) { s.version = 6; }))),
            FlowSteering::PortChoice::kNone);
  // The half whose entry is gone misses.
  ASSERT_TRUE(flows.delete_entry(split, 1));
  unsigned none = 0;
  for (unsigned i = 0; i < kFrames; ++i)
    none += flows.select_port(frame_of(changed(Spec{}, [i](Spec& c) {
      c.sport = static_cast<std::uint16_t>(1000 + i);
    }))) == FlowSteering::PortChoice::kNone;
  EXPECT_EQ(none, other);
}

}  // namespace
}  // namespace hcasim
