#!/usr/bin/env python3
"""Metric reports over HTTP into a whole server, durable before the answer, from 64 connections; then read back.

    perf/api/reports.py --troupe build/release/troupe --sender build/release/perf/api/perf_api_reports [--seconds 10]

Claim: 5,000 a second. Starts its own server in a temporary folder. Prints one line of JSON; ends with 1 where a report that
was answered is missing or doubled, or the claim does not hold.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

CONFIG = """name: reports
entrypoint: sleep 100000
searcher: {name: single, metric: loss}
hyperparameters: {}
"""


def wait_for(true, seconds=30):
    end = time.monotonic() + seconds
    while not (got := true()):
        if time.monotonic() > end:
            sys.exit("the server or its task did not come up")
        select.select([], [], [], 0.1)
    return got


def url_of(data):
    try:
        found = re.search(r"^url (\S+)$", (data / "lock").read_text(), re.M)
        return found and urllib.request.urlopen(found[1] + "/health", timeout=5) and found[1]
    except OSError:
        return None


def request(url, path, body=None, token=""):
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url + path, data=data, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(asked, timeout=120) as answer:
        return json.loads(answer.read())


def measure(options, folder):
    data = folder / "data"
    log = open(folder / "up.log", "ab")
    server = subprocess.Popen([options.troupe, "up", "--data-dir", str(data), "--listen", "127.0.0.1:0", "--slots", "1"],
                              stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        url = wait_for(lambda: url_of(data))
        user = request(url, "/api/v1/auth/login", {"username": "determined", "password": "", "isHashed": True})["token"]
        request(url, "/troupe/v1/experiments", {"config": CONFIG}, user)
        wait_for(lambda: request(url, "/api/v1/tasks", None, user)["allocationIdToSummary"])
        secret = json.loads((data / "master" / "passwords").read_text())["secret"]
        token = f"a1.1.1.{hashlib.blake2b(b'a1.1.1', key=secret.encode(), digest_size=24).hexdigest()}"
        cpu = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        said = subprocess.run([options.sender, url.rsplit(":", 1)[1], token, "1", "1", str(options.connections), str(options.seconds)],
                              capture_output=True, text=True, timeout=options.seconds + 120)
        after = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        figures = json.loads(said.stdout)
        rows = request(url, "/troupe/v1/trials/1/metrics?group=training", None, user)
        figures["rows"] = len(rows)
        figures["distinct"] = len({(row["totalBatches"], row["metrics"]["connection"]) for row in rows})
        figures["server_cpu_s"] = (sum(map(int, after)) - sum(map(int, cpu))) / os.sysconf("SC_CLK_TCK")
        figures["cores"] = os.cpu_count()
        figures["load"] = os.getloadavg()[0]
        return figures
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--troupe", required=True)
    parser.add_argument("--sender", required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=64)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(options, pathlib.Path(folder))
    print(json.dumps(figures))
    whole = figures["rows"] == figures["distinct"] == figures["accepted"] and not figures["refused"]
    return 0 if whole and figures["per_second"] >= 5000 else 1


if __name__ == "__main__":
    sys.exit(main())
