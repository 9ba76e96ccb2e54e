// SPDX-License-Identifier: BSD-3-Clause
#include "model/device.h"

#include <algorithm>
#include <cstring>

#include "model/rules.h"
#include "prm/field.h"

namespace hcasim {

Device::Device(const sc_core::sc_module_name& name, const Profile& profile,
               const std::vector<HostPort*>& hosts, traces::Tracer& tracer, std::size_t sfs)
    : sc_module(name),
      bars("bar", sc_core::sc_start_of_simulation_invoked() ? 0 : hosts.size()),
      profile_(profile),
      tracer_(tracer),
      functions_(hosts, sfs, tracer, profile_),
      injector_("injector", tracer, functions_),
      dma_("dma", profile_, functions_.of(&Function::host), tracer, functions_),
      contexts_(profile_,
                [this](Time t, unsigned bytes) {
                  // What waits long for its turn takes its part of the link from those of today: far ahead
                  // nobody else has asked for the link yet.
                  const Time at = std::min(t, sim_now() + profile_.pcie.read_latency);
                  return std::max(t + profile_.pcie.read_latency, dma_.context_read(at, bytes));
                }),
      lookups_({profile_, contexts_}),
      tx_(profile_, tracer),
      rx_({profile_, tracer, dma_}),
      context_gate_({profile_, tracer, contexts_, functions_, qps(), functions_.of(&Function::health)}),
      eqs_(profile_, dma_, tracer, functions_.of(&Function::eqs), functions_.of(&Function::interrupt_pace)),
      cqs_("cqs", profile_, dma_, contexts_, eqs_, tracer, functions_, functions_.of(&Function::cqs)),
      tpt_(profile_, contexts_, functions_.of(&Function::mkeys), functions_.of(&Function::psvs)),
      qp_states_({tracer, eqs_, context_gate_, firmware()}),
      page_faults_({tracer, qps(), eqs_}),
      vports_(vports(), functions_.numbers()),
      eswitch_({vports_, functions_[0].flows()}),
      port_("port", profile_, tracer, functions_, vports_),
      lag_({port_, receiver_, functions_[0].flows()}),
      rdma_({port_, flows()}),
      uar_({profile_, tracer, scheduler_, dma_, functions_.of(&Function::uars), qps(), cqs_, eqs_}),
      cc_({profile_, tracer, port_, rdma_, qps()}),
      tags_({tracer, scheduler_, qps(), cqs_}),
      crypto_({profile_, tracer, eth(), functions_.of(&Function::deks), functions_.of(&Function::ipsec),
               functions_.of(&Function::macsec), functions_.of(&Function::psp), eqs_}),
      requester_("requester", {profile_,      tracer, functions_,   scheduler_,   tx_,        rx_,
                               context_gate_, cc_,    qos(),        dma_,         port_,      rdma_,
                               flows(),       tpt_,   tags_,        crypto_,      vports(),   qps(),
                               cqs_,          eqs_,   page_faults_, q_counters(), qp_states_, firmware()}),
      responder_("responder",
                 {profile_, tracer, functions_, scheduler_, tx_,          rx_,          context_gate_,
                  cc_,      qos(),  dma_,       port_,      rdma_,        tpt_,         tags_,
                  vports(), qps(),  cqs_,       eqs_,       page_faults_, q_counters(), qp_states_}),
      eth_rx_("eth_rx",
              {profile_, tracer, dma_, port_, flows(), tpt_, eth(), qps(), cqs_, eqs_, q_counters(), lag_,
               crypto_},
              functions_),
      receiver_({functions_.of(&Function::health), port_, vports_, eswitch_, qps(),
                 functions_.of(&Function::steering), flows(), rdma_, cc_, tags_, requester_, responder_,
                 eth_rx_, firmware(), lag_}),
      queue_failures_({tracer, qps(), eth(), cqs_, eqs_, qp_states_, requester_, eth_rx_}),
      fault_actor_({injector_, functions_, functions_.of(&Function::host), qps(),
                    functions_.of(&Function::cqs), qp_states_, cqs_, eqs_, port_, firmware()}),
      prefetcher_(
          {scheduler_, dma_, context_gate_, tx_, requester_, tpt_, port_, rx_, cqs_, qps(), q_counters()}),
      scheduler_("scheduler", {profile_, tracer, functions_, port_, qos(), classes_, injector_, requester_,
                               responder_, prefetcher_, fault_actor_, qps()}),
      migration_({functions_, dma_, scheduler_, requester_, responder_, context_gate_, cqs_, eqs_, tpt_,
                  page_faults_, eth_rx_}) {
  for (unsigned f = 0; f < bars.size(); ++f)
    bars[f].register_b_transport(this, &Device::transport, static_cast<int>(f));
  connect();
}

// Here, and not where each user of the class would make it.
Device::~Device() = default;

// Blocks that call one which is constructed after them.
void Device::connect() {
  context_gate_.connect(responder_, requester_);
  qp_states_.connect(requester_, responder_);
  page_faults_.connect(requester_, responder_);
  port_.plug_in(eswitch_);
  functions_.for_each([this](Function& function) {
    function.flows().attach(vxlan_ports_);
    function.flows().attach(crypto_, function.id());
    function.qos().attach(classes_);
  });
  functions_[0].flows().attach(lookups_);
  port_.on_resume([this](Time t) { scheduler_.resume(t); });
  port_.watch_backlog([this] { return std::max({dma_.up_free(), rx_.free_at(), eth_rx_.rx_free()}); });
  port_.watch_buffers([this] { return rx_.free_at(); });
  port_.on_receive([this](Time t, PacketRef& packet) { receiver_.receive(t, packet); });
  port_.on_transmit(
      [this](Time t, const Packet& p) { eth_rx_.sniff(t, p.function, FlowTableType::kSnifferTx, p); });
  port_.on_departure([this](Time t, const Packet& p) { report_departure(t, p); });
  functions_.for_each([this](Function& function) {
    dma_.attach(function.id(), Space::kSink, sink_);
    dma_.attach(function.id(), Space::kMemic, function.memic());
    dma_.attach(function.id(), Space::kSwIcm, function.sw_steering().icm());
  });
  dma_.on_write_error([this](Time t, WriteOwner owner) { queue_failures_.write_refused(t, owner); });
  tpt_.on_invalidate([this](FunctionId f) { dma_.loans().settle_all(f); });
  tpt_.on_signature_error(
      [this](Time t, std::uint32_t qpn, const Mkey& mkey, const SigError& e, bool requester) {
        queue_failures_.signature_error(t, qpn, mkey, e, requester);
      });
  cqs_.on_failed([this](Time t, const Cq& cq) { queue_failures_.cq_failed(t, cq); });
  injector_.on_act([this](Time t, const FaultSpec& f, bool begin) { fault_actor_.act(t, f, begin); });
  dma_.take_faults_from(injector_);
  eqs_.take_faults_from(injector_);
  cqs_.take_faults_from(injector_);
  port_.take_faults_from(injector_);
}

// ---- BAR0 ----

namespace {
std::uint32_t uar_page(std::uint64_t offset) { return static_cast<std::uint32_t>(offset / kUarPageSize); }
}  // namespace

void Device::bar_read(FunctionId f, std::uint64_t offset, std::uint8_t* bytes, unsigned len) {
  Function& function = functions_[f];
  const traces::FunctionTracer& tracer = function.tracer();
  if (len == 0 || len > 8 || offset >= kBarSize || len > kBarSize - offset) {
    function.bad_access();
    tracer.broke_value(Rule::kBarRange, sim_now(), RuleObject::kNone, 0, offset);
    std::memset(bytes, 0xff, len);
    return;
  }
  if (offset >= kInitSegSize) {
    std::memset(bytes, 0, len);  // UAR pages are write-only
    if (offset < Memic::kBase) {
      tracer.broke_value(Rule::kUarRead, sim_now(), RuleObject::kUar, uar_page(offset), offset);
    } else if (!Memic::covers(offset) || !function.memic().load(offset, bytes, len)) {
      function.bad_access();
      tracer.broke_value(Rule::kMemicAccess, sim_now(), RuleObject::kNone, 0, offset);
    }
    return;
  }
  for (unsigned done = 0; done < len;) {
    const std::uint32_t at = static_cast<std::uint32_t>(offset) + done;
    std::uint8_t word[4];
    prm::store32(word, at < kInitSegSize ? function.firmware().init_seg_read(at & ~3u) : 0xffffffff);
    const unsigned piece = std::min(len - done, 4 - at % 4);
    std::memcpy(bytes + done, word + at % 4, piece);
    done += piece;
  }
}

void Device::bar_write(FunctionId f, std::uint64_t offset, const std::uint8_t* bytes, unsigned len) {
  Function& function = functions_[f];
  const traces::FunctionTracer& tracer = function.tracer();
  if (len == 0 || offset >= kBarSize || len > kBarSize - offset) {
    function.bad_access();
    tracer.broke(Rule::kBarRange, sim_now(), RuleObject::kNone, 0, bytes, len);
    return;
  }
  if (offset >= Memic::kBase) {
    if (!Memic::covers(offset) || !function.memic().store(offset, bytes, len)) {
      function.bad_access();
      tracer.broke(Rule::kMemicAccess, sim_now(), RuleObject::kNone, 0, bytes, len);
    }
    return;
  }
  if (offset >= kInitSegSize) {
    if (!function.health().fatal() && !migration_.misses_doorbell(f, offset, bytes, len))
      uar_.write(dma_.store(sim_now() + profile_.pcie.mmio_latency, len), f, offset, bytes, len);
    return;
  }
  if (offset % 4 || len % 4 || len > 8 || function.firmware().empty()) {
    function.bad_access();
    tracer.broke(Rule::kBarSize, sim_now(), RuleObject::kNone, 0, bytes, len);
    return;
  }
  for (unsigned done = 0; done < len; done += 4) {
    function.firmware().init_seg_write(static_cast<std::uint32_t>(offset) + done, prm::load32(bytes + done));
  }
}

void Device::transport(int index, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  if (payload.get_byte_enable_ptr()) {
    payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    return;
  }
  const auto f = static_cast<FunctionId>(index);
  const std::uint64_t offset = payload.get_address();
  const unsigned len = payload.get_data_length();
  const unsigned most = payload.is_write() ? Uar::kMaxBurst : 8;
  if (len == 0 || len > most || payload.get_streaming_width() < len) {
    payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
    return;
  }
  if (offset >= kBarSize || len > kBarSize - offset) {
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    return;
  }
  if (payload.is_read()) {
    bar_read(f, offset, payload.get_data_ptr(), len);
    delay += to_sc(profile_.pcie.mmio_latency);
  } else if (payload.is_write()) {
    bar_write(f, offset, payload.get_data_ptr(), len);
  }
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

// ---- Power-on ----

void Device::clear_engines() {
  dma_.reset();
  scheduler_.clear();
  crypto_.clear();
  requester_.clear();
  responder_.clear();
  rx_.clear();
  tags_.clear();
  port_.reset();
  classes_.clear();
  eth_rx_.clear();
  cc_.reset();
  uar_.clear();
  cqs_.clear();
  eqs_.clear();
  tpt_.clear();
  page_faults_.clear();
  context_gate_.clear();
  contexts_.clear();
  lookups_.clear();
  tx_.clear();
  qp_states_.clear();
}

void Device::reset() {
  clear_engines();
  vxlan_ports_ = {};
  lag_.clear();
  eswitch_.clear();
  functions_.for_each([](Function& function) {
    function.reset();
    function.vport().clear_counters();
    function.gateway().reset();
  });
  functions_.for_each([](Function& function) { function.firmware().function_reset(); });
}

bool Device::alone(FunctionId f) const {
  for (FunctionId other = 0; other < functions(); ++other)
    if (other != f && dma_.enabled(other)) return false;
  return true;
}

void Device::reset(FunctionId f) {
  functions_[f].gateway().reset();
  restart(f);
}

// What the engines' queues hold of the function's work finds no queue of that number and epoch any more.
void Device::restart(FunctionId f) {
  if (alone(f))
    clear_engines();
  else
    dma_.reset(f);
  context_gate_.invalidate_all_of(f);
  cqs_.invalidate_all_of(f);
  tpt_.invalidate_all_of(f);
  page_faults_.forget_all_of(f);
  eth_rx_.forget(f);
  vxlan_ports_.forget(f);
  if (f == 0) {
    lag_.clear();
    eswitch_.clear();
    lookups_.clear();
  }
  functions_[f].reset();
  functions_[f].firmware().function_reset();
}

void Device::quiesce(FunctionId f) {
  dma_.flush(f);
  dma_.loans().settle_all(f);
}

void Device::drop_objects(FunctionId f) {
  quiesce(f);
  Function& function = functions_[f];
  // Nothing of these may run or write afterwards: the driver frees the memory.
  function.qps().for_each_qp([this](Qp& qp) {
    const QpState old = qp.state;
    qp.state = QpState::kRst;
    qp_changed(qp, old);
  });
  function.drop_objects();
  eth_rx_.forget(f);
  vxlan_ports_.forget(f);
  if (f == 0) {
    lag_.clear();
    eswitch_.clear();
  }
  if (alone(f)) {
    eth_rx_.clear();
    cqs_.clear();
    eqs_.clear();
    tpt_.clear();
    uar_.clear();
  }
  page_faults_.forget_all_of(f);
  dma_.flush(f);
}

// To the CQ that the frame's queue names for it; the queue may be gone by now.
void Device::report_departure(Time t, const Packet& packet) {
  const Qp* sq = functions_[packet.function].qps().find(packet.sqn);
  if (sq == nullptr || sq->departures_cqn == 0) return;
  Cq* cq = cqs_.find(packet.function, sq->departures_cqn);
  if (cq == nullptr || cq->error) return;
  Completion c;
  c.opcode = static_cast<std::uint8_t>(prm::CqeOp::kRespSend);  // as the driver expects it (MLX5E_RX_ERR_CQE)
  c.qpn = sq->qpn;
  c.user_index = sq->user_index;
  c.wqe_counter = packet.departure_id;
  c.timestamp = t;
  c.trace_qpn = packet.trace_qpn;
  c.wqe_serial = packet.wqe_serial;
  cqs_.post(t, *cq, c);
}

bool Device::dead() {
  bool dead = false;
  functions_.for_each([&dead](Function& function) { dead = dead || function.health().fatal(); });
  return dead;
}

void Device::set_link_rate(double gbps) {
  port_.set_rate(gbps);
  for (FunctionId f = 0; f < functions(); ++f) function(f).qos().set_port_rate(gbps * 1000);
}

void Device::port_changed(std::uint8_t eqe_subtype) {
  traces::trace(tracer_, traces::Point::kPortState, sim_now(), 1u, 0u, port_.state());
  for (FunctionId f = 0; f < functions(); ++f) port_changed(f, eqe_subtype);
}

}  // namespace hcasim
