// SPDX-License-Identifier: GPL-2.0-or-later
#include "fabric/cards.h"
#include "fabric/card_check.h"
#include "prm/access_registers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace hcasim::fabric {

namespace {

using namespace bare;

using namespace prm::reg;
constexpr unsigned kTrustDscp = 2, kDscps = 64, kDscpsAt = 4, kDscpValid = 0x8000;
constexpr std::uint32_t kReactionPoint = 1, kNotificationPoint = 2;
constexpr std::size_t kBlock = 64 << 10;                         // bytes that a message's memory repeats
constexpr std::uint64_t kBlockAddress = std::uint64_t{1} << 40;  // as the card's driver calls it
constexpr std::size_t kMemory = std::size_t{64} << 20, kMemoryOfCard = std::size_t{4} << 20,
                      kMemoryOfQp = 12 << 10;
constexpr std::int64_t kLongestWait = 20'000'000'000;  // ns

DeviceOptions device_options() {
  DeviceOptions o;
  o.wait_active = false;
  o.comp_eqs = 1;
  o.log_comp_eq = 8;
  return o;
}

CqOptions cq_options(unsigned entries) {
  CqOptions o;
  o.log_size = 6;
  while (1u << o.log_size < entries && o.log_size < kLogMostCompletions) ++o.log_size;
  return o;
}

// Each card has chance of its own, or all would lose the packets of one number; what `options` says comes
// after.
std::uint64_t seed_of(std::uint64_t seed, unsigned number) {
  return mix(seed + (number + std::uint64_t{1}) * 0x9e3779b97f4a7c15ull);
}

std::string options_of(const CardSpec& spec, unsigned number, std::uint64_t seed) {
  char text[160];
  const std::uint64_t mac = Cards::mac(number);
  const auto byte = [mac](unsigned i) { return static_cast<unsigned>(mac >> (40 - 8 * i) & 0xff); };
  std::snprintf(text, sizeof text,
                "wire=host,link=eth,name=card%u,mac=%02x:%02x:%02x:%02x:%02x:%02x,seed=%llu,profile=", number,
                byte(0), byte(1), byte(2), byte(3), byte(4), byte(5),
                static_cast<unsigned long long>(seed_of(seed, number)));
  return text + spec.profile + (spec.options.empty() ? "" : "," + spec.options);
}

// A row of kDcqcnKeys: its bit of the field select, and its field.
struct DcqcnField {
  unsigned bit;
  Mailbox& (*set)(Mailbox&, std::uint32_t);
};
using Params = prm::modify_cong_params_in;
template <class F>
Mailbox& set_field(Mailbox& in, std::uint32_t value) {
  return in.set<F>(value);
}
using Rp = Params::congestion_parameters::cong_control_r_roce_ecn_rp;
using Np = Params::congestion_parameters::cong_control_r_roce_ecn_np;
constexpr DcqcnField kDcqcnFields[] = {{3, set_field<Rp::rpg_time_reset>},
                                       {4, set_field<Rp::rpg_byte_reset>},
                                       {5, set_field<Rp::rpg_threshold>},
                                       {6, set_field<Rp::rpg_max_rate>},
                                       {7, set_field<Rp::rpg_ai_rate>},
                                       {8, set_field<Rp::rpg_hai_rate>},
                                       {16, set_field<Rp::rpg_gd>},
                                       {9, set_field<Rp::rpg_min_dec_fac>},
                                       {10, set_field<Rp::rpg_min_rate>},
                                       {11, set_field<Rp::rate_to_set_on_first_cnp>},
                                       {12, set_field<Rp::dce_tcp_g>},
                                       {13, set_field<Rp::dce_tcp_rtt>},
                                       {14, set_field<Rp::rate_reduce_monitor_period>},
                                       {15, set_field<Rp::initial_alpha_value>},
                                       {2, set_field<Np::min_time_between_cnps>},
                                       {1, set_field<Rp::clamp_tgt_rate>},
                                       {2, set_field<Rp::clamp_tgt_rate_after_time_inc>}};
static_assert(std::size(kDcqcnFields) == std::size(kDcqcnKeys));

void set_parameter(Device& device, unsigned card, const DcqcnValue& v) {
  const bool np = v.row == kCnpInterval;
  Mailbox in(prm::op::MODIFY_CONG_PARAMS, Params::bytes);
  in.set<Params::cong_protocol>(np ? kNotificationPoint : kReactionPoint);
  in.set<Params::field_select::field_select_r_roce_rp::field_select_r_roce_rp>(1u << kDcqcnFields[v.row].bit);
  kDcqcnFields[v.row].set(in, v.value);
  const CommandResult r = device.exec(in);
  if (!r.ok()) refuse_dcqcn(v, card, r.text());
}

}  // namespace

