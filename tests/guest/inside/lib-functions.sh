# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Where the drivers' functions are, for reached-functions. Stands by itself.

# watch_functions PORT: says there which functions mlx5's modules have, and where, each time that they are loaded (reached-functions reads it).
watch_functions() {
  local module at
  local -A known=()
  mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
  while sleep 0.5; do
    for module in mlx5_core mlx5_ib; do
      at=$(cat /sys/module/$module/sections/.text 2>/dev/null) || continue
      [[ $(cat /sys/module/$module/initstate 2>/dev/null) == live && $at != "${known[$module]:-}" ]] || continue
      known[$module]=$at
      grep -F "[$module]" /proc/kallsyms
      grep -F "[$module]" /sys/kernel/tracing/available_filter_functions | sed 's/^/traceable /'
    done
  done >"$1"
}
for name in /sys/class/virtio-ports/*/name; do
  [[ -r $name && $(<"$name") == hcasim.functions ]] || continue
  name=${name%/name}
  (watch_functions "/dev/${name##*/}" &) # no job of this shell, which some tests wait for
done
