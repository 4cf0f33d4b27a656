"""Experiments that are continued after their end, by the unmodified `determined` client and by ours, and through `kill -9` of the master."""

import pytest
from determined.common import api
from determined.common.api import bindings as b, errors

from cluster_under_test import wait_for
from test_stock_client import Stock

RANDOM = "{name: random, metric: loss, max_trials: 6, max_concurrent_trials: 2}"
SPACE = "x: {type: int, minval: 1, maxval: 9}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Stock(tmp_path_factory.mktemp("continue")) as cluster:
        cluster.up(slots=2)
        yield cluster


def session(cluster):
    stranger = api.UnauthSession(cluster.url(), cert=None)
    login = b.post_Login(stranger, body=b.v1LoginRequest(username="determined", password="", isHashed=True))
    return api.Session(cluster.url(), "determined", login.token, None)


@pytest.fixture()
def user(cluster):
    return session(cluster)


def went(cluster, trial, what):
    return [one[what] for one in cluster.notes(trial) if what in one]


def state(user, experiment):
    return b.get_GetExperiment(user, experimentId=experiment).experiment.state


def test_a_single_trial_goes_on_from_its_newest_checkpoint(cluster, user):
    experiment, _ = cluster.create(name="longer", hparams="{steps: 10, exit: 3}", restarts=1)
    cluster.wait(experiment, code=1)
    trial = cluster.trial_of(experiment)
    before = b.get_GetTrial(user, trialId=trial).trial
    assert (before.state, before.restarts) == (b.trialv1State.ERROR, 1)
    said = cluster.det("experiment", "continue", str(experiment), "--config", "hyperparameters.steps=20", "--config", "hyperparameters.exit=0",
                       "--config", "hyperparameters.gate_at=11")
    assert f"Continued experiment {experiment}" in said
    shown = b.get_GetExperiment(user, experimentId=experiment).experiment
    assert shown.config["hyperparameters"]["steps"]["val"] == 20, shown.config["hyperparameters"]
    assert shown.endTime is None, "it waits before its eleventh step"
    (cluster.root / f"go-{experiment}").touch()
    assert "steps: 10" in shown.originalConfig and shown.jobId
    cluster.wait(experiment)
    after = b.get_GetTrial(user, trialId=trial).trial
    assert (after.state, after.restarts, after.totalBatchesProcessed) == (b.trialv1State.COMPLETED, 0, 20)
    assert went(cluster, trial, "began") == [0, 10, 10] and went(cluster, trial, "ended")[-1] == 20
    # The trial has two tasks, each with its own allocations, and the logs of both.
    assert list(after.taskIds) == [after.taskId, after.taskId + "-1"]
    first, second = (b.get_GetTask(user, taskId=one).task for one in after.taskIds)
    assert [len(first.allocations), len(second.allocations)] == [2, 1] and first.endTime and second.endTime
    assert all(a.taskId == second.taskId == after.taskIds[1] for a in second.allocations)
    with pytest.raises(errors.NotFoundException):
        b.get_GetTask(user, taskId=after.taskId + "-2")
    logs = cluster.det("trial", "logs", str(trial))
    assert "saved 10" in logs and "saved 20" in logs
    own = [[line.log for line in b.get_TaskLogs(user, taskId=one, follow=True)] for one in after.taskIds]
    assert [("saved 10" in "".join(log), "saved 20" in "".join(log)) for log in own] == [(True, False), (False, True)], own
    assert own[0] + own[1] == [line.log for line in b.get_TrialLogs(user, trialId=trial)]
    assert list(b.get_TaskLogsFields(user, taskId=after.taskIds[0]))[-1].agentIds
    assert logs == cluster.det("experiment", "logs", str(experiment))
    # The trial has completed and is continued once more, by our own client.
    said = cluster.cli("experiment", "continue", str(experiment), "--config", "hyperparameters.steps=25", "--follow", timeout=120).stdout
    assert f"continued experiment {experiment}" in said
    assert went(cluster, trial, "began") == [0, 10, 10, 20] and went(cluster, trial, "ended")[-1] == 25
    assert len(b.get_GetTrial(user, trialId=trial).trial.taskIds) == 3


