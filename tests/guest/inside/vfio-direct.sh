# SPDX-License-Identifier: BSD-3-Clause
# boot: --debian 13 --hca link=ib --mem 3G --append intel_iommu=on -device intel-iommu,intremap=on
# program: dv_vfio
# ask: -
# breaks: cmd-reserved-bits page-address object-unknown object-reference
# The physical function behind the guest's IOMMU, driven from user space by libmlx5's mlx5 VFIO driver in one program: traffic and interrupts
# of its own EQs, wrong commands, pages that the firmware asks for and gives back, the port's events, the card's health; then the kernel has
# it back.
wait_active mlx5_0
mark_kernel_log
physical=${pf##*/}
give_to_vfio "$physical"
ask_the_host="$(declare -f fail guest_port ask)"
timeout 200 env ASK_PAGES="$ask_the_host; ask inject 'fault=page_request,action=ask,pages=64,at=+0'" \
  GIVE_PAGES="$ask_the_host; ask inject 'fault=page_request,action=ask,pages=-64,at=+0'" \
  TOGGLE_PORT="$ask_the_host; ask inject link=down && ask inject link=up" \
  FAIL_HEALTH="$ask_the_host; ask inject 'fault=health,syndrome=1,reset=on,at=+0'" dv_vfio "$physical" || fail "dv_vfio: status $?"
ask inject "fault=health,syndrome=0,at=+0" >/dev/null
take_from_vfio "$physical"
within 60 grep -qs ACTIVE "$pf"/infiniband/*/ports/1/state
pair 18515 60 ibv_rc_pingpong -d "$(rdma_of "$pf")" -c -n 100 || fail "the physical function afterwards"
dmesg | grep -i 'DMAR.*fault' && fail "the IOMMU refused an access"
no_complaints "a function driven from user space"
