"""TensorBoard as a task. It shows event files below folders of this host while they grow, and those of buckets by Determined's own fetchers.
It has no login, so that it listens on a socket that the proxy alone reaches."""

import importlib.util
import os
import re
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Dict, List

from troupe.services._buckets import copy_buckets
from troupe.services._common import Surroundings, give_up, say

look_seconds = 5.0


def name_of(source: str) -> str:
    """What its curves are called: `experiment_7`, or `experiment_7/trial_12` for one trial."""
    parts = [part for part in source.rstrip("/").split("/") if part]
    found = re.search(r"experiment/(\d+)(?:/trial/(\d+))?$", source.rstrip("/"))
    if found:
        return f"experiment_{found[1]}" + (f"/trial_{found[2]}" if found[2] else "")
    return "_".join(parts[-2:]) or "files"


def place_links(root: Path, sources: List[str]) -> None:
    """One folder that holds them all; one that is not there yet is seen once it is."""
    taken: Dict[str, int] = {}
    for source in sources:
        name = name_of(source)
        taken[name] = taken.get(name, 0) + 1
        link = root / (name if taken[name] == 1 else f"{name}-{taken[name]}")
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(source)


def has_events(root: Path) -> bool:
    return any("tfevents" in name for _, _, names in os.walk(root, followlinks=True) for name in names)


def serve(around: Surroundings, root: Path, arguments: List[str]) -> int:
    from tensorboard import default, program
    from werkzeug.serving import ThreadedWSGIServer, WSGIRequestHandler

    class QuietRequests(WSGIRequestHandler):
        def log(self, *_: Any) -> None:
            pass

        def address_string(self) -> str:
            return "proxy"

    class OverSocket(ThreadedWSGIServer, program.TensorBoardServer):  # type: ignore[misc]
        daemon_threads = True

        def __init__(self, application: Any, flags: Any) -> None:
            try:
                os.unlink(around.socket)
            except FileNotFoundError:
                pass
            before = os.umask(0o177)
            try:
                ThreadedWSGIServer.__init__(self, "unix://" + around.socket, 0, application, QuietRequests)
            finally:
                os.umask(before)

        def handle_error(self, *_: Any) -> None:
            fault = sys.exc_info()[1]
            if not isinstance(fault, (BrokenPipeError, ConnectionResetError)):
                print(f"troupe: TensorBoard: {fault}", file=sys.stderr, flush=True)

        def get_url(self) -> str:
            return f"http://localhost:0{around.base_url()}/"  # TensorBoard notes it in its /tmp, and wants a port there

        def print_serving_message(self) -> None:
            say(f"TensorBoard serves {around.base_url()}/")
            around.tell_ready()

    board = program.TensorBoard(plugins=default.get_plugins(), server_class=OverSocket)
    # What reads in a process of its own would be asked over a port of this host.
    board.configure(["tensorboard", "--reload_interval=5", "--reload_multifile=true", *arguments, f"--logdir={root}",
                     f"--path_prefix={around.base_url()}", "--load_fast=false"])
    return board.main()


def main() -> int:
    around = Surroundings()
    for package in ("tensorboard", "werkzeug"):
        if importlib.util.find_spec(package) is None:
            give_up(f"TensorBoard is not installed for {sys.executable}: run './setup tasks' on this host, or '{sys.executable} -m pip install tensorboard'")
    sources: List[Dict[str, Any]] = around.config.get("sources") or []
    arguments = [str(one) for one in around.config.get("args") or []]
    if not sources:
        give_up("TROUPE_SERVICE_CONFIG names no sources")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    base = Path(tempfile.mkdtemp(prefix="tensorboard-events-"))
    root = base / "shown"
    root.mkdir()
    in_buckets = [one for one in sources if "://" in one["place"]]
    # Those of buckets first: where an experiment has both, the folder, which may stay empty, gets the name with a number.
    folders = copy_buckets(base / "copied", in_buckets) if in_buckets else []
    folders += [one["place"] for one in sources if "://" not in one["place"]]
    if not folders:
        return 1  # it was said why
    place_links(root, folders)

    def look() -> None:
        say("TensorBoard is waiting for metrics.")
        while not has_events(root):
            threading.Event().wait(look_seconds)
        say("TensorBoard contains metrics.")

    threading.Thread(target=look, daemon=True).start()
    return serve(around, root, arguments)


if __name__ == "__main__":
    sys.exit(main())
