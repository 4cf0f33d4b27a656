"""Tasks that are not trials, by Determined's unmodified client and by ours: commands, generic tasks, what the processes of a task may do,
and what happens to them when the master, the agent or both are killed. Needs the wheel `determined` 0.38.1 in the interpreter that
runs the tests, which tasks use too."""

import base64
import io
import json
import re
import subprocess
import tarfile
import urllib.error
import urllib.request

import pytest

import warm_client
from cluster_under_test import BINARY, Cluster, go_on, hold, wait_for

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path) as one:
        one.up(slots=2)
        yield one


def det(cluster, *words, check=True, timeout=180, user="determined", cold=False):
    env = {**cluster.env, "DET_MASTER": cluster.url(), "DET_USER": user, "DET_PASS": ""}
    done = warm_client.run(words, env, timeout=timeout, cold=cold)
    assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def task(cluster, uuid):
    return cluster.call(f"/troupe/v1/tasks/{uuid}")[1]


def wait_state(cluster, uuid, *states, seconds=30):
    return wait_for(lambda: (lambda row: row if row["state"] in states else None)(task(cluster, uuid)), seconds,
                    what=lambda: task(cluster, uuid))


def logs(cluster, uuid):
    return cluster.cli("task", "logs", uuid).stdout


def test_stock_client_runs_a_command_and_prints_its_lines(cluster):
    done = det(cluster, "cmd", "run", "echo hello-$((40 + 2)); echo to-stderr >&2; env | grep ^DET_TASK_TYPE", cold=True)
    uuid = UUID.search(done.stdout)[0]
    assert "hello-42" in done.stdout and "to-stderr" in done.stdout
    assert "DET_TASK_TYPE=COMMAND" in done.stdout
    assert re.search(r"Resources for Command \([a-z-]+\) have started", done.stdout), done.stdout
    listed = json.loads(det(cluster, "cmd", "list", "--json").stdout)
    row = next(one for one in listed if one["id"] == uuid)
    assert row["state"] in ("TERMINATED", "STATE_TERMINATED") and row["exitStatus"] == "allocation exited successfully", row
    assert "hello-42" in det(cluster, "cmd", "logs", uuid, cold=True).stdout
    config = det(cluster, "cmd", "config", uuid).stdout
    assert "/run/determined/command-entrypoint.sh" in config
    status, one = cluster.call(f"/api/v1/commands/{uuid}")
    assert status == 200 and one["command"]["workspaceId"] == 1 and one["config"]["resources"]["slots"] == 1


def test_a_command_is_in_the_usage_with_its_own_kind(cluster):
    uuid = UUID.search(det(cluster, "cmd", "run", "true").stdout)[0]
    wait_state(cluster, uuid, "COMPLETED")
    span = "timestampAfter=2020-01-01T00:00:00Z&timestampBefore=2099-01-01T00:00:00Z"
    [one] = cluster.call(f"/api/v1/resources/allocation/raw?{span}")[1]["resourceEntries"]
    assert (one["kind"], one["username"], one["slots"], one["experimentId"]) == ("command", "determined", 1, 0), one
    line = det(cluster, "resources", "raw", "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z").stdout.splitlines()[1]
    assert line.startswith(",command,determined,,1,"), line
    request = cluster.request("/resources/allocation/allocations-csv?timestamp_after=2020-01-01T00:00:00Z&timestamp_before=2099-01-01T00:00:00Z")
    with urllib.request.urlopen(request, timeout=120) as answer:
        line = answer.read().decode().splitlines()[1]
    assert line.startswith(f"{uuid}.1,COMMAND,determined,Uncategorized,,1,") and line.endswith(",default"), line


