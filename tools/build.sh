# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Configures and builds, the preset "release" mostly. Needs common.sh, install.sh.

build_jobs() { nproc; }

# configure PRESET FOLDER QEMU-SOURCE MLX5-IFC
configure() {
  (cd "$HCASIM_ROOT" && cmake --preset "$1" -B "$2" -DHCASIM_QEMU="$(command -v qemu-system-x86_64)" -DHCASIM_QEMU_SRC="$3" -DHCASIM_MLX5_IFC="$4")
}

# build_release [TARGET...]: these targets, or all. Nothing is done twice; says nothing when all is up to date.
build_release() { build_preset release "$HCASIM_RELEASE" "$@"; }

# The same for what needs nothing of QEMU: a version whose source is not to be had is no hindrance.
build_without_qemu() { HCASIM_NEEDS_QEMU=no build_preset release "$HCASIM_RELEASE" "$@"; }

# own_folder PRESET FOLDER: a build folder is of one source tree. Within this one, what is of another goes: the tree was moved or copied. Any
# other place may be one that two trees were given.
own_folder() {
  local home
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$2/CMakeCache.txt" 2>/dev/null || true)
  if [[ -z $home || $home -ef $HCASIM_ROOT ]]; then return 0; fi
  [[ $(realpath "$2") == "$(realpath "$HCASIM_ROOT")"/build/* ]] || die "$2 is a build of $home, and not of $HCASIM_ROOT" \
    "each source tree needs a folder of its own: HCASIM_BUILD=DIR in the environment" "if $home has gone: rm -r $2"
  say "hcasim: $2 is a build of $home: this tree was moved or copied, and is built anew"
  with_lock "$1" rm -rf "$2" || die "$2 cannot be removed"
}

# build_preset PRESET FOLDER [TARGET...]
build_preset() {
  local source header configured lack preset=$1 folder=$2 cache=$2/CMakeCache.txt
  shift 2
  if [[ $HCASIM_INSTALLED == no ]]; then own_folder "$preset" "$folder"; fi
  install_missing
  if [[ $HCASIM_INSTALLED == yes ]]; then return 0; fi
  if [[ ${HCASIM_NEEDS_QEMU:-yes} == yes ]]; then
    attended "$HCASIM_ROOT/tools/fetch-qemu-source" >/dev/null || exit 1
    source=$("$HCASIM_ROOT/tools/fetch-qemu-source" --expected) || exit 1
  else
    source=$("$HCASIM_ROOT/tools/fetch-qemu-source" --expected)
    [[ -n ${HCASIM_QEMU_SRC:-} || -e $source/.hcasim-source ]] || source=
  fi
  header=$(mlx5_ifc_header) || die "no mlx5_ifc.h to build with: $(mlx5_ifc_lack)" "install a newer linux-headers-*-common package"
  # Ninja unless this folder was already configured with something else.
  [[ -e $cache ]] || export CMAKE_GENERATOR=Ninja
  # The header that this folder was configured with stays, unless it has gone, as headers go with their kernel, or lacks what is named by now.
  configured=$(sed -n 's/^HCASIM_MLX5_IFC:[A-Z]*=//p' "$cache" 2>/dev/null || true)
  if [[ -e $configured && $configured != "$header" ]]; then header=$(choose_mlx5_ifc "$configured" 2>/dev/null) || header=$configured; fi
  if [[ $(sed -n 's/^HCASIM_QEMU_SRC:[A-Z]*=//p' "$cache" 2>/dev/null) != "$source" || ${configured:-$header} != "$header" ||
    ! (-e $folder/build.ninja || -e $folder/Makefile) ]]; then
    with_lock "$preset" step "configuring" cmake-configure configure "$preset" "$folder" "$source" "$header" ||
      die "CMake cannot configure the build" "./hcasim doctor says what is missing; delete $folder to start afresh"
  fi
  if [[ -e $folder/build.ninja ]] && ninja -C "$folder" -n "$@" 2>/dev/null | grep -q 'no work to do'; then return 0; fi
  with_lock "$preset" step "building" cmake-build cmake --build "$folder" -j "$(build_jobs)" ${1:+--target "$@"} ||
    { lack=$(mlx5_ifc_lack) && die "the build failed; the compiler's messages stand above" ${lack:+"$lack"}; }
}

# in_source_only COMMAND: ends where this is the package, which has not what that command needs.
in_source_only() {
  [[ $HCASIM_INSTALLED == no ]] || die "hcasim $1 is not in the package: it is for those who build hcasim" "clone the source, and ./hcasim $1 there"
}

# run_built FOLDER TARGET ARGUMENT...: a program of the build takes this script's place. It is built when it is not there: what reads
# files shall start at once, whatever has been edited since.
run_built() {
  local program=$HCASIM_RELEASE/$1/$2 target=$2
  shift 2
  if [[ ! -x $program ]] && asks_help "$@"; then
    help_unbuilt "$target"
    return 0
  fi
  if [[ $HCASIM_INSTALLED == no ]]; then own_folder release "$HCASIM_RELEASE"; fi
  [[ -x $program ]] || build_without_qemu "$target"
  [[ -x $program ]] || die "$target is not in the package: it is for those who build hcasim" "clone the source, and ./hcasim there"
  exec "$program" "$@"
}

# The same for a benchmark, which is brought up to date first.
run_bench() {
  asks_help "${@:2}" || { in_source_only "bench ${1#hcasim-bench-}" && build_release "$1"; }
  run_built tests/bench "$@"
}

# asks_help ARGUMENT...: the last one asks for help, which nothing is built for.
asks_help() { (($# > 0)) && [[ ${!#} == --help || ${!#} == -h ]]; }

# help_unbuilt TARGET: what is known of the command $HCASIM_VERB without the program that has its help.
help_unbuilt() {
  printf 'usage: ./hcasim %s [OPTIONS]\n\n' "$HCASIM_VERB"
  usage | grep -E "^  $HCASIM_VERB( |\$)" || true
  if [[ $HCASIM_INSTALLED == yes ]]; then
    printf '\nIt is not in the package: it is for those who build hcasim.\n'
  else
    printf '\nIts options are told by the program %s, which is not built yet: ./hcasim build\n' "$1"
  fi
}
