"""Every endpoint that the stock client needs first, on a real cluster through the `bindings` of the wheel: its classes make the request,
and its classes read the answer, with all fields that they require."""

import base64
import io
import tarfile

import pytest
from determined.common import api
from determined.common.api import bindings as b, errors

from cluster_under_test import wait_for
from test_task_routes import ByHand, Task


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with ByHand(tmp_path_factory.mktemp("endpoints")) as cluster:
        cluster.start()
        yield cluster


@pytest.fixture(scope="module")
def user(cluster):
    stranger = api.UnauthSession(cluster.url(), cert=None)
    assert b.get_GetMaster(stranger).version == "0.38.1"
    assert stranger.get("info").json()["version"] == "0.38.1"
    login = b.post_Login(stranger, body=b.v1LoginRequest(username="determined", password="", isHashed=True))
    assert login.user.username == "determined" and login.user.id
    return api.Session(cluster.url(), "determined", login.token, None)


def session_of(cluster, task):
    token = task.api.headers["Grpc-Metadata-x-allocation-token"].removeprefix("Bearer ")
    return api.TaskSession(cluster.url(), "determined", token, None)


def test_every_endpoint_of_the_first_tiers(cluster, user):
    task = Task(cluster, 1, 1)
    mine = session_of(cluster, task)
    assert b.get_GetMe(user).user.username == b.get_GetMe(mine).user.username == "determined"
    # The calls of a task, in the task's order.
    files = base64.b64decode(b.get_GetTaskContextDirectory(mine, taskId=task.task).b64Tgz)
    assert "job.sh" in tarfile.open(fileobj=io.BytesIO(files)).getnames()
    about = b.v1AcceleratorData(allocationId=task.allocation, containerId=task.resources, nodeName="n", taskId=task.task, acceleratorType="cpu",
                                acceleratorUuids=[])
    b.post_PostAllocationAcceleratorData(mine, allocationId=task.allocation,
                                         body=b.v1PostAllocationAcceleratorDataRequest(allocationId=task.allocation, acceleratorData=about))
    met = b.get_AllocationRendezvousInfo(mine, allocationId=task.allocation, resourcesId=task.resources).rendezvousInfo
    assert (met.addresses, list(met.slots), met.rank) == (["127.0.0.1"], [1], 0)
    for _ in range(2):  # Every rank makes this call.
        b.post_RunPrepareForReporting(mine, body=b.v1RunPrepareForReportingRequest(runId=1, checkpointStorage=None))
    assert b.get_AllocationPreemptionSignal(mine, allocationId=task.allocation, timeoutSeconds=0).preempt is False
    with pytest.raises(errors.NotFoundException):
        b.get_GetBestSearcherValidationMetric(mine, experimentId=cluster.experiment)
    for group, steps, metrics in [("training", 5, {"loss": 1.5, "odd": float("nan"), "more": float("inf")}), ("validation", 5, {"loss": 1.25}),
                                  ("mine", 5, {"x": "text", "y": [1, {"z": None}]})]:
        sent = b.v1TrialMetrics(metrics=b.v1Metrics(avgMetrics=metrics), trialId=1, trialRunId=1, stepsCompleted=steps)
        b.post_ReportTrialMetrics(mine, metrics_trialId=1, body=b.v1ReportTrialMetricsRequest(group=group, metrics=sent))

    def best():  # The value is known when the search has decided on the validation.
        try:
            return b.get_GetBestSearcherValidationMetric(mine, experimentId=cluster.experiment).metric
        except errors.NotFoundException:
            return None

    assert wait_for(best, 30) == 1.25
    uuid = "0f0e0d0c-0000-4000-8000-000000000001"
    b.post_ReportCheckpoint(mine, body=b.v1Checkpoint(
        allocationId=task.allocation, taskId=task.task, uuid=uuid, state=b.checkpointv1State.COMPLETED, training=b.v1CheckpointTrainingMetadata(),
        resources={"a/": "0", "a/b": "17"}, metadata={"steps_completed": 5, "mine": "x"}, reportTime="2026-01-01T00:00:00.000001+00:00"))
    b.post_ReportTrialProgress(mine, trialId=1, body=b.v1ReportTrialProgressRequest(trialId=1, progress=0.25, isRaw=True))
    b.post_PostTrialRunnerMetadata(mine, trialId=1, body=b.v1TrialRunnerMetadata(state="validating"))
    mine.post("api/v1/task/logs", json={"logs": [{"task_id": task.task, "timestamp": "2026-01-01T00:00:00.000001+00:00", "log": "by the shipper\n",
                                                  "stdtype": "stderr", "level": "ERROR", "source": "task", "rank_id": 0}]})
    # The calls of a user.
    trial = b.get_GetTrial(user, trialId=1).trial
    assert (trial.totalBatchesProcessed, trial.runnerState, trial.bestValidation.metrics.avgMetrics["loss"]) == (5, "validating", 1.25)
    assert trial.bestCheckpoint.uuid == uuid and trial.taskIds == [task.task]
    listed = b.get_GetExperimentTrials(user, experimentId=cluster.experiment)
    assert [t.id for t in listed.trials] == [1] and listed.pagination.total == 1
    experiment = b.get_GetExperiment(user, experimentId=cluster.experiment).experiment
    assert experiment.state == b.experimentv1State.ACTIVE and experiment.config["entrypoint"] == "sh job.sh" and experiment.bestTrialSearcherMetric == 1.25
    assert [e.id for e in b.get_GetExperiments(user).experiments] == [cluster.experiment]
    lines = [one.message for one in b.get_TrialLogs(user, trialId=1, follow=False)]
    assert any(line.endswith("ERROR: by the shipper\n") for line in lines), lines
    work = b.get_GetTrialWorkloads(user, trialId=1, metricType=b.v1MetricType.VALIDATION).workloads
    assert [w.validation.metrics.avgMetrics["loss"] for w in work if w.validation] == [1.25]
    for answer in (b.get_GetExperimentCheckpoints(user, id=cluster.experiment), b.get_GetTrialCheckpoints(user, id=1)):
        assert [c.uuid for c in answer.checkpoints] == [uuid] and answer.pagination.total == 1
    one = b.get_GetCheckpoint(user, checkpointUuid=uuid).checkpoint
    assert one.metadata["mine"] == "x" and one.resources["a/b"] == "17" and one.training.validationMetrics.avgMetrics["loss"] == 1.25
    b.post_PostRunMetadata(user, runId=1, body=b.v1PostRunMetadataRequest(runId=1, metadata={"a": {"b": 1.5}}))
    assert b.get_GetRunMetadata(mine, runId=1).metadata == {"a": {"b": 1.5}}
    agents = b.get_GetAgents(user).agents
    assert len(agents) == 1 and len(agents[0].slots) == 2 and agents[0].slotStats.typeStats
    b.patch_PatchCheckpoints(mine, body=b.v1PatchCheckpointsRequest(checkpoints=[
        b.v1PatchCheckpoint(uuid=uuid, resources=b.PatchCheckpointOptionalResources(resources={"a/": "0"}))]))
    assert b.get_GetCheckpoint(user, checkpointUuid=uuid).checkpoint.state == b.checkpointv1State.PARTIALLY_DELETED
    # Pausing, activating, and an end with the reason that the hyperparameters are invalid.
    b.post_PauseExperiment(user, id=cluster.experiment)
    assert b.get_AllocationPreemptionSignal(mine, allocationId=task.allocation, timeoutSeconds=60).preempt is True
    b.post_AckAllocationPreemptionSignal(mine, allocationId=task.allocation, body=b.v1AckAllocationPreemptionSignalRequest(allocationId=task.allocation))
    task.end(0)
    b.post_ActivateExperiment(user, id=cluster.experiment)
    again = Task(cluster, 1, 2)
    mine = session_of(cluster, again)
    b.post_ReportTrialSearcherEarlyExit(mine, trialId=1, body=b.v1TrialEarlyExit(reason=b.v1TrialEarlyExitExitedReason.INVALID_HP))
    again.end(0)
    assert cluster.wait_end(cluster.experiment) == "COMPLETED"


