// SPDX-License-Identifier: BSD-3-Clause
// The PCIe configuration space of the function for platforms that bring none of their own: type 0 header;
// power management, MSI-X, PCI Express, vital product data and vendor specific capabilities; advanced error
// reporting and device serial number (PCIe Base Specification 4.0, ch. 6.2 and 7; PCI Local Bus 3.0, 6.8.2
// for MSI-X, 6.8.3.5 for VPD).
//   BAR 0 and 1: the HCA's registers, 32 MiB, 64 bits, prefetchable
//   BAR 2:       4 KiB, 32 bits: MSI-X table at 0, pending bits at 0x800
#ifndef HCASIM_CARD_PCI_CONFIG_SPACE_H
#define HCASIM_CARD_PCI_CONFIG_SPACE_H

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hcasim::pci {

// What a card says of itself.
struct Identity {
  std::uint16_t device_id = 0x1019, subsystem_id = 0x0008;
  std::uint8_t revision = 0;
  bool ethernet = true;                      // class code 0200, else 0207
  unsigned pcie_generation = 3, lanes = 16;  // of the link: 1 = 2.5 GT/s ...
  std::uint64_t serial = 0;                  // EUI-64, the node GUID
  std::vector<std::uint8_t> vpd{};           // vital product data
};

class ConfigSpace {
 public:
  static constexpr unsigned kBytes = 4096, kVectors = 64;
  static constexpr std::uint64_t kRegisterBytes = 32u << 20, kMsixBytes = 4096;
  // Where the capabilities are.
  enum : std::uint16_t {
    kPm = 0x40,
    kMsix = 0x50,
    kExpress = 0x60,
    kVpd = 0xa0,
    kVendor = 0xa8,
    kAer = 0x100,
    kSerial = 0x148
  };
  static constexpr std::uint32_t kPendingBits = 0x800;  // in BAR 2
  // The registers of the vendor specific capability, behind its header, are not here
  // (model/pcie/vsc_gateway.h).
  static constexpr unsigned kVendorBytes = 0x18, kVendorHeader = 4;
  static constexpr bool is_gateway(unsigned offset) {
    return offset >= kVendor + kVendorHeader && offset < kVendor + kVendorBytes;
  }

  using Identity = pci::Identity;
  explicit ConfigSpace(const Identity& identity);

  // Registers, in the host's order of a little-endian bus. len 1, 2 or 4 within an aligned word of 32 bits,
  // else reads give all ones and writes do nothing.
  std::uint32_t read(unsigned offset, unsigned len) const;
  // True: the function is to be reset (FLR); this space has not been yet.
  bool write(unsigned offset, std::uint32_t value, unsigned len);
  // As after power-on; what identifies the function stays.
  void reset();
  // By a function level reset, which leaves alone what is sticky, and the payload size (6.6.2).
  void function_reset();

  // The function has detected an error; bit: of AER's status registers. An uncorrectable one is as bad as
  // the severity register says, unless `severity` says it.
  enum class Severity : std::uint8_t { kCorrectable, kNonFatal, kFatal, kByRegister };
  // What is sent to the root complex: nothing if the error is masked, or its report not enabled.
  enum class ErrorMessage : std::uint8_t { kNone, kCorrectable, kNonFatal, kFatal };
  ErrorMessage report(std::uint32_t bit, Severity severity);

  // Which BAR len bytes at a bus address belong to, as BARs and the memory space enable are.
  enum class Bar : std::uint8_t { kNone, kRegisters, kMsixTable };
  struct Place {
    Bar bar = Bar::kNone;
    std::uint64_t offset = 0;
  };
  Place decode(std::uint64_t address, std::uint64_t len) const;

  bool bus_master() const;
  bool powered() const;  // D0; otherwise nothing but configuration accesses is answered

  // BAR 2. Accesses of whole, aligned words of 4 or 8 bytes; others: as read() and write().
  void table_read(std::uint64_t offset, std::uint8_t* bytes, unsigned len) const;
  void table_write(std::uint64_t offset, const std::uint8_t* bytes, unsigned len);

  // The memory write of 4 bytes that signals an interrupt.
  struct Message {
    std::uint64_t address;
    std::uint32_t data;
  };
  // The vector is to be signalled. None: it is masked, and pending from now on, or MSI-X is off.
  std::optional<Message> signal(unsigned vector);
  // Of vectors that were pending and are not masked any more; each is given once.
  std::vector<Message> take_unmasked();

  // What software has written and errors have left, for saved states: "configuration" (kBytes), "msix_table"
  // (as in BAR 2, 16 bytes a vector), "msix_pending" (8).
  using Parts = std::map<std::string, std::string>;
  Parts parts() const;
  // As they were. Empty: taken; else what is wrong with them, and nothing has changed.
  std::string take(const Parts& parts);

 private:
  struct Entry {
    std::uint64_t address = 0;
    std::uint32_t data = 0, control = 1;  // bit 0: masked
  };
  // writable: bits that software sets; clearable: that it clears by writing 1.
  void put(unsigned offset, std::uint32_t value, unsigned len, std::uint32_t writable = 0,
           std::uint32_t clearable = 0);
  void build_header(const Identity& identity);
  void build_express(const Identity& identity);
  void build_error_reporting();
  void access_vpd();
  void set(unsigned offset, std::uint32_t bits, unsigned len);
  std::uint32_t word(unsigned offset) const;
  bool open(const Entry& entry) const;
  std::uint32_t table_word(std::uint64_t offset) const;

  std::array<std::uint8_t, kBytes> bytes_{}, initial_{}, writable_{}, clearable_{};
  std::vector<std::uint8_t> vpd_;
  std::array<Entry, kVectors> table_{};
  std::uint64_t pending_ = 0;
};

}  // namespace hcasim::pci
#endif
