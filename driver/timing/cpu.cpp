// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/cpu.h"

#include <algorithm>
#include <cmath>

namespace hcasim::timing {

namespace {

Ps in_ps(const bare::Function& f, const char* name) { return std::llround(f.parameter(name) * 1000); }

}  // namespace

CpuCosts::CpuCosts(const bare::Function& f)
    : post(in_ps(f, "host.post_ns")),
      doorbell(in_ps(f, "host.doorbell_ns")),
      post_recv(in_ps(f, "host.post_recv_ns")),
      cqe(in_ps(f, "host.cqe_ns")),
      poll(in_ps(f, "host.poll_ns")),
      interrupt(in_ps(f, "host.interrupt_ns")),
      softirq(in_ps(f, "host.softirq_ns")),
      syscall(in_ps(f, "host.syscall_ns")),
      frame_tx(in_ps(f, "host.frame_tx_ns")),
      frame_rx(in_ps(f, "host.frame_rx_ns")),
      socket_rx(in_ps(f, "host.socket_rx_ns")),
      copy_byte(8000 / f.parameter("host.copy_gbps")) {}

// CPUs whose polled condition now holds continue at their next poll. False: none does.
bool Cpus::look() {
  bool any = false;
  const Ps now = machine_.now() * 1000;
  for (Cpu* c : cpus_) {
    if (!c->polling_ || c->due_ > now) continue;
    if (!c->seen_()) {
      c->asleep_ = true;
      continue;
    }
    const Ps step = c->costs_.poll;
    if (c->sleeps_) {
      const Ps cost = c->asleep_ ? c->asleep_cost_ : c->awake_cost_;
      c->worked_ += cost;
      c->due_ = now + cost;
    } else {
      const Ps until = step == 0 ? now : c->due_ + (now - c->due_ + step - 1) / step * step;
      c->worked_ += until - c->due_;
      c->due_ = until;
    }
    c->polling_ = false;
    any = true;
  }
  return any;
}

void Cpus::run(const std::function<bool()>& done, std::int64_t patience) {
  for (Cpu* c : cpus_) {
    c->due_ = machine_.now() * 1000;
    c->begin();
  }
  std::int64_t progress = machine_.now();
  while (!done()) {
    Cpu* next = nullptr;
    bool polling = false;
    for (Cpu* c : cpus_) {
      polling = polling || c->polling_;
      if (!c->idle() && !c->polling_ && (!next || c->due_ < next->due_)) next = c;
    }
    const std::int64_t now = machine_.now(), due = next ? (next->due_ + 999) / 1000 : now + patience;
    if (polling && look()) continue;
    if (next && due <= now) {
      progress = now;
      // The step may schedule the next one.
      const Cpu::Step step = std::move(next->then_);
      next->then_ = nullptr;
      step();
      continue;
    }
    if (!next && (!polling || now - progress >= patience))
      throw bare::BareError("nothing completes any more");
    machine_.step(due, polling ? 1 : due - now);
  }
}

}  // namespace hcasim::timing
