"""Master and agents as processes of their own on one host: over plain links and TLS, killed, refused, and sent garbage."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import http.server
import urllib.request
import uuid

import pytest

from cluster_under_test import BINARY, Cluster, free_port, send_noise, stays, wait_for


class Processes(Cluster):
    """A master and any number of agents. `up` of the base class is not used."""

    def __init__(self, root, tls=False):
        super().__init__(root)
        self.http, self.link = free_port(), free_port()
        self.agents = {}
        self.tls = self.root / "tls" if tls else None
        self.env["TROUPE_MASTER"] = f"{'https' if tls else 'http'}://127.0.0.1:{self.http}"
        if tls:
            self.cli("tls", "init", "--dir", str(self.tls))
            self.env["TROUPE_CA_FILE"] = str(self.tls / "ca.pem")

    def flags(self):
        return ["--tls-dir", str(self.tls)] if self.tls else []

    def start(self, *words):
        return subprocess.Popen([BINARY, *words], env=self.env, stdout=self.log, stderr=self.log, start_new_session=True)

    def master(self):
        self.process = self.start("master", "--data-dir", str(self.data / "master"), "--listen", f"127.0.0.1:{self.http}",
                                  "--agent-listen", f"127.0.0.1:{self.link}", *self.flags())
        wait_for(self.serves)

    def serves(self):
        assert self.process.poll() is None, (self.root / "up.log").read_text()[-3000:]
        return self.cli("status", check=False).returncode == 0

    def answers_without_a_user(self):
        assert self.process.poll() is None, (self.root / "up.log").read_text()[-3000:]
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.http}/health", timeout=10).status == 200
        except OSError:
            return False

    def agent(self, name, at=None, slots=1, more=()):
        self.agents[name] = self.start("agent", "--master", f"127.0.0.1:{at or self.http}", "--data-dir",
                                       str(self.data / name), "--name", name, "--slots", str(slots), *self.flags(), *more)

    def alive_agents(self):
        return self.json("status")["slots"]["total"]

    def kill_agent(self, name):
        self.agents[name].send_signal(signal.SIGKILL)
        self.agents[name].wait()

    def refused(self, *words):
        """The standard error of a command that has to fail and end by itself."""
        done = self.cli(*words, check=False)
        assert done.returncode != 0, (words, done.stdout, done.stderr)
        return done.stderr

    def refused_agent(self, name="odd", at=None, flags=()):
        return self.refused("agent", "--master", f"127.0.0.1:{at or self.http}", "--data-dir", str(self.root / name),
                            "--name", name, "--slots", "1", *flags)

    def tree(self):
        found = set()
        mark = str(self.root).encode()
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
                with open(f"/proc/{entry}/environ", "rb") as file:
                    env = file.read()
            except OSError:
                continue
            ours = mark in b"\0".join(words) and words[0].rsplit(b"/", 1)[-1] in (b"troupe", b"troupe-task")
            if ours or (b"TROUPE_TASK_ID=" in env and mark in env):
                found.add(int(entry))
        return found

    def close(self):
        for one in [self.process, *self.agents.values()]:
            if one and one.poll() is None:
                one.kill()
                one.wait()
        for pid in self.tree():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def masters_missed(self):
        """How often agents have logged that they cannot reach the master. Each agent logs it once whenever it loses the master."""
        return (self.root / "up.log").read_text().count("cannot be reached yet")

    def starts(self):
        return [a for a in self.acks() if a["kind"] == "start"]


@pytest.fixture
def plain(tmp_path):
    one = Processes(tmp_path)
    yield one
    one.close()


@pytest.fixture
def secured(tmp_path):
    one = Processes(tmp_path, tls=True)
    yield one
    one.close()


def test_tls_init_makes_files_of_one_cluster(tmp_path):
    one = Processes(tmp_path)
    folder = tmp_path / "certificates"
    words = ["tls", "init", "--dir", str(folder), "--host", "head.example.org", "--host", "10.1.2.3"]
    said = one.cli(*words).stdout
    assert "ca.pem, agent.pem, agent.key and join-token" in said
    assert {f.name for f in folder.iterdir()} == {"ca.pem", "ca.key", "master.pem", "master.key", "agent.pem", "agent.key", "join-token"}
    assert {f.name for f in folder.iterdir() if f.stat().st_mode & 0o77} == {"ca.pem", "master.pem", "agent.pem"}
    openssl = lambda *a: subprocess.run(["openssl", *a], capture_output=True, text=True, timeout=120)
    for who in ("master", "agent"):
        assert openssl("verify", "-CAfile", str(folder / "ca.pem"), str(folder / f"{who}.pem")).returncode == 0
    text = openssl("x509", "-in", str(folder / "master.pem"), "-noout", "-text").stdout
    for name in ("DNS:head.example.org", "DNS:localhost", "IP Address:10.1.2.3", "IP Address:127.0.0.1", "IP Address:0:0:0:0:0:0:0:1"):
        assert name in text
    before = (folder / "join-token").read_text()
    assert "--replace" in one.refused(*words)
    assert (folder / "join-token").read_text() == before
    one.cli(*words, "--replace")
    assert (folder / "join-token").read_text() != before
    assert "host name" in one.refused("tls", "init", "--dir", str(folder), "--replace", "--host", "a:80")


def run_a_search(cluster):
    cluster.agent("a1")
    cluster.agent("a2", at=cluster.link)
    wait_for(lambda: cluster.masters_missed() == 2, 30)
    cluster.master()
    wait_for(lambda: cluster.alive_agents() == 2, 30)
    experiment = cluster.submit(4, 0.02)
    assert cluster.wait_end(experiment) == "COMPLETED"
    cluster.check_books(experiment, 4)
    assert all(row["restarts"] == 0 for row in cluster.trials(experiment))
    assert cluster.masters_missed() == 2, (cluster.root / "up.log").read_text()  # Each agent started before the master, and logged it once.


def test_two_agents_train_over_a_plain_link(plain):
    run_a_search(plain)


def test_two_agents_train_over_tls(secured):
    run_a_search(secured)


def test_tasks_outlive_the_master_and_cost_no_restart(plain):
    plain.master()
    for name in ("a1", "a2"):
        plain.agent(name)
    wait_for(lambda: plain.alive_agents() == 2, 30)
    plain.hold(epoch=3)
    experiment = plain.submit(2, 0.05)
    wait_for(lambda: len([a for a in plain.acks() if a["kind"] == "validated"]) > 2, 30)
    plain.kill_node()
    tasks = {pid for pid, words in plain.describe_tree() if b"job.py" in words}
    wait_for(lambda: plain.masters_missed() == 2, 30)
    assert tasks and tasks <= plain.tree()
    plain.go_on()  # The trials report while no master is there.
    plain.master()
    assert plain.wait_end(experiment) == "COMPLETED"
    plain.check_books(experiment, 2)
    assert all(row["restarts"] == 0 for row in plain.trials(experiment))
    assert all(a["run"] == 1 for a in plain.starts()), plain.starts()


@pytest.mark.parametrize("link", ["plain", "secured"])
def test_a_dead_agents_trial_runs_elsewhere_within_seconds(link, request):
    plain = request.getfixturevalue(link)
    plain.master()
    plain.agent("a1")
    wait_for(lambda: plain.alive_agents() == 1, 30)
    plain.hold(epoch=4)
    experiment = plain.submit(1, 0.05)
    wait_for(lambda: any(a["kind"] == "saved" for a in plain.acks()), 30)
    plain.agent("a2")
    wait_for(lambda: plain.alive_agents() == 2, 30)
    plain.kill_agent("a1")
    died = time.monotonic()
    wait_for(lambda: len(plain.starts()) == 2, 20, 0.02)
    print(f"{link}: elsewhere after {time.monotonic() - died:.2f} s")
    plain.go_on()
    assert plain.wait_end(experiment) == "COMPLETED"
    plain.check_books(experiment, 1)
    assert plain.trials(experiment)[0]["restarts"] == 0
    assert [a["run"] for a in plain.starts()] == [1, 2] and plain.starts()[1]["epoch"] >= 2
    plain.agent("a1")  # The agent returns and is told to forget the run.
    wait_for(lambda: plain.alive_agents() == 2, 30)
    wait_for(lambda: plain.json("status")["slots"]["used"] == 0, 10)


def test_an_agent_that_comes_back_adopts_its_tasks(plain):
    plain.master()
    plain.agent("a1")
    wait_for(lambda: plain.alive_agents() == 1, 30)
    plain.hold(epoch=4)
    experiment = plain.submit(1, 0.05)
    wait_for(lambda: any(a["kind"] == "validated" for a in plain.acks()), 30)
    plain.process.send_signal(signal.SIGSTOP)  # The stopped master cannot answer the sandbox, which continues.
    plain.kill_agent("a1")
    plain.process.send_signal(signal.SIGKILL)
    plain.process.wait()
    plain.agent("a1")
    wait_for(lambda: plain.masters_missed() == 1, 30)
    plain.go_on()
    plain.master()
    assert plain.wait_end(experiment) == "COMPLETED"
    plain.check_books(experiment, 1)
    assert [a["run"] for a in plain.starts()] == [1]


ECHO = """
import os, socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
        self.request.sendall(b" from %d" % os.getpid())
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
Server(("127.0.0.1", int(os.environ["ECHO_PORT"])), Echo).serve_forever()
"""


def test_a_task_that_is_no_trial_waits_for_an_agent_of_its_host(plain):
    """The task could not continue on another host. So the death of its agent alone does not end it, even long after `adopt` has passed."""
    plain.master()
    plain.agent("a")
    wait_for(lambda: plain.alive_agents() == 1, 30)
    port, job = free_port(), plain.root / "echo"
    job.mkdir()
    (job / "echo.py").write_text(ECHO)
    config = plain.root / "echo.yaml"
    config.write_text(f"entrypoint: [python3, echo.py]\nresources: {{slots: 0}}\nenvironment:\n  environment_variables: [ECHO_PORT={port}]\n"
                      f"  proxy_ports: [{{proxy_port: {port}, proxy_tcp: true, default_service_id: true}}]\n")
    task = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", plain.cli("task", "create", str(config), "-c", str(job)).stdout)[0]

    def asked():
        done = subprocess.run([BINARY, "tunnel", task], input=b"hello", env=plain.env, capture_output=True, timeout=120)
        return done.stdout if done.returncode == 0 and done.stdout.startswith(b"hello from") else None
    before = wait_for(asked, 60, 0.2)
    for master_too in (False, True):
        plain.kill_agent("a")
        if master_too:  # The new master knows nothing of the agent yet.
            plain.process.send_signal(signal.SIGKILL)
            plain.process.wait()
            plain.master()
        stays(lambda: plain.json("task", "describe", task)["state"] == "ACTIVE", 2)  # 2 s are ten times `adopt`.
        plain.agent("a")
        assert wait_for(asked, 60, 0.2) == before, "the same process"
        now = plain.json("task", "describe", task)
        assert now["state"] == "ACTIVE" and now["runs"] == 1
    plain.cli("task", "kill", task)
    wait_for(lambda: plain.json("task", "describe", task)["state"] == "CANCELED", 30)


def test_an_agent_in_the_background_is_ready_once_it_is_registered(plain):
    plain.master()
    plain.cli("agent", "-d", "--master", f"127.0.0.1:{plain.http}", "--data-dir", str(plain.data / "quiet"), "--name", "quiet",
              "--slots", "3")
    assert plain.alive_agents() == 3


def test_an_agent_says_at_once_why_it_cannot_join(plain, tmp_path):
    plain.master()
    other = tmp_path / "tls-of-another"
    plain.cli("tls", "init", "--dir", str(other))
    for port in (plain.http, plain.link):
        assert "leave --tls-dir out" in plain.refused_agent(at=port, flags=["--tls-dir", str(other)])
    plain.agent("a1")
    wait_for(lambda: plain.alive_agents() == 1, 30)
    said = plain.refused("agent", "--master", f"127.0.0.1:{plain.http}", "--data-dir", str(tmp_path / "twin"), "--name", "a1")
    assert "another agent named 'a1'" in said and "--name" in said
    for address in ("127.0.0.1:0", "127.0.0.1:99999", "127.0.0.1:http"):
        assert "port must be a number" in plain.refused("agent", "--master", address, "--data-dir", str(tmp_path / "odd"), "--name", "x")
    assert "in use" in plain.refused("agent", "--master", f"127.0.0.1:{plain.http}", "--data-dir", str(plain.data / "a1"), "--name", "x")


def test_an_agent_of_another_version_is_refused(plain):
    class Newer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"protocol": 99, "port": 1, "tls": False}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Newer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = plain.refused_agent(at=server.server_port)
        server.shutdown()
    assert "protocol 99" in said and "same version" in said


def test_tls_lets_in_only_its_own(secured, tmp_path):
    secured.master()
    other = tmp_path / "other"
    secured.cli("tls", "init", "--dir", str(other))
    for port in (secured.http, secured.link):
        assert "needs TLS" in secured.refused_agent(at=port)
        assert "does not vouch" in secured.refused_agent(at=port, flags=["--tls-dir", str(other)])
    token = tmp_path / "token"
    token.write_text("0" * 64 + "\n")
    said = secured.refused_agent(flags=["--tls-dir", str(secured.tls), "--token-file", str(token)])
    assert "join token" in said and "troupe tls init" in said
    agents_own = tmp_path / "agents-own"  # the four files that the host of an agent needs
    agents_own.mkdir()
    for name in ("ca.pem", "agent.pem", "agent.key", "join-token"):
        (agents_own / name).write_bytes((secured.tls / name).read_bytes())
    said = secured.refused("master", "--data-dir", str(tmp_path / "m2"), "--listen", "127.0.0.1:0", "--tls-dir", str(agents_own))
    assert "master.pem" in said
    secured.tls = agents_own
    secured.agent("a1")
    wait_for(lambda: secured.alive_agents() == 1, 30)
    env = {k: v for k, v in secured.env.items() if k != "TROUPE_CA_FILE"}
    said = subprocess.run([BINARY, "status"], env=env, capture_output=True, text=True, timeout=120)
    assert said.returncode != 0 and "TROUPE_CA_FILE" in said.stderr


def test_addresses_that_cannot_be_used_are_named(plain, tmp_path):
    plain.master()
    fresh = lambda n: str(tmp_path / f"fresh{n}")
    cases = [
        (("--listen", f"127.0.0.1:{plain.http}"), "--listen"),
        (("--listen", "127.0.0.1:0", "--agent-listen", f"127.0.0.1:{plain.link}"), "--agent-listen"),
        (("--listen", "nonsense"), "nonsense"),
        (("--listen", "127.0.0.1:99999"), "99999"),
        (("--listen", "127.0.0.1:0", "--agent-listen", "127.0.0.1:x"), "127.0.0.1:x"),
        (("--listen", "127.0.0.1:0", "--agent-listen", "0.0.0.0:0"), "TLS"),
        (("--listen", "203.0.113.7:0"), "203.0.113.7"),
    ]
    for n, (flags, word) in enumerate(cases):
        assert word in plain.refused("master", "--data-dir", fresh(n), *flags), flags


def test_verbs_of_the_node_end_with_the_codes_of_the_table(secured, tmp_path):
    """The exit codes are those of docs/cli.md. In the background too, the waiting command ends with the code of what it waited for."""
    secured.master()
    wrong = tmp_path / "wrong-token"
    wrong.write_text("0" * 64 + "\n")
    agent = lambda at: ("agent", "--master", f"127.0.0.1:{at}", "--data-dir", str(tmp_path / "odd"), "--name", "odd", "--slots", "1")
    held = ("master", "--data-dir", str(secured.data / "master"), "--listen", "127.0.0.1:0")
    broken = tmp_path / "broken.yaml"
    broken.write_text("troupe: 1\npools: {a: {max_slots: many}}\n")
    cases = [
        ((*agent(secured.http), "--tls-dir", str(secured.tls), "--token-file", str(wrong)), 4, "join token"),
        (agent(secured.http), 4, "needs TLS"),
        (held, 8, "in use"),
        (("master", "--data-dir", str(tmp_path / "x"), "--file", str(broken)), 2, "max_slots"),
        (("up", "--data-dir", str(tmp_path / "y"), "--listen", "203.0.113.7:0", "--plain-http"), 2, "203.0.113.7"),
    ]
    for words, code, said in cases:
        done = secured.cli(*words, check=False)
        assert done.returncode == code and said in done.stderr, (words, done.returncode, done.stderr)
    for words, code, said in (cases[1], cases[2]):
        done = secured.cli(*words, "-d", check=False)
        assert done.returncode == code and said in done.stderr, (words, done.returncode, done.stderr)


def test_a_cluster_has_an_id_that_lasts_and_each_start_one_of_its_own(tmp_path):
    def of(cluster):
        info = json.load(urllib.request.urlopen(cluster.url() + "/info", timeout=120))
        ids = info["cluster_id"], info["master_id"]
        assert all(str(uuid.UUID(x)) == x for x in ids), info
        return ids

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = Cluster(tmp_path / "a"), Cluster(tmp_path / "b")
    try:
        one.up(1)
        other.up(1)
        first = of(one)
        assert len({*first, *of(other)}) == 4
        one.kill_everything()
        one.up(1)
        again = of(one)
        assert again[0] == first[0] and again[1] != first[1]
        job = one.root / "ids.yaml"
        job.write_text('name: ids\nentrypoint: echo "ids $DET_CLUSTER_ID $DET_MASTER_ID"\nsearcher: {name: single, metric: loss}\nmax_restarts: 0\n')
        experiment = one.json("experiment", "create", str(job))["id"]
        one.wait_end(experiment)
        assert f"ids {again[0]} {again[1]}" in one.cli("experiment", "logs", str(experiment)).stdout
        one.down()
        (one.data / "master" / "cluster-id").unlink()  # as in the directory of an older version
        one.up(1)
        assert of(one)[0] not in (first[0], "troupe")
    finally:
        one.close()
        other.close()


def test_passwords_cross_no_network_in_the_clear_unless_that_is_meant(plain, tmp_path):
    everywhere = f"0.0.0.0:{plain.http}"
    for verb in ("up", "master"):
        done = plain.cli(verb, "--data-dir", str(tmp_path / "x"), "--listen", everywhere, check=False)
        assert done.returncode == 2 and "in the clear" in done.stderr and "--plain-http" in done.stderr, (done.returncode, done.stderr)
        assert not (tmp_path / "x" / "master" / "db").exists()
    file = tmp_path / "lab.yaml"
    file.write_text(f"troupe: 1\ncluster: {{listen: '{everywhere}'}}\n")
    assert "cluster.plain_http" in plain.cli("check", str(file)).stderr
    done = plain.cli("master", "--data-dir", str(tmp_path / "x"), "--file", str(file), check=False)
    assert done.returncode == 2 and "in the clear" in done.stderr, (done.returncode, done.stderr)
    meant = tmp_path / "meant.yaml"
    meant.write_text(f"troupe: 1\ncluster: {{listen: '{everywhere}', plain_http: true}}\n")
    assert "plain_http" not in plain.cli("check", str(meant)).stderr
    log = (plain.root / "up.log").read_text
    greeting = f"troupe is up at http://{everywhere}, data in "
    for words in (("--listen", everywhere, "--plain-http"), ("--file", str(meant))):
        before = log().count(greeting)
        plain.process = plain.start("master", "--data-dir", str(plain.data / "master"), *words)
        wait_for(plain.answers_without_a_user, 30)
        wait_for(lambda: log().count(greeting) == before + 1, 10, what=log)
        plain.down()


def test_garbage_on_any_port_changes_nothing(plain):
    plain.master()
    plain.agent("a1")
    wait_for(lambda: plain.alive_agents() == 1, 30)
    harness = wait_for(lambda: next(iter((plain.data / "a1").glob("agent/a1/harness")), None), 10)
    harness_port = int(harness.read_text().strip().rsplit(":", 1)[-1])
    noise = [os.urandom(4096), b"\0" * 64, b"GET / HTTP/9.9\r\n\r\n", b"POST /api/v1/experiments HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n",
             b"\x16\x03\x01\x02\x00" + os.urandom(512), b"\xff" * 40]
    for port in (plain.http, plain.link, harness_port):
        for bytes_ in noise:
            send_noise(port, bytes_)
    experiment = plain.submit(1, 0.01)
    assert plain.wait_end(experiment) == "COMPLETED"
    plain.check_books(experiment, 1)
    assert plain.process.poll() is None and plain.agents["a1"].poll() is None
