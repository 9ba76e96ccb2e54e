// SPDX-License-Identifier: BSD-3-Clause
//
// Runs inside a guest: work requests by the extended interface (ibv_wr_start and its siblings) with every way
// to give their data, on every transport; keys that come to an end.
#include "dv_ends.h"
#include "dv_frames.h"

enum { kBytes = 24000 };
static void begin(void) { open_ends(kBytes); }
static void end(void) { close_ends(); }

static struct ibv_qp_ex* make_qp_ex(enum ibv_qp_type type, uint64_t ops) {
  struct ibv_qp_init_attr_ex init = {.qp_type = type,
                                     .send_cq = send_cq,
                                     .recv_cq = recv_cq,
                                     .cap = {64, 64, 8, 4, 300},
                                     .pd = pd,
                                     .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                     .send_ops_flags = ops};
  if (type == IBV_QPT_XRC_SEND) init.cap.max_recv_wr = init.cap.max_recv_sge = 0, init.recv_cq = NULL;
  struct ibv_qp* qp = ibv_create_qp_ex(context, &init);
  if (qp == NULL) fail("ibv_create_qp_ex of type %d", type);
  struct ibv_qp_ex* ex = ibv_qp_to_qp_ex(qp);
  WANT(ex != NULL);
  return ex;
}

// The data of a request in one of four ways; returns its length and puts the bytes into `bytes`.
static uint32_t data(struct ibv_qp_ex* ex, int way, uint32_t first, uint8_t* bytes, const uint8_t* head,
                     uint32_t head_size) {
  struct ibv_sge sges[6];
  struct ibv_data_buf bufs[6];
  static uint8_t plain[6][300];
  const int n = way % 2 == 0 ? 1 : 6;
  uint32_t size = 0;
  for (int i = 0; i < n; i++) {
    const uint32_t part = n == 1 ? 100 + first % 150 : 17 + (first + (uint32_t)i * 5) % 30;
    uint8_t* at = way < 2 ? from.at + way * 3000 + i * 3000 : plain[i];
    randomize(at, part);
    if (i == 0 && head_size > 0) memcpy(at, head, head_size);
    sges[i] = (struct ibv_sge){.addr = (uintptr_t)at, .length = part, .lkey = from.mr->lkey};
    bufs[i] = (struct ibv_data_buf){.addr = at, .length = part};
    memcpy(bytes + size, at, part);
    size += part;
  }
  if (way == 0) ibv_wr_set_sge(ex, sges[0].lkey, sges[0].addr, sges[0].length);
  if (way == 1) ibv_wr_set_sge_list(ex, (size_t)n, sges);
  if (way == 2) ibv_wr_set_inline_data(ex, bufs[0].addr, bufs[0].length);
  if (way == 3) ibv_wr_set_inline_data_list(ex, (size_t)n, bufs);
  // Inline data were taken when they were given.
  if (way >= 2)
    for (int i = 0; i < n; i++) memset(bufs[i].addr, 0xee, bufs[i].length);
  return size;
}

static struct ibv_ah* ah;
static uint32_t remote_qpn, srq_number;
static void whom(struct ibv_qp_ex* ex) {
  if (ex->qp_base.qp_type == IBV_QPT_UD) ibv_wr_set_ud_addr(ex, ah, remote_qpn, 0x11223344);
  if (ex->qp_base.qp_type == IBV_QPT_XRC_SEND) ibv_wr_set_xrc_srqn(ex, srq_number);
}

