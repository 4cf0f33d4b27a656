"""Compares random filters and sorts over random experiments and runs with a simple evaluator: which rows `experiments-search` and `runs`
find, and in which order. ORACLE_ROWS and ORACLE_FILTERS set the numbers of rows and filters; the whole check uses 2000 and 10000.
ORACLE_SEED sets the seed."""

import concurrent.futures
import datetime
import functools
import json
import os
import random
import threading
import urllib.parse

import pytest

from people_and_things import Line, bearer
from cluster_under_test import Cluster, wait_for

ROWS, FILTERS, SEED = (int(os.environ.get(key, usual)) for key, usual in (("ORACLE_ROWS", 300), ("ORACLE_FILTERS", 400), ("ORACLE_SEED", 20261125)))
WORDS = ["alpha", "Alpha", "beta run", "Gamma-7", "delta_2", "ÄÖ", "100%", "a_b", "x.y", "[tag]", "\\n", "7", "null", "STATE_x"]
OPTIMIZERS = ["adam", "sgd", "Adam", "rms prop"]
NUMBERS = [-3, -0.5, 0, 0.25, 0.5, 1, 1.5, 2, 3, 10, 64, 100]
STORED = dict.fromkeys(("STATE_RUNNING", "STATE_QUEUED", "STATE_PULLING", "STATE_STARTING"), "STATE_ACTIVE")  # stored states
PEOPLE = ("determined", "ann", "bob")
ROW_TEXT, ROW_NUMBER, ROW_DATE = "text", "number", "date"
EXPERIMENT_COLUMNS = {"id": ROW_NUMBER, "name": ROW_TEXT, "description": ROW_TEXT, "tags": "tags", "forkedFrom": ROW_NUMBER, "startTime": ROW_DATE, "endTime": ROW_DATE,
                      "numTrials": ROW_NUMBER, "state": ROW_TEXT, "searcherType": ROW_TEXT, "searcherMetric": ROW_TEXT, "searcherMetricsVal": ROW_NUMBER, "resourcePool": ROW_TEXT,
                      "projectId": ROW_NUMBER, "progress": ROW_NUMBER, "user": ROW_NUMBER, "checkpointCount": ROW_NUMBER, "checkpointSize": ROW_NUMBER, "externalExperimentId": ROW_TEXT}
RUN_COLUMNS = {"id": ROW_NUMBER, "experimentName": ROW_TEXT, "experimentDescription": ROW_TEXT, "tags": "tags", "forkedFrom": ROW_NUMBER, "startTime": ROW_DATE, "endTime": ROW_DATE,
               "state": ROW_TEXT, "searcherType": ROW_TEXT, "searcherMetric": ROW_TEXT, "searcherMetricsVal": ROW_NUMBER, "projectId": ROW_NUMBER, "user": ROW_NUMBER,
               "checkpointCount": ROW_NUMBER, "checkpointSize": ROW_NUMBER, "externalExperimentId": ROW_TEXT, "externalRunId": ROW_TEXT, "experimentId": ROW_NUMBER}
DATES = ("startTime", "endTime")
METRICS = [f"{group}.{name}.{how}" for group, name in (("validation", "loss"), ("validation", "acc.top"), ("training", "loss"), ("mine", "x")) for how in ("min", "max", "mean", "last")]
HYPERPARAMETERS = ["lr", "layers", "opt", "deep.width", "deep.kind", "seed", "nothing", "mixed"]
METADATA = ["note", "deep.score", "when", "nothing", "mixed"]


# ---- the random experiments

def section(chance, name):
    """The value of a hyperparameter in a configuration."""
    number = lambda: chance.choice(NUMBERS)
    low, high = sorted(chance.sample(NUMBERS, 2))
    if name == "opt":
        return chance.choice([{"type": "const", "val": chance.choice(OPTIMIZERS)}, {"type": "categorical", "vals": chance.sample(OPTIMIZERS, 2)}])
    if name == "lr":
        return chance.choice([{"type": "const", "val": number()}, {"type": "double", "minval": low, "maxval": high},
                              {"type": "log", "base": 10, "minval": -3, "maxval": chance.choice([-2, -1, 0])}])
    if name == "layers":
        return chance.choice([{"type": "const", "val": chance.randint(1, 20)}, {"type": "int", "minval": 1, "maxval": chance.randint(2, 20)},
                              {"type": "categorical", "vals": chance.sample([1, 2, 3, 4, 8], 3)}])
    if name == "mixed":
        return {"type": "const", "val": chance.choice([number(), str(number()), chance.choice(WORDS), True])}
    if name in ("width", "seed"):
        return {"type": "const", "val": chance.randint(1, 120)}
    return {"type": "const", "val": chance.choice(WORDS)}


