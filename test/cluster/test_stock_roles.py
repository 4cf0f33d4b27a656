"""Rights by roles (`cluster.authz: rbac`), by the unmodified `determined` client against a real cluster. A user who gets a role sees and
does what it allows from the next request on, and no answer has a trace of anything else. This outlives `kill -9`, and a time without
roles."""

import http.client
import json
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from determined.common import api
from determined.common.streams import _client, wire

from cluster_under_test import wait_for
from test_stock_client import Stock
from test_stock_streams import Heard

HUSH = "hush"  # part of the names of all things that an outsider must not know
TRAIN = """
import pathlib, os, time
import determined as det
with det.core.init(tensorboard_mode=det.core.TensorboardMode.MANUAL) as core:
    hp = core.train and det.get_cluster_info().trial.hparams
    print("hush-line", flush=True)
    core.train.report_training_metrics(steps_completed=1, metrics={"hush_metric": 0.5})
    core.train.report_validation_metrics(steps_completed=1, metrics={"loss": 0.5})
    with core.checkpoint.store_path({"steps_completed": 1}) as (path, uuid):
        (path / "hush-file").write_text("x")
    gate = pathlib.Path(os.environ["JOB_DIR"]) / "hold"
    while gate.exists():
        time.sleep(0.05)
    core.train.report_validation_metrics(steps_completed=2, metrics={"loss": 0.25})
"""


class Roles(Stock):
    def __init__(self, root, authz="rbac"):
        super().__init__(root)
        self.tokens = {}
        self.say(authz)

    def say(self, authz, more=""):
        file = self.root / "cluster.yaml"
        file.write_text(f"troupe: 1\ncluster: {{authz: {authz}{more}}}\npools: {{main: {{default: true}}, hush-pool: {{}}}}\n")
        self.up_words = ["--file", str(file)]

    def user(self, name):
        self.det("user", "create", name, "--password", "Secret-123", home="admin")
        self.det("user", "login", name, home=name, stdin="Secret-123\n")

    def give(self, role, *to, take=False):
        """Gives or takes a role. `to` is -u USER or -g GROUP, and may have -w WORKSPACE."""
        return self.det("rbac", "unassign-role" if take else "assign-role", role, *to, home="admin")

    def token(self, name):
        if name not in self.tokens:
            said = json.dumps({"username": name, "password": "" if name in ("admin", "determined") else "Secret-123"}).encode()
            with urllib.request.urlopen(urllib.request.Request(self.url() + "/api/v1/auth/login", said)) as answer:
                self.tokens[name] = json.load(answer)["token"]
        return self.tokens[name]

    def ask(self, who, path, body=None, method=None, seconds=120):
        """Returns the status and the text of the answer."""
        request = urllib.request.Request(self.url() + path, None if body is None else json.dumps(body).encode(), method=method)
        request.add_header("Authorization", "Bearer " + self.token(who))
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                return answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode(errors="replace")

    def again(self):
        """Kills the process of the node and starts it again."""
        self.kill_node()
        self.up()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Roles(tmp_path_factory.mktemp("roles")) as cluster:
        cluster.up(slots=2)
        cluster.det("user", "login", "admin", home="admin", stdin="\n")
        for name in ("wes", "ann", "vic", "zoe"):
            cluster.user(name)
        yield cluster


@pytest.fixture(scope="module")
def hidden(cluster):
    """A workspace with one thing of each kind, made by its admin `wes`. In it `ann` is an editor, and `vic` is a viewer through a group."""
    cluster.give("WorkspaceCreator", "-u", "wes")
    cluster.det("workspace", "create", "hush-workspace", home="wes")
    cluster.det("user-group", "create", "hush-group", "--add-user", "vic", home="admin")
    cluster.give("Editor", "-u", "ann", "-w", "hush-workspace")
    cluster.give("Viewer", "-g", "hush-group", "-w", "hush-workspace")
    cluster.det("project", "create", "hush-workspace", "hush-project", home="wes")
    cluster.det("resource-pool", "bindings", "add", "hush-pool", "hush-workspace", home="admin")
    (cluster.root / "hold").touch()
    config, context = cluster.write(name="hush-experiment", script=TRAIN, hparams="{hush_param: 7}",
                                    more="workspace: hush-workspace\nproject: hush-project\nlabels: [hush-label]\n")
    said = cluster.det("experiment", "create", config, context, home="ann")
    experiment = int(re.search(r"Created experiment (\d+)", said)[1])

    def known():
        trials = json.loads(cluster.ask("ann", f"/api/v1/experiments/{experiment}/trials")[1])["trials"]
        if trials:
            saved = json.loads(cluster.ask("ann", f"/api/v1/trials/{trials[0]['id']}/checkpoints")[1])["checkpoints"]
            return saved and (trials[0]["id"], saved[0]["uuid"])
    trial, checkpoint = wait_for(known, 60)
    (cluster.root / "template.yaml").write_text("description: hush-text\n")
    cluster.det("template", "create", "hush-template", str(cluster.root / "template.yaml"), "--workspace-name", "hush-workspace", home="ann")
    cluster.det("model", "create", "hush-model", "--workspace-name", "hush-workspace", home="ann")
    cluster.det("model", "register-version", "hush-model", checkpoint, home="ann")
    task = json.loads(cluster.ask("ann", "/api/v1/commands", {
        "config": {"entrypoint": ["sleep", "1000"], "description": "hush-command", "resources": {"slots": 0}}, "workspaceId": 2})[1])["command"]["id"]
    return {"experiment": experiment, "trial": trial, "checkpoint": checkpoint, "task": task, "workspace": 2, "project": 2}


