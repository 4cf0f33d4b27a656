"""The unmodified `determined` client against a real cluster: its command line and SDK outside, its Core API and PyTorchTrial in the
tasks. Needs the wheel 0.38.1, torch and scikit-learn in the interpreter that runs the tests; tasks run in the same one."""

import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request
import zipfile

import pytest

import warm_client
from cluster_under_test import Cluster, free_port, wait_for

# A script with the Core API. Hyperparameters say what it does beside training. It writes what it has done to JOB_DIR/notes.
CORE_API = """
import json, logging, os, pathlib, sys, time
import determined as det

logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
info = det.get_cluster_info()
hp = info.trial.hparams
root = pathlib.Path(os.environ["JOB_DIR"])

def note(**what):
    with open(root / "notes", "a") as f:
        f.write(json.dumps({"trial": info.trial.trial_id, "run": info.trial._trial_run_id, **what}) + "\\n")

def wait_until(true):
    until = time.monotonic() + 600
    while not true():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.02)

def leads():
    # Is this the best trial of its search? It is the one that comes first; the others validate after its first checkpoint.
    try:
        os.close(os.open(root / f"leader-{info.trial.experiment_id}", os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        wait_until((root / f"led-{info.trial.experiment_id}").exists)
        return False

def main(core):
    floor = 0 if not hp.get("one_leads") or leads() else 1
    done = 0
    if info.latest_checkpoint:
        with core.checkpoint.restore_path(info.latest_checkpoint) as path:
            done = json.loads((path / "state.json").read_text())["steps"]
    note(began=done)
    if hp.get("invalid"):
        raise det.InvalidHP("these cannot be trained")
    for step in range(done + 1, hp.get("steps", 10) + 1):
        time.sleep(hp.get("pause_s", 0.02))
        if step == hp.get("fail_at") and info.trial._trial_run_id == 1:
            sys.exit("failing as it was told")
        core.train.report_training_metrics(steps_completed=step, metrics={"loss": 1.0 / step})
        core.train.report_progress(step / hp.get("steps", 10))
        if step % 5 == 0:
            core.train.report_validation_metrics(steps_completed=step, metrics={"loss": floor + 1.0 / step, "epoch": step // 5})
            with core.checkpoint.store_path({"steps_completed": step, "mine": "x"}) as (path, uuid):
                (path / "state.json").write_text(json.dumps({"steps": step}))
                (path / "ü 日本.txt").write_text(pathlib.Path("wéights.txt").read_text())
            note(saved=step, uuid=uuid)
            print("saved", step, flush=True)
            if floor == 0:
                (root / f"led-{info.trial.experiment_id}").touch()
            else:
                wait_until(core.preempt.should_preempt)
        if step == hp.get("hold_at") and info.trial._trial_run_id == 1:
            wait_until(core.preempt.should_preempt)
        if step == hp.get("gate_at"):
            wait_until(lambda: (root / f"go-{info.trial.experiment_id}").exists() or core.preempt.should_preempt())
        if core.preempt.should_preempt():
            with core.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
                (path / "state.json").write_text(json.dumps({"steps": step}))
            note(preempted=step)
            return
    note(ended=step)
    sys.exit(hp.get("exit", 0))

with det.core.init(tensorboard_mode=det.core.TensorboardMode.MANUAL) as core:
    main(core)
"""

DIGITS = """
import importlib.util, numpy, torch
from determined import pytorch

class Digits(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        # What load_digits() gives; the modules of scikit-learn cost more than this training.
        file = importlib.util.find_spec("sklearn").submodule_search_locations[0] + "/datasets/data/digits.csv.gz"
        rows = torch.tensor(numpy.loadtxt(file, delimiter=","), dtype=torch.float32)
        x, y = rows[:, :64] / 16, rows[:, 64].long()
        data = torch.utils.data.TensorDataset(x, y)
        self.train, self.test = torch.utils.data.random_split(data, [1500, 297], torch.Generator().manual_seed(1))
        self.model = context.wrap_model(torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)))
        self.optimizer = context.wrap_optimizer(torch.optim.Adam(self.model.parameters(), lr=context.get_hparam("lr")))

    def build_training_data_loader(self):
        return pytorch.DataLoader(self.train, batch_size=self.context.get_per_slot_batch_size(), shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.test, batch_size=self.context.get_per_slot_batch_size())

    def train_batch(self, batch, epoch_idx, batch_idx):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.model(x), y)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        x, y = batch
        return {"accuracy": (self.model(x).argmax(1) == y).float().mean()}
"""

