// SPDX-License-Identifier: BSD-3-Clause
//
// Software steering (mlx5dv_dr) of a switch: the FDB domain of a card in switchdev mode, whose rules lead
// from vport to vport.
//   dr_fdb DEVICE MAC0 MAC1 FAR
// MAC0 and MAC1 are the first two virtual functions' addresses (vports 1 and 2), FAR is at the far end of the
// cable. Prints "ready" when its rules are there. They stay until its input ends; then it prints what each
// has counted: "NAME: PACKETS". What virtual function 0 sends to 10.9.5.200 leaves with VLAN tag 5, which
// comes off what is sent back; 10.9.1.77 is 10.9.1.3 of virtual function 1; UDP to port 7777 is dropped.
#include "dv_common.h"

enum { kAllocCounter = 0x939, kQueryCounter = 0x93b, kWire = 0xffff, kMost = 8 };
// Fields of the match parameters, in bits.
enum {
  kDmacHigh = 64,
  kDmacLow = 96,
  kVid = 116,
  kTagged = 144,
  kVersion = 147,
  kUdpDport = 240,
  kSource4 = 352,
  kDestination4 = 480,
  kSourcePort = 512 + 48
};
enum { kMatchBytes = 448, kSet = 1 << 28, kSip4 = 0x15 << 16, kDip4 = 0x16 << 16, kTtl = 0xa << 16 };

struct match {
  struct {
    unsigned at, bits;
    uint64_t value;
  } fields[6];
};
struct params {
  size_t size;
  uint8_t bytes[kMatchBytes];
};

static struct mlx5dv_dr_domain* domain;
static struct mlx5dv_dr_table *root, *table;
static struct mlx5dv_dr_action *enter, *drop, *ports[3];
static struct entry {
  const char* name;
  struct mlx5dv_dr_matcher* matcher;
  struct mlx5dv_dr_rule* rule;
  struct mlx5dv_dr_action *count, *change;
  struct mlx5dv_devx_obj* counter;
  uint32_t id;
} entries[kMost];
static unsigned made;

static void as_params(const struct match* m, int mask, struct params* p) {
  *p = (struct params){.size = sizeof p->bytes};
  for (unsigned i = 0; i < 6 && m->fields[i].bits; i++) {
    const uint64_t ones = (1ull << m->fields[i].bits) - 1;
    // The version is not masked but named.
    put(p->bytes, m->fields[i].at, m->fields[i].bits,
        mask && m->fields[i].at != kVersion ? ones : m->fields[i].value);
  }
}
static struct mlx5dv_flow_match_parameters* pointer(struct params* p) {
  return (struct mlx5dv_flow_match_parameters*)(uintptr_t)p;
}

