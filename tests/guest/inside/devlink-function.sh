# SPDX-License-Identifier: BSD-3-Clause
# boot: --debian 14 --hca link=eth,vfs=2,generation=connectx7,options=crypto=on
# What devlink says of virtual functions in switchdev mode, and changes: whether they have RoCE, and IPsec, and whether
# they may be migrated.
mark_kernel_log
card=pci/${pf##*/}
mode switchdev
functions_there 2
for vf in 0 1; do
  # The function's devlink port: "pci/ADDRESS/INDEX: ...".
  function[vf]=$(devlink port show | sed -nE "s,^($card/[0-9]+): .*flavour pcivf .*vfnum $vf( .*)?\$,\1,p")
  [[ -n ${function[vf]} ]] || fail "virtual function $vf has no port: $(devlink port show)"
done
# says VF WORDS: what devlink says of the function.
says() { devlink port show "${function[$1]}" | grep -q "$2" || fail "of function $1 not '$2': $(devlink port show "${function[$1]}")"; }
# driver VF bind|unbind
driver() {
  basename "$(vf_of "$1")" >"/sys/bus/pci/drivers/mlx5_core/$2" || fail "$2 of function $1: $(dmesg | tail -n 20)"
  [[ $2 == unbind ]] || within 60 test -d "$(vf_of "$1")/net"
}
# sets VF WORDS...: while it has no driver, as what is set holds from the next one on.
sets() {
  driver "$1" unbind
  devlink port function set "${function[$1]}" "${@:2}" || fail "devlink port function set ${*:2}: $(dmesg | tail -n 5)"
  driver "$1" bind
}
# gids VF: how many it has that are not empty.
gids() { cat "$(vf_of "$1")"/infiniband/*/ports/1/gids/* 2>/dev/null | grep -vc '^\(0000:\)*0000$'; }
has_gids() { (($(gids "$1") > 0)); }

for vf in 0 1; do
  says $vf 'roce enable'
  says $vf 'migratable enable'
  driver $vf bind
  net=$(net_of "$(vf_of $vf)")
  ip link set "$net" up && ip address add "10.9.1.$vf/24" dev "$net"
  within 60 has_gids $vf
done
sets 0 roce disable
says 0 'roce disable'
says 1 'roce enable'
# By when a function that begins after it has some, this one would have.
for vf in 0 1; do
  if ((vf == 1)); then driver 1 unbind && driver 1 bind; fi
  net=$(net_of "$(vf_of $vf)")
  ip link set "$net" up && ip address add "10.9.1.$((vf + 4))/24" dev "$net"
done
within 60 has_gids 1
(($(gids 0) == 0)) || fail "function 0 has GIDs without RoCE"
sets 0 roce enable
says 0 'roce enable'
net=$(net_of "$(vf_of 0)")
ip link set "$net" up && ip address add "10.9.1.9/24" dev "$net"
within 60 has_gids 0
# IPsec, of either kind, which none has at first.
for kind in crypto packet; do
  for vf in 0 1; do says $vf "ipsec_$kind disable"; done
  sets 1 "ipsec_$kind" enable
  says 1 "ipsec_$kind enable"
  says 0 "ipsec_$kind disable"
  sets 1 "ipsec_$kind" disable
  says 1 "ipsec_$kind disable"
done
sets 1 migratable disable
says 1 'migratable disable'
sets 1 migratable enable
says 1 'migratable enable'
# The card's own RoCE, which is the driver's to switch.
mode legacy
echo 0 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
devlink dev param set "$card" name enable_roce value false cmode driverinit && devlink dev reload "$card" || fail "enable_roce: $(dmesg | tail)"
(($(cat "$pf"/infiniband/*/ports/1/gids/* 2>/dev/null | grep -vc '^\(0000:\)*0000$') == 0)) || fail "GIDs without RoCE"
devlink dev param set "$card" name enable_roce value true cmode driverinit && devlink dev reload "$card" || fail "enable_roce: $(dmesg | tail)"
within 60 test -e "$pf/infiniband"
complaints=$(switchdev_complaints)
[[ -z $complaints ]] || fail "the kernel complained: $complaints"
