// SPDX-License-Identifier: BSD-3-Clause
#include "vfio-user/card.h"

#include <linux/pci_regs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace hcasim::vfio_user {

using pci::ConfigSpace;

static_assert(HCA_BAR0_SIZE == ConfigSpace::kRegisterBytes && HCA_MSIX_VECTORS == ConfigSpace::kVectors &&
              HCA_VSC_LENGTH == ConfigSpace::kVendorBytes);

namespace {

constexpr std::uint32_t kGatewayControl = 4;  // in the vendor specific capability
constexpr const char* kShareMemory =
    "give QEMU -object memory-backend-memfd,id=ram,size=SIZE,share=on -machine memory-backend=ram, other "
    "clients "
    "what makes them share the guest's memory";

hca_t* create(const std::string& name, const std::string& options, const hca_host_ops& ops, void* self) {
  char why[2048] = "";
  hca_t* const hca = hca_create(options.c_str(), &ops, self, why, sizeof why);
  if (!hca) throw std::runtime_error(name + ": " + (*why ? why : "the model could not be made"));
  std::string wrong;
  if (hca_functions(hca) > 1)
    wrong = ": vfs=" + std::to_string(hca_functions(hca) - 1) +
            ": a vfio-user server shows one function: take mlx5-hca of a QEMU for SR-IOV";
  else if (hca_sub_functions(hca) != 0)
    wrong = ": sfs=" + std::to_string(hca_sub_functions(hca)) +
            ": a vfio-user server has no sub-functions: take mlx5-hca of a QEMU";
  else if (hca_shows_ats(hca))
    wrong = ": ats=on: the protocol says nothing of an IOMMU's invalidations: take mlx5-hca of a QEMU";
  if (wrong.empty()) return hca;
  hca_destroy(hca);
  throw std::runtime_error(name + wrong);
}

pci::Identity identity_of(const hca_t* hca) {
  const hca_pci_identity shown = hca_get_pci_identity(hca);
  const hca_pcie_link link = hca_get_pcie_link(hca);
  pci::Identity id;
  id.device_id = shown.device_id;
  id.subsystem_id = shown.subsystem_id;
  id.revision = shown.revision;
  id.ethernet = hca_is_ethernet(hca) != 0;
  id.pcie_generation = link.generation;
  id.lanes = link.lanes;
  id.serial = hca_get_serial(hca);
  std::uint8_t none = 0;
  id.vpd.resize(hca_get_vpd(hca, &none, 0));
  hca_get_vpd(hca, id.vpd.data(), id.vpd.size());
  return id;
}

// The largest access that is aligned at this offset, of what is left.
std::uint32_t piece_at(std::uint64_t offset, std::uint32_t left, std::uint32_t most) {
  std::uint32_t size = most;
  while (size > left || offset % size != 0) size /= 2;
  return size;
}

// What a processor makes in one access goes on as one, aligned or not.
bool is_access(std::uint32_t len) { return len == 1 || len == 2 || len == 4 || len == 8; }

}  // namespace

hca_host_ops Card::host_ops() {
  hca_host_ops ops{};
  ops.dma_read = [](void* self, std::uint64_t address, void* to, std::size_t len) {
    auto* const card = static_cast<Card*>(self);
    if (!card->may_master()) return ++card->refused_.not_master, -1;
    return card->dma(card->memory_.read(address, to, len), address);
  };
  ops.dma_write = [](void* self, std::uint64_t address, const void* from, std::size_t len) {
    auto* const card = static_cast<Card*>(self);
    if (!card->may_master()) return ++card->refused_.not_master, -1;
    return card->dma(card->memory_.write(address, from, len), address);
  };
  ops.dma_map = [](void* self, std::uint64_t address, std::size_t len, int write) {
    return static_cast<Card*>(self)->find(address, len, write != 0);
  };
  ops.msix = [](void* self, unsigned vector) { static_cast<Card*>(self)->signal(vector); };
  ops.log = [](void* self, int level, const char* line) { static_cast<Card*>(self)->log(level, line); };
  ops.watch_fd = [](void* self, int fd, int read, int write) {
    static_cast<Card*>(self)->watch_(fd, read != 0, write != 0);
  };
  ops.pcie_error = [](void* self, int what, std::uint32_t bit, const char* name) {
    auto* const card = static_cast<Card*>(self);  // in the midst of a call of the model
    card->time_.put_off([card, what, bit, text = std::string(name)] { card->pcie_error(what, bit, text); });
  };
  return ops;
}

