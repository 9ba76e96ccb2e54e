// SPDX-License-Identifier: BSD-3-Clause
//
// Two RC queue pairs of one process, connected to each other, each with an arena of random bytes: what
// verbs_check.c moves its messages over. All of it ends the program when something goes wrong.
#ifndef HCASIM_TESTS_GUEST_VERBS_PAIR_H
#define HCASIM_TESTS_GUEST_VERBS_PAIR_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { kArena = 20 << 20, kDepth = 64, kGuard = 64, kSges = 4, kInline = 64 };

struct side {
  struct ibv_qp* qp;
  struct ibv_cq *send_cq, *recv_cq;
  struct ibv_mr* mr;
  uint8_t* mem;
};

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_port_attr port;
static union ibv_gid gid;
static struct side a, b;
static uint64_t seed = 1;
static const char* current = "?";

static uint64_t rnd(void) {  // xorshift64*
  seed ^= seed >> 12;
  seed ^= seed << 25;
  seed ^= seed >> 27;
  return seed * 2685821657736338717ull;
}

static uint32_t below(uint32_t n) { return n == 0 ? 0 : (uint32_t)(rnd() % n); }

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  printf("verbs_check: %s: FAILED: ", current);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  exit(1);
}

static void fill(uint8_t* to, size_t size) {
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t v = rnd();
    memcpy(to + i, &v, 8);
  }
  for (; i < size; i++) to[i] = (uint8_t)rnd();
}

static void make_side(struct side* s, uint32_t max_inline) {
  struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {kDepth, kDepth, kSges, kSges, max_inline}};
  if (s->mem == NULL) {
    s->mem = mmap(NULL, kArena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->mem == MAP_FAILED) fail("mmap: %s", strerror(errno));
    s->mr = ibv_reg_mr(
        pd, s->mem, kArena,
        IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    if (s->mr == NULL) fail("ibv_reg_mr: %s", strerror(errno));
  }
  s->send_cq = ibv_create_cq(context, 2 * kDepth, NULL, NULL, 0);
  s->recv_cq = ibv_create_cq(context, 2 * kDepth, NULL, NULL, 0);
  if (s->send_cq == NULL || s->recv_cq == NULL) fail("ibv_create_cq: %s", strerror(errno));
  init.send_cq = s->send_cq;
  init.recv_cq = s->recv_cq;
  s->qp = ibv_create_qp(pd, &init);
  if (s->qp == NULL) fail("ibv_create_qp: %s", strerror(errno));
}

static void unmake_side(struct side* s) {
  int e = ibv_destroy_qp(s->qp);
  if (e == 0) e = ibv_destroy_cq(s->send_cq);
  if (e == 0) e = ibv_destroy_cq(s->recv_cq);
  if (e != 0) fail("destroying a QP or its CQs: %s", strerror(e));
}

struct knobs {
  enum ibv_mtu mtu;
  uint8_t rnr_retry, retry, timeout, min_rnr;
};

static void connect_side(struct side* s, struct side* peer, const struct knobs* k) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT,
      .port_num = 1,
      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
  int e = ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (e != 0) fail("RST to INIT: %s", strerror(e));
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = k->mtu;
  attr.dest_qp_num = peer->qp->qp_num;
  attr.rq_psn = peer->qp->qp_num * 0x3331 & 0xffffff;  // each direction has a PSN of its own; some will wrap
  attr.max_dest_rd_atomic = 8;
  attr.min_rnr_timer = k->min_rnr;
  attr.ah_attr.dlid = port.lid;
  attr.ah_attr.port_num = 1;
  if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = gid;
    attr.ah_attr.grh.hop_limit = 1;
    attr.ah_attr.grh.sgid_index = 1;
  }
  e = ibv_modify_qp(s->qp, &attr,
                    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                        IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (e != 0) fail("INIT to RTR: %s", strerror(e));
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = s->qp->qp_num * 0x3331 & 0xffffff;
  attr.timeout = k->timeout;
  attr.retry_cnt = k->retry;
  attr.rnr_retry = k->rnr_retry;
  attr.max_rd_atomic = 8;
  e = ibv_modify_qp(s->qp, &attr,
                    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                        IBV_QP_MAX_QP_RD_ATOMIC);
  if (e != 0) fail("RTR to RTS: %s", strerror(e));
}

