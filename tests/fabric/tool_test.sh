#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The program: each example runs, twice with the same result; its outputs; what it says of files that are wrong.
#   tool_test.sh HCASIM-FABRIC EXAMPLES
set -eu
fabric=$1
examples=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/hcasim-fabric.XXXXXX")
trap 'rm -rf "$work"' EXIT

for name in fat-tree leaf-spine rail; do
  "$fabric" "$examples/$name.toml" --json "$work/$name.json" --svg "$work/$name.svg" >"$work/one"
  "$fabric" "$examples/$name.toml" >"$work/two"
  # All but what the machine has to do with.
  for run in one two; do grep -v 'real time' "$work/$run" >"$work/$run.said"; done
  cmp "$work/one.said" "$work/two.said"
  grep -q 'hash of all arrivals [0-9a-f]*[1-9a-f]' "$work/one"
done
python3 - "$work" <<'PY'
import json, sys
for name in ("fat-tree", "leaf-spine", "rail"):
    r = json.load(open(f"{sys.argv[1]}/{name}.json"))
    assert r["failure"] == "", r["failure"]
    assert all(w["done"] == w["messages"] for w in r["workloads"]), name
    assert r["dropped"] == {"full": 0, "headroom": 0, "unrouted": 0}, r["dropped"]
    assert r["samples"] and max(l["load"] for l in r["links"]) <= 1
    assert open(f"{sys.argv[1]}/{name}.svg").read().count("<polyline") >= 3
rail = json.load(open(f"{sys.argv[1]}/rail.json"))
# 1 MiB at 100 Gb/s in packets of 4,096 bytes, each with 82 more on the cable.
least = rail["workloads"][0]["most_us"]
assert 1048576 / 4096 * 4178 * 8 / 100e3 < least < 95, least
PY

# wrong FILE WORDS: status 1 and these words, and no abort.
wrong() {
  status=0
  "$fabric" "$1" >"$work/out" 2>&1 || status=$?
  if [ "$status" != 1 ] || ! grep -q "$2" "$work/out"; then
    echo "$1: status $status, and not \"$2\":"
    cat "$work/out"
    exit 1
  fi
}
wrong "$work/none.toml" 'no such file'
wrong "$work" 'no such file'
head -c 200 /dev/urandom >"$work/random.toml"
wrong "$work/random.toml" 'random.toml'
# What is read stays, one output is not lost to another, and a wrong command line has its own status.
refused() { # WORDS ARGUMENT...
  want=$1
  shift
  status=0
  "$fabric" "$@" >"$work/out" 2>&1 || status=$?
  { [ "$status" = 2 ] && grep -q "^hcasim fabric: .*$want" "$work/out"; } || { echo "$*: status $status" && cat "$work/out" && exit 1; }
}
cp "$examples/rail.toml" "$work/kept.toml"
refused 'is what is to be read' "$work/kept.toml" --json "$work/kept.toml"
refused 'both go to' "$work/kept.toml" --json "$work/one-file" --svg "$work/one-file"
refused 'takes whole numbers' "$work/kept.toml" --links -1
refused '--nonsense' --nonsense "$work/kept.toml"
cmp "$examples/rail.toml" "$work/kept.toml"
# The profile counts.
printf '[topology]\nkind = "star"\nhosts = 2\n[workload]\nkind = "all-to-all"\nbytes = 1000\n[card]\nprofile = "connectx6-hdr200"\n' >"$work/x.toml"
"$fabric" "$work/x.toml" | grep -q '2 cards of 200 Gb/s'
"$fabric" "$work/x.toml" --json - | python3 -c 'import json, sys; assert json.load(sys.stdin)["failure"] == ""'
[ ! -e ./- ]

