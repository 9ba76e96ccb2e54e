# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# shellcheck disable=SC2054 # commas are QEMU's
#
# Two guests joined by a wire. Needs common.sh, install.sh, build.sh, apt.sh, recipes.sh, boot.sh.

pair_usage() {
  cat <<'TEXT'
usage: ./hcasim pair [OPTIONS] [QEMU OPTIONS] [-- CMD...]

Boots two guests, A and B, joined by a wire. Without a command: a shell in each (in tmux, or on two sockets). With one: runs it
in both, prints their output behind "a| " and "b| ", and exits with A's status, or B's where A's is 0. When one guest ends, the
other is given a while to end too.

  --kernel {6.1,6.12,backports,FILE}   kernel of both guests                                  (6.1)
  --kernel-b ...             another kernel for B
  --link {eth,ib}            what the wire is                                                 (eth)
  --peer {hca,rxe}           what B has: an HCA, or a virtio NIC and Linux's software RoCE    (hca)
  --first {hca,rxe}          what A has                                                       (hca)
  --hca KEY=VALUE,...        more properties for the HCAs of both guests; --hca-a, --hca-b for one of them
  --lockstep                 both guests in one time, that of the model: each waits for the other where the wire wants it. With a
                             command, each run goes the same way, to the bit; nothing else joins the guests then. A longer cable is
                             a faster run: --hca options=wire_latency_ns=NS
  --wire {shm,unix,netdev}   what joins two HCAs: memory that both share, a socket, or a network back end of QEMU (link=eth)
                             (shm; netdev with --capture, and where one end is no HCA)
  --capture DIR              what passes the wire, as DIR/a.pcap and DIR/b.pcap (link=eth)
  --record DIR               what each HCA gets and answers, as DIR/a and DIR/b: either replays by itself (./hcasim replay DIR/a)
  --script FILE              run this bash script in both; --script-a, --script-b in one of them
  --timeout SECONDS          end both after this long                                         (with a command: 600)
  --grace SECONDS            how long a guest may outlive the other                           (60; 10 if that one failed)
  --console DIR              where the kernels' messages go when there is a command: pair-a.console, pair-b.console (build/logs)
Options of boot that go to both: --coverage (of runs TEST-a and TEST-b: --coverage-test), --coverage-modules, --coverage-libraries, --rules --modules --debian --file --smp --mem --accel --append --modprobe.

In a guest `wire-up` sets its addresses (A 10.9.0.1, fd09::1; B 10.9.0.2, fd09::2) and, for the software peer, its RDMA device;
scripts find what is there in /run/wire. Guest A's name is "a", guest B's "b" (hcasim.side= on the kernel's command line).
TEXT
}

pair_children=()
# pair_stop WORK: ends both guests, those in tmux too, which somebody may have left (Ctrl-B d, or a closed terminal).
pair_stop() {
  local pid
  [[ ! -S $1/tmux ]] || tmux -S "$1/tmux" kill-server 2>/dev/null || true
  for pid in "${pair_children[@]}"; do kill_tree "$pid"; done
}

# pair_wait_for FILE PID...: until the other QEMU listens there; not without these processes.
pair_wait_for() {
  local tries=0 pid
  until [[ -S $1 ]]; do
    for pid in "${@:2}"; do kill -0 "$pid" 2>/dev/null || return 1; done
    tries=$((tries + 1))
    ((tries < 1200)) || return 1
    sleep 0.1
  done
}

pair() {
  local kernel=6.1 kernel_b='' link=eth peer=hca first=hca capture='' record='' script_a='' script_b='' timeout='' grace=60 lockstep=no
  local wire='' consoles=$HCASIM_LOGS word has_command=no hca='' hca_a='' hca_b='' accel=tcg coverage=no coverage_test=pair
  local -a both=() extra=() command=()
  while (($# > 0)); do
    word=$1
    case $word in
      --kernel=* | --kernel-b=* | --link=* | --peer=* | --first=* | --wire=* | --hca=* | --hca-a=* | --hca-b=* | --capture=* | --record=* | --script=* | --script-a=* | \
        --script-b=* | --timeout=* | --grace=* | --console=* | --modules=* | --debian=* | --file=* | --smp=* | --mem=* | --accel=* | --append=* | --rules=* | --modprobe=* | --coverage=* | --coverage-*=*)
        shift
        set -- "${word%%=*}" "${word#*=}" "$@"
        continue
        ;;
      --kernel | --kernel-b | --link | --peer | --first | --wire | --hca | --hca-a | --hca-b | --capture | --record | --script | --script-a | \
        --script-b | --timeout | --grace | --console | --modules | --debian | --file | --smp | --mem | --accel | --append | --rules | --modprobe | --coverage | --coverage-test | --coverage-modules | --coverage-libraries)
        (($# >= 2)) || die "$word needs a value" "./hcasim pair --help"
        ;;
    esac
    case $word in
      --kernel) kernel=$2 && shift ;;
      --kernel-b) kernel_b=$2 && shift ;;
      --link) link=$2 && shift ;;
      --peer) peer=$2 && shift ;;
      --first) first=$2 && shift ;;
      --wire) wire=$2 && shift ;;
      --hca) hca=$hca,$2 && shift ;;
      --hca-a) hca_a=$hca_a,$2 && shift ;;
      --hca-b) hca_b=$hca_b,$2 && shift ;;
      --capture) capture=$2 && shift ;;
      --record) record=$2 && shift ;;
      --script) script_a=$2 && script_b=$2 && has_command=yes && shift ;;
      --script-a) script_a=$2 && has_command=yes && shift ;;
      --script-b) script_b=$2 && has_command=yes && shift ;;
      --timeout) timeout=$2 && shift ;;
      --grace) grace=$2 && shift ;;
      --console) consoles=$2 && shift ;;
      --coverage-test) coverage_test=$2 && shift ;;
      --coverage | --coverage-modules | --coverage-libraries)
        coverage=yes
        both+=("$1" "$2")
        shift
        ;;
      --accel) accel=$2 && both+=("$1" "$2") && shift ;;
      --smp | --mem) size_known "$1" "$2" && both+=("$1" "$2") && shift ;;
      --modules | --debian | --file | --append | --rules | --modprobe) both+=("$1" "$2") && shift ;;
      --lockstep) lockstep=yes ;;
      --reboots | --deterministic) die "pair does not take $word" "./hcasim boot $word runs one guest; --lockstep runs two in one time" ;;
      -h | --help) pair_usage && return 0 ;;
      --)
        shift
        [[ -n $* ]] || die "there is no command behind --" "leave -- out for a shell in each guest"
        command=("$@")
        has_command=yes
        break
        ;;
      *) extra+=("$word") ;;
    esac
    shift
  done
  kernel_b=${kernel_b:-$kernel}
  for word in "$kernel" "$kernel_b"; do kernel_known "$word"; done
  [[ $link == eth || $link == ib ]] || die "--link takes eth or ib, not '$link'"
  for word in "$peer" "$first"; do
    [[ $word == hca || $word == rxe ]] || die "--peer and --first take hca or rxe, not '$word'"
  done
  [[ $link == eth || "$first$peer" == hcahca ]] || die "software RoCE needs --link eth"
  if [[ $lockstep == yes ]]; then
    [[ $first$peer == hcahca ]] || die "--lockstep is for two HCAs: the wire between them is what joins their times"
    [[ -z $capture ]] || die "--capture takes frames of a network back end, which --lockstep does not have"
  fi
  [[ -z $capture || $link == eth ]] || die "--capture takes frames of a network back end, which --link ib does not have"
  if [[ -z $wire ]]; then
    wire=shm
    if [[ "$first$peer" != hcahca || -n $capture ]]; then wire=netdev; fi
  fi
  [[ $wire == shm || $wire == unix || $wire == netdev ]] || die "--wire takes shm, unix or netdev, not '$wire'"
  if [[ $wire == netdev ]]; then
    [[ $lockstep == no ]] || die "--lockstep needs the HCAs' own wire" "--wire shm or --wire unix"
    [[ $link == eth ]] || die "--link ib needs the HCAs' own wire" "--wire shm or --wire unix"
  else
    [[ "$first$peer" == hcahca ]] || die "--wire $wire joins two HCAs" "--wire netdev for what is none"
    [[ -z $capture ]] || die "--capture takes frames of a network back end" "--wire netdev, or a capture of the HCA's: --hca-a capture=FILE"
  fi
  [[ -z $timeout || $timeout =~ ^[0-9]+$ ]] || die "--timeout takes whole seconds, not '$timeout'"
  [[ $grace =~ ^[0-9]+$ ]] || die "--grace takes whole seconds, not '$grace'"
  if ((${#command[@]} > 0)); then [[ -z $script_a$script_b ]] || die "a script and a command: one of the two"; fi
  if [[ $has_command == yes && ${#command[@]} -eq 0 ]]; then
    [[ -n $script_a && -n $script_b ]] || die "the guests need a script each" "--script-a FILE and --script-b FILE, or --script FILE for both"
  fi
  for word in "$hca$hca_a" "$hca$hca_b"; do one_value "$word"; done
  accel_ready "$accel" "$lockstep" "$hca" "$hca_a" "$hca_b"
  for word in "$script_a" "$script_b"; do [[ -z $word || -r $word ]] || die "cannot read the script $word"; done

  # All is made here, once; the two boots then find it ready.
  if [[ $first$peer == rxerxe ]]; then install_missing; elif [[ $coverage == yes ]]; then need_plugin hcasim-executed hcasim-coverage; else need_plugin; fi
  guest_ready "$kernel" ''
  [[ $kernel_b == "$kernel" ]] || guest_ready "$kernel_b" ''

  local work
  work=$(mktemp -d "${TMPDIR:-/tmp}/hcasim-pair.XXXXXX") || die "no folder can be made in ${TMPDIR:-/tmp}" "name another one: TMPDIR=DIR in the environment"
  # shellcheck disable=SC2064 # the folder's name now, not later
  trap "pair_stop '$work'; rm -rf '$work'" EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  if [[ -n $capture ]]; then mkdir -p "$capture" && capture=$(cd "$capture" && pwd); fi
  if [[ -n $record ]]; then mkdir -p "$record" && record=$(cd "$record" && pwd); fi
  mkdir -p "$consoles"

  # What differs between the two.
  local side number server kind props nic mac
  local -a common options_a options_b
  for side in a b; do
    # Two machines: no number may be in both.
    if [[ $side == a ]]; then
      kind=$first number=1 server=on props=,node_guid=0x5254000003090001$hca$hca_a
    else
      kind=$peer number=2 server=off props=,node_guid=0x5254000003090002$hca$hca_b
    fi
    mac=52:54:00:09:00:0$number
    common=(--append "hcasim.side=$side" --file "$GUEST_RECIPES/wire-up")
    if [[ $wire == netdev || ($link == ib && $lockstep == no) ]]; then
      common+=(-netdev "stream,id=wire,server=$server,addr.type=unix,addr.path=$work/wire")
    fi
    # No boot ROM, whose frames would show in captures; a speed, as rdma_rxe complains each time it finds none.
    nic="virtio-net-pci,netdev=wire,mac=$mac,speed=10000,duplex=full,romfile="
    if [[ $lockstep == yes ]]; then
      # Nothing joins the two but the HCAs' wire.
      common+=(--hca "link=$link,wire=$wire:$work/wire,mac=$mac$props")
      if [[ $has_command == yes ]]; then common+=(--deterministic); else common+=(--lockstep); fi
    elif [[ $link == ib ]]; then
      # IB wires carry no IP of their own: the virtio interface is for what the programs tell each other by TCP.
      common+=(--hca "link=ib,wire=$wire:$work/ib$props" -device "$nic")
    elif [[ $wire != netdev ]]; then
      common+=(--hca "link=eth,wire=$wire:$work/wire,mac=$mac$props")
    elif [[ $kind == hca ]]; then
      common+=(--hca "link=eth,netdev=wire,mac=$mac$props")
    else
      common+=(--hca none -device "$nic")
    fi
    # What the user says of the HCA goes before what is said here.
    for word in "${!common[@]}"; do
      if [[ ${common[word]} == link=* ]]; then common[word]=$(last_of_each "${common[word]}"); fi
    done
    [[ $coverage == no ]] || common+=(--coverage-test "$coverage_test-$side")
    [[ -z $capture ]] || common+=(-object "filter-dump,id=dump,netdev=wire,file=${capture//,/,,}/$side.pcap,maxlen=65535")
    if [[ -n $record && $kind == hca ]]; then common+=(--record "$record/$side"); fi
    if [[ $side == a ]]; then options_a=(--kernel "$kernel" "${common[@]}"); else options_b=(--kernel "$kernel_b" "${common[@]}"); fi
  done
  [[ -z $timeout ]] || both+=(--timeout "$timeout")
  export HCASIM_UNDER_TEST=yes

  if [[ $has_command == no ]]; then
    pair_shells
    return
  fi
  for side in a b; do
    if ((${#command[@]} == 1)); then
      printf '%s\n' "${command[0]}" >"$work/script-$side"
    elif ((${#command[@]} > 1)); then
      printf '%q ' "${command[@]}" >"$work/script-$side"
    elif [[ $side == a ]]; then
      cp "$script_a" "$work/script-a"
    else
      cp "$script_b" "$work/script-b"
    fi
  done
  pair_commands
}

# pair_run SIDE BOOT-OPTIONS...: one guest, its output behind its name; the status is the guest's.
pair_run() (
  set -o pipefail
  "$HCASIM_ROOT/hcasim" boot "${@:2}" 2>&1 | sed -u "s/^/$1| /"
)

# The rest of pair() with a command. A line of text can pass between the guests beside the wire, through a port of their virtio
# consoles (hcasim.peer): tests wait for each other with it.
pair_commands() {
  local pid_a pid_b status_a='' status_b='' end='' again=''
  local -a port=() port_a=() port_b=()
  if [[ $lockstep == no ]]; then
    port=(-device 'virtserialport,chardev=peer,name=hcasim.peer')
    port_a=(-chardev "socket,id=peer,path=$work/peer,server=on,wait=off")
    # Where guest A may have to boot once more (boot.sh: QEMU before 8.1), B's end waits for it.
    if [[ $(qemu-system-x86_64 --version 2>/dev/null) =~ version\ ([0-9]+)\.([0-9]+) ]] &&
      ((BASH_REMATCH[1] * 100 + BASH_REMATCH[2] < 801)) && [[ " ${options_b[*]} ${both[*]} " != *' --qemu'* ]]; then
      again=,reconnect=1
    fi
    port_b=(-chardev "socket,id=peer,path=$work/peer$again")
  fi
  pair_run a "${options_a[@]}" "${both[@]}" --script "$work/script-a" --console "$consoles/pair-a.console" \
    "${port_a[@]}" "${port[@]}" "${extra[@]}" &
  pid_a=$!
  pair_children+=("$pid_a")
  if ! { pair_wait_for "$work/wire" "$pid_a" && { [[ $lockstep == yes ]] || pair_wait_for "$work/peer" "$pid_a"; }; }; then
    wait "$pid_a" || status_a=$?
    die "guest A did not start (status ${status_a:-0})"
  fi
  pair_run b "${options_b[@]}" "${both[@]}" --script "$work/script-b" --console "$consoles/pair-b.console" \
    "${port_b[@]}" "${port[@]}" "${extra[@]}" &
  pid_b=$!
  pair_children+=("$pid_b")

  while [[ -z $status_a || -z $status_b ]]; do
    if [[ -z $status_a ]] && ! kill -0 "$pid_a" 2>/dev/null; then
      status_a=0
      wait "$pid_a" || status_a=$?
      end=${end:-$((SECONDS + (status_a == 0 ? grace : 10)))}
    fi
    if [[ -z $status_b ]] && ! kill -0 "$pid_b" 2>/dev/null; then
      status_b=0
      wait "$pid_b" || status_b=$?
      end=${end:-$((SECONDS + (status_b == 0 ? grace : 10)))}
    fi
    if [[ -n $end && (-z $status_a || -z $status_b) ]] && ((SECONDS >= end)); then
      if [[ -z $status_a ]]; then kill_tree "$pid_a" && say "hcasim: guest A outlived B, and was ended"; fi
      if [[ -z $status_b ]]; then kill_tree "$pid_b" && say "hcasim: guest B outlived A, and was ended"; fi
      end=$((SECONDS + 10))
    fi
    sleep 0.2
  done
  pair_children=()
  say "hcasim: guest A's status is $status_a, guest B's $status_b"
  ((status_a == 0)) || return "$status_a"
  return "$status_b"
}

# The rest of pair() without one: a shell in each, side by side in tmux, or on a socket each.
pair_shells() {
  local side quoted
  printf -v quoted %q "$work"
  for side in a b; do
    local -n options=options_$side
    {
      printf '#!/bin/bash\n'
      # B's QEMU wants to find A's.
      [[ $side == a ]] || printf 'until [[ -S %q ]]; do sleep 0.1; done\n' "$work/wire"
      printf 'exec env HCASIM_UNDER_TEST=yes HCASIM_BUILD=%q HCASIM_PLUGIN=%q ' "$HCASIM_BUILD" "$HCASIM_PLUGIN"
      printf '%q ' "$HCASIM_ROOT/hcasim" boot "${options[@]}" "${both[@]}" "${extra[@]}"
      printf '"$@"\n'
    } >"$work/run-$side"
    chmod +x "$work/run-$side"
  done
  if have tmux && [[ -t 0 && -t 1 ]]; then
    say "Guest A is on the left, B on the right; 'wire-up' in each sets its addresses. Ctrl-B and an arrow changes between them,"
    say "'exit' in one ends both."
    # A server of its own: the user's tmux is left alone, and this works inside one too. A pane that ends takes the session along.
    env -u TMUX tmux -S "$work/tmux" new-session -d -s pair "$quoted/run-a; tmux -S $quoted/tmux kill-session -t pair" \; \
      set-option -g mouse on \; \
      split-window -h -t pair "$quoted/run-b; tmux -S $quoted/tmux kill-session -t pair" \; attach-session -t pair <&0 &
    wait "$!" # and hears signals
    return
  fi
  for side in a b; do
    # The console on a socket in place of this terminal.
    "$work/run-$side" --serial "unix:$work/console-$side,server=on,wait=off" </dev/null &
    pair_children+=("$!")
  done
  for side in a b; do
    # B's waits for A's wire, and comes to nothing with A.
    pair_wait_for "$work/console-$side" "${pair_children[@]}" || die "guest ${side^^} did not start; what it said is above"
  done
  say "Two guests are starting. Their shells, each from a terminal of its own (Ctrl-] leaves, 'exit' in one ends both):"
  for side in a b; do say "  socat -,raw,echo=0,escape=0x1d UNIX-CONNECT:$work/console-$side"; done
  say "'wire-up' in each sets its addresses. Ctrl-C here ends both."
  wait -n "${pair_children[@]}" || true
}
