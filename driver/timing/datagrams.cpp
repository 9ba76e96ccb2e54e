// SPDX-License-Identifier: BSD-3-Clause
#include "driver/timing/datagrams.h"

#include <algorithm>
#include <utility>

#include "driver/timing/moderation.h"

namespace hcasim::timing {

using namespace bare;

namespace {

constexpr unsigned kOuterHeaders = 1;  // match_criteria_enable
constexpr unsigned kUdp = 17;
constexpr std::uint32_t kLargestInUsualFrame = 1500 - 28;
constexpr std::size_t kEntries = std::size_t{1} << Channel::kLogEntries;
constexpr std::size_t kCacheLine = 64;

using Outer = prm::fte_match_set_lyr_2_4;

MatchParam port_match(unsigned ethertype, unsigned protocol, unsigned port) {
  MatchParam m{};
  prm::set<Outer::ethertype>(m.data(), ethertype);
  prm::set<Outer::ip_protocol>(m.data(), protocol);
  prm::set<Outer::udp_dport>(m.data(), port);
  return m;
}

std::uint32_t frame_bytes(const Setup& s) { return std::max(60u, s.size + kUdpHeaders); }
std::size_t frame_stride(const Setup& s) {
  return (frame_bytes(s) + kCacheLine - 1) / kCacheLine * kCacheLine;
}

// What the kernel's driver asks for of completions of what it sends; a program without the kernel polls for
// them.
constexpr unsigned kSentPeriodUs = 16, kSentCount = 32;

CqOptions cq_options(unsigned period_us, unsigned max_count) {
  CqOptions o;
  o.log_size = Channel::kLogEntries;
  o.period_us = period_us;
  o.max_count = max_count;
  return o;
}

// As drivers have it of cards that can: the period begins with the CQE.
CqOptions arrived_options(const Setup& s) {
  const AdaptiveModeration adaptive;
  CqOptions o = s.adaptive ? cq_options(adaptive.level().period_us, adaptive.level().max_count)
                           : cq_options(s.cq_period, s.cq_max_count);
  o.period_from_cqe = true;
  return o;
}

CqOptions sent_options(const Setup& s) {
  return s.stack == Stack::kBypass ? cq_options(0, 0) : cq_options(kSentPeriodUs, kSentCount);
}

RqOptions rq_options() {
  RqOptions o;
  o.log_size = Channel::kLogEntries;
  return o;
}

TirSpec direct(const EthRq& rq, std::uint32_t domain) {
  TirSpec t;
  t.rqn = rq.rqn();
  t.transport_domain = domain;
  return t;
}

// The headers of a datagram without checksums, which the card adds.
void put_headers(std::uint8_t* p, const Mac& to, const Mac& from, std::uint16_t port, std::uint32_t size) {
  const auto u16 = [&](unsigned v) {
    *p++ = static_cast<std::uint8_t>(v >> 8);
    *p++ = static_cast<std::uint8_t>(v);
  };
  p = std::copy(to.begin(), to.end(), p);
  p = std::copy(from.begin(), from.end(), p);
  u16(0x0800);
  u16(0x4500), u16(28 + size), u16(0), u16(0x4000), u16(64u << 8 | kUdp), u16(0);
  for (const Mac& mac : {from, to}) u16(0x0a00), u16(mac[4] << 8u | mac[5]);  // 10.0.x.y, of the MAC's end
  u16(port), u16(port), u16(8 + size), u16(0);
}

}  // namespace

Interface::Interface(Device& device, const Setup& setup, unsigned channels)
    : device_(device),
      pd_(device),
      domain_(make_transport_domain(device)),
      tis_(make_tis(device, domain_.number())),
      table_(make_flow_table(device, log2_up(channels))),
      group_(make_flow_group(device, table_.number(), 0, (1u << log2_up(channels)) - 1, kOuterHeaders,
                             port_match(0xffff, 0xff, 0xffff))) {
  set_flow_root(device, table_.number()).must();
  if (!setup.virtuals && setup.size > kLargestInUsualFrame)
    device.set_port_mtu(setup.size + kUdpHeaders + 4).must();
}

EthObject Interface::lead(std::uint16_t port, std::uint32_t tirn) {
  FlowRule r;
  r.table = table_.number();
  r.group = group_.number();
  r.index = port - kFirstPort;
  r.value = port_match(0x0800, kUdp, port);
  r.to = {{FlowDest::kTir, tirn}};
  return make_flow(device_, r);
}

std::size_t Channel::memory_of(const Setup& s) {
  return kEntries * (2 * frame_stride(s) + 4 * kCacheLine) + (64 << 10);
}

Channel::Channel(Interface& interface, const Setup& s)
    : interface_(interface),
      bytes_(frame_bytes(s)),
      stride_(frame_stride(s)),
      cq_mod_(s.cq_mod),
      inline_(s.size <= static_cast<unsigned>(s.inline_limit)),
      blueflame_(s.stack == Stack::kBypass && s.blueflame),
      sent_cq_(interface.device(), sent_options(s)),
      arrived_cq_(interface.device(), arrived_options(s)),
      out_(interface.device().memory().allocate(kEntries * stride_)),
      in_(interface.device().memory().allocate(kEntries * stride_)),
      out_mr_(interface.device(), Mr::of(interface.pd(), out_)),
      in_mr_(interface.device(), Mr::of(interface.pd(), in_)),
      sq_(interface.device(), interface.pd(), sent_cq_, interface.tis(), kLogEntries),
      rq_(interface.device(), interface.pd(), arrived_cq_, rq_options()),
      tir_(make_tir(interface.device(), direct(rq_, interface.transport_domain()))),
      port_(interface.next_port()),
      rule_(interface.lead(port_, tir_.number())) {}

void Channel::connect(Channel& a, Channel& b) {
  const auto aim = [](const Channel& from, const Channel& to) {
    const std::uint32_t size = from.bytes_ - kUdpHeaders;
    for (std::size_t i = 0; i < kEntries; ++i)
      put_headers(from.out_.data() + i * from.stride_, to.interface_.device().mac(),
                  from.interface_.device().mac(), to.port_, size);
  };
  aim(a, b);
  aim(b, a);
}

void Channel::post(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const std::uint32_t place = posted_++;
    put(place, posted_ % cq_mod_ == 0);
  }
  if (count == 1 && blueflame_)
    sq_.ring_blueflame();
  else
    sq_.ring_doorbell();
}

