// SPDX-License-Identifier: BSD-3-Clause
// The completion unit: CQs (cqc of mlx5_ifc.h), CQE writing, arming, moderation, resize, overrun.
#ifndef HCASIM_MODEL_CQ_CQ_H
#define HCASIM_MODEL_CQ_CQ_H

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "model/ctx/fetch.h"
#include "model/ctx/guest_ring.h"
#include "model/doorbell.h"
#include "model/eq/eq.h"
#include "model/fault/injector.h"
#include "model/function/id.h"
#include "model/function/number_table.h"
#include "model/occupancy.h"
#include "model/pcie/dma.h"
#include "model/state/fields.h"
#include "model/state/qp_tags.h"
#include "model/timed_queue.h"
#include "prm/cqe.h"

namespace hcasim {

// CQEs of received frames that wait to be written as one block: a title and mini CQEs (cqc.cqe_comp_en).
struct CqeBlock {
  prm::MiniFormat format{};
  prm::Cqe title{};  // the first of them, whole
  struct One {
    std::uint32_t hash, byte_cnt;
    std::uint16_t check_sum, counter;
    std::uint32_t trace_qpn, wqe_serial;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, hash, byte_cnt, check_sum, counter, trace_qpn, wqe_serial);
      state::qp_tags(a, trace_qpn);
    }
  };
  std::vector<One> cqes;
  bool solicited = false;
  std::uint64_t serial = 0;  // of the block that is open

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, format, title, cqes, solicited, serial);
  }
};

struct Cq {
  std::uint32_t cqn = 0;
  FunctionId function = 0;
  GuestRing ring;
  unsigned log_size = 0;   // CQEs
  unsigned cqe_size = 64;  // bytes: 64 or 128
  bool padded = false;     // cqc.cqe_sz 2: all 128 bytes are written, whether the first half is used or not
  std::uint32_t eqn = 0;   // cqc.c_eqn_or_apu_element
  std::uint64_t dbr_addr = 0;            // +0 consumer index, +4 arm word
  std::uint32_t uar_page = kAnyUarPage;  // cqc.uar_page
  bool overrun_ignore = false;           // cqc.oi
  unsigned period_us = 0;                // moderation: cqc.cq_period, cq_max_count; 0 = off
  unsigned max_count = 0;
  bool period_from_cqe = false;  // cqc.cq_period_mode: 0: since the last event, 1: each CQE begins it anew
  std::uint32_t producer = 0;    // free-running
  std::uint32_t consumer = 0;    // last read from the DBR, 24 bits extended
  bool armed = false, armed_solicited = false;
  std::uint32_t moderated = 0;      // CQEs since the last event
  bool error = false;               // overrun or refused write: no further CQE
  bool any_solicited = false;       // a solicited or error CQE was written ...
  std::uint32_t solicited_end = 0;  // ... and the producer count behind the last one
  std::uint32_t recorded = 0;       // consumer index as last read from the DBR, 24 bits
  std::uint8_t arm_sn = 0;          // sequence number of the last arming doorbell, 2 bits ...
  std::uint32_t unseen = 0;         // ... and events that it does not count yet
  std::uint32_t traced = 0;         // consumer index last written to the trace
  // The moderation period that runs: its serial number; 0 = none. It begins with an event, or
  // (period_from_cqe) with each CQE that counts.
  std::uint64_t timer = 0;
  std::unique_ptr<CqeBlock> block;  // compression, if it is on
  traces::Subject subject() const { return {function, cqn}; }
  void prefetch() const { prefetch_range(this, offsetof(Cq, block)); }
  bool moderates() const { return period_us != 0 && max_count > 1; }
  // A CQE beyond the consumer index ci waits; solicited_only: a solicited one, of which one lies beyond ci
  // when the count behind the last one does.
  bool waiting(std::uint32_t ci, bool solicited_only) const {
    constexpr std::uint32_t kIndex = 0xffffff;
    const std::uint32_t beyond = (producer - ci) & kIndex;  // CQEs of any kind
    return solicited_only ? any_solicited && producer - solicited_end < beyond : beyond != 0;
  }
  std::uint32_t held() const { return block ? static_cast<std::uint32_t>(block->cqes.size()) : 0; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, cqn, ring, log_size, cqe_size, padded, eqn, dbr_addr, overrun_ignore, period_us,
                  max_count, period_from_cqe, producer, consumer, armed, armed_solicited, moderated, error,
                  any_solicited, solicited_end, recorded, arm_sn, unseen, traced, timer, block);
    HCASIM_FIELDS_SINCE(18, a, uar_page);
    if constexpr (Archive::kLoads) a.check(cqe_size == 64 || cqe_size == 128, "no CQE has such a size");
  }
};

