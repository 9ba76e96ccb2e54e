// SPDX-License-Identifier: BSD-3-Clause
// The DMA engine: reads with tags, TLP sizes, latency and link occupancy; posted writes in one ordered queue,
// so that payload is visible before its CQE, a CQE before its EQE, an EQE before its MSI-X. The engine and
// the link are the card's. The host behind them, with bus mastering and the memories beside it, is that of
// the function which a transfer works for.
#ifndef HCASIM_MODEL_PCIE_DMA_H
#define HCASIM_MODEL_PCIE_DMA_H

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <systemc>
#include <vector>

#include "model/fault/injector.h"
#include "model/function/id.h"
#include "model/occupancy.h"
#include "model/packet/packet.h"
#include "model/pcie/credits.h"
#include "model/pcie/host_memory.h"
#include "model/pcie/host_port.h"
#include "model/pcie/loans.h"
#include "model/pcie/local_memory.h"
#include "model/pcie/written_pages.h"
#include "model/profile.h"
#include "model/state/fields.h"
#include "model/timed_queue.h"
#include "traces/tracer.h"

namespace hcasim {

struct ReadDone {
  bool ok;
  Time at;  // when the last byte has arrived
};

// Who a transfer works for: of a posted write, to be notified when the host refuses it; of a read, for
// traces.
struct WriteOwner {
  enum Kind : std::uint16_t { kNone, kQp, kRq, kCq, kEq, kFirmware } kind = kNone;
  FunctionId function = 0;
  std::uint32_t number = 0;
  WriteOwner() = default;  // nobody
  WriteOwner(Kind k, FunctionId f, std::uint32_t n) : kind(k), function(f), number(n) {}
  // No queue of the function's.
  explicit WriteOwner(FunctionId f) : function(f) {}

  bool operator==(const WriteOwner& o) const { return bits() == o.bits(); }
  // As trace records name it.
  traces::Subject subject() const { return {function, number}; }
  // All of it in one word, as it lies in memory: compared for each write that waits.
  std::uint64_t bits() const {
    std::uint64_t word;
    static_assert(sizeof word == sizeof *this);
    std::memcpy(&word, this, sizeof word);
    return word;
  }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, kind, function, number);
  }
};

class Dma : public sc_core::sc_module, private Agenda::Block {
 public:
  using WriteError = std::function<void(Time, WriteOwner)>;

  // hosts: where the transfers of each function go.
  Dma(const sc_core::sc_module_name& name, const Profile& profile, const PerFunction<HostPort>& hosts,
      traces::Tracer& tracer, FaultSink& faults);

  using What = HostMemory::What;
  // Reads at once, as if requested at t; `at` follows from tags, link occupancy and latency. Data in posted
  // writes of this HCA that have not been performed yet is NOT seen, except through read_flush().
  // Memory of the device's own (space) costs no PCIe and is written at once, ahead of what is queued.
  ReadDone read(Time t, std::uint64_t addr, void* dst, std::size_t len, Space space, WriteOwner owner,
                What what = What::kDescriptor);
  // As read(), after performing the payload that the function has queued so far (PCIe: a read pushes posted
  // writes of its requester ahead). CQEs, EQEs and interrupts come when they are due.
  ReadDone read_flush(Time t, std::uint64_t addr, void* dst, std::size_t len, Space space, WriteOwner owner,
                      What what = What::kDescriptor);
  // As read(), of the packet's whole payload; it may be borrowed instead: then it is not copied before it
  // lands. For what nobody may change until the QP's WQE is complete. qp: its owner, a QP.
  ReadDone read_payload(Time t, std::uint64_t addr, Packet& packet, WriteOwner qp);
  // Whether payload is borrowed from the function's host at all.
  bool borrows(FunctionId f) const {
    return sides_[f].enabled && sides_[f].host->maps() && !gate_.open(FaultType::kDma);
  }
  // The same of a run, whose packets are asked for `apart` one after the other, the first one at t: packet.at
  // is when each is here. False, and nothing has happened: it cannot be borrowed.
  bool read_run(Time t, Time apart, std::uint64_t addr, Packet& packet, WriteOwner qp);
  Loans& loans() { return loans_; }

