"""Asks every route with every kind of credential, under both forms of rights. The answers stand in test/data/access_table.txt, which is
reviewed as text. ACCESS_TABLE=write writes that file anew.

A route that changes things is asked with a body that is refused only after the rights were checked, or on things that the change does not
harm.
"""

import concurrent.futures
import difflib
import itertools
import json
import os
import pathlib
import re

import pytest

from people_and_things import CONFIG, SETS, Line, World, filled

TOP = pathlib.Path(__file__).parents[2]
TABLE = TOP / "test" / "data" / "access_table.txt"
ROUTES = json.loads((TOP / "docs" / "openapi.json").read_text())["paths"]
LAST = ("POST /troupe/v1/shutdown",)
# These are left out: one takes over the connection, one answers everybody with the same long text, and two count failures for the
# address, which is the same for all clients here.
APART = {"GET /stream", "GET /troupe/v1/openapi.json", "POST /api/v1/auth/login", "POST /troupe/v1/session"}
ENDS_A_LOGIN = ("POST /api/v1/auth/logout", "DELETE /troupe/v1/session")
HEAD = """\
# What each route answers to each credential: test/cluster/test_access_table.py asks, and writes this with ACCESS_TABLE=write.
#
# void     the same for: no token, garbage, an expired login, one that was logged out, a revoked access token, a login of a deactivated
#          user, and a token of an allocation that was never there
# other    a user without any role                          admin    the administrator (rbac: ClusterAdmin)
# viewer   rbac: Viewer of the workspace of alpha and beta  own      the token of a trial of ann's, for what is its own
# editor   rbac: Editor there                               ann's    the same, for other things of its owner's
# owner    made alpha and beta, Editor there                eve's    the same, for things of another user in another workspace
# token    an access token of the owner
# command  the token of a command of the owner
# boss     made the workspace (rbac: its WorkspaceAdmin)
#
# In basic authorization the roles of viewer and editor do not count.
# All but ann's and eve's ask for things of the set alpha. Letters say of which sets an answer of 200 speaks: a(lpha), b(eta), g(amma). Of actions on
# lists: `-` not found, `!` denied, `?` refused for another reason, for the one that is named.
"""


def experiments(of, at="ended", **more):
    return {"projectId": of["project"], "experimentIds": [of[at]], **more}


def runs(of, at="ended_trial", **more):
    return {"projectId": of["project"], "runIds": [of[at]], **more}


def roles_of(w, of):
    return {"userRoleAssignments": [{"userId": w.users["vic"], "roleAssignment": {"role": {"roleId": 4}, "scopeWorkspaceId": of["workspace"]}}]}


