# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Runs inside the guest, before the test's own script. Everything goes to one stream; the test ends with fail or pass.
exec 2>&1
ulimit -l unlimited

fail() {
  echo "FAIL: $*"
  # In a pair, the other guest need not wait for its time limit.
  if [[ -n ${peer_port:-} && -z ${peer_failed:-} ]]; then printf 'failed\n' >&8; fi
  echo "--- kernel log, last lines ---"
  dmesg | tail -n 40
  exit 1
}

note() { echo "[$(cut -d ' ' -f 1 /proc/uptime)] $*"; }

hca_drivers() { modprobe mlx5_core && modprobe mlx5_ib && modprobe ib_uverbs && modprobe ib_umad; }

# The port named $1 of the virtio console.
guest_port() {
  local name
  for name in /sys/class/virtio-ports/*/name; do
    [[ $(<"$name") == "$1" ]] || continue
    name=${name%/name}
    echo "/dev/${name##*/}"
  done
}

# The PCI addresses of the HCAs.
hca_addresses() {
  local device
  for device in /sys/bus/pci/devices/*; do
    [[ $(<"$device/vendor") == 0x15b3 ]] && echo "${device##*/}"
  done
}

# wait_active [DEVICE [SECONDS]]
wait_active() {
  local device=${1:-mlx5_0} limit=${2:-30} end=$((SECONDS + ${2:-30}))
  local state=/sys/class/infiniband/$device/ports/1/state
  until [[ -r $state && $(<"$state") == *ACTIVE* ]]; do
    ((SECONDS < end)) || fail "$device port 1 is '$(cat "$state" 2>&1)' after $limit s, not ACTIVE"
    sleep 0.2
  done
  note "$device port 1 is ACTIVE"
}

# What the kernel said since mark_kernel_log that it does not say of a healthy driver. Left out: what it says of a slow
# machine, which a guest under emulation on a busy host is. One such is a race of ib_ipoib (ipoib_send): a packet that fills
# its ring, and is sent and polled before the CPU that posted it has counted it, leaves the queue stopped with nothing under
# way. Head and tail are the same then; a completion that the HCA owed would make them differ.
mark_kernel_log() {
  mark_number=$((mark_number + 1)) # not in the pipeline, whose shell would keep it to itself
  echo "hcasim-mark-$$-$mark_number." | tee /tmp/mark >/dev/kmsg
}
mark_number=0
kernel_complaints() {
  local mark
  mark=$(</tmp/mark)
  # Without the mark nobody knows what it said.
  [[ $(dmesg) == *"$mark"* ]] || echo "the kernel's log has lost what was said since mark_kernel_log"
  dmesg -r | sed "1,/${mark//./\\.}/d" | awk '
    {
      match($0, /^<[0-9]+>/); level = substr($0, 2, RLENGTH - 2) % 8; text = substr($0, RLENGTH + 1)
      if (text ~ /hrtimer: interrupt took|perf: interrupt took too long|hogged CPU for|DL replenish lagged|clocksource: .*(watchdog|skew|unstable)|long keepalive RTT|Disabling rxhash, not supported when CQE compress/) next
      if (held != "" && match(text, /queue stopped 1, tx_head [0-9]+, tx_tail [0-9]+,/)) {
        split(substr(text, RSTART, RLENGTH), word, /[ ,]+/)
        if (word[5] == word[7]) { held = ""; next }
      }
      if (text ~ / ib[0-9]+: (NETDEV WATCHDOG|transmit timeout: latency)/) { held = held text "\n"; next }
      printf "%s", held; held = ""
      if (level <= 4 || text ~ /Call Trace|WARNING:|BUG:|Oops|general protection|cmd_work_handler|timeout. Will cause a leak/) print text
    }
    END { printf "%s", held }'
}
# no_complaints WHAT [PATTERN]: but for lines like that, which it says of what is in order.
no_complaints() {
  local text
  text=$(kernel_complaints)
  if [[ -n ${2:-} ]]; then text=$(grep -Ev -- "$2" <<<"$text") || (($? == 1)) || fail "grep"; fi
  [[ -z $text ]] || fail "the kernel complained about $*:"$'\n'"$(head -n 30 <<<"$text")"
}

# What the kernel has said since mark_kernel_log.
kernel_says() {
  local mark
  mark=$(</tmp/mark)
  dmesg | sed "1,/${mark//./\\.}/d"
}
# said SECONDS PATTERN: the kernel says so (a basic regular expression) within that time, if it has not since mark_kernel_log.
said() {
  local end=$((SECONDS + $1)) line
  until line=$(kernel_says | grep -m 1 -- "$2"); do
    ((SECONDS < end)) || fail "the kernel did not say '$2' within $1 s"
    sleep 0.2
  done
  echo "   ${line#*] }"
}
not_said() {
  local line
  if line=$(kernel_says | grep -m 1 -- "$1"); then fail "the kernel said '$line'"; fi
}
# ask QUESTION: what answer-guest says, of a test that has "# ask: -".
ask() {
  local answer port
  port=$(guest_port hcasim.ask)
  [[ -n $port ]] || fail "no console port hcasim.ask"
  exec 7<>"$port" || fail "cannot open $port"
  printf '%s\n' "$*" >&7
  IFS= read -r -t 60 answer <&7 || fail "no answer to: $*"
  exec 7>&-
  [[ $answer != error:* ]] || fail "$*: $answer"
  printf '%s' "$answer"
}
# The HCA gets this fault from outside, and has it when this returns.
inject() {
  local answer
  mark_kernel_log
  echo "inject: $1"
  answer=$(ask inject "$1") || fail "$answer"
}
# inject_into ID FAULT: the HCA id=ID does.
inject_into() {
  local answer
  echo "inject into $1: $2"
  answer=$(ask inject-into "$1" "$2") || fail "$answer"
}
# vector_of NAME: the MSI-X vector of the interrupt mlx5_NAME..., such as async or comp0.
vector_of() {
  local number
  number=$(awk -v name="mlx5_$1" '$NF ~ "^" name { for (i = 2; i < NF; i++) if ($i ~ /-edge$/) { print $i + 0; exit } }' /proc/interrupts)
  [[ -n $number ]] || fail "no interrupt mlx5_$1: $(cat /proc/interrupts)"
  echo $((number & 2047))
}
# within SECONDS COMMAND...: until it succeeds.
within() {
  local limit=$1 end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || fail "not within $limit s: $*"
    sleep 0.2
  done
}