  // A read of the HCA's own contexts, which lie in host memory: its time, as of any read.
  Time context_read(Time t, unsigned bytes) { return read_time(t, 0, bytes, nullptr); }
  // A store of the CPU to the BAR that arrives at t: when the link, which the HCA's reads share, has let it
  // through.
  Time store(Time t, unsigned len);

  // What the memory of the function's host holds now, outside of simulated time and uncounted: for traces.
  bool peek(FunctionId f, std::uint64_t addr, void* dst, std::size_t len) {
    return sides_[f].enabled && sides_[f].host->peek(addr, dst, len);
  }

  // Queues a posted write ready to leave at t; returns when it is visible in memory. Behind the writes queued
  // so far: those of its owner and of `behind`; with neither named, all of its function. (A write that waits
  // for an address holds up its own queue's, and no other's.)
  // group: more writes of the same unit of work follow (payload before its CQE): becomes visible together
  // with the next ungrouped one, in order, and costs no activation of its own. A group that nothing closes is
  // written after kGroupLimit.
  // The bytes are copied, or, in the second form, stay in the packet (shared) until performed.
  Time post_write(Time t, std::uint64_t addr, const void* src, std::uint32_t len, WriteOwner owner,
                  bool group = false, Space space = Space::kHost, WriteOwner behind = {});
  Time post_write(Time t, std::uint64_t addr, const PacketRef& packet, std::uint32_t offset,
                  std::uint32_t len, WriteOwner owner, bool group = false, Space space = Space::kHost) {
    return post_write(t, addr, packet, offset, len, owner, group, space, Inflow{});
  }
  // How payload has come: by and by, for so long before the packet's end, and so it has left for the host; of
  // a run each packet's share leaves `after` its packet's time, if that is later than t.
  struct Inflow {
    Time streamed = 0, after = 0;
  };
  Time post_write(Time t, std::uint64_t addr, const PacketRef& packet, std::uint32_t offset,
                  std::uint32_t len, WriteOwner owner, bool group, Space space, const Inflow& inflow);
  // The payloads of a run of messages (Packet::of_messages), each to the bus address in its message's va,
  // ready to leave at its packet->at, which is when it is visible then. Those of `missed` (a bit each) had to
  // wait for their translation. All are written when the last of them is due.
  void post_messages(const PacketRef& packet, WriteOwner owner, std::uint32_t missed);
  // As post_write() at t, of bytes that are ready only `later` (ps) than that: the link is taken at t, since
  // a place on it far ahead would keep from it all who come sooner; they are visible so much later.
  Time post_write_later(Time t, Time later, std::uint64_t addr, const void* src, std::uint32_t len,
                        WriteOwner owner, Space space);
  // An MSI-X message, behind the writes of `behind`; none named: behind all that the function has posted so
  // far.
  Time post_msix(Time t, FunctionId f, unsigned vector, WriteOwner behind = {});

  // Until when so much waits for the link to the host that the buffer of posted writes has no room.
  Time stalled_until() const { return up_.free_at() - buffer_time_; }
  // When the link to the host has taken all that was given to it so far.
  Time up_free() const { return up_.free_at(); }

  // Performs the function's queued writes now, in their order (teardown of an object: nothing may land after
  // its command completes). Those of other functions stay due when they are.
  void flush(FunctionId f);
  // Forgets what is queued for the function, and switches it off; others do not notice.
  void reset(FunctionId f);
  // The same of all functions, and occupancies and tags (reset of the card).
  void reset();
  // Off: reads and writes are refused without asking the host (no bus master, after TEARDOWN, FLR).
  void set_enabled(FunctionId f, bool on) {
    if (!on) loans_.settle_all(f);
    sides_[f].enabled = on;
  }
  bool enabled(FunctionId f) const { return sides_[f].enabled; }
  // From now on the pages that the function writes are noted, in place of what was noted before; null: none.
  void watch_pages(FunctionId f, std::unique_ptr<WrittenPages> pages) { sides_[f].pages = std::move(pages); }
  WrittenPages* written_pages(FunctionId f) { return sides_[f].pages.get(); }  // null: not watched
  // The memory behind a space other than the host's; without one every access to it is refused.
  void attach(FunctionId f, Space space, LocalMemory& memory) {
    sides_[f].local[static_cast<unsigned>(space)] = &memory;
  }
  void take_faults_from(Injector& injector) { gate_.attach(injector); }
  // The next posted write or MSI-X message is due so much later, and its queue's next ones behind it.
  void hold_next(Time delay) { hold_ = delay; }
  // ATS of the function: on or off, and translations that its IOMMU takes back (model/pcie/host_memory.h).
  void keep_translations(FunctionId f, bool on) { memory_.keep(f, on); }
  void invalidate_translations(FunctionId f, std::uint64_t addr, std::uint64_t len) {
    memory_.invalidate(f, addr, len);
    ++invalidations_;
  }
  void on_write_error(WriteError handler) { write_error_ = std::move(handler); }

