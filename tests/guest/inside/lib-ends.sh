# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Runs inside the guest, between lib.sh and the test's own script: tests with a server and a client, which are the same whether
# both ends are in this guest or in two joined by a wire (./hcasim pair). In the latter, both guests run the same script, and:
#   side             a or b; empty with one guest           mine, theirs   this guest's address, and that of the other end
#   device, gid      this guest's RDMA device and GID       client         which guest is the client of what follows (a, b)
# Guests tell each other where they are over a port of the virtio console, so that nothing of it is on the wire.

side=$(sed -n 's/.*hcasim\.side=\([ab]\).*/\1/p' /proc/cmdline)
client=a
step_number=0
peer_part=''
peer_in='' # what the other guest has said and this one has not asked for yet, a line each

# ends_up [MTU]: this guest's addresses; both ends of the wire are there when it returns.
ends_up() {
  local name
  if [[ -z $side ]]; then
    device=${device:-mlx5_0}
    one_end_up "$@"
    return
  fi
  for name in /sys/class/virtio-ports/*/name; do
    [[ -r $name && $(<"$name") == hcasim.peer ]] || continue
    name=${name%/name}
    exec 8<>"/dev/${name##*/}"
    peer_port=yes
  done
  wire-up "$@" || fail "wire-up"
  # shellcheck disable=SC1091
  . /run/wire
  mine=$address theirs=$peer mine6=$address6 theirs6=$peer6
  [[ -z $gid ]] || wait_active "$device"
  settled
  note "guest $side: $interface, $device, GID ${gid:-none}, $mine"
  [[ -n ${peer_port:-} ]] || peer_over_tcp
  barrier up 180
}

# Guests in lockstep have no port of that kind: nothing joins them but the wire.
peer_over_tcp() {
  local tries=0
  if [[ $side == a ]]; then
    socat "TCP-LISTEN:7471,reuseaddr" PTY,link=/tmp/peer,raw,echo=0 &
  else
    socat "TCP:$theirs:7471,retry=600,interval=0.2" PTY,link=/tmp/peer,raw,echo=0 &
  fi
  until [[ -e /tmp/peer ]]; do
    tries=$((tries + 1))
    ((tries < 600)) || fail "the other guest cannot be reached over $interface"
    sleep 0.2
  done
  exec 8<>/tmp/peer
  peer_port=yes
}

# The same with one guest: the HCA's interface, whose port is a cable to itself.
one_end_up() {
  local link=/sys/class/infiniband/$device/ports/1/link_layer
  within 60 test -r "$link" # of a device that comes up now, this is later than its own directory
  if [[ $(<"$link") != Ethernet ]]; then
    wait_active "$device"
    mine=localhost theirs=localhost gid=
    return
  fi
  within 60 test -d "/sys/class/infiniband/$device/device/net"
  interface=$(ls "/sys/class/infiniband/$device/device/net" | head -n 1)
  [[ -n $interface ]] || fail "$device has no network interface"
  [[ -z ${1:-} ]] || ip link set "$interface" mtu "$1" || fail "mtu $1"
  ip link set "$interface" up && ip address replace 10.9.0.1/24 dev "$interface" || fail "no address on $interface"
  wait_active "$device"
  settled
  mine=10.9.0.1 theirs=10.9.0.1
  find_gid "$(gid_of "$mine")"
}

# settled: no address of $interface is tentative any more. While the kernel looks whether somebody else has its link-local address,
# which takes up to 2 s, that one cannot be resolved, and a QP of its GID does not reach RTR ("Connection timed out").
settled() {
  local end=$((SECONDS + 30))
  while [[ -n $(ip -6 address show dev "$interface" tentative) ]]; do
    ((SECONDS < end)) || fail "$interface: still tentative: $(ip -6 address show dev "$interface")"
    sleep 0.2
  done
}

