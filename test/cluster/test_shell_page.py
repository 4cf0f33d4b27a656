"""Runs the session that docs/shell.md shows on a real cluster. What differs from run to run is masked on both sides.

`TROUPE_WRITE_DOCS=1` writes the session of this run into the page.
"""

import os
import pathlib
import re
import subprocess
import sys

import pexpect
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cluster_under_test import BINARY, Cluster, wait_for  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/shell.md"
BLOCK = re.compile(r"(?<=\n## A session\n).*?```\n(\$ troupe shell\n.*?)```\n", re.S)

# A trial does nothing after one report and one checkpoint, so that its actor hears the same messages in every run.
SCRIPT = """
import time, troupe
p = troupe.params(x=0.5)
troupe.validate(loss=(p.x - 0.3) ** 2)
with troupe.checkpoint() as path:
    (path / "state").write_text("1")
while not troupe.should_stop():
    time.sleep(0.05)
"""
CONFIG = """
name: descend
entrypoint: python3 train.py
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
searcher: {name: random, metric: loss, max_trials: 3, max_concurrent_trials: 3}
"""

COMMANDS = [
    "nodes", "tree experiment/1", "ps kind=trial", "info trial/1", "state trial/1 run", "trace agent/gpu01 --msg agent_heartbeat --max 2",
    "send trial/1 preempt", ":rw", "restart trial/2", "ps trial/2 -o json | grep -o '\"restarts\":[0-9]*'", "send trial/1 preempt", "events kind=audit",
]

MASKS = [
    (r"\d\d:\d\d:\d\d(\.\d+)?", "TIME"), (r"\d\d:\d\d UTC", "TIME"), (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"[0-9a-f]{8}-[0-9a-f-]*[0-9a-f.]*|[0-9a-f]{32}", "ID"), (r"/[\w./-]*/checkpoints/\S*", "PATH"),
    (r"troupe \d+\.\d+\.\d+|(?<=  )\d+\.\d+\.\d+(?=  )", "VERSION"),
    (r"(\d+ (h|min) )?\d+(\.\d+)? (µs|ms|s|min|B|KB|KiB)\b", "SOME"), (r"(?<![\w/.\"])\d+(\.\d+)?(?![\w/.\"])", "N"), (r"[ \t]+", " "), (r" ?─+", ""),
]


def masked(text):
    for pattern, name in MASKS:
        text = re.sub(pattern, name, text)
    # 30 s after a request its timer arrives as @error, whether or not the request was answered. On a slow host `info` shows it.
    return [line.rstrip() for line in text.splitlines() if "@error" not in line]


class Named(Cluster):
    def up(self, slots=2):
        self.process = subprocess.Popen(
            [BINARY, "up", "--data-dir", str(self.data), "--listen", self.listen, "--slots", str(slots), "--name", "gpu01"],
            env=self.env, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_for(self.answers)


def start(c):
    folder = c.root
    c.env.update(LANG="C.UTF-8", TERM="xterm", NO_COLOR="1", XDG_STATE_HOME=str(folder / "state"), XDG_CONFIG_HOME=str(folder / "config"))
    for name in ("TROUPE_USER", "TROUPE_PASSWORD", "TROUPE_TOKEN", "LC_ALL"):
        c.env.pop(name, None)
    c.up()
    (folder / "job").mkdir()
    (folder / "job/train.py").write_text(SCRIPT)
    (folder / "job.yaml").write_text(CONFIG)
    c.cli("experiment", "create", str(folder / "job.yaml"), str(folder / "job"))


@pytest.fixture
def cluster(tmp_path):
    """A cluster in which the first two trials have the slots. Trials begin side by side and the first to ask gets a slot, so that up to 8
    clusters are tried."""
    for number in range(8):
        (tmp_path / str(number)).mkdir()
        with Named(tmp_path / str(number)) as c:
            start(c)
            if wait_for(lambda: running(c), 60) == [1, 2]:
                wait_for(lambda: len(c.checkpoints(1)) == 2, 60)
                yield c
                return
    raise AssertionError("the first two trials never got the slots")


def running(cluster):
    """The two trials that have slots while the third waits. None in any other state."""
    rows = {row["actor"]: row["state"] for row in cluster.json("shell", "-e", "ps --window 0")}
    states = {n: rows.get(f"allocation/{n}.1") for n in (1, 2, 3)}
    return [n for n, x in states.items() if x == "RUNNING"] if sorted(map(str, states.values())) == ["QUEUED", "RUNNING", "RUNNING"] else None


def greeting(cluster):
    child = pexpect.spawn(BINARY, ["shell"], env=cluster.env, encoding="utf-8", timeout=120, dimensions=(24, 160))
    child.expect("troupe> ")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", child.before).replace("\r", "")
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.close()
    return text


def transcript(cluster):
    """Runs all commands in one session, each between two marks, so that each output can be told from the next."""
    words = []
    for number, command in enumerate(COMMANDS):
        words += ["-e", f"log | echo '=={number}=='", "-e", command]
    done = subprocess.run([BINARY, "shell", "--keep-going", *words], env=cluster.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    outputs = re.split(r"==\d+==\n", done.stdout)[1:]
    assert len(outputs) == len(COMMANDS), done.stdout
    text, prompt = "$ troupe shell\n" + greeting(cluster), "troupe> "
    for command, output in zip(COMMANDS, outputs):
        text += prompt + command + "\n" + output
        prompt = "troupe# " if command == ":rw" else prompt
    return text


def test_the_session_of_the_page_is_a_real_one(cluster):
    got = transcript(cluster)
    page = PAGE.read_text()
    shown = BLOCK.search(page)
    assert shown, "docs/shell.md has no session"
    if os.environ.get("TROUPE_WRITE_DOCS"):
        PAGE.write_text(page[:shown.start(1)] + re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8080", got) + page[shown.end(1):])
    else:
        assert masked(shown.group(1)) == masked(got), got
