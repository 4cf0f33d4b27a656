"""A script cannot tell whether its process was forked from a warmed zygote, and runs without a zygote too."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import pytest

from cluster_under_test import Cluster, wait_for
from test_processes import Processes

HERE = pathlib.Path(__file__).parent
CONFIG = """
name: facts
entrypoint: {entrypoint}
hyperparameters: {{x: 1}}
searcher: {{name: random, metric: loss, max_trials: {trials}, max_concurrent_trials: {trials}}}
max_restarts: 0
environment: {{environment_variables: ["FACTS_DIR={root}"]}}
{more}
"""


VENV_SCRIPT = """
import os, pathlib, sys
import only_here
print("prefix", sys.prefix, only_here.where)
try:
    pathlib.Path(only_here.where).with_name("new").write_text("x")
except OSError as why:
    print("refused", why)
if not set(os.listdir("{root}")) - {{"real", "link"}} and not os.path.exists("{root}/real/other"):
    print("nothing else of /tmp")
"""


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path) as one:
        one.up(slots=1)
        yield one


def submit(cluster, script, arguments="", trials=1, more="", config=CONFIG):
    job = cluster.root / "job"
    (job / "sub").mkdir(parents=True, exist_ok=True)
    (job / "sub" / "train.py").write_text(script)
    file = cluster.root / "job.yaml"
    entrypoint = arguments if arguments.startswith("[") else f"python3 sub/train.py {arguments}"
    file.write_text(config.format(entrypoint=entrypoint, root=cluster.root, trials=trials, more=more))
    return cluster.json("experiment", "create", str(file), str(job))["id"]


def ended(cluster, experiment):
    """Waits for the end of the experiment. Returns its state and its trials."""
    return cluster.wait_end(experiment, 300), cluster.trials(experiment)


def logs(cluster, experiment):
    return "".join(cluster.cli("trial", "logs", str(row["id"])).stdout for row in cluster.trials(experiment))


def facts_of(cluster, experiment):
    return [json.loads((cluster.root / f"{row['id']}.json").read_text()) for row in cluster.trials(experiment)]


def zygotes(cluster):
    found = []
    for entry in os.listdir("/proc"):
        try:
            words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"troupe-zygote" and str(cluster.data).encode() in words[2]:
            found.append(int(entry))
    return found


def test_a_script_cannot_tell(cluster):
    script = (HERE / "facts.py").read_text()
    seen = {}
    for arguments in ("--lr=0.1 'two words'", '["python3", "./sub/train.py", "--exit", "7"]'):
        for more in ("", "runtime: {zygote: false}"):
            experiment = submit(cluster, script, arguments, more=more)
            state, rows = ended(cluster, experiment)
            assert state == ("ERROR" if "7" in arguments else "COMPLETED"), logs(cluster, experiment)
            (seen[more],) = facts_of(cluster, experiment)
            trial = rows[0]["id"]
            assert (cluster.root / f"late-{trial}").read_text() == "late"
            assert (cluster.root / f"ended-{trial}").exists()
            assert "no newline at the end" in logs(cluster, experiment)
        warm, cold = seen[""], seen["runtime: {zygote: false}"]
        assert (warm["forked"], cold["forked"]) == (True, False), logs(cluster, experiment - 1)
        assert cold["facts"]["threads at the first line"] == 1
        assert len(cold["facts"]) > 60
        different = {name: (warm["facts"][name], fact) for name, fact in cold["facts"].items() if warm["facts"][name] != fact}
        assert not different, json.dumps(different, indent=1)
        for name, value in cold["drawn"].items():
            assert warm["drawn"][name] != value


def test_each_fork_draws_anew(cluster):
    experiment = submit(cluster, (HERE / "facts.py").read_text(), trials=3)
    assert ended(cluster, experiment)[0] == "COMPLETED", logs(cluster, experiment)
    every = facts_of(cluster, experiment)
    assert all(one["forked"] for one in every)
    for name in every[0]["drawn"]:
        assert len({str(one["drawn"][name]) for one in every}) == 3, name


SLEEPER = """
import os, time, troupe
troupe.params(x=1)
with open(os.environ["FACTS_DIR"] + "/began-" + os.environ["DET_TRIAL_ID"], "w") as file:
    import gc
    file.write(str(gc.get_freeze_count() > 0))
while not os.path.exists(os.environ["FACTS_DIR"] + "/go"):
    time.sleep(0.01)
