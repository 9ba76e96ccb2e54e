// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/measure.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <set>
#include <stdexcept>

namespace hcasim::coverage {
namespace {

bool is_own(const Section& section, std::uint64_t offset, const executed_record& record) {
  if (section.bytes.empty()) return true;
  const std::uint64_t start = offset - section.base;
  if (start + record.size > section.bytes.size()) return false;
  for (std::size_t i = 0; i < record.size; i++)
    if (!section.varies[start + i] && section.bytes[start + i] != record.bytes[i]) return false;
  return true;
}

void add_step(Steps& steps, const Place& place, const executed_record& record,
              const std::optional<Place>& target) {
  const Decoded decoded = decode(record.bytes, record.size);
  Step& step = steps[place];
  // What was patched meanwhile counts together; the way on is that of what ran more often.
  if (record.count >= step.count) {
    step.size = record.size;
    step.kind = decoded.kind;
    step.target = target;
  }
  step.count += record.count;
}

/// Of another module's code, a few instructions may be as ours, where bytes of ours may be anything: those
/// that lead into what is not ours.
void take_away(Steps& steps, std::map<Place, std::uint64_t> foreign) {
  for (auto at = steps.end(); at != steps.begin();) {
    --at;
    auto& [place, step] = *at;
    if (step.kind != Kind::kPlain) continue;
    const auto next = foreign.find({place.section, place.offset + step.size});
    if (next == foreign.end()) continue;
    const std::uint64_t count = std::min(step.count, next->second);
    step.count -= count;
    foreign[place] += count;
    if (step.count == 0) at = steps.erase(at);
  }
}

/// The conditional jumps of a section, whether they ran or not.
std::vector<std::uint64_t> conditional_jumps(const Section& section) {
  std::vector<std::uint64_t> found;
  csh handle = 0;
  if (section.bytes.empty() || cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK) return found;
  cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
  cs_insn* insn = cs_malloc(handle);
  const std::uint8_t* code = section.bytes.data();
  std::size_t left = section.bytes.size();
  std::uint64_t address = section.base;
  while (cs_disasm_iter(handle, &code, &left, &address, insn))
    if (decode(insn->bytes, insn->size).kind == Kind::kConditional) found.push_back(insn->address);
  cs_free(insn, 1);
  cs_close(&handle);
  return found;
}

class Measure {
 public:
  Measure(const Binary& binary, const Ran& ran, const std::vector<std::string>& also)
      : binary_(binary), ran_(ran) {
    for (const std::string& file : binary.files) wanted_.push_back(is_wanted(file, also));
  }

  Coverage make() {
    lines();
    functions();
    branches();
    return std::move(coverage_);
  }

 private:
  bool is_wanted(const std::string& file, const std::vector<std::string>& also) const {
    const auto below = [&](const std::string& folder) {
      return !folder.empty() && file.compare(0, folder.size(), folder) == 0 &&
             (file.size() == folder.size() || file[folder.size()] == '/' || folder.back() == '/');
    };
    return std::any_of(binary_.homes.begin(), binary_.homes.end(), below) ||
           std::any_of(also.begin(), also.end(), below);
  }

  std::uint64_t count_at(const Place& place) const {
    const auto at = ran_.steps.find(place);
    return at != ran_.steps.end() ? at->second.count : 0;
  }

  void lines() {
    std::map<std::pair<std::size_t, unsigned>, std::array<std::optional<std::uint64_t>, 2>> counts;
    for (const LineRow& row : binary_.rows) {
      if (row.line == 0 || !wanted_[row.file]) continue;
      auto& count = counts[{row.file, row.line}][row.statement ? 1 : 0];
      count = std::max(count.value_or(0), count_at(row.at));
    }
    for (const auto& [line, count] : counts)
      file(line.first).lines[line.second] = count[1] ? *count[1] : *count[0];
  }

  void functions() {
    for (const Function& function : binary_.functions) {
      if (!wanted_[function.file]) continue;
      FunctionCount& count = file(function.file).functions[function.name];
      count.line = function.line;
      for (const Place& entry : function.entries) {
        const std::uint64_t times = count_at(entry);
        count.count += times;
        if (std::binary_search(binary_.calls_lead_to.begin(), binary_.calls_lead_to.end(), entry))
          count.called += times;
      }
    }
  }

  void branches() {
    const auto ways = solve(ran_.steps, binary_.calls_lead_to);
    std::set<Place> all;
    for (const auto& [place, way] : ways) all.insert(place);
    for (std::size_t section = 0; section < binary_.sections.size(); section++)
      for (const std::uint64_t offset : conditional_jumps(binary_.sections[section]))
        all.insert({section, offset});
    for (const Place& place : all) {
      const LineRow* row = row_of(place);
      if (row == nullptr || !wanted_[row->file]) continue;
      BranchCount branch;
      if (const auto at = ways.find(place); at != ways.end())
        branch = {true, at->second.straight, at->second.jumped};
      file(row->file).branches[row->line].push_back(branch);
    }
  }

