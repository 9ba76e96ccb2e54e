/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What can be read and set while the machine runs, with qom-get and qom-set (QMP and HMP) on
 * /machine/peripheral/<id>: ctr-<name>   each counter of the model        stats      all of them and the
 * object counts, as JSON time-mode    lockstep or eager                sim-time   SystemC's clock in ns
 *   activations  SystemC process activations      inject     write: a fault to inject; read: the list of
 * faults       trace-on, trace-filter, trace-file, trace-ring, trace-dump, trace-flush, capture-file: see
 * hca_set_trace()
 */
#include "mlx5_hca.h"

static hca_t* hca_of(Object* obj, Error** errp) {
  Mlx5Hca* dev = MLX5_HCA(obj);

  if (!dev->link) {
    error_setg(errp, TYPE_MLX5_HCA ": the device is gone");
    return NULL;
  }
  return dev->link->hca;
}

static void get_counter(Object* obj, Visitor* v, const char* name, void* opaque, Error** errp) {
  hca_t* hca = hca_of(obj, errp);

  if (hca) {
    uint64_t value = hca_counter_value(hca, (unsigned)GPOINTER_TO_UINT(opaque));

    visit_type_uint64(v, name, &value, errp);
  }
}

static void get_shim_counter(Object* obj, Visitor* v, const char* name, void* opaque, Error** errp) {
  if (hca_of(obj, errp)) {
    uint64_t value = *(uint64_t*)((char*)MLX5_HCA(obj)->link + GPOINTER_TO_UINT(opaque));

    visit_type_uint64(v, name, &value, errp);
  }
}

static void get_state_digest(Object* obj, Visitor* v, const char* name, void* opaque G_GNUC_UNUSED,
                             Error** errp) {
  hca_t* hca = hca_of(obj, errp);

  if (hca) {
    uint64_t value = hca_state_digest(hca);

    visit_type_uint64(v, name, &value, errp);
  }
}

static char* get_stats(Object* obj, Error** errp) {
  hca_t* hca = hca_of(obj, errp);

  return hca ? g_strdup(hca_stats_json(hca)) : NULL;
}

static char* get_inject(Object* obj G_GNUC_UNUSED, Error** errp G_GNUC_UNUSED) {
  return g_strdup(hca_fault_help());
}

static void set_inject(Object* obj, const char* value, Error** errp) {
  hca_t* hca = hca_of(obj, errp);
  char why[1024] = "";

  if (!hca) {
    return;
  }
  if (hca_inject(hca, value, why, sizeof(why))) {
    error_setg(errp, TYPE_MLX5_HCA ": fault '%s' is not taken: %s", value, why);
    return;
  }
  mlx5_hca_settle();
}

static void set_trace(Object* obj, const char* key, const char* value, Error** errp) {
  hca_t* hca = hca_of(obj, errp);
  char why[512] = "";

  if (hca && hca_set_trace(hca, key, value, why, sizeof(why))) {
    error_setg(errp, TYPE_MLX5_HCA ": %s", why);
  }
}

static char* get_trace(Object* obj, const char* key, Error** errp) {
  hca_t* hca = hca_of(obj, errp);

  return hca ? g_strdup(hca_get_trace(hca, key)) : NULL;
}

static bool get_trace_on(Object* obj, Error** errp) {
  g_autofree char* on = get_trace(obj, "on", errp);

  return on && !strcmp(on, "on");
}

static void set_trace_on(Object* obj, bool on, Error** errp) {
  set_trace(obj, "on", on ? "on" : "off", errp);
}

#define TRACE_PROPERTY(key)                                                                      \
  static char* get_trace_##key(Object* obj, Error** errp) { return get_trace(obj, #key, errp); } \
  static void set_trace_##key(Object* obj, const char* value, Error** errp) {                    \
    set_trace(obj, #key, value, errp);                                                           \
  }
TRACE_PROPERTY(filter)
TRACE_PROPERTY(file)
TRACE_PROPERTY(ring)
TRACE_PROPERTY(dump)
TRACE_PROPERTY(flush)
TRACE_PROPERTY(capture)

