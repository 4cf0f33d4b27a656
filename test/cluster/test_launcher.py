"""What the configuration file starts and changes: up, apply, check, explain, config show, install-service, SIGHUP, and nodes over ssh."""

import getpass
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import stat
import subprocess

import pytest

from cluster_under_test import BINARY, Cluster, free_port, wait_for

SOURCE = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "examples"

JOB = """
name: tiny
entrypoint: python3 job.py
hyperparameters: {x: {type: double, minval: 0, maxval: 1}}
searcher: {name: random, metric: loss, max_trials: 1}
"""
SCRIPT = """import os, troupe
open({root!r} + "/ran-on", "a").write(os.environ["DET_AGENT_ID"] + "\\n")
troupe.validate({{"loss": troupe.params(x=0.5).x}}, step=1)
"""


class Launched(Cluster):
    """A cluster that a file describes. Its agents are processes of their own, with logs of their own."""

    def __init__(self, root):
        super().__init__(root)
        self.env.pop("NOTIFY_SOCKET", None)
        self.file = self.root / "lab.yaml"

    def write(self, text, name="lab.yaml"):
        path = self.root / name
        path.write_text(f"troupe: 1\ncluster: {{listen: '127.0.0.1:0'}}\n{text}")
        return str(path)

    def up_file(self, path=None, *flags, **env):
        self.process = subprocess.Popen([BINARY, "up", str(path or self.file), "--data-dir", str(self.data), *flags],
                                        env={**self.env, **env}, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_for(self.answers, 60)

    def said(self):
        return (self.root / "up.log").read_text()

    def agents(self):
        got = self.json("agent", "list")
        return {a["id"]: a for a in (got if isinstance(got, list) else got["agents"]) if a["state"] == "alive"}

    def wait_agents(self, *names, seconds=60):
        wait_for(lambda: set(self.agents()) == set(names), seconds, 0.2, what=lambda: (self.agents().keys(), self.said()[-2000:]))

    def show(self):
        return json.loads(self.cli("config", "show", "-o", "json").stdout)

    def apply(self, text=None, *flags, check=True, name="lab.yaml"):
        if text is not None:
            self.write(text, name)
        return self.cli("apply", str(self.root / name), *flags, check=check)

    def job(self):
        folder = self.root / "tiny"
        folder.mkdir(exist_ok=True)
        (folder / "job.py").write_text(SCRIPT.format(root=str(self.root)))
        (self.root / "tiny.yaml").write_text(JOB)
        return "experiments: [{file: tiny.yaml, context: tiny}]\n"


@pytest.fixture
def lab(tmp_path):
    one = Launched(tmp_path)
    yield one
    one.down()
    one.close()


def plan_lines(done):
    return [re.sub(r" +", " ", line.strip()) for line in done.stdout.splitlines() if line[2:3] in "+-~!=" and line[:2] == "  "]


# ---- check and explain, without a cluster


def test_check_says_every_fault_with_its_place(lab):
    path = lab.write("pools:\n  gpu: {scheduler: priorty}\n  gpu: {}\nnodes: [{name: a, pool: cpu}]\n")
    done = lab.cli("check", path, check=False)
    assert done.returncode == 2
    assert f"{path}:4:20: pools.gpu.scheduler" in done.stderr and "                   ^" in done.stderr, done.stderr
    assert f"{path}:5:3" in done.stderr and f"{path}:6:25" in done.stderr, done.stderr
    rows = json.loads(lab.cli("check", path, "-o", "json", check=False).stdout)
    assert [(r["line"], r["column"]) for r in rows] == [(4, 20), (5, 3), (6, 25)], rows
    assert all(r["file"] == path and r["message"] for r in rows)


def test_check_resolves_ranges_and_names_places(lab):
    (lab.root / "common.yaml").write_text("pools:\n  gpu: {}\n")
    path = lab.write("include: [common.yaml]\nnodes:\n  - {hosts: 'gpu[01-03]', manual: true, pool: gpu}\n")
    out = lab.cli("check", path, "--resolved").stdout
    assert "gpu01" in out and "gpu03" in out and f"# {path}:5" in out and "common.yaml:2" in out, out
    assert lab.cli("check", path).stdout.startswith(f"{path} ok (")


def test_check_connect_looks_at_this_host(lab):
    taken = socket.create_server(("127.0.0.1", free_port()))
    port = taken.getsockname()[1]
    path = lab.root / "bad.yaml"
    path.write_text(f"troupe: 1\ncluster: {{listen: '127.0.0.1:{port}', agent_listen: '127.0.0.1:{free_port()}', data_dir: {lab.data}}}\n"
                    f"storage: {{default: {{type: directory, path: {lab.root}/bad.yaml}}}}\nnodes: [{{name: a, slots: 1}}]\n")
    assert lab.cli("check", str(path)).returncode == 0, "the file itself is good"
    done = lab.cli("check", str(path), "--connect", check=False)
    assert done.returncode == 1, done
    rows = [line.split(":")[0].split() for line in done.stdout.splitlines() if line.startswith("  ok") or line.startswith("  error")]
    assert rows == [["error", "cluster.listen"], ["ok", "cluster.agent_listen"], ["ok", "cluster.data_dir"], ["error", "storage.default.path"],
                    ["ok", "nodes.a"]], done.stdout
    assert f"127.0.0.1:{port}: Address already in use" in done.stdout and "hint: choose another port" in done.stdout
    assert not [x for x in os.listdir(lab.root) if x.startswith(".troupe-check")], "nothing is left behind"
    taken.close()
    path.write_text(path.read_text().replace("bad.yaml}", "checkpoints}"))
    done = lab.cli("check", str(path), "--connect", "-o", "json")
    rows = json.loads(done.stdout)
    assert {(row["severity"], row["file"], row["line"]) for row in rows} == {("ok", str(path), 0)}, done.stdout
    lab.up_file(path)
    assert "held by the running cluster" in lab.cli("check", str(path), "--connect").stdout


def test_check_connect_looks_at_hosts_over_ssh(lab, sshd):
    path = lab.write(ssh_node(lab, sshd))
    assert "nodes.far: 127.0.0.1 answers over ssh" in lab.cli("check", path, "--connect").stdout
    (sshd.root / "known").write_text("")
    done = lab.cli("check", path, "--connect", check=False)
    assert done.returncode == 1 and "Host key verification failed" in done.stdout and "hint: try it by hand: 'ssh'" in done.stdout, done


def test_check_warns_of_keys_without_effect(lab):
    done = lab.cli("check", lab.write("pools: {a: {scheduler: fifo, preemption: true}}\n"))
    assert done.stderr.count("has no effect") == 1 and "^" in done.stderr, done.stderr


def test_bad_files_are_refused_with_a_reason(lab):
    huge = lab.root / "huge.yaml"
    huge.write_text("troupe: 1\n" + "# x\n" * (10 << 18))
    locked = lab.root / "locked.yaml"
    locked.write_text("troupe: 1\n")
    locked.chmod(0)
    bomb = lab.root / "bomb.yaml"
    bomb.write_text("troupe: 1\ndefaults:\n  data:\n    a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"    a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)))
    (lab.root / "one.yaml").write_text("troupe: 1\ninclude: [two.yaml]\n")
    (lab.root / "two.yaml").write_text("include: [one.yaml]\n")
    for path, word in [(huge, "MB"), (bomb, "500000"), (lab.root / "one.yaml", "includes itself"), (lab.root / "none.yaml", "No such file"),
                       (lab.root, "folder")]:
        for verb in (["check"], ["up", "--data-dir", str(lab.data)], ["apply"]):
            done = lab.cli(*verb[:1], str(path), *verb[1:], check=False)
            assert done.returncode == 2 and word in done.stderr, (verb, path, done.returncode, done.stderr)
    if os.geteuid() != 0:
        assert "Permission denied" in lab.cli("check", str(locked), check=False).stderr
    assert not lab.data.exists()


