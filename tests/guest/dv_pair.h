// SPDX-License-Identifier: BSD-3-Clause
//
// A CQ and an RC queue pair, connected to itself, that a program makes by the card's own commands (DevX) and
// works by hand: WQEs, doorbell records, doorbells, CQEs. For kernel's and VFIO contexts.
#ifndef HCASIM_TESTS_GUEST_DV_PAIR_H
#define HCASIM_TESTS_GUEST_DV_PAIR_H

#include "dv_common.h"

enum {
  kBytes = 8192,
  kCqes = 64,
  kWqes = 64,
  kRqBytes = kWqes * 16,
  kRings = 16384,
  kQpAt = 4096,
  kDbrAt = 12288
};
static struct region from, to;
static int stays_inside;  // packets do not leave the card, whatever its address is (ads.fl)

static inline void succeeded(const void* out, const char* what) {
  if (get(out, 0, 8) != 0)
    fail("%s: status %u, syndrome 0x%x", what, (unsigned)get(out, 0, 8), (unsigned)get(out, 0x20, 32));
}
static inline struct mlx5dv_devx_obj* make(const void* in, size_t size, void* out, const char* what) {
  struct mlx5dv_devx_obj* object = mlx5dv_devx_obj_create(context, in, size, out, 16);
  if (object == NULL) fail("%s: syndrome 0x%x", what, (unsigned)get(out, 0x20, 32));
  succeeded(out, what);
  return object;
}

// --- a CQ and an RC queue pair that is connected to itself ---
struct pair {
  uint8_t* rings;
  struct mlx5dv_devx_umem* umem;
  struct mlx5dv_devx_uar* uar;
  struct mlx5dv_devx_obj *cq, *qp;
  uint32_t cqn, qpn, ci, pi, ri;
};

static inline uint32_t pd_number(void) {
  struct mlx5dv_pd dv;
  struct mlx5dv_obj object = {.pd = {.in = pd, .out = &dv}};
  SAME(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), 0);
  return dv.pdn;
}

// As the kernel resolves it for an address handle.
static inline void own_mac(uint8_t* mac) {
  struct ibv_ah_attr path = {0};
  address(&path);
  struct ibv_ah* ah = ibv_create_ah(pd, &path);
  WANT(ah != NULL);
  struct mlx5dv_ah av;
  struct mlx5dv_obj object = {.ah = {.in = ah, .out = &av}};
  SAME(mlx5dv_init_obj(&object, MLX5DV_OBJ_AH), 0);
  memcpy(mac, av.av->rmac, 6);
  SAME(ibv_destroy_ah(ah), 0);
}

