// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/coupling.h"

#include <ns3/simulator.h>

#include <algorithm>

namespace hcasim::fabric {

namespace {

constexpr std::int64_t kLook = 1000;  // ns between two looks of a driver that waits without an interrupt

}  // namespace

// ---- Time ----

std::int64_t Coupling::now() const { return fabric::now() / kNs; }

void Coupling::raised(bare::Function& function) { raised_.push_back(&function); }

void Coupling::arm(std::int64_t ns) {
  if (ns == HCA_NEVER || (ns >= armed_ && !event_.IsExpired())) return;
  event_.Cancel();
  armed_ = ns;
  event_ = ns3::Simulator::Schedule(until(ns * kNs, Turn::kCards), &Coupling::pump, this);
}

void Coupling::due(Time t) {
  if (!running_) arm((t + kNs - 1) / kNs);
}

void Coupling::pump() {
  if (running_) return;
  running_ = true;
  armed_ = HCA_NEVER;
  ++activations_;
  std::int64_t next = hca_sim_advance(now(), 0);
  while (!raised_.empty()) {
    std::vector<bare::Function*> served;
    served.swap(raised_);
    for (bare::Function* f : served) f->dispatch();
    served_ = true;
    next = hca_sim_advance(now(), 0);
  }
  running_ = false;
  event_.Cancel();
  arm(next);
  if (served_ && waiting_) ns3::Simulator::Stop();
}

void Coupling::wait(std::int64_t until) {
  served_ = false;
  pump();
  if (served_) return;
  waiting_ = true;
  const ns3::EventId end = ns3::Simulator::Schedule(
      fabric::until(std::min(until, now() + kLook) * kNs, Turn::kStop), &ns3::Simulator::Stop);
  ns3::Simulator::Run();
  ns3::Simulator::Cancel(end);
  waiting_ = false;
}

void Coupling::act(const std::function<void()>& what) {
  if (!running_) hca_sim_advance(now(), 0);
  what();
  due(fabric::now());
}

void Coupling::run(Time until) {
  due(fabric::now());
  const ns3::EventId end = ns3::Simulator::Schedule(fabric::until(until, Turn::kStop), &ns3::Simulator::Stop);
  ns3::Simulator::Run();
  ns3::Simulator::Cancel(end);
}

// ---- A card ----

bare::Function::FrameSink CardPort::sink() {
  return [this](const void* bytes, std::size_t len, std::int64_t ps) {
    if (device_ == nullptr) return;
    FramePtr frame = make_frame(bytes, len);
    ++frames_out_;
    bytes_out_ += frame->length();
    pauses_out_ += stops(*frame);
    device_->leaves(std::move(frame), ps);
  };
}

void CardPort::join(bare::Function& function, ns3::Ptr<PortDevice> device) {
  function_ = &function;
  device_ = device;
  device->give_to(*this, 0);
}

void CardPort::arrives(unsigned, FramePtr frame, Time t) {
  constexpr std::uint64_t kPrime = 1099511628211ull;
  bytes_in_ += frame->length();
  hash_ =
      ((hash_ ^ static_cast<std::uint64_t>(coupling_.since_begin(t))) * kPrime ^ frame->length()) * kPrime;
  if (watch_) watch_(*frame, t);
  if (!function_->wire_receive_at(frame->bytes.data(), frame->bytes.size(), t)) ++refused_;
  coupling_.due(t);
}

// ---- A switch ----

unsigned SwitchNode::add(ns3::Ptr<PortDevice> device) {
  const unsigned port = switch_.add_port(device->rate_gbps());
  devices_.push_back(device);
  device->give_to(*this, port);
  return port;
}

void SwitchNode::wake_at(Time t) {
  if (!event_.IsExpired()) {
    if (event_at_ <= t) return;
    event_.Cancel();
  }
  event_at_ = t;
  event_ = ns3::Simulator::Schedule(until(t, Turn::kSwitch), &SwitchNode::wake, this);
}

void SwitchNode::wake() { switch_.run(now()); }

}  // namespace hcasim::fabric
