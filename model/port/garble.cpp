// SPDX-License-Identifier: BSD-3-Clause
#include "model/port/garble.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "model/port/codec.h"

namespace hcasim {

namespace {

constexpr std::uint32_t kHeaders = 100;  // bytes; where most changes are made

// Lengths and opcodes that their headers agree with, as byte for byte they would hardly come about.
void change_shape(Packet& p, std::mt19937_64& random) {
  if (random() % 2) {
    p.opcode = static_cast<std::uint8_t>(random() % 2 ? (p.opcode & 0xe0) | random() % 32 : random());
    return;
  }
  const std::uint32_t before = p.payload_len, most = random() % 4 ? before : kMaxPayload;
  p.payload_len = static_cast<std::uint32_t>(random() % (most + 1));
  if (p.payload_len > before) std::memset(p.data() + before, 0, p.payload_len - before);
}

void change_bytes(std::uint8_t* bytes, std::size_t len, std::mt19937_64& random) {
  for (std::uint64_t n = 1 + random() % 3; n > 0; --n) {
    const std::size_t within = random() % 4 ? std::min<std::size_t>(len, kHeaders) : len;
    const std::size_t at = random() % within;
    constexpr std::array<std::uint8_t, 4> kEnds{0, 1, 0x80, 0xff};
    switch (random() % 3) {
      case 0:
        bytes[at] ^= static_cast<std::uint8_t>(1u << random() % 8);
        break;
      case 1:
        bytes[at] = static_cast<std::uint8_t>(random());
        break;
      default:
        bytes[at] = kEnds[random() % kEnds.size()];
    }
  }
}

}  // namespace

PacketRef garbled(const Packet& packet, std::mt19937_64& random) {
  PacketRef shaped = PacketPool::copy(packet);
  const bool frame = packet.kind == PacketKind::kEthernet;
  if (!frame && random() % 4 == 0) change_shape(*shaped, random);
  std::array<std::uint8_t, kMaxFrame> bytes;
  std::size_t len = encode(*shaped, bytes.data(), bytes.size(), Vcrc::kLeftOut);
  if (len == 0) return {};
  if (frame && random() % 4 == 0) len = std::max<std::size_t>(sizeof(prm::EthHdr), random() % (len + 1));
  if (random() % 4) change_bytes(bytes.data(), len, random);

  PacketRef out = PacketPool::copy(packet);
  if (packet.kind == PacketKind::kIb) {
    if (decode_ib(bytes.data(), len, *out, Vcrc::kLeftOut, Icrc::kMade) != Decoded::kOk) return {};
    return out;
  }
  out->kind = PacketKind::kEthernet;
  out->frame_len = static_cast<std::uint16_t>(len);
  out->set_head(0);
  std::memcpy(out->frame(), bytes.data(), len);
  const PacketRef decoded =
      PacketPool::copy(*out);  // for its ICRC alone: the receiver is to decode it itself
  decode_roce(*decoded, Icrc::kMade);
  std::memcpy(out->frame(), decoded->frame(), len);
  return out;
}

}  // namespace hcasim
