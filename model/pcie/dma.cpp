// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/dma.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "model/simulation_context.h"
#include "model/state/state.h"

namespace hcasim {

using traces::Point;

namespace {
constexpr std::size_t kFirstRing = 64;
constexpr std::uint32_t kMsixBytes = 4;
constexpr std::uint64_t kBurst = 4;  // posted writes in the queue

// What does not report anything. It follows its like without waiting for the host.
bool is_payload(WriteOwner owner) { return owner.kind == WriteOwner::kQp || owner.kind == WriteOwner::kRq; }
bool overlap(std::uint64_t a, std::uint64_t b, std::uint32_t len) { return a - b < len || b - a < len; }
}  // namespace

Dma::Dma(const sc_core::sc_module_name& name, const Profile& profile, const PerFunction<HostPort>& hosts,
         traces::Tracer& tracer, FaultSink& faults)
    : sc_module(name),
      profile_(profile),
      tracer_(tracer),
      faults_(faults),
      cycle_(profile.cycle),
      ps_per_byte_(profile.pcie.ps_per_byte()),
      buffer_time_(bytes_time(profile.pcie.write_buffer)),
      part_(cost_of_write(0, profile.engine.stream_bytes)),
      shortest_up_(bytes_time(std::min(profile.pcie.tlp_read_overhead, profile.pcie.tlp_write_overhead))),
      shortest_down_(
          bytes_time(std::min(profile.pcie.tlp_completion_overhead, profile.pcie.tlp_write_overhead))),
      tags_(profile.pcie.tags, 0),
      memory_(profile, hosts.size()),
      posted_(profile.pcie.posted_headers, profile.pcie.posted_data, profile.pcie.credit),
      nonposted_(profile.pcie.nonposted_headers, 0, profile.pcie.credit),
      ring_(kFirstRing) {
  sides_.reserve(hosts.size());
  hosts.for_each([this](HostPort& host) { sides_.emplace_back(host); });
}

Time Dma::write_local(Time t, std::uint64_t addr, const void* src, std::size_t len, WriteOwner owner,
                      Space space) {
  LocalMemory* memory = sides_[owner.function].local[static_cast<unsigned>(space)];
  if (!memory || !memory->write(addr, src, len)) {
    refused(t, owner, addr, len, true);
    if (owner.kind != WriteOwner::kNone) refusals_.push_back(owner);
    if (!draining_) arm(sim_now());
  }
  return t + local_time(len);
}

void Dma::prefetch() const {
  prefetch_block();
  for (const Occupancy* o : {&up_, &down_, &writes_, &requests_}) o->prefetch();
  prefetch_line(&next_tag_);
  // NOLINTNEXTLINE(bugprone-sizeof-container): the object itself, not what it holds
  prefetch_range(&unused_, sizeof unused_);
  prefetch_range(&head_, sizeof head_ + sizeof tail_ + sizeof armed_);
  prefetch_line(&bytes_written_);
}

void Dma::prefetch_targets() const {
  prefetch_line(&tags_[next_tag_]);
  if (!ring_.empty()) prefetch_line(&ring_[tail_ & (ring_.size() - 1)]);
  // The payload and the CQE of a WQE.
  for (std::size_t i = 0; i < 2 && i < unused_.size(); ++i)
    prefetch_range(unused_[unused_.size() - 1 - i], offsetof(Entry, bytes) + kInline / 2);
}

// What a write takes of the link.
Dma::WriteCost Dma::cost_of_write(std::uint64_t addr, std::uint32_t len) const {
  const Profile::Pcie& pcie = profile_.pcie;
  const std::size_t tlps = pieces(addr, len, pcie.max_payload);
  return {static_cast<Time>(tlps) * pcie.tlp_write,
          bytes_time(static_cast<double>(len + tlps * pcie.tlp_write_overhead))};
}

// When the link has taken a write that may leave at this time. late: that time may be over, and others have
// taken their parts of the link since: its TLPs get what was left between.
inline Time Dma::write_time(Time leaves, const WriteCost& cost, bool late) {
  if (cost.making != 0) leaves = writes_.reserve(leaves, cost.making);
  return late ? up_.fill(leaves, cost.wire, shortest_up_)
              : up_.reserve(leaves, cost.wire, shortest_up_) + cost.wire;
}

// The same of a write whose bytes have come up to then for so long: most of them have left before, as far as
// the link had room.
inline Time Dma::streamed_time(Time leaves, Time streamed, const WriteCost& cost, bool behind) {
  if (streamed == 0)
    return behind ? up_.append(leaves, cost.wire, shortest_up_) : write_time(leaves, cost, true);
  const Time end = behind ? up_.append(leaves - streamed, cost.wire, shortest_up_)
                          : write_time(leaves - streamed, cost, true);
  return std::max(end, leaves + part_.making + part_.wire);
}

// The same, where each TLP waits for its credits.
Time Dma::credited_time(Time leaves, Time streamed, std::uint64_t addr, std::uint32_t len) {
  const std::uint32_t unit = profile_.pcie.max_payload;
  Time end = leaves;
  for (std::uint32_t done = 0, n = 0; done < len; done += n) {
    n = std::min(len - done, unit - static_cast<std::uint32_t>((addr + done) & (unit - 1)));
    // Of what comes by and by, its share is there.
    const Time there = leaves - streamed + streamed * static_cast<Time>(done + n) / len;
    end = write_time(posted_.take(there, n), cost_of_write(addr + done, n), true);
    posted_.left(end, n);
  }
  return streamed == 0 ? end : std::max(end, leaves + part_.making + part_.wire);
}

inline Dma::Entry& Dma::new_entry(std::uint64_t addr, std::uint32_t len, Kind kind, WriteOwner owner) {
  Entry& e = unused_entry();
  e.addr = addr;
  e.len = len;
  e.owner = owner;
  e.kind = kind;
  return e;
}

void Dma::grow() {
  std::vector<Place> larger(ring_.size() * 2);
  for (std::uint64_t i = head_; i != tail_; ++i)
    larger[i & (larger.size() - 1)] = ring_[i & (ring_.size() - 1)];
  ring_.swap(larger);
}

// Whether a write of `owner` must not become visible before one of `before` in front of it. A queue's writes
// keep their order; what names nobody (commands, events of no queue) stays behind everything of its function.
bool Dma::ordered(WriteOwner before, WriteOwner owner, WriteOwner behind) {
  if (before == owner) return true;
  if (behind.kind != WriteOwner::kNone) return before == behind;
  return !is_payload(owner) && before.function == owner.function;
}

// When a write is visible whose last byte has left by then.
inline Time Dma::written_at(Time left, std::uint64_t addr, std::uint32_t len, FunctionId f) {
  const Time longer = memory_.modelled() ? memory_.write(left, f, addr, len) : 0;
  return whole_cycle(left + profile_.pcie.write_latency + longer);
}

// When the link has taken all of a write that is ready at t, and has come in since `streamed` before.
inline Time Dma::left_at(Time t, Time streamed, std::uint64_t addr, std::uint32_t len) {
  if (posted_.modelled()) return credited_time(t, streamed, addr, len);
  const WriteCost cost = cost_of_write(addr, len);
  return streamed == 0 ? write_time(t, cost, false) : streamed_time(t, streamed, cost, false);
}

// Gives a filled-in entry, ready to leave at t, its due time and its place. Returns when it is due.
Time Dma::push(Time t, Entry& e, bool group, WriteOwner behind, Time streamed) {
  const std::uint64_t addr = e.kind == Kind::kMsix ? 0 : e.addr;
  const Time left = left_at(t, streamed, addr, e.len);
  Time due = e.kind == Kind::kMsix ? whole_cycle(left + profile_.pcie.write_latency)
                                   : written_at(left, addr, e.len, e.owner.function);
  if (__builtin_expect(hold_ != 0, 0)) {
    due += hold_;
    hold_ = 0;
  }
  if (gate_.open(FaultType::kDma) && e.kind != Kind::kMsix) due += slowed(t, true, e.addr, e.len, e.owner);
  if (tracer_.detail())
    traces::trace(tracer_, Point::kDmaWrite, t, {e.owner.function, e.len}, traced(e.owner), e.addr, due - t);
  return placed(due, e, group, behind);
}

// Puts an entry that is due at this time before those that are due later and are none of its concern. Sees to
// it that it is performed. Returns when it is due there.
Time Dma::placed(Time due, Entry& e, bool group, WriteOwner behind) {
  if (tail_ - head_ == ring_.size()) grow();
  const std::size_t mask = ring_.size() - 1;
  const WriteOwner owner = e.owner;
  std::uint64_t at = tail_++;
  while (at != head_) {
    const Place& before = ring_[(at - 1) & mask];
    if (before.due <= due) break;
    if (ordered(before.owner, owner, behind)) {
      due = before.due;
      break;
    }
    ring_[at & mask] = before;
    --at;
  }
  Place& place = ring_[at & mask];  // field by field: see TimedQueue::Entry
  place.due = due;
  place.owner = owner;
  place.entry = &e;
  place.group = group;
  if (!draining_) arm(group ? due + kGroupLimit : due);
  return due;
}

// len: kInline at most.
inline Time Dma::post_inline(Time t, std::uint64_t addr, const void* src, std::uint32_t len, WriteOwner owner,
                             bool group, WriteOwner behind) {
  Entry& e = new_entry(addr, len, Kind::kInlineBytes, owner);
  std::memcpy(e.bytes, src, len);
  return push(t, e, group, behind);
}

Time Dma::post_write(Time t, std::uint64_t addr, const void* src, std::uint32_t len, WriteOwner owner,
                     bool group, Space space, WriteOwner behind) {
  if (len == 0) return t;
  if (space != Space::kHost) return write_local(t, addr, src, len, owner, space);
  if (!enabled(owner.function)) {
    refused(t, owner, addr, len, true);
    return t;
  }
  if (len <= kInline) return post_inline(t, addr, src, len, owner, group, behind);
  Time last = t;
  const auto* bytes = static_cast<const std::uint8_t*>(src);
  for (std::uint32_t done = 0; done < len;) {
    const std::uint32_t piece = std::min(len - done, kMaxPayload);
    PacketRef buffer = PacketPool::make();
    buffer->payload_len = piece;
    std::memcpy(buffer->data(), bytes + done, piece);
    last = post_write(t, addr + done, buffer, 0, piece, owner, group || done + piece < len);
    done += piece;
  }
  return last;
}

Time Dma::post_write_later(Time t, Time later, std::uint64_t addr, const void* src, std::uint32_t len,
                           WriteOwner owner, Space space) {
  if (space == Space::kHost && enabled(owner.function)) {
    hold_ += later;
    return post_write(t, addr, src, len, owner, false, space);
  }
  return post_write(t + later, addr, src, len, owner, false, space);
}

Time Dma::post_write(Time t, std::uint64_t addr, const PacketRef& packet, std::uint32_t offset,
                     std::uint32_t len, WriteOwner owner, bool group, Space space, const Inflow& inflow) {
  if (len == 0) return t;
  if (space == Space::kHost && !enabled(owner.function)) {
    refused(t, owner, addr, len, true);
    return t;
  }
  const std::uint32_t room = packet->room();
  if (offset > room || len > room - offset) {
    faults_.model_fault(name(), "posted write beyond the packet");
    return t;
  }
  const Packet& p = *packet;
  if (space != Space::kHost) return write_local(t, addr, p.data() + offset, len, owner, space);
  if (len <= kInline) return post_inline(t, addr, p.data() + offset, len, owner, group, {});
  Entry& e = new_entry(addr, len, Kind::kPacket, owner);
  e.packet = packet;
  e.offset = offset;
  if (packet->borrowed()) packet->landing = this;
  const Time streamed = inflow.streamed;
  if (packet->packets == 1) return push(t, e, group, {}, streamed);
  // Packets behind each other cost the same, but for those that are cut, where units and TLPs are aligned
  // alike.
  const std::uint32_t unit = packet->unit;
  const bool alike = unit % profile_.pcie.max_payload == 0;
  const WriteCost full = alike ? cost_of_write(addr + unit - offset % unit, unit) : WriteCost{};
  const Time* ready = &packet->at[offset / unit];
  Time due = t;
  const bool behind =
      profile_.pcie.tlp_write == 0 && up_.fills_behind(std::max(t, *ready + inflow.after) - streamed);
  for (std::uint32_t done = 0, n = unit - offset % unit; done < len; done += n, n = unit) {
    n = std::min(n, len - done);
    const Time leaves = std::max(t, *ready++ + inflow.after);
    const WriteCost cost = alike && n == unit ? full : cost_of_write(addr + done, n);
    const Time left = posted_.modelled() ? credited_time(leaves, streamed, addr + done, n)
                                         : streamed_time(leaves, streamed, cost, behind);
    due = std::max(due, left);
  }
  return placed(written_at(due, addr, len, owner.function), e, group, {});
}

void Dma::post_messages(const PacketRef& packet, WriteOwner owner, std::uint32_t missed) {
  Packet& p = *packet;
  const std::uint32_t unit = p.unit;
  Time due = 0;
  for (unsigned i = 0; i < p.packets; ++i) {
    const std::uint64_t addr = p.message[i].va;
    const Time streamed = (missed >> i & 1) != 0 ? 0 : p.streamed;
    const Time left = left_at(p.at[i], streamed, addr, unit);
    p.at[i] = due = std::max(due, written_at(left, addr, unit, owner.function));
  }
  Entry& e = new_entry(p.message[0].va, p.payload_len, Kind::kMessages, owner);
  e.packet = packet;
  p.at[p.packets - 1] = placed(due, e, false, {});
}

Time Dma::post_msix(Time t, FunctionId f, unsigned vector, WriteOwner behind) {
  if (!enabled(f)) return t;
  return push(t, new_entry(vector, kMsixBytes, Kind::kMsix, WriteOwner(f)), false, behind);
}

// The host has taken a write, or has not.
inline void Dma::performed(bool ok, std::uint64_t addr, std::uint32_t len, WriteOwner owner) {
  if (ok) {
    bytes_written_ += len;
    if (WrittenPages* pages = sides_[owner.function].pages.get(); pages && len != 0)
      pages->written(addr, len);
  } else {
    refused(sim_now(), owner, addr, len, true);
    if (owner.kind != WriteOwner::kNone) refusals_.push_back(owner);
  }
}

// A fault keeps a write from the host.
inline bool Dma::struck(std::uint64_t addr, std::uint32_t len, WriteOwner owner) {
  if (!gate_.open(FaultType::kDma) || !refuse_by_fault(sim_now(), true, addr, len, owner)) return false;
  if (owner.kind != WriteOwner::kNone) refusals_.push_back(owner);
  return true;
}

void Dma::perform_front() {
  // The host may come back with work of its own: the entry is out of the queue by then, but not free.
  Entry& e = *ring_[head_ & (ring_.size() - 1)].entry;
  const std::uint64_t addr = e.addr;
  const std::uint32_t len = e.len;
  const WriteOwner owner = e.owner;
  HostPort& host = *sides_[owner.function].host;
  ++head_;
  bool ok = true;
  if (e.kind != Kind::kMsix && e.kind != Kind::kMessages && struck(addr, len, owner)) {
    e.packet = PacketRef();
    unused_.push_back(&e);
    return;
  }
  switch (e.kind) {
    case Kind::kMsix:
      unused_.push_back(&e);
      loans_.settle_released();
      simulation().copies.make();
      host.msix(static_cast<unsigned>(addr));
      return;
    case Kind::kInlineBytes:
      loans_.settle_released();
      simulation().copies.make();
      ok = host.dma_write(addr, e.bytes, len);
      unused_.push_back(&e);
      break;
    case Kind::kMessages: {
      const PacketRef packet = std::move(e.packet);
      unused_.push_back(&e);
      loans_.settle_released();
      simulation().copies.make();
      return write_messages(*packet, owner);
    }
    case Kind::kPacket: {
      const PacketRef packet = std::move(e.packet);
      const std::uint32_t offset = e.offset;
      unused_.push_back(&e);
      if (packet->borrowed()) {
        const Packet& p = *packet;
        if (std::uint8_t* to = host.dma_map(addr, len, true)) {
          simulation().copies.add(to, p.data() + offset, len);
          if (!Agenda::running()) simulation().copies.make();
          break;
        }
        if (overlap(p.borrowed_from() + offset, addr, len)) packet->own();
      } else {
        loans_.settle_released();
      }
      simulation().copies.make();
      const Packet& p = *packet;
      ok = host.dma_write(addr, p.data() + offset, len);
      break;
    }
  }
  performed(ok, addr, len, owner);
}

// What comes next for this host is not made before the last access is over.
inline void Dma::took(HostSide& side) {
  if (const Time took = side.host->took(); took != 0)
    side.host_free = std::max(side.host_free, sim_now() + took);
}

void Dma::write_messages(const Packet& p, WriteOwner owner) {
  HostSide& side = sides_[owner.function];
  HostPort& host = *side.host;
  const std::uint8_t* from = p.data();
  // The host may take its time for each of them, or reset the function from inside one.
  for (unsigned i = 0; i < p.packets && side.enabled; ++i, from += p.unit) {
    const std::uint64_t addr = p.message[i].va;
    if (struck(addr, p.unit, owner)) continue;
    performed(host.dma_write(addr, from, p.unit), addr, p.unit, owner);
    took(side);
  }
}

void Dma::arm(Time due) {
  if (due >= armed_) return;
  armed_ = due;
  at(due);
}

// Waits for the end of the front group, or, while that has not been posted, for the group's limit.
void Dma::rearm() {
  if (head_ == tail_) return;
  const std::size_t mask = ring_.size() - 1;
  while (front_free() > ring_[head_ & mask].due && hold_front_back()) {
  }
  std::uint64_t end = head_;
  while (end != tail_ && ring_[end & mask].group) ++end;
  const Time due = end == tail_ ? ring_[head_ & mask].due + kGroupLimit : ring_[end & mask].due;
  arm(std::max(due, front_free()));
}

// Payload follows payload without waiting for it; what reports it (CQE, EQE, MSI-X) stays behind until the
// host has done with it.
Time Dma::front_free() const {
  const WriteOwner& owner = ring_[head_ & (ring_.size() - 1)].owner;
  const Time free = sides_[owner.function].host_free;
  if (free == 0) return 0;
  return is_payload(owner) ? 0 : free;
}

// Performs the writes up to `end`; false: one of them has to wait for the host.
bool Dma::perform(std::uint64_t end, Time limit) {
  while (head_ < end) {
    if (front_free() > limit) return false;
    HostSide& side = sides_[ring_[head_ & (ring_.size() - 1)].owner.function];
    perform_front();
    took(side);
  }
  return true;
}

// The front waits for its host, and all of its function behind it; the writes of other functions do not.
// False: there is no other function.
bool Dma::hold_front_back() {
  if (sides_.size() == 1) return false;
  const std::size_t mask = ring_.size() - 1;
  const FunctionId f = ring_[head_ & mask].owner.function;
  const Time until = front_free();
  aside_.clear();
  for (std::uint64_t i = head_; i != tail_; ++i) {
    aside_.push_back(ring_[i & mask]);
    if (aside_.back().owner.function == f) aside_.back().due = std::max(aside_.back().due, until);
  }
  std::stable_sort(aside_.begin(), aside_.end(),
                   [](const Place& a, const Place& b) { return a.due < b.due; });
  for (std::size_t i = 0; i < aside_.size(); ++i) ring_[(head_ + i) & mask] = aside_[i];
  return true;
}

void Dma::turn() {
  armed_ = kNever;
  draining_ = true;
  // Only a burst is written ahead of its time: a lone operation's result is seen exactly when it is due.
  const Time limit = sim_now() + (tail_ - head_ >= kBurst ? profile_.engine.batch_window : 0);
  try {
    while (head_ != tail_) {
      const std::size_t mask = ring_.size() - 1;
      std::uint64_t end = head_;
      while (end != tail_ && ring_[end & mask].group) ++end;
      if (end == tail_) {
        if (ring_[head_ & mask].due + kGroupLimit > limit) break;
      } else if (ring_[end & mask].due > limit) {
        break;
      } else {
        ++end;
      }
      if (!perform(end, limit) && !hold_front_back()) break;
    }
    if (!refusals_.empty()) report_refusals();
  } catch (const std::exception& ex) {
    faults_.model_fault(name(), ex.what());
  } catch (...) {
    faults_.model_fault(name(), "unknown exception");
  }
  draining_ = false;
  rearm();
}

// Moves these writes, in their order, in front of the others. Returns how many they are.
template <class Which>
std::uint64_t Dma::bring_forward(Which which) {
  const std::size_t mask = ring_.size() - 1;
  std::uint64_t end = tail_;
  while (end != head_ && !which(ring_[(end - 1) & mask].owner)) --end;
  if (end == head_) return 0;
  const Time first = ring_[head_ & mask].due;  // the ring stays in the order of due times
  aside_.clear();
  std::uint64_t to = head_;
  for (std::uint64_t i = head_; i != end; ++i) {
    const Place place = ring_[i & mask];
    if (!which(place.owner)) {
      aside_.push_back(place);
      continue;
    }
    ring_[to & mask] = place;
    ring_[to++ & mask].due = first;
  }
  const std::uint64_t n = to - head_;
  for (const Place& place : aside_) ring_[to++ & mask] = place;
  return n;
}

// Performs these writes now, in their order.
template <class Which>
void Dma::perform_all(Which which) {
  // The host may come back with work of its own, and that post more.
  while (const std::uint64_t n = bring_forward(which)) {
    const std::uint64_t end = head_ + n;
    while (head_ < end && which(ring_[head_ & (ring_.size() - 1)].owner)) perform_front();
  }
  if (!refusals_.empty() && !draining_) arm(sim_now());
}

void Dma::flush(FunctionId f) {
  perform_all([=](WriteOwner owner) { return owner.function == f; });
}

// A read pushes what was written before it (PCIe, transaction ordering): its payload has to be there when the
// read is made, which is ahead of its time. What reports it comes when it is due.
void Dma::push_payload(FunctionId f) {
  perform_all([=](WriteOwner owner) { return owner.function == f && is_payload(owner); });
}

// Forgets so many writes at the front.
void Dma::drop(std::uint64_t n) {
  for (; n != 0; --n, ++head_) {
    Entry* e = ring_[head_ & (ring_.size() - 1)].entry;
    e->packet = PacketRef();
    unused_.push_back(e);
  }
}

void Dma::reset(FunctionId f) {
  set_enabled(f, false);
  drop(bring_forward([=](WriteOwner owner) { return owner.function == f; }));
  memory_.forget(f);
  sides_[f].host_free = 0;
  refusals_.erase(std::remove_if(refusals_.begin(), refusals_.end(),
                                 [f](const WriteOwner& owner) { return owner.function == f; }),
                  refusals_.end());
}

void Dma::reset() {
  loans_.settle_all();
  drop(tail_ - head_);
  reset_state(*this);
  armed_ = kNever;
  cancel();
}

}  // namespace hcasim
