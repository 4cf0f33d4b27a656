"""Four agents of 8 slots, each in a network namespace of its own, under faults that a seed chooses: kill -9 of the master, of agents and
of tasks, links that are cut in one or both directions, agents that are stopped, and a full disk of the master. Searches run in two
pools meanwhile.

TROUPE_TEST_SEED chooses the faults, and TROUPE_CHAOS_FAULTS their number (20; 200 in a long run).
"""

import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest

from cluster_under_test import BINARY, Cluster, wait_for

FAULTS = int(os.environ.get("TROUPE_CHAOS_FAULTS", "20"))
PASSWORD = "Chaos-2026-pass"

FILE = """
troupe: 1
cluster: {leases: {heartbeat: 500ms, freeze: 4s, give_away: 6s, adopt: 1s}}
pools:
  urgent: {default: true, scheduler: priority, preemption: true, min_run: 1s}
  shared: {scheduler: fair, preemption: true, min_run: 1s, fallback: [urgent], fallback_after: 3s}
"""
CONFIG = """
name: {name}
entrypoint: python3 job.py
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
searcher: {{{searcher}}}
reproducibility: {{experiment_seed: 7}}
resources: {{{resources}}}
max_restarts: 20
environment: {{environment_variables: ["JOB_DIR={root}", "EPOCH_S={epoch_s}"]}}
"""
WORK = {
    "asha": ("name: adaptive_asha, metric: loss, time_metric: epoch, max_time: 16, max_trials: 16, max_concurrent_trials: 6, divisor: 4, mode: aggressive",
             "resource_pool: urgent, priority: 50"),
    "gangs": ("name: random, metric: loss, max_trials: 6, max_concurrent_trials: 3", "resource_pool: shared, slots_per_trial: 8, is_single_node: true"),
    "many": ("name: random, metric: loss, max_trials: 16, max_concurrent_trials: 8", "resource_pool: shared, weight: 2"),
    "now": ("name: random, metric: loss, max_trials: 3, max_concurrent_trials: 1", "resource_pool: urgent, priority: 5, slots_per_trial: 8, is_single_node: true"),
}


def ip(*words, check=True):
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)


def why_not():
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not shutil.which("ip"):
        return "ip (iproute2) is not installed"
    net = None
    try:
        net = Net()
        net.host(1)
        net.cut(1, "both")
        net.mend(1, "both")
    except subprocess.CalledProcessError as why:
        return f"this machine gives no network namespaces with links and rules: {why.stderr.strip() or why}"
    finally:
        if net:
            net.close()
    return ""


