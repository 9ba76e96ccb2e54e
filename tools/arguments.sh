# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Arguments of boot, pair and others that are looked at before anything is built. Needs common.sh.

# kernel_known KERNEL: a guest can have it.
kernel_known() {
  case $1 in
    6.1 | 6.12 | backports) ;;
    *) [[ -f $1 && -r $1 ]] || die "no kernel '$1'" "--kernel takes 6.1, 6.12, backports or the path of a bzImage" ;;
  esac
}

# size_known OPTION VALUE: of --smp and --mem, which QEMU would refuse only after all has been built; also in QEMU's long form.
size_known() {
  if [[ $1 == --smp ]]; then
    [[ $2 =~ ^([1-9][0-9]*|[a-z]+=[a-z0-9]+)(,[a-z]+=[a-z0-9]+)*$ ]] || die "--smp takes a number of processors, not '$2'"
  else
    [[ $2 =~ ^([1-9][0-9]*[kKmMgGtT]?|size=[1-9][0-9]*[kKmMgGtT]?)(,[a-z]+=[A-Za-z0-9]+)*$ ]] || die "--mem takes MiB, or a size such as 2G, not '$2'"
  fi
}

# one_value SPEC: each key of --hca is given once; QEMU would take the last and say nothing.
one_value() {
  local pair rest=$1, key
  local -A seen=()
  while [[ -n $rest ]]; do
    pair=${rest%%,*} rest=${rest#*,} key=${pair%%=*}
    [[ $pair == *=* ]] || continue
    [[ -z ${seen[$key]:-} ]] || die "--hca ${1#,}: $key= is given twice, as ${seen[$key]} and as $pair" "give one of them"
    seen[$key]=$pair
  done
}

# last_of_each SPEC: prints it with the last of what has one key, in the place of the first.
last_of_each() {
  local pair rest=$1, key out=''
  local -A last=()
  while [[ -n $rest ]]; do
    pair=${rest%%,*} rest=${rest#*,}
    if [[ $pair == *=* ]]; then last[${pair%%=*}]=$pair; fi
  done
  rest=$1,
  while [[ -n $rest ]]; do
    pair=${rest%%,*} rest=${rest#*,} key=${pair%%=*}
    if [[ $pair == *=* ]]; then
      [[ -n ${last[$key]:-} ]] || continue
      pair=${last[$key]}
      last[$key]=
    fi
    out+=${out:+,}$pair
  done
  printf '%s\n' "$out"
}
