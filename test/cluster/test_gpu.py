"""A cluster on a host with an NVIDIA GPU: what NVML reports, what a trial sees, and who holds the memory. Skipped where there is no GPU."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

from cluster_under_test import BINARY, Cluster, wait_for

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def ask_driver(what):
    """The answer of nvidia-smi, one row for each GPU; no rows where there is no GPU."""
    if not shutil.which("nvidia-smi"):
        return []
    done = subprocess.run(["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=60)
    return [[word.strip() for word in line.split(",")] for line in done.stdout.splitlines()] if done.returncode == 0 else []


GPUS = ask_driver("uuid,name,memory.total")
pytestmark = pytest.mark.skipif(not GPUS, reason="this host has no NVIDIA GPU")
MIB = 1 << 20

# This trial holds 3 GiB of the device and multiplies until it is told to end. It writes what it sees.
TRIAL = """
import json, os, sys, time
already = "torch" in sys.modules
import torch, troupe
p = troupe.params(x=1)
root = os.environ["FACTS_DIR"]
device = torch.device("cuda")
facts = {"count": torch.cuda.device_count(), "visible": os.environ["CUDA_VISIBLE_DEVICES"], "forked": already,
         "uuid": str(torch.cuda.get_device_properties(0).uuid)}
held = torch.ones(3 << 28, dtype=torch.float32, device=device)
with open(f"{root}/sees-{os.environ['DET_TRIAL_ID']}", "a") as f:
    f.write(json.dumps(facts) + "\\n")
step = 0
if folder := troupe.resume():
    step = json.loads((folder / "state.json").read_text())
a = torch.randn(4096, 4096, device=device)
until = time.time() + float(os.environ.get("SECONDS_MOST", "60"))
while time.time() < until and not os.path.exists(f"{root}/go") and not troupe.should_stop():
    for _ in range(50):
        a = torch.nn.functional.normalize(a @ a)
    step += 1
    troupe.log(loss=float(a.norm()), step=step)
with troupe.checkpoint(step) as folder:
    (folder / "state.json").write_text(json.dumps(step))
troupe.validate({"loss": float(held.sum()) / (3 << 28) + p.x}, step=step)
"""

TOO_MUCH = """
import torch, troupe
troupe.params(x=1)
torch.ones(1 << 44, dtype=torch.uint8, device="cuda")
"""

DIGITS = """
import sklearn.datasets, torch
from determined import pytorch

class DigitsTrial(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(64, 10))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.5))
        digits = sklearn.datasets.load_digits()
        x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
        self.train, self.test = (torch.utils.data.TensorDataset(x[a:b], y[a:b]) for a, b in ((0, 1400), (1400, 1797)))
    def build_training_data_loader(self):
        return pytorch.DataLoader(self.train, batch_size=64, shuffle=True)
    def build_validation_data_loader(self):
        return pytorch.DataLoader(self.test, batch_size=64)
    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}
    def evaluate_batch(self, batch):
        assert batch[0].is_cuda and next(self.model.parameters()).is_cuda
        out = self.model(batch[0])
        return {"accuracy": (out.argmax(1) == batch[1]).float().mean(), "on_gpu": float(batch[0].is_cuda)}
"""


class Lab(Cluster):
    def submit_script(self, script, *, entrypoint="python3 train.py", trials=1, searcher="name: random, metric: loss", more="", **env):
        name = f"job{len(list(self.root.glob('job*.yaml')))}"
        job = self.root / name
        job.mkdir()
        (job / "train.py").write_text(script)
        (job / "model_def.py").write_text(script)
        variables = ", ".join(f'"{key}={value}"' for key, value in {"FACTS_DIR": self.root, **env}.items())
        file = self.root / f"{name}.yaml"
        file.write_text(f"""
