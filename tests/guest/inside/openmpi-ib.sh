# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=ib --mem 3G --append clearcpuid=141 -cpu max,la57=off
# disk: package-disk openmpi openmpi-bin python3-mpi4py ibverbs-providers dash
# script: openmpi
# Open MPI on InfiniBand.
