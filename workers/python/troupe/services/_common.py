"""The parts that the programs share: their environment, and their calls of the master."""

import grp
import json
import os
import pwd
import socket
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Callable, Dict, NoReturn, Optional

again_seconds = 5.0


def give_up(why: str) -> NoReturn:
    """Writes one line to the task's log and ends the program."""
    print(f"troupe: {why}", file=sys.stderr, flush=True)
    raise SystemExit(1)


def say(text: str) -> None:
    print(text, flush=True)


class Surroundings:
    """The environment variables that the agent and the master have set for the task. The program ends where one is missing. `listens`:
    whether the program is a service, which has a socket."""

    def __init__(self, listens: bool = True) -> None:
        def needed(name: str) -> str:
            value = os.environ.get(name, "")
            if not value:
                give_up(f"{name} is not set: this program is started by the cluster, as a task")
            return value

        self.socket = needed("TROUPE_SERVICE_SOCKET") if listens else ""
        self.task = needed("DET_TASK_ID")
        self.allocation = needed("DET_ALLOCATION_ID")
        self.master = needed("DET_MASTER").rstrip("/")
        self.token = needed("DET_SESSION_TOKEN")
        self.folder = Path(os.environ.get("TROUPE_RUN_DIR") or "/run/determined")
        try:
            config = json.loads(os.environ.get("TROUPE_SERVICE_CONFIG") or "{}")
        except ValueError as fault:
            give_up(f"TROUPE_SERVICE_CONFIG is not JSON: {fault}")
        self.config: Dict[str, Any] = config if isinstance(config, dict) else {}

    def base_url(self) -> str:
        return f"/proxy/{self.task}"

    def own_folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def call(self, method: str, path: str, body: Optional[Dict[str, Any]] = None, timeout: float = 30) -> None:
        """Calls the master and drops the answer's body. `timeout` is in seconds. Raises OSError where the call fails; the errors of
        urllib are OSErrors."""
        request = urllib.request.Request(self.master + path, data=json.dumps(body or {}).encode(), method=method)
        request.add_header("Content-Type", "application/json")
        request.add_header("Grpc-Metadata-x-allocation-token", f"Bearer {self.token}")
        # DET_MASTER is the agent's listener on this host, which no proxy of the environment could reach.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=timeout) as answer:
            answer.read()

    def tell_ready(self) -> None:
        """Reports in the background that the service is ready, again and again until the master has answered. Where the master refuses,
        because the task has ended, the report is not repeated."""

        def tell() -> None:
            while True:
                try:
                    return self.call("POST", f"/api/v1/allocations/{self.allocation}/ready", own_account())
                except urllib.error.HTTPError as fault:
                    if fault.code < 500:
                        print(f"troupe: the master did not take that this service is ready: {fault}", file=sys.stderr, flush=True)
                        return
                except (OSError, ValueError):
                    pass
                threading.Event().wait(again_seconds)

        threading.Thread(target=tell, daemon=True).start()


def own_account() -> Dict[str, Any]:
    """The account of this process as the body of `ready`, because a login has to name it. Empty where the account has no name here."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return {}
    try:
        group = grp.getgrgid(os.getgid()).gr_name
    except KeyError:
        group = str(os.getgid())
    return {"agentUserGroup": {"agentUid": os.getuid(), "agentGid": os.getgid(), "agentUser": user, "agentGroup": group}}


def listen(path: str, backlog: int = 128) -> socket.socket:
    """Listens on a Unix socket that only this account and root reach. A socket that an earlier start has left there is removed. The
    program ends where it cannot listen."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        server.bind(path)
    except OSError as fault:
        give_up(f"cannot listen at {path}: {fault.strerror}")
    finally:
        os.umask(before)
    server.listen(backlog)
    return server


def every(seconds: float, do: Callable[[], None]) -> threading.Thread:
    """Calls `do` every `seconds` in the background, as long as this process lives."""

    def run() -> None:
        while True:
            threading.Event().wait(seconds)
            do()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread
