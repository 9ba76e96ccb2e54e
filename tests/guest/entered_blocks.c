/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin for QEMU's translator: writes the address of each block of a kernel module's code that the guest
 * has entered, 64 bits each, into the file that its argument names: -plugin libentered-blocks.so,out=FILE. A
 * block is translated when it is about to run for the first time, and a call begins one; so a function has
 * run if a block begins at its address. Costs nothing once code is translated.
 */
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coverage/plugin/plugin_api.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* Where Linux on x86-64 has modules (Documentation/x86/x86_64/mm.rst): all beyond its own image. */
static const uint64_t first_of_modules = 0xffffffffc0000000;

static GMutex lock;
static GHashTable* entered;
static FILE* out;

static void translated(TRANSLATED_ARGS(block)) {
  uint64_t at = qemu_plugin_tb_vaddr(block);
  if (at < first_of_modules) return;
  g_mutex_lock(&lock);
  if (g_hash_table_add(entered, GSIZE_TO_POINTER(at))) {
    fwrite(&at, sizeof at, 1, out);
  }
  g_mutex_unlock(&lock);
}

static void finished(USERDATA_ARGS(data G_GNUC_UNUSED)) {
  g_mutex_lock(&lock);
  fflush(out);
  g_mutex_unlock(&lock);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info G_GNUC_UNUSED,
                                           int argc, char** argv) {
  if (argc != 1 || strncmp(argv[0], "out=", 4) != 0 || !(out = fopen(argv[0] + 4, "wb"))) {
    fprintf(stderr, "entered-blocks: needs out=FILE, a file that can be written\n");
    return -1;
  }
  entered = g_hash_table_new(NULL, NULL);
  register_translated(id, translated);
  qemu_plugin_register_atexit_cb(id, finished, NULL);
  return 0;
}
