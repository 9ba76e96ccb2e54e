// SPDX-License-Identifier: BSD-3-Clause
// What worlds that encrypt are made of: keys, and objects of the general commands.
#ifndef HCASIM_TESTS_FUZZ_CRYPTO_PARTS_H
#define HCASIM_TESTS_FUZZ_CRYPTO_PARTS_H

#include <algorithm>

#include "frame_parts.h"
#include "prm/crypto.h"
#include "world_parts.h"

namespace hcasim::bare {

enum : unsigned {
  kReformatAction = 0x10,
  kModifyAction = 0x40,
  kDecryptAction = 0x1000,
  kEncryptAction = 0x2000
};
constexpr std::size_t kMisc2At = 3 * 64, kMisc5At = 6 * 64;

// The object that this mailbox of CREATE_GENERAL_OBJECT makes.
inline EthObject make_general(Device& d, Mailbox in, std::uint32_t type) {
  using H = prm::general_obj_in_cmd_hdr;
  using Out = prm::general_obj_out_cmd_hdr;
  in.set<H::obj_type>(type);
  const auto id = static_cast<std::uint32_t>(d.exec(in, Out::bytes).must().get<Out::obj_id>());
  return {d, id, [&d, id, type] {
            Mailbox gone(prm::op::DESTROY_GENERAL_OBJECT, H::bytes);
            return d.exec(gone.set<H::obj_type>(type).set<H::obj_id>(id));
          }};
}

inline CommandResult query_general(Device& d, std::uint32_t type, std::uint32_t id) {
  using H = prm::general_obj_in_cmd_hdr;
  Mailbox in(prm::op::QUERY_GENERAL_OBJECT, H::bytes);
  return d.exec(in.set<H::obj_type>(type).set<H::obj_id>(id), prm::general_obj_out_cmd_hdr::bytes + 0x100);
}

// key: 128 or 256 bits.
inline EthObject make_dek(Device& d, const Pd& pd, unsigned purpose, const std::vector<std::uint8_t>& key) {
  Mailbox in(prm::op::CREATE_GENERAL_OBJECT, prm::create_key::kBytes);
  in.set<prm::create_key::purpose>(purpose).set<prm::create_key::pd>(pd.pdn());
  in.set<prm::create_key::size>(key.size() == 32 ? prm::kKeySize256 : prm::kKeySize128);
  std::copy(key.begin(), key.end(), in.end() - static_cast<std::ptrdiff_t>(key.size()));
  return make_general(d, in, prm::k::GENERAL_OBJECT_TYPES_ENCRYPTION_KEY);
}

// A table with one group of these criteria.
struct FlowPlace {
  FlowPlace(Device& d, unsigned type, unsigned level, unsigned criteria = 0, const MatchParam& mask = {})
      : type(type),
        table(make_flow_table(d, 4, level, type, true)),
        group(make_flow_group(d, table.number(), 0, 7, criteria, mask, type)) {}
  FlowRule rule(std::uint32_t index = 0) const {
    FlowRule r;
    r.table = table.number(), r.group = group.number(), r.type = type, r.index = index;
    return r;
  }
  unsigned type;
  EthObject table, group;
};

// ACCESS_ASO of an object by that queue: what it was is written to that key's memory.
inline void access_aso(Sq& sq, std::uint8_t opmod, std::uint32_t object, const Mr& to, Dice& dice) {
  std::vector<std::uint8_t> wqe(64);
  prm::CtrlSeg ctrl{};
  ctrl.set(WqeOp::kAso, sq.next_index(), sq.sqn(), 4, prm::kCeAlways, false, opmod);
  ctrl.imm = object;
  std::memcpy(wqe.data(), &ctrl, sizeof ctrl);
  prm::AsoCtrlSeg aso{};
  aso.va_h = static_cast<std::uint32_t>(to.start() >> 32);
  aso.va_l = static_cast<std::uint32_t>(to.start()) | prm::kAsoReadEnable;
  aso.lkey = to.key();
  aso.condition_operands = dice.chance(70) ? (dice.chance(50) ? 0 : 0x11) : dice.byte();
  aso.bitwise_data = dice.any();
  aso.data_mask = std::uint64_t{1} << dice.below(64);
  std::memcpy(wqe.data() + sizeof ctrl, &aso, sizeof aso);
  sq.post_raw(wqe, 1);
}

}  // namespace hcasim::bare
#endif
