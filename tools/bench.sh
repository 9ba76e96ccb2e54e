# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# ./hcasim bench guest: the HCA beside Linux's software RoCE in the same kind of guest; bench lockstep: the cost of one time for two
# guests. Needs common.sh and what boot and pair need.

bench_guest_usage() {
  cat <<'TEXT'
usage: ./hcasim bench guest [--kernel {6.1,6.12,backports,FILE}] [--duration SECONDS] [--one | --two]

perftest's bandwidth at 64 KiB and 1 MiB, its operations a second and its latency at 2 B, on the HCA and on Linux's software RoCE
(rdma_rxe), one after the other: both ends in one guest (--one), and between two guests (--two); by default both. Real time, all of it:
the ratio (above 1: the HCA does better) is what this says; how long things take on the card is in the trace.
TEXT
}

bench_guest() {
  local kernel=6.1 duration=4 where='one two' lines status=0
  while (($# > 0)); do
    case $1 in
      --kernel) (($# >= 2)) || die "--kernel needs a value" && kernel=$2 && shift ;;
      --duration) (($# >= 2)) || die "--duration needs a value" && duration=$2 && shift ;;
      --one) where=one ;;
      --two) where=two ;;
      -h | --help) bench_guest_usage && return 0 ;;
      *) die "bench guest does not know '$1'" "./hcasim bench guest --help" ;;
    esac
    shift
  done
  # perftest measures without its first and its last second.
  [[ $duration =~ ^([3-9]|[1-9][0-9]+)$ ]] || die "--duration takes whole seconds, 3 and more"
  kernel_known "$kernel"
  in_source_only "bench guest"
  need_plugin
  guest_ready "$kernel" ''
  mkdir -p "$HCASIM_LOGS"
  lines=$HCASIM_LOGS/bench-guest.log
  : >"$lines"
  local -x HCASIM_UNDER_TEST=yes GUEST_TEST_TIMEOUT=$((240 + 30 * duration))
  local test="$HCASIM_ROOT/tests/guest/run-guest-test"
  if [[ $where == *one* ]]; then
    say "-- both ends in one guest ..."
    "$test" "bench:$duration" --kernel "$kernel" >"$lines.one" 2>&1 || status=$?
    sed -n 's/^bench /one &/p' "$lines.one" >>"$lines"
    ((status == 0)) || { tail -n 30 "$lines.one" >&2 && die "the guest failed" "all it said: $lines.one"; }
  fi
  if [[ $where == *two* ]]; then
    for kind in hca rxe; do
      say "-- two guests, $kind ..."
      "$test" "bench-pair:$duration" --kernel "$kernel" --first $kind --peer $kind >"$lines.two-$kind" 2>&1 || status=$?
      sed -n 's/^a| bench /two bench /p' "$lines.two-$kind" >>"$lines"
      ((status == 0)) || { tail -n 30 "$lines.two-$kind" >&2 && die "the guests failed" "all they said: $lines.two-$kind"; }
    done
  fi
  awk '
    BEGIN {printf "%-12s %-14s %12s %12s %8s %s\n", "", "", "HCA", "rdma_rxe", "ratio", ""}
    {key = $1 " " $4; if (!(key in unit)) order[++n] = key; unit[key] = $6; value[key, $3] = $5}
    END {
      for (i = 1; i <= n; i++) {
        split(order[i], part, " ")
        hca = value[order[i], "hca"]; rxe = value[order[i], "rxe"]
        ratio = "-"
        if (rxe > 0 && hca > 0) ratio = sprintf("%.1f", unit[order[i]] == "us" ? rxe / hca : hca / rxe)
        printf "%-12s %-14s %12s %12s %8s %s\n", (part[1] == "one" ? "one guest" : "two guests"), part[2], hca, rxe, ratio, unit[order[i]]
      }
    }' "$lines"
}

bench_lockstep_usage() {
  cat <<'TEXT'
usage: ./hcasim bench lockstep [--kernel {6.1,6.12,backports,FILE}] [--latencies NS,NS,...] [--out DIR]

What two guests in one time (./hcasim pair --lockstep) cost in real time, over the latency of the cable between them: both boot, run
ibv_rc_pingpong and ib_write_lat, and end. Prints a table, and writes DIR/lockstep.csv and DIR/lockstep.svg (build/bench).
TEXT
}

