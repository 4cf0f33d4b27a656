"""Workspaces, projects, templates, labels, archives and the registry of models, by the unmodified `determined` client against a real
cluster; and what is left of these after `kill -9` of the master."""

import concurrent.futures
import json
import re

import pytest

from cluster_under_test import free_port
from people_and_things import Line
from test_stock_client import Stock


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Stock(tmp_path_factory.mktemp("places")) as cluster:
        cluster.listen = f"127.0.0.1:{free_port()}"  # the same address after a restart
        cluster.up(slots=2)
        cluster.det("user", "login", "admin", home="admin", stdin="\n")
        cluster.det("user", "create", "ann", "--password", "Secret-123", home="admin")
        cluster.det("user", "login", "ann", home="ann", stdin="Secret-123\n")
        yield cluster


@pytest.fixture(scope="module")
def ended(cluster):
    """The id of an experiment that has completed, with checkpoints."""
    experiment, _ = cluster.create(name="first", hparams="{steps: 10}", more="labels: [old]\ndescription: of the file\n")
    cluster.wait(experiment)
    return experiment


def project(cluster, workspace, name):
    found = json.loads(cluster.det("project", "describe", workspace, name, "--json"))
    return found[0] if isinstance(found, list) else found


def test_workspaces_and_projects(cluster):
    cluster.det("workspace", "create", "vision", home="ann")
    said = cluster.det("workspace", "create", "VISION", home="ann", code=1)
    assert "avoid names equal to other workspaces" in said
    assert "vision" in cluster.det("workspace", "list") and "Uncategorized" in cluster.det("workspace", "list")
    cluster.det("project", "create", "vision", "cats", "--description", "all of them", home="ann")
    found = project(cluster, "vision", "cats")
    assert found["description"] == "all of them" and found["key"] == "CAT", found
    assert "cats" in cluster.det("project", "list", "vision")
    assert "cats" in cluster.det("workspace", "list-projects", "vision")
    cluster.det("project", "edit", "vision", "cats", "--new_name", "tigers", home="ann")
    assert project(cluster, "vision", "tigers")["name"] == "tigers"
    cluster.det("project", "archive", "vision", "tigers", home="ann")
    assert project(cluster, "vision", "tigers")["archived"]
    cluster.det("project", "unarchive", "vision", "tigers", home="ann")
    assert not project(cluster, "vision", "tigers")["archived"]


def test_the_default_pools_of_a_workspace_are_edited(cluster):
    cluster.det("workspace", "create", "pooled", home="ann")
    edited = json.loads(cluster.det("workspace", "edit", "pooled", "--default-compute-pool", "default", "--default-aux-pool", "default", "--json", home="ann"))
    assert (edited["defaultComputePool"], edited["defaultAuxPool"]) == ("default", "default"), edited
    said = cluster.det("workspace", "edit", "pooled", "--default-compute-pool", "moon", home="ann", code=1)
    assert "there is no pool 'moon' that workspace 'pooled' may use" in said, said
    cluster.det("workspace", "delete", "pooled", "--yes", home="ann")


def test_others_may_not_change_what_is_not_theirs(cluster):
    cluster.det("workspace", "create", "hers", home="ann")
    said = cluster.det("workspace", "archive", "hers", home="home", code=1)  # `determined` is not an admin.
    assert "access denied" in said.lower() or "Forbidden" in said, said
    cluster.det("workspace", "archive", "hers", home="admin")
    cluster.det("workspace", "unarchive", "hers", home="ann")
    cluster.det("workspace", "delete", "hers", "--yes", home="ann")
    assert "hers" not in cluster.det("workspace", "list")


