// SPDX-License-Identifier: BSD-3-Clause
// UMEM: a piece of user memory that the driver has registered, so that queues can be made in it without a
// page list of their own, by its number and an offset. Whatever lies in it, lies wholly inside.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_UMEM_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_UMEM_H

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "firmware-stub/command.h"
#include "firmware-stub/objects/ref.h"
#include "model/ctx/guest_ring.h"
#include "model/state/fields.h"

namespace hcasim::fw {

enum class ObjType : std::uint8_t;
struct Objects;

constexpr unsigned kLogUmems = 20;

struct UmemObject : Referred {
  std::vector<std::uint64_t> pages;  // bus addresses
  unsigned log_page = 12;            // bytes, log2
  std::uint64_t start = 0;           // bytes from the start of the first page
  bool writable = true;              // all its pages
  std::uint64_t bytes() const { return (std::uint64_t{pages.size()} << log_page) - start; }

  template <class Archive>
  void list_state(Archive& a) {
    Referred::list_state(a);
    HCASIM_FIELDS(a, pages, log_page, start, writable);
    if constexpr (Archive::kLoads)
      a.check(log_page >= 12 && log_page <= 40 && !pages.empty() && start < std::uint64_t{1} << log_page,
              "this is no region of memory");
  }
};

// Which objects use which UMEMs, each for up to two purposes.
class UmemUsers {
 public:
  enum Purpose : std::uint8_t { kBuffer = 0, kDoorbell = 1 };
  // `umem` 0: none. A use of before for the same purpose ends.
  void hold(Objects& objects, ObjType type, std::uint32_t number, Purpose purpose, std::uint32_t umem);
  void release(ObjType type, std::uint32_t number) { uses_.erase(std::make_pair(type, number)); }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, uses_);
  }

 private:
  std::map<std::pair<ObjType, std::uint32_t>, std::array<Ref<UmemObject>, 2>> uses_;
};

// The UMEM parts that a command gives its queue: 0, or the numbers to hold once the queue exists.
struct UmemRefs {
  std::uint32_t buffer = 0, doorbell = 0;
};

// `bytes` bytes at `offset` of the UMEM as a queue's buffer. align: of its first byte, a power of two.
// write: the device writes it.
Syndrome umem_ring(Firmware& fw, const Command& cmd, std::uint32_t umem, std::uint64_t offset,
                   std::uint64_t bytes, std::uint64_t align, bool write, GuestRing& ring);
// Bus address of a doorbell record of `bytes` bytes at `offset`, aligned to its size.
Syndrome umem_doorbell(Firmware& fw, const Command& cmd, std::uint32_t umem, std::uint64_t offset,
                       std::uint64_t bytes, std::uint64_t& address);
// Behind the object's creation.
void hold_umems(Firmware& fw, ObjType type, std::uint32_t number, const UmemRefs& refs);

}  // namespace hcasim::fw
#endif
