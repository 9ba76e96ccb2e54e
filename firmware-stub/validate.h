// SPDX-License-Identifier: BSD-3-Clause
// What the driver does that the command interface answers as if it were right, or with a status that does not
// say it all: reported as broken rules (traces/rule_list.h).
#ifndef HCASIM_FIRMWARE_STUB_VALIDATE_H
#define HCASIM_FIRMWARE_STUB_VALIDATE_H

#include <string>

#include "firmware-stub/command.h"
#include "firmware-stub/opcodes.h"
#include "prm/cmd_queue.h"

namespace hcasim::fw {

// Of an entry that is answered with this delivery status; kCount: none.
traces::Rule rule_of(prm::CmdDelivery delivery);

// Bits that the command's input structure does not have. User contexts' commands are not looked at: what they
// carry is made by libraries of other versions.
void validate_input(Firmware& fw, const Command& cmd);
// A command that failed with `syndrome`.
void validate_refused(Firmware& fw, const Command& cmd, const Opcode* op, Syndrome syndrome);
// The objects that there are, "2 CQs, 1 QP"; "" when there are none.
std::string objects_left(Firmware& fw);

}  // namespace hcasim::fw
#endif
