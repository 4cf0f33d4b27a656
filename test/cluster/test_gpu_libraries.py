"""Runs what teams use to train on a GPU, with the real libraries: compiled models, loaders with workers, JAX, Lightning, Hugging Face and
Determined's profiler. A test is skipped where there is no GPU, or the library is not installed."""

import importlib.util

import pytest

from test_gpu import GPUS, lab, used_mib, wait_for  # noqa: F401 (lab is a fixture)

pytestmark = pytest.mark.skipif(not GPUS, reason="this host has no NVIDIA GPU")

COMPILED = """
import time
import torch, troupe
p = troupe.params(x=1)
start = time.time()
net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256), torch.nn.Linear(256, 10)).cuda()
fast = torch.compile(net)
data = torch.utils.data.TensorDataset(torch.randn(2048, 64), torch.randint(0, 10, (2048,)))
loader = torch.utils.data.DataLoader(data, batch_size=256, shuffle=True, num_workers=4, pin_memory=True, persistent_workers=True)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2, fused=True)
step = 0
for epoch in range(5):
    for x, y in loader:
        assert x.is_pinned()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(fast(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        opt.zero_grad(); loss.backward(); opt.step(); step += 1
        if step == 1: print(f"first step after {time.time() - start:.2f} s", flush=True)
    troupe.log(loss=float(loss), step=step)
troupe.validate({"loss": float(loss)}, step=step)
"""

JAX = """
import jax, jax.numpy as jnp, determined as det
with det.core.init() as core:
    assert jax.devices()[0].platform == "gpu", jax.devices()
    w = jnp.zeros((64, 10)); x = jax.random.normal(jax.random.PRNGKey(0), (512, 64)); y = jnp.argmax(x[:, :10], 1)
    def loss(w): return -jnp.mean(jax.nn.log_softmax(x @ w)[jnp.arange(512), y])
    step = jax.jit(lambda w: w - 0.5 * jax.grad(loss)(w))
    for op in range(20):
        w = step(w)
        core.train.report_training_metrics(op + 1, {"loss": float(loss(w))})
    core.train.report_validation_metrics(20, {"loss": float(loss(w))})
"""

LIGHTNING = """
import torch, pytorch_lightning as pl, determined as det
class Net(pl.LightningModule):
    def __init__(self, core):
        super().__init__(); self.net = torch.nn.Linear(64, 10); self.core = core
    def training_step(self, b, i):
        loss = torch.nn.functional.cross_entropy(self.net(b[0]), b[1])
        self.core.train.report_training_metrics(self.global_step + 1, {"loss": float(loss)})
        return loss
    def validation_step(self, b, i):
        assert b[0].is_cuda
        self.last = float(torch.nn.functional.cross_entropy(self.net(b[0]), b[1]))
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn(640, 64), torch.randint(0, 10, (640,)))
with det.core.init() as core:
    net = Net(core)
    t = pl.Trainer(max_epochs=2, accelerator="gpu", devices=1, precision="bf16-mixed", logger=False, enable_checkpointing=False)
    t.fit(net, torch.utils.data.DataLoader(data, 64, num_workers=2), torch.utils.data.DataLoader(data, 64))
    core.train.report_validation_metrics(net.global_step, {"loss": net.last})
"""

HUGGING = """
import os
os.environ["HF_HUB_OFFLINE"] = "1"
import torch, transformers, determined as det
from determined.transformers import DetCallback
config = transformers.BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_labels=2)
model = transformers.BertForSequenceClassification(config)
class Data(torch.utils.data.Dataset):
    def __len__(self): return 256
    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i); ids = torch.randint(5, 100, (16,), generator=g)
        return {"input_ids": ids, "labels": (ids[0] > 50).long()}
args = transformers.TrainingArguments(output_dir="out", max_steps=40, eval_strategy="steps", eval_steps=20, save_strategy="steps", save_steps=20, logging_steps=10,
    per_device_train_batch_size=16, report_to=[], bf16=True, dataloader_num_workers=2)
with det.core.init() as core:
    t = transformers.Trainer(model=model, args=args, train_dataset=Data(), eval_dataset=Data())
    assert t.model.device.type == "cuda", t.model.device
    t.add_callback(DetCallback(core, args))
    t.train()
"""

PROFILED = """
import time, torch, determined as det
with det.core.init() as core:
    core.profiler.on(sampling_interval=1, samples_per_report=2)
    a = torch.randn(8192, 8192, device="cuda")
    until = time.time() + 8
    while time.time() < until:
        a = torch.nn.functional.normalize(a @ a)
        torch.cuda.synchronize()
    core.train.report_validation_metrics(1, {"loss": 1.0})
"""


def needs(library):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


def run(lab, script, **more):
    """Runs a script as an experiment to its end. Returns the ids of the experiment and of its trial."""
    experiment = lab.submit_script(script, **more)
    state = lab.wait_end(experiment, 120)
    trial = lab.trials(experiment)[0]["id"]
    assert state == "COMPLETED", lab.cli("trial", "logs", str(trial)).stdout[-4000:]
    return experiment, trial


def test_compiled_models_and_loaders_with_workers(lab):
    before = used_mib()[0]
    run(lab, COMPILED, trials=2)
    wait_for(lambda: used_mib()[0] < before + 256, 30, what=used_mib)


def test_jax(lab):
    needs("jax")
    _, trial = run(lab, JAX)
    (last,) = lab.json("trial", "metrics", str(trial), "--group", "validation")
    assert last["metrics"]["loss"] < 2


def test_lightning(lab):
    needs("pytorch_lightning")
    run(lab, LIGHTNING)


def test_hugging_face(lab):
    needs("transformers")
    experiment, trial = run(lab, HUGGING, searcher="name: random, metric: eval_loss, max_length: {batches: 40}")
    assert {"training", "validation"} <= {row["group"] for row in lab.json("trial", "metrics", str(trial))}
    assert lab.json("checkpoint", "list", str(experiment))


def test_the_profiler_of_the_stock_package_sees_the_gpu(lab):
    needs("pynvml")
    _, trial = run(lab, PROFILED)
    rows = lab.json("trial", "metrics", str(trial), "--group", "gpu")
    assert any(of["gpu_util"] > 30 for row in rows for of in row["metrics"]["vm"].values()), rows
