// SPDX-License-Identifier: BSD-3-Clause
// The firmware's objects and which refers to which: PD by mkey, QP, SRQ; CQ by QP and XRC SRQ; EQ by CQ; SRQ
// and Q counter by QP; XRC domain by XRC SRQ and XRC QP; transport domain by TIS and TIR; TIS by SQ; RQ by
// TIR and RQT; RQT by TIR; TIR, flow table, flow counter and action contexts by flow entries. Each is a Ref
// of the object that refers; an object in use is not destroyed. What the hardware needs of an object at run
// time lies in the model's tables under the same number.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_OBJECTS_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_OBJECTS_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "firmware-stub/objects/ref.h"
#include "firmware-stub/objects/sched.h"
#include "firmware-stub/objects/table.h"
#include "firmware-stub/objects/uctx.h"
#include "firmware-stub/objects/umem.h"
#include "firmware-stub/options.h"
#include "model/port/port.h"
#include "model/state/fields.h"
#include "model/steer/definer.h"
#include "prm/prm.h"

namespace hcasim {
class Memic;
}

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

struct PlainObject : Referred {
  using ReferredAs = PlainObject;
};

struct MkeyObject : Referred {
  std::array<std::uint8_t, prm::mkc::bytes> mkc{};  // as created
  std::uint64_t icm = 0;                            // bytes of context memory
  std::uint64_t reserved = 0;                       // words of translation list set aside
  Ref<PlainObject> pd;
  Ref<PlainObject> memic;  // device memory that it is over

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, mkc, icm, reserved, pd, memic);
  }
};

struct PsvObject : Referred {
  Ref<PlainObject> pd;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, pd);
  }
};

struct EqObject : Referred {
  std::array<std::uint8_t, prm::eqc::bytes> eqc{};
  std::array<std::uint64_t, 4> mask{};

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, eqc, mask);
  }
};

struct CqObject : Referred {
  std::array<std::uint8_t, prm::cqc::bytes> cqc{};
  Ref<EqObject> eq;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, cqc, eq);
  }
};

struct SrqObject : Referred {
  ObjType kind = ObjType::kRmp;
  // rmpc, xrc_srqc, srqc or xrqc, as created.
  std::array<std::uint8_t, std::max(prm::rmpc::bytes, prm::xrqc::bytes)> context{};
  Ref<PlainObject> pd, xrcd;
  Ref<CqObject> cq;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, kind, context, pd, xrcd, cq);
  }
};

struct TisObject : Referred {
  std::array<std::uint8_t, prm::tisc::bytes> tisc{};
  Ref<PlainObject> td, pd;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, tisc, td, pd);
  }
};

struct QpObject : Referred {
  std::array<std::uint8_t, prm::qpc::bytes> qpc{};
  std::uint32_t opt_param_mask = 0;
  Ref<PlainObject> pd, xrcd, counter_set;
  Ref<CqObject> scq, rcq, departures;
  Ref<SrqObject> srq;
  std::vector<std::uint8_t> sqc;  // a send queue of its own: not a QP, whose numbers it shares
  Ref<TisObject> tis;
  bool is_sq() const { return !sqc.empty(); }
  std::vector<std::uint8_t> dctc;  // nor is a DC target
  bool is_dct() const { return !dctc.empty(); }
  bool is_qp() const { return !is_sq() && !is_dct(); }

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, qpc, opt_param_mask, pd, xrcd, counter_set, scq, rcq, departures, srq, sqc, tis, dctc);
    if constexpr (Archive::kLoads)
      a.check(
          (sqc.empty() || sqc.size() == prm::sqc::bytes) && (dctc.empty() || dctc.size() == prm::dctc::bytes),
          "a context has another size");
  }
};

struct RqObject : Referred {
  std::array<std::uint8_t, prm::rqc::bytes> rqc{};
  Ref<PlainObject> pd, counter_set;
  Ref<CqObject> cq;
  Ref<SrqObject> rmp;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, rqc, pd, counter_set, cq, rmp);
  }
};

struct RqtObject : Referred {
  std::vector<Ref<RqObject>> rqs;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, rqs);
  }
};

struct TirObject : Referred {
  std::array<std::uint8_t, prm::tirc::bytes> tirc{};
  Ref<PlainObject> td;
  Ref<RqObject> rq;    // direct
  Ref<RqtObject> rqt;  // indirect

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, tirc, td, rq, rqt);
  }
};