NUMBER = itertools.count(1)
LAUNCH = {"config": {"entrypoint": ["true"], "resources": {"slots": 90000}}}
METRICS = lambda of, at: {"trialId": of[at], "trialRunId": 1, "stepsCompleted": 2, "metrics": {"avgMetrics": {"loss": 1.5}}}
LINES = lambda of: [{"task_id": of["task"], "timestamp": "2026-01-01T00:00:00+00:00", "log": "x\n"}]
# Bodies for routes that change things; all other routes are asked with {}.
BODIES = {
    "POST /api/v1/agents/{agentId}/disable": lambda w, of: {"drain": True},
    "POST /api/v1/agents/{agentId}/slots/{slotId}/disable": lambda w, of: {"drain": True},
    "DELETE /api/v1/checkpoints": lambda w, of: {"checkpointUuids": [of["checkpoint"]]},  # It is registered, so that it stays.
    "PATCH /api/v1/checkpoints": lambda w, of: {"checkpoints": [{"uuid": of["checkpoint"], "resources": {"resources": {f"{of['name']}-file": "3"}}}]},
    "POST /api/v1/checkpoints": lambda w, of: {"allocationId": of["allocation"], "taskId": of["task"], "uuid": of["checkpoint"], "state": "STATE_COMPLETED", "training": {},
                                               "reportTime": "2026-01-01T00:00:00.000001+00:00", "resources": {f"{of['name']}-file": "3"}, "metadata": {"steps_completed": 1}},
    "POST /api/v1/checkpoints/rm": lambda w, of: {"checkpointUuids": [of["checkpoint"]], "checkpointGlobs": ["*"]},
    "POST /api/v1/checkpoints/{checkpointUuid}/metadata": lambda w, of: {"checkpoint": {"uuid": of["checkpoint"], "metadata": {"steps_completed": 1}}},
    "POST /api/v1/experiments": lambda w, of: {"config": CONFIG.format(name="new"), "projectId": of["project"], "activate": False},
    "POST /api/v1/experiments-search": lambda w, of: {"limit": -1},
    "PUT /api/v1/experiments/by-external-id/{externalExperimentId}": lambda w, of: {"config": CONFIG.format(name=of["name"]), "projectId": of["project"], "unmanaged": True},
    "POST /api/v1/experiments/continue": lambda w, of: {"id": of["experiment"]},
    "PATCH /api/v1/experiments/{experimentId}": lambda w, of: {"notes": of["name"]},
    "POST /api/v1/experiments/{experimentId}/file": lambda w, of: {"path": of["name"] + ".py"},
    "POST /api/v1/experiments/{experimentId}/move": lambda w, of: {"experimentId": of["experiment"], "destinationProjectId": of["project"]},
    "PUT /api/v1/experiments/{experimentId}/retain_logs": lambda w, of: {"numDays": -1},
    "POST /api/v1/generic-tasks": lambda w, of: {"config": json.dumps({"entrypoint": ["true"], "resources": {"slots": 90000}}), "contextDirectory": [], "projectId": of["project"]},
    "POST /api/v1/groups": lambda w, of: {"name": "DeterminedPersonalGroup"},
    "POST /api/v1/groups/search": lambda w, of: {"limit": 500},
    "PUT /api/v1/groups/{groupId}": lambda w, of: {"groupId": of["group"], "name": f"{of['name']}-group"},
    "POST /api/v1/job-queues": lambda w, of: {"updates": [{"jobId": of["job"], "priority": 42}]},
    "PUT /api/v1/master/cluster_message": lambda w, of: {"message": "x" * 251, "startTime": "2026-01-01T00:00:00Z"},
    "POST /api/v1/models": lambda w, of: {"name": "7", "workspaceId": of["workspace"]},
    "PATCH /api/v1/models/{modelName}": lambda w, of: {"description": of["name"]},
    "POST /api/v1/models/{modelName}/move": lambda w, of: {"modelName": of["model"], "destinationWorkspaceId": of["workspace"]},
    "POST /api/v1/models/{modelName}/versions": lambda w, of: {"modelName": of["model"], "checkpointUuid": of["checkpoint"]},
    "PATCH /api/v1/models/{modelName}/versions/{modelVersionNum}": lambda w, of: {"comment": of["name"]},
    "PUT /api/v1/notebooks/{taskId}/report_idle": lambda w, of: {"idle": True},
    "POST /api/v1/preview-hp-search": lambda w, of: {"config": CONFIG.format(name="x")},
    "PATCH /api/v1/projects/{id}": lambda w, of: {"description": of["name"]},
    "POST /api/v1/projects/{projectId}/move": lambda w, of: {"projectId": of["project"], "destinationWorkspaceId": of["workspace"]},
    "POST /api/v1/projects/{projectId}/notes": lambda w, of: {"name": of["name"], "contents": ""},
    "PUT /api/v1/projects/{projectId}/notes": lambda w, of: {"projectId": of["project"], "notes": []},
    "POST /api/v1/roles/search": lambda w, of: {"limit": 500},
    "POST /api/v1/roles/search/by-assignability": lambda w, of: {"limit": 500, "workspaceId": of["workspace"]},
    "POST /api/v1/roles/search/by-ids": lambda w, of: {"roleIds": [1]},
    "POST /api/v1/roles/add-assignments": roles_of,  # of a Viewer who has the role already: 409
    "POST /api/v1/roles/remove-assignments": lambda w, of: {"userRoleAssignments": [{"userId": w.users["zoe"], "roleAssignment": {"role": {"roleId": 4}, "scopeWorkspaceId": of["workspace"]}}]},
    "POST /api/v1/runs": lambda w, of: {"limit": -1},
    "POST /api/v1/runs/start": lambda w, of: {"runId": of["trial"]},
    "POST /api/v1/runs/{trialId}/metadata": lambda w, of: {"metadata": {"x": of["name"]}},
    "POST /api/v1/task/logs": lambda w, of: {"logs": LINES(of)},
    "POST /task-logs": lambda w, of: LINES(of),
    "PATCH /api/v1/template/rename": lambda w, of: {"oldName": of["template"], "newName": of["template"]},
    "PATCH /api/v1/templates/{templateName}": lambda w, of: {"description": of["name"]},
    "POST /api/v1/templates/{templateName}": lambda w, of: {"name": of["template"], "config": {}, "workspaceId": of["workspace"]},
    "PUT /api/v1/templates/{templateName}": lambda w, of: {"name": of["template"], "config": {"description": of["name"]}, "workspaceId": of["workspace"]},
    "POST /api/v1/tensorboards": lambda w, of: {"experimentIds": [of["experiment"]], "config": {"resources": {"slots": 90000}, "idle_timeout": "soon"}, "workspaceId": of["workspace"]},
    "POST /api/v1/tokens": lambda w, of: {"userId": of["user"], "lifespan": "soon"},
    "PATCH /api/v1/tokens/{tokenId}": lambda w, of: {"tokenId": of["token"], "description": of["name"] + "-token"},
    "POST /api/v1/trial-source-info": lambda w, of: {"trialSourceInfo": {"trialId": of["trial"], "checkpointUuid": of["checkpoint"], "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE"}},
    "POST /api/v1/trials": lambda w, of: {"experimentId": of["experiment"], "unmanaged": True, "hparams": {}},
    "PUT /api/v1/trials": lambda w, of: {"createTrialRequest": {"experimentId": of["ended"], "unmanaged": True, "hparams": {}}, "externalTrialId": of["name"] + "-trial"},
    "POST /api/v1/trials/profiler/metrics": lambda w, of: {"batches": [{"values": [1.0], "batches": [1], "timestamps": ["2026-01-01T00:00:00Z"], "labels": {
        "trialId": of["trial"], "name": "x", "agentId": "x", "gpuUuid": "", "metricType": "PROFILER_METRIC_TYPE_SYSTEM"}}]},
    "PATCH /api/v1/trials/{trialId}": lambda w, of: {"trialId": of["trial"]},
    "POST /api/v1/trials/{trialId}/early_exit": lambda w, of: {"reason": "EXITED_REASON_UNKNOWN_TO_ALL"},
    "POST /api/v1/trials/{trialId}/metrics": lambda w, of: {"group": "training", "metrics": METRICS(of, "trial")},
    "POST /api/v1/trials/{trialId}/progress": lambda w, of: {"progress": 0.5},
    "PUT /api/v1/trials/{trialId}/retain_logs": lambda w, of: {"numDays": -1},
    "POST /api/v1/trials/{trialId}/runner/metadata": lambda w, of: {"state": "x"},
    "POST /api/v1/trials/{trialId}/start": lambda w, of: {"trialId": of["trial"], "resume": False},
    "POST /api/v1/trials/{trialId}/training_metrics": lambda w, of: METRICS(of, "trial"),
    "POST /api/v1/trials/{trialId}/validation_metrics": lambda w, of: METRICS(of, "trial"),
    "PATCH /api/v1/users": lambda w, of: {"userIds": [of["user"]], "activate": True},
    "POST /api/v1/users/activity": lambda w, of: {"activityType": "ACTIVITY_TYPE_GET", "entityType": "ENTITY_TYPE_PROJECT", "entityId": of["project"]},
    "PATCH /api/v1/users/assignments": lambda w, of: {"userIds": [of["user"]], "addGroups": [], "removeGroups": []},
    "POST /api/v1/users/setting": lambda w, of: {"settings": [{"key": "x", "value": "1", "storagePath": "x"}]},
    "PATCH /api/v1/users/{userId}": lambda w, of: {"displayName": of["name"] + "-user"},
    "POST /api/v1/users/{userId}/password": lambda w, of: "x",
    "POST /api/v1/webhooks": lambda w, of: {**w.hook("x", of["workspace"]), "triggers": []},
    "POST /api/v1/webhooks/custom": lambda w, of: {"experimentId": of["experiment"], "trialId": of["trial"], "data": {"title": "x", "description": "x", "level": "LOG_LEVEL_INFO"}},
    "PATCH /api/v1/webhooks/{webhookId}": lambda w, of: {"url": "http://127.0.0.1:1/" + of["name"]},
    "POST /api/v1/workspaces": lambda w, of: {"name": "gamma-workspace"},  # The name is taken.
    "PATCH /api/v1/workspaces/{id}": lambda w, of: {"name": ("gamma" if of["name"] == "gamma" else "alpha") + "-workspace"},
    "POST /api/v1/workspaces/{workspaceId}/projects": lambda w, of: {"name": of["name"] + "-project"},  # The name is taken.
    "PUT /api/v1/config-policies/global/{workloadType}": lambda w, of: {"workloadType": "EXPERIMENT", "configPolicies": "{}"},
    "PUT /api/v1/config-policies/workspaces/{workspaceId}/{workloadType}": lambda w, of: {"workloadType": "EXPERIMENT", "configPolicies": "{}", "workspaceId": of["workspace"]},
    "POST /troupe/v1/experiments": lambda w, of: {"config": CONFIG.format(name="new"), "project": of["project"], "activate": False},
    "POST /troupe/v1/experiments/{experimentId}/resources": lambda w, of: {"priority": 42},
    "POST /troupe/v1/experiments/{experimentId}/searcher/orders": lambda w, of: {"actions": []},
    "POST /troupe/v1/tasks": lambda w, of: {"kind": "command", "workspace": of["workspace"], **LAUNCH},
    "POST /troupe/v1/tasks/{taskId}/set": lambda w, of: {"priority": 42},
    "POST /api/v1/allocations/{allocationId}/all_gather": lambda w, of: {"allocationId": of["allocation"], "requestUuid": "x", "numPeers": 1, "data": {}},
    "POST /api/v1/allocations/{allocationId}/notify_container_running": lambda w, of: {"allocationId": of["allocation"], "requestUuid": "y", "numPeers": 1, "rank": 0, "nodeName": "x", "data": {}},
    "POST /api/v1/allocations/{allocationId}/acceleratorData": lambda w, of: {"allocationId": of["allocation"], "acceleratorData": {}},
    "POST /api/v1/allocations/{allocationId}/proxy_address": lambda w, of: {"allocationId": of["allocation"], "proxyAddress": "127.0.0.1"},
    "POST /troupe/v1/shell/drain": lambda w, of: {"node": "nobody", "on": True},
    "POST /troupe/v1/shell/fault": lambda w, of: {"actor": "nobody", "fault": "crash"},
    "POST /troupe/v1/shell/kill": lambda w, of: {"actor": "nobody"},
    "POST /troupe/v1/shell/restart": lambda w, of: {"actor": "nobody"},
    "POST /troupe/v1/shell/send": lambda w, of: {"actor": "nobody", "message": "x", "fields": {}},
    "POST /troupe/v1/shell/log": lambda w, of: {"level": "aloud"},
    "POST /troupe/v1/shell/config": lambda w, of: {"key": "nothing", "value": 1},
}
for kind in ("commands", "notebooks", "shells"):
    BODIES[f"POST /api/v1/{kind}"] = lambda w, of: {"workspaceId": of["workspace"], **LAUNCH}
