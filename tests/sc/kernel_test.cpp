// SPDX-License-Identifier: BSD-3-Clause
// The agenda's kernels: the same turns at the same times in the same order, whoever gives them. Each has a
// process, as there is one SystemC kernel in each.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "model/agenda.h"
#include "model/timed_queue.h"

namespace hcasim {
namespace {

struct Quiet : FaultSink {
  void model_fault(const char*, const char*) noexcept override { ++faults; }
  unsigned faults = 0;
};

// Queues that give each other work, many times at the same time, from one random sequence: another order of
// the turns gives another sequence from there on.
class Crowd : public sc_core::sc_module {
 public:
  explicit Crowd(const sc_core::sc_module_name& name) : sc_module(name) {
    for (unsigned i = 0; i < 7; ++i) {
      queues_.push_back(std::make_unique<TimedQueue<int>>(
          ("q" + std::to_string(i)).c_str(), [this, i](Time due, int& item) { handle(i, due, item); },
          faults_, i % 3 == 0 ? 500 : 0));
    }
  }
  void push(unsigned to, Time at, int item) { queues_[to]->push(at, item); }
  std::string log;
  Time pause = 0;

 private:
  void handle(unsigned i, Time due, int item) {
    log += std::to_string(i) + "@" + std::to_string(sim_now()) + "/" + std::to_string(due) + ":" +
           std::to_string(item) + (Agenda::running() ? " " : "!");
    if (pause != 0) sc_core::wait(to_sc(pause));
    if (left_ == 0) return;
    --left_;
    const unsigned n = random_() % 3;
    for (unsigned k = 0; k < n || (k == 0 && left_ % 4 == 0); ++k)
      push(random_() % 7, sim_now() + static_cast<Time>(random_() % 4) * 250, item + 1);
    if (random_() % 40 == 0) queues_[random_() % 7]->clear();
    if (item % 17 == 0) throw std::runtime_error("none may leave a turn");
  }
  Quiet faults_;
  std::mt19937 random_{4711};
  unsigned left_ = 4000;
  std::vector<std::unique_ptr<TimedQueue<int>>> queues_;
};

// What a child process writes to its end.
std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    std::string text;
    try {
      text = body();
    } catch (const std::exception& e) {
      text = e.what();
    }
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t n = write(ends[1], text.data() + done, text.size() - done);
      if (n <= 0) break;
      done += static_cast<std::size_t>(n);
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text(1 << 16, 0), all;
  for (ssize_t n = 0; (n = read(ends[0], text.data(), text.size())) > 0;)
    all.append(text.data(), static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? all : "the process died";
}

void begin(Crowd& crowd) {
  for (unsigned i = 0; i < 40; ++i)
    crowd.push(i % 7, 1000 + static_cast<Time>(i / 10) * 250, static_cast<int>(i));
}

// As the C API drives it: in steps, with work from outside between them.
std::string driven(bool native) {
  return in_child([&] {
    sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_DO_NOTHING);
    if (!Agenda::choose({native, false})) return std::string("not chosen");
    Agenda::instance().set_alone();
    Crowd crowd("crowd");
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    begin(crowd);
    for (Time t = 0; t < 2'000'000; t += 1777) {
      Agenda::instance().run_alone(t, (t & 1) == 0);
      if (t % 5 == 0) crowd.push(static_cast<unsigned>(t % 7), sim_now() + t % 3 * 250, 1);
      crowd.log += "|" + std::to_string(sim_now()) + "," + std::to_string(simulation().clock.activations) +
                   "," + std::to_string(simulation().clock.turns) + "," +
                   std::to_string(Agenda::instance().armed()) + "|";
    }
    return crowd.log;
  });
}

std::string started(Agenda::Kernel kernel, Time pause = 0) {
  return in_child([&] {
    if (!Agenda::choose(kernel)) return std::string("not chosen");
    Crowd crowd("crowd");
    crowd.pause = pause;
    begin(crowd);
    sc_core::sc_start(sc_core::sc_time(50, sc_core::SC_US));
    return crowd.log;
  });
}

TEST(Kernels, DrivenFromOutsideTheyAgree) {
  const std::string fast = driven(false);
  EXPECT_GT(fast.size(), 50'000u);
  EXPECT_EQ(fast, driven(true));
}

TEST(Kernels, StartedBySystemCTheyAgree) {
  const std::string fast = started({false, false});
  EXPECT_GT(fast.size(), 20'000u);
  EXPECT_EQ(fast, started({false, true}));
  EXPECT_EQ(fast, started({true, false}));
  EXPECT_EQ(fast, started({true, true}));
}

TEST(Kernels, TurnsThatWaitComeInTheSameOrder) {
  const std::string one = started({false, true}, 100);
  EXPECT_GT(one.size(), 10'000u);
  EXPECT_EQ(one, started({true, true}, 100));
}

TEST(Kernels, ThereIsOneForAll) {
  EXPECT_EQ(in_child([] {
              std::string out;
              out += Agenda::choose({true, false}) ? "native " : "";
              out += Agenda::choose({true, false}) ? "again " : "";
              out += Agenda::choose({false, false}) ? "" : "refused";
              return out;
            }),
            "native again refused");
}

}  // namespace
}  // namespace hcasim
