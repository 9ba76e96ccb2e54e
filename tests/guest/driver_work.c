// SPDX-License-Identifier: BSD-3-Clause
//
// Work for a driver that may be wrong, or is watched: driver_work {mrs|qp|writes|where|forked|held} [COUNT]
//   mrs  registers and deregisters COUNT memory regions (the driver posts UMR WQEs for them)
//   qp   takes COUNT RC QPs through their states, and destroys them
//   writes  posts COUNT RDMA WRITEs, one at a time, on a QP that is connected to itself
//   forked  the same in a child that fork() makes, with the device as its parent has opened it
//   held    holds COUNT RC QPs in RTS until its input ends, and prints their numbers first
//   where   prints the offset in this file of post_one(), which posts each of them, for a probe of the
//   kernel's
// What the driver refuses is said, and nothing else: status 0, but 2 when there is no HCA.
#define _DEFAULT_SOURCE  // usleep
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 64 << 10, kSeconds = 5 };

static int refused(const char* what) {
  printf("driver_work: %s: %s\n", what, strerror(errno));
  return 0;
}

static void regions(struct ibv_pd* pd, int count) {
  void* mem = aligned_alloc(4096, kBytes);
  if (!mem) exit(1);
  memset(mem, 1, kBytes);
  for (int i = 0; i < count; i++) {
    struct ibv_mr* mr = ibv_reg_mr(pd, mem, kBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!mr) {
      refused("ibv_reg_mr");
      break;
    }
    if ((errno = ibv_dereg_mr(mr)) != 0) {
      refused("ibv_dereg_mr");
      break;
    }
  }
  free(mem);
}

static int __attribute__((noinline)) post_one(struct ibv_qp* qp, struct ibv_send_wr* wr) {
  struct ibv_send_wr* bad;
  const int status = ibv_post_send(qp, wr, &bad);
  __asm__ volatile("" ::: "memory");  // no tail call: the probe wants to see it return
  return status;
}

static int writes(struct ibv_pd* pd, struct ibv_qp* qp, struct ibv_cq* cq, int count) {
  char* mem = aligned_alloc(4096, 4096);
  struct ibv_mr* mr =
      mem ? ibv_reg_mr(pd, mem, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) : NULL;
  if (!mr) return refused("ibv_reg_mr");
  for (int i = 0; i < count; i++) {
    struct ibv_sge sge = {(uintptr_t)mem, 64, mr->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.rdma.remote_addr = (uintptr_t)mem + 2048;
    wr.wr.rdma.rkey = mr->rkey;
    if ((errno = post_one(qp, &wr)) != 0) return refused("ibv_post_send");
    struct ibv_wc wc;
    int got;
    const time_t end = time(NULL) + kSeconds;
    while ((got = ibv_poll_cq(cq, 1, &wc)) == 0 && time(NULL) <= end)
      ;
    if (got == 0) {
      printf("driver_work: WRITE %d: no completion within %d s\n", i, kSeconds);
      break;
    }
    if (got < 0 || wc.status != IBV_WC_SUCCESS) {
      printf("driver_work: WRITE %d: %s\n", i, got < 0 ? "ibv_poll_cq" : ibv_wc_status_str(wc.status));
      break;
    }
    usleep(1000);
  }
  ibv_dereg_mr(mr);
  free(mem);
  return 0;
}

static void states(struct ibv_qp* qp, uint16_t lid) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  if ((errno = ibv_modify_qp(qp, &attr,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) != 0) {
    refused("to INIT");
    return;
  }
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = qp->qp_num;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.dlid = lid;
  attr.ah_attr.port_num = 1;
  if ((errno = ibv_modify_qp(qp, &attr,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) != 0) {
    refused("to RTR");
    return;
  }
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  if ((errno = ibv_modify_qp(qp, &attr,
                             IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)) != 0)
    refused("to RTS");
}

static void queues(struct ibv_context* context, struct ibv_pd* pd, int count, int posts) {
  struct ibv_port_attr port;
  if (ibv_query_port(context, 1, &port) != 0) port.lid = 1;
  for (int i = 0; i < count; i++) {
    struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    if (!cq) {
      refused("ibv_create_cq");
      return;
    }
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};
    struct ibv_qp* qp = ibv_create_qp(pd, &init);
    if (qp) {
      states(qp, port.lid);
      if (posts > 0) writes(pd, qp, cq, posts);
      if ((errno = ibv_destroy_qp(qp)) != 0) refused("ibv_destroy_qp");
    } else {
      refused("ibv_create_qp");
    }
    if ((errno = ibv_destroy_cq(cq)) != 0) refused("ibv_destroy_cq");
  }
}

/* A program that opens the device first and has its work done by a child of its own. */
static int forked(struct ibv_context* context, int count) {
  // Its doorbell record is the first one of a page from whose copy the child takes its own.
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  if (!cq) return refused("ibv_create_cq");
  const pid_t child = fork();
  if (child < 0) return refused("fork");
  if (child == 0) {
    struct ibv_pd* pd = ibv_alloc_pd(context);
    if (!pd) _exit(refused("ibv_alloc_pd"));
    queues(context, pd, 1, count);
    if ((errno = ibv_dealloc_pd(pd)) != 0) refused("ibv_dealloc_pd");
    _exit(0);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0)
    printf("driver_work: the child ended with %d\n", status);
  if ((errno = ibv_destroy_cq(cq)) != 0) refused("ibv_destroy_cq");
  return 0;
}

static void held(struct ibv_context* context, struct ibv_pd* pd, int count) {
  enum { kMost = 16 };
  struct ibv_qp* qps[kMost];
  struct ibv_port_attr port;
  struct ibv_cq* cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  if (!cq) {
    refused("ibv_create_cq");
    return;
  }
  if (ibv_query_port(context, 1, &port) != 0) port.lid = 1;
  int made = 0;
  while (made < count && made < kMost) {
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {16, 16, 1, 1, 0}};
    if (!(qps[made] = ibv_create_qp(pd, &init))) {
      refused("ibv_create_qp");
      break;
    }
    states(qps[made], port.lid);
    printf("%u\n", qps[made++]->qp_num);
  }
  while (getchar() != EOF)
    ;
  while (made > 0)
    if ((errno = ibv_destroy_qp(qps[--made])) != 0) refused("ibv_destroy_qp");
  if ((errno = ibv_destroy_cq(cq)) != 0) refused("ibv_destroy_cq");
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const int count = argc > 2 ? atoi(argv[2]) : 1;
  if (argc < 2 || strchr("mqwfh", argv[1][0]) == NULL) return 1;
  if (strcmp(argv[1], "where") == 0) {
    extern const char __executable_start;
    printf("0x%lx\n", (unsigned long)((uintptr_t)&post_one - (uintptr_t)&__executable_start));
    return 0;
  }
  int devices = 0;
  struct ibv_device** list = ibv_get_device_list(&devices);
  struct ibv_context* context = devices > 0 ? ibv_open_device(list[0]) : NULL;
  if (!context) return 2;
  if (argv[1][0] == 'f') return forked(context, count);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  if (!pd) return refused("ibv_alloc_pd");
  if (argv[1][0] == 'h')
    held(context, pd, count);
  else if (argv[1][0] == 'm')
    regions(pd, count);
  else if (argv[1][0] == 'q')
    queues(context, pd, count, 0);
  else
    queues(context, pd, 1, count);
  if ((errno = ibv_dealloc_pd(pd)) != 0) refused("ibv_dealloc_pd");
  return 0;
}
