# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Completion of hcasim's commands and of their options, as the commands' own help has them.
_hcasim() {
  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]:-} hcasim=${COMP_WORDS[0]} words
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words=$("$hcasim" help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p' | sort -u)
  elif [[ $verb == trace && $COMP_CWORD == 2 && $word != -* ]]; then
    # A file, or what is to be done with one.
    words=$("$hcasim" trace --help 2>/dev/null | sed -nE 's/^ +([a-z]+) (FILE|A B) .*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" || true; compgen -f -- "$word")
    return 0
  elif [[ $verb == trace && $word == -* && ${COMP_WORDS[2]} =~ ^[a-z]+$ ]]; then
    words=$("$hcasim" trace "${COMP_WORDS[2]}" --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u)
  elif [[ $word == -* ]]; then
    words=$("$hcasim" "$verb" --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u)
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return 0
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o filenames -F _hcasim hcasim ./hcasim
