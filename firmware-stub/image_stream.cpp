// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/image_stream.h"

#include <algorithm>
#include <utility>

namespace hcasim::fw {

namespace {

constexpr std::string_view kMagic = "hcaimage";

enum RecordFlag : std::uint32_t {
  kLast = 1,     // of its update
  kAtRest = 2,   // the update is of a function at rest, which moves no more
  kGivenUp = 4,  // no such one follows
};

void put(std::string& to, std::uint32_t v) {
  for (unsigned i = 0; i < 4; ++i) to.push_back(static_cast<char>(v >> 8 * i));
}

std::uint32_t get(std::string_view from, std::size_t at) {
  std::uint32_t v = 0;
  for (unsigned i = 0; i < 4; ++i)
    v |= static_cast<std::uint32_t>(static_cast<unsigned char>(from[at + i])) << 8 * i;
  return v;
}

std::string head(std::uint32_t number, std::uint32_t flags) {
  std::string record(kMagic);
  put(record, number);
  put(record, flags);
  return record;
}

}  // namespace

void ImageSender::begin(std::string image, std::string update, bool at_rest) {
  image_ = std::move(image);
  update_ = std::move(update);
  at_rest_ = at_rest;
  done_ = 0;
  number_ = 0;
}

std::string ImageSender::record(std::size_t room) const {
  const std::size_t len = std::min<std::size_t>(update_.size() - done_, room - kRecordHead);
  const bool last = done_ + len == update_.size();
  std::string record = head(number_, (last ? kLast : 0u) | (at_rest_ ? kAtRest : 0u));
  record.append(update_, done_, len);
  return record;
}

void ImageSender::sent(const std::string& record) {
  done_ += record.size() - kRecordHead;
  ++number_;
  if (done_ < update_.size()) return;
  base_ = at_rest_ ? std::string() : std::move(image_);
  image_.clear();
  update_.clear();
  done_ = 0;
}

std::string ImageSender::given_up() { return head(0, kGivenUp); }

ImageReceiver::Got ImageReceiver::take(std::string_view record) {
  if (record.size() < kRecordHead || record.substr(0, kMagic.size()) != kMagic) return Got::kWrong;
  const std::uint32_t number = get(record, kMagic.size()), flags = get(record, kMagic.size() + 4);
  const bool at_rest = (flags & kAtRest) != 0;
  if ((flags & ~std::uint32_t{kLast | kAtRest | kGivenUp}) != 0) return Got::kWrong;
  if (number != 0 && (number != number_ || at_rest != at_rest_)) return Got::kWrong;
  const std::string_view bytes = record.substr(kRecordHead);
  if (number != 0 && bytes.size() > kMaxImage - update_.size()) return Got::kWrong;
  if (number == 0) update_.clear();
  incomplete_ = true;
  if ((flags & kGivenUp) != 0) {
    drop_update();
    return Got::kPart;
  }
  update_ += bytes;
  at_rest_ = at_rest;
  number_ = number + 1;
  return (flags & kLast) != 0 ? Got::kUpdate : Got::kPart;
}

void ImageReceiver::have(std::string image) {
  base_ = std::move(image);
  drop_update();
}

void ImageReceiver::drop_update() {
  update_.clear();
  number_ = 0;
}

}  // namespace hcasim::fw
