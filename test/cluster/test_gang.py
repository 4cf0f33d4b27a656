"""Gangs of C++ ranks that lose ranks: one is killed or stopped, an agent dies, all die at once. Gangs that shrink and grow, and gangs
that are refused."""

import json
import math
import os
import pathlib
import random
import signal
import socket
import struct
import time

import pytest

from cluster_under_test import moment, wait_for
from test_native_trial import by_hand, last_weights, logs, program, rank_processes  # noqa: F401
from test_processes import Processes

class Gang(Processes):
    """A master and two agents of one slot each, so that a gang of two has a rank on each agent."""

    def __init__(self, root, program):
        super().__init__(root)
        self.program = program
        self.marks = self.root / "marks"
        self.marks.mkdir()

    def start_all(self, *agents):
        self.master()
        for name in agents:
            self.agent(name)
        wait_for(lambda: self.alive_agents() == len(agents), 30)

    def submit_gang(self, hparams, slots="2", restarts=5, entrypoint=None):
        job = self.root / "job"
        job.mkdir(exist_ok=True)
        config = self.root / "job.yaml"
        config.write_text(f"""
name: gang
entrypoint: {json.dumps(entrypoint or [str(self.program)])}
launch: per_slot
hyperparameters: {json.dumps(hparams)}
searcher: {{name: single, metric: distance}}
resources: {{slots_per_trial: {slots}}}
max_restarts: {restarts}
reproducibility: {{experiment_seed: 7}}
environment: {{environment_variables: ["MARKS={self.marks}"]}}
""")
        experiment = self.json("experiment", "create", str(config), str(job))["id"]
        return experiment, wait_for(lambda: self.trials(experiment), 20)[0]["id"]

    def kill_tree(self):
        left = self.tree()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return left

    def weights(self, experiment):
        newest = max(self.checkpoints(experiment), key=lambda c: c["totalBatches"])
        return next(self.data.rglob(f"{newest['uuid']}/weights")).read_bytes()

    def steps(self, trial):
        return [r["totalBatches"] for r in self.json("trial", "metrics", str(trial)) if r["group"] == "training" and not r["archived"]]

    def inside(self, rank):
        try:
            return (self.marks / str(rank)).read_bytes() == b"1"
        except OSError:
            return False

    def nothing_is_left(self, program):
        wait_for(lambda: self.json("status")["slots"]["used"] == 0, 20, what=lambda: self.json("agent", "list"))
        wait_for(lambda: not rank_processes(program), 20, what=lambda: rank_processes(program))
        wait_for(lambda: not [x for x in os.listdir("/dev/shm") if x.startswith("troupe-task-")], 20, what=lambda: os.listdir("/dev/shm"))


@pytest.fixture
def gang(tmp_path, program):  # noqa: F811
    one = Gang(tmp_path, program)
    yield one
    one.close()


def test_a_gang_meets_at_ports_that_nobody_listens_on(gang, program):  # noqa: F811
    """Other processes listen on the ports that would come first, and on those that older versions computed from the number of the first
    trial."""
    taken = []
    for port in (12350, 12360, 12365, 29400, *range(20004, 20008)):
        try:
            taken.append(socket.create_server(("0.0.0.0", port)))
        except OSError:
            pass  # Another process listens there already.
    gang.start_all("a", "b")
    experiment, trial = gang.submit_gang({"lr": 0.002, "pause_us": 20000, "batches": 600})
    ranks = wait_for(lambda: len(found := rank_processes(program)) == 2 and found, 90, 0.02, lambda: logs(gang, trial)[-2000:])
    told = []
    for rank in (0, 1):
        env = dict(pair.partition("=")[::2] for pair in pathlib.Path(f"/proc/{ranks[rank]}/environ").read_text().split("\0"))
        told.append([env[name] for name in ("DTRAIN_SSH_PORT", "TROUPE_DIST_PORT", "INTER_TRAIN_PROCESS_COMM_PORT_2", "MASTER_PORT")])
        assert env["C10D_PORT"] == env["MASTER_PORT"] and env["INTER_TRAIN_PROCESS_COMM_PORT_1"] == env["TROUPE_DIST_PORT"]
    assert told[0] == told[1] and len(set(told[0])) == 4
    assert not set(map(int, told[0])) & {one.getsockname()[1] for one in taken}
    assert gang.wait_end(experiment, 120) == "COMPLETED", logs(gang, trial)[-2000:]
    for one in taken:
        one.close()


