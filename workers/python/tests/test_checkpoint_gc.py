"""What the task that empties a bucket does with the storage managers of Determined's client, and what it tells the master."""

import http.server
import io
import json
import sys
import threading
import urllib.error
from pathlib import Path

import pytest

from troupe.services import checkpoint_gc

DATA = Path(__file__).resolve().parents[3] / "test" / "data"


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


@pytest.mark.parametrize("pattern, path, matches", json.loads((DATA / "glob_cases.json").read_text()))
def test_a_pattern_matches_as_it_does_in_folders(pattern, path, matches):
    assert checkpoint_gc.goes(path, [pattern]) == matches


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
    for globs in (["a"], ["a/**"], ["a", "**/b"], ["?"]):  # a folder with a folder in it
        for key in ("x/a/", "x/a/b/", "x/a/b//odd", "x/a/b/deep", "x/kept"):
            bucket.put_object(Bucket="models", Key=f"of/ours/{key}", Body=b"1")
        order.update(globs=globs, checkpoints=["x"])
        assert set(run(order)[-1][2]["checkpoints"][0]["resources"]["resources"]) == {"kept"}
        assert [key for key in left() if key.startswith("x/")] == ["x/kept"]
    odd = ["of/[1]/x/a//odd", "of/[1]/x/a/deep", "of/[1]/x/kept"]
    for key in odd:
        bucket.put_object(Bucket="models", Key=key, Body=b"1")
    for globs, kept in (([], odd), (["a"], odd[2:])):  # Without a pattern it only looks at what is there.
        order.update(globs=globs, storage={**storage, "prefix": "of/[1]"})
        run(order)
        assert [one["Key"] for one in bucket.list_objects_v2(Bucket="models", Prefix="of/[1]/")["Contents"]] == kept
    bucket.delete_object(Bucket="models", Key=odd[2])
    order.update(storage=storage)
    bucket.delete_object(Bucket="models", Key="of/ours/x/kept")
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


class BlobFault(Exception):
    error_code = "BlobNotFound"


class Azure:
    """Takes the place of the client's access to Azure, with blobs by container and name. `also`: what another task removes before the
    first removal here. As at Azure, a blob is written and removed also through a container `models/sub`, but only `models` is listed."""

    blobs: dict = {}
    also: list = []

    def __init__(self, container, connection_string, account_url, credential):
        pass

    def list_files(self, container, file_prefix):
        if "/" in container:
            raise BlobFault("The specified blob does not exist.")
        return {name: size for name, size in Azure.blobs.items() if name.startswith(f"{file_prefix}")}

    def delete_files(self, container, files):
        while files and Azure.also:
            Azure.blobs.pop(Azure.also.pop(), None)
        for file in files:
            name = f"{container}/{file}".partition("/")[2]
            if name not in Azure.blobs:
                raise BlobFault("The specified blob does not exist.\nRequestId:1")
            del Azure.blobs[name]


@pytest.fixture
def azure(monkeypatch):
    pytest.importorskip("determined")
    from determined.common.storage import azure_client

    monkeypatch.setattr(azure_client, "AzureStorageClient", Azure)
    Azure.blobs, Azure.also = {}, []
    return Azure


def azure_order(container="models", **more):
    return {"experiment": 7, "trial": None, "cluster": "C", "storage": {"type": "azure", "container": container, "connection_string": "x"},
            "globs": [], "checkpoints": ["u", "v"], "tensorboards": False, **more}


@pytest.mark.parametrize("globs, left", [(["**"], ["v/weights"]), (["more"], ["u/weights", "v/weights"])])
def test_what_another_task_has_removed_from_azure_ends_no_removal(azure, run, globs, left):
    azure.blobs.update({f"{uuid}/{path}": size for uuid in "uv" for path, size in {**FILES, "more/deep/": 0, "more/deep/state": 1}.items()})
    azure.also += ["u/more/", "u/more/deep/state", "v/more/", "v/more/state", "v/more/deep/", "v/more/deep/state"]
    told = run(azure_order(globs=globs, checkpoints=["u"]))[-1][2]["checkpoints"]
    assert sorted(azure.blobs) == left
    assert told == [{"uuid": "u", "resources": {"resources": {} if globs == ["**"] else {"weights": 5}}}]


