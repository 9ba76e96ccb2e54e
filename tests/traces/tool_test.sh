#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# hcasim-trace from the outside: tool_test.sh HCASIM_TRACE TRACE_SAMPLE
set -eu
tool=$1 sample=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

"$sample" "$dir/t" 1000
"$tool" "$dir/t" > "$dir/out" || fail "default output"
grep -q '^SEND  *OK  *1000 ' "$dir/out" || fail "summary lacks the 1000 SENDs"
"$tool" "$dir/t" --wqe --limit 3 | grep -c ' SEND ' | grep -qx 3 || fail "--limit 3"
"$tool" "$dir/t" --json > "$dir/j"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1]))
assert len(d["wqes"])==1000 and d["summary"]["wqes"]==1000' "$dir/j" || fail "--json"
"$tool" "$dir/t" --perfetto "$dir/p"
python3 -c 'import json,sys; assert json.load(open(sys.argv[1]))["traceEvents"]' "$dir/p" || fail "--perfetto"
"$tool" "$dir/t" --qpn 0x43 --wqe | grep -q SEND && fail "--qpn does not filter"
"$tool" "$dir/t" --raw --limit 1 | grep -q doorbell || fail "--raw"
"$tool" --points | grep -q cqe_written || fail "--points"
"$tool" rules "$dir/t" | grep -qx 'no rule was broken' || fail "rules"

# The verbs.
"$tool" list "$dir/t" --slowest 3 > "$dir/out" || fail "list"
grep -q '^3 of 1000 WQEs' "$dir/out" || fail "list --slowest: $(cat "$dir/out")"
wqe=$(sed -n 2p "$dir/out" | cut -d ' ' -f 1)
"$tool" list "$dir/t" --format csv --opcode send --status ok --limit 7 | grep -c ',SEND,' | grep -qx 7 || fail "list --format csv"
"$tool" list "$dir/t" --format json --status error | python3 -c 'import json,sys; assert json.load(sys.stdin)==[]' || fail "list --format json"
"$tool" show "$dir/t" "$wqe" > "$dir/out" || fail "show $wqe"
grep -q 'decoded: SEND' "$dir/out" || fail "show $wqe: $(cat "$dir/out")"
"$tool" why "$dir/t" "$wqe" | grep -q 'It succeeded, in ' || fail "why $wqe"
"$tool" why "$dir/t" > "$dir/out" || fail "why of no WQE in particular"
grep -qx '1000 WQEs, 0 of them failed; none took half as long again as its like.' "$dir/out" || fail "why of none: $(cat "$dir/out")"
"$tool" stats "$dir/t" --histogram | grep -q '^whole life  *1000 ' || fail "stats"
"$tool" commands "$dir/t" --failed > /dev/null || fail "commands"
"$tool" export "$dir/t" --perfetto "$dir/p" --csv "$dir/c" --json "$dir/j" --vcd "$dir/v" || fail "export"
{ [ -s "$dir/p" ] && [ "$(wc -l < "$dir/c")" = 1001 ]; } || fail "export: a row a WQE"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); assert len(d)==1000 and d[7]["stages_ps"]["cqe"]==7*500000+1400000' "$dir/j" \
  || fail "export --json"
grep -q '^.enddefinitions' "$dir/v" || fail "export --vcd"
"$tool" export "$dir/t" --csv - --qpn 0x43 | wc -l | grep -qx 1 || fail "export --qpn"
# 1 ns from each post to its doorbell; the guest's clock is 2 s ahead of simulated time. At so even a pace they fit when shifted, too.
python3 -c 'for i in [*range(0, 995, 5), 999]: print("  app-7 [000] .... %.9f: mlx5_ib_post_send <-x" % (2 + i * 5e-7 - 1e-9))' > "$dir/f"
rc=0; "$tool" export "$dir/t" --perfetto "$dir/p2" --ftrace "$dir/f" 2> "$dir/err" || rc=$?
{ [ $rc = 2 ] && grep -q 'fit as well under an offset of .*give --ftrace-offset NS' "$dir/err"; } || fail "export --ftrace of even events gives $rc: $(cat "$dir/err")"
# What the guest says of its clock.
echo "  app-7 [000] .... 2.000000001: tracing_mark_write: hcasim: t=0" >> "$dir/f"
rc=0; "$tool" export "$dir/t" --perfetto "$dir/p2" --ftrace "$dir/f" 2> "$dir/err" || rc=$?
{ [ $rc = 0 ] && grep -q "guest's time - 2000000001 ns: the guest's mark of simulated time" "$dir/err"; } \
  || fail "export --ftrace gives $rc: $(cat "$dir/err")"
