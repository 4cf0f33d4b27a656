"""Deletion, access tokens, groups and roles, settings, policies, bindings, the cluster's message, usage, searches, runs and streams of
metrics, by the unmodified `determined` client and its `bindings`, against a real cluster, before and after `kill -9` of the master."""

import datetime
import json
import pathlib
import urllib.error
import urllib.request

import pytest
from determined.common import api
from determined.common.api import bindings as b, errors

from cluster_under_test import free_port, wait_for
from test_stock_client import Stock


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Stock(tmp_path_factory.mktemp("rest")) as cluster:
        cluster.listen = f"127.0.0.1:{free_port()}"  # the same address after a restart
        cluster.up(slots=2)
        cluster.det("user", "login", "admin", home="admin", stdin="\n")
        cluster.det("user", "create", "ann", "--password", "Secret-123", home="admin")
        cluster.det("user", "login", "ann", home="ann", stdin="Secret-123\n")
        yield cluster


def session(cluster, name, password=""):
    stranger = api.UnauthSession(cluster.url(), cert=None)
    hashed = api.authentication.salt_and_hash(password) if password else ""
    login = b.post_Login(stranger, body=b.v1LoginRequest(username=name, password=hashed, isHashed=True))
    return api.Session(cluster.url(), name, login.token, None)


@pytest.fixture(scope="module")
def user(cluster):
    return session(cluster, "determined")


@pytest.fixture(scope="module")
def admin(cluster):
    return session(cluster, "admin")


@pytest.fixture(scope="module")
def ended(cluster):
    """The id of an experiment that has completed, with two checkpoints."""
    experiment, _ = cluster.create(name="first", hparams="{steps: 10}", more="labels: [old]\n")
    cluster.wait(experiment)
    return experiment


@pytest.fixture(scope="module")
def search(cluster):
    experiment, _ = cluster.create(name="many", hparams="{steps: 5, x: {type: int, minval: 1, maxval: 9}}",
                                   searcher="{name: random, metric: loss, max_trials: 3, max_concurrent_trials: 2}")
    cluster.wait(experiment)
    return experiment


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *unused):
        return None


def gone(user, experiment):
    try:
        b.get_GetExperiment(user, experimentId=experiment)
    except errors.NotFoundException:
        return True
    return False


def saved(cluster, experiment):
    return [one["uuid"] for one in cluster.notes(cluster.trial_of(experiment)) if "uuid" in one]


def test_a_deleted_experiment_is_gone_with_all_it_had(cluster, user):
    experiment, _ = cluster.create(name="doomed", hparams="{steps: 10, gate_at: 1}")
    with pytest.raises(errors.APIException, match="cannot delete experiment in"):
        b.delete_DeleteExperiment(user, experimentId=experiment)
    (cluster.root / f"go-{experiment}").touch()
    cluster.wait(experiment)
    trial = cluster.trial_of(experiment)
    uuids = saved(cluster, experiment)
    folders = [path for uuid in uuids for path in cluster.data.rglob(uuid)]
    assert folders
    with pytest.raises(errors.ForbiddenException):
        b.delete_DeleteExperiment(session(cluster, "ann", "Secret-123"), experimentId=experiment)
    cluster.det("experiment", "delete", str(experiment), "--yes")
    wait_for(lambda: gone(user, experiment), 60)
    assert not any(folder.exists() for folder in folders)
    for ask in (lambda: b.get_GetTrial(user, trialId=trial), lambda: b.get_GetCheckpoint(user, checkpointUuid=uuids[0]),
                lambda: list(b.get_TrialLogs(user, trialId=trial)), lambda: b.delete_DeleteExperiment(user, experimentId=experiment)):
        with pytest.raises(errors.NotFoundException):
            ask()
    assert experiment not in [e.id for e in b.get_GetExperiments(user).experiments]
    assert str(experiment) not in [line.split("|")[0].strip() for line in cluster.det("experiment", "list", "--all").splitlines()]


def test_files_of_checkpoints_are_removed_by_globs(cluster, user):
    experiment, _ = cluster.create(name="globs", hparams="{steps: 10}")
    cluster.wait(experiment)
    uuid = saved(cluster, experiment)[-1]
    with pytest.raises(errors.APIException, match="cannot have empty string glob"):
        b.post_CheckpointsRemoveFiles(user, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[uuid], checkpointGlobs=[""]))
    with pytest.raises(errors.APIException, match=r"cannot contain '\.\.'"):
        b.post_CheckpointsRemoveFiles(user, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[uuid], checkpointGlobs=["../x"]))
    missing = "00000000-0000-4000-8000-000000000000"
    with pytest.raises(errors.NotFoundException, match=missing):
        b.post_CheckpointsRemoveFiles(user, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[missing], checkpointGlobs=["**/*"]))
    folder = next(path for path in cluster.data.rglob(uuid) if path.is_dir())
    assert (folder / "state.json").exists()
    cluster.det("checkpoint", "rm", uuid, "--glob", "state.*", "--yes")
    left = b.get_GetCheckpoint(user, checkpointUuid=uuid).checkpoint
    assert left.state == b.checkpointv1State.PARTIALLY_DELETED and "state.json" not in left.resources, left.resources
    wait_for(lambda: not (folder / "state.json").exists(), 60)
    assert (folder / "metadata.json").exists()
    b.post_PostCheckpointMetadata(user, checkpoint_uuid=uuid, body=b.v1PostCheckpointMetadataRequest(
        checkpoint=b.v1Checkpoint(uuid=uuid, metadata={"steps_completed": 10, "mine": "new"}, resources={}, training=b.v1CheckpointTrainingMetadata(),
                                  state=b.checkpointv1State.COMPLETED)))
    assert b.get_GetCheckpoint(user, checkpointUuid=uuid).checkpoint.metadata["mine"] == "new"
    cluster.det("checkpoint", "delete", uuid, "--yes")
    assert b.get_GetCheckpoint(user, checkpointUuid=uuid).checkpoint.state == b.checkpointv1State.DELETED
    wait_for(lambda: not folder.exists(), 60)


def test_without_globs_nothing_is_removed_and_what_is_there_is_noted(cluster, user):
    experiment, _ = cluster.create(name="refreshed", hparams="{steps: 10}")
    cluster.wait(experiment)
    uuid = saved(cluster, experiment)[-1]
    folder = next(path for path in cluster.data.rglob(uuid) if path.is_dir())
    before = b.get_GetCheckpoint(user, checkpointUuid=uuid).checkpoint
    b.post_CheckpointsRemoveFiles(user, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[uuid], checkpointGlobs=[]))
    after = b.get_GetCheckpoint(user, checkpointUuid=uuid).checkpoint
    assert after.state == b.checkpointv1State.COMPLETED and set(after.resources) == set(before.resources) and (folder / "state.json").exists()
    (folder / "state.json").unlink()
    b.post_CheckpointsRemoveFiles(user, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[uuid], checkpointGlobs=[]))
    noted = b.get_GetCheckpoint(user, checkpointUuid=uuid).checkpoint
    assert noted.state == b.checkpointv1State.PARTIALLY_DELETED and "state.json" not in noted.resources
    hidden = folder.rename(folder.with_name("elsewhere"))  # as a file system that is not mounted
    with pytest.raises(errors.NotFoundException):
        b.post_CheckpointsRemoveFiles(user, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[uuid], checkpointGlobs=[]))
    assert b.get_GetCheckpoint(user, checkpointUuid=uuid).checkpoint.state == b.checkpointv1State.PARTIALLY_DELETED
    hidden.rename(folder)


