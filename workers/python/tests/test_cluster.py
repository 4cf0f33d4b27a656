"""Tests the package against the socket of a fake agent. Each script runs in a process of its own."""

import math
import signal

import pytest
from fake_agent import FakeAgent


def test_reports_arrive_in_order_with_their_steps_and_values_exactly(run, agent):
    code, out, err = run("""
for i in troupe.steps(0, 3):
    troupe.log(loss=i / 7, none=None, name="x", ok=True, big=2**63)
troupe.validate({"nan": float("nan"), "up": float("inf"), "down": float("-inf"), "tiny": 5e-324, "zero": -0.0}, step=9)
print(troupe.flush(), troupe.dropped(), troupe.should_stop(), troupe.stop_reason)
""", agent)
    assert (code, out, err) == (0, ["True 0 False None"], "")
    rows = [row for _, row in sorted(agent.reports.items(), key=lambda item: item[0][2])]
    assert [(row[0], row[1]) for row in rows] == [("training", 1), ("training", 2), ("training", 3), ("validation", 9)]
    assert rows[1][2] == {"loss": 2 / 7, "none": None, "name": "x", "ok": True, "big": 2**63}
    last = rows[3][2]
    assert math.isnan(last["nan"]) and (last["up"], last["down"], last["tiny"]) == (math.inf, -math.inf, 5e-324)
    assert math.copysign(1, last["zero"]) == -1


def test_validate_comes_back_with_the_decision(run, agent):
    agent.decide = lambda seq, metrics: "pruned" if metrics["epoch"] == 2 else None
    code, out, err = run("""
for epoch in range(1, 5):
    troupe.validate(epoch=epoch)
    print(epoch, troupe.should_stop(), troupe.stop_reason)
""", agent)
    assert (code, out, err) == (0, ["1 False None", "2 True pruned", "3 True pruned", "4 True pruned"], "")


def test_steps_end_when_the_agent_says_stop_and_report_progress(run, agent):
    process = run("""
done = 0
for done in troupe.steps(0, 10**9):
    troupe.log(i=done)
    if done == 1:
        print("running", flush=True)
print(troupe.stop_reason, done == troupe._session.current().last_step)
""", agent, popen=True)
    assert process.stdout.readline() == "running\n"
    agent.push_stop("pause")
    out, err = process.communicate(timeout=180)
    assert (process.returncode, out) == (0, "pause True\n")


def test_metrics_that_are_no_map_or_not_reportable_raise_in_validate_and_warn_in_log(run, agent):
    code, out, err = run("""
deep = {}
for _ in range(64): deep = {"x": deep}
cases = [[1, 2], None, 3, {1: 2}, {"x": object()}, {"x": 2**64}, {"x": b"raw"}, {"x": "\\udc80"}, deep,
         {str(i): i for i in range(1001)}, {"x": {str(i): i for i in range(1000)}}, {"x": "y" * (1 << 20)}, {"n" * 10241: 1}]
for case in cases:
    troupe.log(case)
    try:
        troupe.validate(case, step=1)
        print("accepted")
    except (TypeError, troupe.Refused) as why:
        print(type(why).__name__)
print(troupe.dropped(), troupe.flush())
troupe.log({str(i): i for i in range(1000)}); troupe.validate(deep["x"]); troupe.validate({"x": "y" * ((1 << 20) - 8)})
""", agent)
    assert (code, out[:-1]) == (0, ["TypeError"] * 8 + ["Refused"] * 5), err
    assert out[-1] == "13 False" and err.count("\n") == 2, err
    assert len(agent.reports) == 3


def test_scalars_of_numpy_and_torch_are_converted(run, agent):
    pytest.importorskip("numpy")
    code, out, err = run("""
import numpy as np
troupe.validate(a=np.float64(0.1), b=np.float32(0.5), c=np.int64(7), d=np.bool_(True), e=np.array(1.5), f=np.arange(3))
try:
    import torch
    troupe.validate(a=torch.tensor(0.25, requires_grad=True), b=torch.tensor([1, 2]))
except ImportError:
    troupe.validate(a=0.25, b=[1, 2])
""", agent)
    assert (code, err) == (0, "")
    assert agent.metrics() == [dict(a=0.1, b=0.5, c=7, d=True, e=1.5, f=[0, 1, 2]), dict(a=0.25, b=[1, 2])]


def test_a_refused_validation_raises_and_a_refused_log_is_counted(run, agent):
    agent.refuse = lambda seq, metrics: "this run is over" if "bad" in metrics else None
    code, out, err = run("""
troupe.log(bad=1)
troupe.log(good=1)
try:
    troupe.validate(bad=2)
except troupe.Refused as why:
    print(why)
print(troupe.flush(), troupe.dropped())
""", agent)
    assert out == ["the validation at step 2 was refused: this run is over", "False 1"]
    assert agent.metrics() == [{"good": 1}] and err == "troupe: the agent refused a report: this run is over\n"


