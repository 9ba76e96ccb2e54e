// SPDX-License-Identifier: BSD-3-Clause
//
// Runs inside a guest: a virtual function that mlx5_vfio_pci has, driven from user space by libmlx5's mlx5
// VFIO driver, is migrated into another one in the midst of its traffic, and back, as a virtual machine
// monitor does it: both functions are in one IOMMU address space, and the BARs and interrupts of the one take
// the place of the other's.
//   dv_migrate PCI-ADDRESS OTHER-PCI-ADDRESS
#include "dv_common.h"

#include <dirent.h>
#include <linux/vfio.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "dv_eq.h"
#include "dv_pair.h"

#ifndef VFIO_MIGRATION_PRE_COPY  // of headers before Linux 6.2
#define VFIO_MIGRATION_PRE_COPY (1 << 2)
#endif
enum { kStatePreCopy = 6 };
struct precopy_info {
  uint32_t argsz, flags;
  uint64_t initial_bytes, dirty_bytes;
};
#define MIG_GET_PRECOPY_INFO _IO(VFIO_TYPE, VFIO_BASE + 21)

static const char *pci, *other_pci;
static volatile int ending;
static pthread_t thread;

static void* process(void* unused) {
  const int fd = mlx5dv_vfio_get_events_fd(context);
  while (!ending) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 300) > 0) (void)mlx5dv_vfio_process_events(context);
  }
  return unused;
}

// The only descriptor of this process that is open for that.
static int descriptor_of(const char* what) {
  DIR* const all = opendir("/proc/self/fd");
  WANT(all != NULL);
  int found = -1;
  for (struct dirent* entry; (entry = readdir(all)) != NULL;) {
    char target[256] = "";
    if (readlinkat(dirfd(all), entry->d_name, target, sizeof target - 1) < 0 || strcmp(target, what) != 0)
      continue;
    WANT(found < 0);
    found = atoi(entry->d_name);
  }
  closedir(all);
  if (found < 0) fail("no descriptor of %s", what);
  return found;
}

// The other function, in the container that the first one is in, as bus master.
static int open_other(void) {
  char link[128], target[256] = "", group_path[64];
  snprintf(link, sizeof link, "/sys/bus/pci/devices/%s/iommu_group", other_pci);
  WANT(readlink(link, target, sizeof target - 1) > 0);
  snprintf(group_path, sizeof group_path, "/dev/vfio%s", strrchr(target, '/'));
  const int group = open(group_path, O_RDWR), container = descriptor_of("/dev/vfio/vfio");
  WANT(group >= 0);
  SAME(ioctl(group, VFIO_GROUP_SET_CONTAINER, &container), 0);
  const int fd = ioctl(group, VFIO_GROUP_GET_DEVICE_FD, other_pci);
  WANT(fd >= 0);
  struct vfio_region_info config = {.argsz = sizeof config, .index = VFIO_PCI_CONFIG_REGION_INDEX};
  SAME(ioctl(fd, VFIO_DEVICE_GET_REGION_INFO, &config), 0);
  uint16_t command = 0;
  SAME(pread(fd, &command, 2, (off_t)config.offset + 4), 2);
  command |= 4;
  SAME(pwrite(fd, &command, 2, (off_t)config.offset + 4), 2);
  return fd;
}

struct feature {
  struct vfio_device_feature head;
  union {
    struct vfio_device_feature_migration migration;
    struct vfio_device_feature_mig_state state;
  } of;
};
static uint64_t migration_flags(int fd) {
  struct feature f = {
      .head = {.argsz = sizeof f, .flags = VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_MIGRATION}};
  if (ioctl(fd, VFIO_DEVICE_FEATURE, &f) != 0) fail("the function cannot be migrated");
  return f.of.migration.flags;
}
// The descriptor of its data, if the state has one.
static int go_to(int fd, uint32_t state, const char* what) {
  struct feature f = {
      .head = {.argsz = sizeof f, .flags = VFIO_DEVICE_FEATURE_SET | VFIO_DEVICE_FEATURE_MIG_DEVICE_STATE}};
  f.of.state.device_state = state;
  f.of.state.data_fd = -1;
  if (ioctl(fd, VFIO_DEVICE_FEATURE, &f) != 0) fail("to %s", what);
  return f.of.state.data_fd;
}

