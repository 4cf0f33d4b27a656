"""Services of a trial through the proxy: a real HTTP, WebSocket and TCP server in a trial, the tunnel of the stock client, and ours."""


import hashlib
import http.client
import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import urllib.parse

import pytest

from cluster_under_test import BINARY, Cluster, free_port, wait_for

SERVER = r'''
import base64, contextlib, hashlib, http.server, json, os, socket, socketserver, struct, threading

seen = open(os.environ["SEEN"], "a", buffering=1)
go_on = threading.Event()

class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *words): pass
    def setup(self):
        seen.write("connection\n")
        super().setup()
    def answer(self, body, **headers):
        self.send_response(200)
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
    def body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            left = int(self.headers.get("Content-Length", 0))
            while left:
                part = self.rfile.read(min(left, 65536))
                left -= len(part)
                yield part
    def do_GET(self):
        seen.write(self.path + "\n")
        if self.headers.get("Upgrade") == "websocket":
            return self.websocket()
        path = self.path.partition("?")[0]
        if path.endswith("/big"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for n in range(300):
                part = bytes([n % 251]) * 65536
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.write(b"0\r\n\r\n")
        elif path.endswith(("/sized", "/short")):
            body = bytes(n * 7 % 251 for n in range(1 << 16)) * 48 + b"end"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if path.endswith("/sized") else body[:300000])
            self.close_connection = path.endswith("/short")
        elif path.endswith("/drip"):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for n in range(5):
                self.wfile.write(b"2\r\n%d\n\r\n" % n)
                if n == 0:
                    go_on.wait(600)
            self.wfile.write(b"0\r\n\r\n")
        elif path.endswith("/go-on"):
            go_on.set()
            self.answer(b"")
        elif path.endswith(("/wait", "/held", "/endless")):  # until the proxy hangs up
            self.close_connection = True
            if not path.endswith("/wait"):
                self.send_response(200)
                self.send_header("Content-Length", str(1 << 40))
                self.end_headers()
                self.wfile.write(b"begun")
            with contextlib.suppress(OSError):
                while path.endswith("/endless"):
                    self.wfile.write(bytes(65536))
                self.connection.recv(1)
        elif path.endswith("/until-the-end"):
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"x" * 100000)
            self.close_connection = True
        elif path.endswith("/no-end"):
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b"begun")
            self.connection.recv(1)
            self.close_connection = True
        elif path.endswith("/no-chunk"):  # head and body in one piece
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
            self.close_connection = True
        elif path.endswith("/die"):
            os._exit(1)
        elif path.endswith("/hang-up"):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            body = json.dumps({"path": self.path, "headers": dict(self.headers.items())}).encode()
            self.answer(body, Set_Cookie="theirs=1; Path=/; Domain=localhost", Service_Worker_Allowed="/", X_Own="kept")
    do_HEAD = do_GET
    def do_POST(self):
        seen.write(self.path + "\n")
        if self.path.endswith("/hang-up"):
            self.rfile.read1(1)
            self.close_connection = True
            return self.connection.shutdown(socket.SHUT_RDWR)
        digest, size = hashlib.sha256(), 0
        for part in self.body():
            digest.update(part)
            size += len(part)
        self.answer(json.dumps({"sha256": digest.hexdigest(), "size": size}).encode())
    do_PUT = do_POST
    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        while data := self.connection.recv(65536):  # raw bytes: the proxy looks at none of them
            self.connection.sendall(data[::-1])
        self.close_connection = True

class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        seen.write("tcp\n")
        while data := self.request.recv(65536):
            if data == b"bye\n":
                return
            self.request.sendall(data)
        self.request.sendall(b"[end]")  # after a half-close

class Pages(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 256
class Echoes(socketserver.ThreadingTCPServer):
    daemon_threads, allow_reuse_address, request_queue_size = True, True, 256

pages = Pages(("127.0.0.1", int(os.environ["HTTP_PORT"])), Page)
echoes = [Echoes(("127.0.0.1", int(os.environ[name])), Echo) for name in ("TCP_PORT", "OPEN_PORT")]
for one in echoes:
    threading.Thread(target=one.serve_forever, daemon=True).start()
print("listening", flush=True)
pages.serve_forever()
'''
CONFIG = """
name: services
entrypoint: python3 server.py
searcher: {{name: single, metric: loss}}
max_restarts: 0
environment:
  environment_variables: ["SEEN={seen}", "HTTP_PORT={http}", "TCP_PORT={tcp}", "OPEN_PORT={open}"]
  proxy_ports:
  - {{proxy_port: {http}, default_service_id: true}}
  - {{proxy_port: {tcp}, proxy_tcp: true}}
  - {{proxy_port: {open}, proxy_tcp: true, unauthenticated: true}}
  - {{proxy_port: {dead}}}
"""


