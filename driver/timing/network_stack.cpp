// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/network_stack.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "driver/bare/rules.h"
#include "driver/timing/cards.h"
#include "driver/timing/datagrams.h"
#include "driver/timing/moderation.h"
#include "driver/timing/tally.h"

namespace hcasim::timing {

namespace {

// Frames that NAPI takes before it looks up, that a softirq takes before others get the CPU
// (net.core.netdev_budget), and that a thread takes which polls (SO_BUSY_POLL).
constexpr unsigned kNapiBudget = 64, kSoftirqBudget = 300, kBusyBudget = 8;

constexpr std::int64_t kSettle = 100'000;  // ns until what ends announced has arrived

// What an end of a flow does with its CPU.
struct Role {
  bool sends = false;    // as often as there is room
  bool answers = false;  // one datagram to each
};

// The thread of an end, and the interrupts of its channel, on one CPU.
class Host : public Cpu {
 public:
  Host(const CpuCosts& costs, Channel& channel, const Setup& setup, Role role)
      : Cpu(costs),
        channel_(channel),
        setup_(setup),
        role_(role),
        copy_(std::llround(costs.copy_byte * setup.size)),
        room_(setup.socket_datagrams()) {}

  void begin() override {
    channel_.post_all_buffers();
    seen_ = channel_.events();
    channel_.arm();
    go_on();
  }
  std::uint64_t drops() const { return drops_; }

 protected:
  // The program has a datagram, or begins to send one; times are time().
  virtual void received() {}
  virtual void sending() {}
  void send_one() { ++due_; }

 private:
  bool interrupted() const { return channel_.events() != seen_; }
  bool can_send() const {
    return (role_.sends || due_ > 0) && !full_ && flying_ + setup_.postlist <= setup_.depth;
  }
  bool can_receive() const { return waiting_ > 0; }

  // What the CPU does next, where the kernel may look up.
  void go_on() {
    if (setup_.stack == Stack::kBypass) {
      bypass();
    } else if (setup_.stack == Stack::kKernel && interrupted()) {
      spend(costs().softirq, [this] { softirq(); });
    } else if (more_ && (!can_receive() || time() >= share_)) {
      softirq();
    } else if (can_receive()) {
      receive();
    } else if (can_send()) {
      send();
    } else {
      wait();
    }
  }

  void wait() {
    // A sender whose buffer was full goes on when half of it is free.
    full_ = flying_ > 0 && flying_ + setup_.postlist > setup_.depth;
    if (setup_.stack == Stack::kBusyPoll) {
      poll([this] { return channel_.sent() || channel_.arrived(); }, [this] { softirq(); });
      return;
    }
    slept_ = true;
    await_interrupt([this] { return interrupted(); }, [this] { softirq(); });
  }

  // ---- the kernel's side ----

  void softirq() {
    seen_ = channel_.events();
    began_ = time();
    handled_ = 0;
    more_ = false;
    napi(setup_.stack == Stack::kBusyPoll ? kBusyBudget : kNapiBudget);
  }

  void napi(unsigned budget) {
    if (channel_.sent()) {
      spend(costs().cqe, [this, budget] {
        channel_.take_sent();
        sent();
        napi(budget);
      });
    } else if (budget > 0 && channel_.arrived()) {
      spend(costs().frame_rx + costs().socket_rx, [this, budget] {
        channel_.take_arrived();
        ++handled_;
        ++frames_;
        if (waiting_ < room_)
          ++waiting_;
        else
          ++drops_;
        napi(budget - 1);
      });
    } else {
      channel_.give_buffers();
      napi_done();
    }
  }

  void napi_done() {
    if (setup_.stack == Stack::kBusyPoll) {
      go_on();
    } else if (!channel_.arrived()) {
      follow_load();
      spend(costs().doorbell, [this] {
        seen_ = channel_.events();
        channel_.arm();  // what has come meanwhile raises its event at once
        leave_softirq();
      });
    } else if (handled_ < kSoftirqBudget) {
      napi(kNapiBudget);
    } else {
      // Its own thread (ksoftirqd) goes on, and the program's has as much of the CPU as it.
      more_ = true;
      share_ = 2 * time() - began_;
      leave_softirq();
    }
  }

