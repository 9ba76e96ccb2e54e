// SPDX-License-Identifier: BSD-3-Clause
//
// Runs inside a guest: objects that an application makes by the card's own commands (DevX). Commands in the
// background, events by cookie and by file descriptor, commands on objects that verbs have made, work
// requests written by hand.
//   TOGGLE_PORT: a command of the environment that takes the device's port down and up again
#include "dv_common.h"

#include <sys/eventfd.h>

#include "dv_frames.h"
#include "dv_pair.h"

static void begin(void) {
  open_device();
  from = make_region(kBytes);
  to = make_region(kBytes);
}
static void end(void) {
  SAME(ibv_dereg_mr(from.mr), 0);
  SAME(ibv_dereg_mr(to.mr), 0);
  close_device();
}

static void traffic(void) {
  begin();
  struct pair p;
  make_pair(&p);
  for (uint32_t i = 0; i < 200; i++) message(&p, 1 + i * 37), message_done(&p, 1 + i * 37);
  unmake_pair(&p);
  end();
}

// Events of objects, in the order in which their causes are.
static void events(void) {
  begin();
  struct pair p, other;
  make_pair(&p);
  make_pair(&other);
  struct mlx5dv_devx_event_channel* full = mlx5dv_devx_create_event_channel(context, 0);
  struct mlx5dv_devx_event_channel* brief =
      mlx5dv_devx_create_event_channel(context, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
  const int fd = eventfd(0, EFD_NONBLOCK);
  WANT(full != NULL && brief != NULL && fd >= 0);
  uint16_t completion = 0, access_error = 0x11;
  SAME(mlx5dv_devx_subscribe_devx_event(brief, p.cq, sizeof completion, &completion, 0xc00c1e), 0);
  SAME(mlx5dv_devx_subscribe_devx_event(brief, other.cq, sizeof completion, &completion, 0xc00c1f), 0);
  SAME(mlx5dv_devx_subscribe_devx_event_fd(full, fd, p.cq, 0), 0);
  SAME(mlx5dv_devx_subscribe_devx_event(full, p.qp, sizeof access_error, &access_error, 0xbad), 0);
  fcntl(brief->fd, F_SETFL, O_NONBLOCK);
  fcntl(full->fd, F_SETFL, O_NONBLOCK);
  union {
    struct mlx5dv_devx_async_event_hdr hdr;
    uint8_t bytes[256];
  } got;
  uint64_t count = 0;
  for (uint32_t i = 0; i < 5; i++) {
    struct pair* one = i % 2 ? &other : &p;
    // The event comes with the completion after the arming, not before.
    WANT(mlx5dv_devx_get_event(brief, &got.hdr, sizeof got) < 0 && errno == EAGAIN);
    arm(one, i / 2);
    message(one, 100 + i);
    readable(brief->fd, "a channel of events");
    SAME(mlx5dv_devx_get_event(brief, &got.hdr, sizeof got), 8);
    SAME(got.hdr.cookie, i % 2 ? 0xc00c1f : 0xc00c1e);
    message_done(one, 100 + i);
    if (i % 2 == 0) {
      readable(fd, "an eventfd");
      SAME(read(fd, &count, sizeof count), 8);
      SAME(count, 1);
    }
    WANT(read(fd, &count, sizeof count) < 0 && errno == EAGAIN);
  }
  // Where nothing is wanted, nothing is said: not armed, the CQ is silent.
  message(&p, 50);
  message_done(&p, 50);
  WANT(mlx5dv_devx_get_event(brief, &got.hdr, sizeof got) < 0 && errno == EAGAIN);
  // A write with a key that is not there: an error for the responder, by cookie, with the event's data.
  WANT(mlx5dv_devx_get_event(full, &got.hdr, sizeof got) < 0 && errno == EAGAIN);
  write_request(&p, MLX5_OPCODE_RDMA_WRITE, &from, 8, &to, to.mr->rkey ^ 0xff00);
  readable(full->fd, "a channel of events");
  memset(&got, 0, sizeof got);
  const ssize_t size = mlx5dv_devx_get_event(full, &got.hdr, sizeof got);
  SAME(size, 8 + 64);
  SAME(got.hdr.cookie, 0xbad);
  SAME(got.hdr.out_data[1], 0x11);
  SAME(get(got.hdr.out_data, 0x100 + 0xc8, 24), p.qpn);
  const struct mlx5_cqe64* cqe = cqe_of(&p, "a write with a wrong key");
  SAME(mlx5dv_get_cqe_opcode((struct mlx5_cqe64*)(uintptr_t)cqe), MLX5_CQE_REQ_ERR);
  // The QP is its own peer: as the responder's error ends it, the request is flushed if the answer does not
  // come first.
  const uint8_t syndrome = ((const struct mlx5_err_cqe*)(const void*)cqe)->syndrome;
  WANT(syndrome == MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR || syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
  // What can be listened to is limited.
  uint16_t none = 0x1ff;
  WANT(mlx5dv_devx_subscribe_devx_event(full, p.qp, sizeof none, &none, 0) != 0);
  // One that nobody has read goes with its channel.
  arm(&other, 2);
  message(&other, 9);
  message_done(&other, 9);
  mlx5dv_devx_destroy_event_channel(brief);
  unmake_pair(&p);
  unmake_pair(&other);
  mlx5dv_devx_destroy_event_channel(full);
  close(fd);
  end();
}

// Of no object: the port goes down and up.
static void port_events(void) {
  const char* toggle = getenv("TOGGLE_PORT");
  WANT(toggle != NULL);
  begin();
  struct mlx5dv_devx_event_channel* channel = mlx5dv_devx_create_event_channel(context, 0);
  WANT(channel != NULL);
  uint16_t port_change = 9;
  SAME(mlx5dv_devx_subscribe_devx_event(channel, NULL, sizeof port_change, &port_change, 0x90), 0);
  const pid_t child = fork();
  if (child == 0) _exit(execl("/bin/bash", "bash", "-c", toggle, (char*)NULL));
  unsigned subtypes = 0;
  while ((subtypes & 1 << 1) == 0 || (subtypes & 1 << 4) == 0) {  // down, active
    union {
      struct mlx5dv_devx_async_event_hdr hdr;
      uint8_t bytes[256];
    } got;
    readable(channel->fd, "a channel of the port's events");
    SAME(mlx5dv_devx_get_event(channel, &got.hdr, sizeof got), 8 + 64);
    SAME(got.hdr.cookie, 0x90);
    SAME(got.hdr.out_data[1], 9);
    SAME(got.hdr.out_data[32 + 8] >> 4, 1);
    subtypes |= 1u << got.hdr.out_data[3];
  }
  int status = 0;
  SAME(waitpid(child, &status, 0), child);
  SAME(status, 0);
  mlx5dv_devx_destroy_event_channel(channel);
  end();
}

// Queries that are answered later: each once, with what the query says at once.
static void async(void) {
  begin();
  enum { kQueries = 60 };
  struct pair p;
  make_pair(&p);
  for (uint32_t i = 0; i < 70; i++) message(&p, 10), message_done(&p, 10);
  struct mlx5dv_devx_cmd_comp* comp = mlx5dv_devx_create_cmd_comp(context);
  WANT(comp != NULL);
  fcntl(comp->fd, F_SETFL, O_NONBLOCK);
  union {
    struct mlx5dv_devx_async_cmd_hdr hdr;
    uint8_t bytes[600];
  } got;
  WANT(mlx5dv_devx_get_async_cmd_comp(comp, &got.hdr, sizeof got) != 0);
  uint8_t query_cq[16] = {0}, query_qp[16] = {0}, cq_is[272] = {0}, qp_is[272] = {0};
  put(query_cq, 0, 16, 0x402);
  put(query_cq, 0x48, 24, p.cqn);
  put(query_qp, 0, 16, 0x50b);
  put(query_qp, 0x48, 24, p.qpn);
  SAME(mlx5dv_devx_obj_query(p.cq, query_cq, 16, cq_is, sizeof cq_is), 0);
  SAME(get(cq_is, 0x80 + 0x168, 24), 140);
  SAME(mlx5dv_devx_obj_query(p.qp, query_qp, 16, qp_is, sizeof qp_is), 0);
  SAME(get(qp_is, 0xc0, 4), 3);
  static int seen[kQueries];
  for (uint64_t i = 0; i < kQueries; i++)
    SAME(mlx5dv_devx_obj_query_async(i % 2 ? p.qp : p.cq, i % 2 ? query_qp : query_cq, 16, 272, 1000 + i,
                                     comp),
         0);
  for (int i = 0; i < kQueries; i++) {
    readable(comp->fd, "commands' answers");
    memset(&got, 0, sizeof got);
    SAME(mlx5dv_devx_get_async_cmd_comp(comp, &got.hdr, 8 + 272), 0);
    const uint64_t id = got.hdr.wr_id - 1000;
    WANT(id < kQueries && !seen[id]);
    seen[id] = 1;
    succeeded(got.hdr.out_data, "a query in the background");
    same_bytes(got.hdr.out_data, id % 2 ? qp_is : cq_is, 272, "what a query in the background says");
  }
  WANT(mlx5dv_devx_get_async_cmd_comp(comp, &got.hdr, sizeof got) != 0);
  // Too little room for an answer: it stays. Answers that nobody reads go with their channel.
  SAME(mlx5dv_devx_obj_query_async(p.cq, query_cq, 16, 272, 7, comp), 0);
  readable(comp->fd, "a command's answer");
  WANT(mlx5dv_devx_get_async_cmd_comp(comp, &got.hdr, 64) != 0);
  SAME(mlx5dv_devx_get_async_cmd_comp(comp, &got.hdr, 8 + 272), 0);
  SAME(got.hdr.wr_id, 7);
  // Another object's number in a query is refused by the kernel.
  put(query_cq, 0x48, 24, p.cqn + 1);
  WANT(mlx5dv_devx_obj_query_async(p.cq, query_cq, 16, 272, 8, comp) != 0);
  put(query_cq, 0x48, 24, p.cqn);
  SAME(mlx5dv_devx_obj_query_async(p.cq, query_cq, 16, 272, 9, comp), 0);
  // More than the kernel holds for a channel at once is refused.
  int refused = 0;
  for (int i = 0; i < 3000 && !refused; i++)
    refused = mlx5dv_devx_obj_query_async(p.cq, query_cq, 16, 4000, 10, comp) != 0;
  WANT(refused);
  mlx5dv_devx_destroy_cmd_comp(comp);
  unmake_pair(&p);
  end();
}

// An SRQ's context by command; a limit set by command makes the event that verbs know.
static void srq(void) {
  begin();
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 31, .max_sge = 1}};
  struct ibv_srq* q = ibv_create_srq(pd, &init);
  WANT(q != NULL);
  struct mlx5dv_srq dv = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
  struct mlx5dv_obj object = {.srq = {.in = q, .out = &dv}};
  SAME(mlx5dv_init_obj(&object, MLX5DV_OBJ_SRQ), 0);
  SAME(dv.stride, 32);
  WANT(dv.comp_mask & MLX5DV_SRQ_MASK_SRQN);
  uint8_t in[272] = {0}, out[272] = {0};
  put(in, 0, 16, 0x90f);  // QUERY_RMP
  put(in, 0x48, 24, dv.srqn);
  SAME(mlx5dv_devx_srq_query(q, in, 16, out, sizeof out), 0);
  SAME(get(out, 0x100 + 0x8, 4), 1);  // ready
  SAME(get(out, 0x100 + 0x180 + 0x48, 24), pd_number());
  WANT(get(out, 0x100 + 0x180 + 0x11b, 5) >= 5);
  struct ibv_cq* cq = ibv_create_cq(context, 64, NULL, NULL, 0);
  struct ibv_qp *a = make_qp(IBV_QPT_RC, cq, cq, NULL), *b = make_qp(IBV_QPT_RC, cq, cq, q);
  ready(a, b->qp_num);
  ready(b, a->qp_num);
  for (unsigned i = 0; i < 6; i++) post_recv(b, i, sge_of(&to, 0, 100));
  memset(in, 0, sizeof in);
  put(in, 0, 16, 0x90d);  // MODIFY_RMP: lwm
  put(in, 0x40, 4, 1);
  put(in, 0x48, 24, dv.srqn);
  put(in, 0x80 + 0x3f, 1, 1);
  put(in, 0x100 + 0x8, 4, 1);
  put(in, 0x100 + 0x180 + 0x30, 16, 4);
  if (mlx5dv_devx_srq_modify(q, in, 272, out, 16) != 0)
    fail("MODIFY_RMP: syndrome 0x%x", (unsigned)get(out, 0x20, 32));
  struct ibv_srq_attr attr;
  SAME(ibv_query_srq(q, &attr), 0);
  SAME(attr.srq_limit, 4);
  for (unsigned i = 0; i < 3; i++) {
    post_send(a, i, IBV_WR_SEND, sge_of(&from, 0, 100), NULL, 0);
    for (int j = 0; j < 2; j++) SAME(wait_wc(cq, "a message of the SRQ").status, IBV_WC_SUCCESS);
  }
  readable(context->async_fd, "the device's events");
  struct ibv_async_event event;
  SAME(ibv_get_async_event(context, &event), 0);
  SAME(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  WANT(event.element.srq == q);
  ibv_ack_async_event(&event);
  SAME(ibv_destroy_qp(a), 0);
  SAME(ibv_destroy_qp(b), 0);
  SAME(ibv_destroy_srq(q), 0);
  SAME(ibv_destroy_cq(cq), 0);
  end();
}

// Work queues and the table that spreads over them: changed by command, under traffic.
static void table(void) {
  begin();
  if (!is_eth) return;
  struct ibv_cq* cq[2] = {make_cq(64), make_cq(64)};
  struct ibv_wq* wq[2];
  struct mlx5dv_rwq dv[2];
  uint32_t number[2];
  for (int i = 0; i < 2; i++) {
    struct ibv_wq_init_attr init = {.wq_type = IBV_WQT_RQ, .max_wr = 32, .max_sge = 1, .pd = pd, .cq = cq[i]};
    wq[i] = ibv_create_wq(context, &init);
    WANT(wq[i] != NULL);
    struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
    SAME(ibv_modify_wq(wq[i], &attr), 0);
    struct mlx5dv_obj object = {.rwq = {.in = wq[i], .out = &dv[i]}};
    SAME(mlx5dv_init_obj(&object, MLX5DV_OBJ_RWQ), 0);
    SAME(dv[i].wqe_cnt, 32);
    number[i] = wq[i]->wq_num;
    uint8_t in[16] = {0}, out[272] = {0};
    put(in, 0, 16, 0x90b);  // QUERY_RQ
    put(in, 0x48, 24, number[i]);
    SAME(mlx5dv_devx_wq_query(wq[i], in, 16, out, sizeof out), 0);
    SAME(get(out, 0x100 + 0x8, 4), 1);
    SAME(get(out, 0x100 + 0x180 + 0x48, 24), pd_number());
    for (unsigned j = 0; j < 8; j++) {
      struct ibv_sge sge = sge_of(&to, 0, 2000);
      struct ibv_recv_wr wr = {.wr_id = j, .sg_list = &sge, .num_sge = 1}, *bad;
      SAME(ibv_post_wq_recv(wq[i], &wr, &bad), 0);
    }
  }
  struct ibv_wq* both[2] = {wq[0], wq[0]};
  struct ibv_rwq_ind_table_init_attr of_table = {.log_ind_tbl_size = 1, .ind_tbl = both};
  struct ibv_rwq_ind_table* t = ibv_create_rwq_ind_table(context, &of_table);
  WANT(t != NULL);
  uint8_t key[40];
  randomize(key, sizeof key);
  struct ibv_qp_init_attr_ex of_rss = {
      .comp_mask = IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
      .rwq_ind_tbl = t,
      .rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
                       .rx_hash_key_len = sizeof key,
                       .rx_hash_key = key,
                       .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4}};
  struct ibv_qp* rss = make_looped_qp(&of_rss);
  struct ibv_flow* rule = rule_for_mac(rss, kMac, NULL);
  struct ibv_cq* send_cq = make_cq(64);
  struct ibv_qp* sender = make_qp(IBV_QPT_RAW_PACKET, send_cq, send_cq, NULL);
  ready(sender, 0);
  for (unsigned i = 0; i < 6; i++) {
    if (i == 3) {
      uint8_t in[280] = {0}, out[280] = {0};
      put(in, 0, 16, 0x919);  // QUERY_RQT
      put(in, 0x48, 24, t->ind_tbl_num);
      SAME(mlx5dv_devx_ind_tbl_query(t, in, 16, out, sizeof out), 0);
      SAME(get(out, 0x100 + 0xd0, 16), 2);
      for (int j = 0; j < 2; j++) SAME(get(out, 0x100 + 0x780 + 32u * (unsigned)j + 8, 24), number[0]);
      memset(in, 0, sizeof in);
      memset(out, 0, sizeof out);
      put(in, 0, 16, 0x917);  // MODIFY_RQT: the list
      put(in, 0x48, 24, t->ind_tbl_num);
      put(in, 0x80 + 0x3f, 1, 1);
      put(in, 0x100 + 0xd0, 16, 2);
      for (int j = 0; j < 2; j++) put(in, 0x100 + 0x780 + 32u * (unsigned)j + 8, 24, number[1]);
      if (mlx5dv_devx_ind_tbl_modify(t, in, sizeof in, out, 16) != 0)
        fail("MODIFY_RQT: syndrome 0x%x", (unsigned)get(out, 0x20, 32));
    }
    ethernet_header(from.at, kMac, 0x88b5);
    post_send(sender, 1, IBV_WR_SEND, sge_of(&from, 0, 80 + i), NULL, 0);
    good_wc(send_cq, IBV_WC_SEND, "a frame");
    SAME(good_wc(cq[i >= 3], IBV_WC_RECV, "the frame's receive").byte_len, 80 + i);
    no_wc(cq[i < 3], "the other queue's CQ");
    same_bytes(to.at, from.at, 80 + i, "a frame");
  }
  // A work queue into the error state: what is posted there is flushed.
  uint8_t in[272] = {0}, out[16] = {0};
  put(in, 0, 16, 0x909);  // MODIFY_RQ
  put(in, 0x40, 4, 1);
  put(in, 0x48, 24, number[0]);
  put(in, 0x100 + 0x8, 4, 3);
  if (mlx5dv_devx_wq_modify(wq[0], in, sizeof in, out, 16) != 0)
    fail("MODIFY_RQ: syndrome 0x%x", (unsigned)get(out, 0x20, 32));
  for (unsigned i = 0; i < 5; i++) {
    const struct ibv_wc wc = wait_wc(cq[0], "a receive that is flushed");
    SAME(wc.status, IBV_WC_WR_FLUSH_ERR);
    SAME(wc.wr_id, 3 + i);
  }
  SAME(ibv_destroy_flow(rule), 0);
  SAME(ibv_destroy_qp(rss), 0);
  SAME(ibv_destroy_qp(sender), 0);
  SAME(ibv_destroy_rwq_ind_table(t), 0);
  for (int i = 0; i < 2; i++) SAME(ibv_destroy_wq(wq[i]), 0);
  for (int i = 0; i < 2; i++) SAME(ibv_destroy_cq(cq[i]), 0);
  SAME(ibv_destroy_cq(send_cq), 0);
  end();
}

