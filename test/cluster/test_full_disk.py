"""A whole cluster on a small file system that another process fills. The cluster reports it, loses nothing, and continues when there is
room."""

import ctypes
import os
import random

import pytest

from cluster_under_test import Cluster, moment, wait_for

MOUNT_NAMESPACE, RECURSIVE_PRIVATE = 0x00020000, 0x4000 | 0x40000


@pytest.fixture
def small(tmp_path):
    """A cluster whose data directory is a file system of 160 MB, in a mount namespace of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder = tmp_path / "data"
    folder.mkdir()
    made = libc.unshare(MOUNT_NAMESPACE) == 0 and libc.mount(b"none", b"/", None, RECURSIVE_PRIVATE, None) == 0
    if not made or libc.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, b"size=160m") != 0:
        pytest.skip(f"a file system cannot be mounted here: {os.strerror(ctypes.get_errno())}")
    one = Cluster(tmp_path)
    yield one
    one.close()


class Filler:
    """Takes all room of a file system, and frees it at the end of the block."""

    def __init__(self, folder):
        self.file = folder / "of-another-process"

    def __enter__(self):
        with open(self.file, "wb", buffering=0) as out:
            part = bytes(1 << 20)
            while part:
                try:
                    out.write(part)
                except OSError:
                    part = part[: len(part) // 2]

    def __exit__(self, *why):
        self.file.unlink()


def test_twenty_full_disks_cost_no_restart_and_no_report(small):
    seed = int(os.environ.get("TROUPE_TEST_SEED", random.randrange(1 << 30)))
    print("seed", seed)
    chance = random.Random(seed)
    small.up()
    experiment = small.submit(8, 0.1)
    refused = 0
    for _ in range(20):
        moment(chance, 0.05, 0.8)
        with Filler(small.data):
            moment(chance, 0.05, 1.0)
            if refused == 0:  # Reads work, and orders are refused with the reason.
                assert small.cli("experiment", "list").returncode == 0
                said = small.cli("experiment", "create", str(small.root / "job.yaml"), str(small.root / "job"), check=False)
                refused = said.returncode != 0 and ("space" in said.stderr or "full" in said.stderr)
                assert refused, (said.stdout, said.stderr)
    assert small.process.poll() is None, (small.root / "up.log").read_text()[-3000:]
    ended = small.wait_end(experiment)
    assert ended == "COMPLETED", [(row, small.cli("trial", "logs", str(row["id"])).stdout[-1500:]) for row in small.trials(experiment)]
    small.check_books(experiment, 8)
    assert all(row["restarts"] == 0 for row in small.trials(experiment)), small.trials(experiment)


def test_it_starts_on_a_full_disk_or_says_why(small):
    small.up()
    experiment = small.submit(2, 0.0)
    assert small.wait_end(experiment) == "COMPLETED"
    small.kill_everything()
    with Filler(small.data):
        try:
            small.up()
            assert small.state(experiment) == "COMPLETED"
            small.kill_everything()
        except AssertionError:
            log = (small.root / "up.log").read_text()
            assert "space" in log, log[-2000:]
    small.up()
    assert small.state(experiment) == "COMPLETED"
    small.check_books(experiment, 2)
    wait_for(lambda: small.state(small.submit(1, 0.0)) in ("ACTIVE", "RUNNING", "COMPLETED"), 10)
