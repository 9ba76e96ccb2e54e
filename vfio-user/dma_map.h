// SPDX-License-Identifier: BSD-3-Clause
// The client's memory as the card reaches it: ranges of bus addresses, each a piece of a file that both ends
// have mapped, or (without a file) memory that only the client can reach.
//
// The other end may cut its file while it is mapped here. What is accessed then is lost, not this process:
// the range that faults (SIGBUS) becomes an empty one, and is refused from then on.
#ifndef HCASIM_VFIO_USER_DMA_MAP_H
#define HCASIM_VFIO_USER_DMA_MAP_H

#include <cstddef>
#include <cstdint>
#include <map>

#include "vfio-user/descriptor.h"

namespace hcasim::vfio_user {

class DmaMap {
 public:
  DmaMap();
  ~DmaMap();
  DmaMap(const DmaMap&) = delete;
  DmaMap& operator=(const DmaMap&) = delete;

  // flags: DmaFlags. file: none if it is not to be mapped here. 0, or an errno:
  //   EINVAL  nothing, wraps around, unknown flags, beyond the file's end
  //   EEXIST  overlaps another range
  //   ENOSPC  too many ranges: here, or in the whole process; or too many bytes of files in the latter
  //   what fstat() and mmap() say of the file
  int add(std::uint64_t address, std::uint64_t size, std::uint32_t flags, const Descriptor& file,
          std::uint64_t offset);
  // A range as it was added. 0, or ENOENT.
  int remove(std::uint64_t address, std::uint64_t size);
  void clear();
  std::size_t ranges() const { return ranges_.size(); }

  enum class Access : std::uint8_t { kRead, kWrite };
  enum class Result : std::uint8_t {
    kDone,
    kNothing,    // no range there, or not for this kind of access
    kNotShared,  // there is one, without a file
    kLost,       // its file has been cut
  };
  Result read(std::uint64_t address, void* to, std::size_t len);
  Result write(std::uint64_t address, const void* from, std::size_t len);
  // Where len bytes lie if in one piece; null otherwise. Good until that range is removed.
  std::uint8_t* find(std::uint64_t address, std::size_t len, Access access);

 private:
  struct Range {
    std::uint64_t size = 0;
    std::uint32_t flags = 0;
    std::uint8_t* bytes = nullptr;  // null: not mapped here
    void* mapping = nullptr;        // of whole pages, around it
    std::size_t mapped = 0;
    volatile bool lost = false;
  };
  using Ranges = std::map<std::uint64_t, Range>;

  template <class Copy>
  Result access(std::uint64_t address, std::size_t len, Access kind, Copy copy);
  Range* at(std::uint64_t address, std::uint64_t& from);
  static void unmap(Range& range);
  friend struct BusErrors;

  Ranges ranges_;
};

}  // namespace hcasim::vfio_user
#endif
