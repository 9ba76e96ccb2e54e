# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# ./hcasim image: an OCI image of Debian and the package of package.sh, from Debian packages alone. Needs common.sh, install.sh,
# build.sh, apt.sh, package.sh.

image_usage() {
  cat <<'TEXT'
usage: ./hcasim image [--output FILE] [--tag NAME]

Makes an OCI archive (build/package/hcasim-image.tar) with this machine's release of Debian, made by mmdebstrap from the archives that
this machine's apt knows, and the package of ./hcasim package. Its entry point is hcasim:
  podman load -i FILE && podman run --rm -it localhost/hcasim boot
  skopeo copy oci-archive:FILE docker-daemon:hcasim:latest
What guests are made from is fetched at the first boot; a volume at /root/.cache/hcasim keeps it.
Proxies of this machine's apt are not left in the image; its archives are (/etc/apt), as the guests come from there.
TEXT
}

# image_root TAR PACKAGE SUITE: the root's files, as a tar.
image_root() {
  local tar=$1 package=$2 suite=$3 work
  work=$(mktemp -d "$HCASIM_BUILD/image.XXXXXX") || return
  apt_private_sources "$suite" "$suite" "$work" || return
  apt-config dump | grep '^Acquire::' >"$work/apt.conf"
  local -a sources=("$work"/hcasim.*)
  # shellcheck disable=SC2016 # $1 is mmdebstrap's
  mmdebstrap --variant=apt --include=ca-certificates --aptopt="$work/apt.conf" --aptopt='APT::Install-Recommends "false"' \
    --customize-hook="copy-in '$package' /tmp" \
    --customize-hook='chroot "$1" apt-get -y install /tmp/'"$(basename "$package")" \
    --customize-hook='rm -f "$1"/tmp/*.deb' \
    --customize-hook='rm -f "$1"/etc/apt/apt.conf.d/99mmdebstrap' \
    "$suite" "$tar" "${sources[@]}"
  local status=$?
  rm -rf "$work"
  return "$status"
}

image_make() {
  local out=$1 tag=$2 package=$3 suite=$4 work=$HCASIM_BUILD/image.partial
  rm -rf "$work" && mkdir -p "$work" || return
  image_root "$work/root.tar" "$package" "$suite" || return
  umoci init --layout "$work/oci" && umoci new --image "$work/oci:$tag" || return
  umoci raw add-layer --image "$work/oci:$tag" "$work/root.tar" || return
  rm -f "$work/root.tar"
  umoci config --image "$work/oci:$tag" --config.entrypoint hcasim --config.cmd help --config.workingdir /root \
    --config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --config.volume /root/.cache/hcasim || return
  umoci gc --layout "$work/oci" || return
  tar -C "$work/oci" -cf "$out.partial" --sort=name . && mv "$out.partial" "$out" && rm -rf "$work"
}

command_image() {
  local out=$HCASIM_BUILD/package/hcasim-image.tar tag=hcasim package
  while (($# > 0)); do
    case $1 in
      --output | --tag) (($# >= 2)) || die "$1 needs a value" ;;
    esac
    case $1 in
      --output) out=$2 && shift ;;
      --output=*) out=${1#*=} ;;
      --tag) tag=$2 && shift ;;
      --tag=*) tag=${1#*=} ;;
      -h | --help) image_usage && return 0 ;;
      *) die "image does not know '$1'" "./hcasim image --help" ;;
    esac
    shift
  done
  [[ $tag =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]*$ ]] || die "--tag takes letters, digits, '_', '.' and '-'"
  package=$(command_package) || return
  install_group image
  mkdir -p "$(dirname "$out")"
  step "making the image" image image_make "$out" "$tag" "$package" "$(debian_codename)" ||
    die "the image could not be made" "its log: $HCASIM_LOGS/image.log" "mmdebstrap needs root, or namespaces of the user (kernel.unprivileged_userns_clone)"
  say "$out"
}