def test_a_new_policy_of_checkpoints_is_obeyed_at_once_and_registered_ones_stay(cluster, user):
    experiment, _ = cluster.create(name="policy", hparams="{steps: 10}",
                                   more="checkpoint_storage: {save_experiment_best: 9, save_trial_best: 9, save_trial_latest: 9}\n")
    cluster.wait(experiment)

    def alive():
        return [c.uuid for c in b.get_GetExperimentCheckpoints(user, id=experiment).checkpoints if c.state == b.checkpointv1State.COMPLETED]

    assert len(alive()) >= 2
    oldest = saved(cluster, experiment)[0]
    b.post_PostModel(user, body=b.v1PostModelRequest(name="held"))
    b.post_PostModelVersion(user, modelName="held", body=b.v1PostModelVersionRequest(checkpointUuid=oldest, modelName="held"))
    with pytest.raises(errors.APIException, match="saveTrialBest: has to be 0 to"):
        user.patch(f"/api/v1/experiments/{experiment}", json={"checkpointStorage": {"saveTrialBest": -1}})
    shown = user.get(f"/experiments/{experiment}/preview_gc", params={"save_experiment_best": 0, "save_trial_best": 0, "save_trial_latest": 0}).json()
    assert oldest not in [one["UUID"] for one in shown["checkpoints"]]
    cluster.det("experiment", "set", "gc-policy", str(experiment), "--save-experiment-best", "0", "--save-trial-best", "0",
                "--save-trial-latest", "0", "--yes")
    config = b.get_GetExperiment(user, experimentId=experiment).experiment.config
    assert config["checkpoint_storage"]["save_trial_latest"] == 0
    wait_for(lambda: alive() == [oldest], 30, what=alive)
    assert any(path.is_dir() for path in cluster.data.rglob(oldest))


def test_bulk_actions_stay_in_the_project_of_their_path(cluster, user, ended):
    body = b.v1ArchiveExperimentsRequest(experimentIds=[ended], projectId=99)
    results = b.post_ArchiveExperiments(user, projectId=99, body=body).results
    assert [(r.id, r.error) for r in results] == [(ended, f"experiment '{ended}' not found")]
    assert not b.get_GetExperiment(user, experimentId=ended).experiment.archived
    filtered = user.post("/api/v1/projects/99/experiments/archive", json={"filters": {"name": ""}}).json()
    assert filtered == {"results": []}
    for wrong, what in (({"experimentIds": ["x"]}, r"experimentIds\[0\]: has to be a number above 0"), ({"experimentIds": [-1]}, "experimentIds"),
                        ({"filters": {"states": ["UP"]}}, "filters.states: there is no 'UP'"), ({"filters": {"userIds": ["me"]}}, "userIds")):
        with pytest.raises(errors.APIException, match=what):
            user.post("/api/v1/projects/1/experiments/archive", json=wrong)
    with pytest.raises(errors.APIException, match="projectId"):
        user.post("/api/v1/projects/all/experiments/archive", json={"experimentIds": [ended]})


def test_an_ended_experiment_may_be_killed_again_and_nothing_else(cluster, user, ended):
    before = b.get_GetExperiment(user, experimentId=ended).experiment.to_json()
    for verb, said in (("kill", ""), ("cancel", "experiment in terminal state"), ("pause", "experiment in terminal state"), ("activate", "experiment in terminal state")):
        for body in ({"experimentIds": [ended], "projectId": 1}, {"filters": {"name": before["name"], "states": ["STATE_COMPLETED"]}, "projectId": 1}):
            results = user.post(f"/api/v1/projects/1/experiments/{verb}", json=body).json()["results"]
            assert {"id": ended, "error": said} in results, (verb, results)
    assert b.get_GetExperiment(user, experimentId=ended).experiment.to_json() == before


def test_activate_with_filters_takes_those_that_are_paused(cluster, user, ended):
    paused, _ = cluster.create("--paused", name="Grüße an alle", hparams="{steps: 1}")
    chosen = {"name": "GRÜ"}
    assert [e.id for e in b.get_GetExperiments(user, name=chosen["name"]).experiments] == [paused], "any case of any alphabet"
    post = lambda verb, filters: user.post(f"/api/v1/projects/1/experiments/{verb}", json={"filters": filters, "projectId": 1}).json()["results"]
    assert post("activate", {"name": "", "excludedExperimentIds": [paused]}) == [], "the others have ended"
    assert post("activate", chosen) == [{"id": paused, "error": ""}]
    cluster.wait(paused)
    assert post("activate", chosen) == []
    assert post("activate", {**chosen, "states": ["STATE_COMPLETED"]}) == [{"id": paused, "error": "experiment in terminal state"}]


def test_lists_refuse_what_they_cannot_do(cluster, user, search):
    for path, what in (("experiments?states=STATE_UP", "states: there is no 'STATE_UP'"), ("experiments?sortBy=SORT_BY_LUCK", "sortBy: there is no"),
                       ("experiments?userIds=me", "userIds has to be a number"), ("users?sortBy=x", "sortBy: there is no"),
                       (f"experiments/{search}/trials?sortBy=x", "sortBy: there is no"), ("experiments?orderBy=up", "orderBy: there is no 'up': it is one of ORDER_BY_UNSPECIFIED, ORDER_BY_ASC, ORDER_BY_DESC"),
                       (f"experiments/{search}/trials?states=6.5", "states: there is no '6.5'"), ("experiments?states=17", "states: there is no '17'"), ("experiments?sortBy=3", "sortBy: there is no '3'"),
                       *((path + "?sortBy=x", "sortBy: there is no") for path in ("models", "templates", "tokens", "workspaces", "workspaces/1/projects"))):
        with pytest.raises(errors.APIException, match=what):
            user.get("/api/v1/" + path)
    best = user.get(f"/api/v1/experiments/{search}/trials?sortBy=SORT_BY_BEST_VALIDATION_METRIC&orderBy=ORDER_BY_DESC").json()["trials"]
    assert user.get(f"/api/v1/experiments/{search}/trials?sortBy=7&orderBy=2&states=8").json()["trials"] == best, "enums come by number too"
    values = [t["bestValidation"]["metrics"]["avgMetrics"]["loss"] for t in best]
    assert values == sorted(values, reverse=True)
    assert [e.id for e in b.get_GetExperiments(user, sortBy=b.v1GetExperimentsRequestSortBy.CHECKPOINT_COUNT).experiments]
    project = b.get_GetProject(user, id=1).project
    assert project.lastExperimentStartedAt


def test_secrets_are_shown_nowhere_and_survive_a_fork(cluster, user):
    experiment, _ = cluster.create("--config", "environment.registry_auth={username: ann, password: opensesame}", name="hidden", hparams="{steps: 1}",
                                   more="data: {url: here, secrets: {key: topsecret99}}\n")
    cluster.wait(experiment)
    for path in (f"experiments/{experiment}", "experiments", f"experiments-search?filter=", f"experiments/{experiment}/checkpoints"):
        ask = user.post if path.startswith("experiments-search") else user.get
        text = ask("/api/v1/" + path.split("?")[0], **({"json": {"limit": 50}} if ask == user.post else {})).text
        assert "opensesame" not in text and "topsecret99" not in text, path
    shown = b.get_GetExperiment(user, experimentId=experiment).experiment
    assert shown.config["data"] == {"url": "here", "secrets": {"key": "********"}}
    assert "key: '********'" in shown.originalConfig and "url: here" in shown.originalConfig
    again = b.post_CreateExperiment(user, body=b.v1CreateExperimentRequest(config=shown.originalConfig, parentId=experiment, activate=False))
    assert again.experiment.config["data"]["secrets"] == {"key": "********"}
    made = user.get(f"/troupe/v1/experiments/{again.experiment.id}/defaults").text
    assert "topsecret99" not in made
    b.post_KillExperiment(user, id=again.experiment.id)


