#!/usr/bin/env bash
# Runs everything of the member `nccl` that needs a GPU, with its transcript in perf/results/: every operation for 1, 2 and 4
# ranks on one GPU, the abort of a killed rank, and the overhead over the bare call. Claim: at most 2 us below 1 MiB, at most 1 %
# above. Needs nvcc, and an earlier ./setup build run (it fetches NCCL). Ranks that share a GPU take turns of milliseconds on it,
# so their overhead is timed under MPS where that is installed.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
nccl=$(compgen -G '.venv/lib/python3*/site-packages/nvidia/nccl' | head -1 || true)
[ -n "$nccl" ] || [ -e /usr/include/nccl.h ] || { echo "gpu.sh: there is no nccl.h: run ./setup build on a machine with nvcc" >&2; exit 2; }
[ -z "$nccl" ] || export TROUPE_NCCL_LIBRARY="$PWD/$nccl/lib/libnccl.so.2"
cmake -S . -B build/perf -G Ninja -DCMAKE_BUILD_TYPE=Release -DTROUPE_TESTS=OFF -DTROUPE_PERF=ON -DTROUPE_NCCL=ON >/dev/null
ninja -C build/perf gpu_check >/dev/null
check=build/perf/perf/collective/gpu_check
out=perf/results/nccl-$(date -u +%F).txt
export NCCL_MULTI_RANK_GPU_ENABLE=1 LD_LIBRARY_PATH="/usr/local/cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
failed=0 mps=$(mktemp -d)
trap 'rm -rf "$mps"' EXIT
{
  date -u
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  for ranks in 1 2 4; do timeout 600 "$check" operations $ranks 2>&1 || echo "FAILED: operations $ranks"; done
  for ranks in 2 4; do timeout 120 "$check" abort $ranks 2>&1 || echo "FAILED: abort $ranks"; done
  export CUDA_MPS_PIPE_DIRECTORY=$mps CUDA_MPS_LOG_DIRECTORY=$mps
  if command -v nvidia-cuda-mps-control >/dev/null && nvidia-cuda-mps-control -d; then
    echo "with MPS:"
  else
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
  fi
  for ranks in 1 2; do timeout 600 "$check" overhead $ranks 2>&1 || echo "FAILED: overhead $ranks"; done
  [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] || echo quit | nvidia-cuda-mps-control
} | tee "$out"
grep -q FAILED "$out" && failed=1
echo "transcript: $out"
exit $failed
