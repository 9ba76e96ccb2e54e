# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,profile=connectx6-hdr200,vfs=4,node_guid=0002c90300112233
# disk: package-disk mstflint mstflint
# What the vendor's tools, which reach the card through its vendor specific capability, say of it: the same as the driver, and the
# same without any.
mark_kernel_log
address=$(hca_addresses)
ip link set "$(ls "/sys/bus/pci/devices/$address/net")" up || fail "ip link set up"
wait_active mlx5_0
package_roots

# tool DEBIAN COMMAND...: its output in $output; status 124: it hangs.
tool() {
  local debian=$1 status=0
  shift
  output=$(timeout 120 chroot "/tmp/roots/$debian" "/usr/bin/$1" "${@:2}" 2>&1 </dev/null) || status=$?
  return $status
}
# value NAME: what stands behind "NAME:" in $output.
value() { sed -nE "s/^$1: *([^ ].*[^ ]|[^ ]) *$/\1/p" <<<"$output"; }
# same WHAT GOT WANT
same() {
  [[ -n $3 && $2 == "$3" ]] || fail "mstflint's $1 is '$2', and not '$3':"$'\n'"$output"
  note "ok: $1 $2"
}

devinfo=$(ibv_devinfo -d mlx5_0)
of_driver() { sed -nE "s/^[[:space:]]*$1:[[:space:]]*//p" <<<"$devinfo"; }
version=$(of_driver fw_ver) psid=$(of_driver board_id) guid=$(of_driver node_guid | tr -d :)
mac=$(cat /sys/bus/pci/devices/"$address"/net/*/address | tr -d :)
devlink=$(devlink dev info "pci/$address")
grep -q "fw.version $version" <<<"$devlink" || fail "devlink has another version than $version: $devlink"
grep -q "fw.psid $psid" <<<"$devlink" || fail "devlink has another PSID than $psid: $devlink"

# query DEBIAN: compares it with what the driver says.
query() {
  tool "$1" mstflint -d "$address" query full || fail "mstflint query on Debian $1: status $?: $output"
  same "FW version" "$(value 'FW Version')" "$version"
  same "PSID" "$(value PSID)" "$psid"
  same "GUID" "$(value 'Base GUID')" "$guid        1"
  same "MAC" "$(value 'Base MAC')" "$mac            1"
  same "part number" "$(value 'Part Number')" MCX653105A-HDAT
  grep -qE '^Description: +ConnectX-6 host channel adapter' <<<"$output" || fail "no description: $output"
}
for debian in 12 13; do
  tool $debian mstflint --version || fail "no mstflint of Debian $debian: $output"
  note "Debian $debian: $output"
  query $debian
  tool $debian mstreg -d "$address" --reg_name MGIR --get || fail "mstreg: status $?: $output"
  grep -Eq '^device_id *\| 0x0000101b' <<<"$output" || fail "device_id: $output"
  grep -Eq '^hw_dev_id *\| 0x0000020f' <<<"$output" || fail "hw_dev_id: $output"
  tool $debian mstmcra "$address" 0xf0014 || fail "mstmcra: status $?: $output"
  [[ $output == 0x0000020f ]] || fail "the chip is not a ConnectX-6: $output"
  # Nothing can be set: Debian 13's says so of all that is there, Debian 12's leaves that out.
  status=0
  tool $debian mstconfig -d "$address" query || status=$?
  if ((debian == 12)); then
    [[ $status == 0 ]] && ! grep -q NUM_OF_VFS <<<"$output" || fail "mstconfig: status $status: $output"
  else
    [[ $status == 0 ]] && grep -qE 'RO +NUM_OF_PF +1 *$' <<<"$output" && grep -qE 'RO +NUM_OF_VFS +4 *$' <<<"$output" &&
      grep -qE 'RO +LRO_LOG_TIMEOUT3 +10 *$' <<<"$output" || fail "mstconfig: status $status: $output"
  fi
  # What this card does not have is an ordinary error, or nothing to be seen; nobody waits for ever.
  tool $debian mstregdump "$address" || fail "mstregdump: status $?"
  grep -qi '^0x000f0014 0x0000020f' <<<"$output" || fail "mstregdump has no chip ID in $(wc -l <<<"$output") lines"
  for command in "mstflint -d $address verify" "mstflint -d $address --no_fw_ctrl query" "mstcongestion -d $address -q"; do
    status=0
    # shellcheck disable=SC2086 # words
    tool $debian $command || status=$?
    ((status <= 1)) || fail "$command: status $status: $output"
    note "$command: status $status: $(head -c 300 <<<"$output")"
  done
  query $debian # it still does
done
no_complaints "the vendor's tools"

note "without a driver"
echo "$address" >"/sys/bus/pci/devices/$address/driver/unbind"
query 12
query 13
