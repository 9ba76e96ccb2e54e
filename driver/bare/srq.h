// SPDX-License-Identifier: BSD-3-Clause
// Shared receive queues of the bare driver: an RMP, an XRC SRQ or an XRQ, a linked list of receive WQEs or a
// ring of them.
#ifndef HCASIM_DRIVER_BARE_SRQ_H
#define HCASIM_DRIVER_BARE_SRQ_H

#include "driver/bare/mr.h"

namespace hcasim::bare {

// A scatter / gather element.
struct Sge {
  std::uint64_t addr = 0;
  std::uint32_t lkey = 0;
  std::uint32_t len = 0;  // bytes
};

// Writes a receive WQE's data segments at `at`, which has room for that many; a shorter list gets the PRM's
// end mark. Throws BareError if there are more.
void write_receive_list(std::uint8_t* at, const std::vector<Sge>& sges, std::size_t room);

struct SrqOptions {
  unsigned log_size = 6;    // WQEs
  unsigned log_stride = 6;  // bytes, log2: the next segment and (2^log_stride - 16) / 16 SGEs
  RingLayout ring;
  // RMP, XRQ: a ring (wq_type cyclic). WQEs are taken in the order in which they lie, and must be released
  // so.
  bool cyclic = false;
  // XRC SRQ: its domain (0: an RMP) and its CQ.
  std::uint32_t xrcd = 0, cqn = 0, user_index = 0xffffff;
  // XRQ: with its CQ as above; log_tags: log2 of the places of its matching list, 0: none.
  bool xrq = false, rendezvous = true;
  unsigned log_tags = 0;
};

// An XRC domain.
class Xrcd {
 public:
  explicit Xrcd(Device& device);
  ~Xrcd();
  Xrcd(const Xrcd&) = delete;
  Xrcd& operator=(const Xrcd&) = delete;
  std::uint32_t number() const { return number_; }

 private:
  Device& device_;
  std::uint64_t epoch_;
  std::uint32_t number_;
};

class Srq {
 public:
  Srq(Device& device, const Pd& pd) : Srq(device, pd, SrqOptions{}) {}
  Srq(Device& device, const Pd& pd, const SrqOptions& options);
  ~Srq();
  Srq(const Srq&) = delete;
  Srq& operator=(const Srq&) = delete;

  std::uint32_t srqn() const { return srqn_; }
  // Returns the index of the WQE, which runs on unmasked in a ring: a completion's wqe_counter.
  std::uint16_t post(const std::vector<Sge>& sges, bool ring = true);
  void ring_doorbell();
  // Releases the WQE of a completion.
  void release(std::uint16_t index);
  unsigned free_count() const { return free_; }
  // Requests one SRQ limit event when fewer than `limit` WQEs are left.
  CommandResult arm_limit(unsigned limit);
  CommandResult query();
  CommandResult destroy();

 private:
  void create_rmp(const Pd& pd);
  void create_xrc(const Pd& pd);
  void create_xrq(const Pd& pd);
  std::uint8_t* wqe(std::uint16_t index) const {
    const std::size_t at = index & ((1u << options_.log_size) - 1);
    return ring_.data() + (at << options_.log_stride);
  }
  Device& device_;
  SrqOptions options_;
  Ring ring_;
  Dbr dbr_;
  std::uint32_t srqn_ = 0;
  std::uint64_t epoch_;
  std::uint16_t head_ = 0, tail_ = 0, counter_ = 0;
  unsigned free_;
  bool live_ = false;
};

}  // namespace hcasim::bare
#endif
