#!/usr/bin/env bash
# The main job beside a bare pool of two processes and Optuna in one and in two, on the same data, one after another in one run.
#   perf/main_job.sh PEERS_DIR [SEED]      PEERS_DIR: the folder with measure.py, digits_task.py and the peers
# Uses build/release/troupe and .venv of ./setup; installs Optuna into a temporary environment above it. One line of JSON each.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
here=$PWD peers=$(readlink -f "$1") seed=${2:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/python3 -m venv "$work/optuna"
ls -d "$here"/.venv/lib/python3*/site-packages >"$(ls -d "$work"/optuna/lib/python3*/site-packages)/below.pth"
"$work/optuna/bin/pip" install -q --disable-pip-version-check optuna

# one NAME ENVIRONMENT METRIC COMMAND...
one() {
  local name=$1 bin=$2 metric=$3 folder=$work/run-$1
  shift 3
  mkdir "$folder"
  cp "$peers"/{digits_task,bare_pool,optuna_digits}.py "$folder"
  (cd "$folder" && PATH=$bin:$PATH HOME=$folder DIGITS_TRACE=$folder/trace.jsonl SEED=$seed python3 "$peers/measure.py" \
    --name "$name" --out "$work/results.jsonl" --log "$folder/out.log" --metric "$metric" -- "$@")
}
one troupe "$here/.venv/bin" 'val_accuracy 0' "$here/build/release/troupe" run "$here/configs/experiments/digits-asha.yaml"
one bare_pool "$here/.venv/bin" '0\.\d{3,}' python bare_pool.py
one optuna "$work/optuna/bin" 'value:' python optuna_digits.py 24 2
one optuna_two_processes "$work/optuna/bin" 'value:' \
  bash -c 'python optuna_digits.py 12 1 & sleep 0.5; python optuna_digits.py 12 1; wait'
