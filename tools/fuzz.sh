#!/usr/bin/env bash
# Runs each built fuzz target for some seconds, as many at a time as there are cores. New inputs
# and crashes stay in build-fuzz/work/; tests/fuzz/corpus/ is only read. usage: fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '== %s\n' "$*" >&2; }

# fuzz_one SECONDS SOURCE: the seeds of x_fuzz.cc are in corpus/x (or corpus/x_fuzz).
fuzz_one() {
  local name dir work dirs
  name=$(basename "$2" .cc)
  work=build-fuzz/work/$name
  dirs=("$work/corpus")
  mkdir -p "$work/corpus"
  for dir in "tests/fuzz/corpus/$name" "tests/fuzz/corpus/${name%_fuzz}"; do
    [[ -d $dir ]] && dirs+=("$dir")
  done
  if "build-fuzz/fuzz/$name" -max_total_time="$1" -timeout=10 -artifact_prefix="$work/" \
      "${dirs[@]}" >"$work/log" 2>&1 </dev/null; then
    say "$name: $(grep '^Done' "$work/log")"
  else
    tail -n 60 "$work/log" >&2
    say "$name: FAILED, its input and log are in $work/"
    return 1
  fi
}

export -f fuzz_one say
printf '%s\0' tests/fuzz/*_fuzz.cc |
  xargs -0 -P "$(nproc)" -I{} bash -c 'fuzz_one "$@" || exit 1' fuzz_one "$1" {}
