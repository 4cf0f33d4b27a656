#!/usr/bin/env python3
"""What a death costs: of an agent, of the master, of a link; and what it costs to be preempted. Each beside its floor or a peer, in one run.

    TROUPE_BINARY=build/release/troupe perf/recovery/recovery.py [--only agent,dask,master,slurm,preempt,cut] [--kills N] [--trials N]

Master and agents are processes of this host. A task's first line is the time that its script writes: all times are from the order, or the
death, to that line. Printed are median, 99th percentile and most, in milliseconds, and the processor time of master and agents.
  agent    kill -9 of an agent (`--kills`, 100), to its task's first line on the other one; beside it the time from an experiment's POST to the
           first line on the idle cluster
  dask     the same two of Dask (`--dask PYTHON` that has distributed; else it comes from PyPI into a temporary environment): kill -9 of a
           worker, and a submit
  master   `--trials` (1,000) tasks run, kill -9 of the master: from its next exec to the API's first answer, and until all tasks are held by
           agents that have come back; beside it the start of the same directory where no agent comes
  slurm    the same of slurmctld and slurmd of Debian, where they are installed (slurmctld slurmd munge)
  preempt  POST of an urgent experiment on a full cluster, to its first line; less what the victim took to save and end, and less one start
  cut      a link dies without a word (network namespaces, root): from the cut to the task's first line elsewhere; `give_away` is 5 s
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ["TROUPE_BINARY"] = str(pathlib.Path(os.environ.get("TROUPE_BINARY", ROOT / "build/release/troupe")).resolve())
sys.path.insert(0, str(ROOT / "test" / "cluster"))
from cluster_under_test import free_port, wait_for  # noqa: E402
from test_processes import Processes  # noqa: E402

MARK = "date +%s.%N >> $MARKS; exec sleep 100000\n"
VICTIM = """import os, time, troupe
troupe.params(x=0.5)
open(os.environ['MARKS'], 'a').write(f'{time.time()}\\n')
while not troupe.should_stop():
    time.sleep(0.001)
