// SPDX-License-Identifier: BSD-3-Clause
// A stand-in for the HCA model behind hca_api.h, for the tests of the QEMU shim alone: a few registers, a DMA
// engine and timed events, with a clock that follows the same rules as the real one. Not part of the product.
#include "fake_api.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "card/api/hca_api.h"

enum { kMaxHcas = 64, kMaxVfs = 32, kCounters = 6 };

struct hca {
  const hca_host_ops* ops;
  void* opaque;
  bool alive;
  char options[1024];
  uint64_t dma_addr, dma_len, dma_result, event_actions, event_count, event_time, write_time, vector, repeat;
  uint64_t resets, card_resets, vectors;
  uint64_t ats, invalidations, invalidated_from, invalidated_bytes;
  uint32_t vsc[HCA_VSC_LENGTH / 4], vsc_accesses;
  uint64_t rx_count, rx_len, rx_echo, rx_full, carrier, polls, held, tx_busy, waiting, looks;
  int64_t due;     // next event, HCA_NEVER = none
  int64_t period;  // of repeated events
  const uint8_t* mapped;
  uint64_t map_changes;
  uint64_t nested_go;  // action to be done inside hca_sim_advance()
  uint64_t later_go;   // the same, not in the first one
  bool later;          // the first one has been
  uint64_t rx_go;      // action to be done inside hca_wire_rx()
  uint64_t counters[kCounters];
  uint8_t scratch[0x1000], buffer[FAKE_BUFFER_SIZE];
  char stats[2048];
  char trace[256];
  unsigned vfs, sfs;
  hca_t* functions[kMaxVfs];  // each with registers of its own
};

enum { kMmioReads, kMmioWrites, kDmaRefused, kEvents, kResets, kNested };
static const char* const kCounterNames[kCounters] = {"mmio-reads", "mmio-writes", "dma-refused",
                                                     "events",     "resets",      "nested-calls"};
static hca_t* hcas[kMaxHcas];
static unsigned hca_total;
static bool started, in_kernel;
static unsigned in_access;  // hca_mmio_write() calls in flight
static int64_t sim_now;
static int64_t meet_every, meets_at;
static uint64_t meetings, late_meetings;
static uint64_t activations;

static void power_on(hca_t* h) {
  uint64_t resets = h->resets, card_resets = h->card_resets;
  memset(h->scratch, 0, sizeof(h->scratch));
  memset(h->buffer, 0, sizeof(h->buffer));
  memset(h->vsc, 0, sizeof(h->vsc));
  h->dma_addr = h->dma_len = h->dma_result = h->event_actions = h->event_count = h->event_time = 0;
  h->write_time = h->vector = h->repeat = h->nested_go = h->later_go = h->rx_go = 0;
  h->due = HCA_NEVER;
  h->resets = resets;
  h->card_resets = card_resets;
}

// Of a function that is not on the bus.
static int refuse_read(void* opaque, uint64_t addr, void* dst, size_t len) {
  (void)opaque, (void)addr, (void)dst, (void)len;
  return -1;
}
static int refuse_write(void* opaque, uint64_t addr, const void* src, size_t len) {
  (void)opaque, (void)addr, (void)src, (void)len;
  return -1;
}
static void* map_nothing(void* opaque, uint64_t addr, size_t len, int write) {
  (void)opaque, (void)addr, (void)len, (void)write;
  return NULL;
}
static void signal_nobody(void* opaque, unsigned vector) { (void)opaque, (void)vector; }
static const hca_host_ops nobody = {
    .dma_read = refuse_read, .dma_write = refuse_write, .dma_map = map_nothing, .msix = signal_nobody};

static bool option_is(const char* item, const char* key) {
  return strncmp(item, key, strlen(key)) == 0 && item[strlen(key)] == '=';
}

