// SPDX-License-Identifier: BSD-3-Clause
// The network port: serialization at the profile's rate, the cable, link state and LID, counters, and the
// port's fault generator. What functions are reached by is in their vports (model/function/vport.h).
#ifndef HCASIM_MODEL_PORT_PORT_H
#define HCASIM_MODEL_PORT_PORT_H

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <systemc>
#include <vector>

#include "model/fault/injector.h"
#include "model/occupancy.h"
#include "model/packet/packet.h"
#include "model/port/counters.h"
#include "model/port/embedded_switch.h"
#include "model/port/lane_credits.h"
#include "model/port/local_addresses.h"
#include "model/port/pause.h"
#include "model/port/port_group.h"
#include "model/port/priority.h"
#include "model/port/run.h"
#include "model/port/virtual_lanes.h"
#include "model/port/wire.h"
#include "model/profile.h"
#include "model/state/fields.h"
#include "model/state/qp_tags.h"
#include "model/timed_queue.h"
#include "traces/drops.h"
#include "traces/pcapng.h"
#include "traces/tracer.h"

namespace hcasim {

enum class LinkType : std::uint8_t { kIb, kEthernet };

// vport_state of hca_vport_context; physical state follows it.
enum class PortState : std::uint8_t { kDown = 1, kInit = 2, kArmed = 3, kActive = 4 };

using traces::DropReason;
// Records that `packet` was dropped; whoever counts it does so beside this.
void trace_drop(traces::Tracer& tracer, Time t, const Packet& packet, DropReason reason);

// As trace points have them.
constexpr std::uint64_t psn_opcode(std::uint8_t opcode, std::uint32_t psn) {
  return static_cast<std::uint64_t>(opcode) << 24 | (psn & kPsnMask);
}

inline std::uint64_t psn_opcode(const Packet& p) { return psn_opcode(p.opcode, p.psn); }

// Probabilities 0..1 for each packet that leaves the port, from a seeded generator.
struct PortFaults {
  double drop = 0, duplicate = 0, reorder = 0, corrupt = 0;
  double garble = 0;  // fields changed, with checksums that fit
  double ecn = 0;     // of ECN-capable RoCE v2 packets: marked "congestion experienced"
  // As a switch would mark them by the bytes that wait before them: none below kmin, all from kmax on, a
  // share that grows to pmax in between. kmax 0: off.
  double ecn_kmin = 0, ecn_kmax = 0, ecn_pmax = 0.01;
  Time reorder_delay = from_ns(5000);
  std::uint64_t seed = 1;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, drop, duplicate, reorder, corrupt, garble, ecn, ecn_kmin, ecn_kmax, ecn_pmax,
                  reorder_delay, seed);
  }
};

class Port : public sc_core::sc_module {
 public:
  using Receive = std::function<void(Time, PacketRef&)>;

  Port(const sc_core::sc_module_name& name, const Profile& profile, traces::Tracer& tracer, FaultSink& faults,
       LocalAddresses& addresses);

  void on_receive(Receive handler) { receive_ = std::move(handler); }
  // Sees what is sent, the port's own pause frames apart.
  using Watch = std::function<void(Time, const Packet&)>;
  void on_transmit(Watch watcher) { watch_ = std::move(watcher); }

  // Called for each packet of functions of this port's HCA that reports its departure, when it begins to
  // leave.
  void on_departure(Watch watcher) { departed_ = std::move(watcher); }

  // What leaves and enters the port goes into this capture too, under this name; null: into none. For the
  // time of a capture, or of a trace in detail, each packet is to come by itself (each_packet()).
  void capture_to(std::shared_ptr<traces::Capture> capture, const std::string& name);
  bool each_packet() const { return capture_ || tracer_.detail(); }
  using Direction = traces::Capture::Direction;
  // One packet whose last bit is out of the port, or has come in, at t. comment: what befell it; may be null.
  void capture(Time t, const Packet& p, Direction direction, const char* comment = nullptr);

  // Data rate of the link after encoding, Gb/s: the profile's, or what the ends of an Ethernet link came to.
  // An InfiniBand link has less of it for packets (Profile::Port::packets_gbps).
  double rate_gbps() const { return rate_gbps_; }
  void set_rate(double gbps);

