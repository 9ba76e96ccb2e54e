// SPDX-License-Identifier: BSD-3-Clause
#include "card/sc/config_space.h"

#include <algorithm>
#include <cstring>

namespace hcasim::sc {

namespace {

constexpr std::uint32_t kVendor = 0x15b3, kSubsystem = 0x0008;
// Registers of the header.
enum : unsigned {
  kCommand = 0x04,
  kClass = 0x08,
  kBar0 = 0x10,
  kBar2 = 0x18,
  kSubsystemId = 0x2c,
  kCapabilities = 0x34,
  kInterruptPin = 0x3d
};
constexpr std::uint16_t kMemorySpace = 1u << 1, kBusMaster = 1u << 2;
constexpr std::uint32_t kStatusCapabilities = 1u << 20;
constexpr std::uint32_t kBar64Prefetchable = 0xc;
// Of the capabilities.
constexpr std::uint16_t kMsixEnable = 1u << 15, kMsixMaskAll = 1u << 14;
constexpr std::uint32_t kStartReset = 1u << 15, kResetOffered = 1u << 28;  // DevCtl, DevCap

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
  put(0, std::uint32_t{identity.device} << 16 | kVendor, 4);
  put(kCommand, kStatusCapabilities, 4, kMemorySpace | kBusMaster | 1u << 6 | 1u << 8 | 1u << 10);
  put(kClass, (identity.ethernet ? 0x0200u : 0x0207u) << 16 | identity.revision, 4);
  put(0x0c, 0, 1, 0xff);  // cache line size
  put(kBar0, kBar64Prefetchable, 4, static_cast<std::uint32_t>(~(kRegisterBytes - 1)));
  put(kBar0 + 4, 0, 4, 0xffffffff);
  put(kBar2, 0, 4, static_cast<std::uint32_t>(~(kMsixBytes - 1)));
  put(kSubsystemId, kSubsystem << 16 | kVendor, 4);
  put(kCapabilities, kPm, 1);
  put(kInterruptPin, 0, 1);

  put(kPm, std::uint32_t{kMsix} << 8 | 0x01, 2);
  put(kPm + 2u, 3, 2);           // version 1.2, no PME
  put(kPm + 4u, 1u << 3, 2, 3);  // no soft reset; power state

  put(kMsix, std::uint32_t{kExpress} << 8 | 0x11, 2);
  put(kMsix + 2u, kVectors - 1, 2, kMsixEnable | kMsixMaskAll);
  put(kMsix + 4u, 2, 4);                 // table: BAR 2, offset 0
  put(kMsix + 8u, kPendingBits | 2, 4);  // pending bits

  const std::uint32_t speed = std::clamp(identity.generation, 1u, 5u), width = identity.lanes << 4;
  put(kExpress, 0x10, 2);
  put(kExpress + 2u, 2, 2);  // version 2, endpoint
  put(kExpress + 4u, kResetOffered | 1u << 15 | 1u << 5 | 2,
      4);                                 // role-based errors, extended tags, 512 bytes
  put(kExpress + 8u, 0x2810, 2, 0x79ff);  // relaxed ordering, no snoop, requests of 512 bytes
  put(kExpress + 0xcu, speed | width, 4);
  put(kExpress + 0x12u, speed | width, 2);
  put(kExpress + 0x2cu, ((1u << speed) - 1) << 1, 4);
  put(kExpress + 0x30u, speed, 2);
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
  const unsigned high = kExpress + 9u;  // the byte with "initiate function level reset", which reads as 0
  return offset <= high && high < offset + len && (value >> (8 * (high - offset)) & kStartReset >> 8) != 0;
}

bool ConfigSpace::bus_master() const { return powered() && (word(kCommand) & kBusMaster) != 0; }

bool ConfigSpace::powered() const { return (bytes_[kPm + 4u] & 3) == 0; }

ConfigSpace::Place ConfigSpace::decode(std::uint64_t address, std::uint64_t len) const {
  if (!powered() || (word(kCommand) & kMemorySpace) == 0 || len == 0) return {};
  const auto within = [&](std::uint64_t base, std::uint64_t size) {
    return base != 0 && address >= base && address - base < size && len <= size - (address - base);
  };
  const std::uint64_t registers =
      (std::uint64_t{word(kBar0 + 4)} << 32 | word(kBar0)) & ~(kRegisterBytes - 1);
  if (within(registers, kRegisterBytes)) return {Bar::kRegisters, address - registers};
  const std::uint64_t table = word(kBar2) & ~(kMsixBytes - 1);
  if (within(table, kMsixBytes)) return {Bar::kMsixTable, address - table};
  return {};
}

// ---- MSI-X ----

std::uint32_t ConfigSpace::table_word(std::uint64_t offset) const {
  if (offset == kPendingBits) return static_cast<std::uint32_t>(pending_);
  if (offset == kPendingBits + 4) return static_cast<std::uint32_t>(pending_ >> 32);
  if (offset / 16 >= kVectors) return 0;
  const Entry& entry = table_[offset / 16];
  switch (offset % 16) {
    case 0:
      return static_cast<std::uint32_t>(entry.address);
    case 4:
      return static_cast<std::uint32_t>(entry.address >> 32);
    case 8:
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
    if (at / 16 >= kVectors) return;
    std::uint32_t value = 0;
    std::memcpy(&value, bytes + done, sizeof value);
    Entry& entry = table_[at / 16];
    switch (at % 16) {
      case 0:
        entry.address = (entry.address & ~0xffffffffull) | (value & ~3u);
        break;
      case 4:
        entry.address = (entry.address & 0xffffffffull) | std::uint64_t{value} << 32;
        break;
      case 8:
        entry.data = value;
        break;
      default:
        entry.control = value & 1;
    }
  }
}

bool ConfigSpace::open(const Entry& entry) const {
  const std::uint32_t control = word(kMsix) >> 16;
  return (control & kMsixEnable) != 0 && (control & kMsixMaskAll) == 0 && entry.control == 0 && bus_master();
}

std::optional<ConfigSpace::Message> ConfigSpace::signal(unsigned vector) {
  if (vector >= kVectors || (word(kMsix) >> 16 & kMsixEnable) == 0) return {};
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