for kind in ("commands", "notebooks", "shells", "tensorboards"):
    BODIES[f"POST /api/v1/{kind}/{{taskId}}/set_priority"] = lambda w, of: {"priority": 42}
for verb in ("activate", "cancel", "kill", "pause", "unarchive"):
    BODIES[f"POST /api/v1/projects/{{projectId}}/experiments/{verb}"] = lambda w, of: experiments(of)
BODIES["POST /api/v1/projects/{projectId}/experiments/archive"] = lambda w, of: experiments(of, "experiment")
BODIES["DELETE /api/v1/projects/{projectId}/experiments/delete"] = lambda w, of: experiments(of, "experiment")
BODIES["POST /api/v1/projects/{projectId}/experiments/move"] = lambda w, of: experiments(of, "experiment", destinationProjectId=of["project"])
BODIES["PUT /api/v1/projects/{projectId}/experiments/retain_logs"] = lambda w, of: experiments(of, "experiment", numDays=-1)
for verb in ("kill", "pause", "resume", "unarchive"):
    BODIES[f"POST /api/v1/runs/{verb}"] = lambda w, of: runs(of)
for verb in ("archive", "delete"):
    BODIES[f"POST /api/v1/runs/{verb}"] = lambda w, of: runs(of, "trial")
BODIES["POST /api/v1/runs/move"] = lambda w, of: {"sourceProjectId": of["project"], "destinationProjectId": of["project"], "runIds": [of["trial"]], "skipMultitrial": False}
for verb in ("POST", "PUT", "DELETE"):
    BODIES[f"{verb} /api/v1/resource-pools/{{resourcePoolName}}/workspace-bindings"] = lambda w, of: {"resourcePoolName": "default", "workspaceIds": [of["workspace"]]}

