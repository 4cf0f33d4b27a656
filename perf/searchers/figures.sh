#!/bin/sh
# Every figure of the searchers, one program at a time: perf/searchers/figures.sh BUILD_DIR [SEEDS] [GP_SEEDS_OF_OPTUNA] > perf/results/searchers-DATE.txt
# CPU time throughout. peers.sh has to have run. Optuna's Gaussian process takes minutes a problem; 0 leaves it out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1 seeds=${2:-30} gp_seeds=${3:-30}
python=$here/../../.venv-peers/bin/python
echo "# $(date -u +%FT%TZ), $(nproc) x $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $("$python" -c 'import optuna; print("optuna", optuna.__version__)')"
echo; echo "## Decisions of adaptive_asha"
"$build/perf/searchers/perf_searchers"
echo; echo "## Ask + tell in memory, CPU ms, eight dimensions"
for row in "random 1000 10000" "tpe 1000 10000" "gp 300"; do
  # shellcheck disable=SC2086
  "$build/perf/searchers/perf_search_models" $row
  # shellcheck disable=SC2086
  "$python" "$here/peers.py" $row
done
echo; echo "## Learning curves"
"$build/perf/searchers/perf_search_curves" "$seeds"
echo; echo "## Quality"
"$python" "$here/quality.py" --troupe "$build/perf/searchers/perf_search" --seeds "$seeds" --samplers tpe
[ "$gp_seeds" = 0 ] || "$python" "$here/quality.py" --troupe "$build/perf/searchers/perf_search" --seeds "$gp_seeds" --samplers gp