def test_pools_are_bound_by_the_cluster_file_and_by_the_api(cluster, tmp_path):
    file = tmp_path / "bound.yaml"
    file.write_text("troupe: 1\npools: {default: {default: true}, gpu: {workspaces: [vision]}}\n")
    said = cluster.cli("apply", "--yes", str(file))
    assert "pools.gpu.workspaces: there is no workspace 'vision' yet" in said.stdout + said.stderr, said
    refused = det(cluster, "cmd", "run", "--config", "resources.resource_pool=gpu", "true", check=False)
    assert refused.returncode != 0 and "there is no pool 'gpu' that workspace 'Uncategorized' may use" in refused.stdout + refused.stderr, refused
    route = "/api/v1/resource-pools/gpu/workspace-bindings"
    assert cluster.call(route)[1]["workspaceIds"] == []
    vision = cluster.call("/api/v1/workspaces", {"name": "vision"})[1]["workspace"]["id"]
    assert cluster.call(route)[1]["workspaceIds"] == [vision]
    assert "gpu" in cluster.call(f"/api/v1/workspaces/{vision}/available-resource-pools")[1]["resourcePools"]
    assert "gpu" not in cluster.call("/api/v1/workspaces/1/available-resource-pools")[1]["resourcePools"]
    free = cluster.call("/api/v1/resource-pools?unbound=true")[1]
    assert [pool["name"] for pool in free["resourcePools"]] == ["default"] and free["pagination"]["total"] == 1, free
    kept = det(cluster, "resource-pool", "bindings", "remove", "gpu", "vision", user="admin", check=False)
    assert kept.returncode != 0 and "by the cluster file" in kept.stdout + kept.stderr, kept
    det(cluster, "resource-pool", "bindings", "add", "gpu", "Uncategorized", user="admin")
    assert cluster.call(route)[1]["workspaceIds"] == [1, vision]
    config = json.dumps({"name": "moves", "entrypoint": "true", "searcher": {"name": "single", "metric": "loss"}})
    moves = cluster.call("/api/v1/experiments", {"config": config, "activate": False})[1]["experiment"]
    assert cluster.call("/api/v1/job-queues", {"updates": [{"jobId": moves["jobId"], "resourcePool": "gpu"}]})[0] == 200
    field = {"kind": "field", "columnName": "resourcePool", "location": "LOCATION_TYPE_EXPERIMENT", "type": "COLUMN_TYPE_TEXT", "operator": "=", "value": "gpu"}
    wanted = json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [field]}, "showArchived": True})
    found = cluster.call("/api/v1/experiments-search", {"filter": wanted})[1]["experiments"]
    assert [(one["experiment"]["id"], one["experiment"]["resourcePool"]) for one in found] == [(moves["id"], "gpu")], found
    cluster.kill_node()
    cluster.up(slots=2)
    assert cluster.call(route)[1]["workspaceIds"] == [1, vision]
    file.write_text("troupe: 1\npools: {default: {default: true}, gpu: {}}\n")
    cluster.cli("apply", "--yes", str(file))
    assert cluster.call(route)[1]["workspaceIds"] == [1], "what the API said stays"
    usable = lambda: cluster.call("/api/v1/workspaces/1/available-resource-pools")[1]["resourcePools"]
    det(cluster, "resource-pool", "bindings", "replace", "gpu", "vision", user="admin")
    assert "gpu" not in usable()
    det(cluster, "workspace", "delete", "vision", "--yes", user="admin")
    wait_for(lambda: cluster.call(route)[1]["workspaceIds"] == [] and "gpu" in usable(), 30)
    assert {pool["name"] for pool in cluster.call("/api/v1/resource-pools?unbound=true")[1]["resourcePools"]} == {"default", "gpu"}


def test_several_words_are_no_shells_and_files_are_there(cluster, tmp_path):
    context = tmp_path / "context"
    context.mkdir()
    (context / "data.txt").write_text("forty-two\n")
    done = det(cluster, "cmd", "run", "--context", str(context), "--config", "resources.slots=0", "cat", "data.txt", "$HOME", check=False)
    assert "forty-two" in done.stdout and "$HOME" in done.stdout, done.stdout
    uuid = UUID.search(done.stdout)[0]
    ended = wait_state(cluster, uuid, "ERROR")
    assert ended["exit"] == 1 and ended["slots"] == 0
    packed = base64.b64decode(cluster.call(f"/api/v1/tasks/{uuid}/context_directory")[1]["b64Tgz"])
    assert tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz").extractfile("data.txt").read() == b"forty-two\n"


def test_our_client_ends_with_the_programs_exit_code(cluster):
    done = cluster.cli("command", "run", "--slots", "0", "--", "echo out; exit 7", check=False)
    assert done.returncode == 7 and "out" in done.stdout, (done.stdout, done.stderr)
    assert cluster.cli("command", "run", "--", "true").returncode == 0
    assert cluster.json("command", "list") == []
    assert sorted(row["exit"] for row in cluster.json("command", "list", "--all")) == [0, 7]


