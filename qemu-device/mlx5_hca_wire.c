/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wires to HCAs of other processes (wire=). QEMU's main loop sees to them when one of their files is ready,
 * and when the model wants to be asked again.
 *
 * A guest that polls a completion queue waits for that: the other end writes to a file, the kernel wakes the
 * main loop, which takes a processor from some vCPU. So while much comes through shared memory that no
 * interrupt tells the guest of, vCPUs of TCG look themselves, each few hundred instructions on their way
 * (mlx5_hca_blocks.c), and take in what is there; the other end wakes nobody. Before a vCPU rests it looks a
 * little longer, and then has itself woken again. While all rest, the main loop looks for some time after it
 * was woken. For whatever else may keep vCPUs from looking, it polls each millisecond.
 *
 * A guest that waits for interrupts has other work meanwhile, beside which the main loop does this.
 */
#include "mlx5_hca.h"
#include "qemu/processor.h"

#define INSTRUCTIONS_A_LOOK 500 /* instructions of a vCPU */
#define WAKING_GAP_NS 5000000   /* wakings that are not further apart, ... */
#define WAKINGS 100             /* so many in a row, without an interrupt, make vCPUs look */
#define PATIENCE_NS 50000       /* before a vCPU rests, at most */
#define PAUSES 32               /* between two looks then */
#define GIVE_UP_NS 1000000      /* without a find after which they look no more */

static struct {
  QEMUTimer* timer; /* on the clock that goes on: sockets that look for their other end, keepalives */
  int64_t armed;
  GPtrArray* links; /* that have a wire; NULL: none has had one yet */

  int64_t woken;    /* when something had come */
  unsigned in_row;  /* wakings, each WAKING_GAP_NS after the one before at most */
  bool watches;     /* blocks are watched, or will be soon */
  bool ready;       /* they are */
  bool look;        /* vCPUs look, ... */
  bool rests;       /* ... but that which did last rests, or may */
  bool found;       /* since the timer ran last */
  bool waits;       /* a vCPU looks before it rests, ... */
  int64_t patience; /* ... for so many ns */
  uint64_t looks;
  uint64_t interrupts; /* mlx5_hca_interrupts as last seen */
} wires = {.armed = HCA_NEVER, .patience = PATIENCE_NS, .rests = true};

static __thread int64_t left; /* instructions of this vCPU until it looks */

static void arm(int64_t due) {
  if (due < wires.armed) { /* too early does no harm */
    wires.armed = due;
    timer_mod_ns(wires.timer, due);
  }
}

static bool something_waits(void) {
  for (unsigned i = 0; i < wires.links->len; i++) {
    if (hca_wire_waiting(((HcaLink*)g_ptr_array_index(wires.links, i))->hca)) {
      return true;
    }
  }
  return false;
}

/* The guest was interrupted since this was asked last. */
static bool interrupted(void) {
  bool since = wires.interrupts != mlx5_hca_interrupts;

  wires.interrupts = mlx5_hca_interrupts;
  return since;
}

/* sleep: the other end is to wake the main loop from here on. */
static void take_in(bool sleep) {
  bool locked = bql_locked();
  int64_t clock = qemu_clock_get_ns(QEMU_CLOCK_REALTIME), now;

  if (!locked) {
    bql_lock();
  }
  for (unsigned i = 0; i < wires.links->len; i++) {
    HcaLink* link = g_ptr_array_index(wires.links, i);
    bool waits = hca_wire_waiting(link->hca);

    if ((waits || sleep) && mlx5_hca_may_enter()) {
      now = mlx5_hca_enter();
      hca_wire_look(link->hca, clock, sleep);
      mlx5_hca_leave(now);
      wires.found |= waits;
      wires.looks += waits;
    }
  }
  if (wires.look && interrupted()) {
    qatomic_set(&wires.look, false);
    wires.in_row = 0;
    if (!sleep) {
      take_in(true);
    }
  }
  if (!locked) {
    bql_unlock();
  }
}

static void on_block(unsigned cpu G_GNUC_UNUSED, void* data) {
  left -= (uintptr_t)data;
  if (left <= 0) {
    left = INSTRUCTIONS_A_LOOK;
    if (qatomic_read(&wires.look)) {
      if (qatomic_read(&wires.rests)) {
        qatomic_set(&wires.rests, false);
      }
      if (mlx5_hca_peek(something_waits)) {
        take_in(false);
      }
    }
  }
}