Card::Card(const std::string& name, const std::string& options, Timekeeper& time, Log log, Watch watch)
    : name_(name),
      time_(time),
      log_(std::move(log)),
      watch_(std::move(watch)),
      hca_(create(name, options, host_ops(), this)),
      config_(identity_of(hca_)) {}

Card::~Card() { hca_destroy(hca_); }

// ---- DMA ----

int Card::dma(DmaMap::Result result, std::uint64_t address) {
  std::uint64_t* count = nullptr;
  std::string what;
  switch (result) {
    case DmaMap::Result::kDone:
      return 0;
    case DmaMap::Result::kNothing:
      ++refused_.nothing_there;
      return -1;
    case DmaMap::Result::kNotShared:
      count = &refused_.not_shared;
      what = std::string("is not shared with this process: ") + kShareMemory;
      break;
    case DmaMap::Result::kLost:
      count = &refused_.lost;
      what = "is lost: the client has cut the file that it lay in";
      break;
  }
  if ((*count)++ == 0) {
    char where[32];
    std::snprintf(where, sizeof where, "0x%llx", static_cast<unsigned long long>(address));
    log(HCA_LOG_ERROR, std::string("DMA refused: the guest's memory at ") + where + " " + what);
  }
  return -1;
}

void* Card::find(std::uint64_t address, std::size_t len, bool write) {
  if (!may_master()) return nullptr;
  return memory_.find(address, len, write ? DmaMap::Access::kWrite : DmaMap::Access::kRead);
}

int Card::map(const DmaMapRequest& request, const Descriptor& file) {
  return memory_.add(request.address, request.size, request.flags, file, request.offset);
}

int Card::unmap(std::uint64_t address, std::uint64_t size) {
  hca_memory_changed(hca_);
  return memory_.remove(address, size);
}

void Card::unmap_all() {
  hca_memory_changed(hca_);
  memory_.clear();
}

// ---- interrupts, errors ----

void Card::signal(unsigned vector) {
  const bool enabled = (config_.read(ConfigSpace::kMsix + PCI_MSIX_FLAGS, 2) & PCI_MSIX_FLAGS_ENABLE) != 0;
  if (!may_master() || !enabled) {
    ++refused_.not_master;
    return;
  }
  vectors_.signal(vector);
}

void Card::pcie_error(int what, std::uint32_t bit, const std::string& name) {
  if (what == HCA_PCIE_REMOVED || what == HCA_PCIE_INSERTED) {
    set_removed(what == HCA_PCIE_REMOVED);
    return;
  }
  if (removed_) return;
  using Severity = ConfigSpace::Severity;
  const Severity severity = what == HCA_PCIE_CORRECTABLE ? Severity::kCorrectable
                            : what == HCA_PCIE_NONFATAL  ? Severity::kNonFatal
                            : what == HCA_PCIE_FATAL     ? Severity::kFatal
                                                         : Severity::kByRegister;
  const auto message = config_.report(bit, severity);
  if (message == ConfigSpace::ErrorMessage::kNone) return;
  // The protocol has no message to the root port, only this.
  if (message != ConfigSpace::ErrorMessage::kCorrectable && error_file_) Interrupts::add_one(error_file_);
  log(HCA_LOG_WARNING, std::string(message == ConfigSpace::ErrorMessage::kCorrectable ? "ERR_COR"
                                   : message == ConfigSpace::ErrorMessage::kNonFatal  ? "ERR_NONFATAL"
                                                                                      : "ERR_FATAL") +
                           ": " + name);
}

