/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port's cable on QEMU's side: the network back end of netdev=, and the sockets of wire=.
 *
 * A back end may bring a frame while the model runs (an answer to what was just sent): it waits here until
 * the model has returned. Where there is no more room, QEMU's own queue keeps frames until it is flushed.
 */
#include "mlx5_hca.h"

#define MAX_WAITING 512

typedef struct Frame {
  QSIMPLEQ_ENTRY(Frame) next;
  size_t size;
  uint8_t data[];
} Frame;

struct HcaNet {
  NICState* nic;
  QSIMPLEQ_HEAD(, Frame) waiting; /* frames that came while the model ran */
  unsigned count;
  bool refused; /* QEMU was told to keep its frames: it must be asked for them again */
};

static HcaLink* link_of(NetClientState* nc) { return MLX5_HCA(qemu_get_nic_opaque(nc))->link; }

static bool net_can_receive(NetClientState* nc) {
  HcaLink* link = link_of(nc);

  if (!link) {
    return true; /* into the void */
  }
  if (link->net->count < MAX_WAITING && hca_wire_room(link->hca)) {
    return true;
  }
  link->net->refused = true;
  return false;
}

static ssize_t net_receive(NetClientState* nc, const uint8_t* data, size_t size) {
  HcaLink* link = link_of(nc);
  Frame* frame;

  if (!link || !link->hca) {
    return size;
  }
  if (mlx5_hca_enter_now(link, data, size)) {
    return size;
  }
  frame = g_malloc(sizeof(*frame) + size);
  frame->size = size;
  memcpy(frame->data, data, size);
  QSIMPLEQ_INSERT_TAIL(&link->net->waiting, frame, next);
  link->net->count++;
  return size;
}

static void net_link_status_changed(NetClientState* nc) {
  HcaLink* link = link_of(nc);

  if (link) {
    mlx5_hca_carrier(link, !nc->link_down);
  }
}

static NetClientInfo net_client_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = net_can_receive,
    .receive = net_receive,
    .link_status_changed = net_link_status_changed,
};

bool mlx5_hca_has_netdev(Mlx5Hca* dev) { return dev->nic_conf.peers.ncs[0] != NULL; }

void mlx5_hca_net_init(Mlx5Hca* dev) {
  static const MACAddr unset;
  HcaNet* net;

  if (!memcmp(&dev->nic_conf.macaddr, &unset, sizeof(unset))) {
    hca_get_mac(dev->link->hca, dev->nic_conf.macaddr.a);
  }
  if (!mlx5_hca_has_netdev(dev)) {
    return;
  }
  net = g_new0(HcaNet, 1);
  QSIMPLEQ_INIT(&net->waiting);
  dev->link->net = net;
  net->nic =
      qcompat_new_nic(&net_client_info, &dev->nic_conf, object_get_typename(OBJECT(dev)), DEVICE(dev), dev);
  qemu_format_nic_info_str(qemu_get_queue(net->nic), dev->nic_conf.macaddr.a);
}

void mlx5_hca_net_exit(HcaLink* link) {
  if (link->net && link->net->nic) {
    qemu_del_nic(link->net->nic);
    link->net->nic = NULL;
  }
}

void mlx5_hca_net_free(HcaLink* link) {
  HcaNet* net = link->net;

  if (!net) {
    return;
  }
  while (!QSIMPLEQ_EMPTY(&net->waiting)) {
    Frame* frame = QSIMPLEQ_FIRST(&net->waiting);

    QSIMPLEQ_REMOVE_HEAD(&net->waiting, next);
    g_free(frame);
  }
  g_free(net);
  link->net = NULL;
}

bool mlx5_hca_net_take(HcaLink* link) {
  HcaNet* net = link->net;

  if (!net || !net->count || link->reset_pending || link->destroy_pending) {
    return false;
  }
  while (!QSIMPLEQ_EMPTY(&net->waiting)) {
    Frame* frame = QSIMPLEQ_FIRST(&net->waiting);

    QSIMPLEQ_REMOVE_HEAD(&net->waiting, next);
    hca_wire_rx(link->hca, frame->data, frame->size);
    g_free(frame);
  }
  net->count = 0;
  return true;
}

void mlx5_hca_net_resume(HcaLink* link) {
  HcaNet* net = link->net;

  if (net && net->refused && net->nic && hca_wire_room(link->hca)) {
    net->refused = false;
    qemu_flush_queued_packets(qemu_get_queue(net->nic));
  }
}

int mlx5_hca_net_tx(void* opaque, const void* frame, size_t len) {
  HcaLink* link = opaque;

  if (!link->net || !link->net->nic) {
    return 0;
  }
  /* 0: it waits in the back end's queue, which is long but drops once it is full. */
  return qemu_send_packet(qemu_get_queue(link->net->nic), frame, len) == 0;
}
