# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib,vfs=4
# watch: 400
# Virtual functions of an InfiniBand card come and go: 0 -> 4 -> 0, $test_argument times (3), with traffic between the functions. Nothing
# of them stays in the card.
rounds=${test_argument:-3}
wait_active mlx5_0
[[ $(<"$pf/sriov_totalvfs") == 4 ]] || fail "sriov_totalvfs is $(<"$pf/sriov_totalvfs")"
pair 18515 60 ibv_rc_pingpong -d mlx5_0 -c -n 100 || fail "the physical function" # which makes what drivers make once
echo "watch: before"
sleep 2
for ((round = 1; round <= rounds; round++)); do
  mark_kernel_log
  vfs 4
  mapfile -t rdma < <(devices 4)
  note "round $round: ${rdma[*]}"
  ibv_devinfo -d "${rdma[4]}" >/tmp/info || fail "ibv_devinfo: $(cat /tmp/info)"
  grep -q 'vendor_part_id:[[:space:]]*4122' /tmp/info || fail "the virtual function says: $(cat /tmp/info)"
  between "${rdma[0]}" "${rdma[1]}" ibv_rc_pingpong -c -n 200
  between "${rdma[2]}" "${rdma[3]}" ibv_rc_pingpong -c -s 65536 -n 50
  between "${rdma[4]}" "${rdma[0]}" ibv_ud_pingpong -c -n 100
  between "${rdma[1]}" "${rdma[4]}" ibv_uc_pingpong -c -n 100
  if ((round == 1)); then
    # Within one function, and what perftest does of it all.
    between "${rdma[2]}" "${rdma[2]}" ibv_rc_pingpong -c -n 100
    for tool in ib_send ib_write ib_read; do
      perftest_between "${rdma[1]}" "${rdma[2]}" ${tool}_lat -s 2 -n 50
      perftest_between "${rdma[0]}" "${rdma[3]}" ${tool}_bw -s 65536 -n 100
    done
    perftest_between "${rdma[3]}" "${rdma[4]}" ib_atomic_lat -n 50
    # One that is reset by its host comes up anew, and the others do not notice.
    bdf=$(basename "$(vf_of 1)")
    echo "$bdf" >"/sys/bus/pci/drivers/mlx5_core/unbind" || fail "unbind $bdf"
    echo 1 >"/sys/bus/pci/devices/$bdf/reset" || fail "reset of $bdf"
    between "${rdma[1]}" "${rdma[3]}" ibv_rc_pingpong -c -n 100
    # How many interrupts it has is the physical function's to say, while no driver has it.
    [[ $(<"$pf/sriov_vf_total_msix") == 96 ]] || fail "sriov_vf_total_msix is $(<"$pf/sriov_vf_total_msix")"
    for vectors in 1 33; do
      if (echo $vectors >"$(vf_of 1)/sriov_vf_msix_count") 2>/dev/null; then fail "$vectors vectors for a virtual function"; fi
    done
    table() { lspci -vv -s "$bdf" | sed -nE 's/.*MSI-X: Enable[+-] Count=([0-9]+) .*/\1/p'; }
    [[ $(table) == 16 ]] || fail "its table has $(table) entries"
    echo 6 >"$(vf_of 1)/sriov_vf_msix_count" || fail "6 vectors for a virtual function: $(dmesg | tail -n 3)"
    [[ $(table) == 6 ]] || fail "its table has $(table) entries, not 6"
    echo "$bdf" >"/sys/bus/pci/drivers/mlx5_core/bind" || fail "bind $bdf"
    within 60 grep -qs ACTIVE "$(vf_of 1)"/infiniband/*/ports/1/state
    between "$(rdma_of "$(vf_of 1)")" "${rdma[0]}" ibv_rc_pingpong -c -e -n 100
    note "with a table of 6 its driver uses $(find "$(vf_of 1)/msi_irqs" -type f | wc -l) interrupts"
    (($(find "$(vf_of 1)/msi_irqs" -type f | wc -l) <= 6)) || fail "these are more than it has"
    if (echo 8 >"$(vf_of 1)/sriov_vf_msix_count") 2>/dev/null; then fail "another number under a driver"; fi
  fi
  vfs 0
  no_complaints "virtual functions, round $round"
done
echo "watch: after"
sleep 2
within 30 test -e /sys/class/infiniband/mlx5_0
pair 18515 60 ibv_rc_pingpong -d mlx5_0 -c -n 100 || fail "the physical function afterwards"
no_complaints "virtual functions"
