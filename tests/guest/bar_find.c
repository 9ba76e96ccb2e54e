// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a PCI device's memory holds some bytes.
//   bar_find RESOURCE FILE
// RESOURCE is /sys/bus/pci/devices/ADDRESS/resourceN; the first 512 bytes of FILE are looked for at multiples
// of 512. Prints where they were found. Status 0: found, 1: not, 2: could not look.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { kBytes = 512 };

int main(int argc, char** argv) {
  if (argc != 3) return printf("usage: bar_find RESOURCE FILE\n"), 2;
  uint64_t wanted[kBytes / 8];
  struct stat st;
  const int bar = open(argv[1], O_RDONLY), file = open(argv[2], O_RDONLY);
  if (bar < 0 || file < 0 || fstat(bar, &st) != 0 || read(file, wanted, kBytes) != kBytes)
    return perror("bar_find"), 2;
  const volatile uint64_t* at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, bar, 0);
  if (at == MAP_FAILED) return perror("mmap"), 2;
  for (off_t off = 0; off + kBytes <= st.st_size; off += kBytes) {
    unsigned i = 0;
    while (i < kBytes / 8 && at[off / 8 + i] == wanted[i]) i++;
    if (i == kBytes / 8)
      return printf("at 0x%llx of %lld bytes\n", (unsigned long long)off, (long long)st.st_size), 0;
  }
  return 1;
}
