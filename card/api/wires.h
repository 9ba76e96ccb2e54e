// SPDX-License-Identifier: BSD-3-Clause
// What a port's cable can lead to: another HCA of this process, the host's network (QEMU's netdev), an HCA of
// another process (wire/).
#ifndef HCASIM_CARD_WIRES_H
#define HCASIM_CARD_WIRES_H

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "card/api/far_end.h"
#include "card/api/hca_api.h"
#include "model/pcie/loans.h"
#include "model/port/codec.h"
#include "model/port/wire.h"
#include "wire/link.h"

struct hca;

namespace hcasim::api {

// An HCA's end of its cable.
class Uplink : public Wire {
 public:
  virtual ~Uplink() = default;
  // Whether there is a far end, and what it wants of the link.
  virtual bool plugged() const { return true; }
  virtual wire::Wish far_wish() const { return {}; }
  // What this end wants of the link has changed.
  virtual void set_wish(const wire::Wish&) {}
  // As hca_wire_poll(), hca_wire_waiting(), hca_wire_look(), hca_wire_hold().
  virtual std::int64_t poll(std::int64_t) { return HCA_NEVER; }
  virtual bool waiting() const { return false; }
  virtual void look(std::int64_t, bool) {}
  virtual void hold(bool) {}
  // After the model has run.
  virtual void flush() {}
  // A saved state was loaded, which knows of another far end, or of none.
  virtual void loaded() {}
  // Coupled time: the simulated time at which this end meets the other one next, kNever if there is none; to
  // be called when it has come: first tell() of all wires, with the time from which on something may be sent
  // if nothing comes in, then hear() of all, which waits for the other end.
  virtual Time meets_at() const { return kNever; }
  // Whether nothing but the times that the ends announce can change then: the link is up, and stays so.
  virtual bool meets_plainly() const { return false; }
  virtual void tell(Time, const FarEnd::Meanwhile&) {}
  virtual void hear(const FarEnd::Meanwhile&) {}
  // As FarEnd::go_on().
  virtual bool go_on() { return false; }
  // Of coupled time.
  struct Meetings {
    std::uint64_t count = 0;    // times the ends have met
    std::uint64_t waits = 0;    // of these, this end was there first
    std::uint64_t wait_us = 0;  // real time that it has waited
    std::uint64_t late = 0;     // frames that came too late for their time
  };
  virtual Meetings meetings() const { return {}; }
  // Frames that were lost behind it, in a switch.
  virtual std::uint64_t lost() const { return 0; }
};

// The host takes and brings Ethernet frames.
class HostWire final : public Uplink {
 public:
  explicit HostWire(hca& owner) : owner_(owner) {}
  void transmit(Time t, const PacketRef& packet) override;
  bool plugged() const override { return carrier_; }
  void host_carrier(bool on) { carrier_ = on; }
  // The port follows what the host has said here, and not what the one said that the state is of.
  void loaded() override;
  // Its last bit arrives at t. False: dropped.
  bool receive(const void* frame, std::size_t len, Time t);

 private:
  hca& owner_;
  bool carrier_ = true;
  std::array<std::uint8_t, kMaxFrame + kMaxHeaders> frame_;
};

// One direction of a cable between two HCAs of this process. Packets pass as they are.
class CableEnd final : public Uplink {
 public:
  CableEnd(hca& owner, hca& peer) : owner_(owner), peer_(peer) {}
  hca& peer() const { return peer_; }
  void transmit(Time t, const PacketRef& packet) override;
  bool takes_runs() const override { return true; }
  bool takes_messages() const override { return true; }
  std::uint32_t room_of_lanes() const override;
  void make_room(Time t, unsigned lane, std::uint32_t bytes) override;
  void emptied() override;
  bool plugged() const override;
  wire::Wish far_wish() const override;
  void set_wish(const wire::Wish& wish) override;