// What a CQE says of a received frame.
struct FrameCompletion {
  std::uint16_t wqe_id = 0;  // striding: index of the WQE; wqe_counter is the stride's
  std::uint32_t rss_hash = 0;
  std::uint8_t rss_type = 0;  // [1:0] source IP, [3:2] destination IP: 1 IPv4, 2 IPv6; [5:4], [7:6] ports
  std::uint16_t check_sum = 0;
  std::uint8_t ok = 0;           // Cqe::kL2Ok ...
  std::uint8_t header_type = 0;  // l4_l3_hdr_type
  std::uint16_t vlan = 0;
  bool tunneled = false, outer_ipv6 = false;
  std::uint8_t tls = 0;  // prm::CqeTls
  std::uint32_t flow_tag = 0;
  std::uint8_t segments = 0;            // LRO: of the queue's frames; more than one: put together
  std::array<std::uint8_t, 8> merge{};  // Cqe::merge
  bool alone = false;                   // never part of a block
};

// What a CQE says of a signature error.
struct SignatureCompletion {
  std::uint32_t mkey = 0;
  bool memory = false;  // the domain: memory or wire
  std::uint16_t syndrome = 0;
  std::uint64_t expected = 0, actual = 0, offset = 0;
};

// A CQE's content, in host order; the unit lays it out (prm/cqe.h).
struct Completion {
  std::uint8_t opcode = 0;       // cqe op_own[7:4]
  std::uint8_t send_opcode = 0;  // sop_drop_qpn[31:24], requester CQEs
  std::uint32_t qpn = 0;         // local QP
  std::uint32_t user_index = 0;  // word 32: srqn or user index
  std::uint16_t wqe_counter = 0;
  std::uint32_t byte_cnt = 0;
  std::uint32_t imm = 0;  // immediate, invalidated rkey (host order), or pkey for GSI
  bool solicited = false;
  std::uint16_t slid = 0;
  std::uint32_t flags_rqpn = 0;  // UD: source QP, sl or RoCE's header type, GRH flag
  bool has_vlan = false;         // UD on RoCE: the packet had a tag
  std::uint16_t vlan = 0;
  std::uint8_t ml_path = 0;
  std::uint8_t syndrome = 0;  // error CQEs
  std::uint8_t vendor_syndrome = 0;
  const FrameCompletion* frame = nullptr;          // not kept
  const SignatureCompletion* signature = nullptr;  // likewise
  // Data that lies in the CQE instead of the buffers: up to inline_room() bytes. Not kept.
  const std::uint8_t* inline_data = nullptr;
  std::uint32_t inline_len = 0;
  // Tag matching: TmOp (0: none), entry of the list; what lies in the CQE's first bytes, up to 16. Not kept.
  std::uint8_t tm_op = 0;
  std::uint16_t tm_index = 0;
  const std::uint8_t* tm_head = nullptr;
  std::uint32_t tm_head_len = 0;
  std::optional<Time> timestamp;  // of what it reports, if that is not when the CQE is made
  WriteOwner behind;              // whose writes it completes; nobody: it waits for all that are queued
  // Trace correlation (requester's QPN and WQE serial).
  std::uint32_t trace_qpn = 0, wqe_serial = 0;
};

// The CQs of a function.
using CqTable = NumberTable<Cq, &Cq::cqn>;

// Completes work of all functions; each into CQs of its own.
class CqUnit : public sc_core::sc_module {
 public:
  CqUnit(const sc_core::sc_module_name& name, const Profile& profile, Dma& dma, ContextFetch& contexts,
         EqUnit& eqs, traces::Tracer& tracer, FaultSink& faults, PerFunction<CqTable> tables);

  Cq* find(FunctionId f, std::uint32_t cqn) const { return tables_[f].find(cqn); }
  bool destroy(FunctionId f, std::uint32_t cqn);  // the CQEs posted so far are written first
  // It was there, and has been destroyed since t - kLateArm. Drivers arm CQs when they count as done with
  // them (Linux: mlx5e_napi_poll(), behind napi_complete_done()), and a processor of a busy host can lose its
  // turn just there.
  bool went_lately(Time t, FunctionId f, std::uint32_t cqn) const;
  static constexpr Time kLateArm = from_ns(100'000'000);
  void clear();
  // The function is reset: none of its contexts is on the chip any more.
  void invalidate_all_of(FunctionId f) {
    cache_.invalidate_if([f](std::uint64_t id) { return function_of_context(id) == f; });
  }

  // Writes a CQE that is complete at t, then the event if armed. Returns when it is visible. Behind it in the
  // DMA queue lies everything posted before (payload first). A full CQ: overrun, CQ error event, as hardware.
  Time post(Time t, Cq& cq, const Completion& c);
  // How many bytes a CQE of this queue carries for a QP that asks for `want` (qpc.cs_res, low half of
  // cs_req).
  static std::uint32_t inline_room(const Cq& cq, prm::InlineScatter want);

