// SPDX-License-Identifier: GPL-2.0-or-later
// Two cards that write, send and read, joined by a cable or by a link in ns-3 of the same latency: what
// link_test compares. Prints when completions come, and the hash of what has arrived.
//   link_run cable|ns3 TRACE [OPTIONS of the cards]
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "driver/bare/rules.h"
#include "fabric/cards.h"

namespace {

using namespace hcasim::fabric;
namespace bare = hcasim::bare;
using bare::WqeOp;

constexpr std::uint32_t kBytes = 1 << 20;

struct End {
  explicit End(bare::Device& d) : device(d), pd(d), cq(d), memory(d.memory().allocate(2 * kBytes)) {
    for (std::size_t i = 0; i < kBytes; ++i) memory.data()[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    mr = std::make_unique<bare::Mr>(d, bare::Mr::of(pd, memory));
    qp = std::make_unique<bare::Qp>(d, pd, cq, cq);
  }
  bare::SendWr wr(const End& to, WqeOp op, std::uint32_t len) const {
    bare::SendWr w;
    w.op = op;
    w.sges = {{op == WqeOp::kRdmaRead ? mr->start() + kBytes : mr->start(), mr->key(), len}};
    w.raddr = to.mr->start() + (op == WqeOp::kRdmaRead ? 0 : kBytes);
    w.rkey = to.mr->key();
    return w;
  }
  bare::Device& device;
  bare::Pd pd;
  bare::Cq cq;
  bare::Buffer memory;
  std::unique_ptr<bare::Mr> mr;
  std::unique_ptr<bare::Qp> qp;
};

void expect(bool good, const char* what) {
  if (!good) throw bare::BareError(what);
}

void run(bool ns3, const std::string& trace, const std::string& more) {
  use_turns();
  auto& coupling = *new Coupling;
  auto& machine = *new bare::Machine(std::size_t{256} << 20, coupling);
  auto* ports = new CardPort[2]{CardPort(coupling), CardPort(coupling)};
  const std::string common = "link=eth,profile=connectx5-100g-roce,trace_filter=detail" + more;
  for (unsigned i = 0; i < 2; ++i) {
    const std::string own = std::string(",name=") + "ab"[i] + ",mac=02:00:00:00:00:0" + "12"[i] +
                            ",trace=" + trace + "." + "ab"[i];
    if (ns3)
      machine.add_hca(common + own + ",wire=host", ports[i].sink());
    else
      machine.add_hca(common + own + (i == 0 ? ",cable=b" : ""));
  }
  if (ns3) {
    const double gbps = machine.function(0).parameter("port.rate_gbps");
    const auto latency = static_cast<Time>(machine.function(0).parameter("port.wire_latency_ns") * kNs);
    const Joint joint = join(ns3::CreateObject<ns3::Node>(), ns3::CreateObject<ns3::Node>(), gbps, latency);
    ports[0].join(machine.function(0), joint.a);
    ports[1].join(machine.function(1), joint.b);
  }
  machine.start();
  const bare::RuleWatch rules;
  bare::DeviceOptions options;
  options.wait_active = false;
  auto& first = *new bare::Device(machine.function(0), options);
  auto& second = *new bare::Device(machine.function(1), options);
  first.probe();
  second.probe();
  expect(machine.run_until([&] { return first.port_state() == 4 && second.port_state() == 4; }), "no link");
  auto& a = *new End(first);
  auto& b = *new End(second);
  bare::connect_pair(*a.qp, *b.qp);
  // Both links come up in their own way; from here on all is compared.
  machine.advance(50'000'000 - machine.now());
  const auto done = [&](End& end, unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      const bare::Completion c = end.cq.wait_one();
      expect(!c.error(), c.text().c_str());
      std::printf("%c %lld %u\n", &end == &a ? 'a' : 'b', static_cast<long long>(machine.now()), c.byte_cnt);
    }
  };
  for (const std::uint32_t len : {1u, 40u, 1000u, 4096u, 4097u, 100'000u, kBytes}) {
    a.qp->post(a.wr(b, WqeOp::kRdmaWrite, len));
    done(a, 1);
    a.qp->post(a.wr(b, WqeOp::kRdmaRead, len));
    done(a, 1);
  }
  for (std::uint32_t i = 0; i < 20; ++i) {  // both ways at once
    a.qp->post(a.wr(b, WqeOp::kRdmaWrite, 30'000 + 777 * i));
    b.qp->post(b.wr(a, WqeOp::kRdmaWrite, 64 + 5'555 * i));
  }
  done(a, 20);
  done(b, 20);
  for (unsigned i = 0; i < 5; ++i) {
    b.qp->post_recv({{b.mr->start() + kBytes, b.mr->key(), kBytes}});
    bare::SendWr w = a.wr(b, WqeOp::kSend, 5000 * (i + 1));
    a.qp->post(w);
  }
  done(a, 5);
  done(b, 5);
  expect(std::memcmp(a.memory.data(), b.memory.data() + kBytes, 25'000) == 0, "other bytes have arrived");
  rules.must_be_none();
  std::printf("digest %016llx\n",
              static_cast<unsigned long long>(ports[0].arrivals_hash() ^ ports[1].arrivals_hash()));
  for (unsigned i = 0; i < 2; ++i) hca_destroy(machine.function(i).handle());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    run(std::strcmp(argv[1], "ns3") == 0, argv[2], argc > 3 ? std::string(",") + argv[3] : "");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "link_run: %s\n", e.what());
    return 1;
  }
  std::fflush(stdout);
  _exit(0);  // cards live as long as the SystemC kernel
}
