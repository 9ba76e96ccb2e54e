/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PCI function: identity, BARs, capabilities, configuration space, reset and properties. What the
 * registers do is the model's business, behind hca_api.h. Sources: PCI Express Base Specification
 * (capabilities), and the device and vendor numbers of pci.ids.
 */
#include "mlx5_hca.h"

#define PCI_VENDOR_ID_MLX 0x15b3
#define PCI_DEVICE_ID_MLX_CX5_EX 0x1019 /* of a card that names no generation */
#define PCI_SUBSYSTEM_ID_MLX 0x0008
#define PCI_CLASS_INFINIBAND 0x0207

/* Extended capabilities, from the start of the extended space (0x100). */
#define AER_OFFSET 0x100
#define DSN_OFFSET (AER_OFFSET + PCI_ERR_SIZEOF)

/* Run-ahead of eager coupling unless told otherwise, and its bound: a longer one only blurs the guest's time.
 */
#define AHEAD_DEFAULT_NS 10000
#define AHEAD_MAX_NS 1000000000

/* ---- options: properties -> the key=value list of hca_create() ---- */

/* The list's separator cannot be quoted, so no value may hold it. */
static bool add_option(GString* out, const char* key, const char* value, Error** errp) {
  if (strchr(value, ',')) {
    error_setg(errp, TYPE_MLX5_HCA ": %s=%s: a comma is not allowed in a value", key, value);
    return false;
  }
  g_string_append_printf(out, "%s%s=%s", out->len ? "," : "", key, value);
  return true;
}

static bool add_switch(GString* out, const char* key, OnOffAuto value, Error** errp) {
  return value == ON_OFF_AUTO_AUTO || add_option(out, key, value == ON_OFF_AUTO_ON ? "on" : "off", errp);
}

/* options=a=1;b=2 : ';' and ':' part the pairs, because QEMU parts its own options by commas. */
static bool add_free_options(GString* out, const char* list, Error** errp) {
  g_auto(GStrv) pairs = g_strsplit_set(list, strchr(list, ';') ? ";" : ":", -1);

  for (char** p = pairs; *p; p++) {
    char* eq = strchr(*p, '=');

    if (!**p) {
      continue;
    }
    if (!eq || eq == *p) {
      error_setg(errp, TYPE_MLX5_HCA ": options: '%s' is not KEY=VALUE; keys and defaults are:\n%s", *p,
                 hca_option_help());
      return false;
    }
    *eq = '\0';
    if (!add_option(out, *p, eq + 1, errp)) {
      return false;
    }
  }
  return true;
}

static bool is_unset(const MACAddr* mac) {
  static const MACAddr unset;

  return !memcmp(mac, &unset, sizeof(unset));
}

/* Whether the time of a wire's two ends is to be one. Only a clock that counts instructions stands still
 * while this process waits. */
static bool resolve_coupled(Mlx5Hca* dev, int64_t ahead, bool* coupled, Error** errp) {
  bool can = dev->prop_wire && !mlx5_hca_has_netdev(dev) && !ahead && icount_enabled();

  *coupled = can && dev->prop_coupled != ON_OFF_AUTO_OFF;
  if (dev->prop_coupled == ON_OFF_AUTO_ON && !can) {
    error_setg(errp, TYPE_MLX5_HCA ": coupled=on needs wire=, time=lockstep and -icount");
    return false;
  }
  return true;
}

static bool build_options(Mlx5Hca* dev, bool coupled, GString* out, Error** errp) {
  static unsigned instances;
  const char* id = DEVICE(dev)->id;
  g_autofree char* name = id ? g_strdup(id) : g_strdup_printf("hca%u", instances);
  g_autofree char* mac_text = qemu_mac_strdup_printf(dev->nic_conf.macaddr.a);
  const char* mac = is_unset(&dev->nic_conf.macaddr) ? NULL : mac_text; /* NULL: made by the model */
  const struct {
    const char *key, *value;
  } strings[] = {
      {"name", name},
      {"link", dev->prop_link},
      {"profile", dev->prop_profile},
      {"trace", dev->prop_trace},
      {"rules", dev->prop_rules},
      {"trace_ring", dev->prop_trace_ring},
      {"capture", dev->prop_capture},
      {"record", dev->prop_record},
      {"faults", dev->prop_faults},
      {"node_guid", dev->prop_node_guid},
      {"wire", mlx5_hca_has_netdev(dev) ? "host" : dev->prop_wire},
      {"cable", dev->prop_cable},
      {"mac", mac},
  };

  if (mlx5_hca_has_netdev(dev) && dev->prop_wire) {
    error_setg(errp, TYPE_MLX5_HCA ": netdev= and wire=: the port has one cable; take one of the two");
    return false;
  }
  instances++;
  for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
    if (strings[i].value && !add_option(out, strings[i].key, strings[i].value, errp)) {
      return false;
    }
  }
  if (dev->prop_device_id) {
    g_autofree char* id_text = g_strdup_printf("0x%x", dev->prop_device_id);

    if (!add_option(out, "device_id", id_text, errp)) {
      return false;
    }
  }
  return add_switch(out, "bf", dev->prop_bf, errp) && add_switch(out, "sm", dev->prop_sm, errp) &&
         (!coupled || add_option(out, "coupled", "on", errp)) &&
         (!dev->prop_options || add_free_options(out, dev->prop_options, errp));
}

