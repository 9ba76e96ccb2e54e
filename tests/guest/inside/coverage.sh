# SPDX-License-Identifier: BSD-3-Clause
# boot: --no-modprobe --smp 1 --mem 3G --hca link=eth,vfs=2
# coverage: -
# Which functions of the drivers run from before they are loaded until they are gone, by the kernel's own function tracer; check-coverage
# compares them, and how often each ran, with what hcasim has counted from outside. $test_argument: what the drivers do meanwhile.
tracing=/sys/kernel/tracing
mount -t tracefs tracefs $tracing 2>/dev/null || [[ -e $tracing/trace ]] || fail "no tracefs"
cd $tracing || fail "no tracefs"
echo 204800 >buffer_size_kb || fail "the tracer's buffer"
# An empty list would be all of the kernel; what is said of modules that are not there yet holds when they come.
echo tracefs_create_dir >set_ftrace_filter && echo '*:mod:mlx5_core' >>set_ftrace_filter && echo '*:mod:mlx5_ib' >>set_ftrace_filter ||
  fail "functions to trace"
echo function >current_tracer || fail "function tracer"
hca_drivers || fail "modprobe"
grep -hE '\[(mlx5_core|mlx5_ib)\]' available_filter_functions | cut -d ' ' -f 1 >/tmp/traceable
have_work "${test_argument:-verbs}"
# Of a module that has gone the tracer has addresses.
grep -hE '\[(mlx5_core|mlx5_ib)\]' /proc/kallsyms >/tmp/symbols
modprobe -r mlx5_ib && modprobe -r mlx5_core || fail "modprobe -r"
echo 0 >tracing_on
lost=$(awk '/^(overrun|dropped events|commit overrun)/ { lost += $NF } END { print lost + 0 }' per_cpu/cpu*/stats)
((lost == 0)) || fail "the tracer has lost $lost events"
note "traced: $(wc -l </tmp/traceable) functions can be"
echo "traceable: begin"
cat /tmp/traceable
echo "traceable: end"
echo "symbols: begin"
awk '$2 ~ /^[tT]$/ { print $1, $3 }' /tmp/symbols
echo "symbols: end"
echo "traced: begin"
awk '!/^#/ { for (i = 1; i < NF; i++) if ($i ~ /:$/ && $(i + 1) !~ /:$/) { n[$(i + 1)]++; break } } END { for (f in n) print f, n[f] }' trace
echo "traced: end"
