// SPDX-License-Identifier: BSD-3-Clause
// User contexts: who may name which object. Each object that a command with a user context's number (uid)
// makes belongs to that context; 0 is the driver itself, which may name everything; kSharedUid marks what the
// driver shares with all contexts (completion EQs, Q counters): they may use it, not change it.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_UCTX_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_UCTX_H

#include <cstdint>
#include <unordered_map>

#include "firmware-stub/command.h"
#include "firmware-stub/objects/ref.h"
#include "firmware-stub/objects/table.h"
#include "model/state/fields.h"

namespace hcasim::fw {

enum class ObjType : std::uint8_t;

constexpr std::uint16_t kSharedUid = 0xffff;
constexpr unsigned kLogUctxs = 12;
// uctx.cap and cmd_hca_cap.uctx_cap (mlx5_ifc.h, MLX5_UCTX_CAP_*).
enum : std::uint32_t { kUctxRawTx = 1u << 0, kUctxInternalDevRes = 1u << 1 };

struct UctxObject : Referred {
  std::uint32_t cap = 0;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, cap);
  }
};

class UserContexts {
 public:
  UserContexts() : table(1, (1u << kLogUctxs) - 1) {}
  Table<UctxObject> table;  // by uid

  // Numbers of one space belong to one owner each; objects of `uid` 0 are not written down. ObjType names
  // the space, kinds that share numbers (QP and SQ; RMP, XRC SRQ and SRQ) share it.
  void own(ObjType type, std::uint32_t number, std::uint16_t uid) { own(space(type), number, uid); }
  void disown(ObjType type, std::uint32_t number) { disown(space(type), number); }
  std::uint16_t owner(ObjType type, std::uint32_t number) const { return owner(space(type), number); }
  // General objects: numbers of one object type are one space.
  void own_general(std::uint16_t obj_type, std::uint32_t number, std::uint16_t uid) {
    own(kGeneral | obj_type, number, uid);
  }
  void disown_general(std::uint16_t obj_type, std::uint32_t number) { disown(kGeneral | obj_type, number); }
  std::uint16_t owner_general(std::uint16_t obj_type, std::uint32_t number) const {
    return owner(kGeneral | obj_type, number);
  }

  // May a command of `uid` change or destroy what `owner` owns; may it name that in an object of its own.
  static bool may_change(std::uint16_t uid, std::uint16_t owner) {
    return uid == 0 || uid == kSharedUid || uid == owner;
  }
  static bool may_use(std::uint16_t uid, std::uint16_t owner) {
    return may_change(uid, owner) || owner == kSharedUid;
  }
  // Owners first: they refer to the table's objects.
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, owners_, table);
  }

 private:
  static constexpr std::uint32_t kGeneral = 0x10000;
  static std::uint32_t space(ObjType type);
  static std::uint64_t key(std::uint32_t space, std::uint32_t number) {
    return std::uint64_t{space} << 32 | number;
  }
  void own(std::uint32_t space, std::uint32_t number, std::uint16_t uid);
  void disown(std::uint32_t space, std::uint32_t number);
  std::uint16_t owner(std::uint32_t space, std::uint32_t number) const;

  struct Owner {
    std::uint16_t uid = 0;
    Ref<UctxObject> uctx;  // null for kSharedUid

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, uid, uctx);
    }
  };
  std::unordered_map<std::uint64_t, Owner> owners_;
};

}  // namespace hcasim::fw
#endif
