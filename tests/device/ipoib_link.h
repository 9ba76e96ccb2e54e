// SPDX-License-Identifier: BSD-3-Clause
// Queues of frames of an InfiniBand port, which send in the name of one UD QP and receive what comes to
// another.
#ifndef HCASIM_TESTS_DEVICE_IPOIB_LINK_H
#define HCASIM_TESTS_DEVICE_IPOIB_LINK_H

#include "driver/bare/ipoib.h"
#include "eth_fixture.h"

namespace hcasim::bare {

constexpr std::uint32_t kQkey = 0x0b1b, kEncapsulation = 4, kGrh = 40;
constexpr std::uint32_t kMtu = 4096;

// What IPoIB sends of a frame: its ethertype, two bytes of nothing, and what is behind.
inline Frame datagram_of(const Frame& frame) {
  Frame d = {frame[12], frame[13], 0, 0};
  d.insert(d.end(), frame.begin() + 14, frame.end());
  return d;
}
inline Frame frame_of(const std::uint8_t* datagram, std::size_t len) {
  Frame f(12);
  f.insert(f.end(), datagram, datagram + 2);
  f.insert(f.end(), datagram + kEncapsulation, datagram + len);
  return f;
}

// Two QPs of one port: the queue of the one sends to the other, whose datagrams the tables lead to an RQ.
struct IpoibLink {
  explicit IpoibLink(Device& device)
      : dev(device),
        pd(device),
        scq(device),
        rcq(device),
        tx(device.memory().allocate(kBytes)),
        rx(device.memory().allocate(kBytes)),
        txr(device, Mr::of(pd, tx)),
        rxr(device, Mr::of(pd, rx)),
        from(device),
        to(device),
        td(make_transport_domain(device)),
        tis(make_tis(device, td.number(), 0, from.qpn())),
        sq(device, pd, scq, tis.number()),
        rq(device, pd, rcq),
        tir(make_tir(device, direct())),
        table(make_flow_table(device, 4)),
        group(make_flow_group(device, table.number(), 0, 0)) {
    from.start(kQkey);
    to.start(kQkey);
    FlowRule r;
    r.table = table.number();
    r.group = group.number();
    r.to = {{FlowDest::kTir, tir.number()}};
    rule = std::make_unique<EthObject>(make_flow(device, r));
    set_flow_root(device, table.number(), kNicRxTable, to.qpn()).must();
    address.qpn = to.qpn();
    address.qkey = kQkey;
  }
  ~IpoibLink() { rule.reset(); }

  TirSpec direct() const {
    TirSpec s;
    s.rqn = rq.rqn();
    s.transport_domain = td.number();
    return s;
  }
  EthWr wr(const Frame& datagram) const {
    std::memcpy(tx.data(), datagram.data(), datagram.size());
    EthWr w;
    w.to = address;
    w.sges = {{txr.start(), txr.key(), static_cast<std::uint32_t>(datagram.size())}};
    return w;
  }
  // Room for one datagram in each of `n` WQEs.
  void post_receives(unsigned n) {
    for (unsigned i = 0; i < n; ++i) rq.post({{rxr.start() + i * kRoom, rxr.key(), kRoom}});
  }
  Frame received(unsigned i, std::uint32_t byte_cnt) const {
    return frame_of(rx.data() + i * kRoom + kGrh, byte_cnt - kGrh);
  }

  static constexpr std::size_t kBytes = 256 << 10;
  static constexpr std::uint32_t kRoom = 8192;
  Device& dev;
  Pd pd;
  Cq scq, rcq;
  Buffer tx, rx;
  Mr txr, rxr;
  IpoibQp from, to;
  EthObject td, tis;
  Sq sq;
  EthRq rq;
  EthObject tir, table, group;
  std::unique_ptr<EthObject> rule;
  Av address;
};

}  // namespace hcasim::bare
#endif
