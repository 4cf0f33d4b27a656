#!/usr/bin/env python3
"""Makes directory.tar.xz and expected.json here with a build of Troupe: what later builds must be able to read.

    test/data/kept_directory/make.py path/to/troupe

It needs root: the host gets a name of its own, and the source tree with that build the path /opt/troupe, so that nothing of the
maker's host is in the files. The directory lies at ROOT, since
facts hold absolute paths; test/cluster/test_kept_directory.py puts it there again. A file of this folder is replaced only when a
new kind of fact is to be kept, and then the old archive stays beside the new one.
"""

import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path("/var/tmp/troupe-kept-directory")
HOST = "kept"

# Every epoch is validated and saved. After the fourth it stays there for as long as the file hold-NAME exists; `deaf` does not
# hear that it should stop.
SCRIPT = """
import json, os, pathlib, sys, time, troupe
p = troupe.params(x=0.5, fail=False, deaf=False)
root, name = pathlib.Path(os.environ["KEPT"]), os.environ["NAME"]
def note(kind, epoch):
    with open(root / "acks", "a") as f:
        f.write(json.dumps({"kind": kind, "trial": int(os.environ["DET_TRIAL_ID"]), "epoch": epoch}) + "\\n")
print("trains", name, flush=True)
if p.fail:
    sys.exit(3)
start = 0
if path := troupe.resume():
    start = json.loads((path / "state.json").read_text())["epoch"]
def held():
    while (root / ("hold-" + name)).exists():
        if not p.deaf and troupe.should_stop():
            return True
        time.sleep(0.05)
    return troupe.should_stop() and not p.deaf
for epoch in range(start + 1, 9):
    if epoch > 4 and held():
        break
    troupe.validate({"loss": (p.x - 0.3) ** 2 + 1.0 / epoch, "epoch": epoch}, step=epoch)
    note("validated", epoch)
    with troupe.checkpoint(epoch) as path:
        (path / "state.json").write_text(json.dumps({"epoch": epoch}))
    note("saved", epoch)
    if troupe.should_stop() and not p.deaf:
        break
"""

CONFIG = """
name: {name}
entrypoint: python3 job.py
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}, fail: {fail}, deaf: {deaf}}}
searcher: {searcher}
reproducibility: {{experiment_seed: 7}}
max_restarts: {max_restarts}
{more}
environment: {{environment_variables: ["KEPT={root}", "NAME={name}"]}}
"""
RANDOM = "{name: random, metric: loss, max_trials: 2, max_concurrent_trials: 2}"
ONE = "{name: random, metric: loss, max_trials: 1}"
ASHA = ("{name: adaptive_asha, metric: loss, time_metric: epoch, max_time: 8, max_trials: 6, max_concurrent_trials: 2, divisor: 4, "
        "mode: aggressive}")

CLUSTER = """
troupe: 1
cluster: {name: kept, listen: "127.0.0.1:0"}
pools: {main: {default: true}, side: {defaults: {max_restarts: 1}}}
nodes:
- {name: kept1, host: localhost, slots: {cpu: 3}, pool: main}
- {name: kept2, host: localhost, slots: {cpu: 1}, pool: side}
users:
- {name: ada, role: admin, password: countess, tokens: [{name: nightly, expires: 36500d}]}
- {name: bob}
"""


def expected(cluster):
    """What lists say, without what changes from one asking to the next."""
    experiments = {}
    for row in sorted(cluster.call("/api/v1/experiments?limit=-1")[1]["experiments"], key=lambda e: e["id"]):
        trials = cluster.call(f"/api/v1/experiments/{row['id']}/trials?limit=-1")[1]["trials"]
        experiments[row["name"]] = {
            "id": row["id"], "state": row["state"].removeprefix("STATE_"), "owner": row["username"], "startTime": row["startTime"],
            "trials": {str(t["id"]): {"state": t["state"].removeprefix("STATE_"), "hparams": t["hparams"], "restarts": t["restarts"],
                                      "metadata": cluster.call(f"/api/v1/runs/{t['id']}/metadata")[1].get("metadata")}
                       for t in sorted(trials, key=lambda t: t["id"])},
            "checkpoints": {c["uuid"]: {"trial": c["trialId"], "steps": c["totalBatches"], "state": c["state"].removeprefix("STATE_"),
                                        "files": sorted(c["resources"])} for c in cluster.checkpoints(row["id"])},
            "metrics": {str(t["id"]): [[m["group"], m["totalBatches"], m["metrics"]] for m in cluster.json("trial", "metrics", str(t["id"]))]
                        for t in trials},
        }
    users = {u["username"]: {"id": u["id"], "admin": u["admin"], "active": u["active"], "displayName": u.get("displayName", "")}
             for u in cluster.call("/api/v1/users")[1]["users"]}
    configuration = cluster.call("/troupe/v1/configuration")[1]
    return {"experiments": experiments, "users": users, "configuration": configuration["configuration"],
            "revision": configuration["revision"], "by_hand": configuration["byHand"]}


