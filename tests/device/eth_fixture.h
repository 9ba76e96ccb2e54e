// SPDX-License-Identifier: BSD-3-Clause
// What the tests of frames share: a device with an Ethernet port, a link of SQ and RQ over it, frames.
#ifndef HCASIM_TESTS_DEVICE_ETH_FIXTURE_H
#define HCASIM_TESTS_DEVICE_ETH_FIXTURE_H

#include <cstring>

#include "driver/bare/eth.h"
#include "fixture.h"

namespace hcasim::bare {

// A frame of an ethertype of its own: MACs, then bytes from `seed`.
Frame plain_frame(std::size_t len, unsigned seed = 1);

struct L4 {
  bool v6 = false, udp = false;
  std::size_t payload = 100;
  unsigned flags = 0x10;  // TCP's
  std::uint16_t sport = 4000, dport = 5000;
};
// Checksum fields 0.
Frame l4_frame(const L4& l4);
// RFC 1071, of [from, to).
unsigned plain_sum(const Frame& f, std::size_t from, std::size_t to, std::uint32_t start = 0);
// The checksum of the TCP or UDP of an untagged frame without IP options.
bool l4_sum_right(const Frame& f);

class EthTest : public DeviceTest {
 protected:
  EthTest() { function_ = kEthFunction; }
  void expect_frames_go_on();
};

constexpr std::uint32_t kCatchAll = 8;  // flow index of EthLink's rule that takes everything

// An SQ and an RQ of one port whose cable leads back to itself; everything is steered to the RQ.
struct EthLink {
  explicit EthLink(Device& device, const RqOptions& rq = {}, const CqOptions& rcq = {});
  virtual ~EthLink();
  static constexpr std::size_t kBytes = 256 << 10, kSlot = 16 << 10;

  // From one of 16 places in turn.
  std::uint16_t send(const Frame& frame, std::uint8_t cs_flags = 0);
  void put(std::size_t off, const Frame& frame) const {
    std::memcpy(tx.data() + off, frame.data(), frame.size());
  }
  Frame received(std::size_t off, std::size_t len) const { return {rx.data() + off, rx.data() + off + len}; }
  Sge tx_sge(std::size_t off, std::uint32_t len) const { return {txr.start() + off, txr.key(), len}; }
  Sge rx_sge(std::size_t off, std::uint32_t len) const { return {rxr.start() + off, rxr.key(), len}; }
  // Replaces the rule that takes everything; 0: takes it away.
  void steer_to(std::uint32_t tirn);

  Device& dev;
  Pd pd;
  Cq scq, rcq;
  Buffer tx, rx;
  Mr txr, rxr;
  EthObject td, tis;
  Sq sq;
  EthRq rq;
  EthObject tir, table, all;
  std::unique_ptr<EthObject> rule;
  unsigned sent = 0;
};

}  // namespace hcasim::bare
#endif
