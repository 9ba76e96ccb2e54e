# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Configures and builds the preset "release". Needs common.sh, install.sh.

build_jobs() { nproc; }

configure_release() {
  (cd "$HCASIM_ROOT" && cmake --preset release -B "$HCASIM_RELEASE" -DHCASIM_QEMU_SRC="$1" -DHCASIM_MLX5_IFC="$2")
}

# build_release [TARGET...]: these targets, or all. Nothing is done twice; says nothing when all is up to date.
build_release() {
  local source header cache=$HCASIM_RELEASE/CMakeCache.txt
  install_missing
  source=$("$HCASIM_ROOT/tools/fetch-qemu-source") || exit 1
  header=$(mlx5_ifc_header) || die "no mlx5_ifc.h under /usr/src" "install a linux-headers-*-common package"
  # Ninja unless this folder was already configured with something else.
  [[ -e $cache ]] || export CMAKE_GENERATOR=Ninja
  if [[ $(sed -n 's/^HCASIM_QEMU_SRC:[A-Z]*=//p' "$cache" 2>/dev/null) != "$source" ||
    ! (-e $HCASIM_RELEASE/build.ninja || -e $HCASIM_RELEASE/Makefile) ]]; then
    with_lock release step "configuring" cmake-configure configure_release "$source" "$header" ||
      die "CMake cannot configure the build" "./hcasim doctor says what is missing; delete $HCASIM_RELEASE to start afresh"
  fi
  if [[ -e $HCASIM_RELEASE/build.ninja ]] && ninja -C "$HCASIM_RELEASE" -n "$@" 2>/dev/null | grep -q 'no work to do'; then return 0; fi
  with_lock release step "building" cmake-build cmake --build "$HCASIM_RELEASE" -j "$(build_jobs)" ${1:+--target "$@"} ||
    die "the build failed; the compiler's messages stand above"
}

# run_built FOLDER TARGET ARGUMENT...: a program of the build takes this script's place. It is built when it is not there: what reads
# files shall start at once, whatever has been edited since.
run_built() {
  local program=$HCASIM_RELEASE/$1/$2 target=$2
  shift 2
  [[ -x $program ]] || build_release "$target"
  exec "$program" "$@"
}

# The same for a benchmark, which is brought up to date first.
run_bench() {
  build_release "$1"
  run_built tests/bench "$@"
}
