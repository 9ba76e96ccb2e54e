// SPDX-License-Identifier: BSD-3-Clause
// Rewriting actions of steering entries: their fields, 64 bits of format 0 and 32 of the later ones, in terms
// of header fields.
#include <algorithm>
#include <array>

#include "model/eth/checksum.h"
#include "model/steer/ste.h"

namespace hcasim {

namespace {

using prm::SteAction;
using prm::SteField;
using prm::SteV1Action;
using prm::SteV1Field;
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

// The fields of format 0.
struct Fields {
  // The parts of a field.
  template <class F>
  void each(std::uint32_t field, F f) const {
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
};

struct DwordPart {
  SteV1Field of;
  std::uint8_t at, width;
  std::uint16_t field;
  std::uint8_t behind = 0;  // double words behind `of`
};
constexpr std::array kDwordParts{
    DwordPart{SteV1Field::kDmac, 0, 32, n(ACTION_IN_FIELD_OUT_DMAC_47_16)},
    DwordPart{SteV1Field::kL2Type, 16, 16, n(ACTION_IN_FIELD_OUT_DMAC_15_0)},
    DwordPart{SteV1Field::kL2Type, 0, 16, n(ACTION_IN_FIELD_OUT_ETHERTYPE)},
    DwordPart{SteV1Field::kVlan, 0, 16, kVlanTci},
    DwordPart{SteV1Field::kSmac, 0, 32, n(ACTION_IN_FIELD_OUT_SMAC_47_16)},
    DwordPart{SteV1Field::kSmacLow, 16, 16, n(ACTION_IN_FIELD_OUT_SMAC_15_0)},
    DwordPart{SteV1Field::kL3, 18, 6, n(ACTION_IN_FIELD_OUT_IP_DSCP)},
    DwordPart{SteV1Field::kL3, 16, 2, kIpEcn},
    DwordPart{SteV1Field::kL3, 8, 8, n(ACTION_IN_FIELD_OUT_IP_TTL)},
    DwordPart{SteV1Field::kL3, 8, 8, n(ACTION_IN_FIELD_OUT_IPV6_HOPLIMIT)},
    DwordPart{SteV1Field::kL4Ports, 16, 16, n(ACTION_IN_FIELD_OUT_TCP_SPORT)},
    DwordPart{SteV1Field::kL4Ports, 16, 16, n(ACTION_IN_FIELD_OUT_UDP_SPORT)},
    DwordPart{SteV1Field::kL4Ports, 0, 16, n(ACTION_IN_FIELD_OUT_TCP_DPORT)},
    DwordPart{SteV1Field::kL4Ports, 0, 16, n(ACTION_IN_FIELD_OUT_UDP_DPORT)},
    DwordPart{SteV1Field::kL4Flags, 16, 9, n(ACTION_IN_FIELD_OUT_TCP_FLAGS)},
    DwordPart{SteV1Field::kIpv4Source, 0, 32, n(ACTION_IN_FIELD_OUT_SIPV4)},
    DwordPart{SteV1Field::kIpv4Destination, 0, 32, n(ACTION_IN_FIELD_OUT_DIPV4)},
    DwordPart{SteV1Field::kIpv6Destination, 0, 32, n(ACTION_IN_FIELD_OUT_DIPV6_127_96)},
    DwordPart{SteV1Field::kIpv6Destination, 0, 32, n(ACTION_IN_FIELD_OUT_DIPV6_95_64), 1},
    DwordPart{SteV1Field::kIpv6Destination, 0, 32, n(ACTION_IN_FIELD_OUT_DIPV6_63_32), 2},
    DwordPart{SteV1Field::kIpv6Destination, 0, 32, n(ACTION_IN_FIELD_OUT_DIPV6_31_0), 3},
    DwordPart{SteV1Field::kIpv6Source, 0, 32, n(ACTION_IN_FIELD_OUT_SIPV6_127_96)},
    DwordPart{SteV1Field::kIpv6Source, 0, 32, n(ACTION_IN_FIELD_OUT_SIPV6_95_64), 1},
    DwordPart{SteV1Field::kIpv6Source, 0, 32, n(ACTION_IN_FIELD_OUT_SIPV6_63_32), 2},
    DwordPart{SteV1Field::kIpv6Source, 0, 32, n(ACTION_IN_FIELD_OUT_SIPV6_31_0), 3},
    DwordPart{SteV1Field::kTcpSequence, 0, 32, n(ACTION_IN_FIELD_OUT_TCP_SEQ_NUM)},
    DwordPart{SteV1Field::kTcpAcknowledged, 0, 32, n(ACTION_IN_FIELD_OUT_TCP_ACK_NUM)},
    DwordPart{SteV1Field::kRegisterB, 0, 32, n(ACTION_IN_FIELD_METADATA_REG_B)},
    DwordPart{SteV1Field::kRegisterA, 0, 32, n(ACTION_IN_FIELD_METADATA_REG_A)},
};

// The fields of formats 1 and 2: the double word named is the upper half of 64 bits.
struct Dwords {
  SteFormat format;

