# SPDX-License-Identifier: BSD-3-Clause
# boot: --no-modprobe --smp 1 --mem 3G --hca link=eth,vfs=2
# gcov: build-gcov-modules
# program: gcov_counters
# The drivers, built for gcov, do $test_argument; check-gcov compares what gcov says of them with what hcasim has counted from outside.
hca_drivers || fail "modprobe"
have_work "${test_argument:-verbs}"
# From here nobody calls the drivers any more, not even at the guest's end: the counters are final.
echo "${pf##*/}" >"$pf/driver/unbind" || fail "unbind"
within 60 test ! -e "$pf/driver"
echo "counters: begin"
gcov_counters mlx5_core mlx5_ib || fail "gcov_counters"
