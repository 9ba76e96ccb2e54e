// SPDX-License-Identifier: BSD-3-Clause
// The firmware's objects and who refers to whom: PD by mkey, QP, SRQ; CQ by QP and XRC SRQ; EQ by CQ; SRQ and
// Q counter by QP; XRC domain by XRC SRQ and XRC QP; transport domain by TIS and TIR; TIS by SQ; RQ by TIR
// and RQT; RQT by TIR; TIR, flow table, flow counter and action contexts by flow entries. `refs` counts them;
// an object in use is not destroyed. What the hardware needs of an object at run time lies in the model's
// tables under the same number.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_OBJECTS_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_OBJECTS_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "firmware-stub/objects/sched.h"
#include "firmware-stub/objects/table.h"
#include "firmware-stub/objects/uctx.h"
#include "firmware-stub/objects/umem.h"
#include "firmware-stub/options.h"
#include "prm/prm.h"

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
  kMcg,
  kTis,
  kTir,
  kRqt,
  kRq,
  kSq,
  kFlowTable,
  kFlowGroup,
  kFlowCounter,
  kUctx,
  kUmem,
  kMemic,
  kPsv,
  kDct,
  kModifyHeader,
  kReformat,
  kXrq,
  kSchedElement,
  kPace
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
  std::uint64_t memic = 0;                          // device memory that it is over; 0: none
};

struct PsvObject {
  std::uint32_t refs = 0;
  std::uint32_t pd = 0;
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
  // rmpc, xrc_srqc, srqc or xrqc, as created.
  std::array<std::uint8_t, std::max(prm::rmpc::bytes, prm::xrqc::bytes)> context{};
  std::uint32_t pd = 0, xrcd = 0, cqn = 0;
};

struct QpObject {
  std::uint32_t refs = 0;  // multicast groups
  std::array<std::uint8_t, prm::qpc::bytes> qpc{};
  std::uint32_t opt_param_mask = 0;
  std::uint32_t pd = 0, scq = 0, rcq = 0, srqn = 0, counter_set = 0, xrcd = 0;
  std::vector<std::uint8_t> sqc;  // a send queue of its own: not a QP, whose numbers it shares
  std::uint32_t tis = 0;
  bool is_sq() const { return !sqc.empty(); }
  std::vector<std::uint8_t> dctc;  // nor is a DC target
  bool is_dct() const { return !dctc.empty(); }
  bool is_qp() const { return !is_sq() && !is_dct(); }
};

struct TisObject {
  std::uint32_t refs = 0;  // SQs
  std::array<std::uint8_t, prm::tisc::bytes> tisc{};
};

struct TirObject {
  std::uint32_t refs = 0;  // flow entries
  std::array<std::uint8_t, prm::tirc::bytes> tirc{};
};

struct SwIcmObject {
  std::uint32_t refs = 0;
  std::uint64_t start = 0;
  std::uint32_t log_size = 0;
};

struct FlowSamplerObject {
  std::uint32_t refs = 0;  // flow entries
  std::uint32_t level = 0;
  bool ignore_level = false;
};

struct RqtObject {
  std::uint32_t refs = 0;  // TIRs
};

struct RqObject {
  std::uint32_t refs = 0;  // TIRs, RQTs
  std::array<std::uint8_t, prm::rqc::bytes> rqc{};
};

// Context memory (ICM) that an object takes, bytes: for page requests.
constexpr std::uint64_t kIcmQp = 1024, kIcmCq = 256, kIcmSrq = 256, kIcmEq = 256, kIcmMkey = 128, kIcmMtt = 8,
                        kIcmRq = 512, kIcmTir = 256, kIcmTis = 128, kIcmFlow = 128, kIcmSwIcm = 256;

// Tables of the Ethernet link, log2 unless said otherwise.
constexpr unsigned kLogTds = 8, kLogTises = 12, kLogTirs = 14, kLogRqts = 14, kLogRqtSize = 11, kLogRqs = 14,
                   kLogSqs = 14;
constexpr unsigned kLogUcList = 7, kLogMcList = 11, kLogVlanList = 12;
constexpr unsigned kLogFlowTables = 12, kLogFlowTableSize = 22, kLogFlows = 20, kLogDestinations = 5;
constexpr unsigned kSwIcms = 4096, kFlowSamplers = 4096;                // numbers
constexpr unsigned kFlowLevels = 128;                                   // a number
constexpr unsigned kFlowCounters = 1u << 16, kLogFlowCounterBulk = 10;  // the first a number
// Counters allocated many at a time: flow_counter_bulk_alloc's units of 128, and the numbers given to them.
constexpr unsigned kCounterBulkUnit = 128, kCounterBulkUnits = 15, kFirstBulkCounter = 1u << 17,
                   kBulkCounters = 1u << 18;

// Numbers that no QP gets, 2^kLogReservedQpns to an object, above those of QPs.
constexpr unsigned kLogReservedQpns = 6, kReservedQpnBlocks = 4096;
constexpr std::uint32_t kFirstReservedQpn = 1u << 23;

constexpr std::uint64_t kMaxMemic = 128u << 10;  // bytes of one piece of device memory
constexpr unsigned kBsfOctowords = 4;            // of an mkey with signatures
constexpr unsigned kLogPsvs = 16;
constexpr unsigned kLogMemicAlign = 8;  // its alignment, of 64 bytes

struct Objects {
  explicit Objects(const Options& o);
  void clear();
  // A counter, or the bulk of counters that it belongs to; null: neither.
  PlainObject* find_flow_counter(std::uint32_t id);
  // The number under which it was allocated: its bulk's first one, or its own.
  std::uint32_t allocated_counter(std::uint32_t id) const;

  Table<PlainObject> pds, uars, xrcds, tds, q_counters;
  Table<MkeyObject> mkeys;
  Table<PsvObject> psvs;
  Table<EqObject> eqs;
  Table<CqObject> cqs;
  Table<SrqObject> srqs;  // RMP, XRC SRQ and SRQ share one space of numbers
  Table<QpObject> qps;    // and SQs
  Table<TisObject> tises;
  Table<TirObject> tirs;
  Table<RqtObject> rqts;
  Table<RqObject> rqs;
  Table<PlainObject> flow_tables, flow_groups, flow_counters;  // the content is the model's
  Table<PlainObject> modify_headers, reformats;                // likewise
  struct CounterBulk : PlainObject {
    std::uint32_t count = 0;
  };
  std::map<std::uint32_t, CounterBulk> counter_bulks;  // by the first counter's number
  Table<SwIcmObject> sw_icms;
  Table<FlowSamplerObject> flow_samplers;
  Table<PlainObject> reserved_qpns;  // by the block: number n has the n-th from kFirstReservedQpn on
  std::uint32_t flows = 0;           // entries of all flow tables
  std::uint64_t xlt_words = 0;       // translation list entries set aside, all mkeys
  UserContexts users;
  Table<UmemObject> umems;
  UmemUsers umem_users;
  Table<SchedObject> sched_elements;
  SchedUsers sched_users;
  std::uint32_t general_objects = 0;  // of all types
};

}  // namespace hcasim::fw
#endif
