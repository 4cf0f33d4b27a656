"""A cluster with users and things for the tests of rights: one user of each role, three sets of things, and every kind of credential.

The things of `alpha` are ann's, in her workspace. `beta` are other things of ann in the same workspace. `gamma` are eve's, in another
workspace. The name of each thing contains the word of its set, so that a test can find which answers mention it.
"""

import base64
import hashlib
import http.client
import json
import re
import time
import uuid

from cluster_under_test import Cluster, wait_for

SETS = ("alpha", "beta", "gamma")
PEOPLE = ("ann", "eve", "wes", "vic", "zoe", "lee", "max")
CONFIG = "{{name: {name}, entrypoint: sleep 1000, labels: [{name}-label], hyperparameters: {{{name}_param: 1}}, searcher: {{name: single, metric: {name}_loss}}, max_restarts: 0}}"


class Line:
    """A client connection that is used for many requests."""

    def __init__(self, url):
        self.place = url.removeprefix("http://")
        self.http = None

    def ask(self, method, path, headers, body=None, seconds=120, most=1 << 20):
        """Sends a request, and returns the status and the text of the answer. A stream is read until nothing has arrived for a while."""
        streams = any(word in path for word in ("/live", "/events?after", "/follow", "/trace", "follow=true", "metrics-stream", "profiler"))
        for again in (False, True):
            self.http = self.http or http.client.HTTPConnection(self.place, timeout=seconds)
            try:
                self.http.request(method, path, None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode(), headers)
                answer = self.http.getresponse()
                break
            except (http.client.HTTPException, ConnectionError, BrokenPipeError):
                self.close()
                if again:
                    raise
        text = b""
        if streams and answer.status == 200:
            link = self.http.sock or answer.fp.raw._sock
            link.settimeout(1)  # Time limit for the first bytes; after these it is shorter.
            try:
                text = answer.read1(65536)
                link.settimeout(0.5 if "after=0" in path else 0.2)
                end = time.monotonic() + (3 if "after=0" in path else 1)
                while text and time.monotonic() < end and len(text) < most and (piece := answer.read1(65536)):
                    text += piece
            except (TimeoutError, OSError, http.client.HTTPException):
                pass
            self.close()
        else:
            try:
                text = answer.read()
            except http.client.IncompleteRead as cut:
                text = cut.partial
            if answer.will_close:
                self.close()
        return answer.status, text.decode(errors="replace")

    def close(self):
        if self.http:
            self.http.close()
        self.http = None


def bearer(token):
    return {"Authorization": "Bearer " + token}


