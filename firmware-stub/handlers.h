// SPDX-License-Identifier: BSD-3-Clause
// The handlers that the opcode table names. Each checks the whole input before it changes anything, so that a
// refused command leaves no trace, and so that a command that waits for host pages can be run again.
#ifndef HCASIM_FIRMWARE_STUB_HANDLERS_H
#define HCASIM_FIRMWARE_STUB_HANDLERS_H

#include "firmware-stub/command.h"

namespace hcasim::fw {

#define HCASIM_OPCODE_OF(NAME, op, in, out, whole_in, whole_out, states, need, handler, time, ...) \
  Syndrome handler(Firmware&, Command&);
#include "firmware-stub/opcodes.def"
#undef HCASIM_OPCODE_OF
#undef HCASIM_OPCODE
#undef HCASIM_OP_FROM
#undef HCASIM_OP
#undef HCASIM_END

}  // namespace hcasim::fw
#endif