// What the kernel lets pass of its applications' commands, and what the card says of the wrong ones.
static void refused(void) {
  begin();
  uint8_t in[272] = {0}, out[272] = {0};
  put(in, 0, 16, 0x7ff);  // no such command
  WANT(mlx5dv_devx_general_cmd(context, in, 16, out, 16) != 0);
  WANT(mlx5dv_devx_obj_create(context, in, 16, out, 16) == NULL);
  uint32_t eqn = 0;
  SAME(mlx5dv_devx_query_eqn(context, 0, &eqn), 0);
  put(in, 0, 16, 0x400);  // a CQ whose doorbell lies nowhere
  put(in, 0x80 + 0xa0, 32, eqn);
  put(in, 0x80 + 0x68, 24, 0xfffff0);
  memset(out, 0, sizeof out);
  WANT(mlx5dv_devx_obj_create(context, in, 272, out, 16) == NULL);
  WANT(get(out, 0, 8) != 0 && get(out, 0x20, 32) != 0);
  struct mlx5dv_devx_umem_in of_umem = {.addr = from.at, .size = 4096, .access = 0, .pgsz_bitmap = 0};
  WANT(mlx5dv_devx_umem_reg_ex(context, &of_umem) == NULL);
  WANT(mlx5dv_alloc_var(context, 0) == NULL);  // of cards that emulate virtio queues
  end();
}

