/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port's cable on QEMU's side: the network back end of netdev=.
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
};

/* A network interface whose device has gone. */
typedef struct HcaNicEnd {
  NICState* nic;
  Mlx5Hca* dev;
} HcaNicEnd;

static HcaLink* link_of(NetClientState* nc) { return MLX5_HCA(qemu_get_nic_opaque(nc))->link; }

static bool net_can_receive(NetClientState* nc) {
  HcaLink* link = link_of(nc);

  if (!link) {
    return true; /* into the void */
  }
  if (link->net->count < MAX_WAITING && hca_wire_room(link->hca)) {
    return true;
  }
  link->wants |= 1u << HCA_CALL_ROOM; /* QEMU keeps its frames: it must be asked for them again */
  return false;
}

static ssize_t net_receive(NetClientState* nc, const uint8_t* data, size_t size) {
  HcaLink* link = link_of(nc);
  Frame* frame;

  /* 0 would mean that the frame is to be kept, and the back end not read until it is asked for. */
  if (!size) {
    return -1;
  }
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
  link->wants |= 1u << HCA_CALL_FRAMES;
  return size;
}

static void net_link_status_changed(NetClientState* nc) {
  HcaLink* link = link_of(nc);

  if (link) {
    mlx5_hca_call_begin();
    hca_wire_carrier(link->hca, !nc->link_down);
    mlx5_hca_call_end();
    mlx5_hca_settle();
  }
}

static NetClientInfo net_client_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = net_can_receive,
    .receive = net_receive,
    .link_status_changed = net_link_status_changed,
};

bool mlx5_hca_has_netdev(Mlx5Hca* dev) { return dev->prop_nic.peers.ncs[0] != NULL; }

void mlx5_hca_net_init(Mlx5Hca* dev) {
  static const MACAddr unset;
  HcaNet* net;

  if (!memcmp(&dev->prop_nic.macaddr, &unset, sizeof(unset))) {
    hca_get_mac(dev->link->hca, dev->prop_nic.macaddr.a);
  }
  if (!mlx5_hca_has_netdev(dev)) {
    return;
  }
  net = g_new0(HcaNet, 1);
  QSIMPLEQ_INIT(&net->waiting);
  dev->link->net = net;
  net->nic =
      qcompat_new_nic(&net_client_info, &dev->prop_nic, object_get_typename(OBJECT(dev)), DEVICE(dev), dev);
  qemu_format_nic_info_str(qemu_get_queue(net->nic), dev->prop_nic.macaddr.a);
}

static void delete_nic(void* opaque) {
  HcaNicEnd* end = opaque;

  qemu_del_nic(end->nic);
  object_unref(OBJECT(end->dev));
  g_free(end);
}

/* The device may go because of a frame that its network interface is just being given, which goes on to use
 * the interface: that is deleted behind it. The device, whose properties it uses, stays in memory as long. */
void mlx5_hca_net_exit(HcaLink* link) {
  HcaNicEnd* end;

  if (!link->net || !link->net->nic) {
    return;
  }
  end = g_new0(HcaNicEnd, 1);
  end->nic = link->net->nic;
  end->dev = link->dev;
  object_ref(OBJECT(end->dev));
  link->net->nic = NULL;
  aio_bh_schedule_oneshot(qemu_get_aio_context(), delete_nic, end);
}

static bool free_net(HcaLink* link) {
  HcaNet* net = link->net;

  if (!net) {
    return false;
  }
  while (!QSIMPLEQ_EMPTY(&net->waiting)) {
    Frame* frame = QSIMPLEQ_FIRST(&net->waiting);

    QSIMPLEQ_REMOVE_HEAD(&net->waiting, next);
    g_free(frame);
  }
  g_free(net);
  link->net = NULL;
  return true;
}

/* Gives waiting frames to the model. */
static bool take_frames(HcaLink* link) {
  HcaNet* net = link->net;

  if (link->physical.reset_pending || link->destroy_pending) {
    return false;
  }
  while (!QSIMPLEQ_EMPTY(&net->waiting)) {
    Frame* frame = QSIMPLEQ_FIRST(&net->waiting);

    QSIMPLEQ_REMOVE_HEAD(&net->waiting, next);
    hca_wire_rx(link->hca, frame->data, frame->size);
    g_free(frame);
  }
  net->count = 0;
  link->wants &= ~(1u << HCA_CALL_FRAMES);
  return true;
}

/* Asks QEMU for the frames that there was no room for. */
static bool resume(HcaLink* link) {
  HcaNet* net = link->net;

  if (!net->nic || !hca_wire_room(link->hca)) {
    return false;
  }
  link->wants &= ~(1u << HCA_CALL_ROOM);
  for (int i = 0, queues = MAX(1, net->nic->conf->peers.queues); i < queues && net->nic; i++) {
    qemu_flush_queued_packets(qemu_get_subqueue(net->nic, i));
  }
  return true;
}

const HcaPart mlx5_hca_net = {
    .calls = {[HCA_CALL_FRAMES] = take_frames, [HCA_CALL_ROOM] = resume, [HCA_CALL_FREE] = free_net}};

int mlx5_hca_net_tx(void* opaque, const void* frame, size_t len) {
  HcaLink* link = ((HcaFunction*)opaque)->link;

  if (!link->net || !link->net->nic) {
    return 0;
  }
  /* 0: it waits in the back end's queue, which is long but drops once it is full. */
  return qemu_send_packet(qemu_get_queue(link->net->nic), frame, len) == 0;
}
