// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/join.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>

#include "traces/analysis.h"
#include "traces/reader.h"

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

  void add(const Record& r) {
    if (r.p() == Point::kGuestCode)
      code(r);
    else if (r.p() == Point::kDoorbell)
      doorbell(r);
    else if (r.p() == Point::kCmdStart)
      command(r);
  }

  Joined finish() {
    for (auto& [queue, open] : open_) close(queue, open, {});
    return std::move(joined_);
  }
  bool any() const { return joined_.writes > 0; }

 private:
  using Chain = std::vector<SourceLine>;
  using Queue = std::tuple<unsigned, unsigned, std::uint32_t>;  // HCA, PCIe function, QPN
  struct Open {
    std::uint32_t first = 0;
    const Chain* lines = nullptr;
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

  void doorbell(const Record& r) {
    const auto by = rung_.find({r.hca, r.function, static_cast<std::uint32_t>(r.a1)});
    const Chain* chain = by != rung_.end() ? by->second : nullptr;
    const Queue queue{r.hca, r.function, r.obj};
    Open& open = open_[queue];
    close(queue, open, r.index);
    open = {r.index, chain};
  }

  /// What a doorbell began ends where the next one of its queue begins.
  void close(const Queue& queue, const Open& open, std::optional<std::uint32_t> next) {
    if (open.lines == nullptr) return;
    const std::string name = fmt::format("{}:{:#x}:{}", std::get<0>(queue), std::get<2>(queue), open.first);
    const std::string wqes = next && *next > open.first + 1 ? fmt::format("{}-{}", name, *next - 1) : name;
    for (const SourceLine& line : unique(*open.lines)) joined_.lines[line].wqes.push_back(wqes);
  }

  void command(const Record& r) {
    const auto by = command_by_.find({r.hca, r.function, r.obj});
    if (by == command_by_.end()) return;
    traces::CommandRow row;
    row.opcode = static_cast<std::uint16_t>(r.a0);
    row.op_mod = static_cast<std::uint16_t>(r.a0 >> 16);
    for (const SourceLine& line : unique(*by->second))
      joined_.lines[line].commands.push_back(fmt::format("cmd:{}:{} {}", r.hca, r.index, row.name()));
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
  std::map<Queue, Open> open_;
};

}  // namespace

Joined join(const std::string& trace, const std::vector<Located>& modules, const std::vector<Load>& loads) {
  Joiner joiner(modules, loads);
  if (traces::read_records(trace,
                           [&](const Record& r, const std::vector<std::uint8_t>&) { joiner.add(r); }) == 2)
    throw std::runtime_error(fmt::format("{}: cannot be read as a trace", trace));
  if (!joiner.any())
    throw std::runtime_error(
        fmt::format("{}: has no point guest_code: trace with --hca guest_pc=on,trace=FILE", trace));
  return joiner.finish();
}

}  // namespace hcasim::coverage