def filled(path, ids):
    """The path with ids of hidden things, or None where it names none of them."""
    def one(match):
        name = match[1].rstrip("*")
        for key, value in {"experimentId": ids["experiment"], "trialId": ids["trial"], "labels_trialId": ids["trial"], "checkpointUuid": ids["checkpoint"],
                           "modelName": "hush-model", "modelVersionNum": 1, "templateName": "hush-template", "workspaceId": ids["workspace"],
                           "projectId": ids["project"], "taskId": ids["task"], "allocationId": ids["task"] + ".1", "key": "HUS",
                           "id": ids["workspace"]}.items():
            if name == key:
                return str(value)
        return "x"
    return re.sub(r"\{([^}]*)\}", one, path)


def test_what_one_may_not_see_is_in_no_answer(cluster, hidden):
    """Asks every route that reads as an outsider. No answer has a name of a hidden thing, and an id of one gives 404 or 403."""
    table = json.loads(cluster.ask("admin", "/troupe/v1/openapi.json")[1])["paths"]
    ids = ("experimentId", "trialId", "labels_trialId", "checkpointUuid", "modelName", "templateName", "projectId", "taskId", "allocationId", "workspaceId")
    told, asked = [], 0
    for path, methods in sorted(table.items()):
        if "get" not in methods or path in ("/stream", "/troupe/v1/shell/trace", "/troupe/v1/shell/follow", "/troupe/v1/connections/{connectionId}"):
            continue
        target = filled(path, hidden)
        more = {"/troupe/v1/live": f"?topics=experiments,experiment/{hidden['experiment']},logs/{hidden['trial']},cluster&after=0",
                "/troupe/v1/events": "?after=0", "/troupe/v1/series": f"?trials={hidden['trial']}&group=validation&metric=loss&x=step",
                "/troupe/v1/logs/search": "?q=hush", "/resources/allocation/raw": "?timestamp_after=2020-01-01T00:00:00Z&timestamp_before=2040-01-01T00:00:00Z",
                "/api/v1/trials/time-series": f"?trialIds={hidden['trial']}"}.get(path, "")
        request = urllib.request.Request(cluster.url() + target + more, headers={"Authorization": "Bearer " + cluster.token("zoe")})
        try:
            answer = urllib.request.urlopen(request, timeout=120)
            if answer.fp:
                answer.fp.raw._sock.settimeout(2)
            status, text = answer.status, b""
            end = time.monotonic() + 3
            try:
                while time.monotonic() < end and (piece := answer.read1(65536)):
                    text += piece
            except TimeoutError:
                pass  # A stream does not end by itself.
            except http.client.IncompleteRead:
                told.append(("broken off", target + more))
        except urllib.error.HTTPError as refused:
            status, text = refused.code, refused.read()
        asked += 1
        # An error may repeat what was asked for.
        shown = text.decode(errors="replace")
        if status < 400 and HUSH in shown and path not in ("/troupe/v1/openapi.json", "/api/v1/groups/{groupId}"):
            told.append((status, target + more, shown[max(0, shown.index(HUSH) - 200):][:400]))
        elif status < 400 and any("{" + one in path for one in ids) and not path.startswith(("/det/interactive", "/api/v1/roles/")):
            empty = re.sub(r"\s", "", shown)
            if not any(empty.startswith(start) for start in ("{\"templates\":[]", "{\"projects\":[]", "{\"logs\":[]")) and empty not in ("", "{}"):
                told.append((status, target + more, shown[:300]))
    assert asked > 120, asked
    assert not told, "\n".join(map(str, told))
    assert cluster.ask("zoe", f"/api/v1/experiments/{hidden['experiment']}")[1] == cluster.ask("zoe", "/api/v1/experiments/999")[1].replace("999", str(hidden["experiment"]))
    for path, rows in (("/api/v1/experiments-search", "experiments"), ("/api/v1/runs", "runs")):
        found = json.loads(cluster.ask("zoe", path, {"limit": 100})[1])
        assert (found[rows], found["pagination"]["total"]) == ([], 0), found
    listed = json.loads(cluster.ask("zoe", "/api/v1/experiments")[1])
    assert (listed["experiments"], listed["pagination"]["total"]) == ([], 0), listed
    assert json.loads(cluster.ask("zoe", "/troupe/v1/status")[1])["experimentsActive"] == 0
    assert [pool["experiments"] for pool in json.loads(cluster.ask("zoe", "/troupe/v1/pools")[1])["pools"]] == [0]