CONFIG = """
name: {name}
entrypoint: python3 train.py
hyperparameters: {hparams}
searcher: {searcher}
max_restarts: {restarts}
environment: {{environment_variables: ["JOB_DIR={root}"]}}
"""
SINGLE = "{name: single, metric: loss, smaller_is_better: true}"


class Stock(Cluster):
    def stock_env(self, home="home", **more):
        folder = self.root / home
        folder.mkdir(exist_ok=True)
        return dict(os.environ, DET_MASTER=self.url(), HOME=str(folder), COLUMNS="400", **more)

    def det(self, *words, code=0, timeout=300, home="home", stdin=None, cold=False, **env):
        done = warm_client.run(words, self.stock_env(home, **env), stdin, timeout, start_new_session=True, cold=cold)  # A new session has no terminal at which the client could ask.
        assert done.returncode == code, f"det {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def python(self, script, timeout=300):
        done = subprocess.run([sys.executable, "-c", script], env=self.stock_env(), capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def write(self, name="core", script=CORE_API, hparams="{}", searcher=SINGLE, restarts=0, more=""):
        job = self.root / f"job-{name}"
        job.mkdir(exist_ok=True)
        (job / "train.py").write_text(script)
        (job / "wéights.txt").write_text("other letters")
        config = self.root / f"{name}.yaml"
        config.write_text(CONFIG.format(name=name, root=self.root, hparams=hparams, searcher=searcher, restarts=restarts) + more)
        return str(config), str(job)

    def create(self, *flags, cold=False, **how):
        said = self.det("experiment", "create", *self.write(**how), *flags, cold=cold)
        return int(re.search(r"Created experiment (\d+)", said)[1]), said

    def wait(self, experiment, code=0):
        return self.det("experiment", "wait", "--polling-interval", "1", str(experiment), code=code, timeout=600)

    def described(self, experiment):
        return json.loads(self.det("experiment", "describe", str(experiment), "--json"))[0]["experiment"]

    def notes(self, trial):
        try:
            lines = (self.root / "notes").read_text().split("\n")[:-1]  # The last line may be incomplete.
        except FileNotFoundError:
            return []
        return [one for one in map(json.loads, lines) if one["trial"] == trial]

    def trial_of(self, experiment):
        found = wait_for(lambda: self.trials(experiment), 30)
        return found[0]["id"]

    def logs(self, experiment):
        return self.det("experiment", "logs", str(experiment))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Stock(tmp_path_factory.mktemp("stock")) as cluster:
        cluster.listen = f"127.0.0.1:{free_port()}"  # the same address after a restart
        cluster.up(slots=2)
        yield cluster


def test_users_log_in_and_are_known(cluster):
    assert "determined" in cluster.det("user", "whoami", cold=True)
    cluster.det("user", "login", "admin", home="admin", stdin="\n", cold=True)
    assert "admin" in cluster.det("user", "whoami", home="admin")
    cluster.det("user", "create", "ann", "--password", "Secret-123", home="admin")
    said = cluster.det("user", "login", "ann", home="ann", stdin="wrong-Pass-1\n", code=1, cold=True)
    assert "Invalid username/password combination" in said
    cluster.det("user", "login", "ann", home="ann", stdin="Secret-123\n")
    assert "ann" in cluster.det("user", "whoami", home="ann")
    assert "Forbidden" in cluster.det("user", "create", "eve", "--password", "Secret-123", home="ann", code=1)


def test_an_expired_token_asks_for_a_login(cluster):
    secret = json.loads((cluster.data / "master" / "passwords").read_text())["secret"]
    claim = f"u1.1.1.000102030405060708.{int(time.time() * 1e6) - 1}"
    token = f"{claim}.{hashlib.blake2b(claim.encode(), key=secret.encode(), digest_size=24).hexdigest()}"
    said = cluster.det("experiment", "list", DET_USER="admin", DET_USER_TOKEN=token, home="expired", code=1)
    assert "Unauthenticated" in said, said


def test_a_core_api_script_from_creation_to_download(cluster):
    experiment, said = cluster.create("--follow", name="core", hparams="{steps: 10}", cold=True)
    assert "saved 5" in said and "saved 10" in said, said
    cluster.wait(experiment)
    assert "core" in cluster.det("experiment", "list")
    assert "COMPLETED" in cluster.det("experiment", "describe", str(experiment))
    assert "saved 10" in cluster.logs(experiment)
    trial = cluster.trial_of(experiment)
    assert "COMPLETED" in cluster.det("trial", "describe", str(trial), "--metrics")
    assert "saved 5" in cluster.det("trial", "logs", str(trial))
    assert "saved 5" not in cluster.det("trial", "logs", str(trial), "--tail", "1")
    whole = cluster.described(experiment)
    assert whole["progress"] == 1.0 and whole["bestTrialSearcherMetric"] == pytest.approx(0.1)
    saved = [one["uuid"] for one in cluster.notes(trial) if "uuid" in one]
    listed = cluster.det("experiment", "list-checkpoints", str(experiment))
    assert all(uuid in listed for uuid in saved)
    for mode in ("auto", "master"):
        folder = cluster.root / f"download-{mode}"
        cluster.det("checkpoint", "download", saved[-1], "-o", str(folder), "--mode", mode, cold=True)
        assert json.loads((folder / "state.json").read_text()) == {"steps": 10}
        assert json.loads((folder / "metadata.json").read_text())["mine"] == "x"
        assert (folder / "ü 日本.txt").read_text() == "other letters"
    asked = cluster.request(f"/checkpoints/{saved[-1]}")
    asked.add_header("Accept", "application/zip")
    with urllib.request.urlopen(asked, timeout=120) as answer:
        assert "ü 日本.txt" in zipfile.ZipFile(io.BytesIO(answer.read())).namelist()


def test_the_sdk_creates_waits_and_downloads(cluster):
    config, job = cluster.write(name="sdk", hparams="{steps: 10}")
    cluster.python(f"""
import json, pathlib
from determined.experimental import client
e = client.create_experiment({config!r}, {job!r})
assert e.wait(interval=0.5).value == "STATE_COMPLETED"
best = e.top_checkpoint()
assert best.metadata["steps_completed"] == 10, best.metadata
path = best.download({str(cluster.root / 'sdk-download')!r})
assert json.loads((pathlib.Path(path) / "state.json").read_text()) == {{"steps": 10}}
t = e.get_trials()[0]
assert [m.steps_completed for m in t.iter_metrics("validation")] == [5, 10]
assert len(list(t.iter_metrics("training"))) == 10
assert t.summary_metrics["validation_metrics"]["loss"]["count"] == 2, t.summary_metrics
assert t.get_checkpoints() if hasattr(t, "get_checkpoints") else t.list_checkpoints()
assert any("saved 10" in line for line in t.iter_logs())
""")


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_pytorch_trial_on_digits(cluster, ranks):
    job = cluster.write(name=f"digits{ranks}", script=DIGITS, hparams="{lr: 0.01, global_batch_size: 64}",
                        searcher="{name: single, metric: accuracy, smaller_is_better: false, max_length: {batches: 60}}",
                        more=f"resources: {{slots_per_trial: {ranks}}}\nmin_validation_period: {{batches: 30}}\nrecords_per_epoch: 1500\n")
    config = pathlib.Path(job[0])
    config.write_text(config.read_text().replace("python3 train.py", "python3 -m determined.launch.torch_distributed --trial train:Digits"))
    said = cluster.det("experiment", "create", *job)
    experiment = int(re.search(r"Created experiment (\d+)", said)[1])
    try:
        cluster.wait(experiment)
    except AssertionError:
        print(cluster.logs(experiment))
        raise
    whole = cluster.described(experiment)
    assert whole["bestTrialSearcherMetric"] > 0.6, whole
    if ranks == 2:
        assert "[rank=1]" in cluster.logs(experiment)


def test_an_adaptive_search(cluster):
    """The first trial is the best one and runs to the end. Each other trial waits for the decision at its first validation, and is
    stopped there."""
    experiment, _ = cluster.create(name="asha", hparams="{one_leads: true, steps: 20, x: {type: double, minval: 0, maxval: 1}}",
                                   searcher="{name: adaptive_asha, metric: loss, time_metric: epoch, max_time: 4, max_trials: 6, "
                                            "max_concurrent_trials: 2, divisor: 2, mode: aggressive}")
    cluster.wait(experiment)
    trials = cluster.trials(experiment)
    assert len(trials) == 6
    ended = [[one for one in cluster.notes(t["id"]) if "ended" in one or "preempted" in one] for t in trials]
    # The first trial may be told to stop at its last step, because the search wants no more of it.
    assert sorted(one[-1].get("ended", one[-1].get("preempted")) for one in ended) == [5, 5, 5, 5, 5, 20], ended
    assert all("preempted" in one[-1] for one in ended if one[-1].get("ended") != 20), ended


def test_a_failing_step_is_trained_again_from_the_checkpoint(cluster):
    experiment, _ = cluster.create(name="failing", hparams="{steps: 10, fail_at: 7}", restarts=1)
    cluster.wait(experiment)
    trial = cluster.trial_of(experiment)
    assert [one["began"] for one in cluster.notes(trial) if "began" in one] == [0, 5]
    assert "failing as it was told" in cluster.logs(experiment)
    assert json.loads(cluster.det("trial", "describe", str(trial), "--json"))["trial"]["restarts"] == 1


def test_a_pause_in_the_middle_loses_no_step(cluster):
    experiment, _ = cluster.create(name="paused", hparams="{steps: 20, hold_at: 7}")
    trial = cluster.trial_of(experiment)
    wait_for(lambda: any("saved" in one for one in cluster.notes(trial)), 60)
    cluster.det("experiment", "pause", str(experiment))
    wait_for(lambda: any("preempted" in one for one in cluster.notes(trial)), 60)
    wait_for(lambda: cluster.json("status")["slots"]["used"] == 0, 30)
    assert cluster.state(experiment) == "PAUSED"
    cluster.det("experiment", "activate", str(experiment))
    cluster.wait(experiment)
    notes = cluster.notes(trial)
    assert [one["preempted"] for one in notes if "preempted" in one] == [7]
    assert [one["began"] for one in notes if "began" in one] == [0, 7]
    assert notes[-1]["ended"] == 20
    shown = json.loads(cluster.det("trial", "describe", str(trial), "--json"))["trial"]
    assert shown["totalBatchesProcessed"] == 20 and shown["restarts"] == 0


def test_invalid_hyperparameters_are_not_tried_again_but_replaced(cluster):
    experiment, _ = cluster.create(name="invalid", hparams="{steps: 5, invalid: {type: categorical, vals: [true, false]}}", restarts=3,
                                   searcher="{name: random, metric: loss, max_trials: 3, max_concurrent_trials: 1}",
                                   more="reproducibility: {experiment_seed: 4}\n")
    cluster.wait(experiment)
    trials = cluster.trials(experiment)
    ended = {t["id"]: [one for one in cluster.notes(t["id"]) if "ended" in one] for t in trials}
    begun = {t["id"]: [one for one in cluster.notes(t["id"]) if "began" in one] for t in trials}
    assert all(len(runs) == 1 for runs in begun.values()), "no trial is run twice"
    assert len([t for t in ended.values() if t]) == 3, "as many good ones as were asked for"
    assert all(t["state"].endswith("COMPLETED") for t in trials), trials


def test_a_script_that_exits_non_zero(cluster):
    experiment, _ = cluster.create(name="nonzero", hparams="{steps: 5, exit: 3}")
    cluster.wait(experiment, code=1)
    assert cluster.described(experiment)["state"] == "STATE_ERROR"
    assert "exit code 3" in cluster.logs(experiment)


def test_an_invalid_configuration_is_explained(cluster):
    config, job = cluster.write(name="bad", searcher="{name: adaptive_asha, metric: loss, max_trials: 2}")
    said = cluster.det("experiment", "create", config, job, code=1)
    assert "max_time" in said, said


def test_two_hundred_calls_of_all_kinds_at_once(cluster):
    experiment, _ = cluster.create(name="asked", hparams="{steps: 3}")
    cluster.wait(experiment)
    trial, (config, job) = cluster.trial_of(experiment), cluster.write(name="many", hparams="{steps: 1}")
    kinds = [f"experiment describe {experiment} --json", "experiment list --all", f"experiment list-trials {experiment}", f"experiment list-checkpoints {experiment}", f"experiment config {experiment}",
             f"trial describe {trial}", f"trial logs {trial}", "user list", "user whoami", "workspace list", "project list Uncategorized", "template list", "model list", "agent list", "slot list",
             "task list", "job list", "master info", "shell list", "command list"]
    made = ["workspace create w{}", "model create m{}", f"template create t{{}} {config}", f"experiment label add {experiment} l{{}}", f"experiment create --paused {config} {job}"]
    calls = [one.split() for one in kinds * 5] + [one.format(n).split() for one in made for n in range(20)]
    assert len(calls) == 200
    running = []
    for n, words in enumerate(calls):
        with open(cluster.root / f"call-{n}", "w") as out:
            running.append(warm_client.Call(words, cluster.stock_env(), [0, out.fileno(), out.fileno()]))
    codes = [one.wait(600) for one in running]
    said = [(cluster.root / f"call-{n}").read_text() for n in range(200)]
    assert codes == [0] * 200, [(calls[n], said[n]) for n, code in enumerate(codes) if code]
    assert not any("Traceback" in one for one in said), [one for one in said if "Traceback" in one][0]
    for verb, letter in (("workspace list", "w"), ("model list", "m"), ("template list", "t")):
        shown = re.findall(rf"\b{letter}\d+\b", cluster.det(*verb.split()))
        assert set(shown) >= {f"{letter}{n}" for n in range(20)}, (verb, shown)
    assert cluster.described(experiment)["labels"]  # Some are lost: the client reads all labels and sends them back with its own.
    ids = {int(re.search(r"Created experiment (\d+)", said[n])[1]) for n in range(180, 200)}
    assert len(ids) == 20
    for one in ids:
        cluster.det("experiment", "kill", str(one))


# The client, changed so that it makes the file ASKED before it pauses and asks the master again.
WATCHED = """
import os, runpy, sys, time
sleep = time.sleep
time.sleep = lambda seconds: (seconds < 1 or open(os.environ["ASKED"], "w").close(), sleep(seconds))[1]
runpy.run_module("determined.cli", run_name="__main__", alter_sys=True)
"""


def test_killing_the_master_while_a_task_trains(cluster):
    """The wheel decides what the client does: `--follow` ends with exit code 1 and names the command that continues, which shows the log
    from its beginning to its end. `experiment wait` asks again by itself."""
    files = cluster.write(name="survivor", hparams="{steps: 100, gate_at: 50}")
    texts = {name: cluster.root / f"said-by-{name}" for name in ("follow", "wait")}

    def start(name, *words):
        with open(texts[name], "w") as out:
            return subprocess.Popen([sys.executable, "-u", "-c", WATCHED, *words], env=cluster.stock_env(ASKED=str(cluster.root / f"asked-by-{name}")), stdout=out, stderr=out)

    before = [row["id"] for row in cluster.json("experiment", "list")]
    follow, wait = start("follow", "experiment", "create", *files, "--follow"), None
    try:
        experiment = wait_for(lambda: [row["id"] for row in cluster.json("experiment", "list") if row["id"] not in before], 60)[0]
        trial = cluster.trial_of(experiment)
        wait = start("wait", "experiment", "wait", "--polling-interval", "1", str(experiment))
        wait_for(lambda: "saved 5\n" in texts["follow"].read_text(), what=texts["follow"].read_text)
        wait_for((cluster.root / "asked-by-wait").exists, what=texts["wait"].read_text)
        cluster.kill_node()
        follow.wait(timeout=300)
        said = texts["follow"].read_text()
        assert follow.returncode == 1 and "Traceback" not in said, said
        assert f"To reopen log stream, run: det trial logs -f {trial}" in said, said
        (cluster.root / f"go-{experiment}").touch()  # The task reports while no master is there.
        cluster.up(slots=2)
        said = cluster.det("trial", "logs", "-f", str(trial), cold=True)
        assert all(f"saved {step}\n" in said for step in range(5, 101, 5)), said
        cluster.wait(experiment)
        assert wait.wait(timeout=300) == 0, texts["wait"].read_text()
        notes = cluster.notes(trial)
        assert [one["began"] for one in notes if "began" in one] == [0], "the task went on"
        shown = json.loads(cluster.det("trial", "describe", str(trial), "--json", "--metrics"))
        steps = [w["validation"]["totalBatches"] for w in shown["workloads"] if w.get("validation")]
        assert steps == list(range(5, 101, 5)), steps
    finally:
        for one in (follow, wait):
            if one:
                one.kill()
                one.wait()
