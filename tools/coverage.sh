# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# shellcheck disable=SC2054 # commas are QEMU's
#
# Which lines of the guest's drivers ran: boot --coverage, hcasim coverage. Needs common.sh, build.sh, apt.sh, recipes.sh.

coverage_usage() {
  cat <<'TEXT'
usage: ./hcasim coverage VERB ...

Which lines, branches and functions of the guest's unmodified drivers ran, by tests run with --coverage DIR (boot, pair, test).

  table FILE... [--by directory|file|function] [--missing]    what was reached
  patch PATCH FILE... [--sources TREE]   of the lines that a patch adds: which ran, in which test, and which not
  merge FILE... -o OUT [--json OUT]      adds tracefiles
  html DIR FILE... [--sources TREE]      pages to look at, by genhtml (package lcov); without a tree: of the Debian 6.1 kernel's source
  line [FILE:LINE] --trace TRACE --loads DIR/TEST.loads [--kernel K] [--modules M] [--coverage-modules A,B] [--coverage-libraries A,B]
                  [--debian N]           the WQEs and commands that a line of a driver or a library caused, such as en_tx.c:612; of a run
                                         with --coverage DIR --hca guest_pc=on,trace=TRACE; what follows --loads as that run had it
FILE is a tracefile that --coverage has made, DIR/NAME.info, in lcov's format; DIR/NAME.json says the same. A verb's own --help has more.
TEXT
}

command_coverage() {
  case ${1:-} in
    '' | help | -h | --help) coverage_usage ;;
    html) coverage_html "${@:2}" ;;
    line) coverage_line "${@:2}" ;;
    *) run_built coverage hcasim-coverage "$@" ;;
  esac
}

coverage_html() {
  local out='' sources='' work
  local -a files=()
  while (($# > 0)); do
    case $1 in
      --sources) (($# >= 2)) || die "--sources needs a folder" && sources=$2 && shift ;;
      --sources=*) sources=${1#*=} ;;
      -h | --help) coverage_usage && return 0 ;;
      *) if [[ -z $out ]]; then out=$1; else files+=("$1"); fi ;;
    esac
    shift
  done
  ((${#files[@]} > 0)) || die "coverage html takes a folder for its pages, and tracefiles" "./hcasim coverage html pages DIR/*.info"
  have genhtml || die "there is no genhtml" "it is in the package lcov: apt-get install lcov"
  [[ -x $HCASIM_RELEASE/coverage/hcasim-coverage ]] || build_without_qemu hcasim-coverage
  if [[ -z $sources ]]; then
    [[ $HCASIM_INSTALLED == no ]] || die "coverage html needs --sources: the tree that the guest's modules were built from"
    # shellcheck source=tests/guest/lib-kernel-source.sh
    . "$HCASIM_ROOT/tests/guest/lib-kernel-source.sh"
    kernel_source_ready 6.1
    # shellcheck disable=SC2154 # kernel_source_ready sets it
    sources=$kernel_source/source
  fi
  [[ -d $sources ]] || die "--sources: no such folder: $sources" "it is the tree that the guest's modules were built from"
  sources=$(cd "$sources" && pwd)
  work=$(mktemp "${TMPDIR:-/tmp}/hcasim-coverage.XXXXXX")
  # shellcheck disable=SC2064 # the file's name now, not later
  trap "rm -f '$work'" EXIT
  "$HCASIM_RELEASE/coverage/hcasim-coverage" merge --root "$sources" -o "$work" "${files[@]}" || exit 1
  genhtml --quiet --branch-coverage --prefix "$sources" --title "hcasim: the guest's drivers" --output-directory "$out" "$work"
  say "pages: $out/index.html"
}

coverage_line() {
  local kernel=6.1 own='' names=mlx5_core,mlx5_ib debian=12 library path trace='' loads=''
  local -a rest=() libraries=()
  while (($# > 0)); do
    case $1 in
      --kernel | --modules | --coverage-modules | --coverage-libraries | --debian)
        (($# >= 2)) || die "$1 needs a value"
        case $1 in
          --coverage-libraries) read -r -d '' -a libraries <<<"${2//,/ }" || true ;;
          --debian) debian=$2 ;;
          --kernel) kernel=$2 ;;
          --modules) own=$2 ;;
          *) names=$2 ;;
        esac
        shift
        ;;
      --trace=* | --loads=* | --kernel=* | --modules=* | --coverage-modules=* | --coverage-libraries=* | --debian=*)
        set -- "${1%%=*}" "${1#*=}" "${@:2}"
        continue
        ;;
      --trace | --loads)
        (($# >= 2)) || die "$1 needs a value" "./hcasim coverage --help"
        if [[ $1 == --trace ]]; then trace=$2; else loads=$2; fi
        rest+=("$1" "$2")
        shift
        ;;
      -h | --help) coverage_usage && return 0 ;;
      *) rest+=("$1") ;;
    esac
    shift
  done
  # Before anything is built or fetched.
  [[ -n $trace && -n $loads ]] || die "coverage line needs --trace TRACE and --loads DIR/TEST.loads" "./hcasim coverage --help"
  [[ -f $trace && -r $trace ]] || die "--trace: cannot read $trace"
  [[ -f $loads && -r $loads ]] || die "--loads: cannot read $loads" "boot --coverage DIR writes DIR/TEST.loads"
  kernel_known "$kernel"
  [[ -z $own || -d $own ]] || die "--modules $own is no folder"
  debian_suite "$debian" >/dev/null || die "--debian takes 12, 13 or 14, not '$debian'"
  guest_ready "$kernel" "$own"
  [[ -x $HCASIM_RELEASE/coverage/hcasim-coverage ]] || build_without_qemu hcasim-coverage
  coverage_module_options "$names" "$kernel" || exit 1
  for library in "${libraries[@]}"; do
    path=$("$HCASIM_ROOT/tools/coverage-library" "$library" "$debian") || exit 1
    COVERAGE_MODULES+=(--library "$library=$path")
  done
  exec "$HCASIM_RELEASE/coverage/hcasim-coverage" line "${rest[@]}" "${COVERAGE_MODULES[@]}"
}