hca_t* hca_create(const char* options, const hca_host_ops* ops, void* opaque, char* err, size_t err_len) {
  static const char* const keys[] = {"name",       "link",    "profile", "trace",  "bf",         "sm",
                                     "node_guid",  "lanes",   "x",       "mac",    "wire",       "cable",
                                     "trace_ring", "capture", "record",  "faults", "generation", "device_id",
                                     "vfs",        "sfs",     "card",    "meet",   "ats"};
  char copy[1024];
  snprintf(copy, sizeof(copy), "%s", options);
  for (char *save = NULL, *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
    bool known = false;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) known |= option_is(item, keys[i]);
    if (!known || strcmp(item, "link=no-such") == 0) {
      snprintf(err, err_len, "option '%s' is not supported by the fake", item);
      return NULL;
    }
  }
  if (hca_total == kMaxHcas) {
    snprintf(err, err_len, "too many");
    return NULL;
  }
  hca_t* h = calloc(1, sizeof(*h));
  h->ops = ops;
  h->opaque = opaque;
  h->alive = true;
  h->carrier = 1;
  snprintf(h->options, sizeof(h->options), "%s", options);
  power_on(h);
  hcas[hca_total++] = h;
  const char* vfs = strstr(options, "vfs=");
  const char* meet = strstr(options, "meet=");
  meet_every = meet ? strtol(meet + strlen("meet="), NULL, 0) : 0;
  h->vfs = vfs ? (unsigned)strtoul(vfs + strlen("vfs="), NULL, 0) : 0;
  const char* sfs = strstr(options, "sfs=");
  h->sfs = sfs ? (unsigned)strtoul(sfs + strlen("sfs="), NULL, 0) : 0;
  if (h->vfs + h->sfs > kMaxVfs || hca_total + h->vfs + h->sfs > kMaxHcas) {
    snprintf(err, err_len, "more functions than the fake has");
    return NULL;
  }
  for (unsigned i = 0; i < h->vfs + h->sfs; i++) {
    hca_t* f = calloc(1, sizeof(*f));
    f->ops = i < h->vfs ? &nobody : ops;  // sub-functions share the physical one's host
    f->opaque = i < h->vfs ? NULL : opaque;
    f->alive = true;
    f->vectors = 16;
    power_on(f);
    h->functions[i] = hcas[hca_total++] = f;
  }
  return h;
}

unsigned hca_functions(const hca_t* h) { return 1 + h->vfs; }
unsigned hca_sub_functions(const hca_t* h) { return h->sfs; }
static hca_t* function_of(hca_t* h, unsigned function) { return function ? h->functions[function - 1] : h; }
int hca_attach_function(hca_t* h, unsigned function, const hca_host_ops* ops, void* opaque) {
  hca_t* f = function_of(h, function);
  f->ops = ops ? ops : &nobody;
  f->opaque = opaque;
  return 0;
}
uint64_t hca_function_read(hca_t* h, unsigned function, uint64_t offset, unsigned size) {
  return function <= h->vfs + h->sfs ? hca_mmio_read(function_of(h, function), offset, size) : UINT64_MAX;
}
void hca_function_code(hca_t* h, unsigned function, uint64_t offset, uint64_t value, uint64_t pc,
                       uint64_t caller) {
  (void)h, (void)function, (void)offset, (void)value, (void)pc,
      (void)caller; /* for traces, which this has none of */
}
void hca_function_write(hca_t* h, unsigned function, uint64_t offset, uint64_t value, unsigned size) {
  if (function <= h->vfs + h->sfs) hca_mmio_write(function_of(h, function), offset, value, size);
}
unsigned hca_function_vectors(const hca_t* h, unsigned function) {
  return function ? (unsigned)h->functions[function - 1]->vectors : HCA_MSIX_VECTORS;
}
int hca_shows_ats(const hca_t* h) { return strstr(h->options, "ats=on") != NULL; }
void hca_function_ats(hca_t* h, unsigned function, int on) {
  h->counters[kNested] += in_kernel || in_access;
  function_of(h, function)->ats = on != 0;
}
void hca_function_invalidate(hca_t* h, unsigned function, uint64_t addr, uint64_t len) {
  h->counters[kNested] += in_kernel || in_access;
  h = function_of(h, function);
  h->invalidations++;
  h->invalidated_from = addr;
  h->invalidated_bytes = len;
}
void hca_function_reset(hca_t* h, unsigned function) {
  h = function_of(h, function);
  hca_reset(h);
  h->card_resets--;
}

