"""An actor may die and be made again: a search of 24 trials while actors of every kind are killed in turn, with real processes.

TROUPE_TEST_SEED chooses the actors.
"""

import collections
import json
import os
import random
import re
import time
import urllib.error

import pytest

from cluster_under_test import Cluster, wait_for

KILLS, TRIALS, SLOTS = 50, 24, 3

# Every kind of actor that its owner makes again.
KINDS = ["searcher", "experiment", "trial", "allocation", "pool", "agent", "retention", "remover", "inspector", "desk",
         "harness", "log_pump", "worker_runtime"]

# Two searches run at once. The first decides by the reports of its trials, one trial at a time, so that its decisions do not depend on
# which trial reports first. The second keeps the other slots busy.
SEARCHES = {
    "asha": f"searcher: {{name: adaptive_asha, metric: loss, time_metric: epoch, max_time: 16, max_trials: {TRIALS}, max_concurrent_trials: 1, divisor: 4, mode: aggressive}}",
    "random": "searcher: {name: random, metric: loss, max_trials: 12, max_concurrent_trials: 4}",
}
CONFIG = """
name: {name}
entrypoint: python3 job.py
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
{searcher}
reproducibility: {{experiment_seed: 7}}
max_restarts: 0
environment: {{environment_variables: ["JOB_DIR={root}", "EPOCH_S={epoch_s}"]}}
"""


class Supervised(Cluster):
    def searches(self, **epoch_s):
        """Submits both searches. Returns their ids by name."""
        _, job = self.prepare(TRIALS, 0)
        ids = {}
        for name, searcher in SEARCHES.items():
            config = self.root / f"{name}.yaml"
            config.write_text(CONFIG.format(name=name, searcher=searcher, root=self.root, epoch_s=epoch_s.get(name, 0)))
            ids[name] = self.json("experiment", "create", str(config), job)["id"]
        return ids

    def actors(self):
        """The names of the live actors by kind. Empty while the desk is made again."""
        found = collections.defaultdict(list)
        status, got = self.call("/troupe/v1/shell/ps?window=0")
        for row in got["rows"] if status == 200 else []:
            found[row["actor"].split("/")[0]].append(row["actor"])
        return found

    def restarts(self, actor):
        return next(row["restarts"] for row in self.call("/troupe/v1/shell/ps?window=0")[1]["rows"] if row["actor"] == actor)

    def decisions(self, experiment):
        """The decisions of the search: hyperparameters by the key of the trial, and which trials it stopped, where and why."""
        created, stopped, keys = {}, {}, {}
        for fact in self.facts("search_stepped"):
            if fact["entity"] != f"experiment/{experiment}":
                continue
            for one in fact["created"]:
                keys[one["trial"]] = one["key"]
                created[one["key"]] = (json.dumps(one["hparams"], sort_keys=True), one["seed"])
            for one in fact["stopped"]:
                stopped[keys[one["trial"]]] = (one["why"], one["rung"], one["units"], one["metric"])
        return created, stopped

    def ended(self, ids):
        return all(self.state(one) in ("COMPLETED", "ERROR", "CANCELED") for one in ids.values())


@pytest.fixture
def cluster(tmp_path):
    one = Supervised(tmp_path)
    yield one
    one.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    one = Supervised(tmp_path_factory.mktemp("undisturbed"))
    try:
        one.up(SLOTS)
        ids = one.searches()
        for experiment in ids.values():
            assert one.wait_end(experiment, 180) == "COMPLETED"
        return {name: one.decisions(experiment) for name, experiment in ids.items()}
    finally:
        one.close()


def kill_one(cluster, kind, chance, killed):
    """Kills a random actor of this kind and returns its name. Returns None where none lives, or where each has died often lately."""
    lately = collections.Counter(actor for at, actor in killed if time.monotonic() - at < 61)
    names = sorted(name for name in wait_for(cluster.actors, 20)[kind] if lately[name] < 5 or kind in ("inspector", "desk"))
    if not names:
        return None
    actor = chance.choice(names)
    status, _ = cluster.call("/troupe/v1/shell/kill", {"actor": actor})
    return actor if status == 200 else None  # A trial may have ended meanwhile.


