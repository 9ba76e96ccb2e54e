// SPDX-License-Identifier: GPL-2.0-or-later
// The cards of this process as event sources of ns-3: its own loop runs, with one event armed for when the
// cards are next due. To the bare driver it is the clock of its machine.
//
// Frames are handed over as soon as it is known when they arrive, so both sides keep times to the ps, though
// the cards are let run at whole ns: what leaves a card at t is told within the ns that follows, and a link
// takes one at least.
#ifndef HCASIM_FABRIC_COUPLING_H
#define HCASIM_FABRIC_COUPLING_H

#include <ns3/event-id.h>

#include <functional>
#include <vector>

#include "driver/bare/machine.h"
#include "fabric/device.h"
#include "fabric/switch.h"

namespace hcasim::fabric {

class Coupling final : public bare::Clock {
 public:
  // All cards hang on it that are made for `machine`, which has this clock.
  Coupling() = default;
  Coupling(const Coupling&) = delete;
  Coupling& operator=(const Coupling&) = delete;

  // bare::Clock: of the driver's calls that wait, before run().
  std::int64_t now() const override;
  void wait(std::int64_t until) override;
  void raised(bare::Function& function) override;
  bool serves() const override { return true; }

  // The cards may have something to do now, or at t (ps).
  void due(Time t);
  // Calls what touches cards' registers, with the cards at the present time.
  void act(const std::function<void()>& what);
  // Runs ns-3 until then, ps.
  void run(Time until);
  // Times in the hashes of arrivals count from here.
  void begin(Time t) { begin_ = t; }
  Time since_begin(Time t) const { return t - begin_; }

  std::uint64_t activations() const { return activations_; }

 private:
  void pump();
  void arm(std::int64_t ns);

  std::int64_t armed_ = HCA_NEVER;  // ns
  Time begin_ = 0;
  ns3::EventId event_;
  bool running_ = false, waiting_ = false, served_ = false;
  std::vector<bare::Function*> raised_;
  std::uint64_t activations_ = 0;
};

// A card's port: device and card hand frames to one another.
class CardPort final : public Station {
 public:
  explicit CardPort(Coupling& coupling) : coupling_(coupling) {}
  // What the card is made with (Machine::add_hca(), wire=host).
  bare::Function::FrameSink sink();
  void join(bare::Function& function, ns3::Ptr<PortDevice> device);
  void arrives(unsigned port, FramePtr frame, Time t) override;

  // Before it is joined, nothing leaves.
  std::uint64_t arrivals_hash() const { return hash_; }
  std::uint64_t frames_out() const { return frames_out_; }
  std::uint64_t bytes_in() const { return bytes_in_; }
  std::uint64_t bytes_out() const { return bytes_out_; }
  std::uint64_t refused() const { return refused_; }
  std::uint64_t pauses_out() const { return pauses_out_; }  // that stop
  // Sees each frame that comes in; for tests.
  using Watch = std::function<void(const Frame&, Time)>;
  void watch(Watch watch) { watch_ = std::move(watch); }

 private:
  Coupling& coupling_;
  bare::Function* function_ = nullptr;
  ns3::Ptr<PortDevice> device_;
  Watch watch_;
  std::uint64_t hash_ = 0, frames_out_ = 0, bytes_in_ = 0, bytes_out_ = 0, refused_ = 0, pauses_out_ = 0;
};

// A switch on a node of ns-3.
class SwitchNode final : public Station, private Switch::Owner {
 public:
  SwitchNode(const SwitchConfig& config, unsigned number) : switch_(config, number, *this) {}
  unsigned add(ns3::Ptr<PortDevice> device);
  void arrives(unsigned port, FramePtr frame, Time t) override { switch_.arrives(port, std::move(frame), t); }
  Switch& at() { return switch_; }
  const Switch& at() const { return switch_; }

 private:
  void wake_at(Time t) override;
  void leaves(unsigned port, FramePtr frame, Time t) override { devices_[port]->leaves(std::move(frame), t); }
  void wake();

  Switch switch_;
  std::vector<ns3::Ptr<PortDevice>> devices_;
  ns3::EventId event_;
  Time event_at_ = kNever;
};

// The hash of a whole run, of those of its ports: the same whatever the order in which they are added.
inline std::uint64_t port_share(std::uint64_t node, std::uint64_t port, std::uint64_t hash) {
  return hash == 0 ? 0 : mix(hash ^ mix(node << 16 | port));
}

}  // namespace hcasim::fabric
#endif
