// SPDX-License-Identifier: BSD-3-Clause
// Steering by software as its user does it: SW ICM objects and keys, entries, a QP that writes them.
#ifndef HCASIM_TESTS_DEVICE_STE_WRITER_H
#define HCASIM_TESTS_DEVICE_STE_WRITER_H

#include <array>
#include <memory>
#include <vector>

#include "eth_fixture.h"
#include "prm/ste.h"
#include "prm/ste_v1.h"

namespace hcasim::bare {

constexpr unsigned kLogIcm = 16, kModeSwIcm = 4;

inline CommandResult general(Device& d, std::uint16_t opcode, std::uint32_t type, std::uint32_t id) {
  Mailbox in(opcode, prm::general_obj_in_cmd_hdr::bytes);
  in.set<prm::general_obj_in_cmd_hdr::obj_type>(type).set<prm::general_obj_in_cmd_hdr::obj_id>(id);
  return d.exec(in, 256);
}

// The group of QUERY_HCA_CAP: 7 flow tables, 15 device memory.
inline std::vector<std::uint8_t> caps(Device& d, unsigned group) {
  const auto r = d.query_caps(group, true).must();
  const std::uint8_t* c = prm::ptr<prm::query_hca_cap_out::capability>(r.out.data());
  return {c, r.out.data() + r.out.size()};
}

inline CommandResult create_icm(Device& d, std::uint64_t start, unsigned log_size) {
  Mailbox in(prm::op::CREATE_GENERAL_OBJECT, prm::create_sw_icm_in::bytes);
  in.set<prm::general_obj_in_cmd_hdr::obj_type>(prm::k::OBJ_TYPE_SW_ICM);
  in.set<prm::create_sw_icm_in::sw_icm::sw_icm_start_addr>(start)
      .set<prm::create_sw_icm_in::sw_icm::log_sw_icm_size>(log_size);
  return d.exec(in, prm::general_obj_out_cmd_hdr::bytes);
}

inline EthObject make_icm(Device& d, std::uint64_t start, unsigned log_size) {
  const auto r = create_icm(d, start, log_size).must();
  return {d, static_cast<std::uint32_t>(r.get<prm::general_obj_out_cmd_hdr::obj_id>()),
          [&d, id = r.get<prm::general_obj_out_cmd_hdr::obj_id>()] {
            return general(d, prm::op::DESTROY_GENERAL_OBJECT, prm::k::OBJ_TYPE_SW_ICM, id);
          }};
}

inline MkeySpec icm_key(const Pd& pd, std::uint64_t start, std::uint64_t len) {
  MkeySpec s;
  s.pd = pd.pdn();
  s.mode = kModeSwIcm;
  s.start = start;
  s.len = len;
  return s;
}

inline std::uint64_t counted(Device& d, std::uint32_t id) { return query_flow_counter(d, id).packets; }

// 64 bytes of an entry that takes every frame and leads to `to`.
struct Entry {
  std::array<std::uint8_t, 64> bytes{};
  Entry(prm::SteType type, std::uint64_t to) {
    constexpr unsigned kAnyLookup = 0x0f;
    set<prm::Ste::entry_type>(static_cast<unsigned>(type));
    set<prm::Ste::lookup_type>(kAnyLookup).set<prm::Ste::next_lookup_type>(kAnyLookup);
    set<prm::Ste::next_base_39_32>((to >> 5 | 1) >> 27)
        .set<prm::Ste::next_base_31_5>((to >> 5 | 1) & 0x7ffffff);
  }
  template <class F>
  Entry& set(std::uint64_t v) {
    prm::set<F>(bytes.data(), static_cast<typename F::type>(v));
    return *this;
  }
};

// Of the later chips; its actions are the caller's.
inline Entry later_entry(std::uint64_t to) {
  using prm::SteV1;
  Entry e(prm::SteType::kTx, 0);
  e.bytes.fill(0);
  e.set<SteV1::definer>(SteV1::kAnyDefiner);
  e.set<SteV1::next_base_39_32>((to >> 5 | 1) >> 27);
  return e.set<SteV1::next_base_31_5>((to >> 5 | 1) & 0x7ffffff);
}

// A TIR that leads to a link's RQ, and the address that entries name it by.
struct SteTir {
  explicit SteTir(const EthLink& link) : tir(make_tir(link.dev, spec(link), &icm)) {}
  static TirSpec spec(const EthLink& link) {
    TirSpec s;
    s.rqn = link.rq.rqn();
    s.transport_domain = link.td.number();
    s.hash_fn = 0;
    return s;
  }
  std::uint64_t icm = 0;
  EthObject tir;
};

// A link of frames, SW ICM, and the QP that writes into it.
struct Writer {
  explicit Writer(Device& d, std::uint64_t start)
      : dev(d),
        base(start),
        link(d),
        icm(make_icm(d, start, kLogIcm)),
        key(d, icm_key(link.pd, start, 1u << kLogIcm)),
        cq(d),
        buffer(d.memory().allocate(1u << kLogIcm)),
        mr(d, Mr::of(link.pd, buffer)),
        qp(d, link.pd, cq, cq) {
    QpAttr attr;
    attr.roce.force_loopback = true;
    attr.remote_qpn = qp.qpn();
    attr.mtu = 1024;
    qp.connect(attr);
  }
  void move(WqeOp op, std::uint64_t at, std::uint32_t len) { move(op, at, len, key); }
  void move(WqeOp op, std::uint64_t at, std::uint32_t len, const Mr& by) {
    SendWr wr;
    wr.op = op;
    wr.sges = {{mr.start(), mr.key(), len}};
    wr.raddr = at;
    wr.rkey = by.key();
    expect_good(cq, qp.post(wr));
  }
  void write(std::uint64_t at, const Entry& e) {
    std::memcpy(buffer.data(), e.bytes.data(), e.bytes.size());
    move(WqeOp::kRdmaWrite, at, 64);
  }
  // A table of the given kind whose first entry is at `at`.
  EthObject table(std::uint64_t at, unsigned type) {
    using In = prm::create_flow_table_in;
    Mailbox in(prm::op::CREATE_FLOW_TABLE, In::bytes);
    in.set<In::table_type>(type).set<In::flow_table_context::sw_owner>(1);
    in.set<In::flow_table_context::level>(60);
    in.set<In::flow_table_context::sws::sw_owner_icm_root_0>(base + at);
    const auto r = dev.exec(in, prm::create_flow_table_out::bytes).must();
    return {dev, r.get<prm::create_flow_table_out::table_id>(),
            [d = &dev, id = r.get<prm::create_flow_table_out::table_id>(), type] {
              using Gone = prm::destroy_flow_table_in;
              Mailbox gone(prm::op::DESTROY_FLOW_TABLE, Gone::bytes);
              return d->exec(gone.set<Gone::table_id>(id).set<Gone::table_type>(type));
            }};
  }
  std::unique_ptr<EthObject> lead_to(std::uint32_t table_id) {
    link.rule.reset();
    FlowRule r;
    r.table = link.table.number();
    r.group = link.all.number();
    r.index = kCatchAll;
    r.to = {{FlowDest::kTable, table_id}};
    return std::make_unique<EthObject>(make_flow(dev, r));
  }

  Device& dev;
  std::uint64_t base;
  EthLink link;
  EthObject icm;
  Mr key;
  Cq cq;
  Buffer buffer;
  Mr mr;
  Qp qp;
};

}  // namespace hcasim::bare
#endif
