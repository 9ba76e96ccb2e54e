// SPDX-License-Identifier: BSD-3-Clause
// UDP datagrams of Ethernet queues, as a network interface's driver has them: a pair of queues for each flow,
// found by its port.
#ifndef HCASIM_DRIVER_TIMING_DATAGRAMS_H
#define HCASIM_DRIVER_TIMING_DATAGRAMS_H

#include <functional>
#include <memory>
#include <vector>

#include "driver/bare/eth.h"
#include "driver/timing/setup.h"

namespace hcasim::timing {

// What a function's channels have in common: a table that leads each UDP port to a channel's queue.
class Interface {
 public:
  static constexpr std::uint16_t kFirstPort = 5000;

  // Of the function's only driver of frames. channels: room in the table.
  Interface(bare::Device& device, const Setup& setup, unsigned channels);
  bare::Device& device() const { return device_; }
  const bare::Pd& pd() const { return pd_; }
  std::uint32_t transport_domain() const { return domain_.number(); }
  std::uint32_t tis() const { return tis_.number(); }
  // A port that no other call has given.
  std::uint16_t next_port() { return static_cast<std::uint16_t>(kFirstPort + ports_++); }
  // Datagrams to the port arrive at the TIR for as long as the object lives.
  bare::EthObject lead(std::uint16_t port, std::uint32_t tirn);

 private:
  bare::Device& device_;
  bare::Pd pd_;
  bare::EthObject domain_, tis_, table_, group_;
  unsigned ports_ = 0;
};

// A queue to send, one to receive, their CQs, and memory for what is in them.
class Channel {
 public:
  static constexpr unsigned kLogEntries = 10;        // of both queues, as mlx5e makes them
  static std::size_t memory_of(const Setup& setup);  // bytes that one takes

  // Events of what arrives are moderated by setup.cq_period and cq_max_count, or by moderate().
  Channel(Interface& interface, const Setup& setup);
  static void connect(Channel& a, Channel& b);

  // Posts datagrams to the peer and rings once; the caller sees that there is room. Every cq_mod-th has a
  // CQE.
  void post(unsigned count);
  // Sends one that nobody counts, by which switches learn where this end is.
  void announce();
  // CQEs that wait to be taken.
  bool sent() const { return sent_cq_.ready(); }
  bool arrived() const { return arrived_cq_.ready(); }
  // Each throws BareError if there is an error instead. The buffer of what has arrived is posted again, and
  // given to the card by give_buffers().
  void take_sent();
  void take_arrived();
  void give_buffers() { rq_.ring_doorbell(); }
  void post_all_buffers();
  // Both CQs raise their next event; how many they have raised.
  void arm();
  std::uint64_t events() const { return sent_cq_.events() + arrived_cq_.events(); }
  std::uint64_t arrived_events() const { return arrived_cq_.events(); }
  // Moderation of the events of what arrives from when `done` is called on: a command to the card, which time
  // passes for.
  void moderate(unsigned period_us, unsigned max_count, std::function<void()> done);
  std::uint32_t bytes_of_frame() const { return bytes_; }

 private:
  void put(std::uint32_t place, bool signaled);
  bare::Sge buffer(std::uint32_t index) const;

  Interface& interface_;
  const std::uint32_t bytes_;  // of a frame
  const std::size_t stride_;   // of frames in memory
  const unsigned cq_mod_;
  const bool inline_, blueflame_;  // as programs without the kernel have frames and doorbells
  bare::Cq sent_cq_, arrived_cq_;
  bare::Buffer out_, in_;
  bare::Mr out_mr_, in_mr_;
  bare::Sq sq_;
  bare::EthRq rq_;
  bare::EthObject tir_;
  std::uint16_t port_;
  bare::EthObject rule_;
  std::uint32_t posted_ = 0, buffers_ = 0;
};

}  // namespace hcasim::timing
#endif