// What the function writes: noted, reported once. Its memory is below 4 GiB of I/O addresses.
enum { kReported = 1 << 20 };  // pages
static int logging(int fd, uint32_t what, void* data, size_t size) {
  struct vfio_device_feature* const f = calloc(1, sizeof *f + size);
  f->argsz = (uint32_t)(sizeof *f + size);
  f->flags = what | (what == VFIO_DEVICE_FEATURE_DMA_LOGGING_REPORT ? VFIO_DEVICE_FEATURE_GET
                                                                    : VFIO_DEVICE_FEATURE_SET);
  if (size != 0) memcpy(f->data, data, size);
  const int status = ioctl(fd, VFIO_DEVICE_FEATURE, f);
  free(f);
  return status;
}
static unsigned pages_written(int fd) {
  static uint64_t bitmap[kReported / 64];
  memset(bitmap, 0, sizeof bitmap);
  struct vfio_device_feature_dma_logging_report report = {
      .length = (uint64_t)kReported * 4096, .page_size = 4096, .bitmap = (uintptr_t)bitmap};
  SAME(logging(fd, VFIO_DEVICE_FEATURE_DMA_LOGGING_REPORT, &report, sizeof report), 0);
  unsigned pages = 0;
  for (size_t i = 0; i < sizeof bitmap / sizeof *bitmap; i++)
    pages += (unsigned)__builtin_popcountll(bitmap[i]);
  return pages;
}
static void track(int fd, struct pair* p) {
  struct vfio_device_feature_dma_logging_range range = {.length = (uint64_t)kReported * 4096};
  struct vfio_device_feature_dma_logging_control control = {
      .page_size = 4096, .num_ranges = 1, .ranges = (uintptr_t)&range};
  SAME(logging(fd, VFIO_DEVICE_FEATURE_DMA_LOGGING_START, &control, sizeof control), 0);
  // Since 6.7 the bitmaps are IOMMUFD's, whose part for drivers Debian's kernels do not have.
  static uint64_t page;
  struct vfio_device_feature_dma_logging_report one = {
      .length = 4096, .page_size = 4096, .bitmap = (uintptr_t)&page};
  if (logging(fd, VFIO_DEVICE_FEATURE_DMA_LOGGING_REPORT, &one, sizeof one) != 0) {
    SAME(errno, EOPNOTSUPP);
    printf("this kernel does not report pages\n");
    SAME(logging(fd, VFIO_DEVICE_FEATURE_DMA_LOGGING_STOP, NULL, 0), 0);
    return;
  }
  SAME(pages_written(fd), 0);
  message(p, kBytes);
  message_done(p, kBytes);
  const unsigned pages = pages_written(fd);
  // The data, their completions.
  if (pages != kBytes / 4096 + 1) fail("%u pages were written", pages);
  SAME(pages_written(fd), 0);
  SAME(logging(fd, VFIO_DEVICE_FEATURE_DMA_LOGGING_STOP, NULL, 0), 0);
  printf("%u pages written by a message\n", pages);
}

