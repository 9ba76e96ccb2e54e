# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,vfs=1,ats=on,id=card,options=memory.iotlb=64:memory.atc=1024 --hca link=ib --append intel_iommu=on --append iommu.strict=1 -device intel-iommu,device-iotlb=on
# ask: -
# ATS behind an IOMMU that knows it: the kernel switches it on, for the physical function and for a virtual one, and invalidates what it
# unmaps; the card that was not given it shows none.
mark_kernel_log
address=$(hca_addresses | head -n 1)
other=$(hca_addresses | tail -n 1)
counter() { ask counter "$1" card; }
shows() { lspci -vvv -s "$1" | grep -A2 'Address Translation Service' | tr '\n' ' '; }
enabled() { grep -q 'ATSCtl:.*Enable+' <<<"$(shows "$1")" || fail "$1: $(shows "$1")"; }
[[ -z $(shows "$other") ]] || fail "$other: $(shows "$other")"
shows "$address" && echo
enabled "$address"
ip link set "$(net_of "$pf")" up || fail "no interface"
wait_active mlx5_0
wait_active mlx5_1
((before = $(counter ats_invalidations))) || fail "nothing has been invalidated"
pingpong -d mlx5_0 -g 0 -c -n 100
pair 18520 60 ib_write_bw -d mlx5_0 -x 0 -F -s 65536 -n 100 || fail "ib_write_bw"
(($(counter ats_invalidations) > before)) || fail "what programs had registered was not invalidated"
(($(counter atc_hits) > 100)) || fail "translations are not kept: $(counter atc_hits) hits, $(counter atc_misses) misses"
note "kept: $(counter atc_hits) hits, $(counter atc_misses) misses; $(counter ats_invalidations) invalidations"

echo 1 >"$pf/sriov_numvfs" || fail "sriov_numvfs"
vf=$(basename "$(vf_of 0)")
within 60 test -d "$pf/virtfn0/net"
ip link set "$(net_of "$(vf_of 0)")" up || fail "no interface"
enabled "$vf"
device=$(rdma_of "$(vf_of 0)")
wait_active "$device"
before=$(counter ats_invalidations)
pingpong -d "$device" -g 0 -c -n 100
(($(counter ats_invalidations) > before)) || fail "nothing of the virtual function's was invalidated"
echo 0 >"$pf/sriov_numvfs" || fail "sriov_numvfs"

# A reset of the function switches it off; the kernel restores it.
for driver in mlx5_ib mlx5_core; do modprobe -r $driver || fail "modprobe -r"; done
echo 1 >"/sys/bus/pci/devices/$address/reset" || fail "reset"
enabled "$address"
setpci -s "$address" ECAP_ATS+6.w=0000 || fail "setpci"
hits=$(counter atc_hits) misses=$(counter atc_misses)
hca_drivers || fail "modprobe"
wait_active mlx5_1
[[ $(counter atc_hits) == "$hits" && $(counter atc_misses) == "$misses" ]] || fail "switched off by hand, it keeps translations"
no_complaints "ATS"
