// SPDX-License-Identifier: BSD-3-Clause
//
// Software steering (mlx5dv_dr): what rules do to frames, in a receive domain and in a transmit domain, and
// tables that grow and shrink.
//   dr_actions SENDER RECEIVER
// Each frame that arrives is compared byte by byte with what the rule says. Status 0: all was right. Actions
// that the library refuses are printed.
#define _GNU_SOURCE
#include "dr_ends.h"

enum { kAlloc = 0x939, kQuery = 0x93b, kFirstTag = 0x100, kPort = 0x7b19 };
enum { kSet = 1, kAdd = 2, kCopy = 3 };
enum {
  kSmac47 = 1,
  kSmac15,
  kEtype,
  kDmac47,
  kDmac15,
  kDscp,
  kTcpFlags,
  kTcpSport,
  kTcpDport,
  kTtl,
  kUdpSport,
  kUdpDport,
  kSip6 = 0xd,
  kDip6 = 0x11,
  kSip4 = 0x15,
  kDip4,
  kVid,
  kHop6 = 0x47,
  kRegA = 0x49,
  kRegB = 0x50,
  kRegC0 = 0x51,
  kSeq = 0x59,
  kAck = 0x5b
};

// A domain whose root leads to its first table, at the end of which is `rest`.
struct domain {
  struct mlx5dv_dr_domain* domain;
  struct mlx5dv_dr_table *root, *tables[3];
  struct mlx5dv_dr_matcher *any, *rest[3];
  struct mlx5dv_dr_rule *lead, *last[3];
  struct mlx5dv_dr_action *in[3], *out;
};
static struct domain rx, tx;
static struct mlx5dv_dr_action *to[kQueues], *tag_hit, *drop;
static unsigned number;
static const struct mask kNone = {.size = sizeof kNone.bytes};

static struct mlx5dv_dr_rule* add_rule(struct mlx5dv_dr_matcher* m, const struct mask* value, unsigned n,
                                       struct mlx5dv_dr_action* const* actions) {
  struct mlx5dv_dr_rule* r =
      mlx5dv_dr_rule_create(m, params(value), n, (struct mlx5dv_dr_action**)(uintptr_t)actions);
  must(r, "rule_create");
  return r;
}

static void open_domain(struct domain* d, struct ibv_context* context, enum mlx5dv_dr_domain_type type,
                        struct mlx5dv_dr_action* out) {
  d->domain = mlx5dv_dr_domain_create(context, type);
  must(d->domain, "domain_create");
  d->out = out;
  must(d->root = mlx5dv_dr_table_create(d->domain, 0), "root table");
  must(d->any = mlx5dv_dr_matcher_create(d->root, 0, 0, params(&kNone)), "the root's matcher");
  for (int i = 0; i < 3; ++i) {
    must(d->tables[i] = mlx5dv_dr_table_create(d->domain, (uint32_t)i + 1), "table_create");
    must(d->in[i] = mlx5dv_dr_action_create_dest_table(d->tables[i]), "dest_table");
    must(d->rest[i] = mlx5dv_dr_matcher_create(d->tables[i], 9, 0, params(&kNone)), "the last matcher");
    if (out) d->last[i] = add_rule(d->rest[i], &kNone, 1, &out);
  }
  d->lead = add_rule(d->any, &kNone, 1, d->in);
}
static void close_domain(struct domain* d) {
  must_do(mlx5dv_dr_rule_destroy(d->lead), "rule_destroy");
  must_do(mlx5dv_dr_matcher_destroy(d->any), "matcher_destroy");
  for (int i = 0; i < 3; ++i) {
    if (d->last[i]) must_do(mlx5dv_dr_rule_destroy(d->last[i]), "rule_destroy");
    must_do(mlx5dv_dr_matcher_destroy(d->rest[i]), "matcher_destroy");
    must_do(mlx5dv_dr_action_destroy(d->in[i]), "action_destroy");
    must_do(mlx5dv_dr_table_destroy(d->tables[i]), "table_destroy");
  }
  must_do(mlx5dv_dr_table_destroy(d->root), "table_destroy");
  must_do(mlx5dv_dr_domain_destroy(d->domain), "domain_destroy");
}

