# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# The guest of ./hcasim boot --deterministic: root image and modules in its memory from the start. A disk's requests end when
# this machine's are done, and each run would go its own way from there. Needs common.sh, recipes.sh.
#   build/cache/guest/<kernel>/memory-<12|13>.img     an initramfs with all of it

# What nobody misses who brings up an HCA: unpacking it would cost each guest its time.
MEMORY_IMAGE_WITHOUT=(boot lost+found usr/lib/python3 usr/lib/python3.11 usr/lib/python3.13 usr/lib/udev/hwdb.d usr/share/perl
  usr/share/perl5 usr/share/python3 usr/lib/x86_64-linux-gnu/perl usr/lib/x86_64-linux-gnu/perl-base usr/lib/x86_64-linux-gnu/perl5
  usr/lib/x86_64-linux-gnu/ceph usr/lib/x86_64-linux-gnu/gconv)

memory_image_stamp() {
  cat "$GUEST_CACHE/root-$1.stamp"
  printf '%s\n' "${MEMORY_IMAGE_WITHOUT[*]}"
  sha256sum <"$GUEST_DIR/lib/modules/$(<"$GUEST_DIR/release")/modules.dep"
  recipe_hash hcasim-init memory-init -- make_memory_image
}

# make_memory_image DIR ROOT OUT
make_memory_image() {
  local dir=$1 root=$2 out=$3 work=$3.partial release
  release=$(<"$dir/release")
  rm -rf "$work" && mkdir -p "$work" || return
  # Says what it could not do (owners, where it does not run as root), and ends well whatever happens.
  debugfs -R "rdump / \"$work\"" "$root" || return
  [[ -x $work/usr/bin/bash ]] || { echo "E: $root could not be read"; return 1; }
  (cd "$work" && rm -rf "${MEMORY_IMAGE_WITHOUT[@]}") || return
  mkdir -p "$work/usr/lib/modules" "$work/usr/lib/hcasim" && cp -r "$dir/lib/modules/$release" "$work/usr/lib/modules/" || return
  cp "$(command -v busybox)" "$GUEST_RECIPES/hcasim-init" "$work/usr/lib/hcasim/" && cp "$GUEST_RECIPES/memory-init" "$work/init" || return
  chmod 755 "$work/init" "$work/usr/lib/hcasim"/* && find "$work" -exec touch -h -d @1700000000 {} + || return
  (cd "$work" && find . -print0 | LC_ALL=C sort -z | cpio --quiet --null -o -H newc -R 0:0 --reproducible >"$out.new") || return
  mv "$out.new" "$out" && rm -rf "$work"
}

# memory_image_ready DEBIAN: after guest_ready(); sets GUEST_MEMORY_IMAGE.
memory_image_ready() {
  GUEST_MEMORY_IMAGE=$GUEST_DIR/memory-$1.img
  with_lock guest memory_image_ready_locked "$1" || exit
}

memory_image_ready_locked() {
  local stamp
  stamp=$(memory_image_stamp "$1")
  [[ -e $GUEST_MEMORY_IMAGE ]] && stamp_is "$GUEST_MEMORY_IMAGE.stamp" "$stamp" && return
  have debugfs || die "there is no debugfs" "it is in the package e2fsprogs"
  step "putting the guest's root and modules into one initramfs" guest-memory-image make_memory_image "$GUEST_DIR" "$GUEST_ROOT" "$GUEST_MEMORY_IMAGE" ||
    die "the guest's image could not be made" "./hcasim doctor says whether a tool is missing"
  printf '%s\n' "$stamp" >"$GUEST_MEMORY_IMAGE.stamp"
}
