// SPDX-License-Identifier: BSD-3-Clause
// The program of both examples, and the platform that it runs on: a CPU, a memory behind a bus, two cards
// back to back.
#ifndef HCASIM_EXAMPLES_RDMA_WRITE_H
#define HCASIM_EXAMPLES_RDMA_WRITE_H

#include <cstdio>
#include <string>

#include "driver/bare/qp.h"
#include "platform.h"

namespace example {

class Platform : public sc_module {
 public:
  Platform(const sc_module_name& name, const std::string& options)
      : sc_module(name),
        cpu("cpu"),
        bus("bus", sc_time(10, SC_NS)),
        memory("memory", cpu.machine.memory(), sc_time(60, SC_NS)),
        left("left", hcasim::sc::HcaConfig{options}),
        right("right", hcasim::sc::HcaConfig{options}) {
    cpu.bus.bind(bus.in);
    bus.memory.bind(memory.socket);
    bus.interrupts.bind(cpu.interrupts);
    for (unsigned i = 0; i < kCards; ++i) {
      hcasim::sc::HcaModule& card = i == 0 ? left : right;
      cpu.config[i].bind(card.config);
      bus.cards[i].bind(card.bar);
      card.dma.bind(bus.in);
    }
    left.wire_out.bind(right.wire_in);
    right.wire_out.bind(left.wire_in);
  }
  Cpu cpu;
  Bus bus;
  Memory memory;
  hcasim::sc::HcaModule left, right;
};

// One end of the connection.
struct End {
  explicit End(bare::Function& function) : device(function, options()) { device.probe(); }
  static bare::DeviceOptions options() {
    bare::DeviceOptions o;
    o.wait_active = false;  // not before the other end is there too
    return o;
  }
  void make_objects() {
    pd = std::make_unique<bare::Pd>(device);
    cq = std::make_unique<bare::Cq>(device);
    qp = std::make_unique<bare::Qp>(device, *pd, *cq, *cq);
    buffer = device.memory().allocate(kBytes);
    mr = std::make_unique<bare::Mr>(device, bare::Mr::of(*pd, buffer));
  }
  void connect(const End& peer) {
    bare::QpAttr attr;
    attr.remote_qpn = peer.qp->qpn();
    attr.roce.dgid = peer.device.roce_entry(peer.device.sgid_index()).gid;
    attr.roce.dmac = peer.device.mac();
    qp->connect(attr);
  }
  static constexpr std::uint32_t kBytes = 256 << 10;
  bare::Device device;
  std::unique_ptr<bare::Pd> pd;
  std::unique_ptr<bare::Cq> cq;
  std::unique_ptr<bare::Qp> qp;
  bare::Buffer buffer;
  std::unique_ptr<bare::Mr> mr;
};

// Brings both cards up, writes a buffer of the left one's into one of the right one's, and compares. Returns
// the number of bytes that differ, or ~0u if the cards did not do it. took: ns from doorbell to both
// completions.
inline unsigned rdma_write(Cpu& cpu, std::int64_t* took = nullptr) {
  End from(cpu.machine.function(0)), to(cpu.machine.function(1));
  if (!cpu.machine.run_until([&] { return from.device.port_state() == 4 && to.device.port_state() == 4; },
                             1'000'000'000))
    return ~0u;
  from.make_objects();
  to.make_objects();
  from.connect(to);
  to.connect(from);
  for (std::uint32_t i = 0; i < End::kBytes; ++i)
    from.buffer.data()[i] = static_cast<std::uint8_t>(i * 7 + i / 253);
  bare::SendWr wr;
  wr.op = bare::WqeOp::kRdmaWriteImm;
  wr.sges = {{from.mr->start(), from.mr->key(), End::kBytes}};
  wr.raddr = to.mr->start();
  wr.rkey = to.mr->key();
  to.qp->post_recv({});
  const std::int64_t start = cpu.machine.now();
  from.qp->post(wr);
  for (const bare::Completion& done : {to.cq->wait_one(), from.cq->wait_one()}) {
    if (!done.error()) continue;
    std::printf("completion with error: %s\n", done.text().c_str());
    return ~0u;
  }
  const std::int64_t ns = cpu.machine.now() - start;
  std::printf("RDMA WRITE of %u bytes: %lld ns from doorbell to both completions\n", End::kBytes,
              static_cast<long long>(ns));
  if (took) *took = ns;
  unsigned wrong = 0;
  for (std::uint32_t i = 0; i < End::kBytes; ++i) wrong += to.buffer.data()[i] != from.buffer.data()[i];
  return wrong;
}

}  // namespace example
#endif
