/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vendor specific capability: a window of configuration registers through which software reaches into the
 * card without its driver. The header is ours, the registers behind it are the model's (hca_vsc_read()).
 */
#include "mlx5_hca.h"

enum { VSC_LENGTH_AT = 0x02, VSC_REGISTERS = 0x04, VSC_CONTROL = 0x04 };

int mlx5_hca_vsc_init(Mlx5Hca* dev, Error** errp) {
  PCIDevice* pci = PCI_DEVICE(dev);
  int at = pci_add_capability(pci, PCI_CAP_ID_VNDR, 0, HCA_VSC_LENGTH, errp);

  if (at < 0) {
    return at;
  }
  dev->vsc_cap = at;
  pci_set_byte(pci->config + at + VSC_LENGTH_AT, HCA_VSC_LENGTH);
  return 0;
}

/* Whether an access lies in the model's registers, and in one of them. */
static bool is_register(Mlx5Hca* dev, uint32_t addr, int len) {
  uint32_t offset = addr - dev->vsc_cap;

  return dev->vsc_cap && dev->link && addr >= dev->vsc_cap && offset >= VSC_REGISTERS &&
         offset < HCA_VSC_LENGTH && addr % 4 + len <= 4;
}

bool mlx5_hca_vsc_read(Mlx5Hca* dev, uint32_t addr, int len, uint32_t* value) {
  if (!is_register(dev, addr, len)) {
    return false;
  }
  *value = mlx5_hca_vsc_access(dev->link, (addr & ~3u) - dev->vsc_cap, NULL);
  *value = extract32(*value, 8 * (addr % 4), 8 * len);
  return true;
}

void mlx5_hca_vsc_after_write(Mlx5Hca* dev, uint32_t addr, uint32_t value, int len) {
  uint32_t now, at = (addr & ~3u) - dev->vsc_cap;

  if (!is_register(dev, addr, len)) {
    return;
  }
  /* Registers of 32 bits. Of the control register, iPXE writes the half with the space alone. */
  if (len != 4) {
    if (at != VSC_CONTROL) {
      return;
    }
    now = mlx5_hca_vsc_access(dev->link, at, NULL);
    value = deposit32(now, 8 * (addr % 4), 8 * len, value);
  }
  mlx5_hca_vsc_access(dev->link, at, &value);
}
