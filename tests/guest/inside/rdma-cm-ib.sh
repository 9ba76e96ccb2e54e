# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --mem 2G
# disk: package-disk cm qperf librdmacm1 rdmacm-utils ibverbs-providers dash base-files
# script: rdma-cm
