// SPDX-License-Identifier: BSD-3-Clause
//
// Runs inside a guest: what libmlx5 makes queues of: memory of every kind, UARs shared and of their own, by
// its environment and by the application's wish; the null key.
#include "dv_ends.h"
#include "dv_frames.h"

enum { kBytes = 24000 };
static void begin(void) { open_ends(kBytes); }
static void end(void) { close_ends(); }

// Ordinary traffic of an RC pair, with the SRQ too, under what the environment has asked for.
static void traffic(void) {
  begin();
  struct ibv_srq_init_attr of_srq = {.attr = {.max_wr = 30, .max_sge = 2}};
  struct ibv_srq* srq = ibv_create_srq(pd, &of_srq);
  WANT(srq != NULL);
  for (int i = 0; i < 6; i++) {
    const enum ibv_qp_type type = i % 2 ? IBV_QPT_UC : IBV_QPT_RC;
    struct ibv_qp *a = make_qp(type, send_cq, recv_cq, NULL),
                  *b = make_qp(type, send_cq, recv_cq, i > 3 && type == IBV_QPT_RC ? srq : NULL);
    ready(a, b->qp_num);
    ready(b, a->qp_num);
    for (int j = 0; j < 80; j++)
      one_send(a, b, &from, &to, j % 2 ? 100 : 1 + (uint32_t)(rnd() % 9000), j % 2 ? IBV_SEND_INLINE : 0);
    SAME(ibv_destroy_qp(a), 0);
    SAME(ibv_destroy_qp(b), 0);
  }
  SAME(ibv_destroy_srq(srq), 0);
  end();
}
#define WITH(name, ...)                                                                       \
  static void name(void) {                                                                    \
    static const char* const set[] = {__VA_ARGS__};                                           \
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i += 2) setenv(set[i], set[i + 1], 1); \
    traffic();                                                                                \
  }
WITH(shut_up_bf, "MLX5_SHUT_UP_BF", "1")
WITH(not_always_bf, "MLX5_POST_SEND_PREFER_BF", "0")
WITH(single_threaded, "MLX5_SINGLE_THREADED", "1")
WITH(uuars, "MLX5_TOTAL_UUARS", "32", "MLX5_NUM_LOW_LAT_UUARS", "12")
WITH(anon, "MLX_QP_ALLOC_TYPE", "ANON", "MLX_CQ_ALLOC_TYPE", "ANON", "MLX_SRQ_ALLOC_TYPE", "ANON")
WITH(prefer_huge, "MLX_QP_ALLOC_TYPE", "PREFER_HUGE", "MLX_CQ_ALLOC_TYPE", "PREFER_HUGE")
WITH(prefer_contig, "MLX_QP_ALLOC_TYPE", "PREFER_CONTIG", "MLX_CQ_ALLOC_TYPE", "PREFER_CONTIG",
     "MLX_QP_MAX_LOG2_CONTIG_BSIZE", "20", "MLX_QP_MIN_LOG2_CONTIG_BSIZE", "13")
WITH(all, "MLX_QP_ALLOC_TYPE", "ALL", "MLX_CQ_ALLOC_TYPE", "ALL")

// Signatures of WQEs are not of this card: a queue that wants them is refused. (Of QPs the kernel says so in
// its log.)
static void signatures(void) {
  setenv("MLX5_SRQ_SIGNATURE", "1", 1);
  begin();
  struct ibv_srq_init_attr of_srq = {.attr = {.max_wr = 30, .max_sge = 2}};
  WANT(ibv_create_srq(pd, &of_srq) == NULL);
  end();
}