// The matcher and the rule for frames to that UDP or TCP port.
static struct mlx5dv_dr_matcher* matcher;
static struct mlx5dv_dr_rule* rule;
static struct mask port_value(unsigned at, unsigned version, unsigned port, struct mask* mask) {
  struct mask value = {0};
  *mask = (struct mask){0};
  set_bits(mask, 147, 4, version);
  set_bits(&value, 147, 4, version);
  set_bits(mask, at, 16, 0xffff);
  set_bits(&value, at, 16, port);
  return value;
}
static void install(struct domain* d, enum shape shape, unsigned n, struct mlx5dv_dr_action* const* actions) {
  const struct frame f = make_frame(shape);
  const uint8_t* l4 = f.b + f.at[kL4];
  struct mask mask;
  const struct mask value = port_value(shape == kTcp4Tag || shape == kTcp6Tag ? 176 : 240,
                                       f.b[f.at[kIp]] >> 4, (unsigned)l4[2] << 8 | l4[3], &mask);
  must(matcher = mlx5dv_dr_matcher_create(d->tables[0], 1, 1, params(&mask)), "matcher_create");
  rule = add_rule(matcher, &value, n, actions);
}
static void uninstall(void) {
  must_do(mlx5dv_dr_rule_destroy(rule), "rule_destroy");
  must_do(mlx5dv_dr_matcher_destroy(matcher), "matcher_destroy");
}
static void gone(struct mlx5dv_dr_action* a) { must_do(mlx5dv_dr_action_destroy(a), "action_destroy"); }
static int refused(const void* action) {
  if (action == NULL) printf("not offered: %s (%s)\n", phase, strerror(errno));
  return action == NULL;
}

static struct mlx5dv_devx_obj* make_counter(struct ibv_context* context, uint32_t* id) {
  uint32_t in[8] = {htobe32(kAlloc << 16)}, out[4] = {0};
  struct mlx5dv_devx_obj* o = mlx5dv_devx_obj_create(context, in, sizeof in, out, sizeof out);
  must(o, "a counter");
  *id = be32toh(out[2]);
  return o;
}
static void want_counted(struct mlx5dv_devx_obj* o, uint32_t id, uint64_t packets, uint64_t bytes) {
  uint32_t in[8] = {htobe32(kQuery << 16)}, out[8] = {0};
  in[7] = htobe32(id);
  must_do(mlx5dv_devx_obj_query(o, in, sizeof in, out, sizeof out), "query_flow_counter");
  const uint64_t p = (uint64_t)be32toh(out[4]) << 32 | be32toh(out[5]),
                 b = (uint64_t)be32toh(out[6]) << 32 | be32toh(out[7]);
  if (p != packets || b != bytes)
    fail("counted %llu packets and %llu bytes, not %llu and %llu", (unsigned long long)p,
         (unsigned long long)b, (unsigned long long)packets, (unsigned long long)bytes);
}

static struct frame numbered(enum shape shape) {
  struct frame f = make_frame(shape);
  number_frame(&f, ++number);
  finish_layer(&f, kInnerIp, kInnerL4);
  finish_layer(&f, kIp, kL4);
  return f;
}
// No frame comes: the one that is sent behind is next.
static void want_nothing(void) {
  const struct frame f = numbered(kIcmp4);
  send_frame(&f);
  want(&f, kMissed, 0);
}

// Headers that actions write: a list of these, as modify headers of the firmware are written.
static uint64_t change(unsigned type, unsigned field, unsigned offset, unsigned length, uint32_t data) {
  return htobe64((uint64_t)(type << 28 | field << 16 | offset << 8 | (length & 31)) << 32 | data);
}

