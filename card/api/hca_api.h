// SPDX-License-Identifier: BSD-3-Clause
// The C API of the HCA: the one door through which QEMU, tests, benchmarks and replay drive the model.
// No QEMU, SystemC or C++ type crosses it. All calls are made by one thread at a time (QEMU: under its
// global lock). No call throws or aborts, and none blocks but hca_sim_advance(), and hca_create() while it
// looks up the name in wire=tcp:NAME:PORT; a broken invariant of the model puts the HCA into its fatal health
// state instead (init segment health.synd; docs/architecture.md, Wrong input).
//
// Units: times are ns of the caller's clock (under QEMU: QEMU_CLOCK_VIRTUAL), offsets and sizes are bytes.
#ifndef HCASIM_CARD_HCA_API_H
#define HCASIM_CARD_HCA_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HCA_API __attribute__((visibility("default")))
#else
#define HCA_API
#endif

typedef struct hca hca_t;

enum { HCA_API_VERSION = 8 };
#define HCA_NEVER INT64_MAX  // no event is due
#define HCA_BAR0_SIZE \
  (32u << 20)  // initialization segment (pages 0-2), UAR pages, from the middle device memory
#define HCA_MSIX_VECTORS 64u
#define HCA_MAX_VFS 127u               // virtual functions of a card (option vfs=)
#define HCA_VF_BAR0_SIZE (1u << 20)    // of each: initialization segment (pages 0-2), UAR pages
#define HCA_VF_MSIX_VECTORS 32u        // at most: hca_function_vectors()
#define HCA_MAX_SFS 64u                // sub-functions that a card can have (option sfs=)
#define HCA_SF_WINDOW_SIZE (1u << 20)  // of each, as HCA_VF_BAR0_SIZE

enum hca_log_level { HCA_LOG_ERROR = 0, HCA_LOG_WARNING = 1, HCA_LOG_INFO = 2 };

// What the HCA needs of its host. `opaque` is the pointer given to hca_create().
typedef struct hca_host_ops {
  // Copies len bytes from / to bus address addr. 0 = done; anything else = the access was refused (bus
  // master off, IOMMU fault, no memory there): bytes read are then undefined. The HCA keeps its accesses in
  // PCIe's order (data, CQE, EQE, msix) with fences of its own, on hosts whose processors need them too.
  int (*dma_read)(void* opaque, uint64_t addr, void* dst, size_t len);
  int (*dma_write)(void* opaque, uint64_t addr, const void* src, size_t len);
  // Signals MSI-X vector (0..HCA_MSIX_VECTORS-1); masking is the host's business.
  void (*msix)(void* opaque, unsigned vector);
  // May be null. One line, no newline at its end.
  void (*log)(void* opaque, int level, const char* message);
  // wire=host: an Ethernet frame leaves the port, from the destination MAC to the last byte before the FCS.
  // 0 = taken; anything else = taken, but the host has enough for a while: the port pauses.
  int (*wire_tx)(void* opaque, const void* frame, size_t len);
  // wire=shm:..., unix:..., tcp:...: hca_wire_poll() is to be called when fd is ready for reading or writing,
  // as far as asked for; with neither, no longer. May be null: then the host polls regularly.
  void (*watch_fd)(void* opaque, int fd, int read, int write);
  // coupled=on. Until when the host makes no access and takes no interrupt of its own accord: ns of its
  // clock, HCA_NEVER if it waits for the HCA alone. May be null, and answer too early a time, such as now:
  // the two ends then meet more often.
  int64_t (*quiet_until)(void* opaque);
  // coupled=on: asked now and then while hca_sim_advance() waits for the other end, or takes long. 0 = it
  // should wait no longer: the wire ends. May be null.
  int (*keep_waiting)(void* opaque);
  // Where len bytes at bus address addr lie, if in one piece in plain memory, so that a copy from there
  // brings what dma_read does, or (write) one to there does what dma_write does; null otherwise. May be null.
  // The HCA may read there until hca_memory_changed() says that it must not, and writes before the
  // call of the API returns in which it asked. Payload is then copied once only.
  void* (*dma_map)(void* opaque, uint64_t addr, size_t len, int write);
  // A fault that the host is to show (fault kind "pcie", and dma/poisoned). what: enum hca_pcie_error. bit:
  // of the AER correctable or uncorrectable error status register (linux/pci_regs.h), `name` its name as
  // `hcasim faults` lists it; 0 for HCA_PCIE_REMOVED and _INSERTED. May be null. It may be called in the
  // midst of any call of the API: what it sets off in the host waits until that returns.
  void (*pcie_error)(void* opaque, int what, uint32_t bit, const char* name);
  // wire=host, in place of wire_tx, for hosts with a clock of their own for what is on the wire (a network
  // simulator): `ps` is when the frame's last bit, of its FCS, leaves the port, ps of the caller's clock
  // (1000 times the ns that the other calls take). The HCA says so as soon as it knows: `ps` may lie ahead of
  // its time, but no more than 1 ns behind that of the call that lets it run. One port's frames come in the
  // order in which they leave. May be null.
  int (*wire_tx_at)(void* opaque, const void* frame, size_t len, int64_t ps);
} hca_host_ops;

