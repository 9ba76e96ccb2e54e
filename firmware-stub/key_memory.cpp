// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/key_memory.h"

#include <algorithm>
#include <vector>

#include "firmware-stub/firmware.h"

namespace hcasim::fw {

namespace {

const Mkey* find_key(Firmware& fw, std::uint32_t wire_key) {
  const Mkey* key = fw.device().tpt().find(fw.function().id(), wire_key >> 8);
  return key != nullptr && key->wire_key() == wire_key ? key : nullptr;
}

// As whom the firmware uses it: the key is the driver's word, so that its PD and QP are right by themselves.
KeyUser user_of(const Mkey& key) { return {key.pd, key.qpn, key.function}; }

}  // namespace

bool key_covers(Firmware& fw, std::uint32_t wire_key, std::uint64_t va, std::uint64_t len) {
  const Mkey* key = find_key(fw, wire_key);
  return key != nullptr &&
         fw.device().tpt().check(wire_key, user_of(*key), Access::kLocalWrite, va, len) == TptStatus::kOk;
}

std::optional<std::uint64_t> key_start(Firmware& fw, std::uint32_t wire_key) {
  const Mkey* key = find_key(fw, wire_key);
  return key != nullptr ? std::optional(key->start) : std::nullopt;
}

std::optional<Time> read_by_key(Firmware& fw, Time t, std::uint32_t wire_key, std::uint64_t va,
                                std::size_t len, std::string& bytes, WriteOwner owner) {
  const Mkey* key = find_key(fw, wire_key);
  if (key == nullptr) return {};
  std::vector<Fragment> fragments;
  const Translation where =
      fw.device().tpt().translate(t, wire_key, user_of(*key), Access::kLocalRead, va, len, fragments);
  if (where.status != TptStatus::kOk) return {};
  bytes.resize(len);
  Time here = where.ready;
  std::size_t done = 0;
  for (const Fragment& f : fragments) {
    const ReadDone r =
        fw.device().dma().read_flush(where.ready, f.addr, bytes.data() + done, f.len, f.space, owner);
    if (!r.ok) return {};
    here = std::max(here, r.at);
    done += f.len;
  }
  return here;
}

std::optional<Time> write_by_key(Firmware& fw, Time t, std::uint32_t wire_key, std::uint64_t va,
                                 const std::uint8_t* bytes, std::size_t len, WriteOwner owner) {
  const Mkey* key = find_key(fw, wire_key);
  if (key == nullptr) return {};
  std::vector<Fragment> fragments;
  const Translation where =
      fw.device().tpt().translate(t, wire_key, user_of(*key), Access::kLocalWrite, va, len, fragments);
  if (where.status != TptStatus::kOk) return {};
  Time visible = where.ready;
  for (const Fragment& f : fragments) {
    visible = fw.device().dma().post_write(where.ready, f.addr, bytes, f.len, owner, false, f.space);
    bytes += f.len;
  }
  return visible;
}

}  // namespace hcasim::fw