static void check_fate(void) {
  uint32_t id;
  phase = "drop and count";
  struct mlx5dv_devx_obj* counter = make_counter(receiver.context, &id);
  struct mlx5dv_dr_action* count = mlx5dv_dr_action_create_flow_counter(counter, 0);
  must(count, "flow_counter");
  unsigned bytes = 0;
  install(&rx, kUdp4, 2, (struct mlx5dv_dr_action*[]){count, drop});
  for (int i = 0; i < 3; ++i) {
    const struct frame f = numbered(kUdp4);
    bytes += f.len;
    send_frame(&f);
  }
  want_nothing();
  want_counted(counter, id, 3, bytes);
  uninstall();
  phase = "tag and count";
  install(&rx, kTcp6Tag, 3, (struct mlx5dv_dr_action*[]){tag_hit, count, to[kHit]});
  struct frame f = numbered(kTcp6Tag);
  send_frame(&f);
  want(&f, kHit, kFirstTag);
  want_counted(counter, id, 4, bytes + f.len);
  uninstall();
  gone(count);
  must_do(mlx5dv_devx_obj_destroy(counter), "a counter's end");

  phase = "an array of destinations";
  struct mlx5dv_dr_action_dest_attr dests[] = {{.type = MLX5DV_DR_ACTION_DEST, .dest = to[kHit]},
                                               {.type = MLX5DV_DR_ACTION_DEST, .dest = to[kThird]}};
  struct mlx5dv_dr_action* array = mlx5dv_dr_action_create_dest_array(
      rx.domain, 2, (struct mlx5dv_dr_action_dest_attr*[]){&dests[0], &dests[1]});
  if (!refused(array)) {
    install(&rx, kUdp6, 1, &array);
    f = numbered(kUdp6);
    send_frame(&f);
    unsigned at = 0;
    for (int i = 0; i < 2; ++i) {
      if (!receive(kLimit)) fail("one copy is missing");
      if (arrival.len != f.len || memcmp(arrival.bytes, f.b, f.len) != 0) fail("a copy differs");
      at |= 1u << arrival.queue;
    }
    if (at != (1u << kHit | 1u << kThird)) fail("copies are at queues %#x", at);
    ++checked;
    uninstall();
    gone(array);
  }

  phase = "a sampler";
  struct mlx5dv_dr_action* samples[] = {to[kThird]};
  struct mlx5dv_dr_flow_sampler_attr attr = {.sample_ratio = 1,
                                             .default_next_table = rx.tables[2],
                                             .num_sample_actions = 1,
                                             .sample_actions = samples};
  struct mlx5dv_dr_action* sampler = mlx5dv_dr_action_create_flow_sampler(&attr);
  if (!refused(sampler)) {
    install(&rx, kUdp4, 1, &sampler);
    f = numbered(kUdp4);
    send_frame(&f);
    unsigned at = 0;
    for (int i = 0; i < 2; ++i) {
      if (!receive(kLimit)) fail("one copy is missing");
      at |= 1u << arrival.queue;
    }
    if (at != (1u << kMissed | 1u << kThird)) fail("copies are at queues %#x", at);
    ++checked;
    uninstall();
    gone(sampler);
  }
}

static void check_registers(void) {
  for (unsigned r = 0; r < 6; ++r) {
    static char name[32];
    snprintf(name, sizeof name, "register C%u", r);
    phase = name;
    const uint32_t mark = 0x5a3c0000u | r;
    uint64_t list[] = {change(kSet, kRegC0 + r, 0, 0, mark)};
    struct mlx5dv_dr_action* a =
        mlx5dv_dr_action_create_modify_header(rx.domain, 0, sizeof list, (__be64*)list);
    if (refused(a)) continue;
    struct mask mask = {0}, value = {0};
    set_bits(&mask, 1536 + 128 + 32 * (7 - r), 32, ~0u);
    set_bits(&value, 1536 + 128 + 32 * (7 - r), 32, mark);
    struct mlx5dv_dr_matcher* m =
        mlx5dv_dr_matcher_create(rx.tables[1], 1, criteria_of(&mask), params(&mask));
    must(m, "matcher_create");
    struct mlx5dv_dr_rule* second = add_rule(m, &value, 2, (struct mlx5dv_dr_action*[]){tag_hit, to[kHit]});
    install(&rx, kUdp4, 2, (struct mlx5dv_dr_action*[]){a, rx.in[1]});
    struct frame f = numbered(kUdp4);
    send_frame(&f);
    want(&f, kHit, kFirstTag);
    uninstall();
    install(&rx, kUdp4, 1, &rx.in[1]);
    f = numbered(kUdp4);
    send_frame(&f);
    want(&f, kMissed, 0);
    uninstall();
    must_do(mlx5dv_dr_rule_destroy(second), "rule_destroy");
    must_do(mlx5dv_dr_matcher_destroy(m), "matcher_destroy");
    gone(a);
  }
}

