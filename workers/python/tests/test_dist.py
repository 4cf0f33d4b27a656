"""Tests troupe.dist with ranks that are processes on one host."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ports import free_port

PACKAGE = Path(__file__).parent.parent


def start_ranks(script, size, tmp_path, only=None, **env):
    port = str(free_port())
    (tmp_path / "ranks.py").write_text("import troupe.dist as dist\n" + script)
    base = {k: v for k, v in os.environ.items() if not k.startswith(("TROUPE_", "TORCHELASTIC_"))}
    return [subprocess.Popen([sys.executable, tmp_path / "ranks.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**base, "PYTHONPATH": str(PACKAGE), "RANK": str(r), "WORLD_SIZE": str(size), "LOCAL_RANK": str(r),
                                  "MASTER_ADDR": "127.0.0.1", "TROUPE_DIST_PORT": port, **env}) for r in (range(size) if only is None else only)]


def outputs(ranks):
    done = [p.communicate(timeout=180) for p in ranks]
    assert all(p.returncode == 0 for p in ranks), done
    return [out.split("\n")[:-1] for out, _ in done]


def test_every_call_gives_each_rank_what_it_says(tmp_path):
    got = outputs(start_ranks("""
print(dist.rank(), dist.size(), dist.local_rank())
print(dist.broadcast({"of": dist.rank()}), dist.broadcast(dist.rank(), root=2))
print(dist.gather(dist.rank() * 10), dist.gather("abc"[dist.rank()], root=1))
print(dist.all_gather([dist.rank()]))
print(dist.barrier())
""", 3, tmp_path))
    for r in range(3):
        assert got[r] == [f"{r} 3 {r}", "{'of': 0} 2", f"{[0, 10, 20] if r == 0 else None} {['a', 'b', 'c'] if r == 1 else None}",
                          "[[0], [1], [2]]", "None"]


def test_alone_every_call_returns_at_once(tmp_path):
    script = "print(dist.rank(), dist.size(), dist.broadcast(5), dist.gather(6), dist.all_gather(7), dist.barrier())"
    (tmp_path / "alone.py").write_text("import troupe.dist as dist\n" + script)
    env = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE")}
    out = subprocess.run([sys.executable, tmp_path / "alone.py"], env={**env, "PYTHONPATH": str(PACKAGE)}, capture_output=True, text=True, check=True)
    assert out.stdout == "0 1 5 [6] [7] None\n"


@pytest.mark.parametrize("dying", [0, 1, 2])
def test_a_rank_that_dies_ends_the_call_of_the_others(tmp_path, dying):
    ranks = start_ranks(f"""
import os
dist.barrier()
if dist.rank() == {dying}:
    os.kill(os.getpid(), 9)
try:
    dist.all_gather(1)
except RuntimeError as why:
    print(why)
""", 3, tmp_path)
    texts = [p.communicate(timeout=120)[0] for p in ranks]
    for r in range(3):
        assert r == dying or f"rank {dying} of 3 is gone" in texts[r] or "rank 0 of 3 is gone" in texts[r], texts


def test_ranks_that_differ_are_told_so(tmp_path):
    ranks = start_ranks("""
try:
    dist.barrier() if dist.rank() == 0 else dist.all_gather(1)
except RuntimeError as why:
    print(why)
""", 2, tmp_path)
    for out in outputs(ranks):
        assert "rank 1 called all_gather" in out[0] and "rank 0 called barrier" in out[0], out


def test_a_process_without_the_token_is_no_rank(tmp_path):
    script = "print(dist.all_gather(dist.rank()))"
    port = str(free_port())
    first = start_ranks(script, 2, tmp_path, only=[0], TROUPE_TASK_TOKEN="secret", TROUPE_DIST_PORT=port)
    stranger = start_ranks(script, 2, tmp_path, only=[1], TROUPE_TASK_TOKEN="guess", TROUPE_DIST_PORT=port)[0]
    assert "belongs to another run" in stranger.communicate(timeout=120)[1]
    second = start_ranks(script, 2, tmp_path, only=[1], TROUPE_TASK_TOKEN="secret", TROUPE_DIST_PORT=port)
    assert outputs(first + second) == [["[0, 1]"], ["[0, 1]"]]
