"""What the stock client's operations cost, each beside its peer or its floor in the same run:

    PATH=.venv/bin:$PATH python perf/stock/stock.py [--binary build/release/troupe] [--only search,list] [--scale 0.02] [--rounds 5]

All is asked over HTTP, as users ask it. Measurements take turns with what stands beside them; figures are medians. CPU is that of the master's process.
`search` is measured beside build/release/perf/stock/perf_stock_floor (target perf_stock_floor); where it is not built, beside a route that reads the same
rows. `--scale` makes everything smaller, to try the script: its figures mean nothing then. `--keep` leaves the folder, with the masters' logs.

To look further into a row: `perf record -g -p PID` for the pid that is printed before the row.
"""

import argparse
import calendar
import ctypes
import json
import multiprocessing
import os
import pathlib
import re
import select
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from stock_site import Master, Wire, each, fill  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
SORT_KEYS = ["ID", "DESCRIPTION", "START_TIME", "END_TIME", "STATE", "NUM_TRIALS", "PROGRESS", "USER", "NAME", "FORKED_FROM", "RESOURCE_POOL", "PROJECT_ID",
             "CHECKPOINT_SIZE", "CHECKPOINT_COUNT", "SEARCHER_METRIC_VAL"]
LINES = ("import sys, time\nopen({mark!r}, 'w').write(repr(time.time()))\nout = sys.stdout\n"
         "for i in range(1, {lines} + 1):\n    out.write(f'{{i}} epoch {{i % 1000}} loss {{1 / i:.6f}} ' + 'word ' * (i % 7) + '\\n')\n")
EXPRESSIONS = [r".*CUDA out of memory.*", r".*uncorrectable ECC error encountered.*", r"NCCL (WARN|ERROR).*timed out", r"Segmentation fault",
               r"(?i)killed by signal \d+", r"ConnectionResetError: \[Errno 104\]", r"No space left on device", r"loss[ =:]+nan", r"Traceback \(most recent",
               r"OSError: \[Errno \d+\]", r"RuntimeError: .*device-side assert", r"cuDNN error: \w+", r"Bus error", r"DataLoader worker \(pid .*\) (is killed|exited)",
               r"^FATAL", r"gRPC .*UNAVAILABLE", r"ImportError: .*\.so", r"Permission denied", r"step \d{9,}", r"checkpoint .* is corrupt"]