@pytest.mark.parametrize("code", ["token", "version"])
def test_a_process_that_the_agent_does_not_accept_fails_in_validate_and_goes_on_in_log(run, agent, code):
    agent.error = [code, "because"]
    status, out, err = run("""
troupe.log(x=1)
try:
    troupe.validate(x=2)
except troupe.TroupeError as why:
    print(why)
print(troupe.flush(5), troupe.should_stop())
troupe.log(x=3)
""", agent)
    assert (status, out) == (0, ["the agent refused this process: because", "False False"])
    assert err.startswith("troupe: the agent refused this process: because; metrics are no longer reported\n")


def test_an_agent_that_does_not_know_the_allocation_yet_is_asked_again(run, agent):
    agent.error = ["unknown", "no such allocation"]
    process = run("troupe.validate(x=1)\nprint('done')", agent, popen=True)
    agent.wait(lambda: len(agent.kinds("hello")) >= 2)
    agent.error = None
    assert process.communicate(timeout=180) == ("done\n", "")


def test_everything_is_sent_again_after_the_agent_restarts_on_its_port(run, agent):
    agent.hold = True  # The agent makes reports durable, but does not acknowledge them.
    process = run("""
import sys
for i in range(500): troupe.log(i=i)
print("logged", flush=True)
sys.stdin.readline()
for i in range(500, 600): troupe.log(i=i)
troupe.validate(i=600)
print(troupe.flush(30), troupe.dropped())
""", agent, popen=True)
    process.stdout.readline()
    agent.wait(lambda: len(agent.reports) == 500)
    agent.stop()
    process.stdin.write("\n")
    process.stdin.flush()
    agent.hold = False
    agent.start()
    out, err = process.communicate(timeout=180)
    assert (out, err) == ("True 0\n", "")
    assert [m["i"] for m in agent.metrics()] == list(range(601))


def test_reports_that_the_agent_lost_are_sent_again(run, agent):
    agent.mute = True
    process = run("""
troupe.log(i=0)
troupe.validate(i=1)
print("done")
""", agent, popen=True)
    agent.stop()
    agent.mute = False
    agent.start()
    assert process.communicate(timeout=180) == ("done\n", "")
    assert [m["i"] for m in agent.metrics()] == [0, 1]


def test_the_endpoint_is_read_again_from_its_file_after_silence(run, agent, tmp_path):
    path = tmp_path / "endpoint"
    path.write_text(agent.endpoint + "\n")
    process = run("""
import sys
troupe.validate(i=0)
print("first", flush=True)
sys.stdin.readline()
troupe.validate(i=1)
print(troupe.flush(), flush=True)
""", agent, popen=True, TROUPE_HARNESS="tcp://127.0.0.1:1", TROUPE_HARNESS_FILE=str(path))
    assert process.stdout.readline() == "first\n"
    agent.stop()
    other = FakeAgent()
    other.acked = agent.acked
    other.start()
    path.write_text(other.endpoint + "\n")
    out, err = process.communicate("\n", timeout=180)
    other.stop()
    agent.start()  # The fixture expects a running agent.
    assert (out, err) == ("True\n", "") and [m["i"] for m in other.metrics()] == [1]


def test_log_drops_and_counts_when_the_agent_is_away_and_flush_says_so(run):
    code, out, err = run("""
import troupe._link as link, troupe._session as session
link.MAX_QUEUED_REPORTS = 100
session.EXIT_FLUSH_S = 0.2
for i in range(250):
    troupe.log(i=i)
print(troupe.dropped(), troupe.flush(timeout=0.1))
""", TROUPE_HARNESS="tcp://127.0.0.1:1", TROUPE_TASK_TOKEN="x", TROUPE_ALLOCATION_ID="1.1")
    assert (code, out) == (0, ["150 False"])
    assert "dropped" in err and "100 reports were not confirmed" in err and err.count("\n") == 2


def test_the_window_bounds_what_is_unacknowledged(run, agent):
    agent.window = 10_000
    code, out, err = run("""
for i in range(2000): troupe.log(i=i, text="x" * 100)
troupe.validate(i=2000, text="y" * 50_000)
print(troupe.flush(30))
""", agent)
    assert (code, out, err) == (0, ["True"], "")
    assert [m["i"] for m in agent.metrics()] == list(range(2001))
    assert max(len(frame[2]) for frame in agent.kinds("reports")) < 100


def test_a_checkpoint_is_complete_on_disk_before_it_is_reported_and_after_its_reports(run, agent, tmp_path):
    code, out, err = run("""
troupe.log(loss=1, step=40)
with troupe.checkpoint(step=40, metadata={"note": "x"}) as path:
    print(path.name.endswith(".tmp"))
    (path / "a.bin").write_bytes(b"12345")
    (path / "sub").mkdir()
    (path / "sub" / "b").write_text("")
try:
    with troupe.checkpoint() as path:
        raise KeyError("mine")
except KeyError:
    print("kept")
""", agent)
    assert (code, out, err) == (0, ["True", "kept"], "")
    [[name, steps, files, metadata]] = agent.checkpoints
    assert (steps, files, metadata) == (40, {"a.bin": 5, "sub/b": 0}, {"note": "x"})
    assert [p.name for p in (tmp_path / "checkpoints").iterdir()] == [name]
    kinds = [frame[0] for frame in agent.frames if frame[0] in ("reports", "checkpoint")]
    assert kinds == ["reports", "checkpoint"]


