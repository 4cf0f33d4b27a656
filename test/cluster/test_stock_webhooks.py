"""Webhooks and log policies against a real cluster: a receiver that checks signatures, order and repeats; receivers that hang, lie,
refuse and redirect; alerts of a script by `core_context.alert`; and `kill -9` of the master in the middle of a queue."""

import hashlib
import hmac
import http.server
import json
import threading
import time
import uuid

import pytest
from determined.common import api
from determined.common.api import bindings as b, errors

from cluster_under_test import go_on, wait_for
from test_stock_client import Stock

TALKS = """
import logging, os, sys, time
import determined as det
logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
info = det.get_cluster_info()
hp = info.trial.hparams
until = time.monotonic() + 600
with det.core.init() as core:
    for line in hp.get("says", []):
        print(line, flush=True)
        print(line, flush=True)
    while "gate" in hp and not os.path.exists(f"{os.environ['JOB_DIR']}/{hp['gate']}"):
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)
    if hp.get("alerts"):
        core.alert(title="look <here>", description="at this", level="warn")
    sys.exit(hp.get("exit", 0))
"""


class Receiver:
    """Keeps the requests that it gets: (path, headers, body as bytes). `answers` has the status of each path, or a function."""

    def __init__(self, key=lambda: ""):
        self.got, self.answers, self.key = [], {}, key
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append((self.path, dict(self.headers), body))
                how = receiver.answers.get(self.path.split("/")[1], 200)
                if callable(how):
                    return how(self)
                self.send_response(how)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def events(self, path):
        out = []
        for where, headers, body in list(self.got):
            if where.startswith(path):
                stamp = headers["X-Determined-AI-Signature-Timestamp"]
                mine = hmac.new(self.key().encode(), f"{stamp},".encode() + body, hashlib.sha256).hexdigest()
                assert headers["X-Determined-AI-Signature"] == mine, headers
                assert headers["Content-Type"] == "application/json; charset=UTF-8"
                out.append(json.loads(body))
        return out


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Stock(tmp_path_factory.mktemp("webhooks")) as cluster:
        cluster.up(slots=2)
        cluster.det("user", "login", "admin", home="admin", stdin="\n")
        cluster.det("user", "create", "ann", "--password", "Secret-123", home="admin")
        yield cluster


def session(cluster, name, password=""):
    stranger = api.UnauthSession(cluster.url(), cert=None)
    hashed = api.authentication.salt_and_hash(password) if password else ""
    login = b.post_Login(stranger, body=b.v1LoginRequest(username=name, password=hashed, isHashed=True))
    return api.Session(cluster.url(), name, login.token, None)


@pytest.fixture()
def admin(cluster):
    return session(cluster, "admin")


@pytest.fixture(scope="module")
def receiver(cluster):
    return Receiver(lambda: (cluster.data / "master" / "webhook-key").read_text().strip())


def on_state(state):
    return b.v1Trigger(triggerType=b.v1TriggerType.EXPERIMENT_STATE_CHANGE, condition={"state": state})


def on_log(regex):
    return b.v1Trigger(triggerType=b.v1TriggerType.TASK_LOG, condition={"regex": regex})


ON_ALERT = b.v1Trigger(triggerType=b.v1TriggerType.CUSTOM, condition={})


def add(admin, url, *triggers, name="", specific=False, slack=False, workspace=0):
    return b.post_PostWebhook(admin, body=b.v1Webhook(
        name=name or "n" + uuid.uuid4().hex[:8], url=url, webhookType=b.v1WebhookType.SLACK if slack else b.v1WebhookType.DEFAULT,
        mode=b.v1WebhookMode.SPECIFIC if specific else b.v1WebhookMode.WORKSPACE, triggers=list(triggers), workspaceId=workspace)).webhook


