"""Comparison of a damaged partition that a broker loaded with the prediction of logtool.

Two directories agree if they have the same files with the same bytes. The comparison ignores the
zeros with which a broker fills the indexes of the last segment, the order of the producers in a
snapshot, and files that were renamed to ``.deleted``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from broker.damaged import Case
from broker.recovery import LOADED, Outcome

_ENTRY_SIZES = {"index": 8, "timeindex": 12}


@dataclass(frozen=True)
class Prediction:
    """The prediction for a case; the fields have the names of those of `Outcome`."""

    kind: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    log_start: int | None = None
    log_end: int | None = None


def compare(case: Case, outcome: Outcome, predicted: Prediction | Outcome) -> list[str]:
    """Return the differences between an outcome and a prediction, as text.

    The files that a failed start leaves are not compared.
    """
    if outcome.kind != predicted.kind:
        return [f"{case.name}: {outcome.kind} {outcome.error}, predicted {predicted.kind}"]
    if outcome.kind != LOADED:
        return []
    wrong = [
        f"{case.name}: {name} {getattr(outcome, name)}, predicted {getattr(predicted, name)}"
        for name in ("log_start", "log_end")
        if getattr(predicted, name) not in (None, getattr(outcome, name))
    ]
    is_now, should_be = normal(outcome.files), normal(predicted.files)
    for name in sorted(is_now.keys() | should_be.keys()):
        here, there = is_now.get(name), should_be.get(name)
        if here != there:
            wrong.append(f"{case.name}: {name} {_shown(here)}, predicted {_shown(there)}")
    return wrong


def normal(files: Mapping[str, bytes]) -> dict[str, object]:
    """Return the files of a directory in a form that can be compared."""
    kept = {name: data for name, data in files.items() if not name.endswith(".deleted")}
    # A stray 1.log is no segment of its own.
    logs = (name for name in kept if name.endswith(".log") and len(name) == len("0" * 20 + ".log"))
    last = max(logs, default="")
    return {name: _normal(name, data, last.removesuffix(".log")) for name, data in kept.items()}


def _normal(name: str, data: bytes, active: str) -> object:
    stem, _, suffix = name.rpartition(".")
    if suffix in _ENTRY_SIZES and stem == active:
        return _unpadded(data, _ENTRY_SIZES[suffix])
    return data


def _unpadded(data: bytes, size: int) -> bytes:
    # When the file grows, the broker fills half an entry at the end with zeros too.
    data += bytes(-len(data) % size)
    end = len(data)
    while end and data[end - size : end] == bytes(size):
        end -= size
    return data[:end]


def _shown(value: object) -> str:
    if isinstance(value, bytes) and len(value) > 100:
        return f"{len(value)} bytes, ...{value[-40:].hex()}"
    return "absent" if value is None else repr(value)
