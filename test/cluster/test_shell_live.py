"""`troupe shell` on a real cluster: what it shows is true, what it orders happens, and it reports what goes away."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pexpect
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cluster_under_test import BINARY, Cluster, free_port, wait_for  # noqa: E402


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("shell")) as c:
        c.env.update(LANG="C.UTF-8", TERM="xterm", NO_COLOR="1", XDG_STATE_HOME=str(c.root / "state"), XDG_CONFIG_HOME=str(c.root / "config"))
        for name in ("TROUPE_USER", "TROUPE_PASSWORD", "TROUPE_TOKEN", "LC_ALL"):
            c.env.pop(name, None)
        c.listen = f"127.0.0.1:{free_port()}"  # the same address after a restart
        c.up()
        c.hold(epoch=0)  # The experiment must not end before the tests.
        c.experiment = c.submit(trials=8, epoch_s=3)
        yield c


def shell(cluster, *commands, code=0, more=()):
    done = cluster.cli("shell", *more, *[w for x in commands for w in ("-e", x)], check=False, timeout=120)
    assert done.returncode == code, (commands, done.returncode, done.stdout, done.stderr)
    return done


def answer(cluster, command):
    return json.loads(shell(cluster, command, more=["-o", "json"]).stdout)


def state(cluster):
    return next(e["state"] for e in cluster.json("experiment", "list") if e["id"] == cluster.experiment)


def running_trial(cluster):
    def one():
        rows = [r for r in answer(cluster, "ps kind=trial") if r["state"] == "RUNNING"]
        return rows[0]["actor"] if rows else None

    return wait_for(one, 120)


def test_looks_at_what_is_there(cluster):
    nodes = answer(cluster, "nodes")
    assert [n["state"] for n in nodes] == ["up"] and nodes[0]["slots"] == 2 and nodes[0]["actors"] > 5
    trial = running_trial(cluster)
    rows = answer(cluster, "ps --window 1s")
    assert {"journal", "cluster", f"experiment/{cluster.experiment}", trial} <= {r["actor"] for r in rows}
    assert all({"actor", "kind", "node", "backlog", "msg_per_s", "restarts", "state"} <= set(r) for r in rows)
    top = answer(cluster, "ps --sort messages --top 2")
    assert len(top) == 2 and top[0]["messages"] >= top[1]["messages"]
    info = answer(cluster, f"info {trial}")
    assert info["identity"]["actor"] == trial and {"identity", "links", "work", "memory", "recent"} <= set(info)
    tree = answer(cluster, f"tree experiment/{cluster.experiment}")
    assert trial in {c["actor"] for c in tree["children"]}
    assert answer(cluster, f"state {trial}")["actor"] == trial
    assert answer(cluster, f"msgs {trial}")[0]["type"]
    assert answer(cluster, f"stats {trial}")["actor"] == trial
    assert {r["how"] for r in answer(cluster, f"links {trial}")} >= {"owner"}
    assert isinstance(answer(cluster, "who-waits"), list)
    assert answer(cluster, "events --max 3")
    assert "NODE" in shell(cluster, "nodes").stdout
    assert shell(cluster, f"let t = ps kind=trial --top 1; info $t | grep -c identity").stdout == "1\n"
    assert answer(cluster, "experiment list")[0]["id"] == cluster.experiment


def test_traces_are_bounded(cluster):
    cluster.go_on(epoch=15)
    rows = answer(cluster, f"trace experiment/{cluster.experiment} --max 2 --for 120s")
    assert 1 <= len(rows) <= 2 and all(r["type"] for r in rows)
    # A trial may end, or wait for its next epoch, at that moment. Then the next running trial is followed.
    rows = wait_for(lambda: answer(cluster, f"follow {running_trial(cluster)} --for 5s"), 120)
    assert all(r["actor"] for r in rows)
    assert len(answer(cluster, "events -f --max 2")) == 2
    cluster.hold(epoch=0)


def test_exit_codes(cluster):
    for command, code in [("pss", 2), ("ps --tpo 3", 2), ("info trial/99999", 5), ("trace trial/99999", 5), ("follow trial/99999", 5),
                          ("send journal ping", 4), ("kill journal", 4), ("log debug", 4), ("ps --sort shoesize", 2)]:
        shell(cluster, command, code=code)
    assert "--allow-faults" in shell(cluster, ":rw", "fault journal kill", code=4).stderr
    assert "one of kill, drop" in shell(cluster, ":rw", "fault journal nothing", code=2).stderr
    cluster.env["TROUPE_USER"] = "determined"
    try:
        assert "for admins" in shell(cluster, ":rw", code=4).stderr
    finally:
        del cluster.env["TROUPE_USER"]


def test_acts_after_rw_and_is_audited(cluster):
    experiment = f"experiment/{cluster.experiment}"
    assert shell(cluster, ":rw", f"send {experiment} pause").returncode == 0
    wait_for(lambda: state(cluster) == "STATE_PAUSED", 60)
    shell(cluster, ":rw", f"send {experiment} activate")
    trial = running_trial(cluster)
    assert "hint:" in shell(cluster, ":rw", f"send {trial} nosuchmessage", code=2).stderr
    shell(cluster, ":rw", f"kill {trial}")
    wait_for(lambda: trial in {r["actor"] for r in answer(cluster, "ps kind=trial")}, 60)
    shell(cluster, ":rw", "log debug", "log info")
    rows = answer(cluster, "events kind=audit")
    assert {r["user"] for r in rows} == {"admin"}
    assert any(trial in (r["actor"] + r["what"]) for r in rows)


def test_a_terminal_on_a_live_cluster(cluster):
    trial = running_trial(cluster)
    child = pexpect.spawn(BINARY, ["shell"], env=cluster.env, encoding="utf-8", timeout=120, dimensions=(24, 120))
    child.delaybeforesend = None
    prompt = r"troupe> "
    child.expect(r"1 node, 2 slots, \d+ actors")
    child.expect(prompt)
    child.send("info tri\t\x0c")
    child.expect_exact("troupe> info trial/")
    child.send("\x03")
    child.expect_exact("^C")
    child.expect(prompt)
    child.send(f"send {trial} pi\t\x0c")
    child.expect_exact(f"troupe> send {trial} ping")
    child.send("\x03")
    child.expect(prompt)
    child.send("no")
    shell(cluster, ":rw", "kill " + trial)  # Another user acts.
    child.expect(r"(supervision|audit|state)[^\n]*\n")
    child.expect(r"troupe> .*no")
    child.send("des\r")
    child.expect_exact("NODE")
    child.expect(prompt)
    child.send("top\r")
    child.expect(r"\d+ actors  ")
    child.send("q")
    child.expect(prompt)
    child.send("trace cluster --for 5m\r")
    child.expect_exact("\n")
    cluster.process.send_signal(signal.SIGKILL)  # The node dies during the trace.
    cluster.process.wait()
    child.expect(r"error: [^\n]*(went away|broke|connect)")
    child.expect(prompt)
    cluster.up()
    child.send("nodes\r")  # The same session continues.
    child.expect_exact("NODE")
    child.expect(prompt)
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_the_cluster_is_undisturbed(cluster):
    noise = subprocess.run([BINARY, "shell", "--keep-going"], env=cluster.env, input=os.urandom(1 << 20) + b"\nnodes\n", capture_output=True, timeout=120)
    assert noise.returncode == 2
    assert state(cluster) == "STATE_ACTIVE"
    shell(cluster, f"experiment kill {cluster.experiment}", code=4)
    shell(cluster, ":rw", f"experiment kill {cluster.experiment}")  # This is a verb of the program `troupe`.
    wait_for(lambda: state(cluster) == "STATE_CANCELED", 60)