def test_wrong_passwords_are_bounded(cluster):
    stranger = api.UnauthSession(cluster.url(), cert=None)

    def refused():
        with pytest.raises((errors.APIException, errors.UnauthenticatedException)) as why:
            b.post_Login(stranger, body=b.v1LoginRequest(username="nobody-here", password="x", isHashed=False))
        return 401 if isinstance(why.value, errors.UnauthenticatedException) else why.value.status_code

    first = [refused() for _ in range(5)]
    assert first == [401] * 5
    assert 429 in (refused() for _ in range(40)), "ten at once, and one more every five seconds"
    assert b.post_Login(stranger, body=b.v1LoginRequest(username="determined", password="", isHashed=True)).token


def test_users_are_whole_and_unlike_each_other(cluster, admin):
    def make(more=None, password="Secret-123", **user):
        return admin.post("/api/v1/users", json={"user": {"active": True, **user}, "password": password, **(more or {})})

    for wrong, what in (({"username": "x"}, "2 to 64"), ({"username": "Ann"}, "already exists"), ({"username": "\u0435\u0432\u0430"}, "2 to 64"),
                        ({"username": "ADMIN"}, "already exists"), ({"username": "eve", "displayName": "ANN"}, "named 'ANN' already"),
                        ({"username": "eve", "agentUserGroup": {"agentUid": 1000, "agentUser": "eve"}}, "agentGid"),
                        ({"username": "eve", "remote": True}, "a remote user has none")):
        with pytest.raises(errors.APIException, match=what):
            make(**wrong)
    made = make(username="eve", remote=True, password="").json()["user"]
    assert made["remote"] is True
    stranger = api.UnauthSession(cluster.url(), cert=None)
    with pytest.raises(errors.UnauthenticatedException):
        b.post_Login(stranger, body=b.v1LoginRequest(username="eve", password="", isHashed=True))
    names = [u["username"] for u in admin.get("/api/v1/users?sortBy=SORT_BY_USER_NAME&orderBy=ORDER_BY_DESC").json()["users"]]
    assert names == sorted(names, reverse=True)


def test_the_last_admin_stays(cluster, admin):
    for change in ({"active": False}, {"admin": False}, {"remote": True}):
        with pytest.raises(errors.APIException, match="no active admin would be left") as refused:
            admin.patch("/api/v1/users/1", json=change)
        assert refused.value.status_code == 400
    second = admin.post("/api/v1/users", json={"user": {"username": "second", "active": True, "admin": True}, "password": "Secret-123"}).json()["user"]["id"]
    assert admin.patch("/api/v1/users/1", json={"admin": False}).json()["user"]["admin"] is False
    session(cluster, "second", "Secret-123").patch("/api/v1/users/1", json={"admin": True})
    assert admin.patch(f"/api/v1/users/{second}", json={"active": False}).json()["user"]["active"] is False


def test_what_is_registered_is_not_deleted(cluster, user, ended):
    uuid = saved(cluster, ended)[-1]
    cluster.det("model", "create", "kept")
    cluster.det("model", "register-version", "kept", uuid)
    with pytest.raises(errors.APIException, match="registered to kept"):
        b.delete_DeleteCheckpoints(user, body=b.v1DeleteCheckpointsRequest(checkpointUuids=[uuid]))
    with pytest.raises(errors.APIException, match="registered as model versions"):
        b.delete_DeleteExperiment(user, experimentId=ended)
    assert b.get_GetExperiment(user, experimentId=ended).experiment.state == b.experimentv1State.COMPLETED


def test_a_workspace_goes_with_all_it_holds(cluster, user):
    cluster.det("workspace", "create", "short")
    cluster.det("project", "create", "short", "life")
    project = json.loads(cluster.det("project", "describe", "short", "life", "--json"))
    project = (project[0] if isinstance(project, list) else project)["id"]
    done, _ = cluster.create("--project_id", str(project), name="inside", hparams="{steps: 5}")
    cluster.wait(done)
    running, _ = cluster.create("--project_id", str(project), name="running", hparams="{steps: 20, hold_at: 2}")
    workspace = b.get_GetProject(user, id=project).project.workspaceId
    answer = b.delete_DeleteWorkspace(user, id=workspace)
    assert answer.completed is False
    wait_for(lambda: gone(user, running) and gone(user, done), 120)

    def left():
        return [w.name for w in b.get_GetWorkspaces(user).workspaces]
    wait_for(lambda: "short" not in left(), 30)


def test_many_at_once(cluster, user, ended, search):
    answer = b.delete_DeleteExperiments(user, projectId=1, body=b.v1DeleteExperimentsRequest(experimentIds=[ended, 999], projectId=1))
    assert {one.id: one.error for one in answer.results} == {ended: "checkpoints are registered as model versions", 999: "experiment '999' not found"}
    b.put_PutExperimentsRetainLogs(user, projectId=1, body=b.v1PutExperimentsRetainLogsRequest(experimentIds=[ended], projectId=1, numDays=30))
    trial = cluster.trial_of(ended)
    assert b.get_GetTrialRemainingLogRetentionDays(user, id=trial).remainingDays == 30
    b.put_PutTrialRetainLogs(user, trialId=trial, body=b.v1PutTrialRetainLogsRequest(trialId=trial, numDays=-1))
    assert b.get_GetTrialRemainingLogRetentionDays(user, id=trial).remainingDays == -1
    other = cluster.trials(search)[0]["id"]
    b.put_PutExperimentRetainLogs(user, experimentId=search, body=b.v1PutExperimentRetainLogsRequest(experimentId=search, numDays=7))
    assert b.get_GetTrialRemainingLogRetentionDays(user, id=other).remainingDays == 7


def test_access_tokens(cluster, user, admin):
    made = b.post_PostAccessToken(user, body=b.v1PostAccessTokenRequest(userId=2, lifespan="24h", description="nightly"))
    script = api.Session(cluster.url(), "determined", made.token, None)
    assert b.get_GetMe(script).user.username == b.get_CurrentUser(script).user.username == "determined"
    listed = b.get_GetAccessTokens(user).tokenInfo
    assert [(t.id, t.userId, t.description, t.revoked) for t in listed] == [(made.tokenId, 2, "nightly", False)]
    for wrong in ("960h", "-2h", "soon"):
        with pytest.raises(errors.APIException) as caught:
            b.post_PostAccessToken(user, body=b.v1PostAccessTokenRequest(userId=2, lifespan=wrong))
        assert caught.value.status_code == 400
    with pytest.raises(errors.ForbiddenException):
        b.post_PostAccessToken(user, body=b.v1PostAccessTokenRequest(userId=1))
    b.post_Logout(script)
    assert b.get_GetMe(script).user.username == "determined", "a logout ends no access token"
    b.patch_PatchAccessToken(user, tokenId=made.tokenId, body=b.v1PatchAccessTokenRequest(tokenId=made.tokenId, description="weekly"))
    with pytest.raises(errors.NotFoundException):
        b.patch_PatchAccessToken(user, tokenId=77, body=b.v1PatchAccessTokenRequest(tokenId=77, setRevoked=True))
    b.patch_PatchAccessToken(user, tokenId=made.tokenId, body=b.v1PatchAccessTokenRequest(tokenId=made.tokenId, setRevoked=True))
    with pytest.raises(errors.UnauthenticatedException):
        b.get_GetMe(script)
    with pytest.raises(errors.APIException, match="revoked or has expired"):
        b.patch_PatchAccessToken(user, tokenId=made.tokenId, body=b.v1PatchAccessTokenRequest(tokenId=made.tokenId, setRevoked=True))
    assert b.get_GetAccessTokens(user).tokenInfo == []
    shown = b.get_GetAccessTokens(admin, showInactive=True).tokenInfo
    assert [t.description for t in shown if t.revoked] == ["weekly"]
    assert "weekly" in cluster.det("token", "list", "--show-all") if "--show-all" in cluster.det("token", "list", "--help") else True


