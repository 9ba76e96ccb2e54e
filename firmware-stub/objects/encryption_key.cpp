// SPDX-License-Identifier: BSD-3-Clause
// General objects ENCRYPTION_KEY (DEK): keys for TLS, IPsec, MACsec and PSP. A connection of TLS names its
// key in a WQE, a packet of PSP in its metadata, and is left with none when it goes; an object of IPsec or
// MACsec holds it.
#include "firmware-stub/firmware.h"
#include "firmware-stub/objects/general_handlers.h"
#include "prm/crypto.h"
#include "prm/psp.h"

namespace hcasim::fw {

Syndrome create_encryption_key(Firmware& fw, Command& cmd) {
  namespace key = prm::create_key;
  Objects& o = fw.objects();
  const std::uint32_t pdn = cmd.get<key::pd>();
  PlainObject* pd = o.pds.find(pdn);
  if (pd == nullptr) return Syndrome::kPdNumber;
  if (!UserContexts::may_use(cmd.uid, o.users.owner(ObjType::kPd, pdn))) return Syndrome::kNotOwner;
  const std::uint32_t purpose = cmd.get<key::purpose>();
  if (purpose != prm::kKeyPurposeTls && purpose != prm::kKeyPurposeIpsec &&
      purpose != prm::kKeyPurposeMacsec && (purpose != prm::psp::kKeyPurpose || !fw.options().psp()))
    return Syndrome::kDekPurpose;
  const std::uint32_t size = cmd.get<key::size>();
  if (size != prm::kKeySize128 && size != prm::kKeySize256) return Syndrome::kDekSize;
  if (o.deks.full()) return Syndrome::kDekLimit;
  if (!fw.pages().charge(kIcmDek)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  DekObject* object = o.deks.create(id);
  object->pd = Ref(pd);
  const std::uint8_t* end = cmd.in.data() + key::kKey + key::kKeyBytes;
  const std::size_t bytes = size == prm::kKeySize256 ? key::kKeyBytes : key::kKeyBytes / 2;
  fw.function().deks().create(id, pdn, static_cast<std::uint8_t>(purpose), {end - bytes, end});
  cmd.put<prm::general_obj_out_cmd_hdr::obj_id>(id);
  return Syndrome::kOk;
}

// Its key is never told.
Syndrome query_encryption_key(Firmware& fw, Command& cmd) {
  const Dek* dek = fw.function().deks().find(cmd.get<prm::general_obj_in_cmd_hdr::obj_id>());
  if (dek == nullptr) return Syndrome::kDekNumber;
  std::uint8_t* p = cmd.out.data() + prm::general_obj_out_cmd_hdr::bytes;
  prm::set<prm::encryption_key_obj::key_size>(
      p, dek->key.size() == prm::create_key::kKeyBytes ? prm::kKeySize256 : prm::kKeySize128);
  prm::set<prm::encryption_key_purpose>(p, dek->purpose);
  prm::set<prm::encryption_key_obj::pd>(p, dek->pd);
  return Syndrome::kOk;
}

Syndrome destroy_encryption_key(Firmware& fw, Command& cmd) {
  const std::uint32_t id = cmd.get<prm::general_obj_in_cmd_hdr::obj_id>();
  const DekObject* object = fw.objects().deks.find(id);
  if (object == nullptr) return Syndrome::kDekNumber;
  if (object->referred()) return Syndrome::kDekBusy;
  fw.function().deks().destroy(id);
  fw.objects().deks.destroy(id);
  fw.pages().release(kIcmDek);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
