/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ATS (PCIe base specification, 10; option ats=on): the capability, by which a driver has the function keep
 * translations of its IOMMU, and what an IOMMU with such devices (intel-iommu,device-iotlb=on) invalidates. A
 * DMA goes through QEMU's address space all the same, and finds what the IOMMU says then: what the model
 * keeps is a matter of time.
 */
#include "mlx5_hca.h"

void mlx5_hca_ats_init(HcaFunction* function, PCIDevice* pci, uint16_t offset) {
  if (hca_shows_ats(function->link->hca) && pci_bus_is_express(pci_get_bus(pci))) {
    pcie_ats_init(pci, offset, true);
  }
}

static bool is_to_tell(HcaFunction* function) {
  return function->ats_stale || function->ats_told != function->ats;
}

/* The model does not run. */
static void tell_now(HcaFunction* function) {
  HcaLink* link = function->link;

  mlx5_hca_call_begin();
  if (function->ats_told != function->ats) {
    function->ats_told = function->ats;
    hca_function_ats(link->hca, function->number, function->ats);
  }
  if (function->ats_stale) {
    function->ats_stale = false;
    hca_function_invalidate(link->hca, function->number, function->ats_from, function->ats_length);
  }
  mlx5_hca_call_end();
}

/* An invalidation, or a change of the register, that an access of the model's makes waits for its return. */
static void tell(HcaFunction* function) {
  if (mlx5_hca_may_enter()) {
    tell_now(function);
  } else {
    mlx5_hca_want_turn(function->link);
  }
}

static bool turn_of(HcaFunction* function) {
  if (!is_to_tell(function)) {
    return false;
  }
  tell_now(function);
  return true;
}

/* The bit of `wants` is taken away by mlx5_hca_pcie.c, a part of each link as well. */
static bool turn(HcaLink* link) {
  bool any = turn_of(&link->physical);

  for (unsigned i = 0; i < link->virtual_count; i++) {
    any |= turn_of(&link->virtuals[i]);
  }
  return any;
}

const HcaPart mlx5_hca_ats = {.calls = {[HCA_CALL_TURN] = turn}};

static void on_invalidation(IOMMUNotifier* notifier, IOMMUTLBEntry* entry) {
  HcaFunction* function = container_of(notifier, HcaFunction, ats_notifier);

  if (function->ats_stale) { /* one waits already: all of them */
    function->ats_from = function->ats_length = 0;
  } else {
    function->ats_from = entry->iova;
    function->ats_length = entry->addr_mask + 1; /* 0: of all */
    function->ats_stale = true;
  }
  tell(function);
}

/* The IOMMU's region may be in the address space in several pieces, with others on top of it. */
static void on_region_add(MemoryListener* listener, MemoryRegionSection* section) {
  HcaFunction* function = container_of(listener, HcaFunction, ats_listener);

  if (!memory_region_is_iommu(section->mr) || (function->ats_region && function->ats_region != section->mr)) {
    return;
  }
  if (!function->ats_region) {
    iommu_notifier_init(&function->ats_notifier, on_invalidation, IOMMU_NOTIFIER_DEVIOTLB_UNMAP, 0,
                        HWADDR_MAX, 0);
    /* One that knows no such devices refuses: it does not invalidate anything of theirs. */
    if (memory_region_register_iommu_notifier(section->mr, &function->ats_notifier, NULL)) {
      return;
    }
    function->ats_region = section->mr;
  }
  function->ats_pieces++;
}

static void on_region_del(MemoryListener* listener, MemoryRegionSection* section) {
  HcaFunction* function = container_of(listener, HcaFunction, ats_listener);

  if (function->ats_region != section->mr || --function->ats_pieces) {
    return;
  }
  memory_region_unregister_iommu_notifier(section->mr, &function->ats_notifier);
  function->ats_region = NULL;
}

static void listen_to(HcaFunction* function, PCIDevice* pci, bool on) {
  AddressSpace* as = pci_device_iommu_address_space(pci);

  if (on == function->ats_listens) {
    return;
  }
  if (!on) {
    function->ats_listens = false;
    memory_listener_unregister(&function->ats_listener); /* which takes its regions away */
  } else if (as != &address_space_memory) {
    function->ats_listens = true;
    function->ats_listener = (MemoryListener){
        .name = TYPE_MLX5_HCA "-ats", .region_add = on_region_add, .region_del = on_region_del};
    memory_listener_register(&function->ats_listener, as);
  }
}

static void set(HcaFunction* function, PCIDevice* pci, bool on) {
  if (on == function->ats) {
    return;
  }
  function->ats = on;
  listen_to(function, pci, on);
  tell(function);
}

static uint8_t* control_of(PCIDevice* pci) { return pci->config + pci->exp.ats_cap + PCI_ATS_CTRL; }

void mlx5_hca_ats_after_write(HcaFunction* function, PCIDevice* pci, uint32_t addr, int len) {
  if (pci->exp.ats_cap && ranges_overlap(addr, len, pci->exp.ats_cap, PCI_EXT_CAP_ATS_SIZEOF)) {
    set(function, pci, pci_get_word(control_of(pci)) & PCI_ATS_CTRL_ENABLE);
  }
}

void mlx5_hca_ats_reset(HcaFunction* function, PCIDevice* pci) {
  if (pci->exp.ats_cap) {
    pci_set_word(control_of(pci), 0);
    set(function, pci, false);
  }
}

void mlx5_hca_ats_exit(HcaFunction* function, PCIDevice* pci) {
  if (pci->exp.ats_cap) {
    set(function, pci, false);
  }
}

void mlx5_hca_ats_loaded(HcaFunction* function, PCIDevice* pci) {
  if (pci->exp.ats_cap) {
    function->ats = function->ats_told = pci_get_word(control_of(pci)) & PCI_ATS_CTRL_ENABLE;
    listen_to(function, pci, function->ats);
  }
}
