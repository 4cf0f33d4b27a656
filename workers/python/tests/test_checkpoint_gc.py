"""What the task that empties a bucket does with the storage managers of Determined's client, and what it tells the master."""

import http.server
import io
import json
import threading
import urllib.error

import pytest

from troupe.services import checkpoint_gc


class Gone(Exception):
    pass


class Manager:
    """A bucket with one checkpoint `u`. `keeps`: files that the server does not remove. `also`: what another task removes first."""

    def __init__(self, files, keeps=(), also=()):
        self.files = dict(files)
        self.keeps = set(keeps)
        self.also = set(also)

    def delete(self, uuid, globs):
        if uuid != "u":
            raise Gone()
        goes = set(self.files) if "**/*" in globs else {path for path in self.files if path in globs}
        goes |= self.also if globs else set()
        left = {path: size for path, size in self.files.items() if path not in goes}
        self.files = {path: size for path, size in self.files.items() if path not in goes or path in self.keeps}
        return left


FILES = {"weights": 5, "more/": 0, "more/state": 1}


@pytest.mark.parametrize("globs, left", [
    (["**/*"], {}),
    (["**"], {}),
    (["more/*"], {"weights": 5, "more/": 0}),
    (["more/**"], {"weights": 5}),
    (["more"], {"weights": 5}),
    (["**/st?te"], {"weights": 5, "more/": 0}),
    (["weights", "more/state"], {}),  # Folders alone are not a checkpoint.
    ([], FILES),  # The files are only listed.
    (["none"], FILES),
])
def test_a_removal_tells_what_is_left(globs, left):
    manager = Manager(FILES)
    assert checkpoint_gc.Removal(manager, Gone).remove("u", globs) == left
    assert manager.files == left
    assert checkpoint_gc.Removal(manager, Gone).remove("u", globs) == left, "a repeat changes nothing"


def test_a_checkpoint_that_is_gone_is_no_fault():
    removal = checkpoint_gc.Removal(Manager(FILES), Gone)
    assert removal.remove("v", ["**/*"]) == {} and not removal.found
    assert removal.remove("u", ["**/*"]) == {} and removal.found


def test_a_server_that_keeps_a_file_is_a_fault():
    with pytest.raises(OSError, match=r"1 of its files \(weights\)"):
        checkpoint_gc.Removal(Manager(FILES, keeps={"weights"}), Gone).remove("u", ["**/*"])


def test_what_another_task_removes_at_the_same_time_is_no_fault():
    manager = Manager(FILES, also={"more/", "more/state"})
    assert checkpoint_gc.Removal(manager, Gone).remove("u", ["more/state"]) == {"weights": 5}
    manager = Manager(FILES, also=FILES)
    assert checkpoint_gc.Removal(manager, Gone).remove("u", ["more/*"]) == {}


def test_a_removal_that_breaks_off_tells_what_is_left_of_its_checkpoint():
    removal = checkpoint_gc.Removal(Manager(FILES, keeps={"weights"}), Gone)
    with pytest.raises(OSError):
        removal.remove("u", ["**"])
    assert removal.broken_off() == {"u": {"weights": 5}}
    untouched = checkpoint_gc.Removal(Manager(FILES, keeps=FILES), Gone)
    with pytest.raises(OSError):
        untouched.remove("u", ["**"])
    assert untouched.broken_off() == {} and checkpoint_gc.Removal(Manager(FILES), Gone).broken_off() == {}


@pytest.mark.parametrize("storage", [
    {"type": "s3", "access_key": "an-id", "secret_key": "a-word", "endpoint_url": "http://ada:pass@host:1/?sig=abc"},
    {"type": "azure", "connection_string": "AccountName=a;AccountKey=k0y==;EndpointSuffix=x", "account_url": "https://a.example?sv=1&sig=abc"},
    {"type": "azure", "credential": "a-word"},
])
def test_secrets_of_a_storage_are_in_no_line(storage):
    text = checkpoint_gc.without(f"fault {storage}", checkpoint_gc.secrets_of(storage))
    for secret in ("an-id", "a-word", "ada:pass", "abc", "k0y=="):
        assert secret not in text


def refusal(code):
    return urllib.error.HTTPError("http://m", code, "no", {}, io.BytesIO())


def test_reports_are_repeated_while_the_master_cannot_answer(monkeypatch):
    monkeypatch.setattr(checkpoint_gc, "first_wait_seconds", 0.0)
    calls = []

    def call(told):
        calls.append([one["uuid"] for one in told])
        if len(calls) < 3:
            raise refusal(503) if len(calls) == 1 else OSError("it is away")
    checkpoint_gc.report(call, {"u": {}, "v": {"f": 1}})
    assert calls == [["u", "v"]] * 3
    with pytest.raises(OSError):
        checkpoint_gc.report(lambda told: (_ for _ in ()).throw(OSError("it is away")), {"u": {}})
    with pytest.raises(urllib.error.HTTPError):
        checkpoint_gc.report(lambda told: (_ for _ in ()).throw(refusal(403)), {"u": {}})


