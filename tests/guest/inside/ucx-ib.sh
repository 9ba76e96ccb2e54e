# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --mem 3G
# disk: package-disk ucx ucx-utils ibverbs-providers
# script: ucx
# UCX's transports on InfiniBand.
