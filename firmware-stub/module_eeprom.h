// SPDX-License-Identifier: BSD-3-Clause
// The memory map of the QSFP28 module in the port's cage (SFF-8636): a 100GBASE-SR4 transceiver.
#ifndef HCASIM_FIRMWARE_STUB_MODULE_EEPROM_H
#define HCASIM_FIRMWARE_STUB_MODULE_EEPROM_H

#include <cstdint>

namespace hcasim::fw {

// Bytes from..from + size of the 256 that are seen with upper page `page`. False: no such page, or beyond it.
bool read_module_eeprom(std::uint32_t page, std::uint32_t from, std::uint32_t size, std::uint8_t* out);

}  // namespace hcasim::fw
#endif
