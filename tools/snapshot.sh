# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Guests that begin where another one was saved, booted and with its drivers loaded: made when first asked for, kept below build/ and made
# again when anything that they depend on is another thing. Sourced by tools/boot.sh.

# The script that the guest waits for is of this size, as the guest knows sizes from its start on.
SNAPSHOT_SCRIPT_BYTES=65536
# So is the disk with its files, which are none of the booted guest's.
SNAPSHOT_FILES_BYTES=$((64 << 20))
SNAPSHOTS_KEPT=24 # the latest used; one has some 150 MB

# snapshot_script FROM TO: as the guest gets it.
snapshot_script() {
  local bytes
  bytes=$(stat -c %s "$1")
  ((bytes < SNAPSHOT_SCRIPT_BYTES)) || die "--from-snapshot: the script has more than $SNAPSHOT_SCRIPT_BYTES bytes" \
    "give files to the guest with --file"
  { cat "$1" && head -c "$((SNAPSHOT_SCRIPT_BYTES - bytes))" /dev/zero | tr '\0' '\n'; } >"$2"
}

# snapshot_files TO FILE...: a disk with these files, as a tape archive.
snapshot_files() {
  local to=$1 file
  local -a each=()
  shift
  for file; do each+=(-C "$(cd "$(dirname "$file")" && pwd)" "${file##*/}"); done
  : >"$to"
  ((${#each[@]} == 0)) || tar --mode=755 -cf "$to" "${each[@]}"
  (($(stat -c %s "$to") <= SNAPSHOT_FILES_BYTES)) || die "--from-snapshot: the files have more than $((SNAPSHOT_FILES_BYTES >> 20)) MiB" \
    "without it, they may"
  truncate -s "$SNAPSHOT_FILES_BYTES" "$to"
}

# snapshot_unseen: a word of a command line without what only says where the results of an HCA go.
snapshot_unseen() { sed -E 's/,(trace|trace_ring|trace_filter|capture|record|snapshot_every)=[^,]*//g' <<<"$1"; }

# snapshot_key WORK WORD...: names what this guest depends on: QEMU and its arguments, the device, images. Where results go makes no
# difference, nor do sockets of this machine, nor how fast the guest was told that its clock is, which is measured each time.
snapshot_key() {
  local work=$1 word
  local -a words=()
  shift
  for word; do
    word=${word//"$work"/WORK}
    words+=("$(snapshot_unseen "$word" | sed -E 's/tsc_early_khz=[0-9]+//; s/^unix:[^,]*/unix:/; s/,path=[^,]*//')")
  done
  {
    "$1" --version
    sha256sum "$HCASIM_PLUGIN"
    stat -L -c '%n %s %Y' "$GUEST_DIR"/* "$GUEST_ROOT"
    printf '%s\n' "${words[@]}"
    declare -f snapshot_make
  } | sha256sum | cut -c 1-20
}

# monitor_word PATH: for a shell within a word in quotation marks of QEMU's monitor.
monitor_word() {
  local word
  printf -v word %q "$1"
  word=${word//\\/\\\\}
  printf '%s' "${word//\"/\\\"}"
}

# snapshot_look MONITOR WORK OUT: the registers of a guest's processors, twice, that should have been up long ago.
snapshot_look() {
  local monitor=$1 work=$2 out=$3 tries
  printf 'info status\ninfo registers -a\n' >&"$monitor"
  sleep 1 # the same a second later: whether they move
  printf 'info registers -a\ninfo kvm\n' >&"$monitor"
  # It answers one after the other; a QEMU that stands still, not at all.
  for ((tries = 0; tries < 100; tries++)); do
    if grep -q '^kvm support' "$work/said"; then break; fi
    sleep 0.1
  done
  cp "$work/said" "$out" || true
}

# snapshot_make STATE WORK WORD...: boots the guest of that command line, and saves it when it waits for its script. It is stopped
# for that: of a running one that is emulated, QEMU can miss what a processor writes to a page while it begins to copy that page again. As
# the state does not say that it was stopped, who loads it goes on at once. Status 1: the guest did not come up.
snapshot_make() {
  local state=$1 work=$2/making console=$HCASIM_LOGS/snapshot-${1##*/}.console monitor said reader status=0 tries word
  local -a words=()
  shift 2
  rm -rf "$work"
  { mkdir -p "$work" "$HCASIM_LOGS" && mkfifo "$work/monitor.in" "$work/monitor.out"; } || die "$work cannot be made" "TMPDIR=DIR names another place"
  # Whoever waits for a socket waits for the other guest's.
  for word; do
    if [[ $word =~ ^unix:[^,]*(.*) ]]; then word=unix:$work/socket${#words[@]}${BASH_REMATCH[1]}; fi
    if [[ $word =~ ^(socket,.*path=)[^,]*(.*) ]]; then word=${BASH_REMATCH[1]}$work/socket${#words[@]}${BASH_REMATCH[2]}; fi
    words+=("$(snapshot_unseen "$word")")
  done
  set -- "${words[@]}"
  : >"$work/control"
  printf '#hcasim: wait\n' >"$work/wait"
  snapshot_script "$work/wait" "$work/script"
  # Both ends of each at once: opening one alone waits for the other end, and a QEMU that refuses its command line never comes.
  exec {monitor}<>"$work/monitor.in" {said}<>"$work/monitor.out"
  cat "$work/monitor.out" >"$work/said" {monitor}>&- {said}>&- &
  reader=$!
  HCASIM_RULES_REPORT=/dev/null timeout -k 5 300 "$@" -fw_cfg "name=opt/hcasim/script,file=$work/script" -serial "file:$console" \
    -chardev null,id=out -chardev "file,id=control,path=$work/control" -chardev "pipe,id=monitor,path=$work/monitor" -mon monitor \
    -global migration.store-global-state=off </dev/null &
  boot_child=$!
  for ((tries = 0; tries < 1200; tries++)); do
    if grep -q '^ready' "$work/control" || ! kill -0 "$boot_child" 2>/dev/null; then break; fi
    sleep 0.1
  done
  local stuck=no
  if ((tries == 1200)); then
    stuck=yes
    snapshot_look "$monitor" "$work" "${console%.console}.stuck"
    printf 'quit\n' >&"$monitor"
  elif grep -q '^ready' "$work/control"; then
    # The monitor takes a word in quotation marks, and gives it to a shell.
    printf 'stop\nmigrate_set_parameter max-bandwidth 1T\nmigrate "exec:cat >%s"\nquit\n' "$(monitor_word "$work/state")" >&"$monitor"
  fi
  wait "$boot_child" || status=$?
  boot_child=
  exec {monitor}>&- {said}>&-
  wait "$reader" || true
  if [[ $stuck == yes ]]; then
    say "hcasim: the guest has not come up within 2 minutes; what it did then: ${console%.console}.stuck"
    grep -a '^[RE]IP=' "${console%.console}.stuck" | sed 's/^/   | /' >&2
    return 1
  fi
  if ((status != 0)) || [[ ! -s $work/state ]]; then
    tail -n 15 "$console" "$work/said" | sed 's/^/   | /' >&2
    die "the guest could not be saved (status $status)" "without --from-snapshot it boots; its console: $console"
  fi
  # From another file system it comes as a copy, which is whole only at its end.
  if ! { mv "$work/state" "$state.partial" && mv "$state.partial" "$state"; }; then
    rm -f "$state.partial"
    die "the saved guest cannot be put into $(dirname "$state")" "it wants some 150 MB there; without --from-snapshot the guest boots"
  fi
}

# snapshot_ready WORK WORD...: sets SNAPSHOT to the state of the guest of that command line.
snapshot_ready() {
  local work=$1 folder=$HCASIM_BUILD/snapshots lock old
  SNAPSHOT=$folder/$(snapshot_key "$@").state
  mkdir -p "$folder"
  exec {lock}>"$SNAPSHOT.lock"
  flock "$lock"
  if [[ ! -s $SNAPSHOT ]]; then
    say "booting a guest once, to begin with it from now on ..."
    # It may be the emulator's fault (docs/using.md).
    snapshot_make "$SNAPSHOT" "$@" || snapshot_make "$SNAPSHOT" "$@" ||
      die "the guest has not come up twice" "./hcasim boot without --from-snapshot shows how far it comes"
    # shellcheck disable=SC2012 # our own names
    ls -t "$folder"/*.state | tail -n +$((SNAPSHOTS_KEPT + 1)) | while read -r old; do rm -f "$old" "$old.lock"; done
  fi
  touch "$SNAPSHOT"
  exec {lock}>&-
}
