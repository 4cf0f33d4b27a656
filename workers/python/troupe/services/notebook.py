"""JupyterLab as a task. Its lines stay in the task's log; it is ready when it says so; whether it is in use is looked at every 30 s and told
to the master, which ends an idle one."""

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
    """The seconds in a duration as Go writes it, `1h30m` or `20s`; None where the text is not one."""
    if not isinstance(text, str) or not re.fullmatch(r"([0-9]+(\.[0-9]*)?(ms|[hms]))+", text):
        return None
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([0-9.]+)(ms|[hms])", text))


def between_looks(around: Surroundings) -> float:
    """Seconds between two checks: fewer for a short limit, so that a notebook in use is reported before the limit ends."""
    limit = limit_seconds(around.config.get("idle_timeout"))
    return look_seconds if limit is None else min(look_seconds, max(1.0, limit / 3))


class Watch:
    """Decides whether the notebook is idle, by `notebook_idle_type`. A notebook that cannot be asked is not idle."""

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
                return []  # a Jupyter that offers none has none open
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
            pass  # the next round reports it


def command(around: Surroundings) -> List[str]:
    options = {
        "ServerApp.sock": around.socket,
        "ServerApp.sock_mode": "0600",
        "ServerApp.base_url": around.base_url() + "/",
        "ServerApp.open_browser": "False",
        "ServerApp.allow_root": "True",
        # The proxy, which alone reaches the socket, says whom a request comes from and by which scheme. `Host` is what the
        # browser has sent, so that Jupyter's checks of origin and XSRF work; the proxy knows which hosts there are.
        "ServerApp.trust_xheaders": "True",
        "ServerApp.allow_remote_access": "True",
        "ServerApp.root_dir": "/",
        "FileContentsManager.preferred_dir": os.getcwd(),
        # Kernels use sockets in this task's folder, and no port of this host.
        "KernelManager.transport": "ipc",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.news_url": "None",
        # Terminals are an extension, which Jupyter finds by a file below the interpreter's prefix. Where the packages lie
        # elsewhere (named by a .pth file), only this setting names it. Without that package Jupyter goes on and has no terminals.
        "ServerApp.jpserver_extensions": "{'jupyterlab': True, 'jupyter_server_terminals': True}",
    }
    return [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]


def begin(around: Surroundings, token: str) -> None:
    """Reports that the task is ready once Jupyter listens, which is a moment after Jupyter says that it runs."""
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
