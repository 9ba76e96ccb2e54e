// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/measure.h"

#include <algorithm>
#include <memory>

#include "driver/bare/rules.h"
#include "driver/timing/cpu.h"
#include "driver/timing/end.h"
#include "driver/timing/network_stack.h"
#include "driver/timing/tally.h"

namespace hcasim::timing {

using bare::BareError;

namespace {

constexpr unsigned kPollBatch = 16;  // CQEs per poll of a CQ, as in perftest

[[noreturn]] void failed(const bare::Completion& c) { throw BareError(c.text()); }

// A CPU that waits for completions: by polling, or, with events, as an event loop does: it takes what there
// is, arms the CQ when there is nothing, and sleeps until the CQ's interrupt.
class Waiter : public Cpu {
 protected:
  Waiter(const CpuCosts& costs, bool events) : Cpu(costs), events_(events) {}

  void await(bare::Cq& cq, const Step& then) { await(cq, cq, then); }
  // Until either has a CQE.
  void await(bare::Cq& a, bare::Cq& b, const Step& then) {
    const auto ready = [&a, &b] { return a.ready() || b.ready(); };
    if (!events_) {
      poll(ready, then);
    } else if (ready()) {
      then();
    } else {
      const bool two = &a != &b;
      spend(costs().doorbell * (two ? 2 : 1), [this, &a, &b, two, then] {
        const std::uint64_t events_a = a.events(), events_b = b.events();
        a.arm();  // what has come meanwhile raises its event at once
        if (two) b.arm();
        sleep([&a, &b, events_a, events_b] { return a.events() != events_a || b.events() != events_b; },
              [this, &a, &b, then] { await(a, b, then); });
      });
    }
  }

 private:
  const bool events_;
};

// One end of a ping-pong (write, send), or the requester (read, atomics), as in perftest: wait for the other
// end's message, post the next one, consume the own completion.
class Player final : public Waiter {
 public:
  Player(const CpuCosts& costs, End& end, const Setup& setup, bool first)
      : Waiter(costs, setup.events), end_(end), setup_(setup), lane_(end.lanes()[0]), first_(first) {}

  void begin() override {
    if (setup_.verb == Verb::kSend) end_.post_receives(lane_, end_.receive_queue());
    if (first_)
      post();
    else
      await_message();
  }
  const std::vector<Ps>& posts() const { return posts_; }
  Digest digest;

 private:
  void post() {
    posts_.push_back(time());
    spend(costs().post, [this] {
      end_.post(lane_, 1, static_cast<std::uint8_t>(lane_.posted + 1));
      spend(costs().doorbell, [this] { await_completion(); });
    });
  }

  void await_completion() {
    if (lane_.posted % setup_.cq_mod != 0) {
      next();
      return;
    }
    const auto seen = [this] { spend(costs().cqe, [this] { take(); }); };
    // What has been sent is complete before the answer comes.
    if (setup_.pulls())
      await(end_.send_cq(0), seen);
    else
      poll([this] { return end_.send_cq(0).ready(); }, seen);
  }

  void take() {
    const auto c = end_.send_cq(0).poll();
    if (c->error()) failed(*c);
    digest.note(time());
    next();
  }

  void next() {
    if (setup_.pulls())
      post();
    else
      await_message();
  }

  void await_message() {
    if (setup_.verb == Verb::kSend) {
      await(end_.recv_cq(0), [this] { spend(costs().cqe + costs().post_recv, [this] { take_message(); }); });
      return;
    }
    const std::uint8_t* last = end_.last_byte(lane_);
    const auto awaited = static_cast<std::uint8_t>(lane_.received + 1);
    poll([last, awaited] { return *static_cast<const volatile std::uint8_t*>(last) == awaited; },
         [this] {
           ++lane_.received;
           post();
         });
  }

  void take_message() {
    const auto c = end_.recv_cq(0).poll();
    if (c->error()) failed(*c);
    ++lane_.received;
    end_.post_receives(lane_, 1);
    post();
  }

