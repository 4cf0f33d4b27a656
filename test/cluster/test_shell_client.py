"""`troupe shell` as people and scripts use it: expected texts with a hand-written server, and a real terminal (pexpect)."""

import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import time

import pexpect
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from fake_shell_server import FakeShellServer  # noqa: E402
from ports import free_port  # noqa: E402

BINARY = os.environ["TROUPE_BINARY"]


@pytest.fixture
def server():
    s = FakeShellServer()
    yield s
    s.freeze = False
    s.close()


@pytest.fixture
def env(tmp_path):
    keep = {k: v for k, v in os.environ.items() if not k.startswith(("TROUPE_", "XDG_", "LC_"))}
    return {**keep, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "LANG": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "1", "TROUPE_DATA_DIR": str(tmp_path / "data")}


def shell(server, env, *words, stdin=b"", timeout=180):
    attach = ["--attach", server.url] if server else []
    done = subprocess.run([BINARY, "shell", *attach, *words], env=env, input=stdin, capture_output=True, timeout=timeout)
    done.out, done.err = done.stdout.decode(), done.stderr.decode()
    return done


def run(server, env, *commands, code=0, more=()):
    done = shell(server, env, *more, *[w for c in commands for w in ("-e", c)])
    assert done.returncode == code, (done.returncode, done.out, done.err)
    return done


# ---- expected texts


def test_transcript(server, env):
    """The output of the commands for fixed answers. The session of docs/shell.md runs in test_shell_page.py."""
    assert run(server, env, "nodes").out == (
        "NODE    STATE  SLOTS  USED  ACTORS  BACKLOG  VERSION          UP  ROLE\n"
        "master  up         0     0      41      312  0.1.0    1 h 02 min  master\n"
        "gpu01   up         8     4       5        0  0.1.0    1 min 01 s  agent\n")
    assert run(server, env, "ps --top 3 --sort msg_per_s").out == (
        "ACTOR      KIND     NODE    BACKLOG  MSG/S  RUN P50  RUN P99  WAIT P99  RESTARTS  STATE\n"
        "journal    journal  master      312   8410    11 µs    92 µs      9 µs         0  busy\n"
        "pool/main  pool     master        0     14   140 µs   1.9 ms      9 µs         0  ready\n"
        "trial/7    trial    master        0      2    35 µs   210 µs      9 µs         1  RUNNING\n")
    assert run(server, env, "info trial/7").out == (
        "identity   trial/7   kind trial   node master   owner experiment/3   since 12:04:11\n"
        "links      child: allocation/7.2   owner: experiment/3\n"
        "work       backlog 0   messages 118   msg/s 2\n"
        "memory     state 3.1 KB\n"
        "recent     12:05:58.114  heartbeat{step=400}  from agent/gpu01  waited 9 µs  ran 31 µs\n")
    assert run(server, env, "tree experiment/3").out == (
        "experiment/3                    ACTIVE\n"
        "├─ searcher/3                   ready\n"
        "└─ trial/7                      RUNNING  restarts 1\n"
        "   └─ allocation/7.2            RUNNING\n")
    assert run(server, env, "state trial/7").out == "name: \"überblick\"\nruns:\n  - id: 1\n    why: lost\nstep: 400\n"
    assert run(server, env, "state trial/7 step").out == "400\n"
    assert run(server, env, "state trial/7 --diff 1s").out == "step  400 -> 420\n"
    assert run(server, env, "who-waits").out == "ACTOR    WAITS FOR  WHAT               SINCE\ntrial/8  pool/main  slots_wanted  4 min 00 s\n"
    done = run(server, env, "trace trial/7 --max 2")
    line = "12:05:58.114  trial/7 ← heartbeat{step=400}  from agent/gpu01  waited 9 µs  ran 31 µs\n"
    assert done.out == 2 * line
    assert done.err == "2 messages, ended: max\n"
    assert run(server, env, "log").out == "info\n"
    assert run(server, env, "events --max 1").out == (
        "AT        KIND   ACTOR    WHAT  USER\n12:00:01  audit  trial/7  kill  ada\n")


