// SPDX-License-Identifier: BSD-3-Clause
// An HCA as a PCI function that a vfio-user client shows to its guest: regions and interrupts over the C API,
// the client's memory and a configuration space.
//   region 0   BAR 0: registers      region 2   BAR 2: MSI-X table and pending bits      region 7
//   configuration
// The MSI-X table is the client's: interrupts go to its eventfds, whatever stands in the table here.
#ifndef HCASIM_VFIO_USER_CARD_H
#define HCASIM_VFIO_USER_CARD_H

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "card/api/hca_api.h"
#include "card/pci/config_space.h"
#include "vfio-user/dma_map.h"
#include "vfio-user/interrupts.h"
#include "vfio-user/protocol.h"
#include "vfio-user/timekeeper.h"

namespace hcasim::vfio_user {

class Card {
 public:
  using Log = std::function<void(int level, const std::string& line)>;
  // fd is to be watched for reading and writing, as far as asked for (hca_host_ops::watch_fd).
  using Watch = std::function<void(int fd, bool read, bool write)>;

  // options: of hca_create(). Throws std::runtime_error with what is wrong with them.
  Card(const std::string& name, const std::string& options, Timekeeper& time, Log log, Watch watch);
  ~Card();
  Card(const Card&) = delete;
  Card& operator=(const Card&) = delete;

  const std::string& name() const { return name_; }
  hca_t* handle() { return hca_; }
  Timekeeper& time() { return time_; }
  void log(int level, const std::string& line) { log_(level, line); }

  // ---- the client's requests; 0 or an errno ----
  static std::uint64_t region_size(unsigned region);
  // Out of the region: EINVAL. Registers take 1, 2, 4 and 8 bytes, longer accesses are taken apart.
  int read(unsigned region, std::uint64_t offset, std::uint8_t* bytes, std::uint32_t len);
  int write(unsigned region, std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t len);
  int map(const DmaMapRequest& request, const Descriptor& file);
  int unmap(std::uint64_t address, std::uint64_t size);
  void unmap_all();
  Interrupts& vectors() { return vectors_; }
  // The eventfd by which the client hears of uncorrectable errors.
  void set_error_file(Descriptor file) { error_file_ = std::move(file); }
  // The client resets its machine: a conventional reset.
  void reset();
  // There is a client, or there is none any more: then the function is as after power-on, and nothing of the
  // client's is left.
  void attach() { attached_ = true; }
  void detach();

  // What a saved state has beside the model's: into the next one; as the one that was loaded has it. Empty:
  // taken; else why not, and nothing has changed.
  void keep_for_state();
  std::string take_from_state();

  // Sockets of the card's wire are to be served, now, or when the time that poll_wire() gives has come:
  // ns of CLOCK_MONOTONIC.
  std::int64_t poll_wire(std::int64_t clock);

  // DMA accesses and interrupts that were refused, and why.
  struct Refused {
    std::uint64_t not_master = 0, nothing_there = 0, not_shared = 0, lost = 0;
  };
  const Refused& refused() const { return refused_; }

 private:
  bool may_master() const { return attached_ && !removed_ && config_.bus_master(); }
  int dma(DmaMap::Result result, std::uint64_t address);
  void* find(std::uint64_t address, std::size_t len, bool write);
  void signal(unsigned vector);
  void pcie_error(int what, std::uint32_t bit, const std::string& name);
  void set_removed(bool removed);
  void function_reset();
  void registers_read(std::uint64_t offset, std::uint8_t* bytes, std::uint32_t len);
  void registers_write(std::uint64_t offset, const std::uint8_t* bytes, std::uint32_t len);
  void config_read(std::uint32_t offset, std::uint8_t* bytes, std::uint32_t len);
  void config_write(std::uint32_t offset, const std::uint8_t* bytes, std::uint32_t len);
  void table_read(std::uint32_t offset, std::uint8_t* bytes, std::uint32_t len);
  static hca_host_ops host_ops();

  std::string name_;
  Timekeeper& time_;
  Log log_;
  Watch watch_;
  hca_t* hca_ = nullptr;
  pci::ConfigSpace config_;
  DmaMap memory_;
  Interrupts vectors_{pci::ConfigSpace::kVectors};
  Descriptor error_file_;
  bool attached_ = false, removed_ = false;
  Refused refused_;
};

}  // namespace hcasim::vfio_user
#endif