def test_a_search_under_the_kill_of_every_kind_of_actor_decides_as_undisturbed(cluster, undisturbed):
    seed = int(os.environ.get("TROUPE_TEST_SEED", random.randrange(1 << 30)))
    print("seed", seed)
    chance = random.Random(seed)
    cluster.up(SLOTS)
    ids = cluster.searches(asha=0.4, random=2)  # The second search must not end before the last kill, on a slow host either.
    killed, turn = [], 0
    while len(killed) < KILLS:
        assert not cluster.ended(ids), f"the searches were over after {len(killed)} kills: {killed}"
        kind = KINDS[turn % len(KINDS)]
        turn += 1
        if not (actor := kill_one(cluster, kind, chance, killed)):
            continue
        killed.append((time.monotonic(), actor))
        said = len(cluster.acks())
        # The next kill comes when a script has had an acknowledgement again.
        wait_for(lambda: len(cluster.acks()) > said or cluster.ended(ids), 60, what=lambda: (actor, killed))
    assert {actor.split("/")[0] for _, actor in killed} == set(KINDS)
    cluster.hurry()

    for experiment in ids.values():
        assert cluster.wait_end(experiment, 300) == "COMPLETED"
    for name, experiment in ids.items():
        assert cluster.decisions(experiment) == undisturbed[name], name
    rows = [row for experiment in ids.values() for row in cluster.trials(experiment)]
    assert len(rows) == TRIALS + 12 and all(row["restarts"] == 0 for row in rows), rows
    check_nothing_is_lost(cluster, ids, rows)
    starts = collections.Counter((a["trial"], a["run"]) for a in cluster.acks() if a["kind"] == "start")
    assert set(starts.values()) == {1}, "a run was started twice"
    assert not list(cluster.root.glob("double-*")), "a trial ran twice at once"
    wait_for(lambda: cluster.json("status")["slots"]["used"] == 0, 20, what=lambda: cluster.json("agent", "list"))


def check_nothing_is_lost(cluster, ids, rows):
    """Checks that every report and checkpoint is stored that a script was told is durable."""
    stored = {row["id"]: {m["totalBatches"] for m in cluster.json("trial", "metrics", str(row["id"])) if m["group"] == "validation"}
              for row in rows}
    saved = {(c["trialId"], c["totalBatches"]) for one in ids.values() for c in cluster.checkpoints(one)}
    for ack in cluster.acks():
        if ack["kind"] == "validated":
            assert ack["epoch"] in stored[ack["trial"]], ack
        elif ack["kind"] == "saved":
            assert (ack["trial"], ack["epoch"]) in saved, ack


def test_restart_in_the_shell_ends_with_0_and_ps_counts_it(cluster):
    cluster.up(SLOTS)
    cluster.hold()
    experiment = cluster.submit(8, 0.05)
    wait_for(lambda: any(a["kind"] == "validated" for a in cluster.acks()), 60)
    agent = cluster.actors()["agent"][0]
    for actor in (f"searcher/{experiment}", "pool/default", agent, "retention"):
        done = cluster.cli("shell", "-e", ":rw", "-e", f"restart {actor}")
        assert "is back" in done.stdout, (actor, done.stdout)
        assert cluster.restarts(actor) == 1, actor
    listed = cluster.cli("shell", "-e", f"ps kind=searcher").stdout.splitlines()
    heads = next(line for line in listed if "RESTARTS" in line)
    row = next(line for line in listed if f"searcher/{experiment}" in line)
    end = heads.index("RESTARTS") + len("RESTARTS")
    assert row[:end].split()[-1] == "1", listed
    cluster.go_on()
    assert cluster.wait_end(experiment) == "COMPLETED"
    assert len(cluster.check_books(experiment, 8)) == 8
    assert all(row["restarts"] == 0 for row in cluster.trials(experiment))


def test_a_task_that_is_not_a_trial_continues_where_its_actor_dies(cluster):
    cluster.up(SLOTS)
    done = cluster.cli("command", "run", "--detach", "--", "sleep 1000")
    task = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", done.stdout)[0]
    wait_for(lambda: cluster.json("task", "describe", task)["state"] == "ACTIVE" and f"allocation/{task}.1" in cluster.actors()["allocation"], 30)
    for actor, owner in ((f"allocation/{task}.1", f"task/{task}"), (f"task/{task}", "cluster")):
        done = cluster.cli("shell", "-e", ":rw", "-e", f"restart {actor}")
        assert f"{actor} is back, made again by {owner}" in done.stdout, done.stdout
    shown = cluster.json("task", "describe", task)
    assert (shown["state"], shown["runs"]) == ("ACTIVE", 1), shown
    cluster.cli("task", "kill", task)
    wait_for(lambda: cluster.json("task", "describe", task)["state"] == "CANCELED", 30)


def test_the_actors_of_the_cluster_file_count_from_the_start(cluster):
    file = cluster.root / "cluster.yaml"
    file.write_text("troupe: 1\nactors: {log_level: debug, scheduler_threads: 2}\n")
    cluster.up_words = ["--file", str(file)]
    cluster.up(1)
    assert cluster.cli("shell", "-e", "log").stdout.strip() == "debug"
    cluster.cli("shell", "-e", ":rw", "-e", "restart pool/default")
    log = cluster.root / "up.log"
    wait_for(lambda: "supervision pool/default died" in log.read_text(), 30, what=log.read_text)
    assert cluster.cli("experiment", "list").returncode == 0