/* Run-ahead in ns; 0 = lockstep. Under icount (and qtest's stepped clock) only lockstep gives exact guest
 * times. */
static bool resolve_time(Mlx5Hca* dev, int64_t* ahead, Error** errp) {
  const char* mode = dev->prop_time ? dev->prop_time : "auto";

  if (dev->prop_ahead > AHEAD_MAX_NS) {
    error_setg(errp, TYPE_MLX5_HCA ": ahead=%u: allowed are 0 to %u ns", dev->prop_ahead, AHEAD_MAX_NS);
    return false;
  }
  if (!strcmp(mode, "lockstep")) {
    *ahead = 0;
  } else if (!strcmp(mode, "eager")) {
    *ahead = dev->prop_ahead;
  } else if (!strcmp(mode, "auto")) {
    *ahead = icount_enabled() || qtest_enabled() ? 0 : dev->prop_ahead;
  } else {
    error_setg(errp, TYPE_MLX5_HCA ": time=%s: allowed are auto, eager, lockstep", mode);
    return false;
  }
  return true;
}

/* ---- capabilities ---- */

/* Device control as after a reset: relaxed ordering and no-snoop allowed, 128 byte payloads, 512 byte
 * requests. */
static void reset_device_control(PCIDevice* pci) {
  pci_set_word(pci->config + pci->exp.exp_cap + PCI_EXP_DEVCTL,
               PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ_512B);
}

static void set_link(PCIDevice* pci, hca_pcie_link link) {
  uint8_t* exp = pci->config + pci->exp.exp_cap;
  uint32_t speed = MIN(MAX(link.generation, 1), 5); /* the encoding of LnkCap is the generation */
  uint32_t width = link.lanes << 4;

  pci_long_test_and_clear_mask(exp + PCI_EXP_LNKCAP, PCI_EXP_LNKCAP_SLS | PCI_EXP_LNKCAP_MLW);
  pci_long_test_and_set_mask(exp + PCI_EXP_LNKCAP, speed | (width & PCI_EXP_LNKCAP_MLW));
  pci_word_test_and_clear_mask(exp + PCI_EXP_LNKSTA, PCI_EXP_LNKSTA_CLS | PCI_EXP_LNKSTA_NLW);
  pci_word_test_and_set_mask(exp + PCI_EXP_LNKSTA, speed | (width & PCI_EXP_LNKSTA_NLW));
  /* Supported link speeds vector: bit 1 = 2.5 GT/s, all up to the highest. */
  pci_set_long(exp + PCI_EXP_LNKCAP2, ((1u << speed) - 1) << 1);
  pci_set_word(exp + PCI_EXP_LNKCTL2, speed);
}

static bool parse_guid(const char* text, uint64_t* guid) {
  g_autoptr(GString) digits = g_string_new(NULL);

  if (g_str_has_prefix(text, "0x")) {
    text += 2;
  }
  for (; *text; text++) {
    if (g_ascii_isxdigit(*text)) {
      g_string_append_c(digits, *text);
    } else if (*text != ':') {
      return false;
    }
  }
  *guid = g_ascii_strtoull(digits->str, NULL, 16);
  return digits->len > 0 && digits->len <= 16;
}