def some(chance, *names, at=0.7):
    return [name for name in names if chance.random() < at]


def plan_of(chance, number):
    """A random experiment with its trials, as it will be sent to the cluster."""
    hparams = {name: section(chance, name) for name in some(chance, "lr", "layers", "opt", "seed", "mixed")}
    if chance.random() < 0.6:
        hparams["deep"] = {name: section(chance, name) for name in ("width", "kind")}
    one = {"name": chance.choice(WORDS) + chance.choice(["", f" {number % 7}"]), "description": chance.choice(["", *WORDS]), "labels": sorted(set(chance.choices(WORDS, k=chance.randrange(4)))),
           "hyperparameters": hparams, "smaller": chance.random() < 0.5, "metric": chance.choice(["loss", "acc.top"]), "searcher": chance.choice(["single", "random"]),
           "owner": chance.choice(PEOPLE), "project": chance.randrange(3), "external": f"ext-{chance.choice(WORDS)}-{number}" if chance.random() < 0.3 else "",
           "fork": chance.random() < 0.15, "state": chance.choice(["", "RUNNING", "COMPLETED", "ERROR", "CANCELED"]), "trials": [], "archived": chance.random() < 0.3}
    if one["fork"]:  # A fork is an experiment of the cluster itself, and paused. Its trial has the fixed hyperparameters.
        fixed = lambda known: {name: x for name, x in ((name, fixed(x) if "type" not in x else x) for name, x in known.items()) if x.get("type", "const") == "const" and x}
        one |= {"external": "", "searcher": "single", "hyperparameters": fixed(hparams)}
        one["trials"] = [{"hparams": {name: x["val"] if "type" in x else {deep: y["val"] for deep, y in x.items()} for name, x in one["hyperparameters"].items()},
                          "reports": [], "metadata": {}, "external": "", "sizes": [], "progress": None}]
        return one
    for index in range(chance.choice([0, 1, 1, 2]) if one["searcher"] == "random" else chance.choice([0, 1, 1])):
        plain = lambda section: (chance.choice(section["vals"]) if "vals" in section else section["val"] if "val" in section else round(chance.uniform(section["minval"], section["maxval"]), 3)
                                 if section["type"] == "double" else section["maxval"])
        value = {name: plain(x) if "type" in x else {deep: plain(y) for deep, y in x.items()} for name, x in hparams.items()}
        reports = []
        for steps in range(1, chance.randrange(4) + 1):
            for group, names in (("validation", ["loss", "acc.top"]), ("training", ["loss"]), ("mine", ["x"])):
                if told := {name: chance.choice([round(chance.uniform(-2, 12), 6), chance.choice(NUMBERS) + round(chance.uniform(0, 1e-3), 9)]) for name in some(chance, *names)}:
                    reports.append((group, steps, told))
        metadata = {key: chance.choice(known) for key, known in (("note", WORDS), ("when", ["2026-01-01", "2026-01", "2025-12-31T23:30:00-01:00", "2026-02-03T00:00:00Z", "soon"]),
                                                                 ("mixed", [1, 10, "9", "word", True, 2.5])) if chance.random() < 0.6}
        if chance.random() < 0.5:
            metadata["deep"] = {"score": chance.choice(NUMBERS)}
        one["trials"].append({"hparams": value, "reports": reports, "metadata": metadata, "external": f"run-{chance.choice(WORDS)}-{number}-{index}" if one["external"] else "",
                              "sizes": [chance.randrange(3000) for _ in range(chance.randrange(3))], "progress": chance.choice([None, 0.1, 0.555, 1])})
    return one


