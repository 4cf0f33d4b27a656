"""What operators change about where work runs: labels and constraints, pools of agents, changes to running experiments, agents and slots
that are disabled, and the question why a trial waits. Master and agents are processes of their own."""

import json
import re

import pytest

from cluster_under_test import wait_for
from test_processes import Processes

CONFIG = """
name: {name}
entrypoint: python3 job.py
hyperparameters: {{x: 1}}
searcher: {{name: single, metric: loss}}
resources: {{slots_per_trial: {slots}, {more}}}
max_restarts: 0
environment: {{environment_variables: ["JOB_DIR={root}", "EPOCH_S={epoch_s}"]}}
"""
TWO_POOLS = "troupe: 1\npools: {main: {default: true, preemption: true}, other: {preemption: true}}\n"


class Lab(Processes):
    def __init__(self, root):
        super().__init__(root)
        self.env["TROUPE_USER"] = "admin"

    def apply(self, text):
        (self.root / "cluster.yaml").write_text(text)
        self.cli("apply", str(self.root / "cluster.yaml"), "--yes")

    def run(self, name, slots=1, more="", epoch_s=0.1):
        self.prepare(1, epoch_s)
        file = self.root / f"{name}.yaml"
        file.write_text(CONFIG.format(name=name, slots=slots, more=more, root=self.root, epoch_s=epoch_s))
        return self.json("experiment", "create", str(file), str(self.root / "job"))["id"]

    def trial(self, experiment):
        return wait_for(lambda: self.trials(experiment), 30)[0]["id"]

    def seen(self, trial, kind):
        return [x for x in self.acks() if x["trial"] == trial and x["kind"] == kind]

    def wait_for_run(self, trial, run=1):
        wait_for(lambda: any(x["run"] == run for x in self.seen(trial, "start")), 60)

    def placed(self, trial):
        """The agents of the trial's runs, oldest first."""
        facts = self.facts("allocation_placed")
        return [[part["agent"] for part in f["on"]] for f in facts if f["entity"].startswith(f"allocation/{trial}.")]

    def why(self, trial):
        return self.json("explain", "trial", str(trial))

    def waits_because(self, trial, code):
        return wait_for(lambda: self.why(trial)["reason"]["code"] == code and self.why(trial), 30, what=lambda: self.why(trial))

    def refusal(self, *words, code):
        done = self.cli(*words, check=False)
        assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stderr


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    yield lab
    lab.close()


def ready(lab, slots):
    wait_for(lambda: lab.alive_agents() == slots, 30)


def test_constraints_say_which_agents_hold_a_trial(lab):
    lab.master()
    lab.agent("a", more=("--label", "rack=r1"))
    lab.agent("b", more=("--label", "rack=r2", "--label", "fast=yes"))
    ready(lab, 2)
    there = lab.run("there", more="constraints: {labels: {rack: [r2, r9]}}", epoch_s=0.02)
    kept = lab.run("kept", more="constraints: {not_agents: [b], not_labels: {fast: 'yes'}}", epoch_s=0.02)
    for experiment, agent in ((there, "b"), (kept, "a")):
        assert lab.wait_end(experiment) == "COMPLETED"
        assert lab.placed(lab.trial(experiment)) == [[agent]]
    nowhere = lab.trial(lab.run("nowhere", more="constraints: {labels: {rack: r3}, device_type: cpu}"))
    said = lab.waits_because(nowhere, "constraints")
    assert {x["agent"]: x["why"] for x in said["agents"]} == {"a": "lacks rack=r3, has rack=r1", "b": "lacks rack=r3, has rack=r2"}
    assert (said["state"], said["position"]) == ("QUEUED", 1) and "constraints" in said["advice"], said
    lab.agent("c", more=("--label", "rack=r3"))
    lab.wait_for_run(nowhere)


