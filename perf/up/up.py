#!/usr/bin/env python3
"""Measures how soon a fresh `troupe up` answers /health, beside a bare program that opens the same column families, and what the node
costs while it is idle.

    perf/up/up.py build/release/troupe [STARTS [build/perf/perf/up/perf_bare_open]]

Prints one line of JSON: the milliseconds from the start of the process to the answer, the ratio of the medians, the CPU milliseconds of
each until the answer, and over 30 idle seconds the share of one core in per cent and the resident memory in MB. Starts 2 and later reopen
the same data directory. Between two starts of `up` the bare program opens a copy of its database.
"""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(command, folder):
    """Starts the command with a free port in place of PORT. Returns the process, and the wall and CPU milliseconds until it answers."""
    port, began = free_port(), time.monotonic()
    process = subprocess.Popen([word.replace("PORT", str(port)) for word in command],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": folder})
    while time.monotonic() < began + 30:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                if b" 200 " in s.recv(200):
                    return process, (time.monotonic() - began) * 1e3, cpu_s(process.pid) * 1e3
        except OSError:
            select.select([], [], [], 0.001)
    sys.exit("no answer within 30 s")


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def figures(all):
    all = sorted(all)
    return {"min": round(all[0], 1), "p50": round(all[len(all) // 2], 1), "max": round(all[-1], 1)}


def main():
    troupe, starts = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 12
    bare = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
    took, cost, bare_took, bare_cost = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(starts):
            process, ms, cpu = start([troupe, "up", "--data-dir", folder + "/data", "--listen", "127.0.0.1:PORT", "--slots", "2"], folder)
            took.append(ms)
            cost.append(cpu)
            if i + 1 == starts:
                select.select([], [], [], 3)
                before = cpu_s(process.pid)
                select.select([], [], [], 30)
                idle = (cpu_s(process.pid) - before) / 30 * 100
                with open(f"/proc/{process.pid}/status") as file:
                    resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024
            process.send_signal(signal.SIGTERM)
            process.wait()
            if bare:
                shutil.rmtree(folder + "/copy", ignore_errors=True)
                shutil.copytree(folder + "/data/master/db/db", folder + "/copy")
                process, ms, cpu = start([bare, folder + "/copy", "PORT"], folder)
                bare_took.append(ms)
                bare_cost.append(cpu)
                process.kill()
                process.wait()
    result = {"health_ms": figures(took), "cpu_ms": figures(cost), "starts": starts,
              "idle_percent_of_a_core": round(idle, 3), "resident_mb": round(resident, 1)}
    if bare:
        result |= {"bare_ms": figures(bare_took), "bare_cpu_ms": figures(bare_cost),
                   "ratio_of_p50": round(figures(took)["p50"] / figures(bare_took)["p50"], 2)}
    print(json.dumps(result))


main()