def test_explain_knows_the_keys_of_the_file(lab):
    for key in ("storage.type", "users.tokens.name", "nodes.ssh.known_hosts", "defaults.max_restarts"):
        out = lab.cli("explain", key).stdout
        assert out.startswith(key) and "default:" in out, out
    done = lab.cli("explain", "pools.preemtion", check=False)
    assert done.returncode == 5 and "did you mean 'pools.preemption'" in done.stderr, (done.returncode, done.stderr)


# ---- up


def test_a_file_of_one_line_is_a_cluster(lab):
    lab.file.write_text("troupe: 1\n")
    lab.up_file(None, "--listen", "127.0.0.1:0", "--slots", "1")
    wait_for(lambda: lab.json("status")["slots"]["total"] == 1, 30)
    assert list(lab.show()["pools"]) == ["default"]


def test_up_starts_pools_nodes_users_and_experiments_once(lab):
    (lab.root / "ada.password").write_text("s3cret\n")
    lab.write("pools:\n  main: {default: true, defaults: {max_restarts: 2}}\n  other: {}\n"
              "nodes:\n  - {name: 'a[1-2]', slots: {cpu: 1}}\n  - {name: b, pool: other, slots: 1}\n"
              "users: [{name: ada, role: admin, password_file: ada.password, tokens: [{name: ci, expires: 1d}]}]\n"
              "defaults: {max_restarts: 4, description: from the file}\n" + lab.job())
    lab.up_file()
    lab.wait_agents("a1", "a2", "b")
    pools = {name: a["resourcePools"] for name, a in lab.agents().items()}
    assert pools == {"a1": ["main"], "a2": ["main"], "b": ["other"]}
    assert lab.wait_end(1) == "COMPLETED"
    config = lab.json("experiment", "describe", "1")["config"]
    assert config["max_restarts"] == 2 and config["description"] == "from the file", config
    # The users and tokens of the file work.
    as_ada = {**lab.env, "TROUPE_USER": "ada", "TROUPE_PASSWORD": "s3cret"}
    assert subprocess.run([BINARY, "status"], env=as_ada, capture_output=True).returncode == 0
    assert subprocess.run([BINARY, "status"], env={**as_ada, "TROUPE_PASSWORD": "no"}, capture_output=True).returncode == 4
    token = lab.data / "master" / "tokens" / "ada.ci"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert subprocess.run([BINARY, "status"], env={**lab.env, "TROUPE_TOKEN": token.read_text().strip()}, capture_output=True).returncode == 0
    shown = lab.cli("config", "show", "-o", "json").stdout + lab.said()
    assert "s3cret" not in shown and token.read_text().strip() not in shown
    # An experiment runs in the pool that it names.
    (lab.root / "there.yaml").write_text(JOB + "resources: {resource_pool: other}\n")
    there = lab.json("experiment", "create", str(lab.root / "there.yaml"), str(lab.root / "tiny"))["id"]
    assert lab.wait_end(there) == "COMPLETED"
    first, second = (lab.root / "ran-on").read_text().split()
    assert first in ("a1", "a2") and second == "b"
    bad = lab.root / "bad.yaml"
    bad.write_text(JOB + "resources: {resource_pool: nowhere}\n")
    done = lab.cli("experiment", "create", str(bad), str(lab.root / "tiny"), check=False)
    assert done.returncode == 2 and "no pool 'nowhere'" in done.stderr and "main" in done.stderr, done.stderr
    # A killed agent is started again, and a second `up` changes nothing.
    pid = next(pid for pid, words in lab.describe_tree() if b"\0a1\0" in words and b"agent\0" in words)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: "node a1: its agent was killed by signal 9" in lab.said(), 30)
    lab.wait_agents("a1", "a2", "b")
    lab.down()
    wait_for(lambda: not lab.tree(), 30, what=lab.describe_tree)
    lab.up_file()
    lab.wait_agents("a1", "a2", "b")
    assert len(lab.json("experiment", "list")) == 2


