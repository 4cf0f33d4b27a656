#!/usr/bin/env python3
"""Measures how soon a trial's script runs with PyTorch imported, forked from a warm zygote and started cold, in one run.

    perf/zygote/start.py build/release/troupe [TRIALS]

A time is that from the fact `allocation_placed` to the script's own clock after `import torch`. There is one slot, with one trial after the
other; the first trial of each kind warms up and does not count. A bare `python3 train.py` with the same script is measured from its start.
The script prints one line of JSON, in milliseconds. Asked: 25 (p50) and 40 (p99) forked, and cold within 200 of bare. It needs a python3
with torch in PATH or in .venv of the checkout.
"""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import datetime

SCRIPT = """
import torch
import time
now = time.time()
import os, sys
with open(os.environ["MARKS"], "a") as file:
    file.write(f"{os.environ.get('TROUPE_ALLOCATION_ID', 'bare')} {now}\\n")
if "TROUPE_ALLOCATION_ID" in os.environ:
    import troupe
    troupe.validate({"loss": 1.0, "epoch": 1}, step=1)
"""
CONFIG = """
name: start
entrypoint: python3 train.py
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
searcher: {{name: random, metric: loss, max_trials: {trials}, max_concurrent_trials: 1}}
environment: {{environment_variables: ["MARKS={root}/marks"]}}
runtime: {{zygote: {zygote}}}
"""


def marks(root):
    try:
        return [line.split() for line in (root / "marks").read_text().splitlines()]
    except FileNotFoundError:
        return []


def until(true, seconds=600):
    end = time.monotonic() + seconds
    while not (got := true()):
        if time.monotonic() > end:
            sys.exit("waited in vain")
        time.sleep(0.05)
    return got


def placed(url, trials):
    """The times of all placements of allocations in seconds since 1970, by TRIAL.RUN."""
    login = json.dumps({"username": "determined", "password": ""}).encode()
    with urllib.request.urlopen(url + "/api/v1/auth/login", data=login, timeout=30) as answer:
        token = json.load(answer)["token"]
    request = urllib.request.Request(url + "/troupe/v1/events?after=0", headers={"Authorization": "Bearer " + token})
    found, trial = {}, None
    with urllib.request.urlopen(request, timeout=30) as stream:
        for line in stream:
            if not line.startswith(b"data:"):
                continue
            fact = json.loads(line[5:])
            if fact.get("type") == "allocation_placed":
                found[fact["entity"].rpartition("/")[2]] = datetime.fromisoformat(fact["at"].replace("Z", "+00:00")).timestamp()
                if len(found) >= trials:
                    break
    return found


def spread(values):
    values = sorted(values)
    return {"n": len(values), "p50": round(values[len(values) // 2], 1), "p99": round(values[math.ceil(len(values) * 0.99) - 1], 1), "most": round(values[-1], 1),
            "least": round(values[0], 1)}


def main():
    binary, trials = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40
    cold_trials = 4
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        root = pathlib.Path(folder)
        (root / "job").mkdir()
        (root / "job" / "train.py").write_text(SCRIPT)
        env = {**os.environ, "HOME": folder, "TROUPE_DATA_DIR": str(root / "data"), "MARKS": str(root / "marks")}
        up = subprocess.Popen([binary, "up", "--data-dir", str(root / "data"), "--listen", "127.0.0.1:0", "--slots", "1"],
                              env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until(lambda: subprocess.run([binary, "status"], env=env, capture_output=True).returncode == 0, 30)
            total = 0
            for zygote, count in (("true", trials + 1), ("false", cold_trials)):
                config = root / "job.yaml"
                config.write_text(CONFIG.format(trials=count, root=root, zygote=zygote))
                subprocess.run([binary, "experiment", "create", str(config), str(root / "job")], env=env, check=True, capture_output=True)
                total += count
                until(lambda: len(marks(root)) >= total)
            lines = (root / "data" / "lock").read_text().splitlines()
            url = next(line.split(" ", 1)[1] for line in lines if line.startswith("url "))
            at = placed(url, total)
            seen = marks(root)
            late = [(float(now) - at[name]) * 1e3 for name, now in seen]
            python = next((p for p in (str(pathlib.Path(__file__).parents[2] / ".venv/bin/python3"),) if os.path.exists(p)), "python3")
            bare = []
            for _ in range(cold_trials):
                began = time.time()
                subprocess.run([python, "train.py"], cwd=root / "job", env=env, check=True)
                bare.append((float(marks(root)[-1][1]) - began) * 1e3)
            forked, cold = spread(late[1 : trials + 1]), spread(late[trials + 1 :])
            print(json.dumps({"first with warm-up": round(late[0], 1), "forked": forked, "cold": cold, "bare": spread(bare),
                              "cold beyond bare": round(cold["p50"] - spread(bare)["p50"], 1),
                              "cold / forked": round(cold["p50"] / forked["p50"], 1), "load": os.getloadavg()[0]}))
        finally:
            up.send_signal(signal.SIGTERM)
            up.wait()


main()
