"""The HTTP calls of a task, against a real cluster. A shell script holds the slot and ends when it is told to, and the test makes the
calls with the allocation's token."""

import hashlib
import json
import threading
import urllib.error
import urllib.request
import uuid

import pytest

from cluster_under_test import Cluster, free_port, wait_for

# Ends with the exit code that the test writes to exit-TRIAL-RUN.
SCRIPT = """
end="$JOB_DIR/exit-$DET_TRIAL_ID-$DET_TRIAL_RUN_ID"
touch "$JOB_DIR/began-$DET_TRIAL_ID-$DET_TRIAL_RUN_ID"
while [ ! -f "$end" ]; do sleep 0.05; done
exit "$(cat "$end")"
"""
CONFIG = """
name: by hand
entrypoint: sh job.sh
hyperparameters: {{x: 1}}
searcher: {searcher}
max_restarts: 2
environment: {{environment_variables: ["JOB_DIR={root}"]}}
"""
SINGLE = "{name: single, metric: loss}"


class Api:
    """Sends requests with one token. Returns (status, JSON)."""

    def __init__(self, url, token, header="Authorization"):
        self.url, self.headers = url, {header: f"Bearer {token}"}

    def __call__(self, method, path, body=None, timeout=120):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=self.headers)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read() or b"null")

    def ok(self, method, path, body=None, timeout=120):
        status, answer = self(method, path, body, timeout)
        assert status == 200, (method, path, status, answer)
        return answer


class Task:
    """Makes the calls of one allocation."""

    def __init__(self, cluster, trial, run):
        self.cluster, self.trial, self.run = cluster, trial, run
        self.allocation = f"{cluster.experiment}.00000000-0000-4000-8000-{trial:012x}.{run}"
        self.task = self.allocation.rsplit(".", 1)[0]
        self.resources = f"{trial:08x}-0000-4000-a000-{run:012x}"
        secret = json.loads((cluster.data / "master" / "passwords").read_text())["secret"]
        claim = f"a1.{trial}.{run}"
        mac = hashlib.blake2b(claim.encode(), key=secret.encode(), digest_size=24).hexdigest()
        self.api = Api(cluster.url(), f"{claim}.{mac}", "Grpc-Metadata-x-allocation-token")
        wait_for((cluster.root / f"began-{trial}-{run}").exists, 30, what=lambda: cluster.logs(trial))

    def end(self, code=0):
        part = self.cluster.root / f"part-{self.trial}-{self.run}"
        part.write_text(str(code))
        part.rename(self.cluster.root / f"exit-{self.trial}-{self.run}")

    def ok(self, method, path, body=None, timeout=120):
        return self.api.ok(method, "/api/v1/" + path, body, timeout)

    def signal(self, seconds):
        return self.ok("GET", f"allocations/{self.allocation}/signals/preemption?timeout_seconds={seconds}", timeout=seconds + 120)["preempt"]

    def agree(self):
        self.ok("POST", f"allocations/{self.allocation}/signals/ack_preemption")

    def report(self, group, steps, metrics, **more):
        body = {"group": group, "metrics": {"trialId": self.trial, "trialRunId": self.run, "stepsCompleted": steps,
                                            "reportTime": None, "metrics": {"avgMetrics": metrics, **more}}}
        return self.ok("POST", f"trials/{self.trial}/metrics", body)

    def save(self, steps, name=None, files=None):
        name = name or str(uuid.uuid4())
        body = {"allocationId": self.allocation, "taskId": self.task, "uuid": name, "state": "STATE_COMPLETED", "training": {},
                "reportTime": "2026-01-01T00:00:00.000001+00:00", "storageId": None,
                "resources": files or {"a": "3", "b/": "0", "b/c": "4"}, "metadata": {"steps_completed": steps, "mine": [1]}}
        self.ok("POST", "checkpoints", body)
        return name


class ByHand(Cluster):
    def start(self, searcher=SINGLE, slots=2, more=""):
        self.up(slots)
        self.user = Api(self.url(), self.log_in("determined"))
        self.create(searcher, more)

    def log_in(self, name):
        return Api(self.url(), "")("POST", "/api/v1/auth/login", {"username": name, "password": "", "isHashed": True})[1]["token"]

    def create(self, searcher=SINGLE, more=""):
        job = self.root / "job"
        job.mkdir(exist_ok=True)
        (job / "job.sh").write_text(SCRIPT)
        config = self.root / "job.yaml"
        config.write_text(CONFIG.format(root=self.root, searcher=searcher) + more)
        self.experiment = self.json("experiment", "create", str(config), str(job))["id"]

    def trial(self, number=1):
        return self.user.ok("GET", f"/api/v1/trials/{number}")["trial"]

    def order(self, verb):
        self.user.ok("POST", f"/api/v1/experiments/{self.experiment}/{verb}")

    def logs(self, trial=1):
        asked = urllib.request.Request(f"{self.url()}/api/v1/trials/{trial}/logs", headers=self.user.headers)
        return [json.loads(line)["result"] for line in urllib.request.urlopen(asked, timeout=120).read().splitlines()]

    def rows(self, group, trial=1):
        return self.user.ok("GET", f"/troupe/v1/trials/{trial}/metrics?group={group}")


