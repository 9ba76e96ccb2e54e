// SPDX-License-Identifier: BSD-3-Clause
//
// What a sniffer's rule (IBV_FLOW_ATTR_SNIFFER) shows of a port's traffic.
//   raw_sniff DEVICE OWN-ADDRESS PEER-ADDRESS
// Says "sniffing" when it does, looks at each frame until it gets a signal, then says how many RoCE v2
// packets went out and came in, how many messages they began, and how many other frames there were. Status 0:
// those packets had right headers.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kSlots = 2048, kSlot = 4608, kRoce = 4791, kHeaders = 14 + 20 + 8 + 12, kIcrc = 4 };

static volatile sig_atomic_t ended;
static void end(int number) {
  (void)number;
  ended = 1;
}

__attribute__((noreturn)) static void fail(const char* what) {
  printf("raw_sniff: FAILED: %s (%s)\n", what, strerror(errno));
  exit(1);
}

static unsigned load16(const uint8_t* p) { return (unsigned)p[0] << 8 | p[1]; }

// 0 out, 1 in, 2 something else.
static int look_at(const uint8_t* f, uint32_t size, struct in_addr own, struct in_addr peer) {
  uint32_t sum = 0;
  if (size < kHeaders + kIcrc || load16(f + 12) != 0x0800 || f[14] != 0x45 || f[23] != IPPROTO_UDP) return 2;
  if (load16(f + 36) != kRoce) return 2;
  for (unsigned i = 14; i < 34; i += 2) sum += load16(f + i);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  if (sum != 0xffff) fail("an IP checksum is wrong");
  if (load16(f + 16) + 14 > size || load16(f + 38) + 20 != load16(f + 16)) fail("lengths do not fit");
  const int out = memcmp(f + 26, &own, 4) == 0 && memcmp(f + 30, &peer, 4) == 0;
  const int in = memcmp(f + 26, &peer, 4) == 0 && memcmp(f + 30, &own, 4) == 0;
  if (out == in) fail("addresses of neither end");
  return in;
}

int main(int argc, char** argv) {
  static uint8_t memory[kSlots][kSlot];
  struct in_addr own, peer;
  unsigned long count[3] = {0}, begun[2] = {0};
  int n, e;
  if (argc != 4 || inet_pton(AF_INET, argv[2], &own) != 1 || inet_pton(AF_INET, argv[3], &peer) != 1) {
    fprintf(stderr, "usage: %s DEVICE OWN-ADDRESS PEER-ADDRESS\n", argv[0]);
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  struct ibv_device** list = ibv_get_device_list(&n);
  struct ibv_context* context = NULL;
  for (int i = 0; i < n; ++i)
    if (strcmp(ibv_get_device_name(list[i]), argv[1]) == 0) context = ibv_open_device(list[i]);
  if (context == NULL) fail("no such device");
  struct ibv_pd* pd = ibv_alloc_pd(context);
  struct ibv_cq* cq = ibv_create_cq(context, kSlots, NULL, NULL, 0);
  if (pd == NULL || cq == NULL) fail("CQ");
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  if (mr == NULL) fail("reg_mr");
  struct ibv_qp_init_attr init = {.send_cq = cq,
                                  .recv_cq = cq,
                                  .qp_type = IBV_QPT_RAW_PACKET,
                                  .cap = {.max_recv_wr = kSlots, .max_recv_sge = 1}};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  if (qp == NULL) fail("create_qp");
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  if ((errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT)) != 0) fail("to INIT");
  attr.qp_state = IBV_QPS_RTR;
  if ((errno = ibv_modify_qp(qp, &attr, IBV_QP_STATE)) != 0) fail("to RTR");
  struct ibv_sge sge = {.length = kSlot, .lkey = mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  for (int i = 0; i < kSlots; ++i) {
    sge.addr = (uintptr_t)memory[i];
    wr.wr_id = (uint64_t)i;
    if (ibv_post_recv(qp, &wr, &bad) != 0) fail("post_recv");
  }
  struct ibv_flow_attr rule = {.type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof rule, .port = 1};
  struct ibv_flow* flow = ibv_create_flow(qp, &rule);
  if (flow == NULL) fail("create_flow");
  struct sigaction action = {.sa_handler = end};
  sigaction(SIGTERM, &action, NULL);
  printf("sniffing\n");
  for (;;) {
    struct ibv_wc wc;
    if ((e = ibv_poll_cq(cq, 1, &wc)) < 0) fail("poll");
    if (e == 0 && ended) break;
    if (e == 0) continue;
    if (wc.status != IBV_WC_SUCCESS) fail(ibv_wc_status_str(wc.status));
    const uint8_t* f = memory[wc.wr_id];
    const int kind = look_at(f, wc.byte_len, own, peer);
    ++count[kind];
    // RC SEND first, only, only with immediate.
    const unsigned opcode = f[42];
    if (kind < 2 && (opcode == 0 || opcode == 4 || opcode == 5)) ++begun[kind];
    sge.addr = (uintptr_t)f;
    wr.wr_id = wc.wr_id;
    if (ibv_post_recv(qp, &wr, &bad) != 0) fail("post_recv");
  }
  if (ibv_destroy_flow(flow) != 0 || ibv_destroy_qp(qp) != 0) fail("destroy");
  printf("sniffed: %lu out %lu in %lu other; sends begun: %lu out %lu in\n", count[0], count[1], count[2],
         begun[0], begun[1]);
  return 0;
}
