/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A look on the way of a vCPU of TCG: calls at the begin of each block of its code, which has no branch
 * inside. They cost a guest a tenth of its speed, so nothing is called before somebody wants it: then all
 * that has been translated is thrown away.
 */
#include "mlx5_hca.h"

static struct {
  qemu_plugin_id_t plugin;
  bool known; /* how code of this target rests */
  HcaBlockCall *block, *rest;
  void (*ready)(void);
} blocks;

void mlx5_hca_blocks_by(qemu_plugin_id_t id, const qemu_info_t* info) {
  blocks.plugin = id;
  blocks.known = !strcmp(info->target_name, "x86_64") || !strcmp(info->target_name, "i386");
}

bool mlx5_hca_has_blocks(void) { return blocks.known && tcg_enabled(); }

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

static void translated(QCOMPAT_TRANSLATED_ARGS(block)) {
  size_t n = qemu_plugin_tb_n_insns(block);

  if (n > 0) {
    qemu_plugin_register_vcpu_tb_exec_cb(
        block, rests(qemu_plugin_tb_get_insn(block, n - 1)) ? blocks.rest : blocks.block,
        QEMU_PLUGIN_CB_NO_REGS, (void*)(uintptr_t)n);
  }
}

/* While no processor executes. From 8.0 to 10.1 tb_flush() itself sees to that only where several processors
 * may run at once, and not if its caller is the main loop beside the only one. */
static void flushed(CPUState* cpu G_GNUC_UNUSED, run_on_cpu_data data G_GNUC_UNUSED) {
#if !HCASIM_QEMU_AT_LEAST(10, 2)
  tb_flush(cpu);
#endif
  blocks.ready();
}

void mlx5_hca_watch_blocks(HcaBlockCall* block, HcaBlockCall* rest, void (*when_ready)(void)) {
  blocks.block = block;
  blocks.rest = rest;
  blocks.ready = when_ready;
  qcompat_on_translation(blocks.plugin, translated);
#if HCASIM_QEMU_AT_LEAST(10, 2)
  tb_flush(first_cpu);
#endif
  async_safe_run_on_cpu(first_cpu, flushed, RUN_ON_CPU_NULL);
}
