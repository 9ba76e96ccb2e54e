#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `bench timing` from the outside: timing_tool_test.sh HCASIM_BENCH_TIMING PUBLISHED_TOML FIDELITY_MD
set -eu
tool=$1 published=$2 page=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
refused() { # TEXT ARGUMENTS...: status 2, and TEXT in the message
  want=$1
  shift
  rc=0
  "$tool" "$@" > "$dir/out" 2> "$dir/err" || rc=$?
  { [ $rc = 2 ] && grep -qF -- "$want" "$dir/err"; } || fail "$*: status $rc: $(cat "$dir/err")"
}

# The table: status 0 with every row, 1 when one is off.
"$tool" --json "$dir/j" --csv "$dir/c" > "$dir/out" || fail "a published row is off: $(cat "$dir/out")"
grep -q 'rows, all within their tolerances' "$dir/out" || fail "no verdict"
# The page that shows the table, and lists what is assumed.
awk '/^```/ {on = 0} /^row  set-up/ {on = 1} on' "$page" | diff - "$dir/out" || fail "$page does not show this table (> what it should be)"
"$tool" --profile default --export json > "$dir/profile"
awk '/^```/ {on = 0} on; /^```assumed/ {on = 1}' "$page" > "$dir/assumed"
python3 -c 'import json,sys; there=set(open(sys.argv[2]).read().split())
right={f["section"]+"."+f["key"] for f in json.load(open(sys.argv[1]))["fields"] if "assumed" in f["evidence"].lower()}
sys.exit("; ".join(m + ", ".join(sorted(n)) for m, n in (("not listed: ", right-there), ("listed, but not assumed: ", there-right)) if n) or 0)' \
  "$dir/profile" "$dir/assumed" || fail "$page: what is assumed"
[ "$(grep -c '^\[\[row\]\]' "$published")" = "$(($(wc -l < "$dir/c") - 1))" ] || fail "--csv lacks rows"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert d and all(r["ok"] for r in d)' "$dir/j" || fail "--json"
rc=0
"$tool" --row 6b --row 1 --set pcie.read_latency_ns=900 > "$dir/out" || rc=$?
{ [ $rc = 1 ] && grep -q '^6b .*OFF' "$dir/out" && grep -q '1 of 2 rows OFF' "$dir/out" && [ "$(wc -l < "$dir/out")" = 4 ]; } ||
  fail "a row that is off: status $rc: $(cat "$dir/out")"

# One measurement, a grid, files.
"$tool" --pattern write_lat --size 64 | grep -Eq '^ +write_lat +64 +[0-9.]+ +[0-9.]+ +[0-9.]+$' || fail "--pattern"
"$tool" --set pattern=write_lat --set size=64 > "$dir/c"
"$tool" --pattern write_lat --size 64 | cmp - "$dir/c" || fail "--set pattern"
"$tool" --pattern read_bw --sweep size=4K,64K --sweep pcie.lanes=8,16 --csv "$dir/c" --json "$dir/j" --svg "$dir/s" > "$dir/out"
[ "$(wc -l < "$dir/out")" = 5 ] || fail "--sweep: $(cat "$dir/out")"
[ "$(wc -l < "$dir/c")" = 5 ] || fail "--csv of a sweep"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1]))
assert [r["setup"]["size"] for r in d]==["4096"]*2+["65536"]*2 and all(r["result"]["Gb/s"]>1 for r in d)' "$dir/j" || fail "--json of a sweep"
python3 -c 'import sys; from xml.etree import ElementTree as E
assert len([n for n in E.parse(sys.argv[1]).iter() if n.tag.endswith("polyline")])==2' "$dir/s" || fail "--svg of a sweep"
for pattern in write_lat send_rate; do
  "$tool" --set pattern=$pattern --svg "$dir/s" > "$dir/out"
  python3 -c 'import sys; from xml.etree import ElementTree as E
assert len([n for n in E.parse(sys.argv[1]).iter() if n.tag.endswith("polyline")])==1' "$dir/s" || fail "--svg over size"
  [ "$(grep -c $pattern "$dir/out")" = 13 ] || fail "--svg over size: $(cat "$dir/out")"
done
"$tool" --qps 4 --svg "$dir/s" > "$dir/out"
{ grep -q write_bw "$dir/out" && ! grep -q write_lat "$dir/out"; } || fail "--svg over size: a latency of several QPs"
"$tool" --pattern write_lat --csv - | head -n 1 | grep -q '^profile,pattern,' || fail "--csv -"
"$tool" --profile connectx5-x8 --list > "$dir/out"
{ grep -Eq '^  pcie.lanes +8$' "$dir/out" && grep -q '^  cq_mod' "$dir/out" && grep -q '^  23 ' "$dir/out"; } || fail "--list"