// What other cards have: each call says that this one has not, and leaves nothing behind.
static void not_offered(void) {
  begin();
  struct mlx5dv_crypto_login_attr login = {0};
  struct mlx5dv_crypto_login_attr_ex login_ex = {0};
  enum mlx5dv_crypto_login_state state = 0;
  struct mlx5dv_dek_init_attr dek = {.pd = pd};
  WANT(mlx5dv_crypto_login(context, &login) != 0);
  WANT(mlx5dv_crypto_login_query_state(context, &state) != 0 || state == MLX5DV_CRYPTO_LOGIN_STATE_NO_LOGIN);
  WANT(mlx5dv_crypto_logout(context) != 0);
  WANT(mlx5dv_crypto_login_create(context, &login_ex) == NULL);
  WANT(mlx5dv_dek_create(context, &dek) == NULL);
  struct ibv_flow_action_esp_keymat_aes_gcm key = {.key_len = 16, .icv_len = 16};
  struct ibv_flow_action_esp transport = {0};
  struct ibv_flow_action_esp_attr esp = {.esp_attr = &transport,
                                         .keymat_proto = IBV_FLOW_ACTION_ESP_KEYMAT_AES_GCM,
                                         .keymat_len = sizeof key,
                                         .keymat_ptr = &key};
  struct mlx5dv_flow_action_esp direct = {0};
  WANT(ibv_create_flow_action_esp(context, &esp) == NULL);
  WANT(mlx5dv_create_flow_action_esp(context, &esp, &direct) == NULL);
  struct ibv_cq* cq = make_cq(16);
  struct ibv_qp* qp = make_qp(IBV_QPT_RC, cq, cq, NULL);
  ready(qp, qp->qp_num);
  WANT(mlx5dv_dci_stream_id_reset(qp, 1) != 0);
  WANT(mlx5dv_modify_qp_lag_port(qp, 2) != 0);
  WANT(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, kAll) == NULL);
  // Nothing of it has touched the QP.
  post_recv(qp, 1, sge_of(&to, 0, 100));
  post_send(qp, 2, IBV_WR_SEND, sge_of(&from, 0, 100), NULL, 0);
  for (int i = 0; i < 2; i++) SAME(wait_wc(cq, "a message").status, IBV_WC_SUCCESS);
  SAME(ibv_destroy_qp(qp), 0);
  SAME(ibv_destroy_cq(cq), 0);
  end();
}

int main(int argc, char** argv) {
  static const struct test tests[] = {{"traffic", traffic},
                                      {"events", events},
                                      {"async", async},
                                      {"srq", srq},
                                      {"table", table},
                                      {"refused", refused},
                                      {"not_offered", not_offered},
                                      {"port_events", port_events}};
  return run_tests(tests, sizeof tests / sizeof tests[0], argc, argv);
}
