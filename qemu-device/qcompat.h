/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The only file that knows which QEMU it is compiled for. Everything else in the shim uses the names below.
 * Tested (tests/qemu-device): 7.2 of Debian 12, 10.0 of Debian 13, 10.2.2, 11.1 before its release.
 * What moved, and when:
 *   7.2.x, 8.1  qemu_new_nic() got a guard against re-entry as an argument, which DeviceState has since then
 *   8.0  hw/pci/pci_device.h split off hw/pci/pci.h; errors are injected by a function, not by the monitor's
 *        command alone; messages of correctable errors find the root port
 *   9.0  qemu_mutex_lock_iothread() became bql_lock() (nearly every entry comes with the lock held)
 *   9.1  the hold phase of a reset got its type as an argument
 *   10.0 virtual functions are made with the physical one, not when they are enabled, and the core resets
 *        SR-IOV; sysemu/ became system/; property arrays are const and end without a marker; pci_pm_init()
 *   10.1 class_init takes const data, interface lists are const
 *   11.0 qdev, boards and irq headers moved to hw/core/, that of plugins to plugins/
 *   11.1 callbacks of plugins (version 7) get their user's data instead of the plugin's id; post_save() of a
 *        saved state cannot fail
 *   until 8.1.0, from 10.0.4 to 10.2: a vCPU's TLB can be older than its memory map (mlx5_hca_vcpu.c)
 */
#ifndef HCASIM_QEMU_DEVICE_QCOMPAT_H
#define HCASIM_QEMU_DEVICE_QCOMPAT_H

#include "qemu/osdep.h"

#include "hw/pci/pci.h"
#if __has_include("hw/pci/pci_device.h")
#include "hw/pci/pci_device.h"
#endif
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci_bridge.h"
#include "hw/pci/pci_bus.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_aer.h"
#include "hw/pci/pcie_sriov.h"
#if __has_include("hw/core/qdev-properties.h")
#include "hw/core/qdev-properties.h"
#include "hw/core/resettable.h"
#else
#include "hw/qdev-properties.h"
#include "hw/resettable.h"
#endif
#include "migration/vmstate.h"
#include "net/net.h"
#include "qapi/error.h"
#include "qapi/qapi-builtin-visit.h"
#if __has_include("qapi/qmp/qdict.h")
#include "qapi/qmp/qdict.h"
#endif
#include "qapi/visitor.h"
#if __has_include("plugins/qemu-plugin.h")
#include "plugins/qemu-plugin.h"
#else
#include "qemu/qemu-plugin.h"
#endif
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/range.h"
#include "qemu/timer.h"
#include "qom/object.h"
#if __has_include("system/system.h")
#include "system/cpu-timers.h"
#include "system/cpus.h"
#include "system/qtest.h"
#include "system/runstate.h"
#include "system/system.h"
#else
#include "sysemu/cpu-timers.h"
#include "sysemu/cpus.h"
#include "sysemu/qtest.h"
#include "sysemu/runstate.h"
#include "sysemu/sysemu.h"
#endif
#if __has_include("exec/icount.h")
#include "exec/icount.h"
#endif

#define HCASIM_QEMU_AT_LEAST(major, minor) \
  (QEMU_VERSION_MAJOR > (major) || (QEMU_VERSION_MAJOR == (major) && QEMU_VERSION_MINOR >= (minor)))

/* A TLB entry holds the number of a section. Here it is looked up in the map that a vCPU was given last,
 * which may be before its TLB is flushed, ... */
#define QCOMPAT_MAP_BEFORE_FLUSH \
  (!HCASIM_QEMU_AT_LEAST(8, 2) && !(HCASIM_QEMU_AT_LEAST(8, 1) && QEMU_VERSION_MICRO >= 1))
/* ... and here in the newest one. */
#define QCOMPAT_SECTIONS_BY_NUMBER \
  (!HCASIM_QEMU_AT_LEAST(11, 0) && \
   (HCASIM_QEMU_AT_LEAST(10, 1) || (HCASIM_QEMU_AT_LEAST(10, 0) && QEMU_VERSION_MICRO >= 4)))
#include "hw/core/cpu.h"
#if __has_include("system/tcg.h")
#include "system/tcg.h"
#else
#include "sysemu/tcg.h"
#endif

/* Of headers for files that are compiled for one target. */
bool cpu_unwind_state_data(CPUState* cpu, uintptr_t host_pc, uint64_t* data);
int cpu_memory_rw_debug(CPUState* cpu, vaddr addr, void* ptr, size_t len, bool is_write);
extern const VMStateDescription vmstate_cpu_common;

FlatView* address_space_get_flatview(AddressSpace* as);
void flatview_unref(FlatView* view);

#if QCOMPAT_SECTIONS_BY_NUMBER
#include "exec/cputlb.h"
#endif