def test_runs_go_on_where_up_is_killed_and_started_again(lab):
    """The agents connect a moment after their master has started. The master may have heard of their tasks by then."""
    (lab.root / "waits").mkdir()
    (lab.root / "waits" / "job.py").write_text(f"""import os, time, troupe
open({str(lab.root)!r} + "/began", "a").write("x\\n")
while not os.path.exists({str(lab.root)!r} + "/go"):
    time.sleep(0.1)
troupe.validate({{"loss": 1.0}}, step=1)
""")
    (lab.root / "waits.yaml").write_text(JOB.replace("max_trials: 1", "max_trials: 3"))
    # The address is fixed, because the tasks connect to it again.
    lab.file.write_text(f"troupe: 1\ncluster: {{listen: '127.0.0.1:{free_port()}', leases: {{adopt: 1ms}}}}\nnodes:\n  - {{name: n1, slots: {{cpu: 2}}}}\n  - {{name: n2, slots: {{cpu: 1}}}}\n")
    lab.up_file()
    lab.wait_agents("n1", "n2")
    one = lab.json("experiment", "create", str(lab.root / "waits.yaml"), str(lab.root / "waits"))["id"]
    began = lambda: len((lab.root / "began").read_text().split()) if (lab.root / "began").exists() else 0
    wait_for(lambda: began() == 3, 60, what=began)
    for _ in range(3):
        lab.process.kill()
        lab.process.wait()
        lab.up_file()
        lab.wait_agents("n1", "n2")
    (lab.root / "go").touch()
    assert lab.wait_end(one) == "COMPLETED"
    assert began() == 3 and [trial["restarts"] for trial in lab.json("trial", "list", str(one))] == [0, 0, 0]


