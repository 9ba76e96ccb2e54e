// SPDX-License-Identifier: BSD-3-Clause
//
// Raw packet QPs and steering rules from user space, at both ends of a wire.
//   raw_check DEVICE INTERFACE OWN-ADDRESS PEER-ADDRESS {receive|send} [--seed N]
// One end sends frames that both draw from a seeded generator, the other has rules that spread them over QPs,
// drop them, or leave them to the kernel's interface. Whoever gets a frame compares every byte of it, and
// that none is missing, too much, or with someone else. TCP beside it, on the same interface, keeps the two
// in step. Status 0: all was right.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "raw_frame.h"
#include "raw_rule.h"

enum {
  kSlots = 512,  // receives of a queue
  kHash = 4,     // queues behind the hash
  kFrames = 400,
  kHashed = 200,
  kMaxFrame = 1514,
  kLimit = 30,  // seconds without a frame
  kControl = 18700,
  kMss = 1000,
  kSegments = 5,
};
// Who gets a frame. The first are QPs of their own, then the queues behind the hash, the kernel, nobody.
enum { kA, kB, kC, kQps, kHashed0 = kQps, kQueues = kHashed0 + kHash, kKernel = kQueues, kNobody };
enum { kTagA = 0xabcdef, kTagB = 1, kVlan = 7, kPriority = 3 };

struct arrival {
  int queue;
  uint32_t size, tag;
  uint64_t index;
  int csum_ok;
  uint16_t vlan;
};

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq_ex* cq;
static struct ibv_qp* qps[kQps];
static struct ibv_wq* wqs[kHash];
static struct ibv_mr* mr;
static uint8_t (*memory)[kSlots][kSlot];  // by queue
static int control = -1, sender;
static int kernel_sockets[kPortLast - kPortFirst + 1];
static uint64_t state = 1;
static const char* phase = "setup";
// There is, or was, a rule for all that is left: the peer's kernel has multicasts of its own.
static int strays;
static uint8_t own_mac[6], peer_mac[6];
static struct in_addr own_ip, peer_ip;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  printf("raw_check: %s: %s: FAILED: ", sender ? "sender" : "receiver", phase);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  exit(1);
}

static uint32_t draw(uint32_t below) { return (uint32_t)(step(&state) >> 33) % below; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// ---- TCP beside it ----

static void put(const void* data, size_t size) {
  if (send(control, data, size, MSG_NOSIGNAL) != (ssize_t)size) fail("TCP: %s", strerror(errno));
}
static void get(void* data, size_t size) {
  if (recv(control, data, size, MSG_WAITALL) != (ssize_t)size) fail("the other end is gone");
}
static void meet(const char* next) {  // both ends are here
  uint8_t own = (uint8_t)next[0], other;
  put(&own, 1);
  get(&other, 1);
  if (other != own) fail("the other end is elsewhere");
  phase = next;
}

static void dial(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(kControl), .sin_addr = peer_ip};
  const int yes = 1;
  control = socket(AF_INET, SOCK_STREAM, 0);
  if (sender) {
    if (connect(control, (struct sockaddr*)&at, sizeof at) != 0) fail("connect: %s", strerror(errno));
  } else {
    int listener = control;
    at.sin_addr.s_addr = INADDR_ANY;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr*)&at, sizeof at) != 0 || listen(listener, 1) != 0)
      fail("listen: %s", strerror(errno));
    control = accept(listener, NULL, NULL);
    if (control < 0) fail("accept: %s", strerror(errno));
    close(listener);
  }
  setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// ---- queues ----

static void post_receive(int queue, uint64_t index) {
  struct ibv_sge sge = {.addr = (uintptr_t)memory[queue][index], .length = kSlot, .lkey = mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = (uint64_t)queue << 32 | index, .sg_list = &sge, .num_sge = 1}, *bad;
  const int e =
      queue < kQps ? ibv_post_recv(qps[queue], &wr, &bad) : ibv_post_wq_recv(wqs[queue - kQps], &wr, &bad);
  if (e != 0) fail("post_recv: %s", strerror(e));
}