QUERIES = {
    "/troupe/v1/live": lambda of: f"?topics=experiments,experiment/{of['experiment']},logs/{of['trial']},cluster&after=0",
    "/troupe/v1/events": lambda of: "?after=0",
    "/troupe/v1/series": lambda of: f"?trials={of['trial']}&group=validation&metric=loss&x=step",
    "/troupe/v1/logs/search": lambda of: f"?q=line",
    "/resources/allocation/raw": lambda of: "?timestamp_after=2020-01-01T00:00:00Z&timestamp_before=2040-01-01T00:00:00Z",
    "/resources/allocation/allocations-csv": lambda of: "?timestamp_after=2020-01-01T00:00:00Z&timestamp_before=2040-01-01T00:00:00Z",
    "/api/v1/resources/allocation/raw": lambda of: "?timestampAfter=2020-01-01T00:00:00Z&timestampBefore=2040-01-01T00:00:00Z",
    "/resources/allocation/aggregated": lambda of: "?start_date=2026-01-01&end_date=2026-01-02&period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY",
    "/api/v1/resources/allocation/aggregated": lambda of: "?startDate=2026-01-01&endDate=2026-01-02&period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY",
    "/api/v1/trials/time-series": lambda of: f"?trialIds={of['trial']}&metricNames=loss&group=validation",
    "/api/v1/trials/metrics/trial_metrics": lambda of: f"?trialIds={of['trial']}&group=validation",
    "/api/v1/trials/metrics/training_metrics": lambda of: f"?trialIds={of['trial']}",
    "/api/v1/trials/metrics/validation_metrics": lambda of: f"?trialIds={of['trial']}",
    "/api/v1/trials/{trialId}/workloads": lambda of: "?metricType=METRIC_TYPE_VALIDATION",
    "/api/v1/experiments/metrics-stream/metric-names": lambda of: f"?ids={of['experiment']}&periodSeconds=1",
    "/api/v1/experiments/{experimentId}/metrics-stream/batches": lambda of: f"?metricName=loss&group=validation&periodSeconds=1",
    "/api/v1/experiments/{experimentId}/metrics-stream/trials-snapshot": lambda of: "?metricName=loss&group=validation&batchesProcessed=1&periodSeconds=1",
    "/api/v1/experiments/{experimentId}/metrics-stream/trials-sample": lambda of: "?metricName=loss&group=validation&periodSeconds=1",
    "/api/v1/allocations/{allocationId}/signals/preemption": lambda of: "?timeoutSeconds=0",
    "/api/v1/experiments": lambda of: "?limit=-1",
    "/experiments/{experimentId}/preview_gc": lambda of: "?save_experiment_best=0&save_trial_best=0&save_trial_latest=1",
    "/troupe/v1/experiments/{experimentId}/file": lambda of: f"?path={of['name']}.py",
    "/api/v1/master/logs": lambda of: "?limit=5",
    "/troupe/v1/shell/ps": lambda of: "?window=0",
    "/troupe/v1/shell/follow": lambda of: "?actor=nobody",
    "/troupe/v1/shell/trace": lambda of: "?actor=nobody&seconds=1",
}
for look in ("info", "state", "msgs", "links", "messages", "stats", "waits"):
    QUERIES[f"/troupe/v1/shell/{look}"] = lambda of: f"?actor=trial/{of['trial']}"

