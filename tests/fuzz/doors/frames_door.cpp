// SPDX-License-Identifier: BSD-3-Clause
// Frames that come in at the port of a card with an RC QP in the midst of requests, a UC QP, a UD QP, and a
// queue that takes all other frames. An input is a list of frames: two bytes with the length, low one first,
// and flags in its upper bits, then the frame.
#include <cstring>

#include "card_rig.h"
#include "door.h"
#include "model/port/codec.h"
#include "tests/device/eth_fixture.h"

namespace hcasim::fuzz {
namespace {

using namespace hcasim::bare;

constexpr unsigned kLength = 0x3fff, kAsItIs = 0x4000, kLater = 0x8000;

// A QP with memory and a key.
struct Party {
  Party(Device& device, QpType type)
      : pd(device),
        cq(device),
        qp(device, pd, cq, cq, options(type)),
        memory(device.memory().allocate(64 << 10)),
        mr(device, Mr::of(pd, memory)) {}
  static QpOptions options(QpType type) {
    QpOptions o;
    o.type = type;
    return o;
  }
  Sge sge(std::size_t off, std::uint32_t len) const { return {mr.start() + off, mr.key(), len}; }
  Pd pd;
  Cq cq;
  Qp qp;
  Buffer memory;
  Mr mr;
};

// Towards this end's QP of that number.
QpAttr towards(Device& to, std::uint32_t qpn) {
  QpAttr a;
  a.remote_qpn = qpn;
  a.roce.dgid = to.roce_entry(to.sgid_index()).gid;
  a.roce.dmac = to.mac();
  a.ack_timeout = 10;
  a.mtu = 1024;
  return a;
}

class Scene {
 public:
  Scene()
      : rig_({"link=eth,mac=02:00:00:00:00:01,wire=host", "link=eth,mac=02:00:00:00:00:02,wire=host"}),
        near_(rig_.function(0), options()),
        far_(rig_.function(1), options()) {
    near_.probe();
    far_.probe();
    link_ = std::make_unique<EthLink>(near_);
    for (const QpType type : {QpType::kRc, QpType::kUc, QpType::kUd}) {
      here_.push_back(std::make_unique<Party>(near_, type));
      there_.push_back(std::make_unique<Party>(far_, type));
      here_.back()->qp.connect(towards(far_, there_.back()->qp.qpn()));
      there_.back()->qp.connect(towards(near_, here_.back()->qp.qpn()));
    }
    for (unsigned i = 0; i < 30; ++i) {
      link_->rq.post({link_->rx_sge(i * 4096, 4096)});
      for (auto& p : here_) p->qp.post_recv({p->sge(i * 1024, 2048)});
      for (auto& p : there_) p->qp.post_recv({p->sge(i * 1024, 2048)});
    }
    // Requests whose answers have not come yet.
    post(*here_[0], *there_[0], WqeOp::kRdmaRead, 3000);
    post(*here_[0], *there_[0], WqeOp::kAtomicFa, 8);
    post(*here_[0], *there_[0], WqeOp::kSend, 2500);
    post(*here_[0], *there_[0], WqeOp::kRdmaWrite, 1000);
    rig_.machine().advance(20'000);
    asked_ = rig_.function(0).take_frames();
    rig_.keep();
  }

  void take(const std::uint8_t* bytes, std::size_t len) {
    rig_.rewind();
    rig_.function(0).take_frames();
    while (len >= 2) {
      const unsigned head = bytes[0] | bytes[1] << 8u;
      const std::size_t size = std::min<std::size_t>(head & kLength, len - 2);
      std::vector<std::uint8_t> frame(bytes + 2, bytes + 2 + size);
      if ((head & kAsItIs) == 0) make_icrc(frame);
      static_cast<void>(hca_wire_rx(rig_.function(0).handle(), frame.data(), frame.size()));
      rig_.machine().advance((head & kLater) != 0 ? 40'000 : 300);
      bytes += 2 + size;
      len -= 2 + size;
    }
    rig_.machine().advance(200'000);
    rig_.check();
  }

  // What the other end sends when it means well: requests of all kinds, and answers.
  std::vector<std::string> good() {
    std::vector<std::string> all;
    const auto far_says = [&] {
      rig_.machine().advance(30'000);
      for (const auto& f : rig_.function(1).take_frames()) all.back() += as_input(f);
    };
    all.emplace_back();
    for (const auto& f : asked_) static_cast<void>(rig_.function(1).wire_receive(f));
    far_says();
    const WqeOp ops[] = {WqeOp::kSend,     WqeOp::kSendImm,  WqeOp::kRdmaWrite, WqeOp::kRdmaWriteImm,
                         WqeOp::kRdmaRead, WqeOp::kAtomicCs, WqeOp::kAtomicFa};
    for (std::size_t kind = 0; kind < 2; ++kind)
      for (const WqeOp op : ops) {
        const bool atomic = op == WqeOp::kAtomicCs || op == WqeOp::kAtomicFa;
        if (kind == 1 && (atomic || op == WqeOp::kRdmaRead)) continue;
        all.emplace_back();
        post(*there_[kind], *here_[kind], op, atomic ? 8 : 2600);
        far_says();
      }
    all.emplace_back();
    SendWr w;
    w.sges = {there_[2]->sge(0, 500)};
    w.av.qpn = here_[2]->qp.qpn();
    w.av.roce.dgid = near_.roce_entry(near_.sgid_index()).gid;
    w.av.roce.dmac = near_.mac();
    there_[2]->qp.post(w);
    far_says();
    for (const bool udp : {false, true})
      for (const bool v6 : {false, true}) {
        L4 l4;
        l4.udp = udp;
        l4.v6 = v6;
        l4.payload = 300;
        all.push_back(as_input(l4_frame(l4)));
      }
    all.push_back(as_input(plain_frame(200, 1)));
    // A MAC control frame: pause, and pause by priority.
    for (const unsigned char op : {0x01, 0x01}) {
      std::vector<std::uint8_t> f = {0x01,
                                     0x80,
                                     0xc2,
                                     0,
                                     0,
                                     1,
                                     2,
                                     0,
                                     0,
                                     0,
                                     0,
                                     2,
                                     0x88,
                                     0x08,
                                     all.size() % 2 ? op : std::uint8_t{1},
                                     static_cast<std::uint8_t>(all.size() % 2),
                                     0,
                                     0xff};
      f.resize(60);
      all.push_back(as_input(f));
    }
    return all;
  }

 private:
  static DeviceOptions options() {
    DeviceOptions o;
    o.wait_active = false;
    return o;
  }
  static void post(Party& from, const Party& to, WqeOp op, std::uint32_t len) {
    SendWr w;
    w.op = op;
    w.sges = {from.sge(32768, len)};
    w.raddr = to.mr.start() + 16384;
    w.rkey = to.mr.key();
    from.qp.post(w);
  }
  static std::string as_input(const std::vector<std::uint8_t>& frame) {
    std::string out{static_cast<char>(frame.size() & 0xff), static_cast<char>(frame.size() >> 8)};
    return out.append(frame.begin(), frame.end());
  }
  // Of a RoCE packet, so that what the input changes gets past it.
  static void make_icrc(std::vector<std::uint8_t>& frame) {
    if (frame.size() < sizeof(prm::EthHdr) || frame.size() > kMaxFrame) return;
    const PacketRef p = PacketPool::make();
    p->kind = PacketKind::kEthernet;
    p->frame_len = static_cast<std::uint16_t>(frame.size());
    p->set_head(0);
    std::memcpy(p->frame(), frame.data(), frame.size());
    decode_roce(*p, Icrc::kMade);
    std::memcpy(frame.data(), p->frame(), frame.size());
  }

  CardRig rig_;
  Device near_, far_;
  std::unique_ptr<EthLink> link_;
  std::vector<std::unique_ptr<Party>> here_, there_;
  std::vector<std::vector<std::uint8_t>> asked_;
};

Scene& scene() {
  static auto* const made = new Scene;
  return *made;
}

}  // namespace

void open_door(const std::uint8_t* bytes, std::size_t len) { scene().take(bytes, len); }

std::vector<std::string> seeds() { return scene().good(); }

}  // namespace hcasim::fuzz
