"""The shell's routes on a master and two agents: looking, tracing, acting, faults, and nodes and actors that go away meanwhile."""

import json
import pathlib
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from cluster_under_test import wait_for
from test_processes import Processes

AGENT_KINDS = {"agent_node", "harness", "log_pump", "worker_runtime", "inspector"}


class Stream:
    """Reads server-sent events on a thread of its own."""

    def __init__(self, response):
        self.response, self.rows, self.named, self.over = response, [], [], False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        name = None
        try:
            for line in self.response:
                line = line.decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    row = json.loads(line[6:])
                    if name:
                        self.named.append((name, row))
                    else:
                        self.rows.append(row)
                elif not line:
                    name = None
        except (OSError, AttributeError, ValueError):  # The test has closed the connection during a read.
            pass
        self.over = True

    def end(self, seconds=30):
        wait_for(lambda: self.over, seconds, what=lambda: (len(self.rows), self.named))
        return dict(self.named)["end"]

    def close(self):
        self.response.close()


class Shell(Processes):
    faults = True

    def flags(self):
        return super().flags() + (["--allow-faults"] if self.faults else [])

    def address(self):
        return f"http://127.0.0.1:{self.http}"

    def token(self, user="admin"):
        body = json.dumps({"username": user, "password": ""}).encode()
        request = urllib.request.Request(self.address() + "/api/v1/auth/login", data=body)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["token"]

    def open(self, path, /, body=None, user="admin", timeout=120, **query):
        if not hasattr(self, "tokens"):
            self.tokens = {}
        if user not in self.tokens:
            self.tokens[user] = self.token(user)
        words = {k.rstrip("_"): v for k, v in query.items()}
        request = urllib.request.Request(
            f"{self.address()}/troupe/v1/shell/{path}" + ("?" + urllib.parse.urlencode(words) if words else ""),
            data=None if body is None else json.dumps(body).encode(), headers={"Authorization": "Bearer " + self.tokens[user]})
        return urllib.request.urlopen(request, timeout=timeout)

    def get(self, path, /, **query):
        with self.open(path, **query) as answer:
            return json.load(answer)

    def post(self, path, /, user="admin", **body):
        with self.open(path, body=body, user=user) as answer:
            return json.load(answer)

    def refusal(self, path, /, body=None, user="admin", **query):
        with pytest.raises(urllib.error.HTTPError) as caught:
            self.open(path, body=body, user=user, **query).read()
        return caught.value.code, caught.value.read().decode()

    def stream(self, path, /, **query):
        return Stream(self.open(path, timeout=120, **query))

    def ps(self, **query):
        return {row["actor"]: row for row in self.get("ps", **{"window": 0, **query})["rows"]}

    def audit(self):
        return self.get("events", kind="audit", max=1000)["rows"]

    def ready(self, *agents):
        self.master()
        for name in agents:
            self.agent(name)
        wait_for(lambda: self.alive_agents() == len(agents), 60)
        wait_for(lambda: self.heard() == {"master", *agents}, 30)

    def heard(self):
        """The nodes that answer. An agent may be up before the desk knows its inspector."""
        return {r["node"] for r in self.get("nodes")["rows"] if r["state"] == "up" and r["actors"] is not None}

    def job(self, epoch_s=0.05, trials=4):
        return self.submit(trials, epoch_s)

    def a_running_trial(self):
        def found():
            rows = [r for r in self.ps(kind="trial").values() if r["state"] == "RUNNING"]
            return rows and rows[0]["actor"]
        return wait_for(found, 60)


@pytest.fixture
def shell(tmp_path):
    one = Shell(tmp_path)
    yield one
    one.close()


