// SPDX-License-Identifier: BSD-3-Clause
// Registers of the Ethernet port's quality of service.
#include "fixture.h"
#include "prm/access_registers.h"

namespace hcasim::bare {
namespace {

using namespace prm::reg;

using Data = std::vector<std::uint8_t>;

class EthQos : public FirmwareTest {
 protected:
  std::size_t hca() const override { return 2; }

  template <class Reg>
  static Data request() {
    Data data(Reg::bytes);
    data[1] = 1;  // local_port, port_number
    return data;
  }
  Data read(std::uint16_t id, const Data& request) {
    const auto r = dev().access_register(id, false, request).must();
    return {r.out.begin() + prm::access_register_out::bytes, r.out.end()};
  }
  CommandResult write(std::uint16_t id, const Data& data) { return dev().access_register(id, true, data); }
  template <class Array>
  static std::uint8_t* element(Data& data, unsigned i) {
    return data.data() + Array::bit_off / 8 + std::size_t{i} * Array::elem_bytes;
  }
};

TEST_F(EthQos, CapabilitiesSayWhichRegistersThereAre) {
  breaks({"register-value"});
  EXPECT_EQ(prm::get<prm::cmd_hca_cap::ets>(caps(0, true).data()), 1u);
  EXPECT_EQ(prm::get<prm::cmd_hca_cap::max_tc>(caps(0, true).data()), 8u);
  const Data qcam = read(kQcam, Data(prm::qcam_reg::bytes));
  using Regs = prm::qcam_reg::qos_access_reg_cap_mask::reg_cap;
  EXPECT_EQ(prm::get<Regs::qpts>(qcam.data()), 1u);
  EXPECT_EQ(prm::get<Regs::qpdpm>(qcam.data()), 1u);
  EXPECT_EQ(prm::get<Regs::qdpm>(qcam.data()), 0u);
  const Data pcam = read(kPcam, Data(prm::pcam_reg::bytes));
  using Port = prm::pcam_reg::port_access_reg_cap_mask::regs_5000_to_507f;
  EXPECT_EQ(prm::get<Port::pptb>(pcam.data()), 1u);
  EXPECT_EQ(prm::get<Port::pbmc>(pcam.data()), 1u);
  Data other(prm::qcam_reg::bytes);
  prm::set<prm::qcam_reg::feature_group>(other.data(), 1);
  EXPECT_STATUS(dev().access_register(kQcam, false, other), CmdStatus::kBadParam);
}

TEST_F(EthQos, TrustIsKept) {
  breaks({"register-value"});
  using R = prm::qpts_reg;
  EXPECT_EQ(prm::get<R::trust_state>(read(kQpts, request<R>()).data()), 1u);
  Data data = request<R>();
  for (const unsigned trust : {2u, 1u}) {
    prm::set<R::trust_state>(data.data(), trust);
    EXPECT_OK(write(kQpts, data));
    EXPECT_EQ(prm::get<R::trust_state>(read(kQpts, request<R>()).data()), trust);
  }
  prm::set<R::trust_state>(data.data(), 3);
  EXPECT_STATUS(write(kQpts, data), CmdStatus::kBadParam);
}

TEST_F(EthQos, DscpsAreWrittenOneByOne) {
  breaks({"register-value"});
  using R = prm::qpdpm_reg;
  Data data = request<R>();
  prm::store16(element<R::dscp>(data, 63), 0x8007);
  prm::store16(element<R::dscp>(data, 10), 0x8003);
  prm::store16(element<R::dscp>(data, 11), 0x0004);  // not to be written
  EXPECT_OK(write(kQpdpm, data));
  Data got = read(kQpdpm, request<R>());
  EXPECT_EQ(prm::load16(element<R::dscp>(got, 63)), 7u);
  EXPECT_EQ(prm::load16(element<R::dscp>(got, 10)), 3u);
  EXPECT_EQ(prm::load16(element<R::dscp>(got, 11)), 0u);
  prm::store16(element<R::dscp>(data, 10), 0x8008);
  prm::store16(element<R::dscp>(data, 63), 0x8001);
  EXPECT_STATUS(write(kQpdpm, data), CmdStatus::kBadParam);
  got = read(kQpdpm, request<R>());
  EXPECT_EQ(prm::load16(element<R::dscp>(got, 63)), 7u);  // all or nothing
}

TEST_F(EthQos, ClassesOfPrioritiesAreKept) {
  breaks({"cmd-function"});
  using R = prm::qtct_reg;
  const auto of = [this](unsigned priority) {
    Data data = request<R>();
    prm::set<R::prio>(data.data(), priority);
    return prm::get<R::tclass>(read(kQtct, data).data());
  };
  for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(of(i), i);
  Data data(R::bytes);  // Linux names no port
  prm::set<R::prio>(data.data(), 6);
  prm::set<R::tclass>(data.data(), 2);
  EXPECT_OK(write(kQtct, data));
  EXPECT_EQ(of(6), 2u);
  EXPECT_EQ(of(2), 2u);
  prm::set<R::port_number>(data.data(), 2);
  EXPECT_STATUS(write(kQtct, data), CmdStatus::kBadParam);
}

TEST_F(EthQos, ClassesKeepWhatTheirBitsSay) {
  breaks({"register-value"});
  using R = prm::qetc_reg;
  using C = prm::ets_tcn_config_reg;
  Data data = request<R>();
  std::uint8_t* three = element<R::tc_configuration>(data, 3);
  prm::set<C::b>(three, 1);
  prm::set<C::bw_allocation>(three, 30);
  prm::set<C::group>(three, 1);  // without its bit
  prm::set<C::r>(three, 1);
  prm::set<C::max_bw_units>(three, 4);
  prm::set<C::max_bw_value>(three, 25);
  EXPECT_OK(write(kQetcr, data));
  Data got = read(kQetcr, request<R>());
  const std::uint8_t* p = element<R::tc_configuration>(got, 3);
  EXPECT_EQ(prm::get<C::bw_allocation>(p), 30u);
  EXPECT_EQ(prm::get<C::group>(p), 7u);
  EXPECT_EQ(prm::get<C::max_bw_units>(p), 4u);
  EXPECT_EQ(prm::get<C::max_bw_value>(p), 25u);
  EXPECT_EQ(prm::get<C::bw_allocation>(element<R::tc_configuration>(got, 2)), 100u);
  prm::set<C::max_bw_units>(three, 2);
  EXPECT_STATUS(write(kQetcr, data), CmdStatus::kBadParam);
  prm::set<C::max_bw_units>(three, 4);
  prm::set<C::bw_allocation>(three, 101);
  EXPECT_STATUS(write(kQetcr, data), CmdStatus::kBadParam);
  prm::set<C::bw_allocation>(three, 1);
  prm::set<R::global_configuration::r>(data.data(), 1);
  prm::set<R::global_configuration::max_bw_units>(data.data(), 4);
  EXPECT_STATUS(write(kQetcr, data), CmdStatus::kBadParam);
}

TEST_F(EthQos, BuffersAreKeptWithinWhatThereIs) {
  breaks({"register-value"});
  using R = prm::pbmc_reg;
  using X = prm::bufferx_reg;
  Data data = read(kPbmc, request<R>());
  const unsigned all = prm::get<R::port_buffer_size>(data.data());
  std::uint8_t* one = element<R::buffer>(data, 1);
  EXPECT_EQ(prm::get<X::size>(one), 0u);
  prm::set<X::size>(one, 500);
  prm::set<X::lossy>(one, 0);
  prm::set<X::xoff_threshold>(one, 200);
  prm::set<X::xon_threshold>(one, 100);
  EXPECT_OK(write(kPbmc, data));
  Data got = read(kPbmc, request<R>());
  EXPECT_EQ(prm::get<X::size>(element<R::buffer>(got, 1)), 500u);
  EXPECT_EQ(prm::get<X::xoff_threshold>(element<R::buffer>(got, 1)), 200u);
  prm::set<X::xoff_threshold>(one, 600);  // above its size
  EXPECT_STATUS(write(kPbmc, data), CmdStatus::kBadParam);
  prm::set<X::xoff_threshold>(one, 200);
  prm::set<X::size>(one, all);
  EXPECT_STATUS(write(kPbmc, data), CmdStatus::kBadParam);

  // As drivers before Linux 5.10 know it: less of what is reserved behind the buffers.
  prm::set<X::size>(one, 400);
  data.resize(R::bytes - 8);
  EXPECT_OK(write(kPbmc, data));
  got = read(kPbmc, request<R>());
  EXPECT_EQ(prm::get<X::size>(element<R::buffer>(got, 1)), 400u);
  EXPECT_OK(dev().access_register(kPbmc, false, data));

  using P = prm::pptb_reg;
  Data map = request<P>();
  prm::set<P::pm>(map.data(), 0x0c);
  prm::set<P::prio_x_buff>(map.data(), 0x55555155);
  EXPECT_OK(write(kPptb, map));
  EXPECT_EQ(prm::get<P::prio_x_buff>(read(kPptb, request<P>()).data()), 0x00005100u);
  prm::set<P::prio_x_buff>(map.data(), 0x00000900);
  EXPECT_STATUS(write(kPptb, map), CmdStatus::kBadParam);
}

}  // namespace
}  // namespace hcasim::bare