def test_a_killed_command_leaves_nothing(cluster):
    uuid = cluster.cli("command", "run", "-d", "--", "sleep 1000 & sleep 2000").stdout.strip()
    wait_for(lambda: task(cluster, uuid)["running"], 20)
    assert cluster.json("status")["slots"]["used"] == 1
    det(cluster, "cmd", "kill", uuid)
    row = wait_state(cluster, uuid, "CANCELED")
    assert "killed by" in row["why"]
    wait_for(lambda: cluster.json("status")["slots"]["used"] == 0, 10)
    wait_for(lambda: not [pid for pid, words in cluster.describe_tree() if b"sleep" in words], 10)
    det(cluster, "cmd", "kill", uuid)  # A second kill is answered with 200, and changes nothing.
    assert cluster.call(f"/api/v1/notebooks/{uuid}")[0] == 404


def test_what_waits_is_a_job_and_its_priority_is_obeyed(cluster):
    first = cluster.cli("command", "run", "-d", "--slots", "2", "--", "sleep 1000").stdout.strip()
    wait_for(lambda: task(cluster, first)["running"], 20)
    low = cluster.cli("command", "run", "-d", "--slots", "2", "--", "echo low").stdout.strip()
    high = cluster.cli("command", "run", "-d", "--slots", "2", "--", "echo high; sleep 1000").stdout.strip()
    det(cluster, "cmd", "set", "priority", high, "5")
    listed = lambda: [job.get("full") or job for job in cluster.call("/api/v1/job-queues-v2?resourcePool=default")[1]["jobs"]]
    ids = lambda: [job["entityId"] for job in listed()]
    wait_for(lambda: {first, low, high} <= set(ids()), what=listed)
    assert all(job["type"] == "TYPE_COMMAND" for job in listed())
    wait_for(lambda: (now := ids()).index(high) < now.index(low), what=listed)
    counts = cluster.call("/api/v1/tasks/count")[1]
    assert counts["commands"] == 1, "those that wait do not run"
    waits = lambda: cluster.call("/troupe/v1/queue")[1]["waiting"]
    wait_for(lambda: {row["allocation"].split(".")[0] for row in waits()} == {low, high}, what=waits)
    waiting = waits()
    assert all(row["experiment"] is None and row["trial"] == 0 for row in waiting), waiting
    why = cluster.call(f"/troupe/v1/tasks/{low}/explain")[1]
    assert (why["state"], why["reason"]["code"], why["behind"], why["kind"], why["slots"]) == ("QUEUED", "behind", high + ".1", "command", 2), why
    assert [one["allocation"] for one in why["wouldFree"]] == [first + ".1"], why
    assert cluster.call(f"/troupe/v1/allocations/{low}.1/explain")[1]["reason"] == why["reason"]
    said = cluster.cli("explain", "task", low[:8]).stdout
    assert said.startswith(f"command {low} (determined) waits ") and f"behind command {high}" in said, said
    assert f"command {first} on " in said and f"before it   command {high}: 2 slots, priority 5" in said.replace("  before it  ", "before it   "), said
    assert cluster.call(f"/troupe/v1/tasks/{first}/explain")[1]["state"] == "RUNNING"
    listed = lambda *more: [row["id"] for row in json.loads(cluster.cli("command", "list", "-o", "json", *more).stdout)]
    assert set(listed("--state", "queued")) == {low, high} and listed("--workspace", "Uncategorized", "--state", "active") == [first]
    assert cluster.call(f"/api/v1/allocations/{first}.1/ready", {})[0] == 200, "whoever may edit it may say so"
    cluster.cli("command", "kill", first)
    wait_for(lambda: task(cluster, high)["running"], 20)
    assert not task(cluster, low)["running"]
    cluster.cli("command", "kill", high, low)
    wait_state(cluster, low, "CANCELED")