enum hca_pcie_error {
  HCA_PCIE_CORRECTABLE = 0,
  HCA_PCIE_NONFATAL = 1,
  HCA_PCIE_FATAL = 2,
  HCA_PCIE_REMOVED = 3,   // surprise removal: from now on nothing reaches the card, and nothing comes from it
  HCA_PCIE_INSERTED = 4,  // it is put back, as after power-on
  HCA_PCIE_UNCORRECTABLE = 5,  // non-fatal or fatal, as AER's severity register has it
};

// PCIe link that the profile gives, for the PCIe capability.
typedef struct hca_pcie_link {
  unsigned generation;  // 1 = 2.5 GT/s ... 5 = 32 GT/s
  unsigned lanes;       // 1, 2, 4, 8, 16
} hca_pcie_link;

// Creates an HCA. After hca_sim_start() it is one that is plugged in: of one port, and neither at a modelled
// switch nor in coupled time; from within a callback it is refused. `options` is "key=value,key=value" (keys:
// hca_option_help()). On error returns null and writes a message that says what is wrong and what is allowed
// into err.
HCA_API hca_t* hca_create(const char* options, const hca_host_ops* ops, void* opaque, char* err,
                          size_t err_len);
// Takes the HCA out of service: no callback is made any more. The SystemC modules stay, some 2 MiB (they
// cannot be deleted after elaboration), and its number is not used again. Flushes its trace.
HCA_API void hca_destroy(hca_t* hca);
// The option keys, one per line: "key  default  what it does".
HCA_API const char* hca_option_help(void);
// Non-zero once elaboration is done and simulated time runs.
HCA_API int hca_sim_started(void);

// Elaborates all HCAs made so far; `now` becomes the start of simulated time. 0 = done.
// -1: a card lacks its other port, a cable or a switch cannot be joined, or the model has failed. The log of
// the HCA that it is about says why, or that of each.
HCA_API int hca_sim_start(int64_t now);
// Runs the simulation to `now`, then (eager coupling) from event to event up to `ahead` ns further.
// Returns the time of the next event due, or HCA_NEVER; -1 if called from inside itself (a callback), where
// nothing is run: the outer call takes notice by itself.
// With coupled=on this is where the process waits for the one at the other end of the wire, at the first call
// too: until that is there. The time returned may then be that of the next meeting, at which nothing else is
// due; the caller's clock must stand still while it waits.
HCA_API int64_t hca_sim_advance(int64_t now, int64_t ahead);
// Coupled: if what is due next is a meeting at which nothing is done to the caller, as the ends only tell
// each other from when on they may send, its time; else HCA_NEVER. *event: when what comes behind it is due.
// A caller who is sure to make no access before that time may have the meeting (hca_sim_advance() to it)
// earlier by his own clock than then. -1: time goes in step with no other process.
HCA_API int64_t hca_sim_meeting(int64_t* event);
// Simulated time in ns on the caller's clock (SystemC's own clock follows, up to 1 ms behind); how often the
// model was activated so far, and the number of turns that its blocks were given then.
HCA_API int64_t hca_sim_time(void);
HCA_API uint64_t hca_sim_activations(void);
HCA_API uint64_t hca_sim_turns(void);