def test_ends_lines_and_alerts_reach_their_receivers(cluster, admin, receiver):
    made = [add(admin, receiver.url + "/done", on_state("COMPLETED"), on_state("ERROR")), add(admin, receiver.url + "/failed", on_state("ERROR")),
            add(admin, receiver.url + "/slack", on_state("COMPLETED"), slack=True), add(admin, receiver.url + "/line", on_log("no? luck$")),
            add(admin, receiver.url + "/alert", ON_ALERT, specific=True, name="chat"),
            add(admin, receiver.url + "/named", on_state("COMPLETED"), specific=True, name="not named")]
    assert [w.id for w in b.get_GetWebhooks(admin).webhooks] == [w.id for w in made]
    assert made[0].triggers[1].condition == {"state": "ERROR"}
    good, _ = cluster.create(name="good", script=TALKS, hparams="{says: {type: const, val: [no luck, luckless]}, alerts: true}",
                             more="integrations: {webhooks: {webhook_name: [chat]}}\n")
    bad, _ = cluster.create(name="bad", script=TALKS, hparams="{exit: 3}", more="integrations: {webhooks: {exclude: false}}\n")
    left_out, _ = cluster.create(name="left-out", script=TALKS, hparams="{exit: 3}", more="integrations: {webhooks: {exclude: true}}\n")
    cluster.wait(good)
    cluster.wait(bad, code=1)
    cluster.wait(left_out, code=1)
    wait_for(lambda: len(receiver.events("/done")) >= 2 and all(receiver.events(path) for path in ("/failed", "/slack", "/line", "/alert")), 20)
    ends = {e["event_data"]["experiment"]["id"]: e for e in receiver.events("/done")}
    assert set(ends) == {good, bad}
    one = ends[good]
    assert one["event_type"] == "EXPERIMENT_STATE_CHANGE" and one["condition"] == {"state": "COMPLETED"} and uuid.UUID(one["event_id"])
    told = one["event_data"]["experiment"]
    assert told == {"id": good, "state": "COMPLETED", "name": "good", "duration": told["duration"], "resource_pool": "default", "slots_per_trial": 1,
                    "workspace": "Uncategorized", "project": "Uncategorized", "trial_id": cluster.trial_of(good)}
    assert [e["event_data"]["experiment"]["id"] for e in receiver.events("/failed")] == [bad]
    lines = receiver.events("/line")
    assert [e["event_data"]["task_log"]["triggering_log"][-7:] for e in lines] == ["no luck"], "once for each task"
    assert lines[0]["condition"] == {"regex": "no? luck$"} and lines[0]["event_data"]["task_log"]["task_id"].startswith(f"{good}.")
    alerts = receiver.events("/alert")
    assert [e["event_data"]["custom_data"] for e in alerts] == [{"title": "look <here>", "description": "at this", "level": "WARNING"}]
    assert alerts[0]["event_type"] == "CUSTOM" and alerts[0]["event_data"]["experiment"]["id"] == good
    shown = json.dumps(receiver.events("/slack"))
    assert "completed successfully" in shown and "#13B670" in shown and "*Workspace*: Uncategorized" in shown
    assert receiver.events("/named") == []
    assert b.post_TestWebhook(admin, id=made[0].id).completed
    assert receiver.events("/done")[-1]["event_data"] == {"data": "test"}
    b.patch_PatchWebhook(admin, id=made[0].id, body=b.v1PatchWebhook(url=receiver.url + "/elsewhere"))
    assert b.post_TestWebhook(admin, id=made[0].id).completed and len(receiver.events("/elsewhere")) == 1
    for webhook in made:
        b.delete_DeleteWebhook(admin, id=webhook.id)
    assert b.get_GetWebhooks(admin).webhooks == []