static void make_common(const char* device) {
  int n;
  struct ibv_device** list = ibv_get_device_list(&n);
  struct ibv_cq_init_attr_ex attr = {
      .cqe = kQueues * kSlots + 64,
      .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_CVLAN};
  for (int i = 0; i < n; ++i)
    if (strcmp(ibv_get_device_name(list[i]), device) == 0) context = ibv_open_device(list[i]);
  if (context == NULL) fail("no device %s", device);
  ibv_free_device_list(list);
  pd = ibv_alloc_pd(context);
  cq = ibv_create_cq_ex(context, &attr);
  if (pd == NULL || cq == NULL) fail("CQ: %s", strerror(errno));
  memory = aligned_alloc(4096, sizeof(uint8_t[kSlots][kSlot]) * kQueues);
  mr = ibv_reg_mr(pd, memory, sizeof(uint8_t[kSlots][kSlot]) * kQueues, IBV_ACCESS_LOCAL_WRITE);
  if (memory == NULL || mr == NULL) fail("memory: %s", strerror(errno));
}

static struct ibv_qp* make_qp(int sends, uint32_t create_flags) {
  struct ibv_qp_init_attr_ex init = {
      .qp_type = IBV_QPT_RAW_PACKET,
      .send_cq = ibv_cq_ex_to_cq(cq),
      .recv_cq = ibv_cq_ex_to_cq(cq),
      .cap = {.max_send_wr = sends ? 64 : 0,
              .max_recv_wr = sends ? 0 : kSlots,
              .max_send_sge = sends ? 2 : 0,
              .max_recv_sge = sends ? 0 : 1,
              .max_inline_data = sends ? 256 : 0},
      .comp_mask =
          IBV_QP_INIT_ATTR_PD | (sends ? IBV_QP_INIT_ATTR_MAX_TSO_HEADER : IBV_QP_INIT_ATTR_CREATE_FLAGS),
      .pd = pd,
      .create_flags = create_flags,
      .max_tso_header = sends ? 64 : 0};
  struct ibv_qp* qp = ibv_create_qp_ex(context, &init);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  int e;
  if (qp == NULL) fail("create_qp: %s", strerror(errno));
  if ((e = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT)) != 0) fail("to INIT: %s", strerror(e));
  attr.qp_state = IBV_QPS_RTR;
  if ((e = ibv_modify_qp(qp, &attr, IBV_QP_STATE)) != 0) fail("to RTR: %s", strerror(e));
  attr.qp_state = IBV_QPS_RTS;
  if (sends && (e = ibv_modify_qp(qp, &attr, IBV_QP_STATE)) != 0) fail("to RTS: %s", strerror(e));
  return qp;
}

static struct ibv_qp* make_hash(struct ibv_rwq_ind_table** table) {
  for (int i = 0; i < kHash; ++i) {
    struct ibv_wq_init_attr init = {
        .wq_type = IBV_WQT_RQ, .max_wr = kSlots, .max_sge = 1, .pd = pd, .cq = ibv_cq_ex_to_cq(cq)};
    struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
    wqs[i] = ibv_create_wq(context, &init);
    if (wqs[i] == NULL) fail("create_wq: %s", strerror(errno));
    if (ibv_modify_wq(wqs[i], &attr) != 0) fail("WQ to RDY: %s", strerror(errno));
    for (uint64_t k = 0; k < kSlots; ++k) post_receive(kHashed0 + i, k);
  }
  struct ibv_rwq_ind_table_init_attr entries = {.log_ind_tbl_size = 2, .ind_tbl = wqs};
  *table = ibv_create_rwq_ind_table(context, &entries);
  if (*table == NULL) fail("create_rwq_ind_table: %s", strerror(errno));
  struct ibv_qp_init_attr_ex init = {
      .qp_type = IBV_QPT_RAW_PACKET,
      .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
      .pd = pd,
      .rwq_ind_tbl = *table,
      .rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                       .rx_hash_key_len = sizeof kKey,
                       .rx_hash_key = (uint8_t*)(uintptr_t)kKey,
                       .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |
                                              IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP}};
  struct ibv_qp* qp = ibv_create_qp_ex(context, &init);
  if (qp == NULL) fail("create_qp with a hash: %s", strerror(errno));
  return qp;
}

