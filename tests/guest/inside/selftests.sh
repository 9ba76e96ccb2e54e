# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,id=left,cable=right,generation=connectx7,options=keep_link=off --hca link=eth,id=right,generation=connectx7,options=keep_link=off --hca link=eth,id=loose,wire=unix:/tmp/hcasim-selftests-nobody --smp 6 --mem 3G
# disk: selftests-disk KERNEL
# file: selftests.txt
# The kernel's own tests of network drivers (tools/testing/selftests/drivers/net and drivers/net/hw) on a card; the remote end that they ask
# for is another one, in the name space "far". What each of their cases says is compared with selftests.txt, which knows what is skipped or
# fails, and why; what it does not know has to pass. $test_argument: some programs alone, with commas between their names (as in
# kselftest-list.txt, of drivers/net: "ping.py,hw/csum.py"), or with "!" before them all but these. docs/testing.md has the results.
kernel=6.12
[[ $(uname -r) == 6.12.* ]] || kernel=backports
[[ $(uname -r) != *-hcasim ]] || kernel=own-backports # of build-kernel
mapfile -t addresses < <(hca_addresses)
near=$(net_of "/sys/bus/pci/devices/${addresses[0]}")
far=$(net_of "/sys/bus/pci/devices/${addresses[1]}")
loose=$(net_of "/sys/bus/pci/devices/${addresses[2]}") # at its cable's other end there is nobody

ip netns add far || fail "name space" # before /run is seen in the other root, too
# A root of Debian 13, whose changes are in memory.
root=/tmp/root
mkdir -p /tmp/disk /tmp/changes $root && mount -o ro /dev/vdc /tmp/disk && mount -t tmpfs tmpfs /tmp/changes &&
  mkdir /tmp/changes/upper /tmp/changes/work || fail "no disk of tests"