def test_an_experiment_is_created_by_its_classes(cluster, user):
    config = "{name: by class, entrypoint: 'true', searcher: {name: single, metric: x}}"
    script = b.v1File(path="a.py", type=ord("0"), content=base64.b64encode(b"print(1)\n").decode(), mtime="1700000000", mode=0o644, uid=0, gid=0)
    made = b.post_CreateExperiment(user, body=b.v1CreateExperimentRequest(config=config, modelDefinition=[script], activate=False))
    assert made.experiment.state == b.experimentv1State.PAUSED and made.config["name"] == "by class" and list(made.warnings) == []
    config = config.replace("}}", "}, resources: {slots_per_trial: 99}}")
    made = b.post_CreateExperiment(user, body=b.v1CreateExperimentRequest(config=config, modelDefinition=[script], activate=False))
    assert list(made.warnings) == [b.v1LaunchWarning.CURRENT_SLOTS_EXCEEDED], "it waits for agents with as many"
    with pytest.raises(errors.APIException, match="entrypoint"):
        b.post_CreateExperiment(user, body=b.v1CreateExperimentRequest(config="{searcher: {name: single, metric: x}}", modelDefinition=[script]))


def test_an_unknown_path_and_a_logout(cluster, user):
    with pytest.raises(errors.NotFoundException, match="api not found"):
        user.get("api/v1/nothing/of/the/kind")
    b.post_Logout(user)
    with pytest.raises(errors.UnauthenticatedException):
        b.get_GetMe(user)
