// SPDX-License-Identifier: BSD-3-Clause
#include "model/pcie/dma.h"

#include <cstring>
#include <exception>

#include "model/simulation_context.h"
#include "model/state/state.h"

namespace hcasim {

using traces::Point;

namespace {
constexpr std::size_t kFirstRing = 64;
constexpr std::uint32_t kMsixBytes = 4;
constexpr std::uint64_t kBurst = 4;             // posted writes in the queue
constexpr std::uint32_t kWorthBorrowing = 512;  // bytes

// How many pieces [addr, addr + len) falls into when cut at multiples of `unit` (a power of two).
std::size_t pieces(std::uint64_t addr, std::size_t len, unsigned unit) {
  return (static_cast<std::size_t>(addr & (unit - 1)) + len + unit - 1) / unit;
}

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

// Who a transfer works for, as traces have it.
std::uint32_t of(const WriteOwner& owner) {
  return static_cast<std::uint32_t>(owner.kind) << 28 | (owner.number & 0xffffff);
}

bool overlap(std::uint64_t a, std::uint64_t b, std::uint32_t len) { return a - b < len || b - a < len; }
}  // namespace

Dma::Dma(const sc_core::sc_module_name& name, const Profile& profile, HostPort& host, traces::Tracer& tracer,
         FaultSink& faults)
    : sc_module(name),
      profile_(profile),
      host_(host),
      tracer_(tracer),
      faults_(faults),
      cycle_(profile.cycle),
      ps_per_byte_(profile.pcie.ps_per_byte()),
      buffer_time_(bytes_time(profile.pcie.write_buffer)),
      tags_(profile.pcie.tags, 0),
      ring_(kFirstRing) {}

const FaultSpec* Dma::fault_of(Time t, bool write, std::uint64_t addr, std::size_t len, WriteOwner owner,
                               Injector::Actions among) {
  Injector* injector = gate_.open(FaultType::kDma);
  if (!injector || !enabled_) return nullptr;
  return injector->strike(FaultType::kDma, t,
                          {{FaultKey::kDirection, write ? kFaultWrite : kFaultRead},
                           {FaultKey::kOwner, owner.kind},
                           {FaultKey::kNumber, owner.number},
                           {FaultKey::kAddress, addr, addr + len - 1}},
                          owner.number, addr, among);
}

bool Dma::struck(Time t, bool write, std::uint64_t addr, std::size_t len, WriteOwner owner) {
  const FaultSpec* fault =
      write ? fault_of(t, write, addr, len, owner, {FaultAction::kError})
            : fault_of(t, write, addr, len, owner, {FaultAction::kError, FaultAction::kPoisoned});
  if (!fault) return false;
  ++errors_;
  traces::trace(tracer_, Point::kDmaErr, t, owner.number, 0u, addr,
                static_cast<std::uint32_t>(len) | static_cast<std::uint64_t>(write) << 32);
  if (fault->action == FaultAction::kPoisoned) {
    for (const PcieErrorName& e : pcie_errors())
      if (std::strcmp(e.name, "poisoned-tlp") == 0) host_.pcie_error(kFaultUncorrectable, e.bit, e.name);
  }
  return true;
}

Time Dma::slowed(Time t, bool write, std::uint64_t addr, std::size_t len, WriteOwner owner) {
  const FaultSpec* fault = fault_of(t, write, addr, len, owner, {FaultAction::kSlow});
  return fault ? fault->time(FaultKey::kDelay) : 0;
}

ReadDone Dma::read_local(Time t, std::uint64_t addr, void* dst, std::size_t len, Space space) {
  LocalMemory* memory = local_[static_cast<unsigned>(space)];
  const bool ok = memory && memory->read(addr, dst, len);
  if (!ok) refused(t, {}, addr, len, false);
  return {ok, t + local_time(len)};
}

Time Dma::write_local(Time t, std::uint64_t addr, const void* src, std::size_t len, WriteOwner owner,
                      Space space) {
  LocalMemory* memory = local_[static_cast<unsigned>(space)];
  if (!memory || !memory->write(addr, src, len)) {
    refused(t, owner, addr, len, true);
    if (owner.kind != WriteOwner::kNone) refusals_.push_back(owner);
    if (!draining_) arm(sim_now());
  }
  return t + local_time(len);
}

ReadDone Dma::read(Time t, std::uint64_t addr, void* dst, std::size_t len, Space space, WriteOwner owner) {
  if (len == 0) return {true, t};
  if (space != Space::kHost) return read_local(t, addr, dst, len, space);
  simulation().copies.make();
  const bool faulty = gate_.open(FaultType::kDma) != nullptr;
  if (faulty && struck(t, false, addr, len, owner)) return {false, t + profile_.pcie.read_latency};
  if (!enabled_ || !host_.dma_read(addr, dst, len)) {
    refused(t, {}, addr, len, false);
    return {false, t + profile_.pcie.read_latency};
  }
  ReadDone done = counted_read(t, addr, len, owner);
  done.at += host_.took();
  if (faulty) done.at += slowed(t, false, addr, len, owner);
  return done;
}

// The time of a read that the host has answered.
inline ReadDone Dma::counted_read(Time t, std::uint64_t addr, std::size_t len, WriteOwner owner) {
  bytes_read_ += len;
  const Time at = whole_cycle(read_time(t, addr, len));
  if (tracer_.detail())
    traces::trace(tracer_, Point::kDmaRead, t, static_cast<std::uint32_t>(len), of(owner), addr, at - t);
  return {true, at};
}

ReadDone Dma::read_payload(Time t, std::uint64_t addr, Packet& packet, std::uint32_t qpn) {
  const std::uint32_t len = packet.payload_len;
  const bool borrow = enabled_ && len >= kWorthBorrowing && !gate_.open(FaultType::kDma);
  const std::uint8_t* bytes = borrow ? host_.dma_map(addr, len, false) : nullptr;
  const WriteOwner owner{WriteOwner::kQp, qpn};
  if (!bytes) return read(t, addr, packet.data(), len, Space::kHost, owner);
  loans_.borrow(packet, bytes, addr, qpn);
  ReadDone done = counted_read(t, addr, len, owner);
  done.at += host_.took();
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

bool Dma::read_run(Time t, Time apart, std::uint64_t addr, Packet& packet, std::uint32_t qpn) {
  const std::uint32_t len = packet.payload_len, unit = packet.unit;
  const bool borrow = enabled_ && !gate_.open(FaultType::kDma);
  const std::uint8_t* bytes = borrow ? host_.dma_map(addr, len, false) : nullptr;
  if (!bytes) return false;
  loans_.borrow(packet, bytes, addr, qpn);
  bytes_read_ += len;
  // Packets behind each other cost the same, but for the last one, where units and requests are aligned
  // alike.
  const Profile::Pcie& pcie = profile_.pcie;
  const std::size_t requests = pieces(addr, unit, pcie.max_read_request);
  const bool alike =
      unit % pcie.max_read_request == 0 && unit % pcie.completion_boundary == 0 && requests <= tags_.size();
  unsigned done = 0;
  if (alike) {
    const ReadCost cost = cost_of(requests, addr, unit);
    const unsigned full = len / unit;
    if (read_at_link_rate(t, apart, cost, full, packet.at.data())) {
      done = full;
    } else {
      for (; done < full; ++done) packet.at[done] = whole_cycle(read_batch(t + done * apart, cost));
    }
  }
  for (; done < packet.packets; ++done) {
    const std::uint32_t from = done * unit;
    packet.at[done] = whole_cycle(read_time(t + done * apart, addr + from, std::min(unit, len - from)));
  }
  if (const Time took = host_.took(); took != 0) {
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
  Time leaves = up_.reserve(t, n * c.request);
  Time* const tags = tags_.data();
  tag = next_tag_;
  for (unsigned i = 0; i < n; ++i, leaves += c.request, t += apart) {
    const Time ready = down_.append(std::max(leaves, t) + ahead, c.data);
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
Time Dma::read_batch(Time t, const ReadCost& c) {
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
  const Time sent = up_.reserve(leaves, c.request) + c.request;
  const Time ready = down_.reserve(std::max(sent, sent + pcie.read_latency - c.first), c.data) + c.data;
  if (c.requests == 1) {
    tags_[tag] = ready;
    if (++next_tag_ == tags_.size()) next_tag_ = 0;
    return ready;
  }
  next_tag_ = take_tags(tags_.data(), tags_.size(), next_tag_, c.requests, ready);
  return ready;
}

// When the last byte of a read has come, whose first request may leave at t.
Time Dma::read_time(Time t, std::uint64_t addr, std::size_t len) {
  const Profile::Pcie& pcie = profile_.pcie;
  std::size_t requests = pieces(addr, len, pcie.max_read_request);
  Time ready = t;
  std::size_t done = 0;
  while (requests) {
    // As many requests as there are tags go out together; more wait for the tags of the first to come back.
    const std::size_t batch = std::min(requests, tags_.size());
    requests -= batch;
    std::size_t bytes = len - done;
    if (requests) bytes = std::min<std::size_t>(bytes, batch * pcie.max_read_request);
    ready = read_batch(t, cost_of(batch, addr + done, bytes));
    done += bytes;
  }
  return ready;
}

Time Dma::store(Time t, unsigned len) {
  const Time lasts = bytes_time(len + profile_.pcie.tlp_write_overhead);
  // The latency of a store that finds the link idle holds this already.
  return down_.reserve(t - lasts, lasts) + lasts;
}

ReadDone Dma::read_flush(Time t, std::uint64_t addr, void* dst, std::size_t len, Space space,
                         WriteOwner owner) {
  if (space == Space::kHost) flush();
  return read(t, addr, dst, len, space, owner);
}

void Dma::prefetch() const {
  prefetch_block();
  for (const Occupancy* o : {&up_, &down_, &writes_, &requests_}) o->prefetch();
  prefetch_line(&next_tag_);
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
  return late ? up_.fill(leaves, cost.wire) : up_.reserve(leaves, cost.wire) + cost.wire;
}

inline Dma::Entry& Dma::new_entry(std::uint64_t addr, std::uint32_t len, Kind kind, WriteOwner owner) {
  Entry* e;
  if (unused_.empty()) {
    e = &entries_.emplace_back();
  } else {
    e = unused_.back();
    unused_.pop_back();
  }
  e->addr = addr;
  e->len = len;
  e->owner = owner;
  e->kind = kind;
  return *e;
}

void Dma::grow() {
  std::vector<Place> larger(ring_.size() * 2);
  for (std::uint64_t i = head_; i != tail_; ++i)
    larger[i & (larger.size() - 1)] = ring_[i & (ring_.size() - 1)];
  ring_.swap(larger);
}

// Whether a write of `owner` must not become visible before one of `before` in front of it. A queue's writes
// keep their order; what names nobody (commands, events of no queue) stays behind everything.
bool Dma::ordered(WriteOwner before, WriteOwner owner, WriteOwner behind) {
  if (before == owner) return true;
  if (behind.kind != WriteOwner::kNone) return before == behind;
  const bool payload = owner.kind == WriteOwner::kQp || owner.kind == WriteOwner::kRq;
  return !payload;
}

// Gives a filled-in entry, ready to leave at t, its due time and its place. Returns when it is due.
Time Dma::push(Time t, Entry& e, bool group, WriteOwner behind) {
  const std::uint64_t addr = e.kind == Kind::kMsix ? 0 : e.addr;
  Time due = whole_cycle(write_time(t, cost_of_write(addr, e.len), false) + profile_.pcie.write_latency);
  if (__builtin_expect(hold_ != 0, 0)) {
    due += hold_;
    hold_ = 0;
  }
  if (gate_.open(FaultType::kDma) && e.kind != Kind::kMsix) due += slowed(t, true, e.addr, e.len, e.owner);
  if (tracer_.detail()) traces::trace(tracer_, Point::kDmaWrite, t, e.len, of(e.owner), e.addr, due - t);
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
  if (!enabled_) {
    refused(t, owner, addr, len, true);
    return t;
  }
  if (len <= kInline) return post_inline(t, addr, src, len, owner, group, behind);
  Time last = t;
  const auto* bytes = static_cast<const std::uint8_t*>(src);
  for (std::uint32_t done = 0; done < len;) {
    const std::uint32_t piece = std::min(len - done, kMaxPayload);
    PacketRef buffer = PacketPool::make();
    std::memcpy(buffer->data(), bytes + done, piece);
    last = post_write(t, addr + done, buffer, 0, piece, owner, group || done + piece < len);
    done += piece;
  }
  return last;
}

Time Dma::post_write(Time t, std::uint64_t addr, const PacketRef& packet, std::uint32_t offset,
                     std::uint32_t len, WriteOwner owner, bool group, Space space, Time after) {
  if (len == 0) return t;
  if (space == Space::kHost && !enabled_) {
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
  if (packet->packets == 1) return push(t, e, group, {});
  // Packets behind each other cost the same, but for those that are cut, where units and TLPs are aligned
  // alike.
  const std::uint32_t unit = packet->unit;
  const bool alike = unit % profile_.pcie.max_payload == 0;
  const WriteCost full = alike ? cost_of_write(addr + unit - offset % unit, unit) : WriteCost{};
  const Time* ready = &packet->at[offset / unit];
  Time due = t;
  const bool behind = profile_.pcie.tlp_write == 0 && up_.fills_behind(std::max(t, *ready + after));
  for (std::uint32_t done = 0, n = unit - offset % unit; done < len; done += n, n = unit) {
    n = std::min(n, len - done);
    const Time leaves = std::max(t, *ready++ + after);
    const WriteCost cost = alike && n == unit ? full : cost_of_write(addr + done, n);
    due = std::max(due, behind ? up_.append(leaves, cost.wire) : write_time(leaves, cost, true));
  }
  return placed(whole_cycle(due + profile_.pcie.write_latency), e, group, {});
}

Time Dma::post_msix(Time t, unsigned vector, WriteOwner behind) {
  if (!enabled_) return t;
  return push(t, new_entry(vector, kMsixBytes, Kind::kMsix, {}), false, behind);
}

void Dma::perform_front() {
  // The host may come back with work of its own: the entry is out of the queue by then, but not free.
  Entry& e = *ring_[head_ & (ring_.size() - 1)].entry;
  const std::uint64_t addr = e.addr;
  const std::uint32_t len = e.len;
  const WriteOwner owner = e.owner;
  ++head_;
  bool ok = true;
  if (gate_.open(FaultType::kDma) && e.kind != Kind::kMsix && struck(sim_now(), true, addr, len, owner)) {
    e.packet = PacketRef();
    unused_.push_back(&e);
    if (owner.kind != WriteOwner::kNone) refusals_.push_back(owner);
    return;
  }
  switch (e.kind) {
    case Kind::kMsix:
      unused_.push_back(&e);
      loans_.settle_released();
      simulation().copies.make();
      host_.msix(static_cast<unsigned>(addr));
      return;
    case Kind::kInlineBytes:
      loans_.settle_released();
      simulation().copies.make();
      ok = host_.dma_write(addr, e.bytes, len);
      unused_.push_back(&e);
      break;
    case Kind::kPacket: {
      const PacketRef packet = std::move(e.packet);
      const std::uint32_t offset = e.offset;
      unused_.push_back(&e);
      if (packet->borrowed()) {
        const Packet& p = *packet;
        if (std::uint8_t* to = host_.dma_map(addr, len, true)) {
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
      ok = host_.dma_write(addr, p.data() + offset, len);
      break;
    }
  }
  if (ok) {
    bytes_written_ += len;
  } else {
    refused(sim_now(), owner, addr, len, true);
    if (owner.kind != WriteOwner::kNone) refusals_.push_back(owner);
  }
}

void Dma::report_refusals() {
  while (!refusals_.empty()) {
    std::vector<WriteOwner> owners;
    owners.swap(refusals_);
    if (!write_error_) return;
    for (const WriteOwner& owner : owners) write_error_(sim_now(), owner);
  }
}

// Where the host does not take part, no memory of the driver's is missing.
void Dma::tell_refused(Time t, WriteOwner owner, std::uint64_t addr, bool write) {
  using traces::Rule;
  using traces::RuleObject;
  Rule rule = write ? Rule::kDmaPayload : Rule::kDmaRead;
  RuleObject object = RuleObject::kNone;
  switch (owner.kind) {
    case WriteOwner::kNone:
      break;
    case WriteOwner::kQp:
      object = RuleObject::kQp;
      break;
    case WriteOwner::kRq:
      object = RuleObject::kRq;
      break;
    case WriteOwner::kCq:
      rule = Rule::kDmaCqe;
      object = RuleObject::kCq;
      break;
    case WriteOwner::kEq:
      rule = Rule::kDmaEqe;
      object = RuleObject::kEq;
      break;
    case WriteOwner::kFirmware:
      rule = Rule::kDmaAnswer;
      object = RuleObject::kSlot;
      break;
  }
  tracer_.broke_value(rule, t, object, owner.number, addr);
}

void Dma::refused(Time t, WriteOwner owner, std::uint64_t addr, std::size_t len, bool write) {
  ++errors_;
  if (enabled_) tell_refused(t, owner, addr, write);
  traces::trace(tracer_, Point::kDmaErr, t, owner.number, 0u, addr,
                static_cast<std::uint32_t>(len) | static_cast<std::uint64_t>(write) << 32);
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
  std::uint64_t end = head_;
  while (end != tail_ && ring_[end & mask].group) ++end;
  const Time due = end == tail_ ? ring_[head_ & mask].due + kGroupLimit : ring_[end & mask].due;
  arm(std::max(due, front_free()));
}

// Payload follows payload without waiting for it; what tells of it (CQE, EQE, MSI-X) stays behind until the
// host has done with it.
Time Dma::front_free() const {
  if (host_free_ == 0) return 0;
  const WriteOwner& owner = ring_[head_ & (ring_.size() - 1)].owner;
  const bool payload = owner.kind == WriteOwner::kQp || owner.kind == WriteOwner::kRq;
  return payload ? 0 : host_free_;
}

// Performs the writes up to `end`; false: one of them has to wait for the host.
bool Dma::perform(std::uint64_t end, Time limit) {
  while (head_ < end) {
    if (front_free() > limit) return false;
    perform_front();
    if (const Time took = host_.took(); took != 0) host_free_ = std::max(host_free_, sim_now() + took);
  }
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
      if (!perform(end, limit)) break;
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

void Dma::flush() {
  while (head_ != tail_) perform_front();
  if (!refusals_.empty() && !draining_) arm(sim_now());
}

void Dma::reset() {
  loans_.settle_all();
  for (; head_ != tail_; ++head_) {
    Entry* e = ring_[head_ & (ring_.size() - 1)].entry;
    e->packet = PacketRef();
    unused_.push_back(e);
  }
  reset_state(*this);
  armed_ = kNever;
  cancel();
}

}  // namespace hcasim
