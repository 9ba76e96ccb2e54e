# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# hcasim fuzz: the doors of tests/fuzz/doors, by libFuzzer. Needs common.sh, install.sh, build.sh.

fuzz_usage() {
  cat <<'TEXT'
usage: ./hcasim fuzz [DOOR...] [--minutes N] [--jobs N]
       ./hcasim fuzz [DOOR...] --coverage | --keep | --list

Opens doors to what a fuzzer makes of inputs, under AddressSanitizer and UndefinedBehaviorSanitizer: of libFuzzer, by what new code an
input reaches. A door is where bytes come in that somebody else has made (--list); without a name, all of them, one after the other.

  --minutes N   for each door (10)
  --jobs N      processes at once (one for each processor)
  --coverage    runs what all corpora have through a build that counts, and prints which lines are reached, by room
  --keep        what is new in a corpus, without what reaches nothing that others do not, into tests/fuzz/doors/corpus/DOOR.tar.xz,
                which the tests open the door to, and the next campaign begins with
  --list        the doors

Corpora are kept in build/fuzz-corpus/DOOR, findings in build/fuzz-findings/DOOR: files, to which build/fuzz/tests/fuzz/doors/door_DOOR FILE
opens the door again. Status 1: there are findings.
TEXT
}

fuzz_doors() { sed -n 's/^hcasim_door(\([a-z_]*\) .*/\1/p' "$HCASIM_ROOT/tests/fuzz/doors/CMakeLists.txt"; }

fuzz_tools() {
  local version runtime
  install_group fuzz
  version=$(clang -dumpversion) || die "clang does not run" "apt-get install --reinstall clang"
  runtime=libclang-rt-${version%%.*}-dev
  package_installed "$runtime" || step "installing $runtime" apt-install install_packages "$runtime" ||
    die "the libraries of clang $version's sanitizers are not to be had" "apt-get install $runtime, then call again"
}

# fuzz_corpus DOOR PROGRAM: its folder, with the first inputs and what the repository has.
fuzz_corpus() {
  local folder=$HCASIM_BUILD/fuzz-corpus/$1 kept=$HCASIM_ROOT/tests/fuzz/doors/corpus/$1.tar.xz
  mkdir -p "$folder" "$HCASIM_BUILD/fuzz-findings/$1"
  "$2" --seeds "$folder" >/dev/null || die "the door $1 does not open to its first inputs" "$2 --seeds $folder"
  [[ ! -e $kept ]] || tar -C "$folder" -xJf "$kept" || die "$kept cannot be read"
  printf '%s\n' "$folder"
}

# fuzz_one DOOR MINUTES JOBS: prints a line now and then; the log has all of it.
fuzz_one() {
  local door=$1 program=$HCASIM_BUILD/fuzz/tests/fuzz/doors/door_$1 corpus findings log before
  corpus=$(fuzz_corpus "$door" "$program") || exit 1
  findings=$HCASIM_BUILD/fuzz-findings/$door
  log=$HCASIM_LOGS/fuzz-$door.log
  before=$(find "$findings" -type f | wc -l)
  mkdir -p "$HCASIM_LOGS"
  head_line "$door: $2 min"
  # In forks: a finding does not end the others. Leaks are what the tests look for: a machine lives as long as its process.
  ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-} "$program" -fork="$3" -entropic=0 -ignore_crashes=1 -ignore_timeouts=1 -ignore_ooms=1 -timeout=30 \
    -rss_limit_mb=4096 -max_total_time=$(($2 * 60)) -artifact_prefix="$findings/" "$corpus" 2>&1 |
    tee "$log" | awk '/^#[0-9]+: cov:/ && (++n % 20 == 1) {print "  " $0; fflush()} /^finding: |ERROR: |runtime error: / {print "  " $0; fflush()}' || true
  grep '^#[0-9]*: cov:' "$log" | tail -n 1 | sed 's/^/  /'
  (($(find "$findings" -type f | wc -l) == before)) || {
    warn "$door: new findings in $findings; the log: $log"
    return 1
  }
}

