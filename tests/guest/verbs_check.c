// SPDX-License-Identifier: BSD-3-Clause
//
// Runs inside a guest: moves random bytes over RC queue pairs connected to each other within this process,
// and compares every byte, the bytes around them included. Then the errors: wrong keys, wrong lengths,
// receiver not ready, flush.
//   verbs_check [--device NAME] [--seed N] [--quick] [TEST...]
// Prints a line a test; status 0 when all passed.
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verbs_pair.h"

static int quick;
static uint8_t* expected;  // what the receiving arena must hold, byte for byte

// One message of `size` bytes with the given opcode, from a to b (READ: from b to a).
static void message(enum ibv_wr_opcode opcode, uint32_t size, int use_inline) {
  struct ibv_sge local[kSges], remote[kSges];
  const int is_read = opcode == IBV_WR_RDMA_READ;
  const int is_send = opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
  const int wants_recv = is_send || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const uint32_t window = size + 2 * kGuard + 2 * kSges;
  const uint32_t off_a = below(kArena - window), off_b = below(kArena - window);
  uint8_t *at_a = a.mem + off_a + kGuard, *at_b = b.mem + off_b + kGuard;
  static uint8_t* data;
  if (data == NULL && (data = malloc(kArena)) == NULL) fail("malloc");
  fill(a.mem + off_a, window);
  fill(b.mem + off_b, window);

  const int n_local = cut(local, at_a, size, a.mr->lkey, 1 + (int)below(use_inline ? 2 : kSges));
  int n_remote = 1;
  remote[0] = (struct ibv_sge){.addr = (uintptr_t)at_b, .length = size, .lkey = b.mr->lkey};
  if (is_send) n_remote = cut(remote, at_b, size, b.mr->lkey, 1 + (int)below(kSges));

  uint8_t* target = is_read ? a.mem + off_a : b.mem + off_b;
  const uint8_t* before = target;
  memcpy(expected, before, window);
  {  // apply the message to the copy
    struct ibv_sge* to = is_read ? local : remote;
    const int n = is_read ? n_local : n_remote;
    if (is_read)
      memcpy(data, at_b, size);
    else
      gather(data, local, n_local);
    struct ibv_sge moved[kSges];
    for (int i = 0; i < n; i++) {
      moved[i] = to[i];
      moved[i].addr = (uintptr_t)(expected + (to[i].addr - (uintptr_t)target));
    }
    scatter(moved, n, data);
  }

  const uint64_t id = rnd();
  const uint32_t imm = (uint32_t)rnd();
  if (wants_recv) post_recv(&b, id ^ 1, is_send ? remote : NULL, is_send ? n_remote : 0);
  struct ibv_send_wr wr = {.wr_id = id,
                           .sg_list = local,
                           .num_sge = n_local,
                           .opcode = opcode,
                           .send_flags = IBV_SEND_SIGNALED,
                           .imm_data = imm};
  if (use_inline) wr.send_flags |= IBV_SEND_INLINE;
  if (is_send && below(2)) wr.send_flags |= IBV_SEND_SOLICITED;
  wr.wr.rdma.remote_addr = (uintptr_t)at_b;
  wr.wr.rdma.rkey = b.mr->rkey;
  post_send(&a, &wr);
  if (use_inline)  // the bytes were taken when posting
    for (int i = 0; i < n_local; i++) memset((void*)(uintptr_t)local[i].addr, 0xee, local[i].length);

  struct ibv_wc wc = good_cqe(a.send_cq,
                              is_read   ? IBV_WC_RDMA_READ
                              : is_send ? IBV_WC_SEND
                                        : IBV_WC_RDMA_WRITE,
                              "the request");
  if (wc.wr_id != id) fail("the request's CQE has another wr_id");
  if (wants_recv) {
    wc = good_cqe(b.recv_cq, is_send ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM, "the receive");
    if (wc.wr_id != (id ^ 1)) fail("the receive's CQE has another wr_id");
    if (wc.byte_len != size) fail("byte_len %u, not %u", wc.byte_len, size);
    const int with_imm = opcode != IBV_WR_SEND;
    if (!!(wc.wc_flags & IBV_WC_WITH_IMM) != with_imm || (with_imm && wc.imm_data != imm))
      fail("immediate data: flags 0x%x, 0x%x, not 0x%x", wc.wc_flags, wc.imm_data, imm);
  }
  no_cqe(b.recv_cq, "the responder's CQ");
  if (memcmp(target, expected, window) != 0) {
    uint32_t i = 0;
    while (target[i] == expected[i]) i++;
    fail("opcode %d, %u bytes, %d and %d SGEs: byte %d is 0x%02x, not 0x%02x", opcode, size, n_local,
         n_remote, (int)i - kGuard, target[i], expected[i]);
  }
}

