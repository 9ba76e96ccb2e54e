# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --no-modprobe
# ask: -
# disk: build-mutants
# program: driver_work
# breaks: any
# Debian's own mlx5 drivers with a single fault each (mutants/mutants.toml): each fault is named by the validation rule meant for it,
# and the same drivers built without a fault break none.
mkdir -p /tmp/mutants
mount -o ro /dev/vdc /tmp/mutants || fail "no disk of mutants"
# What the drivers need stays.
modprobe mlx5_core && modprobe ib_uverbs && modprobe ib_umad && rmmod mlx5_core || fail "modprobe"
[[ -z $(ask rules) ]] || fail "Debian's mlx5_core breaks rules"

# within SECONDS CMD...: CMD in the background for so long at most; status 124: it goes on.
within() {
  local end=$((SECONDS + $1)) pid
  shift
  "$@" &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    ((SECONDS < end)) || return 124
    sleep 0.05
  done
  wait "$pid"
}
work() {
  local each i
  for each in ${1//,/ }; do
    case $each in
      load) ;;
      mads) # One whose WQE was lost waits until the next doorbell; more of them come meanwhile.
        for i in 1 2 3 4; do
          timeout 4 perfquery -t 200 >/dev/null &
          sleep 0.1
        done
        wait
        ;;
      mrs) timeout 10 driver_work mrs 40 ;;
      qp) timeout 10 driver_work qp 2 ;;
      wqes) # The time that a module takes to load is its work's.
        insmod /tmp/mutants/reg_work.ko && rmmod reg_work
        dmesg | grep 'reg_work: ' | tail -n 5
        ;;
    esac
  done
}
unload() {
  local module
  for module in mlx5_ib mlx5_core; do [[ ! -e /sys/module/$module ]] || rmmod "$module" || return; done
}
active() {
  local end=$((SECONDS + 15)) state=/sys/class/infiniband/mlx5_0/ports/1/state
  # A driver that is loaded has probed.
  [[ -r $state ]] || return 1
  until [[ -r $state && $(<"$state") == *ACTIVE* ]]; do
    ((SECONDS < end)) || return 1
    sleep 0.05
  done
}
# rescue WHAT: something waits for ever. A dead card ends all waiting.
rescue() {
  echo "mutants: $name: $1 takes too long; the card dies"
  ask inject fw_fatal=1 >/dev/null
  sleep 3
}
in_list() { [[ ,$2, == *,$1,* ]]; }

failed=0 count=0
while read -r name module rule work loads also; do
  [[ -z $test_argument || $name == $test_argument ]] || continue
  count=$((count + 1))
  began=$EPOCHREALTIME
  if [[ $module == mlx5_core ]]; then
    core=/tmp/mutants/$name.ko ib=$(modinfo -n mlx5_ib)
  else
    core=$(modinfo -n mlx5_core) ib=/tmp/mutants/$name.ko
  fi
  if insmod "$core" && insmod "$ib" && active; then
    [[ -z $test_argument ]] || note "active"
    within 25 work "$work" >/tmp/work 2>&1 || rescue "its work"
  elif [[ $loads != fails ]]; then
    echo "mutants: $name does not come up"
    dmesg | tail -n 20
    failed=1
  fi
  # Of a single one, all that it says.
  [[ -z $test_argument ]] || { note "worked" && cat /tmp/work && dmesg | tail -n 30; }
  within 20 unload || { rescue "rmmod" && within 60 unload; } || fail "$name cannot be unloaded: $(dmesg | tail -n 40)"
  [[ -z $test_argument ]] || note "unloaded"
  broken=$(ask rules)
  verdict=ok
  [[ $rule == - || " $broken" == *" $rule="* ]] || verdict="FAILED: not caught"
  for each in $broken; do
    each=${each%=*}
    [[ $each == "$rule" ]] || in_list "$each" "$also" || verdict="FAILED: $each"
  done
  [[ $verdict == ok ]] || failed=1
  printf '%-28s %-30s %s [%s] %.1f s\n' "$name" "$rule" "$verdict" "$broken" "$(awk "BEGIN {print $EPOCHREALTIME - $began}")"
done </tmp/mutants/list
((count > 0)) || fail "no mutants"
((failed == 0)) || fail "a fault was not named as it should be"
note "$count drivers"
