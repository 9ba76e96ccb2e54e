# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth
# What ./hcasim bench guest measures, here both ends in one guest: perftest on the HCA, and on Linux's software RoCE (rdma_rxe) in
# the same guest. bench-pair measures one kind of device between two guests. Prints "bench DEVICE WHAT VALUE UNIT" lines.
ends_up 4200
duration=${test_argument:-4}

# measure WHAT COLUMN UNIT TOOL ARGS...: the column counts from the end of perftest's line of results.
measure() {
  local what=$1 column=$2 unit=$3
  shift 3
  perftest_ends "$@" >/tmp/note
  is_client || return 0
  awk -v name="${device%%_*}" -v what="$what" -v column="$column" -v unit="$unit" \
    '/^ *[0-9]+ +[0-9]+/ {line = $0} END {n = split(line, field); print "bench", (name ~ /^mlx5/ ? "hca" : "rxe"), what, field[n - column], unit}' /tmp/client
}
rates() {
  local tool
  for tool in write send read; do
    measure $tool-64KiB 1 MB/s ib_${tool}_bw -s 65536 -D "$duration" -f 1
  done
  measure write-1MiB 1 MB/s ib_write_bw -s 1048576 -n 40
  for tool in write send read; do
    measure $tool-2B 0 Mops/s ib_${tool}_bw -s 2 -D "$duration" -f 1
  done
  for tool in write send read; do
    measure $tool-2B-lat 4 us ib_${tool}_lat -s 2 -n 2000
  done
}
rates
if [[ -z $side ]]; then
  modprobe -a rdma_rxe dummy || fail "modprobe"
  ip link add wire0 type dummy && ip link set wire0 mtu 4200 up && ip address add 10.10.0.1/24 dev wire0 || fail "no network interface"
  rdma link add rxe0 type rxe netdev wire0 || fail "no software RDMA device"
  device=rxe0 mine=10.10.0.1 theirs=10.10.0.1
  find_gid "$(gid_of "$mine")"
  rates
fi
