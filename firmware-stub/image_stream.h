// SPDX-License-Identifier: BSD-3-Clause
// A function's images on their way to another one. Each is sent as an update of the image that was sent
// before it, the first one of nothing; an update in records, as large as the memory that each is lent. What
// an update is like knows who makes it (function_images.h).
//
//   record = "hcaimage", u32 number of the record in its update, u32 flags (RecordFlag), bytes of the update;
//   integers little-endian
#ifndef HCASIM_FIRMWARE_STUB_IMAGE_STREAM_H
#define HCASIM_FIRMWARE_STUB_IMAGE_STREAM_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/state/fields.h"

namespace hcasim::fw {

constexpr std::size_t kMaxImage = 1u << 28;  // bytes, of images and of updates
constexpr std::size_t kRecordHead = 16;      // bytes

class ImageSender {
 public:
  // What the other side has: nothing, or the image that was sent whole last.
  const std::string& base() const { return base_; }
  // Sends `image` by `update`, which makes it of base(). What was left of another update is not sent any
  // more.
  void begin(std::string image, std::string update, bool at_rest);
  bool under_way() const { return !update_.empty(); }
  // The update that is under way, or was sent last, is of a function at rest.
  bool at_rest() const { return at_rest_; }
  // Bytes of a record that has all the rest. 0: nothing is under way.
  std::size_t left() const { return under_way() ? kRecordHead + update_.size() - done_ : 0; }
  // The next record, `room` bytes (more than kRecordHead) at most. It is the same until it was sent().
  std::string record(std::size_t room) const;
  void sent(const std::string& record);
  void forget() { *this = {}; }
  // Says that no image of a function at rest follows.
  static std::string given_up();

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, base_, image_, update_, done_, number_, at_rest_);
    if constexpr (Archive::kLoads) a.check(done_ <= update_.size(), "more of an update was sent than it has");
  }

 private:
  std::string base_, image_, update_;
  std::uint64_t done_ = 0;  // bytes of update_ that were sent
  std::uint32_t number_ = 0;
  bool at_rest_ = false;
};

class ImageReceiver {
 public:
  enum class Got : std::uint8_t { kPart, kUpdate, kWrong };
  // kUpdate: an update is complete. kWrong: it is no record, or not the next one.
  Got take(std::string_view record);
  const std::string& base() const { return base_; }
  const std::string& update() const { return update_; }
  bool at_rest() const { return at_rest_; }
  // The update has made this image.
  void have(std::string image);
  // Records have come, and no image of a function at rest.
  bool incomplete() const { return incomplete_; }
  void forget() { *this = {}; }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, base_, update_, number_, at_rest_, incomplete_);
  }

 private:
  void drop_update();

  std::string base_, update_;
  std::uint32_t number_ = 0;  // of the record that comes next
  bool at_rest_ = false, incomplete_ = false;
};

}  // namespace hcasim::fw
#endif
