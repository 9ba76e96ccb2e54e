// SPDX-License-Identifier: BSD-3-Clause
#include "card/pci/config_space.h"

#include <linux/pci_regs.h>

#include <algorithm>
#include <cstring>

namespace hcasim::pci {

namespace {

constexpr std::uint32_t kMellanox = 0x15b3;
constexpr std::uint16_t kCommands = PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
                                    PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE;  // that can be set
constexpr std::uint32_t kBar64Prefetchable = PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
constexpr unsigned kMsixBar = 2;  // the BAR indicator (BIR) of table and pending bits
constexpr std::uint32_t kPmVersion1_2 = 3, kPayload512 = 2;
constexpr std::uint16_t kStatusErrors = PCI_STATUS_PARITY | PCI_STATUS_SIG_TARGET_ABORT |
                                        PCI_STATUS_REC_TARGET_ABORT | PCI_STATUS_REC_MASTER_ABORT |
                                        PCI_STATUS_SIG_SYSTEM_ERROR | PCI_STATUS_DETECTED_PARITY;
constexpr std::uint16_t kDeviceErrors =
    PCI_EXP_DEVSTA_CED | PCI_EXP_DEVSTA_NFED | PCI_EXP_DEVSTA_FED | PCI_EXP_DEVSTA_URD;

// Advanced error reporting: what an endpoint has, and the defaults of 7.8.4.
constexpr unsigned kAerVersion = 2, kAerBytes = 0x2c;  // without the root port's registers
constexpr std::uint32_t kUncorrectable =
    PCI_ERR_UNC_DLP | PCI_ERR_UNC_SURPDN | PCI_ERR_UNC_POISON_TLP | PCI_ERR_UNC_FCP | PCI_ERR_UNC_COMP_TIME |
    PCI_ERR_UNC_COMP_ABORT | PCI_ERR_UNC_UNX_COMP | PCI_ERR_UNC_RX_OVER | PCI_ERR_UNC_MALF_TLP |
    PCI_ERR_UNC_ECRC | PCI_ERR_UNC_UNSUP | PCI_ERR_UNC_ACSV | PCI_ERR_UNC_INTN;
constexpr std::uint32_t kMaskedUncorrectable = PCI_ERR_UNC_INTN;
constexpr std::uint32_t kFatalByDefault = PCI_ERR_UNC_DLP | PCI_ERR_UNC_SURPDN | PCI_ERR_UNC_FCP |
                                          PCI_ERR_UNC_RX_OVER | PCI_ERR_UNC_MALF_TLP | PCI_ERR_UNC_INTN;
constexpr std::uint32_t kCorrectable = PCI_ERR_COR_RCVR | PCI_ERR_COR_BAD_TLP | PCI_ERR_COR_BAD_DLLP |
                                       PCI_ERR_COR_REP_ROLL | PCI_ERR_COR_REP_TIMER | PCI_ERR_COR_ADV_NFAT |
                                       PCI_ERR_COR_INTERNAL | PCI_ERR_COR_LOG_OVER;
constexpr std::uint32_t kMaskedCorrectable =
    PCI_ERR_COR_ADV_NFAT | PCI_ERR_COR_INTERNAL | PCI_ERR_COR_LOG_OVER;

constexpr std::uint32_t extended(unsigned id, unsigned version, unsigned next) {
  return id | version << 16 | next << 20;
}

std::uint32_t mask_of(unsigned len) { return len >= 4 ? 0xffffffffu : (1u << (8 * len)) - 1; }

bool fits(std::uint64_t offset, unsigned len) {
  return (len == 1 || len == 2 || len == 4) && offset % 4 + len <= 4 && offset < ConfigSpace::kBytes;
}

}  // namespace

ConfigSpace::ConfigSpace(const Identity& identity) : vpd_(identity.vpd) {
  build_header(identity);
  build_express(identity);
  put(kVpd, std::uint32_t{kVendor} << 8 | PCI_CAP_ID_VPD, 2);
  put(kVpd + PCI_VPD_ADDR, 0, 2, 0xffff);
  put(kVpd + PCI_VPD_DATA, 0, 4, 0xffffffff);
  put(kVendor, PCI_CAP_ID_VNDR, 2);
  put(kVendor + PCI_CAP_FLAGS, kVendorBytes, 1);
  build_error_reporting();
  put(kSerial, extended(PCI_EXT_CAP_ID_DSN, 1, 0), 4);
  put(kSerial + 4, static_cast<std::uint32_t>(identity.serial), 4);
  put(kSerial + 8, static_cast<std::uint32_t>(identity.serial >> 32), 4);
  reset();
}

void ConfigSpace::put(unsigned offset, std::uint32_t value, unsigned len, std::uint32_t writable,
                      std::uint32_t clearable) {
  std::memcpy(&initial_[offset], &value, len);  // hosts are little-endian
  std::memcpy(&writable_[offset], &writable, len);
  std::memcpy(&clearable_[offset], &clearable, len);
}

void ConfigSpace::build_header(const Identity& identity) {
  put(PCI_VENDOR_ID, std::uint32_t{identity.device_id} << 16 | kMellanox, 4);
  put(PCI_COMMAND, 0, 2, kCommands);
  put(PCI_STATUS, PCI_STATUS_CAP_LIST, 2, 0, kStatusErrors);
  put(PCI_CLASS_REVISION, (identity.ethernet ? 0x0200u : 0x0207u) << 16 | identity.revision, 4);
  put(PCI_CACHE_LINE_SIZE, 0, 1, 0xff);
  put(PCI_BASE_ADDRESS_0, kBar64Prefetchable, 4, static_cast<std::uint32_t>(~(kRegisterBytes - 1)));
  put(PCI_BASE_ADDRESS_1, 0, 4, 0xffffffff);
  put(PCI_BASE_ADDRESS_2, 0, 4, static_cast<std::uint32_t>(~(kMsixBytes - 1)));
  put(PCI_SUBSYSTEM_VENDOR_ID, std::uint32_t{identity.subsystem_id} << 16 | kMellanox, 4);
  put(PCI_CAPABILITY_LIST, kPm, 1);
  put(PCI_INTERRUPT_PIN, 0, 1);

  put(kPm, std::uint32_t{kMsix} << 8 | PCI_CAP_ID_PM, 2);
  put(kPm + PCI_PM_PMC, kPmVersion1_2, 2);  // no PME
  put(kPm + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET, 2, PCI_PM_CTRL_STATE_MASK);

  put(kMsix, std::uint32_t{kExpress} << 8 | PCI_CAP_ID_MSIX, 2);
  put(kMsix + PCI_MSIX_FLAGS, kVectors - 1, 2, PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
  put(kMsix + PCI_MSIX_TABLE, kMsixBar, 4);  // at its start
  put(kMsix + PCI_MSIX_PBA, kPendingBits | kMsixBar, 4);
}

void ConfigSpace::build_express(const Identity& identity) {
  const std::uint32_t speed = std::clamp(identity.pcie_generation, 1u, 5u), width = identity.lanes << 4;
  put(kExpress, std::uint32_t{kVpd} << 8 | PCI_CAP_ID_EXP, 2);
  put(kExpress + PCI_EXP_FLAGS, PCI_EXP_TYPE_ENDPOINT << 4 | 2, 2);  // version 2
  put(kExpress + PCI_EXP_DEVCAP,
      PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_RBER | PCI_EXP_DEVCAP_EXT_TAG | kPayload512, 4);
  // What cannot be set: phantom functions, auxiliary power, and the reset bit, which reads as 0.
  put(kExpress + PCI_EXP_DEVCTL,
      PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B, 2,
      0xffff & ~(PCI_EXP_DEVCTL_BCR_FLR | PCI_EXP_DEVCTL_PHANTOM | PCI_EXP_DEVCTL_AUX_PME));
  put(kExpress + PCI_EXP_DEVSTA, 0, 2, 0, kDeviceErrors);
  put(kExpress + PCI_EXP_LNKCAP, speed | width, 4);
  put(kExpress + PCI_EXP_LNKSTA, speed | width, 2);
  put(kExpress + PCI_EXP_LNKCAP2, ((1u << speed) - 1) << 1, 4);
  put(kExpress + PCI_EXP_LNKCTL2, speed, 2);
}

// The first error's header (PCI_ERR_HEADER_LOG) stays zero: there are no TLPs.
void ConfigSpace::build_error_reporting() {
  put(kAer, extended(PCI_EXT_CAP_ID_ERR, kAerVersion, kSerial), 4);
  put(kAer + PCI_ERR_UNCOR_STATUS, 0, 4, 0, kUncorrectable);
  put(kAer + PCI_ERR_UNCOR_MASK, kMaskedUncorrectable, 4, kUncorrectable);
  put(kAer + PCI_ERR_UNCOR_SEVER, kFatalByDefault, 4, kUncorrectable);
  put(kAer + PCI_ERR_COR_STATUS, 0, 4, 0, kCorrectable);
  put(kAer + PCI_ERR_COR_MASK, kMaskedCorrectable, 4, kCorrectable);
}

void ConfigSpace::reset() {
  bytes_ = initial_;
  table_.fill(Entry{});
  pending_ = 0;
}

void ConfigSpace::function_reset() {
  std::array<std::uint8_t, kAerBytes> sticky;
  std::copy_n(&bytes_[kAer], kAerBytes, sticky.begin());
  const std::uint32_t payload = word(kExpress + PCI_EXP_DEVCTL) & PCI_EXP_DEVCTL_PAYLOAD;
  reset();
  std::copy(sticky.begin(), sticky.end(), &bytes_[kAer]);
  set(kExpress + PCI_EXP_DEVCTL, payload, 2);
}

std::uint32_t ConfigSpace::word(unsigned offset) const {
  std::uint32_t value = 0;
  std::memcpy(&value, &bytes_[offset], sizeof value);
  return value;
}

void ConfigSpace::set(unsigned offset, std::uint32_t bits, unsigned len) {
  for (unsigned i = 0; i < len; ++i) bytes_[offset + i] |= static_cast<std::uint8_t>(bits >> (8 * i));
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
    bytes_[offset + i] &= static_cast<std::uint8_t>(~(byte & clearable_[offset + i]));
  }
  const unsigned flag = kVpd + PCI_VPD_ADDR + 1u;  // the byte that starts an access
  if (offset <= flag && flag < offset + len) access_vpd();
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

// ---- Vital product data ----

// The data are the card's and read-only: a write is answered as done and changes nothing.
void ConfigSpace::access_vpd() {
  const std::uint32_t registers = word(kVpd) >> 16, address = registers & PCI_VPD_ADDR_MASK;
  bytes_[kVpd + PCI_VPD_ADDR + 1] ^= PCI_VPD_ADDR_F >> 8;  // done
  if ((registers & PCI_VPD_ADDR_F) != 0) return;
  for (unsigned i = 0; i < 4; ++i)
    bytes_[kVpd + PCI_VPD_DATA + i] = address + i < vpd_.size() ? vpd_[address + i] : std::uint8_t{0};
}

// ---- Errors ----

// 6.2.5, without the rules for advisory errors, which the cause has applied.
ConfigSpace::ErrorMessage ConfigSpace::report(std::uint32_t bit, Severity severity) {
  const std::uint32_t control = word(kExpress + PCI_EXP_DEVCTL);
  if (severity == Severity::kCorrectable) {
    set(kExpress + PCI_EXP_DEVSTA, PCI_EXP_DEVSTA_CED, 2);
    set(kAer + PCI_ERR_COR_STATUS, bit & kCorrectable, 4);
    const bool told = (word(kAer + PCI_ERR_COR_MASK) & bit) == 0 && (control & PCI_EXP_DEVCTL_CERE) != 0;
    return told ? ErrorMessage::kCorrectable : ErrorMessage::kNone;
  }
  const bool fatal = severity == Severity::kByRegister ? (word(kAer + PCI_ERR_UNCOR_SEVER) & bit) != 0
                                                       : severity == Severity::kFatal;
  set(kExpress + PCI_EXP_DEVSTA, fatal ? PCI_EXP_DEVSTA_FED : PCI_EXP_DEVSTA_NFED, 2);
  if ((bit & PCI_ERR_UNC_UNSUP) != 0) set(kExpress + PCI_EXP_DEVSTA, PCI_EXP_DEVSTA_URD, 2);
  const bool masked = (word(kAer + PCI_ERR_UNCOR_MASK) & bit) != 0;
  // The first error pointer is valid while the bit that it points to is set.
  const std::uint32_t status = word(kAer + PCI_ERR_UNCOR_STATUS), first = word(kAer + PCI_ERR_CAP);
  if (!masked && (status >> PCI_ERR_CAP_FEP(first) & 1) == 0) {
    unsigned number = 0;
    while (number < 31 && (bit >> number & 1) == 0) ++number;
    bytes_[kAer + PCI_ERR_CAP] = static_cast<std::uint8_t>((first & ~PCI_ERR_CAP_FEP(~0u)) | number);
  }
  set(kAer + PCI_ERR_UNCOR_STATUS, bit & kUncorrectable, 4);
  if (masked) return ErrorMessage::kNone;
  const bool serr = (word(PCI_COMMAND) & PCI_COMMAND_SERR) != 0;
  if (serr) set(PCI_STATUS, PCI_STATUS_SIG_SYSTEM_ERROR, 2);
  if (!serr && (control & (fatal ? PCI_EXP_DEVCTL_FERE : PCI_EXP_DEVCTL_NFERE)) == 0)
    return ErrorMessage::kNone;
  return fatal ? ErrorMessage::kFatal : ErrorMessage::kNonFatal;
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

// ---- Saved states ----

ConfigSpace::Parts ConfigSpace::parts() const {
  Parts parts;
  parts["configuration"].assign(bytes_.begin(), bytes_.end());
  std::string& table = parts["msix_table"];
  for (unsigned at = 0; at < kVectors * PCI_MSIX_ENTRY_SIZE; at += 4) {
    std::uint8_t word[4];
    table_read(at, word, sizeof word);
    table.append(word, word + sizeof word);
  }
  std::uint8_t pending[8];
  table_read(kPendingBits, pending, sizeof pending);
  parts["msix_pending"].assign(pending, pending + sizeof pending);
  return parts;
}

std::string ConfigSpace::take(const Parts& parts) {
  const auto part = [&](const char* name, std::size_t len) -> const std::string* {
    const auto it = parts.find(name);
    return it != parts.end() && it->second.size() == len ? &it->second : nullptr;
  };
  const std::string* const configuration = part("configuration", kBytes);
  const std::string* const table = part("msix_table", kVectors * PCI_MSIX_ENTRY_SIZE);
  const std::string* const pending = part("msix_pending", sizeof pending_);
  if (!configuration || !table || !pending) return "it has no configuration space of this kind";
  for (unsigned i = 0; i < kBytes; ++i) {
    auto fixed = static_cast<std::uint8_t>(~(writable_[i] | clearable_[i]));
    if (i == kAer + PCI_ERR_CAP) fixed &= static_cast<std::uint8_t>(~PCI_ERR_CAP_FEP(~0u));
    if (((static_cast<std::uint8_t>((*configuration)[i]) ^ initial_[i]) & fixed) != 0)
      return "its configuration space is another function's, at offset " + std::to_string(i);
  }
  std::copy(configuration->begin(), configuration->end(), bytes_.begin());
  for (unsigned at = 0; at < table->size(); at += 4)
    table_write(at, reinterpret_cast<const std::uint8_t*>(table->data()) + at, 4);
  std::memcpy(&pending_, pending->data(), sizeof pending_);
  return "";
}

}  // namespace hcasim::pci
