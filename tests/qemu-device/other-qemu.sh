# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# The QEMU of another Debian release beside this machine's own: build/cache/against-CODENAME holds
#   tree/                unpacked packages: the program and all libraries it needs; nothing is installed
#   qemu/                its source
#   qemu-system-x86_64   starts it, with its own loader
# All of it comes from the archive that this machine's apt knows, under the other release's name. Needs common.sh, apt.sh,
# recipes.sh. Functions run where `set -e` may be off, so that each step names its own failure.

OTHER_QEMU_RECIPE=$(realpath "${BASH_SOURCE[0]}")

# Its own libraries; then lib/, which is for what a plugin of this machine's needs beside them; firmware is looked for
# where the packages put it.
other_qemu_wrapper() {
  cat >"$1/qemu-system-x86_64" <<'SH'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
tree=$here/tree/usr
# Those in the machine's own folder are of another QEMU; tests have some of their own.
export QEMU_MODULE_DIR="${QEMU_MODULE_DIR:-$tree/lib/x86_64-linux-gnu/qemu}"
exec "$tree/lib64/ld-linux-x86-64.so.2" --library-path "$tree/lib/x86_64-linux-gnu:$here/lib" "$tree/bin/qemu-system-x86_64" \
  -L "$tree/share/qemu" -L "$tree/share/seabios" -L "$tree/lib/ipxe/qemu" "$@"
SH
  mkdir -p "$1/lib" && chmod +x "$1/qemu-system-x86_64"
}

other_qemu_source() {
  local env=$1 work=$2
  mkdir -p "$work/source" || return
  (cd "$work/source" && apt_private "$env" apt-get source --download-only --only-source qemu) || return
  # apt has checked the files against the archive's signature; the maintainer's own key need not be here.
  (cd "$work/source" && dpkg-source --no-check -x ./*.dsc tree) && mv "$work/source/tree" "$work/out/qemu" && rm -rf "$work/source"
}

other_qemu_fetch() {
  local codename=$1 dir=$2 work=$2.partial env=against-$1
  rm -rf "$work" && mkdir -p "$work/out" || return
  unpack_from "$env" "$codename" '' "$work/out/tree" "$work" qemu-system-x86 seabios ipxe-qemu || return
  other_qemu_source "$env" "$work" && other_qemu_wrapper "$work/out" || return
  "$work/out/qemu-system-x86_64" --version || { echo "E: the QEMU that was fetched does not start"; return 1; }
  rm -rf "$dir" && mv "$work/out" "$dir" && rm -rf "$work" && sha256sum <"$OTHER_QEMU_RECIPE" >"$dir/ready"
}

other_qemu_once() {
  stamp_is "$2/ready" "$(sha256sum <"$OTHER_QEMU_RECIPE")" ||
    step "fetching the QEMU of Debian $1" "against-$1" other_qemu_fetch "$1" "$2"
}

# other_qemu CODENAME: fetches it if need be, prints its folder. Status 1: cannot be had; the log says why.
other_qemu() {
  local dir=$HCASIM_CACHE/against-$1
  with_lock "against-$1" other_qemu_once "$1" "$dir" && printf '%s\n' "$dir"
}

# other_qemu_takes FOLDER PLUGIN: the libraries that the plugin needs and the other release has not, or of another version.
other_qemu_takes() {
  local name path
  while read -r name path; do
    [[ -e $1/tree/usr/lib/x86_64-linux-gnu/$name || -e $1/lib/$name ]] || ln -sfn "$path" "$1/lib/$name" || return
  done < <(ldd "$2" | sed -nE 's/^\s*(\S+) => (\/\S+) .*/\1 \2/p')
}
