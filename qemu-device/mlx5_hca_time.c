/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Time. One SystemC kernel serves all HCAs of the process, so there is one QEMUTimer and one place that calls
 * hca_sim_advance(). Everything here runs under QEMU's global lock, on whichever thread made the access: a
 * vCPU, the main loop, or under icount the one vCPU thread also for timers.
 *
 * `depth` counts calls into the C API in flight. The model may come back here from inside (its DMA hits
 * another HCA's BAR, or a configuration register): then nothing is run, resets and removals are put off, and
 * the outermost call deals with them when the model has returned.
 */
#include "mlx5_hca.h"

static struct {
  QEMUTimer* timer;
  int64_t armed;    /* model time at which something is due, HCA_NEVER = nothing is */
  int64_t timer_at; /* the guest's time at which the timer expires, HCA_NEVER = it does not run */
  int64_t met;      /* the last meeting that was had early: the guest's time may still be before it */
  int64_t meets;    /* the same while it is had, else 0 */
  int64_t lost;     /* ns that the host kept from this process and that were no time to the model */
  int64_t ahead;    /* the smallest of all HCAs': their common clock cannot run further */
  unsigned depth;
  uint64_t timer_runs;
  bool put_off;     /* a link has a reset or a removal pending */
  unsigned keepers; /* while there are some, removals wait ... */
  bool kept;        /* ... and one does */
  bool loading;     /* mlx5_hca_loading() */
  bool loaded;      /* and the machine has stood still since */
  Notifier machine_done;
  Notifier exit;
  QTAILQ_HEAD(, HcaLink) links;
} hca_clock = {.armed = HCA_NEVER, .timer_at = HCA_NEVER, .links = QTAILQ_HEAD_INITIALIZER(hca_clock.links)};

HcaMeeting mlx5_hca_meeting = {.rests = true, .due = HCA_NEVER};

/* Rounds of put-off resets within one access; a guest that makes more of them waits for the timer. */
#define MAX_ROUNDS 16

/* Meetings in one go while the guest sleeps, which QEMU's other work waits for. */
#define MEETINGS_AT_REST 256

/* A timer this late, ns, was kept from running by the host. */
#define LATE_NS 1000000

/*
 * The guest's clock as the model has it. In eager coupling the model's stands still while the host lets this
 * process wait: otherwise all retries of a QP would run out in one go, before anybody has looked at the
 * peer's answers, which lie in a socket.
 */
static int64_t model_now(void) {
  int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) - hca_clock.lost;

  if (!hca_clock.depth && hca_clock.ahead && hca_clock.armed != HCA_NEVER &&
      now - hca_clock.armed > LATE_NS) {
    hca_clock.lost += now - hca_clock.armed;
    now = hca_clock.armed;
  }
  return MAX(now, hca_clock.met);
}

/* Of what is due next the watcher of meetings takes that one, if a processor goes on that he watches. Returns
 * what is left for the timer. */
static int64_t leave_meeting(int64_t next) {
  int64_t event, due = hca_sim_meeting(&event);

  if (due != HCA_NEVER && mlx5_hca_meeting.begin) {
    mlx5_hca_meeting.begin();
  }
  if (due < 0 || !mlx5_hca_meeting.watched || mlx5_hca_meeting.rests) {
    due = HCA_NEVER;
  }
  qatomic_set(&mlx5_hca_meeting.due, due);
  qatomic_set(&mlx5_hca_meeting.changed, true);
  return due == HCA_NEVER ? next : event;
}

static void rearm(int64_t now, int64_t next) {
  int64_t at = HCA_NEVER;

  if (mlx5_hca_meeting.watched || mlx5_hca_meeting.begin) {
    next = leave_meeting(next);
  }
  if (next != HCA_NEVER) {
    next = MAX(next, now + 1); /* never spin in the main loop */
    at = next + hca_clock.lost;
  }
  hca_clock.armed = next;
  /* A timer that expires too early finds nothing due. In eager coupling that is cheaper than to put it off at
     each access, which wakes the main loop. */
  if (at == hca_clock.timer_at || (hca_clock.ahead && at > hca_clock.timer_at)) {
    return;
  }
  if (at == HCA_NEVER) {
    timer_del(hca_clock.timer);
  } else {
    timer_mod_ns(hca_clock.timer, at);
  }
  hca_clock.timer_at = at;
}

