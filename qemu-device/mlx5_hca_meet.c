/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two guests in one time meet every microsecond or so of it (card/api/coupling.cpp), and at nearly all of
 * these meetings nothing is done to the guest. Had by a timer, each stops the vCPU at that very instruction:
 * QEMU translates the rest of a block anew, wakes its main loop, and both take turns with its lock.
 *
 * So the vCPU has such a meeting on the way, where it begins the block of code in which the time lies: under
 * -icount the only access to a device in a block is its last instruction, thus the guest does nothing before
 * that time that its HCA sees. Which meetings there are, what is told there and all results are the same. A
 * block that ends early, by an exception, may be followed by an access before the time of the meeting: that
 * one then counts as made at the meeting: later by less than the block takes.
 *
 * Each block counts its instructions down from what is left until the meeting; the clock is looked at when
 * that is used up, or was set anew. A block that ends with an instruction which lets the vCPU rest leaves the
 * meeting to the timer, as time goes on by leaps then. Blocks count from the first such meeting on.
 */
#include "mlx5_hca.h"

static int64_t left; /* instructions that blocks may have before one of them has to look */
static int64_t ns_per_instruction;

static void look(bool rests) {
  bool locked = bql_locked();
  int64_t end, due;
  bool before;

  if (!mlx5_hca_meeting.watched) {
    return; /* one of the first blocks: others may not count yet */
  }
  if (!locked) {
    bql_lock();
  }
  before = qcompat_may_do_io(current_cpu, true);
  mlx5_hca_meeting.rests = rests;
  do {
    end = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL); /* of the block */
  } while (mlx5_hca_meet_before(end));
  due = mlx5_hca_meeting.due;
  left = due == HCA_NEVER ? INT64_MAX : DIV_ROUND_UP(due - end, ns_per_instruction);
  if (rests && due != HCA_NEVER) {
    mlx5_hca_meet_by_timer();
  }
  qatomic_set(&mlx5_hca_meeting.changed, rests);
  qcompat_may_do_io(current_cpu, before);
  if (!locked) {
    bql_unlock();
  }
}

static void on_block(unsigned cpu G_GNUC_UNUSED, void* data) {
  left -= (uintptr_t)data;
  if (left <= 0 || qatomic_read(&mlx5_hca_meeting.changed)) {
    look(false);
  }
}

static void on_block_that_rests(unsigned cpu G_GNUC_UNUSED, void* data G_GNUC_UNUSED) { look(true); }

/* Whether a vCPU is laid out as this file thinks: what QEMU says and does of members beside the one that is
 * written. */
static bool check(CPUState* cpu) {
  const VMStateField* field = vmstate_cpu_common.fields;

  while (field->name && strcmp(field->name, "halted")) {
    field++;
  }
  return field->name && field->offset == offsetof(CPUState, halted) && qcompat_exits(cpu);
}

/* Between blocks: from here on all of them count. */
static void watch(void) { mlx5_hca_meeting.watched = true; }

static void begin(void) {
  mlx5_hca_meeting.begin = NULL;
  mlx5_hca_watch_blocks(on_block, on_block_that_rests, watch);
}

/* Before the machine runs. */
static bool start(HcaLink* link G_GNUC_UNUSED) {
  int64_t event;
  bool same_lengths = icount_enabled() == 1; /* of instructions */

  if (mlx5_hca_has_blocks() && !ns_per_instruction && same_lengths && hca_sim_meeting(&event) >= 0 &&
      check(first_cpu)) {
    ns_per_instruction = icount_to_ns(1);
    mlx5_hca_meeting.begin = begin;
  }
  return false;
}

const HcaPart mlx5_hca_meet = {.calls = {[HCA_CALL_START] = start}};
