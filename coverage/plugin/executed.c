/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plugin for QEMU's translator: counts each instruction of the guest's kernel modules, and of the shared
 * libraries whose pages it is given, as often as it is begun (coverage/format.h): -plugin
 * libhcasim-executed.so,out=FILE[,pages=FILE] An addition is compiled in front of each such instruction;
 * nothing is called. Before QEMU 9.0 all processors add to one number without a lock, so that two that do so
 * at once count one; a number is never too large, and none that ran is zero. From 9.0 on each has its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coverage/format.h"
#include "coverage/plugin/plugin_api.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

#define FILE_SIZE \
  (sizeof(struct executed_header) + (size_t)EXECUTED_CAPACITY * sizeof(struct executed_record))

static GMutex lock;
static GHashTable* known; /* struct executed_record* -> itself */
static GHashTable* pages; /* hash of a page -> struct page_entry* */
static struct executed_header* header;
static struct executed_record* records;

#if QEMU_PLUGIN_VERSION >= 2
static struct qemu_plugin_scoreboard* counts; /* a number for each record, of each processor */

static qemu_plugin_u64 count_of(size_t index) {
  qemu_plugin_u64 entry = {counts, index * sizeof(uint64_t)};
  return entry;
}
#endif

static guint record_hash(gconstpointer key) {
  const struct executed_record* record = key;
  uint64_t hash = (record->address ^ ((uint64_t)record->library << 48)) * UINT64_C(0x9e3779b97f4a7c15);
  return (guint)(hash >> 32) ^ record->bytes[0] ^ ((guint)record->bytes[record->size - 1] << 8);
}

static gboolean record_equal(gconstpointer a, gconstpointer b) {
  const struct executed_record *x = a, *y = b;
  return x->address == y->address && x->library == y->library && x->size == y->size &&
         memcmp(x->bytes, y->bytes, x->size) == 0;
}

static size_t read_bytes(const struct qemu_plugin_insn* insn, uint8_t* out) {
  size_t size = qemu_plugin_insn_size(insn);
  if (size == 0 || size > EXECUTED_LONGEST) return 0;
#if QEMU_PLUGIN_VERSION >= 3
  return qemu_plugin_insn_data(insn, out, size);
#else
  memcpy(out, qemu_plugin_insn_data(insn), size);
  return size;
#endif
}

/* The library's page that an instruction's memory is, if it is one. `at`, `found`: the last page looked up.
 */
static const struct page_entry* library_page(const void* memory, const void** at,
                                             const struct page_entry** found) {
  const void* page = (const void*)((uintptr_t)memory & ~(uintptr_t)(EXECUTED_PAGE - 1));
  if (memory == NULL) return NULL;
  if (page != *at) {
    uint64_t hash = executed_page_hash(page);
    *at = page;
    *found = g_hash_table_lookup(pages, &hash);
  }
  return *found;
}

/* With the lock held: the record of an instruction; NULL if there is no room for one more. */
static struct executed_record* record_of(const struct executed_record* wanted) {
  struct executed_record* record = g_hash_table_lookup(known, wanted);
  if (record == NULL) {
    if (header->records == EXECUTED_CAPACITY) {
      header->left_out++;
      return NULL;
    }
    record = &records[header->records];
    *record = *wanted;
    header->records++;
    g_hash_table_add(known, record);
  }
  return record;
}

/* With the lock held: a program has the library with its first byte at `base`. */
static void note_mapping(uint16_t library, uint64_t base) {
  uint32_t i;
  for (i = header->mappings; i > 0; i--)
    if (header->mapping[i - 1].base == base && header->mapping[i - 1].library == library) return;
  if (header->mappings == EXECUTED_MAPPINGS) {
    header->mappings_left_out++;
    return;
  }
  header->mapping[header->mappings].base = base;
  header->mapping[header->mappings].library = library;
  header->mappings++;
}

static void count_instruction(struct qemu_plugin_insn* insn, const struct executed_record* record) {
#if QEMU_PLUGIN_VERSION >= 2
  qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64,
                                                      count_of((size_t)(record - records)), 1);
#else
  qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, (void*)&record->count, 1);
#endif
}

