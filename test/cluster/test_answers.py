"""Checks the answers of a real cluster against the schemas of docs/openapi.json: a search with a trial that failed and one that took the
weights of another, several metrics, runs that wait, a pause, a kill of the node, and moments of the past."""

import copy
import json
import pathlib
import re
import threading
import time
import urllib.request

import jsonschema
import pytest

from cluster_under_test import Cluster, go_on, wait_for

TOP = pathlib.Path(__file__).parents[2]
DOCUMENT = json.loads((TOP / "docs" / "openapi.json").read_text())
SCHEMAS = DOCUMENT["components"]["schemas"]

SCRIPT = """
import os, sys, time, troupe
p = troupe.params(x=0.5)
print("hello from", p.x, flush=True)
start = 0
if path := troupe.resume():
    start = int((path / "epoch").read_text())
if os.environ.get("FAILS") and p.x > 0.5:
    sys.exit("this one fails")
for epoch in range(start + 1, 17):
    time.sleep(float(os.environ.get("EPOCH_S", "0.02")))
    troupe.log({"loss": 1.0 / epoch, "odd": float("nan") if epoch == 3 else float("inf") if epoch == 5 else epoch}, step=epoch)
    troupe.validate({"loss": float("nan") if p.x > 0.95 else (p.x - 0.3) ** 2 + 1.0 / epoch, "size": p.x, "epoch": epoch,
                     "confusion": [[epoch, 1], [2, 3 * epoch]], "word": "text"}, step=epoch)
    if epoch % 2 == 0:
        with troupe.checkpoint(epoch) as path:
            (path / "epoch").write_text(str(epoch))
    if troupe.should_stop():
        break
"""

# This trial causes facts only when it begins and when it ends.
CALM = """
import time, troupe
p = troupe.params(x=0.5)
time.sleep(2)
troupe.validate({"loss": p.x}, step=1)
"""

CONFIG = """
name: {name}
entrypoint: python3 job.py
labels: [a, b]
hyperparameters: {{x: {{type: double, minval: 0.01, maxval: 1, count: 6}}, deep: {{opt: {{type: categorical, vals: [adam, sgd]}}}}}}
searcher: {{{searcher}}}
reproducibility: {{experiment_seed: 7}}
resources: {{slots_per_trial: {slots}}}
max_restarts: {restarts}
environment: {{environment_variables: ["EPOCH_S={epoch_s}"{more}]}}
"""
ASHA = "name: adaptive_asha, metric: loss, time_metric: epoch, max_time: 16, max_trials: 10, max_concurrent_trials: 4, divisor: 4, mode: aggressive"
PROMOTION = "name: asha_promotion, metric: loss, num_rungs: 3, divisor: 2, max_trials: 12, time_metric: epoch, max_time: 16, max_concurrent_trials: 3"
PBT = "name: pbt, metric: loss, population_size: 4, interval: 4, truncate_fraction: 0.5, time_metric: epoch, max_time: 16"
NSGA = "name: nsga2, metrics: [loss, size], population_size: 4, max_trials: 6, time_metric: epoch, max_time: 16, max_concurrent_trials: 3"
SINGLE = "name: single, metric: loss"

# Fields that this cluster has no occasion to send. Each has a test elsewhere, or needs something that this host lacks.
UNSEEN = {
    "SlotUsage.fault", "SlotUsage.memory_bytes", "SlotUsage.memory_used_bytes", "SlotUsage.temperature_celsius",
    "SlotUsage.utilization_percent", "v1Slot.usage",            # devices: test_slots.py
    "v1Experiment.externalExperimentId", "v1Trial.logPolicyMatched", "v1Task.logPolicyMatched", "v1Trial.metadata", "ShellState.changes",
    "LiveLost.topic", "LiveLost.count",                         # a reader that is too slow: stream_test.cpp
    "ShellMissing.node", "ShellMissing.why",                    # a node that is away: test_shell_live.py
    "ShellEvent.node",                                          # of an actor that died: test_supervision.py
    "SlotsOn.agent", "SlotsOn.slots",                           # a reservation: test_schedulers.py
    "v1Trial.warmStartCheckpointUuid",
    "v1Container.permissionDenied",                             # a run of others, with roles: roles_test.cpp
}