class Services(Cluster):
    def start(self):
        self.listen = f"127.0.0.1:{free_port()}"
        self.up()
        self.port = urllib.parse.urlsplit(self.url()).port
        self.ports = {name: free_port() for name in ("http", "tcp", "open", "dead")}
        job = self.root / "job"
        job.mkdir()
        (job / "server.py").write_text(SERVER)
        self.seen_file = self.root / "seen"
        config = self.root / "job.yaml"
        config.write_text(CONFIG.format(seen=self.seen_file, **self.ports))
        self.experiment = self.json("experiment", "create", str(config), str(job))["id"]
        self.token = self.log_in()
        self.bearer = {"Authorization": f"Bearer {self.token}"}
        self.task = f"{self.experiment}.00000000-0000-4000-8000-000000000001"
        wait_for(lambda: self.ask(f"/proxy/{self.task}/", self.bearer)[0] == 200, 60, 0.2, lambda: self.ask(f"/proxy/{self.task}/", self.bearer))

    def log_in(self, name="determined"):
        status, _, body = self.ask("/api/v1/auth/login", {"Content-Type": "application/json"}, "POST",
                                   json.dumps({"username": name, "password": "", "isHashed": True}).encode())
        assert status == 200
        return json.loads(body)["token"]

    def ask(self, target, headers=None, method="GET", body=None, host=None):
        """Sends a request with exactly these headers. Returns (status, headers, body)."""
        there = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            there.putrequest(method, target, skip_host=host is not None, skip_accept_encoding=True)
            if host is not None:
                there.putheader("Host", host)
            for name, text in (headers or {}).items():
                there.putheader(name, text)
            if body is not None:
                there.putheader("Content-Length", str(len(body)))
            there.endheaders(body)
            answer = there.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            there.close()

    def seen(self):
        return self.seen_file.read_text().splitlines() if self.seen_file.exists() else []

    def raw(self, head, rest=b""):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        s.sendall(head.replace("\n", "\r\n").encode() + rest)
        return s

    def websocket(self, service, path="", headers=(), bearer=True):
        """Makes a WebSocket handshake. Returns the socket and the head of the answer."""
        lines = [f"GET /proxy/{service}/{path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *headers]
        if bearer:
            lines.append(f"Authorization: Bearer {self.token}")
        s = self.raw("\n".join(lines) + "\n\n")
        head = b""
        while b"\r\n\r\n" not in head:
            more = s.recv(1)
            assert more, head
            head += more
        return s, head.decode()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Services(tmp_path_factory.mktemp("proxy")) as cluster:
        cluster.start()
        yield cluster


def frame(payload, kind=2, first=0x80):
    mask = os.urandom(4)
    n = len(payload)
    length = bytes([0x80 | n]) if n < 126 else bytes([0x80 | 126]) + struct.pack(">H", n) if n < 65536 else bytes([0x80 | 127]) + struct.pack(">Q", n)
    return bytes([first | kind]) + length + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(payload))


def read_exactly(s, n):
    got = b""
    while len(got) < n:
        more = s.recv(n - len(got))
        assert more, f"ended after {len(got)} of {n} bytes"
        got += more
    return got


def read_frame(s):
    first, n = read_exactly(s, 2)
    n = struct.unpack(">H", read_exactly(s, 2))[0] if n == 126 else struct.unpack(">Q", read_exactly(s, 8))[0] if n == 127 else n
    return first & 15, read_exactly(s, n)


def test_a_request_reaches_the_service_without_the_viewers_credentials(cluster):
    headers = {**cluster.bearer, "Cookie": f"auth={cluster.token}; theirs=1; troupe-12345678=x", "X-Forwarded-For": "6.6.6.6",
               "Grpc-Metadata-x-user-token": f"Bearer {cluster.token}", "X-Mine": "passes"}
    status, answered, body = cluster.ask(f"/proxy/{cluster.task}/some/path%2Fhere?a=1&token={cluster.token}&b=2", headers)
    assert status == 200
    told = json.loads(body)
    assert told["path"] == f"/proxy/{cluster.task}/some/path%2Fhere?a=1&b=2"
    assert cluster.token not in body.decode()
    got = told["headers"]
    assert got["Cookie"] == "theirs=1" and got["X-Mine"] == "passes" and got["X-Forwarded-For"] == "127.0.0.1"
    assert got["Host"] == f"127.0.0.1:{cluster.port}" and got["X-Real-IP"] == "127.0.0.1" and got["X-Forwarded-Proto"] == "http"
    assert answered["Set-Cookie"] == "theirs=1; Path=/" and answered["X-Own"] == "kept"
    assert "Service-Worker-Allowed" not in answered and answered["Content-Security-Policy"] == "sandbox" and answered["Referrer-Policy"] == "no-referrer"
    # All tokens of this cluster are taken out of the query, wherever they stand. Tokens of the service itself stay.
    for query, rest in ((f"token=&token={cluster.token}", "?token="), (f"a=1&token={cluster.token}&token=theirs&token={cluster.token}", "?a=1&token=theirs"),
                        ("token=theirs&&b=2&", "?token=theirs&&b=2&")):
        status, _, body = cluster.ask(f"/proxy/{cluster.task}/x?{query}", cluster.bearer)
        assert status == 200 and json.loads(body)["path"] == f"/proxy/{cluster.task}/x{rest}", (query, body)
    # The token is not in the log of the node.
    assert cluster.token not in (cluster.root / "up.log").read_text()


def test_a_large_body_of_known_size_arrives_whole_or_is_seen_to_be_cut(cluster):
    body = bytes(n * 7 % 251 for n in range(1 << 16)) * 48 + b"end"
    there = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=120)
    for _ in range(3):  # All on one connection: a rest of a body would be read as the next answer.
        there.request("GET", f"/proxy/{cluster.task}/sized", headers=cluster.bearer)
        answer = there.getresponse()
        assert answer.status == 200 and answer.read() == body
    there.request("GET", f"/proxy/{cluster.task}/short", headers=cluster.bearer)
    with pytest.raises(http.client.IncompleteRead) as cut:
        there.getresponse().read()
    assert cut.value.partial == body[:300000]
    there.close()
    left = [socket.create_connection(("127.0.0.1", cluster.port), timeout=120) for _ in range(8)]
    for one in left:  # A client that reads a little and closes ends only its own connection.
        one.sendall(f"GET /proxy/{cluster.task}/sized HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {cluster.bearer['Authorization']}\r\n\r\n".encode())
        assert one.recv(1000)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()
    assert cluster.ask(f"/proxy/{cluster.task}/sized", cluster.bearer)[2] == body


