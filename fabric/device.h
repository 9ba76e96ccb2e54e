// SPDX-License-Identifier: GPL-2.0-or-later
// Our parts of ns-3: a point-to-point link (attribute Delay) and the device at each of its ends, which
// carries whole raw Ethernet frames with what they take of the link in time. Stock devices do not fit:
// PointToPointNetDevice is PPP and takes IP alone, CSMA is a shared bus.
#ifndef HCASIM_FABRIC_DEVICE_H
#define HCASIM_FABRIC_DEVICE_H

#include <ns3/channel.h>
#include <ns3/mac48-address.h>
#include <ns3/net-device.h>
#include <ns3/node.h>
#include <ns3/nstime.h>

#include <array>

#include "fabric/frame.h"

namespace hcasim::fabric {

class Link;

// Who has a device: a card, a switch. Without one, ns-3's own protocols on the node do.
class Station {
 public:
  // A frame's last bit arrives at that device at t. Told when the frame is on its way, so t lies ahead.
  virtual void arrives(unsigned port, FramePtr frame, Time t) = 0;

 protected:
  ~Station() = default;
};

// Who carries frames to the other end of a link that is not of this process.
class Outlet {
 public:
  // wire: as PortDevice::leads_out() was told; arrives: of the last bit, ps.
  virtual void takes(unsigned wire, FramePtr frame, Time arrives) = 0;

 protected:
  ~Outlet() = default;
};

class PortDevice : public ns3::NetDevice {
 public:
  static ns3::TypeId GetTypeId();
  PortDevice() = default;

  void attach(ns3::Ptr<Link> link, double rate_gbps);
  // The device is port `port` of the station, which outlives it.
  void give_to(Station& station, unsigned port);
  // The link's other end is where the outlet leads to, which outlives the device.
  void leads_out(Outlet& outlet, unsigned wire);
  // The frame's last bit leaves at t. What leaves is no earlier than what left before.
  void leaves(FramePtr frame, Time t);
  void arrives(FramePtr frame, Time t);
  double rate_gbps() const { return rate_gbps_; }

  // ns3::NetDevice. Send() is for ns-3's protocols: a queue without end, and the link's rate.
  void SetIfIndex(uint32_t index) override { index_ = index; }
  uint32_t GetIfIndex() const override { return index_; }
  ns3::Ptr<ns3::Channel> GetChannel() const override;
  void SetAddress(ns3::Address address) override { address_ = ns3::Mac48Address::ConvertFrom(address); }
  ns3::Address GetAddress() const override { return address_; }
  bool SetMtu(uint16_t mtu) override;
  uint16_t GetMtu() const override { return mtu_; }
  bool IsLinkUp() const override { return link_ != nullptr; }
  void AddLinkChangeCallback(ns3::Callback<void> callback) override;
  bool IsBroadcast() const override { return true; }
  ns3::Address GetBroadcast() const override;
  bool IsMulticast() const override { return false; }
  ns3::Address GetMulticast(ns3::Ipv4Address group) const override;
  ns3::Address GetMulticast(ns3::Ipv6Address group) const override;
  bool IsBridge() const override { return false; }
  bool IsPointToPoint() const override { return true; }  // what distributed simulation looks for
  bool Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& to, uint16_t protocol) override;
  bool SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address& from, const ns3::Address& to,
                uint16_t protocol) override;
  ns3::Ptr<ns3::Node> GetNode() const override { return node_; }
  void SetNode(ns3::Ptr<ns3::Node> node) override { node_ = node; }
  bool NeedsArp() const override { return true; }
  void SetReceiveCallback(ReceiveCallback callback) override { receive_ = callback; }
  void SetPromiscReceiveCallback(PromiscReceiveCallback callback) override { promiscuous_ = callback; }
  bool SupportsSendFrom() const override { return true; }

 private:
  void DoDispose() override;
  void deliver(ns3::Ptr<ns3::Packet> packet);

  ns3::Ptr<Link> link_;
  ns3::Ptr<ns3::Node> node_;
  Station* station_ = nullptr;
  unsigned port_ = 0;
  Outlet* outlet_ = nullptr;
  unsigned wire_ = 0;
  uint32_t index_ = 0;
  uint16_t mtu_ = 1500;
  double rate_gbps_ = 100;
  Time free_ = 0;  // of Send()
  ns3::Mac48Address address_;
  ReceiveCallback receive_;
  PromiscReceiveCallback promiscuous_;
};

class Link : public ns3::Channel {
 public:
  static ns3::TypeId GetTypeId();
  std::size_t GetNDevices() const override { return count_; }
  ns3::Ptr<ns3::NetDevice> GetDevice(std::size_t i) const override;
  // Up to two.
  void add(PortDevice& device);
  PortDevice* other(const PortDevice& device) const;
  Time delay() const { return delay_.GetPicoSeconds(); }

 private:
  ns3::Time delay_;
  std::array<PortDevice*, 2> ends_{};
  std::size_t count_ = 0;
};

// Joins two nodes by a new link with a device at each end.
struct Joint {
  ns3::Ptr<PortDevice> a, b;
  ns3::Ptr<Link> link;
};
// One end of such a link; b is null.
Joint half_joint(const ns3::Ptr<ns3::Node>& a, double rate_gbps, Time delay);
Joint join(const ns3::Ptr<ns3::Node>& a, const ns3::Ptr<ns3::Node>& b, double rate_gbps, Time delay);

// What comes first of what happens in one ps. ns-3 would have first what was scheduled first, which is
// another order where cards are dealt out to ranks otherwise.
enum class Turn : unsigned { kLook, kStop, kSwitch, kStart, kCards };

// ns-3's time is in fs: a ps in which something happens has one for each Turn. To be called before anything
// is scheduled.
void use_turns();
// The present time, ps.
Time now();
// From now until the turn in t; none if that has passed.
ns3::Time until(Time t, Turn turn);

}  // namespace hcasim::fabric
#endif
