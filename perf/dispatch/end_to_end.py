#!/usr/bin/env python3
"""Measures trials of /bin/true from the search to their end in the journal, beside a bare spawn and HyperQueue, in one run.

    perf/dispatch/end_to_end.py [--trials N] [--long N] [--build build/release] [--hyperqueue PYTHON] [--rounds N]

There is one node (`troupe up`, 8 slots) with a `random` search that has 64 trials at once. The script prints one line of JSON:
  troupe_per_s      trials that end in a second, from the creation of the experiment to the end of the last of N (default: 2,000)
  cpu_ms            CPU time of a trial: node, sandboxes and the trials' own processes, without the kernel's threads
  floor_per_s       bare spawns of /bin/true in a second, two at once, each into new namespaces and mounts such as a task has
  hyperqueue_per_s  tasks of /bin/true in a second in HyperQueue, with server and worker of 2 cores in one process
  first_100_ms, last_100_ms   time between the ends of the first and of the last hundred of `--long` trials (default: 10,000; 0: null)
Figures are medians over the rounds; in each round all are measured one after another. HyperQueue is installed from PyPI into a temporary
environment unless `--hyperqueue` names a python that has it.
"""

import argparse
import ctypes
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = """
name: dispatch
entrypoint: /bin/true
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
searcher: {{name: random, metric: loss, max_trials: {trials}, max_concurrent_trials: 64}}
max_restarts: 0
"""
HYPERQUEUE = """
import contextlib, io, sys, time
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
with contextlib.redirect_stderr(io.StringIO()), LocalCluster(worker_config=WorkerConfig(cores=2)) as cluster:
    client = cluster.client()
    def go(count):
        job = Job()
        for _ in range(count):
            job.program(["/bin/true"], stdout=None, stderr=None)
        began = time.time()
        client.wait_for_jobs([client.submit(job)])
        return count / (time.time() - began)
    go(100)
    print(go(4000))
"""


class Orphans:
    """Adopts and reaps sandboxes, which have no parent, so that their CPU time counts as that of this process's children."""

    def __init__(self):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        self.node = None
        threading.Thread(target=self.reap, daemon=True).start()

    def reap(self):
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
                if ended.si_pid not in (self.node, *mine):
                    os.waitpid(ended.si_pid, 0)
                else:
                    time.sleep(0.01)  # Another thread of this program reaps it.
            except ChildProcessError:
                time.sleep(0.01)


mine = set()
clients_s = 0.0  # CPU seconds of the commands that this program runs, which are not part of the trials' time


def command(*words, **more):
    global clients_s
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True, **more)
    mine.add(process.pid)
    out = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    clients_s += used.ru_utime + used.ru_stime
    mine.discard(process.pid)
    if process.returncode:
        sys.exit(f"{words[0]} {words[1]}: ended with {process.returncode}")
    return out


