/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What goes wrong on the PCI Express link, on request (property "inject"):
 *   aer=ERROR        the function detects that error: its AER registers say so, and a message goes up to the
 *                    root port, as the masks and enables of the function and of the ports in between let it
 *   remove=surprise  the card is pulled: all reads bring ones, writes are lost, no DMA and no interrupt comes
 *   remove=none      and is put back, as after power-on
 * A slot whose port does hot plug itself (pciehp) hears of both; under the hot plug of ACPI nobody does, and
 * the guest finds out by what it reads, or when it scans the bus.
 *
 * Names of errors are those of the PCI Express Base Specification, 7.8.4.2 and 7.8.4.5, or QEMU's.
 */
#include "mlx5_hca.h"

static const struct {
  const char *name, *qemu_name;
  uint32_t status;
  bool correctable;
} aer_errors[] = {
    {"data-link-protocol", "DLP", PCI_ERR_UNC_DLP, false},
    {"surprise-down", "SDN", PCI_ERR_UNC_SDN, false},
    {"poisoned-tlp", "POISON_TLP", PCI_ERR_UNC_POISON_TLP, false},
    {"flow-control-protocol", "FCP", PCI_ERR_UNC_FCP, false},
    {"completion-timeout", "COMP_TIME", PCI_ERR_UNC_COMP_TIME, false},
    {"completer-abort", "COMP_ABORT", PCI_ERR_UNC_COMP_ABORT, false},
    {"unexpected-completion", "UNX_COMP", PCI_ERR_UNC_UNX_COMP, false},
    {"receiver-overflow", "RX_OVER", PCI_ERR_UNC_RX_OVER, false},
    {"malformed-tlp", "MALF_TLP", PCI_ERR_UNC_MALF_TLP, false},
    {"ecrc", "ECRC", PCI_ERR_UNC_ECRC, false},
    {"unsupported-request", "UNSUP", PCI_ERR_UNC_UNSUP, false},
    {"acs-violation", "ACSV", PCI_ERR_UNC_ACSV, false},
    {"uncorrectable-internal", "INTN", PCI_ERR_UNC_INTN, false},
    {"receiver", "RCVR", PCI_ERR_COR_RCVR, true},
    {"bad-tlp", "BAD_TLP", PCI_ERR_COR_BAD_TLP, true},
    {"bad-dllp", "BAD_DLLP", PCI_ERR_COR_BAD_DLLP, true},
    {"replay-rollover", "REP_ROLL", PCI_ERR_COR_REP_ROLL, true},
    {"replay-timeout", "REP_TIMER", PCI_ERR_COR_REP_TIMER, true},
    {"advisory-non-fatal", "ADV_NONFATAL", PCI_ERR_COR_ADV_NONFATAL, true},
    {"corrected-internal", "INTERNAL", PCI_ERR_COR_INTERNAL, true},
    {"header-log-overflow", "HL_OVERFLOW", PCI_ERR_COR_HL_OVERFLOW, true},
};

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
 * enabled towards them; the root port notes who was first, and interrupts if told to.
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

static bool inject_error(Mlx5Hca* dev, const char* name, Error** errp) {
  PCIDevice* pci = PCI_DEVICE(dev);
  g_autoptr(GString) names = g_string_new(NULL);

  if (!pci->exp.aer_cap) {
    error_setg(errp, TYPE_MLX5_HCA ": the function is on a conventional bus, which has no error reporting");
    return false;
  }
  if (dev->removed) {
    error_setg(errp, TYPE_MLX5_HCA ": the card is not in its slot (remove=none puts it back)");
    return false;
  }
  for (size_t i = 0; i < ARRAY_SIZE(aer_errors); i++) {
    if (!g_ascii_strcasecmp(name, aer_errors[i].name) || !g_ascii_strcasecmp(name, aer_errors[i].qemu_name)) {
      uint8_t* link = pci->config + pci->exp.exp_cap + PCI_EXP_LNKCAP;
      uint32_t capabilities = pci_get_long(link);
      int refused =
          qcompat_aer_inject(pci, aer_errors[i].qemu_name, aer_errors[i].status, aer_errors[i].correctable);

      pci_set_long(link, capabilities); /* QEMU writes the status below it as if it had 32 bits */
      if (refused) {
        error_setg(errp, TYPE_MLX5_HCA ": QEMU does not take the error %s", aer_errors[i].name);
        return false;
      }
#if !QCOMPAT_ROUTES_CORRECTABLE
      if (aer_errors[i].correctable) {
        send_correctable(pci, aer_errors[i].status);
      }
#endif
      return true;
    }
    g_string_append_printf(names, "%s%s", i ? ", " : "", aer_errors[i].name);
  }
  error_setg(errp, TYPE_MLX5_HCA ": no error '%s'; there are %s", name, names->str);
  return false;
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
}

static bool set_removed(Mlx5Hca* dev, bool removed, Error** errp) {
  PCIDevice* pci = PCI_DEVICE(dev);
  char why[256] = "";

  if (dev->removed == removed) {
    error_setg(errp, TYPE_MLX5_HCA ": the card is %s its slot already", removed ? "out of" : "in");
    return false;
  }
  dev->removed = removed;
  memory_region_set_enabled(&dev->gone, removed);
  /* Without power it forgets all; its port is dark. Put back it is as after power-on: nothing configured. Not
   * before: what its BARs have answered to until now brings ones, as any address below that port does. */
  if (removed) {
    mlx5_hca_link_reset(dev->link);
  } else {
    pci_device_reset(pci);
  }
  if (hca_inject(dev->link->hca, removed ? "link=down" : "link=up", why, sizeof(why))) {
    warn_report(TYPE_MLX5_HCA ": the cable does not follow: %s", why);
  }
  set_presence(pci, !removed, true);
  return true;
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

void mlx5_hca_pcie_init(Mlx5Hca* dev) {
  MemoryRegion* msix = &PCI_DEVICE(dev)->msix_exclusive_bar;

  /* The MSI-X tables are QEMU's, and do not ask the device whether it is there. */
  memory_region_init_io(&dev->gone, OBJECT(dev), &gone_ops, dev, TYPE_MLX5_HCA "-gone",
                        memory_region_size(msix));
  memory_region_set_enabled(&dev->gone, false);
  memory_region_add_subregion_overlap(msix, 0, &dev->gone, 1);
  set_presence(PCI_DEVICE(dev), true, false);
  add_link_event(PCI_DEVICE(dev));
}

void mlx5_hca_pcie_exit(Mlx5Hca* dev) {
  memory_region_del_subregion(&PCI_DEVICE(dev)->msix_exclusive_bar, &dev->gone);
}

bool mlx5_hca_pcie_takes(const char* fault) {
  return g_str_has_prefix(fault, "aer=") || g_str_has_prefix(fault, "remove=");
}

bool mlx5_hca_pcie_inject(Mlx5Hca* dev, const char* fault, Error** errp) {
  const char* value = strchr(fault, '=') + 1;

  if (g_str_has_prefix(fault, "aer=")) {
    return inject_error(dev, value, errp);
  }
  if (!strcmp(value, "surprise")) {
    return set_removed(dev, true, errp);
  }
  if (!strcmp(value, "none")) {
    return set_removed(dev, false, errp);
  }
  error_setg(errp, TYPE_MLX5_HCA ": remove=%s: allowed are surprise, none", value);
  return false;
}

const char* mlx5_hca_pcie_help(void) {
  return "aer              an error that the function reports through AER: completion-timeout, "
         "poisoned-tlp, bad-tlp, ...\n"
         "remove           surprise: the card is pulled out of its slot; none: it is put back\n";
}
