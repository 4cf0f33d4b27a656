#!/usr/bin/env bash
# Writes the list for lazy_calls.cpp: every function of some shared libraries that our archives call.
#   lazy_calls.sh OUT LIBRARY... -- ARCHIVE...     the libraries by path
set -euo pipefail
out=$1
shift
libraries=()
while [ "$1" != -- ]; do libraries+=("$1") && shift; done
shift
called=$(nm -u "$@" 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u)
{
  echo '// Made by lazy_calls.sh.'
  for library in "${libraries[@]}"; do
    soname=$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
    nm -D --defined-only "$library" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u | comm -12 - <(printf '%s\n' "$called") |
      sed "s/.*/asm(\"troupe_lazy_call \\0, \\\\\"$soname\\\\\"\");/"
  done
} >"$out.new"
grep -q troupe_lazy_call "$out.new" || { echo "lazy_calls.sh: nothing of ${libraries[*]} is called" >&2; exit 1; }
mv "$out.new" "$out"
