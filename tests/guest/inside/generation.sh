# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib,profile=connectx6-hdr200,node_guid=0002c90300112233
# The card is what its profile's generation says, in every tool that tells: a ConnectX-6. And it works as one.
mark_kernel_log
wait_active mlx5_0
address=$(hca_addresses)

# shows PATTERN COMMAND...
shows() {
  local want=$1 text
  shift
  text=$("$@" 2>&1) || fail "$*: status $?: $text"
  grep -Eq -- "$want" <<<"$text" || fail "$* does not show '$want':"$'\n'"$text"
  note "ok: $* shows $want"
}

shows '0207: 15b3:101b' lspci -n -s "$address"
# The names, where the guest has pci.ids.
if [[ -r /usr/share/misc/pci.ids ]]; then shows 'MT28908 Family \[ConnectX-6\]' lspci -s "$address"; fi
shows 'LnkCap:.*Speed 16GT/s.* Width x16' lspci -vv -s "$address"
shows 'Vital Product Data' lspci -vv -s "$address"
shows 'Product Name: ConnectX-6 ' lspci -vv -s "$address"
shows '\[PN\] Part number: MCX653105A-HDAT' lspci -vv -s "$address"
shows '\[SN\] Serial number: 0002c90300112233' lspci -vv -s "$address"
shows '\[RV\] Reserved: checksum good' lspci -vv -s "$address"
# The vendor's reader, where the guest has it.
if command -v mstvpd >/dev/null; then shows 'PN: *MCX653105A-HDAT' mstvpd "$address"; fi

shows 'vendor_part_id:[[:space:]]*4123' ibv_devinfo -d mlx5_0
shows 'fw_ver:[[:space:]]*20\.35\.1000' ibv_devinfo -d mlx5_0
shows 'board_id:[[:space:]]*HCA_0000004123' ibv_devinfo -d mlx5_0
shows 'hw_ver:[[:space:]]*0x0' ibv_devinfo -d mlx5_0
# HDR, four lanes of 50 Gb/s.
shows 'active_speed:[[:space:]]*50\.0 Gbps' ibv_devinfo -v -d mlx5_0
shows '200 Gb/sec \(4X HDR\)' cat /sys/class/infiniband/mlx5_0/ports/1/rate
shows 'MT4123 ConnectX6' cat /sys/class/infiniband/mlx5_0/node_desc
# What it counts, and what the kernel's driver asks of management registers.
shows 'BAD_PKEY_CNTR' ibv_devinfo -v -d mlx5_0
shows 'BAD_QKEY_CNTR' ibv_devinfo -v -d mlx5_0
if command -v devlink >/dev/null; then
  shows 'fw(.version)? 20\.35\.1000' devlink dev info "pci/$address"
fi

pingpong
pingpong -c -s 65536 -n 200
no_complaints "a ConnectX-6"
