"""A run without a cluster: the same functions write to a folder below ./troupe-runs."""

import json
import math
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from troupe import _encode
from troupe._errors import TroupeError
from troupe._settings import Settings

FLUSH_S = 1.0


class LocalRun:
    """Writes reports as lines of JSON and checkpoints as folders. Thread-safe. Ranks other than 0 write nothing."""

    stop_reason: Optional[str] = None  #: always None, because nobody can ask a local run to stop

    def __init__(self, settings: Settings):
        self._lock = threading.Lock()
        self._reports: Any = None
        self._flushed = 0.0
        self._top = Path.cwd() / "troupe-runs"
        self.resumed = bool(settings.resume_run)
        if settings.resume_run == "latest":
            runs = sorted((p for p in self._top.glob("*/reports.jsonl")), key=lambda p: p.stat().st_mtime)
            if not runs:
                raise TroupeError(f"TROUPE_RESUME=latest: there is no run in {self._top}")
            self.folder = runs[-1].parent
        elif settings.resume_run:
            self.folder = self._top / settings.resume_run
            if not self.folder.is_dir():
                raise TroupeError(f"TROUPE_RESUME={settings.resume_run}: there is no run {self.folder}")
        else:
            self.folder = self._top / (settings.run_name or _default_name())

    def log(self, group: str, steps: int, metrics: Dict[str, Any]) -> bool:
        self._write(group, steps, metrics, durable=False)
        return True

    def validate(self, steps: int, metrics: Dict[str, Any]) -> None:
        self._write("validation", steps, metrics, durable=True)

    def checkpoint(self, name: str, steps: int, files: Dict[str, int], metadata: Dict[str, Any]) -> None:
        self.flush(None)
        row = {"uuid": name, "steps": steps, "files": files, "metadata": metadata, "time_us": time.time_ns() // 1000}
        with self._lock, open(self.folder / "checkpoints.jsonl", "a", encoding="utf-8") as file:
            file.write(_line(row))
            file.flush()
            os.fsync(file.fileno())

    def checkpoint_root(self) -> Path:
        root = self.folder / "checkpoints"
        root.mkdir(parents=True, exist_ok=True)
        return root

    def latest_checkpoint(self) -> Optional[Path]:
        """The newest checkpoint of the run that TROUPE_RESUME names. None without that variable, or where the run has no checkpoint."""
        if not self.resumed:
            return None
        rows: List[Any] = []
        try:
            with open(self.folder / "checkpoints.jsonl", encoding="utf-8") as file:
                for line in file:
                    try:
                        rows.append(json.loads(line)["uuid"])
                    except (ValueError, LookupError, TypeError):
                        continue  # A crash has cut this line off.
        except FileNotFoundError:
            return None
        paths = (self.folder / "checkpoints" / name for name in reversed(rows))
        return next((path for path in paths if path.is_dir()), None)

    def progress(self, done: float) -> None:
        pass

    def flush(self, timeout: Optional[float]) -> bool:
        with self._lock:
            if self._reports is not None:
                self._reports.flush()
                os.fsync(self._reports.fileno())
        return True

    def unconfirmed(self) -> int:
        return 0

    def close(self, timeout: float) -> None:
        with self._lock:
            if self._reports is not None:
                self._reports.close()
                self._reports = None

    def _write(self, group: str, steps: int, metrics: Dict[str, Any], durable: bool) -> None:
        _encode.pack_metrics(metrics)  # checks the limits of a cluster, so that a script which exceeds them fails here too
        line = _line({"group": group, "steps": steps, "metrics": metrics, "time_us": time.time_ns() // 1000})
        now = time.monotonic()
        with self._lock:
            if self._reports is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._reports = open(self.folder / "reports.jsonl", "a", encoding="utf-8")
            self._reports.write(line)
            if durable or now - self._flushed > FLUSH_S:
                self._reports.flush()
                self._flushed = now
            if durable:
                os.fsync(self._reports.fileno())


def _default_name() -> str:
    main = sys.modules.get("__main__")
    script = Path(getattr(main, "__file__", None) or "python").stem
    return f"{script}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def _line(row: Dict[str, Any]) -> str:
    try:
        return json.dumps(row, allow_nan=False) + "\n"
    except ValueError:
        return json.dumps(_finite(row), allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value
