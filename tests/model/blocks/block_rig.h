// SPDX-License-Identifier: BSD-3-Clause
// What the blocks under test call: leaf blocks as they are (DMA over an array, translation, CQs, EQs, tables,
// the port with a wire that keeps what it gets), and fakes in place of what stands above them (the engines
// that have turns, QP state changes, firmware). Each test adds, or takes from here, the one block it is
// about.
#ifndef HCASIM_TESTS_MODEL_BLOCKS_BLOCK_RIG_H
#define HCASIM_TESTS_MODEL_BLOCKS_BLOCK_RIG_H

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "fake_host.h"
#include "model/cc/congestion.h"
#include "model/cq/cq.h"
#include "model/crypto/engine.h"
#include "model/ctx/context_gate.h"
#include "model/ctx/fetch.h"
#include "model/ctx/q_counters.h"
#include "model/ctx/qp.h"
#include "model/ctx/qp_states.h"
#include "model/eq/eq.h"
#include "model/fault/injector.h"
#include "model/firmware_port.h"
#include "model/function/vport.h"
#include "model/function/vports.h"
#include "model/health.h"
#include "model/pcie/dma.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/req/requester.h"
#include "model/resp/responder.h"
#include "model/rx/receive_pipeline.h"
#include "model/sched/qos.h"
#include "model/sched/scheduler.h"
#include "model/sched/transmit_pipeline.h"
#include "model/steer/flow.h"
#include "model/steer/rdma.h"
#include "model/tm/tag_unit.h"
#include "model/tpt/fault.h"
#include "model/tpt/tpt.h"
#include "traces/tracer.h"

namespace hcasim::test {

// Takes notes of turns and doorbells, and wants what it was told to want; or passes turns on.
class FakeEngine : public TurnTaker, public DoorbellWatcher {
 public:
  struct Seen {
    Time at;
    std::uint32_t qpn;
  };
  TurnResult turn(Time t, Qp& qp) override {
    turns.push_back({t, qp.qpn});
    if (to) return to->turn(t, qp);
    if (results.empty()) return {t, kNever};
    TurnResult r = results.front();
    results.pop_front();
    r.engine_free += t;
    if (r.again != kNever) r.again += t;
    return r;
  }
  void doorbell(Time t, Qp& qp) override { doorbells.push_back({t, qp.qpn}); }

  TurnTaker* to = nullptr;
  std::deque<TurnResult> results;  // of the next turns, times from the turn's start; then: no other turn
  std::vector<Seen> turns, doorbells;
};

class FakeWire : public Wire {
 public:
  void transmit(Time t, const PacketRef& packet) override { sent.emplace_back(t, packet); }
  std::vector<std::pair<Time, PacketRef>> sent;
};

// Takes a QP to ERR as QpStates does, with one engine to flush, if any.
class FakeErrors : public QpErrors {
 public:
  void qp_error(Time t, Qp& qp, std::uint8_t event_type) override {
    events.push_back(event_type);
    qp.state = QpState::kErr;
    if (engine) engine->flush(t, qp);
  }
  QpEngine* engine = nullptr;
  std::vector<std::uint8_t> events;  // EQE types
};

class FakeFirmware : public FirmwarePort {
 public:
  std::uint32_t init_seg_read(std::uint32_t) override { return 0; }
  void init_seg_write(std::uint32_t, std::uint32_t) override {}
  void function_reset() override {}
  void qp_failed(std::uint32_t qpn) override { failed.push_back(qpn); }
  void fatal(const char* what) noexcept override { ADD_FAILURE() << what; }
  std::vector<std::uint32_t> failed;
};

// The blocks of a card with two functions: what tests do is the second one's, so that a block which takes the
// first for the only one is seen to.
struct BlockRig {
  BlockRig();
  void reset();
  template <class T>
  static PerFunction<T> both(T& idle, T& used) {
    return PerFunction<T>({&idle, &used});
  }
  PerFunction<QpTable> both_qps() { return both(idle_qps, qps); }
  // Runs the simulation for a time, with everything that is due at its end.
  static void run_ns(double ns);

  Profile profile;
  FakeHost idle_host, host;
  int expected_faults = 0;
  Faults faults{expected_faults};
  traces::Tracer tracer;
  FakeFirmware idle_firmware, firmware;
  FakeErrors errors;
  FakeWire wire;
  FakeEngine request_turns, response_turns, prefetcher, doorbell_faults;