// One arrival, within `seconds`; 0: none.
static int receive(struct arrival* a, double seconds) {
  const double end = now() + seconds;
  struct ibv_poll_cq_attr none = {0};
  for (;;) {
    const int e = ibv_start_poll(cq, &none);
    if (e == ENOENT) {
      if (now() > end) return 0;
      continue;
    }
    if (e != 0) fail("poll: %s", strerror(e));
    if (cq->status != IBV_WC_SUCCESS)
      fail("queue %d: %s", (int)(cq->wr_id >> 32), ibv_wc_status_str(cq->status));
    a->queue = (int)(cq->wr_id >> 32);
    a->index = cq->wr_id & 0xffffffff;
    a->size = ibv_wc_read_byte_len(cq);
    a->tag = ibv_wc_read_flow_tag(cq);
    a->csum_ok = (ibv_wc_read_wc_flags(cq) & IBV_WC_IP_CSUM_OK) != 0;
    a->vlan = ibv_wc_read_cvlan(cq);
    ibv_end_poll(cq);
    const uint8_t* f = memory[a->queue][a->index];
    if (!strays || !(f[0] & 1) || memcmp(f, kGroupMac, 6) == 0) return 1;
    post_receive(a->queue, a->index);
  }
}

// ---- the traffic ----

enum { kOffload, kSoftware, kInline };

// The next frame both know of, and how it is sent.
static struct shape next_shape(int* how) {
  struct shape s = {
      .source = (uint16_t)(20000 + draw(1000)), .tag = step(&state), .id = (uint16_t)draw(65536)};
  s.port = (uint16_t)(kPortFirst + draw(kPortGroup - kPortFirst + 1));
  s.tcp = s.port == kPortTcp;
  s.v6 = s.port == kPortV6;
  s.vlan = s.port == kPortVlan ? kVlan : 0;
  s.group = s.port == kPortGroup;
  s.sequence = (uint32_t)step(&state);
  s.tcp_flags = 0x10;
  *how = (int)draw(3);
  s.payload = (uint16_t)(1 + draw(*how == kInline ? 150u : (unsigned)(kMaxFrame - headers_of(&s))));
  s.bad_sum = *how == kSoftware && (s.port == kPortA || s.port == kPortTcp) && draw(2) == 0;
  return s;
}

// Where it must go while all rules are there.
static int owner_of(const struct shape* s) {
  switch (s->port) {
    case kPortA:
    case kPortGroup:
      return kA;
    case kPortB:
      return kB;
    case kPortTcp:
    case kPortV6:
    case kPortVlan:
      return kC;
    case kPortDrop:
      return kNobody;
    default:
      return kKernel;
  }
}

static void finish_sends(int n) {
  const double end = now() + kLimit;
  struct ibv_wc wc[16];
  while (n > 0) {
    const int got = ibv_poll_cq(ibv_cq_ex_to_cq(cq), 16, wc);
    if (got < 0 || now() > end) fail("%d sends do not complete", n);
    for (int i = 0; i < got; ++i)
      if (wc[i].status != IBV_WC_SUCCESS) fail("a send: %s", ibv_wc_status_str(wc[i].status));
    n -= got;
  }
}

