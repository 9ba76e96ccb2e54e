// SPDX-License-Identifier: BSD-3-Clause
// Flow tables of all types through PCIe: a link with a receive queue behind them, root tables of a group
// each, tunnels' headers.
#ifndef HCASIM_TESTS_DEVICE_STEERING_FIXTURE_H
#define HCASIM_TESTS_DEVICE_STEERING_FIXTURE_H

#include "eth_fixture.h"

#define EXPECT_OK(expr) EXPECT_TRUE((expr).ok())
#define EXPECT_STATUS(expr, want)                                                                        \
  do {                                                                                                   \
    const auto status_result_ = (expr);                                                                  \
    EXPECT_EQ(static_cast<int>(status_result_.status), static_cast<int>(want)) << status_result_.text(); \
    EXPECT_NE(status_result_.syndrome, 0u) << status_result_.text();                                     \
  } while (0)

namespace hcasim::bare {

enum : unsigned {
  kReformat = 0x10,
  kDecap = 0x20,
  kModify = 0x40,
  kPopVlan = 0x80,
  kPushVlan = 0x100,
};
constexpr std::size_t kEth = 14;

inline void u16(Frame& f, unsigned v) {
  f.push_back(static_cast<std::uint8_t>(v >> 8));
  f.push_back(static_cast<std::uint8_t>(v));
}
inline void u32(Frame& f, std::uint32_t v) { u16(f, v >> 16), u16(f, v & 0xffff); }
inline unsigned at16(const Frame& f, std::size_t at) { return static_cast<unsigned>(f[at] << 8 | f[at + 1]); }

// Ethernet, IPv4 and UDP to `port`, lengths and checksums 0.
inline Frame udp_tunnel(unsigned port) {
  Frame f;
  for (const unsigned v : {0x02, 0, 0, 0, 0, 0x11, 0x02, 0, 0, 0, 0, 0x12})
    f.push_back(static_cast<std::uint8_t>(v));
  u16(f, 0x0800), u16(f, 0x4500), u16(f, 0), u16(f, 0), u16(f, 0x4000), u16(f, 64u << 8 | 17), u16(f, 0);
  u32(f, 0xc0000201), u32(f, 0xc0000202);
  u16(f, 0xc123), u16(f, port), u16(f, 0), u16(f, 0);
  return f;
}

inline Frame vxlan_headers(std::uint32_t vni) {
  Frame f = udp_tunnel(4789);
  u32(f, 0x08000000), u32(f, vni << 8);
  return f;
}

class Steering : public EthTest {
 protected:
  void SetUp() override {
    EthTest::SetUp();
    link = std::make_unique<EthLink>(dev());
    for (unsigned i = 0; i < 32; ++i) link->rq.post({link->rx_sge(i * 4096, 4096)});
  }
  void TearDown() override {
    link.reset();
    EthTest::TearDown();
  }

  // What arrives for a frame that is sent; empty: nothing.
  Frame arrives(const Frame& frame, std::uint8_t cs_flags = 0) {
    expect_good(link->scq, link->send(frame, cs_flags));
    const auto got = link->rcq.wait(1, 1'000'000);
    if (got.empty()) return {};
    cqe = got[0];
    const std::size_t slot = 4096 * (taken++ % 32);
    const Frame frame_got = link->received(slot, got[0].byte_cnt);
    link->rq.post({link->rx_sge(slot, 4096)});
    return frame_got;
  }
  // Takes away the rule that takes everything, and does so by another with more to do.
  EthObject receive_rule(FlowRule r) {
    link->steer_to(0);
    r.table = link->table.number();
    r.group = link->all.number();
    r.index = 8;
    r.to = {{FlowDest::kTir, link->tir.number()}};
    return make_flow(dev(), r);
  }

  // A root table with one group of entries that look at `mask`.
  struct Root {
    Root(Device& device, unsigned type, unsigned criteria = 0, const MatchParam& mask = {})
        : table(make_flow_table(device, 4, 0, type, type == kNicRxTable || type == kNicTxTable)),
          group(make_flow_group(device, table.number(), 0, 7, criteria, mask, type)),
          type(type) {
      set_flow_root(device, table.number(), type).must();
    }
    FlowRule rule(std::uint32_t index = 0) const {
      FlowRule r;
      r.table = table.number(), r.group = group.number(), r.index = index, r.type = type;
      return r;
    }
    EthObject table, group;
    unsigned type;
  };

  std::unique_ptr<EthLink> link;
  unsigned taken = 0;
  Completion cqe;
};

}  // namespace hcasim::bare
#endif
