"""The parts of stock.py that make a master in a folder of its own, ask it as a client does, and fill it with experiments."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "test" / "cluster"))
from ports import free_port  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


class Refused(Exception):
    pass


class Wire:
    """A connection that is kept and carries one request after the other."""

    def __init__(self, port, token="", seconds=600):
        self.port, self.token, self.seconds = port, token, seconds
        self.s = None

    def open(self):
        self.s = socket.create_connection(("127.0.0.1", self.port), timeout=self.seconds)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, method, path, body=None):
        """Sends a request. Returns the status and the bytes of the answer."""
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\nContent-Length: {len(data)}\r\n\r\n"
        if not self.s:
            self.open()
        self.s.sendall(head.encode() + data)
        got = b""
        while b"\r\n\r\n" not in got:
            more = self.s.recv(65536)
            if not more:
                raise Refused(f"{method} {path}: the connection was closed after {got!r}")
            got += more
        head, _, rest = got.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        status = int(lines[0].split(b" ")[1])
        size = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
        parts = [rest]
        left = size - len(rest)
        while left > 0:
            more = self.s.recv(min(left, 1 << 18))
            if not more:
                raise Refused(f"{method} {path}: the connection was closed")
            parts.append(more)
            left -= len(more)
        if b"connection: close" in lines:
            self.s.close()
            self.s = None
        return status, b"".join(parts)

    def call(self, method, path, body=None):
        """Sends a request and returns the JSON of the answer. Repeats it after a pause where the server is busy. Raises Refused for any
        other refusal."""
        for attempt in range(60):
            status, text = self.ask(method, path, body)
            if status == 200:
                return json.loads(text) if text else None
            if status not in (429, 503):
                break
            time.sleep(min(0.05 * 1.5 ** attempt, 2))
        raise Refused(f"{method} {path}: {status} {text[:500].decode(errors='replace')}")

    def timed(self, method, path, body=None):
        begun = time.perf_counter()
        status, text = self.ask(method, path, body)
        took = time.perf_counter() - begun
        if status != 200:
            raise Refused(f"{method} {path}: {status} {text[:500].decode(errors='replace')}")
        return took

    def burst(self, paths):
        """Sends GET requests one after the other without waiting for answers. Returns the seconds until the last answer: no request waits
        until a sleeping thread or processor wakes up."""
        if not self.s:
            self.open()
        asked = "".join(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self.token}\r\n\r\n" for path in paths).encode()
        begun = time.perf_counter()
        self.s.sendall(asked)
        got, left = b"", len(paths)
        while left:
            head, found, rest = got.partition(b"\r\n\r\n")
            size = int(next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")).split(b":")[1]) if found else 0
            if found and len(rest) >= size:
                if not head.startswith(b"HTTP/1.1 200"):
                    raise Refused(f"{paths[-left]}: {got[:500]!r}")
                got, left = rest[size:], left - 1
                continue
            more = self.s.recv(1 << 18)
            if not more:
                raise Refused("the connection was closed")
            got += more
        return time.perf_counter() - begun


class Master:
    """A master in a folder, or a whole cluster where `slots` is not 0."""

    def __init__(self, binary, folder, slots=0, file=""):
        self.binary, self.folder, self.slots, self.file = str(binary), pathlib.Path(folder), slots, file
        self.folder.mkdir(parents=True, exist_ok=True)
        self.process = None
        self.wires = threading.local()
        self.tokens = {}

    @property
    def data(self):
        return self.folder / "data"

    def start(self, seconds=600):
        """Starts the process. Returns the wall seconds until /health answers, the wall seconds until a user has logged in and listed
        experiments, and the CPU seconds until then."""
        self.port = free_port()
        self.wires = threading.local()
        self.tokens = {}
        words = [self.binary, "up" if self.slots else "master", "--data-dir", str(self.data), "--listen", f"127.0.0.1:{self.port}"]
        words += ["--slots", str(self.slots)] if self.slots else []
        if self.file:
            (self.folder / "cluster.yaml").write_text(self.file)
            words += ["--file", str(self.folder / "cluster.yaml")]
        with open(self.folder / "log", "ab") as log:
            begun = time.perf_counter()
            self.process = subprocess.Popen(words, env={**os.environ, "HOME": str(self.folder)}, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        while not self.is_healthy():
            if self.process.poll() is not None or time.perf_counter() > begun + seconds:
                raise Refused("the master did not start: " + (self.folder / "log").read_text(errors="replace")[-2000:])
            time.sleep(0.001)
        healthy = time.perf_counter() - begun
        self.wire().call("GET", "/api/v1/experiments?limit=1")
        return healthy, time.perf_counter() - begun, self.cpu()

    def is_healthy(self):
        try:
            return Wire(self.port, seconds=5).ask("GET", "/health")[0] == 200
        except (OSError, Refused):
            return False

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    @contextlib.contextmanager
    def running(self):
        try:
            self.start()
            yield self
        finally:
            self.stop()

    def token(self, user):
        if user not in self.tokens:
            wire = Wire(self.port)
            self.tokens[user] = wire.call("POST", "/api/v1/auth/login", {"username": user, "password": "", "isHashed": True})["token"]
        return self.tokens[user]

    def wire(self, user="determined"):
        """The connection of this thread as a user."""
        mine = self.wires.__dict__.setdefault("all", {})
        if user not in mine:
            mine[user] = Wire(self.port, self.token(user))
        return mine[user]

    def cpu(self):
        """The CPU seconds so far: the exact sum over the living threads, or the time of the whole process where that is more."""
        exact = 0
        for entry in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                exact += int((entry / "schedstat").read_text().split()[0])
            except (OSError, IndexError):
                pass
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return max(exact / 1e9, (int(fields[11]) + int(fields[12])) / TICK - 2 / TICK)

    def private_kib(self):
        rollup = pathlib.Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))

    def copy(self, folder, **more):
        """Another master with a copy of the data. This master has to be stopped."""
        other = Master(self.binary, folder, **{"slots": self.slots, "file": self.file, **more})
        shutil.rmtree(other.data, ignore_errors=True)
        shutil.copytree(self.data, other.data)
        return other


def each(items, work, threads=32):
    """Runs `work` on all items by several threads, and raises the first exception of these."""
    items, lock, faults = iter(items), threading.Lock(), []

    def run():
        while not faults:
            with lock:
                item = next(items, None)
            if item is None:
                return
            try:
                work(item)
            except Exception as fault:  # The waiting thread raises it.
                faults.append(fault)

    all = [threading.Thread(target=run) for _ in range(threads)]
    for one in all:
        one.start()
    for one in all:
        one.join()
    if faults:
        raise faults[0]


def config(number, checkpoints=""):
    """A configuration as large as a completed one is. Each has other hyperparameters."""
    text = {"name": f"run-{number % 100}", "description": f"sweep {number % 7} over the learning rate", "labels": [f"team-{number % 5}", "nightly"],
            "hyperparameters": {"lr": {"type": "const", "val": (number * 7919 % 10007) / 10007}, "batch": {"type": "const", "val": 2 ** (number % 8)},
                                **{f"p{i}": {"type": "const", "val": number * i} for i in range(10)}},
            "searcher": {"name": "single", "metric": "loss"}}
    if checkpoints:
        text["checkpoint_storage"] = {"type": "shared_fs", "host_path": str(checkpoints)}
    return json.dumps(text)


def fill(master, count, checkpoints=None, of_each=0):
    """Makes ended experiments, and returns the wall seconds that this took. Each has one trial, a validation, and `of_each` checkpoints
    with three files. They are unmanaged (core_v2), which is the quickest way to make them."""
    task_ids = {}

    def one(number):
        w = master.wire()
        made = w.call("POST", "/api/v1/experiments", {"config": config(number, checkpoints), "unmanaged": True, "activate": True})["experiment"]["id"]
        trial = w.call("POST", "/api/v1/trials", {"experimentId": made, "unmanaged": True, "hparams": {"lr": (number * 7919 % 10007) / 10007}})["trial"]
        path = f"/api/v1/trials/{trial['id']}"
        w.call("POST", path + "/start", {"trialId": trial["id"], "resume": False})
        for step in (1,):
            metrics = {"avgMetrics": {"loss": (number * 104729 % 99991) / 99991 / step, "accuracy": 1 - 1 / step}}
            w.call("POST", path + "/validation_metrics", {"trialId": trial["id"], "trialRunId": 1, "stepsCompleted": step, "metrics": metrics})
        for step in range(1, of_each + 1):
            name = str(uuid.UUID(int=(number << 32) + step))
            folder = checkpoints / name
            (folder / "state").mkdir(parents=True)
            for file in ("metadata.json", "state/weights", "state/optimizer"):
                (folder / file).write_bytes(b"x" * 1000)
            w.call("POST", "/api/v1/checkpoints", {
                "taskId": trial["taskId"], "uuid": name, "state": "STATE_COMPLETED", "metadata": {"steps_completed": step},
                "resources": {"metadata.json": "1000", "state/": "0", "state/weights": "1000", "state/optimizer": "1000"}})
        w.call("PATCH", path, {"trialId": trial["id"], "state": "STATE_COMPLETED"})
        task_ids[made] = trial["taskId"]

    begun = time.perf_counter()
    if checkpoints:
        pathlib.Path(checkpoints).mkdir(parents=True, exist_ok=True)
    each(range(count), one)
    return time.perf_counter() - begun
