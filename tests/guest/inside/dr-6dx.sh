# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca id=left,link=eth,generation=connectx6dx --hca id=right,link=eth,cable=left,generation=connectx6dx
# script: dr
