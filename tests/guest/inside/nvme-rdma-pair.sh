# SPDX-License-Identifier: BSD-3-Clause
# pair: --link eth
# script: nvme-rdma