name: {name}
entrypoint: {entrypoint}
hyperparameters: {{x: 1, global_batch_size: 64}}
searcher: {{{searcher}, max_trials: {trials}, max_concurrent_trials: 1}}
max_restarts: 0
environment: {{environment_variables: [{variables}]}}
{more}
""")
        return self.json("experiment", "create", str(file), str(job))["id"]

    def sees(self, trial):
        file = self.root / f"sees-{trial}"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def only_trial(self, experiment):
        return wait_for(lambda: self.trials(experiment), 30)[0]["id"]

    def metrics_of_system(self, trial):
        return [row["metrics"] for row in self.json("trial", "metrics", str(trial), "--group", "system")]

    def command(self, *words, slots=1):
        return self.cli("command", "run", "--slots", str(slots), "--", *words)


@pytest.fixture
def lab(tmp_path):
    with Lab(tmp_path) as cluster:
        cluster.up(slots=None)
        yield cluster


def used_mib():
    return [int(used) for (used,) in ask_driver("memory.used")]


def test_the_gpus_are_the_slots(lab):
    rows = wait_for(lambda: [row for row in lab.json("slot", "list") if "usage" in row], 30)
    assert [[row["device"]["uuid"], row["device"]["brand"], row["device"]["type"]] for row in rows] == [[uuid, name, "TYPE_CUDA"] for uuid, name, _ in GPUS]
    for row, (_, _, total) in zip(rows, GPUS):
        assert abs(row["usage"]["memory_bytes"] / MIB - int(total)) < 1024, (row, total)
        assert {"utilization_percent", "memory_used_bytes", "temperature_celsius"} <= set(row["usage"])
        assert "fault" not in row["usage"]


def test_a_trial_has_its_gpu_and_shows_what_it_uses(lab):
    before = used_mib()[0]
    experiment = lab.submit_script(TRIAL)
    trial = lab.only_trial(experiment)
    (sees,) = wait_for(lambda: lab.sees(trial), 60)
    assert sees["count"] == 1 and sees["visible"] in [uuid for uuid, *_ in GPUS] and sees["visible"] == "GPU-" + sees["uuid"].removeprefix("GPU-")

    def busy():
        return [m for m in lab.metrics_of_system(trial) if any(n.endswith("/gpu_percent") and v > 30 for n, v in m.items())
                and any(n.endswith("/gpu_memory_bytes") and v > 3 << 30 for n, v in m.items())]

    wait_for(busy, 40, 0.5, lambda: lab.metrics_of_system(trial))
    (lab.root / "go").touch()
    assert lab.wait_end(experiment) == "COMPLETED"
    wait_for(lambda: used_mib()[0] < before + 512, 30, what=used_mib)


def test_trials_one_after_the_other_are_forked_with_torch_loaded(lab):
    experiment = lab.submit_script(TRIAL, trials=3, SECONDS_MOST="1")
    assert lab.wait_end(experiment) == "COMPLETED"
    seen = [one for row in lab.trials(experiment) for one in lab.sees(row["id"])]
    assert len(seen) == 3 and all(one["count"] == 1 for one in seen), seen
    assert any(one["forked"] for one in seen), f"an interpreter that has the libraries loaded was never used: {seen}"


def test_a_killed_trial_gives_its_memory_back(lab):
    before = used_mib()[0]
    experiment = lab.submit_script(TRIAL)
    trial = lab.only_trial(experiment)
    wait_for(lambda: lab.sees(trial) and used_mib()[0] > before + 3000, 60, what=used_mib)
    lab.cli("experiment", "kill", str(experiment))
    wait_for(lambda: used_mib()[0] < before + 512, 30, what=used_mib)
    assert lab.wait_end(experiment) == "CANCELED"


def test_a_trial_outlives_its_node_and_goes_on_after_a_pause(lab):
    experiment = lab.submit_script(TRIAL, SECONDS_MOST="90")
    trial = lab.only_trial(experiment)
    wait_for(lambda: lab.sees(trial), 60)
    lab.kill_node()
    lab.up(slots=None)
    wait_for(lambda: lab.json("status")["slots"]["used"] == 1, 30, what=lambda: lab.json("status"))
    lab.cli("experiment", "pause", str(experiment))
    wait_for(lambda: lab.json("status")["slots"]["used"] == 0, 60, what=lambda: lab.json("status"))
    assert len(lab.sees(trial)) == 1, "the first run was not taken over"
    lab.cli("experiment", "activate", str(experiment))
    wait_for(lambda: len(lab.sees(trial)) == 2, 60, what=lambda: lab.sees(trial))
    (lab.root / "go").touch()
    assert lab.wait_end(experiment) == "COMPLETED"


def test_constraints_know_the_device(lab):
    word = GPUS[0][1].split()[-1]
    for fits in (f"{{device_type: {word}}}", "{device_type: cuda, min_memory: 1 GiB}"):
        experiment = lab.submit_script(TRIAL, SECONDS_MOST="1", more=f"resources: {{slots_per_trial: 1, constraints: {fits}}}")
        assert lab.wait_end(experiment) == "COMPLETED", fits
    for lacks in ("{device_type: cuda, min_memory: 20 TiB}", "{device_type: cpu}"):
        experiment = lab.submit_script(TRIAL, more=f"resources: {{slots_per_trial: 1, constraints: {lacks}}}")
        trial = lab.only_trial(experiment)
        told = wait_for(lambda: lab.json("explain", "trial", str(trial))["reason"], 30)
        assert told["code"] == "constraints", told
        lab.cli("experiment", "kill", str(experiment))


def test_a_command_sees_the_gpus_of_its_slots(lab):
    look = "import os, torch; print(repr(os.environ.get('CUDA_VISIBLE_DEVICES')), torch.cuda.is_available())"
    assert f"'{GPUS[0][0]}' True" in lab.command("python3", "-c", look).stdout
    assert "'' False" in lab.command("python3", "-c", look, slots=0).stdout
    assert GPUS[0][0] in lab.command("nvidia-smi", "-L").stdout


def test_too_much_memory_is_an_error_that_says_so(lab):
    experiment = lab.submit_script(TOO_MUCH)
    assert lab.wait_end(experiment) == "ERROR"
    trial = lab.only_trial(experiment)
    assert "out of memory" in lab.cli("trial", "logs", str(trial)).stdout


def test_a_stock_trial_class_trains_on_the_gpu(lab):
    experiment = lab.submit_script(DIGITS, entrypoint="model_def:DigitsTrial", searcher="name: random, metric: accuracy, smaller_is_better: false, max_length: {batches: 60}")
    state = lab.wait_end(experiment)
    trial = lab.only_trial(experiment)
    assert state == "COMPLETED", lab.cli("trial", "logs", str(trial)).stdout[-3000:]
    last = [row["metrics"] for row in lab.json("trial", "metrics", str(trial)) if row["group"] == "validation"][-1]
    assert last["on_gpu"] == 1 and last["accuracy"] > 0.5, last


def test_a_trial_in_cpp_trains_on_the_gpu(lab):
    if not (pathlib.Path(BINARY).parent / "digits-libtorch").exists():
        pytest.skip("digits-libtorch is not built")
    configs = REPOSITORY / "configs/experiments"
    made = lab.cli("experiment", "create", str(configs / "digits-libtorch.yaml"), str(configs), "--config", "resources.slots_per_trial=1",
                   "--config", "searcher.max_trials=1", "-o", "json").stdout
    experiment = json.loads(made)["id"]
    state = lab.wait_end(experiment, 180)
    trial = lab.only_trial(experiment)
    logs = lab.cli("trial", "logs", str(trial)).stdout
    assert state == "COMPLETED", logs[-3000:]
    best = max(row["metrics"]["val_accuracy"] for row in lab.json("trial", "metrics", str(trial)) if row["group"] == "validation")
    assert best > 0.8 and "cuda" in logs, logs[-2000:]