def test_an_experiment_is_put_where_it_is_said(cluster, ended):
    cluster.det("workspace", "create", "audio", home="ann")
    cluster.det("project", "create", "audio", "speech", home="ann")
    where = project(cluster, "audio", "speech")["id"]
    there, _ = cluster.create("--project_id", str(where), name="there", hparams="{steps: 5}")
    named, _ = cluster.create(name="named", hparams="{steps: 5}", more="workspace: audio\nproject: speech\n")
    for one in (there, named):
        shown = cluster.described(one)
        assert (shown["projectId"], shown["projectName"], shown["workspaceName"]) == (where, "speech", "audio"), shown
    said = cluster.det("experiment", "create", *cluster.write(name="lost", more="workspace: audio\nproject: nowhere\n"), code=1)
    assert "'nowhere' not found" in said, said
    assert cluster.described(ended)["projectId"] == 1
    said = cluster.det("experiment", "move", str(ended), "audio", "speech", home="ann", code=1)
    assert "access denied" in said, said  # `ann` is neither the owner nor an admin.
    cluster.det("experiment", "move", str(ended), "audio", "speech")  # by the owner
    assert cluster.described(ended)["projectName"] == "speech"
    listed = cluster.det("project", "list-experiments", "audio", "speech")
    assert all(re.search(rf"^\s*{one}\s", listed, re.M) for one in (ended, there, named)), listed
    for one in (there, named):
        cluster.wait(one)


def test_what_people_say_of_an_experiment(cluster, ended):
    experiment = str(ended)
    shown = cluster.described(ended)
    assert shown["labels"] == ["old"] and shown["description"] == "of the file", shown
    cluster.det("experiment", "set", "name", experiment, "better name")
    cluster.det("experiment", "set", "description", experiment, "a longer text")
    cluster.det("experiment", "label", "add", experiment, "good")
    cluster.det("experiment", "label", "remove", experiment, "old")
    shown = cluster.described(ended)
    assert (shown["name"], shown["description"], shown["labels"]) == ("better name", "a longer text", ["good"]), shown
    assert "better name" in cluster.det("experiment", "list", "--all")
    cluster.det("experiment", "archive", experiment)
    assert cluster.described(ended)["archived"]
    assert "better name" not in cluster.det("experiment", "list")
    assert "better name" in cluster.det("experiment", "list", "--all")
    cluster.det("experiment", "unarchive", experiment)
    assert "better name" in cluster.det("experiment", "list", "--all")


def test_templates_stand_below_the_configuration(cluster):
    file = cluster.root / "template.yaml"
    file.write_text("max_restarts: 3\ndescription: of the template\nhyperparameters: {steps: 5}\n")
    cluster.det("template", "create", "small", str(file))
    assert "small" in cluster.det("template", "list")
    assert "max_restarts: 3" in cluster.det("template", "describe", "small")
    experiment, _ = cluster.create("--template", "small", name="from-template", hparams="{pause_s: 0.01}")
    shown = cluster.described(experiment)
    assert shown["description"] == "of the template", shown
    assert shown["config"]["hyperparameters"]["steps"]["val"] == 5, shown["config"]
    assert shown["config"]["max_restarts"] == 0, "the file wins"
    cluster.wait(experiment)
    said = cluster.det("experiment", "create", *cluster.write(name="none"), "--template", "gone", code=1)
    assert "template 'gone' not found" in said, said
    cluster.det("template", "remove", "small")
    assert "small" not in cluster.det("template", "list")


def test_the_registry_by_command_line_and_sdk(cluster, ended):
    cluster.det("model", "create", "resnet", "--description", "the old one")
    said = cluster.det("model", "create", "a/b", code=1)
    assert "cannot have slashes" in said, said
    uuid = [one["uuid"] for one in cluster.notes(cluster.trial_of(ended)) if "uuid" in one][-1]
    cluster.det("model", "register-version", "resnet", uuid)
    assert uuid in cluster.det("model", "describe", "resnet")
    cluster.python(f"""
from determined.experimental import client
m = client.get_model("resnet")
assert m.description == "the old one", m.description
v = m.register_version({uuid!r})
assert v.model_version == 2, v.model_version
v.set_name("second"); v.set_notes("of a test")
assert m.get_version(2).name == "second"
m.set_labels(["prod"]); m.add_metadata({{"a": 1}})
again = client.get_model_by_id(m.model_id) if hasattr(client, "get_model_by_id") else client.get_model("resnet")
assert again.labels == ["prod"] and again.metadata == {{"a": 1}}, (again.labels, again.metadata)
assert [x.name for x in client.get_models(name="res")] == ["resnet"]
assert client.get_model_labels() == ["prod"]
m.archive()
try:
    m.register_version({uuid!r})
    raise SystemExit("an archived model took a version")
except Exception as why:
    assert "archived" in str(why), why
m.unarchive()
v.delete()
assert [x.model_version for x in m.list_versions()] == [1]
""")