def test_a_bound_pool_is_seen_from_its_workspaces(cluster, hidden):
    pools = lambda who: [pool["name"] for pool in json.loads(cluster.ask(who, "/api/v1/resource-pools")[1])["resourcePools"]]
    assert (pools("zoe"), pools("vic"), pools("admin")) == (["main"], ["hush-pool", "main"], ["hush-pool", "main"])
    bound = "/api/v1/resource-pools/{}/workspace-bindings"
    assert cluster.ask("zoe", bound.format("hush-pool"))[1] == cluster.ask("zoe", bound.format("nowhere"))[1].replace("nowhere", "hush-pool")
    assert json.loads(cluster.ask("vic", bound.format("hush-pool"))[1])["workspaceIds"] == [hidden["workspace"]]
    assert [cluster.ask(who, "/troupe/v1/pools/hush-pool")[0] for who in ("zoe", "vic")] == [404, 200]
    cluster.give("Viewer", "-u", "zoe", "-w", "Uncategorized")
    usable = json.loads(cluster.ask("zoe", "/api/v1/workspaces/1/available-resource-pools")[1])["resourcePools"]
    cluster.give("Viewer", "-u", "zoe", "-w", "Uncategorized", take=True)
    assert usable == ["main"]
    made = cluster.ask("admin", "/api/v1/experiments", {"config": "name: else\nentrypoint: 'true'\nsearcher: {name: single, metric: loss}\n", "activate": False})[1]
    made = json.loads(made)["experiment"]
    for path, body in (("/api/v1/job-queues", {"updates": [{"jobId": made["jobId"], "resourcePool": "hush-pool"}]}),
                       (f"/troupe/v1/experiments/{made['id']}/resources", {"pool": "hush-pool"})):
        status, said = cluster.ask("admin", path, body)
        assert status == 400 and "there is no pool 'hush-pool' that workspace 'Uncategorized' may use" in said, (path, status, said)
        other = cluster.ask("admin", path, json.loads(json.dumps(body).replace("hush-pool", "nowhere")))
        assert tuple(other) == (400, said.replace("hush-pool", "nowhere")), (path, other, said)
    cluster.give("Editor", "-u", "zoe", "-w", "Uncategorized")
    for path, body in (("/api/v1/commands", {"workspaceId": 1, "config": {"entrypoint": ["true"], "resources": {"resource_pool": "POOL"}}}),
                       ("/api/v1/generic-tasks", {"config": "entrypoint: ['true']\nresources: {resource_pool: POOL}\n"}),
                       ("/api/v1/experiments", {"config": "name: x\nentrypoint: 'true'\nresources: {resource_pool: POOL}\nsearcher: {name: single, metric: loss}\n"})):
        told = [cluster.ask("zoe", path, json.loads(json.dumps(body).replace("POOL", pool))) for pool in ("secret-no", "hush-pool")]
        assert [status for status, _ in told] == [400, 400], told
        assert "there is no pool 'secret-no'" in told[0][1] and "hush-pool" not in told[0][1], told
        assert told[0][1] == told[1][1].replace("hush-pool", "secret-no"), told
    asked = [cluster.ask("zoe", "/api/v1/workspaces/1", {"defaultComputePool": pool}, "PATCH") for pool in ("main", "hush-pool", "nowhere")]
    assert [status for status, _ in asked] == [403] * 3, asked
    cluster.give("Editor", "-u", "zoe", "-w", "Uncategorized", take=True)
    for key in ("defaultComputePool", "defaultAuxPool"):
        other = json.loads(cluster.ask("admin", "/api/v1/workspaces", {"name": "of-" + key})[1])["workspace"]["id"]
        status, said = cluster.ask("admin", f"/api/v1/workspaces/{other}", {key: "hush-pool"}, "PATCH")
        assert status == 400 and f"there is no pool 'hush-pool' that workspace 'of-{key}' may use" in said, (status, said)
        cluster.ask("admin", f"/api/v1/workspaces/{other}", None, "DELETE")
    cluster.ask("admin", f"/api/v1/experiments/{made['id']}/kill", None, "POST")


def test_the_pool_of_an_experiment_that_names_none_is_the_one_where_it_runs(cluster, hidden):
    assert json.loads(cluster.ask("ann", f"/api/v1/experiments/{hidden['experiment']}")[1])["experiment"]["resourcePool"] == "main"
    assert [one["resourcePool"] for one in json.loads(cluster.ask("ann", "/api/v1/experiments")[1])["experiments"]] == ["main"]
    where = {"kind": "field", "location": "LOCATION_TYPE_EXPERIMENT", "columnName": "resourcePool", "operator": "=", "value": "main", "type": "COLUMN_TYPE_TEXT"}
    text = json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [where]}, "showArchived": False})
    found = json.loads(cluster.ask("ann", "/api/v1/experiments-search", {"projectId": hidden["project"], "filter": text})[1])["experiments"]
    assert [one["experiment"]["resourcePool"] for one in found] == ["main"]


def test_the_last_cluster_admin_stays(cluster, hidden):
    left = "no active admin would be left"
    assert left in cluster.det("user", "deactivate", "admin", home="admin", code=1)
    assert left in cluster.det("rbac", "unassign-role", "ClusterAdmin", "-u", "admin", home="admin", code=1)
    cluster.give("ClusterAdmin", "-g", "hush-group")
    cluster.give("ClusterAdmin", "-u", "admin", take=True)
    for words in (("user-group", "remove-user", "hush-group", "vic"), ("user-group", "delete", "hush-group", "--yes"), ("user", "deactivate", "vic"),
                  ("rbac", "unassign-role", "ClusterAdmin", "-g", "hush-group")):
        assert left in cluster.det(*words, home="vic", code=1), words
    cluster.det("rbac", "assign-role", "ClusterAdmin", "-u", "admin", home="vic")
    cluster.give("ClusterAdmin", "-g", "hush-group", take=True)