def test_a_refused_checkpoint_raises_and_leaves_nothing(run, agent, tmp_path):
    agent.refuse_checkpoint = "the run was fenced"
    code, out, err = run("""
try:
    with troupe.checkpoint(step=1) as path: (path / "x").write_text("x")
except troupe.Refused as why:
    print(why)
""", agent)
    assert out == ["the checkpoint at step 1 was refused: the run was fenced"]
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_resume_names_the_checkpoint_by_uuid_or_path_and_fails_where_it_is_gone(run, agent, tmp_path):
    (tmp_path / "checkpoints" / "u-1").mkdir(parents=True)
    script = "try:\n    print(troupe.resume())\nexcept troupe.TroupeError as why:\n    print('gone')"
    here = str(tmp_path / "checkpoints" / "u-1")
    for given, expected in (("u-1", here), (here, here), ("", "None"), ("u-2", "gone")):
        assert run(script, agent, TROUPE_RESUME_CHECKPOINT=given)[1] == [expected]


def test_parameters_come_from_defaults_then_the_cluster_then_flags(run, agent):
    code, out, err = run("""
p = troupe.params(lr=0.1, hidden=64, drop=0.5, name="a", fast=False, layers=[1])
print(p.lr, p["hidden"], p.drop, p.name, p.fast, p.extra, p.net.depth, p.layers, p.batch_size)
try: p.nothing
except AttributeError as why: print(why)
""", agent, argv=["--hidden=128", "--name=b", "--fast", "--other=1", "--layers=[2,3]", "--batch-size", "32"],
        TROUPE_HPARAMS={"lr": 1, "extra": None, "net": {"depth": 3}, "hidden": 32, "batch_size": 64})
    assert out[0] == "1.0 128 0.5 b True None 3 [2, 3] 32" and out[1].startswith("no hyperparameter 'nothing'; there are:"), err
    code, out, err = run("troupe.params(lr=0.1)", agent, argv=["--lr=fast"])
    assert code == 1 and err.endswith("ValueError: --lr=fast: expected a number, like 0.1\n")


def test_a_forked_child_reports_under_its_own_name_and_leaves_its_parents_queue_alone(run, agent):
    agent.hold = True
    process = run("""
import os
for i in range(100): troupe.log(parent=i)
pid = os.fork()
if pid == 0:
    troupe.validate(child=1)
    os._exit(0)
print(os.waitpid(pid, 0)[1], flush=True)
print(troupe.flush(), troupe.dropped())
""", agent, popen=True)
    agent.wait(lambda: any("child" in m for m in agent.metrics()))
    agent.release()
    out, err = process.communicate(timeout=180)
    assert (out, err) == ("0\nTrue 0\n", "")
    assert len({key[0] for key in agent.reports}) == 2 and len(agent.reports) == 101


def test_data_loader_processes_may_log(run, agent):
    code, out, err = run("""
import multiprocessing
def work(i): troupe.log(worker=i)
if __name__ == "__main__":
    troupe.log(main=1)
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=work, args=(i,)) for i in range(2)]
    for c in children: c.start()
    for c in children: c.join()
""", agent)
    assert (code, err) == (0, "")
    assert sorted(map(str, agent.metrics())) == ["{'main': 1}", "{'worker': 0}", "{'worker': 1}"]


def test_other_ranks_hear_stop_but_report_nothing(run, agent, tmp_path):
    agent.stop_reason = "preempted"
    code, out, err = run("""
troupe.log(x=1)
troupe.validate(x=1)
with troupe.checkpoint(step=1) as path: (path / "x").write_text("x")
while not troupe.should_stop(): pass
print(troupe.stop_reason, path.exists())
""", agent, RANK="1")
    assert (code, out, err) == (0, ["preempted False"], "")
    assert not agent.reports and not agent.checkpoints and agent.kinds("hello")[0][4] == 1
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_what_is_logged_last_is_flushed_at_exit_even_after_an_exception(run, agent):
    code, out, err = run("for i in range(1000): troupe.log(i=i)\nraise SystemExit(3)", agent)
    assert (code, err, len(agent.reports)) == (3, "", 1000)


def test_ctrl_c_ends_a_waiting_validation(run):
    process = run("""
import troupe._session as session
session.EXIT_FLUSH_S = 0.1
print("up", flush=True)
troupe.validate(x=1)
""", popen=True, TROUPE_HARNESS="tcp://127.0.0.1:1", TROUPE_TASK_TOKEN="x", TROUPE_ALLOCATION_ID="1.1")
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=180)
    assert process.returncode != 0 and "KeyboardInterrupt" in err


def test_an_incomplete_environment_is_named_and_log_still_does_not_raise(run):
    code, out, err = run("""
troupe.log(x=1)
print(troupe.dropped(), troupe.should_stop())
troupe.validate(x=1)
""", TROUPE_HARNESS="tcp://127.0.0.1:1")
    assert (code, out) == (1, ["1 False"]) and "TROUPE_TASK_TOKEN" in err.splitlines()[0]
