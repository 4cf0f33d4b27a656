"""Pools whose instances start and end as work needs them, and runs that fall back to another pool, with real processes."""

import json
import os
import signal
import stat
import subprocess
import textwrap

import pytest

from cluster_under_test import BINARY, Cluster, free_port, wait_for

CONFIG = """
name: {name}
entrypoint: python3 job.py
hyperparameters: {{x: 1}}
searcher: {{name: single, metric: loss}}
resources: {{slots_per_trial: {slots}, {more}}}
max_restarts: 0
environment: {{environment_variables: ["JOB_DIR={root}", "EPOCH_S={epoch_s}"]}}
"""


@pytest.fixture
def lab(tmp_path):
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()


def start(lab, pools, slots=1, cluster=""):
    (lab.root / "cluster.yaml").write_text(f"troupe: 1\n{cluster}pools:\n{textwrap.indent(textwrap.dedent(pools), '  ')}\n")
    lab.up(slots=slots)
    lab.cli("apply", str(lab.root / "cluster.yaml"), "--yes")


def submit(lab, name, slots=1, more="", epoch_s=0.05):
    lab.prepare(1, epoch_s)
    file = lab.root / f"{name}.yaml"
    file.write_text(CONFIG.format(name=name, slots=slots, more=more, root=lab.root, epoch_s=epoch_s))
    return lab.json("experiment", "create", str(file), str(lab.root / "job"))["id"]


def pool(lab, name):
    return lab.json("pool", "describe", name)


def placements(lab):
    return lab.facts("allocation_placed")


def reason(lab, experiment):
    trial = wait_for(lambda: lab.trials(experiment), 30)[0]["id"]
    return lab.json("explain", "trial", str(trial))["reason"]


ELASTIC = """
main: {default: true}
burst:
  provider: {type: local, instance_slots: 2, max_instances: 2, max_idle_agent_period: 2s, labels: {spot: x}}
"""


def test_local_agents_come_with_the_work_and_go_when_they_are_idle(lab):
    start(lab, ELASTIC)
    assert pool(lab, "burst")["provider"]["type"] == "local"
    lab.hold()
    shown = {p["name"]: p for p in lab.call("/api/v1/resource-pools")[1]["resourcePools"]}
    assert [shown["burst"][key] for key in ("minAgents", "maxAgents", "slotsPerAgent")] == [0, 2, 2], shown
    one = submit(lab, "one", 2, "resource_pool: burst")
    two = submit(lab, "two", 1, "resource_pool: burst, constraints: {labels: {spot: x}}")
    wait_for(lambda: "burst-1" in {a["id"] for a in lab.json("agent", "list")})
    lab.go_on()
    assert lab.wait_end(one) == "COMPLETED"
    assert lab.wait_end(two) == "COMPLETED"
    wait_for(lambda: pool(lab, "burst")["provider"]["instances"] == 0, 30, what=lambda: pool(lab, "burst"))
    whats = [f["what"] for f in lab.facts("instance_changed")]
    assert whats.count("ordered") == whats.count("launched") >= 1 and "ended" in whats, whats
    # The pool has no instance now; another run makes it launch one again.
    assert lab.wait_end(submit(lab, "again", 1, "resource_pool: burst")) == "COMPLETED"


def test_a_changed_provider_goes_on_at_once(lab):
    start(lab, ELASTIC.replace("max_instances: 2", "max_instances: 1").replace("2s", "60s"))
    lab.hold()
    one = submit(lab, "one", 2, "resource_pool: burst")
    two = submit(lab, "two", 2, "resource_pool: burst")
    lab.go_on(two)
    wait_for(lambda: [a for a in lab.acks() if a["kind"] == "start"], 60)
    file = lab.root / "cluster.yaml"
    file.write_text(file.read_text().replace("max_instances: 1", "max_instances: 2"))
    lab.cli("apply", str(file), "--yes")
    assert lab.wait_end(two) == "COMPLETED"
    file.write_text(file.read_text().replace("max_instances: 2", "max_instances: 1"))
    lab.cli("apply", str(file), "--yes")
    wait_for(lambda: pool(lab, "burst")["provider"]["instances"] == 1, 30, what=lambda: pool(lab, "burst"))
    lab.go_on()
    assert lab.wait_end(one) == "COMPLETED"
    assert pool(lab, "burst")["provider"]["error"] is None, pool(lab, "burst")
    assert [f["what"] for f in lab.facts("instance_changed") if f["what"] == "failed"] == []
    assert {a["run"] for a in lab.acks()} == {1}, "the idle one of the two was ended"


