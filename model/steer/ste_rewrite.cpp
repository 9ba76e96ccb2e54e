// SPDX-License-Identifier: BSD-3-Clause
// Rewriting actions of steering format 0: their 64-bit fields in terms of header fields.
#include <algorithm>
#include <array>

#include "model/eth/checksum.h"
#include "model/steer/ste.h"

namespace hcasim {

namespace {

using prm::SteAction;
using prm::SteField;
using namespace prm::k;

// A run of bits of a 64-bit field; several may share a place, of which a frame has one at most.
struct FieldPart {
  SteField of;
  std::uint8_t at, width;  // bits from the least significant one
  std::uint16_t field;     // ACTION_IN_FIELD_*, or one of ours
};
constexpr std::uint16_t kOwn = 0x1000, kVlanTci = kOwn, kVlanQualifier = kOwn + 1, kIpEcn = kOwn + 2;

constexpr std::uint16_t n(std::uint32_t field) { return static_cast<std::uint16_t>(field); }

constexpr std::array kParts{
    FieldPart{SteField::kL2Dmac, 16, 32, n(ACTION_IN_FIELD_OUT_DMAC_47_16)},
    FieldPart{SteField::kL2Dmac, 0, 16, n(ACTION_IN_FIELD_OUT_DMAC_15_0)},
    FieldPart{SteField::kL2Smac, 16, 32, n(ACTION_IN_FIELD_OUT_SMAC_47_16)},
    FieldPart{SteField::kL2Smac, 0, 16, n(ACTION_IN_FIELD_OUT_SMAC_15_0)},
    FieldPart{SteField::kL2Type, 32, 16, n(ACTION_IN_FIELD_OUT_ETHERTYPE)},
    FieldPart{SteField::kL2Type, 48, 2, kVlanQualifier},
    FieldPart{SteField::kL2Type, 0, 16, kVlanTci},
    FieldPart{SteField::kL3Addresses, 0, 32, n(ACTION_IN_FIELD_OUT_SIPV4)},
    FieldPart{SteField::kL3Addresses, 32, 32, n(ACTION_IN_FIELD_OUT_DIPV4)},
    FieldPart{SteField::kL3Addresses, 32, 32, n(ACTION_IN_FIELD_OUT_DIPV6_127_96)},
    FieldPart{SteField::kL3Addresses, 0, 32, n(ACTION_IN_FIELD_OUT_DIPV6_95_64)},
    FieldPart{SteField::kL3Dst63, 32, 32, n(ACTION_IN_FIELD_OUT_DIPV6_63_32)},
    FieldPart{SteField::kL3Dst63, 0, 32, n(ACTION_IN_FIELD_OUT_DIPV6_31_0)},
    FieldPart{SteField::kL3Src127, 32, 32, n(ACTION_IN_FIELD_OUT_SIPV6_127_96)},
    FieldPart{SteField::kL3Src127, 0, 32, n(ACTION_IN_FIELD_OUT_SIPV6_95_64)},
    FieldPart{SteField::kL3Src63, 32, 32, n(ACTION_IN_FIELD_OUT_SIPV6_63_32)},
    FieldPart{SteField::kL3Src63, 0, 32, n(ACTION_IN_FIELD_OUT_SIPV6_31_0)},
    FieldPart{SteField::kL3Class, 0, 6, n(ACTION_IN_FIELD_OUT_IP_DSCP)},
    FieldPart{SteField::kL3Class, 6, 2, kIpEcn},
    FieldPart{SteField::kL3Class, 8, 8, n(ACTION_IN_FIELD_OUT_IP_TTL)},
    FieldPart{SteField::kL3Class, 8, 8, n(ACTION_IN_FIELD_OUT_IPV6_HOPLIMIT)},
    FieldPart{SteField::kL4Ports, 0, 16, n(ACTION_IN_FIELD_OUT_TCP_SPORT)},
    FieldPart{SteField::kL4Ports, 0, 16, n(ACTION_IN_FIELD_OUT_UDP_SPORT)},
    FieldPart{SteField::kL4Ports, 16, 16, n(ACTION_IN_FIELD_OUT_TCP_DPORT)},
    FieldPart{SteField::kL4Ports, 16, 16, n(ACTION_IN_FIELD_OUT_UDP_DPORT)},
    FieldPart{SteField::kL4Ports, 48, 9, n(ACTION_IN_FIELD_OUT_TCP_FLAGS)},
    FieldPart{SteField::kL4Numbers, 32, 32, n(ACTION_IN_FIELD_OUT_TCP_SEQ_NUM)},
    FieldPart{SteField::kL4Numbers, 0, 32, n(ACTION_IN_FIELD_OUT_TCP_ACK_NUM)},
    FieldPart{SteField::kMetadata, 0, 32, n(ACTION_IN_FIELD_METADATA_REG_A)},
    FieldPart{SteField::kMetadata, 32, 32, n(ACTION_IN_FIELD_METADATA_REG_B)},
};

bool is_registers(std::uint32_t field) {
  return field >= static_cast<std::uint32_t>(SteField::kRegisters0) &&
         field <= static_cast<std::uint32_t>(SteField::kRegisters3);
}

// The parts of a field.
template <class F>
void each_part(std::uint32_t field, F f) {
  if (is_registers(field)) {
    const std::uint32_t first = 2 * (field - static_cast<std::uint32_t>(SteField::kRegisters0));
    const auto of = static_cast<SteField>(field);
    f(FieldPart{of, 32, 32, n(ACTION_IN_FIELD_METADATA_REG_C_0 + first)});
    f(FieldPart{of, 0, 32, n(ACTION_IN_FIELD_METADATA_REG_C_0 + first + 1)});
    return;
  }
  for (const FieldPart& p : kParts)
    if (static_cast<std::uint32_t>(p.of) == field) f(p);
}

bool known(std::uint32_t field) {
  bool found = false;
  each_part(field, [&](const FieldPart&) { found = true; });
  return found;
}

std::uint64_t ones64(unsigned width) {
  return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

// Where ECN stands: the byte and its lowest bit.
std::uint32_t ecn_at(const IpHeaders& ip, unsigned& shift) {
  shift = ip.version == 4 ? 0 : 4;
  return ip.l3 + 1u;
}

bool read_part(const SteeredFrame& f, const FieldPart& part, std::uint32_t& v) {
  const FrameHeaders& h = f.headers;
  switch (part.field) {
    case kVlanTci:
      v = h.tags ? h.tci[0] : 0;
      return h.tags != 0;
    case kVlanQualifier:
      v = static_cast<std::uint32_t>(!h.tags                   ? prm::SteVlan::kNone
                                     : h.tpid[0] == kTpidSvlan ? prm::SteVlan::kSvlan
                                                               : prm::SteVlan::kCvlan);
      return true;
    case kIpEcn: {
      unsigned shift = 0;
      v = h.outer.version ? f.bytes()[ecn_at(h.outer, shift)] : 0u;
      v = v >> shift & 3;
      return h.outer.version != 0;
    }
    default:
      return read_field(f, part.field, v);
  }
}

void write_part(SteeredFrame& f, const FieldPart& part, unsigned offset, unsigned width, std::uint32_t v) {
  if (part.field < kOwn) {
    write_field(f, part.field, offset, width, v);
    return;
  }
  std::uint32_t old = 0;
  if (!read_part(f, part, old)) return;
  const auto mask = static_cast<std::uint32_t>(ones64(width) << offset);
  const std::uint32_t now = (old & ~mask) | (v << offset & mask);
  const FrameHeaders& h = f.headers;
  std::uint8_t* bytes = f.writable();
  if (part.field == kVlanTci) {
    bytes[kEthHeader] = static_cast<std::uint8_t>(now >> 8);
    bytes[kEthHeader + 1] = static_cast<std::uint8_t>(now);
  } else if (part.field == kVlanQualifier) {
    if (!h.tags) return;  // a tag does not come of it
    const std::uint16_t tpid =
        now == static_cast<std::uint32_t>(prm::SteVlan::kSvlan) ? kTpidSvlan : kTpidCvlan;
    bytes[kEthHeader - 2] = static_cast<std::uint8_t>(tpid >> 8);
    bytes[kEthHeader - 1] = static_cast<std::uint8_t>(tpid);
  } else {
    const bool right = ip_checksum_ok(bytes, h.outer);
    unsigned shift = 0;
    std::uint8_t& byte = bytes[ecn_at(h.outer, shift)];
    byte = static_cast<std::uint8_t>((byte & ~(3u << shift)) | now << shift);
    if (right) put_ip_checksum(bytes, h.outer);
  }
  f.reparse();
}

std::uint64_t read_bits(const SteeredFrame& f, std::uint32_t field, unsigned shift, unsigned width) {
  std::uint64_t v = 0;
  each_part(field, [&](const FieldPart& part) {
    std::uint32_t p = 0;
    if (read_part(f, part, p)) v |= static_cast<std::uint64_t>(p) << part.at;
  });
  return v >> shift & ones64(width);
}

void write_bits(SteeredFrame& f, std::uint32_t field, unsigned shift, unsigned width, std::uint64_t v) {
  each_part(field, [&](const FieldPart& part) {
    const unsigned from = std::max<unsigned>(shift, part.at);
    const unsigned to = std::min<unsigned>(shift + width, part.at + part.width);
    if (from < to)
      write_part(f, part, from - part.at, to - from, static_cast<std::uint32_t>(v >> (from - shift)));
  });
}

}  // namespace

bool rewrite_header(const std::uint8_t* action, SteeredFrame& frame) {
  const std::uint32_t op = prm::get<SteAction::opcode>(action);
  if (op == 0) return true;  // a gap
  const std::uint32_t field = prm::get<SteAction::field>(action);
  const unsigned shift = prm::get<SteAction::shift>(action);
  if (!known(field)) return false;
  unsigned width = prm::get<SteAction::length>(action);
  if (width == 0) width = 32;
  const std::uint64_t data = prm::get<SteAction::data>(action);
  switch (op) {
    case SteAction::kSet:
      write_bits(frame, field, shift, width, data);
      return true;
    case SteAction::kAdd:
      write_bits(frame, field, shift, width, read_bits(frame, field, shift, width) + data);
      return true;
    case SteAction::kCopy: {
      const std::uint32_t from = prm::get<SteAction::source_field>(action);
      if (!known(from)) return false;
      width = prm::get<SteAction::copy_length>(action);
      write_bits(frame, field, shift, width,
                 read_bits(frame, from, prm::get<SteAction::source_shift>(action), width));
      return true;
    }
    default:
      return false;
  }
}

}  // namespace hcasim
