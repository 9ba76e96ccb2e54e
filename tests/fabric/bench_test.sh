#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# `./hcasim bench fabric`, small: a row for each size and number of processes, with frames in each, and a curve.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $1" >&2 && exit 1; }
HCASIM_UNDER_TEST=1 "$here/hcasim" bench fabric --cards 8,18 --ranks 1,2 --simulated 50 --out "$work" >"$work/said" || fail "status $?"
awk -F, 'NR > 1 && $3 > 100 && $6 >= 0 && $8 > 1 && length($9) == 16' "$work/fabric.csv" | cut -d, -f1,2 >"$work/rows"
printf '%s\n' 8,1 8,2 18,1 18,2 | cmp - "$work/rows" || fail "rows: $(cat "$work/fabric.csv")"
grep -q '<polyline' "$work/fabric.svg" || fail "no curve"
if HCASIM_UNDER_TEST=1 "$here/hcasim" bench fabric --cards 7 --out "$work" 2>"$work/why"; then fail "7 cards under leaves"; fi
grep -q 'take a number with divisors' "$work/why" || fail "$(cat "$work/why")"

# Up to 4,096 cards a millisecond is no more messages than there may be.
# shellcheck source=tools/bench.sh
. "$here/tools/bench.sh"
for cards in 8 2000 4096; do
  fabric_scenario "$cards" 1000 >"$work/large.toml"
  HCASIM_UNDER_TEST=1 "$here/hcasim" fabric "$work/large.toml" --check >"$work/said" || fail "$cards cards"
  grep -q " $cards cards, " "$work/said" || fail "$(cat "$work/said")"
done
# What cannot be run is refused before anything is.
refused() { # WORDS ARGUMENTS...
  local words=$1
  shift
  if HCASIM_UNDER_TEST=1 "$here/hcasim" bench fabric --out "$work" "$@" >"$work/said" 2>"$work/why"; then fail "$*: was run"; fi
  grep -q "$words" "$work/why" || fail "$*: $(cat "$work/why")"
  [[ ! -s $work/said ]] || fail "$*: $(cat "$work/said")"
}
refused 'more than 4194304 messages' --cards 8,4096 --simulated 100000
refused 'are not divided' --cards 8 --ranks 1,64
refused '8192 cards' --cards 8,8192
