"""Lets the ranks of one run exchange small Python objects through rank 0, without torch.

    import troupe.dist as dist

    if dist.rank() == 0:
        vocabulary = build()
    vocabulary = dist.broadcast(vocabulary if dist.rank() == 0 else None)

The variables RANK, WORLD_SIZE and LOCAL_RANK of the environment name the ranks; `launch: per_slot` and torchrun set them. Without these
variables there is one rank, and every call returns at once. All ranks make the same calls in the same order, from one thread. Values
are pickled. At the first call the ranks connect to rank 0, which listens at MASTER_ADDR and the port TROUPE_DIST_PORT (default: the
port after MASTER_PORT).

The first call raises TroupeError where a rank has not connected within 60 s. Where a rank ends or dies later, the calls of the other
ranks raise TroupeError. They wait without limit for a rank that is only late.
"""

import atexit
import os
import time
from typing import Any, Dict, List, Optional

from troupe._errors import TroupeError

__all__ = ["all_gather", "barrier", "broadcast", "gather", "local_rank", "local_size", "rank", "size"]

JOIN_S = 60.0


def rank() -> int:
    """The number of this process among all ranks of the run, from 0."""
    return _number("RANK", 0)


def size() -> int:
    """The number of ranks of the run."""
    return _number("WORLD_SIZE", 1)


def local_rank() -> int:
    """The number of this process among the run's ranks on its agent, from 0."""
    return _number("LOCAL_RANK", 0)


def local_size() -> int:
    """The number of the run's ranks on this agent."""
    return _number("LOCAL_WORLD_SIZE", 1)


def broadcast(value: Any, root: int = 0) -> Any:
    """Returns on every rank the `value` of rank `root`. The values of other ranks are ignored."""
    _check_root(root)
    return _exchange("broadcast", root, value if rank() == root else None)


def gather(value: Any, root: int = 0) -> Optional[List[Any]]:
    """Returns on rank `root` a list of the values of all ranks, in the order of their numbers, and None on the other ranks."""
    _check_root(root)
    return _exchange("gather", root, value)


def all_gather(value: Any) -> List[Any]:
    """Returns on every rank a list of the values of all ranks, in the order of their numbers."""
    return _exchange("all_gather", 0, value)


def barrier() -> None:
    """Returns when every rank has called it."""
    _exchange("barrier", 0, None)


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(name) or str(otherwise)
    if not text.isascii() or not text.isdigit():
        raise TroupeError(f"{name}={text!r}: expected a number from 0")
    return int(text)


def _check_root(root: int) -> None:
    if not 0 <= root < size():
        raise ValueError(f"root={root}: the ranks are 0 to {size() - 1}")


def _answers(what: str, root: int, values: List[Any]) -> List[Any]:
    """What the call returns on each rank, in the order of the ranks, where `values` holds what each rank has passed."""
    if what == "broadcast":
        return [values[root]] * len(values)
    if what == "gather":
        return [values if r == root else None for r in range(len(values))]
    return [values if what == "all_gather" else None] * len(values)


