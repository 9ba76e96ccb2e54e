// SPDX-License-Identifier: BSD-3-Clause
//
// Blocks of 512 bytes and their protection information (T10-DIF: guard, application tag, reference tag; 8
// bytes a block, of type 1).
//   pi_blocks make DATA TUPLES LBA COUNT APP
//     writes random blocks, and tuples as they have to be for COUNT blocks from LBA on, with APP as
//     application tag
//   pi_blocks check DATA TUPLES LBA COUNT
//     whether the tuples from LBA on of the file TUPLES are right for the blocks from LBA on of the file DATA
//   pi_blocks write DISK DATA TUPLES LBA COUNT
//     NVMe write with these tuples as metadata, beside the data; guard and reference tag to be checked
//   pi_blocks mixed DISK DATA TUPLES LBA COUNT
//     the same with each block's tuple behind it
//   pi_blocks read DISK DATA TUPLES LBA COUNT
//     NVMe read of both, compared with the files
// Status 0: done, and right. The status of an NVMe command that failed is printed.
#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { kBlock = 512, kTuple = 8, kMostBlocks = 2048 };
enum { kWrite = 1, kRead = 2 };                       // opcodes
enum { kCheckGuard = 1 << 12, kCheckRef = 1 << 10 };  // PRINFO in `control`

static uint8_t data[kMostBlocks * kBlock], tuples[kMostBlocks * kTuple];

__attribute__((noreturn)) static void fail(const char* what) {
  printf("pi_blocks: %s: %s\n", what, strerror(errno));
  exit(1);
}

static uint16_t guard_of(const uint8_t* p) {
  uint16_t crc = 0;
  for (unsigned i = 0; i < kBlock; ++i)
    for (int b = 7; b >= 0; --b) {
      const int x = (crc >> 15) ^ (p[i] >> b & 1);
      crc = (uint16_t)(crc << 1 ^ (x ? 0x8bb7 : 0));
    }
  return crc;
}

static void put_tuple(uint8_t* t, uint16_t guard, uint16_t app, uint32_t ref) {
  t[0] = (uint8_t)(guard >> 8), t[1] = (uint8_t)guard;
  t[2] = (uint8_t)(app >> 8), t[3] = (uint8_t)app;
  for (unsigned i = 0; i < 4; ++i) t[4 + i] = (uint8_t)(ref >> (24 - 8 * i));
}

static void whole_file(const char* name, void* to, size_t n, off_t at) {
  const int fd = open(name, O_RDONLY);
  if (fd < 0) fail(name);
  if (pread(fd, to, n, at) != (ssize_t)n) fail(name);
  close(fd);
}

static void store(const char* name, const void* from, size_t n) {
  const int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, from, n) != (ssize_t)n || close(fd) != 0) fail(name);
}

static int make(char** a, uint64_t lba, unsigned count) {
  const uint16_t app = (uint16_t)strtoul(a[6], NULL, 0);
  whole_file("/dev/urandom", data, (size_t)count * kBlock, 0);
  for (unsigned i = 0; i < count; ++i)
    put_tuple(tuples + i * kTuple, guard_of(data + i * kBlock), app, (uint32_t)(lba + i));
  store(a[2], data, (size_t)count * kBlock);
  store(a[3], tuples, (size_t)count * kTuple);
  return 0;
}

static int check(char** a, uint64_t lba, unsigned count) {
  whole_file(a[2], data, (size_t)count * kBlock, (off_t)lba * kBlock);
  whole_file(a[3], tuples, (size_t)count * kTuple, (off_t)lba * kTuple);
  unsigned wrong = 0;
  for (unsigned i = 0; i < count; ++i) {
    const uint8_t* t = tuples + i * kTuple;
    uint8_t want[kTuple];
    put_tuple(want, guard_of(data + i * kBlock), (uint16_t)(t[2] << 8 | t[3]), (uint32_t)(lba + i));
    if (memcmp(want, t, kTuple) == 0) continue;
    if (wrong++ == 0)
      printf("block %llu: tuple %02x%02x.%02x%02x.%02x%02x%02x%02x, its data want guard %02x%02x\n",
             (unsigned long long)(lba + i), t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], want[0], want[1]);
  }
  printf("%u of %u tuples right\n", count - wrong, count);
  return wrong != 0;
}