open(os.environ['MARKS'] + '-noticed', 'a').write(f'{time.time()} {os.getpid()}\\n')
"""
CONFIG = """
name: {name}
entrypoint: {entrypoint}
searcher: {{name: random, metric: loss, max_trials: {trials}, max_concurrent_trials: {trials}}}
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}}}
max_restarts: 0
resources: {{slots_per_trial: 1, priority: {priority}}}
environment: {{environment_variables: ["MARKS={marks}"]}}
"""


def row(what, times, cpu=None):
    """Prints the row of a measurement, whose `times` are in seconds. Returns their median in milliseconds."""
    ms = sorted(1000 * t for t in times)
    tail = f"; {cpu:.2f} CPU-s in all" if cpu is not None else ""
    print(f"{what:66} p50 {statistics.median(ms):9.1f}  p99 {ms[min(len(ms) - 1, int(0.99 * len(ms)))]:9.1f}  most {ms[-1]:9.1f} ms of {len(ms)}{tail}", flush=True)
    return statistics.median(ms)


def lines(path):
    try:
        return [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return []


def cpu_s(*processes):
    used = 0.0
    for one in processes:
        fields = pathlib.Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return used


def holder_of(agents):
    """The id of the agent whose slot is taken."""
    return next(a["id"] for a in agents if any(slot.get("container") for slot in a["slots"].values()))


class House(Processes):
    def __init__(self, root):
        super().__init__(root)
        self.count = 0

    def begin(self, **slots):
        """Starts a master, and an agent with these slots for each name."""
        self.master()
        for name, n in slots.items():
            self.agent(name, slots=n)
        wait_for(lambda: self.alive_agents() == sum(slots.values()), 30)
        for _ in range(5):  # The first starts are slower.
            self.kill(self.start_of_one()[0])

    def post(self, script, trials=1, priority=42):
        """Submits an experiment. Returns its id, the file to which its tasks write, and the time of the order in seconds since 1970."""
        self.count += 1
        marks = self.root / f"marks-{self.count}"
        entrypoint, text = ("python3 job.py", script) if "import" in script else ("sh job.py", script)
        body = {"config": CONFIG.format(name=f"of-{self.count}", entrypoint=entrypoint, trials=trials, priority=priority, marks=marks), "activate": True,
                "modelDefinition": [{"path": "job.py", "type": 48, "content": base64.b64encode(text.encode()).decode(), "mode": 0o644}]}
        request = self.request("/api/v1/experiments", json.dumps(body).encode())
        ordered = time.time()
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["experiment"]["id"], marks, ordered

    def marked(self, marks, count=1, seconds=60):
        """The time that the task wrote in line `count` of the file, in seconds since 1970. Waits until the file has that line."""
        return float(wait_for(lambda: len(found := lines(marks)) >= count and found, seconds, 0.002, lambda: (self.root / "up.log").read_text()[-2000:])[count - 1][0])

    def start_of_one(self):
        experiment, marks, ordered = self.post(MARK)
        return experiment, self.marked(marks) - ordered

    def kill(self, experiment):
        self.call(f"/api/v1/experiments/{experiment}/kill", {})
        wait_for(lambda: self.used() == 0, 60)

    def used(self):
        return self.call("/troupe/v1/status")[1]["slots"]["used"]

    def holder(self):
        return holder_of(self.call("/api/v1/agents")[1]["agents"])

    def alive(self):
        return {a["id"] for a in self.call("/api/v1/agents")[1]["agents"]}


def idle_starts(house, count=30):
    times = []
    for _ in range(count):
        experiment, took = house.start_of_one()
        times.append(took)
        house.kill(experiment)
    return times


def agent(given, house):
    house.begin(a=1, b=1)
    before = cpu_s(house.process)
    row("submit to the first line, idle", idle_starts(house), cpu_s(house.process) - before)
    times, twice = [], 0
    for _ in range(given.kills):  # Each kill meets another task: a task that is lost again without a new checkpoint waits for 1, 2, 4 ... s.
        experiment, marks, _ = house.post(MARK)
        house.marked(marks)
        holder = house.holder()
        time.sleep(0.3)
        killed = time.time()
        house.kill_agent(holder)
        times.append(house.marked(marks, 2) - killed)
        house.agent(holder)
        wait_for(lambda: house.alive_agents() == 2, 30, 0.05)
        twice += len(lines(marks)) != 2
        house.kill(experiment)
    row("kill -9 of an agent to the first line elsewhere (asked: p99 500)", times)
    if twice:
        print(f"WRONG: {twice} times there was another line than one")


DASK = """
import os, signal, subprocess, sys, time
from distributed import Client
import dask
dask.config.set({"distributed.scheduler.allowed-failures": 100000})
from distributed import LocalCluster, SpecCluster
def job(marks):
    import time
    open(marks, 'a').write(f'{time.time()}\\n')
    time.sleep(100000)
def lines():
    try:
        return open(marks).read().split()
    except OSError:
        return []
def worker(address):
    return subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
def until(holds):
    while not holds():
        time.sleep(0.002)
