"""What a configuration asks of a trial's sandbox, in a whole cluster: mounts, working directory, shared memory, account, hooks, and the
event files of its metrics. As root, and as an ordinary user where that differs."""

import json
import os
import pathlib
import shutil
import subprocess
import threading
import urllib.request

import pytest

from cluster_under_test import BINARY, wait_for
from test_stock_tasks import Stock, python_for

CONFIG = """
name: sandbox
entrypoint: {entrypoint}
hyperparameters: {{}}
searcher: {{name: single, metric: loss, max_length: 1}}
max_restarts: 0
{more}
"""


class Lab(Stock):
    def trial(self, entrypoint, files=None, **more):
        """Runs an experiment. Returns its final state and the log of its trial."""
        number = len(list((self.root / "jobs").iterdir()))
        job = self.root / "jobs" / str(number)
        job.mkdir()
        for name, text in (files or {"x": ""}).items():
            (job / name).write_text(text)
        config = self.root / f"job-{number}.yaml"
        config.write_text(CONFIG.format(entrypoint=json.dumps(entrypoint), more="\n".join(f"{key}: {json.dumps(value)}" for key, value in more.items())))
        id = self.json("experiment", "create", str(config), str(job))["id"]
        state = self.wait_end(id)
        self.newest = id
        return state, self.logs(self.trials(id)[0]["id"])

    def patch(self, path, body):
        request = self.request(path, json.dumps(body).encode())
        request.method = "PATCH"
        return json.load(urllib.request.urlopen(request, timeout=120))

    def run_as(self, uid, gid, user, group):
        users = self.call("/api/v1/users")[1]["users"]  # The command line submits as `determined`.
        self.patch(f"/api/v1/users/{next(u['id'] for u in users if u['username'] == 'determined')}", {"agentUserGroup": {"agentUid": uid, "agentGid": gid, "agentUser": user, "agentGroup": group}})


@pytest.fixture(params=[os.getuid(), 65534], ids=["self", "nobody"])
def lab(request):
    # not below pytest's folder, which other users cannot enter
    root = pathlib.Path(subprocess.run(["mktemp", "-d", "-p", "/var/tmp"], capture_output=True, text=True).stdout.strip())
    root.chmod(0o755)
    it = None
    try:
        it = Lab(root, python_for(request.param, root), request.param)
        it.up()
        yield it
    finally:
        if it:
            it.close()
        shutil.rmtree(root, ignore_errors=True)


ROOT_ONLY = pytest.mark.parametrize("lab", [os.getuid()], ids=["self"], indirect=True)


def test_mounts_and_shared_memory_are_the_trials_own(lab):
    host = lab.root / "host"
    host.mkdir()
    (host / "in").write_text("from the host\n")
    host.chmod(0o777)
    state, said = lab.trial("cat /data-of-the-lab/deep/in here/in; echo x >/data-of-the-lab/deep/out || echo read only; pwd; df -k /dev/shm | tail -1",
                            bind_mounts=[{"host_path": str(host), "container_path": "/data-of-the-lab/deep", "read_only": True},
                                         {"host_path": str(host), "container_path": "here"}], resources={"shm_size": "3m"})
    assert state == "COMPLETED" and said.count("from the host") == 2 and "read only" in said and " 3072 " in said, said
    assert not os.path.exists("/data-of-the-lab") and "/run/determined/workdir" in said


def test_a_mount_that_no_task_gets_is_refused_with_its_reason_in_the_log(lab):
    (lab.root / "link").symlink_to(lab.data)
    for host, reason in (("/no/such/folder", "cannot be mounted: No such file or directory"), ("/proc/1", "lies below /proc"), ("/sys/kernel", "lies below /sys"),
                         (str(lab.data / "agent"), "lies below " + str(lab.data)), (str(lab.root / "link"), "lies below " + str(lab.data))):
        state, said = lab.trial("echo it ran", bind_mounts=[{"host_path": host, "container_path": "/srv/x"}])
        assert state == "ERROR" and reason in said and "it ran" not in said, (host, said)


def test_a_propagation_that_does_not_exist_is_refused_at_once(lab):
    config = lab.root / "bad.yaml"
    config.write_text(CONFIG.format(entrypoint="./x", more="bind_mounts: [{host_path: /a, container_path: /b, propagation: wide}]"))
    done = lab.cli("experiment", "create", str(config), check=False)
    assert done.returncode != 0 and "bind_mounts[0].propagation: 'wide' is not private" in done.stderr, done.stderr