struct stream {
  uint8_t* bytes;
  size_t size;
};
// What there is now; until the end if there is one.
static void read_on(int fd, struct stream* s, int to_the_end) {
  for (;;) {
    s->bytes = realloc(s->bytes, s->size + 65536);
    WANT(s->bytes != NULL);
    const ssize_t n = read(fd, s->bytes + s->size, 65536);
    if (n < 0 && errno == ENOMSG && !to_the_end) return;
    if (n < 0) fail("reading the stream");
    if (n == 0) return;
    s->size += (size_t)n;
  }
}
static void write_all(int fd, const struct stream* s) {
  for (size_t done = 0; done < s->size;) {
    // In pieces that are no record of it.
    const size_t piece = s->size - done < 10007 ? s->size - done : 10007;
    const ssize_t n = write(fd, s->bytes + done, piece);
    if (n <= 0) fail("writing the stream at %zu of %zu", done, s->size);
    done += (size_t)n;
  }
}

// What this process has mapped of one function, its BAR, is the other one's from now on. (Older kernels show
// physical addresses in place of offsets.)
static void take_place(int fd) {
  struct vfio_region_info bar = {.argsz = sizeof bar, .index = VFIO_PCI_BAR0_REGION_INDEX};
  SAME(ioctl(fd, VFIO_DEVICE_GET_REGION_INFO, &bar), 0);
  unsigned long start = 0, end = 0;
  int n = 0;
  char line[512];
  FILE* const list = fopen("/proc/self/maps", "r");
  WANT(list != NULL);
  while (fgets(line, sizeof line, list) != NULL) {
    if (strstr(line, "[vfio-device]") == NULL) continue;
    SAME(sscanf(line, "%lx-%lx", &start, &end), 2);
    n++;
  }
  fclose(list);
  SAME(n, 1);
  SAME(end - start, bar.size);
  if (mmap((void*)start, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)bar.offset) ==
      MAP_FAILED)
    fail("mapping the other function");
  // Vector 0 is libmlx5's own, for commands and its events.
  const size_t size = sizeof(struct vfio_irq_set) + 2 * sizeof(int);
  struct vfio_irq_set* const irqs = calloc(1, size);
  irqs->argsz = (uint32_t)size;
  irqs->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  irqs->index = VFIO_PCI_MSIX_IRQ_INDEX;
  irqs->count = 2;
  SAME(msi->vector, 1);
  const int fds[2] = {mlx5dv_vfio_get_events_fd(context), msi->fd};
  memcpy(irqs->data, fds, sizeof fds);
  if (ioctl(fd, VFIO_DEVICE_SET_IRQS, irqs) != 0) fail("interrupts of the other function");
  free(irqs);
}

static void wait_eqe(uint32_t cqn) {
  const uint8_t* eqe = next_eqe();
  while (!eqe_there()) {
    struct pollfd p = {.fd = msi->fd, .events = POLLIN};
    uint64_t count;
    if (poll(&p, 1, 30000) != 1) fail("no interrupt");
    SAME(read(msi->fd, &count, sizeof count), 8);
  }
  SAME(get(eqe, 0x100 + 0xc8, 24), cqn);
  eqe_taken();
}

static void query(struct mlx5dv_devx_obj* object, uint16_t opcode, uint32_t number, uint8_t* out,
                  size_t size) {
  uint8_t in[16] = {0};
  put(in, 0, 16, opcode);
  put(in, 0x48, 24, number);
  SAME(mlx5dv_devx_obj_query(object, in, sizeof in, out, size), 0);
}

