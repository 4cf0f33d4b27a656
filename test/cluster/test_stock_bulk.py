"""Changes a thousand experiments with one request, and kills the master in the middle. An acknowledged change happens; any other is
either done for all or for none."""

import collections
import pathlib
import random
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "perf" / "stock"))

from cluster_under_test import BINARY, wait_for  # noqa: E402
from stock_site import Master, Refused, fill  # noqa: E402

COUNT = 1000


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """A master with a thousand ended experiments, each with two checkpoints of three files."""
    folder = tmp_path_factory.mktemp("bulk")
    with Master(BINARY, folder).running() as one:
        fill(one, COUNT, folder / "checkpoints", of_each=2)
        yield one


def projects(master):
    """The number of experiments that the lists show in each project."""
    rows = master.wire("admin").call("GET", "/api/v1/experiments?limit=-1")["experiments"]
    return collections.Counter(row["projectId"] for row in rows)


def ids(master):
    return [row["id"] for row in master.wire("admin").call("GET", "/api/v1/experiments?limit=-1")["experiments"]]


def interrupted(master, chance, method, path, body):
    """Kills the master at a random moment of this request, and starts it again. Returns the answer, or None where none came."""
    got = []

    def ask():
        try:
            got.append(wire.call(method, path, body))
        except (Refused, OSError):
            pass  # The master died before it answered.

    wire = master.wire("admin")
    begun = threading.Thread(target=ask)
    begun.start()
    time.sleep(chance.uniform(0, 0.3))
    master.process.kill()
    master.process.wait()
    begun.join()
    master.start()
    return got[0] if got else None


def project(master, workspace, name):
    return master.wire("admin").call("POST", f"/api/v1/workspaces/{workspace}/projects", {"name": name, "workspaceId": workspace})["project"]["id"]


def test_a_bulk_move(master):
    chance = random.Random(7)
    here = 1
    workspace = master.wire("admin").call("POST", "/api/v1/workspaces", {"name": "bulk"})["workspace"]["id"]
    for turn in range(8):
        to = project(master, workspace, f"turn-{turn}")
        there = len(ids(master))
        answer = interrupted(master, chance, "POST", f"/api/v1/projects/{here}/experiments/move",
                             {"experimentIds": ids(master), "projectId": here, "destinationProjectId": to})
        now = projects(master)
        assert now in ({here: there}, {to: there}), now
        if answer is not None:
            assert [one["error"] for one in answer["results"] if one["error"]] == [] and now == {to: there}
        rest = [row["id"] for row in master.wire("admin").call("GET", f"/api/v1/experiments?limit=-1&projectId={here}")["experiments"]] if now[here] else []
        if rest:
            master.wire("admin").call("POST", f"/api/v1/projects/{here}/experiments/move",
                                      {"experimentIds": rest, "projectId": here, "destinationProjectId": to})
        assert projects(master) == {to: there}
        here = to


def test_a_bulk_archive(master):
    chance = random.Random(8)
    of = projects(master).most_common(1)[0][0]
    answer = interrupted(master, chance, "POST", f"/api/v1/projects/{of}/experiments/archive", {"experimentIds": ids(master), "projectId": of})
    rows = master.wire("admin").call("GET", "/api/v1/experiments?limit=-1")["experiments"]
    archived = {row["archived"] for row in rows}
    assert len(rows) == COUNT and (archived == {True} if answer is not None else len(archived) == 1)


def test_a_bulk_delete(master):
    """Runs last, because no experiment is left. An acknowledged deletion needs no second order."""
    chance = random.Random(9)
    of = projects(master).most_common(1)[0][0]
    folders = master.folder / "checkpoints"
    shown = lambda: {row["id"]: row["state"] for row in master.wire("admin").call("GET", "/api/v1/experiments?limit=-1")["experiments"]}
    before = sorted(ids(master))
    ordered = before[: COUNT // 2]
    answer = interrupted(master, chance, "DELETE", f"/api/v1/projects/{of}/experiments/delete", {"experimentIds": ordered, "projectId": of})
    if answer is None:
        left = [id for id, state in shown().items() if id in ordered and state == "STATE_COMPLETED"]
        assert sorted(left) in ([], ordered), len(left)
        if left:
            master.wire("admin").call("DELETE", f"/api/v1/projects/{of}/experiments/delete", {"experimentIds": left, "projectId": of})
    for _ in range(3):  # The master is killed again while the files are deleted.
        time.sleep(chance.uniform(0, 0.5))
        master.process.kill()
        master.process.wait()
        master.start()
        assert set(shown()) <= set(before) and not {state for id, state in shown().items() if id in ordered} - {"STATE_DELETING"}, shown()
    wait_for(lambda: sorted(shown()) == before[COUNT // 2:], 120, what=shown)
    assert len([one for one in folders.iterdir() if one.name != "tensorboard"]) == COUNT, "of those that are left, two each"
    master.wire("admin").call("DELETE", f"/api/v1/projects/{of}/experiments/delete", {"experimentIds": before[COUNT // 2:], "projectId": of})
    wait_for(lambda: not shown(), 120, what=shown)
    assert [one.name for one in folders.rglob("weights")] == []