@ROOT_ONLY
def test_a_trial_runs_as_the_account_of_its_user_and_owns_what_it_makes(lab):
    if os.getuid() != 0:
        pytest.skip("the agent has to be root")
    lab.run_as(23456, 23457, "ada-of-the-lab", "the-lab")
    script = """
import os, troupe, pathlib, subprocess
print("I am", os.getuid(), os.getgid(), os.getgroups(), subprocess.getoutput("id -un; id -gn").split(), os.environ["HOME"], os.environ["USER"])
open("mine", "w").close(); open("/tmp/mine", "w").close(); open("/run/determined/mine", "w").close()
print("token", os.stat("/run/determined/info/cluster.json").st_uid)
troupe.log({"loss": 1.0}, step=1)
with troupe.checkpoint(1) as path:
    (path / "f").write_text("x")
troupe.validate({"loss": 0.5}, step=1)
"""
    python = python_for(65534, lab.root)
    lab.python_bin = python
    state, said = lab.trial(f"{python}/python3 job.py", {"job.py": script})
    assert state == "COMPLETED", said
    assert "I am 23456 23457 [] ['ada-of-the-lab', 'the-lab'] /run/determined/workdir ada-of-the-lab" in said and "token 23456" in said, said
    made = [p for p in lab.data.rglob("f") if p.read_text() == "x"]
    assert len(made) == 1 and made[0].stat().st_uid == 23456 and made[0].parent.stat().st_gid == 23457, made
    events = list(lab.data.rglob("*tfevents*"))
    assert len(events) == 1, events
    # The next trial runs under another account and finds no files of the first one.
    lab.run_as(0, 0, "root", "root")
    state, said = lab.trial("id -u; stat -c '%u %n' /run/determined /run/determined/* /tmp /tmp/*")
    assert state == "COMPLETED" and "23456" not in said, said


class OfItsOwnEtc(Lab):
    """A cluster whose processes see a copy of /etc in its place. The test may change the copy."""

    def up(self, slots=1):
        place = self.root / "etc"
        shutil.copytree("/etc", place, symlinks=True, ignore_dangling_symlinks=True)
        self.process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", f'mount --bind {place} /etc && exec "$@"', "-", BINARY, "up", "--data-dir", str(self.data), "--listen", "127.0.0.1:0",
             "--slots", str(slots)], env=self.env, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_for(self.answers)


def test_an_account_outlives_a_new_account_of_the_host(tmp_path):
    if os.getuid() != 0:
        pytest.skip("the agent has to be root")
    # not below pytest's folder, which other users cannot enter
    root = pathlib.Path(subprocess.run(["mktemp", "-d", "-p", "/var/tmp"], capture_output=True, text=True).stdout.strip())
    root.chmod(0o755)
    lab = OfItsOwnEtc(root, python_for(os.getuid(), root), os.getuid())
    try:
        lab.up()
        lab.run_as(23456, 23457, "ada-of-the-lab", "the-lab")
        gate = root / "gate"
        gate.mkdir()
        gate.chmod(0o777)

        def replaced():
            wait_for((gate / "ready").exists, 30)
            for name in ("passwd", "group"):  # as useradd does
                with open(root / "etc" / "new", "w") as new:
                    new.write((root / "etc" / name).read_text() + ("munge:x:777:777::/:/bin/sh\n" if name == "passwd" else "munge:x:777:\n"))
                os.rename(root / "etc" / "new", root / "etc" / name)
            (gate / "go").touch()

        faults = []

        def replaced_or_said():
            try:
                replaced()
            except Exception as why:
                faults.append(why)
                (gate / "go").touch()

        changes = threading.Thread(target=replaced_or_said)
        changes.start()
        state, said = lab.trial(f"id -un; id -gn; touch {gate}/ready; until [ -e {gate}/go ]; do sleep 0.05; done; for i in $(seq 200); do id -un && id -gn && break; sleep 0.05; done; echo now $(id -un) $(id -gn)"
                                "; ls -d /run/determined/etc || echo the lists are not the account\\'s; ls -ln /etc/passwd", bind_mounts=[{"host_path": str(gate), "container_path": "/place-of-the-lab"}])
        changes.join()
        assert not faults, faults
        assert state == "COMPLETED" and "now ada-of-the-lab the-lab" in said, said
        assert "the lists are not the account's" in said and "-rw-r--r-- 1 0 0 " in said, said
    finally:
        lab.close()
        shutil.rmtree(root, ignore_errors=True)