void hca_destroy(hca_t* h) {
  h->alive = false;
  for (unsigned i = 0; i < h->vfs + h->sfs; i++) h->functions[i]->alive = false;
  h->ops->log(h->opaque, HCA_LOG_INFO, "fake destroyed");
}

const char* hca_option_help(void) { return "name  -  of the HCA\nlink  ib  link layer"; }
int hca_sim_started(void) { return started; }
int64_t hca_sim_time(void) { return sim_now; }
uint64_t hca_sim_activations(void) { return activations; }

int hca_sim_start(int64_t now) {
  started = true;
  sim_now = now;
  meets_at = now + meet_every;
  return 0;
}

static void act(hca_t* h, uint64_t actions) {
  size_t len = h->dma_len < FAKE_BUFFER_SIZE ? h->dma_len : FAKE_BUFFER_SIZE;
  if (actions & FAKE_READ) h->dma_result = h->ops->dma_read(h->opaque, h->dma_addr, h->buffer, len) != 0;
  if (actions & FAKE_WRITE) h->dma_result = h->ops->dma_write(h->opaque, h->dma_addr, h->buffer, len) != 0;
  if (h->dma_result) h->counters[kDmaRefused]++;
  if ((actions & FAKE_TX) && h->ops->wire_tx(h->opaque, h->buffer, len)) h->tx_busy++;
  if (actions & FAKE_MSIX) h->ops->msix(h->opaque, (unsigned)h->vector);
}

static hca_t* earliest(void) {
  hca_t* best = NULL;
  for (unsigned i = 0; i < hca_total; i++) {
    hca_t* h = hcas[i];
    if (h->alive && h->due != HCA_NEVER && (!best || h->due < best->due)) best = h;
  }
  return best;
}

static void run_events(int64_t until) {
  for (hca_t* h = earliest(); h && h->due <= until; h = earliest()) {
    if (h->due > sim_now) sim_now = h->due;
    h->due = HCA_NEVER;
    if (h->repeat) {
      h->repeat--;
      h->due = sim_now + h->period;
    }
    activations++;
    h->event_count++;
    h->counters[kEvents]++;
    h->event_time = (uint64_t)sim_now;
    act(h, h->event_actions);
  }
}

int64_t hca_sim_meeting(int64_t* event) {
  hca_t* next = earliest();
  *event = next ? next->due : HCA_NEVER;
  if (!meet_every) return -1;
  return *event > meets_at ? meets_at : HCA_NEVER;
}

int64_t hca_sim_advance(int64_t now, int64_t ahead) {
  if (in_kernel) {
    for (unsigned i = 0; i < hca_total; i++) hcas[i]->counters[kNested]++;  // the shim has to know by itself
    return -1;
  }
  in_kernel = true;
  run_events(now);
  for (; meet_every && meets_at <= now; meets_at += meet_every) {
    meetings++;
    late_meetings += now != meets_at;
  }
  if (now > sim_now) sim_now = now;
  for (unsigned i = 0; i < hca_total; i++) {
    uint64_t go = hcas[i]->nested_go;
    hcas[i]->nested_go = 0;
    if (hcas[i]->later_go && hcas[i]->later) {
      go = hcas[i]->later_go;
      hcas[i]->later_go = 0;
    }
    hcas[i]->later = true;
    if (go && hcas[i]->alive) act(hcas[i], go);
  }
  run_events(now + ahead);
  in_kernel = false;
  hca_t* next = earliest();
  int64_t due = next ? next->due : HCA_NEVER;
  return meet_every && meets_at < due ? meets_at : due;
}