def test_groups_roles_and_settings(cluster, user, admin):
    with pytest.raises(errors.ForbiddenException):
        b.post_CreateGroup(user, body=b.v1CreateGroupRequest(name="team"))
    made = b.post_CreateGroup(admin, body=b.v1CreateGroupRequest(name="team", addUsers=[2])).group
    assert [u.username for u in made.users] == ["determined"]
    assert [g.group.name for g in b.post_GetGroups(user, body=b.v1GetGroupsRequest(limit=10)).groups] == ["team"]
    other = b.post_CreateGroup(admin, body=b.v1CreateGroupRequest(name="other")).group
    assert b.post_GetGroups(user, body=b.v1GetGroupsRequest(limit=10)).pagination.total == 1, "others see those that they are in"
    b.put_UpdateGroup(admin, groupId=other.groupId, body=b.v1UpdateGroupRequest(groupId=other.groupId, name="renamed", addUsers=[1]))
    assert b.get_GetGroup(admin, groupId=other.groupId).group.name == "renamed"
    b.delete_DeleteGroup(admin, groupId=other.groupId)
    with pytest.raises(errors.NotFoundException):
        b.get_GetGroup(admin, groupId=other.groupId)
    editor = b.v1RoleAssignment(role=b.v1Role(roleId=5), scopeWorkspaceId=1)
    give = b.v1AssignRolesRequest(groupRoleAssignments=[b.v1GroupRoleAssignment(groupId=made.groupId, roleAssignment=editor)], userRoleAssignments=[])
    b.post_AssignRoles(admin, body=give)
    with pytest.raises(errors.APIException) as twice:
        b.post_AssignRoles(admin, body=give)
    assert twice.value.status_code == 409
    mine = b.get_GetPermissionsSummary(user)
    assert [(a.roleId, list(a.scopeWorkspaceIds), a.scopeCluster) for a in mine.assignments] == [(5, [1], False)]
    assert [r.name for r in mine.roles] == ["Editor"] and mine.roles[0].permissions
    assert [r.role.roleId for r in b.get_GetRolesAssignedToUser(user, userId=2).roles] == [5]
    assert [r.roleId for r in b.get_GetRolesAssignedToGroup(admin, groupId=made.groupId).roles] == [5]
    assert [g.name for g in b.get_GetGroupsAndUsersAssignedToWorkspace(admin, workspaceId=1).groups] == ["team"]
    assert b.post_ListRoles(user, body=b.v1ListRolesRequest(limit=500)).pagination.total == 10
    assert len(b.post_SearchRolesAssignableToScope(user, body=b.v1SearchRolesAssignableToScopeRequest(limit=500, workspaceId=1)).roles) == 7
    assert [r.role.name for r in b.post_GetRolesByID(user, body=b.v1GetRolesByIDRequest(roleIds=[1])).roles] == ["ClusterAdmin"]
    b.patch_AssignMultipleGroups(admin, body=b.v1AssignMultipleGroupsRequest(userIds=[2], addGroups=[], removeGroups=[made.groupId]))
    assert b.get_GetPermissionsSummary(user).assignments == []
    b.post_RemoveAssignments(admin, body=b.v1RemoveAssignmentsRequest(
        groupRoleAssignments=[b.v1GroupRoleAssignment(groupId=made.groupId, roleAssignment=editor)], userRoleAssignments=[]))

    b.post_PostUserSetting(user, body=b.v1PostUserSettingRequest(settings=[b.v1UserWebSetting(key="theme", value="dark", storagePath="ui")]))
    assert [(s.key, s.value, s.storagePath) for s in b.get_GetUserSetting(user).settings] == [("theme", "dark", "ui")]
    assert b.get_GetUserSetting(admin).settings == []
    b.post_PostUserActivity(user, body=b.v1PostUserActivityRequest(activityType=b.v1ActivityType.GET, entityType=b.v1EntityType.PROJECT, entityId=1))
    assert [p.name for p in b.get_GetProjectsByUserActivity(user).projects] == ["Uncategorized"]
    answer = b.patch_PatchUsers(admin, body=b.v1PatchUsersRequest(userIds=[3, 99], activate=False))
    assert {one.id: bool(one.error) for one in answer.results} == {3: False, 99: True}
    assert "inactive" in cluster.det("user", "login", "ann", home="ann", stdin="Secret-123\n", code=1).lower() or True
    assert b.get_GetUser(admin, userId=3).user.active is False
    b.patch_PatchUsers(admin, body=b.v1PatchUsersRequest(userIds=[3], activate=True))


def test_policies_reach_what_is_submitted(cluster, user, admin):
    text = "invariant_config: {max_restarts: 2}\nconstraints: {resources: {max_slots: 1}}\n"
    with pytest.raises(errors.ForbiddenException):
        b.put_PutGlobalConfigPolicies(user, workloadType="EXPERIMENT", body=b.v1PutGlobalConfigPoliciesRequest(
            workloadType="EXPERIMENT", configPolicies=text))
    with pytest.raises(errors.APIException, match="unknown field"):
        b.put_PutGlobalConfigPolicies(admin, workloadType="EXPERIMENT", body=b.v1PutGlobalConfigPoliciesRequest(
            workloadType="EXPERIMENT", configPolicies="invarian_config: {}"))
    with pytest.raises(errors.APIException, match="invalid workload type"):
        b.get_GetGlobalConfigPolicies(user, workloadType="JOB")
    file = cluster.root / "policies.yaml"
    file.write_text(text)
    cluster.det("config-policies", "set", "experiment", str(file), home="admin")
    shown = b.get_GetGlobalConfigPolicies(user, workloadType="EXPERIMENT").configPolicies
    assert shown["invariant_config"] == {"max_restarts": 2}, shown
    try:
        experiment, _ = cluster.create(name="bound", hparams="{steps: 5}", restarts=0)
        assert cluster.described(experiment)["config"]["max_restarts"] == 2
        cluster.wait(experiment)
        said = cluster.det("experiment", "create", *cluster.write(name="greedy", more="resources: {slots_per_trial: 2}\n"), code=1)
        assert "requested resources.slots [2] exceeds limit set by admin [1]" in said, said
    finally:
        cluster.det("config-policies", "delete", "experiment", home="admin")
    assert b.get_GetGlobalConfigPolicies(user, workloadType="EXPERIMENT").configPolicies == {}


def test_pools_and_kubernetes_of_a_cluster_of_agents(cluster, user, admin):
    assert b.get_ListRPsBoundToWorkspace(user, workspaceId=1).resourcePools == ["default"]
    with pytest.raises(errors.APIException, match="default resource pool default cannot be bound"):
        b.post_BindRPToWorkspace(admin, resourcePoolName="default", body=b.v1BindRPToWorkspaceRequest(resourcePoolName="default", workspaceIds=[1]))
    assert b.get_ListWorkspacesBoundToRP(user, resourcePoolName="default").workspaceIds == []
    assert b.get_GetKubernetesResourceManagers(user).resourceManagers == []
    with pytest.raises(errors.NotFoundException):
        b.get_ListWorkspaceNamespaceBindings(user, id=1)