def test_json_is_one_value_a_command(server, env):
    done = run(server, env, "nodes", "ps kind=trial", "info trial/7", "trace trial/7 --max 2", "state trial/7", "log", more=["-o", "json"])
    values = [json.loads(line) for line in done.out.splitlines()]
    assert [v["node"] for v in values[0]] == ["master", "gpu01"]
    assert [v["actor"] for v in values[1]] == ["trial/7", "trial/8"]
    assert set(values[2]) == {"identity", "links", "work", "memory", "recent"}
    assert [m["type"] for m in values[3]] == ["heartbeat", "heartbeat"]
    assert values[4]["state"]["step"] == 400
    assert values[5] == {"level": "info"}


def test_csv_has_a_line_a_row(server, env):
    lines = run(server, env, "nodes", more=["-o", "csv"]).out.splitlines()
    assert lines[0].startswith("node,state,slots,used,actors,backlog,version,uptime_s,role")
    assert lines[1].startswith("master,up,0,0,41,312,0.1.0,3723,master")
    assert run(server, env, "tree experiment/3 -o csv").out.splitlines()[0] == "actor,depth,parent,restarts,state"


def test_filters_pipes_variables_and_files(server, env, tmp_path):
    out = run(server, env, "ps | where kind=trial 'msg_per_s<1' | columns actor,state").out
    assert out == "actor    state\ntrial/8  WAITING\n" or out == "ACTOR    STATE\ntrial/8  WAITING\n"
    assert run(server, env, "ps | count").out == "5\n"
    assert run(server, env, "ps | grep trial/ | wc -l").out.strip() == "2"
    assert run(server, env, "let t = ps kind=trial --top 1; info $t | head -1").out.startswith("identity   trial/7")
    assert run(server, env, "ps --top 1 -o json > '%s/a b'" % tmp_path, "nodes >> '%s/a b'" % tmp_path).out == ""
    text = (tmp_path / "a b").read_text()
    assert json.loads(text.splitlines()[0])[0]["actor"] == "journal" and "gpu01" in text
    assert run(server, env, "ps kind=trial --top 1", "state _ step").out.endswith("\n400\n")
    assert run(server, env, "let n = 'a b'; let m = ps --top 1; let", more=["-o", "csv"]).out.splitlines()[1:] != []
    assert run(server, env, "let r = ps --top 1; state trial/7 | grep -c \"$r\"; nodes", code=1).out == "0\n"
    assert run(server, env, "ps --top 1; let b = ps | order -backlog; log | sh -c 'echo $b'").out.endswith("journal\n")
    assert run(server, env, "let n = ps | grep -c trial; let n").out == "\"2\"\n"
    assert run(server, env, "repeat 3 log").out == "info\n" * 3
    assert run(server, env, "watch -n 100ms --max 2 log").out == "info\n" * 2
    (tmp_path / "script").write_text("# two commands\nlog\nlet x = log # and a value\n")
    assert run(server, env, f"source '{tmp_path}/script'; let x").out == "info\nlevel: info\n"


def test_every_verb_works_inside(server, env):
    assert [e["id"] for e in json.loads(run(server, env, "experiment list -o json").out)] == [3]
    assert json.loads(run(server, env, "exp ls", more=["-o", "json"]).out)[0]["name"] == "digits"
    assert run(server, env, "let e = experiment list; let e | cat").returncode == 0
    assert "digits" in run(server, env, "experiment list | where id=3 | columns name").out
    assert run(server, env, "version").out.startswith("troupe ")
    assert "preempt [reason=text] [grace_s=integer]" in run(server, env, "help send").out
    assert "Usage: troupe experiment pause" in run(server, env, "help experiment pause").out
    assert "read-only" in run(server, env, "experiment kill 3", code=4).err
    assert run(server, env, "up", code=2).err.startswith("error: 'up' does not run inside the shell")


# ---- changes, exit codes


