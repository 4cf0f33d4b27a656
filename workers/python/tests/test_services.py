"""Tests the programs of notebooks, shells and TensorBoards, each with its real server: JupyterLab, sshd or TensorBoard. A fake master
records the calls that the programs make."""

import base64
import grp
import http.client
import http.server
import json
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent
TASK = "0b6b2ef6-6e3b-4a52-8f0e-0f3a4b2b7c11"
WORD = "a-secret-word-of-this-notebook"


def wait_for(holds, seconds=120, what=None):
    """Waits until `holds()` is true. `seconds` is the time that an idle host may need. A busy host gets at least two minutes."""
    seconds = max(seconds, 120)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        got = holds()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")


class Master:
    """A master that records calls. It answers the next `fail` calls with 503."""

    def __init__(self):
        self.calls, self.fail = [], 0
        master = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                code = 200
                if master.fail > 0:
                    master.fail -= 1
                    code = 503
                else:
                    master.calls.append((self.command, self.path, json.loads(body), self.headers["Grpc-Metadata-x-allocation-token"]))
                self.send_response(code)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            do_POST = do_PUT = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def ready(self):
        return [c for c in self.calls if c[:2] == ("POST", f"/api/v1/allocations/{TASK}.1/ready")]

    def idle_words(self):
        return [c[2]["idle"] for c in self.calls if c[:2] == ("PUT", f"/api/v1/notebooks/{TASK}/report_idle")]


class Service:
    def __init__(self, kind, config, python=sys.executable, **env):
        self.folder = Path(tempfile.mkdtemp(prefix="svc-", dir="/tmp"))  # pytest's paths are too long for a socket
        self.folder.chmod(0o755)
        self.socket = str(self.folder / "service")
        self.master = Master()
        self.log = self.folder / "log"
        (self.folder / "run").mkdir()
        (self.folder / "tmp").mkdir()
        (self.folder / "work").mkdir()
        full = {k: v for k, v in os.environ.items() if not k.startswith(("TROUPE_", "DET_", "JUPYTER"))}
        full.update(PYTHONPATH=str(PACKAGE), TROUPE_SERVICE_SOCKET=self.socket, TROUPE_SERVICE_CONFIG=json.dumps(config), TROUPE_RUN_DIR=str(self.folder / "run"),
                    TMPDIR=str(self.folder / "tmp"), DET_TASK_ID=TASK, DET_ALLOCATION_ID=f"{TASK}.1", DET_SESSION_TOKEN="session", DET_MASTER=self.master.url)
        full.update(env)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([python, "-m", f"troupe.services.{kind}"], env=full, cwd=self.folder / "work", stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)

    def said(self):
        return self.log.read_text(errors="replace")

    def wait_ready(self):
        wait_for(lambda: self.master.ready() or self.process.poll() is not None, 90, self.said)
        assert self.process.poll() is None, self.said()

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.master.server.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def start():
    made = []

    def go(kind, config, **env):
        made.append(Service(kind, config, **env))
        return made[-1]

    yield go
    for one in made:
        one.close()


class Http(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=180)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(120)
        self.sock.connect(self.path)


