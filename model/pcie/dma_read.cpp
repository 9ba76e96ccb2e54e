// SPDX-License-Identifier: BSD-3-Clause
// The DMA engine's reads, and what shares their direction of the link.
#include <algorithm>
#include <cstring>

#include "model/pcie/dma.h"
#include "model/simulation_context.h"

namespace hcasim {

using traces::Point;

namespace {
constexpr std::uint32_t kWorthBorrowing = 512;  // bytes

// As std::fill_n(), but a cache line at a time.
inline void fill(Time* to, std::size_t n, Time t) {
  const Time two[] = {t, t};  // one store each
  for (; n >= 8; n -= 8, to += 8) {
    std::memcpy(to, two, sizeof two);
    std::memcpy(to + 2, two, sizeof two);
    std::memcpy(to + 4, two, sizeof two);
    std::memcpy(to + 6, two, sizeof two);
  }
  while (n != 0) to[--n] = t;
}

}  // namespace

ReadDone Dma::read_local(Time t, std::uint64_t addr, void* dst, std::size_t len, Space space, FunctionId f) {
  LocalMemory* memory = sides_[f].local[static_cast<unsigned>(space)];
  const bool ok = memory && memory->read(addr, dst, len);
  if (!ok) refused(t, WriteOwner(f), addr, len, false);
  return {ok, t + local_time(len)};
}

ReadDone Dma::read(Time t, std::uint64_t addr, void* dst, std::size_t len, Space space, WriteOwner owner,
                   What what) {
  if (len == 0) return {true, t};
  if (space != Space::kHost) return read_local(t, addr, dst, len, space, owner.function);
  return read_host(t, addr, dst, len, owner, what);
}

inline ReadDone Dma::read_host(Time t, std::uint64_t addr, void* dst, std::size_t len, WriteOwner owner,
                               What what) {
  const HostSide& side = sides_[owner.function];
  simulation().copies.make();
  const bool faulty = gate_.open(FaultType::kDma) != nullptr;
  if (faulty && refuse_by_fault(t, false, addr, len, owner)) return {false, t + profile_.pcie.read_latency};
  if (!side.enabled || !side.host->dma_read(addr, dst, len)) {
    refused(t, WriteOwner(owner.function), addr, len, false);
    return {false, t + profile_.pcie.read_latency};
  }
  ReadDone done = counted_read(t, addr, len, owner, what);
  done.at += side.host->took();
  if (faulty) done.at += slowed(t, false, addr, len, owner);
  return done;
}

// The time of a read that the host has answered.
inline ReadDone Dma::counted_read(Time t, std::uint64_t addr, std::size_t len, WriteOwner owner, What what) {
  bytes_read_ += len;
  const Asked asked{owner.function, what};
  const Time at = whole_cycle(read_time(t, addr, len, &asked));
  if (tracer_.detail())
    traces::trace(tracer_, Point::kDmaRead, t, {owner.function, static_cast<std::uint32_t>(len)},
                  traced(owner), addr, at - t);
  return {true, at};
}

ReadDone Dma::read_payload(Time t, std::uint64_t addr, Packet& packet, WriteOwner qp) {
  const std::uint32_t len = packet.payload_len;
  const HostSide& side = sides_[qp.function];
  const bool borrow = side.enabled && len >= kWorthBorrowing && !gate_.open(FaultType::kDma);
  const std::uint8_t* bytes = borrow ? side.host->dma_map(addr, len, false) : nullptr;
  if (!bytes)
    return len == 0 ? ReadDone{true, t} : read_host(t, addr, packet.data(), len, qp, What::kPayload);
  loans_.borrow(packet, bytes, addr, qp.function, qp.number);
  ReadDone done = counted_read(t, addr, len, qp, What::kPayload);
  done.at += side.host->took();
  return done;
}

// n tags from `first` on, of `count` that are used in turn, are free again at `ready`. Returns which is next.
inline std::size_t Dma::take_tags(Time* tags, std::size_t count, std::size_t first, std::size_t n,
                                  Time ready) {
  const std::size_t next = first + n;
  if (next < count) {
    fill(tags + first, n, ready);
    return next;
  }
  fill(tags + first, count - first, ready);
  fill(tags, next - count, ready);
  return next - count;
}

bool Dma::read_run(Time t, Time apart, std::uint64_t addr, Packet& packet, WriteOwner qp) {
  const std::uint32_t len = packet.payload_len, unit = packet.unit;
  const HostSide& side = sides_[qp.function];
  const bool borrow = side.enabled && !gate_.open(FaultType::kDma);
  const std::uint8_t* bytes = borrow ? side.host->dma_map(addr, len, false) : nullptr;
  if (!bytes) return false;
  loans_.borrow(packet, bytes, addr, qp.function, qp.number);
  bytes_read_ += len;
  // Packets behind each other cost the same, but for the last one, where units and requests are aligned
  // alike.
  const Profile::Pcie& pcie = profile_.pcie;
  const std::size_t requests = pieces(addr, unit, pcie.max_read_request);
  const bool alike = !memory_.modelled() && !nonposted_.modelled() && unit % pcie.max_read_request == 0 &&
                     unit % pcie.completion_boundary == 0 && requests <= tags_.size();
  unsigned done = 0;
  if (alike) {
    const ReadCost cost = cost_of(requests, addr, unit);
    const unsigned full = len / unit;
    if (read_at_link_rate(t, apart, cost, full, packet.at.data())) {
      done = full;
    } else {
      for (; done < full; ++done)
        packet.at[done] = whole_cycle(read_batch(t + done * apart, cost, 0, 0, nullptr));
    }
  }
  const Asked asked{qp.function, What::kPayload};
  for (; done < packet.packets; ++done) {
    const std::uint32_t from = done * unit, bytes_of_it = std::min(unit, len - from);
    packet.at[done] = whole_cycle(read_time(t + done * apart, addr + from, bytes_of_it, &asked));
  }
  if (const Time took = side.host->took(); took != 0) {
    for (unsigned i = 0; i < packet.packets; ++i) packet.at[i] += took;
  }
  return true;
}

// The same as n times read_batch(), each `apart` behind the one before, where none waits for a tag and the
// data come behind all that was asked for so far; at: when all of each has come. The requests are together a
// little earlier on the link than one by one: the gaps between them are too short to be of use to anybody.
// False: it is not so, and nothing has been done.
bool Dma::read_at_link_rate(Time t, Time apart, const ReadCost& c, unsigned n, Time* at) {
  const Profile::Pcie& pcie = profile_.pcie;
  if (n == 0 || pcie.tlp_read != 0 || n * c.requests > tags_.size()) return false;
  const std::size_t end = tags_.size();
  std::size_t tag = next_tag_;
  for (unsigned i = 0; i < n; ++i) {
    if (tags_[tag] > t + i * apart) return false;
    tag += c.requests;
    if (tag >= end) tag -= end;
  }
  const Time ahead = std::max<Time>(0, pcie.read_latency - c.first) + c.request;
  if (!down_.appends(t + ahead, c.data)) return false;
  Time leaves = up_.reserve(t, n * c.request, shortest_up_);
  Time* const tags = tags_.data();
  tag = next_tag_;
  for (unsigned i = 0; i < n; ++i, leaves += c.request, t += apart) {
    const Time ready = down_.append(std::max(leaves, t) + ahead, c.data, shortest_down_);
    at[i] = whole_cycle(ready);
    tag = take_tags(tags, end, tag, c.requests, ready);
  }
  next_tag_ = tag;
  return true;
}

// What so many requests for so many bytes from addr on take of the link.
inline Dma::ReadCost Dma::cost_of(std::size_t requests, std::uint64_t addr, std::size_t bytes) const {
  const Profile::Pcie& pcie = profile_.pcie;
  // Completions are cut where the completer's read completion boundary allows, each as large as one may be.
  const std::size_t completions =
      (addr % pcie.completion_boundary + bytes + pcie.max_payload - 1) / pcie.max_payload;
  ReadCost c;
  c.requests = requests;
  c.request = bytes_time(static_cast<double>(requests * pcie.tlp_read_overhead));
  c.data = bytes_time(static_cast<double>(bytes + completions * pcie.tlp_completion_overhead));
  c.first = bytes_time(static_cast<double>(std::min<std::size_t>(bytes, 64) + pcie.tlp_completion_overhead));
  return c;
}

// When the last byte has come of requests that may leave at t and all have a tag at once.
Time Dma::read_batch(Time t, const ReadCost& c, std::uint64_t addr, std::size_t bytes, const Asked* asked) {
  const Profile::Pcie& pcie = profile_.pcie;
  // Tags come back out of order: when the next in turn is still out, a near one may be free already.
  std::size_t tag = next_tag_;
  if (tags_[tag] > t && c.requests == 1) {
    for (unsigned i = 1; i < 8; ++i) {
      const std::size_t other = (next_tag_ + i) % tags_.size();
      if (tags_[other] < tags_[tag]) tag = other;
    }
  }
  Time leaves = std::max(t, tags_[tag]);
  if (pcie.tlp_read != 0) leaves = requests_.reserve(leaves, static_cast<Time>(c.requests) * pcie.tlp_read);
  if (nonposted_.modelled()) leaves = nonposted_.take(leaves, 0);
  const Time sent = up_.reserve(leaves, c.request, shortest_up_) + c.request;
  if (nonposted_.modelled()) nonposted_.left(sent, 0);
  Time latency = pcie.read_latency;
  if (asked && memory_.modelled()) latency += memory_.read(sent, asked->function, addr, bytes, asked->what);
  const Time ready = down_.reserve(std::max(sent, sent + latency - c.first), c.data, shortest_down_) + c.data;
  if (c.requests == 1) {
    tags_[tag] = ready;
    if (++next_tag_ == tags_.size()) next_tag_ = 0;
    return ready;
  }
  next_tag_ = take_tags(tags_.data(), tags_.size(), next_tag_, c.requests, ready);
  return ready;
}

// When the last byte of a read has come, whose first request may leave at t.
Time Dma::read_time(Time t, std::uint64_t addr, std::size_t len, const Asked* asked) {
  const Profile::Pcie& pcie = profile_.pcie;
  std::size_t requests = pieces(addr, len, pcie.max_read_request);
  Time ready = t;
  std::size_t done = 0;
  while (requests) {
    // As many requests as there are tags go out together; more wait for the tags of the first to come back.
    // Where each waits for a credit they go one by one.
    const std::size_t batch = nonposted_.modelled() ? 1 : std::min(requests, tags_.size());
    requests -= batch;
    std::size_t bytes = len - done;
    if (requests) bytes = std::min<std::size_t>(bytes, batch * pcie.max_read_request);
    ready = read_batch(t, cost_of(batch, addr + done, bytes), addr + done, bytes, asked);
    done += bytes;
  }
  return ready;
}

Time Dma::store(Time t, unsigned len) {
  const Time lasts = bytes_time(len + profile_.pcie.tlp_write_overhead);
  // The latency of a store that finds the link idle holds this already.
  return down_.reserve(t - lasts, lasts, shortest_down_) + lasts;
}

ReadDone Dma::read_flush(Time t, std::uint64_t addr, void* dst, std::size_t len, Space space,
                         WriteOwner owner, What what) {
  if (space == Space::kHost) push_payload(owner.function);
  return read(t, addr, dst, len, space, owner, what);
}

}  // namespace hcasim
