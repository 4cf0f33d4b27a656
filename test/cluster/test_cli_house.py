"""The verbs of `troupe` for workspaces, projects, templates, models, people, rules and notes of experiments, against a real cluster. Each
verb is run, its change is read back, and `troupe events --kind audit` says who made it."""

import json
import signal
import subprocess

import pytest

from cluster_under_test import BINARY, Cluster, wait_for


class House(Cluster):
    """A cluster on which verbs run as several users."""

    def said_by(self, user, *words, check=True, password=""):
        env = {**self.env, "TROUPE_USER": user, "TROUPE_PASSWORD": password}
        done = subprocess.run([BINARY, *words], env=env, capture_output=True, text=True, timeout=180)
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def by(self, user, *words):
        return json.loads(self.said_by(user, *words, "-o", "json").stdout)

    def refused(self, code, *words, user="determined"):
        done = self.said_by(user, *words, check=False)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        assert done.stderr.startswith("error: "), done.stderr
        return done.stderr

    def file(self, name, text):
        path = self.root / name
        path.write_text(text)
        return str(path)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    with House(tmp_path_factory.mktemp("house")) as cluster:
        cluster.up(slots=2)
        yield cluster


@pytest.fixture(scope="module")
def ended(house):
    """The id of an experiment that has completed, with checkpoints."""
    experiment = house.submit(trials=2, epoch_s=0.01)
    assert house.wait_end(experiment) == "COMPLETED"
    return experiment


def test_workspaces(house):
    made = house.json("workspace", "create", "vision", "--default-pool", "default")
    assert made["name"] == "vision" and made["defaultComputePool"] == "default"
    assert house.cli("workspace", "create", "sound").stdout.startswith("workspace ")
    assert "avoid names equal" in house.refused(8, "workspace", "create", "SOUND")
    storage = house.file("storage.yaml", f"checkpoint_storage:\n  type: shared_fs\n  host_path: {house.root}/kept\n")
    now = house.json("workspace", "set", "vision", "--name", "sight", "--default-pool", "none", "--checkpoint-storage", storage, "--unpin")
    assert (now["name"], now["defaultComputePool"], now["pinned"]) == ("sight", "", False)
    assert now["checkpointStorageConfig"]["host_path"] == f"{house.root}/kept"
    assert house.cli("workspace", "set", "sight", "--archive").stdout == f"changed workspace {made['id']}\n"
    assert house.json("workspace", "describe", "sight")["archived"]
    house.refused(2, "workspace", "set", "sight", "--name", "vision")
    now = house.json("workspace", "set", str(made["id"]), "--unarchive", "--name", "vision", "--pin", "--checkpoint-storage", "none")
    assert not now["archived"] and now["pinned"] and not now["checkpointStorageConfig"]
    assert "only an admin" in house.refused(4, "workspace", "set", "vision", "--account", "1000:1000:ann:users")
    assert house.by("admin", "workspace", "set", "vision", "--account", "1000:1000:ann:users")["agentUserGroup"]["agentUser"] == "ann"
    assert "expected UID:GID:USER:GROUP" in house.refused(2, "workspace", "set", "vision", "--account", "1000")
    assert "nothing is set" in house.refused(2, "workspace", "set", "vision")
    assert "troupe workspace list" in house.refused(5, "workspace", "describe", "smell")
    broken = house.file("broken.yaml", "type: [shared_fs\n")
    assert "broken.yaml:" in house.refused(2, "workspace", "set", "vision", "--checkpoint-storage", broken)
    assert "--yes" in house.refused(2, "workspace", "delete", "sound")
    assert house.cli("workspace", "delete", "sound", "--yes").stdout.startswith("deleted workspace ")
    assert [w["name"] for w in house.json("workspace", "list")] == ["Uncategorized", "vision"]


def test_projects(house):
    made = house.json("project", "create", "vision", "cats", "--description", "all of them", "--key", "CAT")
    assert (made["name"], made["key"], made["workspaceName"]) == ("cats", "CAT", "vision")
    now = house.json("project", "set", "vision/cats", "--name", "tigers", "--key", "TIG", "--description", "", "--note", "plan=a = b", "--note", "end=soon")
    assert (now["name"], now["key"], now["description"]) == ("tigers", "TIG", "")
    assert [(n["name"], n["contents"]) for n in now["notes"]] == [("plan", "a = b"), ("end", "soon")]
    card = house.cli("project", "describe", "vision/tigers").stdout
    assert "NOTES" in card and "a = b" in card
    assert house.json("project", "set", str(made["id"]), "--clear-notes", "--note", "new=1")["notes"] == [{"name": "new", "contents": "1"}]
    house.cli("workspace", "create", "other")
    assert house.json("project", "set", "vision/tigers", "--workspace", "other", "--archive")["workspaceName"] == "other"
    assert house.json("project", "describe", "other/tigers")["archived"]
    assert not house.json("project", "set", "other/tigers", "--unarchive")["archived"]
    assert "exclude each other" in house.refused(2, "project", "set", "other/tigers", "--archive", "--unarchive")
    assert "troupe project list" in house.refused(5, "project", "describe", "tigers")
    assert house.cli("project", "delete", "other/tigers", "--yes").stdout == f"deleted project {made['id']}\n"
    assert "tigers" not in house.cli("workspace", "describe", "other").stdout
    house.cli("workspace", "delete", "other", "--yes")


