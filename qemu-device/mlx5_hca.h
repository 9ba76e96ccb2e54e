/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside of the QEMU shim: the device state and what its files share. A file calls only files that stand
 * below it in this list, which tests/qemu-device/order_test.py checks against the object files. What a lower
 * file has to say to a higher one goes through tables that it was given: HcaPart below, and hca_host_ops of
 * the C API.
 *
 * - mlx5_hca_plugin.c   entry point of `-plugin`
 * - abi_check.c         refuses any QEMU but the one whose headers were used
 * - mlx5_hca.c          PCI function: realize, capabilities, configuration space, reset
 * - mlx5_hca_state.c    savevm, loadvm, migrate
 * - mlx5_hca_vf.c       virtual functions: the SR-IOV capability, and the type of the devices that it makes
 * - mlx5_hca_options.c  properties, and the options of the model that they make
 * - mlx5_hca_qom.c      counters, statistics and faults as QOM properties
 * - mlx5_hca_vpd.c      vital product data
 * - mlx5_hca_vsc.c      the vendor specific capability
 * - mlx5_hca_pcie.c     errors of the PCI Express link, and the card pulled out of its slot, on request
 * - mlx5_hca_net.c      the network back end (netdev=)
 * - mlx5_hca_ats.c      ATS: translations that the card keeps, and the IOMMU takes back
 * - mlx5_hca_memory.c   guest memory that the model reads where it lies
 * - mlx5_hca_vcpu.c     the memory map that a vCPU of TCG goes by
 * - mlx5_hca_wire.c     wires to other processes
 * - mlx5_hca_threads.c  the global lock is worth waiting for, the main loop goes first
 * - mlx5_hca_meet.c     meetings with another guest in the midst of a vCPU's code (lockstep)
 * - mlx5_hca_blocks.c   calls on the way of a vCPU of TCG
 * - mlx5_hca_registers.c  accesses to the model's registers
 * - mlx5_hca_time.c     QEMU's clock against SystemC's
 * - mlx5_hca_dma.c      DMA and interrupts
 * - mlx5_hca_code.c     where the guest's code is that writes to a register
 */
#ifndef HCASIM_QEMU_DEVICE_MLX5_HCA_H
#define HCASIM_QEMU_DEVICE_MLX5_HCA_H

#include "qcompat.h"

#include "card/api/hca_api.h"
#include "mlx5_hca_properties.h"

#define TYPE_MLX5_HCA "mlx5-hca"
OBJECT_DECLARE_SIMPLE_TYPE(Mlx5Hca, MLX5_HCA)
#define TYPE_MLX5_HCA_VF "mlx5-hca-vf"

#define PCI_VENDOR_ID_MLX 0x15b3
#define MLX5_HCA_BAR_REGISTERS 0 /* 64 bit, so 0 and 1 */
#define MLX5_HCA_BAR_MSIX 2
/* Of a card that can have sub-functions: where their drivers look for them. */
#define MLX5_HCA_BAR_SF 2 /* 64 bit, so 2 and 3 */
#define MLX5_HCA_BAR_MSIX_WITH_SF 4

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
typedef struct HcaLink HcaLink;

/*
 * A function of the card, as the model knows it: the `opaque` of its accesses. The physical one is there as
 * long as the card, virtual ones come and go with VF Enable, also while the model is running.
 */
typedef struct HcaFunction HcaFunction;
struct HcaFunction {
  HcaLink* link;
  unsigned number;     /* 0: the physical one */
  unsigned vectors;    /* of MSI-X */
  PCIDevice* pci;      /* NULL: not on the bus */
  HcaFunction** owner; /* the device's pointer to this, which becomes NULL when the card goes first */
  uint8_t pm_cap;      /* offset of the power management capability, 0 = none */
  bool reset_pending;  /* to be reset when the model returns; no DMA until then */
  bool conventional;   /* and that is one of the whole card, not of the function alone */
  bool maps;           /* `memory` is registered, and the model may read the guest's memory in place */
  MemoryListener memory;
  bool ats, ats_told;       /* ATS is on: by the register, as far as the model knows */
  bool ats_stale;           /* translations are to be taken back: */
  uint64_t ats_from;        /* from here, bytes; */
  uint64_t ats_length;      /* 0: all */
  bool ats_listens;         /* ats_listener is registered */
  unsigned ats_pieces;      /* of ats_region that it knows of */
  MemoryRegion* ats_region; /* the IOMMU's, at which ats_notifier is registered; NULL: none */
  MemoryListener ats_listener;
  IOMMUNotifier ats_notifier;
};

