"""Checkpoints in a bucket are removed by tasks on an agent, with Determined's client: of a policy, of a user who names them, and of an
experiment that is deleted; also through kill -9 of the master, and with credentials that the bucket refuses. Needs the wheel `determined`
0.38.1 and `moto` in the interpreter that runs the tests."""

import json
import os
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster_under_test import Cluster, wait_for

boto3 = pytest.importorskip("boto3")
pytest.importorskip("determined")

SCRIPT = """
from determined import core
with core.init() as ctx:
    for step in range(1, 5):
        ctx.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        with ctx.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
            (path / "weights").write_text("w" * step)
            (path / "more" / "deep").mkdir(parents=True)
            (path / "more" / "state").write_text("s")
            (path / "more" / "deep" / "state").write_text("s")
        ctx.train.report_validation_metrics(steps_completed=step, metrics={"loss": abs(step - 2)})
"""
SECRET = "word-of-ada"
ALL = "save_experiment_best: 9, save_trial_best: 9, save_trial_latest: 9"


class Bucket:
    def __init__(self):
        from moto.server import ThreadedMotoServer
        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        self.url = f"http://127.0.0.1:{self.server.get_host_and_port()[1]}"
        self.client = boto3.client("s3", endpoint_url=self.url, region_name="us-east-1", aws_access_key_id="ada", aws_secret_access_key=SECRET)
        self.client.create_bucket(Bucket="models")

    def keys(self, part="", of="models"):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=of)
        return {one["Key"] for page in pages for one in page.get("Contents", ()) if part in one["Key"]}

    def checkpoints(self):
        """The first part of each key, which is the checkpoint that it belongs to."""
        return {key.split("/")[1] for key in self.keys() if "tensorboard" not in key}