def test_whoever_is_killed_the_model_is_that_of_the_undisturbed_run(gang, program, tmp_path):  # noqa: F811
    """Kills a random rank, the chief, an agent with its gang running, or all at once; TROUPE_KILLS times, at least half of them inside a
    collective."""
    seed, kills = int(os.environ.get("TROUPE_KILL_SEED", "11")), int(os.environ.get("TROUPE_KILLS", "6"))
    chance = random.Random(seed)
    batches = 200 + 150 * kills
    by_hand(program, tmp_path, "--lr=0.002", f"--batches={batches}", name="whole", ranks=2)
    gang.start_all("a", "b")
    experiment, trial = gang.submit_gang({"lr": 0.002, "pause_us": 10000, "batches": batches}, restarts=kills + 1)
    kinds = ["rank", "chief", "agent", "all"]
    inside = done = by_themselves = 0
    for n in range(kills):
        kind = kinds[n % 4] if n < 4 else chance.choice(kinds)
        where = f"seed {seed}, kill {n} of {kind}"
        if gang.state(experiment) == "COMPLETED":
            break
        ranks = wait_for(lambda: len(found := rank_processes(program)) == 2 and found, 90, 0.02,
                         lambda: f"{where}: no gang again\n{logs(gang, trial)[-2000:]}")
        moment(chance, 0, 0.8)
        victim = 0 if kind == "chief" else chance.randrange(2)
        if n % 4 != 3:  # Most kills wait for a collective. What counts is the byte that says, after the death, where the rank was.
            for _ in range(2000):
                if gang.inside(victim) or set(rank_processes(program).values()) != set(ranks.values()):
                    break
                time.sleep(0.002)
        try:
            if kind in ("rank", "chief"):
                os.kill(ranks[victim], signal.SIGKILL)
                by_themselves += 1
            elif kind == "agent":
                name = chance.choice(["a", "b"])
                gang.kill_agent(name)
                if chance.random() < 0.5:  # Either its lease ends and its tasks are given away, or the next agent adopts them.
                    wait_for(lambda: gang.alive_agents() == 1, 30)
                gang.agent(name)
            else:
                for one in [gang.process, *gang.agents.values()]:
                    one.send_signal(signal.SIGKILL)
                for one in [gang.process, *gang.agents.values()]:
                    one.wait()
                wait_for(lambda: not gang.kill_tree(), 20, 0.01)
                gang.master()
                for name in ("a", "b"):
                    gang.agent(name)
        except ProcessLookupError:
            continue  # The rank had just ended by itself.
        done += 1
        inside += gang.inside(victim) if kind != "agent" else gang.inside(0) or gang.inside(1)
        if kind in ("rank", "chief"):
            wait_for(lambda: not set(rank_processes(program).values()) & set(ranks.values()), 15, 0.02, lambda: f"{where}: the others hang")
    assert gang.wait_end(experiment, 400) == "COMPLETED", f"seed {seed}\n" + logs(gang, trial)
    assert gang.weights(experiment) == last_weights(tmp_path, "whole"), f"seed {seed}"
    assert sorted(gang.steps(trial)) == list(range(1, batches + 1)), f"seed {seed}: each batch counts once"
    ends = [fact["why"] + ": " + fact["detail"] for fact in gang.facts("run_ended")]
    assert gang.trials(experiment)[0]["restarts"] <= by_themselves, f"seed {seed}\n" + "\n".join(ends)
    assert 2 * inside >= done > 0, f"seed {seed}: {inside} of {done} died inside a collective"
    gang.nothing_is_left(program)


def test_a_gang_with_a_range_goes_on_smaller_and_grows_again(gang, program, tmp_path):  # noqa: F811
    by_hand(program, tmp_path, "--lr=0.002", "--batches=1500", name="whole", ranks=2)
    gang.start_all("a", "b")
    experiment, trial = gang.submit_gang({"lr": 0.002, "pause_us": 40000, "batches": 1500}, slots="{min: 1, max: 2}")
    wait_for(lambda: len(rank_processes(program)) == 2, 30)
    wait_for(lambda: gang.checkpoints(experiment), 60, what=lambda: logs(gang, trial))
    survivor = rank_processes(program)[0]
    gang.kill_agent("b")  # The agent does not return at once, so that its sandbox ends.
    wait_for(lambda: gang.facts("allocation_resized"), 90, 0.2, lambda: gang.facts("member_lost"))
    lost, = gang.facts("member_lost")
    smaller, = gang.facts("allocation_resized")
    where = {part["agent"]: n for n, part in enumerate(gang.facts("allocation_placed")[0]["on"])}
    assert lost["agent"] == "b" and lost["rank"] == -1
    assert smaller["members"] == [1 - where["b"]] and smaller["ranks"] == 1 and not smaller["later"]
    before = len(gang.steps(trial))
    wait_for(lambda: len(gang.steps(trial)) > before + 10, 60, what=lambda: logs(gang, trial))
    assert len(gang.facts("run_started")) == 1 and gang.trials(experiment)[0]["restarts"] == 0, "the same run goes on"
    assert where == {"a": 0, "b": 1} and rank_processes(program) == {0: survivor}, "in the same process"
    gang.agent("b")
    wait_for(lambda: len(rank_processes(program)) == 2, 90, 0.2, lambda: gang.facts("allocation_resized"))
    larger = gang.facts("allocation_resized")[-1]
    assert larger["later"] and larger["ranks"] == 2
    assert len(gang.facts("run_started")) == 2
    assert gang.wait_end(experiment, 180) == "COMPLETED", logs(gang, trial)
    assert sorted(gang.steps(trial)) == list(range(1, 1501)), "each batch counts once"
    for a, b in zip(struct.unpack("2d", gang.weights(experiment)), struct.unpack("2d", last_weights(tmp_path, "whole"))):
        assert math.isclose(a, b, rel_tol=1e-5), "the batch was the same with one rank and with two"
    gang.nothing_is_left(program)