/*
 * What mlx5_hca_time.c calls of a part of the shim for each link; each call says whether there was anything
 * to do, and each may be missing. The last three are made only if the link's `wants` asks for them (bit 1 <<
 * HCA_CALL_...), which the part sets and takes away.
 */
typedef enum HcaCall {
  HCA_CALL_START,  /* the machine is complete, or was before */
  HCA_CALL_STOP,   /* the device goes, having started; the model may be running */
  HCA_CALL_FREE,   /* so does the link */
  HCA_CALL_TURN,   /* the model has returned; resets that are made here wait for the next round */
  HCA_CALL_FRAMES, /* the model has returned, and takes frames */
  HCA_CALL_ROOM,   /* all is done: more may be asked for */
  HCA_CALLS
} HcaCall;
typedef struct HcaPart {
  bool (*calls[HCA_CALLS])(HcaLink* link);
} HcaPart;

struct HcaLink {
  const HcaPart* const* parts; /* ends with NULL */
  unsigned wants;
  Mlx5Hca* dev;         /* NULL once the device is gone */
  Mlx5Hca* held;        /* the same, which stays in memory as long as this */
  hca_t* hca;           /* NULL until hca_create() */
  HcaFunction physical; /* its `opaque` is that of all callbacks which do not concern one function */
  HcaFunction* virtuals;
  unsigned virtual_count;
  unsigned in_access;   /* depth of DMA and interrupt writes of this HCA in flight */
  bool started;         /* its parts are */
  bool destroy_pending; /* to be destroyed when the model returns */
  int64_t ahead;        /* ns; bound of the run-ahead, 0 = lockstep */
  uint64_t refused_dma; /* accesses refused on this side of the C API */
  uint64_t refused_mmio;
  HcaNet* net;         /* NULL without netdev= */
  bool guest_pc;       /* the trace says which code of the guest writes to registers */
  bool memory_changed; /* what was mapped is to be given up when the model returns */
  GArray* pcie_faults; /* HcaPcieFault that wait until the model returns; NULL: none */
  QTAILQ_ENTRY(HcaLink) next;
};

struct Mlx5Hca {
  PCIDevice parent_obj;

  MemoryRegion bar0;
  MemoryRegion sf_windows;
  MemoryRegion gone; /* lies over the MSI-X tables while the card is out of its slot */
  bool removed;      /* it is */
  uint8_t vsc_cap;   /* offset of the vendor specific capability, 0 = not there yet */
  uint8_t vpd_cap;   /* and of vital product data, likewise */
  HcaLink* link;
  HcaFunction* function; /* the physical one, as long as there is the link */
  char* name;            /* among all HCAs, likewise */

  MLX5_HCA_PROPERTY_MEMBERS
};

/* mlx5_hca_dma.c. Null: the function makes no access now. */
PCIDevice* mlx5_hca_bus_master(HcaFunction* function);
/* Of hca_host_ops, as the others below that take an `opaque`: an HcaFunction. */
int mlx5_hca_dma_read(void* opaque, uint64_t addr, void* dst, size_t len);
int mlx5_hca_dma_write(void* opaque, uint64_t addr, const void* src, size_t len);
void mlx5_hca_msix(void* opaque, unsigned vector);
extern uint64_t mlx5_hca_interrupts; /* that were sent, of all HCAs */

/* mlx5_hca_registers.c */
extern const MemoryRegionOps mlx5_hca_bar0_ops; /* their opaque: the device's HcaFunction* member */
extern const MemoryRegionOps
    mlx5_hca_sf_ops; /* windows of all sub-functions; opaque: the same, of the physical one */
/* A register of the vendor specific capability, now: written if value is not NULL, else read. */
uint32_t mlx5_hca_vsc_access(HcaLink* link, uint32_t offset, const uint32_t* value);

/* mlx5_hca_code.c: the program counter of the guest's code that accesses a register now, and the driver's
 * address that it returns to if that code is not the driver's (else 0). False: nobody knows. */
bool mlx5_hca_guest_code(uint64_t* pc, uint64_t* caller);

/* mlx5_hca_time.c */
HcaLink* mlx5_hca_link_new(Mlx5Hca* dev, const HcaPart* const* parts);
/* The HCA of a link is complete: sees to the clock and to the end of QEMU; elaboration happens once the
 * machine is complete. One that is plugged in later starts at once. */
void mlx5_hca_link_started(HcaLink* link);
/* Whether an HCA with this run-ahead can come to those that run already, and the one that it gets there.
 * False with errp set: it cannot. */
