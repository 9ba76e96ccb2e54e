# SPDX-License-Identifier: BSD-3-Clause
# breaks: congestion-parameter
# boot: --hca link=eth,options=ecn=0.02
# DCQCN as the driver sees it: parameters in debugfs, counters that move when packets are marked, and a flow that is slower
# for it. tests/model shows the formulas.
mark_kernel_log
mount -t debugfs none /sys/kernel/debug 2>/dev/null || true
ip link set "$(ls /sys/class/infiniband/mlx5_0/device/net)" up || fail "the interface does not come up"
ends_up 4200
params=(/sys/kernel/debug/mlx5/*/cc_params)
[[ -d ${params[0]} ]] || fail "no cc_params"
cc=${params[0]}
value() { cat "$cc/$1" || fail "$1 cannot be read"; }
expect() { [[ $(value "$1") == "$2" ]] || fail "$1 is $(value "$1"), not $2"; }
# What mlxconfig reports of a card as delivered.
expect rp_clamp_tgt_rate 0
expect rp_clamp_tgt_rate_ati 1
expect rp_time_reset 300
expect rp_byte_reset 32767
expect rp_threshold 1
expect rp_ai_rate 5
expect rp_hai_rate 50
expect rp_gd 11
expect rp_min_dec_fac 50
expect rp_min_rate 1
expect rp_rate_to_set_on_first_cnp 0
expect rp_dce_tcp_g 1019
expect rp_dce_tcp_rtt 1
expect rp_rate_reduce_monitor_period 4
expect rp_initial_alpha_value 1023
expect np_min_time_between_cnps 4
expect np_cnp_dscp 48
expect np_cnp_prio 6
# Each of them can be written, alone.
for file in "$cc"/*; do
  name=${file##*/}
  old=$(value "$name")
  new=$((old == 1 ? 0 : 1))
  case $name in
    rp_min_rate | rp_dce_tcp_rtt | rp_rate_reduce_monitor_period | rp_initial_alpha_value) new=7 ;;
  esac
  echo "$new" >"$file" || fail "$name cannot be written"
  expect "$name" "$new"
  echo "$old" >"$file" || fail "$name cannot be written"
  expect "$name" "$old"
done
! echo 101 2>/dev/null >"$cc/rp_min_dec_fac" || fail "101 % taken"
expect rp_min_dec_fac 50
expect rp_time_reset 300

counter() { cat "/sys/class/infiniband/$device/ports/1/hw_counters/$1" || fail "no counter $1"; }
rate() { awk '$1 == 65536 { print int($4) }' /tmp/client; } # MB/s
perftest_ends ib_write_bw -s 65536 -n 2000
fast=$(rate)
for name in np_ecn_marked_roce_packets np_cnp_sent rp_cnp_handled; do
  sleep 1.1 # the driver reads them once a second at most
  (($(counter $name) > 0)) || fail "$name did not move"
  note "$name $(counter $name), rp_cnp_ignored $(counter rp_cnp_ignored)"
done
(($(counter np_cnp_sent) <= $(counter np_ecn_marked_roce_packets))) || fail "more CNPs than marks"

# A rate that nothing raises: 100 Mb/s from the first mark on.
for setting in rp_ai_rate=0 rp_hai_rate=0 rp_rate_to_set_on_first_cnp=100; do echo "${setting#*=}" >"$cc/${setting%=*}" || fail "$setting"; done
perftest_ends ib_write_bw -s 65536 -n 300
note "$fast MB/s with few cuts, $(rate) MB/s at 100 Mb/s"
(($(rate) <= 16 && $(rate) >= 1 && $(rate) < fast)) || fail "not paced: $(rate) MB/s after $fast"
# Of the value that is none.
no_complaints "congestion control" 'MODIFY_CONG_PARAMS\(0x[0-9a-f]+\) .*failed, status bad parameter'