# ipoib_up: IPoIB on this guest's port, its name in $ipoib; $mine and $theirs become addresses there (10.9.1.x).
ipoib_up() {
  local dir end=$((SECONDS + 60))
  modprobe ib_ipoib || fail "ib_ipoib"
  for dir in /sys/class/net/*; do
    [[ $(<"$dir/type") == 32 ]] && ipoib=${dir##*/}
  done
  [[ -n ${ipoib:-} ]] || fail "there is no IPoIB interface"
  mine=${mine/10.9.0./10.9.1.} theirs=${theirs/10.9.0./10.9.1.}
  ip link set "$ipoib" up && ip address add "$mine/24" dev "$ipoib" || fail "$ipoib"
  until [[ $(<"/sys/class/net/$ipoib/carrier") == 1 ]]; do
    ((SECONDS < end)) || fail "$ipoib has no carrier: the broadcast group was not joined"
    sleep 0.2
  done
  note "$ipoib: mode $(<"/sys/class/net/$ipoib/mode"), MTU $(<"/sys/class/net/$ipoib/mtu"), $(ip -brief address show "$ipoib")"
  barrier ipoib
}

# gid_of IPV4, gid_of_link_local: the GID as sysfs writes it.
gid_of() {
  local -a part
  IFS=. read -r -a part <<<"$1"
  printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' "${part[@]}"
}
gid_of_link_local() {
  local -a byte
  IFS=: read -r -a byte <"/sys/class/net/$interface/address"
  printf 'fe80:0000:0000:0000:%02x%s:%sff:fe%s:%s%s' $((0x${byte[0]} ^ 2)) "${byte[@]:1}"
}

# find_gid GID [TYPE [SECONDS]]: its index into gid. With 0 seconds it may be missing: status 1.
find_gid() {
  local file index end=$((SECONDS + ${3:-20}))
  while :; do
    # 256 entries: one process looks at all.
    for file in $(grep -lxs "$1" "/sys/class/infiniband/$device/ports/1/gids/"*); do
      index=${file##*/}
      [[ $(cat "${file%/gids/*}/gid_attrs/types/$index" 2>/dev/null) == "${2:-RoCE v2}" ]] || continue
      gid=$index
      return
    done
    [[ ${3:-20} != 0 ]] || return 1
    ((SECONDS < end)) || fail "$device has no ${2:-RoCE v2} GID $1"
    sleep 0.2
  done
}

# tell TEXT: a line to the other guest.
tell() { printf '%s\n' "$*" >&8; }

# hear PREFIX [SECONDS]: waits for a line of the other guest that starts so, and sets heard to the rest of it.
hear() {
  local line limit=${2:-120} end=$((SECONDS + ${2:-120}))
  while :; do
    while IFS= read -r line; do
      [[ $line == "$1"* ]] || continue
      heard=${line#"$1"}
      peer_in=$(grep -vxF -- "$line" <<<"$peer_in")
      return
    done <<<"$peer_in"
    ((SECONDS < end)) || fail "the other guest did not say '$1' within $limit s"
    # At end of file the other guest is not there yet, or gone.
    if IFS= read -r -t 1 -u 8 line; then
      line=$peer_part$line
      peer_part=
      if [[ $line == failed ]]; then
        peer_failed=yes
        tail -n 30 /tmp/server /tmp/client 2>/dev/null
        fail "the other guest failed"
      fi
      peer_in+=$line$'\n'
    else
      peer_part+=$line # what there was of a line when time was up
      sleep 0.1
    fi
  done
}

# barrier NAME [SECONDS]: both guests are here.
barrier() {
  [[ -n $side ]] || return 0
  tell "at $1."
  hear "at $1." "${2:-120}"
}

# The end of a pair's script: neither guest goes before the other is done.
passed() {
  barrier end 180
  echo "$*"
}

is_server() { [[ -z $side || $side != "$client" ]]; }
is_client() { [[ -z $side || $side == "$client" ]]; }

# until_ready KIND PID: a server listens: KIND is tcp:PORT, cm (RDMA CM), group:HEX (has joined a multicast group, as
# /proc/net/igmp writes it), line:PATTERN (it prints that when it is ready), text:PATTERN (it has printed that, and posts its
# receives next).
until_ready() {
  local end=$((SECONDS + 60))
  case $1 in
    tcp:*) until_listens "${1#tcp:}" "$2" ;;
    cm)
      until rdma resource show cm_id 2>/dev/null | grep -q LISTEN; do
        kill -0 "$2" 2>/dev/null && ((SECONDS < end)) || return 1
        sleep 0.1
      done
      ;;
    group:*)
      until grep -q "${1#group:}" /proc/net/igmp; do
        kill -0 "$2" 2>/dev/null && ((SECONDS < end)) || return 1
        sleep 0.1
      done
      sleep 1
      ;;
    text:*)
      until grep -q -- "${1#text:}" /tmp/server; do
        kill -0 "$2" 2>/dev/null && ((SECONDS < end)) || return 1
        sleep 0.1
      done
      sleep 2
      ;;
    line:*)
      until grep -q -- "${1#line:}" /tmp/server; do
        kill -0 "$2" 2>/dev/null && ((SECONDS < end)) || return 1
        sleep 0.1
      done
      ;;
    *) fail "until_ready does not know '$1'" ;;
  esac
}

