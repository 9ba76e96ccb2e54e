// SPDX-License-Identifier: BSD-3-Clause
// Registers of the Ethernet port's quality of service: trust (QPTS, QPDPM), traffic classes (QTCT, QETCR),
// receive buffers (PPTB, PBMC), and QCAM, which tells of the first four.
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/registers.h"

namespace hcasim::fw {

namespace {

enum : std::uint32_t { kTrustPcp = 1, kTrustDscp = 2 };                    // mlx5 port.h, MLX5_QPTS_TRUST_*
enum : std::uint32_t { kNoLimit = 0, kUnits100Mbps = 3, kUnitsGbps = 4 };  // MLX5_BW_NO_LIMIT, ...

template <class Struct>
std::uint8_t* element(std::uint8_t* data, unsigned i) {
  return data + Struct::bit_off / 8 + std::size_t{i} * Struct::elem_bytes;
}

// QETCR and QTCT: Linux leaves the port out of what it writes.
template <class R>
bool names_our_port(const Access& a) {
  return prm::get<typename R::port_number>(a.data) <= 1;
}

// What a virtual function writes changes nothing of the port.
bool owns_port(const Access& a) { return !a.fw.options().vf; }

}  // namespace

// ---- Trust ----

Syndrome read_qpts(Access& a) {
  prm::set<prm::qpts_reg::trust_state>(a.data,
                                       a.fw.device().port().priorities.by_dscp ? kTrustDscp : kTrustPcp);
  return Syndrome::kOk;
}

Syndrome write_qpts(Access& a) {
  const std::uint32_t trust = prm::get<prm::qpts_reg::trust_state>(a.data);
  if (trust != kTrustPcp && trust != kTrustDscp) return Syndrome::kRegisterValue;
  a.fw.device().port().priorities.by_dscp = trust == kTrustDscp;
  return Syndrome::kOk;
}

// Two entries a dword: an entry by itself ends before its fields' dword does.
namespace {
using Dscps = prm::qpdpm_reg::dscp;
using First = prm::qpdpm_dscp_reg_at<0>;
using Second = prm::qpdpm_dscp_reg_at<First::bits>;

template <class F>
void for_each_dscp(std::uint8_t* data, F f) {
  for (unsigned i = 0; i < kDscps; i += 2) {
    std::uint8_t* p = element<Dscps>(data, i);
    f(i, p, First{});
    f(i + 1, p, Second{});
  }
}
}  // namespace

Syndrome read_qpdpm(Access& a) {
  const PriorityMap& map = a.fw.device().port().priorities;
  for_each_dscp(a.data, [&map](unsigned dscp, std::uint8_t* p, auto entry) {
    using Entry = decltype(entry);
    prm::set<typename Entry::e>(p, 0);
    prm::set<typename Entry::prio>(p, map.of_dscp[dscp]);
  });
  return Syndrome::kOk;
}

// Entries with their bit set are written, the others stay.
Syndrome write_qpdpm(Access& a) {
  PriorityMap map = a.fw.device().port().priorities;
  bool good = true;
  for_each_dscp(a.data, [&](unsigned dscp, std::uint8_t* p, auto entry) {
    using Entry = decltype(entry);
    if (prm::get<typename Entry::e>(p) == 0) return;
    const std::uint32_t priority = prm::get<typename Entry::prio>(p);
    good = good && priority < kPriorities;
    map.of_dscp[dscp] = static_cast<std::uint8_t>(priority);
  });
  if (!good) return Syndrome::kRegisterValue;
  a.fw.device().port().priorities = map;
  return read_qpdpm(a);
}

// ---- Traffic classes ----

Syndrome read_qtct(Access& a) {
  using r = prm::qtct_reg;
  if (!names_our_port<r>(a)) return Syndrome::kPortNumber;
  prm::set<r::tclass>(a.data, a.fw.device().traffic_classes().of(prm::get<r::prio>(a.data)));
  return Syndrome::kOk;
}

Syndrome write_qtct(Access& a) {
  using r = prm::qtct_reg;
  if (!names_our_port<r>(a)) return Syndrome::kPortNumber;
  if (owns_port(a)) {
    a.fw.device().traffic_classes().map(prm::get<r::prio>(a.data), prm::get<r::tclass>(a.data));
    a.fw.device().scheduler().resume(a.cmd.now);  // who waits for a rate may wait for another one now
  }
  return read_qtct(a);
}

Syndrome read_qetcr(Access& a) {
  using r = prm::qetc_reg;
  using c = prm::ets_tcn_config_reg;
  if (!names_our_port<r>(a)) return Syndrome::kPortNumber;
  constexpr std::size_t behind_port = r::tc_configuration::bit_off / 8;
  std::memset(a.data + behind_port, 0, r::bytes - behind_port);
  for (unsigned tc = 0; tc < TrafficClasses::kCount; ++tc) {
    const TrafficClasses::Class& of = a.fw.device().traffic_classes()[tc];
    std::uint8_t* p = element<r::tc_configuration>(a.data, tc);
    prm::set<c::group>(p, of.group);
    prm::set<c::bw_allocation>(p, of.share);
    prm::set<c::max_bw_units>(p, of.rate_unit);
    prm::set<c::max_bw_value>(p, of.rate_value);
  }
  return Syndrome::kOk;
}

namespace {

bool acceptable_class(const std::uint8_t* p) {
  using c = prm::ets_tcn_config_reg;
  if (prm::get<c::b>(p) != 0 && prm::get<c::bw_allocation>(p) > TrafficClasses::kShares) return false;
  if (prm::get<c::r>(p) == 0) return true;
  const std::uint32_t unit = prm::get<c::max_bw_units>(p), value = prm::get<c::max_bw_value>(p);
  return unit == kNoLimit || (value != 0 && (unit == kUnits100Mbps || unit == kUnitsGbps));
}

void write_class(TrafficClasses& classes, unsigned tc, const std::uint8_t* p) {
  using c = prm::ets_tcn_config_reg;
  if (prm::get<c::g>(p) != 0) classes.set_group(tc, prm::get<c::group>(p));
  if (prm::get<c::b>(p) != 0) classes.set_share(tc, prm::get<c::bw_allocation>(p));
  if (prm::get<c::r>(p) == 0) return;
  const std::uint32_t unit = prm::get<c::max_bw_units>(p), value = prm::get<c::max_bw_value>(p);
  const double mbps = unit == kUnits100Mbps ? 100.0 * value : unit == kUnitsGbps ? 1000.0 * value : 0;
  classes.set_rate(tc, unit, unit == kNoLimit ? 0 : value, mbps);
}

}  // namespace

// Of each class what its bits say. There is no rate of the port as a whole.
Syndrome write_qetcr(Access& a) {
  using r = prm::qetc_reg;
  using whole = r::global_configuration;
  if (!names_our_port<r>(a)) return Syndrome::kPortNumber;
  if (!owns_port(a)) return read_qetcr(a);
  if (prm::get<whole::r>(a.data) != 0 && prm::get<whole::max_bw_units>(a.data) != kNoLimit)
    return Syndrome::kRegisterValue;
  for (unsigned tc = 0; tc < TrafficClasses::kCount; ++tc)
    if (!acceptable_class(element<r::tc_configuration>(a.data, tc))) return Syndrome::kRegisterValue;
  for (unsigned tc = 0; tc < TrafficClasses::kCount; ++tc)
    write_class(a.fw.device().traffic_classes(), tc, element<r::tc_configuration>(a.data, tc));
  a.fw.device().scheduler().resume(a.cmd.now);
  return read_qetcr(a);
}

// ---- Receive buffers ----

Syndrome read_pptb(Access& a) {
  using r = prm::pptb_reg;
  constexpr unsigned kBits = r::prio_x_buff::bits / kPriorities;
  const PortBuffers& b = a.fw.device().port().buffers();
  std::uint32_t all = 0;
  for (unsigned i = 0; i < kPriorities; ++i) all |= static_cast<std::uint32_t>(b.of_priority[i]) << kBits * i;
  prm::set<r::pm>(a.data, (1u << kPriorities) - 1);
  prm::set<r::prio_x_buff>(a.data, all);
  prm::set<r::untagged_buff>(a.data, b.of_priority[0]);
  return Syndrome::kOk;
}

Syndrome write_pptb(Access& a) {
  using r = prm::pptb_reg;
  constexpr unsigned kBits = r::prio_x_buff::bits / kPriorities;
  const std::uint32_t mask = prm::get<r::pm>(a.data), all = prm::get<r::prio_x_buff>(a.data);
  PortBuffers b = a.fw.device().port().buffers();
  for (unsigned i = 0; i < kPriorities; ++i) {
    if ((mask >> i & 1) == 0) continue;
    const std::uint32_t buffer = all >> kBits * i & ((1u << kBits) - 1);
    if (buffer >= PortBuffers::kNetwork) return Syndrome::kRegisterValue;
    b.of_priority[i] = static_cast<std::uint8_t>(buffer);
  }
  a.fw.device().port().set_buffers(b);
  return read_pptb(a);
}

Syndrome read_pbmc(Access& a) {
  using r = prm::pbmc_reg;
  using x = prm::bufferx_reg;
  const PortBuffers& b = a.fw.device().port().buffers();
  constexpr std::size_t selectors = r::local_port::bit_off / 8 + 1;
  std::memset(a.data + selectors, 0, r::bytes - selectors);
  prm::set<r::port_buffer_size>(a.data, PortBuffers::kCells);
  for (unsigned i = 0; i < PortBuffers::kCount; ++i) {
    std::uint8_t* p = element<r::buffer>(a.data, i);
    prm::set<x::lossy>(p, b.buffers[i].lossy ? 1 : 0);
    prm::set<x::size>(p, b.buffers[i].size);
    prm::set<x::xoff_threshold>(p, b.buffers[i].xoff);
    prm::set<x::xon_threshold>(p, b.buffers[i].xon);
  }
  return Syndrome::kOk;
}

// The card's own buffers stay as they are.
Syndrome write_pbmc(Access& a) {
  using r = prm::pbmc_reg;
  using x = prm::bufferx_reg;
  PortBuffers b = a.fw.device().port().buffers();
  std::uint32_t cells = 0;
  for (unsigned i = 0; i < PortBuffers::kNetwork; ++i) {
    const std::uint8_t* p = element<r::buffer>(a.data, i);
    PortBuffers::Buffer& buffer = b.buffers[i];
    buffer.lossy = prm::get<x::lossy>(p) != 0;
    buffer.size = static_cast<std::uint16_t>(prm::get<x::size>(p));
    buffer.xoff = static_cast<std::uint16_t>(prm::get<x::xoff_threshold>(p));
    buffer.xon = static_cast<std::uint16_t>(prm::get<x::xon_threshold>(p));
    if (!buffer.lossy && (buffer.xoff > buffer.size || buffer.xon > buffer.xoff))
      return Syndrome::kRegisterValue;
  }
  for (const PortBuffers::Buffer& buffer : b.buffers) cells += buffer.size;
  if (cells > PortBuffers::kCells) return Syndrome::kRegisterValue;
  a.fw.device().port().set_buffers(b);
  return read_pbmc(a);
}

}  // namespace hcasim::fw
