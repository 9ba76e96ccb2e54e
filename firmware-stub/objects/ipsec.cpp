// SPDX-License-Identifier: BSD-3-Clause
// General objects IPSEC: security associations, for flow entries that encrypt or decrypt.
#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general_handlers.h"
#include "prm/crypto.h"

namespace hcasim::fw {

namespace {

using Obj = prm::ipsec_obj;

constexpr std::uint64_t kMayChange =
    prm::k::MODIFY_IPSEC_BITMASK_ESN_OVERLAP | prm::k::MODIFY_IPSEC_BITMASK_ESN_MSB;

constexpr std::size_t kAso = Obj::ipsec_aso::bit_off / 8;
constexpr unsigned kAsoRegs = 4;  // pairs of registers C

template <class Bytes>
void copy_from(const std::uint8_t* field, Bytes& to) {
  std::memcpy(to.data(), field, to.size());
}

// What packet offload adds.
Syndrome read_whole(Firmware& fw, const Command& cmd, IpsecSa& sa, PlainObject*& pd) {
  if (cmd.in_len < prm::create_ipsec_obj_in::bytes) return Syndrome::kInputShort;
  const std::uint8_t* p = cmd.in.data() + prm::general_obj_in_cmd_hdr::bytes;
  const std::uint32_t reg = prm::get<Obj::aso_return_reg>(p), pdn = prm::get<Obj::ipsec_aso_access_pd>(p);
  pd = fw.objects().pds.find(pdn);
  if (pd == nullptr) return Syndrome::kPdNumber;
  if (!UserContexts::may_use(cmd.uid, fw.objects().users.owner(ObjType::kPd, pdn)))
    return Syndrome::kNotOwner;
  if (reg >= kAsoRegs) return Syndrome::kIpsecFeature;
  sa.aso = SaAso(p + kAso, pdn, static_cast<std::uint8_t>(reg * 2), sa.esn);
  return sa.aso.valid() ? Syndrome::kOk : Syndrome::kIpsecFeature;
}

}  // namespace

Syndrome create_ipsec(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint8_t* p = cmd.in.data() + prm::general_obj_in_cmd_hdr::bytes;
  if (prm::get<Obj::icv_length>(p) != prm::k::IPSEC_OBJECT_ICV_LEN_16B) return Syndrome::kIpsecFeature;
  IpsecSa sa;
  sa.dek = prm::get<Obj::dekn>(p);
  DekObject* dek = o.deks.find(sa.dek);
  if (dek == nullptr) return Syndrome::kDekNumber;
  if (fw.function().deks().find(sa.dek, prm::kKeyPurposeIpsec) == nullptr) return Syndrome::kDekPurpose;
  if (!UserContexts::may_use(cmd.uid,
                             o.users.owner_general(prm::k::GENERAL_OBJECT_TYPES_ENCRYPTION_KEY, sa.dek)))
    return Syndrome::kNotOwner;
  copy_from(p + Obj::salt::bit_off / 8, sa.salt);
  copy_from(p + Obj::implicit_iv::bit_off / 8, sa.implicit_iv);
  sa.esn = prm::get<Obj::esn_en>(p) != 0;
  sa.overlap = prm::get<Obj::esn_overlap>(p) != 0;
  sa.esn_msb = prm::get<Obj::esn_msb>(p);
  sa.whole = prm::get<Obj::full_offload>(p) != 0;
  PlainObject* pd = nullptr;
  if (sa.whole) {
    const Syndrome s = read_whole(fw, cmd, sa, pd);
    if (s != Syndrome::kOk) return s;
  }
  if (o.ipsecs.full()) return Syndrome::kIpsecLimit;
  if (!fw.pages().charge(kIcmIpsec)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  SaObject* object = o.ipsecs.create(id);
  object->dek = Ref(dek);
  object->pd = Ref(pd);
  fw.function().ipsec().create(id, sa);
  cmd.put<prm::general_obj_out_cmd_hdr::obj_id>(id);
  return Syndrome::kOk;
}

Syndrome modify_ipsec(Firmware& fw, Command& cmd) {
  const std::uint8_t* p = cmd.in.data() + prm::general_obj_in_cmd_hdr::bytes;
  IpsecSa* sa = fw.function().ipsec().find(cmd.get<prm::general_obj_in_cmd_hdr::obj_id>());
  if (sa == nullptr) return Syndrome::kIpsecNumber;
  const std::uint64_t fields = prm::get<Obj::modify_field_select>(p);
  if ((fields & ~kMayChange) != 0) return Syndrome::kModifyMask;
  if ((fields & prm::k::MODIFY_IPSEC_BITMASK_ESN_OVERLAP) != 0)
    sa->overlap = prm::get<Obj::esn_overlap>(p) != 0;
  if ((fields & prm::k::MODIFY_IPSEC_BITMASK_ESN_MSB) != 0) sa->esn_msb = prm::get<Obj::esn_msb>(p);
  return Syndrome::kOk;
}

// Salt and IV belong to the key, and are not told either. modify_field_select: what may be changed.
Syndrome query_ipsec(Firmware& fw, Command& cmd) {
  const IpsecSa* sa = fw.function().ipsec().find(cmd.get<prm::general_obj_in_cmd_hdr::obj_id>());
  if (sa == nullptr) return Syndrome::kIpsecNumber;
  std::uint8_t* p = cmd.out.data() + prm::general_obj_out_cmd_hdr::bytes;
  prm::set<Obj::modify_field_select>(p, kMayChange);
  prm::set<Obj::esn_en>(p, sa->esn);
  prm::set<Obj::esn_overlap>(p, sa->overlap);
  prm::set<Obj::icv_length>(p, prm::k::IPSEC_OBJECT_ICV_LEN_16B);
  prm::set<Obj::esn_msb>(p, sa->esn_msb);
  prm::set<Obj::dekn>(p, sa->dek);
  if (!sa->whole) return Syndrome::kOk;
  if (cmd.out_len < prm::query_ipsec_obj_out::bytes) return Syndrome::kOutputShort;
  prm::set<Obj::full_offload>(p, 1);
  prm::set<Obj::aso_return_reg>(p, sa->aso.reg() / 2u);
  prm::set<Obj::ipsec_aso_access_pd>(p, sa->aso.pd());
  std::copy(sa->aso.context().begin(), sa->aso.context().end(), p + kAso);
  return Syndrome::kOk;
}

Syndrome destroy_ipsec(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t id = cmd.get<prm::general_obj_in_cmd_hdr::obj_id>();
  const SaObject* object = o.ipsecs.find(id);
  if (object == nullptr) return Syndrome::kIpsecNumber;
  if (object->referred()) return Syndrome::kIpsecBusy;
  fw.function().ipsec().destroy(id);
  o.ipsecs.destroy(id);
  fw.pages().release(kIcmIpsec);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