def ticks(pid):
    """The CPU time of a process, its ended children, and its living descendants, in clock ticks."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = [child for file in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]
    except OSError:
        return 0  # The process has just ended, and its parent has its time.
    return sum(map(int, fields[11:15])) + sum(map(ticks, children))


def cpu_s(pid):
    """The CPU seconds of a process, of all processes that it has started, and of all that this process has reaped."""
    reaped = os.times()
    return ticks(pid) / os.sysconf("SC_CLK_TCK") + reaped.children_user + reaped.children_system - clients_s


def floor(program, count, root):
    """The number of bare spawns a second, by two programs at the same time."""
    both = []
    for place in ("a", "b"):
        for folder in ("tmp", "run"):
            (root / place / folder).mkdir(parents=True, exist_ok=True)
        both.append(subprocess.Popen([program, "fresh", root / place], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True))
        mine.add(both[-1].pid)
    began = time.monotonic()
    threads = [threading.Thread(target=one.communicate, args=("go\n" * (count // 2),)) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    mine.difference_update(one.pid for one in both)
    return count // 2 * 2 / took


class Node:
    def __init__(self, binary, root, orphans):
        self.binary, self.data = binary, root / "data"
        self.env = {**os.environ, "HOME": str(root), "TROUPE_DATA_DIR": str(self.data)}
        self.env.pop("TROUPE_MASTER", None)
        self.log = open(root / "up.log", "w")
        self.process = subprocess.Popen([binary, "up", "--data-dir", self.data, "--listen", "127.0.0.1:0", "--slots", "8"],
                                        env=self.env, stdout=self.log, stderr=self.log)
        orphans.node = self.process.pid
        self.config = root / "true.yaml"
        self.files = root / "files"
        self.files.mkdir()
        end = time.monotonic() + 30
        while not self.answers():
            if time.monotonic() > end or self.process.poll() is not None:
                sys.exit("troupe does not answer: " + (root / "up.log").read_text()[-2000:])
            time.sleep(0.05)

    def answers(self):
        try:
            lines = dict(line.split(" ", 1) for line in (self.data / "lock").read_text().splitlines() if " " in line)
            return urllib.request.urlopen(lines["url"] + "/health", timeout=2).status == 200
        except (OSError, KeyError, ValueError):
            return False

    def cli(self, *words):
        return command(self.binary, *words, "-o", "json", env=self.env)

    def search(self, trials):
        """Runs a search. Returns the seconds from its order to its last end, and the sorted times at which trials ended, in seconds since
        1970."""
        self.config.write_text(CONFIG.format(trials=trials))
        began = time.time()
        experiment = json.loads(self.cli("experiment", "create", self.config, self.files))["id"]
        # `experiment wait` would make the node encode every fact for it.
        while (state := json.loads(self.cli("experiment", "describe", experiment))["state"].removeprefix("STATE_")) not in (
                "COMPLETED", "ERROR", "CANCELED"):
            time.sleep(0.3)
        if state != "COMPLETED":
            sys.exit(f"experiment {experiment}: {state}")
        time.sleep(0.5)  # time for the last sandboxes to end
        self.cpu_at_end = cpu_s(self.process.pid)
        rows = json.loads(self.cli("trial", "list", experiment))
        rows = rows["trials"] if isinstance(rows, dict) else rows
        ends = sorted(seconds(row["endTime"]) for row in rows)
        if len(ends) != trials or any(row["state"].removeprefix("STATE_") != "COMPLETED" for row in rows):
            sys.exit(f"experiment {experiment}: {len(ends)} of {trials} trials, or not all completed")
        return ends[-1] - began, ends

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def seconds(text):
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def troupe(binary, trials, orphans):
    # not below /tmp, because each sandbox would have to make the path in its own /tmp
    with tempfile.TemporaryDirectory(prefix="dispatch-", dir=binary.parent) as root:
        node = Node(binary, pathlib.Path(root), orphans)
        node.search(64)
        before = cpu_s(node.process.pid)
        wall, ends = node.search(trials)
        cpu = node.cpu_at_end - before
        node.end()
        return trials / wall, 1000 * cpu / trials, ends


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("--trials", type=int, default=2000)
    asked.add_argument("--long", type=int, default=10_000)
    asked.add_argument("--rounds", type=int, default=1)
    asked.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build" / "release")
    asked.add_argument("--hyperqueue", default="")
    asked = asked.parse_args()
    binary = asked.build.absolute() / "troupe"
    bare = asked.build.absolute() / "perf" / "dispatch" / "perf_dispatch_bare"
    found = {"troupe_per_s": [], "floor_per_s": [], "hyperqueue_per_s": [], "cpu_ms": []}
    with tempfile.TemporaryDirectory(prefix="troupe-dispatch-") as scratch:
        scratch = pathlib.Path(scratch)
        python = asked.hyperqueue
        if not python:
            subprocess.run([sys.executable, "-m", "venv", scratch / "hq"], check=True)
            python = scratch / "hq" / "bin" / "python"
            subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "hyperqueue"], check=True)
        orphans = Orphans()
        for _ in range(asked.rounds):
            found["floor_per_s"].append(floor(bare, 1000, scratch))
            rate, cpu, _ = troupe(binary, asked.trials, orphans)
            found["troupe_per_s"].append(rate)
            found["cpu_ms"].append(cpu)
            found["floor_per_s"].append(floor(bare, 1000, scratch))
            found["hyperqueue_per_s"].append(float(command(python, "-c", HYPERQUEUE, cwd=scratch).split()[-1]))
        out = {name: round(statistics.median(values), 2) for name, values in found.items()}
        out["first_100_ms"] = out["last_100_ms"] = None
        if asked.long:
            _, _, ends = troupe(binary, asked.long, orphans)
            out["first_100_ms"] = round(1000 * (ends[99] - ends[0]), 1)
            out["last_100_ms"] = round(1000 * (ends[-1] - ends[-100]), 1)
        print(json.dumps(out))


if __name__ == "__main__":
    main()