def faulty(lab, name, more=""):
    """An experiment whose trial fails with a line that excludes its agent. After 9 restarts the trial gives up."""
    lab.prepare(1, 0.1)
    file = lab.root / f"{name}.yaml"
    file.write_text(f"name: {name}\nentrypoint: ['sh', '-c', 'echo an ECC fault; exit 3']\nhyperparameters: {{x: 1}}\n"
                    "searcher: {name: single, metric: loss}\nmax_restarts: 9\n"
                    f"log_policies: [{{name: ecc, pattern: 'ECC', action: exclude_node}}]\nresources: {{slots_per_trial: 1, {more}}}\n")
    return lab.json("experiment", "create", str(file), str(lab.root / "job"))["id"]


def test_a_trial_whose_log_policies_leave_no_agent_fails_with_the_reason(lab):
    lab.master()
    lab.agent("a")
    lab.agent("b")
    ready(lab, 2)
    experiment = faulty(lab, "broken")
    assert lab.wait_end(experiment) == "ERROR"
    trial = lab.trials(experiment)[0]
    assert sorted(lab.placed(trial["id"])) == [["a"], ["b"]] and trial["restarts"] == 2, (lab.placed(trial["id"]), trial)
    assert "no agent is left that could hold it: its log policies exclude" in trial["why"], trial
    assert trial["logPolicyMatched"] == "ecc"
    said = lab.cli("trial", "logs", str(trial["id"])).stdout
    assert said.count("therefore will not schedule on") == 2 and "was terminated: no agent is left" in said, said
    # A continuation is another task: it may use both agents again.
    lab.cli("experiment", "continue", str(experiment))
    wait_for(lambda: sorted(lab.placed(trial["id"])) == [["a"], ["a"], ["b"], ["b"]], 60, what=lambda: lab.placed(trial["id"]))


def test_a_trial_that_excludes_an_agent_waits_for_one_that_is_away(lab):
    lab.master()
    lab.agent("a")
    lab.agent("b")
    ready(lab, 2)
    lab.cli("agent", "disable", "b", "--drain")
    experiment = faulty(lab, "patient")
    trial = lab.trial(experiment)
    said = lab.waits_because(trial, "drained")
    assert {x["agent"]: x["why"] for x in said["agents"]}["a"] == "is excluded by name", said
    lab.cli("agent", "enable", "b")
    assert lab.wait_end(experiment) == "ERROR"
    assert lab.placed(trial) == [["a"], ["b"]]


def test_labels_of_the_cluster_file_win(lab):
    lab.master()
    lab.apply("troupe: 1\nnodes: [{name: a, host: localhost, manual: true, slots: 1, labels: {rack: r7}}]\n")
    lab.agent("a", more=("--label", "rack=r1"))
    ready(lab, 1)
    experiment = lab.run("there", more="constraints: {labels: {rack: r7}}", epoch_s=0.02)
    assert lab.wait_end(experiment) == "COMPLETED"


def test_bad_labels_and_pools_are_refused(lab):
    lab.master()
    assert "KEY=VALUE" in lab.refusal("agent", "--master", f"127.0.0.1:{lab.http}", "--data-dir", str(lab.root / "x"), "--label", "rack", code=2)
    said = lab.refusal("agent", "--master", f"127.0.0.1:{lab.http}", "--data-dir", str(lab.root / "x"), "--name", "x", "--slots", "1",
                       "--pool", "nope", code=2)
    assert "there is no pool 'nope'" in said and "--pool default" in said, said


def test_a_trial_without_slots_runs_beside_those_that_hold_all(lab):
    lab.master()
    lab.agent("a")
    ready(lab, 1)
    lab.hold()
    busy = lab.trial(lab.run("busy"))
    lab.wait_for_run(busy)
    light = lab.run("light", slots=0, epoch_s=0.02)
    lab.go_on(light)
    assert lab.wait_end(light) == "COMPLETED"
    assert lab.placed(lab.trial(light)) == [["a"]]
    assert not lab.seen(busy, "end"), "it went on meanwhile"
    assert lab.json("status")["slots"]["used"] == 1