// With the completion EQ of this number.
static inline void make_pair_on(struct pair* p, uint32_t eqn) {
  memset(p, 0, sizeof *p);
  p->rings = mmap(NULL, kRings, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  WANT(p->rings != MAP_FAILED);
  memset(p->rings, 0, kRings);
  for (int i = 0; i < kCqes; i++) p->rings[i * 64 + 63] = 0xf1;  // the card's
  struct mlx5dv_devx_umem_in of_umem = {
      .addr = p->rings, .size = kRings, .access = IBV_ACCESS_LOCAL_WRITE, .pgsz_bitmap = ~4095ull};
  p->umem = mlx5dv_devx_umem_reg_ex(context, &of_umem);
  WANT(p->umem != NULL);
  p->uar = mlx5dv_devx_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_NC);
  WANT(p->uar != NULL);
  uint8_t in[272] = {0}, out[16] = {0};
  put(in, 0, 16, 0x400);  // CREATE_CQ
  put(in, 0x80 + 0x6, 1, 1);
  put(in, 0x80 + 0x20, 32, p->umem->umem_id);
  put(in, 0x80 + 0x63, 5, 6);
  put(in, 0x80 + 0x68, 24, p->uar->page_id);
  put(in, 0x80 + 0xa0, 32, eqn);
  put(in, 0x80 + 0x1c0, 64, kDbrAt);
  put(in, 0x2c0, 32, p->umem->umem_id);
  put(in, 0x2e0, 1, 1);
  p->cq = make(in, sizeof in, out, "CREATE_CQ");
  p->cqn = (uint32_t)get(out, 0x48, 24);
  memset(in, 0, sizeof in);
  memset(out, 0, sizeof out);
  uint8_t* qpc = in + 0xc0 / 8;
  put(in, 0, 16, 0x500);  // CREATE_QP
  put(qpc, 0x13, 2, 3);
  put(qpc, 0x28, 24, pd_number());
  put(qpc, 0x49, 4, 6);
  put(qpc, 0x51, 4, 6);
  put(qpc, 0x58, 2, 1);
  put(qpc, 0x68, 24, p->uar->page_id);
  put(qpc, 0x3e8, 24, p->cqn);
  put(qpc, 0x4e8, 24, p->cqn);
  put(qpc, 0x500, 64, kDbrAt + 64);
  put(qpc, 0x683, 1, 1);
  put(qpc, 0x720, 32, p->umem->umem_id);
  put(in, 0x800, 64, kQpAt);
  put(in, 0x840, 32, p->umem->umem_id);
  put(in, 0x860, 1, 1);
  p->qp = make(in, sizeof in, out, "CREATE_QP");
  p->qpn = (uint32_t)get(out, 0x48, 24);
  // To INIT, RTR, RTS.
  uint8_t mac[6] = {0};
  if (is_eth) own_mac(mac);
  for (int step = 0; step < 3; step++) {
    memset(in, 0, sizeof in);
    memset(out, 0, sizeof out);
    uint8_t* ads = qpc + 0xc0 / 8;
    put(in, 0, 16, 0x502 + (unsigned)step);
    put(in, 0x48, 24, p->qpn);
    put(ads, 0x128, 8, 1);
    if (step == 0) put(qpc, 0x490, 2, 3);
    if (step == 1) {
      put(qpc, 0x40, 3, 3);
      put(qpc, 0x43, 5, 30);
      put(qpc, 0xa8, 24, p->qpn);
      put(qpc, 0x4a3, 5, 12);
      put(qpc, 0x488, 3, 3);
      if (stays_inside) {
        put(ads, 0x0, 1, 1);
      } else if (is_eth) {
        memcpy(ads + 0x80 / 8, gid.raw, 16);
        put(ads, 0x48, 8, 1);
        put(ads, 0x58, 8, 64);
        put(ads, 0x110, 16, 0xc123);
        memcpy(ads + 0x130 / 8, mac, 6);
      } else {
        put(ads, 0x30, 16, port.lid);
      }
    }
    if (step == 2) {
      put(ads, 0x40, 5, 14);
      put(qpc, 0x38d, 3, 7);
      put(qpc, 0x390, 3, 7);
      put(qpc, 0x388, 3, 3);
    }
    if (mlx5dv_devx_obj_modify(p->qp, in, sizeof in, out, 16) != 0)
      fail("step %d: syndrome 0x%x", step, (unsigned)get(out, 0x20, 32));
  }
}
static inline void make_pair(struct pair* p) {
  uint32_t eqn = 0;
  SAME(mlx5dv_devx_query_eqn(context, 0, &eqn), 0);
  make_pair_on(p, eqn);
}
static inline void unmake_pair(struct pair* p) {
  SAME(mlx5dv_devx_obj_destroy(p->qp), 0);
  SAME(mlx5dv_devx_obj_destroy(p->cq), 0);
  SAME(mlx5dv_devx_umem_dereg(p->umem), 0);
  mlx5dv_devx_free_uar(p->uar);
}

static inline volatile uint32_t* dbr(struct pair* p, int at) {
  return (volatile uint32_t*)(void*)(p->rings + kDbrAt + at);
}

static inline void arm(struct pair* p, uint32_t sequence) {
  const uint32_t word = (sequence & 3) << 28 | (p->ci & 0xffffff);
  dbr(p, 4)[0] = htobe32(word);
  __sync_synchronize();
  *(volatile uint64_t*)(void*)((uint8_t*)p->uar->base_addr + 0x20) = htobe64((uint64_t)word << 32 | p->cqn);
}

