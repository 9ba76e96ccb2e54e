// SPDX-License-Identifier: BSD-3-Clause
// Flow tables through PCIe: what entries look at behind the outer headers, what is refused, their counters.
#include <cstring>

#include "prm/user_commands.h"
#include "steering_fixture.h"

namespace hcasim::bare {
namespace {

using namespace prm::k;

// ---- Match fields behind the outer headers ----

TEST_F(Steering, TunnelAndTransportFieldsMatch) {
  using Misc = prm::fte_match_set_misc;
  using Misc2 = prm::fte_match_set_misc2;
  using Misc3 = prm::fte_match_set_misc3;
  using Misc5 = prm::fte_match_set_misc5;
  using Lyr = prm::fte_match_set_lyr_2_4;
  constexpr unsigned kOuter = 0, kMisc = 1, kMisc2 = 3, kMisc3 = 4, kMisc5 = 6;  // blocks
  struct Case {
    const char* name;
    unsigned block;
    void (*put)(std::uint8_t*, std::uint32_t);
    std::uint32_t value;
    Frame hit;
  };
  const auto udp = [](unsigned port, std::initializer_list<std::uint32_t> words) {
    Frame f = udp_tunnel(port);
    for (const std::uint32_t w : words) u32(f, w);
    for (unsigned i = 0; i < 16; ++i) u32(f, 0);
    const auto len = static_cast<unsigned>(f.size() - kEth);
    f[16] = static_cast<std::uint8_t>(len >> 8), f[17] = static_cast<std::uint8_t>(len);
    f[38] = static_cast<std::uint8_t>((len - 20) >> 8), f[39] = static_cast<std::uint8_t>(len - 20);
    return f;
  };
  const auto of_protocol = [&](unsigned protocol, std::initializer_list<std::uint32_t> words) {
    Frame f = udp(0, {0, 0, 0, 0});
    f[23] = static_cast<std::uint8_t>(protocol);
    std::size_t at = 34;
    for (const std::uint32_t w : words) prm::store32(f.data() + at, w), at += 4;
    return f;
  };
  Frame mpls = plain_frame(100);
  mpls[12] = 0x88, mpls[13] = 0x47, prm::store32(mpls.data() + 14, 0x12345b40);
#define FIELD(f) +[](std::uint8_t* p, std::uint32_t v) { prm::set<f>(p, v); }
  const Case cases[] = {
      {"vxlan_vni", kMisc, FIELD(Misc::vxlan_vni), 0xabcdef, udp(4789, {0x08000000, 0xabcdef00})},
      {"geneve_vni", kMisc, FIELD(Misc::geneve_vni), 0x123456, udp(6081, {0x00006558, 0x12345600})},
      {"geneve_oam", kMisc, FIELD(Misc::geneve_oam), 1, udp(6081, {0x00806558, 0})},
      {"geneve_protocol_type", kMisc, FIELD(Misc::geneve_protocol_type), 0x6558, udp(6081, {0x00006558, 0})},
      {"geneve_opt_len", kMisc, FIELD(Misc::geneve_opt_len), 1, udp(6081, {0x01006558, 0, 0})},
      {"gre_key", kMisc,
       +[](std::uint8_t* p, std::uint32_t v) { prm::store32(prm::ptr<Misc::gre_key>(p), v); }, 0xdeadbeef,
       of_protocol(47, {0x20006558, 0xdeadbeef})},
      {"gre_protocol", kMisc, FIELD(Misc::gre_protocol), 0x6558, of_protocol(47, {0x00006558})},
      {"gre_k_present", kMisc, FIELD(Misc::gre_k_present), 1, of_protocol(47, {0x20006558, 1})},
      {"bth_opcode", kMisc, FIELD(Misc::bth_opcode), 0x81, udp(4791, {0x8100ffff, 0x00123456, 0})},
      {"bth_dst_qp", kMisc, FIELD(Misc::bth_dst_qp), 0x123456, udp(4791, {0x8100ffff, 0x00123456, 0})},
      {"outer_esp_spi", kMisc, FIELD(Misc::outer_esp_spi), 0x11223344, of_protocol(50, {0x11223344})},
      {"mpls", kMisc2, FIELD(Misc2::outer_first_mpls::mpls_label), 0x12345, mpls},
      {"mpls_over_udp", kMisc2, FIELD(Misc2::outer_first_mpls_over_udp::mpls_label), 0x54321,
       udp(6635, {0x54321140})},
      {"mpls_over_gre", kMisc2, FIELD(Misc2::outer_first_mpls_over_gre::mpls_ttl), 0x40,
       of_protocol(47, {0x00008847, 0x54321140})},
      {"outer_tcp_seq", kMisc3, FIELD(Misc3::outer_tcp_seq_num), 0x01020304,
       of_protocol(6, {0, 0x01020304, 0x05060708, 0x50000000, 0})},
      {"outer_tcp_ack", kMisc3, FIELD(Misc3::outer_tcp_ack_num), 0x05060708,
       of_protocol(6, {0, 0x01020304, 0x05060708, 0x50000000, 0})},
      {"icmp_type", kMisc3, FIELD(Misc3::icmp_type), 8, of_protocol(1, {0x08000000, 0x00070009})},
      {"icmp_header_data", kMisc3, FIELD(Misc3::icmp_header_data), 0x00070009,
       of_protocol(1, {0x08000000, 0x00070009})},
      {"vxlan_gpe_vni", kMisc3, FIELD(Misc3::outer_vxlan_gpe_vni), 0x777,
       udp(4790, {0x0c000003, 0x00077700})},
      {"vxlan_gpe_next", kMisc3, FIELD(Misc3::outer_vxlan_gpe_next_protocol), 3,
       udp(4790, {0x0c000003, 0x00077700})},
      {"gtpu_teid", kMisc3, FIELD(Misc3::gtpu_teid), 0xa1b2c3d4, udp(2152, {0x30ff0010, 0xa1b2c3d4})},
      {"gtpu_msg_type", kMisc3, FIELD(Misc3::gtpu_msg_type), 255, udp(2152, {0x30ff0010, 1})},
      {"gtpu_dw_0", kMisc3, FIELD(Misc3::gtpu_dw_0), 0x30ff0010, udp(2152, {0x30ff0010, 1})},
      {"gtpu_dw_2", kMisc3, FIELD(Misc3::gtpu_dw_2), 0x12340000, udp(2152, {0x32ff0010, 1, 0x12340000})},
      {"gtpu_first_ext_dw_0", kMisc3, FIELD(Misc3::gtpu_first_ext_dw_0), 0x01020300,
       udp(2152, {0x34ff0010, 1, 0x85, 0x01020300})},
      {"tunnel_header_0", kMisc5, FIELD(Misc5::tunnel_header_0), 0x88000123,
       udp(4789, {0x88000123, 0xabcdef00})},
      {"tunnel_header_1", kMisc5, FIELD(Misc5::tunnel_header_1), 0xabcdef00,
       udp(4789, {0x08000000, 0xabcdef00})},
      {"tunnel_header_2", kMisc5, FIELD(Misc5::tunnel_header_2), 0x01020304,
       udp(6081, {0x02006558, 0x12345600, 0x01020304, 0x05060708})},
      {"tunnel_header_3", kMisc5, FIELD(Misc5::tunnel_header_3), 0x05060708,
       udp(6081, {0x02006558, 0x12345600, 0x01020304, 0x05060708})},
      {"outer l4_type", kOuter, FIELD(Lyr::l4_type), 1, of_protocol(6, {0, 1, 2, 0x50000000, 0})},
  };
#undef FIELD
  link->rule.reset();
  for (const Case& c : cases) {
    MatchParam mask{}, value{};
    const std::size_t block = c.block * prm::fte_match_set_misc::bytes;
    c.put(mask.data() + block, ~0u);
    c.put(value.data() + block, c.value);
    Root rx(dev(), kNicRxTable, 1u << c.block, mask);
    FlowRule r = rx.rule();
    r.value = value, r.to = {{FlowDest::kTir, link->tir.number()}};
    auto rule = make_flow(dev(), r);
    EXPECT_EQ(arrives(c.hit), c.hit) << c.name;
    EXPECT_TRUE(arrives(plain_frame(100)).empty()) << c.name;
    if (c.value != 1) {
      // The same headers with another value.
      ASSERT_TRUE(rule.destroy().ok());
      c.put(r.value.data() + block, c.value ^ 1);
      auto other = make_flow(dev(), r);
      EXPECT_TRUE(arrives(c.hit).empty()) << c.name;
    }
  }
  set_flow_root(dev(), link->table.number()).must();
}

// One option of Geneve's may be matched, that of the object; its place among the others does not matter.
TEST_F(Steering, OneOptionOfGeneveMatches) {
  breaks({"object-unknown", "cap-not-offered", "object-count"});
  using In = prm::create_geneve_tlv_option_in;
  using Misc3 = prm::fte_match_set_misc3;
  constexpr std::uint16_t kType = prm::k::OBJ_TYPE_GENEVE_TLV_OPT;
  constexpr std::size_t kMisc3 = 4 * Misc3::bytes;
  const auto create = [&](unsigned option_class, unsigned type, unsigned words) {
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, In::bytes);
    in.set<In::hdr::obj_type>(kType).set<In::geneve_tlv_opt::option_class>(option_class);
    in.set<In::geneve_tlv_opt::option_type>(type).set<In::geneve_tlv_opt::option_data_length>(words);
    return dev().exec(in, prm::general_obj_out_cmd_hdr::bytes);
  };
  const auto destroy = [&](std::uint32_t id) {
    using Gone = prm::general_obj_in_cmd_hdr;
    Mailbox in(prm::op::DESTROY_GENERAL_OBJECT, Gone::bytes);
    return dev().exec(in.set<Gone::obj_type>(kType).set<Gone::obj_id>(id));
  };
  const auto geneve = [](std::initializer_list<std::uint32_t> words) {
    Frame f = udp_tunnel(6081);
    for (const std::uint32_t w : words) u32(f, w);
    for (unsigned i = 0; i < 16; ++i) u32(f, 0);
    const auto len = static_cast<unsigned>(f.size() - kEth);
    f[17] = static_cast<std::uint8_t>(len), f[39] = static_cast<std::uint8_t>(len - 20);
    return f;
  };
  EXPECT_STATUS(create(0x0102, 0x55, 0), CmdStatus::kBadParam);
  EXPECT_STATUS(create(0x0102, 0x55, 2), CmdStatus::kBadParam);
  const std::uint32_t id = create(0x0102, 0x55, 1).must().get<prm::general_obj_out_cmd_hdr::obj_id>();
  EXPECT_FALSE(create(0x0102, 0x56, 1).ok());  // one at a time
  MatchParam mask{}, value{};
  prm::set<Misc3::geneve_tlv_option_0_data>(mask.data() + kMisc3, ~0u);
  prm::set<Misc3::geneve_tlv_option_0_data>(value.data() + kMisc3, 0x01020304);
  link->rule.reset();
  Root rx(dev(), kNicRxTable, 1u << 4, mask);
  FlowRule r = rx.rule();
  r.value = value, r.to = {{FlowDest::kTir, link->tir.number()}};
  const auto rule = make_flow(dev(), r);
  const Frame alone = geneve({0x02006558, 0x12345600, 0x01025501, 0x01020304});
  const Frame second =
      geneve({0x05006558, 0x12345600, 0x00070101, 0x01020304, 0x00070200, 0x01025501, 0x01020304});
  EXPECT_EQ(arrives(alone), alone);
  EXPECT_EQ(arrives(second), second);
  for (const auto& f : {geneve({0x02006558, 0x12345600, 0x01025501, 0x01020305}),   // other data
                        geneve({0x02006558, 0x12345600, 0x01025601, 0x01020304}),   // type
                        geneve({0x02006558, 0x12345600, 0x01035501, 0x01020304}),   // class
                        geneve({0x01006558, 0x12345600, 0x01025501, 0x01020304}),   // behind the options
                        geneve({0x02006558, 0x12345600, 0x0102551f, 0x01020304}),   // longer than they are
                        geneve({0x3f006558, 0x12345600, 0x0007011f, 0x01020304})})  // longer than the frame
    EXPECT_TRUE(arrives(f).empty());
  EXPECT_OK(destroy(id));
  EXPECT_STATUS(destroy(id), CmdStatus::kBadRes);
  EXPECT_TRUE(arrives(alone).empty());  // of which nobody has told the card
  set_flow_root(dev(), link->table.number()).must();
}

// VXLAN's ports: IANA's always, others while they are registered; a function's reset takes them back.
TEST_F(Steering, VxlanIsKnownByItsPorts) {
  breaks({"table-index"});
  using Misc = prm::fte_match_set_misc;
  const auto port = [&](std::uint16_t opcode, unsigned number) {
    Mailbox in(opcode, prm::add_vxlan_udp_dport_in::bytes);
    return dev().exec(in.set<prm::add_vxlan_udp_dport_in::vxlan_udp_port>(number));
  };
  const auto add = [&](unsigned number) { return port(prm::op::ADD_VXLAN_UDP_DPORT, number); };
  const auto remove = [&](unsigned number) { return port(prm::op::DELETE_VXLAN_UDP_DPORT, number); };
  const auto tunnel = [](unsigned number) {
    Frame f = udp_tunnel(number);
    u32(f, 0x08000000), u32(f, 77u << 8);
    for (unsigned i = 0; i < 16; ++i) u32(f, 0);
    const auto len = static_cast<unsigned>(f.size() - kEth);
    f[17] = static_cast<std::uint8_t>(len), f[39] = static_cast<std::uint8_t>(len - 20);
    return f;
  };
  link->rule.reset();
  MatchParam mask{}, value{};
  prm::set<Misc::vxlan_vni>(mask.data() + Misc::bytes, 0xffffff);
  prm::set<Misc::vxlan_vni>(value.data() + Misc::bytes, 77);
  Root rx(dev(), kNicRxTable, 2, mask);
  FlowRule r = rx.rule();
  r.value = value, r.to = {{FlowDest::kTir, link->tir.number()}};
  const auto rule = make_flow(dev(), r);
  EXPECT_EQ(arrives(tunnel(4789)), tunnel(4789));
  EXPECT_TRUE(arrives(tunnel(8472)).empty());
  EXPECT_OK(add(4789));
  EXPECT_OK(add(8472));
  EXPECT_OK(add(8472));
  EXPECT_EQ(arrives(tunnel(8472)), tunnel(8472));
  EXPECT_OK(remove(8472));
  EXPECT_TRUE(arrives(tunnel(8472)).empty());
  EXPECT_STATUS(remove(8472), CmdStatus::kBadParam);
  EXPECT_STATUS(add(0), CmdStatus::kBadParam);
  EXPECT_OK(remove(4789));
  EXPECT_EQ(arrives(tunnel(4789)), tunnel(4789));
  using Eth = prm::per_protocol_networking_offload_caps_at<prm::query_hca_cap_out::capability::bit_off>;
  const unsigned most = dev().query_caps(1, true).must().get<Eth::max_vxlan_udp_ports>();
  ASSERT_GT(most, 3u);
  for (unsigned i = 0; i < most; ++i) EXPECT_OK(add(5000 + i));
  EXPECT_STATUS(add(6000), CmdStatus::kLim);
  for (unsigned i = 0; i < most; ++i) EXPECT_OK(remove(5000 + i));
  set_flow_root(dev(), link->table.number()).must();
}

// ---- What is refused ----

TEST_F(Steering, ContextsAreChecked) {
  breaks({"cap-not-offered", "flow-action", "modify-header", "object-unknown", "packet-reformat"});
  const auto bad = [&](std::vector<FieldItem> items, CmdStatus status, unsigned type = kNicRxTable) {
    EXPECT_STATUS(try_modify_header(dev(), items, type), status);
  };
  const FieldItem good = set_field(ACTION_IN_FIELD_OUT_SIPV4, 1);
  bad({}, CmdStatus::kBadParam);
  bad(std::vector<FieldItem>(17, good), CmdStatus::kBadParam);
  bad({good}, CmdStatus::kBadParam, kSnifferRxTable);
  bad({good}, CmdStatus::kBadParam, 99);
  bad({set_field(0xfff, 1)}, CmdStatus::kBadParam);
  bad({good, set_field(ACTION_IN_FIELD_OUT_SMAC_15_0, 1)}, CmdStatus::kBadParam);  // 32 bits of 16
  bad({set_field(ACTION_IN_FIELD_OUT_SIPV4, 1, 20, 13)}, CmdStatus::kBadParam);
  bad({copy_field(0xfff, ACTION_IN_FIELD_OUT_SIPV4)}, CmdStatus::kBadParam);
  bad({copy_field(ACTION_IN_FIELD_OUT_SIPV4, ACTION_IN_FIELD_OUT_UDP_SPORT)}, CmdStatus::kBadParam);
  bad({FieldItem{}}, CmdStatus::kBadParam);
  using In = prm::alloc_modify_header_context_in;
  Mailbox cut(prm::op::ALLOC_MODIFY_HEADER_CONTEXT, In::bytes + 8);
  EXPECT_STATUS(dev().exec(cut.set<In::num_of_actions>(4)), CmdStatus::kBadInpLen);

  Reformat r;
  r.type = REFORMAT_TYPE_ADD_MACSEC, r.data = Frame(16);
  EXPECT_STATUS(try_reformat(dev(), r), CmdStatus::kBadParam);
  r.type = REFORMAT_TYPE_L2_TO_L2_TUNNEL, r.data = Frame(13);
  EXPECT_STATUS(try_reformat(dev(), r), CmdStatus::kBadParam);
  r.data = Frame(300);
  EXPECT_STATUS(try_reformat(dev(), r), CmdStatus::kBadParam);
  r.data = Frame(20), r.size = 40;
  EXPECT_STATUS(try_reformat(dev(), r), CmdStatus::kBadInpLen);
  r = {};
  r.type = REFORMAT_TYPE_L3_TUNNEL_TO_L2, r.data = Frame(16);
  EXPECT_STATUS(try_reformat(dev(), r), CmdStatus::kBadParam);
  r.type = REFORMAT_TYPE_INSERT_HDR, r.anchor = 3, r.data = Frame(4);
  EXPECT_STATUS(try_reformat(dev(), r), CmdStatus::kBadParam);

  // Contexts where they do not belong.
  Reformat encap;
  encap.type = REFORMAT_TYPE_L2_TO_L2_TUNNEL, encap.data = vxlan_headers(1);
  auto context = make_reformat(dev(), encap);
  auto modify = make_modify_header(dev(), {good});
  Root rx(dev(), kNicRxTable), tx(dev(), kNicTxTable), sniffer(dev(), kSnifferRxTable);
  const auto refused = [&](const Root& root, unsigned action, CmdStatus status, std::uint32_t id = 0) {
    FlowRule rule = root.rule();
    rule.action = action, rule.reformat = rule.modify = id;
    EXPECT_STATUS(try_flow(dev(), rule), status);
  };
  refused(rx, kReformat, CmdStatus::kBadParam, context.number());  // of the transmit side
  refused(tx, kReformat, CmdStatus::kBadRes, 0x7777);
  refused(tx, kModify, CmdStatus::kBadRes, 0x7777);
  refused(tx, kDecap, CmdStatus::kBadParam);
  refused(tx, kPopVlan, CmdStatus::kBadParam);
  refused(rx, kPushVlan, CmdStatus::kBadParam);
  refused(sniffer, kModify, CmdStatus::kBadParam, modify.number());
  FlowRule to_tir = tx.rule();
  to_tir.to = {{FlowDest::kTir, link->tir.number()}};
  EXPECT_STATUS(try_flow(dev(), to_tir), CmdStatus::kBadParam);
  // A table that was not made for changes of length.
  auto table = make_flow_table(dev(), 2, 0, kNicTxTable);
  auto group = make_flow_group(dev(), table.number(), 0, 3, 0, {}, kNicTxTable);
  FlowRule plain = tx.rule();
  plain.table = table.number(), plain.group = group.number();
  plain.action = kReformat, plain.reformat = context.number();
  EXPECT_STATUS(try_flow(dev(), plain), CmdStatus::kBadParam);
  set_flow_root(dev(), link->table.number()).must();
}

TEST_F(Steering, MasksOfFieldsThatNobodyReadsAreRefused) {
  breaks({"cmd-reserved-bits", "flow-criteria"});
  const auto group = [&](unsigned block, std::size_t byte, CmdStatus status) {
    using In = prm::create_flow_group_in;
    Mailbox in(prm::op::CREATE_FLOW_GROUP, In::bytes);
    in.set<In::table_id>(link->table.number()).set<In::start_flow_index>(0).set<In::end_flow_index>(1);
    in.set<In::match_criteria_enable>(1u << block);
    prm::ptr<In::match_criteria>(in.data())[block * 64 + byte] = 0xff;
    EXPECT_STATUS(dev().exec(in), status);
  };
  using Misc = prm::fte_match_set_misc;
  group(1, Misc::source_port::bit_off / 8, CmdStatus::kBadParam);
  group(1, 63, CmdStatus::kBadParam);  // reserved
  group(3, 63, CmdStatus::kBadParam);  // reserved
  group(5, 0, CmdStatus::kBadParam);
  group(6, prm::fte_match_set_misc5::macsec_tag_0::bit_off / 8, CmdStatus::kBadParam);
  group(6, prm::fte_match_set_misc5::tunnel_header_3::bit_off / 8 + 4, CmdStatus::kBadParam);  // reserved
  group(7, 0, CmdStatus::kBadParam);
}

// ---- Counters ----

TEST_F(Steering, CountersInBulk) {
  breaks({"destroy-busy", "object-unknown"});
  using Alloc = prm::alloc_flow_counter_in;
  Mailbox alloc(prm::op::ALLOC_FLOW_COUNTER, Alloc::bytes);
  alloc.set<Alloc::flow_counter_bulk>(1);
  const auto first = dev().exec(alloc).must().get<prm::alloc_flow_counter_out::flow_counter_id>();
  const auto second = dev().exec(alloc).must().get<prm::alloc_flow_counter_out::flow_counter_id>();
  EXPECT_EQ(first % 4, 0u);
  EXPECT_GE(second, first + 128);
  const auto dealloc = [&](std::uint32_t id) {
    using In = prm::dealloc_flow_counter_in;
    Mailbox in(prm::op::DEALLOC_FLOW_COUNTER, In::bytes);
    return dev().exec(in.set<In::flow_counter_id>(id));
  };
  {
    Root tx(dev(), kNicTxTable);
    FlowRule r = tx.rule();
    r.allow = true, r.counter = first + 127;
    auto rule = make_flow(dev(), r);
    EXPECT_EQ(arrives(plain_frame(100)), plain_frame(100));
    EXPECT_STATUS(dealloc(first), CmdStatus::kBadResState);
  }
  EXPECT_EQ(query_flow_counter(dev(), first + 127).packets, 1u);
  EXPECT_EQ(query_flow_counter(dev(), first + 126).packets, 0u);
  // All of them into memory, by a key that covers just that.
  Pd pd(dev());
  const Buffer mem = dev().memory().allocate(4096);
  constexpr std::size_t kEach = prm::traffic_counter::bytes;
  Mr mr(dev(), Mr::of(pd, mem, kAllAccess, 12, 0, 128 * kEach));
  const auto dump = [&](std::uint64_t va, bool clear) {
    using In = prm::query_flow_counter_in;
    Mailbox in(prm::op::QUERY_FLOW_COUNTER, In::bytes);
    in.set<In::flow_counter_id>(first).set<In::num_of_counters>(128).set<In::clear>(clear ? 1 : 0);
    in.set<prm::query_flow_counter_dump_to_memory>(1).set<prm::query_flow_counter_mkey>(mr.key());
    return dev().exec(in.set<prm::query_flow_counter_address>(va));
  };
  std::memset(mem.data(), 0x55, 4096);
  EXPECT_STATUS(dump(mem.bus(0) + kEach, true), CmdStatus::kBadRes);
  EXPECT_EQ(mem.data()[0], 0x55);
  EXPECT_OK(dump(mem.bus(0), true));
  machine().advance(100'000);
  EXPECT_EQ(prm::get<prm::traffic_counter::packets>(mem.data() + 126 * kEach), 0u);
  EXPECT_EQ(prm::get<prm::traffic_counter::packets>(mem.data() + 127 * kEach), 1u);
  EXPECT_EQ(prm::get<prm::traffic_counter::octets>(mem.data() + 127 * kEach), 100u);
  EXPECT_EQ(mem.data()[128 * kEach], 0x55);
  EXPECT_EQ(query_flow_counter(dev(), first + 127).packets, 0u);  // read and cleared
  EXPECT_STATUS(dealloc(first + 1), CmdStatus::kBadRes);
  EXPECT_OK(dealloc(first));
  EXPECT_STATUS(dealloc(first), CmdStatus::kBadRes);
  EXPECT_EQ(dev().exec(alloc).must().get<prm::alloc_flow_counter_out::flow_counter_id>(), first);
  EXPECT_OK(dealloc(first));
  EXPECT_OK(dealloc(second));
}

}  // namespace
}  // namespace hcasim::bare
