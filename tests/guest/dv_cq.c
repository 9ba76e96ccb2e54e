// SPDX-License-Identifier: BSD-3-Clause
//
// Runs inside a guest: completions as applications read them: by ibv_start_poll and its siblings with every
// field, in each of the modes that libmlx5 has for it (several threads or one, a pause between polls, fixed
// or adaptive, wall-clock times, CQEs of both versions and both sizes), by ibv_poll_cq, after a resize with
// entries in the CQ, and after a QP is gone whose completions lie there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <glob.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>

#include "dv_common.h"

// --- CQEs of version 0, which name a QP where version 1 has the user's index: what an application with a
// libmlx5 of before 2015 asks for. Today's library always asks for version 1; the request is changed on its
// way.
static int cqe_version = 1, version_was_asked;
int ioctl(int fd, unsigned long request, ...) {
  static int (*real)(int, unsigned long, ...);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "ioctl");
  va_list args;
  va_start(args, request);
  void* argument = va_arg(args, void*);
  va_end(args);
  struct ib_uverbs_ioctl_hdr* header = argument;
  if (request == RDMA_VERBS_IOCTL && header->object_id == UVERBS_OBJECT_DEVICE &&
      header->method_id == UVERBS_METHOD_GET_CONTEXT)
    for (int i = 0; i < header->num_attrs; i++)
      if (header->attrs[i].attr_id == UVERBS_ATTR_UHW_IN && header->attrs[i].len >= 24) {
        uint8_t* asked = (uint8_t*)(uintptr_t)header->attrs[i].data + 16;  // max_cqe_version
        if (cqe_version == 0) *asked = 0;
        version_was_asked = 1 + *asked;
      }
  return real(fd, request, argument);
}

enum { kBytes = 40000, kCqe = 64 };
static struct region from, to;
static struct ibv_cq_ex* cq_ex;
static struct ibv_cq* cq;
static struct ibv_qp *a, *b;

static void make_cq_ex(int flags, uint64_t more, int cqe) {
  struct ibv_cq_init_attr_ex attr = {.cqe = (uint32_t)cqe,
                                     .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                                                 IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG |
                                                 IBV_WC_EX_WITH_TM_INFO | more,
                                     .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
                                     .flags = (uint32_t)flags};
  cq_ex = ibv_create_cq_ex(context, &attr);
  if (cq_ex == NULL) fail("ibv_create_cq_ex, flags %d", flags);
  cq = ibv_cq_ex_to_cq(cq_ex);
}
static void begin(int flags, uint64_t more) {
  open_device();
  SAME(version_was_asked, 1 + cqe_version);
  make_cq_ex(flags, more, kCqe);
  from = make_region(kBytes);
  to = make_region(kBytes);
}
static void pair_of(enum ibv_qp_type type) {
  a = make_qp(type, cq, cq, NULL);
  b = make_qp(type, cq, cq, NULL);
  ready(a, b->qp_num);
  ready(b, a->qp_num);
}

// Waits for the first completion of a round of ibv_start_poll.
static void start(void) {
  struct ibv_poll_cq_attr attr = {0};
  int e = ENOENT;
  for (const double begun = now(); e == ENOENT && now() - begun < 30;) e = ibv_start_poll(cq_ex, &attr);
  if (e != 0) fail("ibv_start_poll: %s", strerror(e));
}
static void next(void) {
  int e = ENOENT;
  for (const double begun = now(); e == ENOENT && now() - begun < 30;) e = ibv_next_poll(cq_ex);
  if (e != 0) fail("ibv_next_poll: %s", strerror(e));
}

