"""Bad input to the routes of Determined's contract gets a status and a sentence, and changes nothing. Each case is asked once and
refused. After all cases the journal holds no more facts than before."""

import json
import time
import urllib.parse
import urllib.request

import pytest

from cluster_under_test import Cluster, wait_for
from people_and_things import Line, bearer

CONFIG = {"name": "plain", "entrypoint": "sleep 1000", "searcher": {"name": "single", "metric": "loss"}}
LONG = "x" * 81
CONTROL = "a\x07b"
HOOK = {"url": "http://127.0.0.1:1/x", "name": "hook", "webhookType": "WEBHOOK_TYPE_DEFAULT", "mode": "WEBHOOK_MODE_WORKSPACE", "workspaceId": 0,
        "triggers": [{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}]}
LOG_HOOK = lambda regex: {**HOOK, "triggers": [{"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": regex}}]}
BIG = 1 << 63


class House(Cluster):
    def begin(self):
        self.up(slots=1)
        self.line = Line(self.url())
        self.by = bearer(json.loads(self.line.ask("POST", "/api/v1/auth/login", {}, {"username": "admin", "password": ""})[1])["token"])
        ok, of = self.ok, {}
        of["ws"] = ok("POST", "/api/v1/workspaces", {"name": "Vision"})["workspace"]["id"]
        of["project"] = ok("POST", f"/api/v1/workspaces/{of['ws']}/projects", {"name": "Cats", "key": "CAT"})["project"]["id"]
        of["other"] = ok("POST", f"/api/v1/workspaces/{of['ws']}/projects", {"name": "Dogs"})["project"]["id"]
        of["old"] = ok("POST", "/api/v1/workspaces", {"name": "Old"})["workspace"]["id"]
        of["inold"] = ok("POST", f"/api/v1/workspaces/{of['old']}/projects", {"name": "Inside"})["project"]["id"]
        ok("POST", f"/api/v1/workspaces/{of['old']}/archive")
        of["shelved"] = ok("POST", f"/api/v1/workspaces/{of['ws']}/projects", {"name": "Shelved"})["project"]["id"]
        ok("POST", f"/api/v1/projects/{of['shelved']}/archive")
        create = lambda **more: ok("POST", "/api/v1/experiments", {"config": json.dumps(CONFIG), "projectId": of["project"], **more})["experiment"]["id"]
        of["paused"] = create(activate=False)  # an experiment of the cluster that has no task
        of["managed"] = create(activate=True)
        of["outside"] = create(unmanaged=True)
        of["trial"] = ok("POST", "/api/v1/trials", {"experimentId": of["outside"], "unmanaged": True, "hparams": {}})["trial"]["id"]
        ok("POST", f"/api/v1/trials/{of['trial']}/start", {"trialId": of["trial"], "resume": False})
        of["task"] = ok("GET", f"/api/v1/trials/{of['trial']}")["trial"]["taskId"]
        for number, name in enumerate(("whole", "part")):
            of[name] = f"00000000-0000-4000-8000-{number + 1:012}"
            ok("POST", "/api/v1/checkpoints", {"taskId": of["task"], "uuid": of[name], "state": "STATE_COMPLETED", "training": {}, "resources": {"a/": "0", "a/b": "3"},
                                               "metadata": {"steps_completed": 1}, "reportTime": "2026-01-01T00:00:00Z"})
        ok("PATCH", "/api/v1/checkpoints", {"checkpoints": [{"uuid": of["part"], "resources": {"resources": {"a/": "0"}}}]})
        of["mtrial"] = wait_for(lambda: ok("GET", f"/api/v1/experiments/{of['managed']}/trials")["trials"], 30)[0]["id"]
        ok("POST", "/api/v1/models", {"name": "Net", "workspaceId": of["ws"]})
        ok("POST", "/api/v1/models", {"name": "Shut"}), ok("POST", "/api/v1/models/Shut/archive")
        ok("POST", "/api/v1/models/Net/versions", {"modelName": "Net", "checkpointUuid": of["whole"]})
        ok("POST", "/api/v1/templates/Base", {"name": "Base", "config": {"description": "x"}})
        ok("POST", "/api/v1/templates/Wrong", {"name": "Wrong", "config": {"resources": {"slotz": 3}}})
        of["user"] = ok("POST", "/api/v1/users", {"user": {"username": "Maria", "active": True, "displayName": "Maria C"}})["user"]["id"]
        of["group"] = ok("POST", "/api/v1/groups", {"name": "Team"})["group"]["groupId"]
        of["hook"] = ok("POST", "/api/v1/webhooks", HOOK)["webhook"]["id"]
        ok("PUT", f"/api/v1/config-policies/workspaces/{of['ws']}/EXPERIMENT", {"workloadType": "EXPERIMENT", "workspaceId": of["ws"],
           "configPolicies": json.dumps({"constraints": {"priority_limit": 10, "resources": {"max_slots": 4}}})})
        of["job"] = ok("GET", f"/api/v1/experiments/{of['managed']}")["experiment"]["jobId"]
        of["over"] = create(unmanaged=True)
        ended = ok("POST", "/api/v1/trials", {"experimentId": of["over"], "unmanaged": True, "hparams": {}})["trial"]["id"]
        ok("POST", f"/api/v1/trials/{ended}/start", {"trialId": ended, "resume": False})
        ok("PATCH", f"/api/v1/trials/{ended}", {"trialId": ended, "state": "STATE_COMPLETED"})
        wait_for(lambda: ok("GET", f"/api/v1/experiments/{of['over']}")["experiment"]["state"] == "STATE_COMPLETED", 30)
        self.of = of
        wait_for(lambda: ok("GET", f"/api/v1/trials/{of['mtrial']}")["trial"]["state"].endswith("RUNNING"), 30)

    def ok(self, method, path, body=None):
        status, said = self.line.ask(method, path, self.by, body)
        assert status == 200, (method, path, body, status, said)
        return json.loads(said)

    def sequence(self):
        with urllib.request.urlopen(urllib.request.Request(self.url() + f"/troupe/v1/experiments/{self.of['paused']}/outcome", headers=self.by)) as answer:
            return int(answer.headers["Troupe-Sequence"])


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("bad"))
    try:
        house.begin()
        yield house
    finally:
        house.close()