@pytest.fixture
def cluster(tmp_path):
    cluster = ByHand(tmp_path)
    yield cluster
    cluster.close()


def in_background(call):
    """Makes the call on a thread. Returns a list that gets the answer."""
    got = []
    thread = threading.Thread(target=lambda: got.append(call()), daemon=True)
    thread.start()
    return got


def test_reports_checkpoints_and_the_end_of_a_trial(cluster):
    cluster.start()
    task = Task(cluster, 1, 1)
    assert task.ok("GET", "me")["user"]["username"] == "determined"
    task.ok("POST", "runs/start", {"runId": 1, "checkpointStorage": None})
    assert task.ok("GET", f"allocations/{task.allocation}/resources/{task.resources}/rendezvous")["rendezvousInfo"] == {
        "addresses": ["127.0.0.1"], "slots": [1], "rank": 0}
    status, _ = task.api("GET", f"/api/v1/allocations/{task.allocation}/resources/{uuid.uuid4()}/rendezvous")
    assert status == 400

    for _ in range(2):  # The client repeats requests that got no answer.
        task.report("training", 10, {"loss": 0.5, "nan": "NaN", "inf": "Infinity"}, batchMetrics=[{"loss": 0.6}, {"loss": 0.4}])
        task.report("validation", 10, {"loss": 0.25})
    task.report("training", 11, {"loss": 0.5})
    status, refused = task.api("POST", "/api/v1/trials/1/metrics", {"group": "training", "metrics": {
        "trialId": 1, "trialRunId": 1, "stepsCompleted": 11, "metrics": {"avgMetrics": {"loss": 0.4}}}})
    assert status == 400 and "trial 1 has reported 'loss' of group 'training' at step 11 already" in refused["error"]["error"]
    task.report("gpu", None, {"util": 3})
    assert [row["totalBatches"] for row in cluster.rows("training")] == [10, 11]
    assert [row["totalBatches"] for row in cluster.rows("validation")] == [10]
    first = task.ok("GET", "trials/1/workloads")["workloads"][0]["training"]["metrics"]
    assert first["avgMetrics"] == {"loss": 0.5, "nan": "NaN", "inf": "Infinity"}
    assert first["batchMetrics"] == [{"loss": 0.6}, {"loss": 0.4}]
    wait_for(lambda: cluster.trial().get("searcherMetricValue") == 0.25, 10, what=cluster.trial)
    status, refused = task.api("POST", "/api/v1/trials/1/metrics", {"group": "training", "metrics": {
        "trialId": 1, "trialRunId": 7, "stepsCompleted": 1, "metrics": {"avgMetrics": {}}}})
    assert status == 400 and "invalid run id, 7 (reported) != 1 (expected)" in refused["error"]["error"]

    for done in (0.1, 0.102, 0.5):
        task.ok("POST", "trials/1/progress", {"progress": done, "is_raw": True})
    assert cluster.user.ok("GET", f"/api/v1/experiments/{cluster.experiment}")["experiment"]["progress"] == 0.5
    task.ok("POST", "trials/1/runner/metadata", {"state": "validating"})
    assert cluster.trial()["runnerState"] == "validating"

    saved = task.save(10)
    assert task.save(10, saved) == saved
    row = cluster.user.ok("GET", f"/api/v1/checkpoints/{saved}")["checkpoint"]
    assert row["state"] == "STATE_COMPLETED" and row["resources"] == {"a": "3", "b/": "0", "b/c": "4"}
    assert row["metadata"] == {"steps_completed": 10, "mine": [1]} and row["training"]["searcherMetric"] == 0.25
    assert cluster.trial()["checkpointCount"] == 1 and cluster.trial()["totalCheckpointSize"] == "7"
    task.ok("PATCH", "checkpoints", {"checkpoints": [{"uuid": saved, "resources": {"resources": {"a": "3"}}}, {"uuid": saved}]})
    row = cluster.user.ok("GET", f"/api/v1/checkpoints/{saved}")["checkpoint"]
    assert (row["state"], row["resources"]) == ("STATE_PARTIALLY_DELETED", {"a": "3"})

    lines = [{"timestamp": "2026-01-01T00:00:00.5+00:00", "log": f"line {n}\n", "stdtype": "stderr", "level": "ERROR",
              "task_id": task.task, "rank_id": 0} for n in range(3)]
    for _ in range(2):
        task.ok("POST", "task/logs", {"logs": lines})
    assert [line["log"] for line in cluster.logs() if line["log"].startswith("line")] == ["line 0\n", "line 1\n", "line 2\n"]

    assert task.ok("POST", "runs/1/metadata", {"runId": 1, "metadata": {"k": 1}})["metadata"] == {"k": 1}
    task.end(0)
    assert cluster.wait_end(cluster.experiment) == "COMPLETED"
    status, refused = task.api("GET", "/api/v1/me")
    assert status == 401 and refused["error"]["reason"] == "Unauthenticated"
    # What users may still change after the end of the trial.
    cluster.user.ok("POST", "/api/v1/runs/1/metadata", {"runId": 1, "metadata": {"k": 2}})
    assert cluster.user.ok("GET", "/api/v1/runs/1/metadata")["metadata"] == {"k": 2}
    cluster.user.ok("PATCH", "/api/v1/checkpoints", {"checkpoints": [{"uuid": saved, "resources": {"resources": {}}}]})
    assert cluster.user.ok("GET", f"/api/v1/checkpoints/{saved}")["checkpoint"]["state"] == "STATE_DELETED"
    assert cluster.user.ok("GET", "/api/v1/trials/1/checkpoints")["checkpoints"] == []
    cluster.kill_node()
    cluster.up()
    user = Api(cluster.url(), cluster.log_in("determined"))
    assert user.ok("GET", "/api/v1/runs/1/metadata")["metadata"] == {"k": 2}
    assert user.ok("GET", f"/api/v1/checkpoints/{saved}")["checkpoint"]["state"] == "STATE_DELETED"