static void add_trace_properties(Object* obj) {
  static const struct {
    const char* name;
    char* (*get)(Object*, Error**);
    void (*set)(Object*, const char*, Error**);
    const char* text;
  } list[] = {
      {"trace-filter", get_trace_filter, set_trace_filter,
       "what is recorded: qp=0x4a+0x50-0x5f,point=A+B,kind=error+command,detail,path; all"},
      {"trace-file", get_trace_file, set_trace_file, "write: a new trace file from now on; empty: none"},
      {"trace-ring", get_trace_ring, set_trace_ring, "MiB of memory that the next file's records stay in"},
      {"trace-dump", get_trace_dump, set_trace_dump,
       "write: a path that the ring is written to; empty: its own"},
      {"trace-flush", get_trace_flush, set_trace_flush, "write anything: the file can be read so far"},
      {"capture-file", get_trace_capture, set_trace_capture,
       "write: a pcapng file of what leaves and enters the port from now on; empty: none"},
  };

  object_property_add_bool(obj, "trace-on", get_trace_on, set_trace_on);
  object_property_set_description(obj, "trace-on", "recording goes on, or rests");
  for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
    object_property_add_str(obj, list[i].name, list[i].get, list[i].set);
    object_property_set_description(obj, list[i].name, list[i].text);
  }
}

static char* get_time_mode(Object* obj, Error** errp) {
  return hca_of(obj, errp) ? g_strdup(MLX5_HCA(obj)->link->ahead ? "eager" : "lockstep") : NULL;
}

static void get_sim_time(Object* obj G_GNUC_UNUSED, Visitor* v, const char* name, void* opaque G_GNUC_UNUSED,
                         Error** errp) {
  int64_t value = hca_sim_time();

  visit_type_int64(v, name, &value, errp);
}

static void get_timer_runs(Object* obj G_GNUC_UNUSED, Visitor* v, const char* name,
                           void* opaque G_GNUC_UNUSED, Error** errp) {
  uint64_t value = mlx5_hca_timer_runs();

  visit_type_uint64(v, name, &value, errp);
}

static void get_wire_looks(Object* obj G_GNUC_UNUSED, Visitor* v, const char* name,
                           void* opaque G_GNUC_UNUSED, Error** errp) {
  uint64_t value = mlx5_hca_wire_looks();

  visit_type_uint64(v, name, &value, errp);
}

static void get_activations(Object* obj G_GNUC_UNUSED, Visitor* v, const char* name,
                            void* opaque G_GNUC_UNUSED, Error** errp) {
  uint64_t value = hca_sim_activations();

  visit_type_uint64(v, name, &value, errp);
}

static void add(Object* obj, const char* name, const char* type, ObjectPropertyAccessor* get, void* opaque,
                const char* description) {
  object_property_add(obj, name, type, get, NULL, NULL, opaque);
  object_property_set_description(obj, name, description);
}

void mlx5_hca_qom_init(Mlx5Hca* dev) {
  Object* obj = OBJECT(dev);
  hca_t* hca = dev->link->hca;
  unsigned count = hca_counter_count(hca);

  for (unsigned i = 0; i < count; i++) {
    g_autofree char* name = g_strdup_printf("ctr-%s", hca_counter_name(hca, i));

    if (!object_property_find(obj, name)) {
      add(obj, name, "uint64", get_counter, GUINT_TO_POINTER(i), "counter of the model");
    }
  }
  add(obj, "ctr-shim-refused-dma", "uint64", get_shim_counter,
      GUINT_TO_POINTER((unsigned)offsetof(HcaLink, refused_dma)),
      "DMA accesses and interrupts refused: bus master off, low power, IOMMU fault, nothing there");
  add(obj, "ctr-shim-refused-mmio", "uint64", get_shim_counter,
      GUINT_TO_POINTER((unsigned)offsetof(HcaLink, refused_mmio)),
      "accesses to BAR0 refused because this HCA's own DMA made them");
  add(obj, "ctr-shim-timer-runs", "uint64", get_timer_runs, NULL,
      "times the timer, not an access, ran the model, all HCAs");
  add(obj, "ctr-shim-wire-looks", "uint64", get_wire_looks, NULL,
      "times that what came over a wire was found before anybody was woken for it, all HCAs");
  add(obj, "sim-time", "int64", get_sim_time, NULL, "SystemC's clock, ns of the virtual clock");
  add(obj, "activations", "uint64", get_activations, NULL, "SystemC process activations so far, all HCAs");
  add(obj, "ctr-state-digest", "uint64", get_state_digest, NULL,
      "a number made of all state of the model: equal for equal state");
  object_property_add_str(obj, "stats", get_stats, NULL);
  object_property_set_description(obj, "stats", "counters and object counts as a JSON object");
  object_property_add_str(obj, "time-mode", get_time_mode, NULL);
  object_property_set_description(obj, "time-mode", "coupling in use: lockstep or eager");
  add_trace_properties(obj);
  object_property_add_str(obj, "inject", get_inject, set_inject);
  object_property_set_description(obj, "inject", "write: fault to inject; read: the faults there are");
}
