"""A data directory of an earlier build, as it was when all processes were killed (test/data/kept_directory/). It is opened, compared, and
its experiments are finished."""

import fcntl
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest

from cluster_under_test import BINARY, Cluster, wait_for

KEPT = pathlib.Path(__file__).resolve().parents[1] / "data" / "kept_directory"
sys.path.insert(0, str(KEPT))
import make  # noqa: E402


@pytest.fixture
def kept():
    """A cluster on the directory, unpacked at the path that its facts name. Only one test at a time has it."""
    with open(str(make.ROOT) + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(make.ROOT, ignore_errors=True)
        make.ROOT.mkdir()
        with tarfile.open(KEPT / "directory.tar.xz") as archive:
            archive.extractall(make.ROOT)
        cluster = Cluster(make.ROOT)
        try:
            yield cluster
        finally:
            cluster.close()
            cluster.log.close()
            shutil.rmtree(make.ROOT)


def up(cluster, file=None):
    cluster.process = subprocess.Popen([BINARY, "up", *([str(file)] if file else []), "--data-dir", str(cluster.data), "--listen", "127.0.0.1:0"],
                                       env=cluster.env, stdout=cluster.log, stderr=cluster.log, start_new_session=True)
    wait_for(cluster.answers, 60)


def login(cluster, name, password):
    return cluster.call("/api/v1/auth/login", {"username": name, "password": password})


def settled(experiments, ended):
    """The columns that no later start changes: for ended experiments all but the checkpoints, for the others id, owner and start."""
    return {name: {key: row[key] for key in row if name in ended and key != "checkpoints" or key in ("id", "owner", "startTime")}
            for name, row in experiments.items()}


def agents(cluster):
    return {a["id"]: a["state"] for a in cluster.json("agent", "list")}


def test_it_is_read_and_its_experiments_end(kept):
    expected = json.loads((KEPT / "expected.json").read_text())
    up(kept)
    now = make.expected(kept)
    ended = [name for name, row in expected["experiments"].items() if row["state"] in ("COMPLETED", "CANCELED", "ERROR")]
    assert len(ended) == 4
    assert settled(now["experiments"], ended) == settled(expected["experiments"], ended)
    assert {key: now[key] for key in ("users", "configuration", "revision", "by_hand")} == \
        {key: expected[key] for key in ("users", "configuration", "revision", "by_hand")}
    for name, row in expected["experiments"].items():
        here = now["experiments"][name]
        newest = max((c["steps"] for c in row["checkpoints"].values()), default=0)
        for uuid, saved in row["checkpoints"].items():  # One hour after the end only the best and the newest are kept.
            assert here["checkpoints"].get(uuid) == saved or name in ended and saved["steps"] < newest, (name, saved)
        for trial, metrics in row["metrics"].items():
            assert here["metrics"][trial][:len(metrics)] == metrics, (name, trial)
            assert here["trials"][trial]["hparams"] == row["trials"][trial]["hparams"]
    assert now["experiments"]["paused"]["state"] == "PAUSED"
    assert now["experiments"]["running"]["state"] == "ACTIVE"

    # Logins: passwords, an inactive user, and a token with a long life.
    assert login(kept, "ada", "countess")[0] == 200
    assert login(kept, "ada", "")[0] == 401
    assert login(kept, "dora", "exploradora")[0] == 200
    assert login(kept, "carl", "")[0] == 403
    kept.admin_token = (kept.data / "master" / "tokens" / "ada.nightly").read_text().strip()
    assert kept.call("/api/v1/me")[1]["user"]["username"] == "ada"
    wait_for(lambda: agents(kept) == {"kept1": "alive", "kept2": "draining"}, 60, what=lambda: agents(kept))
    first = {(f["type"], f["by"]) for kind in ("user_changed", "configuration_changed", "setting_changed") for f in kept.facts(kind)}
    assert first == {(kind, "troupe") for kind in ("user_changed", "configuration_changed", "setting_changed")}
    assert [(f["key"], f["to"]) for f in kept.facts("setting_changed")] == [("trace.max", 5000)]
    assert not (kept.data / "master" / "users").exists() and not (kept.data / "master" / "configuration").exists()

    # The experiments that the earlier build had begun end as usual.
    for hold in make.ROOT.glob("hold-*"):
        hold.unlink()
    ids = {name: row["id"] for name, row in expected["experiments"].items()}
    kept.cli("experiment", "activate", str(ids["paused"]))
    for name, state in {"stopping": "CANCELED", "running": "COMPLETED", "queued": "COMPLETED", "paused": "COMPLETED"}.items():
        assert kept.wait_end(ids[name]) == state, name
    saved = {(c["trialId"], c["totalBatches"]) for id in ids.values() for c in kept.checkpoints(id)}
    stored = {t["id"]: {m["totalBatches"] for m in kept.json("trial", "metrics", str(t["id"])) if m["group"] == "validation"}
              for id in ids.values() for t in kept.trials(id)}
    swept = {trial for name in ended for trial in expected["experiments"][name]["trials"]}
    for ack in kept.acks():
        assert ack["epoch"] in stored[ack["trial"]], ack
        assert ack["kind"] != "saved" or str(ack["trial"]) in swept or (ack["trial"], ack["epoch"]) in saved, ack
    for name in ("running", "queued", "paused"):
        assert all(t["restarts"] == 0 for t in kept.trials(ids[name])), name
    # A trial that had checkpoints continued from its newest one, and not from the start.
    resumed = [a for a in kept.acks() if a["trial"] in (6, 7, 8, 9) and a["kind"] == "validated"]
    assert sorted(a["epoch"] for a in resumed if a["trial"] == 6) == list(range(1, 9))

    # A second start of this build reads what its first start wrote.
    before = make.expected(kept)
    kept.kill_everything()
    up(kept)
    assert make.expected(kept) == before
    assert login(kept, "ada", "countess")[0] == 200


def test_its_cluster_file_is_applied_again(kept):
    up(kept, make.ROOT / "kept.yaml")
    before = make.expected(kept)  # compared with itself, because later builds may know more keys of the file
    assert before["users"] == json.loads((KEPT / "expected.json").read_text())["users"]
    file = make.ROOT / "kept.yaml"
    file.write_text(file.read_text().replace("- {name: bob}", "- {name: bert, password: ernie}"))
    kept.cli("login", "admin", "--password", "", check=False)
    kept.cli("apply", str(file), "--yes")
    now = make.expected(kept)
    assert now["revision"] == before["revision"] + 1 and not now["users"]["bob"]["active"] and now["users"]["bert"]["id"] == 7
    assert login(kept, "bert", "ernie")[0] == 200