  // Writes what compression has held back.
  void settle(Time t, Cq& cq) { close_block(t, cq); }
  // Of all CQs of the function: neither a CQE nor an event is held back any more.
  void settle_all_of(Time t, FunctionId f);
  // Compression: the most CQEs of one block, and how long the first of them is held.
  static constexpr unsigned kMaxBlock = 64;
  static constexpr Time kBlockTime = from_ns(1000);

  // UAR page `page`, +0x20: arm word (cmd and sn in [31:24], ci [23:0]) and cqn.
  DoorbellFate arm(Time t, FunctionId f, std::uint32_t cqn, std::uint32_t arm_word, std::uint32_t page);

  // MODIFY_CQ resize: writes a RESIZE_CQ CQE as last of the old ring and goes on in the new one. False when
  // the old ring has no room for it or the unconsumed CQEs exceed the new size.
  bool resize(Time t, Cq& cq, GuestRing ring, unsigned log_size);

  void take_faults_from(Injector& injector) { gate_.attach(injector); }
  // As an overrun or a refused write: no further CQE, the error event, and its QPs fail with it.
  void break_cq(Time t, Cq& cq, std::uint8_t syndrome) {
    close_block(t, cq);
    fail(t, cq, syndrome);
  }
  // A CQ has failed: reported from a process of this unit's own, when no engine is at work on a queue.
  using Failed = std::function<void(Time, const Cq&)>;
  void on_failed(Failed handler) { failed_ = std::move(handler); }

  // The host refused to take a CQE: no further one is written, CQ error event.
  void write_refused(Time t, FunctionId f, std::uint32_t cqn);

  void prefetch() const {
    cache_.prefetch();
    unit_.prefetch();
    prefetch_line(&completions_);
  }

  std::uint64_t completions() const { return completions_; }
  std::uint64_t overruns() const { return overruns_; }
  std::uint64_t compressed() const { return compressed_; }  // CQEs that were parts of blocks

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, cache_, unit_, periods_, blocks_, failures_, completions_, overruns_, compressed_);
    HCASIM_FIELDS_SINCE(4, a, gone_);
    a.lasting("serial", serial_);
  }

 private:
  struct Period {
    std::uint32_t cqn;
    FunctionId function;
    std::uint64_t serial;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, cqn, function, serial);
    }
  };
  struct Gone {
    std::uint32_t cqn;
    FunctionId function;
    Time at;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, cqn, function, at);
    }
  };
  static constexpr std::size_t kMostGone = 256;
  bool has_room(Time t, Cq& cq);
  void check_record(Time t, Cq& cq, std::uint32_t ci);
  void check_arm(Time t, Cq& cq, std::uint32_t arm_word);
  void consumed(Time t, Cq& cq, std::uint32_t ci);
  void trace_consumed(Time t, Cq& cq, std::uint32_t consumer);
  // Writes a CQE laid out but for its owner bit; false: the CQ is broken.
  // `head`: the entry's first half, null if nothing is to be written there.
  bool write(Time t, Cq& cq, prm::Cqe& cqe, const std::uint8_t* head, bool group, WriteOwner behind,
             Time& visible);
  Time event(Time t, Cq& cq);
  // Whether n CQEs that are about to be written raise an event, and what follows when they are.
  bool fires(Cq& cq, std::uint32_t n, bool solicited, bool& counts);
  void written(Time t, Cq& cq, bool solicited, bool counts, bool fire);
  void trace_written(Time t, const Cq& cq, std::uint32_t index, const prm::Cqe& cqe, std::uint32_t trace_qpn,
                     std::uint32_t serial);

  // compress.cpp
  bool hold(Time t, Cq& cq, const Completion& c, const prm::Cqe& cqe);
  void close_block(Time t, Cq& cq);
  bool write_slot(Time t, Cq& cq, std::uint32_t index, const void* bytes, bool group, Time& visible);
  void on_block(Time due, const Period& block);
  void fail(Time t, Cq& cq, std::uint8_t syndrome);
  // Applies injected faults to a completion. True: it is not to be written; late: by how much.
  bool inject(Time t, Cq& cq, const Completion& c, Time& late);
  static bool event_may_come(const Cq& cq);
  void begin_period(Time t, Cq& cq);
  void on_period(Time due, const Period& period);

  const Profile& profile_;
  Dma& dma_;
  ContextFetch& contexts_;
  EqUnit& eqs_;
  traces::Tracer& tracer_;
  const PerFunction<CqTable> tables_;
  ContextCache cache_;
  FaultGate gate_;
  Occupancy unit_;
  std::uint64_t serial_ = 0;
  std::uint64_t completions_ = 0, overruns_ = 0, compressed_ = 0;
  std::vector<Gone> gone_;  // the latest, in their order
  TimedQueue<Period> periods_;
  TimedQueue<Period> blocks_;
  TimedQueue<Period> failures_;
  Failed failed_;
};

}  // namespace hcasim
#endif