# A profile, for other simulators.
"$tool" --profile connectx6-hdr200 --export json > "$dir/j"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); f={(x["section"],x["key"]): x for x in d["fields"]}
page=f["engine","gather_page_ns"]
assert d["generation"]=="connectx6" and "thesis" in d["sources"] and d["sections"]["cache"] and len(f)>60
assert page["value"]==1110 and page["unit"]=="ns" and "row 31" in page["evidence"]' "$dir/j" || fail "--export json"
"$tool" --profile connectx5-x8 --export csv > "$dir/c"
python3 -c 'import csv,sys; rows=list(csv.DictReader(open(sys.argv[1])))
assert [r for r in rows if (r["section"],r["key"],r["value"])==("pcie","lanes","8") and "row 10" in r["evidence"]]
assert all(r["unit"] for r in rows), [r["key"] for r in rows if not r["unit"]]
unit={r["section"]+"."+r["key"]: r["unit"] for r in rows}
assert unit["memory.llc_kib"]==unit["memory.llc_io_kib"]=="KiB" and unit["port.lane_buffer"]=="B"' "$dir/c" || fail "--export csv"
# What the file leaves as it is, what is given beside it, and nothing that a run would refuse.
printf '[pcie]\nlanes = 8 # of mine\n' > "$dir/part.toml"
"$tool" --profile "$dir/part.toml" --set pcie.tags=77 --export json > "$dir/j"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); f={x["section"]+"."+x["key"]: x for x in d["fields"]}
assert f["pcie.lanes"]["value"]==8 and f["pcie.lanes"]["evidence"]=="of mine"
assert f["pcie.tags"]["value"]==77 and "--set" in f["pcie.tags"]["evidence"]
assert len(f)>100 and f["host.post_ns"]["value"]==30 and "default" in f["host.post_ns"]["evidence"]' "$dir/j" || fail "--export of a part"
printf '[pcie]\nlanes = "x8"\n' > "$dir/part.toml"
refused "$dir/part.toml:2: pcie.lanes: must be a whole number" --profile "$dir/part.toml" --export csv
refused 'pcie.lanes: must be' --set pcie.lanes=x8 --export json

# What perftest would print, and a profile fitted to it.
"$tool" --profile connectx5-x8 --pattern read_lat --sweep size=2,4K --set pcie.read_latency_ns=600 --perftest > "$dir/p.txt"
{ grep -q '^ *RDMA_Read Latency Test$' "$dir/p.txt" && [ "$(grep -c '#bytes' "$dir/p.txt")" = 1 ] &&
  [ "$(grep -Ec '^ (2|4096) +200 +[0-9]' "$dir/p.txt")" = 2 ]; } || fail "--perftest: $(cat "$dir/p.txt")"
"$tool" --profile connectx5-x8 --fit "$dir/p.txt" --over pcie.read_latency_ns --out "$dir/mine.toml" --json "$dir/j" > "$dir/out" 2> "$dir/err"
{ grep -Eq '^pcie.read_latency_ns +460 +(59|60)[0-9] .*yes$' "$dir/out" && grep -q '^round 1: ' "$dir/err" &&
  grep -Eq '^read_latency_ns = (59|60)[0-9] .*fitted to p.txt.*before: round trip' "$dir/mine.toml"; } || fail "--fit: $(cat "$dir/out" "$dir/err")"
python3 -c 'import json,sys; p=json.load(open(sys.argv[1]))["parameters"]
assert len(p)==1 and abs(p[0]["fitted"]-600)<12 and p[0]["standard_error"]>0 and p[0]["identified"]=="yes"' "$dir/j" || fail "--fit --json"
"$tool" --profile "$dir/mine.toml" --list | grep -Eq '^  pcie.read_latency_ns +(59|60)[0-9]$' || fail "--profile of a fit"
# What is given for a parameter that the rows do not tell is in the profile, as all figures are of it.
"$tool" --profile connectx5-x8 --fit "$dir/p.txt" --over pcie.read_latency_ns,engine.crypto_ns --set engine.crypto_ns=333 --out "$dir/given.toml" > "$dir/out" 2> "$dir/err"
{ grep -Eq '^engine.crypto_ns +333 +333 +no: ' "$dir/out" && grep -Eq '^crypto_ns = 333 +# given beside p.txt; not identified.*\(was 100\)' "$dir/given.toml"; } ||
  fail "--fit --set: $(cat "$dir/out" "$dir/err" "$dir/given.toml")"
# Parameters whose 0 is a word have no way from there; values that contradict another one end no fit.
refused '--over port.lane_buffer: 0 stands for "no flow control"' --profile connectx5-x8 --fit "$dir/p.txt" --over port.lane_buffer
"$tool" --profile connectx5-x8 --fit "$dir/p.txt" --over engine.inflight_packets --set engine.inflight_packets=33 > "$dir/out" 2> "$dir/err" ||
  fail "--fit of a value next to what is not allowed: $(cat "$dir/err")"

