// SPDX-License-Identifier: BSD-3-Clause
// The match engine of flow tables, groups and entries (flow_table_context, create_flow_group_in,
// flow_context, fte_match_param of mlx5_ifc.h). Firmware installs; frames are matched here and nowhere else.
// Lookup in a table: groups and entries in order of flow index, the first entry that fits is taken; no entry:
// the table's miss action.
#ifndef HCASIM_MODEL_STEER_FLOW_H
#define HCASIM_MODEL_STEER_FLOW_H

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/function/id.h"
#include "model/state/fields.h"
#include "model/steer/actions.h"
#include "model/steer/definer.h"
#include "model/steer/geneve_option.h"
#include "model/steer/header_arguments.h"
#include "model/steer/meter.h"
#include "model/time.h"
#include "prm/prm.h"
#include "traces/frame_end.h"
#include "traces/tracer.h"

namespace hcasim {

using MatchParam = std::array<std::uint8_t, prm::fte_match_param::bytes>;  // big-endian, as in the command

// flow_table_type of the commands
enum class FlowTableType : std::uint8_t {
  kNicRx = 0,
  kNicTx = 1,
  kEswEgressAcl = 2,
  kEswIngressAcl = 3,
  kFdb = 4,
  kSnifferRx = 5,
  kSnifferTx = 6,
  kRdmaRx = 7,
  kRdmaTx = 8,
  kPortSelection = 9,  // LAG: by which of the card's ports a frame leaves
};

// dest_format_struct.destination_type
struct FlowDestination {
  enum Type : std::uint8_t {
    kVport = 0,
    kTable = 1,
    kTir = 2,
    kSampler = 6,
    kUplink = 8,
    kTableType = 10,  // the root of another type of tables
  } type = kTir;
  std::uint32_t id = 0;        // kTableType: the type
  std::uint32_t reformat = 0;  // packet_reformat_id for this destination alone; 0: none
  bool other = false;          // kVport, kUplink: of the switch at the card's other port

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, type, id, reformat, other);
  }
};

// flow_context.action
enum : std::uint16_t {
  kFlowAllow = 0x1,
  kFlowDrop = 0x2,
  kFlowForward = 0x4,
  kFlowCount = 0x8,
  kFlowReformat = 0x10,
  kFlowDecap = 0x20,
  kFlowModify = 0x40,
  kFlowPopVlan = 0x80,
  kFlowPushVlan = 0x100,
  kFlowPopVlan2 = 0x400,
  kFlowPushVlan2 = 0x800,
  kFlowDecrypt = 0x1000,
  kFlowEncrypt = 0x2000,
  kFlowAso = 0x4000,
};

struct VlanTag {
  std::uint16_t tpid = 0, tci = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, tpid, tci);
  }
};

// kFlowAso: a meter that colours the frame, and the register C that gets the colour in its low byte.
struct MeterAction {
  std::uint32_t object = 0;
  std::uint8_t meter = 0, reg = 0;
  MeterColor before = MeterColor::kUndefined;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, object, meter, reg, before);
    if constexpr (Archive::kLoads) a.check(meter < 2 && reg < 8, "there is no such meter or register");
  }
};

// kFlowDecrypt, kFlowEncrypt: by which object (encrypt_decrypt_type, encrypt_decrypt_obj_id). PSP has none: a
// received packet's key follows from its SPI, that of one to be sent is the DEK whose number is in register
// A.
struct CryptoAction {
  enum Type : std::uint8_t { kIpsec = 0, kMacsec = 1, kPsp = 2 } type = kIpsec;
  std::uint32_t object = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, type, object);
  }
};

struct FlowEntry {
  std::uint32_t group = 0;
  std::uint32_t tag = 0;  // goes into the CQE (flow_tag)
  std::uint16_t action = 0;
  std::vector<FlowDestination> destinations;
  std::vector<std::uint32_t> counters;  // ids
  std::uint32_t reformat = 0;           // kFlowReformat: packet_reformat_id
  std::uint32_t modify = 0;             // kFlowModify: modify_header_id
  std::array<VlanTag, 2> push;          // kFlowPushVlan, kFlowPushVlan2
  MeterAction aso;                      // kFlowAso
  CryptoAction crypto;                  // kFlowDecrypt, kFlowEncrypt
  MatchParam value{};
  enum Source : std::uint8_t { kAny = 0, kFromUplink = 1, kFromVport = 2 } source = kAny;  // flow_source

  // The engine's own
  std::uint32_t index = 0;         // flow index
  std::vector<std::uint32_t> key;  // the value's words that the group looks at

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, group, tag, action, destinations, counters, reformat, modify, push, aso, crypto, value,
                  source, key);
  }
};

