"""Runs every verb of `det` with each of its options at least once, by the unmodified wheel against a real cluster with roles. None ends
with a traceback, and each ends with the expected code. The last test reads which verbs and options the client has, and fails for one
that no test has run."""

import argparse
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile

import pytest
from determined import cli as client_line
from determined.cli import cli
from determined.cli.cli import all_args_description, make_parser

import warm_client
from cluster_under_test import free_port, wait_for
from test_stock_client import Stock

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
FOREVER = "import time\nwhile True: print('still here', flush=True); time.sleep(0.2)\n"

# Ends when it has answered a client that came through a tunnel, and that client has closed.
SERVES = """
import contextlib, pathlib, socket
with socket.create_server(("127.0.0.1", PORT)) as server:
    server.settimeout(600)
    pathlib.Path(SERVING).touch()
    said = b""
    while not said:  # who only looks whether somebody listens says nothing
        link, _ = server.accept()
        with link, contextlib.suppress(ConnectionError):
            if said := link.recv(100):
                link.sendall(b"heard " + said)
                while link.recv(100):
                    pass
print("answered", flush=True)
"""

RAN = []  # the words of each call


class House(Stock):
    def __init__(self, root):
        super().__init__(root)
        file = self.root / "cluster.yaml"
        file.write_text("troupe: 1\ncluster: {authz: rbac}\npools: {main: {default: true}, side: {}}\n")
        self.up_words = ["--file", str(file)]
        self.env |= {"TROUPE_USER": "admin", "TROUPE_PASSWORD": ""}  # No other user has a role yet.

    def begin(self):
        self.up(slots=2)
        self.d("user login admin", stdin="\n")

    def d(self, line, code=0, says="", stdin="", until=None, fault="", meanwhile=lambda: None):
        """Runs `det LINE`. With `until` the client is interrupted when it has written that text. With `fault` the client itself fails
        with that text. `meanwhile()` is called while it runs."""
        words = shlex.split(line)
        RAN.append(words)
        with tempfile.TemporaryDirectory() as folder:
            names = {name: os.path.join(folder, name) for name in ("in", "out", "err")}
            for name, path in names.items():
                with open(path, "w") as file:
                    file.write(stdin if name == "in" else "")
            with open(names["in"]) as one, open(names["out"], "w") as two, open(names["err"], "w") as three:
                env = self.stock_env("admin", BROWSER="true %s", PYTHONUNBUFFERED="1")  # `until` waits for the output
                if until:
                    call = subprocess.Popen([sys.executable, "-m", "determined.cli", *words], env=env, stdin=one, stdout=two, stderr=three, cwd=self.root, start_new_session=True)
                else:
                    call = warm_client.Call(words, env, [one.fileno(), two.fileno(), three.fileno()], self.root, start_new_session=True)
            meanwhile()
            if until:
                wait_for(lambda: until in open(names["out"]).read() or call.poll() is not None, 60)
                assert call.poll() is None, open(names["out"]).read() + open(names["err"]).read()
                os.kill(call.pid, signal.SIGINT)
            ended = call.wait(600)
            said, wrong = open(names["out"]).read(), open(names["err"]).read()
        whole = f"det {line}: {ended}\n{said}\n{wrong}"
        if until:
            return said
        if fault:
            assert ended == 1 and fault in wrong, whole
            return said
        assert "Traceback" not in wrong and "Traceback" not in said, whole
        assert ended == code, whole
        assert says in said + wrong, whole
        return said + wrong

    def file(self, name, text):
        path = self.root / name
        path.write_text(text)
        return str(path)


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("line"))
    try:
        house.begin()
        yield house
    finally:
        house.close()


@pytest.fixture(scope="module")
def done(house):
    """An experiment that has completed, as the number, the trial and a checkpoint."""
    config, job = house.write(name="done", hparams="{steps: 10}")
    said = house.d(f"experiment create {config} {job} --follow-first-trial", says="saved 10")
    experiment = int(re.search(r"Created experiment (\d+)", said)[1])
    house.d(f"experiment wait {experiment} --polling-interval 1")
    trial = house.trial_of(experiment)
    house.driver_notes = [one["uuid"] for one in house.notes(trial) if "uuid" in one]
    return {"experiment": experiment, "trial": trial, "uuid": house.driver_notes[-1], "config": config, "job": job}


