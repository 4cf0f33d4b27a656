"""A cluster of real processes for the tests. A test starts, kills and asks it as a user would, and all its files are in one folder."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from ports import free_port  # noqa: F401

BINARY = os.environ["TROUPE_BINARY"]

# The trial of a test: its loss is 1/epoch + (x - 0.3)^2, and it saves a checkpoint in each second epoch. It writes what the cluster has
# acknowledged to ACKS. Two processes of one trial at the same time would meet in the trial's lock file. `Cluster.hold` makes it wait
# before an epoch until `Cluster.go_on`.
SCRIPT = """
import fcntl, json, os, time, troupe
p = troupe.params(x=0.5)
root, trial = os.environ["JOB_DIR"], os.environ["DET_TRIAL_ID"]
lock = open(f"{root}/lock-{trial}", "a+")
me = f"run {os.environ['DET_TRIAL_RUN_ID']}, pid {os.getpid()}, {time.time()}"
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.write(me + "; ")
    lock.flush()
except BlockingIOError:
    with open(f"{root}/double-{trial}", "a") as f:
        f.write(f"{me}, beside: {open(lock.name).read()}")
def note(kind, epoch):
    with open(f"{root}/acks", "a") as f:
        f.write(json.dumps({"kind": kind, "trial": int(trial), "run": int(os.environ["DET_TRIAL_RUN_ID"]), "epoch": epoch}) + "\\n")
def epoch_s():
    try:
        with open(f"{root}/epoch_s") as f:
            return float(f.read())
    except FileNotFoundError:
        return float(os.environ.get("EPOCH_S", "0.05"))
def held(epoch):
    for name in ("held-" + os.environ["DET_EXPERIMENT_ID"], "held"):
        try:
            with open(f"{root}/{name}") as f:
                return epoch > int(f.read())
        except FileNotFoundError:
            pass
    return False
start = 0
if path := troupe.resume():
    start = json.loads((path / "state.json").read_text())["epoch"]
note("start", start)
epoch = start  # a run that was lost after its last checkpoint has nothing left to do
for epoch in range(start + 1, 17):
    time.sleep(epoch_s())
    until = time.monotonic() + 600
    while held(epoch) and not troupe.should_stop():
        assert time.monotonic() < until, "held in vain"
        time.sleep(0.02)
    if held(epoch):  # and told to stop
        epoch -= 1
        break
    troupe.validate({"loss": (p.x - 0.3) ** 2 + 1.0 / epoch, "epoch": epoch}, step=epoch)
    note("validated", epoch)
    if epoch % 2 == 0:
        with troupe.checkpoint(epoch) as path:
            (path / "state.json").write_text(json.dumps({"epoch": epoch}))
        note("saved", epoch)
    if troupe.should_stop():
        break
note("end", epoch)
"""

CONFIG = """
name: survival
entrypoint: python3 job.py
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
searcher: {{name: adaptive_asha, metric: loss, time_metric: epoch, max_time: 16, max_trials: {trials}, max_concurrent_trials: 4, divisor: 4, mode: aggressive}}
reproducibility: {{experiment_seed: 7}}
max_restarts: 0
environment: {{environment_variables: ["JOB_DIR={root}", "EPOCH_S={epoch_s}"]}}
"""


PATIENCE_S = 120  # seconds that a busy host may take for anything; no wait ends earlier


def wait_for(true, seconds=PATIENCE_S, every=0.05, what=lambda: ""):
    """Polls until `true()` is true, and returns its value. `seconds` is the time that an idle host may need. A busy host gets at least
    `PATIENCE_S`; after that the wait fails and shows `what()`."""
    seconds = max(seconds, PATIENCE_S)
    end = time.monotonic() + seconds
    while True:
        if got := true():
            return got
        assert time.monotonic() < end, f"waited {seconds} s in vain {what()}"
        time.sleep(every)


def stays(true, seconds, pause=lambda: time.sleep(0.05), what=lambda: None):
    """Checks that `true()` holds at each look for so many seconds: what must not happen has that time to happen."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert true(), what()
        pause()