# coverage_module_options MODULES KERNEL: into COVERAGE_MODULES, where the modules of the guest of GUEST_DIR and their debug information are.
coverage_module_options() {
  local module ko debug
  COVERAGE_MODULES=()
  for module in ${1//,/ }; do
    ko=$(guest_module "$module")
    if [[ -z $ko ]]; then
      warn "coverage: the guest has no module $module"
      continue
    fi
    debug=$(coverage_debug "$module" "$ko" "$2") || return
    COVERAGE_MODULES+=(--module "$module=$ko${debug:+,$debug}")
  done
}

# What boot has beside its other options to have it counted what runs: QEMU's into COVERAGE_OPTIONS, the guest's files into COVERAGE_FILES.
# coverage_options DIR TEST MODULES LIBRARIES DEBIAN
coverage_options() {
  local dir=$1 name=$2 modules=$3 libraries=$4 pages='' library path
  local plugin # for the same QEMU as the device
  plugin=$(dirname "$(dirname "$HCASIM_PLUGIN")")/coverage/libhcasim-executed.so
  [[ -e $plugin ]] || die "there is no $plugin" "./hcasim build makes it"
  mkdir -p "$dir" || die "--coverage $dir: no folder can be made there"
  rm -f "$dir/$name".{executed,loads,info,json,pages}
  : >"$dir/$name.loads"
  COVERAGE_LIBRARIES=()
  for library in ${libraries//,/ }; do
    path=$("$HCASIM_ROOT/tools/coverage-library" "$library" "$5") || exit 1
    COVERAGE_LIBRARIES+=("$path")
  done
  if ((${#COVERAGE_LIBRARIES[@]} > 0)); then
    "$HCASIM_RELEASE/coverage/hcasim-coverage" pages "${COVERAGE_LIBRARIES[@]%%,*}" -o "$dir/$name.pages" || exit 1
    pages=,pages=${dir//,/,,}/$name.pages
  fi
  COVERAGE_OPTIONS=(-plugin "$plugin,out=${dir//,/,,}/$name.executed$pages" -device virtio-serial-pci,id=hcasim-coverage,ioeventfd=off
    -chardev "file,id=coverage,path=${dir//,/,,}/$name.loads"
    -device virtserialport,bus=hcasim-coverage.0,chardev=coverage,name=hcasim.coverage)
  COVERAGE_FILES=("$GUEST_RECIPES/report-modules")
}

# coverage_lines DIR TEST MODULES KERNEL: the lines, from what was counted. The guest of GUEST_DIR has ended.
coverage_lines() {
  local dir=$1 name=$2 modules=$3 kernel=$4 module status=0
  coverage_module_options "$modules" "$kernel" || return
  local -a options=("${COVERAGE_MODULES[@]}")
  for module in "${COVERAGE_LIBRARIES[@]}"; do options+=(--library "$(basename "${module%%,*}" .so)=$module"); done
  step "finding the lines that ran" coverage "$HCASIM_RELEASE/coverage/hcasim-coverage" resolve --executed "$dir/$name.executed" \
    --loads "$dir/$name.loads" --test "$name" --also include/linux/mlx5 -o "$dir/$name.info" --json "$dir/$name.json" "${options[@]}" || status=$?
  ((status == 0)) || { tail -n 3 "$HCASIM_LOGS/coverage.log" >&2; return "$status"; }
  grep '^hcasim-coverage: ' "$HCASIM_LOGS/coverage.log" >&2 || true
  rm -f "$dir/$name".{executed,pages}
  "$HCASIM_RELEASE/coverage/hcasim-coverage" table "$dir/$name.info" >&2
  say "hcasim: coverage: $dir/$name.info (hcasim coverage table, patch, html)"
}

# guest_module NAME: prints which file the guest of GUEST_DIR loads; modprobe takes those of the user (own_kernel) before others.
guest_module() {
  local updates found
  updates=$(find "$GUEST_DIR/lib/modules" -mindepth 2 -maxdepth 2 -name updates)
  found=$(find ${updates:+"$updates"} "$GUEST_DIR/lib/modules" -name "${1//_/[-_]}.ko" -print -quit)
  printf '%s\n' "$found"
}

# coverage_debug_ready KERNEL: the debug information of a kernel of Debian's is there, so that no test has to wait for it.
coverage_debug_ready() {
  guest_ready "$1" ''
  coverage_debug mlx5_core "$(guest_module mlx5_core)" "$1" >/dev/null
}

# coverage_debug MODULE KO KERNEL: prints the file with the module's debug information, if it has none itself.
coverage_debug() {
  local module=$1 ko=$2 kernel=$3 dir version file
  # All of the list is read: readelf that cannot go on writing is an error (pipefail), as if there was none.
  if readelf -SW "$ko" | grep ' \.debug_info ' >/dev/null; then return 0; fi
  if ! debian_kernel "$kernel"; then
    die "$ko has no debug information" "build the modules with CONFIG_DEBUG_INFO_DWARF5 and install them without INSTALL_MOD_STRIP"
  fi
  version=$(strings -n 20 "$GUEST_DIR/vmlinuz" | sed -nE 's/.* Debian ([0-9][^ ]*) \([-0-9]*\)$/\1/p' | head -n 1)
  dir=$HCASIM_CACHE/debug/$(<"$GUEST_DIR/release")${version:+_$version}
  file=$dir/$module.debug
  if [[ ! -e $file ]]; then
    with_lock guest step "fetching the debug information of Linux $kernel's modules (some 900 MB, once)" coverage-debug apt_private_again fetch_debug "$dir" "$kernel" "$version" ||
      fetch_failed "debug information of the guest's kernel ($version)" coverage-debug
  fi
  [[ -e $file ]] || die "Debian's debug information of Linux $kernel has no module $module" "delete $dir and try again"
  printf '%s\n' "$file"
}

# fetch_debug DIR KERNEL VERSION: of all modules that guests have. The package holds those of every driver of Linux.
fetch_debug() {
  local dir=$1 kernel=$2 version=$3 release work=$1.partial env suite extra='' deb='' file
  local -a patterns=()
  release=$(<"$GUEST_DIR/release")
  rm -rf "$work" && mkdir -p "$work/out" || return
  if [[ $kernel == backports ]]; then extra=-backports; fi
  for suite in bookworm trixie; do
    env=guest-$suite$extra
    apt_private_ready "$env" "$suite" empty "$extra" || continue
    (cd "$work" && apt_private "$env" apt-get download "linux-image-$release-dbg${version:+=$version}") || continue
    deb=$(find "$work" -maxdepth 1 -name '*.deb' -print -quit)
    [[ -z $deb ]] || break
  done
  [[ -n $deb ]] || { echo "E: no package linux-image-$release-dbg${version:+=$version} could be fetched"; return 1; }
  for file in mlx5_core mlx5_ib mlx5_vdpa mlx5_vfio_pci ib_core ib_uverbs rdma_cm ib_ipoib; do
    patterns+=("*/$file.ko" "*/${file//_/-}.ko" "*/$file.ko.*")
  done
  echo "unpacking $deb"
  # Names that the package lacks are none of our business; any other error is.
  { dpkg-deb --fsys-tarfile "$deb" || echo "dpkg-deb ended with status $?" >"$work/dpkg.log"; } |
    tar -C "$work/out" -xf - --wildcards "${patterns[@]}" 2>"$work/tar.log" || true
  if [[ -e $work/dpkg.log ]] || grep -vE ': (Not found in archive|Exiting with failure status due to previous errors)$' "$work/tar.log"; then
    echo "E: $deb cannot be unpacked"
    return 1
  fi
  rm -f "$deb"
  mkdir -p "$dir" || return
  while IFS= read -r -d '' file; do
    mv "$file" "$dir/$(basename "$file" | sed -e 's/\.ko.*//' -e 'y/-/_/').debug" || return
  done < <(find "$work/out" -name '*.ko*' -type f -print0)
  rm -rf "$work"
  [[ -n $(find "$dir" -name '*.debug' -print -quit) ]] || { echo "E: $deb had none of the modules"; return 1; }
}
