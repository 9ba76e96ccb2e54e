// SPDX-License-Identifier: BSD-3-Clause
// Keys of PSP: the receiver's, which its device makes (PSP_GEN_SPI), and the device key that they follow from
// (PSP_ROTATE_KEY). What a peer's device has made is a DEK here.
#include <algorithm>
#include <vector>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/options.h"
#include "prm/crypto.h"
#include "prm/psp.h"

namespace hcasim::fw {

Syndrome psp_gen_spi(Firmware& fw, Command& cmd) {
  namespace psp = prm::psp;
  const std::uint32_t size = cmd.get<psp::gen_spi_in::key_size>();
  const std::uint32_t count = cmd.get<psp::gen_spi_in::num_of_spi>();
  if (size != prm::kKeySize128 && size != prm::kKeySize256) return Syndrome::kDekSize;
  if (count == 0 || count > 1u << kLogPspSpis) return Syndrome::kPspCount;
  if (cmd.out_len < psp::gen_spi_out::bytes + count * psp::key_spi::bytes) return Syndrome::kOutputShort;
  PspKeys& keys = fw.function().psp();
  if (keys.left() < count) return Syndrome::kPspSpent;
  const std::size_t len = size == prm::kKeySize256 ? psp::key_spi::key_bytes : psp::key_spi::key_bytes / 2;
  std::uint8_t* p = cmd.out.data() + psp::gen_spi_out::bytes;
  for (std::uint32_t i = 0; i < count; ++i, p += psp::key_spi::bytes) {
    std::vector<std::uint8_t> key;
    prm::set<psp::key_spi::spi>(p, keys.generate(len, key));
    std::copy(key.begin(), key.end(), p + psp::key_spi::bytes - len);
  }
  cmd.put<psp::gen_spi_out::num_of_spi>(count);
  return Syndrome::kOk;
}

Syndrome psp_rotate_key(Firmware& fw, Command&) {
  fw.function().psp().rotate();
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