// What a flow entry refers to. The content of tables and entries is the model's.
struct FlowTableObject;
struct FlowSamplerObject;
struct FlowTableObject;
struct FlowEntryRefs {
  std::vector<Ref<FlowTableObject>> tables;
  std::vector<Ref<TirObject>> tirs;
  std::vector<Ref<FlowSamplerObject>> samplers;
  std::vector<Ref<PlainObject>> others;  // counters, action contexts

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, tables, tirs, samplers, others);
  }
};

struct FlowTableObject : Referred {
  Ref<FlowTableObject> miss;
  std::map<std::uint32_t, FlowEntryRefs> entries;  // by flow index

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, miss, entries);
  }
};

struct SwIcmObject : Referred {
  std::uint64_t start = 0;
  std::uint32_t log_size = 0;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, start, log_size);
  }
};

struct FlowSamplerObject : Referred {
  std::array<Ref<FlowTableObject>, 2> tables;  // of samples, of all frames
  std::uint32_t level = 0;
  bool ignore_level = false;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, tables, level, ignore_level);
  }
};

// log2: bytes of a page, of a message of a report, of all ranges together; and ranges of an object.
constexpr unsigned kLogMinTrackedPage = 12, kLogMaxTrackedPage = 21, kLogMinTrackMessage = 12,
                   kLogMaxTrackMessage = 16, kLogMinTrackSpace = 12, kLogMaxTrackSpace = 56,
                   kPageTrackRanges = 64, kLogPageTracks = 7;

// Which pages a function writes; they are noted where it writes them (model/pcie/written_pages.h).
struct PageTrackObject : Referred {
  FunctionId function = 0;
  std::uint32_t vhca_id = 0, state = 0, qpn = 0, ranges = 0;
  unsigned log_space = 0, log_page = 0, log_message = 0;
  Ref<QpObject> qp;  // that reports

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, function, vhca_id, state, qpn, ranges, log_space, log_page, log_message, qp);
    if constexpr (Archive::kLoads)
      a.check(log_page >= kLogMinTrackedPage && log_page <= kLogMaxTrackedPage &&
                  log_message >= kLogMinTrackMessage && log_message <= kLogMaxTrackMessage &&
                  log_space >= kLogMinTrackSpace && log_space <= kLogMaxTrackSpace &&
                  ranges <= kPageTrackRanges,
              "pages are not tracked that way");
  }
};

struct HeaderArgumentObject : PlainObject {
  Ref<PlainObject> pd;
  std::uint64_t bytes = 0;  // of the host's pages

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, pd, bytes);
  }
};

struct FlowMeterObject : PlainObject {
  Ref<PlainObject> pd;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, pd);
  }
};

struct DekObject : Referred {
  Ref<PlainObject> pd;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, pd);
  }
};

// Of IPsec, of MACsec.
struct SaObject : PlainObject {
  Ref<DekObject> dek;
  Ref<PlainObject> pd;  // of the queues that may access what its packets change; perhaps none

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, dek, pd);
  }
};

struct MatchDefinerObject : Referred {
  MatchDefiner definer;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, definer);
  }
};

struct FlowGroupObject : Referred {
  Ref<MatchDefinerObject> definer;

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, definer);
  }
};

// Context memory (ICM) that an object takes, bytes: for page requests.
constexpr std::uint64_t kMaxListWords = 1u << 26;  // of a function's translation lists
constexpr std::uint64_t kIcmQp = 1024, kIcmCq = 256, kIcmSrq = 256, kIcmEq = 256, kIcmMkey = 128, kIcmMtt = 8,
                        kIcmRq = 512, kIcmTir = 256, kIcmTis = 128, kIcmFlow = 128, kIcmSwIcm = 256,
                        kIcmDek = 64, kIcmIpsec = 64, kIcmMacsec = 128;

// Tables of the Ethernet link, log2 unless said otherwise.
constexpr unsigned kLogTds = 8, kLogTises = 16, kLogTirs = 14, kLogRqts = 14, kLogRqtSize = 11, kLogRqs = 14,
                   kLogSqs = 14;
