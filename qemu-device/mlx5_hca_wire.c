/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wires to HCAs of other processes (wire=): QEMU's main loop sees to them when one of their files is ready,
 * and when the model wants to be asked again. */
#include "mlx5_hca.h"

static struct {
  QEMUTimer* timer; /* on the clock that goes on: sockets that look for their other end, keepalives */
  int64_t armed;
  GPtrArray* links; /* that have a wire; NULL: none has had one yet */
} wires = {.armed = HCA_NEVER};

static void arm(int64_t due) {
  if (due < wires.armed) { /* too early does no harm */
    wires.armed = due;
    timer_mod_ns(wires.timer, due);
  }
}

static void poll_wire(void* opaque) {
  HcaLink* link = opaque;
  int64_t clock = qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
  int64_t now;

  if (!link->hca || !hca_sim_started()) {
    return;
  }
  if (!mlx5_hca_may_enter()) {
    arm(clock + SCALE_MS); /* an event loop inside an access of the model */
    return;
  }
  now = mlx5_hca_enter();
  clock = hca_wire_poll(link->hca, clock);
  mlx5_hca_leave(now);
  arm(clock);
}

static void on_timer(void* opaque G_GNUC_UNUSED) {
  wires.armed = HCA_NEVER;
  for (unsigned i = 0; i < wires.links->len; i++) {
    poll_wire(g_ptr_array_index(wires.links, i));
  }
}

void mlx5_hca_watch_fd(void* opaque, int fd, int read, int write) {
  HcaLink* link = ((HcaFunction*)opaque)->link;

  qemu_set_fd_handler(fd, read ? poll_wire : NULL, write ? poll_wire : NULL, link);
}

static bool start(HcaLink* link) {
  if (!link->dev || !link->dev->prop_wire) {
    return false;
  }
  if (!wires.links) {
    wires.links = g_ptr_array_new();
    wires.timer = timer_new_ns(QEMU_CLOCK_REALTIME, on_timer, NULL);
  }
  g_ptr_array_add(wires.links, link);
  arm(qemu_clock_get_ns(QEMU_CLOCK_REALTIME));
  return false;
}

static bool forget(HcaLink* link) {
  if (wires.links && g_ptr_array_remove(wires.links, link) && wires.links->len == 0) {
    timer_del(wires.timer);
    wires.armed = HCA_NEVER;
  }
  return false;
}

const HcaPart mlx5_hca_wire = {.calls = {[HCA_CALL_START] = start, [HCA_CALL_FREE] = forget}};