def test_all_actors_of_all_nodes_are_seen(shell):
    shell.ready("a1", "a2")
    shell.hold(epoch=0)
    experiment = shell.job()
    trial = shell.a_running_trial()
    nodes = {}

    def all_have_been_up():
        nodes.update({row["node"]: row for row in shell.get("nodes")["rows"]})
        return all(row["uptime_s"] for row in nodes.values())
    wait_for(all_have_been_up, what=lambda: nodes)
    assert set(nodes) == {"master", "a1", "a2"}
    assert {(n, nodes[n]["slots"]) for n in nodes} == {("master", 0), ("a1", 1), ("a2", 1)}
    assert all(row["actors"] >= 4 and row["version"] and row["uptime_s"] > 0 for row in nodes.values())

    rows = shell.get("ps", window=0.2, sort="messages")["rows"]
    names = {row["actor"] for row in rows}
    assert {"journal", "cluster", "pool/default", "agent/a1", "agent/a2", f"experiment/{experiment}", f"searcher/{experiment}",
            "agent_node/a1", "agent_node/a2", "harness@a1", "harness@a2", "worker_runtime@a1", "log_pump@a2"} <= names
    assert [r["messages"] for r in rows] == sorted((r["messages"] for r in rows), reverse=True)
    assert {r["kind"] for r in rows if r["node"] == "a1"} >= AGENT_KINDS
    busy = lambda: shell.ps()["agent/a1"]
    wait_for(lambda: (row := busy())["messages"] > 0 and row["run_us_p50"] > 0 and row["wait_us_p50"] > 0, what=busy)
    assert busy()["state"] == "alive"
    assert len(shell.get("ps", top=3, window=0)["rows"]) == 3
    assert set(shell.ps(kind="agent")) == {"agent/a1", "agent/a2"}
    assert all(row["node"] == "a2" for row in shell.ps(node="a2").values())
    assert set(shell.ps(filter="pool/")) == {"pool/default"}

    info = shell.get("info", actor=trial)
    assert info["identity"]["owner"] == f"experiment/{experiment}" and info["identity"]["node"] == "master"
    assert {"actor": trial, "peer": f"experiment/{experiment}", "how": "owner"} in info["links"]
    assert any(link["how"] == "monitor" and link["peer"].startswith("allocation/") for link in info["links"])
    assert info["work"]["messages"] > 0 and info["memory"]["state_bytes"] > 0 and info["recent"]
    assert shell.get("state", actor=trial)["state"]["active"] is True
    assert shell.get("state", actor=trial, path="run.open") == {"actor": trial, "state": True}
    agents = shell.get("state", actor="pool/default", path="agents")["state"]
    assert set(agents) == {"a1", "a2"}
    beats = wait_for(lambda: [row for row in shell.get("msgs", actor="agent/a1")["rows"] if row["type"] == "agent_heartbeat"])
    assert {row["from"] for row in beats} == {"agent_node/a1"}  # The sender is an actor of another process, named.
    assert all(row["text"].startswith("[") and row["run_us"] > 0 for row in beats)
    acks = wait_for(lambda: [row for row in shell.get("msgs", actor="agent_node/a1")["rows"] if row["type"] == "heartbeat_ack"])
    assert {row["from"] for row in acks} == {"agent/a1"}
    assert {row["peer"] for row in shell.get("info", actor="agent/a1")["links"]} >= {"cluster", "agent_node/a1"}
    stats = shell.get("stats", actor="agent/a1")
    assert sum(n for _, n in stats["run_us"]["buckets"]) > 0 and any(t["type"] == "agent_heartbeat" for t in stats["by_type"])
    assert {(r["peer"], r["how"]) for r in shell.get("links", actor="harness@a1")["rows"]} >= {("agent_node", "owner")}
    assert isinstance(shell.get("waits")["rows"], list)

    tree = shell.get("tree")
    assert tree["actor"] == "cluster"
    children = {c["actor"]: c for c in tree["children"]}
    below = {c["actor"] for c in children[f"experiment/{experiment}"]["children"]}
    assert f"searcher/{experiment}" in below and trial in below
    assert [c["actor"] for c in children["agent/a1"]["children"]] == ["agent_node/a1"]
    assert {c["actor"] for c in children["agent/a1"]["children"][0]["children"]} == {"harness@a1", "log_pump@a1", "worker_runtime@a1"}
    assert shell.get("tree", actor=trial)["children"][0]["actor"].startswith("allocation/")

    wait_for(lambda: any(c["path"] == "lease_until" for c in shell.get("state", actor="agent/a1", diff=2)["changes"]))


