// SPDX-License-Identifier: BSD-3-Clause
#include "rig.h"

namespace hcasim::bare {

namespace {

CqOptions cq_options() {
  CqOptions o;
  o.log_size = 14;
  return o;
}

}  // namespace

Rig::Rig(Device& d, Device& peer, std::size_t qps, std::size_t bytes)
    : device(d),
      pd(d),
      peer_pd(peer),
      cq(d, cq_options()),
      rcq(peer, cq_options()),
      from(d.memory().allocate(bytes)),
      to(peer.memory().allocate(bytes)),
      from_mr(d, Mr::of(pd, from)),
      to_mr(peer, Mr::of(peer_pd, to)) {
  QpOptions o;
  o.log_sq = 8;
  for (std::size_t i = 0; i < qps; ++i) {
    tx.push_back(std::make_unique<Qp>(d, pd, cq, cq, o));
    rx.push_back(std::make_unique<Qp>(peer, peer_pd, rcq, rcq, o));
    QpAttr there, back;
    there.remote_qpn = rx[i]->qpn();
    there.dlid = peer.lid();
    back.remote_qpn = tx[i]->qpn();
    back.dlid = d.lid();
    tx[i]->connect(there);
    rx[i]->connect(back);
  }
}

void Rig::drain(std::size_t n, std::int64_t quantum) {
  std::size_t got = 0;
  const bool all = device.machine().run_until(
      [&] {
        got += cq.discard(static_cast<unsigned>(n - got));
        return got == n;
      },
      1'000'000'000, quantum);
  if (!all) throw BareError("completions are missing");
}

Latencies measure_latencies(Device& device) {
  Rig rig(device, 1, 64 << 10);
  Machine& m = device.machine();
  Qp &a = *rig.tx[0], &b = *rig.rx[0];
  const auto timed_until = [&](const SendWr& w, const auto& until) {
    std::int64_t best = 0;
    for (int i = 0; i < 4; ++i) {  // the last run finds all contexts cached
      m.advance(1'000'000);
      const std::int64_t t0 = m.now();
      a.post(w);
      if (!m.run_until(until)) throw BareError("completion is missing");
      best = m.now() - t0;
      m.advance(100'000);
      while (const auto c = rig.cq.poll()) {
        if (c->error()) throw BareError(c->text());
      }
      while (rig.rcq.poll()) {
      }
    }
    return best;
  };
  const auto timed = [&](const SendWr& w, Cq& cq) { return timed_until(w, [&] { return cq.ready(); }); };
  SendWr w;
  w.raddr = rig.to_mr.start();
  w.rkey = rig.to_mr.key();
  const auto local = [&](std::uint32_t len) {
    return std::vector<Sge>{{rig.from_mr.start(), rig.from_mr.key(), len}};
  };
  Latencies l;
  w.op = WqeOp::kRdmaWrite;
  w.inline_data.assign(64, 1);
  l.write64 = timed(w, rig.cq);
  const std::uint8_t* last = rig.to.data() + 63;
  rig.to.fill(0);
  l.write64_landed = timed_until(w, [&] {
    const bool landed = *last != 0;
    if (landed) rig.to.fill(0);
    return landed;
  });
  w.inline_data.clear();
  w.sges = local(4096);
  l.write4k = timed(w, rig.cq);
  w.op = WqeOp::kRdmaRead;
  w.sges = local(64);
  l.read64 = timed(w, rig.cq);
  w.sges = local(4096);
  l.read4k = timed(w, rig.cq);
  w.op = WqeOp::kAtomicFa;
  w.sges = local(8);
  l.atomic = timed(w, rig.cq);
  w.op = WqeOp::kSend;
  w.sges.clear();
  w.inline_data.assign(64, 1);
  for (int i = 0; i < 4; ++i) b.post_recv({{rig.to_mr.start(), rig.to_mr.key(), 4096}});
  l.send64 = timed(w, rig.rcq);
  return l;
}

}  // namespace hcasim::bare
