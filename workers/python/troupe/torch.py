"""Trains a PyTorch model that is written as a class with hooks, in one process or on all ranks of a run.

    import torch, troupe, troupe.torch

    class Digits(troupe.torch.Trial):
        def __init__(self, ctx, p):
            self.net = ctx.wrap(Net(p.hidden))
            self.opt = ctx.wrap(torch.optim.SGD(self.net.parameters(), p.lr))
        def train_loader(self):                   return DataLoader(train_set, batch_size=64, shuffle=True)
        def val_loader(self):                     return DataLoader(val_set, batch_size=256)
        def train_batch(self, batch, epoch, i):   return {"loss": loss_of(self.net, batch)}
        def evaluate_batch(self, batch, i):       return {"val_loss": ..., "accuracy": ...}

    troupe.torch.fit(Digits, epochs=3, validate_every="100 batches", checkpoint_every="1 epoch")

The `batch_size` of a loader is the number of samples of all ranks together. Each rank takes its part of every batch, and gradients are
weighted by the lengths of the parts, so that two ranks follow the curve of one. The environment names the ranks (`launch: per_slot` and
torchrun set it; see troupe.dist).

Random numbers depend only on the seed, the number of the batch and the rank, so that a run which stops in the middle of an epoch
continues as if it had not stopped. The exception are random numbers that a loader's own worker processes draw.
"""

import atexit
import contextlib
import inspect
import os
import random
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch
import torch.distributed as torch_dist
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler

import troupe
from troupe import dist as ranks

__all__ = ["Callback", "Context", "Trial", "fit"]

Period = Union[int, str, None]  #: a number of batches, or a text such as "100 batches" or "2 epochs"; None means only at the end


class Trial:
    """The base class of the classes that fit() trains. Build the model in __init__(self, ctx, p): `ctx` is a Context, and `p` holds the
    hyperparameters (troupe.params()). train_loader() and train_batch() are required. Without val_loader(), nothing is validated; with it,
    evaluate_batch() is required too."""

    def train_loader(self) -> DataLoader:
        """Returns the DataLoader of the training data. It needs a dataset with a length and a `batch_size` of at least the number of ranks;
        its batches may be shuffled."""
        raise NotImplementedError(f"{type(self).__name__} has no train_loader()")

    def val_loader(self) -> Optional[DataLoader]:
        """Returns the DataLoader of the validation data, with a dataset that has a length and a `batch_size`, or None."""
        return None

    def train_batch(self, batch: Any, epoch: int, i: int) -> Mapping[str, Any]:
        """Returns the metrics of this rank's part of batch `i`, which counts from 0 over the whole run.

        `batch` is on the rank's device. The value of "loss" is a tensor; its gradients train the model, unless ctx.manual() was called.
        """
        raise NotImplementedError(f"{type(self).__name__} has no train_batch()")

    def evaluate_batch(self, batch: Any, i: int) -> Mapping[str, Any]:
        """Returns the metrics of this rank's part of batch `i` of val_loader(), from 0. For each metric the mean over all samples is
        reported, unless reducers() names another function."""
        raise NotImplementedError(f"{type(self).__name__} has no evaluate_batch()")

    def reducers(self) -> Mapping[str, Callable[[List[Any]], Any]]:
        """Returns a map from names of metrics of evaluate_batch() to functions. Each function gets the list of that metric's values of all
        batches and ranks, and returns the value to report."""
        return {}


class Callback:
    """The base class of callbacks of fit(). Checkpoints hold what state_dict() returns, and load_state_dict() gets it after a restart.

    All hooks run on every rank, except on_checkpoint(), which runs on rank 0 with the folder that becomes the checkpoint. `i` is the number
    of the batch from 0 over the whole run.
    """

    def on_start(self, trial: Trial) -> None: ...
    def on_epoch_start(self, epoch: int) -> None: ...
    def on_epoch_end(self, epoch: int) -> None: ...
    def on_batch_end(self, i: int, metrics: Mapping[str, Any]) -> None: ...
    def on_validation_end(self, metrics: Mapping[str, Any]) -> None: ...
    def on_checkpoint(self, path: "os.PathLike[str]") -> None: ...
    def on_end(self) -> None: ...

    def state_dict(self) -> Dict[str, Any]:
        return {}

    def load_state_dict(self, state: Dict[str, Any]) -> None: ...


