"""Streaming updates by `determined.common.streams` of the unmodified wheel, also over a restart of the master."""

import base64
import http.client
import os
import socket
import struct
import threading
import urllib.parse
import urllib.request

import pytest
from determined.common import api, streams
from determined.common.api import bindings as b
from determined.common.streams import _client, wire

from cluster_under_test import free_port, wait_for
from test_stock_client import Stock


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Stock(tmp_path_factory.mktemp("streams")) as cluster:
        cluster.listen = f"127.0.0.1:{free_port()}"  # the same address after a restart
        cluster.up(slots=1)
        yield cluster


@pytest.fixture(scope="module")
def user(cluster):
    stranger = api.UnauthSession(cluster.url(), cert=None)
    login = b.post_Login(stranger, body=b.v1LoginRequest(username="determined", password="", isHashed=True))
    return api.Session(cluster.url(), "determined", login.token, None)


class Heard:
    """Collects the messages of a stream of the wheel on a thread."""

    def __init__(self, user, **wants):
        self.stream = _client.Stream(_client.LomondStreamWebSocket(user))
        self.stream.subscribe(sync_id="s", **wants)
        self.all = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        for one in self.stream:
            self.all.append(one)

    def synced(self):
        return any(isinstance(x, _client.Sync) and x.complete for x in self.all)

    def names(self, kind):
        return [x.name for x in self.all if isinstance(x, kind)]


def test_what_is_there_and_what_changes(cluster, user):
    assert "streaming_updates" in b.get_GetMaster(user).featureSwitches
    place = b.post_PostWorkspace(user, body=b.v1PostWorkspaceRequest(name="watched")).workspace.id
    other = b.post_PostWorkspace(user, body=b.v1PostWorkspaceRequest(name="other")).workspace.id
    first = b.post_PostProject(user, workspaceId=place, body=b.v1PostProjectRequest(name="first", workspaceId=place)).project
    heard = Heard(user, projects=_client.ProjectSpec(workspace_id=place), models=_client.ModelSpec(workspace_id=place))
    wait_for(heard.synced, 10)
    assert heard.names(wire.ProjectMsg) == ["first"]
    b.post_PostProject(user, workspaceId=other, body=b.v1PostProjectRequest(name="unseen", workspaceId=other))
    second = b.post_PostProject(user, workspaceId=place, body=b.v1PostProjectRequest(name="second", workspaceId=place)).project
    model = b.post_PostModel(user, body=b.v1PostModelRequest(name="net", workspaceId=place, labels=["a"])).model
    wait_for(lambda: heard.names(wire.ModelMsg) == ["net"], 10)
    assert heard.names(wire.ProjectMsg) == ["first", "second"]
    told = [x for x in heard.all if isinstance(x, (wire.ProjectMsg, wire.ModelMsg))]
    assert [x.seq for x in told] == sorted(x.seq for x in told)
    assert (told[-1].labels, told[-1].user_id, told[-1].workspace_id) == (["a"], model.userId, place)
    b.post_MoveProject(user, projectId=first.id, body=b.v1MoveProjectRequest(projectId=first.id, destinationWorkspaceId=other))
    b.delete_DeleteProject(user, id=second.id)
    wait_for(lambda: {x.keys for x in heard.all if isinstance(x, wire.ProjectsDeleted)} == {str(first.id), str(second.id)}, 10)
    # After a restart of the master the client connects again by itself, keeps what it had, and gets what is new.
    cluster.kill_node()
    cluster.up(slots=1)
    b.patch_PatchModel(user, modelName="net", body=b.v1PatchModel(description="after"))
    wait_for(lambda: [x.description for x in heard.all if isinstance(x, wire.ModelMsg)][-1] == "after", 60)
    heard.stream._ws.close()  # The thread that reads ends with it.


def handshake(cluster, token, more=""):
    at = urllib.parse.urlparse(cluster.url())
    link = socket.create_connection((at.hostname, at.port), timeout=120)
    key = base64.b64encode(os.urandom(16)).decode()
    link.sendall((f"GET /stream HTTP/1.1\r\nHost: {at.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                  f"Sec-WebSocket-Key: {key}\r\n{'Authorization: Bearer ' + token + chr(13) + chr(10) if token else ''}{more}\r\n").encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += link.recv(1)
    return link, head.split(b" ")[1]


def frame(text):
    mask = b"abcd"
    size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text)) if len(text) < 65536 else b"\xff" + struct.pack(">Q", len(text))
    return b"\x81" + size + mask + bytes(c ^ mask[i % 4] for i, c in enumerate(text))


def closing(link):
    """The code of the close frame, which may follow any number of texts."""
    data = b""
    link.settimeout(120)
    while part := link.recv(65536):
        data += part
    assert data[-100:].rfind(b"\x88") >= 0, data[-100:]
    at = data.rfind(b"\x88")
    return struct.unpack(">H", data[at + 2:at + 4])[0]


def test_what_is_no_subscription_ends_the_connection(cluster, user):
    assert handshake(cluster, "")[1] == b"401" and handshake(cluster, "nonsense")[1] == b"401"
    for message, code in [(b"{", 1008), (b'{"sync_id": "a", "strange": 1}', 1008), (b'{"sync_id": "a", "known": {"projects": "x"}}', 1008),
                          (b"x" * (2 << 20), 1009)]:
        link, status = handshake(cluster, user.token)
        assert status == b"101"
        link.sendall(frame(message))
        assert closing(link) == code, message[:50]
    link, status = handshake(cluster, user.token)
    link.sendall(frame(b'{"sync_id": "a", "subscribe": {"projects": {"project_ids": [1]}}}'))
    got = b""
    while b'"complete":true' not in got.replace(b" ", b""):
        got += link.recv(65536)
    assert b"Uncategorized" in got


def test_the_end_of_a_login_ends_its_streams(cluster):
    stranger = api.UnauthSession(cluster.url(), cert=None)
    login = b.post_Login(stranger, body=b.v1LoginRequest(username="determined", password="", isHashed=True))
    link, status = handshake(cluster, login.token)
    assert status == b"101"
    link.sendall(frame(b'{"sync_id": "a", "subscribe": {"projects": {"project_ids": [1]}}}'))
    assert b"sync_id" in link.recv(65536)
    facts = urllib.request.Request(cluster.url() + "/troupe/v1/events?after=0", headers={"Authorization": "Bearer " + login.token})
    with urllib.request.urlopen(facts, timeout=120) as followed:
        assert followed.readline()
        b.post_Logout(api.Session(cluster.url(), "determined", login.token, None))
        assert closing(link) == 1008
        with pytest.raises(http.client.IncompleteRead):
            followed.read()