static void translated(TRANSLATED_ARGS(block)) {
  uint64_t start = qemu_plugin_tb_vaddr(block);
  gboolean module = start >= EXECUTED_FIRST_OF_MODULES && start <= EXECUTED_LAST_OF_MODULES;
  const void* at = NULL;
  const struct page_entry* page = NULL;
  size_t i, n = qemu_plugin_tb_n_insns(block);

  if (!module && (pages == NULL || start >> 63)) return;
  for (i = 0; i < n; i++) {
    struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(block, i);
    struct executed_record wanted = {0}, *record;
    uint64_t base = 0;
    wanted.address = qemu_plugin_insn_vaddr(insn);
    if (!module) {
      if (!library_page(qemu_plugin_insn_haddr(insn), &at, &page)) continue;
      wanted.library = page->library;
      base = (wanted.address & ~(uint64_t)(EXECUTED_PAGE - 1)) - (uint64_t)page->page * EXECUTED_PAGE;
      wanted.address -= base;
    }
    wanted.size = (uint8_t)read_bytes(insn, wanted.bytes);
    if (wanted.size == 0) continue;
    g_mutex_lock(&lock);
    record = record_of(&wanted);
    if (!module) note_mapping(wanted.library, base);
    g_mutex_unlock(&lock);
    if (record) count_instruction(insn, record);
  }
}

static void finished(USERDATA_ARGS(data)) {
#if QEMU_PLUGIN_VERSION >= 2
  g_mutex_lock(&lock);
  for (uint32_t i = 0; i < header->records; i++) records[i].count = qemu_plugin_u64_sum(count_of(i));
  g_mutex_unlock(&lock);
#endif
  /* No more of the file than was used. */
  if (truncate(data, (off_t)(sizeof *header + header->records * sizeof *records)) != 0) {
    fprintf(stderr, "hcasim-executed: %s stays as large as it is: %s\n", (const char*)data, strerror(errno));
  }
}

static gboolean read_pages(const char* path) {
  GError* error = NULL;
  char* text;
  gsize size;
  const struct page_entry* entries;
  if (!g_file_get_contents(path, &text, &size, &error)) {
    fprintf(stderr, "hcasim-executed: pages=: %s\n", error->message);
    return FALSE;
  }
  entries = (const struct page_entry*)(void*)text; /* kept to the end */
  pages = g_hash_table_new(g_int64_hash, g_int64_equal);
  for (gsize i = 0; i < size / sizeof *entries; i++)
    g_hash_table_insert(pages, (gpointer)&entries[i].hash, (gpointer)&entries[i]);
  return TRUE;
}

static gboolean map_file(const char* path) {
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  void* memory;
  if (file < 0 || ftruncate(file, (off_t)FILE_SIZE) != 0) {
    fprintf(stderr, "hcasim-executed: out=%s: %s\n", path, strerror(errno));
    if (file >= 0) close(file);
    return FALSE;
  }
  memory = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) {
    fprintf(stderr, "hcasim-executed: out=%s: %s\n", path, strerror(errno));
    return FALSE;
  }
  header = memory;
  records = (struct executed_record*)(header + 1);
  memcpy(header->magic, EXECUTED_MAGIC, sizeof header->magic);
  return TRUE;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info G_GNUC_UNUSED,
                                           int argc, char** argv) {
  const char* out = NULL;
  for (int i = 0; i < argc; i++) {
    if (g_str_has_prefix(argv[i], "out="))
      out = argv[i] + 4;
    else if (!g_str_has_prefix(argv[i], "pages=")) {
      fprintf(stderr, "hcasim-executed: '%s' is not known; it takes out=FILE and pages=FILE\n", argv[i]);
      return -1;
    } else if (!read_pages(argv[i] + 6))
      return -1;
  }
  if (out == NULL) {
    fprintf(stderr, "hcasim-executed: needs out=FILE, a file that it can write\n");
    return -1;
  }
  if (!map_file(out)) return -1;
  known = g_hash_table_new(record_hash, record_equal);
#if QEMU_PLUGIN_VERSION >= 2
  counts = qemu_plugin_scoreboard_new((size_t)EXECUTED_CAPACITY * sizeof(uint64_t));
#endif
  register_translated(id, translated);
  qemu_plugin_register_atexit_cb(id, finished, g_strdup(out));
  return 0;
}
