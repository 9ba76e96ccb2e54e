// SPDX-License-Identifier: BSD-3-Clause
// Registers of diagnostics: the firmware's tracer and its core dump, dumps of objects, the temperature.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "firmware-stub/firmware.h"
#include "firmware-stub/key_memory.h"
#include "firmware-stub/module_eeprom.h"
#include "firmware-stub/registers.h"
#include "firmware-stub/resource_dump.h"

namespace hcasim::fw {

// ---- The tracer ----

namespace {
FwTracer::Owner asker(const Access& a) {
  return a.cmd.by_icmd() ? FwTracer::Owner::kTools : FwTracer::Owner::kDriver;
}
}  // namespace

Syndrome read_mtrc_cap(Access& a) {
  using r = prm::mtrc_cap;
  using db = prm::mtrc_string_db_param;
  std::memset(a.data, 0, r::bytes);
  prm::set<r::trace_owner>(a.data, a.fw.fw_tracer().owner() == asker(a) ? 1 : 0);
  prm::set<r::trace_to_memory>(a.data, 1);
  prm::set<r::trc_ver>(a.data, 1);
  prm::set<r::num_string_db>(a.data, 1);
  prm::set<r::first_string_trace>(a.data, FwTracer::kFirstEvent);
  prm::set<r::num_string_trace>(a.data, 1);
  prm::set<r::log_max_trace_buffer_size>(a.data, FwTracer::kLogMaxPages);
  std::uint8_t* first = a.data + r::string_db_param::bit_off / 8;
  prm::set<db::string_db_base_address>(first, FwTracer::kStringBase);
  prm::set<db::string_db_size>(first, static_cast<std::uint32_t>(FwTracer::strings().size()));
  return Syndrome::kOk;
}

// Takes the tracer or lets it go; that another one has it, the answer tells.
Syndrome write_mtrc_cap(Access& a) {
  FwTracer& tracer = a.fw.fw_tracer();
  if (prm::get<prm::mtrc_cap::trace_owner>(a.data) != 0)
    tracer.acquire(asker(a));
  else
    tracer.release(a.cmd.now, asker(a));
  return read_mtrc_cap(a);
}

Syndrome read_mtrc_conf(Access& a) {
  using r = prm::mtrc_conf;
  const FwTracer& tracer = a.fw.fw_tracer();
  std::memset(a.data, 0, r::bytes);
  if (tracer.key() == 0) return Syndrome::kOk;
  prm::set<r::trace_mode>(a.data, 1);
  prm::set<r::log_trace_buffer_size>(a.data, tracer.log_pages());
  prm::set<r::trace_mkey>(a.data, tracer.key());
  return Syndrome::kOk;
}

Syndrome write_mtrc_conf(Access& a) {
  using r = prm::mtrc_conf;
  enum : std::uint32_t { kToMemory = 1 };  // trace_mode
  FwTracer& tracer = a.fw.fw_tracer();
  // What lies behind a key is the driver's.
  if (tracer.owner() != FwTracer::Owner::kDriver || asker(a) != FwTracer::Owner::kDriver)
    return Syndrome::kTracerOwner;
  if (prm::get<r::trace_mode>(a.data) != kToMemory) return Syndrome::kRegisterValue;
  return tracer.configure(prm::get<r::trace_mkey>(a.data), prm::get<r::log_trace_buffer_size>(a.data));
}

Syndrome read_mtrc_ctrl(Access& a) {
  using r = prm::mtrc_ctrl;
  const FwTracer& tracer = a.fw.fw_tracer();
  const std::uint64_t now = FwTracer::ticks(a.cmd.now);
  std::memset(a.data, 0, r::bytes);
  prm::set<r::trace_status>(a.data, tracer.on() ? 1 : 0);
  prm::set<r::arm_event>(a.data, tracer.armed() ? 1 : 0);
  prm::set<r::current_timestamp52_32>(a.data, static_cast<std::uint32_t>(now >> 32));
  prm::set<r::current_timestamp31_0>(a.data, static_cast<std::uint32_t>(now));
  return Syndrome::kOk;
}

Syndrome write_mtrc_ctrl(Access& a) {
  using r = prm::mtrc_ctrl;
  enum : std::uint32_t { kSelectStatus = 1u << 0 };  // modify_field_select
  FwTracer& tracer = a.fw.fw_tracer();
  if (tracer.owner() != FwTracer::Owner::kDriver || asker(a) != FwTracer::Owner::kDriver)
    return Syndrome::kTracerOwner;
  const std::uint32_t select = prm::get<r::modify_field_select>(a.data);
  const std::uint32_t status = prm::get<r::trace_status>(a.data);
  if ((select & ~kSelectStatus) != 0 || status > 1) return Syndrome::kRegisterValue;
  if ((select & kSelectStatus) != 0) {
    const Syndrome s = tracer.turn(a.cmd.now, status != 0);
    if (s != Syndrome::kOk) return s;
  }
  if (prm::get<r::arm_event>(a.data) != 0) tracer.arm(a.cmd.now);
  return read_mtrc_ctrl(a);
}

// A piece of the string database, behind the register. Linux reads it by writing what it wants.
Syndrome access_mtrc_stdb(Access& a) {
  using r = prm::mtrc_stdb;
  const std::string& strings = FwTracer::strings();
  const std::size_t from = prm::get<r::start_offset>(a.data), size = prm::get<r::read_size>(a.data);
  if (prm::get<r::string_db_index>(a.data) != 0 || from > strings.size() || size > strings.size() - from)
    return Syndrome::kRegisterValue;
  if (size > a.room - r::bytes) return Syndrome::kRegisterLength;
  std::memcpy(a.data + r::bytes, strings.data() + from, size);
  return Syndrome::kOk;
}

// ---- The core dump ----

Syndrome write_core_dump(Access& a) {
  enum : std::uint32_t { kGeneral = 0 };  // core_dump_type
  if (prm::get<prm::core_dump_reg::core_dump_type>(a.data) != kGeneral) return Syndrome::kRegisterValue;
  FwTracer& tracer = a.fw.fw_tracer();
  if (!tracer.on()) return Syndrome::kTracerState;
  tracer.dump_core(a.cmd.now, {WriteOwner::kFirmware, a.fw.function().id(), a.cmd.slot});
  return Syndrome::kOk;
}

// ---- Dumps of objects ----

// Piece by piece: device_opaque is where the next one begins. Into memory behind a key, or (inline_dump) into
// the register itself. Read by tools, written by Linux.
Syndrome access_resource_dump(Access& a) {
  using r = prm::resource_dump;
  constexpr std::size_t in_register = r::bytes - r::inline_data::bit_off / 8;
  constexpr std::uint64_t most = 64u << 10;  // bytes of a piece
  const std::uint32_t vhca = prm::get<r::vhca_id>(a.data);
  if (vhca != 0 && vhca != a.fw.options().vhca_id) return Syndrome::kFunction;
  ResourceDump::Request request;
  request.segment = static_cast<std::uint16_t>(prm::get<r::segment_type>(a.data));
  request.index1 = prm::get<r::index1>(a.data);
  request.index2 = prm::get<r::index2>(a.data);
  request.count1 = static_cast<std::uint16_t>(prm::get<r::num_of_obj1>(a.data));
  request.count2 = static_cast<std::uint16_t>(prm::get<r::num_of_obj2>(a.data));
  ResourceDump dump(a.fw, a.cmd.now, request);
  if (dump.status() != Syndrome::kOk) return dump.status();
  const std::uint64_t from = prm::get<r::device_opaque>(a.data);
  const bool in_line = prm::get<r::inline_dump>(a.data) != 0;
  std::uint64_t room = std::min<std::uint64_t>(prm::get<r::size>(a.data), most) & ~std::uint64_t{3};
  if (in_line) room = in_register;
  if (from >= dump.bytes() || from % 4 != 0 || room == 0) return Syndrome::kRegisterValue;
  std::vector<std::uint8_t> piece(std::min(room, dump.bytes() - from));
  if (!dump.read(from, piece.data(), piece.size())) return Syndrome::kDumpMemory;
  if (in_line) {
    std::fill_n(a.data + r::inline_data::bit_off / 8, in_register, std::uint8_t{0});
    std::copy(piece.begin(), piece.end(), a.data + r::inline_data::bit_off / 8);
  } else if (!write_by_key(a.fw, a.cmd.now, prm::get<r::mkey>(a.data), prm::get<r::address>(a.data),
                           piece.data(), piece.size(),
                           {WriteOwner::kFirmware, a.fw.function().id(), a.cmd.slot})) {
    return Syndrome::kDumpMemory;
  }
  const std::uint64_t next = from + piece.size();
  const bool more = next < dump.bytes();
  prm::set<r::more_dump>(a.data, more ? 1 : 0);
  prm::set<r::device_opaque>(a.data, more ? next : 0);
  prm::set<r::size>(a.data, static_cast<std::uint32_t>(piece.size()));
  prm::set<r::seq_num>(a.data, prm::get<r::seq_num>(a.data) + 1);
  return Syndrome::kOk;
}

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

// InfiniBand ports have passive copper cables (put_copper() of registers_link.cpp).
bool module_measures(Firmware& fw) { return fw.options().link == Link::kEthernet && fw.port().cable_in(); }

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
    // Drivers take the sensor of a module that measures nothing, or is not there, from its temperature: 0.
    if (!module_measures(a.fw)) return Syndrome::kOk;
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