class World(Cluster):
    def __init__(self, root, authz):
        super().__init__(root)
        self.authz = authz
        file = self.root / "cluster.yaml"
        file.write_text(f"troupe: 1\ncluster: {{authz: {authz}}}\n")
        self.up_words = ["--file", str(file)]

    def begin(self):
        """Starts the cluster and makes the users. There are no things yet."""
        self.up(slots=4)
        self.line = Line(self.url())
        self.admin = bearer(self.login("admin"))
        self.users = {"admin": 1}
        for name in PEOPLE + ("gone",):
            self.users[name] = self.ok("POST", "/api/v1/users", {"user": {"username": name, "active": True}})["user"]["id"]
        self.login_of = {name: bearer(self.login(name)) for name in PEOPLE + ("gone",)}
        self.login_of["admin"] = self.admin
        self.give(3, "wes"), self.give(3, "eve"), self.give(10, "ann")
        return self

    def login(self, name, password=""):
        status, said = self.line.ask("POST", "/api/v1/auth/login", {}, {"username": name, "password": password})
        assert status == 200, said
        return json.loads(said)["token"]

    def ok(self, method, path, body=None, by=None):
        status, said = self.line.ask(method, path, by or self.admin, body)
        assert status == 200, (method, path, status, said)
        return json.loads(said or "null")

    def give(self, role, name, workspace=None):
        where = {"scopeWorkspaceId": workspace} if workspace else {}
        self.ok("POST", "/api/v1/roles/add-assignments", {"userRoleAssignments": [{"userId": self.users[name], "roleAssignment": {"role": {"roleId": role}, **where}}]})

    def sealed(self, claim):
        secret = json.loads((self.data / "master" / "passwords").read_text())["secret"]
        return f"{claim}.{hashlib.blake2b(claim.encode(), key=secret.encode(), digest_size=24).hexdigest()}"

    def of_trial(self, trial):
        """The headers with the token of a trial."""
        return {"Grpc-Metadata-x-allocation-token": "Bearer " + self.sealed(f"a1.{trial}.1")}

    def fill(self):
        """Makes all things."""
        self.agent = wait_for(lambda: self.ok("GET", "/api/v1/agents")["agents"], 30)[0]["id"]
        ann, eve = self.login_of["ann"], self.login_of["eve"]
        home = self.ok("POST", "/api/v1/workspaces", {"name": "alpha-workspace"}, self.login_of["wes"])["workspace"]["id"]
        away = self.ok("POST", "/api/v1/workspaces", {"name": "gamma-workspace"}, eve)["workspace"]["id"]
        self.give(5, "ann", home), self.give(4, "vic", home), self.give(5, "lee", home)
        self.things = {"alpha": self.make("alpha", ann, home), "beta": self.make("beta", ann, home), "gamma": self.make("gamma", eve, away)}
        self.credentials()
        return self

    def make(self, name, by, workspace):
        """Makes one thing of each kind for a set, and returns the ids that stand in paths."""
        ok = lambda method, path, body=None: self.ok(method, path, body, by)
        project = ok("POST", f"/api/v1/workspaces/{workspace}/projects", {"name": f"{name}-project", "key": name[:3]})["project"]["id"]
        spare = ok("POST", f"/api/v1/workspaces/{workspace}/projects", {"name": f"{name}-spare"})["project"]["id"]
        create = lambda **more: ok("POST", "/api/v1/experiments", {"config": CONFIG.format(name=name), "projectId": project, **more})["experiment"]["id"]
        experiment = create(activate=True, modelDefinition=[{"path": f"{name}.py", "type": 48, "content": base64.b64encode(name.encode()).decode(), "mode": 420}])
        trial = wait_for(lambda: ok("GET", f"/api/v1/experiments/{experiment}/trials")["trials"], 30)[0]["id"]
        token = self.of_trial(trial)
        wait_for(lambda: self.line.ask("GET", "/api/v1/me", token)[0] == 200, 30)
        told = ok("GET", f"/api/v1/trials/{trial}")["trial"]
        task = told["taskId"]
        allocation = f"{task}.1"
        checkpoint = self.checkpoint(name, trial, task)
        for group in ("training", "validation"):
            self.ok("POST", f"/api/v1/trials/{trial}/metrics", {"group": group, "metrics": {
                "trialId": trial, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {f"{name}_loss": 1.5, "loss": 1.5}}}}, token)
        self.ok("POST", "/api/v1/task/logs", {"logs": [{"task_id": task, "timestamp": "2026-01-01T00:00:00+00:00", "log": f"{name}-line\n"}]}, token)
        outside = create(unmanaged=True)
        outside_trial = ok("POST", "/api/v1/trials", {"experimentId": outside, "unmanaged": True, "hparams": {}})["trial"]["id"]
        outside_task = ok("GET", f"/api/v1/trials/{outside_trial}")["trial"]["taskId"]
        ok("POST", f"/api/v1/trials/{outside_trial}/start", {"trialId": outside_trial, "resume": False})
        ended = ok("PUT", f"/api/v1/experiments/by-external-id/{name}-outside", {"createExperimentRequest": {"config": CONFIG.format(name=name), "projectId": project, "unmanaged": True},
                                                                                  "config": CONFIG.format(name=name), "projectId": project, "unmanaged": True})["experiment"]["id"]
        ended_trial = ok("PUT", "/api/v1/trials", {"createTrialRequest": {"experimentId": ended, "unmanaged": True, "hparams": {}}, "externalTrialId": f"{name}-trial"})["trial"]["id"]
        ok("POST", f"/api/v1/trials/{ended_trial}/start", {"trialId": ended_trial, "resume": False})
        ok("PATCH", f"/api/v1/trials/{ended_trial}", {"trialId": ended_trial, "state": "STATE_COMPLETED"})
        model, template = f"{name}-model", f"{name}-template"
        ok("POST", "/api/v1/models", {"name": model, "workspaceId": workspace, "labels": [f"{name}-label"]})
        ok("POST", f"/api/v1/models/{model}/versions", {"modelName": model, "checkpointUuid": checkpoint, "name": f"{name}-version"})
        ok("POST", f"/api/v1/templates/{template}", {"name": template, "config": {"description": name}, "workspaceId": workspace})
        tasks = {}
        small = {"description": f"{name}-task", "resources": {"slots": 0}}
        for kind, more in (("command", {"config": {**small, "entrypoint": ["sleep", "1000"]}}), ("shell", {"config": small}), ("notebook", {"config": small}),
                           ("tensorboard", {"config": small, "experimentIds": [experiment]})):
            made = ok("POST", f"/api/v1/{kind}s", {"workspaceId": workspace, **more})
            tasks[kind] = next(one for key, one in made.items() if key == kind)["id"]
            if kind != "command":  # For these kinds, the answers after their end are enough.
                ok("POST", f"/api/v1/{kind}s/{tasks[kind]}/kill")
        tasks["dead"] = ok("POST", "/api/v1/commands", {"workspaceId": workspace, "config": {**small, "entrypoint": ["true"]}})["command"]["id"]
        wait_for(lambda: ok("GET", f"/troupe/v1/tasks/{tasks['command']}")["running"], 30)
        generic = ok("POST", "/api/v1/generic-tasks", {"config": json.dumps({"entrypoint": ["true"], "resources": {"slots": 0}}), "contextDirectory": [], "projectId": project})["taskId"]
        for one in (generic, *(task for kind, task in tasks.items() if kind != "command")):
            state = lambda: ok("GET", f"/troupe/v1/tasks/{one}")["state"]
            wait_for(lambda: state() in ("COMPLETED", "CANCELED", "ERROR"), what=state)
        group = self.ok("POST", "/api/v1/groups", {"name": f"{name}-group", "addUsers": []})["group"]["groupId"]
        hook = self.ok("POST", "/api/v1/webhooks", self.hook(name, workspace))["webhook"]["id"]
        member = "ann" if name != "gamma" else "eve"
        told = self.ok("POST", "/api/v1/tokens", {"userId": self.users[member], "description": f"{name}-token"})
        return {"experiment": experiment, "trial": trial, "task": task, "allocation": allocation, "checkpoint": checkpoint, "outside": outside, "outside_trial": outside_trial, "outside_task": outside_task,
                "ended": ended, "spare": spare, "job": ok("GET", f"/api/v1/experiments/{experiment}")["experiment"]["jobId"], "agent": self.agent, "victim": self.users["max"], "ended_trial": ended_trial, "project": project, "workspace": workspace, "model": model, "template": template, "tasks": tasks, "generic": generic,
                "group": group, "webhook": hook, "token": told["tokenId"], "token_text": told["token"], "user": self.users[member], "username": member, "name": name, "key": name[:3].upper(),
                "owner": by}

    def checkpoint(self, name, trial, task):
        """Reports a new checkpoint of a running trial, and returns its UUID."""
        made = str(uuid.uuid4())
        self.ok("POST", "/api/v1/checkpoints", {"allocationId": task + ".1", "taskId": task, "uuid": made, "state": "STATE_COMPLETED", "training": {}, "resources": {f"{name}-file": "3"},
                                                "reportTime": "2026-01-01T00:00:00.000001+00:00", "metadata": {"steps_completed": 1}}, self.of_trial(trial))
        return made

    def hook(self, name, workspace):
        return {"url": "http://127.0.0.1:1/" + name, "name": f"{name}-hook", "webhookType": "WEBHOOK_TYPE_DEFAULT", "workspaceId": workspace, "mode": "WEBHOOK_MODE_WORKSPACE",
                "triggers": [{"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": "COMPLETED"}}]}

    def credentials(self):
        past, alpha = int(time.time() * 1e6) - 1, self.things["alpha"]
        out = bearer(self.login("ann"))
        self.ok("POST", "/api/v1/auth/logout", by=out)
        revoked = self.ok("POST", "/api/v1/tokens", {"userId": self.users["ann"]})
        self.ok("PATCH", f"/api/v1/tokens/{revoked['tokenId']}", {"tokenId": revoked["tokenId"], "setRevoked": True})
        self.ok("PATCH", f"/api/v1/users/{self.users['gone']}", {"active": False})
        self.void = {"none": {}, "garbage": bearer("garbage"), "expired": bearer(self.sealed(f"u1.{self.users['ann']}.1.000102030405060708.{past}")), "logged-out": out,
                     "revoked": bearer(revoked["token"]), "deactivated": self.login_of["gone"],
                     "ended-task": {"Grpc-Metadata-x-allocation-token": "Bearer " + self.sealed(f"a1.{alpha['trial']}.7")}}
        # column -> (headers, set of the things that the requests name)
        trial, command = self.of_trial(alpha["trial"]), bearer(self.sealed(f"t1.{alpha['tasks']['command']}.{self.users['ann']}"))
        self.held = {"other": (self.login_of["zoe"], "alpha"), "viewer": (self.login_of["vic"], "alpha"), "editor": (self.login_of["lee"], "alpha"),
                     "owner": (self.login_of["ann"], "alpha"), "token": (bearer(alpha["token_text"]), "alpha"), "command": (command, "alpha"),
                     "boss": (self.login_of["wes"], "alpha"), "admin": (self.admin, "alpha"),
                     "own": (trial, "alpha"), "ann's": (trial, "beta"), "eve's": (trial, "gamma")}


