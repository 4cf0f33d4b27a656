#!/usr/bin/env python3
"""Metric ingestion of a whole server: senders in a real task -> agent -> journal -> acknowledgement, then read back.

    perf/ingest/ingest.py --troupe build/release/troupe --sender build/release/perf/ingest/ingest_sender \
        [--seconds 5] [--senders 16] [--rate N] [--kill-after S]

Starts its own server in a temporary folder. With --kill-after the server is killed with SIGKILL that many seconds after the
first acknowledgement could have come, and started again on the same folder and port, while the senders go on. Prints one line
of JSON: the senders' figures, the server's CPU time, how many rows were read back, and `lost` and `doubled`, which must be 0.
Ends with 1 where they are not.
"""

import argparse
import collections
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

CONFIG = """name: ingest
searcher: {{name: single, metric: i, smaller_is_better: false, max_length: 1}}
hyperparameters: {{}}
resources: {{slots_per_trial: 1}}
max_restarts: 0
entrypoint: {entrypoint}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pause(seconds):
    select.select([], [], [], seconds)


class Server:
    def __init__(self, troupe, folder):
        self.troupe, self.folder = troupe, folder
        self.url = f"http://127.0.0.1:{free_port()}"
        self.start()

    def start(self):
        log = open(os.path.join(self.folder, "up.log"), "ab")
        self.process = subprocess.Popen(
            [self.troupe, "up", "--data-dir", os.path.join(self.folder, "data"), "--listen", self.url[7:], "--slots", "1"],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                return urllib.request.urlopen(self.url + "/health", timeout=5).read()
            except (urllib.error.URLError, OSError):
                if self.process.poll() is not None or time.monotonic() > deadline:
                    sys.exit("the server did not start: " + open(log.name, errors="replace").read())
                pause(0.02)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ask(self, *words):
        done = subprocess.run([self.troupe, *words], env={**os.environ, "TROUPE_MASTER": self.url}, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"troupe {' '.join(words)}: {done.stderr}")
        return done.stdout


def measure(o, server, config, record):
    """Returns the lines of the senders' record, the rows that were read back, and the CPU seconds of the server until then."""
    created = json.loads(server.ask("experiment", "create", config, os.path.dirname(config), "-o", "json"))["id"]
    if o.kill_after is not None:
        pause(o.kill_after)
        server.kill()
        server.start()
    deadline = time.monotonic() + o.seconds + 150
    while not (os.path.exists(record) and len(open(record).readlines()) == 1 + o.senders):
        if time.monotonic() > deadline:
            sys.exit("the senders did not end: " + server.ask("experiment", "describe", str(created)))
        pause(0.05)
    cpu = server.cpu_s()
    lines = [json.loads(line) for line in open(record)]
    [trial] = json.loads(server.ask("trial", "list", str(created), "-o", "json"))
    return lines, json.loads(server.ask("trial", "metrics", str(trial["id"]), "-o", "json")), cpu


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is stopped too
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--troupe", required=True)
    parser.add_argument("--sender", required=True)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--senders", type=int, default=16)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--kill-after", type=float)
    o = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        record = os.path.join(folder, "record")
        command = [os.path.abspath(o.sender), "--senders", str(o.senders), "--seconds", str(o.seconds), "--batch", str(o.batch),
                   "--rate", str(o.rate), "--give-up", "120", "--record", record]
        os.mkdir(os.path.join(folder, "context"))
        config = os.path.join(folder, "context", "ingest.yaml")
        with open(config, "w") as file:
            file.write(CONFIG.format(entrypoint=json.dumps(command)))
        server = Server(os.path.abspath(o.troupe), folder)
        try:
            lines, rows, cpu = measure(o, server, config, record)
        finally:
            server.stop()
    seen = collections.Counter(int(row["metrics"]["i"]) for row in rows)
    owners = lines[1:]
    top = max((owner["sent"] for owner in owners), default=0)
    acked = [0] * (top + 2)  # acked[n]: how many senders have the acknowledgement of report n; sent[n]: how many have sent it
    sent = [0] * (top + 2)
    for owner in owners:
        acked[owner["acked"]] += 1
        sent[owner["sent"]] += 1
    lost = doubled = 0
    told = had = 0
    for n in range(top, 0, -1):
        told += acked[n]
        had += sent[n]
        lost += max(0, told - seen[n])
        doubled += max(0, seen[n] - had)
    result = {**lines[0], "server_cpu_s": cpu, "read_back": len(rows), "lost": lost, "doubled": doubled,
              "killed": o.kill_after is not None}
    print(json.dumps(result))
    sys.exit(1 if lost or doubled else 0)


if __name__ == "__main__":
    main()
