"""The commands for clouds: `aws` against a local mock of EC2 (moto), and `gcp` against a stub of gcloud that records its calls."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import urllib.request

import pytest

from cluster_under_test import free_port, wait_for

PROVIDERS = pathlib.Path(__file__).resolve().parents[2] / "configs/providers"
MOTO = shutil.which("moto_server", path=str(pathlib.Path(sys.executable).parent) + ":" + os.environ["PATH"])
ENV = {"TROUPE_POOL": "gpu", "TROUPE_COUNT": "0", "TROUPE_MASTER": "head:8080", "TROUPE_JOIN_TOKEN_FILE": "", "TROUPE_SLOTS": "8", "TROUPE_LABELS": "spot=x,zone=b"}


def run(env, *words):
    return subprocess.run([sys.executable, *map(str, words)], env={**os.environ, **ENV, **env}, capture_output=True, text=True, timeout=300)


@pytest.fixture
def ec2(tmp_path):
    port = free_port()
    server = subprocess.Popen([MOTO, "-H", "127.0.0.1", "-p", str(port)], stdout=open(tmp_path / "moto.log", "w"), stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"

    def answers():
        assert server.poll() is None, (tmp_path / "moto.log").read_text()
        try:
            return urllib.request.urlopen(url + "/moto-api/", timeout=10).status == 200
        except OSError:
            return False
    try:
        wait_for(answers, 40)
        yield url
    finally:
        server.kill()
        server.wait()


@pytest.mark.skipif(not MOTO or not shutil.which("aws"), reason="moto_server (PyPI moto) or aws (Debian awscli) is not installed")
def test_aws_launches_lists_and_ends_by_tag(ec2, tmp_path):
    env = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "eu-central-1", "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}
    to = ["--endpoint-url", ec2]
    aws = PROVIDERS / "aws"
    nothing = run(env, aws, "list", *to)
    assert nothing.returncode == 0 and nothing.stdout == "", nothing
    images = json.loads(subprocess.run(["aws", "ec2", "describe-images", "--output", "json", *to], env={**os.environ, **env}, capture_output=True, check=True).stdout)
    image = images["Images"][0]["ImageId"]
    ids = []
    for _ in range(2):  # The mock launches the lowest number of a range, which is one.
        made = run({**env, "TROUPE_COUNT": "2"}, aws, "launch", *to, "--image", image, "--type", "p3.2xlarge", "--spot", "--tls-dir", "/etc/tls")
        assert made.returncode == 0, made
        ids += made.stdout.split()
    assert len(set(ids)) == 2, ids
    rows = [json.loads(line) for line in run(env, aws, "list", *to).stdout.splitlines()]
    assert sorted(r["id"] for r in rows) == sorted(ids) and all(r["agent"] == r["id"] and r["state"] in ("starting", "running") for r in rows), rows
    assert all(r["launched"].endswith("Z") for r in rows), rows
    other = run({**env, "TROUPE_POOL": "other"}, aws, "list", *to)
    assert other.returncode == 0 and other.stdout == "", "instances of another pool"
    done = run(env, aws, "terminate", *to, ids[0])
    assert done.returncode == 0, done
    assert [json.loads(line)["id"] for line in run(env, aws, "list", *to).stdout.splitlines()] == [ids[1]]
    script = json.loads(subprocess.run(["aws", "ec2", "describe-instance-attribute", "--instance-id", ids[1], "--attribute", "userData", "--output", "json", *to],
                                       env={**os.environ, **env}, capture_output=True, check=True).stdout)
    text = base64.b64decode(script["UserData"]["Value"]).decode()
    assert "troupe agent --master head:8080 --pool gpu" in text and "--label spot=x --label zone=b --tls-dir /etc/tls" in text, text
    refused = run({**env, "TROUPE_COUNT": "1"}, aws, "terminate", *to, "i-00000000000000000")
    assert refused.returncode != 0 and "InvalidInstanceID" in refused.stderr.splitlines()[-1], refused


def test_gcp_says_to_gcloud_what_it_should(tmp_path):
    stub = tmp_path / "gcloud"
    stub.write_text("#!" + sys.executable + """
import json, os, sys
root = os.path.dirname(os.path.abspath(__file__))
open(root + "/calls", "a").write(json.dumps(sys.argv[1:]) + "\\n")
what = sys.argv[3]
if os.path.exists(root + "/fails"):
    print("WARNING: something", file=sys.stderr)
    print("ERROR: (gcloud.compute.instances.create) QUOTA_EXCEEDED", file=sys.stderr)
    sys.exit(1)
state = root + "/state"
names = json.load(open(state)) if os.path.exists(state) else []
if what == "create":
    new = [w for w in sys.argv[4:sys.argv.index("--zone")]]
    json.dump(names + new, open(state, "w"))
    print(json.dumps([{"name": n, "status": "RUNNING"} for n in new]))
elif what == "list":
    print(json.dumps([{"name": n, "status": "STAGING", "creationTimestamp": "2026-01-02T03:04:05.000-08:00"} for n in names]))
else:
    gone = [w for w in sys.argv[4:sys.argv.index("--zone")]]
    json.dump([n for n in names if n not in gone], open(state, "w"))
    print("[]")
""")
    stub.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    where = ["--project", "lab", "--zone", "z1"]
    gcp = PROVIDERS / "gcp"
    made = run({**env, "TROUPE_COUNT": "2"}, gcp, "launch", *where, "--image", "troupe-1", "--type", "a2-highgpu-8g", "--spot", "--master", "h:1")
    ids = made.stdout.split()
    assert made.returncode == 0 and len(set(ids)) == 2 and all(i.startswith("troupe-gpu-") for i in ids), made
    rows = [json.loads(line) for line in run(env, gcp, "list", *where).stdout.splitlines()]
    assert [r["id"] for r in rows] == ids and rows[0]["state"] == "starting" and rows[0]["agent"] == ids[0], rows
    assert run(env, gcp, "terminate", *where, ids[0]).returncode == 0
    assert len(run(env, gcp, "list", *where).stdout.splitlines()) == 1
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    create = calls[0]
    assert create[:3] == ["compute", "instances", "create"] and "--provisioning-model" in create and "SPOT" in create, create
    assert "troupe-pool=gpu,troupe-cluster=troupe" in create, create
    assert any(w.startswith("startup-script=") and "--master h:1 --pool gpu" in w for w in create), create
    assert calls[-2][:4] == ["compute", "instances", "delete", ids[0]], calls[-2]
    (tmp_path / "fails").touch()
    failed = run({**env, "TROUPE_COUNT": "1"}, gcp, "launch", *where, "--image", "i", "--type", "t")
    assert failed.returncode != 0 and failed.stderr.splitlines()[-1] == "ERROR: (gcloud.compute.instances.create) QUOTA_EXCEEDED", failed