static void find_ahead(void) {
  HcaLink* link;

  hca_clock.ahead = HCA_NEVER;
  QTAILQ_FOREACH(link, &hca_clock.links, next) { hca_clock.ahead = MIN(hca_clock.ahead, link->ahead); }
  if (hca_clock.ahead == HCA_NEVER) {
    hca_clock.ahead = 0;
  }
}

/* Returns whether a part had something to do. */
static bool call_parts(HcaLink* link, HcaCall what) {
  bool any = false;

  for (const HcaPart* const* part = link->parts; *part; part++) {
    any |= (*part)->calls[what] && (*part)->calls[what](link);
  }
  return any;
}

static inline bool call_if_wanted(HcaLink* link, HcaCall what) {
  return (link->wants & 1u << what) && call_parts(link, what);
}

static void link_free(HcaLink* link) {
  QTAILQ_REMOVE(&hca_clock.links, link, next);
  find_ahead();
  if (link->hca) {
    hca_clock.depth++;
    hca_destroy(link->hca);
    hca_clock.depth--;
  }
  call_parts(link, HCA_CALL_FREE);
  object_unref(OBJECT(link->held));
  g_free(link->virtuals);
  g_free(link);
}

static void reset_now(HcaFunction* function) {
  bool conventional = function->conventional;

  function->reset_pending = function->conventional = false;
  hca_clock.depth++;
  if (conventional) {
    hca_reset(function->link->hca);
  } else {
    hca_function_reset(function->link->hca, function->number);
  }
  hca_clock.depth--;
}

/* Of the physical function it is that of the virtual ones too. */
static void run_resets(HcaLink* link) {
  bool card = link->physical.reset_pending;

  if (card) {
    reset_now(&link->physical);
  }
  for (unsigned i = 0; i < link->virtual_count; i++) {
    if (link->virtuals[i].reset_pending && !card) {
      reset_now(&link->virtuals[i]);
    }
    link->virtuals[i].reset_pending = false;
  }
}

/* While somebody goes over the links, or is about to use one, none of them is freed. */
static void keep_links(void) { hca_clock.keepers++; }

static void keep_no_longer(void) {
  if (!--hca_clock.keepers && hca_clock.kept) {
    hca_clock.kept = false;
    hca_clock.put_off = true;
  }
}

/* Does what was put off while the model ran. Returns whether there was anything. */
static bool run_put_off(void) {
  HcaLink *link, *tmp;

  if (!hca_clock.put_off) {
    return false;
  }
  hca_clock.put_off = false;
  QTAILQ_FOREACH_SAFE(link, &hca_clock.links, next, tmp) {
    if (link->destroy_pending && hca_clock.keepers) {
      hca_clock.kept = true;
      continue;
    }
    if (link->destroy_pending) {
      link_free(link);
      continue;
    }
    if (link->memory_changed) {
      link->memory_changed = false;
      hca_clock.depth++;
      hca_memory_changed(link->hca);
      hca_clock.depth--;
    }
    run_resets(link);
    hca_clock.depth++; /* the resets that it makes wait for the next round */
    call_if_wanted(link, HCA_CALL_TURN);
    hca_clock.depth--;
  }
  return true;
}

/* Frames that came while the model ran. */
static bool take_frames(void) {
  bool any = false;
  HcaLink* link;

  hca_clock.depth++;
  QTAILQ_FOREACH(link, &hca_clock.links, next) { any |= call_if_wanted(link, HCA_CALL_FRAMES); }
  hca_clock.depth--;
  return any;
}

static bool may_advance(void) {
  return !hca_clock.depth && hca_clock.timer && hca_sim_started() && !hca_clock.loading;
}

/* The one place where simulated time moves. Returns when something is due next. */
static int64_t run(int64_t now, int64_t ahead) {
  int64_t next;
  unsigned rounds = 0;

  do {
    hca_clock.depth++;
    next = hca_sim_advance(now, ahead);
    hca_clock.depth--;
  } while ((run_put_off() | take_frames()) && ++rounds < MAX_ROUNDS);
  return rounds == MAX_ROUNDS ? now + 1 : next;
}