/* To look pays as long as something comes in that time. */
static void be_patient(bool any) {
  int64_t before = qatomic_read(&wires.patience);

  qatomic_set(&wires.patience, any ? MIN(2 * before + PATIENCE_NS / 16, PATIENCE_NS) : before / 2);
}

/* As long as it pays; until there is something to do for the guest, whose next instruction lets the vCPU
 * rest. */
static void look_before_rest(void) {
  int64_t until = get_clock() + qatomic_read(&wires.patience);
  bool any = false;

  if (qatomic_xchg(&wires.waits, true)) {
    return; /* another one looks */
  }
  while (qatomic_read(&wires.look) && !current_cpu->interrupt_request && !current_cpu->exit_request &&
         get_clock() < until) {
    if (mlx5_hca_peek(something_waits)) {
      take_in(false);
      any = true;
      until = get_clock() + qatomic_read(&wires.patience);
    }
    for (unsigned i = 0; i < PAUSES; i++) {
      cpu_relax();
    }
  }
  be_patient(any);
  qatomic_set(&wires.waits, false);
}

static void on_block_that_rests(unsigned cpu G_GNUC_UNUSED, void* data G_GNUC_UNUSED) {
  bool look = qatomic_read(&wires.look);

  if (look) {
    look_before_rest();
  }
  qatomic_set(&wires.rests, true);
  if (look) {
    take_in(true);
  }
}

/* While all vCPUs rest the main loop looks, which has just taken something in. */
static void look_while_all_rest(void) {
  int64_t begin = get_clock(), now = begin, until = begin + qatomic_read(&wires.patience);
  bool any = false;

  while (wires.look && qatomic_read(&wires.rests) && all_cpu_threads_idle() && now < until &&
         now - begin < GIVE_UP_NS) {
    if (something_waits()) {
      take_in(false);
      any = true;
      until = now + qatomic_read(&wires.patience);
    }
    for (unsigned i = 0; i < PAUSES; i++) {
      cpu_relax();
    }
    now = get_clock();
  }
  be_patient(any);
  take_in(true);
}

static void on_ready(void) { wires.ready = true; }

/* Under -icount a vCPU knows the time at some of its instructions only, and in lockstep it takes what comes
 * at its time. Of one processor the other end needs what looking would take. */
static bool looking_pays(void) {
  return mlx5_hca_has_blocks() && !icount_enabled() && !mlx5_hca_lockstep() && g_get_num_processors() > 1;
}

/* The main loop was woken because something had come. */
static void count_waking(int64_t clock) {
  if (interrupted()) {
    qatomic_set(&wires.look, false);
    wires.in_row = 0;
    return;
  }
  wires.in_row = clock - wires.woken < WAKING_GAP_NS ? wires.in_row + 1 : 0;
  wires.woken = clock;
  wires.found = true;
  if (wires.in_row < WAKINGS || wires.look) {
    return;
  }
  if (wires.ready) {
    qatomic_set(&wires.look, true);
    arm(clock + GIVE_UP_NS);
  } else if (!wires.watches && looking_pays()) {
    wires.watches = true;
    mlx5_hca_watch_blocks(on_block, on_block_that_rests, on_ready);
  }
}

static void poll_wire(void* opaque) {
  HcaLink* link = opaque;
  int64_t clock = qemu_clock_get_ns(QEMU_CLOCK_REALTIME), now, due;
  bool came;

  if (!link->hca || !hca_sim_started()) {
    return;
  }
  if (!mlx5_hca_may_enter()) {
    arm(clock + SCALE_MS); /* an event loop inside an access of the model */
    return;
  }
  came = hca_wire_waiting(link->hca);
  if (came) {
    count_waking(clock);
  }
  now = mlx5_hca_enter();
  due = hca_wire_poll(link->hca, clock);
  if (wires.look && !qatomic_read(&wires.rests)) {
    hca_wire_look(link->hca, clock, false); /* so that it need not be called for the next ones */
  }
  mlx5_hca_leave(now);
  arm(due);
  if (came && wires.look && qatomic_read(&wires.rests)) {
    look_while_all_rest();
  }
}

static void on_timer(void* opaque G_GNUC_UNUSED) {
  wires.armed = HCA_NEVER;
  if (wires.look) {
    qatomic_set(&wires.look, wires.found);
    wires.found = false;
    if (wires.look) {
      arm(qemu_clock_get_ns(QEMU_CLOCK_REALTIME) + GIVE_UP_NS);
    }
  }
  for (unsigned i = 0; i < wires.links->len; i++) {
    poll_wire(g_ptr_array_index(wires.links, i));
  }
}

uint64_t mlx5_hca_wire_looks(void) { return wires.looks; }

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