  template <class F>
  void each_of(std::uint32_t dword, unsigned at, F f) const {
    const auto part = [&](unsigned bit, unsigned width, std::uint16_t field) {
      f(FieldPart{SteField::kL2Dmac, static_cast<std::uint8_t>(at + bit), static_cast<std::uint8_t>(width),
                  field});
    };
    const auto first = static_cast<std::uint32_t>(format == SteFormat::kConnectX7 ? SteV1Field::kRegistersC4V2
                                                                                  : SteV1Field::kRegistersC4);
    constexpr std::uint16_t kOrder[] = {4, 5, 2, 3, 0, 1};
    if (dword >= first && dword - first < std::size(kOrder))
      return part(0, 32, n(ACTION_IN_FIELD_METADATA_REG_C_0 + kOrder[dword - first]));
    for (const DwordPart& p : kDwordParts)
      if (static_cast<std::uint32_t>(p.of) + p.behind == dword) part(p.at, p.width, p.field);
  }
  template <class F>
  void each(std::uint32_t field, F f) const {
    each_of(field, 32, f);
    each_of(field + 1, 0, f);
  }
};

template <class Map>
bool known(const Map& map, std::uint32_t field) {
  bool found = false;
  map.each(field, [&](const FieldPart&) { found = true; });
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

template <class Map>
std::uint64_t read_bits(const Map& map, const SteeredFrame& f, std::uint32_t field, unsigned shift,
                        unsigned width) {
  std::uint64_t v = 0;
  map.each(field, [&](const FieldPart& part) {
    std::uint32_t p = 0;
    if (read_part(f, part, p)) v |= static_cast<std::uint64_t>(p) << part.at;
  });
  return v >> shift & ones64(width);
}

template <class Map>
void write_bits(const Map& map, SteeredFrame& f, std::uint32_t field, unsigned shift, unsigned width,
                std::uint64_t v) {
  map.each(field, [&](const FieldPart& part) {
    const unsigned from = std::max<unsigned>(shift, part.at);
    const unsigned to = std::min<unsigned>(shift + width, part.at + part.width);
    if (from < to)
      write_part(f, part, from - part.at, to - from, static_cast<std::uint32_t>(v >> (from - shift)));
  });
}

}  // namespace

bool rewrite_header(const std::uint8_t* action, SteeredFrame& frame) {
  const Fields map;
  const std::uint32_t op = prm::get<SteAction::opcode>(action);
  if (op == 0) return true;  // a gap
  const std::uint32_t field = prm::get<SteAction::field>(action);
  const unsigned shift = prm::get<SteAction::shift>(action);
  if (!known(map, field)) return false;
  unsigned width = prm::get<SteAction::length>(action);
  if (width == 0) width = 32;
  const std::uint64_t data = prm::get<SteAction::data>(action);
  switch (op) {
    case SteAction::kSet:
      write_bits(map, frame, field, shift, width, data);
      return true;
    case SteAction::kAdd:
      write_bits(map, frame, field, shift, width, read_bits(map, frame, field, shift, width) + data);
      return true;
    case SteAction::kCopy: {
      const std::uint32_t from = prm::get<SteAction::source_field>(action);
      if (!known(map, from)) return false;
      width = prm::get<SteAction::copy_length>(action);
      write_bits(map, frame, field, shift, width,
                 read_bits(map, frame, from, prm::get<SteAction::source_shift>(action), width));
      return true;
    }
    default:
      return false;
  }
}

bool rewrite_header_v1(const std::uint8_t* action, SteFormat format, SteeredFrame& frame) {
  const Dwords map{format};
  const std::uint32_t field = prm::get<SteV1Action::field>(action);
  const unsigned shift = prm::get<SteV1Action::shift>(action), width = prm::get<SteV1Action::length>(action);
  if (!known(map, field)) return false;
  std::uint64_t v = prm::get<SteV1Action::data>(action);
  switch (prm::get<SteV1Action::id>(action)) {
    case SteV1Action::kSet:
      break;
    case SteV1Action::kAdd:
      v += read_bits(map, frame, field, shift, width);
      break;
    case SteV1Action::kCopy: {
      const std::uint32_t from = prm::get<SteV1Action::source_field>(action);
      if (!known(map, from)) return false;
      v = read_bits(map, frame, from, prm::get<SteV1Action::source_shift>(action), width);
      break;
    }
    default:
      return false;
  }
  write_bits(map, frame, field, shift, width, v);
  return true;
}

}  // namespace hcasim