static const uint32_t kSizes[] = {0,       1,
                                  2,       3,
                                  15,      16,
                                  17,      63,
                                  64,      65,
                                  255,     256,
                                  257,     1023,
                                  1024,    1025,
                                  2047,    2048,
                                  2049,    4095,
                                  4096,    4097,
                                  65535,   65536,
                                  65537,   (1 << 20) - 1,
                                  1 << 20, (1 << 20) + 1,
                                  8 << 20};

static void test_opcode(enum ibv_wr_opcode opcode) {
  for (enum ibv_mtu mtu = IBV_MTU_256; mtu <= IBV_MTU_4096; mtu++) {
    if (mtu > port.active_mtu) break;
    struct knobs k = kUsual;
    k.mtu = mtu;
    setup(&k);
    for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; i++) {
      if (kSizes[i] > (quick ? 70000u : mtu == IBV_MTU_4096 ? 8u << 20 : 1u << 21)) break;
      for (int n = 0; n < (kSizes[i] < 5000 ? 6 : 2); n++) message(opcode, kSizes[i], 0);
    }
    for (int i = 0; i < (quick ? 20 : 200); i++) message(opcode, below(20000), 0);
    teardown();
  }
}

static void test_send(void) { test_opcode(IBV_WR_SEND); }
static void test_send_imm(void) { test_opcode(IBV_WR_SEND_WITH_IMM); }
static void test_write(void) { test_opcode(IBV_WR_RDMA_WRITE); }
static void test_write_imm(void) { test_opcode(IBV_WR_RDMA_WRITE_WITH_IMM); }
static void test_read(void) { test_opcode(IBV_WR_RDMA_READ); }

static void test_inline(void) {
  setup(&kUsual);
  for (int i = 0; i < 300; i++) {
    message(IBV_WR_RDMA_WRITE, below(kInline + 1), 1);
    message(IBV_WR_SEND_WITH_IMM, below(kInline + 1), 1);
  }
  teardown();
}

static void test_atomic(void) {
  setup(&kUsual);
  uint64_t *result = (uint64_t*)(void*)a.mem, *target = (uint64_t*)(void*)(b.mem + 4096);
  *target = 0x1122334455667788;
  for (int i = 0; i < 500; i++) {
    const uint64_t before = *target, add = rnd(), swap = rnd(), compare = below(2) ? before : rnd();
    const int is_cas = (int)below(2);
    struct ibv_sge sge = {.addr = (uintptr_t)result, .length = 8, .lkey = a.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 5,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = is_cas ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED};
    wr.wr.atomic.remote_addr = (uintptr_t)target;
    wr.wr.atomic.rkey = b.mr->rkey;
    wr.wr.atomic.compare_add = is_cas ? compare : add;
    wr.wr.atomic.swap = swap;
    *result = 0xdeadbeef;
    post_send(&a, &wr);
    good_cqe(a.send_cq, is_cas ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD, "an atomic");
    const uint64_t after = !is_cas ? before + add : before == compare ? swap : before;
    // Both host byte order: the HCA that offers IBV_ATOMIC_HCA works on the memory's own order.
    if (*result != before)
      fail("%s returned 0x%llx, not 0x%llx", is_cas ? "CAS" : "FADD", (unsigned long long)*result,
           (unsigned long long)before);
    if (*target != after)
      fail("%s left 0x%llx, not 0x%llx", is_cas ? "CAS" : "FADD", (unsigned long long)*target,
           (unsigned long long)after);
  }
  teardown();
}

