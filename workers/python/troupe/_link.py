"""The client of the task link (docs/task-link.md). One background thread owns the socket, and callers only queue."""

import itertools
import os
import struct
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional

import msgpack
import zmq

from troupe import _encode
from troupe._errors import Refused, TroupeError
from troupe._settings import Settings

VERSION = 1
MAX_QUEUED_REPORTS = 65_536
MAX_QUEUED_BYTES = 32 << 20
FRAME_BYTES = 256 << 10
PACE_S = 0.005  #: seconds between two frames of reports; while a caller waits, reports are sent at once
PING_S = 1.0
WAITING_PING_S = 0.25  #: replaces PING_S while a caller waits, so that a restart of the agent is noticed sooner
PROGRESS_S = 0.5
SILENCE_S = 3.0  #: seconds without a frame after which the endpoint is read again and a new socket is opened
RESEND_CHECKPOINT_S = 5.0
MAX_CHECKPOINT_BYTES = 1 << 20

_REPORTS = b"\x93" + msgpack.packb("reports")
_FINAL_ERRORS = ("version", "token", "malformed", "window")


class _Checkpoint:
    def __init__(self, frame: bytes, after: int):
        self.frame = frame
        self.after = after  #: sequence number of the last report that must be durable first
        self.sent_at: Optional[float] = None
        self.saved = False
        self.refused: Optional[str] = None


class Link:
    """Reports, checkpoints and stop orders between this process and the agent. Thread-safe, but not usable in a forked child."""

    def __init__(self, settings: Settings, warn: Callable[[str, str], None], lose: Callable[[int], None]):
        """`warn(cause, text)` tells the user a text, once for each cause. `lose(n)` counts `n` reports that will never be durable."""
        self.process = os.urandom(16).hex()
        self.stop_reason: Optional[str] = None
        self._settings = settings
        self._warn = warn
        self._lose = lose
        self._news = threading.Condition(threading.Lock())  # guards the members from here to `_closed`
        self._queued: Deque[bytes] = deque()
        self._queued_bytes = 0
        self._unacked: Deque[bytes] = deque()
        self._unacked_bytes = 0
        self._acked = 0
        self._next = 1
        self._awaited: Dict[int, Optional[str]] = {}  # validations that a caller waits for: sequence number to the text of the refusal
        self._refused_seen = 0
        self._checkpoints: Dict[int, _Checkpoint] = {}
        self._next_checkpoint = 1
        self._progress: Optional[float] = None
        self._waiters = 0
        self._asleep = False
        self._fatal: Optional[str] = None
        self._closed = False
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._wake_in, False)
        self._thread = threading.Thread(target=self._run, name="troupe-link", daemon=True)
        self._thread.start()

    # The script's threads call the following functions.

    def log(self, group: str, steps: int, metrics: Dict[str, Any]) -> bool:
        """Queues a report. Returns False where the queue is full or the link is closed for good. Never waits."""
        entry = _encode.report_entry(group, steps, _encode.pack_metrics(metrics), _now_us())
        with self._news:
            if self._fatal or self._closed:
                return False
            if len(self._queued) >= MAX_QUEUED_REPORTS or self._queued_bytes + len(entry) > MAX_QUEUED_BYTES:
                self._warn("full", "the agent does not keep up or is away: the queue is full and reports are dropped")
                return False
            self._enqueue(entry)
            asleep, self._asleep = self._asleep, False
        if asleep:
            self._wake()
        return True

    def validate(self, steps: int, metrics: Dict[str, Any]) -> None:
        """Queues a validation and waits without limit until it is durable and the searcher's decision, if any, has arrived.

        Raises Refused where the cluster refuses the validation, and TroupeError where the cluster refuses this process.
        """
        entry = _encode.report_entry("validation", steps, _encode.pack_metrics(metrics), _now_us())
        with self._news:
            self._check_open()
            seq = self._enqueue(entry)
            self._awaited[seq] = None
            self._wake()
            try:
                self._wait(lambda: self._acked >= seq or self._awaited[seq] is not None)
                refusal = self._awaited[seq]
            finally:
                del self._awaited[seq]
        if refusal is not None:
            raise Refused(f"the validation at step {steps} was refused: {refusal}")

    def checkpoint(self, name: str, steps: int, files: Dict[str, int], metadata: Dict[str, Any]) -> None:
        """Reports a checkpoint that is complete on disk, and waits without limit until it is recorded. Raises what validate() raises."""
        with self._news:
            self._check_open()
            seq = self._next_checkpoint
            self._next_checkpoint += 1
            mine = _Checkpoint(msgpack.packb(["checkpoint", seq, name, steps, files, metadata]), self._next - 1)
            self._checkpoints[seq] = mine
            self._wake()
            try:
                self._wait(lambda: mine.saved or mine.refused is not None)
            finally:
                del self._checkpoints[seq]
        if mine.refused is not None:
            raise Refused(f"the checkpoint at step {steps} was refused: {mine.refused}")

    def progress(self, done: float) -> None:
        with self._news:
            self._progress = done  # The thread sends it when it wakes up next, within a second.

    def flush(self, timeout: Optional[float]) -> bool:
        """Waits at most `timeout` seconds (None means without limit) until every report so far is acknowledged.

        Returns False where one is not, or where the link is closed for good.
        """
        with self._news:
            target = self._next - 1
            if self._acked < target:
                self._wake()
            try:
                return self._wait(lambda: self._acked >= target, timeout)
            except TroupeError:
                return False

    def unconfirmed(self) -> int:
        """The number of reports that are not acknowledged and may still be. 0 where the link is closed for good."""
        with self._news:
            return 0 if self._fatal else self._next - 1 - self._acked

    def close(self, timeout: float) -> None:
        """Ends the thread, and waits at most `timeout` seconds for its end. Reports without an acknowledgement by then may be lost."""
        with self._news:
            self._closed = True
            self._news.notify_all()
        self._wake()
        self._thread.join(timeout)

    def _check_open(self) -> None:
        if self._fatal or self._closed:
            raise TroupeError(self._fatal or "the link to the agent is closed: the process is ending")

    def _wait(self, done: Callable[[], bool], timeout: Optional[float] = None) -> bool:
        self._waiters += 1
        try:
            self._news.wait_for(lambda: done() or self._fatal or self._closed, timeout)
        finally:
            self._waiters -= 1
        if done():
            return True
        self._check_open()
        return False

    def _enqueue(self, entry: bytes) -> int:
        self._queued.append(entry)
        self._queued_bytes += len(entry)
        self._next += 1
        return self._next - 1

    def _wake(self) -> None:
        try:
            os.write(self._wake_in, b"\0")
        except BlockingIOError:
            pass  # A wake-up is already on its way.

    # The following functions run on the link's thread.

    def _run(self) -> None:
        try:
            context = zmq.Context()
            try:
                _Conversation(self, context).run()
            finally:
                context.destroy(linger=0)
        except BaseException as why:
            self._fail(f"the link to the agent broke: {type(why).__name__}: {why}")

    def _fail(self, text: str) -> None:
        self._warn("fatal", f"{text}; metrics are no longer reported")
        with self._news:
            self._lose(len(self._queued) + len(self._unacked))
            self._fatal = text
            self._news.notify_all()

    def _advance(self, upto: int) -> None:
        upto = min(upto, self._next - 1)
        while self._acked < upto:
            if self._unacked:
                self._unacked_bytes -= len(self._unacked.popleft())
            else:
                self._queued_bytes -= len(self._queued.popleft())
            self._acked += 1
        if self._waiters:
            self._news.notify_all()

    def _take_unacked_back(self) -> None:
        self._queued.extendleft(reversed(self._unacked))
        self._queued_bytes += self._unacked_bytes
        self._unacked.clear()
        self._unacked_bytes = 0
        for checkpoint in self._checkpoints.values():
            checkpoint.sent_at = None

    def _stop(self, reason: Any) -> None:
        if isinstance(reason, str) and reason:
            self.stop_reason = reason

    def _refuse(self, seq: int, text: str) -> None:
        if seq in self._awaited:
            self._awaited[seq] = text
            self._news.notify_all()
        elif seq > self._refused_seen:
            self._lose(1)
            self._warn("refused", f"the agent refused a report: {text}")
        self._refused_seen = max(self._refused_seen, seq)


