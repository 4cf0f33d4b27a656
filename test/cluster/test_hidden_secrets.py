"""Credentials of buckets and of registries of images, and the keys of signatures, appear in no answer, refusal, event or log, whoever
asks for what. A configuration that was shown with masks may be sent back."""

import json
import re

import pytest

from cluster_under_test import Cluster, wait_for
from people_and_things import Line, bearer

HIDDEN = "opens-7f3a"  # This text is part of each secret.
FILE = f"""troupe: 1
cluster:
  task_container_defaults: {{registry_auth: {{username: u, password: {HIDDEN}-of-tasks}}}}
  webhooks: {{signing_key: {HIDDEN}-of-webhooks}}
pools:
  main: {{default: true, defaults: {{environment: {{registry_auth: {{username: u, password: {HIDDEN}-of-pool}}}}}}}}
defaults: {{data: {{url: x, secrets: {{key: {HIDDEN}-of-defaults}}}}}}
"""
BUCKET = {"type": "s3", "bucket": "b", "access_key": f"{HIDDEN}-access", "secret_key": f"{HIDDEN}-secret"}
CONFIG = {"name": "plain", "entrypoint": "sleep 1000", "searcher": {"name": "single", "metric": "loss"}, "data": {"secrets": {"key": f"{HIDDEN}-of-experiment"}}}


class House(Cluster):
    def begin(self):
        file = self.root / "cluster.yaml"
        file.write_text(FILE)
        self.up_words = ["--file", str(file)]
        self.up(slots=3)
        self.line = Line(self.url())
        self.by = {name: bearer(json.loads(self.line.ask("POST", "/api/v1/auth/login", {}, {"username": name, "password": ""})[1])["token"]) for name in ("admin", "determined")}
        ok = self.ok
        place = ok("POST", "/api/v1/workspaces", {"name": "place", "checkpointStorageConfig": BUCKET})["workspace"]["id"]
        project = ok("POST", f"/api/v1/workspaces/{place}/projects", {"name": "project", "key": "PRO"})["project"]["id"]
        ok("PUT", f"/api/v1/config-policies/workspaces/{place}/EXPERIMENT", {"workloadType": "EXPERIMENT", "workspaceId": place, "configPolicies": json.dumps(
            {"invariant_config": {"environment": {"registry_auth": {"username": "u", "password": f"{HIDDEN}-of-policy"}}}})})
        ok("POST", "/api/v1/templates/whole", {"name": "whole", "config": {"checkpoint_storage": BUCKET}})
        ok("POST", "/api/v1/templates/wrong", {"name": "wrong", "config": {"checkpoint_storage": {**BUCKET, "bukkit": "x"}, "resources": {"slotz": 1}}})
        experiment = ok("POST", "/api/v1/experiments", {"config": json.dumps(CONFIG), "projectId": project, "template": "whole", "activate": True})["experiment"]["id"]
        trial = wait_for(lambda: ok("GET", f"/api/v1/experiments/{experiment}/trials")["trials"], 30)[0]
        command = ok("POST", "/api/v1/commands", {"workspaceId": place, "config": {"entrypoint": ["sleep", "1000"], "resources": {"slots": 0}, "environment": {"registry_auth": {"username": "u", "password": f"{HIDDEN}-of-command"}}}})
        ok("POST", "/api/v1/models", {"name": "model", "workspaceId": place})
        self.ids = {"experimentId": experiment, "trialId": trial["id"], "labels_trialId": trial["id"], "taskId": command["command"]["id"], "allocationId": command["command"]["id"] + ".1",
                    "workspaceId": place, "projectId": project, "id": place, "modelName": "model", "modelVersionNum": 1, "templateName": "whole", "userId": 1, "username": "admin",
                    "workloadType": "EXPERIMENT", "resourcePoolName": "main", "name": "main", "key": "PRO", "localId": "PRO-1"}

    def ok(self, method, path, body=None, by="admin"):
        status, said = self.line.ask(method, path, self.by[by], body)
        assert status == 200, (method, path, status, said)
        return json.loads(said or "null")


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("hidden"))
    try:
        house.begin()
        yield house
    finally:
        house.close()


