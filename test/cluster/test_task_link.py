"""The Python package against the C++ side of the task link: the program harness_gateway, whose path is in HARNESS_GATEWAY."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "workers" / "python"


class Gateway:
    def __init__(self, *flags):
        self.flags = flags
        self.endpoint = "tcp://127.0.0.1:*"
        self.rows = []
        self.start()

    def start(self):
        self.output = tempfile.NamedTemporaryFile()  # A pipe would fill up and stop the program.
        command = [os.environ["HARNESS_GATEWAY"], "--print", "--endpoint", self.endpoint, *self.flags]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self.output)
        deadline = time.monotonic() + 120
        while not self._lines() and self.process.poll() is None:
            assert time.monotonic() < deadline, "it did not start"
        self.endpoint = self._lines()[0]

    def _lines(self):
        with open(self.output.name, encoding="utf-8") as file:  # opened anew, because it needs an offset of its own
            return [line[:-1] for line in file if line.endswith("\n")]

    def end(self):
        """Ends the program and returns its counts. The rows that it has stored are added to `rows`."""
        self.process.stdin.close()
        assert self.process.wait(120) == 0
        rows = [json.loads(line) for line in self._lines()[1:]]
        self.rows += rows[:-1]
        return rows[-1]

    def kill(self):
        """Kills the program. The rows that it has printed were stored, and are added to `rows`."""
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.rows += [json.loads(line) for line in self._lines()[1:]]


@pytest.fixture
def run(tmp_path):
    def start(script, gateway):
        (tmp_path / "script.py").write_text("import troupe\n" + script)
        (tmp_path / "checkpoints").mkdir(exist_ok=True)
        env = {k: v for k, v in os.environ.items() if not k.startswith("TROUPE_") and k != "RANK"}
        env.update(PYTHONPATH=str(PACKAGE), TROUPE_HARNESS=gateway.endpoint, TROUPE_TASK_TOKEN="secret",
                   TROUPE_ALLOCATION_ID="12.3", TROUPE_CHECKPOINT_DIR=str(tmp_path / "checkpoints"))
        return subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, env=env, text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return start


def test_a_script_reports_saves_and_hears_the_decision(run):
    gateway = Gateway("--stop-at-epoch", "2")
    out, err = run("""
for epoch in range(1, 9):
    troupe.log(loss=float("nan"), epoch=epoch)
    troupe.validate({"acc": 0.1 * epoch, "epoch": epoch}, step=epoch * 10)
    if troupe.should_stop(): break
with troupe.checkpoint(metadata={"epoch": epoch}) as path: (path / "w").write_text("1234")
print(epoch, troupe.stop_reason, troupe.flush(), troupe.dropped())
""", gateway).communicate(timeout=180)
    assert (out, err) == ("2 pruned True 0\n", "")
    counts = gateway.end()
    assert counts["reports"] == 4
    assert [(r["seq"], r["group"], r["steps"]) for r in gateway.rows[:4]] == [
        (1, "training", 1), (2, "validation", 10), (3, "training", 11), (4, "validation", 20)]
    assert gateway.rows[0]["metrics"] == {"loss": "NaN", "epoch": 1} and gateway.rows[3]["metrics"]["acc"] == 0.2
    assert gateway.rows[4]["files"] == {"w": 4} and gateway.rows[4]["steps"] == 20


def test_limits_are_the_same_on_both_sides(run):
    gateway = Gateway()
    out, err = run("""
import troupe._encode as encode
encode.MAX_BYTES, encode.MAX_LEVELS, encode.MAX_KEYS, encode.MAX_NAME_BYTES = 2 << 20, 99, 9999, 99999  # a client without limits
deep = {}
for _ in range(64): deep = {"x": deep}
for case in (deep, deep["x"], {str(i): i for i in range(1001)}, {str(i): i for i in range(1000)}, {"n" * 10241: 1},
             {"x": "y" * (1 << 20)}, {"x": "y" * ((1 << 20) - 8)}):
    try:
        troupe.validate(case)
        print("stored")
    except troupe.Refused as why:
        print(str(why).split(": ", 1)[1])
""", gateway).communicate(timeout=180)
    assert out.splitlines() == ["metrics nest deeper than 64 levels", "stored", "a report of more than 1000 keys", "stored",
                                "a name of 10241 bytes; at most 10240",
                                "a report of 1048584 bytes; at most 1048576; save large things in a checkpoint", "stored"], err
    gateway.end()


def test_a_gateway_that_is_killed_loses_nothing(run):
    gateway = Gateway("--commit-ms", "2")
    process = run("""
import sys
for i in range(20000):
    troupe.log(i=i)
    if i == 10000: print("half", flush=True); sys.stdin.readline()
print(troupe.flush(120), troupe.dropped())
""", gateway)
    assert process.stdout.readline() == "half\n"
    gateway.kill()
    gateway.start()
    process.stdin.write("\n")
    process.stdin.flush()
    for _ in range(3):
        gateway.kill()
        gateway.start()
    assert process.communicate(timeout=180) == ("True 0\n", "")
    gateway.end()
    # The journal of the program dies with its process. So a row may be stored by two processes, but none may be missing.
    assert {r["metrics"]["i"] for r in gateway.rows} == set(range(20000))


def test_a_hundred_megabytes_end_only_the_connection_that_sent_them(run):
    gateway = Gateway()
    process = run("""
import zmq, os
troupe.validate(i=1)
rude = zmq.Context().socket(zmq.DEALER)
rude.setsockopt(zmq.LINGER, 0)
rude.connect(os.environ["TROUPE_HARNESS"])
watch = rude.get_monitor_socket(zmq.EVENT_DISCONNECTED)
rude.send(b"x" * 100_000_000)
print(watch.poll(120_000) != 0)
rude.disable_monitor()
troupe.validate(i=2)
""", gateway)
    out, err = process.communicate(timeout=180)
    assert (out, err) == ("True\n", "")
    assert gateway.end()["reports"] == 2