// What ALLOC_PACKET_REFORMAT_CONTEXT holds (packet_reformat_context_in).
struct PacketReformat {
  std::uint8_t type = 0;                  // REFORMAT_TYPE_*
  std::uint8_t anchor = 0;                // insert, remove: REFORMAT_CONTEXT_ANCHOR_* ...
  std::uint8_t offset = 0;                // ... and bytes behind it
  std::uint32_t remove = 0;               // remove: bytes
  std::vector<std::uint8_t> data;         // headers to put in
  bool apply(SteeredFrame& frame) const;  // false: as the actions it consists of
  bool before_fields() const;             // takes headers away: done before fields are modified

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, type, anchor, offset, remove, data);
  }
};

// A sampler object (sampler_obj): every frame to one table, one of `ratio` to another one too.
struct FlowSampler {
  std::uint32_t ratio = 1;
  std::uint32_t sample_table = 0, default_table = 0;
  std::uint32_t phase = 0;  // frames since the last sample

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, ratio, sample_table, default_table, phase);
  }
};

// The flow indices whose entries share a hash: nearly always one.
class FlowIndices {
 public:
  explicit FlowIndices(std::uint32_t index) : lowest_(index) {}
  std::uint32_t lowest() const { return lowest_; }
  const std::vector<std::uint32_t>& others() const { return others_; }  // ascending
  void insert(std::uint32_t index);
  // True: it was the last one.
  bool erase(std::uint32_t index);

 private:
  std::uint32_t lowest_;
  std::vector<std::uint32_t> others_;
};

struct FlowGroup {
  std::uint32_t id = 0;
  std::uint32_t first = 0, last = 0;  // flow indices
  std::uint8_t criteria = 0;          // match_criteria_enable: 1 outer, 2 misc, 4 inner, 8 misc2 ...
  MatchParam mask{};
  bool splits = false;   // every frame fits; a hash of its fields says which flow index takes it (HASH_SPLIT)
  MatchDefiner definer;  // splits: of those

  // The engine's own: the words that the mask names, and the entries by a hash of those.
  struct Word {
    std::uint16_t at;    // bytes from the start of the parameters
    std::uint32_t mask;  // as in memory
    std::uint32_t own;   // what of it the group's creator asked for; the rest has to be zero
  };
  std::vector<Word> words;
  std::unordered_map<std::uint64_t, FlowIndices> index;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, id, first, last, criteria, mask, splits, definer);  // the rest is made of these
  }
};

struct FlowTable {
  std::uint32_t id = 0;
  FlowTableType type = FlowTableType::kNicRx;
  std::uint8_t level = 0;
  unsigned log_size = 0;
  bool miss_to_table = false;  // table_miss_action 1
  std::uint32_t miss_table = 0;
  bool reformats = false, decaps = false;  // entries may change the lengths of frames (reformat_en, decap_en)
  std::uint16_t vport = 0;                 // ACLs of the E-Switch: whose
  bool miss_to_nic = false;  // table_miss_action 2, of RDMA tables: on in the root of the NIC's tables
  bool terminates =
      false;  // termination_table: what an entry of it leads to a vport is on the sending side from there on
  bool parts_ports = false;  // LAG demux: what has come in at the card's other port goes back to it from here
  bool sw_owner = false;     // entries are software's, in memory of the device from these addresses on:
  std::array<std::uint64_t, 2> sw_root{};      // receive, transmit
  std::map<std::uint32_t, FlowGroup> groups;   // by id
  std::map<std::uint32_t, FlowEntry> entries;  // by flow index

  std::vector<FlowGroup*> order;  // groups by first flow index; the engine's own

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, id, type, vport, level, log_size, miss_to_table, miss_table, reformats, decaps,
                  miss_to_nic, terminates, parts_ports, sw_owner, sw_root, groups, entries);
  }
};

struct FlowCounter {
  std::uint64_t packets = 0, bytes = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, packets, bytes);
  }
};

// Where a copy of the frame goes.
struct FlowDelivery {
  enum Fate : std::uint8_t {
    kTir,   // to the TIR tirn
    kPass,  // NIC TX: to the port. RDMA RX, TX: to the transport, the port. E-Switch: on its way, by default
    kVport,
    kUplink,
    kOtherPort  // of the card: it came in there, and is that one's (LAG)
  } fate = kTir;
  std::uint32_t tirn = 0;
  SteeredFrame frame;
  std::uint32_t vport = 0;  // kVport
  bool other = false;       // kVport, kUplink: of the switch at the card's other port
};

// No deliveries: dropped.
struct FlowVerdict {
  bool dropped_by_rule = false;  // an entry said drop; else nothing matched
  std::vector<FlowDelivery> deliveries;
};

