"""A script cannot tell whether its process was forked from a warmed parent, and needs no such parent to run."""

import json
import os
import pathlib
import shutil
import signal

import pytest

from cluster_under_test import Cluster, wait_for

HERE = pathlib.Path(__file__).parent
CONFIG = """
name: facts
entrypoint: {entrypoint}
hyperparameters: {{x: 1}}
searcher: {{name: random, metric: loss, max_trials: {trials}, max_concurrent_trials: {trials}}}
max_restarts: 0
environment: {{environment_variables: ["FACTS_DIR={root}"]}}
{more}
"""


@pytest.fixture
def cluster(tmp_path):
    one = Cluster(tmp_path)
    one.up(slots=1)
    yield one
    one.close()


def submit(cluster, script, arguments="", trials=1, more=""):
    job = cluster.root / "job"
    (job / "sub").mkdir(parents=True, exist_ok=True)
    (job / "sub" / "train.py").write_text(script)
    config = cluster.root / "job.yaml"
    entrypoint = arguments if arguments.startswith("[") else f"python3 sub/train.py {arguments}"
    config.write_text(CONFIG.format(entrypoint=entrypoint, root=cluster.root, trials=trials, more=more))
    return cluster.json("experiment", "create", str(config), str(job))["id"]


def ended(cluster, experiment):
    """The state in which it ended, and its trials."""
    return cluster.wait_end(experiment, 300), cluster.trials(experiment)


def logs(cluster, experiment):
    return "".join(cluster.cli("trial", "logs", str(row["id"])).stdout for row in cluster.trials(experiment))


def facts_of(cluster, experiment):
    return [json.loads((cluster.root / f"{row['id']}.json").read_text()) for row in cluster.trials(experiment)]


def zygotes(cluster):
    found = []
    for entry in os.listdir("/proc"):
        try:
            words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"troupe-zygote" and str(cluster.data).encode() in words[2]:
            found.append(int(entry))
    return found


def test_a_script_cannot_tell(cluster):
    script = (HERE / "facts.py").read_text()
    seen = {}
    for arguments in ("--lr=0.1 'two words'", '["python3", "./sub/train.py", "--exit", "7"]'):
        for more in ("", "runtime: {zygote: false}"):
            experiment = submit(cluster, script, arguments, more=more)
            state, rows = ended(cluster, experiment)
            assert state == ("ERROR" if "7" in arguments else "COMPLETED"), logs(cluster, experiment)
            (seen[more],) = facts_of(cluster, experiment)
            trial = rows[0]["id"]
            assert (cluster.root / f"late-{trial}").read_text() == "late"
            assert (cluster.root / f"ended-{trial}").exists()
            assert "no newline at the end" in logs(cluster, experiment)
        warm, cold = seen[""], seen["runtime: {zygote: false}"]
        assert (warm["forked"], cold["forked"]) == (True, False), logs(cluster, experiment - 1)
        assert len(cold["facts"]) > 60
        different = {name: (warm["facts"][name], fact) for name, fact in cold["facts"].items() if warm["facts"][name] != fact}
        assert not different, json.dumps(different, indent=1)
        for name, value in cold["drawn"].items():
            assert warm["drawn"][name] != value


def test_each_fork_draws_anew(cluster):
    experiment = submit(cluster, (HERE / "facts.py").read_text(), trials=3)
    assert ended(cluster, experiment)[0] == "COMPLETED", logs(cluster, experiment)
    every = facts_of(cluster, experiment)
    assert all(one["forked"] for one in every)
    for name in every[0]["drawn"]:
        assert len({str(one["drawn"][name]) for one in every}) == 3, name
