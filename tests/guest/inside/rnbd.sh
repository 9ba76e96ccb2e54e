# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth
# modules: build-rnbd-modules
# A RAM disk by RNBD, over the kernel's RTRS, from one HCA to itself, by two paths: blocks go by RDMA WRITE with immediate data into the
# server's memory and back, whose keys it invalidates. Connections of one path are broken and made anew, while the other one goes on.
ends_up
mark_kernel_log
modprobe brd rd_nr=1 rd_size=65536 && modprobe rnbd-server dev_search_path=/dev && modprobe rnbd-client || fail "modules"
ip address add 10.9.0.11/24 dev "$(ip -o -4 address show to "$mine" | awk '{ print $2 }')" || fail "a second address"
session=/sys/devices/virtual/rtrs-client/test
echo "sessname=test path=ip:$mine path=ip:10.9.0.11 device_path=ram0 access_mode=rw" >/sys/devices/virtual/rnbd-client/ctl/map_device || fail "map"
within 20 test -b /dev/rnbd0
for size in 4k 64k 512-128k; do nvme_verify /dev/rnbd0 "$size"; done
head -c 16M /dev/urandom >/tmp/data
dd if=/tmp/data of=/dev/rnbd0 bs=1M oflag=direct status=none && cmp -n $((16 << 20)) /tmp/data /dev/ram0 || fail "what is on the disk is not what was written"
paths=("$session"/paths/*)
((${#paths[@]} == 2)) || fail "not two paths: ${paths[*]}"
for path in "${paths[@]}"; do
  read -r reads _ writes _ <"$path/stats/rdma"
  ((reads > 50 && writes > 50)) || fail "$path has carried $reads reads and $writes writes"
done
writes() { awk '{ print $3 }' "$path/stats/rdma"; }
carries() { (($(writes) > before + 20)); }
# Refused for as long as the server has not done with the connections before.
connects() { echo 1 >"$path/reconnect" && [[ $(<"$path/state") == connected ]]; } 2>/dev/null
for round in 1 2 3; do
  path=${paths[round % 2]}
  before=$(writes)
  nvme_verify /dev/rnbd0 64k --size=48m --loops=3 &
  busy=$!
  within 30 carries
  alive $busy || fail "the blocks were too few"
  echo 1 >"$path/disconnect" || fail "disconnect"
  within 30 connects
  wait "$busy" || fail "blocks while the connections were made anew, round $round"
done
nvme_verify /dev/rnbd0 4k
echo normal >/sys/block/rnbd0/rnbd/unmap_device || fail "unmap"
within 20 test ! -b /dev/rnbd0
rmmod rnbd-client rtrs-client rnbd-server rtrs-server rtrs-core || fail "the modules do not go"
no_complaints "RNBD" 'out-of-tree|module verification|disconnected|reconnected|rnbd_|rtrs_'