class FlowSteering;
class LookupTime;

// The walker of tables that software writes itself (FlowTable::sw_owner). It follows them from `root` on and
// says where the frame and its copies go by FlowSteering::forward(), pass() and drop(), any number of times.
class SwTables {
 public:
  // What is walked from now on is for another frame, which may cost so much (FlowSteering::kMaxWork); and
  // what is left of that.
  virtual void begin(unsigned work) = 0;
  virtual unsigned work_left() const = 0;
  // time: what the entries take, of the E-Switch's; null: of others.
  virtual void walk(FlowTableType type, std::uint64_t root, SteeredFrame frame, FlowSteering& steering,
                    LookupTime* time) = 0;
  // A frame is discarded that has cost too much in the firmware's tables.
  virtual void lose() = 0;

 protected:
  ~SwTables() = default;
};

// What encrypts and decrypts, for entries that say so.
class FrameCrypto {
 public:
  // With that object of function f; frame.at becomes when it is done. False: it cannot be.
  virtual bool encrypt(Time now, FunctionId f, const CryptoAction& with, SteeredFrame& frame) = 0;
  // What came of it: the frame's syndrome of that type.
  virtual void decrypt(Time now, FunctionId f, const CryptoAction& with, SteeredFrame& frame) = 0;

 protected:
  ~FrameCrypto() = default;
};

class FlowSteering {
 public:
  // tracer: of the function whose tables these are; null: nobody's, of which nothing is traced.
  explicit FlowSteering(const traces::FunctionTracer* tracer = nullptr) : tracer_(tracer) {}
  // Of frames whose way is to be traced; null: of none.
  const traces::FunctionTracer* tracer() const { return tracer_ && tracer_->paths() ? tracer_ : nullptr; }

  // --- Firmware's side. It has checked what it gives; a false return means it does not exist or is in use.
  FlowTable* create_table(std::uint32_t id, FlowTableType type);
  FlowTable* find_table(std::uint32_t id);
  bool destroy_table(std::uint32_t id);
  // False: the range overlaps another group's or exceeds the table.
  bool create_group(FlowTable& table, const FlowGroup& group);
  bool destroy_group(FlowTable& table, std::uint32_t group);
  // New or in place of the one at that index. False: the index is outside of the entry's group.
  bool set_entry(FlowTable& table, std::uint32_t index, const FlowEntry& entry);
  bool delete_entry(FlowTable& table, std::uint32_t index);
  // Root of a type, of ACLs that of a vport; 0 = none (frames of that direction are then dropped on NIC RX,
  // passed on NIC TX).
  bool set_root(FlowTableType type, std::uint32_t table, std::uint16_t vport = 0);
  std::uint32_t root(FlowTableType type, std::uint16_t vport = 0) const;

  bool create_counter(std::uint32_t id);
  bool destroy_counter(std::uint32_t id);
  FlowCounter* counter(std::uint32_t id);

  // Contexts of actions; firmware gives the ids and counts references.
  std::map<std::uint32_t, std::vector<FieldAction>> modify_headers;
  std::map<std::uint32_t, PacketReformat> reformats;
  std::map<std::uint32_t, FlowSampler> samplers;
  std::map<std::uint32_t, FlowMeters> meters;
  std::map<std::uint32_t, MatchDefiner> definers;
  HeaderArguments header_arguments;
  GeneveOption geneve_option;
  // ACCESS_ASO from a queue of that PD: what stands behind the WQE's control segment. False: refused.
  bool access_meter(std::uint32_t pd, std::uint32_t object, const std::uint8_t* segments, std::size_t len);
  void attach(SwTables& walker) { sw_tables_ = &walker; }
  void attach(const VxlanPorts& ports) { vxlan_ports_ = &ports; }