def names(of):
    """Requests with bad names for everything that has a name: blank, too long, with a control character, or taken in another case."""
    post_model = lambda name: ("POST", "/api/v1/models", {"name": name})
    for what, ask, taken in [
            ("workspace", lambda name: ("POST", "/api/v1/workspaces", {"name": name}), "vISION"),
            ("workspace again", lambda name: ("PATCH", f"/api/v1/workspaces/{of['ws']}", {"name": name}), "oLD"),
            ("project", lambda name: ("POST", f"/api/v1/workspaces/{of['ws']}/projects", {"name": name}), "cATS"),
            ("project again", lambda name: ("PATCH", f"/api/v1/projects/{of['project']}", {"name": name}), "dOGS"),
            ("model", post_model, "nET"), ("model again", lambda name: ("PATCH", "/api/v1/models/Net", {"name": name}), "sHUT"),
            ("user", lambda name: ("POST", "/api/v1/users", {"user": {"username": name, "active": True}}), "mARIA"),
            ("user again", lambda name: ("PATCH", f"/api/v1/users/{of['user']}", {"username": name}), "aDMIN"),
            ("display name", lambda name: ("PATCH", f"/api/v1/users/{of['user']}", {"displayName": name or " "}), "aDMIN"),
            ("group", lambda name: ("POST", "/api/v1/groups", {"name": name}), "tEAM"),
            ("template", lambda name: ("POST", "/api/v1/templates/" + (urllib.parse.quote(name) or "%20"), {"name": name, "config": {}}), None),
            ("template again", lambda name: ("PATCH", "/api/v1/template/rename", {"oldName": "Base", "newName": name}), "Wrong"),
            ("webhook", lambda name: ("POST", "/api/v1/webhooks", {**HOOK, "name": name}), "hook"),
            ("experiment", lambda name: ("PATCH", f"/api/v1/experiments/{of['paused']}", {"name": name}), None),
            ("version", lambda name: ("PATCH", "/api/v1/models/Net/versions/1", {"name": name}), None)]:
        for kind, name in (("blank", "  "), ("empty", ""), ("81 characters", LONG), ("a control character", CONTROL)):
            if kind == "empty" and what in ("display name", "version"):  # For these two an empty text means no name.
                continue
            yield f"{what}: {kind}", *ask(name), 400, ""
        if taken:
            yield f"{what}: taken in another case", *ask(taken), (400, 409), ""


def unknown(of):
    for path in ("experiments/77", "experiments/77/trials", "experiments/77/checkpoints", "trials/77", "trials/77/logs", "tasks/no-such", "checkpoints/00000000-0000-4000-8000-00000000dead", "models/nothing",
                 "models/Net/versions/77", "templates/nothing", "workspaces/77", "projects/77", "projects/key/ZZZZZ", "groups/77", "users/77", "users/nobody/by-username", "agents/nobody", "allocations/77.1",
                 "commands/no-such", "notebooks/no-such", "shells/no-such", "tensorboards/no-such", "roles/search/by-group/77", "runs/77/metadata",
                 "experiments?projectId=77", "experiment/labels?projectId=77"):
        yield f"unknown: {path}", "GET", "/api/v1/" + path, None, 404, ""
    for method, path, body in (("PATCH", "experiments/77", {"notes": "x"}), ("POST", "experiments/77/kill", None), ("POST", "experiments/77/move", {"experimentId": 77, "destinationProjectId": of["other"]}),
                               ("POST", f"experiments/{of['paused']}/move", {"experimentId": of["paused"], "destinationProjectId": 77}), ("DELETE", "experiments/77", None), ("POST", "trials/77/kill", None),
                               ("PATCH", "workspaces/77", {"name": "y"}), ("POST", "workspaces/77/projects", {"name": "y"}), ("PATCH", "projects/77", {"name": "y"}), ("DELETE", "projects/77", None),
                               ("POST", f"projects/{of['project']}/move", {"projectId": of["project"], "destinationWorkspaceId": 77}), ("PATCH", "models/nothing", {"description": "x"}),
                               ("POST", "models/nothing/versions", {"modelName": "nothing", "checkpointUuid": of["whole"]}), ("DELETE", "models/Net/versions/77", None),
                               ("POST", "models/Net/move", {"modelName": "Net", "destinationWorkspaceId": 77}), ("PATCH", "templates/nothing", {}), ("DELETE", "templates/nothing", None),
                               ("PATCH", "template/rename", {"oldName": "nothing", "newName": "y"}), ("PATCH", "webhooks/77", {"url": "http://127.0.0.1/"}), ("DELETE", "webhooks/77", None), ("POST", "webhooks/77/test", {}),
                               ("PUT", "groups/77", {"name": "y"}), ("DELETE", "groups/77", None), ("PATCH", "users/77", {"displayName": "y"}), ("POST", "users/77/password", "x"), ("PATCH", "tokens/77", {"tokenId": 77, "setRevoked": True}),
                               ("POST", "roles/search/by-ids", {"roleIds": [77]}), ("POST", "agents/nobody/disable", {}), ("POST", "experiments/continue", {"id": 77}), ("POST", "runs/77/metadata", {"runId": 77, "metadata": {}}),
                               ("POST", "checkpoints/rm", {"checkpointUuids": ["00000000-0000-4000-8000-00000000dead"], "checkpointGlobs": ["*"]}), ("POST", "trials/77/start", {"trialId": 77, "resume": False}),
                               ("POST", "commands/no-such/kill", None), ("POST", "tensorboards", {"experimentIds": [77]}), ("POST", "trials", {"experimentId": 77, "unmanaged": True}),
                               ("POST", "experiments-search", {"projectId": 77}), ("POST", "runs", {"projectId": 77})):
        yield f"unknown: {method} {path}", method, "/api/v1/" + path, body, 404, ""
    yield "lines for no task", "POST", "/task-logs", [{"log": "x"}], 400, "taskId: has to name a task"
    for task in ("7.00000000-0000-4000-8000-000000000077", "40000000-0000-4000-8000-000000000077", "no-such"):
        yield f"lines for {task}", "POST", "/task-logs", [{"task_id": task, "log": "x"}], 404, f"task '{task}' not found"