bench_lockstep() {
  local kernel=6.1 latencies=2000,10000,50000,250000,1000000 out=$HCASIM_BUILD/bench latency start seconds log lat
  local -a met=()
  while (($# > 0)); do
    case $1 in
      --kernel | --latencies | --out) (($# >= 2)) || die "$1 needs a value" ;;
    esac
    case $1 in
      --kernel) kernel=$2 && shift ;;
      --latencies) latencies=$2 && shift ;;
      --out) out=$2 && shift ;;
      -h | --help) bench_lockstep_usage && return 0 ;;
      *) die "bench lockstep does not know '$1'" "./hcasim bench lockstep --help" ;;
    esac
    shift
  done
  [[ $latencies =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || die "--latencies takes whole ns, parted by commas"
  kernel_known "$kernel"
  in_source_only "bench lockstep"
  need_plugin
  guest_ready "$kernel" ''
  memory_image_ready 12
  mkdir -p "$out"
  local work
  work=$(mktemp -d "${TMPDIR:-/tmp}/hcasim-bench.XXXXXX")
  # shellcheck disable=SC2064 # the folder's name now, not later
  trap "rm -rf '$work'" EXIT
  local inside=$HCASIM_ROOT/tests/guest/inside
  {
    cat "$inside/lib.sh" "$inside/lib-ends.sh"
    # shellcheck disable=SC2016 # for the guest's shell
    printf '%s\n' 'ends_up' 'pingpong_ends ibv_rc_pingpong -n 50 -s 1024' 'perftest_ends ib_write_lat -n 100 -s 8' \
      'if is_client; then cat /tmp/client; fi' 'passed done'
  } >"$work/script"
  local -x HCASIM_UNDER_TEST=yes
  printf 'latency_ns,wall_s,meetings,waited_s,ib_write_lat_us\n' >"$out/lockstep.csv"
  printf '%12s %10s %12s %12s %16s\n' 'cable ns' 'wall s' 'meetings' 'us each' 'ib_write_lat us'
  for latency in ${latencies//,/ }; do
    log=$out/lockstep-$latency.log
    start=$(date +%s%N)
    "$HCASIM_ROOT/hcasim" pair --lockstep --kernel "$kernel" --script "$work/script" --console "$work" --timeout 3600 \
      --hca "options=wire_latency_ns=$latency" >"$log" 2>&1 || { tail -n 20 "$log" >&2 && die "the guests failed" "all they said: $log"; }
    seconds=$(awk -v ns=$(($(date +%s%N) - start)) 'BEGIN {printf "%.1f", ns / 1e9}')
    read -r -a met < <(sed -nE 's/.*have met ([0-9]+) times.*waited, for ([0-9.]+) s.*/\1 \2/p' "$log" | tail -n 1) || true
    lat=$(grep -A1 '#bytes #iterations' "$log" | awk 'END {print $6}')
    printf '%s,%s,%s,%s,%s\n' "$latency" "$seconds" "${met[0]:-}" "${met[1]:-}" "$lat" >>"$out/lockstep.csv"
    printf '%12s %10s %12s %12s %16s\n' "$latency" "$seconds" "${met[0]:--}" \
      "$(awk -v s="$seconds" -v n="${met[0]:-0}" 'BEGIN {if (n > 0) printf "%.1f", s * 1e6 / n; else print "-"}')" "$lat"
  done
  awk -F, 'NR > 1 {print $1, $2, $2 " s"}' "$out/lockstep.csv" |
    "$HCASIM_ROOT/tools/plot-curve.py" "Two guests in lockstep: boot, pingpong, ib_write_lat" "latency of the cable, ns" "real time, s" >"$out/lockstep.svg"
  say "$out/lockstep.svg"
}

bench_vfio_user_usage() {
  cat <<'TEXT'
usage: ./hcasim bench vfio-user [--kernel {6.1,6.12,backports,FILE}] [--duration SECONDS] [--rounds N] [--spin US]

The card in QEMU's own process beside the card in a process of its own (hcasim serve): how long the drivers take to bring it up, and
perftest's latency, bandwidth and operations a second, both ends in one guest. Rounds alternate; the table has the medians. Real
time, all of it; the two vCPUs and the card's process want a core each.
TEXT
}

bench_vfio_user() {
  local kernel=6.1 duration=4 rounds=3 round kind lines log status
  local -a front spin=()
  while (($# > 0)); do
    case $1 in
      --kernel | --duration | --rounds | --spin) (($# >= 2)) || die "$1 needs a value" ;;
    esac
    case $1 in
      --kernel) kernel=$2 && shift ;;
      --duration) duration=$2 && shift ;;
      --rounds) rounds=$2 && shift ;;
      --spin) spin=(--spin "$2") && shift ;;
      -h | --help) bench_vfio_user_usage && return 0 ;;
      *) die "bench vfio-user does not know '$1'" "./hcasim bench vfio-user --help" ;;
    esac
    shift
  done
  # perftest measures without its first and its last second.
  [[ $duration =~ ^([3-9]|[1-9][0-9]+)$ ]] || die "--duration takes whole seconds, 3 and more"
  [[ $rounds =~ ^[1-9][0-9]*$ ]] || die "--rounds takes a number, 1 and more"
  kernel_known "$kernel"
  in_source_only "bench vfio-user"
  need_plugin hcasim-serve
  guest_ready "$kernel" ''
  mkdir -p "$HCASIM_LOGS"
  lines=$HCASIM_LOGS/bench-vfio-user.log
  : >"$lines"
  local -x HCASIM_UNDER_TEST=yes GUEST_TEST_TIMEOUT=$((240 + 12 * duration))
  for ((round = 1; round <= rounds; round++)); do
    for kind in in-process vfio-user; do
      say "-- round $round of $rounds, $kind ..."
      front=()
      [[ $kind != vfio-user ]] || front=(--vfio-user "${spin[@]}")
      log=$lines.$kind-$round
      status=0
      "$HCASIM_ROOT/tests/guest/run-guest-test" "bench-front:$duration" --kernel "$kernel" "${front[@]}" >"$log" 2>&1 || status=$?
      ((status == 0)) || { tail -n 30 "$log" >&2 && die "the guest failed" "all it said: $log"; }
      sed -n "s/^bench /$kind /p" "$log" >>"$lines"
    done
  done
  sort -s -k2,2 -k1,1 -k3,3g "$lines" | awk -v order="bring-up write-2B-lat send-2B-lat read-2B-lat write-64KiB send-64KiB read-64KiB write-2B send-2B read-2B" '
    {key = $2 SUBSEP $1; n[key]++; value[key, n[key]] = $3; unit[$2] = $4}
    function median(key) {return n[key] % 2 ? value[key, (n[key] + 1) / 2] : (value[key, n[key] / 2] + value[key, n[key] / 2 + 1]) / 2}
    function range(key) {return value[key, 1] " to " value[key, n[key]]}
    END {
      printf "%-14s %-7s %12s %20s %12s %20s %22s\n", "", "", "in process", "", "vfio-user", "", "vfio-user / in process"
      rows = split(order, row, " ")
      for (i = 1; i <= rows; i++) {
        here = row[i] SUBSEP "in-process"; there = row[i] SUBSEP "vfio-user"
        if (!n[here] || !n[there]) continue
        printf "%-14s %-7s %12.4g %20s %12.4g %20s %22.2f\n", row[i], unit[row[i]], median(here), range(here), median(there), range(there), median(there) / median(here)
      }
    }'
}

