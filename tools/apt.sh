# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# A private apt: own package lists, own cache, own idea of what is installed, all under build/cache/apt. The machine's
# configuration is read (which archives, which keyrings, which proxy) and never written.
# Needs common.sh.

# Debian stanzas and lines of the machine's own sources, for suites of $1 (its codename), re-written to codename $2,
# with package sources added (sid is a single suite), into the folder $3: deb822 for .sources files and one-line style for the others. $4: a suite
# that the archive has beside the main one, such as "-backports", and that the machine need not list.
apt_private_sources() {
  local from=$1 to=$2 out=$3 extra=${4:-} etc list parts file
  etc=$(apt-config shell d Dir::Etc/d) && eval "etc=${etc#d=}"
  list=$(apt-config shell f Dir::Etc::sourcelist/f) && eval "list=${list#f=}"
  parts=$(apt-config shell p Dir::Etc::sourceparts/d) && eval "parts=${parts#p=}"
  mkdir -p "$out"
  rm -f "$out"/*.list "$out"/*.sources
  for file in "$list" "$parts"/*.list; do
    [[ -r $file ]] || continue
    awk -v from="$from" -v to="$to" -v extra="$extra" '
      /^[ \t]*deb[ \t]/ {
        line = $0; sub(/#.*/, "", line); opts = ""
        sub(/^[ \t]*deb[ \t]+/, "", line)
        if (match(line, /^\[[^]]*\][ \t]*/)) { opts = substr(line, 1, RLENGTH); line = substr(line, RLENGTH + 1) }
        n = split(line, w, /[ \t]+/)
        if (w[2] !~ ("^" from "(-updates|-security|-backports|/updates)?$")) next
        if (to == "sid" && w[2] != from) next
        sub("^" from, to, w[2])
        rest = w[1]; for (i = 2; i <= n; i++) rest = rest " " w[i]
        print "deb " opts rest; print "deb-src " opts rest
        if (extra != "" && w[2] == to) { sub(" " to, " " to extra, rest); print "deb " opts rest; print "deb-src " opts rest }
      }' "$file" >>"$out/hcasim.list"
  done
  for file in "$parts"/*.sources; do
    [[ -r $file ]] || continue
    awk -v from="$from" -v to="$to" -v extra="$extra" '
      function flush_(   i, n, w, s, keep) {
        if (!enabled || !binary || suites == "") { reset_(); return }
        n = split(suites, w, /[ \t]+/); keep = ""
        for (i = 1; i <= n; i++)
          if (w[i] ~ ("^" from "(-updates|-security|-backports|/updates)?$") && (to != "sid" || w[i] == from)) { s = w[i]; sub("^" from, to, s); keep = keep " " s; if (extra != "" && s == to) keep = keep " " s extra }
        if (keep != "") printf "Types: deb deb-src\nSuites:%s\n%s\n", keep, text
        reset_()
      }
      function reset_() { text = ""; suites = ""; enabled = 1; binary = 0; field = "" }
      BEGIN { reset_() }
      /^[ \t]*$/ { flush_(); next }
      /^#/ { next }
      /^[ \t]/ { if (field == "suites") suites = suites " " $0; else if (field != "types") text = text $0 "\n"; next }
      {
        field = tolower($0); sub(/:.*/, "", field)
        value = $0; sub(/^[^:]*:[ \t]*/, "", value)
        if (field == "types") { if (value ~ /(^|[ \t])deb([ \t]|$)/) binary = 1 }
        else if (field == "suites") suites = value
        else if (field == "enabled") { if (tolower(value) ~ /^(no|false|0|off)/) enabled = 0 }
        else text = text $0 "\n"
      }
      END { flush_() }' "$file" >>"$out/hcasim.sources"
  done
  [[ -s $out/hcasim.list ]] || rm -f "$out/hcasim.list"
  [[ -s $out/hcasim.sources ]] || rm -f "$out/hcasim.sources"
  [[ -e $out/hcasim.list || -e $out/hcasim.sources ]]
}

# apt_private_setup NAME CODENAME STATUS [EXTRA]: makes the private configuration build/cache/apt/NAME and reads the
# archive's lists. STATUS "host" resolves against what this machine has installed, "empty" against an empty system.
# Where the archive cannot be reached, older lists will do, as what they name may have been fetched already; they do not count as read.
# Afterwards apt_private NAME CMD ARGS... runs apt-get or apt-cache with it.
apt_private_setup() {
  local name=$1 codename=$2 status=$3 dir=$HCASIM_CACHE/apt/$1 status_file=/var/lib/dpkg/status host
  host=$(debian_codename)
  mkdir -p "$dir"/{lists/partial,archives/partial,sources,log,var}
  if [[ $status == empty ]]; then
    : >"$dir/status"
    status_file=$dir/status
  fi
  apt_private_sources "$host" "$codename" "$dir/sources" "${4:-}" ||
    die "no Debian archive for '$host' found in this machine's apt configuration" \
      "check 'apt-get indextargets'; hcasim takes the archive's address and keyring from there" \
      "a suite named 'stable' must be written by its codename"
  cat >"$dir/apt.conf" <<CONF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$dir/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$dir/var";
Dir::State::lists "$dir/lists";
Dir::State::status "$status_file";
Dir::Cache "$dir";
Dir::Cache::archives "$dir/archives";
Dir::Cache::pkgcache "$dir/pkgcache.bin";
Dir::Cache::srcpkgcache "$dir/srcpkgcache.bin";
Dir::Log "$dir/log";
APT::Get::List-Cleanup "true";
APT::Install-Recommends "false";
APT::Keep-Downloaded-Packages "true";
Acquire::Languages "none";
Acquire::Retries "3";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
#clear APT::Default-Release;
CONF
  # The user _apt cannot reach a build folder under a private home.
  if ((EUID == 0)); then echo 'APT::Sandbox::User "root";' >>"$dir/apt.conf"; fi
  rm -f "$dir/ready"
  # Without that mode, not to have reached any archive is no failure to apt-get.
  if apt_private "$name" apt-get -o APT::Update::Error-Mode=any update; then
    touch "$dir/ready"
  else
    [[ -n $(find "$dir/lists" -maxdepth 1 -name '*_Packages*' -print -quit) ]]
  fi
}

apt_private() {
  local conf=$HCASIM_CACHE/apt/$1/apt.conf cmd=$2
  shift 2
  LC_ALL=C DEBIAN_FRONTEND=noninteractive "$cmd" -c "$conf" "$@"
}

# apt_private_ready NAME CODENAME STATUS [EXTRA]: as setup, but only when there are no lists yet, they are a day old, or the folder has been
# copied from elsewhere: apt would go on there.
apt_private_ready() {
  local dir=$HCASIM_CACHE/apt/$1
  if [[ -e $dir/ready && -z $(find "$dir/ready" -mmin +1440) ]] && grep -qsF "\"$dir/archives\"" "$dir/apt.conf"; then return 0; fi
  apt_private_setup "$@"
}

# apt_private_again CMD...: if CMD fails it is called once more, with lists that are read anew: those that it had may be older than the
# archive, and name files that are gone. Of some minutes ago they are not.
apt_private_again() {
  local status=0
  "$@" || status=$?
  if ((status == 0)) || [[ -z $(find "$HCASIM_CACHE/apt" -mindepth 2 -maxdepth 2 -name ready -mmin +10 -print -delete 2>/dev/null) ]]; then return "$status"; fi
  "$@"
}