def main():
    if socket.gethostname() != HOST:
        tree = HERE.parents[2]
        program = pathlib.Path(sys.argv[1]).resolve().relative_to(tree)
        there = ("hostname %s && mount -t tmpfs none /opt && mkdir /opt/troupe /opt/venv && mount --bind %s /opt/troupe && "
                 "mount --bind %s /opt/venv && cd / && exec /opt/venv/bin/python3 /opt/troupe/%s /opt/troupe/%s")
        os.execvp("unshare", ["unshare", "--uts", "--mount", "sh", "-c", there % (
            HOST, tree, (tree / ".venv").resolve(), pathlib.Path(__file__).resolve().relative_to(tree), program)])
    os.environ.update(TROUPE_BINARY=sys.argv[1], TROUPE_PYTHON_BIN="/opt/venv/bin", PATH="/opt/venv/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    sys.path.insert(0, str(HERE.parents[1] / "cluster"))
    from cluster_under_test import BINARY, Cluster, wait_for

    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir()
    cluster = Cluster(ROOT)
    try:
        make(cluster, BINARY, wait_for)
    finally:
        cluster.close()
    pack()


def make(cluster, binary, wait_for):
    (ROOT / "kept.yaml").write_text(CLUSTER)
    cluster.process = subprocess.Popen([binary, "up", str(ROOT / "kept.yaml"), "--data-dir", str(cluster.data)], env=cluster.env,
                                       stdout=cluster.log, stderr=cluster.log, start_new_session=True)
    wait_for(cluster.answers, 60)
    wait_for(lambda: len([a for a in cluster.json("agent", "list") if a["state"] == "alive"]) == 2, 60, what=lambda: cluster.json("agent", "list"))

    def submit(name, searcher, hold=False, fail="false", deaf="false", max_restarts=0, more=""):
        job = ROOT / "job"
        job.mkdir(exist_ok=True)
        (job / "job.py").write_text(SCRIPT)
        if hold:
            (ROOT / ("hold-" + name)).touch()
        config = ROOT / "job.yaml"
        config.write_text(CONFIG.format(name=name, searcher=searcher, fail=fail, deaf=deaf, max_restarts=max_restarts, more=more, root=ROOT))
        return cluster.json("experiment", "create", str(config), str(job))["id"]

    def saved(id, count):
        return len(cluster.checkpoints(id)) >= count

    def ends(id, state):
        assert cluster.wait_end(id) == state, cluster.json("experiment", "describe", str(id))

    finished = submit("finished", RANDOM, more=f"checkpoint_storage: {{type: directory, container_path: {ROOT}/elsewhere, save_trial_best: 1, save_trial_latest: 1, save_experiment_best: 1}}")
    ends(finished, "COMPLETED")
    wait_for(lambda: len(cluster.checkpoints(finished)) == 2, 30)  # the best are the latest here; the others were deleted
    ends(submit("failed", ONE, fail="true", max_restarts=1), "ERROR")
    for name, verb in (("canceled", "cancel"), ("killed", "kill")):
        id = submit(name, ONE, hold=True)
        wait_for(lambda: saved(id, 4), 60)
        cluster.cli("experiment", verb, str(id))
        ends(id, "CANCELED")
    paused = submit("paused", RANDOM, hold=True)
    wait_for(lambda: saved(paused, 8), 60)
    cluster.cli("experiment", "pause", str(paused))
    wait_for(lambda: cluster.json("status")["slots"]["used"] == 0, 30)
    running = submit("running", ASHA, hold=True)
    wait_for(lambda: saved(running, 8), 60)
    stopping = submit("stopping", ONE, hold=True, deaf="true")
    wait_for(lambda: saved(stopping, 4), 60)
    cluster.cli("experiment", "cancel", str(stopping))
    wait_for(lambda: cluster.state(stopping) == "STOPPING_CANCELED", 20)
    submit("queued", ONE)

    status, carl = cluster.call("/api/v1/users", {"user": {"username": "carl", "displayName": "Carl", "active": True}, "password": "", "isHashed": False})
    assert status == 200, carl
    assert cluster.call("/api/v1/users", {"user": {"username": "dora", "active": True}, "password": "exploradora"})[0] == 200
    request = cluster.request(f"/api/v1/users/{carl['user']['id']}", json.dumps({"active": False}).encode())
    request.method = "PATCH"
    urllib.request.urlopen(request, timeout=20).close()
    assert cluster.call(f"/api/v1/runs/{cluster.trials(finished)[0]['id']}/metadata", {"metadata": {"kept": [1, "two"]}})[0] == 200
    cluster.cli("shell", "-e", ":rw", "-e", "drain kept2", "-e", "config set trace.max 5000")

    known = expected(cluster)
    cluster.kill_everything()
    (HERE / "expected.json").write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def pack():
    with tarfile.open(HERE / "directory.tar.xz", "w:xz", preset=9) as archive:
        for file in sorted(ROOT.rglob("*")):
            name = str(file.relative_to(ROOT))
            if file.is_dir() or file.is_symlink() or not file.is_file():
                continue
            if name.startswith(("job", ".", "data/lock")) or file.name.startswith("LOG"):
                continue
            if file.suffix == ".log" and not file.stem.isdigit():  # RocksDB's journals have such names too
                continue
            about = tarfile.TarInfo(name)
            about.size, about.mode, about.mtime = file.stat().st_size, file.stat().st_mode & 0o777, int(file.stat().st_mtime)
            archive.addfile(about, io.BytesIO(file.read_bytes()))
    shutil.rmtree(ROOT)
    print(HERE / "directory.tar.xz", (HERE / "directory.tar.xz").stat().st_size, "bytes")


if __name__ == "__main__":
    main()