static uint64_t* plain_register(hca_t* h, uint64_t offset) {
  switch (offset) {
    case FAKE_DMA_ADDR:
      return &h->dma_addr;
    case FAKE_DMA_LEN:
      return &h->dma_len;
    case FAKE_DMA_RESULT:
      return &h->dma_result;
    case FAKE_EVENT_ACTIONS:
      return &h->event_actions;
    case FAKE_EVENT_COUNT:
      return &h->event_count;
    case FAKE_EVENT_TIME:
      return &h->event_time;
    case FAKE_WRITE_TIME:
      return &h->write_time;
    case FAKE_MSIX_VECTOR:
      return &h->vector;
    case FAKE_EVENT_REPEAT:
      return &h->repeat;
    case FAKE_RESETS:
      return &h->resets;
    case FAKE_CARD_RESETS:
      return &h->card_resets;
    case FAKE_RX_COUNT:
      return &h->rx_count;
    case FAKE_RX_LEN:
      return &h->rx_len;
    case FAKE_RX_ECHO:
      return &h->rx_echo;
    case FAKE_RX_FULL:
      return &h->rx_full;
    case FAKE_CARRIER:
      return &h->carrier;
    case FAKE_POLLS:
      return &h->polls;
    case FAKE_WAITING:
      return &h->waiting;
    case FAKE_LOOKS:
      return &h->looks;
    case FAKE_HELD:
      return &h->held;
    case FAKE_TX_BUSY:
      return &h->tx_busy;
    case FAKE_MAP_CHANGES:
      return &h->map_changes;
    case FAKE_MEETINGS:
      return &meetings;
    case FAKE_LATE_MEETINGS:
      return &late_meetings;
    case FAKE_VECTORS:
      return &h->vectors;
    case FAKE_ATS:
      return &h->ats;
    case FAKE_INVALIDATIONS:
      return &h->invalidations;
    case FAKE_INVALIDATED_FROM:
      return &h->invalidated_from;
    case FAKE_INVALIDATED_BYTES:
      return &h->invalidated_bytes;
    default:
      return NULL;
  }
}

static uint8_t* memory_at(hca_t* h, uint64_t offset, unsigned size) {
  if (offset >= FAKE_SCRATCH && offset + size <= FAKE_SCRATCH + sizeof(h->scratch)) {
    return h->scratch + (offset - FAKE_SCRATCH);
  }
  if (offset >= FAKE_BUFFER && offset + size <= FAKE_BUFFER + FAKE_BUFFER_SIZE) {
    return h->buffer + (offset - FAKE_BUFFER);
  }
  return NULL;
}

uint64_t hca_mmio_read(hca_t* h, uint64_t offset, unsigned size) {
  uint64_t value = UINT64_MAX;
  h->counters[kMmioReads]++;
  if (memory_at(h, offset, size)) {
    value = 0;
    memcpy(&value, memory_at(h, offset, size), size);
  } else if (offset == FAKE_ID) {
    value = FAKE_ID_VALUE;
  } else if (offset == FAKE_MAPPED) {
    value = FAKE_NOTHING;
    if (h->mapped) memcpy(&value, h->mapped, sizeof(value));
  } else if (plain_register(h, offset)) {
    value = *plain_register(h, offset);
  }
  return value;
}

void hca_mmio_write(hca_t* h, uint64_t offset, uint64_t value, unsigned size) {
  h->counters[kMmioWrites]++;
  in_access++;
  if (memory_at(h, offset, size)) {
    memcpy(memory_at(h, offset, size), &value, size);
  } else if (offset == FAKE_DMA_GO) {
    act(h, value);
  } else if (offset == FAKE_MAP) {
    h->mapped = h->ops->dma_map(h->opaque, h->dma_addr, h->dma_len, value != 0);
  } else if (offset == FAKE_DMA_GO_NESTED) {
    h->nested_go = value;
  } else if (offset == FAKE_DMA_GO_LATER) {
    h->later_go = value;
    h->later = false;
  } else if (offset == FAKE_RX_GO) {
    h->rx_go = value;
  } else if (offset == FAKE_MSIX_GO) {
    act(h, FAKE_MSIX);
  } else if (offset == FAKE_EVENT_DELAY) {
    h->write_time = (uint64_t)sim_now;
    h->period = (int64_t)value;
    h->due = sim_now + h->period;
  } else if (plain_register(h, offset) && offset != FAKE_RESETS) {
    *plain_register(h, offset) = value;
  }
  in_access--;
}

