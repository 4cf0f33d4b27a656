"""What is kept of an experiment that has ended: checkpoints by its policy, logs by their days, also through kill -9; and the task of type
CHECKPOINT_GC by which the stock client sees files being deleted."""

import contextlib
import json
import pathlib
import subprocess
import urllib.request

import pytest

from cluster_under_test import Cluster, wait_for

SCRIPT = """
import troupe
p = troupe.params(x=0.5)
print("trained with", p.x, flush=True)
for epoch in range(1, 6):
    with troupe.checkpoint(epoch) as path:
        (path / "weights").write_bytes(b"w" * 1000)
    if epoch != 5:
        troupe.validate({"loss": abs(epoch - p.best)}, step=epoch)
"""

# A trial is best at epoch `best`. Its fifth checkpoint is the latest, and has no validation.
CONFIG = """
name: retention
entrypoint: python3 job.py
hyperparameters: {{x: 1.0, best: {{type: categorical, vals: [2, 3]}}}}
searcher: {{name: grid, metric: loss, max_concurrent_trials: 2}}
checkpoint_storage: {{type: directory, container_path: "{root}/saved"{keep}}}
{logs}
max_restarts: 0
"""


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path) as one:
        one.up()
        yield one


def submit(cluster, keep, logs=""):
    job = cluster.root / "job"
    job.mkdir(exist_ok=True)
    (job / "job.py").write_text(SCRIPT)
    config = cluster.root / "retention.yaml"
    config.write_text(CONFIG.format(root=cluster.root, keep=", " + keep if keep else "", logs=logs))
    id = cluster.json("experiment", "create", str(config), str(job))["id"]
    cluster.cli("experiment", "wait", str(id))
    return id


def folders(cluster):
    # The folder of the cluster's event files lies beside the checkpoints.
    return sorted(x.name for x in (cluster.root / "saved").iterdir() if not (x / "tensorboard").exists())


def alive(cluster, id):
    return [x for x in cluster.checkpoints(id) if x["state"].removeprefix("STATE_") != "DELETED"]


def kept(cluster, id):
    """The steps of the checkpoints that are left, as a list for each trial."""
    trials = sorted(x["id"] for x in cluster.trials(id))
    return [sorted(x["totalBatches"] for x in alive(cluster, id) if x["trialId"] == trial) for trial in trials]


def clean_logs(cluster):
    ask = urllib.request.Request(cluster.url() + "/api/v1/auth/login", method="POST",
                                 data=json.dumps({"username": "admin", "password": ""}).encode())
    token = json.load(urllib.request.urlopen(ask, timeout=120))["token"]
    ask = urllib.request.Request(cluster.url() + "/api/v1/cleanup_logs", method="POST", data=b"{}",
                                 headers={"Authorization": "Bearer " + token})
    return json.load(urllib.request.urlopen(ask, timeout=120))


def test_without_a_word_on_it_all_checkpoints_stay_for_a_while(cluster):
    id = submit(cluster, "save_trial_best: 0, save_trial_latest: 0")
    wait_for(lambda: kept(cluster, id) == [[], []], 20, what=lambda: kept(cluster, id))
    second = submit(cluster, "")
    third = submit(cluster, "save_trial_best: 0, save_trial_latest: 0")
    wait_for(lambda: kept(cluster, third) == [[], []], 20, what=lambda: kept(cluster, third))
    assert kept(cluster, second) == [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]], "it ended before the third was swept"


@pytest.mark.parametrize("keep, left", [
    ("save_trial_best: 1, save_trial_latest: 1, save_experiment_best: 0", [[2, 5], [3, 5]]),
    ("save_trial_best: 0, save_trial_latest: 0, save_experiment_best: 1", [[2], []]),
    ("save_trial_best: 0, save_trial_latest: 2, save_experiment_best: 0", [[4, 5], [4, 5]]),
    ("save_trial_best: 9, save_trial_latest: 9, save_experiment_best: 9", [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]),
])
def test_an_ended_experiment_keeps_what_its_policy_says(cluster, keep, left):
    id = submit(cluster, keep)
    wait_for(lambda: kept(cluster, id) == left, 20, what=lambda: kept(cluster, id))
    wait_for(lambda: len(folders(cluster)) == sum(map(len, left)), 20, what=lambda: folders(cluster))
    assert set(folders(cluster)) == {x["uuid"] for x in alive(cluster, id)}


