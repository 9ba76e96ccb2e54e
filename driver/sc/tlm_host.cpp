// SPDX-License-Identifier: BSD-3-Clause
#include "driver/sc/tlm_host.h"

#include <linux/pci_regs.h>

#include <algorithm>
#include <cstring>

namespace hcasim::bare {

namespace {

constexpr unsigned kMostCapabilities = 48;  // that 192 bytes hold: a chain that is longer is a loop
constexpr unsigned kFlrMs = 100;            // PCIe Base Specification, 6.6.2

}  // namespace

class TlmHost::Slot final : public Pcie {
 public:
  Slot(TlmHost& host, const Place& place) : host_(host), place_(place) {}

  void read(std::uint64_t offset, void* bytes, unsigned len) override {
    host_.read(place_.registers + offset, bytes, len);
  }
  void write(std::uint64_t offset, const void* bytes, unsigned len) override {
    host_.write(place_.registers + offset, bytes, len);
  }
  void reset() override {
    const unsigned control = capability(PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL;
    set_config<std::uint16_t>(
        control, static_cast<std::uint16_t>(config<std::uint16_t>(control) | PCI_EXP_DEVCTL_BCR_FLR));
    host_.sync();
    sc_core::wait(sc_core::sc_time(kFlrMs, sc_core::SC_MS));
    enable();
  }
  void enable();
  std::uint64_t messages() const { return place_.messages; }

 private:
  template <class T>
  T config(unsigned reg) {
    T value;
    host_.read(place_.config + reg, &value, sizeof value);
    return value;
  }
  template <class T>
  void set_config(unsigned reg, T value) {
    host_.write(place_.config + reg, &value, sizeof value);
  }
  [[noreturn]] void fail(const std::string& what) const {
    char at[32];
    std::snprintf(at, sizeof at, "0x%llx", static_cast<unsigned long long>(place_.config));
    throw BareError(what + " at configuration address " + at);
  }
  unsigned capability(unsigned id);
  void place_bar(unsigned bar, std::uint64_t address);
  void fill_table(std::uint64_t table, unsigned entries);

  TlmHost& host_;
  const Place place_;
};

unsigned TlmHost::Slot::capability(unsigned id) {
  unsigned at = config<std::uint8_t>(PCI_CAPABILITY_LIST) & ~3u;
  for (unsigned n = 0; at != 0 && n < kMostCapabilities; ++n) {
    if (config<std::uint8_t>(at + PCI_CAP_LIST_ID) == id) return at;
    at = config<std::uint8_t>(at + PCI_CAP_LIST_NEXT) & ~3u;
  }
  fail("no capability " + std::to_string(id) + " of the function");
}

void TlmHost::Slot::place_bar(unsigned bar, std::uint64_t address) {
  const unsigned reg = PCI_BASE_ADDRESS_0 + 4 * bar;
  const std::uint32_t kind = config<std::uint32_t>(reg) & PCI_BASE_ADDRESS_MEM_TYPE_MASK;
  set_config(reg, static_cast<std::uint32_t>(address));
  if (kind == PCI_BASE_ADDRESS_MEM_TYPE_64)
    set_config(reg + 4, static_cast<std::uint32_t>(address >> 32));
  else if (address >> 32 != 0)
    fail("BAR " + std::to_string(bar) + " cannot be above 4 GiB: that of the function");
}

// Each vector's message carries its number.
void TlmHost::Slot::fill_table(std::uint64_t table, unsigned entries) {
  for (std::uint32_t vector = 0; vector < entries; ++vector) {
    const std::uint32_t entry[4] = {static_cast<std::uint32_t>(place_.messages),
                                    static_cast<std::uint32_t>(place_.messages >> 32), vector, 0};
    for (unsigned word = 0; word < 4; ++word)
      host_.write(table + vector * PCI_MSIX_ENTRY_SIZE + word * 4, &entry[word], 4);
  }
}

void TlmHost::Slot::enable() {
  if (config<std::uint16_t>(PCI_VENDOR_ID) == 0xffff) fail("no function");
  const unsigned msix = capability(PCI_CAP_ID_MSIX);
  const auto flags = config<std::uint16_t>(msix + PCI_MSIX_FLAGS);
  const auto table = config<std::uint32_t>(msix + PCI_MSIX_TABLE);
  place_bar(0, place_.registers);
  place_bar(table & PCI_MSIX_TABLE_BIR, place_.msix);
  set_config<std::uint16_t>(PCI_COMMAND, PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
  fill_table(place_.msix + (table & PCI_MSIX_TABLE_OFFSET),
             std::min<unsigned>((flags & PCI_MSIX_FLAGS_QSIZE) + 1, HCA_MSIX_VECTORS));
  set_config<std::uint16_t>(msix + PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_ENABLE);
}

TlmHost::TlmHost(tlm::tlm_initiator_socket<>& bus, std::size_t memory_bytes)
    : bus_(bus), machine_(memory_bytes, *this) {}

TlmHost::~TlmHost() = default;

Function& TlmHost::add_function(const Place& place) {
  slots_.push_back(std::make_unique<Slot>(*this, place));
  return machine_.add_function(*slots_.back());
}

void TlmHost::enumerate() {
  keeper_.reset();
  for (const auto& slot : slots_) slot->enable();
}

void TlmHost::interrupt(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
  std::uint32_t vector = 0;
  if (!payload.is_write() || payload.get_data_length() != sizeof vector) return;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i]->messages() != payload.get_address()) continue;
    std::memcpy(&vector, payload.get_data_ptr(), sizeof vector);
    machine_.function(i).raise(vector);
    interrupted_.notify(delay);
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
}

void TlmHost::read(std::uint64_t address, void* bytes, unsigned len) {
  if (!access(tlm::TLM_READ_COMMAND, address, bytes, len)) std::memset(bytes, 0xff, len);
}

void TlmHost::write(std::uint64_t address, const void* bytes, unsigned len) {
  access(tlm::TLM_WRITE_COMMAND, address, const_cast<void*>(bytes), len);  // a target does not write to it
}

bool TlmHost::access(tlm::tlm_command command, std::uint64_t address, void* bytes, unsigned len) {
  tlm::tlm_generic_payload payload;
  payload.set_command(command);
  payload.set_address(address);
  payload.set_data_ptr(static_cast<unsigned char*>(bytes));
  payload.set_data_length(len);
  payload.set_streaming_width(len);
  sc_core::sc_time delay = keeper_.get_local_time();
  bus_->b_transport(payload, delay);
  keeper_.set(delay);
  if (keeper_.need_sync()) keeper_.sync();
  if (payload.is_response_ok()) return true;
  char text[96];
  std::snprintf(text, sizeof text, "%s of %u bytes at 0x%llx: %s",
                command == tlm::TLM_READ_COMMAND ? "read" : "write", len,
                static_cast<unsigned long long>(address), payload.get_response_string().c_str());
  SC_REPORT_WARNING("/hcasim/host", text);
  return false;
}

std::int64_t TlmHost::now() const {
  return static_cast<std::int64_t>(keeper_.get_current_time() / sc_core::sc_time(1, sc_core::SC_NS));
}

void TlmHost::wait(std::int64_t until) {
  using sc_core::sc_time;
  const sc_time left(static_cast<double>(std::max<std::int64_t>(until - now(), 0)) + 1, sc_core::SC_NS);
  const sc_time pause = std::min(poll, left);
  if (tlm::tlm_global_quantum::instance().get() == sc_core::SC_ZERO_TIME)
    return sc_core::wait(pause, interrupted_);
  keeper_.inc(pause);
  if (keeper_.need_sync()) keeper_.sync();
}

}  // namespace hcasim::bare
