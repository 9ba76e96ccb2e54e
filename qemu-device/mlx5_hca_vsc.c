/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vendor specific capability: a window of configuration registers through which software that has no
 * working firmware to talk to takes semaphores (and, on hardware, dumps the card's registers). The driver
 * complains if it is missing, and uses the software reset semaphore in its recovery.
 *
 *   +0x02 length, +0x03 type
 *   +0x04 control: space [15:0], size valid [28], status [31:29], 0 = this space is not there
 *   +0x08 counter: another value at each read, a ticket for the semaphore
 *   +0x0c semaphore of the window itself: free at 0, taken by a write of a ticket, freed by a write of 0
 *   +0x10 address [29:0], syndrome [30], flag [31]; writing it starts an access: flag 1 = write, done when it
 * is 0; flag 0 = read, done when it is 1 +0x14 data
 *
 * The space offered is that of semaphores. A register dump is not: what it would show is not modelled.
 */
#include "mlx5_hca.h"

enum {
  VSC_LENGTH = 0x18,
  VSC_CONTROL = 0x04,
  VSC_COUNTER = 0x08,
  VSC_SEMAPHORE = 0x0c,
  VSC_ADDRESS = 0x10,
  VSC_DATA = 0x14,
};

#define VSC_SPACE_MASK 0xffffu
#define VSC_SPACE_SEMAPHORES 0x0au
#define VSC_STATUS_OK (1u << 29)
#define VSC_FLAG (1u << 31)
#define VSC_SYNDROME (1u << 30)
#define VSC_ADDRESS_MASK 0x3fffffffu

static uint32_t get(PCIDevice* pci, uint8_t at) { return pci_get_long(pci->config + at); }
static void set(PCIDevice* pci, uint8_t at, uint32_t value) { pci_set_long(pci->config + at, value); }

int mlx5_hca_vsc_init(Mlx5Hca* dev, Error** errp) {
  PCIDevice* pci = PCI_DEVICE(dev);
  int at = pci_add_capability(pci, PCI_CAP_ID_VNDR, 0, VSC_LENGTH, errp);

  if (at < 0) {
    return at;
  }
  dev->vsc_cap = at;
  pci_set_byte(pci->config + at + 2, VSC_LENGTH);
  pci_set_long(pci->wmask + at + VSC_DATA, UINT32_MAX);
  return 0;
}

void mlx5_hca_vsc_reset(Mlx5Hca* dev) {
  PCIDevice* pci = PCI_DEVICE(dev);

  for (unsigned offset = VSC_CONTROL; offset < VSC_LENGTH; offset += 4) {
    if (offset != VSC_COUNTER) { /* tickets stay unique */
      set(pci, dev->vsc_cap + offset, 0);
    }
  }
  memset(dev->vsc_semaphores, 0, sizeof(dev->vsc_semaphores));
}

void mlx5_hca_vsc_before_read(Mlx5Hca* dev, uint32_t addr, int len) {
  PCIDevice* pci = PCI_DEVICE(dev);
  uint8_t counter = dev->vsc_cap + VSC_COUNTER;

  if (dev->vsc_cap && ranges_overlap(addr, len, counter, 4)) {
    uint32_t next = get(pci, counter) + 1;

    set(pci, counter, next ? next : 1); /* 0 means free */
  }
}

/* A taken semaphore only gives way to its release. */
static void write_semaphore(uint32_t* semaphore, uint32_t value) {
  if (!*semaphore || !value) {
    *semaphore = value;
  }
}

static void start_access(Mlx5Hca* dev, uint32_t value) {
  PCIDevice* pci = PCI_DEVICE(dev);
  uint32_t space = get(pci, dev->vsc_cap + VSC_CONTROL) & VSC_SPACE_MASK;
  uint32_t address = value & VSC_ADDRESS_MASK, index = address / 4;
  bool write = value & VSC_FLAG;
  uint32_t result = address | (write ? 0 : VSC_FLAG);

  if (space != VSC_SPACE_SEMAPHORES || address % 4 || index >= ARRAY_SIZE(dev->vsc_semaphores)) {
    result |= VSC_SYNDROME;
    if (!write) {
      set(pci, dev->vsc_cap + VSC_DATA, 0);
    }
  } else if (write) {
    write_semaphore(&dev->vsc_semaphores[index], get(pci, dev->vsc_cap + VSC_DATA));
  } else {
    set(pci, dev->vsc_cap + VSC_DATA, dev->vsc_semaphores[index]);
  }
  set(pci, dev->vsc_cap + VSC_ADDRESS, result);
}

void mlx5_hca_vsc_after_write(Mlx5Hca* dev, uint32_t addr, uint32_t value, int len) {
  PCIDevice* pci = PCI_DEVICE(dev);

  if (!dev->vsc_cap || len != 4) {
    return; /* registers of 32 bits; the capability's read-only bytes have kept their value */
  }
  switch ((int)addr - dev->vsc_cap) {
    case VSC_CONTROL:
      value &= VSC_SPACE_MASK;
      set(pci, addr, value | (value == VSC_SPACE_SEMAPHORES ? VSC_STATUS_OK : 0));
      break;
    case VSC_SEMAPHORE: {
      uint32_t semaphore = get(pci, addr);

      write_semaphore(&semaphore, value);
      set(pci, addr, semaphore);
      break;
    }
    case VSC_ADDRESS:
      start_access(dev, value);
      break;
    default:
      break;
  }
}
