"""Every searcher to its end on a cluster of real processes, with real Python trials. Also through a killed cluster, and a search that a
process outside decides."""

import json
import time

import pytest

from cluster_under_test import Cluster, wait_for

# A trial of 16 epochs whose loss falls with its own weight w. It saves in every second epoch, and when it is told to stop. While a file
# `hold` exists, it waits behind the fourth epoch. Where a file `in-turn` exists, it reports the fourth epoch when a file `go-` with its
# number exists.
SCRIPT = """
import json, os, select, troupe
p = troupe.params(x=0.5)
w, start, line = 1.0, 0, []
if path := troupe.resume():
    state = json.loads((path / "state.json").read_text())
    w, start, line = state["w"], state["epoch"], state["line"]
line = line + [[int(os.environ["DET_TRIAL_ID"]), p.x, start]]
job = os.environ["JOB_DIR"]
with open(job + "/lines", "a") as f:
    f.write(json.dumps({"trial": int(os.environ["DET_TRIAL_ID"]), "run": int(os.environ["DET_TRIAL_RUN_ID"]), "line": line}) + "\\n")
def save(epoch):
    with troupe.checkpoint(epoch * 10) as path:
        (path / "state.json").write_text(json.dumps({"w": w, "epoch": epoch, "line": line}))
for epoch in range(start + 1, 17):
    w *= 1 - 0.2 * p.x
    loss = float("nan") if p.x > 0.97 else w + (p.x - 0.3) ** 2
    if epoch % 2 == 0:
        save(epoch)
    while epoch == 4 and os.path.exists(job + "/in-turn") and not os.path.exists(job + "/go-" + os.environ["DET_TRIAL_ID"]):
        select.select([], [], [], 0.05)
    troupe.validate({"loss": loss, "size": p.x, "epoch": epoch}, step=epoch * 10)
    while epoch == 4 and os.path.exists(job + "/hold") and not troupe.should_stop():
        select.select([], [], [], 0.05)
    if troupe.should_stop():
        if epoch % 2:
            save(epoch)
        break
"""

CONFIG = """
name: {name}
entrypoint: python3 job.py
hyperparameters: {{x: {{type: double, minval: 0.01, maxval: 1, count: 6}}}}
searcher: {{metric: loss, {searcher}}}
reproducibility: {{experiment_seed: 7}}
max_restarts: 1
environment: {{environment_variables: ["JOB_DIR={root}"]}}
"""

HALVING = "time_metric: epoch, max_time: 16, max_concurrent_trials: 3"
SEARCHERS = {
    "single": ("name: single", 1),
    "random": ("name: random, max_trials: 4, max_concurrent_trials: 2", 4),
    "grid": ("name: grid, max_concurrent_trials: 3", 6),
    "async_halving": (f"name: async_halving, num_rungs: 3, max_trials: 6, {HALVING}", 6),
    "adaptive_asha": (f"name: adaptive_asha, max_trials: 8, {HALVING}", 8),
    "asha_promotion": (f"name: asha_promotion, num_rungs: 3, divisor: 2, max_trials: 8, {HALVING}", 8),
    "sync_halving": (f"name: sync_halving, num_rungs: 3, divisor: 2, max_trials: 8, {HALVING}", 8),
    "hyperband": (f"name: hyperband, divisor: 4, max_trials: 10, {HALVING}", 10),
    "bohb": (f"name: bohb, divisor: 4, max_trials: 10, {HALVING}", 10),
    "tpe": ("name: tpe, startup_trials: 2, max_trials: 5, max_concurrent_trials: 2", 5),
    "gp": ("name: gp, startup_trials: 2, max_trials: 5, max_concurrent_trials: 2", 5),
    "cma_es": ("name: cma_es, max_trials: 6, max_concurrent_trials: 2", 6),
    "median": ("name: median, min_trials: 2, time_metric: epoch, max_trials: 6, max_concurrent_trials: 2", 6),
}
PBT = "name: pbt, population_size: {members}, interval: 4, truncate_fraction: 0.5, time_metric: epoch, max_time: 16"
PAUSING = ("asha_promotion", "sync_halving", "hyperband", "bohb")