def filled(path, of, **other):
    """The path with the ids of a set in place of its parameters."""
    kind = next((one for one in ("command", "notebook", "shell", "tensorboard") if path.startswith(f"/api/v1/{one}s/")), None)
    ids = {"experimentId": of["experiment"], "trialId": of["trial"], "labels_trialId": of["trial"], "taskId": of["tasks"][kind] if kind else of["task"],
           "allocationId": of["allocation"], "resourcesId": of["trial"] and f"{of['trial']:08x}-0000-4000-a000-000000000001", "checkpointUuid": of["checkpoint"],
           "projectId": of["project"], "workspaceId": of["workspace"], "id": of["project"] if "/projects/" in path else of["workspace"], "modelName": of["model"],
           "modelVersionNum": 1, "templateName": of["template"], "groupId": of["group"], "webhookId": of["webhook"], "tokenId": of["token"], "userId": of["user"],
           "username": of["username"], "workloadType": "EXPERIMENT", "resourcePoolName": "default", "agentId": of["agent"], "slotId": 0, "key": of["key"] if "/key/" in path else "x",
           "label": f"{of['name']}-label", "externalExperimentId": f"{of['name']}-outside", "externalTrialId": f"{of['name']}-trial", "name": "default", "connectionId": "x", "rest": "x", "localId": f"{of['key']}-1", **other}
    return re.sub(r"\{([^}]*)\}", lambda match: str(ids[match[1].rstrip("*")]), path)
