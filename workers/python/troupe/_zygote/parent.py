"""The zygote itself: it warms up, and forks a process for each trial into the sandbox that the trial's troupe-task has made.

Messages from the agent, the first with two descriptors (a connection to a troupe-task, the trial's working directory):
    serve \0 CONTEXT \0 SCRIPT \0 MODULES  |  ping
MODULES are the names, with blanks between, of modules that earlier trials of this environment had imported at their end.
Messages to the agent:         hello \0 PATH \0 MTIME_NS ...  |  warming | ready | failed WHY | stale WHY | pong
Messages from a troupe-task:   fork, or more where another rank will follow; each with eight descriptors
Messages to a troupe-task:     taken | no WHY
"""

import os
import sys

MUST_CLOSE = 64  # numbers kept for the zygote's own descriptors, the highest, so that libraries get the usual low ones


class Refused(Exception):
    pass


def site_folders():
    return [path for path in sys.path if path.rpartition("/")[2] in ("site-packages", "dist-packages")]


class Parent:
    def __init__(self, here):
        before = set(sys.modules)
        import ctypes
        import fcntl
        import gc
        import resource
        import select

        import _socket

        self.ctypes, self.fcntl, self.select, self._socket, self.gc = ctypes, fcntl, select, _socket, gc
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.high = max(64, min(soft, 1024) - MUST_CLOSE)
        self.ours = here.rpartition("/")[0].rpartition("/")[0]
        self.reading = load("reading")  # noqa: F821  sitecustomize defines it
        self.child = load("child")  # noqa: F821  sitecustomize defines it
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL: the zygote ends with its agent.
        self.control = self.socket(int(os.environ.pop("TROUPE_ZYGOTE_CONTROL")))
        self.library = ctypes.PyDLL(os.environ.pop("TROUPE_ZYGOTE_LIBRARY"))
        self.library.troupe_changed.restype = ctypes.c_char_p
        self.host_proc = self.up(os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        self.own_user = os.stat("/proc/self/ns/user").st_ino
        self.spots = self.child["find_placeholder"](sys.argv[0])
        owner = os.environb.pop(b"TROUPE_ZYGOTE_OWNER", b"")
        mark = "TROUPE_ZYGOTE_"
        wanted = [name for name in os.environ if name.startswith(mark) and name.endswith("_NUM_THREADS")]
        self.thread_numbers = {name[len(mark):]: os.environ.pop(name) for name in wanted}  # what trials get, by variable
        shown = b"\0".join([b"troupe-zygote", os.fsencode(sys.executable), owner, b""])
        self.library.troupe_show_command(shown, ctypes.c_size_t(len(shown)), b"", ctypes.c_size_t(0))
        self.pending = {}
        self.contexts = {}  # name of a context to the names of the modules beside its script
        self.not_learned = set()
        self.learned_file, self.given = None, {}  # set in a forked process: see child.tell_modules
        self.warm = {}  # names of warm modules, in the order of their import
        self.watched = {}
        self.sites = site_folders()
        self.numbers, self.numbers_are_set = [], False
        self.kept, self.last_warm = [], None
        import atexit

        atexit.register(self.child["keep_modules"], self)
        # A fresh interpreter has none of these modules loaded. A library that imports one of them later loads it anew.
        self.hidden = {name: sys.modules.pop(name) for name in set(sys.modules) - before}
        self.base = set(sys.modules)

    # ---- descriptors

    def up(self, fd):
        moved = self.fcntl.fcntl(fd, self.fcntl.F_DUPFD_CLOEXEC, self.high)
        os.close(fd)
        return moved

    def socket(self, fd):
        return self._socket.socket(fileno=self.up(fd))

    def receive(self, connection, count):
        data, control, _, _ = connection.recvmsg(65536, self._socket.CMSG_SPACE(4 * count))
        fds = []
        for level, kind, body in control:
            if level == self._socket.SOL_SOCKET and kind == self._socket.SCM_RIGHTS:
                fds += [int.from_bytes(body[i : i + 4], sys.byteorder) for i in range(0, len(body) // 4 * 4, 4)]
        return data, [self.up(fd) for fd in fds]

    def tell(self, text):
        self.control.send(text.encode(errors="replace")[:4000])

    # ---- the loop

    def run(self):
        """Serves the agent without end. Returns only in a forked process, which is ready for its script then."""
        self.hello()
        poll = self.select.poll()
        poll.register(self.control.fileno(), self.select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd == self.control.fileno():
                    data, fds = self.receive(self.control, 2)
                    if not data:
                        os._exit(0)  # The agent has ended.
                    if data == b"ping":
                        self.tell("pong")
                    elif len(fds) == 2:
                        self.take(data, fds, poll)
                elif fd in self.pending:
                    connection, script = self.pending.pop(fd)
                    poll.unregister(fd)
                    if self.serve(connection, script, poll):
                        return

    def hello(self):
        for path in [sys.executable, os.path.join(sys.prefix, "pyvenv.cfg")] + self.sites:
            self.watch(path)
        self.tell("hello\0" + "\0".join(f"{path}\0{mtime}" for path, mtime in self.watched.items()))

    def watch(self, path):
        try:
            self.watched[path] = os.stat(path).st_mtime_ns
        except OSError:
            pass

    def take(self, data, fds, poll):
        _, context, script, learned = (os.fsdecode(part) for part in data.split(b"\0"))
        connection, folder = self._socket.socket(fileno=fds[0]), fds[1]
        try:
            learned = [name for name in learned.split() if name not in self.warm and name not in self.not_learned]
            if context not in self.contexts or learned:
                self.tell("warming")
                # Imports make little garbage, and the search for it takes an eighth of the time of importing torch.
                thresholds, never = self.gc.get_threshold(), (0, 1009, 1013)
                self.gc.set_threshold(*never)
                self.warm_up(folder, script, learned)
                if self.gc.get_threshold() == never:  # otherwise a module has set thresholds of its own, which stay
                    self.gc.set_threshold(*thresholds)
                self.contexts[context] = self.reading["top_names"](folder, script)
                self.tell("ready")
        except Refused as why:
            self.answer(connection, f"no {why}")
            self.tell(f"failed {why}")
            os._exit(1)
        finally:
            os.close(folder)
        self.pending[connection.fileno()] = (connection, context)
        poll.register(connection.fileno(), self.select.POLLIN)

    def answer(self, connection, text):
        try:
            connection.send(text.encode(errors="replace")[:900])
        except OSError:
            pass

    def serve(self, connection, context, poll):
        try:
            data, fds = self.receive(connection, 8)
        except OSError:
            data, fds = b"", []
        if len(fds) != 8:
            connection.close()  # troupe-task has ended before it asked for a fork
            return False
        try:
            self.check(context)
            self.answer(connection, "taken")
            if self.fork(fds):
                connection.detach()
                return True
            if data == b"more":
                self.pending[connection.fileno()] = (connection, context)
                poll.register(connection.fileno(), self.select.POLLIN)
                connection = None
        except Refused as why:
            self.answer(connection, f"no {why}")
        for fd in fds:
            os.close(fd)
        if connection is not None:
            connection.close()
        return False

    def check(self, context):
        threads = len(os.listdir("/proc/self/task"))
        if threads != 1:
            raise Refused(f"the zygote has {threads} threads, of which a fork would keep one")
        hiding = self.contexts[context] & self.warm_names
        if hiding:
            raise Refused(f"'{sorted(hiding)[0]}' beside the script has the name of an installed module that is warm")

    def check_files(self):
        # The library compares all files in one call, because after each fork every page that Python touches here is copied.
        if changed := self.library.troupe_changed(*self.packed):
            path = os.fsdecode(changed)
            self.tell(f"stale {path} has changed")
            raise Refused(f"{path} has changed since the zygote warmed up")

    def fork(self, fds):
        """Forks a process for a trial. Returns True in the forked process and False in the zygote.

        The forked process prepares itself while the zygote checks its watched files, and runs nothing of the trial before the zygote has
        sent "y". The two ends of the pipe for that are appended to `fds`, which the caller closes. Raises Refused where the fork
        fails or a file has changed.
        """
        request, mounts, pids, user = fds[:4]
        same_user = os.fstat(user).st_ino == self.own_user
        step = self.ctypes.c_char_p()
        verdict, mine = os.pipe()
        fds += [self.up(verdict), self.up(mine)]
        outcome = self.library.troupe_fork_into(-1 if same_user else user, mounts, pids, self.ctypes.byref(step))
        if outcome < 0:
            raise Refused(f"{(step.value or b'').decode()}: {os.strerror(-outcome)}")
        if outcome == 0:
            os.close(fds[-1])  # so that the pipe ends with the zygote
            self.child["become"](self, request, fds[4:7], fds[7], fds[-2])
            return True
        self.check_files()
        os.write(fds[-1], b"y")
        return False

    # ---- warming up

    def warm_up(self, folder, script, learned=()):
        known = set(sys.modules)
        if self.numbers_are_set:  # Modules may calculate while they are imported, but must not start a thread.
            self.set_threads({name: "1" for _, names, _ in self.numbers for name in names})
        for module, names in self.reading["wanted_imports"](folder, script):
            place = self.reading["place_of"](module.partition(".")[0])
            if not place or not self.reading["is_below"](place, self.sites + [self.ours]):
                continue
            self.warm_module(module)
            for name in names:
                if name != "*" and not hasattr(sys.modules[module], name):
                    self.warm_module(f"{module}.{name}", may_miss=True)
        hidden = self.reading["top_names"](folder, script)
        for name in learned:
            self.not_learned.add(name)  # It is tried only once, whatever happens.
            top = name.partition(".")[0]
            place = None if top in hidden else self.reading["place_of"](top)
            if place and self.reading["is_below"](place, self.sites):
                try:
                    self.warm_module(name, may_miss=True)
                except Refused as why:
                    raise Refused(f"learned {name}: {why}") from None
        if "troupe" in sys.modules:
            self.warm_module("troupe._link")
        # Only libraries that are loaded by now: torch loads more in warm_torch, which a script may never need.
        self.numbers = self.child["thread_setters"](self.ctypes)
        if "torch" in sys.modules and "torch" not in known:
            self.warm_torch(sys.modules["torch"])
        self.numbers_are_set = self.set_threads(self.thread_numbers)
        for name in sys.modules:
            if name not in known:
                self.warm[name] = None
                if path := getattr(sys.modules[name], "__file__", None):
                    self.watch(path)
        for fd in os.listdir("/proc/self/fd"):
            try:
                if os.readlink(f"/proc/self/fd/{fd}").startswith("/dev/nvidia"):
                    raise Refused("what the script imports opens a GPU, which a fork cannot share")
            except OSError:
                pass
        if weakref := sys.modules.get("weakref"):
            for finalizer in list(weakref.finalize._registry):
                finalizer.atexit = False  # At exit torch would free its operators one by one.
        self.warm_names = {name.partition(".")[0] for name in self.warm}
        paths, times = zip(*self.watched.items())
        self.packed = (b"".join(os.fsencode(path) + b"\0" for path in paths),
                       (self.ctypes.c_int64 * len(times))(*times), self.ctypes.c_size_t(len(times)))
        self.absent = [path for path, finder in sys.path_importer_cache.items() if finder is None]
        self.gc.collect()
        self.gc.freeze()

    def set_threads(self, environment):
        """Sets the numbers of threads of the numerical libraries, by the variables in `environment`.

        OpenBLAS starts its threads at once, ends them at a fork, and starts them anew when it calculates. A fork here therefore ends
        them, so that a process for a trial has one thread at its first line, as after a cold start. Returns False where a thread is left:
        then the numbers are set back to 1, and each forked process sets its own.
        """
        self.child["set_threads"](self.numbers, environment)
        count = lambda: len(os.listdir("/proc/self/task"))  # noqa: E731
        if count() > 1:
            if (pid := os.fork()) == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        if count() == 1:
            return True
        self.child["set_threads"](self.numbers, {name: "1" for _, names, _ in self.numbers for name in names})
        return False

    def warm_module(self, name, may_miss=False):
        import importlib

        if name in sys.modules:
            return
        try:
            importlib.import_module(name)
        except ImportError as why:
            if may_miss and why.name == name:
                return
            raise Refused(f"importing {name}: {why}") from None
        except BaseException as why:
            raise Refused(f"importing {name}: {type(why).__name__}: {why}") from None
        threads = len(os.listdir("/proc/self/task"))
        if threads != 1:
            raise Refused(f"importing {name} starts threads ({threads - 1}), which a fork would lose")

    def warm_torch(self, torch):
        """Makes an optimizer, because the first optimizer of a process takes a second, most of it for imports. Where torch is built
        without GPUs, it makes a step too. The random state and the filters of warnings do not change. Raises Refused where torch fails."""
        filters = list(sys.modules["warnings"].filters)
        try:
            state = torch.random.get_rng_state()
            net = torch.nn.Linear(2, 2)
            optimizer = torch.optim.AdamW(net.parameters())
            if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
                torch.nn.functional.cross_entropy(net(torch.ones(2, 2)), torch.tensor([0, 1])).backward()
                optimizer.step()
                optimizer.zero_grad()
            torch.random.set_rng_state(state)
        except Exception as why:
            raise Refused(f"a first step of torch: {type(why).__name__}: {why}") from None
        sys.modules["warnings"].filters[:] = filters
        sys.modules["warnings"]._filters_mutated()


def serve(here):
    parent = Parent(here)
    try:
        parent.run()
    except OSError:
        os._exit(1)  # The agent has ended.
