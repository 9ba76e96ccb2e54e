/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What goes wrong on the PCI Express link, on request (faults of kind pcie):
 *   aer      the function detects an error: its AER registers say so, and a message goes up to the root port,
 *            as the masks and enables of the function and of the ports in between let it
 *   remove   the card is pulled, with both functions if it has two: all reads bring ones, writes are lost,
 *            no DMA and no interrupt comes
 *   insert   and is put back, as after power-on
 * A slot whose port does hot plug itself (pciehp) hears of both; under the hot plug of ACPI nobody does, and
 * the guest finds out by what it reads, or when it scans the bus.
 *
 * The model asks for them while it runs; they wait until it has returned. Of the guest's own doing: a link
 * that it disables, which resets what is below; QEMU's ports leave that out.
 */
#include "mlx5_hca.h"

static void signal_port(PCIDevice* port, unsigned vector) {
  if (msix_enabled(port)) {
    msix_notify(port, vector);
  } else if (msi_enabled(port)) {
    msi_notify(port, vector);
  } else if (pci_get_byte(port->config + PCI_INTERRUPT_PIN)) {
    pci_irq_assert(port);
  }
}

static PCIDevice* port_above(PCIDevice* pci) { return pci_bridge_get_device(pci_get_bus(pci)); }

/* ---- errors ---- */

#if !QCOMPAT_ROUTES_CORRECTABLE
/*
 * ERR_COR on its way to the root port, which is where this QEMU loses it. 6.2.6: ports forward it if SERR# is
 * enabled towards them; the root port notes who was first, and interrupts if enabled.
 */
static void send_correctable(PCIDevice* pci, uint32_t error) {
  PCIDevice* port = pci;
  uint32_t status;
  uint8_t* aer;

  if (!(pci_get_word(pci->config + pci->exp.exp_cap + PCI_EXP_DEVCTL) & PCI_EXP_DEVCTL_CERE) ||
      (pci_get_long(pci->config + pci->exp.aer_cap + PCI_ERR_COR_MASK) & error)) {
    return;
  }
  do {
    port = port_above(port);
    if (!port || !port->exp.exp_cap ||
        !(pci_get_word(port->config + PCI_BRIDGE_CONTROL) & PCI_BRIDGE_CTL_SERR)) {
      return;
    }
  } while (pcie_cap_get_type(port) != PCI_EXP_TYPE_ROOT_PORT);
  if (!port->exp.aer_cap) {
    return;
  }
  aer = port->config + port->exp.aer_cap;
  status = pci_get_long(aer + PCI_ERR_ROOT_STATUS);
  if (status & PCI_ERR_ROOT_COR_RCV) {
    pci_set_long(aer + PCI_ERR_ROOT_STATUS, status | PCI_ERR_ROOT_MULTI_COR_RCV);
    return;
  }
  pci_set_word(aer + PCI_ERR_ROOT_ERR_SRC, pci_requester_id(pci));
  pci_set_long(aer + PCI_ERR_ROOT_STATUS, status | PCI_ERR_ROOT_COR_RCV);
  if (pci_get_long(aer + PCI_ERR_ROOT_COMMAND) & PCI_ERR_ROOT_CMD_COR_EN) {
    signal_port(port, (status & PCI_ERR_ROOT_IRQ) >> PCI_ERR_ROOT_IRQ_SHIFT);
  }
}
#endif

static void report_error(Mlx5Hca* dev, const HcaPcieFault* fault) {
  PCIDevice* pci = PCI_DEVICE(dev);
  bool correctable = fault->what == HCA_PCIE_CORRECTABLE;
  uint8_t *link, *severity;
  uint32_t capabilities, severities;

  if (!pci->exp.aer_cap || dev->removed) {
    warn_report(TYPE_MLX5_HCA ": %s is not reported: %s", fault->name,
                dev->removed ? "the card is not in its slot" : "a conventional bus has no error reporting");
    return;
  }
  link = pci->config + pci->exp.exp_cap + PCI_EXP_LNKCAP;
  severity = pci->config + pci->exp.aer_cap + PCI_ERR_UNCOR_SEVER;
  capabilities = pci_get_long(link);
  severities = pci_get_long(severity);
  if (fault->what == HCA_PCIE_FATAL) {
    pci_set_long(severity, severities | fault->bit);
  } else if (fault->what == HCA_PCIE_NONFATAL) {
    pci_set_long(severity, severities & ~fault->bit);
  }
  if (qcompat_aer_inject(pci, fault->bit, correctable)) {
    warn_report(TYPE_MLX5_HCA ": QEMU's functions have no error %s", fault->name);
  }
  pci_set_long(severity, severities);
  pci_set_long(link, capabilities); /* QEMU writes the status below it as if it had 32 bits */
#if !QCOMPAT_ROUTES_CORRECTABLE
  if (correctable) {
    send_correctable(pci, fault->bit);
  }
#endif
}