def test_templates(house):
    config = house.file("small.yaml", "resources: {slots: 1}\nmax_restarts: 2\n")
    assert house.json("template", "create", "small", config)["config"]["max_restarts"] == 2
    assert house.refused(8, "template", "create", "small", config)
    other = house.file("other.json", '{"max_restarts": 3}')
    assert house.json("template", "set", "small", "--config-file", other)["config"] == {"max_restarts": 3}
    moved = house.json("template", "set", "small", "--workspace", "vision", "--name", "tiny")
    assert (moved["name"], moved["config"]) == ("tiny", {"max_restarts": 3})
    assert moved["workspaceId"] == house.json("workspace", "describe", "vision")["id"]
    assert house.cli("template", "describe", "tiny").stdout.endswith("\nmax_restarts: 3\n")
    assert "other.yaml" in house.refused(2, "template", "set", "tiny", "--config-file", str(house.root / "other.yaml"))
    assert house.cli("template", "delete", "tiny").stdout == "deleted template tiny\n"
    assert "troupe template list" in house.refused(5, "template", "describe", "tiny")


def test_models(house, ended):
    made = house.json("model", "create", "digits", "--description", "reads digits", "--label", "old", "--metadata", "accuracy=0.5", "--metadata", "who=ann")
    assert (made["labels"], made["metadata"]) == (["old"], {"accuracy": 0.5, "who": "ann"})
    now = house.json("model", "set", "digits", "--add-label", "good", "--remove-label", "old", "--metadata", "accuracy=0.9",
                     "--remove-metadata", "who", "--notes", "text", "--workspace", "vision")
    assert (now["labels"], now["metadata"], now["notes"]) == (["good"], {"accuracy": 0.9}, "text")
    assert now["workspaceId"] == house.json("workspace", "describe", "vision")["id"]
    uuid = max(house.checkpoints(ended), key=lambda c: c["totalBatches"])["uuid"]  # the latest of its trial, which the policy keeps
    version = house.json("model", "register", "digits", uuid, "--name", "first", "--comment", "good", "--label", "a")
    assert (version["version"], version["checkpoint"]["uuid"], version["labels"]) == (1, uuid, ["a"])
    assert house.cli("model", "register", "digits", uuid).stdout == "version 2\n"
    version = house.json("model", "set-version", "digits", "1", "--comment", "better", "--add-label", "live", "--metadata", "n=3")
    assert (version["name"], version["comment"], version["labels"], version["metadata"]) == ("first", "better", ["a", "live"], {"n": 3})
    assert [v["version"] for v in house.json("model", "versions", "digits")] == [1, 2]
    assert [v["version"] for v in house.json("model", "describe", "digits")["modelVersions"]] == [1, 2]
    assert "VERSIONS" in house.cli("model", "describe", str(made["id"])).stdout
    assert "troupe model versions" in house.refused(5, "model", "set-version", "digits", "7", "--name", "x")
    assert "troupe checkpoint list" in house.refused(5, "model", "register", "digits", "00000000-0000-4000-8000-000000000000")
    assert house.cli("model", "unregister", "digits", "2").stdout == "unregistered version 2\n"
    assert house.json("model", "set", "digits", "--archive")["archived"]
    house.refused(2, "model", "set", "digits", "--notes", "more")
    assert house.json("model", "set", "digits", "--unarchive", "--name", "numbers")["name"] == "numbers"
    assert "--yes" in house.refused(2, "model", "delete", "numbers")
    assert house.cli("model", "delete", "numbers", "--yes").stdout == f"deleted model {made['id']}\n"
    assert house.json("model", "list") == []