def test_an_experiment_moves_to_another_pool_and_goes_on_there(lab):
    lab.master()
    lab.apply(TWO_POOLS)
    lab.agent("a")
    lab.agent("b", more=("--pool", "other"))
    ready(lab, 2)
    lab.hold(epoch=4)
    experiment = lab.run("moves")
    trial = lab.trial(experiment)
    wait_for(lambda: lab.seen(trial, "saved"), 60)
    assert "there is no pool 'nope'" in lab.refusal("experiment", "set", str(experiment), "--pool", "nope", code=2)
    lab.cli("experiment", "set", str(experiment), "--pool", "other")
    lab.wait_for_run(trial, 2)
    lab.go_on()
    assert lab.wait_end(experiment) == "COMPLETED"
    assert lab.placed(trial) == [["a"], ["b"]]
    after = lab.json("trial", "describe", str(trial))
    assert after["restarts"] == 0 and after["preemptions"] == 1 and after["preemptedSlotSeconds"] >= 0, after
    assert [x["epoch"] > 0 for x in lab.seen(trial, "start")] == [False, True]
    assert [f["reason"] for f in lab.facts("allocation_preempted")] == ["pool"]


def test_one_that_waits_asks_in_the_new_pool(lab):
    lab.master()
    lab.apply(TWO_POOLS)
    lab.agent("b", more=("--pool", "other"))
    ready(lab, 1)
    experiment = lab.run("waits", epoch_s=0.02)
    trial = lab.trial(experiment)
    lab.waits_because(trial, "no_agents")
    lab.cli("experiment", "set", str(experiment), "--pool", "other")
    assert lab.wait_end(experiment) == "COMPLETED"
    assert lab.placed(trial) == [["b"]]


def test_a_master_that_dies_while_an_experiment_moves_finishes_the_move(lab):
    lab.master()
    lab.apply(TWO_POOLS)
    lab.agent("a")
    lab.agent("b", more=("--pool", "other"))
    ready(lab, 2)
    lab.hold(epoch=4)
    experiment = lab.run("moves")
    trial = lab.trial(experiment)
    wait_for(lambda: lab.seen(trial, "saved"), 60)
    lab.cli("experiment", "set", str(experiment), "--pool", "other")
    lab.process.kill()
    lab.process.wait()
    lab.master()
    wait_for(lambda: lab.placed(trial)[-1] == ["b"], what=lambda: lab.placed(trial))
    lab.go_on()
    assert lab.wait_end(experiment) == "COMPLETED"
    assert lab.placed(trial)[0] == ["a"] and lab.placed(trial)[-1] == ["b"]
    assert lab.trials(experiment)[0]["restarts"] == 0
    assert not list(lab.root.glob("double-*"))


def test_what_is_larger_than_its_pool_is_said_when_it_is_submitted(lab):
    lab.master()
    lab.agent("a")
    ready(lab, 1)
    lab.run("fits", epoch_s=0.02)
    made = lambda name: lab.cli("experiment", "create", str(lab.root / f"{name}.yaml"), str(lab.root / "job"), "-q").stderr
    assert made("fits") == ""
    wide = lab.run("wide", slots=2)
    assert made("wide") == "warning: its pool has too few slots: it waits for more of them, or for a pool that this one falls back to\n"
    assert lab.why(lab.trial(wide))["reason"]["code"] == "too_large"


def test_a_live_change_of_priority_and_limit(lab):
    lab.master()
    lab.agent("a")
    ready(lab, 1)
    lab.hold()
    running = lab.run("running")
    held = lab.trial(running)
    lab.wait_for_run(held)
    first, second = lab.run("first", more="priority: 50", epoch_s=0.02), lab.run("second", more="priority: 50", epoch_s=0.02)
    later = lab.trial(second)
    said = lab.waits_because(later, "behind")
    assert said["position"] == 2 and said["priority"] == 50 and said["pool"] == "default", said
    shown = lab.cli("explain", "trial", str(later)).stdout
    assert f"trial {later} of experiment {second}" in shown and "second in line" in shown and "before it" in shown, shown
    assert lab.json("explain", "experiment", str(second))["trials"] == {"running": 0, "waiting": 1, "paused": 0}
    lab.cli("experiment", "set", str(second), "--priority", "10", "--max-slots", "none")
    assert lab.cli("queue", "list", "--pool", "nowhere", check=False).returncode == 5, "unknown, and not empty"
    queue = lab.json("queue", "list")
    assert [x["experiment"] for x in queue] == [second, first] and queue[0]["priority"] == 10, queue
    lab.go_on()
    for one in (running, second, first):
        assert lab.wait_end(one) == "COMPLETED"
    order = [x["trial"] for x in lab.acks() if x["kind"] == "start"]
    assert order == [held, later, lab.trial(first)]
    assert "COMPLETED" in lab.refusal("experiment", "set", str(second), "--priority", "11", code=8)