# Some cards are others: the link of one has its own rate, and those that are to be traced are.
cat >"$work/some.toml" <<TOML
[topology]
kind = "star"
hosts = 4
[workload]
kind = "all-to-all"
bytes = 50000
[[cards]]
which = "1, 3"
options = "trace=$work/card{card}.trace,trace_filter=kind=normal+error"
[[cards]]
which = "3"
profile = "connectx5-x8"
options = "port.rate_gbps=25"
TOML
"$fabric" "$work/some.toml" --json "$work/some.json" | grep -q '4 cards of 25 to 100 Gb/s'
[ ! -e "$work/card0.trace" ]
[ -s "$work/card1.trace" ]
[ -s "$work/card3.trace" ]
python3 - "$work/some.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
rates = {l["from"]: l["gbps"] for l in r["links"] if l["from"].startswith("card")}
assert sorted(rates.values()) == [25, 100, 100, 100], rates
assert r["workloads"][0]["done"] == 12 and r["workloads"][0]["most_us"] > 3 * 50000 * 8 / 25e3, r["workloads"]
PY

# What each card loses is left to a chance of its own, made of the file's seed; a seed among the options is that of all.
hash_of() { # SEED OPTIONS
  printf 'seed = %s\n[topology]\nkind = "star"\nhosts = 4\n[workload]\nkind = "all-to-all"\nbytes = 100000\nrounds = 4\n' "$1" >"$work/x.toml"
  printf '[card]\nack_timeout = 1\noptions = "%s"\n' "$2" >>"$work/x.toml"
  "$fabric" "$work/x.toml" >"$work/out"
  grep -q 'sent again [1-9]' "$work/out" || return 1
  sed -n 's/^hash of all arrivals //p' "$work/out"
}
one=$(hash_of 1 drop=0.01)
again=$(hash_of 1 drop=0.01)
other=$(hash_of 2 drop=0.01)
all=$(hash_of 1 drop=0.01,seed=1)
all_again=$(hash_of 2 drop=0.01,seed=1)
[ -n "$one" ]
[ "$again" = "$one" ]
[ "$other" != "$one" ]
[ "$all" != "$one" ]
[ "$all_again" = "$all" ]

base='[topology]
kind = "star"
hosts = 2
[workload]
kind = "all-to-all"
bytes = 1000
[card]'
printf '%s\nprofile = "none"\n' "$base" >"$work/x.toml"
wrong "$work/x.toml" 'none'
printf '%s\noptions = "no=such"\n' "$base" >"$work/x.toml"
wrong "$work/x.toml" 'no'
# A check says so too, with the line, and so does a start of several ranks before there are any.
checked() { # LINE WORDS ARGUMENTS...
  line=$1 words=$2
  shift 2
  if "$fabric" "$work/x.toml" "$@" >"$work/out" 2>&1 || ! grep -q "x.toml:$line: .*$words" "$work/out" ||
    [ "$(grep -c "$words" "$work/out")" != 1 ]; then
    echo "$*: not \"$words\" of line $line:"
    cat "$work/out"
    exit 1
  fi
}
two_racks='[topology]
kind = "leaf-spine"
leaves = 2
hosts = 1
spines = 1
[workload]
kind = "all-to-all"
bytes = 1000'
for arguments in --check '--ranks 2'; do
  printf '%s\n[card]\nprofile = "conectx5"\n' "$two_racks" >"$work/x.toml"
  # shellcheck disable=SC2086 # two words
  checked 10 'profile conectx5: no such file' $arguments
  printf '%s\n[card]\noptions = "drp=0.1"\n' "$two_racks" >"$work/x.toml"
  # shellcheck disable=SC2086
  checked 10 'unknown option drp' $arguments
  printf '%s\n[[cards]]\nwhich = "1"\noptions = "faults=%s/none"\n' "$two_racks" "$work" >"$work/x.toml"
  # shellcheck disable=SC2086
  checked 11 'card 1: faults=' $arguments
  printf '%s\n[card]\nprofile = "default,wire=shm:x"\n' "$two_racks" >"$work/x.toml"
  # shellcheck disable=SC2086
  checked 10 'without a comma' $arguments