def test_a_checkpoint_that_the_master_has_forgotten_does_not_keep_it_from_hearing_of_others():
    heard = []

    def call(told):
        if any(one["uuid"] == "gone" for one in told):
            raise refusal(404)
        heard.append(told)
    checkpoint_gc.report(call, {"u": {}, "gone": {}, "v": {"f": 1}})
    assert heard == [[{"uuid": "u", "resources": {"resources": {}}}], [{"uuid": "v", "resources": {"resources": {"f": 1}}}]]


class Master(http.server.BaseHTTPRequestHandler):
    told: list = []

    def do_PATCH(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Master.told.append((self.path, self.headers["Grpc-Metadata-x-allocation-token"], body))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


@pytest.fixture
def run(monkeypatch):
    """Runs the program against a master that records what it hears, and returns that."""
    Master.told = []
    master = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Master)
    threading.Thread(target=master.serve_forever, daemon=True).start()

    def once(order):
        for name, text in {"DET_TASK_ID": "t", "DET_ALLOCATION_ID": "t.1", "DET_SESSION_TOKEN": "token", "TROUPE_SERVICE_CONFIG": json.dumps(order),
                           "DET_MASTER": f"http://127.0.0.1:{master.server_address[1]}"}.items():
            monkeypatch.setenv(name, text)
        assert checkpoint_gc.main() == 0
        return Master.told
    yield once
    master.shutdown()


@pytest.fixture
def bucket():
    boto3 = pytest.importorskip("boto3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    client = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{server.get_host_and_port()[1]}", region_name="us-east-1",
                          aws_access_key_id="an-id", aws_secret_access_key="a-word")
    client.create_bucket(Bucket="models")
    yield client
    server.stop()


def test_a_bucket_is_emptied_by_the_client_of_determined(bucket, run, capsys):
    pytest.importorskip("determined")
    board = "C/tensorboard/experiment"
    for key in ("u/weights", "u/more/", "u/more/state", "v/weights", "w/weights", f"{board}/7/trial/1/f", f"{board}/70/trial/2/f"):
        bucket.put_object(Bucket="models", Key=f"of/ours/{key}", Body=b"12345" if key.endswith("weights") else b"1")
    storage = {"type": "s3", "bucket": "models", "prefix": "of/ours", "access_key": "an-id", "secret_key": "a-word",
               "endpoint_url": bucket.meta.endpoint_url, "save_trial_best": 1}
    order = {"experiment": 7, "trial": None, "cluster": "C", "storage": storage, "globs": ["more/**"], "checkpoints": ["u"], "tensorboards": False}

    def left():
        return sorted(one["Key"][len("of/ours/"):] for one in bucket.list_objects_v2(Bucket="models").get("Contents", ()))
    (path, token, body), = run(order)
    assert (path, token) == ("/api/v1/checkpoints", "Bearer token")
    assert [one["uuid"] for one in body["checkpoints"]] == ["u"] and body["checkpoints"][0]["resources"]["resources"]["weights"] == 5
    assert "u/more/state" not in left()
    for key in ("x/a/", "x/a/b/", "x/a/b/[odd]*", "x/a/b/other"):
        bucket.put_object(Bucket="models", Key=f"of/ours/{key}", Body=b"1")
    order.update(globs=["a/**/[[]odd*"], checkpoints=["x"])
    run(order)
    assert [key for key in left() if key.startswith("x/")] == ["x/a/", "x/a/b/", "x/a/b/other"]
    order.update(globs=["**"])
    assert run(order)[-1][2]["checkpoints"] == [{"uuid": "x", "resources": {"resources": {}}}]
    assert not [key for key in left() if key.startswith("x/")]
    order.update(globs=["**/*"], checkpoints=["u", "v", "never-there"], tensorboards=True)
    for _ in range(2):
        told = run(order)[-1][2]["checkpoints"]
        assert told == [{"uuid": uuid, "resources": {"resources": {}}} for uuid in ("u", "v", "never-there")]
        assert left() == [f"{board}/70/trial/2/f", "w/weights"]
    order["storage"] = {**storage, "bucket": "no-such-bucket"}
    with pytest.raises(SystemExit):
        run(order)
    said = capsys.readouterr()
    assert "NoSuchBucket" in said.err and "0 of 3 checkpoints" in said.err
    assert "a-word" not in said.out + said.err and "an-id" not in said.out + said.err