def test_changes_need_rw_and_an_admin(server, env):
    assert run(server, env, "send trial/7 preempt", code=4).err == "error: the session is read-only\nhint: :rw allows changes for 15 minutes\n"
    assert not [r for r in server.requests if r[0] == "POST" and "login" not in r[1]]
    done = run(server, env, ":rw; send trial/7 preempt reason='a b' grace_s=30")
    assert done.out == "acknowledged\n" and "audit log" in done.err
    assert server.requests[-1] == ("POST", "/troupe/v1/shell/send", {"actor": "trial/7", "message": "preempt", "fields": {"reason": "a b", "grace_s": 30}})
    assert run(server, env, ":rw", "drain gpu01").out == "drain of gpu01\n"
    assert server.requests[-1][2] == {"node": "gpu01", "on": True}
    assert run(server, env, ":rw", "config set a.b 3").out == "config of a.b\n"
    assert server.requests[-1][2] == {"key": "a.b", "value": 3}
    assert run(server, env, ":rw", "log debug", "log").out == "debug\ndebug\n"
    assert "--allow-faults" in run(server, env, ":rw", "fault trial/7 crash", code=4).err
    server.allow_faults = True
    assert run(server, env, ":rw", "fault trial/7 drop percent=5").out == "fault of trial/7\n"
    assert server.requests[-1][2] == {"actor": "trial/7", "fault": "drop", "percent": 5}
    assert run(server, env, ":rw", ":ro", "kill trial/7", code=4).returncode == 4
    server.admin = False
    assert "for admins" in run(server, env, ":rw", code=4).err


@pytest.mark.parametrize("command, code, text", [
    ("pss", 2, "error: unknown command 'pss'\nhint: did you mean 'ps'?\n"),
    ("inof trial/7", 2, "hint: did you mean 'info'?"),
    ("ps --tpo 3", 2, "error: 'ps' has no option '--tpo'\nhint: did you mean '--top'?\n"),
    ("ps --sort shoesize", 2, "cannot sort by 'shoesize'"),
    ("ps kidn=trial", 2, "'ps' has no filter 'kidn'"),
    ("info", 2, "'info' needs an actor"),
    ("info trial/99", 5, "error: there is no actor 'trial/99'\nhint: ps lists the actors\n"),
    ("follow req-1 --for 1s", 5, "no message belongs to 'req-1'"),
    ("trace trial/99", 5, "there is no actor 'trial/99'"),
    ("ps | where backlogg=3", 2, "hint: did you mean 'backlog'?"),
    ("tree | where a=1", 2, "works on rows"),
    ("info $nobody", 2, "there is no variable '$nobody'"),
    ("info _", 2, "there is no last result yet"),
    ("ps 'open", 2, "a quote is not closed"),
    ("ps > /nowhere/x", 1, "/nowhere/x: No such file or directory"),
    ("source /nowhere/x", 2, "/nowhere/x: No such file or directory"),
    ("source /", 2, "/: "),
    (":rw; send trial/7 premept", 2, "hint: did you mean 'preempt'?"),
    (":rw; send trial/7 preempt reasn=x", 2, "hint: did you mean 'reason'?"),
    (":rw; send trial/7 preempt grace_s=soon", 2, "field 'grace_s' takes a number, not 'soon'"),
    ("ps | false", 1, ""),
    ("state trial/7 stepp", 2, "the state has no 'stepp'"),
])
def test_faults_name_the_place_and_the_mend(server, env, command, code, text):
    assert text in run(server, env, command, code=code).err


def test_stops_at_the_first_failure_unless_told(server, env, tmp_path):
    assert run(server, env, "info trial/99", "log", code=5).out == ""
    assert run(server, env, "info trial/99", "pss", "log", code=5, more=["--keep-going"]).out == "info\n"
    script = tmp_path / "script"
    script.write_text("log\n\n# text\nps \\\n  --top 1 -o json\npss\nlog\n")
    done = shell(server, env, "-f", str(script))
    assert done.returncode == 2 and done.out.startswith("info\n[") and done.out.count("info") == 1
    assert f"error: {script}:6: unknown command 'pss'" in done.err
    assert shell(server, env, "-f", "-", stdin=b"log\nlog").out == "info\ninfo\n"
    assert shell(server, env, stdin=b"log\nquit\nlog\n").out == "info\n"
    assert shell(server, env, "-f", "/nowhere").returncode == 2
    assert shell(server, env, "-f", str(tmp_path)).returncode == 2
    loop = tmp_path / "loop"
    loop.write_text(f"source '{loop}'\n")
    assert "does one source itself?" in shell(server, env, "-f", str(loop)).err


