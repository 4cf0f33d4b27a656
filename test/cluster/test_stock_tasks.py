"""Tasks as Determined's unmodified client sees them: their environment, /run/determined and DET_MASTER, for every form of an entrypoint,
as root and as an ordinary user. Needs the wheel `determined` 0.38.1 in the interpreter that runs the tests, which tasks use too."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from cluster_under_test import BINARY, Cluster, wait_for

# Writes what the client sees of its task, then waits until the test opens the gate.
LOOK = """
import json, os, pathlib, sys, time, urllib.request
import determined as det
info = det.get_cluster_info()
root = pathlib.Path(os.environ["JOB_DIR"])
seen = {
    "argv": sys.argv[1:], "cwd": os.getcwd(), "hook": os.environ.get("HOOK"), "python": sys.executable, "uid": os.getuid(),
    "info": json.load(urllib.request.urlopen(info.master_url + "/info")),
    "files": sorted(str(p) for p in pathlib.Path("/run/determined").rglob("*") if "__pycache__" not in p.parts),
    "trial": info.trial.trial_id, "experiment": info.trial.experiment_id, "slots": info.slot_ids, "hparams": info.trial.hparams,
    "config": info.trial._config, "addrs": info.container_addrs, "counts": info.container_slot_counts,
    "latest": info.latest_checkpoint, "gpus": info.gpu_uuids, "seed": info.trial.trial_seed, "run": info.trial._trial_run_id,
    "from_env": vars(det.ClusterInfo._from_env()) | {"_trial_info": None, "_rendezvous_info": None, "_resources_info": None},
    "master": info.master_url, "token": info.session_token, "env": dict(os.environ), "model": os.listdir("/run/determined/train/model"),
}
(root / f"{info.trial.trial_id}.new").write_text(json.dumps(seen))
os.rename(root / f"{info.trial.trial_id}.new", root / f"{info.trial.trial_id}.json")
while not (root / "gate").exists():
    time.sleep(0.05)
print("INFO: the end")
"""

# The group is destroyed at the end, as in all these tests. Otherwise a thread of Gloo may free the last tensor while the interpreter
# ends, and PyTorch then ends the process with SIGABRT (github.com/pytorch/pytorch/issues/190489).
RANKS = """
import os, sys, torch.distributed as dist, torch
dist.init_process_group("gloo")
x = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(x)
print(f"sum {int(x.item())} of {dist.get_world_size()} by {dist.get_rank()}", flush=True)
print(f"WARNING: {' '.join(sys.argv[1:])}", file=sys.stderr, flush=True)
dist.destroy_process_group()
"""

# The script that the documentation of the Core API shows. At step WAIT_AT it waits until the test opens the gate, so that something can
# happen there.
CORE = """
import json, os, pathlib, sys, time
import determined as det
from determined import core
root, wait_at = pathlib.Path(os.environ["JOB_DIR"]), int(os.environ.get("WAIT_AT", 0))
info = det.get_cluster_info()
with core.init(tensorboard_mode=core.TensorboardMode.MANUAL) as ctx:
    if info.trial.hparams["lr"] > 1:
        ctx.train.report_early_exit(core.EarlyExitReason.INVALID_HP)
        sys.exit(0)
    steps = 0
    if info.latest_checkpoint:
        with ctx.checkpoint.restore_path(info.latest_checkpoint) as path:
            steps = json.loads((path / "state.json").read_text())["steps"]
        print(f"INFO: goes on from {steps}", flush=True)
    for op in ctx.searcher.operations():
        while steps < op.length:
            steps += 1
            ctx.train.report_training_metrics(steps_completed=steps, metrics={"loss": 1 / steps})
            if steps % 5 == 0:
                with ctx.checkpoint.store_path({"steps_completed": steps}) as (path, uuid):
                    (path / "state.json").write_text(json.dumps({"steps": steps}))
                op.report_progress(steps)
            if steps == wait_at and info.trial._trial_run_id == 1:
                (root / "there").touch()
                while not (root / "gate").exists() and not ctx.preempt.should_preempt():
                    time.sleep(0.05)
            if ctx.preempt.should_preempt():
                print("INFO: asked to stop", flush=True)
                sys.exit(0)
        ctx.train.report_validation_metrics(steps_completed=steps, metrics={"loss": 1 / steps})
        op.report_completed(1 / steps)
