"""Removes files of checkpoints from a bucket, as a task, by the storage managers of Determined's client. The master gets told which files
of each checkpoint are left. All of this may be done again: a checkpoint that is gone is no fault."""

import re
import sys
import threading
import urllib.error
from typing import Any, Callable, Dict, List

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


class Removal:
    """`manager` is a storage manager of Determined's client; `gone` is the class of its fault that a checkpoint is not there."""

    def __init__(self, manager: Any, gone: type) -> None:
        self.manager = manager
        self.gone = gone

    def delete(self, uuid: str, globs: List[str]) -> Dict[str, int]:
        try:
            return {str(path): int(size or 0) for path, size in self.manager.delete(uuid, globs).items()}
        except self.gone:
            return {}

    def remove(self, uuid: str, globs: List[str]) -> Dict[str, int]:
        """Removes the files that match, and returns those that are left. A server may refuse single files without a fault of the client,
        so that the files are listed again; a removal without patterns is such a list."""
        left = remaining(self.delete(uuid, globs)) if globs else {}
        if globs and not left:
            self.delete(uuid, all_files)
        there = remaining(self.delete(uuid, []))
        if globs and there != left:
            more = sorted(set(there) - set(left))
            raise OSError(f"the bucket has not removed {len(more)} of its files ({', '.join(more[:3])}): may this account delete there?")
        return there


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


def tensorboards_of(order: Dict[str, Any], storage: Dict[str, Any], folder: str) -> Any:
    from determined import tensorboard

    trial = order.get("trial")
    manager = tensorboard.build(str(order.get("cluster") or ""), str(order["experiment"]), None if trial is None else str(trial), storage,
                                container_path=folder, async_upload=False, sync_on_close=False)
    # Without the slash the files of experiment 70 would go with those of experiment 7.
    manager.sync_path = f"{manager.sync_path}/"
    return manager


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
        give_up(f"files in a bucket are removed by Determined's client: '{sys.executable} -m pip install determined==0.38.1' ({fault})")
    secrets = secrets_of(storage)
    folder = constants.SHARED_FS_CONTAINER_PATH
    said: Dict[str, Dict[str, int]] = {}

    def tell() -> None:
        if said:
            report(lambda told: around.call("PATCH", "/api/v1/checkpoints", {"checkpoints": told}), said)
        said.clear()

    done = 0
    try:
        removal = Removal(managers.build(storage, container_path=folder), errors.CheckpointNotFound)
        for uuid in uuids:
            said[uuid] = removal.remove(uuid, globs)
            done += 1
            say(f"Checkpoint {uuid}: {len(said[uuid])} files and folders are left" if said[uuid] else f"Checkpoint {uuid}: all files are gone")
            if len(said) >= told_together:
                tell()
        if order.get("tensorboards"):
            tensorboards_of(order, storage, folder).delete()
            say(f"TensorBoard files of experiment {order['experiment']} are gone")
        tell()
    except Exception as fault:  # noqa: BLE001 - whatever the bucket's library raises
        why = without(first_line(fault), secrets)
        try:
            tell()
        except OSError as also:
            why += f"; the master could not be told of {len(said)} checkpoints: {first_line(also)}"
        give_up(f"{done} of {len(uuids)} checkpoints done: {why}")
    say(f"{done} checkpoints done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
