// SPDX-License-Identifier: BSD-3-Clause
// What can be chosen about the card that the firmware presents. The C API fills it from its options.
#ifndef HCASIM_FIRMWARE_STUB_OPTIONS_H
#define HCASIM_FIRMWARE_STUB_OPTIONS_H

#include <cstdint>
#include <string>

#include "model/generation.h"

namespace hcasim::fw {

enum class Link : std::uint8_t { kInfiniBand, kEthernet };

// What a virtual function has of what its BAR and its MSI-X table limit; a sub-function of what its window
// limits, which is as large.
constexpr unsigned kVfUars = 253, kVfEqs = 32;
constexpr unsigned kLogSfWindow = 20;  // bytes
// Entries of a virtual function's MSI-X table: at first, and within what bounds its manager may choose, out
// of a pool that has so many for each.
constexpr unsigned kVfVectors = 16, kVfMinVectors = 2, kVfMaxVectors = 32, kVfPoolVectors = 24;

struct Options {
  Link link = Link::kEthernet;
  const Generation* generation = &default_generation();  // Firmware takes the profile's
  std::uint16_t device_id = 0;  // PCI device ID, in NODE_DESC too; 0: the generation's
  bool bf = false;              // BlueFlame offered (cmd_hca_cap.bf)
  bool ipoib = false;           // InfiniBand: IPoIB's enhanced offloads (ipoib_enhanced_offloads)
  bool sm = true;               // built-in subnet manager: the port becomes ACTIVE with a LID by itself
  std::uint64_t node_guid = 0;  // EUI-64, also port GUID; 0: made from the HCA's number
  std::uint64_t card_guid = 0;  // of the card: system image GUID, serial number; 0: node_guid
  std::uint64_t mac = 0;        // Ethernet: low 48 bits; 0: made from node_guid
  std::uint16_t lid = 0;        // what the built-in subnet manager assigns; 0: 1, or as the peer wants
  unsigned msix_vectors = 64;   // of a virtual function: until its manager says otherwise
  unsigned vfs = 0;             // virtual functions; the card's functions behind the first one
  unsigned sfs = 0;             // sub-functions that can be made; the functions behind those
  bool vf = false;              // this function is one of them, or
  bool sf = false;              // of the latter: on no bus by itself
  bool migration = false;       // virtual functions can be migrated
  // Which of their host's pages they write is noted for who manages them.
  bool tracks_pages() const { return migration && manages(); }
  std::uint16_t vhca_id = 0;  // of this function; unique in the card
  unsigned ports = 1;         // of the card, each with a physical function and virtual ones of its own ...
  unsigned port = 0;          // ... and which of them this is
  // The function speaks for these, and on Ethernet for the switch between them.
  bool manages() const { return vfs + sfs != 0 && !vf; }
  bool offloads_ipoib() const { return ipoib && link == Link::kInfiniBand; }
  bool manages_switch() const { return manages() && link == Link::kEthernet; }
  // That switch may have its root in the FDB of the one at the card's other port.
  bool shares_fdb() const { return manages_switch() && ports != 1 && generation->has.flow_rewrite; }
  bool port_tables = false;  // LAG: flow tables may select the port (port_select_flow_table)
  bool selects_port() const {
    return port_tables && ports != 1 && !vf && link == Link::kEthernet && generation->has.flow_rewrite;
  }
  // Software may write entries that match by definers, as may flow groups that split by hash.
  bool has_definers() const {
    return selects_port() || (link == Link::kEthernet && generation->sw_steering() &&
                              generation->has.ste != SteFormat::kConnectX5);
  }
  bool ats = false;     // the function shows the capability ATS, and keys may ask for it
  bool crypto = false;  // of the boards of a chip that can encrypt one that may
  bool psp() const { return encrypts() && generation->has.psp; }
  bool encrypts() const { return crypto && link == Link::kEthernet && generation->has.crypto; }
  // Time limit of commands that is announced to the driver, ms; 0: none, and it takes its own.
  std::uint32_t command_limit_ms = 0;
  bool page_requests = true;  // host pages asked for (profile: boot_pages, init_pages); false: none
  // Sizes of the resource tables, log2. The one of QPs is the same for all, as traces count on it.
  static constexpr unsigned log_max_qp = 18;
  unsigned log_max_cq = 16, log_max_srq = 16, log_max_mkey = 20, log_max_pd = 16;
  unsigned num_eqs = 64, num_q_counters = 64, num_uars = 2048;
};

}  // namespace hcasim::fw
#endif
