// SPDX-License-Identifier: BSD-3-Clause
// Multicast groups (IBTA 10.5): ATTACH_TO_MCG, DETACH_FROM_MCG.
#include <algorithm>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

namespace {
template <class In>
Gid gid_of(const Command& cmd) {
  Gid gid;
  for (unsigned i = 0; i < gid.size(); ++i)
    gid[i] = static_cast<std::uint8_t>(prm::get<typename In::multicast_gid>(cmd.in.data(), i));
  return gid;
}

// IPv6 and IB groups, and on RoCE IPv4 groups in their mapped form.
bool is_group(const Gid& gid) {
  constexpr Gid kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (gid[0] == 0xff) return true;
  return std::equal(kMapped.begin(), kMapped.begin() + 12, gid.begin()) && gid[12] >> 4 == 0xe;
}
}  // namespace

Syndrome attach_to_mcg(Firmware& fw, Command& cmd) {
  using in = prm::attach_to_mcg_in;
  const std::uint32_t qpn = cmd.get<in::qpn>();
  QpObject* object = fw.objects().qps.find(qpn);
  const Qp* qp = fw.function().qps().find(qpn);
  if (object == nullptr || qp == nullptr) return Syndrome::kQpNumber;
  if (qp->type != QpType::kUd) return Syndrome::kMcgQpType;
  const Gid gid = gid_of<in>(cmd);
  if (!is_group(gid)) return Syndrome::kMcgGid;
  if (!fw.function().steering().attach(gid, qpn)) return Syndrome::kMcgFull;
  // Attaching twice changes nothing.
  const auto [membership, fresh] = fw.objects().multicast.try_emplace({qpn, gid});
  if (fresh) membership->second = Ref(object);
  fw.trace_create(ObjType::kMcg, qpn, cmd.uid);
  return Syndrome::kOk;
}

Syndrome detach_from_mcg(Firmware& fw, Command& cmd) {
  using in = prm::detach_from_mcg_in;
  const std::uint32_t qpn = cmd.get<in::qpn>();
  if (fw.objects().qps.find(qpn) == nullptr) return Syndrome::kQpNumber;
  const Gid gid = gid_of<in>(cmd);
  if (!fw.function().steering().detach(gid, qpn)) return Syndrome::kMcgNotAttached;
  fw.objects().multicast.erase({qpn, gid});
  fw.trace_destroy(ObjType::kMcg, qpn, cmd.uid);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
