// SPDX-License-Identifier: BSD-3-Clause
#include "block_rig.h"

namespace hcasim::test {

BlockRig::BlockRig()
    : idle_health(host, idle_tracer, idle_firmware),
      health(host, function_tracer, firmware),
      injector("injector", tracer, faults),
      dma("dma", profile, PerFunction<HostPort>({&idle_host, &host}), tracer, faults),
      contexts(profile, [this](Time t, unsigned bytes) { return dma.context_read(t, bytes); }),
      tx(profile, tracer),
      rx({profile, tracer, dma}),
      gate({profile, tracer, contexts, faults, both_qps(), both(idle_health, health)}),
      eqs(profile, dma, tracer, both(idle_eqs, eq_table), both(idle_pace, interrupt_pace)),
      cqs("cqs", profile, dma, contexts, eqs, tracer, faults, both(idle_cqs, cq_table)),
      tpt(profile, contexts, both(idle_keys, keys), both(idle_psvs, psvs)),
      page_faults({tracer, both_qps(), eqs}),
      port("port", profile, tracer, faults, vports),
      rdma({port, both(idle_flows, flows)}),
      idle_qos(profile.port.rate_gbps * 1000),
      qos(profile.port.rate_gbps * 1000),
      scheduler("scheduler", {profile, tracer, faults, port, both(idle_qos, qos), classes, injector,
                              request_turns, response_turns, prefetcher, doorbell_faults, both_qps()}),
      cc({profile, tracer, port, rdma, both_qps()}),
      tags({tracer, scheduler, both_qps(), cqs}),
      crypto({profile, tracer, both(idle_eth, eth), both(idle_deks, deks), both(idle_ipsec, ipsec),
              both(idle_macsec, macsec), both(idle_psp, psp), eqs}),
      requester("requester", {profile,
                              tracer,
                              faults,
                              scheduler,
                              tx,
                              rx,
                              gate,
                              cc,
                              both(idle_qos, qos),
                              dma,
                              port,
                              rdma,
                              both(idle_flows, flows),
                              tpt,
                              tags,
                              crypto,
                              both(idle_vport, vport),
                              both_qps(),
                              cqs,
                              eqs,
                              page_faults,
                              both(idle_q_counters, q_counters),
                              errors,
                              PerFunction<FirmwarePort>({&idle_firmware, &firmware})}),
      responder("responder", {profile,
                              tracer,
                              faults,
                              scheduler,
                              tx,
                              rx,
                              gate,
                              cc,
                              both(idle_qos, qos),
                              dma,
                              port,
                              rdma,
                              tpt,
                              tags,
                              both(idle_vport, vport),
                              both_qps(),
                              cqs,
                              eqs,
                              page_faults,
                              both(idle_q_counters, q_counters),
                              errors}) {
  sc_core::sc_report_handler::set_actions(sc_core::SC_ID_NO_SC_START_ACTIVITY_, sc_core::SC_DO_NOTHING);
  gate.connect(responder, requester);
  port.connect(&wire);
  qos.attach(classes);
  idle_qos.attach(classes);
}

void BlockRig::run_ns(double ns) {
  if (ns > 0) sc_core::sc_start(to_sc(from_ns(ns)), sc_core::SC_RUN_TO_TIME);
  while (sc_core::sc_pending_activity_at_current_time()) sc_core::sc_start(sc_core::SC_ZERO_TIME);
}

void BlockRig::reset() {
  run_ns(1);  // elaborates, the first time
  dma.reset();
  scheduler.clear();
  requester.clear();
  responder.clear();
  rx.clear();
  tags.clear();
  port.reset();
  vport.reset();
  cc.reset();
  flows.clear();
  cqs.clear();
  cq_table.clear();
  eqs.clear();
  eq_table.clear();
  tpt.clear();
  keys.clear();
  page_faults.clear();
  qps.clear();
  gate.clear();
  contexts.clear();
  tx.clear();
  q_counters.clear();
  injector.end_all();
  dma.set_enabled(kFunction, true);
  host.clear();
  expected_faults = 0;
  firmware.failed.clear();
  errors = {};
  wire.sent.clear();
  for (FakeEngine* e : {&request_turns, &response_turns, &prefetcher, &doorbell_faults}) *e = {};
  port.set_link(LinkType::kIb);
  port.set_state(PortState::kActive);
  port.set_lid(kLid);
  vport.pkeys[0] = 0xffff;
}

Eq& BlockRig::make_eq() {
  Eq& eq = *eq_table.create(kEqn);
  eq.ring.pages = {kEqRing};
  eq.log_size = 5;
  eq.vector = kVector;
  eq.uar_page = kUarPage;
  eq.mask.fill(~std::uint64_t{0});
  eqs.doorbell(sim_now(), kFunction, kEqn, 0, true, kUarPage);
  return eq;
}

Cq& BlockRig::make_cq(unsigned log_size) {
  Cq& cq = *cq_table.create(kCqn);
  cq.ring.pages = {kCqRing};
  cq.log_size = log_size;
  cq.eqn = kEqn;
  cq.dbr_addr = kCqDbr;
  cq.uar_page = kUarPage;
  for (std::uint64_t i = 0; i < 1u << log_size; ++i) host.memory[kCqRing + 64 * i + 63] = 0xf1;
  return cq;
}

Qp& BlockRig::make_qp(std::uint32_t qpn) {
  Qp& qp = *qps.create(qpn);
  qp.state = QpState::kRts;
  qp.pd = kPd;
  qp.scq = qp.rcq = kCqn;
  qp.ring.pages = {kQpRing};
  qp.sq_offset = kSqOffset;
  qp.log_sq_size = kLogSq;
  qp.log_rq_size = kLogRq;
  qp.dbr_addr = kQpDbr;
  qp.uar_page = kUarPage;
  qp.mtu = kMtu;
  qp.remote_qpn = kRemoteQpn;
  qp.path.rlid = kRemoteLid;
  return qp;
}

Mkey& BlockRig::make_key(std::uint32_t index, AccessRights rights) {
  Mkey& key = *keys.create(index);
  key.key = 0x77;
  key.rights = rights;
  key.pd = kPd;
  key.start = kData;
  key.len = kDataBytes;
  for (std::uint64_t page = kData; page < kData + kDataBytes; page += 1u << key.log_page)
    key.xlt.push_back(page);
  key.xlt_words = key.xlt.size();
  return key;
}

unsigned BlockRig::interrupts() const {
  unsigned n = 0;
  for (const FakeHost::Event& e : host.events) n += e.msix;
  return n;
}

prm::BthOp BlockRig::sent_op(std::size_t i) const {
  return static_cast<prm::BthOp>(sent(i).opcode & prm::bth::kOpMask);
}

std::vector<std::uint32_t> BlockRig::sent_psns() const {
  std::vector<std::uint32_t> psns;
  for (const auto& [at, packet] : wire.sent) psns.push_back(packet->psn);
  return psns;
}

BlockRig& block_rig() {
  static auto* made = new BlockRig;  // lives as long as the SystemC kernel: to the end
  return *made;
}

}  // namespace hcasim::test

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  hcasim::test::block_rig();
  return RUN_ALL_TESTS();
}
