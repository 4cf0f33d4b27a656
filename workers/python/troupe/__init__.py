"""Report metrics, save and load checkpoints and honour preemption, in two or three lines.

    import troupe

    p = troupe.params(lr=1e-3, hidden=64)
    model, done = build(p), 0
    if path := troupe.resume():
        done = load(path, model)
    for step in troupe.steps(done, 1000):
        troupe.log(loss=train_one(model))
        if step % 100 == 0:
            troupe.validate(val_loss=evaluate(model))
            with troupe.checkpoint() as path:
                save(path, model, step)

On a Troupe cluster this talks to the agent of the host; anywhere else the same script writes ./troupe-runs/NAME/.
Every function may be called from any thread. A forked child is another process: the child reports under its own name, and the reports
that its parent has queued stay with the parent. With several ranks (environment variable RANK) the trial's metrics and
checkpoints are those of rank 0. The other ranks may call every function, and report nothing.
"""

import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator, Mapping, Optional

try:
    from troupe import _session
except ModuleNotFoundError as missing:
    # While `python3 -m troupe.services.X` looks for its module, `sys.argv[0]` is "-m". The log of such a task then gets one line
    # in place of a traceback.
    if missing.name != "msgpack" or sys.argv[:1] != ["-m"]:
        raise
    raise SystemExit(
        f"troupe: msgpack is not installed for {sys.executable}, which is the first python3 that this task's account may run: "
        f"run './setup tasks' on this host, or '{sys.executable} -m pip install msgpack'"
    ) from None
from troupe._errors import Refused, TroupeError
from troupe._params import Params

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from troupe._local_cluster import ClusterError, LocalCluster

__version__ = "0.1.0"
__all__ = [
    "ClusterError",
    "LocalCluster",
    "Params",
    "Refused",
    "TroupeError",
    "checkpoint",
    "dropped",
    "flush",
    "log",
    "params",
    "progress",
    "resume",
    "should_stop",
    "steps",
    "stop_reason",
    "validate",
]

_NONE_GIVEN: Mapping[str, Any] = {}

stop_reason: Optional[str]
"""Why should_stop() is true: "pause", "perturbed", "pruned", "canceled" or "preempted". None while should_stop() is false."""


def params(**defaults: Any) -> Params:
    """The hyperparameters of this run, by attribute (`p.lr`) and by item (`p["lr"]`).

    `defaults` are overridden by the constants of the config's `hyperparameters` and the searcher's choices, and these by
    flags of the command line: `--name=value` or `--name value` (`--a-b=1` also sets `a_b`). Flags of other names are ignored. A flag is
    read as the type of the value that the flag replaces. A whole number in place of a float default becomes a float.

    Raises ValueError where a flag does not fit the type, and TroupeError where the cluster's values are not a JSON object.
    """
    from troupe import _params

    return _params.merge(defaults, _session.current().settings.hparams, _params.command_line())


def log(metrics: Mapping[str, Any] = _NONE_GIVEN, *, step: Optional[int] = None, **more: Any) -> None:
    """Reports training metrics: `log({"loss": 0.1}, step=7)` or `log(loss=0.1)`.

    `step` is the number of batches trained so far. Its default is the running step of troupe.steps(), or outside of that loop one more
    than the step of the last report. Values are numbers (NaN and infinities too), strings, booleans, None, lists and maps of these, and
    numpy and torch scalars.

    Never waits and never raises. A report is dropped where the queue is full, where a value or `step` is not valid, or where the metrics
    exceed 1 MiB, 64 levels or 1,000 keys. The first report that is dropped for a cause is noted on stderr, and dropped() counts all.
    """
    try:
        _session.current().log(_together(metrics, more), step)
    except Exception as why:
        _session.lose(1)
        _session.warn(f"log {type(why).__name__}", f"log: {why}; the report is dropped")


