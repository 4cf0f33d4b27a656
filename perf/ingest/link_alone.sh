#!/bin/bash
# What the task link alone can do: senders -> socket -> machine -> a journal in memory that commits every few ms. One line
# of JSON for each run: as fast as acknowledgements allow, then at 50,000 reports/s for the latency.
# usage: perf/ingest/link_alone.sh BUILD_DIR [SECONDS]      (cmake -DTROUPE_PERF=ON)
set -e
build=${1:?build directory} seconds=${2:-5}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
one() { # commit_ms, flags of the sender
  local commit=$1; shift
  mkfifo "$folder/in" "$folder/out"
  "$build/test/harness_gateway" --commit-ms "$commit" <"$folder/in" >"$folder/out" &
  exec 3>"$folder/in" 4<"$folder/out"
  read -r endpoint <&4
  local line gateway
  line=$("$build/perf/ingest/ingest_sender" --endpoint "$endpoint" --token secret --allocation 12.3 --seconds "$seconds" "$@") || true
  exec 3>&-
  read -r gateway <&4
  wait
  echo "{\"commit_ms\": $commit, \"flags\": \"$*\", \"sender\": $line, \"gateway\": $gateway}"
  rm "$folder/in" "$folder/out"
}
one 0 --batch 16
one 3 --batch 1
one 3 --batch 16
one 3 --batch 16 --rate 50000