# listens PORT [COMMAND...]: somebody does on this TCP port, there where COMMAND leads (such as: in_side 1).
listens() {
  local hex
  hex=$(printf ':%04X' "$1")
  "${@:2}" grep -qs "$hex 0*:0000 0A" /proc/net/tcp /proc/net/tcp6
}
# until_listens PORT PID: the server PID waits for its client on TCP port PORT.
until_listens() {
  local end=$((SECONDS + 60))
  until listens "$1"; do
    kill -0 "$2" 2>/dev/null || return 1
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

# tcp_between "PREFIX OF SERVER" "PREFIX OF CLIENT" ADDRESS [ARGS...]: iperf3, with what prefixes such as "in_side 1" lead to; what the
# client says is in /tmp/client.
tcp_between() {
  local server status=0 args=("${@:4}")
  ((${#args[@]} > 0)) || args=(-n 16M)
  $1 timeout 60 iperf3 -s -1 >/tmp/server 2>&1 &
  server=$!
  within 30 listens 5201 $1
  $2 timeout 60 iperf3 -c "$3" "${args[@]}" >/tmp/client 2>&1 || status=$?
  if ((status != 0)); then kill "$server" 2>/dev/null; fi
  wait "$server" || status=$?
  ((status == 0)) || fail "iperf3 to $3: $(cat /tmp/client /tmp/server)"
  note "to $3: $(grep receiver /tmp/client | tail -n 1)"
}

# alive PID...: all of them.
alive() {
  local pid
  for pid in "$@"; do kill -0 "$pid" 2>/dev/null || return 1; done
}

# Both ends poll: on one processor they would pass it to each other once a time slice.
on_cpu() {
  local cpu=$(($1 % $(nproc)))
  shift
  taskset -c "$cpu" "$@"
}

# package_roots: the roots of Debian 12 and 13 on the disk of package-disk are ready for chroot: /tmp/roots/12 and 13. There this machine's
# name is that of $mine, as programs ask for it. /tmp/lib (for LD_LIBRARY_PATH) has what alternatives are in Debian 12's libfabric: they
# are made by maintainer scripts, which are not run here.
package_roots() {
  local debian dir etc psm
  mkdir -p /tmp/roots
  mount -o ro /dev/vdc /tmp/roots || fail "no disk of packages"
  for debian in 12 13; do
    for dir in sys proc dev; do mount --rbind /$dir "/tmp/roots/$debian/$dir" || fail "bind $dir"; done
    mount -t tmpfs none "/tmp/roots/$debian/tmp" || fail "tmpfs"
    etc=/tmp/roots/$debian/etc
    mkdir -p "/tmp/etc/$debian/upper" "/tmp/etc/$debian/work"
    mount -t overlay -o "lowerdir=$etc,upperdir=/tmp/etc/$debian/upper,workdir=/tmp/etc/$debian/work" overlay "$etc" || fail "overlay"
    printf '127.0.0.1 localhost\n%s %s\n' "${mine:-127.0.0.1}" "$(hostname)" >"$etc/hosts"
    mkdir "/tmp/roots/$debian/tmp/lib"
    psm=$(find "/tmp/roots/$debian/usr/lib" -name 'libpsm_infinipath.so.1.*' | head -n 1)
    [[ -z $psm ]] || ln -s "${psm#"/tmp/roots/$debian"}" "/tmp/roots/$debian/tmp/lib/libpsm_infinipath.so.1"
  done
}

# pair PORT LIMIT TOOL ARGS...: TOOL as server and as client of it, both within LIMIT seconds. Their output is shown
# when one fails; the client's is in /tmp/client.PORT.
pair() {
  local port=$1 limit=$2 server status=0 server_status=0 start=$SECONDS
  shift 2
  on_cpu 0 timeout -k 5 "$limit" "$@" -p "$port" >"/tmp/server.$port" 2>&1 &
  server=$!
  if until_listens "$port" "$server"; then
    on_cpu 1 timeout -k 5 "$limit" "$@" -p "$port" localhost >"/tmp/client.$port" 2>&1 || status=$?
  else
    status=1
    echo "the server did not come up" >"/tmp/client.$port"
  fi
  if ((status != 0)); then kill "$server" 2>/dev/null; fi
  wait "$server" || server_status=$?
  if ((status != 0 || server_status != 0)); then
    echo "--- server (status $server_status): $*"
    cat "/tmp/server.$port"
    echo "--- client (status $status)"
    cat "/tmp/client.$port"
    return 1
  fi
  note "ok, $((SECONDS - start)) s: $*"
}

pingpong() { pair "${pingpong_port:-18515}" "${pingpong_limit:-60}" ibv_rc_pingpong "$@" || fail "ibv_rc_pingpong $*"; }
