/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory that the model reads where it lies, so that payload is copied once: from the sender's memory
 * to the receiver's. What it writes goes by QEMU all the same, which has to know of it (pages that are dirty,
 * code that was translated). A pointer stays good until QEMU tells its listeners that the memory goes from
 * the function's address space: the model then gives up all that it has mapped. A vIOMMU changes what
 * an address means without notice, so nothing is mapped behind one. Nor is in lockstep: mapped payload may go
 * in runs of packets, whose times depend, by nanoseconds, on whether each is looked at (captures, traces in
 * detail).
 */
#include "mlx5_hca.h"

static void on_region_del(MemoryListener* listener, MemoryRegionSection* section) {
  HcaFunction* function = container_of(listener, HcaFunction, memory);

  if (memory_region_is_ram(section->mr)) {
    mlx5_hca_memory_changed(function->link);
  }
}

void mlx5_hca_memory_watch(HcaFunction* function) {
  PCIDevice* pci = function->pci;

  if (!pci || function->maps || pci_device_iommu_address_space(pci) != &address_space_memory) {
    return;
  }
  function->memory = (MemoryListener){.name = TYPE_MLX5_HCA, .region_del = on_region_del};
  memory_listener_register(&function->memory, &pci->bus_master_as);
  function->maps = true;
}

void mlx5_hca_memory_unwatch(HcaFunction* function) {
  if (function->maps) {
    function->maps = false;
    memory_listener_unregister(&function->memory);
  }
}

static bool start(HcaLink* link) {
  mlx5_hca_memory_watch(&link->physical);
  for (unsigned i = 0; i < link->virtual_count; i++) {
    mlx5_hca_memory_watch(&link->virtuals[i]);
  }
  return true;
}

static bool stop(HcaLink* link) {
  mlx5_hca_memory_unwatch(&link->physical);
  for (unsigned i = 0; i < link->virtual_count; i++) {
    mlx5_hca_memory_unwatch(&link->virtuals[i]);
  }
  return true;
}

const HcaPart mlx5_hca_memory = {.calls = {[HCA_CALL_START] = start, [HCA_CALL_STOP] = stop}};

void* mlx5_hca_dma_map(void* opaque, uint64_t addr, size_t len, int write) {
  HcaFunction* function = opaque;
  bool maps = function->maps && !write && len && !mlx5_hca_lockstep();
  PCIDevice* pci = maps ? mlx5_hca_bus_master(function) : NULL;
  hwaddr there = len, at;
  MemoryRegion* mr;

  if (!pci || addr + len - 1 < addr) {
    return NULL;
  }
  RCU_READ_LOCK_GUARD();
  mr = address_space_translate(&pci->bus_master_as, addr, &at, &there, false, MEMTXATTRS_UNSPECIFIED);
  if (there < len || !memory_region_is_ram(mr) || memory_region_is_ram_device(mr)) {
    return NULL;
  }
  return (uint8_t*)memory_region_get_ram_ptr(mr) + at;
}