static void migrate(int source, int target, int pre_copy) {
  struct stream stream = {NULL, 0};
  int data = -1;
  if (pre_copy) {
    data = go_to(source, kStatePreCopy, "PRE_COPY");
    WANT(data >= 0);
    struct precopy_info info = {.argsz = sizeof info};
    for (int i = 0; i < 3; i++) {
      SAME(ioctl(data, MIG_GET_PRECOPY_INFO, &info), 0);
      read_on(data, &stream, 0);
    }
    WANT(stream.size > 0);
    SAME(go_to(source, VFIO_DEVICE_STATE_STOP_COPY, "STOP_COPY"), -1);
  } else {
    SAME(go_to(source, VFIO_DEVICE_STATE_STOP, "STOP"), -1);
    data = go_to(source, VFIO_DEVICE_STATE_STOP_COPY, "STOP_COPY");
    WANT(data >= 0);
  }
  const size_t before = stream.size;
  read_on(data, &stream, 1);
  WANT(stream.size > before);
  SAME(close(data), 0);
  printf("a stream of %zu bytes, %zu of them while it ran\n", stream.size, before);
  // One of these addresses alone: the source ends.
  SAME(go_to(source, VFIO_DEVICE_STATE_STOP, "STOP"), -1);
  SAME(ioctl(source, VFIO_DEVICE_RESET), 0);
  data = go_to(target, VFIO_DEVICE_STATE_RESUMING, "RESUMING");
  WANT(data >= 0);
  write_all(data, &stream);
  take_place(target);
  SAME(go_to(target, VFIO_DEVICE_STATE_RUNNING, "RUNNING"), -1);
  SAME(close(data), 0);
  free(stream.bytes);
}

static void there_and_back(void) {
  struct mlx5dv_vfio_context_attr attr = {.pci_name = pci};
  struct ibv_device** const list = mlx5dv_get_vfio_device_list(&attr);
  WANT(list != NULL && list[0] != NULL);
  context = ibv_open_device(list[0]);
  if (context == NULL) fail("the VFIO device cannot be opened");
  SAME(pthread_create(&thread, NULL, process, NULL), 0);
  pd = ibv_alloc_pd(context);
  WANT(pd != NULL);
  from = make_region(kBytes);
  to = make_region(kBytes);
  make_eq(0);
  stays_inside = 1;
  struct pair p;
  make_pair_on(&p, eqn);
  uint32_t arms = 0;
  for (uint32_t i = 0; i < 20; i++) {
    message(&p, 1 + i * 70);
    message_done(&p, 1 + i * 70);
  }
  const int first = descriptor_of("anon_inode:[vfio-device]"), other = open_other();
  const uint64_t flags = migration_flags(first);
  SAME(flags, migration_flags(other));
  WANT((flags & VFIO_MIGRATION_STOP_COPY) && (flags & VFIO_MIGRATION_P2P));
  printf("opened; migration flags 0x%lx\n", flags);
  track(first, &p);
  for (int round = 0; round < 4; round++) {
    uint8_t qp[272], cq[272], qp_after[272], cq_after[272];
    query(p.qp, 0x50b, p.qpn, qp, sizeof qp);
    query(p.cq, 0x402, p.cqn, cq, sizeof cq);
    const uint32_t size = 5000 + (uint32_t)round;
    arm(&p, arms++);
    // In the second half with a message under way.
    if (round >= 2) message(&p, size);
    migrate(round % 2 == 0 ? first : other, round % 2 == 0 ? other : first,
            (flags & VFIO_MIGRATION_PRE_COPY) != 0 && round % 2 == 1);
    if (round < 2) {
      query(p.qp, 0x50b, p.qpn, qp_after, sizeof qp_after);
      query(p.cq, 0x402, p.cqn, cq_after, sizeof cq_after);
      same_bytes(qp_after, qp, sizeof qp, "QUERY_QP");
      message(&p, size);
    }
    wait_eqe(p.cqn);
    message_done(&p, size);
    for (uint32_t i = 0; i < 20; i++) {
      message(&p, 1 + i * 70);
      message_done(&p, 1 + i * 70);
    }
    // Commands, of the objects that there are and for new ones.
    struct region more = make_region(kBytes);
    SAME(ibv_dereg_mr(more.mr), 0);
    printf("round %d: goes on\n", round);
  }
  unmake_pair(&p);
  ending = 1;
  SAME(pthread_join(thread, NULL), 0);
}

int main(int argc, char** argv) {
  static const struct test tests[] = {{"there-and-back", there_and_back}};
  if (argc != 3) return 2;
  pci = argv[1];
  other_pci = argv[2];
  return run_tests(tests, 1, 1, argv);
}
