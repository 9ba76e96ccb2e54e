// SPDX-License-Identifier: BSD-3-Clause
#include "card/api/simulation.h"

#include <algorithm>
#include <stdexcept>
#include <systemc>

#include "card/api/hca_api.h"
#include "model/agenda.h"
#include "model/simulation_context.h"
#include "model/time.h"

namespace hcasim::api {

namespace {
constexpr std::int64_t kPsPerNs = 1000;
constexpr std::int64_t kMaxNs = INT64_MAX / kPsPerNs - 1;  // 106 days of simulated time
}  // namespace

Simulation& Simulation::instance() {
  // Never destroyed: HCAs may be taken out of service as late as at exit.
  static auto* simulation = new Simulation;
  return *simulation;
}

bool Simulation::prepare(bool native, std::string& why) {
  if (!Agenda::choose({native, false})) {  // made before elaboration, though there may be no HCA
    why = Agenda::instance().kernel().waits
              ? "the HCAs of this process are SystemC modules of a platform (HcaModule)"
              : std::string("kernel=") + (native ? "native" : "fast") +
                    ": the other HCAs of this process have the other kernel; there is one for all";
    return false;
  }
  if (prepared_) return true;
  prepared_ = true;
  using namespace sc_core;
  sc_report_handler::set_actions(SC_INFO, SC_DO_NOTHING);
  sc_report_handler::set_actions(SC_WARNING, SC_DO_NOTHING);
  sc_report_handler::set_actions(SC_ERROR, SC_THROW);
  sc_report_handler::set_actions(SC_FATAL, SC_THROW);
  sc_report_handler::set_actions(SC_ID_NO_SC_START_ACTIVITY_, SC_DO_NOTHING);
  Agenda::instance().set_alone();
  return true;
}

void Simulation::failed(const char* what) noexcept {
  dead_ = true;
  try {
    cause_ = what;
  } catch (...) {
  }
}

bool Simulation::start(std::int64_t now) noexcept {
  if (started_) return !dead_;
  Entry entry(*this);
  started_ = true;
  base_ = now;
  try {
    if (std::string why; !prepared_ && !prepare(false, why)) throw std::runtime_error(why);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    run_to(0);
  } catch (const std::exception& e) {
    failed(e.what());
  } catch (...) {
    failed("unknown exception");
  }
  return !dead_;
}

inline void Simulation::run_to(std::int64_t ps) { Agenda::instance().run_alone(ps, true); }

// ps of the next event, or HCA_NEVER.
inline std::int64_t Simulation::next() const {
  const Time armed = Agenda::instance().armed();
  return armed == kNever ? HCA_NEVER : std::max<std::int64_t>(armed, sim_now());
}

// Not before it, on the caller's clock.
inline std::int64_t Simulation::in_ns(std::int64_t due) const {
  return due == HCA_NEVER ? HCA_NEVER : base_ + (due + kPsPerNs - 1) / kPsPerNs;
}

std::int64_t Simulation::meeting(std::int64_t* event) const noexcept {
  if (!partners_) return -1;
  *event = HCA_NEVER;
  if (!started_ || dead_ || busy() || !partners_->meet_plainly()) return HCA_NEVER;
  const std::int64_t due = in_ns(partners_->limit()), first = in_ns(next());
  if (first <= due) return HCA_NEVER;
  *event = first;
  return due;
}

Time Simulation::at(std::int64_t ns) const {
  if (ns == HCA_NEVER) return kNever;
  const std::int64_t target = std::min(ns > base_ ? ns - base_ : 0, kMaxNs);
  return target * kPsPerNs;
}

std::int64_t Simulation::advance(std::int64_t now, std::int64_t ahead) noexcept {
  if (busy()) return -1;
  if (!started_ || dead_) return HCA_NEVER;
  Entry entry(*this);
  ++advances_;
  try {
    const std::int64_t target = std::min(now - base_, kMaxNs);
    if (partners_) {
      while (partners_->limit() <= at(now)) {
        run_to(partners_->limit());
        partners_->meet(next());
      }
    }
    run_to(at(now));
    std::int64_t due = next();
    if (partners_) due = std::min(due, partners_->limit());
    if (ahead > 0 && (!partners_ || partners_->limit() == kNever)) {
      const std::int64_t limit = (std::min(target, kMaxNs - ahead) + ahead) * kPsPerNs;
      // From event to event: the clock stays at the last.
      Agenda::instance().run_alone(limit, false);
      due = next();
    }
    Agenda::instance().sync();
    return in_ns(due);
  } catch (const std::exception& e) {
    failed(e.what());
  } catch (...) {
    failed("unknown exception");
  }
  return HCA_NEVER;
}

bool Simulation::renew(std::int64_t now) noexcept {
  if (busy() || dead_ || !started_ || partners_ || !simulation().renew()) return false;
  base_ = now;
  return true;
}

std::int64_t Simulation::time() const noexcept { return base_ + sim_now() / kPsPerNs; }

}  // namespace hcasim::api
