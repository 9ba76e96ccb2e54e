// SPDX-License-Identifier: BSD-3-Clause
//
// Runs at both ends of a wire: RC traffic of which every byte is known beforehand, over a connection that may
// lose, repeat, reorder and damage packets, or be cut.
//   rdma_pair DEVICE GID-INDEX [--ops N] [--seed N] [--timeout N] [--retry N] [--break] [--no-fence] [SERVER]
// The client draws operations from a seeded generator, up to kWindow of them at a time: writes, reads and
// atomics on the server's memory, and sends. It keeps a copy of what the server's memory must hold: reads and
// atomics are compared with it as they complete, the whole memory at the end (through TCP). The server draws
// the same operations and knows what each receive must hold: one too many, one missing, or a byte off is an
// error.
// --break: the connection is expected to be cut (by whoever runs this) while traffic is on: the client's
// request must end in "retry exceeded", those behind it are flushed, the QP is in the error state; both QPs
// are then reset, connected again when the link is back (TCP says so), and the traffic runs once more.
// --no-fence: the client waits for reads by itself. (Linux 6.1's rdma_rxe at times never wakes a fenced
// request.) Without a GID index ("-") the path is a LID's. Status 0: all was right.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
  kMemory = 1 << 20,  // of the server, written and read by the client
  kAtomics = 64,      // words behind it
  kSlots = 32,        // receives
  kSlot = 16384,
  kWindow = 16,
  kLimit = 40,  // seconds without a completion
  kPort = 18600
};

struct memory {  // of each side, registered as one region
  uint8_t bytes[kMemory];
  uint64_t words[kAtomics];
  uint8_t slots[kSlots][kSlot];
  uint8_t local[kWindow][65536];  // the client's end of what it moves
};

struct address {  // what the two tell each other
  uint32_t qpn, psn, rkey, lid;
  uint64_t at;
  uint8_t gid[16];
};

enum kind { kWrite, kRead, kSend, kFetchAdd, kCompareSwap };
static const char* const kKinds[] = {"write", "read", "send", "fetch-and-add", "compare-and-swap"};
struct op {
  enum kind kind;
  uint32_t offset, size, tag;  // where in the memory; the seed of its bytes
  uint64_t add, before;        // atomics
};

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static struct ibv_qp* qp;
static struct ibv_mr* mr;
static struct memory* mem;
static struct memory* mirror;  // what the server's memory must hold
static struct ibv_port_attr port;
static struct address own, theirs;
static int gid_index = -1, control = -1, timeout = 14, retry = 7;
static int is_client, breaks, no_fence;
static uint64_t seed = 1;
static const char* phase = "setup";

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char* format, ...) {
  va_list args;
  va_start(args, format);
  printf("rdma_pair: %s: %s: FAILED: ", is_client ? "client" : "server", phase);
  vprintf(format, args);
  printf("\n");
  va_end(args);
  exit(1);
}

static uint64_t step(uint64_t* state) {  // xorshift64*
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 2685821657736338717ull;
}

