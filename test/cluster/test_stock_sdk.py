"""Calls every function of `determined.experimental.client` and every method of its classes, by the unmodified wheel against a real
cluster. The last test reads which there are, and fails for one that no test has called."""

import functools
import inspect
import pathlib

import pytest
from determined.common.api import errors
from determined.common.experimental import project, resource_pool, user as of_users, workspace
from determined.errors import EnterpriseOnlyError
from determined.experimental import client

from cluster_under_test import wait_for
from test_stock_client import Stock

CLASSES = (client.Determined, client.Experiment, client.Trial, client.Checkpoint, client.Model, client.ModelVersion, project.Project, workspace.Workspace,
           resource_pool.ResourcePool, of_users.User)
CALLED = set()


def named(of, name):
    return f"{getattr(of, '__name__')}.{name}"


def public(of):
    """The names of the public functions that `of` defines itself."""
    return [name for name, one in vars(of).items() if inspect.isfunction(one) and not name.startswith("_")
            and (inspect.isclass(of) or one.__module__ == of.__name__ or getattr(one, "__wrapped__", one).__module__ == of.__name__)]


def noting(of, name):
    real = vars(of)[name]

    @functools.wraps(real)
    def called(*args, **more):
        CALLED.add(named(of, name))
        return real(*args, **more)
    return called


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Stock(tmp_path_factory.mktemp("sdk")) as cluster, pytest.MonkeyPatch.context() as patch:
        file = cluster.root / "cluster.yaml"
        file.write_text("troupe: 1\npools: {main: {default: true}, side: {}}\n")
        cluster.up_words = ["--file", str(file)]
        cluster.up(slots=2)
        patch.setenv("HOME", str(cluster.root))
        patch.setattr(client, "_determined", None)
        for one in (*CLASSES, client):
            for name in public(one):
                patch.setattr(one, name, noting(one, name))
        client.login(cluster.url(), "admin", "")
        yield cluster


@pytest.fixture(scope="module")
def done(cluster):
    """An experiment that has completed."""
    config, job = cluster.write(name="done", hparams="{steps: 10}")
    made = client.create_experiment(config, job)
    assert made.await_first_trial().id and made.wait(interval=0.5) == client.ExperimentState.COMPLETED
    return made


def test_users(cluster):
    made = client.create_user("ann", admin=False, password="Secret-123")
    assert client.get_user_by_id(made.user_id).username == client.get_user_by_name("ann").username == "ann"
    assert client.whoami().username == client.get_session_username() == "admin"
    made.change_display_name("Anna"), made.link_with_agent(agent_gid=1, agent_uid=1, agent_group="a", agent_user="a"), made.deactivate()
    made.reload()
    assert (made.display_name, made.active, made.agent_uid) == ("Anna", False, 1)
    made.activate(), made.rename("anne"), made.change_password("Other-123")
    made.reload()
    assert (made.username, made.active) == ("anne", True)
    assert {one.username for one in client.list_users()} == {"admin", "determined", "anne"} and len(client.list_users(active=True)) == 3
    client.Determined(cluster.url(), "anne", "Other-123").logout()


def test_places(cluster, done):
    made = client.create_workspace("vision")
    assert client.get_workspace("vision").id == made.id and [one.name for one in client.list_workspaces()] == ["Uncategorized", "vision"]
    cats = made.create_project("cats", description="all")
    assert made.get_project("cats").id == cats.id and [one.name for one in made.list_projects()] == ["cats"]
    cats.set_description("some"), cats.set_key("cat"), cats.set_name("tigers"), cats.add_note("plan", "a = b"), cats.add_note("end", "soon"), cats.remove_note("plan")
    cats.archive(), cats.unarchive(), cats.reload()
    assert (cats.name, cats.description, cats.key, [(one["name"], one["contents"]) for one in cats.notes]) == ("tigers", "some", "CAT", [("end", "soon")])
    done.move_to_project("vision", "tigers")
    assert [one.id for one in cats.list_experiments()] == [done.id]
    done.move_to_project("Uncategorized", "Uncategorized")
    side = resource_pool.ResourcePool(made._session, "side")
    side.add_bindings(["vision"])
    assert side.list_workspaces() == [None] and {one.name for one in made.list_pools()} == {"main", "side"}  # The wheel does not look up the names.
    side.replace_bindings(["Uncategorized"]), side.remove_bindings(["Uncategorized"])
    assert side.list_workspaces() == []
    made.reload()
    made.delete_project("tigers")
    client.create_workspace("brief"), client.delete_workspace("brief")
    with pytest.raises(errors.NotFoundException):
        client.get_workspace("brief")