PYTHON = """
import os, time, torch, troupe, troupe.torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class Curve(troupe.torch.Trial):
    def __init__(self, ctx, p):
        self.net = ctx.wrap(nn.Linear(8, 1).double())
        self.opt = ctx.wrap(torch.optim.SGD(self.net.parameters(), 0.01))
    def train_loader(self):
        x = torch.randn(250, 8, generator=torch.Generator().manual_seed(1)).double()
        return DataLoader(TensorDataset(x, x.sum(1, keepdim=True).sin()), batch_size=32, shuffle=True)
    def train_batch(self, batch, epoch, i):
        time.sleep(p.pause)
        return {"loss": nn.functional.mse_loss(self.net(batch[0]), batch[1])}

p = troupe.params(pause=0.0, batches=100)
with open(os.environ["MARKS"] + "/ranks", "a") as file:
    file.write(os.environ["RANK"] + " of " + os.environ["WORLD_SIZE"] + "\\n")
troupe.torch.fit(Curve, batches=p.batches, checkpoint_every="20 batches", report_every=1)
troupe.validate({"distance": 0.0}, step=p.batches)
"""


def test_a_gang_of_python_ranks_starts_again_with_what_is_there_and_grows(gang):
    (gang.root / "job").mkdir()
    (gang.root / "job" / "train.py").write_text(PYTHON)
    gang.start_all("a", "b")
    began = lambda: (gang.marks / "ranks").read_text().split("\n")[:-1]  # noqa: E731
    whole, alone = gang.submit_gang({"batches": 400}, slots="1", entrypoint=["python3", "train.py"])
    assert gang.wait_end(whole, 120) == "COMPLETED", logs(gang, alone)
    assert began() == ["0 of 1"]
    experiment, trial = gang.submit_gang({"batches": 400, "pause": 0.1}, slots="{min: 1, max: 2}", restarts=0, entrypoint=["python3", "train.py"])
    wait_for(lambda: gang.checkpoints(experiment), 60, what=lambda: logs(gang, trial))
    assert sorted(began()[1:]) == ["0 of 2", "1 of 2"]
    gang.kill_agent("b")
    wait_for(lambda: len(began()) == 4, 60, 0.1, lambda: logs(gang, trial))
    assert began()[3] == "0 of 1"
    ended = gang.facts("run_ended")[-1]
    assert ended["why"] == "lost" and "b" in ended["detail"], ended
    before = len(gang.steps(trial))
    wait_for(lambda: len(gang.steps(trial)) > before + 10, 60, what=lambda: logs(gang, trial))
    gang.agent("b")
    wait_for(lambda: len(began()) == 6, 90, 0.1, lambda: logs(gang, trial))
    assert sorted(began()[4:]) == ["0 of 2", "1 of 2"]
    assert gang.wait_end(experiment, 120) == "COMPLETED", logs(gang, trial)
    assert gang.trials(experiment)[0]["restarts"] == 0, "an agent that is lost is not a failure of the trial's"
    curves = [[r["metrics"]["loss"] for r in gang.json("trial", "metrics", str(t)) if r["group"] == "training" and not r["archived"]] for t in (alone, trial)]
    assert [len(one) for one in curves] == [400, 400], "each batch counts once"
    for a, b in zip(*curves):
        assert math.isclose(a, b, rel_tol=1e-5), "the batch was the same with one rank and with two"


def test_fewer_slots_than_the_most_start_at_once(gang, program):  # noqa: F811
    gang.start_all("a")
    experiment, trial = gang.submit_gang({"lr": 0.1, "batches": 100}, slots="{min: 1, max: 4}")
    assert gang.wait_end(experiment, 60) == "COMPLETED", logs(gang, trial)
    assert gang.facts("allocation_placed")[0]["on"] == [{"agent": "a", "slots": [0]}]