  void follow_load() {
    const std::uint64_t events = channel_.arrived_events();
    if (!setup_.adaptive || !moderation_.note({events, frames_, frames_ * channel_.bytes_of_frame(), time()}))
      return;
    const AdaptiveModeration::Level& level = moderation_.level();
    channel_.moderate(level.period_us, level.max_count, [this] { moderation_.taken(); });
  }

  void leave_softirq() {
    const bool wakes = slept_ && (can_receive() || can_send());
    if (wakes) slept_ = false;
    spend(wakes ? std::max(Ps{0}, costs().interrupt - costs().softirq) : 0, [this] { go_on(); });
  }

  void sent() {
    flying_ -= setup_.cq_mod;
    if (flying_ <= setup_.depth / 2) full_ = false;
  }

  // ---- the program's ----

  void receive() {
    spend(costs().syscall + copy_, [this] {
      --waiting_;
      take();
      go_on();
    });
  }

  void take() {
    received();
    if (role_.answers) ++due_;
  }

  void send() {
    sending();
    spend(costs().syscall + copy_ + costs().frame_tx, [this] { ring(1); });
  }

  void ring(unsigned count) {
    channel_.post(count);
    flying_ += count;
    if (due_ > 0) --due_;
    spend(costs().doorbell, [this] { go_on(); });
  }

  // Without a kernel, as with DPDK: the program polls both queues.
  void bypass() {
    if (channel_.arrived()) {
      spend(costs().cqe + costs().post_recv, [this] {
        channel_.take_arrived();
        channel_.give_buffers();
        take();
        go_on();
      });
    } else if (channel_.sent()) {
      spend(costs().cqe, [this] {
        channel_.take_sent();
        sent();
        go_on();
      });
    } else if (can_send()) {
      sending();
      spend(costs().post * setup_.postlist, [this] { ring(setup_.postlist); });
    } else {
      poll([this] { return channel_.sent() || channel_.arrived(); }, [this] { bypass(); });
    }
  }

  Channel& channel_;
  const Setup& setup_;
  const Role role_;
  const Ps copy_;
  const unsigned room_;                // datagrams in the socket at most
  std::uint64_t seen_ = 0;             // events of the channel that were handled
  unsigned flying_ = 0, waiting_ = 0;  // posted without a completion; in the socket
  unsigned due_ = 0;                   // answers that are owed
  std::uint64_t drops_ = 0, frames_ = 0;
  AdaptiveModeration moderation_;
  unsigned handled_ = 0;      // frames of this softirq
  Ps began_ = 0, share_ = 0;  // this softirq; until when the program's thread has the CPU
  bool more_ = false;         // a softirq gave the CPU away with frames left
  bool full_ = false;         // the send buffer was, and is not half empty yet
  bool slept_ = false;        // the thread
};

// The first end of a ping-pong: a datagram, its answer, the next one.
class Asker final : public Host {
 public:
  using Host::Host;
  void begin() override {
    send_one();
    Host::begin();
  }
  const std::vector<Ps>& posts() const { return posts_; }

 private:
  void sending() override { posts_.push_back(time()); }
  void received() override { send_one(); }

  std::vector<Ps> posts_;
};

// Counts what its program has received.
class Sink final : public Host {
 public:
  Sink(const CpuCosts& costs, Channel& channel, const Setup& setup, Tally& tally, std::size_t who,
       std::size_t number)
      : Host(costs, channel, setup, Role{}), tally_(tally), who_(who), number_(number) {}

 private:
  void received() override { tally_.note(who_, number_, 1, time()); }