done
printf '%s\n[card]\noptions = "trace=%s/one.trace"\n' "$two_racks" "$work" >"$work/x.toml"
"$fabric" "$work/x.toml" --check >"$work/out"
[ ! -e "$work/one.trace" ]
if "$fabric" "$work/x.toml" --check --ranks 2 >"$work/out" 2>&1 || ! grep -q 'are of different ranks' "$work/out"; then exit 1; fi
# Congestion control: what a card's link and generation allow.
for arguments in --check '--ranks 2'; do
  printf '%s\n[dcqcn]\nrpg_gd = 10\nrpg_ai_rate = 100001\n' "$two_racks" >"$work/x.toml"
  # shellcheck disable=SC2086
  checked 11 'rpg_ai_rate: card 0 does not take 100001: its link has 100000 Mb/s' $arguments
done
printf '%s\n[dcqcn]\nrpg_byte_reset = 32768\n' "$base" | sed '/^.card/d' >"$work/x.toml"
wrong "$work/x.toml" 'x.toml:8: .dcqcn. rpg_byte_reset: card 0 does not take 32768: '
printf '%s\nprofile = "connectx7-ndr400"\n[dcqcn]\nrpg_byte_reset = 10000000\nrpg_ai_rate = 400000\nrpg_max_rate = 400000\n' "$base" >"$work/x.toml"
printf 'rpg_gd = 10\ninitial_alpha_value = 512\n' >>"$work/x.toml"
"$fabric" "$work/x.toml" >"$work/out"
# Packets that find no room, and a sender that gives up.
printf '%s\nretries = 0\nack_timeout = 1\n[links]\nhost_ns = 9000000\n[run]\nuntil_us = 100000\n' "$base" >"$work/x.toml"
wrong "$work/x.toml" 'FAILED: message'
# What cannot be written is said before the run; a run that fails leaves files as they were.
for ranks in 1 2; do
  if "$fabric" "$examples/leaf-spine.toml" --ranks "$ranks" --json "$work/none/x" >"$work/said" 2>"$work/out"; then exit 1; fi
  grep -q 'cannot write' "$work/out"
  [ ! -s "$work/said" ]
