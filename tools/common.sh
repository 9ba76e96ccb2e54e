# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# What every script of the launcher shares: places, messages, running a long step quietly.
# Source it; it prints nothing and starts nothing.

# What other programs print is read here, and figures are sorted: in one language, whatever the user's is (LANGUAGE goes before LC_ALL).
export LC_ALL=C.UTF-8
unset LANGUAGE
# With it, cd may go elsewhere, and print where.
unset CDPATH
# depmod, modinfo, mke2fs and debugfs are there, which Debian does not have in the PATH of a user.
export PATH=$PATH:/usr/sbin:/sbin

HCASIM_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# A tree that the Debian package holds (tools/package.sh) has its programs, and belongs to nobody who runs them.
HCASIM_INSTALLED=no
if [[ -e $HCASIM_ROOT/installed ]]; then
  HCASIM_INSTALLED=yes
  HCASIM_BUILD=${HCASIM_BUILD:-${XDG_CACHE_HOME:-$HOME/.cache}/hcasim}
fi
HCASIM_BUILD=${HCASIM_BUILD:-$HCASIM_ROOT/build}
[[ $HCASIM_BUILD == /* ]] || HCASIM_BUILD=$PWD/$HCASIM_BUILD # some steps run in other folders
HCASIM_CACHE=$HCASIM_BUILD/cache
HCASIM_LOGS=$HCASIM_BUILD/logs
HCASIM_RELEASE=$HCASIM_BUILD/release
if [[ $HCASIM_INSTALLED == yes ]]; then HCASIM_RELEASE=$HCASIM_ROOT/built; fi
# shellcheck disable=SC2034 # these two are read by the scripts that source this file
HCASIM_OWN_PLUGIN=${HCASIM_PLUGIN:+yes} # a plugin of the user's own is used as it is
HCASIM_PLUGIN=${HCASIM_PLUGIN:-$HCASIM_RELEASE/qemu-device/libhcasim-qemu.so}
[[ $HCASIM_PLUGIN == /* ]] || HCASIM_PLUGIN=$PWD/$HCASIM_PLUGIN
export HCASIM_ROOT HCASIM_INSTALLED HCASIM_BUILD HCASIM_CACHE HCASIM_LOGS HCASIM_RELEASE

# Everything that is not a result goes to stderr, so that `qemu-args` can be used in $( ).
if [[ -t 2 ]]; then
  bold_=$'\033[1m' red_=$'\033[31m' yellow_=$'\033[33m' dim_=$'\033[2m' off_=$'\033[0m'
else
  bold_='' red_='' yellow_='' dim_='' off_=''
fi

say() { printf '%s\n' "$*" >&2; }
head_line() { printf '\n%s== %s%s\n' "$bold_" "$*" "$off_" >&2; }
warn() { printf '%shcasim: warning:%s %s\n' "$yellow_" "$off_" "$*" >&2; }

# die "what is wrong" ["what to do about it"]
die() {
  printf '%shcasim: error:%s %s\n' "$red_" "$off_" "$1" >&2
  shift
  local hint
  for hint in "$@"; do printf '  -> %s\n' "$hint" >&2; done
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# A process and all its children, the eldest first: none is there any more to take the end of a child for a failure, and to try again.
kill_tree() {
  local child children
  children=$(cat /proc/"$1"/task/*/children 2>/dev/null) || true
  kill "$1" 2>/dev/null || true
  for child in $children; do kill_tree "$child"; done
}

# end_by SIGNAL: ends this shell by that signal. Whoever waits for it has to see that: after a child that has ended by itself, even with
# status 130, bash goes on.
end_by() {
  trap - "$1"
  kill -s "$1" "$BASHPID"
  exit $((128 + $(kill -l "$1"))) # where it is ignored
}

# wait_gone PID: for some seconds.
wait_gone() {
  local i
  for ((i = 0; i < 50; i++)); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.1 || true
  done
}

cannot_write() {
  die "$1 cannot be written: it belongs to $(stat -c %U "$1" 2>/dev/null || stat -c %U "$(dirname "$1")" 2>/dev/null || echo another user), or there is no room" \
    "as root: chown -R $(id -un) $HCASIM_BUILD" "or take another folder: HCASIM_BUILD=DIR in the environment"
}