// Sends and writes, each several in one ibv_wr_complete(), with the data given in each way.
static void exchange(struct ibv_qp_ex* ex, struct ibv_qp* b) {
  struct ibv_qp* a = &ex->qp_base;
  const uint32_t skip = a->qp_type == IBV_QPT_UD ? 40 : 0;
  static uint8_t bytes[4][2000];
  for (int round = 0; round < 12; round++) {
    uint32_t sizes[4];
    memset(to.at, 0, kBytes);
    const int write = round % 3 == 2 && a->qp_type != IBV_QPT_UD;
    for (uint64_t i = 0; i < 4; i++) post_recv(b, 50 + i, sge_of(&to, i * 2000, 2000));
    ibv_wr_start(ex);
    for (unsigned i = 0; i < 4; i++) {
      ex->wr_id = 70 + i;
      ex->wr_flags = IBV_SEND_SIGNALED;
      if (write)
        ibv_wr_rdma_write_imm(ex, to.mr->rkey, (uintptr_t)to.at + i * 2000, htobe32(i + 5));
      else if (round % 3 == 1)
        ibv_wr_send_imm(ex, htobe32(i + 5));
      else
        ibv_wr_send(ex);
      whom(ex);
      sizes[i] = data(ex, (int)i, (uint32_t)rnd(), bytes[i], NULL, 0);
    }
    SAME(ibv_wr_complete(ex), 0);
    for (unsigned i = 0; i < 4; i++) {
      SAME(good_wc(send_cq, write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND, "a request of ibv_wr_complete").wr_id,
           70 + i);
      const struct ibv_wc wc =
          good_wc(recv_cq, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, "what it sent");
      SAME(wc.wr_id, 50 + i);
      SAME(wc.byte_len, sizes[i] + skip);
      SAME(wc.wc_flags & IBV_WC_WITH_IMM, write || round % 3 == 1 ? IBV_WC_WITH_IMM : 0);
      if (wc.wc_flags & IBV_WC_WITH_IMM) SAME(be32toh(wc.imm_data), i + 5);
      same_bytes(to.at + i * 2000 + skip, bytes[i], sizes[i], "the data of a request");
    }
  }
  // What is given up has never been posted: the next one takes its place.
  ibv_wr_start(ex);
  for (int i = 0; i < 3; i++) {
    ex->wr_id = 99;
    ibv_wr_send(ex);
    whom(ex);
    data(ex, i, 5, bytes[0], NULL, 0);
  }
  ibv_wr_abort(ex);
  post_recv(b, 1, sge_of(&to, 0, 2000));
  ibv_wr_start(ex);
  ex->wr_id = 3;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_send(ex);
  whom(ex);
  const uint32_t size = data(ex, 3, 9, bytes[1], NULL, 0);
  SAME(ibv_wr_complete(ex), 0);
  SAME(good_wc(send_cq, IBV_WC_SEND, "the request after those given up").wr_id, 3);
  SAME(good_wc(recv_cq, IBV_WC_RECV, "its receive").byte_len, size + skip);
  same_bytes(to.at + skip, bytes[1], size, "the request after those given up");
  no_wc(send_cq, "the sender's CQ after ibv_wr_abort");
  no_wc(recv_cq, "the receiver's CQ after ibv_wr_abort");
  // More inline data than the queue was made for is refused as a whole.
  static uint8_t large[4000];
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  whom(ex);
  ibv_wr_set_inline_data(ex, large, sizeof large);
  SAME(ibv_wr_complete(ex), ENOMEM);
  no_wc(send_cq, "the sender's CQ after a refused request");
}

