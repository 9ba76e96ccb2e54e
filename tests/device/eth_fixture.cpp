// SPDX-License-Identifier: BSD-3-Clause
#include "eth_fixture.h"

namespace hcasim::bare {

namespace {

void u16(Frame& f, unsigned v) {
  f.push_back(static_cast<std::uint8_t>(v >> 8));
  f.push_back(static_cast<std::uint8_t>(v));
}
void u32(Frame& f, std::uint32_t v) { u16(f, v >> 16), u16(f, v & 0xffff); }

void macs(Frame& f) {
  for (const unsigned v : {0x02, 0, 0, 0, 0, 0x01, 0x02, 0, 0, 0, 0, 0x02})
    f.push_back(static_cast<std::uint8_t>(v));
}

TirSpec direct(const EthRq& rq, const EthObject& td) {
  TirSpec s;
  s.rqn = rq.rqn();
  s.transport_domain = td.number();
  return s;
}

}  // namespace

Frame plain_frame(std::size_t len, unsigned seed) {
  Frame f;
  macs(f);
  u16(f, 0x88b5);  // for local experiments (IEEE 802)
  std::mt19937 random(seed);
  while (f.size() < len) f.push_back(static_cast<std::uint8_t>(random()));
  return f;
}

Frame l4_frame(const L4& l) {
  Frame f;
  macs(f);
  const auto len = static_cast<unsigned>((l.udp ? 8 : 20) + l.payload);
  const unsigned protocol = l.udp ? 17 : 6;
  if (l.v6) {
    u16(f, 0x86dd);
    u32(f, 0x60000000), u16(f, len), u16(f, protocol << 8 | 64);
    for (unsigned i = 0; i < 32; ++i) f.push_back(static_cast<std::uint8_t>(i * 5 + 1));
  } else {
    u16(f, 0x0800);
    u16(f, 0x4500), u16(f, 20 + len), u16(f, 0x1111), u16(f, 0x4000), u16(f, 64u << 8 | protocol), u16(f, 0);
    u32(f, 0x0a000001), u32(f, 0x0a000002);
  }
  u16(f, l.sport), u16(f, l.dport);
  if (l.udp) {
    u16(f, len), u16(f, 0);
  } else {
    u32(f, 0xfffffff0), u32(f, 1), u16(f, 0x5000 | (l.flags & 0x1ff)), u16(f, 1000), u32(f, 0);
  }
  std::mt19937 random(7);
  for (std::size_t i = 0; i < l.payload; ++i) f.push_back(static_cast<std::uint8_t>(random()));
  return f;
}

unsigned plain_sum(const Frame& f, std::size_t from, std::size_t to, std::uint32_t sum) {
  for (std::size_t i = from; i < to; i += 2) sum += f[i] << 8u | (i + 1 < to ? f[i + 1] : 0u);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

bool l4_sum_right(const Frame& f) {
  const bool v6 = f[14] >> 4 == 6;
  const std::size_t l4 = v6 ? 54 : 34;
  const unsigned protocol = v6 ? f[20] : f[23];
  const std::size_t end = v6 ? l4 + (f[18] << 8u | f[19]) : 14 + (f[16] << 8u | f[17]);
  const unsigned addresses = v6 ? plain_sum(f, 22, 54) : plain_sum(f, 26, 34);
  return plain_sum(f, l4, end, addresses + protocol + static_cast<unsigned>(end - l4)) == 0xffff;
}

void EthTest::expect_frames_go_on() {
  EthLink link(dev());
  link.rq.post({link.rx_sge(0, 2048)});
  expect_good(link.scq, link.send(plain_frame(500)));
  const auto got = link.rcq.wait(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].byte_cnt, 500u);
  EXPECT_EQ(link.received(0, 500), plain_frame(500));
}

EthLink::EthLink(Device& device, const RqOptions& o, const CqOptions& cq)
    : dev(device),
      pd(device),
      scq(device),
      rcq(device, cq),
      tx(device.memory().allocate(kBytes)),
      rx(device.memory().allocate(kBytes)),
      txr(device, Mr::of(pd, tx)),
      rxr(device, Mr::of(pd, rx)),
      td(make_transport_domain(device)),
      tis(make_tis(device, td.number())),
      sq(device, pd, scq, tis.number()),
      rq(device, pd, rcq, o),
      tir(make_tir(device, direct(rq, td))),
      table(make_flow_table(device, 4)),
      all(make_flow_group(device, table.number(), kCatchAll, kCatchAll)) {
  set_flow_root(device, table.number()).must();
  steer_to(tir.number());
}

EthLink::~EthLink() { rule.reset(); }

void EthLink::steer_to(std::uint32_t tirn) {
  rule.reset();
  if (tirn == 0) return;
  FlowRule r;
  r.table = table.number();
  r.group = all.number();
  r.index = kCatchAll;
  r.to = {{FlowDest::kTir, tirn}};
  rule = std::make_unique<EthObject>(make_flow(dev, r));
}

std::uint16_t EthLink::send(const Frame& frame, std::uint8_t cs_flags) {
  const std::size_t off = kSlot * (sent++ % (kBytes / kSlot));
  put(off, frame);
  EthWr wr;
  wr.cs_flags = cs_flags;
  wr.sges = {tx_sge(off, static_cast<std::uint32_t>(frame.size()))};
  return sq.post(wr);
}

}  // namespace hcasim::bare
