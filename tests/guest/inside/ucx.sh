# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 3G
# disk: package-disk ucx ucx-utils ibverbs-providers
# UCX's transports over this HCA, as its ucx_perftest of Debian 12 (1.13) and 13 (1.18) drives them: two processes, all tests of a
# transport in one run. By itself a few sizes with the UCX of Debian 13; ucx:all: sizes from 8 bytes to 8 MiB, both versions, and on
# InfiniBand, where alone it is offered, rc_mlx5 with tag matching by the HCA; ucx:12, ucx:13, ucx:TRANSPORT: of all that the part of
# that version, that transport.
# ucx-ib: the same on InfiniBand.
mark_kernel_log
ends_up 4200
package_roots

transports='rc_verbs ud_verbs rc_mlx5 ud_mlx5 dc_mlx5' debians=13 full=
if [[ -n $test_argument ]]; then
  debians='12 13' full=yes
  case $test_argument in
    all) ;;
    12 | 13) debians=$test_argument ;;
    *) transports=$test_argument ;;
  esac
fi

# What UCX_TLS has to say for a transport: RC is connected by way of a UD transport.
declare -A tls=([rc_verbs]=rc_v [rc_mlx5]=rc_x)

# Iterations of a message size: many bytes take an emulated processor long.
iterations() { echo $(($1 <= 8192 ? 100 : $1 <= 65536 ? 20 : 4)); }
# line TEST SIZE: of a batch file: a name, and ucx_perftest's options.
line() { echo "$1-$2 -t $1 -s $2 -n $(iterations "$2") -w 2"; }
batch() {
  local test size
  if [[ -z $full ]]; then
    line tag_lat 8
    line tag_bw 8192
    line ucp_put_bw 65536
    line ucp_get 65536
    line stream_bw 200
    line ucp_am_bw 1048576
    line ucp_fadd 8
    line ucp_cswap 4
    return
  fi
  for test in tag_lat tag_bw ucp_put_lat ucp_put_bw ucp_get stream_lat stream_bw ucp_am_lat ucp_am_bw; do
    for size in 8 200 2000 8192 65536 1048576 8388608; do line "$test" "$size"; done
  done
  for test in ucp_add ucp_fadd ucp_swap ucp_cswap; do
    for size in 4 8; do line "$test" "$size"; done
  done
}

# ucx DEBIAN TRANSPORT [ENVIRONMENT...]: all of the batch; a table of what failed otherwise.
port=13400
failed=()
ucx() {
  local debian=$1 transport=$2 status=0 start=$SECONDS root=/tmp/roots/$1 name
  shift 2
  port=$((port + 1))
  batch >"$root/tmp/batch"
  local -a run=(env "UCX_TLS=${tls[$transport]:-$transport}" UCX_NET_DEVICES=mlx5_0:1 UCX_WARN_UNUSED_ENV_VARS=n "$@" chroot "$root"
    /usr/bin/ucx_perftest -p "$port" -b /tmp/batch -f -v)
  # With a terminal as its input that of Debian 13 goes without MPI, which it is linked with.
  ends_input=/dev/ttyS0 try_ends "$limit" "tcp:$port" "${run[@]}" -- "${run[@]}" 127.0.0.1 || status=$?
  local missing=()
  while read -r name _; do
    grep -Eq "^$name, *[0-9]+," /tmp/client || missing+=("$name")
  done <"$root/tmp/batch"
  if ((status != 0 || ${#missing[@]} > 0)) || grep 'ERROR' /tmp/client /tmp/server; then
    failed+=("Debian $debian $transport $*: ${missing[*]}")
    note "FAILED, $((SECONDS - start)) s: Debian $debian, $transport $*: ${missing[*]}"
    return
  fi
  [[ -z $full ]] || cut -d , -f 1-3,7 /tmp/client | grep -E '^[a-z_]+-[0-9]+,' || true
  note "ok, $((SECONDS - start)) s: Debian $debian, $transport $*, $(wc -l <"$root/tmp/batch") tests"
}
# tag_matching DEBIAN: rc_mlx5 with messages of all sizes matched by the HCA, which UCX's log tells.
tag_matching() {
  local log=/tmp/roots/$1/tmp/ucx.log
  rm -f "$log"
  ucx "$1" rc_mlx5 UCX_RC_MLX5_TM_ENABLE=y UCX_TM_THRESH=1 UCX_LOG_LEVEL=debug UCX_LOG_FILE=/tmp/ucx.log
  grep -q 'Activate tag offload' "$log" || failed+=("Debian $1: tags are not matched by the HCA")
  rm -f "$log"
}

limit=120
[[ -z $full ]] || limit=1200
for debian in $debians; do
  chroot "/tmp/roots/$debian" /usr/bin/ucx_info -v | head -n 1
  for transport in $transports; do
    ucx "$debian" "$transport"
    [[ $transport != rc_mlx5 || -z $full || -n $gid ]] || tag_matching "$debian"
  done
done
((${#failed[@]} == 0)) || fail "$(printf '%s\n' "" "${failed[@]}")"
no_complaints "UCX"
