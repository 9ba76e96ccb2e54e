/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtual functions: the SR-IOV and ARI capabilities of the physical one, and the device that each of them is
 * on the bus, with a requester ID, interrupts, bus mastering and resets of its own (SR-IOV 1.1). What they
 * are to the card is there from its start on (hca_functions()); a device here only joins one of them to the
 * bus. QEMU 7.2 makes these devices when the guest sets VF Enable, also in an access that the model itself
 * makes, and ends them when it clears it; from 10.0 on they are there with the physical one.
 */
#include "mlx5_hca.h"

typedef struct Mlx5HcaVf {
  PCIDevice parent_obj;

  MemoryRegion bar0;
  MemoryRegion msix;
  HcaFunction* function; /* NULL: the card has gone */
} Mlx5HcaVf;
DECLARE_INSTANCE_CHECKER(Mlx5HcaVf, MLX5_HCA_VF, TYPE_MLX5_HCA_VF)

/* Extended capabilities of the physical function, behind those of mlx5_hca.c; and of a virtual one. */
#define PF_ARI_OFFSET 0x160
#define PF_SRIOV_OFFSET 0x180
#define VF_ARI_OFFSET PCI_CONFIG_SPACE_SIZE
#define VF_ATS_OFFSET (VF_ARI_OFFSET + PCI_ARI_SIZEOF)

/* BAR 0 registers, BAR 2 MSI-X: table, and from the middle of the page pending bits. Both lie in the window
 * for prefetchable memory, the only one that a port has room in for many functions. */
#define VF_BAR_TYPE \
  (PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH)
#define VF_MSIX_SIZE 0x1000
#define VF_PBA_OFFSET 0x800
QEMU_BUILD_BUG_ON(HCA_VF_MSIX_VECTORS* PCI_MSIX_ENTRY_SIZE > VF_PBA_OFFSET);

/* ---- the physical function ---- */

bool mlx5_hca_sriov_init(Mlx5Hca* dev, Error** errp) {
  PCIDevice* pci = PCI_DEVICE(dev);
  HcaLink* link = dev->link;
  unsigned total = hca_functions(link->hca) - 1;
  unsigned function = PCI_FUNC(pci->devfn);
  /* Of a card of two ports, the physical functions are 0 and 1; then come the first one's virtual functions,
   * and the second one's. */
  unsigned behind = !dev->prop_card ? 1 : function == 0 ? 2 : total + 1;

  if (!total) {
    return true;
  }
  if (!pci_bus_is_express(pci_get_bus(pci))) {
    error_setg(errp, TYPE_MLX5_HCA ": vfs=%u: SR-IOV needs a PCI Express slot", total);
    error_append_hint(errp, "Put the HCA behind a -device pcie-root-port.\n");
    return false;
  }
  if (pci->devfn + behind + total > PCI_DEVFN_MAX) {
    /* Between the second port and its own, the first one's have to fit, too, and are as many. */
    unsigned room = PCI_DEVFN_MAX - pci->devfn - (dev->prop_card && function == 0 ? 2 : 1);
    error_setg(errp,
               TYPE_MLX5_HCA ": vfs=%u: the bus has no numbers for them behind function %d; there are for %u",
               total, pci->devfn, dev->prop_card && function != 0 ? room / 2 : room);
    error_append_hint(errp, "Ask for fewer, or put the HCA behind a -device pcie-root-port of its own.\n");
    return false;
  }
  link->virtuals = g_new0(HcaFunction, total);
  link->virtual_count = total;
  for (unsigned i = 0; i < total; i++) {
    link->virtuals[i].link = link;
    link->virtuals[i].number = i + 1;
    link->virtuals[i].vectors = HCA_VF_MSIX_VECTORS;
  }
  qcompat_ari_init(pci, PF_ARI_OFFSET, dev->prop_card && function == 0 ? 1 : 0);
  if (!qcompat_sriov_init(pci, PF_SRIOV_OFFSET, TYPE_MLX5_HCA_VF,
                          hca_get_pci_identity(link->hca).vf_device_id, total, behind, errp)) {
    pci->exp.sriov_cap = 0; /* QEMU has taken back what there was of them */
    return false;
  }
  pcie_sriov_pf_init_vf_bar(pci, MLX5_HCA_BAR_REGISTERS, VF_BAR_TYPE, HCA_VF_BAR0_SIZE);
  pcie_sriov_pf_init_vf_bar(pci, MLX5_HCA_BAR_MSIX, VF_BAR_TYPE, VF_MSIX_SIZE);
  return true;
}

void mlx5_hca_sriov_exit(Mlx5Hca* dev) {
  PCIDevice* pci = PCI_DEVICE(dev);

  if (pci->exp.sriov_cap) {
    pcie_sriov_pf_exit(pci);
    pci->exp.sriov_cap = 0; /* once */
  }
}

