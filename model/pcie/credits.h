// SPDX-License-Identifier: BSD-3-Clause
// Flow control credits of one kind of TLP (PCIe base specification, 2.6.1) that the other end of the link has
// granted: one a header, one for 16 bytes of data begun. A TLP takes its credits with it when it leaves, and
// they are back, on the average, `returned` later: when the other end has made room and told so (UpdateFC).
#ifndef HCASIM_MODEL_PCIE_CREDITS_H
#define HCASIM_MODEL_PCIE_CREDITS_H

#include <algorithm>
#include <cstdint>
#include <deque>

#include "model/state/fields.h"
#include "model/time.h"

namespace hcasim {

class Credits {
 public:
  static constexpr unsigned kUnit = 16;  // bytes of a data credit

  // 0: as many as are asked for ("infinite").
  Credits(unsigned headers, unsigned data, Time returned)
      : headers_(headers), data_(data), returned_(returned) {}

  // Whether there is anything to wait for.
  bool modelled() const { return headers_ != 0 || data_ != 0; }
  // When a TLP with so many bytes, ready at t, may leave. It takes its credits: left() says when it has left.
  Time take(Time t, std::uint32_t bytes) {
    const std::uint32_t data = data_of(bytes);
    const Time ready = t;
    while (!out_.empty() && (out_.front().back <= ready || short_of(data))) {
      t = std::max(t, out_.front().back);
      data_out_ -= out_.front().data;
      out_.pop_front();
    }
    waits_ += t > ready;
    return t;
  }
  void left(Time t, std::uint32_t bytes) {
    const Time before = out_.empty() ? 0 : out_.back().back;
    out_.push_back({std::max(before, t + returned_), data_of(bytes)});
    data_out_ += out_.back().data;
  }
  // TLPs that have waited.
  std::uint64_t waits() const { return waits_; }

  void clear() {
    out_.clear();
    data_out_ = waits_ = 0;
  }
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets) return clear();
    HCASIM_FIELDS(a, waits_);
    if constexpr (Archive::kLoads) {
      out_.clear();
      data_out_ = 0;
      a.list("out", [&](auto read) {
        a.check(out_.size() < kMostData, "these are more TLPs than have credits");
        read(out_.emplace_back());
        data_out_ += out_.back().data;
      });
    } else if constexpr (Archive::kStores) {
      a.list("out", [&](auto write) {
        for (Out& o : out_) write(o);
      });
    } else {
      for (Out& o : out_) HCASIM_FIELDS(a, o.back, o.data);
    }
  }
  // As many as can be granted: seven and eleven bits, scaled by 16 at most (2.6.1, 3.4.2).
  static constexpr unsigned kMostHeaders = 127 * 16, kMostData = 2047 * 16;

 private:
  struct Out {
    Time back = 0;
    std::uint32_t data = 0;

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, back, data);
    }
  };
  // One that is larger than all that was granted goes when nothing else is out: a link would not train so.
  std::uint32_t data_of(std::uint32_t bytes) const {
    const std::uint32_t data = (bytes + kUnit - 1) / kUnit;
    return data_ != 0 ? std::min<std::uint32_t>(data, data_) : data;
  }
  bool short_of(std::uint32_t data) const {
    return (headers_ != 0 && out_.size() >= headers_) || (data_ != 0 && data_out_ + data > data_);
  }

  const unsigned headers_, data_;
  const Time returned_;
  std::deque<Out> out_;         // in the order in which they come back
  std::uint64_t data_out_ = 0;  // of these
  std::uint64_t waits_ = 0;
};

}  // namespace hcasim
#endif
