"""JupyterLab, TensorBoard and sshd as tasks, used through the master as users do: a kernel that computes, the curves of a trial, plain
ssh and `det shell open`; also as an ordinary user, whose agent has no rights. Needs `./setup tasks`, and the wheel `determined` 0.38.1
in the interpreter that runs the tests."""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

import pytest
import websocket

from cluster_under_test import BINARY, free_port, wait_for
from test_stock_tasks import Stock, python_for

# The first run reports more steps than it saves. The second run begins from the checkpoint.
CURVE = """
import troupe
troupe.params()
begun = troupe.resume()
for step in range(3 if begun else 1, 6):
    troupe.log({"loss": 1.0 / step if begun or step < 3 else 10 + step}, step=step)
    if step == 2:
        with troupe.checkpoint(step) as path:
            (path / "f").write_text("x")
assert troupe.flush()
assert begun, "the first run ends here"
troupe.validate({"loss": 0.2}, step=5)
"""

# Determined's library uploads its event files to the bucket at most once a second.
CURVE_OF_STOCK = """
import os, pathlib, time
from determined import core
with core.init() as ctx:
    for step in range(1, 9):
        ctx.train.report_training_metrics(steps_completed=step, metrics={"loss": 1 / step})
        time.sleep(1.1 if step == 4 else 0)
        while step == 6 and not pathlib.Path(os.environ["GATE"]).exists():
            time.sleep(0.05)
    ctx.train.report_validation_metrics(steps_completed=8, metrics={"loss": 0.1})
"""


@contextlib.contextmanager
def running_as(user, of_python, kind=Stock):
    """A cluster of the account `user`. The `python3` of its tasks has the packages that the account `of_python` may run."""
    # not below pytest's folder, which other users cannot enter
    root = pathlib.Path(subprocess.run(["mktemp", "-d", "-p", "/var/tmp"], capture_output=True, text=True).stdout.strip())
    root.chmod(0o755)
    it = None
    try:
        it = kind(root, python_for(of_python, root), user)
        it.up(slots=1)
        yield it
    finally:
        if it:
            it.close()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module", params=[os.getuid(), 65534], ids=["self", "nobody"])
def cluster(request):
    with running_as(request.param, request.param) as it:
        yield it


# Accounts of users and workspaces. No account of this host has these numbers or names.
OF_USER, OF_WORKSPACE = (23456, 23457, "ada-of-the-lab", "the-lab"), (34567, 34568, "guest-of-the-lab", "guests")


@pytest.fixture(scope="module")
def with_accounts():
    """A cluster of root in which the user `determined` has an account, and so has the workspace `lab`."""
    if os.getuid() != 0:
        pytest.skip("only an agent that is root may become another account")
    with running_as(0, 65534) as it:
        it.env["TROUPE_USER"] = "admin"
        it.cli("user", "set", "determined", "--account", ":".join(map(str, OF_USER)))
        it.cli("workspace", "create", "lab", "--account", ":".join(map(str, OF_WORKSPACE)))
        del it.env["TROUPE_USER"]
        (it.root / "made").mkdir()
        (it.root / "made").chmod(0o777)
        yield it


BOTH_ACCOUNTS = pytest.mark.parametrize("where, account", [((), OF_USER), (("-w", "lab"), OF_WORKSPACE)], ids=["of the user", "of the workspace"])


def started(cluster, *words):
    uuid_of = cluster.cli(*words, "--detach").stdout.strip()
    wait_for(lambda: row(cluster, uuid_of)["ready"], 60, what=lambda: (row(cluster, uuid_of), cluster.cli("task", "logs", uuid_of).stdout[-2000:]))
    return uuid_of


def row(cluster, uuid_of):
    return cluster.call(f"/troupe/v1/tasks/{uuid_of}")[1]


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


