"""A cluster that lives as long as a `with` block: in this process where libtroupe.so is installed, otherwise in a child process."""

import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import msgpack

from troupe._errors import TroupeError

__all__ = ["ClusterError", "LocalCluster", "LocalRun"]

_HEARD = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_OVER = {"COMPLETED": "completed", "CANCELED": "canceled", "ERROR": "failed", "DELETED": "canceled"}
_here = pathlib.Path(__file__).resolve()


class ClusterError(TroupeError):
    """The cluster refused a request, or could not be started or reached. `status` is the HTTP status of the refusal, or 0 where the
    cluster gave none."""

    def __init__(self, text, status=0):
        super().__init__(text)
        self.status = status


def _above(*names):
    """The first file of these names in a folder above this module, or None. An installation may be moved, so that no path is fixed."""
    for folder in _here.parents:
        for name in names:
            for found in sorted(folder.glob(name)):
                return found
    return None


def _library():
    named = os.environ.get("TROUPE_LIBRARY")
    path = named or _above("lib/libtroupe.so.0", "lib/*/libtroupe.so.0", "build/release/libtroupe.so.0")
    if not path:
        return None
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as fault:
        if named:
            raise ClusterError(f"TROUPE_LIBRARY={named} cannot be loaded: {fault}") from None
        return None
    lib.troupe_open_json.restype = ctypes.c_void_p
    lib.troupe_open_json.argtypes = [ctypes.c_char_p]
    lib.troupe_call.restype = ctypes.c_int
    lib.troupe_call.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t,
                                ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t)]
    lib.troupe_free.argtypes = [ctypes.c_void_p]
    lib.troupe_subscribe.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _HEARD, ctypes.c_void_p]
    lib.troupe_close.argtypes = [ctypes.c_void_p]
    lib.troupe_last_error.restype = ctypes.c_char_p
    return lib


class _InProcess:
    def __init__(self, lib, options):
        self._lib = lib
        self._node = lib.troupe_open_json(json.dumps(options).encode())
        if not self._node:
            raise ClusterError(lib.troupe_last_error().decode(errors="replace"))

    def call(self, request, body=None):
        data = msgpack.packb(body) if body is not None else b""
        out, size = ctypes.c_void_p(), ctypes.c_size_t()
        status = self._lib.troupe_call(self._node, request.encode(), data, len(data), ctypes.byref(out), ctypes.byref(size))
        try:
            answer = msgpack.unpackb(ctypes.string_at(out, size.value), strict_map_key=False) if out.value else None
        finally:
            self._lib.troupe_free(out)
        if status >= 400:
            raise ClusterError(self._lib.troupe_last_error().decode(errors="replace"), status)
        return answer

    def close(self):
        node, self._node = self._node, None
        self._lib.troupe_close(node)