def test_tokens_of_a_task_open_what_they_should_and_die_with_it(cluster):
    script = ("curl -s -o /dev/null -w 'own %{http_code}\\n' -H \"Authorization: Bearer $DET_USER_TOKEN\" $DET_MASTER/api/v1/me; "
              "curl -s -o /dev/null -w 'logs %{http_code}\\n' -H \"Grpc-Metadata-x-allocation-token: Bearer $DET_SESSION_TOKEN\" "
              "$DET_MASTER/api/v1/tasks/$DET_TASK_ID/logs; "
              "echo user=$DET_USER_TOKEN; sleep 1000")
    uuid = cluster.cli("command", "run", "-d", "--slots", "0", "--", script).stdout.strip()
    text = wait_for(lambda: (lambda t: t if "user=" in t else None)(logs(cluster, uuid)), 30, what=lambda: logs(cluster, uuid))
    assert "own 200" in text and "logs 200" in text, text
    token = re.search(r"user=(\S+)", text)[1]

    def status():
        try:
            return urllib.request.urlopen(urllib.request.Request(cluster.url() + "/api/v1/me", headers={"Authorization": "Bearer " + token})).status
        except urllib.error.HTTPError as no:
            return no.code
    assert status() == 200
    cluster.cli("command", "kill", uuid)
    wait_state(cluster, uuid, "CANCELED")
    assert status() == 401