@pytest.mark.parametrize("lab", [65534], ids=["nobody"], indirect=True)
def test_an_agent_that_is_not_root_says_why_it_cannot_become_another_account(lab):
    lab.run_as(23456, 23457, "ada", "lab")
    state, said = lab.trial("echo it ran")
    assert state == "ERROR" and "it ran" not in said
    assert "it is to run as ada (uid 23456, gid 23457), and this agent runs as nobody (uid 65534), which cannot become another account: run the agent as root" in said, said
    lab.run_as(65534, 65534, "nobody", "nogroup")
    state, said = lab.trial("id -u")
    assert state == "COMPLETED" and "65534" in said, said


@ROOT_ONLY
def test_hook_and_working_directory_of_the_pool(lab):
    place = lab.root / "work" / "determined"
    place.mkdir(parents=True)
    file = lab.root / "lab.yaml"
    file.write_text(f"troupe: 1\npools:\n  default:\n    startup_hook: |\n      export FROM_POOL=first\n      echo hook of the pool in $PWD\n    work_dir: {lab.root}/work/$DET_USER\n")
    lab.cli("apply", "--yes", str(file))
    hook = "echo hook of the files after $FROM_POOL; export FROM_FILES=second"
    state, said = lab.trial("echo then $FROM_POOL $FROM_FILES in $PWD; ls", {"startup-hook.sh": hook, "data.txt": "1"})
    assert state == "COMPLETED", said
    assert f"hook of the pool in {place}" in said and "hook of the files after first" in said and f"then first second in {place}" in said, said
    assert "data.txt" in said and (place / "data.txt").exists()
    state, said = lab.trial("echo it ran", {"startup-hook.sh": "false"})
    assert state == "ERROR" and "it ran" not in said, said


def test_defaults_of_all_tasks_of_cluster_and_pool(lab):
    file = lab.root / "tasks.yaml"
    file.write_text(
        "troupe: 1\ncluster:\n  task_container_defaults:\n    environment_variables: [SAID_BY=cluster, ALSO=cluster]\n"
        "    image: determinedai/x\n    startup_hook: export HOOK=ran\n"
        "pools:\n  default:\n    task_container_defaults: {environment_variables: [SAID_BY=pool], preemption_timeout: 70}\n")
    said = lab.cli("apply", "--yes", str(file))
    state, log = lab.trial("echo $SAID_BY and $ALSO, hook $HOOK")
    assert state == "COMPLETED" and "pool and cluster, hook ran" in log, (said, log)
    config = lab.json("experiment", "describe", str(lab.newest))["config"]
    assert config["preemption_timeout"] == 70, config
    assert config["environment"]["environment_variables"]["cpu"] == ["SAID_BY=pool", "ALSO=cluster"], config


NATIVE = """
import os, time, troupe
root = os.environ["JOB_DIR"]
for step in range(1, 21):
    troupe.log({"loss": 1 / step, "deep": {"x": step}, "word": "none"}, step=step)
troupe.validate({"loss": 0.5}, step=20)
open(root + "/there", "w").close()
while not os.path.exists(root + "/gate"):
    time.sleep(0.05)
"""


def test_metrics_of_the_troupe_package_are_event_files_while_they_come(lab):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (lab.root / "jobs" / "0").mkdir()
    (lab.root / "jobs" / "0" / "job.py").write_text(NATIVE)
    config = lab.root / "native.yaml"
    config.write_text(CONFIG.format(entrypoint="python3 job.py", more=f"environment: {{environment_variables: ['JOB_DIR={lab.root}']}}"))
    if lab.user != os.getuid():
        lab.root.chmod(0o777)
    id = lab.json("experiment", "create", str(config), str(lab.root / "jobs" / "0"))["id"]
    wait_for(lambda: (lab.root / "there").exists(), 60, what=lab.everything_said)
    trial = lab.trials(id)[0]["id"]
    folder = wait_for(lambda: [p for p in lab.data.rglob(f"tensorboard/experiment/{id}/trial/{trial}")], 30)[0]

    def scalars():
        read = EventAccumulator(str(folder))
        read.Reload()
        return {tag: [(point.step, point.value) for point in read.Scalars(tag)] for tag in read.Tags()["scalars"]}

    wait_for(lambda: [len((now := scalars()).get(f"Determined/{tag}", [])) for tag in ("loss", "deep/x", "val_loss")] == [20, 20, 1], 30, what=scalars)
    got = scalars()
    assert set(got) == {"Determined/loss", "Determined/deep/x", "Determined/val_loss"}, got
    assert got["Determined/deep/x"] == [(n, float(n)) for n in range(1, 21)] and got["Determined/val_loss"] == [(20, 0.5)]
    assert abs(got["Determined/loss"][2][1] - 1 / 3) < 1e-6
    (lab.root / "gate").touch()
    assert lab.wait_end(id) == "COMPLETED"