FILTERS = ("--allocation-id {allocation} --agent-id {agent} --container-id x --rank-id 0 --timestamp-before 2126-01-01T00:00:00Z --timestamp-after 2020-01-01T00:00:00Z "
           "--source task --stdtype stdout")


def logs(house, kind, task, agent, said):
    """Runs a verb that shows a log with all its options. One that follows ends with the task."""
    for more in ("--head 1", "--tail 1", "--json", "--follow", FILTERS.format(allocation=f"{task}.1", agent=agent)):
        text = house.d(f"{kind} logs {task} {more}")
        assert said in text or "--container-id" in more or "--head" in more or "--tail" in more, (kind, more, text)
    house.d(f"{kind} logs {task} --level INFO", fault="'INFO' is not in list")


def test_people(house):
    d = house.d
    d("user whoami", says="admin"), d("user list", says="determined"), d("user list --all")
    d("user create ann --password Secret-123"), d("user create far --remote"), d("user create boss --admin --password Secret-123")
    d("user edit ann --display-name Anna --admin True"), d("user edit ann --admin False --active True"), d("user edit far --remote True")
    d("user edit boss --username chief"), d("user rename chief boss")
    d("user deactivate ann"), d("user activate ann")
    d("user link-with-agent-user ann --agent-uid 1000 --agent-user ann --agent-gid 1000 --agent-group ann")
    d("user change-password ann", stdin="Other-123\nOther-123\n")
    d("user-group create readers --add-user ann"), d("user-group list --json", says="readers"), d("user-group list --limit 1 --offset 0 --pages 1")
    d("user-group list --groups-user-belongs-to ann", says="readers"), d("user-group add-user readers boss"), d("user-group remove-user readers boss")
    d("user-group describe readers --json", says="ann"), d("user-group change-name readers lookers")
    d("rbac list-roles --json", says="Viewer"), d("rbac list-roles --limit 2 --offset 1 --pages 1"), d("rbac list-roles --exclude-global-roles"), d("rbac describe-role Viewer --json")
    d("rbac assign-role Viewer --username-to-assign ann --workspace-name Uncategorized"), d("rbac assign-role Viewer --group-name-to-assign lookers")
    d("rbac list-users-roles ann --json", says="Viewer"), d("rbac list-groups-roles lookers --json", says="Viewer"), d("rbac my-permissions --json")
    d("rbac unassign-role Viewer --username-to-assign ann --workspace-name Uncategorized"), d("rbac unassign-role Viewer --group-name-to-assign lookers")
    d("user-group delete lookers --yes")
    token = d("token create ann --expiration-days 3 --description mine --json")
    number, text = json.loads(token[token.index("{"):])["tokenId"], None
    d("token create --yaml"), d("token list --json", says="mine"), d("token list ann --yaml"), d("token list --show-inactive")
    d(f"token describe {number} --json", says="mine"), d(f"token describe {number} --yaml")
    d(f"token edit {number} --description other --json", says="other"), d(f"token edit {number} --description third --yaml")
    text = json.loads(token[token.index("{"):])["token"]
    d(f"token login {text}", says="ann"), d("user login admin", stdin="\n")
    d(f"token revoke {number}")


