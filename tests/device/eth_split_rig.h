// SPDX-License-Identifier: BSD-3-Clause
// A receive queue that keeps headers apart from data (SHAMPO), on a port whose cable leads back to itself.
#ifndef HCASIM_TESTS_DEVICE_ETH_SPLIT_RIG_H
#define HCASIM_TESTS_DEVICE_ETH_SPLIT_RIG_H

#include <cstring>
#include <functional>
#include <memory>

#include "eth_segments.h"

namespace hcasim::bare {

namespace split {
constexpr std::uint32_t kWqe = 32 << 10, kStride = 64, kReservation = 4096, kHeader = 256, kEntries = 64;
}

struct SplitGot {
  Completion c;
  prm::SplitCqe s{};
  std::uint32_t len = 0, strides = 0;
  bool filler = false, match = false, flush = false;
};

struct SplitLink : EthLink {
  static RqOptions options(const Mr& headers) {
    RqOptions o;
    o.type = 2;
    o.log_size = 2;
    o.log_stride = 5;
    o.split = true;
    o.headers_mkey = headers.key();
    return o;
  }
  static MkeySpec from_zero(const Pd& pd, const Buffer& buffer) {
    MkeySpec spec = Mr::of(pd, buffer);
    spec.start = 0;
    return spec;
  }
  explicit SplitLink(
      Device& device, const std::function<void(RqOptions&)>& change = [](RqOptions&) {})
      : EthLink(device),
        headers(device.memory().allocate(split::kEntries * split::kHeader)),
        headers_mr(device, from_zero(pd, headers)),
        cq(device),
        queue(device, pd, cq, changed(options(headers_mr), change)) {
    TirSpec spec;
    spec.rqn = queue.rqn();
    spec.transport_domain = td.number();
    spec.lro = 3;  // such a queue is none for LRO
    split = std::make_unique<EthObject>(make_tir(device, spec));
    steer_to(split->number());
  }
  ~SplitLink() override { rule.reset(); }
  SplitLink(const SplitLink&) = delete;
  SplitLink& operator=(const SplitLink&) = delete;

  static RqOptions changed(RqOptions o, const std::function<void(RqOptions&)>& change) {
    change(o);
    return o;
  }
  void post(unsigned n) {
    for (unsigned i = 0; i < n; ++i, ++posted) queue.post({rx_sge(posted % 4 * split::kWqe, split::kWqe)});
  }
  void send_frame(const Frame& f, bool broken = false) {
    send(f, broken ? std::uint8_t{0} : std::uint8_t{prm::EthSeg::kL3Csum | prm::EthSeg::kL4Csum});
    ASSERT_FALSE(scq.wait_one().error());
  }
  void send_segment(const Segment& s) { send_frame(segment_frame(s)); }
  SplitGot get() {
    SplitGot g;
    g.c = cq.wait_one();
    std::memcpy(&g.s, g.c.raw.merge, sizeof g.s);
    g.filler = g.c.byte_cnt >> 31 != 0;
    g.strides = g.c.byte_cnt >> 16 & 0x7fff;
    g.len = g.c.byte_cnt & 0xffff;
    g.match = (g.s.flags & prm::SplitCqe::kMatch) != 0;
    g.flush = (g.s.flags & prm::SplitCqe::kFlush) != 0;
    return g;
  }
  // Headers and data together, as the frame was.
  Frame frame(const SplitGot& g) const {
    Frame f(headers.data() + g.s.header_entry_index * split::kHeader,
            headers.data() + g.s.header_entry_index * split::kHeader + g.s.header_size);
    const Frame data = received(g.c.raw.wqe_id % 4 * split::kWqe + g.s.data_offset, g.len - g.s.header_size);
    f.insert(f.end(), data.begin(), data.end());
    return f;
  }

  Buffer headers;
  Mr headers_mr;
  Cq cq;
  EthRq queue;
  unsigned posted = 0;
  std::unique_ptr<EthObject> split;
};

}  // namespace hcasim::bare
#endif
