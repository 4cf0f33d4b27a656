"""JupyterLab as a task. The lines that Jupyter writes go to the task's log, and one of them tells that Jupyter is ready. At least every
30 s this program looks whether the notebook is in use and reports that to the master, which ends an idle notebook."""

import http.client
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, Dict, List, Optional

from troupe.services._common import Surroundings, every, give_up

look_seconds = float(os.environ.get("TROUPE_NOTEBOOK_LOOK_SECONDS", "30"))
ready_line = re.compile(rb"^.*Jupyter Server .* is running.*$")


class OverSocket(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float = 10) -> None:
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def limit_seconds(text: Any) -> Optional[float]:
    """The seconds of a duration that is written as in Go, `1h30m` or `20s`. None where the text is not a duration."""
    if not isinstance(text, str) or not re.fullmatch(r"([0-9]+(\.[0-9]*)?(ms|[hms]))+", text):
        return None
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([0-9.]+)(ms|[hms])", text))


def between_looks(around: Surroundings) -> float:
    """The seconds between two looks at the notebook. A short `idle_timeout` makes them fewer, so that a notebook in use is reported
    before the timeout ends."""
    limit = limit_seconds(around.config.get("idle_timeout"))
    return look_seconds if limit is None else min(look_seconds, max(1.0, limit / 3))


class Watch:
    """Decides by `notebook_idle_type` whether the notebook is idle. A notebook that does not answer is not idle."""

    def __init__(self, around: Surroundings, token: str) -> None:
        self.around = around
        self.token = token
        self.kind = around.config.get("idle_type") or "kernels_or_terminals"
        self.newest: Optional[str] = None

    def ask(self, what: str) -> List[Dict[str, Any]]:
        connection = OverSocket(self.around.socket)
        try:
            connection.request("GET", f"{self.around.base_url()}/api/{what}", headers={"Authorization": f"token {self.token}"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == 404 and what == "terminals":
                return []  # A Jupyter without terminals has none open.
            if answer.status != 200:
                raise ValueError(f"{what}: {answer.status}")
            return json.loads(body)
        finally:
            connection.close()

    def idle(self) -> bool:
        kernels = self.ask("kernels")
        if self.kind == "kernel_connections":
            return all(kernel.get("connections", 0) == 0 for kernel in kernels)
        terminals = self.ask("terminals")
        if self.kind == "activity":
            newest = max((str(x.get("last_activity", "")) for x in kernels + terminals), default="")
            same = newest == self.newest
            self.newest = newest
            return same and all(kernel.get("execution_state") != "busy" for kernel in kernels)
        return not (kernels or terminals or self.ask("sessions"))

    def look(self) -> None:
        try:
            idle = self.idle()
        except (OSError, ValueError, http.client.HTTPException, TypeError, AttributeError):
            idle = False
        try:
            self.around.call("PUT", f"/api/v1/notebooks/{self.around.task}/report_idle", {"notebookId": self.around.task, "idle": idle})
        except (OSError, ValueError, http.client.HTTPException):
            pass  # The next look reports the state again.


def command(around: Surroundings) -> List[str]:
    options = {
        "ServerApp.sock": around.socket,
        "ServerApp.sock_mode": "0600",
        "ServerApp.base_url": around.base_url() + "/",
        "ServerApp.open_browser": "False",
        "ServerApp.allow_root": "True",
        # Only the proxy reaches the socket, so that its headers about the client's address and scheme are true. `Host` is the one that
        # the browser has sent, so that Jupyter's checks of origin and XSRF work. The proxy checks which hosts are allowed.
        "ServerApp.trust_xheaders": "True",
        "ServerApp.allow_remote_access": "True",
        "ServerApp.root_dir": "/",
        "FileContentsManager.preferred_dir": os.getcwd(),
        # Kernels listen on sockets in this task's folder, and not on ports of this host.
        "KernelManager.transport": "ipc",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.news_url": "None",
        # Jupyter finds the extension for terminals by a file below the interpreter's prefix. Where a .pth file names another folder
        # for packages, only this setting makes Jupyter load it. Where the package is missing, Jupyter runs without terminals.
        "ServerApp.jpserver_extensions": "{'jupyterlab': True, 'jupyter_server_terminals': True}",
    }
    return [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]


def begin(around: Surroundings, token: str) -> None:
    """Waits until Jupyter listens, which begins a moment after Jupyter writes that it runs. Then reports that the task is ready, and starts
    the looks at the notebook."""
    while True:
        connection = OverSocket(around.socket)
        try:
            connection.connect()
            break
        except OSError:
            threading.Event().wait(0.02)
        finally:
            connection.close()
    around.tell_ready()
    every(between_looks(around), Watch(around, token).look)


def main() -> int:
    around = Surroundings()
    token = os.environ.get("JUPYTER_TOKEN", "")
    if not token:
        give_up("JUPYTER_TOKEN is not set: a notebook without a token would be open to everybody")
    if importlib.util.find_spec("jupyterlab") is None:
        give_up(f"JupyterLab is not installed for {sys.executable}: run './setup tasks' on this host, or '{sys.executable} -m pip install jupyterlab'")
    folder = around.own_folder("jupyter")
    env = dict(os.environ)
    env.pop("TROUPE_SERVICE_CONFIG", None)
    for name in ("config", "data", "runtime"):
        env[f"JUPYTER_{name.upper()}_DIR"] = str(around.own_folder(f"jupyter/{name}"))
    env.setdefault("SHELL", "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh")
    env["IPYTHONDIR"] = str(folder / "ipython")
    try:
        os.unlink(around.socket)
    except FileNotFoundError:
        pass
    server = subprocess.Popen(command(around), env=env, stderr=subprocess.PIPE)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda caught, _: server.send_signal(caught))
    ready = False
    assert server.stderr is not None
    for line in server.stderr:
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
        if not ready and ready_line.match(line.rstrip()):
            ready = True
            threading.Thread(target=begin, args=(around, token), daemon=True).start()
    code = server.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