// BAR0. Access sizes 1, 2, 4, 8; values are in the host's order of a little-endian bus, as QEMU gives them
// (the registers themselves are big-endian). Time is not advanced: call hca_sim_advance() before (to now)
// and after. Accesses out of range read all ones and are counted.
HCA_API uint64_t hca_mmio_read(hca_t* hca, uint64_t offset, unsigned size);
HCA_API void hca_mmio_write(hca_t* hca, uint64_t offset, uint64_t value, unsigned size);
// A burst to write-combining memory (BlueFlame); len a multiple of 8, up to 256, in address order.
HCA_API void hca_mmio_write_burst(hca_t* hca, uint64_t offset, const void* data, size_t len);

// The vendor specific PCI capability, which the host shows in its configuration space: HCA_VSC_LENGTH bytes
// with its header (ID 09h, next, length, type 0), which is the host's. Accesses to what follows, whole
// aligned dwords in host order, belong to the model (model/pcie/vsc_gateway.h); offset: bytes from the
// capability's start. Time as for BAR0. Offsets that are no register read as 0 and take no write; an HCA out
// of service reads as all ones.
#define HCA_VSC_LENGTH 0x18u
HCA_API uint32_t hca_vsc_read(hca_t* hca, uint32_t offset);
HCA_API void hca_vsc_write(hca_t* hca, uint32_t offset, uint32_t value);

// What dma_map() has given for this HCA is about to go, or to mean something else: the HCA copies what it has
// not read yet, and forgets the rest, before this returns.
HCA_API void hca_memory_changed(hca_t* hca);

// Conventional reset (PCI Express 6.6.1: of the bus above, of the system, loss of power): the card is as
// after power-on, virtual functions with it: no DMA, no interrupt after it. Its firmware starts anew, with
// the image that was stored last.
HCA_API void hca_reset(hca_t* hca);

// --- Functions. A card has the physical one, number 0, and as many virtual ones as its option vfs= says,
// numbers from 1 on. They are there from hca_create() on; which of them the bus shows is the host's business
// (SR-IOV). What the calls above say of BAR0, they say of the physical function's.
HCA_API unsigned hca_functions(const hca_t* hca);
// Sub-functions (option sfs=), numbers from hca_functions() on: no functions of the bus. Their registers lie
// in the physical function's BAR 2, those of sub-function k from k * HCA_SF_WINDOW_SIZE on; their DMA and
// interrupts are that function's, and what resets it ends them.
HCA_API unsigned hca_sub_functions(const hca_t* hca);
// From now on a virtual function reaches its host by these: dma_read, dma_write, msix (vector
// 0..HCA_VF_MSIX_VECTORS-1) and dma_map are called with this `opaque`, so that its requester ID is its own;
// all other callbacks remain those of hca_create(). `ops` null: it is not on the bus, and its accesses are
// refused. 0 = done; -1: no such function, or the physical one, whose host hca_create() was given. It may be
// called from within a callback.
HCA_API int hca_attach_function(hca_t* hca, unsigned function, const hca_host_ops* ops, void* opaque);
// BAR0 of any function, or the window of a sub-function, as hca_mmio_read(), hca_mmio_write() and
// hca_mmio_write_burst().
HCA_API uint64_t hca_function_read(hca_t* hca, unsigned function, uint64_t offset, unsigned size);
HCA_API void hca_function_write(hca_t* hca, unsigned function, uint64_t offset, uint64_t value,
                                unsigned size);
HCA_API void hca_function_write_burst(hca_t* hca, unsigned function, uint64_t offset, const void* data,
                                      size_t len);
// For the trace: the guest's code that makes the write that comes next. `pc`: its program counter; `caller`:
// where it returns to in a driver, 0 if that is not known. It is no part of what is recorded for replay.
HCA_API void hca_function_code(hca_t* hca, unsigned function, uint64_t offset, uint64_t value, uint64_t pc,
                               uint64_t caller);
// Entries of the function's MSI-X table, as its configuration space is to show them now: of a virtual one its
// manager chooses, up to HCA_VF_MSIX_VECTORS. 0: no such function.
HCA_API unsigned hca_function_vectors(const hca_t* hca, unsigned function);
// FLR of a function: the others do not notice. Of the physical one it is as hca_reset(), but the firmware
// goes on; sub-functions have none.
HCA_API void hca_function_reset(hca_t* hca, unsigned function);
// ATS (PCIe base specification, 10; option ats=on, of functions of the bus). Whether they are to show it:
// capability 0x000f, page aligned requests.
HCA_API int hca_shows_ats(const hca_t* hca);
// The driver has switched it on or off (ATS control register, enable), or a reset of the function off. Of the
// physical function: with sub-functions.
HCA_API void hca_function_ats(hca_t* hca, unsigned function, int on);
// The function's IOMMU takes back its translations of [addr, addr + len), len 0: of all addresses. None of
// them is used any more when this returns.
HCA_API void hca_function_invalidate(hca_t* hca, unsigned function, uint64_t addr, uint64_t len);

