// SPDX-License-Identifier: BSD-3-Clause
// Registers of diagnostics: the temperature.
#include <cmath>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/module_eeprom.h"
#include "firmware-stub/registers.h"

namespace hcasim::fw {

// ---- Temperature ----

namespace {

// The chip has one; sensors of modules count from 64 on.
enum : std::uint32_t { kChipSensor = 0, kModuleSensor = 64 };

std::uint32_t eighths(double celsius) { return static_cast<std::uint32_t>(std::lround(celsius * 8)); }

// What the module itself measures, and where it gives alarm: words of its memory, in 1/256 of a degree.
std::uint32_t of_module(std::uint32_t page, std::uint32_t at) {
  std::uint8_t word[2] = {};
  read_module_eeprom(page, at, sizeof word, word);
  return (std::uint32_t{word[0]} << 8 | word[1]) / 32;
}

}  // namespace

Syndrome read_mtcap(Access& a) {
  using r = prm::mtcap_reg;
  std::memset(a.data, 0, r::bytes);
  prm::set<r::sensor_count>(a.data, 1);
  prm::set<r::sensor_map>(a.data, std::uint64_t{1} << kChipSensor);
  return Syndrome::kOk;
}

Syndrome read_mtmp(Access& a) {
  using r = prm::mtmp_reg;
  const std::uint32_t sensor = prm::get<r::sensor_index>(a.data);
  const bool forget = prm::get<r::mtr>(a.data) != 0;
  if (sensor != kChipSensor && sensor != kModuleSensor) return Syndrome::kRegisterValue;
  std::memset(a.data, 0, r::bytes);
  prm::set<r::sensor_index>(a.data, sensor);
  if (sensor == kModuleSensor) {
    prm::set<r::temperature>(a.data, of_module(0, 22));
    prm::set<r::mte>(a.data, 1);
    prm::set<r::max_temperature>(a.data, of_module(0, 22));
    prm::set<r::temp_threshold_hi>(a.data, of_module(3, 128));
    prm::set<r::temp_threshold_lo>(a.data, of_module(3, 132));
    std::memcpy(a.data + r::sensor_name_hi::bit_off / 8, "Module0", 7);
    return Syndrome::kOk;
  }
  Thermal& thermal = a.fw.thermal();
  const double now = thermal.celsius(a.cmd.now, a.fw.port_bytes());
  if (forget) thermal.forget_highest();
  prm::set<r::temperature>(a.data, eighths(now));
  prm::set<r::mte>(a.data, 1);
  prm::set<r::max_temperature>(a.data, eighths(thermal.highest()));
  prm::set<r::temp_threshold_hi>(a.data, eighths(Thermal::kCritical));
  prm::set<r::temp_threshold_lo>(a.data, eighths(Thermal::kCritical - 5));
  std::memcpy(a.data + r::sensor_name_hi::bit_off / 8, "asic", 4);
  return Syndrome::kOk;
}

// The highest temperature is always kept, and the thresholds are the chip's.
Syndrome write_mtmp(Access& a) {
  using r = prm::mtmp_reg;
  if (prm::get<r::mte>(a.data) == 0 || prm::get<r::tee>(a.data) != 0) return Syndrome::kRegisterValue;
  return read_mtmp(a);
}

}  // namespace hcasim::fw
