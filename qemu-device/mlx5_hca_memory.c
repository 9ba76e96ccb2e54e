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
  HcaLink* link = container_of(listener, HcaLink, memory);

  if (memory_region_is_ram(section->mr)) {
    mlx5_hca_memory_changed(link);
  }
}

static bool start(HcaLink* link) {
  PCIDevice* pci = link->dev ? PCI_DEVICE(link->dev) : NULL;

  if (!pci || pci_device_iommu_address_space(pci) != &address_space_memory) {
    return false;
  }
  link->memory = (MemoryListener){.name = TYPE_MLX5_HCA, .region_del = on_region_del};
  memory_listener_register(&link->memory, &pci->bus_master_as);
  link->maps = true;
  return true;
}

static bool stop(HcaLink* link) {
  bool mapped = link->maps;

  link->maps = false;
  if (mapped) {
    memory_listener_unregister(&link->memory);
  }
  return mapped;
}

const HcaPart mlx5_hca_memory = {.calls = {[HCA_CALL_START] = start, [HCA_CALL_STOP] = stop}};

void* mlx5_hca_dma_map(void* opaque, uint64_t addr, size_t len, int write) {
  HcaLink* link = opaque;
  bool maps = link->maps && !write && len && !mlx5_hca_lockstep();
  PCIDevice* pci = maps ? mlx5_hca_bus_master(link) : NULL;
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