// A list of WQEs in one post, mixed opcodes, only the last signalled; order and bytes must hold. READs fenced
// by what follows.
static void test_batch(void) {
  setup(&kUsual);
  for (int round = 0; round < (quick ? 10 : 100); round++) {
    enum { kBatch = 32, kPiece = 3000 };
    struct ibv_send_wr wr[kBatch];
    struct ibv_sge sge[kBatch], recv;
    memset(wr, 0, sizeof wr);
    fill(a.mem, kBatch * kPiece);
    memset(b.mem, 0, kBatch * kPiece);
    for (int i = 0; i < kBatch; i++) {
      sge[i] = (struct ibv_sge){
          .addr = (uintptr_t)a.mem + (size_t)i * kPiece, .length = kPiece, .lkey = a.mr->lkey};
      wr[i] = (struct ibv_send_wr){.wr_id = (uint64_t)i,
                                   .sg_list = &sge[i],
                                   .num_sge = 1,
                                   .opcode = i % 3 == 0 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
                                   .next = i + 1 < kBatch ? &wr[i + 1] : NULL};
      wr[i].wr.rdma.remote_addr = (uintptr_t)b.mem + (size_t)i * kPiece;
      wr[i].wr.rdma.rkey = b.mr->rkey;
      if (i % 3 == 0 && i < kBatch - 2) {
        recv = (struct ibv_sge){
            .addr = (uintptr_t)b.mem + (size_t)i * kPiece, .length = kPiece, .lkey = b.mr->lkey};
        post_recv(&b, (uint64_t)i, &recv, 1);
      }
    }
    // Reads back what the write before it wrote; the fence holds the last one until then.
    wr[kBatch - 2].opcode = IBV_WR_RDMA_READ;
    sge[kBatch - 2].addr = (uintptr_t)a.mem + 200000;
    wr[kBatch - 2].wr.rdma.remote_addr = (uintptr_t)b.mem + (size_t)(kBatch - 4) * kPiece;
    wr[kBatch - 1].opcode = IBV_WR_RDMA_WRITE;
    sge[kBatch - 1].addr = (uintptr_t)a.mem + 200000;
    wr[kBatch - 1].send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
    post_send(&a, wr);
    struct ibv_wc wc = good_cqe(a.send_cq, IBV_WC_RDMA_WRITE, "the batch");
    if (wc.wr_id != kBatch - 1) fail("the batch's CQE has wr_id %llu", (unsigned long long)wc.wr_id);
    for (int i = 0; i < kBatch - 2; i += 3) {
      wc = good_cqe(b.recv_cq, IBV_WC_RECV, "a receive of the batch");
      if (wc.wr_id != (uint64_t)i)
        fail("receives out of order: %llu, not %d", (unsigned long long)wc.wr_id, i);
    }
    for (int i = 0; i < kBatch - 2; i++)
      if (memcmp(a.mem + i * kPiece, b.mem + i * kPiece, kPiece) != 0)
        fail("piece %d of the batch differs", i);
    if (memcmp(a.mem + (kBatch - 4) * kPiece, a.mem + 200000, kPiece) != 0)
      fail("the read went before the write that it follows");
    if (memcmp(a.mem + (kBatch - 4) * kPiece, b.mem + (kBatch - 1) * kPiece, kPiece) != 0)
      fail("the fenced write went before the read");
    no_cqe(a.send_cq, "the requester's CQ");
  }
  teardown();
}

