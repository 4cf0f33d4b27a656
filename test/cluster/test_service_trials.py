"""Longer uses of notebooks and shells: many logins at once, archives through half-closed pipes, forwarded ports, files of 200 MB, and
what happens to all of these when master and agent are killed. Needs what test_services.py needs."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import socket
import subprocess
import threading

import pytest
import websocket

from cluster_under_test import free_port, wait_for
from test_services import Kernel, ask, cluster, login, row, started  # noqa: F401


class Shell:
    def __init__(self, cluster):
        self.id, self.env = started(cluster, "ssh", "start", "--slots", "0"), cluster.env
        self.name, self.config = f"troupe-{self.id}", cluster.root / f"{self.id}.ssh"
        self.config.write_text(cluster.cli("ssh", "config", self.id).stdout)

    def ssh(self, *words, **how):
        how.setdefault("timeout", 180)
        return subprocess.run(["ssh", "-F", str(self.config), self.name, *words], env=self.env, capture_output=True, **how)

    def begin(self, *words, program="ssh", **how):
        return subprocess.Popen([program, "-F", str(self.config), *words], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)


@pytest.fixture(scope="module")
def shell(cluster):  # noqa: F811
    return Shell(cluster)


def test_twenty_log_in_at_once(shell):
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        for n, done in enumerate(pool.map(lambda n: shell.ssh(f"sleep 1; echo login {n}; exit {n}"), range(20))):
            assert (done.returncode, done.stdout) == (n, b"login %d\n" % n), (n, done)


def test_an_archive_goes_through_a_half_closed_pipe_both_ways(shell, tmp_path):
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    for n in range(50):
        (source / "deep" / f"{n}.bin").write_bytes(os.urandom(200_000))
    there, back = f"/tmp/archive-{shell.id}", tmp_path / "back"
    back.mkdir()
    for words in (f"tar c -C {source} . | ssh -F {shell.config} {shell.name} 'mkdir {there} && tar x -C {there} && echo unpacked'",
                  f"ssh -F {shell.config} {shell.name} 'tar c -C {there} .' | tar x -C {back} && echo unpacked"):
        done = subprocess.run(["bash", "-o", "pipefail", "-c", words], env=shell.env, capture_output=True, text=True, timeout=180)
        assert (done.returncode, done.stdout) == (0, "unpacked\n"), done.stderr
    assert subprocess.run(["diff", "-r", str(source), str(back)]).returncode == 0
    # The end of our input reaches a program that still reads, and its output behind that still arrives.
    assert shell.ssh(f"cat | wc -c; rm -r {there}", input=b"x" * 1_000_001).stdout.strip() == b"1000001"


def test_ports_are_forwarded_both_ways(shell):
    inside, here, back = free_port(), free_port(), free_port()
    serve = ("import socket; s = socket.create_server(('127.0.0.1', PORT)); print('up', flush=True); c, _ = s.accept(); "
             "c.sendall(c.recv(100)[::-1]); c.close()")
    server = shell.begin(shell.name, f'python3 -c "{serve.replace("PORT", str(inside))}"')
    assert server.stdout.readline() == b"up\n"
    forward = shell.begin("-N", "-o", "ExitOnForwardFailure=yes", "-L", f"127.0.0.1:{here}:127.0.0.1:{inside}", "-R", f"127.0.0.1:{back}:127.0.0.1:{here}",
                          shell.name)

    def answer():
        try:
            with socket.create_connection(("127.0.0.1", here), timeout=120) as s:
                s.sendall(b"forwarded")
                return s.recv(100)
        except OSError:
            return None
    try:
        assert wait_for(answer, 20, 0.2) == b"dedrawrof"
        assert server.wait(120) == 0
        with socket.create_server(("127.0.0.1", 0)) as mine:
            reverse = shell.begin("-N", "-R", f"127.0.0.1:{free_port()}:127.0.0.1:{mine.getsockname()[1]}", "-v", shell.name)
            line = b""
            while b"remote forward success" not in line:
                line = reverse.stderr.readline()
                assert line, "no -R"
            port = line.rsplit(b"listen ", 1)[1].split(b":", 1)[1].split(b",")[0].decode()
            threading.Thread(target=shell.ssh, args=(f"bash -c 'echo from inside > /dev/tcp/127.0.0.1/{port}'",), daemon=True).start()
            mine.settimeout(120)
            assert mine.accept()[0].recv(100) == b"from inside\n"
            reverse.terminate()
            reverse.wait()
    finally:
        forward.terminate()
        forward.wait()


def test_200_megabytes_go_up_and_down_through_jupyterlab(cluster):  # noqa: F811
    notebook = started(cluster, "notebook", "start", "--slots", "0")
    base, bearer = f"/proxy/{notebook}", {"Authorization": login(cluster)}
    name, chunk = f"tmp/large-{notebook}.bin", 8 << 20  # The root folder of Jupyter is /, where not every account may write.
    digest = hashlib.sha256()
    encode = __import__("base64").b64encode
    for n in range(1, 26):  # in pieces, as the page of JupyterLab sends large files
        part = os.urandom(chunk)
        digest.update(part)
        put = {"type": "file", "format": "base64", "name": name, "path": name, "chunk": n if n < 25 else -1, "content": encode(part).decode()}
        got = ask(cluster, f"{base}/api/contents/{name}", bearer, json.dumps(put).encode(), "PUT")
        assert got.status in (200, 201), got.body[:300]
    down = ask(cluster, f"{base}/files/{name}", bearer)
    assert down.status == 200 and len(down.body) == 25 * chunk and hashlib.sha256(down.body).digest() == digest.digest()
    assert ask(cluster, f"{base}/api/contents/{name}", bearer, method="DELETE").status == 204
    cluster.cli("notebook", "kill", notebook)


def test_what_keeps_a_notebook_is_what_its_idle_type_says(cluster):  # noqa: F811
    def notebook(*more):
        words = ("--slots", "0", "--idle", "20s", "--config", "environment.environment_variables=[TROUPE_NOTEBOOK_LOOK_SECONDS=0.5]", *more)
        one = started(cluster, "notebook", "start", *words)
        return one, Kernel(cluster, one)
    (by_kernels, kernel), (by_activity, other) = notebook(), notebook("--config", "notebook_idle_type=activity")
    kernel.link.close()
    other.run("import time; time.sleep(22)")
    assert row(cluster, by_kernels)["state"] == row(cluster, by_activity)["state"] == "ACTIVE"
    # An open kernel at rest keeps the first notebook and not the second.
    wait_for(lambda: row(cluster, by_activity)["state"] == "CANCELED", 40, 0.2, lambda: row(cluster, by_activity))
    assert "idle for more than" in row(cluster, by_activity)["why"]
    assert row(cluster, by_kernels)["state"] == "ACTIVE"
    assert ask(cluster, f"/proxy/{by_kernels}/api/kernels/{kernel.id}", {"Authorization": login(cluster)}, method="DELETE").status == 204
    wait_for(lambda: row(cluster, by_kernels)["state"] == "CANCELED", 40, 0.2, lambda: row(cluster, by_kernels))


def processes_of(task):
    """The processes of this host that have the task in their environment, as (pid, command line)."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                if f"DET_TASK_ID={task}".encode() in open(f"/proc/{entry}/environ", "rb").read():
                    found.append((int(entry), open(f"/proc/{entry}/cmdline", "rb").read()))
            except OSError:
                pass
    return found


