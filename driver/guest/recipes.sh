# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Makes what a guest is started from, out of Debian packages; nothing is installed on this machine. Needs common.sh, apt.sh.
#   build/cache/guest/kernel-<6.1|6.12|backports>/   vmlinuz, release, lib/modules/<release> (the modules of modules.txt)
#   build/cache/guest/root-<12|13|14>.img     the user space of that Debian
#   build/cache/guest/<kernel>/            initramfs.img, modules.img
# Each is made once; a changed recipe (this file, packages.txt, modules.txt, the init scripts) makes it again.
# Functions run where `set -e` may be off (inside a condition), so that each step names its own failure.

GUEST_RECIPES=$HCASIM_ROOT/driver/guest
GUEST_CACHE=$HCASIM_CACHE/guest

# The lines of a list; one that starts with "13:" is of Debian 13 and later, if $2 is one.
recipe_list() {
  sed -E -e 's/#.*//' -e '/^[[:space:]]*$/d' "$GUEST_RECIPES/$1" |
    awk -v debian="${2:-0}" 'match($0, /^[0-9]+:/) { if (debian + 0 < substr($0, 1, RLENGTH - 1) + 0) next; sub(/^[0-9]+: */, "") } { print }'
}
debian_suite() { case $1 in 12) echo bookworm ;; 13) echo trixie ;; 14) echo forky ;; *) return 1 ;; esac; }
# recipe_hash FILES -- FUNCTIONS: changes when one of these does.
recipe_hash() {
  {
    while (($# > 0)) && [[ $1 != -- ]]; do
      cat "$GUEST_RECIPES/$1"
      shift
    done
    shift || true
    (($# == 0)) || declare -f "$@"
  } | sha256sum | cut -c 1-16
}

# Fresh when the stamp holds exactly this text.
stamp_is() { [[ -r $1 && $(<"$1") == "$2" ]]; }

# Whether $1 names a kernel of Debian's: a series, or the newest one in the backports of Debian 13.
debian_kernel() { [[ $1 == 6.1 || $1 == 6.12 || $1 == backports ]]; }

# Package names of kernel series $1 in the lists of the private apt $2, newest first.
kernel_candidates() {
  local series=${1//./\\.} pattern
  if [[ $1 == backports ]]; then
    pattern='^linux-image-[0-9.]+\+deb13(u[0-9]+)?-amd64$'
  elif [[ $1 == 6.1 ]]; then pattern='^linux-image-6\.1\.0-[0-9]+-amd64$'; else pattern="^linux-image-$series\\.[0-9]+(\\+deb[0-9.]+(u[0-9]+)?)?-amd64\$"; fi
  apt_private "$2" apt-cache pkgnames linux-image- | grep -E "$pattern" | sort -rV
}

# fetch_kernel SERIES: the newest package that the archive really gives; a mirror may list one and not have its file.
fetch_kernel() {
  local series=$1 dir=$GUEST_CACHE/kernel-$1 work=$GUEST_CACHE/kernel-$1.partial env suite extra='' package tries=0 deb
  local -a suites=(bookworm trixie) parts
  if [[ $series == backports ]]; then suites=(trixie) extra=-backports; fi
  rm -rf "$work" && mkdir -p "$work" || return
  for suite in "${suites[@]}"; do
    env=guest-$suite$extra
    apt_private_ready "$env" "$suite" empty "$extra" || { echo "suite $suite cannot be read"; continue; }
    for package in $(kernel_candidates "$series" "$env"); do
      tries=$((tries + 1))
      ((tries <= 5)) || break 2
      echo "trying $package from $suite"
      rm -f "$work"/*.deb # of a candidate that the archive gave a part of
      # Newer ones are in several packages.
      mapfile -t parts < <(apt_private "$env" apt-cache depends "$package" | sed -nE 's/^ *Depends: (linux-(binary|modules)-.*)/\1/p')
      if (cd "$work" && apt_private "$env" apt-get download "$package" "${parts[@]}"); then
        deb=$(find "$work" -maxdepth 1 -name '*.deb')
        break 2
      fi
      echo "hcasim: the archive lists $package but did not give its file"
    done
  done
  [[ -n ${deb:-} ]] || { echo "E: no package of Linux $series could be fetched"; return 1; }
  mkdir "$work/tree" "$work/out" || return
  for deb in "$work"/*.deb; do
    echo "unpacking $deb"
    dpkg-deb --fsys-tarfile "$deb" | tar -C "$work/tree" -xf - || return
  done
  local release vmlinuz
  vmlinuz=$(find "$work/tree" -name 'vmlinuz-*' -o -path '*/modules/*/vmlinuz' | head -n 1)
  release=${vmlinuz##*/vmlinuz-}
  if [[ $vmlinuz == */vmlinuz ]]; then release=$(basename "$(dirname "$vmlinuz")"); fi
  [[ -n $release ]] || { echo "E: no kernel in $package"; return 1; }
  cp "$vmlinuz" "$work/out/vmlinuz" && printf '%s\n' "$release" >"$work/out/release" &&
    printf '%s\n' "$package" >"$work/out/package" || return
  if [[ -d $work/tree/usr/lib/modules && ! -d $work/tree/lib/modules ]]; then mkdir -p "$work/tree/lib" && mv "$work/tree/usr/lib/modules" "$work/tree/lib/"; fi
  echo "choosing the modules"
  depmod -b "$work/tree" "$release" && pick_modules "$work/tree" "$work/out" "$release" || return
  recipe_hash modules.txt -- fetch_kernel pick_modules >"$work/out/stamp" || return
  rm -rf "$dir" && mv "$work/out" "$dir" && rm -rf "$work"
}

# pick_modules FROM TO RELEASE: copies the modules of modules.txt and all they depend on; writes early.txt, the
# initramfs' modules in load order.
pick_modules() {
  python3 - "$GUEST_RECIPES/modules.txt" "$1/lib/modules/$3" "$2/lib/modules/$3" "$2/early.txt" <<'PY' || return
import os, re, shutil, subprocess, sys
wanted_file, source, target, early_file = sys.argv[1:]
stem = lambda path: re.sub(r"\.ko(\.\w+)?$", "", os.path.basename(path)).replace("-", "_")
needs, path_of = {}, {}
for line in open(os.path.join(source, "modules.dep")):
    path, _, rest = line.strip().partition(":")
    needs[path] = rest.split()
    path_of[stem(path)] = path
early, chosen = [], set()
def load(path, order):
    if path in order: return
    for other in reversed(needs.get(path, [])):
        load(other, order)
    if path not in order: order.append(path)
for line in open(wanted_file):
    words = line.split("#")[0].split()
    if not words or words[0].startswith("#"): continue
    path = path_of.get(words[-1].replace("-", "_"))
    if path is None: continue
    order = []
    load(path, order)
    chosen.update(order)
    if words[0] == "early":
        for each in order:
            if each not in early: early.append(each)
# Compressed modules are unpacked here, once, and not by each guest under emulation.
unpacker = {".xz": "xz", ".zst": "zstd", ".gz": "gzip"}
plain = lambda path: re.sub(r"\.ko\.\w+$", ".ko", path)
for path in sorted(chosen):
    to = os.path.join(target, plain(path))
    os.makedirs(os.path.dirname(to), exist_ok=True)
    tool = unpacker.get(os.path.splitext(path)[1])
    if tool is None: shutil.copyfile(os.path.join(source, path), to)
    else: subprocess.run([tool, "-dc", os.path.join(source, path)], stdout=open(to, "wb"), check=True)
for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
    if os.path.exists(os.path.join(source, name)):
        shutil.copyfile(os.path.join(source, name), os.path.join(target, name))
open(early_file, "w").write("".join(plain(path) + "\n" for path in early))
PY
  depmod -b "$2" "$3"
}

# --- user space ---------------------------------------------------------------------------------------------------

root_image_stamp() { recipe_list packages.txt "$1" | sha256sum | cut -c 1-16; recipe_hash -- unpack_packages unpack_from compile_python make_root_image; }

# unpack_packages DEBIAN TREE WORK PACKAGE...: fetches them and what they depend on, unpacks them into TREE; no maintainer script.
unpack_packages() {
  local suite
  suite=$(debian_suite "$1") || return
  unpack_from "guest-$suite" "$suite" '' "${@:2}"
}

# unpack_from ENV SUITE EXTRA TREE WORK PACKAGE...: the same, with the private apt ENV; EXTRA: of which suite beside SUITE, "-backports".
unpack_from() {
  local env=$1 suite=$2 extra=$3 tree=$4 work=$5 archives=$HCASIM_CACHE/apt/$1/archives deb dir
  shift 5
  mkdir -p "$tree" "$work" || return
  apt_private_ready "$env" "$suite" empty "$extra" || return
  local -a get=(apt_private "$env" apt-get install -y --no-install-recommends --download-only)
  "${get[@]}" "$@" || { apt_private_setup "$env" "$suite" empty "$extra" && "${get[@]}" "$@"; } || return
  "${get[@]}" --print-uris -qq "$@" >"$work/still-missing" || return
  [[ ! -s $work/still-missing ]] || { echo "E: not fetched:"; cat "$work/still-missing"; return 1; }

  # The packages of Debian 12 still ship /bin and /lib; on a merged system these are links.
  mkdir -p "$tree"/usr/{bin,sbin,lib,lib64,lib/modules} || return
  for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$tree/$dir" || return; done
  # Only what apt chose: the folder may hold older downloads too. Names there have ':' written as '%3a'.
  apt_private "$env" apt-get install -s --no-install-recommends "$@" |
    sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1_\2_/p' | sed 's/:/%3a/g' | sort >"$work/chosen" || return
  for deb in "$archives"/*.deb; do
    dir=$(basename "$deb")
    grep -qxF "${dir%_*}_" "$work/chosen" || continue
    dpkg-deb --fsys-tarfile "$deb" | tar -C "$tree" --keep-directory-symlink --no-same-owner -xf - \
      --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' --exclude='./usr/share/locale/*' \
      --exclude='./usr/share/info/*' --exclude='./usr/share/perl/*' --exclude='./usr/share/lintian/*' ||
      { echo "E: $deb cannot be unpacked; delete it and run again"; return 1; }
    echo "unpacked $dir"
  done
}

# compile_python TREE: what the packages' scripts would have done, by the tree's own interpreter; emulated guests are slow at it.
compile_python() {
  local tree=$1 python libraries=$1/usr/lib/x86_64-linux-gnu
  python=$(find "$tree/usr/bin" -name 'python3.*' -type f | head -n 1)
  [[ -n $python ]] || return 0
  PYTHONHOME=$tree/usr "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "$python" -m compileall -q \
    --invalidation-mode unchecked-hash -s "$tree" "$tree/usr/lib/${python##*/}" "$tree/usr/lib/python3/dist-packages"
}

# make_root_image DEBIAN
make_root_image() {
  local work=$GUEST_CACHE/root-$1.partial tree=$GUEST_CACHE/root-$1.partial/tree
  local -a packages
  mapfile -t packages < <(recipe_list packages.txt "$1")
  rm -rf "$work" && unpack_packages "$1" "$tree" "$work" "${packages[@]}" || return
  mkdir -p "$tree"/{proc,sys,dev,run,tmp,root,mnt,etc,var/tmp,usr/lib/hcasim} || return
  printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n' >"$tree/etc/passwd"
  printf 'root:x:0:\ntty:x:5:\nkvm:x:104:\nrdma:x:105:\nnogroup:x:65534:\n' >"$tree/etc/group"
  printf '127.0.0.1 localhost hcasim\n::1 localhost\n' >"$tree/etc/hosts"
  printf 'passwd: files\ngroup: files\nhosts: files\n' >"$tree/etc/nsswitch.conf"
  printf 'hcasim\n' >"$tree/etc/hostname"
  [[ -e $tree/usr/bin/awk ]] || ln -s gawk "$tree/usr/bin/awk"
  [[ -e $tree/usr/bin/which ]] || ln -s which.debianutils "$tree/usr/bin/which"
  [[ -e $tree/usr/bin/sh ]] || ln -s dash "$tree/usr/bin/sh"
  compile_python "$tree" || echo "Python's modules are not compiled; the guest does it at each start"
  local size
  size=$(du -sm "$tree" | cut -f 1)
  rm -f "$work/root.img"
  mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -m 0 -E root_owner=0:0 -L hcasim-root -d "$tree" "$work/root.img" "$((size + size / 5 + 32))M" || return
  mv "$work/root.img" "$GUEST_CACHE/root-$1.img" && root_image_stamp "$1" >"$GUEST_CACHE/root-$1.stamp" && rm -rf "$work"
}

# The guest's headers and libraries, for programs that are compiled here and run there (gcc --sysroot).
make_sysroot() {
  local work=$GUEST_CACHE/sysroot.partial
  rm -rf "$work" && unpack_packages 12 "$work/tree" "$work" libc6-dev libibverbs-dev || return
  rm -rf "$GUEST_CACHE/sysroot" && mv "$work/tree" "$GUEST_CACHE/sysroot" && rm -rf "$work" && recipe_hash -- unpack_packages make_sysroot >"$GUEST_CACHE/sysroot.stamp"
}

# guest_program SOURCE OUT: compiles a C program for the guest.
guest_program() { with_lock guest guest_program_locked "$@"; }

guest_program_locked() {
  mkdir -p "$GUEST_CACHE"
  if ! stamp_is "$GUEST_CACHE/sysroot.stamp" "$(recipe_hash -- unpack_packages make_sysroot)"; then
    step "fetching the guest's headers and libraries" guest-sysroot make_sysroot || fetch_failed "the guest's headers" guest-sysroot
  fi
  if [[ $2 -nt $1 && $2 -nt $GUEST_CACHE/sysroot.stamp ]]; then return 0; fi
  step "compiling ${1##*/} for the guest" guest-program gcc -std=c11 -O2 -Wall -Wextra -Wpedantic --sysroot="$GUEST_CACHE/sysroot" \
    -o "$2" "$1" -Wl,--as-needed -libverbs -lmlx5 || die "${1##*/} does not compile"
}

# --- per kernel ---------------------------------------------------------------------------------------------------

# make_initramfs TREE OUT: TREE holds early.txt and lib/modules/<release>.
make_initramfs() {
  local tree=$1 out=$2 work=$2.partial release module
  release=$(<"$tree/release")
  rm -rf "$work" && mkdir -p "$work"/{bin,modules} || return
  cp "$(command -v busybox)" "$work/bin/busybox" || return
  cp "$GUEST_RECIPES/initramfs-init" "$work/init" && cp "$GUEST_RECIPES/hcasim-init" "$work/hcasim-init" || return
  chmod 755 "$work/init" "$work/hcasim-init" && : >"$work/modules/order" || return
  while read -r module; do
    local from=$tree/lib/modules/$release/$module name
    name=$(basename "$module")
    cp "$from" "$work/modules/$name" || return
    printf '%s\n' "$name" >>"$work/modules/order"
  done <"$tree/early.txt" || return
  # Not compressed: unpacking costs the guest more than the copy does.
  (cd "$work" && find . -print0 | sort -z | cpio --quiet --null -o -H newc -R 0:0 >"$out.new") || return
  mv "$out.new" "$out" && rm -rf "$work"
}

# make_modules_image TREE OUT
make_modules_image() {
  local tree=$1 out=$2 size
  size=$(du -sm "$tree/lib/modules" | cut -f 1)
  rm -f "$out.new"
  mke2fs -q -t ext4 -O ^has_journal,^metadata_csum -m 0 -E root_owner=0:0 -L hcasim-modules -d "$tree/lib/modules" "$out.new" "$((size + size / 4 + 16))M" || return
  mv "$out.new" "$out"
}

# guest_kernel_images DIR: initramfs.img and modules.img beside the tree in DIR.
guest_kernel_images() {
  make_initramfs "$1" "$1/initramfs.img" && make_modules_image "$1" "$1/modules.img" &&
    recipe_hash initramfs-init hcasim-init -- make_initramfs make_modules_image >"$1/images.stamp"
}

# own_kernel KERNEL MODULES: a guest folder for the user's own kernel image and/or modules. KERNEL is 6.1, 6.12, backports or a
# bzImage; MODULES a modules_install tree (it has modules.order or modules.builtin) or a folder of .ko files, which
# then take the place of those of the same name.
own_kernel() {
  local kernel=$1 modules=$2 dir=$3 release ko magic count=0
  rm -rf "$dir" && mkdir -p "$dir/tree" || return
  if debian_kernel "$kernel"; then
    cp -r "$GUEST_CACHE/kernel-$kernel"/{vmlinuz,release,early.txt,lib} "$dir/" || return
    release=$(<"$dir/release")
  else
    cp "$kernel" "$dir/vmlinuz" || return
    release=$(file_kernel_release "$kernel")
    [[ -n $release ]] || { echo "E: $kernel is no x86 Linux kernel image (bzImage)"; return 1; }
    printf '%s\n' "$release" >"$dir/release"
    # Beside the kernel, or this machine's own.
    if [[ -z $modules && -d $(dirname "$kernel")/lib/modules/$release ]]; then modules=$(dirname "$kernel")/lib/modules/$release; fi
    [[ -n $modules ]] || modules=/lib/modules/$release
    [[ -d $modules ]] || { echo "E: kernel $release needs its modules: give --modules DIR (make modules_install INSTALL_MOD_PATH=...)"; return 1; }
  fi
  if [[ -d $modules/lib/modules/$release ]]; then modules=$modules/lib/modules/$release; fi
  if [[ -e $modules/modules.order || -e $modules/modules.builtin ]]; then
    mkdir -p "$dir/tree/lib/modules" && cp -rL "$modules" "$dir/tree/lib/modules/$release" 2>/dev/null
    rm -rf "${dir:?}/lib" "$dir/tree/lib/modules/$release"/{build,source}
    depmod -b "$dir/tree" "$release" && pick_modules "$dir/tree" "$dir" "$release" || return
  else
    mkdir -p "$dir/lib/modules/$release/updates" || return
    while IFS= read -r -d '' ko; do
      magic=$(modinfo -F vermagic "$ko") && magic=${magic%% *}
      [[ $magic == "$release" ]] || { echo "E: $ko is built for kernel $magic, the guest's is $release"; return 1; }
      cp "$ko" "$dir/lib/modules/$release/updates/" || return
      count=$((count + 1))
    done < <(find "$modules" -name '*.ko' -print0)
    ((count > 0)) || { echo "E: no .ko files and no modules.order under $modules"; return 1; }
    depmod -b "$dir" "$release" || return
  fi
  rm -rf "$dir/tree"
  guest_kernel_images "$dir"
}

# Changes with a developer's files, by their size and time.
own_kernel_stamp() {
  local -a places=("${2:-/lib/modules}")
  if debian_kernel "$1"; then
    places+=("$GUEST_CACHE/kernel-$1/stamp")
  else
    places+=("$1")
    if [[ -z $2 && -d $(dirname "$1")/lib/modules ]]; then places=("$1" "$(dirname "$1")/lib/modules"); fi
  fi
  {
    recipe_hash modules.txt initramfs-init hcasim-init -- own_kernel pick_modules guest_kernel_images make_initramfs make_modules_image
    find -L "${places[@]}" \( -name build -o -name source \) -prune -o -type f -printf '%p %s %T@\n' 2>/dev/null | sort
  } | sha256sum | cut -c 1-16
}

# Release string of a bzImage: its header says where the text stands.
file_kernel_release() {
  python3 - "$1" <<'PY'
import struct, sys
image = open(sys.argv[1], "rb").read(0x10000)
if image[0x202:0x206] != b"HdrS": sys.exit(0)
offset = struct.unpack_from("<H", image, 0x20e)[0] + 0x200
print(image[offset:image.index(b"\0", offset)].split()[0].decode())
PY
}

# guest_ready KERNEL MODULES [DEBIAN]: makes all that is missing; sets GUEST_DIR (vmlinuz, initramfs.img, modules.img) and GUEST_ROOT.
# Where it fails, this script ends, also where `set -e` is off.
guest_ready() {
  with_lock guest guest_ready_locked "$@" || exit
  guest_paths "$@"
}

guest_paths() {
  if [[ -n $2 ]] || ! debian_kernel "$1"; then
    GUEST_DIR=$GUEST_CACHE/own-$(printf '%s|%s' "$1" "$2" | sha256sum | cut -c 1-12)
  else
    GUEST_DIR=$GUEST_CACHE/kernel-$1
  fi
  # shellcheck disable=SC2034 # read by the launcher
  GUEST_ROOT=$GUEST_CACHE/root-${3:-12}.img
}

guest_ready_locked() {
  local kernel=$1 modules=$2 debian=${3:-12}
  mkdir -p "$GUEST_CACHE"
  guest_paths "$kernel" "$modules" "$debian"
  if debian_kernel "$kernel"; then
    if ! stamp_is "$GUEST_CACHE/kernel-$kernel/stamp" "$(recipe_hash modules.txt -- fetch_kernel pick_modules)"; then
      step "fetching Debian's Linux $kernel" "guest-kernel-$kernel" apt_private_again fetch_kernel "$kernel" ||
        fetch_failed "a package of Linux $kernel" "guest-kernel-$kernel"
    fi
    if ! stamp_is "$GUEST_CACHE/kernel-$kernel/images.stamp" "$(recipe_hash initramfs-init hcasim-init -- make_initramfs make_modules_image)"; then
      step "making the initramfs and module image for $kernel" "guest-images-$kernel" guest_kernel_images "$GUEST_CACHE/kernel-$kernel" ||
        die "the guest's images could not be made" "./hcasim doctor says whether a tool is missing"
    fi
  fi
  if ! stamp_is "$GUEST_CACHE/root-$debian.stamp" "$(root_image_stamp "$debian")"; then
    step "making the guest's root image from Debian $debian's packages" "guest-root-$debian" make_root_image "$debian" ||
      fetch_failed "the guest's packages" "guest-root-$debian"
  fi
  if [[ $GUEST_DIR == */own-* ]]; then
    local stamp
    stamp=$(own_kernel_stamp "$kernel" "$modules")
    if ! stamp_is "$GUEST_DIR/stamp" "$stamp"; then
      step "taking over kernel ${kernel}${modules:+ with modules of $modules}" guest-own own_kernel "$kernel" "$modules" "$GUEST_DIR.partial" ||
        die "that kernel or those modules cannot be used: $(grep '^E: ' "$HCASIM_LOGS/guest-own.log" | sed 's/^E: //' | tail -n 1)"
      printf '%s\n' "$stamp" >"$GUEST_DIR.partial/stamp" && rm -rf "$GUEST_DIR" && mv "$GUEST_DIR.partial" "$GUEST_DIR" ||
        die "$GUEST_DIR cannot be replaced"
    fi
  fi
}

# fetch_failed WHAT LOG: ends, with what the archive did not give; where it gave all, with what went wrong here.
fetch_failed() {
  local missing log=$HCASIM_LOGS/$2.log again="a mirror sometimes lacks a file for a while: run the same command again later, or name another mirror in /etc/apt"
  if ! grep -qE "^(Err|E: (Failed to fetch|Unable to |Version '|not fetched|no package ))|did not give" "$log"; then
    missing=$(grep -v '^$' "$log" | tail -n 5 | sed 's/^/     /')
    die "$1 could not be made:"$'\n'"$missing" "the whole log: $log; ./hcasim doctor says whether a tool is missing" "what has been fetched is kept in $HCASIM_CACHE/apt"
  fi
  missing=$(grep -hE '^(Err|E: )|did not give' "$log" | sort -u | head -n 5 | sed 's/^/     /')
  # What belongs to a kernel comes in packages of its very version, and goes with it.
  if grep -qE "^E: Version '[^']*' for 'linux-" "$log"; then
    again="the archive has a newer kernel by now than the guests': rm -r $GUEST_CACHE/kernel-*, and they get that one; or a mirror lacks a file for a while"
  fi
  die "$1 could not be fetched:"$'\n'"$missing" "$again" "what has been fetched is kept in $HCASIM_CACHE/apt"
}
