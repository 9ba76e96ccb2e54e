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
 * meeting to the timer, as time goes on by leaps then. Blocks count from the first such meeting on: what was
 * translated before, while the guest boots mostly, is thrown away then.
 */
#include "mlx5_hca.h"

static qemu_plugin_id_t plugin;
static bool can_watch; /* that target's code */
static int64_t left;   /* instructions that blocks may have before one of them has to look */
static int64_t ns_per_instruction;

void mlx5_hca_meet_by(qemu_plugin_id_t id, const qemu_info_t* info) {
  plugin = id;
  can_watch = !strcmp(info->target_name, "x86_64") || !strcmp(info->target_name, "i386");
}

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

static size_t bytes_of(const struct qemu_plugin_insn* instruction, uint8_t* out, size_t room) {
  size_t size = MIN(qemu_plugin_insn_size(instruction), room);

#if QEMU_PLUGIN_VERSION >= 3
  return qemu_plugin_insn_data(instruction, out, size);
#else
  memcpy(out, qemu_plugin_insn_data(instruction), size);
  return size;
#endif
}

/* HLT, MWAIT */
static bool rests(const struct qemu_plugin_insn* instruction) {
  uint8_t bytes[3];
  size_t size = bytes_of(instruction, bytes, sizeof(bytes));

  return (size == 1 && bytes[0] == 0xf4) ||
         (size == 3 && bytes[0] == 0x0f && bytes[1] == 0x01 && bytes[2] == 0xc9);
}

static void translated(qemu_plugin_id_t id G_GNUC_UNUSED, struct qemu_plugin_tb* block) {
  size_t n = qemu_plugin_tb_n_insns(block);

  if (n > 0) {
    qemu_plugin_register_vcpu_tb_exec_cb(
        block, rests(qemu_plugin_tb_get_insn(block, n - 1)) ? on_block_that_rests : on_block,
        QEMU_PLUGIN_CB_NO_REGS, (void*)(uintptr_t)n);
  }
}

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
static void watch(CPUState* cpu G_GNUC_UNUSED, run_on_cpu_data data G_GNUC_UNUSED) {
  mlx5_hca_meeting.watched = true;
}

static void begin(void) {
  mlx5_hca_meeting.begin = NULL;
  qemu_plugin_register_vcpu_tb_trans_cb(plugin, translated);
  tb_flush(first_cpu);
  async_safe_run_on_cpu(first_cpu, watch, RUN_ON_CPU_NULL);
}

/* Before the machine runs. */
static bool start(HcaLink* link G_GNUC_UNUSED) {
  int64_t event;
  bool same_lengths = tcg_enabled() && icount_enabled() == 1; /* of instructions */

  if (can_watch && !ns_per_instruction && same_lengths && hca_sim_meeting(&event) >= 0 && check(first_cpu)) {
    ns_per_instruction = icount_to_ns(1);
    mlx5_hca_meeting.begin = begin;
  }
  return false;
}

const HcaPart mlx5_hca_meet = {.calls = {[HCA_CALL_START] = start}};