# When users ask these routes, they name things that the change does not harm. A trial asks them about itself, because it is refused
# there.
ELSEWHERE = {f"POST /api/v1/experiments/{{experimentId}}/{verb}": {"experimentId": "ended"} for verb in ("activate", "cancel", "kill", "pause", "unarchive")} | {
    "POST /api/v1/trials/{trialId}/kill": {"trialId": "ended_trial"},
    "POST /api/v1/commands/{taskId}/kill": {"taskId": "dead"},
    "DELETE /api/v1/projects/{id}": {"id": "spare"},
    "POST /api/v1/users/{userId}/password": {"userId": "victim"},
    "GET /troupe/v1/tasks/{taskId}": {"taskId": "command"},
    "GET /det/interactive/{taskId}": {"taskId": "command"},
    "GET /det/interactive/{taskId}/{rest*}": {"taskId": "command"},
    "POST /troupe/v1/tasks/{taskId}/kill": {"taskId": "generic"},
    "POST /troupe/v1/tasks/{taskId}/set": {"taskId": "generic"},
    "POST /api/v1/tasks/{taskId}/kill": {"taskId": "generic"},
    "POST /api/v1/tasks/{taskId}/pause": {"taskId": "generic"},
    "POST /api/v1/tasks/{taskId}/unpause": {"taskId": "generic"},
    "GET /api/v1/tasks/{taskId}/config": {"taskId": "generic"},
    "GET /troupe/v1/tasks/{taskId}/access": {"taskId": "notebook"},
    "GET /troupe/v1/tasks/{taskId}/services": {"taskId": "command"},
}
SEARCHES = ("POST /api/v1/experiments-search", "POST /api/v1/runs", "POST /api/v1/groups/search")
# Users, agents, slots and the lengths of queues are shown to everybody. A test below checks what the usage tells about others.
SHOWN_TO_ALL = {"GET /api/v1/users", "GET /troupe/v1/usage", "GET /api/v1/agents", "GET /api/v1/job-queues/stats", "GET /api/v1/resource-pools", "GET /troupe/v1/pools", "GET /troupe/v1/status"}
# These routes are asked once more about unmanaged things.
AGAIN = {f"{method} {path}" for method, path in (
    ("POST", "/api/v1/trials/{trialId}/metrics"), ("POST", "/api/v1/trials/{trialId}/progress"), ("POST", "/api/v1/trials/{trialId}/runner/metadata"),
    ("POST", "/api/v1/trials/{trialId}/start"), ("PATCH", "/api/v1/trials/{trialId}"), ("POST", "/api/v1/runs/start"), ("POST", "/api/v1/task/logs"), ("POST", "/task-logs"),
    ("POST", "/api/v1/trials"), ("GET", "/api/v1/trials/{trialId}"), ("GET", "/api/v1/experiments/{experimentId}"))}