// ---- One ----

Card::Card(Function& function, unsigned n)
    : number(n), device(std::make_unique<Device>(function, device_options())) {}

std::unique_ptr<Mr> Card::block(const Buffer& buffer, std::uint64_t bytes) {
  MkeySpec spec;
  spec.pd = pd->pdn();
  spec.start = kBlockAddress;
  spec.len = bytes;
  spec.log_page = 16;
  spec.mtt.assign((bytes + kBlock - 1) / kBlock, buffer.bus());
  return std::make_unique<Mr>(*device, spec);
}

// Each DSCP is of the priority that its upper bits say, here as in the switches; PFC of the workloads' one.
void Card::set_priorities(const CardSpec& spec) {
  std::vector<std::uint8_t> trust(prm::qpts_reg::bytes);
  prm::set<prm::qpts_reg::local_port>(trust.data(), 1);
  prm::set<prm::qpts_reg::trust_state>(trust.data(), kTrustDscp);
  device->access_register(kQpts, true, trust).must();

  std::vector<std::uint8_t> map(prm::qpdpm_reg::bytes);
  prm::set<prm::qpdpm_reg::local_port>(map.data(), 1);
  for (unsigned i = 0; i < kDscps; ++i)
    prm::store16(map.data() + kDscpsAt + 2 * i, static_cast<std::uint16_t>(kDscpValid | i >> 3));
  device->access_register(kQpdpm, true, map).must();

  std::vector<std::uint8_t> pfc(prm::pfcc_reg::bytes);
  prm::set<prm::pfcc_reg::local_port>(pfc.data(), 1);
  prm::set<prm::pfcc_reg::prio_mask_tx>(pfc.data(), 0xff);
  prm::set<prm::pfcc_reg::prio_mask_rx>(pfc.data(), 0xff);
  prm::set<prm::pfcc_reg::pfctx>(pfc.data(), 1u << spec.priority);
  prm::set<prm::pfcc_reg::pfcrx>(pfc.data(), 1u << spec.priority);
  device->access_register(kPfcc, true, pfc).must();
}

void Card::set_congestion_control(const CardSpec& spec) {
  using In = prm::modify_cong_status_in;
  for (const std::uint32_t protocol : {kReactionPoint, kNotificationPoint}) {
    Mailbox in(prm::op::MODIFY_CONG_STATUS, In::bytes);
    in.set<In::cong_protocol>(protocol).set<In::priority>(spec.priority).set<In::enable>(spec.dcqcn);
    device->exec(in).must();
  }
  for (const DcqcnValue& v : spec.dcqcn_values) set_parameter(*device, number, v);
}

void Card::bring_up(const CardSpec& spec, const Blocks& blocks, std::uint64_t largest, unsigned sends,
                    unsigned receives) {
  device->probe();
  set_priorities(spec);
  set_congestion_control(spec);
  pd = std::make_unique<Pd>(*device);
  send_cq = std::make_unique<Cq>(*device, cq_options(sends));
  receive_cq = std::make_unique<Cq>(*device, cq_options(receives));
  source = block(blocks.out, largest);
  destination = block(blocks.in, largest);
}

// ---- All ----

std::uint64_t Cards::mac(unsigned i) { return std::uint64_t{0x02} << 40 | (i + 1); }

