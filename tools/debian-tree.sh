# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Compiling with the programs of another release of Debian, which are unpacked into a folder and run there; nothing is installed. Needs
# common.sh, apt.sh, driver/guest/recipes.sh.

# compile_in DEBIAN WORK COMMANDS PACKAGE...: runs COMMANDS (bash) in WORK/source, as Debian DEBIAN (12, 13) with these packages does it. The
# tree with the packages is WORK/tree; there the folder is /source meanwhile.
compile_in() {
  local debian=$1 work=$2 commands=$3 tree=$2/tree suite deb user=()
  shift 3
  suite=$(debian_suite "$debian") || return
  # Of what packages' scripts would have done little is missed; so are Perl's modules, which guests need not have.
  unpack_packages "$debian" "$tree" "$work/unpacked" base-files bash coreutils dash diffutils findutils grep libc6-dev sed "$@" || return
  for deb in "$HCASIM_CACHE/apt/guest-$suite/archives"/perl-modules-*.deb; do
    [[ ! -e $deb ]] || dpkg-deb -x "$deb" "$tree" || return
  done
  mkdir -p "$tree"/{dev,proc,tmp,etc} && mv "$work/source" "$tree/source" || return
  [[ -e $tree/usr/bin/sh ]] || ln -s dash "$tree/usr/bin/sh" || return
  if [[ -d $tree/etc/dpkg/origins ]]; then ln -sf debian "$tree/etc/dpkg/origins/default" || return; fi # whose flags they are
  ((EUID == 0)) || user=(--map-root-user)
  # Its own mounts go with the process.
  # shellcheck disable=SC2016 # for the shells within
  unshare "${user[@]}" --mount bash -c 'mount --rbind /dev "$1/dev" && mount --rbind /proc "$1/proc" && exec chroot "$1" /usr/bin/env -i PATH=/usr/sbin:/usr/bin \
    HOME=/tmp LC_ALL=C.UTF-8 bash -c "cd /source && $2"' - "$tree" "$commands" || return
  mv "$tree/source" "$work/source"
}
