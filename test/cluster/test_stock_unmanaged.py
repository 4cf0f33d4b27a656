"""Unmanaged experiments: processes outside of the cluster that report by the unmodified Core API v2 (`determined.experimental.core_v2`),
also through `kill -9` of the master. And what nobody may do to the trials of others with these calls."""

import concurrent.futures
import json
import os
import subprocess
import sys
import textwrap

import pytest
from determined.common import api
from determined.common.api import bindings as b, errors

from cluster_under_test import free_port, go_on, wait_for
from test_stock_client import Stock

SCRIPT = textwrap.dedent("""
    import json, os, sys, time
    from determined.experimental import core_v2
    said = json.loads(sys.argv[1])
    core_v2.init(config=core_v2.Config(
        name="outside", hparams={"lr": said.get("lr", 0.1)}, labels=["mine"],
        searcher={"name": "single", "metric": "loss", "smaller_is_better": True},
        checkpoint_storage=said["storage"],
        external_experiment_id=said.get("experiment"), external_trial_id=said.get("trial")))
    first = 0
    if core_v2.info.latest_checkpoint:
        with core_v2.checkpoint.restore_path(core_v2.info.latest_checkpoint) as path:
            first = json.loads((path / "state.json").read_text())["step"]
    print(f"began at {first}, run {core_v2.info._trial_info._trial_run_id}", flush=True)
    for step in range(first + 1, said["steps"] + 1):
        core_v2.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        if step % 5 == 0:
            core_v2.train.report_validation_metrics(steps_completed=step, metrics={"loss": 1 / step})
            with core_v2.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
                (path / "state.json").write_text(json.dumps({"step": step}))
        until = time.monotonic() + 600
        while step == said.get("gate_at") and not os.path.exists("go-" + said["experiment"]):
            assert time.monotonic() < until, "waited in vain"
            time.sleep(0.05)
        time.sleep(said.get("pause", 0))
    core_v2.train.report_progress(0.5)
    if said.get("fails"):
        raise ValueError("as asked")
    core_v2.close()
""")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Stock(tmp_path_factory.mktemp("unmanaged")) as cluster:
        cluster.listen = f"127.0.0.1:{free_port()}"
        cluster.up(slots=1)
        (cluster.root / "outside.py").write_text(SCRIPT)
        yield cluster


@pytest.fixture()
def user(cluster):
    stranger = api.UnauthSession(cluster.url(), cert=None)
    login = b.post_Login(stranger, body=b.v1LoginRequest(username="determined", password="", isHashed=True))
    return api.Session(cluster.url(), "determined", login.token, None)


