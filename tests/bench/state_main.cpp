// SPDX-License-Identifier: BSD-3-Clause
// `./hcasim bench state`: how large a saved state is, and how long saving and loading take, by how many
// objects an HCA has. Times stand beside that of copying the state's bytes and of their checksum, which no
// format could do without.
#include <fmt/format.h>
#include <libdeflate.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "command/parse.h"
#include "driver/bare/qp.h"
#include "driver/bare/rules.h"
#include "driver/bare/saved.h"

namespace {

using namespace hcasim::bare;

struct Objects {
  unsigned qps, cqs, mrs;
};

template <class F>
double ms(F f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

void load(const std::string& state) {
  if (const std::string why = load_state(state); !why.empty())
    throw BareError("the state cannot be loaded: " + why);
}

// What there is until the end.
class Made {
 public:
  explicit Made(Device& device)
      : device_(device), pd_(device), pages_(device.memory().allocate(16 * kPage)) {}

  void add(const Objects& to) {
    CqOptions small;
    small.log_size = 4;
    while (cqs_.size() < to.cqs) cqs_.push_back(std::make_unique<Cq>(device_, small));
    QpOptions few;
    few.log_sq = few.log_rq = 3;
    while (qps_.size() < to.qps) {
      Cq& cq = *cqs_[qps_.size() % cqs_.size()];
      qps_.push_back(std::make_unique<Qp>(device_, pd_, cq, cq, few));
      if (qps_.size() % 2 == 0) connect_pair(*qps_[qps_.size() - 2], *qps_.back(), {});
    }
    while (mrs_.size() < to.mrs)
      mrs_.push_back(std::make_unique<Mr>(device_, Mr::of(pd_, pages_, kAllAccess)));
  }

 private:
  Device& device_;
  Pd pd_;
  Buffer pages_;
  std::vector<std::unique_ptr<Cq>> cqs_;
  std::vector<std::unique_ptr<Qp>> qps_;
  std::vector<std::unique_ptr<Mr>> mrs_;
};

void row(const Objects& objects, unsigned rounds) {
  double saved = 0, loaded = 0, copied = 0;
  std::string state;
  for (unsigned i = 0; i < rounds; ++i) {
    saved += ms([&] { state = save_state(); });
    loaded += ms([&] { load(state); });
    std::uint32_t sum = 0;
    copied += ms([&] {
      const std::string copy(state);
      sum = libdeflate_crc32(0, copy.data(), copy.size());
    });
    if (save_state() != state) throw BareError("what was loaded is another state");
    if (sum == 0) std::puts("");
  }
  fmt::print("{:>8}{:>8}{:>9}{:>12.2f}{:>10.1f}{:>10.1f}{:>10.0f}{:>10.0f}\n", objects.qps, objects.cqs,
             objects.mrs, static_cast<double>(state.size()) / 1e6, saved / rounds, loaded / rounds,
             saved / copied, loaded / copied);
}

int run(const std::vector<Objects>& sizes, unsigned rounds) {
  const RuleWatch watch;
  Machine machine(std::size_t{2} << 30);
  Function& function = machine.add_hca("link=ib");
  machine.start();
  Device device(function);
  device.probe();
  fmt::print("{:>8}{:>8}{:>9}{:>12}{:>10}{:>10}{:>10}{:>10}\n", "QPs", "CQs", "MRs", "state, MB", "save, ms",
             "load, ms", "save/copy", "load/copy");
  Made made(device);
  for (const Objects& objects : sizes) {
    made.add(objects);
    row(objects, rounds);
  }
  watch.must_be_none();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app{"Size of saved states, and the time to save and to load them, by what an HCA has.",
                 "hcasim bench state"};
    unsigned rounds = 5;
    bool small = false;
    app.add_option("--rounds", rounds, "times that each is measured")->check(CLI::Range(1, 1000));
    app.add_flag("--small", small, "no more than 1,000 QPs, as a check");
    if (const auto status = hcasim::command::parse(app, argc, argv)) return *status;
    std::vector<Objects> sizes{{0, 0, 0}, {1000, 1000, 10'000}};
    if (!small) sizes.push_back({10'000, 10'000, 100'000});
    return run(sizes, rounds);
  } catch (const std::exception& e) {
    std::cerr << "bench state: " << e.what() << "\n";
    return 1;
  }
}