static void fill(uint8_t* to, size_t size, uint64_t tag) {
  uint64_t state = tag * 0x9e3779b97f4a7c15ull | 1;
  for (size_t i = 0; i < size; i += 8) {
    uint64_t v = step(&state);
    memcpy(to + i, &v, size - i < 8 ? size - i : 8);
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// ---- TCP beside it ----

static void put(const void* data, size_t size) {
  for (const uint8_t* p = data; size > 0;) {
    ssize_t n = send(control, p, size, MSG_NOSIGNAL);
    if (n <= 0) fail("TCP: %s", strerror(errno));
    p += n, size -= (size_t)n;
  }
}

static void get(void* data, size_t size) {
  for (uint8_t* p = data; size > 0;) {
    ssize_t n = recv(control, p, size, 0);
    if (n <= 0) fail("TCP: %s", n == 0 ? "the other end is gone" : strerror(errno));
    p += n, size -= (size_t)n;
  }
}

static void meet(uint8_t word) {  // both ends are here
  uint8_t other;
  put(&word, 1);
  get(&other, 1);
  if (other != word) fail("the other end is at step %u, this one at %u", other, word);
}

static void dial(const char* server) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  const int yes = 1;
  control = socket(AF_INET, SOCK_STREAM, 0);
  if (control < 0) fail("socket");
  if (server != NULL) {
    if (inet_pton(AF_INET, server, &to.sin_addr) != 1) fail("no address: %s", server);
    if (connect(control, (struct sockaddr*)&to, sizeof to) != 0) fail("connect: %s", strerror(errno));
  } else {
    int listener = control;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr*)&to, sizeof to) != 0 || listen(listener, 1) != 0)
      fail("listen: %s", strerror(errno));
    control = accept(listener, NULL, NULL);
    if (control < 0) fail("accept: %s", strerror(errno));
    close(listener);
  }
  setsockopt(control, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// ---- the QP ----

static void modify(struct ibv_qp_attr* attr, int mask, const char* what) {
  int e = ibv_modify_qp(qp, attr, mask);
  if (e != 0) fail("%s: %s", what, strerror(e));
}

static void reset(void) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
  struct ibv_wc wc;
  modify(&attr, IBV_QP_STATE, "to RESET");
  while (ibv_poll_cq(cq, 1, &wc) > 0) continue;
}

static void connect_qp(void) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT,
      .port_num = 1,
      .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
  modify(&attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "RESET to INIT");

  own = (struct address){.qpn = qp->qp_num,
                         .psn = (uint32_t)step(&seed) & 0xffffff,
                         .rkey = mr->rkey,
                         .lid = port.lid,
                         .at = (uintptr_t)mem};
  if (gid_index >= 0) {
    union ibv_gid gid;
    if (ibv_query_gid(context, 1, gid_index, &gid) != 0) fail("no GID %d", gid_index);
    memcpy(own.gid, gid.raw, 16);
  }
  put(&own, sizeof own);
  get(&theirs, sizeof theirs);

  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_1024,
                              .dest_qp_num = theirs.qpn,
                              .rq_psn = theirs.psn,
                              .max_dest_rd_atomic = 8,
                              .min_rnr_timer = 1,
                              .ah_attr = {.dlid = (uint16_t)theirs.lid, .port_num = 1}};
  if (gid_index >= 0) {
    attr.ah_attr.is_global = 1;
    memcpy(attr.ah_attr.grh.dgid.raw, theirs.gid, 16);
    attr.ah_attr.grh.hop_limit = 64;
    attr.ah_attr.grh.sgid_index = (uint8_t)gid_index;
  }
  modify(&attr,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "INIT to RTR");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .sq_psn = own.psn,
                              .timeout = (uint8_t)timeout,
                              .retry_cnt = (uint8_t)retry,
                              .rnr_retry = 7,
                              .max_rd_atomic = 8};
  modify(&attr,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "RTR to RTS");
}

static struct ibv_wc wait_cqe(const char* what, uint64_t id) {
  struct ibv_wc wc;
  for (double start = now(); now() - start < kLimit;) {
    int n = ibv_poll_cq(cq, 1, &wc);
    if (n < 0) fail("ibv_poll_cq");
    if (n == 1) return wc;
  }
  fail("no completion of %s %llu within %d s", what, (unsigned long long)id, kLimit);
}

// ---- the traffic ----

static struct op draw(uint64_t* state) {
  static const uint32_t limits[] = {16, 300, 5000, 65536};
  struct op op;
  const uint64_t r = step(state);
  op.kind = (r >> 8) % 16 == 0 ? kFetchAdd : (r >> 8) % 16 == 1 ? kCompareSwap : (enum kind)((r >> 12) % 3);
  op.size = 1 + (uint32_t)(step(state) % limits[(r >> 16) % 4]);
  if (op.kind == kSend && op.size > kSlot) op.size = kSlot;
  op.offset = (uint32_t)(step(state) % (kMemory - op.size));
  op.tag = (uint32_t)step(state);
  op.add = step(state);
  op.before = 0;
  return op;
}