void Channel::announce() {
  put(0, false);
  sq_.ring_doorbell();
}

void Channel::put(std::uint32_t place, bool signaled) {
  EthWr wr;
  wr.cs_flags = prm::EthSeg::kL3Csum | prm::EthSeg::kL4Csum;
  const std::size_t at = place % kEntries * stride_;
  if (inline_)
    wr.inline_data.assign(out_.data() + at, out_.data() + at + bytes_);
  else
    wr.sges = {{out_mr_.start() + at, out_mr_.key(), bytes_}};
  wr.signaled = signaled;
  sq_.post(wr, false);
}

void Channel::take_sent() {
  const auto c = sent_cq_.poll();
  if (c->error()) throw BareError(c->text());
}

void Channel::take_arrived() {
  const auto c = arrived_cq_.poll();
  if (c->error()) throw BareError(c->text());
  if (c->byte_cnt != bytes_)
    throw BareError("a datagram of " + std::to_string(c->byte_cnt) + " bytes arrived, not of " +
                    std::to_string(bytes_));
  rq_.post({buffer(buffers_++)}, false);
}

void Channel::post_all_buffers() {
  while (buffers_ < kEntries) rq_.post({buffer(buffers_++)}, false);
  rq_.ring_doorbell();
}

void Channel::arm() {
  sent_cq_.arm();
  arrived_cq_.arm();
}

void Channel::moderate(unsigned period_us, unsigned max_count, std::function<void()> done) {
  arrived_cq_.moderate_later(period_us, max_count, std::move(done));
}

Sge Channel::buffer(std::uint32_t index) const {
  return {in_mr_.start() + index % kEntries * stride_, in_mr_.key(), bytes_};
}

}  // namespace hcasim::timing