class _Conversation:
    """The state of the socket and its deadlines. Every method runs on the link's thread."""

    def __init__(self, link: Link, context: zmq.Context):
        self._link = link
        self._context = context
        self._socket: Optional[zmq.Socket] = None
        self._greeted = False
        self._window = 1 << 20
        self._blocked = False
        self._next_hello = self._next_ping = self._next_send = self._next_progress = self._heard = 0.0

    def run(self) -> None:
        link = self._link
        while not link._closed and not link._fatal:
            now = time.monotonic()
            if self._socket is None or now - self._heard > SILENCE_S:
                self._open(now)
            self._blocked = False
            if not self._greeted:
                if now >= self._next_hello:
                    self._hello(now)
            else:
                pause = self._ping_pause()
                if now - self._heard >= pause and now >= self._next_ping:
                    self._send(msgpack.packb(["ping"]))
                    self._next_ping = now + pause
                self._send_work(now)
            self._wait_for_news()
        if self._socket is not None:
            self._socket.close(linger=200)

    def _open(self, now: float) -> None:
        if self._socket is not None:
            self._socket.close(linger=0)
        self._socket = socket = self._context.socket(zmq.DEALER)
        socket.setsockopt(zmq.IMMEDIATE, 1)  # A frame is queued only for a connection that stands.
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.RECONNECT_IVL, 50)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        socket.setsockopt(zmq.MAXMSGSIZE, 2 << 20)
        self._greeted = False
        self._heard = now
        self._next_hello = now
        endpoint = self._link._settings.current_endpoint()
        try:
            socket.connect(endpoint)
        except zmq.ZMQError as why:
            self._link._warn("endpoint", f"TROUPE_HARNESS: cannot connect to {endpoint!r}: {why}; trying again")

    def _send(self, frame: bytes) -> bool:
        try:
            self._socket.send(frame, zmq.DONTWAIT)
            return True
        except zmq.Again:
            self._blocked = True
            return False

    def _ping_pause(self) -> float:
        return WAITING_PING_S if self._link._waiters else PING_S

    def _hello(self, now: float) -> None:
        s = self._link._settings
        frame = ["hello", VERSION, s.token, s.allocation, s.rank, self._link.process, self._link._acked]
        if self._send(msgpack.packb(frame)):
            self._next_hello = now + PING_S

    def _send_work(self, now: float) -> None:
        link = self._link
        if now >= self._next_progress:
            with link._news:
                progress, link._progress = link._progress, None
            if progress is not None and self._send(msgpack.packb(["progress", progress])):
                self._next_progress = now + PROGRESS_S
        if now < self._next_send and not link._waiters:
            return
        while not self._blocked:
            with link._news:
                entries = self._next_entries()
                first = link._acked + len(link._unacked) + 1
            if not entries:
                break
            frame = b"".join((_REPORTS, struct.pack(">BQ", 0xCF, first), struct.pack(">BI", 0xDD, len(entries)), *entries))
            if not self._send(frame):
                break
            self._next_send = now + PACE_S
            with link._news:
                for _ in entries:
                    entry = link._queued.popleft()
                    link._unacked.append(entry)
                    link._queued_bytes -= len(entry)
                    link._unacked_bytes += len(entry)
        with link._news:
            due = [c for c in link._checkpoints.values()
                   if link._acked >= c.after and (c.sent_at is None or now - c.sent_at >= RESEND_CHECKPOINT_S)]
        for checkpoint in due:
            if self._send(checkpoint.frame):
                checkpoint.sent_at = now

    def _next_entries(self) -> list:
        link = self._link
        room = min(FRAME_BYTES, self._window - link._unacked_bytes)
        entries, size = [], 0
        for entry in itertools.islice(link._queued, 4096):
            if size + len(entry) > room and (entries or link._unacked):
                break
            entries.append(entry)
            size += len(entry)
        return entries

    def _wait_for_news(self) -> None:
        link = self._link
        now = time.monotonic()
        until = self._heard + SILENCE_S + 0.001
        if self._greeted:
            until = min(until, max(self._heard + self._ping_pause(), self._next_ping))
        else:
            until = min(until, now + PING_S if self._blocked else self._next_hello)
        with link._news:
            # Queued reports are sent when the pace allows it. Where the agent's window is full, its acknowledgement wakes the thread.
            if link._queued and self._greeted and not self._blocked and self._next_entries():
                until = min(until, now if link._waiters else self._next_send)
            if link._checkpoints and self._greeted:
                until = min(until, now + PING_S)
            link._asleep = not link._queued
            if link._closed:
                return
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN | (zmq.POLLOUT if self._blocked else 0))
        poller.register(link._wake_out, zmq.POLLIN)
        ready = dict(poller.poll(max(0.0, until - now) * 1000 + 0.5))
        link._asleep = False
        if link._wake_out in ready:
            try:
                os.read(link._wake_out, 4096)
            except BlockingIOError:
                pass
        for _ in range(256):
            try:
                frame = self._socket.recv(zmq.DONTWAIT)
            except zmq.Again:
                return
            self._heard = time.monotonic()
            try:
                message = msgpack.unpackb(frame)
                self._hear(message[0], message)
            except (ValueError, TypeError, LookupError, msgpack.UnpackException):
                continue  # A frame of a newer version or a damaged one is skipped: the answer to the next ping repeats what matters.

    def _hear(self, kind: Any, message: Any) -> None:
        link = self._link
        with link._news:
            if kind == "ack":
                link._advance(message[1])
            elif kind == "decision":
                if message[2]:
                    link._stop(message[3] or "pruned")
            elif kind == "pong":
                link._stop(message[2])
                link._advance(message[1])
            elif kind == "welcome":
                link._stop(message[3])
                link._advance(message[2])
                link._take_unacked_back()
                self._window = message[4]
                self._greeted = True
                self._next_send = 0.0
            elif kind == "stop":
                link._stop(message[1])
            elif kind == "refused":
                link._refuse(message[1], message[2])
            elif kind in ("saved", "unsaved"):
                checkpoint = link._checkpoints.get(message[1])
                if checkpoint is not None:
                    checkpoint.saved = kind == "saved"
                    checkpoint.refused = None if checkpoint.saved else message[2]
                    link._news.notify_all()
            elif kind == "again":
                self._greeted = False
                self._next_hello = 0.0
        if kind == "error":
            if message[1] in _FINAL_ERRORS:
                link._fail(f"the agent refused this process: {message[2]}")
            else:
                self._greeted = False
                self._next_hello = time.monotonic() + PING_S


def _now_us() -> int:
    return time.time_ns() // 1000
