// SPDX-License-Identifier: BSD-3-Clause
//
// af_xdp SENDER RECEIVER FRAMES [CHUNK [unaligned]]: sends FRAMES frames through an AF_XDP socket in
// zero-copy mode on queue 0 of the interface SENDER and wants each of them from such a socket of RECEIVER,
// byte for byte: a cable joins the two. An XDP program, attached in native mode, hands what arrives to the
// socket. The system calls are made directly, as the guest has no libxdp. CHUNK: bytes of each buffer (4096),
// which lies anywhere in a page if unaligned. Status 0: every frame came.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kHalf = 256, kRing = 256, kBatch = 32, kLimitSeconds = 60 };
// Local experimental EtherType 1 (IEEE 802): nothing of the kernel sends it.
enum { kEtherType = 0x88b5 };

static uint32_t chunk = 4096;
static int unaligned;

// Buffer number i: chunks one behind the other, or anywhere in a page of its own (the kernel takes none that
// lies across pages which are not neighbours).
static uint64_t place(uint32_t i) {
  if (!unaligned) return (uint64_t)i * chunk;
  return (uint64_t)i * 4096 + i * 72 % (4096 - chunk + 1);
}
// What the address of a received frame says: its buffer, and where the frame begins.
static uint64_t buffer_of(uint64_t address) {
  return unaligned ? address & XSK_UNALIGNED_BUF_ADDR_MASK : address - address % chunk;
}
static uint64_t start_of(uint64_t address) {
  return unaligned ? (address & XSK_UNALIGNED_BUF_ADDR_MASK) + (address >> XSK_UNALIGNED_BUF_OFFSET_SHIFT)
                   : address;
}

struct ring {
  uint32_t *producer, *consumer;
  void* entries;
};

static void require(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static int bpf(int command, union bpf_attr* attr) {
  return (int)syscall(__NR_bpf, command, attr, sizeof(*attr));
}

static uint32_t load(const uint32_t* at) { return __atomic_load_n(at, __ATOMIC_ACQUIRE); }
static void store(uint32_t* at, uint32_t value) { __atomic_store_n(at, value, __ATOMIC_RELEASE); }

static struct ring map_ring(int fd, const struct xdp_ring_offset* at, size_t entry, off_t page) {
  char* base =
      mmap(NULL, at->desc + kRing * entry, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, page);
  require(base != MAP_FAILED, "mmap of a ring");
  return (struct ring){(uint32_t*)(base + at->producer), (uint32_t*)(base + at->consumer), base + at->desc};
}

// The program: return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS).
static int load_program(int map) {
  const struct bpf_insn code[] = {
      {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = 16},
      {.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map},
      {.imm = 0},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS},
      {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map},
      {.code = BPF_JMP | BPF_EXIT},
  };
  union bpf_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.prog_type = BPF_PROG_TYPE_XDP;
  attr.insns = (uintptr_t)code;
  attr.insn_cnt = sizeof(code) / sizeof(code[0]);
  attr.license = (uintptr_t) "Dual BSD/GPL";
  const int program = bpf(BPF_PROG_LOAD, &attr);
  require(program >= 0, "BPF_PROG_LOAD");
  return program;
}

static void attach(int interface, int socket_fd) {
  union bpf_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.map_type = BPF_MAP_TYPE_XSKMAP;
  attr.key_size = attr.value_size = sizeof(uint32_t);
  attr.max_entries = 1;
  const int map = bpf(BPF_MAP_CREATE, &attr);
  require(map >= 0, "BPF_MAP_CREATE");
  const int program = load_program(map);
  const uint32_t queue = 0;
  memset(&attr, 0, sizeof(attr));
  attr.map_fd = (uint32_t)map;
  attr.key = (uintptr_t)&queue;
  attr.value = (uintptr_t)&socket_fd;
  require(bpf(BPF_MAP_UPDATE_ELEM, &attr) == 0, "BPF_MAP_UPDATE_ELEM");
  memset(&attr, 0, sizeof(attr));
  attr.link_create.prog_fd = (uint32_t)program;
  attr.link_create.target_ifindex = (uint32_t)interface;
  attr.link_create.attach_type = BPF_XDP;
  attr.link_create.flags = XDP_FLAGS_DRV_MODE;
  require(bpf(BPF_LINK_CREATE, &attr) >= 0, "BPF_LINK_CREATE");
}