def test_instances_outlive_a_master_that_is_killed_and_their_tasks_go_on(lab):
    lab.listen = f"127.0.0.1:{free_port()}"  # Agents that outlive the master connect to the address that it had.
    start(lab, ELASTIC.replace("2s", "60s"))
    lab.hold()
    work = submit(lab, "long", 2, "resource_pool: burst")
    wait_for(lambda: [a for a in lab.acks() if a["kind"] == "saved"], 60)
    lab.kill_node()
    lab.up(slots=1)
    lab.go_on()
    assert lab.wait_end(work) == "COMPLETED"
    assert {a["run"] for a in lab.acks()} == {1}, "it was started twice"
    provider = pool(lab, "burst")["provider"]
    assert provider["instances"] == 1 and provider["error"] is None and provider["faults"] == [], provider
    lab.down()  # An orderly end of the master ends the instances too.
    wait_for(lambda: not lab.tree(), 30, what=lab.describe_tree)


def test_a_provider_that_dies_is_made_again_and_its_instances_stay(lab):
    start(lab, ELASTIC.replace("2s", "60s"))
    lab.hold()
    work = submit(lab, "long", 2, "resource_pool: burst")
    wait_for(lambda: [a for a in lab.acks() if a["kind"] == "start"], 60)
    for actor, owner in (("provider/burst", "cluster"), ("provider_calls/burst", "provider/burst")):
        done = lab.cli("shell", "-e", ":rw", "-e", f"restart {actor}")
        assert f"{actor} is back, made again by {owner}" in done.stdout, done.stdout
    lab.go_on()
    assert lab.wait_end(work) == "COMPLETED"
    assert {a["run"] for a in lab.acks()} == {1}, "it was started twice"
    provider = pool(lab, "burst")["provider"]
    assert provider["instances"] == 1 and provider["error"] is None and provider["faults"] == [], provider


def test_a_log_policy_that_excludes_an_instance_brings_another_one(lab):
    start(lab, ELASTIC)
    lab.prepare(1, 0.1)
    (lab.root / "faulty.yaml").write_text(
        f"name: faulty\nentrypoint: ['sh', '-c', '[ $DET_TRIAL_RUN_ID = 1 ] || exit 0; echo an ECC fault; exit 3']\nhyperparameters: {{x: 1}}\n"
        "searcher: {name: single, metric: loss}\nmax_restarts: 1\nlog_policies: [{pattern: ECC, action: exclude_node}]\n"
        "resources: {slots_per_trial: 1, resource_pool: burst}\n")
    work = lab.json("experiment", "create", str(lab.root / "faulty.yaml"), str(lab.root / "job"))["id"]
    assert lab.wait_end(work) == "COMPLETED"
    agents = [fact["on"][0]["agent"] for fact in placements(lab)]
    assert len(agents) == 2 and len(set(agents)) == 2, agents


def test_what_is_larger_than_the_pool_can_become_is_said(lab):
    start(lab, ELASTIC)
    huge = submit(lab, "huge", 5, "resource_pool: burst")
    assert reason(lab, huge)["code"] in ("no_agents", "too_large")
    fits = submit(lab, "fits", 4, "resource_pool: burst")
    assert lab.wait_end(fits) == "COMPLETED"


def test_what_no_instance_can_hold_brings_one_of_them(lab):
    start(lab, ELASTIC.replace("2s", "60s"))
    never = submit(lab, "never", 2, "resource_pool: burst, constraints: {min_memory: 20 TiB}")
    wait_for(lambda: reason(lab, never)["code"] == "constraints", 60, what=lambda: (reason(lab, never), pool(lab, "burst")))
    assert lab.wait_end(submit(lab, "fits", 2, "resource_pool: burst")) == "COMPLETED"
    assert [f["what"] for f in lab.facts("instance_changed")].count("ordered") == 1, lab.facts("instance_changed")