bench_fabric_usage() {
  cat <<'TEXT'
usage: ./hcasim bench fabric [--cards N,N,...] [--ranks N,N,...] [--simulated US] [--out DIR]

What a frame of a card costs in ns-3, as the cards grow (8,64,512,1024): cards in a fabric with as many links upwards as downwards, each of
which writes 64 KiB to up to 16 others in turn, four messages at a time, ECN and PFC on, for so many simulated us (1000). With several
--ranks each size runs with each of them, and the hashes of all arrivals have to be the same. Prints a table, and writes DIR/fabric.csv and
DIR/fabric.svg (build/bench). 1,024 cards take some two minutes and 2 GiB. Fat trees where the number is one of theirs (k^3/4), else leaves and spines.
TEXT
}

# fabric_topology CARDS: TOML of a fabric of so many. Status 1: there is none.
fabric_topology() {
  local n
  for ((n = 8; n * n * n / 4 <= $1; n += 2)); do
    ((n * n * n / 4 != $1)) || { printf '[topology]\nkind = "fat-tree"\nk = %s\n' "$n" && return 0; }
  done
  for ((n = 64; n >= 2; n--)); do
    ((n * n > $1 || $1 % n != 0)) || { printf '[topology]\nkind = "leaf-spine"\nleaves = %s\nhosts = %s\nspines = %s\n' $(($1 / n)) "$n" "$n" && return 0; }
  done
  return 1
}

# fabric_scenario CARDS SIMULATED_US: the file of one size. A message of 64 KiB takes 5.3 us of a card's link: with one each 5 us and two
# rounds more nobody ends before the time does. Many more would not do: a workload has no more than 4,194,304 messages.
fabric_scenario() {
  local cards=$1 simulated=$2 peers
  peers=$((cards > 16 ? 16 : cards - 1))
  printf 'name = "%s cards"\n' "$cards"
  fabric_topology "$cards"
  printf '[switch]\necn_kmin_kib = 100\necn_kmax_kib = 400\necn_pmax = 0.2\npfc = [3]\n'
  printf '[workload]\nkind = "all-to-all"\nbytes = 65536\npeers = %s\nrounds = %s\nwindow = 4\n[run]\nuntil_us = %s\n' \
    "$peers" $((simulated / (5 * peers) + 2)) "$simulated"
}

