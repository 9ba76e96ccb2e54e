// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/gsi.h"

#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/mad_agent.h"
#include "model/device.h"

namespace hcasim::fw {

namespace {
constexpr std::uint32_t kGsiQkey = 0x80010000;
constexpr std::uint8_t kHopsOfGlobal = 0xff;
}  // namespace

Gsi::Gsi(const sc_core::sc_module_name& name, Firmware& fw)
    : sc_module(name),
      fw_(fw),
      subnet_admin_(fw.device().profile(),
                    {fw.device().port(), fw.device().vports(), fw.function().vport(), fw.port(), *this}),
      out_(
          "out",
          [this](Time due, PacketRef& packet) { fw_.device().port().transmit(due, std::move(packet)); },
          fw.function().health()) {}

bool Gsi::take(Time t, const Packet& packet) {
  if (packet.kind != PacketKind::kIb || packet.dest_qpn != 1 || packet.qkey != kGsiQkey ||
      packet.payload_len != kMadBytes || !fw_.function().vport().pkey_valid(packet.pkey))
    return false;
  MadHeader header;
  std::memcpy(static_cast<void*>(&header), packet.data(), sizeof header);
  if (header.base_version != 1 || (header.method & kMethodResponse) != 0) return false;
  switch (header.mgmt_class) {
    case kClassSubnAdm:
      if (!fw_.function().physical()) return false;  // the subnet manager is at the port
      return subnet_admin_.take(t, packet);
    case kClassPerf: {
      if (header.method != kMethodGet && header.method != kMethodSet) return false;
      std::uint8_t mad[kMadBytes];
      std::memcpy(mad, packet.data(), sizeof mad);
      answer_mad(fw_, mad);
      ++performance_mads_;
      reply(t, packet, mad);
      return true;
    }
    default:
      return false;
  }
}

void Gsi::reply(Time t, const Packet& to, const std::uint8_t* mad) {
  const Port& port = fw_.device().port();
  PacketRef packet = PacketPool::make();
  packet->function = fw_.function().id();
  packet->slid = port.lid();
  packet->dlid = to.slid;
  packet->sl = to.sl;
  packet->vl = port.lanes.of(to.sl);
  packet->pkey = to.pkey;
  packet->has_grh = to.has_grh;
  packet->sgid = to.dgid;
  packet->dgid = to.sgid;
  packet->hop_limit = kHopsOfGlobal;
  packet->opcode = static_cast<std::uint8_t>(prm::BthOp::kSendOnly) | prm::bth::kUd;
  packet->dest_qpn = to.src_qpn;
  packet->src_qpn = 1;
  packet->qkey = kGsiQkey;
  packet->payload_len = kMadBytes;
  std::memcpy(packet->data(), mad, kMadBytes);
  out_.push(t + fw_.device().profile().firmware.command, std::move(packet));
}

}  // namespace hcasim::fw
