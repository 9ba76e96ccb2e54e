# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# The source of a guest's kernel of Debian's, and what modules are built with: headers and source come as packages of the very version
# that the guest boots. Needs tools/common.sh, install.sh, apt.sh, driver/guest/recipes.sh.

# kernel_version_known SERIES: sets series (6.1), release, version (of the package).
kernel_version_known() {
  series=$1
  guest_ready "$series" ''
  # shellcheck disable=SC2034 # read by those who build modules
  release=$(<"$GUEST_DIR/release")
  # "... SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)" in the image names the version of its package.
  version=$(strings -n 20 "$GUEST_DIR/vmlinuz" | sed -n 's/.* Debian \([0-9][^ ]*\) ([-0-9]*)$/\1/p' | head -n 1)
  [[ -n $version ]] || die "the kernel's image does not say which package it is of"
}

# download_kernel WORK PACKAGE...: packages of that version, into WORK. Debian 13 has what Debian 12 may no longer have (fetch_kernel).
download_kernel() {
  local work=$1 package suite extra=''
  local -a packages=() suites=(bookworm)
  case $series in
    6.1) ;;
    backports) suites=(trixie) extra=-backports ;;
    *) suites+=(trixie) ;;
  esac
  for package in "${@:2}"; do packages+=("$package=$version"); done
  mkdir -p "$work" || return
  for suite in "${suites[@]}"; do
    apt_private_ready "guest-$suite$extra" "$suite" empty "$extra" || continue
    if (cd "$work" && apt_private "guest-$suite$extra" apt-get download "${packages[@]}"); then return; fi
  done
  return 1
}

# unpack_kernel WORK TAR-OPTIONS...: linux-source, which download_kernel has put there; the first folder of its paths is the tree itself.
unpack_kernel() {
  dpkg-deb --fsys-tarfile "$1"/linux-source-* | tar -xOf - --wildcards './usr/src/linux-source-*.tar.xz' | xz -dc | tar -xf - "${@:2}"
}

# kernel_source_ready SERIES: sets series, release, version, sources (as far as the mlx5 drivers go, VFIO's among them, and RTRS with its
# block device), headers; they stay under build/cache/kernel-source.
kernel_source_ready() {
  kernel_version_known "$@"
  kernel_source=$HCASIM_CACHE/kernel-source/$version
  sysroot=$kernel_source/sysroot sources=$kernel_source/source headers=$kernel_source/sysroot/usr/src/linux-headers-$release
  mkdir -p "$kernel_source"
  with_lock kernel-source fetch_if_missing
}

fetch_if_missing() {
  # Paths are in what kbuild has noted: a folder that was moved is made anew.
  if [[ ! -e $kernel_source/fetched || ! -d $sources/drivers/block/rnbd ]] || ! grep -qF "include $sysroot/" "$headers/Makefile"; then
    step "fetching headers and source of Linux $version" kernel-source with_lock guest fetch_kernel_source ||
      fetch_failed "headers and source of the guest's kernel, $version," kernel-source
  fi
}

fetch_kernel_source() {
  local work=$kernel_source/debs deb kbuild=$series
  # Since 6.9 it is of one release.
  if [[ $series != 6.1 ]]; then kbuild=${release%-amd64}; fi
  rm -rf "$work" "$sysroot" "$sources" && mkdir -p "$work" "$sysroot" "$sources" || return
  download_kernel "$work" "linux-headers-$release" "linux-headers-${release%-amd64}-common" "linux-kbuild-$kbuild" "linux-source-$series" || return
  for deb in "$work"/linux-headers-* "$work"/linux-kbuild-*; do dpkg-deb -x "$deb" "$sysroot" || return; done
  # The headers name their other half by its place on an installed system.
  sed -i "s#^include /usr/src/#include $sysroot/usr/src/#" "$headers/Makefile" || return
  unpack_kernel "$work" -C "$sources" --strip-components=1 --wildcards '*/drivers/infiniband/hw/mlx5' \
    '*/drivers/net/ethernet/mellanox/mlx5/core' '*/drivers/net/ethernet/mellanox/mlxfw' '*/drivers/vfio/pci/mlx5' \
    '*/drivers/infiniband/ulp/rtrs' '*/drivers/block/rnbd' || return
  rm -rf "$work" && touch "$kernel_source/fetched"
}

# module_make FOLDER VARIABLE=VALUE...: modules of $headers' kernel, as that folder's Kbuild or Makefile says, without debug information.
module_make() {
  local own=()
  # The compiler that the headers name is of another Debian than this machine's, perhaps.
  command -v gcc-12 >/dev/null || own=(CC=gcc HOSTCC=gcc)
  nice make -s -C "$headers" "M=$1" "-j$(nproc)" CONFIG_DEBUG_INFO_BTF_MODULES= "${@:2}" "${own[@]}" modules
}

# modules_ready NAME WHAT RECIPE: modules of $version, and prints their folder. They are built by build_modules, from $dir/work (empty) into
# $dir/out, unless this RECIPE (a file) has built them already, and stay under build/cache/NAME.
modules_ready() {
  dir=$HCASIM_CACHE/$1/$version
  mkdir -p "$dir"
  with_lock "$1" build_if_changed "$@"
  printf '%s\n' "$dir/out"
}

build_if_changed() {
  local recipe
  recipe=$(sha256sum <"$3")
  [[ $(cat "$dir/of" 2>/dev/null) != "$recipe" ]] || return 0
  step "building $2 of Linux $version" "$1" build_afresh || die "$2 could not be built: build/logs/$1.log"
  printf '%s\n' "$recipe" >"$dir/of"
}

build_afresh() {
  rm -rf "$dir/work" "$dir/out" && mkdir -p "$dir/work" "$dir/out" && build_modules && rm -rf "$dir/work"
}

# modules_disk FOLDER IMAGE: a file system with the folder's files.
modules_disk() {
  rm -f "$2"
  mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -m 0 -E root_owner=0:0 -d "$1" "$2" "$(($(du -sm "$1" | cut -f 1) * 5 / 4 + 16))M"
}