def validate(metrics: Mapping[str, Any] = _NONE_GIVEN, *, step: Optional[int] = None, **more: Any) -> None:
    """Reports validation metrics, and returns once they are durable and the searcher has decided, or has not done so within 100 ms.

    The arguments are those of log(). The default of `step` is the running step of troupe.steps(). Outside of that loop the default is
    the step of the last report, or one more where log() was not called since the last validation. Afterwards should_stop() knows the
    decision. While the agent or the master is away, the call waits without limit; that is not a failure.

    Raises TypeError where `metrics` is not a map or holds a value that is not a metric, Refused (a ValueError) beyond the limits of
    log() or where the cluster refuses the report, and TroupeError where the cluster refuses this process.
    """
    _session.current().validate(_together(metrics, more), step)


def steps(start: int, stop: int) -> Iterator[int]:
    """Counts the steps of a run: yields start+1, ..., stop. `start` is the number of steps that are already done: 0, or a saved number.

    While step N runs, N is the default `step` of log(), validate() and checkpoint(). After each step the progress N / `stop` is
    reported. The loop ends early, after the running step, once should_stop() is true: save a checkpoint after the loop if the last
    checkpoint is older.
    """
    session = _session.current()
    try:
        for step in range(start + 1, stop + 1):
            if session.sink.stop_reason is not None:
                return
            session.step = step
            yield step
            session.sink.progress(step / stop)
    finally:
        if session.step is not None:
            session.last_step, session.step = session.step, None


def checkpoint(step: Optional[int] = None, metadata: Optional[Mapping[str, Any]] = None) -> "AbstractContextManager[Path]":
    """Returns a context manager that gives an empty folder (pathlib.Path) to save into:

        with troupe.checkpoint(step) as path:
            torch.save(state, path / "state.pt")

    Before the block ends, every file is synced, the folder is renamed to its UUID, and the cluster has recorded the checkpoint, so that
    resume() of a later run finds it. If the block raises, nothing remains. The default of `step` is the running step of troupe.steps(),
    or outside of that loop the step of the last report. `metadata` is a map with the same kinds of values as metrics. On ranks other than
    0 the folder is removed after the block.

    Raises what validate() raises, and OSError where a file or folder cannot be written.
    """
    return _session.current().checkpoint(step, metadata)


def resume() -> "Optional[Path]":
    """The folder of the checkpoint to resume from, or None on a fresh start. The script must not change the folder.

    Without a cluster this is the latest checkpoint of the run that the environment variable TROUPE_RESUME names (`latest` names the
    newest run).

    Raises TroupeError where the folder does not exist any more.
    """
    return _session.current().resume()


def should_stop() -> bool:
    """True once the run should save a checkpoint and end, because the experiment is paused or canceled, the searcher prunes or perturbs
    the trial, or the run is preempted. The call does not wait and may be made in every step. It returns False where the session cannot
    start; log() says why."""
    try:
        return _session.current().sink.stop_reason is not None
    except TroupeError:
        return False


def progress(done: float, total: float = 1.0) -> None:
    """Reports which part of the run is done: `progress(0.3)` or `progress(30, 100)`. Displays use the value, and the estimate of the end.
    The value is passed on at most once a second, in whole percents. Never raises."""
    try:
        _session.current().sink.progress(min(1.0, max(0.0, float(done) / float(total))))
    except Exception as why:
        _session.warn("progress", f"progress: {why}")


def flush(timeout: Optional[float] = None) -> bool:
    """Waits at most `timeout` seconds (None means without limit) until every report so far is durable.

    Returns True where all reports are durable. Returns False where the time is over, the cluster refuses this process, or dropped() is
    not 0.
    """
    return _session.current().flush(timeout)


def dropped() -> int:
    """The number of reports of this process that will never be durable, because the queue was full, or because a report could not be
    made or was refused."""
    return _session.dropped()


def _together(metrics: Any, more: Dict[str, Any]) -> Any:
    if metrics is _NONE_GIVEN:
        return more
    if more:
        if not isinstance(metrics, Mapping):
            raise TypeError(f"metrics must be a map of names to values, not {type(metrics).__name__}")
        return {**metrics, **more}
    return metrics


def __getattr__(name: str) -> Any:
    if name == "stop_reason":
        return _session.current().sink.stop_reason
    if name in ("ClusterError", "LocalCluster", "LocalRun"):  # loaded on demand: only programs with a cluster need them
        from troupe import _local_cluster

        return getattr(_local_cluster, name)
    raise AttributeError(f"module 'troupe' has no attribute {name!r}")
