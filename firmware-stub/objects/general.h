// SPDX-License-Identifier: BSD-3-Clause
// General objects: one set of opcodes (CREATE, MODIFY, QUERY, DESTROY_GENERAL_OBJECT), the type in op_mod's
// place. general.def lists the types; each has handlers like an opcode's, which take and give the object's
// number in the header's obj_id.
#ifndef HCASIM_FIRMWARE_STUB_OBJECTS_GENERAL_H
#define HCASIM_FIRMWARE_STUB_OBJECTS_GENERAL_H

#include <cstdint>
#include <vector>

#include "firmware-stub/command.h"
#include "firmware-stub/options.h"

namespace hcasim::fw {

struct GeneralType {
  const char* name;
  std::uint16_t type;
  std::size_t min_in;               // bytes of CREATE's input: the header and the object
  std::size_t min_out;              // bytes of QUERY's output
  bool (*offered)(const Options&);  // null: always. Sets the type's bit in general_obj_types (types 0-63).
  std::uint32_t uctx_cap;           // what a user context must have been made with
  Handler create, modify, query, destroy;  // null: the type does not have it
};

const std::vector<GeneralType>& general_types();
// cmd_hca_cap.general_obj_types for this card.
std::uint64_t general_obj_types(const Options& options);

// check_access() of general objects: the type's right, and the object's owner. What the object refers to is
// checked by its handlers.
Syndrome check_general_access(Firmware& fw, const Command& cmd);

}  // namespace hcasim::fw
#endif
