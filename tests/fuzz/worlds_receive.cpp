// SPDX-License-Identifier: BSD-3-Clause
// Worlds of receive queues: of all types, with LRO, compressed CQEs, tags and FCS kept or not; and with
// headers apart from data.
#include "frame_parts.h"
#include "tests/device/eth_segments.h"
#include "world_parts.h"

namespace hcasim::bare {
namespace {

using prm::MiniFormat;

// TCP connections, of which a segment follows the last one in most cases.
class Streams {
 public:
  Frame next(Dice& dice) {
    Segment& s = of_[dice.below(of_.size())];
    const std::uint8_t how = dice.byte();
    s.sport = static_cast<std::uint16_t>(4000 + (&s - of_.data()));
    s.v6 = &s - of_.data() >= 2;
    s.len = static_cast<unsigned>(how % 16 == 0 ? dice.below(9) : 100 + dice.below(1200));
    s.flags = how % 64 == 1 ? dice.byte() : how % 16 == 2 ? kAck | kPsh : kAck;
    if (how % 64 == 3) s.seq += static_cast<std::uint32_t>(dice.below(2000));
    if (how % 64 == 4) s.tos = s.tos ^ 1;
    if (how % 64 == 5) s.hops = dice.byte();
    if (how % 128 == 6) s.timestamp = s.timestamp != 0 ? 0 : 77;
    if (how % 64 == 7) s.ack = dice.word();
    if (how % 64 == 8) s.window = dice.byte();
    Frame f = segment_frame(s);
    s.seq += s.len;
    if (how % 64 == 9) put_tag(f, 0x8100, 5);
    if (how % 64 == 10) f[f.size() > 30 ? 14 : 0] ^= 2;  // IP options
    return f;
  }

