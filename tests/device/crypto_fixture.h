// SPDX-License-Identifier: BSD-3-Clause
// A card that may encrypt, another one beside it that may not, and keys on the first.
#ifndef HCASIM_TESTS_DEVICE_CRYPTO_FIXTURE_H
#define HCASIM_TESTS_DEVICE_CRYPTO_FIXTURE_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "eth_fixture.h"
#include "prm/crypto.h"

namespace hcasim::bare {

class CryptoTest : public ::testing::Test {
 protected:
  using In = prm::general_obj_in_cmd_hdr;
  using Out = prm::general_obj_out_cmd_hdr;

  explicit CryptoTest(const std::string& generation = "connectx6dx") {
    machine.add_hca("link=eth,crypto=on,generation=" + generation);
    machine.add_hca("link=eth,generation=" + generation);
    machine.start();
    dev = std::make_unique<Device>(machine.function(0));
    dev->probe();
  }
  CommandResult general(std::uint16_t opcode, std::uint32_t type, std::uint32_t id) {
    Mailbox in(opcode, In::bytes);
    in.set<In::obj_type>(type).set<In::obj_id>(id);
    return dev->exec(in, Out::bytes + 0x80);
  }
  // key: 128 or 256 bits.
  std::unique_ptr<EthObject> make_dek(unsigned purpose, const std::vector<std::uint8_t>& key) {
    constexpr auto kType = prm::k::GENERAL_OBJECT_TYPES_ENCRYPTION_KEY;
    Mailbox in(prm::op::CREATE_GENERAL_OBJECT, prm::create_key::kBytes);
    in.set<In::obj_type>(kType);
    in.set<prm::create_key::purpose>(purpose).set<prm::create_key::pd>(link->pd.pdn());
    in.set<prm::create_key::size>(key.size() == 32 ? prm::kKeySize256 : prm::kKeySize128);
    std::copy(key.begin(), key.end(), in.end() - static_cast<std::ptrdiff_t>(key.size()));
    const auto id = static_cast<std::uint32_t>(dev->exec(in, Out::bytes).must().get<Out::obj_id>());
    return std::make_unique<EthObject>(
        *dev, id, [this, id] { return general(prm::op::DESTROY_GENERAL_OBJECT, kType, id); });
  }
  // The driver goes, and leaves nothing.
  void leave() {
    link.reset();
    dev->teardown();
    EXPECT_EQ(leftover_objects(machine.function(0)), "");
  }

  Machine machine;
  std::unique_ptr<Device> dev;
  std::unique_ptr<EthLink> link;
};

}  // namespace hcasim::bare
#endif