  End& end_;
  const Setup& setup_;
  Lane& lane_;
  const bool first_;
  std::vector<Ps> posts_;
};

// What comes in at one thread's QPs of an end: CQEs are taken, and their receive WQEs posted again.
class Inbox {
 public:
  // tally: null if the sender counts.
  Inbox(End& end, const Setup& setup, unsigned thread, std::size_t who, Tally* tally)
      : end_(end), thread_(thread), threads_(setup.threads), who_(who), tally_(tally) {}

  bare::Cq& cq() { return end_.recv_cq(thread_); }
  // As many as there can be at once, as perftest polls for them: more than senders complete in a turn.
  unsigned most() const {
    return end_.receive_queue() * static_cast<unsigned>(end_.lanes().size() / threads_ + 1);
  }
  void post_all() {
    for (std::size_t i = thread_; i < end_.lanes().size(); i += threads_)
      end_.post_receives(end_.lanes()[i], end_.receive_queue());
  }
  void take(Ps time) {
    const auto c = cq().poll();
    if (c->error()) failed(*c);
    Lane& lane = end_.lane_of(c->qpn);
    ++lane.received;
    end_.post_receives(lane, 1);
    if (tally_) tally_->note(who_, end_.number(lane), 1, time);
  }

 private:
  End& end_;
  const unsigned thread_, threads_;
  const std::size_t who_;
  Tally* const tally_;
};

// A CPU that keeps its QPs' queues full, as perftest's bandwidth tests do: fills each QP in turn, then polls
// for completions; of what it receives first, where both ends send.
class Sender final : public Waiter {
 public:
  // tally: null if the receiver counts. inbox: null if another CPU takes what comes in, or nothing does.
  Sender(const CpuCosts& costs, End& end, const Setup& setup, unsigned thread, std::size_t who, Tally* tally,
         std::unique_ptr<Inbox> inbox)
      : Waiter(costs, setup.events),
        end_(end),
        setup_(setup),
        cq_(end.send_cq(thread)),
        who_(who),
        tally_(tally),
        inbox_(std::move(inbox)) {
    for (std::size_t i = thread; i < end.lanes().size(); i += setup.threads) open_.push_back(&end.lanes()[i]);
    if (inbox_) inbox_->post_all();
  }
  void begin() override { fill(); }

 private:
  bool room(const Lane& l) const { return l.posted - l.completed + setup_.postlist <= setup_.depth; }

  void fill() {
    while (next_ < open_.size() && !room(*open_[next_])) ++next_;
    if (next_ == open_.size()) {
      open_.clear();
      next_ = 0;
      complete();
      return;
    }
    spend(costs().post * setup_.postlist, [this] {
      end_.post(*open_[next_], setup_.postlist, 1);
      spend(costs().doorbell, [this] { fill(); });
    });
  }

  void complete() {
    if (inbox_)
      await(cq_, inbox_->cq(), [this] { receive(0); });
    else
      await(cq_, [this] { spend(costs().cqe, [this] { take(1); }); });
  }

  void receive(unsigned taken) {
    if (taken < inbox_->most() && inbox_->cq().ready())
      spend(costs().cqe + costs().post_recv, [this, taken] {
        inbox_->take(time());
        receive(taken + 1);
      });
    else if (cq_.ready())
      spend(costs().cqe, [this] { take(1); });
    else
      complete();
  }

  void take(unsigned taken) {
    const auto c = cq_.poll();
    if (c->error()) failed(*c);
    Lane& lane = end_.lane_of(c->qpn);
    lane.completed += setup_.cq_mod;
    if (tally_) tally_->note(who_, end_.number(lane), setup_.cq_mod, time());
    if (room(lane) && std::find(open_.begin(), open_.end(), &lane) == open_.end()) open_.push_back(&lane);
    if (taken < kPollBatch && cq_.ready())
      spend(costs().cqe, [this, taken] { take(taken + 1); });
    else if (open_.empty())
      complete();
    else
      fill();
  }

