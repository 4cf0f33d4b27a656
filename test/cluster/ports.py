"""A port of this host for a server of a test that begins later."""

import random
import socket
from pathlib import Path

held = []  # sockets of UDP: while this process lives, no other one is given these ports


def free_port():
    """One that nobody listens on and that no test's process has been given; none of those that the kernel gives to connections, so nobody
    else comes to it meanwhile."""
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    few = 1000  # where the kernel leaves fewer than that, any has to do
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