// Without power it forgets all, and its port is dark.
void Card::set_removed(bool removed) {
  if (removed_ == removed) return;
  removed_ = removed;
  config_.reset();
  vectors_.reset();
  hca_reset(hca_);
  char why[256] = "";
  if (hca_inject(hca_, removed ? "link=down" : "link=up", why, sizeof why) != 0)
    log(HCA_LOG_WARNING, std::string("the cable does not follow: ") + why);
}

void Card::reset() {
  config_.reset();
  vectors_.reset();
  hca_reset(hca_);
}

void Card::function_reset() {
  config_.function_reset();
  vectors_.reset();
  hca_function_reset(hca_, 0);
}

void Card::detach() {
  attached_ = false;
  if (removed_) set_removed(false);  // with its cable
  config_.reset();
  vectors_.clear();
  error_file_.close();
  hca_reset(hca_);
  unmap_all();
}

void Card::keep_for_state() {
  pci::ConfigSpace::Parts parts = config_.parts();
  const std::uint64_t pending = vectors_.pending();
  parts["vectors_pending"].assign(reinterpret_cast<const char*>(&pending), sizeof pending);  // little-endian
  parts["attached"] = attached_ ? '\1' : '\0';
  parts["removed"] = removed_ ? '\1' : '\0';
  for (const auto& [name, bytes] : parts)
    if (hca_set_host_part(hca_, name.c_str(), bytes.data(), bytes.size()) != 0)
      throw std::length_error(name_ + ": a state has no room for its configuration space");
}

std::string Card::take_from_state() {
  pci::ConfigSpace::Parts parts;
  for (const char* name :
       {"configuration", "msix_table", "msix_pending", "vectors_pending", "attached", "removed"}) {
    std::size_t len = 0;
    const void* const bytes = hca_get_host_part(hca_, name, &len);
    if (!bytes) return "it is no state of a vfio-user server: it has no " + std::string(name);
    parts[name].assign(static_cast<const char*>(bytes), len);
  }
  std::uint64_t pending = 0;
  if (parts["vectors_pending"].size() != sizeof pending || parts["attached"].size() != 1 ||
      parts["removed"].size() != 1)
    return "it has no vectors of this kind";
  if (parts["attached"][0] != 0 && !attached_)
    return "the card had a client: without one it has no memory to go on with";
  if (std::string why = config_.take(parts); !why.empty()) return why;
  removed_ = parts["removed"][0] != 0;
  std::memcpy(&pending, parts["vectors_pending"].data(), sizeof pending);
  vectors_.set_pending(pending);
  return "";
}

std::int64_t Card::poll_wire(std::int64_t clock) { return hca_wire_poll(hca_, clock); }

// ---- regions ----

std::uint64_t Card::region_size(unsigned region) {
  switch (region) {
    case VFIO_PCI_BAR0_REGION_INDEX:
      return ConfigSpace::kRegisterBytes;
    case VFIO_PCI_BAR2_REGION_INDEX:
      return ConfigSpace::kMsixBytes;
    case VFIO_PCI_CONFIG_REGION_INDEX:
      return ConfigSpace::kBytes;
    default:
      return 0;
  }
}

int Card::read(unsigned region, std::uint64_t offset, std::uint8_t* bytes, std::uint32_t len) {
  const std::uint64_t size = region_size(region);
  if (offset > size || len > size - offset) return EINVAL;
  if (len == 0) return 0;
  std::memset(bytes, 0xff, len);
  if (removed_) return 0;
  if (region == VFIO_PCI_BAR0_REGION_INDEX)
    registers_read(offset, bytes, len);
  else if (region == VFIO_PCI_CONFIG_REGION_INDEX)
    config_read(static_cast<std::uint32_t>(offset), bytes, len);
  else
    table_read(static_cast<std::uint32_t>(offset), bytes, len);
  return 0;
}