[ "$(wc -c < "$dir/p2")" -gt "$(wc -c < "$dir/p")" ] || fail "export --ftrace adds nothing"
"$tool" export "$dir/t" --perfetto "$dir/p2" --ftrace "$dir/f" --ftrace-offset -5 2> "$dir/err" || fail "export --ftrace-offset"
grep -q "guest's time - 5 ns: as told" "$dir/err" || fail "export --ftrace-offset: $(cat "$dir/err")"
for wrong in "" "--csv /no/such/dir/x" "--ftrace $dir/f" "--perfetto $dir/p2 --ftrace $dir/t" "--perfetto $dir/p2 --ftrace /no/such/file"; do
  rc=0
  # shellcheck disable=SC2086  # several words
  "$tool" export "$dir/t" $wrong 2> "$dir/err" || rc=$?
  { [ $rc = 2 ] && [ -s "$dir/err" ]; } || fail "export $wrong gives $rc"
done
for wrong in 9:9:9 nonsense 0:1:2:3; do
  rc=0; "$tool" why "$dir/t" $wrong 2> "$dir/err" || rc=$?
  [ $rc = 2 ] || fail "why $wrong gives $rc"
done
grep -q 'HCA:QPN:SERIAL' "$dir/err" || fail "why does not say what names a WQE"
rc=0; "$tool" why "$dir/t" cmd:0:77 2> "$dir/err" || rc=$?
[ $rc = 2 ] || fail "why of a command that is not there gives $rc"

# Names that there are not, which must not look like names that nothing in the trace has.
refused() { # WORDS ARGUMENT...
  wanted=$1
  shift
  rc=0; "$tool" "$@" > "$dir/out" 2> "$dir/err" || rc=$?
  { [ $rc = 2 ] && [ ! -s "$dir/out" ] && grep -q -- "$wanted" "$dir/err"; } || fail "$* gives $rc: $(cat "$dir/out" "$dir/err")"
}
refused 'no rule "no-such-rule"; .hcasim rules. lists them' rules "$dir/t" --rule no-such-rule
refused 'no opcode "FOO"; there are .*SEND, .*UMR' list "$dir/t" --opcode FOO
refused 'no opcode "pkt:FOO"' stats "$dir/t" --opcode pkt:FOO
refused 'no status "bogus"; there are error, open, OK, .*RNR_RETRY_EXC' list "$dir/t" --status bogus
refused 'no status "bogus"' stats "$dir/t" --status bogus
refused 'no command "CREATE_PQ"; .commands FILE. without --name' commands "$dir/t" --name CREATE_PQ
refused 'no verb and no file "lst"; verbs: list, show, why, .*report' lst "$dir/t"
refused 'no verb and no file "lst"' lst
for right in "--opcode umr" "--opcode pkt:ack" "--opcode 0x7f" "--opcode ?" "--status open" "--status wr_flush" "--status 0x77"; do
  # shellcheck disable=SC2086  # several words
  "$tool" list "$dir/t" $right | grep -q '^0 of 1000 WQEs' || fail "list $right"
done
"$tool" rules "$dir/t" --rule sq-overrun | grep -qx 'no rule was broken' || fail "rules --rule"
"$tool" commands "$dir/t" --name create_qp > /dev/null || fail "commands --name"
rc=0; "$tool" /no/such/file 2> "$dir/err" || rc=$?
{ [ $rc = 2 ] && grep -q '/no/such/file' "$dir/err"; } || fail "a file that is not there gives $rc: $(cat "$dir/err")"
"$tool" list --help | grep -qi 'usage: hcasim trace list' || fail "list --help: $("$tool" list --help | head -n 4)"
"$tool" --help | grep -qi 'usage: hcasim trace ' || fail "--help"

# Wrong command lines have one status and begin with the program's name, whichever verb it is.
refused '^hcasim trace: .*--nonsense' "$dir/t" --nonsense
refused '^hcasim trace list: .*--nonsense' list "$dir/t" --nonsense
refused '^hcasim trace path: .*--nonsense' path "$dir/t" --nonsense

# Counts and times that there cannot be.
for wrong in "list --limit -3" "list --limit 99999999999999999999" "list --slowest -1" "stats --slowest -1" "commands --limit -1" \
  "path --limit -1" "rules --around -1" "diff --context -1"; do
  # shellcheck disable=SC2086  # several words
  refused 'takes whole numbers from ' $wrong "$dir/t"
done
refused 'takes whole numbers from ' "$dir/t" --limit -1
refused '--limit' stats "$dir/t" --limit 5
for verb in list stats path; do
  refused '--from: takes a number, not "nan"' $verb "$dir/t" --from nan
  refused '--to: has to be later than --from' $verb "$dir/t" --from 10 --to 5
