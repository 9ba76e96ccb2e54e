// SPDX-License-Identifier: BSD-3-Clause
// NVDA and MNVQC: configuration that outlives power-off, an item at a time. What the card was made with
// stays: the addresses, and the virtual functions, whose number the PCI capability says; so nothing can be
// written.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "firmware-stub/firmware.h"
#include "firmware-stub/registers.h"
#include "model/eth/lro.h"
#include "prm/management.h"

namespace hcasim::fw {

namespace {

constexpr std::size_t kLongestItem = prm::nv_global_pci_cap::bytes;
using Item = std::array<std::uint8_t, kLongestItem>;

std::size_t addresses(const Options& options, Item& item) {
  using i = prm::nv_base_mac_guid;
  prm::set<i::base_mac>(item.data(), options.mac);
  prm::set<i::base_guid>(item.data(), options.node_guid);
  return i::bytes;
}

std::size_t addresses_cap(const Options& /*options*/, Item& item) {
  using i = prm::nv_base_mac_guid_cap;
  prm::set<i::num_of_allocated_guids>(item.data(), 1);
  prm::set<i::num_of_allocated_macs>(item.data(), 1);
  return i::bytes;
}

// One number for the card: Linux then leaves it to the vendor's tools to change it.
std::size_t pci_conf(const Options& options, Item& item) {
  using i = prm::nv_global_pci_conf;
  prm::set<i::sriov_valid>(item.data(), 1);
  prm::set<i::sriov_en>(item.data(), options.vfs != 0 ? 1 : 0);
  prm::set<i::total_vfs>(item.data(), options.vfs);
  prm::set<i::num_pfs_valid>(item.data(), 1);
  prm::set<i::num_pfs>(item.data(), options.ports);
  return i::bytes;
}

std::size_t pci_cap(const Options& options, Item& item) {
  using i = prm::nv_global_pci_cap;
  prm::set<i::max_vfs_per_pf_valid>(item.data(), 1);
  prm::set<i::sriov_support>(item.data(), options.vfs != 0 ? 1 : 0);
  prm::set<i::max_vfs_per_pf>(item.data(), options.vfs);
  prm::set<i::max_num_pfs>(item.data(), options.ports);
  return i::bytes;
}

std::size_t offload_conf(const Options& /*options*/, Item& item) {
  using i = prm::nv_sw_offload_conf;
  const auto log2_of_period = [](std::size_t n) {
    unsigned log = 0;
    while (Lro::kPeriods[n] >> (log + 1) != 0) ++log;
    return log;
  };
  prm::set<i::uctx_en>(item.data(), 1);
  prm::set<i::lro_log_timeout0>(item.data(), log2_of_period(0));
  prm::set<i::lro_log_timeout1>(item.data(), log2_of_period(1));
  prm::set<i::lro_log_timeout2>(item.data(), log2_of_period(2));
  prm::set<i::lro_log_timeout3>(item.data(), log2_of_period(3));
  return i::bytes;  // CQEs are compressed in the balanced way
}

std::size_t offload_cap(const Options& /*options*/, Item& /*item*/) { return prm::nv_sw_offload_cap::bytes; }
std::size_t accelerate_conf(const Options& /*options*/, Item& /*item*/) {
  return prm::nv_sw_accelerate_conf::bytes;
}

struct ItemType {
  std::uint32_t type;
  std::size_t (*fill)(const Options&, Item&);  // returns its bytes
};
constexpr ItemType kItems[] = {
    {prm::kNvBaseMacGuid, addresses},
    {prm::kNvBaseMacGuidCap, addresses_cap},
    {prm::kNvGlobalPciConf, pci_conf},
    {prm::kNvGlobalPciCap, pci_cap},
    {prm::kNvSwOffloadConf, offload_conf},
    {prm::kNvSwOffloadCap, offload_cap},
    {prm::kNvSwAccelerateConf, accelerate_conf},
};
// Null: there is none.
const ItemType* find_item(std::uint32_t type) {
  const auto found = std::find_if(std::begin(kItems), std::end(kItems),
                                  [type](const ItemType& of) { return of.type == type; });
  return found != std::end(kItems) ? found : nullptr;
}

}  // namespace

Syndrome read_nvda(Access& a) {
  using r = prm::nvda;
  // Tools ask for items of an expansion ROM whatever MNVQC says, and take that there are none.
  const ItemType* const of = find_item(static_cast<std::uint32_t>(prm::get<r::type>(a.data)));
  if (of == nullptr) return Syndrome::kNvItem;
  Item item{};
  const std::size_t size = of->fill(a.fw.options(), item);
  if (a.room < r::bytes + size) return Syndrome::kRegisterLength;
  prm::set<r::version>(a.data, 0);
  prm::set<r::length>(a.data, static_cast<std::uint32_t>(size));
  std::memcpy(a.data + r::bytes, item.data(), size);
  return Syndrome::kOk;
}

// Of an item that is not there, too: tools ask for all that they know.
Syndrome read_mnvqc(Access& a) {
  using r = prm::mnvqc;
  const auto type = static_cast<std::uint32_t>(prm::get<r::type>(a.data));
  std::memset(a.data, 0, r::bytes);
  prm::set<r::type>(a.data, type);
  prm::set<r::support_rd>(a.data, find_item(type) != nullptr ? 1 : 0);
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