class Lab(Cluster):
    def begin(self):
        self.up(slots=1)
        self.lines = concurrent.futures.ThreadPoolExecutor(8)
        self.admin = self.login("admin")
        for name in PEOPLE[1:]:
            self.ok(self.admin, "POST", "/api/v1/users", {"user": {"username": name, "active": True}})
        self.by = {name: self.login(name) for name in PEOPLE}
        self.ids = {one["username"]: one["id"] for one in self.ok(self.admin, "GET", "/api/v1/users")["users"]}
        workspace = self.ok(self.admin, "POST", "/api/v1/workspaces", {"name": "oracle"})["workspace"]["id"]
        self.projects = [1] + [self.ok(self.admin, "POST", f"/api/v1/workspaces/{workspace}/projects", {"name": name})["project"]["id"] for name in ("one", "two")]

    local = threading.local()

    def ask(self, by, method, path, body=None):
        if not hasattr(self.local, "line") or self.local.of is not self:
            self.local.line, self.local.of = Line(self.url()), self
        return self.local.line.ask(method, path, by, body, seconds=60)

    def ok(self, by, method, path, body=None):
        status, said = self.ask(by, method, path, body)
        assert status == 200, (method, path, body, status, said)
        return json.loads(said)

    def login(self, name):
        return bearer(self.ok({}, "POST", "/api/v1/auth/login", {"username": name, "password": ""})["token"])

    def make(self, plan, parent=None):
        """Makes the experiment of a plan, with its trials, and archives it if planned."""
        self.make_one(plan, parent)
        if plan["archived"]:
            plan["archived"] = self.ask(self.by[plan["owner"]], "POST", f"/api/v1/experiments/{plan['id']}/archive")[0] == 200

    def beat(self, trials):
        """Reports that unmanaged trials which have not ended still live. After 5 minutes of silence the cluster would end them, and their
        rows would change."""
        for trial in trials:
            self.ok(self.admin, "PATCH", f"/api/v1/trials/{trial}", {"trialId": trial})

    def beat_until(self, over, trials):
        while not over.wait(60):
            self.beat(trials)

    def make_one(self, plan, parent):
        by, project = self.by[plan["owner"]], self.projects[plan["project"]]
        config = json.dumps({"name": plan["name"], "description": plan["description"], "labels": plan["labels"], "entrypoint": "true", "hyperparameters": plan["hyperparameters"],
                             "searcher": {"name": plan["searcher"], "metric": plan["metric"], "smaller_is_better": plan["smaller"], **({"max_trials": 2} if plan["searcher"] == "random" else {})},
                             "reproducibility": {"experiment_seed": 1}})
        body = {"config": config, "projectId": project}
        if plan["fork"]:
            plan["id"] = self.ok(by, "POST", "/api/v1/experiments", {**body, "activate": False, "parentId": parent})["experiment"]["id"]
            plan["parent"] = parent
            plan["trials"][0]["id"] = wait_for(lambda: self.ok(by, "GET", f"/api/v1/experiments/{plan['id']}/trials")["trials"], 30)[0]["id"]
            return
        elif plan["external"]:
            plan["id"] = self.ok(by, "PUT", "/api/v1/experiments/by-external-id/" + urllib.parse.quote(plan["external"], safe=""), {**body, "unmanaged": True})["experiment"]["id"]
        else:
            plan["id"] = self.ok(by, "POST", "/api/v1/experiments", {**body, "unmanaged": True})["experiment"]["id"]
        for trial in plan["trials"]:
            request = {"experimentId": plan["id"], "hparams": trial["hparams"], "unmanaged": True}
            made = self.ok(by, "PUT", "/api/v1/trials", {"createTrialRequest": request, "externalTrialId": trial["external"]}) if trial["external"] else self.ok(by, "POST", "/api/v1/trials", request)
            trial["id"], task = made["trial"]["id"], made["trial"]["taskId"]
            if not (plan["state"] or trial["reports"] or trial["sizes"]):
                continue
            self.ok(by, "POST", f"/api/v1/trials/{trial['id']}/start", {"trialId": trial["id"], "resume": False})
            for group, steps, told in trial["reports"]:
                self.ok(by, "POST", f"/api/v1/trials/{trial['id']}/metrics", {"group": group, "metrics": {"trialId": trial["id"], "trialRunId": 1, "stepsCompleted": steps, "metrics": {"avgMetrics": told}}})
            for index, size in enumerate(trial["sizes"]):
                self.ok(by, "POST", "/api/v1/checkpoints", {"taskId": task, "uuid": f"{trial['id']:08x}-0000-4000-8000-{index:012x}", "state": "STATE_COMPLETED", "training": {},
                                                            "resources": {"a": str(size)}, "metadata": {"steps_completed": index + 1}, "reportTime": "2026-01-01T00:00:00Z"})
            if trial["progress"] is not None:
                self.ok(by, "POST", f"/api/v1/trials/{trial['id']}/progress", {"trialId": trial["id"], "progress": trial["progress"], "isRaw": True})
            if trial["metadata"]:
                self.ok(by, "POST", f"/api/v1/runs/{trial['id']}/metadata", {"runId": trial["id"], "metadata": trial["metadata"]})
            if plan["state"] in ("COMPLETED", "ERROR", "CANCELED"):
                self.ok(by, "PATCH", f"/api/v1/trials/{trial['id']}", {"trialId": trial["id"], "state": "STATE_" + plan["state"]})


