// SPDX-License-Identifier: BSD-3-Clause
// The matching list of a tag-matching SRQ (XRQ): tagged buffers in the order in which they were appended, and
// the two counters that keep it in step with the software's own list (rdma-core,
// Documentation/tag_matching.md).
#ifndef HCASIM_MODEL_TM_TAG_LIST_H
#define HCASIM_MODEL_TM_TAG_LIST_H

#include <cstdint>
#include <optional>
#include <vector>

#include "model/state/fields.h"

namespace hcasim {

struct TagEntry {
  std::uint16_t index = 0;  // its place in the list's memory: what CQEs call it by
  std::uint64_t tag = 0, mask = 0;
  // One buffer, or none (len 0).
  std::uint64_t addr = 0;
  std::uint32_t lkey = 0;
  std::uint32_t len = 0;  // bytes
  // Appended while the software had not seen all unexpected messages: one of those may be meant for it, so it
  // takes none before the two are in step.
  bool ready = false;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, index, tag, mask, addr, lkey, len, ready);
  }
};

class TagList {
 public:
  explicit TagList(unsigned log_size = 0) : log_size_(log_size), used_(std::size_t{1} << log_size) {}

  // The entry's index is the one announced with the append before; next: that of the append to come. False:
  // one of the two lies outside of the list, or the place is taken.
  bool append(TagEntry entry, std::uint16_t next);
  bool remove(std::uint16_t index);  // false: it is not there (any more)
  // Takes out the first entry that the tag matches and that is ready.
  std::optional<TagEntry> match(std::uint64_t tag);

  // A message was given to the software.
  void unexpected() { ++hw_phase_; }
  // The software has handled that many.
  void synchronize(std::uint16_t sw_phase);

  unsigned log_size() const { return log_size_; }
  std::size_t size() const { return entries_.size(); }
  std::uint16_t next_index() const { return next_; }
  std::uint16_t hw_phase() const { return hw_phase_; }
  std::uint16_t sw_phase() const { return sw_phase_; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, entries_, used_, next_, hw_phase_, sw_phase_);
    if constexpr (Archive::kLoads) {
      for (log_size_ = 0; log_size_ < 16 && used_.size() >> log_size_ > 1; ++log_size_) {
      }
      a.check(used_.size() == std::size_t{1} << log_size_, "the list's size is no power of two up to 65536");
      for (const TagEntry& entry : entries_)
        a.check(valid(entry.index) && used_[entry.index], "an entry is not in the list");
    }
  }

 private:
  bool valid(std::uint16_t index) const { return index < used_.size(); }
  void erase(std::size_t at);

  unsigned log_size_;
  std::vector<TagEntry> entries_;  // oldest first
  std::vector<bool> used_;
  std::uint16_t next_ = 0;
  std::uint16_t hw_phase_ = 0, sw_phase_ = 0;
};

}  // namespace hcasim
#endif
