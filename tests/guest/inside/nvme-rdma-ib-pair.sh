# SPDX-License-Identifier: BSD-3-Clause
# pair: --link ib
# script: nvme-rdma