def test_no_answer_has_a_secret(house):
    table = house.ok("GET", "/troupe/v1/openapi.json")["paths"]
    more = {"/troupe/v1/live": f"?topics=experiments,experiment/{house.ids['experimentId']},cluster&after=0", "/troupe/v1/events": "?after=0", "/troupe/v1/shell/trace": "?seconds=1"}
    told, asked = [], 0
    for path, methods in sorted(table.items()):
        if "get" not in methods or path in ("/stream", "/troupe/v1/connections/{connectionId}"):
            continue
        target = re.sub(r"\{([^}]*)\}", lambda match: str(house.ids.get(match[1].rstrip("*"), "x")), path) + more.get(path, "")
        for name, by in house.by.items():
            status, said = house.line.ask("GET", target, by)
            asked += status == 200
            if HIDDEN in said:
                told.append((name, target, status, said[max(0, said.index(HIDDEN) - 200):][:300]))
    assert asked > 150, asked
    assert not told, "\n".join(map(str, told))
    for words in (("config", "show"), ("events", "--kind", "audit", "-o", "json"), ("policy", "describe", "--workspace", "place"), ("template", "describe", "whole"), ("workspace", "describe", "place", "-o", "json")):
        done = house.cli(*words)
        assert HIDDEN not in done.stdout + done.stderr, words


def test_no_refusal_has_a_secret(house):
    project, experiment = house.ids["projectId"], house.ids["experimentId"]
    create = lambda config, **with_: ("POST", "/api/v1/experiments", {"config": json.dumps(config), "projectId": project, "activate": False, **with_})
    plain = {key: CONFIG[key] for key in ("name", "entrypoint", "searcher")}
    for method, path, body in [create(plain, template="wrong"), create({**plain, "environment": {"registry_auth": 7}}), create({**plain, "checkpoint_storage": {"type": "s3", "bucket": 7}}, template="whole"),
                               ("POST", "/api/v1/commands", {"config": {"entrypoint": ["true"]}, "templateName": "wrong"}),
                               ("POST", "/api/v1/experiments/continue", {"id": experiment, "overrideConfig": "max_restarts: x"})]:
        status, said = house.line.ask(method, path, house.by["determined"], body)
        assert 400 <= status < 500 and HIDDEN not in said, (path, body, status, said)
        assert len(json.loads(said)["message"]) > 20, said


def test_a_secret_of_the_wrong_type_is_not_quoted(house):
    number, project = 99887766, house.ids["projectId"]
    config = lambda **more: json.dumps({**{key: CONFIG[key] for key in ("name", "entrypoint", "searcher")}, **more})
    bucket, registry = {"type": "s3", "bucket": "b", "secret_key": number}, {"registry_auth": {"username": "u", "password": number}}
    house.ok("POST", "/api/v1/templates/typed", {"name": "typed", "config": {"checkpoint_storage": bucket}})
    create = lambda text, **more: ("POST", "/api/v1/experiments", {"config": text, "projectId": project, "activate": False, **more})
    policies = f"/api/v1/config-policies/workspaces/{house.ids['workspaceId']}/EXPERIMENT"
    asked = [create(config(checkpoint_storage=bucket)), create(config(checkpoint_storage={**bucket, "access_key": number, "secret_key": "x"})), create(config(environment=registry)),
             create(config(environment={"registry_auth": str(number)})), create(config(), template="typed"),
             create(config(checkpoint_storage=dict(bucket, secret_key="WORD")).replace('"WORD"', f"!!int {number}x")), create(config(checkpoint_storage=dict(bucket, secret_key="WORD")).replace('"WORD"', f"!{number}")),
             ("POST", "/api/v1/workspaces", {"name": "typed", "checkpointStorageConfig": bucket}), ("PATCH", f"/api/v1/workspaces/{house.ids['workspaceId']}", {"checkpointStorageConfig": bucket}),
             ("PUT", policies, {"workloadType": "EXPERIMENT", "workspaceId": house.ids["workspaceId"], "configPolicies": json.dumps({"invariant_config": {"checkpoint_storage": bucket}})}),
             ("POST", "/api/v1/commands", {"config": {"entrypoint": ["true"], "environment": registry}}), ("POST", "/troupe/v1/configuration", {"configuration": {"troupe": 1, "defaults": {"environment": registry}}, "secrets": {}, "revision": house.ok("GET", "/troupe/v1/configuration")["revision"]})]
    for method, path, body in asked:
        status, said = house.line.ask(method, path, house.by["admin"], body)
        assert status == 400 and str(number) not in said, (path, body, status, said)
    for text in (f"troupe: 1\ndefaults: {{checkpoint_storage: {{type: s3, bucket: b, secret_key: {number}}}}}\n", f"troupe: 1\ncluster: {{task_container_defaults: {json.dumps(registry)}}}\n",
                 f"troupe: 1\nusers: [{{name: a, password: {number}}}]\n"):
        file = house.root / "typed.yaml"
        file.write_text(text)
        done = house.cli("apply", str(file), check=False)
        assert done.returncode != 0 and str(number) not in done.stdout + done.stderr, done.stdout + done.stderr