static void post(const struct op* op, uint64_t id) {
  uint8_t* local = mem->local[id % kWindow];
  struct ibv_sge sge = {.addr = (uintptr_t)local, .length = op->size, .lkey = mr->lkey};
  struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
  wr.wr.rdma.remote_addr = theirs.at + offsetof(struct memory, bytes) + op->offset;
  wr.wr.rdma.rkey = theirs.rkey;
  switch (op->kind) {
    case kWrite:
      // A lost read is done again: what follows it must not have changed what it reads.
      if (!no_fence) wr.send_flags |= IBV_SEND_FENCE;
      wr.opcode = IBV_WR_RDMA_WRITE;
      fill(local, op->size, op->tag);
      break;
    case kSend:
      wr.opcode = IBV_WR_SEND_WITH_IMM;
      wr.imm_data = htonl(op->tag);
      fill(local, op->size, op->tag);
      break;
    case kRead:
      wr.opcode = IBV_WR_RDMA_READ;
      memset(local, 0xee, op->size);
      break;
    case kFetchAdd:
    case kCompareSwap:
      wr.opcode = op->kind == kFetchAdd ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
      sge.length = 8;
      wr.wr.atomic.remote_addr = theirs.at + offsetof(struct memory, words) + op->offset % kAtomics * 8;
      wr.wr.atomic.rkey = theirs.rkey;
      wr.wr.atomic.compare_add = op->kind == kFetchAdd || op->tag % 2 ? op->add : op->before;
      wr.wr.atomic.swap = op->tag;
      memset(local, 0xee, 8);
      break;
  }
  int e = ibv_post_send(qp, &wr, &bad);
  if (e != 0) fail("ibv_post_send: %s", strerror(e));
}

// What the operation does to the server's memory; a read's bytes are kept for when it completes.
static void apply(struct op* op, uint8_t* expected) {
  uint64_t* word = &mirror->words[op->offset % kAtomics];
  op->before = *word;
  if (op->kind == kWrite) fill(mirror->bytes + op->offset, op->size, op->tag);
  if (op->kind == kRead) memcpy(expected, mirror->bytes + op->offset, op->size);
  if (op->kind == kFetchAdd) *word += op->add;
  if (op->kind == kCompareSwap && (op->tag % 2 ? op->add : op->before) == *word) *word = op->tag;
}

static void check(const struct op* op, uint64_t id, const uint8_t* expected) {
  const uint8_t* local = mem->local[id % kWindow];
  if (op->kind == kRead && memcmp(local, expected, op->size) != 0) {
    uint32_t i = 0;
    while (local[i] == expected[i]) i++;
    fail("operation %llu, a read of %u bytes: byte %u is 0x%02x, not 0x%02x", (unsigned long long)id,
         op->size, i, local[i], expected[i]);
  }
  if (op->kind == kFetchAdd || op->kind == kCompareSwap) {
    uint64_t got;
    memcpy(&got, local, 8);
    if (got != op->before)
      fail("operation %llu, an atomic: 0x%llx, not 0x%llx", (unsigned long long)id, (unsigned long long)got,
           (unsigned long long)op->before);
  }
}

static void client(uint64_t count) {
  static uint8_t expected[kWindow][65536];
  static struct op ops[kWindow];
  uint64_t state = seed, posted = 0;
  int have = 0;  // one is drawn and held back
  for (uint64_t done = 0; done < count; done++) {
    int held = 0;
    while (posted < count && posted - done < kWindow) {
      struct op* op = &ops[posted % kWindow];
      if (!have) *op = draw(&state), have = 1;
      // In place of a fence: reads end before a write starts.
      for (uint64_t i = done; no_fence && op->kind == kWrite && i < posted; i++)
        held |= ops[i % kWindow].kind == kRead;
      if (held) break;
      have = 0;
      apply(op, expected[posted % kWindow]);
      post(op, posted++);
    }
    struct ibv_wc wc = wait_cqe(kKinds[ops[done % kWindow].kind], done);
    if (wc.wr_id != done || wc.status != IBV_WC_SUCCESS)
      fail("operation %llu: completion of %llu, %s (vendor 0x%x)", (unsigned long long)done,
           (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), wc.vendor_err);
    check(&ops[done % kWindow], done, expected[done % kWindow]);
  }
}

