"""Jobs, priorities, and agents and slots that are disabled, by the unmodified `determined` client against a real cluster."""

import json
import re

import pytest

from cluster_under_test import wait_for
from test_stock_client import Stock


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Stock(tmp_path_factory.mktemp("jobs")) as cluster:
        cluster.up(slots=1)
        cluster.det("user", "login", "admin", home="admin", stdin="\n")
        yield cluster


def jobs(cluster, *more):
    return json.loads(cluster.det("job", "list", "--json", *more))["jobs"]


@pytest.fixture(scope="module")
def two(cluster):
    """An experiment that holds the slot until it is preempted, and one that waits."""
    holding, _ = cluster.create(name="holding", hparams="{steps: 12, hold_at: 7}")
    wait_for(lambda: cluster.json("status")["slots"]["used"] == 1, 60)
    waiting, _ = cluster.create(name="waiting", hparams="{steps: 5}", more="resources: {slots_per_trial: 1, priority: 60}\n")
    wait_for(lambda: cluster.json("status")["waiting"] == 1, 60)
    return holding, waiting


def test_jobs_are_listed_in_their_turn(cluster, two):
    holding, waiting = two
    found = jobs(cluster)
    assert [x["entityId"] for x in found] == [str(holding), str(waiting)], found
    first, second = found
    assert (first["summary"]["state"], second["summary"]["state"]) == ("STATE_SCHEDULED", "STATE_QUEUED")
    assert (first["allocatedSlots"], first["requestedSlots"], second["allocatedSlots"], second["requestedSlots"]) == (1, 1, 0, 1)
    assert (first["priority"], second["priority"]) == (42, 60)
    assert second["summary"]["jobsAhead"] == 1 and second["resourcePool"] == "default" and second["workspaceId"] == 1
    table = cluster.det("job", "list")
    assert re.search(rf"waiting \({waiting}\)", table) and "STATE_QUEUED" in table, table


def test_tasks_are_told_as_they_are(cluster, two):
    tasks = json.loads(cluster.det("task", "list", "--json"))
    by_name = {x["name"]: x for x in tasks.values()}
    held, waits = by_name[f"Trial 1 (Experiment {two[0]})"], by_name[f"Trial 2 (Experiment {two[1]})"]
    assert (held["slotsNeeded"], held["priority"], held["resourcePool"], held["schedulerType"]) == (1, 42, "default", "priority")
    assert (waits["slotsNeeded"], waits["priority"], waits["resources"]) == (1, 60, [])
    assert "TYPE_CPU" in json.dumps(held["resources"])


def test_priorities_and_limits_change(cluster, two):
    _, waiting = two
    cluster.det("experiment", "set", "priority", str(waiting), "55")
    wait_for(lambda: jobs(cluster)[1]["priority"] == 55, what=lambda: jobs(cluster))
    cluster.det("job", "update", jobs(cluster)[1]["jobId"], "--priority", "54")
    wait_for(lambda: jobs(cluster)[1]["priority"] == 54, what=lambda: jobs(cluster))
    cluster.det("experiment", "set", "max-slots", str(waiting), "1")
    cluster.det("experiment", "set", "weight", str(waiting), "2.5")
    shown = cluster.json("pool", "describe", "default")
    mine = [x for x in shown["jobs"] if x["experiment"] == waiting][0]
    assert (mine["maxSlots"], mine["weight"], mine["priority"]) == (1, 2.5, 54), mine
    cluster.det("experiment", "set", "max-slots", str(waiting), "none")
    mine = [x for x in cluster.json("pool", "describe", "default")["jobs"] if x["experiment"] == waiting][0]
    assert mine["maxSlots"] is None, mine
    said = cluster.det("job", "update", jobs(cluster)[1]["jobId"], "--resource-pool", "nope", code=1)
    assert "there is no pool 'nope'" in said


def test_agents_are_taken_out_by_admins_alone(cluster, two):
    agent = cluster.json("agent", "list")[0]["id"]
    assert "Forbidden" in cluster.det("agent", "disable", agent, "--drain", code=1)
    said = cluster.det("agent", "disable", agent, "--drain", home="admin")
    assert "Disabled agent" in said and f"(Experiment {two[0]})" in said, said
    shown = json.loads(cluster.det("agent", "list", "--json"))[0]
    assert shown["enabled"] is False and shown["draining"] is True, shown
    cluster.det("agent", "enable", agent, home="admin")


def test_both_end_after_all_of_that(cluster, two):
    holding, waiting = two
    cluster.det("experiment", "kill", str(holding))
    cluster.wait(waiting)
    wait_for(lambda: jobs(cluster) == [], what=lambda: jobs(cluster))


def test_a_slot_is_taken_out(cluster, two):
    agent = cluster.json("agent", "list")[0]["id"]
    slots = lambda: {x["slot_id"]: x["enabled"] for x in json.loads(cluster.det("slot", "list", "--json"))}
    assert "Forbidden" in cluster.det("slot", "disable", agent, "0", code=1)
    cluster.det("slot", "disable", agent, "0", home="admin")
    wait_for(lambda: slots() == {"0": False}, what=slots)
    cluster.det("slot", "enable", agent, "0", home="admin")
    wait_for(lambda: slots() == {"0": True}, what=slots)
