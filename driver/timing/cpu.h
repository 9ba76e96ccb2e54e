// SPDX-License-Identifier: BSD-3-Clause
// CPUs of the simulated hosts: each does one thing at a time, which takes simulated time, and polls in
// between. Time is the machine's, in ps, and passes only in run().
#ifndef HCASIM_DRIVER_TIMING_CPU_H
#define HCASIM_DRIVER_TIMING_CPU_H

#include <cstdint>
#include <functional>
#include <vector>

#include "driver/bare/machine.h"

namespace hcasim::timing {

using Ps = std::int64_t;

// The CPU costs of the profile ([host]), in ps.
struct CpuCosts {
  explicit CpuCosts(const bare::Function& function);
  Ps post, doorbell, post_recv, cqe, poll, interrupt;
  // The kernel's network stack; a byte's copy is a fraction of a ps.
  Ps softirq, syscall, frame_tx, frame_rx, socket_rx;
  double copy_byte;
};

class Cpu {
 public:
  using Step = std::function<void()>;
  using Condition = std::function<bool()>;

  explicit Cpu(const CpuCosts& costs) : costs_(costs) {}
  virtual ~Cpu() = default;
  Cpu(const Cpu&) = delete;
  Cpu& operator=(const Cpu&) = delete;
  // Called once, at the start time, to begin its work.
  virtual void begin() = 0;
  // Time that it has not slept so far.
  Ps worked() const { return worked_; }

 protected:
  const CpuCosts& costs() const { return costs_; }
  Ps time() const { return due_; }
  // Calls `then` when `cost` has passed.
  void spend(Ps cost, Step then) {
    due_ += cost;
    worked_ += cost;
    then_ = std::move(then);
    polling_ = sleeps_ = false;
  }
  // Evaluates `seen` immediately and then every costs().poll until it holds; then calls `then`.
  void poll(Condition seen, Step then) {
    seen_ = std::move(seen);
    then_ = std::move(then);
    polling_ = true;
    sleeps_ = asleep_ = false;
  }
  // Calls `then` when `seen` holds, which an interrupt brings about: costs().interrupt after it does, and
  // immediately if it held already.
  void sleep(Condition seen, Step then) {
    poll(std::move(seen), std::move(then));
    sleeps_ = true;
    asleep_cost_ = costs_.interrupt;
    awake_cost_ = 0;
  }
  // The same for what an interrupt's handler does: it goes on costs().softirq later in any case.
  void await_interrupt(Condition seen, Step then) {
    sleep(std::move(seen), std::move(then));
    asleep_cost_ = awake_cost_ = costs_.softirq;
  }
  void rest() {
    then_ = nullptr;
    polling_ = sleeps_ = false;
  }

 private:
  friend class Cpus;
  bool idle() const { return !then_; }

  const CpuCosts costs_;
  Ps due_ = 0;  // time of the next step; while polling: when polling began
  Ps worked_ = 0;
  bool polling_ = false;
  bool sleeps_ = false, asleep_ = false;  // waits for an interrupt, which was not there when it began to
  Ps asleep_cost_ = 0, awake_cost_ = 0;   // from the interrupt until it goes on
  Condition seen_;
  Step then_;
};

class Cpus {
 public:
  explicit Cpus(bare::Machine& machine) : machine_(machine) {}
  void add(Cpu& cpu) { cpus_.push_back(&cpu); }
  // Starts each CPU's work and lets time pass until done() holds. Throws BareError if no CPU makes progress
  // for `patience` ns of simulated time, or all are idle.
  void run(const std::function<bool()>& done, std::int64_t patience = 1'000'000'000);

 private:
  bool look();

  bare::Machine& machine_;
  std::vector<Cpu*> cpus_;
};

}  // namespace hcasim::timing
#endif