fuzz_coverage() {
  local folder=$HCASIM_BUILD/fuzz-coverage door program corpus
  local -a objects=() raw=()
  build_preset fuzz-coverage "$folder" hcasim_doors
  for door in "$@"; do
    program=$folder/tests/fuzz/doors/door_$door
    corpus=$(fuzz_corpus "$door" "$program") || exit 1
    LLVM_PROFILE_FILE=$folder/$door.profraw step "$door: $(find "$corpus" -type f | wc -l) inputs" "fuzz-coverage-$door" "$program" "$corpus" ||
      die "the door $door does not stay open to one of the inputs in $corpus" "the log: $HCASIM_LOGS/fuzz-coverage-$door.log" \
        "one input by itself, under sanitizers: $HCASIM_BUILD/fuzz/tests/fuzz/doors/door_$door FILE"
    raw+=("$folder/$door.profraw")
    objects+=(-object "$program")
  done
  llvm-profdata merge -sparse "${raw[@]}" -o "$folder/doors.profdata"
  llvm-cov export -summary-only -instr-profile "$folder/doors.profdata" "${objects[@]}" >"$folder/doors.json"
  # shellcheck disable=SC2016 # python's
  python3 - "$HCASIM_ROOT" "$folder/doors.json" <<'PYTHON'
import collections, json, os, sys
root, path = sys.argv[1:]
rooms = collections.defaultdict(lambda: [0, 0])
for f in json.load(open(path))["data"][0]["files"]:
    name = os.path.relpath(os.path.realpath(f["filename"]), root)
    if name.startswith(("..", "build", "tests", "driver")):
        continue
    part = "/".join(name.split("/")[:2]) if name.startswith("model/") else name.split("/")[0]
    for room in (part, "all"):
        lines = f["summary"]["lines"]
        rooms[room][0] += lines["covered"]
        rooms[room][1] += lines["count"]
for room, (covered, count) in sorted(rooms.items()):
    print(f"{room:24} {covered:6} of {count:6} lines  {100 * covered / max(1, count):5.1f} %")
PYTHON
}

fuzz_keep() {
  local door program corpus small
  for door in "$@"; do
    program=$HCASIM_BUILD/fuzz/tests/fuzz/doors/door_$door
    corpus=$(fuzz_corpus "$door" "$program") || exit 1
    small=$(mktemp -d "${TMPDIR:-/tmp}/hcasim-corpus.XXXXXX")
    ASAN_OPTIONS=detect_leaks=0 step "$door: of $(find "$corpus" -type f | wc -l) inputs those that are needed" "fuzz-keep-$door" \
      "$program" -merge=1 -timeout=30 -rss_limit_mb=4096 "$small" "$corpus" || die "the corpus of $door cannot be merged"
    mkdir -p "$HCASIM_ROOT/tests/fuzz/doors/corpus"
    tar -C "$small" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - . | xz -9e >"$HCASIM_ROOT/tests/fuzz/doors/corpus/$door.tar.xz"
    say "  $(find "$small" -type f | wc -l) inputs, $(stat -c %s "$HCASIM_ROOT/tests/fuzz/doors/corpus/$door.tar.xz") bytes"
    rm -rf "$small"
  done
}

command_fuzz() {
  local minutes=10 jobs action=fuzz door status=0
  local -a doors=()
  jobs=$(nproc)
  while (($# > 0)); do
    case $1 in
      --minutes | --jobs)
        [[ ${2:-} =~ ^[1-9][0-9]{0,5}$ ]] || die "$1 needs a number from 1 on"
        if [[ $1 == --minutes ]]; then minutes=$2; else jobs=$2; fi
        shift
        ;;
      --coverage | --keep) action=${1#--} ;;
      --list) fuzz_doors && return 0 ;;
      -h | --help) fuzz_usage && return 0 ;;
      -*) die "fuzz does not know '$1'" "./hcasim fuzz --help" ;;
      *) fuzz_doors | grep -qx -- "$1" || die "there is no door '$1'" "they are: $(fuzz_doors | tr '\n' ' ')" && doors+=("$1") ;;
    esac
    shift
  done
  [[ $HCASIM_INSTALLED == no ]] || die "fuzz is not in the package: it is for those who build hcasim" "clone the source, and ./hcasim there"
  ((${#doors[@]} > 0)) || mapfile -t doors < <(fuzz_doors)
  fuzz_tools
  export HCASIM_NEEDS_QEMU=no
  [[ $action == coverage ]] || build_preset fuzz "$HCASIM_BUILD/fuzz" hcasim_doors
  case $action in
    coverage) fuzz_coverage "${doors[@]}" ;;
    keep) fuzz_keep "${doors[@]}" ;;
    *) for door in "${doors[@]}"; do fuzz_one "$door" "$minutes" "$jobs" || status=1; done ;;
  esac
  return "$status"
}