#if HCASIM_QEMU_AT_LEAST(10, 2)
#define tb_flush queue_tb_flush
#endif
void tb_flush(CPUState* cpu);

#if !HCASIM_QEMU_AT_LEAST(9, 0)
#define bql_lock qemu_mutex_lock_iothread
#define bql_unlock qemu_mutex_unlock_iothread
#define bql_locked qemu_mutex_iothread_locked
#define bql_mutex_lock_func qemu_bql_mutex_lock_func
#endif

/* Whether the vCPU may be asked for the time, and interrupted, in the midst of its code (-icount); returns
 * what it was. */
static inline bool qcompat_may_do_io(CPUState* cpu, bool may) {
#if HCASIM_QEMU_AT_LEAST(8, 2)
  bool before = cpu->neg.can_do_io;
  cpu->neg.can_do_io = may;
#else
  bool before = cpu->can_do_io;
  cpu->can_do_io = may;
#endif
  return before;
}

/* A vCPU that does not run yet is asked to leave its code, and that can be seen. */
static inline bool qcompat_exits(CPUState* cpu) {
  cpu_exit(cpu);
#if HCASIM_QEMU_AT_LEAST(8, 2)
  return cpu->neg.icount_decr.u16.high == UINT16_MAX;
#else
  return cpu->icount_decr_ptr->u16.high == UINT16_MAX;
#endif
}

/* Stable releases of 7.2 got the guard late. */
#define QCOMPAT_NIC_GUARD (HCASIM_QEMU_AT_LEAST(7, 2) && QEMU_VERSION_MICRO >= 5)

/* Second argument of class_init, and the qualifier of an interface list. */
#if HCASIM_QEMU_AT_LEAST(10, 1)
typedef const void* QcompatClassData;
#define QCOMPAT_INTERFACE_CONST const
#else
typedef void* QcompatClassData;
#define QCOMPAT_INTERFACE_CONST
#endif

/* Property arrays: `static QCOMPAT_PROPERTY_CONST Property p[] = { ..., QCOMPAT_PROPERTY_END };` */
#if HCASIM_QEMU_AT_LEAST(10, 0)
#define QCOMPAT_PROPERTY_CONST const
#define QCOMPAT_PROPERTY_END
#else
#define QCOMPAT_PROPERTY_CONST
#define QCOMPAT_PROPERTY_END DEFINE_PROP_END_OF_LIST()
#endif

/* Arguments of ResettablePhases.hold. */
#if HCASIM_QEMU_AT_LEAST(9, 1)
#define QCOMPAT_HOLD_ARGS Object *obj, ResetType type G_GNUC_UNUSED
#else
#define QCOMPAT_HOLD_ARGS Object* obj
#endif

/* A network card that is this device. */
static inline NICState* qcompat_new_nic(NetClientInfo* info, NICConf* conf, const char* model,
                                        DeviceState* dev, void* opaque) {
#if HCASIM_QEMU_AT_LEAST(8, 1) || QCOMPAT_NIC_GUARD
  return qemu_new_nic(info, conf, model, dev->id, &dev->mem_reentrancy_guard, opaque);
#else
  return qemu_new_nic(info, conf, model, dev->id, opaque);
#endif
}

/* Adds the power management capability; its position, or < 0 with errp set. */
static inline int qcompat_pm_init(PCIDevice* dev, Error** errp) {
#if HCASIM_QEMU_AT_LEAST(10, 0)
  return pci_pm_init(dev, 0, errp);
#else
  return pci_add_capability(dev, PCI_CAP_ID_PM, 0, PCI_PM_SIZEOF, errp);
#endif
}

/* Whether an injected correctable error is reported to the root port. */
#define QCOMPAT_ROUTES_CORRECTABLE HCASIM_QEMU_AT_LEAST(8, 0)

/* The function detects an error of PCI Express, a bit of its status register; < 0: not taken. */
static inline int qcompat_aer_inject(PCIDevice* dev, uint32_t status, bool correctable) {
#if QCOMPAT_ROUTES_CORRECTABLE
  PCIEAERErr error = {.status = status,
                      .source_id = pci_requester_id(dev),
                      .flags = correctable ? PCIE_AER_ERR_IS_CORRECTABLE : 0};

  return pcie_aer_inject_error(dev, &error);
#else
  /* The command finds the device by its id, and says nothing to a monitor that is none. */
  static char stand_in[] = "hcasim-aer";
  QDict* arguments = qdict_new();
  char* id = DEVICE(dev)->id;
  char number[16];
  uint8_t* registers = dev->config + dev->exp.aer_cap;
  uint32_t at = correctable ? PCI_ERR_COR_STATUS : PCI_ERR_UNCOR_STATUS;

  if (!id) {
    DEVICE(dev)->id = stand_in;
  }
  qdict_put_str(arguments, "id", DEVICE(dev)->id);
  snprintf(number, sizeof(number), "0x%x", status);
  qdict_put_str(arguments, "error_status", number);
  qdict_put_bool(arguments, "correctable", correctable);
  hmp_pcie_aer_inject_error(NULL, arguments);
  DEVICE(dev)->id = id;
  qobject_unref(arguments);
  return pci_get_long(registers + at) & status ? 0 : -1;
#endif
}