def unmanaged(of):
    return {**of, "experiment": of["outside"], "trial": of["outside_trial"], "task": of["outside_task"]}


def mends(w, route, of):
    """Makes again what the route has taken away."""
    name, owner = of["name"], of["owner"]
    if route == "DELETE /api/v1/templates/{templateName}":
        w.ok("POST", f"/api/v1/templates/{of['template']}", {"name": of["template"], "config": {}, "workspaceId": of["workspace"]}, owner)
    elif route == "DELETE /api/v1/webhooks/{webhookId}":
        of["webhook"] = w.ok("POST", "/api/v1/webhooks", w.hook(name, of["workspace"]))["webhook"]["id"]
    elif route == "DELETE /api/v1/groups/{groupId}":
        of["group"] = w.ok("POST", "/api/v1/groups", {"name": f"{name}-group", "addUsers": []})["group"]["groupId"]
    elif route in ("DELETE /api/v1/models/{modelName}", "DELETE /api/v1/models/{modelName}/versions/{modelVersionNum}"):
        if not route.endswith("Num}"):
            w.ok("POST", "/api/v1/models", {"name": of["model"], "workspaceId": of["workspace"], "labels": [f"{name}-label"]}, owner)
        of["checkpoint"] = w.checkpoint(name, of["trial"], of["task"])
        w.ok("POST", f"/api/v1/models/{of['model']}/versions", {"modelName": of["model"], "checkpointUuid": of["checkpoint"], "name": f"{name}-version"}, owner)
    elif route == "DELETE /api/v1/projects/{id}":
        of["spare"] = w.ok("POST", f"/api/v1/workspaces/{of['workspace']}/projects", {"name": f"{name}-spare-{next(NUMBER)}"})["project"]["id"]
    elif route.endswith("/disable"):
        w.ok("POST", filled(route.removeprefix("POST ").replace("/disable", "/enable"), of))
    elif route.endswith("}/archive"):
        w.ok("POST", filled(route.removeprefix("POST ").replace("/archive", "/unarchive"), of))
    elif route == "DELETE /api/v1/experiments/{experimentId}/labels/{label}":
        w.ok("PUT", filled("/api/v1/experiments/{experimentId}/labels/{label}", of))