def test_our_client_follows_a_command_through_the_death_of_its_node(cluster):
    gate = cluster.root / "follow-gate"
    cluster.listen = cluster.url().removeprefix("http://")  # the address to which the client connects again
    client = subprocess.Popen([BINARY, "command", "run", "--slots", "0", "--", f"echo before; {hold(gate)}; echo after; exit 9"],
                              env=cluster.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert client.stdout.readline() == "before\n"
        cluster.kill_node()
        assert any("dialling it again" in line for line in client.stderr)  # Earlier lines of the client come first.
        cluster.up(slots=2)
        go_on(gate)
        out, err = client.communicate(timeout=120)
        assert (out, client.returncode) == ("after\n", 9), (out, err)
    finally:
        client.kill()


@pytest.mark.parametrize("what", ["node", "everything"])
def test_a_command_outlives_its_master_and_agent(cluster, what):
    away, gate = cluster.root / "away", cluster.root / "gate"
    lines = lambda first, last: f"for k in $(seq {first} {last}); do echo line $k; done"
    uuid = cluster.cli("command", "run", "-d", "--", "; ".join((lines(1, 100), hold(away), lines(101, 150), hold(gate), lines(151, 200)))).stdout.strip()
    wait_for(lambda: "line 3" in logs(cluster, uuid), 20)
    if what == "node":
        cluster.kill_node()
        go_on(away)  # The command writes while no agent reads.
    else:
        cluster.kill_everything()
    cluster.up(slots=2)
    if what == "everything":  # The processes of the command are dead, so that it ends with the reason and is not started again.
        row = wait_state(cluster, uuid, "ERROR", seconds=90)
        assert row["why"] and row["runs"] == 1
        return
    assert task(cluster, uuid)["state"] == "ACTIVE"
    go_on(gate)
    row = wait_state(cluster, uuid, "COMPLETED", seconds=60)
    text = logs(cluster, uuid)
    assert row["runs"] == 1 and "line 200" in text
    assert len(re.findall(r"^line 150$", text, re.M)) == 1


def test_generic_tasks_pause_go_on_and_form_trees(cluster, tmp_path):
    config = tmp_path / "task.yaml"
    config.write_text("entrypoint: ['sh', '-c', 'echo run; cat data.txt; sleep 1000']\nresources: {slots: 0}\npreemption_timeout: 1\n")
    context = tmp_path / "files"
    context.mkdir()
    (context / "data.txt").write_text("inherited\n")
    root = UUID.search(det(cluster, "task", "create", str(config), "-c", str(context)).stdout)[0]
    wait_for(lambda: "inherited" in logs(cluster, root), 30, what=lambda: logs(cluster, root))
    child = UUID.search(det(cluster, "task", "create", str(config), "-p", root, "--inherit_context").stdout)[0]
    wait_for(lambda: "inherited" in logs(cluster, child), 30, what=lambda: logs(cluster, child))
    assert "sleep 1000" in det(cluster, "task", "config", root).stdout
    det(cluster, "task", "pause", root)
    wait_state(cluster, root, "PAUSED")
    wait_state(cluster, child, "PAUSED")  # The client allows pausing for each task.
    assert det(cluster, "task", "pause", root, check=False).returncode != 0
    shown = cluster.call(f"/api/v1/tasks/{root}")[1]["task"]
    assert shown["taskState"] == "GENERIC_TASK_STATE_PAUSED"
    det(cluster, "task", "unpause", root)
    for one in (root, child):
        wait_for(lambda: task(cluster, one)["runs"] == 2 and task(cluster, one)["running"], 30, what=lambda: task(cluster, one))
    fork = UUID.search(det(cluster, "task", "fork", root).stdout)[0]
    wait_for(lambda: "inherited" in logs(cluster, fork), 30)
    jobs = [job["full"] for job in cluster.call("/api/v1/job-queues-v2?resourcePool=default")[1]["jobs"]]
    assert {(job["type"], job["name"]) for job in jobs} == {("TYPE_GENERIC", "generic-task")} and {root, child, fork} == {job["jobId"] for job in jobs}, jobs
    det(cluster, "task", "kill", child, "--root")
    for one in (root, child):
        wait_state(cluster, one, "CANCELED")
    assert task(cluster, fork)["state"] == "ACTIVE"
    assert cluster.call(f"/api/v1/tasks/{root}/kill", {})[0] == 200  # A kill of a task that has ended succeeds.
    det(cluster, "task", "kill", fork)
    wait_state(cluster, fork, "CANCELED")
    # Our own client allows pausing too.
    root = cluster.cli("task", "create", str(config), "-c", str(context)).stdout.strip()
    children = [cluster.cli("task", "create", str(config), "-c", str(context), "--parent", root, *more).stdout.strip() for more in ((), ("--no-pause",))]
    for one in (root, *children):
        wait_for(lambda: "inherited" in logs(cluster, one), 30)
    cluster.cli("task", "pause", root)
    wait_state(cluster, children[0], "PAUSED")
    assert task(cluster, children[1])["state"] == "ACTIVE"
    cluster.cli("task", "kill", root, "--root")
    for one in (root, *children):
        wait_state(cluster, one, "CANCELED")


def test_bad_input_starts_nothing(cluster):
    admin_before = len(cluster.call("/troupe/v1/tasks")[1]["tasks"])
    cases = [
        ("/api/v1/commands", {"config": {"entrypoint": ["a"], "wrong": 1}}, 400, "wrong"),
        ("/api/v1/commands", {"config": {"entrypoint": []}}, 400, "entrypoint"),
        ("/api/v1/commands", {"config": {"entrypoint": [" "]}}, 400, "entrypoint"),
        ("/api/v1/commands", {"config": {"entrypoint": "a"}}, 400, "entrypoint"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"], "resources": {"slots": -1}}}, 400, "slots"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"], "resources": {"resource_pool": "nope"}}}, 400, "resource_pool"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"]}, "workspaceId": -1}, 404, "workspace '-1'"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"], "resources": {"slots": 99}}}, 400, "request unfulfillable"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"], "resources": {"is_single_node": True}}}, 400, "is_single_node"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"]}, "workspaceId": 77}, 404, "workspace"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"]}, "templateName": "none"}, 404, "template"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"]}, "files": [{"path": "../x", "type": 48, "content": "YQ=="}]}, 400, "x"),
        ("/api/v1/notebooks", {"config": {"notebook_idle_type": "sometimes"}}, 400, "notebook_idle_type"),
        ("/api/v1/notebooks", {"config": {"idle_timeout": "soon"}}, 400, "idle_timeout"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"]}, "files": [{"path": "/x", "type": 48, "content": "YQ=="}]}, 400, "/x"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"]}, "files": [{"path": "", "type": 48, "content": "YQ=="}]}, 400, "not the name of a file"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"]}, "files": [{"path": "x", "type": 50, "content": "Li4="}]}, 400, "files[0].type"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"], "environment": {"proxy_ports": [{"proxy_port": 0}]}}}, 400, "proxy_port"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"], "environment": {"proxy_ports": [{"proxy_port": 70000}]}}}, 400, "proxy_port"),
        ("/api/v1/commands", {"config": {"entrypoint": ["a"], "environment": {"proxy_ports": [{"proxy_port": 80}] * 2}}}, 400, "named twice"),
        ("/troupe/v1/tasks", {"kind": "command", "config": {"entrypoint": ["a"]}, "workspace": -1}, 404, "workspace '-1'"),
        ("/troupe/v1/tasks", {"kind": "else", "config": {}}, 400, "kind"),
        ("/api/v1/tensorboards", {}, 400, "must set experiment"),
        ("/api/v1/tensorboards", {"filters": {"name": "nothing has this name"}}, 400, "no experiments found"),
        ("/api/v1/tensorboards", {"trialIds": [77]}, 404, "77"),
        ("/api/v1/tensorboards", {"experimentIds": [-1]}, 400, "experimentIds"),
        ("/api/v1/tensorboards", {"trialIds": ["x"]}, 400, "trialIds"),
        ("/api/v1/tensorboards", {"experimentIds": [77]}, 404, "77"),
        ("/api/v1/generic-tasks", {"config": "", "contextDirectory": []}, 400, "No config file"),
        ("/api/v1/generic-tasks", {"config": "", "contextDirectory": [], "forkedFrom": "5e20"}, 404, "5e20"),
        ("/api/v1/generic-tasks", {"config": "entrypoint: [a]\nresources: {slots: 99}\n"}, 400, "request unfulfillable"),
        ("/api/v1/generic-tasks", {"config": "entrypoint: [a]\n", "inheritContext": True}, 400, "parentId"),
        ("/api/v1/generic-tasks", {"config": "entrypoint: [a]\n", "projectId": 77}, 404, "77"),
    ]
    for path, body, status, says in cases:
        got = cluster.call(path, body)
        assert got[0] == status and says in json.dumps(got[1]), (path, body, got)
    mib = base64.b64encode(bytes(1 << 20)).decode()
    for many, status, says in ((96, 400, "over 95 MiB"), (95, 200, "")):  # The stock client sends at most 95 MiB.
        body = {"config": {"entrypoint": ["a"]}, "files": [{"path": f"f{n}", "type": 48, "content": mib} for n in range(many)], "preview": True}
        got = cluster.call("/api/v1/commands", body)
        assert got[0] == status and says in json.dumps(got[1]), got
    preview = cluster.call("/api/v1/notebooks", {"config": {}, "preview": True})
    assert preview[0] == 200 and preview[1]["config"]["resources"]["slots"] == 1, preview
    assert len(cluster.call("/troupe/v1/tasks")[1]["tasks"]) == admin_before