void hca_mmio_write_burst(hca_t* h, uint64_t offset, const void* data, size_t len) {
  if (memory_at(h, offset, (unsigned)len)) memcpy(memory_at(h, offset, (unsigned)len), data, len);
}

// Plain memory; its last dword tells how many accesses there were.
uint32_t hca_vsc_read(hca_t* h, uint32_t offset) {
  h->vsc_accesses++;
  return offset / 4 + 1 == HCA_VSC_LENGTH / 4 ? h->vsc_accesses : h->vsc[offset / 4 % (HCA_VSC_LENGTH / 4)];
}
void hca_vsc_write(hca_t* h, uint32_t offset, uint32_t value) {
  h->vsc_accesses++;
  h->vsc[offset / 4 % (HCA_VSC_LENGTH / 4)] = value;
}

void hca_memory_changed(hca_t* h) {
  if (in_kernel || in_access) h->counters[kNested]++;
  h->mapped = NULL;
  h->map_changes++;
}

void hca_reset(hca_t* h) {
  if (in_kernel || in_access) h->counters[kNested]++;
  power_on(h);
  h->resets++;
  h->card_resets++;
  h->counters[kResets]++;
}

hca_pcie_link hca_get_pcie_link(const hca_t* h) {
  hca_pcie_link link = {3, strstr(h->options, "lanes=8") ? 8 : 16};
  return link;
}
hca_pci_identity hca_get_pci_identity(const hca_t* h) {
  const char* id = strstr(h->options, "device_id=");
  hca_pci_identity identity = {0x1019, 0x0008, 0x101a, 0, "connectx5ex"};
  if (id) identity.device_id = (uint16_t)strtoul(id + strlen("device_id="), NULL, 0);
  return identity;
}
size_t hca_get_vpd(const hca_t* h, void* out, size_t room) {
  static const char kVpd[] = "\x82\x03\x00hca\x78";
  (void)h;
  memcpy(out, kVpd, room < sizeof(kVpd) - 1 ? room : sizeof(kVpd) - 1);
  return sizeof(kVpd) - 1;
}
int hca_is_ethernet(const hca_t* h) { return strstr(h->options, "link=eth") != NULL; }

unsigned hca_counter_count(const hca_t* h) {
  (void)h;
  return kCounters;
}
const char* hca_counter_name(const hca_t* h, unsigned index) {
  (void)h;
  return kCounterNames[index];
}
uint64_t hca_counter_value(const hca_t* h, unsigned index) { return h->counters[index]; }
uint64_t hca_state_digest(hca_t* h) { return h->counters[kEvents] + 1; }

// The scratch registers and the next event of each HCA; FAKE_UNSAVABLE in its first word: not to be saved.
typedef struct {
  int64_t due, now;
  uint8_t scratch[0x1000];
} fake_state;
static fake_state saved[kMaxHcas];

