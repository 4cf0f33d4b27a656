#!/usr/bin/env python3
"""Compares real training: a small network on scikit-learn's digits, 24 trials of at most 16 epochs, two at a time.

The systems are Troupe's adaptive_asha (configs/experiments/digits-asha.yaml), Ray Tune's ASHA, and Optuna's TPE with its Hyperband pruner.
For each the script prints the error of the best validation, the wall and CPU seconds of the whole command (start and end of the platform
included), and the epochs that were trained, as means with 95 % bootstrap intervals over the seeds. There is one run at a time, and the
systems take turns within a seed.
    .venv-peers/bin/python perf/searchers/digits.py --troupe build/release/troupe [--seeds 10] [--raw FILE]
Each run is a line of JSON in the file of --raw. Runs that the file has are not made again.
"""
import argparse
import ctypes
import json
import os
import pathlib
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRIALS, EPOCHS, WORKERS, LONGEST_S = 24, 16, 2, 600
BECOME_SUBREAPER = 36  # a prctl by which this process becomes the parent of orphans, so that their CPU time counts


class Processes:
    """All processes below this one, orphans included, and their CPU seconds. There are two counts, both too low. The kernel's sum over
    children lacks processes that their parents never wait for, such as Ray's workers. A look every tenth of a second misses the last
    tenth of each process. The greater count is used."""

    def __init__(self):
        self.seconds = {}
        self.before = self.waited_for()

    @staticmethod
    def waited_for():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    def look(self):
        """Notes the CPU seconds of the processes that live, this one left out, and returns their ids."""
        parents, used = {}, {}
        for folder in pathlib.Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                fields = (folder / "stat").read_text().rsplit(") ", 1)[1].split()
            except OSError:
                continue  # The process has ended meanwhile.
            pid = int(folder.name)
            parents[pid] = int(fields[1])
            used[pid] = (fields[19], (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"))  # (start time, CPU seconds of user and system)
        below, grew = {os.getpid()}, True
        while grew:
            fresh = {pid for pid, parent in parents.items() if parent in below} - below
            below |= fresh
            grew = bool(fresh)
        below.remove(os.getpid())
        for pid in below:
            started, seconds = used[pid]
            self.seconds[pid, started] = seconds
        return below

    def total(self):
        return max(sum(self.seconds.values()), self.waited_for() - self.before)


def watch(process, seen, longest_s):
    """Waits for the command, and then for all processes that it has left behind. Returns its exit code and the time of its end."""
    deadline, code, ended = time.monotonic() + longest_s, None, 0.0
    while True:
        left = seen.look()
        if code is None and (code := process.poll()) is not None:
            ended, deadline = time.monotonic(), time.monotonic() + 15
        if code is not None:
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return code, ended
        if time.monotonic() > deadline:
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def command(system, seed, args, folder):
    if system == "troupe":
        return [args.troupe, "run", str(ROOT / "configs/experiments/digits-asha.yaml"), "--new", "--data-dir", str(folder / "data"),
                "--listen", "127.0.0.1:0", "--slots", str(WORKERS),
                "--config", f"reproducibility.experiment_seed={seed}",
                "--config", f"environment.environment_variables=[\"DIGITS_TRACE={folder / 'trace'}\"]"]
    return [sys.executable, str(HERE / "digits_peers.py"), system, *map(str, (seed, TRIALS, EPOCHS, WORKERS))]


def run(system, seed, args):
    with tempfile.TemporaryDirectory(prefix="digits-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        env = os.environ | {"HOME": name, "DIGITS_TRACE": str(folder / "trace"), "OMP_NUM_THREADS": "1",
                            "PATH": f"{ROOT / '.venv/bin'}:{os.environ['PATH']}"}
        seen, began = Processes(), time.monotonic()
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(command(system, seed, args, folder), cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            code, ended = watch(process, seen, LONGEST_S)
        if code != 0:
            sys.exit(f"{system}, seed {seed}: exit code {code}\n{(folder / 'log').read_text(errors='replace')[-3000:]}")
        epochs = [e for e in map(json.loads, open(folder / "trace")) if e["ev"] == "epoch"]
        return {"system": system, "seed": seed, "error": round(1 - max(e["acc"] for e in epochs), 5), "wall_s": round(ended - began, 2),
                "cpu_s": round(seen.total(), 2), "epochs": len(epochs), "load": os.getloadavg()[0]}


def interval(values):
    rng = random.Random(0)
    means = sorted(statistics.fmean(rng.choices(values, k=len(values))) for _ in range(10000))
    return f"{statistics.fmean(values):9.4f} [{means[250]:8.4f}, {means[9750]:8.4f}]"


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--troupe", required=True)
    parse.add_argument("--seeds", type=int, default=10)
    parse.add_argument("--systems", default="troupe,ray,optuna")
    parse.add_argument("--raw", type=pathlib.Path)
    args = parse.parse_args()
    args.troupe = str(pathlib.Path(args.troupe).resolve())
    ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1, 0, 0, 0)
    rows = [json.loads(line) for line in open(args.raw)] if args.raw and args.raw.exists() else []
    for seed in range(args.seeds):
        for system in args.systems.split(","):
            if any(r["system"] == system and r["seed"] == seed for r in rows):
                continue
            rows.append(run(system, seed, args))
            if args.raw:
                with open(args.raw, "a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    print(f"digits: {TRIALS} trials of at most {EPOCHS} epochs, {WORKERS} at a time, seeds 0 to {args.seeds - 1}; mean [95 % interval]")
    print(f"{'':8} {'error':>30} {'wall s':>30} {'CPU s':>30} {'epochs':>30}")
    for system in args.systems.split(","):
        own = [r for r in rows if r["system"] == system and r["seed"] < args.seeds]
        print(f"{system:8} " + " ".join(interval([r[key] for r in own]) for key in ("error", "wall_s", "cpu_s", "epochs")))


if __name__ == "__main__":
    main()
