# SPDX-License-Identifier: BSD-3-Clause
# boot: --mem 5G
# One perftest tool, named by $test_argument: all sizes that it has, on 1 QP and (bandwidth) on 64.
tool=$test_argument
wait_active mlx5_0
mark_kernel_log
limit=240
case $tool in
  *atomic*) sizes=() ;;
  *) sizes=(-a) ;;
esac
run() {
  pair 18515 "$limit" "$tool" -d mlx5_0 -F "$@" || fail "$tool $*"
  sed -n '/#bytes/,$p' /tmp/client.18515
  grep -qiE 'completion with error|failed|unable|couldn' /tmp/client.18515 /tmp/server.18515 && fail "$tool $* speaks of errors"
  return 0
}
case $tool in
  *_lat) run "${sizes[@]}" -n 100 ;;
  *_bw)
    run "${sizes[@]}" -n 100
    run "${sizes[@]}" -n 5 -t 4 -q 64
    ;;
esac
no_complaints "$tool"
