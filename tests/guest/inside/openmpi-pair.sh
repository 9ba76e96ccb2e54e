# SPDX-License-Identifier: BSD-3-Clause
# pair: --link eth --mem 3G --append clearcpuid=141 -cpu max,la57=off
# disk: package-disk openmpi openmpi-bin python3-mpi4py ibverbs-providers dash
# script: openmpi
# Open MPI with two ranks in each of two guests.
