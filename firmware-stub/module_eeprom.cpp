// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/module_eeprom.h"

#include <array>
#include <cmath>
#include <cstring>

namespace hcasim::fw {

namespace {

constexpr unsigned kPages = 4, kHalf = 128;

// SFF-8636 table 6-1 and on; offsets of the lower half, then of upper pages 00 (identification), 02 (the
// user's) and 03 (thresholds). Page 01 (applications) is not there.
struct Module {
  std::array<std::uint8_t, kHalf> low{};
  std::array<std::array<std::uint8_t, kHalf>, kPages> high{};

  // Offsets as the specification has them: 0-127 low, 128-255 in the page.
  std::uint8_t& at(unsigned page, unsigned offset) {
    return offset < kHalf ? low[offset] : high[page][offset - kHalf];
  }
  void word(unsigned page, unsigned offset, int v) {
    at(page, offset) = static_cast<std::uint8_t>(v >> 8);
    at(page, offset + 1) = static_cast<std::uint8_t>(v);
  }
  void text(unsigned offset, unsigned len, const char* s) {
    for (unsigned i = 0; i < len; ++i) at(0, offset + i) = *s ? static_cast<std::uint8_t>(*s++) : ' ';
  }
  // high alarm, low alarm, high warning, low warning
  void thresholds(unsigned offset, std::array<int, 4> v) {
    for (unsigned i = 0; i < 4; ++i) word(3, offset + 2 * i, v[i]);
  }
  void checksum(unsigned from, unsigned to, unsigned at_offset) {
    unsigned sum = 0;
    for (unsigned i = from; i <= to; ++i) sum += at(0, i);
    at(0, at_offset) = static_cast<std::uint8_t>(sum);
  }
};

constexpr int celsius(double v) { return static_cast<int>(v * 256); }
constexpr int volts(double v) { return static_cast<int>(v * 10000); }       // 100 uV
constexpr int milliamperes(double v) { return static_cast<int>(v * 500); }  // 2 uA
constexpr int milliwatts(double v) { return static_cast<int>(v * 10000); }  // 0.1 uW

Module make() {
  constexpr std::uint8_t kQsfp28 = 0x11;
  Module m;
  // Lower half: status and what is measured.
  m.low[0] = kQsfp28;
  m.low[1] = 7;  // SFF-8636 revision 2.5 to 2.7
  m.low[2] = 0;  // upper pages, data ready
  m.word(0, 22, celsius(35.5));
  m.word(0, 26, volts(3.3));
  for (unsigned lane = 0; lane < 4; ++lane) {
    m.word(0, 34 + 2 * lane, milliwatts(0.85));
    m.word(0, 42 + 2 * lane, milliamperes(7.2));
    m.word(0, 50 + 2 * lane, milliwatts(0.9));
  }
  // Page 00: who it is.
  m.at(0, 128) = kQsfp28;
  m.at(0, 129) = 0x8c;  // power class 3 (2.5 W), CDRs in both directions
  m.at(0, 130) = 0x0c;  // MPO connector
  m.at(0, 131) = 0x80;  // compliance: see the extended code
  m.at(0, 139) = 0x05;  // 64b/66b
  m.at(0, 140) = 0xff;  // rate: in byte 222
  m.at(0, 143) = 35;    // OM3, 2 m
  m.at(0, 145) = 0;
  m.at(0, 146) = 50;    // OM4, 2 m
  m.at(0, 147) = 0x00;  // 850 nm VCSEL, uncooled
  m.text(148, 16, "hcasim");
  m.at(0, 164) = 0x00;
  m.at(0, 165) = 0x00;  // no OUI of its own
  m.at(0, 166) = 0x00;
  m.text(168, 16, "SIM-QSFP28-SR4");
  m.text(184, 2, "A1");
  m.word(0, 186, 850 * 20);  // nm / 20
  m.word(0, 188, 10 * 200);  // tolerance, nm / 200
  m.at(0, 190) = 70;         // degrees Celsius
  m.checksum(128, 190, 191);
  m.at(0, 192) = 0x02;  // 100GBASE-SR4
  m.at(0, 193) = 0x07;
  m.at(0, 194) = 0x00;
  m.at(0, 195) = 0x82;  // page 02 is there; TX_LOS
  m.text(196, 16, "SIM0000000001");
  m.text(212, 8, "240101");
  m.at(0, 220) = 0x0c;  // received power is an average, transmitted power measured
  m.at(0, 222) = 103;   // 25.75 Gb/s a lane, in 250 Mb/s
  m.checksum(192, 222, 223);
  // Page 03: thresholds.
  m.thresholds(128, {celsius(75), celsius(-5), celsius(70), celsius(0)});
  m.thresholds(144, {volts(3.63), volts(2.97), volts(3.465), volts(3.135)});
  m.thresholds(176, {milliwatts(3.46), milliwatts(0.05), milliwatts(2.19), milliwatts(0.09)});
  m.thresholds(184, {milliamperes(12), milliamperes(2), milliamperes(11), milliamperes(3)});
  m.thresholds(192, {milliwatts(3.46), milliwatts(0.07), milliwatts(2.19), milliwatts(0.14)});
  return m;
}

}  // namespace

bool read_module_eeprom(std::uint32_t page, std::uint32_t from, std::uint32_t size, std::uint8_t* out) {
  static const Module module = make();
  if (page >= kPages || size > 2 * kHalf || from > 2 * kHalf - size) return false;
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t at = from + i;
    out[i] = at < kHalf ? module.low[at] : module.high[page][at - kHalf];
  }
  return true;
}

}  // namespace hcasim::fw
