// SPDX-License-Identifier: BSD-3-Clause
#include "model/steer/sw_steering.h"

namespace hcasim {

void SwSteering::clear() {
  icm_.clear();
  lost_ = 0;
}

void SwSteering::count(std::uint32_t counter, std::uint32_t bytes) {
  if (FlowCounter* c = flows_.counter(counter)) {
    ++c->packets;
    c->bytes += bytes;
  }
}

const std::vector<std::uint8_t>* SwSteering::tunnel_header(std::uint32_t reformat) {
  const auto it = flows_.reformats.find(reformat);
  if (it == flows_.reformats.end()) return nullptr;
  const unsigned type = it->second.type;
  const bool encap = type == prm::k::REFORMAT_TYPE_L2_TO_L2_TUNNEL ||
                     type == prm::k::REFORMAT_TYPE_L2_TO_L3_TUNNEL ||
                     type == prm::k::REFORMAT_TYPE_L2_TO_VXLAN || type == prm::k::REFORMAT_TYPE_L2_TO_NVGRE;
  return encap ? &it->second.data : nullptr;
}

const std::vector<std::uint8_t>* SwSteering::inserted_bytes(std::uint32_t reformat) {
  const auto it = flows_.reformats.find(reformat);
  if (it == flows_.reformats.end() || it->second.type != prm::k::REFORMAT_TYPE_INSERT_HDR) return nullptr;
  return &it->second.data;
}

const MatchDefiner* SwSteering::definer(std::uint32_t id) {
  const auto it = flows_.definers.find(id);
  return it == flows_.definers.end() ? nullptr : &it->second;
}

bool SwSteering::measure(std::uint32_t object, unsigned meter, unsigned before, unsigned reg,
                         SteeredFrame& frame) {
  MeterAction aso;
  aso.object = object;
  aso.meter = static_cast<std::uint8_t>(meter);
  aso.reg = static_cast<std::uint8_t>(reg);
  aso.before = static_cast<MeterColor>(before);
  return flows_.measure(aso, frame);
}

void SwSteering::walk(FlowTableType type, std::uint64_t root, SteeredFrame frame, FlowSteering& steering,
                      LookupTime* time) {
  SteSource source;
  source.gvmi = frame.source_vhca;
  source.qpn = frame.sqn;
  source.function_loop = frame.packet->looped;
  source.option = flows_.geneve_option;
  // The FDB has tables of its own for each of its sides.
  const bool fdb = type == FlowTableType::kFdb;
  const bool receive = fdb ? frame.source_port == kUplinkPort : type == FlowTableType::kNicRx;
  const SteEnd end = walker_.walk(root, receive, frame, source, work_left_, time);
  if (end.fate != SteEnd::kOut) {
    lost_ += end.fate == SteEnd::kLost;
    return steering.drop(std::move(frame));
  }
  // From the switch's tables frames go to vports, and to none from those of a function.
  const bool of_function = end.to.kind == IcmTarget::kTir || end.to.kind == IcmTarget::kTxAllow;
  if ((fdb && of_function) || (!fdb && end.to.kind == IcmTarget::kVport)) {
    ++lost_;
    return steering.drop(std::move(frame));
  }
  switch (end.to.kind) {
    case IcmTarget::kVport:
      return steering.forward({FlowDestination::kVport, end.to.id}, std::move(frame));
    case IcmTarget::kTir:
      return steering.forward({FlowDestination::kTir, end.to.id}, std::move(frame));
    case IcmTarget::kTable:
      return steering.forward({FlowDestination::kTable, end.to.id}, std::move(frame));
    case IcmTarget::kSampler:
      return steering.forward({FlowDestination::kSampler, end.to.id}, std::move(frame));
    case IcmTarget::kTxAllow:
      return steering.pass(std::move(frame));
    default:
      ++lost_;
      return steering.drop(std::move(frame));
  }
}

}  // namespace hcasim