class Context:
    """What a trial builds itself with. `rank` and `size` are those of the run, `device` is the torch.device of this rank."""

    def __init__(self, amp: Optional[str], accumulate: int, clip_norm: Optional[float], clip_value: Optional[float]):
        if amp not in (None, "bf16", "fp16"):
            raise ValueError(f"amp={amp!r}: expected None, 'bf16' or 'fp16'")
        if accumulate < 1:
            raise ValueError(f"accumulate={accumulate}: expected at least 1")
        self.rank, self.size = ranks.rank(), ranks.size()
        cuda = torch.cuda.is_available()
        self.device = torch.device("cuda", ranks.local_rank() % torch.cuda.device_count()) if cuda else torch.device("cpu")
        if cuda:
            torch.cuda.set_device(self.device)
        if self.size > 1 and not torch_dist.is_initialized():
            torch_dist.init_process_group("nccl" if cuda else "gloo")
        self._amp = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(amp or "")
        # With half precision small gradients become 0 unless the loss is scaled. On a CPU the scaler is off.
        self._scaler = torch.amp.GradScaler(self.device.type, enabled=amp == "fp16" and cuda)
        self._accumulate, self._clip_norm, self._clip_value = accumulate, clip_norm, clip_value
        self._modules: List[torch.nn.Module] = []
        self._optimizers: List[torch.optim.Optimizer] = []
        self._schedulers: List[Tuple[Any, str]] = []
        self._manual = False
        self._weight = 1.0  # of this rank's part of the batch in the mean gradient; 1 where all parts are equally long
        self._steps_now = True  # whether the optimizer steps after the running batch; False while gradients are accumulated

    def wrap(self, what: Any, every: str = "batch") -> Any:
        """Adds a module, an optimizer or a scheduler to the trial and its checkpoints. Returns the object to use in its place.

        A module is moved to the device, and with several ranks its gradients are averaged over them. A scheduler is stepped after each
        `every`: "batch" (each batch after which the optimizers step) or "epoch". Raises TypeError for any other object, and
        ValueError for another `every`.
        """
        if isinstance(what, torch.nn.Module):
            what = what.to(self.device)
            if self.size > 1 and any(x.requires_grad for x in what.parameters()):
                devices = [self.device] if self.device.type == "cuda" else None
                what = torch.nn.parallel.DistributedDataParallel(what, device_ids=devices)
            self._modules.append(what)
        elif isinstance(what, torch.optim.Optimizer):
            self._optimizers.append(what)
        elif hasattr(what, "step") and hasattr(what, "state_dict"):
            if every not in ("batch", "epoch"):
                raise ValueError(f"every={every!r}: expected 'batch' or 'epoch'")
            self._schedulers.append((what, every))
        else:
            raise TypeError(f"wrap() takes a module, an optimizer or a scheduler, not {type(what).__name__}")
        return what

    def manual(self) -> None:
        """Declares that train_batch() calls backward() and step() of this context itself, so that fit() does not."""
        self._manual = True

    def backward(self, loss: torch.Tensor) -> None:
        """Computes the gradients of `loss`, weighted by the length of this rank's part of the batch. Trials that have called manual()
        call this themselves; for all others fit() does."""
        self._scaler.scale(loss * (self._weight / self._accumulate)).backward()

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Clips the gradients, steps the optimizer and clears the gradients. Does nothing while gradients are accumulated."""
        if not self._steps_now:
            return
        self._scaler.unscale_(optimizer)
        parameters = [x for group in optimizer.param_groups for x in group["params"] if x.grad is not None]
        if self._clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, self._clip_norm)
        if self._clip_value is not None:
            torch.nn.utils.clip_grad_value_(parameters, self._clip_value)
        self._scaler.step(optimizer)
        optimizer.zero_grad()

    def autocast(self) -> Any:
        """A context manager for computing in the precision that fit() got as `amp`. fit() uses it around train_batch() and
        evaluate_batch()."""
        return torch.autocast(self.device.type, self._amp) if self._amp else contextlib.nullcontext()

    def to_device(self, batch: Any) -> Any:
        """Returns the batch with all tensors moved to the device, also those in lists, tuples and maps."""
        if isinstance(batch, torch.Tensor):
            return batch.to(self.device, non_blocking=True)
        if isinstance(batch, Mapping):
            return type(batch)({k: self.to_device(x) for k, x in batch.items()})
        if isinstance(batch, tuple) and hasattr(batch, "_fields"):
            return type(batch)(*map(self.to_device, batch))
        if isinstance(batch, (list, tuple)):
            return type(batch)(map(self.to_device, batch))
        return batch

    def _quiet_ranks(self) -> Any:
        """A context manager that keeps ranks from exchanging gradients, unless the optimizer steps after this batch."""
        stack = contextlib.ExitStack()
        if not self._steps_now:
            for module in self._modules:
                if isinstance(module, torch.nn.parallel.DistributedDataParallel):
                    stack.enter_context(module.no_sync())
        return stack

    def _state(self) -> Dict[str, Any]:
        plain = [m.module if isinstance(m, torch.nn.parallel.DistributedDataParallel) else m for m in self._modules]
        return {"modules": [m.state_dict() for m in plain], "optimizers": [o.state_dict() for o in self._optimizers],
                "schedulers": [s.state_dict() for s, _ in self._schedulers], "scaler": self._scaler.state_dict()}

    def _load(self, state: Dict[str, Any]) -> None:
        plain = [m.module if isinstance(m, torch.nn.parallel.DistributedDataParallel) else m for m in self._modules]
        for things, key in ((plain, "modules"), (self._optimizers, "optimizers"), ([s for s, _ in self._schedulers], "schedulers")):
            if len(things) != len(state[key]):
                raise troupe.TroupeError(f"the checkpoint has {len(state[key])} {key}, the trial wraps {len(things)}")
            for thing, one in zip(things, state[key]):
                thing.load_state_dict(one)
        self._scaler.load_state_dict(state["scaler"])


class _Part:
    """The part of this rank of each batch of all ranks, from batch `first` on. The parts are consecutive samples of a batch, with
    lengths that differ by at most one."""

    def __init__(self, samples: Sequence[int], batch_size: int, drop_last: bool, rank: int, size: int, first: int):
        self.samples, self.batch_size, self.rank, self.size, self.first = samples, batch_size, rank, size, first
        whole, rest = divmod(len(samples), batch_size)
        # A rest with fewer samples than ranks is left out, because a rank would have no sample.
        self.lengths = [batch_size] * whole + ([rest] if rest >= size and not drop_last else [])

    def part(self, i: int) -> Tuple[int, int]:
        n, begin = self.lengths[i], i * self.batch_size
        return begin + n * self.rank // self.size, begin + n * (self.rank + 1) // self.size

    def weight(self, i: int) -> float:
        begin, end = self.part(i)
        return (end - begin) * self.size / self.lengths[i]

    def __len__(self) -> int:
        return len(self.lengths) - self.first

    def __iter__(self) -> Iterator[List[int]]:
        for i in range(self.first, len(self.lengths)):
            begin, end = self.part(i)
            yield list(self.samples[begin:end])


def _order(loader: DataLoader, seed: int, epoch: int, what: str) -> List[int]:
    if isinstance(loader.dataset, IterableDataset) or type(loader.batch_sampler) is not BatchSampler:
        raise troupe.TroupeError(f"{what}: give it a dataset with a length and a batch_size, with shuffle=True or not; "
                                 "batches of one's own making cannot be shared by ranks or gone on with in the middle")
    count = len(loader.dataset)  # type: ignore[arg-type]
    if isinstance(loader.sampler, RandomSampler):
        return torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch)).tolist()
    if isinstance(loader.sampler, SequentialSampler):
        return list(range(count))
    samples = list(loader.sampler)  # A sampler of the script has to give the same order after a restart.
    return samples


def _remade(loader: DataLoader, part: _Part, seed: int) -> DataLoader:
    return DataLoader(loader.dataset, batch_sampler=part, num_workers=loader.num_workers, collate_fn=loader.collate_fn,  # type: ignore[arg-type]
                      pin_memory=loader.pin_memory, timeout=loader.timeout, worker_init_fn=loader.worker_init_fn,
                      multiprocessing_context=loader.multiprocessing_context, generator=torch.Generator().manual_seed(seed),
                      prefetch_factor=loader.prefetch_factor)


def _in_batches(period: Period, epoch_batches: int, name: str) -> int:
    """The period as a number of batches; 0 means only at the end. Raises ValueError where the text is not a period."""
    if period is None:
        return 0
    words = str(period).split()
    if not words or len(words) > 2 or not words[0].isdigit() or int(words[0]) < 1 or (
            len(words) == 2 and words[1].rstrip("s") not in ("batch", "batche", "epoch")):
        raise ValueError(f"{name}={period!r}: expected a number of batches, '100 batches' or '1 epoch'")
    return int(words[0]) * (epoch_batches if len(words) == 2 and words[1].startswith("epoch") else 1)


def _number(x: Any) -> float:
    return float(x.detach()) if isinstance(x, torch.Tensor) else float(x)


class _Run:
    def __init__(self, trial: Trial, ctx: Context, callbacks: Sequence[Callback], seed: int):
        self.trial, self.ctx, self.callbacks, self.seed = trial, ctx, callbacks, seed
        self.done = 0  # batches that were trained
        self.sums: Dict[str, float] = {}  # sums of training metrics since the last report
        self.counted = 0
        self.saved_at = -1

    def seed_batch(self) -> None:
        number = (self.seed * 1_000_003 + self.done) * 65_537 + self.ctx.rank
        torch.manual_seed(number % (1 << 63))
        random.seed(number)

    def over_ranks(self, values: List[float]) -> List[float]:
        """Returns the sum over all ranks of each value."""
        if self.ctx.size == 1:
            return values
        total = torch.tensor(values, dtype=torch.float64, device=self.ctx.device)
        torch_dist.all_reduce(total)
        return total.tolist()

    def train(self, batch: Any, epoch: int) -> None:
        ctx = self.ctx
        with ctx._quiet_ranks():
            with ctx.autocast():
                metrics = dict(self.trial.train_batch(ctx.to_device(batch), epoch, self.done))
            if not ctx._manual:
                if "loss" not in metrics:
                    raise troupe.TroupeError("train_batch() gave no 'loss' to train on; after ctx.manual() it need not")
                ctx.backward(metrics["loss"])
        if not ctx._manual:
            for optimizer in ctx._optimizers:
                ctx.step(optimizer)
        if ctx._steps_now:
            ctx._scaler.update()
            for scheduler, every in ctx._schedulers:
                if every == "batch":
                    scheduler.step()
        self.done += 1
        self.counted += 1
        for name, x in metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + _number(x) * ctx._weight
        for callback in self.callbacks:
            callback.on_batch_end(self.done - 1, metrics)

    def report(self) -> None:
        names = sorted(self.sums)
        sums = self.over_ranks([self.sums[name] for name in names])
        troupe.log({name: x / self.counted / self.ctx.size for name, x in zip(names, sums)}, step=self.done)
        self.sums, self.counted = {}, 0

    def validate(self) -> None:
        loader = self.trial.val_loader()
        if loader is None:
            return
        ctx = self.ctx
        samples = _order(loader, self.seed, 0, "val_loader()")
        part = _Part(samples, loader.batch_size or 1, False, ctx.rank, ctx.size, 0)
        left = len(samples) - sum(part.lengths)  # a rest with fewer samples than ranks, which rank 0 takes
        reducers = self.trial.reducers()
        sums: Dict[str, float] = {}
        lists: Dict[str, List[Any]] = {name: [] for name in reducers}
        count = 0
        modes = [m.training for m in ctx._modules]
        for module in ctx._modules:
            module.eval()
        batches = list(part)
        if left and ctx.rank == 0:
            batches.append(samples[len(samples) - left:])
        with torch.no_grad(), ctx.autocast():
            for i, batch in enumerate(_remade(loader, batches, self.seed)):  # type: ignore[arg-type]
                n = len(batches[i])
                for name, x in self.trial.evaluate_batch(ctx.to_device(batch), i).items():
                    if name in lists:
                        lists[name].append(x.detach().cpu() if isinstance(x, torch.Tensor) else x)
                    else:
                        sums[name] = sums.get(name, 0.0) + _number(x) * n
                count += n
        for module, mode in zip(ctx._modules, modes):
            module.train(mode)
        names = sorted(sums)
        if ctx.size > 1:
            of_all: List[Any] = [None] * ctx.size
            torch_dist.all_gather_object(of_all, (names, lists))
            names = max((theirs for theirs, _ in of_all), key=len)
            lists = {name: [x for _, theirs in of_all for x in theirs[name]] for name in lists}
        totals = self.over_ranks([sums.get(name, 0.0) for name in names] + [float(count)])
        metrics: Dict[str, Any] = {name: x / totals[-1] for name, x in zip(names, totals)}
        for name, values in lists.items():
            metrics[name] = reducers[name](values)
        troupe.validate(metrics, step=self.done)
        for callback in self.callbacks:
            callback.on_validation_end(metrics)

    def save(self) -> None:
        if self.saved_at == self.done:
            return
        of_all: List[Any] = [(self.sums, self.counted)]
        if self.ctx.size > 1:
            of_all = [None] * self.ctx.size
            torch_dist.all_gather_object(of_all, (self.sums, self.counted))
        state = {"version": 1, "batches": self.done, "means": of_all, "context": self.ctx._state(),
                 "callbacks": [c.state_dict() for c in self.callbacks]}
        with troupe.checkpoint(self.done, {"batches": self.done}) as path:  # only the folder of rank 0 is kept
            if self.ctx.rank == 0:
                torch.save(state, path / "troupe.pt")
                for callback in self.callbacks:
                    callback.on_checkpoint(path)
        self.saved_at = self.done
        if self.ctx.size > 1:
            torch_dist.barrier()

    def load(self) -> None:
        folder = troupe.resume()
        if folder is None:
            return
        state = torch.load(folder / "troupe.pt", map_location=self.ctx.device, weights_only=True)
        self.ctx._load(state["context"])
        self.done = self.saved_at = state["batches"]
        means = state["means"]
        # Where the number of ranks has changed, no rank has sums of its own. Every rank then takes those of rank 0.
        self.sums, self.counted = means[self.ctx.rank] if len(means) == self.ctx.size else means[0]
        for callback, one in zip(self.callbacks, state["callbacks"]):
            callback.load_state_dict(one)

    def stopped(self) -> bool:
        """Whether any rank should stop. A stop reaches the ranks at different times, and this makes them end after the same batch."""
        return self.over_ranks([float(troupe.should_stop())])[0] > 0


def fit(trial_class: Callable[..., Trial], *, epochs: Optional[int] = None, batches: Optional[int] = None, validate_every: Period = "1 epoch",
        checkpoint_every: Period = "1 epoch", report_every: int = 10, amp: Optional[str] = None, accumulate: int = 1,
        clip_norm: Optional[float] = None, clip_value: Optional[float] = None, callbacks: Sequence[Callback] = (),
        seed: Optional[int] = None, **defaults: Any) -> Trial:
    """Trains a trial of `trial_class` and returns it. Where there is a checkpoint to resume from, the training continues there.

    The training ends after `epochs` or `batches`, whichever is fewer; one of them is required. It validates every `validate_every` and
    saves every `checkpoint_every`, in batches or as a text like "1 epoch", and does both at the end. It also saves when the run is asked to
    stop, and then ends. Training metrics are reported every `report_every` batches.

    `amp` is "bf16", "fp16" or None (full precision). The gradients of `accumulate` batches make one step; they are clipped to the norm
    `clip_norm` and to values of at most `clip_value`. `seed` defaults to that of the trial. `defaults` are those of troupe.params().

    Raises ValueError for an argument that is not valid, and TroupeError where a loader cannot be shared by the ranks or the checkpoint does
    not fit the trial.
    """
    if epochs is None and batches is None:
        raise ValueError("fit() needs epochs=N or batches=N")
    params = troupe.params(**defaults)
    if seed is None:
        seed = int(os.environ.get("TROUPE_TRIAL_SEED") or 0)
    torch.manual_seed(seed)  # so that all ranks begin with the same parameters
    ctx = Context(amp, accumulate, clip_norm, clip_value)
    takes_params = len(inspect.signature(trial_class).parameters) > 1
    trial = trial_class(ctx, params) if takes_params else trial_class(ctx)
    run = _Run(trial, ctx, callbacks, seed)
    loader = trial.train_loader()
    if not loader.batch_size or loader.batch_size < ctx.size:
        raise troupe.TroupeError(f"train_loader(): a batch_size of {loader.batch_size} cannot be shared by {ctx.size} ranks")

    def part_of(epoch: int, first: int) -> _Part:
        return _Part(_order(loader, seed, epoch, "train_loader()"), loader.batch_size or 1, loader.drop_last, ctx.rank, ctx.size, first)

    in_epoch = len(part_of(0, 0))
    if in_epoch == 0:
        raise troupe.TroupeError("train_loader() has no whole batch")
    last = min(x for x in (batches, epochs * in_epoch if epochs is not None else None) if x is not None)
    validates, saves = _in_batches(validate_every, in_epoch, "validate_every"), _in_batches(checkpoint_every, in_epoch, "checkpoint_every")
    run.load()
    for callback in callbacks:
        callback.on_start(trial)
    waiting_validation = waiting_save = False
    stop = False
    while run.done < last and not stop:
        epoch, first = divmod(run.done, in_epoch)
        part = part_of(epoch, first)
        if first == 0:
            for callback in callbacks:
                callback.on_epoch_start(epoch)
        run.seed_batch()
        source = iter(_remade(loader, part, seed * 1_000_003 + epoch))
        for inner in range(first, in_epoch):
            run.seed_batch()
            ctx._weight = part.weight(inner)
            ctx._steps_now = (run.done + 1) % accumulate == 0 or run.done + 1 == last
            run.train(next(source), epoch)
            if run.done % max(1, report_every) == 0 or run.done == last:
                run.report()
            if inner + 1 == in_epoch:
                for scheduler, every in ctx._schedulers:
                    if every == "epoch":
                        scheduler.step()
                for callback in callbacks:
                    callback.on_epoch_end(epoch)
            waiting_validation |= run.done == last or (validates > 0 and run.done % validates == 0)
            waiting_save |= run.done == last or (saves > 0 and run.done % saves == 0)
            troupe.progress(run.done, last)
            if not ctx._steps_now:
                continue  # A checkpoint does not hold accumulated gradients.
            if waiting_validation:
                run.validate()
                waiting_validation = False
            stop = run.stopped()
            if waiting_save or stop:
                run.save()
                waiting_save = False
            if stop or run.done >= last:
                break
    for callback in callbacks:
        callback.on_end()
    if ctx.size > 1:
        atexit.register(_leave_group)
    return trial


def _leave_group() -> None:
    """Leaves the group of ranks, which PyTorch wants before the interpreter ends. Where fit() has failed, this is not called, because
    another rank may wait in a collective and this call would wait for that rank."""
    if torch_dist.is_initialized():
        torch_dist.destroy_process_group()
