// SPDX-License-Identifier: BSD-3-Clause
// Packet reformat contexts: headers that flow entries put before a packet or take away.
#include <algorithm>
#include <cstring>

#include "firmware-stub/firmware.h"
#include "firmware-stub/handlers.h"
#include "firmware-stub/objects/flow_types.h"
#include "model/crypto/ipsec.h"
#include "model/crypto/macsec.h"
#include "model/eth/headers.h"

namespace hcasim::fw {

namespace {

constexpr std::uint32_t kUdpHeader = 8, kIpv4Header = 20, kIpv6Header = 40;
// reformat_param_0 of what adds ESP: the ICV, in words.
constexpr std::uint32_t kIcvWords = 4;

bool adds_esp(std::uint32_t type) {
  using namespace prm::k;
  return (type >= REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4 &&
          type <= REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV4) ||
         type == REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV6 ||
         type == REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV6;
}

bool offered(const Options& o, std::uint32_t type) {
  for (const FlowTableType t : {FlowTableType::kNicRx, FlowTableType::kNicTx}) {
    const FlowTypeCaps* tables = flow_type(o, static_cast<std::uint32_t>(t));  // InfiniBand: none that send
    if (tables != nullptr && type < 32 && (tables->reformats >> type & 1) != 0) return true;
  }
  return false;
}

Syndrome check_size(std::uint32_t type, std::uint32_t size) {
  using namespace prm::k;
  bool ok = size != 0 && size <= kMaxReformatData;
  switch (type) {
    case REFORMAT_TYPE_L3_TUNNEL_TO_L2:  // an Ethernet header, with a tag or without
      ok = size == kEthHeader || size == kEthHeader + kVlanTag;
      break;
    case REFORMAT_TYPE_INSERT_HDR:
    case REFORMAT_TYPE_REMOVE_HDR:
      ok = ok && size % 2 == 0;
      break;
    case REFORMAT_TYPE_DEL_ESP_TRANSPORT:
    case REFORMAT_TYPE_DEL_ESP_TRANSPORT_OVER_UDP:
      ok = size == 0;
      break;
    case REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4:
    case REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV6:
      ok = size == kEspHeader + kEspIv;
      break;
    case REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV4:
    case REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV6:
      ok = size == kUdpHeader + kEspHeader + kEspIv;
      break;
    case REFORMAT_TYPE_L2_TO_L3_ESP_TUNNEL:
      ok = size == kEthHeader + kIpv4Header + kEspHeader + kEspIv ||
           size == kEthHeader + kIpv6Header + kEspHeader + kEspIv;
      break;
    case REFORMAT_TYPE_L3_ESP_TUNNEL_TO_L2:
      ok = size == kEthHeader;
      break;
    case REFORMAT_TYPE_ADD_MACSEC:
    case REFORMAT_TYPE_DEL_MACSEC:
      ok = size == kSecTag || size == kSecTag + kSecTagSci;
      break;
    default:
      ok = ok && size >= kEthHeader;
      break;
  }
  return ok ? Syndrome::kOk : Syndrome::kReformatData;
}

}  // namespace

Syndrome alloc_packet_reformat(Firmware& fw, Command& cmd) {
  using in = prm::alloc_packet_reformat_context_in;
  using c = in::packet_reformat_context;
  constexpr std::size_t kData = c::reformat_data::bit_off / 8;
  PacketReformat r;
  const std::uint32_t type = cmd.get<c::reformat_type>(), size = cmd.get<c::reformat_data_size>();
  if (!offered(fw.options(), type)) return Syndrome::kReformatType;
  r.type = static_cast<std::uint8_t>(type);
  const Syndrome s = check_size(type, size);
  if (s != Syndrome::kOk) return s;
  if (adds_esp(type) && cmd.get<c::reformat_param_0>() != kIcvWords) return Syndrome::kReformatType;
  const bool of_macsec = type == prm::k::REFORMAT_TYPE_ADD_MACSEC || type == prm::k::REFORMAT_TYPE_DEL_MACSEC;
  const bool remove = type == prm::k::REFORMAT_TYPE_REMOVE_HDR || type == prm::k::REFORMAT_TYPE_DEL_MACSEC;
  if (of_macsec) {
    // Words in front of the SecTAG: a VLAN tag, or none.
    r.anchor = static_cast<std::uint8_t>(cmd.get<c::reformat_param_0>());
    if (cmd.get<c::reformat_param_0>() > 1 || (remove && r.anchor != 0)) return Syndrome::kReformatType;
    r.offset = static_cast<std::uint8_t>(r.anchor * kVlanTag);
  } else if (remove || type == prm::k::REFORMAT_TYPE_INSERT_HDR) {
    r.anchor = static_cast<std::uint8_t>(cmd.get<c::reformat_param_0>());
    r.offset = static_cast<std::uint8_t>(cmd.get<c::reformat_param_1>());
    if (!known_anchor(r.anchor)) return Syndrome::kReformatType;
  }
  if (remove) {
    r.remove = size;
  } else {
    if (cmd.in_len < kData + size) return Syndrome::kReformatList;
    r.data.assign(cmd.in.begin() + kData, cmd.in.begin() + kData + size);
  }
  Objects& o = fw.objects();
  if (o.reformats.full()) return Syndrome::kReformatLimit;
  if (!fw.pages().charge(kIcmFlow)) return Syndrome::kWaitPages;
  std::uint32_t id = 0;
  o.reformats.create(id);
  fw.function().flows().reformats[id] = std::move(r);
  cmd.put<prm::alloc_packet_reformat_context_out::packet_reformat_id>(id);
  fw.trace_create(ObjType::kReformat, id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome dealloc_packet_reformat(Firmware& fw, Command& cmd) {
  const std::uint32_t id = cmd.get<prm::dealloc_packet_reformat_context_in::packet_reformat_id>();
  const PlainObject* object = fw.objects().reformats.find(id);
  if (object == nullptr) return Syndrome::kReformatNumber;
  if (object->referred()) return Syndrome::kReformatBusy;
  fw.function().flows().reformats.erase(id);
  fw.objects().reformats.destroy(id);
  fw.pages().release(kIcmFlow);
  fw.trace_destroy(ObjType::kReformat, id, cmd.uid);
  return Syndrome::kOk;
}

Syndrome query_packet_reformat(Firmware& fw, Command& cmd) {
  using out = prm::query_packet_reformat_context_out;
  using c = prm::packet_reformat_context_in;
  const auto& all = fw.function().flows().reformats;
  const auto it = all.find(cmd.get<prm::query_packet_reformat_context_in::packet_reformat_id>());
  if (it == all.end()) return Syndrome::kReformatNumber;
  const PacketReformat& r = it->second;
  constexpr std::size_t kContext = out::packet_reformat_context::bit_off / 8;
  constexpr std::size_t kData = kContext + c::reformat_data::bit_off / 8;
  const std::size_t end = std::max(kData + r.data.size(), kContext + c::bytes);
  if (cmd.out_len < end) return Syndrome::kOutputShort;
  std::uint8_t* p = cmd.out.data() + kContext;
  prm::set<c::reformat_type>(p, r.type);
  prm::set<c::reformat_param_0>(p, adds_esp(r.type) ? kIcvWords : r.anchor);
  if (r.type != prm::k::REFORMAT_TYPE_ADD_MACSEC) prm::set<c::reformat_param_1>(p, r.offset);
  prm::set<c::reformat_data_size>(p, r.remove ? r.remove : static_cast<std::uint32_t>(r.data.size()));
  if (!r.data.empty()) std::memcpy(cmd.out.data() + kData, r.data.data(), r.data.size());
  return Syndrome::kOk;
}

}  // namespace hcasim::fw
