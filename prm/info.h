// SPDX-License-Identifier: BSD-3-Clause
/// Run-time tables of the generated layouts, to print structures and commands by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hcasim::prm {

struct StructInfo;

struct FieldInfo {
  const char* name;
  uint32_t bit_off;  ///< from the start of the enclosing structure
  uint32_t bits;     ///< of the field, or of one element of an array
  int32_t nested;    ///< index of its structure type; -1: a scalar
  int32_t count;     ///< -1: not an array; 0: as many elements as the buffer holds

  const StructInfo* nested_struct() const;
};

struct StructInfo {
  const char* name;  ///< e.g. "create_cq_in"
  uint32_t bits;
  bool is_union;
  const FieldInfo* fields;
  uint32_t field_count;

  /// nullptr if there is no such field.
  const FieldInfo* find(std::string_view field) const;
};

struct OpcodeInfo {
  uint16_t value;
  const char* name;  ///< e.g. "CREATE_CQ"
  int32_t in, out;   ///< numbers of the mailbox structures; -1: unknown
};

/// The structure `name` ("cqc", "create_cq_in"); nullptr if mlx5_ifc.h has none.
const StructInfo* find_struct(std::string_view name);

/// "CREATE_CQ" for 0x400; "0x...." for an unknown opcode.
std::string opcode_name(uint16_t opcode);
/// nullptr for an unknown opcode.
const OpcodeInfo* find_opcode(uint16_t opcode);
/// Input and output mailbox structures of a command; nullptr if unknown.
const StructInfo* input_struct(uint16_t opcode);
const StructInfo* output_struct(uint16_t opcode);

/// All non-zero fields within `len` bytes as `path=0x..`, separated by spaces. Of a union the member
/// `union_member` is printed (default: the first one). Output is bounded.
std::string dump(const StructInfo& info, const uint8_t* data, size_t len, std::string_view union_member = {});

namespace tables {  // generated
extern const FieldInfo kFields[];
extern const StructInfo kStructs[];
extern const unsigned kStructCount;
extern const OpcodeInfo kOpcodes[];
extern const unsigned kOpcodeCount;
}  // namespace tables

}  // namespace hcasim::prm
