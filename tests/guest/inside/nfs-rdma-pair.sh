# SPDX-License-Identifier: BSD-3-Clause
# pair: --link ib --mem 2G
# disk: package-disk nfs base-files nfs-kernel-server nfs-common rpcbind dash
# script: nfs-rdma