def test_places(house):
    d = house.d
    folder = house.root / "kept"
    storage = json.dumps({"type": "shared_fs", "host_path": str(folder)})
    file = house.file("storage.yaml", f"type: shared_fs\nhost_path: {folder}\n")
    account = "--agent-uid 1000 --agent-user ann --agent-gid 1000 --agent-group ann"
    d(f"workspace create vision {account} --checkpoint-storage-config '{storage}' --default-compute-pool main --default-aux-pool main --json", says="vision")
    d(f"workspace create sound --checkpoint-storage-config-file {file}")
    # There is no Kubernetes cluster here. The client says that no namespace was bound.
    d("workspace create far --cluster-name c --namespace n --resource-quota 3"), d("workspace create near --cluster-name c --auto-create-namespace")
    d("workspace create wide --auto-create-namespace-all-clusters")
    d("workspace bindings set far --cluster-name c --namespace n", code=1), d("workspace bindings set far --cluster-name c --auto-create-namespace", code=1)
    d("workspace bindings set far --auto-create-namespace-all-clusters", code=1)
    d("workspace bindings list far", code=1), d("workspace bindings delete far --cluster-name c", code=1), d("workspace resource-quota set far 3 --cluster-name c", code=1)
    d(f"workspace edit vision --name sight {account} --checkpoint-storage-config '{storage}' --default-compute-pool main --default-aux-pool main --json", says="sight")
    d(f"workspace edit sight --checkpoint-storage-config-file {file}")
    d("workspace list --sort-by name --order-by desc --limit 2 --offset 0 --json"), d("workspace list", says="sight"), d("workspace describe sight --json", says="sight")
    d("workspace list-members sight --json"), d("workspace list-members sight --yaml"), d("workspace list-members sight --csv"), d("workspace list-pools sight", says="main")
    d("project create sight cats --description all --key CAT --json", says="CAT"), d("project create sight dogs")
    d("workspace list-projects sight --sort-by name --order-by asc --limit 5 --offset 0 --json", says="cats")
    d("project edit sight cats --new_name tigers --description some --key TIG --json", says="tigers")
    d("project list sight --sort-by name --order-by asc --limit 5 --offset 0 --json", says="tigers"), d("project describe sight tigers --json", says="TIG"), d("project describe sight tigers --all")
    d("project list-experiments sight tigers --all --sort-by id --order-by asc --limit 5 --offset 0 --json")
    d("project archive sight dogs"), d("project unarchive sight dogs"), d("project delete sight dogs --yes")
    d("workspace archive sound"), d("workspace unarchive sound"), d("workspace delete sound --yes")
    d("resource-pool bindings add side sight"), d("resource-pool bindings list-workspaces side", says="sight"), d("resource-pool bindings replace side far")
    d("resource-pool bindings remove side far")
    policy = house.file("policy.yaml", "constraints: {priority_limit: 10}\n")
    d(f"config-policies set experiment {policy} --workspace-name sight"), d("config-policies describe experiment --workspace-name sight --json", says="10")
    d("config-policies describe experiment --workspace-name sight --yaml"), d("config-policies delete experiment --workspace-name sight")
    small = house.file("small.yaml", "max_restarts: 2\n")
    d(f"template create small {small} --workspace-name sight"), d("template list --details", says="small"), d("template describe small", says="max_restarts")
    d(f"template set small {small}"), d(f"template set-value config small {small}"), d("template remove small")