def test_what_is_not_there_is_said(shell):
    shell.ready("a1", "a2")
    assert shell.refusal("info", actor="trial/999")[0] == 404
    assert shell.refusal("state", actor="pool/default", path="queeu")[0] == 404
    assert shell.refusal("follow", correlation="trial/999")[0] == 404
    assert shell.refusal("follow", correlation="nonsense")[0] == 404
    assert shell.refusal("trace", actor="trial/999")[0] == 404
    code, text = shell.refusal("stats", actor="harness")
    assert code == 409 and "harness@a1" in text and "harness@a2" in text
    code, text = shell.refusal("ps", sort="bakclog", window=0)
    assert code == 400 and "backlog" in text
    code, text = shell.refusal("ps", window="soon")
    assert code == 400 and "'window'" in text
    assert shell.refusal("ps", node="a9")[0] == 404
    code, text = shell.refusal("send", {"actor": "pool/default", "message": "preempt"})
    assert code == 400 and "describe" in text
    code, text = shell.refusal("send", {"actor": "agent/a1", "message": "drain", "fields": {"on": 7}})
    assert code == 400 and "'on'" in text
    code, text = shell.refusal("kill", {"actor": ""})
    assert code == 400 and "'actor'" in text
    code, text = shell.refusal("kill", {"actor": "journal"})
    assert code == 409 and "node" in text
    code, text = shell.refusal("config", {"key": "nope", "value": 1})
    assert code == 400 and "log.level" in text
    assert shell.refusal("fault", {"actor": "pool/default", "fault": "melt"})[0] == 400
    assert not shell.audit() or all("melt" in row["what"] or "failed" in row["what"] for row in shell.audit())


def test_acting_is_for_admins_and_is_in_the_audit_log(shell):
    shell.ready("a1")
    for path, body in {"kill": {"actor": "trial/1"}, "restart": {"actor": "trial/1"}, "send": {"actor": "journal", "message": "flush"},
                       "drain": {"node": "a1", "on": True}, "config": {"key": "log.level", "value": "debug"},
                       "fault": {"actor": "journal", "fault": "drop"}, "log": {"level": "debug"}}.items():
        assert shell.refusal(path, body, user="determined")[0] == 403, path
    assert shell.audit() == []
    assert shell.get("ps", window=0, user="determined")["rows"]
    shell.post("send", actor="journal", message="flush")
    shell.post("config", key="trace.max", value=50)
    assert shell.post("log", level="debug") == {"level": "debug"}
    assert shell.get("log") == {"level": "debug"}
    shell.post("drain", node="a1", on=True)
    told = [(row["user"], row["actor"], row["what"]) for row in shell.audit()]
    assert told == [("admin", "journal", "send flush"), ("admin", "cluster", "config trace.max = 50"),
                    ("admin", "cluster", 'config log.level = "debug"'), ("admin", "agent/a1", "drain")]
    # Orders and what was noted about them survive a kill -9 of the master.
    shell.process.kill()
    shell.process.wait()
    shell.master()
    assert [row["what"] for row in shell.audit()] == [what for _, _, what in told]
    assert shell.get("log") == {"level": "debug"}
    wait_for(lambda: {r["node"]: r["state"] for r in shell.get("nodes")["rows"]}.get("a1") == "draining", 60)
    one = shell.job(epoch_s=0.05, trials=1)
    assert shell.post("drain", node="a1", on=False)
    assert shell.wait_end(one) == "COMPLETED"


def test_a_drained_node_gets_no_more_work(shell):
    shell.ready("a1", "a2")
    shell.post("drain", node="a1", on=True)
    experiment = shell.job(epoch_s=0.05, trials=6)
    used = set()

    def over():
        agents = shell.get("state", actor="pool/default", path="agents")["state"]
        used.update(name for name, a in agents.items() if any(a["slots"]))
        return shell.state(experiment) in ("COMPLETED", "ERROR", "CANCELED")

    wait_for(over, 120, 0.1)
    assert used == {"a2"} and shell.state(experiment) == "COMPLETED"


