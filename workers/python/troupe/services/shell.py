"""Logins to a task by Debian's sshd: one process for each connection to the socket, with keys that were made for this task alone. Everybody
who reaches the master can open a connection. So each connection has to send its first byte soon, and at most 64 are open."""

import os
import pwd
import re
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List

from troupe.services._common import Surroundings, give_up, listen, say

most_connections = 64
first_byte_seconds = 10.0
most_value_bytes = 64 << 10  # of a variable; sshd passes all variables between its processes in at most 256 KiB

configuration = """\
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
# The folder is this task's own. Above it are the host's, whose owners have no number in the user namespace of a task.
StrictModes no
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
HostbasedAuthentication no
UsePAM no
PermitRootLogin prohibit-password
PermitUserEnvironment yes
AcceptEnv *
AllowTcpForwarding yes
AllowStreamLocalForwarding yes
# Else the socket of a forwarding from before stands in the way of the next login's.
StreamLocalBindUnlink yes
GatewayPorts no
X11Forwarding yes
X11UseLocalhost yes
Subsystem sftp internal-sftp
PermitUserRC yes
PrintMotd no
PrintLastLog no
PidFile none
UseDNS no
LoginGraceTime 30
MaxSessions 64
ClientAliveInterval 60
ClientAliveCountMax 5
LogLevel INFO
"""

not_for_logins = re.compile(r"^(_|HOME|TERM|LANG|LC_.*|PWD|OLDPWD|SHLVL|TROUPE_SERVICE_.*|.*(%%|\(\)).*)$")


def login_variables(env: Dict[str, str]) -> List[str]:
    """The variables of `env` as options of an authorized key. Left out are those of `not_for_logins`, and values that an option cannot
    hold: too long ones, those with a line break, and those with a backslash at the end."""
    options = []
    for name, value in sorted(env.items()):
        if not_for_logins.match(name) or not re.match(r"^[A-Za-z0-9_]+$", name):
            continue
        if "\n" in value or "\r" in value or value.endswith("\\") or len(value) > most_value_bytes:
            continue
        options.append('environment="{}={}"'.format(name, value.replace('"', '\\"')))
    return options


def write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text if text.endswith("\n") else text + "\n")


def write_files(around: Surroundings) -> Path:
    folder = around.own_folder("ssh")
    config = around.config
    for key in ("authorized_key", "host_key"):
        if not isinstance(config.get(key), str) or not config[key].strip():
            give_up(f"TROUPE_SERVICE_CONFIG has no '{key}'")
    write_private(folder / "host_key", config["host_key"])
    options = ",".join(login_variables(dict(os.environ)))
    keys = [line for line in config["authorized_key"].splitlines() if line.strip()]
    write_private(folder / "authorized_keys", "\n".join(f"{options} {key}" if options else key for key in keys))
    write_private(folder / "sshd_config", configuration.format(folder=folder))
    return folder


def find_sshd() -> str:
    path = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin:/sbin")
    if not path:
        give_up("sshd is not installed on this host: install the package openssh-server (Debian), or set cluster.shells: 'off'")
    return os.path.abspath(path)


def check_login() -> None:
    """Checks the account of this process, because sshd would refuse or end every login to one without a name or a shell. Without a name
    the program ends; without a shell it warns."""
    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError:
        give_up(f"uid {os.getuid()} has no account on this host, so that nobody can log in as it: give the user or the workspace an agentUserGroup")
    if os.path.basename(account.pw_shell) in ("nologin", "false"):
        print(f"troupe: the account {account.pw_name} of this host has {account.pw_shell} as its shell, so that logins end at once", file=sys.stderr, flush=True)


class Connections:
    """Waits for the first byte of each connection, starts an sshd for it, and then waits for the end of that sshd."""

    def __init__(self, server: socket.socket, command: List[str]) -> None:
        self.server = server
        self.command = command
        self.waiting: Dict[socket.socket, float] = {}  # to the time by which the first byte has to arrive
        self.running: List[subprocess.Popen] = []
        self.events = selectors.DefaultSelector()
        server.setblocking(False)
        self.events.register(server, selectors.EVENT_READ)
        wake, self.woken = socket.socketpair()
        for end in (wake, self.woken):
            end.setblocking(False)
        signal.set_wakeup_fd(wake.fileno())
        self.wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.events.register(self.woken, selectors.EVENT_READ)

    def count(self) -> int:
        return len(self.waiting) + len(self.running)

    def turn(self) -> None:
        due = min(self.waiting.values(), default=None)
        for key, _ in self.events.select(None if due is None else max(0.0, due - time.monotonic())):
            if key.fileobj is self.server:
                self.accept()
            elif key.fileobj is self.woken:
                self.reap()
            else:
                self.begin(key.fileobj)  # type: ignore[arg-type]
        now = time.monotonic()
        for connection in [c for c, until in self.waiting.items() if until <= now]:
            self.drop(connection)

    def accept(self) -> None:
        try:
            connection, _ = self.server.accept()
        except OSError:
            return
        if self.count() >= most_connections:
            connection.close()
            return
        connection.setblocking(False)
        self.waiting[connection] = time.monotonic() + first_byte_seconds
        self.events.register(connection, selectors.EVENT_READ)

    def drop(self, connection: socket.socket) -> None:
        self.waiting.pop(connection, None)
        self.events.unregister(connection)
        connection.close()

    def begin(self, connection: socket.socket) -> None:
        try:
            spoke = bool(connection.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return
        except OSError:
            spoke = False
        if spoke:
            connection.setblocking(True)
            try:
                self.running.append(subprocess.Popen(self.command, stdin=connection, stdout=connection))
            except OSError as fault:
                print(f"troupe: sshd could not be started: {fault}", file=sys.stderr, flush=True)
        self.drop(connection)

    def reap(self) -> None:
        try:
            while self.woken.recv(4096):
                pass
        except BlockingIOError:
            pass
        self.running = [one for one in self.running if one.poll() is None]


def main() -> int:
    around = Surroundings()
    sshd = find_sshd()
    check_login()
    folder = write_files(around)
    command = [sshd, "-i", "-e", "-f", str(folder / "sshd_config")]
    if os.getuid() == 0:
        try:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        except OSError as fault:
            give_up(f"sshd needs the folder /run/sshd: {fault.strerror}")
    tried = subprocess.run([sshd, "-t", "-f", str(folder / "sshd_config")], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        give_up(f"sshd does not take its configuration: {(tried.stderr or tried.stdout).strip()}")
    for name in ("TROUPE_SERVICE_CONFIG", "TROUPE_SERVICE_SOCKET"):
        os.environ.pop(name, None)  # Logins must not see the host key of the task's sshd.
    connections = Connections(listen(around.socket), command)
    say(f"Server listening on {around.socket}.")
    around.tell_ready()
    while True:
        connections.turn()


if __name__ == "__main__":
    sys.exit(main())
