// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/device.h"

#include <ns3/node.h>
#include <ns3/object-factory.h>
#include <ns3/packet.h>
#include <ns3/simulator.h>

#include <algorithm>
#include <stdexcept>

namespace hcasim::fabric {

namespace {

constexpr std::size_t kHeader = 14;
constexpr std::int64_t kFs = 1000;             // of a ps
constexpr Time kLatest = INT64_MAX / kFs - 1;  // that ns-3's time has: more than 9,000 s

void put_mac(const ns3::Address& address, std::uint8_t* out) {
  ns3::Mac48Address::ConvertFrom(address).CopyTo(out);
}

}  // namespace

void use_turns() {
  ns3::Time::SetResolution(ns3::Time::FS);
  if (ns3::FemtoSeconds(1).GetFemtoSeconds() != 1)
    throw std::logic_error("ns-3's time has no femtoseconds: its headers' statics are not the library's");
  ns3::ObjectFactory scheduler;  // the fastest of ns-3's with these events
  scheduler.SetTypeId("ns3::PriorityQueueScheduler");
  ns3::Simulator::SetScheduler(scheduler);
}

Time now() { return ns3::Simulator::Now().GetFemtoSeconds() / kFs; }

ns3::Time until(Time t, Turn turn) {
  const std::int64_t at = std::min(t, kLatest) * kFs + static_cast<std::int64_t>(turn);
  const std::int64_t from_now = at - ns3::Simulator::Now().GetFemtoSeconds();
  return ns3::FemtoSeconds(static_cast<std::uint64_t>(std::max<std::int64_t>(from_now, 0)));
}

// ---- The device ----

ns3::TypeId PortDevice::GetTypeId() {
  static const ns3::TypeId id =
      ns3::TypeId("hcasim::fabric::PortDevice").SetParent<ns3::NetDevice>().AddConstructor<PortDevice>();
  return id;
}

void PortDevice::DoDispose() {
  link_ = nullptr;
  node_ = nullptr;
  ns3::NetDevice::DoDispose();
}

void PortDevice::attach(ns3::Ptr<Link> link, double rate_gbps) {
  link_ = link;
  rate_gbps_ = rate_gbps;
  link->add(*this);
}

void PortDevice::give_to(Station& station, unsigned port) {
  station_ = &station;
  port_ = port;
}

void PortDevice::leads_out(Outlet& outlet, unsigned wire) {
  outlet_ = &outlet;
  wire_ = wire;
}

void PortDevice::leaves(FramePtr frame, Time t) {
  if (outlet_ != nullptr) return outlet_->takes(wire_, std::move(frame), t + link_->delay());
  PortDevice* const far = link_->other(*this);
  if (far != nullptr) far->arrives(std::move(frame), t + link_->delay());
}

void PortDevice::arrives(FramePtr frame, Time t) {
  if (station_ != nullptr) return station_->arrives(port_, std::move(frame), t);
  const auto packet =
      ns3::Create<ns3::Packet>(frame->bytes.data(), static_cast<uint32_t>(frame->bytes.size()));
  ns3::Simulator::ScheduleWithContext(node_->GetId(), until(t, Turn::kSwitch), &PortDevice::deliver,
                                      ns3::Ptr<PortDevice>(this), packet);
}

void PortDevice::deliver(ns3::Ptr<ns3::Packet> packet) {
  std::array<std::uint8_t, kHeader> head{};
  if (packet->CopyData(head.data(), kHeader) < kHeader) return;
  packet->RemoveAtStart(kHeader);
  ns3::Mac48Address to, from;
  to.CopyFrom(head.data());
  from.CopyFrom(head.data() + 6);
  const auto protocol = static_cast<uint16_t>(head[12] << 8 | head[13]);
  const PacketType type = to.IsBroadcast() ? PACKET_BROADCAST
                          : to.IsGroup()   ? PACKET_MULTICAST
                          : to == address_ ? PACKET_HOST
                                           : PACKET_OTHERHOST;
  if (!promiscuous_.IsNull()) promiscuous_(this, packet->Copy(), protocol, from, to, type);
  if (!receive_.IsNull() && type != PACKET_OTHERHOST) receive_(this, packet, protocol, from);
}

ns3::Ptr<ns3::Channel> PortDevice::GetChannel() const { return link_; }

bool PortDevice::SetMtu(uint16_t mtu) {
  if (mtu > kLongest - kHeader) return false;
  mtu_ = mtu;
  return true;
}

// The link never changes.
void PortDevice::AddLinkChangeCallback(ns3::Callback<void>) {}

ns3::Address PortDevice::GetBroadcast() const { return ns3::Mac48Address::GetBroadcast(); }
ns3::Address PortDevice::GetMulticast(ns3::Ipv4Address group) const {
  return ns3::Mac48Address::GetMulticast(group);
}
ns3::Address PortDevice::GetMulticast(ns3::Ipv6Address group) const {
  return ns3::Mac48Address::GetMulticast(group);
}

bool PortDevice::Send(ns3::Ptr<ns3::Packet> packet, const ns3::Address& to, uint16_t protocol) {
  return SendFrom(packet, address_, to, protocol);
}

bool PortDevice::SendFrom(ns3::Ptr<ns3::Packet> packet, const ns3::Address& from, const ns3::Address& to,
                          uint16_t protocol) {
  if (link_ == nullptr || packet->GetSize() > mtu_ || !ns3::Mac48Address::IsMatchingType(to)) return false;
  std::vector<std::uint8_t> bytes(std::max<std::size_t>(kHeader + packet->GetSize(), kShortest));
  put_mac(to, bytes.data());
  put_mac(from, bytes.data() + 6);
  bytes[12] = static_cast<std::uint8_t>(protocol >> 8);
  bytes[13] = static_cast<std::uint8_t>(protocol);
  packet->CopyData(bytes.data() + kHeader, packet->GetSize());
  FramePtr frame = make_frame(bytes.data(), bytes.size());
  free_ = std::max(free_, now()) + serialisation(frame->wire_length(), 8000.0 / rate_gbps_);
  leaves(std::move(frame), free_);
  return true;
}

// ---- The link ----

ns3::TypeId Link::GetTypeId() {
  static const ns3::TypeId id =
      ns3::TypeId("hcasim::fabric::Link")
          .SetParent<ns3::Channel>()
          .AddConstructor<Link>()
          .AddAttribute("Delay", "From the last bit out of one end to the last bit in at the other.",
                        ns3::TimeValue(ns3::NanoSeconds(100)), ns3::MakeTimeAccessor(&Link::delay_),
                        ns3::MakeTimeChecker(ns3::NanoSeconds(1)));
  return id;
}

ns3::Ptr<ns3::NetDevice> Link::GetDevice(std::size_t i) const { return i < count_ ? ends_[i] : nullptr; }

void Link::add(PortDevice& device) {
  if (count_ < ends_.size()) ends_[count_++] = &device;
}

PortDevice* Link::other(const PortDevice& device) const { return ends_[0] == &device ? ends_[1] : ends_[0]; }

namespace {

ns3::Ptr<PortDevice> add_end(const ns3::Ptr<Link>& link, const ns3::Ptr<ns3::Node>& node, double rate_gbps) {
  const auto device = ns3::CreateObject<PortDevice>();
  device->attach(link, rate_gbps);
  device->SetAddress(ns3::Mac48Address::Allocate());
  node->AddDevice(device);
  return device;
}

}  // namespace

Joint half_joint(const ns3::Ptr<ns3::Node>& a, double rate_gbps, Time delay) {
  Joint j;
  j.link = ns3::CreateObject<Link>();
  j.link->SetAttribute("Delay", ns3::TimeValue(ns3::PicoSeconds(delay)));
  j.a = add_end(j.link, a, rate_gbps);
  return j;
}

Joint join(const ns3::Ptr<ns3::Node>& a, const ns3::Ptr<ns3::Node>& b, double rate_gbps, Time delay) {
  Joint j = half_joint(a, rate_gbps, delay);
  j.b = add_end(j.link, b, rate_gbps);
  return j;
}

}  // namespace hcasim::fabric
