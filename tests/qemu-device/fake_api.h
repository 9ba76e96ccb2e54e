// SPDX-License-Identifier: BSD-3-Clause
// The register map of the stand-in for the HCA model: what the tests of the QEMU shim poke at. Little-endian,
// 8-byte registers unless said otherwise; offsets in BAR0.
#ifndef HCASIM_TESTS_QEMU_DEVICE_FAKE_API_H
#define HCASIM_TESTS_QEMU_DEVICE_FAKE_API_H

enum fake_register {
  FAKE_ID = 0x0,              // reads FAKE_ID_VALUE
  FAKE_DMA_ADDR = 0x10,       // bus address of the next DMA
  FAKE_DMA_LEN = 0x18,        // its length, up to FAKE_BUFFER_SIZE
  FAKE_DMA_GO = 0x20,         // write FAKE_READ or FAKE_WRITE: done at once, in the context of the access
  FAKE_DMA_RESULT = 0x28,     // of the last DMA: 0 done, 1 refused
  FAKE_EVENT_DELAY = 0x30,    // write n: an event n ns of simulated time from now does FAKE_EVENT_ACTIONS
  FAKE_EVENT_ACTIONS = 0x38,  // FAKE_READ | FAKE_WRITE | FAKE_MSIX
  FAKE_EVENT_COUNT = 0x40,    // events run so far
  FAKE_EVENT_TIME = 0x48,     // simulated time of the last one
  FAKE_WRITE_TIME = 0x50,     // simulated time of the last write to FAKE_EVENT_DELAY
  FAKE_MSIX_VECTOR = 0x58,
  FAKE_MSIX_GO = 0x60,        // write: signals the vector at once
  FAKE_EVENT_REPEAT = 0x68,   // each event arms another one until this many more have run
  FAKE_DMA_GO_NESTED = 0x70,  // write: as FAKE_DMA_GO, but from inside hca_sim_advance()
  FAKE_RESETS = 0x78,         // resets so far; survives them
  FAKE_CARD_RESETS = 0x110,   // of these by hca_reset(), not of the function alone; likewise
  FAKE_RX_COUNT = 0x80,       // frames that came in; the last one is in the buffer
  FAKE_RX_LEN = 0x88,         // length of the last one
  FAKE_RX_ECHO = 0x90,        // so many frames are sent back from inside hca_sim_advance()
  FAKE_RX_FULL = 0x98,        // not 0: hca_wire_room() says no
  FAKE_CARRIER = 0xa0,
  FAKE_POLLS = 0xa8,  // hca_wire_poll() calls
  FAKE_HELD = 0xb0,
  FAKE_TX_BUSY = 0xb8,        // frames that wire_tx() took with "enough"
  FAKE_MAP = 0xc0,            // write: asks where FAKE_DMA_ADDR lies, 0 to read there, 1 to write
  FAKE_MAPPED = 0xc8,         // the first 8 bytes there, as they are now; FAKE_NOTHING: there is no answer
  FAKE_MAP_CHANGES = 0xd0,    // hca_memory_changed() calls; each takes the answer away
  FAKE_MEETINGS = 0xe0,       // with option meet=NS: another process is met so often; how often that has been
  FAKE_LATE_MEETINGS = 0xe8,  // of these at another time than their own
  FAKE_VECTORS = 0xd8,        // of a virtual function: hca_function_vectors(); survives resets
  FAKE_WAITING = 0xf0,        // not 0: hca_wire_waiting() says yes, until hca_wire_look()
  FAKE_LOOKS = 0xf8,          // hca_wire_look() calls that found so
  FAKE_DMA_GO_LATER = 0x100,  // write: as FAKE_DMA_GO_NESTED, but as the next access after this one begins
  FAKE_ATS = 0x118,           // with option ats=on: hca_function_ats() said so; survives resets
  FAKE_INVALIDATIONS = 0x120,     // hca_function_invalidate() calls; these survive, too
  FAKE_INVALIDATED_FROM = 0x128,  // the last one's address and length
  FAKE_INVALIDATED_BYTES = 0x130,
  FAKE_RX_GO = 0x108,     // write: as FAKE_DMA_GO, when the next frame comes in
  FAKE_SCRATCH = 0x1000,  // plain memory up to 0x2000
  FAKE_BUFFER = 0x2000,   // DMA buffer up to 0x3000
};

enum fake_action { FAKE_READ = 1, FAKE_WRITE = 2, FAKE_MSIX = 4, FAKE_TX = 8 };

#define FAKE_ID_VALUE 0x5eca0000face0001ull
#define FAKE_NOTHING 0xbad0bad0bad0bad0ull
#define FAKE_UNSAVABLE 0x0face000dead000ull  /* in the first word of FAKE_SCRATCH: hca_sim_save() fails */
#define FAKE_UNLOADABLE 0x0face000dead001ull /* the same: hca_sim_load() does not take it */
#define FAKE_DUE_WHEN_LOADED 0x0face000dead002ull /* the same: hca_sim_load() makes an event due */
#define FAKE_BUFFER_SIZE 0x1000u

#endif
