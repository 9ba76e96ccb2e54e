// SPDX-License-Identifier: BSD-3-Clause
// Worlds of transports: RC, UC, UD, XRC, DC, tag matching.
#include "driver/bare/dct.h"
#include "driver/bare/xrq.h"
#include "world_parts.h"

namespace hcasim::bare {
namespace {

PairOptions unconnected() {
  PairOptions o;
  o.connect = false;
  return o;
}

class Connected : public World {
 public:
  explicit Connected(Device& d)
      : pair_(d, unconnected()),
        rc_(pair_.a, pair_.b),
        srq_(d, pair_.pd),
        c_(d, pair_.pd, pair_.acq, pair_.acq, typed(QpType::kUc)),
        e_(d, pair_.pd, pair_.bcq, pair_.bcq, typed(QpType::kUc), &srq_),
        uc_(c_, e_),
        ud_(d, pair_.pd, pair_.acq, pair_.bcq, typed(QpType::kUd)) {
    ud_.connect(QpAttr{});
  }
  void work(Dice& dice) override {
    for (Joined* j : {&rc_, &uc_}) {
      if (j == &rc_) j->b.post_recv({pair_.bsge(8192, 4096), pair_.bsge(20000, 16384)});
      if (srq_.free_count() > 0) srq_.post({pair_.bsge(8192, 4096)});
      for (std::size_t n = 1 + dice.below(3); n > 0; --n) {
        SendWr w = some_wr(pair_, dice);
        post(j->a, w, dice, spoiling_);
      }
      j->revive(dice);
    }
    ud_.post_recv({pair_.bsge(0, 4096)});
    SendWr w = pair_.wr(WqeOp::kSend, 0, 200);
    w.av.qpn = ud_.qpn();
    w.av.grh = dice.chance(50);
    post(ud_, w, dice, spoiling_);
    if (ud_.state() == QpState::kErr) {
      ud_.to_reset();
      ud_.connect(QpAttr{});
    }
    drain(pair_.acq);
    drain(pair_.bcq);
    srq_.query();
    pair_.acq.query();
    pair_.bmr.query();
    if (dice.chance(20)) pair_.acq.set_moderation(static_cast<unsigned>(dice.below(100)), 3);
    if (dice.chance(10)) pair_.acq.resize(9);
  }

 private:
  static QpOptions typed(QpType t) {
    QpOptions o;
    o.type = t;
    return o;
  }
  Pair pair_;
  Joined rc_;
  Srq srq_;
  Qp c_, e_;
  Joined uc_;
  Qp ud_;
};

class Xrc : public World {
 public:
  explicit Xrc(Device& d)
      : pair_(d, unconnected()),
        domain_(d),
        srq_(d, pair_.pd, srq_options()),
        a_(d, pair_.pd, pair_.acq, pair_.acq, options(), &srq_),
        b_(d, pair_.pd, pair_.bcq, pair_.bcq, target(), &srq_),
        both_(a_, b_) {}
  void work(Dice& dice) override {
    for (unsigned i = 0; i < 3 && srq_.free_count() > 0; ++i)
      srq_.release(srq_.post({pair_.bsge(4096 * i, 4096)}));
    SendWr w = some_wr(pair_, dice);
    w.xrc_srqn = srq_.srqn();
    post(a_, w, dice, spoiling_);
    both_.revive(dice);
    srq_.query();
    if (dice.chance(20)) srq_.arm_limit(2);
    drain(pair_.acq);
    drain(pair_.bcq);
  }

 private:
  SrqOptions srq_options() {
    SrqOptions o;
    o.xrcd = domain_.number();
    o.cqn = pair_.bcq.cqn();
    return o;
  }
  QpOptions options() {
    QpOptions o;
    o.type = QpType::kXrc;
    o.xrcd = domain_.number();
    return o;
  }
  QpOptions target() {
    QpOptions o = options();
    o.no_sq = true;
    return o;
  }
  Pair pair_;
  Xrcd domain_;
  Srq srq_;
  Qp a_, b_;
  Joined both_;
};

class Dc : public World {
 public:
  explicit Dc(Device& d)
      : pair_(d, unconnected()),
        srq_(d, pair_.pd),
        one_(d, pair_.pd, pair_.bcq, srq_),
        two_(d, pair_.pd, pair_.bcq, srq_),
        a_(d, pair_.pd, pair_.acq, pair_.acq, initiator(), &srq_) {
    a_.connect(attr());
  }
  void work(Dice& dice) override {
    for (unsigned i = 0; i < 3 && srq_.free_count() > 0; ++i)
      srq_.release(srq_.post({pair_.bsge(4096 * i, 4096)}));
    for (Dct* t : {&one_, &two_}) {
      SendWr w = some_wr(pair_, dice);
      w.av.qpn = t->dctn();
      w.av.dc_key = t->key();
      post(a_, w, dice, spoiling_);
    }
    two_.query();
    two_.arm();
    if (dice.chance(10) || a_.state() == QpState::kErr) {
      a_.to_reset();
      a_.connect(attr());
    }
    drain(pair_.acq);
    drain(pair_.bcq);
  }

