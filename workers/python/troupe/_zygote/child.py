"""Turns a process that was just forked from the zygote into what a fresh start of the script would be."""

import os
import sys


# ---- the script's name, of which the interpreter keeps copies


def find_placeholder(name):
    """The addresses at which the interpreter keeps `name`, the name of its script, in wide characters.

    The zygote is started with a long name that no file has. The interpreter opens the file only after the fork.
    """
    sought, spots, own = wide(name), [], []
    own.append(sought)
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in maps.read().split("\n"):
            fields = line.split()
            if len(fields) < 5 or not fields[1].startswith("rw") or fields[4] != "0":
                continue
            if len(fields) > 5 and fields[5] != "[heap]":
                continue
            begin, _, end = fields[0].partition("-")
            begin, end = int(begin, 16), int(end, 16)
            memory.seek(begin)
            own.append(data := memory.read(min(end - begin, 64 << 20)))
            at = data.find(sought)
            while at >= 0:
                spots.append(begin + at)
                at = data.find(sought, at + len(sought))
    # The copies that this search has made itself are left out.
    ranges = [(id(x), id(x) + sys.getsizeof(x)) for x in own]
    return [spot for spot in spots if not any(begin <= spot < end for begin, end in ranges)]


def wide(text):
    return text.encode("utf-32-le" if sys.byteorder == "little" else "utf-32-be", "surrogateescape")


def put_script(ctypes, spots, name, path):
    """Writes `path` over the copies of `name` at the addresses `spots`. The interpreter made the name absolute at its start, so that
    `path` has to be absolute. Raises ValueError where the path is too long, or no copy is found."""
    old, new = wide(name), wide(path) + b"\0\0\0\0"
    if len(new) > len(old):
        raise ValueError("the script's path is too long")
    found = 0
    for spot in spots:
        # Other bytes stand here where the interpreter has freed this copy since.
        if ctypes.string_at(spot, len(old)) == old:
            ctypes.memmove(spot, new, len(new))
            found += 1
    if not found:
        raise ValueError("the interpreter keeps its script's name elsewhere")


# ---- threads of numerical libraries


def cpus(physical=False):
    mine = os.sched_getaffinity(0)
    if not physical:
        return len(mine)
    cores = set()
    for cpu in mine:
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as file:
                cores.add(file.read())
        except OSError:
            cores.add(cpu)
    return len(cores)


def thread_setters(ctypes):
    """The functions that set the number of threads in the numerical libraries that are loaded.

    Returns [(function, names of the environment variables that the library obeys, whether its default is the number of cores)];
    where the last is False, the default is the number of CPUs.
    """
    with open("/proc/self/maps") as maps:
        fields = (line.split(None, 5) for line in maps)
        paths = sorted({part[5].strip() for part in fields if len(part) > 5 and part[5].startswith("/")})
    openmp = ("OMP_NUM_THREADS",)
    # A PyTorch with MKL uses the number of MKL for OpenMP too.
    of_torch = (("MKL_NUM_THREADS",) + openmp, True)
    found = []
    for path in paths:
        base = path.rpartition("/")[2]
        if "openblas" in base:
            names = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads",
                     "openblas_set_num_threads64_", "openblas_set_num_threads")
            rule = (("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS") + openmp, False)
        elif base.startswith("libtorch_cpu"):
            names, rule = ("mkl_serv_set_num_threads",), of_torch
        elif base.startswith(("libgomp", "libomp", "libiomp")):
            names, rule = ("omp_set_num_threads",), of_torch if "/torch/lib/" in path else (openmp, False)
        else:
            continue
        try:
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        except OSError:
            continue
        function = next((f for f in (getattr(library, name, None) for name in names) if f is not None), None)
        if function is not None:
            found.append((function, *rule))
    return found


def number(environment, variables):
    for name in variables:
        first = environment.get(name, "").partition(",")[0].strip()
        if first.isdigit() and int(first) > 0:
            return int(first)
    return None


def set_threads(setters, environment):
    counts = {physical: cpus(physical) for physical in {rule[2] for rule in setters}}
    for function, variables, physical in setters:
        function(number(environment, variables) or counts[physical])


# ---- random state of a starting process


def draw_again(absent):
    if numpy := sys.modules.get("numpy.random"):
        numpy.seed()
    torch = sys.modules.get("torch")
    if torch is not None and torch.initial_seed() != 67280421310721:  # the fixed seed of older versions
        torch.default_generator.seed()
    if tempfile := sys.modules.get("tempfile"):
        tempfile.tempdir = None
    if process := sys.modules.get("multiprocessing.process"):
        process.current_process()._config["authkey"] = process.AuthenticationString(os.urandom(32))
    if threading := sys.modules.get("threading"):
        threading.main_thread()._set_native_id()
    for path in absent:  # folders that may exist in the sandbox only
        sys.path_importer_cache.pop(path, None)