  LinkType link() const { return link_; }
  void set_link(LinkType link) {
    link_ = link;
    connect(wire_);
    set_rate(rate_gbps_);
  }
  // Ethernet: the switch between the functions and the port, of cards that have one.
  void plug_in(EmbeddedSwitch& eswitch) { eswitch_ = &eswitch; }
  bool switched() const { return eswitch_ && link_ == LinkType::kEthernet && eswitch_->on(); }
  // The other ports of a card that has some.
  void join(PortGroup& group) { group_ = &group; }
  bool aggregated() const { return group_ != nullptr && group_->aggregated(); }
  // By which port the packets of a queue of this port's functions leave.
  const Port& egress(PortAffinity affinity) const { return aggregated() ? group_->egress(affinity) : *this; }
  // Null: a cable to itself. The wire outlives the port's use of it.
  void connect(Wire* wire);
  // InfiniBand: bytes that a packet of this lane has taken in the far end's buffer are free there; the sender
  // has heard of it at t. (What comes in here is told by Wire::make_room().)
  void made_room(Time t, unsigned lane, std::uint32_t bytes) { credits_.give_back(t, lane, bytes); }
  // The far end's buffers are empty.
  void far_end_emptied(Time t) {
    if (credits_.limited()) credits_.renew(t);
  }
  const LaneCredits& credits() const { return credits_; }
  bool connected() const { return wire_ != nullptr; }
  // A packet came in over the wire; its last bit arrives at t (not before now).
  void wire_receive(Time t, PacketRef packet);

  // Packets that came in and that nobody has looked at yet.
  std::size_t arriving() const { return rx_.size(); }
  // The one that comes after so many others, as far as it is known; may be null.
  const Packet* to_come(std::size_t after) const {
    const PacketRef* packet = rx_.to_come(after);
    return packet ? &**packet : nullptr;
  }
  // The far end, or what stands in its way, cannot take more: nothing new leaves before `until`.
  void pause(Time until) { pause_.stop(until); }
  // When a packet of this priority, ready at t, may leave: later than t while pause frames stop it.
  Time open_at(Time t, unsigned priority) const { return pause_.open_at(t, priority); }
  bool stopped(Time t) const { return pause_.active(t) || credits_.stopped(); }  // some priority or lane
  // The same of a service level's lane, of InfiniBand.
  Time lane_open_at(Time t, std::uint8_t level) const {
    const std::uint8_t lane = lanes.of(level);
    if (lane != VirtualLanes::kNone && credits_.stopped(lane)) t += kUntilToldOf;
    return pause_.open_at(t, 0);
  }
  // Called when a pause ends before its time.
  void on_resume(std::function<void(Time)> handler) { resume_ = std::move(handler); }
  // Reports until when the receive side is busy with what has come in: beyond a limit, pause frames are sent.
  void watch_backlog(Pause::Backlog backlog) { pause_.watch(std::move(backlog)); }
  // The same of the buffers that lanes have here: when what has come in has left them.
  void watch_buffers(Pause::Backlog taken) { taken_in_ = std::move(taken); }

