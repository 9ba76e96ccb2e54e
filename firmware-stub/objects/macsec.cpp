// SPDX-License-Identifier: BSD-3-Clause
// General objects MACSEC: secure associations, for flow entries that protect or validate.
#include <algorithm>

#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general_handlers.h"
#include "prm/crypto.h"

namespace hcasim::fw {

namespace {

using Obj = prm::macsec_offload_obj;
constexpr std::size_t kObject = prm::general_obj_in_cmd_hdr::bytes;
constexpr std::size_t kAso = Obj::macsec_aso::bit_off / 8, kSci = Obj::sci::bit_off / 8,
                      kSalt = Obj::salt::bit_off / 8;
constexpr std::uint64_t kMayChange =
    prm::k::MODIFY_MACSEC_BITMASK_EPN_OVERLAP | prm::k::MODIFY_MACSEC_BITMASK_EPN_MSB;
constexpr unsigned kAsoRegs = 4;  // pairs of registers C

}  // namespace

Syndrome create_macsec(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint8_t* p = cmd.in.data() + kObject;
  const std::uint32_t reg = prm::get<Obj::aso_return_reg>(p);
  if (prm::get<Obj::confidentiality_offset>(p) != 0 || reg >= kAsoRegs) return Syndrome::kMacsecFeature;
  MacsecSa sa;
  sa.dek = prm::get<Obj::dekn>(p);
  DekObject* dek = o.deks.find(sa.dek);
  if (dek == nullptr) return Syndrome::kDekNumber;
  if (fw.function().deks().find(sa.dek, prm::kKeyPurposeMacsec) == nullptr) return Syndrome::kDekPurpose;
  if (!UserContexts::may_use(cmd.uid,
                             o.users.owner_general(prm::k::GENERAL_OBJECT_TYPES_ENCRYPTION_KEY, sa.dek)))
    return Syndrome::kNotOwner;
  const std::uint32_t pdn = prm::get<Obj::macsec_aso_access_pd>(p);
  PlainObject* pd = o.pds.find(pdn);
  if (pd == nullptr) return Syndrome::kPdNumber;
  if (!UserContexts::may_use(cmd.uid, o.users.owner(ObjType::kPd, pdn))) return Syndrome::kNotOwner;
  std::copy_n(p + kSci, sa.sci.size(), sa.sci.begin());
  // Its words are given from the last to the first.
  for (std::size_t i = 0; i < sa.salt.size(); i += 4)
    std::copy_n(p + kSalt + i, 4, sa.salt.end() - 4 - static_cast<std::ptrdiff_t>(i));
  sa.confidential = prm::get<Obj::confidentiality_en>(p) != 0;
  sa.epn = prm::get<Obj::epn_en>(p) != 0;
  sa.overlap = prm::get<Obj::epn_overlap>(p) != 0;
  sa.epn_msb = prm::get<Obj::epn_msb>(p);
  sa.aso = SaAso(p + kAso, pdn, static_cast<std::uint8_t>(reg * 2), sa.epn);
  if (!sa.aso.valid()) return Syndrome::kMacsecFeature;
  if (o.macsecs.full()) return Syndrome::kMacsecLimit;
  if (!fw.pages().charge(kIcmMacsec)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  SaObject* object = o.macsecs.create(id);
  object->dek = Ref(dek);
  object->pd = Ref(pd);
  fw.function().macsec().create(id, sa);
  cmd.put<prm::general_obj_out_cmd_hdr::obj_id>(id);
  return Syndrome::kOk;
}

Syndrome modify_macsec(Firmware& fw, Command& cmd) {
  const std::uint8_t* p = cmd.in.data() + kObject;
  MacsecSa* sa = fw.function().macsec().find(cmd.get<prm::general_obj_in_cmd_hdr::obj_id>());
  if (sa == nullptr) return Syndrome::kMacsecNumber;
  const std::uint64_t fields = prm::get<Obj::modify_field_select>(p);
  if ((fields & ~kMayChange) != 0) return Syndrome::kModifyMask;
  if ((fields & prm::k::MODIFY_MACSEC_BITMASK_EPN_OVERLAP) != 0)
    sa->overlap = prm::get<Obj::epn_overlap>(p) != 0;
  if ((fields & prm::k::MODIFY_MACSEC_BITMASK_EPN_MSB) != 0) sa->epn_msb = prm::get<Obj::epn_msb>(p);
  return Syndrome::kOk;
}

// The salt belongs to the key, and is not told either. modify_field_select: what may be changed.
Syndrome query_macsec(Firmware& fw, Command& cmd) {
  const MacsecSa* sa = fw.function().macsec().find(cmd.get<prm::general_obj_in_cmd_hdr::obj_id>());
  if (sa == nullptr) return Syndrome::kMacsecNumber;
  std::uint8_t* p = cmd.out.data() + prm::general_obj_out_cmd_hdr::bytes;
  prm::set<Obj::modify_field_select>(p, kMayChange);
  prm::set<Obj::confidentiality_en>(p, sa->confidential);
  prm::set<Obj::epn_en>(p, sa->epn);
  prm::set<Obj::epn_overlap>(p, sa->overlap);
  prm::set<Obj::epn_msb>(p, sa->epn_msb);
  prm::set<Obj::aso_return_reg>(p, sa->aso.reg() / 2u);
  prm::set<Obj::dekn>(p, sa->dek);
  std::copy(sa->sci.begin(), sa->sci.end(), p + kSci);
  prm::set<Obj::macsec_aso_access_pd>(p, sa->aso.pd());
  std::copy(sa->aso.context().begin(), sa->aso.context().end(), p + kAso);
  return Syndrome::kOk;
}

Syndrome destroy_macsec(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t id = cmd.get<prm::general_obj_in_cmd_hdr::obj_id>();
  const SaObject* object = o.macsecs.find(id);
  if (object == nullptr) return Syndrome::kMacsecNumber;
  if (object->referred()) return Syndrome::kMacsecBusy;
  fw.function().macsec().destroy(id);
  o.macsecs.destroy(id);
  fw.pages().release(kIcmMacsec);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