class Unredirected(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def ask(cluster, path, headers=None, data=None, method=None, host=None):
    """Sends a request; a redirection is not followed. `host` is the name in the browser's address."""
    request = urllib.request.Request(cluster.url() + path, data, headers or {}, method=method)
    if host:
        request.add_header("Host", host)
    opener = urllib.request.build_opener(Unredirected, urllib.request.ProxyHandler({}))
    try:
        got = opener.open(request, timeout=180)
    except urllib.error.HTTPError as no:
        got = no
    return Answer(got.status, got.headers, got.read())


def login(cluster):
    return cluster.request("/").get_header("Authorization")


class Kernel:
    """A kernel of a notebook, by REST and its WebSocket, as the page of JupyterLab uses it."""

    def __init__(self, cluster, notebook, kernel=None):
        self.base, self.cluster = f"/proxy/{notebook}", cluster
        self.id = kernel or ask(cluster, self.base + "/api/kernels", {"Authorization": login(cluster)}, b"{}", "POST").json()["id"]
        self.connect()

    def connect(self):
        url = self.cluster.url().replace("http", "ws", 1) + f"{self.base}/api/kernels/{self.id}/channels"
        self.link = websocket.create_connection(url, header=["Authorization: " + login(self.cluster)], timeout=120, suppress_origin=True)

    def run(self, code):
        asked = uuid.uuid4().hex
        self.link.send(json.dumps({
            "channel": "shell", "header": {"msg_id": asked, "msg_type": "execute_request", "username": "", "session": "s", "version": "5.3", "date": ""},
            "parent_header": {}, "metadata": {}, "content": {"code": code, "silent": False, "store_history": False}}))
        said = ""
        while True:
            one = json.loads(self.link.recv())
            if one["parent_header"].get("msg_id") != asked:
                continue
            if one["msg_type"] == "stream":
                said += one["content"]["text"]
            if one["msg_type"] == "error":
                said += "\n".join(one["content"]["traceback"])
            if one["msg_type"] == "status" and one["content"]["execution_state"] == "idle":
                return said


def in_a_terminal(cluster, notebook, line, until):
    """The output of a new terminal of the notebook for this line, up to the text `until`."""
    made = ask(cluster, f"/proxy/{notebook}/api/terminals", {"Authorization": login(cluster)}, b"{}", "POST")
    assert made.status == 200, made.body[:500]
    url = cluster.url().replace("http", "ws", 1) + f"/proxy/{notebook}/terminals/websocket/{made.json()['name']}"
    link = websocket.create_connection(url, header=["Authorization: " + login(cluster)], timeout=120, suppress_origin=True)
    link.send(json.dumps(["stdin", line + "\r"]))
    shown = ""
    while until not in shown:
        kind, *said = json.loads(link.recv())
        shown += "".join(said) if kind == "stdout" else ""
    link.close()
    return shown


def test_a_notebook_computes_and_outlives_the_node(cluster):
    notebook = started(cluster, "notebook", "start", "--slots", "0")
    address = cluster.call(f"/troupe/v1/tasks/{notebook}/access")[1]["address"]
    token = urllib.parse.parse_qs(urllib.parse.urlparse(address).query)["token"][0]
    assert ask(cluster, f"/proxy/{notebook}/api/status").status == 401
    assert ask(cluster, f"/proxy/{notebook}/api/status", {"Authorization": login(cluster)}).json()["kernels"] == 0
    assert ask(cluster, f"/proxy/{notebook}/api/status", {"Authorization": "token " + token}).status == 200
    assert ask(cluster, f"/proxy/{notebook}/api/status?token={token}").status == 200
    assert ask(cluster, "/api/v1/me", {"Authorization": "Bearer " + token}).status == 401  # The token opens its notebook and nothing else.
    # The browser of a desktop is started with an address that works once, so that the token is not in any list of processes.
    (cluster.root / "desktop").mkdir(exist_ok=True)
    (cluster.root / "desktop" / "xdg-open").write_text(f'#!/bin/sh\necho "$@" > {cluster.root}/opened.new; mv {cluster.root}/opened.new {cluster.root}/opened\n')
    (cluster.root / "desktop" / "xdg-open").chmod(0o755)
    cluster.env["PATH"] = f"{cluster.root / 'desktop'}:{cluster.env['PATH']}"
    assert cluster.cli("notebook", "open", notebook).stdout.strip() == cluster.url() + address
    opened = wait_for(lambda: (cluster.root / "opened").exists() and (cluster.root / "opened").read_text().strip(), 10)
    page = urllib.parse.urlparse(opened)
    assert page.netloc.startswith(notebook + ".localhost:") and token not in opened, opened
    assert ask(cluster, f"{page.path}?{page.query}", host=page.netloc).status == 303
    assert ask(cluster, f"{page.path}?{page.query}", host=page.netloc).status == 401
    kernel = Kernel(cluster, notebook)
    assert kernel.run("import os; x = 6 * 7; print(x, os.environ['DET_TASK_TYPE'])") == "42 NOTEBOOK\n"
    assert kernel.run("import json; print(json.loads(os.environ['NOTEBOOK_CONFIG'])['description'] != '', os.environ['DET_NOTEBOOK_TOKEN'] == os.environ['JUPYTER_TOKEN'])") == "True True\n"
    in_a_terminal(cluster, notebook, "tty; echo \"uid $(id -u)\" in a terminal", f"uid {cluster.user} in a terminal")
    body = os.urandom(20 << 20)
    put = {"type": "file", "format": "base64", "content": __import__("base64").b64encode(body).decode()}
    got = ask(cluster, f"/proxy/{notebook}/api/contents/tmp/{notebook}.bin", {"Authorization": login(cluster)}, json.dumps(put).encode(), "PUT")
    assert got.status == 201, got.body[:300]
    assert kernel.run(f"import hashlib; print(hashlib.sha256(open('/tmp/{notebook}.bin','rb').read()).hexdigest()); os.remove('/tmp/{notebook}.bin')").strip() \
        == hashlib.sha256(body).hexdigest()
    cluster.kill_node()
    cluster.up(slots=1)
    wait_for(lambda: ask(cluster, f"/proxy/{notebook}/api/status", {"Authorization": login(cluster)}).status == 200, 30, 0.1)
    assert Kernel(cluster, notebook, kernel.id).run("print(x)") == "42\n"
    text = cluster.cli("task", "logs", notebook).stdout
    assert re.search(r"Jupyter Server .* is running", text) and re.search(r"Service of .* is available", text), text[-2000:]
    assert token not in text
    cluster.cli("notebook", "kill", notebook)
    wait_for(lambda: row(cluster, notebook)["state"] == "CANCELED", 30)
    assert ask(cluster, f"/proxy/{notebook}/api/status", {"Authorization": "token " + token}).status in (401, 404)


def test_a_browser_is_logged_in_to_jupyter_and_its_check_of_forged_requests_stays(cluster):
    cluster.env["TROUPE_USER"] = "admin"
    notebook = started(cluster, "notebook", "start", "--slots", "0")
    del cluster.env["TROUPE_USER"]
    said = ask(cluster, "/api/v1/auth/login", data=json.dumps({"username": "determined", "password": ""}).encode()).json()
    other = {"Authorization": "Bearer " + said["token"]}  # This user sees the task, and may not act as its owner.
    assert ask(cluster, f"/proxy/{notebook}/api/status", other).status == 404
    assert "token=" not in ask(cluster, f"/api/v1/notebooks/{notebook}", other).json()["notebook"]["serviceAddress"]
    assert ask(cluster, f"/troupe/v1/tasks/{notebook}/access", other).status == 403
    address = cluster.call(f"/troupe/v1/tasks/{notebook}/access")[1]["address"]
    visit = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
    assert ask(cluster, f"/proxy/{notebook}/", {**visit, "Cookie": "auth=" + said["token"]}).status == 404, "not to the login, which is there"
    sent_on = ask(cluster, address, visit)
    assert sent_on.status == 303, sent_on.body
    page = urllib.parse.urlparse(sent_on.headers["Location"])
    assert page.netloc.startswith(notebook + ".localhost:") and "token=" not in page.query
    at_home = {**visit, "Sec-Fetch-Site": "same-origin"}
    exchanged = ask(cluster, f"{page.path}?{page.query}", at_home, host=page.netloc)
    assert exchanged.status == 303 and "HttpOnly" in exchanged.headers["Set-Cookie"] and "SameSite=Strict" in exchanged.headers["Set-Cookie"]
    jar = exchanged.headers["Set-Cookie"].split(";")[0]
    first = ask(cluster, exchanged.headers["Location"], {**at_home, "Cookie": jar}, host=page.netloc)
    while first.status == 302:
        jar = "; ".join([jar, *(one.split(";")[0] for one in first.headers.get_all("Set-Cookie") or [])])
        first = ask(cluster, first.headers["Location"], {**at_home, "Cookie": jar}, host=page.netloc)
    assert first.status == 200 and b"jupyter" in first.body.lower(), first.body[:500]
    jar = "; ".join([jar, *(one.split(";")[0] for one in first.headers.get_all("Set-Cookie") or [])])
    assert "username-" in jar, "Jupyter goes by its own cookie from now on"
    fetch = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": "same-origin", "Cookie": jar, "Origin": "http://" + page.netloc}
    base = f"/proxy/{notebook}/api/kernels"
    assert ask(cluster, base, fetch, host=page.netloc).status == 200
    assert ask(cluster, base, fetch, b"{}", "POST", host=page.netloc).status == 403, "no XSRF token: forged"
    assert ask(cluster, base, {"Cookie": jar}, b"{}", "POST", host=page.netloc).status == 403, "over plain HTTP a browser sends no Sec-Fetch-*"
    xsrf = re.search(r"_xsrf=([^;]+)", jar)
    assert ask(cluster, base, {**fetch, "X-XSRFToken": xsrf[1]}, b"{}", "POST", host=page.netloc).status == 201
    cluster.env["TROUPE_USER"] = "admin"
    cluster.cli("notebook", "kill", notebook)
    del cluster.env["TROUPE_USER"]


def test_a_tensorboard_shows_the_curves_of_a_trial(cluster):
    job = cluster.root / "curve"
    job.mkdir()
    (job / "job.py").write_text(CURVE)
    (cluster.root / "curve.yaml").write_text("name: curve\nentrypoint: python3 job.py\nsearcher: {name: single, metric: loss}\nmax_restarts: 1\n"
                                             "environment: {image: 'lab/curves:1', registry_auth: {username: ada, password: hush},\n"
                                             "  pod_spec: {spec: {imagePullSecrets: [{name: of-the-lab}], hostname: elsewhere}}}\n")
    experiment = cluster.json("experiment", "create", str(cluster.root / "curve.yaml"), str(job))["id"]
    assert cluster.wait_end(experiment) == "COMPLETED"
    cluster.env["TROUPE_USER"] = "admin"
    board = started(cluster, "tensorboard", "start", str(experiment))
    del cluster.env["TROUPE_USER"]
    assert cluster.cli("tensorboard", "open", board, "--no-open").stdout == f"{cluster.url()}/proxy/{board}/\n", "it opens for whoever may see it"
    base, bearer = f"/proxy/{board}/data/plugin/scalars", {"Authorization": login(cluster)}
    # The image and the names of pull secrets are those of the newest experiment. Credentials are not copied.
    wanted = {"config": {"environment": None}, "experimentIds": [experiment], "preview": True}
    for config in (cluster.call(f"/api/v1/tensorboards/{board}")[1]["config"], cluster.call("/api/v1/tensorboards", wanted)[1]["config"]):
        environment = config["environment"]
        assert set(environment["image"].values()) == {"lab/curves:1"} and environment["pod_spec"]["spec"] == {"imagePullSecrets": [{"name": "of-the-lab"}]}, environment
        assert not environment.get("registry_auth"), environment
    own = {"environment": {"image": "own:2", "pod_spec": {"spec": {"hostname": "mine"}}}}
    environment = cluster.call("/api/v1/tensorboards", {**wanted, "config": own})[1]["config"]["environment"]
    assert set(environment["image"].values()) == {"own:2"} and environment["pod_spec"]["spec"] == {"hostname": "mine"}, environment
    refused = cluster.call("/api/v1/tensorboards", {**wanted, "config": {"environment": 5}})
    assert refused[0] == 400 and "environment" in json.dumps(refused[1]), refused

    def tags():
        got = ask(cluster, base + "/tags", bearer)
        return got.json() if got.status == 200 and any("val_loss" in tag for run in got.json().values() for tag in run) else None
    found = wait_for(tags, 60, 0.5)
    curve = {}
    for run, its in found.items():
        for tag in its:
            if "loss" in tag:
                curve[tag] = [(step, round(v, 4)) for _, step, v in ask(cluster, f"{base}/scalars?run={urllib.parse.quote(run)}&tag={urllib.parse.quote(tag)}", bearer).json()]
    # What the first run reported behind its checkpoint is dropped, and no point appears twice.
    assert curve == {"Determined/loss": [(1, 1.0), (2, 0.5), (3, 0.3333), (4, 0.25), (5, 0.2)], "Determined/val_loss": [(5, 0.2)]}, found
    cluster.cli("tensorboard", "kill", board)
    wait_for(lambda: row(cluster, board)["state"] == "CANCELED", 30)


@pytest.fixture(scope="module")
def s3():
    """The address of an S3 server (moto) that has the bucket `models`."""
    import boto3
    from moto.server import ThreadedMotoServer
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="ada", aws_secret_access_key="word").create_bucket(Bucket="models")
    yield url
    server.stop()