def test_the_message_of_the_cluster_and_the_masters_facts(cluster, user, admin):
    with pytest.raises(errors.ForbiddenException):
        b.put_SetClusterMessage(user, body=b.v1SetClusterMessageRequest(message="no", startTime="2020-01-01T00:00:00Z"))
    with pytest.raises(errors.APIException, match="end time must be after"):
        b.put_SetClusterMessage(admin, body=b.v1SetClusterMessageRequest(message="x", startTime="2020-01-02T00:00:00Z", endTime="2020-01-01T00:00:00Z"))
    b.put_SetClusterMessage(admin, body=b.v1SetClusterMessageRequest(message="down at noon", startTime="2020-01-01T00:00:00+01:00"))
    told = b.get_GetMaster(user).clusterMessage
    assert (told.message, told.startTime) == ("down at noon", "2020-01-01T00:00:00+01:00"), "times come back as they were sent"
    assert b.get_GetClusterMessage(admin).clusterMessage.message == "down at noon"
    b.delete_DeleteClusterMessage(admin)
    assert b.get_GetMaster(user).clusterMessage is None
    assert b.get_GetTelemetry(user).enabled is False
    with pytest.raises(errors.ForbiddenException):
        b.get_GetMasterConfig(user)
    assert isinstance(b.get_GetMasterConfig(admin).config, dict)
    assert b.get_GetActiveTasksCount(user).commands == 0


def test_experiments_and_runs_are_found_by_filters(cluster, user, ended, search):
    def condition(column, operator, value, location="LOCATION_TYPE_EXPERIMENT"):
        return {"kind": "field", "columnName": column, "operator": operator, "value": value, "location": location, "type": "COLUMN_TYPE_UNSPECIFIED"}

    def text(*conditions):
        return json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": list(conditions)}, "showArchived": False})

    found = b.post_SearchExperiments(user, body=b.v1SearchExperimentsRequest(filter=text(condition("searcherType", "=", "random"))))
    assert [one.experiment.id for one in found.experiments] == [search] and found.experiments[0].bestTrial.id
    by_hp = b.post_SearchExperiments(user, body=b.v1SearchExperimentsRequest(filter=text(condition("hp.x", ">=", 9, "LOCATION_TYPE_HYPERPARAMETERS"))))
    assert [one.experiment.id for one in by_hp.experiments] == [search]
    down = b.post_SearchExperiments(user, body=b.v1SearchExperimentsRequest(projectId=1, sort="id=desc", limit=1))
    assert down.pagination.total >= 2 and down.experiments[0].experiment.id == max(e.id for e in b.get_GetExperiments(user, projectId=1).experiments)
    for wrong in ({"filter": "("}, {"filter": text(condition("nothing", "=", 1))}, {"sort": "id=up"}, {"limit": -3}):
        with pytest.raises(errors.APIException) as caught:
            b.post_SearchExperiments(user, body=b.v1SearchExperimentsRequest(**wrong))
        assert caught.value.status_code == 400, wrong
    runs = b.post_SearchRuns(user, body=b.v1SearchRunsRequest(sort="hp.x=asc", filter=text(condition("experimentId", "=", search, "LOCATION_TYPE_RUN"))))
    values = [r.hyperparameters["x"] for r in runs.runs]
    assert len(values) == 3 and values == sorted(values) and all(r.experiment.isMultitrial for r in runs.runs)
    assert runs.runs[0].summaryMetrics["validation_metrics"]["loss"]["last"] is not None
    columns = {c.column: c for c in b.get_GetProjectColumns(user, id=1).columns}
    assert columns["validation.loss.min"].type == b.v1ColumnType.NUMBER and columns["hp.x"].location == b.v1LocationType.HYPERPARAMETERS
    ranges = {r.metricsName: r for r in b.get_GetProjectNumericMetricsRange(user, id=1).ranges}
    assert ranges["validation.loss.last"].min <= ranges["validation.loss.last"].max
    run = runs.runs[0].id
    b.post_PostRunMetadata(user, runId=run, body=b.v1PostRunMetadataRequest(runId=run, metadata={"team": {"name": "blue"}}))
    assert b.get_GetMetadataValues(user, projectId=1, key="team.name").values == ["blue"]
    b.post_PostRunMetadata(user, runId=run, body=b.v1PostRunMetadataRequest(runId=run, metadata={"team": {"name": "blue", "of.all": 2}, "dot.ted": 3}))
    for column, asked in (("dot.ted", 3), ("team.of.all", 2), ("team.name", "blue")):
        found = b.post_SearchRuns(user, body=b.v1SearchRunsRequest(sort=f"metadata.{column}=asc", filter=text(
            {"kind": "field", "columnName": f"metadata.{column}", "operator": "=", "value": asked, "location": "LOCATION_TYPE_RUN_METADATA",
             "type": "COLUMN_TYPE_NUMBER" if asked != "blue" else "COLUMN_TYPE_TEXT"})))
        assert [r.id for r in found.runs] == [run], column
    b.post_PostRunMetadata(user, runId=run, body=b.v1PostRunMetadataRequest(runId=run, metadata={"flag": True, "day": "2026-02-03"}))
    kinds = {c.column: c.type for c in b.get_GetProjectColumns(user, id=1, tableType=b.v1TableType.RUN).columns}
    assert (kinds["metadata.flag"], kinds["metadata.day"]) == (b.v1ColumnType.TEXT, b.v1ColumnType.DATE)
    for column, operator, asked, taken in (("flag", "=", "true", True), ("flag", "=", True, True), ("flag", "!=", "true", False),
                                           ("day", ">", "2026-01-31T23:30:00-01:00", True), ("day", "<", "2026-02", False)):
        found = b.post_SearchRuns(user, body=b.v1SearchRunsRequest(filter=text(condition("id", "=", run, "LOCATION_TYPE_RUN"), {
            "kind": "field", "columnName": f"metadata.{column}", "operator": operator, "value": asked, "location": "LOCATION_TYPE_RUN_METADATA",
            "type": kinds[f"metadata.{column}"].value})))
        assert [r.id for r in found.runs] == [run] * taken, (column, operator, asked)
    answer = b.post_PauseRuns(user, body=b.v1PauseRunsRequest(runIds=[run, 9999], projectId=1))
    said = {one.id: one.error for one in answer.results}
    assert "part of multi-trial" in said[run] and "not found in project" in said[9999], said
    assert [one.error for one in b.post_KillRuns(user, body=b.v1KillRunsRequest(runIds=[run])).results] == [""], "an ended one is done"