/* What a plugin is told about code that has been translated. */
#if QEMU_PLUGIN_VERSION >= 7
#define QCOMPAT_TRANSLATED_ARGS(block) struct qemu_plugin_tb *block, void *data G_GNUC_UNUSED
#define qcompat_on_translation(id, call) qemu_plugin_register_vcpu_tb_trans_cb(id, call, NULL)
#else
#define QCOMPAT_TRANSLATED_ARGS(block) qemu_plugin_id_t id G_GNUC_UNUSED, struct qemu_plugin_tb *block
#define qcompat_on_translation(id, call) qemu_plugin_register_vcpu_tb_trans_cb(id, call)
#endif

/* What VMStateDescription.post_save returns. */
#if HCASIM_QEMU_AT_LEAST(11, 1)
typedef void QcompatPostSave;
#define QCOMPAT_POST_SAVED
#else
typedef int QcompatPostSave;
#define QCOMPAT_POST_SAVED 0
#endif

/* Alternative routing IDs; next: the function that is found after this one, 0: none. */
static inline void qcompat_ari_init(PCIDevice* dev, uint16_t offset, uint8_t next) {
#if HCASIM_QEMU_AT_LEAST(8, 1)
  pcie_ari_init(dev, offset);
#else
  pcie_ari_init(dev, offset, next);
#endif
  pci_set_word(dev->config + offset + PCI_ARI_CAP, next << 8);
}

/* The SR-IOV capability; the first virtual function is so far behind the physical one on its bus, the others
 * follow. From 10.0 on this makes and realizes them. */
static inline bool qcompat_sriov_init(PCIDevice* pf, uint16_t offset, const char* vf_type,
                                      uint16_t vf_device_id, uint16_t total, uint16_t behind, Error** errp) {
#if HCASIM_QEMU_AT_LEAST(10, 0)
  return pcie_sriov_pf_init(pf, offset, vf_type, vf_device_id, total, total, behind, 1, errp);
#else
  (void)errp;
  pcie_sriov_pf_init(pf, offset, vf_type, vf_device_id, total, total, behind, 1);
  return true;
#endif
}

/* A BAR of a virtual function. */
static inline void qcompat_vf_bar(PCIDevice* vf, int number, uint8_t type, MemoryRegion* memory) {
#if HCASIM_QEMU_AT_LEAST(10, 0)
  pci_register_bar(vf, number, type, memory);
#else
  (void)type; /* the physical function has said it */
  pcie_sriov_vf_register_bar(vf, number, memory);
#endif
}

/* The SR-IOV capability has been loaded, and its virtual functions are to be there. False: it has more of
 * them enabled than there are. */
static inline bool qcompat_sriov_loaded(PCIDevice* pf) {
  uint16_t control = pci_get_word(pf->config + pf->exp.sriov_cap + PCI_SRIOV_CTRL);
  uint16_t wanted =
      control & PCI_SRIOV_CTRL_VFE ? pci_get_word(pf->config + pf->exp.sriov_cap + PCI_SRIOV_NUM_VF) : 0;

  if (wanted > pci_get_word(pf->config + pf->exp.sriov_cap + PCI_SRIOV_TOTAL_VF)) {
    return false;
  }
#if !HCASIM_QEMU_AT_LEAST(10, 0)
  pcie_sriov_config_write(pf, pf->exp.sriov_cap + PCI_SRIOV_CTRL, control, 2); /* makes them, or ends them */
#endif
  return pcie_sriov_num_vfs(pf) == wanted;
}

/* The reset of a physical function ends its virtual ones. */
static inline void qcompat_sriov_reset(PCIDevice* pf) {
#if HCASIM_QEMU_AT_LEAST(10, 0)
  (void)pf; /* QEMU has done so */
#else
  uint8_t* cap = pf->config + pf->exp.sriov_cap;

  pcie_sriov_pf_disable_vfs(pf);
  pci_set_word(cap + PCI_SRIOV_CTRL, 0);
  pci_set_word(cap + PCI_SRIOV_NUM_VF, 0);
  pci_set_long(cap + PCI_SRIOV_SYS_PGSIZE, 1);
  for (int i = 0; i < PCI_SRIOV_NUM_BARS; i++) {
    pci_set_long(cap + PCI_SRIOV_BAR + 4 * i, pf->exp.sriov_pf.vf_bar_type[i]);
  }
#endif
}

#endif