// The tuples beside the data, or behind each block.
static int transfer(const char* disk, int opcode, uint64_t lba, unsigned count, int beside, void* bytes,
                    void* meta) {
  const int fd = open(disk, O_RDWR);
  if (fd < 0) fail(disk);
  int status;
  if (beside) {
    struct nvme_passthru_cmd c = {0};
    c.opcode = (uint8_t)opcode;
    c.nsid = (uint32_t)ioctl(fd, NVME_IOCTL_ID);
    c.addr = (uintptr_t)bytes;
    c.data_len = count * kBlock;
    c.metadata = (uintptr_t)meta;
    c.metadata_len = count * kTuple;
    c.cdw10 = (uint32_t)lba;
    c.cdw11 = (uint32_t)(lba >> 32);
    c.cdw12 = (uint32_t)(kCheckGuard | kCheckRef) << 16 | (count - 1);
    c.cdw14 = (uint32_t)lba;
    status = ioctl(fd, NVME_IOCTL_IO_CMD, &c);
  } else {
    struct nvme_user_io io = {0};
    io.opcode = (uint8_t)opcode;
    io.control = kCheckGuard | kCheckRef;
    io.nblocks = (uint16_t)(count - 1);
    io.addr = (uintptr_t)bytes;
    io.slba = lba;
    io.reftag = (uint32_t)lba;
    status = ioctl(fd, NVME_IOCTL_SUBMIT_IO, &io);
  }
  if (status < 0) fail(disk);
  if (status > 0) printf("NVMe status 0x%x\n", (unsigned)status);
  close(fd);
  return status != 0;
}

static int put(char** a, uint64_t lba, unsigned count, int beside) {
  whole_file(a[3], data, (size_t)count * kBlock, 0);
  whole_file(a[4], tuples, (size_t)count * kTuple, 0);
  if (beside) return transfer(a[2], kWrite, lba, count, 1, data, tuples);
  static uint8_t both[kMostBlocks * (kBlock + kTuple)];
  for (unsigned i = 0; i < count; ++i) {
    memcpy(both + i * (kBlock + kTuple), data + i * kBlock, kBlock);
    memcpy(both + i * (kBlock + kTuple) + kBlock, tuples + i * kTuple, kTuple);
  }
  return transfer(a[2], kWrite, lba, count, 0, both, NULL);
}

static int get(char** a, uint64_t lba, unsigned count) {
  static uint8_t got[sizeof data], got_tuples[sizeof tuples];
  whole_file(a[3], data, (size_t)count * kBlock, 0);
  whole_file(a[4], tuples, (size_t)count * kTuple, 0);
  if (transfer(a[2], kRead, lba, count, 1, got, got_tuples) != 0) return 1;
  if (memcmp(got, data, (size_t)count * kBlock) != 0) return printf("other data\n"), 1;
  if (memcmp(got_tuples, tuples, (size_t)count * kTuple) != 0) return printf("other tuples\n"), 1;
  return 0;
}

int main(int argc, char** a) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* verb = argc > 1 ? a[1] : "";
  const int on_disk = strcmp(verb, "write") == 0 || strcmp(verb, "mixed") == 0 || strcmp(verb, "read") == 0;
  const int first = on_disk ? 5 : 4;
  if (argc != (strcmp(verb, "check") == 0 ? 6 : 7)) return printf("pi_blocks: see its source\n"), 2;
  const uint64_t lba = strtoull(a[first], NULL, 0);
  const unsigned count = (unsigned)strtoul(a[first + 1], NULL, 0);
  if (count == 0 || count > kMostBlocks) return printf("pi_blocks: 1 to %d blocks\n", kMostBlocks), 2;
  if (strcmp(verb, "make") == 0) return make(a, lba, count);
  if (strcmp(verb, "check") == 0) return check(a, lba, count);
  if (strcmp(verb, "read") == 0) return get(a, lba, count);
  return on_disk ? put(a, lba, count, verb[0] == 'w') : 2;
}