  const LineRow* row_of(const Place& place) const {
    auto at = std::upper_bound(binary_.rows.begin(), binary_.rows.end(), place,
                               [](const Place& p, const LineRow& row) { return p < row.at; });
    if (at == binary_.rows.begin()) return nullptr;
    --at;
    return at->at.section == place.section && at->line != 0 ? &*at : nullptr;
  }

  FileCoverage& file(std::size_t index) { return coverage_.files[binary_.files[index]]; }

  const Binary& binary_;
  const Ran& ran_;
  std::vector<bool> wanted_;
  Coverage coverage_;
};

}  // namespace

Ran ran_of_module(const Binary& binary, const std::string& name, const Executed& executed,
                  const std::vector<Load>& loads) {
  Ran ran;
  std::set<std::map<std::string, std::uint64_t>> layouts;
  std::vector<std::map<std::uint64_t, std::size_t>> placed;  // of each load: sections by address
  for (const Load& load : loads) {
    if (load.module != name || !layouts.insert(load.sections).second) continue;
    std::map<std::uint64_t, std::size_t> sections;
    for (std::size_t i = 0; i < binary.sections.size(); i++)
      if (const auto at = load.sections.find(binary.sections[i].name); at != load.sections.end())
        if (binary.sections[i].size > 0) sections[at->second] = i;
    placed.push_back(std::move(sections));
  }
  ran.loads = placed.size();
  const auto find = [&](const std::map<std::uint64_t, std::size_t>& sections,
                        std::uint64_t address) -> std::optional<Place> {
    auto at = sections.upper_bound(address);
    if (at == sections.begin()) return {};
    --at;
    if (address - at->first >= binary.sections[at->second].size) return {};
    return Place{at->second, address - at->first};
  };
  std::map<Place, std::uint64_t> foreign;
  for (const executed_record& record : executed.records) {
    if (record.library != 0 || record.count == 0) continue;
    std::optional<Place> inside;
    bool own = false;
    for (const auto& sections : placed) {
      const auto place = find(sections, record.address);
      if (!place) continue;
      inside = place;
      if (!is_own(binary.sections[place->section], place->offset, record)) continue;
      const Decoded decoded = decode(record.bytes, record.size);
      std::optional<Place> target;
      if (decoded.kind == Kind::kConditional || decoded.kind == Kind::kJump)
        target = find(sections, record.address + record.size + static_cast<std::uint64_t>(decoded.target));
      add_step(ran.steps, *place, record, target);
      own = true;
      break;
    }
    if (inside && !own) {
      ran.foreign++;
      foreign[*inside] += record.count;
    }
  }
  take_away(ran.steps, std::move(foreign));
  settle_repeated(ran.steps);
  return ran;
}

Ran ran_of_library(const Binary& binary, unsigned index, const Executed& executed) {
  Ran ran;
  const std::vector<Segment> segments = code_segments(binary.path);
  for (const executed_record& record : executed.records) {
    if (record.library != index || record.count == 0) continue;
    const auto place = place_in_library(binary, segments, record.address);
    if (!place) continue;
    const Decoded decoded = decode(record.bytes, record.size);
    std::optional<Place> target;
    if (decoded.kind == Kind::kConditional || decoded.kind == Kind::kJump)
      target = place_in_library(binary, segments,
                                record.address + record.size + static_cast<std::uint64_t>(decoded.target));
    add_step(ran.steps, *place, record, target);
    ran.loads = 1;
  }
  settle_repeated(ran.steps);
  return ran;
}

Coverage measure(const Binary& binary, const Ran& ran, const std::vector<std::string>& also) {
  return Measure(binary, ran, also).make();
}

std::vector<page_entry> library_pages(const std::vector<std::string>& paths) {
  std::vector<page_entry> entries;
  if (paths.size() > 0xffff) throw std::runtime_error("no more than 65535 libraries");
  for (std::size_t index = 0; index < paths.size(); index++) {
    std::ifstream in(paths[index], std::ios::binary);
    for (const Segment& segment : code_segments(paths[index])) {
      for (std::uint64_t page = segment.in_file / EXECUTED_PAGE;
           page * EXECUTED_PAGE < segment.in_file + segment.size; page++) {
        std::array<std::uint64_t, EXECUTED_PAGE / 8> words{};
        in.clear();
        in.seekg(static_cast<std::streamoff>(page * EXECUTED_PAGE));
        in.read(reinterpret_cast<char*>(words.data()), EXECUTED_PAGE);
        if (in.gcount() == 0)
          throw std::runtime_error(fmt::format("{}: cut off: its code is not all there", paths[index]));
        page_entry entry{};
        entry.hash = executed_page_hash(words.data());
        entry.page = static_cast<std::uint32_t>(page);
        entry.library = static_cast<std::uint16_t>(index + 1);
        entries.push_back(entry);
      }
    }
  }
  return entries;
}

}  // namespace hcasim::coverage
