// SPDX-License-Identifier: BSD-3-Clause
//
// The steering rules of raw_check.c, as libibverbs wants them: an attribute with specs behind it. A rule that
// is refused ends the program.
#ifndef HCASIM_TESTS_GUEST_RAW_RULE_H
#define HCASIM_TESTS_GUEST_RAW_RULE_H

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include "raw_frame.h"

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char* format, ...);

struct rule {
  struct ibv_flow_attr attr;
  uint8_t specs[256];
};

static void add_spec(struct rule* r, const void* spec, size_t size) {
  memcpy((uint8_t*)r + r->attr.size, spec, size);
  r->attr.size = (uint16_t)(r->attr.size + size);
  ++r->attr.num_of_specs;
}

static struct rule start_rule(const uint8_t* mac, int vlan) {
  struct rule r = {.attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof r.attr, .port = 1}};
  struct ibv_flow_spec_eth eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof eth};
  memcpy(eth.val.dst_mac, mac, 6);
  memset(eth.mask.dst_mac, 0xff, 6);
  if (vlan) {
    eth.val.vlan_tag = htons((uint16_t)vlan);
    eth.mask.vlan_tag = htons(0xfff);
  }
  add_spec(&r, &eth, sizeof eth);
  return r;
}

// The UDP or TCP port, for frames to this MAC and address.
static struct rule port_rule(enum ibv_flow_spec_type l4, uint16_t port) {
  struct rule r = start_rule(to_mac, 0);
  struct ibv_flow_spec_ipv4 ip = {.type = IBV_FLOW_SPEC_IPV4, .size = sizeof ip};
  struct ibv_flow_spec_tcp_udp ports = {.type = l4, .size = sizeof ports};
  ip.val.dst_ip = to_ip.s_addr;
  ip.mask.dst_ip = 0xffffffff;
  ports.val.dst_port = htons(port);
  ports.mask.dst_port = 0xffff;
  add_spec(&r, &ip, sizeof ip);
  add_spec(&r, &ports, sizeof ports);
  return r;
}

static struct ibv_flow* install(struct ibv_qp* qp, struct rule* r, const char* what) {
  struct ibv_flow* flow = ibv_create_flow(qp, &r->attr);
  if (flow == NULL) fail("create_flow, %s: %s", what, strerror(errno));
  return flow;
}

static void tag_rule(struct rule* r, uint32_t tag) {
  struct ibv_flow_spec_action_tag spec = {
      .type = IBV_FLOW_SPEC_ACTION_TAG, .size = sizeof spec, .tag_id = tag};
  add_spec(r, &spec, sizeof spec);
}

static void remove_rule(struct ibv_flow** flow) {
  if (*flow != NULL && ibv_destroy_flow(*flow) != 0) fail("destroy_flow: %s", strerror(errno));
  *flow = NULL;
}

#endif
