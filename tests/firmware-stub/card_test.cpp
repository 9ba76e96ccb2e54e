// SPDX-License-Identifier: BSD-3-Clause
// A profile's generation as drivers see it.
#include "fixture.h"
#include "prm/access_registers.h"
#include "prm/init_seg.h"

namespace hcasim::bare {
namespace {

class ConnectX6 : public FirmwareTest {
  std::size_t hca() const override { return 4; }
};
class ConnectX4 : public FirmwareTest {
  std::size_t hca() const override { return 5; }
};

class ConnectX6Eth : public FirmwareTest {
  std::size_t hca() const override { return 6; }
};

std::uint32_t iseg(Function& fn, std::size_t offset) { return fn.read32(offset); }

TEST_F(ConnectX6, IsWhatItsProfileSays) {
  const hca_pci_identity id = hca_get_pci_identity(fn().handle());
  EXPECT_EQ(id.device_id, 4123u);
  EXPECT_EQ(iseg(fn(), offsetof(prm::InitSeg, fw_rev)), 35u << 16 | 20u);
  using Out = prm::query_adapter_out;
  const auto r = dev().exec(Mailbox(prm::op::QUERY_ADAPTER, prm::query_adapter_in::bytes), Out::bytes).must();
  const char* psid =
      reinterpret_cast<const char*>(r.out.data()) + Out::query_adapter_struct::vsd_contd_psid::bit_off / 8;
  EXPECT_STREQ(psid, "HCA_0000004123");
  const hca_pcie_link link = hca_get_pcie_link(fn().handle());
  EXPECT_EQ(link.generation, 4u);
  EXPECT_EQ(link.lanes, 16u);
}

// 200 Gb/s exist in the extended modes alone; the driver reads them if PCAM says that they are there.
TEST_F(ConnectX6Eth, PortTellsItsSpeedInExtendedModes) {
  breaks({"register-value"});
  using Ptys = prm::ptys_reg;
  using Pcam = prm::pcam_reg;
  std::vector<std::uint8_t> pcam(Pcam::bytes), ptys(Ptys::bytes);
  const auto p = dev().access_register(prm::reg::kPcam, false, pcam).must();
  const std::uint8_t* answer = p.out.data() + prm::access_register_out::register_data::bit_off / 8;
  EXPECT_EQ(prm::get<Pcam::feature_cap_mask::enhanced_features::ptys_extended_ethernet>(answer), 1u);
  prm::set<Ptys::local_port>(ptys.data(), 1);
  prm::set<Ptys::proto_mask>(ptys.data(), 4);
  const auto r = dev().access_register(prm::reg::kPtys, false, ptys).must();
  answer = r.out.data() + prm::access_register_out::register_data::bit_off / 8;
  EXPECT_EQ(prm::get<Ptys::ext_eth_proto_capability>(answer), 0x17f2u);  // 200 Gb/s and what is slower
  EXPECT_EQ(prm::get<Ptys::ext_eth_proto_oper>(answer), 1u << 12);
  EXPECT_EQ(prm::get<Ptys::eth_proto_capability>(answer), 0x2024a001u);  // 100 Gb/s at most
  prm::set<Ptys::ext_eth_proto_admin>(ptys.data(), 1u << 12);
  EXPECT_OK(dev().access_register(prm::reg::kPtys, true, ptys));
  prm::set<Ptys::ext_eth_proto_admin>(ptys.data(), 1u << 16);
  EXPECT_STATUS(dev().access_register(prm::reg::kPtys, true, ptys), CmdStatus::kBadParam);
}

TEST_F(ConnectX4, RefusesWhatItDoesNotOffer) {
  breaks({"cap-not-offered", "cap-set"});
  EXPECT_EQ(iseg(fn(), offsetof(prm::InitSeg, fw_rev)), 28u << 16 | 12u);
  EXPECT_FALSE(dev().query_caps(15, true).ok());
  Mailbox memic(prm::op::ALLOC_MEMIC, prm::alloc_memic_in::bytes);
  memic.set<prm::alloc_memic_in::memic_size>(64);
  EXPECT_STATUS(dev().exec(memic, prm::alloc_memic_out::bytes), CmdStatus::kBadOp);
  // A flow table whose entries are software's, and one that rewrites headers.
  using In = prm::create_flow_table_in;
  for (const bool sw : {true, false}) {
    Mailbox in(prm::op::CREATE_FLOW_TABLE, In::bytes);
    in.set<In::flow_table_context::level>(1).set<In::flow_table_context::log_size>(1);
    if (sw) {
      in.set<In::flow_table_context::sw_owner>(1);
    } else {
      in.set<In::flow_table_context::reformat_en>(1);
    }
    EXPECT_FALSE(dev().exec(in, prm::create_flow_table_out::bytes).ok()) << sw;
  }
}

}  // namespace
}  // namespace hcasim::bare
