// SPDX-License-Identifier: BSD-3-Clause
// The objects of the Ethernet data path as the hardware holds them (rqc, tirc, tisc, rqtc of mlx5_ifc.h).
// Firmware writes the attributes; model/eth keeps the run-time state. Send queues are Qp of type kSq, since
// they share numbers, doorbells and WQE fetch with QPs.
#ifndef HCASIM_MODEL_CTX_ETH_H
#define HCASIM_MODEL_CTX_ETH_H

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/crypto/tls.h"
#include "model/ctx/guest_ring.h"
#include "model/eth/headers.h"
#include "model/function/id.h"
#include "model/packet/packet.h"
#include "model/resp/responder_state.h"
#include "model/state/state.h"
#include "model/time.h"
#include "traces/tracer.h"

namespace hcasim {

// rqc.state
enum class RqState : std::uint8_t { kRst = 0, kRdy = 1, kErr = 3 };
// wq.wq_type
enum class WqType : std::uint8_t {
  kLinkedList = 0,
  kCyclic = 1,
  kLinkedListStriding = 2,
  kCyclicStriding = 3
};

// What the next frame of a queue may continue (SHAMPO).
struct SplitSession {
  PacketRef last;        // the frame before
  FrameHeaders headers;  // of that: what its bytes say
  std::uint32_t flow_tag = 0, metadata = 0;
  Time due = 0;
  std::uint32_t mss = 0;                 // data of the first
  std::optional<std::uint16_t> id_step;  // how IPv4's identification goes on, from the second on
  prm::CqeTls tls = prm::CqeTls::kNotDecrypted;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, last, flow_tag, metadata, due, mss, id_step);
    HCASIM_FIELDS_SINCE(17, a, tls);
    if constexpr (Archive::kLoads) {
      a.check(last && last->kind == PacketKind::kEthernet, "a session has a frame");
      headers = parse_frame(last->frame(), last->frame_len);
    }
  }
};

// Headers apart from data (wq.shampo_enable, rqc.shampo_*).
struct HeaderSplit {
  static constexpr unsigned kLogBaseEntry = 6, kLogBaseReservation = 12;  // what the fields of a wq add to
  bool merges = false;                                                    // match criteria: extended
  std::uint32_t mkey = 0;                                                 // of the buffer of headers
  unsigned log_entries = 0;                                               // in it
  unsigned log_entry_size = 6;                                            // bytes of an entry, log2
  unsigned log_reservation = 0;                                           // bytes of a reservation, log2
  unsigned log_frames = 0;                                                // of a reservation, at most
  unsigned log_align = 0;  // bytes, log2: where data begin that do not continue others
  Time timeout = 0;

  // Run-time state
  std::uint16_t head = 0;    // entries used, free-running
  std::uint32_t cursor = 0;  // bytes of the WQE used ...
  std::uint32_t end = 0;     // ... and where the reservation ends
  std::uint32_t frames = 0;  // in the reservation
  std::optional<SplitSession> session;

  void restart() {
    head = 0;
    session.reset();
  }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, merges, mkey, log_entries, log_entry_size, log_reservation, log_frames, log_align,
                  timeout, head, cursor, end, frames, session);
  }
};

struct Rq {
  std::uint32_t rqn = 0;
  FunctionId function = 0;
  // Attributes
  RqState state = RqState::kRst;
  WqType type = WqType::kCyclic;
  bool keep_vlan = false;      // rqc.vsd: VLAN strip disabled
  bool scatter_fcs = false;    // four bytes of FCS behind the frame
  bool flush_in_error = true;  // a CQE for each WQE that is posted when it fails
  bool use_rmp = false;        // rqc.mem_rq_type 1: WQEs come from an RMP (Srq)
  std::uint32_t rmpn = 0;
  std::uint32_t cqn = 0, pd = 0;
  bool reserved_lkey = false;  // rqc.rlky, of the kernel's queues: its WQEs may use kReservedKey
  std::uint32_t user_index = 0xffffff;
  std::uint8_t counter_set = 0;
  GuestRing ring;
  unsigned log_size = 0;    // WQEs
  unsigned log_stride = 4;  // bytes of a WQE, log2
  std::uint64_t dbr_addr = 0;
  // Striding types
  static constexpr unsigned kMaxLogStrides = 16, kMaxLogStrideSize = 13;
  unsigned log_strides = 9;      // strides a WQE, log2 (wq.log_wqe_num_of_strides + 9)
  unsigned log_stride_size = 6;  // bytes of a stride, log2 (wq.log_wqe_stride_size + 6)
  bool two_byte_shift = false;   // two bytes before each frame, so that its IP header is aligned
  std::optional<HeaderSplit> split;

  // Run-time state
  std::uint16_t producer = 0;  // last read from the DBR
  std::uint16_t consumer = 0;  // WQEs begun or taken, free-running
  std::uint16_t head = 0;      // linked list: index of the WQE to take next
  RecvWqe wqe;                 // striding: the WQE in use
  ReadAhead ahead;             // cyclic
  std::uint32_t next_stride = 0;
  std::uint64_t epoch = next_epoch();

