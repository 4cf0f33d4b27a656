"""Tests scripts that run without a cluster."""

import json
import os
import time
import uuid

SCRIPT = """
p = troupe.params(lr=0.1)
start, path = 0, troupe.resume()
if path: start = int((path / "step").read_text())
print("from", start)
for step in troupe.steps(start, start + 4):
    troupe.log(loss=1 / step)
    if step % 2 == 0:
        troupe.validate(val=float("nan"), step=step)
        with troupe.checkpoint() as path: (path / "step").write_text(str(step))
print(troupe.flush(), troupe.dropped(), troupe.should_stop(), troupe.stop_reason)
"""


def rows(folder, name="reports.jsonl"):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def test_a_script_runs_alone_and_leaves_reports_and_checkpoints_in_a_folder(run, tmp_path):
    code, out, err = run(SCRIPT)
    assert (code, out, err) == (0, ["from 0", "True 0 False None"], "")
    [folder] = (tmp_path / "troupe-runs").iterdir()
    assert folder.name.startswith("script-")
    found = rows(folder)
    assert [(r["group"], r["steps"]) for r in found] == [
        ("training", 1), ("training", 2), ("validation", 2), ("training", 3), ("training", 4), ("validation", 4)]
    assert found[2]["metrics"] == {"val": "NaN"} and found[0]["metrics"] == {"loss": 1.0}
    saved = rows(folder, "checkpoints.jsonl")
    assert [r["steps"] for r in saved] == [2, 4] and saved[0]["files"] == {"step": 1}
    assert sorted(os.listdir(folder / "checkpoints")) == sorted(r["uuid"] for r in saved)
    assert {uuid.UUID(r["uuid"]).version for r in saved} == {7}
    assert all(abs((uuid.UUID(r["uuid"]).int >> 80) / 1000 - time.time()) < 60 for r in saved), "the name begins with the time"


def test_a_local_run_goes_on_when_asked(run, tmp_path):
    run(SCRIPT, TROUPE_RUN_NAME="mine")
    assert run(SCRIPT, TROUPE_RESUME="mine")[1][0] == "from 4"
    assert run(SCRIPT, TROUPE_RESUME="latest")[1][0] == "from 8"
    assert run(SCRIPT)[1][0] == "from 0"
    assert len(rows(tmp_path / "troupe-runs" / "mine")) == 18
    code, out, err = run(SCRIPT, TROUPE_RESUME="nothing")
    assert code == 1 and "TROUPE_RESUME=nothing: there is no run" in err


def test_only_rank_0_writes(run, tmp_path):
    assert run(SCRIPT, RANK="1")[1] == ["from 0", "True 0 False None"]
    assert not (tmp_path / "troupe-runs").exists()


def test_bad_metrics_meet_the_same_answers_as_on_a_cluster(run):
    code, out, err = run("""
troupe.log([1])
for bad in ([1], {"x": object()}):
    try: troupe.validate(bad)
    except TypeError: print("TypeError")
try: troupe.validate(x="y" * (1 << 20))
except troupe.Refused: print("Refused")
print(troupe.dropped())
""")
    assert (code, out, err.count("\n")) == (0, ["TypeError", "TypeError", "Refused", "1"], 1)