def test_no_cluster(env):
    free = free_port()
    done = subprocess.run([BINARY, "shell", "--attach", f"127.0.0.1:{free}", "-e", "nodes"], env=env, capture_output=True, text=True)
    assert done.returncode == 6 and "connect to" in done.stderr
    done = subprocess.run([BINARY, "shell", "-e", "nodes"], env=env, capture_output=True, text=True)
    assert done.returncode == 6 and "troupe up" in done.stderr
    assert subprocess.run([BINARY, "shell", "--attach", "x:y:z", "-e", "nodes"], env=env, capture_output=True).returncode == 2
    assert subprocess.run([BINARY, "shell", "--atach", "x"], env=env, capture_output=True).returncode == 2


def test_floods_and_binary_on_standard_input(server, env):
    done = shell(server, env, "--keep-going", stdin=b"x" * (1 << 20) + b"\nlog\n")
    assert done.returncode == 2 and done.out == "info\n"
    assert "standard input:1: a line of 1048576 bytes; at most 65536 are read" in done.err
    noise = bytes(range(256)) * 4096
    done = shell(server, env, "--keep-going", stdin=noise + b"\nlog\n")
    assert done.returncode == 2 and "is not text" in done.err and len(done.err) < 20000
    done = shell(server, env, stdin=b"\x7fELF\x00\x01\nlog\n")
    assert done.returncode == 2 and done.out == "" and "standard input:1: the line holds bytes that are not text" in done.err
    assert shell(server, env, "--keep-going", stdin=b"\xff\xfe\nlog\n").out == "info\n"


