"""What a cluster knows about its slots: GPUs by a library with the name and functions of NVIDIA's, and CPUs without it."""

import os
import pathlib
import subprocess

import pytest

from cluster_under_test import Cluster, wait_for

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "data/fake_nvml/fake_nvml.c"
SCRIPT = """
import os, time, troupe
troupe.params(x=1)
with open(os.environ["FACTS_DIR"] + "/sees", "w") as file:
    file.write(os.environ.get("CUDA_VISIBLE_DEVICES", "unset"))
until = time.time() + 900
while not os.path.exists(os.environ["FACTS_DIR"] + "/go") and time.time() < until:
    sum(range(100000))
troupe.validate({"loss": 1.0}, step=1)
"""


@pytest.fixture(scope="module")
def nvml(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", SOURCE], check=True)
    return folder


@pytest.fixture
def start(tmp_path):
    clusters = []

    def up(slots=None, **env):
        cluster = Cluster(tmp_path)
        clusters.append(cluster)
        cluster.env.update(env)
        cluster.up(slots=slots)
        return cluster

    yield up
    for one in clusters:
        one.close()


def submit(cluster, slots=1):
    job = cluster.root / "job"
    job.mkdir(exist_ok=True)
    (job / "train.py").write_text(SCRIPT)
    file = cluster.root / "job.yaml"
    file.write_text(f"""
name: slots
entrypoint: python3 train.py
hyperparameters: {{x: 1}}
searcher: {{name: single, metric: loss}}
resources: {{slots_per_trial: {slots}}}
environment: {{environment_variables: ["FACTS_DIR={cluster.root}"]}}
""")
    return cluster.json("experiment", "create", str(file), str(job))["id"]


def system_metrics(cluster, trial):
    return [row["metrics"] for row in cluster.json("trial", "metrics", str(trial), "--group", "system")]


def used(cluster, count):
    """Waits until `count` slots have reported their usage, and returns their rows."""
    rows = lambda: [row for row in cluster.json("slot", "list") if "usage" in row]
    return wait_for(lambda: len(found := rows()) == count and found, what=rows)


def test_gpus_are_the_slots_of_an_agent_that_has_them(start, nvml):
    cluster = start(LD_LIBRARY_PATH=str(nvml))
    wait_for(lambda: cluster.json("status")["slots"]["total"] == 2)
    rows = used(cluster, 2)
    assert [row["device"]["brand"] for row in rows] == ["Fake GPU A", "Fake GPU B"]
    assert [row["device"]["uuid"] for row in rows] == ["GPU-0-fake", "GPU-1-fake"]
    assert [row["device"]["type"] for row in rows] == ["TYPE_CUDA", "TYPE_CUDA"]
    assert rows[1]["usage"] == {"utilization_percent": 50, "memory_bytes": 16 << 30, "memory_used_bytes": 2 << 30, "temperature_celsius": 61}
    assert rows[0]["usage"]["errors"] == 7
    table = cluster.cli("slot", "list").stdout
    assert "GPU-1-fake" in table and "61" in table and "16" in table, table
    experiment = submit(cluster)
    sees = wait_for(lambda: (cluster.root / "sees").exists() and (cluster.root / "sees").read_text(), 60)
    assert sees in ("GPU-0-fake", "GPU-1-fake")
    trial = cluster.trials(experiment)[0]["id"]
    metrics = wait_for(lambda: system_metrics(cluster, trial), 60)[0]
    (name,) = [x for x in metrics if x.endswith("/gpu_percent")]
    slot = name.split("/")[-2]
    assert metrics[name] == 40 + 10 * int(slot) and sees == f"GPU-{slot}-fake"
    assert metrics[name.replace("percent", "memory_bytes")] == (1 + int(slot)) << 30
    (cluster.root / "go").touch()
    assert cluster.wait_end(experiment) == "COMPLETED"
    assert {row["group"] for row in cluster.json("trial", "metrics", str(trial))} == {"validation"}, "system metrics are shown when asked for"


def test_cuda_visible_devices_of_the_agent_limits_its_slots(start, nvml):
    cluster = start(LD_LIBRARY_PATH=str(nvml), CUDA_VISIBLE_DEVICES="1")
    wait_for(lambda: cluster.json("status")["slots"]["total"] == 1)
    rows = used(cluster, 1)
    assert [row["device"]["uuid"] for row in rows] == ["GPU-1-fake"]


def test_artificial_slots_are_processors_even_where_there_are_gpus(start, nvml):
    cluster = start(slots=3, LD_LIBRARY_PATH=str(nvml))
    experiment = submit(cluster, slots=2)
    assert wait_for(lambda: (cluster.root / "sees").exists() and (cluster.root / "sees").read_text(), 60) == os.environ.get("CUDA_VISIBLE_DEVICES", "unset")
    rows = used(cluster, 3)
    assert {row["device"]["type"] for row in rows} == {"TYPE_CPU"}
    trial = cluster.trials(experiment)[0]["id"]
    metrics = wait_for(lambda: [m for m in system_metrics(cluster, trial) if "cpu_percent" in m], 60)[-1]
    own = {"cpu_percent", "memory_bytes", "read_bytes_per_s", "write_bytes_per_s"}
    assert own <= set(metrics) and len(metrics) == 6 and all(name.endswith("/utilization_percent") for name in set(metrics) - own)
    wait_for(lambda: any(m.get("cpu_percent", 0) > 1 for m in system_metrics(cluster, trial)), 60)
    (cluster.root / "go").touch()
    assert cluster.wait_end(experiment) == "COMPLETED"