def test_killed_and_restarted_actors_come_back_and_the_books_hold(shell):
    shell.ready("a1", "a2")
    trials = 8
    shell.hold(epoch=0)
    experiment = shell.job(epoch_s=0.05, trials=trials)
    trial = shell.a_running_trial()
    before = shell.ps()
    assert "is back" in shell.post("restart", actor=trial)["done"]
    assert "is back" in shell.post("restart", actor=f"experiment/{experiment}")["done"]
    shell.post("kill", actor="retention")
    wait_for(lambda: "retention" in shell.ps(), 20)
    allocation = wait_for(lambda: next((name for name, r in shell.ps(kind="allocation").items() if r["state"] == "RUNNING"), None), 60)
    assert "is back" in shell.post("restart", actor=allocation)["done"]
    after = shell.ps()
    assert after[f"experiment/{experiment}"]["restarts"] == before[f"experiment/{experiment}"]["restarts"] + 1
    told = [(row["actor"], row["what"]) for row in shell.get("events", kind="supervision", max=1000)["rows"]]
    assert (trial, "died: restarted by admin") in told and (trial, "is back, restart 1") in told
    assert {row["user"] for row in shell.audit()} == {"admin"}
    shell.go_on()
    assert shell.wait_end(experiment) == "COMPLETED"
    shell.check_books(experiment, trials)


def test_a_searcher_comes_back_five_times_a_minute_then_its_experiment_fails_with_the_reason(shell):
    shell.ready("a1")
    shell.hold(epoch=0)
    experiment = shell.job()
    searcher = f"searcher/{experiment}"
    shell.a_running_trial()
    for restart in range(1, 6):
        assert "is back" in shell.post("restart", actor=searcher)["done"]
        assert shell.ps(kind="searcher")[searcher]["restarts"] == restart
    assert shell.state(experiment) == "ACTIVE"
    shell.post("kill", actor=searcher)
    assert shell.wait_end(experiment) == "ERROR"
    facts = [row["what"] for row in shell.get("events", kind="state", max=1000)["rows"] if row["actor"] == f"experiment/{experiment}"]
    assert any("the searcher died again and again" in what and "killed by admin" in what for what in facts), facts


def test_who_holds_the_node_is_refused(shell):
    shell.ready("a1")
    for actor in ("journal", "cluster"):
        for order in ("kill", "restart"):
            code, text = shell.refusal(order, {"actor": actor})
            assert code == 409 and "the node ends" in text, (actor, text)


def test_what_operators_order_of_agents_are_facts(shell):
    shell.ready("a1", "a2")
    shell.post("send", actor="agent/a1", message="drain", fields={"slot": 0})
    shell.post("drain", node="a2", on=True)
    shell.post("drain", node="a2", on=False)
    changes = [(f["agent"], f["draining"], f["disabled"], f["by"]) for f in shell.facts("agent_changed")]
    assert changes == [("a1", False, [0], "admin"), ("a2", True, [], "admin"), ("a2", False, [], "admin")]
    slots = {(row["agentId"], row["id"]): row["enabled"] for row in shell.json("slot", "list")}
    assert slots == {("a1", "0"): False, ("a2", "0"): True}, slots
    # An agent that is connected cannot be removed, nor one whose runs are not given away yet. Only admins may remove one.
    assert "access denied" in shell.refused("agent", "remove", "a2")
    shell.env["TROUPE_USER"] = "admin"
    assert "is connected" in shell.refused("agent", "remove", "a2")
    shell.kill_agent("a2")
    wait_for(lambda: "given away yet" in shell.cli("agent", "remove", "a2", check=False).stderr, 30)
    assert "no agent 'a3'" in shell.refused("agent", "remove", "a3")
    # Older versions kept drains in the audit log only. A line there about an agent that has facts does not count.
    shell.process.kill()
    shell.process.wait()
    with open(shell.data / "master" / "master" / "audit", "a") as audit:
        for agent in ("a1", "a2"):
            audit.write(json.dumps({"at": "2026-01-01T00:00:00Z", "user": "eve", "actor": "agent/" + agent, "what": "drain",
                                    "order": {"name": "drain", "fields": {"node": agent, "on": True}}}) + "\n")
    shell.master()
    wait_for(lambda: "a1" in shell.heard(), 60)
    states = {r["node"]: r["state"] for r in shell.get("nodes")["rows"]}
    assert states["a1"] == "up" and len(shell.facts("agent_changed")) == 3, states
    # The agent does not return. It can be removed when the master has waited as long as a lease.
    wait_for(lambda: shell.cli("agent", "remove", "a2", check=False).returncode == 0, 90, 1)
    assert [row["id"] for row in shell.json("agent", "list")] == ["a1"]
    assert [(f["agent"], f["by"]) for f in shell.facts("agent_left")] == [("a2", "admin")]


