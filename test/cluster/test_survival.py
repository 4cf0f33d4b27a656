"""Whichever process dies, the search ends as if none had: real processes and kill -9."""

import os
import pathlib
import random
import signal
import subprocess

import pytest

from cluster_under_test import BINARY, Cluster, moment, wait_for

TRIALS = 12


@pytest.fixture
def cluster(tmp_path):
    one = Cluster(tmp_path)
    yield one
    one.close()


def pending(pid, number):
    """Whether the process has not taken this signal yet. A second one would be lost until then."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return any(int(line.split()[1], 16) & 1 << number - 1 for line in lines if line.startswith(("SigPnd:", "ShdPnd:")))


def kill_script(cluster, experiment):
    """Kills the script of the experiment: the process that has started no other. The others are its sandbox and shells. Returns False
    where a process ends meanwhile."""
    mine = set()
    try:
        for pid, words in cluster.describe_tree():
            if b"job.py" in words and f"\0DET_EXPERIMENT_ID={experiment}\0".encode() in b"\0" + pathlib.Path(f"/proc/{pid}/environ").read_bytes():
                mine.add(pid)
        parents = {int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in mine}
        (script,) = mine - parents
        os.kill(script, signal.SIGKILL)
    except (OSError, ValueError):
        return False
    return True


def undisturbed_hparams(tmp_path_factory):
    one = Cluster(tmp_path_factory.mktemp("undisturbed"))
    try:
        one.up()
        experiment = one.submit(TRIALS, 0.0)
        assert one.wait_end(experiment) == "COMPLETED"
        return one.check_books(experiment, TRIALS)
    finally:
        one.close()


def test_twenty_kills_of_the_whole_tree(cluster, tmp_path_factory):
    wanted = undisturbed_hparams(tmp_path_factory)
    seed = int(os.environ.get("TROUPE_TEST_SEED", random.randrange(1 << 30)))
    print("seed", seed)
    chance = random.Random(seed)
    cluster.up()
    experiment = cluster.submit(TRIALS, 0.15)
    for _ in range(20):
        moment(chance, 0.1, 1.6)
        cluster.kill_everything()
        cluster.up()
    assert cluster.wait_end(experiment) == "COMPLETED"
    assert cluster.check_books(experiment, TRIALS) == wanted
    assert all(row["restarts"] == 0 for row in cluster.trials(experiment))


def test_interrupts_of_a_run_leave_no_process(cluster):
    cluster.prepare(4, 0.2)
    for interrupts in (2, 3):
        before = len([a for a in cluster.acks() if a["kind"] == "validated"])
        cluster.process = subprocess.Popen([BINARY, "run", str(cluster.root / "job.yaml"), str(cluster.root / "job"), "--slots", "2"],
                                           env=cluster.env, stdout=cluster.log, stderr=cluster.log, start_new_session=True)
        wait_for(lambda: len([a for a in cluster.acks() if a["kind"] == "validated"]) > before, 30)
        for _ in range(interrupts):
            cluster.process.send_signal(signal.SIGINT)
            wait_for(lambda: cluster.process.poll() is not None or not pending(cluster.process.pid, signal.SIGINT), 30, 0.005)
        assert cluster.process.wait(timeout=120) != 0
        wait_for(lambda: not cluster.tree(), 10, what=cluster.describe_tree)


def test_a_node_that_dies_alone_finds_its_tasks_again(cluster):
    cluster.up()
    cluster.hold()
    experiment = cluster.submit(4, 0.3)
    wait_for(lambda: any(a["kind"] == "validated" for a in cluster.acks()), 30)
    cluster.kill_node()
    before = len([a for a in cluster.acks() if a["kind"] == "start"])
    cluster.up()
    cluster.go_on()
    assert cluster.wait_end(experiment) == "COMPLETED"
    cluster.check_books(experiment, 4)
    starts = [a for a in cluster.acks() if a["kind"] == "start"]
    assert all(a["run"] == 1 for a in starts), starts  # The runs were adopted, and not started again.
    assert before >= 1


def test_a_killed_task_costs_one_restart(cluster):
    cluster.up()
    job = cluster.root / "job"
    experiment = cluster.submit(1, 0.2)
    config = cluster.root / "job.yaml"
    config.write_text(config.read_text().replace("max_restarts: 0", "max_restarts: 2"))
    assert cluster.wait_end(experiment) == "COMPLETED"
    (cluster.root / "acks").unlink()
    cluster.hold(epoch=4)
    experiment = cluster.json("experiment", "create", str(config), str(job))["id"]
    wait_for(lambda: any(a["kind"] == "saved" for a in cluster.acks()), 30)
    wait_for(lambda: kill_script(cluster, experiment))
    wait_for(lambda: len([a for a in cluster.acks() if a["kind"] == "start"]) == 2, 60)
    cluster.go_on()
    assert cluster.wait_end(experiment) == "COMPLETED"
    assert cluster.trials(experiment)[0]["restarts"] == 1
    starts = [a for a in cluster.acks() if a["kind"] == "start"]
    assert [a["run"] for a in starts] == [1, 2] and starts[1]["epoch"] >= 2  # The second run began from the checkpoint.


def test_pause_and_activate_go_on_from_the_checkpoint(cluster):
    cluster.up()
    cluster.hold()
    experiment = cluster.submit(2, 0.15)
    wait_for(lambda: any(a["kind"] == "saved" for a in cluster.acks()), 30)
    cluster.cli("experiment", "pause", str(experiment))
    wait_for(lambda: cluster.json("status")["slots"]["used"] == 0, 20)
    assert cluster.state(experiment) == "PAUSED"
    cluster.go_on()
    cluster.cli("experiment", "activate", str(experiment))
    assert cluster.wait_end(experiment) == "COMPLETED"
    cluster.check_books(experiment, 2)
    assert all(row["restarts"] == 0 for row in cluster.trials(experiment))


def test_kill_and_cancel_end_it(cluster):
    cluster.up()
    cluster.hold()
    for verb in ("kill", "cancel"):
        experiment = cluster.submit(4, 0.1)
        wait_for(lambda: cluster.json("status")["slots"]["used"] > 0, 20)
        cluster.cli("experiment", verb, str(experiment))
        assert cluster.wait_end(experiment, 30) == "CANCELED"
    wait_for(lambda: cluster.json("status")["slots"]["used"] == 0, 10)
    wait_for(lambda: not [pid for pid, words in cluster.describe_tree() if b"job.py" in words], 10)


def test_a_second_up_is_refused_at_once(cluster):
    cluster.up()
    again = cluster.cli("up", "--data-dir", str(cluster.data), "--listen", "127.0.0.1:0", check=False)
    assert again.returncode != 0
    assert "in use" in again.stderr and "troupe down" in again.stderr, again.stderr


def test_down_leaves_nothing_behind(cluster):
    cluster.up()
    cluster.hold()
    cluster.submit(4, 0.3)
    wait_for(lambda: any(a["kind"] == "start" for a in cluster.acks()), 30)
    cluster.cli("down")
    cluster.process.wait(timeout=120)
    wait_for(lambda: not cluster.tree(), 10, what=cluster.describe_tree)
