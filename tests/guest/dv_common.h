// SPDX-License-Identifier: BSD-3-Clause
//
// What the programs dv_*.c share, which use an HCA by mlx5dv as applications do: tests each in a process of
// its own (with its own environment, which libmlx5 reads when it opens a device), queue pairs, memory, fields
// of the PRM's layouts.
//   dv_NAME [--device NAME] [TEST...]
// prints a line a test; status 0 when all passed.
#ifndef HCASIM_TESTS_GUEST_DV_COMMON_H
#define HCASIM_TESTS_GUEST_DV_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_port_attr port;
static union ibv_gid gid;
static int is_eth;
static const char* device_name;
static const char* current = "?";
static uint64_t seed = 1;

__attribute__((format(printf, 1, 2), noreturn)) static inline void fail(const char* format, ...) {
  const int error = errno;
  va_list args;
  va_start(args, format);
  printf("%s: FAILED: ", current);
  vprintf(format, args);
  printf(" (last errno: %s)\n", strerror(error));
  va_end(args);
  fflush(stdout);
  _exit(1);
}
#define WANT(condition)                                                      \
  do {                                                                       \
    if (!(condition)) fail("%s:%d: not %s", __FILE__, __LINE__, #condition); \
  } while (0)
#define SAME(got, wanted)                                                                              \
  do {                                                                                                 \
    const unsigned long long got_ = (unsigned long long)(got), wanted_ = (unsigned long long)(wanted); \
    if (got_ != wanted_)                                                                               \
      fail("%s:%d: %s is 0x%llx, not 0x%llx (%s)", __FILE__, __LINE__, #got, got_, wanted_, #wanted);  \
  } while (0)

static inline uint64_t rnd(void) {  // xorshift64*
  seed ^= seed >> 12;
  seed ^= seed << 25;
  seed ^= seed >> 27;
  return seed * 2685821657736338717ull;
}

// A field of `bits` bits, `at` bits from the beginning of a layout of the PRM (bit 0 is the first byte's
// highest).
static inline void put(void* layout, unsigned at, unsigned bits, uint64_t value) {
  uint8_t* bytes = layout;
  for (unsigned i = 0; i < bits; i++) {
    const unsigned bit = at + bits - 1 - i;
    const uint8_t mask = (uint8_t)(0x80 >> bit % 8);
    bytes[bit / 8] = (uint8_t)((value >> i & 1) ? bytes[bit / 8] | mask : bytes[bit / 8] & ~mask);
  }
}
static inline uint64_t get(const void* layout, unsigned at, unsigned bits) {
  const uint8_t* bytes = layout;
  uint64_t value = 0;
  for (unsigned i = at; i < at + bits; i++) value = value << 1 | (bytes[i / 8] >> (7 - i % 8) & 1);
  return value;
}

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void open_device(void) {
  int n = 0;
  struct ibv_device **list = ibv_get_device_list(&n), *found = NULL;
  for (int i = 0; i < n; i++)
    if (device_name == NULL || strcmp(ibv_get_device_name(list[i]), device_name) == 0) {
      found = list[i];
      break;
    }
  if (found == NULL) fail("no such RDMA device");
  struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
  WANT(mlx5dv_is_supported(found));
  context = mlx5dv_open_device(found, &attr);
  if (context == NULL || ibv_query_port(context, 1, &port) != 0) fail("the device cannot be opened");
  is_eth = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  if (ibv_query_gid(context, 1, is_eth ? 1 : 0, &gid) != 0 && !is_eth)
    fail("no GID");  // without RoCE there is none
  pd = ibv_alloc_pd(context);
  if (pd == NULL) fail("ibv_alloc_pd");
}

static inline void close_device(void) {
  SAME(ibv_dealloc_pd(pd), 0);
  SAME(ibv_close_device(context), 0);
}

struct region {
  uint8_t* at;
  size_t size;
  struct ibv_mr* mr;
};
static inline struct region make_region(size_t size) {
  struct region r = {.size = size};
  r.at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (r.at == MAP_FAILED) fail("mmap");
  r.mr = ibv_reg_mr(pd, r.at, size, kAll);
  if (r.mr == NULL) fail("ibv_reg_mr");
  return r;
}
static inline void randomize(void* to, size_t size) {
  uint8_t* bytes = to;
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(rnd() >> 32);
}
static inline struct ibv_sge sge_of(const struct region* r, size_t offset, uint32_t size) {
  return (struct ibv_sge){.addr = (uintptr_t)(r->at + offset), .length = size, .lkey = r->mr->lkey};
}
static inline void same_bytes(const void* got, const void* wanted, size_t size, const char* what) {
  const uint8_t *g = got, *w = wanted;
  for (size_t i = 0; i < size; i++)
    if (g[i] != w[i]) fail("%s: byte %zu of %zu is 0x%02x, not 0x%02x", what, i, size, g[i], w[i]);
}

// --- queue pairs: to be connected to each other, by way of the port ---
static inline void address(struct ibv_ah_attr* ah) {
  ah->dlid = port.lid;
  ah->port_num = 1;
  if (is_eth) {
    ah->is_global = 1;
    ah->grh.dgid = gid;
    ah->grh.hop_limit = 1;
    ah->grh.sgid_index = 1;
  }
}
static inline void to_init(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x11223344};
  int mask = IBV_QP_STATE | IBV_QP_PORT;
  if (qp->qp_type != IBV_QPT_RAW_PACKET) mask |= IBV_QP_PKEY_INDEX;
  if (qp->qp_type == IBV_QPT_UD) mask |= IBV_QP_QKEY;
  if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_UC || qp->qp_type == IBV_QPT_XRC_RECV ||
      qp->qp_type == IBV_QPT_XRC_SEND) {
    mask |= IBV_QP_ACCESS_FLAGS;
    attr.qp_access_flags =
        qp->qp_type == IBV_QPT_UC ? IBV_ACCESS_REMOTE_WRITE : kAll & ~IBV_ACCESS_LOCAL_WRITE;
  }
  const int e = ibv_modify_qp(qp, &attr, mask);
  if (e != 0) fail("to INIT: %s", strerror(e));
}
static inline void to_rtr(struct ibv_qp* qp, uint32_t peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = peer,
                             .rq_psn = peer * 0x3331 & 0xffffff,
                             .max_dest_rd_atomic = 8,
                             .min_rnr_timer = 12};
  int mask = IBV_QP_STATE;
  if (qp->qp_type != IBV_QPT_UD && qp->qp_type != IBV_QPT_RAW_PACKET) {
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV)
      mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    address(&attr.ah_attr);
  }
  const int e = ibv_modify_qp(qp, &attr, mask);
  if (e != 0) fail("to RTR: %s", strerror(e));
}
static inline void to_rts(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                             .sq_psn = qp->qp_num * 0x3331 & 0xffffff,
                             .timeout = 14,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .max_rd_atomic = 8};
  int mask = IBV_QP_STATE;
  if (qp->qp_type != IBV_QPT_RAW_PACKET) mask |= IBV_QP_SQ_PSN;
  if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND)
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  const int e = ibv_modify_qp(qp, &attr, mask);
  if (e != 0) fail("to RTS: %s", strerror(e));
}
static inline void ready(struct ibv_qp* qp, uint32_t peer) {
  to_init(qp);
  to_rtr(qp, peer);
  to_rts(qp);
}
static inline struct ibv_qp* make_qp(enum ibv_qp_type type, struct ibv_cq* send_cq, struct ibv_cq* recv_cq,
                                     struct ibv_srq* srq) {
  struct ibv_qp_init_attr init = {
      .qp_type = type, .send_cq = send_cq, .recv_cq = recv_cq, .srq = srq, .cap = {64, 64, 4, 4, 128}};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == NULL) fail("ibv_create_qp of type %d", type);
  return qp;
}
static inline struct ibv_cq* make_cq(int cqe) {
  struct ibv_cq* cq = ibv_create_cq(context, cqe, NULL, NULL, 0);
  if (cq == NULL) fail("ibv_create_cq");
  return cq;
}
static inline struct ibv_wc wait_wc(struct ibv_cq* cq, const char* what) {
  struct ibv_wc wc;
  for (const double start = now(); now() - start < 30;) {
    const int n = ibv_poll_cq(cq, 1, &wc);
    if (n < 0) fail("ibv_poll_cq: %s", what);
    if (n == 1) return wc;
  }
  fail("no completion of %s within 30 s", what);
}
static inline struct ibv_wc good_wc(struct ibv_cq* cq, enum ibv_wc_opcode opcode, const char* what) {
  const struct ibv_wc wc = wait_wc(cq, what);
  if (wc.status != IBV_WC_SUCCESS)
    fail("%s: %s, vendor 0x%x", what, ibv_wc_status_str(wc.status), wc.vendor_err);
  if (wc.opcode != opcode) fail("%s: opcode %d, not %d", what, wc.opcode, opcode);
  return wc;
}
static inline void no_wc(struct ibv_cq* cq, const char* what) {
  struct ibv_wc wc;
  if (ibv_poll_cq(cq, 1, &wc) != 0)
    fail("a completion too many on %s: %s", what, ibv_wc_status_str(wc.status));
}
static inline void post_send(struct ibv_qp* qp, uint64_t id, enum ibv_wr_opcode opcode, struct ibv_sge sge,
                             const struct region* remote, int flags) {
  struct ibv_send_wr wr = {.wr_id = id,
                           .sg_list = &sge,
                           .num_sge = 1,
                           .opcode = opcode,
                           .send_flags = (unsigned)flags | IBV_SEND_SIGNALED},
                     *bad;
  wr.imm_data = htobe32((uint32_t)id ^ 0xabcd0000);
  if (remote != NULL) wr.wr.rdma.remote_addr = (uintptr_t)remote->at, wr.wr.rdma.rkey = remote->mr->rkey;
  const int e = ibv_post_send(qp, &wr, &bad);
  if (e != 0) fail("ibv_post_send: %s", strerror(e));
}
static inline void post_recv(struct ibv_qp* qp, uint64_t id, struct ibv_sge sge) {
  struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;
  const int e = qp->srq != NULL ? ibv_post_srq_recv(qp->srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
  if (e != 0) fail("posting a receive: %s", strerror(e));
}
static inline void readable(int fd, const char* what) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  if (poll(&p, 1, 30000) != 1 || (p.revents & POLLIN) == 0)
    fail("nothing to be read of %s within 30 s", what);
}

