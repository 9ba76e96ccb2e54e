// SPDX-License-Identifier: BSD-3-Clause
//
// Many objects, and many queues at once.
//   scale DEVICE objects QPS CQS MRS       creates so many of each, all alive together, looks at some,
//   destroys them scale DEVICE traffic GID-INDEX PROCESSES QPS ROUNDS
//     so many processes with so many RC QPs each ("-": paths by LID), each QP connected with its like of the
//     neighbour process; all write, read and send at once, and compare every byte. PROCESSES is even.
// Status 0: all was right.
#define _GNU_SOURCE
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int self = -1;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  printf("scale: process %d: FAILED: ", self);
  vprintf(format, args);
  printf(" (errno %d: %s)\n", errno, strerror(errno));
  fflush(stdout);
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static struct ibv_context* open_device(const char* name) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_context* context = NULL;
  for (int i = 0; list && list[i] && !context; ++i)
    if (strcmp(ibv_get_device_name(list[i]), name) == 0) context = ibv_open_device(list[i]);
  if (!context) fail("there is no device %s", name);
  ibv_free_device_list(list);
  return context;
}

static void* many(size_t count, size_t size) {
  void* p = calloc(count, size);
  if (!p) fail("no memory");
  return p;
}

// ---- objects ----

static struct ibv_qp* make_qp(struct ibv_pd* pd, struct ibv_cq* cq, unsigned depth, unsigned recvs) {
  struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
  attr.cap.max_send_wr = depth;
  attr.cap.max_recv_wr = recvs;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  return ibv_create_qp(pd, &attr);
}

static void qp_to_init(struct ibv_qp* qp) {
  struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
    fail("QP to INIT");
}

