// SPDX-License-Identifier: BSD-3-Clause
// The port as management sees it: GUIDs, capability mask, link state, and the built-in subnet manager, which
// makes the port ACTIVE with a LID, so that one guest needs no SM of its own.
#ifndef HCASIM_FIRMWARE_STUB_PORT_AGENT_H
#define HCASIM_FIRMWARE_STUB_PORT_AGENT_H

#include <cstdint>
#include <string>

#include "firmware-stub/options.h"
#include "model/port/port.h"

namespace hcasim {
class Hca;
}

namespace hcasim::fw {

// PortInfo:CapabilityMask (IBTA table 146)
enum : std::uint32_t {
  kCapSm = 1u << 1,
  kCapSystemImageGuid = 1u << 11,
  kCapExtendedSpeeds = 1u << 14,
  kCapCm = 1u << 16,
  kCapSnmp = 1u << 17,
  kCapDeviceManagement = 1u << 19,
  kCapVendorClass = 1u << 24,
  kCapClientReregister = 1u << 25,
};

class PortAgent {
 public:
  PortAgent(Hca& hca, const Options& options);

  // INIT_HCA: fills the port's tables and brings the link up, as far as there is somebody to do it.
  void start();
  void teardown();
  // The cable comes or goes.
  void cable(bool up);
  void set_admin(bool up);  // PAOS

  // What a subnet manager writes (PortInfo, IBTA 14.2.5.6), with the events that follow.
  void set_lid(std::uint16_t lid, std::uint8_t lmc, std::uint16_t sm_lid, std::uint8_t sm_sl);
  bool set_state(PortState wanted);  // false: not a transition that a subnet manager may ask for

  void client_reregister();

  bool built_in_sm() const { return options_.sm; }
  std::uint64_t node_guid() const { return options_.node_guid; }
  std::uint64_t port_guid() const { return options_.node_guid; }
  std::uint64_t system_image_guid() const { return options_.node_guid; }
  std::uint8_t subnet_timeout() const { return subnet_timeout_; }
  void set_subnet_timeout(std::uint8_t v) { subnet_timeout_ = v & 0x1f; }
  std::uint64_t subnet_prefix() const { return subnet_prefix_; }
  void set_subnet_prefix(std::uint64_t prefix);

 private:
  Hca& hca_;
  const Options& options_;

 public:
  std::uint32_t cap_mask = kCapSystemImageGuid | kCapExtendedSpeeds | kCapClientReregister;
  std::string node_description;
  std::uint16_t mtu = 4096;  // bytes, in force
  bool admin_up = true;
  std::uint64_t link_downed = 0;

 private:
  void follow();  // link state after cable or PAOS changed
  void link_up();
  void state(PortState s);

  bool running_ = false;
  bool cable_ = true;
  std::uint8_t subnet_timeout_ = 0;
  std::uint64_t subnet_prefix_ = 0xfe80000000000000ull;
};

}  // namespace hcasim::fw
#endif
