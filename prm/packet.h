// SPDX-License-Identifier: BSD-3-Clause
/// Packet headers (IBTA volume 1: LRH 7.7, GRH 8.3, BTH and extended headers 9.2-9.3; annex A17 for RoCE v2).
#pragma once

#include "prm/be.h"

namespace hcasim::prm {

struct Lrh {
  uint8_t vl_lver;  ///< VL 7:4, version 3:0
  uint8_t sl_lnh;   ///< SL 7:4, next header 1:0
  be16 dlid;
  be16 len;  ///< 10:0, 4-byte words from LRH to before VCRC
  be16 slid;

  static constexpr uint8_t kLnhRaw = 0, kLnhIpv6 = 1, kLnhBth = 2, kLnhGrh = 3;
};
static_assert(sizeof(Lrh) == 8);

/// Also the IPv6 header of RoCE v2.
struct Grh {
  be32 ver_tclass_flow;  ///< version 31:28 (6), traffic class 27:20, flow label 19:0
  be16 pay_len;
  uint8_t next_hdr;  ///< kNextBth, or UDP in RoCE v2
  uint8_t hop_limit;
  uint8_t sgid[16];
  uint8_t dgid[16];

  static constexpr uint8_t kNextBth = 0x1b, kNextUdp = 17;
};
static_assert(sizeof(Grh) == 40 && offsetof(Grh, sgid) == 8 && offsetof(Grh, dgid) == 24);

struct EthHdr {
  uint8_t dmac[6];
  uint8_t smac[6];
  be16 ethertype;

  static constexpr uint16_t kRoceV1 = 0x8915, kIpv4 = 0x0800, kIpv6 = 0x86dd, kVlan = 0x8100, kSvlan = 0x88a8,
                            kArp = 0x0806;
};
static_assert(sizeof(EthHdr) == 14);

struct Ipv4Hdr {
  uint8_t ver_ihl;
  uint8_t tos;
  be16 total_len;
  be16 id;
  be16 frag;
  uint8_t ttl;
  uint8_t proto;
  be16 check;
  be32 src;
  be32 dst;
};
static_assert(sizeof(Ipv4Hdr) == 20);

struct UdpHdr {
  be16 sport;
  be16 dport;
  be16 len;
  be16 check;

