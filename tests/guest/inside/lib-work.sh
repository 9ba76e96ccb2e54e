# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Work for drivers that are watched (coverage.sh, coverage-gcov.sh): the drivers are loaded, of one HCA with Ethernet and two virtual functions.

# have_work verbs|ethernet|functions
have_work() {
  local port
  case $1 in
    verbs)
      port=$(net_of "$pf")
      ip link set "$port" up && ip address add 10.9.1.1/24 dev "$port" || fail "$port"
      wait_active
      within 30 has_v2_gid mlx5_0
      pingpong -d mlx5_0 -g "$(v2_gid_of mlx5_0)" -c -n 50
      ib_send_lat_pair() { pair 18600 60 ib_send_lat -d mlx5_0 -x "$(v2_gid_of mlx5_0)" -n 50 -s 64; }
      ib_send_lat_pair || fail "ib_send_lat"
      ;;
    ethernet)
      port=$(net_of "$pf")
      ip link set "$port" up && ip address add 10.9.1.1/24 dev "$port" || fail "$port"
      wait_active
      ethtool -S "$port" >/dev/null || fail "ethtool -S"
      ethtool -G "$port" rx 512 || fail "ethtool -G"
      ethtool -K "$port" gro off || fail "ethtool -K"
      ip link set "$port" mtu 4000 || fail "mtu"
      ip link add link "$port" name vlan7 type vlan id 7 && ip link set vlan7 up || fail "VLAN"
      ping -q -c 3 -i 0.2 -W 1 -I "$port" 10.9.1.9 # nobody answers
      ip link delete vlan7
      ;;
    functions)
      echo 2 >"$pf/sriov_numvfs" || fail "two virtual functions"
      within 60 test -d "$pf/virtfn1/infiniband"
      ip link set "$(net_of "$pf")" vf 0 mac 02:00:00:00:00:05 vlan 5 || fail "ip link set vf"
      echo 0 >"$pf/sriov_numvfs" || fail "no virtual functions"
      ;;
    *) fail "no work called $1" ;;
  esac
}