done
printf '%s\noptions = "no=such"\n' "$base" >"$work/x.toml"
echo before >"$work/kept"
if "$fabric" "$work/x.toml" --json "$work/kept" --svg "$work/new" 2>"$work/out"; then exit 1; fi
[ "$(cat "$work/kept")" = before ]
[ ! -e "$work/new" ]
# A name need not be UTF-8, but JSON is.
name=$(printf 'name\377')
printf '%s\n' "$base" >"$work/$name.toml"
"$fabric" "$work/$name.toml" --json "$work/kept" >"$work/said"
python3 -c 'import json, sys; assert json.load(open(sys.argv[1], encoding="utf-8"))["name"] == "name\ufffd"' "$work/kept"
# Several ranks, where MPI is: all that is said is the same, with marks, pauses and drops. Pods and racks stay whole.
cat >"$work/crowd.toml" <<'TOML'
[topology]
kind = "leaf-spine"
leaves = 4
hosts = 4
spines = 2
[switch]
ecn_kmin_kib = 50
ecn_kmax_kib = 200
ecn_pmax = 0.2
pfc = [3]
[[workload]]
kind = "all-to-all"
bytes = 100000
[[workload]]
kind = "incast"
senders = 12
receiver = 5
bytes = 100000
start_us = 20
TOML
sed -e 's/^pfc.*/queue_kib = 100/' "$work/crowd.toml" >"$work/drops.toml"
"$fabric" "$work/crowd.toml" >"$work/one"
grep -q 'ECN marks [1-9]' "$work/one"
grep -q 'pause frames by switches [1-9]' "$work/one"
if "$fabric" "$work/crowd.toml" --ranks 2 >"$work/out" 2>&1 || ! grep -q 'built without MPI' "$work/out"; then
  sed -e '/^pfc/a [card]\noptions = "trace='"$work"'/one.trace"' "$work/crowd.toml" >"$work/clash.toml"
  status=0
  "$fabric" "$work/clash.toml" --ranks 2 >"$work/out" 2>&1 || status=$?
  [ "$status" = 1 ]
  grep -q 'are of different ranks' "$work/out"
  for name in crowd drops; do
    "$fabric" "$work/$name.toml" >"$work/one"
    grep -v 'real time' "$work/one" >"$work/one.said"
    for ranks in 2 4; do
      "$fabric" "$work/$name.toml" --ranks "$ranks" --json "$work/$ranks.json" >"$work/two"
      grep -v 'real time' "$work/two" | cmp "$work/one.said" -
      grep -q "real time, $ranks ranks" "$work/two"
      grep -q "\"ranks\": $ranks" "$work/$ranks.json"
    done
  done
  grep -q 'buffer full [1-9]' "$work/two"
  # A fault at a time of its own meets the same moment of the run: 100 us from its begin, which is said before.
  "$fabric" "$work/crowd.toml" --check | grep -q '^workloads begin at 1 s of simulated time$'
  printf '[[fault]]\nkind = "port"\naction = "down"\nat = "1000100us"\nduration = "40us"\n' >"$work/down.toml"
  {
    cat "$work/crowd.toml"
    printf '[[cards]]\nwhich = "5"\noptions = "faults=%s"\n' "$work/down.toml"
  } >"$work/timed.toml"
  "$fabric" "$work/timed.toml" >"$work/one"
  grep -v 'real time' "$work/one" >"$work/one.said"
  grep -q 'us simulated from 1 s on' "$work/one"
  grep -q 'sent again [1-9]' "$work/one"
  for ranks in 2 4; do
    "$fabric" "$work/timed.toml" --ranks "$ranks" | grep -v 'real time' | cmp "$work/one.said" -
  done
  # What memory a run takes is said before it, and is near to what it has taken.
  printf '[topology]\nkind = "leaf-spine"\nleaves = 4\nhosts = 4\nspines = 4\n[run]\nuntil_us = 1\n' >"$work/many.toml"
  printf '[workload]\nkind = "all-to-all"\nbytes = 64\npeers = 1\nrounds = 60000\nwindow = 4\n' >>"$work/many.toml"
  for ranks in 1 2 4; do
    said=$("$fabric" "$work/many.toml" --ranks "$ranks" --check | sed -n 's/.*about \([0-9]*\) MiB$/\1/p')
    "$fabric" "$work/many.toml" --ranks "$ranks" --json "$work/many.json" >"$work/out"
    python3 -c 'import json, sys; took = json.load(open(sys.argv[1]))["wall"]["memory_bytes"] / 2**20
said = float(sys.argv[2])
assert 0.75 * took < said < 1.25 * took, (said, took)' "$work/many.json" "$said"
  done
  # The message that fails first, and of those that fail at one time the one of the least number.
  for rows in '1, 15, 0, 1000|2, 0, 15, 1000' '1, 15, 0, 1000|1, 0, 15, 1000'; do
    echo "$rows" | tr '|' '\n' >"$work/failing.csv"
    cat >"$work/failing.toml" <<'TOML'
[topology]
kind = "leaf-spine"
leaves = 4
hosts = 4
spines = 2
[links]
host_ns = 900000
fabric_ns = 10000
[card]
retries = 0
ack_timeout = 1
[workload]
kind = "trace"
file = "failing.csv"
TOML
    for ranks in 1 4; do
      status=0
      "$fabric" "$work/failing.toml" --ranks "$ranks" >"$work/out" 2>&1 || status=$?
      [ "$status" = 1 ]
      grep -q '^FAILED: message 0 from card 15 to card 0 failed: ' "$work/out"
    done
  done
fi
status=0
"$fabric" "$examples/incast.toml" --ranks 2 >"$work/out" 2>&1 || status=$?
[ "$status" = 1 ]
grep -q 'pods and racks are not divided, and here are 1' "$work/out"

"$fabric" --check "$examples/incast.toml" | grep -q '33 cards, 1 switches, 256 messages, about [0-9]* MiB$'
if "$fabric" --check "$examples/fat-tree.toml" --ranks 1000 >"$work/out" 2>&1; then exit 1; fi
grep -q 'are not divided' "$work/out"
