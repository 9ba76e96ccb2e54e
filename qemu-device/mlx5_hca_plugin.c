/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entry point: QEMU's `-plugin libhcasim-qemu.so` loads this object before any -device option is looked at,
 * so registering the device type here makes `-device mlx5-hca` known. Of TCG's plugin interface nothing is
 * used but by mlx5_hca_meet.c.
 */
#include "mlx5_hca.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* libsystemc's main(), which the program's own one hides, wants it. Never called. */
__attribute__((visibility("default"))) int sc_main(int argc, char** argv);

int sc_main(int argc G_GNUC_UNUSED, char** argv G_GNUC_UNUSED) { return 0; }

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc,
                                           char** argv) {
  if (argc > 0) {
    error_report(
        "libhcasim-qemu: unknown argument '%s': the plugin takes none; options of the HCA go to "
        "-device " TYPE_MLX5_HCA ",KEY=VALUE",
        argv[0]);
    return -1;
  }
  if (!info->system_emulation) {
    error_report("libhcasim-qemu: needs qemu-system-x86_64, not user mode emulation");
    return -1;
  }
  if (!mlx5_hca_abi_check()) {
    return -1;
  }
  if (object_class_by_name(TYPE_MLX5_HCA)) {
    error_report("libhcasim-qemu: loaded twice; give -plugin once, it serves any number of HCAs");
    return -1;
  }
  mlx5_hca_blocks_by(id, info);
  mlx5_hca_register_type();
  mlx5_hca_vf_register_type();
  return 0;
}
