// SPDX-License-Identifier: BSD-3-Clause
// The command mailbox of tools (ICMD) through the vendor specific capability, and the registers that they
// read: the steps of mstflint's mtcr_ul_icmd_cif.c.
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fixture.h"
#include "prm/access_registers.h"
#include "prm/icmd.h"
#include "prm/management.h"
#include "prm/prm.h"

namespace hcasim::bare {
namespace {

using prm::IcmdStatus;
using prm::RegisterStatus;

enum : std::uint32_t { kControlAt = 0, kSizeAt = 0x1000, kMailboxAt = 0x100000 };
using namespace prm::reg;
enum : std::uint8_t { kRead = prm::kTlvRead, kWrite = prm::kTlvWrite };

class Icmd : public FirmwareTest {
 protected:
  std::size_t hca() const override { return 4; }  // a ConnectX-6

  // ---- the gateway ----
  hca_t* card() { return fn().handle(); }
  std::uint32_t read(std::uint32_t address, std::uint32_t space = 3) {
    hca_vsc_write(card(), 0x04, space);
    hca_vsc_write(card(), 0x10, address);
    EXPECT_EQ(hca_vsc_read(card(), 0x10) & ~(1u << 30), address | 1u << 31);
    return hca_vsc_read(card(), 0x14);
  }
  // Whether it was taken.
  bool write(std::uint32_t address, std::uint32_t value, std::uint32_t space = 3) {
    hca_vsc_write(card(), 0x04, space);
    hca_vsc_write(card(), 0x14, value);
    hca_vsc_write(card(), 0x10, address | 1u << 31);
    return hca_vsc_read(card(), 0x10) == address;
  }
  // ---- the mailbox ----
  bool busy() { return (read(kControlAt) & 1) != 0; }
  void start(std::uint32_t opcode) { EXPECT_TRUE(write(kControlAt, opcode << 16 | 1)); }
  IcmdStatus finish() {
    for (unsigned i = 0; busy() && i < 100; ++i) machine().advance(10'000);
    EXPECT_FALSE(busy());
    return static_cast<IcmdStatus>(read(kControlAt) >> 8 & 0xff);
  }
  void put(const std::vector<std::uint8_t>& bytes) {
    for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4)
      EXPECT_TRUE(write(kMailboxAt + static_cast<std::uint32_t>(i), prm::load32(&bytes[i])));
  }
  std::vector<std::uint8_t> get(std::size_t len) {
    std::vector<std::uint8_t> bytes(len);
    for (std::size_t i = 0; i < len; i += 4)
      prm::store32(&bytes[i], read(kMailboxAt + static_cast<std::uint32_t>(i)));
    return bytes;
  }
  // ---- registers ----
  struct Answer {
    RegisterStatus status;
    std::vector<std::uint8_t> data;
    template <class F>
    auto field() const {
      return prm::get<F>(data.data());
    }
  };
  static std::vector<std::uint8_t> tlvs(std::uint16_t id, std::uint8_t method,
                                        const std::vector<std::uint8_t>& data) {
    using op = prm::operation_tlv;
    std::vector<std::uint8_t> out(op::bytes + prm::register_tlv::bytes);
    prm::set<op::type>(out.data(), prm::kTlvOperation);
    prm::set<op::len>(out.data(), op::bytes / 4);
    prm::set<op::register_id>(out.data(), id);
    prm::set<op::method>(out.data(), method);
    prm::set<op::tlv_class>(out.data(), prm::kTlvClassRegister);
    prm::set<prm::register_tlv::type>(out.data() + op::bytes, prm::kTlvRegister);
    prm::set<prm::register_tlv::len>(out.data() + op::bytes, static_cast<std::uint32_t>(1 + data.size() / 4));
    out.insert(out.end(), data.begin(), data.end());
    return out;
  }
  Answer answer(std::size_t size) {
    using op = prm::operation_tlv;
    EXPECT_EQ(finish(), IcmdStatus::kOk);
    const auto out = get(op::bytes + prm::register_tlv::bytes + size);
    EXPECT_EQ(prm::get<op::response>(out.data()), 1u);
    return {static_cast<RegisterStatus>(prm::get<op::status>(out.data())),
            {out.begin() + op::bytes + prm::register_tlv::bytes, out.end()}};
  }
  Answer access(std::uint16_t id, std::uint8_t method, const std::vector<std::uint8_t>& data) {
    put(tlvs(id, method, data));
    start(prm::kIcmdAccessRegister);
    return answer(data.size());
  }
  Answer read_register(std::uint16_t id, std::size_t size) {
    return access(id, kRead, std::vector<std::uint8_t>(size));
  }
  // A string of MQIS, eight bytes at a time, as mstflint does.
  std::string information(std::uint32_t type) {
    using r = prm::mqis;
    std::string text;
    for (;;) {
      std::vector<std::uint8_t> data(r::bytes);
      prm::set<r::info_type>(data.data(), type);
      prm::set<r::read_offset>(data.data(), static_cast<std::uint32_t>(text.size()));
      prm::set<r::read_length>(data.data(), 8);
      const Answer a = access(kMqis, kRead, data);
      EXPECT_EQ(a.status, RegisterStatus::kOk);
      const auto len = a.field<r::read_length>();
      EXPECT_LE(len, 8u);
      text.append(reinterpret_cast<const char*>(a.data.data()) + r::info_string::bit_off / 8, len);
      if (len == 0 || text.size() >= a.field<r::info_length>()) return text;
    }
  }
  Answer nv_item(std::uint32_t type, std::size_t room = 64) {
    std::vector<std::uint8_t> data(prm::nvda::bytes + room);
    prm::set<prm::nvda::length>(data.data(), static_cast<std::uint32_t>(room));
    prm::set<prm::nvda::type>(data.data(), type);
    return access(kNvda, kRead, data);
  }
  Answer mcc(std::uint32_t instruction, std::uint32_t handle) {
    std::vector<std::uint8_t> data(prm::mcc_reg::bytes);
    prm::set<prm::mcc_reg::instruction>(data.data(), instruction);
    prm::set<prm::mcc_reg::update_handle>(data.data(), handle);
    return access(kMcc, kWrite, data);
  }
};

class IcmdEthernet : public Icmd {
  std::size_t hca() const override { return 6; }
};

TEST_F(Icmd, SizeAndWhatIsNotThere) {
  EXPECT_EQ(read(kSizeAt), 0x340u);
  EXPECT_EQ(read(kSizeAt, 1), 0x340u);  // the other number of the same space
  const std::uint64_t before = fn().counter("bad_accesses");
  EXPECT_EQ(read(kMailboxAt + 0x340), 0xbadacce5u);
  EXPECT_EQ(read(kControlAt + 4), 0xbadacce5u);
  EXPECT_FALSE(write(kMailboxAt + 0x340, 1));
  EXPECT_FALSE(write(kSizeAt, 1));
  EXPECT_EQ(fn().counter("bad_accesses"), before + 4);
  EXPECT_TRUE(write(kMailboxAt + 0x33c, 5));
  EXPECT_EQ(read(kMailboxAt + 0x33c), 5u);
}

TEST_F(Icmd, GeneralInformationIsTheGenerations) {
  using r = prm::mgir;
  const Answer a = read_register(kMgir, 0xa0);  // as long as newer tools have it
  ASSERT_EQ(a.status, RegisterStatus::kOk);
  EXPECT_EQ(a.field<r::device_id>(), 0x101bu);
  EXPECT_EQ(a.field<r::hw_dev_id>(), 0x20fu);
  EXPECT_EQ(a.field<r::num_ports>(), 1u);
  EXPECT_EQ(a.field<r::extended_major>(), 20u);
  EXPECT_EQ(a.field<r::extended_minor>(), 35u);
  EXPECT_EQ(a.field<r::extended_sub_minor>(), 1000u);
  // fw_info at 0x20, psid at 0x10 in it.
  EXPECT_STREQ(reinterpret_cast<const char*>(a.data.data()) + 0x30, "HCA_0000004123");
}

TEST_F(Icmd, StringsComePieceByPiece) {
  EXPECT_EQ(information(prm::kMqisModelName), "MCX653105A-HDAT");
  EXPECT_EQ(information(prm::kMqisModelDescription), "ConnectX-6 host channel adapter, hcasim");
  EXPECT_EQ(information(prm::kMqisImageVsd), "");
  std::vector<std::uint8_t> vpd(512);
  vpd.resize(hca_get_vpd(card(), vpd.data(), vpd.size()));
  EXPECT_EQ(information(prm::kMqisVpd), std::string(vpd.begin(), vpd.end()));

  std::vector<std::uint8_t> data(prm::mqis::bytes);
  prm::set<prm::mqis::info_type>(data.data(), 9);
  EXPECT_EQ(access(kMqis, kRead, data).status, RegisterStatus::kBadParam);
  // Behind its end, and more than there is room for.
  prm::set<prm::mqis::info_type>(data.data(), prm::kMqisModelName);
  prm::set<prm::mqis::read_offset>(data.data(), 0xffff);
  prm::set<prm::mqis::read_length>(data.data(), 0xffff);
  EXPECT_EQ(access(kMqis, kRead, data).field<prm::mqis::read_length>(), 0u);
  prm::set<prm::mqis::read_offset>(data.data(), 1);
  EXPECT_EQ(access(kMqis, kRead, data).field<prm::mqis::read_length>(), 8u);
}

TEST_F(IcmdEthernet, AddressesAreThoseOfTheCard) {
  const Answer item = nv_item(prm::kNvBaseMacGuid);
  ASSERT_EQ(item.status, RegisterStatus::kOk);
  EXPECT_EQ(item.field<prm::nvda::length>(), 16u);
  std::uint8_t mac[6];
  hca_get_mac(card(), mac);
  const std::uint8_t* data = item.data.data() + prm::nvda::bytes;
  EXPECT_EQ(std::memcmp(data + 2, mac, sizeof mac), 0);
  using Vport = prm::query_nic_vport_context_out;
  const auto vport = dev().exec(
      Mailbox(prm::op::QUERY_NIC_VPORT_CONTEXT, prm::query_nic_vport_context_in::bytes), Vport::bytes);
  EXPECT_EQ(prm::get<prm::nv_base_mac_guid::base_guid>(data),
            vport.must().get<Vport::nic_vport_context::node_guid>());

  const Answer cap = nv_item(prm::kNvBaseMacGuidCap);
  ASSERT_EQ(cap.status, RegisterStatus::kOk);
  data = cap.data.data() + prm::nvda::bytes;
  EXPECT_EQ(prm::get<prm::nv_base_mac_guid_cap::num_of_allocated_macs>(data), 1u);
  EXPECT_EQ(prm::get<prm::nv_base_mac_guid_cap::num_of_allocated_guids>(data), 1u);

  EXPECT_EQ(nv_item(4).status, RegisterStatus::kNoResource);
  EXPECT_EQ(nv_item(prm::kNvBaseMacGuid, 12).status, RegisterStatus::kTooShort);
  std::vector<std::uint8_t> set(prm::nvda::bytes + 16);
  prm::set<prm::nvda::type>(set.data(), prm::kNvBaseMacGuid);
  EXPECT_EQ(access(kNvda, kWrite, set).status, RegisterStatus::kMethod);
}

// What Linux' devlink reads, from 6.17 on, through its own door too.
TEST_F(IcmdEthernet, ConfigurationHasItsItems) {
  const struct {
    std::uint32_t type;
    std::size_t bytes;
  } items[] = {{prm::kNvGlobalPciConf, 12},
               {prm::kNvGlobalPciCap, 20},
               {prm::kNvSwOffloadConf, 8},
               {prm::kNvSwOffloadCap, 4},
               {prm::kNvSwAccelerateConf, 8}};
  for (const auto& i : items) {
    const Answer a = nv_item(i.type);
    ASSERT_EQ(a.status, RegisterStatus::kOk) << i.type;
    EXPECT_EQ(a.field<prm::nvda::length>(), i.bytes) << i.type;
    std::vector<std::uint8_t> data(prm::nvda::bytes + 64);
    prm::set<prm::nvda::type>(data.data(), i.type);
    const auto by_command = dev().access_register(kNvda, false, data).must();
    EXPECT_EQ(std::memcmp(by_command.out.data() + prm::access_register_out::bytes + prm::nvda::bytes,
                          a.data.data() + prm::nvda::bytes, i.bytes),
              0)
        << i.type;
  }
  // A card without virtual functions, whose CQEs are compressed in the balanced way; DevX is there.
  const auto data_of = [&](std::uint32_t type) { return nv_item(type).data; };
  const auto cap = data_of(prm::kNvGlobalPciCap), conf = data_of(prm::kNvGlobalPciConf),
             offload = data_of(prm::kNvSwOffloadConf);
  EXPECT_EQ(prm::get<prm::nv_global_pci_cap::sriov_support>(cap.data() + prm::nvda::bytes), 0u);
  EXPECT_EQ(prm::get<prm::nv_global_pci_conf::sriov_en>(conf.data() + prm::nvda::bytes), 0u);
  EXPECT_EQ(prm::get<prm::nv_sw_offload_conf::cqe_compression>(offload.data() + prm::nvda::bytes), 0u);
  EXPECT_EQ(prm::get<prm::nv_sw_offload_conf::uctx_en>(offload.data() + prm::nvda::bytes), 1u);
  EXPECT_EQ(prm::get<prm::nv_global_pci_conf::num_pfs_valid>(conf.data() + prm::nvda::bytes), 1u);
  EXPECT_EQ(prm::get<prm::nv_global_pci_conf::num_pfs>(conf.data() + prm::nvda::bytes), 1u);
  EXPECT_EQ(prm::get<prm::nv_global_pci_cap::max_num_pfs>(cap.data() + prm::nvda::bytes), 1u);
  // The periods that lro_timer_supported_periods has: 8 us and 1,024.
  EXPECT_EQ(prm::get<prm::nv_sw_offload_conf::lro_log_timeout0>(offload.data() + prm::nvda::bytes), 3u);
  EXPECT_EQ(prm::get<prm::nv_sw_offload_conf::lro_log_timeout3>(offload.data() + prm::nvda::bytes), 10u);
}

// mstconfig asks for all that it knows, and leaves out what it may not read.
TEST_F(Icmd, WhatCanBeDoneWithConfiguration) {
  using r = prm::mnvqc;
  for (const auto& [type, there] :
       {std::pair(0u, 0u), std::pair<unsigned, unsigned>(prm::kNvGlobalPciConf, 1u),
        std::pair<unsigned, unsigned>(prm::kNvSwOffloadCap, 1u), std::pair(0x12345678u, 0u)}) {
    std::vector<std::uint8_t> data(r::bytes, 0xff);
    prm::set<r::type>(data.data(), type);
    const Answer a = access(kMnvqc, kRead, data);
    ASSERT_EQ(a.status, RegisterStatus::kOk) << type;
    EXPECT_EQ(a.field<r::type>(), type);
    EXPECT_EQ(a.field<r::support_rd>(), there) << type;
    EXPECT_EQ(a.field<r::support_wr>(), 0u) << type;
  }
}

// What mstflint wants before it asks the firmware instead of the flash: 0x9060 to 0x9064, and MGIR.
TEST_F(Icmd, McamTellsOfWhatToolsCanReach) {
  using r = prm::mcam_reg;
  const Answer a = read_register(kMcam, r::bytes);
  ASSERT_EQ(a.status, RegisterStatus::kOk);
  const auto has = [&a](unsigned id) {
    const unsigned bit = r::mng_access_reg_cap_mask::bit_off + 127 - (id - 0x9000);
    return (a.data[bit / 8] >> (7 - bit % 8) & 1) != 0;
  };
  for (const unsigned id : {kMgir, kNvda, kMfrl, kMcqs, kMcqi, kMcc, kMcda, kMqis})
    EXPECT_TRUE(has(id)) << id;
  // And mstfwreset: the reset that the driver agrees to.
  EXPECT_EQ(prm::get<prm::mcam_features::pcie_sync_for_fw_update>(a.data.data() +
                                                                  r::mng_feature_cap_mask::bit_off / 8),
            1u);
  EXPECT_FALSE(has(0x9065));
  EXPECT_FALSE(has(0x9021));
  std::vector<std::uint8_t> group(r::bytes);
  prm::set<r::access_reg_group>(group.data(), 2);
  const Answer two = access(kMcam, kRead, group);
  EXPECT_EQ(two.status, RegisterStatus::kOk);
  EXPECT_EQ(std::vector<std::uint8_t>(two.data.begin() + 8, two.data.end()),
            std::vector<std::uint8_t>(r::bytes - 8));
  prm::set<r::access_reg_group>(group.data(), 4);
  EXPECT_EQ(access(kMcam, kRead, group).status, RegisterStatus::kBadParam);
}

// Drivers are told of the update, and of what they are there for; the rest is the tools' alone.
TEST_F(IcmdEthernet, WhatDriversAreTold) {
  breaks({"register-unknown"});
  const auto r = dev().access_register(kMcam, false, std::vector<std::uint8_t>(prm::mcam_reg::bytes)).must();
  using regs = prm::mcam_reg::mng_access_reg_cap_mask::access_regs;
  const std::uint8_t* data = r.out.data() + prm::access_register_out::bytes;
  EXPECT_EQ(prm::get<regs::mcqi>(data), 1u);
  EXPECT_EQ(prm::get<regs::mcqs>(data), 1u);
  EXPECT_EQ(prm::get<regs::mfrl>(data), 1u);
  EXPECT_EQ(prm::get<regs::mcc>(data), 1u);
  EXPECT_EQ(prm::get<regs::mcda>(data), 1u);
  EXPECT_STATUS(dev().access_register(kMgir, false, std::vector<std::uint8_t>(0x80)), CmdStatus::kBadParam);
  EXPECT_EQ(read_register(kMcc, prm::mcc_reg::bytes).status, RegisterStatus::kOk);
}

TEST_F(Icmd, TheImageThatRuns) {
  const Answer s = read_register(kMcqs, prm::mcqs_reg::bytes);
  ASSERT_EQ(s.status, RegisterStatus::kOk);
  EXPECT_EQ(s.field<prm::mcqs_reg::identifier>(), 1u);        // boot image
  EXPECT_EQ(s.field<prm::mcqs_reg::component_status>(), 2u);  // in use
  EXPECT_EQ(s.field<prm::mcqs_reg::last_index_flag>(), 1u);
  std::vector<std::uint8_t> data(prm::mcqi_reg::bytes + 0x7c);
  prm::set<prm::mcqi_reg::info_type>(data.data(), 1);
  const Answer v = access(kMcqi, kRead, data);
  ASSERT_EQ(v.status, RegisterStatus::kOk);
  const std::uint8_t* version = v.data.data() + prm::mcqi_reg::bytes;
  EXPECT_EQ(prm::get<prm::mcqi_version::version>(version), 20u << 24 | 35u << 16 | 1000u);
}

TEST_F(Icmd, AnUpdateHasOneHolder) {
  enum : std::uint32_t {
    kLock = 1,
    kRelease = 2,
    kVerify = 4,
    kReadComponent = 7,
    kCancel = 8,
    kCheck = 9,
    kForce = 10
  };
  using r = prm::mcc_reg;
  EXPECT_EQ(mcc(kVerify, 0).status, RegisterStatus::kBadParam);  // nobody holds it
  const Answer lock = mcc(kLock, 0);
  ASSERT_EQ(lock.status, RegisterStatus::kOk);
  const auto handle = lock.field<r::update_handle>();
  EXPECT_NE(handle, 0u);
  EXPECT_EQ(lock.field<r::control_state>(), 1u);      // locked
  EXPECT_EQ(lock.field<r::handle_owner_type>(), 5u);  // ICMD
  EXPECT_EQ(mcc(kLock, 0).status, RegisterStatus::kNoResource);
  EXPECT_EQ(mcc(kCheck, handle).status, RegisterStatus::kOk);
  EXPECT_EQ(mcc(kCheck, handle + 1).status, RegisterStatus::kBadParam);
  EXPECT_EQ(mcc(kVerify, handle).field<r::error_code>(), 1u);
  const Answer read = mcc(kReadComponent, handle);
  EXPECT_EQ(read.status, RegisterStatus::kBadParam);
  EXPECT_EQ(read.field<r::error_code>(), 3u);  // not applicable
  EXPECT_EQ(read.field<r::control_state>(), 1u);
  EXPECT_EQ(read_register(kMcda, prm::mcda_reg::bytes + 16).status, RegisterStatus::kMethod);
  machine().advance(3'000'000'000);
  EXPECT_EQ(read_register(kMcc, r::bytes).field<r::time_elapsed_since_last_cmd>(), 3u);
  EXPECT_EQ(mcc(kCancel, handle).status, RegisterStatus::kOk);
  EXPECT_EQ(mcc(kRelease, handle).status, RegisterStatus::kOk);
  EXPECT_EQ(read_register(kMcc, r::bytes).field<r::control_state>(), 0u);
  const auto next = mcc(kLock, 0).field<r::update_handle>();
  EXPECT_NE(next, handle);
  EXPECT_EQ(mcc(kForce, 0).status, RegisterStatus::kOk);
  EXPECT_EQ(mcc(99, 0).status, RegisterStatus::kBadParam);
}

// The same registers as the driver's, in either direction.
TEST_F(Icmd, RegistersOfThePort) {
  std::vector<std::uint8_t> text(64);
  std::memcpy(text.data(), "named by a tool", 15);
  EXPECT_EQ(access(kNodeDesc, kWrite, text).status, RegisterStatus::kOk);
  const auto r = dev().access_register(kNodeDesc, false, std::vector<std::uint8_t>(64)).must();
  EXPECT_EQ(std::memcmp(r.out.data() + prm::access_register_out::bytes, text.data(), 64), 0);

  std::vector<std::uint8_t> ptys(prm::ptys_reg::bytes);
  prm::set<prm::ptys_reg::proto_mask>(ptys.data(), 1);
  EXPECT_EQ(access(kPtys, kRead, ptys).status, RegisterStatus::kBadParam);  // port 0
  prm::set<prm::ptys_reg::local_port>(ptys.data(), 1);
  EXPECT_NE(access(kPtys, kRead, ptys).field<prm::ptys_reg::ib_proto_capability>(), 0u);
}

TEST_F(Icmd, WhatIsRefused) {
  EXPECT_EQ(read_register(0x1234, 16).status, RegisterStatus::kNoRegister);
  EXPECT_EQ(read_register(kMgir, 8).status, RegisterStatus::kTooShort);
  EXPECT_EQ(access(kMgir, kWrite, std::vector<std::uint8_t>(0x80)).status, RegisterStatus::kMethod);
  EXPECT_EQ(access(kMgir, 3, std::vector<std::uint8_t>(0x80)).status, RegisterStatus::kMethod);
  start(0x9002);
  EXPECT_EQ(finish(), IcmdStatus::kBadOpcode);
  EXPECT_TRUE(write(kControlAt, prm::kIcmdAccessRegister << 16 | 3));  // data in host memory
  EXPECT_EQ(finish(), IcmdStatus::kBadParam);
  // TLVs of every wrong kind, and lengths beyond the mailbox.
  const auto good = tlvs(kMgir, kRead, std::vector<std::uint8_t>(0x80));
  const auto with = [&](auto field, std::size_t at, std::uint32_t value) {
    auto bad = good;
    prm::set<decltype(field)>(bad.data() + at, value);
    put(bad);
    start(prm::kIcmdAccessRegister);
    return answer(0).status;
  };
  EXPECT_EQ(with(prm::operation_tlv::type{}, 0, 2), RegisterStatus::kUnknownTlv);
  EXPECT_EQ(with(prm::operation_tlv::len{}, 0, 5), RegisterStatus::kUnknownTlv);
  EXPECT_EQ(with(prm::operation_tlv::tlv_class{}, 0, 2), RegisterStatus::kClass);
  EXPECT_EQ(with(prm::register_tlv::type{}, 16, 2), RegisterStatus::kUnknownTlv);
  EXPECT_EQ(with(prm::register_tlv::len{}, 16, 0), RegisterStatus::kBadParam);
  EXPECT_EQ(with(prm::register_tlv::len{}, 16, 0x7ff), RegisterStatus::kBadParam);
  EXPECT_EQ(with(prm::register_tlv::len{}, 16, (0x340 - 16) / 4 + 1), RegisterStatus::kBadParam);
  EXPECT_EQ(with(prm::register_tlv::len{}, 16, (0x340 - 16) / 4), RegisterStatus::kOk);
}

TEST_F(Icmd, QueryCap) {
  start(prm::kIcmdQueryCap);
  EXPECT_EQ(finish(), IcmdStatus::kOk);
  const auto cap = get(prm::icmd_query_cap::bytes);
  EXPECT_EQ(prm::get<prm::icmd_query_cap::all_registers>(cap.data()), 1u);
  EXPECT_EQ(prm::get<prm::icmd_query_cap::mcam_reg>(cap.data()), 1u);
  EXPECT_EQ(prm::get<prm::icmd_query_cap::pcam_reg>(cap.data()), 1u);
}

// Tools look there on either link; drivers of an InfiniBand port cannot (IbPort.HasNoPcam).
TEST_F(Icmd, PortRegistersAreNamed) {
  using Regs = prm::pcam_reg::port_access_reg_cap_mask::regs_5000_to_507f;
  put(tlvs(0x507f, kRead, std::vector<std::uint8_t>(prm::pcam_reg::bytes)));
  start(prm::kIcmdAccessRegister);
  const Answer a = answer(prm::pcam_reg::bytes);
  EXPECT_EQ(a.status, RegisterStatus::kOk);
  EXPECT_EQ(a.field<Regs::ppcnt>(), 1u);
  EXPECT_EQ(a.field<Regs::pplm>(), 0u);  // of Ethernet
}

TEST_F(Icmd, FirmwareInfo) {
  using Info = prm::icmd_fw_info;
  start(prm::kIcmdGetFwInfo);
  EXPECT_EQ(finish(), IcmdStatus::kOk);
  const auto info = get(Info::bytes);
  EXPECT_EQ(prm::get<Info::major>(info.data()), 20u);
  EXPECT_EQ(prm::get<Info::minor>(info.data()), 35u);
  EXPECT_EQ(prm::get<Info::subminor>(info.data()), 1000u);
  EXPECT_EQ(std::string(info.begin() + Info::psid::bit_off / 8, info.begin() + Info::psid::bit_off / 8 + 14),
            "HCA_0000004123");
}

// It takes the firmware's time, and the mailbox is the firmware's meanwhile.
TEST_F(Icmd, BusyUntilTheFirmwareIsThrough) {
  const std::uint64_t before = fn().counter("fw_commands");
  put(tlvs(kMgir, kRead, std::vector<std::uint8_t>(0x80)));
  start(prm::kIcmdAccessRegister);
  EXPECT_TRUE(busy());
  EXPECT_TRUE(write(kControlAt, 0));
  EXPECT_TRUE(write(kMailboxAt, 0xffffffff));
  EXPECT_TRUE(busy());
  const Answer a = answer(0x80);
  EXPECT_EQ(a.status, RegisterStatus::kOk);
  EXPECT_EQ(a.field<prm::mgir::hw_dev_id>(), 0x20fu);
  EXPECT_EQ(fn().counter("fw_commands"), before + 1);
}

TEST_F(Icmd, AStalledFirmwareAnswersLater) {
  ASSERT_EQ(fn().inject("fault=health,action=stall,duration=2ms"), "");
  machine().advance(100'000);
  put(tlvs(kMgir, kRead, std::vector<std::uint8_t>(0x80)));
  start(prm::kIcmdAccessRegister);
  machine().advance(1'000'000);
  EXPECT_TRUE(busy());
  machine().advance(2'000'000);
  EXPECT_EQ(answer(0x80).status, RegisterStatus::kOk);
}

TEST_F(Icmd, AResetEndsWhatIsUnderWay) {
  put(tlvs(kMgir, kRead, std::vector<std::uint8_t>(0x80)));
  start(prm::kIcmdAccessRegister);
  EXPECT_TRUE(write(0, 7, 0xa));  // a semaphore
  dev().function_reset();
  EXPECT_FALSE(busy());
  EXPECT_EQ(read(kMailboxAt), 0u);
  EXPECT_EQ(read(0, 0xa), 0u);
  machine().advance(1'000'000);
  EXPECT_FALSE(busy());
  EXPECT_EQ(read_register(kMgir, 0x80).status, RegisterStatus::kOk);  // without any driver
  dev().probe();
}

// The driver holds one while it has the function start anew (mlx5 health.c).
TEST_F(Icmd, SemaphoresOutliveASoftwareReset) {
  constexpr std::uint32_t kAddrLow = offsetof(prm::InitSeg, cmdq_addr_l_sz);
  EXPECT_TRUE(write(0x20, 5, 0xa));
  fn().write32(kAddrLow, (fn().read32(kAddrLow) & ~0xfffu) | prm::kNicSwReset << 8);
  machine().advance(1'000'000);
  EXPECT_EQ(fn().counter("eqs"), 0u);
  EXPECT_EQ(read(0x20, 0xa), 5u);
  dev().function_reset();
  EXPECT_EQ(read(0x20, 0xa), 0u);
  dev().probe();
}

// mstfwreset: the driver is asked, and the mailbox waits for what it says.
TEST_F(IcmdEthernet, AResetThatToolsAskForWaitsForTheHost) {
  using Mfrl = prm::mfrl_reg;
  const std::array<std::uint64_t, 4> mask{std::uint64_t{1} << static_cast<unsigned>(prm::EqeType::kGeneral)};
  std::vector<unsigned> told;
  auto eq = std::make_unique<EventQueue>(
      dev(), 6, 0, mask, [&told](const prm::Eqe& e) { told.push_back(e.data.sync_reset.state); });
  eq->arm();
  std::vector<std::uint8_t> data(Mfrl::bytes);
  prm::set<Mfrl::pci_sync_for_fw_update_start>(data.data(), 1);
  prm::set<Mfrl::reset_level>(data.data(), 8);
  put(tlvs(kMfrl, kWrite, data));
  start(prm::kIcmdAccessRegister);
  machine().advance(1'000'000);
  eq->poll();
  EXPECT_EQ(told, std::vector<unsigned>{prm::EqeSyncReset::kRequest});
  EXPECT_TRUE(busy());
  prm::set<Mfrl::pci_sync_for_fw_update_start>(data.data(), 0);
  prm::set<Mfrl::pci_sync_for_fw_update_resp>(data.data(), 2);  // no
  EXPECT_OK(dev().access_register(kMfrl, true, data));
  EXPECT_EQ(answer(Mfrl::bytes).status, RegisterStatus::kNoResource);
  eq.reset();
}

// By which mstfwreset sees that the card has been reset.
TEST_F(Icmd, TheTimeSinceTheFirmwareHasStarted) {
  const auto uptime = [this] { return read_register(kMgir, 0x80).field<prm::mgir::uptime>(); };
  dev().card_reset();
  EXPECT_EQ(uptime(), 0u);
  machine().advance(7'000'000'000);
  EXPECT_EQ(uptime(), 7u);
  dev().function_reset();
  EXPECT_EQ(uptime(), 7u);
  dev().card_reset();
  EXPECT_EQ(uptime(), 0u);
  dev().probe();
}

// Whatever is written anywhere: it answers in time, and works afterwards.
TEST_F(Icmd, NonsenseIsSurvived) {
  std::mt19937 random(7);
  for (unsigned round = 0; round < 300; ++round) {
    auto bytes =
        tlvs(static_cast<std::uint16_t>(random() % 2 != 0 ? 0x9000 + random() % 0x80 : random()),
             static_cast<std::uint8_t>(random() % 4), std::vector<std::uint8_t>(4 * (random() % 64)));
    for (std::size_t i = 20; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::uint8_t>(random() % 4 != 0 ? 0 : random());
    if (random() % 4 == 0) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    put(bytes);
    write(kControlAt, (random() % 8 == 0 ? static_cast<std::uint32_t>(random()) : 0x90010000u) | 1);
    finish();
  }
  dev().function_reset();
  EXPECT_EQ(read_register(kMgir, 0x80).status, RegisterStatus::kOk);
  dev().probe();
}

}  // namespace
}  // namespace hcasim::bare
