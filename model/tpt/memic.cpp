// SPDX-License-Identifier: BSD-3-Clause
#include "model/tpt/memic.h"
#include "model/state/state.h"

#include <algorithm>
#include <cstring>

namespace hcasim {

namespace {

std::uint64_t load_le(const std::uint8_t* p, unsigned len) {
  std::uint64_t v = 0;
  for (unsigned i = 0; i < len; ++i) v |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  return v;
}

void store_le(std::uint8_t* p, unsigned len, std::uint64_t v) {
  for (unsigned i = 0; i < len; ++i) p[i] = static_cast<std::uint8_t>(v >> (8 * i));
}

}  // namespace

bool Memic::allocate(std::uint64_t from, std::uint64_t range, std::uint64_t size, unsigned log_align,
                     std::uint64_t& addr) {
  const std::uint64_t end = kBase + kBytes;
  if (from < kBase || from > end || size == 0 || size % kGranule || log_align > 20) return false;
  const std::uint64_t limit = range < end - from ? from + range : end;
  const std::uint64_t align = std::max(kGranule, std::uint64_t{1} << log_align) - 1;
  std::uint64_t at = (from + align) & ~align;
  for (const auto& [start, area] : areas_) {
    if (start + area.size <= at) continue;
    if (at + size <= start) break;
    at = (start + area.size + align) & ~align;
  }
  if (at > limit || size > limit - at) return false;
  if (bytes_.empty()) bytes_.resize(kBytes);
  areas_[at].size = size;
  std::memset(this->at(at), 0, size);
  addr = at;
  return true;
}

Memic::Area* Memic::find(std::uint64_t addr) {
  const auto it = areas_.find(addr);
  return it != areas_.end() ? &it->second : nullptr;
}

Memic::Area* Memic::holding(std::uint64_t addr, std::uint64_t len) {
  auto it = areas_.upper_bound(addr);
  if (it == areas_.begin()) return nullptr;
  --it;
  const std::uint64_t in = addr - it->first;
  return in < it->second.size && len <= it->second.size - in ? &it->second : nullptr;
}

void Memic::clear() { reset_state(*this); }

std::uint8_t* Memic::operand(std::uint64_t offset, unsigned len, MemicOp& op) {
  const std::uint64_t number = (offset - kBase) / kWindow - 1;
  const std::uint64_t addr = kBase + (offset - kBase) % kWindow;
  const Area* area = holding(addr, len);
  if (number >= kMemicOps || area == nullptr || !area->ops[number]) return nullptr;
  if ((len != 1 && len != 2 && len != 4 && len != 8) || addr % len) return nullptr;
  op = static_cast<MemicOp>(number);
  return at(addr);
}

bool Memic::load(std::uint64_t offset, std::uint8_t* bytes, unsigned len) {
  if (offset < kBase + kWindow) return read(offset, bytes, len);
  MemicOp op;
  std::uint8_t* p = operand(offset, len, op);
  if (p == nullptr || op != MemicOp::kTestAndSet) return false;
  std::memcpy(bytes, p, len);
  store_le(p, len, 1);
  return true;
}

bool Memic::store(std::uint64_t offset, const std::uint8_t* bytes, unsigned len) {
  if (offset < kBase + kWindow) return write(offset, bytes, len);
  MemicOp op;
  std::uint8_t* p = operand(offset, len, op);
  if (p == nullptr || op != MemicOp::kIncrement) return false;
  store_le(p, len, load_le(p, len) + load_le(bytes, len));
  return true;
}

bool Memic::read(std::uint64_t addr, void* dst, std::size_t len) {
  if (holding(addr, len) == nullptr) return false;
  std::memcpy(dst, at(addr), len);
  return true;
}

bool Memic::write(std::uint64_t addr, const void* src, std::size_t len) {
  if (holding(addr, len) == nullptr) return false;
  std::memcpy(at(addr), src, len);
  return true;
}

}  // namespace hcasim