def test_a_tensorboard_shows_what_stock_trials_put_into_a_bucket_and_into_a_folder(cluster, s3):
    job = cluster.root / "curve-of-stock"
    job.mkdir()
    (job / "job.py").write_text(CURVE_OF_STOCK)
    saved = pathlib.Path(tempfile.mkdtemp(prefix="troupe-saved-", dir="/tmp"))  # a folder of /tmp, which is private in a sandbox
    saved.chmod(0o777)
    gate = cluster.root / "gate-of-curves"
    storages = {"shared_fs": {"type": "shared_fs", "host_path": str(saved)},
                "s3": {"type": "s3", "bucket": "models", "prefix": "of/ours/", "endpoint_url": s3, "access_key": "ada", "secret_key": "word"}}
    made = {}
    for kind, storage in reversed(storages.items()):
        config = cluster.root / f"{kind}.yaml"
        config.write_text(json.dumps({"name": kind, "entrypoint": "python3 job.py", "searcher": {"name": "single", "metric": "loss"}, "max_restarts": 0, "checkpoint_storage": storage,
                                      "resources": {"slots_per_trial": 0}, "environment": {"environment_variables": [f"GATE={gate}"]}}))
        made[kind] = cluster.json("experiment", "create", str(config), str(job))["id"]
    # The credentials of the owner's own configuration are used.
    home = cluster.root / "home-of-det"  # In that of the cluster's account, root would make a folder that the trials cannot enter.
    home.mkdir()
    env = {**cluster.env, "DET_MASTER": cluster.url(), "DET_USER": "determined", "DET_PASS": "", "HOME": str(home)}
    done = subprocess.run([sys.executable, "-m", "determined.cli", "tensorboard", "start", *map(str, made.values()), "--no-browser", "--detach"], env=env, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done
    board = done.stdout.split()[-1]
    base, bearer = f"/proxy/{board}/data", {"Authorization": login(cluster)}

    def curve(experiment, tag):
        got = ask(cluster, base + "/runs", bearer)
        assert got.status in (200, 404, 503), got.body  # 404: its service has not begun
        values = set()
        for run in got.json() if got.status == 200 else ():
            if run.startswith(f"experiment_{experiment}/trial/"):
                points = ask(cluster, f"{base}/plugin/scalars/scalars?run={urllib.parse.quote(run)}&tag=Determined/{tag}", bearer)
                values |= {round(value, 4) for _, _, value in points.json()} if points.status == 200 else set()
        return values

    def said():
        return [cluster.cli("task", "logs", board).stdout[-3000:], *(cluster.everything_said())]
    for experiment in made.values():
        wait_for(lambda: {1.0, 0.5, 0.3333} <= curve(experiment, "loss"), 120, 0.5, said)
        assert not {0.1429, 0.125} & curve(experiment, "loss")
    gate.touch()
    for experiment in made.values():
        wait_for(lambda: {0.1429, 0.125} <= curve(experiment, "loss") and curve(experiment, "val_loss") == {0.1}, 60, 0.5, said)
        assert cluster.wait_end(experiment) == "COMPLETED"
    cluster.cli("tensorboard", "kill", board)
    wait_for(lambda: row(cluster, board)["state"] == "CANCELED", 30)
    shutil.rmtree(saved)


def test_ssh_logs_in_copies_and_forwards(cluster):
    shell = started(cluster, "ssh", "start", "--slots", "0")
    config = cluster.root / "ssh_config"
    config.write_text(cluster.cli("ssh", "config", shell).stdout)

    def ssh(*words, **how):
        return subprocess.run(["ssh", "-F", str(config), f"troupe-{shell}", *words], env=cluster.env, capture_output=True, timeout=180, **how)
    done = ssh("echo $DET_TASK_TYPE-$((40 + 2)); exit 7")
    assert (done.returncode, done.stdout) == (7, b"SHELL-42\n"), done.stderr
    cluster.env["TROUPE_USER"] = "of-no-account"  # An editor that runs ssh may have no login of the cluster.
    assert ssh("echo in").stdout == b"in\n"
    del cluster.env["TROUPE_USER"]
    body = os.urandom(30 << 20)
    done = ssh("cat", input=body)
    assert done.returncode == 0 and done.stdout == body, done.stderr
    # 1 GiB in each direction
    blocks = 'for n in range(1024): sys.stdout.buffer.write(n.to_bytes(8, "big") * (1 << 17))'
    whole = hashlib.sha256()
    for n in range(1024):
        whole.update(n.to_bytes(8, "big") * (1 << 17))
    with subprocess.Popen([sys.executable, "-c", "import sys\n" + blocks], stdout=subprocess.PIPE) as writes:
        done = subprocess.run(["ssh", "-F", str(config), f"troupe-{shell}", "sha256sum"], env=cluster.env, stdin=writes.stdout, capture_output=True, text=True, timeout=600)
    assert done.stdout.split()[:1] == [whole.hexdigest()], done
    got = hashlib.sha256()
    with subprocess.Popen(["ssh", "-F", str(config), f"troupe-{shell}", f"python3 -c 'import sys\n{blocks}'"], env=cluster.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as reads:
        while part := reads.stdout.read(1 << 20):
            got.update(part)
    assert got.hexdigest() == whole.hexdigest()
    source, back = cluster.root / "sent", cluster.root / "back"
    source.write_bytes(body)
    for words in ([str(source), f"troupe-{shell}:/tmp/{shell}"], [f"troupe-{shell}:/tmp/{shell}", str(back)]):
        done = subprocess.run(["scp", "-q", "-F", str(config), *words], env=cluster.env, capture_output=True, timeout=180)
        assert done.returncode == 0, done.stderr
    assert back.read_bytes() == body
    ssh(f"rm /tmp/{shell}")
    stranger = cluster.root / "stranger"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)], check=True)
    text = re.sub(r"IdentityFile .*", f"IdentityFile {stranger}", config.read_text())
    (cluster.root / "other_config").write_text(text)
    done = subprocess.run(["ssh", "-F", str(cluster.root / "other_config"), "-o", "BatchMode=yes", f"troupe-{shell}", "true"],
                          env=cluster.env, capture_output=True, timeout=180)
    assert done.returncode == 255 and b"Permission denied" in done.stderr, done.stderr
    for user in ("admin", "determined"):  # Every user who sees a shell may log in.
        env = {**cluster.env, "DET_MASTER": cluster.url(), "DET_USER": user, "DET_PASS": ""}
        done = subprocess.run([sys.executable, "-m", "determined.cli", "shell", "open", shell, "echo", "stock-client"], env=env, capture_output=True, text=True, timeout=180)
        assert "stock-client" in done.stdout, (user, done.stdout, done.stderr)
    for _ in range(2):  # The first login leaves its socket there.
        done = subprocess.run(["ssh", "-F", str(config), "-o", "ExitOnForwardFailure=yes", "-R", "/tmp/forwarded.sock:127.0.0.1:1", f"troupe-{shell}", "true"],
                              env=cluster.env, capture_output=True, timeout=180)
        assert done.returncode == 0, done.stderr
    keys = cluster.root / ".troupe" / "ssh"
    assert {path.name for path in keys.glob(f"{shell}*")} == {shell, f"{shell}.hosts"}
    cluster.cli("ssh", "kill", shell)
    wait_for(lambda: row(cluster, shell)["state"] == "CANCELED", 30)
    assert ssh("true").returncode == 255
    assert "has ended" in cluster.cli("ssh", "config", shell, check=False).stderr
    assert list(keys.glob(f"{shell}*")) == []