def test_experiments_and_trials(cluster, done):
    root = cluster.root
    done.set_name("other"), done.set_description("words"), done.set_notes("long"), done.set_labels({"a", "b"}), done.add_label("c"), done.remove_label("a")
    done.reload()
    assert (done.name, done.description, done.notes, done.labels) == ("other", "words", "long", {"b", "c"})
    assert done.config["searcher"]["name"] == "single" and pathlib.Path(done.download_code(str(root))).exists()
    trial, = done.list_trials()
    assert [one.id for one in done.get_trials()] == [one.id for one in done.iter_trials()] == [trial.id] and client.get_trial(trial.id).id == trial.id
    assert client.get_experiment(done.id).id == done.id and [one.id for one in client.list_experiments(labels=["b"])] == [done.id]
    best = done.top_checkpoint()
    assert best.uuid == done.top_n_checkpoints(1)[0].uuid == done.list_checkpoints(max_results=1)[0].uuid == trial.top_checkpoint().uuid
    assert trial.select_checkpoint(uuid=best.uuid).uuid == trial.select_checkpoint(best=True).uuid == trial.select_checkpoint(latest=True).uuid == best.uuid
    assert len(trial.get_checkpoints()) == len(trial.list_checkpoints()) > 0
    assert [one.steps_completed for one in trial.iter_metrics("validation")] == [one.total_batches for one in trial.stream_metrics("validation")] == [5, 10]
    assert len(list(trial.stream_training_metrics())) == 10 and len(list(trial.stream_validation_metrics())) == 2
    assert any("saved 10" in line for line in trial.iter_logs()) and list(trial.logs())
    assert trial.get_experiment().id == done.id
    trial.reload()
    assert [one.steps_completed for one in client.iter_trials_metrics([trial.id], "validation")] == [one.total_batches for one in client.stream_trials_metrics([trial.id], "validation")]
    assert len(list(client.Determined(cluster.url(), "admin", "").stream_trials_metrics([trial.id], "validation"))) == 2
    assert len(list(client.stream_trials_training_metrics([trial.id]))) == 10 and len(list(client.stream_trials_validation_metrics([trial.id]))) == 2
    done.archive(), done.unarchive(), done.delete_tensorboard_files()
    with pytest.raises(ValueError):
        done.get_pachyderm_config()
    config, job = cluster.write(name="held", hparams="{steps: 1000, pause_s: 0.1}")
    held = client.create_experiment(config, job)
    held.pause(), held.activate()
    held.await_first_trial().kill()
    assert held.wait(interval=0.2) == client.ExperimentState.CANCELED
    for end in (client.Experiment.cancel, client.Experiment.kill):
        again = client.create_experiment(config, job)
        end(again)
        assert again.wait(interval=0.2) == client.ExperimentState.CANCELED
    held.delete()
    wait_for(lambda: held.id not in [one.id for one in client.list_experiments()], 60)


def test_checkpoints_and_models(cluster, done):
    best = client.get_checkpoint(done.top_checkpoint().uuid)
    best.add_metadata({"mine": "y", "more": 1}), best.remove_metadata(["more"]), best.reload()
    assert best.metadata["mine"] == "y" and "more" not in best.metadata
    best.write_metadata_file(str(cluster.root / "metadata.json"))
    assert pathlib.Path(best.download(str(cluster.root / "files"))).is_dir() and list(best.get_metrics()) == []
    with pytest.raises(ValueError):
        best.get_pachyderm_commit()
    made = client.create_model("net", description="words", metadata={"a": 1, "b": 2})
    assert client.get_model("net").model_id == client.get_model_by_id(made.model_id).model_id == client.list_models()[0].model_id == client.get_models()[0].model_id
    assert client.Determined(cluster.url(), "admin", "").get_model_by_id(made.model_id).name == "net"
    version = made.register_version(best.uuid)
    version.set_name("first"), version.set_notes("good"), version.reload()
    assert (version.name, version.notes, version.model_version) == ("first", "good", 1)
    assert [one.model_version for one in made.list_versions()] == [one.model_version for one in made.get_versions()] == [made.get_version(1).model_version] == [made.get_version().model_version]
    assert list(version.get_metrics()) == list(version.iter_metrics()) == []
    client.create_workspace("home")
    made.add_metadata({"c": 3}), made.remove_metadata(["a"]), made.set_labels(["y"]), made.set_description("other"), made.move_to_workspace("home"), made.archive(), made.unarchive(), made.reload()
    assert (made.metadata, made.labels, made.description) == ({"b": 2, "c": 3}, ["y"], "other") and client.get_model_labels() == ["y"]
    version.delete(), made.delete()
    best.remove_files(["state.json"]), best.reload()
    assert "state.json" not in best.resources
    best.delete()
    wait_for(lambda: client.get_checkpoint(best.uuid).state == client.CheckpointState.DELETED, 60)


def test_what_is_not_offered_says_so(cluster):
    for call in (client.list_oauth_clients, lambda: client.add_oauth_client("http://x", "x"), lambda: client.remove_oauth_client("x")):
        with pytest.raises(EnterpriseOnlyError):
            call()


def test_every_method_was_called(cluster):
    client.logout()
    missing = [named(one, name) for one in (*CLASSES, client) for name in public(one) if named(one, name) not in CALLED]
    assert not missing, "\n".join(missing)
    assert len(CALLED) > 130