def test_a_drain_of_an_older_directory_counts_once(shell):
    shell.ready("a1")
    shell.process.kill()
    shell.process.wait()
    with open(shell.data / "master" / "master" / "audit", "a") as audit:
        audit.write(json.dumps({"at": "2026-01-01T00:00:00Z", "user": "eve", "actor": "agent/a1", "what": "drain",
                                "order": {"name": "drain", "fields": {"node": "a1", "on": True}}}) + "\n")
    for _ in range(2):
        shell.master()
        wait_for(lambda: {r["node"]: r["state"] for r in shell.get("nodes")["rows"]}.get("a1") == "draining", 60)
        assert [(f["agent"], f["draining"], f["by"]) for f in shell.facts("agent_changed")] == [("a1", True, "eve")]
        shell.process.kill()
        shell.process.wait()


def test_preempted_trials_run_again(shell):
    shell.ready("a1")
    shell.hold(epoch=2)
    experiment = shell.job(epoch_s=0.05, trials=2)
    # There is one slot. The trial that validates has it, and the other trial waits and holds none.
    holder = wait_for(lambda: next((a["trial"] for a in shell.acks() if a["kind"] == "validated"), None), 60)
    assert shell.post("send", actor=f"trial/{holder}", message="preempt")["answer"] is not None
    wait_for(lambda: any(a["kind"] == "end" and a["trial"] == holder for a in shell.acks()), 60)
    shell.go_on()
    wait_for(lambda: any(f["run"] == 2 for f in shell.facts("run_started")), 60)  # A short second run may have ended by now.
    assert shell.wait_end(experiment) == "COMPLETED"


def test_traces_are_bounded_and_follow_a_trial_through_the_cluster(shell):
    shell.ready("a1", "a2")
    short = shell.stream("trace", actor="agent/a1", max=3, for_=30)
    assert short.end()["why"] == "max"
    assert len(short.rows) == 3 and all(row["actor"] == "agent/a1" and row["type"] for row in short.rows)
    timed = lambda: shell.stream("trace", actor="pool/default", for_=0.5).end()
    wait_for(lambda: timed() == {"seen": 0, "shown": 0, "dropped": 0, "why": "time"}, what=timed)  # once the pool knows both agents
    typed = shell.stream("trace", actor="agent_node/a2", msg="heartbeat_ack", max=2)
    assert typed.end()["shown"] == 2 and {row["type"] for row in typed.rows} == {"heartbeat_ack"}
    assert typed.rows[0]["from"] == "agent/a2" and typed.rows[0]["node"] == "a2"

    shell.hold(epoch=0)
    shell.job(epoch_s=0.1, trials=2)
    trial = shell.a_running_trial()
    followed = shell.stream("follow", correlation=trial, max=60, rate=1000, for_=30)
    shell.go_on()
    followed.end()
    assert {row["correlation"] for row in followed.rows} == {trial}
    actors = {row["actor"].split("/")[0] for row in followed.rows}
    assert {"journal", "trial"} <= actors or {"journal", "allocation"} <= actors, actors


