// SPDX-License-Identifier: BSD-3-Clause
#include "prm/wire_formats.h"

#include <gtest/gtest.h>

#include <cstring>

namespace hcasim::prm {
namespace {

TEST(WireFormats, BigEndian) {
  be32 v = 0x11223344;
  EXPECT_EQ(v.b[0], 0x11);
  EXPECT_EQ(v.b[3], 0x44);
  EXPECT_EQ(v, 0x11223344u);
  be24 p = 0xaabbcc;
  EXPECT_EQ(p.b[0], 0xaa);
  EXPECT_EQ(p, 0xaabbccu);
  be64 q = 0x0102030405060708ull;
  EXPECT_EQ(q.b[7], 8);
  be16 h = 0xbeef;
  EXPECT_EQ(h, 0xbeefu);
}

TEST(WireFormats, ControlSegment) {
  const uint8_t raw[16] = {0x01, 0x12, 0x34, 0x0a, 0xab, 0xcd, 0xef, 0x04, 0, 0, 0, 0x4a, 0, 0, 0, 7};
  CtrlSeg c;
  std::memcpy(&c, raw, sizeof c);
  EXPECT_EQ(c.opcode(), WqeOp::kSend);
  EXPECT_EQ(c.opmod(), 1u);
  EXPECT_EQ(c.wqe_index(), 0x1234u);
  EXPECT_EQ(c.qpn(), 0xabcdefu);
  EXPECT_EQ(c.ds(), 4u);
  EXPECT_EQ(c.ce(), kCeAlways);
  EXPECT_TRUE(c.solicited());
  EXPECT_EQ(c.fence(), kFenceFence);
  EXPECT_EQ(c.imm, 7u);
  CtrlSeg d{};
  d.set(WqeOp::kSend, 0x1234, 0xabcdef, 4, kCeAlways, true, 1, kFenceFence);
  d.imm = 7;
  EXPECT_EQ(std::memcmp(&d, raw, sizeof raw), 0);
}

TEST(WireFormats, BthTraits) {
  EXPECT_EQ(bth_traits(0x0a).ext_bytes, 16);  // RC WRITE only
  EXPECT_EQ(bth_traits(0x0b).ext_bytes, 20);
  EXPECT_EQ(bth_traits(0x0c).ext_bytes, 16);  // READ request
  EXPECT_FALSE(bth_traits(0x0c).payload);
  EXPECT_EQ(bth_traits(0x0e).ext_bytes, 0);  // READ response middle
  EXPECT_EQ(bth_traits(0x12).ext_bytes, 12);
  EXPECT_EQ(bth_traits(0x13).ext_bytes, 28);
  EXPECT_EQ(bth_traits(0x17).ext_bytes, 4);
  EXPECT_EQ(bth_traits(0x64).ext_bytes, 8);  // UD SEND only
  EXPECT_EQ(bth_traits(0x65).ext_bytes, 12);
  EXPECT_FALSE(bth_traits(0x60).valid);
  EXPECT_FALSE(bth_traits(0x2c).valid);  // UC has no READ
  EXPECT_FALSE(bth_traits(0x18).valid);
  EXPECT_TRUE(bth_traits(0xa4).xrceth);
  EXPECT_FALSE(bth_traits(0xb1).xrceth);
  for (const uint8_t masked : {0x19, 0x1a}) {
    EXPECT_EQ(bth_traits(masked).ext_bytes, 16);
    EXPECT_TRUE(bth_traits(masked).payload && bth_traits(masked).request);
    EXPECT_FALSE(bth_traits(masked).send || bth_traits(masked).ieth);
    EXPECT_EQ(bth_traits(0xa0 | masked).ext_bytes, 20);
    EXPECT_FALSE(bth_traits(0x20 | masked).valid);  // UC
  }
  EXPECT_EQ(bth_traits(0x1b).ext_bytes, 4);
  EXPECT_FALSE(bth_traits(0x1b).request || bth_traits(0x1c).valid);
}

TEST(WireFormats, PsnArithmetic) {
  EXPECT_EQ(psn_diff(0, 0xffffff), 1);
  EXPECT_EQ(psn_diff(0xffffff, 0), -1);
  EXPECT_EQ(psn_diff(0x800000, 0), -0x800000);
  EXPECT_EQ(rnr_timer_us(0), 655360u);
  EXPECT_EQ(rnr_timer_us(12), 640u);
  EXPECT_EQ(rnr_timer_us(31), 491520u);
}

}  // namespace
}  // namespace hcasim::prm