static void send_frame(struct ibv_qp* qp, const struct shape* s, int how) {
  uint8_t* f = memory[0][0];
  const size_t size = build(f, s, how != kOffload);
  // In two pieces, unless the WQE has all of it.
  const uint32_t head = how == kInline ? (uint32_t)size : 40;
  struct ibv_sge sges[2] = {{.addr = (uintptr_t)f, .length = head, .lkey = mr->lkey},
                            {.addr = (uintptr_t)f + head, .length = (uint32_t)size - head, .lkey = mr->lkey}};
  struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = sges, .num_sge = how == kInline ? 1 : 2}, *bad;
  wr.send_flags = IBV_SEND_SIGNALED;
  if (how == kOffload) wr.send_flags |= IBV_SEND_IP_CSUM;
  if (how == kInline) wr.send_flags |= IBV_SEND_INLINE;
  const int e = ibv_post_send(qp, &wr, &bad);
  if (e != 0) fail("post_send: %s", strerror(e));
  finish_sends(1);
}

// A frame of this queue must be next; gives the receive back.
static void expect(int queue, const struct shape* s, uint32_t tag, uint32_t strip) {
  uint8_t want[kSlot];
  struct arrival a;
  size_t size = build(want, s, 1);
  if (strip) {
    memmove(want + 12, want + 16, size - 16);
    size -= 4;
  }
  if (!receive(&a, kLimit)) fail("no frame for port %u of %zu bytes at queue %d", s->port, size, queue);
  if (a.queue != queue) fail("a frame for port %u is at queue %d, not %d", s->port, a.queue, queue);
  const uint8_t* got = memory[a.queue][a.index];
  if (a.size != size) fail("a frame for port %u has %u bytes, not %zu", s->port, a.size, size);
  for (size_t i = 0; i < size; ++i)
    if (got[i] != want[i])
      fail("byte %zu of a frame for port %u is %02x, not %02x", i, s->port, got[i], want[i]);
  if (a.tag != tag) fail("a frame for port %u has tag %#x, not %#x", s->port, a.tag, tag);
  // libmlx5 has the flag for IPv4 and QPs with a receive queue of their own alone.
  if (queue < kQps && !s->v6 && a.csum_ok != !s->bad_sum)
    fail("port %u: the checksum is said to be %s", s->port, a.csum_ok ? "right" : "wrong");
  if (strip && a.vlan != (uint16_t)s->vlan) fail("VLAN %u, not %d", a.vlan, s->vlan);
  memset(memory[a.queue][a.index], 0xee, kSlot);
  post_receive(a.queue, a.index);
}

static void expect_silence(void) {
  struct arrival a;
  if (receive(&a, 0.3)) {
    const uint8_t* f = memory[a.queue][a.index];
    fail("one frame too much, at queue %d, of %u bytes, ethertype %02x%02x", a.queue, a.size, f[12], f[13]);
  }
  for (int i = 0; i <= kPortLast - kPortFirst; ++i) {
    uint8_t byte;
    if (recv(kernel_sockets[i], &byte, 1, MSG_DONTWAIT) >= 0)
      fail("the kernel has a frame too much for port %d", kPortFirst + i);
  }
}

// The kernel's sockets must have these frames' payloads, in any order: its own queues are not in step.
static void expect_kernel(const struct shape* shapes, int n) {
  static uint8_t want[kSlot], got[kSlot];
  uint8_t found[kFrames] = {0};
  for (int i = 0; i < n; ++i) {
    struct pollfd p = {.fd = kernel_sockets[shapes[i].port - kPortFirst], .events = POLLIN};
    if (poll(&p, 1, kLimit * 1000) != 1) fail("the kernel misses a frame for port %u", shapes[i].port);
    const ssize_t size = recv(p.fd, got, sizeof got, 0);
    int k = 0;
    for (; k < n; ++k) {
      if (found[k] || shapes[k].port != shapes[i].port || shapes[k].payload != size) continue;
      build(want, &shapes[k], 1);
      if (memcmp(got, want + headers_of(&shapes[k]), (size_t)size) == 0) break;
    }
    if (k == n)
      fail("the kernel has a frame for port %u that nobody sent, of %zd bytes", shapes[i].port, size);
    found[k] = 1;
  }
}