def test_up_in_the_background_takes_a_drained_node_as_there(lab):
    lab.write("nodes:\n  - {name: n1, slots: {cpu: 1}}\n  - {name: n2, slots: {cpu: 1}}\n")
    lab.up_file()
    lab.wait_agents("n1", "n2")
    lab.env.update(TROUPE_USER="admin", TROUPE_PASSWORD="")
    lab.cli("agent", "disable", "n1", "--drain")
    lab.cli("agent", "disable", "n2")
    lab.down()
    wait_for(lambda: not lab.tree(), 30, what=lab.describe_tree)
    done = lab.cli("up", "-d", str(lab.file), "--data-dir", str(lab.data))
    assert done.returncode == 0, done.stdout + done.stderr
    states = {agent["id"]: agent["state"] for agent in lab.json("agent", "list")}
    assert states == {"n1": "draining", "n2": "disabled"}, states
    lab.cli("down")
    wait_for(lambda: not lab.tree(), 30, what=lab.describe_tree)


def test_up_in_the_background_gives_its_link_to_a_terminal_and_not_to_its_log(lab):
    lab.write("nodes: [{name: a, slots: 1}]\n")
    ours, its = pty.openpty()
    up = subprocess.Popen([BINARY, "up", "-d", str(lab.file), "--data-dir", str(lab.data)], env=lab.env, stdout=its, stderr=its, stdin=subprocess.DEVNULL)
    os.close(its)
    said = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            said += os.read(ours, 4096)
        except OSError:
            break  # The other end is closed.
    os.close(ours)
    assert up.wait(60) == 0, said
    code = re.search(rb"web page: http://[^ ]*/ui/login\?next=/ui/#code=([0-9a-f]+)", said)
    assert code, said
    log = (lab.data / "up.log").read_text()
    assert "/ui/" in log and code[1].decode() not in log
    lab.env.update(TROUPE_USER="admin", TROUPE_PASSWORD="")
    lab.cli("down")
    wait_for(lambda: not lab.tree(), 30, what=lab.describe_tree)


def test_down_by_address_leaves_the_data_directory_free(lab):
    lab.write("nodes: [{name: a, slots: 1}]\n")
    lab.env.update(TROUPE_USER="admin", TROUPE_PASSWORD="")
    for _ in range(3):
        lab.cli("up", "-d", str(lab.file), "--data-dir", str(lab.data))
        held = dict(line.split(" ", 1) for line in (lab.data / "lock").read_text().splitlines() if " " in line)
        lab.env["TROUPE_MASTER"] = held["url"]
        lab.cli("down")
        del lab.env["TROUPE_MASTER"]
    wait_for(lambda: not lab.tree(), 30, what=lab.describe_tree)


def test_a_second_up_and_a_taken_port_are_refused(lab):
    lab.write("nodes: [{name: a, slots: 1}]\n")
    lab.up_file()
    lab.wait_agents("a")
    done = lab.cli("up", str(lab.file), "--data-dir", str(lab.data), check=False)
    assert done.returncode == 8 and "is in use" in done.stderr and str(lab.process.pid) in done.stderr, done.stderr
    assert f"`TROUPE_DATA_DIR={lab.data} troupe down`" in done.stderr, done.stderr
    port = lab.url().rsplit(":", 1)[1]
    done = lab.cli("up", str(lab.file), "--data-dir", str(lab.root / "other"), "--listen", f"127.0.0.1:{port}", check=False)
    assert done.returncode == 8 and port in done.stderr, (done.returncode, done.stderr)
    assert set(lab.agents()) == {"a"}


