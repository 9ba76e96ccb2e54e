// SPDX-License-Identifier: BSD-3-Clause
#include "firmware-stub/objects/flow_types.h"

namespace hcasim::fw {

namespace {

using namespace prm::k;

constexpr std::uint16_t kPlain = kFlowAllow | kFlowDrop | kFlowForward | kFlowCount;
constexpr std::uint32_t kTable = 1u << FlowDestination::kTable, kTir = 1u << FlowDestination::kTir,
                        kSampler = 1u << FlowDestination::kSampler;
constexpr std::uint32_t kBytes = 1u << REFORMAT_TYPE_INSERT_HDR | 1u << REFORMAT_TYPE_REMOVE_HDR;
constexpr std::uint32_t kEncap = 1u << REFORMAT_TYPE_L2_TO_VXLAN | 1u << REFORMAT_TYPE_L2_TO_NVGRE |
                                 1u << REFORMAT_TYPE_L2_TO_L2_TUNNEL | 1u << REFORMAT_TYPE_L2_TO_L3_TUNNEL;

constexpr FlowTypeCaps kNicRx{
    FlowTableType::kNicRx,
    kPlain | kFlowReformat | kFlowDecap | kFlowModify | kFlowPopVlan | kFlowPopVlan2 | kFlowAso,
    kTable | kTir | kSampler, 1u << REFORMAT_TYPE_L3_TUNNEL_TO_L2 | kBytes, false};
constexpr FlowTypeCaps kNicTx{
    FlowTableType::kNicTx, kPlain | kFlowReformat | kFlowModify | kFlowPushVlan | kFlowPushVlan2 | kFlowAso,
    kTable | kSampler, kEncap | kBytes, false};
constexpr FlowTypeCaps with(FlowTypeCaps caps, unsigned action, std::uint32_t reformats) {
  caps.actions = static_cast<std::uint16_t>(caps.actions | action);
  caps.reformats |= reformats;
  return caps;
}

constexpr FlowTypeCaps kTypes[] = {
    kNicRx,
    kNicTx,
    {FlowTableType::kSnifferRx, kPlain, kTable | kTir, 0, false},
    {FlowTableType::kSnifferTx, kPlain, kTable | kTir, 0, false},
    {FlowTableType::kRdmaRx, kPlain | kFlowModify, kTable, 0, true},
    {FlowTableType::kRdmaTx, kPlain | kFlowModify, kTable, 0, true},
};

// Of boards that encrypt, in place of the above.
constexpr std::uint32_t kProtect =
    1u << REFORMAT_TYPE_ADD_MACSEC | 1u << REFORMAT_TYPE_L2_TO_L3_ESP_TUNNEL |
    1u << REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4 | 1u << REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV6 |
    1u << REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV4 | 1u << REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV6;
constexpr std::uint32_t kUnprotect =
    1u << REFORMAT_TYPE_DEL_MACSEC | 1u << REFORMAT_TYPE_L3_ESP_TUNNEL_TO_L2 |
    1u << REFORMAT_TYPE_DEL_ESP_TRANSPORT | 1u << REFORMAT_TYPE_DEL_ESP_TRANSPORT_OVER_UDP;
constexpr FlowTypeCaps kCryptoTypes[] = {with(kNicRx, kFlowDecrypt, kUnprotect),
                                         with(kNicTx, kFlowEncrypt, kProtect)};

// Without has.flow_rewrite: frames are matched and sent on as they are.
constexpr FlowTypeCaps kPlainTypes[] = {
    {FlowTableType::kNicRx, kPlain, kTable | kTir, 0, false},
    {FlowTableType::kNicTx, kPlain, kTable, 0, false},
    {FlowTableType::kSnifferRx, kPlain, kTable | kTir, 0, false},
    {FlowTableType::kSnifferTx, kPlain, kTable | kTir, 0, false},
};

// On InfiniBand: of IPoIB's datagrams.
constexpr FlowTypeCaps kDatagrams{FlowTableType::kNicRx, kPlain, kTable | kTir, 0, false};

// Of the function that manages an E-Switch; without has.flow_rewrite tags are given to vports, not by ACLs.
constexpr std::uint32_t kVport = 1u << FlowDestination::kVport,
                        kVports = kVport | 1u << FlowDestination::kUplink;
constexpr FlowTypeCaps kSwitchTypes[] = {
    {FlowTableType::kEswIngressAcl, kPlain | kFlowPushVlan | kFlowModify, kTable, 0, false},
    {FlowTableType::kEswEgressAcl, kPlain | kFlowPopVlan, kTable | kVport, 0, false},
    {FlowTableType::kFdb,
     kPlain | kFlowModify | kFlowReformat | kFlowDecap | kFlowPopVlan | kFlowPopVlan2 | kFlowPushVlan |
         kFlowPushVlan2 | kFlowAso,
     kTable | kVports | kSampler, kEncap | 1u << REFORMAT_TYPE_L3_TUNNEL_TO_L2 | kBytes, false},
};
constexpr FlowTypeCaps kPlainSwitchTypes[] = {
    {FlowTableType::kEswIngressAcl, kPlain, kTable, 0, false},
    {FlowTableType::kEswEgressAcl, kPlain, kTable, 0, false},
    {FlowTableType::kFdb, kPlain, kTable | kVports, 0, false},
};

// Which port a frame of a LAG leaves by.
constexpr FlowTypeCaps kPortSelection{FlowTableType::kPortSelection, kFlowForward,
                                      kTable | 1u << FlowDestination::kUplink, 0, false};

template <std::size_t N>
const FlowTypeCaps* find(const FlowTypeCaps (&types)[N], std::uint32_t table_type) {
  for (const FlowTypeCaps& t : types)
    if (static_cast<std::uint32_t>(t.type) == table_type) return &t;
  return nullptr;
}

}  // namespace

const FlowTypeCaps* flow_type(const Options& options, std::uint32_t table_type) {
  if (options.link != Link::kEthernet)
    return options.ipoib && static_cast<FlowTableType>(table_type) == kDatagrams.type ? &kDatagrams : nullptr;
  const bool rewrites = options.generation->has.flow_rewrite;
  const FlowTypeCaps* type = rewrites ? find(kTypes, table_type) : find(kPlainTypes, table_type);
  if (options.encrypts())
    if (const FlowTypeCaps* crypto = find(kCryptoTypes, table_type)) return crypto;
  if (type == nullptr && options.manages_switch())
    type = rewrites ? find(kSwitchTypes, table_type) : find(kPlainSwitchTypes, table_type);
  if (options.selects_port() && static_cast<FlowTableType>(table_type) == kPortSelection.type)
    return &kPortSelection;
  return type;
}

bool samples(const Options& options, FlowTableType type) {
  return type == FlowTableType::kNicRx || (type == FlowTableType::kFdb && options.manages_switch());
}

}  // namespace hcasim::fw