def test_people(house):
    secret = house.file("secret", "Secret-123\n")
    made = house.by("admin", "user", "create", "eve", "--display-name", "Eve", "--password-file", secret)
    assert (made["username"], made["displayName"], made["admin"]) == ("eve", "Eve", False)
    assert house.said_by("admin", "user", "create", "rose", "--admin").stdout.startswith("user ")
    house.refused(4, "user", "set", "eve", "--admin", "on")
    now = house.by("admin", "user", "set", "eve", "--admin", "on", "--display-name", "Eve E.", "--account", "1000:1001:eve:users")
    assert (now["admin"], now["displayName"], now["agentUserGroup"]["agentGid"]) == (True, "Eve E.", 1001)
    house.said_by("admin", "user", "set", "eve", "--admin", "off", "--name", "ewa")
    assert house.json("user", "describe", "ewa")["id"] == made["id"]
    other = house.file("other", "Other-1234\n")
    house.said_by("ewa", "user", "set", "ewa", "--password-file", other, password="Secret-123")
    assert house.said_by("ewa", "user", "list", check=False, password="Secret-123").returncode == 4
    assert house.said_by("ewa", "user", "list", password="Other-1234").returncode == 0
    assert house.said_by("admin", "user", "set", "ewa", "--deactivate").stdout == f"changed user {made['id']}\n"
    assert house.said_by("ewa", "user", "list", check=False, password="Other-1234").returncode == 4
    house.said_by("admin", "user", "set", "ewa", "--activate")
    assert house.said_by("ewa", "user", "list", password="Other-1234").returncode == 0
    assert "on, off" in house.refused(2, "user", "set", "ewa", "--admin", "perhaps")
    assert "troupe user list" in house.refused(5, "user", "describe", "nobody")

    token = house.json("token", "create", "--description", "nightly", "--expires", "1d")
    assert set(token) == {"token", "tokenId"}
    number = str(token["tokenId"])
    assert house.json("token", "set", number, "--description", "weekly")["description"] == "weekly"
    assert not house.json("token", "describe", number)["revoked"]
    assert house.json("token", "revoke", number)["revoked"] and house.json("token", "describe", number)["revoked"]
    assert "troupe token list" in house.refused(5, "token", "describe", "99")

    group = house.by("admin", "group", "create", "team", "--user", "ewa")
    assert [u["username"] for u in group["users"]] == ["ewa"]
    now = house.by("admin", "group", "set", "team", "--name", "band", "--add", "rose", "--add", "determined", "--remove", "ewa")
    assert now["name"] == "band" and sorted(u["username"] for u in now["users"]) == ["determined", "rose"]
    assert "USERS" in house.cli("group", "describe", "band").stdout
    house.refused(4, "group", "set", "band", "--name", "x")

    house.said_by("admin", "role", "give", "Viewer", "--user", "ewa", "--workspace", "vision")
    given = house.by("admin", "role", "give", "Viewer", "--group", "band")
    assert [a["userId"] for a in given["userRoleAssignments"]] == [made["id"]]
    assert [a["groupId"] for a in given["groupRoleAssignments"]] == [now["groupId"]]
    card = house.said_by("admin", "role", "describe", "Viewer").stdout
    assert "VIEW_WORKSPACE" in card
    assert any(line.split() == ["user", "ewa", "vision"] for line in card.splitlines()), card
    assert any(line.split() == ["group", "band", "everywhere"] for line in card.splitlines()), card
    assert any(line.split()[:2] == ["Viewer", "vision"] for line in house.said_by("admin", "user", "describe", "ewa").stdout.splitlines())
    house.said_by("admin", "role", "give", "Viewer", "--user", "ewa", "--workspace", "vision", "--take")
    assert house.by("admin", "role", "describe", "4")["userRoleAssignments"] == []
    assert house.said_by("admin", "group", "delete", "band").stdout == f"deleted group {now['groupId']}\n"


def test_rules(house):
    limits = house.file("limits.yaml", "constraints:\n  resources:\n    max_slots: 2\n")
    assert house.by("admin", "policy", "set", limits, "--kind", "NTSC")["constraints"] == {"resources": {"max_slots": 2}}
    house.cli("policy", "set", limits, "--workspace", "vision")
    listed = [(p["workspaceName"], p["workloadType"]) for p in house.by("admin", "policy", "list")]
    assert listed == [(None, "NTSC"), ("vision", "EXPERIMENT")]
    assert house.cli("policy", "describe", "--workspace", "vision").stdout == "constraints:\n  resources:\n    max_slots: 2\n"
    assert house.json("policy", "describe", "--workspace", "vision", "--kind", "NTSC") == {}
    house.cli("policy", "delete", "--workspace", "vision")
    house.said_by("admin", "policy", "delete", "--kind", "NTSC")
    assert house.by("admin", "policy", "list") == []
    assert "list.yaml: has to be a map" in house.refused(2, "policy", "set", house.file("list.yaml", "[1]\n"), "--workspace", "vision")
    hook = house.json("webhook", "create", "chat", "http://127.0.0.1:9/x", "--workspace", "vision", "--state", "completed", "--log", "out of memory")
    assert [t["condition"] for t in hook["triggers"]] == [{"state": "COMPLETED"}, {"regex": "out of memory"}]
    assert house.json("webhook", "set", "chat", "--url", "http://127.0.0.1:9/y")["url"] == "http://127.0.0.1:9/y"
    assert "TRIGGERS" in house.cli("webhook", "describe", str(hook["id"])).stdout
    assert "troupe webhook list" in house.refused(5, "webhook", "describe", "post")
    assert house.cli("webhook", "delete", "chat").stdout == "deleted\n"
    assert house.json("webhook", "list") == []