// The next CQE; its opcode is 13 or 14 for errors.
static inline const struct mlx5_cqe64* cqe_of(struct pair* p, const char* what) {
  const struct mlx5_cqe64* cqe = (const struct mlx5_cqe64*)(void*)(p->rings + p->ci % kCqes * 64);
  for (const double start = now();;) {
    const uint8_t owner = *(const volatile uint8_t*)&cqe->op_own;
    if (owner >> 4 != 15 && (owner & 1) == (p->ci / kCqes & 1)) break;
    if (now() - start > 30) fail("no CQE of %s", what);
  }
  __sync_synchronize();
  p->ci++;
  dbr(p, 0)[0] = htobe32(p->ci & 0xffffff);
  return cqe;
}

static inline void write_receive(struct pair* p, const struct region* r, uint32_t size) {
  struct mlx5_wqe_data_seg* seg = (struct mlx5_wqe_data_seg*)(void*)(p->rings + kQpAt + p->ri % kWqes * 16);
  mlx5dv_set_data_seg(seg, size, r->mr->lkey, (uintptr_t)r->at);
  __sync_synchronize();
  dbr(p, 64)[0] = htobe32(++p->ri & 0xffff);
}
static inline void write_request(struct pair* p, uint8_t opcode, const struct region* r, uint32_t size,
                                 const struct region* remote, uint32_t rkey) {
  uint8_t* wqe = p->rings + kQpAt + kRqBytes + p->pi % kWqes * 64;
  struct mlx5_wqe_ctrl_seg* ctrl = (struct mlx5_wqe_ctrl_seg*)(void*)wqe;
  memset(wqe, 0, 64);
  uint8_t ds = 1;
  if (remote != NULL) {
    put(wqe + 16, 0, 64, (uintptr_t)remote->at);
    put(wqe + 16, 64, 32, rkey);
    ds++;
  }
  mlx5dv_set_data_seg((struct mlx5_wqe_data_seg*)(void*)(wqe + ds++ * 16), size, r->mr->lkey,
                      (uintptr_t)r->at);
  mlx5dv_set_ctrl_seg(ctrl, (uint16_t)p->pi, opcode, 0, p->qpn, MLX5_WQE_CTRL_CQ_UPDATE, ds, 0,
                      htobe32(0x1234));
  __sync_synchronize();
  dbr(p, 64)[1] = htobe32(++p->pi & 0xffff);
  __sync_synchronize();
  *(volatile uint64_t*)p->uar->reg_addr = *(uint64_t*)(void*)ctrl;
}
static inline void message(struct pair* p, uint32_t size) {
  randomize(from.at, size);
  memset(to.at, 0, size);
  write_receive(p, &to, size);
  write_request(p, MLX5_OPCODE_SEND_IMM, &from, size, NULL, 0);
}
// The message's two completions, in whatever order.
static inline void message_done(struct pair* p, uint32_t size) {
  for (int i = 0, seen = 0; i < 2; i++) {
    const struct mlx5_cqe64* cqe = cqe_of(p, "a message");
    const uint8_t opcode = mlx5dv_get_cqe_opcode((struct mlx5_cqe64*)(uintptr_t)cqe);
    if (opcode != MLX5_CQE_REQ && opcode != MLX5_CQE_RESP_SEND_IMM) fail("a CQE with opcode %u", opcode);
    WANT(!(seen & 1 << opcode));
    seen |= 1 << opcode;
    SAME(be32toh(cqe->sop_drop_qpn) & 0xffffff, p->qpn);
    if (opcode == MLX5_CQE_RESP_SEND_IMM && size > 64) SAME(be32toh(cqe->byte_cnt), size);
    if (opcode == MLX5_CQE_RESP_SEND_IMM) SAME(be32toh(cqe->imm_inval_pkey), 0x1234);
  }
  same_bytes(to.at, from.at, size, "a message");
}

#endif
