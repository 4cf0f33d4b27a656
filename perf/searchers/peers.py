#!/usr/bin/env python3
"""Measures Optuna for perf_search_models: the median CPU milliseconds of one ask and tell on eight dimensions, for each length of history.
usage: peers.py random|tpe|gp HISTORY..."""
import statistics
import sys
import time

import optuna
from optuna.distributions import FloatDistribution

optuna.logging.set_verbosity(optuna.logging.ERROR)
SPACE = {f"x{j}": FloatDistribution(0, 1) for j in range(8)}


def loss(params):
    return sum((x - 0.3) ** 2 for x in params.values())


def main():
    name, histories = sys.argv[1], [int(x) for x in sys.argv[2:]]
    made = {"random": optuna.samplers.RandomSampler, "tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}
    filler = optuna.samplers.RandomSampler(seed=1)
    for history in histories:
        study = optuna.create_study(sampler=filler)
        for _ in range(history):
            trial = study.ask(SPACE)
            study.tell(trial, loss(trial.params))
        study.sampler = made[name](seed=1)
        times = []
        for _ in range(7 if name == "gp" else 21):
            before = time.process_time()
            trial = study.ask(SPACE)
            value = loss(trial.params)
            study.tell(trial, value)
            times.append(1e3 * (time.process_time() - before))
        print(f"optuna {name} {history} median {statistics.median(times):.3f} ms", flush=True)


if __name__ == "__main__":
    main()
