"""Runs the unmodified client `det`. Each call is forked from a process that has imported the modules of the client, because the imports
take most of the time of a call. A call has its own words, environment, streams and session; `test_stock_shapes.py` compares such calls
with processes of their own. Tests of signals, terminals and time start processes of their own."""

import atexit
import concurrent.futures
import gc
import importlib
import json
import os
import pathlib
import pkgutil
import re
import runpy
import select
import signal
import site
import socket
import subprocess
import sys
import threading
import time

# Variables that may differ between the calls of one warm process, because the client reads them when it runs and not when it is imported.
READ_BY_CALLS = {"BROWSER", "COLUMNS", "DET_MASTER", "DET_PASS", "DET_USER", "DET_USER_TOKEN", "PYTEST_CURRENT_TEST", "TROUPE_DATA_DIR",
                 "TROUPE_MASTER", "TROUPE_PASSWORD", "TROUPE_USER"}
if not site.ENABLE_USER_SITE:  # With user sites, modules come from below HOME.
    READ_BY_CALLS.add("HOME")
IMPORTED_LATE = ("OpenSSL.SSL", "argcomplete.completers", "netrc", "numpy")  # imported by `determined.cli.cli` and by verbs
warm = {}  # the sockets of warm processes, by folder and environment
warming = threading.Lock()


class Call:
    """A running `det`. Its streams are descriptors that are not terminals. The caller closes its own copies of them."""

    def __init__(self, words, env, streams, cwd=None, start_new_session=False):
        mine, theirs = os.pipe()
        umask = re.search(r"Umask:\s*(\d+)", pathlib.Path("/proc/self/status").read_text())[1]
        order = {"words": words, "env": env, "umask": int(umask, 8), "start_new_session": start_new_session}
        socket.send_fds(warm_process(env, str(cwd or os.getcwd())), [json.dumps(order).encode()], [*streams, theirs])
        os.close(theirs)
        self.told = open(mine, "rb", buffering=0)
        self.pid = int(self.told.readline())

    def wait(self, timeout=None):
        """Waits for the exit code, which is negative for a killed process. Call it only once."""
        if not select.select([self.told], [], [], timeout)[0]:
            raise TimeoutError
        with self.told:
            return int(self.told.readline())


def run(words, env, input=None, timeout=180, start_new_session=False, cold=False):
    """Does what `subprocess.run` does with `python -m determined.cli WORDS`. With `cold` it calls exactly that."""
    if cold:
        return subprocess.run([sys.executable, "-m", "determined.cli", *words], env=env, input=input, timeout=timeout, capture_output=True,
                              text=True, start_new_session=start_new_session)
    until = time.monotonic() + timeout
    stdin, feed = (os.dup(0), None) if input is None else os.pipe()
    (out, stdout), (err, stderr) = os.pipe(), os.pipe()
    call = Call(words, env, (stdin, stdout, stderr), start_new_session=start_new_session)
    for one in (stdin, stdout, stderr):
        os.close(one)
    with concurrent.futures.ThreadPoolExecutor(3) as streams:
        said = [streams.submit(read, one) for one in (out, err)]
        if input is not None:
            streams.submit(write, feed, input)
        try:
            texts = [one.result(until - time.monotonic()) for one in said]
            return subprocess.CompletedProcess(words, call.wait(max(0, until - time.monotonic())), *texts)
        except TimeoutError:
            os.kill(call.pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(words, timeout) from None


def read(fd):
    with open(fd) as stream:
        return stream.read()


def write(fd, text):
    with open(fd, "w") as stream:
        stream.write(text)


def warm_process(env, cwd):
    key = cwd, json.dumps({name: value for name, value in sorted(env.items()) if name not in READ_BY_CALLS})
    with warming:
        if key not in warm:
            mine, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
            own = {"OPENBLAS_NUM_THREADS": "1", **json.loads(key[1])}  # A process that forks should have no other threads.
            with theirs:
                process = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], env=own, cwd=cwd, pass_fds=[theirs.fileno()],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # Python makes `sys.stdout` at its start; it must not be a terminal.
            atexit.register(end, mine, process)
            warm[key] = mine
        return warm[key]


def end(orders, process):
    orders.close()
    process.wait()


def import_client():
    """Imports all modules of the client but `determined.cli.cli`, which takes defaults from words and environment."""
    read, get = set(), type(os.environ).__getitem__
    type(os.environ).__getitem__ = lambda self, name: read.add(name) or get(self, name)
    package = importlib.import_module("determined.cli")
    of_package = [f"determined.cli.{one.name}" for one in pkgutil.iter_modules(package.__path__) if one.name not in ("cli", "__main__")]
    for name in (*of_package, *IMPORTED_LATE):
        importlib.import_module(name)
    type(os.environ).__getitem__ = get
    assert not read & READ_BY_CALLS, f"read at import: {read & READ_BY_CALLS}"
    assert len(os.listdir("/proc/self/task")) == 1, "a forked process would lack a thread"
    gc.collect()
    gc.freeze()  # Without this, a collection in a forked process would copy most pages.


def next_call(orders):
    """Serves calls without end. Returns the order of the call in a forked process, and None in the warm process when no caller is left."""
    running = {}
    while True:
        for ready in select.select([orders, *running], [], [])[0]:
            if ready is not orders:
                pid, told = running.pop(ready)
                os.write(told, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                os.close(ready), os.close(told)
                continue
            text, fds, _, _ = socket.recv_fds(orders, 1 << 20, 4)
            if not text:
                return None
            if not (pid := os.fork()):
                orders.close()
                for number, fd in enumerate(fds[:3]):
                    os.dup2(fd, number)
                for fd in [*fds, *running, *(told for _, told in running.values())]:
                    os.close(fd)
                return json.loads(text)
            running[os.pidfd_open(pid)] = pid, fds[3]
            os.write(fds[3], b"%d\n" % pid)
            for fd in fds[:3]:
                os.close(fd)


def become(order):
    """Takes over what a new process of this call would have, runs the client, and ends as Python does. Modules are not cleared, which
    would cost as much as the call."""
    if order["start_new_session"]:
        os.setsid()
    os.umask(order["umask"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    sys.argv = ["det", *order["words"]]
    code = 0
    try:
        runpy.run_module("determined.cli", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # as with -m
    orders = socket.socket(fileno=int(sys.argv[1]))
    orders.set_inheritable(False)
    import_client()
    if order := next_call(orders):
        become(order)
