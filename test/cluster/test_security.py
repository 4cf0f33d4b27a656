"""Attacks on the running binary: every route with every kind of token that does not open it; bodies, heads and chunks that are too large
or malformed; clients that are too slow; noise on every port."""

import hashlib
import json
import os
import pathlib
import re
import select
import socket
import time

import pytest

from cluster_under_test import send_noise, wait_for
from test_task_routes import Api, ByHand, Task

ROUTES = json.loads((pathlib.Path(__file__).parents[2] / "docs" / "openapi.json").read_text())["paths"]
SECRET = "unspeakable"  # part of the name and the files of an experiment that the accounts below may not see
MIB = 1 << 20


class Guarded(ByHand):
    def port(self):
        return int(self.url().rsplit(":", 1)[1])

    def sealed(self, claim, secret=None):
        secret = secret or json.loads((self.data / "master" / "passwords").read_text())["secret"]
        return f"{claim}.{hashlib.blake2b(claim.encode(), key=secret.encode(), digest_size=24).hexdigest()}"

    def memory_kib(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Guarded(tmp_path_factory.mktemp("guarded")) as cluster:
        cluster.up(3)
        cluster.user = Api(cluster.url(), cluster.log_in("determined"))
        cluster.create("{name: random, metric: loss, max_trials: 2, max_concurrent_trials: 2}")
        cluster.tasks = [Task(cluster, 1, 1), Task(cluster, 2, 1)]
        job = cluster.root / "job"
        (job / "note").write_text(SECRET)
        config = cluster.root / "other.yaml"
        config.write_text((cluster.root / "job.yaml").read_text().replace("by hand", SECRET).replace("max_trials: 2, max_concurrent_trials: 2", "max_trials: 1"))
        cluster.other = cluster.json("experiment", "create", str(config), str(job))["id"]
        wait_for((cluster.root / "began-3-1").exists, 30)
        yield cluster


def filled(path, values):
    return re.sub(r"\{(\w+)\}", lambda m: str(values.get(m[1], 1)), path)


def tokens(cluster):
    """Returns (void, held), each a map from a kind of token to its headers. The void tokens open nothing."""
    bearer = lambda text: {"Authorization": f"Bearer {text}"}
    past = int(time.time() * 1e6) - 1
    logged_out = cluster.log_in("admin")
    Api(cluster.url(), logged_out).ok("POST", "/api/v1/auth/logout")
    future = past + 10**12
    void = {
        "no token": {},
        "garbage": bearer("garbage"),
        "much garbage": bearer("u1.1.1." + "9" * 4000),
        "bytes": {"Authorization": b"Bearer \xff\xfe\x80"},
        "no scheme": {"Authorization": logged_out},
        "basic": {"Authorization": "Basic YWRtaW46"},
        "expired": bearer(cluster.sealed(f"u1.1.1.000102030405060708.{past}")),
        "of another cluster": bearer(cluster.sealed(f"u1.1.1.000102030405060708.{future}", "0" * 64)),
        "logged out": bearer(logged_out),
        "cookie": {"Cookie": f"a=b; auth={cluster.sealed(f'u1.1.1.00.{past}')}"},
        "of no user": bearer(cluster.sealed(f"u99.1.1.000102030405060708.{future}")),
        "of an older password": bearer(cluster.sealed(f"u1.0.1.000102030405060708.{future}")),
        "an allocation that never was": {"Grpc-Metadata-x-allocation-token": "Bearer " + cluster.sealed("a1.1.7")},
        "a trial that never was": {"Grpc-Metadata-x-allocation-token": "Bearer " + cluster.sealed("a1.77.1")},
        "an experiment that never was": bearer(cluster.sealed("e1.77.1")),
    }
    return void, {
        "user": bearer(cluster.log_in("determined")),
        "task": cluster.tasks[0].api.headers,
        "task of another experiment": {"Grpc-Metadata-x-allocation-token": "Bearer " + cluster.sealed("a1.3.1")},
    }


def raw(port, data, timeout=120, close=True):
    """Sends these bytes. Returns what the server answers until it closes, or is silent for some seconds after its answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as s:
        try:
            s.sendall(data)
        except OSError:
            pass
        said = b""
        while True:
            if not select.select([s], [], [], timeout if not said else 3)[0]:
                return said, False
            try:
                more = s.recv(65536)
            except ConnectionError:
                return said, True
            if not more:
                return said, True
            said += more
            if not close and said.count(b"\r\n\r\n"):
                return said, False


def request(method, path, headers, body=b"", close=True):
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: localhost"]
    for key, text in headers.items():
        lines.append(key.encode() + b": " + (text if isinstance(text, bytes) else text.encode()))
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    if close:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def test_a_request_with_two_hosts_is_refused(cluster):
    for lines, status in (([b"Host: 127.0.0.1:8080"], 200), ([b"Host: 127.0.0.1:8080", b"Host: evil.example"], 403), ([b"Host: evil.example", b"Host: localhost"], 403), ([b"Host:"], 403), ([], 200)):
        said, _ = raw(cluster.port(), b"\r\n".join([b"GET /api/v1/master HTTP/1.1", *lines, b"Connection: close"]) + b"\r\n\r\n")
        assert status_of(said) == status, (lines, said[:300])


def status_of(said):
    return int(said.split(b" ", 2)[1]) if said.startswith(b"HTTP/1.") else None


def refusal(said, status, what):
    """Checks that the answer is the error body of the contract and nothing else."""
    assert status_of(said) == status, (what, said[:400])
    head, body = said.split(b"\r\n\r\n", 1)
    answer = json.loads(body)
    reason, code = {401: ("Unauthenticated", 16), 403: ("PermissionDenied", 7)}[status]
    assert set(answer) == {"error", "message"}, (what, answer)
    assert answer["error"] == {"code": code, "reason": reason, "error": answer["message"]}, (what, answer)
    assert SECRET.encode() not in said and b"Set-Cookie" not in head and len(body) < 300, (what, said)
    assert b"/" not in body.replace(b"application/json", b""), (what, "no path of the server's", body)
    return answer["message"]


def every_route():
    for path, methods in ROUTES.items():
        for method, about in methods.items():
            yield method.upper(), path, about["x-access"], about.get("x-asks-again", False)


def test_every_route_refuses_what_does_not_open_it(cluster):
    port, task = cluster.port(), cluster.tasks[0]
    void, held = tokens(cluster)
    mine = {"trialId": 1, "id": cluster.experiment, "experimentId": cluster.experiment, "experiment_id": cluster.experiment, "taskId": task.task,
            "allocationId": task.allocation, "resourcesId": task.resources, "metrics_trialId": 1, "trainingMetrics_trialId": 1,
            "validationMetrics_trialId": 1, "labels_trialId": 1, "runId": 1, "username": "admin"}
    theirs = {**mine, "trialId": 3, "labels_trialId": 3, "experimentId": cluster.other, "taskId": cluster.tasks[1].task, "allocationId": cluster.tasks[1].allocation, "runId": 3}
    none = {key: 7777 for key in mine} | {"taskId": "9.nothing", "allocationId": "9.nothing.1"}
    tried = 0
    for method, path, access, asks_again in every_route():
        if access == "open":
            continue
        said = set()
        for kind, headers in void.items():
            for ids in (mine, theirs, none):
                got, _ = raw(port, request(method, filled(path, ids), headers))
                said.add((kind, refusal(got, 401, (method, path, kind))))
                tried += 1
                if kind not in ("no token", "garbage", "expired"):
                    break
        assert len(said) == len(void), "what is there and what is not look alike"
        forbidden = {"user": access in ("admin", "own task", "task") or (access.startswith("user where unmanaged") and not asks_again),
                     "task": access in ("user", "admin", "oneself or admin"),
                     "task of another experiment": access not in ("user or task", "task") and not asks_again}
        for kind, closed in forbidden.items():
            if closed:
                for ids in (mine, none) if kind == "task of another experiment" else (mine,):
                    got, _ = raw(port, request(method, filled(path, ids), held[kind]))
                    refusal(got, 403, (method, path, kind))
                    tried += 1
        if "own task" in access and not asks_again:  # a task that asks about another task
            got, _ = raw(port, request(method, filled(path, theirs), held["task"]))
            refusal(got, 403, (method, path, "another allocation's"))
            tried += 1
    assert tried > 4000
    assert cluster.state(cluster.experiment) == "ACTIVE" and cluster.state(cluster.other) == "ACTIVE"


def test_open_routes_tell_strangers_nothing_of_the_users_things(cluster):
    port = cluster.port()
    open_ones = [(method, path) for method, path, access, _ in every_route() if access == "open"]
    assert set(path for _, path in open_ones) == {"/health", "/info", "/api/v1/master", "/api/v1/master/telemetry", "/api/v1/auth/login", "/troupe/v1/link", "/troupe/v1/fence",
                                                  "/troupe/v1/blobs/{name}", "/troupe/v1/openapi.json", "/troupe/v1/session",
                                                  "/troupe/v1/connections/{connectionId}"}
    for method, path in open_ones:
        for name in ("../passwords", "%2e%2e%2fpasswords", "passwords", "0" * 64):
            said, _ = raw(port, request(method, path.replace("{name}", name), {}, b"{}" if method == "POST" else b""))
            told = said.replace(b'"secrets"', b"")  # the name of a field in the document of the API
            assert SECRET.encode() not in said and b"secret" not in told and b"Argon" not in said, (method, path, said[:300])
            if "blobs" in path:
                assert status_of(said) in (400, 404), (name, said[:300])
    assert status_of(raw(port, request("POST", "/troupe/v1/fence", {}, b'{"agent":"a","allocation":"1.1","token":"x","dead":true}'))[0]) == 403
    wrong = [raw(port, request("POST", "/api/v1/auth/login", {}, json.dumps({"username": u, "password": "x" * 128, "isHashed": True}).encode()))[0]
             for u in ("admin", "nobody-of-that-name")]
    assert {refusal(said, 401, "login") for said in wrong} == {"invalid credentials"}, "who has an account is not told"


def test_what_a_user_may_not_do_to_another(cluster):
    user, admin = cluster.user, Api(cluster.url(), cluster.log_in("admin"))
    made = admin.ok("POST", "/api/v1/users", {"user": {"username": "ann", "active": True}, "password": "Secret-123"})["user"]["id"]
    for method, path, body in [("PATCH", f"users/{made}", {"displayName": "x"}), ("PATCH", f"users/{made}", {"admin": True}), ("PATCH", "users/2", {"admin": True}),
                               ("POST", f"users/{made}/password", "Other-123"), ("POST", "users", {"user": {"username": "eve"}}),
                               ("PATCH", "users/1", {"active": False})]:
        status, said = user(method, "/api/v1/" + path, body)
        assert status == 403 and said["error"]["reason"] == "PermissionDenied", (method, path, said)
    ann = Api(cluster.url(), Api(cluster.url(), "")("POST", "/api/v1/auth/login", {"username": "ann", "password": "Secret-123"})[1]["token"])
    assert ann.ok("GET", "/api/v1/me")["user"]["username"] == "ann"
    admin.ok("PATCH", f"/api/v1/users/{made}", {"active": False})
    assert ann("GET", "/api/v1/me")[0] == 401, "a token dies with its user"
    assert "hash" not in json.dumps(admin.ok("GET", "/api/v1/users"))


def test_a_task_reads_the_checkpoints_of_its_owner_and_changes_those_of_its_own_experiment_only(cluster):
    other = Task(cluster, 3, 1)
    other.allocation = f"{cluster.other}.00000000-0000-4000-8000-000000000003.1"
    saved = other.save(1)
    assert cluster.tasks[0].ok("GET", f"checkpoints/{saved}")["checkpoint"]["uuid"] == saved
    status, said = cluster.tasks[0].api("POST", f"/api/v1/checkpoints/{saved}/metadata", {"checkpoint": {"uuid": saved, "metadata": {"mine": 2}}})
    assert status == 403, said
    assert other.ok("GET", f"checkpoints/{saved}")["checkpoint"]["uuid"] == saved
    assert cluster.user.ok("GET", f"/api/v1/checkpoints/{saved}")["checkpoint"]["uuid"] == saved
    status, _ = cluster.tasks[0].api("PATCH", "/api/v1/checkpoints", {"checkpoints": [{"uuid": saved, "resources": {"resources": {}}}]})
    assert status == 403


LOGIN = "POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = LOGIN + "Transfer-Encoding: chunked\r\n\r\n"
BAD = [
    ("noise", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 200 + b"\r\n\r\n", 400),
    ("no version", b"GET /health\r\n\r\n", 400),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ("a header without a colon", b"GET /health HTTP/1.1\r\nno colon\r\n\r\n", 400),
    ("a zero byte in a header", b"GET /health HTTP/1.1\r\nX: a\0b\r\n\r\n", 400),
    ("one long header", b"GET /health HTTP/1.1\r\nX: " + b"x" * MIB + b"\r\n\r\n", 400),
    ("many headers", b"GET /health HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(100_000)) + b"\r\n", 400),
    ("a long target", b"GET /" + b"a" * MIB + b" HTTP/1.1\r\n\r\n", 400),
    ("a folded bomb", b"GET /health HTTP/1.1\r\nX: a\r\n" + b" b\r\n" * 100_000 + b"\r\n", 400),
    ("both lengths", LOGIN.encode() + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400),
    ("two lengths", LOGIN.encode() + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", 400),
    ("a negative length", LOGIN.encode() + b"Content-Length: -2\r\n\r\n", 400),
    ("a length of 2^70", LOGIN.encode() + b"Content-Length: 1180591620717411303424\r\n\r\n", 400),
    ("no chunk size", CHUNKED.encode() + b"zz\r\n{}\r\n0\r\n\r\n", 400),
    ("a chunk of 2^64", CHUNKED.encode() + b"fffffffffffffffff\r\n", 400),
    ("a negative chunk", CHUNKED.encode() + b"-2\r\n{}\r\n0\r\n\r\n", 400),
    ("a chunk longer than it says", CHUNKED.encode() + b"1\r\n{}\r\n0\r\n\r\n", 400),
    ("a chunk extension without end", CHUNKED.encode() + b"2;" + b"x" * MIB, 400),
    ("trailers without end", CHUNKED.encode() + b"2\r\n{}\r\n0\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(100_000)), 400),
    ("a body over the bound", LOGIN.encode() + b"Content-Length: 1048577\r\n\r\n", 413),
    ("a chunked body over the bound", CHUNKED.encode() + b"200000\r\n" + b" " * 0x200000 + b"\r\n0\r\n\r\n", 413),
    ("ten thousand small chunks over the bound", CHUNKED.encode() + (b"80\r\n" + b" " * 128 + b"\r\n") * 10_000 + b"0\r\n\r\n", 413),
    ("a body that is not an object", LOGIN.encode() + b"Content-Length: 2\r\n\r\n[]", 400),
    ("a body nested too deep", LOGIN.encode() + b"Content-Length: 100000\r\n\r\n" + b"[" * 100_000, 400),
    ("a number of 100,000 digits", LOGIN.encode() + b"Content-Length: 100014\r\n\r\n" + b'{"username":' + b"9" * 100_000 + b"} ", 400),
    ("a broken escape", b"GET /api/v1/experiments/%zz HTTP/1.1\r\n\r\n", 400),
    ("an escaped zero byte", b"GET /api/v1/experiments/%00 HTTP/1.1\r\n\r\n", 400),
    ("an unknown path", b"GET /api/v2/x HTTP/1.1\r\n\r\n", 404),
    ("a path of another file", b"GET /../../../../etc/passwd HTTP/1.1\r\n\r\n", 404),
    ("a wrong method", b"DELETE /health HTTP/1.1\r\n\r\n", 405),
]


def forwarding_port(cluster):
    return int(next(cluster.data.glob("agent/*/listener")).read_text())


@pytest.mark.parametrize("to", ["the master", "the agent's listener"])
def test_malformed_and_oversized_requests_are_refused(cluster, to):
    port = cluster.port() if to == "the master" else forwarding_port(cluster)
    before = cluster.memory_kib()
    for what, data, status in BAD:
        said, closed = raw(port, data)
        got = status_of(said)
        assert got == status or (got is None and closed) or (to != "the master" and got in (400, 404, 405, 413, 431, 501, 502)), (what, said[:300])
        if to == "the master":
            assert got == status or what in ("one long header", "many headers", "a long target"), (what, said[:300], "an answer, not a reset")
        assert b"root:" not in said
    assert cluster.user.ok("GET", "/api/v1/me")["user"]["username"] == "determined"
    assert cluster.memory_kib() < before + 64 * 1024


def test_a_context_may_have_129_mb_and_anything_else_one(cluster):
    port, bearer = cluster.port(), cluster.user.headers["Authorization"]
    head = lambda path, bytes_: f"POST {path} HTTP/1.1\r\nAuthorization: {bearer}\r\nContent-Length: {bytes_}\r\n\r\n".encode()
    bodies = {path: about["x-body-bytes"] for path, methods in ROUTES.items() for method, about in methods.items() if about["x-body-bytes"] > MIB}
    contexts = {"/api/v1/experiments", "/api/v1/experiments/by-external-id/{externalExperimentId}", "/troupe/v1/experiments", "/api/v1/commands", "/api/v1/notebooks", "/api/v1/shells", "/api/v1/tensorboards", "/api/v1/generic-tasks",
                "/troupe/v1/tasks"}
    assert set(bodies) <= contexts | {"/troupe/v1/configuration", "/api/v1/task/logs", "/task-logs", "/api/v1/checkpoints", "/api/v1/trials/{trialId}/metrics",
                                      "/api/v1/allocations/{allocationId}/all_gather"}, bodies
    assert bodies["/api/v1/experiments"] == 129 * MIB
    assert all(size <= 32 * MIB for path, size in bodies.items() if path not in contexts), bodies
    assert status_of(raw(port, head("/api/v1/experiments", 129 * MIB + 1))[0]) == 400  # too many files, as the answer says
    said, _ = raw(port, head("/api/v1/experiments", 129 * MIB) + b"[" + b" " * (129 * MIB - 1), timeout=180)
    assert status_of(said) == 400, said[:300]
    assert status_of(raw(port, head("/api/v1/experiments/1/kill", MIB + 1))[0]) == 413
    # Without a valid token the server does not wait for a single byte of the body.
    said, _ = raw(port, b"POST /api/v1/experiments HTTP/1.1\r\nContent-Length: 135266304\r\nExpect: 100-continue\r\n\r\n")
    assert status_of(said) == 401, said[:200]


def test_pipelined_requests_are_answered_in_order_and_garbage_ends_them(cluster):
    port, bearer = cluster.port(), cluster.user.headers["Authorization"]
    health, me = b"GET /health HTTP/1.1\r\n\r\n", f"GET /api/v1/me HTTP/1.1\r\nAuthorization: {bearer}\r\n\r\n".encode()
    said, closed = raw(port, health + me + health)
    assert not closed and re.findall(rb"HTTP/1.1 (\d+)", said) == [b"200"] * 3
    assert said.index(b"determined") > said.index(b'"up"')
    said, closed = raw(port, health + b"\x00\x01garbage\r\n\r\n" + me)
    assert closed and re.findall(rb"HTTP/1.1 (\d+)", said) == [b"200", b"400"] and b"determined" not in said
    # Bytes behind a body with two lengths must not become a request.
    smuggled = LOGIN.encode() + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + me
    said, closed = raw(port, smuggled)
    assert closed and re.findall(rb"HTTP/1.1 (\d+)", said) == [b"400"], said


def test_slow_clients_are_dropped_while_others_are_served(cluster):
    """Each client sends a byte every half second, so that only a limit for the whole request ends it. All kinds run at once; the limit is
    30 s."""
    port, forward = cluster.port(), forwarding_port(cluster)
    bearer = cluster.user.headers["Authorization"]
    before = cluster.descriptors()
    kinds = {
        "silent": (port, b"", b""),
        "slow head": (port, b"GET /hea", b"X"),
        "slow header lines": (port, b"GET /health HTTP/1.1\r\n", b"X: y\r\n"),
        "slow body": (port, LOGIN.encode() + b"Content-Length: 1000\r\n\r\n{", b" "),
        "slow chunks": (port, CHUNKED.encode(), b"1\r\n \r\n"),
        "silent in the listener": (forward, b"GET /api", b""),
    }
    began = time.monotonic()
    open_ones = {}
    for what, (to, first, drip) in kinds.items():
        s = socket.create_connection(("127.0.0.1", to), timeout=120)
        s.sendall(first)
        open_ones[s] = (what, drip)
    reader = socket.create_connection(("127.0.0.1", port), timeout=120)  # sends many requests and reads no answer
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.sendall(f"GET /troupe/v1/openapi.json HTTP/1.1\r\nAuthorization: {bearer}\r\n\r\n".encode() * 400)
    while open_ones and time.monotonic() < began + 200:
        for s in select.select(list(open_ones), [], [], 0.5)[0]:
            try:
                if not s.recv(4096):
                    s.close()
                    del open_ones[s]
            except ConnectionError:
                s.close()
                del open_ones[s]
        for s, (_, drip) in list(open_ones.items()):
            try:
                s.sendall(drip)
            except OSError:
                s.close()
                del open_ones[s]
        assert cluster.user.ok("GET", "/api/v1/me", timeout=120)["user"]
    assert not open_ones, [what for what, _ in open_ones.values()]
    wait_for(lambda: cluster.descriptors() <= before, 20, what=lambda: f"{cluster.descriptors()} descriptors, {before} before")
    reader.close()


def test_noise_on_every_port_changes_nothing(cluster):
    agent = next(cluster.data.glob("agent/*/listener")).parent
    ports = [cluster.port(), forwarding_port(cluster), int((agent / "harness").read_text().strip().rsplit(":", 1)[-1])]
    seed = 20261121
    for port in ports:
        for n in range(40):
            send_noise(port, hashlib.shake_128(f"{seed}.{n}".encode()).digest(1 << (n % 14)))
    cluster.tasks[0].report("validation", 1, {"loss": 1})
    assert cluster.process.poll() is None
    for number, task in enumerate(cluster.tasks):
        task.end(0)
    assert cluster.wait_end(cluster.experiment) == "COMPLETED"
    status, said = cluster.tasks[0].api("GET", "/api/v1/me")
    assert status == 401 and said["error"]["reason"] == "Unauthenticated", "a token dies with its allocation"


def printed_passwords(cluster):
    return dict(re.findall(r"\b(admin|determined)\b\W+([A-Za-z0-9_-]{12,})", (cluster.root / "up.log").read_text()))


def test_passwords_where_others_can_reach_the_server(tmp_path):
    cluster = Guarded(tmp_path)
    cluster.listen = "0.0.0.0:0"
    cluster.up_words = ("--plain-http",)
    try:
        cluster.up(1)
        login = lambda who, password: Api(cluster.url(), "")("POST", "/api/v1/auth/login", {"username": who, "password": password})[0]
        first = printed_passwords(cluster)
        assert set(first) == {"admin", "determined"} and first["admin"] != first["determined"], (cluster.root / "up.log").read_text()
        for who, password in first.items():
            assert (login(who, ""), login(who, "wrong"), login(who, password)) == (401, 401, 200)
        stored = (cluster.data / "master" / "passwords").read_text()
        assert stored.count("$argon2id$") == 2 and not any(password in stored for password in first.values())
        assert (cluster.data / "master" / "passwords").stat().st_mode & 0o77 == 0
        assert (cluster.data / "master").stat().st_mode & 0o7 == 0, "the journal is not for the accounts that tasks run as"
        cluster.down()
        cluster.up(1)
        assert (cluster.root / "up.log").read_text().count(first["admin"]) == 1, "they are shown once"
        assert login("admin", first["admin"]) == 200
    finally:
        cluster.close()


def test_the_initial_password_is_of_both_users_everywhere(tmp_path):
    cluster = Guarded(tmp_path)
    cluster.env["TROUPE_INITIAL_USER_PASSWORD"] = "Of-both-1"
    try:
        cluster.up(1)
        login = lambda who, password: Api(cluster.url(), "")("POST", "/api/v1/auth/login", {"username": who, "password": password})[0]
        for who in ("admin", "determined"):
            assert (login(who, ""), login(who, "Of-both-1")) == (401, 200)
        assert "Of-both-1" not in (cluster.root / "up.log").read_text()
    finally:
        cluster.close()
