// SPDX-License-Identifier: BSD-3-Clause
#include "model/function/function.h"

#include "model/state/state.h"

namespace hcasim {

Function::Function(FunctionId id, std::uint16_t vport, HostPort& host, traces::Tracer& tracer,
                   const Profile& profile)
    : id_(id),
      host_(host),
      tracer_(tracer, id),
      health_(host, tracer_, firmware_),
      vport_(id, vport),
      qps_(id),
      cqs_(id),
      eqs_(id),
      mkeys_(id),
      qos_(profile.port.rate_gbps * 1000),
      flows_(&tracer_),
      sw_steering_(flows_, profile.generation->has.ste),
      steering_(qps_),
      gateway_(*profile.generation, firmware_) {}

Function::~Function() = default;

void Function::drop_objects() {
  flows_.clear();
  sw_steering_.clear();
  qos_.clear();
  eth_.clear();
  deks_.clear();
  ipsec_.clear();
  macsec_.clear();
  psp_.clear();
  steering_.clear();
  qps_.clear();
  cqs_.clear();
  eqs_.clear();
  interrupt_pace_.clear();
  mkeys_.clear();
  psvs_.clear();
  memic_.clear();
  uars_.clear();
}

void Function::reset() {
  drop_objects();
  health_.reset();
  vport_.reset();
  qps_.suspension = {};
  q_counters_.clear();
  bad_accesses_ = 0;
}

Functions::Functions(const std::vector<HostPort*>& hosts, std::size_t sfs, traces::Tracer& tracer,
                     const Profile& profile)
    : numbers_(hosts.size(), sfs) {
  for (HostPort* host : hosts) {
    const auto f = static_cast<FunctionId>(functions_.size());
    functions_.push_back(std::make_unique<Function>(f, numbers_.of(f), *host, tracer, profile));
  }
  if (functions_.size() == 1) return;
  for (const auto& function : functions_)
    function->qos().attach(functions_.front()->qos(), function->vport().number());
}

void Functions::model_fault(const char* where, const char* what) noexcept {
  for (const auto& function : functions_) function->health().model_fault(where, what);
}

}  // namespace hcasim
