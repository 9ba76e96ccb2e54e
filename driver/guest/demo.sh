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
show 'ip link set eth0 up && ip address add 192.0.2.1/24 dev eth0 && ip -br address'
show 'ibv_devinfo' 'for i in $(seq 100); do ibv_devinfo | grep -q PORT_ACTIVE && break; sleep 0.1; done; ibv_devinfo'
ibv_devinfo | grep -q PORT_ACTIVE || { echo "demo: the port is not ACTIVE"; exit 1; }
# The GID of that address on RoCE v2: its type is in sysfs.
gid=$(cd /sys/class/infiniband/mlx5_0/ports/1 && for i in $(seq 0 15); do
  [[ $(<"gids/$i") == *:ffff:c000:0201 && $(cat "gid_attrs/types/$i" 2>/dev/null) == "RoCE v2" ]] && echo "$i" && break; done)
[[ -n $gid ]] || { echo "demo: no RoCE v2 GID"; exit 1; }
export gid
# Both ends poll: on one processor they would pass it to each other once a time slice.
show 'taskset -c 0 ibv_rc_pingpong -g $gid -c -n 1000 & taskset -c 1 ibv_rc_pingpong -g $gid -c -n 1000 localhost' '
  taskset -c 0 ibv_rc_pingpong -g $gid -c -n 1000 >/tmp/server & server=$!
  for i in $(seq 100); do grep -q ":4853 0*:0000 0A" /proc/net/tcp* && break; sleep 0.1; done
  taskset -c $(($(nproc) - 1)) timeout 60 ibv_rc_pingpong -g $gid -c -n 1000 localhost || { kill $server; cat /tmp/server; exit 1; }
  wait $server && cat /tmp/server'
echo