static void post_recv(uint64_t n) {
  uint8_t* slot = mem->slots[n % kSlots];
  struct ibv_sge sge = {.addr = (uintptr_t)slot, .length = kSlot, .lkey = mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;
  memset(slot, 0xee, kSlot);
  int e = ibv_post_recv(qp, &wr, &bad);
  if (e != 0) fail("ibv_post_recv: %s", strerror(e));
}

static void receive(uint64_t n, const struct op* op) {
  static uint8_t right[kSlot];
  struct ibv_wc wc = wait_cqe("receive", n);
  if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_RECV)
    fail("receive %llu: %s, opcode %d", (unsigned long long)n, ibv_wc_status_str(wc.status), wc.opcode);
  if (wc.wr_id != n)
    fail("receive %llu completed, not %llu", (unsigned long long)wc.wr_id, (unsigned long long)n);
  if (wc.byte_len != op->size || ntohl(wc.imm_data) != op->tag)
    fail("receive %llu: %u bytes, immediate 0x%x, not %u and 0x%x", (unsigned long long)n, wc.byte_len,
         ntohl(wc.imm_data), op->size, op->tag);
  fill(right, op->size, op->tag);
  if (memcmp(mem->slots[n % kSlots], right, op->size) != 0)
    fail("receive %llu holds other bytes", (unsigned long long)n);
}

static void server(uint64_t count) {
  uint64_t state = seed, taken = 0;
  for (uint64_t i = 0; i < count; i++) {
    const struct op op = draw(&state);
    if (op.kind != kSend) continue;
    receive(taken, &op);
    post_recv(kSlots + taken++);
  }
}

static void compare_memories(void) {
  const size_t size = offsetof(struct memory, slots);
  if (!is_client) {
    struct ibv_wc wc;
    if (ibv_poll_cq(cq, 1, &wc) != 0) fail("a receive too many: %s", ibv_wc_status_str(wc.status));
    put(mem, size);
    return;
  }
  uint8_t* got = malloc(size);
  if (got == NULL) fail("malloc");
  get(got, size);
  for (size_t i = 0; i < size; i++)
    if (got[i] != ((uint8_t*)mirror)[i])
      fail("byte %zu of the server's memory is 0x%02x, not 0x%02x", i, got[i], ((uint8_t*)mirror)[i]);
  free(got);
}

static void traffic(uint64_t count, const char* name) {
  const double start = now();
  phase = name;
  fill((uint8_t*)mem, offsetof(struct memory, slots), seed);
  memcpy(mirror, mem, offsetof(struct memory, slots));
  if (!is_client)
    for (uint64_t i = 0; i < kSlots; i++) post_recv(i);
  meet(1);
  if (is_client) {
    client(count);
  } else {
    server(count);
  }
  meet(2);
  compare_memories();
  meet(3);
  printf("rdma_pair: %s: %s: %llu operations right in %.1f s\n", is_client ? "client" : "server", name,
         (unsigned long long)count, now() - start);
}

