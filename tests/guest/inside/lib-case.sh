# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Case studies (docs/case-studies): bugs that the kernel's drivers had. The same work is done with Debian's drivers, which have the fix, and
# with the one built from Debian's source with the fix taken back (mutants/bugs.toml, on the disk of build-mutants --bug).

# bug_ready: the disk is mounted, and what the drivers need is loaded.
bug_ready() {
  mkdir -p /tmp/bug
  mount -o ro /dev/vdc /tmp/bug || fail "no disk with the bug"
  read -r bug bug_module _ </tmp/bug/list || fail "no bug on the disk"
  modprobe mlx5_core && modprobe ib_uverbs && modprobe ib_umad && rmmod mlx5_core || fail "modprobe"
}
# drivers fixed|broken: both drivers are loaded, one of them with the bug, if asked for.
drivers() {
  local module file
  for module in mlx5_core mlx5_ib; do
    file=$(modinfo -n $module)
    if [[ $1 == broken && $module == "$bug_module" ]]; then file=/tmp/bug/$bug.ko; fi
    insmod "$file" || fail "$file"
  done
  note "drivers: $1"
  mark_kernel_log
}
drivers_gone() {
  local module
  for module in mlx5_ib mlx5_core; do [[ ! -e /sys/module/$module ]] || rmmod $module || fail "rmmod $module"; done
}
# silent: the HCA has found no rule broken since it was asked last, and the kernel complains of nothing (as $complaints finds).
silent() {
  local text
  text=$(ask rules)
  [[ -z $text ]] || fail "with the fix rules are broken: $text"
  text=$(${complaints:-kernel_complaints})
  [[ -z $text ]] || fail "with the fix the kernel complains: $text"
}
# breaks RULE...: since it was asked last the HCA has found these rules broken, each once or more, and no other.
breaks() {
  local rules each
  rules=$(ask rules)
  echo "   rules broken: $rules"
  for each in "$@"; do [[ " $rules" == *" $each="* ]] || fail "rule $each is not broken: $rules"; done
  for each in $rules; do [[ " $* " == *" ${each%=*} "* ]] || fail "rule ${each%=*} is broken"; done
}
