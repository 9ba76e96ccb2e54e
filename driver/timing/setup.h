// SPDX-License-Identifier: BSD-3-Clause
// The parameters of a measurement: perftest's knobs, by name. One table for files, command lines and sweeps.
#ifndef HCASIM_DRIVER_TIMING_SETUP_H
#define HCASIM_DRIVER_TIMING_SETUP_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace hcasim::timing {

// An impossible request; the message says what is possible.
class SetupError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// kUdp: datagrams of Ethernet queues, by way of a host's network stack (network_stack.h).
enum class Verb { kWrite, kSend, kRead, kFetchAdd, kCmpSwap, kUdp };
// kLat: one message at a time. kBw, kRate: as many as `depth` allows; they differ in their defaults.
enum class Metric { kLat, kBw, kRate };
enum class Transport { kRc, kUc, kUd };
// What is between the program and the queues of datagrams: the kernel with interrupts and sockets; the same,
// but a thread that waits looks at the queues itself (SO_BUSY_POLL); nothing, as with DPDK.
enum class Stack { kKernel, kBusyPoll, kBypass };
// The two ends are on one HCA, on two joined by a cable, or on two (or more) on one switch.
enum class Fabric { kLoopback, kCable, kSwitch };
// What tables the managers of the HCAs' E-Switches have made (eswitch.h); kNone: packets go by their
// addresses alone.
enum class ESwitchMode { kNone, kLegacy, kSwitchdev };

// Of a datagram on the wire: Ethernet, IPv4, UDP; and what a socket's buffer takes by default, in bytes.
constexpr std::uint32_t kUdpHeaders = 14 + 20 + 8;
constexpr std::uint32_t kSocketBuffer = 212992;

struct Setup {
  std::string profile = "default";
  std::vector<std::string> parameters;  // of the profile: SECTION.KEY=VALUE; the last of a name counts
  bool ethernet = true;
  Fabric fabric = Fabric::kCable;
  bool virtuals = false;                     // the ends are virtual functions
  ESwitchMode eswitch = ESwitchMode::kNone;  // of virtual functions on Ethernet
  Verb verb = Verb::kWrite;
  Metric metric = Metric::kLat;
  Transport transport = Transport::kRc;
  std::uint32_t size = 0;  // bytes of a message; 0: 8, for bandwidth 65536
  int inline_limit = -1;   // messages up to this are inline; -1: as perftest: 220 for latency, else 0
  bool blueflame = true;   // for one WQE at a time; false: doorbells only
  unsigned qps = 1;        // of each sender
  unsigned threads = 1;    // CPUs of each sender, among which the QPs are dealt out
  unsigned depth = 0;      // messages of a QP posted and not completed; 0: 128
  unsigned postlist = 1;   // WQEs a doorbell
  unsigned cq_mod =
      0;  // one CQE for so many messages; 0: latency 1; depth from 128: 100; else a quarter of it
  bool events = false;  // completions are waited for asleep, by interrupts; false: by polling
  unsigned cq_max_count = 0, cq_period = 0;  // moderation of their events: completions, us; 0: none
  unsigned mrs = 1;                          // memory regions at either end, used in turn
  unsigned addresses = 1;                    // atomics: places, 64 bytes apart, used in turn
  Stack stack = Stack::kKernel;              // udp
  bool adaptive = true;                      // udp: moderation follows the load, as in Linux
  std::uint64_t span = 0;   // bytes that the messages of a QP go through in turn; 0: one message's
  bool both = false;        // both ends send
  unsigned senders = 1;     // fabric=switch: HCAs that send to one
  unsigned mtu = 4096;      // of the path
  unsigned reads = 16;      // outstanding reads and atomics of a QP, a power of two
  unsigned warmup = 0;      // messages before those measured; 0: enough for the caches and queues
  unsigned iterations = 0;  // messages measured; 0: latency 200, else enough

  // Gives a value by name; SECTION.KEY is a parameter of the profile. Throws SetupError.
  void set(const std::string& key, const std::string& value);
  void set(const std::string& pair);              // KEY=VALUE
  std::string get(const std::string& key) const;  // in the form that set() takes; "" for the profile's value
  // Fills in defaults, and throws SetupError if the parameters contradict one another.
  Setup resolved() const;
  bool atomic() const { return verb == Verb::kFetchAdd || verb == Verb::kCmpSwap; }
  bool udp() const { return verb == Verb::kUdp; }
  // Asks for more than one message at a time. (The queues of datagrams are as deep in any case.)
  bool several() const;
  bool pulls() const { return atomic() || verb == Verb::kRead; }
  // Datagrams that wait in a socket at most.
  unsigned socket_datagrams() const;
  std::string pattern() const;  // such as "write_lat"
};

// Logarithm of the least power of two that is not below n.
inline unsigned log2_up(std::uint64_t n) {
  unsigned log = 0;
  while (std::uint64_t{1} << log < n) ++log;
  return log;
}

struct SetupKey {
  const char* name;
  const char* allowed;
  const char* help;
};
const std::vector<SetupKey>& setup_keys();

}  // namespace hcasim::timing
#endif