def test_what_was_shown_may_be_sent_back(house):
    place = f"/api/v1/config-policies/workspaces/{house.ids['workspaceId']}/EXPERIMENT"
    shown = house.ok("GET", place)["configPolicies"]
    house.ok("PUT", place, {"workloadType": "EXPERIMENT", "workspaceId": house.ids["workspaceId"], "configPolicies": json.dumps({**shown, "constraints": {"priority_limit": 3}})})
    now = house.ok("GET", "/troupe/v1/configuration")
    assert now["configuration"]["defaults"]["data"]["secrets"] == {"key": "********"}
    house.ok("POST", "/troupe/v1/configuration", {"configuration": {**now["configuration"], "actors": {"log_level": "info"}}, "secrets": {}, "revision": now["revision"]})
    told = told_to_a_task(house)
    assert told["data"]["secrets"] == {"key": f"{HIDDEN}-of-defaults"}
    assert told["environment"]["registry_auth"]["password"] == f"{HIDDEN}-of-policy"
    assert told["checkpoint_storage"]["secret_key"] == f"{HIDDEN}-secret"


def test_a_fork_has_the_credentials_of_its_owner_alone(house):
    ok, project = house.ok, house.ids["projectId"]
    plain = {"name": "own", "entrypoint": "true", "searcher": {"name": "single", "metric": "loss"}}
    own = {**plain, "checkpoint_storage": {**BUCKET, "secret_key": f"{HIDDEN}-of-determined"}}
    fork = lambda parent, by, **more: house.line.ask("POST", "/api/v1/experiments", house.by[by], {
        "config": json.dumps({**ok("GET", f"/api/v1/experiments/{parent}")["config"], **more}), "parentId": parent, "projectId": project, "activate": False})
    made = lambda config: ok("POST", "/api/v1/experiments", {"config": json.dumps(config), "projectId": project, "activate": False}, by="determined")["experiment"]["id"]
    mine, of_workspace = made(own), made(plain)
    assert fork(mine, "determined")[0] == 200
    status, said = fork(mine, "admin")
    assert status == 400 and f"the credentials of experiment {mine} are those of determined" in said and HIDDEN not in said, said
    assert fork(mine, "admin", checkpoint_storage={"type": "s3", "bucket": "b", "access_key": "a", "secret_key": "b"})[0] == 200
    assert fork(of_workspace, "admin")[0] == 200, "what its workspace gives is nobody's own"


def told_to_a_task(house):
    """The configuration that a task gets, with its secrets."""
    config = {"name": "teller", "entrypoint": "echo \"told $DET_EXPERIMENT_CONFIG\"", "searcher": {"name": "single", "metric": "loss"}, "max_restarts": 0}
    made = house.ok("POST", "/api/v1/experiments", {"config": json.dumps(config), "projectId": house.ids["projectId"], "activate": True, "template": "whole"})["experiment"]["id"]
    trial = wait_for(lambda: house.ok("GET", f"/api/v1/experiments/{made}/trials")["trials"], 30)[0]["id"]

    def told():
        lines = house.line.ask("GET", f"/api/v1/trials/{trial}/logs", house.by["admin"])[1].splitlines()
        return [text[text.index("told ") + 5:] for text in (json.loads(one)["result"]["log"] for one in lines) if "told {" in text]

    return json.loads(wait_for(told, 60)[0])


def test_a_new_secret_of_the_file_is_applied(house):
    file = house.root / "cluster.yaml"
    file.write_text(FILE.replace("of-defaults", "of-later") + "actors: {log_level: info}\n")
    said = house.cli("apply", str(file)).stdout
    assert said == "no changes\nits secrets are not compared: --yes applies them\n"
    assert HIDDEN not in house.cli("apply", str(file), "--yes").stdout
    assert told_to_a_task(house)["data"]["secrets"] == {"key": f"{HIDDEN}-of-later"}
