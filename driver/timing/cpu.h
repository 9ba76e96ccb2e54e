// SPDX-License-Identifier: BSD-3-Clause
// CPUs of the simulated hosts: each does one thing at a time, what it does takes simulated time, and between
// times it polls. Time is the machine's, in ps, and passes nowhere but in run().
#ifndef HCASIM_DRIVER_TIMING_CPU_H
#define HCASIM_DRIVER_TIMING_CPU_H

#include <cstdint>
#include <functional>
#include <vector>

#include "driver/bare/machine.h"

namespace hcasim::timing {

using Ps = std::int64_t;

// What the profile charges a CPU: [host], in ps.
struct CpuCosts {
  explicit CpuCosts(const bare::Function& function);
  Ps post, doorbell, post_recv, cqe, poll;
};

class Cpu {
 public:
  using Step = std::function<void()>;
  using Condition = std::function<bool()>;

  explicit Cpu(const CpuCosts& costs) : costs_(costs) {}
  virtual ~Cpu() = default;
  Cpu(const Cpu&) = delete;
  Cpu& operator=(const Cpu&) = delete;
  // What it does first, at time `now`.
  virtual void begin() = 0;

 protected:
  const CpuCosts& costs() const { return costs_; }
  Ps time() const { return due_; }
  // `then` follows when `cost` has passed.
  void spend(Ps cost, Step then) {
    due_ += cost;
    then_ = std::move(then);
    polling_ = false;
  }
  // Looks at once and then every costs().poll whether `seen` holds; then `then`.
  void poll(Condition seen, Step then) {
    seen_ = std::move(seen);
    then_ = std::move(then);
    polling_ = true;
  }
  void rest() {
    then_ = nullptr;
    polling_ = false;
  }

 private:
  friend class Cpus;
  bool idle() const { return !then_; }

  const CpuCosts costs_;
  Ps due_ = 0;  // of the next step; polling: when it began to
  bool polling_ = false;
  Condition seen_;
  Step then_;
};

class Cpus {
 public:
  explicit Cpus(bare::Machine& machine) : machine_(machine) {}
  void add(Cpu& cpu) { cpus_.push_back(&cpu); }
  // Begins each CPU's work, and lets time pass until done() holds. Throws BareError when no CPU gets on for
  // `patience` ns of simulated time, or all rest.
  void run(const std::function<bool()>& done, std::int64_t patience = 1'000'000'000);

 private:
  bool look();

  bare::Machine& machine_;
  std::vector<Cpu*> cpus_;
};

}  // namespace hcasim::timing
#endif
