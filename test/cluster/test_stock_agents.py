"""The unmodified `determined` client with separate agents: a gang of ranks over two agents, and everything over TLS. Tasks connect to the
listener of their agent, which connects to the master by TLS."""

import json
import pathlib
import re

import pytest

from cluster_under_test import wait_for
from test_processes import Processes
from test_stock_client import CORE_API, DIGITS, Stock

RING = """
import json, os, pathlib
import torch, torch.distributed as dist
import determined as det

info = det.get_cluster_info()
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
total = torch.tensor([float(rank + 1)])
dist.all_reduce(total)
with det.core.init(distributed=det.core.DistributedContext.from_torch_distributed(), tensorboard_mode=det.core.TensorboardMode.MANUAL) as core:
    everyone = core.distributed.allgather({"rank": rank, "agent": info.agent_id, "addresses": info.container_addrs, "slots": info.slot_ids,
                                           "container": info.container_rank, "master": info.master_url})
    if rank == 0:
        (pathlib.Path(os.environ["JOB_DIR"]) / "met").write_text(json.dumps(everyone))
        core.train.report_validation_metrics(steps_completed=1, metrics={"loss": float(total)})
    print("rank", rank, "of", size, "sum", float(total), flush=True)
dist.destroy_process_group()
"""


class Agents(Stock, Processes):
    """The stock client with a master, and agents that are processes of their own."""

    def __init__(self, root, tls):
        Processes.__init__(self, root, tls)

    def url(self):
        return self.env["TROUPE_MASTER"]

    def stock_env(self, home="home", **more):
        if self.tls:
            more.setdefault("DET_MASTER_CERT_FILE", str(self.tls / "ca.pem"))
        env = super().stock_env(home, **more)
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # `requests` would use these in place of the client's own file.
            env.pop(name, None)
        return env

    close = Processes.close
    tree = Processes.tree


@pytest.fixture(scope="module", params=["plain", "tls"])
def cluster(request, tmp_path_factory):
    with Agents(tmp_path_factory.mktemp(request.param), request.param == "tls") as cluster:
        cluster.master()
        for name in ("a1", "a2"):
            cluster.agent(name)
        wait_for(lambda: cluster.alive_agents() == 2, 30)
        yield cluster


def create(cluster, job, entrypoint):
    config = pathlib.Path(job[0])
    config.write_text(config.read_text().replace("python3 train.py", entrypoint))
    said = cluster.det("experiment", "create", *job)
    experiment = int(re.search(r"Created experiment (\d+)", said)[1])
    try:
        cluster.wait(experiment)
    except AssertionError:
        print(cluster.logs(experiment))
        raise
    return experiment


def test_two_ranks_on_two_agents_meet(cluster):
    job = cluster.write(name="ring", script=RING, more="resources: {slots_per_trial: 2}\n")
    experiment = create(cluster, job, "python3 -m determined.launch.torch_distributed python3 train.py")
    met = json.loads((cluster.root / "met").read_text())
    assert [one["rank"] for one in met] == [0, 1] and [one["container"] for one in met] == [0, 1]
    assert {one["agent"] for one in met} == {"a1", "a2"}
    assert all(len(one["addresses"]) == 2 and one["addresses"] == met[0]["addresses"] and one["slots"] == [0] for one in met), met
    assert all(re.fullmatch(r"http://127\.0\.0\.1:\d+", one["master"]) for one in met), "the agent's own listener, plain"
    assert len({one["master"] for one in met}) == 2
    said = lambda: cluster.logs(experiment)
    wait_for(lambda: all(f"[rank={rank}] || rank {rank} of 2 sum 3.0\n" in said() for rank in (0, 1)), what=said)  # the output of both agents
    assert cluster.described(experiment)["bestTrialSearcherMetric"] == 3.0


def test_a_pytorch_trial_on_two_agents(cluster):
    job = cluster.write(name="digits", script=DIGITS, hparams="{lr: 0.01, global_batch_size: 64}",
                        searcher="{name: single, metric: accuracy, smaller_is_better: false, max_length: {batches: 60}}",
                        more="resources: {slots_per_trial: 2}\nmin_validation_period: {batches: 30}\nrecords_per_epoch: 1500\n")
    experiment = create(cluster, job, "python3 -m determined.launch.torch_distributed --trial train:Digits")
    assert cluster.described(experiment)["bestTrialSearcherMetric"] > 0.6
    trial = cluster.trial_of(experiment)
    saved = cluster.json("checkpoint", "list", "--trial", str(trial))
    assert saved["checkpoints"] if isinstance(saved, dict) else saved
    said = cluster.logs(experiment)
    assert "[rank=1]" in said


def test_a_core_api_script_reports_through_its_agent(cluster):
    experiment, said = cluster.create("--follow", name="core", script=CORE_API, hparams="{steps: 10}", cold=True)
    assert "saved 10" in said
    cluster.wait(experiment)
    trial = cluster.trial_of(experiment)
    saved = [one["uuid"] for one in cluster.notes(trial) if "uuid" in one]
    folder = cluster.root / "download"
    cluster.det("checkpoint", "download", saved[-1], "-o", str(folder), "--mode", "master")
    assert json.loads((folder / "state.json").read_text()) == {"steps": 10}
    shown = json.loads(cluster.det("trial", "describe", str(trial), "--json"))["trial"]
    assert shown["totalBatchesProcessed"] == 10 and shown["restarts"] == 0


def test_wrong_certificates_are_refused(cluster):
    if cluster.tls:
        said = cluster.det("experiment", "list", code=1, DET_MASTER_CERT_FILE="", home="strange", stdin="n\n")
        assert "ertificate" in said, said