class Net:
    """A network namespace that routes, and one for each host. Each host has a link and a network of its own."""

    count = 0

    def __init__(self):
        Net.count += 1
        self.tag = f"t{Net.count}c{os.getpid() % 100000}"
        self.hub = self.tag + "h"
        self.made = []
        try:
            self.add(self.hub)
            self.in_ns(self.hub, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        except subprocess.CalledProcessError:
            self.close()
            raise

    def add(self, name):
        ip("netns", "add", name)
        self.made.append(name)
        self.in_ns(name, "ip", "link", "set", "lo", "up")

    def in_ns(self, name, *words):
        return subprocess.run(["ip", "netns", "exec", name, *words], check=True, capture_output=True, text=True)

    def host(self, number):
        name, port = f"{self.tag}n{number}", f"p{number}"
        self.add(name)
        ip("link", "add", port, "netns", self.hub, "type", "veth", "peer", "name", "eth0", "netns", name)
        self.in_ns(self.hub, "ip", "addr", "add", f"10.99.{number}.1/24", "dev", port)
        self.in_ns(self.hub, "ip", "link", "set", port, "up")
        self.in_ns(name, "ip", "addr", "add", f"10.99.{number}.2/24", "dev", "eth0")
        self.in_ns(name, "ip", "link", "set", "eth0", "up")
        self.in_ns(name, "ip", "route", "add", "default", "via", f"10.99.{number}.1")
        return name

    def rules(self, number, how):
        """The rules by which the router silently drops all packets to the host, or all packets from it."""
        ways = {"to": ["to", f"10.99.{number}.2"], "from": ["iif", f"p{number}"]}
        return [ways[way] for way in ("to", "from") if how in (way, "both")]

    def cut(self, number, how):
        for rule in self.rules(number, how):
            self.in_ns(self.hub, "ip", "rule", "add", *rule, "blackhole")

    def mend(self, number, how):
        for rule in self.rules(number, how):
            self.in_ns(self.hub, "ip", "rule", "del", *rule, "blackhole")

    def close(self):
        for name in self.made:
            ip("netns", "del", name, check=False)


class Chaos(Cluster):
    """A cluster in which the master is host 1 and the agents are hosts 2 to 5."""

    def __init__(self, root):
        super().__init__(root)
        self.net = Net()
        self.master_ns = self.net.host(1)
        self.agents = {n: self.net.host(n) for n in range(2, 6)}
        self.processes = {}
        self.data.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "none", str(self.data)], check=True)
        subprocess.run([BINARY, "tls", "init", "--dir", str(self.root / "tls"), "--host", "10.99.1.2"], env=self.env, check=True, capture_output=True)
        self.env.update(TROUPE_MASTER="https://10.99.1.2:8080", TROUPE_CA_FILE=str(self.root / "tls" / "ca.pem"), TROUPE_USER="admin",
                        TROUPE_PASSWORD=PASSWORD, TROUPE_INITIAL_USER_PASSWORD=PASSWORD)

    def spawn(self, ns, *words):
        return subprocess.Popen(["ip", "netns", "exec", ns, BINARY, *words], env=self.env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                start_new_session=True)

    def start_master(self):
        self.process = self.spawn(self.master_ns, "master", "--data-dir", str(self.data / "m"), "--listen", "10.99.1.2:8080", "--agent-listen",
                                  "10.99.1.2:8081", "--tls-dir", str(self.root / "tls"))
        wait_for(lambda: self.cli("status", check=False).returncode == 0, 40, 0.2, lambda: (self.root / "up.log").read_text()[-2000:])

    def start_agent(self, n):
        self.processes[n] = self.spawn(self.agents[n], "agent", "--master", "10.99.1.2:8080", "--name", f"a{n}", "--slots", "8", "--pool",
                                       "urgent" if n < 4 else "shared", "--data-dir", str(self.root / "agents" / f"a{n}"), "--tls-dir", str(self.root / "tls"))

    def cli(self, *words, check=True, timeout=180):
        done = subprocess.run(["ip", "netns", "exec", self.master_ns, BINARY, *words], env=self.env, capture_output=True, text=True, timeout=timeout)
        assert not check or done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def tasks(self):
        """The pids of running scripts."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                words = pathlib.Path(f"/proc/{entry}/cmdline").read_bytes() if entry.isdigit() else b""
                if b"job.py" in words and f"JOB_DIR={self.root}".encode() in pathlib.Path(f"/proc/{entry}/environ").read_bytes():
                    found.append(int(entry))
            except OSError:
                pass
        return sorted(found)

    def close(self):
        for process in [self.process, *self.processes.values()]:
            if process and process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        for mark in (str(self.root).encode(),):
            for entry in os.listdir("/proc"):
                try:
                    if entry.isdigit() and int(entry) != os.getpid() and (
                            mark in pathlib.Path(f"/proc/{entry}/cmdline").read_bytes() or mark in pathlib.Path(f"/proc/{entry}/environ").read_bytes()):
                        if b"pytest" not in pathlib.Path(f"/proc/{entry}/cmdline").read_bytes():
                            os.kill(int(entry), signal.SIGKILL)
                except OSError:
                    pass
        self.net.close()
        for _ in range(20):
            if subprocess.run(["umount", str(self.data)], capture_output=True).returncode == 0:
                break
            time.sleep(0.2)

    # ---- faults; each is over when its function returns

    def master_dies(self, chance):
        self.process.kill()
        self.process.wait()
        time.sleep(chance.uniform(0, 2))
        self.start_master()

    def agent_dies(self, chance):
        n = chance.choice(list(self.agents))
        self.processes[n].kill()
        self.processes[n].wait()
        time.sleep(chance.choice([0, 0.2, 3]))
        self.start_agent(n)

    def task_dies(self, chance):
        if tasks := self.tasks():
            try:
                os.kill(chance.choice(tasks), signal.SIGKILL)
                self.killed_tasks += 1
            except ProcessLookupError:
                pass

    killed_tasks = 0

    def link_cut(self, chance):
        n, how = chance.choice(list(self.agents)), chance.choice(["both", "to", "from"])
        self.net.cut(n, how)
        time.sleep(chance.choice([0.5, 3, 8]))
        self.net.mend(n, how)

    def agent_stands_still(self, chance):
        n = chance.choice(list(self.agents))
        self.processes[n].send_signal(signal.SIGSTOP)
        time.sleep(chance.choice([0.5, 3, 8]))
        self.processes[n].send_signal(signal.SIGCONT)

    def disk_is_full(self, chance):
        filler = self.data / "of-another-process"
        with open(filler, "wb", buffering=0) as out:
            part = bytes(1 << 20)
            while part:
                try:
                    out.write(part)
                except OSError:
                    part = part[: len(part) // 2]
        time.sleep(chance.uniform(0.2, 2))
        filler.unlink()

    # ---- what must hold after each fault

    def standing(self, experiment):
        """What the cluster says about an experiment that does not end."""
        words = [("experiment", "describe", str(experiment)), ("explain", "experiment", str(experiment)), ("trial", "list", str(experiment)), ("agent", "list"), ("queue", "list")]
        return "\n".join(f"{w}: {self.cli(*w, check=False).stdout}" for w in words) + (self.root / "up.log").read_text()[-3000:]

    def check(self):
        # A frozen process still holds the script's lock, so the lock is no proof. What counts is what scripts do: an old run must not act
        # after the next run has begun.
        newest = {}
        for ack in self.acks():
            assert ack["run"] >= newest.get(ack["trial"], 0), f"a trial ran twice at once: {ack}"
            newest[ack["trial"]] = ack["run"]
        said = self.cli("agent", "list", "-o", "json", check=False)
        if said.returncode == 0:
            held = collections.Counter()
            for agent in json.loads(said.stdout):
                for slot in agent["slots"].values():
                    if slot.get("container"):
                        held[slot["container"]["id"]] += 1
            assert all(count in (1, 8) for count in held.values()), held
            assert sum(held.values()) <= 32


@pytest.fixture
def lab(tmp_path):
    if why := why_not():
        pytest.skip(why)
    chaos = Chaos(tmp_path)
    yield chaos
    chaos.close()


def all_slots_of(lab):
    return lambda: lab.json("status")["slots"]["total"] == 32


@pytest.fixture
def started(lab):
    lab.start_master()
    (lab.root / "cluster.yaml").write_text(FILE)
    lab.cli("apply", str(lab.root / "cluster.yaml"), "--yes")
    lab.process.terminate()  # The leases of the file are in force from the next start on.
    lab.process.wait()
    lab.start_master()
    for n in lab.agents:
        lab.start_agent(n)
    wait_for(all_slots_of(lab), 40)
    return lab


def test_an_agent_that_was_given_up_comes_back_over_a_connection_that_outlived_the_cut(started):
    lab = started
    lab.net.cut(2, "both")
    wait_for(lambda: not all_slots_of(lab)(), 20)  # The lease has ended. The connection itself would be dropped after 10 s only.
    lab.net.mend(2, "both")
    wait_for(all_slots_of(lab), 20, 0.2, lambda: lab.cli("agent", "list").stdout)


def test_faults_by_seed_cost_no_run_and_no_report(started):
    lab = started
    seed = int(os.environ.get("TROUPE_TEST_SEED", 7))
    print("seed", seed)
    chance = random.Random(seed)
    _, job = lab.prepare(1, 0.2)
    for name, (searcher, resources) in WORK.items():
        (lab.root / f"{name}.yaml").write_text(CONFIG.format(name=name, searcher=searcher, resources=resources, root=lab.root, epoch_s=0.3))
    newest, all_ids = {}, []

    def keep_busy():
        """Starts each experiment that has ended again, so that the faults meet work. Where the master does not answer, the next call does
        it."""
        said = lab.cli("experiment", "list", "-o", "json", check=False)
        if said.returncode != 0:
            return
        states = {row["id"]: row["state"] for row in json.loads(said.stdout)}
        for name in WORK:
            if name in newest and "COMPLETED" not in states.get(newest[name], ""):
                continue
            made = lab.cli("experiment", "create", str(lab.root / f"{name}.yaml"), job, "-o", "json", check=False)
            if made.returncode == 0:
                newest[name] = json.loads(made.stdout)["id"]
                all_ids.append(newest[name])

    keep_busy()
    assert len(newest) == len(WORK)
    faults = [lab.master_dies, lab.agent_dies, lab.task_dies, lab.link_cut, lab.agent_stands_still, lab.disk_is_full]
    for number in range(FAULTS):
        time.sleep(chance.uniform(0.1, 1.5))
        fault = faults[number % len(faults)] if number < len(faults) else chance.choice(faults)
        print(f"{number}: {fault.__name__}", flush=True)
        fault(chance)
        lab.check()
        keep_busy()
    for one in all_ids:
        ended = lambda: (state := lab.state(one)) in ("COMPLETED", "ERROR", "CANCELED") and state
        assert wait_for(ended, 600, 0.3, lambda: lab.standing(one)) == "COMPLETED", lab.standing(one)
    lab.check()
    restarts = 0
    for one in all_ids:
        rows = lab.trials(one)
        restarts += sum(row.get("restarts", 0) for row in rows)
        stored = {row["id"]: lab.json("trial", "metrics", str(row["id"])) for row in rows}
        for ack in lab.acks():
            if ack["kind"] == "validated" and ack["trial"] in stored:
                assert ack["epoch"] in [m["totalBatches"] for m in stored[ack["trial"]] if m["group"] == "validation"], ack
    assert restarts <= lab.killed_tasks, "a restart was counted for a loss or a preemption"
    wait_for(lambda: lab.json("status")["slots"]["used"] == 0, 20)