troupe.validate({"loss": 1.0, "epoch": 1}, step=1)
"""


def began(cluster, experiment):
    """Waits until all trials run. Returns for each whether it was forked."""
    def look():
        found = [(cluster.root / f"began-{row['id']}") for row in cluster.trials(experiment)]
        return found and all(one.exists() and one.read_text() for one in found) and [one.read_text() == "True" for one in found]
    return wait_for(look, 120, what=lambda: logs(cluster, experiment))


def test_a_trial_outlives_its_zygote(cluster):
    experiment = submit(cluster, SLEEPER)
    assert began(cluster, experiment) == [True]
    (zygote,) = zygotes(cluster)
    os.kill(zygote, signal.SIGKILL)
    wait_for(lambda: not zygotes(cluster), 10)
    (cluster.root / "go").touch()
    assert ended(cluster, experiment)[0] == "COMPLETED"


def test_a_zygote_that_hangs_costs_a_cold_start(cluster):
    first = submit(cluster, SLEEPER)
    assert began(cluster, first) == [True]
    (zygote,) = zygotes(cluster)
    os.kill(zygote, signal.SIGSTOP)
    (cluster.root / "go").touch()
    second = submit(cluster, SLEEPER)
    assert began(cluster, second) == [False]
    for experiment in (first, second):
        assert ended(cluster, experiment)[0] == "COMPLETED"
    assert "started without the zygote" in logs(cluster, second)


def test_nothing_of_a_zygote_outlives_its_agent(cluster):
    experiment = submit(cluster, SLEEPER)
    began(cluster, experiment)
    assert len(zygotes(cluster)) == 1
    os.kill(cluster.process.pid, signal.SIGKILL)
    wait_for(lambda: not zygotes(cluster), 10)
    cluster.process.wait()
    cluster.up(slots=1)
    (cluster.root / "go").touch()
    assert ended(cluster, experiment)[0] == "COMPLETED"
    assert [row["restarts"] for row in cluster.trials(experiment)] == [0]


@pytest.mark.parametrize("import_of, says", [
    ("broken_one", "importing broken_one: RuntimeError: not today"),
    ("thread_one", "importing thread_one starts threads"),
    ("dying_one", "started without the zygote"),
])
def test_a_failed_warm_up_turns_it_off(cluster, import_of, says):
    place = cluster.root / "site-packages"
    place.mkdir()
    (place / "broken_one.py").write_text("import sys\nif 'train' not in sys.argv[0]: raise RuntimeError('not today')\n")
    (place / "thread_one.py").write_text("import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n")
    (place / "dying_one.py").write_text("import os, sys\nif 'train' not in sys.argv[0]: os.abort()\n")
    (cluster.root / "go").touch()
    more = f"environment: {{environment_variables: [\"FACTS_DIR={cluster.root}\", \"PYTHONPATH={place}\"]}}"
    config = CONFIG.replace('environment: {{environment_variables: ["FACTS_DIR={root}"]}}', "")
    for _ in range(2):
        experiment = submit(cluster, f"import {import_of}\n" + SLEEPER, more=more, config=config)
        assert ended(cluster, experiment)[0] == "COMPLETED", logs(cluster, experiment)
        assert began(cluster, experiment) == [False]
        assert says in logs(cluster, experiment)


def test_a_changed_module_is_loaded_anew(cluster):
    place = cluster.root / "site-packages"
    place.mkdir()
    config = CONFIG.replace('environment: {{environment_variables: ["FACTS_DIR={root}"]}}', "")
    more = f"environment: {{environment_variables: [\"FACTS_DIR={cluster.root}\", \"PYTHONPATH={place}\"]}}"
    (cluster.root / "go").touch()
    for version in ("one", "three"):
        (place / "changing.py").write_text(f"VERSION = '{version}'\n")
        experiment = submit(cluster, "import changing\nprint('version', changing.VERSION)\n" + SLEEPER, more=more, config=config)
        assert ended(cluster, experiment)[0] == "COMPLETED", logs(cluster, experiment)
        assert f"version {version}" in logs(cluster, experiment)


def test_what_the_script_sets_or_hides_is_not_warm(cluster):
    place = cluster.root / "site-packages"
    place.mkdir()
    config = CONFIG.replace('environment: {{environment_variables: ["FACTS_DIR={root}"]}}', "")
    more = f"environment: {{environment_variables: [\"FACTS_DIR={cluster.root}\", \"PYTHONPATH={place}\"]}}"
    (cluster.root / "go").touch()
    (place / "reads.py").write_text("import os\nSEEN = os.environ.get('WANTED')\n")
    (place / "hidden.py").write_text("WHOSE = 'installed'\n")
    script = "import os\nos.environ['WANTED'] = 'yes'\nimport reads\nprint('seen', reads.SEEN)\n" + SLEEPER
    experiment = submit(cluster, script, more=more, config=config)
    assert ended(cluster, experiment)[0] == "COMPLETED"
    assert "seen yes" in logs(cluster, experiment)
    (cluster.root / "job" / "sub" / "hidden.py").write_text("WHOSE = 'mine'\n")
    experiment = submit(cluster, "import hidden\nprint('whose', hidden.WHOSE)\n" + SLEEPER, more=more, config=config)
    assert ended(cluster, experiment)[0] == "COMPLETED"
    assert "whose mine" in logs(cluster, experiment)


RANKS = """
import gc, json, os, sys
import troupe
import troupe.dist as dist
troupe.params(x=1)
everyone = dist.all_gather([os.environ["RANK"], os.environ["LOCAL_RANK"], gc.get_freeze_count() > 0, os.getppid(), sys.argv[1:], os.getpid()])
if dist.rank() == 0:
    with open(os.environ["FACTS_DIR"] + "/ranks", "w") as file:
        json.dump(everyone, file)