  static constexpr uint16_t kRocePort = 4791;
};
static_assert(sizeof(UdpHdr) == 8);

/// BTH opcode: transport in bits 7:5.
namespace bth {
constexpr uint8_t kRc = 0x00, kUc = 0x20, kRd = 0x40, kUd = 0x60, kCnpClass = 0x80, kXrc = 0xa0;
constexpr uint8_t kDc = 0xc0;  ///< our choice among the codes that IBTA leaves to manufacturers, see DcEth
constexpr uint8_t kTransportMask = 0xe0, kOpMask = 0x1f;
constexpr uint8_t kCnp = 0x81;
}  // namespace bth

/// BTH opcode, bits 4:0.
enum class BthOp : uint8_t {
  kSendFirst = 0x00,
  kSendMiddle = 0x01,
  kSendLast = 0x02,
  kSendLastImm = 0x03,
  kSendOnly = 0x04,
  kSendOnlyImm = 0x05,
  kWriteFirst = 0x06,
  kWriteMiddle = 0x07,
  kWriteLast = 0x08,
  kWriteLastImm = 0x09,
  kWriteOnly = 0x0a,
  kWriteOnlyImm = 0x0b,
  kReadReq = 0x0c,
  kReadRespFirst = 0x0d,
  kReadRespMiddle = 0x0e,
  kReadRespLast = 0x0f,
  kReadRespOnly = 0x10,
  kAck = 0x11,
  kAtomicAck = 0x12,
  kCmpSwap = 0x13,
  kFetchAdd = 0x14,
  kResync = 0x15,  ///< RD only
  kSendLastInv = 0x16,
  kSendOnlyInv = 0x17,
  kDcDisconnect = 0x18,  ///< DC only: the initiator has turned to another target
  // Masked atomics are vendor-specific, and the cards' wire format is not public: codes and format are ours,
  // understood by this model alone. A request is a RETH (length: of the operand) and the operands as in the
  // WQE; the response is an AETH and the original value in the same form.
  kMaskedCmpSwap = 0x19,
  kMaskedFetchAdd = 0x1a,
  kMaskedAtomicAck = 0x1b,
};

constexpr const char* bth_op_name(BthOp op) {
  switch (op) {
    case BthOp::kSendFirst:
      return "SEND_FIRST";
    case BthOp::kSendMiddle:
      return "SEND_MIDDLE";
    case BthOp::kSendLast:
      return "SEND_LAST";
    case BthOp::kSendLastImm:
      return "SEND_LAST_IMM";
    case BthOp::kSendOnly:
      return "SEND_ONLY";
    case BthOp::kSendOnlyImm:
      return "SEND_ONLY_IMM";
    case BthOp::kWriteFirst:
      return "WRITE_FIRST";
    case BthOp::kWriteMiddle:
      return "WRITE_MIDDLE";
    case BthOp::kWriteLast:
      return "WRITE_LAST";
    case BthOp::kWriteLastImm:
      return "WRITE_LAST_IMM";
    case BthOp::kWriteOnly:
      return "WRITE_ONLY";
    case BthOp::kWriteOnlyImm:
      return "WRITE_ONLY_IMM";
    case BthOp::kReadReq:
      return "READ_REQ";
    case BthOp::kReadRespFirst:
      return "READ_RESP_FIRST";
    case BthOp::kReadRespMiddle:
      return "READ_RESP_MIDDLE";
    case BthOp::kReadRespLast:
      return "READ_RESP_LAST";
    case BthOp::kReadRespOnly:
      return "READ_RESP_ONLY";
    case BthOp::kAck:
      return "ACK";
    case BthOp::kAtomicAck:
      return "ATOMIC_ACK";
    case BthOp::kCmpSwap:
      return "CMP_SWAP";
    case BthOp::kFetchAdd:
      return "FETCH_ADD";
    case BthOp::kResync:
      return "RESYNC";
    case BthOp::kSendLastInv:
      return "SEND_LAST_INV";
    case BthOp::kSendOnlyInv:
      return "SEND_ONLY_INV";
    case BthOp::kDcDisconnect:
      return "DC_DISCONNECT";
    case BthOp::kMaskedCmpSwap:
      return "MASKED_CMP_SWAP";
    case BthOp::kMaskedFetchAdd:
      return "MASKED_FETCH_ADD";
    case BthOp::kMaskedAtomicAck:
      return "MASKED_ATOMIC_ACK";
  }
  return nullptr;
}

/// Properties of an opcode's packets.
struct BthTraits {
  bool valid;        ///< defined for its transport
  bool unsupported;  ///< of RC or XRC, and a request that nobody here knows (reserved, FLUSH, ATOMIC WRITE)
  bool first, last;  ///< of its message; "only" is both
  bool send, write, read_resp, request;
  bool reth, atomic_eth, aeth, atomic_ack_eth, imm, ieth, deth, xrceth, dceth;
  bool payload;       ///< may carry payload
  uint8_t ext_bytes;  ///< of all extended headers
};

constexpr uint8_t kCnpBytes = 16;  ///< of zeros behind a CNP's BTH (A17.9.3)

constexpr BthTraits bth_traits(uint8_t opcode) {
  BthTraits t{};
  const uint8_t transport = opcode & bth::kTransportMask;
  const uint8_t low = opcode & bth::kOpMask;
  const BthOp op = static_cast<BthOp>(low);
  const bool dc = transport == bth::kDc;
  const bool rc = transport == bth::kRc || transport == bth::kXrc || dc;
  if (dc && op == BthOp::kDcDisconnect) {
    t.valid = t.first = t.last = t.request = t.dceth = true;
    t.ext_bytes = 16;
    return t;
  }
  if (rc) {
    t.valid = low <= 0x14 || low == 0x16 || low == 0x17 || (low >= 0x19 && low <= 0x1b);
    t.request = t.unsupported = !t.valid && !dc;
  } else if (transport == bth::kUc) {
    t.valid = low <= 0x0b;
  } else if (transport == bth::kUd) {
    t.valid = op == BthOp::kSendOnly || op == BthOp::kSendOnlyImm;
  } else if (opcode == bth::kCnp) {
    t.valid = t.first = t.last = true;
    t.ext_bytes = kCnpBytes;
    return t;
  }
  if (!t.valid) return t;
  const bool masked_request = op == BthOp::kMaskedCmpSwap || op == BthOp::kMaskedFetchAdd;
  const bool masked_ack = op == BthOp::kMaskedAtomicAck;
  t.send = low <= 0x05 || low == 0x16 || low == 0x17;
  t.write = low >= 0x06 && low <= 0x0b;
  t.read_resp = low >= 0x0d && low <= 0x10;
  t.request = t.send || t.write || op == BthOp::kReadReq || op == BthOp::kCmpSwap || op == BthOp::kFetchAdd ||
              masked_request;
  switch (op) {
    case BthOp::kSendFirst:
    case BthOp::kWriteFirst:
    case BthOp::kReadRespFirst:
      t.first = true;
      break;
    case BthOp::kSendMiddle:
    case BthOp::kWriteMiddle:
    case BthOp::kReadRespMiddle:
      break;
    case BthOp::kSendLast:
    case BthOp::kSendLastImm:
    case BthOp::kSendLastInv:
    case BthOp::kWriteLast:
    case BthOp::kWriteLastImm:
    case BthOp::kReadRespLast:
      t.last = true;
      break;
    default:
      t.first = t.last = true;
  }
  t.reth = (t.write && t.first) || op == BthOp::kReadReq || masked_request;
  t.atomic_eth = op == BthOp::kCmpSwap || op == BthOp::kFetchAdd;
  t.aeth = op == BthOp::kReadRespFirst || op == BthOp::kReadRespLast || op == BthOp::kReadRespOnly ||
           op == BthOp::kAck || op == BthOp::kAtomicAck || masked_ack;
  t.atomic_ack_eth = op == BthOp::kAtomicAck;
  t.imm = op == BthOp::kSendLastImm || op == BthOp::kSendOnlyImm || op == BthOp::kWriteLastImm ||
          op == BthOp::kWriteOnlyImm;
  t.ieth = low == 0x16 || low == 0x17;
  t.deth = transport == bth::kUd;
  t.xrceth = transport == bth::kXrc && t.request;
  t.dceth = dc && t.request;
  t.payload = t.send || t.write || t.read_resp || masked_request || masked_ack;
  t.ext_bytes = static_cast<uint8_t>((t.reth ? 16 : 0) + (t.atomic_eth ? 28 : 0) + (t.aeth ? 4 : 0) +
                                     (t.atomic_ack_eth ? 8 : 0) + (t.imm ? 4 : 0) + (t.ieth ? 4 : 0) +
                                     (t.deth ? 8 : 0) + (t.xrceth ? 4 : 0) + (t.dceth ? 16 : 0));
  return t;
}

struct Bth {
  uint8_t opcode;
  uint8_t flags;  ///< solicited 7, migration 6, pad count 5:4, header version 3:0
  be16 pkey;
  uint8_t fecn_becn;  ///< FECN 7, BECN 6
  be24 dqpn;
  uint8_t ack_req;  ///< 7
  be24 psn;

