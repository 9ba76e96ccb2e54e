# SPDX-License-Identifier: BSD-3-Clause
# boot: --hca link=eth,id=left,cable=right,generation=connectx7,options=crypto=on:keep_link=off --hca link=eth,id=right,generation=connectx7,options=crypto=on:keep_link=off --hca link=eth,id=loose,wire=unix:/tmp/hcasim-selftests-nobody --smp 6 --mem 3G
# disk: selftests-disk backports
# file: selftests.txt
# kernel: own-backports
# script: selftests
# The kernel's own tests of network drivers (selftests.sh) of what Debian's kernels leave out, on a card that may encrypt.
