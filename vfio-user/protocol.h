// SPDX-License-Identifier: BSD-3-Clause
// The vfio-user protocol, version 0.x, as far as it is spoken here: messages on a stream socket, in the byte
// order of the host, each a header with what follows it. Structures that the protocol shares with the
// kernel's VFIO are taken from <linux/vfio.h>. Source: the specification in QEMU's documentation
// (interop/vfio-user).
#ifndef HCASIM_VFIO_USER_PROTOCOL_H
#define HCASIM_VFIO_USER_PROTOCOL_H

#include <linux/vfio.h>

#include <cstdint>

namespace hcasim::vfio_user {

enum class Command : std::uint16_t {
  kVersion = 1,
  kDmaMap = 2,
  kDmaUnmap = 3,
  kDeviceGetInfo = 4,
  kDeviceGetRegionInfo = 5,
  kDeviceGetRegionIoFds = 6,
  kDeviceGetIrqInfo = 7,
  kDeviceSetIrqs = 8,
  kRegionRead = 9,
  kRegionWrite = 10,
  kDmaRead = 11,
  kDmaWrite = 12,
  kDeviceReset = 13,
  kRegionWriteMulti = 15,
  kDeviceFeature = 16,
};

struct Header {
  std::uint16_t id, command;
  std::uint32_t size;  // bytes of the message, this header among them
  std::uint32_t flags;
  std::uint32_t error;  // errno, with kError
};
static_assert(sizeof(Header) == 16);

enum HeaderFlags : std::uint32_t { kTypeMask = 0xf, kReply = 0x1, kNoReply = 0x10, kError = 0x20 };

struct Version {  // JSON follows, with its NUL
  std::uint16_t major, minor;
};
static_assert(sizeof(Version) == 4);

struct DeviceInfo {
  std::uint32_t argsz, flags, regions, interrupts;
};
static_assert(sizeof(DeviceInfo) == 16);

enum DmaFlags : std::uint32_t { kDmaReadable = 1, kDmaWritable = 2 };

struct DmaMapRequest {
  std::uint32_t argsz, flags;
  std::uint64_t offset, address, size;  // offset: in the file
};
static_assert(sizeof(DmaMapRequest) == 32);

enum UnmapFlags : std::uint32_t { kUnmapDirtyBitmap = 1, kUnmapAll = 2 };

struct DmaUnmapRequest {
  std::uint32_t argsz, flags;
  std::uint64_t address, size;
};
static_assert(sizeof(DmaUnmapRequest) == 24);

struct RegionAccess {  // count bytes follow, in a write and in the answer to a read
  std::uint64_t offset;
  std::uint32_t region, count;
};
static_assert(sizeof(RegionAccess) == 16);

struct SingleWrite {
  std::uint64_t offset;
  std::uint32_t region, count;
  std::uint8_t data[8];
};
static_assert(sizeof(SingleWrite) == 24);

struct WriteMulti {  // that many SingleWrite follow
  std::uint64_t count;
};
static_assert(sizeof(WriteMulti) == 8);

// What this end takes: bytes in one access, file descriptors with one message, maps.
constexpr std::uint32_t kMostData = 1u << 20;
constexpr unsigned kMostFds = 16, kMostMaps = 65535;
constexpr std::uint32_t kMostMessage = sizeof(Header) + kMostData + 64;

// Of regions: BAR0 to BAR5, expansion ROM, configuration space, VGA; and interrupts of each kind.
constexpr unsigned kRegions = VFIO_PCI_NUM_REGIONS, kInterruptKinds = VFIO_PCI_NUM_IRQS;

}  // namespace hcasim::vfio_user
#endif
