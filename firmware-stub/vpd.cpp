// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/vpd.h"

#include <cstdio>
#include <numeric>
#include <string>

namespace hcasim::fw {

namespace {

enum : std::uint8_t { kIdentifierString = 0x82, kReadOnly = 0x90, kEnd = 0x78 };

void add_resource(std::vector<std::uint8_t>& out, std::uint8_t tag, const std::string& data) {
  out.push_back(tag);
  out.push_back(static_cast<std::uint8_t>(data.size()));
  out.push_back(static_cast<std::uint8_t>(data.size() >> 8));
  out.insert(out.end(), data.begin(), data.end());
}

std::string keyword(const char* name, const std::string& value) {
  return name + std::string(1, static_cast<char>(value.size())) + value;
}

}  // namespace

std::string product_description(const Options& options) {
  return std::string(options.generation->product) + " host channel adapter, hcasim";
}

std::vector<std::uint8_t> vital_product_data(const Options& options) {
  const Generation& g = *options.generation;
  char serial[17], unique[33];
  const auto guid = static_cast<unsigned long long>(options.card_guid);
  std::snprintf(serial, sizeof serial, "%016llx", guid);
  std::snprintf(unique, sizeof unique, "%016llx%016llx", guid, ~guid);
  std::vector<std::uint8_t> out;
  add_resource(out, kIdentifierString, product_description(options));
  std::string fields =
      keyword("PN", g.part) + keyword("EC", "A1") + keyword("SN", serial) +
      keyword("V3", unique) +  // what devlink calls the device's serial number
      keyword("V0", "PCIeGen" + std::to_string(g.pcie_generation) + " x" + std::to_string(g.pcie_lanes)) +
      keyword("V1", g.psid);
  fields += keyword("RV", std::string(1, '\0'));
  add_resource(out, kReadOnly, fields);
  // RV's byte makes the sum of all bytes up to itself zero.
  out.back() = static_cast<std::uint8_t>(-std::accumulate(out.begin(), out.end(), 0));
  out.push_back(kEnd);
  return out;
}

}  // namespace hcasim::fw