  Tally& tally_;
  const std::size_t who_, number_;
};

// The channels of all flows, on the cards that they belong to.
class Flows {
 public:
  explicit Flows(const Setup& s) : cards_(s, 2 * s.senders * s.qps * Channel::memory_of(s)) {
    to_ = std::make_unique<Interface>(cards_.receiver(), s, s.senders * s.qps);
    for (unsigned i = 0; i < s.senders; ++i) {
      from_.push_back(std::make_unique<Interface>(cards_.sender(i), s, s.qps));
      for (unsigned q = 0; q < s.qps; ++q) {
        senders.push_back(std::make_unique<Channel>(*from_.back(), s));
        receivers.push_back(std::make_unique<Channel>(*to_, s));
        Channel::connect(*senders.back(), *receivers.back());
      }
      senders.back()->announce();
    }
    receivers.back()->announce();
    machine().advance(kSettle);
  }
  bare::Machine& machine() { return cards_.machine(); }
  bare::Function& sender() { return cards_.sender(0).function(); }
  bare::Function& receiver() { return cards_.receiver().function(); }

 private:
  Cards cards_;
  std::unique_ptr<Interface> to_;
  std::vector<std::unique_ptr<Interface>> from_;

 public:
  // Of each sender in turn; destroyed before what they belong to.
  std::vector<std::unique_ptr<Channel>> senders, receivers;
};

}  // namespace

Result measure_datagrams(const Setup& s) {
  const bare::RuleWatch watch;
  Flows flows(s);
  const CpuCosts from(flows.sender()), to(flows.receiver());
  std::vector<std::unique_ptr<Host>> sending, receiving;
  Cpus cpus(flows.machine());
  const std::int64_t start = flows.machine().now();
  const std::uint64_t before = flows.receiver().counter("rx_packets");
  const std::uint64_t dropped_before = flows.receiver().counter("rx_dropped");
  Result r;
  if (s.metric == Metric::kLat) {
    auto first = std::make_unique<Asker>(from, *flows.senders[0], s, Role{});
    const Asker& asker = *first;
    receiving.push_back(std::make_unique<Host>(to, *flows.receivers[0], s, Role{false, true}));
    sending.push_back(std::move(first));
    cpus.add(*receiving[0]);
    cpus.add(*sending[0]);
    const std::size_t wanted = std::size_t{s.warmup} + s.iterations + 1;
    cpus.run([&] { return asker.posts().size() >= wanted; });
    r = latencies(s, asker.posts(), {});
  } else {
    Tally tally(s, s.senders, start * 1000);
    for (std::size_t i = 0; i < flows.senders.size(); ++i) {
      receiving.push_back(std::make_unique<Sink>(to, *flows.receivers[i], s, tally, i / s.qps, i % s.qps));
      sending.push_back(std::make_unique<Host>(from, *flows.senders[i], s, Role{true, false}));
      cpus.add(*receiving[i]);
      cpus.add(*sending[i]);
    }
    cpus.run([&] { return tally.over(); });
    r = tally.result();
  }
  const auto elapsed = static_cast<double>(flows.machine().now() - start) * 1000;
  const auto share = [&](const std::vector<std::unique_ptr<Host>>& hosts) {
    double worked = 0;
    for (const auto& h : hosts) worked += static_cast<double>(h->worked());
    return worked / (elapsed * static_cast<double>(hosts.size()));
  };
  r.cpu_send = share(sending);
  r.cpu_receive = share(receiving);
  std::uint64_t drops = 0;
  for (const auto& h : receiving) drops += h->drops();
  const std::uint64_t arrived = flows.receiver().counter("rx_packets") - before;
  const std::uint64_t lost = drops + flows.receiver().counter("rx_dropped") - dropped_before;
  r.lost = arrived != 0 ? static_cast<double>(lost) / static_cast<double>(arrived) : 0;
  add_counters(flows.receiver(), "rx.", r.counters);
  if (drops != 0) r.counters["rx.socket_drops"] = drops;
  add_counters(flows.sender(), "tx.", r.counters);
  return r;
}

}  // namespace hcasim::timing
