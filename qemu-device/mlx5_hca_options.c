/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The properties of -device, and what becomes of them: the key=value list of hca_create(), and how QEMU's
 * clock and the model's go together.
 */
#include "mlx5_hca.h"

/* Bound of the run-ahead of eager coupling: a longer one only blurs the guest's time. */
#define AHEAD_MAX_NS 1000000000

/* ---- the list ---- */

/* The list's separator cannot be quoted, so no value may hold it. */
static bool add_option(GString* out, const char* key, const char* value, Error** errp) {
  if (strchr(value, ',')) {
    error_setg(errp, TYPE_MLX5_HCA ": %s=%s: a comma is not allowed in a value", key, value);
    return false;
  }
  g_string_append_printf(out, "%s%s=%s", out->len ? "," : "", key, value);
  return true;
}

static bool add_text(GString* out, const char* key, const char* value, Error** errp) {
  return !key || !value || add_option(out, key, value, errp);
}

static bool add_switch(GString* out, const char* key, OnOffAuto value, Error** errp) {
  return !key || value == ON_OFF_AUTO_AUTO ||
         add_option(out, key, value == ON_OFF_AUTO_ON ? "on" : "off", errp);
}

/* A MAC address that is not given is made by the model. */
static bool add_network(GString* out, Mlx5Hca* dev, Error** errp) {
  static const MACAddr unset;
  const MACAddr* mac = &dev->prop_nic.macaddr;
  g_autofree char* text = memcmp(mac, &unset, sizeof(unset)) ? qemu_mac_strdup_printf(mac->a) : NULL;

  return (!mlx5_hca_has_netdev(dev) || add_option(out, "wire", "host", errp)) &&
         add_text(out, "mac", text, errp);
}

/* options=a=1;b=2 : ';' and ':' part the pairs, because QEMU parts its own options by commas. */
/* What the device has to know itself. */
static bool is_property(const char* key) {
  return !strcmp(key, "wire") || !strcmp(key, "coupled") || !strcmp(key, "card") || !strcmp(key, "name");
}

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
    if (is_property(*p)) {
      error_setg(errp, TYPE_MLX5_HCA ": options: %s is given beside options=, not in it", *p);
      return false;
    }
    if (!add_option(out, *p, eq + 1, errp)) {
      return false;
    }
  }
  return true;
}

#define ADD_TEXT(member, name, key, text) &&add_text(out, key, dev->prop_##member, errp)
#define ADD_SWITCH(member, name, key, text) &&add_switch(out, key, dev->prop_##member, errp)
#define ADD_NUMBER(bits, member, name, initial, text)
#define ADD_NETWORK(member, netdev, mac) &&add_network(out, dev, errp)

/* Of all HCAs: other options (cable=), messages and traces name them so. */
static GHashTable* names;

/* For one without an id: by its place among all, or the next number that is free. */
static char* free_name(void) {
  for (unsigned n = g_hash_table_size(names);; n++) {
    char* name = g_strdup_printf("hca%u", n);

    if (!g_hash_table_contains(names, name)) {
      return name;
    }
    g_free(name);
  }
}

static bool build_options(Mlx5Hca* dev, bool coupled, GString* out, Error** errp) {
  const char* id = DEVICE(dev)->id;
  g_autofree char* name = NULL;

  if (!names) {
    names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
  }
  name = id ? g_strdup(id) : free_name();

  if (mlx5_hca_has_netdev(dev) && dev->prop_wire) {
    error_setg(errp, TYPE_MLX5_HCA ": netdev= and wire=: the port has one cable; take one of the two");
    return false;
  }
  if (!g_hash_table_add(names, g_strdup(name))) {
    error_setg(errp, TYPE_MLX5_HCA ": another one is called '%s' already: give each an id of its own", name);
    return false;
  }
  dev->name = g_strdup(name);
  return add_option(out, "name", name, errp)
             MLX5_HCA_PROPERTIES(ADD_TEXT, ADD_SWITCH, ADD_NUMBER, ADD_NETWORK) &&
         (!coupled || add_option(out, "coupled", "on", errp)) &&
         (!dev->prop_options || add_free_options(out, dev->prop_options, errp));
}

/* ---- time ---- */

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

/* Whether the time of a wire's two ends is to be one. Only a clock that counts instructions stands still
 * while this process waits. */
static bool resolve_coupled(Mlx5Hca* dev, int64_t ahead, bool* coupled, Error** errp) {
  bool can = dev->prop_wire && !mlx5_hca_has_netdev(dev) && !ahead && icount_enabled() && !hca_sim_started();

  *coupled = can && dev->prop_coupled != ON_OFF_AUTO_OFF;
  if (dev->prop_coupled == ON_OFF_AUTO_ON && !can) {
    error_setg(errp, TYPE_MLX5_HCA
               ": coupled=on needs wire=, time=lockstep and -icount, from the machine's start on");
    return false;
  }
  return true;
}

/* Another may have it. */
static void give_up_name(Mlx5Hca* dev) {
  if (dev->name) {
    g_hash_table_remove(names, dev->name);
    g_clear_pointer(&dev->name, g_free);
  }
}

static bool forget(HcaLink* link) {
  give_up_name(link->held);
  return false;
}

const HcaPart mlx5_hca_names = {.calls = {[HCA_CALL_FREE] = forget}};

bool mlx5_hca_resolve(Mlx5Hca* dev, int64_t* ahead, GString* options, Error** errp) {
  bool coupled;

  if (!resolve_time(dev, ahead, errp) || !mlx5_hca_fits_time(ahead, errp) ||
      !resolve_coupled(dev, *ahead, &coupled, errp)) {
    return false;
  }
  if (!build_options(dev, coupled, options, errp)) {
    give_up_name(dev);
    return false;
  }
  return true;
}

/* ---- properties ---- */

#define PROPERTY_TEXT(member, name, key, text) DEFINE_PROP_STRING(name, Mlx5Hca, prop_##member),
#define PROPERTY_SWITCH(member, name, key, text) \
  DEFINE_PROP_ON_OFF_AUTO(name, Mlx5Hca, prop_##member, ON_OFF_AUTO_AUTO),
#define PROPERTY_NUMBER(bits, member, name, initial, text) \
  DEFINE_PROP_UINT##bits(name, Mlx5Hca, prop_##member, initial),
#define PROPERTY_NETWORK(member, netdev, mac) DEFINE_NIC_PROPERTIES(Mlx5Hca, prop_##member),

static QCOMPAT_PROPERTY_CONST Property properties[] = {MLX5_HCA_PROPERTIES(
    PROPERTY_TEXT, PROPERTY_SWITCH, PROPERTY_NUMBER, PROPERTY_NETWORK) QCOMPAT_PROPERTY_END};

#define DESCRIBE(name, text) object_class_property_set_description(klass, name, text);
#define DESCRIBE_TEXT(member, name, key, text) DESCRIBE(name, text)
#define DESCRIBE_SWITCH(member, name, key, text) DESCRIBE(name, text)
#define DESCRIBE_NUMBER(bits, member, name, initial, text) DESCRIBE(name, text)
#define DESCRIBE_NETWORK(member, netdev, mac) DESCRIBE("netdev", netdev) DESCRIBE("mac", mac)

void mlx5_hca_add_properties(ObjectClass* klass) {
  device_class_set_props(DEVICE_CLASS(klass), properties);
  MLX5_HCA_PROPERTIES(DESCRIBE_TEXT, DESCRIBE_SWITCH, DESCRIBE_NUMBER, DESCRIBE_NETWORK)
}
