# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# HCASIM_REACHED: a folder for what reached-functions reads.

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