def test_what_it_is_given_counts_over_what_was_set_before_and_stays(cluster, user):
    experiment, _ = cluster.create(name="named", hparams="{steps: 20, gate_at: 11}", more="description: d0\nlabels: [l0]\n")
    trial = cluster.trial_of(experiment)

    def patch(**what):
        b.patch_PatchExperiment(user, experiment_id=experiment, body=b.v1PatchExperiment(id=experiment, **what))

    def go_on(config):
        def obeyed():
            try:
                return b.post_ContinueExperiment(user, body=b.v1ContinueExperimentRequest(id=experiment, overrideConfig=config))
            except errors.APIException as no:  # The processes of an experiment may end a moment after its state is stored.
                assert "non terminal state" in str(no), str(no)
        wait_for(obeyed)

    def shown():
        return b.get_GetExperiment(user, experimentId=experiment).experiment

    def words():
        one = shown()
        return one.name, one.description, sorted(one.labels)

    def priority():
        return [job["full"]["priority"] for job in cluster.call("/api/v1/job-queues-v2?resourcePool=default")[1]["jobs"] if job["full"]["entityId"] == str(experiment)]

    patch(resources=b.PatchExperimentPatchResources(priority=33))
    wait_for(lambda: priority() == [33], what=priority)
    cluster.det("experiment", "kill", str(experiment))
    wait_for(lambda: state(user, experiment) == b.experimentv1State.CANCELED, 60)
    patch(checkpointStorage=b.PatchExperimentPatchCheckpointStorage(saveTrialBest=3))
    b.put_PutExperimentRetainLogs(user, experimentId=experiment, body=b.v1PutExperimentRetainLogsRequest(experimentId=experiment, numDays=8))
    go_on("""
name: n1
description: d1
labels: [l1]
resources: {priority: 55}
checkpoint_storage: {save_trial_best: 5}
retention_policy: {log_retention_days: 3}
""")
    wait_for(lambda: priority() == [55], what=priority)
    assert words() == ("n1", "d1", ["l0", "l1"])
    (cluster.root / f"go-{experiment}").touch()
    cluster.wait(experiment)
    assert b.get_GetTrialRemainingLogRetentionDays(user, id=trial).remainingDays == 3
    patch(notes="x")
    cluster.det("experiment", "archive", str(experiment))
    cluster.det("experiment", "unarchive", str(experiment))
    assert words() == ("n1", "d1", ["l0", "l1"])
    assert shown().config["checkpoint_storage"]["save_trial_best"] == 5
    patch(name="patched")
    go_on("description: d2\nhyperparameters: {steps: 25}")
    cluster.wait(experiment)
    assert words() == ("patched", "d2", ["l0", "l1"]), "the override does not name it"
    go_on("name: n1\nhyperparameters: {steps: 30}")
    cluster.wait(experiment)
    assert words()[0] == "n1", "the configuration said this name before"


def test_what_cannot_be_continued_says_why(cluster, user):
    adaptive, _ = cluster.create(name="adaptive", hparams=f"{{steps: 5, {SPACE}}}",
                                 searcher="{name: adaptive_asha, metric: loss, time_metric: epoch, max_time: 1, max_trials: 2}")
    cluster.wait(adaptive)
    done, _ = cluster.create(name="done", hparams=f"{{steps: 5, {SPACE}}}", searcher="{name: random, metric: loss, max_trials: 2}")
    cluster.wait(done)
    running, _ = cluster.create(name="running", hparams="{steps: 5, hold_at: 5}")
    single, _ = cluster.create(name="one", hparams="{steps: 5}")
    cluster.wait(single)
    for experiment, config, text in [
            (adaptive, "", "Unsupported searcher type provided"),
            (done, "", "experiment has been completed, cannot continue this experiment"),
            (done, "max_restarts: 3", "override config is provided and experiment is not single searcher"),
            (running, "", "experiment in non terminal state 'ACTIVE', try again later"),
            (single, "workspace: other", "'workspace' in override config cannot be specified"),
            (single, "project: other", "'project' in override config cannot be specified"),
            (single, "searcher: {name: random, metric: loss, max_trials: 2}", "override config must have single searcher type got 'random' instead"),
            (single, "max_restarts: -3", "max_restarts"), (single, "nonsense_key: 1", "nonsense_key"), (single, "{", "override config:"),
            (single, "log_policies: [{pattern: '(', action: cancel_retries}]", "is not a regular expression"),
            (999, "", "experiment '999' not found")]:
        try:
            b.post_ContinueExperiment(user, body=b.v1ContinueExperimentRequest(id=experiment, overrideConfig=config))
            pytest.fail(f"not refused: {text}")
        except errors.APIException as no:
            caught = no
        assert text in str(caught) and caught.status_code in (400, 404), (text, str(caught))
    cluster.det("experiment", "archive", str(single))
    with pytest.raises(errors.APIException, match=f"experiment {single} is archived") as no:
        b.post_ContinueExperiment(user, body=b.v1ContinueExperimentRequest(id=single, overrideConfig=""))
    assert no.value.status_code == 400
    assert state(user, single) == b.experimentv1State.COMPLETED and len(cluster.trials(single)) == 1
    cluster.det("experiment", "kill", str(running))


