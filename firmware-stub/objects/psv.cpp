// SPDX-License-Identifier: BSD-3-Clause
// CREATE_PSV, DESTROY_PSV: protection signature variables, up to four by one command.
#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

Syndrome create_psv(Firmware& fw, Command& cmd) {
  using in = prm::create_psv_in;
  using out = prm::create_psv_out;
  Objects& o = fw.objects();
  const unsigned n = cmd.get<in::num_psv>();
  const std::uint32_t pdn = cmd.get<in::pd>();
  PlainObject* pd = o.pds.find(pdn);
  if (n == 0 || n > 4) return Syndrome::kPsvCount;
  if (pd == nullptr) return Syndrome::kPsvPd;
  if ((1u << kLogPsvs) - o.psvs.count() <= 2 * n + 0x60) return Syndrome::kPsvLimit;
  std::uint32_t index[4] = {};
  for (unsigned i = 0; i < n; ++i) {
    PsvObject* psv = o.psvs.create(index[i]);
    psv->pd = Ref(pd);
    fw.function().psvs().create(index[i], pdn);
    fw.trace_create(ObjType::kPsv, index[i], cmd.uid);
  }
  cmd.put<out::psv0_index>(index[0]);
  cmd.put<out::psv1_index>(index[1]);
  cmd.put<out::psv2_index>(index[2]);
  cmd.put<out::psv3_index>(index[3]);
  return Syndrome::kOk;
}

Syndrome destroy_psv(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t n = cmd.get<prm::destroy_psv_in::psvn>();
  const PsvObject* psv = o.psvs.find(n);
  if (psv == nullptr) return Syndrome::kPsvNumber;
  fw.function().psvs().destroy(n);
  o.psvs.destroy(n);
  fw.trace_destroy(ObjType::kPsv, n, cmd.uid);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
