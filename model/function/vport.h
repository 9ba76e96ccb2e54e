// SPDX-License-Identifier: BSD-3-Clause
// A function's plug to the port: the address tables that its firmware fills (InfiniBand: GIDs, P_Keys;
// Ethernet: MAC, RoCE address table). What the cable has (rate, link state, LID, counters) is the port's
// (model/port/port.h).
#ifndef HCASIM_MODEL_FUNCTION_VPORT_H
#define HCASIM_MODEL_FUNCTION_VPORT_H

#include <array>
#include <cstdint>
#include <vector>

#include "model/function/id.h"
#include "model/function/roce_address.h"
#include "model/packet/packet.h"
#include "model/port/counters.h"
#include "model/state/fields.h"

namespace hcasim {

constexpr std::uint16_t kFullMember = 0x8000, kPkeyBase = 0x7fff, kDefaultPkey = kFullMember | kPkeyBase;

struct SteeredFrame;

// The tags that the E-Switch gives the frames of a vport, and takes off those to it (esw_vport_context): VLAN
// switch tagging (VST).
struct VportVlans {
  bool strip_cvlan = false, strip_svlan = false, insert_svlan = false;
  enum Insert : std::uint8_t { kNone = 0, kIfThereIsNone = 1, kAlways = 3 } insert_cvlan = kNone;
  std::uint16_t cvlan = 0, svlan = 0;  // tag control information

  bool insert(SteeredFrame& frame) const;  // false: no room, and the frame is lost
  void strip(SteeredFrame& frame) const;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, strip_cvlan, strip_svlan, insert_svlan, insert_cvlan, cvlan, svlan);
  }
};

class Vport {
 public:
  explicit Vport(FunctionId function = 0) : Vport(function, function) {}
  Vport(FunctionId function, std::uint16_t number) : function_(function), number_(number) {}

  FunctionId function() const { return function_; }
  std::uint16_t number() const { return number_; }  // by which the E-Switch knows it

  // Management lets packets pass (vport state; of the physical function always).
  bool open = true;

  // What it has sent and received; of the only function of a card: the port's counters.
  VportTraffic traffic;
  // E-Switch: frames that came while it was not open.
  std::uint64_t rx_down = 0, tx_down = 0;
  VportVlans vlans;
  std::uint16_t vhca_id = 0;  // of its function, by which tables of software know who sends
  // E-Switch: registers that frames to it bring along from the FDB (fdb_to_vport_reg_c_id): bit 0 C_0, 1 C_1.
  std::uint8_t reg_c_ids = 0;

  // InfiniBand. guid: of the port, as this function shows it. Sizes are those of the tables; an entry of
  // zeros is not in use.
  std::uint64_t guid = 0;
  std::vector<Gid> gids = std::vector<Gid>(8);
  std::vector<std::uint16_t> pkeys = std::vector<std::uint16_t>(128);

  bool pkey_valid(std::uint16_t pkey) const;  // IBTA 10.9: base keys equal, at least one of both full member
  bool has_gid(const Gid& gid) const;         // one that is in use
  // Where packets to this GID go: one of the table, or the port's GUID behind the default prefix, whatever
  // its subnet's is (IBTA 4.1.1).
  bool takes_gid(const Gid& gid) const;

  // Ethernet.
  Mac mac{};                                       // nic_vport_context.permanent_address
  bool roce_enabled = false;                       // nic_vport_context.roce_en
  static constexpr unsigned kRoceAddresses = 256;  // roce_cap.roce_address_table_size

  // Entries beyond the table are never valid.
  const RoceAddress& roce_address(unsigned index) const;
  void set_roce_address(unsigned index, const RoceAddress& address);
  void clear_roce_addresses();
  bool own_mac(const Mac& mac) const;  // the vport's, or that of a RoCE address
  bool own_gid(const Gid& gid, bool v2) const;

  // What it counts begins again: its function is another's from now on, or the card was without power.
  void clear_counters() {
    traffic = {};
    rx_down = tx_down = 0;
  }
  // All but the MAC, which firmware sets anew when the driver initializes the function.
  void reset();

  // What goes with the function to another card: its addresses, not what its manager has settled.
  template <class Archive>
  void list_image(Archive& a) {
    HCASIM_FIELDS(a, guid);
    a.kept("gids", gids);
    a.kept("pkeys", pkeys);
    HCASIM_FIELDS(a, mac, roce_enabled, roce_addresses_);
    if constexpr (Archive::kLoads) {
      a.check(roce_addresses_.size() <= kRoceAddresses, "the table of RoCE addresses has 256 entries");
      find_own();
    }
  }
  template <class Archive>
  void list_state(Archive& a) {
    a.lasting("open", open);
    a.lasting("traffic", traffic);
    a.lasting("rx_down", rx_down);
    a.lasting("tx_down", tx_down);
    a.lasting("vlans", vlans);
    a.lasting("reg_c_ids", reg_c_ids);
    a.lasting("vhca_id", vhca_id);
    HCASIM_FIELDS(a, guid);  // the driver that starts the function brings its addresses
    a.kept("gids", gids);
    a.kept("pkeys", pkeys);
    HCASIM_FIELDS(a, mac, roce_enabled);
    a.lasting("roce_addresses", roce_addresses_);  // clear_roce_addresses()
    if constexpr (Archive::kLoads) {
      a.check(roce_addresses_.size() <= kRoceAddresses, "the table of RoCE addresses has 256 entries");
      find_own();
    }
  }

 private:
  void find_own();

  FunctionId function_;
  std::uint16_t number_;
  std::vector<RoceAddress> roce_addresses_;
  std::vector<Mac> own_macs_;  // of the table, each once
  struct OwnGid {
    Gid gid;
    bool v2;
  };
  std::vector<OwnGid> own_gids_;
};

}  // namespace hcasim
#endif