static void objects(const char* device, int qps, int cqs, int mrs) {
  struct ibv_context* context = open_device(device);
  struct ibv_device_attr limits;
  if (ibv_query_device(context, &limits)) fail("query_device");
  if (limits.max_qp < qps || limits.max_cq < cqs || limits.max_mr < mrs)
    fail("the device has %d QPs, %d CQs, %d MRs", limits.max_qp, limits.max_cq, limits.max_mr);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  if (!pd) fail("alloc_pd");
  struct ibv_cq** cq = many((size_t)cqs, sizeof *cq);
  struct ibv_qp** qp = many((size_t)qps, sizeof *qp);
  struct ibv_mr** mr = many((size_t)mrs, sizeof *mr);
  const size_t page = 4096;
  uint8_t* memory =
      mmap(NULL, 64 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");

  double start = now();
  for (int i = 0; i < cqs; ++i)
    if (!(cq[i] = ibv_create_cq(context, 1, NULL, NULL, 0))) fail("CQ %d", i);
  printf("scale: %d CQs in %.1f s\n", cqs, now() - start), start = now();
  for (int i = 0; i < qps; ++i) {
    if (!(qp[i] = make_qp(pd, cq[i % cqs], 1, 1))) fail("QP %d", i);
    qp_to_init(qp[i]);
  }
  printf("scale: %d QPs in %.1f s\n", qps, now() - start), start = now();
  for (int i = 0; i < mrs; ++i) {
    mr[i] = ibv_reg_mr(pd, memory + (size_t)(i % 64) * page, 1 + (size_t)i % page,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    if (!mr[i]) fail("MR %d", i);
  }
  printf("scale: %d MRs in %.1f s\n", mrs, now() - start), start = now();
  fflush(stdout);
  sleep(4);  // whoever measures sees them all
  // Numbers are given out once.
  uint8_t* seen = many(1u << 24, 1);
  for (int i = 0; i < qps; ++i)
    if (seen[qp[i]->qp_num]++) fail("QP number %u twice", qp[i]->qp_num);
  memset(seen, 0, 1u << 24);
  for (int i = 0; i < mrs; ++i)
    if (seen[mr[i]->rkey >> 8]++) fail("key %#x twice", mr[i]->rkey);
  free(seen);
  start = now();
  for (int i = 0; i < mrs; ++i)
    if (ibv_dereg_mr(mr[i])) fail("dereg_mr %d", i);
  for (int i = 0; i < qps; ++i)
    if (ibv_destroy_qp(qp[i])) fail("destroy_qp %d", i);
  for (int i = 0; i < cqs; ++i)
    if (ibv_destroy_cq(cq[i])) fail("destroy_cq %d", i);
  printf("scale: all destroyed in %.1f s\n", now() - start);
  if (ibv_dealloc_pd(pd) || ibv_close_device(context)) fail("close");
}

// ---- traffic ----

enum {
  kWrite = 4096,
  kRead = 2048,
  kSend = 1024,
  kSlot = 16384,
  kMostProcesses = 64,
  kMostQps = 256,
  kLimit = 200
};
// Of a QP's slot: what is sent, what is written into by the neighbour, what a read brings, what a send
// brings.
enum { kSource = 0, kTarget = 4096, kReadTo = 8192, kRecv = 12288 };

struct shared {
  atomic_int arrived[4096];  // of each barrier
  atomic_int failed;
  struct {
    uint32_t qpn[kMostQps], rkey, lid;
    uint64_t at;
    uint8_t gid[16];
  } process[kMostProcesses];
};
static struct shared* shared;
static int processes, next_barrier;

static void barrier(void) {
  const int b = next_barrier++;
  const double start = now();
  atomic_fetch_add(&shared->arrived[b], 1);
  while (atomic_load(&shared->arrived[b]) < processes) {
    if (atomic_load(&shared->failed)) exit(1);
    if (now() - start > kLimit) fail("a process did not come to barrier %d", b);
    usleep(2000);
  }
}

// What process p's QP q sends in round r.
static void fill(uint8_t* to, size_t len, int p, int q, int r) {
  uint32_t x = (uint32_t)(p * 1000003 + q * 7919 + r * 31 + 1);
  for (size_t i = 0; i < len; i += 4) {
    x = x * 1664525u + 1013904223u;
    memcpy(to + i, &x, 4);
  }
}

static void check(const uint8_t* got, size_t len, int p, int q, int r, const char* what) {
  uint8_t want[kWrite];
  fill(want, len, p, q, r);
  if (memcmp(got, want, len) != 0) fail("%s of QP %d in round %d holds wrong bytes", what, q, r);
}

static void one_process(const char* device, int gid_index, int qps, int rounds) {
  const int peer = self ^ 1;
  struct ibv_context* context = open_device(device);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  struct ibv_cq* cq = ibv_create_cq(context, qps * 8, NULL, NULL, 0);
  uint8_t* memory = mmap(NULL, (size_t)qps * kSlot, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (!pd || !cq || memory == MAP_FAILED) fail("PD, CQ, memory");
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, (size_t)qps * kSlot,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  if (!mr) fail("MR");
  struct ibv_qp** qp = many((size_t)qps, sizeof *qp);
  struct ibv_port_attr port;
  union ibv_gid gid = {0};
  if (ibv_query_port(context, 1, &port)) fail("query_port");
  if (gid_index >= 0 && ibv_query_gid(context, 1, gid_index, &gid)) fail("query_gid");
  for (int q = 0; q < qps; ++q) {
    if (!(qp[q] = make_qp(pd, cq, 8, 4))) fail("QP %d", q);
    qp_to_init(qp[q]);
    shared->process[self].qpn[q] = qp[q]->qp_num;
  }
  shared->process[self].rkey = mr->rkey;
  shared->process[self].lid = port.lid;
  shared->process[self].at = (uintptr_t)memory;
  memcpy(shared->process[self].gid, gid.raw, 16);
  barrier();
  for (int q = 0; q < qps; ++q) {
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = gid_index >= 0 ? IBV_MTU_1024 : IBV_MTU_2048};
    a.dest_qp_num = shared->process[peer].qpn[q];
    a.max_dest_rd_atomic = 4;
    a.min_rnr_timer = 12;
    a.ah_attr.port_num = 1;
    a.ah_attr.dlid = (uint16_t)shared->process[peer].lid;
    if (gid_index >= 0) {
      a.ah_attr.is_global = 1;
      memcpy(a.ah_attr.grh.dgid.raw, shared->process[peer].gid, 16);
      a.ah_attr.grh.sgid_index = (uint8_t)gid_index;
      a.ah_attr.grh.hop_limit = 64;
    }
    if (ibv_modify_qp(qp[q], &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
      fail("QP %d to RTR", q);
    struct ibv_qp_attr b = {
        .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4};
    if (ibv_modify_qp(qp[q], &b,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC))
      fail("QP %d to RTS", q);
  }
  for (int r = 0; r < rounds; ++r) {
    for (int q = 0; q < qps; ++q) {
      uint8_t* slot = memory + (size_t)q * kSlot;
      fill(slot + kSource, kWrite, self, q, r);
      memset(slot + kReadTo, 0xee, kRead);
      memset(slot + kRecv, 0xee, kSend);
      struct ibv_sge sge = {(uintptr_t)(slot + kRecv), kSend, mr->lkey};
      struct ibv_recv_wr wr = {.wr_id = (uint64_t)q << 8 | 4, .sg_list = &sge, .num_sge = 1}, *bad;
      if (ibv_post_recv(qp[q], &wr, &bad)) fail("post_recv");
    }
    barrier();  // all sources are filled, all receives posted
    for (int q = 0; q < qps; ++q) {
      uint8_t* slot = memory + (size_t)q * kSlot;
      const uint64_t there = shared->process[peer].at + (uint64_t)q * kSlot;
      struct ibv_sge sge[3] = {{(uintptr_t)(slot + kSource), kWrite, mr->lkey},
                               {(uintptr_t)(slot + kReadTo), kRead, mr->lkey},
                               {(uintptr_t)(slot + kSource), kSend, mr->lkey}};
      struct ibv_send_wr wr[3] = {0}, *bad;
      for (int i = 0; i < 3; ++i) {
        wr[i].wr_id = (uint64_t)q << 8 | (unsigned)(i + 1);
        wr[i].sg_list = &sge[i];
        wr[i].num_sge = 1;
        wr[i].send_flags = IBV_SEND_SIGNALED;
        wr[i].next = i < 2 ? &wr[i + 1] : NULL;
        wr[i].wr.rdma.rkey = shared->process[peer].rkey;
      }
      wr[0].opcode = IBV_WR_RDMA_WRITE;
      wr[0].wr.rdma.remote_addr = there + kTarget;
      wr[1].opcode = IBV_WR_RDMA_READ;
      wr[1].wr.rdma.remote_addr = there + kSource;
      wr[2].opcode = IBV_WR_SEND;
      if (ibv_post_send(qp[q], wr, &bad)) fail("post_send on QP %d", q);
    }
    const double start = now();
    for (int left = qps * 4; left > 0;) {
      struct ibv_wc wc[32];
      const int n = ibv_poll_cq(cq, 32, wc);
      if (n < 0) fail("poll_cq");
      for (int i = 0; i < n; ++i)
        if (wc[i].status != IBV_WC_SUCCESS)
          fail("round %d, QP %u, %u: %s", r, (unsigned)(wc[i].wr_id >> 8), (unsigned)(wc[i].wr_id & 0xff),
               ibv_wc_status_str(wc[i].status));
      left -= n;
      if (n == 0) {
        if (now() - start > kLimit) fail("round %d: %d completions are missing", r, left);
        usleep(500);  // there are more processes than processors
      }
    }
    barrier();  // what the neighbour wrote is here
    for (int q = 0; q < qps; ++q) {
      const uint8_t* slot = memory + (size_t)q * kSlot;
      check(slot + kTarget, kWrite, peer, q, r, "the write");
      check(slot + kReadTo, kRead, peer, q, r, "the read");
      check(slot + kRecv, kSend, peer, q, r, "the send");
    }
    barrier();  // all have looked
  }
  for (int q = 0; q < qps; ++q)
    if (ibv_destroy_qp(qp[q])) fail("destroy_qp");
  if (ibv_dereg_mr(mr) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(context))
    fail("clean up");
}

static void traffic(const char* device, int gid_index, int qps, int rounds) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail("mmap");
  const double start = now();
  fflush(stdout);
  for (int p = 0; p < processes; ++p) {
    const pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) {
      self = p;
      one_process(device, gid_index, qps, rounds);
      exit(0);
    }
  }
  int bad = 0;
  for (int p = 0; p < processes; ++p) {
    int status;
    if (wait(&status) < 0) fail("wait");
    if (status != 0) {
      bad = 1;
      atomic_store(&shared->failed, 1);
    }
  }
  if (bad) exit(1);
  printf("scale: %d processes with %d QPs each, %d rounds: %d operations right, %.1f s\n", processes, qps,
         rounds, processes * qps * rounds * 3, now() - start);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc == 6 && strcmp(argv[2], "objects") == 0) {
    objects(argv[1], atoi(argv[3]), atoi(argv[4]), atoi(argv[5]));
  } else if (argc == 7 && strcmp(argv[2], "traffic") == 0) {
    processes = atoi(argv[4]);
    const int qps = atoi(argv[5]), rounds = atoi(argv[6]);
    if (processes < 2 || processes % 2 || processes > kMostProcesses || qps < 1 || qps > kMostQps ||
        rounds > 1000)
      fail("arguments");
    traffic(argv[1], strcmp(argv[3], "-") == 0 ? -1 : atoi(argv[3]), qps, rounds);
  } else {
    printf("usage: scale DEVICE objects QPS CQS MRS | scale DEVICE traffic GID-INDEX PROCESSES QPS ROUNDS\n");
    return 2;
  }
  return 0;
}
