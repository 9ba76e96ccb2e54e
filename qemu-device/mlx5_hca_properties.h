/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The properties of -device mlx5-hca, a row each: from it come the member of Mlx5Hca, the property with its
 * default and its line of `device_add mlx5-hca,help`, and what is passed on to the model.
 *
 * - TEXT(member, name, key, text)              string; unset it is not passed on: the default is the model's
 * - SWITCH(member, name, key, text)            on, off, auto; auto is not passed on
 * - NUMBER(bits, member, name, initial, text)  unsigned, of so many bits; never passed on
 * - NETWORK(member, netdev, mac)               QEMU's netdev= and mac=, with the text of each
 *
 * The member is prop_<member>; `key` is the option of hca_create() that takes the value as it is, NULL: none
 * does, mlx5_hca_options.c makes something of it. Options are passed on in the order of the rows.
 */
#ifndef HCASIM_QEMU_DEVICE_MLX5_HCA_PROPERTIES_H
#define HCASIM_QEMU_DEVICE_MLX5_HCA_PROPERTIES_H

#define MLX5_HCA_AHEAD_DEFAULT 10000 /* ns */

/* clang-format off */
#define MLX5_HCA_PROPERTIES(TEXT, SWITCH, NUMBER, NETWORK)                                                    \
  TEXT(link, "link", "link", "link layer of the port: ib (InfiniBand) or eth (Ethernet)")                     \
  TEXT(profile, "profile", "profile",                                                                         \
       "timing and capability profile: the name of a built-in one, or the path of a .toml file")              \
  TEXT(time, "time", NULL,                                                                                    \
       "coupling of SystemC's clock to the guest's: lockstep (exact), eager (the model runs ahead by up to "  \
       "'ahead' ns after each access), auto = lockstep under -icount and -accel qtest, else eager; one "      \
       "lockstep HCA makes all of the machine lockstep")                                                      \
  NUMBER(32, ahead, "ahead", MLX5_HCA_AHEAD_DEFAULT,                                                          \
         "bound of the run-ahead of time=eager, ns; the smallest of all HCAs counts")                         \
  TEXT(trace, "trace", "trace", "file the trace is written to (read it with: hcasim trace FILE)")             \
  SWITCH(guest_pc, "guest_pc", NULL,                                                                          \
         "the trace has the program counter of the guest's code for each write to a register (point "         \
         "guest_code; -accel tcg): on, off, auto = off")                                                      \
  TEXT(rules, "rules", "rules",                                                                               \
       "what a driver has to keep (hcasim rules): report what it breaks, strict (and the device goes to its " \
       "fatal health state), off")                                                                            \
  TEXT(trace_ring, "trace_ring", "trace_ring",                                                                \
       "MiB of memory that the trace is kept in, the last of it; the file is written when the machine ends, " \
       "and by qom-set of trace-dump")                                                                        \
  TEXT(capture, "capture", "capture", "pcapng file of what leaves and enters the port, in simulated time")    \
  TEXT(record, "record", "record",                                                                            \
       "file that all of the machine's HCAs get and answer is recorded in (hcasim replay FILE); of the "      \
       "first HCA")                                                                                           \
  TEXT(faults, "faults", "faults",                                                                            \
       "scenario of faults to inject, a TOML file (hcasim faults); further ones: qom-set of inject")          \
  TEXT(node_guid, "node_guid", "node_guid",                                                                   \
       "node GUID, 16 hexadecimal digits; also the PCIe device serial number")                                \
  TEXT(wire, "wire", "wire",                                                                                  \
       "the port is joined to that of an HCA in another QEMU: unix:PATH, tcp:HOST:PORT or shm:NAME (memory "  \
       "that both share, the fastest); the first one listens")                                                                                             \
  SWITCH(coupled, "coupled", NULL,                                                                            \
         "wire=: the guests at both ends live in one time, that of the model; the one that is ahead waits "   \
         "(and its monitor with it). on, off, auto = on with time=lockstep and -icount; both ends must say "  \
         "the same")                                                                                          \
  TEXT(cable, "cable", "cable", "the port is joined to that of the HCA with this id, in this machine")        \
  TEXT(card, "card", "card",                                                                                  \
       "one of the two ports of the card of this name: functions 0 and 1 of a slot (addr=0.0 with "           \
       "multifunction=on, addr=0.1), the first one made is port 1")                                           \
  NETWORK(nic, "link=eth: network back end that the port is joined to; without it a cable to itself",         \
          "link=eth: MAC address; default: made from the node GUID")                                          \
  SWITCH(bf, "bf", "bf", "offer BlueFlame registers: on, off, auto = off")                    \
  SWITCH(ats, "ats", "ats",                                                                                   \
         "functions show ATS: with intel-iommu,device-iotlb=on their driver may have them keep translations: "  \
         "on, off, auto = off")                                                                                 \
  SWITCH(sm, "sm", "sm",                                                                                      \
         "built-in subnet manager that makes the port ACTIVE: on, off, auto = the model's default")           \
  TEXT(vfs, "vfs", "vfs",                                                                                     \
       "virtual functions that the card has (SR-IOV), 0 to 127; it needs a PCI Express port with room in its " \
       "window (pref64-reserve=256M)")                                                                         \
  TEXT(sfs, "sfs", "sfs",                                                                                     \
       "link=eth: sub-functions that the card can have, 0 to 64; their registers are in BAR 2, and MSI-X in "  \
       "BAR 4")                                                                                                \
  TEXT(options, "options", NULL, "further KEY=VALUE options of the model, parted by ';' or ':'")              \
  TEXT(generation, "generation", "generation",                                                                \
       "what the card says it is and offers at most, such as connectx6; default: what the profile names")     \
  TEXT(device_id, "x-device-id", "device_id", "PCI device id; default: the generation's")
/* clang-format on */

#define MLX5_HCA_TEXT_MEMBER(member, name, key, text) char* prop_##member;
#define MLX5_HCA_SWITCH_MEMBER(member, name, key, text) OnOffAuto prop_##member;
#define MLX5_HCA_NUMBER_MEMBER(bits, member, name, initial, text) uint##bits##_t prop_##member;
#define MLX5_HCA_NETWORK_MEMBER(member, netdev, mac) NICConf prop_##member;
#define MLX5_HCA_PROPERTY_MEMBERS                                                           \
  MLX5_HCA_PROPERTIES(MLX5_HCA_TEXT_MEMBER, MLX5_HCA_SWITCH_MEMBER, MLX5_HCA_NUMBER_MEMBER, \
                      MLX5_HCA_NETWORK_MEMBER)

#endif
