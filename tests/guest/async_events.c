// SPDX-License-Identifier: BSD-3-Clause
//
// Runs inside a guest: brings about each affiliated asynchronous event of CQs, QPs and SRQs and sees that it
// comes, once, for the object that it is about. "SQ drained" is
// not among them: mlx5_ib knows no way into SQD.
//   async_events [--device NAME] [--gid-index N] [--victim yes]
// Prints a line an event; status 0 when all came. With --victim it writes, and writes, until something goes
// wrong that is done to it from outside: it prints which objects and addresses it uses, then what it sees.
#define _GNU_SOURCE
#include <dlfcn.h>
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
#include <time.h>
#include <unistd.h>

enum { kBytes = 4096, kDepth = 16 };

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_mr* mr;
static struct ibv_port_attr port;
static union ibv_gid gid;
static int gid_index = 1;
static char memory[2 * kBytes];
static const char* current = "?";

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  printf("async_events: %s: FAILED: ", current);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  exit(1);
}

static void check(int status, const char* what) {
  if (status != 0) fail("%s: %s", what, strerror(status));
}

// Two connected QPs; the second receives, from an SRQ if there is one.
struct pair {
  struct ibv_cq *cq, *rcq;
  struct ibv_srq* srq;
  struct ibv_qp *a, *b;
};

struct shape {
  int cqe, srq, rtr_only;
  unsigned access;
};

static struct ibv_qp* make_qp(struct ibv_cq* cq, struct ibv_srq* srq) {
  struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
                                  .send_cq = cq,
                                  .recv_cq = cq,
                                  .srq = srq,
                                  .cap = {.max_send_wr = kDepth,
                                          .max_recv_wr = srq != NULL ? 0 : kDepth,
                                          .max_send_sge = 1,
                                          .max_recv_sge = srq != NULL ? 0 : 1}};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == NULL) fail("ibv_create_qp: %s", strerror(errno));
  return qp;
}

static void connect_qp(struct ibv_qp* qp, uint32_t peer, unsigned access, int rts) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};
  check(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        "to INIT");
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = peer;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.dlid = port.lid;
  attr.ah_attr.port_num = 1;
  if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = gid;
    attr.ah_attr.grh.hop_limit = 1;
    attr.ah_attr.grh.sgid_index = (uint8_t)gid_index;
  }
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
        "to RTR");
  if (!rts) return;
  memset(&attr, 0, sizeof attr);
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.max_rd_atomic = 1;
  check(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC),
        "to RTS");
}

static struct pair make(struct shape s) {
  struct pair p = {0};
  p.cq = ibv_create_cq(context, s.cqe != 0 ? s.cqe : 2 * kDepth, NULL, NULL, 0);
  p.rcq = ibv_create_cq(context, 2 * kDepth, NULL, NULL, 0);
  if (p.cq == NULL || p.rcq == NULL) fail("ibv_create_cq: %s", strerror(errno));
  if (s.srq) {
    struct ibv_srq_init_attr init = {.attr = {.max_wr = kDepth, .max_sge = 1}};
    p.srq = ibv_create_srq(pd, &init);
    if (p.srq == NULL) fail("ibv_create_srq: %s", strerror(errno));
  }
  p.a = make_qp(p.cq, NULL);
  p.b = make_qp(p.rcq, p.srq);
  connect_qp(p.a, p.b->qp_num, s.access, 1);
  connect_qp(p.b, p.a->qp_num, s.access, !s.rtr_only);
  return p;
}

static void unmake(struct pair* p) {
  check(ibv_destroy_qp(p->a), "ibv_destroy_qp");
  check(ibv_destroy_qp(p->b), "ibv_destroy_qp");
  if (p->srq != NULL) check(ibv_destroy_srq(p->srq), "ibv_destroy_srq");
  check(ibv_destroy_cq(p->cq), "ibv_destroy_cq");
  check(ibv_destroy_cq(p->rcq), "ibv_destroy_cq");
}

static void post_recv(struct pair* p) {
  struct ibv_sge sge = {(uintptr_t)memory + kBytes, kBytes, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  check(p->srq != NULL ? ibv_post_srq_recv(p->srq, &wr, &bad) : ibv_post_recv(p->b, &wr, &bad),
        "posting a receive");
}

static void post(struct pair* p, enum ibv_wr_opcode op, uint32_t rkey) {
  struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
  struct ibv_send_wr wr = {.opcode = op, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1},
                     *bad;
  wr.wr.rdma.remote_addr = (uintptr_t)memory + kBytes;
  wr.wr.rdma.rkey = rkey;
  check(ibv_post_send(p->a, &wr, &bad), "ibv_post_send");
}

// The next event, which must be this one. `object`: of the kind that the event is about.
static void expect(enum ibv_event_type type, const void* object) {
  struct ibv_async_event event;
  struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};
  if (poll(&fd, 1, 20000) != 1) fail("no event");
  check(ibv_get_async_event(context, &event), "ibv_get_async_event");
  if (event.event_type != type) fail("event '%s' came", ibv_event_type_str(event.event_type));
  const void* about = event.element.cq;  // a union of pointers
  ibv_ack_async_event(&event);
  if (about != object) fail("'%s' is about another object", ibv_event_type_str(type));
}

