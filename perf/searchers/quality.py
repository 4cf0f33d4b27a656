#!/usr/bin/env python3
"""Checks the claim that TPE and GP are not worse than Optuna's on any problem, and better in the mean of normalised regret.

Runs both sides on the same problems and prints the table with 95 % bootstrap intervals, by one command:
    .venv-peers/bin/python perf/searchers/quality.py --troupe build/release/perf/searchers/perf_search [--samplers tpe,gp]
Optuna's runs are kept, a line for each, in perf/results/optuna-quality.csv and not made again, because a run of its Gaussian process
takes half a CPU minute. --fresh makes all of them anew, and --peer-only fills the file and prints no table. Both sides have one core.
"""
import argparse
import csv
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

from problems import PROBLEMS, digest, for_troupe  # noqa: E402  (the number of threads is read at import)

KEPT = pathlib.Path(__file__).resolve().parents[1] / "results" / "optuna-quality.csv"
COLUMNS = ["sampler", "optuna", "problem", "digest", "trials", "seed", "best", "cpu_s"]


class Troupe:
    """A process of `search replay -`, which runs one search after the other."""

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
                                       "max_concurrent_trials": 1}, "hyperparameters": for_troupe(space), "seed": seed})
        best = float("inf")
        while True:
            create = next((a for a in actions if "create" in a), None)
            if create is None:
                return best
            value = function(create["hparams"])
            best = min(best, value)
            self.say({"event": "validation", "trial": create["create"], "metrics": {"loss": value}})
            actions = self.say({"event": "exited", "trial": create["create"]})

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


def suggested(trial, name, spec):
    if spec["type"] == "double":
        return trial.suggest_float(name, spec["minval"], spec["maxval"])
    if spec["type"] == "log":
        low, high = spec["base"] ** spec["minval"], spec["base"] ** spec["maxval"]
        if spec.get("integer"):
            return trial.suggest_int(name, round(low), round(high), log=True)
        return trial.suggest_float(name, low, high, log=True)
    if spec["type"] == "int":
        return trial.suggest_int(name, spec["minval"], spec["maxval"])
    return trial.suggest_categorical(name, spec["vals"])


def optuna_best(sampler, space, function, seed, trials):
    import warnings
    warnings.simplefilter("ignore")
    import optuna
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler, "cma_es": optuna.samplers.CmaEsSampler,
            "random": optuna.samplers.RandomSampler}[sampler](seed=seed)
    study = optuna.create_study(sampler=made)
    study.optimize(lambda trial: function({n: suggested(trial, n, s) for n, s in space.items()}), n_trials=trials)
    return study.best_value


class Peer:
    """The results of Optuna. Kept results are read, and missing ones are computed and stored. A result belongs to one version of Optuna
    and one version of a problem."""

    def __init__(self, path, fresh):
        import optuna
        self.path, self.version, self.rows = path, optuna.__version__, {}
        if path.exists() and not fresh:
            with open(path, newline="") as f:
                self.rows = {self.key(r): r for r in csv.DictReader(f)}
        elif not path.exists() or fresh:
            with open(path, "w", newline="") as f:
                csv.writer(f).writerow(COLUMNS)

    @staticmethod
    def key(row):
        return tuple(str(row[c]) for c in COLUMNS[:6])

    def run(self, sampler, problem, seed, trials):
        """Returns the best value and the CPU seconds."""
        row = dict(sampler=sampler, optuna=self.version, problem=problem, digest=digest(problem), trials=trials, seed=seed)
        kept = self.rows.get(self.key(row))
        if kept is None:
            space, function, _, _ = PROBLEMS[problem]
            before = time.process_time()
            best = optuna_best(sampler, space, function, seed, trials)
            kept = row | {"best": repr(best), "cpu_s": f"{time.process_time() - before:.3f}"}
            self.rows[self.key(row)] = kept
            with open(self.path, "a", newline="") as f:
                csv.DictWriter(f, COLUMNS).writerow(kept)
        return float(kept["best"]), float(kept["cpu_s"])


def interval(draws, repeats):
    """The 95 % interval of the mean over problems, resampled over the seeds of each problem."""
    rng = random.Random(0)
    means = sorted(statistics.fmean(statistics.fmean(rng.choices(d, k=len(d))) for d in draws) for _ in range(repeats))
    return means[int(0.025 * repeats)], means[int(0.975 * repeats)]


def table(sampler, args, troupe, peer):
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    print(f"\n{sampler}: {args.seeds} seeds x {args.trials} trials, optuna {peer.version}; mean best [95 % interval], lower is better")
    ours_all, theirs_all, paired, their_cpu = [], [], [], []
    for name in args.problems.split(","):
        space, function, least, by_random = PROBLEMS[name]
        ours = [troupe.best(sampler, space, function, s, args.trials) for s in seeds]
        theirs, cpu = zip(*(peer.run(sampler, name, s, args.trials) for s in seeds))
        their_cpu += cpu

        def regret(values):
            return [min(2.0, (v - least) / (by_random - least)) for v in values]
        ours_all.append(regret(ours))
        theirs_all.append(regret(theirs))
        paired.append([a - b for a, b in zip(ours_all[-1], theirs_all[-1])])
        low, high = interval([ours], args.repeats)
        tlow, thigh = interval([theirs], args.repeats)
        dlow, dhigh = interval([paired[-1]], args.repeats)
        print(f"  {name:20} troupe {statistics.fmean(ours):9.4f} [{low:9.4f}, {high:9.4f}]   "
              f"optuna {statistics.fmean(theirs):9.4f} [{tlow:9.4f}, {thigh:9.4f}]   "
              f"regret difference {statistics.fmean(paired[-1]):+.4f} [{dlow:+.4f}, {dhigh:+.4f}]", flush=True)
    low, high = interval(paired, args.repeats)
    print(f"  mean normalised regret: troupe {statistics.fmean(map(statistics.fmean, ours_all)):.4f}, optuna "
          f"{statistics.fmean(map(statistics.fmean, theirs_all)):.4f}, difference [{low:+.4f}, {high:+.4f}]"
          f"{'  (wholly ours)' if high < 0 else ''}", flush=True)
    print(f"  CPU: optuna {statistics.fmean(their_cpu):.2f} s a run", flush=True)
    return len(paired) * args.seeds


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--troupe", help="the program that answers `search replay -`")
    parse.add_argument("--seeds", type=int, default=30)
    parse.add_argument("--first-seed", type=int, default=0)
    parse.add_argument("--trials", type=int, default=100)
    parse.add_argument("--samplers", default="tpe,gp")
    parse.add_argument("--problems", default=",".join(PROBLEMS))
    parse.add_argument("--repeats", type=int, default=10000)
    parse.add_argument("--kept", type=pathlib.Path, default=KEPT)
    parse.add_argument("--fresh", action="store_true")
    parse.add_argument("--peer-only", action="store_true")
    args = parse.parse_args()
    peer = Peer(args.kept, args.fresh)
    if args.peer_only:
        for seed in range(args.first_seed, args.first_seed + args.seeds):
            for sampler in args.samplers.split(","):
                for name in args.problems.split(","):
                    peer.run(sampler, name, seed, args.trials)
        return
    if not args.troupe:
        parse.error("--troupe PROGRAM is missing")
    for sampler in args.samplers.split(","):
        troupe = Troupe([args.troupe, "search", "replay", "-"])
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        runs = table(sampler, args, troupe, peer)
        print(f"  CPU: troupe {(troupe.end() - before.ru_utime - before.ru_stime) / runs:.3f} s a run")


if __name__ == "__main__":
    main()