def test_experiments(house, done):
    d, e, t, uuid = house.d, done["experiment"], done["trial"], done["uuid"]
    agent = json.loads(d("agent list --json"))[0]["id"]
    out = house.root / "out"
    out.mkdir()
    d(f"experiment config {e}", says="done"), d(f"experiment describe {e} --metrics --json"), d(f"experiment describe {e} --csv"), d(f"experiment describe {e} --outdir {out}")
    d("experiment list --all --show_project --limit 5 --offset 0 --csv", says="done"), d("experiment list --pages 1")
    d(f"experiment list-checkpoints {e} --best 1 --csv"), d(f"experiment list-trials {e} --limit 5 --offset 0 --csv"), d(f"experiment list-trials {e} --pages 1")
    for verb, number in (("experiment", e), ("trial", t)):
        for more in ("--head 1", "--tail 1", "--json", "--follow", "--agent-id {} --container-id x --rank-id 0 --timestamp-before 2126-01-01T00:00:00Z "
                     "--timestamp-after 2020-01-01T00:00:00Z --level INFO --source task --stdtype stdout".format(agent)):
            d(f"{verb} logs {number} {more}")
    d(f"experiment download {e} --output-dir {out}/e --top-n 1 --sort-by loss --smaller-is-better True --quiet"), d(f"experiment download-model-def {e} --output-dir {house.root}")
    d(f"trial describe {t} --metrics --json --limit 5 --offset 0"), d(f"trial describe {t} --metrics-summary --csv --pages 1")
    d(f"trial download {t} --best --output-dir {out}/t1 --sort-by loss --smaller-is-better True"), d(f"trial download {t} --latest --output-dir {out}/t2 --quiet"), d(f"trial download {t} --uuid {uuid} --output-dir {out}/t3", fault="exactly one of --latest, --best, or --uuid must be set")
    d(f"trial support-bundle {t} --output-dir {house.root}")
    d(f"experiment set name {e} other"), d(f"experiment set description {e} words"), d(f"experiment label add {e} good"), d(f"experiment label remove {e} good")
    for verb, number in (("experiment", e), ("trial", t)):
        d(f"{verb} set log-retention {number} --days 3"), d(f"{verb} set log-retention {number} --forever")
    d(f"experiment set gc-policy {e} --save-experiment-best 1 --save-trial-best 9 --save-trial-latest 9 --yes")
    d(f"checkpoint describe {uuid}"), d(f"checkpoint download {uuid} --output-dir {out}/c --quiet --mode auto")
    d(f"experiment delete-tb-files {e}")
    d(f"experiment archive {e}"), d(f"experiment unarchive {e}")
    d(f"model create net --workspace-name sight --description words --json"), d(f"model register-version net {uuid} --json"), d("model list --workspace-names sight --sort-by name --order-by asc --json", says="net")
    d("model describe net --json"), d("model describe net --version 1"), d("model list-versions net --json"), d("model move net --workspace-name Uncategorized"), d("model delete net")
    more = house.file("more.yaml", "max_restarts: 1\n")
    d(f"experiment continue {e} --config-file {more} --config hyperparameters.steps=15 --follow-first-trial"), d(f"experiment wait {e} --polling-interval 1")
    d(f"experiment move {e} sight tigers")  # The account of this workspace may not use the Python of the test.
    d(f"checkpoint rm {uuid} --glob state.json --yes"), d(f"checkpoint delete {uuid} --yes")
    d(f"preview-search {done['config']}")


def test_what_runs(house):
    d = house.d
    config, job = house.write(name="runs", script=FOREVER)
    template = house.file("template.yaml", "max_restarts: 3\n")
    d(f"template create runs {template}")
    project = json.loads(d("project describe sight tigers --json"))["id"] if "sight" in d("workspace list") else 1
    said = d(f"experiment create {config} {job} --paused --template runs --project_id {project} --config max_restarts=1")
    e = int(re.search(r"Created experiment (\d+)", said)[1])
    d(f"experiment set priority {e} 40"), d(f"experiment set max-slots {e} 1"), d(f"experiment set weight {e} 2")
    d(f"experiment activate {e}")
    trial = house.trial_of(e)
    wait_for(lambda: "still here" in d(f"trial logs {trial}"), 60)
    jobs = d("job list --json --resource-pool main --limit 5 --offset 0 --reverse")
    number = json.loads(jobs[jobs.index("{"):])["jobs"][0]["jobId"]
    d("job list --yaml"), d("job list --csv"), d("job list --table"), d("job list --pages 1")
    d(f"job update {number} --priority 30"), d(f"job update {number} --resource-pool main"), d(f"job update {number} --weight 3"), d(f"job update-batch {number}.priority=31")
    for line in ("priority: 31", "weight: 3", "max_slots: 1"):
        d(f"experiment config {e}", says=line)
    agent = json.loads(d("agent list --json"))[0]["id"]
    d("agent list --csv"), d("slot list --csv"), d("slot list --json"), d(f"slot disable {agent} 1"), d(f"slot enable {agent} 1"), d(f"agent disable {agent} --drain --json"), d(f"agent enable {agent}")
    d("agent disable --all --drain --csv"), d("agent enable --all")
    d("task list --json", says=f"{e}."), d("task list --csv")
    d(f"experiment pause {e}"), d(f"experiment activate {e}"), d(f"trial kill {trial}"), d(f"experiment cancel {e}"), d(f"experiment kill {e}")
    port, local, serving = free_port(), free_port(), house.root / "serving"
    serves, files = house.write(name="serves", script=SERVES.replace("PORT", str(port)).replace("SERVING", repr(str(serving))))

    def link():
        try:
            return socket.create_connection(("127.0.0.1", local), timeout=120)
        except ConnectionRefusedError:
            return None

    def through_the_tunnel():
        wait_for(serving.exists)  # Without a server to reach, the client ends with a traceback.
        with wait_for(link) as one:
            one.sendall(b"you")
            assert one.recv(100) == b"heard you"
    d(f"experiment create {serves} {files} --publish {local}:{port} --follow-first-trial --config environment.proxy_ports='[{{proxy_port: {port}, proxy_tcp: true}}]'",
      says="answered", meanwhile=through_the_tunnel)
    quick, files = house.write(name="quick", hparams="{steps: 1}")
    d(f"experiment create {quick} --include {files}/train.py --test-mode"), d(f"experiment create {quick} {files} --local --test-mode", fault="only supported for Trial-like entrypoints")