class Searching(Cluster):
    def submit_search(self, name, searcher, hold=False):
        folder = self.root / f"job-{name}"
        folder.mkdir()
        if hold:
            (folder / "hold").touch()
            (folder / "in-turn").touch()
        (folder / "job.py").write_text(SCRIPT)
        text = CONFIG.format(name=name, searcher=searcher, root=folder)
        if "metrics:" in searcher:
            text = text.replace("metric: loss, ", "")
        (folder / "job.yaml").write_text(text)
        return self.json("experiment", "create", str(folder / "job.yaml"), str(folder))["id"]

    def lines(self, name):
        """What each run of each trial started with: the line of ancestors of its weights."""
        return [json.loads(line) for line in (self.root / f"job-{name}" / "lines").read_text().splitlines()]

    def heard(self, experiment):
        """The events that the search has heard, from the events route."""
        return self.call(f"/troupe/v1/experiments/{experiment}/searcher/events")[1]["events"]


@pytest.fixture
def cluster(tmp_path):
    with Searching(tmp_path) as one:
        one.up(slots=3)
        yield one


def check_end(cluster, name, experiment, count):
    assert cluster.wait_end(experiment, 240) == "COMPLETED", cluster.cli("experiment", "logs", str(experiment)).stdout[-2000:]
    rows = cluster.trials(experiment)
    assert len(rows) == count, (name, [row["id"] for row in rows])
    assert {row["state"] for row in rows} == {"STATE_COMPLETED"}, name
    return rows


def test_every_searcher_runs_to_its_end(cluster):
    ids = {name: cluster.submit_search(name, searcher) for name, (searcher, _) in SEARCHERS.items()}
    ended = {name: check_end(cluster, name, ids[name], count) for name, (_, count) in SEARCHERS.items()}
    bad = [fact for fact in cluster.facts("run_ended") if fact["why"] not in ("completed", "stopped")]
    assert not bad, [(fact, cluster.cli("trial", "logs", fact["entity"].partition("/")[2]).stdout[-2000:]) for fact in bad]
    for name, rows in ended.items():
        runs = cluster.lines(name)
        again = [run for run in runs if run["run"] > 1]
        if name in PAUSING:
            # A promoted trial continues from its own checkpoint and not from the start. Where promotions do not wait for a whole rung,
            # each may have come with the report itself, so that no trial paused.
            assert again or name == "asha_promotion", name
            for run in again:
                assert [step[0] for step in run["line"]] == [run["trial"]] * len(run["line"]), run
                assert run["line"][-1][2] > 0, run
            assert any("not promoted" in row["why"] or "needed" in row["why"] for row in rows), [row["why"] for row in rows]
        else:
            assert not again, (name, again)
        if name in ("async_halving", "adaptive_asha", "median"):
            assert any("rung" in row["why"] or "median" in row["why"] for row in rows), [row["why"] for row in rows]


def test_a_population_inherits_weights(cluster):
    # A member is compared when it reports, with those that have reported and live. So the worst member reports its fourth epoch last.
    experiment = cluster.submit_search("pbt", PBT.format(members=3), hold=True)
    members = wait_for(lambda: len(rows := cluster.trials(experiment)) == 3 and rows, 60)
    x_of = {row["id"]: row["hparams"]["x"] for row in members}
    *others, worst = sorted(x_of, key=lambda trial: (1 - 0.2 * x_of[trial]) ** 4 + (x_of[trial] - 0.3) ** 2)
    folder = cluster.root / "job-pbt"
    for trial in others:
        (folder / f"go-{trial}").touch()
    wait_for(lambda: {one["trialId"] for one in cluster.heard(experiment) if one["event"] == "validation" and one["steps"] == 40} == set(others), 60)
    (folder / f"go-{worst}").touch()
    wait_for(lambda: any(run["run"] > 1 for run in cluster.lines("pbt")), 60, what=lambda: cluster.heard(experiment))
    (folder / "hold").unlink()
    rows = check_end(cluster, "pbt", experiment, 3)
    again = [run for run in cluster.lines("pbt") if run["run"] > 1]
    inherited = [run for run in again if run["line"][-2][0] != run["trial"]]
    assert inherited, "no trial went on from another one's weights"
    for run in inherited:
        hparams = next(row["hparams"] for row in rows if row["id"] == run["trial"])
        last = [one for one in again if one["trial"] == run["trial"]][-1]
        assert last["line"][-1][1] == hparams["x"], "the list shows the perturbed hyperparameters"


