# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca id=left,link=eth,generation=connectx7 --hca id=right,link=eth,cable=left,generation=connectx7
# script: dr
