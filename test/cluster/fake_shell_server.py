"""The routes of the HTTP API that the shell uses, with fixed answers, so that the output of the client can be compared byte for byte. A
test can send events and cause faults. Each connection has a thread in the test's own process."""

import http.server
import json
import threading
import time
import urllib.parse

NODES = [
    {"node": "master", "role": "master", "state": "up", "slots": 0, "used": 0, "actors": 41, "backlog": 312, "version": "0.1.0", "uptime_s": 3723},
    {"node": "gpu01", "role": "agent", "state": "up", "slots": 8, "used": 4, "actors": 5, "backlog": 0, "version": "0.1.0", "uptime_s": 61},
]


def actor(name, node, backlog, rate, p50, p99, restarts, state):
    return {"actor": name, "kind": name.split("/")[0], "node": node, "backlog": backlog, "msg_per_s": rate, "messages": 118,
            "run_us_p50": p50, "run_us_p99": p99, "wait_us_p50": 2, "wait_us_p99": 9, "restarts": restarts, "state": state, "uptime_s": 60}


ACTORS = [
    actor("journal", "master", 312, 8410.4, 11, 92, 0, "busy"),
    actor("pool/main", "master", 0, 14, 140, 1900, 0, "ready"),
    actor("trial/7", "master", 0, 2, 35, 210, 1, "RUNNING"),
    actor("trial/8", "master", 0, 0.25, 30, 190, 0, "WAITING"),
    actor("agent/gpu01", "gpu01", 0, 1, 18, 77, 0, "connected"),
]
MESSAGES = [
    {"name": "preempt", "kinds": ["allocation", "trial"], "permission": "admin", "doc": "Ask a trial to save and stop.",
     "fields": [{"name": "reason", "type": "text", "required": False, "doc": ""}, {"name": "grace_s", "type": "integer", "required": False, "doc": ""}]},
]
MESSAGE = {"at": "2026-11-22T12:05:58.114000Z", "actor": "trial/7", "from": "agent/gpu01", "type": "heartbeat", "correlation": "trial/7",
           "wait_us": 9, "run_us": 31, "text": "heartbeat{step=400}"}
INFO = {
    "identity": {"actor": "trial/7", "kind": "trial", "node": "master", "since": "2026-11-22T12:04:11Z", "owner": "experiment/3"},
    "links": [{"actor": "trial/7", "peer": "allocation/7.2", "how": "child"}, {"actor": "trial/7", "peer": "experiment/3", "how": "owner"}],
    "work": {"backlog": 0, "messages": 118, "msg_per_s": 2.0, "doing": None},
    "memory": {"state_bytes": 3174},
    "recent": [{k: v for k, v in MESSAGE.items() if k != "actor"}],
}
TREE = {"actor": "experiment/3", "state": "ACTIVE", "restarts": 0, "children": [
    {"actor": "searcher/3", "state": "ready", "restarts": 0, "children": []},
    {"actor": "trial/7", "state": "RUNNING", "restarts": 1, "children": [{"actor": "allocation/7.2", "state": "RUNNING", "restarts": 0, "children": []}]},
]}


