// SPDX-License-Identifier: BSD-3-Clause
#include "model/wqe/ring_read.h"

#include <algorithm>

#include "model/pcie/dma.h"
#include "model/profile.h"

namespace hcasim {

namespace {

constexpr std::uint32_t kAhead = 2048;  // bytes

}  // namespace

bool read_ring(Dma& dma, Time t, FunctionId f, const GuestRing& ring, std::uint64_t at, std::uint8_t* dst,
               std::uint32_t len) {
  while (len) {
    std::uint64_t addr, run;
    if (!ring.locate(at, addr, run)) return false;
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(len, run));
    if (!dma.read(t, addr, dst, n, Space::kHost, WriteOwner(f)).ok) return false;
    at += n;
    dst += n;
    len -= n;
  }
  return true;
}

const std::uint8_t* recv_wqe_ahead(const Profile& profile, Dma& dma, Time t, FunctionId f,
                                   const GuestRing& ring, unsigned log_size, unsigned log_stride,
                                   std::uint16_t consumer, std::uint16_t producer, ReadAhead& ahead) {
  const unsigned size = 1u << log_size;
  const std::uint32_t stride = 1u << log_stride;
  if (static_cast<std::uint16_t>(consumer - ahead.first) >= ahead.count) {
    const unsigned index = consumer & (size - 1);
    const unsigned posted = static_cast<std::uint16_t>(producer - consumer);
    const unsigned most = std::max(1u, std::min(profile.engine.rwqe_prefetch, kAhead / stride));
    const unsigned count = std::min({posted, most, size - index});
    ahead.bytes.resize(static_cast<std::size_t>(count) * stride);
    ahead.count = 0;
    if (!read_ring(dma, t, f, ring, static_cast<std::uint64_t>(index) * stride, ahead.bytes.data(),
                   count * stride))
      return nullptr;
    ahead.first = consumer;
    ahead.count = static_cast<std::uint16_t>(count);
  }
  const auto at = static_cast<std::uint16_t>(consumer - ahead.first);
  return ahead.bytes.data() + static_cast<std::size_t>(at) * stride;
}

}  // namespace hcasim
