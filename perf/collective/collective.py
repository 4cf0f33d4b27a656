#!/usr/bin/env python3
"""Measures the CPU all-reduce of f32 by two processes on one host: `shm` beside PyTorch's Gloo and beside a one-copy floor, in one run.

    cmake -S . -B build/perf -G Ninja -DCMAKE_BUILD_TYPE=Release -DTROUPE_TESTS=OFF -DTROUPE_PERF=ON && ninja -C build/perf perf_collective
    .venv/bin/python perf/collective/collective.py [--rounds 5]

`common` is `shm` with data in memory of collective::allocate, as gradient_bucketer::make gives it. `own` is `shm` with data in a
std::vector. Asked: at least 5 times Gloo's bandwidth up to 16 MiB, and at least half of the floor at every size. Rounds alternate between
the programs. A time is that of the best round, and within a round that of the fastest tenth, because other work on the machine only adds.
A ratio is the median over the rounds of the ratio within each round, because the CPUs of a virtual machine may be threads of one core in
one round and far apart in the next.
"""
import argparse
import os
import pathlib
import platform
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = [1 << n for n in range(10, 27, 2)]


def gloo_rank(rank, port):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for size in SIZES:
        data = torch.ones(size // 4)
        times = []
        for i in range(max(11, min(400, (128 << 20) // (size + 65536))) + 3):
            data.fill_(i & 1)
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(data)
            times.append(time.perf_counter() - start)
        times = sorted(times[3:])
        if rank == 0:
            print(size, times[len(times) // 10], flush=True)
    dist.destroy_process_group()


def gloo():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = [subprocess.Popen([sys.executable, __file__, "--rank", str(r), "--port", port], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}) for r in (0, 1)]
    lines = ranks[0].communicate()[0].split("\n")
    ranks[1].wait()
    return {int(a): float(b) for a, b in (line.split() for line in lines if line)}


def ours(program):
    text = subprocess.run([program, *map(str, SIZES)], stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [line.split() for line in text.splitlines()]
    return {name: {int(row[0]): float(row[i + 1]) for row in rows} for i, name in enumerate(("own", "common", "floor"))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default=str(ROOT / "build/perf/perf/collective/perf_collective"))
    parser.add_argument("--rank", type=int)
    parser.add_argument("--port", type=int)
    a = parser.parse_args()
    if a.rank is not None:
        return gloo_rank(a.rank, a.port)
    rounds = []
    for _ in range(a.rounds):
        rounds.append({**ours(a.program), "gloo": gloo()})
        print(f"floor of 64 KiB: {rounds[-1]['floor'][65536] * 1e6:.1f} us", file=sys.stderr)
    print(f"{platform.platform()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {a.rounds} rounds")
    names = ("gloo", "own", "common", "floor")
    ratios = [(top, bottom) for top in ("gloo", "floor") for bottom in ("own", "common")]
    print(f"{'bytes':>10}" + "".join(f"{name + ' us':>11}" for name in names) + "".join(f"{top + '/' + bottom:>14}" for top, bottom in ratios))
    for size in SIZES:
        best = "".join(f"{min(r[name][size] for r in rounds) * 1e6:11.2f}" for name in names)
        print(f"{size:10}{best}" + "".join(f"{statistics.median(r[top][size] / r[bottom][size] for r in rounds):14.2f}" for top, bottom in ratios))
    return 0


if __name__ == "__main__":
    sys.exit(main())