done
# Numbers of what has a name, and words in capitals or not.
for right in "list --opcode 0xa" "list --opcode 0x0A" "list --status 0x0" "list --status Ok" "stats --opcode 0xa"; do
  # shellcheck disable=SC2086  # several words
  "$tool" $right "$dir/t" | grep -q '^1000 of 1000 WQEs' || fail "$right"
done
refused 'no opcode "0x100"' list "$dir/t" --opcode 0x100
refused 'csv' list "$dir/t" --format 1
"$tool" list --help | grep -qE -- '--format NAME' || fail "list --help: $("$tool" list --help)"

# What is read is not overwritten, nor is one output by another.
cp "$dir/t" "$dir/kept"
ln "$dir/t" "$dir/linked"
(cd "$dir" && refused 'what is to be read' export t --csv ./t)
for to in "--csv $dir/t" "--json $dir/linked" "--perfetto $dir/t" "--vcd $dir/t"; do
  # shellcheck disable=SC2086  # several words
  refused 'is what is to be read: name another file' export "$dir/t" $to
done
refused 'is what is to be read' export "$dir/t" --perfetto "$dir/f" --ftrace "$dir/f"
refused 'is what is to be read' "$dir/t" --perfetto "$dir/t"
refused 'is what is to be read' report "$dir/t" -o "$dir/linked"
refused "json and --csv both go to $dir/./none" export "$dir/t" --csv "$dir/none" --json "$dir/./none"
refused 'both go to standard output' export "$dir/t" --csv - --json -
"$tool" export "$dir/t" --csv /dev/null --json /dev/null || fail "export to /dev/null twice"
cmp "$dir/t" "$dir/kept" || fail "the trace was overwritten"

# The worst of a trace that has some of everything: first those that failed.
"$sample" "$dir/v" 4000 varied 5
"$tool" why "$dir/v" --most 7 > "$dir/out" || fail "why of the worst"
{ grep -q '^0:0x4[0-9]:[0-9]*: .* RETRY_EXC' "$dir/out" && grep -c '^0:0x' "$dir/out" | grep -qx 7 && grep -q 'The median of the .* like it' "$dir/out"; } ||
  fail "why of the worst: $(cat "$dir/out")"
sed -n 1p "$dir/out" | grep -q 'RETRY_EXC\|open' || fail "why does not begin with what failed: $(sed -n 1p "$dir/out")"
# shellcheck disable=SC2016  # it is said so
grep -q '2 commands failed: `commands FILE --failed`' "$dir/out" || fail "why does not name the commands that failed"
# shellcheck disable=SC2016  # it is said so
grep -q 'the driver broke rules, 2 times: `rules FILE`' "$dir/out" || fail "why does not say that rules were broken: $(tail -n 3 "$dir/out")"
"$tool" "$dir/v" --errors > "$dir/out"
{ grep -q 'packet_drop.* WQE 0:0x.*: dropped, .*: the QP is not in a state to receive it' "$dir/out" &&
  grep -q 'doorbell_bad.*UAR page 0x3, offset 0x20 (CQ arm): value 0x5, for CQ 0x99' "$dir/out"; } || fail "--errors is not in words: $(head -3 "$dir/out")"
# Tables fit 100 columns.
for table in list commands stats; do
  "$tool" $table "$dir/v" | awk -v what=$table 'length($0) > 100 { print what ": " $0; bad = 1 } END { exit bad }' || fail "$table: a row is wider than 100 columns"
done
"$tool" "$dir/v" --limit 50 | awk 'length($0) > 100 { print; bad = 1 } END { exit bad }' || fail "a row is wider than 100 columns"

[ "$("$tool" list "$dir/v" --status ERROR | tail -n 1)" = "$("$tool" list "$dir/v" --status error | tail -n 1)" ] || fail "--status ERROR"
"$tool" list "$dir/v" --status Error | grep -q ' RETRY_EXC' || fail "--status Error"
"$tool" commands "$dir/v" --name 0x200 > "$dir/out"
"$tool" commands "$dir/v" --name create_mkey | cmp - "$dir/out" || fail "commands --name 0x200"
grep -q ' CREATE_MKEY ' "$dir/out" || fail "commands --name 0x200: $(cat "$dir/out")"
# Several at once; the first that there is not ends it.
"$tool" why "$dir/v" cmd:0:1 "$wqe" > "$dir/out" || fail "why of several: $(cat "$dir/out")"
{ grep -q '^cmd:0:1: ' "$dir/out" && grep -q "^$wqe: " "$dir/out"; } || fail "why of several: $(cat "$dir/out")"
! "$tool" show "$dir/v" "$wqe" | grep -q '+-' || fail "show: two signs"