def test_a_reader_that_leaves_ends_it(server, env):
    done = subprocess.run(["bash", "-c", f"'{BINARY}' shell --attach {server.url} -e 'watch -n 100ms ps' | head -1"], env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("ACTOR")
    assert run(server, env, "ps | head -1", "log").out.endswith("info\n")


def test_missing_nodes_and_a_node_that_goes_away(server, env):
    server.trace_dies = True
    done = run(server, env, "nodes")
    assert done.err == "node gpu02 is missing: no answer in 2 s\n"
    done = run(server, env, "trace trial/7 --max 50", code=6)
    assert done.out.count("heartbeat") == 3 and "went away in the middle of the stream" in done.err


def test_events_end_by_count_and_time(server, env):
    assert run(server, env, "events --for 300ms", more=["-o", "json"]).out == "[]\n"
    server.followers.clear()
    process = subprocess.Popen([BINARY, "shell", "--attach", server.url, "-o", "json", "-e", "events -f --max 2"], env=env, stdout=subprocess.PIPE)
    poll(lambda: server.followers)
    for i in range(3):
        server.emit({"at": "2026-11-22T12:00:00Z", "kind": "state", "actor": "trial/7", "what": f"step {i}", "user": ""})
    out, _ = process.communicate(timeout=120)
    assert [r["what"] for r in json.loads(out)] == ["step 0", "step 1"] and process.returncode == 0
    server.followers.clear()
    process = subprocess.Popen([BINARY, "shell", "--attach", server.url, "-o", "json", "-e", "events -f"], env=env, stdout=subprocess.PIPE)
    poll(lambda: server.followers)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert json.loads(out) == [] and process.returncode == 130


def poll(true, seconds=120):
    end = time.monotonic() + seconds
    while not (got := true()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return got


# ---- a terminal


class Terminal:
    PROMPT = r"troupe[^\r\n]*> "

    def __init__(self, server, env, *words, rows=24, columns=100):
        attach = ["--attach", server.url] if server else []
        self.child = pexpect.spawn(BINARY, ["shell", *attach, *words], env=env, encoding="utf-8", timeout=120, dimensions=(rows, columns))
        self.child.delaybeforesend = None

    def prompt(self, pattern=None):
        self.child.expect(pattern or self.PROMPT)
        return self.child.before

    def line(self, text, pattern=None):
        self.child.send(text + "\r")
        self.child.expect_exact("\n")
        return self.prompt(pattern)

    def leave(self):
        self.child.send("\x04")
        self.child.expect(pexpect.EOF)
        self.child.close()
        assert self.child.exitstatus == 0, (self.child.exitstatus, self.child.signalstatus)


@pytest.fixture
def terminal(server, env):
    t = Terminal(server, env)
    t.greeting = t.prompt()
    yield t
    t.child.close(force=True)


def test_greeting_prompt_and_leaving(server, env):
    t = Terminal(server, env)
    greeting = t.prompt()
    assert "2 nodes, 8 slots, 46 actors" in greeting and "as ada (read-only, :rw to change)" in greeting
    assert "writing allowed until" in t.line(":rw", r"troupe# ")
    t.line("cd trial/7", r"troupe/trial/7# ")
    assert "agent/gpu01" in t.line("info", r"troupe/trial/7# ")
    t.line("cd ..; :ro")
    assert "nearest" not in t.line("pss") and t.child.exitstatus is None
    t.leave()
    t = Terminal(server, env)
    t.prompt()
    t.child.send("quit\r")
    t.child.expect(pexpect.EOF)
    t.child.close()
    assert t.child.exitstatus == 0


def test_no_cluster_at_a_terminal(env):
    t = Terminal(None, env)
    t.child.expect("error: no cluster")
    t.child.expect(pexpect.EOF)
    t.child.close()
    assert t.child.exitstatus == 6


def test_history_comes_back_without_secrets(server, env, terminal, tmp_path):
    terminal.line("log")
    terminal.line("config set admin.password x")
    terminal.line("info trial/7")
    terminal.leave()
    file = tmp_path / "state" / "troupe" / "shell_history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text() == "log\ninfo trial/7\n"
    again = Terminal(server, env)
    again.prompt()
    again.child.send("\x1b[A")
    again.child.expect_exact("info trial/7")
    again.child.send("\x1b[A")
    again.child.expect("log")
    again.child.send("\r")
    again.child.expect_exact("info\r\n")
    again.prompt()
    again.child.send("\x12tri")  # Ctrl-R
    again.child.expect_exact("info trial/7")
    again.child.send("\r")
    again.child.expect_exact("identity")
    again.prompt()
    again.leave()


def test_completion(server, terminal):
    def completed(text, result):
        terminal.child.send(text + "\t\x0c")  # Ctrl-L draws the whole line again.
        terminal.child.expect_exact("troupe> " + result)
        terminal.child.send("\x03")
        terminal.child.expect_exact("^C")
        terminal.prompt()

    completed("who", "who-waits")
    completed("info jou", "info journal")
    completed("send tri", "send trial/")
    completed("send trial/7 pre", "send trial/7 preempt")
    completed("send trial/7 preempt re", "send trial/7 preempt reason=")
    completed("drain gp", "drain gpu01")
    completed("experiment desc", "experiment describe")
    terminal.child.send("info trial/\t")
    terminal.child.expect_exact("trial/7")
    terminal.child.expect_exact("trial/8")
    terminal.child.expect_exact("info trial/")  # The typed text is shown again.
    terminal.child.send("8\r")
    terminal.child.expect_exact("identity")
    terminal.prompt()
    server.freeze = True  # Tab does not wait for an answer where the client has older names.
    heard = len(server.requests)

    def asked_again():
        completed("info jou", "info journal")
        return len(server.requests) > heard

    poll(asked_again)
    completed("info jou", "info journal")
    server.freeze = False


def test_ctrl_c_drops_a_line_and_ends_a_command(server, terminal):
    terminal.child.send("info tri\x03")
    terminal.child.expect_exact("^C")
    terminal.prompt()
    terminal.child.send("events -f\r")
    poll(lambda: len(server.followers) >= 2)
    terminal.child.sendintr()
    terminal.prompt()
    terminal.child.send("watch -n 100ms log\r")
    terminal.child.expect_exact("every 0.1 s")
    terminal.child.sendintr()
    terminal.prompt()
    server.freeze = True
    terminal.child.send("nodes\r")
    poll(lambda: server.requests[-1][1].endswith("nodes"))
    terminal.child.sendintr()
    terminal.child.expect_exact("interrupted")
    terminal.prompt()
    server.freeze = False
    assert "info" in terminal.line("log")
    terminal.leave()


def test_an_open_quote_goes_on_in_the_next_line(server, terminal):
    terminal.child.send("let x = 'one\r")
    terminal.prompt(r"\.\.\. ")
    terminal.line("two'")
    assert "one" in terminal.line("let x")
    terminal.child.send("ps 'x\r")
    terminal.prompt(r"\.\.\. ")
    terminal.child.send("\x03")
    terminal.prompt()
    terminal.leave()


def test_events_arrive_while_typing(server, terminal):
    poll(lambda: server.followers)
    terminal.child.send("lo")
    terminal.child.expect_exact("lo")
    server.emit({"at": "2026-11-22T12:00:07Z", "kind": "supervision", "actor": "trial/7", "what": "restarted", "user": ""})
    terminal.child.expect(r"12:00:07  supervision  trial/7 +restarted")
    terminal.child.expect(r"troupe> .*lo")  # The prompt and the typed text follow below.
    terminal.child.send("g\r")
    terminal.child.expect_exact("info\r\n")
    terminal.prompt()
    for i in range(500):
        server.emit({"at": "2026-11-22T12:00:08Z", "kind": "state", "actor": "trial/7", "what": f"n{i}", "user": ""})
    terminal.child.expect(r"and \d+ events more")
    terminal.child.send("\r")
    terminal.prompt()
    server.emit({"at": "2026-11-22T12:00:09Z", "kind": "audit", "actor": "x", "what": "own", "user": "ada"})
    server.emit({"at": "2026-11-22T12:00:09Z", "kind": "state", "actor": "x", "what": "\x1b[2Jlast", "user": ""})
    terminal.child.expect(r"12:00:09[^\n]*last")
    assert "own" not in terminal.child.before and "\x1b[2J" not in terminal.child.after
    terminal.leave()


def test_utf8_and_resize(server, terminal):
    terminal.child.send("let x = grüße→\x7f日\r")
    terminal.child.expect_exact("grüße")
    terminal.prompt()
    terminal.line("let x > /dev/null; :json")
    assert "grüße日" in terminal.line("let x | cat")
    terminal.line(":table")
    terminal.child.setwinsize(24, 40)
    terminal.child.send("ps\r")
    terminal.child.expect_exact("ACTOR")
    assert all(len(row) <= 40 for row in terminal.prompt().splitlines())
    terminal.child.setwinsize(30, 120)
    terminal.child.send("ps\r")
    terminal.child.expect(r"ACTOR.*STATE")
    terminal.prompt()
    terminal.child.send("x" * 150)  # 150 characters need two rows. A resize keeps the text.
    terminal.child.setwinsize(24, 50)
    terminal.child.send("\x15log\r")
    terminal.child.expect_exact("info\r\n")
    terminal.prompt()
    terminal.leave()


def test_a_pasted_megabyte(terminal):
    import threading

    reader_done = []
    data = "x" * (1 << 20)

    def paste():
        view = data.encode()
        while view:
            view = view[os.write(terminal.child.child_fd, view[:4096]):]
        os.write(terminal.child.child_fd, b"\r")
        reader_done.append(1)

    writer = threading.Thread(target=paste, daemon=True)
    writer.start()
    terminal.child.expect(r"error: a line of \d+ bytes; at most 65536 are read", timeout=180)
    terminal.prompt()
    writer.join(120)
    assert reader_done
    assert "info" in terminal.line("log")
    terminal.leave()


def test_top_is_left_by_q(server, terminal):
    terminal.child.send("top --window 1s\r")
    terminal.child.expect_exact("\x1b[?1049h")
    terminal.child.expect(r"5 actors.*by msg_per_s")
    terminal.child.expect_exact("journal")
    terminal.child.send("s")
    terminal.child.expect_exact("by backlog")
    terminal.child.send("q")
    terminal.child.expect_exact("\x1b[?1049l")
    terminal.prompt()
    assert "info" in terminal.line("log")
    terminal.leave()


def test_top_filters_and_shows_the_chosen_actor(server, terminal):
    child = terminal.child
    child.send("top --window 1s\r")
    child.expect(r"5 actors.*by msg_per_s")
    child.send("/trial")
    child.expect_exact("/trial_")
    child.expect_exact("trial/8")
    child.send("\r")
    child.expect(r"2 actors[^\n]*/trial ")
    child.send("\x1b[B")  # Down
    child.expect(r"\x1b\[7mtrial/8")
    child.send("k")
    child.expect(r"\x1b\[7mtrial/7")
    child.send("?")
    child.expect_exact("traces it for 10 s")
    child.send("x")
    child.expect(r"2 actors[^\n]*/trial ")
    child.send("\r")
    child.expect_exact("any key goes back")
    child.expect(r"links +child: allocation/7.2   owner: experiment/3")
    child.send(" ")
    child.expect(r"2 actors[^\n]*/trial ")
    child.send("/x")
    child.expect_exact("/trialx_")
    child.expect_exact("0 actors")
    child.send("\x1b")  # Esc drops the typed text.
    child.expect(r"2 actors[^\n]*/trial ")
    child.send("\x1b")  # Esc drops the filter.
    child.expect(r"5 actors")
    child.send("q")
    child.expect_exact("\x1b[?1049l")
    terminal.prompt()
    terminal.leave()


def test_top_traces_the_chosen_actor(server, terminal):
    child = terminal.child
    child.send("top --window 1s\r")
    child.expect(r"5 actors.*by msg_per_s")
    child.send("/journal\r")
    child.expect(r"1 actors[^\n]*/journal ")
    child.send("t")
    child.expect_exact("\x1b[?1049l")
    child.expect_exact("any key goes back to top", timeout=120)
    asked, = [asked for method, path, asked in server.requests if path.endswith("/shell/trace")]
    assert (asked["actor"], asked["max"], float(asked["for"])) == ("journal", "100", 10), asked
    child.send(" ")
    child.expect_exact("\x1b[?1049h")
    child.expect(r"1 actors[^\n]*/journal ")
    child.send("q")
    child.expect_exact("\x1b[?1049l")
    terminal.prompt()
    terminal.leave()


def test_kill_asks_at_a_terminal_only(server, env, terminal):
    writing = r"troupe# "
    terminal.line(":rw", writing)
    killed = lambda: [body for method, path, body in server.requests if path.endswith("/shell/kill")]  # noqa: E731
    for answer in ("\r", "n\r", "\x03", "yess\r"):
        terminal.child.send("kill trial/7\r")
        terminal.child.expect_exact("End trial/7 and the 3 actors below it? [y/N] ")
        terminal.child.send(answer)
        terminal.child.expect_exact("nothing was done")
        terminal.prompt(writing)
    assert killed() == []
    terminal.child.send("kill trial/7\r")
    terminal.child.expect_exact("[y/N] ")
    terminal.child.send("y\r")
    terminal.prompt(writing)
    assert killed() == [{"actor": "trial/7"}]
    terminal.line("kill -y trial/7", writing)
    assert len(killed()) == 2
    run(server, env, ":rw", "kill trial/7")
    assert len(killed()) == 3
    terminal.child.send("\x1b[A\x1b[A\x0c")  # Answers to questions are not in the history.
    terminal.child.expect_exact("troupe# kill trial/7")
    terminal.child.send("\x03")
    terminal.prompt(writing)
    terminal.leave()


def test_a_server_that_goes_away_and_a_vanished_actor(server, env, terminal):
    assert "there is no actor 'trial/99'" in terminal.line("info trial/99")
    poll(lambda: server.followers)
    server.close()
    for handler in list(server.followers):
        handler.connection.close()
    server.followers.clear()
    terminal.line("nodes", r"error: [^\n]*connect to[^\n]*\n")
    terminal.prompt()
    terminal.child.kill(signal.SIGTERM)
    terminal.child.expect(pexpect.EOF)
    terminal.child.close()
    assert terminal.child.exitstatus == 0


def test_rc_file(server, env, tmp_path):
    (tmp_path / "config" / "troupe").mkdir(parents=True)
    (tmp_path / "config" / "troupe" / "shellrc").write_text("let mine = trial/7\npss\n:json\n")
    t = Terminal(server, env)
    t.child.expect(r"shellrc:2: unknown command 'pss'")
    t.prompt()
    assert re.search(r'\{"level":"info"\}', t.line("log"))
    assert '"trial/7"' in t.line("let mine")
    t.leave()


def test_no_link_is_made_to_a_page_that_is_not_there(server, env):
    """A node that is embedded with `web = false` answers like this server."""
    done = subprocess.run([BINARY, "web", "--master", server.url], env=env, capture_output=True, text=True, timeout=180)
    assert done.returncode == 5 and done.stdout == "", done
    assert f"no web page at {server.url}/ui/" in done.stderr, done.stderr
