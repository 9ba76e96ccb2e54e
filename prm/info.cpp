// SPDX-License-Identifier: BSD-3-Clause
#include "prm/info.h"

#include <algorithm>
#include <cstdio>

#include "prm/field.h"

namespace hcasim::prm {
namespace {

constexpr size_t kMaxDump = 64 * 1024;  // bytes of text
constexpr int kMaxDepth = 16;

void append_hex(std::string& out, uint64_t v) {
  char s[24];
  std::snprintf(s, sizeof s, "%llx", static_cast<unsigned long long>(v));
  out += s;
}

class Dumper {
 public:
  Dumper(const uint8_t* data, size_t len, std::string_view union_member)
      : data_(data), len_bits_(static_cast<uint64_t>(len) * 8), union_member_(union_member) {}

  void structure(const StructInfo& s, uint64_t base, const std::string& path, int depth) {
    if (depth > kMaxDepth) return;
    if (s.is_union) {
      const FieldInfo* f = union_member_.empty() ? nullptr : s.find(union_member_);
      if (f == nullptr && s.field_count != 0) f = &s.fields[0];
      if (f != nullptr) field(*f, base, path, depth);
      return;
    }
    for (uint32_t i = 0; i < s.field_count && out_.size() < kMaxDump; i++)
      field(s.fields[i], base, path, depth);
  }

  std::string take() {
    if (out_.size() >= kMaxDump) out_ += " ...";
    return std::move(out_);
  }

 private:
  void field(const FieldInfo& f, uint64_t base, const std::string& path, int depth) {
    uint64_t off = base + f.bit_off;
    std::string name = path.empty() ? f.name : path + "." + f.name;
    if (f.count < 0) {
      element(f, off, name, depth);
      return;
    }
    uint64_t n = f.bits != 0 && off < len_bits_ ? (len_bits_ - off) / f.bits : 0;
    if (f.count > 0) n = std::min<uint64_t>(n, static_cast<uint64_t>(f.count));
    if (f.nested < 0 && f.bits == 8) {
      blob(name, off, n);
      return;
    }
    for (uint64_t i = 0; i < n && out_.size() < kMaxDump; i++)
      element(f, off + i * f.bits, name + "[" + std::to_string(i) + "]", depth);
  }

  void element(const FieldInfo& f, uint64_t off, const std::string& name, int depth) {
    if (f.nested >= 0) {
      structure(*f.nested_struct(), off, name, depth + 1);
    } else if (f.bits > 64) {
      if (off < len_bits_) blob(name, off, std::min<uint64_t>(f.bits, len_bits_ - off) / 8);
    } else if (f.bits != 0 && off + f.bits <= len_bits_) {
      uint64_t v = get_bits(data_, off, f.bits);
      if (v == 0) return;
      label(name);
      out_ += "0x";
      append_hex(out_, v);
    }
  }

  /// Bytes as one run of digits, without trailing zeros.
  void blob(const std::string& name, uint64_t off, uint64_t bytes) {
    while (bytes != 0 && get_bits(data_, off + (bytes - 1) * 8, 8) == 0) bytes--;
    if (bytes == 0) return;
    label(name);
    out_ += "0x";
    for (uint64_t i = 0; i < bytes && out_.size() < kMaxDump; i++) {
      char s[4];
      std::snprintf(s, sizeof s, "%02x", static_cast<unsigned>(get_bits(data_, off + i * 8, 8)));
      out_ += s;
    }
  }

  void label(const std::string& name) {
    if (!out_.empty()) out_ += ' ';
    out_ += name;
    out_ += '=';
  }

  const uint8_t* data_;
  uint64_t len_bits_;
  std::string_view union_member_;
  std::string out_;
};

const StructInfo* numbered(int32_t n) {
  return n >= 0 && static_cast<unsigned>(n) < tables::kStructCount ? &tables::kStructs[n] : nullptr;
}

}  // namespace

const StructInfo* FieldInfo::nested_struct() const { return numbered(nested); }

const FieldInfo* StructInfo::find(std::string_view field) const {
  for (uint32_t i = 0; i < field_count; i++)
    if (field == fields[i].name) return &fields[i];
  return nullptr;
}

const StructInfo* find_struct(std::string_view name) {
  const StructInfo* end = tables::kStructs + tables::kStructCount;
  const StructInfo* s = std::lower_bound(tables::kStructs, end, name,
                                         [](const StructInfo& a, std::string_view b) { return a.name < b; });
  return s != end && name == s->name ? s : nullptr;
}

const OpcodeInfo* find_opcode(uint16_t opcode) {
  const OpcodeInfo* end = tables::kOpcodes + tables::kOpcodeCount;
  const OpcodeInfo* o = std::lower_bound(tables::kOpcodes, end, opcode,
                                         [](const OpcodeInfo& a, uint16_t b) { return a.value < b; });
  return o != end && o->value == opcode ? o : nullptr;
}

std::string opcode_name(uint16_t opcode) {
  if (const OpcodeInfo* o = find_opcode(opcode)) return o->name;
  std::string s = "0x";
  append_hex(s, opcode);
  return s;
}

const StructInfo* input_struct(uint16_t opcode) {
  const OpcodeInfo* o = find_opcode(opcode);
  return o != nullptr ? numbered(o->in) : nullptr;
}

const StructInfo* output_struct(uint16_t opcode) {
  const OpcodeInfo* o = find_opcode(opcode);
  return o != nullptr ? numbered(o->out) : nullptr;
}

std::string dump(const StructInfo& info, const uint8_t* data, size_t len, std::string_view union_member) {
  Dumper d(data, len, union_member);
  d.structure(info, 0, "", 0);
  return d.take();
}

}  // namespace hcasim::prm