// What frame `number` looks like; its length.
static uint32_t make_frame(uint8_t* frame, uint32_t number, const uint8_t* source) {
  const uint32_t length = 60 + number * 37 % 1440;
  memset(frame, 0xff, ETH_ALEN);
  memcpy(frame + ETH_ALEN, source, ETH_ALEN);
  frame[12] = kEtherType >> 8;
  frame[13] = kEtherType & 0xff;
  const uint32_t wire = htonl(number);
  memcpy(frame + 14, &wire, sizeof(wire));
  for (uint32_t i = 18; i < length; i++) frame[i] = (uint8_t)(number * 13 + i * 7);
  return length;
}

struct port {
  int fd;
  uint8_t* memory;  // kHalf frames to be sent, then kHalf to be received into
  struct ring fill, completion, receive, transmit;
  uint8_t address[ETH_ALEN];
  uint32_t sent, completed, received;
};

static void open_socket(struct port* port, uint32_t interface) {
  const int ring = kRing;
  const size_t size = (size_t)2 * kHalf * (unaligned ? 4096 : chunk);
  port->fd = socket(AF_XDP, SOCK_RAW, 0);
  require(port->fd >= 0, "AF_XDP");
  port->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(port->memory != MAP_FAILED, "mmap");
  const struct xdp_umem_reg umem = {.addr = (uintptr_t)port->memory,
                                    .len = size,
                                    .chunk_size = chunk,
                                    .flags = unaligned ? XDP_UMEM_UNALIGNED_CHUNK_FLAG : 0};
  require(setsockopt(port->fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof(umem)) == 0, "XDP_UMEM_REG");
  const int rings[] = {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING};
  for (size_t i = 0; i < 4; i++)
    require(setsockopt(port->fd, SOL_XDP, rings[i], &ring, sizeof(ring)) == 0, "a ring");
  struct xdp_mmap_offsets at;
  socklen_t length = sizeof(at);
  require(getsockopt(port->fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &length) == 0, "XDP_MMAP_OFFSETS");
  port->fill = map_ring(port->fd, &at.fr, sizeof(uint64_t), (off_t)XDP_UMEM_PGOFF_FILL_RING);
  port->completion = map_ring(port->fd, &at.cr, sizeof(uint64_t), (off_t)XDP_UMEM_PGOFF_COMPLETION_RING);
  port->receive = map_ring(port->fd, &at.rx, sizeof(struct xdp_desc), XDP_PGOFF_RX_RING);
  port->transmit = map_ring(port->fd, &at.tx, sizeof(struct xdp_desc), (off_t)XDP_PGOFF_TX_RING);
  for (uint32_t i = 0; i < kHalf; i++) ((uint64_t*)port->fill.entries)[i] = place(kHalf + i);
  store(port->fill.producer, kHalf);
  const struct sockaddr_xdp to = {.sxdp_family = AF_XDP,
                                  .sxdp_flags = XDP_ZEROCOPY | XDP_USE_NEED_WAKEUP,
                                  .sxdp_ifindex = interface,
                                  .sxdp_queue_id = 0};
  require(bind(port->fd, (const struct sockaddr*)&to, sizeof(to)) == 0, "bind with XDP_ZEROCOPY");
  struct xdp_options options;
  length = sizeof(options);
  require(getsockopt(port->fd, SOL_XDP, XDP_OPTIONS, &options, &length) == 0 &&
              (options.flags & XDP_OPTIONS_ZEROCOPY),
          "zero copy");
}

