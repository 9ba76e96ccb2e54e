// SPDX-License-Identifier: BSD-3-Clause
// What one function of the card owns: the host behind it (its requester ID, which sub-functions share), its
// firmware with the initialization segment and the command queue, whether it is in service, and the names
// that its driver gives to objects. The engines are the card's (model/device.h): they work for all functions,
// and find in here what a queue of this one names. Nothing in here knows an engine, or another function.
#ifndef HCASIM_MODEL_FUNCTION_FUNCTION_H
#define HCASIM_MODEL_FUNCTION_FUNCTION_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "model/cq/cq.h"
#include "model/crypto/dek.h"
#include "model/crypto/ipsec.h"
#include "model/crypto/macsec.h"
#include "model/crypto/psp.h"
#include "model/ctx/eth.h"
#include "model/ctx/q_counters.h"
#include "model/ctx/qp.h"
#include "model/eq/eq.h"
#include "model/firmware_port.h"
#include "model/function/id.h"
#include "model/function/vport.h"
#include "model/health.h"
#include "model/pcie/host_port.h"
#include "model/pcie/vsc_gateway.h"
#include "model/profile.h"
#include "model/sched/qos.h"
#include "model/state/fields.h"
#include "model/steer/flow.h"
#include "model/steer/steer.h"
#include "model/steer/sw_steering.h"
#include "model/tpt/memic.h"
#include "model/tpt/mkey.h"
#include "model/uar/uar.h"
#include "traces/tracer.h"

namespace hcasim {

class Function {
 public:
  // vport: the number of its plug. host: what its DMA and interrupts go to.
  Function(FunctionId id, std::uint16_t vport, HostPort& host, traces::Tracer& tracer,
           const Profile& profile);
  ~Function();
  Function(const Function&) = delete;
  Function& operator=(const Function&) = delete;

  FunctionId id() const { return id_; }
  // One that owns the port's settings; the first function of the card.
  bool physical() const { return id_ == 0; }
  HostPort& host() { return host_; }
  const traces::FunctionTracer& tracer() const { return tracer_; }
  FirmwareSlot& firmware() { return firmware_; }
  Health& health() { return health_; }

  // Objects by number
  QpTable& qps() { return qps_; }  // and SRQs
  CqTable& cqs() { return cqs_; }
  EqTable& eqs() { return eqs_; }
  InterruptPace& interrupt_pace() { return interrupt_pace_; }
  MkeyTable& mkeys() { return mkeys_; }
  PsvTable& psvs() { return psvs_; }
  EthTable& eth() { return eth_; }
  DekTable& deks() { return deks_; }
  IpsecTable& ipsec() { return ipsec_; }
  MacsecTable& macsec() { return macsec_; }
  PspKeys& psp() { return psp_; }
  QCounters& q_counters() { return q_counters_; }
  Qos& qos() { return qos_; }
  // Its plug: addresses
  Vport& vport() { return vport_; }
  // Its name spaces of flow tables, and its multicast groups
  FlowSteering& flows() { return flows_; }
  SwSteering& sw_steering() { return sw_steering_; }
  Steering& steering() { return steering_; }
  // What its BAR shows besides the initialization segment
  UarPages& uars() { return uars_; }
  Memic& memic() { return memic_; }
  // What stands behind its vendor specific capability
  VscGateway& gateway() { return gateway_; }

  // Accesses to the BAR, and through the gateway, that nothing answers.
  std::uint64_t bad_accesses() const { return bad_accesses_ + gateway_.unanswered(); }
  void bad_access() { ++bad_accesses_; }

  // All names are free again; no engine has one of its objects in hand.
  void drop_objects();
  // As after power-on, firmware and gateway apart.
  void reset();

  // What goes with it to another card while it is held: its objects, and addresses.
  template <class Archive>
  void list_image(Archive& a) {
    struct Addresses {
      Vport& vport;
      void list_state(Archive& archive) { vport.list_image(archive); }
    } addresses{vport_};
    HCASIM_FIELDS(a, addresses, qps_, cqs_, eqs_, mkeys_, psvs_, eth_, deks_, ipsec_, macsec_, q_counters_,
                  qos_, flows_, sw_steering_, steering_, uars_, memic_);
    HCASIM_FIELDS_SINCE(7, a, psp_);
    HCASIM_FIELDS_SINCE(21, a, interrupt_pace_);
    if constexpr (Archive::kLoads)
      for (auto& [number, rq] : eth_.rqs) rq.function = id_;
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, health_, vport_, qps_, cqs_, eqs_, mkeys_, psvs_, eth_, deks_, ipsec_, macsec_,
                  q_counters_, qos_, flows_, sw_steering_, steering_, uars_, memic_, gateway_, bad_accesses_);
    HCASIM_FIELDS_SINCE(7, a, psp_);
    HCASIM_FIELDS_SINCE(21, a, interrupt_pace_);
    if constexpr (Archive::kLoads)
      for (auto& [number, rq] : eth_.rqs) rq.function = id_;
  }

 private:
  const FunctionId id_;
  HostPort& host_;
  traces::FunctionTracer tracer_;
  FirmwareSlot firmware_;
  Health health_;
  Vport vport_;
  QpTable qps_;
  CqTable cqs_;
  EqTable eqs_;
  InterruptPace interrupt_pace_;
  MkeyTable mkeys_;
  PsvTable psvs_;
  EthTable eth_;
  DekTable deks_;
  IpsecTable ipsec_;
  MacsecTable macsec_;
  PspKeys psp_;
  QCounters q_counters_;
  Qos qos_;
  FlowSteering flows_;
  SwSteering sw_steering_;
  Steering steering_;
  UarPages uars_;
  Memic memic_;
  VscGateway gateway_;
  std::uint64_t bad_accesses_ = 0;
};

// The functions of a card. Where an engine meets a broken invariant, all of them go out of service: nobody
// knows whose work it was.
class Functions final : public FaultSink {
 public:
  // One for each host; the last `sfs` of them are sub-functions, whose hosts are those of others.
  Functions(const std::vector<HostPort*>& hosts, std::size_t sfs, traces::Tracer& tracer,
            const Profile& profile);

  const VportNumbers& numbers() const { return numbers_; }

  Function& operator[](FunctionId f) { return *functions_[f]; }
  std::size_t size() const { return functions_.size(); }
  template <class F>
  void for_each(F f) {
    for (const auto& function : functions_) f(*function);
  }
  // What each has one of: functions.of(&Function::qps).
  template <class T, class Part>
  PerFunction<T> of(Part& (Function::*part)()) {
    std::vector<T*> parts;
    for (const auto& function : functions_) parts.push_back(&(*function.*part)());
    return PerFunction<T>(std::move(parts));
  }
  template <class T>
  PerFunction<T> of(T& (Function::*part)()) {
    return of<T, T>(part);
  }

  void model_fault(const char* where, const char* what) noexcept override;
  // Over all of them.
  template <class F>
  std::uint64_t sum(F count) const {
    std::uint64_t n = 0;
    for (const auto& function : functions_) n += count(*function);
    return n;
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, functions_);
  }

 private:
  const VportNumbers numbers_;
  std::vector<std::unique_ptr<Function>> functions_;
};

}  // namespace hcasim
#endif