def test_a_pause_reaches_the_script_and_its_answer_decides(cluster):
    cluster.start()
    task = Task(cluster, 1, 1)
    assert task.signal(0) is False
    assert task.signal(1) is False, "held for its time"
    held = in_background(lambda: task.signal(60))
    saved = task.save(30)
    cluster.order("pause")
    wait_for(lambda: held, 10)
    assert held == [True] and task.signal(60) is True
    task.agree()
    task.end(1)  # The exit code does not matter, because the task was asked to stop.
    wait_for(lambda: cluster.trial()["state"] == "STATE_PAUSED", 10, what=cluster.trial)
    wait_for(lambda: cluster.json("status")["slots"]["used"] == 0, 10)
    assert cluster.trial()["restarts"] == 0
    cluster.order("activate")
    second = Task(cluster, 1, 2)
    assert second.signal(0) is False
    assert cluster.trial()["warmStartCheckpointUuid"] == "" if "warmStartCheckpointUuid" in cluster.trial() else True
    # The task ends well and has not agreed to the second pause, so that its training is over.
    cluster.order("pause")
    assert second.signal(60) is True
    second.end(0)
    wait_for(lambda: cluster.trial()["state"] == "STATE_COMPLETED", 10, what=cluster.trial)
    assert saved


def test_a_failure_restarts_from_the_newest_checkpoint_that_is_left(cluster):
    cluster.start()
    first = Task(cluster, 1, 1)
    kept, gone = first.save(10), first.save(20)
    first.ok("PATCH", "checkpoints", {"checkpoints": [{"uuid": gone, "resources": {"resources": {}}}]})
    first.end(1)
    second = Task(cluster, 1, 2)
    facts = cluster.root / "data"
    assert facts.exists()
    runs = lambda: [run["state"] for run in cluster.user.ok("GET", f"/api/v1/tasks/{second.task}")["task"]["allocations"]]
    wait_for(lambda: runs() == ["STATE_TERMINATED", "STATE_RUNNING"], what=runs)
    status, _ = first.api("GET", "/api/v1/me")
    assert status == 401, "the token of the first run died with it"
    # Reports behind the checkpoint are made again.
    second.report("training", 15, {"loss": 1})
    second.end(0)
    assert cluster.wait_end(cluster.experiment) == "COMPLETED"
    assert cluster.trial()["restarts"] == 1
    listed = cluster.user.ok("GET", "/api/v1/trials/1/checkpoints")["checkpoints"]
    assert [one["uuid"] for one in listed] == [kept]


