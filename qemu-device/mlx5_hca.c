/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PCI function: identity, BARs, capabilities, configuration space and reset. What the registers
 * do is the model's business, behind hca_api.h. Sources: PCI Express Base Specification
 * (capabilities), and the device and vendor numbers of pci.ids.
 */
#include "mlx5_hca.h"

#define PCI_DEVICE_ID_MLX_CX5_EX 0x1019 /* until the model says which card it is */
#define PCI_SUBSYSTEM_ID_MLX 0x0008
#define PCI_CLASS_INFINIBAND 0x0207

/* Extended capabilities, from the start of the extended space. */
#define AER_OFFSET PCI_CONFIG_SPACE_SIZE
#define DSN_OFFSET (AER_OFFSET + PCI_ERR_SIZEOF)
#define ACS_OFFSET 0x1c0 /* behind those of mlx5_hca_vf.c */
#define ATS_OFFSET (ACS_OFFSET + PCI_ACS_SIZEOF)

/* ---- capabilities ---- */

/* Device control as after a reset: relaxed ordering and no-snoop allowed, 128 byte payloads, 512 byte
 * requests. */
static void reset_device_control(PCIDevice* pci, uint16_t kept) {
  pci_set_word(pci->config + pci->exp.exp_cap + PCI_EXP_DEVCTL,
               PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B | kept);
}

static void set_link(PCIDevice* pci, hca_pcie_link link) {
  uint8_t* exp = pci->config + pci->exp.exp_cap;
  uint32_t speed = MIN(MAX(link.generation, 1), 5); /* the encoding of LnkCap is the generation */
  uint32_t width = link.lanes << 4;

  pci_long_test_and_clear_mask(exp + PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_SLS | PCI_EXP_LNKCAP_MLW);
  pci_long_test_and_set_mask(exp + PCI_EXP_LNKCAP, speed | (width & PCI_EXP_LNKCAP_MLW));
  pci_word_test_and_clear_mask(exp + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_CLS | PCI_EXP_LNKSTA_NLW);
  pci_word_test_and_set_mask(exp + PCI_EXP_LNKSTA, speed | (width & PCI_EXP_LNKSTA_NLW));
  /* Supported link speeds vector: bit 1 = 2.5 GT/s, all up to the highest. */
  pci_set_long(exp + PCI_EXP_LNKCAP2, ((1u << speed) - 1) << 1);
  pci_set_word(exp + PCI_EXP_LNKCTL2, speed);
}

static bool parse_guid(const char* text, uint64_t* guid) {
  g_autoptr(GString) digits = g_string_new(NULL);

  if (g_str_has_prefix(text, "0x")) {
    text += 2;
  }
  for (; *text; text++) {
    if (g_ascii_isxdigit(*text)) {
      g_string_append_c(digits, *text);
    } else if (*text != ':') {
      return false;
    }
  }
  *guid = g_ascii_strtoull(digits->str, NULL, 16);
  return digits->len > 0 && digits->len <= 16;
}

/*
 * Of several functions in one slot: each says that it sends nothing to the others past the port above, so
 * that a guest's IOMMU can tell them apart (6.12.1.2). Last in the list. States from before there was one
 * load, and go on without.
 */
static void add_access_control(PCIDevice* pci) {
  uint16_t last = PCI_CONFIG_SPACE_SIZE, next;

  if (!(pci->cap_present & QEMU_PCI_CAP_MULTIFUNCTION) && !PCI_FUNC(pci->devfn)) {
    return;
  }
  while ((next = PCI_EXT_CAP_NEXT(pci_get_long(pci->config + last)))) {
    last = next;
  }
  pcie_acs_init(pci, ACS_OFFSET);
  pci_set_long(pci->cmask + last, PCI_EXT_CAP(0xffff, 0xf, 0));
  memset(pci->cmask + ACS_OFFSET, 0, PCI_ACS_SIZEOF);
}