def test_what_ended_with_the_master_is_replaced_and_is_no_failure(lab):
    start(lab, ELASTIC.replace("max_instances: 2", "min_instances: 1, max_instances: 2"))
    wait_for(lambda: pool(lab, "burst")["slots"]["total"] == 2, 60, what=lambda: pool(lab, "burst"))
    lab.down()
    wait_for(lambda: not lab.tree(), 30, what=lab.describe_tree)
    lab.up(slots=1)
    wait_for(lambda: pool(lab, "burst")["slots"]["total"] == 2, 60, what=lambda: pool(lab, "burst"))
    assert pool(lab, "burst")["provider"]["error"] is None
    assert "went before its agent had registered" not in (lab.root / "up.log").read_text()


def launched(lab):
    return [f["ids"] for f in lab.facts("instance_changed") if f["what"] == "launched"]


def test_an_agent_that_died_with_the_master_brings_one_instance_for_all_its_runs(lab):
    lab.listen = f"127.0.0.1:{free_port()}"
    start(lab, ELASTIC.replace("2s", "600s"))
    lab.hold()
    work = [submit(lab, f"w{n}", 1, "resource_pool: burst") for n in range(2)]
    wait_for(lambda: {a["trial"] for a in lab.acks() if a["kind"] == "saved"} >= {1, 2}, 60)
    lab.kill_node()
    for pid, words in lab.describe_tree():
        if b"\0agent\0" in words:
            os.kill(pid, signal.SIGKILL)
    lab.up(slots=1)  # The sandboxes are killed soon, and the new agent, which has the old one's name and folder, still reports them.
    lab.go_on()
    assert [lab.wait_end(one) for one in work] == ["COMPLETED"] * 2
    assert launched(lab) == [["burst-1"]] * 2


def test_an_idle_instance_that_ended_with_the_master_brings_one_that_is_not_drained(lab):
    start(lab, ELASTIC)
    assert lab.wait_end(submit(lab, "one", 1, "resource_pool: burst")) == "COMPLETED"
    wait_for(lambda: [f for f in lab.facts("instance_changed") if f["what"] == "ended"], 30)
    lab.kill_everything()
    lab.up(slots=1)
    assert lab.wait_end(submit(lab, "two", 1, "resource_pool: burst")) == "COMPLETED"
    assert launched(lab) == [["burst-1"]] * 2


# ---- commands that users provide

PROVIDER = """#!/usr/bin/env python3
import fcntl, json, os, pathlib, subprocess, sys, time
root = pathlib.Path(os.environ["PROVIDER_ROOT"])
how = (root / "how").read_text().strip()
with open(root / "calls", "a") as f:
    f.write(json.dumps({"at": time.time(), "words": sys.argv[1:], "env": {k: v for k, v in os.environ.items() if k.startswith("TROUPE_")}}) + "\\n")
if how == "hang":
    time.sleep(600)
if how == "garbage":
    print("{ this is no instance")
    sys.exit(0)
if how == "fails" or how == f"{sys.argv[1]} fails":
    print("quota of instances is used up", file=sys.stderr)
    sys.exit(3)
alone = open(root / "alone", "w")  # Several calls may run at the same time.
fcntl.flock(alone, fcntl.LOCK_EX)
known = json.loads((root / "known").read_text()) if (root / "known").exists() else {}
if sys.argv[1] == "list":
    for name, x in known.items():
        if how != "forgets":
            print(json.dumps({"id": name, "state": "running", "agent": x["agent"], "launched": x["launched"]}))
elif sys.argv[1] == "launch":
    count = int(os.environ["TROUPE_COUNT"])
    count = {"more": count + 2, "fewer": count - 1}.get(how, count)
    for _ in range(count):
        made = int((root / "made").read_text()) + 1 if (root / "made").exists() else 1
        (root / "made").write_text(str(made))
        name = f"i-{made}"
        known[name] = {"agent": "twin" if how == "same" else name, "launched": time.time(), "pid": 0}
        if how != "never":
            agent = subprocess.Popen([os.environ["PROVIDER_TROUPE"], "agent", "--master", os.environ["TROUPE_MASTER"], "--name", known[name]["agent"],
                                      "--pool", os.environ["TROUPE_POOL"], "--slots", os.environ["TROUPE_SLOTS"], "--data-dir", str(root / "data" / name)],
                                     stdin=subprocess.DEVNULL, stdout=open(root / f"{name}.log", "a"), stderr=subprocess.STDOUT, start_new_session=True)
            known[name]["pid"] = agent.pid
        print(name)
else:
    for name in sys.argv[2:]:
        x = known.pop(name, None)
        if x and x["pid"]:
            try:
                os.kill(x["pid"], 10)
            except ProcessLookupError:
                pass
(root / "known").write_text(json.dumps(known))
"""


