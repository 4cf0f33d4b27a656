"""The environment variables that the agent sets for a task; docs/task-link.md has the table."""

import os
import re
from typing import Mapping, NamedTuple, Optional

from troupe._errors import TroupeError


class Settings(NamedTuple):
    endpoint: str  #: ZeroMQ endpoint of the agent; empty without a cluster
    endpoint_file: str  #: path of a file with the present endpoint, read again when the agent is silent; may be empty
    token: str
    allocation: str  #: id of the allocation, "TRIAL.RUN"
    checkpoint_dir: str
    resume: str  #: UUID of a checkpoint in `checkpoint_dir`, or its path, to resume from; empty on a fresh start
    hparams: str  #: hyperparameters as a JSON object; may be empty
    rank: int
    run_name: str
    resume_run: str

    @property
    def on_cluster(self) -> bool:
        return bool(self.endpoint or self.endpoint_file)

    def current_endpoint(self) -> str:
        """The endpoint in `endpoint_file` where that can be read, otherwise the one of the environment."""
        if self.endpoint_file:
            try:
                with open(self.endpoint_file, encoding="utf-8") as file:
                    line = file.readline().strip()
                if line:
                    return line
            except (OSError, UnicodeDecodeError):
                pass  # The agent may be replacing the file just now; the endpoint of the environment is the best guess.
        return self.endpoint


def read_settings(env: Optional[Mapping[str, str]] = None) -> Settings:
    """Reads the settings from `env` (default: the environment). Raises TroupeError that names a missing or malformed variable."""
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