def test_tasks(house, done):
    d = house.d
    agent = json.loads(d("agent list --json"))[0]["id"]
    folder = house.root / "context"
    folder.mkdir()
    (folder / "one.txt").write_text("one\n")
    config = house.file("task.yaml", "resources: {slots: 0}\n")
    template = house.file("below.yaml", "environment: {environment_variables: [A=1]}\n")
    d(f"template create below {template}")
    more = f"--config-file {config} --workspace-name Uncategorized --include {folder}/one.txt --config description=words --template below"
    d(f"command run {more} --volume {house.root}:/mnt -- cat one.txt", says="one")
    id_of = lambda said: re.search(UUID, said)[0]
    waits = id_of(d(f"command run --config resources.slots=0 --context {folder} --detach -- sh -c 'echo here; sleep 1000'"))
    d(f"command config {waits}"), d(f"command describe {waits} --json"), d(f"command describe {waits} --csv"), d(f"command set priority {waits} 40")
    kinds = {"command": waits}
    d(f"notebook start {more} --preview")
    kinds["notebook"] = id_of(d(f"notebook start --config resources.slots=0 --context {folder} --volume {house.root}:/mnt --no-browser --detach"))
    kinds["shell"] = id_of(d(f"shell start {more} --volume {house.root}:/mnt --detach"))
    second = d(f"shell start --context {folder} --config resources.slots=0 --show-ssh-command -- true")
    kinds["tensorboard"] = id_of(d(f"tensorboard start {done['experiment']} --workspace-name Uncategorized --config-file {config} --include {folder}/one.txt --config description=x --no-browser --detach"))
    board = id_of(d(f"tensorboard start --trial-ids {done['trial']} --context {folder} --no-browser --detach"))
    for kind, task in kinds.items():
        d(f"{kind} list --sort-by id --order-by asc --all --workspace-name Uncategorized --json", says=task), d(f"{kind} list --csv"), d(f"{kind} list --quiet", says=task)
        d(f"{kind} config {task}"), d(f"{kind} set priority {task} 41")
    ready = lambda task: json.loads(house.d(f"dev curl /api/v1/tasks/{task}"))["task"]["allocations"][0].get("isReady")
    for kind in ("notebook", "tensorboard"):
        wait_for(lambda: ready(kinds[kind]), 120, 0.5)
        d(f"{kind} open {kinds[kind]}")
    wait_for(lambda: ready(kinds["shell"]), 120, 0.5)
    d(f"shell show-ssh-command {kinds['shell']}", says="ssh"), d(f"shell show_ssh_command {kinds['shell']}", says="ssh")
    d(f"shell open --show-ssh-command {kinds['shell']} -- echo inside", says="inside")
    wait_for(lambda: "here" in d(f"command logs {waits}"))
    for kind, task in kinds.items():
        d(f"{kind} kill {task} --force")
        logs(house, kind, task, agent, "here" if kind == "command" else "")
    d(f"tensorboard kill {board}"), d(f"shell kill {id_of(second)}")
    generic = house.file("generic.yaml", "entrypoint: [sh, -c, 'echo generic; sleep 1000']\nresources: {slots: 0}\n")
    first = id_of(d(f"task create {generic} --context {folder} --project_id 1 --config debug=true"))
    d(f"task config {first}"), d(f"task config {first} --json")
    wait_for(lambda: "generic" in d(f"task logs {first}"), 60)
    d(f"task pause {first}"), wait_for(lambda: "PAUSED" in d(f"dev curl /api/v1/tasks/{first}"), 60), d(f"task unpause {first}")
    short = house.file("short.yaml", "entrypoint: [sh, -c, 'echo short']\nresources: {slots: 0}\n")
    d(f"task create {short} --include {folder}/one.txt --parent {first} --inherit_context --no_pause --follow", says="short")
    d(f"task create {short} --fork {first} --follow", says="short")
    forked = id_of(d(f"task fork {first} --project_id 1"))
    d(f"task fork {first} --follow", until="generic")
    d(f"task kill {forked}"), d(f"task kill {first} --root")
    logs(house, "task", first, agent, "generic")
    d("task cleanup-logs")
    d(f"experiment delete {done['experiment']} --yes")


