"""DistributedDataParallel on scikit-learn's digits: an ordinary script for torchrun, with three lines of Troupe."""
import os

import torch
import torch.distributed as dist
import troupe
from sklearn.datasets import load_digits
from torch import nn

p = troupe.params(lr=0.01, hidden=64, batch_size=64, batches=300)
if "RANK" in os.environ:
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else torch.device("cpu")
torch.set_num_threads(1)
torch.manual_seed(0)

images, labels = load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32, device=device) / 16
labels = torch.tensor(labels, device=device)
train, held_out = slice(0, 1437), slice(1437, None)
model = nn.Sequential(nn.Linear(64, p.hidden), nn.ReLU(), nn.Linear(p.hidden, 10)).to(device)
net = nn.parallel.DistributedDataParallel(model) if dist.is_initialized() else model
optimizer = torch.optim.SGD(model.parameters(), lr=p.lr, momentum=0.9)
done = 0
if folder := troupe.resume():
    state = torch.load(folder / "state.pt", map_location=device)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    done = state["step"]


def save(step):
    with troupe.checkpoint(step) as path:  # rank 0's is kept
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path / "state.pt")


step = done
for step in range(done + 1, p.batches + 1):
    # Which rows a batch has depends on its number alone, so that a run goes on in the middle of an epoch; a rank takes its part.
    rows = torch.randint(1437, (p.batch_size,), generator=torch.Generator().manual_seed(step))
    rows = rows.chunk(ranks)[rank]
    loss = nn.functional.cross_entropy(net(images[train][rows]), labels[train][rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean = loss.detach().clone()
    if ranks > 1:
        dist.all_reduce(mean)
    troupe.log(loss=float(mean) / ranks, step=step)
    if step % 50 == 0 or step == p.batches:
        with torch.no_grad():
            right = (model(images[held_out]).argmax(1) == labels[held_out]).double().mean()
        troupe.validate(val_accuracy=float(right), step=step)
    stop = torch.tensor(float(troupe.should_stop()), device=device)
    if ranks > 1:
        dist.all_reduce(stop)  # a stop reaches the ranks at different times; they end at the same step
    if stop > 0:
        break
save(step)
if dist.is_initialized():
    dist.destroy_process_group()