def json_schema(x):
    """Turns a schema of OpenAPI 3.0 into a JSON schema that refuses fields it does not name."""
    if isinstance(x, list):
        return [json_schema(one) for one in x]
    if not isinstance(x, dict):
        return x
    out = {key: {name: json_schema(one) for name, one in part.items()} if key == "properties" else json_schema(part)
           for key, part in x.items() if key != "nullable"}
    if "properties" in out and "additionalProperties" not in out:
        out["additionalProperties"] = False
    return {"anyOf": [out, {"type": "null"}]} if x.get("nullable") else out


FORMATS = jsonschema.FormatChecker(formats=())
FORMATS.checks("date-time", raises=())(lambda x: not isinstance(x, str) or re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", x) is not None)
STRICT = {"components": {"schemas": json_schema(SCHEMAS)}}


class Seen:
    """Collects which fields of which schemas were sent, and which were null."""

    def __init__(self):
        self.fields = set()
        self.routes = set()
        self.faults = {}

    def check(self, name, answer):
        check = jsonschema.Draft202012Validator({"$ref": f"#/components/schemas/{name}", **STRICT}, format_checker=FORMATS)
        for fault in check.iter_errors(answer):
            place = name + re.sub(r"\[\d+\]", "[]", fault.json_path[1:])
            self.faults.setdefault(place, f"{place}: {fault.message[:300]}" + "".join(f"\n    or {one.message[:300]}" for one in fault.context or ()))
        self.note(SCHEMAS[name], answer, name)

    def note(self, schema, x, name):
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            schema = SCHEMAS[name]
        if "allOf" in schema:
            return None if x is None else self.note(schema["allOf"][0], x, name)
        if isinstance(x, list):
            for one in x:
                self.note(schema.get("items", {}), one, name)
        elif isinstance(x, dict):
            for key, one in x.items():
                if key in schema.get("properties", {}):
                    if name in SCHEMAS:
                        self.fields.add(f"{name}.{key}")
                    self.note(schema["properties"][key], one, name)
                elif isinstance(schema.get("additionalProperties"), dict):
                    self.note(schema["additionalProperties"], one, name)


def answer_of(path, method="get"):
    """The name of the schema of a route's answer, found by an address."""
    plain = path.split("?")[0]
    for pattern, methods in DOCUMENT["paths"].items():
        if method in methods and re.fullmatch(re.sub(r"\{\w+\*?\}", "[^/]+", pattern), plain):
            schema = next(iter(methods[method]["responses"]["200"]["content"].values()))["schema"]
            return pattern, schema.get("items", schema)["$ref"].rsplit("/", 1)[1], "items" in schema
    raise AssertionError(f"no route for {path}")


def says_fields(name):
    return "properties" in SCHEMAS[name] or "oneOf" in SCHEMAS[name]


def page_reads():
    """Every address that the web page reads as JSON, with 0 in place of each value that the page puts in."""
    found = set()
    for file in (TOP / "web" / "src").rglob("*.ts*"):
        text = file.read_text()
        for quote, path in re.findall(r"\bget(?:<(?:[^<>]|<[^<>]*>)*>)?\(\s*([`\"])(/(?:troupe|api)/v1/.*?)\1", text):
            found.add(re.sub(r"\$\{[^}]*\}", "0", path))
    return found


def test_whatever_the_page_reads_has_a_schema():
    paths = page_reads()
    assert len(paths) > 25, paths
    assert [path for path in paths if not says_fields(answer_of(path)[1])] == []


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("answers")) as cluster:
        cluster.up(slots=4)
        yield cluster


def submit(lab, name, searcher, slots=1, restarts=0, epoch_s=0.02, more="", script=SCRIPT):
    job = lab.root / ("job" if script is SCRIPT else "calm")
    job.mkdir(exist_ok=True)
    (job / "job.py").write_text(script)
    (job / "data").mkdir(exist_ok=True)
    (job / "data" / "one.txt").write_text("1")
    file = lab.root / f"{name}.yaml"
    file.write_text(CONFIG.format(name=name, searcher=searcher, slots=slots, restarts=restarts, epoch_s=epoch_s, more=more))
    return lab.json("experiment", "create", str(file), str(job))["id"]


def lines_of(lab, path):
    with urllib.request.urlopen(lab.request(path), timeout=120) as answer:
        return [json.loads(line) for line in answer.read().decode().splitlines() if line]