# ---- the rows that the cluster should show

def at(x, path):
    for key in path.split("."):
        if not isinstance(x, dict) or key not in x:
            return None
        x = x[key]
    return x


def summary(trial, name):
    group, rest = name.split(".", 1)
    metric, how = rest.rsplit(".", 1)
    told = [values[metric] for kind, _, values in trial["reports"] if kind == group and metric in values]
    if not told:
        return None
    return {"min": min(told), "max": max(told), "mean": sum(told) / len(told), "last": told[-1]}[how]


def best_of(plan, trial):
    """The best validation of a trial, by the metric of the search."""
    told = [values[plan["metric"]] for kind, _, values in trial["reports"] if kind == "validation" and plan["metric"] in values]
    return None if not told else min(told) if plan["smaller"] else max(told)


def rows_of(plans, shown, trials, ids, projects):
    """Returns (experiments, runs): the rows as columns by name, with functions for metrics and hyperparameters. Times, and the states
    that the server sets, are taken from the server."""
    experiments, runs = [], []
    for plan in plans:
        told = shown[plan["id"]]
        bests = [(best_of(plan, one), one) for one in plan["trials"] if best_of(plan, one) is not None]
        best = (min if plan["smaller"] else max)(bests, key=lambda x: x[0], default=None)
        shared = {"tags": plan["labels"], "forkedFrom": plan.get("parent"), "searcherType": plan["searcher"], "searcherMetric": plan["metric"], "resourcePool": "default",
                  "projectId": projects[plan["project"]], "user": ids[plan["owner"]], "externalExperimentId": plan["external"] or None, "archived": plan["archived"]}
        experiments.append({**shared, "id": plan["id"], "name": plan["name"], "description": plan["description"], "startTime": told["startTime"], "endTime": told.get("endTime"),
                            "numTrials": len(plan["trials"]), "state": STORED.get(told["state"], told["state"]).removeprefix("STATE_"), "searcherMetricsVal": best and best[0],
                            "progress": round(100 * (told.get("progress") or 0)), "checkpointCount": sum(len(one["sizes"]) for one in plan["trials"]),
                            "checkpointSize": sum(sum(one["sizes"]) for one in plan["trials"]),
                            "metric": lambda name, best=best: best and summary(best[1], name), "hp": functools.partial(at, plan["hyperparameters"]), "metadata": lambda name: None})
        for one in plan["trials"]:
            told_run = trials[one["id"]]
            started = plan["state"] or one["reports"] or one["sizes"]
            runs.append({**shared, "id": one["id"], "experimentName": plan["name"], "experimentDescription": plan["description"], "startTime": told_run["startTime"],
                         "endTime": told_run.get("endTime"), "state": told_run["state"].removeprefix("STATE_"), "searcherMetricsVal": best_of(plan, one), "checkpointCount": len(one["sizes"]),
                         "checkpointSize": sum(one["sizes"]), "externalRunId": one["external"] or None, "experimentId": plan["id"],
                         "metric": functools.partial(summary, one), "hp": functools.partial(at, one["hparams"]), "metadata": functools.partial(at, one["metadata"] if started else {})})
    return experiments, runs


# ---- the language of filters

def moment(text):
    for tail in ("", "T00:00:00Z", "-01T00:00:00Z"):
        if (tail == "") == (len(text) > 10) and (tail == "" or len(text) == (10 if tail[0] == "T" else 7)):
            try:
                return datetime.datetime.fromisoformat((text + tail).replace("Z", "+00:00"))
            except ValueError:
                return None
    return None


def number(x):
    if isinstance(x, bool):
        return None
    try:
        return float(x) if isinstance(x, (int, float)) or (isinstance(x, str) and x and x.strip() == x and not x.startswith("+") and x.lower() not in ("nan", "null")) else None
    except ValueError:
        return None