def test_an_outsider_changes_nothing(cluster, hidden):
    experiment, trial = hidden["experiment"], hidden["trial"]
    for method, path, body in [
            ("POST", f"/api/v1/experiments/{experiment}/kill", None), ("POST", f"/api/v1/experiments/{experiment}/pause", None),
            ("POST", f"/api/v1/experiments/{experiment}/archive", None), ("DELETE", f"/api/v1/experiments/{experiment}", None),
            ("PATCH", f"/api/v1/experiments/{experiment}", {"notes": "mine"}), ("POST", f"/api/v1/trials/{trial}/kill", None),
            ("POST", f"/api/v1/commands/{hidden['task']}/kill", None), ("POST", f"/troupe/v1/tasks/{hidden['task']}/kill", None),
            ("DELETE", "/api/v1/models/hush-model", None), ("PATCH", "/api/v1/templates/hush-template", {"x": 1}), ("DELETE", "/api/v1/templates/hush-template", None),
            ("PATCH", f"/api/v1/workspaces/{hidden['workspace']}", {"name": "mine"}), ("DELETE", f"/api/v1/workspaces/{hidden['workspace']}", None),
            ("PATCH", f"/api/v1/projects/{hidden['project']}", {"name": "mine"}), ("POST", f"/api/v1/workspaces/{hidden['workspace']}/projects", {"name": "mine"}),
            ("DELETE", "/api/v1/checkpoints", {"checkpointUuids": [hidden["checkpoint"]]}), ("POST", f"/api/v1/runs/kill", {"runIds": [trial]}),
            ("POST", f"/api/v1/experiments/{experiment}/move", {"experimentId": experiment, "destinationProjectId": 1}),
            ("POST", f"/troupe/v1/experiments/{experiment}/resources", {"priority": 1}), ("POST", "/api/v1/groups", {"name": "mine"}),
            ("POST", "/api/v1/workspaces", {"name": "mine"}), ("POST", "/troupe/v1/shutdown", {}), ("GET", "/api/v1/master/config", None),
            ("GET", "/troupe/v1/shell/ps", None), ("POST", "/api/v1/agents/x/disable", {}),
            ("POST", "/api/v1/roles/add-assignments", {"userRoleAssignments": [{"userId": 6, "roleAssignment": {"role": {"roleId": 1}}}]})]:
        status, said = cluster.ask("zoe", path, body, method)
        if path == "/api/v1/runs/kill" and status == 200:
            assert all(one.get("error") for one in json.loads(said)["results"]), said
        else:
            assert status in (403, 404), (method, path, status, said)
        assert HUSH not in said.replace("hush-model", "").replace("hush-template", ""), said
    assert "workspace '1' not found" in cluster.det("experiment", "create", *cluster.write(name="lost"), home="zoe", code=1)
    assert json.loads(cluster.ask("ann", f"/api/v1/experiments/{experiment}")[1])["experiment"]["state"] in ("ACTIVE", "STATE_RUNNING", "STATE_ACTIVE", "RUNNING")
    assert cluster.ask("ann", f"/api/v1/commands/{hidden['task']}")[0] == 200


def test_a_version_shows_its_checkpoint_where_its_experiment_is_hidden(cluster, hidden):
    uuid = hidden["checkpoint"]
    cluster.user("mia")
    place = json.loads(cluster.ask("admin", "/api/v1/workspaces", {"name": "show-room"})[1])["workspace"]["id"]
    cluster.give("Editor", "-u", "mia", "-w", "show-room")
    assert cluster.ask("mia", f"/api/v1/checkpoints/{uuid}")[0] == 404
    assert cluster.ask("admin", "/api/v1/models", {"name": "show-model", "workspaceId": place})[0] == 200
    assert cluster.ask("admin", "/api/v1/models/show-model/versions", {"checkpointUuid": uuid})[0] == 200
    assert uuid in cluster.det("model", "list-versions", "show-model", home="mia")
    assert uuid in cluster.det("model", "describe", "show-model", home="mia")
    assert uuid in cluster.det("checkpoint", "describe", uuid, home="mia")
    assert cluster.ask("mia", f"/checkpoints/{uuid}")[0] == 200
    for method, path, body, code in [
            ("GET", f"/api/v1/experiments/{hidden['experiment']}", None, 404), ("GET", f"/api/v1/experiments/{hidden['experiment']}/checkpoints", None, 404),
            ("GET", f"/api/v1/trials/{hidden['trial']}/checkpoints", None, 404), ("DELETE", "/api/v1/checkpoints", {"checkpointUuids": [uuid]}, 403),
            ("POST", "/api/v1/checkpoints/rm", {"checkpointUuids": [uuid], "checkpointGlobs": ["**/*"]}, 403),
            ("POST", f"/api/v1/checkpoints/{uuid}/metadata", {"checkpoint": {"uuid": uuid, "metadata": {}}}, 403),
            ("PATCH", "/api/v1/checkpoints", {"checkpoints": [{"uuid": uuid, "resources": {"resources": {}}}]}, 403)]:
        status, said = cluster.ask("mia", path, body, method)
        assert status == code, (method, path, status, said)
    # ann sees the experiment and one of the two models.
    removed = {"checkpointUuids": [uuid], "checkpointGlobs": ["**/*"]}
    patched = {"checkpoints": [{"uuid": uuid, "resources": {"resources": {}}}]}
    for method, path, body, what in [("DELETE", "/api/v1/checkpoints", removed, "deleted"), ("POST", "/api/v1/checkpoints/rm", removed, "deleted"),
                                     ("PATCH", "/api/v1/checkpoints", patched, "patched")]:
        status, said = cluster.ask("ann", path, body, method)
        assert status == 400 and f"are in the model registry and cannot be {what}: {uuid}" in said and "show-model" not in said, (method, path, status, said)
        assert ("registered to hush-model (model #" in said) == (what == "deleted"), said
    assert json.loads(cluster.ask("ann", f"/api/v1/checkpoints/{uuid}")[1])["checkpoint"]["state"] == "STATE_COMPLETED"