def test_policies_stop_trials_and_say_why(cluster):
    policies = {
        "patience": ("patience: {reports: 2, min_delta: 10}", "patience: no better than"),
        "threshold": ("threshold: {upper: 0.0001}", "threshold: "),
        "maximum": ("max_time: 3", "maximum time: 3 epoch reached"),
        "median": ("median: {min_trials: 1}", "median: best"),
    }
    ids = {name: cluster.submit_search(name, "name: random, max_trials: 5, max_concurrent_trials: 1, "
                                             f"early_stopping: {{time_metric: epoch, {policy}}}")
           for name, (policy, _) in policies.items()}
    for name, (_, reason) in policies.items():
        rows = check_end(cluster, name, ids[name], 5)
        stopped = [row for row in rows if reason in row["why"]]
        assert len(stopped) >= (1 if name == "median" else 5), (name, [row["why"] for row in rows])
        assert reason in cluster.cli("trial", "list", str(ids[name])).stdout
        assert reason in cluster.cli("trial", "describe", str(stopped[0]["id"])).stdout


@pytest.mark.parametrize("aims", ["smaller_is_better: [true, false]", "smaller_is_better_each: [true, false]"])
def test_several_metrics_give_a_front(cluster, aims):
    experiment = cluster.submit_search("nsga2", f"name: nsga2, metrics: [loss, size], population_size: 4, max_trials: 10, max_concurrent_trials: 3, {aims}")
    check_end(cluster, "nsga2", experiment, 10)
    front = cluster.json("experiment", "pareto", str(experiment))
    at = lambda metrics: (metrics["loss"], -metrics["size"])
    points = [at(row["metrics"]) for row in front]
    reported = [row["latestValidation"]["metrics"]["avgMetrics"] for row in cluster.trials(experiment) if row.get("latestValidation")]
    latest = [at(one) for one in reported if not isinstance(one["loss"], str)]  # "NaN" is not a point.
    assert points and len(latest) >= len(points)
    for one in points:  # No trial that reported is better in both metrics.
        assert not any(other != one and other[0] <= one[0] and other[1] <= one[1] for other in latest), (one, latest)


def test_a_search_that_pauses_survives_kill_9(cluster):
    name = "pausing"
    experiment = cluster.submit_search(name, f"name: asha_promotion, num_rungs: 3, divisor: 2, max_trials: 10, {HALVING}")
    other = cluster.submit_search("pbt", PBT.format(members=4))
    for _ in range(3):
        before = len(cluster.heard(experiment)) + len(cluster.heard(other))
        wait_for(lambda: len(cluster.heard(experiment)) + len(cluster.heard(other)) > before + 8
                 or cluster.state(experiment) == cluster.state(other) == "COMPLETED", 60)
        cluster.kill_everything()
        cluster.up(slots=3)
    check_end(cluster, name, experiment, 10)
    check_end(cluster, "pbt", other, 4)
    for run in cluster.lines(name):
        assert {step[0] for step in run["line"]} == {run["trial"]}, run