/* ---- removal ---- */

static void set_bits(uint8_t* config, uint16_t bits, bool on) {
  uint16_t value = pci_get_word(config);

  pci_set_word(config, on ? value | bits : value & ~bits);
}

/*
 * The slot of the port above and its link: somebody is there or not. As an event, it makes the interrupt of a
 * port that does hot plug. QEMU only says so of ports that do: without it, a guest that resets the link waits
 * for the link to come up again, in vain.
 */
static void set_presence(PCIDevice* pci, bool present, bool event) {
  PCIDevice* port = port_above(pci);
  uint8_t* exp;
  uint16_t control;

  if (!port || !port->exp.exp_cap ||
      !(pci_get_word(port->config + port->exp.exp_cap + PCI_EXP_FLAGS) & PCI_EXP_FLAGS_SLOT)) {
    return;
  }
  exp = port->config + port->exp.exp_cap;
  set_bits(exp + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDS, present);
  if (pci_get_long(exp + PCI_EXP_LNKCAP) & PCI_EXP_LNKCAP_DLLLARC) {
    set_bits(exp + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_DLLLA, present);
  }
  if (!event || !(pci_get_long(exp + PCI_EXP_SLTCAP) & PCI_EXP_SLTCAP_HPC)) {
    return;
  }
  set_bits(exp + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDC | PCI_EXP_SLTSTA_DLLSC, true);
  control = pci_get_word(exp + PCI_EXP_SLTCTL);
  if ((control & PCI_EXP_SLTCTL_HPIE) && (control & (PCI_EXP_SLTCTL_PDCE | PCI_EXP_SLTCTL_DLLSCE))) {
    signal_port(port, pcie_cap_flags_get_vector(port));
  }
}

/* The event of a link that came or went, which a port that reports its link has to have (7.5.3.10, 7.5.3.11)
 * and QEMU's have not: Linux listens to nothing else if the slot has a button. */
static void add_link_event(PCIDevice* pci) {
  PCIDevice* port = port_above(pci);

  if (port && port->exp.exp_cap &&
      (pci_get_long(port->config + port->exp.exp_cap + PCI_EXP_SLTCAP) & PCI_EXP_SLTCAP_HPC)) {
    set_bits(port->wmask + port->exp.exp_cap + PCI_EXP_SLTCTL, PCI_EXP_SLTCTL_DLLSCE, true);
    set_bits(port->w1cmask + port->exp.exp_cap + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_DLLSC, true);
  }
  /* Whether the card is in its slot: a state that is loaded may have another answer. */
  if (port && port->exp.exp_cap) {
    set_bits(port->cmask + port->exp.exp_cap + PCI_EXP_SLTSTA, PCI_EXP_SLTSTA_PDS, false);
  }
}

/* The functions of a card of two ports lie in one slot. */
static Mlx5Hca* hca_at(PCIBus* bus, unsigned slot, unsigned function) {
  PCIDevice* pci = pci_find_device(bus, pci_bus_num(bus), PCI_DEVFN(slot, function));

  return pci ? (Mlx5Hca*)object_dynamic_cast(OBJECT(pci), TYPE_MLX5_HCA) : NULL;
}

/* False: this one was so already. */
static bool set_function_removed(Mlx5Hca* dev, bool removed) {
  if (!dev->link || dev->removed == removed) {
    return false;
  }
  dev->removed = removed;
  memory_region_set_enabled(&dev->gone, removed);
  return true;
}

/* Without power it forgets all; its port is dark. Put back it is as after power-on: nothing configured. Not
 * before: what its BARs have answered to until now brings ones, as any address below that port does. */
static void follow_power(Mlx5Hca* dev) {
  char why[256] = "";

  if (dev->removed) {
    hca_reset(dev->link->hca); /* at once: nobody may hear of the cable any more */
  } else {
    pci_device_reset(PCI_DEVICE(dev));
  }
  if (hca_inject(dev->link->hca, dev->removed ? "link=down" : "link=up", why, sizeof(why))) {
    warn_report(TYPE_MLX5_HCA ": the cable does not follow: %s", why);
  }
}

static void set_removed(Mlx5Hca* dev, bool removed) {
  PCIDevice* pci = PCI_DEVICE(dev);
  Mlx5Hca* changed[PCI_FUNC_MAX];
  unsigned count = 0;

  for (unsigned f = 0; f < PCI_FUNC_MAX; f++) {
    Mlx5Hca* hca = hca_at(pci_get_bus(pci), PCI_SLOT(pci->devfn), f);

    if (hca && set_function_removed(hca, removed)) {
      changed[count++] = hca;
    }
  }
  for (unsigned i = 0; i < count; i++) { /* none of them serves while another one is reset */
    follow_power(changed[i]);
  }
  if (count) {
    set_presence(pci, !removed, true);
  }
}