class _Group:
    """The connection of this rank to rank 0, or the connections of rank 0 to all other ranks."""

    def __init__(self) -> None:
        from multiprocessing import connection

        self.pid = os.getpid()
        self.calls = 0
        self.broken: Optional[str] = None
        self.peers: Dict[int, Any] = {}
        if not os.environ.get("MASTER_ADDR"):
            raise TroupeError(f"WORLD_SIZE={size()}, but MASTER_ADDR does not say where the ranks meet")
        port = _number("TROUPE_DIST_PORT", 0) or _number("MASTER_PORT", 29500) + 1
        address = (os.environ["MASTER_ADDR"], port)
        # On a cluster the token is the key, because only processes of the run know it.
        name = os.environ.get("TORCHELASTIC_RUN_ID", "")
        key = (os.environ.get("TROUPE_TASK_TOKEN") or f"run {name}").encode()
        until = time.monotonic() + JOIN_S
        if rank() == 0:
            self._accept(connection, address, key, until)
        else:
            self._dial(connection, address, key, until)

    def _accept(self, connection: Any, address: Any, key: bytes, until: float) -> None:
        from multiprocessing import AuthenticationError

        try:
            listener = connection.Listener(address, family="AF_INET", backlog=size(), authkey=key)
        except OSError as why:
            raise TroupeError(f"rank 0 cannot listen on {address[0]}:{address[1]}: {why}; TROUPE_DIST_PORT names another port") from None
        with listener:
            listener._listener._socket.settimeout(1.0)  # Listener offers no timeout, and a rank may never connect.
            while len(self.peers) < size() - 1:
                if time.monotonic() > until:
                    missing = [r for r in range(1, size()) if r not in self.peers]
                    raise TroupeError(f"ranks {missing} of {size()} did not come within {JOIN_S:.0f} s")
                try:
                    peer = listener.accept()
                    number = peer.recv()
                except (TimeoutError, AuthenticationError, EOFError, OSError):
                    continue  # No rank has connected yet, or a process that does not belong to the run has.
                self.peers[number] = peer

    def _dial(self, connection: Any, address: Any, key: bytes, until: float) -> None:
        from multiprocessing import AuthenticationError

        while True:
            try:
                peer = connection.Client(address, family="AF_INET", authkey=key)
                peer.send(rank())
                self.peers[0] = peer
                return
            except AuthenticationError:
                raise TroupeError(f"rank 0 at {address[0]}:{address[1]} belongs to another run") from None
            except (OSError, EOFError) as why:
                if time.monotonic() > until:
                    raise TroupeError(f"rank 0 does not answer at {address[0]}:{address[1]} ({why})") from None
                time.sleep(0.02)

    def exchange(self, what: str, root: int, value: Any) -> Any:
        if self.broken:
            raise TroupeError(self.broken)
        self.calls += 1
        call = (self.calls, what, root)
        try:
            return self._lead(call, value) if rank() == 0 else self._follow(call, value)
        except TroupeError as why:
            self._break(str(why))
            raise
        except BaseException:
            self._break("an earlier call of troupe.dist failed")
            raise

    def _lead(self, call: Any, value: Any) -> Any:
        values = [value] + [None] * (size() - 1)
        for number in range(1, size()):
            theirs, values[number] = self._receive(number)
            if theirs != call:
                fault = f"rank {number} called {theirs[1]} (call {theirs[0]}, root {theirs[2]}) where rank 0 called {call[1]} (call {call[0]}, root {call[2]})"
                for peer in self.peers.values():
                    peer.send((None, fault))
                raise TroupeError(fault)
        answers = _answers(call[1], call[2], values)
        for number, peer in self.peers.items():
            try:
                peer.send((call, answers[number]))
            except OSError:
                raise TroupeError(f"rank {number} of {size()} is gone") from None
        return answers[0]

    def _follow(self, call: Any, value: Any) -> Any:
        try:
            self.peers[0].send((call, value))
        except OSError:
            pass  # The last message of rank 0, which is read next, may say why.
        theirs, answer = self._receive(0)
        if theirs is None:
            raise TroupeError(answer)
        return answer

    def _receive(self, number: int) -> Any:
        try:
            return self.peers[number].recv()
        except (EOFError, OSError):
            raise TroupeError(f"rank {number} of {size()} is gone") from None

    def _break(self, why: str) -> None:
        self.broken = why
        for peer in self.peers.values():
            if rank() == 0:
                try:
                    peer.send((None, why))
                except OSError:
                    pass
            peer.close()


_group: Optional[_Group] = None


def _exchange(what: str, root: int, value: Any) -> Any:
    global _group
    if size() == 1:
        return _answers(what, root, [value])[0]
    if rank() >= size():
        raise TroupeError(f"RANK={rank()} of WORLD_SIZE={size()} cannot be")
    if _group is None or _group.pid != os.getpid():
        _group = _Group()
        atexit.register(_close, os.getpid())
    return _group.exchange(what, root, value)


def _close(pid: int) -> None:
    if _group is not None and os.getpid() == pid:
        for peer in _group.peers.values():
            peer.close()