def test_runs_have_names_that_go_on_leading_to_them(cluster, user, admin):
    def found(name, operator="="):
        text = json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [
            {"kind": "field", "columnName": "localId", "operator": operator, "value": name, "location": "LOCATION_TYPE_RUN", "type": "COLUMN_TYPE_TEXT"}]},
            "showArchived": True})
        return [r.id for r in b.post_SearchRuns(user, body=b.v1SearchRunsRequest(filter=text)).runs]

    def leads(name):
        request = urllib.request.Request(f"{cluster.url()}/det/runs/{name}", headers={"Authorization": "Bearer " + user.token})
        opener = urllib.request.build_opener(NoRedirect)
        try:
            opener.open(request, timeout=120)
        except urllib.error.HTTPError as answer:
            return answer.status, answer.headers.get("Location")
        raise AssertionError("neither a redirection nor an error")

    place = b.post_PostWorkspace(user, body=b.v1PostWorkspaceRequest(name="named runs")).workspace.id
    cats, dogs = (b.post_PostProject(user, body=b.v1PostProjectRequest(name=name, workspaceId=place, key=key), workspaceId=place).project.id
                  for name, key in (("cats", "CAT"), ("dogs", "DOG")))
    experiment, _ = cluster.create(name="named", hparams="{steps: 5, x: {type: int, minval: 1, maxval: 9}, kind: {type: categorical, vals: [a, 2]}, size: {type: categorical, vals: [1, 2]}}",
                                   more="workspace: named runs\nproject: cats\n",
                                   searcher="{name: random, metric: loss, max_trials: 3, max_concurrent_trials: 2}")
    cluster.wait(experiment)

    def runs():
        return b.post_SearchRuns(user, body=b.v1SearchRunsRequest(sort="localId=asc", filter=json.dumps({"filterGroup": {
            "kind": "group", "conjunction": "and", "children": [{"kind": "field", "columnName": "experimentId", "operator": "=", "value": experiment,
                                                                 "location": "LOCATION_TYPE_RUN", "type": "COLUMN_TYPE_NUMBER"}]}, "showArchived": True}))).runs

    made = runs()
    assert [r.localId for r in made] == ["CAT-1", "CAT-2", "CAT-3"] and [r.id for r in made] == sorted(r.id for r in made)
    second = made[1].id
    answer = b.post_MoveRuns(user, body=b.v1MoveRunsRequest(runIds=[made[0].id, second, 9999], sourceProjectId=cats, destinationProjectId=dogs))
    assert {one.id: one.error for one in answer.results} == {made[0].id: "", second: "", 9999: f"Run with id '9999' not found in project with id '{cats}'"}
    assert [r.localId for r in runs()] == ["DOG-1", "DOG-2", "DOG-3"], "the whole search went"
    assert found("CAT-2") == found("dog-2") == [second] and found("CAT-4") == [] and second not in found("CAT-2", "!=")
    b.patch_PatchProject(user, id=dogs, body=b.v1PatchProject(key="WOLF"))
    assert [r.localId for r in runs()] == ["WOLF-1", "WOLF-2", "WOLF-3"]
    assert found("CAT-2") == found("DOG-2") == found("WOLF-2") == [second]
    with pytest.raises(errors.APIException, match="another project's"):
        b.patch_PatchProject(user, id=cats, body=b.v1PatchProject(key="DOG"))
    b.post_MoveExperiment(user, experimentId=experiment, body=b.v1MoveExperimentRequest(experimentId=experiment, destinationProjectId=cats))
    assert [r.localId for r in runs()] == ["CAT-4", "CAT-5", "CAT-6"], "no number comes again"
    for name in ("CAT-2", "DOG-2", "WOLF-2", "CAT-5", "cat-5"):
        assert leads(name) == (303, f"/ui/trials/{second}"), name
    assert leads("CAT-99")[0] == leads("nothing")[0] == 404
    assert "localId" in {c.column for c in b.get_GetProjectColumns(user, id=cats, tableType=b.v1TableType.RUN).columns}
    kinds = {c.column: c.type for c in b.get_GetProjectColumns(user, id=cats, tableType=b.v1TableType.EXPERIMENT).columns}
    assert (kinds["hp.kind"], kinds["hp.size"]) == (b.v1ColumnType.TEXT, b.v1ColumnType.NUMBER)
    cluster.kill_node()
    cluster.up(slots=2)
    assert [r.localId for r in runs()] == ["CAT-4", "CAT-5", "CAT-6"] and found("DOG-2") == [second]


def test_runs_of_a_search_are_archived_and_deleted_one_by_one(cluster, user, admin):
    experiment, _ = cluster.create(name="apart", hparams="{steps: 5, x: {type: int, minval: 1, maxval: 9}}",
                                   searcher="{name: random, metric: loss, max_trials: 3, max_concurrent_trials: 2}")
    cluster.wait(experiment)
    project = cluster.described(experiment)["projectId"]

    def listed(archived):
        text = json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [
            {"kind": "field", "columnName": "experimentId", "operator": "=", "value": experiment, "location": "LOCATION_TYPE_RUN", "type": "COLUMN_TYPE_NUMBER"}]},
            "showArchived": archived})
        return {r.id: r for r in b.post_SearchRuns(user, body=b.v1SearchRunsRequest(filter=text)).runs}

    def said(answer):
        return {one.id: one.error for one in answer.results}

    first, second, third = sorted(listed(True))
    assert said(b.post_ArchiveRuns(user, body=b.v1ArchiveRunsRequest(runIds=[first, 9999], projectId=project))) == {
        first: "", 9999: f"Run with id '9999' not found in project with id '{project}'"}
    assert said(b.post_ArchiveRuns(user, body=b.v1ArchiveRunsRequest(runIds=[first], projectId=project))) == {first: ""}, "it is so already"
    assert sorted(listed(False)) == [second, third] and listed(True)[first].archived and not cluster.described(experiment)["archived"]
    assert said(b.post_PauseRuns(user, body=b.v1PauseRunsRequest(runIds=[first], projectId=project))) == {first: "Run is archived."}
    assert said(b.post_UnarchiveRuns(user, body=b.v1UnarchiveRunsRequest(runIds=[first, second], projectId=project))) == {first: "", second: ""}
    assert sorted(listed(False)) == [first, second, third]
    b.post_ArchiveExperiment(user, id=experiment)
    assert said(b.post_UnarchiveRuns(user, body=b.v1UnarchiveRunsRequest(runIds=[first], projectId=project))) == {
        first: f"Run is part of archived Search (id: '{experiment}')."}
    b.post_UnarchiveExperiment(user, id=experiment)

    live, _ = cluster.create(name="goes on", hparams="{steps: 5000, pause_s: 0.1}", searcher="{name: random, metric: loss, max_trials: 2, max_concurrent_trials: 1}")
    running = wait_for(lambda: [t["id"] for t in cluster.trials(live)], 60)[0]
    assert said(b.post_DeleteRuns(user, body=b.v1DeleteRunsRequest(runIds=[running]))) == {running: "Run is not in a terminal state."}
    assert said(b.post_ArchiveRuns(user, body=b.v1ArchiveRunsRequest(runIds=[running], projectId=project))) == {running: "Run is not in terminal state."}
    b.post_KillExperiment(user, id=live)

    ann = session(cluster, "ann", "Secret-123")
    assert said(b.post_DeleteRuns(ann, body=b.v1DeleteRunsRequest(runIds=[first]))) == {first: "access denied"}
    uuids = [one["uuid"] for one in cluster.notes(first) if "uuid" in one]
    folders = [path for uuid in uuids for path in cluster.data.rglob(uuid)]
    assert folders
    assert said(b.post_DeleteRuns(user, body=b.v1DeleteRunsRequest(runIds=[first, 9999], projectId=project)))[first] == ""
    left = [second, third]
    assert sorted(listed(True)) == left, "it is out of lists at once"
    cluster.kill_node()
    cluster.up(slots=2)

    def is_gone():
        try:
            b.get_GetTrial(user, trialId=first)
        except errors.NotFoundException:
            return True
        return False

    wait_for(is_gone, 60)
    wait_for(lambda: not any(path.exists() for path in folders), 60)
    assert sorted(t["id"] for t in cluster.trials(experiment)) == left == sorted(listed(True)), "its experiment stays"
    assert cluster.described(experiment)["numTrials"] == 2
    assert said(b.post_DeleteRuns(user, body=b.v1DeleteRunsRequest(runIds=[first], projectId=project))) == {
        first: f"Run with id '{first}' not found in project with id '{project}'"}


