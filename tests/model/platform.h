// SPDX-License-Identifier: BSD-3-Clause
// A small SystemC platform around a Device: a memory, an initiator on BAR0, a firmware that only takes
// notes.
#ifndef HCASIM_TESTS_MODEL_PLATFORM_H
#define HCASIM_TESTS_MODEL_PLATFORM_H

#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstring>
#include <utility>
#include <vector>

#include "model/device.h"
#include "model/pcie/tlm_host_port.h"

namespace hcasim::test {

class NotingFirmware : public FirmwarePort {
 public:
  std::uint32_t init_seg_read(std::uint32_t offset) override { return 0xa0000000 + offset; }
  void init_seg_write(std::uint32_t offset, std::uint32_t value) override {
    writes.emplace_back(offset, value);
  }
  void function_reset() override { fatals = 0; }
  void qp_failed(std::uint32_t) override {}
  void fatal(const char*) noexcept override { ++fatals; }

  std::vector<std::pair<std::uint32_t, std::uint32_t>> writes;
  unsigned fatals = 0;
};

class TlmMemory : public sc_core::sc_module {
 public:
  explicit TlmMemory(const sc_core::sc_module_name& name) : sc_module(name), socket("socket") {
    socket.register_b_transport(this, &TlmMemory::transport);
  }
  void fill(std::uint8_t value) { std::fill(bytes.begin(), bytes.end(), value); }

  tlm_utils::simple_target_socket<TlmMemory> socket;
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(1 << 16);

 private:
  void transport(tlm::tlm_generic_payload& payload, sc_core::sc_time&) {
    const std::uint64_t addr = payload.get_address();
    const std::size_t len = payload.get_data_length();
    if (addr >= bytes.size() || len > bytes.size() - addr) {
      payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
      return;
    }
    if (payload.is_read()) {
      std::memcpy(payload.get_data_ptr(), &bytes[addr], len);
    } else {
      std::memcpy(&bytes[addr], payload.get_data_ptr(), len);
    }
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
};

class Platform : public sc_core::sc_module {
 public:
  Platform(const sc_core::sc_module_name& name, const Profile& profile, traces::Tracer& tracer)
      : sc_module(name), cpu("cpu"), memory("memory"), host("host"), hca("hca", profile, {&host}, tracer) {
    cpu.bind(hca.bars[0]);
    host.dma.bind(memory.socket);
    host.on_msix([this](unsigned vector) { interrupts.push_back(vector); });
    hca.attach(0, firmware);
  }

  tlm::tlm_response_status access(tlm::tlm_command command, std::uint64_t addr, std::uint8_t* bytes,
                                  unsigned len) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(addr);
    payload.set_data_ptr(bytes);
    payload.set_data_length(len);
    payload.set_streaming_width(len);
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    cpu->b_transport(payload, delay);
    return payload.get_response_status();
  }

  tlm_utils::simple_initiator_socket<Platform> cpu;
  TlmMemory memory;
  TlmHostPort host;
  NotingFirmware firmware;
  Device hca;
  std::vector<unsigned> interrupts;
};

}  // namespace hcasim::test
#endif
