#!/usr/bin/env python3
"""Claim: TPE and GP no worse than Optuna's on every problem, and better in the mean of normalised regret.

Runs both sides on the same problems and prints the table with 95 % bootstrap intervals. One command:
    python3 perf/searchers/quality.py --troupe build/release/perf/searchers/perf_search [--seeds 30] [--samplers tpe,gp]
Needs optuna (and torch for GP) in the Python that runs it; perf/searchers/README.md has the set-up. Both sides on one core.
"""
import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import time

from problems import PROBLEMS


class Troupe:
    """One searcher behind `search replay -`."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            sys.exit(answer["error"])
        return answer["actions"]

    def best(self, sampler, space, function, seed, trials):
        actions = self.say({"config": {"name": sampler, "metric": "loss", "max_trials": trials,
                                       "max_concurrent_trials": 1}, "hyperparameters": space, "seed": seed})
        best = float("inf")
        while True:
            create = next((a for a in actions if "create" in a), None)
            if create is None:
                return best
            value = function(create["hparams"])
            best = min(best, value)
            self.say({"event": "validation", "trial": create["create"], "metrics": {"loss": value}})
            actions = self.say({"event": "exited", "trial": create["create"]})


def optuna_best(sampler, space, function, seed, trials):
    import warnings
    warnings.simplefilter("ignore")
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = {"tpe": lambda: optuna.samplers.TPESampler(seed=seed), "gp": lambda: optuna.samplers.GPSampler(seed=seed),
            "cma_es": lambda: optuna.samplers.CmaEsSampler(seed=seed),
            "random": lambda: optuna.samplers.RandomSampler(seed=seed)}[sampler]()

    def objective(trial):
        h = {}
        for name, spec in space.items():
            if spec["type"] == "double":
                h[name] = trial.suggest_float(name, spec["minval"], spec["maxval"])
            elif spec["type"] == "log":
                h[name] = trial.suggest_float(name, spec["base"] ** spec["minval"], spec["base"] ** spec["maxval"], log=True)
            elif spec["type"] == "int":
                h[name] = trial.suggest_int(name, spec["minval"], spec["maxval"])
            else:
                h[name] = trial.suggest_categorical(name, spec["vals"])
        return function(h)

    study = optuna.create_study(sampler=made)
    study.optimize(objective, n_trials=trials)
    return study.best_value


def interval(draws, repeats=10000):
    """Mean of the per-problem means, resampled over seeds within each problem."""
    rng = random.Random(0)
    means = sorted(statistics.fmean(statistics.fmean(rng.choices(d, k=len(d))) for d in draws) for _ in range(repeats))
    return means[int(0.025 * repeats)], means[int(0.975 * repeats)]


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--troupe", required=True)
    parse.add_argument("--seeds", type=int, default=30)
    parse.add_argument("--first-seed", type=int, default=0)
    parse.add_argument("--trials", type=int, default=100)
    parse.add_argument("--samplers", default="tpe,gp")
    parse.add_argument("--problems", default=",".join(PROBLEMS))
    parse.add_argument("--repeats", type=int, default=10000)
    args = parse.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    troupe = Troupe([args.troupe, "search", "replay", "-"])
    for sampler in args.samplers.split(","):
        print(f"\n{sampler}: {args.seeds} seeds x {args.trials} trials; mean best [95 % interval]")
        ours_all, theirs_all, paired, their_cpu = [], [], [], 0.0
        for name in args.problems.split(","):
            space, function, least, by_random = PROBLEMS[name]
            ours = [troupe.best(sampler, space, function, s, args.trials) for s in seeds]
            before = time.process_time()
            theirs = [optuna_best(sampler, space, function, s, args.trials) for s in seeds]
            their_cpu += time.process_time() - before
            regret = lambda values: [min(2.0, (v - least) / (by_random - least)) for v in values]
            ours_all.append(regret(ours))
            theirs_all.append(regret(theirs))
            paired.append([a - b for a, b in zip(ours_all[-1], theirs_all[-1])])
            low, high = interval([ours], args.repeats)
            tlow, thigh = interval([theirs], args.repeats)
            dlow, dhigh = interval([paired[-1]], args.repeats)
            print(f"  {name:20} troupe {statistics.fmean(ours):9.4f} [{low:9.4f}, {high:9.4f}]   "
                  f"optuna {statistics.fmean(theirs):9.4f} [{tlow:9.4f}, {thigh:9.4f}]   "
                  f"regret difference [{dlow:+.3f}, {dhigh:+.3f}]", flush=True)
        low, high = interval(paired, args.repeats)
        print(f"  mean normalised regret: troupe {statistics.fmean(map(statistics.fmean, ours_all)):.4f}, optuna "
              f"{statistics.fmean(map(statistics.fmean, theirs_all)):.4f}, difference [{low:+.4f}, {high:+.4f}]"
              f"{'  (wholly ours)' if high < 0 else ''}", flush=True)
        print(f"  CPU: optuna {their_cpu / args.seeds / len(paired):.2f} s a run", flush=True)
    troupe.process.stdin.close()
    troupe.process.wait()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"  CPU: troupe {(used.ru_utime + used.ru_stime) / args.seeds / len(args.samplers.split(',')) / len(paired):.3f} s a run")


if __name__ == "__main__":
    main()
