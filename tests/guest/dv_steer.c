// SPDX-License-Identifier: BSD-3-Clause
//
// Runs inside a guest, on an Ethernet port whose cable leads back to it: verbs' flow counters, tags and VLANs
// as completions tell them, headers that rules add and take off, a queue's rate, the kernel's rules behind an
// application's own tables.
#include "dv_ends.h"
#include "dv_frames.h"

enum { kBytes = 65536, kSlot = 2048 };
static struct ibv_qp *sender, *receiver;

static void begin(void) {
  open_ends(kBytes);
  sender = make_qp(IBV_QPT_RAW_PACKET, send_cq, send_cq, NULL);
  struct ibv_qp_init_attr_ex init = {.send_cq = recv_cq, .recv_cq = recv_cq, .cap = {1, 64, 1, 4, 0}};
  receiver = make_looped_qp(&init);
  ready(sender, 0);
  ready(receiver, 0);
}
static void end(void) {
  SAME(ibv_destroy_qp(sender), 0);
  SAME(ibv_destroy_qp(receiver), 0);
  close_ends();
}
static void send_frame(uint32_t size) {
  post_send(sender, 1, IBV_WR_SEND, sge_of(&from, 0, size), NULL, 0);
  good_wc(send_cq, IBV_WC_SEND, "a frame");
}

