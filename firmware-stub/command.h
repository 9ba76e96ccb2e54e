// SPDX-License-Identifier: BSD-3-Clause
// A command in the firmware's hands, and what its handlers are made of.
#ifndef HCASIM_FIRMWARE_STUB_COMMAND_H
#define HCASIM_FIRMWARE_STUB_COMMAND_H

#include <cstdint>
#include <vector>

#include "firmware-stub/syndromes.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "prm/prm.h"

namespace hcasim::fw {

class Firmware;

struct Command {
  // The slot of a command that did not come by the command queue but by the tools' mailbox (Icmd).
  static constexpr unsigned kIcmdSlot = 32;

  unsigned slot = 0;
  std::uint32_t seq = 0;
  std::uint16_t opcode = 0, op_mod = 0, uid = 0;
  Time now = 0;                   // when it is executed
  std::size_t in_len = 0;         // bytes the driver gave
  std::vector<std::uint8_t> in;   // at least the opcode's input structure, zero-filled behind in_len
  std::size_t out_len = 0;        // bytes the driver has room for
  std::vector<std::uint8_t> out;  // at least the opcode's output structure; out_len bytes of it go back
  // Of a command that takes more than one step: which comes next, as its handler counts, and when.
  std::uint32_t step = 0;
  Time next = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, slot, seq, opcode, op_mod, uid, now, in_len, in, out_len, out, step, next);
  }
  // The handler runs again then; other commands go on meanwhile.
  Syndrome later(Time t) {
    next = t;
    return Syndrome::kLater;
  }
  bool by_icmd() const { return slot == kIcmdSlot; }
  template <class F>
  auto get() const {
    return prm::get<F>(in.data());
  }
  template <class F>
  void put(typename F::type v) {
    prm::set<F>(out.data(), v);
  }
};

using Handler = Syndrome (*)(Firmware&, Command&);

}  // namespace hcasim::fw
#endif
