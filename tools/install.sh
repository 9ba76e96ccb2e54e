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

# The mlx5_ifc.h that the bit layouts are generated from: the newest installed.
mlx5_ifc_header() {
  local dir
  for dir in $(printf '%s\n' /usr/src/linux-headers-*-common* | sort -rV); do
    [[ -r $dir/include/linux/mlx5/mlx5_ifc.h ]] && { printf '%s\n' "$dir/include/linux/mlx5/mlx5_ifc.h"; return 0; }
  done
  return 1
}

newest_kernel_headers() {
  apt-cache pkgnames linux-headers- 2>/dev/null | grep -E '^linux-headers-[0-9][^-]*(-[0-9]+)?-common$' | sort -V | tail -n 1
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
  have apt-get || die "this machine has no apt-get; hcasim installs its needs on Debian 12 or 13" \
    "elsewhere install by hand what tools/packages.txt lists, then call again"
  command="apt-get update && apt-get install --no-install-recommends ${wanted[*]/@kernel-headers/\"linux-headers-*-common (newest)\"}"
  if ((EUID != 0)); then
    have sudo || die "packages are missing, and installing them needs root: neither root nor sudo here" "as root: $command"
    sudo -n true 2>/dev/null || { [[ -t 0 ]] && say "sudo is needed to install packages:" && sudo -v; } ||
      die "packages are missing, and sudo asks for a password that nobody can type here" "as root: $command"
  fi
  # Lists are missing in fresh containers; one look at a package that must exist tells.
  if [[ -z $(newest_kernel_headers) ]] || ! apt-cache show "${wanted[0]/@kernel-headers/g++}" >/dev/null 2>&1; then
    step "reading the package lists" apt-update update_lists ||
      die "apt-get update failed" "check this machine's network and /etc/apt, then call again"
  fi
  for package in "${!wanted[@]}"; do
    [[ ${wanted[package]} == @kernel-headers ]] || continue
    headers=$(newest_kernel_headers)
    [[ -n $headers ]] || die "no package linux-headers-*-common in this machine's archives" "its mlx5_ifc.h holds the layouts the model is generated from"
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