print("rank", dist.rank(), "was here")
troupe.validate({"loss": 1.0}, step=1)
sys.exit(0 if dist.rank() == 0 else int(sys.argv[1]))
"""


@pytest.mark.parametrize("code, state", [("0", "COMPLETED"), ("3", "ERROR")])
def test_every_rank_of_a_trial_is_forked(tmp_path, code, state):
    cluster = Cluster(tmp_path)
    try:
        cluster.up(slots=3)
        experiment = submit(cluster, RANKS, code, more="resources: {slots_per_trial: 3}\nlaunch: per_slot")
        assert ended(cluster, experiment)[0] == state, logs(cluster, experiment)
        ranks = json.loads((cluster.root / "ranks").read_text())
        assert [one[:3] for one in ranks] == [[str(r), str(r), True] for r in range(3)], logs(cluster, experiment)
        assert all(one[3] == 1 and one[4] == [code] for one in ranks)
        assert len({one[5] for one in ranks}) == 3
        said = logs(cluster, experiment)
        assert all(f"rank {r} was here" in said for r in range(3)), said
    finally:
        cluster.close()


GANG = """
import gc, json, os, pathlib, sys
import troupe
descriptors, loaded = sorted(os.listdir("/proc/self/fd")), "http.client" in sys.modules
def meet():
    import torch
    torch.distributed.init_process_group("gloo")
    total = torch.ones(1)
    torch.distributed.all_reduce(total)
    torch.distributed.destroy_process_group()
    return int(os.environ["RANK"]), float(total)
troupe.params(x=1)
gang = json.load(open("/run/determined/info/rendezvous.json"))
rank, total = meet() if os.environ["TROUPE_LAUNCH_WANTED"] == "per_slot" else (gang["container_rank"], 0.0)
shown = pathlib.Path("/proc/self/environ").read_bytes().decode().split("\\0")
seen = {"forked": gc.get_freeze_count() > 0, "total": total, "loaded": loaded, "descriptors": descriptors, "argv": sys.argv, "rendezvous": gang,
        "files": sorted(os.listdir("/run/determined/info")), "gang": [os.environ.get("MASTER_ADDR"), os.environ.get("TROUPE_GANG")],
        "shown": sorted(pair for pair in shown if pair.startswith(("MASTER_ADDR=", "TROUPE_GANG="))),
        "names": sorted(os.environ)}
with open(f"{os.environ['FACTS_DIR']}/gang-{os.environ['DET_TRIAL_ID']}-{rank}", "w") as file:
    json.dump(seen, file)