def test_hyperparameters_that_cannot_be_trained_are_replaced(cluster):
    cluster.start("{name: random, metric: loss, max_trials: 1, max_concurrent_trials: 1}")
    task = Task(cluster, 1, 1)
    task.ok("POST", "trials/1/early_exit", {"reason": "EXITED_REASON_INVALID_HP"})
    task.end(1)
    second = Task(cluster, 2, 1)
    assert cluster.trial()["state"] == "STATE_COMPLETED" and cluster.trial()["restarts"] == 0
    second.end(0)
    assert cluster.wait_end(cluster.experiment) == "COMPLETED"


def test_the_search_stops_a_trial_by_preemption(cluster):
    cluster.start("{name: async_halving, metric: loss, time_metric: epoch, max_time: 4, num_rungs: 2, divisor: 4, max_trials: 2, "
                  "max_concurrent_trials: 2}")
    good, bad = Task(cluster, 1, 1), Task(cluster, 2, 1)
    held = in_background(lambda: bad.signal(60))
    good.report("validation", 1, {"loss": 0.1, "epoch": 1})
    bad.report("validation", 1, {"loss": 0.9, "epoch": 1})
    wait_for(lambda: held, 15, what=lambda: cluster.trial(2))
    assert held == [True] and good.signal(0) is False
    bad.agree()
    bad.end(0)
    wait_for(lambda: cluster.trial(2)["state"] == "STATE_COMPLETED", 10, what=lambda: cluster.trial(2))
    good.end(0)
    assert cluster.wait_end(cluster.experiment) == "COMPLETED"


def test_a_task_goes_on_while_the_master_is_killed(cluster):
    cluster.listen = f"127.0.0.1:{free_port()}"
    cluster.start()
    task = Task(cluster, 1, 1)
    task.report("validation", 1, {"loss": 3})
    cluster.kill_node()
    cluster.up()
    task.report("validation", 1, {"loss": 3})
    task.report("validation", 2, {"loss": 2})
    wait_for(lambda: task.signal(0) is False, 10)
    cluster.order("pause")
    assert task.signal(60) is True
    task.agree()
    task.end(0)
    wait_for(lambda: cluster.trial()["state"] == "STATE_PAUSED" and cluster.json("status")["slots"]["used"] == 0, 20)
    assert [row["totalBatches"] for row in cluster.rows("validation")] == [1, 2]


def test_a_token_changes_only_what_is_its_own(cluster):
    cluster.start("{name: random, metric: loss, max_trials: 2, max_concurrent_trials: 2}")
    one, other = Task(cluster, 1, 1), Task(cluster, 2, 1)
    for method, path in [("GET", f"allocations/{other.allocation}/signals/preemption?timeout_seconds=0"),
                         ("POST", f"allocations/{other.allocation}/signals/ack_preemption"),
                         ("POST", "trials/2/metrics"), ("POST", "trials/2/early_exit"), ("POST", "trials/2/progress"),
                         ("POST", f"experiments/{cluster.experiment}/kill"), ("POST", "trials/1/kill"), ("POST", "experiments"), ("POST", "auth/logout")]:
        status, refused = one.api(method, "/api/v1/" + path, {} if method == "POST" else None)
        assert status == 403, (method, path, status, refused)
        assert refused["error"]["reason"] == "PermissionDenied"
    # A task may read what its owner may read.
    for path in ("trials/2", f"tasks/{other.task}/context_directory", "runs/2/metadata", "users", "experiments", "agents"):
        assert one.api("GET", "/api/v1/" + path)[0] == 200, path
    saved = one.save(1)
    status, _ = other.api("PATCH", "/api/v1/checkpoints", {"checkpoints": [{"uuid": saved, "resources": {"resources": {}}}]})
    assert status == 200, "of the same experiment: the scripts of a search may clean up after each other"
    for task in (one, other):
        task.end(0)
    assert cluster.wait_end(cluster.experiment) == "COMPLETED"


def test_an_experiment_is_deleted_without_a_task_where_somebody_has_said_that_its_files_in_a_bucket_are_gone(cluster):
    cluster.start(more="checkpoint_storage: {type: s3, bucket: models}\n")
    task = Task(cluster, 1, 1)
    saved = [task.save(5), task.save(10)]
    task.end(0)
    assert cluster.wait_end(cluster.experiment) == "COMPLETED"
    path = f"/api/v1/experiments/{cluster.experiment}"
    cluster.user.ok("PATCH", "/api/v1/checkpoints", {"checkpoints": [{"uuid": one, "resources": {"resources": {}}} for one in saved]})
    cluster.user.ok("DELETE", path)
    wait_for(lambda: cluster.user("GET", path)[0] == 404, 60)
    assert not [one for one in cluster.json("events") if one["type"] in ("task_created", "checkpoint_files_removed")], "no task had to look"