class Bench:
    def __init__(self, given):
        self.given = given
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="stock-", dir=given.dir))
        self.rounds = given.rounds
        self.masters = []

    def size(self, whole, least=1):
        return max(least, round(whole * self.given.scale))

    def master(self, name, **more):
        made = Master(self.given.binary, self.root / name, **more)
        self.masters.append(made)
        return made

    def copy(self, of, name, **more):
        made = of.copy(self.root / name, **more)
        self.masters.append(made)
        return made

    def row(self, what, ours, beside, unit, cpu="", asked=None, rate=False, ratio=None):
        """Prints a row. `asked` is the most that the ratio of ours to its peer may be; with `rate` it is the least."""
        ratio = ours / beside if ratio is None and beside else ratio
        missed = asked is not None and ratio is not None and (ratio < asked if rate else ratio > asked)
        line = (f"{what:56} ours {ours:10.3f} {unit:6} beside {beside:10.3f} {unit:6} {ratio or 0:7.3f} {'of it' if rate else 'times'}"
                f"{f'   asked: {asked}' if asked is not None else ''}{'   MISSED' if missed else ''}{f'   CPU {cpu}' if cpu else ''}")
        print(line, flush=True)

    def bound(self, what, ours, unit, asked, cpu=""):
        print(f"{what:56} ours {ours:10.3f} {unit:6} asked: {asked}{'   MISSED' if ours > asked else ''}{f'   CPU {cpu}' if cpu else ''}", flush=True)

    def pid(self, what, master):
        print(f"  {what}: pid {master.process.pid}", flush=True)

    # ---- what several rows need

    def filled(self):
        """A stopped master with 10,000 experiments. Where the deletion is measured later, these have 50,000 checkpoints."""
        if not hasattr(self, "many"):
            self.many = self.master("many")
            with self.many.running():
                count = self.size(10_000, 100)
                took = fill(self.many, count, self.root / "checkpoints", 5 if "delete" in self.wanted else 0)
                print(f"  {count} experiments in {took:.0f} s, {self.many.cpu():.1f} s of CPU", flush=True)
        return self.many

    # ---- the rows

    def search(self):
        many = self.filled()
        floor = self.floor(many)
        body = {"projectId": 1, "limit": 100, "sort": "validation.loss.last=asc", "filter": json.dumps({
            "showArchived": False, "filterGroup": {"kind": "group", "conjunction": "and", "children": [
                {"kind": "field", "columnName": column, "operator": operator, "value": wanted, "location": "LOCATION_TYPE_" + where,
                 "type": "COLUMN_TYPE_UNSPECIFIED"}
                for column, operator, wanted, where in [
                    ("name", "contains", "run", "EXPERIMENT"), ("state", "=", "COMPLETED", "EXPERIMENT"), ("numTrials", ">=", 1, "EXPERIMENT"),
                    ("searcherType", "=", "single", "EXPERIMENT"), ("hp.lr", ">=", 0.25, "HYPERPARAMETERS")]]}})}
        with many.running():
            self.pid("search", many)
            w = many.wire()
            first = w.timed("POST", "/api/v1/experiments-search", body) * 1e3
            found = w.call("POST", "/api/v1/experiments-search", body)
            losses = [one["bestTrial"]["bestValidation"]["metrics"]["avgMetrics"]["loss"] for one in found["experiments"]]
            assert losses == sorted(losses) and len(losses) == min(100, found["pagination"]["total"]) > 0, found["pagination"]
            ours, cpu, beside, beside_cpu, with_trials = [], [], [], [], []
            for _ in range(2 * self.rounds):
                one = floor(w, many)
                beside.append(one[0])
                beside_cpu.append(one[1])
                with_trials.append(one[2])
                before = many.cpu()
                ours.append(w.timed("POST", "/api/v1/experiments-search", body) * 1e3)
                cpu.append((many.cpu() - before) * 1e3)
        m = statistics.median
        print(f"  {found['pagination']['total']} of {self.size(10_000, 100)} fit; the first search after a start {first:.1f} ms; "
              f"rows with their best trials and reports {m(with_trials):.1f} ms; floor: {floor.__doc__}")
        self.row("experiments-search, page of 100", m(ours), m(beside), "ms", f"{m(cpu):.1f} and {m(beside_cpu):.1f} ms", 2)

    def floor(self, many):
        program = pathlib.Path(self.given.floor)
        if not program.exists():
            def by_route(w, master):
                """GET projects/1/experiments/metric-ranges, which reads every row, its best trial and their summaries (perf_stock_floor is not built)"""
                before = master.cpu()
                took = w.timed("GET", "/api/v1/projects/1/experiments/metric-ranges") * 1e3
                return took, (master.cpu() - before) * 1e3, took
            return by_route
        shutil.copytree(many.data / "master" / "db", self.root / "floor")
        asked = subprocess.Popen([program, self.root / "floor"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.floors = [asked]

        def by_program(w, master):
            """perf_stock_floor on a copy"""
            asked.stdin.write("\n")
            asked.stdin.flush()
            rows, ms, cpu, all_ms, _, _ = map(float, asked.stdout.readline().split())
            assert rows == self.size(10_000, 100), rows
            return ms, cpu, all_ms
        by_program(None, None)
        return by_program

    def list(self):
        many, few = self.filled(), self.master("few")
        with many.running(), few.running():
            self.pid("list", many)
            fill(few, 100)
            both = {"few": few, "many": many}
            newest = {name: one.wire().call("GET", "/api/v1/experiments?limit=1&orderBy=ORDER_BY_DESC")["experiments"][0]["id"] for name, one in both.items()}
            took, cpu = {}, {}
            count = 0
            for turn in range(self.rounds + 1):
                for key in SORT_KEYS:
                    for name, one in both.items():
                        count += 1  # The change is a new fact, so that no kept answer is used.
                        one.wire().call("PATCH", f"/api/v1/experiments/{newest[name]}", {"id": newest[name], "description": f"changed {count}"})
                        before = one.cpu()
                        ms = one.wire().timed("GET", f"/api/v1/experiments?limit=100&sortBy=SORT_BY_{key}") * 1e3
                        if turn:  # The first turn reads all rows, and does not count.
                            took.setdefault((name, key), []).append(ms)
                            cpu.setdefault((name, key), []).append((one.cpu() - before) * 1e3)
        m = {at: statistics.median(x) for at, x in took.items()}
        c = {at: statistics.median(x) for at, x in cpu.items()}
        for key in SORT_KEYS:
            print(f"  by {key.lower():20} {m['many', key]:8.2f} ms, with 100 {m['few', key]:8.2f} ms; CPU {c['many', key]:.2f} and {c['few', key]:.2f} ms")
        worst = max(SORT_KEYS, key=lambda key: m["many", key])
        self.bound(f"GET experiments?limit=100, worst key: {worst.lower()}", m["many", worst], "ms", 5, f"{c['many', worst]:.2f} ms")
        worst = max(SORT_KEYS, key=lambda key: m["many", key] / m["few", key])
        self.row(f"the same beside 100 experiments: {worst.lower()}", m["many", worst], m["few", worst], "ms", f"{c['many', worst]:.2f} and {c['few', worst]:.2f} ms", 3)

    def rights(self):
        authz = "troupe: 1\ncluster: {{authz: {}}}\n"
        rbac = self.master("rbac", file=authz.format("rbac"))
        users, groups, places = self.size(1000, 20), self.size(200, 4), 10
        with rbac.running():
            admin = rbac.wire("admin")
            admin.call("POST", "/api/v1/roles/add-assignments", {"groupRoleAssignments": [], "userRoleAssignments": [
                {"userId": 2, "roleAssignment": {"role": {"roleId": 1}}}]})  # The user `determined` needs the right to make experiments.
            fill(rbac, 100)
            made = [admin.call("POST", "/api/v1/workspaces", {"name": f"place {n}"})["workspace"]["id"] for n in range(places - 1)]
            scopes = [1, *made]
            ids = {}

            def user(n):
                body = {"user": {"username": f"u{n}", "admin": False, "active": True}, "password": "", "isHashed": True}
                ids[n] = rbac.wire("admin").call("POST", "/api/v1/users", body)["user"]["id"]

            begun = time.perf_counter()
            each(range(users), user, 8)
            teams = [admin.call("POST", "/api/v1/groups", {"name": f"team {n}", "addUsers": [ids[(n * 5 + i) % users] for i in range(5)]})["group"]["groupId"]
                     for n in range(groups)]
            said = lambda role, scope: {"role": {"roleId": role}, "scopeWorkspaceId": scope}  # noqa: E731
            given = [{"userId": ids[n], "roleAssignment": said(5, scopes[n % places])} for n in range(users)]
            for n in range(0, len(given), 100):
                admin.call("POST", "/api/v1/roles/add-assignments", {"userRoleAssignments": given[n:n + 100], "groupRoleAssignments": []})
            given = [{"groupId": team, "roleAssignment": said(5, scopes[(n + i) % places])} for n, team in enumerate(teams) for i in range(5)]
            for n in range(0, len(given), 100):
                admin.call("POST", "/api/v1/roles/add-assignments", {"userRoleAssignments": [], "groupRoleAssignments": given[n:n + 100]})
            print(f"  {users} users, {groups} groups, {users + 5 * groups} assignments in {time.perf_counter() - begun:.0f} s", flush=True)
        basic = self.copy(rbac, "basic", file=authz.format("basic"))
        # Where a process has its memory makes a difference of 5 % for as long as it lives, so both are started anew many times, and
        # each life of both is one pair.
        both = [rbac, basic]
        asked = [("permission of GET of an experiment, rbac beside basic", "/api/v1/experiments/{}", 1.03),
                 ("the same of a list of 100", "/api/v1/experiments?limit=100&offset=0&experimentIdFilter.gt={}", None),
                 ("the same of a list, kept answer", "/api/v1/experiments?limit=100", None)]
        took, cpu = ({(what, one): [] for what, *_ in asked for one in both} for _ in range(2))
        m = statistics.median
        many, turns, lives = self.size(100, 20), 12, 12 * self.rounds
        for life in range(lives):
            with rbac.running(), basic.running():
                if not life:
                    self.pid("rights", rbac)
                for what, path, least in asked:
                    if least is None and life % 5:
                        continue  # not asked for: a fifth of the lives shows about how much it is
                    turned, spent = {one: [] for one in both}, {one: [] for one in both}
                    for turn in range(turns + 1):
                        for one in both if (turn + life) % 2 else both[::-1]:
                            w, before = one.wire("u0"), one.cpu()
                            each_us = w.burst([path.format(n % 90 + 1) for n in range(many)]) / many * 1e6
                            if turn:
                                turned[one].append(each_us)
                                spent[one].append((one.cpu() - before) / many * 1e6)
                    for one in both:
                        took[what, one].append(m(turned[one]))
                        cpu[what, one].append(m(spent[one]))
        for what, _, least in asked:
            pairs = [a / b for a, b in zip(took[what, rbac], took[what, basic])]  # of one moment: the host changes from minute to minute
            self.row(what, m(took[what, rbac]), m(took[what, basic]), "us", f"{m(cpu[what, rbac]):.0f} and {m(cpu[what, basic]):.0f} us", least, ratio=m(pairs))
            if len(pairs) > 3:
                low, _, high = statistics.quantiles(pairs, n=4)
                print(f"  {len(pairs)} lives, half of their ratios in {low:.3f} to {high:.3f}", flush=True)
        with rbac.running(), basic.running():
            # right after a change of the cluster, because assignments are read anew then
            took = {rbac: [], basic: []}
            for turn in range(4 * self.rounds):
                for one in both:
                    one.wire().call("PATCH", "/api/v1/experiments/1", {"id": 1, "description": f"d {turn}"})
                    one.wire("admin").call("PUT", "/api/v1/master/cluster_message", {"message": f"m {turn}", "startTime": "2020-01-01T00:00:00Z"})
                    took[one].append(one.wire("u0").timed("GET", "/api/v1/experiments/2") * 1e6)
            self.row("the same right after a fact of the cluster", statistics.median(took[rbac]), statistics.median(took[basic]), "us")

    def lines(self):
        plain, watched = self.master("plain", slots=1), self.master("watched", slots=1)
        lines = self.size(500_000, 5000)
        with plain.running(), watched.running():
            self.pid("lines", watched)
            for n, regex in enumerate(EXPRESSIONS):
                watched.wire("admin").call("POST", "/api/v1/webhooks", {
                    "name": f"hook {n}", "url": "http://127.0.0.1:9/none", "webhookType": "WEBHOOK_TYPE_DEFAULT", "mode": "WEBHOOK_MODE_WORKSPACE",
                    "workspaceId": 0, "triggers": [{"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": regex}}]})
            took, cpu = {plain: [], watched: []}, {plain: [], watched: []}
            for turn in range(self.rounds + 1):
                for one in (plain, watched) if turn % 2 else (watched, plain):
                    seconds, spent = self.printed(one, lines, one is watched)
                    if turn:
                        took[one].append(seconds)
                        cpu[one].append(spent)
        m = statistics.median
        per_line = lambda x: f"{x / lines * 1e6:.2f}"  # noqa: E731
        more = (m(cpu[watched]) - m(cpu[plain])) / lines * 1e6
        self.bound("a line against 20 policies and 20 expressions, CPU more", more, "us", 1)
        self.row("lines a second, with them beside without", lines / m(took[watched]), lines / m(took[plain]), "/s",
                 f"{per_line(m(cpu[watched]))} and {per_line(m(cpu[plain]))} us a line", 0.5, rate=True)

    def printed(self, master, lines, watched):
        """The seconds from the first line of a script until all lines are durable, and the CPU seconds meanwhile. The exit of a task is
        told after its last line."""
        mark = self.root / f"mark-{time.monotonic_ns()}"
        text = {"name": "lines", "entrypoint": "python3 job.py", "searcher": {"name": "single", "metric": "loss"}, "max_restarts": 0,
                "resources": {"slots_per_trial": 1}, "hyperparameters": {},
                "log_policies": [{"name": f"policy {n}", "pattern": one, "action": "cancel_retries" if n % 2 else "exclude_node"}
                                 for n, one in enumerate(EXPRESSIONS)] if watched else [{"name": "CUDA OOM", "pattern": None}, {"name": "ECC Error", "pattern": None}]}
        job = self.root / f"job-{time.monotonic_ns()}"
        job.mkdir()
        (job / "job.py").write_text(LINES.format(mark=str(mark), lines=lines))
        (self.root / "job.json").write_text(json.dumps(text))
        before = master.cpu()
        done = subprocess.run([self.given.binary, "experiment", "create", str(self.root / "job.json"), str(job), "--master", f"http://127.0.0.1:{master.port}",
                               "-o", "json"], env={**os.environ, "HOME": str(master.folder)}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        made = json.loads(done.stdout)["id"]
        while (state := master.wire().call("GET", f"/api/v1/experiments/{made}")["experiment"]["state"]) not in ("STATE_COMPLETED", "STATE_ERROR"):
            time.sleep(0.2)
        spent = master.cpu() - before
        assert state == "STATE_COMPLETED", state
        trial = master.wire().call("GET", f"/api/v1/experiments/{made}/trials")["trials"][0]
        ended = trial["endTime"].rstrip("Z")
        seconds = time.strptime(ended.split(".")[0], "%Y-%m-%dT%H:%M:%S")
        at = calendar.timegm(seconds) + float("0." + (ended.split(".") + ["0"])[1])
        asked = urllib.request.Request(f"http://127.0.0.1:{master.port}/troupe/v1/logs/search?q=zzzzzz&trial={trial['id']}&limit=1",
                                       headers={"Authorization": "Bearer " + master.token("determined")})
        with urllib.request.urlopen(asked, timeout=120) as answer:
            scanned = re.search(rb'"scanned":\s*(\d+)', answer.read())
        if not scanned or int(scanned[1]) != lines:
            print(f"  {scanned and int(scanned[1])} of {lines} lines are there", flush=True)
        return at - float(mark.read_text()), spent

    def webhooks(self):
        receiver = subprocess.Popen([sys.executable, HERE / "receiver.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        port = int(receiver.stdout.readline())

        def say(words):
            receiver.stdin.write(words + "\n")
            receiver.stdin.flush()
            return json.loads(receiver.stdout.readline())

        try:
            master = self.master("webhooks")
            with master.running():
                self.pid("webhooks", master)
                hooks = min(100, self.size(10_000, 20))
                alerts = max(1, self.size(10_000, 200) // hooks)
                for n in range(hooks):
                    master.wire("admin").call("POST", "/api/v1/webhooks", {
                        "name": f"chat {n}", "url": f"http://127.0.0.1:{port}/{n}", "webhookType": "WEBHOOK_TYPE_DEFAULT", "mode": "WEBHOOK_MODE_SPECIFIC", "workspaceId": 0,
                        "triggers": [{"triggerType": "TRIGGER_TYPE_CUSTOM", "condition": {}}]})
                text = json.dumps({"name": "told", "hyperparameters": {}, "searcher": {"name": "single", "metric": "loss"}, "integrations": {"webhooks": {"webhook_name": [f"chat {n}" for n in range(hooks)]}}})
                told = master.wire().call("POST", "/api/v1/experiments", {"config": text, "unmanaged": True, "activate": True})["experiment"]["id"]
                ours, cpu, loop, command, most = [], [], [], [], 16
                for turn in range(self.rounds):
                    say("reset")
                    before = master.cpu()
                    each(range(alerts), lambda n: master.wire().call("POST", "/api/v1/webhooks/custom", {
                        "experimentId": told, "data": {"title": f"event {n}", "description": "loss fell below what was hoped for", "level": "LOG_LEVEL_INFO"}}), 16)
                    got = say(f"wait {alerts * hooks} 300")
                    assert got["count"] == alerts * hooks, got["count"]
                    ours.append(got["count"] / got["seconds"])
                    cpu.append((master.cpu() - before) / got["count"] * 1e6)
                    most = got["most"]
                    for into, post in [(loop, posted_by_library), (command, posted_by_curl)]:
                        say("reset")
                        post(f"http://127.0.0.1:{port}", got["body"], alerts * hooks, most, self.root)
                        had = say(f"wait {alerts * hooks} 300")
                        assert had["count"] == alerts * hooks, had["count"]
                        into.append(had["count"] / had["seconds"])
        finally:
            receiver.terminate()
            receiver.wait()
        m = statistics.median
        print(f"  {most} connections; each of ours is durable before, and its end after; beside one loop of libcurl (curl --parallel), then beside a thread for each connection")
        self.row(f"{alerts * hooks} webhook events to a receiver on loopback", m(ours), m(command), "/s", f"{m(cpu):.0f} us an event", 0.5, rate=True)
        self.row(f"the same beside {most} threads with libcurl", m(ours), m(loop), "/s", rate=True)

    def streams(self):
        master = self.master("streams")
        with master.running():
            self.pid("streams", master)
            count = self.size(1000, 20)
            token = master.token("determined")
            first = Stream(master.port, token)
            first.until(b'"complete":true')
            before = master.private_kib()
            all = [Stream(master.port, token) for _ in range(count)]
            for one in all:
                one.until(b'"complete":true')
            time.sleep(1)
            held = (master.private_kib() - before) / count
            late, cpu = [], []
            for turn in range(3 * self.rounds):
                spent = master.cpu()
                mark = f"model {turn}".encode()
                last = [0.0]
                listener = threading.Thread(target=lambda: last.__setitem__(0, heard_by_all(all, b'"' + mark + b'"')))
                listener.start()
                begun = time.perf_counter()
                master.wire().call("POST", "/api/v1/models", {"name": mark.decode(), "workspaceId": 1})
                listener.join()
                late.append(last[0] - begun)
                cpu.append(master.cpu() - spent)
            held_after = (master.private_kib() - before) / count
            for one in all:
                one.s.close()
        m = statistics.median
        self.bound(f"a change to {count} streams, to the last", m(late), "s", 0.2, f"{m(cpu) * 1e3:.0f} ms")
        self.bound("memory of a stream", held, "KiB", 64)
        print(f"  after {3 * self.rounds} changes {held_after:.1f} KiB each")

    def delete(self):
        many = self.filled()
        checkpoints = self.root / "checkpoints"
        gone = []

        def bare():
            copied = self.root / "copied"
            subprocess.run(["cp", "-r", checkpoints, copied], check=True)
            os.sync()  # on disk, as the files to delete are: files that are not yet on a disk are removed in half the time
            begun = time.perf_counter()
            subprocess.run(["rm", "-r", copied], check=True)
            gone.append(time.perf_counter() - begun)

        for _ in range(2):
            bare()
        with many.running():
            self.pid("delete", many)
            fill(many, 1)  # One experiment stays, for the other requests.
            stays = many.wire().call("GET", "/api/v1/experiments?limit=1&orderBy=ORDER_BY_DESC")["experiments"][0]["id"]
            probe, wire = Probe(many, stays), many.wire()
            left = lambda: wire.call("GET", "/api/v1/experiments?limit=1")["pagination"]["total"] - 1  # noqa: E731
            looked = time.perf_counter()
            while time.perf_counter() < looked + 10:  # the same requests as during the deletion
                time.sleep(0.2)
                left()
            before, begun = many.cpu(), time.perf_counter()
            answer = many.wire().call("DELETE", "/api/v1/projects/1/experiments/delete", {"projectId": 1, "filters": {"excludedExperimentIds": [stays]}})
            answered = time.perf_counter() - begun
            bad = [one for one in answer["results"] if one["error"]]
            assert not bad, bad[:3]
            count = len(answer["results"])
            while left():
                time.sleep(0.2)
            took = time.perf_counter() - begun
            spent = many.cpu() - before
            times = probe.end()
            within = lambda since, until: [x for at, x in times if since <= at < until]  # noqa: E731
            quiet, ordering, after = within(looked, begun), within(begun, begun + answered), within(begun + answered, begun + took)
            busy = ordering + after
            rest = sum(1 for _ in checkpoints.iterdir())
            assert rest <= 5, f"{rest} checkpoints are still there"
        p99 = lambda x: statistics.quantiles(x, n=100)[98] * 1e3  # noqa: E731
        print(f"  ordered in {answered:.2f} s; {took / count * 1e3:.2f} ms an experiment; other requests: p50 {statistics.median(busy) * 1e3:.2f} ms meanwhile, "
              f"{statistics.median(quiet) * 1e3:.2f} before, {len(busy)} and {len(quiet)} of them; p99 {p99(ordering):.2f} ms while it is ordered ({len(ordering)}), {p99(after):.2f} after")
        self.row(f"delete of {count} experiments, {5 * count} checkpoints", took, statistics.median(gone), "s", f"{spent:.1f} s", 1.5)
        self.row("p99 of other requests meanwhile", p99(busy), p99(quiet), "ms", "", 2)

    def start(self):
        many = self.filled()
        full = self.copy(many, "full")
        with full.running():
            admin = full.wire("admin")
            places = [admin.call("POST", "/api/v1/workspaces", {"name": f"workspace {n}"})["workspace"]["id"] for n in range(self.size(500, 10))]
            each(range(self.size(1000, 20)), lambda n: full.wire("admin").call("POST", "/api/v1/models", {
                "name": f"model {n}", "workspaceId": places[n % len(places)], "description": "read by production", "labels": ["a", "b"]}), 16)
        took = {many: [], full: []}
        for turn in range(2 * self.rounds + 1):
            for one in (many, full) if turn % 2 else (full, many):
                got = one.start()
                one.stop()
                if turn:
                    took[one].append(got)
        at = lambda one, n: statistics.median(x[n] for x in took[one]) * 1e3  # noqa: E731
        self.row("start to /health, with workspaces and models", at(full, 0), at(many, 0), "ms", f"{at(full, 2):.0f} and {at(many, 2):.0f} ms", 1.1)
        self.row("start to the first list of experiments", at(full, 1), at(many, 1), "ms", "", 1.1)

    # ----

    def run(self):
        order = ["search", "list", "rights", "lines", "webhooks", "streams", "start", "delete"]
        self.wanted = [name for name in order if self.given.only == "all" or name in self.given.only.split(",")]
        print(f"stock.py --scale {self.given.scale} --rounds {self.rounds}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}", flush=True)
        failed = []
        try:
            for name in self.wanted:
                try:
                    getattr(self, name)()
                except Exception as fault:  # The other rows are measured all the same.
                    failed.append(name)
                    traceback.print_exc()
                    print(f"{name}: not measured: {fault}", flush=True)
                finally:
                    for one in self.masters:
                        one.stop()
        finally:
            for one in getattr(self, "floors", []):
                one.kill()
            print(f"load at the end {os.getloadavg()[0]:.1f}" + (f"; not measured: {', '.join(failed)}" if failed else ""), flush=True)
            if self.given.keep:
                print(f"kept: {self.root}")
            else:
                shutil.rmtree(self.root, ignore_errors=True)
        return 1 if failed else 0


# ---- peers

def posted_by_library(url, body, count, connections, _):
    """Posts by one thread for each connection, each with a handle of libcurl that is kept. libcurl runs without the lock of the
    interpreter."""
    curl = ctypes.CDLL("libcurl.so.4")
    curl.curl_easy_init.restype = ctypes.c_void_p
    curl.curl_slist_append.restype = ctypes.c_void_p
    curl.curl_slist_append.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    curl.curl_easy_perform.argtypes = [ctypes.c_void_p]
    curl.curl_easy_cleanup.argtypes = [ctypes.c_void_p]
    set_text = curl.curl_easy_setopt
    data = body.encode()
    headers = None
    for line in (b"Content-Type: application/json; charset=UTF-8", b"Expect:"):
        headers = curl.curl_slist_append(headers, line)
    handles = []
    for n in range(connections):
        handle = ctypes.c_void_p(curl.curl_easy_init())
        for option, x in [(10002, ctypes.c_char_p(f"{url}/{n}".encode())), (47, ctypes.c_long(1)), (60, ctypes.c_long(len(data))),
                          (10015, ctypes.c_char_p(data)), (10023, ctypes.c_void_p(headers)), (99, ctypes.c_long(1)), (10004, ctypes.c_char_p(b""))]:
            assert set_text(handle, ctypes.c_int(option), x) == 0, option
        handles.append(handle)
    left = iter(range(count))

    def run(handle):
        for _ in left:
            assert curl.curl_easy_perform(handle) == 0

    all = [threading.Thread(target=run, args=(one,)) for one in handles]
    for one in all:
        one.start()
    for one in all:
        one.join()
    for one in handles:
        curl.curl_easy_cleanup(one)


def posted_by_curl(url, body, count, connections, root):
    """Posts by one loop of libcurl (its multi interface) with as many connections."""
    (root / "body").write_text(body)
    part = f'data-binary = "@{root / "body"}"\nheader = "Content-Type: application/json; charset=UTF-8"\nheader = "Expect:"\n'
    (root / "curl").write_text(part + "".join(f'url = "{url}/{n % 100}"\noutput = "/dev/null"\n' for n in range(count)))
    subprocess.run(["curl", "-s", "--no-progress-meter", "--parallel", "--parallel-max", str(connections), "-K", str(root / "curl")], check=True, stdout=subprocess.DEVNULL)


class Stream:
    """A client that has subscribed to /stream."""

    def __init__(self, port, token):
        self.s = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.s.sendall((f"GET /stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                        f"Sec-WebSocket-Key: c3RvY2stY2xpZW50LWtleQ==\r\nAuthorization: Bearer {token}\r\n\r\n").encode())
        self.got = b""
        self.until(b"\r\n\r\n")
        assert b" 101 " in self.got, self.got
        text = b'{"sync_id": "s", "subscribe": {"models": {"workspace_ids": [1]}, "projects": {"workspace_ids": [1]}}}'
        self.s.sendall(b"\x81" + (bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text))) + b"\0\0\0\0" + text)

    def until(self, what):
        while what not in self.got:
            more = self.s.recv(65536)
            assert more, self.got
            self.got += more


def heard_by_all(all, what):
    """Waits until every client has received the text, and returns the time."""
    poll, waiting = select.epoll(), {}
    for one in all:
        one.got = b""
        waiting[one.s.fileno()] = one
        poll.register(one.s.fileno(), select.EPOLLIN)
    while waiting:
        for number, _ in poll.poll(60):
            one = waiting[number]
            one.got += one.s.recv(65536)
            if what in one.got:
                poll.unregister(number)
                del waiting[number]
    poll.close()
    return time.perf_counter()


class Probe:
    """Sends other requests in turn with short pauses, as people do. It is a process of its own, so that it never waits for this one."""

    def __init__(self, master, experiment):
        self.paths = [f"/api/v1/experiments/{experiment}", f"/api/v1/experiments/{experiment}/trials", "/api/v1/workspaces", "/api/v1/me", "/api/v1/models"]
        self.told, said = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(target=self.run, args=(master, said))
        self.process.start()

    def run(self, master, said):
        w, times = Wire(master.port, master.token("determined")), []
        while not said.poll():
            times.append((time.perf_counter(), w.timed("GET", self.paths[len(times) % len(self.paths)])))
            time.sleep(0.002)
        said.send(times)

    def end(self):
        """Ends the process. Returns (start, seconds) of each request."""
        self.told.send(None)
        times = self.told.recv()
        self.process.join()
        return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build/release/troupe"))
    parser.add_argument("--floor", default=str(ROOT / "build/release/perf/stock/perf_stock_floor"))
    parser.add_argument("--only", default="all", help="search, list, rights, lines, webhooks, streams, start, delete")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default="/var/tmp")
    parser.add_argument("--keep", action="store_true")
    sys.exit(Bench(parser.parse_args()).run())


if __name__ == "__main__":
    main()