def test_what_a_killed_master_left_is_swept_by_the_next_one(cluster):
    id = submit(cluster, "save_trial_best: 1, save_trial_latest: 0, save_experiment_best: 0")
    wait_for(lambda: len(folders(cluster)) == 2, 20, what=lambda: folders(cluster))
    second = submit(cluster, "save_trial_best: 0, save_trial_latest: 0, save_experiment_best: 0")
    cluster.kill_node()  # at some moment of its sweep
    (cluster.root / "saved" / "of-a-user").mkdir()
    cluster.up()
    wait_for(lambda: kept(cluster, second) == [[], []], 20, what=lambda: kept(cluster, second))
    wait_for(lambda: len(folders(cluster)) == 3, 20, what=lambda: folders(cluster))
    assert kept(cluster, id) == [[2], [3]] and "of-a-user" in folders(cluster)


def test_logs_go_when_their_days_are_over(cluster):
    keep = "save_trial_best: 1"
    lost = submit(cluster, keep, "retention_policy: {log_retention_days: 0}")
    for id, logs in ((submit(cluster, keep, "retention_policy: {log_retention_days: 1}"), 2), (submit(cluster, keep), 2)):
        assert cluster.cli("experiment", "logs", str(id)).stdout.count("trained with") == logs
    assert cluster.cli("experiment", "logs", str(lost)).stdout.count("trained with") == 2
    assert clean_logs(cluster) == {"removedCount": "2"}
    assert clean_logs(cluster) == {"removedCount": "0"}
    assert "trained with" not in cluster.cli("experiment", "logs", str(lost)).stdout
    cluster.kill_node()
    cluster.up()
    assert "trained with" not in cluster.cli("experiment", "logs", str(lost)).stdout
    assert cluster.cli("experiment", "logs", str(id)).stdout.count("trained with") == 2


def test_logs_go_after_the_time_of_the_cluster_unless_the_experiment_says_otherwise(cluster):
    keep = "save_trial_best: 1"
    usual = submit(cluster, keep)
    mine = submit(cluster, keep, "retention_policy: {log_retention_days: -1}")
    file = cluster.root / "keeps.yaml"
    file.write_text("troupe: 1\ncluster: {log_retention: 0s}\n")
    cluster.cli("apply", "--yes", str(file))
    assert int(clean_logs(cluster)["removedCount"]) >= 2
    assert "trained with" not in cluster.cli("experiment", "logs", str(usual)).stdout
    assert cluster.cli("experiment", "logs", str(mine)).stdout.count("trained with") == 2
    file.write_text("troupe: 1\ncluster: {log_retention: never}\n")
    cluster.cli("apply", "--yes", str(file))


def stock(cluster):
    """The bindings of the stock client, and a session of the administrator."""
    bindings = pytest.importorskip("determined.common.api.bindings")
    from determined.common import api
    stranger = api.UnauthSession(cluster.url(), cert=None)
    login = bindings.post_Login(stranger, body=bindings.v1LoginRequest(username="admin", password="", isHashed=True))
    return bindings, api.Session(cluster.url(), "admin", login.token, None)


def collection(b, session, id):
    """The summary of the experiment's CHECKPOINT_GC task in the list of tasks, or None."""
    found = [one for one in b.get_GetTasks(session).allocationIdToSummary.values() if one.name == f"Checkpoint GC (Experiment {id})"]
    assert len(found) < 2
    return found[0] if found else None


def ended(b, session, task):
    return wait_for(lambda: (got := b.get_GetTask(session, taskId=task).task).endTime and got, 120, 0.1)