  // Sends a packet that is ready at t. Returns when its last bit has left, or, of one
  // that pause frames hold back, could have left at the earliest. Packets for ourselves (own LID,
  // MAC of a function) come back inside the HCA, multicast comes back as well, all others go over the wire.
  // Without one, Ethernet has a cable to itself: everything comes back; IB counts what is not for us as
  // discards.
  // The packet is taken from `packet`, or left there for the caller to drop.
  Time transmit(Time t, PacketRef&& packet) {
    const bool watched = link_ == LinkType::kEthernet && watch_;
    const bool plain = packet->packets == 1 && !packet->internal && !watched && !group_ &&
                       !pause_.active(t) && !credits_.limited();
    return plain ? transmit_now(t, std::move(packet)) : transmit_other(t, std::move(packet));
  }
  Time transmit(Time t, const PacketRef& packet) { return transmit(t, PacketRef(packet)); }
  // What came in here, out again, whatever its address: the E-Switch says so. Without a cable it is gone; of
  // ports that are one link it leaves by the one that serves it.
  void send_back(EmbeddedSwitch::Copy&& copy);
  // When the transmitter would be free for one more packet; the scheduler waits while this lies far ahead.
  // A request of `requester` (Packet::trace_qpn) stays behind those of its own runs; all others have but so
  // many packets of a run before them (reserve()).
  Time tx_free(std::uint32_t requester = 0) const {
    if (pause_.active(tx_.free_at())) return free_after_pause();
    if (credits_.full()) return tx_.free_at() + kUntilToldOf;
    if (tail_.packets == 0 || requester == tail_.requester) return tx_.free_at();
    return std::min(tx_.free_at(), std::max(taken_, tail_.starts[0]));
  }
  // How long it is idle from t until then, between packets that are apart: so much less lies before another
  // one. Who may not send is not idle.
  Time tx_idle(Time t) const {
    const bool may_send = tail_.packets == 0 && !pause_.active(tx_.free_at()) && !credits_.full();
    return may_send ? tx_.idle_from(t) : 0;
  }
  Time backlog_limit() const { return backlog_limit_; }
  // How long before the end of so much payload, which comes at `ps_per_byte`, it may begin to leave or to go
  // on: it is passed on by parts (engine.stream_bytes).
  Time ahead_of_end(std::uint32_t payload, double ps_per_byte) const {
    const unsigned part = profile_.engine.stream_bytes;
    if (part == 0 || payload <= part) return 0;
    return static_cast<Time>((payload - part) * std::min(ps_per_byte_, ps_per_byte));
  }
  // Whether a run of packets would leave as it comes: nothing looks at, holds back or harms single ones.
  bool takes_runs() const;
  // Whether packets that are as this one, from t on, may leave as a run of messages. Then each of them gets
  // its time as it comes, ready at t, by add_message(), which returns when it has left; and goes when all of
  // them have theirs (packet->at).
  bool takes_messages(Time t, const Packet& like, MessageSize& size) const;
  Time add_message(Time t, const Packet& run, const MessageSize& size) {
    return reserve(t, size.lasts, run) + size.lasts;
  }
  void send_messages(PacketRef&& packet, const MessageSize& size);
  // How long a packet of RC with so much payload, in the middle of its message, takes on the cable.
  Time full_packet(std::uint32_t payload) const;

  // Link level.
  PortState state() const { return state_; }
  void set_state(PortState s);
  std::uint16_t lid() const { return lid_; }
  void set_lid(std::uint16_t lid) { lid_ = lid; }
  std::uint8_t lmc = 0;
  std::uint16_t sm_lid = 0;
  std::uint8_t sm_sl = 0;
  VirtualLanes lanes;

  // Ethernet.
  Mac station_mac{};               // the source of pause frames; set by firmware
  std::uint32_t max_frame = 1522;  // bytes with FCS (PMTU.admin_mtu): longer ones are dropped, either way

  // Pause (IEEE 802.3 annex 31B) and priority flow control (802.1Qbb), as PFCC sets them. Received: pause
  // frames are obeyed, of all or of the priorities in the mask; sent: when the receive side is congested.
  bool pause_rx = false, pause_tx = false;
  std::uint8_t pfc_rx = 0, pfc_tx = 0;
  PriorityMap priorities;
  const PauseTime& pause_received(unsigned priority) const { return pause_.received(priority); }
  const PauseTime& pause_asked(unsigned priority) const { return pause_.asked(priority); }
  const PortBuffers& buffers() const { return buffers_; }
  void set_buffers(const PortBuffers& buffers);

  // (model/prefetch.h)
  void prefetch() const {
    tx_.prefetch();
    rx_.prefetch();
    prefetch_line(&counters_);
  }
  void prefetch_targets() const { rx_.prefetch_targets(); }
  PortFaults& faults() { return faults_cfg_; }
  void take_faults_from(Injector& injector) { gate_.attach(injector); }
  // Further symbol errors of the physical layer, as a bad cable would make them; until reset().
  void count_symbol_errors(std::uint64_t n) { counters_.symbol_errors += n; }
  void reseed();
  const PortCounters& counters() const { return counters_; }
  // Of which management clears some.
  PortCounters& counters_to_clear() { return counters_; }
  void clear_xmit_wait() { credits_.clear_waited(); }
  void clear_pause_times(unsigned priority) { pause_.clear_times(sim_now(), priority); }
  // PortXmitWait (IBTA 16.1.3.5): for how long some lane had packets and no credits, in the time of 4 bytes.
  std::uint64_t xmit_wait() const {
    return static_cast<std::uint64_t>(static_cast<double>(credits_.waited()) / (4 * ps_per_byte_));
  }
  void reset();

