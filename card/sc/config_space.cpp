// SPDX-License-Identifier: BSD-3-Clause
#include "card/sc/config_space.h"

#include <linux/pci_regs.h>

#include <algorithm>
#include <cstring>

namespace hcasim::sc {

namespace {

constexpr std::uint32_t kVendor = 0x15b3, kSubsystem = 0x0008;
constexpr std::uint16_t kCommands = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
                                    PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE;  // that can be set
constexpr std::uint32_t kBar64Prefetchable = PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
constexpr unsigned kMsixBar = 2;  // the BAR indicator (BIR) of table and pending bits
constexpr std::uint32_t kPmVersion1_2 = 3, kPayload512 = 2;

std::uint32_t mask_of(unsigned len) { return len >= 4 ? 0xffffffffu : (1u << (8 * len)) - 1; }

bool fits(std::uint64_t offset, unsigned len) {
  return (len == 1 || len == 2 || len == 4) && offset % 4 + len <= 4 && offset < ConfigSpace::kBytes;
}

}  // namespace

ConfigSpace::ConfigSpace(const Identity& identity) {
  build(identity);
  reset();
}

void ConfigSpace::put(unsigned offset, std::uint32_t value, unsigned len, std::uint32_t writable) {
  std::memcpy(&initial_[offset], &value, len);  // hosts are little-endian
  std::memcpy(&writable_[offset], &writable, len);
}

void ConfigSpace::build(const Identity& identity) {
  put(PCI_VENDOR_ID, std::uint32_t{identity.device} << 16 | kVendor, 4);
  put(PCI_COMMAND, 0, 2, kCommands);
  put(PCI_STATUS, PCI_STATUS_CAP_LIST, 2);
  put(PCI_CLASS_REVISION, (identity.ethernet ? 0x0200u : 0x0207u) << 16 | identity.revision, 4);
  put(PCI_CACHE_LINE_SIZE, 0, 1, 0xff);
  put(PCI_BASE_ADDRESS_0, kBar64Prefetchable, 4, static_cast<std::uint32_t>(~(kRegisterBytes - 1)));
  put(PCI_BASE_ADDRESS_1, 0, 4, 0xffffffff);
  put(PCI_BASE_ADDRESS_2, 0, 4, static_cast<std::uint32_t>(~(kMsixBytes - 1)));
  put(PCI_SUBSYSTEM_VENDOR_ID, kSubsystem << 16 | kVendor, 4);
  put(PCI_CAPABILITY_LIST, kPm, 1);
  put(PCI_INTERRUPT_PIN, 0, 1);

  put(kPm, std::uint32_t{kMsix} << 8 | PCI_CAP_ID_PM, 2);
  put(kPm + PCI_PM_PMC, kPmVersion1_2, 2);  // no PME
  put(kPm + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET, 2, PCI_PM_CTRL_STATE_MASK);

  put(kMsix, std::uint32_t{kExpress} << 8 | PCI_CAP_ID_MSIX, 2);
  put(kMsix + PCI_MSIX_FLAGS, kVectors - 1, 2, PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
  put(kMsix + PCI_MSIX_TABLE, kMsixBar, 4);  // at its start
  put(kMsix + PCI_MSIX_PBA, kPendingBits | kMsixBar, 4);

  const std::uint32_t speed = std::clamp(identity.generation, 1u, 5u), width = identity.lanes << 4;
  put(kExpress, PCI_CAP_ID_EXP, 2);
  put(kExpress + PCI_EXP_FLAGS, PCI_EXP_TYPE_ENDPOINT << 4 | 2, 2);  // version 2
  put(kExpress + PCI_EXP_DEVCAP,
      PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_EXT_TAG | kPayload512, 4);
  // What cannot be set: phantom functions, auxiliary power, and the reset bit, which reads as 0.
  put(kExpress + PCI_EXP_DEVCTL,
      PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B, 2,
      0xffff & ~(PCI_EXP_DEVCTL_BCR_FLR | PCI_EXP_DEVCTL_PHANTOM | PCI_EXP_DEVCTL_AUX_PME));
  put(kExpress + PCI_EXP_LNKCAP, speed | width, 4);
  put(kExpress + PCI_EXP_LNKSTA, speed | width, 2);
  put(kExpress + PCI_EXP_LNKCAP2, ((1u << speed) - 1) << 1, 4);
  put(kExpress + PCI_EXP_LNKCTL2, speed, 2);
}

void ConfigSpace::reset() {
  bytes_ = initial_;
  table_.fill(Entry{});
  pending_ = 0;
}

std::uint32_t ConfigSpace::word(unsigned offset) const {
  std::uint32_t value = 0;
  std::memcpy(&value, &bytes_[offset], sizeof value);
  return value;
}

std::uint32_t ConfigSpace::read(unsigned offset, unsigned len) const {
  if (!fits(offset, len)) return 0xffffffff;
  return word(offset & ~3u) >> (8 * (offset % 4)) & mask_of(len);
}

bool ConfigSpace::write(unsigned offset, std::uint32_t value, unsigned len) {
  if (!fits(offset, len)) return false;
  for (unsigned i = 0; i < len; ++i) {
    const std::uint8_t mask = writable_[offset + i];
    const auto byte = static_cast<std::uint8_t>(value >> (8 * i));
    bytes_[offset + i] = static_cast<std::uint8_t>((bytes_[offset + i] & ~mask) | (byte & mask));
  }
  const unsigned high = kExpress + PCI_EXP_DEVCTL + 1u;  // the byte with "initiate function level reset"
  return offset <= high && high < offset + len &&
         (value >> (8 * (high - offset)) & PCI_EXP_DEVCTL_BCR_FLR >> 8) != 0;
}

bool ConfigSpace::bus_master() const { return powered() && (word(PCI_COMMAND) & PCI_COMMAND_MASTER) != 0; }

bool ConfigSpace::powered() const { return (bytes_[kPm + PCI_PM_CTRL] & PCI_PM_CTRL_STATE_MASK) == 0; }

ConfigSpace::Place ConfigSpace::decode(std::uint64_t address, std::uint64_t len) const {
  if (!powered() || (word(PCI_COMMAND) & PCI_COMMAND_MEMORY) == 0 || len == 0) return {};
  const auto within = [&](std::uint64_t base, std::uint64_t size) {
    return base != 0 && address >= base && address - base < size && len <= size - (address - base);
  };
  const std::uint64_t registers =
      (std::uint64_t{word(PCI_BASE_ADDRESS_1)} << 32 | word(PCI_BASE_ADDRESS_0)) & ~(kRegisterBytes - 1);
  if (within(registers, kRegisterBytes)) return {Bar::kRegisters, address - registers};
  const std::uint64_t table = word(PCI_BASE_ADDRESS_2) & ~(kMsixBytes - 1);
  if (within(table, kMsixBytes)) return {Bar::kMsixTable, address - table};
  return {};
}

// ---- MSI-X ----

std::uint32_t ConfigSpace::table_word(std::uint64_t offset) const {
  if (offset == kPendingBits) return static_cast<std::uint32_t>(pending_);
  if (offset == kPendingBits + 4) return static_cast<std::uint32_t>(pending_ >> 32);
  if (offset / PCI_MSIX_ENTRY_SIZE >= kVectors) return 0;
  const Entry& entry = table_[offset / PCI_MSIX_ENTRY_SIZE];
  switch (offset % PCI_MSIX_ENTRY_SIZE) {
    case PCI_MSIX_ENTRY_LOWER_ADDR:
      return static_cast<std::uint32_t>(entry.address);
    case PCI_MSIX_ENTRY_UPPER_ADDR:
      return static_cast<std::uint32_t>(entry.address >> 32);
    case PCI_MSIX_ENTRY_DATA:
      return entry.data;
    default:
      return entry.control;
  }
}

void ConfigSpace::table_read(std::uint64_t offset, std::uint8_t* bytes, unsigned len) const {
  std::memset(bytes, 0xff, len);
  if ((len != 4 && len != 8) || offset % len != 0 || offset >= kMsixBytes) return;
  for (unsigned done = 0; done < len; done += 4) {
    const std::uint32_t value = table_word(offset + done);
    std::memcpy(bytes + done, &value, sizeof value);
  }
}

void ConfigSpace::table_write(std::uint64_t offset, const std::uint8_t* bytes, unsigned len) {
  if ((len != 4 && len != 8) || offset % len != 0 || offset >= kMsixBytes) return;
  for (unsigned done = 0; done < len; done += 4) {
    const std::uint64_t at = offset + done;
    if (at / PCI_MSIX_ENTRY_SIZE >= kVectors) return;
    std::uint32_t value = 0;
    std::memcpy(&value, bytes + done, sizeof value);
    Entry& entry = table_[at / PCI_MSIX_ENTRY_SIZE];
    switch (at % PCI_MSIX_ENTRY_SIZE) {
      case PCI_MSIX_ENTRY_LOWER_ADDR:
        entry.address = (entry.address & ~0xffffffffull) | (value & ~3u);
        break;
      case PCI_MSIX_ENTRY_UPPER_ADDR:
        entry.address = (entry.address & 0xffffffffull) | std::uint64_t{value} << 32;
        break;
      case PCI_MSIX_ENTRY_DATA:
        entry.data = value;
        break;
      default:
        entry.control = value & PCI_MSIX_ENTRY_CTRL_MASKBIT;
    }
  }
}

bool ConfigSpace::open(const Entry& entry) const {
  const std::uint32_t control = word(kMsix) >> 16;
  return (control & PCI_MSIX_FLAGS_ENABLE) != 0 && (control & PCI_MSIX_FLAGS_MASKALL) == 0 &&
         entry.control == 0 && bus_master();
}

std::optional<ConfigSpace::Message> ConfigSpace::signal(unsigned vector) {
  if (vector >= kVectors || (word(kMsix) >> 16 & PCI_MSIX_FLAGS_ENABLE) == 0) return {};
  const Entry& entry = table_[vector];
  if (open(entry)) return Message{entry.address, entry.data};
  pending_ |= 1ull << vector;
  return {};
}

std::vector<ConfigSpace::Message> ConfigSpace::take_unmasked() {
  std::vector<Message> out;
  for (unsigned v = 0; v < kVectors; ++v) {
    if ((pending_ >> v & 1) == 0 || !open(table_[v])) continue;
    pending_ &= ~(1ull << v);
    out.push_back({table_[v].address, table_[v].data});
  }
  return out;
}

}  // namespace hcasim::sc