// One message from a to b, received and compared.
static inline void one_send(struct ibv_qp* a, struct ibv_qp* b, const struct region* from,
                            const struct region* to, uint32_t size, int flags) {
  randomize(from->at, size);
  memset(to->at, 0, size);
  const uint64_t id = rnd();
  post_recv(b, id + 1, sge_of(to, 0, size));
  post_send(a, id, IBV_WR_SEND_WITH_IMM, sge_of(from, 0, size), NULL, flags);
  SAME(good_wc(a->send_cq, IBV_WC_SEND, "a send").wr_id, id);
  const struct ibv_wc wc = good_wc(b->recv_cq, IBV_WC_RECV, "its receive");
  SAME(wc.wr_id, id + 1);
  SAME(wc.byte_len, size);
  SAME(be32toh(wc.imm_data), (uint32_t)id ^ 0xabcd0000);
  same_bytes(to->at, from->at, size, "a message");
}

// --- tests, each in a process of its own ---
struct test {
  const char* name;
  void (*run)(void);
};
static inline int run_tests(const struct test* tests, size_t n, int argc, char** argv) {
  int first = 1, failed = 0, ran = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc > 2 && strcmp(argv[1], "--device") == 0) device_name = argv[2], first = 3;
  for (size_t i = 0; i < n; i++) {
    int wanted = argc == first;
    for (int j = first; j < argc; j++) wanted |= strcmp(argv[j], tests[i].name) == 0;
    if (!wanted) continue;
    current = tests[i].name;
    const double start = now();
    fflush(stdout);
    const pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) {
      alarm(180);
      seed = 0x9e3779b97f4a7c15 + i;
      tests[i].run();
      exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) fail("waitpid");
    ran++;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      printf("%s: ok (%.1f s)\n", current, now() - start);
    else
      failed++, printf("%s: FAILED, status 0x%x (%.1f s)\n", current, status, now() - start);
  }
  if (ran == 0) printf("no such test\n"), failed = 1;
  return failed != 0;
}

#endif
