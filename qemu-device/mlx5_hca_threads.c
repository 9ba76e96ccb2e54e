/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How QEMU's threads get out of each other's way where guests poll: each vCPU that polls a completion queue
 * keeps a processor busy, and the main loop, which takes what comes over a wire, needs one now and then.
 *
 * The global lock is worth waiting for. A guest sees its CQE while the thread that has written it still holds
 * the lock, and rings the next doorbell: it comes some microseconds too early. To sleep for them costs more
 * than to wait, as the processor goes idle meanwhile (20 us and more until it is back, if it is itself a
 * virtual one). So a thread tries for as long as a turn of the model and of QEMU's main loop takes, and
 * sleeps only then. QEMU calls a function of everybody's choice for this lock, and no other goes by it.
 *
 * Who lets go of the lock and takes it again at once is there before whoever sleeps for it has woken up. A
 * processor that rings doorbells without end, each of which runs the model, so kept the others from their
 * registers for seconds. It lets them by once somebody has slept for too long.
 *
 * The main loop of a guest on a wire goes before processors that poll, if the kernel lets this process say so
 * (root; CAP_SYS_NICE, RLIMIT_NICE). With two such guests on two processors it would get its share of 50 %
 * in pieces of milliseconds, between which both guests wait for what lies in the wire.
 */
#include "mlx5_hca.h"
#include "qemu/processor.h"
#include "qemu/thread.h"

#include <sys/resource.h>

#define TRY_NS 20000
#define PATIENCE_NS 500000  /* of who sleeps */
#define WAKING_UP_NS 200000 /* at most */
#define PAUSES 32           /* between two tries: the lock's cache line is its owner's meanwhile */

#define NICER 5 /* three times the weight */

/* The processor on which whoever has the lock took it. If that is the waiter's own, its owner was put aside
 * for the waiter, and goes on only when that sleeps. Only a hint: threads move, and a condition gives the
 * lock back without a word of it here. */
static int taken_on = -1;

static QemuMutex* global; /* the lock, once somebody has taken it this way */

static int64_t asleep_since; /* get_clock() when the first of those who sleep for the lock began to, about; 0:
                                nobody does */
static unsigned asleep;
static const void* owner; /* the thread that took it last */

static void sleep_for(QemuMutex* mutex, const char* file, int line) {
  int64_t left;

  if (qatomic_fetch_inc(&asleep) == 0) {
    qatomic_set(&asleep_since, get_clock());
  }
  qemu_mutex_lock_impl(mutex, file, line);
  left = qatomic_fetch_dec(&asleep) > 1 ? get_clock() : 0; /* the others wait for another turn */
  qatomic_set(&asleep_since, left);
}

/* The lock is free or will be, and the sleeper that was woken is on its way. */
static void let_sleepers_by(void) {
  int64_t since = qatomic_read(&asleep_since), now = since ? get_clock() : 0;

  if (now - since < PATIENCE_NS || qatomic_read(&owner) != __builtin_thread_pointer()) {
    return;
  }
  for (int64_t until = now + WAKING_UP_NS; now < until && qatomic_read(&asleep_since) == since;
       now = get_clock()) {
    sched_yield();
  }
}

static void lock_soon(QemuMutex* mutex, const char* file, int line) {
  int64_t until;

  qatomic_set(&global, mutex);
  let_sleepers_by();
  if (qemu_mutex_trylock_impl(mutex, file, line)) {
    until = get_clock() + TRY_NS;
    do {
      if (qatomic_read(&taken_on) == sched_getcpu() || get_clock() >= until) {
        sleep_for(mutex, file, line);
        break;
      }
      for (unsigned i = 0; i < PAUSES; i++) {
        cpu_relax();
      }
    } while (qemu_mutex_trylock_impl(mutex, file, line));
  }
  qatomic_set(&taken_on, sched_getcpu());
  qatomic_set(&owner, __builtin_thread_pointer());
}

bool mlx5_hca_peek(bool (*look)(void)) {
  QemuMutex* mutex = qatomic_read(&global);
  bool found;

  if (bql_locked()) {
    return look();
  }
  if (!mutex || qemu_mutex_trylock_impl(mutex, __FILE__, __LINE__)) {
    return false;
  }
  found = look();
  qemu_mutex_unlock_impl(mutex, __FILE__, __LINE__);
  return found;
}

/* In Linux a priority is a thread's; vCPUs have theirs already. */
static void put_main_loop_first(void) {
  static bool done;
  int nice;

  if (done || current_cpu) {
    return;
  }
  done = true;
  errno = 0;
  nice = getpriority(PRIO_PROCESS, qemu_get_thread_id());
  if (!errno) {
    /* Without the right to do so all is as it was. */
    (void)setpriority(PRIO_PROCESS, qemu_get_thread_id(), nice - NICER);
  }
}

/* Not where a guest waits for another one's time (lockstep): its vCPU holds the lock meanwhile. */
static bool start(HcaLink* link) {
  if (!link->ahead) {
    return false;
  }
  /* Who has QEMU measure its locks (sync-profile) has a function of QEMU's there, which stays. With one
     processor the owner cannot go on while another tries. */
  if (g_get_num_processors() > 1 && qatomic_read(&bql_mutex_lock_func) == qemu_mutex_lock_impl) {
    qatomic_set(&bql_mutex_lock_func, lock_soon);
  }
  if (link->dev && link->dev->prop_wire) {
    put_main_loop_first();
  }
  return false;
}

const HcaPart mlx5_hca_threads = {.calls = {[HCA_CALL_START] = start}};