def test_a_node_that_goes_away_in_mid_trace_ends_it_and_shows_as_missing(shell):
    shell.ready("a1", "a2")
    trace = shell.stream("trace", actor="agent_node/a2", max=1000, for_=120)
    wait_for(lambda: trace.rows, 30)
    shell.kill_agent("a2")
    assert "a2 went away" in trace.end(60)["why"]
    got = shell.get("ps", window=0)
    assert [m["node"] for m in got["missing"]] == ["a2"] and "away" in got["missing"][0]["why"]
    assert {r["node"]: r["state"] for r in shell.get("nodes")["rows"]}["a2"] == "away"
    events = [(r["actor"], r["what"]) for r in shell.get("events", kind="node")["rows"]]
    assert ("a2", "joined") in events and ("a2", "went away") in events
    shell.agent("a2")
    wait_for(lambda: "a2" in shell.heard(), 60)
    assert shell.get("ps", window=0)["missing"] == []


def test_a_trace_of_an_actor_that_ends_says_so(shell):
    shell.ready("a1")
    shell.hold(epoch=0)
    experiment = shell.job(trials=1)
    trial = shell.a_running_trial()
    trace = shell.stream("trace", actor=trial, max=10000, rate=1000, for_=120)
    shell.cli("experiment", "kill", str(experiment))
    assert trace.end(60)["why"] == f"{trial} has ended"


def test_events_are_followed_and_a_slow_reader_loses_rows_and_is_told(shell):
    shell.ready("a1")
    live = shell.stream("events", follow="true")
    audit = shell.stream("events", follow="true", kind="audit")
    few = shell.stream("events", follow="true", max=5)
    shell.post("send", actor="journal", message="flush")
    experiment = shell.job(epoch_s=0.05, trials=2)
    assert shell.wait_end(experiment) == "COMPLETED"
    wait_for(lambda: any("experiment_changed" in r["what"] and "COMPLETED" in r["what"] for r in live.rows), 30)
    assert {"state", "audit"} <= {r["kind"] for r in live.rows}
    wait_for(lambda: audit.rows, 10)
    assert [(r["what"], r["user"]) for r in audit.rows] == [("send flush", "admin")]
    assert few.end()["why"] == "max" and len(few.rows) == 5
    live.close()
    audit.close()

    # A client that does not read: the socket fills, then the queue, and the cluster continues.
    request = (f"GET /troupe/v1/shell/trace?actor=agent/a1&max=1000000&rate=10000&for=600 HTTP/1.1\r\nHost: localhost\r\n"
               f"Authorization: Bearer {shell.tokens['admin']}\r\n\r\n")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", shell.http))
        slow.sendall(request.encode())
        for _ in range(20):
            assert shell.get("ps", window=0)["rows"]
        assert shell.alive_agents() == 1


def unread_bytes(server, client):
    """The number of bytes that the server has sent, or has to send, to a client's port and that the client's side has not taken."""
    local, remote = f"0100007F:{server:04X}", f"0100007F:{client:04X}"
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[1] == local and words[2] == remote:
            return int(words[4].split(":")[0], 16)
    raise AssertionError(f"no connection of {client} to {server}")