# ---- apply


def test_apply_shows_the_plan_and_does_it_once(lab):
    lab.write("pools: {main: {default: true}}\nnodes: [{name: a, slots: 1}]\n")
    lab.up_file()
    lab.wait_agents("a")
    wanted = "pools: {main: {default: true, preemption: true}, x: {}}\nnodes: [{name: a, slots: 1}, {name: b, slots: 1, pool: x}]\n"
    done = lab.apply(wanted, check=False)
    assert done.returncode == 2 and "--yes" in done.stderr, (done.returncode, done.stderr)
    assert plan_lines(done) == ["~ pools.main.preemption false -> true", "+ pools.x", "+ nodes.b 1 slots starts an agent here"], done.stdout
    assert list(lab.show()["pools"]) == ["main"]
    lab.apply(None, "--yes")
    lab.wait_agents("a", "b")
    assert lab.agents()["b"]["resourcePools"] == ["x"] and lab.show()["pools"]["main"]["preemption"] is True
    assert "no changes" in lab.apply(None, "--yes").stdout
    assert "no changes" in lab.apply(None).stdout
    # A kill -9 of everything loses nothing of what was applied.
    lab.kill_everything()
    lab.process = subprocess.Popen([BINARY, "up", "--data-dir", str(lab.data), "--listen", "127.0.0.1:0"], env=lab.env,
                                   stdout=lab.log, stderr=lab.log, start_new_session=True)
    wait_for(lab.answers, 60)
    lab.wait_agents("a", "b")
    assert lab.show()["pools"]["main"]["preemption"] is True
    # Nodes and pools that the file made and does not name any more are removed.
    done = lab.apply("pools: {main: {default: true}}\nnodes: [{name: a, slots: 1}]\n", "--yes")
    assert {"~ pools.main.preemption true -> false", "- pools.x"} <= set(plan_lines(done)), done.stdout
    lab.wait_agents("a")


def test_a_cluster_without_a_file_takes_one(lab):
    lab.up(slots=1)
    lab.write("pools: {main: {default: true}}\n" + lab.job())
    done = lab.apply(None, "--yes")
    assert plan_lines(done) == ["! cluster.listen none -> 127.0.0.1:0 needs a restart of the master", "+ pools.main", "- pools.default",
                                "+ experiments.tiny submitted"], done.stdout
    assert lab.wait_end(1) == "COMPLETED"
    (agent,) = lab.agents().values()
    assert agent["resourcePools"] == ["main"]


def test_a_start_without_a_file_goes_by_the_configuration_in_force(lab):
    lab.file.write_text("troupe: 1\ncluster: {listen: '127.0.0.1:0', name: lab, authz: rbac, strict_job_queue_control: true}\npools: {main: {default: true}}\n")
    lab.up_file(None, "--slots", "1")
    said = lambda: (lambda x: (x["rbacEnabled"], x["clusterName"], x["strictJobQueueControl"]))(lab.call("/api/v1/master")[1])
    assert said() == (True, "lab", True)
    lab.down()
    lab.process = subprocess.Popen([BINARY, "up", "--data-dir", str(lab.data), "--slots", "1"], env=lab.env, stdout=lab.log, stderr=lab.log, start_new_session=True)
    wait_for(lab.answers, 60)
    assert said() == (True, "lab", True)