def test_lists_are_filtered_sorted_and_paged(cluster):
    made = {}
    for name, user in (("b", "determined"), ("a", "admin"), ("c", "determined")):
        made[name] = UUID.search(det(cluster, "cmd", "run", "-d", "--config", "resources.slots=0", "--config", f"description={name}", "sleep", "1000",
                                     user=user).stdout)[0]

    def names(query, total=None):
        status, got = cluster.call("/api/v1/commands?" + query)
        assert status == 200, got
        assert total is None or got["pagination"]["total"] == total, got["pagination"]
        return [one["description"] for one in got["commands"]]
    assert names("sortBy=SORT_BY_DESCRIPTION", 3) == ["a", "b", "c"]
    assert names("sortBy=SORT_BY_DESCRIPTION&orderBy=ORDER_BY_DESC") == ["c", "b", "a"]
    assert names("sortBy=SORT_BY_START_TIME") == ["b", "a", "c"]
    assert names("") == sorted(made, key=made.get), "by the id unless something else is said"
    assert names("sortBy=SORT_BY_DESCRIPTION&limit=1&offset=1", 3) == ["b"]
    assert names("sortBy=SORT_BY_DESCRIPTION&offset=-1", 3) == ["c"]
    assert names("limit=-2", 3) == []
    assert names("users=admin", 1) == ["a"] and names("users=nobody", 0) == [] and names("userIds=1", 1) == ["a"]
    assert len(names("users=admin&users=determined&workspaceId=1", 3)) == 3
    for query, status in (("sortBy=SORT_BY_LUCK", 400), ("limit=x", 400), ("offset=9", 400), ("workspaceId=77", 404), ("workspaceId=x", 400)):
        assert cluster.call("/api/v1/commands?" + query)[0] == status, query
    assert len(cluster.call("/troupe/v1/tasks?kind=command&state=live&user=determined&workspace=1")[1]["tasks"]) == 2
    assert cluster.call("/troupe/v1/tasks?state=completed")[1]["tasks"] == []
    assert cluster.call("/troupe/v1/tasks?state=lucky")[0] == cluster.call("/troupe/v1/tasks?kind=lucky")[0] == 400
    assert det(cluster, "cmd", "kill", "-f", "12345678-1234-4123-8123-123456789012", *made.values(), check=False).returncode == 0
    for uuid in made.values():
        wait_state(cluster, uuid, "CANCELED")


