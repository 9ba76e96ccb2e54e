// SPDX-License-Identifier: BSD-3-Clause
// What steering does to a frame on its way: modify header, VLAN tags, packet reformat. Both kinds of tables
// (those that firmware installs and those that software writes itself) act on frames through this alone.
// Lengths and checksums of the headers that an action touches are right afterwards.
#ifndef HCASIM_MODEL_STEER_ACTIONS_H
#define HCASIM_MODEL_STEER_ACTIONS_H

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/eth/headers.h"
#include "model/packet/packet.h"
#include "model/state/fields.h"
#include "model/time.h"
#include "prm/prm.h"

namespace hcasim {

// Registers that go with a frame from table to table; zero at the root.
struct FlowRegisters {
  std::uint32_t a = 0, b = 0;
  std::array<std::uint32_t, 8> c{};
};

// SteeredFrame::source_port of what came in at the port.
constexpr std::uint16_t kUplinkPort = 0xffff;

// A frame on its way through tables. A copy shares the bytes until one of the two is changed.
struct SteeredFrame {
  SteeredFrame() = default;
  // kind kEthernet; with what it brought along from the E-Switch
  explicit SteeredFrame(PacketRef p, const VxlanPorts* ports = nullptr) : packet(std::move(p)), vxlan(ports) {
    source_port = packet->source_vport;
    regs.c[0] = packet->reg_c[0];
    regs.c[1] = packet->reg_c[1];
    trail = packet->trail;
    reparse();
  }

  PacketRef packet;
  const VxlanPorts* vxlan = nullptr;  // what its tunnels are known by
  FrameHeaders headers;               // of the bytes as they are now
  FlowRegisters regs;
  std::uint32_t flow_tag = 0;      // goes into the CQE
  std::uint32_t sqn = 0;           // transmit: the queue it came from
  std::uint32_t datagram_qpn = 0;  // IPoIB: the QP that it came to
  std::uint16_t source_port = 0;   // E-Switch, and behind it: the vport it came from
  std::uint16_t source_vhca = 0;   // E-Switch: the function at that vport (vhca_id), 0 for the uplink
  std::uint16_t owner = 0;         // E-Switch: the number (vhca_id) of its manager
  bool turned = false;             // E-Switch: by a termination table, and may go back to where it came from
  FrameTrail trail;
  std::uint8_t ipsec_syndrome = 0;   // EspStatus, of what has been decrypted
  std::uint8_t macsec_syndrome = 0;  // MacsecStatus
  std::uint8_t psp_syndrome = 0;     // PspStatus
  bool unprotected = false;          // should have been encrypted, and was not: does not leave
  Time at = 0;                       // E-Switch, encryption: when it is as far as it has come
  std::uint64_t version = 0;         // 0: as it came. Frames of the same version in one walk are alike.

  const std::uint8_t* bytes() const { return packet->frame(); }
  std::uint32_t len() const { return packet->frame_len; }
  // The bytes, this frame's alone from here on; kMaxFrame of them may be written.
  std::uint8_t* writable();
  void set_len(std::uint32_t len) { packet->frame_len = static_cast<std::uint16_t>(len); }
  void touch();  // bytes or registers are about to change
  void reparse() { headers = parse_frame(packet->frame(), packet->frame_len, LengthsOf::kHeaders, vxlan); }
};

// --- Header fields, by their numbers in modify-header actions (MLX5_ACTION_IN_FIELD_*)

// Width in bits; 0: there is no such field.
unsigned field_width(std::uint32_t field);
bool field_writable(std::uint32_t field);
// False, and v is 0: the frame does not have it.
bool read_field(const SteeredFrame& frame, std::uint32_t field, std::uint32_t& v);
// Puts the low `width` bits of v at bit `offset` of the field (from its lowest). False: the frame does not
// have it, and is not changed. Checksums of IPv4, TCP and UDP that cover it follow.
bool write_field(SteeredFrame& frame, std::uint32_t field, unsigned offset, unsigned width, std::uint32_t v);

// One action of a modify-header list.
struct FieldAction {
  enum Type : std::uint8_t { kNop = 0, kSet = 1, kAdd = 2, kCopy = 3 } type = kNop;
  std::uint32_t field = 0;  // what is changed
  std::uint8_t offset = 0;  // set, copy: lowest bit of it
  std::uint8_t width = 32;  // set, copy: bits
  std::uint32_t data = 0;   // set: the value; add: added to the whole field, modulo its width
  std::uint32_t from = 0;   // copy: field, and its lowest bit
  std::uint8_t from_offset = 0;