class Cloud:
    def __init__(self, lab, how="well"):
        self.root = lab.data / "cloud"  # below the data directory, so that its agents count as the cluster's
        self.root.mkdir(parents=True)
        self.program = self.root / "provider"
        self.program.write_text(PROVIDER)
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        self.be(how)
        lab.env.update(PROVIDER_ROOT=str(self.root), PROVIDER_TROUPE=BINARY)

    def be(self, how):
        (self.root / "how").write_text(how)

    def calls(self, which):
        try:
            lines = (self.root / "calls").read_text().splitlines()
        except FileNotFoundError:
            return []
        return [x for x in map(json.loads, lines) if x["words"][0] == which]

    def pool(self, more=""):
        words = {which: json.dumps([str(self.program), which]) for which in ("list", "launch", "terminate")}
        keys = ", ".join(f"{which}: {call}" for which, call in words.items())
        return f"main: {{default: true}}\ncloud: {{provider: {{type: command, instance_slots: 1, max_instances: 2, max_idle_agent_period: 1s{more}, {keys}}}}}\n"


def test_commands_of_the_user_bring_and_end_agents(lab):
    cloud = Cloud(lab)
    start(lab, cloud.pool(", labels: {zone: b, spot: x}"))
    assert lab.wait_end(submit(lab, "one", 1, "resource_pool: cloud")) == "COMPLETED"
    wait_for(lambda: pool(lab, "cloud")["provider"]["instances"] == 0, 30)
    call = cloud.calls("launch")[0]["env"]
    assert call["TROUPE_POOL"] == "cloud" and call["TROUPE_COUNT"] == "1" and call["TROUPE_SLOTS"] == "1", call
    assert call["TROUPE_LABELS"] == "spot=x,zone=b" and call["TROUPE_MASTER"].startswith("127.0.0.1:"), call
    assert "TROUPE_JOIN_TOKEN_FILE" in call
    wait_for(lambda: cloud.calls("terminate"), 10)
    assert cloud.calls("terminate")[0]["words"][1:] == ["i-1"]


def test_a_provider_that_fails_is_asked_less_and_less_and_waiting_work_says_so(lab):
    cloud = Cloud(lab)
    start(lab, cloud.pool())
    wait_for(lambda: cloud.calls("list"), 20)
    cloud.be("fails")
    work = submit(lab, "one", 1, "resource_pool: cloud")
    why = wait_for(lambda: (r := reason(lab, work))["code"] == "provider_failed" and r, 30)
    assert "quota of instances is used up" in why["text"], why
    assert "quota" in pool(lab, "cloud")["provider"]["error"]
    assert lab.state(work) in ("ACTIVE", "RUNNING", "QUEUED"), "it is never cancelled"
    first, second = wait_for(lambda: (calls := cloud.calls("launch"))[1:] and calls, 60)[:2]
    assert second["at"] - first["at"] > 4, "5 s after the first failure"
    assert (lab.root / "up.log").read_text().count("quota of instances is used up") <= 2, "it is logged once for each call"
    cloud.be("well")
    assert lab.wait_end(work) == "COMPLETED"
    assert pool(lab, "cloud")["provider"]["error"] is None


def test_what_a_provider_cannot_end_is_shown(lab):
    cloud = Cloud(lab)
    start(lab, cloud.pool())
    cloud.be("terminate fails")
    assert lab.wait_end(submit(lab, "one", 1, "resource_pool: cloud")) == "COMPLETED"
    told = wait_for(lambda: (p := pool(lab, "cloud")["provider"])["error"] and p, 30, what=lambda: pool(lab, "cloud"))
    assert "quota" in told["error"] and (told["instances"], told["starting"], told["stopping"]) == (1, 0, 1), told
    assert "1 instance, of which 0 start and 1 is being ended" in lab.cli("pool", "describe", "cloud").stdout
    cloud.be("well")
    wait_for(lambda: (p := pool(lab, "cloud")["provider"])["instances"] == 0 and p["error"] is None, 60, what=lambda: pool(lab, "cloud"))


