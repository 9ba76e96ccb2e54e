/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vital product data capability (PCI Local Bus Specification 3.0, section 6.8.3.5 and appendix I). The
 * data are the card's and read-only: writes are answered as done and change nothing.
 *
 *   +0x02 address [14:0], flag [15]: written with 0 it starts a read, which is done when it reads as 1
 *   +0x04 data, four bytes from the address on
 */
#include "mlx5_hca.h"

int mlx5_hca_vpd_init(Mlx5Hca* dev, Error** errp) {
  PCIDevice* pci = PCI_DEVICE(dev);
  int at = pci_add_capability(pci, PCI_CAP_ID_VPD, 0, PCI_CAP_VPD_SIZEOF, errp);

  if (at < 0) {
    return at;
  }
  dev->vpd_cap = at;
  pci_set_word(pci->wmask + at + PCI_VPD_ADDR, UINT16_MAX);
  pci_set_long(pci->wmask + at + PCI_VPD_DATA, UINT32_MAX);
  return 0;
}

void mlx5_hca_vpd_after_write(Mlx5Hca* dev, uint32_t addr, int len) {
  PCIDevice* pci = PCI_DEVICE(dev);
  uint8_t* vpd = pci->config + dev->vpd_cap;
  uint8_t data[512] = {};
  uint16_t address;
  size_t size;

  /* The address goes as a word, or with the capability's first dword; its upper byte starts the access. */
  if (!dev->vpd_cap || !ranges_overlap(addr, len, dev->vpd_cap + PCI_VPD_ADDR + 1, 1)) {
    return;
  }
  address = pci_get_word(vpd + PCI_VPD_ADDR);
  if (address & PCI_VPD_ADDR_F) {
    pci_set_word(vpd + PCI_VPD_ADDR, address & ~PCI_VPD_ADDR_F);
    return;
  }
  size = hca_get_vpd(dev->link->hca, data, sizeof(data));
  size = MIN(size, sizeof(data));
  pci_set_long(vpd + PCI_VPD_DATA, 0);
  if (address < size) {
    memcpy(vpd + PCI_VPD_DATA, data + address, MIN(size - address, 4));
  }
  pci_set_word(vpd + PCI_VPD_ADDR, address | PCI_VPD_ADDR_F);
}