class _Child:
    """Runs `troupe up` in a child process, and makes the calls of _InProcess through its HTTP port."""

    def __init__(self, program, options):
        data = pathlib.Path(options["data_dir"])
        data.mkdir(parents=True, exist_ok=True)
        words = [program, "up", "--data-dir", str(data), "--listen", "127.0.0.1:0"]
        if options.get("cpu_slots"):
            words += ["--slots", str(options["cpu_slots"])]
        with open(data / "up.log", "w") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        self._url = self._token = None
        until = time.monotonic() + 60
        while not self._ready(data):
            if self._process.poll() is not None or time.monotonic() > until:
                self.close()
                raise ClusterError("the cluster did not come up:\n" + (data / "up.log").read_text()[-2000:])
            time.sleep(0.05)
        self._token = self.call("POST /api/v1/auth/login", {"username": "determined", "password": ""})["token"]

    def _ready(self, data):
        try:
            lines = dict(line.split(" ", 1) for line in (data / "lock").read_text().splitlines() if " " in line)
        except (OSError, ValueError):
            return False
        if lines.get("pid") != str(self._process.pid) or not lines.get("url"):
            return False
        self._url = lines["url"]
        with contextlib.suppress(OSError):
            return urllib.request.urlopen(self._url + "/health", timeout=2).status == 200
        return False

    def call(self, request, body=None):
        method, target = request.split(" ", 1)
        data, headers = None, {"Content-Type": "application/json"}
        if body is not None:
            body = dict(body)
            context = body.pop("context_dir", None)
            data = json.dumps(body).encode()
            if context:
                headers["Content-Type"] = "application/x-troupe-experiment"
                data += b"\n" + _packed(context)
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        ask = urllib.request.Request(self._url + target, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(ask, timeout=120) as got:
                text = got.read().decode()
        except urllib.error.HTTPError as refused:
            text = refused.read().decode(errors="replace")
            with contextlib.suppress(ValueError, KeyError, TypeError):
                text = json.loads(text)["message"]
            raise ClusterError(text, refused.code) from None
        except (OSError, socket.timeout) as fault:
            raise ClusterError(f"the cluster does not answer: {fault}") from None
        try:
            return json.loads(text)
        except ValueError:
            return [json.loads(line) for line in text.splitlines() if line.strip()]

    def close(self):
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _packed(context):
    import io
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        path = pathlib.Path(context)
        if not path.exists():
            raise ClusterError(f"{context}: no such file or folder")
        tar.add(path, arcname="." if path.is_dir() else path.name,
                filter=lambda x: None if "__pycache__" in x.name or "/.git" in x.name else x)
    return out.getvalue()


class LocalRun:
    """An experiment that was submitted to a LocalCluster. Every call raises ClusterError where the cluster refuses or is closed."""

    def __init__(self, cluster, number):
        self._cluster, self.id = cluster, number

    def outcome(self):
        """The answer of `GET /troupe/v1/experiments/ID/outcome` as a dict: state, best trial, its metric and its checkpoint."""
        return self._cluster.call(f"GET /troupe/v1/experiments/{self.id}/outcome")

    def state(self):
        """The state of the experiment: "running", "completed", "canceled" or "failed"."""
        return _OVER.get(self.outcome()["state"].replace("STATE_", ""), "running")

    def why(self):
        """The reason why the experiment failed, as a text for people."""
        return self.outcome()["why"]

    def metrics(self):
        """All numbers that were reported so far, as a list of dicts:
        {"trial": id, "step": batches, "name": text, "value": float, "validation": whether it is from validate()}."""
        return [row for trial in self._trials() for row in self._numbers(trial, {})]

    def _trials(self):
        return [t["id"] for t in self._cluster.call(f"GET /api/v1/experiments/{self.id}/trials?limit=-1")["trials"]]

    def _numbers(self, trial, told):
        """Yields the numbers of the rows behind `told[trial]`, and stores the last row there."""
        for report in self._cluster.call(f"GET /troupe/v1/trials/{trial}/metrics?after={told.get(trial, 0)}"):
            told[trial] = report["row"]
            for name, value in report["metrics"].items():
                if isinstance(value, str):  # JSON has no numbers for NaN and the infinities
                    value = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}.get(value)
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    yield {"trial": trial, "step": report["totalBatches"], "name": name, "value": float(value),
                           "validation": report["group"] == "validation"}

    def on_metric(self, heard, poll=0.1):
        """Calls `heard` on another thread with each dict of metrics(), earlier reports first, until the experiment has ended.

        `poll` is the number of seconds between two looks. wait() returns after the last call.
        """
        def follow():
            told = {}
            while True:
                over = self.state() != "running"
                for trial in self._trials():
                    for row in self._numbers(trial, told):
                        heard(row)
                if over:
                    return
                time.sleep(poll)

        thread = threading.Thread(target=self._cluster.guarded(follow), daemon=True)
        self._cluster.followers.setdefault(self.id, []).append(thread)
        thread.start()

    def wait(self, timeout=None):
        """Waits until the experiment has ended and returns its state, or returns None after `timeout` seconds (None means no limit)."""
        until = None if timeout is None else time.monotonic() + timeout
        while (state := self.state()) == "running":
            if until is not None and time.monotonic() >= until:
                return None
            time.sleep(0.05)
        for thread in self._cluster.followers.get(self.id, []):
            thread.join()
        return state

    def cancel(self, gently=False):
        """Kills the tasks of the experiment and ends it. With `gently`, its scripts are asked to save and end, and get all the time they
        need. Returns before the end: wait() waits for it."""
        self._cluster.call(f"POST /api/v1/experiments/{self.id}/{'cancel' if gently else 'kill'}")

    def best(self):
        """The best trial as {"trial": id, "metric": number, "hparams": dict, "checkpoint": path or None}, or None while no trial has
        validated."""
        now = self.outcome()
        if not now["bestTrial"]:
            return None
        return {"trial": now["bestTrialId"], "metric": now["bestMetric"], "hparams": now["bestTrial"]["hparams"],
                "checkpoint": (now["bestCheckpoint"] or {}).get("path")}