def moment(chance, least, most):
    """Sleeps for a random time between `least` and `most` seconds, so that the fault behind it falls at a random moment. It does not wait
    for anything."""
    time.sleep(chance.uniform(least, most))


def hold(gate):
    """Shell words for an entrypoint, which wait until `go_on(gate)`. So a task runs for as long as its test wants."""
    return f"for i in $(seq 12000); do [ -e {gate} ] && break; sleep 0.05; done"


def go_on(gate):
    pathlib.Path(gate).touch()


def send_noise(port, noise):
    """Sends bytes to a port of this host, and reads the answer until the other side closes or is silent for 3 s."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as s:
        try:
            s.sendall(noise)
            s.shutdown(socket.SHUT_WR)
            s.settimeout(3)
            while s.recv(65536):
                pass
        except OSError:
            pass


class Cluster:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.data = self.root / "data"
        self.env = {**os.environ, "HOME": str(self.root), "TROUPE_DATA_DIR": str(self.data)}
        self.env.pop("TROUPE_MASTER", None)
        self.process = None
        self.listen = "127.0.0.1:0"
        self.up_words = ()  # more words for `troupe up`
        self.log = open(self.root / "up.log", "a")

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()

    def up(self, slots=2):
        self.process = subprocess.Popen(
            [BINARY, "up", "--data-dir", str(self.data), "--listen", self.listen, *(["--slots", str(slots)] if slots else []), *self.up_words],
            env=self.env, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_for(self.answers)

    def url(self):
        try:
            lines = dict(line.split(" ", 1) for line in (self.data / "lock").read_text().splitlines() if " " in line)
        except (OSError, ValueError):
            return None
        return lines.get("url") if lines.get("pid") == str(self.process.pid) else None

    def answers(self):
        assert self.process.poll() is None, (self.root / "up.log").read_text()[-3000:]
        if not (url := self.url()):
            return False
        try:
            return urllib.request.urlopen(url + "/health", timeout=10).status == 200
        except OSError:
            return False

    def cli(self, *words, check=True, timeout=PATIENCE_S):
        done = subprocess.run([BINARY, *words], env=self.env, capture_output=True, text=True, timeout=max(timeout, PATIENCE_S))
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def json(self, *words):
        return json.loads(self.cli(*words, "-o", "json").stdout)

    def prepare(self, trials, epoch_s):
        """Writes the files of an experiment, job.yaml and its context in job/, and returns both paths."""
        job = self.root / "job"
        job.mkdir(exist_ok=True)
        (job / "job.py").write_text(SCRIPT)
        config = self.root / "job.yaml"
        config.write_text(CONFIG.format(trials=trials, root=self.root, epoch_s=epoch_s))
        return str(config), str(job)

    def submit(self, trials=12, epoch_s=0.05):
        return self.json("experiment", "create", *self.prepare(trials, epoch_s))["id"]

    def tree(self):
        """The pids of all processes that belong to this data directory: the node, its sandboxes, and their tasks."""
        found = set()
        mark = str(self.data).encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()
                env = pathlib.Path(f"/proc/{entry}/environ").read_bytes()
            except OSError:
                continue
            ours = mark in words and (b"troupe" in words)
            if ours or (b"TROUPE_TASK_ID=" in env and mark in env):
                found.add(int(entry))
        return found

    def describe_tree(self):
        """The processes of `tree`, each as (pid, command line). A process that ends meanwhile is left out."""
        found = []
        for pid in self.tree():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            except OSError:
                continue
            if words:  # An empty command line means that the process has ended and its parent has not noticed yet.
                found.append((pid, words))
        return found

    def hold(self, epoch=15):
        """From now on the trials of `prepare` stop behind this epoch until `go_on`. A trial that is told to stop ends all the same."""
        self.put("held", epoch)

    def go_on(self, experiment=None, epoch=1000):
        """Lets the trials that `hold` stops continue up to this epoch: all trials, or those of one experiment."""
        self.put("held" if experiment is None else f"held-{experiment}", epoch)

    def hurry(self):
        """Makes the epochs of all trials of `prepare` short from now on."""
        self.put("epoch_s", 0.01)

    def put(self, name, value):
        (self.root / f"{name}.new").write_text(str(value))
        (self.root / f"{name}.new").replace(self.root / name)  # A rename, so that no reader sees half of the text.

    def kill_everything(self):
        """Kills the whole process tree with SIGKILL, the node first."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

        def killed():
            left = self.tree()
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            return not left

        wait_for(killed, every=0.01, what=self.describe_tree)

    def kill_node(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def down(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                threads = [(task / "comm").read_text().strip() + ": " + (task / "wchan").read_text() for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()]
                raise AssertionError(f"not ended {PATIENCE_S} s after SIGTERM; threads {threads}, processes {self.describe_tree()}, log {(self.root / 'up.log').read_text()[-2000:]}") from None

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill_everything()
        for pid in self.tree():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def state(self, experiment):
        return self.json("experiment", "describe", str(experiment))["state"].removeprefix("STATE_")

    def wait_end(self, experiment, seconds=300):
        def ended():
            state = self.state(experiment)
            return state if state in ("COMPLETED", "ERROR", "CANCELED") else None
        return wait_for(ended, seconds, 0.3)

    def trials(self, experiment):
        got = self.json("trial", "list", str(experiment))
        return got["trials"] if isinstance(got, dict) else got

    def checkpoints(self, experiment):
        """The checkpoints of the experiment as dicts, each with its trial, its steps and the place of its files."""
        got = self.json("checkpoint", "list", str(experiment))
        rows = got["checkpoints"] if isinstance(got, dict) else got
        return [{**row, "totalBatches": (row.get("metadata") or {}).get("steps_completed")} for row in rows]

    def call(self, path, body=None):
        """Calls a route of the API as the administrator. Returns the HTTP status and the decoded JSON."""
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(self.request(path, data), timeout=PATIENCE_S) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())

    def request(self, path, data=None):
        url = self.env.get("TROUPE_MASTER") or self.url()
        if not hasattr(self, "admin_token"):
            body = json.dumps({"username": "admin", "password": ""}).encode()
            with urllib.request.urlopen(url + "/api/v1/auth/login", body, timeout=PATIENCE_S) as answer:
                self.admin_token = json.load(answer)["token"]
        return urllib.request.Request(url + path, data, {"Authorization": "Bearer " + self.admin_token})

    def facts(self, kind):
        """All facts of a kind that are stored by now, oldest first."""
        with urllib.request.urlopen(self.request("/api/v1/me"), timeout=PATIENCE_S) as answer:
            newest = int(answer.headers["Troupe-Sequence"])
        if newest == 0:  # `until=0` would mean without end.
            return []
        with urllib.request.urlopen(self.request(f"/troupe/v1/events?after=0&until={newest}"), timeout=PATIENCE_S) as stream:
            told = [json.loads(line[5:]) for line in stream if line.startswith(b"data:")]
        return [fact for fact in told if fact["type"] == kind]

    def acks(self):
        try:
            return [json.loads(line) for line in (self.root / "acks").read_text().split("\n")[:-1]]  # The last line may be incomplete.
        except FileNotFoundError:
            return []

    def check_books(self, experiment, trials):
        """Checks what must hold after any faults: all acknowledged reports and checkpoints are stored, no trial ran twice at the same
        time, and no slot is held. Returns the hyperparameters of the trials."""
        rows = self.trials(experiment)
        assert len(rows) == trials, [row["id"] for row in rows]
        stored = {row["id"]: self.json("trial", "metrics", str(row["id"])) for row in rows}
        for ack in self.acks():
            if ack["kind"] == "validated":
                epochs = [m["totalBatches"] for m in stored[ack["trial"]] if m["group"] == "validation"]
                assert ack["epoch"] in epochs, (ack, epochs)
        saved = {(c["trialId"], c["totalBatches"]) for c in self.checkpoints(experiment)}
        missing = [a for a in self.acks() if a["kind"] == "saved" and (a["trial"], a["epoch"]) not in saved]
        assert not missing, (missing, saved)
        assert not list(self.root.glob("double-*")), "a trial ran twice at once"
        wait_for(lambda: self.json("status")["slots"]["used"] == 0, what=lambda: self.json("agent", "list"))
        return {json.dumps(row["hparams"], sort_keys=True) for row in rows}
