#!/bin/sh
# Makes the environment of the peers, beside the project's own: perf/searchers/peers.sh [DIR]; default .venv-peers. Takes torch
# (for Optuna's Gaussian process and the real training) from the project's .venv where that has it.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=${1:-$root/.venv-peers}
[ -x "$dir/bin/python" ] || python3 -m venv "$dir"
own=$("$root/.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])' 2>/dev/null || true)
if [ -n "$own" ] && [ -d "$own/torch" ]; then
  "$dir/bin/python" -c 'import sysconfig, sys; open(sysconfig.get_paths()["purelib"] + "/project.pth", "w").write(sys.argv[1] + "\n")' "$own"
fi
"$dir/bin/pip" install -q --disable-pip-version-check -r "$root/perf/searchers/requirements.txt"