# step TITLE LOGNAME CMD...: runs CMD with its output in a log; one line says how it goes, and how long it took.
# On failure the end of the log is shown and the function returns CMD's status. Whoever ends this script ends CMD.
step() {
  local title=$1 log=$HCASIM_LOGS/$2.log status=0 start=$SECONDS pid='' tick=0 room step_command=$3 step_signal='' step_traps
  shift 2
  { mkdir -p "$HCASIM_LOGS" && : >"$log"; } 2>/dev/null || cannot_write "$log"
  printf '%s-- %s ...%s' "$dim_" "$title" "$off_" >&2
  step_traps=$(trap -p INT TERM)
  trap 'step_ended TERM' TERM
  trap 'step_ended INT' INT
  { trap '' INT && "$@"; } >"$log" 2>&1 </dev/null & # the terminal's signal is for this shell, which ends all of it, in order
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2 || true
    tick=$((tick + 1))
    if [[ -t 2 ]] && ((tick % 5 == 0)); then
      # A line that the terminal breaks could not be taken back.
      room=$(stty size <&2 2>/dev/null | cut -d ' ' -f 2)
      room=$((${room:-80} - ${#title} - 20))
      printf '\r\033[K%s-- %s ... %d s  %s%s' "$dim_" "$title" $((SECONDS - start)) \
        "$(tail -c 400 "$log" | tr '\r' '\n' | grep -v '^$' | tail -n 1 | cut -c "1-$((room > 1 ? room : 1))" || true)" "$off_" >&2
    elif ((tick % 150 == 0)); then
      # For logs: every half minute, with the count of ninja, or of the step itself, where there is one.
      printf ' %d s%s' $((SECONDS - start)) "$(tail -n 1 "$log" | sed -n 's/^\(\[[0-9][0-9/]*\]\).*/ \1/p')" >&2
    fi
  done
  wait "$pid" || status=$?
  trap - TERM INT
  eval "$step_traps"
  [[ -t 2 ]] && printf '\r\033[K%s-- %s ...%s' "$dim_" "$title" "$off_" >&2
  if ((status == 0)); then
    printf ' done (%d s)\n' $((SECONDS - start)) >&2
  else
    printf ' FAILED (status %d)\n' "$status" >&2
    tail -n 30 "$log" | sed 's/^/   | /' >&2
    say "   the whole log: $log"
  fi
  [[ -z $step_signal ]] || end_by "$step_signal"
  return "$status"
}

# step_ended SIGNAL: what step does with one. dpkg that is ended in its middle leaves packages that are half installed.
step_ended() {
  if [[ $step_command == install_packages ]]; then
    [[ -n $step_signal ]] || say $'\n'"hcasim: finishing the installation first"
    step_signal=$1
    return 0
  fi
  if [[ -n $pid ]]; then
    kill_tree "$pid"
    wait_gone "$pid"
  fi
  end_by "$1"
}

# attended CMD...: runs CMD so that whoever ends this script ends CMD.
attended() {
  local attended_pid='' attended_status=0 attended_traps
  attended_traps=$(trap -p INT TERM)
  trap 'attended_ended TERM' TERM
  trap 'attended_ended INT' INT
  # In the background: of what is in the foreground bash would wait for the end, before it does anything about a signal. The terminal's is
  # for this shell, which ends all of it, in order.
  { trap '' INT && "$@"; } &
  attended_pid=$!
  wait "$attended_pid" || attended_status=$?
  trap - TERM INT
  eval "$attended_traps"
  return "$attended_status"
}

attended_ended() {
  if [[ -n $attended_pid ]]; then
    kill_tree "$attended_pid"
    wait "$attended_pid" 2>/dev/null || true
  fi
  end_by "$1"
}

# with_lock NAME CMD...: one at a time among all hcasim scripts that share this build folder.
with_lock() {
  local lock_file=$HCASIM_CACHE/.$1.lock
  shift
  { mkdir -p "$HCASIM_CACHE" && : >>"$lock_file"; } 2>/dev/null || cannot_write "$lock_file"
  attended locked "$@"
}

# The rest of with_lock, in a shell of its own.
locked() {
  exec 9>"$lock_file" || exit
  flock -w 2 9 || { say "waiting for another hcasim, which has $lock_file ..." && flock 9; } || exit
  # The lock must not be inherited by what outlives this step.
  "$@" 9>&-
}

# qemu_foreign VERSION: whether the qemu-system-x86_64 in PATH is another than the package of that version has. Debian's says the package's version.
qemu_foreign() {
  local said
  said=$(qemu-system-x86_64 --version 2>/dev/null | head -n 1) || true
  [[ -n $said && $said != *"$1"* ]] || return 1
  [[ ${1#*:} =~ ^[0-9]+\.[0-9]+ ]] && [[ ! $said =~ version\ ${BASH_REMATCH[0]//./\\.}([^0-9]|$) ]]
}

debian_codename() (
  # shellcheck disable=SC1091
  . /etc/os-release 2>/dev/null || true
  printf '%s' "${VERSION_CODENAME:-unknown}"
)