class WithBucket(Cluster):
    def __init__(self, root, bucket):
        super().__init__(root)
        self.bucket = bucket
        self.env["PATH"] = os.path.dirname(sys.executable) + ":" + self.env["PATH"]

    def run(self, keep=ALL, bucket="models"):
        job = self.root / "job"
        job.mkdir(exist_ok=True)
        (job / "job.py").write_text(SCRIPT)
        config = self.root / "job.yaml"
        config.write_text(f"""
name: in-a-bucket
entrypoint: python3 job.py
searcher: {{name: single, metric: loss, smaller_is_better: true}}
max_restarts: 0
resources: {{slots_per_trial: 0}}
checkpoint_storage: {{type: s3, bucket: {bucket}, prefix: of-ours, endpoint_url: "{self.bucket.url}", access_key: ada, secret_key: {SECRET}, {keep}}}
""")
        id = self.json("experiment", "create", str(config), str(job))["id"]
        assert self.wait_end(id) == "COMPLETED", self.cli("experiment", "logs", str(id)).stdout[-3000:]
        return id

    def uuids(self, id):
        return {row["totalBatches"]: row["uuid"] for row in self.checkpoints(id)}

    def alive(self, id):
        """The states of the checkpoints that are not deleted, by their steps."""
        states = {row["totalBatches"]: row["state"].removeprefix("STATE_") for row in self.checkpoints(id)}
        return {steps: state for steps, state in states.items() if state != "DELETED"}

    def gc_tasks(self):
        """The created tasks that remove files of checkpoints, oldest first."""
        return [fact for fact in self.facts("task_created") if fact["entity"].startswith("task/6")]

    def det(self, *words):
        env = {**self.env, "DET_MASTER": self.url(), "DET_USER": "admin", "DET_PASS": ""}
        done = subprocess.run([sys.executable, "-m", "determined.cli", *words], env=env, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done
        return done.stdout

    def delete(self, id):
        ask = self.request(f"/api/v1/experiments/{id}")
        ask.method = "DELETE"
        with urllib.request.urlopen(ask, timeout=120) as answer:
            assert answer.status == 200

    def log_of(self, task):
        return self.cli("task", "logs", task).stdout


@pytest.fixture(scope="module")
def bucket():
    it = Bucket()
    yield it
    it.server.stop()


@pytest.fixture
def cluster(tmp_path, bucket):
    with WithBucket(tmp_path, bucket) as one:
        one.up()
        yield one


def test_a_policy_a_user_and_a_deletion_remove_files_from_a_bucket(cluster, bucket):
    policy = cluster.run("save_experiment_best: 0, save_trial_best: 1, save_trial_latest: 1")
    wait_for(lambda: set(cluster.alive(policy)) == {2, 4}, 120, what=lambda: [cluster.alive(policy), [cluster.log_of(one["entity"][5:]) for one in cluster.gc_tasks()]])
    ours = cluster.uuids(policy)
    assert bucket.checkpoints() & set(ours.values()) == {ours[2], ours[4]}
    first = cluster.gc_tasks()[-1]
    task = first["entity"][5:]
    shown = cluster.call(f"/api/v1/tasks/{task}")[1]["task"]
    assert shown["taskType"] == "TASK_TYPE_CHECKPOINT_GC" and first["name"] == f"Checkpoint GC (Experiment {policy})", (shown, first)
    wait_for(lambda: cluster.call(f"/api/v1/tasks/{task}")[1]["task"].get("endTime"), 60)
    assert cluster.log_of(task).count(": all files are gone") == 2
    code, refusal = cluster.call(f"/api/v1/tasks/{task}/kill", {"taskId": task})
    assert code == 400 and "ends by itself" in json.dumps(refusal)

    named = cluster.run()
    its = cluster.uuids(named)
    cluster.det("checkpoint", "rm", its[3], "--glob", "more", "--yes")  # a folder with a folder in it
    wait_for(lambda: cluster.alive(named)[3] == "PARTIALLY_DELETED", 120, what=lambda: cluster.log_of(cluster.gc_tasks()[-1]["entity"][5:]))
    assert not bucket.keys(f"{its[3]}/more") and bucket.keys(f"{its[3]}/weights")
    assert {fact["by"] for fact in cluster.facts("checkpoint_changed") if fact["uuid"] == its[3]} == {"admin"}, "who ordered it"
    assert cluster.gc_tasks()[-1]["by"] == "admin" and first["by"] == "", "the policy has removed the others"
    warm = f"entrypoint: 'true'\nsearcher: {{name: single, metric: loss, source_checkpoint_uuid: {its[3]}}}\n"
    code, refusal = cluster.call("/api/v1/experiments", {"config": warm})
    assert code == 400 and "is partially deleted" in json.dumps(refusal), refusal
    cluster.det("checkpoint", "delete", its[1], "--yes")
    wait_for(lambda: 1 not in cluster.alive(named), 120)
    assert not bucket.keys(its[1]) and bucket.keys(its[2])
    bucket.client.delete_object(Bucket="models", Key=next(iter(bucket.keys(f"{its[2]}/more/state"))))
    cluster.det("checkpoint", "rm", its[2], "--yes")  # Without a pattern it only looks at what is there.
    wait_for(lambda: cluster.alive(named).get(2) == "PARTIALLY_DELETED", 120)
    assert bucket.keys(f"{its[2]}/weights")

    assert bucket.keys(f"/tensorboard/experiment/{named}/")
    cluster.delete(named)
    wait_for(lambda: cluster.call(f"/api/v1/experiments/{named}")[0] == 404, 120, what=lambda: cluster.facts("experiment_deleted"))
    assert not bucket.checkpoints() & set(its.values()) and not bucket.keys(f"/tensorboard/experiment/{named}/")
    assert bucket.keys(ours[2]) and bucket.keys(f"/tensorboard/experiment/{policy}/"), "what belongs to another experiment stays"
    assert cluster.log_of(cluster.gc_tasks()[-1]["entity"][5:]), "the log stays"
    # No fact of a task, no log and no answer has the secret.
    told = json.dumps(cluster.gc_tasks()) + "".join(cluster.log_of(one["entity"][5:]) for one in cluster.gc_tasks())
    told += json.dumps([cluster.call(f"/api/v1/tasks/{one['entity'][5:]}") for one in cluster.gc_tasks()])
    assert SECRET not in told


def test_after_a_continuation_each_checkpoint_goes_from_the_bucket_that_it_was_saved_in(cluster, bucket):
    bucket.client.create_bucket(Bucket="elsewhere")
    id = cluster.run()
    before = {row["uuid"] for row in cluster.checkpoints(id)}
    storage = {"type": "s3", "bucket": "elsewhere", "prefix": "of-ours", "endpoint_url": bucket.url, "access_key": "ada", "secret_key": SECRET}
    code, said = cluster.call("/api/v1/experiments/continue", {"id": id, "overrideConfig": json.dumps({"checkpoint_storage": storage})})
    assert code == 200, said
    assert cluster.wait_end(id) == "COMPLETED", cluster.cli("experiment", "logs", str(id)).stdout[-3000:]
    after = {row["uuid"] for row in cluster.checkpoints(id)} - before
    assert len(before) == 4 and len(after) == 4
    assert before <= bucket.checkpoints() and all(bucket.keys(uuid, of="elsewhere") for uuid in after)
    order = {"checkpointUuids": sorted(before), "checkpointGlobs": ["more/**"]}
    with ThreadPoolExecutor(4) as some:  # Removals of one checkpoint may overlap.
        assert list(some.map(lambda _: cluster.call("/api/v1/checkpoints/rm", order)[0], range(4))) == [200] * 4

    def ends():
        tasks = {fact["entity"] for fact in cluster.gc_tasks()}
        found = {fact["entity"]: fact["state"] for fact in cluster.facts("task_ended") if fact["entity"] in tasks}
        return found if len(found) == len(tasks) else None
    states = wait_for(ends, 240)
    assert set(states.values()) == {"COMPLETED"}, [cluster.log_of(task[5:]) for task in states]
    assert not any("/more/" in key and key.split("/")[1] in before for key in bucket.keys()) and before <= bucket.checkpoints()
    one = min(before)
    cluster.det("checkpoint", "delete", one, "--yes")
    wait_for(lambda: not bucket.keys(one), 120, what=lambda: cluster.log_of(cluster.gc_tasks()[-1]["entity"][5:]))
    cluster.delete(id)
    wait_for(lambda: cluster.call(f"/api/v1/experiments/{id}")[0] == 404, 120, what=lambda: cluster.facts("experiment_deleted"))
    assert not bucket.checkpoints() & before and not bucket.keys(of="elsewhere")
    own = cluster.call("/api/v1/master")[1]["clusterId"]  # other tests leave files of their clusters
    assert not bucket.keys(f"{own}/tensorboard/experiment/{id}/")


def test_a_deletion_from_a_bucket_goes_on_after_kill_9(cluster, bucket):
    id = cluster.run()
    its = cluster.uuids(id)
    cluster.delete(id)
    wait_for(lambda: cluster.gc_tasks(), 60)
    cluster.kill_node()
    cluster.up()
    wait_for(lambda: cluster.call(f"/api/v1/experiments/{id}")[0] == 404, 120, what=lambda: cluster.facts("experiment_deleted"))
    assert not bucket.checkpoints() & set(its.values())
    assert len(cluster.gc_tasks()) == 1, "the task that was ordered before goes on"
    assert [fact["step"] for fact in cluster.facts("experiment_deleted")] == ["ordered", "done"]


def test_a_bucket_that_refuses_ends_the_deletion_with_its_reason(cluster, bucket):
    bucket.client.create_bucket(Bucket="short-lived")
    id = cluster.run(bucket="short-lived")
    for key in bucket.keys(of="short-lived"):
        bucket.client.delete_object(Bucket="short-lived", Key=key)
    bucket.client.delete_bucket(Bucket="short-lived")
    cluster.delete(id)
    wait_for(lambda: cluster.state(id) == "DELETE_FAILED", 120, what=lambda: cluster.log_of(cluster.gc_tasks()[-1]["entity"][5:]))
    (why,) = [fact["why"] for fact in cluster.facts("experiment_deleted") if fact["step"] == "failed"]
    assert "NoSuchBucket" in why and SECRET not in why, why
    (task,) = cluster.gc_tasks()
    assert f"Checkpoint GC (Experiment {id}) crashed: " in cluster.log_of(task["entity"][5:])
    runs = [fact for fact in cluster.facts("run_started") if fact["entity"] == task["entity"]]
    assert len(runs) == 3, "it was tried again"
    bucket.client.create_bucket(Bucket="short-lived")
    cluster.delete(id)
    wait_for(lambda: cluster.call(f"/api/v1/experiments/{id}")[0] == 404, 120, what=lambda: cluster.facts("experiment_deleted"))
