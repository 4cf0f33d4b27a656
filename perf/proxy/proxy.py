"""What the proxy costs, master and agent on one host, beside the same server asked directly, in one run:

    .venv/bin/python perf/proxy/proxy.py [--binary build/release/troupe] [--rounds 3]

A trial serves HTTP, WebSockets and, where Debian's sshd is installed, ssh. Figures are medians over the rounds, which take turns.
"""

import argparse
import base64
import getpass
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER = r'''
import asyncio, base64, hashlib, os, subprocess, sys
small, large = b"x" * 1024, b"y" * (1 << 20)
def head(n): return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n
async def serve(reader, writer):
    writer.get_extra_info("socket").setsockopt(6, 1, 1)
    try:
        while True:
            ask = await reader.readuntil(b"\r\n\r\n")
            if b"Sec-WebSocket-Key:" in ask or b"sec-websocket-key:" in ask:
                break
            body = large if b"/large" in ask.partition(b"\r\n")[0] else small
            writer.write(head(len(body)) + body)
            await writer.drain()
        key = [line.split(b":")[1].strip() for line in ask.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key")][0]
        accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        writer.write(b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        while data := await reader.read(65536):  # frames of clients, as they came: an echo of bytes
            writer.write(data)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
async def main():
    if os.path.exists("/usr/sbin/sshd") and os.environ["SSH"]:
        os.makedirs("/run/sshd", exist_ok=True)
        subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", os.environ["SSH"]])
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]), backlog=2000, limit=1 << 20)
    await server.serve_forever()
asyncio.run(main())
'''


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Connection:
    """Kept open; requests one after the other."""

    def __init__(self, port, prefix, headers):
        self.s = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.prefix, self.headers = prefix, headers

    def get(self, path):
        self.s.sendall(f"GET {self.prefix}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self.headers}\r\n".encode())
        got = b""
        while b"\r\n\r\n" not in got:
            more = self.s.recv(65536)
            assert more, got
            got += more
        head, _, rest = got.partition(b"\r\n\r\n")
        assert b" 200 " in head, head
        size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        left = size - len(rest)
        while left > 0:
            n = len(self.s.recv(min(left, 1 << 18)))
            assert n
            left -= n
        return size


def gets(port, prefix, headers, seconds=3):
    c = Connection(port, prefix, headers)
    for _ in range(50):
        c.get("/small")
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        c.get("/small")
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def bulk(port, prefix, headers, each=12, connections=64):
    barrier = threading.Barrier(connections + 1)

    def work():
        c = Connection(port, prefix, headers)
        barrier.wait()
        for _ in range(each):
            c.get("/large")

    threads = [threading.Thread(target=work) for _ in range(connections)]
    for t in threads:
        t.start()
    barrier.wait()
    begun = time.perf_counter()
    for t in threads:
        t.join()
    return connections * each * (1 << 20) / (time.perf_counter() - begun)


