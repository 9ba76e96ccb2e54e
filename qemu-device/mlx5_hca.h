/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside of the QEMU shim: the device state and what its files share.
 *   mlx5_hca.c         PCI function: realize, capabilities, configuration space, reset, properties
 *   mlx5_hca_vsc.c     the vendor specific capability
 *   mlx5_hca_vpd.c     vital product data
 *   mlx5_hca_pcie.c    errors of the PCI Express link, and the card pulled out of its slot, on request
 *   mlx5_hca_time.c    BAR0 accesses, the host operations given to the model, QEMU's clock against SystemC's
 *   mlx5_hca_net.c     the network back end (netdev=)
 *   mlx5_hca_qom.c     counters, statistics and faults as QOM properties
 *   mlx5_hca_plugin.c  entry point of `-plugin`
 *   abi_check.c        refuses any QEMU but the one whose headers were used
 */
#ifndef HCASIM_QEMU_DEVICE_MLX5_HCA_H
#define HCASIM_QEMU_DEVICE_MLX5_HCA_H

#include "qcompat.h"

#include "card/api/hca_api.h"

#define TYPE_MLX5_HCA "mlx5-hca"
OBJECT_DECLARE_SIMPLE_TYPE(Mlx5Hca, MLX5_HCA)

#define MLX5_HCA_BAR_REGISTERS 0 /* 64 bit, so 0 and 1 */
#define MLX5_HCA_BAR_MSIX 2

/*
 * What the model holds of a device. It outlives the device: a guest can make the HCA write (by DMA) the very
 * configuration register that resets or unplugs it, while the model is running. Such requests wait here until
 * the model has returned.
 */
typedef struct HcaNet HcaNet;
typedef struct HcaPcieFault {
  int what; /* enum hca_pcie_error */
  uint32_t bit;
  char name[32];
} HcaPcieFault;
typedef struct HcaLink {
  Mlx5Hca* dev;         /* NULL once the device is gone */
  Mlx5Hca* held;        /* the same, which stays in memory as long as this */
  hca_t* hca;           /* NULL until hca_create() */
  unsigned in_access;   /* depth of DMA and interrupt writes of this HCA in flight */
  bool reset_pending;   /* to be reset when the model returns; no DMA until then */
  bool destroy_pending; /* to be destroyed when the model returns */
  int64_t ahead;        /* ns; bound of the run-ahead, 0 = lockstep */
  uint64_t refused_dma; /* accesses refused on this side of the C API */
  uint64_t refused_mmio;
  HcaNet* net; /* NULL without netdev= */
  MemoryListener memory;
  bool lends;          /* `memory` is registered, and what is in the guest's memory may be read there */
  bool memory_changed; /* what was lent is to be given up when the model returns */
  GArray* pcie_faults; /* HcaPcieFault that wait until the model returns; NULL: none */
  QTAILQ_ENTRY(HcaLink) next;
} HcaLink;

struct Mlx5Hca {
  PCIDevice parent_obj;

  MemoryRegion bar0;
  MemoryRegion gone; /* lies over the MSI-X tables while the card is out of its slot */
  bool removed;      /* it is */
  uint8_t pm_cap;    /* offset of the power management capability */
  uint8_t vsc_cap;   /* and of the vendor specific one, 0 = not there yet */
  uint8_t vpd_cap;   /* and of vital product data, likewise */
  uint32_t vsc_semaphores[64];
  HcaLink* link;

  /* Properties. Strings left unset are not passed on: their default is the model's. */
  char* prop_link;
  char* prop_profile;
  char* prop_time;
  char* prop_trace;
  char* prop_rules;
  char* prop_trace_ring;
  char* prop_capture;
  char* prop_record;
  char* prop_faults;
  char* prop_options;
  char* prop_node_guid;
  char* prop_wire;
  char* prop_cable;
  NICConf nic_conf;
  OnOffAuto prop_bf;
  OnOffAuto prop_sm;
  OnOffAuto prop_coupled;
  uint32_t prop_ahead;
  uint16_t prop_device_id;
};