def test_ssh_takes_many_logins_passes_half_closes_and_forwards_to_a_port_of_the_task(cluster):
    shell = started(cluster, "ssh", "start", "--slots", "0")
    config = cluster.root / "ssh_config_of_many"
    config.write_text(cluster.cli("ssh", "config", shell).stdout)
    words = ["ssh", "-F", str(config), f"troupe-{shell}"]
    with concurrent.futures.ThreadPoolExecutor(20) as at_once:
        logins = list(at_once.map(lambda n: subprocess.run([*words, f"echo login {n}"], env=cluster.env, capture_output=True, text=True, timeout=300), range(20)))
        assert [one.stdout for one in logins] == [f"login {n}\n" for n in range(20)], [one.stderr for one in logins]
    tree = cluster.root / "tree"
    tree.mkdir()
    for n in range(20):
        (tree / f"{n:02}").write_bytes(os.urandom(50_000))
    there = f"/tmp/tree-{shell}"  # The end of standard input reaches `tar`, and output still arrives behind that.
    packed = subprocess.Popen(["tar", "c", "-C", str(tree), "."], stdout=subprocess.PIPE)
    done = subprocess.run([*words, f"mkdir {there} && tar x -C {there} && cat {there}/* | sha256sum"], stdin=packed.stdout, env=cluster.env, capture_output=True, text=True, timeout=180)
    assert packed.wait() == 0 and done.stdout.split()[:1] == [hashlib.sha256(b"".join(x.read_bytes() for x in sorted(tree.iterdir()))).hexdigest()], done
    port, inside = free_port(), free_port()
    server = subprocess.Popen([*words, f"cd {there} && exec python3 -m http.server --bind 127.0.0.1 {inside}"], env=cluster.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    forward = subprocess.Popen([*words[:-1], "-N", "-L", f"127.0.0.1:{port}:127.0.0.1:{inside}", words[-1]], env=cluster.env, stderr=subprocess.DEVNULL)

    def fetched():
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{port}/07", timeout=60).read()
        except OSError:
            return None
    try:
        assert wait_for(fetched, 30, 0.2) == (tree / "07").read_bytes()
    finally:
        for one in (forward, server):
            one.terminate()
            one.wait()
    cluster.cli("ssh", "kill", shell)
    wait_for(lambda: row(cluster, shell)["state"] == "CANCELED", 30)
    wait_for(lambda: not [words for _, words in cluster.describe_tree() if shell.encode() in words], 30, what=cluster.describe_tree)


def test_strangers_reach_sshd_alone_few_at_a_time_and_have_to_speak(cluster):
    shell = started(cluster, "ssh", "start", "--slots", "0")
    url = cluster.url().replace("http", "ws", 1) + f"/proxy/{shell}/"

    def knock():
        try:
            return websocket.create_connection(url, timeout=120, suppress_origin=True)
        except websocket.WebSocketBadStatusException as no:
            return no.status_code
    silent, began = knock(), time.monotonic()
    with contextlib.suppress(websocket.WebSocketConnectionClosedException):
        assert not silent.recv()
    assert time.monotonic() - began > 8, "10 s to the first byte"
    silent.close()
    speaking = knock()
    speaking.send_binary(b"SSH-2.0-stranger\r\n")
    assert speaking.recv().startswith(b"SSH-2.0-OpenSSH")
    others, let_in = [], []
    for _ in range(70):
        others.append(one := knock())
        if not isinstance(one, int):
            one.send_binary(b"SSH-2.0-stranger\r\n")  # A silent connection would end after 10 s, on a slow host before the last knock.
            let_in.append(one)
    assert 60 <= 1 + len(let_in) <= 64, "64 at a time, those that end included"
    assert {one for one in others if isinstance(one, int)} == {503}
    for one in (speaking, *let_in):
        one.close()
    cluster.cli("ssh", "kill", shell)
    wait_for(lambda: row(cluster, shell)["state"] == "CANCELED", 30)


def test_an_idle_notebook_ends_and_what_is_open_in_others_keeps_them(cluster):
    with_kernel = started(cluster, "notebook", "start", "--slots", "0", "--idle", "15s")
    Kernel(cluster, with_kernel).link.close()
    with_terminal = started(cluster, "notebook", "start", "--slots", "0", "--idle", "15s")
    in_a_terminal(cluster, with_terminal, "echo $((6 * 7))-here", "42-here")
    with_tab = started(cluster, "notebook", "start", "--slots", "0", "--idle", "15s", "--config", "notebook_idle_type=kernel_connections")
    tab = Kernel(cluster, with_tab)
    asked = started(cluster, "notebook", "start", "--slots", "0", "--idle", "15s")  # A user reads files in this one.
    read = lambda: ask(cluster, f"/proxy/{asked}/api/contents/etc", {"Authorization": login(cluster)}).status
    idle = cluster.cli("notebook", "start", "--slots", "0", "--idle", "20s", "--detach").stdout.strip()  # the youngest of all
    wait_for(lambda: read() and row(cluster, idle)["state"] == "CANCELED", 90, 0.5, lambda: row(cluster, idle))
    assert "idle for more than 20s" in row(cluster, idle)["why"]
    assert [row(cluster, one)["state"] for one in (with_kernel, with_terminal, with_tab, asked)] == ["ACTIVE"] * 4 and read() == 200
    tab.link.close()
    wait_for(lambda: row(cluster, asked)["state"] == "CANCELED", 60, what=lambda: row(cluster, asked))
    wait_for(lambda: row(cluster, with_tab)["state"] == "CANCELED", 60, what=lambda: row(cluster, with_tab))
    assert [row(cluster, one)["state"] for one in (with_kernel, with_terminal)] == ["ACTIVE"] * 2
    for one in (with_kernel, with_terminal):
        cluster.cli("notebook", "kill", one)
        wait_for(lambda: row(cluster, one)["state"] == "CANCELED", 30)


def test_commands_and_generic_tasks_run_pause_and_leave_nothing(cluster):
    done = cluster.cli("command", "run", "--slots", "0", "--", "id -u; touch /tmp/mine; sleep 0.1; exit 3", check=False)
    assert (done.returncode, done.stdout) == (3, f"{cluster.user}\n"), done.stderr
    config = cluster.root / "generic.yaml"
    config.write_text("entrypoint: [sh, -c, 'trap \"exit 4\" TERM; echo $DET_ALLOCATION_ID; sleep 1000 & wait']\nresources: {slots: 0}\npreemption_timeout: 1\n")
    task = cluster.cli("task", "create", str(config)).stdout.strip()
    for run, verb, state in ((1, "pause", "PAUSED"), (2, "kill", "CANCELED")):
        wait_for(lambda: f"{task}.{run}" in cluster.cli("task", "logs", task).stdout, 30, what=lambda: row(cluster, task))
        (agent,) = cluster.call("/api/v1/agents")[1]["agents"]
        assert agent["containers"] == {f"{task}.{run}": {"id": f"{task}.{run}", "parent": "", "state": "STATE_RUNNING", "devices": []}}
        cluster.cli("task", verb, task)
        wait_for(lambda: row(cluster, task)["state"] == state, 30, what=lambda: row(cluster, task))
        if verb == "pause":
            cluster.cli("task", "unpause", task)
    marks = (task.encode(), b"sleep\x001000")
    wait_for(lambda: not [words for _, words in cluster.describe_tree() if any(mark in words for mark in marks)], 30, what=cluster.describe_tree)
    wait_for(lambda: not list((cluster.data / "agent").glob(f"*/tasks/{task}*")), 60)


def owner_of(path):
    return path.stat().st_uid, path.stat().st_gid


@BOTH_ACCOUNTS
def test_a_command_runs_as_the_account_and_owns_what_it_makes(with_accounts, where, account):
    cluster, (uid, gid, user, group) = with_accounts, account
    made = cluster.root / "made" / f"by-command-{uid}"
    done = cluster.cli("command", "run", "--slots", "0", *where, "--", f"id -u; id -g; id -G; id -un; id -gn; echo $USER $HOME; touch {made} mine /tmp/mine; stat -c %u mine /tmp/mine")
    assert done.stdout.split() == [str(uid), str(gid), str(gid), user, group, user, "/run/determined/workdir", str(uid), str(uid)], (done.stdout, done.stderr)
    assert owner_of(made) == (uid, gid)


@BOTH_ACCOUNTS
def test_a_notebook_computes_as_the_account(with_accounts, where, account):
    cluster, (uid, gid, user, group) = with_accounts, account
    notebook = started(cluster, "notebook", "start", "--slots", "0", *where)
    made = cluster.root / "made" / f"by-notebook-{uid}"
    kernel = Kernel(cluster, notebook)
    assert kernel.run(f"import os, pwd; open({str(made)!r}, 'w').close(); print(os.getuid(), os.getgid(), os.getgroups(), pwd.getpwuid(os.getuid()).pw_name)") == f"{uid} {gid} [] {user}\n"
    assert owner_of(made) == (uid, gid)
    in_a_terminal(cluster, notebook, 'echo "$(id -un) of $(id -gn) in a terminal"', f"{user} of {group} in a terminal")
    cluster.cli("notebook", "kill", notebook)
    wait_for(lambda: row(cluster, notebook)["state"] == "CANCELED", 30)


@BOTH_ACCOUNTS
def test_ssh_logs_in_as_the_account(with_accounts, where, account):
    cluster, (uid, gid, user, group) = with_accounts, account
    shell = started(cluster, "ssh", "start", "--slots", "0", *where)
    assert cluster.call(f"/api/v1/shells/{shell}")[1]["shell"]["agentUserGroup"]["user"] == user, "by this name `det shell open` logs in"
    config = cluster.root / f"ssh_config-{uid}"
    config.write_text(cluster.cli("ssh", "config", shell).stdout)
    made = cluster.root / "made" / f"by-shell-{uid}"
    done = subprocess.run(["ssh", "-F", str(config), f"troupe-{shell}", f"id -u; id -g; id -un; id -gn; echo $DET_TASK_TYPE; touch {made}"],
                          env=cluster.env, capture_output=True, text=True, timeout=180)
    assert done.stdout.split() == [str(uid), str(gid), user, group, "SHELL"], done.stderr
    assert owner_of(made) == (uid, gid)
    done = subprocess.run(["ssh", "-tt", "-F", str(config), f"troupe-{shell}", "tty; stat -c %u $(tty)"], env=cluster.env, capture_output=True, text=True, timeout=180)
    assert done.stdout.split()[-1] == str(uid), (done.stdout, done.stderr)  # a terminal that belongs to the account
    source, back = cluster.root / f"sent-{uid}", cluster.root / f"back-{uid}"
    source.write_bytes(os.urandom(1 << 20))
    for words in ([str(source), f"troupe-{shell}:{made}"], [f"troupe-{shell}:{made}", str(back)]):
        done = subprocess.run(["scp", "-q", "-F", str(config), *words], env=cluster.env, capture_output=True, timeout=180)
        assert done.returncode == 0, done.stderr
    assert back.read_bytes() == source.read_bytes() and owner_of(made) == (uid, gid)
    env = {**cluster.env, "DET_MASTER": cluster.url(), "DET_USER": "admin", "DET_PASS": ""}
    done = subprocess.run([sys.executable, "-m", "determined.cli", "shell", "open", shell, "whoami"], env=env, capture_output=True, text=True, timeout=180)
    assert user in done.stdout.split(), (done.stdout, done.stderr)
    cluster.cli("ssh", "kill", shell)
    wait_for(lambda: row(cluster, shell)["state"] == "CANCELED", 30)


class Apart(Stock):
    """A master of this account, and an agent of another account."""

    agent = None

    def up(self, slots=1):
        port = free_port()
        self.process = subprocess.Popen([BINARY, "master", "--data-dir", str(self.data), "--listen", f"127.0.0.1:{port}", "--agent-listen", "127.0.0.1:0"],
                                        env=self.env, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_for(self.answers)
        self.agent = self.as_user("agent", "--master", f"127.0.0.1:{port}", "--data-dir", f"{self.data}-agent", "--name", "apart", "--slots", str(slots))
        wait_for(lambda: self.json("status")["slots"]["total"] == slots, 30)

    def close(self):
        if self.agent:
            self.agent.kill()
            self.agent.wait()
        super().close()


def test_a_shell_says_its_agents_account_where_the_master_has_another():
    if os.getuid() != 0:
        pytest.skip("another user is needed, and only root may become one")
    with running_as(65534, 65534, Apart) as cluster:
        shell = started(cluster, "ssh", "start", "--slots", "0")
        assert cluster.call(f"/api/v1/shells/{shell}")[1]["shell"]["agentUserGroup"] == {"user": "nobody", "uid": 65534, "group": "nogroup", "gid": 65534}
        env = {**cluster.env, "DET_MASTER": cluster.url(), "DET_USER": "admin", "DET_PASS": ""}
        done = subprocess.run([sys.executable, "-m", "determined.cli", "shell", "open", shell, "whoami"], env=env, capture_output=True, text=True, timeout=180)
        assert "nobody" in done.stdout.split(), (done.stdout, done.stderr, cluster.cli("task", "logs", shell).stdout[-2000:])
        assert [(fact["run"], fact.get("account")) for fact in cluster.facts("task_ready")] == [(1, "nobody")]
