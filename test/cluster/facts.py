"""What a script can see of its own start, as JSON into $FACTS_DIR/TRIAL.json: the same with the zygote and without."""

import os

threads_at_first = len(os.listdir("/proc/self/task"))

import atexit  # noqa: E402
import ctypes
import faulthandler
import fcntl
import gc
import inspect
import json
import locale
import multiprocessing
import pathlib
import random
import resource
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import numpy
import torch

import troupe


def status(*names):
    lines = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    return {name: lines.get(name) for name in names}


def kind(fd):
    mode = os.fstat(fd).st_mode
    return "pipe" if stat.S_ISFIFO(mode) else os.readlink(f"/proc/self/fd/{fd}")


def stream(file):
    return [file.name, file.fileno(), file.mode, file.encoding, file.errors, file.line_buffering, file.isatty(),
            getattr(file, "write_through", None), type(file.buffer).__name__]


def open_descriptors():
    found = {}
    for fd in os.listdir("/proc/self/fd"):
        try:
            found[fd] = kind(int(fd))
        except OSError:
            pass  # This was the descriptor of the listing itself.
    return found


libc = ctypes.CDLL(None)


def death_signal():
    value = ctypes.c_int()
    libc.prctl(2, ctypes.byref(value), 0, 0, 0)
    return value.value


# Tokens, ports and names differ from run to run. All other variables must be equal, and the names of these too.
OF_THE_RUN = ("TOKEN", "PORT", "ALLOCATION", "TASK_ID", "SANDBOX", "EXPERIMENT", "TRIAL_ID", "TRIAL_SEED", "RESOURCES_ID",
              "CONTAINER_ID", "SLOT_IDS", "HARNESS", "LOGGING", "CHECKPOINT_DIR", "HPARAMS")


def variable(name, text):
    return "of the run" if any(part in name for part in OF_THE_RUN) else text


stack = [frame.function for frame in inspect.stack(0)]
drawn = {"random": random.random(), "numpy": float(numpy.random.random()), "torch": [torch.initial_seed(), torch.rand(3).tolist()],
         "authkey": multiprocessing.current_process().authkey.hex()}