// One field after the other; `at` and `bytes`: what is in its place afterwards.
struct rewrite {
  const char* name;
  enum shape shape;
  unsigned type, field, offset, length;
  uint32_t data;
  enum place place;
  unsigned at, bytes;
  uint32_t now;
};
static const struct rewrite kRewrites[] = {
    {"set DMAC 47:16", kUdp4, kSet, kDmac47, 0, 0, 0x02a1b2c3, kEth, 0, 4, 0x02a1b2c3},
    {"set DMAC 15:0", kUdp4, kSet, kDmac15, 0, 16, 0xd4e5, kEth, 4, 2, 0xd4e5},
    {"set SMAC 47:16", kUdp4, kSet, kSmac47, 0, 0, 0x02a1b2c3, kEth, 6, 4, 0x02a1b2c3},
    {"set SMAC 15:0", kUdp4, kSet, kSmac15, 0, 16, 0xd4e5, kEth, 10, 2, 0xd4e5},
    {"set 8 bits of DMAC 15:0", kUdp4, kSet, kDmac15, 4, 8, 0xab, kEth, 4, 2, 0x7ab4},
    {"set IPv4 source", kUdp4, kSet, kSip4, 0, 0, 0x01020304, kIp, 12, 4, 0x01020304},
    {"set IPv4 destination", kTcp4Tag, kSet, kDip4, 0, 0, 0x01020304, kIp, 16, 4, 0x01020304},
    {"set TTL", kUdp4, kSet, kTtl, 0, 8, 9, kIp, 8, 1, 9},
    {"add to TTL", kTcp4Tag, kAdd, kTtl, 0, 8, 0xff, kIp, 8, 1, 84},
    {"add to hop limit", kUdp6, kAdd, kHop6, 0, 8, 0xff, kIp, 7, 1, 76},
    {"set hop limit", kTcp6Tag, kSet, kHop6, 0, 8, 5, kIp, 7, 1, 5},
    {"set DSCP", kUdp4, kSet, kDscp, 0, 6, 0x15, kIp, 1, 1, 0x56},
    {"set UDP source", kUdp4, kSet, kUdpSport, 0, 16, 0x1234, kL4, 0, 2, 0x1234},
    {"set UDP destination", kUdp6, kSet, kUdpDport, 0, 16, 0x1234, kL4, 2, 2, 0x1234},
    {"set TCP source", kTcp4Tag, kSet, kTcpSport, 0, 16, 0x1234, kL4, 0, 2, 0x1234},
    {"set TCP destination", kTcp6Tag, kSet, kTcpDport, 0, 16, 0x1234, kL4, 2, 2, 0x1234},
    {"add to TCP's sequence number", kTcp4Tag, kAdd, kSeq, 0, 0, 0xa0000000, kL4, 4, 4, 0x0152f3a4},
    {"add to TCP's acknowledged number", kTcp4Tag, kAdd, kAck, 0, 0, 7, kL4, 8, 4, 0x37c89e5c},
    {"set IPv6 source 127:96", kUdp6, kSet, kSip6, 0, 0, 0xfd112233, kIp, 8, 4, 0xfd112233},
    {"set IPv6 source 31:0", kUdp6, kSet, kSip6 + 3, 0, 0, 0x44556677, kIp, 20, 4, 0x44556677},
    {"set IPv6 destination 95:64", kTcp6Tag, kSet, kDip6 + 1, 0, 0, 0x44556677, kIp, 28, 4, 0x44556677},
    {"set IPv6 destination 63:32", kTcp6Tag, kSet, kDip6 + 2, 0, 0, 0x8899aabb, kIp, 32, 4, 0x8899aabb},
    {"set VLAN", kTcp4Tag, kSet, kVid, 0, 12, 0x123, kTag, 0, 2, 0xb123},
};

