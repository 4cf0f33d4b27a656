"""Removes files of checkpoints from a bucket, as a task, by the storage managers of Determined's client. The master gets told which files
of each checkpoint are left. All of this may be done again: a checkpoint that is gone is no fault."""

import fnmatch
import posixpath
import re
import sys
import threading
import urllib.error
from typing import Any, Callable, Dict, Iterable, List, Set, Tuple

from troupe.services._common import Surroundings, give_up, say

all_files = ["**/*"]
told_together = 20  # checkpoints of one report to the master, so that a task that dies has told of most of its work
report_tries = 7
first_wait_seconds = 1.0


def secrets_of(storage: Dict[str, Any]) -> List[str]:
    """The texts of a `checkpoint_storage` that nobody may read: keys, and the logins and signatures in addresses."""
    found = [str(storage[key]) for key in ("access_key", "secret_key", "connection_string", "credential") if storage.get(key)]
    for key in ("endpoint_url", "account_url"):
        address = str(storage.get(key) or "")
        found += re.findall(r"://([^/@]+)@", address) + re.findall(r"\?(.+)$", address)
    for text in list(found):
        found += re.findall(r"(?:AccountKey|SharedAccessSignature)=([^;]+)", text)
    return sorted(set(found), key=len, reverse=True)


def without(text: str, secrets: List[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "********")
    return text


def first_line(fault: BaseException) -> str:
    return (str(fault).strip() or type(fault).__name__).splitlines()[0]


def remaining(files: Dict[str, int]) -> Dict[str, int]:
    """The files that are left; none if only folders are left, which alone are not a checkpoint."""
    return files if any(not path.endswith("/") for path in files) else {}


def goes(path: str, globs: List[str]) -> bool:
    """Whether a pattern matches the path or a folder above it. The rules are those by which the master removes files that it reaches
    (actors/retention/globs.hpp)."""
    parts = path.rstrip("/").split("/")
    for pattern in globs:
        reached: Set[int] = {0}  # how many parts of the path the pattern matches so far
        wanted = pattern.rstrip("/").split("/")
        for part in wanted:
            if part == "**":
                reached = set(range(min(reached), len(parts) + 1)) if reached else reached
            else:
                reached = {at + 1 for at in reached if at < len(parts) and fnmatch.fnmatchcase(parts[at], part)}
        if (pattern.endswith("/") or wanted[-1] == "**") and not path.endswith("/"):
            reached.discard(len(parts))  # only a folder is meant
        if reached:
            return True
    return False


def without_named(files: Dict[str, int], prefix: str, paths: List[str]) -> Dict[str, int]:
    """The files of a bucket that are left when those of `paths`, below `prefix`, go. It takes the place of the client's own rule, which
    matches patterns in a copy of the folders on this host: it fails where a folder goes with a folder in it, and takes files as removed
    whose paths that copy cannot have (`a//b`)."""
    named = {f"{prefix}/{path}" for path in paths}
    return {path: size for path, size in files.items() if path not in named}


def vanished(fault: BaseException) -> bool:
    code = getattr(fault, "error_code", None)
    return getattr(code, "value", code) == "BlobNotFound" or getattr(fault, "code", None) == 404


def forgiving(remove: Callable[..., Any]) -> Callable[..., None]:
    """`remove` for a file that may be gone already, as another task may have removed it since the bucket was listed."""

    def call(*args: Any, **more: Any) -> None:
        try:
            remove(*args, **more)
        except Exception as fault:  # noqa: BLE001 - the classes are those of the bucket's library
            if not vanished(fault):
                raise

    return call


def adapted(manager: Any, kind: str) -> Any:
    """A storage manager or a TensorBoard manager of the client, which removes what is there still. S3 itself forgives what is gone."""
    manager._apply_globs_to_resources = without_named
    if kind == "azure":
        remove = forgiving(manager.client.delete_files)

        def one_by_one(container: str, files: Iterable[str]) -> None:
            for file in files:
                remove(container, [file])

        manager.client.delete_files = one_by_one
    elif kind == "gcs":
        manager.bucket.delete_blob = forgiving(manager.bucket.delete_blob)
    return manager


def split_container(storage: Dict[str, Any]) -> Tuple[Dict[str, Any], str]:
    """The storage with the plain name of its container, and the folder in there. For `container: models/runs` the client saves to the
    folder `runs` of `models`, but it cannot list that. Both are as given where the storage is not of Azure."""
    if storage["type"] != "azure" or "/" not in str(storage.get("container")):
        return storage, ""
    container, _, folder = str(storage["container"]).rstrip("/").partition("/")
    return {**storage, "container": container}, folder


class Removal:
    """`manager` is a storage manager of Determined's client, `folder` the folder in its bucket below which the checkpoints are, and `gone`
    the class of its fault that a checkpoint is not there."""

    def __init__(self, manager: Any, gone: type, folder: str = "") -> None:
        self.manager = manager
        self.gone = gone
        self.folder = folder
        self.found = False  # whether anything was there of the checkpoint that was removed last
        self.begun: List[Tuple[str, Dict[str, int]]] = []  # the checkpoint that is being removed, and what was there of it; none or one

    def delete(self, uuid: str, paths: List[str]) -> Dict[str, int]:
        """Removes these paths, and returns all others."""
        try:
            left = self.manager.delete(posixpath.join(self.folder, uuid), paths)
            return {str(path): int(size or 0) for path, size in left.items()}
        except self.gone:
            return {}

    def remove(self, uuid: str, globs: List[str]) -> Dict[str, int]:
        """Removes the files that match, and returns those that are left. A server may refuse single files without a fault of the client,
        so that the files are listed again; a removal without patterns is such a list. Another task may remove more at the same time."""
        there = self.delete(uuid, [])
        self.found = bool(there)
        wanted = {path for path in there if goes(path, globs)}
        whole = not remaining({path: size for path, size in there.items() if path not in wanted})
        if not globs or not there or not (wanted or whole):
            return remaining(there)
        self.begun = [(uuid, there)]
        self.delete(uuid, all_files if whole else sorted(wanted))
        left = self.delete(uuid, [])
        more = sorted(path for path in left if whole or path in wanted)
        if more:
            raise OSError(f"the bucket has not removed {len(more)} of its files ({', '.join(more[:3])}): may this account delete there?")
        self.begun = []
        return remaining(left)

    def broken_off(self) -> Dict[str, Dict[str, int]]:
        """What is left of the checkpoint at which a fault has ended the removal; nothing if all of it is there still, or nobody can tell."""
        for uuid, before in self.begun:
            try:
                left = self.delete(uuid, [])
            except Exception:  # noqa: BLE001 - the fault that ended the removal is told
                continue
            if left != before:
                return {uuid: remaining(left)}
        return {}


def report(call: Callable[[List[Dict[str, Any]]], None], found: Dict[str, Dict[str, int]]) -> None:
    """Tells the master, again and again while it cannot answer. A checkpoint that it does not know any more was deleted meanwhile."""
    told = [{"uuid": uuid, "resources": {"resources": files}} for uuid, files in found.items()]
    wait = first_wait_seconds
    for last in [False] * (report_tries - 1) + [True]:
        try:
            return call(told)
        except urllib.error.HTTPError as fault:
            if fault.code == 404 and len(told) > 1:
                for one in told:
                    report(call, {one["uuid"]: one["resources"]["resources"]})
                return
            if fault.code == 404:
                return
            if fault.code < 500 or last:
                raise
        except OSError:
            if last:
                raise
        threading.Event().wait(wait)
        wait *= 2


def tensorboards_of(order: Dict[str, Any], storage: Dict[str, Any], folder: str, container_path: str) -> Any:
    from determined import tensorboard

    trial = order.get("trial")
    manager = tensorboard.build(str(order.get("cluster") or ""), str(order["experiment"]), None if trial is None else str(trial), storage,
                                container_path=container_path, async_upload=False, sync_on_close=False)
    # Without the slash the files of experiment 70 would go with those of experiment 7.
    manager.sync_path = posixpath.join(folder, str(manager.sync_path), "")
    return adapted(manager, storage["type"])


def lacking(fault: ImportError) -> str:
    return f"files in a bucket are removed by Determined's client: '{sys.executable} -m pip install determined==0.38.1' ({fault})"


def main() -> int:
    around = Surroundings(listens=False)
    order = around.config
    storage, uuids, globs = order.get("storage"), order.get("checkpoints") or [], order.get("globs") or []
    if not isinstance(storage, dict) or not storage.get("type"):
        give_up("the configuration of the experiment names no checkpoint_storage")
    try:
        from determined import errors
        from determined.common import constants, storage as managers
    except ImportError as fault:
        give_up(lacking(fault))
    secrets = secrets_of(storage)
    storage, folder = split_container(storage)
    container_path = constants.SHARED_FS_CONTAINER_PATH
    said: Dict[str, Dict[str, int]] = {}

    def tell() -> None:
        if said:
            report(lambda told: around.call("PATCH", "/api/v1/checkpoints", {"checkpoints": told}), said)
        said.clear()

    done = 0
    removal = Removal(None, errors.CheckpointNotFound, folder)
    try:
        removal.manager = adapted(managers.build(storage, container_path=container_path), storage["type"])
        for uuid in uuids:
            said[uuid] = removal.remove(uuid, globs)
            done += 1
            state = f"{len(said[uuid])} files and folders are left" if said[uuid] else "all files are gone" if removal.found else "no file was there"
            say(f"Checkpoint {uuid}: {state}")
            if len(said) >= told_together:
                tell()
        if order.get("tensorboards"):
            tensorboards_of(order, storage, folder, container_path).delete()
            say(f"TensorBoard files of experiment {order['experiment']} are gone")
        tell()
    except Exception as fault:  # noqa: BLE001 - whatever the bucket's library raises
        why = lacking(fault) if isinstance(fault, ImportError) else without(first_line(fault), secrets)
        said.update(removal.broken_off())
        try:
            tell()
        except OSError as also:
            why += f"; the master could not be told of {len(said)} checkpoints: {first_line(also)}"
        give_up(f"{done} of {len(uuids)} checkpoints done: {why}")
    say(f"{done} checkpoints done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
