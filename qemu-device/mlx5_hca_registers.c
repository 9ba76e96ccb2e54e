/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A guest's accesses to the model's registers: BAR0, the windows of sub-functions, the vendor specific
 * capability. */
#include "mlx5_hca.h"

/*
 * An HCA's own DMA that lands in its own BAR0 is refused, in either direction: the model is in the middle of
 * that very access. The DMA gets an error, as from a bridge that does not route it back.
 */
static bool own_access(HcaLink* link) {
  if (!link->in_access) {
    return false;
  }
  link->refused_mmio++;
  return true;
}

uint32_t mlx5_hca_vsc_access(HcaLink* link, uint32_t offset, const uint32_t* value) {
  uint32_t result = UINT32_MAX;
  int64_t now;

  if (own_access(link)) {
    return result;
  }
  now = mlx5_hca_enter();
  if (value) {
    hca_vsc_write(link->hca, offset, *value);
  } else {
    result = hca_vsc_read(link->hca, offset);
  }
  mlx5_hca_leave(now);
  return result;
}

/* `function` is the one on the bus that is accessed, `number` the model's, whose registers these are. */
static MemTxResult read_register(HcaFunction* function, unsigned number, hwaddr addr, uint64_t* data,
                                 unsigned size) {
  int64_t now;

  *data = UINT64_MAX;
  if (!function || own_access(function->link)) {
    return MEMTX_ERROR;
  }
  if (function->link->dev->removed) {
    return MEMTX_OK; /* all ones: what a port makes of a request that nobody answers */
  }
  now = mlx5_hca_enter();
  *data = hca_function_read(function->link->hca, number, addr, size);
  mlx5_hca_leave(now);
  return MEMTX_OK;
}

static MemTxResult write_register(HcaFunction* function, unsigned number, hwaddr addr, uint64_t data,
                                  unsigned size) {
  uint64_t pc, caller;
  int64_t now;

  if (!function || own_access(function->link)) {
    return MEMTX_ERROR;
  }
  if (function->link->dev->removed) {
    return MEMTX_OK;
  }
  now = mlx5_hca_enter();
  if (function->link->guest_pc && mlx5_hca_guest_code(&pc, &caller)) {
    hca_function_code(function->link->hca, number, addr, data, pc, caller);
  }
  hca_function_write(function->link->hca, number, addr, data, size);
  mlx5_hca_leave(now);
  return MEMTX_OK;
}

static MemTxResult bar0_read(void* opaque, hwaddr addr, uint64_t* data, unsigned size,
                             MemTxAttrs attrs G_GNUC_UNUSED) {
  HcaFunction* function = *(HcaFunction**)opaque;

  return read_register(function, function ? function->number : 0, addr, data, size);
}

static MemTxResult bar0_write(void* opaque, hwaddr addr, uint64_t data, unsigned size,
                              MemTxAttrs attrs G_GNUC_UNUSED) {
  HcaFunction* function = *(HcaFunction**)opaque;

  return write_register(function, function ? function->number : 0, addr, data, size);
}

const MemoryRegionOps mlx5_hca_bar0_ops = {
    .read_with_attrs = bar0_read,
    .write_with_attrs = bar0_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = {.min_access_size = 1, .max_access_size = 8},
    .impl = {.min_access_size = 1, .max_access_size = 8},
};

/* Behind the last window the model has no function, and answers with ones. */
static unsigned sub_function_at(const HcaFunction* physical, hwaddr addr) {
  return physical ? hca_functions(physical->link->hca) + (unsigned)(addr / HCA_SF_WINDOW_SIZE) : 0;
}

static MemTxResult sf_read(void* opaque, hwaddr addr, uint64_t* data, unsigned size,
                           MemTxAttrs attrs G_GNUC_UNUSED) {
  HcaFunction* physical = *(HcaFunction**)opaque;

  return read_register(physical, sub_function_at(physical, addr), addr % HCA_SF_WINDOW_SIZE, data, size);
}

static MemTxResult sf_write(void* opaque, hwaddr addr, uint64_t data, unsigned size,
                            MemTxAttrs attrs G_GNUC_UNUSED) {
  HcaFunction* physical = *(HcaFunction**)opaque;

  return write_register(physical, sub_function_at(physical, addr), addr % HCA_SF_WINDOW_SIZE, data, size);
}

const MemoryRegionOps mlx5_hca_sf_ops = {
    .read_with_attrs = sf_read,
    .write_with_attrs = sf_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = {.min_access_size = 1, .max_access_size = 8},
    .impl = {.min_access_size = 1, .max_access_size = 8},
};
