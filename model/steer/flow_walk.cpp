// SPDX-License-Identifier: BSD-3-Clause
// The way of a frame through tables: entries' actions, destinations, copies.
#include <algorithm>

#include "model/steer/flow_match.h"
#include "model/steer/lookup_time.h"
#include "model/steer/path_trace.h"

namespace hcasim {

namespace {

bool transmit_side(FlowTableType type) {
  return type == FlowTableType::kNicTx || type == FlowTableType::kRdmaTx;
}

// Frames that no rule stops go on where they were bound for.
bool passes_by_default(FlowTableType type) {
  return transmit_side(type) || type == FlowTableType::kRdmaRx || in_switch(type);
}

bool takes_esp(std::uint8_t type) {
  return type == prm::k::REFORMAT_TYPE_DEL_ESP_TRANSPORT ||
         type == prm::k::REFORMAT_TYPE_DEL_ESP_TRANSPORT_OVER_UDP ||
         type == prm::k::REFORMAT_TYPE_L3_ESP_TUNNEL_TO_L2;
}

}  // namespace

bool PacketReformat::before_fields() const {
  return type == prm::k::REFORMAT_TYPE_L3_TUNNEL_TO_L2 || type == prm::k::REFORMAT_TYPE_REMOVE_HDR ||
         type == prm::k::REFORMAT_TYPE_DEL_MACSEC || takes_esp(type);
}

bool PacketReformat::apply(SteeredFrame& frame) const {
  const auto len = static_cast<std::uint32_t>(data.size());
  std::uint32_t at = 0;
  // What could not be decrypted stays as it is, for the tables to look at what was found.
  if (takes_esp(type) && frame.ipsec_syndrome != 0) return true;
  switch (type) {
    case prm::k::REFORMAT_TYPE_L2_TO_VXLAN:
    case prm::k::REFORMAT_TYPE_L2_TO_NVGRE:
    case prm::k::REFORMAT_TYPE_L2_TO_L2_TUNNEL:
      return encapsulate(frame, data.data(), len, EncapOf::kL2);
    case prm::k::REFORMAT_TYPE_L2_TO_L3_TUNNEL:
      return encapsulate(frame, data.data(), len, EncapOf::kL3);
    case prm::k::REFORMAT_TYPE_L3_TUNNEL_TO_L2:
      return decapsulate_l3(frame, data.data(), len);
    case prm::k::REFORMAT_TYPE_INSERT_HDR:
      return anchor_offset(frame, anchor, at) && insert_bytes(frame, at + offset, data.data(), len);
    case prm::k::REFORMAT_TYPE_REMOVE_HDR:
      return anchor_offset(frame, anchor, at) && remove_bytes(frame, at + offset, remove);
    case prm::k::REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV4:
    case prm::k::REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_IPV6:
    case prm::k::REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV4:
    case prm::k::REFORMAT_TYPE_ADD_ESP_TRANSPORT_OVER_UDPV6:
      return add_esp_transport(frame, data.data(), len);
    case prm::k::REFORMAT_TYPE_L2_TO_L3_ESP_TUNNEL:
      return add_esp_tunnel(frame, data.data(), len);
    case prm::k::REFORMAT_TYPE_DEL_ESP_TRANSPORT:
      return remove_esp_transport(frame, false);
    case prm::k::REFORMAT_TYPE_DEL_ESP_TRANSPORT_OVER_UDP:
      return remove_esp_transport(frame, true);
    case prm::k::REFORMAT_TYPE_L3_ESP_TUNNEL_TO_L2:
      return remove_esp_tunnel(frame, data.data(), len);
    case prm::k::REFORMAT_TYPE_ADD_MACSEC:
      return add_macsec(frame, data.data(), len, offset);
    case prm::k::REFORMAT_TYPE_DEL_MACSEC:
      return remove_macsec(frame, remove);
    default:
      return false;
  }
}

void FlowSteering::count(std::uint32_t id, const SteeredFrame& frame) {
  if (FlowCounter* c = counter(id)) {
    ++c->packets;
    c->bytes += frame.len();
  }
}

// What comes out of the switch's tables is not at the end of its way: the switch says where it ends.
void FlowSteering::ends(SteeredFrame& frame, traces::FrameEnd how, std::uint32_t to) {
  if (const auto* trace = tracer(); trace && (!in_switch(walking_) || how == traces::FrameEnd::kRule))
    trace_end(*trace, std::max(now_, frame.at), frame, how, to);
}

void FlowSteering::drop(SteeredFrame frame) {
  ends(frame, traces::FrameEnd::kRule, 0);
  verdict_.dropped_by_rule = true;
}

void FlowSteering::pass(SteeredFrame frame) {
  if (frame.unprotected && transmit_side(walking_)) return drop(std::move(frame));
  ends(frame, passes_by_default(walking_) ? traces::FrameEnd::kPassed : traces::FrameEnd::kNoRule, 0);
  if (passes_by_default(walking_) && verdict_.deliveries.size() < kMaxCopies)
    verdict_.deliveries.push_back({FlowDelivery::kPass, 0, std::move(frame)});
}

void FlowSteering::forward(const FlowDestination& to, SteeredFrame frame) {
  const auto enter = [&](std::uint32_t id, SteeredFrame f) {
    if (todo_.size() < kMaxHops) todo_.push_back({id, std::move(f)});
  };
  switch (to.type) {
    case FlowDestination::kTable:
      return enter(to.id, std::move(frame));
    case FlowDestination::kTableType: {
      const auto type = static_cast<FlowTableType>(to.id);
      if (root(type) != 0) return enter(root(type), std::move(frame));
      if (passes_by_default(type)) pass(std::move(frame));
      return;
    }
    case FlowDestination::kTir:
      ends(frame, traces::FrameEnd::kTir, to.id);
      if (verdict_.deliveries.size() < kMaxCopies)
        verdict_.deliveries.push_back({FlowDelivery::kTir, to.id, std::move(frame)});
      return;
    case FlowDestination::kVport:
    case FlowDestination::kUplink:
      if (verdict_.deliveries.size() < kMaxCopies)
        verdict_.deliveries.push_back(
            {to.type == FlowDestination::kVport ? FlowDelivery::kVport : FlowDelivery::kUplink, 0,
             std::move(frame), to.id, to.other});
      return;
    case FlowDestination::kSampler: {
      const auto it = samplers.find(to.id);
      if (it == samplers.end()) return drop(std::move(frame));
      FlowSampler& s = it->second;
      if (++s.phase >= s.ratio) {
        s.phase = 0;
        enter(s.sample_table, frame);
      }
      return enter(s.default_table, std::move(frame));
    }
    default:
      return pass(std::move(frame));
  }
}

void FlowSteering::miss(const FlowTable& table, SteeredFrame frame) {
  if (table.miss_to_table) return forward({FlowDestination::kTable, table.miss_table}, std::move(frame));
  if (table.miss_to_nic) {
    const FlowTableType nic = transmit_side(table.type) ? FlowTableType::kNicTx : FlowTableType::kNicRx;
    return forward({FlowDestination::kTableType, static_cast<std::uint32_t>(nic)}, std::move(frame));
  }
  pass(std::move(frame));
}

bool FlowSteering::measure(const MeterAction& aso, SteeredFrame& frame) {
  const auto it = meters.find(aso.object);
  if (it == meters.end()) return false;
  const Time now = in_switch(walking_) ? frame.at : now_;
  const MeterColor color = it->second.meters[aso.meter].color(now, frame, aso.before);
  frame.touch();
  std::uint32_t& reg = frame.regs.c[aso.reg];
  reg = (reg & ~0xffu) | static_cast<std::uint32_t>(color);
  return true;
}

// What an entry does to the frame, in the order of the hardware's stages: decryption, headers away, fields,
// headers on, encryption.
// False: an action does not apply, which drops the frame.
bool FlowSteering::act(Time now, const FlowEntry& entry, SteeredFrame& frame) {
  const unsigned action = entry.action;
  if (action & kFlowCount)
    for (const std::uint32_t id : entry.counters) count(id, frame);
  if (entry.tag) frame.flow_tag = entry.tag;
  if (action & kFlowAso) measure(entry.aso, frame);
  if (action & kFlowDecrypt && crypto_) crypto_->decrypt(now, function_, entry.crypto, frame);
  if (!change(entry, frame)) return false;
  return !(action & kFlowEncrypt) || (crypto_ && crypto_->encrypt(now, function_, entry.crypto, frame));
}

bool FlowSteering::change(const FlowEntry& entry, SteeredFrame& frame) {
  const unsigned action = entry.action;
  constexpr unsigned kChanges = kFlowReformat | kFlowDecap | kFlowModify | kFlowPopVlan | kFlowPushVlan |
                                kFlowPopVlan2 | kFlowPushVlan2;
  if (!(action & kChanges)) return true;
  if (LookupTime* const time = in_switch(walking_) ? time_ : nullptr) {
    if (action & kFlowModify) frame.at = time->rewrite(frame.at);
    if (action & (kChanges & ~kFlowModify)) frame.at = time->reformat(frame.at);
  }

  const PacketReformat* reformat = nullptr;
  if (action & kFlowReformat) {
    const auto it = reformats.find(entry.reformat);
    if (it == reformats.end()) return false;
    reformat = &it->second;
  }
  if (action & kFlowDecap && !decapsulate_l2(frame)) return false;
  if (reformat && reformat->before_fields() && !reformat->apply(frame)) return false;
  if (action & kFlowPopVlan) pop_vlan(frame);
  if (action & kFlowPopVlan2) pop_vlan(frame);
  if (action & kFlowModify) {
    const auto it = modify_headers.find(entry.modify);
    if (it != modify_headers.end()) hcasim::modify_headers(frame, it->second.data(), it->second.size());
  }
  if (action & kFlowPushVlan && !push_vlan(frame, entry.push[0].tpid, entry.push[0].tci)) return false;
  if (action & kFlowPushVlan2 && !push_vlan(frame, entry.push[1].tpid, entry.push[1].tci)) return false;
  return !reformat || reformat->before_fields() || reformat->apply(frame);
}

void FlowSteering::visit(Time now, Step step) {
  const FlowTable* table = find_table(step.table);
  if (!table) return;
  SteeredFrame& frame = step.frame;
  walking_ = table->type;
  if (in_switch(walking_)) now = frame.at;
  if (table->sw_owner) {
    if (const auto* trace = tracer()) trace_table(*trace, now, frame, *table, nullptr);
    if (!sw_tables_) return drop(std::move(frame));
    const bool transmit =
        table->type == FlowTableType::kFdb ? frame.source_port != kUplinkPort : transmit_side(table->type);
    return sw_tables_->walk(table->type, table->sw_root[transmit], std::move(frame), *this,
                            in_switch(walking_) ? time_ : nullptr);
  }
  if (params_of_ != frame.version || !params_valid_) {
    fill_match_param(frame, geneve_option, criteria_, params_.data());
    params_of_ = frame.version;
    params_valid_ = true;
  }
  if (table->parts_ports && frame.packet->crossed) {
    verdict_.deliveries.push_back({FlowDelivery::kOtherPort, 0, std::move(frame)});
    return;
  }
  const FlowEntry* entry =
      lookup(*table, params_.data(), frame, time_ && in_switch(walking_) ? &frame.at : nullptr, work_left_);
  if (in_switch(walking_)) now = frame.at;
  if (const auto* trace = tracer()) trace_table(*trace, now, frame, *table, entry);
  if (!entry && work_left_ == 0) return lose(std::move(frame));
  if (!entry) return miss(*table, std::move(frame));
  frame.turned |= table->terminates;
  if (!act(now, *entry, frame) || entry->action & kFlowDrop) return drop(std::move(frame));
  if (entry->action & kFlowAllow) return pass(std::move(frame));
  if (!(entry->action & kFlowForward)) return;
  const std::size_t n = entry->destinations.size();
  for (std::size_t i = 0; i + 1 < n; ++i) lead(entry->destinations[i], frame);
  if (n != 0) lead(entry->destinations[n - 1], std::move(frame));
}

void FlowSteering::lose(SteeredFrame frame) {
  if (sw_tables_) sw_tables_->lose();
  drop(std::move(frame));
}

// With what is done to the frame for that destination alone.
void FlowSteering::lead(const FlowDestination& to, SteeredFrame frame) {
  if (to.reformat != 0) {
    if (!spend(work_left_, kChangeWork)) return lose(std::move(frame));
    const auto it = reformats.find(to.reformat);
    if (it == reformats.end() || !it->second.apply(frame)) return drop(std::move(frame));
    if (time_ && in_switch(walking_)) frame.at = time_->reformat(frame.at);
  }
  forward(to, std::move(frame));
}

FlowVerdict& FlowSteering::run_from(Time now, FlowTableType type, std::uint32_t table, SteeredFrame frame,
                                    unsigned work) {
  verdict_.dropped_by_rule = false;
  verdict_.deliveries.clear();
  todo_.clear();
  params_valid_ = false;
  walking_ = type;
  now_ = now;
  work_left_ = work;
  if (in_switch(type)) frame.at = std::max(frame.at, now);
  if (const auto* trace = tracer(); trace && !in_switch(type))
    trace_entry(*trace, now, frame, type, frame.packet->function);
  if (sw_tables_) sw_tables_->begin(work);
  if (table == 0) {
    pass(std::move(frame));
    return verdict_;
  }
  // Steps are made in the order in which they were found; the list grows while it is worked through.
  todo_.reserve(kMaxHops);
  todo_.push_back({table, std::move(frame)});
  for (std::size_t i = 0; i < todo_.size(); ++i) visit(now, std::move(todo_[i]));
  todo_.clear();
  return verdict_;
}

}  // namespace hcasim