  static constexpr uint8_t kSolicited = 0x80, kMig = 0x40, kAckReq = 0x80, kFecn = 0x80, kBecn = 0x40;
  BthOp op() const { return static_cast<BthOp>(opcode & bth::kOpMask); }
  unsigned pad() const { return flags >> 4 & 3; }
};
static_assert(sizeof(Bth) == 12 && offsetof(Bth, dqpn) == 5 && offsetof(Bth, psn) == 9);

struct Reth {
  be64 va;
  be32 rkey;
  be32 dma_len;
};
static_assert(sizeof(Reth) == 16);

struct AtomicEth {
  be64 va;
  be32 rkey;
  be64 swap_add;
  be64 compare;
};
static_assert(sizeof(AtomicEth) == 28);

struct Aeth {
  uint8_t syndrome;
  be24 msn;

  static constexpr uint8_t kTypeMask = 0x60, kAck = 0x00, kRnrNak = 0x20, kNak = 0x60, kValueMask = 0x1f;
  static constexpr uint8_t kInvalidCredits = 0x1f;  ///< of an ACK: no end-to-end flow control
};
static_assert(sizeof(Aeth) == 4);

/// Low five bits of a NAK's syndrome.
enum class NakCode : uint8_t {
  kPsnSeqErr = 0,
  kInvalidReq = 1,
  kRemoteAccess = 2,
  kRemoteOp = 3,
  kInvalidRdReq = 4,
  kDcNoConnection = 0x1e,  ///< ours: the target does not know the connection, or no longer does
};

struct AtomicAckEth {
  be64 orig;
};
struct ImmDt {
  be32 imm;
};
struct Ieth {
  be32 rkey;
};
struct Deth {
  be32 qkey;
  uint8_t rsvd;
  be24 sqpn;
};
struct XrcEth {
  uint8_t rsvd;
  be24 srqn;
};
static_assert(sizeof(AtomicAckEth) == 8 && sizeof(ImmDt) == 4 && sizeof(Ieth) == 4 && sizeof(Deth) == 8 &&
              sizeof(XrcEth) == 4);

/// Extended header of DC requests, after the BTH. The cards' layout is not public: this is our own format,
/// understood by this model alone.
struct DcEth {
  be64 key;       ///< DC access key
  uint8_t flags;  ///< kConnect
  be24 sqpn;      ///< initiator
  uint8_t session;
  be24 first_psn;  ///< of the connection

  static constexpr uint8_t kConnect = 1;  ///< no packet of the connection has been acknowledged yet
};
static_assert(sizeof(DcEth) == 16 && offsetof(DcEth, sqpn) == 9 && offsetof(DcEth, first_psn) == 13);

constexpr unsigned kIcrcBytes = 4, kVcrcBytes = 2, kFcsBytes = 4, kVlanTagBytes = 4;
constexpr uint32_t kPsnMask = 0xffffff;

/// Distance a - b of two 24-bit PSNs, in -2^23 .. 2^23-1.
constexpr int32_t psn_diff(uint32_t a, uint32_t b) {
  uint32_t d = (a - b) & kPsnMask;
  return d & 0x800000 ? static_cast<int32_t>(d) - 0x1000000 : static_cast<int32_t>(d);
}

/// RNR NAK timer field to microseconds (IBTA 9.7.5.2.8, table of timer codes).
constexpr uint32_t rnr_timer_us(unsigned code) {
  constexpr uint32_t kUs[32] = {655360, 10,    20,    30,     40,     60,     80,     120,
                                160,    240,   320,   480,    640,    960,    1280,   1920,
                                2560,   3840,  5120,  7680,   10240,  15360,  20480,  30720,
                                40960,  61440, 81920, 122880, 163840, 245760, 327680, 491520};
  return kUs[code & 31];
}

}  // namespace hcasim::prm
