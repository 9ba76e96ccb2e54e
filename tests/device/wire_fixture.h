// SPDX-License-Identifier: BSD-3-Clause
// Machines with joined HCAs, and an end of a connection on each.
#ifndef HCASIM_TESTS_DEVICE_WIRE_FIXTURE_H
#define HCASIM_TESTS_DEVICE_WIRE_FIXTURE_H

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "driver/bare/qp.h"

namespace hcasim::bare {

// HCAs of this process, by name; made and started at the first call.
Machine& wired_machine();
enum Wired : std::size_t {
  kCableA,  // cable= to each other, InfiniBand
  kCableB,
  kSocketA,  // wire= to each other, InfiniBand
  kSocketB,
  kAlone,  // wire=, the far end is the test's own
  kHost,   // wire=host, Ethernet
  kEthA,   // wire= to each other, Ethernet
  kEthB,
  kManagedA,  // cable= to each other, InfiniBand, without subnet manager
  kManagedB,
  kSpeedA,  // cable= to each other, Ethernet
  kSpeedB,
  kExtendedA,  // the same, of a generation with extended link modes
  kExtendedB,
  kNdr,       // no cable, InfiniBand, a profile of NDR
  kNoNdr,     // the same of a generation without
  kVirtualA,  // cable= to each other, InfiniBand, a virtual function each
  kVirtualB,
};
// Where kAlone listens or connects.
std::string alone_path();

// One QP with memory, a key and a CQ, on a device of its own.
struct End {
  explicit End(std::size_t hca, const QpOptions& qp_options = {}, std::size_t bytes = std::size_t{1} << 20);

  Function& function;
  Device device;

 private:
  bool probed_;

 public:
  Pd pd;
  Cq cq;
  Qp qp;
  Buffer memory;
  Mr mr;

  Sge sge(std::size_t off, std::uint32_t len) const { return {mr.start() + off, mr.key(), len}; }
};

// RC, from one end to the other.
void connect(End& a, End& b, QpAttr attr = {});
// The port's state gets there, as its driver sees it, within 10 s of real time.
bool reaches(Device& device, unsigned state);
constexpr unsigned kDown = 1, kActive = 4;  // vport_state

void fill_random(End& end, unsigned seed);

}  // namespace hcasim::bare
#endif