def places(of):
    for what, method, path, body in (
            ("a project in an archived workspace", "POST", f"/api/v1/workspaces/{of['old']}/projects", {"name": "y"}), ("its project", "PATCH", f"/api/v1/projects/{of['inold']}", {"name": "y"}),
            ("its project back", "POST", f"/api/v1/projects/{of['inold']}/unarchive", None), ("a name of it", "PATCH", f"/api/v1/workspaces/{of['old']}", {"name": "y"}),
            ("an experiment into it", "POST", "/api/v1/experiments", {"config": json.dumps(CONFIG), "projectId": of["inold"]}),
            ("an experiment into an archived project", "POST", f"/api/v1/experiments/{of['paused']}/move", {"experimentId": of["paused"], "destinationProjectId": of["shelved"]}),
            ("a project into it", "POST", f"/api/v1/projects/{of['other']}/move", {"projectId": of["other"], "destinationWorkspaceId": of["old"]}),
            ("an archived project away", "POST", f"/api/v1/projects/{of['shelved']}/move", {"projectId": of["shelved"], "destinationWorkspaceId": 1}),
            ("a note of it", "POST", f"/api/v1/projects/{of['shelved']}/notes", {"name": "x", "contents": ""}), ("a task in it", "POST", "/api/v1/commands", {"workspaceId": of["old"], "config": {"entrypoint": ["true"]}}),
            ("the first workspace", "PATCH", "/api/v1/workspaces/1", {"name": "y"}), ("it archived", "POST", "/api/v1/workspaces/1/archive", None), ("it gone", "DELETE", "/api/v1/workspaces/1", None),
            ("the first project", "PATCH", "/api/v1/projects/1", {"name": "y"}), ("it archived", "POST", "/api/v1/projects/1/archive", None), ("it gone", "DELETE", "/api/v1/projects/1", None),
            ("it moved", "POST", "/api/v1/projects/1/move", {"projectId": 1, "destinationWorkspaceId": of["ws"]}), ("a project into the immutable", "POST", f"/api/v1/projects/{of['other']}/move", {"projectId": of["other"], "destinationWorkspaceId": 1}),
            ("an archived model", "PATCH", "/api/v1/models/Shut", {"description": "y"}), ("a version of it", "POST", "/api/v1/models/Shut/versions", {"modelName": "Shut", "checkpointUuid": of["whole"]}),
            ("a workspace that owns models", "DELETE", f"/api/v1/workspaces/{of['ws']}", None), ("half an account", "PATCH", f"/api/v1/workspaces/{of['ws']}", {"agentUserGroup": {"agentUid": 1}}),
            ("an unknown pool", "PATCH", f"/api/v1/workspaces/{of['ws']}", {"defaultComputePool": "moon"}), ("half a storage", "PATCH", f"/api/v1/workspaces/{of['ws']}", {"checkpointStorageConfig": {"type": "s3"}}),
            ("a key of six", "PATCH", f"/api/v1/projects/{of['other']}", {"key": "ABCDEF"}), ("a key with a dash", "PATCH", f"/api/v1/projects/{of['other']}", {"key": "A-B"}), ("a key of none", "POST", f"/api/v1/workspaces/{of['ws']}/projects", {"name": "z", "key": " "})):
        yield what, method, path, body, (400, 404) if what == "a task in it" else (400, 409), ""
    yield "a key that is taken", "PATCH", f"/api/v1/projects/{of['other']}", {"key": "cat"}, 409, ""


