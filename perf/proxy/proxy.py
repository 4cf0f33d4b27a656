"""Measures the cost of the proxy with master and agent on one host, beside direct requests to the same server, in one run:

    .venv/bin/python perf/proxy/proxy.py [--binary build/release/troupe] [--rounds 3]

A trial serves HTTP, WebSockets and, where Debian's sshd is installed, ssh. Figures are medians over the rounds, in which the ways take
turns. Where Debian's nginx is installed (package nginx-light), the same figures through nginx are printed too.
"""

import argparse
import base64
import datetime
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

SERVICES = 16
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
    for port in os.environ["PORTS"].split(","):
        await asyncio.start_server(serve, "127.0.0.1", int(port), backlog=2000, limit=1 << 20)
    await asyncio.Event().wait()
asyncio.run(main())
'''


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Connection:
    """A connection that stays open and carries one request after the other."""

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
    """The median time of a request, in seconds."""
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


def web_sockets(addresses, headers, connections):
    """Opens WebSockets in turn at `addresses`, which are ports with prefixes. One service has at most 256 connections."""
    sockets = []
    for n in range(connections):
        port, prefix = addresses[n % len(addresses)]
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
    return sockets


def echoes(addresses, headers, connections, rounds=4000):
    """The 99th percentile of the time of an echo of a frame with 100 bytes, in seconds. All `connections` are open meanwhile."""
    frame = bytes([0x82, 0x80 | 100]) + b"mask" + b"z" * 100
    sockets = web_sockets(addresses, headers, connections)
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


def memory_and_processor(pid):
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    private = sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return private, (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def idle(pids, addresses, headers, connections=4000, seconds=20):
    """For each of `pids`: KiB of memory for each connection, cores used while the connections are idle, and cores used without them."""
    before = [memory_and_processor(pid)[0] for pid in pids]
    quiet = [memory_and_processor(pid)[1] for pid in pids]
    time.sleep(seconds)
    quiet = [memory_and_processor(pid)[1] - q for pid, q in zip(pids, quiet)]
    sockets = web_sockets(addresses, headers, connections)
    time.sleep(2)
    held = [memory_and_processor(pid) for pid in pids]
    time.sleep(seconds)
    after = [memory_and_processor(pid)[1] for pid in pids]
    for s in sockets:
        s.close()
    return [((h[0] - b) / connections, (a - h[1]) / seconds, q / seconds) for h, b, a, q in zip(held, before, after, quiet)]


def notebook_by_hand(root):
    """The seconds from the start of JupyterLab to its line, with an empty home, as tasks have one."""
    folder = tempfile.mkdtemp(dir=root)
    env = {**os.environ, "HOME": folder, "JUPYTER_TOKEN": "x"}
    begun = time.perf_counter()
    p = subprocess.Popen([sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={free_ports(1)[0]}"],
                         env=env, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    for line in p.stderr:
        if b"is running" in line:
            break
    took = time.perf_counter() - begun
    threading.Thread(target=lambda: [None for _ in p.stderr], daemon=True).start()
    p.terminate()
    p.wait()
    return took


def asked(url, token, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    return json.load(urllib.request.urlopen(urllib.request.Request(url + path, data, {"Authorization": f"Bearer {token}"})))


def notebook(url, token):
    """The seconds from the POST until the service is ready."""
    begun = time.perf_counter()
    task = asked(url, token, "/api/v1/notebooks", {"config": {"resources": {"slots": 0}}})["notebook"]["id"]
    while True:
        if any(a["isReady"] for a in asked(url, token, f"/api/v1/tasks/{task}")["task"]["allocations"]):
            break
        time.sleep(0.02)
    took = time.perf_counter() - begun
    asked(url, token, f"/api/v1/notebooks/{task}/kill", {})
    while asked(url, token, f"/api/v1/notebooks/{task}")["notebook"]["state"] != "STATE_TERMINATED":
        time.sleep(0.05)
    return took


def scp(root, key, port, command, size):
    options = ["-q", "-i", key, "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={root}/known", "-o", "IdentitiesOnly=yes"]
    if command:
        options += ["-o", f"ProxyCommand={command}"]
    begun = time.perf_counter()
    subprocess.run(["scp", *options, "-P", str(port), f"{root}/large", f"{getpass.getuser()}@127.0.0.1:{root}/copied"], check=True)
    return size / (time.perf_counter() - begun)


def nginx(root, listen, to):
    """Starts nginx as a proxy with one process and without buffering, as ours works. Returns None where nginx is not installed."""
    if not (program := shutil.which("nginx") or shutil.which("/usr/sbin/nginx")):
        return None
    (root / "nginx.conf").write_text(
        f"daemon off; worker_processes 1; pid {root}/nginx.pid; error_log {root}/nginx.log;\n"
        f"events {{ worker_connections 4096; }}\n"
        f"http {{ access_log off; proxy_temp_path {root}; client_body_temp_path {root}; upstream u {{ server 127.0.0.1:{to}; keepalive 64; }}\n"
        f"  server {{ listen 127.0.0.1:{listen}; keepalive_requests 1000000; location / {{ proxy_pass http://u; proxy_http_version 1.1;"
        f" proxy_set_header Connection ''; proxy_buffering off; }} }} }}\n")
    p = subprocess.Popen([program, "-c", str(root / "nginx.conf"), "-p", str(root)])
    time.sleep(0.5)
    return p


def first_line(binary, url, token, env, root):
    """The seconds from the fact that a trial has its slot to its first line of output, by the times that the cluster and the script
    write."""
    (root / "true.yaml").write_text(
        f"name: line\nentrypoint: \"sh -c 'date +%s.%N >> {root}/line'\"\nsearcher: {{name: single, metric: loss}}\n")
    (root / "empty").mkdir(exist_ok=True)
    (root / "line").unlink(missing_ok=True)
    subprocess.run([binary, "experiment", "create", str(root / "true.yaml"), str(root / "empty"), "--master", url], env=env, check=True, capture_output=True)
    while not (root / "line").exists() or not (root / "line").read_text().strip():
        time.sleep(0.01)
    line = float((root / "line").read_text())
    with urllib.request.urlopen(urllib.request.Request(url + "/troupe/v1/events?after=0", headers={"Authorization": f"Bearer {token}"}), timeout=30) as stream:
        last = 0
        stream.fp.raw._sock.settimeout(0.5)
        try:
            for text in stream:
                if text.startswith(b"data:") and (fact := json.loads(text[5:])).get("type") == "allocation_placed":
                    at = datetime.datetime.fromisoformat(fact["at"].replace("Z", "+00:00")).timestamp()
                    last = at if at < line else last
        except TimeoutError:
            pass
    return line - last


def command(url, token):
    """The seconds from the POST of a command `true` to the end of its log, which comes after its exit."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    begun = time.perf_counter()
    body = json.dumps({"kind": "command", "config": "entrypoint: ['true']"}).encode()
    with urllib.request.urlopen(urllib.request.Request(url + "/troupe/v1/tasks", body, headers), timeout=30) as answer:
        made = json.load(answer)["id"]
    urllib.request.urlopen(urllib.request.Request(f"{url}/api/v1/tasks/{made}/logs?follow=true", headers=headers), timeout=30).read()
    return time.perf_counter() - begun


REPORTS = """import time, troupe
begun, done = time.monotonic(), 0
while done < 15000:
    for _ in range(10):
        done += 1
        troupe.log({"loss": 1 / done, "accuracy": done / 15000}, step=done)
    time.sleep(max(0, begun + done / 1000 - time.monotonic()))
"""


def event_files(binary, url, env, root, pid):
    """The cores that the process of master and agent uses while a trial reports 1,000 times a second. First with event files; then
    without, because a file stands where their folder would be. The trial itself paces its reports."""
    folder = root / "reports"
    folder.mkdir(exist_ok=True)
    (folder / "job.py").write_text(REPORTS)
    (root / "reports.yaml").write_text("name: reports\nentrypoint: python3 job.py\nsearcher: {name: single, metric: loss}\n")
    cores = []
    for with_files in (True, False):
        begun = time.monotonic()
        made = subprocess.run([binary, "experiment", "create", str(root / "reports.yaml"), str(folder), "--master", url, "-o", "json"], env=env, check=True, capture_output=True)
        number = json.loads(made.stdout)["id"]
        time.sleep(4)
        before = memory_and_processor(pid)[1]
        time.sleep(9)
        cores.append((memory_and_processor(pid)[1] - before) / 9)
        subprocess.run([binary, "experiment", "wait", str(number), "--master", url], env=env, check=True, capture_output=True)
        assert 14.5 < time.monotonic() - begun < 20, "the trial did not report 1,000 times a second"
        there = [p for p in (root / "data" / "checkpoints").rglob("tensorboard") if p.is_dir()]
        written = [p for p in (root / "data" / "checkpoints").rglob("*tfevents*") if p.stat().st_size > 0]
        if with_files:
            assert len(there) == 1 and written and max(p.stat().st_size for p in written) > 15000 * 50, (there, written)
            there[0].rename(root / "kept")
            there[0].write_text("no folder")
        else:
            assert there == [] and written == [], written
    blocked = next((root / "data" / "checkpoints").rglob("tensorboard"))
    blocked.unlink()
    shutil.rmtree(root / "kept")
    return cores


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=str(ROOT / "build/release/troupe"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scp-mib", type=int, default=1024)
    parser.add_argument("--only", default="http,tasks,idle,scp,events")
    given = parser.parse_args()
    root = pathlib.Path(tempfile.mkdtemp(prefix="proxy-", dir="/var/tmp"))
    env = {**os.environ, "HOME": str(root)}
    ssh_port, nginx_port, http, *ports = free_ports(3 + SERVICES)
    port = ports[0]
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
        f"environment:\n  environment_variables: [\"PORTS={','.join(map(str, ports))}\", \"SSH={root / 'sshd_config' if with_ssh else ''}\"]\n"
        f"  proxy_ports: [{{proxy_port: {port}, default_service_id: true}}, {{proxy_port: {ssh_port}, proxy_tcp: true}}"
        + "".join(f", {{proxy_port: {p}}}" for p in ports[1:]) + "]\n")
    log = open(root / "up.log", "w")
    up = subprocess.Popen([given.binary, "up", "--data-dir", str(root / "data"), "--listen", f"127.0.0.1:{http}", "--slots", "2"], env=env, stdout=log, stderr=log)
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

        direct, proxied = [(p, "") for p in ports], [(http, prefix)] + [(http, f"{prefix}:{p}") for p in ports[1:]]
        if "http" in given.only:
            beside = nginx(root, nginx_port, port)
            for _ in range(given.rounds):
                note("GET of 1 KiB", gets(port, "", "") * 1e6, gets(http, prefix, headers) * 1e6, "us", "time")
                if beside:
                    note("GET of 1 KiB through nginx", gets(port, "", "") * 1e6, gets(nginx_port, "", "") * 1e6, "us", "time")
                note("64 connections, 1 MiB bodies", bulk(port, "", "") / 1e6, bulk(http, prefix, headers) / 1e6, "MB/s", "rate")
                if beside:
                    note("the same through nginx", bulk(port, "", "") / 1e6, bulk(nginx_port, "", "") / 1e6, "MB/s", "rate")
                for n in (1, 1000):
                    note(f"echo of 100 bytes, p99, {n} open", echoes(direct[:4], "", n) * 1e6, echoes(proxied[:4], headers, n) * 1e6, "us", "added")
            if beside:
                beside.terminate()
                beside.wait()
        if "tasks" in given.only:
            for _ in range(max(5, given.rounds)):  # The start time of JupyterLab itself varies by half a second.
                note("notebook, POST to ready", notebook_by_hand(root) * 1e3, notebook(url, token) * 1e3, "ms", "time")
            for _ in range(7 * given.rounds):
                begun = time.perf_counter()
                subprocess.run([given.binary, "command", "run", "--master", url, "--", "true"], check=True, env=env, stdout=log, stderr=log)
                took = time.perf_counter() - begun
                line = first_line(given.binary, url, token, env, root)
                note("a command, POST to exit", line * 1e3, command(url, token) * 1e3, "ms", "time")
                note("troupe command run true", line * 1e3, took * 1e3, "ms", "time")
        if "idle" in given.only:
            pids = {"master": up.pid, **{f"child {n}": int(p) for n, p in enumerate(
                pathlib.Path(f"/proc/{up.pid}/task/{up.pid}/children").read_text().split())}}
            for (name, pid), (kib, cores, quiet) in zip(pids.items(), idle(pids.values(), proxied, headers)):
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                print(f"4,000 idle WebSockets, {name:10} {kib:8.1f} KiB each {cores:8.3f} cores, {quiet:8.3f} without  {b' '.join(words[:2]).decode()[-60:]}", flush=True)
        if "events" in given.only:
            for _ in range(given.rounds):
                files, none = event_files(given.binary, url, env, root, up.pid)
                note("1,000 reports/s, event files", none * 100, files * 100, "% core", "cores")
        if with_ssh and "scp" in given.only:
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
            better = {"time": f"{proxied / direct:.2f} times", "rate": f"{proxied / direct:.2f} of it", "added": f"{(proxied - direct) / 1000:.3f} ms more", "cores": f"{proxied - direct:.2f} more"}[rows[0][3]]
            print(f"{what:36} direct {direct:10.1f} {rows[0][2]:5} proxy {proxied:10.1f} {rows[0][2]:5} {better}", flush=True)
    finally:
        up.terminate()
        up.wait()
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
