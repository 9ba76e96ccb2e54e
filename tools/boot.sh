# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# shellcheck disable=SC2054 # commas are QEMU's
#
# Starts a guest. Needs common.sh, arguments.sh, install.sh, build.sh, apt.sh, recipes.sh, deterministic.sh, coverage.sh, snapshot.sh.

boot_usage() {
  cat <<'TEXT'
usage: ./hcasim boot [OPTIONS] [QEMU OPTIONS] [-- CMD...]

Boots a guest with an HCA. Without CMD: an interactive shell ('exit' leaves, Ctrl-A x ends QEMU).
With CMD: runs it as root, prints its output, exits with its status (124: time limit, 125: the guest did not get to it).

  --kernel {6.1,6.12,backports,FILE}   Debian's kernel of that series, the newest of Debian 13's backports, or your own bzImage   (6.1)
  --modules DIR              your own modules: a modules_install tree, or a folder of .ko files that take the place of
                             Debian's of the same name. Of your own kernel without this: lib/modules beside it, or this machine's
  --debian {12,13,14}        whose user space the guest has; 14 is what is to be the next   (12)
  --hca KEY=VALUE,...        properties of the HCA; more than once: more than one HCA       (link=eth)
                             where the port's cable leads, if not back to the port itself:
                               netdev=ID    link=eth: a network back end of QEMU, given as -netdev TYPE,id=ID,...
                                            (user, tap, stream, dgram, socket, vde; filter-dump captures work); mac=MAC
                               wire=shm:NAME, wire=unix:PATH, wire=tcp:HOST:PORT
                                            an HCA in another QEMU; the one that comes first listens. With --lockstep at both
                                            ends the guests live in one time: the first waits for the other (coupled=off: no)
                               cable=NAME   the HCA with id=NAME in this guest
                             ports=2: a card of two ports, which are HCAs id=NAME-p0 and NAME-p1 with the same properties otherwise (cable=NAME
                             leads to NAME-p0 and NAME-p1); with properties of their own: two --hca with the same card=NAME
  --hca none                 no HCA
  --rules {report,strict,off}  what the drivers have to keep (hcasim rules): what they break is said at the end; strict: the HCA
                             goes to its fatal health state, and the exit status is 1 at least             (report)
  --record FILE              what the HCAs get and answer, for ./hcasim replay FILE
  --modprobe A,B,...         modules loaded before CMD      (mlx5_core,mlx5_ib,ib_uverbs,ib_umad; none with --hca none)
  --no-modprobe              load nothing
  --coverage DIR             which lines of the drivers run: DIR/TEST.info (lcov) and DIR/TEST.json; ./hcasim coverage reads them. The first
                             time for a kernel of Debian's, its debug information is fetched
  --coverage-test TEST       what this run is called                                        (guest)
  --coverage-modules A,B     of these kernel modules                                        (mlx5_core,mlx5_ib)
  --coverage-libraries A,B   and of these libraries: libmlx5, libibverbs                    (none)
  --script FILE              run this bash script in the guest (as CMD)
  --file FILE                put this program or file into the guest's /usr/local/bin; more than once: several
  --smp N                    processors of the guest                                        (2; 1 with --lockstep)
  --mem SIZE                 memory of the guest                                            (2G)
  --accel {tcg,kvm}          emulate, or use this machine's virtualization; kvm has no exact time (--lockstep,
                             --deterministic)                                          (tcg)
  --vfio-user                the HCAs in a process of their own (hcasim serve), shown by a QEMU that speaks vfio-user: this machine's,
                             or one that is fetched beside it. No netdev=, no exact time
  --spin US                  with --vfio-user: how long the HCAs' process looks for a message before it sleeps (0)
  --lockstep                 exact time: QEMU counts instructions and the HCA shares its clock
  --deterministic            the same, and nothing of this machine enters the guest: each run of a CMD goes the same way, to the bit.
                             The guest's root is in its memory, without Python, Perl and disks; its output is on a serial line
  --append TEXT              added to the kernel's command line
  --timeout SECONDS          end the guest after this long                                  (with CMD: 600)
  --console FILE             where the kernel's messages go when there is a CMD             (build/logs/guest-console.log)
  --serial DEVICE            without CMD: the shell's console on this QEMU character device, not on this terminal
  --from-snapshot            begin where such a guest has booted and loaded its drivers: it is saved the first time, below build/
  --reboots                  let the guest reboot; without it a reboot ends it