def log_of(b, session, task):
    return "".join(line.message for line in b.get_TaskLogs(session, taskId=task))


def fill(cluster, files=8000):
    """Adds files to the checkpoints, so that deleting them takes a while. Returns the number of files of each checkpoint."""
    counts = {}
    for uuid in folders(cluster):
        folder = cluster.root / "saved" / uuid
        for number in range(files):
            (folder / f"more-{number}").touch()
        counts[uuid] = sum(path.is_file() for path in folder.rglob("*"))
    return counts


def test_the_deletion_of_an_experiment_is_a_task_with_a_log(cluster):
    b, admin = stock(cluster)
    id = submit(cluster, "save_trial_best: 9, save_trial_latest: 9")
    counts = fill(cluster)
    assert len(counts) == 10 and collection(b, admin, id) is None
    b.delete_DeleteExperiment(admin, experimentId=id)
    running = wait_for(lambda: collection(b, admin, id), 60, 0.01)
    assert running.slotsNeeded == 0 and running.resources == [] and running.schedulerType == "priority"
    assert b.get_GetActiveTasksCount(admin).to_json() == {"commands": 0, "notebooks": 0, "shells": 0, "tensorboards": 0}
    task = ended(b, admin, running.taskId)
    assert task.taskType == b.v1TaskType.CHECKPOINT_GC and task.taskId == running.taskId
    assert [one.allocationId for one in task.allocations] == [running.allocationId]
    assert task.allocations[0].state.value == "STATE_TERMINATED" and task.allocations[0].endTime
    text = log_of(b, admin, running.taskId)
    for uuid, files in counts.items():
        assert f"Checkpoint {uuid}: {files} files removed" in text
    assert f"Removes all checkpoints of experiment {id}, which is deleted, as admin asked" in text and "Files of 10 checkpoints removed" in text
    fields = list(b.get_TaskLogsFields(admin, taskId=running.taskId))
    assert [one.sources for one in fields] == [["master"]]
    assert collection(b, admin, id) is None and folders(cluster) == []
    wait_for(lambda: cluster.call(f"/api/v1/experiments/{id}")[0] == 404, 60)
    assert b.get_GetTask(admin, taskId=running.taskId).task.endTime and log_of(b, admin, running.taskId) == text, "also when it is gone"
    code, refusal = cluster.call(f"/api/v1/tasks/{running.taskId}/kill", {"taskId": running.taskId})
    assert code == 400 and "ends by itself" in json.dumps(refusal)
    steps = cluster.facts("checkpoint_files_removed")
    assert [(one["id"], one["step"], one["by"], one["cause"], one["removed"]) for one in steps] == [
        (running.taskId, "ordered", "admin", "experiment", 0), (running.taskId, "done", "admin", "experiment", 10)]
    audit = [row for row in cluster.json("events", "--kind", "audit") if row["type"] == "checkpoint_files_removed"]
    assert [row["fields"]["by"] for row in audit] == ["admin", "admin"]


def test_a_deletion_goes_on_as_the_same_task_after_kill_9(cluster):
    b, admin = stock(cluster)
    id = submit(cluster, "save_trial_best: 9, save_trial_latest: 9")
    fill(cluster)
    b.delete_DeleteExperiment(admin, experimentId=id)
    running = wait_for(lambda: collection(b, admin, id), 60, 0.01)
    cluster.kill_node()
    cluster.up()
    b, admin = stock(cluster)
    ended(b, admin, running.taskId)
    assert folders(cluster) == []
    text = log_of(b, admin, running.taskId)
    assert "The master was restarted; continues to remove all checkpoints" in text and "checkpoints removed" in text
    wait_for(lambda: cluster.call(f"/api/v1/experiments/{id}")[0] == 404, 60)
    steps = cluster.facts("checkpoint_files_removed")
    assert [(one["id"], one["step"]) for one in steps] == [(running.taskId, "ordered"), (running.taskId, "done")]