def test_a_checkpoint_that_stays_names_no_hidden_experiment(cluster, hidden):
    """An experiment begins its trials with a checkpoint of another one. Only users who may see the first get its number."""
    def ok(who, path, body=None, method=None):
        status, said = cluster.ask(who, path, body, method)
        assert status == 200, (path, status, said)
        return json.loads(said)
    cluster.user("ola")
    place = ok("admin", "/api/v1/workspaces", {"name": "own-room"})["workspace"]["id"]
    project = ok("admin", f"/api/v1/workspaces/{place}/projects", {"name": "own-project", "workspaceId": place})["project"]["id"]
    cluster.give("Editor", "-u", "ola", "-w", "own-room")
    config = {"name": "own", "entrypoint": "true", "searcher": {"name": "single", "metric": "loss"}}
    source = ok("ola", "/api/v1/experiments", {"config": json.dumps(config), "projectId": project, "unmanaged": True})["experiment"]["id"]
    trial = ok("ola", "/api/v1/trials", {"experimentId": source, "unmanaged": True, "hparams": {}})["trial"]
    ok("ola", f"/api/v1/trials/{trial['id']}/start", {"trialId": trial["id"], "resume": False})
    uuid = "00000000-0000-4000-8000-0000000000aa"
    ok("ola", "/api/v1/checkpoints", {"taskId": trial["taskId"], "uuid": uuid, "state": "STATE_COMPLETED", "training": {}, "resources": {"a": "1"},
                                      "metadata": {"steps_completed": 1}, "reportTime": "2026-01-01T00:00:00Z"})
    ok("ola", f"/api/v1/trials/{trial['id']}", {"trialId": trial["id"], "state": "STATE_COMPLETED"}, "PATCH")
    wait_for(lambda: ok("ola", f"/api/v1/experiments/{source}")["experiment"]["state"] == "STATE_COMPLETED", 30)
    config["searcher"]["source_checkpoint_uuid"] = uuid
    user = ok("admin", "/api/v1/experiments", {"config": json.dumps(config), "projectId": hidden["project"], "activate": False})["experiment"]["id"]
    orders = (("DELETE", "/api/v1/checkpoints", {"checkpointUuids": [uuid]}), ("DELETE", f"/api/v1/experiments/{source}", None),
              ("POST", "/api/v1/checkpoints/rm", {"checkpointUuids": [uuid], "checkpointGlobs": ["**/*"]}))
    for who, named in (("ola", "an experiment that you may not see"), ("admin", f"experiment {user}")):
        for method, path, body in orders:
            status, said = cluster.ask(who, path, body, method)
            assert status == 400 and json.loads(said)["message"] == f"checkpoint {uuid} is in use: {named} begins its trials with it", (who, path, status, said)
    # All users who see the project see why it could not be deleted.
    ok("admin", f"/api/v1/projects/{project}", method="DELETE")
    reason = f"checkpoint {uuid} is in use: another experiment begins its trials with it"
    wait_for(lambda: reason in ok("ola", f"/api/v1/projects/{project}")["project"].get("errorMessage", ""), 30, what=lambda: ok("admin", f"/api/v1/projects/{project}"))
    ok("admin", f"/api/v1/experiments/{user}/kill", method="POST")


def test_an_explanation_hides_whom_one_waits_for(cluster, hidden):
    cluster.give("Editor", "-u", "zoe", "-w", "Uncategorized")

    def command(who, workspace, priority):
        config = {"entrypoint": ["sleep", "1000"], "resources": {"slots": 2, "priority": priority}}
        return json.loads(cluster.ask(who, "/api/v1/commands", {"config": config, "workspaceId": workspace})[1])["command"]["id"]
    theirs, mine = command("ann", hidden["workspace"], 1), command("zoe", 1, 50)

    def why(who):
        said = json.loads(cluster.ask(who, f"/troupe/v1/tasks/{mine}/explain")[1])
        return said if said["reason"]["code"] == "behind" else None
    seen, veiled = wait_for(lambda: why("admin"), 20), wait_for(lambda: why("zoe"), 20)
    assert seen["behind"] == theirs + ".1" and theirs in seen["reason"]["text"], seen
    assert any(one["allocation"].startswith(f"{hidden['trial']}.") for one in seen["wouldFree"]), seen
    assert veiled["behind"] is None and theirs not in json.dumps(veiled) and veiled["reason"]["text"] == "waits for 2 slots behind others", veiled
    assert veiled["wouldFree"] and all(one["allocation"] is None for one in veiled["wouldFree"]), veiled
    assert cluster.ask("zoe", f"/troupe/v1/tasks/{theirs}/explain")[0] == 404
    for uuid in (theirs, mine):
        cluster.ask("admin", f"/api/v1/commands/{uuid}/kill", None, "POST")
    cluster.give("Editor", "-u", "zoe", "-w", "Uncategorized", take=True)


def test_a_viewer_sees_and_changes_nothing(cluster, hidden):
    experiment = hidden["experiment"]
    assert "hush-experiment" in cluster.det("experiment", "list", "--all", home="vic")
    assert "hush-line" in cluster.det("experiment", "logs", str(experiment), home="vic")
    assert "hush-model" in cluster.det("model", "list", home="vic") and "hush-template" in cluster.det("template", "list", home="vic")
    for words in (["experiment", "kill", str(experiment)], ["experiment", "pause", str(experiment)], ["model", "create", "x", "--workspace-name", "hush-workspace"],
                  ["project", "create", "hush-workspace", "more"], ["command", "kill", hidden["task"]]):
        said = cluster.det(*words, home="vic", code=1)
        assert "denied" in said or "Forbidden" in said, said
    # Whatever the state of the thing, only the right decides.
    row = json.loads(cluster.ask("vic", f"/api/v1/experiments/{experiment}")[1])["experiment"]
    bulk = f"/api/v1/projects/{hidden['project']}/experiments/"
    for path, body in [(f"/api/v1/runs/{verb}", {"runIds": [hidden["trial"]]}) for verb in ("kill", "pause", "resume", "archive", "unarchive", "delete")] + [
            ("/api/v1/runs/move", {"runIds": [hidden["trial"]], "sourceProjectId": hidden["project"], "destinationProjectId": hidden["project"]})] + [
            (bulk + verb, {"experimentIds": [experiment]}) for verb in ("kill", "pause", "activate", "cancel", "archive", "unarchive", "delete")]:
        status, said = cluster.ask("vic", path, body, "DELETE" if path.endswith("experiments/delete") else "POST")
        assert status == 403 or all("access denied" in one["error"] for one in json.loads(said)["results"]), (path, status, said)
    status, said = cluster.ask("vic", "/api/v1/job-queues", {"updates": [{"jobId": row["jobId"], "resourcePool": "nowhere"}]})
    assert status == 403 and "nowhere" not in said, said
    mine = json.loads(cluster.det("rbac", "my-permissions", "--json", home="vic"))
    assert "VIEW_EXPERIMENT_METADATA" in json.dumps(mine) and "UPDATE_EXPERIMENT" not in json.dumps(mine), mine