static void none_left(void) {
  struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};
  struct ibv_async_event event;
  if (poll(&fd, 1, 100) == 0) return;
  check(ibv_get_async_event(context, &event), "ibv_get_async_event");
  fail("one event too many: '%s'", ibv_event_type_str(event.event_type));
}

static void comm_est(void) {
  struct pair p = make((struct shape){.rtr_only = 1});
  post_recv(&p);
  post(&p, IBV_WR_SEND, 0);
  expect(IBV_EVENT_COMM_EST, p.b);
  none_left();
  unmake(&p);
}

static void cq_error(void) {
  struct pair p = make((struct shape){.cqe = 1, .access = IBV_ACCESS_REMOTE_WRITE});
  for (int i = 0; i < p.cq->cqe + 2; i++) post(&p, IBV_WR_RDMA_WRITE, mr->rkey);
  expect(IBV_EVENT_CQ_ERR, p.cq);
  expect(IBV_EVENT_QP_FATAL, p.a);
  none_left();
  unmake(&p);
}

static void qp_access(void) {
  struct pair p = make((struct shape){.access = IBV_ACCESS_REMOTE_WRITE});
  post(&p, IBV_WR_RDMA_WRITE, mr->rkey ^ 0xff);
  expect(IBV_EVENT_QP_ACCESS_ERR, p.b);
  none_left();
  unmake(&p);
}

static void qp_request(void) {
  struct pair p = make((struct shape){0});
  post(&p, IBV_WR_RDMA_WRITE, mr->rkey);
  expect(IBV_EVENT_QP_REQ_ERR, p.b);
  none_left();
  unmake(&p);
}

static void last_wqe(void) {
  struct pair p = make((struct shape){.srq = 1});
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
  check(ibv_modify_qp(p.b, &attr, IBV_QP_STATE), "to ERR");
  expect(IBV_EVENT_QP_LAST_WQE_REACHED, p.b);
  none_left();
  unmake(&p);
}

static void srq_limit(void) {
  struct pair p = make((struct shape){.srq = 1});
  struct ibv_srq_attr attr = {.srq_limit = 3};
  for (int i = 0; i < 3; i++) post_recv(&p);
  check(ibv_modify_srq(p.srq, &attr, IBV_SRQ_LIMIT), "ibv_modify_srq");
  post(&p, IBV_WR_SEND, 0);
  expect(IBV_EVENT_SRQ_LIMIT_REACHED, p.srq);
  none_left();
  unmake(&p);
}

// The doorbell record of a queue, in libmlx5, which is loaded already as the device's driver.
static __be32* record_of(struct mlx5dv_obj* object, uint64_t type, __be32* const* record) {
  void* library = dlopen("libmlx5.so.1", RTLD_NOW);
  if (library == NULL) fail("%s", dlerror());
  int (*init)(struct mlx5dv_obj*, uint64_t);
  *(void**)&init = dlvsym(library, "mlx5dv_init_obj", "MLX5_1.2");
  if (init == NULL) fail("%s", dlerror());
  check(init(object, type), "mlx5dv_init_obj");
  return *record;
}

static void qp_fatal(void) {
  struct pair p = make((struct shape){0});
  struct mlx5dv_qp qp = {0};
  struct mlx5dv_obj object = {.qp = {p.b, &qp}};
  *record_of(&object, MLX5DV_OBJ_QP, &qp.dbrec) = htobe32(5000);  // more than it has room for
  post(&p, IBV_WR_SEND, 0);
  expect(IBV_EVENT_QP_FATAL, p.b);
  none_left();
  unmake(&p);
}

static void srq_error(void) {
  struct pair p = make((struct shape){.srq = 1});
  struct mlx5dv_srq srq = {0};
  struct mlx5dv_obj object = {.srq = {p.srq, &srq}};
  *record_of(&object, MLX5DV_OBJ_SRQ, &srq.dbrec) = htobe32(5000);
  post(&p, IBV_WR_SEND, 0);
  expect(IBV_EVENT_SRQ_ERR, p.srq);
  // The QP that wanted a buffer goes with it.
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  check(ibv_query_qp(p.b, &attr, IBV_QP_STATE, &init), "ibv_query_qp");
  if (attr.qp_state != IBV_QPS_ERR) fail("the QP's state is %d", attr.qp_state);
  for (int i = 0; i < 2; i++) {
    struct ibv_async_event event;
    check(ibv_get_async_event(context, &event), "ibv_get_async_event");
    if (event.event_type != IBV_EVENT_QP_FATAL && event.event_type != IBV_EVENT_QP_LAST_WQE_REACHED)
      fail("event '%s' came", ibv_event_type_str(event.event_type));
    ibv_ack_async_event(&event);
  }
  none_left();
  unmake(&p);
}

