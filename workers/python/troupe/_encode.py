"""Turns metrics of any kind into plain values and msgpack bytes, within the limits of docs/task-link.md."""

import struct
import threading
from typing import Any, Dict, List

import msgpack

from troupe._errors import Refused

MAX_BYTES = 1 << 20
MAX_LEVELS = 64
MAX_KEYS = 1000
MAX_NAME_BYTES = 10_240

GROUPS = {"training": msgpack.packb("training"), "validation": msgpack.packb("validation")}

_EXACT = frozenset((float, int, bool, str, type(None)))
_thread = threading.local()


def plain(metrics: Any) -> Dict[str, Any]:
    """A copy of `metrics` made of dict, list, str, bool, int, float and None alone. Scalars of numpy and torch become
    numbers, and arrays become lists.

    Raises TypeError where `metrics` is not a mapping, a key is not a string, or a value has another type, and Refused where there are
    too many levels or keys.
    """
    if type(metrics) is dict and len(metrics) <= MAX_KEYS:
        for key, item in metrics.items():
            if type(key) is not str or type(item) not in _EXACT or len(key) > 1024:
                break
        else:
            return dict(metrics)
    if not _is_map(metrics):
        raise TypeError(f"metrics must be a map of names to values, not {type(metrics).__name__}")
    return _copy(metrics, "metrics", 1, [0])


def pack(value: Any) -> bytes:
    """The msgpack bytes of a plain value. Raises TypeError where msgpack cannot hold the value: an integer beyond 64 bits, or a string
    that is not Unicode."""
    packer = getattr(_thread, "packer", None)
    if packer is None:
        packer = _thread.packer = msgpack.Packer()
    try:
        return packer.pack(value)
    except (OverflowError, UnicodeEncodeError, ValueError) as why:
        del _thread.packer
        raise TypeError(f"metrics hold a value that msgpack cannot carry: {why}") from None


def pack_metrics(metrics: Dict[str, Any]) -> bytes:
    """Packs as pack() does. Raises Refused where the bytes exceed the limit of a report."""
    data = pack(metrics)
    if len(data) > MAX_BYTES:
        raise Refused(f"a report of {len(data):,} bytes; at most {MAX_BYTES:,} are allowed; save large things in a checkpoint")
    return data


def report_entry(group: str, steps: int, metrics: bytes, time_us: int) -> bytes:
    """The msgpack bytes of `[group, steps, metrics, time_us]`, one entry of a `reports` frame."""
    return b"".join((b"\x94", GROUPS[group], struct.pack(">BQ", 0xCF, steps), metrics, struct.pack(">Bq", 0xD3, time_us)))


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) or (hasattr(value, "keys") and hasattr(value, "__getitem__"))


def _copy(value: Any, where: str, level: int, keys: List[int]) -> Any:
    if type(value) in _EXACT:
        return value
    if isinstance(value, (bool, int, float, str)):  # subclasses too: numpy.float64, IntEnum, ...
        for kind in (bool, int, float, str):
            if isinstance(value, kind):
                return kind.__str__(value) if kind is str else kind(value)
    if _is_map(value) or isinstance(value, (list, tuple)):
        if level > MAX_LEVELS:
            raise Refused(f"metrics nest deeper than {MAX_LEVELS} levels")
    if _is_map(value):
        result = {}
        names = value.keys()
        keys[0] += len(names)
        if keys[0] > MAX_KEYS:
            raise Refused(f"a report of more than {MAX_KEYS:,} keys; split it, or save it in a checkpoint")
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"{where}: the key {name!r} is not a string")
            if len(name) > MAX_NAME_BYTES or len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
                raise Refused(f"{where}: a name of more than {MAX_NAME_BYTES:,} bytes")
            result[str(name)] = _copy(value[name], name if level == 1 else f"{where}.{name}", level + 1, keys)
        return result
    if isinstance(value, (list, tuple)):
        return [_copy(item, where, level + 1, keys) for item in value]
    # Finds numpy and torch values without importing these: a scalar has no dimensions, an array has tolist().
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        number = value.tolist()
        if type(number) is not type(value):
            return _copy(number, where, level, keys)
    raise TypeError(f"{where}: a {type(value).__name__} is not a metric; use numbers, strings, booleans, None, lists and maps")
