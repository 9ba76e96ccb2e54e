// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/header_arguments.h"

#include <cstring>
#include <iterator>

namespace hcasim {

namespace {
constexpr HeaderArguments::Line kFresh{};
}  // namespace

HeaderArguments::Block* HeaderArguments::find(std::uint32_t& number) {
  const auto after = blocks_.upper_bound(number);
  if (after == blocks_.begin()) return nullptr;
  const auto block = std::prev(after);
  number -= block->first;
  return number < block->second.count ? &block->second : nullptr;
}

bool HeaderArguments::write(std::uint32_t pd, std::uint32_t number, const std::uint8_t* segments,
                            std::size_t len) {
  Block* block = find(number);
  if (block == nullptr || block->pd != pd || len < prm::kFlowUpdateCtrl + prm::kHeaderArgument) return false;
  std::memcpy(block->lines[number].data(), segments + prm::kFlowUpdateCtrl, prm::kHeaderArgument);
  return true;
}

const std::uint8_t* HeaderArguments::line(std::uint32_t number) {
  const Block* block = find(number);
  if (block == nullptr) return nullptr;
  const auto line = block->lines.find(number);
  return line == block->lines.end() ? kFresh.data() : line->second.data();
}

}  // namespace hcasim