Cards::Cards(const Scenario& scenario, unsigned count, std::vector<unsigned> here, std::uint64_t qps,
             Coupling& coupling, const Ranks& ranks)
    : spec_(scenario.card),
      here_(std::move(here)),
      place_(count, -1),
      peers_(count),
      rates_(count),
      machine_(kMemory + here_.size() * kMemoryOfCard + qps * kMemoryOfQp, coupling) {
  for (const unsigned i : here_) {
    place_[i] = static_cast<int>(ports_.size());
    ports_.push_back(std::make_unique<CardPort>(coupling));
    try {
      machine_.add_hca(options_of(spec_of(scenario, i), i, scenario.seed), ports_.back()->sink());
    } catch (const BareError& e) {
      refuse_card(scenario, i, e.what());
    }
  }
  std::vector<std::uint64_t> rates(count);  // kb/s
  for (const unsigned i : here_)
    rates[i] = static_cast<std::uint64_t>(std::llround(function(i).parameter("port.rate_gbps") * 1e6));
  ranks.add(rates);
  for (unsigned i = 0; i < count; ++i) rates_[i] = static_cast<double>(rates[i]) * 1e-6;
}

void Cards::start(const Needs& needs, const Ranks& ranks, const std::function<void(unsigned)>& told) {
  machine_.start();
  blocks_ = {machine_.memory().allocate(kBlock, kBlock), machine_.memory().allocate(kBlock, kBlock)};
  for (const unsigned i : here_) {
    cards_.push_back(std::make_unique<Card>(machine_.function(place(i)), i));
    cards_.back()->bring_up(spec_, blocks_, needs.largest_message, needs.sends[i], needs.receives[i]);
    told(static_cast<unsigned>(cards_.size()));
  }
  for (const auto& card : cards_)
    if (!machine_.run_until([&card] { return card->active(); }, kLongestWait))
      throw BareError("card " + std::to_string(card->number) + ": its port does not come up");
  share(ranks);
}

// Each rank says what it knows of its own.
void Cards::share(const Ranks& ranks) {
  constexpr std::size_t kWords = 4;
  std::vector<std::uint64_t> words(count() * kWords);
  for (const auto& card : cards_) {
    Device& d = *card->device;
    std::uint64_t* const at = &words[card->number * kWords];
    std::memcpy(at, d.roce_entry(d.sgid_index()).gid.data(), sizeof(Gid));
    std::memcpy(at + 2, d.mac().data(), sizeof(Mac));
    at[3] = card->destination->key();
  }
  ranks.add(words);
  for (std::size_t i = 0; i < count(); ++i) {
    const std::uint64_t* const at = &words[i * kWords];
    std::memcpy(peers_[i].gid.data(), at, sizeof(Gid));
    std::memcpy(peers_[i].mac.data(), at + 2, sizeof(Mac));
    peers_[i].key = static_cast<std::uint32_t>(at[3]);
    peers_[i].address = kBlockAddress;
  }
}

Qp& Cards::add_qp(unsigned number, unsigned peer, bool receives) {
  Card& own = card(number);
  QpOptions o;
  o.log_sq = kLogSendQueue;
  o.log_rq = kLogReceiveQueue;
  o.log_rq_stride = 0;
  o.no_rq = !receives;
  auto& qp = own.qps[peer];
  qp = std::make_unique<Qp>(*own.device, *own.pd, *own.send_cq, *own.receive_cq, o);
  return *qp;
}

void Cards::connect(unsigned number, unsigned peer, std::uint32_t remote_qpn) {
  QpAttr attr;
  attr.remote_qpn = remote_qpn;
  attr.roce.dgid = peers_[peer].gid;
  attr.roce.dmac = peers_[peer].mac;
  attr.mtu = spec_.mtu;
  attr.ack_timeout = spec_.ack_timeout;
  attr.retry_count = spec_.retries;
  attr.roce.tclass = static_cast<std::uint8_t>(spec_.priority << 5);
  attr.roce.sl = static_cast<std::uint8_t>(spec_.priority);
  card(number).qps.at(peer)->connect(attr);
}

}  // namespace hcasim::fabric
