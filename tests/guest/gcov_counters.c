// SPDX-License-Identifier: BSD-3-Clause
//
// gcov_counters MODULE...: prints the counters of kernel modules that build-gcov-modules has made, from the
// kernel's memory (/proc/kcore, root only). A line "object FILE VERSION STAMP CHECKSUM" for each object, and
// for each of its functions "function IDENT LINES-CHECKSUM FLOW-CHECKSUM COUNTER...", numbers in hex; at the
// end "counters: end". Section .gcov_info of a module is a list of pointers to what GCC has about an object;
// its shape is that of libgcov's struct gcov_info (gcc/libgcc/libgcov.h), GCC 12 to 14. Status 0; 1: no such
// module, or its counters cannot be read, with a line that says why.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kArcs = 0, kMaxCounters = 9, kMaxFunctions = 1 << 20, kMaxValues = 1 << 20, kMaxObjects = 1 << 16 };

struct gcov_info_head {
  uint32_t version;
  uint64_t next;
  uint32_t stamp, checksum;
  uint64_t filename;
};
// Then a pointer to a merge function for each kind of counter, the number of functions, and the address of
// their list.
struct gcov_fn {
  uint64_t key;
  uint32_t ident, lineno_checksum, cfg_checksum, unused;
  uint32_t num;  // of the first kind of counter that the object has
  uint64_t values;
};

static int core;
static Elf64_Phdr* segments;
static int segment_count;

static void die(const char* what, const char* which) {
  fprintf(stderr, "gcov_counters: %s%s%s\n", what, which ? ": " : "", which ? which : "");
  exit(1);
}

static void core_open(void) {
  Elf64_Ehdr head;
  core = open("/proc/kcore", O_RDONLY);
  if (core < 0) die("/proc/kcore", strerror(errno));
  if (pread(core, &head, sizeof head, 0) != sizeof head) die("/proc/kcore", "no header");
  segment_count = head.e_phnum;
  const ssize_t bytes = (ssize_t)sizeof *segments * segment_count;
  segments = malloc((size_t)bytes);
  if (!segments || pread(core, segments, (size_t)bytes, (off_t)head.e_phoff) != bytes)
    die("/proc/kcore", "no segments");
}

// Status 0: what is at the kernel's address; -1: nothing is.
static int peek(uint64_t address, void* out, size_t bytes) {
  for (int i = 0; i < segment_count; i++) {
    const Elf64_Phdr* s = &segments[i];
    if (s->p_type != PT_LOAD || address < s->p_vaddr || address - s->p_vaddr + bytes > s->p_memsz) continue;
    return pread(core, out, bytes, (off_t)(s->p_offset + (address - s->p_vaddr))) == (ssize_t)bytes ? 0 : -1;
  }
  return -1;
}
static void read_at(uint64_t address, void* out, size_t bytes) {
  if (peek(address, out, bytes) != 0) die("the kernel's memory cannot be read", NULL);
}

// What comes after the head differs: GCC's major version is in the first two letters of the version, A0 being
// 0.
static unsigned kinds_of(uint32_t version) {
  const unsigned major = ((version >> 24) - 'A') * 10 + (((version >> 16) & 0xff) - '0');
  if (major < 12 || major > 14)
    die("compiled by a GCC whose counters are unknown here (12 to 14 are known)", NULL);
  return major == 14 ? 9 : 8;
}

static void function_of(uint64_t address) {
  struct gcov_fn f;
  read_at(address, &f, sizeof f);
  if (f.num > kMaxValues) die("a function has too many counters", NULL);
  uint64_t* values = malloc((f.num + 1) * sizeof *values);
  if (!values) die("memory", NULL);
  read_at(f.values, values, f.num * sizeof *values);
  printf("function %" PRIx32 " %" PRIx32 " %" PRIx32, f.ident, f.lineno_checksum, f.cfg_checksum);
  for (uint32_t i = 0; i < f.num; i++) printf(" %" PRIx64, values[i]);
  putchar('\n');
  free(values);
}

static void object_at(uint64_t address, const struct gcov_info_head* head) {
  struct {
    uint64_t merge[kMaxCounters];
    uint32_t functions;
    uint64_t list;
  } rest;
  const unsigned kinds = kinds_of(head->version);
  const uint64_t after = address + sizeof *head;
  char name[1024] = "";
  read_at(after, rest.merge, kinds * sizeof *rest.merge);
  if (!rest.merge[kArcs]) die("an object has no counters of arcs", NULL);
  read_at(after + kinds * sizeof *rest.merge, &rest.functions, sizeof rest - sizeof rest.merge);
  if (rest.functions > kMaxFunctions) die("an object has too many functions", NULL);
  for (size_t i = 0; i + 1 < sizeof name; i++) {
    read_at(head->filename + i, name + i, 1);
    if (!name[i]) break;
  }
  printf("object %s %" PRIx32 " %" PRIx32 " %" PRIx32 "\n", name, head->version, head->stamp, head->checksum);
  for (uint32_t i = 0; i < rest.functions; i++) {
    uint64_t function;
    read_at(rest.list + i * sizeof function, &function, sizeof function);
    // The list has those of functions that several objects share, of which another object has the counters.
    struct gcov_fn f;
    if (function && peek(function, &f, sizeof f) == 0 && f.key == address) function_of(function);
  }
}

static void module_counters(const char* module) {
  char path[256], line[64];
  snprintf(path, sizeof path, "/sys/module/%s/sections/.gcov_info", module);
  FILE* file = fopen(path, "r");
  if (!file || !fgets(line, sizeof line, file)) die("not loaded, or not built for gcov", module);
  fclose(file);
  const uint64_t list = strtoull(line, NULL, 16);
  uint32_t version = 0;
  // The list's length is nowhere; what comes after it does not point to the like.
  for (int i = 0; i < kMaxObjects; i++) {
    uint64_t object;
    struct gcov_info_head head;
    if (peek(list + (uint64_t)i * sizeof object, &object, sizeof object) != 0 ||
        peek(object, &head, sizeof head) != 0)
      break;
    if (i == 0) version = head.version;
    if (head.version != version) break;
    object_at(object, &head);
  }
  if (version == 0) die("has no counters", module);
}

int main(int argc, char** argv) {
  if (argc < 2) die("usage: gcov_counters MODULE...", NULL);
  core_open();
  for (int i = 1; i < argc; i++) module_counters(argv[i]);
  puts("counters: end");
  return fflush(stdout) == 0 ? 0 : 1;
}
