/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client whose transport is somebody else's: libvfio-user's (of the QEMU source package), with its ideas of
 * headers, JSON, sizes and descriptors. Goes through what a virtual machine monitor asks of a card.
 *   foreign_client SOCKET
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common.h"
#include "libvfio-user.h"
#include "tran.h"
#include "tran_sock.h"

static int sock;

static void check(int good, const char* what) {
  if (!good) {
    errx(1, "wrong: %s", what);
  }
}

static void ask(enum vfio_user_command command, void* send, size_t send_len, void* receive,
                size_t receive_len) {
  if (tran_sock_msg(sock, 0x4711, command, send, send_len, NULL, receive, receive_len) < 0) {
    err(1, "command %d", command);
  }
}

static void connect_to(const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};

  snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
  sock = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(sock, (struct sockaddr*)&address, sizeof(address)) != 0) {
    err(1, "%s", path);
  }
}

static void negotiate(void) {
  struct vfio_user_version ours = {.major = LIB_VFIO_USER_MAJOR, .minor = LIB_VFIO_USER_MINOR};
  char json[] = "{\"capabilities\":{\"max_msg_fds\":32,\"max_data_xfer_size\":1024}}";
  struct iovec pieces[3] = {{0}, {&ours, sizeof(ours)}, {json, sizeof(json)}};
  struct vfio_user_version* theirs = NULL;
  struct vfio_user_header header;
  int fds = 0;
  size_t transfer = 0, page = 0, len = 0;

  check(tran_sock_send_iovec(sock, 1, false, VFIO_USER_VERSION, pieces, 3, NULL, 0, 0) >= 0, "version sent");
  check(tran_sock_recv_alloc(sock, &header, true, NULL, (void**)&theirs, &len) >= 0, "version received");
  check(len > sizeof(*theirs) && ((char*)theirs)[len - 1] == '\0', "capabilities with their NUL");
  check(theirs->major == LIB_VFIO_USER_MAJOR && theirs->minor <= LIB_VFIO_USER_MINOR, "version agreed");
  check(tran_parse_version_json((char*)theirs->data, &fds, &transfer, &page) >= 0, "capabilities parsed");
  check(fds == 16 && transfer == 1048576, "limits");
  free(theirs);
}

static void look_at_device(void) {
  struct vfio_user_device_info info = {.argsz = sizeof(info)};

  ask(VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info), &info, sizeof(info));
  check(info.num_regions == VFIO_PCI_NUM_REGIONS && info.num_irqs == VFU_DEV_NUM_IRQS, "device");
  for (unsigned i = 0; i < info.num_regions; i++) {
    struct vfio_region_info region = {.argsz = sizeof(region), .index = i};

    ask(VFIO_USER_DEVICE_GET_REGION_INFO, &region, sizeof(region), &region, sizeof(region));
    check(region.argsz == sizeof(region) && region.index == i, "region");
    check(i != VFU_PCI_DEV_BAR0_REGION_IDX || region.size == 32 << 20, "BAR 0");
    check(i != VFU_PCI_DEV_CFG_REGION_IDX || region.size == 4096, "configuration space");
  }
  for (unsigned i = 0; i < info.num_irqs; i++) {
    struct vfio_irq_info interrupts = {.argsz = sizeof(interrupts), .index = i};

    ask(VFIO_USER_DEVICE_GET_IRQ_INFO, &interrupts, sizeof(interrupts), &interrupts, sizeof(interrupts));
    check(i != VFU_DEV_MSIX_IRQ || interrupts.count == 64, "vectors");
  }
}

static void access_region(unsigned region, unsigned long long offset, void* data, unsigned len, int write) {
  struct vfio_user_region_access* access = calloc(1, sizeof(*access) + len);

  access->offset = offset;
  access->region = region;
  access->count = len;
  memcpy(access->data, data, len);
  ask(write ? VFIO_USER_REGION_WRITE : VFIO_USER_REGION_READ, access, sizeof(*access) + (write ? len : 0),
      access, sizeof(*access) + (write ? 0 : len));
  check(access->count == len, "bytes of an access");
  memcpy(data, access->data, write ? 0 : len);
  free(access);
}

static void use_interrupts(void) {
  struct vfio_irq_set set = {.argsz = sizeof(set),
                             .flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER,
                             .index = VFU_DEV_MSIX_IRQ,
                             .start = 3,
                             .count = 1};
  struct iovec pieces[2] = {{0}, {&set, sizeof(set)}};
  int event = eventfd(0, EFD_NONBLOCK);
  eventfd_t count = 0;

  check(tran_sock_msg_iovec(sock, 2, VFIO_USER_DEVICE_SET_IRQS, pieces, 2, &event, 1, NULL, NULL, 0, NULL,
                            NULL) == 0,
        "eventfd given");
  set.flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;
  ask(VFIO_USER_DEVICE_SET_IRQS, &set, sizeof(set), NULL, 0);
  check(eventfd_read(event, &count) == 0 && count == 1, "interrupt");
}

static void use_memory(void) {
  struct vfio_user_dma_map map = {.argsz = sizeof(map), .flags = 3, .addr = 0x10000, .size = 8192};
  struct vfio_user_dma_unmap unmap = {.argsz = sizeof(unmap), .addr = 0x10000, .size = 8192};
  struct iovec pieces[2] = {{0}, {&map, sizeof(map)}};
  int memory = memfd_create("foreign", 0);

  check(ftruncate(memory, 8192) == 0, "memory");
  check(
      tran_sock_msg_iovec(sock, 3, VFIO_USER_DMA_MAP, pieces, 2, &memory, 1, NULL, NULL, 0, NULL, NULL) == 0,
      "memory given");
  ask(VFIO_USER_DMA_UNMAP, &unmap, sizeof(unmap), &unmap, sizeof(unmap));
}

int main(int argc, char** argv) {
  unsigned id = 0, interface = 0;
  unsigned short command = 6;

  check(argc == 2, "usage: foreign_client SOCKET");
  connect_to(argv[1]);
  negotiate();
  look_at_device();
  access_region(VFU_PCI_DEV_CFG_REGION_IDX, 0, &id, 4, 0);
  check(id == 0x101915b3, "vendor and device");
  access_region(VFU_PCI_DEV_CFG_REGION_IDX, 4, &command, 2, 1);
  access_region(VFU_PCI_DEV_BAR0_REGION_IDX, 4, &interface, 4, 0);
  check(__builtin_bswap32(interface) >> 16 == 5, "command interface revision");
  use_interrupts();
  use_memory();
  ask(VFIO_USER_DEVICE_RESET, NULL, 0, NULL, 0);
  puts("foreign client: all as it should be");
  return 0;
}