main = sys.modules["__main__"]
facts = {
    "argv": sys.argv,
    "orig_argv": sys.orig_argv,
    "executable": sys.executable,
    "prefix": [sys.prefix, sys.base_prefix, sys.exec_prefix],
    "path": sys.path,
    "flags": list(sys.flags),
    "warnoptions": [sys.warnoptions, sys._xoptions],
    "main attributes": sorted(name for name in vars(main) if name.startswith("__")),
    "main": [__name__, __file__, __doc__, __package__, type(__loader__).__name__, str(__spec__), __builtins__.__name__],
    "stack": stack,
    "caller": sys._getframe().f_back is None,
    "cwd": os.getcwd(),
    "environment": {name: variable(name, text) for name, text in sorted(os.environ.items())},
    "environment of /proc": sorted(pair.split(b"=")[0].decode() for pair in pathlib.Path("/proc/self/environ").read_bytes().split(b"\0")),
    "command of /proc": pathlib.Path("/proc/self/cmdline").read_bytes().decode(),
    # Not os.popen(): where `ps` ends late, its pipe stays open and is taken for a descriptor of the script.
    "command of ps": subprocess.run(["ps", "-o", "args=,comm=", "-p", str(os.getpid())], capture_output=True, text=True).stdout,
    "comm": pathlib.Path("/proc/self/comm").read_text(),
    "exe": os.readlink("/proc/self/exe"),
    "stdin": stream(sys.stdin),
    "stdout": stream(sys.stdout),
    "stderr": stream(sys.stderr),
    "originals": [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
    "descriptors": open_descriptors(),
    "inheritable": [os.get_inheritable(fd) for fd in range(3)],
    "flags of descriptors": [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in range(3)],
    "pid": os.getpid(),
    "parent": os.getppid(),
    "group is own": os.getpgid(0) == os.getpid(),
    "session is own": os.getsid(0) == os.getpid(),
    "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
    "credentials": status("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"),
    "signals": status("SigBlk", "SigIgn", "SigCgt", "SigPnd"),
    "handlers": {int(one): str(signal.getsignal(one)).split(" at ")[0] for one in signal.valid_signals()},
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "death signal": death_signal(),
    "dumpable": libc.prctl(3, 0, 0, 0, 0),
    "namespaces of the sandbox": [os.readlink(f"/proc/self/ns/{name}") == os.readlink(f"/proc/1/ns/{name}")
                                  for name in ("mnt", "user", "pid", "pid_for_children")],
    "other namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in ("net", "ipc", "uts", "cgroup", "time")},
    "umask": os.umask(0o22),
    "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")},
    "nice": [os.nice(0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))],
    "oom": [pathlib.Path("/proc/self/oom_score_adj").read_text()],
    "cgroup": pathlib.Path("/proc/self/cgroup").read_text(),
    "threads at the first line": threads_at_first,
    "threads that calculate": [numpy.ones((600, 600)).dot(numpy.ones((600, 600))).shape, len(os.listdir("/proc/self/task"))],
    "threads of Python": [thread.name for thread in threading.enumerate()],
    "main thread": [threading.current_thread() is threading.main_thread(), threading.main_thread().native_id == os.getpid(), threading.get_native_id() == os.getpid()],
    "multiprocessing": [multiprocessing.current_process().name, multiprocessing.parent_process() is None, multiprocessing.get_start_method()],
    "children": multiprocessing.active_children(),
    "warning filters": [str(one) for one in warnings.filters],
    "faulthandler": faulthandler.is_enabled(),
    "traces": [sys.gettrace() is None, sys.getprofile() is None],
    "hooks": [sys.excepthook is sys.__excepthook__, threading.excepthook.__name__, [type(one).__name__ if not isinstance(one, type) else one.__name__ for one in sys.meta_path]],
    "limits of Python": [sys.getrecursionlimit(), sys.getswitchinterval(), gc.isenabled(), gc.get_threshold()],
    "locale": [locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), locale.getpreferredencoding()],
    "time zone": time.tzname,
    "times began at zero": time.process_time() < 600 and os.times().children_user < 60,
    "socket timeout": socket.getdefaulttimeout(),
    "temporary folder": tempfile.gettempdir(),
    "home": os.path.expanduser("~"),
    "sitecustomize": getattr(sys.modules.get("sitecustomize"), "__file__", None),
    "torch threads": [torch.get_num_threads(), torch.get_num_interop_threads()],
    "torch state": [torch.is_grad_enabled(), str(torch.get_default_dtype()), torch.are_deterministic_algorithms_enabled()],
    "task folders": [name.split("-")[0] for name in sorted(os.listdir("/tmp"))] + sorted(os.listdir("/run/determined/train/logs")),
    "log links": os.readlink("/run/determined/train/logs/stdout.log"),
    "troupe": troupe.__file__,
}
atexit.register(lambda: pathlib.Path(os.environ["FACTS_DIR"], f"ended-{os.environ['DET_TRIAL_ID']}").touch())
with open(os.path.join(os.environ["FACTS_DIR"], os.environ["DET_TRIAL_ID"] + ".json"), "w") as file:
    json.dump({"facts": facts, "drawn": drawn, "forked": gc.get_freeze_count() > 0}, file)


class Late:
    """An object that writes only when the interpreter clears the script's names."""

    def __init__(self):
        self.file = open(os.path.join(os.environ["FACTS_DIR"], "late-" + os.environ["DET_TRIAL_ID"]), "w")

    def __del__(self):
        self.file.write("late")


late = Late()
thread = threading.Thread(target=lambda: time.sleep(0.05))
thread.start()
print("no newline at the end", end="")
troupe.validate({"loss": 1.0, "epoch": 1}, step=1)
if "--exit" in sys.argv:
    sys.exit(int(sys.argv[-1]))