 private:
  hca& owner_;
  hca& peer_;
};

// The LIDs that the built-in subnet managers of two joined ports agree on: the one with the lower node GUID
// gives itself 1 and the other one the next, unless an end insists on a LID (not 0). 0: both insist on the
// same, or cannot be distinguished.
struct SubnetEnd {
  std::uint64_t node_guid = 0;
  std::uint16_t lid = 0;
};
struct SubnetLids {
  std::uint16_t own = 0, peer = 0;
  std::uint16_t sm = 0;  // the acting manager's
};
SubnetLids assign_lids(const SubnetEnd& own, const SubnetEnd& peer);

// To an HCA of another process.
class SocketWire final : public Uplink, private wire::Link::Owner {
 public:
  SocketWire(hca& owner, const wire::Address& address, bool coupled);
  void transmit(Time t, const PacketRef& packet) override;
  bool takes_runs() const override { return far_->takes_runs(); }
  // In coupled time: of other processes nobody could say when room is made.
  std::uint32_t room_of_lanes() const override { return room_of_lanes_; }
  void make_room(Time t, unsigned lane, std::uint32_t bytes) override;
  void emptied() override;
  bool plugged() const override { return joined_; }
  wire::Wish far_wish() const override;
  void set_wish(const wire::Wish& wish) override { far_->set_wish(wish); }
  std::int64_t poll(std::int64_t now) override;
  bool waiting() const override { return far_->waiting(); }
  void look(std::int64_t now, bool sleep) override;
  void hold(bool on) override;
  void flush() override;
  void loaded() override;
  Time meets_at() const override { return meets_at_; }
  bool meets_plainly() const override;
  void tell(Time next, const FarEnd::Meanwhile& meanwhile) override;
  void hear(const FarEnd::Meanwhile& meanwhile) override;
  bool go_on() override { return meets_at_ != kNever && far_->go_on(); }
  Meetings meetings() const override { return meetings_; }

 private:
  std::string wire_up(const wire::Hello& peer) override;
  void wire_down() override;
  void wire_wish(const wire::Wish& wish) override;
  void wire_frame(const wire::Message& frame) override;
  void wire_run(const wire::Run& run, std::int64_t time) override;
  void wire_settle() override;
  std::string wire_mark(const wire::Mark& mark) override;
  void wire_watch(int fd, bool read, bool write) override;
  void wire_log(int level, const std::string& line) override;
  void limit();
  void settle();
  void sent(FarEnd::Sent what, Time t);
  void send_credits(Time t, const wire::Credits& credits);
  void take_credits(const wire::Message& frame, Time t);
  void transmit_run(Time t, const Packet& packet);
  bool decode_run(const wire::Run& run, Packet& packet) const;
  // coupling.cpp
  void part(const std::string& reason);
  void report();
  Time arrival(const wire::Message& frame);

  hca& owner_;
  bool joined_ = false, held_ = false, full_ = false;
  SubnetLids lids_;  // as agreed with the other end
  std::uint64_t peer_guid_ = 0;
  wire::Wish peer_wish_{false};
  // Coupled time. Frames count from one meeting to the next; times are ps.
  bool coupled_;
  bool up_ = false;           // both ends want the link
  wire::Wish wish_{false};    // as this end has announced
  wire::Wish agreed_{false};  // the other end's when the link could change last
  Time meets_at_;
  Time own_latency_, peer_latency_ = 0;
  std::uint32_t room_of_lanes_ = 0;              // at the other end
  bool tells_room_ = false;                      // of this end's lanes
  Time own_next_ = 0, peer_next_ = 0;            // from when on an end may send, as announced
  Time first_out_ = kNever, first_in_ = kNever;  // first arrival at the other end, and here
  Meetings meetings_;
  std::size_t run_bytes_ = 0;  // of runs that have come since few packets waited in the port
  Loans in_memory_;            // packets whose payload lies in the memory shared with the other end
  const std::unique_ptr<FarEnd> far_;
};

}  // namespace hcasim::api
#endif