# The page: its figures are those of `stats`.
"$tool" report "$dir/v" -o "$dir/page.html" > "$dir/out" || fail "report"
grep -q 'of 4000 WQEs and 40 commands' "$dir/out" || fail "report says $(cat "$dir/out")"
"$tool" stats "$dir/v" > "$dir/stats"
python3 - "$dir/page.html" "$dir/stats" <<'PY' || fail "report differs from stats"
import json, re, sys
html = open(sys.argv[1], encoding="utf-8").read()
data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S).group(1))
rows = [line.rsplit(None, 4) for line in open(sys.argv[2])][2:]
page = [[s["name"], str(s["count"])] + ["%.1f" % (t / 1e3) for t in s["times"]] for s in data["steps"]]
assert len(rows) > 10 and [r[:1] + r[1:] for r in rows] == page, (rows, page)
PY
(cd "$dir" && "$tool" report v > /dev/null && [ -s v.html ]) || fail "report without -o"
"$tool" report "$dir/v" -o - | head -n 1 | grep -qx '<!DOCTYPE html>' || fail "report -o -"
printf 'SF:/src/main.c\nFN:1,probe\nFNDA:1,probe\nDA:1,1\nDA:2,0\nend_of_record\n' > "$dir/cov"
"$tool" report "$dir/v" -o "$dir/page.html" --coverage "$dir/cov" > /dev/null || fail "report --coverage"
grep -q 'main.c",1,2,1,1\]' "$dir/page.html" || fail "report --coverage has no row of the file"
for wrong in "-o $dir/v" "-o /no/such/dir/x" "--coverage $dir/v" "--coverage /no/such/file"; do
  rc=0
  # shellcheck disable=SC2086  # several words
  "$tool" report "$dir/v" $wrong 2> "$dir/err" > /dev/null || rc=$?
  { [ $rc = 2 ] && [ -s "$dir/err" ]; } || fail "report $wrong gives $rc"
done

# Damage is told and what can be read is shown.
head -c -100 "$dir/t" > "$dir/cut"
rc=0; "$tool" "$dir/cut" > /dev/null 2> "$dir/err" || rc=$?
{ [ $rc = 3 ] && grep -q "ends within" "$dir/err"; } || fail "a cut file gives $rc: $(cat "$dir/err")"
rc=0; "$tool" report "$dir/cut" -o "$dir/page.html" > /dev/null 2> "$dir/err" || rc=$?
{ [ $rc = 3 ] && grep -q "ends within" "$dir/err" && grep -q '"warning":"[^"]*ends within' "$dir/page.html"; } || fail "report of a cut file gives $rc"
{ cat "$dir/t" && printf 'more'; } > "$dir/long"
rc=0; "$tool" "$dir/long" > /dev/null 2> "$dir/err" || rc=$?
{ [ $rc = 3 ] && grep -q "4 bytes follow the end mark" "$dir/err"; } || fail "a file with something behind its end gives $rc: $(cat "$dir/err")"
rc=0; "$tool" /dev/null 2> "$dir/err" || rc=$?
{ [ $rc = 2 ] && grep -q "not an hcasim trace" "$dir/err"; } || fail "no trace file gives $rc: $(cat "$dir/err")"
rc=0; "$tool" 2> "$dir/err" || rc=$?
[ $rc = 2 ] || fail "no file named gives $rc"
"$tool" "$dir/t" --perfetto /no/such/dir/x 2> /dev/null && fail "unwritable output"

# Where two traces part.
"$sample" "$dir/u" 1000
"$tool" diff "$dir/t" "$dir/u" | grep -qx 'the same: 8000 records' || fail "diff of equal traces"
"$sample" "$dir/s" 990
rc=0; "$tool" diff "$dir/t" "$dir/s" > "$dir/out" || rc=$?
{ [ $rc = 1 ] && grep -q '^B ends after 7920 records' "$dir/out"; } || fail "diff of a shorter trace gives $rc: $(cat "$dir/out")"
rc=0; "$tool" diff "$dir/t" "$dir/cut" > /dev/null 2> "$dir/err" || rc=$?
{ [ $rc = 2 ] && grep -q "ends within" "$dir/err"; } || fail "diff with a cut file gives $rc"
rc=0; "$tool" diff "$dir/t" /no/such/file 2> /dev/null || rc=$?
[ $rc = 2 ] || fail "diff with a missing file gives $rc"
rc=0; "$tool" diff "$dir/t" > /dev/null 2>&1 || rc=$?
[ $rc = 2 ] || fail "diff of one file gives $rc"
echo ok