const void* hca_sim_save(size_t* len, char* err, size_t err_len) {
  for (unsigned i = 0; i < hca_total; i++) {
    uint64_t first;
    memcpy(&first, hcas[i]->scratch, sizeof(first));
    if (first == FAKE_UNSAVABLE) {
      snprintf(err, err_len, "the fake does not want to");
      return NULL;
    }
    saved[i].due = hcas[i]->due;
    saved[i].now = sim_now;
    memcpy(saved[i].scratch, hcas[i]->scratch, sizeof(saved[i].scratch));
  }
  *len = hca_total * sizeof(fake_state);
  return saved;
}
void hca_sim_release(void) {}
int hca_sim_load(const void* state, size_t len, char* err, size_t err_len) {
  if (len != hca_total * sizeof(fake_state)) {
    snprintf(err, err_len, "the state is of another number of HCAs");
    return -1;
  }
  memcpy(saved, state, len);
  uint64_t first;
  memcpy(&first, saved[0].scratch, sizeof(first));
  if (first == FAKE_UNLOADABLE) {
    snprintf(err, err_len, "the fake does not want to");
    return -1;
  }
  for (unsigned i = 0; i < hca_total; i++) {
    hcas[i]->due = saved[i].due;
    memcpy(hcas[i]->scratch, saved[i].scratch, sizeof(saved[i].scratch));
  }
  sim_now = saved[0].now;
  if (first == FAKE_DUE_WHEN_LOADED) hcas[0]->due = sim_now;
  return 0;
}
const char* hca_stats_json(hca_t* h) {
  snprintf(h->stats, sizeof(h->stats), "{\"options\": \"%s\", \"events\": %" PRIu64 "}", h->options,
           h->counters[kEvents]);
  return h->stats;
}

int hca_inject(hca_t* h, const char* fault, char* err, size_t err_len) {
  if (strcmp(fault, "event") != 0) {
    snprintf(err, err_len, "known: event");
    return -1;
  }
  h->due = sim_now;
  return 0;
}
// Keeps what was set last, of any key but "ring".
int hca_set_trace(hca_t* h, const char* key, const char* value, char* err, size_t err_len) {
  if (strcmp(key, "ring") == 0) {
    snprintf(err, err_len, "no ring in the fake");
    return -1;
  }
  snprintf(h->trace, sizeof(h->trace), "%s=%s", key, value);
  return 0;
}
const char* hca_get_trace(hca_t* h, const char* key) {
  const size_t len = strlen(key);
  return strncmp(h->trace, key, len) == 0 && h->trace[len] == '=' ? h->trace + len + 1 : "";
}
int hca_cable(hca_t* a, hca_t* b, char* err, size_t err_len) {
  (void)a;
  (void)b;
  snprintf(err, err_len, "not by the fake");
  return -1;
}
// Frames that come in, for FAKE_RX_COUNT and FAKE_RX_FRAME.
int hca_wire_rx(hca_t* h, const void* frame, size_t len) {
  if (in_kernel || in_access) h->counters[kNested]++;
  h->rx_count++;
  h->rx_len = len;
  if (h->rx_go) {
    uint64_t go = h->rx_go;
    h->rx_go = 0;
    act(h, go);
    return 0;
  }
  memcpy(h->buffer, frame, len < FAKE_BUFFER_SIZE ? len : FAKE_BUFFER_SIZE);
  if (h->rx_echo) {
    h->rx_echo--;
    h->nested_go = FAKE_TX;
    h->dma_len = len;
  }
  return 0;
}
int hca_wire_room(const hca_t* h) { return !h->rx_full; }
void hca_wire_carrier(hca_t* h, int up) { h->carrier = (uint64_t)up; }
int hca_wire_waiting(const hca_t* h) { return h->waiting != 0; }
void hca_wire_look(hca_t* h, int64_t clock, int sleep) {
  (void)clock;
  (void)sleep;
  if (in_kernel || in_access) h->counters[kNested]++;
  h->looks += h->waiting != 0;
  h->waiting = 0;
}
int64_t hca_wire_poll(hca_t* h, int64_t clock) {
  if (in_kernel || in_access) h->counters[kNested]++;
  h->polls++;
  return strstr(h->options, "wire=unix") ? clock + 1000000 : HCA_NEVER;
}
void hca_wire_hold(hca_t* h, int on) { h->held = (uint64_t)on; }
void hca_get_mac(const hca_t* h, uint8_t mac[6]) {
  static const uint8_t made[6] = {0x00, 0x02, 0xc9, 0x0f, 0xa4, 0x0e};
  (void)h;
  memcpy(mac, made, sizeof(made));
}

const char* hca_fault_help(void) { return "event  run an event now"; }
