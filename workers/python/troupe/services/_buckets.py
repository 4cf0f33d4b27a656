"""Copies event files from buckets to this host, every `look_seconds`, by the fetchers of Determined's client."""

import datetime
import json
import os
import posixpath
import re
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, Tuple

from troupe.services._common import say

look_seconds = 5.0
kinds = {"s3": "s3", "gs": "gcs", "azure": "azure"}
signs_in_by = {"s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "gs": "GOOGLE_APPLICATION_CREDENTIALS", "azure": "AZURE_STORAGE_CONNECTION_STRING"}


def warn(text: str) -> None:
    sys.stderr.write(f"troupe: {text}\n")  # one call for the whole line, because several threads warn
    sys.stderr.flush()


def words_of(raised: Exception) -> str:
    """The first line of a fault's text, with its code. The other lines of an Azure fault differ each time, so that they are left out."""
    text = (str(raised).strip() or type(raised).__name__).splitlines()[0]
    code = getattr(raised, "error_code", None)
    code = str(getattr(code, "value", code) or "")
    return text if code in text else f"{text} ({code})"


def without_login(address: Any) -> str:
    return re.sub(r"(?<=://)[^/]*@", "", str(address or "").split("?")[0])


def parts_of(source: str) -> Tuple[str, str, str]:
    """The scheme, the bucket and the folder of a source. The folder is written as Determined's client writes a prefix: `/a//b/` is
    `a/b`."""
    scheme, rest = source.split("://", 1)
    bucket, _, folder = rest.partition("/")
    return scheme, bucket, posixpath.normpath("/" + folder).lstrip("/")


def name_of(source: str) -> str:
    """The name that TensorBoard shows for a source: `experiment_7`, or `experiment_7/trial_12` for a single trial."""
    parts = [part for part in source.rstrip("/").split("/") if part]
    found = re.search(r"experiment/(\d+)(?:/trial/(\d+))?$", source.rstrip("/"))
    if found:
        return f"experiment_{found[1]}" + (f"/trial_{found[2]}" if found[2] else "")
    return "_".join(parts[-2:]) or "files"


def storage_of(scheme: str, bucket: str, given: Any) -> Dict[str, Any]:
    """The `checkpoint_storage` that the fetchers take for a bucket. `given` is that of the experiment, and is used if its type fits."""
    kind = kinds.get(scheme, scheme)
    storage = dict(given) if isinstance(given, dict) and given.get("type") == kind else {}
    storage.update({"type": kind, "container" if kind == "azure" else "bucket": bucket})
    signs_in = storage.get("connection_string") or storage.get("credential") or "?" in (storage.get("account_url") or "")
    if kind == "azure" and not signs_in:
        storage["connection_string"] = os.environ.get("AZURE_STORAGE_CONNECTION_STRING")
    return storage


class Copying:
    """Copies new files below `folders` of a bucket. Other files are skipped: a fetcher lists these too where a prefix has `#` or `?`."""

    def __init__(self, fetcher: Any, folders: List[str]) -> None:
        self.fetcher = fetcher
        self.below = tuple(f"{folder}/" for folder in folders)
        self.copied: Dict[str, datetime.datetime] = {}

    def copy_new(self) -> None:
        """Copies the files that are new or have changed. Files that cannot be read are tried again the next time; the last of these errors
        is raised at the end."""
        seen = self.fetcher._file_records
        failed = None
        recent = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)
        for path in self.fetcher.list_all_generator():
            if not path.startswith(self.below) or path.endswith("/") or ".." in path.split("/"):
                continue
            try:
                self.fetcher._fetch(path, lambda: None)
            except Exception as fault:  # noqa: BLE001 - whatever the bucket's library raises
                failed = fault
                del seen[path]
                continue
            # Times in a bucket are whole seconds, and a file may be written twice in one second. So a new file is read once more.
            if seen[path] > recent and self.copied.get(path) != seen[path]:
                self.copied[path] = seen.pop(path)
        if failed:
            raise failed

    def follow(self, name: str, hint: str) -> None:
        said = ""
        while True:
            fault = ""
            try:
                self.copy_new()
            except Exception as raised:  # noqa: BLE001
                fault = words_of(raised)
            if fault and fault != said:
                warn(f"reading {name}: {fault}; {hint}")
            said = fault
            threading.Event().wait(look_seconds)


def copy_buckets(root: Path, sources: List[Dict[str, Any]]) -> List[str]:
    """Starts a thread for each bucket, which copies its files. Returns the folders below `root` that get the files of the sources.

    A bucket that cannot be opened is named in a warning and left out.
    """
    folders: Dict[Tuple[str, str, str], List[str]] = {}
    for source in sources:
        scheme, bucket, folder = parts_of(source["place"])
        storage = {key: one for key, one in (source.get("storage") or {}).items() if key != "prefix"}
        folders.setdefault((scheme, bucket, json.dumps(storage, sort_keys=True)), []).append(folder)
    os.environ.setdefault("AWS_MAX_ATTEMPTS", "2")  # An attempt may take a minute, and the next look tries again.
    out = []
    for (scheme, bucket, storage_text), its in folders.items():
        name = f"{scheme}://{bucket}"
        hint = f"a TensorBoard signs in there by its own environment.environment_variables: {signs_in_by.get(scheme)}"
        shown = ", ".join(name_of(folder) for folder in its[:3]) + (f" and {len(its) - 3} more" if len(its) > 3 else "")
        own = root / str(len(out))  # Buckets of two servers may have the same name.
        of_storage = storage_of(scheme, bucket, json.loads(storage_text))
        try:
            from determined.tensorboard import fetchers

            # Without the slash experiment 7 would get the files of experiment 70.
            fetcher = fetchers.build(of_storage, [f"{name}/{folder}/" for folder in its], str(own))
        except ImportError as fault:
            warn(f"event files in {name} are read by Determined's client: '{sys.executable} -m pip install determined==0.38.1' ({fault})")
            continue
        except Exception as fault:  # noqa: BLE001
            warn(f"the event files in {name} ({shown}) cannot be read: {words_of(fault)}; {hint}")
            continue
        say(f"TensorBoard reads {name}" + (f" at {address}" if (address := without_login(of_storage.get("endpoint_url"))) else ""))
        threading.Thread(target=Copying(fetcher, its).follow, args=(f"{name} ({shown})", hint), daemon=True).start()
        out += [str(own / bucket / folder) for folder in its]
    return out