def ask(service, method, path, body=None, **headers):
    connection = Http(service.socket)
    try:
        connection.request(method, f"/proxy/{TASK}{path}", body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer
    finally:
        connection.close()


def open_ports(session):
    """The TCP ports at which processes of this session listen."""
    inodes = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.getsid(int(entry.name)) != session:
                continue
            for fd in (entry / "fd").iterdir():
                found = re.match(r"socket:\[(\d+)\]", os.readlink(fd))
                if found:
                    inodes.add(found[1])
        except OSError:
            continue
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [line[1] for line in lines if line[3] == "0A" and line[9] in inodes]


def words_of_processes(session):
    """The command lines of the processes of this session. A process that ends meanwhile has none."""
    for pid in subprocess.check_output(["pgrep", "-s", str(session)], text=True).split():
        try:
            yield Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            pass


# ---- notebook


@pytest.fixture
def notebook(start):
    def go(kind="kernels_or_terminals", **env):
        service = start("notebook", {"idle_type": kind}, JUPYTER_TOKEN=WORD, TROUPE_NOTEBOOK_LOOK_SECONDS="0.5", **env)
        service.wait_ready()
        return service

    return go


AUTH = {"Authorization": f"token {WORD}", "Host": f"{TASK}.localhost:8080"}


class WebSocket:
    """A client of web sockets: the part of RFC 6455 that these tests need."""

    def __init__(self, service, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(120)
        self.sock.connect(service.socket)
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock.sendall((f"GET /proxy/{TASK}{path} HTTP/1.1\r\nHost: x.localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                           f"Sec-WebSocket-Key: {key}\r\nAuthorization: token {WORD}\r\n\r\n").encode())
        self.file = self.sock.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + struct.pack(">H", len(data))
        self.sock.sendall(b"\x81" + size + mask + bytes(b ^ mask[n % 4] for n, b in enumerate(data)))

    def receive(self):
        _, size = self.file.read(2)
        size &= 0x7F
        if size == 126:
            size = struct.unpack(">H", self.file.read(2))[0]
        elif size == 127:
            size = struct.unpack(">Q", self.file.read(8))[0]
        return self.file.read(size)

    def close(self):
        self.file.close()
        self.sock.close()


def test_a_notebook_computes_over_its_socket_and_listens_on_no_port(notebook):
    service = notebook()
    assert service.master.ready()[0][3] == "Bearer session"
    assert re.search(r"Jupyter Server .* is running", service.said()) and WORD not in service.said()
    assert os.stat(service.socket).st_mode & 0o777 == 0o600
    assert WORD not in Path(f"/proc/{service.process.pid}/cmdline").read_text()
    assert not any(WORD in words for words in words_of_processes(service.process.pid))
    assert ask(service, "GET", "/api/kernels")[0] == 403, "nobody without the token"
    assert ask(service, "GET", "/lab", **AUTH)[0] == 200
    status, body, _ = ask(service, "POST", "/api/kernels", json.dumps({"name": "python3"}), **AUTH)
    assert status == 201, body
    kernel = json.loads(body)["id"]
    channel = WebSocket(service, f"/api/kernels/{kernel}/channels")
    assert channel.status == 101
    header = {"msg_id": "1", "session": "s", "username": "", "date": "", "msg_type": "execute_request", "version": "5.3"}
    content = {"code": "print(6 * 7)", "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    channel.send(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell", "buffers": []}))
    wait_for(lambda: b"42" in channel.receive(), 60, service.said)
    assert open_ports(service.process.pid) == []
    channel.close()
    assert ask(service, "POST", "/api/terminals", "{}", **AUTH)[0] == 200


def test_a_notebook_has_terminals_where_the_packages_are_not_below_the_interpreters_prefix(notebook, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "other")], check=True)
    (site,) = (tmp_path / "other").glob("lib/python*/site-packages")
    (site / "ours.pth").write_text(next(p for p in sys.path if p.endswith("site-packages")) + "\n")
    service = notebook(python=str(tmp_path / "other" / "bin" / "python3"))
    status, body, _ = ask(service, "POST", "/api/terminals", "{}", **AUTH)
    assert status == 200, (body[:300], service.said())
    terminal = WebSocket(service, f"/terminals/websocket/{json.loads(body)['name']}")
    terminal.send(json.dumps(["stdin", "echo $((6 * 7))-here\r"]))
    wait_for(lambda: b"42-here" in terminal.receive(), 60, service.said)
    terminal.close()
    assert ask(service, "GET", "/lab", **AUTH)[0] == 200


def test_jupyters_own_checks_of_origin_and_xsrf_are_on(notebook):
    service = notebook()
    # After its login, a browser sends a cookie and no Authorization header.
    status, _, answer = ask(service, "GET", f"/lab?token={WORD}", Host="x.localhost")
    cookies = "; ".join(c.split(";")[0] for c in answer.headers.get_all("Set-Cookie") or [])
    assert status == 200 and "username" in cookies
    forged = {"Cookie": cookies, "Host": "x.localhost", "Content_Type": "application/json"}
    assert ask(service, "POST", "/api/kernels", "{}", **forged)[0] == 403
    xsrf = re.search(r"_xsrf=([^;]+)", cookies)[1]
    assert ask(service, "POST", "/api/kernels", "{}", X_XSRFToken=xsrf, Origin="http://x.localhost", **forged)[0] == 201
    assert ask(service, "POST", "/api/kernels", "{}", X_XSRFToken=xsrf, Origin="http://evil.example", **forged)[0] in (403, 404)


