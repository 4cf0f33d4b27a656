"""Pools that know whose job is urgent and which slots each user has had, in clusters of real processes."""

import json
import subprocess

import pytest

from cluster_under_test import BINARY, Cluster, wait_for

CONFIG = """
name: {name}
entrypoint: python3 job.py
hyperparameters: {{x: 1}}
searcher: {{name: single, metric: loss}}
resources: {{slots_per_trial: {slots}, {more}}}
max_restarts: 0
environment: {{environment_variables: ["JOB_DIR={root}", "EPOCH_S={epoch_s}"]}}
"""


@pytest.fixture
def lab(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()


def start(lab, pool, slots=2):
    (lab.root / "cluster.yaml").write_text(f"troupe: 1\npools: {{main: {{default: true, {pool}}}}}\n")
    lab.up(slots=slots)
    lab.cli("apply", str(lab.root / "cluster.yaml"), "--yes")


def submit(lab, name, slots, more, epoch_s):
    lab.prepare(1, epoch_s)
    file = lab.root / f"{name}.yaml"
    file.write_text(CONFIG.format(name=name, slots=slots, more=more, root=lab.root, epoch_s=epoch_s))
    return lab.json("experiment", "create", str(file), str(lab.root / "job"))["id"]


def acks(lab, trial, kind):
    return [x for x in lab.acks() if x["trial"] == trial and x["kind"] == kind]


def trial_of(lab, experiment):
    return wait_for(lambda: lab.trials(experiment), 30)[0]["id"]


def test_an_urgent_job_runs_now_and_who_made_room_goes_on_from_its_checkpoint(lab):
    start(lab, "scheduler: priority, preemption: true")
    lab.hold(epoch=4)
    patient = submit(lab, "patient", 2, "priority: 50", epoch_s=0.05)
    victim = trial_of(lab, patient)
    wait_for(lambda: len(acks(lab, victim, "saved")) >= 1, 60)
    urgent = submit(lab, "urgent", 2, "priority: 10", epoch_s=0.05)
    first = trial_of(lab, urgent)
    wait_for(lambda: acks(lab, first, "start"), 60)
    assert len(acks(lab, victim, "end")) == 1, "the victim has saved and left first"
    lab.go_on()
    assert lab.wait_end(urgent) == "COMPLETED"
    assert lab.wait_end(patient) == "COMPLETED"
    starts = acks(lab, victim, "start")
    assert [x["run"] for x in starts] == [1, 2] and starts[1]["epoch"] >= 1, starts
    assert lab.trials(patient)[0]["restarts"] == 0, "a preemption is no failure"
    assert not list(lab.root.glob("double-*"))


PLAIN = """
import os, pathlib, sys, time
root = pathlib.Path(os.environ["JOB_DIR"])
begun = root / f"begun-{len(list(root.glob('begun-*')))}"
begun.write_text("")
while not (root / "end").exists():
    time.sleep(0.05)
sys.exit(int((root / "end").read_text()))
"""


@pytest.mark.parametrize("code", [0, 3])
def test_a_script_that_cannot_hear_of_a_preemption_is_judged_by_its_own_end(lab, code):
    start(lab, "scheduler: priority, preemption: true", slots=1)
    lab.prepare(1, 0.05)
    (lab.root / "job" / "job.py").rename(lab.root / "job" / "urgent.py")
    (lab.root / "job" / "plain.py").write_text(PLAIN)

    def create(name, script, priority):
        file = lab.root / f"{name}.yaml"
        text = CONFIG.format(name=name, slots=1, more=f"priority: {priority}", root=lab.root, epoch_s=0.05)
        file.write_text(text.replace("job.py", script).replace("max_restarts: 0", "max_restarts: 1"))
        return lab.json("experiment", "create", str(file), str(lab.root / "job"))["id"]

    def begun():
        return len(list(lab.root.glob("begun-*")))

    plain = create("plain", "plain.py", 50)
    wait_for(lambda: begun() == 1, 60)
    urgent = trial_of(lab, create("urgent", "urgent.py", 10))
    wait_for(lambda: lab.json("explain", "trial", str(urgent))["reason"]["code"] == "preempting", 30)
    (lab.root / "end.new").write_text(str(code))
    (lab.root / "end.new").rename(lab.root / "end")
    wait_for(lambda: acks(lab, urgent, "end"), 60)
    assert lab.wait_end(plain) == ("COMPLETED" if code == 0 else "ERROR")
    assert (begun(), lab.trials(plain)[0]["restarts"]) == ((1, 0) if code == 0 else (2, 1))


def test_without_preemption_the_urgent_job_is_next(lab):
    start(lab, "scheduler: priority", slots=1)
    lab.hold()
    running = submit(lab, "running", 1, "priority: 50", epoch_s=0.02)
    wait_for(lambda: acks(lab, trial_of(lab, running), "start"), 60)
    later = submit(lab, "later", 1, "priority: 50", epoch_s=0.02)
    urgent = submit(lab, "urgent", 1, "priority: 10", epoch_s=0.02)
    wait_for(lambda: lab.json("status")["waiting"] == 2, 30)
    lab.go_on()
    for one in (running, later, urgent):
        assert lab.wait_end(one) == "COMPLETED"
    order = [json.loads(x)["trial"] for x in (lab.root / "acks").read_text().splitlines() if '"start"' in x]
    assert order == [trial_of(lab, running), trial_of(lab, urgent), trial_of(lab, later)]


def test_a_restarted_master_keeps_the_order_and_who_holds_what(lab):
    start(lab, "scheduler: priority, preemption: true", slots=1)
    lab.hold()
    running = submit(lab, "running", 1, "priority: 10", epoch_s=0.02)
    held = trial_of(lab, running)
    wait_for(lambda: acks(lab, held, "validated"), 60)
    later = submit(lab, "later", 1, "priority: 50", epoch_s=0.02)
    urgent = submit(lab, "urgent", 1, "priority: 20", epoch_s=0.02)
    wait_for(lambda: lab.json("status")["waiting"] == 2, 30)
    lab.process.kill()
    lab.process.wait()
    lab.up(slots=1)
    wait_for(lambda: lab.json("status")["waiting"] == 2, 30)
    lab.go_on()
    for one in (running, urgent, later):
        assert lab.wait_end(one) == "COMPLETED"
    lines = map(json.loads, (lab.root / "acks").read_text().splitlines())
    order = [x["trial"] for x in lines if x["kind"] == "start"]
    assert [x for x in order if x != held] == [trial_of(lab, urgent), trial_of(lab, later)]
    assert not list(lab.root.glob("double-*"))


def test_max_slots_of_an_experiment_holds(lab):
    start(lab, "scheduler: fair", slots=2)
    file, job = lab.prepare(4, 0.1)
    with open(file) as text:
        config = text.read() + "\nresources: {slots_per_trial: 1, max_slots: 1}\n"
    with open(file, "w") as out:
        out.write(config)
    experiment = lab.json("experiment", "create", file, job)["id"]
    seen = set()

    def over():
        status = lab.json("status")
        seen.add(status["slots"]["used"])
        return status["experimentsActive"] == 0

    wait_for(over, 120)
    assert lab.wait_end(experiment) == "COMPLETED"
    assert seen == {0, 1} or seen == {1}, seen


def test_one_pool_by_hand():
    lines = [
        {"pool": {"scheduler": "priority", "preemption": True}},
        {"event": "agent_up", "agent": "gpu01", "slots": 2},
        {"event": "request", "id": "a", "slots": 2, "job": "low", "at": 1},
        {"event": "job", "job": "high", "priority": 10},
        {"event": "request", "id": "b", "slots": 1, "job": "high", "at": 2},
        {"event": "request", "id": "b"},
        {"event": "explain", "id": "b"},
        {"event": "release", "id": "a", "at": 3},
    ]
    done = subprocess.run([BINARY, "pool", "replay", "-"], input="\n".join(map(json.dumps, lines)) + "\n", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    out = [json.loads(x) for x in done.stdout.splitlines()]
    assert len(out) == len(lines)
    assert out[2]["actions"] == [{"grant": "a", "on": [{"agent": "gpu01", "slots": [0, 1]}], "backfilled": False}]
    assert out[4]["actions"] == [{"preempt": "a", "for": "b", "reason": "priority"}]
    assert "slots" in out[5]["error"]
    assert out[6]["explain"]["reason"]["code"] == "preempting"
    assert out[7]["actions"] == [{"grant": "b", "on": [{"agent": "gpu01", "slots": [0]}], "backfilled": False}]


def test_by_hand_a_victim_says_for_whom_it_makes_room():
    lines = [
        {"pool": {"scheduler": "priority", "preemption": True}},
        {"event": "agent_up", "agent": "gpu01", "slots": 2},
        {"event": "request", "id": "a", "slots": 2, "job": "low"},
        {"event": "job", "job": "high", "priority": 10},
        {"event": "request", "id": "b", "slots": 1, "job": "high", "at": 1},
        {"event": "explain", "id": "a"},
        {"event": "explain", "id": "b"},
        {"event": "batch", "events": [{"event": "explain", "id": "a"}]},
        {"event": "agent_up", "agent": "gpu02", "slots": 0},
        {"event": "agent_down", "agent": "gpu02"},
        {"event": "agent_change", "agent": "gpu02", "enabled": False},
        {"event": "agent_down", "agent": "gpu02"},
        {"event": "agent_change", "agent": "gpu03", "enabled": False},
    ]
    done = subprocess.run([BINARY, "pool", "replay", "-"], input="\n".join(map(json.dumps, lines)) + "\n", capture_output=True, text=True, timeout=120)
    out = [json.loads(x) for x in done.stdout.splitlines()]
    assert out[5]["explain"]["reason"] == {"code": "stopping", "text": "it was preempted, and saves; its slots go to b"}
    free = out[6]["explain"]["wouldFree"][0]
    assert free["allocation"] == "a" and free["stopping"] and free["preemptedFor"] == "b", free
    assert out[10] == {"actions": []}, "an agent that is away may be disabled"
    assert "one that is there" in out[11]["error"] and "one that has come" in out[12]["error"], out[11:]
    assert out[7]["error"].endswith("one of agent_up, agent_down, agent_change, job, request, held, release, time"), out[7]


def test_what_a_job_by_hand_does_not_name_stays():
    lines = [
        {"pool": {"scheduler": "priority"}},
        {"event": "agent_up", "agent": "a", "slots": 1},
        {"event": "job", "job": "j", "priority": 5, "max_slots": 1},
        {"event": "job", "job": "j", "weight": 2},
        {"event": "request", "id": "first", "slots": 1, "job": "other"},
        {"event": "request", "id": "later", "slots": 1, "job": "other"},
        {"event": "request", "id": "urgent", "slots": 1, "job": "j"},
        {"event": "explain", "id": "urgent"},
        {"event": "job", "job": "j", "priority": None},
        {"event": "explain", "id": "urgent"},
    ]
    done = subprocess.run([BINARY, "pool", "replay", "-"], input="\n".join(map(json.dumps, lines)) + "\n", capture_output=True, text=True, timeout=120)
    out = [json.loads(x) for x in done.stdout.splitlines()]
    assert out[7]["explain"]["position"] == 1, "its priority stays"
    assert out[9]["explain"]["position"] == 2, "null takes it back"
    assert out[9]["explain"]["reason"] == {"code": "behind", "text": "waits for 1 slot behind later"}
