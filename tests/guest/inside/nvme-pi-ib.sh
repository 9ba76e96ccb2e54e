# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --mem 2G
# script: nvme-pi
# nvme-pi on InfiniBand, whose addresses are IPoIB's.
