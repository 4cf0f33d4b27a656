#!/usr/bin/env bash
# The embedded node under a sanitizer: twenty times up and down, runs, hosts of actors, the C interface.
#   test/sanitizers.sh asan|tsan [FILTER]      builds build/asan or build/tsan as far as that needs
#   test/sanitizers.sh memcheck                build/release under valgrind, without building anything anew: what runs no task, since
#                                              valgrind 3.19 has no pidfd_open
# TSan knows neither CAF nor RocksDB, which are not built for it: test/tsan.supp names those two libraries, nothing of ours.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
kind=${1:?asan, tsan or memcheck}
filter=${2:-*}
case "$kind" in
asan) export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 LSAN_OPTIONS=report_objects=1 ;;
tsan) export TSAN_OPTIONS="suppressions=$PWD/test/tsan.supp halt_on_error=1 second_deadlock_stack=1 history_size=4" ;;
memcheck) ;;
*) echo "test/sanitizers.sh asan|tsan|memcheck [FILTER]" >&2; exit 2 ;;
esac
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
[ -f "build/$kind/build.ninja" ] || cmake --preset "$kind" -DTROUPE_TESTS=ON >/dev/null
ninja -C "build/$kind" cluster_embed troupe-task troupe-zygote
exec "build/$kind/test/cluster_embed" --gtest_filter="$filter"
