// SPDX-License-Identifier: BSD-3-Clause
#include "driver/bare/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>

namespace hcasim::bare {

namespace {

// HCASIM_TRACE_DIR=FOLDER in the environment: each HCA without a trace of its own writes one there; its name
// is the first free number.
std::string trace_option(const std::string& options) {
  const char* folder = std::getenv("HCASIM_TRACE_DIR");
  if (folder == nullptr || options.find("trace=") != std::string::npos) return {};
  for (unsigned n = 0;; ++n) {
    std::string path = std::string(folder) + "/" + std::to_string(1000 + n) + ".trace";
    if (std::ifstream(path)) continue;
    std::ofstream(path).flush();
    return (options.empty() ? "" : ",") + ("trace=" + path);
  }
}

// HCASIM_KERNEL=native in the environment: for all that names no kernel.
std::string kernel_option(const std::string& options) {
  const char* kernel = std::getenv("HCASIM_KERNEL");
  if (kernel == nullptr || options.find("kernel=") != std::string::npos) return {};
  return (options.empty() ? "" : ",") + (std::string("kernel=") + kernel);
}

}  // namespace

Function::Attach& Function::attach() {
  static Attach how;
  return how;
}

void Function::log(int level, const std::string& line) {
  machine_.log_[static_cast<std::size_t>(std::clamp(level, 0, 2))].push_back(line);
  if (machine_.echo_log) std::fprintf(stderr, "hca[%d]: %s\n", level, line.c_str());
}

hca_host_ops Function::host_ops() {
  hca_host_ops ops{};
  ops.dma_read = [](void* self, std::uint64_t addr, void* dst, std::size_t len) {
    auto* f = static_cast<Function*>(self);
    if (!f->machine_.memory_.dma_read(addr, dst, len)) return -1;
    if (f->dma_tamper_) f->dma_tamper_(addr, static_cast<std::uint8_t*>(dst), len);
    return 0;
  };
  ops.dma_write = [](void* self, std::uint64_t addr, const void* src, std::size_t len) {
    return static_cast<Function*>(self)->machine_.memory_.dma_write(addr, src, len) ? 0 : -1;
  };
  ops.msix = [](void* self, unsigned vector) { static_cast<Function*>(self)->raise(vector); };
  ops.log = [](void* self, int level, const char* message) {
    static_cast<Function*>(self)->log(level, message);
  };
  ops.wire_tx = [](void* self, const void* frame, std::size_t len) {
    auto* f = static_cast<Function*>(self);
    const auto* bytes = static_cast<const std::uint8_t*>(frame);
    f->frames_.emplace_back(bytes, bytes + len);
    return f->wire_busy_ ? 1 : 0;
  };
  ops.pcie_error = [](void* self, int what, std::uint32_t bit, const char* name) {
    static_cast<Function*>(self)->pcie_errors_.push_back({what, bit, name});
  };
  ops.dma_map = [](void* self, std::uint64_t addr, std::size_t len, int write) -> void* {
    auto* f = static_cast<Function*>(self);
    if (!f->dma_map_ || f->dma_tamper_) return nullptr;
    void* bytes = f->machine_.memory_.dma_map(addr, len, write != 0);
    f->dma_maps_ += bytes && !write;
    return bytes;
  };
  return ops;
}

Function::Function(Machine& machine, const std::string& options, FrameSink sink)
    : machine_(machine), sink_(std::move(sink)) {
  char err[512] = "";
  std::string all = options + trace_option(options);
  all += kernel_option(all);
  sockets_ = options.find("wire=") != std::string::npos && options.find("wire=host") == std::string::npos;
  // Frames for the test's own hands, and DMA that it changes on its way, need the C API.
  if (attach() && options.find("wire=") == std::string::npos) {
    attachment_ = attach()(machine, all, [this](int level, const std::string& line) { log(level, line); });
    pcie_ = attachment_.get();
    hca_ = attachment_->handle();
    return;
  }
  hca_host_ops ops = host_ops();
  if (sink_) {
    ops.wire_tx_at = [](void* self, const void* frame, std::size_t len, std::int64_t ps) {
      static_cast<Function*>(self)->sink_(frame, len, ps);
      return 0;
    };
  }
  hca_ = hca_create(all.c_str(), &ops, this, err, sizeof err);
  if (!hca_) throw BareError(std::string("hca_create(\"") + all + "\"): " + err);
}

Function::Function(Function& physical, unsigned number)
    : machine_(physical.machine_), hca_(physical.hca_), number_(number) {
  const hca_host_ops ops = host_ops();
  if (physical.pcie_ != nullptr || hca_attach_function(hca_, number, &ops, this) != 0)
    throw BareError("the card has no virtual function " + std::to_string(number));
}

Function::~Function() {
  if (number_ != 0)
    hca_attach_function(hca_, number_, nullptr, nullptr);
  else if (!attachment_)
    hca_destroy(hca_);
}

void Function::raise(unsigned vector) {
  if (vector >= HCA_MSIX_VECTORS) return;
  ++interrupts_[vector];
  if (pending_ == 0 && machine_.clock_) machine_.clock_->raised(*this);
  pending_ |= 1ULL << vector;
}

std::uint8_t Function::read8(std::uint64_t offset) {
  machine_.dirty_ = true;
  if (pcie_) {
    std::uint8_t value = 0xff;
    pcie_->read(offset, &value, 1);
    return value;
  }
  return static_cast<std::uint8_t>(hca_function_read(hca_, number_, offset, 1));
}

std::uint32_t Function::read32(std::uint64_t offset) {
  machine_.dirty_ = true;
  if (pcie_) {
    std::uint32_t value = 0xffffffff;
    pcie_->read(offset, &value, 4);
    return __builtin_bswap32(value);
  }
  return __builtin_bswap32(static_cast<std::uint32_t>(hca_function_read(hca_, number_, offset, 4)));
}

void Function::write32(std::uint64_t offset, std::uint32_t value) {
  const std::uint32_t swapped = __builtin_bswap32(value);
  machine_.dirty_ = true;
  if (pcie_) return pcie_->write(offset, &swapped, 4);
  hca_function_write(hca_, number_, offset, swapped, 4);
}

void Function::write(std::uint64_t offset, const void* bytes, std::size_t len) {
  machine_.dirty_ = true;
  if (pcie_) return pcie_->write(offset, bytes, static_cast<unsigned>(len));
  if (len > 8) {
    hca_function_write_burst(hca_, number_, offset, bytes, len);
    return;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, bytes, len);
  hca_function_write(hca_, number_, offset, value, static_cast<unsigned>(len));
}

void Function::on_interrupt(unsigned vector, std::function<void()> handler) {
  handlers_.at(vector) = std::move(handler);
}

std::uint64_t Function::interrupts() const {
  return std::accumulate(interrupts_.begin(), interrupts_.end(), std::uint64_t{0});
}

void Function::reset() {
  if (pcie_)
    pcie_->reset();
  else
    hca_function_reset(hca_, number_);
  pending_ = 0;
  machine_.dirty_ = true;
}

void Function::set_ats(bool on) { hca_function_ats(hca_, number_, on ? 1 : 0); }

void Function::invalidate_translations(std::uint64_t addr, std::uint64_t len) {
  hca_function_invalidate(hca_, number_, addr, len);
}

void Function::card_reset() {
  if (pcie_) return reset();
  hca_reset(hca_);
  pending_ = 0;
  machine_.dirty_ = true;
}

std::uint64_t Function::counter(const std::string& name) const {
  const unsigned n = hca_ ? hca_counter_count(hca_) : 0;
  for (unsigned i = 0; i < n; ++i) {
    if (name == hca_counter_name(hca_, i)) return hca_counter_value(hca_, i);
  }
  throw BareError("no counter named " + name);
}

std::map<std::string, std::uint64_t> Function::rules_broken() const {
  std::map<std::string, std::uint64_t> out;
  for (unsigned i = 0; i < hca_rule_count(); ++i) {
    if (const std::uint64_t n = hca_rule_broken(hca_, i)) out[hca_rule_name(i)] = n;
  }
  return out;
}

double Function::parameter(const std::string& name) const {
  const unsigned n = hca_ ? hca_parameter_count() : 0;
  for (unsigned i = 0; i < n; ++i) {
    if (name == hca_parameter_name(i)) return hca_parameter_value(hca_, i);
  }
  throw BareError("no parameter named " + name);
}

std::string Function::inject(const std::string& fault) {
  char err[512] = "";
  machine_.dirty_ = true;
  if (hca_inject(hca_, fault.c_str(), err, sizeof err) == 0) return "";
  return err[0] ? err : "refused";
}

bool Function::wire_receive(const std::vector<std::uint8_t>& frame) {
  machine_.dirty_ = true;
  return hca_wire_rx(hca_, frame.data(), frame.size()) == 0;
}

void Function::set_carrier(bool up) {
  machine_.dirty_ = true;
  hca_wire_carrier(hca_, up ? 1 : 0);
}

bool Function::poll_wire() {
  if (!sockets_) return false;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  hca_wire_poll(hca_, std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  return true;
}

bool Function::dispatch() {
  if (attachment_) {
    for (std::uint64_t vectors = attachment_->take_interrupts(); vectors != 0; vectors &= vectors - 1)
      raise(static_cast<unsigned>(__builtin_ctzll(vectors)));
  }
  if (pending_ == 0) return false;
  while (pending_ != 0) {
    const unsigned vector = static_cast<unsigned>(__builtin_ctzll(pending_));
    pending_ &= pending_ - 1;
    if (handlers_[vector]) handlers_[vector]();
  }
  return true;
}

Function& Machine::add_hca(const std::string& options, Function::FrameSink sink) {
  functions_.push_back(std::make_unique<Function>(*this, options, std::move(sink)));
  return *functions_.back();
}

Function& Machine::add_function(Pcie& pcie) {
  functions_.push_back(std::make_unique<Function>(*this, pcie));
  return *functions_.back();
}

Function& Machine::add_virtual(Function& physical, unsigned number) {
  functions_.push_back(std::make_unique<Function>(physical, number));
  return *functions_.back();
}

void Machine::unplug(Function& function) {
  functions_.erase(std::find_if(functions_.begin(), functions_.end(),
                                [&](const auto& f) { return f.get() == &function; }));
}

void Machine::start() {
  if (hca_sim_start(now_) != 0) throw BareError("hca_sim_start failed");
}

bool Machine::dispatch() {
  if (clock_ && clock_->serves()) return false;
  bool any = false;
  for (auto& f : functions_) any = f->dispatch() || any;
  return any;
}

// The same where time is the platform's.
bool Machine::platform_step(std::int64_t limit) {
  if (dispatch()) return true;
  if (clock_->now() >= limit) return false;
  clock_->wait(limit);
  dispatch();
  return true;
}

bool Machine::step(std::int64_t limit, std::int64_t quantum) {
  if (clock_) return platform_step(limit);
  dirty_ = false;
  std::int64_t next = hca_sim_advance(now_, 0);
  bool polled = false;
  for (auto& f : functions_) polled = f->poll_wire() || polled;
  if (polled) next = hca_sim_advance(now_, 0);
  if (reload_every_ != 0 && ++steps_ % reload_every_ == 0) {
    reload();
    next = hca_sim_advance(now_, 0);
  }
  if (dispatch() || dirty_) return true;
  if (now_ >= limit) return false;
  if (next == HCA_NEVER || next > limit) next = limit;
  now_ = std::min(limit, std::max(next, now_ + quantum));
  hca_sim_advance(now_, 0);
  dispatch();
  return true;
}

unsigned Machine::reloads_asked() {
  const char* const text = std::getenv("HCASIM_TEST_RELOAD");
  return text ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 0;
}

void Machine::reload() {
  char err[512] = "";
  std::size_t len = 0;
  const auto save = [&] {
    const void* const state = hca_sim_save(&len, err, sizeof err);
    return std::string(static_cast<const char*>(state), state ? len : 0);
  };
  const std::string state = save();
  if (state.empty()) return;  // one of those that cannot be saved
  if (hca_sim_load(state.data(), state.size(), err, sizeof err) != 0)
    throw BareError(std::string("hca_sim_load: ") + err);
  if (save() != state) throw BareError("hca_sim_save: another state than the one that was loaded");
}

void Machine::advance(std::int64_t ns) {
  const std::int64_t limit = now() + ns;
  while (step(limit)) {
  }
}

}  // namespace hcasim::bare
