"""A small network on scikit-learn's bundled digits (1,797 images of 8x8; 360 of them for validation).

On a cluster the search chooses the hyperparameters; alone, flags do:  python3 train.py --lr=0.01 --epochs=4

Environment, for measurements: DIGITS_TRACE=FILE appends a line of JSON for each event (imported, start, epoch, reported, end);
DIGITS_EPOCH_S=0.5 stretches each epoch to that time.
"""

import json
import os
import time

began = time.time()
import torch  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402
from sklearn.model_selection import train_test_split  # noqa: E402
from torch import nn  # noqa: E402

import troupe  # noqa: E402

SAVE_EVERY_S = 2.0  # between checkpoints; one more at the end and when asked to stop


def trace(event, **fields):
    if path := os.environ.get("DIGITS_TRACE"):
        with open(path, "a") as file:
            file.write(json.dumps({"t": time.time(), "ev": event, "pid": os.getpid(), **fields}) + "\n")


def load_data():
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, labels, test_size=360, random_state=0, stratify=labels)
    train_x, val_x, train_y, val_y = (torch.tensor(part) for part in parts)
    return train_x.float(), train_y, val_x.float(), val_y


def train_epoch(net, optimizer, x, y, batch_size):
    net.train()
    for batch in torch.randperm(len(x)).split(batch_size):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[batch]), y[batch]).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


def save(steps, net, optimizer, epoch):
    with troupe.checkpoint(steps, metadata={"epoch": epoch}) as path:
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch,
                    "random": torch.get_rng_state()}, path / "state.pt")


def main():
    p = troupe.params(lr=1e-2, hidden=64, dropout=0.1, batch_size=64, weight_decay=1e-5, epochs=16)
    key = "%.6g/%d" % (p.lr, p.hidden)
    trace("start", key=key)
    torch.set_num_threads(1)
    torch.manual_seed(int(os.environ.get("TROUPE_TRIAL_SEED", 0)))
    train_x, train_y, val_x, val_y = load_data()
    net = nn.Sequential(nn.Linear(64, p.hidden), nn.ReLU(), nn.Dropout(p.dropout), nn.Linear(p.hidden, 10))
    optimizer = torch.optim.AdamW(net.parameters(), lr=p.lr, weight_decay=p.weight_decay)
    batches = -(-len(train_x) // p.batch_size)  # in one epoch
    stretch = float(os.environ.get("DIGITS_EPOCH_S", 0))

    done = 0
    if path := troupe.resume():
        state = torch.load(path / "state.pt", weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        done = state["epoch"]

    saved, saved_at = done, time.monotonic()
    while done < p.epochs and not troupe.should_stop():
        epoch_began = time.monotonic()
        train_epoch(net, optimizer, train_x, train_y, p.batch_size)
        value = accuracy(net, val_x, val_y)
        time.sleep(max(0.0, stretch - (time.monotonic() - epoch_began)))
        done += 1
        trace("epoch", key=key, epoch=done, acc=round(value, 5))
        troupe.validate({"val_accuracy": value, "epoch": done}, step=done * batches)
        trace("reported", key=key, epoch=done)
        troupe.progress(done, p.epochs)
        if time.monotonic() - saved_at > SAVE_EVERY_S:
            save(done * batches, net, optimizer, done)
            saved, saved_at = done, time.monotonic()
    if saved < done:
        save(done * batches, net, optimizer, done)
    trace("end", key=key)


if __name__ == "__main__":
    trace("imported", import_s=round(time.time() - began, 3))
    main()