bool mlx5_hca_fits_time(int64_t* ahead, Error** errp);
/* Resets a function (FLR; of the physical one with its virtual ones), the card by a conventional reset, or
 * ends the HCA, now or as soon as the model has returned. */
void mlx5_hca_function_reset(HcaFunction* function);
void mlx5_hca_card_reset(HcaLink* link);
void mlx5_hca_link_drop(HcaLink* link);
/* Around a call into the model that the guest or the world makes now: what is due by then comes first, and
 * what the call has made due behind it. Others than the guest ask first: the model may run. */
bool mlx5_hca_may_enter(void);
int64_t mlx5_hca_enter(void);
void mlx5_hca_leave(int64_t now); /* what mlx5_hca_enter() gave */
/* Around a call for which no time passes, while the model does not run: what comes back of it is put off. */
void mlx5_hca_call_begin(void);
void mlx5_hca_call_end(void);
/* What the model has mapped goes, now or as soon as it has returned. */
void mlx5_hca_memory_changed(HcaLink* link);
/* HCA_CALL_TURN, as soon as the model has returned. */
void mlx5_hca_want_turn(HcaLink* link);
/* Runs what a call into the model outside of an MMIO access (a fault, a reset) has made due. */
void mlx5_hca_settle(void);
/* Does what was put off, so that nothing waits on this side of the C API. False: there is no end to it. */
bool mlx5_hca_drain(void);
/* Of a saved state: what the clock here was and is to be. */
void mlx5_hca_clock_get(int64_t* lost, int64_t* armed, int64_t* timer_at, uint64_t* timer_runs);
void mlx5_hca_clock_set(int64_t lost, int64_t armed, int64_t timer_at, uint64_t timer_runs);
/* A state is being loaded: the model is neither reset nor run, and makes no access. Then, whether it has it.
 */
void mlx5_hca_loading(bool on);
void mlx5_hca_loaded(bool well);
bool mlx5_hca_is_loading(void);
/* How often the timer, not an access, ran the model: each costs a hand-off to another thread. All HCAs. */
uint64_t mlx5_hca_timer_runs(void);
/* The model's time is exactly the guest's, that of all HCAs. */
bool mlx5_hca_lockstep(void);
/* The next meeting with another guest (hca_sim_meeting()), in the guest's time, if somebody watches for it:
 * the timer does not wait for it then. */
typedef struct HcaMeeting {
  void (*begin)(void); /* has somebody watch, soon; NULL: nobody can, or does from now on */
  bool watched;        /* set by who watches */
  bool rests;          /* set likewise: no processor may be going on, so that the timer has all meetings */
  bool changed;        /* `due` may be another one than when the watcher looked */
  int64_t due;         /* ns, HCA_NEVER: there is none, or it is the timer's */
} HcaMeeting;
extern HcaMeeting mlx5_hca_meeting;
/* The guest makes no access before `end`: has the meeting that is due by then. False: there is none. */
bool mlx5_hca_meet_before(int64_t end);
/* The guest's processors may come to rest: the timer waits for the meeting. */
void mlx5_hca_meet_by_timer(void);
/* A frame that arrives now. False: the model runs, the frame must wait for HCA_CALL_FRAMES. */
bool mlx5_hca_enter_now(HcaLink* link, const void* frame, size_t len);
int64_t mlx5_hca_quiet_until(void* opaque);
int mlx5_hca_keep_waiting(void* opaque);

/* mlx5_hca_wire.c */
void mlx5_hca_watch_fd(void* opaque, int fd, int read, int write);
extern const HcaPart mlx5_hca_wire;
/* How often what came was found before anybody was woken for it. All HCAs. */
uint64_t mlx5_hca_wire_looks(void);

/* mlx5_hca_memory.c */
extern const HcaPart mlx5_hca_memory;
/* Of a function that comes or goes while the machine runs. */
void mlx5_hca_memory_watch(HcaFunction* function);
void mlx5_hca_memory_unwatch(HcaFunction* function);
void* mlx5_hca_dma_map(void* opaque, uint64_t addr, size_t len, int write);

/* mlx5_hca_ats.c; init: with the other capabilities, if the card shows it. exit: before the function goes. */
extern const HcaPart mlx5_hca_ats;
void mlx5_hca_ats_init(HcaFunction* function, PCIDevice* pci, uint16_t offset);
void mlx5_hca_ats_exit(HcaFunction* function, PCIDevice* pci);
void mlx5_hca_ats_after_write(HcaFunction* function, PCIDevice* pci, uint32_t addr, int len);
void mlx5_hca_ats_reset(HcaFunction* function, PCIDevice* pci);
/* The configuration space has been loaded, and the model's state, which is of it. */
void mlx5_hca_ats_loaded(HcaFunction* function, PCIDevice* pci);

