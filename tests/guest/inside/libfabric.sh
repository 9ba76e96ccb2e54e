# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 3G
# disk: package-disk programs libfabric-bin ibverbs-providers perftest iproute2 xdp-tools ibutils dash
# libfabric of Debian 12 (1.17) and 13 (2.1): fi_pingpong over the verbs provider, connected and with datagrams, and over the layers that
# make reliable datagrams of these (ofi_rxm, ofi_rxd); payloads compared. Debian's libfabric has no UCX provider.
mark_kernel_log
ends_up 4200
package_roots
modprobe rdma_ucm || fail "rdma_ucm"

# pingpong_over DEBIAN PROVIDER ENDPOINT SIZE...
pingpong_over() {
  local debian=$1 provider=$2 endpoint=$3 size
  local -a run=()
  shift 3
  for size in "$@"; do
    run=(env LD_LIBRARY_PATH=/tmp/lib chroot "/tmp/roots/$debian" fi_pingpong -p "$provider" -e "$endpoint" -d "mlx5_0$([[ $endpoint != dgram && $provider != *rxd ]] || echo -dgram)" -I 100 -c -S "$size")
    ends 60 tcp:47592 "${run[@]}" -- "${run[@]}" "$theirs"
    grep -qE '^[0-9]+k? +100 +=100 ' /tmp/client || fail "$provider $endpoint: $(</tmp/client)"
    tail -n 1 /tmp/client
  done
}
for debian in 12 13; do
  env LD_LIBRARY_PATH=/tmp/lib chroot "/tmp/roots/$debian" fi_info --version | head -n 1
  pingpong_over $debian verbs msg 64 65536
  pingpong_over $debian 'verbs;ofi_rxm' rdm 64 65536
  pingpong_over $debian verbs dgram 64 2048
  pingpong_over $debian 'verbs;ofi_rxd' rdm 64 65536
done
no_complaints "libfabric"