def test_wrong_changes_and_questions_are_refused(lab):
    lab.master()
    lab.agent("a")
    ready(lab, 1)
    experiment = lab.run("short", epoch_s=0.02)
    trial = lab.trial(experiment)
    assert lab.wait_end(experiment) == "COMPLETED"
    for words, code in (
        (("experiment", "set", str(experiment)), 2),
        (("experiment", "set", str(experiment), "--priority", "100"), 2),
        (("experiment", "set", str(experiment), "--weight", "-1"), 2),
        (("experiment", "set", "99", "--priority", "1"), 5),
        (("agent", "disable", "nobody"), 5),
        (("slot", "disable", "a", "7"), 5),
        (("pool", "describe", "nope"), 5),
        (("explain", "trial", "x"), 2),
        (("explain", "trial", "99"), 5),
        (("explain", "allocation", "99.1"), 5),
        (("explain", "allocation", "x"), 2),
    ):
        assert lab.refusal(*words, code=code).startswith("error:")
    lab.env["TROUPE_USER"] = "determined"
    for words in (("agent", "disable", "a"), ("slot", "disable", "a", "0"), ("agent", "enable", "a")):
        assert "access denied" in lab.refusal(*words, code=4)
    ended = lab.why(trial)
    assert (ended["state"], ended["reason"]["code"], ended["position"]) == ("ENDED", "ended", None), ended
    lab.cli("explain", "trial", str(trial))


def test_what_runs_on_a_disabled_agent_runs_elsewhere(lab):
    lab.master()
    lab.agent("a")
    ready(lab, 1)
    lab.hold(epoch=4)
    experiment = lab.run("moves")
    trial = lab.trial(experiment)
    wait_for(lambda: [x for x in lab.seen(trial, "saved") if x["epoch"] == 4], 60)
    lab.cli("agent", "disable", "a", "--drain")
    shown = lab.json("agent", "list")[0]
    assert (shown["enabled"], shown["draining"]) == (False, True), shown
    lab.go_on(epoch=6)
    wait_for(lambda: [x for x in lab.seen(trial, "validated") if x["epoch"] == 6], 30)  # The trial continues.
    lab.agent("b")
    ready(lab, 2)
    lab.cli("agent", "disable", "a")
    lab.wait_for_run(trial, 2)
    assert lab.placed(trial) == [["a"], ["b"]]
    lab.process.kill()
    lab.process.wait()
    lab.master()
    wait_for(lambda: len(lab.json("agent", "list")) == 2, 30)
    assert {x["id"]: x["enabled"] for x in lab.json("agent", "list")} == {"a": False, "b": True}, "it is durable"
    lab.go_on()
    assert lab.wait_end(experiment) == "COMPLETED"
    assert lab.trials(experiment)[0]["restarts"] == 0
    lab.cli("agent", "enable", "a")
    assert all(x["enabled"] for x in lab.json("agent", "list"))
    # Agents that do not come after a start of the master are listed with the time of their registration.
    for name in "ab":
        lab.kill_agent(name)
    lab.process.kill()
    lab.process.wait()
    lab.master()
    wait_for(lambda: len(lab.json("agent", "list")) == 2, 30)
    known = {fact["agent"]: fact["at"] for fact in lab.facts("agent_joined")}
    assert {x["id"]: x["registeredTime"] for x in lab.json("agent", "list")} == known, known