  // --- The data path's side. Follows tables from the root; loops in what the driver installed end after
  // kMaxHops tables, copies after kMaxCopies.
  static constexpr unsigned kMaxHops = 256;  // at least max_ft_level
  static constexpr std::size_t kMaxCopies = 256;
  // What one frame may cost: groups looked at, entries of one hash beyond the first, and for a destination
  // that changes the frame kChangeWork. Drivers may have any number of each.
  static constexpr unsigned kMaxWork = 1u << 16, kChangeWork = 16;
  // frame: as on the cable, without FCS. The verdict lives until the next call. work: less, if the frame has
  // been through other tables already.
  FlowVerdict& run(Time now, FlowTableType type, SteeredFrame frame, std::uint16_t vport = 0,
                   unsigned work = kMaxWork) {
    return run_from(now, type, root(type, vport), std::move(frame), work);
  }
  // From that table on; 0: there is none.
  FlowVerdict& run_from(Time now, FlowTableType type, std::uint32_t table, SteeredFrame frame,
                        unsigned work = kMaxWork);
  // Of the last run's.
  unsigned work_left() const {
    return sw_tables_ != nullptr ? std::min(work_left_, sw_tables_->work_left()) : work_left_;
  }
  // A frame to be asked about, with what the card knows tunnels by.
  SteeredFrame frame(PacketRef packet) const { return SteeredFrame(std::move(packet), vxlan_ports_); }
  const VxlanPorts* vxlan_ports() const { return vxlan_ports_; }
  // f: whose tables these are.
  void attach(FrameCrypto& crypto, FunctionId f) {
    crypto_ = &crypto;
    function_ = f;
  }
  // What the tables of the E-Switch take of time (SteeredFrame::at); without it, none.
  void attach(LookupTime& time) { time_ = &time; }
  // There is something to be asked: frames of this direction are not simply passed on.
  bool active(FlowTableType type) const { return root(type) != 0; }
  // One of the tables parts the ports of a LAG.
  bool parts_ports() const;
  // LAG: what the tables of the type kPortSelection say of a frame; kNone: nothing.
  enum class PortChoice : std::uint8_t { kNone, kOwn, kOther };
  PortChoice select_port(const SteeredFrame& frame);

  // --- From within run(): what becomes of a frame
  void forward(const FlowDestination& to, SteeredFrame frame);
  void pass(SteeredFrame frame);
  void drop(SteeredFrame frame);
  void count(std::uint32_t counter, const SteeredFrame& frame);
  // False: there is no such meter.
  bool measure(const MeterAction& aso, SteeredFrame& frame);

  // No table is one of the E-Switch's or of a LAG's, and no entry leads there.
  bool of_nic_alone() const;
  void clear();
  template <class Archive>
  void list_state(Archive& a) {
    if constexpr (Archive::kResets)
      clear();
    else
      HCASIM_FIELDS(a, modify_headers, reformats, samplers, meters, definers, header_arguments, geneve_option,
                    tables_, roots_, counters_);
    if constexpr (Archive::kLoads) a.check(rebuild(), "a flow group or entry does not fit into its table");
  }

 private:
  // What follows from the tables. False: they cannot be.
  bool rebuild();
  static bool fits(const FlowTable& table, const FlowGroup& group);
  bool index_group(FlowTable& table, FlowGroup& group);
  static void index_entry(FlowGroup& group, std::uint32_t index, FlowEntry& entry);
  struct Step {
    std::uint32_t table;
    SteeredFrame frame;
  };
  // False: not as much is left, and nothing then.
  static bool spend(unsigned& work, unsigned amount) {
    const bool enough = work >= amount;
    work -= enough ? amount : work;
    return enough;
  }
  // at: goes on by what the look-ups take; null: they take nothing. work: what the frame may cost still; null
  // and nothing left: the entry has not been found.
  const FlowEntry* lookup(const FlowTable& table, const std::uint8_t* params, const SteeredFrame& frame,
                          Time* at, unsigned& work) const;
  static const FlowEntry* split(const FlowTable& table, const FlowGroup& group, const SteeredFrame& frame);
  void visit(Time now, Step step);
  void lose(SteeredFrame frame);
  void miss(const FlowTable& table, SteeredFrame frame);
  bool act(Time now, const FlowEntry& entry, SteeredFrame& frame);
  bool change(const FlowEntry& entry, SteeredFrame& frame);
  void ends(SteeredFrame& frame, traces::FrameEnd how, std::uint32_t to);
  void lead(const FlowDestination& to, SteeredFrame frame);

  const traces::FunctionTracer* tracer_;
  std::map<std::uint32_t, FlowTable> tables_;
  std::map<std::uint32_t, std::uint32_t> roots_;
  std::map<std::uint32_t, FlowCounter> counters_;
  SwTables* sw_tables_ = nullptr;
  const VxlanPorts* vxlan_ports_ = nullptr;
  LookupTime* time_ = nullptr;
  FrameCrypto* crypto_ = nullptr;
  FunctionId function_ = 0;
  std::uint8_t criteria_ = 0;  // of all groups that there have been
  FlowVerdict verdict_;
  std::vector<Step> todo_;  // scratch: steps still to be made
  MatchParam params_{};     // scratch: the match parameters of the frame of that version
  std::uint64_t params_of_ = 0;
  bool params_valid_ = false;
  Time now_ = 0;
  unsigned work_left_ = 0;                         // of the frame that is walked with
  FlowTableType walking_ = FlowTableType::kNicRx;  // the domain that the step being made is in
};

}  // namespace hcasim
#endif