static bool add_capabilities(Mlx5Hca* dev, Error** errp) {
  PCIDevice* pci = PCI_DEVICE(dev);
  int pm = qcompat_pm_init(pci, errp);
  uint8_t* exp;

  if (pm < 0) {
    return false;
  }
  dev->function->pm_cap = pm;
  pci_set_word(pci->config + pm + PCI_PM_PMC, 3); /* version 1.2, no PME */
  pci_set_word(pci->config + pm + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
  pci_set_word(pci->wmask + pm + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);

  if (mlx5_hca_vsc_init(dev, errp) < 0) {
    return false;
  }
  if (pcie_endpoint_cap_init(pci, 0) < 0) {
    error_setg(errp, TYPE_MLX5_HCA ": no room for the PCI Express capability");
    return false;
  }
  pcie_cap_deverr_init(pci);
  pcie_cap_flr_init(pci);
  exp = pci->config + pci->exp.exp_cap;
  pci_long_test_and_set_mask(exp + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_EXT_TAG | 2 /* payloads up to 512 bytes */);
  pci_word_test_and_set_mask(pci->wmask + pci->exp.exp_cap + PCI_EXP_DEVCTL,
                             PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_PAYLOAD | PCI_EXP_DEVCTL_EXT_TAG |
                                 PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ);
  reset_device_control(pci, 0);
  set_link(pci, hca_get_pcie_link(dev->link->hca));
  if (mlx5_hca_vpd_init(dev, errp) < 0) {
    return false;
  }

  /* A conventional bus gives no access to the extended space. */
  if (pci_bus_is_express(pci_get_bus(pci))) {
    uint64_t guid;

    if (pcie_aer_init(pci, PCI_ERR_VER, AER_OFFSET, PCI_ERR_SIZEOF, errp) < 0) {
      return false;
    }
    /* Where the first error was: a state that is loaded may have one. */
    pci_long_test_and_clear_mask(pci->cmask + AER_OFFSET + PCI_ERR_CAP,
                                 PCI_ERR_CAP_FEP_MASK | PCI_ERR_CAP_TLP);
    if (dev->prop_node_guid && parse_guid(dev->prop_node_guid, &guid)) {
      pcie_dev_ser_num_init(pci, DSN_OFFSET, guid);
    }
  }
  if (!mlx5_hca_sriov_init(dev, errp)) {
    return false;
  }
  mlx5_hca_ats_init(dev->function, pci, ATS_OFFSET);
  if (pci_bus_is_express(pci_get_bus(pci))) {
    add_access_control(pci);
  }
  return true;
}

static void remove_capabilities(PCIDevice* pci) {
  mlx5_hca_sriov_exit(MLX5_HCA(pci));
  if (msix_present(pci)) {
    mlx5_hca_pcie_exit(MLX5_HCA(pci));
  }
  if (pci->exp.aer_cap) {
    pcie_aer_exit(pci);
  }
  if (pci->exp.exp_cap) {
    pcie_cap_exit(pci);
  }
  msix_uninit_exclusive_bar(pci); /* nothing to do if there is none */
}

/* ---- life cycle ---- */

static void log_message(void* opaque, int level, const char* message) {
  HcaLink* link = ((HcaFunction*)opaque)->link;
  const char* id = link->dev && DEVICE(link->dev)->id ? DEVICE(link->dev)->id : TYPE_MLX5_HCA;

  switch (level) {
    case HCA_LOG_ERROR:
      error_report("%s: %s", id, message);
      break;
    case HCA_LOG_WARNING:
      warn_report("%s: %s", id, message);
      break;
    default:
      info_report("%s: %s", id, message);
      break;
  }
}

static const hca_host_ops host_ops = {
    .dma_read = mlx5_hca_dma_read,
    .dma_write = mlx5_hca_dma_write,
    .dma_map = mlx5_hca_dma_map,
    .msix = mlx5_hca_msix,
    .log = log_message,
    .wire_tx = mlx5_hca_net_tx,
    .watch_fd = mlx5_hca_watch_fd,
    .quiet_until = mlx5_hca_quiet_until,
    .keep_waiting = mlx5_hca_keep_waiting,
    .pcie_error = mlx5_hca_pcie_error,
};

static const HcaPart* const parts[] = {&mlx5_hca_state,
                                       &mlx5_hca_memory,
                                       &mlx5_hca_vcpu,
                                       &mlx5_hca_threads,
                                       &mlx5_hca_meet,
                                       &mlx5_hca_pcie,
                                       &mlx5_hca_net,
                                       &mlx5_hca_wire,
                                       &mlx5_hca_names,
                                       &mlx5_hca_ats,
                                       NULL};

static void mlx5_hca_realize(PCIDevice* pci, Error** errp) {
  Mlx5Hca* dev = MLX5_HCA(pci);
  g_autoptr(GString) options = g_string_new(NULL);
  char why[2048] = "";
  hca_pci_identity identity;
  unsigned sfs;
  int64_t ahead, now;

  if (!mlx5_hca_resolve(dev, &ahead, options, errp)) {
    return;
  }
  dev->link = mlx5_hca_link_new(dev, parts);
  dev->link->ahead = ahead;
  dev->link->guest_pc = dev->prop_guest_pc == ON_OFF_AUTO_ON;
  now = mlx5_hca_enter(); /* an HCA that is plugged in may join another by a cable */
  dev->link->hca = hca_create(options->str, &host_ops, dev->function, why, sizeof(why));
  mlx5_hca_leave(now);
  if (!dev->link->hca) {
    error_setg(errp, TYPE_MLX5_HCA ": %s", *why ? why : "the model could not be made");
    goto fail;
  }

  identity = hca_get_pci_identity(dev->link->hca);
  pci_config_set_device_id(pci->config, identity.device_id);
  pci_config_set_revision(pci->config, identity.revision);
  pci_set_word(pci->config + PCI_SUBSYSTEM_ID, identity.subsystem_id);
  if (hca_is_ethernet(dev->link->hca)) {
    pci_config_set_class(pci->config, PCI_CLASS_NETWORK_ETHERNET);
  }
  memory_region_init_io(&dev->bar0, OBJECT(dev), &mlx5_hca_bar0_ops, &dev->function, TYPE_MLX5_HCA "-bar0",
                        HCA_BAR0_SIZE);
  pci_register_bar(
      pci, MLX5_HCA_BAR_REGISTERS,
      PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
      &dev->bar0);
  sfs = hca_sub_functions(dev->link->hca);
  if (sfs) {
    memory_region_init_io(&dev->sf_windows, OBJECT(dev), &mlx5_hca_sf_ops, &dev->function,
                          TYPE_MLX5_HCA "-sub-functions", pow2ceil((uint64_t)sfs * HCA_SF_WINDOW_SIZE));
    pci_register_bar(
        pci, MLX5_HCA_BAR_SF,
        PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
        &dev->sf_windows);
  }
  if (msix_init_exclusive_bar(pci, HCA_MSIX_VECTORS, sfs ? MLX5_HCA_BAR_MSIX_WITH_SF : MLX5_HCA_BAR_MSIX,
                              errp)) {
    goto fail;
  }
  for (unsigned v = 0; v < HCA_MSIX_VECTORS; v++) {
    msix_vector_use(pci, v);
  }
  mlx5_hca_pcie_init(dev);
  if (!add_capabilities(dev, errp)) {
    remove_capabilities(pci);
    goto fail;
  }
  mlx5_hca_net_init(dev);
  mlx5_hca_qom_init(dev);
  mlx5_hca_link_started(dev->link);
  return;

fail:
  mlx5_hca_link_drop(dev->link);
  dev->link = NULL;
}

static void mlx5_hca_exit(PCIDevice* pci) {
  Mlx5Hca* dev = MLX5_HCA(pci);
  HcaLink* link = dev->link;

  if (!link) {
    return; /* ended with QEMU */
  }
  mlx5_hca_net_exit(link);
  mlx5_hca_sriov_exit(dev); /* virtual functions leave a card that is there */
  mlx5_hca_ats_exit(dev->function, pci);
  dev->link = NULL;
  mlx5_hca_link_drop(link);
  remove_capabilities(pci);
}

/* Function level reset, reset of the bus above, system reset. */
static void mlx5_hca_reset_hold(QCOMPAT_HOLD_ARGS) {
  PCIDevice* pci = PCI_DEVICE(obj);
  Mlx5Hca* dev = MLX5_HCA(obj);
  uint16_t control;
  bool flr;

  if (!dev->link) {
    return;
  }
  control = pci_get_word(pci->config + pci->exp.exp_cap + PCI_EXP_DEVCTL);
  flr = control & PCI_EXP_DEVCTL_BCR_FLR; /* QEMU leaves it there meanwhile */
  pcie_cap_deverr_reset(pci);
  /* 6.6.2: payloads stay as large as they are on this link. */
  reset_device_control(pci, flr ? control & PCI_EXP_DEVCTL_PAYLOAD : 0);
  pci_set_word(pci->config + dev->function->pm_cap + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
  mlx5_hca_ats_reset(dev->function, pci);
  mlx5_hca_sriov_reset(dev);
  if (flr) {
    mlx5_hca_function_reset(dev->function);
  } else {
    mlx5_hca_card_reset(dev->link);
  }
}

static uint32_t mlx5_hca_config_read(PCIDevice* pci, uint32_t addr, int len) {
  uint32_t value;

  if (MLX5_HCA(pci)->removed) {
    return UINT32_MAX >> (32 - 8 * len);
  }
  if (mlx5_hca_vsc_read(MLX5_HCA(pci), addr, len, &value)) {
    return value;
  }
  return pci_default_read_config(pci, addr, len);
}

static void mlx5_hca_config_write(PCIDevice* pci, uint32_t addr, uint32_t value, int len) {
  if (MLX5_HCA(pci)->removed) {
    return;
  }
  pci_default_write_config(pci, addr, value, len);
  pcie_cap_flr_write_config(pci, addr, value, len);
  if (pci->exp.aer_cap) {
    pcie_aer_write_config(pci, addr, value, len);
  }
  mlx5_hca_vsc_after_write(MLX5_HCA(pci), addr, value, len);
  mlx5_hca_vpd_after_write(MLX5_HCA(pci), addr, len);
  if (MLX5_HCA(pci)->link) {
    mlx5_hca_ats_after_write(MLX5_HCA(pci)->function, pci, addr, len);
  }
}

/* ---- class ---- */

static void mlx5_hca_class_init(ObjectClass* klass, QcompatClassData data G_GNUC_UNUSED) {
  DeviceClass* dc = DEVICE_CLASS(klass);
  PCIDeviceClass* k = PCI_DEVICE_CLASS(klass);

  k->realize = mlx5_hca_realize;
  k->exit = mlx5_hca_exit;
  k->config_read = mlx5_hca_config_read;
  k->config_write = mlx5_hca_config_write;
  k->vendor_id = PCI_VENDOR_ID_MLX;
  k->device_id = PCI_DEVICE_ID_MLX_CX5_EX;
  k->subsystem_vendor_id = PCI_VENDOR_ID_MLX;
  k->subsystem_id = PCI_SUBSYSTEM_ID_MLX;
  k->class_id = PCI_CLASS_INFINIBAND;
  RESETTABLE_CLASS(klass)->phases.hold = mlx5_hca_reset_hold;
  dc->desc = "mlx5-class host channel adapter, modelled in SystemC (hcasim)";
  dc->vmsd = &mlx5_hca_vmstate;
  set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
  mlx5_hca_add_properties(klass);
}

static QCOMPAT_INTERFACE_CONST InterfaceInfo mlx5_hca_interfaces[] = {{INTERFACE_PCIE_DEVICE}, {}};

static const TypeInfo mlx5_hca_type = {
    .name = TYPE_MLX5_HCA,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(Mlx5Hca),
    .class_init = mlx5_hca_class_init,
    .interfaces = mlx5_hca_interfaces,
};

void mlx5_hca_register_type(void) { type_register_static(&mlx5_hca_type); }