  // Size in bytes: LRH to VCRC; Ethernet with FCS, ...
  static std::uint32_t wire_bytes(const Packet& p);
  // Of packet i of a run (frame: frame_bytes()), and of all of them.
  static std::uint32_t frame_bytes(const Packet& run);
  static std::uint32_t part_bytes(const Packet& run, std::uint32_t frame, unsigned i);
  static std::uint64_t run_bytes(const Packet& run);
  static std::uint64_t bytes_of(const Packet& p) { return p.packets == 1 ? wire_bytes(p) : run_bytes(p); }
  // What counters have of the bytes of so many packets: InfiniBand's are without VCRC (IBTA 16.1.3.5).
  std::uint64_t counted(std::uint64_t bytes, unsigned packets) const {
    return link_ == LinkType::kIb ? bytes - std::uint64_t{packets} * prm::kVcrcBytes : bytes;
  }
  // ... and what a packet takes of the cable besides: preamble and gap between frames.
  static std::uint32_t wire_overhead(const Packet& p) { return p.kind == PacketKind::kIb ? 0 : 20; }

  // Ethernet: a packet goes on to the vport's users, as RoCE or as a frame.
  void count_vport_rx(const Packet& p);
  // For a frame that was found to be a RoCE packet after it had been received.
  void found_roce(Time t, Packet& p);
  // The receiver of a packet gives up on it.
  void drop(Time t, const Packet& p, DropReason reason);
  // It has come in, but nobody may have it: unlike what is given up on its way out no discard of the sender.
  void drop_received(Time t, const Packet& p, DropReason reason);
  // Once: what the far end has in hand may be the same packet.
  void report_departure(Time t, Packet& p) const {
    if (!p.reports_departure) return;
    p.reports_departure = false;
    if (departed_) departed_(t, p);
  }

  template <class Archive>
  void list_state(Archive& a) {
    a("state", state_, PortState::kDown);
    HCASIM_FIELDS(a, lid_, lmc, sm_lid, sm_sl, lanes);
    a.lasting("station_mac", station_mac);
    a.lasting("max_frame", max_frame);
    a.lasting("rate_gbps", rate_gbps_);
    HCASIM_FIELDS(a, pause_rx, pause_tx, pfc_rx, pfc_tx, priorities, buffers_);
    HCASIM_FIELDS(a, tx_, tail_, taken_, pause_);
    a.from_other_cards([&] { HCASIM_FIELDS(a, rx_); });
    HCASIM_FIELDS(a, held_);
    a.from_other_cards([&] { HCASIM_FIELDS(a, late_); });
    if (Archive::kResets || credits_.limited()) a("credits", credits_);
    HCASIM_FIELDS(a, counters_);
    a.lasting("random", random_);  // reseed()
    if constexpr (Archive::kStores) a("faults", faults_cfg_);
  }

