# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# What the tests reach of the drivers. HCASIM_REACHED: a folder for what reached-functions reads.

# reached_options NAME: into reached_boot, the options of ./hcasim boot that make the folder's files of a test with one guest, which runs
# inside/lib-functions.sh; none if nobody asks.
reached_options() {
  local folder=${HCASIM_REACHED:-} name=${1//,/+}
  reached_boot=()
  if [[ -n $folder ]]; then
    mkdir -p "$folder"
    # shellcheck disable=SC2054,SC2034 # commas are QEMU's; whoever calls uses it
    reached_boot=(-plugin "${HCASIM_BUILD:-$root/build}/release/tests/guest/libentered-blocks.so,out=$folder/$name.blocks"
      -chardev "file,id=functions,path=$folder/$name.functions" -device virtserialport,chardev=functions,name=hcasim.functions)
  fi
}

# HCASIM_COVERAGE: a folder for the coverage of each test; HCASIM_COVERAGE_LIBRARIES: libraries beside the modules.
# coverage_test_options NAME KERNEL: into covered_boot, the options of ./hcasim boot that make it, beside those in `boot`; none if nobody asks.
coverage_test_options() {
  covered_boot=()
  # A kernel of build-kernel has no debug information.
  [[ -n ${HCASIM_COVERAGE:-} && $2 != own ]] || return 0
  covered_boot=(--coverage "$HCASIM_COVERAGE" --coverage-test "${1//[^A-Za-z0-9._+-]/+}.linux-$(basename "$2")")
  # shellcheck disable=SC2034 # whoever calls uses it
  [[ -z ${HCASIM_COVERAGE_LIBRARIES:-} ]] || covered_boot+=(--coverage-libraries "$HCASIM_COVERAGE_LIBRARIES")
}