def test_bad_input_and_what_others_may(cluster, admin, receiver):
    ann = session(cluster, "ann", "Secret-123")
    for url, triggers, specific, text in [
            (receiver.url, [], False, "at least one trigger required"), ("ftp://a/b", [on_state("ERROR")], False, "valid url required"),
            ("http://", [on_state("ERROR")], False, "valid url required"), ("http://user:word@a/", [on_state("ERROR")], False, "valid url required"),
            (receiver.url, [on_state("HAPPY")], False, "one of COMPLETED, ERROR, CANCELED"), (receiver.url, [on_log("(")], False, "not a regular expression"),
            (receiver.url, [on_log("(a)\\1")], False, "not a regular expression"), (receiver.url, [on_log("x" * 5000)], False, "at most 4096 bytes"),
            (receiver.url, [b.v1Trigger(triggerType=b.v1TriggerType.TASK_LOG, condition={"regex": "a", "more": 1})], False, "{regex: TEXT}"),
            (receiver.url, [ON_ALERT], False, "WEBHOOK_MODE_SPECIFIC"),
            (receiver.url, [b.v1Trigger(triggerType=b.v1TriggerType.METRIC_THRESHOLD_EXCEEDED, condition={})], False, "one of the types")]:
        with pytest.raises(errors.APIException, match=text.replace("{", "\\{")) as caught:
            add(admin, url, *triggers, specific=specific)
        assert caught.value.status_code == 400
    with pytest.raises(errors.ForbiddenException):
        add(ann, receiver.url, on_state("ERROR"))  # Only an admin may add a webhook for all workspaces.
    hers = b.post_PostWorkspace(ann, body=b.v1PostWorkspaceRequest(name="hers")).workspace.id
    mine = add(ann, receiver.url + "/secret/path", on_state("ERROR"), workspace=hers)
    for_all = add(admin, receiver.url + "/secret/path", on_state("ERROR"))
    other = session(cluster, "determined")
    assert [(w.id, w.url) for w in b.get_GetWebhooks(other).webhooks] == [(for_all.id, receiver.url)], "the address is for those who may change it"
    assert [w.id for w in b.get_GetWebhooks(ann).webhooks] == [mine.id, for_all.id]
    for act in (lambda who, at: b.delete_DeleteWebhook(who, id=at), lambda who, at: b.post_TestWebhook(who, id=at),
                lambda who, at: b.patch_PatchWebhook(who, id=at, body=b.v1PatchWebhook(url="http://x/"))):
        with pytest.raises(errors.NotFoundException):
            act(other, mine.id)
        with pytest.raises(errors.ForbiddenException):
            act(other, for_all.id)
        with pytest.raises(errors.NotFoundException):
            act(admin, 12345)
    for who, at, refusal in ((other, mine.id, errors.NotFoundException), (other, for_all.id, errors.ForbiddenException), (ann, mine.id, errors.APIException)):
        with pytest.raises(refusal) as caught:
            who.patch(f"/api/v1/webhooks/{at}", json={"url": [7]})
        assert caught.type is refusal, "the right is looked at before the body"
    for one in (mine, for_all):
        b.delete_DeleteWebhook(admin, id=one.id)
    with pytest.raises(errors.NotFoundException):
        alert(admin, 999, "x")


def alert(user, experiment, title):
    b.post_PostWebhookEventData(user, body=b.v1PostWebhookEventDataRequest(
        experimentId=experiment, data=b.v1CustomWebhookEventData(title=title, description="", level=b.v1LogLevel.INFO)))


@pytest.fixture(scope="module")
def named(cluster):
    """An experiment that has ended, and that names the webhooks of the tests below."""
    experiment, _ = cluster.create(name="named", script=TALKS, more="integrations: {webhooks: {webhook_name: [fast, slow]}}\n")
    cluster.wait(experiment)
    return experiment


end_of_hanging = threading.Event()


def hang(handler):
    end_of_hanging.wait(300)