def test_a_template_a_workspace_and_a_file_of_settings_go_together(cluster, tmp_path):
    (tmp_path / "team.yaml").write_text("description: of-the-team\nenvironment: {environment_variables: [TEAM=yes, OWN=no]}\n")
    (tmp_path / "own.yaml").write_text("resources: {slots: 0}\nenvironment: {environment_variables: [OWN=yes]}\n")
    files = tmp_path / "files"
    files.mkdir()
    (files / "data.txt").write_text("forty-two\n")
    (files / "startup-hook.sh").write_text("export HOOKED=yes\n")
    det(cluster, "template", "create", "team", str(tmp_path / "team.yaml"))
    det(cluster, "workspace", "create", "lab")
    done = det(cluster, "cmd", "run", "--template", "team", "-w", "lab", "--config-file", str(tmp_path / "own.yaml"), "-c", str(files),
               "echo team=$TEAM own=$OWN hooked=$HOOKED; cat data.txt")
    assert "team=yes own=yes hooked=yes" in done.stdout and "forty-two" in done.stdout, done.stdout
    row = json.loads(det(cluster, "cmd", "list", "--all", "--json").stdout)[0]
    assert row["description"] == "of-the-team" and row["workspaceId"] != 1
    assert json.loads(det(cluster, "cmd", "list", "--all", "-w", "Uncategorized", "--json").stdout) == []


def test_a_key_creates_once_also_after_kill_9(cluster):
    body = {"kind": "command", "config": {"entrypoint": ["sleep", "1000"], "resources": {"slots": 0}}, "key": "nightly"}
    first = cluster.call("/troupe/v1/tasks", body)[1]["id"]
    assert cluster.call("/troupe/v1/tasks", body)[1]["id"] == first
    cluster.kill_node()
    cluster.up(slots=2)
    assert cluster.call("/troupe/v1/tasks", body)[1]["id"] == first
    cluster.cli("command", "kill", first)
    wait_state(cluster, first, "CANCELED")
    assert cluster.call("/troupe/v1/tasks", body)[1]["id"] == first
    assert cluster.call("/troupe/v1/tasks", {**body, "key": "other"})[1]["id"] != first


def test_our_own_verbs_start_and_open_every_kind(cluster, tmp_path):
    command = cluster.cli("command", "start", "--slots", "2", "--", "sleep 1000").stdout.strip()
    wait_for(lambda: task(cluster, command)["running"], 20)
    (tmp_path / "task.yaml").write_text("entrypoint: [sleep, '1000']\nenvironment: {proxy_ports: [{proxy_port: 8123, default_service_id: true}]}\n")
    generic = cluster.cli("task", "start", str(tmp_path / "task.yaml")).stdout.strip()
    ready = lambda: [one["ready"] for one in cluster.call(f"/troupe/v1/tasks/{generic}/services")[1]] == [True]
    assert not ready(), "it waits for a slot"
    assert [cluster.call(f"/troupe/v1/tasks/{one}")[1]["address"] for one in (generic, command)] == [f"/proxy/{generic}/", None]
    cluster.env["TROUPE_USER"] = "admin"
    assert cluster.cli("task", "open", generic[:8], "--no-open").stdout == f"{cluster.url()}/proxy/{generic}/\n"
    refused = cluster.cli("command", "open", command, "--no-open", check=False)
    assert refused.returncode == 5 and "has no page" in refused.stderr, refused
    del cluster.env["TROUPE_USER"]
    cluster.cli("task", "kill", command)
    wait_for(ready, 20)
    cluster.cli("task", "kill", generic)


def test_our_own_verb_keeps_the_programs_output_apart(cluster):
    done = cluster.cli("command", "run", "--slots", "0", "--", "echo out; echo err >&2; exit 5", check=False)
    assert (done.returncode, done.stdout) == (5, "out\n"), done
    assert "err\n" in done.stderr and "have started" in done.stderr, done.stderr