int Card::write(unsigned region, std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t len) {
  const std::uint64_t size = region_size(region);
  if (offset > size || len > size - offset) return EINVAL;
  if (removed_ || len == 0) return 0;
  if (region == VFIO_PCI_BAR0_REGION_INDEX)
    registers_write(offset, bytes, len);
  else if (region == VFIO_PCI_CONFIG_REGION_INDEX)
    config_write(static_cast<std::uint32_t>(offset), bytes, len);
  else if (len == 4 || len == 8)
    config_.table_write(offset, bytes, len);
  return 0;
}

void Card::registers_read(std::uint64_t offset, std::uint8_t* bytes, std::uint32_t len) {
  while (len != 0) {
    const std::uint32_t piece = is_access(len) ? len : piece_at(offset, len, 8);
    const std::uint64_t value = hca_mmio_read(hca_, offset, piece);
    std::memcpy(bytes, &value, piece);
    offset += piece;
    bytes += piece;
    len -= piece;
  }
}

void Card::registers_write(std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t len) {
  constexpr std::uint32_t kBurst = 256;
  while (len != 0) {
    std::uint32_t piece = 0;
    if (len > 8 && offset % 8 == 0) {
      piece = std::min(len / 8 * 8, kBurst);
      hca_mmio_write_burst(hca_, offset, bytes, piece);
    } else {
      piece = is_access(len) ? len : piece_at(offset, len, 8);
      std::uint64_t value = 0;
      std::memcpy(&value, bytes, piece);
      hca_mmio_write(hca_, offset, value, piece);
    }
    offset += piece;
    bytes += piece;
    len -= piece;
  }
}

void Card::config_read(std::uint32_t offset, std::uint8_t* bytes, std::uint32_t len) {
  while (len != 0) {
    const std::uint32_t piece = piece_at(offset, len, 4);
    const std::uint32_t value =
        ConfigSpace::is_gateway(offset)
            ? hca_vsc_read(hca_, (offset & ~3u) - ConfigSpace::kVendor) >> (8 * (offset % 4))
            : config_.read(offset, piece);
    std::memcpy(bytes, &value, piece);
    offset += piece;
    bytes += piece;
    len -= piece;
  }
}

// Of the gateway, whole dwords, and parts of the control register (iPXE writes the half with the space).
void Card::config_write(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t len) {
  while (len != 0) {
    const std::uint32_t piece = piece_at(offset, len, 4);
    std::uint32_t value = 0;
    std::memcpy(&value, bytes, piece);
    if (ConfigSpace::is_gateway(offset)) {
      const std::uint32_t at = (offset & ~3u) - ConfigSpace::kVendor, shift = 8 * (offset % 4);
      if (piece == 4) {
        hca_vsc_write(hca_, at, value);
      } else if (at == kGatewayControl) {
        const std::uint32_t mask = ((1u << 8 * piece) - 1) << shift;
        hca_vsc_write(hca_, at, (hca_vsc_read(hca_, at) & ~mask) | (value << shift & mask));
      }
    } else if (config_.write(offset, value, piece)) {
      function_reset();
    }
    offset += piece;
    bytes += piece;
    len -= piece;
  }
}

void Card::table_read(std::uint32_t offset, std::uint8_t* bytes, std::uint32_t len) {
  const std::uint64_t pending = vectors_.pending();
  for (; len != 0; --len, ++offset, ++bytes) {
    if (offset >= ConfigSpace::kPendingBits && offset < ConfigSpace::kPendingBits + sizeof pending) {
      *bytes = static_cast<std::uint8_t>(pending >> (8 * (offset - ConfigSpace::kPendingBits)));
    } else {
      std::uint8_t word[4];
      config_.table_read(offset & ~3u, word, sizeof word);
      *bytes = word[offset % 4];
    }
  }
}

}  // namespace hcasim::vfio_user