def test_event_files_in_a_former_storage_go_with_the_experiment(cluster, user, tmp_path):
    experiment, _ = cluster.create(name="moves", hparams="{steps: 5}")
    cluster.wait(experiment)
    saved = b.get_GetTrialCheckpoints(user, id=cluster.trial_of(experiment)).checkpoints[0].uuid
    store = next(cluster.data.rglob(saved)).parent
    boards = store / b.get_GetMaster(user).clusterId / "tensorboard" / "experiment" / str(experiment)
    boards.mkdir(parents=True, exist_ok=True)
    (boards / "events.out.tfevents.1").write_text("x")
    cluster.det("experiment", "continue", str(experiment), "--config", "hyperparameters.steps=8", "--config", "checkpoint_storage.type=shared_fs",
                "--config", f"checkpoint_storage.host_path={tmp_path}")
    cluster.wait(experiment, code=1)  # Its script looks in the other place for the checkpoint that it goes on from.
    assert boards.is_dir()
    b.delete_DeleteExperiment(user, experimentId=experiment)
    wait_for(lambda: not boards.exists(), 60)


def test_a_killed_search_runs_what_did_not_complete_then_the_rest(cluster, user):
    experiment, _ = cluster.create(name="search", hparams=f"{{steps: 30, gate_at: 11, {SPACE}}}", searcher=RANDOM)
    wait_for(lambda: sum(went(cluster, t["id"], "saved") == [5, 10] for t in cluster.trials(experiment)) == 2, 60)
    cluster.det("experiment", "kill", str(experiment))
    (cluster.root / f"go-{experiment}").touch()
    wait_for(lambda: state(user, experiment) == b.experimentv1State.CANCELED, 60)
    killed = {t["id"]: t["state"] for t in cluster.trials(experiment)}
    assert "STATE_CANCELED" in killed.values()
    b.post_ContinueExperiment(user, body=b.v1ContinueExperimentRequest(id=experiment, overrideConfig=""))
    cluster.wait(experiment)
    after = cluster.trials(experiment)
    assert len(after) == 6 and {t["state"] for t in after} == {"STATE_COMPLETED"}, after
    for trial, was in killed.items():
        began = went(cluster, trial, "began")
        if was == "STATE_CANCELED":
            saved = [s for s in went(cluster, trial, "saved") if s < 30]
            # At the gate, step 11, a trial that is to stop saves too, and may be killed before it notes that.
            assert len(began) <= 2 and began[-1] in [0, 11] + saved, (trial, began)
        else:
            assert len(began) == 1, "what had completed is left as it is"
    assert state(user, experiment) == b.experimentv1State.COMPLETED


def test_a_continuation_survives_kill_9_of_the_master(cluster, user):
    """The master is killed right after the answer, while the order is carried out, and again while the trials run."""
    experiment, _ = cluster.create(name="fallen", hparams=f"{{steps: 10, exit: 3, {SPACE}}}", searcher=RANDOM)
    cluster.wait(experiment, code=1)
    before = {t["id"]: len(went(cluster, t["id"], "began")) for t in cluster.trials(experiment)}
    assert len(before) == 6
    b.post_ContinueExperiment(user, body=b.v1ContinueExperimentRequest(id=experiment, overrideConfig=""))
    cluster.kill_node()
    cluster.up(slots=2)
    user = session(cluster)
    assert state(user, experiment) != b.experimentv1State.ERROR, "continued is what it was told, and so it is"
    wait_for(lambda: sum(len(went(cluster, t, "began")) for t in before) > 6, 60)
    cluster.kill_node()
    cluster.up(slots=2)
    cluster.wait(experiment, code=1)
    after = cluster.trials(experiment)
    assert len(after) == 6 and {t["state"] for t in after} == {"STATE_ERROR"}
    for trial in before:
        assert went(cluster, trial, "began")[0] == 0 and 10 in went(cluster, trial, "began")[1:], went(cluster, trial, "began")