def flag(x):
    return x if isinstance(x, bool) else {"true": True, "false": False}.get(fold(x))


def compare(a, b, timed=False, states=False):
    """Returns a number below, equal to or above 0, or None where the values cannot be compared. `timed` is for a column that may hold
    times, and `states` for the column of states."""
    if not isinstance(a, (str, bool)) or not isinstance(b, (str, bool)):
        x, y = number(a), number(b)
        return None if x is None or y is None else (x > y) - (x < y)
    if isinstance(a, bool) or isinstance(b, bool):
        x, y = flag(a), flag(b)
        return None if x is None or y is None else x - y
    x, y = (moment(a), moment(b)) if timed else (None, None)
    if not (x and y):
        x, y = ((one.removeprefix("STATE_") if states else one).encode() for one in (a, b))
    return (x > y) - (x < y)


def text(x):
    return x if isinstance(x, str) else json.dumps(x)


def fold(x):
    """The text with its ASCII letters in lower case."""
    return "".join(one.lower() if one.isascii() else one for one in x)


def holds_of(order, op):
    return {"=": order == 0, "!=": order != 0, "<": order is not None and order < 0, "<=": order is not None and order <= 0, ">": order is not None and order > 0,
            ">=": order is not None and order >= 0}[op]


def holds_field(row, what):
    column, op, wanted = what["columnName"], what["operator"], what.get("value")
    location = what["location"]
    if wanted is None and op not in ("isEmpty", "notEmpty"):
        return True
    own = location in ("LOCATION_TYPE_EXPERIMENT", "LOCATION_TYPE_RUN")
    has = (row[column] if own else row["metric"](column) if location in ("LOCATION_TYPE_VALIDATIONS", "LOCATION_TYPE_TRAINING", "LOCATION_TYPE_CUSTOM_METRIC")
           else row["metadata"](column.removeprefix("metadata.")) if location == "LOCATION_TYPE_RUN_METADATA" else row["hp"](column.removeprefix("hp.")))
    if op in ("isEmpty", "notEmpty"):
        return (has is None or has in ("", "[]", [])) == (op == "isEmpty")
    if location == "LOCATION_TYPE_HYPERPARAMETERS" and isinstance(has, dict) and "type" in has:
        if has["type"] == "categorical":
            among = any(compare(one, wanted) == 0 for one in has["vals"])
            return {"=": among, "contains": among, "!=": not among, "notContains": not among}.get(op, False)
        if has["type"] != "const":
            x = number(wanted) if not isinstance(wanted, str) else None
            if x is None:
                return op in ("!=", "notContains")
            within = has["minval"] <= x <= has["maxval"]
            return {"=": within, "contains": within, "!=": not within, "notContains": not within, "<": has["minval"] < x, "<=": has["minval"] <= x, ">": has["maxval"] > x,
                    ">=": has["maxval"] >= x}[op]
        has = has["val"]
    if op in ("contains", "notContains"):
        folded = fold if own else (lambda x: x)
        found = has is not None and any(folded(text(wanted)) in folded(text(one)) for one in (has if isinstance(has, list) else [has]))
        return found == (op == "contains")
    return holds_of(None if has is None else compare(has, wanted, location == "LOCATION_TYPE_RUN_METADATA" or (own and column in DATES), own and column == "state"), op)


def holds(row, node):
    if node["kind"] == "field":
        return holds_field(row, node)
    if not node["children"]:
        return True
    return (all if node["conjunction"] == "and" else any)(holds(row, child) for child in node["children"])


