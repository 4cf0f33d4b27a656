#!/usr/bin/env python3
"""Measures how soon 512 ranks meet: workers on the task link, which checks token, allocation, rank and version, beside the TCPStore of
torch.distributed.

    cmake -S . -B build/perf -G Ninja -DCMAKE_BUILD_TYPE=Release -DTROUPE_TESTS=OFF -DTROUPE_PERF=ON && ninja -C build/perf perf_rendezvous
    .venv/bin/python perf/rendezvous/rendezvous.py [--rounds 5] [--ranks 512] [--processes 8]

Asked: at most 200 ms, and at least 5 times faster than TCPStore. Both sides have the same number of stub processes, each with its share
of the connections, which have started and imported everything before the clock runs. The time is that from the start signal until the last
connection has heard that all are there. Rounds alternate, and the best round counts. TCPStore's server looks up the name of each client:
where no name server answers, /etc/nsswitch.conf has to say `hosts: files`, or TCPStore is slower by 0.1 s for each client.
"""
import argparse
import os
import pathlib
import platform
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def torch_ranks(first, count, ranks, port):
    import datetime

    from torch.distributed import TCPStore

    print("ready", flush=True)
    sys.stdin.readline()

    stores = [TCPStore("127.0.0.1", port, ranks, False, timeout=datetime.timedelta(seconds=120), wait_for_workers=False) for _ in range(count)]
    for store in stores:
        if store.add("here", 1) == ranks:
            store.set("all", "1")
    for store in stores:
        store.wait(["all"])
    print("done", flush=True)


def torch_host(ranks, port):
    import datetime

    from torch.distributed import TCPStore

    store = TCPStore("127.0.0.1", port, ranks, True, timeout=datetime.timedelta(seconds=120), wait_for_workers=False)
    print("up", flush=True)
    sys.stdin.read()
    del store


def timed(stubs):
    for one in stubs:
        assert one.stdout.readline() == "ready\n"
    start = time.perf_counter()
    for one in stubs:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in stubs:
        assert one.stdout.readline() == "done\n"
    took = time.perf_counter() - start
    for one in stubs:
        one.stdin.close()
        one.wait()
    return took


def piped(*words):
    return subprocess.Popen([str(w) for w in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "TORCH_CPP_LOG_LEVEL": "ERROR"})


def ours(a):
    agent = piped(a.program, "agent", a.ranks)
    endpoint = agent.stdout.readline().strip()
    share = a.ranks // a.processes
    took = timed([piped(a.program, "ranks", n * share, share, endpoint) for n in range(a.processes)])
    agent.kill()
    agent.wait()
    return took


def theirs(a):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    host = piped(sys.executable, __file__, "--host", port, "--ranks", a.ranks)
    assert host.stdout.readline() == "up\n"
    share = a.ranks // a.processes
    stubs = [piped(sys.executable, __file__, "--first", n * share, "--count", share, "--port", port, "--ranks", a.ranks) for n in range(a.processes)]
    took = timed(stubs)
    host.kill()
    host.wait()
    return took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--program", default=str(ROOT / "build/perf/perf/rendezvous/perf_rendezvous"))
    for hidden in ("--first", "--count", "--port", "--host"):
        parser.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.host is not None:
        return torch_host(a.ranks, a.host)
    if a.first is not None:
        return torch_ranks(a.first, a.count, a.ranks, a.port)
    a.ranks -= a.ranks % a.processes
    best = {"task link": [], "TCPStore": []}
    for _ in range(a.rounds):
        best["task link"].append(ours(a))
        best["TCPStore"].append(theirs(a))
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {a.rounds} rounds, {a.ranks} ranks in {a.processes} processes")
    for name, times in best.items():
        print(f"{name:>10}: best {min(times) * 1e3:8.1f} ms, median {sorted(times)[len(times) // 2] * 1e3:8.1f} ms")
    print(f"TCPStore / task link: {min(best['TCPStore']) / min(best['task link']):.1f}")


if __name__ == "__main__":
    main()
