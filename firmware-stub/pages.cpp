// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/pages.h"

#include <algorithm>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "model/eq/eq.h"
#include "model/fault/injector.h"
#include "model/function/function.h"
#include "model/state/state.h"
#include "prm/eqe.h"
#include "traces/tracer.h"

namespace hcasim::fw {

namespace {
constexpr std::uint64_t kLow = 64;     // free pages below which more are asked for ...
constexpr std::uint64_t kChunk = 128;  // ... this many at a time
constexpr std::uint64_t kMaxAsk = 1 << 16;
// That a function may have given: more than its objects can take, and few of one that is never asked.
constexpr std::uint64_t kMostPages = 1 << 20, kMostUnasked = 1 << 12;
// op_mod of QUERY_PAGES and MANAGE_PAGES (mlx5 pagealloc.c).
enum : std::uint16_t { kQueryBoot = 1, kQueryInit = 2, kQueryRegular = 3 };
enum : std::uint16_t { kCantGive = 0, kGive = 1, kTake = 2 };

std::uint64_t to_pages(std::uint64_t bytes) {
  return (bytes + (1u << PagePool::kPageShift) - 1) >> PagePool::kPageShift;
}
}  // namespace

PagePool::PagePool(Blocks blocks, unsigned boot, unsigned init, std::function<void(Time, std::int32_t)> asked)
    : blocks_(blocks), enabled_(init != 0), asked_(std::move(asked)), boot_(boot), init_(init) {}

// The boot pages hold the firmware's own data; objects live in the others.
std::uint64_t PagePool::used_pages() const {
  return enabled_ ? std::min<std::uint64_t>(boot_, pages_.size()) + to_pages(icm_) : 0;
}

std::uint64_t PagePool::free_pages() const {
  const std::uint64_t used = used_pages();
  return pages_.size() > used ? pages_.size() - used : 0;
}

unsigned PagePool::regular_pages() const {
  if (!enabled_ || free_pages() >= kLow) return 0;
  return static_cast<unsigned>(kChunk);
}

bool PagePool::charge(std::uint64_t bytes) {
  if (!enabled_) return true;
  if (boot_ + to_pages(icm_ + bytes) > pages_.size()) {
    wanted_ = bytes;
    return false;
  }
  icm_ += bytes;
  return true;
}

bool PagePool::send_request(Time t, std::int32_t pages) {
  prm::EqePageReq event{};
  event.func_id = 0;
  event.num_pages = static_cast<std::uint32_t>(pages);
  const std::uint8_t type = static_cast<std::uint8_t>(prm::EqeType::kPageRequest);
  bool heard = false;
  for (std::uint32_t eqn = 0; eqn < 256 && !heard; ++eqn) {
    const Eq* eq = blocks_.function.eqs().find(eqn);
    heard = eq != nullptr && (eq->mask[0] >> type & 1) != 0;
  }
  if (!heard) return false;
  const Injector::Actions lost{FaultAction::kPagesLost};
  Injector& injector = blocks_.injector;
  const bool withheld = injector.armed(FaultType::kPageRequest) &&
                        injector.strike(FaultType::kPageRequest, t, {}, {blocks_.function.id(), 0},
                                        static_cast<std::uint32_t>(pages), lost) != nullptr;
  if (!withheld) blocks_.eqs.post(t, blocks_.function.id(), type, 0, &event, sizeof event);
  pending_ = pending_ || pages > 0;
  ++requests_;
  asked_(t, pages);
  return true;
}

bool PagePool::request_now(Time t) {
  if (!enabled_) return false;
  if (refused_) {
    refused_ = waiting_ = false;
    return false;
  }
  waiting_ = true;
  if (pending_) return true;
  const std::uint64_t need = boot_ + to_pages(icm_ + wanted_);
  const std::uint64_t missing = need > pages_.size() ? need - pages_.size() : 0;
  if (missing > kMaxAsk) return false;
  return send_request(t, static_cast<std::int32_t>(std::max(missing + kLow, kChunk)));
}

void PagePool::request_if_low(Time t) {
  if (!enabled_ || pending_ || low_refused_ || pages_.empty() || icm_ == 0 || free_pages() >= kLow) return;
  send_request(t, static_cast<std::int32_t>(kChunk));
}

Syndrome PagePool::give(const Command& cmd, std::uint32_t count) {
  using in = prm::manage_pages_in;
  if (count > prm::fit_count<in::pas>(cmd.in_len)) return Syndrome::kPageCount;
  const std::uint64_t most = enabled_ ? kMostPages : kMostUnasked;
  if (count > most - std::min<std::uint64_t>(most, pages_.size())) return Syndrome::kPageLimit;
  std::unordered_set<std::uint64_t> fresh;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t pa = prm::get<in::pas>(cmd.in.data(), i);
    if ((pa & ((1u << kPageShift) - 1)) != 0) return Syndrome::kPageAddress;
    // The kernel's driver keeps page 0 back, as firmware has not always taken it; rdma-core's VFIO driver
    // gives it first, an IOMMU's address like any other.
    if (pa == 0)
      blocks_.tracer.broke_value(traces::Rule::kPageAddress, cmd.now, traces::RuleObject::kCommand, cmd.seq,
                                 pa);
    if (known_.count(pa) != 0 || !fresh.insert(pa).second) return Syndrome::kPageTwice;
  }
  for (std::uint32_t i = 0; i < count; ++i) pages_.push_back(prm::get<in::pas>(cmd.in.data(), i));
  known_.insert(fresh.begin(), fresh.end());
  pending_ = waiting_ = refused_ = low_refused_ = false;
  return Syndrome::kOk;
}