class FakeShellServer:
    """`url` is what --attach takes. `emit(row)` sends an event to all clients that follow. While `freeze` is set, no answer leaves."""

    def __init__(self):
        self.level, self.requests, self.followers = "info", [], []
        self.admin, self.allow_faults, self.freeze, self.trace_dies = True, False, False, False
        self.lock = threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body):
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def refuse(self, status, reason, text):
                self.answer(status, {"error": {"code": status, "reason": reason, "error": text}})

            def do_GET(self):
                outer.handle(self, "GET", {})

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.handle(self, "POST", json.loads(body) if body else {})

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # The client has closed the connection.

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def emit(self, row):
        with self.lock:
            for handler in list(self.followers):
                self.event(handler, row)

    def event(self, handler, row, name=None):
        try:
            handler.wfile.write(((f"event: {name}\n" if name else "") + "data: " + json.dumps(row) + "\n\n").encode())
            handler.wfile.flush()
            return True
        except OSError:
            if handler in self.followers:
                self.followers.remove(handler)
            return False

    def begin(self, handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.close_connection = True
        handler.end_headers()
        handler.wfile.write(b": alive\n\n")
        handler.wfile.flush()

    def handle(self, h, method, body):
        url = urllib.parse.urlparse(h.path)
        q = dict(urllib.parse.parse_qsl(url.query))
        self.requests.append((method, url.path, q or body))
        while self.freeze:
            time.sleep(0.05)
        if url.path == "/api/v1/auth/login":
            return h.answer(200, {"token": "t"})
        if url.path == "/api/v1/me":
            return h.answer(200, {"user": {"username": "ada", "admin": self.admin}})
        if url.path == "/troupe/v1/status":
            return h.answer(200, {"slots": {"total": 8, "used": 4}, "agents": 1})
        if url.path == "/api/v1/experiments":
            return h.answer(200, {"experiments": [{"id": 3, "name": "digits", "state": "STATE_ACTIVE"}], "pagination": {"total": 1}})
        if not url.path.startswith("/troupe/v1/shell/"):
            return h.refuse(404, "NotFound", "no such route")
        name = url.path.rsplit("/", 1)[1]
        if method == "POST":
            return self.act(h, name, body)
        known = {a["actor"] for a in ACTORS} | {"experiment/3"}
        who = q.get("actor", q.get("correlation"))
        if who is not None and who not in known:
            return h.refuse(404, "NotFound", f"there is no actor '{who}'" if "actor" in q else f"no message belongs to '{who}'")
        if name == "nodes":
            return h.answer(200, {"rows": NODES, "missing": [{"node": "gpu02", "why": "no answer in 2 s"}] if self.trace_dies else []})
        if name == "ps":
            rows = [a for a in ACTORS if q.get("kind", a["kind"]) == a["kind"] and q.get("node", a["node"]) == a["node"] and q.get("filter", "") in a["actor"]]
            if "sort" in q:
                if q["sort"] not in ACTORS[0]:
                    return h.refuse(400, "InvalidArgument", f"cannot sort by '{q['sort']}'")
                rows.sort(key=lambda a: a[q["sort"]], reverse=True)
            return h.answer(200, {"rows": rows[: int(q.get("top", 1000))], "missing": []})
        if name in ("info", "tree"):
            return h.answer(200, INFO if name == "info" else TREE)
        if name == "state":
            if "diff" in q:
                return h.answer(200, {"actor": who, "changes": [{"path": "step", "before": 400, "after": 420}]})
            if "path" in q:
                return h.answer(200, {"actor": who, "state": 400}) if q["path"] == "step" else h.refuse(400, "InvalidArgument", f"the state has no '{q['path']}'")
            return h.answer(200, {"actor": who, "state": {"step": 400, "runs": [{"id": 1, "why": "lost"}], "name": "überblick"}})
        if name == "msgs":
            return h.answer(200, {"rows": INFO["recent"], "missing": []})
        if name == "stats":
            side = {"buckets": [[16, 3], [32, 12], [64, 0], [128, 1]], "p50": 31, "p99": 120}
            return h.answer(200, {"actor": who, "wait_us": side, "run_us": side, "by_type": [{"type": "heartbeat", "count": 16, "run_us_p50": 31}]})
        if name == "links":
            return h.answer(200, {"rows": [{"actor": who, "peer": x["peer"], "how": x["how"]} for x in INFO["links"]], "missing": []})
        if name == "waits":
            return h.answer(200, {"rows": [{"actor": "trial/8", "waits_for": "pool/main", "what": "slots_wanted", "since_s": 240}], "missing": []})
        if name == "messages":
            return h.answer(200, {"rows": MESSAGES})
        if name == "log":
            return h.answer(200, {"level": self.level})
        if name == "events":
            rows = [{"at": "2026-11-22T12:00:00Z", "kind": "state", "actor": "trial/7", "what": "RUNNING", "user": ""},
                    {"at": "2026-11-22T12:00:01Z", "kind": "audit", "actor": "trial/7", "what": "kill", "user": "ada"}]
            if q.get("follow") != "true":
                return h.answer(200, {"rows": [r for r in rows if q.get("kind", r["kind"]) == r["kind"]][-int(q.get("max", 100)):], "missing": []})
            self.begin(h)
            with self.lock:
                self.followers.append(h)
            while h in self.followers:  # If the handler returned, the connection would be closed.
                time.sleep(0.1)
            return None
        if name in ("trace", "follow"):
            self.begin(h)
            most = int(q.get("max", 100))
            for i in range(min(most, 3)):
                self.event(h, MESSAGE)
            if self.trace_dies:
                return None
            if most <= 3:
                self.event(h, {"seen": most, "shown": most, "dropped": 0, "why": "max"}, "end")
            else:
                time.sleep(float(q["for"]))
                self.event(h, {"seen": 3, "shown": 3, "dropped": 0, "why": "for"}, "end")
            return None
        return h.refuse(404, "NotFound", "no such route")

    def act(self, h, name, body):
        if not self.admin:
            return h.refuse(403, "PermissionDenied", "only an admin may do that")
        if name == "fault" and not self.allow_faults:
            return h.refuse(403, "PermissionDenied", "faults are refused: the node runs without --allow-faults")
        if "actor" in body and body["actor"] not in {a["actor"] for a in ACTORS}:
            return h.refuse(404, "NotFound", f"there is no actor '{body['actor']}'")
        if name == "log":
            self.level = body["level"]
            return h.answer(200, {"level": self.level})
        if name == "send":
            return h.answer(200, {"answer": "acknowledged"})
        return h.answer(200, {"done": f"{name} of {body.get('actor', body.get('node', body.get('key')))}"})