def test_a_receiver_is_no_key_to_the_network_and_no_brake(cluster, admin, receiver, named):
    for url, text in [("http://169.254.169.254/latest", "is an address of the link"), ("http://[::ffff:169.254.169.254]/", "is an address of the link"),
                      ("http://0.0.0.0:1/", "is not an address of one host")]:
        with pytest.raises(errors.APIException, match=text) as caught:
            add(admin, url, on_state("ERROR"))
        assert caught.value.status_code == 400
    for url, text in [("http://nowhere.invalid/", "resolve"), ("http://127.0.0.1:1/", "connect")]:
        webhook = add(admin, url, on_state("ERROR"))
        with pytest.raises(errors.APIException, match=text) as caught:
            b.post_TestWebhook(admin, id=webhook.id)
        assert caught.value.status_code == 400
        b.delete_DeleteWebhook(admin, id=webhook.id)

    def redirect(handler):
        handler.send_response(302)
        handler.send_header("Location", receiver.url + "/landed")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def lie(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(1 << 40))
        handler.end_headers()
        try:
            for _ in range(1000):
                handler.wfile.write(b"x" * 100_000)
            receiver.answers["read it all"] = True
        except OSError:
            pass

    receiver.answers.update(redirect=redirect, lie=lie, hang=hang, refuse=418, broken=500)
    for path, text in [("redirect", "answered 302"), ("refuse", "answered 418"), ("broken", "answered 500"), ("hang", "timed out|Timeout")]:
        webhook = add(admin, f"{receiver.url}/{path}", on_state("ERROR"))
        with pytest.raises(errors.APIException, match=text):
            b.post_TestWebhook(admin, id=webhook.id)
        b.delete_DeleteWebhook(admin, id=webhook.id)
    assert receiver.events("/landed") == []
    webhook = add(admin, f"{receiver.url}/lie", on_state("ERROR"))
    assert b.post_TestWebhook(admin, id=webhook.id).completed, "a success is known from its first line"
    assert "read it all" not in receiver.answers
    b.delete_DeleteWebhook(admin, id=webhook.id)
    # While one receiver hangs, the other gets every event at once. A refusal is final, and a fault is tried three times.
    slow_server = Receiver(receiver.key)
    slow_server.answers["slow"] = hang
    slow, fast = add(admin, slow_server.url + "/slow", ON_ALERT, specific=True, name="slow"), add(admin, receiver.url + "/fast", ON_ALERT, specific=True, name="fast")
    for number in range(60):
        alert(admin, named, f"t{number}")
    wait_for(lambda: len(receiver.events("/fast")) == 60, 20)
    assert {e["event_data"]["custom_data"]["title"] for e in receiver.events("/fast")} == {f"t{n}" for n in range(60)}
    assert len(slow_server.events("/slow")) <= 60
    end_of_hanging.set()
    for webhook in (slow, fast):
        b.delete_DeleteWebhook(admin, id=webhook.id)


