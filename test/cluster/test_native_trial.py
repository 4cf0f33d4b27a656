"""Trials in C++ as a user has them: built outside of the tree against the installed package, started by hand and on a cluster."""

import json
import os
import pathlib
import random
import struct
import subprocess

import pytest

from cluster_under_test import BINARY, Cluster, free_port, wait_for
from test_processes import Processes

BUILD = pathlib.Path(BINARY).parent
SOURCE = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program of test/data/native_trial, built as by a user who has only the package."""
    prefix, build = tmp_path_factory.mktemp("prefix"), tmp_path_factory.mktemp("build")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "-S", SOURCE / "test/data/native_trial", "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}"], check=True,
                   stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
    return build / "outside"


def by_hand(program, folder, *flags, ranks=1, name="run", check=True, **env):
    """Starts the ranks of one run as torchrun would, and returns the standard error of rank 0."""
    env = {**os.environ, "TROUPE_RUN_NAME": name, "MASTER_PORT": f"{name}{os.getpid()}", **env}
    env.pop("TROUPE_HARNESS", None)
    started = [subprocess.Popen([program, *flags], cwd=folder, stderr=subprocess.PIPE, text=True,
                                env={"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), **env, "RANK": str(r), "LOCAL_RANK": str(r)})
               for r in range(ranks)]
    texts = [p.communicate(timeout=300)[1] for p in started]
    assert not check or all(p.returncode == 0 for p in started), texts
    return texts[0]


def losses(folder, name):
    rows = [json.loads(line) for line in (folder / "troupe-runs" / name / "reports.jsonl").read_text().splitlines()]
    return [row["metrics"]["loss"] for row in rows if row["group"] == "training"]


def last_weights(folder, name):
    run = folder / "troupe-runs" / name
    uuid = json.loads((run / "checkpoints.jsonl").read_text().splitlines()[-1])["uuid"]
    return (run / "checkpoints" / uuid / "weights").read_bytes()


def test_alone_it_shows_its_progress_and_a_flag_is_a_hyperparameter(program, tmp_path):
    text = by_hand(program, tmp_path, "--lr=0.1")
    assert "step 200/200 (100 %)" in text and "validation at step 200:  distance" in text, text
    assert struct.unpack("2d", last_weights(tmp_path, "run")) == pytest.approx((3, -1), abs=1e-6)
    missing = by_hand(program, tmp_path, check=False)
    assert "the hyperparameter 'lr' is not given" in missing and "--lr=VALUE" in missing, missing


def test_two_ranks_with_half_the_batch_have_the_curve_of_one(program, tmp_path):
    # The learning rate is so small that the loss does not reach 0, where only rounding is left of the loss.
    by_hand(program, tmp_path, "--lr=0.002", name="one")
    by_hand(program, tmp_path, "--lr=0.002", name="two", ranks=2)
    one, two = losses(tmp_path, "one"), losses(tmp_path, "two")
    assert len(one) == len(two) == 200
    for a, b in zip(one, two):
        assert b == pytest.approx(a, rel=1e-5)


def test_ranks_that_meet_over_tcp_have_the_bits_of_those_that_share_memory(program, tmp_path):
    by_hand(program, tmp_path, "--lr=0.002", name="shm", ranks=3)
    by_hand(program, tmp_path, "--lr=0.002", name="tcp", ranks=3, TROUPE_COLLECTIVE="tcp", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    assert last_weights(tmp_path, "tcp") == last_weights(tmp_path, "shm")
    assert losses(tmp_path, "tcp") == losses(tmp_path, "shm")
    nowhere = by_hand(program, tmp_path, "--lr=0.002", name="lost", check=False, WORLD_SIZE="2", LOCAL_WORLD_SIZE="1", MASTER_ADDR="", MASTER_PORT="29500")
    assert "MASTER_ADDR does not say where the ranks meet" in nowhere, nowhere


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_run_that_went_on_from_a_checkpoint_has_the_same_bits(program, tmp_path, ranks):
    seed = random.randrange(1 << 30)
    batches = random.Random(seed).randrange(3, 199)
    by_hand(program, tmp_path, "--lr=0.002", name="whole", ranks=ranks)
    by_hand(program, tmp_path, "--lr=0.002", f"--batches={batches}", name="parts", ranks=ranks)
    by_hand(program, tmp_path, "--lr=0.002", name="parts", ranks=ranks, TROUPE_RESUME="parts")
    assert last_weights(tmp_path, "parts") == last_weights(tmp_path, "whole"), f"seed {seed}, interrupted after {batches}"
    assert losses(tmp_path, "parts") == losses(tmp_path, "whole")


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path) as c:
        c.up(slots=2)
        yield c


def submit(cluster, program, hparams, slots=2, restarts=1, more=""):
    job = cluster.root / "job"
    job.mkdir(exist_ok=True)
    config = cluster.root / "job.yaml"
    config.write_text(f"""