static void check_rewrites(struct domain* d, enum queue queue) {
  for (unsigned i = 0; i < sizeof kRewrites / sizeof *kRewrites; ++i) {
    const struct rewrite* r = &kRewrites[i];
    phase = r->name;
    uint64_t list[] = {
        change(r->type, r->field, r->type == kAdd ? 0 : r->offset, r->type == kAdd ? 0 : r->length, r->data)};
    struct mlx5dv_dr_action* a =
        mlx5dv_dr_action_create_modify_header(d->domain, 0, sizeof list, (__be64*)list);
    if (refused(a)) continue;
    install(d, r->shape, d->out ? 2 : 1, (struct mlx5dv_dr_action*[]){a, to[kHit]});
    const struct frame f = numbered(r->shape);
    struct frame changed = f;
    for (unsigned b = 0; b < r->bytes; ++b)
      changed.b[changed.at[r->place] + r->at + b] = (uint8_t)(r->now >> 8 * (r->bytes - 1 - b));
    finish_layer(&changed, kIp, kL4);
    send_frame(&f);
    want(&changed, queue, 0);
    uninstall();
    gone(a);
  }
  phase = "a list of 20 actions";
  uint64_t list[20];
  for (unsigned i = 0; i < 18; ++i) list[i] = change(kSet, kSip4, 0, 0, i);
  list[18] = change(kSet, kUdpSport, 0, 16, 0x4321);
  list[19] = change(kSet, kDmac15, 0, 16, 0x1234);
  struct mlx5dv_dr_action* a =
      mlx5dv_dr_action_create_modify_header(d->domain, 0, sizeof list, (__be64*)list);
  must(a, "modify_header");
  install(d, kUdp4, d->out ? 2 : 1, (struct mlx5dv_dr_action*[]){a, to[kHit]});
  const struct frame f = numbered(kUdp4);
  struct frame changed = f;
  put32(changed.b + changed.at[kIp] + 12, 17);
  put16(changed.b + changed.at[kL4], 0x4321);
  put16(changed.b + 4, 0x1234);
  finish_layer(&changed, kIp, kL4);
  send_frame(&f);
  want(&changed, queue, 0);
  uninstall();
  gone(a);
}

static void check_received_lengths(void) {
  phase = "VLAN popped";
  struct mlx5dv_dr_action* a = mlx5dv_dr_action_create_pop_vlan();
  must(a, "pop_vlan");
  install(&rx, kTcp4Tag, 2, (struct mlx5dv_dr_action*[]){a, to[kHit]});
  struct frame f = numbered(kTcp4Tag), g = f;
  memmove(g.b + 12, g.b + 16, g.len -= 4);
  send_frame(&f);
  want(&g, kHit, 0);
  uninstall();
  gone(a);

  phase = "L2 tunnel taken off";
  a = mlx5dv_dr_action_create_packet_reformat(
      rx.domain, 0, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2, 0, NULL);
  if (!refused(a)) {
    install(&rx, kVxlan6, 2, (struct mlx5dv_dr_action*[]){a, to[kHit]});
    f = numbered(kVxlan6);
    g.len = f.len - f.at[kInnerEth];
    memcpy(g.b, f.b + f.at[kInnerEth], g.len);
    send_frame(&f);
    want(&g, kHit, 0);
    uninstall();
    gone(a);
  }
  for (int tagged = 0; tagged < 2; ++tagged) {
    phase = tagged ? "L3 tunnel taken off, for a header with a tag" : "L3 tunnel taken off";
    uint8_t header[18] = "\x02\x01\x02\x03\x04\x05\x02\x11\x12\x13\x14\x15\x08\x00";
    if (tagged) memcpy(header + 12, "\x81\x00\x00\x07\x08\x00", 6);
    const unsigned size = tagged ? 18 : 14;
    a = mlx5dv_dr_action_create_packet_reformat(
        rx.domain, 0, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L3_TUNNEL_TO_L2, size, header);
    if (refused(a)) continue;
    install(&rx, kGtp, 2, (struct mlx5dv_dr_action*[]){a, to[kHit]});
    f = numbered(kGtp);
    g.len = f.len - f.at[kInnerIp] + size;
    memcpy(g.b, header, size);
    memcpy(g.b + size, f.b + f.at[kInnerIp], g.len - size);
    send_frame(&f);
    want(&g, kHit, 0);
    uninstall();
    gone(a);
  }
}

