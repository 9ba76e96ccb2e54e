# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib
# XRC in user space: ibv_xsrq_pingpong, polling and with events, short and longer messages.
wait_active mlx5_0
mark_kernel_log
xrc() { pair 18520 90 ibv_xsrq_pingpong "$@" || fail "ibv_xsrq_pingpong $*"; }
xrc -n 200
xrc -e -n 100
xrc -s 65536 -n 50
xrc -m 256 -s 5000 -n 50
no_complaints "ibv_xsrq_pingpong"