// A rule with a counter, and `change` before it goes to `to`, unless that is null. The first are looked at
// first.
static void add(const char* name, struct match match, struct mlx5dv_dr_action* change,
                struct mlx5dv_dr_action* to) {
  struct entry* e = &entries[made];
  struct params mask, value;
  uint8_t in[32] = {0}, out[16] = {0}, criteria = 0;
  current = e->name = name;
  put(in, 0, 16, kAllocCounter);
  WANT((e->counter = mlx5dv_devx_obj_create(context, in, sizeof in, out, sizeof out)) != NULL);
  e->id = (uint32_t)get(out, 64, 32);
  WANT((e->count = mlx5dv_dr_action_create_flow_counter(e->counter, 0)) != NULL);
  as_params(&match, 1, &mask);
  as_params(&match, 0, &value);
  for (unsigned i = 0; i < kMatchBytes; i++)
    if (mask.bytes[i]) criteria |= (uint8_t)(1u << i / 64);
  WANT((e->matcher = mlx5dv_dr_matcher_create(table, (uint16_t)made, criteria, pointer(&mask))) != NULL);
  struct mlx5dv_dr_action* actions[3] = {e->count, to, change};
  if (change) actions[0] = change, actions[1] = e->count, actions[2] = to;
  e->rule = mlx5dv_dr_rule_create(e->matcher, pointer(&value), change ? 3 : 2, actions);
  WANT(e->rule != NULL);
  e->change = change;
  made++;
}
static uint64_t counted(const struct entry* e) {
  uint8_t in[32] = {0}, out[32] = {0};
  put(in, 0, 16, kQueryCounter);
  put(in, 224, 32, e->id);
  SAME(mlx5dv_devx_obj_query(e->counter, in, sizeof in, out, sizeof out), 0);
  return get(out, 128, 64);
}
static struct mlx5dv_dr_action* changes(unsigned n, const uint32_t (*list)[2]) {
  uint64_t words[4];
  for (unsigned i = 0; i < n; i++) words[i] = htobe64((uint64_t)list[i][0] << 32 | list[i][1]);
  struct mlx5dv_dr_action* a =
      mlx5dv_dr_action_create_modify_header(domain, 0, n * sizeof *words, (__be64*)words);
  WANT(a != NULL);
  return a;
}
static uint64_t mac_of(const char* text) {
  unsigned b[6];
  uint64_t mac = 0;
  if (sscanf(text, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5]) != 6) fail("%s", text);
  for (int i = 0; i < 6; i++) mac = mac << 8 | b[i];
  return mac;
}
static struct match to_mac(uint64_t mac) {
  return (struct match){{{kDmacHigh, 32, mac >> 16}, {kDmacLow, 16, mac & 0xffff}}};
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc < 5) {
    fprintf(stderr, "usage: %s DEVICE MAC0 MAC1 FAR\n", argv[0]);
    return 2;
  }
  current = "setup";
  device_name = argv[1];
  open_device();
  const uint64_t mac0 = mac_of(argv[2]), mac1 = mac_of(argv[3]), far = mac_of(argv[4]);
  WANT((domain = mlx5dv_dr_domain_create(context, MLX5DV_DR_DOMAIN_TYPE_FDB)) != NULL);
  WANT((root = mlx5dv_dr_table_create(domain, 0)) != NULL);
  WANT((table = mlx5dv_dr_table_create(domain, 1)) != NULL);
  WANT((enter = mlx5dv_dr_action_create_dest_table(table)) != NULL);
  WANT((drop = mlx5dv_dr_action_create_drop()) != NULL);
  const uint32_t vports[] = {1, 2, kWire};
  for (int i = 0; i < 3; i++)
    WANT((ports[i] = mlx5dv_dr_action_create_dest_vport(domain, vports[i])) != NULL);
  struct mlx5dv_dr_action *push = mlx5dv_dr_action_create_push_vlan(domain, htobe32(0x81000005)),
                          *pop = mlx5dv_dr_action_create_pop_vlan();
  WANT(push != NULL && pop != NULL);
  struct mlx5dv_dr_action *there = changes(
                              2, (const uint32_t[][2]){{kSet | kDip4, 0x0a090103}, {kSet | kTtl | 8, 9}}),
                          *back = changes(1, (const uint32_t[][2]){{kSet | kSip4, 0x0a09014d}});

  add("dropped", (struct match){{{kVersion, 4, 4}, {kUdpDport, 16, 7777}}}, NULL, drop);
  add("tag off", (struct match){{{kSourcePort, 16, kWire}, {kTagged, 1, 1}, {kVid, 12, 5}}}, pop, ports[0]);
  add("tag on", (struct match){{{kSourcePort, 16, 1}, {kVersion, 4, 4}, {kDestination4, 32, 0x0a0905c8}}},
      push, ports[2]);
  add("there", (struct match){{{kSourcePort, 16, 1}, {kVersion, 4, 4}, {kDestination4, 32, 0x0a09014d}}},
      there, ports[1]);
  add("back", (struct match){{{kSourcePort, 16, 2}, {kVersion, 4, 4}, {kSource4, 32, 0x0a090103}}}, back,
      ports[0]);
  add("to 0", to_mac(mac0), NULL, ports[0]);
  add("to 1", to_mac(mac1), NULL, ports[1]);
  add("to the port", to_mac(far), NULL, ports[2]);
  current = "the root";
  struct params none = {.size = sizeof none.bytes};
  struct mlx5dv_dr_matcher* any = mlx5dv_dr_matcher_create(root, 0, 0, pointer(&none));
  WANT(any != NULL);
  struct mlx5dv_dr_rule* lead = mlx5dv_dr_rule_create(any, pointer(&none), 1, &enter);
  WANT(lead != NULL);
  SAME(mlx5dv_dr_domain_sync(domain, MLX5DV_DR_DOMAIN_SYNC_FLAGS_SW | MLX5DV_DR_DOMAIN_SYNC_FLAGS_HW), 0);
  printf("ready\n");
  char c;
  while (read(STDIN_FILENO, &c, 1) > 0) continue;

  current = "the end";
  SAME(mlx5dv_dr_rule_destroy(lead), 0);
  SAME(mlx5dv_dr_matcher_destroy(any), 0);
  for (unsigned i = 0; i < made; i++) {
    const struct entry* e = &entries[i];
    printf("%s: %llu\n", e->name, (unsigned long long)counted(e));
    SAME(mlx5dv_dr_rule_destroy(e->rule), 0);
    SAME(mlx5dv_dr_matcher_destroy(e->matcher), 0);
    SAME(mlx5dv_dr_action_destroy(e->count), 0);
    if (e->change) SAME(mlx5dv_dr_action_destroy(e->change), 0);
    SAME(mlx5dv_devx_obj_destroy(e->counter), 0);
  }
  for (int i = 0; i < 3; i++) SAME(mlx5dv_dr_action_destroy(ports[i]), 0);
  SAME(mlx5dv_dr_action_destroy(enter), 0);
  SAME(mlx5dv_dr_action_destroy(drop), 0);
  SAME(mlx5dv_dr_table_destroy(table), 0);
  SAME(mlx5dv_dr_table_destroy(root), 0);
  SAME(mlx5dv_dr_domain_destroy(domain), 0);
  return 0;
}