static bool add_capabilities(Mlx5Hca* dev, Error** errp) {
  PCIDevice* pci = PCI_DEVICE(dev);
  int pm = qcompat_pm_init(pci, errp);
  uint8_t* exp;

  if (pm < 0) {
    return false;
  }
  dev->pm_cap = pm;
  pci_set_word(pci->config + pm + PCI_PM_PMC, 3); /* version 1.2, no PME */
  pci_set_word(pci->config + pm + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
  pci_set_word(pci->wmask + pm + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);

  if (mlx5_hca_vsc_init(dev, errp) < 0) {
    return false;
  }
  if (pcie_endpoint_cap_init(pci, 0) < 0) {
    error_setg(errp, TYPE_MLX5_HCA ": no room for the PCI Express capability");
    return false;
  }
  pcie_cap_deverr_init(pci);
  pcie_cap_flr_init(pci);
  exp = pci->config + pci->exp.exp_cap;
  pci_long_test_and_set_mask(exp + PCI_EXP_DEVCAP, PCI_EXP_DEVCAP_EXT_TAG | 2 /* payloads up to 512 bytes */);
  pci_word_test_and_set_mask(pci->wmask + pci->exp.exp_cap + PCI_EXP_DEVCTL,
                             PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_PAYLOAD | PCI_EXP_DEVCTL_EXT_TAG |
                                 PCI_EXP_DEVCTL_NOSNOOP_EN | PCI_EXP_DEVCTL_READRQ);
  reset_device_control(pci);
  set_link(pci, hca_get_pcie_link(dev->link->hca));
  if (mlx5_hca_vpd_init(dev, errp) < 0) {
    return false;
  }

  /* A conventional bus gives no access to the extended space. */
  if (pci_bus_is_express(pci_get_bus(pci))) {
    uint64_t guid;

    if (pcie_aer_init(pci, PCI_ERR_VER, AER_OFFSET, PCI_ERR_SIZEOF, errp) < 0) {
      return false;
    }
    if (dev->prop_node_guid && parse_guid(dev->prop_node_guid, &guid)) {
      pcie_dev_ser_num_init(pci, DSN_OFFSET, guid);
    }
  }
  return true;
}

static void remove_capabilities(PCIDevice* pci) {
  if (msix_present(pci)) {
    mlx5_hca_pcie_exit(MLX5_HCA(pci));
  }
  if (pci->exp.aer_cap) {
    pcie_aer_exit(pci);
  }
  if (pci->exp.exp_cap) {
    pcie_cap_exit(pci);
  }
  msix_uninit_exclusive_bar(pci); /* nothing to do if there is none */
}

/* ---- life cycle ---- */

static void mlx5_hca_realize(PCIDevice* pci, Error** errp) {
  Mlx5Hca* dev = MLX5_HCA(pci);
  g_autoptr(GString) options = g_string_new(NULL);
  char why[2048] = "";
  hca_pci_identity identity;
  bool coupled;
  int64_t ahead;

  if (DEVICE(dev)->hotplugged || hca_sim_started()) {
    error_setg(errp, TYPE_MLX5_HCA
               ": cannot be added to a running machine: SystemC takes no module after elaboration");
    error_append_hint(errp, "Give every HCA as -device " TYPE_MLX5_HCA " on QEMU's command line.\n");
    return;
  }
  if (!resolve_time(dev, &ahead, errp) || !resolve_coupled(dev, ahead, &coupled, errp) ||
      !build_options(dev, coupled, options, errp)) {
    return;
  }
  dev->link = mlx5_hca_link_new(dev);
  dev->link->ahead = ahead;
  dev->link->hca = hca_create(options->str, &mlx5_hca_host_ops, dev->link, why, sizeof(why));
  if (!dev->link->hca) {
    error_setg(errp, TYPE_MLX5_HCA ": %s", *why ? why : "the model could not be made");
    goto fail;
  }

  identity = hca_get_pci_identity(dev->link->hca);
  pci_config_set_device_id(pci->config, identity.device_id);
  pci_config_set_revision(pci->config, identity.revision);
  pci_set_word(pci->config + PCI_SUBSYSTEM_ID, identity.subsystem_id);
  if (hca_is_ethernet(dev->link->hca)) {
    pci_config_set_class(pci->config, PCI_CLASS_NETWORK_ETHERNET);
  }
  memory_region_init_io(&dev->bar0, OBJECT(dev), &mlx5_hca_bar0_ops, dev, TYPE_MLX5_HCA "-bar0",
                        HCA_BAR0_SIZE);
  pci_register_bar(
      pci, MLX5_HCA_BAR_REGISTERS,
      PCI_BASE_ADDRESS_SPACE_MEMORY | PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
      &dev->bar0);
  if (msix_init_exclusive_bar(pci, HCA_MSIX_VECTORS, MLX5_HCA_BAR_MSIX, errp)) {
    goto fail;
  }
  for (unsigned v = 0; v < HCA_MSIX_VECTORS; v++) {
    msix_vector_use(pci, v);
  }
  mlx5_hca_pcie_init(dev);
  if (!add_capabilities(dev, errp)) {
    remove_capabilities(pci);
    goto fail;
  }
  mlx5_hca_net_init(dev);
  mlx5_hca_qom_init(dev);
  mlx5_hca_link_started();
  return;

fail:
  mlx5_hca_link_drop(dev->link);
  dev->link = NULL;
}

static void mlx5_hca_exit(PCIDevice* pci) {
  Mlx5Hca* dev = MLX5_HCA(pci);
  HcaLink* link = dev->link;

  if (!link) {
    return; /* ended with QEMU */
  }
  mlx5_hca_net_exit(link);
  dev->link = NULL;
  mlx5_hca_link_drop(link);
  remove_capabilities(pci);
}

/* Function level reset, reset of the bus above, system reset. */
static void mlx5_hca_reset_hold(QCOMPAT_HOLD_ARGS) {
  PCIDevice* pci = PCI_DEVICE(obj);
  Mlx5Hca* dev = MLX5_HCA(obj);

  if (!dev->link) {
    return;
  }
  pcie_cap_deverr_reset(pci);
  reset_device_control(pci);
  pci_set_word(pci->config + dev->pm_cap + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
  mlx5_hca_vsc_reset(dev);
  mlx5_hca_link_reset(dev->link);
}

static uint32_t mlx5_hca_config_read(PCIDevice* pci, uint32_t addr, int len) {
  if (MLX5_HCA(pci)->removed) {
    return UINT32_MAX >> (32 - 8 * len);
  }
  mlx5_hca_vsc_before_read(MLX5_HCA(pci), addr, len);
  return pci_default_read_config(pci, addr, len);
}

static void mlx5_hca_config_write(PCIDevice* pci, uint32_t addr, uint32_t value, int len) {
  if (MLX5_HCA(pci)->removed) {
    return;
  }
  pci_default_write_config(pci, addr, value, len);
  pcie_cap_flr_write_config(pci, addr, value, len);
  if (pci->exp.aer_cap) {
    pcie_aer_write_config(pci, addr, value, len);
  }
  mlx5_hca_vsc_after_write(MLX5_HCA(pci), addr, value, len);
  mlx5_hca_vpd_after_write(MLX5_HCA(pci), addr, len);
}

/* ---- class ---- */

static QCOMPAT_PROPERTY_CONST Property mlx5_hca_properties[] = {
    DEFINE_PROP_STRING("link", Mlx5Hca, prop_link),
    DEFINE_PROP_STRING("profile", Mlx5Hca, prop_profile),
    DEFINE_PROP_STRING("time", Mlx5Hca, prop_time),
    DEFINE_PROP_UINT32("ahead", Mlx5Hca, prop_ahead, AHEAD_DEFAULT_NS),
    DEFINE_PROP_STRING("trace", Mlx5Hca, prop_trace),
    DEFINE_PROP_STRING("rules", Mlx5Hca, prop_rules),
    DEFINE_PROP_STRING("trace_ring", Mlx5Hca, prop_trace_ring),
    DEFINE_PROP_STRING("capture", Mlx5Hca, prop_capture),
    DEFINE_PROP_STRING("record", Mlx5Hca, prop_record),
    DEFINE_PROP_STRING("faults", Mlx5Hca, prop_faults),
    DEFINE_PROP_ON_OFF_AUTO("bf", Mlx5Hca, prop_bf, ON_OFF_AUTO_AUTO),
    DEFINE_PROP_ON_OFF_AUTO("sm", Mlx5Hca, prop_sm, ON_OFF_AUTO_AUTO),
    DEFINE_PROP_STRING("node_guid", Mlx5Hca, prop_node_guid),
    DEFINE_PROP_STRING("wire", Mlx5Hca, prop_wire),
    DEFINE_PROP_ON_OFF_AUTO("coupled", Mlx5Hca, prop_coupled, ON_OFF_AUTO_AUTO),
    DEFINE_PROP_STRING("cable", Mlx5Hca, prop_cable),
    DEFINE_NIC_PROPERTIES(Mlx5Hca, nic_conf),
    DEFINE_PROP_STRING("options", Mlx5Hca, prop_options),
    DEFINE_PROP_UINT16("x-device-id", Mlx5Hca, prop_device_id, 0),
    QCOMPAT_PROPERTY_END};

static const struct {
  const char *name, *text;
} mlx5_hca_descriptions[] = {
    {"link", "link layer of the port: ib (InfiniBand) or eth (Ethernet)"},
    {"profile", "timing and capability profile: the name of a built-in one, or the path of a .toml file"},
    {"time",
     "coupling of SystemC's clock to the guest's: lockstep (exact), eager (the model runs ahead by up to "
     "'ahead' ns after each access), auto = lockstep under -icount and -accel qtest, else eager; one "
     "lockstep HCA makes all of the machine lockstep"},
    {"ahead", "bound of the run-ahead of time=eager, ns; the smallest of all HCAs counts"},
    {"trace", "file the trace is written to (read it with: hcasim trace FILE)"},
    {"rules",
     "what a driver has to keep (hcasim rules): report what it breaks, strict (and the device goes to its "
     "fatal "
     "health state), off"},
    {"trace_ring",
     "MiB of memory that the trace is kept in, the last of it; the file is written when the machine ends, "
     "and "
     "by qom-set of trace-dump"},
    {"capture", "pcapng file of what leaves and enters the port, in simulated time"},
    {"record",
     "file that all of the machine's HCAs get and answer is recorded in (hcasim replay FILE); of the first "
     "HCA"},
    {"faults", "scenario of faults to inject, a TOML file (hcasim faults); further ones: qom-set of inject"},
    {"bf", "offer BlueFlame registers: on, off, auto = as the profile says"},
    {"sm", "built-in subnet manager that makes the port ACTIVE: on, off, auto = the model's default"},
    {"node_guid", "node GUID, 16 hexadecimal digits; also the PCIe device serial number"},
    {"wire",
     "the port is joined to that of an HCA in another QEMU: unix:PATH or tcp:HOST:PORT; the first one "
     "listens"},
    {"coupled",
     "wire=: the guests at both ends live in one time, that of the model; the one that is ahead waits (and "
     "its "
     "monitor with it). on, off, auto = on with time=lockstep and -icount; both ends must say the same"},
    {"cable", "the port is joined to that of the HCA with this id, in this machine"},
    {"netdev", "link=eth: network back end that the port is joined to; without it a cable to itself"},
    {"mac", "link=eth: MAC address; default: made from the node GUID"},
    {"options", "further KEY=VALUE options of the model, parted by ';' or ':'"},
    {"x-device-id", "PCI device id; 0: that of the profile's generation"},
};

static const VMStateDescription mlx5_hca_vmstate = {
    .name = TYPE_MLX5_HCA,
    .unmigratable = 1, /* savevm and migrate say "non-migratable device" and leave the machine running */
};

static void mlx5_hca_class_init(ObjectClass* klass, QcompatClassData data G_GNUC_UNUSED) {
  DeviceClass* dc = DEVICE_CLASS(klass);
  PCIDeviceClass* k = PCI_DEVICE_CLASS(klass);

  k->realize = mlx5_hca_realize;
  k->exit = mlx5_hca_exit;
  k->config_read = mlx5_hca_config_read;
  k->config_write = mlx5_hca_config_write;
  k->vendor_id = PCI_VENDOR_ID_MLX;
  k->device_id = PCI_DEVICE_ID_MLX_CX5_EX;
  k->subsystem_vendor_id = PCI_VENDOR_ID_MLX;
  k->subsystem_id = PCI_SUBSYSTEM_ID_MLX;
  k->class_id = PCI_CLASS_INFINIBAND;
  RESETTABLE_CLASS(klass)->phases.hold = mlx5_hca_reset_hold;
  dc->desc = "mlx5-class host channel adapter, modelled in SystemC (hcasim)";
  dc->vmsd = &mlx5_hca_vmstate;
  /* Stays hotpluggable so that device_del works; adding is refused in realize with the reason. */
  set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
  device_class_set_props(dc, mlx5_hca_properties);
  for (size_t i = 0; i < ARRAY_SIZE(mlx5_hca_descriptions); i++) {
    object_class_property_set_description(klass, mlx5_hca_descriptions[i].name,
                                          mlx5_hca_descriptions[i].text);
  }
}

static QCOMPAT_INTERFACE_CONST InterfaceInfo mlx5_hca_interfaces[] = {{INTERFACE_PCIE_DEVICE}, {}};

static const TypeInfo mlx5_hca_type = {
    .name = TYPE_MLX5_HCA,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(Mlx5Hca),
    .class_init = mlx5_hca_class_init,
    .interfaces = mlx5_hca_interfaces,
};

void mlx5_hca_register_type(void) { type_register_static(&mlx5_hca_type); }