class Listening(threading.Thread):
    """Collects the server-sent events of a path on a thread, until `stop`."""

    def __init__(self, lab, path):
        super().__init__(daemon=True)
        self.answer = urllib.request.urlopen(lab.request(path), timeout=120)
        self.events, self.done = [], False
        self.start()

    def run(self):
        name = "message"
        try:
            for line in self.answer:
                key, _, rest = line.decode().rstrip("\n").partition(": ")
                if key == "event":
                    name = rest
                elif key == "data":
                    self.events.append((name, json.loads(rest)))
                if self.done:
                    return
        except (OSError, ValueError):
            pass

    def stop(self):
        self.done = True
        return list(self.events)


LIVE = {"hello": "LiveHello", "experiment": "v1Experiment", "gone": "LiveGone", "trial": "TrialProgress", "points": "LivePoints", "line": "LogLine", "cluster": "LiveCluster"}


def test_answers_are_what_the_document_says(lab):
    seen = Seen()

    def ask(path, body=None, status=200):
        pattern, name, in_list = answer_of(path, "get" if body is None else "post")
        got, answer = lab.call(path, body)
        assert got == status, (path, answer)
        if status == 200:
            seen.routes.add(pattern)
            assert says_fields(name), pattern
            for one in answer if in_list else [answer]:
                seen.check(name, one)
        return answer

    # ---- a cluster in which much happens
    hears = Listening(lab, "/troupe/v1/live?topics=experiments,experiment/1,series/1/validation/loss,series/1/training/odd,logs/1,cluster")
    asha = submit(lab, "asha", ASHA)
    assert asha == 1 and lab.wait_end(asha) == "COMPLETED"
    failed = submit(lab, "failed", "name: random, metric: loss, max_trials: 4, max_concurrent_trials: 4", restarts=1, more=', "FAILS=1"')
    pbt = submit(lab, "pbt", PBT)
    nsga = submit(lab, "nsga", NSGA)
    promotion = submit(lab, "promotion", PROMOTION)
    for one in (failed, pbt, nsga, promotion):
        wait_for(lambda: lab.state(one) in ("COMPLETED", "ERROR"), 120)
    runs = submit(lab, "runs", SINGLE, slots=4, epoch_s=60)
    wait_for(lambda: lab.call("/troupe/v1/status")[1]["slots"]["used"] == 4, 60)
    waits = submit(lab, "waits", SINGLE, slots=2)
    wait_for(lambda: lab.call("/troupe/v1/queue")[1]["waiting"], 60)
    paused = submit(lab, "paused", SINGLE)
    lab.cli("experiment", "pause", str(paused))
    forked = lab.call("/api/v1/experiments", {"config": (lab.root / "waits.yaml").read_text(), "parentId": asha, "activate": False})[1]["experiment"]["id"]
    lab.cli("user", "create", "ada", check=False)
    account = {"agentUid": 1000, "agentGid": 1000, "agentUser": "ada", "agentGroup": "ada"}
    lab.call("/api/v1/users", {"user": {"username": "bob", "active": True, "agentUserGroup": account}, "password": "12345678aA"})

    # ---- lists and single things
    everything = ask("/api/v1/experiments?limit=-1")["experiments"]
    assert len(everything) == 9
    ask("/api/v1/users"), ask("/api/v1/agents"), ask("/troupe/v1/status"), ask("/troupe/v1/session")
    ask("/troupe/v1/usage"), ask("/troupe/v1/pools")
    for experiment in (one["id"] for one in everything):
        at = f"/troupe/v1/experiments/{experiment}"
        ask(f"/api/v1/experiments/{experiment}"), ask(f"/api/v1/experiments/{experiment}/checkpoints")
        ask(f"{at}/outcome?history=20"), ask(f"{at}/explain"), ask(f"{at}/metrics"), ask(f"{at}/search"), ask(f"{at}/pareto"), ask(f"{at}/defaults")
        history = ask(f"{at}/history")["history"]
        rows = ask(f"{at}/trials?metrics=validation.loss,training.odd")["trials"]
        for row in rows:
            ask(f"/troupe/v1/trials/{row['id']}/explain"), ask(f"/troupe/v1/trials/{row['id']}/log")
            ask(f"/troupe/v1/trials/{row['id']}/metrics"), ask(f"/api/v1/trials/{row['id']}/checkpoints")
            trial = ask(f"/api/v1/trials/{row['id']}")["trial"]
            ask(f"/api/v1/tasks/{trial['taskId']}")
        for x in ("step", "time", "relative", "epoch", "metric:size"):
            ask(f"/troupe/v1/series?experiment={experiment}&group=validation&metric=loss&x={x}")
        for moment in {history[len(history) * i // 4]["sequence"] for i in range(4)}:
            for part in ("trials?metrics=validation.loss&", "search?", "outcome?history=20&"):
                ask(f"{at}/{part}at={moment}")
            ask(f"/troupe/v1/series?experiment={experiment}&group=training&metric=odd&at={moment}")
    ask(f"/api/v1/experiments/{asha}/file_tree")
    ask(f"/api/v1/experiments/{asha}/file", {"path": "job.py"})
    ask(f"/troupe/v1/experiments/{asha}/importance")
    allocation = ask("/troupe/v1/queue")["waiting"][0]["allocation"]
    assert ask(f"/troupe/v1/allocations/{allocation}/explain")["state"] == "QUEUED"
    command = lab.call("/troupe/v1/tasks", {"kind": "command", "config": {"entrypoint": ["true"], "resources": {"slots": 4}}})[1]["id"]
    assert ask(f"/troupe/v1/tasks/{command}/explain")["kind"] == "command"
    retain = lab.request(f"/api/v1/experiments/{asha}/retain_logs", b'{"numDays": 5}')
    retain.method = "PUT"
    urllib.request.urlopen(retain, timeout=120).close()
    of_asha = lab.call(f"/api/v1/experiments/{asha}/trials")[1]["trials"]
    assert {row["logRetentionDays"] for row in of_asha} == {5} == {ask(f"/api/v1/trials/{of_asha[0]['id']}")["trial"]["logRetentionDays"]}
    for name in ("logs/search?q=hello", "logs/search?q=h.llo&regex=true&limit=2"):
        for one in lines_of(lab, "/troupe/v1/" + name):
            seen.check("LogHit", one)
        seen.routes.add("/troupe/v1/logs/search")

    # ---- the past of the queue
    newest = ask(f"/troupe/v1/experiments/{forked}/history")["history"][-1]["sequence"]
    ask(f"/troupe/v1/queue?at={newest}")

    # ---- requests without a login, and actors
    with urllib.request.urlopen(lab.url() + "/troupe/v1/session", timeout=120) as answer:
        seen.check("Session", json.load(answer))
    actors = ask("/troupe/v1/shell/ps?window=1")["rows"]
    ask("/troupe/v1/shell/tree"), ask("/troupe/v1/shell/events?max=1000"), ask("/troupe/v1/shell/events?kind=audit")
    for actor in {row["kind"]: row["actor"] for row in actors}.values():
        if actor == "inspector" or "inspector" in actor:
            continue  # It does not inspect itself.
        for look in ("info", "state", "msgs", "links", "messages"):
            ask(f"/troupe/v1/shell/{look}?actor={actor}")

    # ---- events that are sent without a request
    facts = Listening(lab, "/troupe/v1/events?after=0")
    wait_for(lambda: len(facts.events) > 100, 30)
    for _, one in facts.stop():
        seen.check("Event", one)
    lab.cli("experiment", "delete", str(promotion), "--yes")
    wait_for(lambda: any(name == "gone" for name, _ in hears.events), 60)
    live = hears.stop()
    assert {name for name, _ in live} == set(LIVE), {name for name, _ in live}
    for name, one in live:
        seen.check(LIVE[name], one)

    assert seen.faults == {}, "\n".join(seen.faults.values())

    # ---- all fields that the document promises were sent
    wanted = set()
    for path in page_reads():
        pattern, name, _ = answer_of(path)
        wanted.add(pattern)
    assert wanted - seen.routes == set()
    named = {f"{name}.{key}" for name in reachable() for key in SCHEMAS[name].get("properties", {})}
    assert named - seen.fields - UNSEEN == set(), "nobody said these, so nobody knows whether they are as the document says"


def reachable():
    """The names of the schemas of answers that have fields."""
    todo = [name for pattern, methods in DOCUMENT["paths"].items() for one in methods.values()
            for name in re.findall(r"#/components/schemas/(\w+)", json.dumps(one["responses"]))]
    found = set()
    while todo:
        name = todo.pop()
        if name not in found and name != "Error" and says_fields(name):
            found.add(name)
            todo += re.findall(r"#/components/schemas/(\w+)", json.dumps(SCHEMAS[name]))
    return found


def sequence(lab):
    """The sequence number of the newest fact."""
    with urllib.request.urlopen(lab.request("/troupe/v1/experiments/1/outcome"), timeout=120) as answer:
        return int(answer.headers["Troupe-Sequence"])


def test_the_queue_of_a_moment_is_what_it_was(lab):
    """The queue at a past fact is the queue that was read when that fact was the newest one, apart from positions and reasons."""
    def known(rows):
        return sorted([{key: one for key, one in row.items() if key not in ("position", "reason", "since")} for row in rows], key=lambda row: row["allocation"])

    taken = {}

    def take():
        before = sequence(lab)
        rows = lab.call("/troupe/v1/queue")[1]["waiting"]
        time.sleep(0.2)  # time for messages that are between a pool and the journal
        if lab.call("/troupe/v1/queue")[1]["waiting"] == rows and sequence(lab) == before:
            taken[before] = rows

    ids = [submit(lab, f"short{i}", SINGLE.replace("single", "random") + ", max_trials: 3, max_concurrent_trials: 2", slots=1 + i % 3, script=CALM) for i in range(4)]
    notebook = lab.call("/troupe/v1/tasks", {"kind": "command", "config": {"entrypoint": ["true"], "resources": {"slots": 4, "priority": 50}}})
    assert notebook[0] == 200, notebook
    lab.cli("experiment", "set", str(ids[1]), "--priority", "7")
    lab.cli("experiment", "set", str(ids[2]), "--weight", "2.5")
    take()
    lab.cli("experiment", "pause", str(ids[3]))
    wait_for(lambda: (take(), any(not [row for row in rows if row["experiment"] == ids[3]] for rows in taken.values()))[1], 30)
    for one in lab.json("experiment", "list"):
        if one["state"] == "STATE_ACTIVE" and one["id"] not in ids:
            lab.cli("experiment", "kill", str(one["id"]))
    wait_for(lambda: (take(), all(lab.state(one) == "COMPLETED" for one in ids[:3]))[1], 120)
    wait_for(lambda: (take(), any(not rows for rows in taken.values()))[1], 60)
    assert len(taken) > 5 and max(len(rows) for rows in taken.values()) >= 4, taken
    for at, rows in taken.items():
        status, then = lab.call(f"/troupe/v1/queue?at={at}")
        assert status == 200 and then["sequence"] == at, then
        assert known(then["waiting"]) == known(rows), at
        assert all(row["position"] is None and row["reason"] is None for row in then["waiting"])
    lab.kill_node()
    lab.up(slots=4)
    most = max(taken, key=lambda at: len(taken[at]))
    assert known(lab.call(f"/troupe/v1/queue?at={most}")[1]["waiting"]) == known(taken[most]), "after a start of the master"
    printed = lab.json("queue", "list", "--at", str(most))
    assert known(printed) == known(taken[most])
    for later in ("queue", f"experiments/{ids[0]}/trials", f"experiments/{ids[0]}/search", f"experiments/{ids[0]}/outcome"):
        assert lab.call(f"/troupe/v1/{later}?at={sequence(lab) + 1000}")[0] == 400, later
    assert lab.call("/troupe/v1/queue?at=0")[0] == 400 and lab.call("/troupe/v1/queue?at=x")[0] == 400


# This trial validates once at step 1 and trains on, as trials do that validate at the end. It waits at its begin and after steps 10 and
# 20 until its test has looked.
TRAINS = """
import os, time, troupe
p = troupe.params(x=0.5)
troupe.validate({"loss": p.x}, step=1)
for step in range(41):
    if step > 0:
        troupe.log({"loss": 1.0 / step}, step=step)
    while step in (0, 10, 20) and not os.path.exists(f"{os.environ['SEEN']}-{step}"):
        time.sleep(0.05)
while not troupe.should_stop():
    time.sleep(0.1)
"""


def test_steps_are_those_of_the_newest_report(lab):
    gate = lab.root / "seen"
    one = submit(lab, "trains", SINGLE, script=TRAINS, more=f', "SEEN={gate}"')
    hears = Listening(lab, f"/troupe/v1/live?topics=experiment/{one}")

    def steps():
        rows = lab.call(f"/troupe/v1/experiments/{one}/trials")[1]["trials"]
        return rows and rows[0]["totalBatches"]

    told = lambda: [row["totalBatches"] for name, row in hears.events if name == "trial"]
    go_on(f"{gate}-0")
    for step in (10, 20):  # No fact tells about these steps.
        wait_for(lambda: step in told(), 60, what=told)
        go_on(f"{gate}-{step}")
    wait_for(lambda: steps() == 40, 60)
    trial = lab.call(f"/troupe/v1/experiments/{one}/trials?metrics=training.loss")[1]["trials"][0]
    assert trial["totalBatches"] == 40 and trial["latest"]["totalBatches"] == 1
    for path in (f"/api/v1/trials/{trial['id']}", f"/api/v1/experiments/{one}/trials"):
        answer = lab.call(path)[1]
        assert (answer.get("trial") or answer["trials"][0])["totalBatchesProcessed"] == 40, path
    wait_for(lambda: 40 in told(), 10, what=told)
    hears.stop()
    lab.cli("experiment", "kill", str(one))
    lab.wait_end(one)
    assert steps() == 40


def test_lists_are_filtered_and_sorted_as_on_the_page(lab):
    rows = lab.call("/troupe/v1/experiments/1/trials")[1]["trials"]
    xs = {row["id"]: row["hparams"]["x"] for row in rows}

    def listed(*words):
        return [row["id"] for row in lab.json(*words)]

    below = [i for i, x in sorted(xs.items(), key=lambda one: -one[1]) if x < 0.6]
    assert 0 < len(below) < len(xs)
    assert listed("trial", "list", "1", "--where", "x<0.6", "--sort", "-hp.x") == below
    last = {row["id"]: row["metrics"]["validation.size"]["last"] for row in lab.call("/troupe/v1/experiments/1/trials?metrics=validation.size")[1]["trials"]}
    assert listed("trial", "list", "1", "--where", "m.validation.size<0.6", "--sort", "m.validation.size") == sorted((i for i in last if last[i] < 0.6), key=last.get)
    assert listed("trial", "list", "1", "--where", "hp.deep.opt=ADAM") == [row["id"] for row in rows if row["hparams"]["deep"]["opt"] == "adam"]
    done = listed("experiment", "list", "--where", "state=completed asha", "--sort", "-id")
    assert done == [1]
    history = lab.call("/troupe/v1/experiments/1/history")[1]["history"]
    past = lab.json("trial", "list", "1", "--at", str(history[len(history) // 2]["sequence"]), "--sort", "id")
    assert past == lab.call(f"/troupe/v1/experiments/1/trials?at={history[len(history) // 2]['sequence']}")[1]["trials"]
    facts = lab.json("experiment", "events", "1", "--where", "type=search_stepped", "--sort", "-sequence")
    assert facts and {row["type"] for row in facts} == {"search_stepped"}
    assert [row["sequence"] for row in facts] == sorted((row["sequence"] for row in facts), reverse=True)
    newest = lab.json("events", "--experiment", "1", "--where", "type=search_stepped", "--limit", "2")
    assert [row["sequence"] for row in newest] == [row["sequence"] for row in facts][1::-1]
    reports = lab.json("trial", "metrics", str(rows[0]["id"]), "--where", "group=validation epoch>2", "--sort", "-steps")
    assert reports and all(row["metrics"]["epoch"] > 2 for row in reports)
    saved = lab.json("checkpoint", "list", "1", "--sort", "-step")
    assert [row["metadata"]["steps_completed"] for row in saved] == sorted((row["metadata"]["steps_completed"] for row in saved), reverse=True)
    assert len(lab.json("agent", "list", "--where", "slots=4 state=alive")) == 1 and lab.json("agent", "list", "--where", "used>4") == []
    for words, sentence in ((("trial", "list", "1", "--where", "lr>1"), "there is no column 'lr'"), (("agent", "list", "--sort", "hots"), "did you mean 'host'?"),
                            (("experiment", "list", "--where", "best<"), "character 6: what should best be compared with?"),
                            (("events", "--follow", "--sort", "at"), "--sort orders what there is")):
        failed = lab.cli(*words, check=False)
        assert failed.returncode == 2 and sentence in failed.stderr, failed


def test_facts_are_listed(lab):
    rows = lab.json("experiment", "events", "1")
    history = lab.call("/troupe/v1/experiments/1/history")[1]["history"]
    assert [(row["sequence"], row["type"], row["at"]) for row in rows] == [(one["sequence"], one["type"], one["at"]) for one in history]
    assert rows[0]["type"] == "experiment_created" and rows[0]["fields"]["name"] == "asha"
    trial = history[-1].get("trial") or next(one["trial"] for one in history if "trial" in one)
    of_trial = lab.json("trial", "events", str(trial))
    assert of_trial and of_trial == [row for row in rows if row["entity"] == f"trial/{trial}"]
    assert "trial_ended" in lab.cli("trial", "events", str(trial)).stdout
    of_user = lab.json("events", "--where", "entity=user/1")
    assert {row["type"] for row in of_user} >= {"user_changed"}, of_user


def test_a_script_says_how_far_it_is(lab):
    job = lab.root / "far"
    job.mkdir()
    (job / "job.py").write_text("import time, troupe\ntroupe.progress(0.1)\ntime.sleep(1.5)\ntroupe.progress(30, 100)\n"
                                "while not troupe.should_stop():\n    time.sleep(0.1)\n")
    (lab.root / "far.yaml").write_text("name: far\nentrypoint: python3 job.py\nhyperparameters: {}\nsearcher: {name: single, metric: loss}\n")
    far = lab.json("experiment", "create", str(lab.root / "far.yaml"), str(job))["id"]
    wait_for(lambda: lab.call(f"/api/v1/experiments/{far}")[1]["experiment"]["progress"] == 0.3, 60)
    lab.cli("experiment", "kill", str(far))


def test_defaults_are_what_an_experiment_without_a_word_has(lab):
    (lab.root / "job").mkdir(exist_ok=True)
    (lab.root / "bare.yaml").write_text("name: bare\nentrypoint: python3 job.py\nhyperparameters: {x: 1}\nsearcher: {name: single, metric: loss}\n")
    bare = lab.json("experiment", "create", str(lab.root / "bare.yaml"), str(lab.root / "job"), "--paused")["id"]
    (lab.root / "full.yaml").write_text("name: full\nentrypoint: python3 job.py\nhyperparameters: {x: 1}\nsearcher: {name: single, metric: loss}\n"
                                        "resources: {slots_per_trial: 1, priority: 9}\nmax_restarts: 5\nscheduling_unit: 7\ncheckpoint_storage: {type: directory, container_path: /elsewhere}\n")
    full = lab.json("experiment", "create", str(lab.root / "full.yaml"), str(lab.root / "job"), "--paused")["id"]

    def differing(experiment):
        config = lab.call(f"/api/v1/experiments/{experiment}")[1]["experiment"]["config"]
        status, answer = lab.call(f"/troupe/v1/experiments/{experiment}/defaults")
        assert status == 200, answer
        one = Seen()
        one.check("DefaultConfig", answer)
        assert one.faults == {}
        mine, usual = flat(config), flat(answer["config"])
        return {key for key in mine.keys() | usual.keys() if mine.get(key) != usual.get(key)}

    given = {"name", "entrypoint", "hyperparameters.x", "searcher.name", "searcher.metric", "reproducibility.experiment_seed"}
    assert differing(bare) - given - {"hyperparameters.x.type", "hyperparameters.x.val"} == set()
    # A key that is written with its default value counts as different only where the text of the value differs.
    assert differing(full) - given == {"resources.priority", "scheduling_unit", "checkpoint_storage.container_path"} | (differing(bare) - given)


def flat(x, prefix=""):
    out = {}
    for key, one in x.items():
        out.update(flat(one, f"{prefix}{key}.") if isinstance(one, dict) else {prefix + key: one})
    return out


def test_a_wrong_answer_is_found():
    good = {"waiting": [{"position": 1, "allocation": "1.1", "trial": 1, "experiment": 1, "pool": "default", "slots": 1, "priority": 42, "weight": 1, "user": "ada",
                         "since": "2026-11-24T15:00:00Z", "reason": "busy"}]}

    def faults(answer):
        one = Seen()
        one.check("Queue", answer)
        return one.faults

    assert faults(good) == {}
    for change in ({"reason": 1}, {"more": 1}, {"since": "today"}, {"slots": None}):
        bad = copy.deepcopy(good)
        bad["waiting"][0].update(change)
        assert faults(bad), change
    del good["waiting"][0]["user"]
    assert faults(good)
