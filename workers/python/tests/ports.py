"""A port for the ranks of a test to meet at."""

import random
import socket
from pathlib import Path


def free_port():
    """A port without a listener, as text. It is below those that the kernel gives to connections, so that no other process takes it."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(10000, max(first, 10001))
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return str(port)
            except OSError:
                pass