bool mlx5_hca_sriov_loaded(Mlx5Hca* dev) {
  return !PCI_DEVICE(dev)->exp.sriov_cap || qcompat_sriov_loaded(PCI_DEVICE(dev));
}

void mlx5_hca_sriov_reset(Mlx5Hca* dev) {
  if (PCI_DEVICE(dev)->exp.sriov_cap) {
    qcompat_sriov_reset(PCI_DEVICE(dev));
  }
}

/* ---- the virtual functions ---- */

/* Of hca_host_ops what a function has of its own. */
static const hca_host_ops function_ops = {
    .dma_read = mlx5_hca_dma_read,
    .dma_write = mlx5_hca_dma_write,
    .dma_map = mlx5_hca_dma_map,
    .msix = mlx5_hca_msix,
};

/* As after a reset: as in mlx5_hca.c. */
static void reset_device_control(PCIDevice* pci) {
  pci_set_word(pci->config + pci->exp.exp_cap + PCI_EXP_DEVCTL,
               PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B);
}

static bool add_capabilities(PCIDevice* pci, Error** errp) {
  if (pcie_endpoint_cap_init(pci, 0) < 0) {
    error_setg(errp, TYPE_MLX5_HCA_VF ": no room for the PCI Express capability");
    return false;
  }
  pcie_cap_deverr_init(pci);
  pcie_cap_flr_init(pci);
  pci_long_test_and_set_mask(pci->config + pci->exp.exp_cap + PCI_EXP_DEVCAP,
                             PCI_EXP_DEVCAP_EXT_TAG | 2 /* payloads up to 512 bytes */);
  reset_device_control(pci);
  qcompat_ari_init(pci, VF_ARI_OFFSET, 0);
  return true;
}

static void vf_realize(PCIDevice* pci, Error** errp) {
  Mlx5HcaVf* vf = MLX5_HCA_VF(pci);
  PCIDevice* pf = pcie_sriov_get_pf(pci);
  Mlx5Hca* dev = pf ? MLX5_HCA(pf) : NULL;
  unsigned index = pf ? pcie_sriov_vf_number(pci) : 0;
  HcaFunction* function;

  if (!dev || !dev->link || index >= dev->link->virtual_count) {
    error_setg(errp, TYPE_MLX5_HCA_VF ": the card has no such function");
    return;
  }
  function = &dev->link->virtuals[index];
  pci_config_set_class(pci->config, pci_get_word(pf->config + PCI_CLASS_DEVICE));
  pci_config_set_revision(pci->config, pci_get_byte(pf->config + PCI_REVISION_ID));
  pci_set_word(pci->config + PCI_SUBSYSTEM_ID, pci_get_word(pf->config + PCI_SUBSYSTEM_ID));
  if (!add_capabilities(pci, errp)) {
    return;
  }
  memory_region_init_io(&vf->bar0, OBJECT(vf), &mlx5_hca_bar0_ops, &vf->function, TYPE_MLX5_HCA_VF "-bar0",
                        HCA_VF_BAR0_SIZE);
  memory_region_init(&vf->msix, OBJECT(vf), TYPE_MLX5_HCA_VF "-msix", VF_MSIX_SIZE);
  qcompat_vf_bar(pci, MLX5_HCA_BAR_REGISTERS, VF_BAR_TYPE, &vf->bar0);
  qcompat_vf_bar(pci, MLX5_HCA_BAR_MSIX, VF_BAR_TYPE, &vf->msix);
  if (msix_init(pci, HCA_VF_MSIX_VECTORS, &vf->msix, MLX5_HCA_BAR_MSIX, 0, &vf->msix, MLX5_HCA_BAR_MSIX,
                VF_PBA_OFFSET, 0, errp)) {
    pcie_cap_exit(pci);
    return;
  }
  for (unsigned v = 0; v < HCA_VF_MSIX_VECTORS; v++) {
    msix_vector_use(pci, v);
  }
  /* follow_table_size(): a state that is loaded may have another one. */
  pci_word_test_and_clear_mask(pci->cmask + pci->msix_cap + PCI_MSIX_FLAGS, PCI_MSIX_FLAGS_QSIZE);
  mlx5_hca_ats_init(function, pci, VF_ATS_OFFSET);
  vf->function = function;
  function->owner = &vf->function;
  function->pci = pci;
  hca_attach_function(function->link->hca, function->number, &function_ops, function);
  if (hca_sim_started()) {
    mlx5_hca_memory_watch(function);
  }
}

