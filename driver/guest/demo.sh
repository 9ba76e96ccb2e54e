# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# shellcheck disable=SC2016 # the guest's shell expands these
#
# What ./hcasim demo runs in the guest.
exec 2>&1
# show "what is typed" "what is run, if that is longer"
show() {
  printf '\n\033[1mguest# %s\033[0m\n' "$1"
  bash -o pipefail -c "${2:-$1}" || {
    echo "demo: '$1' failed with status $?"
    dmesg | tail -n 30
    exit 1
  }
}

show 'uname -sr; lspci -d 15b3:'
show 'dmesg | grep mlx5' 'dmesg | grep -E "\] (mlx5_|infiniband)"'
show 'ibv_devinfo' 'for i in $(seq 100); do ibv_devinfo | grep -q PORT_ACTIVE && break; sleep 0.1; done; ibv_devinfo'
ibv_devinfo | grep -q PORT_ACTIVE || { echo "demo: the port is not ACTIVE"; exit 1; }
# Both ends poll: on one processor they would pass it to each other once a time slice.
show 'taskset -c 0 ibv_rc_pingpong -c -n 1000 & taskset -c 1 ibv_rc_pingpong -c -n 1000 localhost' '
  taskset -c 0 ibv_rc_pingpong -c -n 1000 >/tmp/server & server=$!
  for i in $(seq 100); do grep -q ":4853 0*:0000 0A" /proc/net/tcp* && break; sleep 0.1; done
  taskset -c $(($(nproc) - 1)) timeout 60 ibv_rc_pingpong -c -n 1000 localhost || { kill $server; cat /tmp/server; exit 1; }
  wait $server && cat /tmp/server'
echo