def registry(of):
    for name in ("7", "a/b", "a\\b", "a  b"):
        yield f"a model named {name}", "POST", "/api/v1/models", {"name": name}, 400, "model names"
        yield f"a model renamed {name}", "PATCH", "/api/v1/models/Net", {"name": name}, 400, "model names"
    yield "a version of half a checkpoint", "POST", "/api/v1/models/Net/versions", {"modelName": "Net", "checkpointUuid": of["part"]}, 400, "COMPLETED"
    yield "a version of nothing", "POST", "/api/v1/models/Net/versions", {"modelName": "Net", "checkpointUuid": "00000000-0000-4000-8000-00000000dead"}, (400, 404), ""
    yield "a template with a wrong key", "POST", "/api/v1/experiments", {"config": json.dumps(CONFIG), "template": "Wrong"}, 400, "slotz"
    yield "the same for a command", "POST", "/api/v1/commands", {"config": {"entrypoint": ["true"], "resouces": {}}, "templateName": "Base"}, 400, "resouces"
    yield "a registered checkpoint", "DELETE", "/api/v1/checkpoints", {"checkpointUuids": [of["whole"]]}, 400, "in the model registry"
    for glob, said in (("", "empty string glob"), ("../x", ".."), ("a/../x", ".."), ("/etc/*", "")):
        yield f"a glob {glob!r}", "POST", "/api/v1/checkpoints/rm", {"checkpointUuids": [of["part"]], "checkpointGlobs": [glob]}, 400, said


def people(of):
    make = lambda **user: ("POST", "/api/v1/users", {"user": {"active": True, **user}})
    for what, user in (("admin", {"username": "admin"}), ("ADMIN", {"username": "ADMIN"}), ("determined", {"username": "determined"}), ("in Cyrillic", {"username": "Мария"}), ("of one letter", {"username": "a"}),
                       ("with half an account", {"username": "half", "agentUserGroup": {"agentUid": 1000, "agentUser": "x"}}), ("with a display name of another's", {"username": "twin", "displayName": "mARIA c"})):
        yield f"a user {what}", *make(**user), (400, 409), ""
    yield "remote with a password", "POST", "/api/v1/users", {"user": {"username": "far", "active": True, "remote": True}, "password": "Secret-123"}, 400, ""
    yield "half an account later", "PATCH", f"/api/v1/users/{of['user']}", {"agentUserGroup": {"agentUid": 1000}}, 400, ""
    for lifespan in ("960h", "-2", "-2h", "soon", "0"):
        yield f"a token of {lifespan}", "POST", "/api/v1/tokens", {"userId": of["user"], "lifespan": lifespan}, 400, ""
    yield "a token of nobody's", "POST", "/api/v1/tokens", {"userId": 77}, 404, ""
    for name in ("DeterminedPersonalGroup", "3DeterminedPersonalGroup"):
        yield f"a group {name}", "POST", "/api/v1/groups", {"name": name}, 400, ""
    yield "a group renamed so", "PUT", f"/api/v1/groups/{of['group']}", {"groupId": of["group"], "name": "1DeterminedPersonalGroup"}, 400, ""
    yield "groups of which one is not there", "PATCH", "/api/v1/users/assignments", {"userIds": [of["user"]], "addGroups": [of["group"], 77], "removeGroups": []}, 404, "group '77' not found"
    yield "a group of nobody", "POST", "/api/v1/groups", {"name": "Ghosts", "addUsers": [77]}, (400, 404), ""
    give = lambda role, **where: {"userRoleAssignments": [{"userId": of["user"], "roleAssignment": {"role": {"roleId": role}, **where}}]}
    yield "a global role for one workspace", "POST", "/api/v1/roles/add-assignments", give(3, scopeWorkspaceId=of["ws"]), 400, ""
    yield "an unknown role", "POST", "/api/v1/roles/add-assignments", give(77), (400, 404), ""
    yield "no role at all", "POST", "/api/v1/roles/add-assignments", {}, 400, ""
    yield "a role in no workspace", "POST", "/api/v1/roles/add-assignments", give(4, scopeWorkspaceId=77), (400, 404), ""
    for limit in (0, 501, -1):
        yield f"{limit} roles", "POST", "/api/v1/roles/search", {"limit": limit}, 400, ""
        yield f"{limit} groups", "POST", "/api/v1/groups/search", {"limit": limit}, 400, ""


def policies(of):
    put = lambda kind, **document: ("PUT", f"/api/v1/config-policies/workspaces/{of['ws']}/{kind}", {"workloadType": kind, "workspaceId": of["ws"], "configPolicies": json.dumps(document)})
    yield "unknown keys of a policy", *put("EXPERIMENT", invariants={}), 400, "invalid experiment config policy"
    yield "unknown keys of its invariant", *put("EXPERIMENT", invariant_config={"slotz": 1}), 400, ""
    yield "unknown keys of tasks'", *put("NTSC", what={}), 400, "invalid ntsc config policy"
    yield "an invariant of tasks", *put("NTSC", invariant_config={"description": "x"}), 400, "not supported"
    yield "an invariant above its own limit", *put("EXPERIMENT", invariant_config={"resources": {"max_slots": 9}}, constraints={"resources": {"max_slots": 3}}), 400, ""
    yield "the type JOB", *put("JOB"), 400, "invalid workload type: JOB"
    yield "no policies", "PUT", f"/api/v1/config-policies/workspaces/{of['ws']}/EXPERIMENT", {"workloadType": "EXPERIMENT"}, 400, "no specified config policies"
    yield "no document", "PUT", f"/api/v1/config-policies/workspaces/{of['ws']}/EXPERIMENT", {"workloadType": "EXPERIMENT", "configPolicies": "[1"}, 400, ""
    beyond = lambda **resources: {"config": json.dumps({**CONFIG, "resources": resources}), "projectId": of["project"], "activate": False}
    yield "a priority above the limit", "POST", "/api/v1/experiments", beyond(priority=3), 400, "requested priority [3] exceeds limit set by admin [10]"
    yield "slots above the limit", "POST", "/api/v1/experiments", beyond(max_slots=5), 400, "requested resources.max_slots [5] exceeds limit set by admin [4]"
    yield "a priority above it later", "PATCH", f"/api/v1/experiments/{of['paused']}", {"resources": {"priority": 3}}, 400, "exceeds limit set by admin"
    yield "slots above it later", "PATCH", f"/api/v1/experiments/{of['paused']}", {"resources": {"maxSlots": 5}}, 400, "exceeds limit set by admin"


