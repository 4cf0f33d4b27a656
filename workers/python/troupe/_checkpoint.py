"""Checkpoint folders: each is written under a temporary name beside its place, made durable, and then renamed."""

import os
import shutil
import stat
import tempfile
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional

from troupe._errors import Refused

MAX_LISTED_BYTES = 1 << 20


@contextmanager
def writing(root: Path, record: Callable[[str, Dict[str, int]], None], list_bytes: Callable[[Any], int]) -> Iterator[Path]:
    """Yields an empty folder. After the block the folder is durable at `root`/UUID, and `record(uuid, files)` has returned.

    Where the block or `record` raises, the folder is removed. `list_bytes` returns the size of the list of files in bytes.
    """
    name = str(time_ordered_uuid())
    folder, place = root / f"{name}.tmp", root / name
    folder.mkdir(parents=True)
    try:
        yield folder
        files = make_durable(folder)
        if list_bytes(files) > MAX_LISTED_BYTES:
            raise Refused(f"a checkpoint of {len(files):,} files: their list is over 1 MiB; pack them into fewer files")
        os.rename(folder, place)
        sync(root)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        record(name, files)
    except Refused:
        shutil.rmtree(place, ignore_errors=True)
        raise


def time_ordered_uuid() -> uuid.UUID:
    """A UUID of version 7 (RFC 9562): milliseconds since 1970, then 74 random bits. Later names sort behind earlier ones, which
    suits the master's sorted index."""
    milliseconds, chance = time.time_ns() // 1_000_000, int.from_bytes(os.urandom(10), "big")
    high, low = chance >> 68, chance & ((1 << 62) - 1)
    return uuid.UUID(int=(milliseconds & ((1 << 48) - 1)) << 80 | 7 << 76 | high << 64 | 2 << 62 | low)


@contextmanager
def discarding(root: Optional[Path]) -> Iterator[Path]:
    """Yields a folder that is removed after the block. Ranks other than 0 write to it, because only the files of rank 0 are kept."""
    if root is not None:
        root.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(suffix=".tmp", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_durable(folder: Path) -> Dict[str, int]:
    """Syncs every file and directory below `folder` and lists the files: relative path to bytes. Links are not followed."""
    files: Dict[str, int] = {}
    for where, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = os.path.join(where, name)
            found = os.lstat(path)
            if stat.S_ISREG(found.st_mode):
                sync(path)
                files[os.path.relpath(path, folder)] = found.st_size
        sync(where)
    return files


def sync(path: "os.PathLike[str] | str") -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