@pytest.mark.parametrize("how", ["garbage", "more", "fewer", "same", "forgets"])
def test_a_provider_that_does_wrong_is_shown_and_starts_no_storm(lab, how):
    cloud = Cloud(lab)
    start(lab, cloud.pool())
    wait_for(lambda: cloud.calls("list"), 20)
    cloud.be(how)
    work = [submit(lab, f"w{n}", 1, "resource_pool: cloud", epoch_s=0.5) for n in range(2)]

    def said():
        provider = pool(lab, "cloud")["provider"]
        return provider["error"] or provider["faults"]
    wait_for(said, 40, what=lambda: pool(lab, "cloud"))
    lists = len(cloud.calls("list"))
    wait_for(lambda: len(cloud.calls("list")) > lists, 40)
    launches = [call["at"] for call in cloud.calls("launch")]  # The first two are one for each run. The later ones are at least 5 s apart.
    assert all(later - earlier > 4 for earlier, later in zip(launches[1:], launches[2:])), launches
    provider = pool(lab, "cloud")["provider"]
    assert provider["instances"] - provider["stopping"] <= 2, provider
    cloud.be("well")
    for one in work:
        assert lab.wait_end(one) == "COMPLETED"


# ---- instances that have ended, providers that change

SHORT = "cluster: {leases: {heartbeat: 500ms, freeze: 2s, give_away: 3s}}\n"


def agents(lab):
    return {a["id"]: a["state"] for a in lab.json("agent", "list")}


def apply(lab, pools, cluster=""):
    file = lab.root / "cluster.yaml"
    file.write_text(f"troupe: 1\n{cluster}pools:\n{textwrap.indent(textwrap.dedent(pools), '  ')}\n")
    lab.cli("apply", str(file), "--yes")


def restart(lab):
    lab.kill_node()
    lab.up(slots=1)


def test_the_agents_of_instances_that_are_gone_are_forgotten(lab):
    lab.listen = f"127.0.0.1:{free_port()}"
    start(lab, ELASTIC, cluster=SHORT)
    restart(lab)  # The leases of the file are in force from the next start on.
    lab.hold()
    one = submit(lab, "one", 2, "resource_pool: burst")
    wait_for(lambda: "burst-1" in agents(lab))
    lab.go_on()
    assert lab.wait_end(one) == "COMPLETED"
    wait_for(lambda: "burst-1" not in agents(lab), 60, what=lambda: (agents(lab), pool(lab, "burst")))
    left = lab.facts("agent_left")
    assert [(f["agent"], f["by"]) for f in left] == [("burst-1", "troupe")], left
    assert lab.wait_end(submit(lab, "again", 2, "resource_pool: burst")) == "COMPLETED", "the name is used again"
    restart(lab)
    wait_for(lambda: not [a for a in agents(lab) if a.startswith("burst")], 60, what=lambda: (agents(lab), pool(lab, "burst")))


def test_the_instances_of_a_former_provider_end_before_the_next_one_begins(lab):
    cloud = Cloud(lab)
    lab.listen = f"127.0.0.1:{free_port()}"
    start(lab, ELASTIC.replace("max_instances: 2", "max_instances: 1").replace("2s", "60s"))
    lab.hold()
    one = submit(lab, "one", 2, "resource_pool: burst")
    wait_for(lambda: [a for a in lab.acks() if a["kind"] == "start"], 60)
    apply(lab, cloud.pool().replace("cloud:", "burst:"))
    two = submit(lab, "two", 1, "resource_pool: burst")
    why = wait_for(lambda: (r := reason(lab, two))["code"] == "provider_failed" and r, 30, what=lambda: reason(lab, two))
    assert "former provider (local) end first: burst-1" in why["text"], why
    restart(lab)
    lab.go_on()
    assert lab.wait_end(one) == "COMPLETED"
    assert lab.wait_end(two) == "COMPLETED"
    placed = {f["on"][0]["agent"] for f in placements(lab)}
    assert placed == {"burst-1", "i-1"}, placed
    assert {a["run"] for a in lab.acks()} == {1}
    wait_for(lambda: agents(lab).get("burst-1", "away") == "away", what=lambda: agents(lab))


def test_a_provider_that_was_dropped_ends_what_it_had_after_the_master_died_too(lab):
    cloud = Cloud(lab)
    lab.listen = f"127.0.0.1:{free_port()}"
    start(lab, cloud.pool())
    lab.hold()
    one = submit(lab, "one", 1, "resource_pool: cloud")
    wait_for(lambda: [a for a in lab.acks() if a["kind"] == "start"], 60)
    apply(lab, "main: {default: true}\ncloud: {}\n")
    restart(lab)
    lab.go_on()
    assert lab.wait_end(one) == "COMPLETED"
    wait_for(lambda: cloud.calls("terminate"), 30, what=lambda: pool(lab, "cloud"))
    assert cloud.calls("terminate")[0]["words"][1:] == ["i-1"]
    assert {a["run"] for a in lab.acks()} == {1}


