# SPDX-License-Identifier: BSD-3-Clause
# breaks: mr-key receive-length rkey-bounds rkey-unknown
# from: snapshot
# boot: --hca link=ib
# program: verbs_check
# Every RC operation with every byte compared, then the errors. Its tests are named in verbs_check.c.
wait_active "${verbs_device:-mlx5_0}"
mark_kernel_log
timeout 240 verbs_check ${verbs_device:+--device "$verbs_device"} ${test_argument:+$test_argument} || fail "verbs_check: status $?"
no_complaints "verbs_check"