  template <class Archive>
  void list_state(Archive& a) {
    HCASIM_FIELDS(a, type, field, offset, width, data, from, from_offset);
    if constexpr (Archive::kLoads)
      a.check(offset < 32 && width <= 32 && from_offset < 32, "no field has as many bits");
  }
};
// In order. An action on a field that the frame does not have does nothing.
void modify_headers(SteeredFrame& frame, const FieldAction* actions, std::size_t count);

// --- VLAN tags

// False: no room.
bool push_vlan(SteeredFrame& frame, std::uint16_t tpid, std::uint16_t tci);
// The outermost. False: there is none.
bool pop_vlan(SteeredFrame& frame);

// --- Reformat. False: does not apply to this frame, or does not fit into one; the frame is as it was.

// Puts a tunnel's headers (L2 to the tunnel header itself) before the frame: before its Ethernet header, or
// in place of that one and its tags. IP and UDP lengths and the IPv4 checksum are made; a UDP checksum is
// made unless the headers given say none, and a UDP source port if they have 0 there: a hash of the frame's
// own headers.
enum class EncapOf : std::uint8_t { kL2, kL3 };
bool encapsulate(SteeredFrame& frame, const std::uint8_t* header, std::uint32_t len, EncapOf of);
// Leaves the inner Ethernet frame of a tunnel.
bool decapsulate_l2(SteeredFrame& frame);
// Leaves the inner IP packet of a tunnel, behind the L2 header given (Ethernet, perhaps with tags).
bool decapsulate_l3(SteeredFrame& frame, const std::uint8_t* header, std::uint32_t len);

// reformat_param_0 of INSERT_HDR and REMOVE_HDR (REFORMAT_CONTEXT_ANCHOR_*).
// Byte offset of the anchor; false: the frame has no such header, or it is no anchor.
bool anchor_offset(const SteeredFrame& frame, std::uint32_t anchor, std::uint32_t& at);
bool known_anchor(std::uint32_t anchor);
bool insert_bytes(SteeredFrame& frame, std::uint32_t at, const std::uint8_t* bytes, std::uint32_t len);
bool remove_bytes(SteeredFrame& frame, std::uint32_t at, std::uint32_t len);
// Protected frames (IEEE 802.1AE 9.2): the SecTAG behind the addresses and `skip` bytes of VLAN tags, room
// for the ICV at the end; and both away again, of a frame whose SecTAG has that many bytes.
bool add_macsec(SteeredFrame& frame, const std::uint8_t* tag, std::uint32_t len, std::uint32_t skip);
bool remove_macsec(SteeredFrame& frame, std::uint32_t len);
// ESP of packet offload: header and trailer put around what is to be encrypted, and away from what has been
// decrypted. header: transport: ESP's header and IV, perhaps behind one of UDP; tunnel: Ethernet and IP
// before it; of a tunnel that is taken away: the Ethernet header that the packet inside gets. IP and UDP
// lengths, the IPv4 checksum and the next header are made.
bool add_esp_transport(SteeredFrame& frame, const std::uint8_t* header, std::uint32_t len);
bool add_esp_tunnel(SteeredFrame& frame, const std::uint8_t* header, std::uint32_t len);
bool remove_esp_transport(SteeredFrame& frame, bool in_udp);
bool remove_esp_tunnel(SteeredFrame& frame, const std::uint8_t* header, std::uint32_t len);
// Leaves bytes [at, end).
bool keep_bytes(SteeredFrame& frame, std::uint32_t at, std::uint32_t end);

}  // namespace hcasim
#endif
