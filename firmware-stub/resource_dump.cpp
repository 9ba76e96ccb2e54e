// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/resource_dump.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"

namespace hcasim::fw {

namespace {

using Bytes = std::vector<std::uint8_t>;

// segment_type of what is no resource (mstflint, resource_dump_segments_be.h).
enum : std::uint16_t { kCommand = 0xfffa, kTerminate = 0xfffb, kError = 0xfffc, kInfo = 0xfffe };
constexpr std::uint32_t kDumpVersion = 1;
constexpr std::size_t kNameBytes = 16, kErrorText = 32;
constexpr std::size_t kResourceHead = prm::resource_dump_resource_segment::bytes;

std::uint8_t* append(Bytes& to, std::size_t bytes, std::uint16_t type) {
  using header = prm::resource_dump_segment_header;
  const std::size_t at = to.size();
  to.resize(at + bytes);
  prm::set<header::length_dw>(&to[at], static_cast<std::uint32_t>(bytes / 4));
  prm::set<header::segment_type>(&to[at], type);
  return &to[at];
}

void append_resource(Bytes& to, std::uint16_t type, std::uint32_t index1, std::uint32_t index2,
                     const Bytes& payload) {
  using r = prm::resource_dump_resource_segment;
  std::uint8_t* segment = append(to, kResourceHead + (payload.size() + 3) / 4 * 4, type);
  prm::set<r::index1>(segment, index1);
  prm::set<r::index2>(segment, index2);
  std::copy(payload.begin(), payload.end(), segment + kResourceHead);
}

// ---- Contexts: as the commands that query them answer ----

template <class Number, class Out>
std::optional<Bytes> query(Firmware& fw, Time now, Handler handler, std::uint16_t opcode,
                           std::size_t in_bytes, std::uint32_t number) {
  Command cmd;
  cmd.opcode = opcode;
  cmd.now = now;
  cmd.in.assign(in_bytes, 0);
  cmd.in_len = in_bytes;
  cmd.out.assign(Out::bytes, 0);
  cmd.out_len = Out::bytes;
  prm::set<Number>(cmd.in.data(), number);
  if (handler(fw, cmd) != Syndrome::kOk) return {};
  return std::move(cmd.out);
}

#define HCASIM_QUERY(name, opcode, number) \
  query<prm::name##_in::number, prm::name##_out>(fw, now, name, prm::op::opcode, prm::name##_in::bytes, n)

template <class Context>
void keep_context(std::optional<Bytes>& answer, std::vector<Bytes>& found) {
  if (answer)
    found.emplace_back(prm::ptr<Context>(answer->data()), prm::ptr<Context>(answer->data()) + Context::bytes);
}

// A queue that sends or receives: numbers of RQs are a space of their own, so there may be two.
std::vector<Bytes> queues(Firmware& fw, Time now, std::uint32_t n) {
  std::vector<Bytes> found;
  auto answer = HCASIM_QUERY(query_qp, QUERY_QP, qpn);
  keep_context<prm::query_qp_out::qpc>(answer, found);
  answer = HCASIM_QUERY(query_sq, QUERY_SQ, sqn);
  keep_context<prm::query_sq_out::sq_context>(answer, found);
  answer = HCASIM_QUERY(query_dct, QUERY_DCT, dctn);
  keep_context<prm::query_dct_out::dct_context_entry>(answer, found);
  answer = HCASIM_QUERY(query_rq, QUERY_RQ, rqn);
  keep_context<prm::query_rq_out::rq_context>(answer, found);
  return found;
}
std::vector<Bytes> cqs(Firmware& fw, Time now, std::uint32_t n) {
  std::vector<Bytes> found;
  auto answer = HCASIM_QUERY(query_cq, QUERY_CQ, cqn);
  keep_context<prm::query_cq_out::cq_context>(answer, found);
  return found;
}
std::vector<Bytes> eqs(Firmware& fw, Time now, std::uint32_t n) {
  std::vector<Bytes> found;
  auto answer = HCASIM_QUERY(query_eq, QUERY_EQ, eq_number);
  keep_context<prm::query_eq_out::eq_context_entry>(answer, found);
  return found;
}
std::vector<Bytes> srqs(Firmware& fw, Time now, std::uint32_t n) {
  std::vector<Bytes> found;
  auto answer = HCASIM_QUERY(query_srq, QUERY_SRQ, srqn);
  keep_context<prm::query_srq_out::srq_context_entry>(answer, found);
  answer = HCASIM_QUERY(query_xrc_srq, QUERY_XRC_SRQ, xrc_srqn);
  keep_context<prm::query_xrc_srq_out::xrc_srq_context_entry>(answer, found);
  answer = HCASIM_QUERY(query_rmp, QUERY_RMP, rmpn);
  keep_context<prm::query_rmp_out::rmp_context>(answer, found);
  answer = HCASIM_QUERY(query_xrq, QUERY_XRQ, xrqn);
  keep_context<prm::query_xrq_out::xrq_context>(answer, found);
  return found;
}

// Whole answers of the commands.
std::vector<Bytes> whole(std::optional<Bytes> answer) {
  std::vector<Bytes> found;
  if (answer) found.push_back(std::move(*answer));
  return found;
}
std::vector<Bytes> answer_of_query_qp(Firmware& fw, Time now, std::uint32_t n) {
  return whole(HCASIM_QUERY(query_qp, QUERY_QP, qpn));
}
std::vector<Bytes> answer_of_query_cq(Firmware& fw, Time now, std::uint32_t n) {
  return whole(HCASIM_QUERY(query_cq, QUERY_CQ, cqn));
}
std::vector<Bytes> answer_of_query_mkey(Firmware& fw, Time now, std::uint32_t n) {
  return whole(HCASIM_QUERY(query_mkey, QUERY_MKEY, mkey_index));
}
#undef HCASIM_QUERY

// ---- Engines: what they have counted, each a name of 16 characters and 64 bits ----
// They work for all functions: a virtual one is told of its own packets alone. (It has these segments all the
// same: where one is missing, the reporters of Linux 6.1 give nothing of a queue.)

void count(Bytes& to, const char* name, std::uint64_t value) {
  const std::size_t at = to.size();
  to.resize(at + kNameBytes + 8);
  std::memcpy(&to[at], name, strnlen(name, kNameBytes));
  prm::store64(&to[at + kNameBytes], value);
}

using Counts = std::array<VportTraffic::Count, VportTraffic::kCasts>;

std::vector<Bytes> packets_of(const char* packets, const char* octets, const Counts& rdma,
                              const Counts& eth) {
  VportTraffic::Count sum;
  for (const Counts* counts : {&rdma, &eth})
    for (const VportTraffic::Count& c : *counts) {
      sum.packets += c.packets;
      sum.octets += c.octets;
    }
  Bytes list;
  count(list, packets, sum.packets);
  count(list, octets, sum.octets);
  return {list};
}

std::vector<Bytes> transmit_side(Firmware& fw, Time, std::uint32_t) {
  const VportTraffic& own = fw.function().vport().traffic;
  if (fw.options().vf) return packets_of("tx_packets", "tx_bytes", own.tx_rdma, own.tx_eth);
  Device& d = fw.device();
  Bytes list;
  count(list, "doorbells", d.scheduler().doorbells());
  count(list, "bad_doorbells", d.bad_doorbells());
  count(list, "wqes", d.requester().wqes());
  count(list, "retransmits", d.requester().retransmits());
  count(list, "timeouts", d.requester().timeouts());
  count(list, "dma_read_bytes", d.dma().bytes_read());
  count(list, "dma_errors", d.dma().errors());
  count(list, "tx_packets", d.port().counters().tx_packets);
  count(list, "tx_bytes", d.port().counters().tx_bytes);
  count(list, "tx_discards", d.port().counters().tx_discards);
  count(list, "tx_errors", d.port().counters().tx_errors);
  return {list};
}
std::vector<Bytes> receive_side(Firmware& fw, Time, std::uint32_t) {
  const VportTraffic& own = fw.function().vport().traffic;
  if (fw.options().vf) return packets_of("rx_packets", "rx_bytes", own.rx_rdma, own.rx_eth);
  Device& d = fw.device();
  Bytes list;
  count(list, "rx_packets", d.port().counters().rx_packets);
  count(list, "rx_bytes", d.port().counters().rx_bytes);
  count(list, "rx_errors", d.port().counters().rx_errors);
  count(list, "rx_dropped", d.port().counters().rx_dropped);
  count(list, "completions", d.cqs().completions());
  count(list, "cq_overruns", d.cqs().overruns());
  count(list, "interrupts", d.eqs().interrupts());
  count(list, "eq_overruns", d.eqs().overruns());
  count(list, "dma_write_bytes", d.dma().bytes_written());
  count(list, "dma_errors", d.dma().errors());
  return {list};
}

// ---- Rings ----

constexpr std::uint32_t kWqebb = 64, kEqe = 64;

std::optional<RingDump> send_ring(Firmware& fw, std::uint32_t n) {
  const Qp* qp = fw.function().qps().find(n);
  if (qp == nullptr || !qp->has_sq) return {};
  return RingDump{qp->ring, qp->sq_offset, kWqebb, 1u << qp->log_sq_size};
}
std::optional<RingDump> receive_ring(Firmware& fw, std::uint32_t n) {
  const Qp* qp = fw.function().qps().find(n);
  if (qp != nullptr && qp->has_rq)
    return RingDump{qp->ring, 0, 1u << qp->log_rq_stride, 1u << qp->log_rq_size};
  const Rq* rq = EthTable::find(fw.function().eth().rqs, n);
  if (rq == nullptr || rq->use_rmp) return {};
  return RingDump{rq->ring, 0, 1u << rq->log_stride, 1u << rq->log_size};
}
std::optional<RingDump> srq_ring(Firmware& fw, std::uint32_t n) {
  const Srq* srq = fw.function().qps().find_srq(n);
  if (srq == nullptr) return {};
  return RingDump{srq->ring, 0, 1u << srq->log_stride, 1u << srq->log_size};
}
std::optional<RingDump> cq_ring(Firmware& fw, std::uint32_t n) {
  const Cq* cq = fw.function().cqs().find(n);
  if (cq == nullptr) return {};
  return RingDump{cq->ring, 0, cq->cqe_size, 1u << cq->log_size};
}
std::optional<RingDump> eq_ring(Firmware& fw, std::uint32_t n) {
  const Eq* eq = fw.function().eqs().find(n);
  if (eq == nullptr) return {};
  return RingDump{eq->ring, 0, kEqe, 1u << eq->log_size};
}

// ---- The menu ----

struct Row {
  std::uint16_t type;
  const char* name;    // as Linux knows it (linux/mlx5/rsc_dump.h)
  const char* index1;  // null: there is only one
  const char* index2;
  std::vector<Bytes> (*contexts)(Firmware&, Time, std::uint32_t);
  std::optional<RingDump> (*ring)(Firmware&, std::uint32_t);
};
// Types are this firmware's own: whoever asks finds them here by their names.
constexpr Row kRows[] = {
    {0x1000, "FULL_QPC", "QPN/SQN/RQN", nullptr, queues, nullptr},
    {0x1001, "FULL_CQC", "CQN", nullptr, cqs, nullptr},
    {0x1002, "FULL_EQC", "EQN", nullptr, eqs, nullptr},
    {0x1003, "FULL_SRQC", "SRQN", nullptr, srqs, nullptr},
    {0x1010, "SND_BUFF", "QPN/SQN", "WQEBB", nullptr, send_ring},
    {0x1011, "RCV_BUFF", "QPN/RQN", "WQE", nullptr, receive_ring},
    {0x1012, "SRQ_BUFF", "SRQN", "WQE", nullptr, srq_ring},
    {0x1013, "CQ_BUFF", "CQN", "CQE", nullptr, cq_ring},
    {0x1014, "EQ_BUFF", "EQN", "EQE", nullptr, eq_ring},
    {0x1020, "SX_SLICE_ALL", nullptr, nullptr, transmit_side, nullptr},
    {0x1021, "RX_SLICE_ALL", nullptr, nullptr, receive_side, nullptr},
    {0x1030, "PRM_QUERY_QP", "QPN", nullptr, answer_of_query_qp, nullptr},
    {0x1031, "PRM_QUERY_CQ", "CQN", nullptr, answer_of_query_cq, nullptr},
    {0x1032, "PRM_QUERY_MKEY", "key index", nullptr, answer_of_query_mkey, nullptr},
};

void put_name(std::uint8_t* at, const char* name) {
  if (name != nullptr) std::memcpy(at, name, strnlen(name, kNameBytes));
}

void append_error(Bytes& to, Syndrome why) {
  using e = prm::resource_dump_error_segment;
  std::uint8_t* segment = append(to, e::bytes, kError);
  prm::set<e::syndrome_id>(segment, static_cast<std::uint32_t>(why) & 0xffff);
  const char* text = text_of(why);
  std::memcpy(segment + e::error::bit_off / 8, text, strnlen(text, kErrorText));
}

}  // namespace

ResourceDump::ResourceDump(Firmware& fw, Time now, const Request& request)
    : fw_(fw), now_(now), request_(request) {
  const bool all_kinds = request_.segment == kMenu;
  const Row* row = std::find_if(std::begin(kRows), std::end(kRows),
                                [this](const Row& r) { return r.type == request_.segment; });
  // One object at a time; of a ring as many elements as wanted.
  const bool has_elements = row != std::end(kRows) && row->index2 != nullptr;
  if ((row == std::end(kRows) && !all_kinds) || request_.count1 > 1 ||
      (request_.count2 != 0 && !has_elements)) {
    status_ = Syndrome::kRegisterValue;
    return;
  }
  begin();
  if (all_kinds) {
    menu();
  } else if (row->contexts != nullptr) {
    const auto found = row->contexts(fw_, now_, request_.index1);
    for (const Bytes& context : found) append_resource(head_, row->type, request_.index1, 0, context);
    if (found.empty()) append_error(head_, Syndrome::kDumpNoObject);
  } else if (auto ring = row->ring(fw_, request_.index1); !ring) {
    append_error(head_, Syndrome::kDumpNoObject);
  } else if (request_.index2 >= ring->elements) {
    append_error(head_, Syndrome::kDumpNoElement);
  } else {
    ring_ = std::move(*ring);
    first_ = request_.index2;
    const std::uint32_t left = ring_.elements - first_;
    const std::uint32_t wanted = std::max<std::uint32_t>(1, request_.count2);
    count_ = request_.count2 == kAll ? left : std::min(wanted, left);
  }
  append(tail_, prm::resource_dump_terminate_segment::bytes, kTerminate);
}

void ResourceDump::begin() {
  using info = prm::resource_dump_info_segment;
  using command = prm::resource_dump_command_segment;
  std::uint8_t* segment = append(head_, info::bytes, kInfo);
  prm::set<info::dump_version>(segment, kDumpVersion);
  prm::set<info::hw_version>(segment, fw_.options().generation->hw_id);
  prm::set<info::fw_version>(segment, fw_.image().running().packed());
  segment = append(head_, command::bytes, kCommand);
  prm::set<command::segment_called>(segment, request_.segment);
  prm::set<command::vhca_id>(segment, fw_.options().vhca_id);
  prm::set<command::index1>(segment, request_.index1);
  prm::set<command::index2>(segment, request_.index2);
  prm::set<command::num_of_obj1>(segment, request_.count1);
  prm::set<command::num_of_obj2>(segment, request_.count2);
}

void ResourceDump::menu() {
  using m = prm::resource_dump_menu_segment;
  using r = prm::resource_dump_menu_record;
  std::uint8_t* segment = append(head_, m::bytes + std::size(kRows) * r::bytes, kMenu);
  prm::set<m::num_of_records>(segment, std::size(kRows));
  std::uint8_t* record = segment + m::bytes;
  for (const Row& row : kRows) {
    prm::set<r::support_index1>(record, row.index1 != nullptr ? 1 : 0);
    prm::set<r::must_have_index1>(record, row.index1 != nullptr ? 1 : 0);
    prm::set<r::support_index2>(record, row.index2 != nullptr ? 1 : 0);
    prm::set<r::support_num_of_obj2>(record, row.index2 != nullptr ? 1 : 0);
    prm::set<r::num_of_obj2_supports_all>(record, row.index2 != nullptr ? 1 : 0);
    prm::set<r::segment_type>(record, row.type);
    put_name(record + r::segment_name::bit_off / 8, row.name);
    put_name(record + r::index1_name::bit_off / 8, row.index1);
    put_name(record + r::index2_name::bit_off / 8, row.index2);
    record += r::bytes;
  }
}

std::uint64_t ResourceDump::element_bytes() const { return kResourceHead + ring_.element; }

bool ResourceDump::element(std::uint64_t n, Bytes& out) {
  Bytes payload(ring_.element);
  std::uint64_t at = ring_.start + (first_ + n) * ring_.element;
  for (std::size_t done = 0; done < payload.size();) {
    std::uint64_t address = 0, run = 0;
    if (!ring_.ring.locate(at + done, address, run)) return false;
    const std::size_t len = std::min<std::uint64_t>(run, payload.size() - done);
    if (!fw_.device()
             .dma()
             .read(now_, address, &payload[done], len, Space::kHost, WriteOwner(fw_.function().id()))
             .ok)
      return false;
    done += len;
  }
  out.clear();
  append_resource(out, request_.segment, request_.index1, static_cast<std::uint32_t>(first_ + n), payload);
  return true;
}

bool ResourceDump::read(std::uint64_t from, std::uint8_t* out, std::size_t len) {
  Bytes one;
  while (len != 0) {
    const std::uint8_t* src = nullptr;
    std::size_t n = 0;
    if (from < head_.size()) {
      src = head_.data() + from;
      n = head_.size() - from;
    } else if (const std::uint64_t in_ring = from - head_.size(); in_ring < ring_bytes()) {
      if (!element(in_ring / element_bytes(), one)) return false;
      const std::size_t skip = in_ring % element_bytes();
      src = one.data() + skip;
      n = one.size() - skip;
    } else {
      const std::uint64_t in_tail = in_ring - ring_bytes();
      if (in_tail >= tail_.size()) return false;
      src = tail_.data() + in_tail;
      n = tail_.size() - in_tail;
    }
    n = std::min(n, len);
    std::memcpy(out, src, n);
    out += n;
    from += n;
    len -= n;
  }
  return true;
}

}  // namespace hcasim::fw
