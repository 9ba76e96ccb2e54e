// SPDX-License-Identifier: BSD-3-Clause
// One end of a wire in coupled time, as a process: coupled_end SIDE OPTIONS ROUNDS SEED [LEAVE_US]
//   SIDE     a or b: which begins
//   OPTIONS  of the HCA
//   ROUNDS   messages to and fro, with the pattern checked; 0: only waits for its port for 20 ms of simulated
//   time SEED     of the pauses that make this process fast or slow; 0: none LEAVE_US ends at once, without a
//   word, at this simulated time (0: never)
// Prints what it sees of the port and of the messages, with the simulated times, then the HCA's log.
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "driver/bare/qp.h"
#include "driver/bare/rules.h"

using namespace hcasim::bare;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint32_t kBytes = 64;

class Pauses {
 public:
  explicit Pauses(unsigned seed) : seed_(seed), random_(seed) {}
  void take() {
    if (seed_ == 0 || random_() % 8 != 0) return;
    usleep(random_() % (seed_ % 2 != 0 ? 400 : 40));
  }

 private:
  unsigned seed_;
  std::mt19937 random_;
};

int run(int argc, char** argv) {
  if (argc < 5) return 2;
  const bool first = std::string(argv[1]) == "a";
  const unsigned rounds = static_cast<unsigned>(std::atoi(argv[3]));
  Pauses pauses(static_cast<unsigned>(std::atoi(argv[4])));
  const std::int64_t leave = argc > 5 ? std::atoll(argv[5]) * 1000 : 0;

  const RuleWatch watch;
  Machine machine(std::size_t{64} << 20);
  machine.echo_log = true;
  Function& function = machine.add_hca(argv[2]);
  machine.start();
  DeviceOptions options;
  options.wait_active = false;
  Device device(function, options);
  device.probe();
  const auto pass = [&](auto pred, std::int64_t limit) {
    return machine.run_until(
        [&] {
          pauses.take();
          if (leave != 0 && machine.now() >= leave) _exit(0);
          return pred();
        },
        limit);
  };
  pass([&] { return device.port_state() == 4; }, 20 * kMs);
  std::printf("port %u at %" PRId64 "\n", device.port_state(), machine.now());
  if (rounds != 0) {
    Pd pd(device);
    Cq cq(device);
    Qp qp(device, pd, cq, cq);
    Buffer memory = device.memory().allocate(1 << 16);
    Mr mr(device, Mr::of(pd, memory, kAllAccess));
    QpAttr attr;
    attr.remote_qpn = qp.qpn();  // both ends have made the same things in the same order
    attr.dlid = device.lid() == 1 ? 2 : 1;
    qp.connect(attr);
    const std::vector<Sge> receive = {{mr.start(), mr.key(), kBytes}};
    SendWr send;
    send.sges = {{mr.start() + 4096, mr.key(), kBytes}};
    qp.post_recv(receive);
    // The other end may take longer to get here; RC tries again.
    pass([] { return false; }, 2 * kMs);
    const std::int64_t began = machine.now();
    for (unsigned i = 0; i < rounds; ++i) {
      for (const bool sends : {first, !first}) {
        if (sends) {
          std::memset(memory.data() + 4096, static_cast<int>(i + 1), kBytes);
          qp.post(send);
        }
        bool done = false;
        pass(
            [&] {
              while (const auto c = cq.poll()) {
                if (c->error()) {
                  std::printf("%s at %" PRId64 "\n", c->text().c_str(), machine.now());
                  return done = true;
                }
                done = done || c->request() == sends;
              }
              return done;
            },
            100 * kMs);
        if (!done) {
          std::printf("nothing came in round %u\n", i);
          return 1;
        }
        if (!sends) {
          if (memory.data()[0] != static_cast<std::uint8_t>(i + 1))
            std::printf("wrong data in round %u\n", i);
          qp.post_recv(receive);
        }
      }
    }
    std::printf("rounds %u in %" PRId64 " ns\n", rounds, machine.now() - began);
  }
  pass([] { return false; }, 10 * kMs);
  std::printf("port %u in the end, meetings %" PRIu64 ", late %" PRIu64 "\n", device.port_state(),
              function.counter("wire_meetings"), function.counter("wire_late"));
  device.teardown();
  // Once more around: the other end hears that the link is not wanted any more.
  machine.advance(10 * kMs);
  watch.must_be_none();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  alarm(100);  // whatever happens, this ends
  setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    std::printf("exception: %s\n", e.what());
    return 1;
  }
}
