/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where the guest's code is that accesses a register just now (guest_pc=on), for the trace.
 *
 * The processor is in the midst of translated code, and what QEMU keeps of its program counter is that of the
 * block's start. The way from the machine code back to the instruction is asked for, and nothing of the
 * processor's state is changed: restoring it, as exceptions do, would count instructions anew under -icount.
 *
 * Drivers ring some registers by functions of the kernel (iowrite32be()): then the driver's return address is
 * on the stack, and the first address of a kernel module there is said, too.
 */
#include "mlx5_hca.h"

#define FIRST_OF_MODULES UINT64_C(0xffffffffc0000000) /* Linux on x86-64; all beyond its image */
#define LAST_OF_MODULES UINT64_C(0xfffffffffeffffff)
#define GDB_RSP 7 /* in gdb's order of the registers of x86-64 */
#define STACK_WORDS 16
#define UNWIND_WORDS 8 /* QEMU stores two for x86 */

static bool in_module(uint64_t address) { return address >= FIRST_OF_MODULES && address <= LAST_OF_MODULES; }

static uint64_t caller_of(CPUState* cpu) {
  GByteArray* bytes = g_byte_array_new();
  uint64_t rsp = 0, stack[STACK_WORDS], found = 0;

  if (CPU_GET_CLASS(cpu)->gdb_read_register(cpu, bytes, GDB_RSP) == (int)sizeof rsp) {
    memcpy(&rsp, bytes->data, sizeof rsp);
  }
  g_byte_array_free(bytes, TRUE);
  if (rsp == 0 || cpu_memory_rw_debug(cpu, rsp, stack, sizeof stack, false) != 0) {
    return 0;
  }
  for (unsigned i = 0; i < STACK_WORDS && !found; i++) {
    found = in_module(stack[i]) ? stack[i] : 0;
  }
  return found;
}

bool mlx5_hca_guest_code(uint64_t* pc, uint64_t* caller) {
  CPUState* cpu = current_cpu;
  uint64_t data[UNWIND_WORDS] = {0};

  *pc = *caller = 0;
  if (!cpu || !tcg_enabled() || !cpu->mem_io_pc || !cpu_unwind_state_data(cpu, cpu->mem_io_pc, data)) {
    return false;
  }
  *pc = data[0];
  if (data[0] <= 0xfff) { /* of code that may be anywhere only the place in its page is kept */
    *pc |= CPU_GET_CLASS(cpu)->get_pc(cpu) & ~UINT64_C(0xfff);
  }
  if (*pc >> 63 && !in_module(*pc)) {
    *caller = caller_of(cpu);
  }
  return true;
}