def test_users_made_by_hand_stay_unless_pruned(lab):
    import urllib.request

    lab.write("users: [{name: ada}, {name: bob}]\n")
    lab.up_file(None, "--slots", "1")
    login = urllib.request.Request(lab.url() + "/api/v1/auth/login", json.dumps({"username": "admin", "password": ""}).encode(), method="POST")
    token = json.load(urllib.request.urlopen(login))["token"]
    make = urllib.request.Request(lab.url() + "/api/v1/users", json.dumps({"user": {"username": "hand", "active": True}, "password": ""}).encode(),
                                  {"Authorization": "Bearer " + token}, method="POST")
    urllib.request.urlopen(make)
    done = lab.apply("users: [{name: ada, role: admin}]\n", "--yes")
    lines = plan_lines(done)
    assert "~ users.ada.role user -> admin" in lines and any(line.startswith("- users.bob") for line in lines), lines
    assert any(line.startswith("= users.hand kept") for line in lines), lines
    can = lambda user: subprocess.run([BINARY, "status"], env={**lab.env, "TROUPE_USER": user}, capture_output=True).returncode == 0
    assert can("ada") and can("hand") and not can("bob")
    lab.apply(None, "--yes", "--prune")
    assert can("ada") and not can("hand") and can("admin")


def test_a_plan_is_done_exactly_or_not_at_all(lab):
    lab.write("pools: {main: {default: true}}\n")
    lab.up_file(None, "--slots", "1")
    plan = lab.root / "plan.json"
    done = lab.apply("pools: {main: {default: true}, x: {}}\n", "--plan", str(plan))
    assert plan_lines(done) == ["+ pools.x"] and stat.S_IMODE(plan.stat().st_mode) == 0o600
    lab.apply("pools: {main: {default: true}, y: {}}\n", "--yes", name="other.yaml")
    done = lab.cli("apply", str(plan), "--yes", check=False)
    assert done.returncode == 8 and "changed since" in done.stderr, (done.returncode, done.stderr)
    assert list(lab.show()["pools"]) == ["main", "y"]
    lab.apply(None, "--plan", str(plan))
    lab.cli("apply", str(plan), "--yes")
    assert list(lab.show()["pools"]) == ["main", "x"]


def test_a_bad_file_never_replaces_a_good_configuration(lab):
    lab.write("pools: {main: {default: true}}\n")
    lab.up_file(None, "--slots", "1")
    before = lab.show()
    assert lab.apply("pools: {main: {defalt: true}}\n", "--yes", check=False).returncode == 2
    lab.process.send_signal(signal.SIGHUP)
    wait_for(lambda: f"{lab.file}:3:16: pools.main.defalt" in lab.said() and "stays as it was" in lab.said(), 30, what=lab.said)
    assert lab.show() == before
    lab.write("pools: {main: {default: true}, fresh: {}}\n")
    lab.process.send_signal(signal.SIGHUP)
    wait_for(lambda: "fresh" in lab.show()["pools"], 30, what=lab.said)


def test_a_pool_with_experiments_stays(lab):
    lab.write("pools: {main: {default: true}, x: {}}\n")
    lab.up_file(None, "--slots", "1")
    lab.job()
    (lab.root / "there.yaml").write_text(JOB + "resources: {resource_pool: x}\n")  # The pool has no agent, so that the experiment waits.
    lab.cli("experiment", "create", str(lab.root / "there.yaml"), str(lab.root / "tiny"))
    done = lab.apply("pools: {main: {default: true}}\n", "--yes", check=False)
    assert done.returncode == 8 and "pools.x" in done.stderr, (done.returncode, done.stderr)
    assert "x" in lab.show()["pools"]
    lab.cli("experiment", "kill", "1")
    assert lab.wait_end(1) == "CANCELED"
    wait_for(lambda: lab.apply(None, "--yes", check=False).returncode == 0, 20, what=lab.said)  # The pool hears of the end a moment later.
    assert "x" not in lab.show()["pools"]


def test_apply_asks_at_a_terminal(lab):
    lab.write("pools: {main: {default: true}}\n")
    lab.up_file(None, "--slots", "1")
    lab.write("pools: {main: {default: true}, x: {}}\n")
    for answer, there in ((b"n\n", False), (b"y\n", True)):
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(BINARY, [BINARY, "apply", str(lab.file)], lab.env)
        said = b""
        while b"[y/N]" not in said:
            assert select.select([fd], [], [], 120)[0], said
            said += os.read(fd, 4096)
        os.write(fd, answer)
        try:
            while select.select([fd], [], [], 120)[0] and (more := os.read(fd, 4096)):
                said += more
        except OSError:
            pass
        os.waitpid(pid, 0)
        assert ("x" in lab.show()["pools"]) == there, said


# ---- nodes over ssh