bench_fabric() {
  local sizes=8,64,512,1024 ranks=1 simulated=1000 out=$HCASIM_BUILD/bench cards rank row wanted there
  while (($# > 0)); do
    case $1 in
      --cards | --ranks | --simulated | --out) (($# >= 2)) || die "$1 needs a value" ;;
    esac
    case $1 in
      --cards) sizes=$2 && shift ;;
      --ranks) ranks=$2 && shift ;;
      --simulated) simulated=$2 && shift ;;
      --out) out=$2 && shift ;;
      -h | --help) bench_fabric_usage && return 0 ;;
      *) die "bench fabric does not know '$1'" "./hcasim bench fabric --help" ;;
    esac
    shift
  done
  [[ $sizes,$ranks,$simulated =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] || die "--cards, --ranks and --simulated take whole numbers, the first two parted by commas"
  for cards in ${sizes//,/ }; do
    fabric_topology "$cards" >/dev/null || die "$cards cards cannot be put under leaves in equal numbers" "take a number with divisors, such as 8, 64, 512, 1024"
  done
  in_source_only "bench fabric"
  mkdir -p "$out"
  local work
  work=$(mktemp -d "${TMPDIR:-/tmp}/hcasim-bench.XXXXXX")
  # shellcheck disable=SC2064 # the folder's name now, not later
  trap "rm -rf '$work'" EXIT
  # What cannot be run is said before the first run, not after the smaller ones.
  there=$(awk '$1 == "MemAvailable:" {print int($2 / 1024)}' /proc/meminfo)
  for cards in ${sizes//,/ }; do
    fabric_scenario "$cards" "$simulated" >"$work/$cards.toml"
    for rank in ${ranks//,/ }; do
      (command_fabric "$work/$cards.toml" --ranks "$rank" --check) >"$work/said" 2>"$work/progress" ||
        die "$cards cards in $rank processes, for $simulated us, cannot be run: $(tail -n 1 "$work/progress")"
    done
    wanted=$(sed -n 's/.*, about \([0-9]*\) MiB$/\1/p' "$work/said")
    ((wanted <= there)) || die "$cards cards take about $wanted MiB, and $there are available" "take fewer cards"
  done
  printf 'cards,ranks,frames,set_up_s,run_s,processor_s,us_a_frame,mib,arrivals\n' >"$out/fabric.csv"
  printf '%7s %6s %10s %10s %8s %12s %11s %7s  %s\n' cards ranks frames 'set-up s' 'run s' 'processor s' 'us a frame' MiB 'hash of arrivals'
  for cards in ${sizes//,/ }; do
    for rank in ${ranks//,/ }; do
      (command_fabric "$work/$cards.toml" --ranks "$rank" --json "$work/result.json") >"$work/said" 2>"$work/progress" ||
        { tail -n 5 "$work/said" "$work/progress" >&2 && die "$cards cards in $rank processes failed"; }
      row=$(python3 - "$work/result.json" "$work/said" <<'PYTHON'
import json, sys
result = json.load(open(sys.argv[1]))
wall = result["wall"]
print(result["cards"], result["ranks"], result["frames"], f'{wall["setup_s"]:.1f}', f'{wall["run_s"]:.1f}', f'{wall["run_cpu_s"]:.1f}',
      f'{wall["run_cpu_s"] * 1e6 / max(1, result["frames"]):.1f}', f'{wall["memory_bytes"] / 2**20:.0f}', result["arrivals_hash"], sep=",")
PYTHON
      ) || die "the result of $cards cards could not be read"
      printf '%s\n' "$row" >>"$out/fabric.csv"
      # shellcheck disable=SC2086 # its words
      printf '%7s %6s %10s %10s %8s %12s %11s %7s  %s\n' ${row//,/ }
    done
    [[ $(awk -F, -v n="$cards" '$1 == n {print $9}' "$out/fabric.csv" | sort -u | wc -l) == 1 ]] ||
      die "$cards cards: what arrives differs between numbers of processes" "$out/fabric.csv has the hashes"
  done
  awk -F, 'NR > 1 && !seen[$1]++ {print $1, $7, $7 " us"}' "$out/fabric.csv" |
    "$HCASIM_ROOT/tools/plot-curve.py" "What a frame of a card costs, ${simulated} simulated us of all-to-all" "cards" "processor time a frame, us" >"$out/fabric.svg"
  say "$out/fabric.svg"
}