def set_environment(pairs):
    coerced = os.environb.get(b"LC_CTYPE")  # Python itself sets this where no variable names a locale
    names = {pair.partition(b"=")[0] for pair in pairs}
    os.environb.clear()
    for pair in pairs:
        name, _, value = pair.partition(b"=")
        os.environb[name] = value
    if coerced is not None and b"LC_CTYPE" not in names:
        os.environb[b"LC_CTYPE"] = coerced


# ---- the other agents of a gang

RENDEZVOUS_FILE = "/run/determined/info/rendezvous.json"
ANSWER_S = 60
PAUSES_S = (0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30)  # pauses after calls that failed; a call that times out has not failed


# The chief's agent has claimed the ports in these variables. The other agents get them at the rendezvous, in this order.
PORTS = ("DTRAIN_SSH_PORT", "INTER_TRAIN_PROCESS_COMM_PORT_1", "INTER_TRAIN_PROCESS_COMM_PORT_2", "C10D_PORT")


def meet_gang(hidden):
    """Waits for the other agents of a task that runs on several. Returns {name: text}, the variables that are known only then.

    Modules that only this function imports are taken out of sys.modules and appended to `hidden`. Raises RuntimeError where the
    agents do not meet. The entrypoint script calls this function too (actors/host/stock_task.cpp).
    """
    if os.environ.get("TROUPE_NODES", "1") == "1":
        return {}
    known = set(sys.modules)
    import json
    import time

    gang = ask_for_gang(json, time)
    mine = f"{RENDEZVOUS_FILE}.{os.getpid()}"
    with open(mine, "w") as file:
        json.dump({"container_addrs": gang["addresses"], "container_rank": gang["rank"], "container_slot_counts": gang["slots"]}, file)
    os.replace(mine, RENDEZVOUS_FILE)  # Each rank writes this file, and another rank may be reading it.
    hidden.append([sys.modules.pop(name) for name in set(sys.modules) - known])
    found = {name: str(port) for name, port in zip(PORTS, gang["ports"])}
    if os.environ.get("TROUPE_LAUNCH") == "per_slot":
        found.update(MASTER_ADDR=gang["addresses"][0], MASTER_PORT=found["C10D_PORT"], TROUPE_DIST_PORT=found[PORTS[1]],
                     TROUPE_GANG=" ".join(f"{host}={slots}" for host, slots in zip(gang["addresses"], gang["slots"])))
    return found


def ask_for_gang(json, time):
    from http import client

    env = os.environ
    ports = ",".join(env.get(name, "0") for name in PORTS)  # Only the chief has these variables; the others send 0.
    path = f"/api/v1/allocations/{env['DET_ALLOCATION_ID']}/resources/{env['DET_RESOURCES_ID']}/rendezvous?ports={ports}"
    host, token = env["DET_MASTER"].partition("://")[2], env["DET_SESSION_TOKEN"]
    pauses, why = iter(PAUSES_S), ""
    while True:
        connection = client.HTTPConnection(host, timeout=ANSWER_S)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == 200:
                return json.loads(body)["rendezvousInfo"]
            why = f"{answer.status}: {body[:500].decode(errors='replace')}"
            if answer.status < 500:
                break
        except client.socket.timeout:
            continue  # The other agents have not asked yet.
        except (OSError, client.HTTPException) as fault:
            why = str(fault) or type(fault).__name__
        finally:
            connection.close()
        pause = next(pauses, None)
        if pause is None:
            break
        time.sleep(pause)
    raise RuntimeError(f"no rendezvous with the other agents: {why}")


def read_request(fd):
    with open(fd, "rb", closefd=False) as file:
        file.seek(0)
        parts = file.read().split(b"\0")
    fields = {b"cwd": [], b"arg": [], b"env": []}
    for key, value in zip(parts[::2], parts[1::2]):
        fields[key].append(value)
    return fields[b"cwd"][0], fields[b"arg"], fields[b"env"]


def show_command(parent, arguments, variables):
    shown, named = (b"".join(part + b"\0" for part in parts) for parts in (arguments, variables))
    size = parent.ctypes.c_size_t
    parent.library.troupe_show_command(shown, size(len(shown)), named, size(len(named)))


def become(parent, request, streams, gate_fd, verdict):
    """Makes this forked process ready for the script. Returns once the zygote (through `verdict`) and troupe-task have agreed.

    Where anything fails before that, the process ends, and troupe-task starts the script cold. A rendezvous that fails after that is a
    failure of the rank, as in a cold start.
    """
    try:
        _become(parent, request, streams, gate_fd, verdict)
    except BaseException as why:
        os.write(2, f"the zygote's child: {type(why).__name__}: {why}\n".encode(errors="replace"))
        os._exit(1)


