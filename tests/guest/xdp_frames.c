// SPDX-License-Identifier: BSD-3-Clause
//
// xdp_frames INTERFACE pass|drop|tx: an XDP program that takes frames of several buffers is on the interface,
// in native mode, until this program's input ends, and does that with each frame; one that is sent back has
// its MAC addresses swapped. Prints "attached", and at the end how many of the frames had several buffers.
// The system calls are made directly, as the guest has no libbpf. Status 0; 1: the kernel or the driver
// refuses, with a line that says what.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int require(int good, const char* what) {
  if (good >= 0) return good;
  fprintf(stderr, "xdp_frames: %s: %s\n", what, strerror(errno));
  exit(1);
}
static int bpf(int command, union bpf_attr* attr) {
  return (int)syscall(__NR_bpf, command, attr, sizeof(*attr));
}

#define REGISTER(d, s) \
  { .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = (d), .src_reg = (s) }
#define NUMBER(d, n) \
  { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (d), .imm = (n) }
#define CALL(function) \
  { .code = BPF_JMP | BPF_CALL, .imm = (function) }

#define LOAD(d, size, s, at) \
  { .code = BPF_LDX | BPF_MEM | (size), .dst_reg = (d), .src_reg = (s), .off = (at) }
#define STORE(d, size, at, s) \
  { .code = BPF_STX | BPF_MEM | (size), .dst_reg = (d), .src_reg = (s), .off = (at) }

// if (bpf_xdp_get_buff_len(frame) > frame->data_end - frame->data) map[0]++;
// if (action == XDP_TX) swap the frame's two MAC addresses;
// return action;
static int load_program(int map, int action) {
  const struct bpf_insn code[] = {
      REGISTER(6, 1),
      CALL(BPF_FUNC_xdp_get_buff_len),
      LOAD(2, BPF_W, 6, offsetof(struct xdp_md, data)),
      LOAD(3, BPF_W, 6, offsetof(struct xdp_md, data_end)),
      {.code = BPF_ALU64 | BPF_SUB | BPF_X, .dst_reg = 3, .src_reg = 2},
      {.code = BPF_JMP | BPF_JLE | BPF_X, .dst_reg = 0, .src_reg = 3, .off = 9},
      {.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = 10, .off = -4, .imm = 0},
      REGISTER(2, 10),
      {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 2, .imm = -4},
      {.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map},
      {.imm = 0},
      CALL(BPF_FUNC_map_lookup_elem),
      {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .imm = 0, .off = 2},
      NUMBER(1, 1),
      {.code = BPF_STX | BPF_ATOMIC | BPF_DW, .dst_reg = 0, .src_reg = 1, .imm = BPF_ADD},
      NUMBER(1, action == XDP_TX),
      {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 1, .imm = 0, .off = 13},
      LOAD(2, BPF_W, 6, offsetof(struct xdp_md, data)),
      LOAD(3, BPF_W, 6, offsetof(struct xdp_md, data_end)),
      REGISTER(1, 2),
      {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .imm = 14},
      {.code = BPF_JMP | BPF_JGT | BPF_X, .dst_reg = 1, .src_reg = 3, .off = 8},
      LOAD(4, BPF_W, 2, 0),
      LOAD(5, BPF_H, 2, 4),
      LOAD(7, BPF_W, 2, 6),
      LOAD(8, BPF_H, 2, 10),
      STORE(2, BPF_W, 0, 7),
      STORE(2, BPF_H, 4, 8),
      STORE(2, BPF_W, 6, 4),
      STORE(2, BPF_H, 10, 5),
      NUMBER(0, action),
      {.code = BPF_JMP | BPF_EXIT},
  };
  static char log[65536];
  union bpf_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.prog_type = BPF_PROG_TYPE_XDP;
  attr.prog_flags = BPF_F_XDP_HAS_FRAGS;
  attr.insns = (uintptr_t)code;
  attr.insn_cnt = sizeof(code) / sizeof(code[0]);
  attr.license = (uintptr_t) "Dual BSD/GPL";
  attr.log_buf = (uintptr_t)log;
  attr.log_size = sizeof(log);
  attr.log_level = 1;
  const int program = bpf(BPF_PROG_LOAD, &attr);
  if (program < 0) fputs(log, stderr);
  return require(program, "BPF_PROG_LOAD");
}

int main(int argc, char** argv) {
  int action = -1;
  if (argc == 3 && !strcmp(argv[2], "pass")) action = XDP_PASS;
  if (argc == 3 && !strcmp(argv[2], "drop")) action = XDP_DROP;
  if (argc == 3 && !strcmp(argv[2], "tx")) action = XDP_TX;
  if (action < 0) {
    fputs("usage: xdp_frames INTERFACE pass|drop|tx\n", stderr);
    return 2;
  }
  const unsigned interface = if_nametoindex(argv[1]);
  require(interface ? 0 : -1, argv[1]);
  union bpf_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.map_type = BPF_MAP_TYPE_ARRAY;
  attr.key_size = sizeof(uint32_t);
  attr.value_size = sizeof(uint64_t);
  attr.max_entries = 1;
  const int map = require(bpf(BPF_MAP_CREATE, &attr), "BPF_MAP_CREATE");
  const int program = load_program(map, action);
  memset(&attr, 0, sizeof(attr));
  attr.link_create.prog_fd = (uint32_t)program;
  attr.link_create.target_ifindex = interface;
  attr.link_create.attach_type = BPF_XDP;
  attr.link_create.flags = XDP_FLAGS_DRV_MODE;
  require(bpf(BPF_LINK_CREATE, &attr), "BPF_LINK_CREATE");
  puts("attached");
  fflush(stdout);
  while (getchar() != EOF) continue;
  const uint32_t key = 0;
  uint64_t several = 0;
  memset(&attr, 0, sizeof(attr));
  attr.map_fd = (uint32_t)map;
  attr.key = (uintptr_t)&key;
  attr.value = (uintptr_t)&several;
  require(bpf(BPF_MAP_LOOKUP_ELEM, &attr), "BPF_MAP_LOOKUP_ELEM");
  printf("frames of several buffers: %llu\n", (unsigned long long)several);
  return 0;
}