// Where this is on the bus, without an IOMMU.
static uint64_t bus(const void* at) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t entry = 0;
  int fd = open("/proc/self/pagemap", O_RDONLY);
  if (fd < 0 || pread(fd, &entry, sizeof entry, (off_t)((uintptr_t)at / page * sizeof entry)) != sizeof entry)
    fail("pagemap: %s", strerror(errno));
  close(fd);
  return (entry & ((1ull << 55) - 1)) * page + (uintptr_t)at % page;
}

static long milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int seen_event(void) {
  struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};
  struct ibv_async_event event;
  if (poll(&fd, 1, 0) != 1) return 0;
  check(ibv_get_async_event(context, &event), "ibv_get_async_event");
  printf("victim: event: %s\n", ibv_event_type_str(event.event_type));
  ibv_ack_async_event(&event);
  return 1;
}

static int seen_failure(const char* who, struct ibv_cq* cq, int* completed) {
  struct ibv_wc wc;
  const int n = ibv_poll_cq(cq, 1, &wc);
  if (n < 0) fail("ibv_poll_cq");
  *completed = n;
  if (n == 0 || wc.status == IBV_WC_SUCCESS) return 0;
  printf("victim: %s: status: %s\n", who, ibv_wc_status_str(wc.status));
  return 1;
}

// Status 3: something failed or an event came; 4: a write without a completion.
static int victim(void) {
  enum { kApart = 20, kLate = 1000, kNever = 6000, kAfterwards = 800 };  // ms
  struct pair p = make((struct shape){.access = IBV_ACCESS_REMOTE_WRITE});
  struct mlx5dv_qp qp = {0};
  struct mlx5dv_obj object = {.qp = {p.a, &qp}};
  struct mlx5dv_cq cq = {0};
  struct mlx5dv_obj cq_object = {.cq = {p.cq, &cq}};
  record_of(&object, MLX5DV_OBJ_QP, &qp.dbrec);
  record_of(&cq_object, MLX5DV_OBJ_CQ, &cq.dbrec);
  memset(memory, 1, sizeof memory);
  printf("victim: qpn=0x%x peer=0x%x cqn=0x%x source=0x%llx target=0x%llx sq=0x%llx\n", p.a->qp_num,
         p.b->qp_num, cq.cqn, (unsigned long long)bus(memory), (unsigned long long)bus(memory + kBytes),
         (unsigned long long)bus(qp.sq.buf));
  for (;;) {
    const long start = milliseconds();
    int completed = 0, wrong = 0;
    post(&p, IBV_WR_RDMA_WRITE, mr->rkey);
    while (!completed && !wrong && milliseconds() - start < kNever) {
      wrong = seen_failure("write", p.cq, &completed);
      wrong |= seen_event();
    }
    const long took = milliseconds() - start;
    if (wrong) {
      for (const long end = milliseconds() + kAfterwards; milliseconds() < end; usleep(1000)) {
        seen_failure("write", p.cq, &completed);
        seen_event();
      }
      return 3;
    }
    if (!completed) {
      printf("victim: no completion\n");
      return 4;
    }
    if (took > kLate) printf("victim: late: %ld ms\n", took);
    usleep(kApart * 1000);
  }
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } tests[] = {{"comm_est", comm_est},     {"cq_error", cq_error},  {"qp_access", qp_access},
               {"qp_request", qp_request}, {"last_wqe", last_wqe},  {"srq_limit", srq_limit},
               {"qp_fatal", qp_fatal},     {"srq_error", srq_error}};
  const char* name = NULL;
  int as_victim = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--device") == 0) name = argv[i + 1];
    if (strcmp(argv[i], "--gid-index") == 0) gid_index = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--victim") == 0) as_victim = 1;
  }
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  for (int i = 0; i < count && context == NULL; i++)
    if (name == NULL || strcmp(name, ibv_get_device_name(list[i])) == 0) context = ibv_open_device(list[i]);
  if (context == NULL) fail("no such device");
  pd = ibv_alloc_pd(context);
  if (pd == NULL) fail("ibv_alloc_pd: %s", strerror(errno));
  mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  if (mr == NULL) fail("ibv_reg_mr: %s", strerror(errno));
  check(ibv_query_port(context, 1, &port), "ibv_query_port");
  check(ibv_query_gid(context, 1, port.link_layer == IBV_LINK_LAYER_ETHERNET ? gid_index : 0, &gid),
        "ibv_query_gid");
  if (as_victim) return victim();
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    current = tests[i].name;
    tests[i].run();
    printf("async_events: %s: ok\n", current);
  }
  ibv_dereg_mr(mr);
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(list);
  return 0;
}