static void check_transmit(void) {
  uint32_t id;
  struct frame f, g;
  phase = "transmit: count";
  struct mlx5dv_devx_obj* counter = make_counter(sender.context, &id);
  struct mlx5dv_dr_action* a = mlx5dv_dr_action_create_flow_counter(counter, 0);
  must(a, "flow_counter");
  install(&tx, kUdp4, 1, &a);
  f = numbered(kUdp4);
  send_frame(&f);
  want(&f, kMissed, 0);
  want_counted(counter, id, 1, f.len);
  uninstall();
  phase = "transmit: drop";
  install(&tx, kUdp4, 2, (struct mlx5dv_dr_action*[]){a, drop});
  send_frame(&f);
  want_nothing();
  want_counted(counter, id, 2, 2 * f.len);
  uninstall();
  gone(a);
  must_do(mlx5dv_devx_obj_destroy(counter), "a counter's end");

  phase = "transmit: VLAN pushed";
  a = mlx5dv_dr_action_create_push_vlan(tx.domain, htobe32(0x8100a123));
  must(a, "push_vlan");
  install(&tx, kUdp6, 1, &a);
  f = g = numbered(kUdp6);
  memmove(g.b + 16, g.b + 12, g.len - 12);
  put32(g.b + 12, 0x8100a123);
  g.len += 4;
  send_frame(&f);
  want(&g, kMissed, 0);
  uninstall();
  gone(a);

  for (int l3 = 0; l3 < 2; ++l3) {
    phase = l3 ? "transmit: L3 tunnel" : "transmit: L2 tunnel";
    struct frame tunnel = {.len = 0};
    const uint32_t vxlan[] = {0x08000000, 0x00007b00}, gre[] = {0x00000800};
    add_eth(&tunnel, kEth, 0x0800);
    add_ip4(&tunnel, kIp, l3 ? 47 : 17);
    if (!l3) add_udp(&tunnel, kL4, 4789);
    add_words(&tunnel, kTunnel, l3 ? gre : vxlan, l3 ? 1 : 2);
    a = mlx5dv_dr_action_create_packet_reformat(tx.domain, 0,
                                                l3 ? MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L3_TUNNEL
                                                   : MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL,
                                                tunnel.len, tunnel.b);
    if (refused(a)) continue;
    install(&tx, kUdp4, 1, &a);
    f = numbered(kUdp4);
    g = tunnel;
    const unsigned from = l3 ? 14 : 0;
    memcpy(g.b + g.len, f.b + from, f.len - from);
    g.len += f.len - from;
    finish_layer(&g, kIp, kL4);
    send_frame(&f);
    want(&g, kMissed, 0);
    uninstall();
    gone(a);
  }
  check_rewrites(&tx, kMissed);
}