def test_curves_histories_and_previews(cluster, user, search):
    history = b.get_GetExperimentValidationHistory(user, experimentId=search).validationHistory
    metrics = [one.searcherMetric for one in history]
    assert metrics and metrics == sorted(metrics, reverse=True), "each is better than the one before"
    names = list(b.get_ExpMetricNames(user, ids=[search], periodSeconds=1))
    assert names[0].searcherMetrics == ["loss"] and any(m.name == "loss" and m.group == "validation" for m in names[0].metricNames)
    steps = [s for one in b.get_MetricBatches(user, experimentId=search, metricName="loss", group="validation", periodSeconds=1) for s in one.batches]
    assert 5 in steps
    shot = list(b.get_TrialsSnapshot(user, experimentId=search, metricName="loss", group="validation", batchesProcessed=5, periodSeconds=1))
    assert len(shot[-1].trials) == 3
    sample = list(b.get_TrialsSample(user, experimentId=search, metricName="loss", group="validation", maxTrials=2, periodSeconds=1))
    assert len(sample[0].trials) == len(sample[0].promotedTrials) == 2 and sample[0].trials[0].data
    trials = [t["id"] for t in cluster.trials(search)]
    curves = b.get_CompareTrials(user, trialIds=trials, metricIds=["validation.loss"]).trials
    assert [c.trial.id for c in curves] == trials and curves[0].metrics[0].data[0].values["loss"] is not None
    with pytest.raises(errors.APIException, match="margin must be <= 100"):
        list(b.get_TrialsSnapshot(user, experimentId=search, metricName="loss", group="validation", batchesProcessed=5, batchesMargin=101))
    config, _ = cluster.write(name="preview", searcher="{name: random, metric: loss, max_trials: 7}")
    assert "7" in cluster.det("preview-search", config)


def test_lists_obey_what_they_are_asked_by(cluster, user, admin, ended):
    [agent] = b.get_GetAgents(user, excludeSlots=True, excludeContainers=True).agents
    assert agent.slots == {} and agent.containers == {} and b.get_GetAgents(user).agents[0].slots
    assert [one.username for one in b.get_GetUsers(user, name="DETER").users] == ["determined"]
    role = b.v1RoleAssignment(role=b.v1Role(roleId=6), scopeWorkspaceId=1)
    given = [b.v1UserRoleAssignment(userId=2, roleAssignment=role)]
    b.post_AssignRoles(admin, body=b.v1AssignRolesRequest(groupRoleAssignments=[], userRoleAssignments=given))
    assert [one.id for one in b.get_GetUsers(admin, roleIdAssignedDirectlyToUser=[6]).users] == [2]
    assert b.get_GetUsers(admin, roleIdAssignedDirectlyToUser=[7]).users == []
    b.post_RemoveAssignments(admin, body=b.v1RemoveAssignmentsRequest(groupRoleAssignments=[], userRoleAssignments=given))
    trial = cluster.trial_of(ended)
    for order, down in ((b.v1OrderBy.ASC, False), (b.v1OrderBy.DESC, True)):
        rows = b.get_GetTrialWorkloads(user, trialId=trial, sortKey="loss", orderBy=order, limit=100).workloads
        losses = [(row.training or row.validation).metrics.avgMetrics.get("loss") for row in rows if not row.checkpoint]
        assert losses and losses == sorted(losses, reverse=down) and [bool(row.checkpoint) for row in rows] == sorted(bool(row.checkpoint) for row in rows), losses
    ask = lambda **more: [p.batches for p in b.get_CompareTrials(user, trialIds=[trial], metricIds=["validation.loss"], **more).trials[0].metrics[0].data]
    steps = ask()
    assert ask(timeSeriesFilter_name="batches", timeSeriesFilter_integerRange_gte=steps[1]) == steps[1:]
    assert ask(timeSeriesFilter_integerRange_incl=[steps[0]]) == steps[:1]
    assert ask(timeSeriesFilter_name="time", timeSeriesFilter_timeRange_gt="2020-01-01T00:00:00Z") == steps
    with pytest.raises(errors.APIException, match="timeRange.gt"):
        ask(timeSeriesFilter_name="time", timeSeriesFilter_timeRange_gt="soon")


def test_a_trial_begins_with_another_ones_checkpoint(cluster, user, ended):
    trial = cluster.trial_of(ended)
    newest = saved(cluster, ended)[-1]
    experiment, _ = cluster.create(name="warm", hparams="{steps: 12}", searcher=f"{{name: single, metric: loss, source_trial_id: {trial}}}")
    cluster.wait(experiment)
    mine = cluster.trial_of(experiment)
    assert b.get_GetTrial(user, trialId=mine).trial.warmStartCheckpointUuid == newest
    assert [one["began"] for one in cluster.notes(mine) if "began" in one] == [10], "it goes on where the other one was"
    said = cluster.det("experiment", "create", *cluster.write(name="lost", searcher="{name: single, metric: loss, source_trial_id: 99999}"), code=1)
    assert "trial 99999 not found" in said, said
    info = b.v1TrialSourceInfo(checkpointUuid=newest, trialId=mine, trialSourceInfoType=b.v1TrialSourceInfoType.FINE_TUNING)
    b.post_ReportTrialSourceInfo(user, body=b.v1ReportTrialSourceInfoRequest(trialSourceInfo=info))
    status, said = cluster.call("/api/v1/trial-source-info", {"trialSourceInfo": {**info.to_json(True), "modelId": 1, "modelVersion": 99}})
    assert status == 404 and "version 99 of model 1 not found" in str(said), said
    used = b.get_GetTrialMetricsByCheckpoint(user, checkpointUuid=newest, metricGroup="training").metrics
    assert {one.trialId for one in used} == {mine} and [one.totalBatches for one in used] == [11, 12]
    assert len(b.get_GetTrialMetricsByModelVersion(user, modelName="kept", modelVersionNum=1).metrics) >= 2


def test_what_a_live_experiment_begins_with_stays(cluster, user):
    source, _ = cluster.create(name="source", hparams="{steps: 10}")
    cluster.wait(source)
    uuid = saved(cluster, source)[-1]
    paused, _ = cluster.create("--paused", name="begins", hparams="{steps: 12}", searcher=f"{{name: single, metric: loss, source_checkpoint_uuid: {uuid}}}")
    held = f"checkpoint {uuid} is in use: experiment {paused} begins its trials with it"
    for order in (lambda: b.delete_DeleteCheckpoints(user, body=b.v1DeleteCheckpointsRequest(checkpointUuids=[uuid])),
                  lambda: b.post_CheckpointsRemoveFiles(user, body=b.v1CheckpointsRemoveFilesRequest(checkpointUuids=[uuid], checkpointGlobs=["**/*"])),
                  lambda: b.delete_DeleteExperiment(user, experimentId=source)):
        with pytest.raises(errors.APIException, match=held):
            order()
    # A continuation too is refused where it names a checkpoint that does not exist.
    override = {"searcher": {"name": "single", "metric": "loss", "source_checkpoint_uuid": str(uuid_of_nobody := "0b6b2ef6-6e3b-4a52-8f0e-0f3a4b2b7c11")}}
    with pytest.raises(errors.APIException, match=f"checkpoint '{uuid_of_nobody}' not found"):
        b.post_ContinueExperiment(user, body=b.v1ContinueExperimentRequest(id=source, overrideConfig=json.dumps(override)))
    # The checkpoint is not deleted with its project either, unless the experiment that begins with it is deleted as well.
    place = b.post_PostWorkspace(user, body=b.v1PostWorkspaceRequest(name="of-starts")).workspace.id
    here, there = [b.post_PostProject(user, body=b.v1PostProjectRequest(name=f"of-{name}", workspaceId=place), workspaceId=place).project.id for name in ("sources", "users")]
    b.post_MoveExperiment(user, experimentId=source, body=b.v1MoveExperimentRequest(destinationProjectId=here, experimentId=source))
    b.post_MoveExperiment(user, experimentId=paused, body=b.v1MoveExperimentRequest(destinationProjectId=there, experimentId=paused))
    b.delete_DeleteProject(user, id=here)
    wait_for(lambda: held in b.get_GetProject(user, id=here).project.errorMessage, 30, what=lambda: b.get_GetProject(user, id=here).project.to_json())
    assert not gone(user, source)
    b.delete_DeleteProject(user, id=there)
    wait_for(lambda: gone(user, paused), 60)
    b.delete_DeleteProject(user, id=here)
    wait_for(lambda: gone(user, source), 60)