def test_a_reader_that_falls_behind_is_told_how_many_rows_it_lost(shell):
    shell.ready("a1")
    shell.open("log").read()  # This makes the token.
    request = (f"GET /troupe/v1/shell/trace?actor=desk&max=1000000&rate=10000&for=600 HTTP/1.1\r\nHost: localhost\r\n"
               f"Authorization: Bearer {shell.tokens['admin']}\r\n\r\n")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", shell.http))
        slow.sendall(request.encode())
        slow.settimeout(300)
        assert slow.recv(12) == b"HTTP/1.1 200"

        def ask():  # Each call makes at least two messages of the desk.
            for _ in range(600):
                shell.get("log")

        def ask_much():
            """Causes more rows than the 1,024 that the server keeps for a reader."""
            threads = [threading.Thread(target=ask) for _ in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()

        unread = -1
        while unread < (now := unread_bytes(shell.http, slow.getsockname()[1])):  # until the socket is full; then rows queue up and get lost
            unread = now
            ask_much()
        assert unread > 0, "no row has come"
        ask_much()
        text, end = b"", time.monotonic() + 300  # Signs of life arrive without end.
        while (at := text.find(b"event: lost\n")) < 0 or text.find(b"\n\n", at) < 0:
            got = slow.recv(1 << 20)
            assert got and time.monotonic() < end, text[-500:]
            text += got
        lost = text[at:].split(b"data: ", 1)[1].split(b"\n", 1)[0]
        assert json.loads(lost)["count"] > 0
    assert shell.alive_agents() == 1


def test_a_dead_inspector_and_a_dead_desk_are_made_again(shell):
    shell.ready("a1")
    for name in ("inspector@a1", "inspector@master"):
        assert "is back" in shell.post("restart", actor=name)["done"]
        assert shell.get("ps", window=0)["missing"] == []
        assert shell.ps()[name]["restarts"] == 1
    trace = shell.stream("trace", actor="agent/a1", max=1000, for_=120)
    wait_for(lambda: trace.rows, 30)
    shell.post("drain", node="a1", on=True)
    shell.post("kill", actor="desk")
    assert "desk ended" in trace.end()["why"]

    def nodes():
        try:
            return {row["node"]: row["state"] for row in shell.get("nodes")["rows"]}
        except urllib.error.HTTPError:
            return {}

    wait_for(lambda: nodes() == {"master": "up", "a1": "draining"}, 30, what=nodes)
    assert shell.ps()["desk"]["restarts"] == 1
    told = {(row["actor"], row["what"]) for row in shell.get("events", kind="supervision")["rows"]}
    assert {("desk", "died: killed by admin"), ("desk", "is back, restart 1"), ("inspector", "died: restarted by admin")} <= told
    assert [row["what"] for row in shell.audit()][-2:] == ["drain", "kill desk"]
    shell.post("drain", node="a1", on=False)
    experiment = shell.job(epoch_s=0.05, trials=1)
    assert shell.wait_end(experiment) == "COMPLETED"


def test_faults_disturb_what_they_say_and_the_work_still_ends(shell):
    shell.ready("a1")
    # Heartbeats and the first order to start are dropped. Both are sent again.
    shell.post("fault", actor="agent/a1", fault="drop", n=6)
    experiment = shell.job(epoch_s=0.2, trials=3)
    dropped = lambda: [r["what"] for r in shell.get("events", kind="fault")["rows"] if r["what"].startswith("dropped")]
    wait_for(lambda: len(dropped()) == 6, 60)
    assert any("start_ordered" in what for what in dropped()), dropped()
    shell.a_running_trial()
    shell.post("fault", actor="harness", fault="delay", n=20, delay_ms=200)
    assert "pause" in shell.post("fault", actor="agent/a1", fault="pause", for_s=8)["done"]
    # The link is paused: the master handles no heartbeat of the agent, and the node does not answer.
    first = shell.ps(node="master")["agent/a1"]["messages"]
    assert any(m["node"] == "a1" for m in shell.get("ps", window=0)["missing"])
    wait_for(lambda: shell.ps(node="master")["agent/a1"]["messages"] > first + 2, 60)
    assert shell.wait_end(experiment) == "COMPLETED"
    shell.check_books(experiment, 3)
    assert shell.refusal("fault", {"actor": "agent/a1", "fault": "pause", "for_s": 9999})[0] == 400
    assert shell.refusal("fault", {"actor": "pool/default", "fault": "pause"})[0] == 400


def test_without_the_flag_there_are_no_faults(shell):
    shell.faults = False
    shell.ready("a1")
    code, text = shell.refusal("fault", {"actor": "pool/default", "fault": "drop"})
    assert code == 403 and "--allow-faults" in text


def test_requests_that_wait_are_seen(shell):
    shell.ready("a1")
    assert shell.post("send", actor="pool/default", message="describe")["answer"]["total"] == 1
    assert shell.post("send", actor="trial/1", message="ping") if "trial/1" in shell.ps() else True
    assert shell.post("send", actor="agent_node/a1", message="ping")["answer"]["wait_us"] > 0
    assert shell.post("send", actor="cluster", message="status")["answer"]["agents"] == 1
    names = {row["name"]: row for row in shell.get("messages")["rows"]}
    assert "preempt" in names and names["drain"]["fields"][0]["name"] == "on" and names["ping"]["kinds"] == ["*"]
