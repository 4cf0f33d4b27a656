"""The one session of this process. It is made at the first call, and a forked child forgets it."""

import atexit
import operator
import os
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

from troupe import _encode
from troupe._errors import TroupeError
from troupe._settings import read_settings

if TYPE_CHECKING:
    from pathlib import Path

EXIT_FLUSH_S = 10.0


class Session:
    """Passes the calls of the package on, to a link to the agent or to a local folder."""

    def __init__(self) -> None:
        self.settings = read_settings()
        self.sink: Any
        if self.settings.on_cluster:
            from troupe._link import Link  # imported here, because only a link needs pyzmq

            self.sink = Link(self.settings, warn, lose)
        else:
            from troupe._local import LocalRun

            self.sink = LocalRun(self.settings)
        self.step: Optional[int] = None  #: the running step of troupe.steps(); None outside of that loop
        self.last_step = 0  #: step of the newest report or checkpoint
        self.logged_since_validation = False
        self.speaks = self.settings.rank == 0
        self._ended = False

    def log(self, metrics: Any, step: Optional[int]) -> None:
        data = _encode.plain(metrics)
        steps = self._step(step, self.last_step + 1)
        self.logged_since_validation = True
        if self.speaks and not self.sink.log("training", steps, data):
            lose(1)

    def validate(self, metrics: Any, step: Optional[int]) -> None:
        data = _encode.plain(metrics)
        steps = self._step(step, self.last_step if self.logged_since_validation else self.last_step + 1)
        self.logged_since_validation = False
        if self.speaks:
            self.sink.validate(steps, data)

    @contextmanager
    def checkpoint(self, step: Optional[int], metadata: Any) -> "Iterator[Path]":
        from troupe import _checkpoint

        data = _encode.plain({} if metadata is None else metadata)
        _encode.pack_metrics(data)
        steps = self._step(step, self.last_step)
        if not self.speaks:
            root = self._checkpoint_root() if self.settings.on_cluster else None
            with _checkpoint.discarding(root) as path:
                yield path
            return

        def record(name: str, files: Dict[str, int]) -> None:
            self.sink.checkpoint(name, steps, files, data)

        with _checkpoint.writing(self._checkpoint_root(), record, lambda files: len(_encode.pack(files))) as path:
            yield path

    def resume(self) -> "Optional[Path]":
        if not self.settings.on_cluster:
            return self.sink.latest_checkpoint()
        if not self.settings.resume:
            return None
        from pathlib import Path

        path = Path(self.settings.checkpoint_dir) / self.settings.resume
        if not path.is_dir():
            raise TroupeError(f"the checkpoint to resume from is not there: {path} (TROUPE_RESUME_CHECKPOINT)")
        return path

    def flush(self, timeout: Optional[float]) -> bool:
        return bool(self.sink.flush(timeout)) and dropped() == 0

    def end(self) -> None:
        """Runs at exit, and waits at most EXIT_FLUSH_S seconds until the queued reports are durable."""
        if self._ended:
            return
        self._ended = True
        if not self.sink.flush(EXIT_FLUSH_S) and self.sink.unconfirmed():
            warn("exit", f"{self.sink.unconfirmed():,} reports were not confirmed within {EXIT_FLUSH_S:.0f} s of the end")
        self.sink.close(2.0)

    def _checkpoint_root(self) -> "Path":
        if not self.settings.on_cluster:
            return self.sink.checkpoint_root()
        if not self.settings.checkpoint_dir:
            raise TroupeError("TROUPE_CHECKPOINT_DIR is not set: the agent named no folder for checkpoints")
        from pathlib import Path

        return Path(self.settings.checkpoint_dir)

    def _step(self, given: Optional[int], otherwise: int) -> int:
        if given is None:
            given = self.step if self.step is not None else otherwise
        number = operator.index(given)
        if not 0 <= number < 1 << 63:
            raise ValueError(f"step={number}: expected a number from 0")
        self.last_step = number
        return number


_lock = threading.Lock()
_current: Optional[Session] = None
_inherited: List[Any] = []  # sessions of the parent process; kept here so that the collector does not end them
_dropped = 0
_warned: set = set()


def current() -> Session:
    """The session of this process. Raises TroupeError where the environment is incomplete."""
    global _current
    session = _current
    if session is not None:
        return session
    with _lock:
        if _current is None:
            _current = Session()
            _at_exit(os.getpid())
        return _current


def warn(cause: str, text: str) -> None:
    """Writes a line on stderr, once for each cause in this process."""
    if cause not in _warned:
        _warned.add(cause)
        try:
            print(f"troupe: {text}", file=sys.stderr, flush=True)
        except (OSError, ValueError):
            pass


def lose(count: int) -> None:
    global _dropped
    _dropped += count


def dropped() -> int:
    return _dropped


def _at_exit(pid: int) -> None:
    atexit.register(_end, pid)
    # Children of multiprocessing end through os._exit and run only the finalizers of multiprocessing.
    util = sys.modules.get("multiprocessing.util")
    if util is not None and sys.modules["multiprocessing"].parent_process() is not None:
        util.Finalize(None, _end, args=(pid,), exitpriority=100)


def _end(pid: int) -> None:
    if _current is not None and os.getpid() == pid:
        _current.end()


def _forget() -> None:
    # The parent's thread and socket do not exist here, and its queue belongs to the parent.
    global _current, _lock, _dropped, _warned
    if _current is not None:
        _inherited.append(_current)
    _current, _lock, _dropped, _warned = None, threading.Lock(), 0, set()


os.register_at_fork(after_in_child=_forget)
