// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/objects/objects.h"

#include "model/hca.h"

namespace hcasim::fw {

namespace {
// Numbers that must never be given out: QPN 0 and 1 name the port's special QPs, lkey 0x100 (mkey index 1)
// ends a scatter list, UAR pages 0-2 are the initialization segment; 0 is "none" everywhere. The rest is
// spread, so that a number of one type used for another is likely to be refused.
constexpr std::uint32_t kFirstPd = 1, kFirstXrcd = 1, kFirstTd = 1, kFirstMkey = 0x20, kFirstEq = 1,
                        kFirstCq = 0x400, kFirstSrq = 0x40, kFirstQp = 0x80, kFirstQCounter = 1;
constexpr std::uint32_t room(unsigned log, std::uint32_t first) { return (1u << log) - first; }
}  // namespace

Objects::Objects(const Options& o)
    : pds(kFirstPd, room(o.log_max_pd, kFirstPd)),
      uars(kFirstUarPage, o.num_uars),
      xrcds(kFirstXrcd, room(o.log_max_pd, kFirstXrcd)),
      tds(kFirstTd, 32),
      q_counters(kFirstQCounter, o.num_q_counters < 255 ? o.num_q_counters : 255),
      mkeys(kFirstMkey, room(o.log_max_mkey, kFirstMkey)),
      eqs(kFirstEq, o.num_eqs < 255 ? o.num_eqs : 255),
      cqs(kFirstCq, room(o.log_max_cq, kFirstCq)),
      srqs(kFirstSrq, room(o.log_max_srq, kFirstSrq)),
      qps(kFirstQp, room(o.log_max_qp, kFirstQp)) {}

void Objects::clear() {
  pds.clear();
  uars.clear();
  xrcds.clear();
  tds.clear();
  q_counters.clear();
  mkeys.clear();
  eqs.clear();
  cqs.clear();
  srqs.clear();
  qps.clear();
  xlt_words = 0;
}

}  // namespace hcasim::fw