def test_bodies_go_both_ways_in_pieces(cluster):
    data = random.Random(7).randbytes(20 << 20)
    status, _, body = cluster.ask(f"/proxy/{cluster.task}/up", cluster.bearer, "POST", data)
    assert status == 200 and json.loads(body) == {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    there = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=120)
    there.request("PUT", f"/proxy/{cluster.task}/up", iter([data[:100], data[100:3 << 20], data[3 << 20:]]), cluster.bearer, encode_chunked=True)
    assert json.loads(there.getresponse().read()) == {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    status, _, body = cluster.ask(f"/proxy/{cluster.task}/big", cluster.bearer)
    assert status == 200 and body == b"".join(bytes([n % 251]) * 65536 for n in range(300))
    assert cluster.ask(f"/proxy/{cluster.task}/until-the-end", cluster.bearer)[2] == b"x" * 100000
    status, answered, body = cluster.ask(f"/proxy/{cluster.task}/x", cluster.bearer, "HEAD")
    assert status == 200 and body == b"" and int(answered["Content-Length"]) > 0
    there.request("GET", f"/proxy/{cluster.task}/drip", headers=cluster.bearer)
    answer = there.getresponse()
    assert answer.readline() == b"0\n", "a stream is passed on as it comes: its end waits until this line is here"
    assert cluster.ask(f"/proxy/{cluster.task}/go-on", cluster.bearer)[0] == 200
    assert answer.read() == b"1\n2\n3\n4\n"
    there.request("GET", f"/proxy/{cluster.task}/again", headers=cluster.bearer)  # on the same connection
    assert there.getresponse().status == 200
    there.close()


def answer_to_raw(cluster, head, body):
    """Sends these bytes, whose body does not end. Returns the status and the text of the proxy's answer."""
    with socket.create_connection(("127.0.0.1", cluster.port), timeout=120) as there:
        there.sendall(f"{head}\r\nHost: 127.0.0.1:{cluster.port}\r\nAuthorization: {cluster.bearer['Authorization']}\r\n\r\n".encode() + body)
        answer = http.client.HTTPResponse(there)
        answer.begin()
        return answer.status, answer.read().decode()


def test_a_service_that_ends_is_an_answer_and_one_that_is_not_there_another(cluster):
    assert cluster.ask(f"/proxy/{cluster.task}/hang-up", cluster.bearer)[0] == 502
    place = f"/proxy/{cluster.task}/hang-up HTTP/1.1\r\n"
    assert answer_to_raw(cluster, f"POST {place}Content-Length: 1000000", b"x" * 1000)[0] == 502, "while the body still comes"
    assert answer_to_raw(cluster, f"PUT {place}Transfer-Encoding: chunked", b"3\r\nabc\r\n")[0] == 502
    status, _, text = cluster.ask(f"/proxy/{cluster.task}/no-chunk", cluster.bearer)
    assert status == 502 and b"answers what is no HTTP" in text
    for size in (b"zz", b"-1", b"FFFFFFFFFFFFFFFFF"):
        status, said = answer_to_raw(cluster, f"POST /proxy/{cluster.task}/up HTTP/1.1\r\nTransfer-Encoding: chunked", size + b"\r\nabc\r\n")
        assert status == 400 and "the body of the request is no HTTP" in said, size
    status, answered, body = cluster.ask(f"/proxy/{cluster.task}:{cluster.ports['dead']}/", cluster.bearer)
    assert status == 503 and answered["Retry-After"] == "2" and b"the service does not answer: port " in body
    assert cluster.ask(f"/proxy/{cluster.task}/", cluster.bearer)[0] == 200


def test_each_credential_opens_what_it_may(cluster):
    own = f"/proxy/{cluster.task}/"
    for headers, target, status in [
        ({}, own, 401),
        (cluster.bearer, own, 200),
        ({"Grpc-Metadata-x-user-token": f"Bearer {cluster.token}"}, own, 200),
        ({}, own + f"?token={cluster.token}", 200),
        ({}, own + "?token=garbage", 401),
        ({"Authorization": "Bearer garbage"}, own, 401),
        ({"Authorization": f"Bearer {cluster.token}x"}, own, 401),
        ({"Cookie": f"auth={cluster.token}"}, own, 401),  # A cookie is never a credential here.
        (cluster.bearer, f"/proxy/{cluster.experiment}.00000000-0000-4000-8000-000000000009/", 404),
        (cluster.bearer, f"/proxy/9{cluster.task}/", 404),
        (cluster.bearer, f"/proxy/{cluster.task}:22/", 404),
        (cluster.bearer, "/proxy/169.254.169.254/", 404),
        (cluster.bearer, "/proxy/localhost:22/", 404),
        (cluster.bearer, f"/proxy/{cluster.task}/..%2fx", 400),
        (cluster.bearer, f"/proxy/{cluster.task}//x", 400),
        (cluster.bearer, f"/proxy/{cluster.task}/%00", 400),
        ({**cluster.bearer, "Sec-Fetch-Mode": "cors"}, own, 200),  # Node's fetch, which sends no other header of this kind.
        ({"Sec-Fetch-Mode": "cors", "Cookie": f"auth={cluster.token}"}, own, 401),
        ({**cluster.bearer, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}, own, 403),
        ({**cluster.bearer, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Site": "cross-site"}, own, 403),
    ]:
        before = cluster.seen()
        got = cluster.ask(target, headers)
        assert got[0] == status, (headers, target, got)
        if status != 200:
            assert cluster.seen() == before, "nothing was dialled"


def test_requests_that_mean_two_things_are_refused(cluster):
    def status(head, rest=b""):
        s = cluster.raw(head, rest)
        got = s.recv(65536)
        s.close()
        return got.split(b" ")[1] if got else b"closed"

    own = f"POST /proxy/{cluster.task}/ HTTP/1.1\nHost: 127.0.0.1:{cluster.port}\nAuthorization: Bearer {cluster.token}\n"
    before = cluster.seen()
    assert status(own + "Content-Length: 5\nTransfer-Encoding: chunked\n\n", b"0\r\n\r\n") == b"400"
    assert status(own + "Content-Length: 5\nContent-Length: 6\n\n", b"hello") == b"400"
    assert status(own + "".join(f"X-{n}: y\n" for n in range(10_000)) + "\n") in (b"400", b"431", b"closed")
    assert status(own.replace("HTTP/1.1", "HTTP/1.1\nTransfer-Encoding: chunked, gzip") + "\n") in (b"400", b"501")
    assert status(own + "Host: elsewhere.example\n\n") == b"400"
    assert cluster.seen() == before
    # The second request on a connection is checked as the first one is: it does not inherit the credential.
    two = (f"GET /proxy/{cluster.task}/one HTTP/1.1\nHost: 127.0.0.1:{cluster.port}\nAuthorization: Bearer {cluster.token}\n\n"
           f"GET /proxy/{cluster.task}/two HTTP/1.1\nHost: 127.0.0.1:{cluster.port}\n\n")
    s = cluster.raw(two)
    got = b""
    while got.count(b"HTTP/1.1 ") < 2:
        got += s.recv(65536)
    s.close()
    assert b"HTTP/1.1 200" in got and b"HTTP/1.1 401" in got
    assert not any(line.endswith("/two") for line in cluster.seen())


def test_a_websocket_passes_as_it_is(cluster):
    s, head = cluster.websocket(cluster.task, "ws?x=1")
    assert head.startswith("HTTP/1.1 101") and "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
    s.sendall(b"any bytes at all")
    assert read_exactly(s, 16) == b"any bytes at all"[::-1]
    s.close()
    # A service without a WebSocket there answers itself. A head that is not a complete handshake is not passed on.
    for missing in ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"):
        lines = [f"GET /proxy/{cluster.task}/ws HTTP/1.1", f"Host: 127.0.0.1:{cluster.port}", "Connection: Upgrade", "Upgrade: websocket",
                 "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", f"Authorization: Bearer {cluster.token}"]
        lines.remove(missing)
        before = cluster.seen()
        s = cluster.raw("\n".join(lines) + "\n\n")
        assert s.recv(65536).startswith(b"HTTP/1.1 400")
        assert cluster.seen() == before
        s.close()
    # A handshake with a body is not passed on either, because its bytes would count as bytes of the connection.
    for body in ("Content-Length: 5\n\nabcde", "Transfer-Encoding: chunked\n\n0"):
        for upgrade in ("websocket", "troupe-tunnel"):
            lines = [f"GET /proxy/{cluster.task}:{cluster.ports['tcp']}/ HTTP/1.1", f"Host: 127.0.0.1:{cluster.port}", "Connection: Upgrade", f"Upgrade: {upgrade}",
                     "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", f"Authorization: Bearer {cluster.token}", body]
            s = cluster.raw("\n".join(lines) + "\n\n")
            assert s.recv(65536).startswith(b"HTTP/1.1 400"), (body, upgrade)
            s.close()


def test_a_client_that_sends_no_more_after_its_request_hears_the_answer(cluster):
    """`printf ... | nc -N` is such a client."""
    head = f"Host: 127.0.0.1:{cluster.port}\nAuthorization: Bearer {cluster.token}\n"
    for words, body, answer in (("GET /proxy/TASK/drip HTTP/1.1\n", b"", b"2\r\n4\n\r\n0\r\n\r\n"), ("GET /proxy/TASK/x HTTP/1.0\n", b"", b'"path": '),
                                ("POST /proxy/TASK/upload HTTP/1.1\nContent-Length: 4\n", b"body", b'"size": 4'), ("GET /api/v1/master HTTP/1.1\n", b"", b"clusterId")):
        if "drip" in words:
            assert cluster.ask(f"/proxy/{cluster.task}/go-on", cluster.bearer)[0] == 200
        s = cluster.raw(words.replace("TASK", cluster.task) + head + "\n", body)
        s.shutdown(socket.SHUT_WR)
        got = b""
        while more := s.recv(65536):
            got += more
        assert got.startswith(b"HTTP/1.1 200") or got.startswith(b"HTTP/1.0 200"), (words, got)
        assert answer in got, (words, got)
        s.close()


def test_an_offer_of_http2_is_declined(cluster):
    """Clients in Java make this offer with each request."""
    h2 = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAEAAEAAAAIAAAAB"}
    status, _, body = cluster.ask(f"/proxy/{cluster.task}/x", {**cluster.bearer, **h2})
    assert status == 200 and not {"Upgrade", "HTTP2-Settings"} & set(json.loads(body)["headers"]), body
    assert cluster.ask(f"/proxy/{cluster.task}/up", {**cluster.bearer, **h2}, "POST", b"abc")[0] == 200
    assert cluster.ask(f"/proxy/{cluster.task}:{cluster.ports['tcp']}/", {**cluster.bearer, **h2})[0] == 400


def test_bytes_travel_in_binary_frames(cluster):
    service = f"{cluster.task}:{cluster.ports['tcp']}"
    assert cluster.ask(f"/proxy/{service}/", cluster.bearer)[0] == 400, "a plain request to a TCP service"
    s, head = cluster.websocket(service)
    assert head.startswith("HTTP/1.1 101"), head
    data = random.Random(3).randbytes(100_000)
    s.sendall(frame(data[:10]) + frame(b"ping", 9) + frame(b"") + frame(data[10:]))
    got, pongs = b"", 0
    while len(got) < len(data):
        kind, payload = read_frame(s)
        pongs += kind == 10 and payload == b"ping"
        got += payload if kind == 2 else b""
    assert got == data and pongs == 1
    s.sendall(frame(b"bye\n"))  # The service ends, and the client's side closes at once.
    assert read_frame(s) == (8, struct.pack(">H", 1000))
    s.sendall(frame(b"", 8))
    assert s.recv(1) == b""
    for bad, code in [(frame(b"text", 1), 1003), (frame(b"part", 2, 0), 1003), (b"\x82\xff" + struct.pack(">Q", 2 << 30) + b"mask", 1009),
                      (b"\x82\x01x", 1002)]:
        s, _ = cluster.websocket(service)
        s.sendall(bad)
        assert read_frame(s)[1][:2] == struct.pack(">H", code)
        s.close()
    s, head = cluster.websocket(service, headers=["Origin: http://elsewhere.example"])
    assert head.startswith("HTTP/1.1 403")
    s, head = cluster.websocket(service, bearer=False)
    assert head.startswith("HTTP/1.1 401")
    s, head = cluster.websocket(f"{cluster.task}:{cluster.ports['open']}", bearer=False)
    assert head.startswith("HTTP/1.1 101"), "open to strangers, as its configuration says"
    s.close()


def test_the_stock_tunnel_carries_bytes(cluster):
    data = random.Random(5).randbytes(4 << 20)
    env = {**cluster.env, "DET_USER": "determined", "DET_PASS": "", "HOME": str(cluster.root)}
    listener = free_port()
    tunnel = subprocess.Popen([sys.executable, "-m", "determined.cli.tunnel", "--auth", "--listener", str(listener), cluster.url(),
                               f"{cluster.task}:{cluster.ports['tcp']}"], env=env, stdout=cluster.log, stderr=cluster.log)
    try:
        def connected():
            try:
                return socket.create_connection(("127.0.0.1", listener), timeout=120)
            except OSError:
                assert tunnel.poll() is None, (cluster.root / "up.log").read_text()[-2000:]

        s = wait_for(connected, 60)
        threading.Thread(target=s.sendall, args=(data,), daemon=True).start()
        assert read_exactly(s, len(data)) == data
        s.close()
    finally:
        tunnel.kill()
        tunnel.wait()


def test_our_tunnel_passes_half_closes(cluster):
    service = f"{cluster.task}:{cluster.ports['tcp']}"
    data = random.Random(6).randbytes(8 << 20)
    done = subprocess.run([BINARY, "tunnel", service, "--master", cluster.url()], input=data, env=cluster.env, capture_output=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert done.stdout == data + b"[end]"
    for name, code in [(f"{cluster.task}:22", b"service not found"), (f"{cluster.task}:{cluster.ports['dead']}", b"refused")]:
        done = subprocess.run([BINARY, "tunnel", name, "--master", cluster.url()], input=b"", env=cluster.env, capture_output=True, timeout=180)
        assert done.returncode != 0 and code in done.stderr, done.stderr
    # A service that is open to everybody asks for no login, because an editor that runs ssh may have none.
    for name, code, says in (("open", 0, b""), ("tcp", 4, b"not logged in")):
        done = subprocess.run([BINARY, "tunnel", f"{cluster.task}:{cluster.ports[name]}", "--master", cluster.url()], input=b"in",
                              env={**cluster.env, "TROUPE_USER": "of-no-account"}, capture_output=True, timeout=180)
        assert done.returncode == code and says in done.stderr, done
        assert done.stdout == (b"" if code else b"in[end]")
    tunnel = subprocess.Popen([BINARY, "tunnel", cluster.task, "--listen", "127.0.0.1:0", "--master", cluster.url()], env=cluster.env,
                              stderr=subprocess.PIPE, text=True)
    try:
        line = tunnel.stderr.readline()
        port = int(line.split(" to ")[0].rsplit(":", 1)[1])
        for _ in range(3):
            there = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            there.request("GET", "/x")
            assert json.loads(there.getresponse().read())["path"] == "/x"
            there.close()
    finally:
        tunnel.kill()
        tunnel.wait()


class Apart(Services):
    """A master, and an agent in a process of its own."""

    def up(self, slots=2):
        self.process = subprocess.Popen([BINARY, "master", "--data-dir", str(self.data), "--listen", self.listen, "--agent-listen", "127.0.0.1:0"],
                                        env=self.env, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_for(self.answers)
        self.agent = subprocess.Popen([BINARY, "agent", "--master", self.listen, "--data-dir", f"{self.data}-agent", "--slots", str(slots)],
                                      env=self.env, stdout=self.log, stderr=self.log, start_new_session=True)
        wait_for(lambda: self.json("status")["slots"]["total"] == slots)

    def kill_agent(self):
        self.agent.kill()
        self.agent.wait()


@pytest.mark.parametrize("what", ["agent", "master"])
def test_a_death_is_told_apart_from_an_end_of_the_service(tmp_path, what):
    cluster = Apart(tmp_path)

    def probed():  # counts the master's connections to viewers and to the agent on which TCP keepalives run
        rows = [line.split() for line in open("/proc/net/tcp")][1:]
        return sum(int(row[1][9:], 16) == cluster.port and row[3] == "01" and row[5].startswith("02:") for row in rows)

    forward = None
    try:
        cluster.start()
        service = f"{cluster.task}:{cluster.ports['tcp']}"
        ended, _ = cluster.websocket(service)
        ended.sendall(frame(b"bye\n"))
        assert read_frame(ended) == (8, struct.pack(">H", 1000))
        words = [BINARY, "tunnel", service, "--master", cluster.url()]
        done = subprocess.run(words, input=b"all of it", env=cluster.env, capture_output=True, timeout=180)
        assert (done.returncode, done.stdout) == (0, b"all of it[end]"), done.stderr
        assert len(cluster.ask(f"/proxy/{cluster.task}/until-the-end", cluster.bearer)[2]) == 100_000

        framed, _ = cluster.websocket(service)
        framed.sendall(frame(b"some"))
        assert read_frame(framed) == (2, b"some")
        tunnel = subprocess.Popen(words, env=cluster.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        tunnel.stdin.write(b"some")
        tunnel.stdin.flush()
        assert tunnel.stdout.read(4) == b"some"
        wait_for(lambda: probed() >= 4)
        forward = subprocess.Popen([*words, "--listen", "127.0.0.1:0"], env=cluster.env, stderr=subprocess.PIPE, text=True)
        local = socket.create_connection(("127.0.0.1", int(forward.stderr.readline().split(" to ")[0].rsplit(":", 1)[1])), timeout=120)
        local.sendall(b"some")
        assert read_exactly(local, 4) == b"some"
        answer = cluster.raw(f"GET /proxy/{cluster.task}/no-end HTTP/1.1\nHost: 127.0.0.1:{cluster.port}\nAuthorization: Bearer {cluster.token}\n\n")
        got = b""
        while not got.endswith(b"begun"):
            got += answer.recv(1)
        if what == "agent":
            cluster.kill_agent()
            assert read_frame(framed) == (8, struct.pack(">H", 1011) + b"the service is gone")
        else:
            cluster.kill_node()
            with pytest.raises(ConnectionResetError):
                assert framed.recv(100) == b"", "more came"
        for one in (answer, local):
            with pytest.raises(ConnectionResetError):
                assert one.recv(100) == b"", "more came"
        out, err = tunnel.communicate(timeout=120)
        assert tunnel.returncode != 0 and b"the connection broke" in err, (tunnel.returncode, out, err)
    finally:
        if forward:
            forward.kill()
            forward.wait()
        cluster.kill_agent()
        cluster.close()


def test_a_page_has_an_origin_of_its_own(cluster):
    label = cluster.task.replace(".", "-")
    own = f"{label}.localhost:{cluster.port}"
    browser = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
    status, answered, _ = cluster.ask(f"/det/interactive/{cluster.task}/jupyter-lab/name/pool/wait", {"Cookie": f"auth={cluster.token}", **browser})
    assert status == 303 and answered["Location"].startswith(f"http://{own}/proxy/{cluster.task}/?troupe_code=")
    way = urllib.parse.urlsplit(answered["Location"])
    target = f"{way.path}?{way.query}"
    status, answered, _ = cluster.ask(target, browser, host=own)
    assert status == 303 and answered["Location"] == f"/proxy/{cluster.task}/" and answered["Referrer-Policy"] == "no-referrer"
    cookie = answered["Set-Cookie"]
    assert cookie.startswith("troupe-task-1=v1.1.") and f"Path=/proxy/{cluster.task}/" in cookie
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Domain" not in cookie
    pass_ = {"Cookie": cookie.partition(";")[0]}
    assert cluster.ask(target, browser, host=own)[0] == 401, "a code works once"
    status, answered, body = cluster.ask(f"/proxy/{cluster.task}/page", {**browser, **pass_}, host=own)
    assert status == 200 and "Cookie" not in json.loads(body)["headers"] and "Content-Security-Policy" not in answered
    assert answered["Referrer-Policy"] == "no-referrer" and "Referer" not in json.loads(body)["headers"]
    fetch = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    _, _, body = cluster.ask(f"/proxy/{cluster.task}/page", {**pass_, **fetch, "Sec-Fetch-Site": "same-origin"}, host=own)
    assert json.loads(body)["headers"]["Referer"] == f"http://{own}/proxy/{cluster.task}/", "JupyterLab exports notebooks to its own pages alone"
    for headers, target, host, wanted in [
        ({**pass_, **fetch, "Sec-Fetch-Site": "same-origin"}, f"/proxy/{cluster.task}/", own, 200),
        ({**pass_, **fetch, "Sec-Fetch-Site": "same-site"}, f"/proxy/{cluster.task}/", own, 403),
        ({**pass_, **fetch, "Sec-Fetch-Site": "cross-site"}, f"/proxy/{cluster.task}/", own, 403),
        ({**pass_, "Origin": "http://other.localhost"}, f"/proxy/{cluster.task}/", own, 403),
        ({**pass_, **browser, "Sec-Fetch-Dest": "iframe", "Sec-Fetch-Site": "cross-site"}, f"/proxy/{cluster.task}/", own, 403),
        (pass_, f"/proxy/{cluster.task}/", None, 401),                      # the origin of the API
        (pass_, "/api/v1/me", None, 401),
        (pass_, "/api/v1/me", own, 403),                                    # The origin of a task does not have the API.
        (cluster.bearer, "/api/v1/me", own, 403),
        (pass_, f"/proxy/{cluster.task}/", f"other.localhost:{cluster.port}", 403),
        ({"Cookie": pass_["Cookie"][:-1] + ("1" if pass_["Cookie"].endswith("0") else "0")}, f"/proxy/{cluster.task}/", own, 401),
        ({"Cookie": f"troupe-task-1={cluster.token}"}, "/api/v1/me", None, 401),
        ({"Authorization": "Bearer " + pass_["Cookie"].partition("=")[2]}, "/api/v1/me", None, 401),
    ]:
        got = cluster.ask(target, headers, host=host)
        assert got[0] == wanted, (headers, target, host, got)
    # An address for which the browser would not send the page's cookie is redirected before anything else is checked.
    for path in (f"/proxy/{cluster.task}", f"/proxy/{cluster.task.replace('-', '%2D')}/"):
        status, answered, _ = cluster.ask(path + "?a=1&troupe_code=x", browser, host=own)
        assert status == 303 and answered["Location"] == f"/proxy/{cluster.task}/?a=1&troupe_code=x", (path, status, answered)
        assert cluster.ask(path, {**fetch, "Sec-Fetch-Site": "same-origin"}, host=own)[0] == 401
    # A browser with ?token= on the origin of the API is redirected with a code, so that no address contains the token any more.
    status, answered, _ = cluster.ask(f"/proxy/{cluster.task}/lab?token={cluster.token}", browser)
    assert status == 303 and cluster.token not in answered["Location"] and f"http://{own}/proxy/{cluster.task}/lab?troupe_code=" in answered["Location"]
    # Without a known login the page for logging in is shown. Over plain HTTP a browser sends no Sec-Fetch-* headers, and asks for HTML.
    plain = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    for path in (f"/proxy/{cluster.task}/lab", f"/det/interactive/{cluster.task}/jupyter-lab/name/pool/wait"):
        for headers in (plain, {**plain, **browser}, {**plain, "Cookie": "auth=garbage"}):
            status, answered, _ = cluster.ask(path, headers)
            assert status == 303 and answered["Location"] == "/ui/open" + path, (path, headers, status, answered)
        assert cluster.ask(path, {"Accept": "*/*"})[0] == cluster.ask(path, {**plain, "Authorization": "Bearer garbage"})[0] == 401
    status, answered, _ = cluster.ask(f"/proxy/{cluster.task}/lab?token={cluster.token}", plain)
    assert status == 303 and cluster.token not in answered["Location"] and f"http://{own}/proxy/{cluster.task}/lab?troupe_code=" in answered["Location"]
    assert cluster.ask(f"/proxy/{cluster.task}/lab", {**plain, **cluster.bearer})[0] == 200, "no browser shows a login in a header"
    # The view ends with the login that it was made from.
    kept = pass_
    token = cluster.log_in()
    answered = cluster.ask(f"/det/interactive/{cluster.task}", {"Authorization": f"Bearer {token}"})[1]
    way = urllib.parse.urlsplit(answered["Location"])
    answered = cluster.ask(f"{way.path}?{way.query}", browser, host=own)[1]
    pass_ = {"Cookie": answered["Set-Cookie"].partition(";")[0]}
    assert cluster.ask(f"/proxy/{cluster.task}/", pass_, host=own)[0] == 200
    open_ones = [cluster.raw("\n".join(("GET /proxy/%s/ws HTTP/1.1" % cluster.task, f"Host: {own}", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Cookie: " + shown, "", "")))
                 for shown in (pass_["Cookie"], kept["Cookie"])]
    for one in open_ones:
        assert one.recv(65536).startswith(b"HTTP/1.1 101")
    assert cluster.ask("/api/v1/auth/logout", {"Authorization": f"Bearer {token}"}, "POST", b"{}")[0] == 200
    assert cluster.ask(f"/proxy/{cluster.task}/", pass_, host=own)[0] == 401
    assert open_ones[0].recv(1) == b"", "what is open ends with the login as well"
    open_ones[1].sendall(b"of another login")
    assert read_exactly(open_ones[1], 16) == b"of another login"[::-1]
    assert cluster.ask("/det/interactive/12345678-0000-4000-8000-000000000000", cluster.bearer)[0] == 404


def test_an_answer_that_lasts_ends_with_the_login_that_opened_it(cluster):
    token = cluster.log_in()

    def asked(path, by, method="GET", more=""):
        return cluster.raw(f"{method} /proxy/{cluster.task}/{path} HTTP/1.1\nHost: 127.0.0.1:{cluster.port}\nAuthorization: Bearer {by}\n{more}\n")

    begun = len(cluster.seen())
    ends = [asked("wait", token), asked("held", token), asked("endless", token), asked("upload", token, "POST", "Content-Length: 2\n")]
    stays = asked("held", cluster.token)
    wait_for(lambda: sum("/proxy/" in line for line in cluster.seen()[begun:]) == 5, 20)
    assert cluster.ask("/api/v1/auth/logout", {"Authorization": f"Bearer {token}"}, "POST", b"{}")[0] == 200
    for one in ends:
        try:
            while one.recv(1 << 20):
                pass
        except ConnectionError:
            pass
    stays.settimeout(0.5)
    with pytest.raises(TimeoutError):
        while stays.recv(65536):
            pass


def test_services_are_listed(cluster):
    status, _, body = cluster.ask(f"/troupe/v1/tasks/{cluster.task}/services", cluster.bearer)
    rows = {row["service"]: row for row in json.loads(body)}
    assert status == 200 and set(rows) == {cluster.task, *(f"{cluster.task}:{cluster.ports[x]}" for x in ("tcp", "open", "dead"))}
    first = rows[cluster.task]
    assert first["port"] == cluster.ports["http"] and first["protocol"] == "http" and first["ready"] and first["lastUsed"]
    assert rows[f"{cluster.task}:{cluster.ports['tcp']}"]["protocol"] == "tcp"
    ports = json.loads(cluster.ask("/api/v1/tasks", cluster.bearer)[2])["allocationIdToSummary"]
    assert sorted(p["port"] for p in next(iter(ports.values()))["proxyPorts"]) == sorted(cluster.ports.values())


def test_nobody_brings_a_connection_that_was_not_ordered(cluster):
    for secret in ("", "0" * 48, cluster.token):
        head = (f"GET /troupe/v1/connections/0123456789abcdef01234567 HTTP/1.1\nHost: 127.0.0.1:{cluster.port}\nConnection: Upgrade\n"
                f"Upgrade: troupe-connection\nAuthorization: Bearer {secret}\n\n")
        s = cluster.raw(head)
        assert s.recv(65536).startswith(b"HTTP/1.1 401")
        s.close()


def test_ports_that_cannot_be_are_refused_with_their_place(cluster):
    config = cluster.root / "bad.yaml"
    for ports, what in [("[{proxy_port: 0}]", "proxy_port"), ("[{proxy_port: 70000}]", "proxy_port"),
                        ("[{proxy_port: 80}, {proxy_port: 80}]", "named twice"),
                        ("[{proxy_port: 80, default_service_id: true}, {proxy_port: 81, default_service_id: true}]", "default_service_id")]:
        config.write_text(f"name: x\nentrypoint: 'true'\nsearcher: {{name: single, metric: loss}}\nenvironment: {{proxy_ports: {ports}}}\n")
        done = cluster.cli("config", "check", str(config), check=False)
        assert done.returncode != 0 and what in done.stdout + done.stderr, (ports, done.stdout, done.stderr)


def test_a_port_that_another_task_has_taken_leads_to_none(cluster):
    port = cluster.ports["http"]
    config = cluster.root / "named.yaml"
    config.write_text(f"name: named\nentrypoint: sleep 1000\nsearcher: {{name: single, metric: loss}}\nresources: {{slots_per_trial: 0}}\n"
                      f"environment: {{proxy_ports: [{{proxy_port: {port}, default_service_id: true}}]}}\n")
    cluster.env["TROUPE_USER"] = "admin"
    try:
        named = cluster.json("experiment", "create", str(config))["id"]
        (trial,) = wait_for(lambda: cluster.trials(named), 30)
        task = f"{named}.00000000-0000-4000-8000-{trial['id']:012x}"
        bearer = {"Authorization": f"Bearer {cluster.log_in('admin')}"}
        before = len(cluster.seen())
        status, _, said = wait_for(lambda: (got := cluster.ask(f"/proxy/{task}/x", bearer)) and b"belongs to another task" in got[2] and got, 30, 0.2,
                                   lambda: cluster.ask(f"/proxy/{task}/x", bearer))
        assert status == 503 and f"port {port} of this host".encode() in said, (status, said)
        assert len(cluster.seen()) == before and cluster.ask(f"/proxy/{cluster.task}/", cluster.bearer)[0] == 200
    finally:
        cluster.cli("experiment", "kill", str(named))
        del cluster.env["TROUPE_USER"]


def test_a_service_outlives_the_node(cluster):
    """After kill -9 of agent and master with connections open, the task continues, and the next connection reaches it."""
    s, _ = cluster.websocket(f"{cluster.task}:{cluster.ports['tcp']}")
    s.sendall(frame(b"before"))
    assert read_frame(s) == (2, b"before")
    cluster.kill_node()
    try:
        assert s.recv(1) == b""
    except ConnectionError:
        pass
    cluster.up()
    answers = []

    def serves():
        answers.append(cluster.ask(f"/proxy/{cluster.task}/", cluster.bearer))
        return answers[-1][0] == 200

    wait_for(serves, 30, 0.1)
    assert not any(b"has not answered" in body for _, _, body in answers), "what was wanted before the agent came is opened once it is there"
    s, head = cluster.websocket(f"{cluster.task}:{cluster.ports['tcp']}")
    assert head.startswith("HTTP/1.1 101")
    s.sendall(frame(b"after"))
    assert read_frame(s) == (2, b"after")
    # The connection ends with the task, and the service is not found any more.
    cluster.cli("experiment", "kill", str(cluster.experiment))
    assert read_frame(s)[0] == 8
    wait_for(lambda: cluster.ask(f"/proxy/{cluster.task}/", cluster.bearer)[0] == 404, 30)