static void open_kernel_sockets(void) {
  for (int i = 0; i <= kPortLast - kPortFirst; ++i) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(kPortFirst + i))};
    const int bytes = 4 << 20;
    kernel_sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(kernel_sockets[i], SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    if (bind(kernel_sockets[i], (struct sockaddr*)&at, sizeof at) != 0) fail("bind: %s", strerror(errno));
  }
}

// `n` frames for a port, all with the same owner.
static void run_port(struct ibv_qp* qp, uint16_t port, int n, int owner, uint32_t tag) {
  static struct shape shapes[kFrames];
  for (int i = 0; i < n; ++i) {
    struct shape* s = &shapes[i];
    *s = (struct shape){
        .port = port, .source = (uint16_t)(100 + i), .tag = step(&state), .foreign = port == kPortAny};
    s->payload = (uint16_t)(64 + draw(1000));
    if (sender)
      send_frame(qp, s, kOffload);
    else if (owner < kQueues)
      expect(owner, s, tag, 0);
  }
  if (!sender && owner == kKernel) expect_kernel(shapes, n);
}

// ---- the two ends ----

static void run(void) {
  enum { kFlows = 10 };
  struct ibv_flow* flows[kFlows] = {0};
  struct ibv_qp *send_qp = NULL, *hash = NULL;
  struct ibv_rwq_ind_table* table = NULL;
  struct ibv_counters* counters = NULL;
  struct rule r;
  int how, dropped = 0, given[kNobody + 1] = {0};
  uint64_t counted[1] = {0};
  static struct shape kernel_shapes[kFrames];
  int kernel_frames = 0;

  if (sender) {
    send_qp = make_qp(1, 0);
  } else {
    open_kernel_sockets();
    for (int q = 0; q < kQps; ++q) {
      // C is what is without the VLAN's tag.
      qps[q] = make_qp(0, q == kC ? IBV_QP_CREATE_CVLAN_STRIPPING : 0);
      for (uint64_t i = 0; i < kSlots; ++i) post_receive(q, i);
    }
    r = port_rule(IBV_FLOW_SPEC_UDP, kPortA);
    tag_rule(&r, kTagA);
    flows[0] = install(qps[kA], &r, "UDP port");
    r = port_rule(IBV_FLOW_SPEC_UDP, kPortB);
    tag_rule(&r, kTagB);
    flows[1] = install(qps[kB], &r, "UDP port and tag");
    r = port_rule(IBV_FLOW_SPEC_TCP, kPortTcp);
    flows[2] = install(qps[kC], &r, "TCP port");
    struct ibv_counters_init_attr none = {0};
    struct ibv_counter_attach_attr packets = {.counter_desc = IBV_COUNTER_PACKETS, .index = 0};
    struct ibv_flow_spec_action_drop drop = {.type = IBV_FLOW_SPEC_ACTION_DROP, .size = sizeof drop};
    struct ibv_flow_spec_counter_action count = {.type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof count};
    counters = ibv_create_counters(context, &none);
    if (counters == NULL) fail("create_counters: %s", strerror(errno));
    if (ibv_attach_counters_point_flow(counters, &packets, NULL) != 0)
      fail("attach_counters: %s", strerror(errno));
    count.counters = counters;
    r = port_rule(IBV_FLOW_SPEC_UDP, kPortDrop);
    add_spec(&r, &drop, sizeof drop);
    add_spec(&r, &count, sizeof count);
    flows[3] = install(qps[kA], &r, "drop and count");
    r = port_rule(IBV_FLOW_SPEC_UDP, kPortBoth);
    r.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
    flows[4] = install(qps[kB], &r, "without a trap");
    r = start_rule(to_mac, 0);
    struct ibv_flow_spec_ipv6 ip6 = {.type = IBV_FLOW_SPEC_IPV6, .size = sizeof ip6};
    memcpy(ip6.val.dst_ip, "\xfd\x09\0\0\0\0\0\0\0\0\0\0\0\0\x02\x02", 16);
    memset(ip6.mask.dst_ip, 0xff, 16);
    add_spec(&r, &ip6, sizeof ip6);
    flows[5] = install(qps[kC], &r, "IPv6");
    r = start_rule(to_mac, kVlan);
    flows[6] = install(qps[kC], &r, "VLAN");
    r = start_rule(kGroupMac, 0);
    flows[7] = install(qps[kA], &r, "multicast");
    // Never gets a frame while the first is there.
    r = port_rule(IBV_FLOW_SPEC_UDP, kPortA);
    r.attr.priority = kPriority;
    flows[8] = install(qps[kB], &r, "lower priority");
  }

  meet("rules");
  for (int i = 0; i < kFrames; ++i) {
    const struct shape s = next_shape(&how);
    const int owner = owner_of(&s);
    ++given[owner];
    if (s.port == kPortDrop) ++dropped;
    if (sender) {
      send_frame(send_qp, &s, how);
      continue;
    }
    if (owner == kKernel) kernel_shapes[kernel_frames++] = s;
    if (s.port == kPortBoth) expect(kB, &s, 0, 0);
    if (owner < kQueues)
      expect(owner, &s, s.port == kPortA ? kTagA : s.port == kPortB ? kTagB : 0, s.vlan != 0);
  }
  expect_kernel(kernel_shapes, kernel_frames);
  meet("after the rules");
  if (!sender) {
    expect_silence();
    if (ibv_read_counters(counters, counted, 1, 0) != 0) fail("read_counters: %s", strerror(errno));
    if (counted[0] != (uint64_t)dropped)
      fail("%llu frames dropped, not %d", (unsigned long long)counted[0], dropped);
    remove_rule(&flows[0]);
  }
  printf("%d frames: %d to A, %d to B, %d to C, %d to the kernel, %d to nobody\n", kFrames, given[kA],
         given[kB], given[kC], given[kKernel], given[kNobody]);

  meet("lower priority");
  run_port(send_qp, kPortA, 20, kB, 0);
  meet("no rule");
  if (!sender) {
    remove_rule(&flows[8]);
    remove_rule(&flows[3]);
    if (ibv_destroy_counters(counters) != 0) fail("destroy_counters: %s", strerror(errno));
  }
  meet("kernel again");
  run_port(send_qp, kPortA, 20, kKernel, 0);
  run_port(send_qp, kPortDrop, 20, kKernel, 0);

  meet("foreign MAC");
  run_port(send_qp, kPortAny, 20, kNobody, 0);
  meet("default rule");
  if (!sender) {
    expect_silence();
    r = (struct rule){.attr = {.type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof r.attr, .port = 1}};
    strays = 1;
    flows[9] = install(qps[kA], &r, "all that is left");
  }
  meet("what is left");
  run_port(send_qp, kPortAny, 20, kA, 0);
  run_port(send_qp, kPortKernel, 20, kKernel, 0);

  meet("segments");
  struct shape s = {.port = kPortTcp,
                    .source = 77,
                    .tcp = 1,
                    .tag = step(&state),
                    .id = 0xfffe,
                    .sequence = 0xffffff00u,
                    .tcp_flags = 0x18};
  if (!sender) remove_rule(&flows[9]);
  if (sender) {
    uint8_t* f = memory[1][0];
    uint8_t payload[kSegments * kMss];
    // Each segment's payload is its own frame's.
    for (int i = 0; i < kSegments; ++i) {
      struct shape part = s;
      part.payload = kMss - (i == kSegments - 1 ? 100 : 0);
      part.tag += (uint64_t)i;
      build(memory[0][0], &part, 1);
      memcpy(payload + i * kMss, memory[0][0] + headers_of(&part), part.payload);
    }
    memcpy(f, payload, sizeof payload);
    s.payload = 0;
    build(memory[0][0], &s, 0);
    struct ibv_sge sge = {.addr = (uintptr_t)f, .length = kSegments * kMss - 100, .lkey = mr->lkey};
    struct ibv_send_wr wr = {.opcode = IBV_WR_TSO,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .send_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM,
                             .tso = {.hdr = memory[0][0], .hdr_sz = (uint16_t)headers_of(&s), .mss = kMss}},
                       *bad;
    const int e = ibv_post_send(send_qp, &wr, &bad);
    if (e != 0) fail("post_send, TSO: %s", strerror(e));
    finish_sends(1);
  } else {
    for (int i = 0; i < kSegments; ++i) {
      struct shape part = s;
      const int last = i == kSegments - 1;
      part.payload = kMss - (last ? 100 : 0);
      part.tag += (uint64_t)i;
      part.sequence += (uint32_t)i * kMss;
      part.id = (uint16_t)(part.id + i);
      if (!last) part.tcp_flags = 0x10;
      expect(kC, &part, 0, 0);
    }
  }

  meet("hash");
  if (!sender) {
    hash = make_hash(&table);
    r = port_rule(IBV_FLOW_SPEC_UDP, kPortHash);
    flows[0] = install(hash, &r, "to a hash");
  }
  meet("hashed");
  int used[kHash] = {0};
  // One at a time: queues of their own are not in step with each other.
  for (int i = 0; i < kHashed; ++i) {
    struct shape h = {.port = kPortHash, .source = (uint16_t)draw(65536), .tag = step(&state)};
    h.payload = (uint16_t)(20 + draw(1400));
    const int queue = (int)(toeplitz(&h) % kHash);
    ++used[queue];
    if (sender)
      send_frame(send_qp, &h, kOffload);
    else
      expect(kHashed0 + queue, &h, 0, 0);
  }
  meet("end");
  if (!sender) {
    expect_silence();
    for (int i = 0; i < kFlows; ++i) remove_rule(&flows[i]);
    if (ibv_destroy_qp(hash) != 0 || ibv_destroy_rwq_ind_table(table) != 0)
      fail("destroy: %s", strerror(errno));
    for (int i = 0; i < kHash; ++i)
      if (ibv_destroy_wq(wqs[i]) != 0) fail("destroy_wq: %s", strerror(errno));
    for (int q = 0; q < kQps; ++q)
      if (ibv_destroy_qp(qps[q]) != 0) fail("destroy_qp: %s", strerror(errno));
  } else if (ibv_destroy_qp(send_qp) != 0) {
    fail("destroy_qp: %s", strerror(errno));
  }
  printf("%d frames hashed: %d, %d, %d, %d\n", kHashed, used[0], used[1], used[2], used[3]);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 6 || inet_pton(AF_INET, argv[3], &own_ip) != 1 || inet_pton(AF_INET, argv[4], &peer_ip) != 1) {
    fprintf(stderr, "usage: %s DEVICE INTERFACE OWN-ADDRESS PEER-ADDRESS {receive|send} [--seed N]\n",
            argv[0]);
    return 2;
  }
  sender = strcmp(argv[5], "send") == 0;
  if (argc > 7 && strcmp(argv[6], "--seed") == 0) state = strtoull(argv[7], NULL, 0) * 2 + 1;
  for (int i = 0; i < 8; ++i) step(&state);
  const int any = socket(AF_INET, SOCK_DGRAM, 0);
  struct ifreq interface = {0};
  snprintf(interface.ifr_name, sizeof interface.ifr_name, "%s", argv[2]);
  if (ioctl(any, SIOCGIFHWADDR, &interface) != 0) fail("no interface %s", argv[2]);
  memcpy(own_mac, interface.ifr_hwaddr.sa_data, 6);
  close(any);
  make_common(argv[1]);
  dial();
  put(own_mac, 6);
  get(peer_mac, 6);
  from_mac = sender ? own_mac : peer_mac;
  to_mac = sender ? peer_mac : own_mac;
  from_ip = sender ? own_ip : peer_ip;
  to_ip = sender ? peer_ip : own_ip;
  run();
  printf("raw_check: %s: all is right\n", sender ? "sender" : "receiver");
  return 0;
}