def test_kill_9_breaks_connections_and_no_task(cluster, tmp_path):  # noqa: F811
    """Master and agent die while a kernel computes, a file is half copied, and a WebSocket is open."""
    run_before = set(os.listdir("/run"))
    notebook, shell = started(cluster, "notebook", "start", "--slots", "0"), Shell(cluster)  # noqa: F811
    kernel = Kernel(cluster, notebook)
    ticks = f"/var/tmp/ticks-{notebook}"
    kernel.run(f"import threading, time\nx = 42\ndef tick():\n  while True:\n    print('tick', file=open({ticks!r}, 'a')); time.sleep(0.1)\n"
               "threading.Thread(target=tick, daemon=True).start()")
    whole, partly = tmp_path / "whole", f"/var/tmp/partly-{shell.id}"
    whole.write_bytes(os.urandom(1 << 20) * 300)
    copy = shell.begin("-q", "-l", "100000", str(whole), f"{shell.name}:{partly}", program="scp")
    wait_for(lambda: os.path.exists(partly) and os.path.getsize(partly) > 1 << 20, 30, 0.01)
    cluster.kill_node()
    with pytest.raises((websocket.WebSocketConnectionClosedException, OSError)):
        while True:  # What the kernel sent before arrives first.
            kernel.link.recv()
    ticked = wait_for(lambda: os.path.exists(ticks) and os.path.getsize(ticks))
    wait_for(lambda: os.path.getsize(ticks) > ticked)  # The kernel runs on meanwhile.
    assert copy.wait(120) != 0 and os.path.getsize(partly) < whole.stat().st_size
    cluster.up(slots=1)
    wait_for(lambda: ask(cluster, f"/proxy/{notebook}/api/status", {"Authorization": login(cluster)}).status == 200, 20, 0.05)
    for one in (notebook, shell.id):
        assert row(cluster, one)["state"] == "ACTIVE"
    assert Kernel(cluster, notebook, kernel.id).run("print(x)") == "42\n"
    config = cluster.cli("ssh", "config", shell.id).stdout  # The master has another port now.
    shell.config.write_text(config)
    done = subprocess.run(["scp", "-q", "-F", str(shell.config), str(whole), f"{shell.name}:{partly}"], env=cluster.env, capture_output=True, timeout=300)
    assert done.returncode == 0 and shell.ssh(f"sha256sum < {partly}; rm {partly}").stdout.split()[0].decode() == hashlib.sha256(whole.read_bytes()).hexdigest()
    pids = shell.ssh("echo $PPID; ls -d /run/determined").stdout
    assert pids
    for kind, one in (("notebook", notebook), ("ssh", shell.id)):
        cluster.cli(kind, "kill", one)
        wait_for(lambda: row(cluster, one)["state"] == "CANCELED", 30)
    # Nothing of the tasks is left: no process, no mount, no socket, nothing below /run.
    for one in (notebook, shell.id):
        wait_for(lambda: not processes_of(one), 20, 0.2, lambda: processes_of(one))
        for list_of in ("/proc/mounts", "/proc/net/unix"):
            wait_for(lambda: one not in pathlib.Path(list_of).read_text(), what=lambda: list_of)
    more = lambda: set(os.listdir("/run")) - run_before - {"sshd"}  # Tests of ssh make /run/sshd.
    wait_for(lambda: not more(), what=more)
    os.remove(ticks)