  End& end_;
  const Setup& setup_;
  bare::Cq& cq_;
  const std::size_t who_;
  Tally* const tally_;
  const std::unique_ptr<Inbox> inbox_;
  std::vector<Lane*> open_;  // may have room
  std::size_t next_ = 0;
};

// A CPU that only receives.
class Receiver final : public Waiter {
 public:
  Receiver(const CpuCosts& costs, const Setup& setup, std::unique_ptr<Inbox> inbox)
      : Waiter(costs, setup.events), inbox_(std::move(inbox)) {
    inbox_->post_all();
  }
  void begin() override { await(); }

 private:
  void await() {
    Waiter::await(inbox_->cq(), [this] { busy(); });
  }
  void busy() {
    spend(costs().cqe + costs().post_recv, [this] {
      inbox_->take(time());
      if (inbox_->cq().ready())
        busy();
      else
        await();
    });
  }

  const std::unique_ptr<Inbox> inbox_;
};

Result latency(Stage& stage, const Setup& s) {
  End &from = *stage.senders[0], &to = *stage.receivers[0];
  Player ping(CpuCosts(from.device().function()), from, s, true);
  Player pong(CpuCosts(to.device().function()), to, s, false);
  Cpus cpus(stage.machine());
  // The responding end first, so that its receive WQEs are posted before the first message.
  if (!s.pulls()) cpus.add(pong);
  cpus.add(ping);
  const std::size_t wanted = std::size_t{s.warmup} + s.iterations + 1;
  cpus.run([&] { return ping.posts().size() >= wanted; });
  return latencies(s, ping.posts(), ping.digest);
}

Result throughput(Stage& stage, const Setup& s) {
  const bool received = s.verb == Verb::kSend && s.transport != Transport::kRc;
  const std::size_t parties = stage.senders.size() * (s.both ? 2 : 1);
  Tally tally(s, parties, stage.machine().now() * 1000);
  std::vector<std::unique_ptr<Cpu>> all;
  const auto sends = [&](End& end, std::size_t who, unsigned t, std::unique_ptr<Inbox> inbox) {
    all.push_back(std::make_unique<Sender>(CpuCosts(end.device().function()), end, s, t, who,
                                           received ? nullptr : &tally, std::move(inbox)));
  };
  const auto inbox = [&](End& end, std::size_t who, unsigned t) {
    return s.verb == Verb::kSend ? std::make_unique<Inbox>(end, s, t, who, received ? &tally : nullptr)
                                 : nullptr;
  };
  for (std::size_t i = 0; i < stage.senders.size(); ++i) {
    End &a = *stage.senders[i], &b = *stage.receivers[i];
    const std::size_t back = stage.senders.size() + i;
    for (unsigned t = 0; t < s.threads; ++t) {
      sends(a, i, t, s.both ? inbox(a, back, t) : nullptr);
      if (s.both)
        sends(b, back, t, inbox(b, i, t));
      else if (s.verb == Verb::kSend)
        all.push_back(std::make_unique<Receiver>(CpuCosts(b.device().function()), s, inbox(b, i, t)));
    }
  }
  Cpus cpus(stage.machine());
  for (const auto& cpu : all) cpus.add(*cpu);
  cpus.run([&] { return tally.over(); });
  return tally.result();
}

}  // namespace

Result measure_here(const Setup& setup) {
  const Setup s = setup.resolved();
  if (s.udp()) return measure_datagrams(s);
  const bare::RuleWatch watch;
  Stage stage(s);
  Result r = s.metric == Metric::kLat ? latency(stage, s) : throughput(stage, s);
  add_counters(stage.receivers[0]->device().function(), "rx.", r.counters);
  add_counters(stage.senders[0]->device().function(), "tx.", r.counters);
  watch.must_be_none();
  return r;
}

}  // namespace hcasim::timing
