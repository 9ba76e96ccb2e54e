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
