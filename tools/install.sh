# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Installs what tools/packages.txt names and this machine lacks. Needs common.sh.

# package_list [lint|image|kernel|fabric|fuzz]: what that one needs, or what all others do. An installed hcasim compiles nothing, and tests nothing.
package_list() {
  sed 's/#.*//' "$HCASIM_ROOT/tools/packages.txt" |
    awk -v group="${1:-}" -v installed="$HCASIM_INSTALLED" 'NF == 2 && ($1 ~ /^(lint|image|kernel|fabric|fuzz)$/ ? $1 : "") == group &&
      (installed == "no" || $1 == "guest" || $1 == "run") {print $2}'
}

package_installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

# choose_mlx5_ifc [HEADER]: the newest mlx5_ifc.h that has all that the sources name; HEADER, if it has.
choose_mlx5_ifc() { python3 "$HCASIM_ROOT/prm/gen_ifc.py" --print-path --prefer "${1:-}"; }

# The one that the bit layouts are generated from. It stays, and is looked at again when sources are newer than the answer. If they name what
# no package has, it stays, too: a name that is written wrong is for the compiler to say.
mlx5_ifc_header() {
  local answer=$HCASIM_CACHE/mlx5-ifc header='' chosen newest
  if [[ -s $answer ]]; then header=$(<"$answer"); fi
  if [[ ! -r $header || -n $(find "$HCASIM_ROOT" \( -name build -o -name .git \) -prune -o \( -name '*.cpp' -o -name '*.h' -o -name '*.py' \) \
    -newer "$answer" -print -quit) ]]; then
    if chosen=$(choose_mlx5_ifc "$header" 2>/dev/null); then
      header=$chosen
      mkdir -p "$HCASIM_CACHE" && printf '%s\n' "$header" >"$answer"
    else
      newest=$(newest_kernel_headers)
      [[ -r $header ]] && { [[ -z $newest ]] || package_installed "$newest"; } || return 1
    fi
  fi
  printf '%s\n' "$header"
}

# What is in the way of it; nothing where one does.
mlx5_ifc_lack() {
  local said
  said=$(choose_mlx5_ifc 2>&1 >/dev/null) || sed -n -e '$s/^gen_ifc: //' -e '$s/: install the newest.*//' -e '$p' <<<"$said"
}

newest_kernel_headers() {
  apt-cache pkgnames linux-headers- 2>/dev/null | grep -E '^linux-headers-[0-9][^-]*(-[0-9]+)?-common$' | sort -V | tail -n 1 || true
}

# One a line what is missing (of the group named, or of those without one); "@kernel-headers" stays as it is.
missing_packages() {
  local package
  package_list "${1:-}" | while read -r package; do
    if [[ $package == @kernel-headers ]]; then
      mlx5_ifc_header >/dev/null || printf '%s\n' "$package"
    else
      package_installed "$package" || printf '%s\n' "$package"
    fi
  done
}

as_root() {
  if ((EUID == 0)); then env DEBIAN_FRONTEND=noninteractive "$@"; else sudo env DEBIAN_FRONTEND=noninteractive "$@"; fi
}

update_lists() { as_root apt-get -o DPkg::Lock::Timeout=600 update; }

install_packages() { as_root apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "$@"; }

install_missing() { install_group ''; }

# install_group lint|image|kernel|fabric|fuzz, or '' for all others
install_group() {
  local -a wanted
  local package headers command
  mapfile -t wanted < <(missing_packages "$1")
  ((${#wanted[@]} > 0)) || return 0
  have apt-get || die "this machine has no apt-get; hcasim is for Debian 12 and 13, whose packages it is built and boots guests with" \
    "on another distribution run it in a container of Debian: podman run -it -v \"$HCASIM_ROOT\":/hcasim debian:13, and there /hcasim/hcasim"
  headers=$(newest_kernel_headers)
  command="apt-get update && apt-get install --no-install-recommends ${wanted[*]/@kernel-headers/${headers:-linux-headers-amd64}}"
  if ((EUID != 0)); then
    have sudo || die "packages are missing, and installing them needs root: neither root nor sudo here" "as root: $command"
    sudo -n true 2>/dev/null || { [[ -t 0 ]] && say "sudo is needed to install packages:" && sudo -v; } ||
      die "packages are missing, and sudo asks for a password that nobody can type here" "as root: $command"
  fi
  # Lists are missing in fresh containers; one look at a package that must exist tells. Headers that are there and do not do are old, too.
  headers=$(newest_kernel_headers)
  if [[ -z $headers ]] || { [[ " ${wanted[*]} " == *" @kernel-headers "* ]] && package_installed "$headers"; } || ! apt-cache show "${wanted[0]/@kernel-headers/g++}" >/dev/null 2>&1; then
    step "reading the package lists" apt-update update_lists ||
      die "apt-get update failed" "check this machine's network and /etc/apt, then call again"
  fi
  for package in "${!wanted[@]}"; do
    [[ ${wanted[package]} == @kernel-headers ]] || continue
    headers=$(newest_kernel_headers)
    [[ -n $headers ]] || die "no package linux-headers-*-common in this machine's archives" "its mlx5_ifc.h holds the layouts the model is generated from"
    if have python3 && package_installed "$headers"; then
      die "$headers is the newest in this machine's archives, and does not do: $(mlx5_ifc_lack)" \
        "add an archive with a newer Linux to /etc/apt: this Debian's security archive, or its backports"
    fi
    if have python3; then say "hcasim: $(mlx5_ifc_lack)"; fi
    wanted[package]=$headers
  done
  step "installing ${#wanted[@]} Debian packages" apt-install install_packages "${wanted[@]}" ||
    { # Lists older than the archive name files that are gone.
      step "reading the package lists again" apt-update update_lists &&
        step "installing ${#wanted[@]} Debian packages" apt-install install_packages "${wanted[@]}"
    } || {
      local failed
      failed=$(grep -E '^(Err|E:)' "$HCASIM_LOGS/apt-install.log" | sort -u | head -n 5 | sed 's/^/     /')
      die "the packages could not be installed:"$'\n'"$failed" \
        "a mirror sometimes lacks a file for a while: call again later, or name another mirror in /etc/apt" \
        "by hand: $command"
    }
}
