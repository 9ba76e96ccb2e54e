// SPDX-License-Identifier: BSD-3-Clause
// libsystemc wants an sc_main from whoever loads it. Ours is never called: sc_start() is driven from outside.
// Compiled into executables (model/CMakeLists.txt); the QEMU plugin exports its own.
extern "C" __attribute__((visibility("default"))) int sc_main(int, char**) { return 0; }
