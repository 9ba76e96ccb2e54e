// SPDX-License-Identifier: BSD-3-Clause
// An EQ of the application's own by DevX, with an interrupt of its own.
#ifndef HCASIM_TESTS_GUEST_DV_EQ_H
#define HCASIM_TESTS_GUEST_DV_EQ_H

#include "dv_common.h"

static struct mlx5dv_devx_msi_vector* msi;
static struct mlx5dv_devx_eq* eq;
static struct mlx5dv_devx_uar* eq_uar;
static uint32_t eqn, eq_ci;
enum { kLogEqes = 7, kEqes = 1 << kLogEqes };

static inline void eq_doorbell(void) {
  *(volatile uint32_t*)(void*)((uint8_t*)eq_uar->base_addr + 0x40) = htobe32((eq_ci & 0xffffff) | eqn << 24);
}
// events: bits of event types that it is for; completions of CQs that name it come without.
static inline void make_eq(uint64_t events) {
  msi = mlx5dv_devx_alloc_msi_vector(context);
  WANT(msi != NULL);
  eq_uar = mlx5dv_devx_alloc_uar(context, MLX5DV_UAR_ALLOC_TYPE_NC);
  WANT(eq_uar != NULL);
  uint8_t in[272] = {0}, out[16] = {0};
  put(in, 0, 16, 0x301);  // CREATE_EQ
  put(in, 0x80 + 0x63, 5, kLogEqes);
  put(in, 0x80 + 0x68, 24, eq_uar->page_id);
  put(in, 0x80 + 0xb4, 12, (uint64_t)msi->vector);
  put(in, 0x2c0, 64, events);
  eq = mlx5dv_devx_create_eq(context, in, sizeof in, out, sizeof out);
  if (eq == NULL) fail("CREATE_EQ: syndrome 0x%x", (unsigned)get(out, 0x20, 32));
  eqn = (uint32_t)get(out, 0x58, 8);
  for (int i = 0; i < kEqes; i++) ((uint8_t*)eq->vaddr)[i * 64 + 63] = 1;
  eq_doorbell();
}
// The entry that comes next, and whether it is there.
static inline const uint8_t* next_eqe(void) { return (const uint8_t*)eq->vaddr + eq_ci % kEqes * 64; }
static inline int eqe_there(void) {
  return (*(const volatile uint8_t*)(next_eqe() + 63) & 1) == (eq_ci / kEqes & 1);
}
static inline void eqe_taken(void) {
  eq_ci++;
  eq_doorbell();
}

#endif
