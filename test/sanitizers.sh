#!/usr/bin/env bash
# Tests under a sanitizer.
#   test/sanitizers.sh suite                   ASan and UBSan over all tests that start no cluster (unit, contract, actor, sim) in build/asan;
#                                              `suite build` builds only
#   test/sanitizers.sh asan|tsan [FILTER]      the embedded node: twenty times up and down, runs, hosts of actors, the C interface; tsan also
#                                              runs the suite
#   test/sanitizers.sh memcheck                build/release under valgrind, without building anything anew: what runs no task, since
#                                              valgrind 3.19 has no pidfd_open
# TSan knows neither CAF nor RocksDB, which are not built for it: test/tsan.supp names those two libraries, nothing of ours.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
verb=${1:-}
filter=${2:-*}
kind=$verb
case "$verb" in
suite) kind=asan ;;
asan | tsan | memcheck) ;;
*) sed -n '2,9p' test/sanitizers.sh | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
esac
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export LSAN_OPTIONS=report_objects=1 TSAN_OPTIONS="suppressions=$PWD/test/tsan.supp halt_on_error=1 second_deadlock_stack=1 history_size=4"
if grep -vE '^#|^$|^(race|called_from_lib|deadlock|mutex|thread):(libcaf_core|libcaf_io|librocksdb)' test/tsan.supp; then
  echo "test/tsan.supp may name only libcaf and librocksdb" >&2
  exit 1
fi
export CCACHE_BASEDIR="$PWD" CCACHE_NOHASHDIR=1
[ -d .venv ] && export PATH="$PWD/.venv/bin:$PATH"
if [ "$kind" = memcheck ]; then
  ninja -C build/release cluster_embed troupe-task troupe-zygote
  exec valgrind -q --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite --error-exitcode=99 \
    build/release/test/cluster_embed --gtest_filter="EmbeddedNode.GoesUp*:Study*:*TwoNodes*:*WithoutOurMessages*" 2> >(grep -v -- '^--' >&2)
fi
cmake --preset "$kind" -DTROUPE_TESTS=ON >/dev/null # always: what may be compiled as one may have changed

suite() {
  ninja -C "build/$kind" sanitized_tests
  [ "${1:-}" = build ] && return
  ctest --test-dir "build/$kind" -j "$(nproc)" -L '^(unit|contract|actor|sim)$' --output-on-failure
}

if [ "$verb" = suite ]; then
  suite "${2:-}"
  exit
fi
[ "$verb" = asan ] || suite
ninja -C "build/$kind" cluster_embed troupe-task troupe-zygote
exec "build/$kind/test/cluster_embed" --gtest_filter="$filter"
