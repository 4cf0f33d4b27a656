"""A trial in C++ on the task link, against a fake agent that records what it hears (workers/python/tests/fake_agent.py)."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "workers/python/tests"))
from fake_agent import ALLOCATION, TOKEN, FakeAgent  # noqa: E402

PROGRAM = os.environ["NATIVE_TRIAL"]  # the built program of test/data/native_trial


@pytest.fixture
def agent():
    agent = FakeAgent().start()
    yield agent
    agent.stop()


def start(agent, folder, hparams, ranks=1, **env):
    """Starts the ranks of one allocation, as `launch: per_slot` does."""
    (folder / "checkpoints").mkdir(exist_ok=True)
    base = {k: v for k, v in os.environ.items() if not k.startswith("TROUPE_")}
    base.update(TROUPE_HARNESS=agent.endpoint, TROUPE_TASK_TOKEN=TOKEN, TROUPE_ALLOCATION_ID=ALLOCATION,
                TROUPE_CHECKPOINT_DIR=str(folder / "checkpoints"), TROUPE_HPARAMS=json.dumps(hparams), MASTER_ADDR="127.0.0.1",
                TORCHELASTIC_RESTART_COUNT=str(os.getpid()), **env)
    return [subprocess.Popen([PROGRAM], cwd=folder, stderr=subprocess.PIPE, text=True,
                             env={**base, "RANK": str(r), "LOCAL_RANK": str(r), "WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks)})
            for r in range(ranks)]


def ends(started):
    texts = [p.communicate(timeout=180)[1] for p in started]
    return [p.returncode for p in started], "".join(texts)


def steps(agent, group):
    return [row[1] for _, row in sorted(agent.reports.items(), key=lambda item: item[0][2]) if row[0] == group]


@pytest.mark.parametrize("ranks", [1, 2])
def test_reports_validations_and_checkpoints_are_those_of_rank_0(agent, tmp_path, ranks):
    codes, text = ends(start(agent, tmp_path, {"lr": 0.1}, ranks))
    assert codes == [0] * ranks, text
    assert steps(agent, "training") == list(range(1, 201)) and steps(agent, "validation") == [50, 100, 150, 200]
    assert {rank for _, rank, _ in agent.reports} == {0}
    assert {frame[4] for frame in agent.kinds("hello")} == set(range(ranks))
    assert [c[1] for c in agent.checkpoints] == [70, 140, 200]
    for name, _, files, _ in agent.checkpoints:
        assert {path: (tmp_path / "checkpoints" / name / path).stat().st_size for path in files} == files
        assert set(files) == {"weights", "troupe-trial.json"}


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_searchers_stop_ends_all_ranks_at_one_step_with_a_checkpoint(agent, tmp_path, ranks):
    agent.decide = lambda seq, metrics: "pruned" if metrics["distance"] < 0.001 else None
    codes, text = ends(start(agent, tmp_path, {"lr": 0.1}, ranks))
    assert codes == [0] * ranks, text
    last = steps(agent, "validation")[-1]
    assert last in (100, 150) and agent.checkpoints[-1][1] == last
    assert steps(agent, "training")[-1] == last


def test_a_pause_saves_at_the_current_step_and_a_later_run_goes_on_from_there(agent, tmp_path):
    ranks = start(agent, tmp_path, {"lr": 0.002, "pause_us": 20000}, 2)
    agent.wait(lambda: len(agent.reports) > 20)
    agent.push_stop("pause")
    codes, text = ends(ranks)
    assert codes == [0, 0], text
    name, at = agent.checkpoints[-1][:2]
    assert steps(agent, "training") == list(range(1, at + 1)) and at < 200
    agent.stop_reason = None
    agent.reports.clear()
    codes, text = ends(start(agent, tmp_path, {"lr": 0.002}, 2, TROUPE_RESUME_CHECKPOINT=name))
    assert codes == [0, 0], text
    assert f"going on after step {at}" in text
    assert steps(agent, "training") == list(range(at + 1, 201))


def test_the_death_of_a_rank_ends_the_others_with_its_name(agent, tmp_path):
    codes, text = ends(start(agent, tmp_path, {"lr": 0.1, "die_at": 80}, 2))
    assert codes == [1, -6] and "rank 1 of 2 died" in text, (codes, text)
    assert [c[1] for c in agent.checkpoints] == [70]


def test_an_agent_that_comes_back_hears_every_report_once(agent, tmp_path):
    (rank,) = start(agent, tmp_path, {"lr": 0.1, "pause_us": 2000})
    agent.wait(lambda: len(agent.reports) > 30)
    agent.stop()
    agent.start()
    codes, text = ends([rank])
    assert codes == [0], text
    assert steps(agent, "training") == list(range(1, 201)) and len(agent.checkpoints) == 3


@pytest.mark.parametrize("how, text", [
    (lambda agent: setattr(agent, "error", ["version", "this agent speaks version 9"]), "this agent speaks version 9"),
    (lambda agent: setattr(agent, "refuse_checkpoint", "no space left"), "was refused: no space left"),
    (lambda agent: setattr(agent, "refuse", lambda seq, m: "a bad name" if "distance" in m else None), "was refused: a bad name"),
])
def test_a_refusal_ends_the_run_with_its_reason(agent, tmp_path, how, text):
    how(agent)
    codes, said = ends(start(agent, tmp_path, {"lr": 0.1}))
    assert codes == [1] and text in said, (codes, said)


def test_a_checkpoint_that_is_gone_is_named(agent, tmp_path):
    codes, text = ends(start(agent, tmp_path, {"lr": 0.1}, TROUPE_RESUME_CHECKPOINT="nowhere"))
    assert codes == [1] and "the checkpoint to resume from is not there" in text and "nowhere" in text


PHASES = ["starting", "ready", "training", "broken"]


def phases(agent, rank):
    """The phases that the worker of a rank has reported after its start, without repeats."""
    told = [PHASES[fields[0]] for r, kind, fields in agent.words if r == rank and kind == "status" and fields[0] > 0]
    return [p for i, p in enumerate(told) if i == 0 or told[i - 1] != p]


def test_a_worker_trains_as_far_as_it_is_told_and_says_where_it_is(agent, tmp_path):
    agent.lead = lambda rank, s: [["train_until", [120, False]]] if s[3] and s[4] < 120 else []
    (rank,) = start(agent, tmp_path, {"lr": 0.1})
    agent.wait(lambda: len(steps(agent, "training")) == 120)
    agent.wait(lambda: any(kind == "status" and f[2] == 120 for _, kind, f in agent.words))
    assert rank.poll() is None, "it waits for more"
    agent.lead = FakeAgent._lead_on
    codes, text = ends([rank])
    assert codes == [0], text
    assert steps(agent, "training") == list(range(1, 201))
    assert phases(agent, 0)[:2] == ["ready", "training"]


def test_orders_besides_the_schedule_are_followed_once_by_all_ranks(agent, tmp_path):
    # Both ranks hear each order many times. Only rank 1 hears the order to validate.
    agent.lead = lambda rank, s: FakeAgent._lead_on(rank, s) + [["checkpoint", [1]]] + ([["validate", [1]]] if rank == 1 else [])
    codes, text = ends(start(agent, tmp_path, {"lr": 0.1, "pause_us": 2000}, 2))
    assert codes == [0, 0], text
    assert len([x for x in steps(agent, "validation") if x not in (50, 100, 150, 200)]) <= 1
    assert len(steps(agent, "validation")) in (4, 5) and [c[1] for c in agent.checkpoints][-3:] == [70, 140, 200]


def test_an_order_to_stop_saves_at_one_step_and_ends_well(agent, tmp_path):
    agent.lead = lambda rank, s: FakeAgent._lead_on(rank, s) + ([["stop", ["preempted"]]] if s[2] > 20 else [])
    codes, text = ends(start(agent, tmp_path, {"lr": 0.002, "pause_us": 20000}, 2))
    assert codes == [0, 0], text
    at = agent.checkpoints[-1][1]
    assert 20 < at < 200 and steps(agent, "training") == list(range(1, at + 1))


def test_a_refused_worker_ends_before_it_trains_with_the_reason(agent, tmp_path):
    agent.refuse_worker = "it speaks version 1 of the worker protocol, the cluster version 7"
    codes, text = ends(start(agent, tmp_path, {"lr": 0.1}))
    assert codes == [1] and "the cluster version 7" in text, (codes, text)
    assert not agent.reports


def test_a_group_that_lost_a_member_goes_on_from_the_last_checkpoint_and_repeats_no_report(agent, tmp_path):
    def lead(rank, s):
        phase, generation, step, batches, until = s
        if PHASES[phase] == "broken" and generation == 0:
            return [["rebuild", [1, [0, 1]]]]  # the gang without rank 2
        return [["train_until", [batches, True]]] if until < batches else []

    agent.lead = lead
    codes, text = ends(start(agent, tmp_path, {"lr": 0.002, "die_at": 100}, 3))
    assert codes == [0, 0, -6], (codes, text)
    assert "rank 0 of 3 goes on as rank 0 of 2" in text or "rank 2 of 3 died" in text, text
    assert steps(agent, "training") == list(range(1, 201)), "each batch is told once"
    assert [c[1] for c in agent.checkpoints] == [70, 140, 200]
    assert [p for p in phases(agent, 1) if p != "ready"] == ["training", "broken", "training"]


def test_the_death_of_rank_0_gives_its_work_to_the_next(agent, tmp_path):
    def lead(rank, s):
        phase, generation, step, batches, until = s
        if PHASES[phase] == "broken" and generation == 0:
            return [["rebuild", [1, [1, 2]]]]
        return [["train_until", [batches, True]]] if until < batches else []

    agent.lead = lead
    ranks = start(agent, tmp_path, {"lr": 0.002, "pause_us": 20000}, 3)
    agent.wait(lambda: len(agent.checkpoints) == 1)
    ranks[0].kill()
    codes, text = ends(ranks)
    assert codes == [-9, 0, 0], (codes, text)
    told = sorted(row[1] for row in agent.reports.values() if row[0] == "training")
    assert len(set(told)) == len(told) and set(range(1, 201)) - set(told) <= {max(set(range(1, 201)) - set(told), default=0)}
    assert agent.checkpoints[-1][1] == 200
