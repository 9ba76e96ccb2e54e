// SPDX-License-Identifier: BSD-3-Clause
// The Ethernet side of the bare driver: send and receive queues of frames, TIRs, RSS tables, flow steering.
#ifndef HCASIM_DRIVER_BARE_ETH_H
#define HCASIM_DRIVER_BARE_ETH_H

#include "driver/bare/cq.h"
#include "driver/bare/mr.h"
#include "driver/bare/qp.h"
#include "driver/bare/srq.h"

namespace hcasim::bare {

using prm::WqeOp;

using Frame = std::vector<std::uint8_t>;
using MatchParam = std::array<std::uint8_t, prm::fte_match_param::bytes>;

// An object that one command creates and another destroys. Functions make_* throw BareError when the
// device refuses, try_* return what it says.
class EthObject {
 public:
  EthObject(Device& device, std::uint32_t number, std::function<CommandResult()> destroy);
  ~EthObject();
  EthObject(EthObject&& o) noexcept;
  EthObject& operator=(EthObject&&) = delete;
  std::uint32_t number() const { return number_; }
  CommandResult destroy();

 private:
  Device* device_;
  std::uint32_t number_;
  std::uint64_t epoch_;
  bool live_ = true;
  std::function<CommandResult()> destroy_;
};

EthObject make_transport_domain(Device& device);
// underlay: InfiniBand, the QP in whose name what is sent leaves (IpoibQp).
EthObject make_tis(Device& device, std::uint32_t transport_domain, unsigned priority = 0,
                   std::uint32_t underlay = 0);
EthObject make_rqt(Device& device, const std::vector<std::uint32_t>& rqns);

// tirc.rx_hash_field_selector
enum : std::uint32_t { kHashSrcIp = 1, kHashDstIp = 2, kHashSport = 4, kHashDport = 8 };

struct TirSpec {
  std::uint32_t rqn = 0;  // not 0: direct TIR
  std::uint32_t rqt = 0;
  std::uint32_t transport_domain = 0;
  unsigned hash_fn = 2;  // 1 inverted XOR8, 2 Toeplitz
  bool ipv6 = false, udp = false, symmetric = false;
  std::uint32_t fields = kHashSrcIp | kHashDstIp | kHashSport | kHashDport;
  std::array<std::uint8_t, 40> key{};
  // tirc.self_lb_block: 1 unicast, 2 multicast of the own transport domain is received.
  unsigned self_lb_allow = 3;
  // Large receive offload: 1 IPv4, 2 IPv6; period; the most IP payload in units of 256 bytes.
  unsigned lro = 0, lro_period_us = 32, lro_max = 255;
};
// icm: if not null, receives the address of create_tir_out.
EthObject make_tir(Device& device, const TirSpec& spec, std::uint64_t* icm = nullptr);
// Changes the receive offload of a TIR to what the specification says.
CommandResult set_lro(Device& device, std::uint32_t tirn, const TirSpec& spec);

// Flow steering; type: flow_table_type of the commands, NIC RX by default.
enum : unsigned {
  kNicRxTable = 0,
  kNicTxTable = 1,
  kSnifferRxTable = 5,
  kSnifferTxTable = 6,
  kRdmaRxTable = 7,
  kRdmaTxTable = 8
};
struct FlowDest {
  enum Type : unsigned { kVport = 0, kTable = 1, kTir = 2, kSampler = 6, kUplink = 8 } type;
  std::uint32_t id;
  int owner = -1;  // a vport's switch by its manager (vhca_id); -1: not said
};
// changes_lengths: its entries may reformat packets (reformat_en; receive tables: decap_en too). terminates:
// termination_table.
EthObject make_flow_table(Device& device, unsigned log_size, unsigned level = 0, unsigned type = kNicRxTable,
                          bool changes_lengths = false, bool terminates = false);
// underlay: InfiniBand, the QP whose root it is.
CommandResult set_flow_root(Device& device, std::uint32_t table, unsigned type = kNicRxTable,
                            std::uint32_t underlay = 0);
EthObject make_flow_group(Device& device, std::uint32_t table, std::uint32_t first, std::uint32_t last,
                          unsigned criteria = 0, const MatchParam& mask = {}, unsigned type = kNicRxTable);
struct FlowRule {
  std::uint32_t table = 0, group = 0, index = 0;
  MatchParam value{};
  std::vector<FlowDest> to;  // none: drop, unless `allow`
  std::uint32_t tag = 0;
  unsigned type = kNicRxTable;
  bool allow = false;
  // Further actions and their arguments.
  unsigned action = 0;
  std::uint32_t counter = 0, modify = 0, reformat = 0;
  std::uint32_t crypto = 0;  // object of IPsec or MACsec; PSP has none
  enum CryptoType : std::uint8_t { kIpsec = 0, kMacsec = 1, kPsp = 2 } crypto_type = kIpsec;
  std::uint16_t push_tpid = 0, push_tci = 0;
  struct Meter {
    std::uint32_t object = 0;  // 0: none
    // Of the object's meters; register that gets the colour; the colour that frames come with: 0 red, 1
    // yellow, 2 green.
    unsigned index = 0, reg = 0, color = 2;
  } meter;
};
CommandResult try_flow(Device& device, const FlowRule& rule);
EthObject make_flow(Device& device, const FlowRule& rule);

// Contexts of actions. Items of a list of modifications: set_action_in, add_action_in or copy_action_in.
using FieldItem = std::array<std::uint8_t, prm::set_action_in::bytes>;
FieldItem set_field(std::uint32_t field, std::uint32_t value, unsigned offset = 0, unsigned length = 0);
FieldItem add_field(std::uint32_t field, std::uint32_t value);
FieldItem copy_field(std::uint32_t from, std::uint32_t to, unsigned length = 0, unsigned from_offset = 0,
                     unsigned to_offset = 0);
CommandResult try_modify_header(Device& device, const std::vector<FieldItem>& items,
                                unsigned type = kNicRxTable);
EthObject make_modify_header(Device& device, const std::vector<FieldItem>& items,
                             unsigned type = kNicRxTable);
struct Reformat {
  unsigned type = 0, anchor = 0, offset = 0;  // REFORMAT_TYPE_*; insert, remove: REFORMAT_CONTEXT_ANCHOR_*
  Frame data;
  unsigned size = 0;  // if it differs from the data's
};
CommandResult try_reformat(Device& device, const Reformat& reformat);
EthObject make_reformat(Device& device, const Reformat& reformat);
EthObject make_flow_counter(Device& device);
struct Counted {
  std::uint64_t packets = 0, bytes = 0;
};
Counted query_flow_counter(Device& device, std::uint32_t counter);

// A queue of frames to send.
struct EthWr {
  WqeOp op = WqeOp::kSend;
  std::uint8_t opmod = 0;
  std::vector<std::uint8_t> headers;  // inline headers of the Ethernet segment
  std::vector<std::uint8_t> inline_data;
  std::vector<Sge> sges;  // kEnhancedMpsw: one frame per element
  std::uint8_t cs_flags = 0;
  std::uint16_t mss = 0;  // bytes of payload of each frame that it is cut into; 0: it is one frame
  std::uint32_t metadata = 0;
  std::vector<std::uint8_t> trailer;  // of the outer IP packet ...
  bool trailer_of_l4 = false;         // ... and of its UDP
  std::uint32_t tis = 0;              // by which it leaves, if not by that of the queue
  // Where headers are (swp_*), for queues that may say so: offsets in bytes, even; 0: not said.
  struct Given {
    unsigned outer_l3 = 0, outer_l4 = 0, inner_l3 = 0, inner_l4 = 0;
    std::uint8_t flags = 0;  // EthSeg::kInnerIpv6 ...
  } given;
  std::optional<Av> to;               // InfiniBand: what the WQE says of where it goes
  std::optional<std::uint16_t> vlan;  // tag to insert; headers must be empty
  // Inline data among the sges: behind so many of them.
  struct Piece {
    std::size_t behind = 0;
    std::vector<std::uint8_t> bytes;
  };
  std::vector<Piece> pieces;
  bool signaled = true;
  bool only_first_error = false;  // not signaled: no CQE if it is flushed
};

class Sq {
 public:
  // departures: not 0: the CQ that is told when each frame leaves the port.
  Sq(Device& device, const Pd& pd, Cq& cq, std::uint32_t tis, unsigned log_size = 7,
     bool gives_headers = false, std::uint32_t departures = 0);
  ~Sq();
  Sq(const Sq&) = delete;
  Sq& operator=(const Sq&) = delete;

