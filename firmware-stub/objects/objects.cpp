// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/objects/objects.h"

#include <algorithm>

#include "firmware-stub/objects/flow_types.h"
#include "model/device.h"
#include "model/state/state.h"
#include "traces/qp_tag.h"

namespace hcasim::fw {

namespace {
// Numbers that must never be given out: QPN 0 and 1 name the port's special QPs, lkey 0x100 (mkey index 1)
// ends a scatter list, UAR pages 0-2 are the initialization segment; 0 is "none" everywhere. The rest is
// spread, so that a number of one type used for another is likely to be refused.
constexpr std::uint32_t kFirstPd = 1, kFirstXrcd = 1, kFirstTd = 1, kFirstMkey = 0x20, kFirstPsv = 0x60,
                        kFirstEq = 1, kFirstCq = 0x400, kFirstSrq = 0x40, kFirstQp = 0x80, kFirstQCounter = 1,
                        kFirstTis = 0x10, kFirstTir = 0x100, kFirstRqt = 0x200, kFirstRq = 0x300,
                        kFirstFlowTable = 0x30, kFirstFlowGroup = 0x50, kFirstFlowCounter = 4,
                        kFirstModifyHeader = 0x70, kFirstReformat = 0x90, kFirstUmem = 0x20,
                        kFirstSwIcm = 0x10, kFirstFlowSampler = 0x18, kFirstFlowMeter = 0x28,
                        kFirstMatchDefiner = 0x38, kFirstDek = 0x58, kFirstIpsec = 0x68, kFirstMacsec = 0x78;
static_assert(Options::log_max_qp <= traces::QpTag::kQpnBits,
              "QPNs of records name their HCA in the bits above");
constexpr std::uint32_t room(unsigned log, std::uint32_t first) { return (1u << log) - first; }
// Where a function of a card that has several begins: apart from the others, so that whoever reads a trace
// can tell their queues and keys by the number, and not so far that the tables by number get large.
std::uint32_t start_of(const Options& o) {
  constexpr std::uint32_t kMost = 1u << 15, kMostApart = 4096;
  const std::uint32_t functions = o.vfs + o.sfs + 1;
  return o.vhca_id % functions * std::min(kMost / functions, kMostApart);
}
}  // namespace

Objects::Objects(const Options& o)
    : pds(kFirstPd, room(o.log_max_pd, kFirstPd)),
      uars(kFirstUarPage, o.num_uars),
      xrcds(kFirstXrcd, room(o.log_max_pd, kFirstXrcd)),
      tds(kFirstTd, room(kLogTds, kFirstTd)),
      q_counters(kFirstQCounter, o.num_q_counters < 255 ? o.num_q_counters : 255),
      mkeys(kFirstMkey, room(o.log_max_mkey, kFirstMkey), start_of(o)),
      psvs(kFirstPsv, room(kLogPsvs, kFirstPsv)),
      eqs(kFirstEq, o.num_eqs < 255 ? o.num_eqs : 255),
      cqs(kFirstCq, room(o.log_max_cq, kFirstCq), start_of(o)),
      srqs(kFirstSrq, room(o.log_max_srq, kFirstSrq)),
      qps(kFirstQp, room(o.log_max_qp, kFirstQp), start_of(o)),
      tises(kFirstTis, room(kLogTises, kFirstTis)),
      tirs(kFirstTir, room(kLogTirs, kFirstTir)),
      rqts(kFirstRqt, room(kLogRqts, kFirstRqt)),
      rqs(kFirstRq, room(kLogRqs, kFirstRq)),
      flow_tables(kFirstFlowTable, room(kLogFlowTables, kFirstFlowTable)),
      flow_groups(kFirstFlowGroup, 1u << 20),
      flow_counters(kFirstFlowCounter, kFlowCounters),
      modify_headers(kFirstModifyHeader, 1u << kLogModifyHeaders),
      reformats(kFirstReformat, 1u << kLogReformats),
      sw_icms(kFirstSwIcm, kSwIcms),
      flow_samplers(kFirstFlowSampler, kFlowSamplers),
      flow_meters(kFirstFlowMeter, 1u << kLogFlowMeters),
      header_arguments(1, 1u << kLogHeaderArgumentObjects),
      match_definers(kFirstMatchDefiner, kMatchDefiners),
      page_tracks(1, 1u << kLogPageTracks),
      deks(kFirstDek, room(kLogDeks, kFirstDek)),
      ipsecs(kFirstIpsec, room(kLogIpsecs, kFirstIpsec)),
      macsecs(kFirstMacsec, room(kLogMacsecs, kFirstMacsec)),
      reserved_qpns(1, kReservedQpnBlocks),
      umems(kFirstUmem, room(kLogUmems, kFirstUmem)),
      sched_elements(1, Qos::kElements) {}

std::uint32_t Objects::allocated_counter(std::uint32_t id) const {
  auto it = counter_bulks.upper_bound(id);
  if (it == counter_bulks.begin()) return id;
  --it;
  return id - it->first < it->second.count ? it->first : id;
}

PlainObject* Objects::find_flow_counter(std::uint32_t id) {
  const auto bulk = counter_bulks.find(allocated_counter(id));
  return bulk != counter_bulks.end() ? &bulk->second : flow_counters.find(id);
}

PlainObject* Objects::memic_holding(Memic& memory, std::uint64_t addr, std::uint64_t len) {
  if (memory.holding(addr, len) == nullptr) return nullptr;
  const auto behind = memics.upper_bound(addr);
  return behind != memics.begin() ? &std::prev(behind)->second : nullptr;
}

Objects::~Objects() { clear(); }

void Objects::clear() { reset_state(*this); }

}  // namespace hcasim::fw
