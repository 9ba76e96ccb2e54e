# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# ./hcasim doctor: what is there, what is missing, how to get it. Installs and fetches nothing.
# Needs common.sh, install.sh, apt.sh, recipes.sh.

doctor_bad=0
row() { printf '%-9s %-22s %s\n' "$1" "$2" "$3"; }
good() { row ok "$1" "$2"; }
later() { row later "$1" "$2"; } # made or fetched by the next command that needs it
bad() {
  row MISSING "$1" "$2"
  [[ -z ${3:-} ]] || row '' '' "-> $3"
  doctor_bad=1
}

doctor() {
  case ${1:-} in
    '') ;;
    -h | --help)
      printf '%s\n' "usage: ./hcasim doctor" "Says what is missing on this machine, and how to get it. Installs and fetches nothing; status 1 if something is missing."
      return 0
      ;;
    *) die "doctor does not know '$1'" "it takes no arguments: ./hcasim doctor" ;;
  esac
  local missing text header free source version built k
  # shellcheck disable=SC1091
  text=$(. /etc/os-release 2>/dev/null && printf '%s' "${PRETTY_NAME:-}")
  case $(debian_codename) in
    bookworm | trixie) good system "$text, $(nproc) processors, $(awk '/MemTotal/{printf "%.0f GiB", $2/1048576}' /proc/meminfo)" ;;
    *) bad system "${text:-unknown}: hcasim is set up for Debian 12 and 13" "on another distribution run it in a container of Debian" ;;
  esac
  [[ $(uname -m) == x86_64 ]] || bad processor "$(uname -m); the device is built for x86_64 QEMU only"

  missing=$(missing_packages | tr '\n' ' ')
  if [[ -z $missing ]]; then
    good packages "all of tools/packages.txt"
  elif ((EUID == 0)) || have sudo; then
    bad packages "$missing" "./hcasim build installs them"
  else
    bad packages "$missing" "as root: apt-get install --no-install-recommends ${missing/@kernel-headers/$(newest_kernel_headers | grep . || echo linux-headers-amd64)}"
  fi

  if [[ $HCASIM_INSTALLED == yes ]]; then
    good hcasim "installed for QEMU $(<"$HCASIM_ROOT/installed")"
  elif header=$(mlx5_ifc_header); then
    good mlx5_ifc.h "$header"
  else
    bad mlx5_ifc.h "$(mlx5_ifc_lack)" "./hcasim build installs the newest linux-headers-*-common package"
  fi

  if have qemu-system-x86_64; then
    version=$(dpkg-query -W -f '${Version}' qemu-system-x86 2>/dev/null || true)
    good QEMU "$(qemu-system-x86_64 --version | head -n 1)"
    [[ -n $version || -n ${HCASIM_QEMU_SRC:-} ]] || bad "QEMU's package" "qemu-system-x86_64 is not Debian's: its exact source cannot be found" "install the package qemu-system-x86, or set HCASIM_QEMU_SRC to the source tree that it was built from"
    if [[ -n $version && -z ${HCASIM_QEMU_SRC:-} ]] && qemu_foreign "$version"; then
      bad "QEMU's package" "$(command -v qemu-system-x86_64) is not the one of the package $version" "set HCASIM_QEMU_SRC to the source tree that it was built from, or take it out of PATH"
    fi
    if [[ $HCASIM_INSTALLED == yes ]]; then
      [[ $version == "$(<"$HCASIM_ROOT/installed")" ]] || bad device "is for QEMU $(<"$HCASIM_ROOT/installed"), here is $version" "build the package again here: ./hcasim package"
    elif [[ -n $version || -n ${HCASIM_QEMU_SRC:-} ]] && source=$("$HCASIM_ROOT/tools/fetch-qemu-source" --expected); then
      if [[ -n ${HCASIM_QEMU_SRC:-} || -e $source/.hcasim-source ]]; then good "QEMU source" "$source"; else later "QEMU source" "fetched at the first build"; fi
      if [[ -e $HCASIM_PLUGIN ]]; then
        # A plugin of the user's own needs no build folder here.
        built=$(sed -n 's/^HCASIM_QEMU_SRC:[A-Z]*=//p' "$HCASIM_RELEASE/CMakeCache.txt" 2>/dev/null || true)
        if [[ $HCASIM_OWN_PLUGIN == yes || $built == "$source" ]]; then
          good device "$HCASIM_PLUGIN"
        else
          bad device "built for ${built##*/}, installed is ${source##*/}" "./hcasim build"
        fi
      else
        later device "built by ./hcasim build"
      fi
    fi
  else
    bad QEMU "no qemu-system-x86_64" "./hcasim build installs it"
  fi

  for k in 6.1 6.12; do
    if [[ -e $GUEST_CACHE/kernel-$k/modules.img ]]; then
      good "guest kernel $k" "$(<"$GUEST_CACHE/kernel-$k/package")"
    else
      later "guest kernel $k" "fetched at the first ./hcasim boot --kernel $k"
    fi
  done
  if [[ -e $GUEST_CACHE/root-12.img ]]; then good "guest root image" "$GUEST_CACHE/root-12.img"; else later "guest root image" "made at the first ./hcasim boot"; fi

  mkdir -p "$HCASIM_BUILD"
  free=$(df -Pm "$HCASIM_BUILD" | awk 'NR==2{print $4}')
  if ((free >= 4096)); then good "disk space" "$free MiB free at $HCASIM_BUILD"; else bad "disk space" "$free MiB free at $HCASIM_BUILD" "4096 MiB are wanted"; fi
  free=$(awk '/MemAvailable/{printf "%d", $2/1024}' /proc/meminfo)
  if ((free >= 3072)); then good memory "$free MiB available"; else bad memory "$free MiB available" "a guest takes 2 GiB: boot with --mem 1G, or free some"; fi
  if [[ -w /dev/kvm ]]; then
    good KVM "/dev/kvm is usable (boot --accel kvm); the default is TCG"
  else
    row none KVM "not usable here; nothing needs it, the guests run under TCG"
  fi
  return "$doctor_bad"
}