def test_roles_are_shown_and_hold_from_the_next_request_on(cluster, hidden):
    path = f"/api/v1/experiments/{hidden['experiment']}"
    assert cluster.ask("zoe", path)[0] == 404
    live = urllib.request.Request(cluster.url() + "/troupe/v1/events?after=0", headers={"Authorization": "Bearer " + cluster.token("vic")})
    with urllib.request.urlopen(live, timeout=120) as stream:
        assert any(b"hush-experiment" in stream.readline() for _ in range(400))  # as long as the user has the role
        cluster.give("Viewer", "-g", "hush-group", "-w", "hush-workspace", take=True)
        cluster.give("Editor", "-u", "zoe", "-w", "hush-workspace")
        assert cluster.ask("zoe", path)[0] == 200 and cluster.ask("vic", path)[0] == 404
        assert "Editor" in cluster.det("rbac", "list-users-roles", "zoe", home="admin")
        cluster.ask("ann", path, {"notes": "hush-later"}, "PATCH")
        stream.fp.raw._sock.settimeout(3)
        rest = b""
        try:
            while line := stream.readline():
                rest += line
        except OSError:
            pass
        assert b"hush-later" not in rest
    cluster.give("Editor", "-u", "zoe", "-w", "hush-workspace", take=True)
    cluster.give("Viewer", "-g", "hush-group", "-w", "hush-workspace")
    assert cluster.ask("zoe", path)[0] == 404 and cluster.ask("vic", path)[0] == 200
    # A role of the cluster shows everything. The flag of an admin has no effect.
    cluster.give("Viewer", "-u", "zoe")
    assert cluster.ask("zoe", path)[0] == 200 and cluster.ask("zoe", path + "/kill", None, "POST")[0] == 403
    cluster.give("Viewer", "-u", "zoe", take=True)
    cluster.det("user", "edit", "zoe", "--admin", "True", home="admin")
    assert cluster.ask("zoe", path)[0] == 404
    cluster.det("user", "edit", "zoe", "--admin", "False", home="admin")


class Told(threading.Thread):
    """Collects the server-sent events that a user hears, as (name, data)."""

    def __init__(self, cluster, who, path):
        super().__init__(daemon=True)
        self.answer = urllib.request.urlopen(urllib.request.Request(cluster.url() + path, headers={"Authorization": "Bearer " + cluster.token(who)}), timeout=120)
        self.all = []
        self.start()

    def run(self):
        name = "message"
        try:
            for line in self.answer:
                key, _, rest = line.decode().rstrip("\n").partition(": ")
                if key == "event":
                    name = rest
                elif key == "data":
                    self.all.append((name, json.loads(rest)))
        except (OSError, ValueError, http.client.HTTPException):
            pass

    def wait(self, name, **fields):
        wait_for(lambda: any(n == name and fields.items() <= data.items() for n, data in self.all), 60, what=lambda: (name, fields, self.all[-20:]))


def test_a_deletion_and_the_end_of_a_right_are_told(cluster, hidden):
    said = cluster.det("experiment", "create", *cluster.write(name="hush-brief", script=TRAIN, hparams="{hush_param: 7}", more="workspace: hush-workspace\nproject: hush-project\n"), home="ann")
    brief = int(re.search(r"Created experiment (\d+)", said)[1])
    path = f"/api/v1/experiments/{brief}"
    assert cluster.ask("ann", path + "/kill", {}, "POST")[0] == 200
    wait_for(lambda: json.loads(cluster.ask("ann", path)[1])["experiment"]["state"] == "STATE_CANCELED", 60)
    topics = f"/troupe/v1/live?topics=experiments,experiment/{brief},experiment/{hidden['experiment']}"
    by_vic, by_zoe, facts = Told(cluster, "vic", topics), Told(cluster, "zoe", topics), Told(cluster, "vic", "/troupe/v1/events?after=0")
    by_vic.wait("hello")
    by_zoe.wait("gone", experiment=brief)  # who may not see it is told so at the start
    assert cluster.ask("ann", path, None, "DELETE")[0] == 200
    by_vic.wait("gone", experiment=brief)
    wait_for(lambda: any(data.get("type") == "experiment_deleted" and data["id"] == brief and data["step"] == "done" for _, data in facts.all), 60, what=lambda: facts.all[-5:])
    for who, hears in (("vic", True), ("zoe", False), ("admin", True)):
        listed = cluster.ask(who, f"/troupe/v1/events?kind=audit&after=0&until={max(data['sequence'] for _, data in facts.all)}")[1]
        assert ("experiment_deleted" in listed) is hears, (who, listed)
    assert by_zoe.all.count(("gone", {"experiment": brief})) == 1, by_zoe.all
    # Rights that come and go are told to open streams.
    cluster.give("Viewer", "-u", "zoe", "-w", "hush-workspace")
    by_zoe.wait("lost", topic="experiments")
    again = Told(cluster, "zoe", topics)
    again.wait("hello")
    cluster.give("Viewer", "-u", "zoe", "-w", "hush-workspace", take=True)
    again.wait("gone", experiment=hidden["experiment"])
    again.wait("lost", topic="experiments")
    assert cluster.ask("zoe", path)[0] == 404


