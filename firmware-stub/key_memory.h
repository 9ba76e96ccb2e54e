// SPDX-License-Identifier: BSD-3-Clause
// Host memory that a driver lends to its firmware by a key of its own.
#ifndef HCASIM_FIRMWARE_STUB_KEY_MEMORY_H
#define HCASIM_FIRMWARE_STUB_KEY_MEMORY_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "model/pcie/dma.h"
#include "model/time.h"

namespace hcasim::fw {

class Firmware;

// Whether the key lets all of [va, va + len) be written.
bool key_covers(Firmware& fw, std::uint32_t wire_key, std::uint64_t va, std::uint64_t len);
// The first address of what the key leads to; none: no such key.
std::optional<std::uint64_t> key_start(Firmware& fw, std::uint32_t wire_key);

// Reads len bytes into `bytes`, all or nothing; when they are here. None: the key does not let them be read.
std::optional<Time> read_by_key(Firmware& fw, Time t, std::uint32_t wire_key, std::uint64_t va,
                                std::size_t len, std::string& bytes, WriteOwner owner);

// Posts bytes to be written from t on, all or nothing; when they are visible. None: the key does not let them
// be.
std::optional<Time> write_by_key(Firmware& fw, Time t, std::uint32_t wire_key, std::uint64_t va,
                                 const std::uint8_t* bytes, std::size_t len, WriteOwner owner);

}  // namespace hcasim::fw
#endif