// A matcher with more and more rules, of which some go and come again: tables that grow, entries that
// collide, chains of those that lose their first, middle and last ones.
enum { kRules = 1500, kTags = 64, kRounds = 3 };
static struct mlx5dv_dr_rule* rules[kRules];
static struct mlx5dv_dr_action* tags[kTags];
static void add_numbered(unsigned i) {
  struct mask value = {0};
  set_bits(&value, 147, 4, 4);
  set_bits(&value, 224, 16, 1000 + i / 10);
  set_bits(&value, 352, 32, 0x0a000000u | (i % 10));
  rules[i] = add_rule(matcher, &value, 2, (struct mlx5dv_dr_action*[]){tags[i % kTags], to[kHit]});
}
// Of frames that were chosen by chance, each goes where its rule says, if it has one.
static void check_numbered(unsigned frames) {
  static uint64_t state = 1;
  must_do(mlx5dv_dr_domain_sync(rx.domain, MLX5DV_DR_DOMAIN_SYNC_FLAGS_SW | MLX5DV_DR_DOMAIN_SYNC_FLAGS_HW |
                                               MLX5DV_DR_DOMAIN_SYNC_FLAGS_MEM),
          "domain_sync");
  const struct frame base = make_frame(kUdp4);
  for (unsigned n = 0; n < frames; ++n) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const unsigned i = (unsigned)(state >> 33) % (kRules + 100);
    struct frame f = base;
    put16(f.b + f.at[kL4], 1000 + i / 10);
    put32(f.b + f.at[kIp] + 12, 0x0a000000u | (n & 15) << 4 | (i % 10));
    number_frame(&f, ++number);
    finish_layer(&f, kIp, kL4);
    const int hit = i < kRules && rules[i] != NULL;
    send_frame(&f);
    want(&f, hit ? kHit : kMissed, hit ? kFirstTag + i % kTags : 0);
  }
}
static void check_dumps(void) {
  char* text = NULL;
  size_t size = 0;
  FILE* out = open_memstream(&text, &size);
  must_do(mlx5dv_dump_dr_matcher(out, matcher), "dump_dr_matcher");
  must_do(mlx5dv_dump_dr_table(out, rx.tables[0]), "dump_dr_table");
  must_do(mlx5dv_dump_dr_rule(out, rules[0]), "dump_dr_rule");
  must_do(mlx5dv_dump_dr_domain(out, rx.domain), "dump_dr_domain");
  fclose(out);
  unsigned expected = 0, dumped = 0;
  for (unsigned i = 0; i < kRules; ++i) expected += rules[i] != NULL;
  for (const char* p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
    dumped += strncmp(p, "3300,", 5) == 0;
  // The matcher's, the table's and the domain's; of these two, the rules behind everything too.
  if (dumped < 3 * expected + 1 || dumped > 3 * expected + 8)
    fail("%u rules are dumped, of %u", dumped, expected);
  free(text);
  printf("growth: %u rules, %zu bytes of dump\n", expected, size);
}
static void check_growth(void) {
  struct mask mask = {0};
  phase = "growth";
  for (unsigned i = 0; i < kTags; ++i)
    must(tags[i] = mlx5dv_dr_action_create_tag(kFirstTag + i), "create_tag");
  set_bits(&mask, 147, 4, 4);
  set_bits(&mask, 224, 16, 0xffff);
  set_bits(&mask, 352, 32, 0xffffff0f);  // bits beside the bytes that are hashed: collisions
  must(matcher = mlx5dv_dr_matcher_create(rx.tables[0], 1, 1, params(&mask)), "matcher_create");
  for (unsigned i = 0; i < kRules; ++i) add_numbered(i);
  check_numbered(150);
  for (unsigned round = 0; round < kRounds; ++round) {
    phase = "rules gone";
    for (unsigned i = 0; i < kRules; ++i) {
      if (i % kRounds == round) continue;
      must_do(mlx5dv_dr_rule_destroy(rules[i]), "rule_destroy");
      rules[i] = NULL;
    }
    check_numbered(150);
    phase = "rules come again";
    for (unsigned i = 0; i < kRules; ++i)
      if (rules[i] == NULL) add_numbered(i);
    check_numbered(150);
  }
  check_dumps();
  for (unsigned i = 0; i < kRules; ++i) must_do(mlx5dv_dr_rule_destroy(rules[i]), "rule_destroy");
  must_do(mlx5dv_dr_matcher_destroy(matcher), "matcher_destroy");
  want_nothing();
  for (unsigned i = 0; i < kTags; ++i) gone(tags[i]);
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 3) {
    fprintf(stderr, "usage: %s SENDER RECEIVER\n", argv[0]);
    return 2;
  }
  open_ends(argv[1], argv[2]);
  for (enum queue q = 0; q < kQueues; ++q)
    must(to[q] = mlx5dv_dr_action_create_dest_ibv_qp(receiver.qps[q]), "dest_ibv_qp");
  must(tag_hit = mlx5dv_dr_action_create_tag(kFirstTag), "create_tag");
  must(drop = mlx5dv_dr_action_create_drop(), "create_drop");
  open_domain(&rx, receiver.context, MLX5DV_DR_DOMAIN_TYPE_NIC_RX, to[kMissed]);
  check_fate();
  check_registers();
  check_rewrites(&rx, kHit);
  check_received_lengths();
  check_growth();
  phase = "transmit";
  open_domain(&tx, sender.context, MLX5DV_DR_DOMAIN_TYPE_NIC_TX, NULL);
  check_transmit();
  phase = "the end";
  close_domain(&tx);
  close_domain(&rx);
  for (enum queue q = 0; q < kQueues; ++q) gone(to[q]);
  gone(tag_hit);
  gone(drop);
  printf("dr_actions: %u frames are as the rules say\n", checked);
  return 0;
}
