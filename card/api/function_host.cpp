// SPDX-License-Identifier: BSD-3-Clause
#include "card/api/function_host.h"

#include <atomic>
#include <string_view>

#include "card/api/instance.h"
#include "card/replay/recording.h"

namespace hcasim::api {

namespace {

// The order that PCIe gives a function's accesses, towards the guest's processors, which run meanwhile under
// KVM and in multi-threaded TCG: what was read first (a doorbell record) is no younger than what is read
// afterwards (the WQEs that it announces), and each write is there before the next one (payload, CQE, EQE)
// and before the interrupt. x86 keeps this order by itself, and the fences are no instructions there; aarch64
// needs them. Between threads of this process the fences do nothing more: the API has one caller at a time.
void reads_before_this_are_done() noexcept { std::atomic_thread_fence(std::memory_order_acquire); }
void accesses_before_this_are_seen() noexcept { std::atomic_thread_fence(std::memory_order_release); }

}  // namespace

void FunctionHost::attach(const hca_host_ops* ops, void* opaque) {
  ops_ = ops ? *ops : hca_host_ops{};
  opaque_ = ops ? opaque : nullptr;
  if (Recorder::current()) ops_.dma_map = nullptr;  // reads that nobody hears of
}

bool FunctionHost::reachable() const noexcept { return card_.in_service && ops_.dma_read; }

std::uint64_t FunctionHost::in_records() const noexcept { return device_number(card_.number, number_); }

bool FunctionHost::dma_read(std::uint64_t addr, void* dst, std::size_t len) noexcept {
  if (!reachable()) return false;
  const bool done = ops_.dma_read(opaque_, addr, dst, len) == 0;
  reads_before_this_are_done();
  if (Recorder* recorder = Recorder::current()) {
    recorder->note(Event::kDmaRead, in_records(), addr, len, done,
                   std::string_view(static_cast<const char*>(dst), done ? len : 0));
  }
  return done;
}

bool FunctionHost::dma_write(std::uint64_t addr, const void* src, std::size_t len) noexcept {
  if (!reachable()) return false;
  accesses_before_this_are_seen();
  const bool done = ops_.dma_write(opaque_, addr, src, len) == 0;
  if (Recorder* recorder = Recorder::current()) {
    recorder->note(Event::kDmaWrite, in_records(), addr, len, done, Digest(src, len).bytes());
  }
  return done;
}

std::uint8_t* FunctionHost::dma_map(std::uint64_t addr, std::size_t len, bool write) noexcept {
  if (!card_.in_service || !ops_.dma_map) return nullptr;
  // What follows is a copy, which has no fence of its own.
  if (write) {
    accesses_before_this_are_seen();
  } else {
    reads_before_this_are_done();
  }
  return static_cast<std::uint8_t*>(ops_.dma_map(opaque_, addr, len, write ? 1 : 0));
}

void FunctionHost::msix(unsigned vector) noexcept {
  if (!reachable() || vector >= hca_function_vectors(&card_, number_)) return;
  accesses_before_this_are_seen();
  ops_.msix(opaque_, vector);
  if (Recorder* recorder = Recorder::current()) recorder->note(Event::kMsix, in_records(), vector);
}

void FunctionHost::log(int level, const char* message) noexcept { card_.log(level, message); }

void FunctionHost::pcie_error(unsigned what, std::uint32_t bit, const char* name) noexcept {
  card_.pcie_error(what, bit, name);
}

void FunctionHost::cable(bool in) noexcept { card_.cable(in); }

}  // namespace hcasim::api