All other options go to QEMU as they are, after hcasim's own.
TEXT
}

# two_ports SPEC...: SPECS, with two for each that has ports=2.
two_ports() {
  local spec id cable port number=0
  SPECS=()
  for spec in "$@"; do
    if [[ ,$spec, != *,ports=* ]]; then
      SPECS+=("$spec")
      continue
    fi
    [[ ,$spec, == *,ports=2,* ]] || die "--hca $spec: a card has one port, or ports=2"
    [[ ! ,$spec =~ ,(netdev|wire|mac|node_guid|bus|addr|card)= ]] ||
      die "--hca $spec: ${BASH_REMATCH[1]}= is of one port" "give two --hca with the same card=NAME, and each its own"
    spec=,$spec,
    spec=${spec/,ports=2,/,}
    id=card$number
    if [[ $spec =~ ,id=([^,]*), ]]; then id=${BASH_REMATCH[1]} && spec=${spec/",id=$id,"/,}; fi
    cable=
    if [[ $spec =~ ,cable=([^,]*), ]]; then cable=${BASH_REMATCH[1]} && spec=${spec/",cable=$cable,"/,}; fi
    spec=${spec#,}
    for port in p0 p1; do
      SPECS+=("${spec}id=$id-$port,card=$id${cable:+,cable=$cable-$port}")
      if [[ $spec =~ record=[^,]*, ]]; then spec=${spec/"${BASH_REMATCH[0]}"/}; fi # of the first HCA
    done
    number=$((number + 1))
  done
}

# hca_options BUS_PREFIX SPEC...: the -plugin and -device options into the array HCA_OPTIONS. With a prefix each card
# gets a PCIe root port of its own; the two HCAs of one card are its functions 0 and 1.
hca_options() {
  local prefix=$1 spec index=0 bus room slot
  local -A slots=()
  local -a SPECS=()
  shift
  two_ports "$@"
  set -- "${SPECS[@]}"
  HCA_OPTIONS=()
  # Virtual functions come while the machine runs, in QEMU before 10.0 as devices that are plugged in: PCI Express' own hot plug knows
  # that nobody put them there, ACPI's announces each.
  if [[ " $* " =~ [\ ,:\;]vfs=[1-9] ]]; then HCA_OPTIONS+=(-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off); fi
  for spec in "$@"; do
    [[ $spec == none ]] && continue
    [[ " ${HCA_OPTIONS[*]} " == *" -plugin "* ]] || HCA_OPTIONS+=(-plugin "$HCASIM_PLUGIN")
    [[ ",$spec," == *,link=* ]] || spec="link=eth${spec:+,$spec}"
    bus=
    if [[ -n $prefix && ",$spec," != *,bus=* ]]; then
      slot=
      if [[ ,$spec, =~ ,card=([^,]*), ]]; then
        slot=${slots[${BASH_REMATCH[1]}]:-}
        slots[${BASH_REMATCH[1]}]=$prefix$index
      fi
      if [[ -n $slot ]]; then
        bus=,bus=$slot,addr=0.1
      else
        room=
        if [[ ,$spec =~ [,:\;]vfs=[1-9] ]]; then room=,pref64-reserve=256M; fi # a port's own choice is 2 MiB beyond what it sees at the start
        HCA_OPTIONS+=(-device "pcie-root-port,id=$prefix$index,chassis=$((index + 1)),slot=$((index + 1))$room")
        bus=,bus=$prefix$index
        if [[ ,$spec, == *,card=* ]]; then bus+=,addr=0.0,multifunction=on; fi
      fi
    fi
    HCA_OPTIONS+=(-device "mlx5-hca,$spec$bus")
    index=$((index + 1))
  done
}

# vfio_user_options FOLDER MEMORY SPEC...: the same for HCAs that hcasim-serve serves on sockets in FOLDER, and its options into SERVE_OPTIONS.
vfio_user_options() {
  local folder=$1 memory=$2 spec index=0
  local -a SPECS=()
  shift 2
  two_ports "$@"
  set -- "${SPECS[@]}"
  # -m counts in MiB, the backend in bytes.
  [[ $memory == *[!0-9]* ]] || memory+=M
  HCA_OPTIONS=(-object "memory-backend-memfd,id=hcasim-memory,size=$memory,share=on" -machine memory-backend=hcasim-memory)
  SERVE_OPTIONS=(--once --quiet --control "$folder/hca-control.sock" --spin "$spin")
  for spec in "$@"; do
    [[ $spec == none ]] && continue
    [[ ",$spec," != *,netdev=* && ",$spec," != *,bus=* ]] || die "--hca $spec: netdev= and bus= are QEMU's, which has nothing to do with a card behind vfio-user" \
      "leave out --vfio-user, or take wire=unix:PATH"
    [[ ",$spec," == *,link=* ]] || spec="link=eth${spec:+,$spec}"
    SERVE_OPTIONS+=(--socket "$folder/hca$index.sock" --hca "$spec")
    HCA_OPTIONS+=(-device "pcie-root-port,id=hcasim-port$index,chassis=$((index + 1)),slot=$((index + 1))"
      -device "{\"driver\":\"vfio-user-pci\",\"id\":\"hcasim-card$index\",\"bus\":\"hcasim-port$index\",\"socket\":{\"type\":\"unix\",\"path\":\"$folder/hca$index.sock\"}}")
    index=$((index + 1))
  done
}

# Starts hcasim-serve with SERVE_OPTIONS, and waits until its sockets are there.
serve_start() {
  local folder=$1 tick
  HCASIM_RULES_REPORT=$rules_report "$HCASIM_RELEASE/vfio-user/hcasim-serve" "${SERVE_OPTIONS[@]}" &
  serve_child=$!
  for ((tick = 0; tick < 100; tick++)); do
    [[ -S $folder/hca-control.sock ]] && return 0
    kill -0 "$serve_child" 2>/dev/null || break
    sleep 0.1
  done
  kill "$serve_child" 2>/dev/null || true
  wait "$serve_child" || true
  serve_child=
  die "the HCAs' process did not start; what it says is above"
}

# need_plugin [TARGET...]: the plugin, and what else is named, up to date. Under ctest the build is not touched, and a plugin named by HCASIM_PLUGIN is taken as it is.
need_plugin() {
  local -a targets=(hcasim-qemu "$@")
  # What reads the plugin's files stays of one version with it, once it is built.
  if [[ -x $HCASIM_RELEASE/traces/hcasim-trace ]]; then targets+=(hcasim-trace); fi
  if [[ -x $HCASIM_RELEASE/card/hcasim-replay ]]; then targets+=(hcasim-replay); fi
  if [[ $HCASIM_OWN_PLUGIN != yes && -z ${HCASIM_UNDER_TEST:-} ]]; then build_release "${targets[@]}"; fi
  [[ -e $HCASIM_PLUGIN ]] || die "there is no $HCASIM_PLUGIN" "./hcasim build makes it, and ./hcasim doctor says what that needs"
}

# The guest's time stamp counter is this machine's under TCG, and the guest measures its frequency against a timer that a loaded
# machine serves late: its clock then runs many times too fast or too slow. Prints kHz; nothing where it cannot be measured.
host_tsc_khz() {
  local cache boot_id
  boot_id=$(</proc/sys/kernel/random/boot_id) || return 0
  cache=$HCASIM_CACHE/tsc-khz
  if [[ -r $cache && $(<"$cache") == "$boot_id "* ]]; then
    cut -d ' ' -f 2 "$cache"
    return 0
  fi
  python3 - "$boot_id" 2>/dev/null <<'PY' | tee "$cache.$$" | cut -d ' ' -f 2
import ctypes, mmap, sys, time
page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex("0f3148c1e2204809d0c3"))  # rdtsc; shl $32,%rdx; or %rdx,%rax; ret
rdtsc = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
def both():  # the least disturbed of some pairs of readings
    readings = []
    for _ in range(20):
        before, tsc, after = time.monotonic_ns(), rdtsc(), time.monotonic_ns()
        readings.append((after - before, tsc, (before + after) // 2))
    return min(readings)
_, tsc0, ns0 = both()
time.sleep(0.2)
_, tsc1, ns1 = both()
print(sys.argv[1], round((tsc1 - tsc0) * 1e6 / (ns1 - ns0)))
PY
  if [[ -s $cache.$$ ]]; then mv "$cache.$$" "$cache"; else rm -f "$cache.$$"; fi
}

# accel_ready ACCEL EXACT HCA...: whether guests can run so; says what is in the way, and what to do. EXACT: yes with --lockstep or
# --deterministic. HCASIM_KVM_DEVICE is for tests.
accel_ready() {
  local accel=$1 exact=$2 device=${HCASIM_KVM_DEVICE:-/dev/kvm} spec
  shift 2
  case $accel in
    tcg) return 0 ;;
    kvm) ;;
    *) die "--accel takes tcg or kvm, not '$accel'" ;;
  esac
  [[ $exact == no ]] || die "--lockstep and --deterministic need --accel tcg: QEMU counts a guest's instructions only where it emulates them" \
    "leave out --accel kvm for exact time, or leave out --lockstep and --deterministic for KVM"
  for spec in "$@"; do
    [[ ",$spec," != *,time=lockstep,* ]] || die "--hca ${spec#,}: time=lockstep needs --accel tcg: under KVM nobody counts the guest's instructions" \
      "leave out time=lockstep, or --accel kvm"
  done
  [[ -e $device ]] || die "--accel kvm: this machine has no $device" \
    "load its module (modprobe kvm_intel or kvm_amd; virtualization must be on in the firmware), give a container --device $device, a virtual machine nested virtualization; or leave out --accel kvm"
  [[ -r $device && -w $device ]] || die "--accel kvm: this user may not open $device" \
    "sudo usermod -aG kvm \$USER and log in again; or leave out --accel kvm"
  { : <>"$device"; } 2>/dev/null || die "--accel kvm: $device is there but cannot be opened" \
    "dmesg | grep -i kvm says why its module does not work; or leave out --accel kvm"
}