def test_other_tensorboard_files_go_from_azure_where_another_task_has_removed_some(azure, run):
    at = "C/tensorboard/experiment"
    azure.blobs.update({f"{at}/7/trial/{trial}/f": 1 for trial in (1, 2, 3)} | {f"{at}/70/trial/1/f": 1})
    azure.also += [f"{at}/7/trial/1/f", f"{at}/7/trial/2/f"]
    run(azure_order(checkpoints=[], tensorboards=True))
    assert sorted(azure.blobs) == [f"{at}/70/trial/1/f"]


@pytest.mark.parametrize("container", ["models/runs/old", "models/runs/old/"])
def test_what_was_saved_to_a_folder_of_an_azure_container_is_removed(azure, run, container):
    at = "C/tensorboard/experiment/7/trial/1/f"
    kept = {"u/weights": 5, at: 1, "runs/u/weights": 5}
    azure.blobs.update(kept | {f"runs/old/{path}": 1 for path in ("u/weights", "u/more/", "u/more/state", "v/weights", at)})
    told = run(azure_order(container, globs=["more"]))[-1][2]["checkpoints"]
    assert [(one["uuid"], set(one["resources"]["resources"])) for one in told] == [("u", {"weights"}), ("v", {"weights"})]
    assert "runs/old/u/more/state" not in azure.blobs and at in azure.blobs
    told = run(azure_order(container, globs=["**/*"], tensorboards=True))[-1][2]["checkpoints"]
    assert told == [{"uuid": uuid, "resources": {"resources": {}}} for uuid in "uv"] and azure.blobs == kept


def test_a_fault_of_azure_at_a_removal_is_told(azure, run, capsys, monkeypatch):
    azure.blobs.update({"u/weights": 5})
    refused = type("Refused", (Exception,), {"error_code": "AuthorizationFailure"})
    monkeypatch.setattr(azure, "delete_files", lambda *_: (_ for _ in ()).throw(refused("not allowed")))
    with pytest.raises(SystemExit):
        run(azure_order(globs=["**/*"]))
    assert "0 of 2 checkpoints done: not allowed" in capsys.readouterr().err


def test_the_task_says_how_to_install_what_the_bucket_needs(run, capsys, monkeypatch):
    pytest.importorskip("determined")
    monkeypatch.setitem(sys.modules, "azure", None)
    monkeypatch.setitem(sys.modules, "azure.core.exceptions", None)
    with pytest.raises(SystemExit):
        run(azure_order(globs=["**/*"]))
    assert f"0 of 2 checkpoints done: files in a bucket are removed by Determined's client: '{sys.executable} -m pip install determined==" in capsys.readouterr().err


def test_what_another_task_has_removed_from_google_ends_no_removal(run, monkeypatch):
    pytest.importorskip("determined")
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    server = emulator.create_server("127.0.0.1", 0, in_memory=True)
    server.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server._api._httpd.server_address[1]}")
    client = storage.Client(project="p", credentials=AnonymousCredentials())
    monkeypatch.setattr(storage, "Client", lambda: client)
    at = "C/tensorboard/experiment"
    lists = client.list_blobs
    absent = []

    def listed(bucket, **more):
        found = list(lists(bucket, **more))
        for blob in found:
            if blob.name in absent:  # Another task removes it after it was listed.
                absent.remove(blob.name)
                client.bucket("models").blob(blob.name).delete()
        return found
    try:
        bucket = client.create_bucket("models")
        for name in ("u/weights", "u/more/", "u/more/state", f"{at}/7/trial/1/f", f"{at}/7/trial/2/f", f"{at}/70/trial/1/f"):
            bucket.blob(name).upload_from_string("1")
        monkeypatch.setattr(client, "list_blobs", listed)
        order = {"experiment": 7, "trial": None, "cluster": "C", "storage": {"type": "gcs", "bucket": "models"}, "globs": ["more"],
                 "checkpoints": ["u"], "tensorboards": True}
        absent += ["u/more/", f"{at}/7/trial/1/f"]
        assert run(order)[-1][2]["checkpoints"] == [{"uuid": "u", "resources": {"resources": {"weights": 1}}}]
        assert not absent and [blob.name for blob in lists("models")] == [f"{at}/70/trial/1/f", "u/weights"]
    finally:
        server.stop()