// The parameters of the profile in force, "SECTION.KEY", in the unit that the profile's file has them in.
// index 0..hca_parameter_count()-1; beyond, no name and 0.
HCA_API unsigned hca_parameter_count(void);
HCA_API const char* hca_parameter_name(unsigned index);
HCA_API double hca_parameter_value(const hca_t* hca, unsigned index);

// What the card says it is, from the profile's generation (device_id: option).
typedef struct hca_pci_identity {
  uint16_t device_id;  // the vendor is 0x15b3, of the subsystem too
  uint16_t subsystem_id;
  uint16_t vf_device_id;  // of its virtual functions
  uint8_t revision;
  const char* generation;  // as profiles name it, never freed
} hca_pci_identity;
HCA_API hca_pci_identity hca_get_pci_identity(const hca_t* hca);
// Vital product data (PCI 3.0, appendix I): the first `room` bytes of it into `out`; returns how many there
// are.
HCA_API size_t hca_get_vpd(const hca_t* hca, void* out, size_t room);
// Device serial number (PCIe 7.9.3), an EUI-64: the node GUID.
HCA_API uint64_t hca_get_serial(const hca_t* hca);

// The link that the profile gives, as far as the generation has it.
HCA_API hca_pcie_link hca_get_pcie_link(const hca_t* hca);
// 1 = Ethernet, 0 = InfiniBand: for the PCI class code.
HCA_API int hca_is_ethernet(const hca_t* hca);

// --- The wire: where the port's cable leads. Without any, it is a cable to the port itself.
// Joins the ports of two HCAs of this process (also done by the option cable=NAME of either, at
// hca_sim_start()). 0 = done; otherwise err says why not.
HCA_API int hca_cable(hca_t* a, hca_t* b, char* err, size_t err_len);
// wire=host: a frame comes in, now. Returns 0, or -1 if it was dropped (counted).
HCA_API int hca_wire_rx(hca_t* hca, const void* frame, size_t len);
// The same, but its last bit arrives at `ps` of the caller's clock (as wire_tx_at has it), which may lie
// ahead: -1 too if it lies in the HCA's past, or 1 s or more ahead. What arrives at an HCA while it runs,
// from within a callback, may be given to it as well.
HCA_API int hca_wire_rx_at(hca_t* hca, const void* frame, size_t len, int64_t ps);
// Non-zero: the port has room for more frames; 0 is a hint to stop bringing them until the model has run.
HCA_API int hca_wire_room(const hca_t* hca);
// wire=host: the host's side of the link is up or down.
HCA_API void hca_wire_carrier(hca_t* hca, int up);
// wire=shm:..., unix:..., tcp:...: reads and writes, connects, listens; frames that came in arrive now.
// `clock` is ns of a clock that goes on even when the caller's does not (CLOCK_MONOTONIC). Returns the time
// on it of the next call wanted, ready descriptor or not, HCA_NEVER without such a wire. To be called once
// after hca_sim_start(), then as it says; run hca_sim_advance() before (to now) and after.
HCA_API int64_t hca_wire_poll(hca_t* hca, int64_t clock);
// wire=shm:..., for a caller who looks every microsecond or so, as somebody polls what the HCA writes: 1 if
// something has come that hca_wire_poll() would take in. No system call; it may be called while the HCA runs.
HCA_API int hca_wire_waiting(const hca_t* hca);
// Takes it in, as hca_wire_poll(). After that the other end does not wake the caller by a descriptor, until
// hca_wire_poll() or, if sleep is not 0, this call returns.
HCA_API void hca_wire_look(hca_t* hca, int64_t clock, int sleep);
// While on, nothing is taken from the wire: the machine stands still.
HCA_API void hca_wire_hold(hca_t* hca, int on);
// MAC address of the Ethernet link.
HCA_API void hca_get_mac(const hca_t* hca, uint8_t mac[6]);