def echoes(port, prefix, headers, connections, rounds=2000):
    """p99 of an echo of a frame with 100 bytes, on one connection of several that are open."""
    frame = bytes([0x82, 0x80 | 100]) + b"mask" + b"z" * 100
    sockets = []
    for _ in range(connections):
        s = socket.create_connection(("127.0.0.1", port), timeout=60)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        s.sendall(f"GET {prefix}/ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  f"Sec-WebSocket-Key: {key}\r\n{headers}\r\n".encode())
        sockets.append(s)
    for s in sockets:
        got = b""
        while b"\r\n\r\n" not in got:
            more = s.recv(4096)
            assert more, got
            got += more
        assert b" 101 " in got, got
    times = []
    for n in range(rounds):
        s = sockets[n % connections]
        begun = time.perf_counter()
        s.sendall(frame)
        left = len(frame)
        while left:
            left -= len(s.recv(left))
        times.append(time.perf_counter() - begun)
    for s in sockets:
        s.close()
    return statistics.quantiles(times, n=100)[98]


def scp(root, key, port, command, size):
    options = ["-q", "-i", key, "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={root}/known", "-o", "IdentitiesOnly=yes"]
    if command:
        options += ["-o", f"ProxyCommand={command}"]
    begun = time.perf_counter()
    subprocess.run(["scp", *options, "-P", str(port), f"{root}/large", f"{getpass.getuser()}@127.0.0.1:{root}/copied"], check=True)
    return size / (time.perf_counter() - begun)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=str(ROOT / "build/release/troupe"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scp-mib", type=int, default=1024)
    given = parser.parse_args()
    root = pathlib.Path(tempfile.mkdtemp(prefix="proxy-", dir="/var/tmp"))
    env = {**os.environ, "HOME": str(root)}
    port, ssh_port = free_port(), free_port()
    with_ssh = os.path.exists("/usr/sbin/sshd")
    if with_ssh:
        for name in ("host", "client"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(root / name)], check=True)
        (root / "authorized").write_text((root / "client.pub").read_text())
        (root / "sshd_config").write_text(
            f"Port {ssh_port}\nListenAddress 127.0.0.1\nHostKey {root}/host\nAuthorizedKeysFile {root}/authorized\nStrictModes no\n"
            f"UsePAM no\nPidFile none\nPermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n")
    job = root / "job"
    job.mkdir()
    (job / "server.py").write_text(SERVER)
    (root / "job.yaml").write_text(
        f"name: proxy\nentrypoint: python3 server.py\nsearcher: {{name: single, metric: loss}}\n"
        f"environment:\n  environment_variables: [\"PORT={port}\", \"SSH={root / 'sshd_config' if with_ssh else ''}\"]\n"
        f"  proxy_ports: [{{proxy_port: {port}, default_service_id: true}}, {{proxy_port: {ssh_port}, proxy_tcp: true}}]\n")
    http = free_port()
    log = open(root / "up.log", "w")
    up = subprocess.Popen([given.binary, "up", "--data-dir", str(root / "data"), "--listen", f"127.0.0.1:{http}", "--slots", "1"], env=env, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{http}"
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(url + "/health", timeout=2)
                break
            except OSError:
                time.sleep(0.1)
        subprocess.run([given.binary, "experiment", "create", str(root / "job.yaml"), str(job), "--master", url], env=env, check=True, stdout=log)
        body = json.dumps({"username": "determined", "password": "", "isHashed": True}).encode()
        token = json.load(urllib.request.urlopen(urllib.request.Request(url + "/api/v1/auth/login", body)))["token"]
        service = "1.00000000-0000-4000-8000-000000000001"
        headers = f"Authorization: Bearer {token}\r\n"
        prefix = f"/proxy/{service}"
        for _ in range(300):
            try:
                urllib.request.urlopen(urllib.request.Request(url + prefix + "/small", headers={"Authorization": f"Bearer {token}"}))
                break
            except OSError:
                time.sleep(0.2)
        seen = {}

        def note(what, direct, proxied, unit, better):
            seen.setdefault(what, []).append((direct, proxied, unit, better))

        for _ in range(given.rounds):
            note("GET of 1 KiB", gets(port, "", "") * 1e6, gets(http, prefix, headers) * 1e6, "us", "time")
            note("64 connections, 1 MiB bodies", bulk(port, "", "") / 1e6, bulk(http, prefix, headers) / 1e6, "MB/s", "rate")
            for n in (1, 1000):
                note(f"echo of 100 bytes, p99, {n} open", echoes(port, "", "", n) * 1e6, echoes(http, prefix, headers, n) * 1e6, "us", "added")
        if with_ssh:
            size = given.scp_mib << 20
            with open(root / "large", "wb") as f:
                for _ in range(given.scp_mib):
                    f.write(os.urandom(1 << 20))
            ours = f"{given.binary} tunnel {service}:{ssh_port} --master {url}"
            theirs = f"{sys.executable} -m determined.cli.tunnel --auth {url} {service}:{ssh_port}"
            os.environ.update(HOME=str(root), DET_USER="determined", DET_PASS="")
            for _ in range(max(1, given.rounds - 2)):
                direct = scp(root, str(root / "client"), ssh_port, "", size) / 1e6
                note("scp by troupe tunnel", direct, scp(root, str(root / "client"), ssh_port, ours, size) / 1e6, "MB/s", "rate")
                note("scp by the stock tunnel", direct, scp(root, str(root / "client"), ssh_port, theirs, size) / 1e6, "MB/s", "rate")
        for what, rows in seen.items():
            direct, proxied = statistics.median(r[0] for r in rows), statistics.median(r[1] for r in rows)
            better = {"time": f"{proxied / direct:.2f} times", "rate": f"{proxied / direct:.2f} of it", "added": f"{(proxied - direct) / 1000:.3f} ms more"}[rows[0][3]]
            print(f"{what:36} direct {direct:10.1f} {rows[0][2]:5} proxy {proxied:10.1f} {rows[0][2]:5} {better}", flush=True)
    finally:
        up.terminate()
        up.wait()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