def webhooks(of):
    post = lambda **more: ("POST", "/api/v1/webhooks", {**HOOK, "name": "more", **more})
    yield "no trigger", *post(triggers=[]), 400, "at least one trigger required"
    for url in ("ftp://a/b", "", "x", "http://", "file:///etc/passwd", "http://a b/"):
        yield f"a webhook to {url!r}", *post(url=url), 400, "valid url required"
        yield f"later to {url!r}", "PATCH", f"/api/v1/webhooks/{of['hook']}", {"url": url}, 400, "valid url required"
    for what, regex in (("a broken expression", "("), ("an empty one, which every line matches", ""), ("one that refers back", "(a)\\1"), ("one of 4097 characters", "a" * 4097), ("a bomb", "((a{1000}){1000}){1000}")):
        yield what, "POST", "/api/v1/webhooks", {**LOG_HOOK(regex), "name": "more"}, 400, ""
    yield "two conditions", *post(triggers=[{"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": "a", "state": "COMPLETED"}}]), 400, ""
    yield "no state", *post(triggers=[{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "LOST"}}]), 400, ""
    yield "custom for all", *post(triggers=[{"triggerType": "TRIGGER_TYPE_CUSTOM", "condition": {}}]), 400, "SPECIFIC"
    yield "an unknown workspace", *post(workspaceId=77), 404, ""
    yield "an unknown type", *post(webhookType="WEBHOOK_TYPE_PIGEON"), 400, ""
    yield "an unknown mode", *post(mode="WEBHOOK_MODE_LOUD"), 400, ""


def messages(of):
    put = lambda **said: ("PUT", "/api/v1/master/cluster_message", {"message": "down", "startTime": "2126-01-01T00:00:00Z", **said})
    yield "251 characters", *put(message="x" * 251), 400, ""
    yield "an empty message", *put(message=""), 400, ""
    yield "its end before its start", *put(endTime="2125-01-01T00:00:00Z"), 400, "end"
    yield "its end in the past", *put(startTime="2000-01-01T00:00:00Z", endTime="2001-01-01T00:00:00Z"), 400, ""
    yield "end and duration", *put(endTime="2127-01-01T00:00:00Z", duration="1h"), 400, ""
    yield "a duration of soon", *put(duration="soon"), 400, ""
    for start in ("soon", "2126-01-01T00:00:00+99:00", "2126-01-01T00:00:00-01:60", "2126-02-30T00:00:00Z"):
        yield f"a start of {start}", *put(startTime=start), 400, ""


def filters(of):
    whole = lambda node: json.dumps({"filterGroup": node, "showArchived": True})
    group = lambda *children: {"kind": "group", "conjunction": "and", "children": list(children)}
    field = lambda **more: group({"kind": "field", "columnName": "id", "location": "LOCATION_TYPE_EXPERIMENT", "operator": "=", "value": 1, "type": "COLUMN_TYPE_NUMBER", **more})
    deep = group()
    for _ in range(100):
        deep = group(deep)
    for what, text in (("no JSON", "{"), ("(", "("), ("a list", "[]"), ("100 levels", whole(deep)), ("unknown operator", whole(field(operator="~"))), ("unknown column", whole(field(columnName="moon"))),
                       ("unknown location", whole(field(location="LOCATION_TYPE_MOON"))), ("unknown kind", whole({"kind": "moon"})), ("no conjunction", whole({"kind": "group", "children": []})),
                       ("an operator that is missing", whole(group({"kind": "field", "columnName": "id", "value": 1}))), ("showArchived of a text", json.dumps({"filterGroup": group(), "showArchived": "yes"})), ("many", whole(group(*[{"kind": "group", "conjunction": "and", "children": []}] * 600)))):
        for path in ("/api/v1/experiments-search", "/api/v1/runs"):
            yield f"{path} filter: {what}", "POST", path, {"filter": text}, 400, "invalid filter"
        yield f"runs/kill filter: {what}", "POST", "/api/v1/runs/kill", {"filter": text, "projectId": of["project"]}, 400, "invalid filter"
    for path in ("/api/v1/experiments-search", "/api/v1/runs"):
        for sort, said in (("id=up", "invalid sort direction"), ("a=up", "invalid sort direction"), ("moon=asc", "invalid sort col"), ("id", "invalid sort parameter")):
            yield f"{path} sort {sort}", "POST", path, {"sort": sort}, 400, said
        yield f"{path} limit -3", "POST", path, {"limit": -3}, 400, "limit"
        yield f"{path} limit 2^31", "POST", path, {"limit": 1 << 31}, 400, "limit"
    for path in ("experiments?limit=-3", "models?limit=-3", "users?limit=-3", "workspaces?limit=-3", "templates?limit=-3", "experiments?limit=x", "experiments?sortBy=moon", "experiments?limit=9223372036854775808",
                 f"experiments/{of['outside']}/trials?limit=-3", f"experiments/{of['outside']}/checkpoints?limit=-3", f"workspaces/{of['ws']}/projects?limit=-3", "job-queues-v2?limit=-3", "commands?limit=-3", "agents?limit=-3",
                 "experiments?states=LOST", "tokens?limit=-3", f"trials/{of['trial']}/checkpoints?limit=-3", "models/Net/versions?limit=-3",
                 "models?id=abc", "model/labels?workspaceId=x", "experiments?limit=2147483648", "models?offset=-2147483649", "trials/time-series?trialIds=x&metricNames=a&group=b", "workspaces?pinned=maybe"):
        yield path, "GET", "/api/v1/" + path, None, 400, ""