# ends LIMIT KIND SERVER... -- CLIENT...: a server and its client, both within LIMIT seconds, both must end with status 0.
# Their output is in /tmp/server and /tmp/client (in two guests: one of them), and shown when one fails. Their input: ends_input.
ends() { try_ends "$@" || fail "${ends_what:-$*}"; }

try_ends() {
  local limit=$1 kind=$2 server_pid='' status=0 server_status=0 start=$SECONDS input=${ends_input:-/dev/null}
  local -a server=()
  shift 2
  while [[ $1 != -- ]]; do
    server+=("$1")
    shift
  done
  shift
  step_number=$((step_number + 1))
  : >/tmp/server
  : >/tmp/client
  if is_server; then
    on_cpu 0 timeout -k 5 "$limit" "${server[@]}" <"$input" >/tmp/server 2>&1 &
    server_pid=$!
    until_ready "$kind" "$server_pid" || status=1
  fi
  if ((status != 0)); then echo "the server did not come up" >/tmp/client; else barrier "$step_number ready"; fi
  if ((status == 0)) && is_client; then
    on_cpu 1 timeout -k 5 "$limit" "$@" <"$input" >/tmp/client 2>&1 || status=$?
  fi
  if [[ -n $server_pid ]]; then
    if ((status != 0)); then kill "$server_pid" 2>/dev/null; fi
    wait "$server_pid" || server_status=$?
  fi
  if ((status != 0 || server_status != 0)); then
    if is_server; then
      echo "--- server (status $server_status): ${server[*]}"
      cat /tmp/server
    fi
    if is_client; then
      echo "--- client (status $status): $*"
      cat /tmp/client
    fi
    return 1
  fi
  barrier "$step_number done" "$((limit + 20))"
  if is_client; then note "ok, $((SECONDS - start)) s: $*"; fi
}

# rdma_ends LIMIT TOOL ARGS...: a tool that takes -d DEVICE and, on Ethernet, the GID's index behind $gid_option.
rdma_ends() {
  local limit=$1 tool=$2
  shift 2
  local -a what=("$tool" -d "$device" ${gid:+"$gid_option" "$gid"} -p 18515 "$@")
  ends "$limit" tcp:18515 "${what[@]}" -- "${what[@]}" "$theirs"
}

# ibv_rc_pingpong and its kin.
pingpong_ends() {
  local gid_option=-g
  rdma_ends "${ends_limit:-60}" "$@"
}

# perftest's tools. Those of the events print what they cannot do and go on: looked for in what they print.
perftest_ends() {
  local gid_option=-x tool=$1
  shift
  rdma_ends "${ends_limit:-120}" "$tool" -F "$@"
  if grep -iE 'completion with error|failed|unable|couldn' /tmp/client /tmp/server; then fail "$tool $* speaks of errors"; fi
}
