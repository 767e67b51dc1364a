#!/usr/bin/env bash
# Checks that a program tells nothing of where it was built, and, where it is meant for other
# machines, that it needs nothing but glibc; says the oldest glibc it runs with.
# usage: check_program.sh PROGRAM FOLDER... [--alone]
set -euo pipefail

readonly program=$1
shift
status=0
fail() { printf '%s: %s\n' "$program" "$*" >&2; status=1; }

for folder in "$@"; do
  [[ $folder == --alone ]] && continue
  if grep -qaF "$folder/" "$program"; then fail "contains paths of $folder"; fi
done

if [[ ${*: -1} == --alone ]]; then
  needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  while read -r library; do
    case $library in
      libc.so.6 | libm.so.6 | ld-linux*.so.*) ;;
      *) fail "needs $library" ;;
    esac
  done <<<"$needed"
  if readelf -d "$program" | grep -q 'R.*PATH'; then fail "has a run path"; fi
  oldest=$(readelf -V "$program" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
  printf '%s: %s, runs with glibc %s and newer\n' "$program" "$(du -h "$program" | cut -f1)" "${oldest#GLIBC_}"
fi
exit "$status"
