// SPDX-License-Identifier: BSD-3-Clause
//
// Ethernet frames of the programs dv_*.c, and the steering rule that brings them to a raw packet QP.
#ifndef HCASIM_TESTS_GUEST_DV_FRAMES_H
#define HCASIM_TESTS_GUEST_DV_FRAMES_H

#include "dv_common.h"

enum { kHeaders = 64 };
static const uint8_t kMac[6] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};

struct mac_rule {
  struct ibv_flow_attr attr;
  struct ibv_flow_spec_eth eth;
  struct ibv_flow_spec_counter_action count;
} __attribute__((packed));

// What is for this MAC address goes to the QP; counted, if there are counters.
static inline struct ibv_flow* rule_for_mac(struct ibv_qp* qp, const uint8_t* mac,
                                            struct ibv_counters* counters) {
  struct mac_rule rule = {
      .attr = {.type = IBV_FLOW_ATTR_NORMAL,
               .size = sizeof rule,
               .num_of_specs = counters != NULL ? 2 : 1,
               .port = 1},
      .eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof rule.eth},
      .count = {.type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof rule.count, .counters = counters}};
  memcpy(rule.eth.val.dst_mac, mac, 6);
  memset(rule.eth.mask.dst_mac, 0xff, 6);
  uint64_t aligned[sizeof rule / 8 + 1];
  memcpy(aligned, &rule, sizeof rule);
  struct ibv_flow* flow = ibv_create_flow(qp, (struct ibv_flow_attr*)(void*)aligned);
  if (flow == NULL) fail("ibv_create_flow");
  return flow;
}

// A raw packet QP that also receives what its own process sends: by default the card keeps a transport
// domain's frames from it.
static inline struct ibv_qp* make_looped_qp(struct ibv_qp_init_attr_ex* init) {
  struct mlx5dv_qp_init_attr loop = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
                                     .create_flags = MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC};
  init->qp_type = IBV_QPT_RAW_PACKET;
  init->comp_mask |= IBV_QP_INIT_ATTR_PD;
  init->pd = pd;
  struct ibv_qp* qp = mlx5dv_create_qp(context, init, &loop);
  if (qp == NULL) fail("a raw packet QP");
  return qp;
}

static inline void ethernet_header(uint8_t* to, const uint8_t* mac, uint16_t type) {
  static const uint8_t source[6] = {0x02, 0x99, 0x88, 0x77, 0x66, 0x55};
  memcpy(to, mac, 6);
  memcpy(to + 6, source, 6);
  to[12] = (uint8_t)(type >> 8);
  to[13] = (uint8_t)type;
}

static inline uint32_t sum16(const uint8_t* at, size_t size, uint32_t sum) {
  for (size_t i = 0; i < size; i++) sum += i % 2 ? at[i] : (uint32_t)at[i] << 8;
  return sum;
}
static inline uint32_t folded(uint32_t sum) {
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

// Ethernet, IPv4 and TCP in front of that much payload; checksums are the card's. Returns their size.
static inline uint32_t tcp_headers(uint8_t* to, const uint8_t* mac, uint32_t payload, uint32_t sequence) {
  ethernet_header(to, mac, 0x0800);
  uint8_t *ip = to + 14, *tcp = ip + 20;
  memset(ip, 0, 40);
  put(ip, 0, 8, 0x45);
  put(ip, 16, 16, 40 + payload);
  put(ip, 32, 16, 77);
  put(ip, 64, 8, 9);
  put(ip, 72, 8, 6);
  put(ip, 96, 32, 0x0a010203);
  put(ip, 128, 32, 0x0a010204);
  put(tcp, 0, 16, 5001);
  put(tcp, 16, 16, 5002);
  put(tcp, 32, 32, sequence);
  put(tcp, 96, 16, 0x5018);
  put(tcp, 112, 16, 4096);
  return 54;
}

// A segment that the card has cut: lengths, sequence number, both checksums, payload.
static inline void segment_is(const uint8_t* frame, uint32_t headers, uint32_t payload, uint32_t sequence,
                              const uint8_t* bytes) {
  const uint8_t *ip = frame + 14, *tcp = ip + 20;
  SAME(get(ip, 16, 16), 40 + payload);
  SAME(get(tcp, 32, 32), sequence);
  SAME(folded(sum16(ip, 20, 0)), 0xffff);
  SAME(folded(sum16(tcp, 20 + payload, sum16(ip + 12, 8, 6 + 20 + payload))), 0xffff);
  same_bytes(frame + headers, bytes, payload, "a segment's payload");
}

#endif
