#!/usr/bin/env python3
"""Measures how soon the process of a trial runs after its experiment was submitted to an idle node.

    perf/dispatch/submit.py [ROUNDS] [--build build/release]

There is one node (`troupe up`, 8 slots), with one experiment of one trial at a time, whose command is /bin/date. A time is that from
sending the request, on an open connection, to the time that /bin/date prints, so that the start of /bin/date is included. The script
prints one line of JSON, in milliseconds.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = """
name: submit
entrypoint: [/bin/date, +%s%N]
searcher: {name: single, metric: loss}
max_restarts: 0
"""


class Node:
    def __init__(self, binary, root):
        self.data = root / "data"
        env = {**os.environ, "HOME": str(root), "TROUPE_DATA_DIR": str(self.data)}
        env.pop("TROUPE_MASTER", None)
        self.log = open(root / "up.log", "w")
        self.process = subprocess.Popen([binary, "up", "--data-dir", self.data, "--listen", "127.0.0.1:0", "--slots", "8"], env=env,
                                        stdout=self.log, stderr=self.log)
        end = time.monotonic() + 30
        while not (found := re.search(r"^url http://(\S+)$", self.lock(), re.M)):
            if time.monotonic() > end or self.process.poll() is not None:
                raise SystemExit((root / "up.log").read_text()[-2000:])
            time.sleep(0.05)
        self.connection = http.client.HTTPConnection(found[1], timeout=60)
        self.token = ""
        self.token = json.loads(self.call("POST", "/api/v1/auth/login", {"username": "admin", "password": ""}))["token"]

    def lock(self):
        try:
            return (self.data / "lock").read_text()
        except OSError:
            return ""

    def call(self, method, path, body=None):
        """Sends a request. Returns the body of the answer, also for "not found". Ends the program for any other refusal."""
        self.connection.request(method, path, None if body is None else json.dumps(body),
                                {"Authorization": "Bearer " + self.token} if self.token else {})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300 and answer.status != 404:
            raise SystemExit(f"{method} {path}: {answer.status} {text[:500]}")
        return text

    def printed(self, trial):
        """A match with the clock of /bin/date in nanoseconds, or None where the line has not arrived."""
        return re.search(rb"\b\d{19}\b", self.call("GET", f"/api/v1/trials/{trial}/logs"))


def measure(node, rounds):
    took = []
    for trial in range(1, rounds + 6):
        time.sleep(0.2)  # time for the node to make spare sandboxes again
        began = time.time_ns()
        node.call("POST", "/troupe/v1/experiments", {"config": CONFIG})
        end = time.monotonic() + 20
        while not (clock := node.printed(trial)):
            if time.monotonic() > end:
                raise SystemExit(f"trial {trial} printed nothing")
            time.sleep(0.02)
        took.append((int(clock[0]) - began) / 1e6)
    return took


def main():
    asked = argparse.ArgumentParser()
    asked.add_argument("rounds", type=int, nargs="?", default=60)
    asked.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build" / "release")
    asked = asked.parse_args()
    binary = asked.build.absolute() / "troupe"
    with tempfile.TemporaryDirectory(prefix="submit-", dir=binary.parent) as root:
        node = Node(binary, pathlib.Path(root))
        try:
            took = measure(node, asked.rounds)
        finally:
            node.process.terminate()
            node.process.wait()
    took = sorted(took[5:])
    print(json.dumps({"p50_ms": round(statistics.median(took), 2), "p90_ms": round(took[int(len(took) * 0.9)], 2), "least_ms": round(took[0], 2)}))


main()