def test_a_stream_tells_what_its_user_may_see_now(cluster, hidden):
    heard = Heard(api.Session(cluster.url(), "zoe", cluster.token("zoe"), None), projects=_client.ProjectSpec(project_id=hidden["project"]))
    wait_for(heard.synced, 10)
    assert heard.names(wire.ProjectMsg) == []
    cluster.give("Viewer", "-u", "zoe", "-w", "hush-workspace")
    wait_for(lambda: heard.names(wire.ProjectMsg) == ["hush-project"], 30)
    cluster.give("Viewer", "-u", "zoe", "-w", "hush-workspace", take=True)
    wait_for(lambda: any(isinstance(one, wire.ProjectsDeleted) for one in heard.all), 30)
    heard.stream._ws.close()  # The thread that reads ends with it.


def test_the_creator_of_a_workspace_is_its_admin(cluster, hidden):
    assert "WorkspaceAdmin" in cluster.det("rbac", "list-users-roles", "wes", home="admin")
    cluster.det("rbac", "assign-role", "Viewer", "-u", "zoe", "-w", "hush-workspace", home="wes")
    assert cluster.ask("zoe", f"/api/v1/workspaces/{hidden['workspace']}")[0] == 200
    cluster.det("rbac", "unassign-role", "Viewer", "-u", "zoe", "-w", "hush-workspace", home="wes")
    said = cluster.det("rbac", "assign-role", "Viewer", "-u", "zoe", home="wes", code=1)  # in all workspaces
    assert "denied" in said or "Forbidden" in said, said
    said = cluster.det("rbac", "assign-role", "WorkspaceCreator", "-u", "zoe", "-w", "hush-workspace", home="admin", code=1)
    assert "cannot be given" in said, said


def test_roles_of_groups_are_told_and_those_of_deleted_workspaces_are_not(cluster, hidden):
    cluster.user("pat")
    cluster.det("user-group", "create", "lookers", "--add-user", "pat", home="admin")
    cluster.give("Viewer", "-g", "lookers")
    assert "VIEW_EXPERIMENT_METADATA" in cluster.det("rbac", "my-permissions", home="pat")
    cluster.give("Viewer", "-g", "lookers", take=True)
    assert "VIEW_EXPERIMENT_METADATA" not in cluster.det("rbac", "my-permissions", home="pat")
    cluster.give("WorkspaceCreator", "-u", "pat")
    cluster.det("workspace", "create", "brief", home="pat")
    cluster.det("workspace", "delete", "brief", "--yes", home="pat")
    wait_for(lambda: "brief" not in cluster.det("workspace", "list", home="admin"), 30)
    assert "CREATE_WORKSPACE" in cluster.det("rbac", "my-permissions", home="pat")
    assert "WorkspaceAdmin" not in cluster.det("rbac", "list-users-roles", "pat", home="admin")


def test_a_template_that_one_may_not_see_is_not_used_and_not_taken(cluster, hidden):
    cluster.user("tom")
    own = json.loads(cluster.ask("admin", "/api/v1/workspaces", {"name": "toms-workspace"})[1])["workspace"]["id"]
    cluster.give("Editor", "-u", "tom", "-w", "toms-workspace")
    project = json.loads(cluster.ask("admin", f"/api/v1/workspaces/{own}/projects", {"name": "toms-project"})[1])["project"]["id"]
    config = json.dumps({"name": "x", "entrypoint": "true", "searcher": {"name": "single", "metric": "loss"}})
    below = {"description": "mine"}
    for method, path, body, code in [
            ("POST", "/api/v1/experiments", {"config": config, "projectId": project, "template": "hush-template", "activate": False}, 404),
            ("POST", "/api/v1/commands", {"config": {"entrypoint": ["true"]}, "workspaceId": own, "templateName": "hush-template"}, 404),
            ("PUT", "/api/v1/templates/hush-template", {"name": "hush-template", "config": below, "workspaceId": own}, 409),
            ("PATCH", "/api/v1/templates/hush-template", below, 404)]:
        status, said = cluster.ask("tom", path, body, method)
        assert status == code and "hush-text" not in said, (method, path, status, said)
    kept = json.loads(cluster.ask("ann", "/api/v1/templates/hush-template")[1])["template"]
    assert kept == {"name": "hush-template", "config": {"description": "hush-text"}, "workspaceId": hidden["workspace"]}, kept
    # A template cannot be moved into a workspace where its owner may not make one.
    assert cluster.ask("tom", "/api/v1/templates/toms", {"name": "toms", "config": below, "workspaceId": own})[0] == 200
    assert cluster.ask("tom", "/api/v1/templates/toms", {"name": "toms", "config": below, "workspaceId": hidden["workspace"]}, "PUT")[0] == 404
    assert json.loads(cluster.ask("tom", "/api/v1/templates/toms")[1])["template"]["workspaceId"] == own