/* mlx5_hca_time.c */
extern const MemoryRegionOps mlx5_hca_bar0_ops;
extern const hca_host_ops mlx5_hca_host_ops;
HcaLink* mlx5_hca_link_new(Mlx5Hca* dev);
/* The HCA of a link is complete: sees to the clock and to the end of QEMU; elaboration happens once the
 * machine is complete. */
void mlx5_hca_link_started(void);
/* Resets, or ends, the HCA now or as soon as the model has returned. */
void mlx5_hca_link_reset(HcaLink* link);
void mlx5_hca_link_drop(HcaLink* link);
/* Something of a link waits until the model has returned. */
void mlx5_hca_put_off(void);
/* Runs what a call into the model outside of an MMIO access (a fault, a reset) has made due. */
void mlx5_hca_settle(void);
/* How often the timer, not an access, ran the model: each costs a hand-off to another thread. All HCAs. */
uint64_t mlx5_hca_timer_runs(void);

/* A frame that arrives now. False: the model runs, it must wait for mlx5_hca_net_take(). */
bool mlx5_hca_enter_now(HcaLink* link, const void* frame, size_t len);
void mlx5_hca_carrier(HcaLink* link, bool up);

/* mlx5_hca_net.c */
bool mlx5_hca_has_netdev(Mlx5Hca* dev);
/* The MAC address, and with netdev= the network client. */
void mlx5_hca_net_init(Mlx5Hca* dev);
void mlx5_hca_net_exit(HcaLink* link); /* the client goes, with the device */
void mlx5_hca_net_free(HcaLink* link);
/* Gives waiting frames to the model, which must not be running. False: there were none. */
bool mlx5_hca_net_take(HcaLink* link);
/* Asks QEMU for the frames that there was no room for. */
void mlx5_hca_net_resume(HcaLink* link);
int mlx5_hca_net_tx(void* opaque, const void* frame, size_t len);

/* mlx5_hca_vsc.c; init: < 0 with errp set if there is no room */
int mlx5_hca_vsc_init(Mlx5Hca* dev, Error** errp);
void mlx5_hca_vsc_reset(Mlx5Hca* dev);
void mlx5_hca_vsc_before_read(Mlx5Hca* dev, uint32_t addr, int len);
void mlx5_hca_vsc_after_write(Mlx5Hca* dev, uint32_t addr, uint32_t value, int len);

/* mlx5_hca_vpd.c; init: as above */
int mlx5_hca_vpd_init(Mlx5Hca* dev, Error** errp);
void mlx5_hca_vpd_after_write(Mlx5Hca* dev, uint32_t addr, int len);

/* mlx5_hca_pcie.c; init and exit: with the MSI-X tables */
void mlx5_hca_pcie_init(Mlx5Hca* dev);
void mlx5_hca_pcie_exit(Mlx5Hca* dev);
/* hca_host_ops.pcie_error: what it asks for is done by mlx5_hca_pcie_run(). */
void mlx5_hca_pcie_error(void* opaque, int what, uint32_t bit, const char* name);
void mlx5_hca_pcie_run(HcaLink* link);

/* The model's time is exactly the guest's, that of all HCAs. */
bool mlx5_hca_lockstep(void);
/* Null: it makes no access now. */
PCIDevice* mlx5_hca_bus_master(HcaLink* link);
/* What the model was lent goes, now or as soon as it has returned. */
void mlx5_hca_memory_changed(HcaLink* link);

/* mlx5_hca_memory.c; start: once the machine is complete */
void mlx5_hca_memory_start(HcaLink* link);
void mlx5_hca_memory_stop(HcaLink* link);
void* mlx5_hca_dma_map(void* opaque, uint64_t addr, size_t len, int write);

/* mlx5_hca_qom.c */
void mlx5_hca_qom_init(Mlx5Hca* dev);

/* abi_check.c: false = this QEMU does not match the headers, with the reason reported. */
bool mlx5_hca_abi_check(void);

/* mlx5_hca.c */
void mlx5_hca_register_type(void);

#endif