 private:
  static QpOptions initiator() {
    QpOptions o;
    o.type = QpType::kDci;
    return o;
  }
  static QpAttr attr() {
    QpAttr a;
    a.ack_timeout = 6;
    a.retry_count = a.rnr_retry = 3;
    return a;
  }
  Pair pair_;
  Srq srq_;
  Dct one_, two_;
  Qp a_;
};

class Tags : public World {
 public:
  explicit Tags(Device& d)
      : pair_(d, unconnected()),
        cq_(d),
        queue_(d, pair_.pd, cq_),
        a_(d, pair_.pd, pair_.acq, pair_.acq),
        b_(d, pair_.pd, pair_.bcq, pair_.bcq, receiver(), &queue_.srq()),
        both_(a_, b_) {}
  void work(Dice& dice) override {
    if (queue_.srq().free_count() > 0) queue_.srq().release(queue_.srq().post({pair_.bsge(40000, 4096)}));
    list_operation(dice);
    message(dice);
    if (dice.chance(50)) message(dice);
    both_.revive(dice);
    Qp& command = queue_.command();
    if (command.state() == QpState::kErr) {
      command.to_reset();
      QpAttr attr;
      attr.remote_qpn = command.qpn();
      command.connect(attr);
    }
    queue_.srq().query();
    for (Cq* cq : {&cq_, &pair_.acq, &pair_.bcq}) drain(*cq);
  }

 private:
  static QpOptions receiver() {
    QpOptions o;
    o.no_sq = o.rendezvous = true;
    return o;
  }
  void list_operation(Dice& dice) {
    struct {
      prm::CtrlSeg ctrl;
      prm::TmSeg seg;
      prm::DataSeg data;
    } w{};
    const bool append = dice.chance(70);
    w.seg.opcode = static_cast<std::uint8_t>((append ? 1u : static_cast<unsigned>(dice.below(4))) << 4);
    w.seg.flags = dice.byte() & 0xc0;
    w.seg.index = static_cast<std::uint16_t>(dice.chance(90) ? dice.below(16) : dice.word());
    w.seg.sw_cnt = static_cast<std::uint16_t>(dice.below(4));
    w.seg.append_tag = dice.below(4);
    w.seg.append_mask = dice.chance(80) ? ~0ull : dice.any();
    w.data.byte_count = static_cast<std::uint32_t>(dice.below(8000));
    w.data.lkey = pair_.bmr.key();
    w.data.addr = pair_.bmr.start();
    post(queue_.command(), raw_wqe(w, WqeOp::kTagMatch, queue_.command()), dice, spoiling_);
  }
  void message(Dice& dice) {
    prm::Tmh h{};
    static constexpr std::array<prm::TmhOp, 2> kOps{prm::TmhOp::kEager, prm::TmhOp::kRndv};
    const prm::TmhOp op = dice.pick(kOps);
    h.opcode = static_cast<std::uint8_t>(op);
    h.tag = dice.below(4);
    prm::Rvh r{};
    r.va = pair_.amr.start() + 4096;
    r.rkey = pair_.amr.key();
    r.len = static_cast<std::uint32_t>(dice.below(20000));
    std::uint8_t* at = pair_.amem.data();
    std::memcpy(at, &h, sizeof h);
    std::memcpy(at + sizeof h, &r, sizeof r);
    if (dice.chance(spoiling_)) dice.spoil(at, sizeof h + sizeof r);
    const std::size_t len =
        op == prm::TmhOp::kRndv && dice.chance(90) ? sizeof h + sizeof r : dice.below(10000);
    post(a_, pair_.wr(WqeOp::kSend, 0, static_cast<std::uint32_t>(len)), dice, spoiling_ / 4);
  }
  Pair pair_;
  Cq cq_;
  TagQueue queue_;
  Qp a_, b_;
  Joined both_;
};

}  // namespace

std::unique_ptr<World> make_connected(Device& device) { return std::make_unique<Connected>(device); }
std::unique_ptr<World> make_xrc(Device& device) { return std::make_unique<Xrc>(device); }
std::unique_ptr<World> make_dc(Device& device) { return std::make_unique<Dc>(device); }
std::unique_ptr<World> make_tags(Device& device) { return std::make_unique<Tags>(device); }

}  // namespace hcasim::bare