enum {
  kSend = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
  kWrite = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
};
static void of_type(enum ibv_qp_type type, uint64_t ops) {
  begin();
  struct ibv_qp_ex *a = make_qp_ex(type, ops), *b = make_qp_ex(type, ops);
  ready(&a->qp_base, b->qp_base.qp_num);
  ready(&b->qp_base, a->qp_base.qp_num);
  if (type == IBV_QPT_UD) {
    struct ibv_ah_attr path = {0};
    address(&path);
    ah = ibv_create_ah(pd, &path);
    WANT(ah != NULL);
    remote_qpn = b->qp_base.qp_num;
  }
  exchange(a, &b->qp_base);
  if (ah != NULL) SAME(ibv_destroy_ah(ah), 0);
  SAME(ibv_destroy_qp(&a->qp_base), 0);
  SAME(ibv_destroy_qp(&b->qp_base), 0);
  end();
}
static void rc(void) {
  of_type(IBV_QPT_RC, kSend | kWrite | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
}
static void uc(void) { of_type(IBV_QPT_UC, kSend | kWrite); }
static void ud(void) { of_type(IBV_QPT_UD, kSend); }

// XRC: a domain's SRQ, a QP of the domain that a second user of it opens by its number.
static void xrc(void) {
  begin();
  const int fd = open("/tmp/dv-xrcd", O_RDWR | O_CREAT, 0600);
  WANT(fd >= 0);
  struct ibv_xrcd_init_attr of_domain = {
      .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = fd, .oflags = O_CREAT};
  struct ibv_xrcd* domain = ibv_open_xrcd(context, &of_domain);
  WANT(domain != NULL);
  struct ibv_srq_init_attr_ex of_srq = {.attr = {.max_wr = 60, .max_sge = 2},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
                                                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
                                        .srq_type = IBV_SRQT_XRC,
                                        .xrcd = domain,
                                        .cq = recv_cq,
                                        .pd = pd};
  struct ibv_srq* srq = ibv_create_srq_ex(context, &of_srq);
  WANT(srq != NULL);
  SAME(ibv_get_srq_num(srq, &srq_number), 0);
  struct ibv_qp_init_attr_ex of_target = {
      .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
  struct ibv_qp* target = ibv_create_qp_ex(context, &of_target);
  WANT(target != NULL);
  struct ibv_qp_open_attr of_open = {
      .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
      .qp_num = target->qp_num,
      .xrcd = domain,
      .qp_type = IBV_QPT_XRC_RECV};
  struct ibv_qp* opened = ibv_open_qp(context, &of_open);
  WANT(opened != NULL);
  SAME(opened->qp_num, target->qp_num);
  struct ibv_qp_ex* a = make_qp_ex(IBV_QPT_XRC_SEND, kSend | kWrite);
  // Connected by the one that opened it.
  to_init(opened);
  to_rtr(opened, a->qp_base.qp_num);
  ready(&a->qp_base, target->qp_num);
  struct ibv_qp receiver = {.srq = srq};
  exchange(a, &receiver);
  SAME(ibv_destroy_qp(&a->qp_base), 0);
  // The QP goes with the last one that has it.
  SAME(ibv_destroy_qp(target), 0);
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  SAME(ibv_query_qp(opened, &attr, IBV_QP_STATE, &init), 0);
  SAME(attr.qp_state, IBV_QPS_RTR);
  // It ends with this process: libmlx5 (56.1) would free a doorbell record of it, which one that was opened
  // has not.
}

// A memory window: bound by a request, used, invalidated by another one, after which its key opens nothing.
static void local_inv(void) {
  begin();
  struct ibv_qp_ex* a = make_qp_ex(IBV_QPT_RC, kSend | kWrite | IBV_QP_EX_WITH_BIND_MW |
                                                   IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV);
  struct ibv_qp_ex* b = make_qp_ex(IBV_QPT_RC, kSend | kWrite | IBV_QP_EX_WITH_BIND_MW |
                                                   IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV);
  ready(&a->qp_base, b->qp_base.qp_num);
  ready(&b->qp_base, a->qp_base.qp_num);
  struct ibv_mr* bindable = ibv_reg_mr(pd, to.at, kBytes, kAll | IBV_ACCESS_MW_BIND);
  struct ibv_mw* window = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  WANT(bindable != NULL && window != NULL);
  uint32_t key = window->rkey;
  for (int round = 0; round < 6; round++) {
    key = ibv_inc_rkey(key);
    const struct ibv_mw_bind_info info = {.mr = bindable,
                                          .addr = (uintptr_t)to.at + 500,
                                          .length = 1000,
                                          .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
    ibv_wr_start(b);
    b->wr_id = 1;
    b->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_bind_mw(b, window, key, &info);
    SAME(ibv_wr_complete(b), 0);
    good_wc(send_cq, IBV_WC_BIND_MW, "a bind");
    uint8_t bytes[2000];
    memset(to.at, 0, kBytes);
    ibv_wr_start(a);
    a->wr_id = 2;
    a->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(a, key, (uintptr_t)to.at + 600);
    const uint32_t size = data(a, 0, 30, bytes, NULL, 0);
    SAME(ibv_wr_complete(a), 0);
    good_wc(send_cq, IBV_WC_RDMA_WRITE, "a write by the window");
    same_bytes(to.at + 600, bytes, size, "a write by the window");
    if (round % 2 == 0) {
      ibv_wr_start(b);
      b->wr_id = 3;
      b->wr_flags = IBV_SEND_SIGNALED;
      ibv_wr_local_inv(b, key);
      SAME(ibv_wr_complete(b), 0);
      SAME(good_wc(send_cq, IBV_WC_LOCAL_INV, "an invalidation").wr_id, 3);
    } else {  // or by the peer's send
      post_recv(&b->qp_base, 4, sge_of(&to, 0, 100));
      ibv_wr_start(a);
      a->wr_id = 5;
      a->wr_flags = IBV_SEND_SIGNALED;
      ibv_wr_send_inv(a, key);
      ibv_wr_set_inline_data(a, bytes, 20);
      SAME(ibv_wr_complete(a), 0);
      good_wc(send_cq, IBV_WC_SEND, "a send that invalidates");
      const struct ibv_wc wc = good_wc(recv_cq, IBV_WC_RECV, "its receive");
      SAME(wc.wc_flags & IBV_WC_WITH_INV, IBV_WC_WITH_INV);
      SAME(wc.invalidated_rkey, key);
    }
  }
  memset(to.at, 0x55, kBytes);
  ibv_wr_start(a);
  a->wr_id = 6;
  a->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(a, key, (uintptr_t)to.at + 600);
  ibv_wr_set_sge(a, from.mr->lkey, (uintptr_t)from.at, 8);
  SAME(ibv_wr_complete(a), 0);
  SAME(wait_wc(send_cq, "a write by a window that is no more").status, IBV_WC_REM_ACCESS_ERR);
  for (int i = 0; i < 100; i++) SAME(to.at[590 + i], 0x55);
  SAME(ibv_destroy_qp(&a->qp_base), 0);
  SAME(ibv_destroy_qp(&b->qp_base), 0);
  SAME(ibv_dealloc_mw(window), 0);
  SAME(ibv_dereg_mr(bindable), 0);
  end();
}

// Frames by a raw packet QP, each way of giving them; then one large send cut into segments. They come back
// by the port's own cable.
static void frames(void) {
  begin();
  if (!is_eth) return;
  struct ibv_qp_init_attr_ex init = {
      .send_cq = send_cq,
      .recv_cq = recv_cq,
      .cap = {64, 64, 8, 4, 300},
      .comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
      .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO,
      .max_tso_header = 128};
  struct ibv_qp_ex* a = ibv_qp_to_qp_ex(make_looped_qp(&init));
  WANT(a != NULL);
  ready(&a->qp_base, 0);
  struct ibv_flow* rule = rule_for_mac(&a->qp_base, kMac, 0);
  uint8_t head[kHeaders], bytes[2000];
  for (int round = 0; round < 16; round++) {
    ethernet_header(head, kMac, 0x88b5);
    memset(to.at, 0, kBytes);
    post_recv(&a->qp_base, 8, sge_of(&to, 0, 2000));
    ibv_wr_start(a);
    a->wr_id = 9;
    a->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(a);
    const uint32_t size = data(a, round % 4, (uint32_t)rnd(), bytes, head, 14);
    SAME(ibv_wr_complete(a), 0);
    SAME(good_wc(send_cq, IBV_WC_SEND, "a frame").wr_id, 9);
    SAME(good_wc(recv_cq, IBV_WC_RECV, "a frame's receive").byte_len, size);
    same_bytes(to.at, bytes, size, "a frame");
  }
  for (unsigned i = 0; i < 12; i++) post_recv(&a->qp_base, i, sge_of(&to, i * 1500, 1500));
  enum { kMss = 500, kPayload = 4321 };
  randomize(from.at, kPayload);
  const uint32_t size = tcp_headers(head, kMac, kPayload, 1000);
  ibv_wr_start(a);
  a->wr_id = 10;
  a->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM;
  ibv_wr_send_tso(a, head, (uint16_t)size, kMss);
  ibv_wr_set_sge(a, from.mr->lkey, (uintptr_t)from.at, kPayload);
  SAME(ibv_wr_complete(a), 0);
  SAME(good_wc(send_cq, IBV_WC_TSO, "a large send").wr_id, 10);
  uint32_t done = 0;
  for (unsigned i = 0; done < kPayload; i++) {
    const uint32_t part = kPayload - done < kMss ? kPayload - done : kMss;
    const struct ibv_wc wc = good_wc(recv_cq, IBV_WC_RECV, "a segment");
    SAME(wc.wr_id, i);
    SAME(wc.byte_len, size + part);
    segment_is(to.at + i * 1500, size, part, 1000 + done, from.at + done);
    done += part;
  }
  no_wc(recv_cq, "the receiver's CQ after a large send");
  SAME(ibv_destroy_flow(rule), 0);
  SAME(ibv_destroy_qp(&a->qp_base), 0);
  end();
}

int main(int argc, char** argv) {
  static const struct test tests[] = {
      {"rc", rc}, {"uc", uc}, {"ud", ud}, {"xrc", xrc}, {"local_inv", local_inv}, {"frames", frames}};
  return run_tests(tests, sizeof tests / sizeof tests[0], argc, argv);
}