def test_a_process_outside_drives_a_custom_search(cluster):
    experiment = cluster.submit_search("custom", "name: custom, time_metric: epoch, max_trials: 4")
    (cluster.root / "job-custom" / "hold").touch()
    path = f"/troupe/v1/experiments/{experiment}/searcher"
    seen, last, best, saved = [], 0, {}, {}

    def orders(*actions, upto=None):
        status, said = cluster.call(path + "/orders", {"actions": list(actions), **({} if upto is None else {"upto": upto})})
        assert status == 200, said
        return said["trials"]

    def hear(until):
        nonlocal last
        end = time.monotonic() + 300
        while time.monotonic() < end:
            status, said = cluster.call(path + f"/events?after={last}&wait=5")
            assert status == 200, said
            seen.extend(said["events"])
            last = said["last"]
            for event in said["events"]:
                if event["event"] == "validation":
                    best[event["trial"]] = event["metrics"]["loss"]
                    assert event["steps"] == 10 * event["metrics"]["epoch"]
                if event["event"] == "checkpointed":
                    saved[event["trial"]] = (event["checkpoint"], event["steps"])
            if until():
                return
        raise AssertionError(seen)

    def count(kind, trial):
        return sum(event["event"] == kind and event.get("trial") == trial for event in seen)

    hear(lambda: seen)
    assert seen[0]["event"] == "started"
    made = orders({"create": "a", "hparams": {"x": 0.9}}, {"create": "b", "hparams": {"x": 0.02}}, upto=last)
    assert set(made) == {"a", "b"}
    assert orders({"create": "c", "hparams": {"x": 0.1}}, upto=1) == {}, "answers an event that was answered"
    status, said = cluster.call(path + "/orders", {"actions": [{"create": "c", "hparams": {}}, {"stop": "nobody"}]})
    assert status in (400, 404) and "actions[1]: trial `nobody`" in said["message"], said
    hear(lambda: count("validation", "a") >= 2 and count("checkpointed", "a") and count("validation", "b"))
    # Trial b gets the weights of a, and a pauses.
    early = saved["a"][0]
    orders({"perturb": "b", "source": "a", "checkpoint": early, "hparams": {"x": 0.4}}, {"pause": "a"}, {"progress": 0.5})
    cluster.kill_everything()
    (cluster.root / "job-custom" / "hold").unlink()
    cluster.up(slots=3)
    del cluster.admin_token
    orders({"resume": "a"})
    hear(lambda: count("exited", "a") and count("exited", "b"))
    orders({"create": "d", "hparams": {"x": 0.3}, "source_checkpoint": early})
    hear(lambda: count("validation", "d"))
    orders({"stop": "d", "why": "seen enough"}, {"shutdown": True})
    assert cluster.wait_end(experiment) == "COMPLETED"
    rows = {row["id"]: row for row in cluster.trials(experiment)}
    assert len(rows) == 3
    assert [event["id"] for event in seen] == sorted({event["id"] for event in seen}), "every event once, in order"
    b_runs = [run for run in cluster.lines("custom") if run["trial"] == made["b"]]
    assert [step[:2] for step in b_runs[-1]["line"]][-2:] == [[made["a"], 0.9], [made["b"], 0.4]]
    assert rows[made["b"]]["hparams"] == {"x": 0.4}
    status, said = cluster.call(path + "/orders", {"actions": [{"stop": "a"}]})
    assert status == 400 and "COMPLETED" in said["message"], said
    random = cluster.submit_search("random", "name: random, max_trials: 1")
    status, said = cluster.call(f"/troupe/v1/experiments/{random}/searcher/orders", {"actions": []})
    assert status == 400 and "only `custom` takes orders" in said["message"], said


def test_a_search_of_thousands_of_steps_goes_on_from_its_snapshot(cluster):
    experiment = cluster.submit_search("custom", "name: custom, time_metric: epoch, max_trials: 4")
    (cluster.root / "job-custom" / "hold").touch()
    path = f"/troupe/v1/experiments/{experiment}/searcher"
    status, said = cluster.call(path + "/orders", {"actions": [{"create": "a", "hparams": {"x": 0.5}}]})
    assert status == 200, said
    for step in range(4200):  # Each step is a fact, and the 4,096th causes a snapshot.
        status, said = cluster.call(path + "/orders", {"actions": [{"progress": step / 10000}]})
        assert status == 200, said
    last = cluster.call(path + "/events?after=0&wait=0")[1]["last"]
    assert last > 4200
    cluster.kill_everything()
    (cluster.root / "job-custom" / "hold").unlink()
    cluster.up(slots=3)
    del cluster.admin_token
    status, said = cluster.call(path + "/orders", {"actions": [{"create": "a", "hparams": {"x": 0.5}}, {"create": "b", "hparams": {"x": 0.2}}]})
    assert status == 200 and len(said["trials"]) == 1, said  # Trial a is known already.
    wait_for(lambda: {row["state"] for row in cluster.trials(experiment)} == {"STATE_COMPLETED"}, 60,
             what=lambda: cluster.trials(experiment))
    assert cluster.call(path + "/orders", {"actions": [{"shutdown": True}]})[0] == 200
    assert cluster.wait_end(experiment) == "COMPLETED"
    assert len(cluster.trials(experiment)) == 2
    assert cluster.call(path + f"/events?after={last}&wait=0")[1]["events"][0]["id"] > last