def test_what_a_policy_or_a_user_removes_is_a_task_too(cluster):
    b, admin = stock(cluster)
    id = submit(cluster, "save_trial_best: 1, save_trial_latest: 0, save_experiment_best: 0")
    wait_for(lambda: kept(cluster, id) == [[2], [3]], 20, what=lambda: kept(cluster, id))
    (policy,) = wait_for(lambda: [one for one in cluster.facts("checkpoint_files_removed") if one["step"] == "done"], 30)
    assert policy["cause"] == "policy" and policy["by"] == "" and policy["removed"] == 8 and policy["experiment"] == id
    text = log_of(b, admin, policy["id"])
    assert f"Removes the checkpoints of experiment {id} that it does not keep" in text and text.count("1 file removed") == 8
    uuid = alive(cluster, id)[0]["uuid"]
    b.post_CheckpointsRemoveFiles(admin, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[uuid], checkpointGlobs=["no-such-file"]))
    b.post_CheckpointsRemoveFiles(admin, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[uuid], checkpointGlobs=["w*"]))
    files = lambda: [one for one in cluster.facts("checkpoint_files_removed") if one["cause"] == "files"]
    wait_for(lambda: files() and files()[-1]["step"] == "done", what=files)
    done = files()
    assert [(one["step"], one["by"], one["checkpoints"], one["globs"]) for one in done] == [
        ("ordered", "admin", [uuid], ["w*"]), ("done", "admin", [uuid], ["w*"])], "where no file matches there is no task"
    task = b.get_GetTask(admin, taskId=done[0]["id"]).task
    assert task.taskType == b.v1TaskType.CHECKPOINT_GC and task.endTime
    assert "files that match w* of 1 checkpoint of experiment" in log_of(b, admin, task.taskId)


@contextlib.contextmanager
def held(folder):
    """A folder whose files nobody can remove, root neither."""
    if subprocess.run(["chattr", "-R", "+i", str(folder)], capture_output=True).returncode != 0:
        pytest.skip("this filesystem or this user cannot make files immutable")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-R", "-i", str(folder)], check=True)


def test_what_could_not_be_removed_is_there_and_the_rest_counts_as_deleted(cluster):
    b, admin = stock(cluster)
    from determined.common.api import errors
    id = submit(cluster, "save_trial_best: 9, save_trial_latest: 9")
    first, second, *_ = [one["uuid"] for one in cluster.checkpoints(id)]
    state = lambda uuid: b.get_GetCheckpoint(admin, checkpointUuid=uuid).checkpoint.state.name
    with held(cluster.root / "saved" / first):
        b.post_CheckpointsRemoveFiles(admin, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[first, second], checkpointGlobs=["**/*"]))
        assert state(second) == "DELETED", "noted before the answer"
        removed = wait_for(lambda: [one for one in cluster.facts("checkpoint_files_removed") if one["cause"] == "files" and one["step"] != "ordered"], 60)
        assert "not permitted" in log_of(b, admin, removed[0]["id"])
        wait_for(lambda: state(first) == "PARTIALLY_DELETED", 60)
        assert b.get_GetCheckpoint(admin, checkpointUuid=first).checkpoint.resources
        b.delete_DeleteExperiment(admin, experimentId=id)
        failed = lambda: b.get_GetExperiment(admin, experimentId=id).experiment.state.name == "DELETE_FAILED"
        wait_for(failed, 60)
        left = [one["uuid"] for one in alive(cluster, id)]
        assert left == [first] == folders(cluster), "the files of all others are gone"
        with pytest.raises(errors.APIException, match="its deletion has begun"):
            b.post_ContinueExperiment(admin, body=b.v1ContinueExperimentRequest(id=id, overrideConfig=""))
    b.post_CheckpointsRemoveFiles(admin, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[first], checkpointGlobs=["**/*"]))
    assert state(first) == "DELETED"
    wait_for(lambda: folders(cluster) == [], 60)
    b.delete_DeleteExperiment(admin, experimentId=id)
    wait_for(lambda: cluster.call(f"/api/v1/experiments/{id}")[0] == 404, 60)
