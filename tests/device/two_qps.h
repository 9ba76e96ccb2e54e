// SPDX-License-Identifier: BSD-3-Clause
// Two RC QPs of one device, joined, with memory that both reach.
#ifndef HCASIM_TESTS_DEVICE_TWO_QPS_H
#define HCASIM_TESTS_DEVICE_TWO_QPS_H

#include <optional>

#include "driver/bare/qp.h"

namespace hcasim::bare {

struct TwoQps {
  explicit TwoQps(Device& d, const QpAttr& attr = {}, std::size_t bytes = 1 << 16)
      : device(d),
        pd(d),
        cq(d),
        rcq(d),
        memory(d.memory().allocate(bytes)),
        mr(d, Mr::of(pd, memory, kAllAccess)) {
    a.emplace(d, pd, cq, cq);
    b.emplace(d, pd, rcq, rcq);
    connect_pair(*a, *b, attr);
  }
  // From the memory's first half to its second one.
  SendWr wr(WqeOp op, std::uint32_t len) const {
    SendWr w;
    w.op = op;
    w.sges = {{mr.start(), mr.key(), len}};
    w.raddr = mr.start() + memory.size() / 2;
    w.rkey = mr.key();
    return w;
  }

  Device& device;
  Pd pd;
  Cq cq, rcq;
  Buffer memory;
  Mr mr;
  std::optional<Qp> a, b;  // either can be taken down alone
};

}  // namespace hcasim::bare
#endif