def test_faults_are_tried_again_and_refusals_are_not(cluster, admin, receiver, named):
    tries = {}

    def once_broken(handler):
        where = handler.path
        tries[where] = tries.get(where, 0) + 1
        handler.send_response(500 if tries[where] < 3 else 200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    receiver.answers.update(flaky=once_broken, gone=404)
    fast = add(admin, receiver.url + "/flaky", ON_ALERT, specific=True, name="fast")
    slow = add(admin, receiver.url + "/gone", ON_ALERT, specific=True, name="slow")
    alert(admin, named, "again")
    wait_for(lambda: tries.get("/flaky") == 3 and receiver.events("/gone"), 20)
    assert len({e["event_id"] for e in receiver.events("/flaky")}) == 1, "one event, one id"
    assert len(receiver.events("/gone")) == 1
    for webhook in (slow, fast):
        b.delete_DeleteWebhook(admin, id=webhook.id)


def test_a_queue_of_events_survives_kill_9(cluster, admin, receiver, named):
    """The master is killed twice while 300 events are sent. Each event arrives at least once, and each has one id."""
    receiver.answers["queue"] = lambda handler: (time.sleep(0.2), handler.send_response(200), handler.send_header("Content-Length", "0"),
                                                 handler.end_headers())
    webhook = add(admin, receiver.url + "/queue", ON_ALERT, specific=True, name="fast")
    sent = []
    for number in range(300):
        alert(admin, named, f"e{number}")
        sent.append(f"e{number}")
        if number in (100, 200):
            cluster.kill_node()
            cluster.up(slots=2)
            admin = session(cluster, "admin")
    wait_for(lambda: {e["event_data"]["custom_data"]["title"] for e in receiver.events("/queue")} == set(sent), 300)
    ids = {}
    for event in receiver.events("/queue"):
        ids.setdefault(event["event_data"]["custom_data"]["title"], set()).add(event["event_id"])
    assert all(len(one) == 1 for one in ids.values()) and len(set().union(*ids.values())) == 300
    b.delete_DeleteWebhook(admin, id=webhook.id)


def test_an_end_is_told_once_more_where_the_master_fell_before_it_was(cluster, admin, receiver):
    webhook = add(admin, receiver.url + "/end", on_state("COMPLETED"))
    experiment, _ = cluster.create(name="falls", script=TALKS, hparams="{gate: may-end}")
    cluster.trial_of(experiment)
    cluster.kill_node()
    cluster.up(slots=2)
    go_on(cluster.root / "may-end")
    cluster.wait(experiment)
    wait_for(lambda: receiver.events("/end"), 20)
    assert len({e["event_id"] for e in receiver.events("/end")}) == 1
    b.delete_DeleteWebhook(session(cluster, "admin"), id=webhook.id)


def test_log_policies_end_retries_and_say_so(cluster, admin):
    more = "log_policies: [{name: hopeless, pattern: 'out of (memory|luck)', action: cancel_retries}, {name: seen, pattern: 'hello'}]\n"
    told, _ = cluster.create(name="policy", script=TALKS, restarts=3, hparams="{says: {type: const, val: [hello, out of luck]}, exit: 3}", more=more)
    cluster.wait(told, code=1)
    trial = b.get_GetTrial(admin, trialId=cluster.trial_of(told)).trial
    assert (trial.state, trial.restarts, trial.logPolicyMatched) == (b.trialv1State.ERROR, 0, "hopeless"), trial.to_json()
    assert len(b.get_GetTask(admin, taskId=trial.taskId).task.allocations) == 1
    quiet, _ = cluster.create(name="quiet", script=TALKS, restarts=1, hparams="{says: {type: const, val: [hello]}, exit: 3}", more=more)
    cluster.wait(quiet, code=1)
    trial = b.get_GetTrial(admin, trialId=cluster.trial_of(quiet)).trial
    assert (trial.restarts, trial.logPolicyMatched) == (1, "seen")


def matched(user, task):
    """`logPolicyMatched` of GET tasks/{id}, which the class of the wheel leaves out."""
    return user.get(f"/api/v1/tasks/{task}").json()["task"].get("logPolicyMatched")


def test_log_policies_and_webhooks_hold_for_tasks_of_every_kind(cluster, admin, receiver):
    lines, named = add(admin, receiver.url + "/task-line", on_log("bad luck$")), add(admin, receiver.url + "/task-named", on_log("luck"), specific=True, name="picky")
    slack = add(admin, receiver.url + "/task-slack", on_log("bad luck$"), slack=True)
    policies = [{"name": "hopeless", "pattern": "bad (memory|luck)", "action": "cancel_retries"}, {"name": "seen", "pattern": "^hello"},
                {"name": "away", "pattern": "ECC", "action": "exclude_node"}]
    script = "echo hello; echo bad luck; echo bad luck; exit 3"
    config = {"entrypoint": ["sh", "-c", script], "resources": {"slots": 0}, "log_policies": policies}
    command = b.post_LaunchCommand(admin, body=b.v1LaunchCommandRequest(config=config)).command.id
    generic = b.post_CreateGenericTask(admin, body=b.v1CreateGenericTaskRequest(config=json.dumps(config), contextDirectory=[])).taskId
    wait_for(lambda: all(cluster.call(f"/troupe/v1/tasks/{one}")[1]["state"] == "ERROR" for one in (command, generic)), 60)
    assert (matched(admin, command), matched(admin, generic)) == ("hopeless", "hopeless")
    assert cluster.call(f"/troupe/v1/tasks/{command}")[1]["logPolicyMatched"] == "hopeless"
    wait_for(lambda: len(receiver.events("/task-line")) == 2 and len(receiver.events("/task-slack")) == 2, 20)
    told = {e["event_data"]["task_log"]["task_id"]: e for e in receiver.events("/task-line")}
    assert set(told) == {command, generic}, "once for each task"
    assert told[command]["event_type"] == "TASK_LOG" and told[command]["condition"] == {"regex": "bad luck$"}
    assert told[command]["event_data"]["task_log"]["triggering_log"][-8:] == "bad luck"
    assert receiver.events("/task-named") == [], "only experiments name a webhook"
    assert f"`{command}`" in json.dumps(receiver.events("/task-slack"))
    # This task runs while it is asked for. The line says which policy follows from it.
    config["entrypoint"] = ["sh", "-c", "echo an ECC fault; sleep 1000"]
    waits = b.post_LaunchCommand(admin, body=b.v1LaunchCommandRequest(config=config)).command.id
    wait_for(lambda: matched(admin, waits) == "away", 60)
    open_ones = admin.get("/api/v1/tasks").json()["allocationIdToSummary"]
    assert [one.get("logPolicyMatched") for one in open_ones.values() if one["taskId"] == waits] == ["away"]
    said = lambda: cluster.cli("task", "logs", waits).stdout
    wait_for(lambda: said().count("matched regex ECC) therefore will not schedule on ") == 1, what=said)
    assert said().index("an ECC fault\n") < said().index("therefore will not schedule on"), said()
    b.post_KillCommand(admin, commandId=waits)
    quiet = b.post_LaunchCommand(admin, body=b.v1LaunchCommandRequest(config={"entrypoint": ["true"], "resources": {"slots": 0}})).command.id
    wait_for(lambda: cluster.call(f"/troupe/v1/tasks/{quiet}")[1]["state"] == "COMPLETED", 60)
    assert matched(admin, quiet) is None
    with pytest.raises(errors.APIException, match="log_policies\\[") as caught:
        b.post_LaunchCommand(admin, body=b.v1LaunchCommandRequest(config={**config, "log_policies": [{"name": "x", "pattern": "("}]}))
    assert caught.value.status_code == 400
    for webhook in (lines, named, slack):
        b.delete_DeleteWebhook(admin, id=webhook.id)


def test_a_match_of_a_task_survives_kill_9(cluster, admin):
    config = {"entrypoint": ["sh", "-c", "echo hello; sleep 1000"], "resources": {"slots": 0}, "log_policies": [{"name": "seen", "pattern": "hello"}]}
    task = b.post_LaunchCommand(admin, body=b.v1LaunchCommandRequest(config=config)).command.id
    wait_for(lambda: matched(admin, task) == "seen", 60)
    cluster.kill_node()
    cluster.up(slots=2)
    admin = session(cluster, "admin")
    assert matched(admin, task) == "seen"
    b.post_KillCommand(admin, commandId=task)


def test_what_the_cluster_file_says_counts_from_its_first_start(tmp_path):
    (tmp_path / "key").write_text("ours\n")
    (tmp_path / "cluster.yaml").write_text("troupe: 1\ncluster: {webhooks: {signing_key_file: key}}\n")
    first = Stock(tmp_path)
    first.up_words = (str(tmp_path / "cluster.yaml"),)
    first.up(slots=None)
    try:
        admin, receiver = session(first, "admin"), Receiver(lambda: "ours")
        assert b.post_TestWebhook(admin, id=add(admin, receiver.url + "/first", on_state("ERROR")).id).completed
        assert len(receiver.events("/first")) == 1, "and it is signed with the key of the file"
    finally:
        first.close()


def test_our_own_command_line(cluster, receiver):
    cluster.env["TROUPE_USER"] = "admin"
    said = cluster.cli("webhook", "create", "ours", receiver.url + "/ours", "--state", "completed", "--log", "a+b").stdout
    assert said.startswith("webhook ")
    assert receiver.url + "/ours" in cluster.cli("webhook", "list").stdout
    assert cluster.cli("webhook", "test", "ours").stdout == "delivered\n" and len(receiver.events("/ours")) == 1
    assert cluster.cli("webhook", "delete", "ours").stdout == "deleted\n"
    said = cluster.cli("webhook", "create", "bad", "ftp://x", "--state", "completed", check=False)
    assert said.returncode != 0 and "valid url required" in said.stderr