def test_a_rank_that_is_stopped_is_noticed(gang, program, tmp_path):  # noqa: F811
    gang.start_all("a", "b")
    experiment, trial = gang.submit_gang({"lr": 0.002, "pause_us": 50000, "batches": 300})
    ranks = wait_for(lambda: len(found := rank_processes(program)) == 2 and found, 30)
    wait_for(lambda: len(gang.steps(trial)) > 10, 60, what=lambda: logs(gang, trial))
    os.kill(ranks[1], signal.SIGSTOP)
    wait_for(lambda: not set(rank_processes(program).values()) & set(ranks.values()), 45, what=lambda: rank_processes(program))
    assert gang.wait_end(experiment, 90) == "COMPLETED", logs(gang, trial)
    assert gang.trials(experiment)[0]["restarts"] == 1
    gang.nothing_is_left(program)


def test_a_rank_alone_that_is_stopped_is_noticed_by_its_lease(gang, program):  # noqa: F811
    gang.start_all("a")
    experiment, trial = gang.submit_gang({"lr": 0.002, "pause_us": 50000, "batches": 300}, slots="1")
    ranks = wait_for(lambda: len(found := rank_processes(program)) == 1 and found, 30)
    wait_for(lambda: len(gang.steps(trial)) > 10, 60, what=lambda: logs(gang, trial))
    os.kill(ranks[0], signal.SIGSTOP)
    wait_for(lambda: gang.facts("member_lost"), 60, 0.3)
    assert "silent for" in gang.facts("member_lost")[0]["why"]
    assert gang.wait_end(experiment, 90) == "COMPLETED", logs(gang, trial)
    assert gang.trials(experiment)[0]["restarts"] == 1


def test_the_shell_shows_what_a_worker_took_in_its_process(gang, program):  # noqa: F811
    gang.start_all("a")
    experiment, trial = gang.submit_gang({"lr": 0.002, "pause_us": 30000, "batches": 1000}, slots="1")
    worker = f"worker/{trial}.1"

    def took():
        asked = gang.cli("shell", "-o", "json", "-e", f"msgs {worker}", check=False)
        rows = json.loads(asked.stdout) if asked.returncode == 0 else []
        return rows if any("train_until" in row["text"] for row in rows) else None

    rows = wait_for(took, 60)
    order = next(row for row in rows if "train_until" in row["text"])
    assert order["type"] == "order_arrived" and order["from"] == f"allocation/{trial}.1" and order["correlation"] == f"trial/{trial}"
    assert order["run_us"] > 0 and order["wait_us"] is not None and "1000" in order["text"]
    phases = [row["text"] for row in rows if row["type"] == "phase_entered"]
    assert any("training" in text for text in phases) and all(row["type"] != "worker_frame" for row in rows)
    state = json.loads(gang.cli("shell", "-o", "json", "-e", f"state {worker}").stdout)["state"]
    assert state["phase"] == "training" and state["until"] == 1000
    done = gang.cli("shell", "-e", ":rw", "-e", f"restart {worker}", check=False)
    assert f"{worker} is back, made again by agent_node" in done.stdout, (done.stdout, done.stderr)
    assert gang.wait_end(experiment, 90) == "COMPLETED", logs(gang, trial)


OTHER_VERSION = """
import os, sys, msgpack, zmq
s = zmq.Context().socket(zmq.DEALER)
s.connect(os.environ["TROUPE_HARNESS"])
send = lambda *f: s.send(msgpack.packb(f))
send("hello", 1, os.environ["TROUPE_TASK_TOKEN"], os.environ["TROUPE_ALLOCATION_ID"], 0, "0" * 32, 0)
send("worker", 7, msgpack.packb(["status", [0, 0, 0, 0, 0]]))
while True:
    frame = msgpack.unpackb(s.recv())
    if frame[0] == "error":
        print(frame[1], frame[2], flush=True)
        sys.exit(1)
"""


def test_a_worker_of_another_version_is_refused_and_the_trial_fails_of_that(gang):
    gang.start_all("a")
    (gang.root / "job").mkdir()
    (gang.root / "job" / "old.py").write_text(OTHER_VERSION)
    experiment, trial = gang.submit_gang({}, slots="1", restarts=0, entrypoint=["python3", "old.py"])
    assert gang.wait_end(experiment, 60) == "ERROR"
    ended = [f for f in gang.facts("run_ended") if f["entity"] == f"trial/{trial}"]
    assert "speaks version 7 of the worker protocol" in ended[-1]["detail"], (ended, logs(gang, trial))
    assert "worker the worker of rank 0 speaks version 7" in logs(gang, trial)