static void vf_exit(PCIDevice* pci) {
  Mlx5HcaVf* vf = MLX5_HCA_VF(pci);
  HcaFunction* function = vf->function;

  if (function) {
    mlx5_hca_memory_unwatch(function);
    mlx5_hca_ats_exit(function, pci);
    hca_attach_function(function->link->hca, function->number, NULL, NULL);
    vf->function = NULL;
    function->owner = NULL;
    function->pci = NULL;
    mlx5_hca_function_reset(function);
  }
  msix_uninit(pci, &vf->msix, &vf->msix);
  pcie_cap_exit(pci);
}

/* Function level reset, reset of the bus above, system reset, and from QEMU 10.0 on VF Enable. */
static void vf_reset_hold(QCOMPAT_HOLD_ARGS) {
  PCIDevice* pci = PCI_DEVICE(obj);
  Mlx5HcaVf* vf = MLX5_HCA_VF(obj);

  if (vf->function) {
    pcie_cap_deverr_reset(pci);
    reset_device_control(pci);
    mlx5_hca_ats_reset(vf->function, pci);
    mlx5_hca_function_reset(vf->function);
  }
}

static bool card_is_gone(PCIDevice* pci) {
  HcaFunction* function = MLX5_HCA_VF(pci)->function;

  return !function || function->link->dev->removed;
}

/* The table is as large as the manager wants it: QEMU's has entries for the largest. */
static void follow_table_size(PCIDevice* pci) {
  HcaFunction* function = MLX5_HCA_VF(pci)->function;
  uint8_t* control = pci->config + pci->msix_cap + PCI_MSIX_FLAGS;
  unsigned entries = hca_function_vectors(function->link->hca, function->number);

  if (entries && entries <= HCA_VF_MSIX_VECTORS) {
    pci_set_word(control, (pci_get_word(control) & ~PCI_MSIX_FLAGS_QSIZE) | (entries - 1));
  }
}

static uint32_t vf_config_read(PCIDevice* pci, uint32_t addr, int len) {
  if (card_is_gone(pci)) {
    return UINT32_MAX >> (32 - 8 * len);
  }
  follow_table_size(pci);
  return pci_default_read_config(pci, addr, len);
}

static void vf_config_write(PCIDevice* pci, uint32_t addr, uint32_t value, int len) {
  if (card_is_gone(pci)) {
    return;
  }
  pci_default_write_config(pci, addr, value, len);
  pcie_cap_flr_write_config(pci, addr, value, len);
  if (MLX5_HCA_VF(pci)->function) {
    mlx5_hca_ats_after_write(MLX5_HCA_VF(pci)->function, pci, addr, len);
  }
}

/* Those that are off (from QEMU 10.0 on they are there) have nothing to be saved. */
static bool vf_is_on(void* opaque) {
  PCIDevice* vf = opaque;
  PCIDevice* pf = pcie_sriov_get_pf(vf);

  return pf && pcie_sriov_vf_number(vf) < pcie_sriov_num_vfs(pf);
}

static int vf_post_load(void* opaque, int version G_GNUC_UNUSED) {
  Mlx5HcaVf* vf = opaque;

  if (vf->function) {
    mlx5_hca_ats_loaded(vf->function, PCI_DEVICE(vf));
  }
  return 0;
}

static const VMStateDescription vf_vmstate = {
    .name = TYPE_MLX5_HCA_VF,
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = vf_is_on,
    .post_load = vf_post_load,
    .fields = (const VMStateField[]){VMSTATE_PCI_DEVICE(parent_obj, Mlx5HcaVf),
                                     VMSTATE_MSIX(parent_obj, Mlx5HcaVf), VMSTATE_END_OF_LIST()}};

static void vf_class_init(ObjectClass* klass, QcompatClassData data G_GNUC_UNUSED) {
  DeviceClass* dc = DEVICE_CLASS(klass);
  PCIDeviceClass* k = PCI_DEVICE_CLASS(klass);

  k->realize = vf_realize;
  k->exit = vf_exit;
  k->config_read = vf_config_read;
  k->config_write = vf_config_write;
  k->vendor_id = PCI_VENDOR_ID_MLX;
  k->subsystem_vendor_id = PCI_VENDOR_ID_MLX;
  RESETTABLE_CLASS(klass)->phases.hold = vf_reset_hold;
  dc->desc = "virtual function of an mlx5-class host channel adapter";
  dc->vmsd = &vf_vmstate;
  dc->user_creatable = false;
  set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
}

static QCOMPAT_INTERFACE_CONST InterfaceInfo vf_interfaces[] = {{INTERFACE_PCIE_DEVICE}, {}};

static const TypeInfo vf_type = {
    .name = TYPE_MLX5_HCA_VF,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(Mlx5HcaVf),
    .class_init = vf_class_init,
    .interfaces = vf_interfaces,
};

void mlx5_hca_vf_register_type(void) { type_register_static(&vf_type); }