"""

DIGITS = """
import importlib.util, numpy, torch
from determined import pytorch

class DigitsTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(64, 10))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("lr")))
        # What load_digits() gives; the modules of scikit-learn cost more than this training.
        file = importlib.util.find_spec("sklearn").submodule_search_locations[0] + "/datasets/data/digits.csv.gz"
        rows = torch.tensor(numpy.loadtxt(file, delimiter=","), dtype=torch.float32)
        x, y = rows[:, :64] / 16, rows[:, 64].long()
        self.train, self.test = (torch.utils.data.TensorDataset(x[a:b], y[a:b]) for a, b in ((0, 1400), (1400, 1797)))
    def build_training_data_loader(self):
        return pytorch.DataLoader(self.train, batch_size=self.context.get_per_slot_batch_size(), shuffle=True)
    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.test, batch_size=self.context.get_per_slot_batch_size())
    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}
    def evaluate_batch(self, batch):
        out = self.model(batch[0])
        return {"loss": torch.nn.functional.cross_entropy(out, batch[1]), "accuracy": (out.argmax(1) == batch[1]).float().mean()}
"""

CONFIG = """
name: stock
entrypoint: {entrypoint}
hyperparameters: {{lr: {lr}, deep: {{width: 3}}, global_batch_size: 64}}
searcher: {{name: single, metric: loss, max_length: {length}}}
resources: {{slots_per_trial: {slots}}}
max_restarts: 0
environment: {{environment_variables: ["JOB_DIR={root}", "WAIT_AT={wait_at}"]}}
"""

HOOK = """
export HOOK=ran-$((6 * 7))
words=(bash has arrays)
[[ ${#words[@]} == 3 ]]
"""


class Stock(Cluster):
    def __init__(self, root, python_bin, user):
        super().__init__(root)
        self.user = user
        self.python_bin = python_bin
        # The environment of a user with a virtual environment, whose python3 is the first on PATH.
        self.env["PATH"] = python_bin + ":" + self.env["PATH"]
        (self.root / "jobs").mkdir()
        if user != os.getuid():
            os.chown(self.root, user, user)
            os.chown(self.root / "jobs", user, user)

    def up(self, slots=2):
        if self.user == os.getuid():
            return super().up(slots)
        self.process = self.as_user("up", "--data-dir", str(self.data), "--listen", "127.0.0.1:0", "--slots", str(slots))
        wait_for(self.answers)

    def as_user(self, *words):
        """Starts the program as a process of the account `user`."""
        place = self.root / "bin"
        if not place.exists():
            place.mkdir()
            for program in (BINARY, os.path.join(os.path.dirname(BINARY), "troupe-task")):
                shutil.copy(program, place)
        return subprocess.Popen(["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups", str(place / "troupe"), *words],
                                env=self.env, stdout=self.log, stderr=self.log, start_new_session=True)

    def submit_files(self, entrypoint, files, slots=1, lr=0.5, length=1, wait_at=0):
        number = len(list((self.root / "jobs").iterdir()))
        job = self.root / "jobs" / str(number)
        job.mkdir()
        for name, text in files.items():
            (job / name).write_text(text)
        config = self.root / f"job-{number}.yaml"
        config.write_text(CONFIG.format(root=self.root, entrypoint=json.dumps(entrypoint), slots=slots, lr=lr, length=length,
                                        wait_at=wait_at))
        return self.json("experiment", "create", str(config), str(job))["id"]

    def seen(self, count):
        def all_of_them():
            found = sorted(self.root.glob("[0-9]*.json"))
            return found if len(found) == count else None
        return [json.loads(path.read_text()) for path in wait_for(all_of_them, 120, what=self.everything_said)]

    def everything_said(self):
        return [self.logs(trial["id"]) for e in self.json("experiment", "list") for trial in self.trials(e["id"])]

    def logs(self, trial):
        return self.cli("trial", "logs", str(trial), check=False).stdout

    def steps(self, trial, group):
        return [m["totalBatches"] for m in self.json("trial", "metrics", str(trial)) if m["group"] == group]

    def wait_there(self):
        wait_for(lambda: (self.root / "there").exists(), 120, what=self.everything_said)

    def open_gate(self):
        (self.root / "gate").touch()


def python_for(user, root):
    """A folder with a python3 that `user` may run and that has the wheel: ours, or the one of the system with our packages."""
    if user == os.getuid():
        return os.path.dirname(sys.executable)
    if os.getuid() != 0:
        pytest.skip("another user is needed, and only root may become one")
    packages = next(p for p in sys.path if p.endswith("site-packages"))
    made = subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(root / "venv")], capture_output=True)
    found = list((root / "venv").glob("lib/python*/site-packages"))
    if made.returncode or not found or found[0].parent.name != pathlib.Path(packages).parent.name:
        pytest.skip("the system has no python3 of this version for that user")
    (found[0] / "ours.pth").write_text(packages + "\n")
    return str(root / "venv" / "bin")


@pytest.fixture(params=[os.getuid(), 65534], ids=["self", "nobody"])
def cluster(request):
    # not below pytest's folder, which other users cannot enter
    root = pathlib.Path(subprocess.run(["mktemp", "-d", "-p", "/var/tmp"], capture_output=True, text=True).stdout.strip())
    root.chmod(0o755)
    it = None
    try:
        it = Stock(root, python_for(request.param, root), request.param)
        it.up()
        yield it
    finally:
        if it:
            it.close()
        shutil.rmtree(root, ignore_errors=True)


ONLY_SELF = pytest.mark.parametrize("cluster", [os.getuid()], ids=["self"], indirect=True)


def host_run():
    return sorted(str(p) for p in pathlib.Path("/run").glob("determined*"))


def test_two_tasks_at_once_have_all_that_the_client_reads(cluster):
    before = host_run()
    first = cluster.submit_files("python3 look.py", {"look.py": LOOK, "startup-hook.sh": HOOK})
    second = cluster.submit_files(["python3", "look.py", "a b", "$HOME"], {"look.py": LOOK})
    one, two = sorted(cluster.seen(2), key=lambda s: s["experiment"])
    assert host_run() == before
    assert (one["experiment"], two["experiment"]) == (first, second)
    assert one["hook"] == "ran-42" and two["hook"] is None
    assert one["argv"] == [] and two["argv"] == ["a b", "$HOME"]
    assert one["token"] and two["token"] and one["token"] != two["token"]
    assert sorted(one["slots"] + two["slots"]) == [0, 1]
    for seen in (one, two):
        assert seen["uid"] == cluster.user
        assert seen["cwd"] == "/run/determined/workdir"
        assert pathlib.Path(seen["python"]).parent == pathlib.Path(cluster.python_bin)
        assert seen["hparams"] == {"lr": 0.5, "deep": {"width": 3}, "global_batch_size": 64}
        assert seen["config"]["name"] == "stock"
        assert (seen["addrs"], seen["counts"], seen["latest"], seen["gpus"], seen["run"]) == (["127.0.0.1"], [1], None, [], 1)
        assert seen["info"]["version"] and cluster.url() not in json.dumps(seen)
        assert seen["from_env"]["session_token"] == seen["token"] and seen["from_env"]["master_url"] == seen["master"]
        assert "look.py" in seen["model"]
        for name in ("info/cluster.json", "info/trial.json", "info/rendezvous.json", "info/resources.json", "train/entrypoint.sh",
                     "task-setup.sh", "workdir/look.py", "train/logs/stdout.log", "pythonuserbase"):
            assert "/run/determined/" + name in seen["files"], name
    ports = [seen["env"][name] for seen in (one, two) for name in
             ("DTRAIN_SSH_PORT", "INTER_TRAIN_PROCESS_COMM_PORT_1", "INTER_TRAIN_PROCESS_COMM_PORT_2", "C10D_PORT")]
    assert len(set(ports)) == 8, ports
    cluster.open_gate()
    assert cluster.wait_end(first) == cluster.wait_end(second) == "COMPLETED"
    assert host_run() == before


@ONLY_SELF
def test_two_ranks_on_one_agent_train_together_and_their_lines_say_who_they_are(cluster):
    id = cluster.submit_files("python3 -m determined.launch.torch_distributed -- python3 ranks.py 'hear me'", {"ranks.py": RANKS}, slots=2)
    state = cluster.wait_end(id, 240)
    trial = cluster.trials(id)[0]["id"]
    assert state == "COMPLETED", cluster.logs(trial)
    lines = cluster.json("trial", "logs", str(trial))
    lines = lines["logs"] if isinstance(lines, dict) else lines
    by_rank = {(line.get("rankId", line.get("rank")), line["log"].rstrip("\n")) for line in lines}
    assert {(0, "sum 3 of 2 by 0"), (1, "sum 3 of 2 by 1"), (1, "hear me")} <= by_rank, by_rank
    warned = [line for line in lines if line["log"].startswith("hear me")]
    assert {line["level"] for line in warned} == {"LOG_LEVEL_WARNING"}, warned
    assert all(line["timestamp"] for line in warned)


@ONLY_SELF
def test_what_cannot_start_says_why(cluster):
    for entrypoint, files, expected in [
        ("echo last words; exit 7", {"x": ""}, "last words"),
        (["no-such-program"], {"x": ""}, "no-such-program"),
        ("true", {"startup-hook.sh": "echo from the hook; exit 9"}, "from the hook"),
    ]:
        id = cluster.submit_files(entrypoint, files)
        assert cluster.wait_end(id) == "ERROR"
        said = cluster.logs(cluster.trials(id)[0]["id"])
        assert expected in said, (entrypoint, said)


def test_a_core_api_script_reports_saves_and_ends(cluster):
    id = cluster.submit_files("python3 core_job.py", {"core_job.py": CORE}, length=10)
    assert cluster.wait_end(id) == "COMPLETED", cluster.everything_said()
    trial = cluster.trials(id)[0]
    assert cluster.steps(trial["id"], "training") == list(range(1, 11))
    assert cluster.steps(trial["id"], "validation") == [10]
    assert trial["checkpointCount"] == 2 and trial["bestValidation"]["totalBatches"] == 10


@ONLY_SELF
def test_a_core_api_script_that_is_paused_goes_on_from_its_checkpoint(cluster):
    id = cluster.submit_files("python3 core_job.py", {"core_job.py": CORE}, length=10, wait_at=7)
    cluster.wait_there()
    cluster.cli("experiment", "pause", str(id))
    wait_for(lambda: cluster.state(id) == "PAUSED" and cluster.json("status")["slots"]["used"] == 0, 60, what=cluster.everything_said)
    cluster.cli("experiment", "activate", str(id))
    assert cluster.wait_end(id) == "COMPLETED", cluster.everything_said()
    trial = cluster.trials(id)[0]
    said = cluster.logs(trial["id"])
    assert "asked to stop" in said and "goes on from 5" in said, said
    assert trial["restarts"] == 0
    assert cluster.steps(trial["id"], "validation") == [10]


@ONLY_SELF
def test_hyperparameters_that_the_script_calls_invalid_end_the_trial_without_a_failure(cluster):
    id = cluster.submit_files("python3 core_job.py", {"core_job.py": CORE}, lr=2.0)
    assert cluster.wait_end(id) == "COMPLETED", cluster.everything_said()
    assert cluster.trials(id)[0]["restarts"] == 0


@ONLY_SELF
def test_a_script_outlives_the_master_and_its_reports_arrive(cluster):
    id = cluster.submit_files("python3 core_job.py", {"core_job.py": CORE}, length=10, wait_at=3)
    cluster.wait_there()
    cluster.kill_node()
    cluster.open_gate() # The script reports while no master is there.
    Cluster.up(cluster)
    assert cluster.wait_end(id) == "COMPLETED", cluster.everything_said()
    trial = cluster.trials(id)[0]
    assert trial["restarts"] == 0 and "goes on from" not in cluster.logs(trial["id"])
    assert cluster.steps(trial["id"], "training") == list(range(1, 11))
    assert cluster.steps(trial["id"], "validation") == [10]


@ONLY_SELF
@pytest.mark.parametrize("slots", [1, 2])
def test_a_trial_class_trains_with_as_many_ranks_as_slots(cluster, slots):
    id = cluster.submit_files("model_def:DigitsTrial", {"model_def.py": DIGITS}, slots=slots, length="{batches: 44}")
    assert cluster.wait_end(id, 240) == "COMPLETED", cluster.everything_said()
    trial = cluster.trials(id)[0]
    assert cluster.steps(trial["id"], "validation")[-1] == 44
    found = [m["metrics"] for m in cluster.json("trial", "metrics", str(trial["id"])) if m["group"] == "validation"]
    assert "accuracy" in json.dumps(found), found
    assert trial["checkpointCount"] >= 1 and trial["restarts"] == 0