REPORTS_OF_ITS_OWN = """
import determined as det
with det.core.init() as core:
    for step in range(1, 4):
        core.train.report_metrics("inference", step, {"p95": 10.0 - step})
    core.train.report_validation_metrics(3, {"loss": 1.0})
"""


def test_reports_of_a_group_that_the_trial_named_itself(house):
    job = house.root / "reports"
    job.mkdir()
    (job / "train.py").write_text(REPORTS_OF_ITS_OWN)
    config = house.file("reports.yaml", "name: r\nentrypoint: python3 train.py\nsearcher: {name: single, metric: loss}\nmax_restarts: 0\n")
    experiment = house.json("experiment", "create", config, str(job))["id"]
    assert house.wait_end(experiment) == "COMPLETED"
    trial = str(house.trials(experiment)[0]["id"])
    rows = house.json("trial", "metrics", trial, "--group", "inference")
    assert [(row["group"], row["metrics"]) for row in rows] == [("inference", {"p95": 10.0 - step}) for step in (1, 2, 3)]
    shown = house.cli("trial", "metrics", trial, "--group", "inference", "--metric", "p95").stdout
    assert "inference p95" in shown and "validation" not in shown, shown


def test_what_is_said_of_experiments(house, ended):
    name = str(ended)
    now = house.json("experiment", "set", name, "--name", "new name", "--description", "of the verbs", "--notes", "long text")
    assert (now["name"], now["description"], now["notes"]) == ("new name", "of the verbs", "long text")
    assert house.cli("experiment", "set", name, "--save-experiment-best", "1", "--save-trial-best", "3", "--save-trial-latest", "2").stdout == f"changed experiment {name}\n"
    assert house.json("experiment", "label", name, "--add", "good")["labels"] == ["good"]
    assert house.cli("experiment", "label", name).stdout == "good\n"
    house.cli("project", "create", "vision", "dogs")
    assert [e["projectName"] for e in house.json("experiment", "move", name, "--project", "vision/dogs")] == ["dogs"]
    assert "--project" in house.refused(2, "experiment", "move", name)
    assert [e["archived"] for e in house.json("experiment", "archive", name)] == [True]
    assert house.cli("experiment", "unarchive", name).stdout == f"unarchived experiment {name}\n"
    done = house.cli("experiment", "archive", "99999", name, "-o", "json", check=False)
    assert done.returncode == 5 and [e["id"] for e in json.loads(done.stdout)] == [ended], "one of two is done"
    house.cli("experiment", "unarchive", name)
    again = house.submit(trials=1, epoch_s=0.01)
    house.wait_end(again)
    deleting = house.json("experiment", "delete", str(again), "--yes")
    assert [e["id"] for e in deleting] == [again]
    wait_for(lambda: house.cli("experiment", "describe", str(again), check=False).returncode == 5, 60)


def test_a_search_of_one_trial_goes_on(house):
    config = house.root / "single.yaml"
    house.prepare(1, 0.01)
    text = (house.root / "job.yaml").read_text()
    start = text.index("searcher:")
    config.write_text(text[:start] + "searcher: {name: single, metric: loss, max_length: {batches: 16}}\n" + text[text.index("\n", start) + 1:])
    experiment = house.json("experiment", "create", str(config), str(house.root / "job"))["id"]
    house.wait_end(experiment)
    continued = house.json("experiment", "continue", str(experiment), "--config", "max_restarts=0")
    assert continued["id"] == experiment
    house.wait_end(experiment)