def rank(x, column):
    """The sort key of a value. Values of different kinds are apart, in this order: numbers, booleans, times, texts, others."""
    timed = column in DATES or column.startswith("metadata.")
    if isinstance(x, bool):
        return (1, x)
    if isinstance(x, (int, float)):
        return (0, x)
    if isinstance(x, str):
        return (2, moment(x)) if timed and moment(x) else (3, x.encode())
    return (4, json.dumps(x, separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode())


def key_of(row, column):
    if column.startswith("hp."):
        has = row["hp"](column[3:])
        if isinstance(has, dict) and "type" in has:  # the range of a search
            has = has["val"] if "val" in has else has["vals"] if "vals" in has else has["minval"]
        return has
    if column.startswith("metadata."):
        return row["metadata"](column[9:])
    return row[column] if column in row else row["metric"](column)


def ordered(rows, sort):
    """The rows in the order of the sort keys. Unset values come last in both directions, and equal rows are in the order of their ids."""
    rows = sorted(rows, key=lambda row: row["id"])
    for column, way in reversed(sort):
        there = [row for row in rows if key_of(row, column) is not None]
        unset = [row for row in rows if key_of(row, column) is None]
        # sorted() is stable, and with `reverse` too.
        rows = sorted(there, key=lambda row: rank(key_of(row, column), column), reverse=way == "desc") + unset
    return rows


# ---- random filters and sorts

def random_field(chance, rows, runs):
    columns = RUN_COLUMNS if runs else EXPERIMENT_COLUMNS
    kind = chance.random()
    taken = chance.choice(rows)
    if kind < 0.5:
        column = chance.choice(list(columns))
        type_ = columns[column]
        location = chance.choice(["LOCATION_TYPE_RUN"] if runs else ["LOCATION_TYPE_EXPERIMENT"])
        if type_ == "tags":
            op, value = chance.choice(["contains", "notContains", "isEmpty", "notEmpty"]), chance.choice(WORDS)
        elif type_ == ROW_NUMBER:
            op = chance.choice(["=", "!=", "<", "<=", ">", ">=", "isEmpty", "notEmpty"])
            value = chance.choice([taken[column], chance.choice(NUMBERS), str(chance.choice(NUMBERS)) if chance.random() < 0.1 else 1])
        elif type_ == ROW_DATE:
            op, value = chance.choice(["<", "<=", ">", ">=", "isEmpty", "notEmpty"]), taken[column] or "2026-11-25"
        else:
            op = chance.choice(["=", "!=", "contains", "notContains", "isEmpty", "notEmpty", "<", ">="])
            value = chance.choice([taken[column], chance.choice(WORDS)]) or ""
            if op in ("contains", "notContains") and value and chance.random() < 0.7:
                begin = chance.randrange(len(value))
                value = chance.choice([str.upper, str.lower, str])(value[begin:begin + chance.randint(1, 4)])
                value = value if value.isascii() else "a"
            if column == "state" and chance.random() < 0.3:
                value = "STATE_" + value if op in ("=", "!=") else value
    elif kind < 0.7:
        column = chance.choice(METRICS)
        location = "LOCATION_TYPE_" + {"v": "VALIDATIONS", "t": "TRAINING", "m": "CUSTOM_METRIC"}[column[0]]
        type_, op = ROW_NUMBER, chance.choice(["=", "!=", "<", "<=", ">", ">=", "isEmpty", "notEmpty"])
        value = chance.choice([taken["metric"](column), chance.choice(NUMBERS)])
        if column.endswith("mean") and op in ("=", "!=", "<=", ">="):  # The cluster adds up in another order, with another rounding.
            op = "<"
            value = chance.choice(NUMBERS)
    elif runs and kind < 0.8:
        column = chance.choice(METADATA)
        location, type_ = "LOCATION_TYPE_RUN_METADATA", ROW_TEXT
        op = chance.choice(["=", "!=", "<", "<=", ">", ">=", "contains", "notContains", "isEmpty", "notEmpty"])
        value = chance.choice([taken["metadata"](column), chance.choice(WORDS), chance.choice(NUMBERS), "2026-01-01", True, "true"])
        column = chance.choice(["metadata.", ""]) + column
    else:
        column = chance.choice(HYPERPARAMETERS)
        location = "LOCATION_TYPE_RUN_HYPERPARAMETERS" if runs else "LOCATION_TYPE_HYPERPARAMETERS"
        type_ = ROW_TEXT
        op = chance.choice(["=", "!=", "<", "<=", ">", ">=", "contains", "notContains", "isEmpty", "notEmpty"])
        has = taken["hp"](column)
        value = chance.choice([has if not isinstance(has, dict) else has.get("val", has.get("minval")), chance.choice(WORDS), chance.choice(OPTIMIZERS), chance.choice(NUMBERS), 4])
        column = chance.choice(["hp.", ""]) + column
    if isinstance(value, (int, float)) and not isinstance(value, bool) and op in ("contains", "notContains") and value != int(value):
        value = 1
    return {"kind": "field", "columnName": column, "location": location, "operator": op, "value": value,
            "type": {ROW_NUMBER: "COLUMN_TYPE_NUMBER", ROW_DATE: "COLUMN_TYPE_DATE"}.get(type_, "COLUMN_TYPE_TEXT")}


def random_node(chance, rows, runs, depth=0):
    if depth and (depth == 4 or chance.random() < 0.7):
        return random_field(chance, rows, runs)
    return {"kind": "group", "conjunction": chance.choice(["and", "or"]), "children": [random_node(chance, rows, runs, depth + 1) for _ in range(chance.choice([0, 1, 1, 2, 2, 3]))]}


def random_search(chance, rows, runs, projects):
    columns = list(RUN_COLUMNS if runs else EXPERIMENT_COLUMNS)
    columns = [one for one in columns if one != "tags"]
    names = chance.sample(columns, 2) + [chance.choice(METRICS)] + ["hp." + chance.choice(HYPERPARAMETERS)] + (["metadata." + chance.choice(METADATA)] if runs else [])
    names = [one for one in names if not one.endswith(".mean")]
    sort = [(one, chance.choice(["asc", "desc"])) for one in chance.sample(names, chance.randrange(len(names) if len(names) < 3 else 3))]
    return {"filterGroup": random_node(chance, rows, runs), "showArchived": chance.random() < 0.7}, sort, chance.choice([0, 0, *projects])


def expected(rows, what, sort, project):
    found = [row for row in rows if (not project or row["projectId"] == project) and (what["showArchived"] or not row["archived"]) and holds(row, what["filterGroup"])]
    return [row["id"] for row in ordered(found, sort)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("oracle"))
    try:
        lab.begin()
        yield lab
    finally:
        lab.close()


def test_what_is_found_and_in_which_order(lab):
    chance = random.Random(SEED)
    plans = [plan_of(chance, number) for number in range(ROWS)]
    first = next(plan for plan in plans if not plan["fork"])
    lab.make(first)
    for done in lab.lines.map(lambda plan: lab.make(plan, first["id"]), [plan for plan in plans if plan is not first]):
        pass
    alive = [trial["id"] for plan in plans if plan["state"] in ("", "RUNNING") and not plan["fork"] for trial in plan["trials"] if plan["state"] or trial["reports"] or trial["sizes"]]
    lab.beat(alive)
    over = threading.Event()
    beats = threading.Thread(target=lab.beat_until, args=(over, alive), daemon=True)
    beats.start()
    shown = {one["experiment"]["id"]: one["experiment"] for one in lab.ok(lab.admin, "POST", "/api/v1/experiments-search", {"limit": -1})["experiments"]}
    trials = {one["id"]: one for one in lab.ok(lab.admin, "POST", "/api/v1/runs", {"limit": -1})["runs"]}
    assert len(shown) == ROWS and len(trials) == sum(len(plan["trials"]) for plan in plans)
    both = rows_of(plans, shown, trials, lab.ids, lab.projects)
    cases = []
    for number in range(FILTERS):
        runs = number % 2 == 1
        what, sort, project = random_search(chance, both[runs], runs, lab.projects)
        cases.append((number, runs, what, sort, project))

    def differs(case):
        number, runs, what, sort, project = case
        wanted = expected(both[runs], what, sort, project)
        body = {"filter": json.dumps(what), "sort": ",".join(f"{name}={way}" for name, way in sort), "limit": 50}
        if project:
            body["projectId"] = project
        status, said = lab.ask(lab.admin, "POST", "/api/v1/runs" if runs else "/api/v1/experiments-search", body)
        if status != 200:
            return number, status, said, body
        said = json.loads(said)
        got = [one["id"] for one in said["runs"]] if runs else [one["experiment"]["id"] for one in said["experiments"]]
        if (got, said["pagination"]["total"]) != (wanted[:50], len(wanted)):
            return number, {"too many": [x for x in got if x not in wanted][:5], "total": (said["pagination"]["total"], len(wanted)), "got": got[:12], "wanted": wanted[:12]}, body, case
        return None

    faults = [one for one in lab.lines.map(differs, cases) if one]
    over.set()
    beats.join()
    # The shortest of the faults are the easiest to read.
    faults.sort(key=lambda one: len(str(one)))
    assert not faults, f"{len(faults)} of {FILTERS} (seed {SEED}):\n" + "\n\n".join(str(one)[:1500] for one in faults[:12])
