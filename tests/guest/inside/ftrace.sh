# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --lockstep
# ftrace: -
# program: driver_work
# The guest's kernel trace beside the HCA's: functions of the driver, and one of a program (by a uprobe), that ring doorbells.
wait_active mlx5_0 120
tracing=/sys/kernel/tracing
mount -t tracefs tracefs $tracing 2>/dev/null || [[ -e $tracing/trace ]] || fail "no tracefs"
cd $tracing || fail "no tracefs"
# The TSC counts instructions, as the emulator's clock and simulated time do.
echo x86-tsc >trace_clock || fail "trace_clock"
echo 4096 >buffer_size_kb
{
  echo "p:post mlx5_ib_post_send"
  echo 'r:posted mlx5_ib_post_send'
  echo "p:ring mlx5r_ring_db"
  echo 'r:rung mlx5r_ring_db'
} >kprobe_events || fail "kprobes: $(cat error_log)"
program=$(command -v driver_work)
offset=$(driver_work where)
printf 'p:user_post %s:%s\nr:user_posted %s:%s\n' "$program" "$offset" "$program" "$offset" >uprobe_events || fail "uprobes: $(cat error_log)"
printf '%s\n' cmd_work_handler mlx5_ib_post_send mlx5_ib_poll_cq irq_int_handler >set_ftrace_filter || fail "functions to trace"
echo function >current_tracer
for group in kprobes uprobes; do echo 1 >events/$group/enable || fail "events $group"; done
echo "hcasim test begins" >trace_marker
driver_work mrs 5 || fail "driver_work mrs"
driver_work writes 20 || fail "driver_work writes"
perfquery >/dev/null || fail "perfquery"
echo "hcasim test ends" >trace_marker
echo 0 >tracing_on
echo "ftrace: begin"
grep -v '^#' trace
echo "ftrace: end"
cd /root || exit 1
