// SPDX-License-Identifier: BSD-3-Clause
// What each generation says it is, and that it offers nothing which model and firmware do not do.
#include "model/generation.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "firmware-stub/caps.h"
#include "firmware-stub/objects/flow_types.h"
#include "firmware-stub/opcodes.h"
#include "firmware-stub/vpd.h"
#include "prm/shampo.h"

namespace hcasim::fw {
namespace {

constexpr CapGroup kGroups[] = {CapGroup::kGeneral, CapGroup::kEthernet,     CapGroup::kOdp,
                                CapGroup::kAtomic,  CapGroup::kRoce,         CapGroup::kFlowTable,
                                CapGroup::kQos,     CapGroup::kDeviceMemory, CapGroup::kGeneral2};

Caps caps_of(const Generation& g, Link link) {
  Options o;
  o.generation = &g;
  o.link = link;
  return Caps(o);
}
Caps caps_of(const char* key, Link link) { return caps_of(*find_generation(key), link); }

bool offers(const Caps& caps, std::uint16_t opcode) {
  const Opcode* o = find_opcode(opcode);
  return o->offered == nullptr || o->offered(caps);
}

TEST(Generation, RowsAreToldApart) {
  std::set<std::string> keys, psids;
  std::set<std::uint16_t> ids;
  for (const Generation& g : all_generations()) {
    EXPECT_TRUE(keys.insert(g.key).second) << g.key;
    EXPECT_TRUE(ids.insert(g.device_id).second) << g.key;
    EXPECT_TRUE(psids.insert(g.psid).second) << g.key;
    EXPECT_LE(std::string(g.psid).size(), 15u) << g.key;
    EXPECT_EQ(find_generation(g.key), &g);
    EXPECT_NE(generation_keys().find(g.key), std::string::npos);
  }
  EXPECT_EQ(keys.size(), 7u);
  EXPECT_EQ(find_generation("connectx3"), nullptr);
}

// Linux' mlx5 pci_device_id table; firmware majors of the vendor's release notes.
TEST(Generation, NumbersAreThoseThatDriversKnow) {
  const struct {
    const char* key;
    std::uint16_t device_id, fw_major;
  } rows[] = {{"connectx4", 4115, 12},   {"connectx4lx", 4117, 14}, {"connectx5", 4119, 16},
              {"connectx5ex", 4121, 16}, {"connectx6", 4123, 20},   {"connectx6dx", 4125, 22},
              {"connectx7", 4129, 28}};
  for (const auto& row : rows) {
    EXPECT_EQ(find_generation(row.key)->device_id, row.device_id) << row.key;
    EXPECT_EQ(find_generation(row.key)->fw_major, row.fw_major) << row.key;
  }
  EXPECT_STREQ(find_generation("connectx6")->family, "MT28908");
  EXPECT_STREQ(default_generation().key, "connectx5ex");
}

// The later formats of steering entries have a bit of their own that software may write them, memory for
// patterns, arguments of these, and definers.
void clear_owners(CapGroup group, std::uint8_t* block) {
  using Nic = prm::flow_table_nic_cap;
  if (group == CapGroup::kFlowTable) {
    prm::set<Nic::flow_table_properties_nic_receive::sw_owner_v2>(block, 0);
    prm::set<Nic::flow_table_properties_nic_transmit::sw_owner_v2>(block, 0);
  } else if (group == CapGroup::kEswitchTables) {
    prm::set<prm::flow_table_eswitch_cap::flow_table_properties_nic_esw_fdb::sw_owner_v2>(block, 0);
  } else if (group == CapGroup::kDeviceMemory) {
    prm::set<prm::device_mem_cap::header_modify_pattern_sw_icm_start_address>(block, 0);
    prm::set<prm::device_mem_cap::log_header_modify_pattern_sw_icm_size>(block, 0);
  } else if (group == CapGroup::kGeneral) {
    using General = prm::cmd_hca_cap;
    prm::set<General::log_max_num_header_modify_argument>(block, 0);
    prm::set<General::log_header_modify_argument_max_alloc>(block, 0);
    prm::set<General::max_num_match_definer>(block, 0);
    prm::set<General::match_definer_format_supported>(block, 0);
    const std::uint64_t objects = std::uint64_t{1} << prm::k::OBJ_TYPE_HEADER_MODIFY_ARGUMENT |
                                  std::uint64_t{1} << prm::k::OBJ_TYPE_MATCH_DEFINER;
    prm::set<General::general_obj_types>(block, prm::get<General::general_obj_types>(block) & ~objects);
  }
}

// Everything that is implemented is what the default offers, but for headers apart from data, times at the
// port and DCI streams. No generation has a bit more; the one field that tells a format instead of an amount
// is looked at apart.
TEST(Generation, NoneOffersMoreThanIsImplemented) {
  using Cap = prm::cmd_hca_cap;
  using Cap2 = prm::cmd_hca_cap_2;
  for (const Link link : {Link::kInfiniBand, Link::kEthernet}) {
    const Caps all = caps_of(default_generation(), link);
    for (const Generation& g : all_generations()) {
      const Caps caps = caps_of(g, link);
      for (const CapGroup group : kGroups) {
        const auto number = static_cast<std::uint16_t>(group);
        const Caps::Block* most = all.maximum(number);
        if (most == nullptr) {  // not on this link
          EXPECT_EQ(caps.maximum(number), nullptr) << g.key << ", group " << number;
          continue;
        }
        for (const Caps::Block* block : {caps.maximum(number), caps.current(number)}) {
          if (block == nullptr) continue;  // a group that this one does not have
          Caps::Block b = *block;
          if (group == CapGroup::kGeneral) prm::set<Cap::steering_format_version>(b.data(), 0);
          clear_owners(group, b.data());
          if (g.has.header_split && group == CapGroup::kGeneral) prm::set<Cap::shampo>(b.data(), 0);
          if (g.has.port_stamps && group == CapGroup::kGeneral)
            prm::set<Cap::ts_cqe_to_dest_cqn>(b.data(), 0);
          if (g.has.dci_streams && group == CapGroup::kGeneral) {
            prm::set<Cap::log_max_dci_stream_channels>(b.data(), 0);
            prm::set<Cap::log_max_dci_errored_streams>(b.data(), 0);
          }
          if (g.has.port_stamps && group == CapGroup::kGeneral2)
            prm::set<Cap2::ts_cqe_metadata_size2wqe_counter>(b.data(), 0);
          if (g.has.header_split && group == CapGroup::kGeneral2) {
            prm::set<Cap2::min_mkey_log_entity_size_fixed_buffer>(b.data(), 0);
            prm::set<Cap2::min_mkey_log_entity_size_fixed_buffer_valid>(b.data(), 0);
          }
          for (std::size_t i = 0; i < b.size(); ++i)
            ASSERT_EQ(b[i] & ~(*most)[i], 0) << g.key << ", group " << number << ", byte " << i;
        }
        if (const Caps::Block* current = caps.current(number)) {
          for (std::size_t i = 0; i < current->size(); ++i)
            ASSERT_EQ((*current)[i] & ~(*caps.maximum(number))[i], 0) << g.key << ", group " << number;
        }
      }
    }
  }
}

// What docs/features.md has as absent: drivers would use it if they found it.
TEST(Generation, WhatIsAbsentIsNotOffered) {
  using Cap = prm::cmd_hca_cap;
  for (const Link link : {Link::kInfiniBand, Link::kEthernet}) {
    for (const Generation& g : all_generations()) {
      const Caps caps = caps_of(g, link);
      const std::uint8_t* c = caps.maximum(static_cast<std::uint16_t>(CapGroup::kGeneral))->data();
      const std::pair<const char*, std::uint64_t> fields[] = {
          {"path migration", prm::get<Cap::apm>(c)},
          {"static rates", prm::get<Cap::stat_rate_support>(c)},
          {"delay drop", prm::get<Cap::rq_delay_drop>(c)},
          {"cross-channel queues", prm::get<Cap::cd>(c)},
          {"end padding", prm::get<Cap::end_pad>(c)},
          {"PPS pins", prm::get<Cap::pps>(c)},
          {"PPS pins, set", prm::get<Cap::pps_modify>(c)},
          {"monitor counters", prm::get<Cap::max_num_of_monitor_counters>(c)},
          {"hairpin", prm::get<Cap::hairpin>(c)},
          {"hairpin queues", prm::get<Cap::log_max_hairpin_queues>(c)},
          {"shared receive buffers", prm::get<Cap::sbcam_reg>(c)},
          {"IPoIB's offloads", prm::get<Cap::ipoib_enhanced_offloads>(c)},
          {"ECE", prm::get<Cap::ece_support>(c)},
          {"processing hints", prm::get<Cap::tph>(c)},
          {"virtio-net's manager", prm::get<Cap::virtio_net_device_emualtion_manager>(c)},
          {"virtio-blk's manager", prm::get<Cap::virtio_blk_device_emualtion_manager>(c)},
          {"virtio queues", prm::get<Cap::general_obj_types>(c) >> prm::k::OBJ_TYPE_VIRTIO_NET_Q & 1}};
      for (const auto& [what, offered] : fields) EXPECT_EQ(offered, 0u) << g.key << ": " << what;
      const auto* roce = caps.maximum(static_cast<std::uint16_t>(CapGroup::kRoce));
      if (roce == nullptr) continue;
      EXPECT_EQ(prm::get<prm::roce_cap::roce_apm>(roce->data()), 0u) << g.key;
    }
  }
}

TEST(Generation, HeadersApartFromDataCameWithConnectX7) {
  for (const Link link : {Link::kInfiniBand, Link::kEthernet}) {
    for (const Generation& g : all_generations()) {
      const bool has = link == Link::kEthernet && std::string(g.key) == "connectx7";
      const Caps caps = caps_of(g, link);
      EXPECT_EQ(caps.get<prm::cmd_hca_cap::shampo>(), has ? 1u : 0u) << g.key;
      EXPECT_EQ(caps.maximum(static_cast<std::uint16_t>(CapGroup::kHeaderSplit)) != nullptr, has) << g.key;
      if (const Caps::Block* b = caps.maximum(static_cast<std::uint16_t>(CapGroup::kHeaderSplit))) {
        // Linux 7 wants both before it offers rx-gro-hw.
        EXPECT_EQ(prm::get<prm::shampo_header_split>(b->data()), 1u);
        EXPECT_EQ(prm::get<prm::shampo_header_split_data_merge>(b->data()), 1u);
      }
      // The drivers' buffers of headers are KSM lists of 256 bytes an entry.
      using Cap2 = prm::cmd_hca_cap_2;
      EXPECT_EQ(caps.get<Cap2::min_mkey_log_entity_size_fixed_buffer_valid>(CapGroup::kGeneral2),
                has ? 1u : 0u);
      EXPECT_LE(caps.get<Cap2::min_mkey_log_entity_size_fixed_buffer>(CapGroup::kGeneral2), 8u);
    }
  }
}

TEST(Generation, TimesAtThePortCameWithConnectX6Dx) {
  for (const Link link : {Link::kInfiniBand, Link::kEthernet}) {
    for (const Generation& g : all_generations()) {
      const bool has = link == Link::kEthernet &&
                       (std::string(g.key) == "connectx6dx" || std::string(g.key) == "connectx7");
      const Caps caps = caps_of(g, link);
      EXPECT_EQ(caps.get<prm::cmd_hca_cap::ts_cqe_to_dest_cqn>(), has ? 1u : 0u) << g.key;
      // What newer drivers want beside it.
      EXPECT_EQ(caps.get<prm::cmd_hca_cap_2::ts_cqe_metadata_size2wqe_counter>(CapGroup::kGeneral2) != 0, has)
          << g.key;
    }
  }
}

TEST(Generation, ConnectX5OffersWhatConnectX5ExDoes) {
  for (const Link link : {Link::kInfiniBand, Link::kEthernet})
    for (const CapGroup group : kGroups) {
      const auto n = static_cast<std::uint16_t>(group);
      const Caps five = caps_of("connectx5", link), ex = caps_of("connectx5ex", link);
      ASSERT_EQ(five.maximum(n) == nullptr, ex.maximum(n) == nullptr);
      if (five.maximum(n) != nullptr) {
        EXPECT_EQ(*five.maximum(n), *ex.maximum(n)) << n;
      }
    }
}

TEST(Generation, ConnectX4LacksWhatCameWithConnectX5) {
  const Caps ib = caps_of("connectx4", Link::kInfiniBand), eth = caps_of("connectx4", Link::kEthernet);
  EXPECT_EQ(ib.get<prm::cmd_hca_cap::tag_matching>(), 0u);
  EXPECT_EQ(ib.get<prm::cmd_hca_cap::device_memory>(), 0u);
  EXPECT_EQ(ib.maximum(static_cast<std::uint16_t>(CapGroup::kDeviceMemory)), nullptr);
  EXPECT_EQ(ib.get<prm::cmd_hca_cap::mini_cqe_resp_stride_index>(), 0u);
  EXPECT_EQ(ib.get<prm::cmd_hca_cap::cqe_compression>(), 1u);
  EXPECT_EQ(ib.get<prm::cmd_hca_cap::dct>(), 1u);
  EXPECT_EQ(ib.get<prm::cmd_hca_cap::pg>(), 1u);
  EXPECT_EQ(
      eth.get<prm::per_protocol_networking_offload_caps::enhanced_multi_pkt_send_wqe>(CapGroup::kEthernet),
      0u);
  EXPECT_EQ(eth.get<prm::per_protocol_networking_offload_caps::multi_pkt_send_wqe>(CapGroup::kEthernet), 0u);
  EXPECT_EQ(eth.get<prm::qos_cap::packet_pacing>(CapGroup::kQos), 1u);
  EXPECT_EQ(eth.get<prm::qos_cap::packet_pacing_burst_bound>(CapGroup::kQos), 0u);
  // What is not offered is refused too.
  for (const std::uint16_t op : {prm::op::ALLOC_MEMIC, prm::op::DEALLOC_MEMIC, prm::op::MODIFY_MEMIC,
                                 prm::op::SYNC_STEERING, prm::op::CREATE_XRQ}) {
    EXPECT_FALSE(offers(ib, op)) << op;
    EXPECT_FALSE(offers(eth, op)) << op;
  }
  EXPECT_TRUE(offers(caps_of("connectx5", Link::kEthernet), prm::op::SYNC_STEERING));
  EXPECT_TRUE(offers(caps_of("connectx5", Link::kInfiniBand), prm::op::CREATE_XRQ));
  Options four;
  four.generation = find_generation("connectx4");
  const auto nic_rx = static_cast<std::uint32_t>(FlowTableType::kNicRx);
  EXPECT_EQ(flow_type(four, nic_rx)->actions & (kFlowReformat | kFlowModify | kFlowDecap), 0);
  EXPECT_EQ(flow_type(four, static_cast<std::uint32_t>(FlowTableType::kRdmaRx)), nullptr);
}

// Entries of later formats are not walked, so software must not be told to write any.
TEST(Generation, EncryptionIsOfferedByBoardsThatMay) {
  using g = prm::cmd_hca_cap;
  using tls = prm::tls_cap;
  using ipsec = prm::ipsec_cap;
  using eth = prm::per_protocol_networking_offload_caps;
  using Rx = prm::flow_table_nic_cap::flow_table_properties_nic_receive;
  using Tx = prm::flow_table_nic_cap::flow_table_properties_nic_transmit;
  for (const Generation& generation : all_generations()) {
    for (const bool may : {false, true}) {
      for (const Link link : {Link::kEthernet, Link::kInfiniBand}) {
        Options o;
        o.generation = &generation;
        o.link = link;
        o.crypto = may;
        const Caps caps(o);
        const unsigned want = may && generation.has.crypto && link == Link::kEthernet ? 1 : 0;
        EXPECT_EQ(caps.get<g::tls_tx>(), want) << generation.key;
        EXPECT_EQ(caps.get<g::tls_rx>(), want) << generation.key;
        EXPECT_EQ(caps.get<g::log_max_dek>() != 0 ? 1u : 0u, want) << generation.key;
        EXPECT_EQ(caps.get<g::general_obj_types>() >> prm::k::GENERAL_OBJECT_TYPES_ENCRYPTION_KEY & 1, want);
        EXPECT_EQ(caps.get<g::ipsec_offload>(), want) << generation.key;
        EXPECT_EQ(caps.get<g::general_obj_types>() >> prm::k::GENERAL_OBJECT_TYPES_IPSEC & 1, want);
        EXPECT_EQ(caps.get<Rx::ipsec_decrypt>(CapGroup::kFlowTable), want);
        EXPECT_EQ(caps.get<Tx::ipsec_encrypt>(CapGroup::kFlowTable), want);
        EXPECT_EQ(caps.get<Rx::ipsec_encrypt>(CapGroup::kFlowTable), 0u);
        EXPECT_EQ(caps.get<eth::insert_trailer>(CapGroup::kEthernet), want);
        EXPECT_EQ(caps.get<ipsec::ipsec_crypto_offload>(CapGroup::kIpsec), want);
        EXPECT_EQ(caps.get<ipsec::ipsec_full_offload>(CapGroup::kIpsec), want);
        EXPECT_EQ(caps.get<Tx::reformat_add_esp_trasport>(CapGroup::kFlowTable), want);
        EXPECT_EQ(caps.get<Rx::reformat_del_esp_trasport>(CapGroup::kFlowTable), want);
        EXPECT_EQ(caps.get<Tx::reformat_l2_to_l3_esp_tunnel>(CapGroup::kFlowTable), want);
        EXPECT_EQ(caps.get<Rx::reformat_l3_esp_tunnel_to_l2>(CapGroup::kFlowTable), want);
        EXPECT_EQ(caps.get<g::general_obj_types>() >> prm::k::GENERAL_OBJECT_TYPES_MACSEC & 1, want);
        EXPECT_EQ(caps.get<Rx::macsec_decrypt>(CapGroup::kFlowTable), want);
        EXPECT_EQ(caps.get<Rx::reformat_remove_macsec>(CapGroup::kFlowTable), want);
        EXPECT_EQ(caps.get<Tx::macsec_encrypt>(CapGroup::kFlowTable), want);
        EXPECT_EQ(caps.get<Tx::reformat_add_macsec>(CapGroup::kFlowTable), want);
        EXPECT_EQ(caps.get<Rx::macsec_encrypt>(CapGroup::kFlowTable), 0u);
        EXPECT_EQ(caps.get<prm::macsec_cap::macsec_epn>(CapGroup::kMacsec), want);
        EXPECT_EQ(caps.current(static_cast<std::uint16_t>(CapGroup::kMacsec)) != nullptr, want == 1);
        const unsigned psp = want == 1 && generation.has.psp ? 1 : 0;
        EXPECT_EQ(caps.get<prm::psp::cap_psp>(), psp) << generation.key;
        EXPECT_EQ(caps.get<prm::psp::cap::psp_crypto_offload>(CapGroup::kPsp), psp);
        EXPECT_EQ(caps.get<prm::psp::table_psp_decrypt<Rx::bit_off>>(CapGroup::kFlowTable), psp);
        EXPECT_EQ(caps.get<prm::psp::table_psp_encrypt<Tx::bit_off>>(CapGroup::kFlowTable), psp);
        EXPECT_EQ(caps.get<prm::psp::table_psp_encrypt<Rx::bit_off>>(CapGroup::kFlowTable), 0u);
        EXPECT_EQ(caps.current(static_cast<std::uint16_t>(CapGroup::kPsp)) != nullptr, psp == 1);
        EXPECT_EQ(caps.get<tls::tls_1_2_aes_gcm_128>(CapGroup::kTls), want);
        EXPECT_EQ(caps.get<tls::tls_1_2_aes_gcm_256>(CapGroup::kTls), want);
        EXPECT_EQ(caps.get<tls::tls_1_3_aes_gcm_128>(CapGroup::kTls), want);
        EXPECT_EQ(caps.get<tls::tls_1_3_aes_gcm_256>(CapGroup::kTls), want);
        EXPECT_EQ(caps.current(static_cast<std::uint16_t>(CapGroup::kTls)) != nullptr, want == 1);
      }
    }
  }
}

TEST(Generation, SoftwareSteeringIsOfTheChipsFormat) {
  using Rx = prm::flow_table_nic_cap::flow_table_properties_nic_receive;
  using Fdb = prm::flow_table_eswitch_cap::flow_table_properties_nic_esw_fdb;
  for (const Generation& g : all_generations()) {
    Options options;
    options.generation = &g;
    options.link = Link::kEthernet;
    options.vfs = 1;
    const Caps caps(options);
    const bool first = g.has.ste == SteFormat::kConnectX5, some = g.has.ste != SteFormat::kNone;
    EXPECT_EQ(caps.get<Rx::sw_owner>(CapGroup::kFlowTable), first ? 1u : 0u) << g.key;
    EXPECT_EQ(caps.get<Rx::sw_owner_v2>(CapGroup::kFlowTable), some && !first ? 1u : 0u) << g.key;
    EXPECT_EQ(caps.get<Fdb::sw_owner>(CapGroup::kEswitchTables), first ? 1u : 0u) << g.key;
    EXPECT_EQ(caps.get<Fdb::sw_owner_v2>(CapGroup::kEswitchTables), some && !first ? 1u : 0u) << g.key;
    EXPECT_EQ(offers(caps, prm::op::SYNC_STEERING), some) << g.key;
    if (some) {
      EXPECT_EQ(caps.get<prm::cmd_hca_cap::steering_format_version>(), static_cast<unsigned>(g.has.ste))
          << g.key;
    }
  }
}

TEST(Generation, PortSpeedIsOneThatItHas) {
  constexpr unsigned kEdr = 32, kHdr = 64, kNdr = 128;
  EXPECT_EQ(find_generation("connectx6")->ib_speed(kHdr), kHdr);
  EXPECT_EQ(find_generation("connectx6")->ib_speed(kNdr), kHdr);
  EXPECT_EQ(find_generation("connectx5")->ib_speed(kHdr), kEdr);
  EXPECT_EQ(find_generation("connectx7")->ib_speed(kNdr), kNdr);
  EXPECT_EQ(find_generation("connectx4lx")->ib_speed(kEdr), 0u);
}

// PCI 3.0, appendix I.
TEST(VitalProductData, IsWellFormed) {
  for (const Generation& g : all_generations()) {
    Options o;
    o.generation = &g;
    o.card_guid = 0x0002c90300112233;
    const std::vector<std::uint8_t> vpd = vital_product_data(o);
    const auto length = [&](std::size_t at) {
      return std::size_t{vpd.at(at + 1)} | std::size_t{vpd.at(at + 2)} << 8;
    };
    ASSERT_EQ(vpd.at(0), 0x82) << g.key;
    const std::size_t fields = 3 + length(0);
    EXPECT_NE(std::string(vpd.begin() + 3, vpd.begin() + static_cast<std::ptrdiff_t>(fields)).find(g.product),
              std::string::npos);
    ASSERT_EQ(vpd.at(fields), 0x90);
    const std::size_t end = fields + 3 + length(fields);
    ASSERT_EQ(vpd.size(), end + 1);
    EXPECT_EQ(vpd.at(end), 0x78);
    std::string names;
    std::size_t at = fields + 3;
    for (; at < end; at += 3 + vpd.at(at + 2)) {
      const std::string name(vpd.begin() + static_cast<std::ptrdiff_t>(at),
                             vpd.begin() + static_cast<std::ptrdiff_t>(at) + 2);
      const std::string value(vpd.begin() + static_cast<std::ptrdiff_t>(at) + 3,
                              vpd.begin() + static_cast<std::ptrdiff_t>(at) + 3 + vpd.at(at + 2));
      names += name + " ";
      if (name == "PN") {
        EXPECT_EQ(value, g.part);
      }
      if (name == "SN") {
        EXPECT_EQ(value, "0002c90300112233");
      }
      if (name == "RV") {
        EXPECT_EQ(std::accumulate(vpd.begin(), vpd.begin() + static_cast<std::ptrdiff_t>(at) + 4, 0) & 0xff,
                  0);
      }
    }
    EXPECT_EQ(at, end);
    EXPECT_EQ(names, "PN EC SN V3 V0 V1 RV ");
  }
}

}  // namespace
}  // namespace hcasim::fw