 private:
  // Longer than a stop lasts: its end is told.
  static constexpr Time kUntilToldOf = from_ns(1'000'000);
  // Where a packet goes: back to this port, out over the wire.
  struct Route {
    bool back, out;
  };
  // When a packet is on the cable.
  struct Slot {
    Time lasts, start, end;
  };
  // spared: of its wire_bytes() and wire_overhead(), what does not go over the cable.
  bool has_room_for_passing(Time t, const Packet& p) const;
  Slot take_slot(Time t, Packet& p, std::uint32_t bytes, std::uint32_t spared);
  void trace_out(const Slot& slot, const Packet& p, std::uint32_t bytes) const;
  bool ours(std::uint16_t dlid) const;
  bool ours(const std::uint8_t* mac) const;
  bool passes(const Packet& p, bool inward) const;
  Route route(const Packet& p) const;
  void send(Time t, PacketRef&& packet, Route to, Time late);
  bool hit(double probability);
  // What faults of the kind wire do to a packet.
  struct Harm {
    bool drop = false, corrupt = false, garble = false, duplicate = false;
    Time late = 0;
  };
  Harm harm(Time t, const Packet& p, std::uint64_t direction);
  void come_in(Time t, PacketRef& packet);
  [[gnu::cold]] bool too_long(const Packet& p) const;
  void trace_received(Time t, const Packet& p);
  void mark_congestion(Packet& p, Time waits);
  void arrive(Time t, PacketRef& packet);
  // Of lanes with credits (apart, so that others do not pay for it).
  [[gnu::cold, gnu::noinline]] void take_in(Time t, PacketRef& packet);
  [[gnu::cold, gnu::noinline]] bool waits_for_credits(Time t, PacketRef& packet);
  [[gnu::cold, gnu::noinline]] void count_lost(Time t, const Packet& p);
  [[gnu::cold, gnu::noinline]] void count_again(const Packet& p);
  bool has_lane(const Packet& p) const;
  Time duration(const Packet& p, std::uint32_t bytes) const;  // on the cable; bytes: wire_bytes()
  Time span(std::uint32_t bytes) const;                       // the same with wire_overhead()
  std::uint32_t framing(const Packet& p,
                        const Route& to) const;  // bytes that it goes without, inside the card
  Time free_after_pause() const;
  Time transmit_now(Time t, PacketRef&& packet);
  Time transmit_switched(Time t, PacketRef&& packet);
  Time transmit_crossed(Time t, PacketRef&& packet);
  // aggregate.cpp
  Port* leaves_elsewhere(const PacketRef& packet);
  Port& way_out(const EmbeddedSwitch::Copy& copy);
  Time cross(Time t, Port& out, PacketRef&& packet);
  void trace_request(const Packet& p, Time start, Time end);
  // Sends what was injected to be lost, changed, doubled or late accordingly. end: its last bit leaves;
  // lasts: its time on the wire; waited: for its turn.
  void leave(Time end, Time lasts, Time waited, PacketRef&& packet, const Route& to);
  Time transmit_other(Time t, PacketRef&& packet);
  Time reserve(Time t, Time lasts, const Packet& p);
  // run.cpp
  void trace_sent(const Packet& run, const MessageSize& size);
  void trace_received_run(const Packet& run);
  Time transmit_run(PacketRef&& packet);
  bool passes_run(const Packet& run) const;
  void arrive_run(Time t, PacketRef& packet);
  Time one_by_one(Packet& run);
  void take_pause(Time t, const Packet& p);
  void send_pause(Time t, const PauseFrame& frame);
  // ethernet.cpp
  void set_thresholds();
  // bytes: of all `frames` of a run
  void count_tx(const Packet& p, std::uint64_t bytes, Route to, unsigned frames = 1);
  void count_vport_tx(const Packet& p, std::uint64_t bytes, unsigned frames);
  void count_cable_tx(const Packet& p, std::uint64_t bytes, unsigned frames);
  void count_rx(const Packet& p, std::uint64_t bytes, unsigned frames = 1);

  const Profile& profile_;
  traces::Tracer& tracer_;
  LocalAddresses& addresses_;
  EmbeddedSwitch* eswitch_ = nullptr;
  PortGroup* group_ = nullptr;
  EmbeddedSwitch::Copies copies_;  // scratch
  std::shared_ptr<traces::Capture> capture_;
  std::uint32_t capture_interface_ = 0;
  Receive receive_;
  Watch watch_, departed_;
  std::function<void(Time)> resume_;
  LinkType link_ = LinkType::kIb;
  Wire* wire_ = nullptr;
  PortState state_ = PortState::kDown;
  std::uint16_t lid_ = 0;
  // Bytes: no packet is less, and nothing can go into what is shorter of the cable (BTH, AETH, ICRC and
  // VCRC).
  static constexpr std::uint32_t kShortestPacket = 22;
  Occupancy tx_;
  Time shortest_ = 0;
  Time backlog_limit_ = 0;
  // The run that was sent last: when its packets begin. Other packets may go between them, until `taken_`
  // some do.
  struct Tail {
    std::uint32_t requester = 0;
    unsigned packets = 0;  // 0: none yet
    std::array<Time, kMaxRun> starts{};

    template <class Archive>
    void list_state(Archive& a) {
      HCASIM_FIELDS(a, requester, packets, starts);
      state::qp_tags(a, requester);
      if constexpr (Archive::kLoads) a.check(packets <= kMaxRun, "a run has at most 16 packets");
    }
  } tail_;
  Time taken_ = 0;
  mutable struct {
    std::uint32_t payload = 0;
    LinkType link = LinkType::kIb;
    Time lasts = 0;
  } full_;  // what full_packet() said last
  double rate_gbps_;
  double ps_per_byte_ = 0;
  PortCounters counters_;
  PortFaults faults_cfg_;
  FaultGate gate_;
  std::mt19937_64 random_{1};
  Pause pause_;
  LaneCredits credits_;
  Pause::Backlog taken_in_;
  PortBuffers buffers_;
  TimedQueue<PacketRef> rx_;
  TimedQueue<PacketRef> held_;  // held back by the fault generator, for the wire
  TimedQueue<PacketRef> late_;  // held back at their arrival
};

}  // namespace hcasim
#endif