// At most kBatch frames are under way, so that none is lost for want of a buffer.
static void send_some(struct port* port, uint32_t received, uint32_t frames) {
  const uint32_t done = load(port->completion.producer) - *port->completion.consumer;
  port->completed += done;
  store(port->completion.consumer, *port->completion.consumer + done);
  while (port->sent < frames && port->sent - received < kBatch && port->sent - port->completed < kRing) {
    const uint64_t address = place(port->sent % kHalf);
    struct xdp_desc* desc = (struct xdp_desc*)port->transmit.entries + *port->transmit.producer % kRing;
    *desc = (struct xdp_desc){.addr = address,
                              .len = make_frame(port->memory + address, port->sent, port->address)};
    store(port->transmit.producer, *port->transmit.producer + 1);
    port->sent++;
  }
  if (port->completed < port->sent && sendto(port->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) < 0)
    require(errno == EAGAIN || errno == EBUSY || errno == ENOBUFS, "sendto");
}

static void receive_some(struct port* port, const uint8_t* source) {
  static uint8_t want[4096];
  while (*port->receive.consumer != load(port->receive.producer)) {
    const struct xdp_desc desc = ((struct xdp_desc*)port->receive.entries)[*port->receive.consumer % kRing];
    const uint8_t* frame = port->memory + start_of(desc.addr);
    // The kernel sends some of its own, such as router solicitations.
    if (desc.len >= 18 && frame[12] == kEtherType >> 8 && frame[13] == (kEtherType & 0xff)) {
      const uint32_t length = make_frame(want, port->received, source);
      if (desc.len != length || memcmp(frame, want, length) != 0) {
        fprintf(stderr, "frame %u: %u bytes, expected %u, or other content\n", port->received, desc.len,
                length);
        exit(1);
      }
      port->received++;
    }
    ((uint64_t*)port->fill.entries)[*port->fill.producer % kRing] = buffer_of(desc.addr);
    store(port->fill.producer, *port->fill.producer + 1);
    store(port->receive.consumer, *port->receive.consumer + 1);
  }
}

static void open_port(struct port* port, const char* name) {
  const uint32_t interface = if_nametoindex(name);
  require(interface != 0, name);
  struct ifreq request;
  memset(&request, 0, sizeof(request));
  strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  const int any = socket(AF_INET, SOCK_DGRAM, 0);
  require(any >= 0 && ioctl(any, SIOCGIFHWADDR, &request) == 0, "SIOCGIFHWADDR");
  close(any);
  memcpy(port->address, request.ifr_hwaddr.sa_data, ETH_ALEN);
  open_socket(port, interface);
  attach((int)interface, port->fd);
}

// The driver takes the link down to set up its queues anew.
static int carrier(const char* name) {
  char path[64], state = '0';
  snprintf(path, sizeof(path), "/sys/class/net/%s/carrier", name);
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  const size_t got = fread(&state, 1, 1, file);
  fclose(file);
  return got == 1 && state == '1';
}

int main(int argc, char** argv) {
  if (argc < 4 || argc > 6) {
    fprintf(stderr, "usage: %s SENDER RECEIVER FRAMES [CHUNK [unaligned]]\n", argv[0]);
    return 2;
  }
  static struct port from, to;
  const uint32_t frames = (uint32_t)strtoul(argv[3], NULL, 0);
  if (argc > 4) chunk = (uint32_t)strtoul(argv[4], NULL, 0);
  unaligned = argc > 5;
  open_port(&from, argv[1]);
  open_port(&to, argv[2]);
  const time_t end = time(NULL) + kLimitSeconds;
  while (!(carrier(argv[1]) && carrier(argv[2])) && time(NULL) < end) poll(NULL, 0, 10);
  while ((to.received < frames || from.completed < frames) && time(NULL) < end) {
    send_some(&from, to.received, frames);
    struct pollfd poll_fd = {.fd = to.fd, .events = POLLIN};
    require(poll(&poll_fd, 1, 10) >= 0, "poll");
    receive_some(&to, from.address);
  }
  struct xdp_statistics statistics;
  socklen_t length = sizeof(statistics);
  require(getsockopt(to.fd, SOL_XDP, XDP_STATISTICS, &statistics, &length) == 0, "XDP_STATISTICS");
  printf("sent %u, completed %u, received %u, dropped %llu, bad descriptors %llu\n", from.sent,
         from.completed, to.received, (unsigned long long)statistics.rx_dropped,
         (unsigned long long)(statistics.rx_invalid_descs + statistics.tx_invalid_descs));
  return to.received == frames && from.completed == frames ? 0 : 1;
}