static long free_huge_pages(void) {
  char line[200];
  long n = -1;
  FILE* f = fopen("/proc/meminfo", "r");
  WANT(f != NULL);
  while (fgets(line, sizeof line, f) != NULL) sscanf(line, "HugePages_Free: %ld", &n);
  fclose(f);
  return n;
}
static void huge(void) {
  setenv("MLX_QP_ALLOC_TYPE", "HUGE", 1);
  setenv("MLX_CQ_ALLOC_TYPE", "HUGE", 1);
  const long before = free_huge_pages();
  if (before < 8) fail("%ld huge pages free", before);
  begin();
  struct ibv_qp *a = make_qp(IBV_QPT_RC, send_cq, recv_cq, NULL),
                *b = make_qp(IBV_QPT_RC, send_cq, recv_cq, NULL);
  if (free_huge_pages() >= before) fail("the queues are not in huge pages");
  ready(a, b->qp_num);
  ready(b, a->qp_num);
  for (int j = 0; j < 200; j++) one_send(a, b, &from, &to, 1 + (uint32_t)(rnd() % 9000), 0);
  SAME(ibv_destroy_qp(a), 0);
  SAME(ibv_destroy_qp(b), 0);
  end();
  SAME(free_huge_pages(), before);
}

// The application's own memory for all that libmlx5 shares with the card.
static int buffers_out;
static void* own_alloc(size_t size, void* mine) {
  WANT(mine == &buffers_out);
  buffers_out++;
  void* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}
static size_t freed;
static void own_free(void* p, void* mine) {
  WANT(mine == &buffers_out && p != NULL);
  buffers_out--;
  freed++;
}
static void allocators(void) {
  begin();
  struct mlx5dv_ctx_allocators own = {.alloc = own_alloc, .free = own_free, .data = &buffers_out};
  SAME(mlx5dv_set_context_attr(context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &own), 0);
  struct ibv_cq* cq = make_cq(100);
  struct ibv_qp *a = make_qp(IBV_QPT_RC, cq, cq, NULL), *b = make_qp(IBV_QPT_RC, cq, recv_cq, NULL);
  if (buffers_out < 3) fail("%d buffers taken", buffers_out);
  ready(a, b->qp_num);
  ready(b, a->qp_num);
  for (int j = 0; j < 200; j++) one_send(a, b, &from, &to, 1 + (uint32_t)(rnd() % 9000), 0);
  SAME(ibv_destroy_qp(a), 0);
  SAME(ibv_destroy_qp(b), 0);
  SAME(ibv_destroy_cq(cq), 0);
  SAME(buffers_out, 0);
  SAME(ibv_destroy_cq(recv_cq), 0);  // from before: libmlx5's own memory
  SAME(buffers_out, 0);
  recv_cq = make_cq(128);
  SAME(buffers_out, 1);
  end();
  SAME(buffers_out, 0);
}

