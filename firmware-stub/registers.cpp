// SPDX-License-Identifier: BSD-3-Clause
// ACCESS_REG: the table of access registers. Data are read and written in place: the answer's data start as a
// copy of the request's (local_port and other selectors), the handler fills in the rest.
#include "firmware-stub/registers.h"

#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/ib_link.h"
#include "prm/access_registers.h"
#include "prm/link_diagnostics.h"
#include "prm/management.h"

namespace hcasim::fw {

namespace {

enum : std::uint16_t { kWrite = 0, kRead = 1 };  // op_mod

using namespace prm::reg;

constexpr std::size_t kNodeDescBytes = 64;
constexpr std::uint32_t kAdminUp = 1, kAdminDown = 2;  // paos_reg
constexpr std::uint32_t kGroupIb = 0x20,
                        kGroupAll = 63;  // ppcnt_reg.grp; the latter is but cleared (mstlink)

Syndrome read_pmtu(Access& a) {
  using r = prm::pmtu_reg;
  prm::set<r::max_mtu>(a.data, a.fw.device().profile().port.max_mtu);
  prm::set<r::admin_mtu>(a.data, a.fw.port().mtu());
  prm::set<r::oper_mtu>(a.data, a.fw.port().mtu());
  return Syndrome::kOk;
}
Syndrome write_pmtu(Access& a) {
  const std::uint32_t mtu = prm::get<prm::pmtu_reg::admin_mtu>(a.data);
  const bool power_of_two = mtu != 0 && (mtu & (mtu - 1)) == 0;
  if (!power_of_two || mtu < 256 || mtu > a.fw.device().profile().port.max_mtu)
    return Syndrome::kRegisterValue;
  a.fw.port().set_mtu(static_cast<std::uint16_t>(mtu));
  return read_pmtu(a);
}

Syndrome read_ptys(Access& a) {
  using r = prm::ptys_reg;
  // The Ethernet half stays zero: this port has none.
  if (prm::get<r::proto_mask>(a.data) != kProtoIb) return Syndrome::kOk;
  const IbLink link(a.fw.device().profile().port, *a.fw.options().generation);
  const bool up = a.fw.device().port().state() != PortState::kDown;
  prm::set<r::ib_link_width_capability>(a.data, link.widths);
  prm::set<r::ib_proto_capability>(a.data, link.speeds);
  const PortAgent::LinkSettings& settings = a.fw.port().link_settings();
  prm::set<r::ib_link_width_admin>(a.data, settings.ptys_width != 0 ? settings.ptys_width : link.widths);
  prm::set<r::ib_proto_admin>(a.data, settings.ptys_speed != 0 ? settings.ptys_speed : link.speeds);
  prm::set<r::ib_link_width_oper>(a.data, up ? link.width : 0);
  prm::set<r::ib_proto_oper>(a.data, up ? link.speed : 0);
  return Syndrome::kOk;
}

// Shown as set; the link keeps the profile's speed. 0: all that is supported.
Syndrome write_ptys(Access& a) {
  using r = prm::ptys_reg;
  const IbLink link(a.fw.device().profile().port, *a.fw.options().generation);
  const std::uint32_t width = prm::get<r::ib_link_width_admin>(a.data),
                      speed = prm::get<r::ib_proto_admin>(a.data);
  if (prm::get<r::proto_mask>(a.data) != kProtoIb || (width & ~link.widths) != 0 ||
      (speed & ~link.speeds) != 0)
    return Syndrome::kRegisterValue;
  PortAgent::LinkSettings& settings = a.fw.port().link_settings();
  settings.ptys_width = static_cast<std::uint16_t>(width);
  settings.ptys_speed = static_cast<std::uint16_t>(speed);
  return read_ptys(a);
}

Syndrome read_paos(Access& a) {
  using r = prm::paos_reg;
  prm::set<r::admin_status>(a.data, a.fw.port().admin_up() ? kAdminUp : kAdminDown);
  prm::set<r::oper_status>(a.data, a.fw.device().port().state() != PortState::kDown ? kAdminUp : kAdminDown);
  return Syndrome::kOk;
}
Syndrome write_paos(Access& a) {
  if (prm::get<prm::paos_reg::ase>(a.data) == 0) return read_paos(a);  // admin_status is not to be taken over
  const std::uint32_t admin = prm::get<prm::paos_reg::admin_status>(a.data);
  if (admin != kAdminUp && admin != kAdminDown) return Syndrome::kRegisterValue;
  a.fw.port().set_admin(admin == kAdminUp);
  return read_paos(a);
}

// 8 and 16 bit counters stop at their highest value (IBTA 16.1.3.5).
template <class F>
void saturate(std::uint8_t* p, std::uint64_t v) {
  const std::uint64_t max = (std::uint64_t{1} << F::bits) - 1;
  prm::set<F>(p, static_cast<typename F::type>(std::min(v, max)));
}

void clear_ib_group(Firmware& fw) {
  PortCounters& c = fw.device().port().counters_to_clear();
  c.symbol_errors = c.rx_errors = c.tx_discards = c.tx_errors = 0;
  fw.port().clear_link_downed();
  fw.device().port().clear_xmit_wait();
}

// Groups have counters in common: these go with any of them.
Syndrome read_ppcnt(Access& a) {
  using set = prm::ppcnt_reg::counter_set;
  const PortCounters& c = a.fw.device().port().counters();
  const bool ib_group = prm::get<prm::ppcnt_reg::grp>(a.data) == kGroupIb;
  if (ib_group) {
    using ib = set::ib_port_cntrs_grp_data_layout;
    saturate<ib::symbol_error_counter>(a.data, c.symbol_errors);
    saturate<ib::link_downed_counter>(a.data, a.fw.port().link_downed());
    saturate<ib::port_rcv_errors>(a.data, c.rx_errors);
    saturate<ib::port_xmit_discards>(a.data, c.tx_discards + c.tx_errors);
    saturate<ib::port_xmit_wait>(a.data, a.fw.device().port().xmit_wait());
  } else {
    const Syndrome s = read_ppcnt_group(a);
    if (s != Syndrome::kOk) return s;
  }
  if (a.fw.options().vf) {  // what others make of the port they are not told
    constexpr std::size_t at = set::bit_off / 8;
    std::memset(a.data + at, 0, prm::ppcnt_reg::bytes - at);
  } else if (prm::get<prm::ppcnt_reg::clr>(a.data) != 0) {
    ib_group ? clear_ib_group(a.fw)
             : clear_ppcnt_group(a, prm::get<prm::ppcnt_reg::grp>(a.data),
                                 prm::get<prm::ppcnt_reg::prio_tc>(a.data));
  }
  return Syndrome::kOk;
}
// There is nothing to write; but that counters are cleared may be asked for by a write too.
Syndrome write_ppcnt(Access& a) {
  if (prm::get<prm::ppcnt_reg::grp>(a.data) != kGroupAll) return read_ppcnt(a);
  if (prm::get<prm::ppcnt_reg::clr>(a.data) == 0) return Syndrome::kRegisterValue;
  clear_ib_group(a.fw);
  clear_all_ppcnt_groups(a);
  return Syndrome::kOk;
}

Syndrome read_pvlc(Access& a) {
  using r = prm::pvlc_reg;
  const std::uint8_t operational = a.fw.device().port().lanes.operational;
  prm::set<r::vl_hw_cap>(a.data, VirtualLanes::kLanes);
  prm::set<r::vl_admin>(a.data, VirtualLanes::kLanes);
  prm::set<r::vl_operational>(a.data, operational);
  return Syndrome::kOk;
}

Syndrome read_node_desc(Access& a) {
  std::memset(a.data, 0, kNodeDescBytes);
  const std::string& text = a.fw.node_description();
  std::memcpy(a.data, text.data(), std::min(text.size(), kNodeDescBytes));
  return Syndrome::kOk;
}
Syndrome write_node_desc(Access& a) {
  const char* text = reinterpret_cast<const char*>(a.data);
  a.fw.set_node_description({text, strnlen(text, kNodeDescBytes)});
  return Syndrome::kOk;
}

Syndrome write_host_endianness(Access& a) {
  // Byte 0: 0 little-endian. The model's atomics are made for that.
  return a.data[0] == 0 ? Syndrome::kOk : Syndrome::kHostEndianness;
}
Syndrome read_host_endianness(Access& a) {
  a.data[0] = 0;
  return Syndrome::kOk;
}

// The time limits that Linux has by itself (mlx5 lib/tout.c): it reads all of them if the firmware has any to
// tell.
Syndrome read_dtor(Access& a) {
  using r = prm::dtor_reg;
  enum : std::uint32_t { kMs = 0 };  // to_multiplier
  const auto put = [&a](auto unit, auto value, std::uint32_t ms) {
    prm::set<decltype(unit)>(a.data, kMs);
    prm::set<decltype(value)>(a.data, ms);
  };
#define HCASIM_LIMIT(name, ms) put(r::name::to_multiplier{}, r::name::to_value{}, ms)
  std::memset(a.data, 0, r::bytes);
  HCASIM_LIMIT(pcie_toggle_to, 2000);
  HCASIM_LIMIT(health_poll_to, 2000);
  HCASIM_LIMIT(full_crdump_to, 60000);
  HCASIM_LIMIT(fw_reset_to, 60000);
  HCASIM_LIMIT(flush_on_err_to, 2000);
  HCASIM_LIMIT(pci_sync_update_to, 5000);
  HCASIM_LIMIT(tear_down_to, 3000);
  HCASIM_LIMIT(fsm_reactivate_to, 5000);
  HCASIM_LIMIT(reclaim_pages_to, 5000);
  HCASIM_LIMIT(reclaim_vfs_pages_to, 120000);
  HCASIM_LIMIT(reset_unload_to, 300000);
#undef HCASIM_LIMIT
  return Syndrome::kOk;
}

Syndrome read_pcam(Access& a);  // tell of this table
Syndrome read_mcam(Access& a);
Syndrome read_qcam(Access& a);

// Up to the modes of more lanes (drivers before Linux 5.6), and to the end of the buffers.
constexpr std::size_t kPplmOld = prm::pplm_reg::fec_override_cap_400g_8x::bit_off / 8,
                      kPbmcOld =
                          prm::pbmc_reg::buffer::bit_off / 8 + PortBuffers::kCount * prm::bufferx_reg::bytes;

constexpr Register kRegisters[] = {
    {kQpts, prm::qpts_reg::bytes, true, kOnEthernet, read_qpts, write_qpts},
    {kQetcr, prm::qetc_reg::bytes, false, kOnEthernet, read_qetcr, write_qetcr},
    {kQtct, prm::qtct_reg::bytes, false, kOnEthernet, read_qtct, write_qtct},
    {kQpdpm, prm::qpdpm_reg::bytes, true, kOnEthernet, read_qpdpm, write_qpdpm},
    {kQcam, prm::qcam_reg::bytes, false, kOnEthernet, read_qcam, nullptr},
    {kPmlp, prm::pmlp_reg::bytes, true, kOnBoth, read_pmlp, nullptr},
    {kPmtu, prm::pmtu_reg::bytes, true, kOnIb, read_pmtu, write_pmtu},
    {kPmtu, prm::pmtu_reg::bytes, true, kOnEthernet, read_pmtu_eth, write_pmtu_eth},
    {kPtys, prm::ptys_reg::bytes, true, kOnIb, read_ptys, write_ptys},
    {kPtys, prm::ptys_reg::bytes, true, kOnEthernet, read_ptys_eth, write_ptys_eth},
    {kPaos, prm::paos_reg::bytes, true, kOnBoth, read_paos, write_paos},
    {kPfcc, prm::pfcc_reg::bytes, true, kOnEthernet, read_pfcc, write_pfcc},
    {kPpcnt, prm::ppcnt_reg::bytes, true, kOnBoth, read_ppcnt, write_ppcnt},
    {kPptb, prm::pptb_reg::bytes, true, kOnEthernet, read_pptb, write_pptb},
    {kPbmc, prm::pbmc_reg::bytes, true, kOnEthernet, read_pbmc, write_pbmc, kByBoth, false, false, kPbmcOld},
    {kPvlc, prm::pvlc_reg::bytes, true, kOnIb, read_pvlc, nullptr},
    {kPmaos, prm::pmaos_reg::bytes, false, kOnBoth, read_pmaos, nullptr},
    {kPplm, prm::pplm_reg::bytes, true, kOnEthernet, read_pplm, write_pplm, kByBoth, false, false, kPplmOld},
    {kSltp, prm::sltp_reg::bytes, true, kOnBoth, read_sltp, nullptr},
    {kPddr, prm::pddr_reg::bytes, true, kOnBoth, read_pddr, nullptr},
    {kPpaos, prm::ppaos_reg::bytes, true, kOnBoth, read_ppaos, nullptr},
    {kPcam, prm::pcam_reg::bytes, false, kOnEthernet, read_pcam, nullptr},
    {kPcam, prm::pcam_reg::bytes, false, kOnIb, read_pcam, nullptr, kByIcmd},  // drivers do not ask there
    {kNodeDesc, kNodeDescBytes, false, kOnBoth, read_node_desc, write_node_desc},
    {kHostEndianness, 16, false, kOnBoth, read_host_endianness, write_host_endianness},
    {kMcia, kMciaBytes, false, kOnEthernet, read_mcia, nullptr},
    {kMgir, prm::mgir::bytes, false, kOnBoth, read_mgir, nullptr, kByIcmd, true},
    {kNvda, prm::nvda::bytes, false, kOnBoth, read_nvda, nullptr, kByBoth, true, true},
    {kMnvqc, prm::mnvqc::bytes, false, kOnBoth, read_mnvqc, nullptr, kByBoth, true, true},
    {kMlcr, prm::mlcr_reg::bytes, true, kOnBoth, read_mlcr, write_mlcr, kByBoth, true},
    {kMfrl, prm::mfrl_reg::bytes, false, kOnBoth, read_mfrl, write_mfrl, kByBoth, true, true},
    {kMcqs, prm::mcqs_reg::bytes, false, kOnBoth, read_mcqs, nullptr, kByBoth, true},
    {kMcqi, prm::mcqi_reg::bytes, false, kOnBoth, read_mcqi, nullptr, kByBoth, true},
    {kMcc, prm::mcc_reg::bytes, false, kOnBoth, read_mcc, write_mcc, kByBoth, true, true},
    {kMcda, prm::mcda_reg::bytes, false, kOnBoth, nullptr, write_mcda, kByBoth, true, true},
    {kMqis, prm::mqis::bytes, false, kOnBoth, read_mqis, nullptr, kByIcmd, true},
    {kMcam, prm::mcam_reg::bytes, false, kOnBoth, read_mcam, nullptr},
    {kDtor, prm::dtor_reg::bytes, false, kOnBoth, read_dtor, nullptr},
    {kResourceDump, prm::resource_dump::bytes, false, kOnBoth, access_resource_dump, access_resource_dump},
    {kMtcap, prm::mtcap_reg::bytes, false, kOnBoth, read_mtcap, nullptr, kByBoth, true, true},
    {kMtmp, prm::mtmp_reg::bytes, false, kOnBoth, read_mtmp, write_mtmp, kByBoth, true, true},
    {kMtrcCap, prm::mtrc_cap::bytes, false, kOnBoth, read_mtrc_cap, write_mtrc_cap, kByBoth, true, true},
    {kMtrcConf, prm::mtrc_conf::bytes, false, kOnBoth, read_mtrc_conf, write_mtrc_conf, kByBoth, true, true},
    {kMtrcStdb, prm::mtrc_stdb::bytes, false, kOnBoth, access_mtrc_stdb, access_mtrc_stdb, kByBoth, true,
     true},
    {kMtrcCtrl, prm::mtrc_ctrl::bytes, false, kOnBoth, read_mtrc_ctrl, write_mtrc_ctrl, kByBoth, true, true},
    {kCoreDump, prm::core_dump_reg::bytes, false, kOnBoth, nullptr, write_core_dump, kByCommand, false, true},
};

RegisterLinks link_of(const Firmware& fw) {
  return fw.options().link == Link::kEthernet ? kOnEthernet : kOnIb;
}
bool there(const Register& r, const Firmware& fw) { return !r.of_card || !fw.options().vf; }
RegisterDoors door_of(const Command& cmd) { return cmd.by_icmd() ? kByIcmd : kByCommand; }

// A mask of 128 bits at first_bit of the data. Bit n, counted from its end: register `first` + n is there.
void set_register_bit(std::uint8_t* data, std::size_t first_bit, std::uint16_t first, std::uint16_t id) {
  const std::size_t bit = first_bit + 127 - (id - first);
  data[bit / 8] = static_cast<std::uint8_t>(data[bit / 8] | 0x80u >> bit % 8);
}

Syndrome read_pcam(Access& a) {
  using r = prm::pcam_reg;
  using regs = r::port_access_reg_cap_mask::regs_5000_to_507f;
  constexpr std::size_t first_bit = regs::port_access_reg_cap_mask_127_to_96::bit_off;
  constexpr std::uint16_t first = 0x5000, last = 0x507f;
  static_assert(first_bit + (last - kPpcnt) == regs::ppcnt::bit_off);
  if (prm::get<r::feature_group>(a.data) != 0 || prm::get<r::access_reg_group>(a.data) != 0)
    return Syndrome::kRegisterValue;
  constexpr std::size_t selectors = r::access_reg_group::bit_off / 8 + 1;
  std::memset(a.data + selectors, 0, r::bytes - selectors);
  for (const Register& reg : kRegisters) {
    if ((reg.links & link_of(a.fw)) == 0 || reg.id < first || reg.id > last) continue;
    set_register_bit(a.data, first_bit, first, reg.id);
  }
  if (link_of(a.fw) == kOnIb) return Syndrome::kOk;
  // PPCNT has no discard group, PFCC no stall masks.
  using features = r::feature_cap_mask::enhanced_features;
  const Generation& generation = *a.fw.options().generation;
  prm::set<features::rx_icrc_encapsulated_counter>(a.data, 1);
  prm::set<features::ppcnt_statistical_group>(a.data, 1);
  prm::set<features::per_lane_error_counters>(a.data, 1);
  prm::set<features::ptys_connector_type>(a.data, 1);
  prm::set<features::ptys_extended_ethernet>(a.data, generation.has.ptys_extended ? 1 : 0);
  prm::set<features::fec_50G_per_lane_in_pplm>(a.data, Fec::lanes_of_50g(generation) ? 1 : 0);
  prm::set<features::fec_100G_per_lane_in_pplm>(a.data, Fec::lanes_of_100g(generation) ? 1 : 0);
  return Syndrome::kOk;
}

Syndrome read_qcam(Access& a) {
  using r = prm::qcam_reg;
  using regs = r::qos_access_reg_cap_mask;
  constexpr std::uint16_t first = 0x4000, last = 0x407f;
  static_assert(regs::bit_off + (last - kQpts) == regs::reg_cap::qpts::bit_off);
  if (prm::get<r::feature_group>(a.data) != 0 || prm::get<r::access_reg_group>(a.data) != 0)
    return Syndrome::kRegisterValue;
  constexpr std::size_t selectors = r::access_reg_group::bit_off / 8 + 1;
  std::memset(a.data + selectors, 0, r::bytes - selectors);
  for (const Register& reg : kRegisters)
    if (reg.id >= first && reg.id <= last) set_register_bit(a.data, regs::bit_off, first, reg.id);
  return Syndrome::kOk;
}

// Group g: registers from 0x9000 + 128 * g on.
Syndrome read_mcam(Access& a) {
  using r = prm::mcam_reg;
  using regs = r::mng_access_reg_cap_mask::access_regs;
  constexpr std::size_t first_bit = r::mng_access_reg_cap_mask::bit_off;
  static_assert(first_bit + 127 - (kMcqs - 0x9000) == regs::mcqs::bit_off);
  const std::uint32_t group = prm::get<r::access_reg_group>(a.data);
  if (prm::get<r::feature_group>(a.data) != 0 || group > 3) return Syndrome::kRegisterValue;
  std::memset(a.data + 8, 0, r::bytes - 8);
  const auto first = static_cast<std::uint16_t>(0x9000 + 128 * group);
  for (const Register& reg : kRegisters)
    if (reg.in_mcam && there(reg, a.fw) && (reg.doors & door_of(a.cmd)) != 0 &&
        (reg.links & link_of(a.fw)) != 0 && reg.id >= first && reg.id - first < 128)
      set_register_bit(a.data, first_bit, first, reg.id);
  using mask = r::mng_feature_cap_mask;
  using features = mask::enhanced_features;
  using sync = prm::mcam_features::pcie_sync_for_fw_update;
  static_assert(features::ptpcyc2realtime_modify::bit_off + 1 == mask::bit_off + sync::bit_off);
  if (group == 0) {
    prm::set<features::reset_state>(a.data, 1);
    prm::set<sync>(a.data + mask::bit_off / 8, 1);
  }
  return Syndrome::kOk;
}

}  // namespace

const std::vector<std::uint16_t>& all_registers() {
  static const std::vector<std::uint16_t> ids = [] {
    std::vector<std::uint16_t> v;
    for (const Register& r : kRegisters) v.push_back(r.id);
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
    return v;
  }();
  return ids;
}

Syndrome access_register(Firmware& fw, Command& cmd) {
  using in = prm::access_register_in;
  using out = prm::access_register_out;
  const std::uint32_t id = cmd.get<in::register_id>();
  const RegisterLinks link = link_of(fw);
  const RegisterDoors door = door_of(cmd);
  const Register* reg =
      std::find_if(std::begin(kRegisters), std::end(kRegisters), [id, link, door, &fw](const Register& r) {
        return r.id == id && (r.links & link) != 0 && (r.doors & door) != 0 && there(r, fw);
      });
  if (reg == std::end(kRegisters)) return Syndrome::kRegister;
  if (cmd.op_mod != kWrite && cmd.op_mod != kRead) return Syndrome::kOpMod;
  constexpr std::size_t in_at = in::register_data::bit_off / 8, out_at = out::register_data::bit_off / 8;
  const std::size_t least = reg->least != 0 ? reg->least : reg->bytes;
  if (cmd.in_len < in_at + least) return Syndrome::kRegisterLength;
  if (cmd.out_len < out_at + least) return Syndrome::kOutputShort;
  auto handler = cmd.op_mod == kRead ? reg->read : reg->write;
  if (handler == nullptr) return Syndrome::kRegisterRead;
  if (fw.options().vf && cmd.op_mod == kWrite) {
    // The port is its manager's: drivers of virtual functions write to its registers all the same, and are
    // answered with what it is. The card's own state is nothing that they get at.
    if (reg->in_mcam) return Syndrome::kRegisterRead;
    if (reg->has_port) handler = reg->read;
  }
  const std::uint8_t* const asked = cmd.in.data() + in_at;
  if (reg->has_port && prm::get<prm::pmtu_reg::local_port>(asked) != 1) return Syndrome::kPortNumber;
  std::uint8_t* const answer = cmd.out.data() + out_at;
  const std::size_t given = std::min(cmd.in_len - in_at, reg->bytes),
                    room = std::min(cmd.out_len - out_at, reg->bytes);
  if (given == reg->bytes && room == reg->bytes) {
    std::memcpy(answer, asked, reg->bytes);
    Access access{fw, answer, cmd.out_len - out_at, cmd};
    return handler(access);
  }
  // Of a driver that knows less of it: what it does not write stays as it is.
  std::vector<std::uint8_t> whole(reg->bytes);
  std::memcpy(whole.data(), asked, given);
  Access access{fw, whole.data(), whole.size(), cmd};
  Syndrome s = Syndrome::kOk;
  if (cmd.op_mod == kWrite) {
    s = reg->read(access);
    std::memcpy(whole.data(), asked, given);
  }
  if (s == Syndrome::kOk) s = handler(access);
  std::memcpy(answer, whole.data(), room);
  return s;
}

// Of user contexts, which only read: MTUTC, for how the clock in CQEs runs. All zero: free running, from the
// internal timer. (The driver's own door has no MTUTC, as the clock cannot be set.)
Syndrome access_register_user(Firmware& /*fw*/, Command& cmd) {
  if (cmd.get<prm::access_register_in::register_id>() != kMtutc) return Syndrome::kRegister;
  if (cmd.op_mod != kRead) return Syndrome::kRegisterRead;
  if (cmd.out_len < prm::access_register_out::register_data::bit_off / 8 + prm::mtutc_reg::bytes)
    return Syndrome::kOutputShort;
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