name: native
entrypoint: ["{program}"]
launch: per_slot
hyperparameters: {json.dumps(hparams)}
searcher: {{name: single, metric: distance}}
resources: {{slots_per_trial: {slots}}}
max_restarts: {restarts}
{more}""")
    return cluster.json("experiment", "create", str(config), str(job))["id"]


def checkpoint_weights(cluster, experiment):
    newest = max(cluster.checkpoints(experiment), key=lambda c: c["totalBatches"])
    return next(cluster.data.rglob(f"{newest['uuid']}/weights")).read_bytes()


def logs(cluster, trial):
    return cluster.cli("trial", "logs", str(trial)).stdout


def test_on_a_cluster_it_is_a_trial_like_any(cluster, program):
    experiment = submit(cluster, program, {"lr": 0.1, "batches": 200})
    trial = wait_for(lambda: cluster.trials(experiment), 20)[0]["id"]
    assert cluster.wait_end(experiment) == "COMPLETED", logs(cluster, trial)
    rows = cluster.json("trial", "metrics", str(trial))
    assert [r["totalBatches"] for r in rows if r["group"] == "validation"] == [50, 100, 150, 200]
    assert len([r for r in rows if r["group"] == "training"]) == 200
    assert 200 in {c["totalBatches"] for c in cluster.checkpoints(experiment)}  # Older ones may be deleted: save_trial_latest.


def test_paused_at_any_step_it_goes_on_to_the_same_bits(cluster, program, tmp_path):
    by_hand(program, tmp_path, "--lr=0.002", name="whole", ranks=2)
    experiment = submit(cluster, program, {"lr": 0.002, "pause_us": 100000})
    trial = wait_for(lambda: cluster.trials(experiment), 20)[0]["id"]
    wait_for(lambda: len(cluster.json("trial", "metrics", str(trial))) > 20, 30, what=lambda: logs(cluster, trial))
    cluster.cli("experiment", "pause", str(experiment))
    wait_for(lambda: cluster.state(experiment) == "PAUSED" and cluster.json("status")["slots"]["used"] == 0, 30)
    assert cluster.checkpoints(experiment), "a pause leaves a checkpoint at its step"
    cluster.cli("experiment", "activate", str(experiment))
    assert cluster.wait_end(experiment) == "COMPLETED", logs(cluster, trial)
    assert checkpoint_weights(cluster, experiment) == last_weights(tmp_path, "whole")
    steps = [r["totalBatches"] for r in cluster.json("trial", "metrics", str(trial)) if r["group"] == "training"]
    assert sorted(steps) == list(range(1, 201)), "each batch was reported once"


def test_a_killed_rank_is_one_restart_of_its_trial(cluster, program, tmp_path):
    by_hand(program, tmp_path, "--lr=0.002", name="whole", ranks=2)
    experiment = submit(cluster, program, {"lr": 0.002, "die_at": 100})
    trial = wait_for(lambda: cluster.trials(experiment), 20)[0]["id"]
    assert cluster.wait_end(experiment) == "COMPLETED", logs(cluster, trial)
    assert cluster.trials(experiment)[0]["restarts"] == 1
    assert checkpoint_weights(cluster, experiment) == last_weights(tmp_path, "whole")
    assert "rank 1 of 2 died" in logs(cluster, trial)


def test_an_operator_has_its_ranks_validate_and_save_besides_their_schedule(cluster, program):
    experiment = submit(cluster, program, {"lr": 0.002, "pause_us": 500000})
    trial = wait_for(lambda: cluster.trials(experiment), 20)[0]["id"]
    rows = lambda group: [r["totalBatches"] for r in cluster.json("trial", "metrics", str(trial)) if r["group"] == group]
    wait_for(lambda: rows("training"), 30, what=lambda: logs(cluster, trial))
    send = lambda actor, message: cluster.cli("shell", "-o", "json", "-e", f":rw; send {actor} {message}").stdout
    assert '"ranks":2' in send(f"worker/{trial}.1/1", "validate").replace(" ", "")
    wait_for(lambda: any(step % 50 for step in rows("validation")), 20, what=lambda: logs(cluster, trial))
    assert '"ranks":2' in send(f"trial/{trial}", "checkpoint").replace(" ", "")
    wait_for(lambda: any(c["totalBatches"] % 70 for c in cluster.checkpoints(experiment)), 20, what=lambda: logs(cluster, trial))
    cluster.cli("experiment", "kill", str(experiment))


def rank_processes(program):
    """The pids of the ranks that run now, by rank."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.readlink(f"/proc/{entry}/exe") == str(program):
                    env = pathlib.Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
                    found[next(int(x[5:]) for x in env if x.startswith(b"RANK="))] = int(entry)
            except (OSError, StopIteration):
                continue
    return found


def test_ranks_on_two_agents_reduce_over_tcp_and_a_killed_one_ends_the_others_operation(program, tmp_path):
    by_hand(program, tmp_path, "--lr=0.002", name="whole", ranks=2)
    cluster = Processes(tmp_path)
    try:
        cluster.master()
        for name in ("a1", "a2"):
            cluster.agent(name)
        wait_for(lambda: cluster.alive_agents() == 2, 30)
        experiment = submit(cluster, program, {"lr": 0.002, "die_at": 100}, more="environment: {environment_variables: [TROUPE_COLLECTIVE=tcp]}\n")
        trial = wait_for(lambda: cluster.trials(experiment), 20)[0]["id"]
        assert cluster.wait_end(experiment) == "COMPLETED", logs(cluster, trial)
        assert cluster.trials(experiment)[0]["restarts"] == 1
        said = logs(cluster, trial)
        assert "collective tcp" in said and "rank 1 of 2 died" in said, said
        assert checkpoint_weights(cluster, experiment) == last_weights(tmp_path, "whole"), "the bits of two ranks on one host"
    finally:
        cluster.close()


@pytest.mark.parametrize("example", ["digits-native", "digits-ddp", "digits-libtorch"])
def test_the_example_runs_as_it_is(tmp_path, example):
    cluster = Cluster(tmp_path)
    try:
        done = cluster.cli("run", str(SOURCE / f"configs/experiments/{example}.yaml"), timeout=300)
        assert "COMPLETED" in done.stdout + done.stderr, (done.stdout, done.stderr)
    finally:
        cluster.close()