marks, kills = sys.argv[1], int(sys.argv[2])
with LocalCluster(n_workers=0, dashboard_address=None) as cluster, Client(cluster) as client:
    workers = [worker(cluster.scheduler_address) for _ in range(2)]
    client.wait_for_workers(2)
    for _ in range(20):
        until(lambda: len(client.scheduler_info()["workers"]) == 2)
        seen, began = len(lines()), time.time()
        one = client.submit(job, marks, pure=False)
        until(lambda: len(lines()) > seen)
        print("start", float(lines()[-1]) - began, flush=True)
        pid_of = lambda: {w["name"]: w for w in client.scheduler_info()["workers"].values()}
        busy = next(a for a, tasks in client.processing().items() if tasks)
        pids = client.run(os.getpid)
        for n in range(max(1, kills // 20)):
            seen = len(lines())
            busy = next(a for a, tasks in client.processing().items() if tasks)
            victim = next(w for w in workers if w.pid == pids[busy])
            killed = time.time()
            victim.kill()
            victim.wait()
            until(lambda: len(lines()) > seen)
            print("kill", float(lines()[-1]) - killed, flush=True)
            workers.remove(victim)
            workers.append(worker(cluster.scheduler_address))
            until(lambda: len(client.scheduler_info()["workers"]) == 2)
            time.sleep(0.3)
            pids = client.run(os.getpid)
        one.cancel(force=True)
        for w in workers:
            w.kill()
            w.wait()
        workers = [worker(cluster.scheduler_address) for _ in range(2)]
        client.wait_for_workers(2)
    for w in workers:
        w.kill()
"""


def dask(given, house):
    python = given.dask
    if not python:
        place = house.root / "dask"
        venv.create(place, with_pip=True)
        python = place / "bin/python"
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "distributed"], check=True, stderr=subprocess.DEVNULL)
    program = house.root / "dask_kills.py"
    program.write_text("if __name__ == '__main__':\n" + "".join("    " + line + "\n" for line in DASK.splitlines()))
    said = subprocess.run([python, program, house.root / "dask-marks", str(min(given.kills, 20))], capture_output=True, text=True, timeout=600)
    found = [line.split() for line in said.stdout.splitlines()]
    if not found:
        print("Dask failed: " + said.stderr[-600:])
    for kind, what in (("start", "Dask: submit to the first line"), ("kill", "Dask: kill -9 of a worker to the first line elsewhere")):
        if times := [float(t) for k, t in found if k == kind]:
            row(what, times)


def master(given, house):
    house.begin(a=given.trials)
    experiment, marks, _ = house.post(MARK, trials=given.trials)
    house.marked(marks, given.trials, 300)
    time.sleep(5)
    answers, held, cpu = [], [], 0.0
    for _ in range(5):
        house.process.kill()
        house.process.wait()
        began = time.time()
        house.process = house.start("master", "--data-dir", str(house.data / "master"), "--listen", f"127.0.0.1:{house.http}", "--agent-listen", f"127.0.0.1:{house.link}")
        wait_for(house.answers_without_a_user, 60, 0.002)
        answers.append(time.time() - began)
        wait_for(lambda: "a" in house.alive() and house.used() == given.trials, 60, 0.002)
        held.append(time.time() - began)
        cpu += cpu_s(house.process)
        time.sleep(3)
    row(f"{given.trials} tasks run, master's exec to its first answer", answers)
    row(f"{given.trials} tasks run, master's exec until all are held (asked: 1000)", held, cpu)
    restarts = sum(t["restarts"] for t in house.trials(experiment))
    runs = len(lines(marks))
    print(f"  restarts counted {restarts}, first lines {runs} of {given.trials}, held {house.used()}")
    house.kill_agent("a")
    alone = []
    for _ in range(5):
        house.process.kill()
        house.process.wait()
        began = time.time()
        house.process = house.start("master", "--data-dir", str(house.data / "master"), "--listen", f"127.0.0.1:{house.http}", "--agent-listen", f"127.0.0.1:{house.link}")
        wait_for(house.answers_without_a_user, 60, 0.002)
        alone.append(time.time() - began)
    row("the same start without agents, to its first answer", alone)


SLURM = """ClusterName=perf
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge/s
CredType=cred/munge
SlurmctldPort={port}
SlurmdPort={other}
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool
SlurmctldPidFile={root}/ctld.pid
SlurmdPidFile={root}/d.pid
SlurmctldLogFile={root}/ctld.log
SlurmdLogFile={root}/d.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,bf_interval=1,default_queue_depth=10000,sched_max_job_start=0,batch_sched_delay=0,max_rpc_cnt=0
MaxJobCount=100000
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
SlurmctldDebug=error
SlurmdDebug=error
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs={slots} RealMemory=20000 State=UNKNOWN
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def slurm(given, house):
    if not all(shutil.which(name) for name in ("slurmctld", "slurmd", "munged")):
        print("Slurm is not installed (slurmctld slurmd munge): not measured")
        return
    root, host = house.root / "slurm", os.uname().nodename.split(".")[0]
    for folder in ("state", "spool", "munge"):
        (root / folder).mkdir(parents=True)
    (root / "munge").chmod(0o700)
    key = root / "munge/key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    (root / "slurm.conf").write_text(SLURM.format(host=host, root=root, port=free_port(), other=free_port(), slots=given.trials))
    env = {**os.environ, "SLURM_CONF": str(root / "slurm.conf")}
    quiet = {"cwd": root, "env": env, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen(["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={root}/munge/s", f"--pid-file={root}/munge/pid",
                                 f"--log-file={root}/munge/log", f"--seed-file={root}/munge/seed"], **quiet)]
    wait_for((root / "munge/s").exists, 20)

    def controller():
        return subprocess.Popen(["slurmctld", "-D"], **quiet)

    def squeue():
        got = subprocess.run(["squeue", "-h", "-t", "R", "-o", "%i"], env=env, capture_output=True, text=True)
        return len(got.stdout.split()) if got.returncode == 0 else -1

    ctld = controller()
    try:
        wait_for(lambda: squeue() == 0, 30)
        started.append(subprocess.Popen(["slurmd", "-D", "-N", host], **quiet))
        script = root / "job.sh"
        script.write_text("#!/bin/sh\nexec sleep 100000\n")
        subprocess.run(["sbatch", "-Q", f"--array=1-{given.trials}", "-n1", "-o", "/dev/null", str(script)], check=True, **quiet)
        counts = [0]
        while len(counts) < 120 and (counts[-1] < given.trials // 2 or len(set(counts[-10:])) > 1):  # Some jobs are requeued and held.
            time.sleep(1)
            counts.append(squeue())
        times = []
        for _ in range(5):
            ctld.kill()
            ctld.wait()
            began = time.time()
            ctld = controller()
            wait_for(lambda: squeue() >= counts[-1] - 5, 60, 0.002, squeue)
            times.append(time.time() - began)
            time.sleep(2)
        row(f"{counts[-1]} tasks run, slurmctld's exec until it lists them", times)
    finally:
        subprocess.run(["scancel", "-u", "root"], **quiet)
        time.sleep(3)
        for one in [ctld, *reversed(started)]:
            one.kill()
            one.wait()


def preempt(given, house):
    (house.root / "file.yaml").write_text("troupe: 1\npools: {p: {default: true, scheduler: priority, preemption: true, min_run: 0s}}\n")
    house.process = house.start("master", "-f", str(house.root / "file.yaml"), "--data-dir", str(house.data / "master"), "--listen", f"127.0.0.1:{house.http}",
                                "--agent-listen", f"127.0.0.1:{house.link}")
    wait_for(house.serves, 30)
    house.agent("a", slots=1)
    wait_for(lambda: house.alive_agents() == 1, 30)
    for _ in range(3):
        house.kill(house.start_of_one()[0])
    one_start = row("submit to the first line, idle", idle_starts(house, 20)) / 1000
    whole, ends, more = [], [], []
    for _ in range(20):
        victim, marks, _ = house.post(VICTIM, priority=50)
        house.marked(marks)
        time.sleep(0.5)
        urgent, theirs, ordered = house.post(MARK, priority=10)
        noticed, pid = wait_for(lambda: lines(pathlib.Path(str(marks) + "-noticed")), 30, 0.001)[-1]
        pid_here = [int(p) for p in os.listdir("/proc") if p.isdigit() and marks.name.encode() in environ(p) and b"job.py" in words(p)]
        wait_for(lambda: not [p for p in pid_here if os.path.exists(f"/proc/{p}")], 30, 0.001)
        gone = time.time()
        began = house.marked(theirs)
        whole.append(began - ordered)
        ends.append(gone - float(noticed))
        more.append(whole[-1] - ends[-1] - one_start)
        house.call(f"/api/v1/experiments/{victim}/kill", {})
        house.kill(urgent)
    row("POST of an urgent experiment to its first line, a victim first", whole)
    row("  its victim's save and end", ends)
    row("  what is more than that and one start (asked: 100)", more)


def environ(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def words(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def cut(given, house):
    from test_chaos import PASSWORD, Chaos, why_not

    if why := why_not():
        print(f"a silent cut was not measured: {why}")
        return
    script = "i=0; date +%s.%N >> $MARKS-first; while :; do date +%s.%N >> $MARKS-$TROUPE_ALLOCATION_ID; sleep 0.05; done\n"
    (house.root / "cut").mkdir()
    lab = Chaos(house.root / "cut")
    try:
        file = lab.root / "file.yaml"
        file.write_text("troupe: 1\ncluster: {leases: {heartbeat: 1s, freeze: 3s, give_away: 5s, adopt: 200ms}}\npools: {p: {default: true}}\n")
        lab.process = lab.spawn(lab.master_ns, "master", "-f", str(file), "--data-dir", str(lab.data / "m"), "--listen", "10.99.1.2:8080", "--agent-listen",
                                "10.99.1.2:8081", "--tls-dir", str(lab.root / "tls"))
        wait_for(lambda: lab.cli("status", check=False).returncode == 0, 40, 0.2)
        for n in (2, 3):
            lab.processes[n] = lab.spawn(lab.agents[n], "agent", "--master", "10.99.1.2:8080", "--name", f"a{n}", "--slots", "1", "--data-dir",
                                         str(lab.root / "agents" / f"a{n}"), "--tls-dir", str(lab.root / "tls"))
        wait_for(lambda: json.loads(lab.cli("status", "-o", "json").stdout)["slots"]["total"] == 2, 30, 0.2)
        job = lab.root / "job"
        job.mkdir()
        (job / "job.sh").write_text(script)
        times, gaps = [], []
        for n in range(5):  # Each cut meets another trial, for the same reason.
            marks, config = lab.root / f"marks-{n}", lab.root / f"cut-{n}.yaml"
            first, before = pathlib.Path(f"{marks}-first"), pathlib.Path(f"{marks}-{n + 1}.1")
            config.write_text(CONFIG.format(name="cut", entrypoint="sh job.sh", trials=1, priority=42, marks=marks))
            experiment = json.loads(lab.cli("experiment", "create", str(config), str(job), "-o", "json").stdout)["id"]
            wait_for(lambda: len(lines(first)) == 1, 60, 0.01)
            time.sleep(2)
            agents = json.loads(lab.cli("agent", "list", "-o", "json").stdout)
            holder = int(holder_of(agents["agents"] if isinstance(agents, dict) else agents).removeprefix("a"))
            began = time.time()
            lab.net.cut(holder, "both")
            wait_for(lambda: len(lines(first)) == 2, 60, 0.002)
            times.append(float(lines(first)[-1][0]) - began)
            gaps.append(float(lines(first)[-1][0]) - float(lines(before)[-1][0]))
            lab.net.mend(holder, "both")
            wait_for(lambda: json.loads(lab.cli("status", "-o", "json").stdout)["slots"]["total"] == 2, 60, 0.2, lambda: (lab.root / "up.log").read_text()[-3000:])
            lab.cli("experiment", "kill", str(experiment))
            wait_for(lambda: json.loads(lab.cli("status", "-o", "json").stdout)["slots"]["used"] == 0, 30, 0.2)
        row("silent cut to the first line elsewhere; give_away 5 s", times)
        row("  from the last sign of the one that was cut off (never below 0)", gaps)
    finally:
        lab.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="agent,dask,master,slurm,preempt,cut")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--dask", default="")
    given = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {' '.join(f'{x:.1f}' for x in os.getloadavg())} at the start", flush=True)
    for part in (agent, dask, master, slurm, preempt, cut):
        if part.__name__ not in given.only.split(","):
            continue
        # not below /tmp, because each sandbox would have to make the path in its own /tmp
        root = pathlib.Path(tempfile.mkdtemp(prefix="recovery-", dir="/var/tmp"))
        house = House(root)
        try:
            part(given, house)
        finally:
            house.close()
            shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
