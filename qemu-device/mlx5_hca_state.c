/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * savevm, loadvm, migrate. The devices have sections with what is QEMU's of each function (configuration
 * space, MSI-X). What is the model's belongs to all HCAs together, as they share a clock and cables: it is
 * one piece of bytes (hca_sim_save()) in a section of its own, which is loaded behind those of the physical
 * functions. A state that the model cannot give, or does not take, fails the command with the reason.
 *
 * While a state is loaded, QEMU resets functions, and makes virtual ones; of that the model learns nothing
 * (mlx5_hca_loading()).
 */
#include "mlx5_hca.h"

/* vmstate has sizes in int. */
#define MOST_BYTES (1u << 30)

typedef struct HcaMachineState {
  int64_t lost, armed, timer_at;
  uint64_t timer_runs;
  uint32_t len;
  uint8_t* bytes;
} HcaMachineState;
static HcaMachineState machine;
static unsigned links;

static void forget_bytes(void) {
  g_free(machine.bytes);
  machine.bytes = NULL;
  machine.len = 0;
}

/* Behind a load that failed, QEMU's part may be of the one state and the model's of another. */
static bool has_all_of_a_state(void) {
  if (!mlx5_hca_is_loading()) {
    return true;
  }
  error_report(TYPE_MLX5_HCA
               ": the HCAs cannot be saved: the state that was loaded last was refused, or had nothing of "
               "them; load another one, or go on without (cont), which resets them");
  return false;
}

/* ---- the model ---- */

static int machine_pre_save(void* opaque G_GNUC_UNUSED) {
  char why[512] = "";
  size_t len = 0;
  const void* bytes = NULL;

  if (!has_all_of_a_state()) {
    return -EINVAL;
  }
  if (mlx5_hca_drain()) {
    mlx5_hca_call_begin();
    bytes = hca_sim_save(&len, why, sizeof(why));
    mlx5_hca_call_end();
  } else {
    snprintf(why, sizeof(why), "they are being reset");
  }
  if (bytes && len > MOST_BYTES) {
    snprintf(why, sizeof(why), "their state has %zu bytes, and QEMU takes up to %u", len, MOST_BYTES);
    bytes = NULL;
  }
  if (!bytes) {
    error_report(TYPE_MLX5_HCA ": the HCAs cannot be saved: %s", why);
    return -EINVAL;
  }
  forget_bytes();
  machine.bytes = g_memdup2(bytes, len);
  machine.len = len;
  hca_sim_release();
  mlx5_hca_clock_get(&machine.lost, &machine.armed, &machine.timer_at, &machine.timer_runs);
  return 0;
}

static QcompatPostSave machine_post_save(void* opaque G_GNUC_UNUSED) {
  forget_bytes();
  return QCOMPAT_POST_SAVED;
}

static int machine_pre_load(void* opaque G_GNUC_UNUSED) {
  forget_bytes();
  mlx5_hca_loading(true);
  return 0;
}

static int machine_post_load(void* opaque G_GNUC_UNUSED, int version G_GNUC_UNUSED) {
  char why[512] = "";
  int rc;

  mlx5_hca_call_begin();
  rc = hca_sim_load(machine.bytes, machine.len, why, sizeof(why));
  mlx5_hca_call_end();
  mlx5_hca_loaded(!rc);
  forget_bytes();
  if (rc) {
    error_report(TYPE_MLX5_HCA ": the HCAs cannot be loaded: %s", why);
    return -EINVAL;
  }
  mlx5_hca_clock_set(machine.lost, machine.armed, machine.timer_at, machine.timer_runs);
  mlx5_hca_loading(false);
  return 0;
}

static bool len_is_sane(void* opaque G_GNUC_UNUSED, int version G_GNUC_UNUSED) {
  return machine.len > 0 && machine.len <= MOST_BYTES;
}

static const VMStateDescription machine_vmstate = {
    .name = TYPE_MLX5_HCA "-machine",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_load = machine_pre_load,
    .post_load = machine_post_load,
    .pre_save = machine_pre_save,
    .post_save = machine_post_save,
    .fields = (const VMStateField[]){
        VMSTATE_INT64(lost, HcaMachineState), VMSTATE_INT64(armed, HcaMachineState),
        VMSTATE_INT64(timer_at, HcaMachineState), VMSTATE_UINT64(timer_runs, HcaMachineState),
        VMSTATE_UINT32(len, HcaMachineState), VMSTATE_VALIDATE("length of the HCAs' state", len_is_sane),
        VMSTATE_VBUFFER_ALLOC_UINT32(bytes, HcaMachineState, 1, NULL, len), VMSTATE_END_OF_LIST()}};

/* With the first HCA of the machine, which is complete: behind the devices' sections. */
static bool start(HcaLink* link G_GNUC_UNUSED) {
  if (!links++) {
    vmstate_register(NULL, 0, &machine_vmstate, &machine);
  }
  return true;
}

static bool stop(HcaLink* link G_GNUC_UNUSED) {
  if (links && !--links) {
    vmstate_unregister(NULL, &machine_vmstate, &machine);
  }
  return true;
}

const HcaPart mlx5_hca_state = {.calls = {[HCA_CALL_START] = start, [HCA_CALL_STOP] = stop}};

/* ---- a physical function ---- */

static int function_pre_save(void* opaque G_GNUC_UNUSED) {
  /* It may change configuration spaces, which are saved before the model is. */
  if (!has_all_of_a_state()) {
    return -EINVAL;
  }
  return mlx5_hca_drain() ? 0 : -EBUSY;
}

static int function_pre_load(void* opaque G_GNUC_UNUSED) {
  mlx5_hca_loading(true);
  return 0;
}

static int function_post_load(void* opaque, int version G_GNUC_UNUSED) {
  Mlx5Hca* dev = opaque;

  mlx5_hca_pcie_loaded(dev);
  mlx5_hca_ats_loaded(dev->function, PCI_DEVICE(dev));
  return mlx5_hca_sriov_loaded(dev) ? 0 : -EINVAL;
}

/* Before its virtual functions, whose configuration is reset as it enables them (QEMU 10.0), and before the
 * chip set, which must not hear of virtual functions as of devices that are plugged in (7.2). */
const VMStateDescription mlx5_hca_vmstate = {
    .name = TYPE_MLX5_HCA,
    .version_id = 1,
    .minimum_version_id = 1,
    .priority = MIG_PRI_IOMMU,
    .pre_save = function_pre_save,
    .pre_load = function_pre_load,
    .post_load = function_post_load,
    .fields =
        (const VMStateField[]){VMSTATE_PCI_DEVICE(parent_obj, Mlx5Hca), VMSTATE_MSIX(parent_obj, Mlx5Hca),
                               VMSTATE_BOOL(removed, Mlx5Hca), VMSTATE_END_OF_LIST()}};