troupe.validate({"loss": 1.0}, step=1)
"""


@pytest.mark.parametrize("launch", ["per_slot", "per_agent"])
def test_ranks_on_several_agents_are_forked(tmp_path, launch):
    cluster = Processes(tmp_path)
    try:
        cluster.master()
        for name in ("a1", "a2"):
            cluster.agent(name)
        wait_for(lambda: cluster.alive_agents() == 2, 30)
        seen = {}
        config = CONFIG.replace('"FACTS_DIR={root}"', f'"FACTS_DIR={{root}}", "TROUPE_LAUNCH_WANTED={launch}"')
        for more in ("", "runtime: {zygote: false}"):
            experiment = submit(cluster, GANG, "now", more=f"resources: {{slots_per_trial: 2}}\nlaunch: {launch}\n{more}", config=config)
            assert ended(cluster, experiment)[0] == "COMPLETED", logs(cluster, experiment)
            trial = cluster.trials(experiment)[0]["id"]
            seen[more] = [json.loads((cluster.root / f"gang-{trial}-{rank}").read_text()) for rank in range(2)]
        warm, cold = seen.values()
        assert not warm[0]["loaded"], "what the rendezvous needed is not there"
        assert [one.pop("forked") for one in warm + cold] == [True, True, False, False], logs(cluster, experiment)
        assert warm == cold
        assert warm[0]["total"] == (2.0 if launch == "per_slot" else 0.0)
        assert [one["rendezvous"]["container_rank"] for one in warm] == [0, 1]
        assert warm[0]["gang"] == (["127.0.0.1", "127.0.0.1=1 127.0.0.1=1"] if launch == "per_slot" else [None, None])
    finally:
        cluster.close()


def test_what_a_trial_imported_late_is_warm_for_the_next_one(cluster):
    place = cluster.root / "site-packages"
    place.mkdir()
    config = CONFIG.replace('environment: {{environment_variables: ["FACTS_DIR={root}"]}}', "")
    more = f"environment: {{environment_variables: [\"FACTS_DIR={cluster.root}\", \"PYTHONPATH={place}\"]}}"
    (cluster.root / "go").touch()
    (place / "late_one.py").write_text("X = 1\n")
    (place / "set_one.py").write_text("import os\nSEEN = os.environ.get('WANTED')\n")
    (place / "own_one.py").write_text("import os\nos.environ.setdefault('OWN_ONE', 'set while it is imported')\n")
    late = "import sys\nprint('warm', 'late_one' in sys.modules)\ndef f():\n    import late_one\nf()\n" + SLEEPER
    sets = "import os, sys\nprint('warm', 'set_one' in sys.modules)\ndef f():\n    os.environ['WANTED'] = 'yes'\n    import set_one\n    print('seen', set_one.SEEN)\nf()\n" + SLEEPER
    own = late.replace("late_one", "own_one")
    for script, says in ((late, "warm False"), (late, "warm True"), (sets, "warm False"), (sets, "warm False"),
                         (own, "warm False"), (own, "warm True")):
        experiment = submit(cluster, script, more=more, config=config)
        assert ended(cluster, experiment)[0] == "COMPLETED", logs(cluster, experiment)
        assert began(cluster, experiment) == [True], logs(cluster, experiment)
        assert says in logs(cluster, experiment), logs(cluster, experiment)
        assert script is not sets or "seen yes" in logs(cluster, experiment)


@pytest.mark.parametrize("way", ["named", "through a link"])
def test_a_virtual_environment_below_tmp_is_there_for_tasks_and_cannot_be_written_to(tmp_path, way):
    """A task has a /tmp of its own, and still finds the interpreter that the platform gives it, with its packages and the packages that a
    .pth file names."""
    with tempfile.TemporaryDirectory(prefix="troupe-venv-", dir="/tmp") as root:
        environment = pathlib.Path(root) / "real" / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        packages = next(environment.glob("lib/python3*/site-packages"))
        (packages / "only_here.py").write_text("where = __file__\n")
        # The packages that the platform's package needs are in the interpreter of this test.
        (packages / "theirs.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")) + "\n")
        (environment.parent / "other").write_text("not of the platform\n")
        (pathlib.Path(root) / "link").symlink_to("real")
        shown = environment if way == "named" else pathlib.Path(root) / "link" / "venv"
        cluster = Cluster(tmp_path)
        cluster.env["TROUPE_PYTHON_BIN"] = str(shown / "bin")
        try:
            cluster.up(slots=1)
            for more in ("", "runtime: {zygote: false}"):
                experiment = submit(cluster, VENV_SCRIPT.format(root=root), more=more)
                state, _ = ended(cluster, experiment)
                assert state == "COMPLETED", logs(cluster, experiment)
                said = logs(cluster, experiment)
                assert f"prefix {shown}" in said and "only_here.py" in said, said
                assert "refused" in said and "nothing else of /tmp" in said, said
                assert "started without the zygote" not in said
        finally:
            cluster.close()