static void ran(int64_t now, int64_t next) {
  HcaLink* link;

  rearm(now, next);
  keep_links();
  QTAILQ_FOREACH(link, &hca_clock.links, next) { call_if_wanted(link, HCA_CALL_ROOM); }
  keep_no_longer();
  if (!hca_clock.depth && !hca_clock.keepers) {
    run_put_off();
  }
}

/* Nested calls leave the work to the outermost one. */
static void advance(int64_t now, int64_t ahead) {
  if (may_advance()) {
    ran(now, run(now, ahead));
  }
}

/* No processor goes on before an interrupt. To all_cpu_threads_idle() one is at work also while its thread
 * has yet to look at a timer that was set. */
static bool all_rest(void) {
  CPUState* cpu;

  if (!mlx5_hca_meeting.watched) {
    return false;
  }
  CPU_FOREACH(cpu) {
    if (!cpu->halted || cpu->interrupt_request || cpu->stop || cpu->stopped) {
      return false;
    }
  }
  return true;
}

/* While all processors rest, nothing is done to the model until the guest's next timer expires. So the
 * meetings that are due by then are had here, one after the other: a run of the timer for each would go
 * through QEMU's main loop and wake a processor's thread. Called while the model's timer is not armed. */
static int64_t meet_at_rest(int64_t next) {
  int64_t due, event;

  for (unsigned i = 0; i < MEETINGS_AT_REST && all_rest(); i++) {
    due = hca_sim_meeting(&event);
    if (due < 0 || due >= event || due >= mlx5_hca_quiet_until(NULL)) {
      break;
    }
    hca_clock.met = hca_clock.meets = due;
    next = run(due, 0);
    hca_clock.meets = 0;
  }
  return next;
}

static void on_timer(void* opaque G_GNUC_UNUSED) {
  int64_t now = model_now();

  hca_clock.armed = HCA_NEVER;
  hca_clock.timer_at = HCA_NEVER;
  hca_clock.timer_runs++;
  if (may_advance()) {
    ran(now, meet_at_rest(run(now, hca_clock.ahead)));
  }
}

bool mlx5_hca_meet_before(int64_t end) {
  int64_t due = mlx5_hca_meeting.due;

  if (due > end || hca_clock.depth) {
    return false;
  }
  hca_clock.met = hca_clock.meets = due;
  advance(due, 0);
  hca_clock.meets = 0;
  return mlx5_hca_meeting.due != due;
}

void mlx5_hca_meet_by_timer(void) {
  int64_t due = mlx5_hca_meeting.due;

  if (due < hca_clock.timer_at) {
    hca_clock.timer_at = due;
    timer_mod_ns(hca_clock.timer, due);
  }
}

bool mlx5_hca_lockstep(void) { return !hca_clock.ahead; }

void mlx5_hca_want_turn(HcaLink* link) {
  link->wants |= 1u << HCA_CALL_TURN;
  hca_clock.put_off = true;
}

uint64_t mlx5_hca_timer_runs(void) { return hca_clock.timer_runs; }

void mlx5_hca_settle(void) { advance(model_now(), hca_clock.ahead); }

void mlx5_hca_call_begin(void) { hca_clock.depth++; }
void mlx5_hca_call_end(void) { hca_clock.depth--; }

bool mlx5_hca_may_enter(void) { return may_advance(); }

int64_t mlx5_hca_enter(void) {
  int64_t now = model_now();

  keep_links(); /* the caller's goes on being there until it leaves */
  advance(now, 0);
  hca_clock.depth++;
  keep_no_longer();
  return now;
}

void mlx5_hca_leave(int64_t now) {
  hca_clock.depth--;
  advance(now, hca_clock.ahead);
}

/* ---- saved states ---- */

bool mlx5_hca_drain(void) {
  for (unsigned rounds = 0; run_put_off() | take_frames();) {
    if (++rounds == MAX_ROUNDS) {
      error_report(TYPE_MLX5_HCA ": the HCAs cannot be saved: the guest resets them without end");
      return false;
    }
  }
  return true;
}

