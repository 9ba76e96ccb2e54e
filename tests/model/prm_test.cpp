// SPDX-License-Identifier: BSD-3-Clause
#include "prm/prm.h"

#include <gtest/gtest.h>

#include <cstddef>

#include <vector>

#include "prm/eqe.h"
#include "prm/init_seg.h"

namespace hcasim::prm {
namespace {

// Offsets known from the kernel's use of the command interface, not from the generator.
static_assert(create_cq_in::cq_context::log_cq_size::bit_off == (0x10 + 0xc) * 8 + 3);
static_assert(create_cq_in::cq_context::log_cq_size::bits == 5);
static_assert(create_cq_in::pas::bit_off == 0x110 * 8 && create_cq_in::pas::elem_bits == 64);
static_assert(cqc::bytes == 0x40 && qpc::bytes == 0xe8 && mkc::bytes == 0x40 && eqc::bytes == 0x40);
static_assert(qpc::state::bit_off == 0 && qpc::state::bits == 4);
static_assert(qpc::primary_address_path::bit_off == 0x18 * 8);
static_assert(create_qp_in::qpc::bit_off == 0x18 * 8);
static_assert(mkc::len::bits == 64 && mkc::start_addr::bits == 64);
static_assert(hca_vport_context::bytes == 0x200);
static_assert(query_hca_cap_out::capability::bit_off == 0x10 * 8);
static_assert(op::CREATE_CQ == 0x400 && op::MANAGE_PAGES == 0x108 && op::ACCESS_REG == 0x805);
static_assert(fits<create_cq_in::cq_context>(0x50) && !fits<create_cq_in::cq_context>(0x4f));

// Structures that are written by hand (after the kernel's device.h) lie where mlx5_ifc.h has them, as far as
// it knows them.
template <class F>
constexpr bool at(std::size_t offset) {
  return F::bit_off / 8 == offset;
}
using Health = health_buffer;
static_assert(sizeof(HealthBuffer) == Health::bytes);
static_assert(at<Health::assert_existptr>(offsetof(HealthBuffer, assert_exit_ptr)));
static_assert(at<Health::assert_callra>(offsetof(HealthBuffer, assert_callra)));
static_assert(at<Health::time>(offsetof(HealthBuffer, time)));
static_assert(at<Health::fw_version>(offsetof(HealthBuffer, fw_ver)));
static_assert(at<Health::hw_id>(offsetof(HealthBuffer, hw_id)));
static_assert(at<Health::severity>(offsetof(HealthBuffer, rfr_severity)) &&
              Health::severity::bit_off % 8 == 5);
static_assert(at<Health::irisc_index>(offsetof(HealthBuffer, irisc_index)));
static_assert(at<Health::synd>(offsetof(HealthBuffer, synd)));
static_assert(at<Health::ext_synd>(offsetof(HealthBuffer, ext_synd)));

using Seg = initial_seg;
static_assert(at<Seg::fw_rev_minor>(offsetof(InitSeg, fw_rev)));
static_assert(at<Seg::fw_rev_major>(offsetof(InitSeg, fw_rev) + 2));
static_assert(at<Seg::cmd_interface_rev>(offsetof(InitSeg, cmdif_rev_fw_sub)));
static_assert(at<Seg::fw_rev_subminor>(offsetof(InitSeg, cmdif_rev_fw_sub) + 2));
static_assert(at<Seg::cmdq_phy_addr_63_32>(offsetof(InitSeg, cmdq_addr_h)));
static_assert(at<Seg::cmdq_phy_addr_31_12>(offsetof(InitSeg, cmdq_addr_l_sz)));
static_assert(Seg::nic_interface::kShift == 8 && Seg::log_cmdq_size::kShift == 4 &&
              Seg::log_cmdq_stride::kShift == 0);
static_assert(at<Seg::command_doorbell_vector>(offsetof(InitSeg, cmd_dbell)));
static_assert(at<Seg::initializing>(offsetof(InitSeg, initializing)));
static_assert(InitSeg::kInitializing == Seg::initializing::kMask << Seg::initializing::kShift);
static_assert(InitSeg::kEmbeddedCpu == Seg::embedded_cpu::kMask << Seg::embedded_cpu::kShift);
static_assert(at<Seg::health_buffer>(offsetof(InitSeg, health)));
static_assert(at<Seg::health_syndrome>(offsetof(InitSeg, health_counter)));
static_assert(at<Seg::health_counter>(offsetof(InitSeg, health_counter) + 1));

using Entry = eqe;
using Data = Entry::event_data;
constexpr std::size_t kData = offsetof(Eqe, data);
static_assert(sizeof(Eqe) == Entry::bytes && sizeof(Eqe::data) == Data::bytes && at<Data>(kData));
static_assert(at<Entry::event_type>(offsetof(Eqe, type)) &&
              at<Entry::event_sub_type>(offsetof(Eqe, sub_type)));
static_assert(at<Entry::signature>(offsetof(Eqe, signature)) && at<Entry::owner>(offsetof(Eqe, owner)));
static_assert(at<Data::comp_event::cq_number>(kData + offsetof(EqeComp, cqn) + 1));
static_assert(at<Data::qp_events::type>(kData + offsetof(EqeQpSrq, type)));
static_assert(at<Data::qp_events::qpn_rqn_sqn>(kData + offsetof(EqeQpSrq, number) + 1));
static_assert(at<Data::dct_events::dct_number>(kData + offsetof(EqeQpSrq, number) + 1));
static_assert(at<Data::cq_error::cqn>(kData + offsetof(EqeCqErr, cqn) + 1));
static_assert(at<Data::cq_error::syndrome>(kData + offsetof(EqeCqErr, syndrome)));
static_assert(at<Data::port_state_change_event::port_num>(kData + offsetof(EqePort, port)));
static_assert(at<Data::cmd_inter_comp_event::command_completion_vector>(kData + offsetof(EqeCmd, vector)));
static_assert(at<pages_req_event::function_id>(offsetof(EqePageReq, func_id)));
static_assert(at<pages_req_event::num_pages>(offsetof(EqePageReq, num_pages)));

using OfWqe = wqe_associated_page_fault_event;
static_assert(sizeof(EqePageFaultWqe) == OfWqe::bytes);
static_assert(at<OfWqe::bytes_committed>(offsetof(EqePageFaultWqe, bytes_committed)));
static_assert(at<OfWqe::wqe_index>(offsetof(EqePageFaultWqe, wqe_index)));
static_assert(at<OfWqe::len>(offsetof(EqePageFaultWqe, packet_length)));
static_assert(at<OfWqe::rdma>(offsetof(EqePageFaultWqe, pftype_wq)));
static_assert(at<OfWqe::qpn>(offsetof(EqePageFaultWqe, pftype_wq) + 1));
using OfRdma = rdma_page_fault_event;
static_assert(sizeof(EqePageFaultRdma) == OfRdma::bytes);
static_assert(at<OfRdma::bytes_committed>(offsetof(EqePageFaultRdma, bytes_committed)));
static_assert(at<OfRdma::r_key>(offsetof(EqePageFaultRdma, rkey)));
static_assert(at<OfRdma::packet_len>(offsetof(EqePageFaultRdma, packet_length)));
static_assert(at<OfRdma::rdma_op_len>(offsetof(EqePageFaultRdma, rdma_op_len)));
static_assert(at<OfRdma::rdma_va>(offsetof(EqePageFaultRdma, rdma_va)));
static_assert(at<OfRdma::rdma>(offsetof(EqePageFaultRdma, pftype_token)));
static_assert(at<OfRdma::qp_number>(offsetof(EqePageFaultRdma, pftype_token) + 1));

TEST(Prm, FieldInDword) {
  uint8_t b[0x110] = {};
  set<create_cq_in::cq_context::log_cq_size>(b, 0x1f);
  EXPECT_EQ(b[0x1c], 0x1f);
  set<create_cq_in::cq_context::uar_page>(b, 0xabcdef);
  EXPECT_EQ(b[0x1c], 0x1f);
  EXPECT_EQ(b[0x1d], 0xab);
  EXPECT_EQ(b[0x1f], 0xef);
  set<create_cq_in::cq_context::log_cq_size>(b, 0x2a);  // only the low 5 bits are stored
  EXPECT_EQ(b[0x1c], 0x0a);
  EXPECT_EQ((get<create_cq_in::cq_context::log_cq_size>(b)), 0x0au);
  EXPECT_EQ((get<create_cq_in::cq_context::uar_page>(b)), 0xabcdefu);
}

TEST(Prm, WideFields) {
  uint8_t b[0x100] = {};
  set<create_cq_in::cq_context::dbr_addr>(b, 0x1122334455667788ull);
  EXPECT_EQ(b[0x10 + 0x38], 0x11);
  EXPECT_EQ(b[0x10 + 0x3f], 0x88);
  EXPECT_EQ((get<create_cq_in::cq_context::dbr_addr>(b)), 0x1122334455667788ull);
  using Odd = Field<13, 39>;  // straddles dwords
  set<Odd>(b, 0x55aa55aa55ull);
  EXPECT_EQ(get<Odd>(b), 0x55aa55aa55ull & ((1ull << 39) - 1));
  set<Odd>(b, 0);
  for (int i = 0; i < 8; i++) EXPECT_EQ(b[i], 0);
}

TEST(Prm, EveryWidthKeepsNeighbours) {
  for (unsigned off = 0; off < 40; off++)
    for (unsigned width = 1; width <= 64; width++) {
      uint8_t b[16], ones[16];
      std::memset(b, 0xff, sizeof b);
      set_bits(b, off, width, 0);
      EXPECT_EQ(get_bits(b, off, width), 0u);
      if (off != 0) {
        EXPECT_EQ(get_bits(b, off - 1, 1), 1u);
      }
      EXPECT_EQ(get_bits(b, off + width, 1), 1u);
      set_bits(b, off, width, ~0ull);
      std::memset(ones, 0xff, sizeof ones);
      EXPECT_EQ(std::memcmp(b, ones, sizeof b), 0);
    }
}

TEST(Prm, MkcAccessMode) {
  uint8_t b[0x40] = {};
  b[2] = 0x01;  // dword 0 bits 9:8
  EXPECT_EQ(get<mkc::access_mode_1_0>(b), 1u);
  b[0] = 0x40;
  EXPECT_EQ(get<mkc::free>(b), 1u);
}

TEST(Prm, QpcFields) {
  uint8_t b[0x118] = {};
  uint8_t* q = ptr<create_qp_in::qpc>(b);
  EXPECT_EQ(q - b, 0x18);
  q[0] = 0x30;
  EXPECT_EQ(get<qpc::state>(q), 3u);
  EXPECT_EQ((get<create_qp_in::qpc::state>(b)), 3u);
  q[8] = 0xa0;  // dword 8 bits 31:29
  EXPECT_EQ(get<qpc::mtu>(q), 5u);
  q[0x78 + 3] = 0x42;
  EXPECT_EQ(get<qpc::next_send_psn>(q), 0x42u);
}

TEST(Prm, ArraysAndBounds) {
  std::vector<uint8_t> b(0x110 + 5 * 8 + 7);
  set<create_cq_in::pas>(b.data(), 4, 0xdeadbeef000ull);
  EXPECT_EQ(get<create_cq_in::pas>(b.data(), 4), 0xdeadbeef000ull);
  EXPECT_TRUE((fits<create_cq_in::pas>(b.size(), 4)));
  EXPECT_FALSE((fits<create_cq_in::pas>(b.size(), 5)));
  EXPECT_EQ(fit_count<create_cq_in::pas>(b.size()), 5u);
  EXPECT_EQ(fit_count<create_cq_in::pas>(0x100), 0u);
  EXPECT_FALSE((fits<create_cq_in::pas>(0x100, 0)));
}

TEST(Prm, Names) {
  const StructInfo* s = find_struct("create_cq_in");
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(find_struct("no_such"), nullptr);
  EXPECT_EQ(find_struct(""), nullptr);
  uint8_t b[0x118] = {};
  set<create_cq_in::opcode>(b, op::CREATE_CQ);
  set<create_cq_in::cq_context::log_cq_size>(b, 7);
  set<create_cq_in::pas>(b, 0, 0x1000);
  EXPECT_EQ(dump(*s, b, sizeof b), "opcode=0x400 cq_context.log_cq_size=0x7 pas[0]=0x1000");
  EXPECT_EQ(dump(*s, b, 4), "opcode=0x400");
  EXPECT_EQ(dump(*s, b, 1), "");
  EXPECT_EQ(opcode_name(0x400), "CREATE_CQ");
  EXPECT_EQ(opcode_name(0xfff0), "0xfff0");
  EXPECT_EQ(input_struct(0x400), s);
  EXPECT_STREQ(output_struct(0x400)->name, "create_cq_out");
}

TEST(Prm, UnionsPrintOneMember) {
  uint8_t b[0x1010] = {};
  set<query_hca_cap_out::capability::cmd_hca_cap::log_max_qp>(b, 18);
  EXPECT_EQ(dump(*find_struct("query_hca_cap_out"), b, sizeof b, "cmd_hca_cap"),
            "capability.cmd_hca_cap.log_max_qp=0x12");
}

TEST(Prm, DumpOfAnythingIsBounded) {
  std::vector<uint8_t> b(8192, 0xff);
  for (unsigned i = 0; i < tables::kStructCount; i++)
    for (size_t len : {0, 1, 3, 16, 500, 8192})
      EXPECT_LE(dump(tables::kStructs[i], b.data(), len).size(), 80000u);
}

}  // namespace
}  // namespace hcasim::prm
