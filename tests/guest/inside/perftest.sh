# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --mem 5G
# One perftest tool, named by $test_argument: all sizes that it has on 1 QP; a bandwidth tool then on 64 QPs with three
# sizes. TOOL:full does all sizes on 64 QPs too: perftest then fills 2 GiB with rand(), minutes of an emulated processor.
tool=${test_argument%%:*}
wait_active mlx5_0
mark_kernel_log
limit=200
[[ $test_argument != *:full ]] || limit=1200
case $tool in
  *atomic*) all=() ;;
  *) all=(-a) ;;
esac
run() {
  pair 18515 "$limit" "$tool" -d mlx5_0 -F "$@" || fail "$tool $*"
  sed -n '/#bytes/,$p' /tmp/client.18515
  grep -qiE 'completion with error|failed|unable|couldn' /tmp/client.18515 /tmp/server.18515 && fail "$tool $* speaks of errors"
  return 0
}
case $tool in
  *_lat) run "${all[@]}" -n 50 ;;
  *_bw)
    run "${all[@]}" -n 100
    if [[ $tool == *atomic* || $test_argument == *:full ]]; then
      # A multiple of the moderation (4 here): else perftest ends a size with completions that it has not polled.
      run "${all[@]}" -n 8 -t 4 -q 64
    else
      for size in 2 4096 262144; do run -s "$size" -n 20 -t 8 -q 64; done
    fi
    ;;
esac
no_complaints "$tool"
