// SPDX-License-Identifier: BSD-3-Clause
// The port as management sees it: GUIDs, capability mask, link state, and the built-in subnet manager, which
// makes the port ACTIVE with a LID, so that one guest needs no SM of its own. An Ethernet port has none of
// this: it is up when the driver wants it up and the cable is in.
#ifndef HCASIM_FIRMWARE_STUB_PORT_AGENT_H
#define HCASIM_FIRMWARE_STUB_PORT_AGENT_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "firmware-stub/eth_link.h"
#include "firmware-stub/management_key.h"
#include "firmware-stub/options.h"
#include "model/function/id.h"
#include "model/port/port.h"
#include "model/profile.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"

namespace hcasim {
class FaultSink;
class Function;
class TrafficClasses;
class Vport;
namespace traces {
class Tracer;
}
}  // namespace hcasim

namespace hcasim::fw {

// PortInfo:CapabilityMask (IBTA table 146)
enum : std::uint32_t {
  kCapSm = 1u << 1,
  kCapTrap = 1u << 3,
  kCapSlMap = 1u << 6,
  kCapSystemImageGuid = 1u << 11,
  kCapExtendedSpeeds = 1u << 14,
  kCapMask2 = 1u << 15,
  kCapCm = 1u << 16,
  kCapSnmp = 1u << 17,
  kCapDeviceManagement = 1u << 19,
  kCapVendorClass = 1u << 20,
  kCapMaskNotice = 1u << 22,
  kCapClientReregister = 1u << 25,
  kCapOtherLocalChanges = 1u << 26,
};
constexpr std::uint32_t kDefaultCaps = kCapTrap | kCapSlMap | kCapSystemImageGuid | kCapExtendedSpeeds |
                                       kCapMask2 | kCapMaskNotice | kCapClientReregister |
                                       kCapOtherLocalChanges;
// Of a saved state from before version 19, which had fewer of them, and vendor classes at another bit.
constexpr std::uint32_t caps_of_18(std::uint32_t mask) { return (mask & ~(1u << 24)) | kDefaultCaps; }
// PortInfo:CapabilityMask2
enum : std::uint16_t { kCap2Width2x = 1u << 4, kCap2Hdr = 1u << 5, kCap2Ndr = 1u << 10 };
constexpr std::uint64_t kDefaultSubnetPrefix = 0xfe80000000000000ull;
// PortInfo:PortPhysicalState; those up to kDisabled may be asked for.
enum class PhysicalState : std::uint8_t { kSleep = 1, kPolling = 2, kDisabled = 3, kLinkUp = 5 };

class PortAgent {
 public:
  struct Blocks {
    Port& port;
    PerFunction<Vport> vports;
    TrafficClasses& traffic_classes;
    traces::Tracer& tracer;
    FaultSink& faults;
    // What the link has come to, Gb/s, for all who go by it.
    std::function<void(double)> set_link_rate;
    // Tells all drivers of what is the port's (prm::kPortLid ...).
    std::function<void(std::uint8_t)> port_changed;
  };
  PortAgent(const Profile::Port& profile, Blocks blocks, const Options& options);