// Whether the kernel lets programs write bursts to the card. It tries, and an emulator makes single stores of
// one; where it does not try (RoCE is off), it lets them. Without bursts libmlx5 (56.1) has no thread
// domains.
static int bursts(void) {
  struct ibv_qp* qp = make_qp(is_eth ? IBV_QPT_RAW_PACKET : IBV_QPT_RC, send_cq, send_cq, NULL);
  struct mlx5dv_qp dv = {0};
  struct mlx5dv_obj object = {.qp = {.in = qp, .out = &dv}};
  SAME(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
  SAME(ibv_destroy_qp(qp), 0);
  return dv.bf.size != 0;
}

// Thread domains: a QP of each rings at a place of its own. More of them than the first UARs have room for;
// given back and taken again.
static void domains(void) {
  begin();
  enum { kDomains = 20 };
  for (int round = 0; round < 2; round++) {
    struct ibv_td* td[kDomains];
    struct ibv_pd* parent[kDomains];
    struct ibv_qp* qp[kDomains];
    struct ibv_pd* const own = pd;
    void* rings[kDomains];
    for (int i = 0; i < kDomains; i++) {
      struct ibv_td_init_attr of_td = {0};
      td[i] = ibv_alloc_td(context, &of_td);
      if (td[i] == NULL && i == 0 && !bursts()) {
        end();
        return;
      }
      if (td[i] == NULL) fail("thread domain %d", i);
      struct ibv_parent_domain_init_attr of_parent = {.pd = own, .td = td[i]};
      parent[i] = ibv_alloc_parent_domain(context, &of_parent);
      WANT(parent[i] != NULL);
      pd = parent[i];
      qp[i] = make_qp(IBV_QPT_RC, send_cq, recv_cq, NULL);
      pd = own;
      struct mlx5dv_qp dv = {0};
      struct mlx5dv_obj object = {.qp = {.in = qp[i], .out = &dv}};
      SAME(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
      rings[i] = dv.bf.reg;
      if (dv.bf.size != 0)  // with BlueFlame each has its own
        for (int j = 0; j < i; j++) WANT(rings[i] != rings[j]);
      // A thread domain that is in use stays.
      SAME(ibv_dealloc_td(td[i]), EBUSY);
    }
    for (int i = 0; i < kDomains; i++) ready(qp[i], qp[i ^ 1]->qp_num);
    for (int i = 0; i < 200; i++)
      one_send(qp[i % kDomains], qp[(i % kDomains) ^ 1], &from, &to, i % 3 ? 40 : 3000,
               i % 3 ? IBV_SEND_INLINE : 0);
    for (int i = 0; i < kDomains; i++) {
      SAME(ibv_destroy_qp(qp[i]), 0);
      SAME(ibv_dealloc_pd(parent[i]), 0);
      SAME(ibv_dealloc_td(td[i]), 0);
    }
  }
  end();
}

// The same for raw packet QPs, which are there without RoCE too, where thread domains are
// (tests/guest/inside/direct-verbs.sh).
static void raw_domains(void) {
  begin();
  if (!is_eth || !bursts()) return;
  enum { kDomains = 40 };
  struct ibv_qp_init_attr_ex init = {.send_cq = recv_cq, .recv_cq = recv_cq, .cap = {1, 64, 1, 1, 0}};
  struct ibv_qp* receiver = make_looped_qp(&init);
  ready(receiver, 0);
  struct ibv_flow* rule = rule_for_mac(receiver, kMac, NULL);
  struct ibv_pd* const own = pd;
  for (int round = 0; round < 2; round++) {
    struct ibv_td* td[kDomains];
    struct ibv_pd* parent[kDomains];
    struct ibv_qp* qp[kDomains];
    void* rings[kDomains];
    for (int i = 0; i < kDomains; i++) {
      struct ibv_td_init_attr of_td = {0};
      td[i] = ibv_alloc_td(context, &of_td);
      if (td[i] == NULL) fail("thread domain %d", i);
      struct ibv_parent_domain_init_attr of_parent = {.pd = own, .td = td[i]};
      parent[i] = ibv_alloc_parent_domain(context, &of_parent);
      WANT(parent[i] != NULL);
      pd = parent[i];
      qp[i] = make_qp(IBV_QPT_RAW_PACKET, send_cq, send_cq, NULL);
      pd = own;
      struct mlx5dv_qp dv = {0};
      struct mlx5dv_obj object = {.qp = {.in = qp[i], .out = &dv}};
      SAME(mlx5dv_init_obj(&object, MLX5DV_OBJ_QP), 0);
      rings[i] = dv.bf.reg;
      for (int j = 0; j < i; j++) WANT(rings[i] != rings[j]);
      SAME(ibv_dealloc_td(td[i]), EBUSY);
      ready(qp[i], 0);
    }
    for (unsigned i = 0; i < 3 * kDomains; i++) {
      const uint32_t size = i % 2 ? 70 : 900;
      randomize(from.at, size);
      ethernet_header(from.at, kMac, 0x88b5);
      memset(to.at, 0, size);
      post_recv(receiver, i, sge_of(&to, 0, 2000));
      post_send(qp[i % kDomains], i, IBV_WR_SEND, sge_of(&from, 0, size), NULL, i % 2 ? IBV_SEND_INLINE : 0);
      SAME(good_wc(send_cq, IBV_WC_SEND, "a frame of a thread domain").wr_id, i);
      SAME(good_wc(recv_cq, IBV_WC_RECV, "its receive").byte_len, size);
      same_bytes(to.at, from.at, size, "a frame of a thread domain");
    }
    for (int i = 0; i < kDomains; i++) {
      SAME(ibv_destroy_qp(qp[i]), 0);
      SAME(ibv_dealloc_pd(parent[i]), 0);
      SAME(ibv_dealloc_td(td[i]), 0);
    }
  }
  SAME(ibv_destroy_flow(rule), 0);
  SAME(ibv_destroy_qp(receiver), 0);
  end();
}

// More QPs than there are UARs for one each: what they share serves them all.
static void many_qps(void) {
  begin();
  enum { kQps = 100 };
  static struct ibv_qp* qp[kQps];
  for (int i = 0; i < kQps; i++) qp[i] = make_qp(IBV_QPT_RC, send_cq, recv_cq, NULL);
  for (int i = 0; i < kQps; i++) ready(qp[i], qp[i ^ 1]->qp_num);
  for (int i = 0; i < kQps; i++)
    one_send(qp[i], qp[i ^ 1], &from, &to, i % 2 ? 64 : 5000, i % 2 ? IBV_SEND_INLINE : 0);
  for (int i = 0; i < kQps; i++) SAME(ibv_destroy_qp(qp[i]), 0);
  end();
}

// The null key among a receive's pieces: what falls to it goes nowhere.
static void null_key(void) {
  begin();
  struct ibv_mr* null = ibv_alloc_null_mr(pd);
  WANT(null != NULL);
  struct ibv_qp *a = make_qp(IBV_QPT_RC, send_cq, recv_cq, NULL),
                *b = make_qp(IBV_QPT_RC, send_cq, recv_cq, NULL);
  ready(a, b->qp_num);
  ready(b, a->qp_num);
  for (int i = 0; i < 10; i++) {
    randomize(from.at, 3000);
    memset(to.at, 0x77, 3000);
    struct ibv_sge pieces[3] = {
        sge_of(&to, 0, 700), {.addr = 0, .length = 1100, .lkey = null->lkey}, sge_of(&to, 2000, 300)};
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = pieces, .num_sge = 3}, *bad;
    SAME(ibv_post_recv(b, &wr, &bad), 0);
    post_send(a, 2, IBV_WR_SEND, sge_of(&from, 0, 2100), NULL, 0);
    good_wc(send_cq, IBV_WC_SEND, "a send");
    SAME(good_wc(recv_cq, IBV_WC_RECV, "its receive").byte_len, 2100);
    same_bytes(to.at, from.at, 700, "before the null key");
    for (int j = 700; j < 2000; j++) SAME(to.at[j], 0x77);
    same_bytes(to.at + 2000, from.at + 1800, 300, "behind the null key");
    SAME(to.at[2300], 0x77);
  }
  SAME(ibv_destroy_qp(a), 0);
  SAME(ibv_destroy_qp(b), 0);
  SAME(ibv_dereg_mr(null), 0);
  end();
}

int main(int argc, char** argv) {
  static const struct test tests[] = {{"signatures", signatures},
                                      {"shut_up_bf", shut_up_bf},
                                      {"not_always_bf", not_always_bf},
                                      {"single_threaded", single_threaded},
                                      {"uuars", uuars},
                                      {"anon", anon},
                                      {"huge", huge},
                                      {"prefer_huge", prefer_huge},
                                      {"prefer_contig", prefer_contig},
                                      {"all", all},
                                      {"allocators", allocators},
                                      {"domains", domains},
                                      {"raw_domains", raw_domains},
                                      {"many_qps", many_qps},
                                      {"null_key", null_key}};
  return run_tests(tests, sizeof tests / sizeof tests[0], argc, argv);
}