// The receive is posted late: RNR NAK, wait, again, success.
static void test_rnr(void) {
  setup(&kUsual);
  for (int i = 0; i < 5; i++) {
    struct ibv_sge from = {.addr = (uintptr_t)a.mem, .length = 5000, .lkey = a.mr->lkey},
                   to = {.addr = (uintptr_t)b.mem, .length = 5000, .lkey = b.mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = 9, .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    fill(a.mem, 5000);
    memset(b.mem, 0, 5000);
    post_send(&a, &wr);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    no_cqe(a.send_cq, "the requester's CQ before there is a receive");
    post_recv(&b, 1, &to, 1);
    good_cqe(b.recv_cq, IBV_WC_RECV, "the late receive");
    good_cqe(a.send_cq, IBV_WC_SEND, "the send after RNR");
    if (memcmp(a.mem, b.mem, 5000) != 0) fail("bytes differ after RNR");
  }
  teardown();
}

static enum ibv_qp_state state_of(struct side* s) {
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  int e = ibv_query_qp(s->qp, &attr, IBV_QP_STATE, &init);
  if (e != 0) fail("ibv_query_qp: %s", strerror(e));
  return attr.qp_state;
}

// One failing request, a good one behind it: the first gets `wanted`, the second is flushed, the QP is in the
// error state.
static void one_error(const struct knobs* k, struct ibv_send_wr* wr, enum ibv_wc_status wanted,
                      const char* what) {
  struct ibv_sge sge = {.addr = (uintptr_t)a.mem, .length = 16, .lkey = a.mr->lkey};
  struct ibv_send_wr next = {.wr_id = 2,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED};
  (void)k;
  next.wr.rdma.remote_addr = (uintptr_t)b.mem;
  next.wr.rdma.rkey = b.mr->rkey;
  wr->wr_id = 1;
  wr->send_flags |= IBV_SEND_SIGNALED;
  wr->next = &next;
  post_send(&a, wr);
  struct ibv_wc wc = wait_cqe(a.send_cq, what);
  status_is(wc, wanted, what);
  if (wc.wr_id != 1) fail("%s: wr_id %llu", what, (unsigned long long)wc.wr_id);
  wc = wait_cqe(a.send_cq, "the request behind the failed one");
  status_is(wc, IBV_WC_WR_FLUSH_ERR, "the request behind the failed one");
  if (state_of(&a) != IBV_QPS_ERR) fail("%s: the QP's state is %d, not ERR", what, state_of(&a));
}

static void test_errors(void) {
  struct ibv_sge sge = {.length = 100}, small = {.length = 10};
  struct ibv_send_wr wr;
  struct ibv_wc wc;
#define BEGIN(op, knobs_)                                                              \
  setup(knobs_);                                                                       \
  sge = (struct ibv_sge){.addr = (uintptr_t)a.mem, .length = 100, .lkey = a.mr->lkey}; \
  wr = (struct ibv_send_wr){.sg_list = &sge, .num_sge = 1, .opcode = op};              \
  wr.wr.rdma.remote_addr = (uintptr_t)b.mem;                                           \
  wr.wr.rdma.rkey = b.mr->rkey

  BEGIN(IBV_WR_RDMA_WRITE, &kUsual);
  wr.wr.rdma.rkey ^= 0x100;
  one_error(&kUsual, &wr, IBV_WC_REM_ACCESS_ERR, "a write with a wrong rkey");
  teardown();

  BEGIN(IBV_WR_RDMA_READ, &kUsual);
  wr.wr.rdma.remote_addr = (uintptr_t)b.mem + kArena - 50;
  one_error(&kUsual, &wr, IBV_WC_REM_ACCESS_ERR, "a read past the end of the region");
  teardown();

  BEGIN(IBV_WR_RDMA_WRITE, &kUsual);
  sge.lkey ^= 0x100;
  one_error(&kUsual, &wr, IBV_WC_LOC_PROT_ERR, "a wrong lkey");
  teardown();

  BEGIN(IBV_WR_SEND, &kUsual);
  small = (struct ibv_sge){.addr = (uintptr_t)b.mem, .length = 10, .lkey = b.mr->lkey};
  post_recv(&b, 7, &small, 1);
  one_error(&kUsual, &wr, IBV_WC_REM_INV_REQ_ERR, "a send longer than the receive");
  wc = wait_cqe(b.recv_cq, "the short receive");
  status_is(wc, IBV_WC_LOC_LEN_ERR, "the short receive");
  teardown();

  struct knobs once = kUsual;
  once.rnr_retry = 1;
  once.min_rnr = 1;
  BEGIN(IBV_WR_SEND, &once);
  one_error(&once, &wr, IBV_WC_RNR_RETRY_EXC_ERR, "a send to nobody's receive");
  teardown();

  // A peer that is not there: reset it, and the timer must give up.
  once = kUsual;
  once.retry = 1;
  once.timeout = 8;  // 1 ms
  BEGIN(IBV_WR_RDMA_WRITE, &once);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
  if (ibv_modify_qp(b.qp, &attr, IBV_QP_STATE) != 0) fail("to RESET");
  one_error(&once, &wr, IBV_WC_RETRY_EXC_ERR, "a request that nobody answers");
  teardown();

  // The error state flushes receives, in order; a fresh pair then works.
  setup(&kUsual);
  for (uint64_t i = 0; i < 5; i++) post_recv(&b, i, NULL, 0);
  attr.qp_state = IBV_QPS_ERR;
  if (ibv_modify_qp(b.qp, &attr, IBV_QP_STATE) != 0) fail("to ERR");
  for (uint64_t i = 0; i < 5; i++) {
    wc = wait_cqe(b.recv_cq, "a flushed receive");
    status_is(wc, IBV_WC_WR_FLUSH_ERR, "a flushed receive");
    if (wc.wr_id != i) fail("flushed out of order");
  }
  teardown();
  setup(&kUsual);
  message(IBV_WR_SEND, 10000, 0);
  teardown();
}

// Completion events: armed, exactly one, and none when not armed.
static void test_events(void) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  if (channel == NULL) fail("ibv_create_comp_channel");
  struct ibv_cq *cq = ibv_create_cq(context, 64, &a, channel, 0), *got;
  void* cookie;
  if (cq == NULL) fail("ibv_create_cq: %s", strerror(errno));
  setup(&kUsual);
  struct ibv_qp_init_attr init = {
      .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}, .send_cq = cq, .recv_cq = cq};
  struct side c = {.qp = ibv_create_qp(pd, &init)}, d = {.qp = ibv_create_qp(pd, &init)};
  if (c.qp == NULL || d.qp == NULL) fail("ibv_create_qp");
  connect_side(&c, &d, &kUsual);
  connect_side(&d, &c, &kUsual);
  for (int i = 0; i < 50; i++) {
    struct ibv_sge sge = {.addr = (uintptr_t)a.mem, .length = 100, .lkey = a.mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)b.mem;
    wr.wr.rdma.rkey = b.mr->rkey;
    if (ibv_req_notify_cq(cq, 0) != 0) fail("ibv_req_notify_cq");
    post_send(&c, &wr);
    if (ibv_get_cq_event(channel, &got, &cookie) != 0 || got != cq || cookie != &a) fail("ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    good_cqe(cq, IBV_WC_RDMA_WRITE, "the write that raised the event");
  }
  if (ibv_destroy_cq(cq) != EBUSY) fail("a CQ in use was destroyed");
  if (ibv_destroy_qp(c.qp) != 0 || ibv_destroy_qp(d.qp) != 0 || ibv_destroy_cq(cq) != 0) fail("destroying");
  ibv_destroy_comp_channel(channel);
  teardown();
}