constexpr unsigned kLogUcList = 7, kLogMcList = 11, kLogVlanList = 12, kLogL2Table = 12;
constexpr unsigned kLogFlowTables = 12, kLogFlowTableSize = 22, kLogFlows = 20, kLogDestinations = 5;
constexpr unsigned kSwIcms = 4096, kLogFlowSamplers = 12, kFlowSamplers = 1u << kLogFlowSamplers;  // numbers
constexpr unsigned kLogFlowMeters = 12;
constexpr unsigned kGeneveOptions = 1, kGeneveOptionWords = 1;  // of data
// Arguments of rewriting lists: of an object, and objects.
constexpr unsigned kLogHeaderArguments = 12, kLogHeaderArgumentObjects = 10;
constexpr unsigned kLogDeks = 14, kLogIpsecs = 13, kLogMacsecs = 10;
constexpr unsigned kLogPspSpis = 6;       // that one command makes
constexpr unsigned kMatchDefiners = 192;  // entries of software have 8 bits for their numbers
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
  ~Objects();
  void clear();
  // A counter, or the bulk of counters that it belongs to; null: neither.
  PlainObject* find_flow_counter(std::uint32_t id);
  // The number under which it was allocated: its bulk's first one, or its own.
  std::uint32_t allocated_counter(std::uint32_t id) const;

  // Of the device memory that holds all of [addr, addr + len); null: none does.
  PlainObject* memic_holding(Memic& memory, std::uint64_t addr, std::uint64_t len);

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
  Table<FlowTableObject> flow_tables;
  Table<FlowGroupObject> flow_groups;
  Table<PlainObject> flow_counters, modify_headers, reformats;  // the content is the model's
  struct CounterBulk : PlainObject {
    std::uint32_t count = 0;

    template <class Archive>
    void list_state(Archive& a) {
      Referred::list_state(a);
      HCASIM_FIELDS(a, count);
    }
  };
  std::map<std::uint32_t, CounterBulk> counter_bulks;                // by the first counter's number
  std::map<std::uint64_t, PlainObject> memics;                       // device memory, by its first byte
  std::map<std::pair<std::uint32_t, Gid>, Ref<QpObject>> multicast;  // who is in which group, by QPN
  Table<SwIcmObject> sw_icms;
  Table<FlowSamplerObject> flow_samplers;
  Table<FlowMeterObject> flow_meters;
  Table<HeaderArgumentObject> header_arguments;  // by the object; its arguments' numbers are made of that
  Table<MatchDefinerObject> match_definers;
  Table<PageTrackObject> page_tracks;
  Table<DekObject> deks;
  Table<SaObject> ipsecs, macsecs;
  Table<PlainObject> reserved_qpns;  // by the block: number n has the n-th from kFirstReservedQpn on
  std::uint32_t flows = 0;           // entries of all flow tables
  std::uint64_t list_words = 0;      // of translation lists set aside: of mkeys, UMEMs and queues' rings
  UserContexts users;
  Table<UmemObject> umems;
  UmemUsers umem_users;
  Table<SchedObject> sched_elements;
  SchedUsers sched_users;
  std::uint32_t general_objects = 0;  // of all types

  // What a function may still set aside: this memory is the host's, whatever pages it is charged for.
  std::uint64_t list_words_left() const { return kMaxListWords - std::min(kMaxListWords, list_words); }
  void take_list(std::uint64_t words) { list_words += words; }
  // Of a state that counted fewer kinds of lists, more may come back than was taken.
  void return_list(std::uint64_t words) { list_words -= std::min(list_words, words); }

  // A reset ends all references before it ends an object: those of flow entries, groups and users, then those
  // of the objects in tables to each other.
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets) {
      flow_tables.for_each([](std::uint32_t, FlowTableObject& table) { table.entries.clear(); });
      multicast.clear();
      const auto end = [&a](auto&... tables) { (tables.end_references(a), ...); };
      end(page_tracks, flow_samplers, flow_tables, flow_groups, flow_counters, modify_headers, reformats,
          flow_meters, header_arguments, ipsecs, macsecs, match_definers, deks, tirs, rqts, rqs, qps, tises,
          srqs, mkeys, psvs, cqs, eqs, umems, sched_elements, sw_icms, reserved_qpns, pds, uars, xrcds, tds,
          q_counters);
    }
    HCASIM_FIELDS(a, users, umem_users, sched_users, multicast, page_tracks, flow_samplers, flow_tables,
                  flow_groups, flow_counters, counter_bulks, modify_headers, reformats, flow_meters,
                  header_arguments, ipsecs, macsecs, match_definers, deks, tirs, rqts, rqs, qps, tises, srqs,
                  mkeys, memics, psvs, cqs, eqs, umems, sched_elements, sw_icms, reserved_qpns, pds, uars,
                  xrcds, tds, q_counters, flows);
    a("xlt_words", list_words);
    HCASIM_FIELDS(a, general_objects);
  }
};

}  // namespace hcasim::fw
#endif