class Sshd:
    """An ssh server for this test alone, on loopback."""

    def __init__(self, root):
        self.root = root / "sshd"
        self.root.mkdir()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.root / name)], check=True)
        self.port = free_port()
        shutil.copy(self.root / "user.pub", self.root / "authorized")
        (self.root / "config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.root}/host\nAuthorizedKeysFile {self.root}/authorized\n"
            f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nSetEnv HOME={root} PATH={os.environ['PATH']}\n")
        (self.root / "known").write_text(f"[127.0.0.1]:{self.port} " + (self.root / "host.pub").read_text())
        os.makedirs("/run/sshd", exist_ok=True) if os.geteuid() == 0 else None
        self.log = open(self.root / "log", "w")
        self.process = subprocess.Popen([shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-e", "-f", str(self.root / "config")],
                                        stdout=self.log, stderr=self.log)

        def answers():
            assert self.process.poll() is None, (self.root / "log").read_text()
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0
        try:
            wait_for(answers, 20)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def sshd(tmp_path):
    if not (shutil.which("sshd") or os.path.exists("/usr/sbin/sshd")):
        pytest.skip("no sshd here: install openssh-server")
    one = Sshd(tmp_path)
    yield one
    one.stop()


def ssh_node(lab, sshd, name="far", extra=""):
    return (f"nodes:\n  - name: {name}\n    host: 127.0.0.1\n    slots: 1\n    ssh: {{user: {getpass.getuser()}, key: {sshd.root}/user, port: {sshd.port}, "
            f"known_hosts: {sshd.root}/known, data_dir: {lab.data}/{name}{extra}}}\n")


def test_a_node_over_ssh_is_started_and_stopped(lab, sshd):
    lab.write(ssh_node(lab, sshd) + lab.job())
    lab.up_file()
    lab.wait_agents("far", seconds=90)
    assert lab.wait_end(1) == "COMPLETED"
    lab.down()
    wait_for(lambda: not lab.tree(), 40, what=lab.describe_tree)


def test_a_host_without_the_program_gets_it(lab, sshd):
    """The program is in a folder that the other side cannot see, because that side has a mount namespace of its own."""
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs a mount namespace")
    sshd.stop()
    hidden = pathlib.Path(BINARY).parent
    sshd.process = subprocess.Popen(["unshare", "-m", "sh", "-c", f"mount -t tmpfs none {hidden} && exec /usr/sbin/sshd -D -e -f {sshd.root}/config"],
                                    stdout=sshd.log, stderr=sshd.log)
    lab.write(ssh_node(lab, sshd) + lab.job())
    lab.up_file()
    lab.wait_agents("far", seconds=120)
    assert (lab.root / ".local/share/troupe-program/bin/troupe").exists(), lab.said()
    assert lab.wait_end(1) == "COMPLETED", (lab.cli("explain", "experiment", "1").stdout, lab.cli("trial", "logs", "1").stdout[-2000:], lab.said()[-2000:])


def test_a_host_whose_key_is_unknown_is_refused(lab, sshd):
    (sshd.root / "known").write_text("")
    lab.write(ssh_node(lab, sshd))
    lab.up_file()
    wait_for(lambda: "node far: ssh ended with exit code 255" in lab.said(), 60, what=lab.said)
    assert "far.log" in lab.said() and "Host key verification failed" in (lab.data / "nodes" / "far.log").read_text()
    assert lab.agents() == {}


# ---- the service manager


def test_the_service_manager_is_told(lab):
    path = lab.root / "notify"
    heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    heard.bind(str(path))
    heard.settimeout(120)
    lab.write("")
    lab.up_file(None, "--slots", "1", NOTIFY_SOCKET=str(path), WATCHDOG_USEC="400000")

    def hear(word):
        while True:
            text = heard.recv(4096).decode()
            if word in text:
                return text
    assert f"MAINPID={lab.process.pid}" in hear("READY=1")
    hear("WATCHDOG=1")
    hear("WATCHDOG=1")
    lab.process.send_signal(signal.SIGHUP)
    assert "MONOTONIC_USEC=" in hear("RELOADING=1")
    hear("READY=1")
    lab.process.send_signal(signal.SIGTERM)
    hear("STOPPING=1")
    lab.process.wait(timeout=120)


def test_install_service_writes_units_that_systemd_takes(lab):
    lab.write("")
    for flags, target in ((["--user"], "default.target"), ([], "multi-user.target")):
        folder = lab.root / ("user" if flags else "system")
        done = lab.cli("install-service", *flags, "--dir", str(folder), str(lab.file))
        unit = folder / "troupe.service"
        text = unit.read_text()
        for line in ("Type=notify", "WatchdogSec=", "ExecReload=/bin/kill -HUP $MAINPID", f"WantedBy={target}", str(lab.file)):
            assert line in text, (line, text)
        assert "enable --now troupe" in done.stdout
        if shutil.which("systemd-analyze"):
            verified = subprocess.run(["systemd-analyze", "verify", *flags, str(unit)], capture_output=True, text=True)
            assert str(unit) not in verified.stderr and "troupe.service" not in verified.stderr, verified.stderr
        lab.cli("install-service", *flags, "--dir", str(folder), str(lab.file))  # A repeat with the same content is not a conflict.
        done = lab.cli("install-service", *flags, "--dir", str(folder), check=False)
        assert done.returncode == 8 and "--replace" in done.stderr, done.stderr


# ---- the examples of configs/


def test_the_laptop_example_runs(lab):
    assert lab.cli("check", str(EXAMPLES / "laptop.yaml")).stderr == ""
    lab.up_file(EXAMPLES / "laptop.yaml", TROUPE_LISTEN="127.0.0.1:0")
    lab.wait_agents("laptop")
    assert lab.wait_end(1) == "COMPLETED"


def test_the_ci_example_runs_in_the_background(lab):
    env = {**lab.env, "CI_DATA": str(lab.data)}
    env.pop("TROUPE_DATA_DIR")
    words = lambda *w: subprocess.run([BINARY, *w], env=env, capture_output=True, text=True, timeout=300)
    assert words("check", str(EXAMPLES / "ci.yaml")).returncode == 0
    done = words("up", "-d", str(EXAMPLES / "ci.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr
    try:
        assert words("experiment", "wait", "last").returncode == 0
    finally:
        assert words("down").returncode == 0
    wait_for(lambda: not lab.tree(), 30, what=lab.describe_tree)


def test_the_lab_example_runs_on_two_hosts(lab, sshd):
    lab.cli("tls", "init", "--dir", str(lab.root / "tls"), "--host", "127.0.0.1")
    secrets = {"ADA_PASSWORD": "ada's own", "CI_PASSWORD": "ci's own", "TROUPE_INITIAL_USER_PASSWORD": "first"}
    where = {"LAB_LISTEN": "127.0.0.1:0", "LAB_AGENT_LISTEN": "127.0.0.1:0", "LAB_TLS": str(lab.root / "tls"),
             "LAB_CHECKPOINTS": str(lab.root / "checkpoints"), "LAB_HOST": "127.0.0.1", "LAB_USER": getpass.getuser(),
             "LAB_KEY": str(sshd.root / "user"), "LAB_PORT": str(sshd.port), "LAB_KNOWN_HOSTS": str(sshd.root / "known"),
             "LAB_AGENT_DIR": str(lab.data / "far")}
    lab.env.update(secrets)
    port = free_port()
    where.update({"LAB_LISTEN": f"127.0.0.1:{port}", "LAB_MASTER": f"127.0.0.1:{port}"})
    lab.env.update(where)
    lab.env.update({"TROUPE_CA_FILE": str(lab.root / "tls" / "ca.pem"), "TROUPE_USER": "ada", "TROUPE_PASSWORD": "ada's own"})
    assert lab.cli("check", str(EXAMPLES / "lab.yaml")).returncode == 0
    lab.process = subprocess.Popen([BINARY, "up", str(EXAMPLES / "lab.yaml"), "--data-dir", str(lab.data)], env=lab.env,
                                   stdout=lab.log, stderr=lab.log, start_new_session=True)
    wait_for(lambda: lab.url() and lab.cli("status", check=False).returncode == 0, 60, what=lab.said)
    lab.wait_agents("head", "gpu01", seconds=120)
    assert {n: a["resourcePools"] for n, a in lab.agents().items()} == {"head": ["small"], "gpu01": ["gpu"]}
