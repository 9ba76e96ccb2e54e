# SPDX-License-Identifier: BSD-3-Clause
# pair: --link eth
# script: roce-loop
# capture: --min roce-rc=1000 --min roce-uc=100 --min roce-ud=100