def test_a_pool_that_was_dropped_leaves_no_instance(lab):
    cloud = Cloud(lab)
    lab.listen = f"127.0.0.1:{free_port()}"
    start(lab, cloud.pool(", min_instances: 1"), cluster=SHORT)
    restart(lab)
    wait_for(lambda: pool(lab, "cloud")["slots"]["total"] == 1, 60)
    apply(lab, "main: {default: true}\n", SHORT)
    wait_for(lambda: cloud.calls("terminate"), 30)
    assert cloud.calls("terminate")[0]["words"][1:] == ["i-1"]
    wait_for(lambda: [p["name"] for p in lab.json("pool", "list")] == ["main"], 90, what=lambda: lab.json("pool", "list"))


# ---- fallback

def test_a_run_that_waits_falls_back_and_its_next_run_begins_at_home(lab):
    lab.listen = f"127.0.0.1:{free_port()}"
    start(lab, """
        home: {default: true, fallback: [full, other], fallback_after: 1s, preemption: true}
        full: {}
        other: {}
        """, slots=1)
    agent = subprocess.Popen([BINARY, "agent", "--master", lab.url().split("://")[1], "--name", "there", "--slots", "1", "--pool", "other",
                              "--data-dir", str(lab.data / "there")], env=lab.env, stdout=lab.log, stderr=lab.log, start_new_session=True)
    try:
        wait_for(lambda: pool(lab, "other")["slots"]["total"] == 1, 30)
        lab.hold()
        first = submit(lab, "first")
        wait_for(lambda: [a for a in lab.acks() if a["kind"] == "start"], 30)
        second = submit(lab, "second")
        placed = wait_for(lambda: [f for f in placements(lab) if f["pool"] == "other"], 30)
        assert placed[0]["home"] == "home" and placed[0]["on"][0]["agent"] == "there"
        trial = lab.trials(second)[0]["id"]
        assert lab.json("explain", "trial", str(trial))["pool"] == "other"
        lab.kill_node()  # The run stays in the pool that it fell back to.
        lab.up(slots=1)
        lab.go_on()
        assert lab.wait_end(first) == "COMPLETED"
        assert lab.wait_end(second) == "COMPLETED"
        assert {a["run"] for a in lab.acks()} == {1}
        assert not [f for f in lab.facts("allocation_preempted")]
        third = submit(lab, "third")
        assert lab.wait_end(third) == "COMPLETED"
        assert placements(lab)[-1]["pool"] == "home"
    finally:
        agent.kill()
        agent.wait()


def test_a_pool_that_goes_lives_until_its_guest_has_ended(lab):
    lab.listen = f"127.0.0.1:{free_port()}"
    start(lab, "home: {default: true, fallback: [other], fallback_after: 1s}\nother: {}\n", slots=1)
    agent = subprocess.Popen([BINARY, "agent", "--master", lab.url().split("://")[1], "--name", "there", "--slots", "1", "--pool", "other",
                              "--data-dir", str(lab.data / "there")], env=lab.env, stdout=lab.log, stderr=lab.log, start_new_session=True)
    try:
        wait_for(lambda: pool(lab, "other")["slots"]["total"] == 1, 30)
        lab.hold()
        first = submit(lab, "first")
        wait_for(lambda: [a for a in lab.acks() if a["kind"] == "start"], 30)
        second = submit(lab, "second")
        wait_for(lambda: [f for f in placements(lab) if f["pool"] == "other"], 30)
        apply(lab, "home: {default: true}\n")  # Only the guest runs in the other pool, which the file does not name any more.
        third = submit(lab, "third")
        lab.go_on()
        assert [lab.wait_end(one) for one in (first, second, third)] == ["COMPLETED"] * 3
        assert {a["run"] for a in lab.acks()} == {1}, "the guest went on where it was"
        assert not [f for f in placements(lab) if f["pool"] == "other"][1:], "and nothing new came there"
        wait_for(lambda: [p["name"] for p in lab.json("pool", "list")] == ["home"], 60, what=lambda: lab.json("pool", "list"))
    finally:
        agent.kill()
        agent.wait()