sed 's/^ 4096 */ /' "$dir/p.txt" > "$dir/short.txt"
refused "$dir/short.txt:13: 8 figures, where the heading has 9" --fit "$dir/short.txt"
refused 'goes with --over' --fit "$dir/p.txt" --csv -
refused 'is named NAME.toml' --fit "$dir/p.txt" --out "$dir/mine"
refused 'goes in steps' --fit "$dir/p.txt" --over pcie.lanes
refused 'say how they are measured' --fit "$published" --link ib
refused 'is of another profile than the first' --fit "$published"
refused '--perftest: of what is measured' --perftest
refused 'pcie.lane: unknown; allowed are generation, lanes' --set pcie.lane=4
refused 'profile nobody: no such file; profiles are connectx' --profile nobody
refused 'size=x: allowed: 1 to 64M bytes' --size x
refused 'latency is of one message at a time' --pattern write_lat --sweep qps=1,64
refused 'latency is of one message at a time' --pattern write_lat --qps 4 --svg "$dir/s"
refused 'plots over size' --pattern write_lat --size 64 --svg "$dir/s"
refused 'plots over size' --set size=64 --svg "$dir/s"
refused 'goes with --set only' --row 1 --svg "$dir/s"
refused 'there is no row 77; there are 1, 2a' --row 77
refused '"size": expected KEY=A,B,C' --sweep size
refused 'expected KEY=VALUE' --set size
refused 'hcasim bench timing: ' --frob
refused 'profile nobody' --profile nobody --export csv
# Before anything is measured, so that nothing is printed; what was there stays.
for kind in json csv svg; do
  refused "cannot write /no/such/folder/f" --pattern write_lat --sweep size=8,16 --$kind /no/such/folder/f
  [ ! -s "$dir/out" ] || fail "--$kind: measured before the file was opened"
done
refused 'cannot write /no/such/folder/f' --csv /no/such/folder/f
refused 'cannot write /no/such/folder/f.toml' --fit "$dir/p.txt" --out /no/such/folder/f.toml
! grep -q round "$dir/err" || fail "--out: fitted before the file was opened"
refused 'a plot needs a --sweep over numbers' --pattern write_lat --sweep link=eth,ib --svg "$dir/new"
[ ! -e "$dir/new" ] || fail "--svg: a file of a plot that is refused"
echo before > "$dir/kept"
refused 'size=x' --pattern write_lat --size x --csv "$dir/kept"
refused 'must be' --pattern write_lat --set pcie.lanes=3 --csv "$dir/kept" --json "$dir/new"
{ [ "$(cat "$dir/kept")" = before ] && [ ! -e "$dir/new" ]; } || fail "a run that fails changes files"
# What is read stays, and one output is not lost to another.
cp "$dir/mine.toml" "$dir/read.toml"
refused 'is what is to be read' --profile "$dir/read.toml" --pattern write_lat --csv "$dir/read.toml"
refused 'is what is to be read' --pattern write_lat --sweep profile=default,"$dir/read.toml" --json "$dir/read.toml"
refused 'is what is to be read' --fit "$dir/p.txt" --json "$dir/p.txt"
cmp "$dir/mine.toml" "$dir/read.toml" || fail "the profile was overwritten"
refused "both go to $dir/new" --pattern write_lat --csv "$dir/new" --json "$dir/new"
refused 'both go to standard output' --pattern write_lat --csv - --json -
# A key has one value.
for twice in "--sweep size=2 --sweep size=4" "--set size=8 --size 16" "--set pcie.lanes=8 --set pcie.lanes=16" "--size 8 --sweep size=2,4"; do
  # shellcheck disable=SC2086 # several words
  refused ': give one' --pattern write_lat $twice
done
# A name need not be UTF-8, but JSON is.
name=$dir/$(printf 'name\377.toml')
cp "$dir/mine.toml" "$name"
"$tool" --profile "$name" --pattern write_lat --json "$dir/j" > "$dir/out"
python3 -c 'import json,sys; assert json.load(open(sys.argv[1], encoding="utf-8"))[0]["setup"]["profile"].endswith("name\ufffd.toml")' "$dir/j" ||
  fail "--json of a profile whose name is not UTF-8"
cp "$dir/p.txt" "$dir/$(printf 'p\377.txt')"
"$tool" --profile connectx5-x8 --fit "$dir/$(printf 'p\377.txt')" --over pcie.read_latency_ns --json "$dir/j" > "$dir/out" 2> "$dir/err" ||
  fail "--fit of a file whose name is not UTF-8: $(cat "$dir/err")"
refused 'no such file' --profile "$dir/$(printf 'none\377.toml')" --pattern write_lat
refused 'transport=ud: only for send' --pattern write_lat --transport ud
printf '[[row]]\nid = 1\n' > "$dir/rows"
refused "$dir/rows:1: id: a string" --published "$dir/rows"