def test_events_say_who_did_it(house, ended):
    rows = house.by("admin", "events", "--kind", "audit")
    numbers = [row["sequence"] for row in rows]
    assert numbers == sorted(numbers) and len(set(numbers)) == len(numbers)
    assert all(row["fields"]["by"] for row in rows)
    types = {row["type"] for row in rows}
    assert {"workspace_changed", "project_changed", "template_changed", "model_changed", "model_version_changed", "user_changed", "group_changed", "roles_changed",
            "token_changed", "policy_changed", "webhook_changed", "experiment_moved", "experiment_described", "experiment_deleted"} <= types, types
    assert "run_started" not in types
    assert any(row["type"] == "group_changed" and row["fields"]["by"] == "admin" for row in rows)
    assert any(row["type"] == "model_changed" and row["fields"]["by"] == "determined" for row in rows)
    assert any(row["type"] == "experiment_described" and row["fields"].get("saveTrialBest") == 3 for row in rows)
    newest = house.by("admin", "events", "--kind", "audit", "--limit", "3")
    assert [row["sequence"] for row in newest] == numbers[-3:]
    assert house.by("admin", "events", "--kind", "audit", "--since", "2100-01-01T00:00:00Z") == []
    assert len(house.by("admin", "events", "--kind", "audit", "--since", "1h")) == len(rows)
    own = {row["type"] for row in house.by("admin", "events", "--experiment", str(ended))}
    assert {"run_started", "experiment_moved", "experiment_described"} <= own, own
    assert house.said_by("admin", "events", "--kind", "audit", "--limit", "1", "-o", "csv").stdout.startswith("sequence,at,fields.by,type,entity,fields\n")
    assert isinstance(house.by("admin", "events", "--kind", "shell"), list)
    assert "yesterday" in house.refused(2, "events", "--since", "yesterday")
    assert "--follow" in house.refused(2, "events", "--kind", "node", "--follow")


def test_events_say_who_ordered_work(house):
    """The events name the user who made, paused, activated, canceled or killed an experiment, also where that was not the owner."""
    house.said_by("admin", "user", "create", "alice")
    house.said_by("admin", "user", "create", "bob", "--admin")
    house.hold(0)
    made = [str(house.by("alice", "experiment", "create", *house.prepare(2, 0.01))["id"]) for _ in range(4)]
    told = lambda number: [(row["type"], row["fields"].get("state"), row["fields"]["by"])
                           for row in house.by("admin", "events", "--kind", "audit", "--experiment", made[number])]
    begun = ("experiment_created", None, "alice")
    for user, verb, number in (("alice", "pause", 0), ("bob", "activate", 0), ("alice", "kill", 0), ("bob", "kill", 1), ("alice", "cancel", 2)):
        house.said_by(user, "experiment", verb, made[number])
    trial = str(wait_for(lambda: house.trials(int(made[3])))[0]["id"])
    house.said_by("bob", "trial", "kill", trial)
    command = house.said_by("alice", "command", "start", "--slots", "0", "--", "sleep 1000").stdout.strip()
    house.said_by("bob", "command", "kill", command)
    for number in range(3):
        assert house.wait_end(int(made[number])) == "CANCELED"
    assert told(0) == [begun, ("experiment_changed", "PAUSED", "alice"), ("experiment_changed", "ACTIVE", "bob"), ("experiment_changed", "STOPPING_KILLED", "alice")]
    assert told(1) == [begun, ("experiment_changed", "STOPPING_KILLED", "bob")]
    assert told(2) == [begun, ("experiment_changed", "STOPPING_CANCELED", "alice")]
    wait_for(lambda: told(3) == [begun, ("trial_stop_ordered", None, "bob")], what=lambda: told(3))
    rows = house.by("admin", "events", "--kind", "audit")
    assert [row["fields"]["by"] for row in rows if row["entity"] == f"trial/{trial}"] == ["bob"]
    assert [(row["type"], row["fields"]["by"]) for row in rows if row["entity"] == f"task/{command}"] == [("task_created", "alice"), ("task_stop_ordered", "bob")]
    house.go_on()
    house.wait_end(int(made[3]))


def test_events_go_on(house):
    seen = house.root / "followed"
    with open(seen, "w") as out:
        follower = subprocess.Popen([BINARY, "events", "--kind", "audit", "--limit", "1", "--follow", "-o", "json"], env={**house.env, "TROUPE_USER": "admin"}, stdout=out)
    try:
        whole = lambda: seen.read_text().split("\n")[:-1]
        wait_for(lambda: len(whole()) == 1, 30)
        house.cli("workspace", "create", "late")
        wait_for(lambda: any(json.loads(line)["fields"].get("name") == "late" for line in whole()), 30)
        follower.send_signal(signal.SIGINT)
        assert follower.wait(timeout=120) == 130
    finally:
        follower.kill()
    assert {json.loads(line)["fields"]["by"] for line in seen.read_text().splitlines()[1:]} == {"determined"}
