/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory map that a vCPU of TCG goes by. Its TLB keeps the number of a section of the map for each page
 * of registers. Until 8.1.0, and again from 10.0.4 until 11.0, QEMU looks that number up in a newer map,
 * although the vCPU's TLB is flushed only after it has come out of its translated code: in between, the
 * number means another section, and an access (to the interrupt controller, say) goes to another device, or
 * ends QEMU with an assertion in iotlb_to_section() or in whoever finds an access beyond his registers. Every
 * change of what a PCI function or a bridge decodes opens that gap for all other vCPUs, and Linux makes many
 * while it looks for devices.
 *
 * So the vCPU keeps the map that the TLB was filled from, and goes on to the newest one on its own thread,
 * together with a flush of the TLB. Nobody waits for anybody; changes of the map by whichever device are
 * covered. From 10.0.4 on its map is an address space's, and it gets one of its own for that. Until 8.1.0 a
 * listener of each vCPU gives it the new map; here that listener does so on the vCPU's thread.
 *
 * All of this runs under QEMU's global lock. A vCPU that comes later (hot-plug) is covered from the first
 * change of the map after that on.
 */
#include "mlx5_hca.h"

#if QCOMPAT_SECTIONS_BY_NUMBER || QCOMPAT_MAP_BEFORE_FLUSH

/* A vCPU's array `cpu_ases` consists of these; no header of QEMU shows it, so check() looks at each. */
typedef struct CpuSpace {
  CPUState* cpu;
  AddressSpace* as;
#if QCOMPAT_MAP_BEFORE_FLUSH
  struct AddressSpaceDispatch* map;
#endif
  MemoryListener listener;
} CpuSpace;

static MemoryListener changes;

/* Whether the vCPU and its address spaces are laid out as this file thinks, and are QEMU's own. */
static bool check(CPUState* cpu) {
  const CpuSpace* spaces;

  /* What stands next to `cpu_ases` and can be asked for by name. */
  if (!cpu->memory || object_property_get_link(OBJECT(cpu), "memory", NULL) != OBJECT(cpu->memory)) {
    return false;
  }
  spaces = (CpuSpace*)cpu->cpu_ases;
  for (int i = 0; i < cpu->num_ases; i++) {
    if (spaces[i].cpu != cpu || !spaces[i].as || spaces[i].as != cpu_get_address_space(cpu, i) ||
        spaces[i].listener.address_space != spaces[i].as || g_strcmp0(spaces[i].listener.name, "tcg")) {
      return false;
    }
  }
  return cpu->num_ases > 0 && spaces[0].as == cpu->as;
}

#if QCOMPAT_MAP_BEFORE_FLUSH

/* Each space's map is kept until its vCPU has another: RCU keeps it for a vCPU that is in translated code,
 * and not for one that is about to go there. */
typedef struct Vcpu {
  CPUState* cpu;
  Notifier ends; /* of its thread */
  QLIST_ENTRY(Vcpu) next;
  unsigned count;
  FlatView* held[]; /* by space */
} Vcpu;

static QLIST_HEAD(, Vcpu) vcpus = QLIST_HEAD_INITIALIZER(vcpus);

/* QEMU's own: gives a vCPU the newest map, and asks for a flush of its TLB. */
static void (*give_map)(MemoryListener* listener);

static void give_and_hold(MemoryListener* listener) {
  CpuSpace* space = container_of(listener, CpuSpace, listener);
  Vcpu* vcpu;

  QLIST_FOREACH(vcpu, &vcpus, next) {
    if (vcpu->cpu == space->cpu) {
      FlatView** held = &vcpu->held[space - (CpuSpace*)vcpu->cpu->cpu_ases];
      FlatView* before = *held;

      *held = address_space_get_flatview(space->as);
      give_map(listener);
      flatview_unref(before);
      return;
    }
  }
  give_map(listener);
}

/* On the vCPU's thread, outside of the translated code. */
static void follow(CPUState* cpu G_GNUC_UNUSED, run_on_cpu_data data) { give_and_hold(data.host_ptr); }

static void on_commit(MemoryListener* listener) {
  CPUState* cpu = container_of(listener, CpuSpace, listener)->cpu;

  if (cpu->created && !qemu_cpu_is_self(cpu)) {
    async_run_on_cpu(cpu, follow, RUN_ON_CPU_HOST_PTR(listener));
  } else {
    give_and_hold(listener);
  }
}

/* An unplugged vCPU's listeners stay with QEMU, which would flush the TLB of what is freed. */
static void on_end(Notifier* notifier, void* data G_GNUC_UNUSED) {
  Vcpu* vcpu = container_of(notifier, Vcpu, ends);
  CpuSpace* spaces = (CpuSpace*)vcpu->cpu->cpu_ases;

  bql_lock();
  for (unsigned i = 0; i < vcpu->count; i++) {
    memory_listener_unregister(&spaces[i].listener);
    flatview_unref(vcpu->held[i]);
  }
  QLIST_REMOVE(vcpu, next);
  bql_unlock();
  g_free(vcpu);
}

static void attend(CPUState* cpu G_GNUC_UNUSED, run_on_cpu_data data) {
  Vcpu* vcpu = data.host_ptr;

  vcpu->ends.notify = on_end;
  qemu_thread_atexit_add(&vcpu->ends);
}

/* A vCPU that is not complete yet has no map that anybody goes by. One that was there before the HCA has been
 * given the newest map by now, as its listener comes before this one. */