static const struct {
  const char* name;
  void (*run)(void);
} kTests[] = {{"send", test_send},           {"send_imm", test_send_imm}, {"write", test_write},
              {"write_imm", test_write_imm}, {"read", test_read},         {"inline", test_inline},
              {"atomic", test_atomic},       {"batch", test_batch},       {"rnr", test_rnr},
              {"errors", test_errors},       {"events", test_events}};

int main(int argc, char** argv) {
  const char* device = NULL;
  int named = 0, ran = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--device") == 0 && i + 1 < argc)
      device = argv[++i];
    else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
      seed = strtoull(argv[++i], NULL, 0) | 1;
    else if (strcmp(argv[i], "--quick") == 0)
      quick = 1;
    else
      named = named == 0 ? i : named;
  }
  current = "setup";
  int n = 0;
  struct ibv_device **list = ibv_get_device_list(&n), *found = NULL;
  for (int i = 0; i < n; i++)
    if (device == NULL || strcmp(ibv_get_device_name(list[i]), device) == 0) {
      found = list[i];
      break;
    }
  if (found == NULL) fail("no such RDMA device");
  context = ibv_open_device(found);
  if (context == NULL || ibv_query_port(context, 1, &port) != 0) fail("the device cannot be opened");
  if (port.link_layer == IBV_LINK_LAYER_ETHERNET && ibv_query_gid(context, 1, 1, &gid) != 0) fail("no GID 1");
  pd = ibv_alloc_pd(context);
  expected = malloc(kArena);
  if (pd == NULL || expected == NULL) fail("ibv_alloc_pd or malloc");
  for (size_t i = 0; i < sizeof kTests / sizeof kTests[0]; i++) {
    int wanted = named == 0;
    for (int j = named; j > 0 && j < argc; j++) wanted |= strcmp(argv[j], kTests[i].name) == 0;
    if (!wanted) continue;
    ran++;
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    current = kTests[i].name;
    kTests[i].run();
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("verbs_check: %s: ok (%.1f s)\n", current,
           (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
  }
  current = "end";
  if (ran == 0) fail("no such test");
  if (ibv_dereg_mr(a.mr) != 0 || ibv_dereg_mr(b.mr) != 0 || ibv_dealloc_pd(pd) != 0 ||
      ibv_close_device(context) != 0)
    fail("cannot give everything back");
  return 0;
}