# Whether Linux has stopped at an int3 that it had taken away again, and no module was there yet: while it replaces code it puts one there,
# and QEMU before 8.1 may not notice that a page changes which another processor translates just then.
kernel_met_replaced_code() {
  grep -q 'Oops: int3' "$1" && tr -d '\r' <"$1" | grep -m 1 'Modules linked in:' | grep -q 'in: *$'
}

# Stops a guest that this script started when the script itself is ended.
boot_child='' serve_child=''
boot_stop() {
  if [[ -n $boot_child ]]; then
    kill "$boot_child" 2>/dev/null || true
    wait_gone "$boot_child" # it gives the terminal back
  fi
  [[ -z $serve_child ]] || kill "$serve_child" 2>/dev/null || true
}

# boot_console OWN CONSOLE: a guest's console, once the guest has ended, is where it was to be.
boot_console() { [[ ! -e $1 ]] || { cp "$1" "$2.$$" && mv -f "$2.$$" "$2"; }; }

# The HCAs' process ends by itself when QEMU has gone; its traces and its report are complete then.
serve_end() {
  [[ -n $serve_child ]] || return 0
  local status=0
  # It must not hold what this script's output goes to, nor outlive it.
  (sleep 20 && kill "$serve_child") >/dev/null 2>&1 </dev/null &
  local watchdog=$!
  wait "$serve_child" || status=$?
  kill_tree "$watchdog"
  serve_child=
  ((status == 0)) || say "hcasim: the HCAs' process ended with status $status"
  return "$status"
}