  std::uint32_t sqn() const { return sqn_; }
  std::uint16_t next_index() const { return pi_; }  // the counter of the next WQE
  // Returns the WQE's counter. The caller ensures that the ring has room.
  std::uint16_t post(const EthWr& wr, bool ring = true);
  // Posts arbitrary bytes as a WQE, at least 16; sets the queue number. wqebbs: advance of the counter.
  std::uint16_t post_raw(std::vector<std::uint8_t> wqe, unsigned wqebbs, bool ring = true);
  void ring_doorbell();
  // The same with the last WQE itself (BlueFlame).
  void ring_blueflame();
  void set_dbr(std::uint32_t value) const { dbr_.set(1, value); }
  // sqc.state: 0 RST, 1 RDY, 3 ERR
  CommandResult modify(unsigned from, unsigned to);
  unsigned state();
  CommandResult destroy();

 private:
  Device& device_;
  unsigned log_size_;
  Ring ring_;
  Dbr dbr_;
  std::uint32_t sqn_ = 0;
  std::uint64_t epoch_;
  std::uint16_t pi_ = 0, last_ = 0;
  unsigned last_wqebbs_ = 0, bf_offset_ = 0;
  bool live_ = false;
};

struct RqOptions {
  unsigned log_size = 6;    // WQEs
  unsigned log_stride = 4;  // bytes, log2
  unsigned type = 1;        // wq_type: 1 cyclic, 2 linked list striding, 3 cyclic striding
  // Types 2 and 3: strides of a WQE, bytes of a stride, log2.
  unsigned log_strides = 9, log_stride_size = 6;
  bool two_byte_shift = false, keep_vlan = true, scatter_fcs = false, flush_in_error = true;
  bool reserved_lkey = false;                            // rqc.rlky
  std::uint32_t counter_set = 0, user_index = 0xffffff;  // Q counter; what CQEs of version 1 name it by
  RingLayout ring;
  // Headers apart from data (SHAMPO), of type 2. Logarithms: entries of the headers' buffer, bytes of an
  // entry and of a reservation, frames in that.
  bool split = false;
  std::uint32_t headers_mkey = 0;
  unsigned log_headers = 6, log_header = 8, log_reservation = 12, log_frames = 3;
  unsigned match = 1, align = 1, timeout_us = 1024;
};

// A receive queue of frames.
class EthRq {
 public:
  EthRq(Device& device, const Pd& pd, Cq& cq, const RqOptions& options = {});
  ~EthRq();
  EthRq(const EthRq&) = delete;
  EthRq& operator=(const EthRq&) = delete;

  std::uint32_t rqn() const { return rqn_; }
  std::uint16_t post(const std::vector<Sge>& sges, bool ring = true);
  std::uint8_t* wqe(std::uint16_t index) const;
  void ring_doorbell() const { dbr_.set(0, pi_); }
  void set_dbr(std::uint32_t value) const { dbr_.set(0, value); }
  CommandResult modify(unsigned from, unsigned to);
  unsigned state();
  CommandResult destroy();

 private:
  bool has_next() const { return options_.type != 1; }

  Device& device_;
  RqOptions options_;
  Ring ring_;
  Dbr dbr_;
  std::uint32_t rqn_ = 0;
  std::uint64_t epoch_;
  std::uint16_t pi_ = 0;
  bool live_ = false;
};

}  // namespace hcasim::bare
#endif
