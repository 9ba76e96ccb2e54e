// SPDX-License-Identifier: BSD-3-Clause
#include "coverage/executed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace hcasim::coverage {

Executed read_executed(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(fmt::format("{}: cannot be read", path));
  static_assert(sizeof(executed_header) < 100'000, "on the stack");
  executed_header header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!in || std::memcmp(header.magic, EXECUTED_MAGIC, sizeof header.magic) != 0)
    throw std::runtime_error(fmt::format("{}: no file of executed instructions", path));
  if (header.records > EXECUTED_CAPACITY)
    throw std::runtime_error(
        fmt::format("{}: damaged: says that it has {} instructions", path, header.records));
  if (header.mappings > EXECUTED_MAPPINGS)
    throw std::runtime_error(
        fmt::format("{}: damaged: says that it has {} places of libraries", path, header.mappings));
  Executed executed;
  executed.mappings.assign(header.mapping, header.mapping + header.mappings);
  executed.left_out = header.left_out;
  executed.records.resize(header.records);
  const auto bytes = static_cast<std::streamsize>(executed.records.size() * sizeof(executed_record));
  in.read(reinterpret_cast<char*>(executed.records.data()), bytes);
  if (in.gcount() != bytes)
    throw std::runtime_error(fmt::format("{}: cut off: {} instructions announced", path, header.records));
  for (const executed_record& record : executed.records)
    if (record.size == 0 || record.size > EXECUTED_LONGEST)
      throw std::runtime_error(fmt::format("{}: damaged: an instruction of {} bytes", path, record.size));
  return executed;
}

bool Executed::uncounted() const {
  return !records.empty() &&
         std::all_of(records.begin(), records.end(), [](const executed_record& r) { return r.count == 0; });
}

std::vector<Load> read_loads(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(fmt::format("{}: cannot be read", path));
  std::vector<Load> loads;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string first, second;
    if (!(words >> first >> second)) continue;
    if (first == "module") {
      loads.push_back({second, {}});
    } else if (first == "library") {
      std::string third;
      words >> third;
      if (const std::uint64_t base = std::strtoull(third.c_str(), nullptr, 16); base != 0)
        loads.push_back({second, {}, base});
    } else if (!loads.empty() && first.front() == '.') {
      char* end = nullptr;
      const std::uint64_t address = std::strtoull(second.c_str(), &end, 16);
      // Zero is what the kernel says to those who may not know.
      if (*end == '\0' && address != 0) loads.back().sections[first] = address;
    }
  }
  return loads;
}

std::string library_load(const std::string& name, std::uint64_t base) {
  return fmt::format("library {} {:#x}\n", name, base);
}

}  // namespace hcasim::coverage
