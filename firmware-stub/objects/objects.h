// SPDX-License-Identifier: BSD-3-Clause
// The firmware's objects and who refers to whom: PD by mkey, QP, SRQ; CQ by QP and XRC SRQ; EQ by CQ; SRQ and
// Q counter by QP; XRC domain by XRC SRQ. `refs` counts them; an object in use is not destroyed. What the
// hardware needs of an object at run time lies in the model's tables under the same number.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_OBJECTS_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_OBJECTS_H

#include <array>
#include <cstdint>

#include "firmware-stub/objects/table.h"
#include "firmware-stub/options.h"
#include "model/prm/prm.h"

namespace hcasim::fw {

// Numbers of object types in trace points obj_create and obj_destroy.
enum class ObjType : std::uint8_t {
  kPd = 1,
  kUar,
  kXrcd,
  kTransportDomain,
  kMkey,
  kEq,
  kCq,
  kQp,
  kRmp,
  kXrcSrq,
  kSrq,
  kQCounter,
  kMcg
};

struct PlainObject {
  std::uint32_t refs = 0;
};

struct MkeyObject {
  std::uint32_t refs = 0;
  std::array<std::uint8_t, prm::mkc::bytes> mkc{};  // as created
  std::uint32_t pd = 0;                             // 0: none (holds no reference)
  std::uint64_t icm = 0;                            // bytes of context memory
  std::uint64_t reserved = 0;                       // words of translation list set aside
};

struct EqObject {
  std::uint32_t refs = 0;
  std::array<std::uint8_t, prm::eqc::bytes> eqc{};
  std::array<std::uint64_t, 4> mask{};
};

struct CqObject {
  std::uint32_t refs = 0;
  std::array<std::uint8_t, prm::cqc::bytes> cqc{};
  std::uint32_t eqn = 0;
};

struct SrqObject {
  std::uint32_t refs = 0;
  ObjType kind = ObjType::kRmp;
  // rmpc, xrc_srqc or srqc, as created.
  std::array<std::uint8_t, prm::rmpc::bytes> context{};
  std::uint32_t pd = 0, xrcd = 0, cqn = 0;
};

struct QpObject {
  std::uint32_t refs = 0;  // multicast groups
  std::array<std::uint8_t, prm::qpc::bytes> qpc{};
  std::uint32_t opt_param_mask = 0;
  std::uint32_t pd = 0, scq = 0, rcq = 0, srqn = 0, counter_set = 0;
};

// Context memory (ICM) that an object takes, bytes: for page requests.
constexpr std::uint64_t kIcmQp = 1024, kIcmCq = 256, kIcmSrq = 256, kIcmEq = 256, kIcmMkey = 128, kIcmMtt = 8;

struct Objects {
  explicit Objects(const Options& o);
  void clear();

  Table<PlainObject> pds, uars, xrcds, tds, q_counters;
  Table<MkeyObject> mkeys;
  Table<EqObject> eqs;
  Table<CqObject> cqs;
  Table<SrqObject> srqs;  // RMP, XRC SRQ and SRQ share one space of numbers
  Table<QpObject> qps;
  std::uint64_t xlt_words = 0;  // translation list entries set aside, all mkeys
};

}  // namespace hcasim::fw
#endif
