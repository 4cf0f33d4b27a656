#!/usr/bin/env python3
"""How soon a fresh `troupe up` answers /health, and what it costs while it does nothing.

    perf/up/up.py build/release/troupe [STARTS]

Prints one line of JSON: milliseconds from the start of the process to the answer (starts 2 and later reopen the same data
directory), and over 30 idle seconds the share of one core in per cent and the resident memory in MB.
"""

import json
import os
import select
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


def start(troupe, folder):
    port, began = free_port(), time.monotonic()
    process = subprocess.Popen([troupe, "up", "--data-dir", folder + "/data", "--listen", f"127.0.0.1:{port}", "--slots", "2"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": folder})
    while time.monotonic() < began + 30:
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as s:
                s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                if b" 200 " in s.recv(200):
                    return process, (time.monotonic() - began) * 1e3
        except OSError:
            select.select([], [], [], 0.001)
    sys.exit("no answer within 30 s")


def cpu_s(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    troupe, starts = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 12
    took = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(starts):
            process, ms = start(troupe, folder)
            took.append(ms)
            if i + 1 == starts:
                select.select([], [], [], 3)
                before = cpu_s(process.pid)
                select.select([], [], [], 30)
                idle = (cpu_s(process.pid) - before) / 30 * 100
                with open(f"/proc/{process.pid}/status") as file:
                    resident = next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024
            process.send_signal(signal.SIGTERM)
            process.wait()
    took.sort()
    print(json.dumps({"health_ms": {"min": round(took[0], 1), "p50": round(took[len(took) // 2], 1), "max": round(took[-1], 1)},
                      "starts": starts, "idle_percent_of_a_core": round(idle, 3), "resident_mb": round(resident, 1)}))


main()