void mlx5_hca_clock_get(int64_t* lost, int64_t* armed, int64_t* timer_at, uint64_t* timer_runs) {
  *lost = hca_clock.lost;
  *armed = hca_clock.armed;
  *timer_at = hca_clock.timer_at;
  *timer_runs = hca_clock.timer_runs;
}

void mlx5_hca_clock_set(int64_t lost, int64_t armed, int64_t timer_at, uint64_t timer_runs) {
  hca_clock.lost = lost;
  hca_clock.met = 0;
  hca_clock.armed = armed;
  hca_clock.timer_at = timer_at;
  hca_clock.timer_runs = timer_runs;
  if (timer_at == HCA_NEVER) {
    timer_del(hca_clock.timer);
  } else {
    timer_mod_ns(hca_clock.timer, timer_at);
  }
}

void mlx5_hca_loading(bool on) { hca_clock.loading = on; }
void mlx5_hca_loaded(bool well) { hca_clock.loaded = well; }
bool mlx5_hca_is_loading(void) { return hca_clock.loading; }

/* ---- the port ---- */

bool mlx5_hca_enter_now(HcaLink* link, const void* frame, size_t len) {
  int64_t now;

  if (hca_clock.depth) {
    return false;
  }
  now = mlx5_hca_enter();
  hca_wire_rx(link->hca, frame, len);
  mlx5_hca_leave(now);
  return true;
}

/* A guest whose processors all sleep is woken by its next timer, or by the HCA. */
int64_t mlx5_hca_quiet_until(void* opaque G_GNUC_UNUSED) {
  int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), wait;

  if (!all_cpu_threads_idle() && !all_rest()) {
    return hca_clock.meets ? hca_clock.meets : now - hca_clock.lost;
  }
  wait = qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, ~QEMU_TIMER_ATTR_EXTERNAL);
  return wait < 0 ? HCA_NEVER : now + wait - hca_clock.lost;
}

/* Asked with QEMU's lock held, so that nobody else could hear a signal. */
int mlx5_hca_keep_waiting(void* opaque G_GNUC_UNUSED) {
  return qemu_shutdown_requested_get() == SHUTDOWN_CAUSE_NONE;
}

/* The machine's clock may have gone back with what was loaded. The model's does not: it goes on from where it
 * is, and not when the machine's has caught up. */
static void clock_after_failed_load(void) {
  int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);

  mlx5_hca_clock_set(MIN(hca_clock.lost, now - hca_sim_time()), HCA_NEVER, HCA_NEVER, hca_clock.timer_runs);
}

/* Nothing enters a machine that stands still. */
static void on_run_state(void* opaque G_GNUC_UNUSED, bool running, RunState state G_GNUC_UNUSED) {
  HcaLink* link;

  hca_clock.depth++;
  QTAILQ_FOREACH(link, &hca_clock.links, next) {
    if (link->hca) {
      hca_wire_hold(link->hca, !running);
    }
  }
  hca_clock.depth--;
  if (running && hca_clock.loading) {
    /* A stream without our section, or a load that failed: what the model has, nobody knows. */
    hca_clock.loading = false;
    error_report(TYPE_MLX5_HCA ": the machine runs without the state of its HCAs: they are reset");
    clock_after_failed_load();
    QTAILQ_FOREACH(link, &hca_clock.links, next) { reset_now(&link->physical); }
    mlx5_hca_settle();
  } else if (running && hca_clock.loaded) {
    /* What is at the ports here may differ from what was there: that is due now, earlier than what was. */
    mlx5_hca_settle();
  }
  hca_clock.loaded &= !running;
}

static void link_start(HcaLink* link) {
  link->started = true;
  call_parts(link, HCA_CALL_START);
}

/* All -device options are done: elaborate. What comes from here on is plugged into a running machine. */
static void on_machine_done(Notifier* notifier G_GNUC_UNUSED, void* data G_GNUC_UNUSED) {
  int64_t now = model_now();
  HcaLink* link;
  int rc;

  if (hca_sim_started()) {
    return;
  }
  hca_clock.depth++;
  rc = hca_sim_start(now);
  hca_clock.depth--;
  if (rc) {
    error_report(TYPE_MLX5_HCA ": the HCAs cannot start (%d)", rc);
    exit(1);
  }
  hca_clock.timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, on_timer, NULL);
  qemu_add_vm_change_state_handler(on_run_state, NULL);
  QTAILQ_FOREACH(link, &hca_clock.links, next) { link_start(link); }
  mlx5_hca_settle();
}

