// SPDX-License-Identifier: BSD-3-Clause
// Completion queues of the bare driver.
#ifndef HCASIM_DRIVER_BARE_CQ_H
#define HCASIM_DRIVER_BARE_CQ_H

#include <array>
#include <deque>
#include <functional>
#include <optional>

#include "driver/bare/devx.h"

namespace hcasim::bare {

// A CQE, in host order.
struct Completion {
  prm::CqeOp op = prm::CqeOp::kInvalid;
  prm::CqeSyndrome syndrome = prm::CqeSyndrome::kOk;  // of error CQEs
  std::uint8_t vendor_syndrome = 0;
  prm::WqeOp send_op = prm::WqeOp::kNop;  // requester CQEs
  std::uint32_t qpn = 0;
  std::uint32_t user_index = 0;  // word 32: SRQN or user index
  std::uint32_t byte_cnt = 0;
  std::uint32_t imm = 0;  // immediate, or invalidated key
  std::uint32_t flags_rqpn = 0;
  std::uint16_t slid = 0;
  std::uint8_t header_type = 0;  // l4_l3_hdr_type
  std::uint16_t vlan = 0;
  std::uint16_t wqe_counter = 0;
  bool solicited = false;
  prm::Cqe raw{};                                     // the whole CQE as the device wrote it
  std::array<std::uint8_t, sizeof(prm::Cqe)> head{};  // first half of a 128-byte entry

  bool error() const { return op == prm::CqeOp::kReqErr || op == prm::CqeOp::kRespErr; }
  bool request() const { return op == prm::CqeOp::kReq || op == prm::CqeOp::kReqErr; }
  std::string text() const;
  // Message data within the CQE; null if there is none.
  const std::uint8_t* inline_data() const;
};

struct CqOptions {
  unsigned log_size = 8;   // CQEs
  unsigned cqe_size = 64;  // bytes: 64 or 128
  bool padded = false;     // the device always writes all of a 128-byte entry
  unsigned comp_vector = 0;
  bool overrun_ignore = false;
  std::optional<prm::MiniFormat> compress;
  unsigned period_us = 0, max_count = 0;  // moderation, 0 = off
  bool period_from_cqe = false;           // each CQE begins the period anew
  RingLayout ring;
  bool in_umem = false;  // ring and doorbell record are in UMEMs
};

class Cq {
 public:
  explicit Cq(Device& device) : Cq(device, CqOptions{}) {}
  Cq(Device& device, const CqOptions& options);
  ~Cq();
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;

  std::uint32_t cqn() const { return cqn_; }
  // The next CQE, if any. Updates the doorbell record unless switched off (set_auto_update).
  std::optional<Completion> poll();
  // Lets time pass until there are n completions, or until the timeout (ns); returns them.
  std::vector<Completion> wait(std::size_t n, std::int64_t timeout = 10'000'000'000);
  // As wait(1); throws BareError on timeout.
  Completion wait_one(std::int64_t timeout = 10'000'000'000);
  // Whether there is a CQE; does not consume it.
  bool ready() const;
  // Number of blocks of compressed CQEs that poll() has expanded.
  unsigned blocks() const { return blocks_; }
  // Consumes up to n CQEs without decoding them (fast); returns how many.
  unsigned discard(unsigned n);

  void arm(bool solicited_only = false);
  void update_ci();
  void set_auto_update(bool on) { auto_update_ = on; }
  std::uint64_t events() const { return events_; }
  void on_event() {
    ++events_;
    ++arm_sn_;
    if (handler_) handler_();
  }
  void set_handler(std::function<void()> handler) { handler_ = std::move(handler); }

  // The whole resize: new ring, MODIFY_CQ, copy of the CQEs not polled yet.
  CommandResult resize(unsigned log_size);
  CommandResult set_moderation(unsigned period_us, unsigned max_count);
  // The same without waiting: `done` is called when it is so. Throws BareError from within if the device
  // refuses.
  void moderate_later(unsigned period_us, unsigned max_count, std::function<void()> done);
  CommandResult query();
  CommandResult destroy();
  std::uint32_t consumer() const { return ci_; }
  unsigned log_size() const { return log_size_; }
  const Ring& ring() const { return ring_; }
  const Dbr& dbr() const { return dbr_; }

 private:
  static void clear(const Ring& ring, unsigned log_size, unsigned cqe_size);
  std::uint8_t* slot(const Ring& ring, unsigned log_size, std::uint32_t index) const {
    return ring.data() + static_cast<std::size_t>(index & ((1u << log_size) - 1)) * cqe_size_;
  }
  prm::Cqe* hw_owned(std::uint32_t index) const;
  Mailbox moderation(unsigned period_us, unsigned max_count) const;
  Completion decode(const prm::Cqe& cqe) const;
  void prefetch_block(const prm::Cqe& title);

  Device& device_;
  unsigned log_size_, cqe_size_;
  Ring ring_;
  Dbr dbr_;
  std::optional<QueueUmems> umems_;
  std::uint32_t cqn_ = 0, ci_ = 0;
  unsigned arm_sn_ = 0;  // arm sequence number: counts events, as the device does
  unsigned blocks_ = 0;
  std::deque<Completion> taken_;  // expanded from a block, not polled yet
  std::uint64_t epoch_, events_ = 0;
  std::optional<prm::MiniFormat> compress_;
  bool live_ = false, auto_update_ = true;
  std::function<void()> handler_;
};

}  // namespace hcasim::bare
#endif
