/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the QEMU plugin coverage/plugin/executed.c writes and hcasim-coverage reads: C as well as C++, as the
 * plugin is C. All numbers are this machine's, little-endian: the file is read where it was written, or on
 * its like.
 *
 * The file of executed instructions: struct executed_header, then `records` times struct executed_record. The
 * file is mapped by QEMU while it runs, so that the instructions are there even if QEMU was killed. Their
 * counts are only there before QEMU 9.0: from then on QEMU holds them for each processor, and the plugin adds
 * them up when QEMU ends. The header has where programs had the libraries, too: that is what the code behind
 * a doorbell is known by.
 *
 * The file of library pages: struct page_entry, any number of times. A page of a shared library is known by
 * its bytes, wherever a process has it.
 */
#ifndef HCASIM_COVERAGE_FORMAT_H
#define HCASIM_COVERAGE_FORMAT_H

#include <stdint.h>

#define EXECUTED_MAGIC "hcasimX2"
#define EXECUTED_CAPACITY (2u * 1024 * 1024) /* instructions; Linux's mlx5 modules have 0.3 M */
#define EXECUTED_LONGEST 15                  /* bytes of an x86 instruction at most */
#define EXECUTED_PAGE 4096u
#define EXECUTED_MAPPINGS 4095u /* of libraries: one of each program that was started */

/* Where Linux on x86-64 has modules (Documentation/arch/x86/x86_64/mm.rst): all beyond its own image. */
#define EXECUTED_FIRST_OF_MODULES UINT64_C(0xffffffffc0000000)
#define EXECUTED_LAST_OF_MODULES UINT64_C(0xfffffffffeffffff)

/* A program has had this library there. */
struct executed_mapping {
  uint64_t base; /* the virtual address of the file's first byte */
  uint16_t library;
  uint16_t unused[3];
};

struct executed_header {
  char magic[8];
  uint32_t records;
  uint32_t left_out; /* instructions for which there was no room */
  uint32_t mappings;
  uint32_t mappings_left_out;
  uint64_t unused;
  struct executed_mapping mapping[EXECUTED_MAPPINGS];
};

/* One instruction at one place. Bytes tell what stood there: another module may have had the place before,
 * and the kernel patches itself. */
struct executed_record {
  uint64_t count;   /* how often it was begun */
  uint64_t address; /* of a module: the guest's virtual address; of a library: the offset in its file */
  uint16_t library; /* index in the list of libraries, from 1; 0: kernel module */
  uint8_t size;     /* bytes, 1 to 15 */
  uint8_t bytes[EXECUTED_LONGEST];
  uint8_t unused[6];
};

struct page_entry {
  uint64_t hash; /* executed_page_hash of 4 KiB of the file; the last page is filled up with zeros */
  uint32_t page; /* offset in the file / 4096 */
  uint16_t library;
  uint16_t unused;
};

/* Tells pages of some libraries apart, no more: not for whoever forges pages. `words` is 4 KiB. */
static inline uint64_t executed_page_hash(const uint64_t* words) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (unsigned i = 0; i < EXECUTED_PAGE / 8; i++) {
    hash = (hash ^ words[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 29;
  }
  return hash;
}

#ifdef __cplusplus
static_assert(sizeof(executed_header) == 32 + EXECUTED_MAPPINGS * 16 && sizeof(executed_mapping) == 16 &&
                  sizeof(executed_record) == 40 && sizeof(page_entry) == 16,
              "written by one compiler, read by another");
#else
_Static_assert(sizeof(struct executed_header) == 32 + EXECUTED_MAPPINGS * 16 &&
                   sizeof(struct executed_mapping) == 16 && sizeof(struct executed_record) == 40 &&
                   sizeof(struct page_entry) == 16,
               "written by one compiler, read by another");
#endif

#endif