def test_a_command_on_what_is_disabled_ends_and_says_who_disabled_it(lab):
    lab.master()
    lab.agent("a", slots=2)
    ready(lab, 2)
    for words, why in ((("slot", "disable", "a", "0"), "slot 0 of agent a was disabled by admin"), (("agent", "disable", "a"), "agent a was disabled by admin")):
        task = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", lab.cli("command", "run", "--detach", "--slots", "2" if "slot" in words else "1", "--", "sleep 1000").stdout)[0]
        wait_for(lambda: lab.json("explain", "task", task)["state"] == "RUNNING", 30)
        assert "other tasks end" in lab.cli(*words).stdout
        ended = wait_for(lambda: (t := lab.json("task", "describe", task))["state"] == "ERROR" and t, 30)
        assert ended["why"] == why, ended
        assert why in lab.cli("command", "describe", task).stdout
        assert lab.json("explain", "task", task)["reason"]["text"] == "failed: " + why
        wait_for(lambda: "the task ends: " + why in lab.cli("task", "logs", task).stdout, 10)
        lab.cli("slot", "enable", "a", "0")


def test_a_killed_trial_says_by_whom(lab):
    lab.master()
    lab.agent("a")
    ready(lab, 1)
    lab.hold(epoch=4)
    experiment = lab.run("killed")
    trial = lab.trial(experiment)
    lab.wait_for_run(trial)
    lab.cli("experiment", "kill", str(experiment))
    assert lab.wait_end(experiment) == "CANCELED"
    assert lab.trials(experiment)[0]["why"] == "killed by admin"
    assert lab.why(trial)["reason"]["text"] == "was ended: killed by admin"


def test_agents_that_are_on_their_way_back_are_expected(lab):
    lab.master()
    lab.agent("a")
    ready(lab, 1)
    lab.hold(epoch=4)
    trial = lab.trial(lab.run("first"))
    lab.wait_for_run(trial)
    waits = lab.trial(lab.run("second"))
    lab.waits_because(waits, "busy")
    lab.process.kill()
    lab.process.wait()
    lab.kill_agent("a")
    lab.master()
    said = lab.waits_because(waits, "no_agents")
    assert re.fullmatch(r"the pool has no agents; agent a is expected back within \d+ s", said["reason"]["text"]), said
    assert said["advice"] == "", said


def test_a_disabled_slot_takes_nothing(lab):
    lab.master()
    lab.agent("a", slots=2)
    ready(lab, 2)
    lab.cli("slot", "disable", "a", "0", "--drain")
    assert {x["id"]: (x["enabled"], x["draining"]) for x in lab.json("slot", "list")} == {"0": (False, True), "1": (True, False)}
    trial = lab.trial(lab.run("wide", slots=2, epoch_s=0.02))
    said = lab.waits_because(trial, "drained")
    assert "enable" in said["advice"], said
    lab.cli("slot", "enable", "a", "0")
    lab.wait_for_run(trial)


def test_pools_are_described(lab):
    lab.master()
    lab.apply("troupe: 1\npools: {main: {default: true, scheduler: fair, preemption: true, quotas: [{user: '*', max_slots: 1}]}}\n")
    lab.agent("a", slots=2)
    ready(lab, 2)
    wide = lab.trial(lab.run("wide", slots=2, epoch_s=0.02))
    lab.waits_because(wide, "quota")
    lab.hold()
    narrow = lab.run("narrow", more="weight: 2")
    lab.wait_for_run(lab.trial(narrow))
    pool = lab.json("pool", "describe", "main")
    assert pool["scheduler"] == "fair" and pool["preemption"] and pool["slots"] == {"total": 2, "used": 1, "reserved": 0}, pool
    jobs = {x["experiment"]: x for x in pool["jobs"]}
    assert jobs[narrow]["used"] == 1 and jobs[narrow]["weight"] == 2, pool
    assert pool["provider"] is None and pool["quotas"] == [{"user": "*", "maxSlots": 1, "used": pool["quotas"][0]["used"]}], pool
    assert [x["name"] for x in lab.json("pool", "list")] == ["main"]