bool mlx5_hca_fits_time(int64_t* ahead, Error** errp) {
  bool others = hca_sim_started() && !QTAILQ_EMPTY(&hca_clock.links);

  if (others && hca_clock.ahead && !*ahead) {
    error_setg(errp,
               TYPE_MLX5_HCA ": time=lockstep: there is one time, and the machine's HCAs have time=eager");
    return false;
  }
  if (others && !hca_clock.ahead) {
    *ahead = 0;
  }
  return true;
}

HcaLink* mlx5_hca_link_new(Mlx5Hca* dev, const HcaPart* const* parts) {
  HcaLink* link = g_new0(HcaLink, 1);

  link->parts = parts;
  link->dev = dev;
  link->held = dev; /* an access that the model makes may unplug the device */
  link->physical = (HcaFunction){
      .link = link, .vectors = HCA_MSIX_VECTORS, .pci = PCI_DEVICE(dev), .owner = &dev->function};
  dev->function = &link->physical;
  object_ref(OBJECT(dev));
  QTAILQ_INSERT_TAIL(&hca_clock.links, link, next);
  return link;
}

/* QEMU ends without unplugging its devices: end the HCAs here, so that their traces are complete. */
static void on_exit_of_qemu(Notifier* notifier G_GNUC_UNUSED, void* data G_GNUC_UNUSED) {
  HcaLink *link, *tmp;

  if (hca_clock.depth) {
    return; /* exit() out of a callback: the model cannot be called now */
  }
  if (hca_clock.timer) {
    timer_del(hca_clock.timer);
  }
  QTAILQ_FOREACH_SAFE(link, &hca_clock.links, next, tmp) {
    if (link->dev) {
      link->dev->link = NULL;
    }
    mlx5_hca_link_drop(link);
  }
}

void mlx5_hca_link_started(HcaLink* link) {
  find_ahead();
  if (hca_sim_started()) {
    if (!runstate_is_running()) {
      hca_wire_hold(link->hca, true); /* as on_run_state() has done it to the others */
    }
    link_start(link);
    mlx5_hca_settle();
    return;
  }
  if (!hca_clock.machine_done.notify) {
    hca_clock.machine_done.notify = on_machine_done;
    hca_clock.exit.notify = on_exit_of_qemu;
    qemu_add_exit_notifier(&hca_clock.exit);
    qemu_add_machine_init_done_notifier(&hca_clock.machine_done);
  }
}

void mlx5_hca_function_reset(HcaFunction* function) {
  if (!hca_sim_started() || hca_clock.loading) {
    return; /* as created: power-on state; or as it is to be loaded */
  }
  if (hca_clock.depth) {
    function->reset_pending = true;
    hca_clock.put_off = true;
    return;
  }
  reset_now(function);
  advance(model_now(), 0);
}

void mlx5_hca_card_reset(HcaLink* link) {
  if (hca_sim_started() && !hca_clock.loading) {
    link->physical.conventional = true;
    mlx5_hca_function_reset(&link->physical);
  }
}

void mlx5_hca_memory_changed(HcaLink* link) {
  if (hca_clock.depth) {
    link->memory_changed = true;
    hca_clock.put_off = true;
    return;
  }
  hca_clock.depth++;
  hca_memory_changed(link->hca);
  hca_clock.depth--;
}

static void disown(HcaFunction* function) {
  if (function->owner) {
    *function->owner = NULL;
    function->owner = NULL;
  }
  function->pci = NULL;
}

void mlx5_hca_link_drop(HcaLink* link) {
  if (link->started) {
    call_parts(link, HCA_CALL_STOP);
  }
  link->dev = NULL;
  disown(&link->physical);
  for (unsigned i = 0; i < link->virtual_count; i++) {
    disown(&link->virtuals[i]);
  }
  if (hca_clock.depth) {
    link->destroy_pending = true;
    hca_clock.put_off = true;
    return;
  }
  link_free(link);
}
