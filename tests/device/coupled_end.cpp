// SPDX-License-Identifier: BSD-3-Clause
// One end of a wire, as a process: coupled_end SIDE OPTIONS ROUNDS SEED [LEAVE_US [BYTES]]
//   SIDE      a or b: which begins
//   OPTIONS   of the HCA; without coupled=on its time is its own, and goes as real time does, or slower. A |
//             and those of a second one may follow: its port is waited for, too
//   ROUNDS    messages to and fro, with the pattern checked; 0: only waits for its port
//   SEED      of the pauses that make this process fast or slow; 0: none
//   LEAVE_US  ends at once, without a word, so long (simulated time) after its port has come up, or
//             after the first message (0: never)
//   BYTES     of a message (64)
// Prints what it sees of the port and of the messages, with the simulated times, then the HCA's log.
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>

#include "driver/bare/qp.h"
#include "driver/bare/rules.h"

using namespace hcasim::bare;

namespace {

constexpr std::int64_t kMs = 1'000'000;

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
  const std::int64_t stay = argc > 5 ? std::atoll(argv[5]) * 1000 : 0;
  const auto bytes = static_cast<std::uint32_t>(argc > 6 ? std::atoi(argv[6]) : 64);
  std::int64_t leave = 0;

  const RuleWatch watch;
  Machine machine(std::size_t{64} << 20);
  machine.echo_log = true;
  const std::string given = argv[2];
  const std::size_t bar = given.find('|');
  Function& function = machine.add_hca(given.substr(0, bar));
  Function* const second_function =
      bar != std::string::npos ? &machine.add_hca(given.substr(bar + 1)) : nullptr;
  machine.start();
  DeviceOptions options;
  options.wait_active = false;
  Device device(function, options);
  device.probe();
  std::optional<Device> second;
  if (second_function) {
    second.emplace(*second_function, options);
    second->probe();
  }
  const bool coupled = std::strstr(argv[2], "coupled=on") != nullptr;
  const auto pass = [&](auto pred, std::int64_t limit) {
    const auto looks = [&] {
      pauses.take();
      if (leave != 0 && machine.now() >= leave) _exit(0);
      return pred();
    };
    if (coupled) return machine.run_until(looks, limit);
    return machine.wait_real(looks, 60'000);
  };
  const auto rest = [&](std::int64_t ns) {
    if (coupled)
      pass([] { return false; }, ns);
    else
      machine.wait_real([] { return false; }, 50);
  };
  pass([&] { return device.port_state() == 4 && (!second || second->port_state() == 4); }, 20 * kMs);
  const auto stays = [&] {
    if (stay != 0 && leave == 0) leave = machine.now() + stay;
  };
  if (rounds == 0) stays();
  std::printf("port %u at %" PRId64 "\n", device.port_state(), machine.now());
  if (second) std::printf("second port %u\n", second->port_state());
  if (rounds != 0) {
    Pd pd(device);
    Cq cq(device);
    Qp qp(device, pd, cq, cq);
    Buffer memory = device.memory().allocate(2 * std::max(bytes, 4096u));
    std::uint8_t* const sent = memory.data() + memory.size() / 2;
    Mr mr(device, Mr::of(pd, memory, kAllAccess));
    QpAttr attr;
    attr.ack_timeout = 10;       // 4 ms
    attr.remote_qpn = qp.qpn();  // both ends have made the same things in the same order
    if (device.ethernet()) {     // MAC addresses that end in 1 and 2, and GIDs made of them
      attr.roce.dmac = device.mac();
      attr.roce.dgid = device.roce_entry(device.sgid_index()).gid;
      attr.roce.dmac.back() ^= 3;
      attr.roce.dgid.back() ^= 3;
    } else {
      attr.dlid = device.lid() == 1 ? 2 : 1;
    }
    qp.connect(attr);
    const std::vector<Sge> receive = {{mr.start(), mr.key(), bytes}};
    SendWr send;
    send.sges = {{mr.start() + memory.size() / 2, mr.key(), bytes}};
    qp.post_recv(receive);
    // The other end may take longer to get here; RC tries again.
    rest(2 * kMs);
    const std::int64_t began = machine.now();
    bool lost = false;
    unsigned came[2] = {};  // completions: of receives, of sends
    for (unsigned i = 0; i < rounds && !lost; ++i) {
      for (const bool sends : {first, !first}) {
        if (lost) break;
        if (sends) {
          std::memset(sent, static_cast<int>(i + 1), bytes);
          qp.post(send);
        }
        bool done = false;
        pass(
            [&] {
              while (const auto c = cq.poll()) {
                if (c->error()) {
                  std::printf("%s at %" PRId64 "\n", c->text().c_str(), machine.now());
                  return done = lost = true;
                }
                ++came[c->request()];
                stays();
              }
              done = came[sends] > i;
              if (!coupled && !done && device.port_state() == 1) {
                std::printf("the port went down in round %u\n", i);
                return done = lost = true;
              }
              return done;
            },
            100 * kMs);
        if (!done) {
          std::printf("nothing came in round %u\n", i);
          return 1;
        }
        if (!sends && !lost) {
          if (memory.data()[0] != static_cast<std::uint8_t>(i + 1) ||
              memory.data()[bytes - 1] != memory.data()[0])
            std::printf("wrong data in round %u\n", i);
          qp.post_recv(receive);
        }
      }
    }
    std::printf("rounds %u in %" PRId64 " ns\n", rounds, machine.now() - began);
  }
  rest(10 * kMs);
  std::printf("port %u in the end, meetings %" PRIu64 ", late %" PRIu64 "\n", device.port_state(),
              function.counter("wire_meetings"), function.counter("wire_late"));
  if (second) second->teardown();
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
