#!/bin/sh
# Runs the tests of the task runtime as an ordinary user: as_user.sh TEST_PROGRAM TROUPE_TASK.
# Copies of both go where any user may run them. Somebody who is no root already is one.
set -eu
[ "$(id -u)" = 0 ] || exec env TROUPE_TASK_PROGRAM="$2" "$1"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
cp "$1" "$place/tests"
cp "$2" "$place/troupe-task"
cd "$place"
TROUPE_TASK_PROGRAM="$place/troupe-task" setpriv --reuid=65534 --regid=65534 --clear-groups "$place/tests"
