// SPDX-License-Identifier: BSD-3-Clause
// A world of IPoIB's enhanced offloads: datagrams of all kinds by queues of frames, whole, in line and as
// large sends, and the flow tables, QPs and TIS that they go by.
#include "frame_parts.h"
#include "tests/device/ipoib_link.h"
#include "world_parts.h"

namespace hcasim::bare {
namespace {

class Datagrams : public World {
 public:
  explicit Datagrams(Device& d) : device_(d), link_(std::make_unique<IpoibLink>(d)) {}
  void work(Dice& dice) override {
    if (dice.chance(5)) link_ = std::make_unique<IpoibLink>(device_);
    for (unsigned i = 0; i < 4; ++i)
      link_->rq.post({{link_->rxr.start() + posted_++ % 16 * kPlace, link_->rxr.key(), kPlace}}, i == 3);
    for (std::size_t n = 2 + dice.below(4); n > 0; --n) send(dice);
    device_.machine().advance(20'000);
    if (dice.chance(10)) lead_elsewhere(dice);
    revive(dice);
    bare::drain(link_->scq);
    drain(link_->rcq);
    query();
  }

 private:
  static constexpr std::uint32_t kPlace = 8192;
  void send(Dice& dice) {
    Frame datagram = datagram_of(dice.chance(60) ? plain_frame(60 + dice.below(1400)) : any_frame(dice));
    if (dice.chance(spoiling_)) dice.spoil(datagram.data(), datagram.size(), kEncapsulation);
    EthWr wr = link_->wr(datagram);
    wr.cs_flags = dice.chance(70) ? kAllSums & 0xc0 : dice.byte() & 0xf0;
    switch (dice.below(6)) {
      case 0:
        if (datagram.size() <= 700) wr.inline_data = datagram, wr.sges.clear();
        break;
      case 1: {
        const std::size_t most = std::min<std::size_t>(datagram.size(), 44 + dice.below(40));
        wr.op = WqeOp::kLso;
        wr.headers.assign(datagram.begin(), datagram.begin() + static_cast<std::ptrdiff_t>(most));
        wr.mss = static_cast<std::uint16_t>(200 + dice.below(5000));
        wr.sges[0].len = static_cast<std::uint32_t>(dice.below(20000));
        break;
      }
      default:
        break;
    }
    if (dice.chance(20)) {
      wr.to->grh = true;
      const auto gid = device_.gid(0);
      std::copy(gid.begin(), gid.end(), wr.to->dgid.begin());
      if (dice.chance(spoiling_)) dice.spoil(wr.to->dgid.data(), wr.to->dgid.size());
    }
    if (dice.chance(spoiling_)) wr.to->qpn = dice.chance(50) ? dice.word() & 0xffffff : link_->from.qpn();
    if (dice.chance(spoiling_)) wr.to->qkey = dice.word();
    if (dice.chance(spoiling_)) wr.to.reset();
    link_->sq.post(wr);
    if (dice.chance(20)) device_.machine().advance(3'000);
  }
  // The root of a QP's tables: another's, or none for a while.
  void lead_elsewhere(Dice& dice) {
    const std::uint32_t qpn = dice.chance(50) ? link_->from.qpn() : link_->to.qpn();
    set_flow_root(device_, link_->table.number(), kNicRxTable, qpn);
  }
  void revive(Dice& dice) {
    if (link_->sq.state() != 1) {
      link_->sq.modify(3, 0);
      link_->sq.modify(0, 1);
    }
    if (link_->rq.state() != 1) {
      link_->rq.modify(3, 0);
      link_->rq.modify(0, 1);
    }
    if (!dice.chance(10)) return;
    IpoibQp& qp = dice.chance(50) ? link_->from : link_->to;
    qp.to_reset();
    if (dice.chance(30)) device_.machine().advance(5'000);
    qp.start(kQkey);
  }
  void query() {
    Mailbox tis(prm::op::QUERY_TIS, prm::query_tis_in::bytes);
    device_.exec(tis.set<prm::query_tis_in::tisn>(link_->tis.number()), 1024);
    Mailbox qp(prm::op::QUERY_QP, prm::query_qp_in::bytes);
    device_.exec(qp.set<prm::query_qp_in::qpn>(link_->to.qpn()), 1024);
  }

  Device& device_;
  std::unique_ptr<IpoibLink> link_;
  unsigned posted_ = 0;
};

}  // namespace

std::unique_ptr<World> make_datagrams(Device& device) { return std::make_unique<Datagrams>(device); }

}  // namespace hcasim::bare
