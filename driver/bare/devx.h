// SPDX-License-Identifier: BSD-3-Clause
// User contexts and UMEMs of the bare driver.
#ifndef HCASIM_DRIVER_BARE_DEVX_H
#define HCASIM_DRIVER_BARE_DEVX_H

#include "driver/bare/device.h"

namespace hcasim::bare {

// A user context. During the lifetime of a Uctx::As the device's commands carry its uid.
class Uctx {
 public:
  explicit Uctx(Device& device, std::uint32_t cap = 0);
  ~Uctx();
  Uctx(const Uctx&) = delete;
  Uctx& operator=(const Uctx&) = delete;
  std::uint16_t uid() const { return uid_; }
  CommandResult destroy();

  class As {
   public:
    As(Device& device, const Uctx& uctx) : As(device, uctx.uid()) {}
    As(Device& device, std::uint16_t uid) : device_(device), before_(device.acting_uid()) {
      device.act_for(uid);
    }
    ~As() { device_.act_for(before_); }
    As(const As&) = delete;
    As& operator=(const As&) = delete;

   private:
    Device& device_;
    std::uint16_t before_;
  };

 private:
  Device& device_;
  std::uint16_t uid_ = 0;
  std::uint64_t epoch_;
  bool live_ = false;
};

struct UmemSpec {
  std::vector<std::uint64_t> pages;  // bus addresses
  unsigned log_page = 12;            // bytes, log2
  std::uint32_t page_offset = 0;     // bytes
  bool writable = true;
};
Mailbox create_umem_mailbox(const UmemSpec& spec);

class Umem {
 public:
  Umem(Device& device, const UmemSpec& spec);
  ~Umem();
  Umem(const Umem&) = delete;
  Umem& operator=(const Umem&) = delete;
  static UmemSpec of(const Buffer& buffer) { return {buffer.page_list(12)}; }
  std::uint32_t id() const { return id_; }
  CommandResult destroy();

 private:
  Device& device_;
  std::uint32_t id_ = 0;
  std::uint64_t epoch_;
  bool live_ = false;
};

// UMEMs instead of a queue's page list and its doorbell record's address.
class QueueUmems {
 public:
  QueueUmems(Device& device, const Ring& ring, const Dbr& dbr);
  std::uint32_t ring_id() const { return ring_.id(); }
  std::uint64_t ring_offset() const { return ring_offset_; }
  std::uint32_t dbr_id() const { return dbr_.id(); }
  std::uint64_t dbr_offset() const { return dbr_offset_; }

 private:
  Umem ring_, dbr_;
  std::uint64_t ring_offset_, dbr_offset_;
};

}  // namespace hcasim::bare
#endif
