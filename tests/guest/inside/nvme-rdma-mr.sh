# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth --mem 2G --append ib_core.force_mr=1
# script: nvme-rdma
# The target registers memory for each transfer, as it does on cards that say it is better for their READs (max_sgl_rd).