class LocalCluster:
    """A cluster on this host that ends with the `with` block:

        with troupe.LocalCluster(slots=2) as cluster:
            run = cluster.submit(entrypoint="python3 train.py", context="job", hparams={"lr": 0.1})
            run.on_metric(print)
            run.wait()

    `slots` is the number of CPU slots (0 means the agent's default). Without `data_dir` the data of the cluster are removed at the end.
    `python` is the folder of the interpreter for tasks (default: that of this process). The member `in_process` is False where no
    libtroupe.so was found and a child process serves instead. Raises ClusterError where the cluster cannot start.
    """

    def __init__(self, slots=0, data_dir=None, python=None):
        self._temporary = None
        if data_dir is None:
            self._temporary = data_dir = tempfile.mkdtemp(prefix="troupe-")
        self.followers = {}
        options = {"data_dir": os.path.abspath(data_dir), "cpu_slots": int(slots),
                   "python": python or os.environ.get("TROUPE_PYTHON_BIN") or os.path.dirname(sys.executable)}
        lib = _library()
        self.in_process = lib is not None
        try:
            if lib is not None:
                self._node = _InProcess(lib, options)
                return
            program = os.environ.get("TROUPE_BINARY") or _above("bin/troupe", "build/release/troupe") or shutil.which("troupe")
            if not program:
                raise ClusterError("neither libtroupe.so nor the program troupe is found\nhint: set TROUPE_LIBRARY or TROUPE_BINARY")
            os.environ.setdefault("TROUPE_PYTHON_BIN", options["python"])
            self._node = _Child(str(program), options)
        except BaseException:
            self._drop()
            raise

    def call(self, request, body=None):
        """Sends a request of the REST API and returns the decoded answer: call("GET /api/v1/experiments").

        `body` is a dict or None. Raises ClusterError where the cluster refuses the request or does not answer.
        """
        if self._node is None:
            raise ClusterError("the cluster is closed")
        return self._node.call(request, body)

    def submit(self, entrypoint=None, context=None, hparams=None, metric="loss", smaller_is_better=True, name=None, config=None):
        """Submits an experiment and returns its LocalRun. Without `config` (a dict or a YAML text) the experiment has one trial.

        `context` is the path of a file or folder that the tasks get. Raises ClusterError where the configuration is refused.
        """
        if isinstance(config, str):
            text = config
            if entrypoint or hparams or name:
                parts = {k: v for k, v in (("entrypoint", entrypoint), ("hyperparameters", hparams), ("name", name)) if v}
                text = "\n".join(f"{k}: {json.dumps(v)}" for k, v in parts.items()) + "\n" + text
        else:
            parts = dict(config or {})
            parts.setdefault("searcher", {"name": "single", "metric": metric, "smaller_is_better": smaller_is_better})
            for key, x in (("entrypoint", entrypoint), ("name", name)):
                if x:
                    parts[key] = x
            if hparams:
                parts["hyperparameters"] = {**parts.get("hyperparameters", {}), **hparams}
            text = json.dumps(parts)
        body = {"config": text}
        if context:
            body["context_dir"] = os.path.abspath(context)
        return LocalRun(self, self.call("POST /troupe/v1/experiments", body)["id"])

    def guarded(self, call):
        """A function that makes the call, and ends without an error where the cluster was closed meanwhile."""

        def run():
            try:
                call()
            except ClusterError:
                if self._node is not None:
                    raise

        return run

    def close(self):
        """Ends the cluster and its tasks, after waiting at most 60 s for each thread of on_metric(). Unfinished experiments continue when
        `data_dir` is opened again. A repeat does nothing."""
        node, self._node = getattr(self, "_node", None), None
        for threads in self.followers.values():
            for thread in threads:
                thread.join(60)
        if node:
            node.close()
        self._drop()

    def _drop(self):
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
