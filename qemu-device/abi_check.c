/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shim uses QEMU's internal structures, whose layout no QEMU promises to keep. So it loads only into the
 * QEMU it was made for, found out in three ways, before a single structure is shared:
 *   1. the version the running program reports, against that of the headers;
 *   2. the GNU build-id of the running program, against that of the program seen when hcasim was configured;
 *   3. canaries: offsets and sizes that the running program itself tells, against those the compiler used
 * here. The third one also catches a wrong config-host.h (CONFIG_INT128 moves everything behind a
 * MemoryRegion).
 */
#include "mlx5_hca.h"

#include <link.h>
#include <malloc.h>

#include "qapi/qapi-commands-control.h"
#include "qapi/qapi-types-control.h"

#ifndef NT_GNU_BUILD_ID /* QEMU's own elf.h hides the system's, and lacks it */
#define NT_GNU_BUILD_ID 3
#endif

#ifndef HCASIM_QEMU_BUILD_ID
#error "HCASIM_QEMU_BUILD_ID comes from CMake: build-id of the QEMU program as hexadecimal digits, or \"\""
#endif

#define ADVICE                                                                                             \
  "libhcasim-qemu was built for another QEMU than the one running; build it again for this one: ./hcasim " \
  "build"

static bool G_GNUC_PRINTF(1, 2) refuse(const char* format, ...) {
  va_list ap;

  va_start(ap, format);
  error_vreport(format, ap);
  va_end(ap);
  error_printf(ADVICE "\n(for a QEMU of your own: cmake -DHCASIM_QEMU=PROGRAM -DHCASIM_QEMU_SRC=FOLDER)\n");
  return false;
}

/* Writes the build-id found among the notes of the main program, which comes first, as hexadecimal digits. */
static int find_build_id(struct dl_phdr_info* info, size_t size G_GNUC_UNUSED, void* opaque) {
  GString* out = opaque;

  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)* ph = &info->dlpi_phdr[i];
    const char* p = (const char*)(info->dlpi_addr + ph->p_vaddr);
    const char* end = p + ph->p_memsz;

    if (ph->p_type != PT_NOTE) {
      continue;
    }
    while (p + sizeof(ElfW(Nhdr)) <= end) {
      const ElfW(Nhdr)* note = (const ElfW(Nhdr)*)p;
      const char* name = p + sizeof(*note);
      const char* desc = name + ROUND_UP(note->n_namesz, 4);

      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(name, "GNU", 4)) {
        for (unsigned b = 0; b < note->n_descsz; b++) {
          g_string_append_printf(out, "%02x", (uint8_t)desc[b]);
        }
        return 1;
      }
      p = desc + ROUND_UP(note->n_descsz, 4);
    }
  }
  return 1; /* only the main program */
}

static bool check_version(void) {
  g_autoptr(VersionInfo) v = qmp_query_version(NULL);

  if (!v || !v->qemu) {
    return refuse("libhcasim-qemu: this QEMU does not tell its version");
  }
  if (v->qemu->major != QEMU_VERSION_MAJOR || v->qemu->minor != QEMU_VERSION_MINOR ||
      v->qemu->micro != QEMU_VERSION_MICRO) {
    return refuse("libhcasim-qemu: made with the headers of QEMU " QEMU_VERSION ", loaded into QEMU %" PRId64
                  ".%" PRId64 ".%" PRId64,
                  v->qemu->major, v->qemu->minor, v->qemu->micro);
  }
  return true;
}

static bool check_build_id(void) {
  g_autoptr(GString) id = g_string_new(NULL);

  if (!*HCASIM_QEMU_BUILD_ID) {
    return true; /* a program without build-id: version and canaries have to do */
  }
  dl_iterate_phdr(find_build_id, id);
  if (strcmp(id->str, HCASIM_QEMU_BUILD_ID)) {
    return refuse("libhcasim-qemu: made for the program with build-id " HCASIM_QEMU_BUILD_ID
                  ", but this QEMU has %s",
                  *id->str ? id->str : "none");
  }
  return true;
}

static bool check_property_offset(ObjectClass* klass, const char* name, size_t expected) {
  ObjectProperty* p = object_class_property_find(klass, name);
  const Property* prop = p ? p->opaque : NULL;

  if (!prop || (size_t)prop->offset != expected) {
    return refuse(
        "libhcasim-qemu: PCIDevice differs from its headers: property '%s' is at offset %td, "
        "expected %zu",
        name, prop ? prop->offset : (ptrdiff_t)-1, expected);
  }
  return true;
}

static bool check_canaries(void) {
  ObjectClass* pci = object_class_by_name(TYPE_PCI_DEVICE);
  ObjectClass* port = object_class_by_name("pcie-root-port");
  const VMStateField* field;
  const char* bus_type;
  Object* mr;
  size_t mr_size;

  if (!pci) {
    return refuse("libhcasim-qemu: this QEMU has no PCI devices");
  }
  bus_type = DEVICE_CLASS(pci)->bus_type;
  if (!bus_type || strcmp(bus_type, TYPE_PCI_BUS)) {
    return refuse("libhcasim-qemu: DeviceClass differs from its headers");
  }
  if (!check_property_offset(pci, "romfile", offsetof(PCIDevice, romfile)) ||
      !check_property_offset(pci, "addr", offsetof(PCIDevice, devfn)) ||
      !check_property_offset(pci, "acpi-index", offsetof(PCIDevice, acpi_index))) {
    return false;
  }
  for (field = vmstate_pci_device.fields; field->name && strcmp(field->name, "config"); field++) {
  }
  if (!field->name || field->offset != offsetof(PCIDevice, config)) {
    return refuse("libhcasim-qemu: PCIDevice differs from its headers: member 'config'");
  }
  /* A class with known contents: vendor, device and class of QEMU's own root port. */
  if (port) {
    PCIDeviceClass* k = PCI_DEVICE_CLASS(port);

    if (k->vendor_id != PCI_VENDOR_ID_REDHAT || k->device_id != PCI_DEVICE_ID_REDHAT_PCIE_RP) {
      return refuse("libhcasim-qemu: PCIDeviceClass differs from its headers");
    }
  }
  mr = object_new(TYPE_MEMORY_REGION);
  mr_size = malloc_usable_size(mr);
  object_unref(mr);
  /* The allocator rounds up to 16 (a checking allocator not at all). */
  if (mr_size < sizeof(MemoryRegion) || mr_size >= sizeof(MemoryRegion) + 32) {
    return refuse("libhcasim-qemu: MemoryRegion differs from its headers: %zu bytes here, allocated %zu",
                  sizeof(MemoryRegion), mr_size);
  }
  return true;
}

bool mlx5_hca_abi_check(void) { return check_version() && check_build_id() && check_canaries(); }