 private:
  std::array<Segment, 4> of_{};
};

class Receiving : public World {
 public:
  explicit Receiving(Device& d) : device_(d) { renew({}, {}, 0); }
  ~Receiving() override { link_->rule.reset(); }
  void work(Dice& dice) override {
    if (dice.chance(20)) choose(dice);
    EthLink& l = *link_;
    for (unsigned i = 0; i < 2; ++i) l.rq.post({l.rx_sge(posted_++ % 4 * kWqe, kWqe)}, i == 1);
    for (std::size_t n = 3 + dice.below(8); n > 0; --n) {
      Frame f = dice.chance(70) ? streams_.next(dice) : dice.chance(50) ? plain_frame(100) : any_frame(dice);
      if (dice.chance(spoiling_)) dice.spoil(f.data(), f.size(), 12);
      if (dice.chance(10))
        send_somehow(l, f, dice);
      else
        l.send(f, dice.chance(95) ? kAllSums & 0xc0 : 0);
      if (dice.chance(10)) device_.machine().advance(3'000);
    }
    device_.machine().advance(20'000);
    revive(l);
    if (dice.chance(10)) l.rcq.resize(7);
    if (dice.chance(10)) l.rcq.set_moderation(dice.byte() & 15, 4);
    bare::drain(l.scq);
    drain(l.rcq, [](const Completion& c) { return c.raw.srqn_uidx >> 24 > 1; });  // merged
    query(dice);
  }

 private:
  static constexpr std::uint32_t kWqe = 32 << 10;
  void choose(Dice& dice) {
    RqOptions o;
    o.type = static_cast<unsigned>(1 + dice.below(3));
    o.log_size = o.type == 1 ? 5 : 2;
    o.log_stride = o.type == 1 ? 4 : 5;
    const std::uint8_t how = dice.byte();
    o.keep_vlan = (how & 1) != 0;
    o.scatter_fcs = (how & 2) != 0;
    o.two_byte_shift = o.type != 1 && (how & 4) != 0;
    o.log_stride_size = (how & 8) != 0 ? 6 : 8;
    o.log_strides = (how & 8) != 0 ? 9 : 7 + (how >> 4 & 1);
    CqOptions cq;
    const std::uint8_t format = dice.byte();
    static constexpr std::array<MiniFormat, 3> kFormats{MiniFormat::kHash, MiniFormat::kChecksum,
                                                        MiniFormat::kChecksumStride};
    if (format % 4 != 3) cq.compress = kFormats[format % 4];
    cq.cqe_size = (format & 4) != 0 ? 128 : 64;
    cq.log_size = 6;
    renew(o, cq, dice.chance(70) ? 1 + static_cast<unsigned>(dice.below(3)) : 0);
  }
  void renew(const RqOptions& o, const CqOptions& cq, unsigned lro) {
    if (link_) link_->rule.reset();
    merging_.reset();
    link_.reset();
    posted_ = 0;
    const auto make = [&](const RqOptions& rq) { link_ = std::make_unique<EthLink>(device_, rq, cq); };
    try {
      make(o);
    } catch (const BareError&) {  // not of this card
      make({});
    }
    if (lro == 0) return;
    spec_ = {};
    spec_.rqn = link_->rq.rqn();
    spec_.transport_domain = link_->td.number();
    spec_.lro = lro;
    try {
      merging_ = std::make_unique<EthObject>(make_tir(device_, spec_));
      link_->steer_to(merging_->number());
    } catch (const BareError&) {
    }
  }
  void query(Dice& dice) {
    using In = prm::query_rq_in;
    Mailbox rq(prm::op::QUERY_RQ, In::bytes);
    device_.exec(rq.set<In::rqn>(link_->rq.rqn()), 1024);
    if (!merging_) return;
    if (dice.chance(20)) {
      spec_.lro = dice.byte() & 3;
      spec_.lro_period_us = 8u << (dice.byte() & 7);
      spec_.lro_max = dice.byte();
      set_lro(device_, merging_->number(), spec_);
    }
    Mailbox tir(prm::op::QUERY_TIR, prm::query_tir_in::bytes);
    device_.exec(tir.set<prm::query_tir_in::tirn>(merging_->number()), 1024);
  }

  Device& device_;
  std::unique_ptr<EthLink> link_;
  std::unique_ptr<EthObject> merging_;
  TirSpec spec_;
  Streams streams_;
  unsigned posted_ = 0;
};

// SHAMPO.
class Splitting : public World {
 public:
  explicit Splitting(Device& d)
      : link_(d),
        headers_(d.memory().allocate(kEntries * kHeader)),
        headers_mr_(d, from_zero(link_.pd, headers_)),
        cq_(d) {
    renew(options());
  }
  ~Splitting() override {
    link_.rule.reset();
    split_.reset();
    queue_.reset();
  }
  void work(Dice& dice) override {
    if (dice.chance(15)) {
      RqOptions o = options();
      o.match = dice.byte() & 3;
      o.align = dice.byte() & 3;
      o.timeout_us = 8u << (dice.byte() & 7);
      o.log_frames = dice.byte() & 7;
      o.log_reservation = 12 + (dice.byte() & 3);
      o.log_header = 6 + (dice.byte() & 3);
      renew(o);
    }
    queue_->post({link_.rx_sge(posted_++ % 4 * kWqe, kWqe)});
    for (std::size_t n = 3 + dice.below(6); n > 0; --n) {
      Frame f = dice.chance(85) ? streams_.next(dice) : any_frame(dice);
      if (dice.chance(spoiling_)) dice.spoil(f.data(), f.size(), 12);
      link_.send(f, dice.chance(95) ? kAllSums & 0xc0 : 0);
    }
    link_.dev.machine().advance(dice.chance(20) ? 2'000'000 : 20'000);
    if (queue_->state() != 1) {
      queue_->modify(3, 0);
      queue_->modify(0, 1);
    }
    revive(link_);
    bare::drain(link_.scq);
    drain(cq_);
    using In = prm::query_rq_in;
    Mailbox rq(prm::op::QUERY_RQ, In::bytes);
    link_.dev.exec(rq.set<In::rqn>(queue_->rqn()), 1024);
  }

 private:
  static constexpr std::uint32_t kWqe = 32 << 10, kHeader = 256, kEntries = 64;
  static MkeySpec from_zero(const Pd& pd, const Buffer& buffer) {
    MkeySpec spec = Mr::of(pd, buffer);
    spec.start = 0;
    return spec;
  }
  RqOptions options() const {
    RqOptions o;
    o.type = 2, o.log_size = 2, o.log_stride = 5;
    o.split = true;
    o.headers_mkey = headers_mr_.key();
    return o;
  }
  void renew(const RqOptions& o) {
    link_.rule.reset();
    split_.reset();
    queue_.reset();
    try {
      queue_ = std::make_unique<EthRq>(link_.dev, link_.pd, cq_, o);
    } catch (const BareError&) {  // no such queue
      queue_ = std::make_unique<EthRq>(link_.dev, link_.pd, cq_, options());
    }
    TirSpec spec;
    spec.rqn = queue_->rqn();
    spec.transport_domain = link_.td.number();
    spec.lro = 3;
    split_ = std::make_unique<EthObject>(make_tir(link_.dev, spec));
    link_.steer_to(split_->number());
  }

  EthLink link_;
  Buffer headers_;
  Mr headers_mr_;
  Cq cq_;
  std::unique_ptr<EthRq> queue_;
  std::unique_ptr<EthObject> split_;
  Streams streams_;
  unsigned posted_ = 0;
};

}  // namespace

std::unique_ptr<World> make_receiving(Device& device) { return std::make_unique<Receiving>(device); }
std::unique_ptr<World> make_splitting(Device& device) { return std::make_unique<Splitting>(device); }

}  // namespace hcasim::bare
