// SPDX-License-Identifier: BSD-3-Clause
// The capability groups (QUERY_HCA_CAP, SET_HCA_CAP): what the card offers at most, and what is in force.
#ifndef HCASIM_FIRMWARE_STUB_CAPS_H
#define HCASIM_FIRMWARE_STUB_CAPS_H

#include <array>
#include <cstdint>
#include <map>

#include "firmware-stub/options.h"
#include "firmware-stub/syndromes.h"
#include "model/state/fields.h"
#include "prm/prm.h"
#include "prm/psp.h"

namespace hcasim::fw {

// op_mod[15:1] of QUERY_HCA_CAP and SET_HCA_CAP (mlx5 device.h, mlx5_cap_type).
enum class CapGroup : std::uint16_t {
  kGeneral = 0,
  kEthernet = 1,
  kOdp = 2,
  kAtomic = 3,
  kRoce = 4,
  kIpoib = 6,  // enhanced offloads
  kFlowTable = 7,
  kEswitchTables = 8,
  kEswitch = 9,
  kQos = 0xc,
  kDebug = 0xd,
  kDeviceMemory = 0xf,
  kTls = 0x11,
  kIpsec = 0x15,
  kHeaderSplit = 0x1d,
  kPsp = prm::psp::kCapGroup,
  kMacsec = 0x1f,
  kGeneral2 = 0x20,
  kPortSelection = 0x25,
  kAdvancedVirtualization = 0x26,
};

// A field of a group's bytes.
template <class F>
void put(std::uint8_t* c, std::uint64_t v) {
  prm::set<F>(c, static_cast<typename F::type>(v));
}

// What of a function its manager chooses.
struct ManagedCaps {
  unsigned vectors = 0;  // of its MSI-X table
  bool roce = false;
  bool ipsec = false;
};

class Caps {
 public:
  static constexpr std::size_t kBytes = prm::hca_cap_union::bytes;  // of each group
  using Block = std::array<std::uint8_t, kBytes>;

  explicit Caps(const Options& options);

  // What drivers may change. A reset puts the values of power-on in force.
  template <class Archive>
  void list_state(Archive& a) {
    a("general", general_, general_power_on_);
    a("atomic", atomic_, atomic_max_);
    a("odp", odp_, odp_power_on_);
    a("port_selection", port_selection_, port_selection_power_on_);
    if constexpr (Archive::kStores) {
      bool may_migrate = migratable();
      a("migratable", may_migrate);
      bool roce_allowed = may_use_roce();
      HCASIM_FIELDS_SINCE(14, a, roce_allowed);
      // Functions of earlier versions had all of it, whatever their manager said.
      IpsecAllowed ipsec = Archive::kLoads ? all_ipsec() : ipsec_;
      HCASIM_FIELDS_SINCE(16, a, ipsec);
      if constexpr (Archive::kLoads) {
        a.check(may_be(ipsec), "a card that does not encrypt has no IPsec");
        ipsec_ = ipsec;
        show_ipsec();
        set_migratable(may_migrate);
        allow_roce(roce_allowed);
      }
    }
    if constexpr (Archive::kLoads) keep_vectors();
  }
  // What goes with a function to another card: what its driver has chosen, if it may there.
  template <class Archive>
  void list_image(Archive& a) {
    Block general = general_, atomic = atomic_, odp = odp_;
    HCASIM_FIELDS(a, general, atomic, odp);
    if constexpr (Archive::kLoads)
      a.check(take_over(general, atomic, odp), "the function may not have such capabilities");
  }
  // Null: no such group.
  const Block* current(std::uint16_t group) const;
  const Block* maximum(std::uint16_t group) const;
  // `block`: as in set_hca_cap_in.capability.
  // whole: the block is as long as that of today's drivers. Of a shorter one, only what can be set is looked
  // at.
  Syndrome set(std::uint16_t group, const std::uint8_t* block, bool whole = true);

  // A field of the general group as in force, e.g. get<prm::cmd_hca_cap::log_max_qp>().
  template <class F>
  auto get() const {
    return prm::get<F>(general_.data());
  }
  bool atomic_host_endian() const;
  // Queues' own affinity comes before the tables that select a port.
  bool port_select_bypass() const;
  // What a block of a virtual function's manager wants, which may change nothing else; and what it is from
  // now on, which only the manager changes: dynamic_msix_table_size, roce.
  Syndrome managed_of(const std::uint8_t* block, ManagedCaps& wanted) const;
  void set_vectors(unsigned vectors);
  void set_roce(bool on);
  // cmd_hca_cap_2.migratable of a virtual function, which its manager chooses: what a block of the manager's
  // wants, which may change nothing else.
  Syndrome migratable_of(const std::uint8_t* block, bool& on) const;
  bool migratable() const;
  void set_migratable(bool on);
  // IPsec, of which a function that has a manager has none at first: what a block of group kEthernet or
  // kIpsec wants, which may change nothing else, is so from now on; of kGeneral managed_of() says.
  Syndrome set_managed_ipsec(CapGroup group, const std::uint8_t* block);
  void set_ipsec(bool on);
  void forget_ipsec();
  // One that was read back: what is in force is what there is.
  void keep_vectors();
  // A field of the maximum of another group, zero if there is no such group.
  template <class F>
  auto get(CapGroup group) const {
    const Block* block = current(static_cast<std::uint16_t>(group));
    return block != nullptr ? prm::get<F>(block->data()) : typename F::type{};
  }

 private:
  // Each a bit that drivers look at.
  struct IpsecAllowed {
    bool any = false, crypto = false, packets = false, trailer = false;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, any, crypto, packets, trailer);
    }
  };
  IpsecAllowed all_ipsec() const { return {encrypts_, encrypts_, encrypts_, encrypts_}; }
  bool may_be(const IpsecAllowed& i) const {
    return encrypts_ || (!i.any && !i.crypto && !i.packets && !i.trailer);
  }
  void show_ipsec();
  bool may_use_roce() const;
  void allow_roce(bool on);
  bool take_over(const Block& general, const Block& atomic, const Block& odp);
  std::uint8_t* fixed_block(CapGroup group) { return fixed_[static_cast<std::uint16_t>(group)].data(); }

  Block general_max_{}, general_power_on_{}, general_{}, atomic_max_{}, atomic_{}, odp_max_{},
      odp_power_on_{}, odp_{}, port_selection_max_{}, port_selection_power_on_{}, port_selection_{};
  bool selects_port_;
  bool has_roce_ = false;  // whatever the manager says
  bool encrypts_;
  IpsecAllowed ipsec_;
  // Never changed by a driver; empty on the InfiniBand link.
  std::map<std::uint16_t, Block> fixed_;
};

}  // namespace hcasim::fw
#endif