mount -t overlay -o lowerdir=/tmp/disk,upperdir=/tmp/changes/upper,workdir=/tmp/changes/work overlay $root || fail "overlay"
mkdir -p $root/usr/lib/modules
for dir in proc sys dev run usr/lib/modules; do mount --rbind "/$dir" "$root/$dir" || fail "bind $dir"; done
mount -t tmpfs tmpfs $root/tmp || fail "tmpfs"
printf '127.0.0.1 localhost\n::1 localhost\n' >$root/etc/hosts && ip link set lo up || fail "localhost"
# What the tests' kernel configurations have built in, and here is a module that nothing loads by itself.
for module in netconsole macsec 8021q tls; do modprobe $module || fail "$module"; done
for mounted in debugfs:/sys/kernel/debug tracefs:/sys/kernel/tracing configfs:/sys/kernel/config bpf:/sys/fs/bpf; do
  [[ ! -d ${mounted#*:} ]] || mountpoint -q "$root${mounted#*:}" || mount -t "${mounted%%:*}" none "$root${mounted#*:}" || echo "no ${mounted%%:*}"
done
tests=$root/tests/drivers/net
# Other addresses than those that tests take themselves (of documentation: 192.0.2.0/24, 198.51.100.0/24, 2001:db8::/32).
cat >$tests/net.config <<TEXT
NETIF=$near
LOCAL_V4=172.31.77.1
LOCAL_V6=fd77:1::1
LOCAL_PREFIX_V6=fd77:2::/64
REMOTE_V4=172.31.77.2
REMOTE_V6=fd77:1::2
REMOTE_TYPE=netns
REMOTE_ARGS=far
TEXT
cp $tests/net.config $tests/hw/ || fail "net.config"
# Debian 13's ethtool has no JSON of channels yet, which a test asks for.
printf '#!/bin/bash\n' >$root/usr/local/bin/ethtool
cat >>$root/usr/local/bin/ethtool <<'TEXT'
if [[ $1 == --json && $2 == -l ]]; then
  /usr/sbin/ethtool -l "$3" | awk -v name="$3" '
    /^Pre-set maximums/ { suffix = "-max" }
    /^Current hardware/ { suffix = "" }
    $1 ~ /^(RX|TX|Other|Combined):$/ && $2 ~ /^[0-9]+$/ { kind = tolower($1); sub(":", "", kind); list = list ", \"" kind suffix "\": " $2 }
    END { print "[ { \"ifname\": \"" name "\"" list " } ]" }'
  exit "${PIPESTATUS[0]}"
fi
exec /usr/sbin/ethtool "$@"
TEXT
chmod +x $root/usr/local/bin/ethtool || fail "ethtool"
in_root() { chroot $root /usr/bin/env -i NETIF_NO_CABLE="$loose" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 KSFT_MACHINE_SLOW=1 "$@"; }

# Tests take interfaces down and up, and go on with their IPv6 addresses.
echo 1 >/proc/sys/net/ipv6/conf/all/keep_addr_on_down && ip netns exec far bash -c 'echo 1 >/proc/sys/net/ipv6/conf/all/keep_addr_on_down' || fail "keep_addr_on_down"

# ends_up_again: both interfaces as the tests want to find them, whatever the one before has left. both_here: both in the first name space, and down.
carrier() { ip netns exec far cat "/sys/class/net/$far/carrier" 2>/dev/null | grep -q 1 && grep -qs 1 "/sys/class/net/$near/carrier"; }
ends_up_again() {
  [[ ! -d /sys/class/net/$far ]] || ip link set "$far" netns far || fail "$far into its name space"
  ip link set "$near" up mtu 1500 && ip address replace 172.31.77.1/24 dev "$near" && ip address replace fd77:1::1/64 dev "$near" nodad || fail "$near"
  ip -n far link set lo up && ip -n far link set "$far" up mtu 1500 && ip -n far address replace 172.31.77.2/24 dev "$far" &&
    ip -n far address replace fd77:1::2/64 dev "$far" nodad && ip -n far route replace fd77:2::/64 via fd77:1::1 || fail "$far"
  within 60 carrier
}
both_here() {
  [[ -d /sys/class/net/$far ]] || ip -n far link set "$far" netns 1 || fail "$far out of its name space"
  ip address flush dev "$near" scope global && ip link set "$near" down mtu 1500 && ip link set "$far" down mtu 1500 || fail "$near, $far"
}

# results PROGRAM STATUS: lines "PROGRAM CASE RESULT TEXT" of what a program printed (/tmp/out): KTAP, or the lines of the shell tests.
results() {
  local base=${1##*/}
  awk -v program="$1" -v base="${base%.*}." -v status="$2" '
    function say(name, result, text) { gsub(/[ \t]+/, "_", name); print program, name, result, text; count++ }
    { sub(/\r$/, "") }
    /^1\.\.[0-9]+/ { plan = substr($1, 4) + 0; planned = 1; if (plan == 0) say("-", "skip", substr($0, index($0, "#") + 2)) }
    /^(not )?ok [0-9]+/ {
      result = $1 == "ok" ? "pass" : "fail"
      text = ""
      if (i = index($0, " # ")) { text = substr($0, i + 3); $0 = substr($0, 1, i - 1) }
      sub(/^(not )?ok [0-9]+ */, "")
      sub(/[ \t]+$/, "")
      if (substr($0, 1, length(base)) == base) $0 = substr($0, length(base) + 1)
      sub(/^test\./, "")
      if (text ~ /^(SKIP|XFAIL)/ && result == "pass") { result = tolower(text); sub(/ .*/, "", result); sub(/^[A-Z]+ */, "", text) }
      say($0 == "" ? "-" : $0, result, text)
      next
    }
    /^TEST: / {
      if (match($0, /\[ *(OK|FAIL|SKIP|XFAIL|XPASS) *\]/)) {
        result = substr($0, RSTART + 1, RLENGTH - 2)
        gsub(/ /, "", result)
        result = result == "OK" ? "pass" : tolower(result)
        name = substr($0, 7, RSTART - 7)
        sub(/[ \t]+$/, "", name)
        if (name ~ /^SKIP: /) say("-", "skip", substr(name, 7)) # of one who logs that it leaves
        else say(name, result, "")
        next
      }
    }
    /^SKIP: / { skip = substr($0, 7) }
    END {
      if (count == 0 && (status == 4 || (skip != "" && status != 1))) say("-", "skip", skip)
      else if (planned && plan > 0 && count != plan) say("-", "fail", "status " status ", " count + 0 " of " plan " cases")
      else if (count == 0) say("-", status == 0 ? "pass" : "fail", "status " status)
      else if (status == 124 || status == 137) say("-", "fail", "status " status)
    }' /tmp/out
}

# expected KERNEL PROGRAM CASE: the result that selftests.txt has of it, and the reason.
expected() {
  local kernels program case result reason
  while read -r kernels program case result reason; do
    [[ -n $kernels && $kernels != \#* ]] || continue
    [[ $kernels == all || $kernels == "$1" ]] && [[ $program == "$2" ]] || continue
    # shellcheck disable=SC2053 # a pattern
    if [[ $3 == $case ]]; then
      [[ -n $reason ]] || fail "selftests.txt has no reason for $2 $3"
      echo "$result $reason"
      return
    fi
  done </usr/local/bin/selftests.txt
  echo pass
}

chosen() {
  local list=,${test_argument#!},
  if [[ -z $test_argument ]]; then return 0; fi
  if [[ $test_argument == !* ]]; then [[ $list != *",$1,"* ]]; else [[ $list == *",$1,"* ]]; fi
}

declare -A counted=()
differ=()
run() {
  local program=$1 status=0 start=$SECONDS folder=${1%/*} case result text want reason complaints with
  local -a arguments=()
  [[ $program == */* ]] || folder=.
  mark_kernel_log
  # Shell tests that are not of the newer kind take both interfaces as arguments.
  if [[ $program == *.sh ]] && ! grep -q DRIVER_TEST_CONFORMANT "$tests/$program"; then
    both_here
    arguments=("$near" "$far")
  else
    ends_up_again
  fi
  # mlx5 gives headers and data apart with this alone, which is off by default.
  case $program in
    hds.py | hw/devmem.py | hw/iou-zcrx.py | hw/nk_devmem.py | hw/nk_qlease.py | hw/userns_devmem.py)
      if [[ $(ethtool -k "$near") != *'rx-gro-hw: off [fixed]'* ]]; then ethtool -K "$near" rx-gro-hw on || fail "rx-gro-hw"; fi
      ;;
    *)
      # A test that has failed may have left what needs it.
      if [[ $(ethtool -k "$near") == *'rx-gro-hw: on'* ]]; then
        ethtool -G "$near" tcp-data-split auto 2>/dev/null
        ethtool -K "$near" rx-gro-hw off || fail "rx-gro-hw"
      fi
      ;;
  esac
  # Later ones switch it on themselves.
  if [[ $program == hw/rss_ctx.py && $kernel == 6.12 ]]; then ethtool -K "$near" ntuple on || fail "ntuple"; fi
  note "== $program"
  # Not all of them are executable in the source package.
  [[ $program == *.sh ]] && with=bash || with=python3
  # shellcheck disable=SC2016 # the shell's within
  in_root timeout -k 20 "${selftest_limit:-1800}" bash -c 'cd "$1" && exec "${@:2}"' - "/tests/drivers/net/$folder" $with "./${program##*/}" "${arguments[@]}" \
    </dev/null 2>&1 | tee /tmp/out | sed -u 's/^/   /'
  status=${PIPESTATUS[0]}
  results "$program" "$status" >/tmp/results
  complaints=$(kernel_complaints)
  if [[ -n $complaints ]]; then
    sed 's/^/   kernel: /' <<<"$complaints"
    echo "$program kernel-log fail $(head -n 1 <<<"$complaints")" >>/tmp/results
  fi
  while read -r _ case result text; do
    read -r want reason <<<"$(expected $kernel "$program" "$case")"
    counted[$program:$result]=$((${counted[$program:$result]:-0} + 1))
    if [[ $result == "$want" || ($want == any && -n $reason) ]]; then
      [[ $result == pass ]] || echo "   known: $case: $result ($text): $reason"
    else
      differ+=("$program $case: $result${text:+ ($text)}, expected: $want")
    fi
  done </tmp/results
  echo "== $program: status $status, $((SECONDS - start)) s; pass ${counted[$program:pass]:-0}, fail ${counted[$program:fail]:-0}, skip ${counted[$program:skip]:-0}, xfail ${counted[$program:xfail]:-0}" |
    tee -a /tmp/summary
}

programs=()
while IFS=: read -r folder name; do
  case $folder in
    drivers/net) programs+=("$name") ;;
    drivers/net/hw) programs+=("hw/$name") ;;
  esac
done <$root/tests/kselftest-list.txt
((${#programs[@]} > 10)) || fail "programs: ${programs[*]}"
ran=0
for program in "${programs[@]}"; do
  chosen "$program" || continue
  run "$program"
  ran=$((ran + 1))
done
((ran > 0)) || fail "none of the programs is $test_argument: ${programs[*]}"
cat /tmp/summary
if ((${#differ[@]} > 0)); then fail "not as selftests.txt has it:"$'\n'"$(printf '%s\n' "${differ[@]}")"; fi
