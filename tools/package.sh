# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# ./hcasim package: a Debian package of what has been built, for machines without a compiler. Needs common.sh, install.sh, build.sh.

package_usage() {
  cat <<'TEXT'
usage: ./hcasim package [--output DIR]

Makes hcasim_VERSION_amd64.deb in DIR (build/package): the device for this machine's QEMU, the commands that need no compiler (demo,
boot, pair, serve, control, stats, trace, coverage, replay, state, rules, faults, qemu-args, doctor), profiles, documentation, completion and a man page.
Install it with: apt-get install ./hcasim_*.deb
It goes with exactly this version of QEMU. What guests are made from is fetched at the first boot, into ~/.cache/hcasim.
TEXT
}

# The programs of the package: folder, target.
PACKAGE_PROGRAMS=(traces/hcasim-trace traces/hcasim-rules card/hcasim-replay card/hcasim-state model/hcasim-faults vfio-user/hcasim-serve coverage/hcasim-coverage)

# package_documents FOLDER: README and docs/, beside one another as in the source, so that their links hold.
package_documents() {
  mkdir -p "$1" && cp "$HCASIM_ROOT/README.md" "$1/" && cp -r "$HCASIM_ROOT/docs" "$1/docs" && rm "$1/docs/hcasim.1"
}

# package_tree TREE: what is installed, below /.
package_tree() {
  local tree=$1 root=$1/usr/lib/hcasim program
  mkdir -p "$root"/{tools,driver,model,built/qemu-device,built/share/hcasim} "$tree"/usr/{bin,share/{doc/hcasim,man/man1,bash-completion/completions}} || return
  cp "$HCASIM_ROOT/hcasim" "$root/" || return
  cp "$HCASIM_ROOT"/tools/{*.sh,fetch-qemu-client,coverage-library,packages.txt,stats.py} "$root/tools/" || return
  cp -r "$HCASIM_ROOT/driver/guest" "$root/driver/" && cp -r "$HCASIM_ROOT/model/profiles" "$root/model/" || return
  install -s -m 755 "$HCASIM_PLUGIN" "$root/built/qemu-device/" || return
  install -s -D -m 755 "$HCASIM_RELEASE/coverage/libhcasim-executed.so" "$root/built/coverage/libhcasim-executed.so" || return
  for program in "${PACKAGE_PROGRAMS[@]}"; do install -s -D -m 755 "$HCASIM_RELEASE/$program" "$root/built/$program" || return; done
  # Programs look for profiles beside themselves.
  ln -s ../../../model/profiles "$root/built/share/hcasim/profiles" || return
  dpkg-query -W -f '${Version}' qemu-system-x86 >"$root/installed" || return
  ln -s ../lib/hcasim/hcasim "$tree/usr/bin/hcasim" || return
  package_documents "$tree/usr/share/doc/hcasim" || return
  gzip -9n <"$HCASIM_ROOT/docs/hcasim.1" >"$tree/usr/share/man/man1/hcasim.1.gz" || return
  cp "$HCASIM_ROOT/tools/completion.bash" "$tree/usr/share/bash-completion/completions/hcasim" || return
  rm -f "$root/tools/completion.bash"
  find "$tree" -type d -exec chmod 755 {} + && find "$tree" -type f -exec chmod go=u-w {} +
}

# The libraries that the programs link, as dependencies on packages.
package_libraries() {
  local work=$1 tree=$2
  local -a programs
  mkdir -p "$work/debian" && printf 'Source: hcasim\n\nPackage: hcasim\nArchitecture: amd64\n' >"$work/debian/control" || return
  mapfile -d '' programs < <(find "$tree/usr/lib/hcasim/built" -type f -print0)
  (cd "$work" && dpkg-shlibdeps -O --ignore-missing-info "${programs[@]}" 2>"$work/shlibdeps.log") | sed -n 's/^shlibs:Depends=//p'
}

package_version() {
  local version
  version=$(sed -n 's/^project(hcasim VERSION \([0-9.]*\).*/\1/p' "$HCASIM_ROOT/CMakeLists.txt")
  # Of a commit, its day and its name; a tree without history has neither.
  version+=$(git -C "$HCASIM_ROOT" -c safe.directory='*' log -1 --date=format:%Y%m%d --format='+git%cd.%h' 2>/dev/null || true)
  # shellcheck disable=SC1091
  printf '%s~deb%s' "$version" "$(. /etc/os-release && echo "${VERSION_ID:-0}")"
}

package_make() {
  local out=$1 work=$2 tree=$2/tree qemu libraries guest
  rm -rf "$work" && mkdir -p "$work" "$out" || return
  package_tree "$tree" || return
  qemu=$(<"$tree/usr/lib/hcasim/installed")
  libraries=$(package_libraries "$work" "$tree") || return
  [[ -n $libraries ]] || { echo "E: dpkg-shlibdeps names no libraries"; cat "$work/shlibdeps.log"; return 1; }
  guest=$(HCASIM_INSTALLED=yes package_list | grep -vx qemu-system-x86 | paste -sd , | sed 's/,/, /g')
  # dpkg-deb refuses a folder that is only its owner's, as umask may make it.
  install -d -m 755 "$tree/DEBIAN" && chmod 755 "$tree" || return
  cat >"$tree/DEBIAN/control" <<CONTROL || return
Package: hcasim
Version: $(package_version)
Architecture: amd64
Maintainer: hcasim <hcasim@localhost>
Section: otherosfs
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f 1)
Depends: $libraries, qemu-system-x86 (= $qemu), $guest, python3
Description: simulator of an mlx5-class HCA, as a PCIe device for QEMU
 A cycle-approximate model of an RDMA and Ethernet adapter, which the
 unmodified mlx5 drivers of a guest find, bring up and use.
CONTROL
  chmod 644 "$tree/DEBIAN/control" || return
  dpkg-deb --root-owner-group -Zxz --build "$tree" "$out" || return
}

command_package() {
  local out=$HCASIM_BUILD/package log
  while (($# > 0)); do
    case $1 in
      --output) (($# >= 2)) || die "--output needs a folder" && out=$2 && shift ;;
      --output=*) out=${1#*=} ;;
      -h | --help) package_usage && return 0 ;;
      *) die "package does not know '$1'" "./hcasim package --help" ;;
    esac
    shift
  done
  [[ $HCASIM_INSTALLED == no ]] || die "this hcasim is itself a package" "packages are made from the source tree"
  build_release hcasim-qemu hcasim-executed "${PACKAGE_PROGRAMS[@]##*/}"
  log=$HCASIM_LOGS/package.log
  step "making the package" package package_make "$out" "$HCASIM_BUILD/package.partial" || die "the package could not be made" "its log: $log"
  rm -rf "$HCASIM_BUILD/package.partial"
  sed -n "s/^dpkg-deb: building package .* in '\(.*\)'\.\$/\1/p" "$log"
}