def begin(cluster, **said):
    said.setdefault("storage", str(cluster.root / "elsewhere"))
    said.setdefault("steps", 10)
    env = {**os.environ, "DET_MASTER": cluster.url(), "DET_USER": "determined", "DET_PASS": "", "HOME": str(cluster.root)}
    return subprocess.Popen([sys.executable, "outside.py", json.dumps(said)], cwd=cluster.root, env=env, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def ended(process, code=0):
    said, _ = process.communicate(timeout=300)
    assert process.returncode == code, said
    return said


def only_trial(user, experiment):
    trials = b.get_GetExperimentTrials(user, experimentId=experiment).trials
    assert len(trials) == 1
    return b.get_GetTrial(user, trialId=trials[0].id).trial


def newest(user):
    return max(b.get_GetExperiments(user).experiments, key=lambda e: e.id)


def test_a_process_outside_reports_as_a_trial_does(cluster, user):
    said = ended(begin(cluster, lr=0.3))
    assert "began at 0, run 1" in said
    shown = newest(user)
    assert (shown.name, shown.unmanaged, shown.state, shown.numTrials) == ("outside", True, b.experimentv1State.COMPLETED, 1)
    assert list(shown.labels) == ["mine"] and shown.endTime and shown.externalExperimentId is None
    trial = only_trial(user, shown.id)
    assert (trial.state, trial.hparams, trial.totalBatchesProcessed) == (b.trialv1State.COMPLETED, {"lr": 0.3}, 10)
    assert shown.bestTrialId == trial.id and abs(shown.bestTrialSearcherMetric - 0.1) < 1e-9
    assert abs(trial.summaryMetrics["validation_metrics"]["loss"]["min"] - 0.1) < 1e-9
    checkpoints = b.get_GetTrialCheckpoints(user, id=trial.id).checkpoints
    assert len(checkpoints) == 2 and all(c.state == b.checkpointv1State.COMPLETED for c in checkpoints)
    for one in checkpoints:
        assert (cluster.root / "elsewhere" / one.uuid / "state.json").exists(), "retention has no part in it"
    wait_for(lambda: any("began at 0, run 1" in line.log for line in b.get_TaskLogs(user, taskId=trial.taskId)), 10)
    assert "outside" in cluster.det("experiment", "describe", str(shown.id))
    assert str(trial.id) in cluster.det("experiment", "list-trials", str(shown.id))


def test_it_takes_no_slot_and_is_in_no_queue(cluster, user):
    process = begin(cluster, gate_at=1, experiment="slotless")
    wait_for(lambda: newest(user).externalExperimentId == "slotless" and newest(user).state == b.experimentv1State.RUNNING, 30)
    assert not cluster.call("/troupe/v1/queue")[1]["waiting"]
    agents = b.get_GetAgents(user).agents
    assert all(slot.container is None for agent in agents for slot in (agent.slots or {}).values())
    go_on(cluster.root / "go-slotless")
    ended(process)


def test_a_failure_is_an_error_and_both_names_find_it_again(cluster, user):
    ended(begin(cluster, steps=5, experiment="nightly", trial="a b", fails=True), code=1)
    shown = newest(user)
    assert (shown.externalExperimentId, shown.state) == ("nightly", b.experimentv1State.ERROR)
    failed = only_trial(user, shown.id)
    assert failed.state == b.trialv1State.ERROR
    found = b.get_GetTrialByExternalID(user, externalExperimentId="nightly", externalTrialId="a b").trial
    assert found.id == failed.id
    with pytest.raises(errors.NotFoundException):
        b.get_GetTrialByExternalID(user, externalExperimentId="nightly", externalTrialId="other")
    said = ended(begin(cluster, steps=15, experiment="nightly", trial="a b"))
    assert "began at 5, run 2" in said
    assert newest(user).id == shown.id and newest(user).state == b.experimentv1State.COMPLETED
    trial = only_trial(user, shown.id)
    assert (trial.id, trial.state, trial.totalBatchesProcessed) == (failed.id, b.trialv1State.COMPLETED, 15)
    child = {"kind": "field", "columnName": "externalTrialId", "location": "LOCATION_TYPE_EXPERIMENT", "operator": "=", "type": "COLUMN_TYPE_TEXT", "value": "a b"}
    filters = {"filterGroup": {"kind": "group", "conjunction": "and", "children": [child]}, "showArchived": False}
    rows = user.post("/api/v1/experiments-search", json={"filter": json.dumps(filters)}).json()["experiments"]
    assert [(r["experiment"]["id"], r["experiment"]["externalTrialId"], r["bestTrial"]["id"]) for r in rows] == [(shown.id, "a b", trial.id)]
    # Another trial of the same experiment decides the state of the experiment.
    ended(begin(cluster, steps=1, experiment="nightly", trial="second"))
    assert len(b.get_GetExperimentTrials(user, experimentId=shown.id).trials) == 2


def test_processes_that_begin_at_once_find_one_experiment(cluster, user):
    config = 'name: race\nsearcher: {name: custom, metric: loss}\nentrypoint: ""\n'
    body = b.v1CreateExperimentRequest(config=config, unmanaged=True, projectId=1)
    with concurrent.futures.ThreadPoolExecutor(8) as processes:
        for turn in range(10):
            puts = [processes.submit(b.put_PutExperiment, user, body=body, externalExperimentId=f"race {turn}") for _ in range(8)]
            assert len({one.result().experiment.id for one in puts}) == 1


def test_it_survives_the_master(cluster, user):
    process = begin(cluster, steps=60, gate_at=6, pause=0.1, experiment="survivor", trial="t")
    wait_for(lambda: newest(user).externalExperimentId == "survivor" and newest(user).numTrials == 1, 30)
    experiment = newest(user).id
    wait_for(lambda: (only_trial(user, experiment).totalBatchesProcessed or 0) >= 6, 90)
    cluster.kill_node()
    go_on(cluster.root / "go-survivor")
    cluster.up(slots=1)  # The script reports meanwhile.
    ended(process)
    trial = only_trial(user, experiment)
    assert (trial.state, trial.totalBatchesProcessed) == (b.trialv1State.COMPLETED, 60)
    rows = b.get_GetTrainingMetrics(user, trialIds=[trial.id])
    steps = [one.totalBatches for part in rows for one in part.metrics]
    assert steps == sorted(set(steps)) and steps[-1] == 60, "nothing twice"
    assert newest(user).bestTrialSearcherMetric == pytest.approx(1 / 60)


def test_kill_ends_it_and_its_process_harms_nobody(cluster, user):
    process = begin(cluster, gate_at=1, experiment="doomed", trial="t")
    wait_for(lambda: newest(user).externalExperimentId == "doomed" and newest(user).state == b.experimentv1State.RUNNING, 30)
    experiment = newest(user).id
    cluster.det("experiment", "kill", str(experiment))
    wait_for(lambda: only_trial(user, experiment).state == b.trialv1State.CANCELED, what=lambda: only_trial(user, experiment).state)
    process.kill()
    process.communicate(timeout=120)
    trial = only_trial(user, experiment).id
    b.patch_PatchTrial(user, trialId=trial, body=b.v1PatchTrialRequest(trialId=trial, state=b.trialv1State.COMPLETED))
    assert only_trial(user, experiment).state == b.trialv1State.CANCELED
    with pytest.raises(errors.APIException, match="unmanaged"):
        experiment_2 = b.put_PutExperiment(user, externalExperimentId="paused", body=b.v1CreateExperimentRequest(
            config=json.dumps({"name": "p", "searcher": {"name": "single", "metric": "x"}}), unmanaged=True)).experiment
        assert experiment_2.state == b.experimentv1State.PAUSED
        b.post_ActivateExperiment(user, id=experiment_2.id)
    with pytest.raises(errors.APIException, match="terminal state"):
        b.post_ArchiveExperiment(user, id=experiment_2.id)
    place = user.post("/api/v1/workspaces", json={"name": "closed"}).json()["workspace"]["id"]
    project = user.post(f"/api/v1/workspaces/{place}/projects", json={"name": "p"}).json()["project"]["id"]
    user.post(f"/api/v1/experiments/{experiment_2.id}/move", json={"experimentId": experiment_2.id, "destinationProjectId": project})
    new = b.v1CreateTrialRequest(experimentId=experiment_2.id, unmanaged=True, hparams={})
    started = b.post_CreateTrial(user, body=new).trial.id
    b.post_StartTrial(user, trialId=started, body=b.v1StartTrialRequest(trialId=started, resume=False))
    for path in (f"workspaces/{place}", f"projects/{project}"):
        user.post(f"/api/v1/{path}/archive")
        for order in (lambda: b.post_CreateTrial(user, body=new), lambda: b.post_StartTrial(user, trialId=started, body=b.v1StartTrialRequest(trialId=started, resume=True))):
            with pytest.raises(errors.APIException, match="archived"):
                order()
        user.post(f"/api/v1/{path}/unarchive")
    b.post_StartTrial(user, trialId=started, body=b.v1StartTrialRequest(trialId=started, resume=True))
    b.post_KillExperiment(user, id=experiment_2.id)
    b.post_ArchiveExperiment(user, id=experiment_2.id)
    assert b.get_GetExperiment(user, experimentId=experiment_2.id).experiment.archived
    cluster.det("experiment", "delete", "--yes", str(experiment))
    wait_for(lambda: all(e.id != experiment for e in b.get_GetExperiments(user).experiments), 30)


def test_bad_input_is_refused_with_its_place(cluster, user):
    managed, _ = cluster.create(name="managed", hparams="{steps: 3, exit: 0}")
    cluster.wait(managed)
    trial = cluster.trial_of(managed)
    config = json.dumps({"name": "p", "searcher": {"name": "single", "metric": "x"}})

    def refused(match, call, *words, **more):
        with pytest.raises((errors.APIException, errors.ForbiddenException), match=match):
            call(user, *words, **more)

    refused("trials can only be created on unmanaged experiments", b.post_CreateTrial,
            body=b.v1CreateTrialRequest(experimentId=managed, hparams={}, unmanaged=True))
    refused("unmanaged", b.post_CreateTrial, body=b.v1CreateTrialRequest(experimentId=managed, hparams={}))
    refused("can't fork into an unmanaged experiment", b.post_CreateExperiment,
            body=b.v1CreateExperimentRequest(config=config, unmanaged=True, parentId=managed))
    b.post_CreateExperiment(user, body=b.v1CreateExperimentRequest(config="searcher: {name: custom, metric: loss}\n", unmanaged=True, validateOnly=True))
    refused("entrypoint", b.post_CreateExperiment, body=b.v1CreateExperimentRequest(config="searcher: {name: single, metric: loss}\n", validateOnly=True))
    refused("unmanaged", b.put_PutExperiment, externalExperimentId="m", body=b.v1CreateExperimentRequest(config=config))
    refused("access denied", b.post_StartTrial, trialId=trial, body=b.v1StartTrialRequest(trialId=trial))
    refused("access denied", b.patch_PatchTrial, trialId=trial, body=b.v1PatchTrialRequest(trialId=trial, state=b.trialv1State.COMPLETED))
    refused("access denied", b.post_ReportTrialMetrics, metrics_trialId=trial, body=b.v1ReportTrialMetricsRequest(
        group="validation", metrics=b.v1TrialMetrics(trialId=trial, trialRunId=1, metrics=b.v1Metrics(avgMetrics={"loss": 0}))))
    task = b.get_GetTrial(user, trialId=trial).trial.taskId
    with pytest.raises(errors.ForbiddenException):
        user.post("task-logs", json=[{"task_id": task, "log": "forged\n", "timestamp": "2026-01-01T00:00:00+00:00"}])
    assert not any("forged" in line.log for line in b.get_TaskLogs(user, taskId=task))
    checkpoint = b.v1Checkpoint(taskId=task, allocationId=task, uuid="0" * 8, metadata={"steps_completed": 1}, resources={}, training=b.v1CheckpointTrainingMetadata(),
                                reportTime="2026-01-01T00:00:00Z", state=b.checkpointv1State.COMPLETED)
    refused("access denied", b.post_ReportCheckpoint, body=checkpoint)
    outside = b.post_CreateExperiment(user, body=b.v1CreateExperimentRequest(config=config, unmanaged=True)).experiment.id
    mine = b.post_CreateTrial(user, body=b.v1CreateTrialRequest(experimentId=outside, hparams={"a": 1}, unmanaged=True)).trial
    refused("has no open run", b.post_ReportTrialMetrics, metrics_trialId=mine.id, body=b.v1ReportTrialMetricsRequest(
        group="validation", metrics=b.v1TrialMetrics(trialId=mine.id, trialRunId=1, metrics=b.v1Metrics(avgMetrics={"loss": 0}))))
    started = b.post_StartTrial(user, trialId=mine.id, body=b.v1StartTrialRequest(trialId=mine.id))
    assert (started.trialRunId, started.stepsCompleted, started.latestCheckpoint) == (1, 0, None)
    refused("trial has already been started", b.post_StartTrial, trialId=mine.id, body=b.v1StartTrialRequest(trialId=mine.id))
    refused("invalid run id", b.post_ReportTrialMetrics, metrics_trialId=mine.id, body=b.v1ReportTrialMetricsRequest(
        group="validation", metrics=b.v1TrialMetrics(trialId=mine.id, trialRunId=7, metrics=b.v1Metrics(avgMetrics={"loss": 0}))))
    refused("state", user_patch_of(mine.id), "STATE_PAUSED")


def test_a_process_that_goes_on_without_a_checkpoint_keeps_its_curve(cluster, user):
    config = json.dumps({"name": "curve", "searcher": {"name": "single", "metric": "loss"}})
    outside = b.post_CreateExperiment(user, body=b.v1CreateExperimentRequest(config=config, unmanaged=True)).experiment.id
    trial = b.post_CreateTrial(user, body=b.v1CreateTrialRequest(experimentId=outside, hparams={}, unmanaged=True)).trial.id

    def run(number, *steps):
        b.post_StartTrial(user, trialId=trial, body=b.v1StartTrialRequest(trialId=trial, resume=number > 1))
        for step in steps:
            b.post_ReportTrialMetrics(user, metrics_trialId=trial, body=b.v1ReportTrialMetricsRequest(group="validation", metrics=b.v1TrialMetrics(
                trialId=trial, trialRunId=number, stepsCompleted=step, metrics=b.v1Metrics(avgMetrics={"loss": 1 / step}))))

    def told():
        steps = [one.totalBatches for part in b.get_GetValidationMetrics(user, trialIds=[trial]) for one in part.metrics]
        patched = user.patch(f"api/v1/trials/{trial}", json={"trialId": trial}).json()["trial"]
        assert patched["summaryMetrics"]["validation_metrics"]["loss"]["count"] == len(steps)
        return steps, (patched["bestValidation"] or {}).get("totalBatches"), patched["totalBatchesProcessed"]

    run(1, 1, 2, 3)
    run(2)
    wait_for(lambda: told() == ([1, 2, 3], 3, 3), 30, what=told)
    for step in (4, 5):
        b.post_ReportTrialMetrics(user, metrics_trialId=trial, body=b.v1ReportTrialMetricsRequest(group="validation", metrics=b.v1TrialMetrics(
            trialId=trial, trialRunId=2, stepsCompleted=step, metrics=b.v1Metrics(avgMetrics={"loss": 1 / step}))))
    wait_for(lambda: told() == ([1, 2, 3, 4, 5], 5, 5), 30, what=told)
    run(3, 2)  # It begins again below.
    wait_for(lambda: told() == ([1, 2], 2, 2), 30, what=told)


def user_patch_of(trial):
    return lambda session, state: session.patch(f"api/v1/trials/{trial}", json={"trialId": trial, "state": state})


def test_samples_of_the_profiler_in_their_older_form(cluster, user):
    config = json.dumps({"name": "p", "searcher": {"name": "single", "metric": "x"}})
    outside = b.post_CreateExperiment(user, body=b.v1CreateExperimentRequest(config=config, unmanaged=True)).experiment.id
    trial = b.post_CreateTrial(user, body=b.v1CreateTrialRequest(experimentId=outside, unmanaged=True)).trial.id
    b.post_StartTrial(user, trialId=trial, body=b.v1StartTrialRequest(trialId=trial))
    kinds = b.TrialProfilerMetricLabelsProfilerMetricType

    def batch(name, values):
        return b.v1TrialProfilerMetricsBatch(
            values=values, batches=list(range(len(values))), timestamps=["2026-01-01T00:00:00Z"] * len(values),
            labels=b.v1TrialProfilerMetricLabels(trialId=trial, name=name, agentId="a", metricType=kinds.SYSTEM))

    b.post_PostTrialProfilerMetricsBatch(user, body=b.v1PostTrialProfilerMetricsBatchRequest(batches=[batch("cpu", [1.5, 2.5]), batch("gpu", [3])]))
    b.post_PostTrialProfilerMetricsBatch(user, body=b.v1PostTrialProfilerMetricsBatchRequest(batches=[batch("cpu", [4])]))
    got = [one.batch for one in b.get_GetTrialProfilerMetrics(user, labels_trialId=trial, labels_name="cpu")]
    assert [list(one.values) for one in got] == [[1.5, 2.5], [4]] and all(one.labels.name == "cpu" for one in got)
    names = [sorted(label.name for label in one.labels) for one in b.get_GetTrialProfilerAvailableSeries(user, trialId=trial)]
    assert names[-1] == ["cpu", "gpu"]
    broken = batch("cpu", [1])
    broken.batches = []
    with pytest.raises(errors.APIException, match="one length"):
        b.post_PostTrialProfilerMetricsBatch(user, body=b.v1PostTrialProfilerMetricsBatchRequest(batches=[broken]))
    b.patch_PatchTrial(user, trialId=trial, body=b.v1PatchTrialRequest(trialId=trial, state=b.trialv1State.COMPLETED))