  // (model/prefetch.h)
  void prefetch() const;
  void prefetch_targets() const;

  std::uint64_t bytes_read() const { return bytes_read_; }
  std::uint64_t bytes_written() const { return bytes_written_; }
  std::uint64_t errors() const { return errors_; }
  std::uint64_t invalidations() const { return invalidations_; }  // of translations
  const HostMemory& host_memory() const { return memory_; }
  // Credits of writes and messages, of read requests.
  const Credits& posted() const { return posted_; }
  const Credits& nonposted() const { return nonposted_; }

  static constexpr Time kGroupLimit = from_ns(2000);

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, hold_);
    a.kept("sides", sides_);
    HCASIM_FIELDS(a, refusals_, up_, down_, writes_, requests_);
    a.kept("tags", tags_);
    HCASIM_FIELDS(a, next_tag_);
    if constexpr (Archive::kLoads) a.check(next_tag_ < tags_.size(), "there is no such tag of a read");
    // reset() drops what is queued
    if constexpr (Archive::kLoads) {
      a.list("queue", [&](auto read) {
        if (tail_ - head_ == ring_.size()) grow();
        Place& place = ring_[tail_ & (ring_.size() - 1)];
        place.entry = &unused_entry();
        ++tail_;
        read(place);
        a.check(place.owner.function < sides_.size(), "the card has no such function");
      });
      a("armed", armed_);
      list_turn(a);
    } else if constexpr (Archive::kStores) {
      a.list("queue", [&](auto write) {
        for (std::uint64_t i = head_; i != tail_; ++i) write(ring_[i & (ring_.size() - 1)]);
      });
      a("armed", armed_);
      list_turn(a);
    } else if constexpr (!Archive::kResets) {
      for (std::uint64_t i = head_; i != tail_; ++i) ring_[i & (ring_.size() - 1)].list_state(a);
    }
    HCASIM_FIELDS(a, bytes_read_, bytes_written_, errors_);
    HCASIM_FIELDS_SINCE(23, a, invalidations_);
    if (memory_.modelled()) a("memory", memory_);
    if (posted_.modelled()) a("posted", posted_);
    if (nonposted_.modelled()) a("nonposted", nonposted_);
  }

 private:
  static constexpr std::size_t kLocalLine = 64;  // bytes of local memory a cycle
  static constexpr std::uint32_t kInline = 128;  // bytes kept in the queue itself

  // A function's side of the link. One cache line: each transfer begins with it.
  struct alignas(64) HostSide {
    explicit HostSide(HostPort& h) : host(&h) {}
    HostPort* host;
    Time host_free = 0;  // when the host has done with the posted writes performed so far
    bool enabled = false;
    std::array<LocalMemory*, kSpaces> local{};
    std::unique_ptr<WrittenPages> pages;  // null: nobody wants to know

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, host_free, enabled);
      if (Archive::kStores || Archive::kResets || pages) HCASIM_FIELDS(a, pages);
    }
  };
  enum class Kind : std::uint8_t { kInlineBytes, kPacket, kMsix, kMessages };
  struct Entry {
    std::uint64_t addr;  // MSI-X: vector
    PacketRef packet;
    std::uint32_t offset, len;
    WriteOwner owner;
    Kind kind;
    std::uint8_t bytes[kInline];
  };
  // An entry's place in the order of due times.
  struct Place {
    Time due;
    WriteOwner owner;
    Entry* entry;
    bool group;

    template <class Archive>
    void list_state(Archive& a) {
      Entry& e = *entry;
      a("due", due);
      a("owner", owner);
      a("group", group);
      a("addr", e.addr);
      a("len", e.len);
      a("kind", e.kind);
      if constexpr (Archive::kLoads) {
        a.check(e.kind <= Kind::kMessages, "this is no kind of write");
        e.owner = owner;
      }
      if (e.kind == Kind::kMessages) {
        a("packet", e.packet);
        if constexpr (Archive::kLoads)
          a.check(e.packet && e.packet->of_messages && e.len == e.packet->payload_len,
                  "the write is not of the messages of its packet");
      }
      if (e.kind == Kind::kPacket) {
        a("offset", e.offset);
        a("packet", e.packet);
        if constexpr (Archive::kLoads)
          a.check(e.packet && e.offset <= e.packet->room() && e.len <= e.packet->room() - e.offset,
                  "the write is of more than its packet has");
      } else if (e.kind == Kind::kInlineBytes) {
        if constexpr (Archive::kLoads) {
          const auto bytes = a.bytes("bytes");
          a.check(bytes.size() == e.len && e.len <= kInline, "a short write does not have its bytes");
          std::memcpy(e.bytes, bytes.data(), bytes.size());
        } else if constexpr (Archive::kStores) {
          a.bytes("bytes", e.bytes, e.len);
        } else {
          a.bytes(e.bytes, e.len);
        }
      }
    }
  };

  const FaultSpec* fault_of(Time t, bool write, std::uint64_t addr, std::size_t len, WriteOwner owner,
                            Injector::Actions among);
  // What a fault does to a transfer: refused, or so much later.
  bool refuse_by_fault(Time t, bool write, std::uint64_t addr, std::size_t len, WriteOwner owner);
  Time slowed(Time t, bool write, std::uint64_t addr, std::size_t len, WriteOwner owner);
  ReadDone read_local(Time t, std::uint64_t addr, void* dst, std::size_t len, Space space, FunctionId f);
  Time write_local(Time t, std::uint64_t addr, const void* src, std::size_t len, WriteOwner owner,
                   Space space);
  Time local_time(std::size_t len) const {
    return cycle_.period() * static_cast<Time>(1 + (len + kLocalLine - 1) / kLocalLine);
  }
  Entry& unused_entry() {
    if (unused_.empty()) return entries_.emplace_back();
    Entry* const e = unused_.back();
    unused_.pop_back();
    return *e;
  }
  Entry& new_entry(std::uint64_t addr, std::uint32_t len, Kind kind, WriteOwner owner);
  Time post_inline(Time t, std::uint64_t addr, const void* src, std::uint32_t len, WriteOwner owner,
                   bool group, WriteOwner behind);
  Time push(Time t, Entry& e, bool group, WriteOwner behind, Time streamed = 0);
  Time placed(Time due, Entry& e, bool group, WriteOwner behind);
  void grow();
  void drop(std::uint64_t n);
  template <class Which>
  std::uint64_t bring_forward(Which which);
  template <class Which>
  void perform_all(Which which);
  void push_payload(FunctionId f);
  bool hold_front_back();
  static bool ordered(WriteOwner before, WriteOwner owner, WriteOwner behind);
  struct WriteCost {
    Time making = 0, wire = 0;  // of its TLPs: to make them, on the link
  };
  // How many pieces [addr, addr + len) falls into when cut at multiples of `unit` (a power of two).
  static std::size_t pieces(std::uint64_t addr, std::size_t len, unsigned unit) {
    return (static_cast<std::size_t>(addr & (unit - 1)) + len + unit - 1) / unit;
  }
  WriteCost cost_of_write(std::uint64_t addr, std::uint32_t len) const;
  Time write_time(Time leaves, const WriteCost& cost, bool late);
  Time streamed_time(Time leaves, Time streamed, const WriteCost& cost, bool behind);
  [[gnu::cold, gnu::noinline]] Time credited_time(Time leaves, Time streamed, std::uint64_t addr,
                                                  std::uint32_t len);
  struct ReadCost {
    std::size_t requests = 0;
    Time request = 0, data = 0;  // on the link
    Time first = 0;              // of the data: the first completion
  };
  ReadCost cost_of(std::size_t requests, std::uint64_t addr, std::size_t bytes) const;
  // Whose memory is read, and what of it: where the host's answer depends on that.
  struct Asked {
    FunctionId function;
    HostMemory::What what;
  };
  Time read_batch(Time t, const ReadCost& cost, std::uint64_t addr, std::size_t bytes, const Asked* asked);
  bool read_at_link_rate(Time t, Time apart, const ReadCost& cost, unsigned n, Time* at);
  static std::size_t take_tags(Time* tags, std::size_t count, std::size_t first, std::size_t n, Time ready);
  ReadDone read_host(Time t, std::uint64_t addr, void* dst, std::size_t len, WriteOwner owner, What what);
  ReadDone counted_read(Time t, std::uint64_t addr, std::size_t len, WriteOwner owner, What what);
  Time read_time(Time t, std::uint64_t addr, std::size_t len, const Asked* asked);
  Time left_at(Time t, Time streamed, std::uint64_t addr, std::uint32_t len);
  Time written_at(Time left, std::uint64_t addr, std::uint32_t len, FunctionId f);
  void perform_front();
  bool struck(std::uint64_t addr, std::uint32_t len, WriteOwner owner);
  static void took(HostSide& side);
  void performed(bool ok, std::uint64_t addr, std::uint32_t len, WriteOwner owner);
  void write_messages(const Packet& p, WriteOwner owner);
  void turn() override;
  std::size_t depth() const override { return tail_ - head_; }
  void arm(Time due);
  void rearm();
  Time front_free() const;
  bool perform(std::uint64_t end, Time limit);
  void report_refusals();
  void refused(Time t, WriteOwner owner, std::uint64_t addr, std::size_t len, bool write);
  void tell_refused(Time t, WriteOwner owner, std::uint64_t addr, bool write);
  // The owner as trace points of reads and writes have it, apart from the function.
  static std::uint32_t traced(WriteOwner owner) {
    return std::uint32_t{owner.kind} << 28 | (owner.number & 0xffffff);
  }
  Time whole_cycle(Time t) const { return cycle_.round_up(t); }
  Time bytes_time(double bytes) const {
    return static_cast<Time>(bytes * ps_per_byte_ + 0.5);  // NOLINT(bugprone-incorrect-roundings)
  }

  const Profile& profile_;
  std::vector<HostSide> sides_;  // by function
  traces::Tracer& tracer_;
  FaultSink& faults_;
  const Cycle cycle_;
  const double ps_per_byte_;
  const Time buffer_time_;
  const WriteCost part_;                    // of the last bytes of what has come by and by
  const Time shortest_up_, shortest_down_;  // TLP in either direction
  FaultGate gate_;
  Time hold_ = 0;
  WriteError write_error_;
  std::vector<WriteOwner> refusals_;  // to be reported from the engine's own process: a block may be at work
  Occupancy up_, down_;               // link directions: to the host, from the host
  Occupancy writes_, requests_;       // what makes TLPs: only so many a second of either kind
  std::vector<Time> tags_;            // when each read tag is free again, used in turn
  std::size_t next_tag_ = 0;
  Loans loans_;
  HostMemory memory_;
  Credits posted_, nonposted_;
  std::deque<Entry> entries_;   // posted writes, in no order; they stay where they are
  std::vector<Entry*> unused_;  // those of entries_ without one
  std::vector<Place> ring_;     // [head_, tail_) by due time, a power of two long
  std::vector<Place> aside_;    // scratch
  std::uint64_t head_ = 0, tail_ = 0;
  Time armed_ = kNever;
  bool draining_ = false;
  std::uint64_t bytes_read_ = 0, bytes_written_ = 0, errors_ = 0, invalidations_ = 0;
};

}  // namespace hcasim
#endif