// Counters: a table of names with their values; index 0..hca_counter_count()-1, same order for all HCAs.
HCA_API unsigned hca_counter_count(const hca_t* hca);
HCA_API const char* hca_counter_name(const hca_t* hca, unsigned index);
HCA_API uint64_t hca_counter_value(const hca_t* hca, unsigned index);
// All counters and object counts as a JSON object. Valid until the next call for this HCA.
HCA_API const char* hca_stats_json(hca_t* hca);

// A number made of all state of the model's blocks and objects (queues, contexts, what is under way), equal
// for equal state: two runs that go the same way have the same at the same time, whatever machine they run
// on. It takes time in proportion to the number of objects. 0: the HCA is out of service.
HCA_API uint64_t hca_state_digest(hca_t* hca);

// Saved states (card/state): all that the HCAs of the process are and have under way, without their hosts'
// memory, as bytes that `hcasim state` prints. Between two calls; the caller's clock goes on from there when
// it is loaded. What is under way to and from other processes is no part of it. Returns the state, which
// stays until the next call or hca_sim_release(); null: err says why not, and nothing happened.
HCA_API const void* hca_sim_save(size_t* len, char* err, size_t err_len);
HCA_API void hca_sim_release(void);
// Into HCAs made in the same order with the same options and profiles, whose hosts have the memory that those
// of the saved ones had. 0 = done; otherwise err says why not, and the HCAs are as they were.
HCA_API int hca_sim_load(const void* state, size_t len, char* err, size_t err_len);

// What a front end keeps of an HCA beside the model, such as its configuration space, by name: part of the
// next state that hca_sim_save() gives, and of no other. -1: more than HCA_HOST_PARTS_SIZE bytes in all.
#define HCA_HOST_PARTS_SIZE 65536
HCA_API int hca_set_host_part(hca_t* hca, const char* name, const void* bytes, size_t len);
// The same of the state that was loaded last, until the next one is; null: it has none of that name.
HCA_API const void* hca_get_host_part(const hca_t* hca, const char* name, size_t* len);

// Validation rules (option rules=report, strict, off): what a driver has to keep. index
// 0..hca_rule_count()-1, the same for all HCAs and in each call; hca_rule_broken(): how often the rule was
// broken since hca_create(); hca NULL: by the drivers of all HCAs that this process has had. The first breach
// of each (rules_told=N: the first N) is logged (HCA_LOG_WARNING; strict: HCA_LOG_ERROR), and strict puts the
// HCA into its fatal health state besides.
// If the environment has HCASIM_RULES_REPORT, hca_destroy() appends a line to the file of that name:
// "NAME MODE TOTAL", then " RULE=COUNT" for each broken rule.
HCA_API unsigned hca_rule_count(void);
HCA_API const char* hca_rule_name(unsigned index);
HCA_API uint64_t hca_rule_broken(const hca_t* hca, unsigned index);
// Traces and captures while the machine runs. Keys and their values:
//   on       on, off: recording goes on, or rests
//   filter   what is recorded from now on: "qp=0x4a+0x50-0x5f,point=A+B,kind=error+command,detail,path"; all
//   file     a path: a new trace file from now on, the one before is complete; empty: none
//   ring     MiB of memory that the next file's records are kept in: the oldest go; 0: written as they come
//   dump     writes what the ring holds to this path, or, empty, to its own; it goes on
//   flush    writes what has been recorded and captured, so that the files can be read so far
//   capture  a path: pcapng file of what leaves and enters the port, from now on; empty: none
// 0 = done; otherwise err says why not.
HCA_API int hca_set_trace(hca_t* hca, const char* key, const char* value, char* err, size_t err_len);
// What a key but dump and flush is set to. Valid until the next call for this HCA.
HCA_API const char* hca_get_trace(hca_t* hca, const char* key);

// Faults to inject, for driver validation: "drop=0.01", "fw_syndrome=1", "link=down"; or of the plan that the
// option faults=FILE begins: "fault=command,opcode=CREATE_CQ,nth=2,status=BAD_RES_STATE", further ones behind
// it, parted by ',' or ';'; "none" ends all (hca_fault_help()). 0 = taken; otherwise err says why, and
// nothing was done.
HCA_API int hca_inject(hca_t* hca, const char* fault, char* err, size_t err_len);
HCA_API const char* hca_fault_help(void);

#ifdef __cplusplus
}
#endif
#endif