def test_an_external_id_or_a_key_tells_nothing_of_a_hidden_experiment(cluster, hidden):
    """Whoever does not see the experiment of a name gets an experiment of that name of their own, and finds that one again."""
    config = "name: n\nsearcher: {name: custom, metric: loss}\nentrypoint: ''\n"

    def put(who, project, name="nightly"):
        status, said = cluster.ask(who, f"/api/v1/experiments/by-external-id/{name}", {"config": config, "unmanaged": True, "projectId": project}, "PUT")
        assert status == 200, said
        made = json.loads(said)["experiment"]
        assert (made["externalExperimentId"], made["projectId"]) == (name, project)
        return made["id"]

    def trial(who, experiment):
        status, said = cluster.ask(who, "/api/v1/trials", {"createTrialRequest": {"experimentId": experiment, "unmanaged": True, "hparams": {}}, "externalTrialId": "t"}, "PUT")
        assert status == 200, said
        return json.loads(said)["trial"]["id"]

    def found(who):
        status, said = cluster.ask(who, "/api/v1/trials/by-external-id/nightly/t")
        return json.loads(said)["trial"]["id"] if status == 200 else status

    def keyed(who, project):
        status, said = cluster.ask(who, "/troupe/v1/experiments", {"config": config.replace("''", "'true'").replace("custom", "single"), "project": project, "activate": False, "key": "my-key"})
        assert status == 200, said
        return json.loads(said)["id"]
    theirs = put("ann", hidden["project"])
    cluster.give("Editor", "-u", "zoe", "-w", "Uncategorized")
    try:
        assert found("zoe") == 404
        mine = put("zoe", 1)
        assert mine != theirs and put("zoe", 1) == mine and put("ann", hidden["project"]) == theirs
        trials = {who: trial(who, experiment) for who, experiment in (("ann", theirs), ("zoe", mine))}
        kept = {"ann": keyed("ann", hidden["project"]), "zoe": keyed("zoe", 1)}
        assert kept["ann"] != kept["zoe"]
        assert (put("zoe", 1), put("ann", hidden["project"])) == (mine, theirs)
        assert {who: found(who) for who in trials} == trials and found("vic") == trials["ann"] and found("wes") == trials["ann"]
        assert {"ann": keyed("ann", hidden["project"]), "zoe": keyed("zoe", 1)} == kept
        cluster.give("Viewer", "-u", "zoe", "-w", "hush-workspace")  # The older one, which she sees now, is not hers.
        assert (put("zoe", 1), keyed("zoe", 1), found("zoe")) == (mine, kept["zoe"], trials["zoe"])
        put("ann", hidden["project"], "weekly")
        assert put("zoe", 1, "weekly") not in (put("ann", hidden["project"], "weekly"), mine), "of another workspace"
    finally:
        cluster.give("Viewer", "-u", "zoe", "-w", "hush-workspace", take=True)
        cluster.give("Editor", "-u", "zoe", "-w", "Uncategorized", take=True)


def test_who_may_see_policies_but_not_their_workspace_is_told_none(cluster, hidden):
    path = f"/api/v1/config-policies/workspaces/{hidden['workspace']}/EXPERIMENT"
    policies = {"invariant_config": {"environment": {"environment_variables": ["A=hush-policy"]}}}
    status, said = cluster.ask("admin", path, {"workloadType": "EXPERIMENT", "workspaceId": hidden["workspace"], "configPolicies": json.dumps(policies)}, "PUT")
    assert status == 200, said

    def events(who):
        request = urllib.request.Request(cluster.url() + "/api/v1/me", headers={"Authorization": "Bearer " + cluster.token(who)})
        with urllib.request.urlopen(request) as answer:
            newest = answer.headers["Troupe-Sequence"]
        return cluster.ask(who, f"/troupe/v1/events?after=0&until={newest}")
    cluster.give("WorkspaceCreator", "-u", "zoe")
    try:
        assert cluster.ask("zoe", path)[0] == 404
        assert "hush-policy" in events("admin")[1] and "hush-policy" not in events("zoe")[1]
        assert "my-key" in events("admin")[1] and "u0000" not in events("admin")[1], "a number would tell of another experiment of this key"
    finally:
        cluster.give("WorkspaceCreator", "-u", "zoe", take=True)
        assert cluster.ask("admin", path, method="DELETE")[0] == 200


def test_what_a_task_reports_arrives_when_its_owner_has_left(cluster, hidden):
    experiment = hidden["experiment"]
    cluster.give("Editor", "-u", "ann", "-w", "hush-workspace", take=True)
    assert cluster.ask("ann", f"/api/v1/experiments/{experiment}")[0] == 404
    (cluster.root / "hold").unlink()
    ended = wait_for(lambda: (lambda x: x["state"].endswith("COMPLETED") and x)(json.loads(cluster.ask("wes", f"/api/v1/experiments/{experiment}")[1])["experiment"]), 60)
    assert ended["name"] == "hush-experiment"
    reports = json.loads(cluster.ask("wes", f"/api/v1/trials/{hidden['trial']}")[1])["trial"]["latestValidation"]
    assert reports["totalBatches"] == 2, reports
    cluster.give("Editor", "-u", "ann", "-w", "hush-workspace")


def test_roles_outlive_a_kill_and_a_time_without_them(cluster, hidden):
    path = f"/api/v1/experiments/{hidden['experiment']}"
    cluster.again()
    assert cluster.ask("zoe", path)[0] == 404 and cluster.ask("vic", path)[0] == 200
    cluster.say("basic")
    cluster.again()
    assert cluster.ask("zoe", path)[0] == 200
    assert "rbac" in cluster.det("rbac", "my-permissions", home="zoe", code=1).lower()
    cluster.say("rbac", ", strict_job_queue_control: true")
    cluster.again()
    assert cluster.ask("zoe", path)[0] == 404 and cluster.ask("vic", path)[0] == 200
    # `det` has no login for the new port.
    assert "ClusterAdmin" in cluster.ask("admin", "/api/v1/roles/search/by-user/1")[1]
    assert json.loads(cluster.ask("zoe", "/api/v1/roles/search/by-user/1")[1]) == {"roles": []}
    status, said = cluster.ask("ann", f"/troupe/v1/experiments/{hidden['experiment']}/resources", {"priority": 3})
    assert status == 403 and "strict_job_queue_control" in said, said
    told = json.loads(cluster.ask("zoe", "/api/v1/master")[1])
    assert told["rbacEnabled"] is True and told["strictJobQueueControl"] is True
