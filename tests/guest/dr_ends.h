// SPDX-License-Identifier: BSD-3-Clause
//
// Both ends of a cable for dr_match.c and dr_actions.c: a raw packet QP of the one HCA that sends, and two of
// the other one that receive, whose steering domain the program has to itself.
#ifndef HCASIM_TESTS_GUEST_DR_ENDS_H
#define HCASIM_TESTS_GUEST_DR_ENDS_H

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "dr_frame.h"

enum { kSlots = 64, kLimit = 60 };
enum queue { kMissed, kHit, kThird, kQueues };  // of the receiver

struct mask {  // a matcher's parameters, or a rule's
  size_t size;
  uint8_t bytes[448];
};

struct end {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq_ex* cq;
  struct ibv_mr* mr;
  struct ibv_qp* qps[kQueues];
  uint8_t* memory;
};
static struct end sender, receiver;
static struct arrival {
  enum queue queue;
  unsigned len;
  uint32_t tag;
  const uint8_t* bytes;
} arrival;
static const char* phase = "setup";
static unsigned checked;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  printf("FAILED: %s: ", phase);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  exit(1);
}

static void must(const void* p, const char* what) {
  if (p == NULL) fail("%s: %s", what, strerror(errno));
}
static void must_do(int status, const char* what) {
  if (status != 0) fail("%s: %d, %s", what, status, strerror(errno));
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct ibv_context* open_device(const char* name) {
  int n;
  struct ibv_context* context = NULL;
  struct ibv_device** list = ibv_get_device_list(&n);
  must(list, "get_device_list");
  for (int i = 0; i < n; ++i) {
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    if (strcmp(ibv_get_device_name(list[i]), name) == 0) context = mlx5dv_open_device(list[i], &attr);
  }
  must(context, name);
  ibv_free_device_list(list);
  return context;
}

static void post_receive(enum queue queue, unsigned slot) {
  struct ibv_sge sge = {.addr = (uintptr_t)receiver.memory + (queue * kSlots + slot) * kRoom,
                        .length = kRoom,
                        .lkey = receiver.mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = queue * kSlots + slot, .sg_list = &sge, .num_sge = 1}, *bad;
  must_do(ibv_post_recv(receiver.qps[queue], &wr, &bad), "post_recv");
}

static struct ibv_qp* raw_qp(struct ibv_pd* pd, struct ibv_cq_ex* cq, int receives) {
  struct ibv_qp_init_attr attr = {.send_cq = ibv_cq_ex_to_cq(cq),
                                  .recv_cq = ibv_cq_ex_to_cq(cq),
                                  .cap = {.max_send_wr = receives ? 0 : 16,
                                          .max_send_sge = receives ? 0 : 1,
                                          .max_recv_wr = receives ? kSlots : 0,
                                          .max_recv_sge = receives ? 1 : 0},
                                  .qp_type = IBV_QPT_RAW_PACKET};
  struct ibv_qp* qp = ibv_create_qp(pd, &attr);
  must(qp, "create_qp");
  struct ibv_qp_attr to = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  must_do(ibv_modify_qp(qp, &to, IBV_QP_STATE | IBV_QP_PORT), "to INIT");
  to.qp_state = IBV_QPS_RTR;
  must_do(ibv_modify_qp(qp, &to, IBV_QP_STATE), "to RTR");
  to.qp_state = IBV_QPS_RTS;
  must_do(ibv_modify_qp(qp, &to, IBV_QP_STATE), "to RTS");
  return qp;
}

static void open_ends(const char* from, const char* to) {
  struct ibv_cq_init_attr_ex attr = {.cqe = kQueues * kSlots,
                                     .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_FLOW_TAG};
  for (int end = 0; end < 2; ++end) {
    struct end* e = end ? &receiver : &sender;
    const unsigned queues = end ? kQueues : 1;
    e->context = open_device(end ? to : from);
    must(e->pd = ibv_alloc_pd(e->context), "alloc_pd");
    must(e->cq = ibv_create_cq_ex(e->context, &attr), "create_cq");
    e->memory = aligned_alloc(4096, kQueues * kSlots * kRoom);
    must(e->memory, "memory");
    must(e->mr = ibv_reg_mr(e->pd, e->memory, kQueues * kSlots * kRoom, IBV_ACCESS_LOCAL_WRITE), "reg_mr");
    for (unsigned q = 0; q < queues; ++q) e->qps[q] = raw_qp(e->pd, e->cq, end);
  }
  for (enum queue q = 0; q < kQueues; ++q)
    for (unsigned i = 0; i < kSlots; ++i) post_receive(q, i);
}

static int polled(struct ibv_cq_ex* cq, double limit) {
  struct ibv_poll_cq_attr attr = {0};
  const double end = now() + limit;
  for (;;) {
    const int e = ibv_start_poll(cq, &attr);
    if (e == 0) return 1;
    if (e != ENOENT) fail("poll: %s", strerror(e));
    if (now() > end) return 0;
  }
}

static void send_frame(const struct frame* f) {
  struct ibv_sge sge = {.addr = (uintptr_t)sender.memory, .length = f->len, .lkey = sender.mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_SEND,
                           .send_flags = IBV_SEND_SIGNALED},
                     *bad;
  memcpy(sender.memory, f->b, f->len);
  must_do(ibv_post_send(sender.qps[0], &wr, &bad), "post_send");
  if (!polled(sender.cq, kLimit)) fail("a frame was not sent");
  if (sender.cq->status != IBV_WC_SUCCESS) fail("sending: %s", ibv_wc_status_str(sender.cq->status));
  ibv_end_poll(sender.cq);
}

// The next frame that arrives, into `arrival`; its bytes are there until the next call. False: none within
// `limit` s.
static int receive(double limit) {
  static uint8_t copy[kRoom];
  if (!polled(receiver.cq, limit)) return 0;
  if (receiver.cq->status != IBV_WC_SUCCESS) fail("receiving: %s", ibv_wc_status_str(receiver.cq->status));
  const unsigned slot = (unsigned)receiver.cq->wr_id;
  arrival = (struct arrival){.queue = slot / kSlots,
                             .len = ibv_wc_read_byte_len(receiver.cq),
                             .tag = ibv_wc_read_flow_tag(receiver.cq),
                             .bytes = copy};
  memcpy(copy, receiver.memory + slot * kRoom, kRoom);
  ibv_end_poll(receiver.cq);
  post_receive(slot / kSlots, slot % kSlots);
  return 1;
}

// This frame is the next one, there, with this tag.
static void want(const struct frame* f, enum queue queue, uint32_t tag) {
  if (!receive(kLimit)) fail("the frame did not arrive");
  if (arrival.queue != queue) fail("the frame is at queue %d, not %d", arrival.queue, queue);
  if (arrival.tag != tag) fail("the frame's tag is %#x, not %#x", arrival.tag, tag);
  const unsigned len = f->len < 60 ? 60 : f->len;
  if (arrival.len != f->len && arrival.len != len)
    fail("the frame has %u bytes, not %u", arrival.len, f->len);
  for (unsigned i = 0; i < f->len; ++i)
    if (arrival.bytes[i] != f->b[i])
      fail("byte %u of the frame is %02x, not %02x", i, arrival.bytes[i], f->b[i]);
  ++checked;
}

// A rule's or a matcher's parameters: `width` bits of v at that bit of them (dr_match_param,
// fte_match_param).
static void set_bits(struct mask* m, unsigned bit, unsigned width, uint64_t v) {
  m->size = sizeof m->bytes;
  for (unsigned i = 0; i < width; ++i) {
    const uint8_t one = (uint8_t)(0x80 >> (bit + i) % 8);
    uint8_t* byte = &m->bytes[(bit + i) / 8];
    *byte = (uint8_t)(v >> (width - 1 - i) & 1 ? *byte | one : *byte & ~one);
  }
}
static struct mlx5dv_flow_match_parameters* params(const struct mask* m) {
  return (struct mlx5dv_flow_match_parameters*)(uintptr_t)m;
}
// The blocks that have something in them: match_criteria_enable.
static uint8_t criteria_of(const struct mask* m) {
  uint8_t criteria = 0;
  for (unsigned i = 0; i < sizeof m->bytes; ++i)
    if (m->bytes[i]) criteria |= (uint8_t)(1u << i / 64);
  return criteria;
}

#endif