/* mlx5_hca_vcpu.c */
extern const HcaPart mlx5_hca_vcpu;

/* mlx5_hca_threads.c */
extern const HcaPart mlx5_hca_threads;
/* What `look` says under the global lock; false if that is not free. It calls nothing of QEMU's. */
bool mlx5_hca_peek(bool (*look)(void));

/* mlx5_hca_meet.c */
extern const HcaPart mlx5_hca_meet;

/* mlx5_hca_blocks.c: of the plugin, which sees what vCPUs execute; data: how many instructions the block has.
 */
void mlx5_hca_blocks_by(qemu_plugin_id_t id, const qemu_info_t* info);
typedef void HcaBlockCall(unsigned cpu, void* data);
/* There is code to be seen. */
bool mlx5_hca_has_blocks(void);
/* Once: from soon on calls one of both where a vCPU begins a block; `rest` if the block ends with an
 * instruction that may let it rest. Some blocks do so before the others, until `when_ready` is called,
 * between blocks. */
void mlx5_hca_watch_blocks(HcaBlockCall* block, HcaBlockCall* rest, void (*when_ready)(void));

/* mlx5_hca_net.c */
extern const HcaPart mlx5_hca_net;
bool mlx5_hca_has_netdev(Mlx5Hca* dev);
/* The MAC address, and with netdev= the network client. */
void mlx5_hca_net_init(Mlx5Hca* dev);
void mlx5_hca_net_exit(HcaLink* link); /* the client goes, with the device */
int mlx5_hca_net_tx(void* opaque, const void* frame, size_t len);

/* mlx5_hca_pcie.c; init and exit: with the MSI-X tables */
extern const HcaPart mlx5_hca_pcie;
void mlx5_hca_pcie_init(Mlx5Hca* dev);
void mlx5_hca_pcie_exit(Mlx5Hca* dev);
/* The card was saved in its slot, or out of it. */
void mlx5_hca_pcie_loaded(Mlx5Hca* dev);
/* What it asks for is done when the model has returned. */
void mlx5_hca_pcie_error(void* opaque, int what, uint32_t bit, const char* name);

/* mlx5_hca_vsc.c; init: < 0 with errp set if there is no room */
int mlx5_hca_vsc_init(Mlx5Hca* dev, Error** errp);
/* False: not an access to its registers. */
bool mlx5_hca_vsc_read(Mlx5Hca* dev, uint32_t addr, int len, uint32_t* value);
void mlx5_hca_vsc_after_write(Mlx5Hca* dev, uint32_t addr, uint32_t value, int len);

/* mlx5_hca_vpd.c; init: as above */
int mlx5_hca_vpd_init(Mlx5Hca* dev, Error** errp);
void mlx5_hca_vpd_after_write(Mlx5Hca* dev, uint32_t addr, int len);

/* mlx5_hca_vf.c; init: after hca_create(), false with errp set; nothing to do for a card without virtual
 * functions. exit, before the link goes, and reset: those that are there go. */
bool mlx5_hca_sriov_init(Mlx5Hca* dev, Error** errp);
void mlx5_hca_sriov_exit(Mlx5Hca* dev);
void mlx5_hca_sriov_reset(Mlx5Hca* dev);
/* The capability has been loaded: its virtual functions are there then. False: it says what cannot be. */
bool mlx5_hca_sriov_loaded(Mlx5Hca* dev);
void mlx5_hca_vf_register_type(void);

/* mlx5_hca_qom.c */
void mlx5_hca_qom_init(Mlx5Hca* dev);

/* mlx5_hca_state.c; the section of the model: as long as there are HCAs */
extern const VMStateDescription mlx5_hca_vmstate;
extern const HcaPart mlx5_hca_state;

/* mlx5_hca_options.c */
void mlx5_hca_add_properties(ObjectClass* klass);
/* Run-ahead in ns (0: lockstep), and the options of hca_create(). False with errp set: refused. */
bool mlx5_hca_resolve(Mlx5Hca* dev, int64_t* ahead, GString* options, Error** errp);
/* Their names, as long as there are links. */
extern const HcaPart mlx5_hca_names;

/* mlx5_hca.c */
void mlx5_hca_register_type(void);

/* abi_check.c: false = this QEMU does not match the headers, with the reason reported. */
bool mlx5_hca_abi_check(void);

#endif
