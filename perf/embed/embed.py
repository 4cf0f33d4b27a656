#!/usr/bin/env python3
"""Measures how soon an embedded node is ready, beside a bare program that opens the same column families, and how much memory it adds.

    perf/embed/embed.py build/release/perf/embed [ROUNDS]

In turns, the node reopens a data directory, and the bare program a copy of that directory's database. The script prints one line of JSON:
medians in milliseconds, their ratio (aim: at most 1.5), and the megabytes that the host has more with the node than without, as resident
size (aim: at most 12), proportional share and private memory.
"""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

folder = pathlib.Path(sys.argv[1])
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15


def once(program, data):
    return json.loads(subprocess.run([folder / program, data], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


with tempfile.TemporaryDirectory() as root:
    data, copy = pathlib.Path(root) / "data", pathlib.Path(root) / "copy"
    once("perf_embed_node", data)
    database = next(data.rglob("CURRENT")).parent
    nodes, bare = [], []
    for _ in range(rounds):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(database, copy)
        bare.append(once("perf_embed_bare", copy))
        nodes.append(once("perf_embed_node", data))
of = lambda rows, key: statistics.median(row[key] for row in rows)
print(json.dumps({
    "node_ready_ms": of(nodes, "ready_ms"), "bare_open_ms": of(bare, "ready_ms"),
    "ratio": round(of(nodes, "ready_ms") / of(bare, "ready_ms"), 2),
    "added_rss_mb": round(of(nodes, "rss_mb") - of(bare, "rss_mb"), 2),
    "added_pss_mb": round(of(nodes, "pss_mb") - of(bare, "pss_mb"), 2),
    "added_private_mb": round(of(nodes, "anonymous_mb") - of(bare, "anonymous_mb"), 2), "rounds": rounds,
}))
