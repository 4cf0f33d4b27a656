"""A ZeroMQ ROUTER that speaks the agent's side of docs/task-link.md and records what the package sends."""

import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

import msgpack
import zmq

TOKEN, ALLOCATION = "secret", "12.3"


class FakeAgent:
    """Acknowledges reports at once, unless `hold` is set. `decide(seq, metrics)` returns a stop reason or None, and
    `refuse(seq, metrics)` the text of a refusal or None. Durable reports survive stop() and start() on the same port; sessions do not."""

    def __init__(self, endpoint: str = "tcp://127.0.0.1:*"):
        self.endpoint = endpoint
        self.reports: Dict[Tuple[str, int, int], Any] = {}  # (process, rank, seq) -> [group, steps, metrics, time]
        self.acked: Dict[str, int] = {}
        self.checkpoints: List[Any] = []
        self.frames: List[Any] = []
        self.repeats = 0
        self.hold = False
        self.mute = False
        self.decide: Callable[[int, Any], Optional[str]] = lambda seq, metrics: None
        self.refuse: Callable[[int, Any], Optional[str]] = lambda seq, metrics: None
        self.refuse_checkpoint: Optional[str] = None
        self.error: Optional[List[str]] = None
        self.stop_reason: Optional[str] = None
        self.window = 1 << 20
        self.words: List[Tuple[int, str, Any]] = []  # (rank, kind, fields) of trials in C++
        self.lead: Callable[[int, Any], List[Any]] = self._lead_on  # gets (rank, status) and returns orders
        self.refuse_worker: Optional[str] = None
        self.changed = threading.Condition()
        self._thread: Optional[threading.Thread] = None
        self._orders: List[Callable[[], None]] = []

    def start(self) -> "FakeAgent":
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.LINGER, 0)
        with self.changed:
            self.changed.wait_for(self._bound, 120)  # The port of a stopped agent becomes free a moment later.
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._sessions: Dict[bytes, Tuple[str, int]] = {}
        self._closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def _bound(self) -> bool:
        try:
            self._socket.bind(self.endpoint)
            return True
        except zmq.ZMQError:
            threading.Timer(0.02, self._nudge).start()
            return False

    def _nudge(self) -> None:
        with self.changed:
            self.changed.notify_all()

    def stop(self) -> None:
        self._closing = True
        self._thread.join()

    def order(self, what: Callable[[], None]) -> None:
        """Runs `what` on the thread of this agent."""
        self._orders.append(what)

    def push_stop(self, reason: str) -> None:
        self.stop_reason = reason
        self.order(lambda: [self._send(peer, ["stop", reason]) for peer in self._sessions])

    def release(self) -> None:
        self.hold = False
        self.order(lambda: [self._acknowledge(peer) for peer in self._sessions])

    def wait(self, done: Callable[[], bool], timeout: float = 120.0) -> None:
        with self.changed:
            assert self.changed.wait_for(done, timeout), "the agent did not see it in time"

    def metrics(self) -> List[Any]:
        return [row[2] for _, row in sorted(self.reports.items(), key=lambda item: (item[0][0], item[0][2]))]

    def kinds(self, kind: str) -> List[Any]:
        return [frame for frame in self.frames if frame[0] == kind]

    def _run(self) -> None:
        while not self._closing:
            while self._orders:
                self._orders.pop(0)()
            if not self._socket.poll(10):
                continue
            peer, body = self._socket.recv_multipart()
            frame = msgpack.unpackb(body)
            if self.mute:
                continue
            with self.changed:
                self.frames.append(frame)
                getattr(self, "_on_" + frame[0])(peer, *frame[1:])
                self.changed.notify_all()
        self._socket.close()
        self._context.term()

    def _send(self, peer: bytes, frame: Any) -> None:
        self._socket.send_multipart([peer, msgpack.packb(frame)])

    def _on_hello(self, peer: bytes, version: int, token: str, allocation: str, rank: int, process: str, acked: int) -> None:
        if self.error:
            return self._send(peer, ["error", *self.error])
        if (version, token, allocation) != (1, TOKEN, ALLOCATION):
            return self._send(peer, ["error", "token", "a token of another allocation"])
        self._sessions[peer] = (process, rank)
        have = self.acked.setdefault(process, acked)
        self._send(peer, ["welcome", 1, 0 if self.hold else have, self.stop_reason, self.window])

    def _on_reports(self, peer: bytes, first: int, rows: List[Any]) -> None:
        if peer not in self._sessions:
            return self._send(peer, ["again"])
        process, rank = self._sessions[peer]
        for seq, row in enumerate(rows, first):
            if seq <= self.acked[process]:
                self.repeats += 1
                continue
            assert seq == self.acked[process] + 1, "a report is missing"
            self.acked[process] = seq
            text = self.refuse(seq, row[2])
            if text is not None:
                self._send(peer, ["refused", seq, text])
                continue
            self.reports[process, rank, seq] = row
            reason = self.decide(seq, row[2]) if row[0] == "validation" else None
            if reason:
                self.stop_reason = reason
            if row[0] == "validation":
                self._send(peer, ["decision", seq, bool(reason), reason or ""])
        if not self.hold:
            self._acknowledge(peer)

    def _acknowledge(self, peer: bytes) -> None:
        self._send(peer, ["ack", self.acked[self._sessions[peer][0]]])

    def _on_checkpoint(self, peer: bytes, seq: int, name: str, steps: int, files: Any, metadata: Any) -> None:
        if peer not in self._sessions:
            return self._send(peer, ["again"])
        if self.refuse_checkpoint:
            return self._send(peer, ["unsaved", seq, self.refuse_checkpoint])
        if [name, steps, files, metadata] not in self.checkpoints:
            self.checkpoints.append([name, steps, files, metadata])
        self._send(peer, ["saved", seq])

    def _on_worker(self, peer: bytes, protocol: int, word: bytes) -> None:
        if peer not in self._sessions:
            return self._send(peer, ["again"])
        if self.refuse_worker:
            return self._send(peer, ["error", "worker", self.refuse_worker])
        rank = self._sessions[peer][1]
        kind, fields = msgpack.unpackb(word)
        self.words.append((rank, kind, fields))
        if kind == "status":
            for order in self.lead(rank, fields):
                self._send(peer, ["worker", protocol, msgpack.packb(order)])

    @staticmethod
    def _lead_on(rank: int, status: Any) -> List[Any]:
        phase, generation, step, batches, until = status
        return [["train_until", [batches, False]]] if until < batches else []

    def _on_progress(self, peer: bytes, done: float) -> None:
        pass

    def _on_ping(self, peer: bytes) -> None:
        if peer not in self._sessions:
            return self._send(peer, ["again"])
        self._send(peer, ["pong", 0 if self.hold else self.acked[self._sessions[peer][0]], self.stop_reason])