# boot_rules REPORT: says what the guest's drivers broke. Status 1: an HCA with rules=strict is among them.
boot_rules() {
  local name mode total what status=0
  [[ -r $1 ]] || return 0
  while read -r name mode total what; do
    ((total > 0)) || continue
    say "hcasim: the driver of $name broke rules: $what (hcasim rules NAME says what they are)"
    [[ $mode != strict ]] || status=1
  done <"$1"
  return "$status"
}

boot() {
  local kernel=6.1 modules='' debian=12 smp='' mem=2G accel=tcg lockstep=no deterministic=no vfio_user=no spin=0 program=qemu-system-x86_64 append='' timeout='' console=$HCASIM_LOGS/guest-console.log
  local from_snapshot=no SNAPSHOT
  local coverage='' coverage_test=guest coverage_modules=mlx5_core,mlx5_ib coverage_libraries=''
  local -a COVERAGE_OPTIONS=() COVERAGE_FILES=() COVERAGE_LIBRARIES=()
  local tsc rules='' record='' rules_report modprobe=auto script='' serial=mon:stdio reboots=no has_command=no status=0 report word file version=0
  local -a hcas=() extra=() command=() files=()
  while (($# > 0)); do
    word=$1
    # Options of ours may be written --key=value too.
    case $word in
      --kernel=* | --modules=* | --debian=* | --smp=* | --mem=* | --hca=* | --rules=* | --record=* | --modprobe=* | --script=* | --file=* | --accel=* | --append=* | --timeout=* | --console=* | --serial=* | --spin=* | --coverage=* | --coverage-*=*)
        shift
        set -- "${word%%=*}" "${word#*=}" "$@"
        continue
        ;;
      --kernel | --modules | --debian | --smp | --mem | --hca | --rules | --record | --modprobe | --script | --file | --accel | --append | --timeout | --console | --serial | --spin | --coverage | --coverage-test | --coverage-modules | --coverage-libraries)
        (($# >= 2)) || die "$word needs a value" "./hcasim boot --help"
        ;;
    esac
    case $word in
      --kernel) kernel=$2 && shift ;;
      --modules) modules=$2 && shift ;;
      --debian) debian=$2 && shift ;;
      --smp) size_known "$1" "$2" && smp=$2 && shift ;;
      --mem) size_known "$1" "$2" && mem=$2 && shift ;;
      --hca) one_value "$2" && hcas+=("$2") && shift ;;
      --rules) rules=$2 && shift ;;
      --record) record=$2 && shift ;;
      --modprobe) modprobe=$2 && shift ;;
      --no-modprobe) modprobe='' ;;
      --script) script=$2 && shift ;;
      --file) files+=("$2") && shift ;;
      --accel) accel=$2 && shift ;;
      --vfio-user) vfio_user=yes ;;
      --spin) spin=$2 && shift ;;
      --lockstep) lockstep=yes ;;
      --deterministic) lockstep=yes deterministic=yes ;;
      --append) append+="${append:+ }$2" && shift ;;
      --timeout) timeout=$2 && shift ;;
      --console) console=$2 && shift ;;
      --serial) serial=$2 && shift ;;
      --reboots) reboots=yes ;;
      --from-snapshot) from_snapshot=yes ;;
      --coverage) coverage=$2 && shift ;;
      --coverage-test) coverage_test=$2 && shift ;;
      --coverage-modules) coverage_modules=$2 && shift ;;
      --coverage-libraries) coverage_libraries=$2 && shift ;;
      -h | --help) boot_usage && return 0 ;;
      --)
        shift
        [[ -n $* ]] || die "there is no command behind --" "leave -- out for a shell in the guest"
        command=("$@")
        has_command=yes
        break
        ;;
      *) extra+=("$word") ;;
    esac
    shift
  done

  ((${#hcas[@]} > 0)) || hcas=(link=eth)
  kernel_known "$kernel"
  local -a SPECS
  two_ports "${hcas[@]}" # says what is wrong with ports=, before anything is built
  [[ -z $modules || -d $modules ]] || die "--modules $modules is no folder"
  debian_suite "$debian" >/dev/null || die "--debian takes 12, 13 or 14, not '$debian'"
  [[ -z $script || -r $script ]] || die "cannot read the script $script"
  for file in "${files[@]}"; do [[ -r $file && ! -d $file ]] || die "cannot read the file $file"; done
  case $rules in
    '') ;;
    report | strict | off)
      for word in "${!hcas[@]}"; do
        [[ ${hcas[word]} == none || ",${hcas[word]}," == *,rules=* ]] || hcas[word]=${hcas[word]:+${hcas[word]},}rules=$rules
      done
      ;;
    *) die "--rules takes report, strict or off, not '$rules'" ;;
  esac
  if [[ -n $record ]]; then
    [[ ${hcas[0]} != none ]] || die "--record needs an HCA"
    hcas[0]=${hcas[0]:+${hcas[0]},}record=$record
  fi
  [[ -z $timeout || $timeout =~ ^[0-9]+$ ]] || die "--timeout takes whole seconds, not '$timeout'"
  accel_ready "$accel" "$lockstep" "${hcas[@]}"
  [[ -n $script ]] && has_command=yes
  [[ $deterministic == no || $has_command == yes ]] || die "--deterministic needs a command: keys come when they come" \
    "--lockstep gives a shell in exact time"
  if [[ $modprobe == auto ]]; then
    modprobe=mlx5_core,mlx5_ib,ib_uverbs,ib_umad
    [[ "${hcas[*]}" == none ]] && modprobe=''
  fi
  [[ $spin =~ ^[0-9]+$ ]] || die "--spin takes whole us"
  [[ $spin == 0 || $vfio_user == yes ]] || die "--spin is for --vfio-user"
  if [[ -n $coverage ]]; then
    [[ $accel == tcg ]] || die "--coverage needs --accel tcg: QEMU sees a guest's instructions only where it emulates them" "leave out --accel kvm"
    [[ $vfio_user == no ]] || die "--coverage is counted in this machine's QEMU, and --vfio-user may take another" "leave out --vfio-user"
    [[ $coverage_test =~ ^[A-Za-z0-9._+-]+$ ]] || die "--coverage-test takes letters, digits and . _ + -, not '$coverage_test'"
  fi
  if [[ $vfio_user == yes ]]; then
    [[ $lockstep == no ]] || die "vfio-user has no clock: --lockstep and --deterministic need the HCA in QEMU's own process" "leave out --vfio-user"
    [[ "${hcas[*]}" != none ]] || die "--vfio-user needs an HCA"
  fi
  if [[ $from_snapshot == yes ]]; then
    [[ $vfio_user == no ]] || die "--from-snapshot: a card behind vfio-user is not saved" "leave out --vfio-user"
    [[ $accel == tcg && $deterministic == no ]] || die "--from-snapshot is for emulated guests with disks" "leave out --accel kvm, --deterministic"
    [[ -z $coverage ]] || die "--from-snapshot: what ran before is counted in no coverage" "leave out --coverage"
  fi
  if [[ $lockstep == yes ]]; then
    smp=${smp:-1}
    local i
    for i in "${!hcas[@]}"; do
      [[ ${hcas[i]} == none || ",${hcas[i]}," == *,time=* ]] || hcas[i]=${hcas[i]:+${hcas[i]},}time=lockstep
    done
  fi

  if [[ $vfio_user == yes ]]; then
    [[ -n ${HCASIM_UNDER_TEST:-} ]] || build_without_qemu hcasim-serve
    program=$("$HCASIM_ROOT/tools/fetch-qemu-client") || exit 1
  elif [[ "${hcas[*]}" == none ]]; then
    install_missing
  elif [[ -n $coverage ]]; then
    need_plugin hcasim-executed hcasim-coverage
  else
    need_plugin
  fi
  guest_ready "$kernel" "$modules" "$debian"
  [[ $deterministic == no ]] || memory_image_ready "$debian"
  [[ -n $modules ]] && modules=$(cd "$modules" && pwd)
  if [[ -n $coverage ]]; then
    coverage_options "$coverage" "$coverage_test" "$coverage_modules" "$coverage_libraries" "$debian"
    extra=("${COVERAGE_OPTIONS[@]}" "${extra[@]}")
    files+=("${COVERAGE_FILES[@]}")
    append+="${append:+ }hcasim.coverage=$coverage_modules"
  fi

  local work cpu=max
  work=$(mktemp -d "${TMPDIR:-/tmp}/hcasim-guest.XXXXXX") || die "no folder can be made in ${TMPDIR:-/tmp}" "name another one: TMPDIR=DIR in the environment"
  # shellcheck disable=SC2064 # the folder's name now, not later
  trap "boot_stop; rm -rf '$work'" EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  # Each HCA writes a line there at its end. Whoever has set it himself looks at it himself, too.
  rules_report=${HCASIM_RULES_REPORT:-$work/rules}
  # 5-level page tables make every walk under emulation longer. cmpxchg16b: before QEMU 8.0 its emulation reads flags that have not been
  # written yet, and an interrupt just behind it finds impossible ones: seldom, and then the guest's kernel dies. Linux does without;
  # programs that are compiled with it, such as Open MPI 5, do not: docs/using.md.
  if [[ $accel == kvm ]]; then cpu=host; else cpu=max,la57=off; fi
  if [[ $("$program" --version) =~ version\ ([0-9]+)\.([0-9]+) ]]; then version=$((BASH_REMATCH[1] * 100 + BASH_REMATCH[2])); fi
  if [[ $accel == tcg ]] && ((version < 800)); then cpu+=,cx16=off; fi
  local -a qemu=("$program" -name hcasim -nodefaults -no-user-config -display none
    -machine q35,vmport=off,usb=off -accel "$accel" -cpu "$cpu" -smp "${smp:-2}" -m "$mem"
    -kernel "$GUEST_DIR/vmlinuz")
  if [[ $deterministic == yes ]]; then
    qemu+=(-initrd "$GUEST_MEMORY_IMAGE")
  else
    qemu+=(-initrd "$GUEST_DIR/initramfs.img"
      -drive "if=none,id=root,format=raw,readonly=on,file=${GUEST_ROOT//,/,,}" -device virtio-blk-pci,drive=root
      -drive "if=none,id=modules,format=raw,readonly=on,file=${GUEST_DIR//,/,,}/modules.img" -device virtio-blk-pci,drive=modules)
  fi
  [[ $reboots == yes ]] || qemu+=(-no-reboot)
  if [[ $lockstep == no && $accel == tcg ]]; then
    tsc=$(host_tsc_khz || true)
    if [[ $tsc =~ ^[0-9]+$ ]]; then append="tsc_early_khz=$tsc${append:+ $append}"; fi
  fi
  if [[ $lockstep == yes ]]; then
    qemu+=(-icount 'shift=3,sleep=off' -rtc 'base=2024-01-01T00:00:00,clock=vm' -seed 1)
  fi
  append="console=ttyS0 panic=-1 quiet loglevel=4 tsc=reliable no_timer_check mitigations=off random.trust_cpu=on${modprobe:+ hcasim.modprobe=$modprobe}${append:+ $append}"
  if [[ $vfio_user == yes ]]; then
    vfio_user_options "$work" "$mem" "${hcas[@]}"
    serve_start "$work"
  else
    hca_options hcasim-port "${hcas[@]}"
  fi
  qemu+=("${HCA_OPTIONS[@]}")

  if [[ $from_snapshot == yes ]]; then
    snapshot_files "$work/files" "${files[@]}"
    qemu+=(-append "$append" -device virtio-serial-pci,ioeventfd=off -device virtserialport,chardev=out,name=hcasim.out
      -device virtserialport,chardev=control,name=hcasim.control "${extra[@]}"
      -drive "if=none,id=files,format=raw,readonly=on,file=$work/files" -device virtio-blk-pci,drive=files,serial=hcasim-files)
    snapshot_ready "$work" "${qemu[@]}"
    qemu+=(-incoming "exec:cat $(printf %q "$SNAPSHOT")" -fw_cfg "name=opt/hcasim/script,file=$work/script")
    extra=()
  else
    for file in "${files[@]}"; do qemu+=(-fw_cfg "name=opt/hcasim/bin/${file##*/},file=${file//,/,,}"); done
  fi

  if [[ $has_command == no ]]; then
    # The guest's console does not know how large the terminal is.
    if [[ -t 0 && $serial == mon:stdio ]]; then append+=" hcasim.terminal=$(stty size | tr ' ' x)x${TERM:-linux}"; fi
    if [[ $from_snapshot == yes ]]; then
      printf '#hcasim: shell %s\n' "$(if [[ -t 0 ]]; then echo "$(stty size | tr ' ' x)x${TERM:-linux}"; fi)" >"$work/shell"
      snapshot_script "$work/shell" "$work/script"
      qemu+=(-serial "$serial" -chardev null,id=out -chardev null,id=control)
    else
      qemu+=(-serial "$serial" -append "$append" "${extra[@]}")
    fi
    [[ $from_snapshot == yes ]] || say "booting Linux $(<"$GUEST_DIR/release") ..."
    if [[ -n $timeout ]]; then qemu=(timeout --foreground -k 5 "$timeout" "${qemu[@]}"); fi
    # In the background, so that an end of this script ends the guest too; the terminal is the guest's all the same.
    HCASIM_RULES_REPORT=$rules_report "${qemu[@]}" <&0 &
    boot_child=$!
    wait "$boot_child" || status=$?
    boot_child=
    serve_end || status=$((status == 0 ? 125 : status))
    boot_rules "$rules_report" || status=$((status == 0 ? 1 : status))
    if [[ -n $coverage ]]; then coverage_lines "$coverage" "$coverage_test" "$coverage_modules" "$kernel" || status=$((status == 0 ? 125 : status)); fi
    return "$status"
  fi

  if [[ -n $script ]]; then
    cp "$script" "$work/script"
  else
    # One argument is a line of shell; several are a command and its arguments.
    if ((${#command[@]} == 1)); then printf '%s\n' "${command[0]}" >"$work/script"; else printf '%q ' "${command[@]}" >"$work/script"; fi
  fi
  [[ -s $work/script ]] || die "the command is empty"
  : >"$work/control"
  mkdir -p "$(dirname "$console")"
  # Guests that run at once may have been given one name. With --deterministic a guest's exit status is on its console, too: each has a file
  # of its own, and a link under that name as long as it runs.
  local own=$console
  if [[ $deterministic == yes || $console == "$HCASIM_LOGS/guest-console.log" ]] && [[ -f $console || ! -e $console ]]; then
    own=$work/console
    : >"$own"
    ln -sfn "$own" "$console" || true
    # shellcheck disable=SC2064 # the names now, not later
    trap "boot_stop; boot_console '$own' ${console@Q} || true; rm -rf '$work'" EXIT
  fi
  qemu+=(-serial "file:$own")
  if [[ $from_snapshot == yes ]]; then
    mv "$work/script" "$work/command"
    snapshot_script "$work/command" "$work/script"
    qemu+=(-chardev stdio,id=out,signal=off -chardev "file,id=control,path=$work/control")
  else
    qemu+=(-append "$append" -fw_cfg "name=opt/hcasim/script,file=$work/script")
  fi
  if [[ $deterministic == yes ]]; then
    # A file takes what is written to it at once; a pipe does when its reader has time.
    : >"$work/out"
    qemu+=(-serial "file:$work/out")
  elif [[ $from_snapshot == no ]]; then
    # A descriptor for each of its 64 queues would be looked at in every turn of QEMU's main loop, and so whenever the wire has something.
    qemu+=(-device virtio-serial-pci,ioeventfd=off
      -chardev stdio,id=out,signal=off -device virtserialport,chardev=out,name=hcasim.out
      -chardev "file,id=control,path=$work/control" -device virtserialport,chardev=control,name=hcasim.control)
  fi
  qemu+=("${extra[@]}")
  # At the end of its input, QEMU's stdio hangs up on the guest: an input that never ends and never says anything.
  mkfifo "$work/stdin"
  local tries
  for tries in 1 2 3; do
    HCASIM_RULES_REPORT=$rules_report timeout -k 5 "${timeout:-600}" "${qemu[@]}" <>"$work/stdin" &
    boot_child=$!
    [[ $deterministic == no ]] || tail -c +1 -s 0.2 --pid="$boot_child" -f "$work/out" &
    wait "$boot_child" || status=$?
    boot_child=
    serve_end || status=$((status == 0 ? 125 : status))
    if [[ $accel != tcg ]] || ((tries == 3 || status != 0 || version >= 801)) || ! kernel_met_replaced_code "$own"; then break; fi
    say "hcasim: the guest's kernel died of an int3, as it does where QEMU $((version / 100)).$((version % 100)) translates code that is replaced" \
      "(docs/using.md), before it had loaded anything; it boots once more"
    [[ $vfio_user == no ]] || serve_start "$work"
  done
  local covered=0
  if [[ -n $coverage ]]; then coverage_lines "$coverage" "$coverage_test" "$coverage_modules" "$kernel" || covered=125; fi
  # What the guest has printed to its end.
  if [[ $deterministic == yes ]]; then wait || true; fi
  if ((status == 124 || status == 137)); then
    say "hcasim: the guest was ended after its time limit of ${timeout:-600} s; the end of its console ($console):"
    tail -n 25 "$own" | sed 's/^/   | /' >&2
    return 124
  fi
  report=$(sed -n 's/^exit \([0-9]*\)$/\1/p' "$work/control" | tail -n 1)
  [[ -n $report ]] || report=$(tr -d '\r' <"$own" | sed -n 's/^hcasim-guest-exit: \([0-9]*\)$/\1/p' | tail -n 1)
  if [[ -z $report ]]; then
    say "hcasim: QEMU ended with status $status and the guest did not report; the end of its console ($console):"
    tail -n 25 "$own" | sed 's/^/   | /' >&2
    return 125
  fi
  if ((report == 125 || report == 126)); then tail -n 25 "$own" | sed 's/^/   | /' >&2; fi
  if ((status != 0)); then
    say "hcasim: the guest reported $report, but QEMU ended with status $status"
    return 125
  fi
  boot_rules "$rules_report" || report=$((report == 0 ? 1 : report))
  return $((report == 0 ? covered : report))
}
