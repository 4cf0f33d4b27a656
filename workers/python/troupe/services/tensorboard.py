"""TensorBoard as a task. TensorBoard shows event files below folders of this host while they grow, and copies of event files in buckets.
It asks for no login, so that it listens on a socket that only the proxy reaches."""

import importlib.util
import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Dict, List

from troupe.services._buckets import copy_buckets, name_of
from troupe.services._common import Surroundings, give_up, say

look_seconds = 5.0


def has_events(root: Path) -> bool:
    return any("tfevents" in name for _, _, names in os.walk(root, followlinks=True) for name in names)


class Links:
    """A folder with a link to each source, under the name of the source. Where several sources have one name, each gets its link when it
    has event files: the first gets the name, later ones the name with a number."""

    def __init__(self, root: Path, sources: List[str]) -> None:
        self.root = root
        self.taken: Dict[str, int] = {}
        names = [name_of(source) for source in sources]
        self.waiting = [source for source, name in zip(sources, names) if names.count(name) > 1]
        # The links of experiments are made first: the files of their trials are below them already, so that these get no link. A link
        # to a folder that does not exist yet shows its files once they are there.
        for source in sorted(set(sources) - set(self.waiting), key=lambda one: name_of(one).count("/")):
            self.place(source)
        self.look()

    def look(self) -> None:
        for source in [one for one in self.waiting if has_events(Path(one))]:
            self.waiting.remove(source)
            self.place(source)

    def place(self, source: str) -> None:
        name = name_of(source)
        self.taken[name] = self.taken.get(name, 0) + 1
        link = self.root / (name if self.taken[name] == 1 else f"{name}-{self.taken[name]}")
        if link.parent.is_symlink():
            return
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(source)


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
            return f"http://localhost:0{around.base_url()}/"  # TensorBoard writes the URL to a file in /tmp, and expects a port in it

        def print_serving_message(self) -> None:
            say(f"TensorBoard serves {around.base_url()}/")
            around.tell_ready()

    board = program.TensorBoard(plugins=default.get_plugins(), server_class=OverSocket)
    # With --load_fast=false TensorBoard reads the files itself. A reader in another process would listen on a port of this host.
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
    base = around.own_folder("tensorboard-events")  # below the task's own folder, so that it is removed with the task
    tempfile.tempdir = str(around.own_folder("tmp"))  # for the files that TensorBoard keeps about itself
    root = base / "shown"
    root.mkdir(exist_ok=True)
    in_buckets = [one for one in sources if "://" in one["place"]]
    folders = copy_buckets(base / "copied", in_buckets) if in_buckets else []
    folders += [one["place"] for one in sources if "://" not in one["place"]]
    if not folders:
        return 1  # copy_buckets has printed the reason.
    links = Links(root, folders)

    def look() -> None:
        say("TensorBoard is waiting for metrics.")
        found = False
        while not found or links.waiting:
            if not found and has_events(root):
                found = True
                say("TensorBoard contains metrics.")
            threading.Event().wait(look_seconds)
            links.look()

    threading.Thread(target=look, daemon=True).start()
    return serve(around, root, arguments)


if __name__ == "__main__":
    sys.exit(main())
