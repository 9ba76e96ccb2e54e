# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=2
# disk: forwarding-disk
# program: mcast_tool
# The kernel's own tests of forwarding (tools/testing/selftests/net/forwarding) on a card in switchdev mode: hosts are virtual functions,
# the switch's ports their representors. docs/testing.md has the table of results. $test_argument: some alone, with commas between their names.
mark_kernel_log
port=$(net_of "$pf")
ip link set "$port" up || fail "$port"
to_switchdev 2
for vf in 0 1; do
  basename "$(vf_of $vf)" >/sys/bus/pci/drivers/mlx5_core/bind || fail "bind of $vf"
  within 60 test -d "$pf/virtfn$vf/net"
  net[vf]=$(net_of "$(vf_of $vf)")
done
mkdir -p /tmp/disk /tmp/forwarding /tmp/bin
mount -o ro /dev/vdc /tmp/disk && cp /tmp/disk/tests/* /tmp/forwarding || fail "no tests"
# Of the same Debian as this root; only their libraries lie elsewhere.
for program in jq mausezahn ncat; do
  printf '#!/bin/bash\nexec env LD_LIBRARY_PATH=/tmp/disk/root/usr/lib/x86_64-linux-gnu:/tmp/disk/root/lib/x86_64-linux-gnu %s "$@"\n' \
    "$(find /tmp/disk/root/usr/*bin/$program)" >/tmp/bin/$program && chmod +x /tmp/bin/$program || fail "$program"
done
for name in mreceive msend; do ln -s "$(command -v mcast_tool)" "/tmp/bin/$name" || fail "$name"; done
# It has no user of its own in this root.
printf '#!/bin/bash\nexec %s -Z root "$@"\n' "$(command -v tcpdump)" >/tmp/bin/tcpdump && chmod +x /tmp/bin/tcpdump || fail "tcpdump"
PATH=/tmp/bin:$PATH
printf 'NETIF_CREATE=no\nPING_COUNT=3\nTC_HIT_TIMEOUT=5000\n' >/tmp/forwarding/forwarding.config

offload() {
  local dev how=$1
  shift
  for dev in "$@"; do ethtool -K "$dev" hw-tc-offload "$how" || fail "hw-tc-offload $how on $dev"; done
}
# run NAME [TESTS] -- INTERFACE...: one of them, its lines in /tmp/results.
declare -A ran=()
run() {
  local name=$1 tests='' status=0
  shift
  if [[ $1 != -- ]]; then tests=$1 && shift; fi
  shift
  [[ -z $test_argument || ,$test_argument, == *,"$name",* ]] || return 0
  ran[$name]=yes
  (cd /tmp/forwarding && TESTS=$tests timeout 900 bash "./$name.sh" "$@") >/tmp/out 2>&1 || status=$?
  echo "== $name${tests:+ ($tests)} on $*: status $status" | tee -a /tmp/results
  grep -a -e '^TEST:' -e '^INFO:' -e '^SKIP' -e FAIL -e '^\s' /tmp/out | tee -a /tmp/results
  # One that leaves early, or prints nothing, may do so with status 0.
  grep -aqE '^TEST: .*\[ *OK *\]' /tmp/out || echo "FAIL: no test of $name passed" | tee -a /tmp/results
  ((status == 0)) || tail -n 15 /tmp/out
  for dev in "${net[@]}" "${rep[@]}"; do ip link set "$dev" nomaster; ip link set "$dev" up; done
}
offload off "${net[@]}" "${rep[@]}"
run bridge_vlan_aware -- "${net[0]}" "${rep[0]}" "${rep[1]}" "${net[1]}"
run bridge_vlan_unaware -- "${net[0]}" "${rep[0]}" "${rep[1]}" "${net[1]}"
run bridge_mdb -- "${net[0]}" "${rep[0]}"
run tc_flower -- "${net[0]}" "${rep[0]}"
run tc_chains -- "${net[0]}" "${rep[0]}"
run tc_actions -- "${net[0]}" "${rep[0]}" "${rep[1]}" "${net[1]}"
# A representor gets whatever its function sends and no rule takes; the function is the one that chooses.
run local_termination standalone -- "${rep[0]}" "${net[0]}"
# Rules of the card. The driver offers no match on MPLS but in a bareudp tunnel, and of fragments none on the first alone.
offload on "${net[@]}" "${rep[@]}"
run tc_flower "match_dst_mac_test match_src_mac_test match_src_ip_test match_pcp_test match_vlan_test match_ip_tos_test match_indev_test match_ip_ttl_test" \
  -- "${net[0]}" "${rep[0]}"
offload off "${net[@]}" "${rep[@]}"

for name in ${test_argument//,/ }; do [[ -n ${ran[$name]:-} ]] || fail "no such test: $name"; done
((${#ran[@]} > 0)) || fail "nothing ran"
cat /tmp/results
if grep -aqE 'FAIL|status [1-9]' /tmp/results; then fail "$(grep -aE 'FAIL|status [1-9]' /tmp/results)"; fi
# tc_actions sends frames round in circles on purpose.
no_complaints "the kernel's tests of forwarding" "$switchdev_words|[Pp]acket exceeded mirred recursion limit|tc mirred to Houston|net_ratelimit: [0-9]+ callbacks suppressed"