def every_route():
    routes = [f"{method.upper()} {path}" for path, methods in ROUTES.items() for method in methods]
    order = lambda route: (route in LAST, not route.startswith("GET") and not route.endswith(("-search", "/search", "/runs")), route.startswith("DELETE"))
    return sorted((one for one in routes if one not in APART), key=order)


def request_of(w, route, of, user):
    method, path = route.split(" ", 1)
    other = {key: of["tasks"][at] if at in of["tasks"] else of[at] for key, at in (ELSEWHERE.get(route, {}) if user else {}).items()}
    body = BODIES.get(route, lambda w, of: {})(w, of)
    return method, filled(path, of, **other) + QUERIES.get(path, lambda of: "")(of), None if method == "GET" else body


def cell(status, text):
    if status != 200:
        return str(status)
    try:
        result = json.loads(text).get("results")
        if isinstance(result, list) and result and all(isinstance(one, dict) and "error" in one for one in result):
            errors = " ".join(one["error"] for one in result)
            return "200" + ("-" if "not found" in errors else "!" if "denied" in errors else "?" if errors else "")
    except (ValueError, AttributeError):
        pass
    return "200" + "".join(one[0] for one in SETS if one in text)


def ask(w, line, route, headers, of, user=True):
    method, path, body = request_of(w, route, of, user)
    if route in ENDS_A_LOGIN:  # It ends a login that is made for this request.
        own = next((name for name, login in w.login_of.items() if login == headers and name != "gone"), None)
        headers = {"Authorization": "Bearer " + w.login(own)} if own else headers
    status, text = line.ask(method, path, headers, body)
    if status == 200 and method != "GET":
        mends(w, route, of)
    return status, text


def rows_of(w):
    line = Line(w.url())
    rows = []
    for route in every_route():
        for again in (False, True) if route in AGAIN else (False,):
            things = {name: unmanaged(of) if again else of for name, of in w.things.items()}
            row, void = {}, {}
            for name, headers in w.void.items():
                void[name] = cell(*ask(w, line, route, headers, things["alpha"]))
            if route in ("GET /troupe/v1/shell/events", "GET /troupe/v1/events", "GET /troupe/v1/live"):  # the newest events, of any thing
                cell_of = lambda status, text: str(status)
            else:
                cell_of = cell
            row["void"] = void["none"] if len(set(void.values())) == 1 else ",".join(f"{name}={got}" for name, got in void.items())
            held = list(w.held.items())
            if route in LAST:
                held.sort(key=lambda one: one[0] == "admin")
            for name, (headers, of) in held:
                row[name] = cell_of(*ask(w, line, route, headers, things[of], "Authorization" in headers))
            rows.append((route + (" (unmanaged)" if again else ""), [row[name] for name in ("void", *w.held)]))
    return rows


def text_of(authz, rows, columns):
    width = max(len(route) for route, _ in rows)
    rows = sorted(rows, key=lambda row: row[0].split(" ")[1::-1])
    out = [f"\n## {authz}\n", "".ljust(width) + "  " + "".join(one.ljust(8) for one in columns).rstrip()]
    return "\n".join(out + [route.ljust(width) + "  " + "".join(one.ljust(8) for one in cells).rstrip() for route, cells in rows]) + "\n"


def timeless(text):
    return re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|\+00:00)", "T", text)


def plain(text):
    """The text without moments, and without names of the thing that was asked for."""
    text = timeless(re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "U", text))
    return re.sub(r"\d+(\.\d+)?", "#", re.sub("|".join((*SETS, "ghost", "'ALP'", "'GHO'", r"\bALP-\d+", r"\bGHO-\d+")), "N", text, flags=re.I))


def answers_without_ids(w):
    """The answers that a user without any role gets from routes without ids, and from searches."""
    line, told = Line(w.url()), {}
    for route in every_route():
        method, path = route.split(" ", 1)
        if "{" in path or path in QUERIES or not (method == "GET" or route in SEARCHES):
            continue
        told[route] = line.ask(method, path, w.login_of["zoe"], None if method == "GET" else {"limit": 100})
    return told


@pytest.fixture(scope="module")
def worlds(tmp_path_factory):
    made = {authz: World(tmp_path_factory.mktemp(authz), authz) for authz in ("basic", "rbac")}
    try:
        def fill(one):
            one.begin()
            one.before = answers_without_ids(one)
            one.fill()
        with concurrent.futures.ThreadPoolExecutor(2) as both:
            list(both.map(fill, made.values()))
        yield made
    finally:
        for one in made.values():
            one.close()