static uint64_t device_clock(void) {
  struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
  SAME(ibv_query_rt_values_ex(context, &values), 0);
  return (uint64_t)values.raw_clock.tv_sec * 1000000000 + (uint64_t)values.raw_clock.tv_nsec;
}
// The card's own wall clock. The guest's runs apart from it, as any two clocks do.
static uint64_t wall_clock(void) {
  static int fd = -1;
  if (fd < 0) {
    glob_t found;
    char pattern[300], path[300];
    snprintf(pattern, sizeof pattern, "%s/device/ptp/ptp*", context->device->ibdev_path);
    SAME(glob(pattern, 0, NULL, &found), 0);
    snprintf(path, sizeof path, "/dev/%s", strrchr(found.gl_pathv[0], '/') + 1);
    fd = open(path, O_RDONLY);
    if (fd < 0) fail("%s", path);
  }
  struct timespec t;
  SAME(clock_gettime((clockid_t)(~(unsigned)fd << 3 | 3), &t), 0);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// Messages whose completions come in rounds of several; each field of each of them.
static void fields(int wallclock) {
  struct ibv_poll_cq_attr attr = {0};
  SAME(ibv_start_poll(cq_ex, &attr), ENOENT);
  attr.comp_mask = 1;
  SAME(ibv_start_poll(cq_ex, &attr), EINVAL);
  uint64_t last_time = device_clock();
  const uint64_t wall_before = wallclock ? wall_clock() : 0;
  for (int round = 0; round < 12; round++) {
    enum { kEach = 3 };
    const enum ibv_wr_opcode opcode = round % 3 == 0   ? IBV_WR_SEND_WITH_IMM
                                      : round % 3 == 1 ? IBV_WR_RDMA_WRITE_WITH_IMM
                                                       : IBV_WR_SEND;
    const uint32_t size = 1 + (uint32_t)(rnd() % 12000);
    randomize(from.at, kBytes);
    memset(to.at, 0, kBytes);
    for (uint32_t i = 0; i < kEach; i++) post_recv(b, 100 + i, sge_of(&to, i * 13000, 13000));
    for (uint32_t i = 0; i < kEach; i++) {
      const struct region target = {.at = to.at + i * 13000, .mr = to.mr};
      post_send(a, 200 + i, opcode, sge_of(&from, i * 13000, size), &target, 0);
    }
    int sent = 0, received = 0;
    start();
    for (int i = 0; i < 2 * kEach; i++) {
      if (i > 0) next();
      SAME(cq_ex->status, IBV_WC_SUCCESS);
      const int is_receive = cq_ex->wr_id < 200;
      const uint64_t time = ibv_wc_read_completion_ts(cq_ex);
      if (time == 0) fail("a completion without a time");
      if (wallclock) {
        const uint64_t wall = ibv_wc_read_completion_wallclock_ns(cq_ex), wall_now = wall_clock();
        if (wall + 1000 < wall_before || wall > wall_now + 1000)
          fail("wall clock %llu, not within %llu..%llu", (unsigned long long)wall,
               (unsigned long long)wall_before, (unsigned long long)wall_now);
      }
      if (!is_receive) {
        SAME(cq_ex->wr_id, 200 + sent++);
        SAME(ibv_wc_read_opcode(cq_ex),
             opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
        SAME(ibv_wc_read_qp_num(cq_ex), a->qp_num);
        continue;
      }
      SAME(cq_ex->wr_id, 100 + received);
      SAME(ibv_wc_read_opcode(cq_ex),
           opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
      SAME(ibv_wc_read_qp_num(cq_ex), b->qp_num);
      SAME(ibv_wc_read_byte_len(cq_ex), size);
      SAME(ibv_wc_read_wc_flags(cq_ex) & IBV_WC_WITH_IMM, opcode == IBV_WR_SEND ? 0 : IBV_WC_WITH_IMM);
      if (opcode != IBV_WR_SEND)
        SAME(be32toh(ibv_wc_read_imm_data(cq_ex)), (200u + (unsigned)received) ^ 0xabcd0000);
      received++;
      if (!is_eth) SAME(ibv_wc_read_slid(cq_ex), port.lid);
      if (!is_eth) SAME(ibv_wc_read_sl(cq_ex), 0);
    }
    SAME(ibv_next_poll(cq_ex), ENOENT);
    ibv_end_poll(cq_ex);
    SAME(sent, kEach);
    SAME(received, kEach);
    for (uint32_t i = 0; i < kEach; i++)
      same_bytes(to.at + i * 13000, from.at + i * 13000, size, "a message of a round");
  }
  // One completion a round, each later than the one before it.
  for (int i = 0; i < 5; i++) {
    post_recv(b, 7, sge_of(&to, 0, 100));
    post_send(a, 8, IBV_WR_SEND, sge_of(&from, 0, 100), NULL, 0);
    for (int j = 0; j < 2; j++) {
      start();
      const uint64_t time = ibv_wc_read_completion_ts(cq_ex);
      if (j == 0 && i > 0 && time <= last_time)
        fail("a completion at %llu after one at %llu", (unsigned long long)time,
             (unsigned long long)last_time);
      if (time > last_time || i == 0) last_time = time;
      ibv_end_poll(cq_ex);
    }
  }
  const uint64_t end_time = device_clock();
  if (last_time > end_time)
    fail("a completion at %llu, later than the device's clock %llu", (unsigned long long)last_time,
         (unsigned long long)end_time);
}

// Errors: the one that fails, and what is flushed behind it.
static void errors(void) {
  struct region other = from;
  other.mr = &(struct ibv_mr){.rkey = from.mr->rkey ^ 0xff00};
  post_send(a, 1, IBV_WR_RDMA_WRITE, sge_of(&from, 0, 8), &other, 0);
  post_send(a, 2, IBV_WR_RDMA_WRITE, sge_of(&from, 0, 8), &to, 0);
  start();
  SAME(cq_ex->wr_id, 1);
  SAME(cq_ex->status, IBV_WC_REM_ACCESS_ERR);
  WANT(ibv_wc_read_vendor_err(cq_ex) != 0);
  next();
  SAME(cq_ex->wr_id, 2);
  SAME(cq_ex->status, IBV_WC_WR_FLUSH_ERR);
  (void)ibv_wc_read_vendor_err(cq_ex);
  ibv_end_poll(cq_ex);
}

// ibv_poll_cq over the same CQ.
static void plain(void) {
  for (uint32_t size = 1; size < 5000; size = size * 3 + 1) {
    randomize(from.at, size);
    memset(to.at, 0, size);
    no_wc(cq, "an empty CQ");
    post_recv(b, 1, sge_of(&to, 0, size));
    post_send(a, 2, IBV_WR_SEND_WITH_IMM, sge_of(&from, 0, size), NULL, 0);
    for (uint64_t seen = 0; seen != 3;) {
      const struct ibv_wc wc = wait_wc(cq, "a message");
      SAME(wc.status, IBV_WC_SUCCESS);
      SAME(seen & wc.wr_id, 0);
      seen |= wc.wr_id;
      SAME(wc.opcode, wc.wr_id == 1 ? IBV_WC_RECV : IBV_WC_SEND);
      SAME(wc.qp_num, wc.wr_id == 1 ? b->qp_num : a->qp_num);
      if (wc.wr_id == 1) SAME(wc.byte_len, size);
      if (wc.wr_id == 1) SAME(be32toh(wc.imm_data), 2 ^ 0xabcd0000);
    }
    same_bytes(to.at, from.at, size, "a message");
  }
}

static void end(void) {
  SAME(ibv_destroy_qp(a), 0);
  SAME(ibv_destroy_qp(b), 0);
  SAME(ibv_destroy_cq(cq), 0);
  SAME(ibv_dereg_mr(from.mr), 0);
  SAME(ibv_dereg_mr(to.mr), 0);
  close_device();
}

static void mode(int version, int single, int wallclock, int stall) {
  cqe_version = version;
  setenv("MLX5_STALL_CQ_POLL", stall ? "1" : "0", 1);
  setenv("MLX5_STALL_NUM_LOOP", stall == 2 ? "-1" : "60", 1);
  setenv("MLX5_STALL_CQ_POLL_MIN", "60", 1);
  setenv("MLX5_STALL_CQ_POLL_MAX", "2000", 1);
  setenv("MLX5_STALL_CQ_INC_STEP", "100", 1);
  setenv("MLX5_STALL_CQ_DEC_STEP", "10", 1);
  begin(single ? IBV_CREATE_CQ_ATTR_SINGLE_THREADED : 0,
        wallclock ? IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK : 0);
  pair_of(IBV_QPT_RC);
  plain();
  fields(wallclock);
  errors();
  end();
}
// The pauses between polls are those of ibv_poll_cq() alone: libmlx5 chooses the functions of the extended
// interface before it knows of them.
#define MODE(name, ...) \
  static void name(void) { mode(__VA_ARGS__); }
MODE(test_v1, 1, 0, 0, 0)
MODE(test_v1_single, 1, 1, 0, 0)
MODE(test_v1_wall, 1, 0, 1, 0)
MODE(test_v1_single_wall, 1, 1, 1, 0)
MODE(test_v1_stall, 1, 0, 0, 1)
MODE(test_v1_adaptive, 1, 0, 0, 2)
MODE(test_v0, 0, 0, 0, 0)
MODE(test_v0_single, 0, 1, 0, 0)
MODE(test_v0_wall, 0, 0, 1, 0)
MODE(test_v0_single_wall, 0, 1, 1, 0)
MODE(test_v0_stall, 0, 0, 0, 1)
MODE(test_v0_adaptive, 0, 0, 0, 2)

// Datagrams: who sent them, by which way.
static void datagrams(void) {
  begin(0, 0);
  pair_of(IBV_QPT_UD);
  for (int i = 0; i < 8; i++) {
    struct ibv_ah_attr path = {0};
    address(&path);
    const int global = is_eth || i % 2;
    path.sl = is_eth ? 0 : (uint8_t)i;
    if (!is_eth && global) path.is_global = 1, path.grh.dgid = gid, path.grh.hop_limit = 1;
    struct ibv_ah* ah = ibv_create_ah(pd, &path);
    if (ah == NULL) fail("ibv_create_ah");
    randomize(from.at, 500);
    memset(to.at, 0, 1000);
    post_recv(b, 11, sge_of(&to, 0, 540));
    struct ibv_sge sge = sge_of(&from, 0, 400);
    struct ibv_send_wr wr = {.wr_id = 12,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = b->qp_num;
    wr.wr.ud.remote_qkey = 0x11223344;
    SAME(ibv_post_send(a, &wr, &bad), 0);
    for (int j = 0; j < 2; j++) {
      start();
      SAME(cq_ex->status, IBV_WC_SUCCESS);
      if (cq_ex->wr_id == 11) {
        SAME(ibv_wc_read_src_qp(cq_ex), a->qp_num);
        SAME(ibv_wc_read_byte_len(cq_ex), 440);
        SAME(ibv_wc_read_wc_flags(cq_ex) & IBV_WC_GRH, global ? IBV_WC_GRH : 0);
        // On Ethernet these bits tell the kind of packet, and there are no LIDs.
        if (!is_eth) SAME(ibv_wc_read_sl(cq_ex), path.sl);
        if (!is_eth) SAME(ibv_wc_read_dlid_path_bits(cq_ex), port.lid & 0x7f);
        if (!is_eth) SAME(ibv_wc_read_slid(cq_ex), port.lid);
      }
      ibv_end_poll(cq_ex);
    }
    same_bytes(to.at + 40, from.at, 400, "a datagram");
    SAME(ibv_destroy_ah(ah), 0);
  }
  end();
}

// The CQ grows and shrinks with completions in it, which stay, in their order.
static void resize(void) {
  begin(0, 0);
  pair_of(IBV_QPT_RC);
  static const int sizes[] = {200, 1000, 127, 63, 500, 90};
  uint64_t posted = 0, polled = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    for (int j = 0; j < 40; j++) post_send(a, posted++, IBV_WR_RDMA_WRITE, sge_of(&from, 0, 64), &to, 0);
    // Some have to be there, and the oldest is looked at, so that the CQ's beginning moves through its
    // buffer.
    for (int j = 0; j < 7; j++)
      SAME(good_wc(cq, IBV_WC_RDMA_WRITE, "a write before the resize").wr_id, polled++);
    SAME(ibv_resize_cq(cq, sizes[i]), 0);
    if (cq->cqe < sizes[i]) fail("%d CQEs, not %d", cq->cqe, sizes[i]);
    for (int j = 0; j < 15; j++) post_send(a, posted++, IBV_WR_RDMA_WRITE, sge_of(&from, 0, 64), &to, 0);
    while (polled < posted) SAME(good_wc(cq, IBV_WC_RDMA_WRITE, "a write over the resize").wr_id, polled++);
    no_wc(cq, "the resized CQ");
  }
  end();
}
static void resize_128(void) {
  setenv("MLX5_CQE_SIZE", "128", 1);
  resize();
}
static void plain_128(void) {
  setenv("MLX5_CQE_SIZE", "128", 1);
  begin(0, 0);
  pair_of(IBV_QPT_RC);
  plain();
  fields(0);
  errors();
  end();
}
static void no_scatter(void) {
  setenv("MLX5_SCATTER_TO_CQE", "0", 1);
  begin(0, 0);
  pair_of(IBV_QPT_RC);
  plain();
  end();
}

// Completions of a QP that is destroyed leave a CQ that it shares; those of the other QP stay. With an SRQ,
// its WQEs come back.
static void clean(int with_srq) {
  begin(0, 0);
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 15, .max_sge = 1}};
  struct ibv_srq* srq = with_srq ? ibv_create_srq(pd, &init) : NULL;
  WANT(!with_srq || srq != NULL);
  struct ibv_cq* send_cq = make_cq(kCqe);
  for (int round = 0; round < 3; round++) {
    struct ibv_qp *senders[2], *receivers[2];
    for (int i = 0; i < 2; i++) {
      senders[i] = make_qp(IBV_QPT_RC, send_cq, send_cq, NULL);
      receivers[i] = make_qp(IBV_QPT_RC, cq, cq, srq);
      ready(senders[i], receivers[i]->qp_num);
      ready(receivers[i], senders[i]->qp_num);
    }
    for (unsigned i = 0; i < 12; i++) {
      post_recv(receivers[i % 2], with_srq ? i : i / 2, sge_of(&to, i * 100, 100));
      post_send(senders[i % 2], i, IBV_WR_SEND_WITH_IMM, sge_of(&from, 0, 50 + i), NULL, 0);
      SAME(good_wc(send_cq, IBV_WC_SEND, "a send whose receive stays").wr_id, i);
    }
    // The last receive's completion may follow the sender's: it is there when the CQ has twelve.
    uint8_t in[16] = {0}, out[272] = {0};
    put(in, 0, 16, 0x50b);  // QUERY_QP, as mlx5dv_init_obj() would make the CQ the application's
    put(in, 0x48, 24, receivers[0]->qp_num);
    SAME(mlx5dv_devx_qp_query(receivers[0], in, sizeof in, out, sizeof out), 0);
    const uint32_t cqn = (uint32_t)get(out, 0xc0 + 0x4e8, 24);
    put(in, 0, 16, 0x402);  // QUERY_CQ
    put(in, 0x48, 24, cqn);
    for (const double begun = now();;) {
      memset(out, 0, sizeof out);
      SAME(mlx5dv_devx_cq_query(cq, in, sizeof in, out, sizeof out), 0);
      if (get(out, 0x80 + 0x168, 24) == 12 * (uint64_t)(round + 1)) break;
      if (now() - begun > 30) fail("not 12 completions in the CQ");
    }
    SAME(ibv_destroy_qp(receivers[0]), 0);
    for (unsigned i = 1; i < 12; i += 2) {
      const struct ibv_wc wc = good_wc(cq, IBV_WC_RECV, "the other QP's receive");
      SAME(wc.qp_num, receivers[1]->qp_num);
      SAME(wc.wr_id, with_srq ? i : i / 2);
      SAME(wc.byte_len, 50 + i);
      SAME(be32toh(wc.imm_data), i ^ 0xabcd0000);
    }
    no_wc(cq, "the CQ after its QP");
    SAME(ibv_destroy_qp(receivers[1]), 0);
    for (int i = 0; i < 2; i++) SAME(ibv_destroy_qp(senders[i]), 0);
  }
  if (with_srq) {
    // All of its WQEs are free again: as many as it was asked for can be posted.
    struct ibv_sge sge = sge_of(&to, 0, 100);
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    for (int i = 0; i < 15; i++) SAME(ibv_post_srq_recv(srq, &wr, &bad), 0);
    SAME(ibv_destroy_srq(srq), 0);
  }
  SAME(ibv_destroy_cq(send_cq), 0);
  pair_of(IBV_QPT_RC);
  end();
}
static void clean_v0(void) { cqe_version = 0, clean(0); }
static void clean_v1(void) { clean(0); }
static void clean_srq_v0(void) { cqe_version = 0, clean(1); }
static void clean_srq_v1(void) { clean(1); }

// Moderation: what the CQ's context says, and that one completion alone makes its event after the period.
static void moderate(void) {
  open_device();
  from = make_region(kBytes);
  to = make_region(kBytes);
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  WANT(channel != NULL);
  cq = ibv_create_cq(context, kCqe, &from, channel, 0);
  WANT(cq != NULL);
  pair_of(IBV_QPT_RC);
  struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
                                    .moderate = {.cq_count = 20, .cq_period = 2000}};
  SAME(ibv_modify_cq(cq, &attr), 0);
  struct mlx5dv_cq dv;
  struct mlx5dv_obj object = {.cq = {.in = cq, .out = &dv}};
  SAME(mlx5dv_init_obj(&object, MLX5DV_OBJ_CQ), 0);
  uint8_t in[16] = {0}, out[272] = {0};
  put(in, 0, 16, 0x402);
  put(in, 0x48, 24, dv.cqn);
  SAME(mlx5dv_devx_cq_query(cq, in, sizeof in, out, sizeof out), 0);
  SAME(get(out, 0x80 + 0x84, 12), 2000);
  SAME(get(out, 0x80 + 0x90, 16), 20);
  for (int i = 0; i < 3; i++) {
    SAME(ibv_req_notify_cq(cq, 0), 0);
    post_send(a, 5, IBV_WR_RDMA_WRITE, sge_of(&from, 0, 64), &to, 0);
    readable(channel->fd, "a completion channel");
    struct ibv_cq* which;
    void* mine;
    SAME(ibv_get_cq_event(channel, &which, &mine), 0);
    WANT(which == cq && mine == &from);
    ibv_ack_cq_events(cq, 1);
    good_wc(cq, IBV_WC_RDMA_WRITE, "the write of the event");
  }
  // The same by the command that applications may give themselves.
  uint8_t modify[272] = {0};
  put(modify, 0, 16, 0x403);
  put(modify, 0x48, 24, dv.cqn);
  put(modify, 0x60, 32, 3);  // period and count
  put(modify, 0x80 + 0x84, 12, 300);
  put(modify, 0x80 + 0x90, 16, 6);
  SAME(mlx5dv_devx_cq_modify(cq, modify, sizeof modify, out, 16), 0);
  memset(out, 0, sizeof out);
  SAME(mlx5dv_devx_cq_query(cq, in, sizeof in, out, sizeof out), 0);
  SAME(get(out, 0x80 + 0x84, 12), 300);
  SAME(get(out, 0x80 + 0x90, 16), 6);
  end();
}

int main(int argc, char** argv) {
#define TEST(name) \
  { #name, test_##name }
  static const struct test tests[] = {TEST(v1),
                                      TEST(v1_single),
                                      TEST(v1_wall),
                                      TEST(v1_single_wall),
                                      TEST(v1_stall),
                                      TEST(v1_adaptive),
                                      TEST(v0),
                                      TEST(v0_single),
                                      TEST(v0_wall),
                                      TEST(v0_single_wall),
                                      TEST(v0_stall),
                                      TEST(v0_adaptive),
                                      {"datagrams", datagrams},
                                      {"resize", resize},
                                      {"resize_128", resize_128},
                                      {"plain_128", plain_128},
                                      {"no_scatter", no_scatter},
                                      {"clean_v1", clean_v1},
                                      {"clean_v0", clean_v0},
                                      {"clean_srq_v1", clean_srq_v1},
                                      {"clean_srq_v0", clean_srq_v0},
                                      {"moderate", moderate}};
  return run_tests(tests, sizeof tests / sizeof tests[0], argc, argv);
}