// Rules that count, two with the same counters; what they counted is read, and read again, which takes
// nothing away.
static void counters(void) {
  begin();
  struct ibv_counters_init_attr none = {0};
  struct ibv_counters* both = ibv_create_counters(context, &none);
  WANT(both != NULL);
  struct ibv_counter_attach_attr packets = {.counter_desc = IBV_COUNTER_PACKETS, .index = 1},
                                 bytes = {.counter_desc = IBV_COUNTER_BYTES, .index = 0};
  SAME(ibv_attach_counters_point_flow(both, &packets, NULL), 0);
  SAME(ibv_attach_counters_point_flow(both, &bytes, NULL), 0);
  struct ibv_counter_attach_attr wrong = {.counter_desc = 77, .index = 2};
  WANT(ibv_attach_counters_point_flow(both, &wrong, NULL) != 0);
  struct ibv_flow* rule = rule_for_mac(receiver, kMac, both);
  uint64_t sent = 0, sent_bytes = 0, values[2];
  for (int round = 0; round < 3; round++) {
    for (uint32_t i = 0; i < 10; i++) {
      const uint32_t size = 64 + (uint32_t)(rnd() % 1000);
      randomize(from.at, size);
      ethernet_header(from.at, kMac, 0x88b5);
      post_recv(receiver, i, sge_of(&to, 0, kSlot));
      send_frame(size);
      SAME(good_wc(recv_cq, IBV_WC_RECV, "a counted frame").byte_len, size);
      sent++;
      sent_bytes += size;
    }
    // The driver may answer from what it read last; the counters are asked themselves.
    SAME(ibv_read_counters(both, values, 2, 0), 0);
    SAME(values[1], sent);
    SAME(values[0], sent_bytes);
    SAME(ibv_read_counters(both, values, 2, IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
    WANT(ibv_read_counters(both, values, 1, 0) != 0);  // it has two
    if (values[0] > sent_bytes)
      fail("%llu bytes from the cache, of %llu", (unsigned long long)values[0],
           (unsigned long long)sent_bytes);
  }
  SAME(ibv_destroy_flow(rule), 0);
  SAME(ibv_destroy_counters(both), 0);
  end();
}

struct match {
  size_t size;
  uint64_t layout[64];
};
static struct match match_mac(const uint8_t* mac) {
  struct match m = {.size = sizeof m.layout};
  memcpy((uint8_t*)m.layout + 8, mac, 6);
  return m;
}
static struct mlx5dv_flow_matcher* matcher(enum mlx5dv_flow_table_type type, int priority) {
  static const uint8_t ones[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  struct match mask = match_mac(ones);
  struct mlx5dv_flow_matcher_attr attr = {.type = IBV_FLOW_ATTR_NORMAL,
                                          .priority = (uint16_t)priority,
                                          .match_criteria_enable = 1,
                                          .match_mask = (struct mlx5dv_flow_match_parameters*)(void*)&mask,
                                          .comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE,
                                          .ft_type = type};
  struct mlx5dv_flow_matcher* m = mlx5dv_create_flow_matcher(context, &attr);
  if (m == NULL) fail("a matcher of table type %d", type);
  return m;
}
static struct ibv_flow* rule(struct mlx5dv_flow_matcher* m, const uint8_t* mac,
                             struct mlx5dv_flow_action_attr* actions, size_t n) {
  struct match value = match_mac(mac);
  struct ibv_flow* flow =
      mlx5dv_create_flow(m, (struct mlx5dv_flow_match_parameters*)(void*)&value, n, actions);
  if (flow == NULL) fail("mlx5dv_create_flow");
  return flow;
}

// VLAN's tag and flow tag as completions have them, with the tag taken off the frame and left on it.
static void tags(void) {
  begin();
  struct ibv_cq_init_attr_ex of_cq = {
      .cqe = 64, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG};
  struct ibv_cq_ex* cq = ibv_create_cq_ex(context, &of_cq);
  WANT(cq != NULL);
  struct mlx5dv_flow_matcher* m = matcher(MLX5DV_FLOW_TABLE_TYPE_NIC_RX, 0);
  for (int strip = 0; strip < 2; strip++) {
    struct ibv_qp_init_attr_ex init = {.send_cq = send_cq,
                                       .recv_cq = ibv_cq_ex_to_cq(cq),
                                       .cap = {16, 16, 1, 1, 0},
                                       .comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS,
                                       .create_flags = strip ? IBV_QP_CREATE_CVLAN_STRIPPING : 0};
    struct ibv_qp* qp = make_looped_qp(&init);
    ready(qp, 0);
    struct mlx5dv_flow_action_attr actions[2] = {
        {.type = MLX5DV_FLOW_ACTION_DEST_IBV_QP, .qp = qp},
        {.type = MLX5DV_FLOW_ACTION_TAG, .tag_value = 0x4242 + (uint32_t)strip}};
    struct ibv_flow* flow = rule(m, kMac, actions, 2);
    for (uint32_t i = 0; i < 5; i++) {
      const uint16_t tag = (uint16_t)(i << 13 | (100 + i));
      randomize(from.at, 200);
      ethernet_header(from.at, kMac, 0x8100);
      put(from.at + 14, 0, 16, tag);
      put(from.at + 16, 0, 16, 0x88b5);
      memset(to.at, 0, kSlot);
      post_recv(qp, i, sge_of(&to, 0, kSlot));
      send_frame(200);
      struct ibv_poll_cq_attr poll_attr = {0};
      int e = ENOENT;
      for (const double start = now(); e == ENOENT && now() - start < 30;) e = ibv_start_poll(cq, &poll_attr);
      SAME(e, 0);
      SAME(cq->status, IBV_WC_SUCCESS);
      SAME(ibv_wc_read_flow_tag(cq), 0x4242 + strip);
      SAME(ibv_wc_read_byte_len(cq), strip ? 196 : 200);
      if (strip) SAME(ibv_wc_read_cvlan(cq), tag);
      ibv_end_poll(cq);
      same_bytes(to.at, from.at, 12, "a frame's addresses");
      same_bytes(to.at + 12, from.at + (strip ? 16 : 12), strip ? 184 : 188, "a frame behind its addresses");
    }
    SAME(ibv_destroy_flow(flow), 0);
    SAME(ibv_destroy_qp(qp), 0);
  }
  SAME(mlx5dv_destroy_flow_matcher(m), 0);
  SAME(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  end();
}

// A rule of the sender puts each frame into VXLAN, one of the receiver takes it out of there.
static void tunnel(void) {
  begin();
  static const uint8_t outer_mac[6] = {0x02, 1, 2, 3, 4, 5}, inner_mac[6] = {0x02, 9, 9, 9, 9, 9};
  enum { kOuter = 14 + 20 + 8 + 8 };
  uint8_t outer[kOuter] = {0};
  ethernet_header(outer, outer_mac, 0x0800);
  put(outer + 14, 0, 8, 0x45);
  put(outer + 14, 64, 8, 64);
  put(outer + 14, 72, 8, 17);
  put(outer + 14, 96, 32, 0x0a020301);
  put(outer + 14, 128, 32, 0x0a020302);
  put(outer + 34, 0, 16, 0xc055);
  put(outer + 34, 16, 16, 4789);
  put(outer + 42, 0, 8, 8);
  put(outer + 42, 32, 24, 0x123456);
  struct ibv_flow_action* into = mlx5dv_create_flow_action_packet_reformat(
      context, sizeof outer, outer, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TO_L2_TUNNEL,
      MLX5DV_FLOW_TABLE_TYPE_NIC_TX);
  struct ibv_flow_action* out_of = mlx5dv_create_flow_action_packet_reformat(
      context, 0, NULL, MLX5DV_FLOW_ACTION_PACKET_REFORMAT_TYPE_L2_TUNNEL_TO_L2,
      MLX5DV_FLOW_TABLE_TYPE_NIC_RX);
  WANT(into != NULL && out_of != NULL);
  struct mlx5dv_flow_matcher *sent = matcher(MLX5DV_FLOW_TABLE_TYPE_NIC_TX, 0),
                             *received = matcher(MLX5DV_FLOW_TABLE_TYPE_NIC_RX, 0);
  struct mlx5dv_flow_action_attr send_actions[1] = {
      {.type = MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION, .action = into}};
  struct ibv_flow* send_rule = rule(sent, inner_mac, send_actions, 1);
  for (int open = 0; open < 2; open++) {
    struct mlx5dv_flow_action_attr receive_actions[2] = {
        {.type = MLX5DV_FLOW_ACTION_DEST_IBV_QP, .qp = receiver},
        {.type = MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION, .action = out_of}};
    struct ibv_flow* receive_rule = rule(received, outer_mac, receive_actions, open ? 2 : 1);
    for (uint32_t i = 0; i < 5; i++) {
      const uint32_t size = 100 + i * 200;
      randomize(from.at, size);
      ethernet_header(from.at, inner_mac, 0x88b5);
      memset(to.at, 0, kSlot);
      post_recv(receiver, i, sge_of(&to, 0, kSlot));
      send_frame(size);
      SAME(good_wc(recv_cq, IBV_WC_RECV, open ? "a frame out of its tunnel" : "a frame in its tunnel")
               .byte_len,
           open ? size : size + kOuter);
      if (!open) {
        const uint8_t* ip = to.at + 14;
        same_bytes(to.at, outer, 14, "the outer Ethernet header");
        SAME(get(ip, 16, 16), 20 + 8 + 8 + size);
        SAME(folded(sum16(ip, 20, 0)), 0xffff);
        same_bytes(ip + 12, outer + 26, 8, "the outer addresses");
        SAME(get(ip + 20, 16, 16), 4789);
        SAME(get(ip + 20, 32, 16), 8 + 8 + size);
        same_bytes(to.at + 42, outer + 42, 8, "the VXLAN header");
      }
      same_bytes(to.at + (open ? 0 : kOuter), from.at, size, "the inner frame");
    }
    SAME(ibv_destroy_flow(receive_rule), 0);
  }
  SAME(ibv_destroy_flow(send_rule), 0);
  SAME(mlx5dv_destroy_flow_matcher(sent), 0);
  SAME(mlx5dv_destroy_flow_matcher(received), 0);
  SAME(ibv_destroy_flow_action(into), 0);
  SAME(ibv_destroy_flow_action(out_of), 0);
  end();
}

// A queue that is told its rate keeps to it, by the card's time of its completions; then it is told none.
static void rate(void) {
  begin();
  struct ibv_cq_init_attr_ex of_cq = {.cqe = 128, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
  struct ibv_cq_ex* cq = ibv_create_cq_ex(context, &of_cq);
  WANT(cq != NULL);
  struct ibv_device_attr_ex caps;
  SAME(ibv_query_device_ex(context, NULL, &caps), 0);
  WANT(caps.packet_pacing_caps.qp_rate_limit_max != 0 && caps.hca_core_clock != 0);
  struct ibv_qp* qp = make_qp(IBV_QPT_RAW_PACKET, ibv_cq_ex_to_cq(cq), ibv_cq_ex_to_cq(cq), NULL);
  ready(qp, 0);
  enum { kFrames = 60, kSize = 1250, kKbps = 20000 };  // 0.5 ms each
  double took[2];
  for (int limited = 1; limited >= 0; limited--) {
    struct ibv_qp_rate_limit_attr attr = {.rate_limit = limited ? kKbps : 0};
    const int e = ibv_modify_qp_rate_limit(qp, &attr);
    if (e != 0) fail("ibv_modify_qp_rate_limit: %s", strerror(e));
    ethernet_header(from.at, kMac, 0x88b5);
    uint64_t first = 0, last = 0;
    for (int i = 0; i < kFrames; i++)
      post_send(qp, (uint64_t)i, IBV_WR_SEND, sge_of(&from, 0, kSize), NULL, 0);
    for (int i = 0; i < kFrames; i++) {
      struct ibv_poll_cq_attr poll_attr = {0};
      int p = ENOENT;
      for (const double start = now(); p == ENOENT && now() - start < 30;) p = ibv_start_poll(cq, &poll_attr);
      SAME(p, 0);
      SAME(cq->status, IBV_WC_SUCCESS);
      SAME(cq->wr_id, i);
      last = ibv_wc_read_completion_ts(cq);
      if (i == 0) first = last;
      ibv_end_poll(cq);
    }
    took[limited] = (double)(last - first) / ((double)caps.hca_core_clock * 1000);
  }
  printf("rate: %d frames in %.3f ms at %d kb/s, in %.3f ms at no rate\n", kFrames, took[1] * 1e3, kKbps,
         took[0] * 1e3);
  const double wanted = (kFrames - 1) * kSize * 8.0 / (kKbps * 1e3);
  if (took[1] < wanted * 0.8) fail("%.3f ms, not %.3f", took[1] * 1e3, wanted * 1e3);
  struct ibv_qp_rate_limit_attr of_nothing = {.max_burst_sz = 100};
  SAME(ibv_modify_qp_rate_limit(qp, &of_nothing), EINVAL);
  SAME(ibv_destroy_qp(qp), 0);
  SAME(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
  end();
}

// The kernel's rules of a priority as the destination of an application's own table: frames get there through
// that table alone.
static void anchor(void) {
  begin();
  static const uint8_t mac[6] = {0x02, 7, 7, 7, 7, 7};
  enum { kPriority = 5 };
  struct mlx5dv_steering_anchor_attr of_anchor = {.ft_type = MLX5DV_FLOW_TABLE_TYPE_NIC_RX,
                                                  .priority = kPriority};
  struct mlx5dv_steering_anchor *a = mlx5dv_create_steering_anchor(context, &of_anchor),
                                *again = mlx5dv_create_steering_anchor(context, &of_anchor);
  WANT(a != NULL && again != NULL);
  SAME(a->id, again->id);
  uint8_t in[840] = {0}, out[16] = {0};
  put(in, 0, 16, 0x930);  // CREATE_FLOW_TABLE
  put(in, 0xc0 + 0x8, 8, 60);
  struct mlx5dv_devx_obj* table = mlx5dv_devx_obj_create(context, in, 64, out, 16);
  if (table == NULL) fail("CREATE_FLOW_TABLE: syndrome 0x%x", (unsigned)get(out, 0x20, 32));
  const uint64_t table_id = get(out, 0x48, 24);
  uint8_t group_in[1024] = {0};
  put(group_in, 0, 16, 0x933);  // CREATE_FLOW_GROUP: one entry, for all
  put(group_in, 0xa8, 24, table_id);
  memset(out, 0, sizeof out);
  struct mlx5dv_devx_obj* group = mlx5dv_devx_obj_create(context, group_in, sizeof group_in, out, 16);
  if (group == NULL) fail("CREATE_FLOW_GROUP: syndrome 0x%x", (unsigned)get(out, 0x20, 32));
  const uint64_t group_id = get(out, 0x48, 24);
  struct mlx5dv_flow_matcher *first = matcher(MLX5DV_FLOW_TABLE_TYPE_NIC_RX, 0),
                             *later = matcher(MLX5DV_FLOW_TABLE_TYPE_NIC_RX, kPriority);
  struct mlx5dv_flow_action_attr to_table = {.type = MLX5DV_FLOW_ACTION_DEST_DEVX, .obj = table};
  struct mlx5dv_flow_action_attr to_qp = {.type = MLX5DV_FLOW_ACTION_DEST_IBV_QP, .qp = receiver};
  struct ibv_flow *first_rule = rule(first, mac, &to_table, 1), *later_rule = rule(later, mac, &to_qp, 1);
  ethernet_header(from.at, mac, 0x88b5);
  for (int led = 0; led < 2; led++) {
    struct mlx5dv_devx_obj* entry = NULL;
    if (led) {
      memset(in, 0, sizeof in);
      memset(out, 0, sizeof out);
      put(in, 0, 16, 0x936);  // SET_FLOW_TABLE_ENTRY: to the anchor, whatever its level
      put(in, 0xa8, 24, table_id);
      put(in, 0xc0, 1, 1);
      put(in, 0x200 + 0x20, 32, group_id);
      put(in, 0x200 + 0x70, 16, 4);
      put(in, 0x200 + 0x88, 24, 1);
      put(in, 0x200 + 0x1800, 8, 1);
      put(in, 0x200 + 0x1808, 24, a->id);
      entry = mlx5dv_devx_obj_create(context, in, sizeof in, out, 16);
      if (entry == NULL) fail("SET_FLOW_TABLE_ENTRY: syndrome 0x%x", (unsigned)get(out, 0x20, 32));
    }
    for (uint32_t i = 0; i < 5; i++) {
      post_recv(receiver, i, sge_of(&to, 0, kSlot));
      send_frame(100 + i);
    }
    for (uint32_t i = 0; i < 5 && led; i++)
      SAME(good_wc(recv_cq, IBV_WC_RECV, "a frame by the anchor").byte_len, 100 + i);
    no_wc(recv_cq, led ? "the CQ after the frames" : "the CQ of what the table leads nowhere");
    if (entry != NULL) SAME(mlx5dv_devx_obj_destroy(entry), 0);
  }
  // The table that leads there is the application's, the anchor's is not its to change.
  memset(in, 0, sizeof in);
  put(in, 0, 16, 0x931);  // DESTROY_FLOW_TABLE
  put(in, 0xa8, 24, a->id);
  WANT(mlx5dv_devx_obj_modify(table, in, 64, out, 16) != 0);
  SAME(ibv_destroy_flow(first_rule), 0);
  SAME(ibv_destroy_flow(later_rule), 0);
  SAME(mlx5dv_destroy_flow_matcher(first), 0);
  SAME(mlx5dv_destroy_flow_matcher(later), 0);
  SAME(mlx5dv_devx_obj_destroy(group), 0);
  SAME(mlx5dv_devx_obj_destroy(table), 0);
  SAME(mlx5dv_destroy_steering_anchor(a), 0);
  SAME(mlx5dv_destroy_steering_anchor(again), 0);
  end();
}

int main(int argc, char** argv) {
  static const struct test tests[] = {
      {"counters", counters}, {"tags", tags}, {"tunnel", tunnel}, {"rate", rate}, {"anchor", anchor}};
  return run_tests(tests, sizeof tests / sizeof tests[0], argc, argv);
}
