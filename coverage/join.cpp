// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/join.h"

#include <fmt/format.h>

#include <set>
#include <stdexcept>
#include <tuple>

#include "traces/analysis.h"
#include "traces/reader.h"
#include "traces/story.h"

namespace hcasim::coverage {
namespace {

using traces::Point;
using traces::Record;

constexpr std::uint32_t kCommandDoorbell = 0x18;  // BAR0 offset of initial_seg::command_doorbell_vector
constexpr std::uint32_t kUarPage = 4096;
constexpr std::uint32_t kFirstSendDoorbell = 0x800;  // in a UAR page; below are those of CQs and EQs

/// From records in file order to the line behind each doorbell and command.
class Joiner {
 public:
  Joiner(const std::vector<Located>& modules, const std::vector<Load>& loads)
      : modules_(modules), loads_(loads) {}

  void add(const Record& r, const std::vector<std::uint8_t>& blob) {
    analysis_.add(r, blob);
    const std::uint64_t number = records_++;
    if (r.p() == Point::kGuestCode)
      code(r);
    else if (r.p() == Point::kDoorbell)
      doorbell(r, number);
    else if (r.p() == Point::kCmdStart)
      command(r);
  }

  Joined finish() {
    analysis_.finish();
    for (const traces::WqeRow& w : analysis_.wqes()) {
      const auto by = doorbells_.find(w.batch[static_cast<unsigned>(traces::Stage::kDoorbell)]);
      if (by == doorbells_.end()) continue;
      Doorbell& doorbell = by->second;
      if (doorbell.first == nullptr || w.serial < doorbell.first->serial) doorbell.first = &w;
      if (doorbell.last == nullptr || w.serial > doorbell.last->serial) doorbell.last = &w;
    }
    for (const auto& [number, doorbell] : doorbells_)
      for (const SourceLine& line : unique(*doorbell.lines))
        joined_.lines[line].wqes.push_back(wqes_of(doorbell));
    return std::move(joined_);
  }
  bool any() const { return joined_.writes > 0; }

 private:
  using Chain = std::vector<SourceLine>;
  struct Doorbell {
    const Chain* lines = nullptr;
    unsigned hca = 0;
    std::uint32_t qpn = 0;
    const traces::WqeRow *first = nullptr, *last = nullptr;  // that it rang for
  };

  void code(const Record& r) {
    joined_.writes++;
    const Chain* chain = lines_of(r.a0);
    // A return address stands behind the call.
    if (chain->empty() && r.a1 != 0) chain = lines_of(r.a1 - 1);
    if (chain->empty()) joined_.elsewhere++;
    for (const SourceLine& line : unique(*chain)) joined_.lines[line].writes++;
    if (r.obj == kCommandDoorbell) {
      const std::uint32_t slots = __builtin_bswap32(r.index);
      for (unsigned slot = 0; slot < 32; slot++)
        if ((slots >> slot & 1) != 0) command_by_[{r.hca, r.function, slot}] = chain;
    } else if (r.obj % kUarPage >= kFirstSendDoorbell) {
      rung_[{r.hca, r.function, r.obj / kUarPage}] = chain;
    }
  }

  void doorbell(const Record& r, std::uint64_t number) {
    const auto by = rung_.find({r.hca, r.function, static_cast<std::uint32_t>(r.a1)});
    if (by != rung_.end()) doorbells_[number] = {by->second, r.hca, r.obj, nullptr, nullptr};
  }

  static std::string wqes_of(const Doorbell& d) {
    if (d.first == nullptr) return fmt::format("{}:{:#x}: no WQE that was fetched", d.hca, d.qpn);
    if (d.first == d.last) return traces::wqe_id(*d.first);
    const std::string life = d.last->life != 0 ? fmt::format(".{}", d.last->life) : "";
    return fmt::format("{}:{:#x}:{}-{}{}", d.hca, d.qpn, d.first->serial, d.last->serial, life);
  }

  void command(const Record& r) {
    const auto by = command_by_.find({r.hca, r.function, r.obj});
    if (by == command_by_.end()) return;
    traces::CommandRow row;
    row.opcode = static_cast<std::uint16_t>(r.a0);
    row.op_mod = static_cast<std::uint16_t>(r.a0 >> 16);
    for (const SourceLine& line : unique(*by->second))
      joined_.lines[line].commands.push_back(
          fmt::format("cmd:{}:{} {}", traces::place_of(r), r.index, row.name()));
  }

  static std::set<SourceLine> unique(const Chain& chain) { return {chain.begin(), chain.end()}; }

  const Chain* lines_of(std::uint64_t address) {
    const auto [at, fresh] = known_.try_emplace(address);
    if (fresh) at->second = find(address);
    return &at->second;
  }

  Chain find(std::uint64_t address) const {
    // The last load that covers it: a module that was loaded again.
    for (auto load = loads_.rbegin(); load != loads_.rend(); ++load)
      for (const Located& module : modules_) {
        if (module.name != load->module) continue;
        if (load->base != 0) {
          const auto place =
              place_in_library(*module.binary, code_segments(module.binary->path), address - load->base);
          if (place) return module.locator->lines_of(*place);
          continue;
        }
        const auto& sections = module.binary->sections;
        for (std::size_t i = 0; i < sections.size(); i++) {
          const auto start = load->sections.find(sections[i].name);
          if (start == load->sections.end() || address < start->second ||
              address - start->second >= sections[i].size)
            continue;
          return module.locator->lines_of({i, address - start->second});
        }
      }
    return {};
  }

  const std::vector<Located>& modules_;
  const std::vector<Load>& loads_;
  Joined joined_;
  std::map<std::uint64_t, Chain> known_;
  std::map<std::tuple<unsigned, unsigned, std::uint32_t>, const Chain*> rung_, command_by_;
  traces::Analysis analysis_;
  std::uint64_t records_ = 0;
  std::map<std::uint64_t, Doorbell> doorbells_;  // by the number of its record
};

}  // namespace

Joined join(const std::string& trace, const std::vector<Located>& modules, const std::vector<Load>& loads) {
  Joiner joiner(modules, loads);
  if (traces::read_records(
          trace, [&](const Record& r, const std::vector<std::uint8_t>& b) { joiner.add(r, b); }) == 2)
    throw std::runtime_error(fmt::format("{}: cannot be read as a trace", trace));
  if (!joiner.any())
    throw std::runtime_error(
        fmt::format("{}: has no point guest_code: trace with --hca guest_pc=on,trace=FILE", trace));
  return joiner.finish();
}

}  // namespace hcasim::coverage