def test_what_was_acknowledged_outlives_the_master(cluster, ended):
    cluster.det("workspace", "create", "lasting", home="ann")
    cluster.det("project", "create", "lasting", "kept", home="ann")
    cluster.det("experiment", "label", "add", str(ended), "kept-label")
    cluster.kill_node()
    cluster.up(slots=2)
    assert project(cluster, "lasting", "kept")["key"] == "KEP"
    assert "kept-label" in cluster.described(ended)["labels"]
    assert "resnet" in cluster.det("model", "list")
    said = cluster.det("workspace", "create", "Lasting", home="ann", code=1)
    assert "avoid names equal" in said, said


def test_who_is_renamed_keeps_what_was_made_before(cluster):
    """Under the new name alone, and over a restart too, a user owns the workspace and the experiment. Nobody else can take a former name."""
    cluster.det("user", "create", "Cy", "--password", "Secret-123", home="admin")
    cluster.det("user", "login", "Cy", home="cy", stdin="Secret-123\n")
    cluster.det("workspace", "create", "of-cy", home="cy")
    cluster.det("model", "create", "net-of-cy", home="cy")
    cluster.det("project", "create", "of-cy", "one", home="cy")
    before = int(re.search(r"Created experiment (\d+)", cluster.det("experiment", "create", *cluster.write(name="of-cy", hparams="{steps: 5}"), home="cy"))[1])
    cluster.wait(before)
    for name, former in (("cyrus", "Cy"), ("cyrano", "cyrus")):
        cluster.det("user", "rename", former, name, home="admin")
        assert "Invalid username" in cluster.det("user", "login", former, home="cy", stdin="Secret-123\n", code=1)
        cluster.det("user", "login", name, home="cy", stdin="Secret-123\n")
        assert cluster.described(before)["username"] == name
        listed = json.loads(cluster.det("dev", "curl", f"/api/v1/experiments?users={name}"))["experiments"]
        assert [one["id"] for one in listed] == [before], listed
        assert not json.loads(cluster.det("dev", "curl", f"/api/v1/experiments?users={former}"))["experiments"]
        cluster.det("workspace", "archive", "of-cy", home="cy")
        cluster.det("workspace", "unarchive", "of-cy", home="cy")
        assert "already exists" in cluster.det("user", "create", former, "--password", "Secret-123", home="admin", code=1)
        cluster.kill_node()
        cluster.up(slots=2)
    cluster.det("project", "delete", "of-cy", "one", "--yes", home="cy")
    cluster.det("model", "delete", "net-of-cy", home="cy")
    cluster.det("experiment", "delete", str(before), "--yes", home="cy")


def test_two_changes_at_once_are_both_kept(cluster):
    """Labels, notes and bindings, each added by many clients at the same time."""
    experiment, _ = cluster.create(name="many", hparams="{steps: 1}")
    cluster.det("workspace", "create", "shared", home="admin")
    cluster.det("project", "create", "shared", "notes", home="admin")
    where = project(cluster, "shared", "notes")["id"]
    admin = {"Authorization": cluster.request("/").get_header("Authorization")}
    ask = lambda method, path, body: Line(cluster.url()).ask(method, "/api/v1/" + path, admin, body)
    with concurrent.futures.ThreadPoolExecutor(8) as many:
        asks = [many.submit(ask, method, path, body) for i in range(8)
                for method, path, body in (("PUT", f"experiments/{experiment}/labels/l{i}", {}), ("POST", f"projects/{where}/notes", {"name": f"n{i}", "contents": ""}))]
        assert {ask.result()[0] for ask in asks} == {200}, [ask.result() for ask in asks]
    assert set(cluster.described(experiment)["labels"]) == {f"l{i}" for i in range(8)}
    assert {note["name"] for note in project(cluster, "shared", "notes")["notes"]} == {f"n{i}" for i in range(8)}
    cluster.wait(experiment)