static const struct knobs kUsual = {IBV_MTU_1024, 7, 7, 14, 12};

static void setup(const struct knobs* k) {
  make_side(&a, kInline);
  make_side(&b, kInline);
  connect_side(&a, &b, k);
  connect_side(&b, &a, k);
}

static void teardown(void) {
  unmake_side(&a);
  unmake_side(&b);
}

static struct ibv_wc wait_cqe(struct ibv_cq* cq, const char* what) {
  struct ibv_wc wc;
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (;;) {
    int n = ibv_poll_cq(cq, 1, &wc);
    if (n < 0) fail("ibv_poll_cq");
    if (n == 1) return wc;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - start.tv_sec > 30) fail("no completion of %s within 30 s", what);
  }
}

static struct ibv_wc good_cqe(struct ibv_cq* cq, enum ibv_wc_opcode opcode, const char* what) {
  struct ibv_wc wc = wait_cqe(cq, what);
  if (wc.status != IBV_WC_SUCCESS)
    fail("%s: status %s, vendor 0x%x", what, ibv_wc_status_str(wc.status), wc.vendor_err);
  if (wc.opcode != opcode) fail("%s: CQE opcode %d, not %d", what, wc.opcode, opcode);
  return wc;
}

static void no_cqe(struct ibv_cq* cq, const char* what) {
  struct ibv_wc wc;
  if (ibv_poll_cq(cq, 1, &wc) != 0)
    fail("a CQE too many on %s: status %s", what, ibv_wc_status_str(wc.status));
}

static void status_is(struct ibv_wc wc, enum ibv_wc_status wanted, const char* what) {
  if (wc.status != wanted)
    fail("%s: status %s (vendor 0x%x), not %s", what, ibv_wc_status_str(wc.status), wc.vendor_err,
         ibv_wc_status_str(wanted));
}

// Cuts [base, base+size) into up to kSges pieces; one byte lies between two pieces, so that neighbours are
// noticed.
static int cut(struct ibv_sge* sge, uint8_t* base, uint32_t size, uint32_t lkey, int pieces) {
  uint32_t left = size;
  int n = 0;
  for (; n < pieces && left > 0; n++) {
    uint32_t part = n == pieces - 1 ? left : 1 + below(left);
    sge[n] = (struct ibv_sge){.addr = (uintptr_t)base, .length = part, .lkey = lkey};
    base += part + 1;
    left -= part;
  }
  return n;
}

static void post_send(struct side* s, struct ibv_send_wr* wr) {
  struct ibv_send_wr* bad;
  int e = ibv_post_send(s->qp, wr, &bad);
  if (e != 0) fail("ibv_post_send: %s", strerror(e));
}

static void post_recv(struct side* s, uint64_t id, struct ibv_sge* sge, int n) {
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sge, .num_sge = n}, *bad;
  int e = ibv_post_recv(s->qp, &wr, &bad);
  if (e != 0) fail("ibv_post_recv: %s", strerror(e));
}

static void gather(uint8_t* to, const struct ibv_sge* sge, int n) {
  for (int i = 0; i < n; to += sge[i].length, i++) memcpy(to, (void*)(uintptr_t)sge[i].addr, sge[i].length);
}

static void scatter(const struct ibv_sge* sge, int n, const uint8_t* from) {
  for (int i = 0; i < n; from += sge[i].length, i++)
    memcpy((void*)(uintptr_t)sge[i].addr, from, sge[i].length);
}

#endif