def _become(parent, request, streams, gate_fd, verdict):
    ctypes = parent.ctypes
    host_pid = os.readlink("self", dir_fd=parent.host_proc)
    for fd, stream in enumerate(streams):
        os.dup2(stream, fd)
    cwd, arguments, variables = read_request(request)
    os.chdir(cwd)
    set_environment(variables)
    script, placeholder = os.fsdecode(arguments[1]), sys.argv[0]
    sys.argv = [os.fsdecode(argument) for argument in arguments[1:]]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = [os.fsdecode(argument) for argument in arguments]
    put_script(ctypes, parent.spots, placeholder, script if script.startswith("/") else f"{os.fsdecode(cwd)}/{script}")
    show_command(parent, arguments, variables)
    draw_again(parent.absent)
    if not parent.numbers_are_set:
        set_threads(parent.numbers, os.environ)
    os.setsid()
    if os.read(verdict, 1) != b"y":
        os._exit(0)  # The zygote has told troupe-task why, or has ended.
    gate = parent._socket.socket(fileno=gate_fd)
    gate.send(f"ready {os.getpid()} {host_pid}".encode())
    if gate.recv(16) != b"go":
        os._exit(0)
    # The helper that forked this process ends, and troupe-task becomes the parent. A prctl before that would let the helper's end
    # kill this process.
    while os.getppid() > 1:
        parent.select.select((), (), (), 0.0001)
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    gate.detach()
    parent.control.detach()
    for connection, _ in parent.pending.values():
        connection.detach()
    os.closerange(parent.high, parent.high + 2 * 1024)
    if met := meet_gang(parent.kept):
        os.environ.update(met)
        show_command(parent, arguments, [one for one in variables if os.fsdecode(one.partition(b"=")[0]) not in met]
                     + [os.fsencode(f"{name}={text}") for name, text in met.items()])
    if os.environ.get("TROUPE_RUN_DIR") and os.environ.get("LOCAL_RANK", "0") == "0":
        parent.learned_file, parent.given = os.environ["TROUPE_RUN_DIR"] + "/modules", dict(os.environb)
        os.environ._data = os.environb._data = parent.variables = Variables(os.environ._data)
        parent.variables.sites = parent.sites
    parent.library.troupe_leave_quickly()
    parent.last_warm = next(reversed(sys.modules))
    parent.kept.append(parent)  # To free it would take a millisecond.


class Variables(dict):
    """Replaces the dict below os.environ, and notes in `by_script` the names of variables that the script has changed. A change
    while an installed module is imported is not a change by the script."""

    def __init__(self, pairs):
        super().__init__(pairs)
        self.by_script, self.sites = set(), []

    def __setitem__(self, name, value):
        super().__setitem__(name, value)
        self.note(name, sys._getframe(1))

    def __delitem__(self, name):
        super().__delitem__(name)
        self.note(name, sys._getframe(1))

    def note(self, name, frame):
        if not self.is_installed_import(frame):
            self.by_script.add(name)

    def is_installed_import(self, frame):
        """Whether an import led to this frame, and all code between belongs to the standard library and installed packages."""
        library, installed = os.__file__.rpartition("/")[0] + "/", False
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith("<frozen importlib"):
                return installed
            if any(file.startswith(site + "/") for site in self.sites):
                installed = True
            elif not file.startswith(("<frozen ", library)):
                return False
            frame = frame.f_back
        return False


def environment_changed(parent):
    if os.environ._data is not parent.variables:
        return True
    return any(parent.variables.get(name) != parent.given.get(name) for name in parent.variables.by_script)


def tell_modules(parent, later):
    """Writes the names of the installed modules that this trial imported and that were not warm, so that later trials find them warm.

    Writes nothing where the script has changed its environment: a module may have read a variable there that other trials do not have.
    Variables that installed modules set while they are imported (scikit-learn sets KMP_*) are not changes by the script.
    """
    if parent.learned_file is None or environment_changed(parent):
        return
    packages, names = [], []
    for name in later:
        module = sys.modules.get(name)
        path = getattr(getattr(module, "__spec__", None), "origin", None)
        if path and getattr(module, "__name__", None) == name and any(path.startswith(site + "/") for site in parent.sites):
            (packages if hasattr(module, "__path__") else names).append(name)
    names = packages or names  # A package imports most of its modules. The next trial shows the others.
    if names:
        try:
            with open(parent.learned_file, "w") as file:
                file.write("\n".join(names[:600]))
        except OSError:
            pass


def keep_modules(parent):
    """Takes the warm modules out of sys.modules. Runs at the end, before the interpreter clears its modules.

    To clear the warm modules would take 0.2 s, and even to walk over them would copy some thousand pages. A script cannot see the
    difference.
    """
    if parent.last_warm is None:
        return  # This is the zygote itself, which ends.
    modules, later = sys.modules, []
    for name in reversed(modules):
        if name == parent.last_warm:
            break
        if name not in parent.warm:
            later.append(name)
    tell_modules(parent, list(reversed(later)))
    rest = {name: modules[name] for name in [*parent.base, *reversed(later)] if name in modules}
    swap = parent.library.troupe_swap_contents
    pointer, size = parent.ctypes.c_void_p, parent.ctypes.c_size_t
    swap(pointer(id(modules)), pointer(id(rest)), size(object.__basicsize__), size(dict.__basicsize__))
    parent.kept.append(rest)
    parent.ctypes.pythonapi.Py_IncRef(parent.ctypes.py_object(parent.kept))