std::uint32_t PagePool::take(std::uint8_t* out, std::uint32_t count, bool all) {
  const std::uint64_t may = all ? pages_.size() : free_pages();
  const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, may));
  for (std::uint32_t i = 0; i < n; ++i) {
    prm::set<prm::manage_pages_out::pas>(out, i, pages_.back());
    known_.erase(pages_.back());
    pages_.pop_back();
  }
  return n;
}

void PagePool::objects_dropped() {
  StateReset reset;
  list_use(reset);
}

Syndrome query_pages(Firmware& fw, Command& cmd) {
  using out = prm::query_pages_out;
  if (cmd.get<prm::query_pages_in::function_id>() != 0) return Syndrome::kFunction;
  unsigned n = 0;
  switch (cmd.op_mod) {
    case kQueryBoot:
      n = fw.pages().boot_pages();
      break;
    case kQueryInit:
      n = fw.pages().init_pages();
      break;
    case kQueryRegular:
      n = fw.pages().regular_pages();
      break;
    default:
      return Syndrome::kOpMod;
  }
  cmd.put<out::num_pages>(n);
  return Syndrome::kOk;
}

Syndrome manage_pages(Firmware& fw, Command& cmd) {
  using in = prm::manage_pages_in;
  using out = prm::manage_pages_out;
  if (cmd.get<in::function_id>() != 0) return Syndrome::kFunction;
  const std::uint32_t count = cmd.get<in::input_num_entries>();
  switch (cmd.op_mod) {
    case kCantGive:
      fw.pages().refused();
      fw.cmdq().pages_changed();
      return Syndrome::kOk;
    case kGive: {
      const Syndrome s = fw.pages().give(cmd, count);
      if (s == Syndrome::kOk) fw.cmdq().pages_changed();
      return s;
    }
    case kTake: {
      const std::size_t room = prm::fit_count<out::pas>(cmd.out_len);
      const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(count, room));
      cmd.put<out::output_num_entries>(fw.pages().take(cmd.out.data(), n, fw.state() != State::kInit));
      return Syndrome::kOk;
    }
    default:
      return Syndrome::kOpMod;
  }
}

}  // namespace hcasim::fw