  // INIT_HCA of a function: fills its address tables. Of one that owns the port: brings the link up, as far
  // as there is somebody to do it.
  void start(Function& function, std::uint64_t mac, std::uint64_t guid);
  void teardown(Function& function);
  // The cable comes or goes.
  void cable(bool in);
  // Who is at its far end; none: nobody who wants the link up. InfiniBand: what it offers does not matter.
  void partner(const std::optional<LinkOffer>& offer);
  // The built-in subnet manager's choice for the next time, or the one before, the link comes up; and whom it
  // knows elsewhere on the link (nobody has LID 0).
  struct Peer {
    std::uint64_t guid = 0;
    std::uint16_t lid = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, guid, lid);
    }
  };
  void assign(std::uint16_t lid, std::uint16_t sm_lid, std::vector<Peer> peers);
  // Behind those of assign() there are virtual functions that it has heard of (learn()).
  const std::vector<Peer>& peers() const { return peers_; }
  // A GUID at the LID of one of them: of a virtual function, which shares its port's.
  void learn(const Peer& function);
  // Between INIT_HCA and the end of it.
  bool running() const { return running_; }
  // Is notified when the host takes the link down or up (PAOS), and when running() changes.
  void on_admin(std::function<void()> handler) { on_admin_ = std::move(handler); }
  // Tells the functions that the port's state was this one, and has changed: each makes its own of it.
  void on_move(std::function<void(PortState before)> handler) { on_move_ = std::move(handler); }

  // What a subnet manager writes (PortInfo, IBTA 14.2.5.6), with the events that follow.
  void set_lid(std::uint16_t lid, std::uint8_t lmc, std::uint16_t sm_lid, std::uint8_t sm_sl);
  bool set_state(PortState wanted);  // false: not a transition that a subnet manager may ask for
  void set_physical_state(PhysicalState wanted);
  // Shown as set; the link is the profile's.
  struct LinkSettings {
    // 0: what is supported
    std::uint8_t width_enabled = 0, speed_enabled = 0, ext_speed_enabled = 0;
    std::uint8_t down_default = 0;  // PhysicalState; 0: kPolling
    std::uint8_t error_thresholds = 0;
    std::uint16_t ptys_width = 0, ptys_speed = 0;  // what the host enables (PTYS); 0: what is supported

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, width_enabled, speed_enabled, ext_speed_enabled, down_default, error_thresholds);
      HCASIM_FIELDS_SINCE(21, a, ptys_width, ptys_speed);
    }
  };
  LinkSettings& link_settings() { return link_settings_; }
  void client_reregister();
  // Which lanes there are, and how they share the port.
  void set_lanes(const VirtualLanes& lanes);
  void set_subnet_timeout(std::uint8_t v) { subnet_timeout_ = v & 0x1f; }
  void set_subnet_prefix(std::uint64_t prefix);

  // What the host changes.
  void set_admin(bool up);  // PAOS
  void set_mtu(std::uint16_t bytes);
  // The port's LED blinks, so that the card is found among others (MLCR): for so many seconds, or until it is
  // told to stop.
  static constexpr std::uint16_t kBeaconOff = 0, kBeaconForEver = 0xffff;
  void set_beacon(std::uint16_t seconds);
  std::uint16_t beacon() const { return beacon_; }  // as set
  std::uint16_t beacon_left() const;                // seconds, begun ones too
  void set_node_description(std::string text) { node_description_ = std::move(text); }
  void set_caps(std::uint32_t mask, std::uint32_t value) { cap_mask_ = (cap_mask_ & ~mask) | (value & mask); }

  bool built_in_sm() const { return options_.sm; }
  std::uint64_t node_guid() const { return options_.node_guid; }
  std::uint64_t port_guid() const { return options_.node_guid; }
  std::uint64_t system_image_guid() const { return options_.card_guid; }
  std::uint8_t subnet_timeout() const { return subnet_timeout_; }
  std::uint64_t subnet_prefix() const { return subnet_prefix_; }
  std::uint32_t cap_mask() const { return cap_mask_; }
  std::uint16_t cap_mask2() const;
  // With this state of the port's, or of a function's vport.
  PhysicalState physical_state(PortState state) const {
    if (state != PortState::kDown) return PhysicalState::kLinkUp;
    return disabled_ ? PhysicalState::kDisabled : PhysicalState::kPolling;
  }
  std::uint16_t mtu() const { return mtu_; }  // in force, bytes
  bool admin_up() const { return admin_up_; }
  // By host and subnet manager.
  bool wants_link() const { return admin_up_ && !disabled_; }
  bool cable_in() const { return cable_; }
  std::uint64_t link_downed() const { return link_downed_; }  // times
  void clear_link_downed() { link_downed_ = 0; }
  ManagementKey& management_key() { return management_key_; }
  EthLink& eth_link() { return eth_link_; }
  const EthLink& eth_link() const { return eth_link_; }
  const std::string& node_description() const { return node_description_; }

  // What teardown() does not end: the cable is the world's, LIDs and who else there is are the subnet
  // manager's, the MTU of an IB port and the node's description are set by management until power goes off.
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, running_, subnet_timeout_, eth_link_, management_key_);
    HCASIM_FIELDS_SINCE(15, a, beacon_, beacon_end_);
    if constexpr (Archive::kLoads)
      a.check(beacon_end_ >= 0 && beacon_end_ <= kNever, "there is no such time");
    a("admin_up", admin_up_, true);
    HCASIM_FIELDS_SINCE(19, a, disabled_, disables_, link_settings_);
    a("cap_mask", cap_mask_, kDefaultCaps);
    if constexpr (Archive::kLoads)
      if (a.version() < 19) cap_mask_ = caps_of_18(cap_mask_);
    a("subnet_prefix", subnet_prefix_, kDefaultSubnetPrefix);
    a.lasting("cable", cable_);
    a.lasting("lid", lid_);
    a.lasting("sm_lid", sm_lid_);
    a.lasting("peers", peers_);
    a.lasting("mtu", mtu_);  // Ethernet: teardown() sets it
    a.lasting("node_description", node_description_);
    a.lasting("link_downed", link_downed_);
  }

 private:
  void follow();  // link state after cable, far end or PAOS changed
  void link_up(const LinkMode* mode);
  void set_disabled(bool disabled);
  void retrain();
  bool ethernet() const { return options_.link == Link::kEthernet; }
  void move(PortState to);

  const Profile::Port& profile_;
  const Blocks blocks_;
  const Options& options_;
  bool running_ = false;
  bool cable_ = true;
  bool admin_up_ = true;
  bool disabled_ = false;      // by PortPhysicalState
  TimedQueue<bool> disables_;  // that are asked for
  LinkSettings link_settings_;
  std::function<void()> on_admin_;
  std::function<void(PortState)> on_move_;
  std::uint16_t lid_, sm_lid_;  // IB: what the built-in subnet manager gives
  std::vector<Peer> peers_;
  std::uint32_t cap_mask_ = kDefaultCaps;
  std::uint16_t mtu_;  // bytes
  std::uint8_t subnet_timeout_ = 0;
  std::uint64_t subnet_prefix_ = kDefaultSubnetPrefix;
  std::uint64_t link_downed_ = 0;
  std::uint16_t beacon_ = kBeaconOff;
  Time beacon_end_ = 0;
  EthLink eth_link_;
  ManagementKey management_key_;
  std::string node_description_;
};

}  // namespace hcasim::fw
#endif
