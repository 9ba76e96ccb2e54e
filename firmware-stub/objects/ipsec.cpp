// SPDX-License-Identifier: BSD-3-Clause
// General objects IPSEC: security associations, for flow entries that encrypt or decrypt.
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general_handlers.h"
#include "prm/crypto.h"

namespace hcasim::fw {

namespace {

using Obj = prm::ipsec_obj;

constexpr std::uint64_t kMayChange =
    prm::k::MODIFY_IPSEC_BITMASK_ESN_OVERLAP | prm::k::MODIFY_IPSEC_BITMASK_ESN_MSB;

template <class Bytes>
void copy_from(const std::uint8_t* field, Bytes& to) {
  std::memcpy(to.data(), field, to.size());
}

}  // namespace

Syndrome create_ipsec(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint8_t* p = cmd.in.data() + prm::general_obj_in_cmd_hdr::bytes;
  if (prm::get<Obj::full_offload>(p) != 0 || prm::get<Obj::icv_length>(p) != prm::k::IPSEC_OBJECT_ICV_LEN_16B)
    return Syndrome::kIpsecFeature;
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
  if (o.ipsecs.full()) return Syndrome::kIpsecLimit;
  if (!fw.pages().charge(kIcmIpsec)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  o.ipsecs.create(id)->dek = Ref(dek);
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
  return Syndrome::kOk;
}

Syndrome destroy_ipsec(Firmware& fw, Command& cmd) {
  Objects& o = fw.objects();
  const std::uint32_t id = cmd.get<prm::general_obj_in_cmd_hdr::obj_id>();
  const IpsecObject* object = o.ipsecs.find(id);
  if (object == nullptr) return Syndrome::kIpsecNumber;
  if (object->referred()) return Syndrome::kIpsecBusy;
  fw.function().ipsec().destroy(id);
  o.ipsecs.destroy(id);
  fw.pages().release(kIcmIpsec);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