def test_the_types_of_idleness(notebook):
    for kind in ("kernels_or_terminals", "kernel_connections", "activity"):
        service = notebook(kind)
        words = service.master.idle_words
        wait_for(lambda: words()[-2:] == [True, True], 30, service.said)
        _, body, _ = ask(service, "POST", "/api/kernels", json.dumps({"name": "python3"}), **AUTH)
        kernel = json.loads(body)["id"]
        if kind == "kernels_or_terminals":
            wait_for(lambda: words()[-2:] == [False, False], 30, service.said)
            ask(service, "DELETE", f"/api/kernels/{kernel}", **AUTH)
            wait_for(lambda: words()[-2:] == [True, True], 30, service.said)
            continue
        channel = WebSocket(service, f"/api/kernels/{kernel}/channels")
        if kind == "kernel_connections":
            wait_for(lambda: words()[-2:] == [False, False], 30, service.said)
            channel.close()
            wait_for(lambda: words()[-2:] == [True, True], 30, service.said)
            continue
        wait_for(lambda: words()[-2:] == [True, True], 30, service.said)
        header = {"msg_id": "1", "session": "s", "username": "", "date": "", "msg_type": "execute_request", "version": "5.3"}
        gate = service.folder / "work" / "go"
        content = {"code": f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.05)", "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
        channel.send(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell", "buffers": []}))
        wait_for(lambda: words()[-3:] == [False] * 3, 30, service.said)
        gate.touch()
        wait_for(lambda: words()[-2:] == [True, True], 30, service.said)


def test_a_short_limit_is_looked_at_more_often():
    from troupe.services import notebook as module

    class Around:
        def __init__(self, limit):
            self.config = {} if limit is None else {"idle_timeout": limit}
    for limit, seconds in ((None, 30), ("2h", 30), ("1h30m", 30), ("30s", 10), ("1m30s", 30), ("0.5m", 10), ("2s", 1), ("500ms", 1), ("soon", 30), ("0", 30)):
        assert module.between_looks(Around(limit)) == pytest.approx(min(seconds, module.look_seconds)), limit


def test_a_notebook_that_cannot_be_asked_is_in_use(notebook):
    service = notebook()
    wait_for(lambda: service.master.idle_words()[-1:] == [True], 30, service.said)
    os.rename(service.socket, service.socket + ".away")
    wait_for(lambda: service.master.idle_words()[-2:] == [False, False], 30, service.said)


def test_the_master_is_told_again_after_an_error(start):
    service = start("notebook", {}, JUPYTER_TOKEN=WORD)
    service.master.fail = 1
    service.wait_ready()
    ((_, _, body, _),) = service.master.ready()
    assert body["agentUserGroup"] == {"agentUid": os.getuid(), "agentGid": os.getgid(), "agentUser": pwd.getpwuid(os.getuid()).pw_name,
                                      "agentGroup": grp.getgrgid(os.getgid()).gr_name}  # the name that logins use


def test_what_is_missing_is_one_line(start, tmp_path):
    for kind, package, config in (("notebook", "jupyterlab", {}), ("tensorboard", "tensorboard", {"sources": [{"place": "/x"}]})):
        hide = tmp_path / f"hide-{package}"
        hide.mkdir()
        (hide / "sitecustomize.py").write_text(f"import importlib.util as u\nold = u.find_spec\nu.find_spec = lambda name, *a: None if name == '{package}' else old(name, *a)\n")
        full = dict(os.environ, PYTHONPATH=f"{hide}:{PACKAGE}", TROUPE_SERVICE_SOCKET=str(tmp_path / "s"), TROUPE_SERVICE_CONFIG=json.dumps(config), DET_TASK_ID=TASK,
                    DET_ALLOCATION_ID=f"{TASK}.1", DET_SESSION_TOKEN="t", DET_MASTER="http://127.0.0.1:1", JUPYTER_TOKEN=WORD)
        done = subprocess.run([sys.executable, "-m", f"troupe.services.{kind}"], env=full, capture_output=True, text=True, timeout=180)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and f"pip install {package}" in done.stderr, done.stderr
    hide = tmp_path / "hide-msgpack"
    hide.mkdir()
    (hide / "msgpack.py").write_text("raise ModuleNotFoundError('No module named msgpack', name='msgpack')\n")
    without = dict(os.environ, PYTHONPATH=f"{hide}:{PACKAGE}")
    for kind in ("notebook", "tensorboard", "shell"):
        done = subprocess.run([sys.executable, "-m", f"troupe.services.{kind}"], env=without, capture_output=True, text=True, timeout=180)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "pip install msgpack" in done.stderr, done.stderr
    done = subprocess.run([sys.executable, "-c", "import troupe"], env=without, capture_output=True, text=True, timeout=180)
    assert "ModuleNotFoundError" in done.stderr, done.stderr
    done = subprocess.run([sys.executable, "-m", "troupe.services.notebook"], env={"PYTHONPATH": str(PACKAGE), "PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == "troupe: TROUPE_SERVICE_SOCKET is not set: this program is started by the cluster, as a task\n"


# ---- shell

PIPE = """
import os, socket, sys, threading
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
def up():
    while True:
        data = os.read(0, 65536)
        if not data:
            s.shutdown(socket.SHUT_WR)
            return
        s.sendall(data)
threading.Thread(target=up, daemon=True).start()
while True:
    data = s.recv(65536)
    if not data:
        break
    os.write(1, data)
"""


class Shell:
    def __init__(self, start, tmp_path, **env):
        self.keys = tmp_path
        for name in ("user", "host", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(tmp_path / name)], check=True)
        (tmp_path / "pipe.py").write_text(PIPE)
        self.config = {"authorized_key": (tmp_path / "user.pub").read_text(), "host_key": (tmp_path / "host").read_text(), "host_public_key": (tmp_path / "host.pub").read_text()}
        self.service = start("shell", self.config, **env)
        self.service.wait_ready()
        (tmp_path / "known").write_text(f"{TASK} " + (tmp_path / "host.pub").read_text())

    def options(self, key="user"):
        return ["-F", "none", "-o", f"ProxyCommand={sys.executable} {self.keys / 'pipe.py'} {self.service.socket}", "-o", f"UserKnownHostsFile={self.keys / 'known'}",
                "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-i", str(self.keys / key)]

    def user(self):
        return pwd.getpwuid(os.getuid()).pw_name

    def run(self, *words, key="user", options=(), **how):
        return subprocess.run(["ssh", *self.options(key), *options, f"{self.user()}@{TASK}", *words], capture_output=True, timeout=180, **how)


@pytest.fixture
def shell(start, tmp_path):
    return Shell(start, tmp_path, ODD='a "b" \\ c $d', MANY="1\n2", PATH=os.environ["PATH"] + ":/of/the/task")


def test_logins_have_the_variables_of_the_task(shell):
    done = shell.run("env")
    assert done.returncode == 0, (done.stderr, shell.service.said())
    env = dict(line.split("=", 1) for line in done.stdout.decode().splitlines() if "=" in line)
    assert env["DET_TASK_ID"] == TASK and env["ODD"] == 'a "b" \\ c $d'
    assert "/of/the/task" in env["PATH"].split(":"), "whatever the account's own .bashrc puts before it"
    assert "TROUPE_SERVICE_CONFIG" not in env and "TROUPE_SERVICE_SOCKET" not in env and "PRIVATE KEY" not in done.stdout.decode()
    assert env["HOME"] == pwd.getpwuid(os.getuid()).pw_dir
    assert shell.run("exit 7").returncode == 7
    assert shell.run("tty", options=["-tt"]).stdout.startswith(b"/dev/pts/")


def test_a_wrong_key_a_password_and_another_host_are_refused(shell):
    assert shell.run("true", key="other").returncode == 255
    asked = shell.run("true", options=["-o", "PreferredAuthentications=password,keyboard-interactive"])
    assert asked.returncode == 255 and b"Permission denied (publickey)" in asked.stderr, asked.stderr
    (shell.keys / "known").write_text(f"{TASK} " + (shell.keys / "other.pub").read_text())
    assert shell.run("true").returncode == 255
    assert shell.service.process.poll() is None


def test_files_and_half_closed_pipes_pass(shell, tmp_path):
    data = os.urandom(3 << 20)
    (tmp_path / "there").mkdir()
    (tmp_path / "big").write_bytes(data)
    done = subprocess.run(["scp", *shell.options(), str(tmp_path / "big"), f"{shell.user()}@{TASK}:{tmp_path}/there/copy"], capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "there/copy").read_bytes() == data
    done = subprocess.run(["sftp", "-b", "-", *shell.options(), f"{shell.user()}@{TASK}"], input=f"get {tmp_path}/there/copy {tmp_path}/back\n".encode(), capture_output=True, timeout=180)
    assert done.returncode == 0 and (tmp_path / "back").read_bytes() == data, done.stderr
    tar = subprocess.run(["tar", "-C", str(tmp_path), "-c", "big"], capture_output=True).stdout
    assert shell.run(f"tar -C {tmp_path}/there -x && echo done", input=tar).stdout == b"done\n"
    assert (tmp_path / "there/big").read_bytes() == data
    assert shell.run("wc -c", input=data).stdout.strip() == str(len(data)).encode()


def test_ports_are_forwarded_both_ways(shell, tmp_path):
    (tmp_path / "page").write_text("hello from below")
    server = subprocess.Popen([sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1", "-d", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ, PYTHONUNBUFFERED="1"))
    try:
        port = int(re.search(rb"port (\d+)", server.stdout.readline())[1])
        local = tmp_path / "local"
        forward = subprocess.Popen(["ssh", *shell.options(), "-N", "-o", "ExitOnForwardFailure=yes", "-L", f"{local}:127.0.0.1:{port}", "-R", f"{tmp_path}/remote:127.0.0.1:{port}", f"{shell.user()}@{TASK}"])
        try:
            wait_for(lambda: local.exists() and (tmp_path / "remote").exists(), 30, shell.service.said)
            def read(end):
                connection = Http(str(tmp_path / end))
                try:
                    connection.request("GET", "/page")
                except ConnectionRefusedError:  # The socket file exists a moment before the program listens.
                    return None
                return connection.getresponse().read()
            for end in ("local", "remote"):
                assert wait_for(lambda: read(end), 30, shell.service.said) == b"hello from below"
        finally:
            forward.kill()
            forward.wait()
    finally:
        server.kill()
        server.wait()


def connect(service):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(120)
    s.connect(service.socket)
    return s


def stays_open(link):
    """The connection, or None where the program ends it at once."""
    link.settimeout(1)
    try:
        link.recv(1)
    except TimeoutError:
        link.settimeout(120)
        return link
    link.close()
    return None


def test_connections_that_say_nothing_are_closed_and_64_is_the_limit(shell):
    held = [connect(shell.service) for _ in range(64)]
    for one in held:  # A connection that sends nothing ends after 10 s, on a slow host before the next line.
        one.sendall(b"SSH-2.0-stranger\r\n")
    assert connect(shell.service).recv(1) == b"", "the 65th"
    assert shell.run("true").returncode == 255
    for one in held:
        one.close()
    silent = wait_for(lambda: stays_open(connect(shell.service)), 30, shell.service.said)
    assert silent.recv(1) == b"", "after 10 s"
    silent.close()
    wait_for(lambda: shell.run("true").returncode == 0, 30, shell.service.said)


def test_20_logins_at_once(shell):
    begun = [subprocess.Popen(["ssh", *shell.options(), f"{shell.user()}@{TASK}", "echo", str(n)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(20)]
    for n, one in enumerate(begun):
        out, err = one.communicate(timeout=300)
        assert out.decode().strip() == str(n), (err, shell.service.said())
    wait_for(lambda: len(subprocess.run(["pgrep", "-s", str(shell.service.process.pid)], capture_output=True, text=True).stdout.split()) == 1, 20, shell.service.said)


# ---- TensorBoard


def test_tensorboard_shows_runs_while_they_grow_and_listens_on_no_port(start, tmp_path):
    from tensorboard.summary import Writer

    experiment = tmp_path / "tensorboard/experiment/7"
    late = tmp_path / "tensorboard/experiment/8/trial/12"
    first = experiment / "trial/1"
    first.mkdir(parents=True)
    writer = Writer(str(first))
    writer.add_scalar("loss", 0.5, step=1)
    writer.flush()
    service = start("tensorboard", {"sources": [{"place": str(experiment)}, {"place": str(late)}], "args": ["--samples_per_plugin", "scalars=50"]})
    service.wait_ready()
    assert os.stat(service.socket).st_mode & 0o777 == 0o600
    assert ask(service, "GET", "/")[0] == 200

    def runs():
        return sorted(json.loads(ask(service, "GET", "/data/runs")[1]))

    wait_for(lambda: runs() == ["experiment_7/trial/1"], 60, service.said)
    writer.add_scalar("loss", 0.25, step=2)
    writer.flush()

    def values(run):
        status, body, _ = ask(service, "GET", f"/data/plugin/scalars/scalars?tag=loss&run={run}")
        return [point[1:] for point in json.loads(body)] if status == 200 else []

    wait_for(lambda: values("experiment_7/trial/1") == [[1, 0.5], [2, 0.25]], 60, service.said)
    late.mkdir(parents=True)
    other = Writer(str(late))
    other.add_scalar("loss", 3.0, step=1)
    other.flush()
    wait_for(lambda: values("experiment_8/trial_12") == [[1, 3.0]], 60, service.said)
    assert open_ports(service.process.pid) == []
    assert "TensorBoard contains metrics" in service.said()


# ---- TensorBoard, buckets


def event_file(*values):
    """The bytes of an event file in which `values` are the curve of `loss`."""
    from tensorboard.summary import Writer

    with tempfile.TemporaryDirectory() as made:
        writer = Writer(made)
        for step, value in enumerate(values, 1):
            writer.add_scalar("loss", value, step=step)
        writer.close()
        return next(Path(made).iterdir()).read_bytes()


class Bucket:
    """An S3 server (moto) with a single user. It checks keys and signatures."""

    def __init__(self):
        import boto3
        from moto.server import ThreadedMotoServer

        self.make, self.port, self.boto3 = ThreadedMotoServer, 0, boto3
        self.open()
        self.url = f"http://127.0.0.1:{self.port}"
        self.key, self.secret = "first", "word"
        iam = self.client("iam")
        iam.create_user(UserName="ada")
        iam.put_user_policy(UserName="ada", PolicyName="all", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}))
        made = iam.create_access_key(UserName="ada")["AccessKey"]
        self.key, self.secret = made["AccessKeyId"], made["SecretAccessKey"]
        self.control("reset-auth", b"0")
        self.s3 = self.client("s3")

    def client(self, service):
        return self.boto3.client(service, endpoint_url=self.url, region_name="us-east-1", aws_access_key_id=self.key, aws_secret_access_key=self.secret)

    def control(self, what, body):
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(urllib.request.Request(f"{self.url}/moto-api/{what}", body, {"Content-Type": "text/plain"}), timeout=30).read()

    def open(self):
        self.server = self.make(ip_address="127.0.0.1", port=self.port, verbose=False)
        self.server.start()
        self.port = self.server.get_host_and_port()[1]

    def close(self):
        self.server.stop()

    def put(self, bucket, folder, *values):
        self.s3.put_object(Bucket=bucket, Key=f"{folder}/events.out.tfevents.1", Body=event_file(*values))


@pytest.fixture(scope="module")
def bucket():
    pytest.importorskip("determined")
    pytest.importorskip("moto")
    it = Bucket()
    yield it
    it.control("reset-auth", b"inf")
    it.close()


def curves(service):
    """The values of `loss` that TensorBoard shows, by the name of the run."""
    status, body, _ = ask(service, "GET", "/data/runs")
    assert status == 200, body
    out = {}
    for run in json.loads(body):
        status, body, _ = ask(service, "GET", f"/data/plugin/scalars/scalars?tag=loss&run={run}")
        out[run] = [point[2] for point in json.loads(body)] if status == 200 else []
    return out


def in_bucket(bucket, source, *more, **signed):
    signed = signed or {"AWS_ACCESS_KEY_ID": bucket.key, "AWS_SECRET_ACCESS_KEY": bucket.secret}
    storage = {"type": "s3", "endpoint_url": bucket.url, "prefix": None}
    return {"sources": [{"place": one, "storage": storage if "://" in one else None} for one in (source, *more)]}, signed


def test_tensorboard_shows_the_curves_of_buckets_and_of_a_folder(start, bucket, tmp_path):
    from tensorboard.summary import Writer

    for name in ("models", "others"):
        bucket.s3.create_bucket(Bucket=name)
    at = "c/tensorboard/experiment"
    bucket.put("models", f"deep/er/{at}/7/trial/1", 0.5)
    bucket.put("models", f"deep/er/{at}/70/trial/1", 9.0)
    bucket.put("others", f"{at}/8/trial/12", 0.25)
    bucket.put("others", f"{at}/8/trial/121", 9.0)
    bucket.put("others", f"#x/{at}/5/trial/1", 7.0)  # The fetcher of the experiment lists this file too, because it lists the whole bucket.
    bucket.s3.put_object(Bucket="others", Key=f"{tmp_path}/escaped", Body=b"x")
    bucket.s3.put_object(Bucket="models", Key=f"deep/er/{at}/7/", Body=b"")  # an empty folder, as the web pages of S3 servers make one
    bucket.s3.put_object(Bucket="models", Key=f"deep/er/{at}/7/../../../../../../../../out.tfevents", Body=b"")
    here = tmp_path / "tensorboard/experiment/9/trial/1"
    writer = Writer(str(here))
    writer.add_scalar("loss", 2.0, step=1)
    writer.close()
    config, signed = in_bucket(bucket, f"s3://models//deep//er/{'/' + at}/7", f"s3://others/{at}/8/trial/12", f"s3://others/#x/{at}/5", str(here.parent.parent),
                               f"s3://others/{at}/9", f"s3://models/deep/er/{at}/7/trial/1")  # one folder is still empty, one is below its experiment's
    service = start("tensorboard", config, **signed)
    service.wait_ready()
    wanted = {"experiment_7/trial/1": [0.5], "experiment_8/trial_12": [0.25], "experiment_5/trial/1": [7.0], "experiment_9/trial/1": [2.0]}
    wait_for(lambda: curves(service) == wanted, 60, lambda: (curves(service), service.said()))
    bucket.put("models", f"deep/er/{at}/7/trial/1", 0.5, 0.75)
    bucket.put("models", f"deep/er/{at}/7/trial/2", 4.0)
    bucket.put("others", f"{at}/9/trial/2", 5.0)
    wanted.update({"experiment_7/trial/1": [0.5, 0.75], "experiment_7/trial/2": [4.0], "experiment_9-2/trial/2": [5.0]})
    wait_for(lambda: curves(service) == wanted, 60, lambda: (curves(service), service.said()))
    assert f"TensorBoard reads s3://models at {bucket.url}\n" in service.said() and "troupe: " not in service.said()
    assert not list(service.folder.rglob("out.tfevents")) and not (tmp_path / "escaped").exists()
    assert not list(service.folder.rglob("121"))


def test_tensorboard_says_once_what_keeps_it_from_a_bucket_and_goes_on_when_it_is_back(start, bucket):
    bucket.s3.create_bucket(Bucket="late")
    bucket.put("late", "c/tensorboard/experiment/1/trial/1", 0.5)
    config, signed = in_bucket(bucket, "s3://late/c/tensorboard/experiment/1")
    right = start("tensorboard", config, **signed)
    wrong = start("tensorboard", config, AWS_ACCESS_KEY_ID=bucket.key, AWS_SECRET_ACCESS_KEY="not-the-word")
    for one in (right, wrong):
        one.wait_ready()
    wait_for(lambda: curves(right) == {"experiment_1/trial/1": [0.5]}, 60, right.said)
    wait_for(lambda: "troupe: reading s3://late (experiment_1): " in wrong.said(), 30, wrong.said)
    bucket.close()
    wait_for(lambda: "Could not connect" in right.said(), 60, right.said)
    time.sleep(12)  # two more looks at the buckets
    bucket.open()
    bucket.put("late", "c/tensorboard/experiment/1/trial/1", 0.5, 0.75)
    wait_for(lambda: curves(right) == {"experiment_1/trial/1": [0.5, 0.75]}, 60, right.said)
    assert curves(wrong) == {}
    assert right.said().count("troupe: ") == 1, right.said()
    assert wrong.said().count("SignatureDoesNotMatch") in (1, 2) and "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in wrong.said(), wrong.said()


def test_tensorboard_shows_the_curves_of_buckets_of_google(start, monkeypatch):
    pytest.importorskip("determined")
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    server = emulator.create_server("127.0.0.1", 0, in_memory=True)
    server.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server._api._httpd.server_address[1]}")
    client = storage.Client(project="p", credentials=AnonymousCredentials())
    at = "c/tensorboard/experiment"

    def put(bucket, folder, *values):
        client.bucket(bucket).blob(f"{folder}/events.out.tfevents.1").upload_from_string(event_file(*values))

    try:
        for name in ("models", "others"):
            client.create_bucket(name)
        put("models", f"deep/er/{at}/7/trial/1", 0.5)
        put("models", f"deep/er/{at}/70/trial/1", 9.0)
        put("others", f"{at}/8/trial/12", 0.25)
        sources = [f"gs://models//deep//er/{'/' + at}/7", f"gs://others/{at}/8/trial/12", f"gs://absent/{at}/9"]
        service = start("tensorboard", {"sources": [{"place": one, "storage": {"type": "gcs"}} for one in sources]}, STORAGE_EMULATOR_HOST=os.environ["STORAGE_EMULATOR_HOST"])
        service.wait_ready()
        wanted = {"experiment_7/trial/1": [0.5], "experiment_8/trial_12": [0.25]}
        wait_for(lambda: curves(service) == wanted, 60, lambda: (curves(service), service.said()))
        put("models", f"deep/er/{at}/7/trial/1", 0.5, 0.75)
        put("models", f"deep/er/{at}/7/trial/2", 4.0)
        wanted.update({"experiment_7/trial/1": [0.5, 0.75], "experiment_7/trial/2": [4.0]})
        wait_for(lambda: curves(service) == wanted, 60, lambda: (curves(service), service.said()))
        wait_for(lambda: "troupe: reading gs://absent (experiment_9): " in service.said(), 30, service.said)
        assert service.said().count("troupe: ") == 1, service.said()
    finally:
        server.stop()


def test_a_fault_of_a_bucket_is_one_line_that_stays_the_same(monkeypatch):
    from troupe.services import _buckets

    class Refused(Exception):
        error_code = "AuthenticationFailed"

    class Told(Exception):
        error_code = None

    assert _buckets.words_of(Refused("refused\nRequestId:1\nTime:2026")) == "refused (AuthenticationFailed)"
    assert _buckets.words_of(Refused("AuthenticationFailed: no")) == "AuthenticationFailed: no"
    assert _buckets.words_of(Told("")) == "Told"
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "of the environment")
    for given, used in (({}, "of the environment"), ({"account_url": "http://a"}, "of the environment"), ({"connection_string": "own"}, "own"),
                        ({"account_url": "http://a", "credential": "k"}, None), ({"account_url": "http://a?sig=x"}, None)):
        assert _buckets.storage_of("azure", "c", {"type": "azure", **given}).get("connection_string") == used, given
    assert [_buckets.without_login(one) for one in (None, "http://a/b", "http://u:p@a/b?sig=x")] == ["", "http://a/b", "http://a/b"]


def test_what_a_bucket_lacks_is_said_and_keeps_no_folder_away(start, bucket, tmp_path):
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide" / "boto3.py").write_text("raise ModuleNotFoundError('No module named boto3', name='boto3')\n")
    lacking = {"PYTHONPATH": f"{tmp_path / 'hide'}:{PACKAGE}"}
    config, signed = in_bucket(bucket, "s3://models/c/tensorboard/experiment/1")
    alone = start("tensorboard", config, **signed, **lacking)
    assert alone.process.wait(180) == 1 and f"{sys.executable} -m pip install determined==" in alone.said() and len(alone.said().splitlines()) == 1, alone.said()
    config["sources"] = [{"place": "azure://models/c/tensorboard/experiment/1", "storage": {"type": "azure"}}, {"place": str(tmp_path)}]
    beside = start("tensorboard", config)
    beside.wait_ready()
    assert "AZURE_STORAGE_CONNECTION_STRING" in beside.said(), beside.said()