static void on_change(MemoryListener* listener G_GNUC_UNUSED) {
  CPUState* cpu;

  CPU_FOREACH(cpu) {
    CpuSpace* spaces = (CpuSpace*)cpu->cpu_ases;
    Vcpu* vcpu;

    if (!cpu->created || cpu->unplug || !check(cpu) || spaces[0].listener.commit == on_commit) {
      continue;
    }
    vcpu = g_malloc0(sizeof(*vcpu) + cpu->num_ases * sizeof(vcpu->held[0]));
    vcpu->cpu = cpu;
    vcpu->count = cpu->num_ases;
    for (unsigned i = 0; i < vcpu->count; i++) {
      vcpu->held[i] = address_space_get_flatview(spaces[i].as);
      give_map = spaces[i].listener.commit;
      spaces[i].listener.commit = on_commit;
    }
    QLIST_INSERT_HEAD(&vcpus, vcpu, next);
    async_run_on_cpu(cpu, attend, RUN_ON_CPU_HOST_PTR(vcpu));
  }
}

#else

typedef struct VcpuSpace {
  CpuSpace* place;
  AddressSpace* live; /* QEMU's, which has the newest map */
  AddressSpace held;  /* in place of it; in none of QEMU's lists */
} VcpuSpace;

typedef struct Vcpu {
  CPUState* cpu;
  bool asked;    /* follow() is queued */
  Notifier ends; /* of its thread */
  QLIST_ENTRY(Vcpu) next;
  unsigned count;
  VcpuSpace spaces[];
} Vcpu;

static QLIST_HEAD(, Vcpu) vcpus = QLIST_HEAD_INITIALIZER(vcpus);

/* An unplugged vCPU's address spaces are destroyed when its thread has ended: QEMU wants to find its own. */
static void on_end(Notifier* notifier, void* data G_GNUC_UNUSED) {
  Vcpu* vcpu = container_of(notifier, Vcpu, ends);

  bql_lock();
  for (unsigned i = 0; i < vcpu->count; i++) {
    VcpuSpace* space = &vcpu->spaces[i];

    qatomic_set(&space->place->as, space->live);
    flatview_unref(space->held.current_map);
  }
  QLIST_REMOVE(vcpu, next);
  bql_unlock();
  g_free(vcpu);
}

/* On the vCPU's thread, outside of the translated code. */
static void follow(CPUState* cpu, run_on_cpu_data data) {
  Vcpu* vcpu = data.host_ptr;

  vcpu->asked = false;
  for (unsigned i = 0; i < vcpu->count; i++) {
    VcpuSpace* space = &vcpu->spaces[i];
    FlatView* before = space->held.current_map;

    qatomic_rcu_set(&space->held.current_map, address_space_get_flatview(space->live));
    qatomic_set(&space->place->as, &space->held);
    if (before) {
      flatview_unref(before);
    }
  }
  tlb_flush(cpu);
  if (!vcpu->ends.notify) {
    vcpu->ends.notify = on_end;
    qemu_thread_atexit_add(&vcpu->ends);
  }
}

/* NULL: a vCPU that is not complete yet, or not any more. */
static Vcpu* vcpu_of(CPUState* cpu) {
  CpuSpace* spaces = (CpuSpace*)cpu->cpu_ases;
  Vcpu* vcpu;

  QLIST_FOREACH(vcpu, &vcpus, next) {
    if (vcpu->cpu == cpu) {
      return vcpu;
    }
  }
  if (!cpu->created || cpu->unplug || !check(cpu)) {
    return NULL;
  }
  vcpu = g_malloc0(sizeof(*vcpu) + cpu->num_ases * sizeof(VcpuSpace));
  vcpu->cpu = cpu;
  vcpu->count = cpu->num_ases;
  for (unsigned i = 0; i < vcpu->count; i++) {
    VcpuSpace* space = &vcpu->spaces[i];

    space->place = &spaces[i];
    space->live = spaces[i].as;
    space->held = (AddressSpace){.name = space->live->name, .root = space->live->root};
    QTAILQ_INIT(&space->held.listeners);
  }
  QLIST_INSERT_HEAD(&vcpus, vcpu, next);
  return vcpu;
}

static void on_change(MemoryListener* listener G_GNUC_UNUSED) {
  CPUState* cpu;

  CPU_FOREACH(cpu) {
    Vcpu* vcpu = vcpu_of(cpu);

    if (vcpu && !vcpu->asked) {
      vcpu->asked = true;
      async_run_on_cpu(cpu, follow, RUN_ON_CPU_HOST_PTR(vcpu));
    }
  }
}

#endif

/* Also where one thread runs all vCPUs (lockstep): QEMU's main loop changes the map beside it. */
static bool start(HcaLink* link G_GNUC_UNUSED) {
  if (changes.commit || !tcg_enabled()) {
    return false;
  }
  if (!check(first_cpu)) {
    warn_report_once(TYPE_MLX5_HCA
                     ": the processors of this QEMU are not as expected, and a change of its memory map may "
                     "end it with an assertion in iotlb_to_section()");
    return false;
  }
  changes = (MemoryListener){.name = TYPE_MLX5_HCA "-vcpu", .commit = on_change};
  memory_listener_register(&changes, &address_space_memory); /* which calls it; so do all changes anywhere */
  return true;
}

const HcaPart mlx5_hca_vcpu = {.calls = {[HCA_CALL_START] = start}};

#else

const HcaPart mlx5_hca_vcpu = {0};

#endif