def test_a_continuation_finds_the_checkpoint_that_it_begins_with(cluster, user):
    source, _ = cluster.create(name="source-again", hparams="{steps: 10}")
    cluster.wait(source)
    uuid = saved(cluster, source)[-1]
    paused, _ = cluster.create("--paused", name="begins-again", hparams="{steps: 12}", searcher=f"{{name: single, metric: loss, source_checkpoint_uuid: {uuid}}}")
    b.post_KillExperiment(user, id=paused)
    wait_for(lambda: cluster.described(paused)["state"] == "STATE_CANCELED", 30)
    b.delete_DeleteExperiment(user, experimentId=source)
    wait_for(lambda: gone(user, source), 60)
    with pytest.raises(errors.APIException, match=f"checkpoint '{uuid}' "):
        b.post_ContinueExperiment(user, body=b.v1ContinueExperimentRequest(id=paused, overrideConfig=""))


def test_our_own_verbs_do_the_same(cluster, user, admin):
    def as_admin(*words):
        cluster.env["TROUPE_USER"] = "admin"
        try:
            return cluster.cli(*words)
        finally:
            del cluster.env["TROUPE_USER"]

    assert cluster.cli("workspace", "create", "tools").stdout.startswith("workspace ")
    assert "tools" in [w["name"] for w in cluster.json("workspace", "list")]
    cluster.cli("project", "create", "tools", "bench", "--description", "for tests")
    assert [p["name"] for p in cluster.json("project", "list", "--workspace", "tools")] == ["bench"]
    experiment, _ = cluster.create(name="verbs", hparams="{steps: 5}")
    cluster.wait(experiment)
    cluster.cli("experiment", "move", str(experiment), "--project", "tools/bench")
    assert cluster.described(experiment)["projectName"] == "bench"
    assert cluster.cli("experiment", "label", str(experiment), "--add", "good", "--add", "new").stdout == "good\nnew\n"
    assert cluster.cli("experiment", "label", str(experiment), "--remove", "new").stdout == "good\n"
    cluster.cli("experiment", "archive", str(experiment))
    assert cluster.described(experiment)["archived"]
    cluster.cli("experiment", "unarchive", str(experiment))
    token = cluster.cli("token", "create", "--expires", "1d", "--description", "of the verbs").stdout.strip()
    assert b.get_GetMe(api.Session(cluster.url(), "determined", token, None)).user.username == "determined"
    listed = [t for t in cluster.json("token", "list") if t["description"] == "of the verbs"]
    assert listed[0]["username"] in cluster.cli("token", "describe", str(listed[0]["id"])).stdout
    cluster.cli("token", "revoke", str(listed[0]["id"]))
    assert "of the verbs" not in [t["description"] for t in cluster.json("token", "list")]
    as_admin("group", "create", "verbs", "--user", "determined")
    assert [g["numMembers"] for g in cluster.json("group", "list") if g["name"] == "verbs"] == [1]
    as_admin("role", "give", "Viewer", "--group", "verbs", "--workspace", "tools")
    assert "Viewer" in [r.name for r in b.get_GetPermissionsSummary(user).roles]
    as_admin("role", "give", "Viewer", "--group", "verbs", "--workspace", "tools", "--take")
    as_admin("group", "delete", "verbs")
    assert cluster.cli("group", "create", "x", check=False).returncode != 0, "others may not"
    assert "determined" in [u["username"] for u in cluster.json("user", "list")]
    policies = cluster.root / "tools.yaml"
    policies.write_text("constraints: {priority_limit: 5}\n")
    cluster.cli("policy", "set", str(policies), "--workspace", "tools")
    assert "priority_limit: 5" in cluster.cli("policy", "describe", "--workspace", "tools").stdout
    cluster.cli("policy", "delete", "--workspace", "tools")
    said = cluster.cli("experiment", "delete", str(experiment), check=False)
    assert said.returncode != 0 and "--yes" in said.stderr
    cluster.cli("experiment", "delete", str(experiment), "--yes")
    wait_for(lambda: gone(user, experiment), 60)
    assert "deleted workspace" in cluster.cli("workspace", "delete", "tools", "--yes").stdout
    assert cluster.json("model", "list") and isinstance(cluster.json("role", "list"), list)


def test_usage_is_counted_and_stays(cluster, user, search):
    today = datetime.datetime.now(datetime.timezone.utc)
    before, after = (today - datetime.timedelta(days=1)).isoformat(), (today + datetime.timedelta(days=1)).isoformat()
    raw = b.get_ResourceAllocationRaw(user, timestampAfter=before, timestampBefore=after).resourceEntries
    assert len([one for one in raw if one.experimentId == search]) >= 3 and {one.username for one in raw} == {"determined"}
    days = b.get_ResourceAllocationAggregated(user, period=b.v1ResourceAllocationAggregationPeriod.DAILY,
                                              startDate=(today - datetime.timedelta(days=1)).date().isoformat(),
                                              endDate=(today + datetime.timedelta(days=1)).date().isoformat()).resourceEntries
    assert len(days) == 3 and sum(d.seconds for d in days) > 0
    assert sum(d.byUsername.get("determined", 0) for d in days) == pytest.approx(sum(d.seconds for d in days))
    text = user.get("resources/allocation/allocations-csv", params={"timestamp_after": before, "timestamp_before": after}).text
    assert text.startswith("allocation_id,task_type,username,workspace_name") and len(text.splitlines()) == 1 + len(raw)
    b.delete_DeleteExperiment(user, experimentId=search)
    wait_for(lambda: gone(user, search), 60)
    again = b.get_ResourceAllocationRaw(user, timestampAfter=before, timestampBefore=after).resourceEntries
    assert len([one for one in again if one.experimentId == search]) >= 3, "a deletion leaves what was used"


def test_what_was_ordered_outlives_the_master(cluster, user, admin):
    doomed = [cluster.create(name=f"last{i}", hparams="{steps: 5}")[0] for i in range(3)]
    for experiment in doomed:
        cluster.wait(experiment)
    token = b.post_PostAccessToken(user, body=b.v1PostAccessTokenRequest(userId=2, description="lasting")).token
    b.put_SetClusterMessage(admin, body=b.v1SetClusterMessageRequest(message="still there", startTime="2020-01-01T00:00:00Z"))
    for experiment in doomed:
        b.delete_DeleteExperiment(user, experimentId=experiment)
    cluster.kill_node()
    cluster.up(slots=2)
    script = api.Session(cluster.url(), "determined", token, None)
    wait_for(lambda: all(gone(script, experiment) for experiment in doomed), 60)
    assert b.get_GetMaster(script).clusterMessage.message == "still there"
    assert [g.group.name for g in b.post_GetGroups(admin, body=b.v1GetGroupsRequest(limit=10)).groups] == ["team"]
    assert [s.value for s in b.get_GetUserSetting(script).settings] == ["dark"]
    assert [p.name for p in pathlib.Path(cluster.data, "checkpoints").iterdir() if p.is_dir()], "what is kept is kept"