  traces::FunctionTracer idle_tracer{tracer, 0}, function_tracer{tracer, kFunction};
  Health idle_health, health;
  Injector injector;
  QpTable idle_qps{0}, qps{kFunction};
  EqTable idle_eqs{0}, eq_table{kFunction};
  InterruptPace idle_pace, interrupt_pace;
  CqTable idle_cqs{0}, cq_table{kFunction};
  MkeyTable idle_keys{0}, keys{kFunction};
  PsvTable idle_psvs, psvs;
  Dma dma;
  ContextFetch contexts;
  TransmitPipeline tx;
  ReceivePipeline rx;
  ContextGate gate;
  EqUnit eqs;
  CqUnit cqs;
  Tpt tpt;
  PageFaults page_faults;
  QCounters idle_q_counters, q_counters;
  FlowSteering idle_flows, flows;
  Vport idle_vport{0}, vport{kFunction};
  Vports vports{both(idle_vport, vport)};
  Port port;
  RdmaSteering rdma;
  Qos idle_qos, qos;
  TrafficClasses classes;
  Scheduler scheduler;
  CongestionControl cc;
  TagUnit tags;
  EthTable idle_eth, eth;
  DekTable idle_deks, deks;
  IpsecTable idle_ipsec, ipsec;
  MacsecTable idle_macsec, macsec;
  PspKeys idle_psp, psp;
  CryptoEngine crypto;
  // SystemC modules both, so they are made with the rest; who tests one connects it, and leaves the other
  // out.
  Requester requester;
  Responder responder;

  // --- Objects as firmware makes them; all memory is the host's, at these bus addresses
  static constexpr std::uint64_t kEqRing = 0x10000, kCqRing = 0x20000, kCqDbr = 0x30000, kQpRing = 0x40000,
                                 kQpDbr = 0x50000, kSrqRing = 0x58000, kSrqDbr = 0x59000, kData = 0x60000,
                                 kDataBytes = 0x10000;
  static constexpr FunctionId kFunction = 1;
  static constexpr std::uint32_t kEqn = 3, kCqn = 9, kQpn = 0x51, kRemoteQpn = 0x1234, kPd = 6, kSrqn = 0x21,
                                 kUarPage = 7, kVector = 2;
  static constexpr unsigned kSqOffset = 1024, kLogSq = 3, kLogRq = 2, kMtu = 1024;
  static constexpr std::uint16_t kLid = 1, kRemoteLid = 2;

  Eq& make_eq();  // takes completion events and all async ones; armed
  Cq& make_cq(unsigned log_size = 4);
  // RC in RTS, on an InfiniBand link, path to kRemoteLid; completes into make_cq()'s.
  Qp& make_qp(std::uint32_t qpn = kQpn);
  // Covers kData, virtual address = bus address.
  Mkey& make_key(std::uint32_t index, AccessRights rights);

  template <class T>
  T load(std::uint64_t addr) const {
    T v;
    std::memcpy(&v, &host.memory[addr], sizeof v);
    return v;
  }
  template <class T>
  void store(std::uint64_t addr, const T& v) {
    std::memcpy(&host.memory[addr], &v, sizeof v);
  }
  prm::Cqe cqe(unsigned i) const { return load<prm::Cqe>(kCqRing + 64 * i); }
  prm::ErrCqe err_cqe(unsigned i) const { return load<prm::ErrCqe>(kCqRing + 64 * i); }
  prm::Eqe eqe(unsigned i) const { return load<prm::Eqe>(kEqRing + 64 * i); }
  unsigned interrupts() const;
  const Packet& sent(std::size_t i) const { return *wire.sent.at(i).second; }
  // Opcode of the i-th packet sent, without its transport.
  prm::BthOp sent_op(std::size_t i) const;
  std::vector<std::uint32_t> sent_psns() const;
};

// The one of this process: made before SystemC elaborates.
BlockRig& block_rig();

class SingleBlockTest : public ::testing::Test {
 protected:
  void SetUp() override { r.reset(); }
  void TearDown() override {
    EXPECT_EQ(r.expected_faults, 0);
    r.reset();
  }
  BlockRig& r = block_rig();
};

}  // namespace hcasim::test
#endif
