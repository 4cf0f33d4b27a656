"""Tests what a forked process asks the master when its trial runs on several agents, and what it does with each answer."""

import http.server
import json
import os
import pathlib
import threading
import time

import pytest

import troupe

PATH = pathlib.Path(troupe.__file__).parent / "_zygote" / "child.py"
GANG = {"addresses": ["10.0.0.1", "10.0.0.2"], "slots": [1, 2], "rank": 1, "ports": [1000, 1001, 1002, 1003]}
PORTS = {"DTRAIN_SSH_PORT": "1000", "INTER_TRAIN_PROCESS_COMM_PORT_1": "1001", "INTER_TRAIN_PROCESS_COMM_PORT_2": "1002", "C10D_PORT": "1003"}


@pytest.fixture
def child(tmp_path):
    space = {}
    exec(compile(PATH.read_text(), str(PATH), "exec"), space)
    space["PAUSES_S"] = (0.01, 0.01, 0.01)
    space["RENDEZVOUS_FILE"] = str(tmp_path / "rendezvous.json")
    return space


@pytest.fixture
def agent(monkeypatch):
    """A server that gives the answers in `agent.answers` in turn, and after these the rendezvous of the gang."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append((self.path, self.headers["Authorization"]))
            time.sleep(server.slow.pop(0) if server.slow else 0)
            status, body = server.answers.pop(0) if server.answers else (200, json.dumps({"rendezvousInfo": GANG}))
            if status == 0:
                return  # The client has closed the connection.
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, *_):
            pass  # The caller has not waited for the answer.

    server = Server(("127.0.0.1", 0), Handler)
    server.asked, server.answers, server.slow = [], [], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    for name, text in {"DET_MASTER": f"http://127.0.0.1:{server.server_port}", "DET_ALLOCATION_ID": "3.7.1", "DET_RESOURCES_ID": "r.1",
                       "DET_SESSION_TOKEN": "secret", "TROUPE_NODES": "2", "TROUPE_LAUNCH": "per_slot"}.items():
        monkeypatch.setenv(name, text)
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_one_agent_asks_for_nothing(child, agent, monkeypatch):
    monkeypatch.setenv("TROUPE_NODES", "1")
    assert child["meet_gang"]([]) == {} and agent.asked == []
    assert not os.path.exists(child["RENDEZVOUS_FILE"])


@pytest.mark.parametrize("before", [[], [(503, "away")] * 3, [(0, "")], [(502, "x"), (0, ""), (500, "y")]])
def test_it_asks_again_while_the_master_is_away(child, agent, before):
    agent.answers = list(before)
    assert child["meet_gang"]([]) == {**PORTS, "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "1003", "TROUPE_DIST_PORT": "1001",
                                      "TROUPE_GANG": "10.0.0.1=1 10.0.0.2=2"}
    assert agent.asked == [("/api/v1/allocations/3.7.1/resources/r.1/rendezvous?ports=0,0,0,0", "Bearer secret")] * (len(before) + 1)
    with open(child["RENDEZVOUS_FILE"]) as file:
        assert json.load(file) == {"container_addrs": GANG["addresses"], "container_rank": 1, "container_slot_counts": [1, 2]}


def test_that_the_others_have_not_come_is_no_failure(child, agent):
    child["ANSWER_S"] = 0.1
    agent.slow = [0.3] * 6  # more slow answers than there are pauses
    assert child["meet_gang"]([])["MASTER_ADDR"] == "10.0.0.1"
    assert len(agent.asked) >= 7


def test_the_chief_tells_its_ports_and_one_process_for_each_agent_has_nothing_else(child, agent, monkeypatch):
    monkeypatch.delenv("TROUPE_LAUNCH")
    for name, port in PORTS.items():
        monkeypatch.setenv(name, port)
    assert child["meet_gang"]([]) == PORTS
    assert agent.asked[0][0].endswith("/rendezvous?ports=1000,1001,1002,1003")
    assert os.path.exists(child["RENDEZVOUS_FILE"])


@pytest.mark.parametrize("answers, says, asked", [([(403, "not yours")], "403: not yours", 1), ([(503, "away")] * 9, "503: away", 4)])
def test_it_gives_up_with_the_reason(child, agent, answers, says, asked):
    agent.answers = answers
    with pytest.raises(RuntimeError, match=f"no rendezvous with the other agents: {says}"):
        child["meet_gang"]([])
    assert len(agent.asked) == asked
    assert not os.path.exists(child["RENDEZVOUS_FILE"])