def numbers(of):
    for name in ("x", "-1", "0", "1.5", str(BIG), str(1 << 64), "1e3", "%20", "１"):
        for path in ("experiments", "trials", "workspaces", "projects", "users", "groups"):
            yield f"{path}/{name}", "GET", f"/api/v1/{path}/{urllib.parse.quote(name, safe='%')}", None, (400, 404), ""
        for method, path in (("POST", f"experiments/{name}/kill"), ("DELETE", f"experiments/{name}"), ("DELETE", f"webhooks/{name}"), ("POST", f"trials/{name}/kill"), ("DELETE", f"projects/{name}"), ("PATCH", f"tokens/{name}")):
            yield f"{method} {path}", method, "/api/v1/" + urllib.parse.quote(path, safe="%/"), {} if method == "PATCH" else None, (400, 404), ""
    for name in ("x1", "-1", "+1", "1x", "1.0", "0", str(BIG), "１"):
        for method, body in (("GET", None), ("PATCH", {"comment": "x"}), ("DELETE", None)):
            yield f"{method} version {name}", method, "/api/v1/models/Net/versions/" + urllib.parse.quote(name), body, 404, ""
    for what, value in (("2^63", BIG), ("2^63 as a text", str(BIG)), ("2^64", 1 << 64), ("a text", "x"), ("a fraction", 1.5), ("-1", -1), ("a list", [1])):
        yield f"destination {what}", "POST", f"/api/v1/experiments/{of['paused']}/move", {"experimentId": of["paused"], "destinationProjectId": value}, (400, 404), ""
        yield f"continue of {what}", "POST", "/api/v1/experiments/continue", {"id": value}, (400, 404), ""
        yield f"ids {what}", "POST", f"/api/v1/projects/{of['project']}/experiments/kill", {"projectId": of["project"], "experimentIds": [of["paused"], value]}, 400, "experimentIds[1]: has to be a number above 0 and below 2^63"
        yield f"runs {what}", "POST", "/api/v1/runs/kill", {"projectId": of["project"], "runIds": [of["trial"], value]}, 400, "runIds[1]: has to be a number above 0 and below 2^63"
        yield f"days {what}", "PUT", f"/api/v1/experiments/{of['paused']}/retain_logs", {"experimentId": of["paused"], "numDays": {"-1": -2}.get(what, value)}, 400, "numDays"
    for flag, path in (("archived=maybe", "experiments"), ("archived=2", "workspaces/1/projects"), ("active=-", "users"), ("follow=yes", f"trials/1/logs")):
        yield flag, "GET", f"/api/v1/{path}?{flag}", None, 400, "has to be true or false"
    many = list(range(1000, 101000))
    yield "100,000 experiments", "POST", f"/api/v1/projects/{of['project']}/experiments/kill", {"projectId": of["project"], "experimentIds": many}, 400, ""
    yield "100,000 runs", "POST", "/api/v1/runs/kill", {"projectId": of["project"], "runIds": many}, 400, ""
    yield "100,000 users", "PATCH", "/api/v1/users", {"userIds": many, "activate": True}, 400, ""
    yield "100,000 checkpoints", "DELETE", "/api/v1/checkpoints", {"checkpointUuids": [f"00000000-0000-4000-8000-{one:012d}" for one in range(20000)]}, (400, 404, 413), ""
    yield "ids and a filter", "POST", "/api/v1/runs/kill", {"projectId": of["project"], "runIds": [1], "filter": json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": []}})}, 400, "if filter is provided run id list must be empty"


def work(of):
    deep = 1
    for _ in range(11):
        deep = {"a": deep}
    for what, metadata in (("1,001 keys", {f"k{n}": 1 for n in range(1001)}), ("depth 11", deep), ("a text of 5,001", {"a": "x" * 5001}), ("a key of 51", {"k" * 51: 1}), ("a list of 101", {"a": [1] * 101}), ("a list", [1])):
        yield f"metadata: {what}", "POST", f"/api/v1/runs/{of['trial']}/metadata", {"runId": of["trial"], "metadata": metadata}, 400, ""
    yield "a name and a priority above the limit", "PATCH", f"/api/v1/experiments/{of['paused']}", {"name": "other", "resources": {"priority": 3}}, 400, "exceeds limit set by admin"
    yield "slots and a blank name", "PATCH", f"/api/v1/experiments/{of['paused']}", {"name": " ", "resources": {"priority": 50}}, 400, "must not be an empty"
    yield "resources of an ended one", "PATCH", f"/api/v1/experiments/{of['over']}", {"name": "other", "resources": {"priority": 50}}, 404, "has ended"
    yield "resources of an unmanaged one", "PATCH", f"/api/v1/experiments/{of['outside']}", {"resources": {"priority": 50}}, 409, "is unmanaged"
    yield "no metadata", "POST", f"/api/v1/checkpoints/{of['whole']}/metadata", {}, 400, "is missing"
    yield "a checkpoint without metadata", "POST", f"/api/v1/checkpoints/{of['whole']}/metadata", {"checkpoint": {"uuid": of["whole"]}}, 400, "is missing"
    yield "continue of an unmanaged one", "POST", "/api/v1/experiments/continue", {"id": of["over"]}, 400, "is unmanaged"
    yield "continue of a running one", "POST", "/api/v1/experiments/continue", {"id": of["managed"]}, 400, "try again later"
    yield "delete of a running one", "DELETE", f"/api/v1/experiments/{of['managed']}", None, 400, "cannot delete experiment in"
    yield "archive of a running one", "POST", f"/api/v1/experiments/{of['managed']}/archive", None, 400, ""
    yield "a trial of a managed one", "POST", "/api/v1/trials", {"experimentId": of["managed"], "unmanaged": True}, 400, "trials can only be created on unmanaged experiments"
    for method, path, body in (("PATCH", f"trials/{of['mtrial']}", {"trialId": of["mtrial"], "state": "STATE_COMPLETED"}), ("POST", f"trials/{of['mtrial']}/start", {"trialId": of["mtrial"], "resume": False}),
                               ("POST", f"trials/{of['mtrial']}/metrics", {"group": "training", "metrics": {"trialId": of["mtrial"], "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"x": 1}}}}),
                               ("POST", f"trials/{of['mtrial']}/progress", {"progress": 1})):
        yield f"unmanaged: {method} {path}", method, "/api/v1/" + path, body, (400, 403), ""
    for path, body in (("trials/{}/metrics", lambda of_trial: {**of_trial, "group": "training"}), ("trials/{}/training_metrics", lambda of_trial: of_trial.get("metrics"))):
        report = {"metrics": {"trialId": of["trial"], "trialRunId": 1, "stepsCompleted": -1, "metrics": {"avgMetrics": {"x": 1}}}}
        yield f"steps below 0 to {path}", "POST", "/api/v1/" + path.format(of["trial"]), body(report), 400, "stepsCompleted: has to be 0 or more"
    yield "a checkpoint of steps below 0", "POST", "/api/v1/checkpoints", {"taskId": of["task"], "uuid": "00000000-0000-4000-8000-000000000009", "state": "STATE_COMPLETED", "training": {},
        "resources": {}, "metadata": {"steps_completed": -1}, "reportTime": "2026-01-01T00:00:00Z"}, 400, "steps_completed: has to be 0 or more"
    yield "started twice", "POST", f"/api/v1/trials/{of['trial']}/start", {"trialId": of["trial"], "resume": False}, 400, "trial has already been started"
    yield "a state of no kind", "PATCH", f"/api/v1/trials/{of['trial']}", {"trialId": of["trial"], "state": "STATE_LOST"}, 400, ""
    yield "a name without `unmanaged`", "PUT", "/api/v1/experiments/by-external-id/x", {"config": json.dumps(CONFIG)}, 400, "unmanaged"
    for name in (CONTROL, "  ", "x" * 256):
        yield f"an external id {name[:3]!r}", "PUT", f"/api/v1/experiments/by-external-id/{urllib.parse.quote(name)}", {"config": json.dumps(CONFIG), "unmanaged": True}, 400, "external id"
        yield f"a trial's external id {name[:3]!r}", "PUT", "/api/v1/trials", {"externalTrialId": name, "createTrialRequest": {"experimentId": of["outside"], "unmanaged": True}}, 400, "external id"
    for name in (CONTROL, "  ", LONG):
        yield f"a name beside the configuration {name[:3]!r}", "POST", "/troupe/v1/experiments", {"config": json.dumps(CONFIG), "name": name, "activate": False}, 400, "name"
    for key in (CONTROL, "k\0z", "  ", "x" * 256, "external/f"):
        yield f"a submitter's key {key[:3]!r}", "POST", "/troupe/v1/experiments", {"config": json.dumps(CONFIG), "key": key, "activate": False}, 400, "the key"
        if not key.startswith("external"):
            yield f"a key of a task {key[:3]!r}", "POST", "/troupe/v1/tasks", {"kind": "command", "config": {"entrypoint": ["true"]}, "key": key, "preview": True}, 400, "the key"
    for parent in (-1, 0):
        yield f"a fork of {parent}", "POST", "/api/v1/experiments", {"config": json.dumps(CONFIG), "parentId": parent, "activate": False}, 400, "parentId"
    yield "a fork into an unmanaged one", "POST", "/api/v1/experiments", {"config": json.dumps(CONFIG), "unmanaged": True, "parentId": of["paused"]}, 400, "can't fork into an unmanaged experiment"
    for what, resources in (("weight 0", {"weight": 0}), ("weight NaN", {"weight": "NaN"}), ("weight -1", {"weight": -1}), ("priority 0", {"priority": 0}), ("priority 100", {"priority": 100}), ("max_slots -1", {"maxSlots": -1})):
        yield f"PATCH: {what}", "PATCH", f"/api/v1/experiments/{of['paused']}", {"resources": resources}, 400, ""
        if what != "weight 0":  # On our own route a weight of 0 is allowed: the job gets slots that nobody else wants.
            yield f"resources: {what}", "POST", f"/troupe/v1/experiments/{of['paused']}/resources", resources, 400, ""
    for what, update in (("weight 0", {"weight": 0}), ("weight NaN", {"weight": "NaN"}), ("priority 0", {"priority": 0}), ("priority 100", {"priority": 100}), ("an unknown pool", {"sourceResourcePool": "moon", "resourcePool": "moon"})):
        yield f"queue: {what}", "POST", "/api/v1/job-queues", {"updates": [{"jobId": of["job"], **update}]}, 400, ""
    for what, more in (("weight: NaN", {"weight": "NaN"}), ("priority: 0", {"priority": 0}), ("priority: 100", {"priority": 100})):
        yield f"a submission with {what}", "POST", "/api/v1/experiments", {"config": json.dumps({**CONFIG, "resources": more}), "activate": False}, 400, ""
    for entrypoint in ("", " ", [], [" ", "a"]):
        yield f"a submission with the entrypoint {entrypoint!r}", "POST", "/api/v1/experiments", {"config": json.dumps({**CONFIG, "entrypoint": entrypoint}), "activate": False}, 400, "entrypoint"
    yield "a policy with a blank entrypoint", "PUT", "/api/v1/config-policies/global/EXPERIMENT", {"workloadType": "EXPERIMENT", "configPolicies": json.dumps({"invariant_config": {"entrypoint": " "}})}, 400, "names no program"
    for what, second in (("a weight that is too large", {"weight": 1e308}), ("an update that sets nothing", {})):
        yield f"queue: {what} as the second", "POST", "/api/v1/job-queues", {"updates": [{"jobId": of["job"], "priority": 7}, {"jobId": of["job"], **second}]}, 400, "updates"
    for path in ("", "../x", "/etc/passwd", "a\\..\\b", "a\0b", "nothing"):
        yield f"the file {path!r}", "POST", f"/api/v1/experiments/{of['paused']}/file", {"experimentId": of["paused"], "path": path}, (400, 404), ""
    yield "half a resource", "POST", "/api/v1/trials/profiler/metrics", {"batches": [{"values": [1, 2], "batches": [1], "timestamps": ["2026-01-01T00:00:00Z"], "labels": {"trialId": of["trial"], "name": "x"}}]}, 400, ""
    yield "a margin of 101", "GET", f"/api/v1/experiments/{of['outside']}/metrics-stream/trials-snapshot?metricName=a&group=b&batchesProcessed=1&batchesMargin=101", None, 400, "margin must be <= 100"
    yield "batches below 0", "GET", f"/api/v1/experiments/{of['outside']}/metrics-stream/trials-snapshot?metricName=a&group=b&batchesProcessed=-1", None, 400, "batchesProcessed has to be 0 or more"
    yield "no metric", "GET", f"/api/v1/experiments/{of['outside']}/metrics-stream/batches", None, 400, ""
    yield "no experiments", "GET", "/api/v1/experiments/metrics-stream/metric-names", None, 400, "must specify at least one experiment id"
    yield "a period of a week", "GET", "/api/v1/resources/allocation/aggregated?startDate=2026-01-01&endDate=2026-02-01&period=WEEKLY", None, 400, ""
    yield "start after end", "GET", "/api/v1/resources/allocation/aggregated?startDate=2026-02-01&endDate=2026-01-01&period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY", None, 400, ""
    yield "the master's other settings", "PATCH", "/api/v1/master/config", {"config": {"security": {}}, "fieldMask": {"paths": ["security"]}}, 400, ""
    yield "a default pool bound", "POST", "/api/v1/resource-pools/default/workspace-bindings", {"resourcePoolName": "default", "workspaceIds": [of["ws"]]}, 400, "cannot be bound"
    yield "an unknown pool bound", "POST", "/api/v1/resource-pools/moon/workspace-bindings", {"resourcePoolName": "moon", "workspaceIds": [of["ws"]]}, (400, 404), ""


FAMILIES = [names, unknown, places, registry, people, policies, webhooks, messages, filters, numbers, work]


def settled(house):
    before = house.sequence()
    time.sleep(1)
    return house.sequence() == before


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_it_is_refused_with_a_sentence_and_nothing_changes(house, family):
    wait_for(lambda: settled(house), 20)  # The setup of the house may still write a fact.
    wrong, before = [], house.sequence()
    for what, method, path, body, wanted, said in family(house.of):
        try:
            status, text = house.line.ask(method, path, house.by, body)
        except TimeoutError:
            house.line.close()
            status, text = 0, "no answer in 120 s"
        fine = status in (wanted if isinstance(wanted, tuple) else (wanted,)) and said in text
        if fine and status >= 400:
            answer = json.loads(text)
            fine = len(answer["message"]) > 8 and answer["error"]["error"] == answer["message"] and len(text) < 2000
        if (now := house.sequence()) != before:
            wrong.append(("it changed something", what))
            before = now
        if not fine:
            wrong.append((what, method, path[:120], json.dumps(body)[:200], status, text[:300]))
    assert not wrong, f"{len(wrong)} of {sum(1 for _ in family(house.of))}\n" + "\n".join(map(str, wrong))