static uint64_t gone_read(void* opaque G_GNUC_UNUSED, hwaddr addr G_GNUC_UNUSED,
                          unsigned size G_GNUC_UNUSED) {
  return UINT64_MAX;
}
static void gone_write(void* opaque G_GNUC_UNUSED, hwaddr addr G_GNUC_UNUSED, uint64_t data G_GNUC_UNUSED,
                       unsigned size G_GNUC_UNUSED) {}
static const MemoryRegionOps gone_ops = {
    .read = gone_read,
    .write = gone_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = {.min_access_size = 1, .max_access_size = 8},
    .impl = {.min_access_size = 1, .max_access_size = 8},
};

/* ---- the link, disabled by the guest ---- */

/* 6.6.1: what is below has a conventional reset. The bit of QEMU's ports reads as 0, whatever is written. */
static void port_config_write(PCIDevice* port, uint32_t addr, uint32_t value, int len) {
  PCIBus* bus = pci_bridge_get_sec_bus(PCI_BRIDGE(port));
  uint32_t control = port->exp.exp_cap + PCI_EXP_LNKCTL;

  PCI_DEVICE_GET_CLASS(port)->config_write(port, addr, value, len);
  if (!range_covers_byte(addr, len, control) || !(value >> 8 * (control - addr) & PCI_EXP_LNKCTL_LD)) {
    return;
  }
  for (unsigned f = 0; f < PCI_FUNC_MAX; f++) {
    Mlx5Hca* hca = hca_at(bus, 0, f);

    if (hca && !hca->removed) {
      pci_device_reset(PCI_DEVICE(hca));
    }
  }
}

static void watch_link(PCIDevice* pci) {
  PCIDevice* port = port_above(pci);

  if (pci_bus_is_express(pci_get_bus(pci)) && port && port->exp.exp_cap &&
      PCI_DEVICE_GET_CLASS(port)->config_write) {
    port->config_write = port_config_write;
  }
}

void mlx5_hca_pcie_init(Mlx5Hca* dev) {
  MemoryRegion* msix = &PCI_DEVICE(dev)->msix_exclusive_bar;

  /* The MSI-X tables are QEMU's, and do not ask the device whether it is there. */
  memory_region_init_io(&dev->gone, OBJECT(dev), &gone_ops, dev, TYPE_MLX5_HCA "-gone",
                        memory_region_size(msix));
  memory_region_set_enabled(&dev->gone, false);
  memory_region_add_subregion_overlap(msix, 0, &dev->gone, 1);
  set_presence(PCI_DEVICE(dev), true, false);
  add_link_event(PCI_DEVICE(dev));
  watch_link(PCI_DEVICE(dev));
}

void mlx5_hca_pcie_exit(Mlx5Hca* dev) {
  memory_region_del_subregion(&PCI_DEVICE(dev)->msix_exclusive_bar, &dev->gone);
}

void mlx5_hca_pcie_loaded(Mlx5Hca* dev) { memory_region_set_enabled(&dev->gone, dev->removed); }

void mlx5_hca_pcie_error(void* opaque, int what, uint32_t bit, const char* name) {
  HcaLink* link = ((HcaFunction*)opaque)->link;
  HcaPcieFault fault = {.what = what, .bit = bit};

  g_strlcpy(fault.name, name, sizeof(fault.name));
  if (!link->pcie_faults) {
    link->pcie_faults = g_array_new(false, false, sizeof(HcaPcieFault));
  }
  g_array_append_val(link->pcie_faults, fault);
  mlx5_hca_want_turn(link);
}

static bool run_faults(HcaLink* link) {
  GArray* faults = link->pcie_faults;

  link->wants &= ~(1u << HCA_CALL_TURN);
  if (!faults) {
    return false;
  }
  link->pcie_faults = NULL;
  for (guint i = 0; i < faults->len && link->dev; i++) {
    const HcaPcieFault* fault = &g_array_index(faults, HcaPcieFault, i);

    if (fault->what == HCA_PCIE_REMOVED || fault->what == HCA_PCIE_INSERTED) {
      set_removed(link->dev, fault->what == HCA_PCIE_REMOVED);
    } else {
      report_error(link->dev, fault);
    }
  }
  g_array_free(faults, true);
  return true;
}

static bool free_faults(HcaLink* link) {
  if (!link->pcie_faults) {
    return false;
  }
  g_array_free(link->pcie_faults, true);
  return true;
}

const HcaPart mlx5_hca_pcie = {.calls = {[HCA_CALL_TURN] = run_faults, [HCA_CALL_FREE] = free_faults}};
