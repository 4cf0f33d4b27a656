#!/usr/bin/env python3
"""Runs the digits job of configs/experiments/digits-asha.yaml on a peer, with the same network, data, space and budget.
usage: digits_peers.py ray|optuna SEED TRIALS EPOCHS WORKERS
A line of JSON for each epoch is appended to the file that DIGITS_TRACE names."""
import json
import os
import sys

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn


def train(h, epochs, seed):
    """Trains the network and yields the validation accuracy after each epoch."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    images, labels = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, labels, test_size=360, random_state=0, stratify=labels)
    train_x, val_x, train_y, val_y = (torch.tensor(part) for part in parts)
    train_x, val_x = train_x.float(), val_x.float()
    net = nn.Sequential(nn.Linear(64, h["hidden"]), nn.ReLU(), nn.Dropout(h["dropout"]), nn.Linear(h["hidden"], 10))
    optimizer = torch.optim.AdamW(net.parameters(), lr=h["lr"], weight_decay=h["weight_decay"])
    for epoch in range(1, epochs + 1):
        net.train()
        for batch in torch.randperm(len(train_x)).split(h["batch_size"]):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(train_x[batch]), train_y[batch]).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            acc = (net(val_x).argmax(1) == val_y).float().mean().item()
        with open(os.environ["DIGITS_TRACE"], "a") as file:
            file.write(json.dumps({"ev": "epoch", "epoch": epoch, "acc": round(acc, 5), "key": f"{h['lr']:.6g}/{h['hidden']}"}) + "\n")
        yield acc


def with_ray(seed, trials, epochs, workers):
    import ray
    from ray import tune
    from ray.tune.schedulers import ASHAScheduler
    from ray.tune.search.basic_variant import BasicVariantGenerator

    def trainable(config):
        for acc in train(config, epochs, config["seed"]):
            tune.report({"val_acc": acc})

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    tune.Tuner(
        trainable,
        param_space=dict(lr=tune.loguniform(1e-4, 1e-1), hidden=tune.randint(16, 257), dropout=tune.uniform(0, 0.6),
                         batch_size=tune.choice([32, 64, 128]), weight_decay=tune.loguniform(1e-6, 1e-2),
                         seed=tune.randint(0, 1 << 30)),
        tune_config=tune.TuneConfig(metric="val_acc", mode="max", num_samples=trials,
                                    search_alg=BasicVariantGenerator(random_state=seed, max_concurrent=workers),
                                    scheduler=ASHAScheduler(max_t=epochs, grace_period=1, reduction_factor=4)),
        run_config=tune.RunConfig(name="digits", storage_path=os.getcwd(), verbose=0)).fit()


def with_optuna(seed, trials, epochs, workers):
    import optuna

    def objective(trial):
        h = dict(lr=trial.suggest_float("lr", 1e-4, 1e-1, log=True), hidden=trial.suggest_int("hidden", 16, 256),
                 dropout=trial.suggest_float("dropout", 0, 0.6),
                 batch_size=trial.suggest_categorical("batch_size", [32, 64, 128]),
                 weight_decay=trial.suggest_float("weight_decay", 1e-6, 1e-2, log=True))
        for epoch, acc in enumerate(train(h, epochs, 1000 * seed + trial.number), 1):
            trial.report(acc, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned()
        return acc

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed),
                                pruner=optuna.pruners.HyperbandPruner(min_resource=1, max_resource=epochs, reduction_factor=4))
    study.optimize(objective, n_trials=trials, n_jobs=workers)


if __name__ == "__main__":
    {"ray": with_ray, "optuna": with_optuna}[sys.argv[1]](*map(int, sys.argv[2:]))
