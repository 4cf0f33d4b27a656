"""Tests troupe.torch: a class on one rank and on two, in one run and in several. There is no cluster: runs are in ./troupe-runs."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from ports import free_port

pytest.importorskip("torch")
PACKAGE = Path(__file__).parent.parent

SCRIPT = """
import atexit, os, sys, torch
atexit.register(lambda: torch.distributed.is_initialized() and os._exit(9))  # the last to be called
import troupe, troupe.torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def data(n, seed):
    x = torch.randn(n, 8, generator=torch.Generator().manual_seed(seed))
    return TensorDataset(x, x.sum(1, keepdim=True).sin())

class Curve(troupe.torch.Trial):
    def __init__(self, ctx, p):
        layers = [nn.Linear(8, 16), nn.Tanh()] + ([nn.Dropout(0.2)] if p.dropout else []) + [nn.Linear(16, 1)]
        self.net = ctx.wrap(nn.Sequential(*layers).double())
        self.opt = ctx.wrap(torch.optim.SGD(self.net.parameters(), p.lr, momentum=0.9))
        ctx.wrap(torch.optim.lr_scheduler.StepLR(self.opt, 20, 0.9))
    def train_loader(self): return DataLoader(data(250, 1), batch_size=32, shuffle=True)
    def val_loader(self): return DataLoader(data(45, 2), batch_size=32)
    def loss(self, batch): return nn.functional.mse_loss(self.net(batch[0].double()), batch[1].double())
    def train_batch(self, batch, epoch, i): return {"loss": self.loss(batch)}
    def evaluate_batch(self, batch, i): return {"val_loss": self.loss(batch), "largest": batch[1].max()}
    def reducers(self): return {"largest": lambda all: float(max(all))}

class Quit(Exception): pass
class Stop(troupe.torch.Callback):
    def on_batch_end(self, i, metrics):
        if i + 1 == p.quit_at:
            troupe.should_stop = lambda: True

p = troupe.params(lr=0.05, batches=200, quit_at=0, dropout=False, accumulate=1)
troupe.torch.fit(Curve, batches=p.batches, validate_every="50 batches", checkpoint_every=None, report_every=1, callbacks=[Stop()],
                 accumulate=p.accumulate, clip_norm=1.0, lr=p.lr, dropout=p.dropout)
"""


def train(folder, *flags, ranks=1, name="run", **more):
    (folder / "script.py").write_text(SCRIPT)
    base = {k: v for k, v in os.environ.items() if not k.startswith(("TROUPE_", "TORCHELASTIC_"))}
    env = {**base, "PYTHONPATH": str(PACKAGE), "TROUPE_RUN_NAME": name, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1",
           "WORLD_SIZE": str(ranks), **more}
    started = [subprocess.Popen([sys.executable, "script.py", *flags], cwd=folder, stderr=subprocess.PIPE, text=True,
                                env={**env, "RANK": str(r), "LOCAL_RANK": str(r)}) for r in range(ranks)]
    texts = [p.communicate(timeout=200)[1] for p in started]
    assert all(p.returncode == 0 for p in started), texts
    run = folder / "troupe-runs" / name
    rows = [json.loads(line) for line in (run / "reports.jsonl").read_text().splitlines()]
    uuid = json.loads((run / "checkpoints.jsonl").read_text().splitlines()[-1])["uuid"]
    return rows, run / "checkpoints" / uuid / "troupe.pt"


def group(rows, name):
    return [(row["steps"], row["metrics"]) for row in rows if row["group"] == name]


def same_state(a, b):
    import torch

    def leaves(x):
        if isinstance(x, dict):
            return [leaf for key in sorted(x, key=str) for leaf in leaves(x[key])]
        return [leaf for one in x for leaf in leaves(one)] if isinstance(x, (list, tuple)) else [x]

    one, other = (leaves(torch.load(path, weights_only=True)["context"]) for path in (a, b))
    assert len(one) == len(other)
    return all(torch.equal(x, y) if isinstance(x, torch.Tensor) else x == y for x, y in zip(one, other))


def test_two_ranks_have_the_curve_of_one(tmp_path):
    one, _ = train(tmp_path, name="one")
    two, _ = train(tmp_path, name="two", ranks=2)
    assert [steps for steps, _ in group(two, "training")] == list(range(1, 201))
    for (_, a), (_, b) in zip(group(one, "training"), group(two, "training")):
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-5)
    assert [steps for steps, _ in group(two, "validation")] == [50, 100, 150, 200]
    for (_, a), (_, b) in zip(group(one, "validation"), group(two, "validation")):
        assert b == pytest.approx(a, rel=1e-5)


@pytest.mark.parametrize("ranks", [1, 2])
def test_stopped_in_the_middle_of_an_epoch_it_goes_on_to_the_same_bits(tmp_path, ranks):
    seed = random.randrange(1 << 30)
    at = random.Random(seed).randrange(1, 70)
    whole, end = train(tmp_path, "--batches=70", "--dropout=true", name="whole", ranks=ranks)
    train(tmp_path, "--batches=70", "--dropout=true", f"--quit_at={at}", name="parts", ranks=ranks)
    parts, again = train(tmp_path, "--batches=70", "--dropout=true", name="parts", ranks=ranks, TROUPE_RESUME="parts")
    assert same_state(end, again), f"seed {seed}: stopped after {at}"
    assert group(parts, "training") == group(whole, "training"), f"seed {seed}: stopped after {at}"


def test_accumulated_gradients_are_those_of_the_larger_batch(tmp_path):
    rows, _ = train(tmp_path, "--accumulate=4", "--batches=16")
    losses = [m["loss"] for _, m in group(rows, "training")]
    assert len(losses) == 16 and all(x == x for x in losses)


def test_what_is_wrong_is_said(tmp_path):
    import torch

    import troupe.torch as tt

    for words, text in ((dict(), "epochs=N or batches=N"), (dict(epochs=1, amp="fp8"), "amp='fp8'"), (dict(epochs=1, accumulate=0), "accumulate=0")):
        with pytest.raises(ValueError, match=text):
            tt.fit(tt.Trial, **words)
    for period in ("often", "0 batches", "3 days", ""):
        with pytest.raises(ValueError, match="validate_every"):
            tt._in_batches(period, 10, "validate_every")
    assert [tt._in_batches(x, 10, "n") for x in (None, 5, "7 batches", "1 batch", "2 epochs", "1 epoch")] == [0, 5, 7, 1, 20, 10]
    assert torch is not None
