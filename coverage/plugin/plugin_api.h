/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QEMU's interface for plugins, with what has changed in it: the header has moved (QEMU 11.0), and callbacks
 * got their user's data instead of the plugin's id (version 7, QEMU 11.1).
 */
#ifndef HCASIM_COVERAGE_PLUGIN_PLUGIN_API_H
#define HCASIM_COVERAGE_PLUGIN_PLUGIN_API_H

#include <glib.h>

#if __has_include("plugins/qemu-plugin.h")
#include "plugins/qemu-plugin.h"
#else
#include "qemu/qemu-plugin.h"
#endif

/* Arguments of a callback for code that has been translated, and of one with user's data. */
#if QEMU_PLUGIN_VERSION >= 7
#define TRANSLATED_ARGS(block) struct qemu_plugin_tb *block, void *unused G_GNUC_UNUSED
#define USERDATA_ARGS(data) void* data
#define register_translated(id, call) qemu_plugin_register_vcpu_tb_trans_cb(id, call, NULL)
#else
#define TRANSLATED_ARGS(block) qemu_plugin_id_t unused G_GNUC_UNUSED, struct qemu_plugin_tb *block
#define USERDATA_ARGS(data) qemu_plugin_id_t unused G_GNUC_UNUSED, void *data
#define register_translated(id, call) qemu_plugin_register_vcpu_tb_trans_cb(id, call)
#endif

#endif
