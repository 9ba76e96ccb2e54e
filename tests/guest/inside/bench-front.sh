# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth
# What ./hcasim bench vfio-user measures with the card in QEMU's own process and in another: how long the drivers take to bring it up, and perftest
# with both ends in one guest. Prints "bench WHAT VALUE UNIT" lines.
duration=${test_argument:-4}

# From the first command of mlx5_core to a port that is ACTIVE, the second of two times: the first loads the modules' files too.
bring_up() {
  local start deadline
  modprobe -r mlx5_ib mlx5_core || fail "modprobe -r"
  start=$(cut -d' ' -f1 /proc/uptime)
  modprobe mlx5_core && modprobe mlx5_ib || fail "modprobe"
  deadline=$((SECONDS + 60))
  ip link set dev "$(ls /sys/bus/pci/drivers/mlx5_core/0*/net | head -n 1)" up || fail "ip link set up"
  until grep -qs ACTIVE /sys/class/infiniband/*/ports/1/state; do
    ((SECONDS < deadline)) || fail "the port does not come up"
  done
  awk -v start="$start" '{printf "bench bring-up %.2f s\n", $1 - start}' /proc/uptime
}
bring_up >/dev/null
bring_up
ends_up 4200

# measure WHAT COLUMN UNIT TOOL ARGS...: the column counts from the end of perftest's line of results.
measure() {
  local what=$1 column=$2 unit=$3
  shift 3
  perftest_ends "$@" >/tmp/note
  awk -v what="$what" -v column="$column" -v unit="$unit" \
    '/^ *[0-9]+ +[0-9]+/ {line = $0} END {n = split(line, field); print "bench", what, field[n - column], unit}' /tmp/client
}
for tool in write send read; do measure $tool-2B-lat 4 us ib_${tool}_lat -s 2 -n 2000; done
for tool in write send read; do measure $tool-64KiB 1 MB/s ib_${tool}_bw -s 65536 -D "$duration" -f 1; done
for tool in write send read; do measure $tool-2B 0 Mops/s ib_${tool}_bw -s 2 -D "$duration" -f 1; done
