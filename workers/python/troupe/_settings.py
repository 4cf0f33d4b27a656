"""The variables by which the agent sets up a task; docs/task-link.md has the table."""

import os
import re
from typing import Mapping, NamedTuple, Optional

from troupe._errors import TroupeError


class Settings(NamedTuple):
    endpoint: str  #: of the agent's socket; empty: no cluster
    endpoint_file: str  #: read again when the agent is silent; may be empty
    token: str
    allocation: str  #: "TRIAL.RUN"
    checkpoint_dir: str
    resume: str  #: path or UUID of a checkpoint; empty on a fresh start
    hparams: str  #: JSON
    rank: int
    run_name: str
    resume_run: str

    @property
    def on_cluster(self) -> bool:
        return bool(self.endpoint or self.endpoint_file)

    def current_endpoint(self) -> str:
        """The present endpoint: that of the file where there is one, otherwise that of the environment."""
        if self.endpoint_file:
            try:
                with open(self.endpoint_file, encoding="utf-8") as file:
                    line = file.readline().strip()
                if line:
                    return line
            except (OSError, UnicodeDecodeError):
                pass  # The agent may be replacing it; the last known endpoint is the best guess.
        return self.endpoint


def read_settings(env: Optional[Mapping[str, str]] = None) -> Settings:
    """Raises TroupeError naming the variable that is missing or malformed."""
    env = os.environ if env is None else env
    rank_text = env.get("RANK") or "0"
    if not rank_text.isascii() or not rank_text.isdigit():
        raise TroupeError(f"RANK={rank_text!r}: expected a number from 0")
    settings = Settings(
        endpoint=env.get("TROUPE_HARNESS", ""),
        endpoint_file=env.get("TROUPE_HARNESS_FILE", ""),
        token=env.get("TROUPE_TASK_TOKEN", ""),
        allocation=env.get("TROUPE_ALLOCATION_ID", ""),
        checkpoint_dir=env.get("TROUPE_CHECKPOINT_DIR", ""),
        resume=env.get("TROUPE_RESUME_CHECKPOINT", ""),
        hparams=env.get("TROUPE_HPARAMS", ""),
        rank=int(rank_text),
        run_name=env.get("TROUPE_RUN_NAME", ""),
        resume_run=env.get("TROUPE_RESUME", ""),
    )
    if settings.on_cluster:
        if not settings.token:
            raise TroupeError("TROUPE_HARNESS is set, but TROUPE_TASK_TOKEN is not; unset TROUPE_HARNESS to run alone")
        if not re.fullmatch(r"([1-9][0-9]*|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})\.[1-9][0-9]*", settings.allocation):
            raise TroupeError(f"TROUPE_ALLOCATION_ID={settings.allocation!r}: expected TRIAL.RUN, such as 12.3, or UUID.RUN")
    for name, value in (("TROUPE_RUN_NAME", settings.run_name), ("TROUPE_RESUME", settings.resume_run)):
        if value and (value in (".", "..") or "/" in value or "\0" in value):
            raise TroupeError(f"{name}={value!r}: expected the name of a folder in ./troupe-runs, without a slash")
    return settings
