# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,profile=connectx6-hdr200 --hca link=ib
# disk: package-disk mstflint mstflint
# The vendor's mstlink of both Debians: a link of each kind, up and closed by command; module and error correction.
mark_kernel_log
for device in /sys/bus/pci/drivers/mlx5_core/0*; do
  address=${device##*/}
  [[ -d $device/net && $(cat "$device/infiniband/"*/ports/1/link_layer) == Ethernet ]] && eth=$address || ib=$address
done
[[ -n $eth && -n $ib ]] || fail "no HCA of each kind"
interface=$(ls "/sys/bus/pci/devices/$eth/net")
verbs_name() { ls "/sys/bus/pci/devices/$1/infiniband"; }
ip link set "$interface" up || fail "ip link set up"
wait_active "$(verbs_name "$eth")"
wait_active "$(verbs_name "$ib")"
package_roots

# link DEBIAN ADDRESS [OPTION...]: mstlink's output, without colours, in $output.
link() {
  local debian=$1 address=$2 status=0
  shift 2
  output=$(timeout 120 chroot "/tmp/roots/$debian" /usr/bin/mstlink -d "$address" "$@" 2>&1 </dev/null) || status=$?
  output=$(sed 's/\x1b\[[0-9]*m//g' <<<"$output")
  ((status == 0)) || fail "Debian $debian, mstlink -d $address $*: status $status: $output"
}
# says NAME PATTERN: a line of $output, whole.
says() { grep -Eq "^$1 *: $2 *\$" <<<"$output" || fail "no '$1: $2':"$'\n'"$output"; }

for debian in 12 13; do
  link $debian "$eth" -m --show_fec
  says State Active
  says Speed 200G
  says Width 4x
  says FEC 'Standard_RS-FEC - \(544,514\)'
  says 'Status Opcode' 0
  says Identifier QSFP28
  says 'Vendor Name' hcasim
  says 'Power Class' '2.5 W max'
  says 'Vendor Part Number' SIM-QSFP28-SR4
  says 'FEC Capability 200G_4X' '0x280 .*'
  says 'Firmware Version' 20.35.1000
  note "Debian $debian, Ethernet: $(grep -c : <<<"$output") lines"

  link $debian "$ib"
  says State Active
  says 'Physical state' LinkUp
  says Speed 'IB-EDR'
  says Width 4x
  says FEC 'No FEC'
  says 'Status Opcode' 0
  note "Debian $debian, InfiniBand: $(grep -c : <<<"$output") lines"

  # As the driver has it.
  ip link set "$interface" down || fail "ip link set down"
  link $debian "$eth"
  says State Disable
  says 'Status Opcode' 1
  ip link set "$interface" up || fail "ip link set up"
  wait_active "$(verbs_name "$eth")"

  # A port that the tool closes and opens is closed and open to the driver too.
  for address in "$eth" "$ib"; do
    device=$(verbs_name "$address")
    link $debian "$address" --port_state DN
    within 30 grep -q DOWN "/sys/class/infiniband/$device/ports/1/state"
    link $debian "$address"
    says State Disable
    link $debian "$address" --port_state UP
    wait_active "$device"
  done
done
no_complaints mstlink
