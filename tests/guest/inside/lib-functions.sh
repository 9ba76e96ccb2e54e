# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Where the drivers' functions are, for reached-functions. Stands by itself.

# watch_functions PORT: says there which functions mlx5's modules have, and where, each time that they are loaded (reached-functions reads it).
watch_functions() {
  local loads=/sys/kernel/tracing/instances/hcasim module
  say_functions() {
    grep -F "[$1]" /proc/kallsyms
    grep -F "[$1]" /sys/kernel/tracing/available_filter_functions | sed 's/^/traceable /'
  }
  mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
  mkdir "$loads" && echo 1 >"$loads/events/module/module_load/enable"
  {
    for module in mlx5_core mlx5_ib; do say_functions $module; done
    while read -r line; do
      if [[ $line =~ module_load:\ (mlx5_core|mlx5_ib)( |$) ]]; then say_functions "${BASH_REMATCH[1]}"; fi
    done <"$loads/trace_pipe"
  } >"$1"
}
for name in /sys/class/virtio-ports/*/name; do
  [[ -r $name && $(<"$name") == hcasim.functions ]] || continue
  name=${name%/name}
  (watch_functions "/dev/${name##*/}" &) # no job of this shell, which some tests wait for
done