  traces::Subject subject() const { return {function, rqn}; }
  bool reservations_fit(const HeaderSplit& s) const {
    return s.log_reservation >= log_stride_size && s.log_reservation <= log_strides + log_stride_size;
  }
  bool striding() const { return type == WqType::kLinkedListStriding || type == WqType::kCyclicStriding; }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, rqn, state, type, keep_vlan, scatter_fcs, use_rmp, rmpn, cqn, pd, user_index,
                  counter_set, ring, log_size, log_stride, dbr_addr, log_strides, log_stride_size,
                  two_byte_shift, split, producer, consumer, head, wqe, ahead, next_stride, epoch);
    HCASIM_FIELDS_SINCE(15, a, flush_in_error);
    HCASIM_FIELDS_SINCE(21, a, reserved_lkey);
    if constexpr (Archive::kLoads) {
      a.check(ahead.fits(log_stride), "what was read ahead has no bytes");
      a.check(log_strides <= kMaxLogStrides && log_stride_size <= kMaxLogStrideSize,
              "no WQE has such strides");
      a.check(!split || reservations_fit(*split), "reservations do not fit into a WQE");
    }
  }
};

// tirc.rx_hash_field_select
struct HashFields {
  bool ipv6 = false, udp = false;  // l3_prot_type, l4_prot_type
  std::uint32_t selected = 0;      // 1 src IP, 2 dst IP, 4 L4 sport, 8 L4 dport, 16 IPsec SPI

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, ipv6, udp, selected);
  }
};

// Large receive offload: tirc.packet_merge_mask, lro_timeout_period_usecs, lro_max_ip_payload_size.
struct LroParams {
  bool ipv4 = false, ipv6 = false;
  Time timeout = 0;
  std::uint32_t max_ip_payload = 0;  // bytes

  bool on() const { return ipv4 || ipv6; }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, ipv4, ipv6, timeout, max_ip_payload);
  }
};

struct Tir {
  std::uint32_t tirn = 0;
  bool indirect = false;
  std::uint32_t rqn = 0;     // direct
  std::uint32_t rqt = 0;     // indirect
  std::uint8_t hash_fn = 0;  // 0 none, 1 inverted XOR8, 2 Toeplitz
  bool symmetric = false;
  std::array<std::uint8_t, 40> key{};
  HashFields outer, inner;
  // tirc.self_lb_block: 1 unicast, 2 multicast. In spite of its name a bit that is set lets frames of the own
  // transport domain in; without, they are blocked (mlx5: TIR_ALLOW_SELF_LB_UC, the loopback self-test).
  std::uint8_t self_lb_allow = 0;
  std::uint32_t transport_domain = 0;
  LroParams lro;
  std::optional<TlsRx> tls;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, tirn, indirect, rqn, rqt, hash_fn, symmetric, key, outer, inner, self_lb_allow,
                  transport_domain, lro, tls);
  }
};

struct Tis {
  std::uint32_t tisn = 0;
  std::uint8_t prio = 0;  // as tisc has it: twice the priority
  std::uint32_t transport_domain = 0, pd = 0;
  PortAffinity affinity;
  std::optional<TlsTx> tls;
  std::uint32_t underlay = 0;  // IPoIB: the UD QP in whose name what is sent leaves (underlay_qpn); 0: none

  std::uint8_t priority() const { return static_cast<std::uint8_t>(prio >> 1 & 7); }

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, tisn, prio, transport_domain, pd, affinity, tls);
    HCASIM_FIELDS_SINCE(22, a, underlay);
  }
};

struct Rqt {
  std::uint32_t rqtn = 0;
  std::uint32_t max_size = 1;
  std::vector<std::uint32_t> rqs;  // a power of two

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, rqtn, max_size, rqs);
  }
};

// All of them by number.
// Frames that came in for the function.
struct FrameCounters {
  std::uint64_t packets = 0, bytes = 0, multicast = 0, broadcast = 0;
  std::uint64_t no_rule = 0, dropped = 0, out_of_buffer = 0, self_loopback = 0, too_long = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, packets, bytes, multicast, broadcast, no_rule, dropped, out_of_buffer, self_loopback,
                  too_long);
  }
};

class EthTable {
 public:
  FrameCounters counters;
  std::map<std::uint32_t, Rq> rqs;
  std::map<std::uint32_t, Tir> tirs;
  std::map<std::uint32_t, Tis> tises;
  std::map<std::uint32_t, Rqt> rqts;
  template <class Map>
  static typename Map::mapped_type* find(Map& map, std::uint32_t number) {
    const auto it = map.find(number);
    return it == map.end() ? nullptr : &it->second;
  }
  void clear() { reset_state(*this); }
  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, rqs, tirs, tises, rqts, counters);
  }
};

}  // namespace hcasim
#endif
