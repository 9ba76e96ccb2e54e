// SPDX-License-Identifier: BSD-3-Clause
//
// What several of the programs dv_*.c begin with: memory to send from and to receive into, a CQ for each
// direction.
#ifndef HCASIM_TESTS_GUEST_DV_ENDS_H
#define HCASIM_TESTS_GUEST_DV_ENDS_H

#include "dv_common.h"

static struct region from, to;
static struct ibv_cq *send_cq, *recv_cq;

static inline void open_ends(size_t bytes) {
  open_device();
  from = make_region(bytes);
  to = make_region(bytes);
  send_cq = make_cq(128);
  recv_cq = make_cq(128);
}
static inline void close_ends(void) {
  SAME(ibv_destroy_cq(send_cq), 0);
  SAME(ibv_destroy_cq(recv_cq), 0);
  SAME(ibv_dereg_mr(from.mr), 0);
  SAME(ibv_dereg_mr(to.mr), 0);
  close_device();
}

#endif