GHOST = {"experiment": 7771, "trial": 7772, "task": "7771.00000000-0000-4000-8000-000000007772", "allocation": "7771.00000000-0000-4000-8000-000000007772.1", "outside": 7773, "outside_trial": 7774,
         "checkpoint": "0a8c4904-4e18-4fd3-a042-1d71ac02d20c", "outside_task": "7773.00000000-0000-4000-8000-000000007774", "ended": 7775, "ended_trial": 7776, "project": 7777, "workspace": 7778,
         "model": "ghost-model", "template": "ghost-template", "tasks": dict.fromkeys(("command", "shell", "notebook", "tensorboard", "dead"), "0b8c4904-4e18-4fd3-a042-1d71ac02d20c"),
         "generic": "0c8c4904-4e18-4fd3-a042-1d71ac02d20c", "webhook": 7779, "spare": 7780, "job": "0d8c4904-4e18-4fd3-a042-1d71ac02d20c", "name": "ghost", "key": "GHO"}


def test_what_is_hidden_looks_like_what_is_not_there(worlds):
    """With roles, a user who may not see a thing gets the same answer, word for word, as for a thing that never existed."""
    w = worlds["rbac"]
    line, told = Line(w.url()), []
    real = {**w.things["alpha"]}
    ghost = {**real, **GHOST}
    for route in every_route():
        if route in LAST or route in ENDS_A_LOGIN or route in ("GET /troupe/v1/live", "POST /troupe/v1/session/codes"):  # one sends events, one makes a random code
            continue
        asked, said = [request_of(w, route, of, True) for of in (real, ghost)], []
        if asked[0] == asked[1]:  # Such a route names no thing: two answers differ only by what happened between them.
            continue
        for method, path, body in asked:
            status, text = line.ask(method, path, w.login_of["zoe"], body)
            said.append((status, plain(text)))
        if said[0] != said[1]:
            told.append((route, *said))
    # A service of a task that has not ended and waits, because it wants all slots.
    config = {"entrypoint": ["true"], "resources": {"slots": 4}, "environment": {"proxy_ports": [{"proxy_port": 8080, "default_service_id": True}]}}
    task = w.ok("POST", "/api/v1/generic-tasks", {"config": json.dumps(config), "contextDirectory": [], "projectId": real["project"]}, real["owner"])["taskId"]
    said = [(status, text.replace(one, "ID")) for one in (task, GHOST["generic"]) for status, text in [line.ask("GET", f"/proxy/{one}/", w.login_of["zoe"])]]
    w.ok("POST", f"/api/v1/tasks/{task}/kill", {"taskId": task}, real["owner"])
    if said[0] != said[1]:
        told.append(("GET /proxy/{taskId}", *said))
    assert not told, "\n".join(f"{route}\n    there: {a[0]} {a[1][:300]}\n    never: {b[0]} {b[1][:300]}" for route, a, b in told)


def test_what_others_have_changes_no_list(worlds):
    """With roles, a user who sees nothing gets the same answers after all things were made as before: no count, total, label or order
    differs."""
    w = worlds["rbac"]
    after, told = answers_without_ids(w), []
    for route, (status, text) in w.before.items():
        if route not in SHOWN_TO_ALL and (status, timeless(text)) != (after[route][0], timeless(after[route][1])):
            told.append(f"{route}\n    before: {status} {text[:300]}\n    after:  {after[route][0]} {after[route][1][:300]}")
    assert not told, "\n".join(told)
    usage = json.loads(after["GET /troupe/v1/usage"][1])
    assert usage["by"] == [] and not any(usage["slots"]["used"]) and not any(usage["slots"]["waiting"]), usage


def test_each_route_with_each_credential(worlds):
    text = HEAD
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        for (authz, world), rows in zip(worlds.items(), both.map(rows_of, worlds.values())):
            text += text_of(authz, rows, ["void", *world.held])
    if os.environ.get("ACCESS_TABLE") == "write":
        TABLE.write_text(text)
    known = TABLE.read_text() if TABLE.exists() else ""
    assert text == known, "\n".join(difflib.unified_diff(known.splitlines(), text.splitlines(), "the table", "the answers", lineterm="", n=0))
