/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the function does on the bus by itself: DMA and interrupts, as far as its configuration lets it.
 */
#include "mlx5_hca.h"

/* A function that may not master the bus, sleeps, or is about to be reset makes no access. */
PCIDevice* mlx5_hca_bus_master(HcaFunction* function) {
  PCIDevice* pci = function->pci; /* each DMA asks: no cast that looks up types */
  HcaLink* link = function->link;

  if (!pci || link->dev->removed || function->reset_pending || link->physical.reset_pending ||
      !(pci_get_word(pci->config + PCI_COMMAND) & PCI_COMMAND_MASTER)) {
    return NULL;
  }
  if (function->pm_cap &&
      (pci_get_word(pci->config + function->pm_cap + PCI_PM_CTRL) & PCI_PM_CTRL_STATE_MASK)) {
    return NULL;
  }
  return pci;
}

static int dma(HcaFunction* function, uint64_t addr, void* buf, size_t len, DMADirection dir) {
  PCIDevice* pci = mlx5_hca_bus_master(function);
  HcaLink* link = function->link;
  MemTxResult result;

  if (!len) {
    return 0;
  }
  if (!pci || addr + len - 1 < addr) { /* no wrap around the top of the address space */
    link->refused_dma++;
    return -1;
  }
  link->in_access++;
  result = pci_dma_rw(pci, addr, buf, len, dir, MEMTXATTRS_UNSPECIFIED);
  link->in_access--;
  if (result != MEMTX_OK) {
    link->refused_dma++;
    return -1;
  }
  return 0;
}

int mlx5_hca_dma_read(void* opaque, uint64_t addr, void* dst, size_t len) {
  return dma(opaque, addr, dst, len, DMA_DIRECTION_TO_DEVICE);
}

#define ENTRY_BYTES 64 /* of an EQE, of a CQE or half of one */

/* A CQE or EQE belongs to the guest, whose processors may run meanwhile, once its last byte is there: the
 * copy of the rest has no order of its own. */
int mlx5_hca_dma_write(void* opaque, uint64_t addr, const void* src, size_t len) {
  size_t first = len == ENTRY_BYTES || len == 2 * ENTRY_BYTES ? len - sizeof(uint64_t) : len;
  char* bytes = (char*)src;

  if (dma(opaque, addr, bytes, first, DMA_DIRECTION_FROM_DEVICE)) {
    return -1;
  }
  if (first == len) {
    return 0;
  }
  smp_wmb();
  return dma(opaque, addr + first, bytes + first, len - first, DMA_DIRECTION_FROM_DEVICE);
}

uint64_t mlx5_hca_interrupts;

void mlx5_hca_msix(void* opaque, unsigned vector) {
  HcaFunction* function = opaque;
  HcaLink* link = function->link;
  PCIDevice* pci = mlx5_hca_bus_master(function);

  if (!pci || vector >= function->vectors || !msix_enabled(pci)) {
    link->refused_dma++;
    return;
  }
  mlx5_hca_interrupts++;
  link->in_access++;
  msix_notify(pci, vector);
  link->in_access--;
}