// The link is cut while the client sends: writes alone, so that the server has nothing to do.
static void broken(void) {
  phase = "broken";
  meet(1);
  if (is_client) {
    const struct op op = {.kind = kWrite, .size = 4096, .tag = 1};
    const double start = now();
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    struct ibv_wc wc;
    printf("rdma_pair: client: cut the link\n");
    do {
      if (now() - start > kLimit) fail("nobody cut the link within %d s", kLimit);
      post(&op, 1);
      post(&op, 2);
      wc = wait_cqe("write", 0);
      if (wc.status != IBV_WC_SUCCESS) break;
      wc = wait_cqe("write", 0);
    } while (wc.status == IBV_WC_SUCCESS);
    if (wc.status != IBV_WC_RETRY_EXC_ERR)
      fail("%s (vendor 0x%x), not retry exceeded", ibv_wc_status_str(wc.status), wc.vendor_err);
    if (wc.wr_id == 1) {
      wc = wait_cqe("write", 0);
      if (wc.status != IBV_WC_WR_FLUSH_ERR) fail("the request behind it: %s", ibv_wc_status_str(wc.status));
    }
    post(&op, 3);
    wc = wait_cqe("write", 0);
    if (wc.status != IBV_WC_WR_FLUSH_ERR || wc.wr_id != 3)
      fail("a request after the failed one: %s", ibv_wc_status_str(wc.status));
    if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0 || attr.qp_state != IBV_QPS_ERR)
      fail("the QP is in state %d, not ERR", attr.qp_state);
    printf("rdma_pair: client: retry exceeded after %.1f s, the QP is in the error state: mend the link\n",
           now() - start);
  }
  meet(4);  // TCP is there again
  reset();
  connect_qp();
}

int main(int argc, char** argv) {
  uint64_t count = 2000;
  const char* at = NULL;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 3) fail("usage: rdma_pair DEVICE GID-INDEX [options] [SERVER]");
  if (strcmp(argv[2], "-") != 0) gid_index = atoi(argv[2]);
  for (int i = 3; i < argc; i++) {
    if (strcmp(argv[i], "--break") == 0)
      breaks = 1;
    else if (strcmp(argv[i], "--no-fence") == 0)
      no_fence = 1;
    else if (argv[i][0] != '-')
      at = argv[i], is_client = 1;
    else if (i + 1 == argc)
      fail("%s needs a value", argv[i]);
    else if (strcmp(argv[i], "--ops") == 0)
      count = strtoull(argv[++i], NULL, 0);
    else if (strcmp(argv[i], "--seed") == 0)
      seed = strtoull(argv[++i], NULL, 0) | 1;
    else if (strcmp(argv[i], "--timeout") == 0)
      timeout = atoi(argv[++i]);
    else if (strcmp(argv[i], "--retry") == 0)
      retry = atoi(argv[++i]);
    else
      fail("unknown option %s", argv[i]);
  }
  int n = 0;
  struct ibv_device **list = ibv_get_device_list(&n), *found = NULL;
  for (int i = 0; i < n; i++)
    if (strcmp(ibv_get_device_name(list[i]), argv[1]) == 0) found = list[i];
  if (found == NULL) fail("no RDMA device %s", argv[1]);
  context = ibv_open_device(found);
  if (context == NULL || ibv_query_port(context, 1, &port) != 0) fail("the device cannot be opened");
  pd = ibv_alloc_pd(context);
  mem = mmap(NULL, sizeof *mem, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mirror = calloc(1, sizeof *mirror);
  if (pd == NULL || mem == MAP_FAILED || mirror == NULL) fail("ibv_alloc_pd or memory");
  mr = ibv_reg_mr(
      pd, mem, sizeof *mem,
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  cq = ibv_create_cq(context, 2 * kSlots + 2 * kWindow, NULL, NULL, 0);
  if (mr == NULL || cq == NULL) fail("ibv_reg_mr or ibv_create_cq: %s", strerror(errno));
  struct ibv_qp_init_attr init = {
      .qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = {kWindow + 1, kSlots, 1, 1, 0}};
  qp = ibv_create_qp(pd, &init);
  if (qp == NULL) fail("ibv_create_qp: %s", strerror(errno));

  dial(at);
  connect_qp();
  traffic(count, "traffic");
  if (breaks) {
    reset();
    connect_qp();
    broken();
    traffic(count, "traffic after the break");
  }
  if (ibv_destroy_qp(qp) != 0 || ibv_destroy_cq(cq) != 0 || ibv_dereg_mr(mr) != 0 ||
      ibv_dealloc_pd(pd) != 0 || ibv_close_device(context) != 0)
    fail("cannot give everything back");
  return 0;
}
