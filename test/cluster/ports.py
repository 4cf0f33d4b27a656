"""Finds a port of this host for a server that a test starts later."""

import random
import socket
from pathlib import Path

held = []  # UDP sockets; while this process holds one, no other process is given its port number


def free_port():
    """A port on which nobody listens and that no other test has been given. It is outside of the range that the kernel uses for outgoing
    connections, so that nobody else takes it meanwhile."""
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    few = 1000  # Where fewer ports than this lie outside of the range, all ports above 10000 are used.
    places = range(10000, first) if first - 10000 > few else range(last + 1, 65536) if 65535 - last > few else range(10000, 65536)
    while True:
        port = random.SystemRandom().choice(places)
        mark = socket.socket(type=socket.SOCK_DGRAM)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
                mark.bind(("127.0.0.1", port))
            except OSError:
                mark.close()
                continue
        held.append(mark)
        return port