def test_the_master(house):
    d = house.d
    d("version", says="0.38.1"), d("master info --json"), d("master info --yaml"), d("master config show --json"), d("master config show --yaml")
    d("master config set --log.level DEBUG --log.color off"), d("master config set --log.level INFO")
    d("master logs --tail 3"), d("master logs --follow --tail 3", until="\n")
    d("master cluster-message set --message down --start 2126-01-01T00:00:00Z --end 2126-01-02T00:00:00Z"), d("master cluster-message get --json", says="down")
    d("master cluster-message set --message down --duration 1h"), d("master cluster-message get --yaml"), d("master cluster-message clear --clear")
    d("resources raw 2026-01-01T00:00:00Z 2126-01-01T00:00:00Z --json"), d("resources raw 2026-01-01T00:00:00Z 2126-01-01T00:00:00Z"), d("resources allocations 2026-01-01T00:00:00Z 2126-01-01T00:00:00Z")
    d("resources aggregated 2026-01-01 2026-01-02 --json"), d("resources aggregated 2026-01 2026-02 --monthly")
    d("dev auth-token"), d("dev curl -x /api/v1/master", says="clusterId"), d("dev bindings list --show-unusable"), d("dev bindings call --auto-confirm get_GetMaster", says="clusterId")
    # These are not offered.
    d("auth list-providers", code=1), d("auth login --provider x --headless", code=1), d("oauth client list", code=1), d("oauth client add x http://x", code=1), d("oauth client remove x", code=1)
    d("user logout --all")


def verbs():
    """Each verb of the client, as the words of its name and its options."""
    parser = make_parser()
    client_line.add_args(parser, all_args_description)

    def walk(at, path):
        inner = [one for one in at._actions if isinstance(one, argparse._SubParsersAction)]
        if not inner:
            options = [set(one.option_strings) for one in at._actions if one.option_strings and "--help" not in one.option_strings]
            yield path, options
            return
        names = {}
        for name, one in inner[0].choices.items():
            names.setdefault(id(one), (one, set()))[1].add(name)
        for one, called in names.values():
            yield from walk(one, path + [called])

    return [one for one in walk(parser, []) if "help" not in one[0][-1] and "deploy" not in one[0][0]]  # `deploy` makes clusters in clouds


def test_every_verb_was_run_with_each_of_its_options(house):
    assert len(verbs()) > 180
    missing = []
    for path, options in verbs():
        calls = [words for words in RAN if len(words) >= len(path) and all(word in names for word, names in zip(words, path))]
        name = " ".join(max(names, key=len) for names in path)
        if not calls:
            missing.append(name)
        for one in options:
            if calls and not any(word.split("=")[0] in one for words in calls for word in words):
                missing.append(f"{name} {max(one, key=len)}")
    assert not missing, "\n".join(missing)
