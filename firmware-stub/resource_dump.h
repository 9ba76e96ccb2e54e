// SPDX-License-Identifier: BSD-3-Clause
// Dumps of the card's objects (register RESOURCE_DUMP): contexts as the PRM has them, the rings behind them,
// and what the engines have counted. A dump is a list of segments (resource_dump_*_segment of mlx5_ifc.h):
// which card, what was asked for, the object or why there is none, the end. Read by Linux (diag/rsc_dump.c:
// the health reporters tx and rx, `rdma res show .. -r`), and by tools.
#ifndef HCASIM_FIRMWARE_STUB_RESOURCE_DUMP_H
#define HCASIM_FIRMWARE_STUB_RESOURCE_DUMP_H

#include <cstddef>
#include <cstdint>
#include <vector>

#include "firmware-stub/syndromes.h"
#include "model/ctx/guest_ring.h"
#include "model/time.h"

namespace hcasim::fw {

class Firmware;

// A ring's elements, or some of them: each a segment of its own.
struct RingDump {
  GuestRing ring;
  std::uint64_t start = 0;  // bytes from the start of the ring
  std::uint32_t element = 0, elements = 0;
};

class ResourceDump {
 public:
  struct Request {
    std::uint16_t segment = 0;  // which: kMenu or a row of the menu
    std::uint32_t index1 = 0, index2 = 0;
    std::uint16_t count1 = 0, count2 = 0;  // of objects from the indexes on; kAll
  };
  static constexpr std::uint16_t kMenu = 0xffff, kAll = 0xffff;

  ResourceDump(Firmware& fw, Time now, const Request& request);

  // kOk, or that there is no such dump.
  Syndrome status() const { return status_; }
  std::uint64_t bytes() const { return head_.size() + ring_bytes() + tail_.size(); }
  // Bytes [from, from + len) of it, which must be there. False: the host does not let its ring be read.
  bool read(std::uint64_t from, std::uint8_t* out, std::size_t len);

 private:
  std::uint64_t element_bytes() const;
  std::uint64_t ring_bytes() const { return element_bytes() * count_; }
  void begin();
  void menu();
  bool element(std::uint64_t n, std::vector<std::uint8_t>& out);

  Firmware& fw_;
  const Time now_;
  const Request request_;
  Syndrome status_ = Syndrome::kOk;
  std::vector<std::uint8_t> head_, tail_;
  RingDump ring_;
  std::uint32_t first_ = 0, count_ = 0;  // elements of the ring
};

}  // namespace hcasim::fw
#endif
